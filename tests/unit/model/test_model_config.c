/* test_model_config.c -- the sizes of a model from the keys of a GGUF file, what is ignored with a
 * note, and what is refused. */
#include "check.h"
#include "gguf_fixture.h"
#include "model/config.h"

/* A small llama; tensors are not looked at here. */
static void write_llama(Writer *w)
{
    *w = (Writer){ 0 };
    key_text(w, "general.architecture", "llama");
    key_u32(w, "llama.block_count", 3);
    key_u32(w, "llama.embedding_length", 24);
    key_u32(w, "llama.feed_forward_length", 40);
    key_u32(w, "llama.context_length", 128);
    key_u32(w, "llama.attention.head_count", 4);
    key_u32(w, "llama.attention.head_count_kv", 2);
    key_f32(w, "llama.attention.layer_norm_rms_epsilon", 0.00390625f);
}

/* The notes of a file that is read, the message of one that is refused. */
static bool config_of(const Writer *w, ModelConfig *config, Text *notes, Error *err)
{
    static Bytes b;
    uint8_t     *copy;
    Arena       *arena = arena_new();
    Gguf        *g;
    bool         ok;

    *config = (ModelConfig){ 0 };
    gguf_bytes(w, &b);
    g = open_sized(b.data, b.size, &copy, err);
    assert_non_null(g);
    assert_non_null(arena);
    ok = config_from_gguf(g, arena, config, notes, err);
    gguf_close(g);
    free(copy);
    arena_free(arena);
    return ok;
}

TEST(the_keys_are_the_sizes)
{
    static Writer w;
    ModelConfig   config;
    Text          notes = { 0 };
    Error         err = ERROR_INIT;

    write_llama(&w);
    assert_true(config_of(&w, &config, &notes, &err));
    assert_string_equal(text_str(&notes), "");
    assert_int_equal(config.layers, 3);
    assert_int_equal(config.width, 24);
    assert_int_equal(config.inner, 40);
    assert_int_equal(config.context, 128);
    assert_int_equal(config.heads, 4);
    assert_int_equal(config.kv_heads, 2);
    assert_int_equal(config.head_dim, 6);
    assert_true(config.eps == 0.00390625);
    assert_true(config.causal);
    text_free(&notes);
}

/* A window is passed over, with a note; one longer than any text, or none, without. */
TEST(a_window_is_noted)
{
    static const struct {
        uint32_t    window;
        const char *note;
    } cases[] = { { 0, "" },
                  { 1, "key llama.attention.sliding_window of 1 is ignored: attention is over all "
                       "keys; swap in window(window=1) for it\n" },
                  { 64, "key llama.attention.sliding_window of 64 is ignored: attention is over "
                        "all keys; swap in window(window=127) for it\n" },
                  { UINT32_MAX, "" } };

    for (size_t x = 0; x < sizeof(cases) / sizeof(*cases); x++) {
        static Writer w;
        ModelConfig   config;
        Text          notes = { 0 };
        Error         err = ERROR_INIT;

        write_llama(&w);
        key_u32(&w, "llama.attention.sliding_window", cases[x].window);
        assert_true(config_of(&w, &config, &notes, &err));
        assert_string_equal(text_str(&notes), cases[x].note);
        text_free(&notes);
    }
}

TEST(what_is_not_covered_is_refused)
{
    static const struct {
        const char *key;
        uint32_t    value;
        const char *words; /* NULL: it is read */
    } cases[] = { { "llama.expert_count", 8, "llama.expert_count|mixture of experts" },
                  { "llama.expert_count", 0, NULL },
                  { "llama.attention.causal", 0, "llama.attention.causal is 0" },
                  { "llama.attention.causal", 1, NULL },
                  { "llama.attention.value_length", 7, "value_length is 7|6 channels" },
                  { "llama.attention.value_length", 6, NULL },
                  { "llama.rope.dimension_count", 5, "RoPE" },
                  { "llama.rope.dimension_count", 4, NULL } };

    for (size_t x = 0; x < sizeof(cases) / sizeof(*cases); x++) {
        static Writer w;
        ModelConfig   config;
        Text          notes = { 0 };
        Error         err = ERROR_INIT;

        write_llama(&w);
        key_u32(&w, cases[x].key, cases[x].value);
        if (config_of(&w, &config, &notes, &err) != !cases[x].words)
            fail_msg("%s=%u: %s", cases[x].key, cases[x].value, err.text);
        if (cases[x].words)
            check_words(&err, cases[x].words);
        text_free(&notes);
    }
}

SUITE(NULL, NULL)
