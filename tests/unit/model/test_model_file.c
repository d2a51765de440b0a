/* test_model_file.c -- GGUF headers, hostile ones too, and the values of every block type. */
#include "gguf_fixture.h"

#include <math.h>

#include "model/file/weight.h"

/* A key of every type and tensors of several. */
static Writer sample(void)
{
    static const char *const texts[] = { "a", "", "word" };
    static const uint8_t     blocks[2 * 34] = { 0 };
    Writer                   w = { 0 };

    key_text(&w, "text", "value");
    key_raw(&w, "u8", GGUF_U8, &(uint8_t){ 200 }, 1);
    key_raw(&w, "i8", GGUF_I8, &(int8_t){ -2 }, 1);
    key_raw(&w, "u16", GGUF_U16, &(uint16_t){ 60000 }, 2);
    key_raw(&w, "i16", GGUF_I16, &(int16_t){ -300 }, 2);
    key_u32(&w, "u32", 4000000000u);
    key_raw(&w, "i32", GGUF_I32, &(int32_t){ -70000 }, 4);
    key_f32(&w, "f32", 1.5f);
    key_f32(&w, "whole", 12);
    key_bool(&w, "bool", 1);
    key_raw(&w, "u64", GGUF_U64, &(uint64_t){ UINT64_MAX }, 8);
    key_raw(&w, "i64", GGUF_I64, &(int64_t){ INT64_MIN }, 8);
    key_raw(&w, "f64", GGUF_F64, &(double){ 0.1 }, 8);
    key_texts(&w, "texts", 3, texts);
    key_array(&w, "numbers", GGUF_I16, 3, (int16_t[]){ 1, -2, 3 }, 6);
    key_array(&w, "none", GGUF_F32, 0, NULL, 0);
    key_array(&w, "bools", GGUF_BOOL, 2, "\1\0", 2);
    tensor_f32(&w, "one", 0, 3);
    tensor_f32(&w, "two", 2, 5);
    tensor_raw(&w, "three", 2, (uint64_t[]){ 32, 2 }, 8, blocks, 68);
    return w;
}

static Gguf *opened(const Writer *w, uint8_t **copy)
{
    static Bytes b;
    Error        err = ERROR_INIT;
    Gguf        *g;

    gguf_bytes(w, &b);
    g = open_sized(b.data, b.size, copy, &err);
    if (!g)
        fail_msg("%s", err.text);
    return g;
}

static void check_whole(const Gguf *g, const char *name, int64_t want)
{
    int64_t value;
    double  number;

    assert_true(gguf_integer(gguf_key(g, name), 0, &value));
    assert_int_equal(value, want);
    assert_true(gguf_number(gguf_key(g, name), 0, &number));
    assert_true(number == (double)want);
}

static void numbers_are_read_as_any_type(void **state)
{
    Writer   w = sample();
    uint8_t *copy;
    Gguf    *g = opened(&w, &copy);
    int64_t  whole;
    double   number;

    (void)state;
    check_whole(g, "u8", 200);
    check_whole(g, "i8", -2);
    check_whole(g, "u16", 60000);
    check_whole(g, "i16", -300);
    check_whole(g, "u32", 4000000000);
    check_whole(g, "i32", -70000);
    check_whole(g, "i64", INT64_MIN);
    check_whole(g, "whole", 12);
    check_whole(g, "bool", 1);
    assert_true(gguf_number(gguf_key(g, "f64"), 0, &number) && number == 0.1);
    assert_true(gguf_number(gguf_key(g, "f32"), 0, &number) && number == 1.5);
    assert_false(gguf_integer(gguf_key(g, "f32"), 0, &whole));
    assert_false(gguf_integer(gguf_key(g, "u64"), 0, &whole));
    assert_false(gguf_integer(gguf_key(g, "text"), 0, &whole));
    assert_false(gguf_number(gguf_key(g, "text"), 0, &number));
    assert_true(gguf_integer(gguf_key(g, "numbers"), 1, &whole) && whole == -2);
    assert_false(gguf_integer(gguf_key(g, "numbers"), 3, &whole));
    assert_false(gguf_integer(gguf_key(g, "numbers"), -1, &whole));
    assert_false(gguf_number(gguf_key(g, "none"), 0, &number));
    assert_null(gguf_key(g, "nothing"));
    gguf_close(g);
    free(copy);
}

static void texts_are_read_one_after_another(void **state)
{
    static const char *const want[] = { "a", "", "word" };
    Writer                   w = sample();
    uint8_t                 *copy;
    Gguf                    *g = opened(&w, &copy);
    const uint8_t           *cursor = NULL;
    GgufString               text;

    (void)state;
    assert_true(gguf_string(gguf_key(g, "text"), &text));
    assert_int_equal(text.length, 5);
    assert_memory_equal(text.text, "value", 5);
    assert_false(gguf_string(gguf_key(g, "u8"), &text));
    assert_false(gguf_string(gguf_key(g, "texts"), &text));
    for (int i = 0; i < 3; i++) {
        assert_true(gguf_next_string(gguf_key(g, "texts"), &cursor, &text));
        assert_int_equal(text.length, strlen(want[i]));
        assert_memory_equal(text.text, want[i], strlen(want[i]));
    }
    assert_false(gguf_next_string(gguf_key(g, "texts"), &cursor, &text));
    cursor = NULL;
    assert_false(gguf_next_string(gguf_key(g, "numbers"), &cursor, &text));
    gguf_close(g);
    free(copy);
}

static void check_tensors(Writer *w)
{
    uint8_t          *copy;
    Gguf             *g = opened(w, &copy);
    const GgufTensor *two = gguf_tensor(g, "two"), *three = gguf_tensor(g, "three");
    float             values[10];
    int64_t           count;

    gguf_tensors(g, &count);
    assert_int_equal(count, 3);
    assert_null(gguf_tensor(g, "four"));
    assert_int_equal(two->rank, 2);
    assert_int_equal(two->dims[0], 5);
    assert_int_equal(two->dims[1], 2);
    assert_int_equal(two->bytes, 40);
    memcpy(values, two->data, 40);
    for (int i = 0; i < 10; i++)
        assert_true(values[i] == (float)(i + 1) / 10);
    assert_int_equal(three->type, WEIGHT_Q8_0);
    assert_int_equal(three->bytes, 68);
    gguf_close(g);
    free(copy);
}

static void tensors_are_found_in_both_versions(void **state)
{
    Writer w = sample();

    (void)state;
    check_tensors(&w);
    w.version = 2;
    check_tensors(&w);
}

static void the_alignment_of_the_file_counts(void **state)
{
    Writer w = { .alignment = 128 };

    (void)state;
    key_u32(&w, "general.alignment", 128);
    tensor_f32(&w, "one", 0, 3);
    tensor_f32(&w, "two", 2, 5);
    tensor_f32(&w, "three", 2, 5);
    refuse_writer(&(Writer){ .version = 4 }, "byte 4|version 4");
    {
        uint8_t *copy;
        Gguf    *g = opened(&w, &copy);

        assert_int_equal((gguf_tensor(g, "three")->data - copy) % 128, 0);
        gguf_close(g);
        free(copy);
    }
}

/* ---- hostile files ----------------------------------------------------------- */

static void put_at(Bytes *b, int64_t at, uint64_t value, int64_t bytes)
{
    memcpy(b->data + at, &value, (size_t)bytes);
}

static void refuse_field(int64_t at, uint64_t value, int64_t bytes, const char *words)
{
    static Bytes b;
    Writer       w = sample();

    gguf_bytes(&w, &b);
    put_at(&b, at, value, bytes);
    refuse_bytes(&b, words);
}

static void bad_beginnings_are_refused(void **state)
{
    static Bytes empty;

    (void)state;
    refuse_bytes(&empty, "byte 0|the magic|4 bytes wanted, 0 left");
    refuse_field(0, 0x46475546, 4, "byte 0|magic|0x46475546|GGUF");
    refuse_field(4, 1, 4, "byte 4|version 1|anew");
    refuse_field(4, 3u << 24, 4, "byte 4|0x03000000|big-endian");
    refuse_field(4, 0, 4, "byte 4|big-endian");
    refuse_field(4, 77, 4, "byte 4|version 77|2 or 3");
    refuse_field(8, 65537, 8, "byte 8|tensor count|65537|65536");
    refuse_field(8, 1ull << 63, 8, "byte 8|tensor count|9223372036854775808");
    refuse_field(8, 60000, 8, "byte 8|tensor count|60000|cannot hold");
    refuse_field(16, 65537, 8, "byte 16|key count|65537|65536");
    refuse_field(16, UINT64_MAX, 8, "byte 16|key count|18446744073709551615");
    refuse_field(16, 5000, 8, "byte 16|key count|5000|cannot hold");
    refuse_field(24, UINT64_MAX, 8, "byte 24|name of a key|18446744073709551615|cannot hold");
    refuse_field(24, 0, 8, "byte 24|name of a key|0 bytes|256");
    refuse_field(24, 257, 8, "byte 24|name of a key|257 bytes|256");
    refuse_field(32, '\n', 1, "byte 32|name of a key|0x0a");
    refuse_field(33, 0xff, 1, "byte 33|name of a key|0xff");
    refuse_field(36, 13, 4, "byte 36|key text|type 13|0 to 12");
    refuse_field(40, 1ull << 62, 8, "key text|length of a string|4611686018427387904");
}

static void refuse_array(uint32_t element, uint64_t count, const void *values, int64_t bytes,
                         const char *words)
{
    Writer w = { 0 };

    key_array(&w, "list", element, count, values, bytes);
    refuse_writer(&w, words);
}

static void bad_values_are_refused(void **state)
{
    Writer twice = { 0 }, flag = { 0 };

    (void)state;
    refuse_array(GGUF_ARRAY, 1, "\0\0\0\0\0\0\0\0\0\0\0\0", 12, "key list|array of arrays");
    refuse_array(99, 1, "", 1, "key list|type 99");
    refuse_array(GGUF_U64, 1ull << 61, "", 0, "key list|length of an array|2305843009213693952");
    refuse_array(GGUF_U8, 200, "12345678", 8, "key list|length of an array|200");
    refuse_array(GGUF_STRING, 1, "\377\377\377\377\377\377\377\177", 8, "key list|string");
    refuse_array(GGUF_STRING, 2, "\1\0\0\0\0\0\0\0aaaaaaaa", 16, "key list|string");
    refuse_array(GGUF_BOOL, 3, "\0\1\2", 3, "key list|bool 2|0 or 1");
    key_bool(&flag, "flag", 7);
    refuse_writer(&flag, "byte 40|key flag|bool 7");
    key_u32(&twice, "same", 1);
    key_u32(&twice, "other", 1);
    key_f32(&twice, "same", 1);
    refuse_writer(&twice, "key same|twice");
}

static void refuse_alignment(uint32_t alignment)
{
    Writer w = { 0 };

    key_u32(&w, "general.alignment", alignment);
    refuse_writer(&w, "byte 53|general.alignment|power of two|65536");
}

static void bad_alignments_are_refused(void **state)
{
    Writer w = { 0 };

    (void)state;
    refuse_alignment(0);
    refuse_alignment(4);
    refuse_alignment(48);
    refuse_alignment(131072);
    key_text(&w, "general.alignment", "32");
    refuse_writer(&w, "general.alignment");
}

static void refuse_info(const char *name, uint32_t rank, const uint64_t *dims, uint32_t type,
                        uint64_t offset, const char *words)
{
    Writer w = { .data_size = 64 };

    info(&w, name, rank, dims, type, offset);
    refuse_writer(&w, words);
}

static void bad_tensors_are_refused(void **state)
{
    static const uint64_t four[] = { 4, 4, 1, 1, 1 }, zero[] = { 4, 0 }, odd[] = { 40, 1 };
    static const uint64_t huge[] = { 1ull << 32, 1ull << 32 }, most[] = { UINT64_MAX, 2 };
    static const uint64_t over[] = { 1ull << 21, 1ull << 21 };
    char                  name[300] = "";
    Writer                twice = { 0 };

    (void)state;
    refuse_info("", 1, four, 0, 0, "name of a tensor|0 bytes");
    memset(name, 'n', 257);
    refuse_info(name, 1, four, 0, 0, "name of a tensor|257 bytes");
    refuse_info("t", 0, four, 0, 0, "tensor t|rank 0|1 to 4");
    refuse_info("t", 5, four, 0, 0, "tensor t|rank 5|1 to 4");
    refuse_info("t", 2, zero, 0, 0, "tensor t|dim 1 is 0");
    refuse_info("t", 2, huge, 0, 0, "tensor t|dim 1|4294967296|2^40");
    refuse_info("t", 2, most, 0, 0, "tensor t|dim 0|18446744073709551615");
    refuse_info("t", 2, over, 0, 0, "tensor t|dim 1|2097152|2^40");
    refuse_info("t", 2, odd, 2, 0, "tensor t|dim 0 is 40|multiple of 32|Q4_0");
    refuse_info("t", 2, odd, 14, 0, "tensor t|dim 0 is 40|multiple of 256|Q6_K");
    refuse_info("t", 2, four, 0, 8, "tensor t|offset 8|alignment 32");
    refuse_info("t", 2, four, 0, 32, "tensor t|64 bytes|offset 32|64 bytes");
    refuse_info("t", 2, four, 0, 1ull << 62, "tensor t|offset 4611686018427387904");
    refuse_info("t", 2, four, 0, UINT64_MAX - 31, "tensor t|offset 18446744073709551584");
    tensor_f32(&twice, "same", 0, 2);
    tensor_f32(&twice, "same", 0, 2);
    refuse_writer(&twice, "tensor same|twice");
}

static void types_that_are_not_read_are_named(void **state)
{
    static const struct {
        uint32_t    number;
        const char *words;
    } types[] = { { 4, "Q4_2" }, { 9, "Q8_1" }, { 15, "Q8_K" }, { 16, "IQ2_XXS" },
                  { 20, "IQ4_NL" }, { 23, "IQ4_XS" }, { 24, "I8" }, { 28, "F64" }, { 29, "IQ1_M" },
                  { 34, "TQ1_0" }, { 39, "MXFP4" }, { 41, "Q1_0" }, { 31, "number 31" },
                  { 42, "number 42" }, { UINT32_MAX, "number 4294967295" } };

    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        char words[80];

        snprintf(words, sizeof(words), "tensor t|%s", types[i].words);
        refuse_info("t", 1, (uint64_t[]){ 256 }, types[i].number, 0, words);
    }
}

static void truncated_files_are_refused(void **state)
{
    static Bytes b;
    Writer       w = sample();
    int64_t      whole;

    (void)state;
    gguf_bytes(&w, &b);
    whole = b.size;
    for (b.size = 0; b.size < whole; b.size++)
        refuse_bytes(&b, "");
}

/* Reads whatever the file offers. */
static void read_all(const Gguf *g)
{
    int64_t           keys, tensors;
    const GgufKey    *key = gguf_keys(g, &keys);
    const GgufTensor *tensor = gguf_tensors(g, &tensors);

    for (; keys > 0; key++, keys--) {
        const uint8_t *cursor = NULL;
        GgufString     text;
        int64_t        whole;
        double         number;

        for (int64_t i = -1; i <= key->count; i++) {
            gguf_integer(key, i, &whole);
            gguf_number(key, i, &number);
        }
        while (gguf_next_string(key, &cursor, &text))
            assert_true(text.length >= 0);
    }
    for (; tensors > 0; tensor++, tensors--) {
        Weight w = { .type = tensor->type, .data = tensor->data, .rows = 1,
                     .cols = tensor->dims[0] };
        float *values = malloc((size_t)w.cols * sizeof(*values));

        weight_read(&w, 0, 1, values);
        free(values);
    }
}

static void changed_bytes_do_no_harm(void **state)
{
    static const uint8_t masks[] = { 0x01, 0x02, 0x10, 0x80, 0xff };
    static Bytes         b;
    Writer               w = sample();

    (void)state;
    gguf_bytes(&w, &b);
    for (int64_t at = 0; at < b.size; at++)
        for (size_t m = 0; m < sizeof(masks); m++) {
            Error    err = ERROR_INIT;
            uint8_t *copy;
            Gguf    *g;

            b.data[at] ^= masks[m];
            g = open_sized(b.data, b.size, &copy, &err);
            if (g)
                read_all(g);
            else
                check_words(&err, "");
            gguf_close(g);
            free(copy);
            b.data[at] ^= masks[m];
        }
}

/* ---- values ------------------------------------------------------------------ */

/* Of 4096 values in random blocks: FNV-1a over the bits, and the values 0, 1 and 4095, by the
 * numpy code of the gguf package 0.19.  `halves`: where a block has scales, whose largest exponent
 * bit is cleared so that all is finite. */
static const struct {
    WeightType type;
    int        number, halves[2];
    uint64_t   hash;
    float      some[3];
} expected[] = {
    { WEIGHT_F16, 1, { 0, -1 }, 0xbd0b42e8a6eb3ee4u,
      { -0x1.e5cp+0f, -0x1.ccp-15f, -0x1.1ap-7f } },
    { WEIGHT_BF16, 30, { 0, -1 }, 0x44aebc7238b7c6f4u,
      { -0x1.aep-6f, -0x1.02p-106f, 0x1.02p-14f } },
    { WEIGHT_F32, 0, { 2, -1 }, 0xe372aced69be36c3u,
      { 0x1.f17d22p-28f, -0x1.c186e2p-116f, 0x1.fa92ap-82f } },
    { WEIGHT_Q4_0, 2, { 0, -1 }, 0x24a7d03105b0b899u,
      { -0x1.c74p-1f, 0x1.557p+0f, 0x1.7c8p-5f } },
    { WEIGHT_Q4_1, 3, { 0, 2 }, 0xb3f65df3a15ce842u,
      { 0x1.609ap+0f, 0x1.5c2cp+0f, 0x1.56cp+0f } },
    { WEIGHT_Q5_0, 6, { 0, -1 }, 0x9ff9a052e829c401u,
      { -0x1.3bd8p-11f, 0x1.a52p-13f, 0x1.f1dp-6f } },
    { WEIGHT_Q5_1, 7, { 0, 2 }, 0x4237f9866ee62762u,
      { -0x1.2a58p-6f, -0x1.15bep-4f, -0x1.1f107p+2f } },
    { WEIGHT_Q8_0, 8, { 0, -1 }, 0x02f61c0d14760b3au,
      { -0x1.6c5p-11f, 0x1.308p-11f, 0x1.a7cap-5f } },
    { WEIGHT_Q2_K, 10, { 80, 82 }, 0x21abaf4691acec0eu,
      { -0x1.be9p-10f, -0x1.be9p-10f, 0x1.02546p+1f } },
    { WEIGHT_Q3_K, 11, { 108, -1 }, 0xbe54bec77609d8f2u,
      { 0x1.879ap-1f, 0x1.879ap+0f, 0x1.308p-2f } },
    { WEIGHT_Q4_K, 12, { 0, 2 }, 0xb6afccdd520e9594u,
      { 0x1.105cap-2f, 0x1.2dad4p-3f, -0x1.6378p+0f } },
    { WEIGHT_Q5_K, 13, { 0, 2 }, 0x3bd5fabaeb115f42u,
      { 0x1.5597p+1f, 0x1.18a8p+1f, -0x1.bddd2p+5f } },
    { WEIGHT_Q6_K, 14, { 208, -1 }, 0x3c2886bf3abe560au,
      { -0x1.63044p+3f, 0x1.141fcp+3f, -0x1.6f6a7p+1f } },
};

static uint8_t random_byte(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (uint8_t)((z ^ z >> 31) >> 56);
}

static uint64_t hash_bits(const float *values, int64_t count)
{
    uint64_t       hash = 0xcbf29ce484222325u;
    const uint8_t *bytes = (const uint8_t *)values;

    for (int64_t i = 0; i < 4 * count; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

static void every_block_type_has_the_values_of_the_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
        int64_t  size = weight_block_bytes(expected[i].type);
        int64_t  blocks = 4096 / weight_block_values(expected[i].type);
        uint64_t random = 1 + (uint64_t)expected[i].number;
        uint8_t *raw = malloc((size_t)(size * blocks));
        float   *values = malloc(4096 * sizeof(*values));
        Weight   w = { .type = expected[i].type, .data = raw, .rows = 16, .cols = 256 };

        for (int64_t b = 0; b < size * blocks; b++)
            raw[b] = random_byte(&random);
        for (int64_t b = 0; b < blocks; b++)
            for (int h = 0; h < 2; h++)
                if (expected[i].halves[h] >= 0)
                    raw[b * size + expected[i].halves[h] + 1] &= 0xbf;
        weight_read(&w, 0, 10, values);
        weight_read(&w, 10, 6, values + 2560);
        if (values[0] != expected[i].some[0] || values[1] != expected[i].some[1] ||
            values[4095] != expected[i].some[2] || hash_bits(values, 4096) != expected[i].hash)
            fail_msg("%s: %a %a .. %a", weight_type_name(w.type), (double)values[0],
                     (double)values[1], (double)values[4095]);
        for (int k = 0; weight_reader_at(k); k++) {
            weight_reader_at(k)(w.type, raw, values, 4096);
            if (hash_bits(values, 4096) != expected[i].hash)
                fail_msg("%s: reader %d", weight_type_name(w.type), k);
        }
        free(values);
        free(raw);
    }
}

/* All readers of this processor, also where the count is no multiple of the piece they take. */
static void readers_agree_on_numbers_of_any_count(void **state)
{
    static const WeightType plain[] = { WEIGHT_F32, WEIGHT_F16, WEIGHT_BF16, WEIGHT_F64 };
    uint8_t                 raw[8 * 40];
    uint64_t                random = 5;

    (void)state;
    for (size_t b = 0; b < sizeof(raw); b++)
        raw[b] = random_byte(&random);
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        for (int64_t count = 0; count <= 40; count++) {
            float first[41] = { 0 }, other[41] = { 0 };

            weight_reader_at(0)(plain[i], raw, first, count);
            for (int k = 1; weight_reader_at(k); k++) {
                weight_reader_at(k)(plain[i], raw, other, count);
                if (memcmp(first, other, sizeof(first)) != 0)
                    fail_msg("%s, %d values: reader %d", weight_type_name(plain[i]), (int)count, k);
            }
            assert_true(first[count] == 0);
        }
}

/* All 65536 of them, subnormals and infinities too. */
static void halves_are_exact(void **state)
{
    uint16_t raw[4096];
    float    values[4096];
    Weight   w = { .type = WEIGHT_F16, .data = (const uint8_t *)raw, .rows = 1, .cols = 4096 };

    (void)state;
    for (int first = 0; first < 65536; first += 4096) {
        for (int i = 0; i < 4096; i++)
            raw[i] = (uint16_t)(first + i);
        weight_read(&w, 0, 1, values);
        for (int i = 0; i < 4096; i++) {
            int   exponent = raw[i] >> 10 & 31, fraction = raw[i] & 1023;
            float want = exponent == 0    ? ldexpf((float)fraction, -24)
                         : exponent == 31 ? (fraction ? NAN : INFINITY)
                                          : ldexpf((float)(1024 + fraction), exponent - 25);

            assert_int_equal(!!signbit(values[i]), raw[i] >> 15);
            assert_true(isnan(want) ? isnan(values[i]) : fabsf(values[i]) == want);
        }
    }
}

static void a_transposed_part_is_turned(void **state)
{
    enum { COLS = 37, STRIDE = 250, FIRST = 83, ROWS = 100 };
    double *file = malloc(sizeof(*file) * COLS * STRIDE);
    float  *out = malloc(sizeof(*out) * ROWS * COLS);
    Weight  w = { .type = WEIGHT_F64, .data = (const uint8_t *)(file + FIRST), .rows = ROWS,
                  .cols = COLS, .transposed = true, .stride = STRIDE };

    (void)state;
    for (int i = 0; i < COLS * STRIDE; i++)
        file[i] = i;
    weight_read(&w, 0, ROWS, out);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            assert_true(out[r * COLS + c] == (float)(c * STRIDE + FIRST + r));
    weight_read(&w, 70, 3, out);
    assert_true(out[COLS + 1] == (float)(STRIDE + FIRST + 71));
    free(out);
    free(file);
}

/* Row 2t + s of a head in the file is row s d/2 + t. */
static void pairs_become_halves(void **state)
{
    float  file[12][2], out[12][2];
    Weight w = { .type = WEIGHT_F32, .data = (const uint8_t *)file, .rows = 12, .cols = 2,
                 .unpermute = 2 };

    (void)state;
    for (int r = 0; r < 12; r++)
        file[r][0] = file[r][1] = (float)r;
    weight_read(&w, 0, 12, out[0]);
    for (int head = 0; head < 2; head++)
        for (int t = 0; t < 3; t++)
            for (int s = 0; s < 2; s++)
                assert_true(out[6 * head + 3 * s + t][1] == (float)(6 * head + 2 * t + s));
    weight_read(&w, 7, 1, out[0]);
    assert_true(out[0][0] == 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_as_any_type),
        cmocka_unit_test(texts_are_read_one_after_another),
        cmocka_unit_test(tensors_are_found_in_both_versions),
        cmocka_unit_test(the_alignment_of_the_file_counts),
        cmocka_unit_test(bad_beginnings_are_refused),
        cmocka_unit_test(bad_values_are_refused),
        cmocka_unit_test(bad_alignments_are_refused),
        cmocka_unit_test(bad_tensors_are_refused),
        cmocka_unit_test(types_that_are_not_read_are_named),
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(changed_bytes_do_no_harm),
        cmocka_unit_test(every_block_type_has_the_values_of_the_reference),
        cmocka_unit_test(readers_agree_on_numbers_of_any_count),
        cmocka_unit_test(halves_are_exact),
        cmocka_unit_test(a_transposed_part_is_turned),
        cmocka_unit_test(pairs_become_halves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
