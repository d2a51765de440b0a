/* heads.c -- heads: what each head of a model does on a text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
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
    HeadsResult  result;
    int64_t     *order;  /* [count] of layer * heads + head; owned */
    int64_t      count;
} HeadsRun;

/* ---- scores by name ----------------------------------------------------------------- */

typedef enum Score { PREVIOUS, SELF, FIRST, NEXT, ENTROPY, DISTANCE, INDUCTION, SCORES } Score;

static const char *const score_names[] = { "previous", "self", "first", "next", "entropy",
                                           "distance", "induction" };

static double score_of(const HeadScores *s, Score which)
{
    switch (which) {
    case PREVIOUS: return s->previous;
    case SELF: return s->self;
    case FIRST: return s->first;
    case NEXT: return s->next;
    case ENTROPY: return s->entropy;
    case DISTANCE: return s->distance;
    default: return s->induction;
    }
}

static bool parse_score(const char *name, Score *out, Error *err)
{
    for (int s = 0; s < SCORES; s++)
        if (!strcmp(name, score_names[s])) {
            *out = (Score)s;
            return true;
        }
    return error_set(err, ERR_USAGE, "--sort %.40s: expected previous, self, first, next, entropy, "
                     "distance or induction", name);
}

/* ---- the order of rows ----------------------------------------------------------------- */

/* Largest first; heads to which the score does not apply come last, equal ones as they were. */
static void sort_rows(HeadsRun *r, Score by)
{
    for (int64_t i = 1; i < r->count; i++) {
        int64_t at = r->order[i], j = i;
        double  value = score_of(&r->result.score[at], by);

        for (; j > 0; j--) {
            double before = score_of(&r->result.score[r->order[j - 1]], by);

            if (isnan(value) || before >= value)
                break;
            r->order[j] = r->order[j - 1];
        }
        r->order[j] = at;
    }
}

static bool order_rows(HeadsRun *r, Error *err)
{
    int64_t all = r->result.layers * r->result.heads;
    Score   by = PREVIOUS;

    r->order = malloc((size_t)all * sizeof(*r->order));
    if (!r->order)
        return error_set(err, ERR_NOMEM, "not enough memory for the table");
    for (int64_t i = 0; i < all; i++)
        if (r->result.score[i].label)
            r->order[r->count++] = i;
    if (!r->call->values[OPT_SORT])
        return true;
    if (!parse_score(r->call->values[OPT_SORT], &by, err))
        return false;
    sort_rows(r, by);
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

static void heads_table(const HeadsRun *r, TableStyle style, Text *out)
{
    Table t = { .cols = 4 + SCORES, .keys = 2, .room = call_room(r->call) };

    table_cell(&t, "layer");
    table_cell(&t, "head");
    table_cell(&t, "label");
    for (int s = 0; s < SCORES; s++)
        table_cell(&t, "%s", score_names[s]);
    table_cell(&t, "rows");
    for (int64_t i = 0; i < r->count; i++) {
        const HeadScores *score = &r->result.score[r->order[i]];

        table_cell(&t, "%lld", (long long)(r->order[i] / r->result.heads));
        table_cell(&t, "%lld", (long long)(r->order[i] % r->result.heads));
        table_cell(&t, "%s", score->label);
        for (int s = 0; s < SCORES; s++)
            score_cell(&t, score_of(score, (Score)s), style == TABLE_CSV);
        table_cell(&t, "%lld", (long long)score->induction_rows);
    }
    table_write(&t, style, out);
    table_free(&t);
}

static void heads_count(const HeadsRun *r, Text *out)
{
    static const char *const labels[] = { "induction", "previous", "self", "sink", "broad",
                                          "mixed" };
    const char              *between = "";

    text_addf(out, "%s: %s, ", r->m->path, r->name);
    text_add_count(out, r->reading.tokens.count, "token");
    text_add(out, "\n");
    for (size_t l = 0; l < sizeof(labels) / sizeof(*labels); l++) {
        int64_t count = 0;

        for (int64_t i = 0; i < r->count; i++)
            count += !strcmp(r->result.score[r->order[i]].label, labels[l]);
        if (count)
            text_addf(out, "%s%lld %s", between, (long long)count, labels[l]);
        between = count ? ", " : between;
    }
    text_add(out, "\n\n");
}

/* The grid layers x heads: a letter for each label. */
static void heads_grid(const HeadsRun *r, Text *out)
{
    text_addf(out, "layer   heads 0 to %lld: i induction, p previous, s self, k sink, b broad, "
              ". mixed\n", (long long)r->result.heads - 1);
    for (int64_t l = 0; l < r->result.layers; l++) {
        const HeadScores *row = r->result.score + l * r->result.heads;

        if (!row->label)
            continue;
        text_addf(out, "%5lld   ", (long long)l);
        for (int64_t h = 0; h < r->result.heads; h++)
            text_addf(out, "%c", !strcmp(row[h].label, "sink")    ? 'k'
                                 : !strcmp(row[h].label, "mixed") ? '.'
                                                                  : row[h].label[0]);
        text_add(out, "\n");
    }
    text_add(out, "\n");
}

static void heads_json(const HeadsRun *r, Text *out)
{
    Json j = jsonw_to(out);

    jsonw_open(&j, '{');
    jsonw_key_string(&j, "model", r->m->path);
    jsonw_key_string(&j, "text", r->name);
    jsonw_key_int(&j, "tokens", r->reading.tokens.count);
    jsonw_key_int(&j, "layers", r->result.layers);
    jsonw_key_int(&j, "heads", r->result.heads);
    jsonw_key_bool(&j, "repeated", r->repeated);
    jsonw_key_open(&j, "scores", '[');
    for (int64_t i = 0; i < r->count; i++) {
        const HeadScores *score = &r->result.score[r->order[i]];

        jsonw_open(&j, '{');
        jsonw_key_int(&j, "layer", r->order[i] / r->result.heads);
        jsonw_key_int(&j, "head", r->order[i] % r->result.heads);
        jsonw_key_string(&j, "label", score->label);
        for (int s = 0; s < SCORES; s++)
            jsonw_key_number(&j, score_names[s], score_of(score, (Score)s));
        jsonw_key_int(&j, "induction_rows", score->induction_rows);
        jsonw_close(&j, '}');
    }
    jsonw_close(&j, ']');
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
        !call_int(r->call, OPT_THREADS, 1, 4096, &threads, err))
        return false;
    options.threads = (int)threads;
    session_heeds_stop(r->session, true);
    ok = heads_run(r->m, r->reading.tokens.ids, r->reading.tokens.count, &options, &r->result, err);
    session_heeds_stop(r->session, false);
    return ok;
}

static void tell(const HeadsRun *r, Text *out)
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
}

bool command_heads(Session *s, const Call *call, Text *out, Error *err)
{
    HeadsRun  r = { .session = s, .call = call };
    ModelSpec parts = { 0 };
    Score     ignored;
    bool      ok;

    if (!call->word_count)
        return error_set(err, ERR_USAGE, "heads needs a model: a .gguf file, or a folder with "
                         "config.json");
    if (call->values[OPT_SORT] && !parse_score(call->values[OPT_SORT], &ignored, err))
        return false;
    ok = model_spec_parse(call->words[0], &parts, err);
    if (ok)
        r.m = model_open(parts.path, err);
    ok = r.m && take_text(&r, err) && run_scores(&r, err) && order_rows(&r, err);
    if (ok)
        tell(&r, out);
    free(r.order);
    heads_result_free(&r.result);
    model_reading_free(&r.reading);
    model_close(r.m);
    model_spec_free(&parts);
    return ok;
}
