/* test_input_safetensors.c -- safetensors: headers, bounds, layers, shards. */
#include "input_fixture.h"

static const float twelve[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };

#define QKV                                                                                        \
    "\"q\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"                           \
    "\"k\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[16,32]},"                          \
    "\"v\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[32,48]}"

static Bytes whole(const char *metadata)
{
    char header[1024];

    snprintf(header, sizeof(header), "{%s" QKV "}  ", metadata);
    return safetensors_of(header, twelve, sizeof(twelve));
}

TEST(tensors_and_metadata_are_read)
{
    Bytes  b = whole("\"__metadata__\":{\"tokens\":\"[\\\"a\\\", 7]\",\"causal\":\"1\","
                     "\"scale\":\"0.5\",\"model\":\"m\\u001b[1m\"},");
    Input *in = load("t.safetensors", &b, NULL);

    check_floats(&in->q, twelve, 4);
    check_floats(&in->k, twelve + 4, 4);
    check_floats(&in->v, twelve + 8, 4);
    assert_int_equal(in->q.rank, 3);
    assert_int_equal(in->causal, 1);
    assert_true(in->scale == 0.5);
    assert_string_equal(in->q_tokens[0], "a");
    assert_string_equal(in->q_tokens[1], "7");
    assert_ptr_equal(in->q_tokens, in->k_tokens);
    assert_string_equal(in->kind, "safetensors");
    assert_null(strchr(in->model, 0x1b)); /* no control character reaches a terminal */
    assert_int_equal(strlen(in->sha256), 64);
    input_free(in);
}

/* An empty tensor begins where a full one does, in either order of the header. */
TEST(an_empty_tensor_shares_its_offset)
{
    static const char *const empty =
        "\"none\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[16,16]}";
    char header[1024];

    for (int first = 0; first < 2; first++) {
        Bytes  b;
        Input *in;

        snprintf(header, sizeof(header), first ? "{%s,%s}" : "{%2$s,%1$s}", empty, QKV);
        b = safetensors_of(header, twelve, sizeof(twelve));
        in = load("t.safetensors", &b, NULL);
        check_floats(&in->k, twelve + 4, 4);
        input_free(in);
    }
}

/* An array that looks like a mask does not hold, and the reader hears of it. */
TEST(a_mask_is_said_to_be_unused)
{
    Bytes  b = whole("\"attention_mask\":{\"dtype\":\"F32\",\"shape\":[0],"
                     "\"data_offsets\":[16,16]},");
    Input *in = load("t.safetensors", &b, NULL);

    assert_non_null(in->warning);
    assert_non_null(strstr(in->warning, "attention_mask"));
    assert_null(in->note);
    input_free(in);
    b = whole("");
    in = load("t.safetensors", &b, NULL);
    assert_null(in->warning);
    input_free(in);
}

/* q, k, v [36,n,1] and a head's worth of metadata. */
static Input *many_heads(const char *metadata, int n)
{
    static float values[3 * 36 * 18];
    char         header[1024];
    int          size = 36 * n * 4;
    Bytes        b;

    snprintf(header, sizeof(header), "{%s\"q\":{\"dtype\":\"F32\",\"shape\":[36,%d,1],"
             "\"data_offsets\":[0,%d]},\"k\":{\"dtype\":\"F32\",\"shape\":[36,%d,1],"
             "\"data_offsets\":[%d,%d]},\"v\":{\"dtype\":\"F32\",\"shape\":[36,%d,1],"
             "\"data_offsets\":[%d,%d]}}", metadata, n, size, n, size, 2 * size, n, 2 * size,
             3 * size);
    b = safetensors_of(header, values, (int64_t)3 * size);
    return load("t.safetensors", &b, NULL);
}

/* [n, heads, d] has the rank of [heads, n, d]: where that reading is odd, it is said. */
TEST(more_heads_than_positions_are_said)
{
    Input *in = many_heads("", 4);

    assert_non_null(in->warning);
    CHECK(strstr(in->warning, "q has shape (36,4,1), read as 36 heads of 4 positions") &&
          strstr(in->warning, "layout=\"n,h,d\""), "%s", in->warning);
    input_free(in);
    in = many_heads("\"__metadata__\":{\"layout\":\"h,n,d\"},", 4);
    assert_null(in->warning);
    input_free(in);
    in = many_heads("\"__metadata__\":{\"layout\":\"n,h,d\"},", 4);
    assert_null(in->warning);
    assert_int_equal(in->heads, 4);
    input_free(in);
    in = many_heads("\"__metadata__\":{\"tokens\":\"[\\\"a\\\",\\\"b\\\"]\"},", 2);
    assert_null(in->warning);
    input_free(in);
    in = many_heads("", 18);
    assert_null(in->warning);
    input_free(in);
}

static void refuse_whole(const char *metadata, const char *words)
{
    Bytes b = whole(metadata);

    refuse("t.safetensors", &b, NULL, ERR_FORMAT, words);
}

TEST(bad_metadata_is_refused)
{
    Bytes b = whole("\"__metadata__\":{\"tokens\":\"[\\\"a\\\"]\"},");

    refuse("t.safetensors", &b, NULL, ERR_DATA, "1 labels|2 positions");
    refuse_whole("\"__metadata__\":{\"causal\":\"maybe\"},", "causal|maybe");
    refuse_whole("\"__metadata__\":{\"scale\":\"-1\"},", "scale|-1");
    refuse_whole("\"__metadata__\":{\"scale\":\"nan\"},", "scale|nan");
    refuse_whole("\"__metadata__\":{\"width\":\"2.5\"},", "width|2.5");
    refuse_whole("\"__metadata__\":{\"layout\":\"n,z\"},", "layout|n,z");
    refuse_whole("\"__metadata__\":{\"tokens\":\"a b\"},", "tokens|JSON list");
    refuse_whole("\"__metadata__\":{\"tokens\":\"[[]]\"},", "tokens|item 0");
    refuse_whole("\"__metadata__\":{\"a\":1},", "__metadata__|a");
    refuse_whole("\"__metadata__\":[],", "__metadata__");
}

TEST(short_floats_are_decoded)
{
    static const uint8_t data[] = { 0xc0, 0x3f, 0x20, 0xc1, 0x00, 0x3e, 0x00, 0xc0, 0x3c, 0xbe };
    static const float   q[] = { 1.5f, -10 }, k[] = { 1.5f, -2 }, v[] = { 1.5f, -1.5f };
    Bytes  b = safetensors_of("{\"q\":{\"dtype\":\"BF16\",\"shape\":[1,2],\"data_offsets\":[0,4]},"
                              "\"k\":{\"dtype\":\"F16\",\"shape\":[1,2],\"data_offsets\":[4,8]},"
                              "\"v\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,1],"
                              "\"data_offsets\":[8,9]},"
                              "\"x\":{\"dtype\":\"F8_E5M2\",\"shape\":[1,1],"
                              "\"data_offsets\":[9,10]}}", data, sizeof(data));
    Input *in = load("t.safetensors", &b, NULL);

    check_floats(&in->q, q, 2);
    check_floats(&in->k, k, 2);
    check_floats(&in->v, v, 1);
    check_floats(&in->x, v + 1, 1);
    input_free(in);
}

static void refuse_header(const char *header, const char *words)
{
    Bytes b = safetensors_of(header, twelve, sizeof(twelve));

    refuse("t.safetensors", &b, NULL, ERR_FORMAT, words);
}

TEST(bad_headers_are_refused)
{
    Bytes huge = whole("");

    refuse_header("{\"q\":", "bad JSON|byte");
    refuse_header("{\"q\":1}", "tensor q|object");
    refuse_header("{\"q\":{\"shape\":[1],\"data_offsets\":[0,4]}}", "tensor q|dtype");
    refuse_header("{\"q\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}",
                  "tensor q|shape");
    refuse_header("{\"q\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}",
                  "tensor q|0");
    refuse_header("{\"q\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", "tensor q");
    refuse_header("{\"q\":{\"dtype\":\"F32\",\"shape\":[1,1]}}", "tensor q|data_offsets");
    refuse_header("{\"q\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[0]}}",
                  "data_offsets");
    refuse_header("{\"q\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[4,0]}}",
                  "[4, 0]|48");
    refuse_header("{\"q\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[-4,0]}}", "outside");
    refuse_header("{\"q\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[48,52]}}",
                  "outside");
    refuse_header("{\"q\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,4]}}",
                  "8 bytes|span 4");
    refuse_header("{\"q\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],"
                  "\"data_offsets\":[0,4]}}", "impossible");
    refuse_header("{\"q\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
                  "\"k\":{\"dtype\":\"F32\",\"shape\":[1,2],"
                  "\"data_offsets\":[4,12]}}", "overlap|q|k");
    refuse_header("{\"q\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
                  "\"k\":{\"dtype\":\"F32\",\"shape\":[1,9],"
                  "\"data_offsets\":[12,48]}}", "tensor k|byte 12|ends at 8|no gaps");
    refuse_header("{\"q\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}",
                  "end at byte 8|48|ends with its last tensor");
    refuse_header("{\"q\":{\"dtype\":\"X9\",\"shape\":[1,2],\"data_offsets\":[0,48]}}",
                  "X9|not read");
    memset(huge.data, 0xff, 8);
    refuse("t.safetensors", &huge, NULL, ERR_FORMAT, "byte 0|18446744073709551615");
}

TEST(truncated_files_are_refused)
{
    Bytes b = whole("");

    refuse_truncations("t.safetensors", &b);
    survive_changes("t.safetensors", &b);
}

static Bytes layered(void)
{
    return safetensors_of(
        "{\"layers.0.q\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
        "\"layers.0.v\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[8,16]},"
        "\"layers.2.q\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[16,24]},"
        "\"layers.2.v\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[24,32]}}",
        twelve, 8 * sizeof(*twelve));
}

TEST(a_layer_is_chosen)
{
    Bytes       b = layered();
    InputChoice choice = { .layer = 2 };
    Input      *in = load("t.safetensors", &b, &choice);

    check_floats(&in->q, twelve + 4, 2);
    check_floats(&in->v, twelve + 6, 2);
    assert_int_equal(in->layer, 2);
    assert_int_equal(in->layers, 2);
    assert_int_equal(input_layer_number(in, 1), 2);
    assert_int_equal(input_layer_index(in), 1);
    input_free(in);
    choice.layer = -1; /* the first there is */
    in = load("t.safetensors", &b, &choice);
    check_floats(&in->q, twelve, 2);
    assert_int_equal(in->layer, 0);
    input_free(in);
    choice.layer = 1;
    refuse("t.safetensors", &b, &choice, ERR_DATA, "layer 1|0, 2");
    choice.layer = 3;
    refuse("t.safetensors", &b, &choice, ERR_DATA, "layer 3|0, 2");
    choice.layer = -2;
    refuse("t.safetensors", &b, &choice, ERR_PARAM, "layer|-2");
}

TEST(attentions_of_all_layers_are_sliced)
{
    Bytes       b = safetensors_of("{\"attentions\":{\"dtype\":\"F32\",\"shape\":[3,1,2,2],"
                                   "\"data_offsets\":[0,48]}}", twelve, sizeof(twelve));
    InputChoice choice = { .layer = 1 };
    Input      *in = load("t.safetensors", &b, &choice);

    check_floats(&in->attn, twelve + 4, 4);
    assert_int_equal(in->layers, 3);
    input_free(in);
    choice.layer = 3;
    refuse("t.safetensors", &b, &choice, ERR_DATA, "3 layers|layer 3");
}

TEST(shards_are_merged)
{
    Bytes one = safetensors_of("{\"q\":{\"dtype\":\"F32\",\"shape\":[2,2],"
                               "\"data_offsets\":[0,16]}}",
                               twelve, 16);
    Bytes two = safetensors_of("{\"v\":{\"dtype\":\"F32\",\"shape\":[2,2],"
                               "\"data_offsets\":[0,16]}}",
                               twelve + 4, 16);
    Bytes index = { .size = 0 }, wrong = { .size = 0 }, outside = { .size = 0 };
    char  folder[64], path[5][128];
    Error err = ERROR_INIT;
    Input *in;

    bytes_text(&index, "{\"weight_map\":{\"q\":\"a.safetensors\",\"v\":\"b.safetensors\"}}");
    bytes_text(&wrong, "{\"weight_map\":{\"q\":\"a.safetensors\",\"v\":\"a.safetensors\"}}");
    bytes_text(&outside, "{\"weight_map\":{\"q\":\"../a.safetensors\"}}");
    temporary_folder(folder);
    write_file(folder, "a.safetensors", &one, path[0]);
    write_file(folder, "b.safetensors", &two, path[1]);
    write_file(folder, "m.safetensors.index.json", &index, path[2]);
    write_file(folder, "w.safetensors.index.json", &wrong, path[3]);
    write_file(folder, "o.safetensors.index.json", &outside, path[4]);
    in = input_load(path[2], NULL, &err);
    if (!in)
        fail_msg("%s", err.text);
    check_floats(&in->q, twelve, 4);
    check_floats(&in->v, twelve + 4, 4);
    input_free(in);
    assert_null(input_load(path[3], NULL, &err));
    assert_non_null(strstr(err.text, "2 tensors"));
    assert_null(input_load(path[4], NULL, &err));
    assert_non_null(strstr(err.text, "not a file name"));
    unlink(path[1]);
    assert_null(input_load(path[2], NULL, &err));
    assert_non_null(strstr(err.text, "shard b.safetensors"));
    for (int i = 0; i < 5; i++)
        unlink(path[i]);
    rmdir(folder);
}

TEST(what_is_written_is_read_back)
{
    static float      q[] = { 1, 2, 3, 4, 5, 6 };
    static int64_t    ids[] = { 5, 1ll << 40, -3 };
    const NamedTensor items[] = {
        { "q", tensor_of(DT_F32, 2, (int64_t[]){ 3, 2 }, q) },
        { "tokens", tensor_of(DT_I64, 1, (int64_t[]){ 3 }, ids) },
    };
    const char *const metadata[] = { "causal", "0", "model", "a \"b\"", NULL };
    char         folder[64], path[128];
    Error        err = ERROR_INIT;
    InputListing listing;
    Input       *in;

    temporary_folder(folder);
    snprintf(path, sizeof(path), "%s/t.safetensors", folder);
    assert_true(input_write_safetensors(path, items, 2, metadata, &err));
    in = input_load(path, NULL, &err);
    if (!in)
        fail_msg("%s", err.text);
    check_floats(&in->q, q, 6);
    assert_int_equal(in->causal, 0);
    assert_string_equal(in->model, "a \"b\"");
    assert_string_equal(in->q_tokens[1], "1099511627776");
    input_free(in);
    assert_true(input_list(path, &listing, &err));
    assert_int_equal(listing.count, 2);
    assert_string_equal(listing.entries[1].dtype, "I64");
    assert_int_equal(listing.metadata_count, 2);
    input_listing_free(&listing);
    unlink(path);
    rmdir(folder);
}

/* A control character of a name is not shown, a space is. */
TEST(a_dtype_is_told_as_it_is_written)
{
    const char *header = "{\"q\":{\"dtype\":\"F 3\\u00012\",\"shape\":[12],"
                         "\"data_offsets\":[0,48]}}";
    Bytes       b = safetensors_of(header, twelve, sizeof(twelve));

    refuse("t.safetensors", &b, NULL, ERR_FORMAT, "F 3?2");
}

/* [h,d,n] by the metadata, where q is [d,n] only. */
TEST(a_layout_names_axes_that_may_be_absent)
{
    static const float turned[] = { 1, 3, 2, 4 };
    static const char *const layouts[] = { "d,n", "h,d,n", "1,h,d,n" };

    for (size_t x = 0; x < sizeof(layouts) / sizeof(*layouts); x++) {
        char   metadata[80];
        Bytes  b;
        Input *in;

        snprintf(metadata, sizeof(metadata), "\"__metadata__\":{\"layout\":\"%s\"},",
                 layouts[x]);
        b = whole(metadata);
        in = load("t.safetensors", &b, NULL);
        check_floats(&in->q, turned, 4);
        input_free(in);
    }
    refuse_whole("\"__metadata__\":{\"layout\":\"1,n,d,h,L\"},", "layout");
}

/* Columns around each query are absent behind the last one: [heads, n, columns], of two heads. */
TEST(relative_columns_are_told_from_keys)
{
    enum { FIRST = 2, LAST = 11 }; /* last columns of rows 0 and 3 of head 0 */
    static const struct {
        float first, last;
        bool  relative;
    } cases[] = { { 0.5f, 0, true }, { 0.5f, 0.5f, false }, { 0, 0, false }, { 0, 0.5f, false } };
    const char *header = "{\"attn\":{\"dtype\":\"F32\",\"shape\":[2,4,3],"
                         "\"data_offsets\":[0,96]}}";

    for (size_t x = 0; x < sizeof(cases) / sizeof(*cases); x++) {
        float  weights[24];
        Bytes  b;
        Input *in;

        for (int c = 0; c < 24; c++)
            weights[c] = 0.25f;
        weights[FIRST] = cases[x].first;
        weights[LAST] = cases[x].last;
        b = safetensors_of(header, weights, sizeof(weights));
        if (cases[x].relative) {
            refuse("t.safetensors", &b, NULL, ERR_DATA, "attn|(2,4,3)|look relative");
            continue;
        }
        in = load("t.safetensors", &b, NULL);
        assert_int_equal(in->m, 3);
        input_free(in);
    }
}

SUITE(NULL, NULL)
