/* test_input_npz.c -- npz archives: numpy's own, ours, and broken ones. */
#include <sys/wait.h>

#include "core/shortage.h"
#include "input_fixture.h"

/* numpy 2.4: savez_compressed(q=f4 [3,2], k=f2 [3,2], v=big-endian f8 in
 * Fortran order [3,2], tokens=['a', U+0436, newline]). */
static const uint8_t numpy_made[] = {
    0x50, 0x4b, 0x03, 0x04, 0x2d, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x21, 0x00, 0xff, 0xbf,
    0x42, 0x35, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x05, 0x00, 0x14, 0x00, 0x71, 0x2e,
    0x6e, 0x70, 0x79, 0x01, 0x00, 0x10, 0x00, 0x98, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x58,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x9b, 0xec, 0x17, 0xea, 0x1b, 0x10, 0xc9, 0xc8, 0x50,
    0xc6, 0x50, 0xad, 0x9e, 0x92, 0x5a, 0x9c, 0x5c, 0xa4, 0x6e, 0xa5, 0xa0, 0x6e, 0x93, 0x66, 0xa2,
    0xae, 0xa3, 0xa0, 0x9e, 0x96, 0x5f, 0x54, 0x52, 0x94, 0x98, 0x17, 0x9f, 0x5f, 0x94, 0x92, 0x0a,
    0x12, 0x77, 0x4b, 0xcc, 0x29, 0x4e, 0x05, 0x8a, 0x17, 0x67, 0x24, 0x16, 0xa4, 0x02, 0xf9, 0x1a,
    0xc6, 0x3a, 0x0a, 0x46, 0x9a, 0x3a, 0x0a, 0xb5, 0x0a, 0x64, 0x03, 0x2e, 0x06, 0x86, 0x06, 0x7b,
    0x06, 0x06, 0x06, 0x07, 0x20, 0x02, 0xe2, 0x06, 0x20, 0x5e, 0x00, 0xc4, 0x07, 0x1c, 0x00, 0x50,
    0x4b, 0x03, 0x04, 0x2d, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x21, 0x00, 0xbf, 0xcc, 0x2b,
    0xde, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x05, 0x00, 0x14, 0x00, 0x6b, 0x2e, 0x6e,
    0x70, 0x79, 0x01, 0x00, 0x10, 0x00, 0x8c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x52, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x9b, 0xec, 0x17, 0xea, 0x1b, 0x10, 0xc9, 0xc8, 0x50, 0xc6,
    0x50, 0xad, 0x9e, 0x92, 0x5a, 0x9c, 0x5c, 0xa4, 0x6e, 0xa5, 0xa0, 0x6e, 0x93, 0x66, 0xa4, 0xae,
    0xa3, 0xa0, 0x9e, 0x96, 0x5f, 0x54, 0x52, 0x94, 0x98, 0x17, 0x9f, 0x5f, 0x94, 0x92, 0x0a, 0x12,
    0x77, 0x4b, 0xcc, 0x29, 0x4e, 0x05, 0x8a, 0x17, 0x67, 0x24, 0x16, 0xa4, 0x02, 0xf9, 0x1a, 0xc6,
    0x3a, 0x0a, 0x46, 0x9a, 0x3a, 0x0a, 0xb5, 0x0a, 0x64, 0x03, 0x2e, 0x06, 0x1b, 0x06, 0x07, 0x06,
    0x27, 0x06, 0x17, 0x06, 0x57, 0x06, 0x37, 0x00, 0x50, 0x4b, 0x03, 0x04, 0x2d, 0x00, 0x00, 0x00,
    0x08, 0x00, 0x00, 0x00, 0x21, 0x00, 0x01, 0xa8, 0x51, 0x53, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0x05, 0x00, 0x14, 0x00, 0x76, 0x2e, 0x6e, 0x70, 0x79, 0x01, 0x00, 0x10, 0x00, 0xb0,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x58, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x9b,
    0xec, 0x17, 0xea, 0x1b, 0x10, 0xc9, 0xc8, 0x50, 0xc6, 0x50, 0xad, 0x9e, 0x92, 0x5a, 0x9c, 0x5c,
    0xa4, 0x6e, 0xa5, 0xa0, 0x6e, 0x97, 0x66, 0xa1, 0xae, 0xa3, 0xa0, 0x9e, 0x96, 0x5f, 0x54, 0x52,
    0x94, 0x98, 0x17, 0x9f, 0x5f, 0x94, 0x92, 0x0a, 0x12, 0x0f, 0x29, 0x2a, 0x4d, 0x05, 0x0a, 0x17,
    0x67, 0x24, 0x16, 0xa4, 0x02, 0xb9, 0x1a, 0xc6, 0x3a, 0x0a, 0x46, 0x9a, 0x3a, 0x0a, 0xb5, 0x0a,
    0xe4, 0x03, 0x2e, 0xfb, 0x0f, 0x0c, 0x60, 0xe0, 0xc0, 0x01, 0xa5, 0x45, 0xa0, 0x34, 0x03, 0x94,
    0x16, 0x80, 0xd2, 0x12, 0x10, 0x1a, 0x00, 0x50, 0x4b, 0x03, 0x04, 0x2d, 0x00, 0x00, 0x00, 0x08,
    0x00, 0x00, 0x00, 0x21, 0x00, 0xd8, 0xec, 0x4c, 0x34, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0x0a, 0x00, 0x14, 0x00, 0x74, 0x6f, 0x6b, 0x65, 0x6e, 0x73, 0x2e, 0x6e, 0x70, 0x79, 0x01,
    0x00, 0x10, 0x00, 0x8c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x4f, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x9b, 0xec, 0x17, 0xea, 0x1b, 0x10, 0xc9, 0xc8, 0x50, 0xc6, 0x50, 0xad, 0x9e,
    0x92, 0x5a, 0x9c, 0x5c, 0xa4, 0x6e, 0xa5, 0xa0, 0x6e, 0x13, 0x6a, 0xa8, 0xae, 0xa3, 0xa0, 0x9e,
    0x96, 0x5f, 0x54, 0x52, 0x94, 0x98, 0x17, 0x9f, 0x5f, 0x94, 0x92, 0x0a, 0x12, 0x77, 0x4b, 0xcc,
    0x29, 0x4e, 0x05, 0x8a, 0x17, 0x67, 0x24, 0x16, 0xa4, 0x02, 0xf9, 0x1a, 0xc6, 0x3a, 0x9a, 0x3a,
    0x0a, 0xb5, 0x0a, 0x14, 0x00, 0xae, 0x44, 0x06, 0x06, 0x06, 0x33, 0x16, 0x06, 0x06, 0x2e, 0x20,
    0x0d, 0x00, 0x50, 0x4b, 0x01, 0x02, 0x2d, 0x03, 0x2d, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00,
    0x21, 0x00, 0xff, 0xbf, 0x42, 0x35, 0x58, 0x00, 0x00, 0x00, 0x98, 0x00, 0x00, 0x00, 0x05, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x01, 0x00, 0x00, 0x00, 0x00,
    0x71, 0x2e, 0x6e, 0x70, 0x79, 0x50, 0x4b, 0x01, 0x02, 0x2d, 0x03, 0x2d, 0x00, 0x00, 0x00, 0x08,
    0x00, 0x00, 0x00, 0x21, 0x00, 0xbf, 0xcc, 0x2b, 0xde, 0x52, 0x00, 0x00, 0x00, 0x8c, 0x00, 0x00,
    0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x01, 0x8f,
    0x00, 0x00, 0x00, 0x6b, 0x2e, 0x6e, 0x70, 0x79, 0x50, 0x4b, 0x01, 0x02, 0x2d, 0x03, 0x2d, 0x00,
    0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x21, 0x00, 0x01, 0xa8, 0x51, 0x53, 0x58, 0x00, 0x00, 0x00,
    0xb0, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x80, 0x01, 0x18, 0x01, 0x00, 0x00, 0x76, 0x2e, 0x6e, 0x70, 0x79, 0x50, 0x4b, 0x01, 0x02, 0x2d,
    0x03, 0x2d, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x21, 0x00, 0xd8, 0xec, 0x4c, 0x34, 0x4f,
    0x00, 0x00, 0x00, 0x8c, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x80, 0x01, 0xa7, 0x01, 0x00, 0x00, 0x74, 0x6f, 0x6b, 0x65, 0x6e, 0x73, 0x2e,
    0x6e, 0x70, 0x79, 0x50, 0x4b, 0x05, 0x06, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x04, 0x00, 0xd1,
    0x00, 0x00, 0x00, 0x32, 0x02, 0x00, 0x00, 0x00, 0x00,
};

static const float six[] = { 1, 2, 3, 4, 5, 6 };

static Bytes from_numpy(void)
{
    Bytes b = { .size = 0 };

    bytes_add(&b, numpy_made, sizeof(numpy_made));
    return b;
}

TEST(numpys_own_archive_is_read)
{
    Bytes  b = from_numpy();
    Input *in = load("t.npz", &b, NULL);

    check_floats(&in->q, six, 6);
    check_floats(&in->k, six, 6);
    check_floats(&in->v, six, 6);
    assert_int_equal(in->n, 3);
    assert_int_equal(in->d, 2);
    assert_string_equal(in->q_tokens[0], "a");
    assert_string_equal(in->q_tokens[1], "\xd0\xb6");
    assert_string_equal(in->q_tokens[2], "\xe2\x90\x8a"); /* the picture of a newline */
    assert_string_equal(in->kind, "npz");
    input_free(in);
}

TEST(broken_archives_are_refused)
{
    Bytes b = from_numpy();

    refuse_truncations("t.npz", &b);
    survive_changes("t.npz", &b);
}

/* An archive of ours, as bytes. */
static Bytes archive(const NamedTensor *items, int64_t count)
{
    char   folder[64], path[128];
    Bytes  b = { .size = 0 };
    Error  err = ERROR_INIT;
    FILE  *file;

    temporary_folder(folder);
    snprintf(path, sizeof(path), "%s/t.npz", folder);
    if (!input_write_npz(path, items, count, &err))
        fail_msg("%s", err.text);
    file = fopen(path, "rb");
    assert_non_null(file);
    b.size = (int64_t)fread(b.data, 1, sizeof(b.data), file);
    fclose(file);
    unlink(path);
    rmdir(folder);
    return b;
}

static NamedTensor named(const char *name, int rank, const int64_t *shape, float *data)
{
    return (NamedTensor){ name, tensor_of(DT_F32, rank, shape, data) };
}

static float numbers[512];

/* Arrays of other names, given in brackets after the path. */
TEST(arrays_are_named_behind_the_path)
{
    NamedTensor items[] = { named("query", 2, (int64_t[]){ 3, 2 }, numbers + 1),
                            named("q", 2, (int64_t[]){ 5, 7 }, numbers),
                            named("k", 2, (int64_t[]){ 3, 2 }, numbers),
                            named("v", 2, (int64_t[]){ 3, 2 }, numbers) };
    char        folder[64], path[128], spec[160];
    Error       err = ERROR_INIT;
    Input      *in;

    temporary_folder(folder);
    snprintf(path, sizeof(path), "%s/t.npz", folder);
    assert_true(input_write_npz(path, items, 4, &err));
    snprintf(spec, sizeof(spec), "%s[q=query]", path);
    in = input_load(spec, NULL, &err);
    assert_non_null(in);
    assert_string_equal(in->name, spec);
    assert_int_equal(in->n, 3);
    assert_memory_equal(in->q.data, numbers + 1, 6 * sizeof(float));
    input_free(in);
    snprintf(spec, sizeof(spec), "%s[q=k,k=query,v=k]", path); /* each by its name in the file */
    in = input_load(spec, NULL, &err);
    assert_non_null(in);
    assert_memory_equal(in->q.data, numbers, 6 * sizeof(float));
    assert_memory_equal(in->k.data, numbers + 1, 6 * sizeof(float));
    assert_memory_equal(in->v.data, numbers, 6 * sizeof(float));
    input_free(in);
    assert_null(input_load(path, NULL, &err)); /* its own q is of another size */
    for (const char *const *wrong = (const char *const[]){ "[q=quary]", "[q=]", "[=query]", "[w=q]",
                                                           "[]", "[q=query,]", "[q=k,q=v]", NULL };
         *wrong; wrong++) {
        snprintf(spec, sizeof(spec), "%s%s", path, *wrong);
        err = ERROR_INIT;
        assert_null(input_load(spec, NULL, &err));
        assert_int_equal(err.code, strstr(*wrong, "quary") ? ERR_DATA : ERR_USAGE);
    }
    unlink(path);
    rmdir(folder);
}

TEST(a_name_that_stands_twice_is_refused)
{
    Bytes b = from_numpy();

    for (int64_t i = 0; i + 5 <= b.size; i++)
        if (!memcmp(b.data + i, "k.npy", 5))
            b.data[i] = 'q';
    refuse("t.npz", &b, NULL, ERR_FORMAT, "q.npy|twice");
}

TEST(what_is_written_is_read_back)
{
    uint8_t     causal = 1;
    double      scale = 0.1;
    NamedTensor items[] = {
        named("q", 3, (int64_t[]){ 4, 3, 2 }, numbers),
        named("k", 3, (int64_t[]){ 2, 5, 2 }, numbers + 24),
        named("v", 3, (int64_t[]){ 2, 5, 3 }, numbers + 44),
        { "causal", tensor_of(DT_U8, 0, NULL, &causal) },
        { "scale", tensor_of(DT_F64, 0, NULL, &scale) },
    };
    Bytes       b = archive(items, 5), again = archive(items, 5);
    Input      *in = load("t.npz", &b, NULL);
    InputChoice choice = { .n = 2 };

    assert_int_equal(b.size, again.size);
    assert_memory_equal(b.data, again.data, (size_t)b.size); /* no time stamps */
    check_floats(&in->q, numbers, 24);
    check_floats(&in->k, numbers + 24, 20);
    check_floats(&in->v, numbers + 44, 30);
    assert_int_equal(in->heads, 4);
    assert_int_equal(in->n, 3);
    assert_int_equal(in->m, 5);
    assert_int_equal(in->e, 3);
    assert_int_equal(in->causal, 1);
    assert_true(in->scale == 0.1);
    input_free(in);

    in = load("t.npz", &b, &choice);
    assert_int_equal(in->n, 2);
    assert_int_equal(in->m, 2);
    assert_true(tensor_f32(&in->q)[4] == numbers[6]); /* head 1, position 0 */
    assert_true(tensor_f32(&in->v)[6] == numbers[44 + 15]);
    input_free(in);
    choice.n = 4;
    refuse("t.npz", &b, &choice, ERR_DATA, "3 positions|first 4");
    choice = (InputChoice){ .max_bytes = 2000 };
    in = load("t.npz", &b, &choice);
    input_free(in);
    choice.max_bytes = 1000;
    refuse("t.npz", &b, &choice, ERR_NOMEM, "limit is 1000 B");
}

static void refuse_shapes(NamedTensor *items, int64_t count, const char *words)
{
    Bytes b = archive(items, count);

    refuse("t.npz", &b, NULL, ERR_DATA, words);
}

TEST(shapes_must_agree)
{
    int64_t     one[] = { 4, 3, 2 };
    NamedTensor items[3] = { named("q", 3, one, numbers), named("k", 3, one, numbers),
                             named("v", 3, one, numbers) };

    items[1].tensor = tensor_of(DT_F32, 3, (int64_t[]){ 4, 3, 5 }, numbers);
    refuse_shapes(items, 3, "q has shape (4,3,2)|k has (4,3,5)|head sizes");
    items[1].tensor = tensor_of(DT_F32, 3, (int64_t[]){ 4, 2, 2 }, numbers);
    refuse_shapes(items, 3, "k has shape (4,2,2)|v has (4,3,2)|numbers of keys");
    items[1].tensor = tensor_of(DT_F32, 3, (int64_t[]){ 3, 3, 2 }, numbers);
    items[2].tensor = tensor_of(DT_F32, 3, (int64_t[]){ 3, 3, 2 }, numbers);
    refuse_shapes(items, 3, "4 query heads|3 key heads");
    items[0].tensor = tensor_of(DT_F32, 4, (int64_t[]){ 2, 2, 3, 2 }, numbers);
    refuse_shapes(items, 1, "q has shape (2,2,3,2)|batch of 2");
    items[0].tensor = tensor_of(DT_F32, 1, (int64_t[]){ 4 }, numbers);
    refuse_shapes(items, 1, "q has shape (4)|(h,n,d)");
    items[0].tensor = tensor_of(DT_F32, 2, (int64_t[]){ 0, 4 }, numbers);
    refuse_shapes(items, 1, "(0,4)|empty");
    items[0] = named("weights", 2, (int64_t[]){ 3, 4 }, numbers);
    items[1] = named("other", 2, (int64_t[]){ 3, 4 }, numbers);
    refuse_shapes(items, 2, "2 arrays|weights, other");
}

/* Lambda layers: a key holds several channels for each channel of a query. */
TEST(keys_may_hold_depths)
{
    NamedTensor items[] = {
        named("q", 3, (int64_t[]){ 4, 3, 2 }, numbers),
        named("k", 3, (int64_t[]){ 2, 5, 6 }, numbers + 24),
        named("v", 3, (int64_t[]){ 2, 5, 3 }, numbers + 84),
    };
    Bytes       b = archive(items, 3);
    Input      *in = load("t.npz", &b, NULL);

    assert_int_equal(in->d, 2);
    assert_int_equal(in->k.shape[2], 6);
    check_floats(&in->k, numbers + 24, 60);
    input_free(in);
}

TEST(layers_of_x_and_v_alone_are_inputs)
{
    NamedTensor x = named("x", 3, (int64_t[]){ 1, 3, 4 }, numbers);
    NamedTensor v = named("v", 3, (int64_t[]){ 2, 5, 3 }, numbers);
    Bytes       b = archive(&x, 1);
    Input      *in = load("t.npz", &b, NULL);

    assert_int_equal(in->x.rank, 2);
    check_floats(&in->x, numbers, 12);
    assert_int_equal(in->n, 3);
    assert_int_equal(in->m, 3);
    assert_null(in->q.data);
    input_free(in);
    b = archive(&v, 1);
    in = load("t.npz", &b, NULL);
    assert_int_equal(in->heads, 2);
    assert_int_equal(in->n, 5);
    assert_int_equal(in->d, 3);
    input_free(in);
}

TEST(segments_are_one_number_a_position)
{
    int64_t     ids[] = { 7, 7, INT64_MIN };
    NamedTensor items[] = { named("x", 2, (int64_t[]){ 3, 4 }, numbers),
                            { "segments", tensor_of(DT_I64, 1, (int64_t[]){ 3 }, ids) } };
    Bytes       b = archive(items, 2);
    InputChoice two = { .n = 2, .max_bytes = 1 << 22 };
    Input      *in = load("t.npz", &b, NULL);

    assert_int_equal(in->segments.shape[0], 3);
    assert_memory_equal(in->segments.data, ids, sizeof(ids));
    input_free(in);
    in = load("t.npz", &b, &two);
    assert_int_equal(in->segments.shape[0], 2);
    input_free(in);
    items[1].tensor = tensor_of(DT_I64, 1, (int64_t[]){ 2 }, ids);
    b = archive(items, 2);
    refuse("t.npz", &b, NULL, ERR_DATA, "segments has shape (2)|expected (3,)");
    items[1] = named("segments", 1, (int64_t[]){ 3 }, numbers);
    b = archive(items, 2);
    refuse("t.npz", &b, NULL, ERR_DATA, "segments has dtype <f4|whole numbers");
}

/* ---- hand-made archives --------------------------------------------------- */

static uint32_t crc32_of(const uint8_t *data, int64_t size)
{
    uint32_t crc = 0xffffffffu;

    for (int64_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void add_number(Bytes *b, uint64_t value, int size)
{
    for (int i = 0; i < size; i++, value >>= 8)
        bytes_add(b, &(uint8_t){ (uint8_t)value }, 1);
}

/* One member, written with `method` and the size `declared`. */
static Bytes zip_of(const char *name, int method, const Bytes *packed, uint32_t declared,
                    uint32_t crc)
{
    Bytes   b = { .size = 0 };
    int64_t directory;

    for (int central = 0; central < 2; central++) {
        directory = b.size;
        bytes_text(&b, central ? "PK\1\2" : "PK\3\4");
        if (central)
            add_number(&b, 20, 2);
        add_number(&b, 20, 2);
        add_number(&b, 0, 2);
        add_number(&b, (uint64_t)method, 2);
        add_number(&b, 0x210000, 4);
        add_number(&b, crc, 4);
        add_number(&b, (uint64_t)packed->size, 4);
        add_number(&b, declared, 4);
        add_number(&b, strlen(name), 2);
        add_number(&b, 0, central ? 16 : 2);
        bytes_text(&b, name);
        if (!central)
            bytes_add(&b, packed->data, packed->size);
    }
    add_number(&b, 0x06054b50, 4);
    add_number(&b, 0, 4);
    add_number(&b, 1, 2);
    add_number(&b, 1, 2);
    add_number(&b, (uint64_t)(b.size - 12 - directory), 4);
    add_number(&b, (uint64_t)directory, 4);
    add_number(&b, 0, 2);
    return b;
}

TEST(a_wrong_checksum_is_seen)
{
    Bytes    npy = npy_of("<f4", "False", "(2, 3)", six, sizeof(six));
    uint32_t crc = crc32_of(npy.data, npy.size);
    Bytes    b = zip_of("x.npy", 0, &npy, (uint32_t)npy.size, crc);
    Input   *in = load("t.npz", &b, NULL);

    check_floats(&in->x, six, 6);
    input_free(in);
    b = zip_of("x.npy", 0, &npy, (uint32_t)npy.size, crc ^ 1);
    refuse("t.npz", &b, NULL, ERR_FORMAT, "t.npz|x.npy|CRC");
}

/* Neither room for the values is asked for, nor are they inflated: the checksum is wrong. */
TEST(shapes_need_no_values)
{
    Bytes       npy = npy_of("<f4", "False", "(2, 3)", six, sizeof(six));
    Bytes       b = zip_of("x.npy", 0, &npy, (uint32_t)npy.size, 1);
    InputChoice choice = { .layer = -1, .shapes = true };
    Input      *in = load("t.npz", &b, &choice);

    assert_int_equal(in->n, 2);
    assert_int_equal(in->x.shape[1], 3);
    assert_non_null(in->x.data);
    input_free(in);
}

TEST(declared_sizes_must_be_possible)
{
    Bytes npy = npy_of("<f4", "False", "(2, 3)", six, sizeof(six));
    Bytes vast = npy_of("<f4", "False", "(500000000, 2)", six, sizeof(six));
    Bytes deflated = { .size = 0 };
    Bytes b = zip_of("x.npy", 0, &npy, 4000000000u, 0);

    refuse("t.npz", &b, NULL, ERR_FORMAT, "x.npy|4000000000");
    b = zip_of("x.npy", 0, &vast, (uint32_t)vast.size, 0);
    refuse("t.npz", &b, NULL, ERR_FORMAT, "x.npy|4000000000 bytes|24 are there");
    bytes_add(&deflated, "\x03\x00", 2); /* an empty deflate stream */
    b = zip_of("x.npy", 8, &deflated, 4000000000u, 0);
    refuse("t.npz", &b, NULL, ERR_FORMAT, "x.npy|4000000000");
    b = zip_of("x.npy", 8, &deflated, 100, 0);
    refuse("t.npz", &b, NULL, ERR_FORMAT, "x.npy");
    b = zip_of("x.npy", 14, &npy, (uint32_t)npy.size, 0);
    refuse("t.npz", &b, NULL, ERR_UNSUPPORTED, "x.npy|method 14");
}

TEST(pickles_are_refused)
{
    Bytes pickle = { .size = 0 }, b;

    bytes_add(&pickle, "\x80\x02}q\0.", 6);
    b = zip_of("archive/data.pkl", 0, &pickle, 6, crc32_of(pickle.data, 6));
    refuse("m.zip", &b, NULL, ERR_UNSUPPORTED, "m.zip|pickle|save_file");
    refuse("m.pt", &pickle, NULL, ERR_UNSUPPORTED, "m.pt|pickle|python3 -c");
    pickle.data[0] = 'x';
    refuse("m.ckpt", &pickle, NULL, ERR_UNSUPPORTED, "pickle");
    refuse("m.BIN", &pickle, NULL, ERR_UNSUPPORTED, "pickle");
}

TEST(entries_are_listed)
{
    Bytes        b = from_numpy();
    char         folder[64], path[128];
    InputListing listing;
    Error        err = ERROR_INIT;

    temporary_folder(folder);
    write_file(folder, "t.npz", &b, path);
    assert_true(input_list(path, &listing, &err));
    assert_string_equal(listing.kind, "npz");
    assert_int_equal(listing.count, 4);
    assert_string_equal(listing.entries[2].name, "v");
    assert_string_equal(listing.entries[2].dtype, ">f8");
    assert_int_equal(listing.entries[2].rank, 2);
    assert_int_equal(listing.entries[2].shape[0], 3);
    assert_int_equal(listing.entries[2].bytes, 48);
    input_listing_free(&listing);
    unlink(path);
    assert_false(input_list(path, &listing, &err));
    rmdir(folder);
}

static void same_tensor(const Tensor *a, const Tensor *b)
{
    assert_true(!a->data == !b->data);
    if (!a->data)
        return;
    assert_true(tensor_same_shape(a, b) && a->dtype == b->dtype);
    assert_memory_equal(a->data, b->data, (size_t)tensor_bytes(a));
}

/* Reading from memory equals loading with that choice: shared heads, labels, segments, x. */
TEST(a_beginning_is_as_loaded)
{
    static const char *const paths[] = { "samples/induction.npz",
                                         "samples/induction.safetensors" };
    static const int64_t lengths[] = { 1, 7, 64, 96 };
    Error                err = ERROR_INIT;

    for (size_t p = 0; p < 2; p++)
        for (size_t i = 0; i < 4; i++) {
            InputChoice all = INPUT_CHOICE_DEFAULT, choice = { .n = lengths[i] };
            Input      *whole = input_load(paths[p], &all, &err), *loaded, *cut;

            assert_non_null(whole);
            assert_true(input_can_be_cut(whole));
            loaded = input_load(paths[p], &choice, &err);
            cut = input_cut(whole, lengths[i], &err);
            assert_non_null(loaded);
            assert_non_null(cut);
            assert_true(loaded->n == cut->n && loaded->m == cut->m && loaded->d == cut->d &&
                        loaded->heads == cut->heads && loaded->causal == cut->causal);
            same_tensor(&loaded->q, &cut->q);
            same_tensor(&loaded->k, &cut->k);
            same_tensor(&loaded->v, &cut->v);
            same_tensor(&loaded->x, &cut->x);
            same_tensor(&loaded->segments, &cut->segments);
            assert_true(!loaded->q_tokens == !cut->q_tokens);
            for (int64_t t = 0; cut->k_tokens && t < cut->m; t++)
                assert_string_equal(loaded->k_tokens[t], cut->k_tokens[t]);
            input_free(whole); /* nothing of it is borrowed */
            assert_string_equal(loaded->name, cut->name);
            input_free(loaded);
            input_free(cut);
        }
}

TEST(tensors_that_do_not_agree_are_no_input)
{
    static float values[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    Tensor       wide = tensor_of(DT_F32, 2, (int64_t[]){ 2, 4 }, values);
    Tensor       t = tensor_of(DT_F32, 2, (int64_t[]){ 4, 2 }, values);
    Error        err = ERROR_INIT;

    assert_null(input_from_tensors(&t, &t, &wide, NULL, NULL, &err));
    assert_int_equal(err.code, ERR_DATA);
}

/* A text or a picture is listed as one entry. */
TEST(texts_and_pictures_are_listed)
{
    static const struct {
        const char *name, *bytes, *kind, *entry, *dtype;
        int64_t     rank, shape[2];
    } cases[] = { { "t.txt", "a b a", "text", "tokens", "text", 1, { 3 } },
                  { "t.ppm", "P5 3 2 255 abcdef", "image", "pixels", "u8", 2, { 2, 3 } } };

    for (size_t x = 0; x < sizeof(cases) / sizeof(*cases); x++) {
        Bytes        b = { .size = 0 };
        char         folder[64], path[128];
        InputListing listing;
        Error        err = ERROR_INIT;

        bytes_text(&b, cases[x].bytes);
        temporary_folder(folder);
        write_file(folder, cases[x].name, &b, path);
        CHECK(input_list(path, &listing, &err), "%s", err.text);
        assert_string_equal(listing.kind, cases[x].kind);
        assert_int_equal(listing.count, 1);
        assert_string_equal(listing.entries[0].name, cases[x].entry);
        assert_string_equal(listing.entries[0].dtype, cases[x].dtype);
        assert_int_equal(listing.entries[0].rank, cases[x].rank);
        assert_int_equal(listing.entries[0].bytes, b.size);
        for (int64_t axis = 0; axis < cases[x].rank; axis++)
            assert_int_equal(listing.entries[0].shape[axis], cases[x].shape[axis]);
        input_listing_free(&listing);
        unlink(path);
        rmdir(folder);
    }
}

/* A beginning owns its words, also the warning. */
TEST(a_beginning_keeps_the_warning)
{
    static float values[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    Tensor       t = tensor_of(DT_F32, 2, (int64_t[]){ 4, 2 }, values);
    Error        err = ERROR_INIT;
    Input       *whole = input_from_tensors(&t, &t, &t, NULL, NULL, &err), *cut;

    assert_non_null(whole);
    whole->warning = arena_strdup(whole->arena, "a mask is not used");
    cut = input_cut(whole, 2, &err);
    input_free(whole);
    assert_non_null(cut);
    assert_string_equal(cut->warning, "a mask is not used");
    input_free(cut);
}

/* As in a command that ran short of memory: no file may pass for whole. */
TEST(no_archive_is_written_after_a_shortage)
{
    float       number = 1;
    NamedTensor item = { "t", tensor_of(DT_F32, 1, (int64_t[]){ 1 }, &number) };
    char        path[] = "/tmp/attnscope-short-XXXXXX.npz";
    int         file = mkstemps(path, 4), status;
    pid_t       child;

    assert_true(file >= 0);
    close(file);
    unlink(path);
    child = fork();
    if (child == 0) {
        shortage_forbid_output();
        shortage_note(1);
        _exit(input_write_npz(path, &item, 1, NULL));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_not_equal(access(path, F_OK), 0);
    unlink(path);
}

static int fill_numbers(void **state)
{
    (void)state;
    for (int i = 0; i < 512; i++)
        numbers[i] = (float)i * 0.5f - 3;
    return 0;
}

SUITE(fill_numbers, NULL)
