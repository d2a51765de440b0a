/* gguf_fixture.h -- GGUF files written in memory, field by field, for the tests of src/model. */
#ifndef TESTS_GGUF_FIXTURE_H
#define TESTS_GGUF_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/file/gguf.h"

/* keys, infos and data grow apart; gguf_bytes puts them together. */
typedef struct Writer {
    uint8_t  keys[16384], infos[16384], data[65536];
    int64_t  keys_size, infos_size, data_size;
    uint64_t key_count, tensor_count;
    uint32_t version, alignment; /* 0: 3 and 32 */
} Writer;

typedef struct Bytes {
    uint8_t data[131072];
    int64_t size;
} Bytes;

static inline void put(uint8_t *to, int64_t *size, const void *bytes, int64_t count)
{
    if (count)
        memcpy(to + *size, bytes, (size_t)count);
    *size += count;
}

static inline void put_u32(uint8_t *to, int64_t *size, uint32_t value)
{
    put(to, size, &value, 4);
}

static inline void put_u64(uint8_t *to, int64_t *size, uint64_t value)
{
    put(to, size, &value, 8);
}

static inline void put_text(uint8_t *to, int64_t *size, const char *text)
{
    put_u64(to, size, strlen(text));
    put(to, size, text, (int64_t)strlen(text));
}

static inline void key_raw(Writer *w, const char *name, uint32_t type, const void *value,
                           int64_t bytes)
{
    put_text(w->keys, &w->keys_size, name);
    put_u32(w->keys, &w->keys_size, type);
    put(w->keys, &w->keys_size, value, bytes);
    w->key_count++;
}

static inline void key_u32(Writer *w, const char *name, uint32_t value)
{
    key_raw(w, name, GGUF_U32, &value, 4);
}

static inline void key_f32(Writer *w, const char *name, float value)
{
    key_raw(w, name, GGUF_F32, &value, 4);
}

static inline void key_bool(Writer *w, const char *name, uint8_t value)
{
    key_raw(w, name, GGUF_BOOL, &value, 1);
}

static inline void key_text(Writer *w, const char *name, const char *value)
{
    key_raw(w, name, GGUF_STRING, NULL, 0);
    put_text(w->keys, &w->keys_size, value);
}

static inline void key_array(Writer *w, const char *name, uint32_t element, uint64_t count,
                             const void *values, int64_t bytes)
{
    key_raw(w, name, GGUF_ARRAY, &element, 4);
    put_u64(w->keys, &w->keys_size, count);
    put(w->keys, &w->keys_size, values, bytes);
}

static inline void key_texts(Writer *w, const char *name, int count, const char *const *texts)
{
    key_array(w, name, GGUF_STRING, (uint64_t)count, NULL, 0);
    for (int i = 0; i < count; i++)
        put_text(w->keys, &w->keys_size, texts[i]);
}

static inline int64_t alignment_of(const Writer *w)
{
    return w->alignment ? w->alignment : 32;
}

/* dims[0] is the contiguous one. */
static inline void info(Writer *w, const char *name, uint32_t rank, const uint64_t *dims,
                        uint32_t type, uint64_t offset)
{
    put_text(w->infos, &w->infos_size, name);
    put_u32(w->infos, &w->infos_size, rank);
    for (uint32_t i = 0; i < rank; i++)
        put_u64(w->infos, &w->infos_size, dims[i]);
    put_u32(w->infos, &w->infos_size, type);
    put_u64(w->infos, &w->infos_size, offset);
    w->tensor_count++;
}

static inline void pad(uint8_t *to, int64_t *size, int64_t alignment)
{
    while (*size % alignment)
        to[(*size)++] = 0;
}

static inline void tensor_raw(Writer *w, const char *name, uint32_t rank, const uint64_t *dims,
                              uint32_t type, const void *data, int64_t bytes)
{
    pad(w->data, &w->data_size, alignment_of(w));
    info(w, name, rank, dims, type, (uint64_t)w->data_size);
    put(w->data, &w->data_size, data, bytes);
}

/* F32 [rows, cols], rows 0: a vector; values 1, 2, 3 ... over the count, so that none is equal. */
static inline void tensor_f32(Writer *w, const char *name, int rows, int cols)
{
    float    values[1024];
    int      count = (rows ? rows : 1) * cols;
    uint64_t dims[2] = { (uint64_t)cols, (uint64_t)rows };

    for (int i = 0; i < count; i++)
        values[i] = (float)(i + 1) / (float)count;
    tensor_raw(w, name, rows ? 2 : 1, dims, 0, values, 4 * count);
}

static inline void gguf_bytes(const Writer *w, Bytes *out)
{
    out->size = 0;
    put(out->data, &out->size, "GGUF", 4);
    put_u32(out->data, &out->size, w->version ? w->version : 3);
    put_u64(out->data, &out->size, w->tensor_count);
    put_u64(out->data, &out->size, w->key_count);
    put(out->data, &out->size, w->keys, w->keys_size);
    put(out->data, &out->size, w->infos, w->infos_size);
    pad(out->data, &out->size, alignment_of(w));
    put(out->data, &out->size, w->data, w->data_size);
}

/* Through a copy of exactly this size, so that the sanitizers see a read past the end. */
static inline Gguf *open_sized(const uint8_t *data, int64_t size, uint8_t **copy, Error *err)
{
    *copy = malloc((size_t)size + (size == 0));
    assert_non_null(*copy);
    memcpy(*copy, data, (size_t)size);
    return gguf_open_bytes(*copy, size, err);
}

/* Every one of the words, parted by |, stands in the text, which is one line. */
static inline void check_words(const Error *err, const char *words)
{
    char copy[512], *at, *word;

    assert_int_not_equal(err->code, ERR_NONE);
    assert_null(strchr(err->text, '\n'));
    snprintf(copy, sizeof(copy), "%s", words);
    for (word = strtok_r(copy, "|", &at); word; word = strtok_r(NULL, "|", &at))
        if (!strstr(err->text, word))
            fail_msg("\"%s\" is not in: %s", word, err->text);
}

static inline void refuse_bytes(const Bytes *b, const char *words)
{
    Error    err = ERROR_INIT;
    uint8_t *copy;
    Gguf    *g = open_sized(b->data, b->size, &copy, &err);

    if (g)
        fail_msg("was read, but \"%s\" was expected", words);
    check_words(&err, words);
    free(copy);
}

static inline void refuse_writer(const Writer *w, const char *words)
{
    static Bytes b;

    gguf_bytes(w, &b);
    refuse_bytes(&b, words);
}

/* A path of a file in memory; close *file after it was opened. */
static inline const char *memory_file(const void *data, int64_t size, int *file, char path[64])
{
    *file = memfd_create("model", 0);
    assert_true(*file >= 0);
    assert_int_equal(write(*file, data, (size_t)size), size);
    snprintf(path, 64, "/proc/self/fd/%d", *file);
    return path;
}

/* ---- a whole model ----------------------------------------------------------- */

/* Llama of one layer: D 8, H 2, K 1, d 4, F 8, V 6. */
typedef struct Tiny {
    const char *arch;
    uint32_t    layers, width, heads, kv_heads, inner, context;
    float       eps, base;
    const char *without; /* no such tensor or key */
    const char *wrong;   /* a tensor with one row, or value, too many */
} Tiny;

#define TINY { .arch = "llama", .layers = 1, .width = 8, .heads = 2, .kv_heads = 1, .inner = 8,    \
               .context = 16, .eps = 1e-5f, .base = 10000 }

static inline bool tiny_has(const Tiny *t, const char *name)
{
    return !t->without || strcmp(t->without, name) != 0;
}

static inline void tiny_u32(Writer *w, const Tiny *t, const char *rest, uint32_t value)
{
    char name[128];

    snprintf(name, sizeof(name), "%s.%s", t->arch, rest);
    if (tiny_has(t, name))
        key_u32(w, name, value);
}

static inline void tiny_f32(Writer *w, const Tiny *t, const char *rest, float value)
{
    char name[128];

    snprintf(name, sizeof(name), "%s.%s", t->arch, rest);
    if (tiny_has(t, name))
        key_f32(w, name, value);
}

static inline void tiny_tensor(Writer *w, const Tiny *t, const char *name, int rows, int cols)
{
    bool wrong = t->wrong && strcmp(t->wrong, name) == 0;

    if (tiny_has(t, name))
        tensor_f32(w, name, rows + (wrong && rows), cols + (wrong && !rows));
}

static inline void tiny_keys(Writer *w, const Tiny *t)
{
    if (tiny_has(t, "general.architecture"))
        key_text(w, "general.architecture", t->arch);
    tiny_u32(w, t, "block_count", t->layers);
    tiny_u32(w, t, "embedding_length", t->width);
    tiny_u32(w, t, "feed_forward_length", t->inner);
    tiny_u32(w, t, "context_length", t->context);
    tiny_u32(w, t, "attention.head_count", t->heads);
    tiny_u32(w, t, "attention.head_count_kv", t->kv_heads);
    tiny_f32(w, t, "attention.layer_norm_rms_epsilon", t->eps);
    tiny_f32(w, t, "rope.freq_base", t->base);
}

/* Tensors of D 8, H 2, K 1, d 4, F 8 whatever the keys say. */
static inline void tiny_tensors(Writer *w, const Tiny *t)
{
    tiny_tensor(w, t, "token_embd.weight", 6, 8);
    tiny_tensor(w, t, "blk.0.attn_norm.weight", 0, 8);
    tiny_tensor(w, t, "blk.0.attn_q.weight", 8, 8);
    tiny_tensor(w, t, "blk.0.attn_k.weight", 4, 8);
    tiny_tensor(w, t, "blk.0.attn_v.weight", 4, 8);
    tiny_tensor(w, t, "blk.0.attn_output.weight", 8, 8);
    tiny_tensor(w, t, "blk.0.ffn_norm.weight", 0, 8);
    tiny_tensor(w, t, "blk.0.ffn_gate.weight", 8, 8);
    tiny_tensor(w, t, "blk.0.ffn_up.weight", 8, 8);
    tiny_tensor(w, t, "blk.0.ffn_down.weight", 8, 8);
    tiny_tensor(w, t, "output_norm.weight", 0, 8);
}

static inline Writer tiny_writer(const Tiny *t)
{
    Writer w = { 0 };

    tiny_keys(&w, t);
    tiny_tensors(&w, t);
    return w;
}

#endif
