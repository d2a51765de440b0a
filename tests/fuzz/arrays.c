/* arrays.c -- files of arrays, of tokens and of pixels.
 *
 * Any bytes end in an Input whose tensors can be read, or in a message, within the memory limit.
 * Compressed members may rightly be a thousand times their file, so the limit is given.
 */
#include <math.h>
#include <stdlib.h>

#include "draw/figure/figure.h"
#include "input/store.h"
#include "target.h"

#define LIMIT (1 << 24) /* bytes of a load */

/* The last number of a tensor is there. */
static void read_last(Tensor t)
{
    int64_t count = tensor_count(&t);

    if (t.data && count > 0) {
        volatile float last = ((const float *)t.data)[count - 1];

        (void)last;
    }
}

static void read_tensors(const Input *in)
{
    read_last(in->q);
    read_last(in->k);
    read_last(in->v);
    read_last(in->x);
    read_last(in->attn);
    read_last(in->pixels);
}

static void read_input(const Input *in)
{
    target_assert(in->layers >= 1, "an input without a layer");
    for (int64_t i = 0; in->q_tokens && i < in->n; i++)
        target_assert(in->q_tokens[i], "a token without a label");
}

static void load(const char *name, const uint8_t *data, size_t size, const InputChoice *choice)
{
    Error  err = ERROR_INIT;
    Mapped bytes = { .data = data, .size = (int64_t)size };
    Input *in = input_load_bytes(name, bytes, choice, &err);

    if (in && !choice->shapes) /* else tensors have sizes, but no numbers */
        read_tensors(in);
    if (in)
        read_input(in);
    else
        target_message(&err);
    input_free(in);
}

/* The file as it is, one layer of it, and the beginning of it. */
static void load_all(const char *name, const uint8_t *data, size_t size)
{
    load(name, data, size, &(InputChoice){ .layer = -1, .max_bytes = LIMIT });
    load(name, data, size, &(InputChoice){ .layer = 1, .n = 2, .max_bytes = LIMIT });
    load(name, data, size, &(InputChoice){ .layer = -1, .max_bytes = LIMIT, .shapes = true });
}

/* The file's listing, as `info` shows it. */
static void list(const char *path)
{
    InputListing listing = { .count = 0 };
    Error        err = ERROR_INIT;

    if (input_list(path, &listing, &err)) {
        for (int64_t i = 0; i < listing.count; i++)
            target_assert(listing.entries[i].rank >= 0 && listing.entries[i].rank <= 8,
                          "an array of no rank");
        input_listing_free(&listing);
    } else {
        target_message(&err);
    }
}

static void list_bytes(const uint8_t *data, size_t size)
{
    TargetFile file = target_file(data, size);

    list(file.path);
    target_file_close(&file);
}

/* As the value of a tensor parameter: -p E=@FILE. */
static void read_array(const uint8_t *data, size_t size)
{
    TargetFile file = target_file(data, size);
    Arena     *arena = arena_new();
    Error      err = ERROR_INIT;
    Tensor     t;

    arena_limit(arena, LIMIT);
    if (!input_read_array(file.path, NULL, arena, &t, &err))
        target_message(&err);
    arena_free(arena);
    target_file_close(&file);
}

void feed_npy(const uint8_t *data, size_t size)
{
    load_all("x.npy", data, size);
    list_bytes(data, size);
    read_array(data, size);
}

void feed_npz(const uint8_t *data, size_t size)
{
    load_all("x.npz", data, size);
    list_bytes(data, size);
    read_array(data, size);
}

void feed_safetensors(const uint8_t *data, size_t size)
{
    load_all("x.safetensors", data, size);
    list_bytes(data, size);
}

void feed_csv(const uint8_t *data, size_t size)
{
    load_all("x.csv", data, size);
    load("x.tsv", data, size, &(InputChoice){ .layer = -1, .max_bytes = LIMIT });
}

void feed_json(const uint8_t *data, size_t size)
{
    load_all("x.json", data, size);
}

void feed_tokens(const uint8_t *data, size_t size)
{
    load_all("x.txt", data, size);
    load("x.ids", data, size, &(InputChoice){ .layer = -1, .d = 8, .max_bytes = LIMIT });
}

void feed_image(const uint8_t *data, size_t size)
{
    load_all("x.pgm", data, size);
    list_bytes(data, size);
}

void feed_png(const uint8_t *data, size_t size)
{
    TargetFile file = target_file(data, size);
    Error      err = ERROR_INIT;

    load_all("x.png", data, size);
    list(file.path);
    free(figure_png_metadata(file.path, "attnscope:command", &err));
    target_file_close(&file);
}
