/* models.c -- files of transformers: GGUF, tokenizers, config.json.
 *
 * Any bytes end in a model whose matrices can be read, in a tokenizer that encodes texts to ids of
 * its own, in sizes within their limits, or in a message of one line.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/config.h"
#include "model/file/gguf.h"
#include "model/load.h"
#include "model/token/parts.h"
#include "target.h"

/* ---- GGUF ------------------------------------------------------------------------ */

static void read_last_row(const Weight *w)
{
    float *row;

    if (w->type == WEIGHT_NONE)
        return;
    row = malloc((size_t)w->cols * sizeof(*row));
    if (row)
        weight_read(w, w->rows - 1, 1, row);
    free(row);
}

static void read_model(const Model *m)
{
    read_last_row(&m->embedding);
    read_last_row(&m->positions);
    read_last_row(&m->head);
    for (int64_t i = 0; i < m->config.layers; i++) {
        const ModelLayer *l = &m->layer[i];
        const Weight     *all[] = { &l->q, &l->k, &l->v, &l->output, &l->gate, &l->up, &l->down };

        for (size_t w = 0; w < sizeof(all) / sizeof(*all); w++)
            read_last_row(all[w]);
    }
}

static void walk_texts(const Gguf *g)
{
    int64_t        count;
    const GgufKey *key = gguf_keys(g, &count);

    for (; count > 0; key++, count--) {
        const uint8_t *cursor = NULL;
        GgufString     text;

        while (gguf_next_string(key, &cursor, &text))
            if (text.length && memchr(text.text, 0xff, (size_t)text.length) == text.text)
                break;
    }
}

void feed_gguf(const uint8_t *data, size_t size)
{
    Error     err = ERROR_INIT;
    Text      notes = { 0 };
    Model     model = { .path = NULL };
    ModelFile file = { .gguf = gguf_open_bytes(data, (int64_t)size, &err) };
    Arena    *arena = arena_new();

    if (!file.gguf) {
        target_message(&err);
    } else {
        walk_texts(file.gguf);
        if (config_from_gguf(file.gguf, arena, &model.config, &notes, &err) &&
            model_load(&model, &file, arena, &err))
            read_model(&model);
        else
            target_message(&err);
    }
    text_free(&notes);
    arena_free(arena);
    gguf_close(file.gguf);
}

/* ---- tokenizers --------------------------------------------------------------------- */

static const char sample[] =
    " Caf\xC3\xA9 a\xCC\x81 don't SAY 12345\r\n\n \t\xE6\x97\xA5\xE6\x9C\xAC \xE1\xA0\x8E<s></s>"
    "\xF0\x9F\x98\x80\xE2\x96\x81 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\0 [MASK] \xC4\xB0";

static void use(Tokenizer *t, const uint8_t *data, size_t size)
{
    const char *texts[] = { sample, (const char *)data };
    int64_t     lengths[] = { sizeof(sample) - 1, size < 2000 ? (int64_t)size : 2000 };

    for (int i = 0; i < 4; i++) {
        Error     err = ERROR_INIT;
        TokenList list;
        char      bytes[16];

        if (!tokenizer_encode(t, texts[i / 2], lengths[i / 2], i % 2, &list, &err)) {
            target_message(&err);
            continue;
        }
        for (int64_t k = 0; k < list.count; k++) {
            target_assert(list.ids[k] >= 0 && list.ids[k] < tokenizer_size(t), "an id of no token");
            tokenizer_bytes(t, list.ids[k], bytes, sizeof(bytes));
        }
        token_list_free(&list);
    }
    tokenizer_free(t);
}

void feed_tokenizer(const uint8_t *data, size_t size)
{
    Error      err = ERROR_INIT;
    bool       binary = size >= 4 && memcmp(data, "GGUF", 4) == 0;
    Gguf      *g = binary ? gguf_open_bytes(data, (int64_t)size, &err) : NULL;
    Tokenizer *t = g         ? tokenizer_from_gguf(g, &err)
                   : !binary ? tokenizer_from_json((const char *)data, size, &err)
                             : NULL;

    if (t)
        use(t, data, size);
    else
        target_message(&err);
    gguf_close(g);
}

/* ---- config.json --------------------------------------------------------------------- */

static bool is_sound(const ModelConfig *c)
{
    if (c->layers < 1 || c->layers > 1024 || c->kv_heads < 1 || c->heads % c->kv_heads ||
        c->heads > 1024 || c->head_dim < 2 || c->head_dim % 2 || c->rotary > c->head_dim ||
        c->rotary % 2 || c->groups < 1 || c->groups > c->layers || c->window < 0)
        return false;
    for (int64_t t = 0; t < c->rotary / 2; t++)
        if (!(c->inverse[t] >= 0 && isfinite(c->inverse[t])))
            return false;
    return c->width > 0 && c->inner > 0 && c->eps > 0 && isfinite(c->rotary_scale);
}

void feed_config(const uint8_t *data, size_t size)
{
    Error        err = ERROR_INIT;
    Text         notes = { 0 };
    Arena       *arena = arena_new();
    json_error_t why;
    json_t      *root = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, &why);
    ModelConfig  config;

    if (json_is_object(root)) {
        if (config_from_json(root, root, arena, &config, &notes, &err))
            target_assert(is_sound(&config), "sizes beyond their limits");
        else
            target_message(&err);
    }
    json_decref(root);
    text_free(&notes);
    arena_free(arena);
}
