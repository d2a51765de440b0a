/* input_fixture.h -- files built in memory, for the tests of src/input.
 *
 * Every load goes through a copy of exactly the given size, so that the
 * sanitizers see a read past the end.
 */
#ifndef TESTS_INPUT_FIXTURE_H
#define TESTS_INPUT_FIXTURE_H

#include <unistd.h>

#include "check.h"
#include "input/store.h"

typedef struct Bytes {
    uint8_t data[16384];
    int64_t size;
} Bytes;

static inline void bytes_add(Bytes *b, const void *data, int64_t size)
{
    assert_true(b->size + size <= (int64_t)sizeof(b->data));
    memcpy(b->data + b->size, data, (size_t)size);
    b->size += size;
}

static inline void bytes_text(Bytes *b, const char *text)
{
    bytes_add(b, text, (int64_t)strlen(text));
}

/* Version 1 npy with the dict given as it stands. */
static inline Bytes npy_of_dict(const char *dict, const void *data, int64_t size)
{
    Bytes  b = { .size = 0 };
    size_t length = strlen(dict) + 1;

    bytes_add(&b, "\x93NUMPY\1\0", 8);
    bytes_add(&b, (uint8_t[]){ (uint8_t)(length & 255), (uint8_t)(length >> 8) }, 2);
    bytes_text(&b, dict);
    bytes_text(&b, "\n");
    bytes_add(&b, data, size);
    return b;
}

static inline Bytes npy_of(const char *descr, const char *order, const char *shape,
                           const void *data, int64_t size)
{
    char dict[256];

    snprintf(dict, sizeof(dict), "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr,
             order, shape);
    return npy_of_dict(dict, data, size);
}

static inline Bytes safetensors_of(const char *header, const void *data, int64_t size)
{
    Bytes    b = { .size = 0 };
    uint64_t length = strlen(header);

    bytes_add(&b, &length, 8);
    bytes_text(&b, header);
    bytes_add(&b, data, size);
    return b;
}

static inline Input *load_sized(const char *name, const void *data, int64_t size,
                                const InputChoice *choice, Error *err)
{
    uint8_t    *copy = malloc((size_t)size + (size == 0));
    InputChoice plain = { .max_bytes = 1 << 22 };
    Input      *in;

    assert_non_null(copy);
    memcpy(copy, data, (size_t)size);
    in = input_load_bytes(name, (Mapped){ .data = copy, .size = size }, choice ? choice : &plain,
                          err);
    free(copy);
    return in;
}

static inline Input *load(const char *name, const Bytes *b, const InputChoice *choice)
{
    Error  err = ERROR_INIT;
    Input *in = load_sized(name, b->data, b->size, choice, &err);

    if (!in)
        fail_msg("%s", err.text);
    return in;
}

/* Must fail with this code and with every one of the words in its text. */
static inline void refuse(const char *name, const Bytes *b, const InputChoice *choice,
                          ErrorCode code, const char *words)
{
    Error  err = ERROR_INIT;
    Input *in = load_sized(name, b->data, b->size, choice, &err);
    char   copy[256], *at, *word;

    assert_null(in);
    if (err.code != code)
        fail_msg("%s, expected %s: %s", error_name(err.code), error_name(code), err.text);
    snprintf(copy, sizeof(copy), "%s", words);
    for (word = strtok_r(copy, "|", &at); word; word = strtok_r(NULL, "|", &at))
        if (!strstr(err.text, word))
            fail_msg("\"%s\" is not in: %s", word, err.text);
}

/* Every shorter file is refused with a message. */
static inline void refuse_truncations(const char *name, const Bytes *b)
{
    for (int64_t size = 0; size < b->size; size++) {
        Error  err = ERROR_INIT;
        Input *in = load_sized(name, b->data, size, NULL, &err);

        if (in)
            fail_msg("%s cut to %lld bytes was read", name, (long long)size);
        assert_int_not_equal(err.code, ERR_NONE);
        assert_non_null(strstr(err.text, name));
    }
}

/* Any one byte changed: read or refused, but nothing worse. */
static inline void survive_changes(const char *name, const Bytes *b)
{
    static const uint8_t masks[] = { 0x01, 0x80, 0xff };

    for (int64_t at = 0; at < b->size; at++)
        for (size_t m = 0; m < sizeof(masks); m++) {
            Bytes  changed = *b;
            Error  err = ERROR_INIT;
            Input *in;

            changed.data[at] ^= masks[m];
            in = load_sized(name, changed.data, changed.size, NULL, &err);
            assert_true(in || err.code != ERR_NONE);
            input_free(in);
        }
}

static inline void check_floats(const Tensor *t, const float *want, int64_t count)
{
    assert_non_null(t->data);
    assert_int_equal(tensor_count(t), count);
    for (int64_t i = 0; i < count; i++)
        if (!(tensor_f32(t)[i] == want[i]))
            fail_msg("element %lld: %g, expected %g", (long long)i, (double)tensor_f32(t)[i],
                     (double)want[i]);
}

/* A new folder, and a path in it. */
static inline char *temporary_folder(char path[64])
{
    snprintf(path, 64, "/tmp/attnscope-input-XXXXXX");
    assert_non_null(mkdtemp(path));
    return path;
}

static inline void write_file(const char *folder, const char *name, const Bytes *b, char path[128])
{
    FILE *file;

    snprintf(path, 128, "%s/%s", folder, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(b->data, 1, (size_t)b->size, file), b->size);
    assert_int_equal(fclose(file), 0);
}

#endif
