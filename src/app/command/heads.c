/* heads.c -- heads: what each head of a model does on a text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/command/heads.h"
#include "app/session/internal.h"
#include "app/session/model_input.h"
#include "model/heads.h"

typedef struct HeadsRun {
    Session     *session;
    const Call  *call;
    Model       *m;
    ModelReading reading;
    const char  *name;   /* of the text */
    bool         repeated;
    int64_t      near;   /* keys */
    HeadsResult  result;
    int64_t     *order;  /* [count] of layer * heads + head; owned */
    int64_t      count;
} HeadsRun;

/* ---- the order of rows ----------------------------------------------------------------- */

static bool parse_sort(const Call *call, HeadOrder *out, Error *err)
{
    return !call->values[OPT_SORT] || head_order_parse(call->values[OPT_SORT], out, err);
}

static bool order_rows(HeadsRun *r, Error *err)
{
    int64_t   all = r->result.layers * r->result.heads;
    HeadOrder by;

    r->order = malloc((size_t)all * sizeof(*r->order));
    if (!r->order)
        return error_set(err, ERR_NOMEM, "not enough memory for the table");
    for (int64_t i = 0; i < all; i++)
        if (r->result.score[i].label)
            r->order[r->count++] = i;
    if (!parse_sort(r->call, &by, err))
        return false;
    if (r->call->values[OPT_SORT])
        head_scores_order(r->result.score, by, r->order, r->count);
    return true;
}

/* ---- as a table and as JSON ---------------------------------------------------------------- */

static void score_cell(Table *t, double value, bool exact)
{
    if (isnan(value))
        table_cell(t, "n/a");
    else
        table_cell(t, exact ? "%.9g" : "%.3f", value);
}

/* NaN: too few rows to look for an offset. */
static double offset_tokens(const HeadScores *score)
{
    return score->offset_tokens ? (double)score->offset_tokens : (double)NAN;
}

static void count_cell(Table *t, double count)
{
    if (isnan(count))
        table_cell(t, "n/a");
    else
        table_cell(t, "%.0f", count);
}

static void heads_table(const HeadsRun *r, TableStyle style, Text *out)
{
    bool  csv = style == TABLE_CSV;
    Table t = { .cols = (csv ? 6 : 5) + HEAD_SCORE_COUNT, .keys = 2, .room = call_room(r->call) };

    table_cell(&t, "layer");
    table_cell(&t, "head");
    table_cell(&t, "label");
    for (int s = 0; s < HEAD_OFFSET; s++)
        table_cell(&t, "%s", head_score_name((HeadScore)s));
    table_cell(&t, csv ? "induction_rows" : "rows");
    table_cell(&t, "%s", head_score_name(HEAD_OFFSET));
    table_cell(&t, csv ? "offset_tokens" : "back");
    if (csv)
        table_cell(&t, "words");
    for (int64_t i = 0; i < r->count; i++) {
        const HeadScores *score = &r->result.score[r->order[i]];
        char              words[HEAD_WORDS];

        table_cell(&t, "%lld", (long long)(r->order[i] / r->result.heads));
        table_cell(&t, "%lld", (long long)(r->order[i] % r->result.heads));
        head_label_words(score, words, sizeof(words));
        table_cell(&t, "%s", csv ? score->label : words);
        for (int s = 0; s < HEAD_OFFSET; s++)
            score_cell(&t, head_score(score, (HeadScore)s), csv);
        table_cell(&t, "%lld", (long long)score->induction_rows);
        score_cell(&t, head_score(score, HEAD_OFFSET), csv);
        count_cell(&t, offset_tokens(score));
        if (csv)
            table_cell(&t, "%s", words);
    }
    table_write(&t, style, out);
    table_free(&t);
}

static void heads_count(const HeadsRun *r, Text *out)
{
    const char *between = "";

    text_addf(out, "%s: %s, ", r->m->name, r->name);
    text_add_count(out, r->reading.tokens.count, "token");
    text_add(out, "\n");
    for (int l = 0; head_labels[l]; l++) {
        int64_t count = 0;

        for (int64_t i = 0; i < r->count; i++)
            count += !strcmp(r->result.score[r->order[i]].shown, head_labels[l]);
        if (count)
            text_addf(out, "%s%lld %s", between, (long long)count, head_labels[l]);
        between = count ? ", " : between;
    }
    text_add(out, "\n\n");
}

/* The grid layers x heads: a letter for each label. */
static void heads_grid(const HeadsRun *r, Text *out)
{
    text_addf(out, "layer   heads 0 to %lld: i induction, p previous, s self, k sink, b broad, "
              "o offset, . mixed\n", (long long)r->result.heads - 1);
    for (int64_t l = 0; l < r->result.layers; l++) {
        const HeadScores *row = r->result.score + l * r->result.heads;

        if (!row->label)
            continue;
        text_addf(out, "%5lld   ", (long long)l);
        for (int64_t h = 0; h < r->result.heads; h++)
            text_addf(out, "%c", !strcmp(row[h].shown, "sink")    ? 'k'
                                 : !strcmp(row[h].shown, "mixed") ? '.'
                                                                  : row[h].shown[0]);
        text_add(out, "\n");
    }
    text_add(out, "\n");
}

static void heads_json(const HeadsRun *r, Text *out)
{
    Json j = jsonw_to(out);

    jsonw_open(&j, '{');
    jsonw_key_string(&j, "model", r->m->name);
    jsonw_key_string(&j, "text", r->name);
    jsonw_key_int(&j, "tokens", r->reading.tokens.count);
    jsonw_key_int(&j, "layers", r->result.layers);
    jsonw_key_int(&j, "heads", r->result.heads);
    jsonw_key_bool(&j, "repeated", r->repeated);
    jsonw_key_open(&j, "scores", '[');
    for (int64_t i = 0; i < r->count; i++) {
        const HeadScores *score = &r->result.score[r->order[i]];
        char              words[HEAD_WORDS];

        jsonw_open(&j, '{');
        jsonw_key_int(&j, "layer", r->order[i] / r->result.heads);
        jsonw_key_int(&j, "head", r->order[i] % r->result.heads);
        jsonw_key_string(&j, "label", score->label);
        jsonw_key_string(&j, "words", head_label_words(score, words, sizeof(words)));
        for (int s = 0; s < HEAD_SCORE_COUNT; s++)
            jsonw_key_number(&j, head_score_name((HeadScore)s), head_score(score, (HeadScore)s));
        jsonw_key_int(&j, "induction_rows", score->induction_rows);
        jsonw_key_number(&j, "offset_tokens", offset_tokens(score));
        jsonw_close(&j, '}');
    }
    jsonw_close(&j, ']');
    jsonw_key_int(&j, "near_keys", r->near);
    jsonw_key_number(&j, "seconds", r->result.seconds);
    jsonw_close(&j, '}');
    text_add(out, "\n");
}

/* ---- the command --------------------------------------------------------------------------- */

static bool take_text(HeadsRun *r, Error *err)
{
    const Call *call = r->call;
    ModelText   text;
    int64_t     repeat = 0, seed = 0;

    if (!call_model_text(call, &text, err) ||
        !call_int(call, OPT_TOKENSTWICE, 1, 1 << 20, &repeat, err) ||
        !call_int(call, OPT_SEED, 0, INT64_MAX, &seed, err))
        return false;
    if (call->text_count > 1 || (repeat && (text.text || text.ids)))
        return error_set(err, ERR_USAGE, "heads reads one text: choose one of --text, --ids and "
                         "--repeat");
    r->repeated = repeat > 0;
    r->name = repeat ? "random tokens, twice" : text.ids ? text.ids : text.text;
    if (repeat)
        return heads_repeat(r->m, repeat, (uint64_t)seed, &r->reading.tokens, err);
    return r->name ? model_read_text(r->session, r->m, &text, &r->reading, err)
                   : error_set(err, ERR_USAGE, "heads needs a text: --text FILE, --text "
                               MODEL_USUAL_TEXT ", or --repeat 64 for random tokens twice");
}

static bool show_layer(void *context, int64_t layer, const HeadScores *scores)
{
    HeadsRun *r = context;

    (void)scores;
    session_progress(r->session, "layer %lld of %lld", (long long)layer,
                     (long long)r->m->config.layers);
    return true;
}

static bool run_scores(HeadsRun *r, Error *err)
{
    HeadsOptions options = { .repeated = r->repeated, .layer = -1, .cancel = r->session->stop,
                             .on_layer = show_layer, .context = r };
    int64_t      threads = 0;
    bool         ok;

    if (!call_int(r->call, OPT_LAYER, 0, 100000, &options.layer, err) ||
        !call_int(r->call, OPT_NEAR, 1, INT32_MAX, &r->near, err) ||
        !call_int(r->call, OPT_THREADS, 1, 4096, &threads, err))
        return false;
    options.threads = (int)threads;
    options.near = r->near;
    session_heeds_stop(r->session, true);
    ok = heads_run(r->m, r->reading.tokens.ids, r->reading.tokens.count, &options, &r->result, err);
    session_heeds_stop(r->session, false);
    return ok;
}

/* A high score on a text and another label beside it need a word. */
static void note_induction(const HeadsRun *r, Text *out)
{
    if (!r->repeated)
        text_add(out, "\non a text no head is labelled induction, whatever its score: --repeat N "
                      "tests it on random tokens\n");
}

static void report_heads(const HeadsRun *r, Text *out)
{
    TableStyle style = call_style(r->call);

    if (r->call->values[OPT_JSON]) {
        heads_json(r, out);
        return;
    }
    if (style == TABLE_TEXT) {
        heads_count(r, out);
        heads_grid(r, out);
    }
    heads_table(r, style, out);
    if (style == TABLE_TEXT)
        note_induction(r, out);
}

/* "tiny.gguf, text.txt, 33 tokens" */
static bool draw_heads(const HeadsRun *r, Error *err)
{
    Text words = { 0 };
    bool ok;

    text_addf(&words, "%s, %s, ", path_name(r->m->name), r->name);
    text_add_count(&words, r->reading.tokens.count, "token");
    ok = heads_figure(r->call, &r->result, text_str(&words), err);
    text_free(&words);
    return ok;
}

bool command_heads(Session *s, const Call *call, Text *out, Error *err)
{
    HeadsRun  r = { .session = s, .call = call, .near = HEAD_NEAR_KEYS };
    ModelSpec parts = { 0 };
    HeadOrder ignored;
    bool      ok;

    if (!call->word_count)
        return error_set(err, ERR_USAGE, "heads needs a model: a .gguf file, or a folder with "
                         "config.json; " MODEL_INCLUDED " comes with the program");
    if (!parse_sort(call, &ignored, err) || !heads_figure_check(call, err))
        return false;
    ok = model_spec_parse(call->words[0], &parts, err);
    if (ok)
        r.m = model_spec_open(s, &parts, err);
    ok = r.m && take_text(&r, err) && run_scores(&r, err) && order_rows(&r, err);
    if (ok && call->file_count)
        ok = draw_heads(&r, err);
    else if (ok)
        report_heads(&r, out);
    free(r.order);
    heads_result_free(&r.result);
    model_reading_free(&r.reading);
    model_close(r.m);
    model_spec_free(&parts);
    return ok;
}
