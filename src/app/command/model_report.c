/* model_report.c -- what the command model has computed, as text, tables and JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/model.h"
#include "core/utf8.h"

/* ---- numbers ---------------------------------------------------------------------- */

/* decimals: behind the point; of a negative number, digits in all. */
static void real_cell(Table *t, int decimals, double value)
{
    if (isnan(value))
        table_cell(t, "n/a");
    else if (decimals < 0)
        table_cell(t, "%.*g", -decimals, value);
    else
        table_cell(t, "%.*f", decimals, value);
}

/* ---- one text ---------------------------------------------------------------------- */

/* Valid UTF-8, for a token may be a part of a letter; with escapes no control character. */
static void add_clean(const char *bytes, bool escapes, Text *out)
{
    while (*bytes) {
        char     letter[4];
        uint32_t code = utf8_next(&bytes);

        if (escapes && (code == '\n' || code == '\r' || code == '\t'))
            text_add(out, code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t");
        else if (utf8_is_control(code) && (escapes || (code != '\n' && code != '\t')))
            text_add(out, "?");
        else
            text_add_bytes(out, letter, (size_t)utf8_encode(code, letter));
    }
}

static void add_token(const Model *m, int32_t id, Text *out)
{
    Text bytes = { 0 };

    if (!m->tokenizer) {
        text_addf(out, "%d", id);
        return;
    }
    tokenizer_add_bytes(m->tokenizer, id, &bytes);
    if (!*text_str(&bytes))
        text_add(out, tokenizer_piece(m->tokenizer, id));
    add_clean(text_str(&bytes), true, out);
    text_free(&bytes);
}

/* The tokens after the last position. */
static const NextToken *next_tokens(const ModelTextRun *t)
{
    const NextToken *all = t->result.measure[0].next;

    return all ? all + (t->reading.tokens.count - 1) * FORWARD_NEXT : NULL;
}

static void report_text(const ModelRun *r, const ModelTextRun *t, Text *out)
{
    const ForwardMeasure *m = &t->result.measure[0];
    const NextToken      *next = next_tokens(t);

    text_addf(out, "%s: %s, ", r->m->name, t->name);
    text_add_count(out, t->reading.tokens.count, "token");
    if (t->reading.whole > t->reading.tokens.count)
        text_addf(out, " of %lld", (long long)t->reading.whole);
    text_add(out, "\n");
    if (!isnan(m->loss))
        text_addf(out, "loss       %.4f nats a token, perplexity %.4g\n", m->loss, m->perplexity);
    else if (r->m->config.causal)
        text_add(out, "loss       n/a: one token predicts nothing that is there\n");
    else
        text_add(out, "loss       n/a: the model is an encoder\n");
    if (next && r->m->config.causal) {
        text_add(out, "next      ");
        for (int k = 0; k < FORWARD_NEXT && next[k].id >= 0; k++) {
            text_add(out, k ? ", '" : " '");
            add_token(r->m, next[k].id, out);
            text_addf(out, "' %.1f %%", 100 * next[k].p);
        }
        text_add(out, "\n");
    }
    text_addf(out, "seconds    %.3f to open, %.3f for the layers, %.3f for the head\n",
              r->load_seconds, t->result.seconds, t->result.seconds_head);
}

static void layer_table(const ModelRun *r, const ModelTextRun *t, TableStyle style, Text *out)
{
    Table table = { .cols = 3 };

    table_cell(&table, "layer");
    table_cell(&table, "||h|| after");
    table_cell(&table, "ms");
    table_cell(&table, "embedding");
    real_cell(&table, -6, t->result.measure[0].residual_norm[0]);
    table_cell(&table, "n/a");
    for (int64_t l = 0; l < r->m->config.layers; l++) {
        table_cell(&table, "%lld", (long long)l);
        real_cell(&table, -6, t->result.measure[0].residual_norm[l + 1]);
        real_cell(&table, 2, t->result.layer_seconds[l] * 1e3);
    }
    table_write(&table, style, out);
    table_free(&table);
}

static void token_table(const ModelRun *r, const ModelTextRun *t, TableStyle style, Text *out)
{
    const double *nll = t->result.measure[0].nll;
    Table         table = { .cols = 4 };

    table_cell(&table, "position");
    table_cell(&table, "id");
    table_cell(&table, "token");
    table_cell(&table, "nll");
    for (int64_t i = 0; i < t->reading.tokens.count; i++) {
        Text piece = { 0 };

        add_token(r->m, t->reading.tokens.ids[i], &piece);
        table_cell(&table, "%lld", (long long)i);
        table_cell(&table, "%d", t->reading.tokens.ids[i]);
        table_cell(&table, style == TABLE_TEXT ? "'%s'" : "%s", text_str(&piece));
        real_cell(&table, 4, nll && i ? nll[i - 1] : (double)NAN);
        text_free(&piece);
    }
    table_write(&table, style, out);
    table_free(&table);
}

/* ---- swaps --------------------------------------------------------------------------- */

/* "33"; "-": it does not depend on it. */
static const char *axis_value(const ModelRun *r, int64_t variant)
{
    int at = variant ? r->origins[variant - 1].at : -1;

    return at >= 0 ? r->axis.values[at] : "-";
}

static void swap_words(const ModelRun *r, int64_t variant, Table *t)
{
    int64_t at = variant - 1;
    Text    layers = { 0 }, heads = { 0 };

    table_cell(t, "%s", variant ? r->origins[at].text : "exact");
    if (r->axis.count)
        table_cell(t, "%s", axis_value(r, variant));
    if (variant) {
        model_set_text(r->layer_sets[at], r->m->config.layers, &layers);
        model_set_text(r->head_sets[at], r->m->config.heads, &heads);
    }
    table_cell(t, "%s", variant ? text_str(&layers) : "-");
    table_cell(t, "%s", variant ? text_str(&heads) : "-");
    text_free(&layers);
    text_free(&heads);
}

static void swap_row(const ModelRun *r, const ModelTextRun *run, int64_t variant, bool exact,
                     Table *t)
{
    const ForwardMeasure *m = &run->result.measure[variant];
    int                   digits = exact ? -9 : 4;
    double                share = variant ? model_share_of(m) : (double)NAN;

    swap_words(r, variant, t);
    real_cell(t, digits, m->loss);
    if (exact || isnan(m->delta))
        real_cell(t, digits, m->delta);
    else
        table_cell(t, "%+.4f", fabs(m->delta) < 5e-5 ? 0.0 : m->delta); /* no -0.0000 */
    real_cell(t, digits, m->kl);
    real_cell(t, digits, m->kl_max);
    real_cell(t, exact ? -9 : 3, m->agreement);
    real_cell(t, digits, model_last_residual(r, m));
    real_cell(t, exact ? -9 : 6, m->cosine);
    if (exact || isnan(share))
        real_cell(t, -9, share);
    else
        table_cell(t, "%.1f %%", 100 * share);
    table_cell(t, "%s%s%s", m->untrained ? "untrained" : "", m->untrained && *m->note ? ", " : "",
               m->note);
}

static void swap_table(const ModelRun *r, const ModelTextRun *run, TableStyle style, Text *out)
{
    static const char *const heads[] = { "swap", "layers", "heads", "loss", "delta", "KL", "KL max",
                                         "agree", "residual", "cosine", "FLOPs", "note" };
    static const char *const keys[] = { "swap", "layers", "heads", "loss", "delta", "kl", "kl_max",
                                        "agreement", "residual", "cosine", "flops_share", "note" };
    bool                     varied = r->axis.count > 0;
    Table                    t = { .cols = 12 + varied, .keys = 2, .room = call_room(r->call) };

    for (int c = 0; c < 12; c++) {
        table_cell(&t, "%s", style == TABLE_CSV ? keys[c] : heads[c]);
        if (varied && !c)
            table_cell(&t, "%s", r->axis.name);
    }
    for (int64_t v = 0; v <= r->swap_count; v++)
        swap_row(r, run, v, style == TABLE_CSV, &t);
    table_write(&t, style, out);
    table_free(&t);
}

/* What defaults took: a line for each swap that differs from those before it. */
static void report_defaults(const ModelRun *r, Text *out)
{
    Text said = { 0 }, line = { 0 }, values = { 0 };

    for (int64_t v = 0; v < r->swap_count; v++)
        for (const Swap *s = &r->swaps[v]; s; s = s->also) {
            text_clear(&values);
            text_clear(&line);
            model_defaults_text(s, &values);
            text_addf(&line, "default  %.*s: %s", (int)strcspn(s->mechanism, "("), s->mechanism,
                      text_str(&values));
            if (!values.length || text_has_line(&said, text_str(&line)))
                continue;
            text_addf(&said, "%s\n", text_str(&line));
            text_add_folded(out, text_str(&line), call_room(r->call), 9);
        }
    text_free(&said);
    text_free(&line);
    text_free(&values);
}

/* The parts of mixtures. */
static void report_mixtures(const ModelRun *r, Text *out)
{
    for (int64_t v = 0; v < r->swap_count; v++)
        for (const Swap *s = swap_is_file(r->origins[v].text) ? &r->swaps[v] : NULL; s;
             s = s->also) {
            Text line = { 0 };

            text_addf(&line, "mixture  %s: layers ", r->origins[v].text);
            model_set_text(s->layers, r->m->config.layers, &line);
            text_add(&line, ", heads ");
            model_set_text(s->heads, r->m->config.heads, &line);
            text_addf(&line, ": %s", s->mechanism);
            text_add_folded(out, text_str(&line), call_room(r->call), 9);
            text_free(&line);
        }
}

/* ---- several texts --------------------------------------------------------------------- */

static void mean_heads(TableStyle style, Table *t)
{
    static const char *const parts[] = { "mean", "low", "high" };

    for (int m = 0; m < MODEL_MEASURES; m++)
        for (int k = 0; k < (style == TABLE_CSV ? 3 : 1); k++)
            table_cell(t, style == TABLE_CSV ? "%s.%s" : "%s",
                       model_measure_name((ModelMeasure)m), parts[k]);
}

static void mean_cell(ModelSpread s, TableStyle style, Table *t)
{
    if (style == TABLE_CSV) {
        real_cell(t, -9, s.mean);
        real_cell(t, -9, s.mean - s.half);
        real_cell(t, -9, s.mean + s.half);
    } else if (isnan(s.mean) || isnan(s.half)) {
        real_cell(t, 4, s.mean);
    } else {
        table_cell(t, "%.4f +- %.4f", s.mean, s.half);
    }
}

static void mean_table(const ModelRun *r, TableStyle style, Text *out)
{
    bool  varied = r->axis.count > 0;
    Table t = { .cols = 3 + varied + MODEL_MEASURES * (style == TABLE_CSV ? 3 : 1),
                .keys = 2,
                .room = call_room(r->call) };

    table_cell(&t, style == TABLE_CSV ? "swap" : "mean of");
    if (varied)
        table_cell(&t, "%s", r->axis.name);
    table_cell(&t, "layers");
    table_cell(&t, "heads");
    mean_heads(style, &t);
    for (int64_t v = 0; v <= r->swap_count; v++) {
        swap_words(r, v, &t);
        for (int m = 0; m < MODEL_MEASURES; m++)
            mean_cell(model_spread(r, v, (ModelMeasure)m), style, &t);
    }
    table_write(&t, style, out);
    table_free(&t);
}

static void texts_table(const ModelRun *r, TableStyle style, Text *out)
{
    Table t = { .cols = 4 };

    table_cell(&t, "text");
    table_cell(&t, "tokens");
    table_cell(&t, "loss");
    table_cell(&t, "perplexity");
    for (int i = 0; i < r->text_count; i++) {
        const ForwardMeasure *m = &r->texts[i].result.measure[0];

        table_cell(&t, "%s", r->texts[i].name);
        table_cell(&t, "%lld", (long long)r->texts[i].reading.tokens.count);
        real_cell(&t, 4, m->loss);
        real_cell(&t, -4, m->perplexity);
    }
    table_write(&t, style, out);
    table_free(&t);
}

/* ---- what was written ---------------------------------------------------------------------- */

static void add_written(const Model *m, const GenerateResult *g, Text *out)
{
    Text all = { 0 };

    for (int64_t i = 0; i < g->count; i++)
        if (m->tokenizer)
            tokenizer_add_bytes(m->tokenizer, g->ids[i], &all);
        else
            text_addf(&all, "%d ", g->ids[i]);
    add_clean(text_str(&all), false, out);
    text_free(&all);
}

/* Keys that are in the cache when the last token is written, over layers and heads. */
static int64_t keys_held(const ModelRun *r, const ModelTextRun *t, const GenerateResult *g)
{
    return r->m->config.layers * r->m->config.heads * (t->reading.tokens.count + g->count - 1);
}

static void report_written(const ModelRun *r, const ModelTextRun *t, Text *out)
{
    for (int64_t v = 0; t->written && v <= r->swap_count; v++) {
        const GenerateResult *g = &t->written[v];
        char                  bytes[32];
        Text                  words = { 0 };

        add_written(r->m, g, &words);
        text_addf(out, "\n--- %s: ", v ? r->origins[v - 1].text : "exact");
        text_add_count(out, g->count, "token");
        if (g->count && g->seconds > 0)
            text_addf(out, ", %.1f a second", (double)g->count / g->seconds);
        text_addf(out, ", cache %s of float32 numbers (nothing is dropped), %lld",
                  format_bytes(g->cache_bytes, bytes, sizeof(bytes)), (long long)g->read_keys);
        if (g->count)
            text_addf(out, " of %lld", (long long)keys_held(r, t, g));
        text_addf(out, " keys read for the last%s\n%s\n", g->ended ? ", ended by itself" : "",
                  text_str(&words));
        text_free(&words);
    }
}

/* ---- text and tables --------------------------------------------------------------------- */

static void report_one(const ModelRun *r, const ModelTextRun *t, TableStyle style, Text *out)
{
    if (style == TABLE_TEXT)
        report_text(r, t, out);
    if (style == TABLE_TEXT && r->swap_count)
        text_add(out, "\n");
    if (r->swap_count) {
        swap_table(r, t, style, out);
        if (style == TABLE_TEXT) {
            report_mixtures(r, out);
            report_defaults(r, out);
        }
    } else if (!t->written) {
        if (style == TABLE_TEXT) {
            text_add(out, "\n");
            layer_table(r, t, style, out);
            text_add(out, "\n");
        }
        token_table(r, t, style, out);
    }
    report_written(r, t, out);
}

void model_report(const ModelRun *r, Text *out)
{
    TableStyle style = call_style(r->call);

    if (r->text_count == 1) {
        report_one(r, &r->texts[0], style, out);
        return;
    }
    if (style == TABLE_TEXT || !r->swap_count)
        texts_table(r, style, out);
    if (style == TABLE_TEXT)
        text_add(out, "\n");
    if (style == TABLE_TEXT || r->swap_count)
        mean_table(r, style, out);
    if (style == TABLE_TEXT) {
        report_mixtures(r, out);
        report_defaults(r, out);
    }
    for (int i = 0; i < r->text_count; i++)
        report_written(r, &r->texts[i], out);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void json_model(const Model *m, Json *j)
{
    const ModelConfig *c = &m->config;

    jsonw_key_open(j, "model", '{');
    jsonw_key_string(j, "arch", c->arch);
    jsonw_key_int(j, "layers", c->layers);
    jsonw_key_int(j, "heads", c->heads);
    jsonw_key_int(j, "kv_heads", c->kv_heads);
    jsonw_key_int(j, "head_dim", c->head_dim);
    jsonw_key_int(j, "width", c->width);
    jsonw_key_int(j, "vocab", c->vocab);
    jsonw_key_int(j, "context", c->context);
    jsonw_key_int(j, "file_bytes", m->file_bytes);
    jsonw_key_open(j, "types", '{');
    for (int t = 0; t < WEIGHT_TYPES; t++)
        if (m->type_count[t])
            jsonw_key_int(j, weight_type_name((WeightType)t), m->type_count[t]);
    jsonw_close(j, '}');
    jsonw_close(j, '}');
}

static void json_set(Json *j, const char *key, const bool *set, int64_t count)
{
    jsonw_key_open(j, key, '[');
    for (int64_t i = 0; i < count; i++)
        if (set[i])
            jsonw_int(j, i);
    jsonw_close(j, ']');
}

static void json_numbers(Json *j, const char *key, const double *values, int64_t count)
{
    jsonw_key(j, key);
    if (!values) {
        jsonw_null(j);
        return;
    }
    jsonw_open(j, '[');
    for (int64_t i = 0; i < count; i++)
        jsonw_number(j, values[i]);
    jsonw_close(j, ']');
}

/* The value of --vary: a number, a word, or null where the swap does not depend on it. */
static void json_value(const ModelRun *r, int64_t variant, Json *j)
{
    if (!r->axis.count)
        return;
    jsonw_key_int(j, "given", variant ? r->origins[variant - 1].given : -1);
    jsonw_key(j, "value");
    axis_json(&r->axis, variant ? r->origins[variant - 1].at : -1, j);
}

static void json_default(void *context, const char *name, const char *value)
{
    jsonw_key_string(context, name, value);
}

static void json_defaults(const Swap *swap, Json *j)
{
    jsonw_key_open(j, "defaults", '{');
    model_defaults(swap, json_default, j);
    jsonw_close(j, '}');
}

static void json_mixture(const ModelRun *r, const Swap *parts, Json *j)
{
    jsonw_key_open(j, "mixture", '[');
    for (const Swap *s = parts; s; s = s->also) {
        jsonw_open(j, '{');
        jsonw_key_string(j, "swap", s->mechanism);
        json_set(j, "layers", s->layers, r->m->config.layers);
        json_set(j, "heads", s->heads, r->m->config.heads);
        json_defaults(s, j);
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
}

static void json_swap(const ModelRun *r, const ModelTextRun *t, int64_t v, Json *j)
{
    const ForwardMeasure *m = &t->result.measure[v];

    jsonw_open(j, '{');
    jsonw_key_string(j, "swap", r->origins[v - 1].text);
    json_value(r, v, j);
    json_set(j, "layers", r->layer_sets[v - 1], r->m->config.layers);
    json_set(j, "heads", r->head_sets[v - 1], r->m->config.heads);
    jsonw_key_bool(j, "untrained", m->untrained);
    jsonw_key_number(j, "loss", m->loss);
    jsonw_key_number(j, "delta", m->delta);
    jsonw_key_number(j, "perplexity", m->perplexity);
    jsonw_key_number(j, "kl", m->kl);
    jsonw_key_number(j, "kl_max", m->kl_max);
    jsonw_key_number(j, "agreement", m->agreement);
    jsonw_key_number(j, "cosine", m->cosine);
    json_numbers(j, "residual", m->residual, r->m->config.layers + 1);
    jsonw_key_number(j, "flops", m->flops);
    jsonw_key_number(j, "flops_exact", m->flops_exact);
    jsonw_key_number(j, "seconds", m->seconds);
    if (swap_is_file(r->origins[v - 1].text))
        json_mixture(r, &r->swaps[v - 1], j);
    else
        json_defaults(&r->swaps[v - 1], j);
    jsonw_key_string(j, "note", *m->note ? m->note : NULL);
    jsonw_close(j, '}');
}

static void json_next(const ModelRun *r, const ModelTextRun *t, Json *j)
{
    const NextToken *next = next_tokens(t);

    jsonw_key(j, "next");
    if (!next) {
        jsonw_null(j);
        return;
    }
    jsonw_open(j, '[');
    for (int k = 0; k < FORWARD_NEXT && next[k].id >= 0; k++) {
        Text bytes = { 0 }, clean = { 0 };

        if (r->m->tokenizer)
            tokenizer_add_bytes(r->m->tokenizer, next[k].id, &bytes);
        for (const char *c = text_str(&bytes); *c;) {
            char letter[4];

            text_add_bytes(&clean, letter, (size_t)utf8_encode(utf8_next(&c), letter));
        }
        jsonw_open(j, '{');
        jsonw_key_int(j, "id", next[k].id);
        jsonw_key_string(j, "text", text_str(&clean));
        text_free(&clean);
        text_free(&bytes);
        jsonw_key_number(j, "p", next[k].p);
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
}

static void json_written(const ModelRun *r, const ModelTextRun *t, Json *j)
{
    if (!t->written)
        return;
    jsonw_key_open(j, "written", '[');
    for (int64_t v = 0; v <= r->swap_count; v++) {
        const GenerateResult *g = &t->written[v];
        Text                  words = { 0 };

        add_written(r->m, g, &words);
        jsonw_open(j, '{');
        jsonw_key_string(j, "swap", v ? r->origins[v - 1].text : NULL);
        jsonw_key_open(j, "ids", '[');
        for (int64_t i = 0; i < g->count; i++)
            jsonw_int(j, g->ids[i]);
        jsonw_close(j, ']');
        jsonw_key_string(j, "text", text_str(&words));
        json_numbers(j, "p", g->p, g->count);
        jsonw_key_int(j, "cache_bytes", g->cache_bytes);
        jsonw_key_int(j, "read_keys", g->read_keys);
        if (g->count)
            jsonw_key_int(j, "held_keys", keys_held(r, t, g));
        else
            jsonw_key_raw(j, "held_keys", "null");
        jsonw_key_bool(j, "ended", g->ended);
        jsonw_key_open(j, "seconds", '{');
        jsonw_key_number(j, "prompt", g->seconds_prompt);
        jsonw_key_number(j, "writing", g->seconds);
        jsonw_close(j, '}');
        jsonw_close(j, '}');
        text_free(&words);
    }
    jsonw_close(j, ']');
}

/* The members of one text; without a text they are null. */
static void json_text(const ModelRun *r, const ModelTextRun *t, Json *j)
{
    const ForwardMeasure *m = t ? &t->result.measure[0] : NULL;

    jsonw_key(j, "tokens");
    if (!t) {
        static const char *const rest[] = { "ids", "loss", "perplexity", "nll", "next" };

        jsonw_null(j);
        for (size_t i = 0; i < sizeof(rest) / sizeof(*rest); i++)
            jsonw_key_raw(j, rest[i], "null");
    } else {
        jsonw_int(j, t->reading.tokens.count);
        jsonw_key_open(j, "ids", '[');
        for (int64_t i = 0; i < t->reading.tokens.count; i++)
            jsonw_int(j, t->reading.tokens.ids[i]);
        jsonw_close(j, ']');
        jsonw_key_number(j, "loss", m->loss);
        jsonw_key_number(j, "perplexity", m->perplexity);
        json_numbers(j, "nll", m->nll, t->reading.tokens.count - 1);
        json_next(r, t, j);
    }
    jsonw_key_open(j, "swaps", '[');
    for (int64_t v = 1; t && v <= r->swap_count; v++)
        json_swap(r, t, v, j);
    jsonw_close(j, ']');
    if (t)
        json_written(r, t, j);
    jsonw_key_open(j, "seconds", '{');
    jsonw_key_number(j, "load", r->load_seconds);
    jsonw_key_number(j, "forward", t ? t->result.seconds + t->result.seconds_head : (double)NAN);
    jsonw_close(j, '}');
}

static void json_means(const ModelRun *r, Json *j)
{
    jsonw_key_open(j, "means", '[');
    for (int64_t v = 0; v <= r->swap_count; v++) {
        jsonw_open(j, '{');
        jsonw_key_string(j, "swap", v ? r->origins[v - 1].text : NULL);
        if (v) {
            json_value(r, v, j);
            json_set(j, "layers", r->layer_sets[v - 1], r->m->config.layers);
            json_set(j, "heads", r->head_sets[v - 1], r->m->config.heads);
        }
        for (int m = 0; m < MODEL_MEASURES; m++) {
            ModelSpread s = model_spread(r, v, (ModelMeasure)m);

            jsonw_key_open(j, model_measure_name((ModelMeasure)m), '{');
            jsonw_key_number(j, "mean", s.mean);
            jsonw_key_number(j, "low", s.mean - s.half);
            jsonw_key_number(j, "high", s.mean + s.half);
            jsonw_close(j, '}');
        }
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
}

void model_report_json(const ModelRun *r, Text *out)
{
    Json j = jsonw_to(out);

    jsonw_open(&j, '{');
    json_model(r->m, &j);
    if (r->axis.count)
        jsonw_key_string(&j, "vary", r->axis.name);
    if (r->text_count < 2) {
        json_text(r, r->text_count ? &r->texts[0] : NULL, &j);
    } else {
        jsonw_key_open(&j, "texts", '[');
        for (int i = 0; i < r->text_count; i++) {
            jsonw_open(&j, '{');
            jsonw_key_string(&j, "text", r->texts[i].name);
            json_text(r, &r->texts[i], &j);
            jsonw_close(&j, '}');
        }
        jsonw_close(&j, ']');
        json_means(r, &j);
    }
    jsonw_close(&j, '}');
    text_add(out, "\n");
}
