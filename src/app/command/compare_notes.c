/* compare_notes.c -- below the table of compare: the values that defaults took, the tensors that
 * were drawn, the quality of each head, the cost of one token more. */
#include "app/command/command.h"

#include <string.h>

/* ---- what nobody wrote -------------------------------------------------------- */

/* A line that another row has said already is left out. */
static void add_line(const Text *line, int room, Text *said, Text *out)
{
    if (text_has_line(said, text_str(line)))
        return;
    text_addf(said, "%s\n", text_str(line));
    text_add_folded(out, text_str(line), room, 9);
}

static bool is_default(const Result *result, const Param *param)
{
    return param->type != PARAM_TYPE_TENSOR &&
           !assignments_find(&result->request.given, param->name);
}

static void default_line(const Result *result, Text *line)
{
    const Mechanism *m = result->run->mechanism;
    int              count = 0;

    for (const Param *p = m->params; p && p->name; p++) {
        Text value = { 0 };

        if (!is_default(result, p))
            continue;
        params_print(p, result->run->params, &value);
        if (value.length) {
            if (!count++)
                text_addf(line, "default  %s: ", m->id);
            text_addf(line, "%s%s=%s", count > 1 ? ", " : "", p->name, text_str(&value));
        }
        text_free(&value);
    }
}

static void tensor_line(const Result *result, Text *line)
{
    const Run *run = result->run;
    char       origin[48];

    if (run->tensor_count)
        text_addf(line, "tensors  %s: ", run->mechanism->id);
    for (int i = 0; i < run->tensor_count; i++)
        text_addf(line, "%s%s %s", i ? ", " : "", run->tensors[i].name,
                  run_origin_text(run, run->tensors[i].origin, origin, sizeof(origin)));
}

void compare_values(Result *const *results, int count, int room, Text *out)
{
    Text line = { 0 }, said = { 0 };

    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count; i++) {
            if (results[i]->record.status != RECORD_OK)
                continue;
            text_clear(&line);
            (pass ? tensor_line : default_line)(results[i], &line);
            if (line.length)
                add_line(&line, room, &said, out);
        }
    text_free(&line);
    text_free(&said);
}

/* ---- heads ---------------------------------------------------------------------- */

static void share_cell(Table *t, Number share, TableStyle style)
{
    char text[48];

    if (style == TABLE_CSV)
        table_number(t, share, 15);
    else
        table_cell(t, "%s", format_share(share, text, sizeof(text)));
}

static void head_row(const Result *result, int head, bool grouped, TableStyle style, Table *t)
{
    const Quality *q = &result->record.by_head[head];
    const Input   *input = result->input;
    Text           name = { 0 };

    request_text(&result->request, &name);
    table_cell(t, "%s", text_str(&name));
    text_free(&name);
    table_cell(t, "%d", head);
    if (grouped)
        table_cell(t, "%lld", (long long)(head * input->k.shape[0] / input->heads));
    share_cell(t, q->mass_mean, style);
    share_cell(t, q->mass_p5, style);
    share_cell(t, q->mass_min, style);
    share_cell(t, q->output_error, style);
    share_cell(t, q->total_variation, style);
    table_number(t, q->kl, style == TABLE_CSV ? 15 : 4);
}

static bool is_grouped(const Input *input)
{
    return input_kv_heads(input) < input->heads;
}

void compare_heads(Result *const *results, int count, TableStyle style, int room, Text *out)
{
    static const char *const heads[] = { "mechanism", "head", "kv head", "mass mean", "mass p5",
                                         "mass min", "output err", "TV", "KL" };
    static const char *const keys[] = { "mechanism", "head", "kv_head", "mass_mean", "mass_p5",
                                        "mass_min", "output_error", "total_variation", "kl" };
    bool  grouped = count && is_grouped(results[0]->input);
    Table t = { .cols = 8 + grouped, .keys = 2, .room = room };

    for (int i = 0; i < 9; i++)
        if (i != 2 || grouped)
            table_cell(&t, "%s", style == TABLE_CSV ? keys[i] : heads[i]);
    for (int i = 0; i < count; i++)
        for (int head = 0; head < results[i]->record.head_count; head++)
            head_row(results[i], head, grouped, style, &t);
    table_write(&t, style, out);
    table_free(&t);
}

/* ---- one token more ---------------------------------------------------------------- */

static void bytes_cell(Table *t, Number bytes, TableStyle style)
{
    char text[32];

    if (style == TABLE_CSV)
        table_number(t, bytes, 15);
    else
        table_cell(t, "%s", bytes.valid ? format_exact_bytes(bytes.value, text, sizeof(text))
                                        : "n/a");
}

static void step_flops_cell(Table *t, Number flops, TableStyle style)
{
    char text[32];

    if (style == TABLE_CSV || !flops.valid)
        table_number(t, flops, 15);
    else
        table_cell(t, "%s", format_exact_count(flops.value, text, sizeof(text)));
}

static void step_time_cell(Table *t, const StepRecord *step, TableStyle style)
{
    char text[32];

    if (style == TABLE_CSV)
        table_number(t, step->median, 15);
    else
        table_cell(t, "%s%s", format_ms(step->median, text, sizeof(text)),
                   step_makes_again(step) ? "*" : "");
}

static void step_row(const Result *result, const StepRecord *base, TableStyle style, Table *t)
{
    const StepRecord *step = &result->record.step;
    Text              name = { 0 };

    request_text(&result->request, &name);
    table_cell(t, "%s", text_str(&name));
    text_free(&name);
    bytes_cell(t, step->state_bytes, style);
    bytes_cell(t, step->kv_bytes_per_token, style);
    bytes_cell(t, step->step_bytes, style);
    step_flops_cell(t, step->decode_flops, style);
    step_time_cell(t, step, style);
    if (!step->median.valid || !base->median.valid || !(step->median.value > 0))
        table_cell(t, "n/a");
    else if (style == TABLE_CSV)
        table_cell(t, "%.6g", base->median.value / step->median.value);
    else
        table_times(t, base->median.value / step->median.value);
    table_cell(t, "%s", step->way ? step_way_name(step->way) : "n/a");
}

static void missing_line(const Result *result, const char *what, const char *why, int room,
                         Text *out)
{
    Text line = { 0 };

    text_addf(&line, "n/a      %s: %s: %s", result->request.mechanism, what, why);
    text_add_folded(out, text_str(&line), room, 9);
    text_free(&line);
}

void compare_decode(Result *const *results, int count, TableStyle style, int room, Text *out)
{
    static const char *const heads[] = { "mechanism", "cache", "a token adds", "step reads",
                                         "step FLOP", "step ms", "vs first", "step is" };
    static const char *const keys[] = { "mechanism", "decode.state_bytes",
                                        "decode.kv_bytes_per_token", "decode.step_bytes",
                                        "decode.decode_flops", "decode.step_ms.median", "vs_first",
                                        "decode.way" };
    Table t = { .cols = 8, .room = room };

    for (int i = 0; i < t.cols; i++)
        table_cell(&t, "%s", style == TABLE_CSV ? keys[i] : heads[i]);
    for (int i = 0; i < count; i++)
        step_row(results[i], &results[0]->record.step, style, &t);
    table_write(&t, style, out);
    table_free(&t);
    if (style == TABLE_MARKDOWN)
        text_add(out, "\n");
    if (style != TABLE_CSV)
        text_add(out, "cache: bytes after the run's tokens; then what each further token adds,\n"
                      "and what a step reads of it. step ms: the last query alone, without what a\n"
                      "decoder keeps (*: made again), or one of all tokens by form=recurrent.\n");
    for (int i = 0; i < count && style != TABLE_CSV; i++) {
        const StepRecord *step = &results[i]->record.step;

        if (results[i]->record.status != RECORD_OK)
            continue;
        if (*step->lacks)
            missing_line(results[i], "cost", step->lacks, room, out);
        if (*step->time_lacks && strcmp(step->lacks, step->time_lacks) != 0)
            missing_line(results[i], "step ms", step->time_lacks, room, out);
    }
}

void compare_input(const Input *input, int room, Text *out)
{
    Text line = { 0 };

    text_addf(&line, "input %s: h=%lld", input->name, (long long)input->heads);
    if (input_kv_heads(input) < input->heads)
        text_addf(&line, " kv=%lld", (long long)input_kv_heads(input));
    text_addf(&line, " n=%lld d=%lld.", (long long)input->n, (long long)input->d);
    text_add(out, "\n");
    text_add_folded(out, text_str(&line), room, 2);
    text_free(&line);
}
