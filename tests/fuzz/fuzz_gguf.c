/* fuzz_gguf.c -- GGUF files: header, keys, tensors, and the model that they make.
 *
 * Any bytes must end in a model whose matrices can be read, or in a message of one line.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/config.h"
#include "model/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

static void check_line(const Error *err)
{
    if (err->code == ERR_NONE || !*err->text)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Error     err = ERROR_INIT;
    Text      notes = { 0 };
    Model     model = { .path = NULL };
    ModelFile file = { .gguf = gguf_open_bytes(data, (int64_t)size, &err) };
    Arena    *arena = arena_new();

    if (!file.gguf) {
        check_line(&err);
    } else {
        walk_texts(file.gguf);
        if (config_from_gguf(file.gguf, arena, &model.config, &notes, &err) &&
            model_load(&model, &file, arena, &err))
            read_model(&model);
        else
            check_line(&err);
    }
    text_free(&notes);
    arena_free(arena);
    gguf_close(file.gguf);
    return 0;
}
