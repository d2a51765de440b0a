/* model_write.c -- a model writes on, as it is and with the swap, in two panes; see model.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"
#include "model/generate.h"
#include "ui/screen/model.h"

#define WRITE_TOKENS 96

/* ---- the work ------------------------------------------------------------------- */

/* What is being written, for the worker alone. */
typedef struct Writing {
    Modelling *m;
    Written   *to;
} Writing;

static bool take_token(void *context, int64_t at, int32_t id, double p)
{
    const Writing   *w = context;
    const Tokenizer *t = w->m->model->tokenizer;
    int              used = atomic_load(&w->to->bytes);
    Text             bytes = { 0 };
    bool             fits;

    (void)p;
    if (t)
        tokenizer_add_bytes(t, id, &bytes);
    else
        text_addf(&bytes, " %d", id);
    fits = text_ok(&bytes) && (size_t)used + bytes.length < sizeof(w->to->text);
    if (fits) {
        memcpy(w->to->text + used, text_str(&bytes), bytes.length);
        atomic_store(&w->to->bytes, used + (int)bytes.length);
        atomic_store(&w->to->tokens, (int)at + 1);
    }
    text_free(&bytes);
    return fits;
}

bool model_write_work(void *context, const atomic_bool *cancel, Error *err)
{
    Modelling      *m = context;
    Swap            swap = { .mechanism = m->write_swap, .layers = m->write_layers };
    const Swap     *swapped = m->write_mixture ? m->write_mixture->parts : &swap;
    bool            ok = true;

    for (int v = 0; ok && v < (*m->write_swap ? 2 : 1) && !atomic_load(cancel); v++) {
        Writing         writing = { m, &m->written[v] };
        GenerateOptions options = { .count = WRITE_TOKENS, .cancel = cancel,
                                    .swap = v ? swapped : NULL, .on_token = take_token,
                                    .context = &writing };
        GenerateResult  result = { 0 };

        ok = generate_run(m->model, m->reading.tokens.ids, m->reading.tokens.count, &options,
                          &result, err);
        if (ok && result.seconds > 0)
            m->written[v].rate = (double)result.count / result.seconds;
        atomic_store(&m->written[v].done, ok);
        generate_result_free(&result);
    }
    return ok;
}

bool model_write_take(Modelling *m)
{
    int64_t layers = m->model->config.layers;
    bool    some = m->swapped.measure != NULL;

    for (int v = 0; v < 2; v++) {
        atomic_store(&m->written[v].bytes, 0);
        atomic_store(&m->written[v].tokens, 0);
        atomic_store(&m->written[v].done, false);
    }
    free(m->write_layers);
    m->write_layers = NULL;
    m->write_mixture = some ? m->shown_mixture : NULL;
    snprintf(m->write_swap, sizeof(m->write_swap), "%s", some ? m->shown : "");
    if (!some || !m->shown_layers.on)
        return true;
    m->write_layers = malloc((size_t)layers);
    if (m->write_layers)
        memcpy(m->write_layers, m->shown_layers.on, (size_t)layers);
    return m->write_layers != NULL;
}

/* ---- the panes -------------------------------------------------------------------- */

/* Valid letters without control characters; a letter that is not whole yet is left out. */
static void clean_text(const Written *w, Text *out)
{
    int         count = atomic_load(&w->bytes);
    Text        copy = { 0 };
    const char *at;

    text_add_bytes(&copy, w->text, (size_t)count);
    for (at = text_str(&copy); *at;) {
        const char *start = at;
        uint32_t    code = utf8_next(&at);
        char        letter[4];

        if (code == 0xFFFD && strlen(start) < 4)
            break;
        if (utf8_is_control(code) && code != '\n')
            code = ' ';
        text_add_bytes(out, letter, (size_t)utf8_encode(code, letter));
    }
    text_free(&copy);
}

static void draw_one(Ui *ui, Area area, const Written *w, const char *name, bool first)
{
    Area inside = { area.y + 1, area.x + 1, area.h - 2, area.w - 2 };
    Text text = { 0 };
    char title[320];
    int  tokens = atomic_load(&w->tokens);

    if (atomic_load(&w->done))
        snprintf(title, sizeof(title), "%.200s: %d tokens, %.1f a second", name, tokens, w->rate);
    else
        snprintf(title, sizeof(title), "%.200s: token %d of %d", name, tokens, WRITE_TOKENS);
    ui_frame(ui, area, title, first);
    clean_text(w, &text);
    term_paragraph(ui->term, inside, text_str(&text), ui_style(ui, ROLE_TEXT));
    text_free(&text);
}

void model_draw_written(Ui *ui, Area area)
{
    const Modelling *m = ui->modelling;
    bool             both = *m->write_swap;
    Area             left = area, right = area;

    left.w = both ? area.w / 2 : area.w;
    right.x += left.w;
    right.w -= left.w;
    draw_one(ui, left, &m->written[0], "exact", true);
    if (both)
        draw_one(ui, right, &m->written[1], m->write_swap, false);
}
