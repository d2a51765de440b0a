/* compare_notes.c -- below the table of compare: the values that defaults took, the tensors that
 * were drawn, the quality of each head. */
#include "app/command/command.h"

#include <string.h>

/* ---- what nobody wrote -------------------------------------------------------- */

/* A line that another row has said already is left out. */
static void add_line(const Text *line, int room, Text *said, Text *out)
{
    if (said->length && strstr(text_str(said), text_str(line)))
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

static void share_cell(Table *t, Number share)
{
    char text[48];

    table_cell(t, "%s", format_share(share, text, sizeof(text)));
}

static void head_row(const Result *result, int head, bool grouped, Table *t)
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
    share_cell(t, q->mass_mean);
    share_cell(t, q->mass_p5);
    share_cell(t, q->mass_min);
    share_cell(t, q->output_error);
    share_cell(t, q->total_variation);
    table_number(t, q->kl, 4);
}

static bool is_grouped(const Input *input)
{
    return input->k.data && input->k.shape[0] > 0 && input->k.shape[0] < input->heads;
}

void compare_heads(Result *const *results, int count, TableStyle style, int room, Text *out)
{
    static const char *const heads[] = { "mechanism", "head", "kv head", "mass mean", "mass p5",
                                         "mass min", "output err", "TV", "KL" };
    bool  grouped = count && is_grouped(results[0]->input);
    Table t = { .cols = 8 + grouped, .keys = 2, .room = room };

    for (int i = 0; i < 9; i++)
        if (i != 2 || grouped)
            table_cell(&t, "%s", heads[i]);
    for (int i = 0; i < count; i++)
        for (int head = 0; head < results[i]->record.head_count; head++)
            head_row(results[i], head, grouped, &t);
    table_write(&t, style, out);
    table_free(&t);
}
