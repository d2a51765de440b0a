/* test_input_npy.c -- npy files: every dtype, order and malformed header. */
#include "input_fixture.h"

static const float six[] = { 1, 2, 3, 4, 5, 6 };

static void read_bytes(const Bytes *b, Arena *arena, Tensor *out, Error *err)
{
    char folder[64], path[128];

    temporary_folder(folder);
    write_file(folder, "t.npy", b, path);
    input_read_npy(path, arena, out, err);
    unlink(path);
    rmdir(folder);
}

static void check_values(const char *descr, const void *data, int64_t size, int count, DType dtype,
                         const double *want)
{
    char   shape[32];
    Bytes  b;
    Arena *arena = arena_new();
    Tensor t;
    Error  err = ERROR_INIT;

    snprintf(shape, sizeof(shape), "(%d,)", count);
    b = npy_of(descr, "False", shape, data, size);
    read_bytes(&b, arena, &t, &err);
    if (!t.data)
        fail_msg("%s: %s", descr, err.text);
    assert_int_equal(t.dtype, dtype);
    for (int64_t i = 0; i < count; i++)
        assert_true(tensor_get(&t, &i) == want[i]);
    arena_free(arena);
}

TEST(every_dtype_is_read)
{
    check_values("<f4", (float[]){ 1.5f, -2 }, 8, 2, DT_F32, (double[]){ 1.5, -2 });
    check_values(">f4", "\x3f\xc0\0\0", 4, 1, DT_F32, (double[]){ 1.5 });
    check_values("<f8", (double[]){ 0.1 }, 8, 1, DT_F64, (double[]){ 0.1 });
    check_values(">f8", "\x3f\xf8\0\0\0\0\0\0", 8, 1, DT_F64, (double[]){ 1.5 });
    check_values("<f2", "\x00\x3e\x01\x00\xff\x7b", 6, 3, DT_F32,
                 (double[]){ 1.5, 0x1p-24, 65504 });
    check_values(">f2", "\x3e\x00\xfc\x00", 4, 2, DT_F32, (double[]){ 1.5, -(double)INFINITY });
    check_values("|i1", "\xff\x7f", 2, 2, DT_I32, (double[]){ -1, 127 });
    check_values("|u1", "\xff\x7f", 2, 2, DT_U8, (double[]){ 255, 127 });
    check_values("|b1", "\1\0", 2, 2, DT_U8, (double[]){ 1, 0 });
    check_values("<i2", "\xfe\xff", 2, 1, DT_I32, (double[]){ -2 });
    check_values(">i2", "\xff\xfe", 2, 1, DT_I32, (double[]){ -2 });
    check_values("<u2", "\xfe\xff", 2, 1, DT_I32, (double[]){ 65534 });
    check_values(">i4", "\xff\xff\xff\xfe", 4, 1, DT_I32, (double[]){ -2 });
    check_values("<u4", "\xfe\xff\xff\xff", 4, 1, DT_I64, (double[]){ 4294967294.0 });
    check_values(">i8", "\xff\xff\xff\xff\xff\xff\xff\xfe", 8, 1, DT_I64, (double[]){ -2 });
    check_values("<u8", "\1\0\0\0\0\0\0\0", 8, 1, DT_I64, (double[]){ 1 });
}

TEST(fortran_order_is_turned)
{
    static const float columns[] = { 1, 4, 2, 5, 3, 6 };
    Bytes  b = npy_of("<f4", "True", "(2, 3)", columns, sizeof(columns));
    Input *in = load("x.npy", &b, NULL);

    check_floats(&in->x, six, 6);
    assert_int_equal(in->n, 2);
    assert_int_equal(in->d, 3);
    input_free(in);
}

TEST(headers_may_vary)
{
    static const char *const dicts[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   ",
        "{\"shape\":(2L,3L),\"descr\":\"<f4\",\"fortran_order\":False}",
        "{ 'fortran_order' : False , 'shape' : ( 2 , 3 ) , 'descr' : '<f4' }",
    };

    for (size_t i = 0; i < sizeof(dicts) / sizeof(dicts[0]); i++) {
        Bytes  b = npy_of_dict(dicts[i], six, sizeof(six));
        Input *in = load("x.npy", &b, NULL);

        check_floats(&in->x, six, 6);
        input_free(in);
    }
}

TEST(versions_2_and_3_are_read)
{
    Bytes one = npy_of("<f4", "False", "(2, 3)", six, sizeof(six));

    for (uint8_t version = 2; version <= 3; version++) {
        Bytes  b = { .size = 0 };
        Input *in;

        bytes_add(&b, one.data, 10);
        b.data[6] = version;
        bytes_add(&b, "\0\0", 2);
        bytes_add(&b, one.data + 10, one.size - 10);
        in = load("x.npy", &b, NULL);
        check_floats(&in->x, six, 6);
        input_free(in);
    }
}

static void refuse_dict(const char *dict, const char *words)
{
    Bytes b = npy_of_dict(dict, six, sizeof(six));

    refuse("x.npy", &b, NULL, ERR_FORMAT, words);
}

TEST(bad_headers_are_refused)
{
    refuse_dict("", "x.npy|byte 11|'{'|the end");
    refuse_dict("{'descr': '<f4', 'fortran_order': False}", "byte|'shape'");
    refuse_dict("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}",
                "one each");
    refuse_dict("{'descr': '<f4', 'fortran_order': 0, 'shape': (6,)}", "True or False|'0'");
    refuse_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (6,)} x", "nothing after");
    refuse_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (-6,)}", "extent|'-'");
    refuse_dict("{'descr': '<f4', 'fortran_order': False, 'shape': 6}", "'('");
    refuse_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,6)}",
                "at most 8");
    refuse_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
                "2^63");
    refuse_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8)}",
                "impossible");
    refuse_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000)}",
                "4000000000000 bytes|24 are there");
    refuse_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (5,)}", "20 bytes|24 are there");
}

TEST(what_is_not_numbers_is_refused)
{
    Bytes text = npy_of("<U1", "False", "(6,)", six, sizeof(six));
    Bytes complex = npy_of("<c8", "False", "(3,)", six, sizeof(six));

    refuse_dict("{'descr': '|O', 'fortran_order': False, 'shape': (6,)}", "pickled|astype");
    refuse_dict("{'descr': [('a', '<f4'), ('b', '<i4')], 'fortran_order': False, 'shape': (3,)}",
                "several fields, [('a'|one array for each field");
    refuse("x.npy", &complex, NULL, ERR_FORMAT, "<c8|not read");
    refuse("x.npy", &text, NULL, ERR_DATA, "text|<U1");
}

TEST(truncated_files_are_refused)
{
    Bytes b = npy_of("<f4", "False", "(2, 3)", six, sizeof(six));

    refuse_truncations("x.npy", &b);
    survive_changes("x.npy", &b);
}

TEST(an_only_square_array_is_weights)
{
    static const float good[] = { 0.25f, 0.75f, 1, 0 }, bad[] = { 0.25f, 0.7f, 1, 0 };
    static const float nan_row[] = { 0.25f, 0.75f, NAN, 0 };
    Bytes       b = npy_of("<f4", "False", "(2, 2)", good, sizeof(good));
    Input      *in = load("picture.npy", &b, NULL);
    InputChoice first = { .n = 1 }, all = { .n = 2 }, more = { .n = 3 };

    check_floats(&in->attn, good, 4);
    assert_int_equal(in->heads, 1);
    assert_null(in->q.data);
    input_free(in);

    in = load("picture.npy", &b, &first);
    check_floats(&in->attn, good, 1);
    assert_non_null(strstr(in->note, "first 1 of 2"));
    input_free(in);
    in = load("picture.npy", &b, &all);
    check_floats(&in->attn, good, 4);
    input_free(in);
    refuse("picture.npy", &b, &more, ERR_DATA, "2 positions|first 3");

    b = npy_of("<f4", "False", "(2, 2)", bad, sizeof(bad));
    refuse("picture.npy", &b, NULL, ERR_DATA, "picture|row 0|0.95");
    b = npy_of("<f4", "False", "(2, 2)", nan_row, sizeof(nan_row));
    refuse("picture.npy", &b, NULL, ERR_DATA, "row 1");
    b = npy_of("<f4", "False", "(2, 3)", six, sizeof(six));
    refuse("picture.npy", &b, NULL, ERR_DATA, "(2,3)|not square");
}

TEST(what_is_written_is_read_back)
{
    static double values[] = { 0.1, -2, 3e100, 4, 5, 6 };
    Tensor t = tensor_of(DT_F64, 2, (int64_t[]){ 2, 3 }, values), back;
    char   folder[64], path[128];
    Arena *arena = arena_new();
    Error  err = ERROR_INIT;

    temporary_folder(folder);
    snprintf(path, sizeof(path), "%s/t.npy", folder);
    assert_true(input_write_npy(path, &t, &err));
    assert_true(input_read_npy(path, arena, &back, &err));
    assert_memory_equal(back.data, values, sizeof(values));
    t.shape[0] = 3, t.shape[1] = 2, t.stride[0] = 1, t.stride[1] = 3; /* the transpose */
    assert_true(input_write_npy(path, &t, &err));
    assert_true(input_read_npy(path, arena, &back, &err));
    assert_true(tensor_get(&back, (int64_t[]){ 1, 1 }) == 5);
    assert_true(tensor_get(&back, (int64_t[]){ 2, 0 }) == 3e100);
    unlink(path);
    rmdir(folder);
    assert_false(input_write_npy(path, &t, &err));
    assert_int_equal(err.code, ERR_FILE);
    arena_free(arena);
}

TEST(unreadable_paths_say_why)
{
    Error err = ERROR_INIT;

    assert_null(input_load("/nonexistent/q.npz", NULL, &err));
    assert_int_equal(err.code, ERR_FILE);
    assert_non_null(strstr(err.text, "/nonexistent/q.npz"));
    assert_null(input_load("/", NULL, &err));
    assert_non_null(strstr(err.text, "directory"));
    assert_null(input_load("/dev/null", NULL, &err));
    assert_null(input_load("", NULL, &err));
    assert_int_equal(err.code, ERR_USAGE);
}

SUITE(NULL, NULL)
