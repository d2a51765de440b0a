/* test_input_sequence.c -- CSV, JSON, text and pictures as inputs. */
#include <png.h>

#include "input_fixture.h"

static Bytes text_of(const char *text)
{
    Bytes b = { .size = 0 };

    bytes_text(&b, text);
    return b;
}

static void check_matrix(const char *name, const char *text)
{
    static const float want[] = { 0.25f, 0.75f, 1, 0 };
    Bytes  b = text_of(text);
    Input *in = load(name, &b, NULL);

    check_floats(&in->attn, want, 4);
    assert_string_equal(in->kind, "csv");
    input_free(in);
}

TEST(matrices_as_text_are_read)
{
    check_matrix("w.csv", "0.25,0.75\n1,0\n");
    check_matrix("w.csv", "a,b\r\n.25 , 7.5e-1\r\n1,0");
    check_matrix("w.csv", "# a note\n\n0.25;0.75\n1;0\n");
    check_matrix("w.csv", "# a note\n\na;b\n0.25;0.75\n1;0\n");
    check_matrix("w.tsv", "0.25\t0.75\n1\t0\n");
    check_matrix("w.csv", "  0.25   0.75  \n1 0");
    check_matrix("w.csv", "\xef\xbb\xbf" "0.25,0.75\r\n1,0\r\n"); /* as spreadsheets write it */
}

static void refuse_text(const char *name, const char *text, ErrorCode code, const char *words)
{
    Bytes b = text_of(text);

    refuse(name, &b, NULL, code, words);
}

TEST(bad_matrices_are_refused)
{
    refuse_text("w.csv", "1,2\n3,x\n", ERR_FORMAT, "w.csv|line 2, column 2|x");
    refuse_text("w.csv", "1,2\n3\n", ERR_FORMAT, "line 2|1 numbers|2");
    refuse_text("w.csv", "1,,2\n", ERR_FORMAT, "column 2");
    refuse_text("w.csv", "a,b\nc,d\n", ERR_FORMAT, "line 2");
    refuse_text("w.csv", "# nothing\n", ERR_FORMAT, "no line of numbers");
    refuse_text("w.csv", "1,2,3\n4,5,6\n", ERR_DATA, "(2,3)|not square");
    refuse_text("w.csv", "", ERR_FORMAT, "empty");
}

/* words NULL: no warning. */
static void check_named(const char *name, const char *text, const char *words)
{
    Bytes  b = text_of(text);
    Input *in = load(name, &b, NULL);

    assert_non_null(in->attn.data);
    if (words)
        CHECK(in->warning && strstr(in->warning, words), "%s", in->warning ? in->warning : "none");
    else
        assert_null(in->warning);
    input_free(in);
}

TEST(weights_that_no_softmax_gives_are_named)
{
    check_named("attn.csv", "0.25,0.75\n1,0\n", NULL);
    check_named("attn.csv", "0,0\n1,0\n", NULL); /* padding */
    check_named("attn.csv", "0.25,0.75\n1,0.4\n",
                "1 of 2 rows of attn do not sum to 1 (head 0, query 1: 1.4)");
    check_named("attn.csv", "0.25,0.75\n1.5,-0.5\n",
                "1 of 2 rows of attn hold a negative weight (head 0, query 1: -0.5)");
    check_named("w.json", "{\"attn\": [[[1, 0]], [[1, 1]]]}", "(head 1, query 0: 2)");
    refuse_text("w.csv", "0.25,0.75\n1.5,-0.5\n", ERR_DATA, "row 1 holds -0.5|x.csv, attn.csv");
    refuse_text("w.csv", "1,2,3\n4,5,6\n", ERR_DATA, "not square|q, k and v need a file of sev");
}

TEST(lists_of_json_are_arrays)
{
    static const float weights[] = { 0.25f, 0.75f, 1, 0 }, q[] = { 1, 2, 3, -4 }, v[] = { 0, 1 };
    Bytes  w = text_of("[[0.25, 0.75], [1, 0]]");
    Bytes  b = text_of("{\"layers.2.q\": [[1, 2], [3, -4e0]], \"layers.2.k\": [[1, 2], [3, 4]],"
                       " \"layers.2.v\": [[false], [true]], \"tokens\": [\"a\", \"\\u00e9\"],"
                       " \"causal\": true, \"scale\": 0.5, \"model\": \"toy\"}");
    InputChoice first = INPUT_CHOICE_DEFAULT;
    Input      *in = load("w.json", &w, NULL);

    check_floats(&in->attn, weights, 4);
    assert_string_equal(in->kind, "json");
    input_free(in);
    in = load("b.json", &b, &first);
    check_floats(&in->q, q, 4);
    check_floats(&in->v, v, 2);
    assert_int_equal(in->layer, 2);
    assert_int_equal(in->causal, 1);
    assert_true(in->scale == 0.5);
    assert_string_equal(in->q_tokens[1], "\xc3\xa9");
    assert_string_equal(in->model, "toy");
    input_free(in);
}

/* Queries and keys may have labels of their own. */
TEST(lists_of_labels_in_json_are_tokens)
{
    Bytes  b = text_of("{\"attn\": [[0.5, 0.25, 0.25], [0, 0, 1]], \"q_tokens\": [\"a\", \"b\"], "
                       "\"k_tokens\": [\"x\", 7, \"z\"]}");
    Input *in = load("l.json", &b, NULL);

    assert_string_equal(in->q_tokens[1], "b");
    assert_string_equal(in->k_tokens[1], "7");
    input_free(in);
}

TEST(bad_json_is_refused)
{
    char        spaces[256];
    Bytes       b;
    InputChoice small = { .layer = -1, .max_bytes = 4096 };

    refuse_text("t.json", "{\"a\": 1}", ERR_DATA, "no q, k, v");
    refuse_text("t.json", "[[1, 2], [3]]", ERR_FORMAT, "t: a list at depth 2 has 1 entries|2");
    refuse_text("t.json", "{\"q\": [[1, \"x\"]]}", ERR_FORMAT, "q: expected a number|a text");
    refuse_text("t.json", "[[[[[[[[[1]]]]]]]]]", ERR_FORMAT, "more than 8 lists");
    refuse_text("t.json", "{\"q\": null}", ERR_FORMAT, "q: expected nested lists");
    refuse_text("t.json", "{\"q\": [[1]], \"q\": [[2]]}", ERR_FORMAT, "duplicate");
    refuse_text("t.json", "[[1, 2", ERR_FORMAT, "bad JSON");
    refuse_text("t.json", "[\"a\", \"b\"]", ERR_FORMAT, "one in each line");
    refuse_text("t.json", "{\"mechanism\": \"full\"}", ERR_FORMAT, "the record of a run");
    refuse_text("t.json", "[[0.5, 0.6], [1, 0]]", ERR_DATA, "row 0 sums to 1.1");
    refuse_text("t.jsonl", "{\"key\":\"9f\"}\n", ERR_FORMAT, "attnscope fit");
    memset(spaces, ' ', sizeof(spaces) - 1);
    memcpy(spaces, "[[1]]", 5);
    spaces[sizeof(spaces) - 1] = '\0';
    b = text_of(spaces);
    refuse("t.json", &b, &small, ERR_NOMEM, "255 bytes of JSON");
}

static void check_tokens(const char *name, const char *text, const char *const *want)
{
    Bytes   b = text_of(text);
    Input  *in = load(name, &b, NULL);
    int64_t n = 0;

    for (; want[n]; n++) {
        assert_true(n < in->n);
        assert_string_equal(in->q_tokens[n], want[n]);
    }
    assert_int_equal(in->n, n);
    assert_ptr_equal(in->k_tokens, in->q_tokens);
    assert_string_equal(in->kind, "text");
    assert_non_null(strstr(in->note, "no model"));
    input_free(in);
}

TEST(texts_are_split)
{
    check_tokens("t.txt", "The cat's well-known, (a_1) \xc3\xa9t\xc3\xa9...",
                 (const char *[]){ "The", "cat's", "well-known", ",", "(", "a_1", ")",
                                   "\xc3\xa9t\xc3\xa9", ".", ".", ".", NULL });
    check_tokens("t.txt", "\xef\xbb\xbf" "The cat", (const char *[]){ "The", "cat", NULL });
    check_tokens("t.tokens.txt", "The\r\n cat\n\n,\n",
                 (const char *[]){ "The", " cat", "", ",", NULL });
    check_tokens("T.IDS", "17\n4\n17", (const char *[]){ "17", "4", "17", NULL });
    check_tokens("README", "a b", (const char *[]){ "a", "b", NULL });
}

TEST(equal_tokens_have_equal_vectors)
{
    Bytes       b = text_of("the cat saw the dog");
    InputChoice choice = { .heads = 2, .d = 8, .seed = 3 }, other = { .heads = 2, .d = 8, .n = 4 };
    Input      *in = load("t.txt", &b, &choice), *again = load("t.txt", &b, &choice);
    Input      *cut = load("t.txt", &b, &other);
    const float *q = tensor_f32(&in->q), *v = tensor_f32(&in->v);
    double       match = 0;

    assert_int_equal(in->n, 5);
    for (int64_t h = 0; h < 2; h++) {
        assert_memory_equal(q + h * 40, q + h * 40 + 3 * 8, 32);
        assert_memory_equal(v + h * 40, v + h * 40 + 3 * 8, 32);
        assert_memory_not_equal(q + h * 40, q + h * 40 + 8, 32);
        assert_memory_equal(tensor_f32(&in->x) + 8 * h, v + h * 40, 32);
    }
    assert_memory_not_equal(q, q + 40, 32);
    assert_memory_equal(q, in->k.data, 2 * 40 * 4);
    for (int i = 0; i < 8; i++)
        match += (double)q[i] * (double)q[i] / sqrt(8);
    assert_true(fabs(match - 6) <= 1e-5);
    assert_memory_equal(q, again->q.data, 2 * 40 * 4);
    assert_int_equal(cut->n, 4);
    assert_memory_not_equal(q, cut->q.data, 32); /* another seed */
    assert_string_equal(in->sha256, cut->sha256);
    input_free(in);
    input_free(again);
    input_free(cut);
}

TEST(bad_texts_are_refused)
{
    Bytes       b = text_of("a b");
    InputChoice choice = { .n = 3 };

    refuse_text("t.txt", "ab \xff", ERR_FORMAT, "byte 3|0xff");
    refuse_text("t.txt", " \n", ERR_DATA, "no token");
    refuse_text("t.gguf", "GGUF\xff\xff\xff", ERR_FORMAT, "GGUF");
    refuse_text("t.dat", "\xfe\xfe\xfe", ERR_FORMAT, "no format known");
    refuse("t.txt", &b, &choice, ERR_DATA, "2 tokens|first 3");
    choice = (InputChoice){ .layer = 1 };
    refuse("t.txt", &b, &choice, ERR_DATA, "layer 1");
}

TEST(grey_pictures_are_read)
{
    static const struct {
        const char *head;
        const char *data;
        int64_t     size;
    } files[] = {
        { "P5\n# a note\n2 2\n255\n", "\0\x33\xff\xff", 4 },
        { "P5 2 2 65535 ", "\0\0\x33\x33\xff\xff\xff\xff", 8 },
        { "P2\n2 2 10\n", "0 2 10 10", 9 },
        { "P3 2 2 5 ", "0 0 0 1 1 1 5 5 5 5 5 5", 23 },
        { "P6 2 2 5 ", "\0\0\0\1\1\1\5\5\5\5\5\5", 12 },
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        Bytes  b = text_of(files[i].head);
        Input *in;

        bytes_add(&b, files[i].data, files[i].size);
        in = load("t.pgm", &b, NULL);
        assert_int_equal(in->n, 4);
        assert_int_equal(in->width, 2);
        assert_int_equal(in->d, 32);
        assert_true(tensor_f32(&in->v)[0] == -1);
        assert_true(fabsf(tensor_f32(&in->v)[32] + 0.6f) <= 1e-6f);
        assert_true(tensor_f32(&in->v)[64] == 1);
        input_free(in);
        if (files[i].head[1] != '2') /* a number cut short is still one */
            refuse_truncations("t.pgm", &b);
        survive_changes("t.pgm", &b);
    }
    refuse_text("t.pgm", "P5 70000 70000 255 xx", ERR_FORMAT, "byte 19|4900000000");
    refuse_text("t.pgm", "P5 99999999 1 255 xx", ERR_FORMAT, "width");
    refuse_text("t.pgm", "P5 2 2 0 xxxx", ERR_FORMAT, "is none");
    refuse_text("t.pgm", "P2 1 1 9 10", ERR_FORMAT, "sample|9");
}

static Bytes png_of(uint32_t width, uint32_t height, const uint8_t *rgb)
{
    png_image        png = { .version = PNG_IMAGE_VERSION, .width = width, .height = height,
                             .format = PNG_FORMAT_RGB };
    Bytes            b = { .size = 0 };
    png_alloc_size_t size = sizeof(b.data);

    assert_true(png_image_write_to_memory(&png, b.data, &size, 0, rgb, 0, NULL));
    b.size = (int64_t)size;
    return b;
}

TEST(colour_pictures_are_read)
{
    static const uint8_t rgb[] = { 255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0,
                                   255, 0, 0 };
    Bytes        b = png_of(3, 2, rgb);
    InputChoice  choice = { .n = 4, .d = 7, .heads = 2 };
    Input       *in = load("t.png", &b, NULL);
    const float *v = tensor_f32(&in->v);

    assert_int_equal(in->n, 6);
    assert_int_equal(in->width, 3);
    assert_string_equal(in->kind, "image");
    for (int i = 0; i < 6; i++)
        for (int c = 0; c < 3; c++)
            assert_true(v[32 * i + c] == (rgb[3 * i + c] ? 1 : -1));
    for (int i = 0; i < 6; i++)
        CHECK_NEAR((double)tensor_f32(&in->pixels)[i],
                   (0.299 * rgb[3 * i] + 0.587 * rgb[3 * i + 1] + 0.114 * rgb[3 * i + 2]) / 255,
                   1e-6);
    assert_memory_equal(v, v + 32 * 5, 32 * 4); /* the same colour, the same value */
    assert_memory_not_equal(in->q.data, tensor_f32(&in->q) + 32 * 5, 32 * 4);
    input_free(in);
    in = load("t.png", &b, &choice);
    assert_int_equal(in->n, 4);
    assert_int_equal(in->d, 7);
    assert_int_equal(in->heads, 2);
    input_free(in);
    choice.n = 7;
    refuse("t.png", &b, &choice, ERR_DATA, "6 pixels|first 7");
    survive_changes("t.png", &b);
    b.size -= 16; /* into the pixels: IEND's 12 bytes and a checksum */
    refuse("t.png", &b, NULL, ERR_FORMAT, "t.png|not a whole PNG");
    b = png_of(3, 2, rgb);
    b.data[33] = 0x10; /* the length of the part behind the header */
    refuse("t.png", &b, NULL, ERR_FORMAT, "t.png|part at byte 33 has 268435|more than the file");
    b.size = 33 + 8; /* nothing behind its name */
    refuse("t.png", &b, NULL, ERR_FORMAT, "t.png|part at byte 33 has 268435|more than the file");
    b = png_of(3, 2, rgb);
    memcpy(b.data + 16, "\0\x0f\0\0\0\x0f\0\0", 8); /* 983040 x 983040 */
    refuse("t.png", &b, NULL, ERR_FORMAT, "t.png");
}

SUITE(NULL, NULL)
