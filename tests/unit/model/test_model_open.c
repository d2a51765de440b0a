/* test_model_open.c -- a GGUF file as a Model: keys, names, shapes, and what is refused. */
#include "gguf_fixture.h"

#include <math.h>

#include "model/model.h"

static Model *try_open(const Writer *w, Error *err)
{
    static Bytes b;
    char         path[64];
    int          file;
    Model       *m;

    gguf_bytes(w, &b);
    m = model_open(memory_file(b.data, b.size, &file, path), err);
    close(file);
    return m;
}

static Model *opened(const Writer *w)
{
    Error  err = ERROR_INIT;
    Model *m = try_open(w, &err);

    if (!m)
        fail_msg("%s", err.text);
    return m;
}

static void refuse(const Writer *w, const char *words)
{
    Error  err = ERROR_INIT;
    Model *m = try_open(w, &err);

    if (m)
        fail_msg("was opened, but \"%s\" was expected", words);
    check_words(&err, words);
    assert_non_null(strstr(err.text, "/proc/self/fd/"));
    assert_int_equal(error_exit_status(err.code), 2);
}

static void refuse_tiny(const Tiny *t, const char *words)
{
    Writer w = tiny_writer(t);

    refuse(&w, words);
}

/* ---- what is read ------------------------------------------------------------ */

static void check_weight(const Weight *w, int64_t rows, int64_t cols)
{
    assert_int_equal(w->type, WEIGHT_F32);
    assert_int_equal(w->rows, rows);
    assert_int_equal(w->cols, cols);
    assert_non_null(w->data);
}

static void a_llama_has_its_config_and_weights(void **state)
{
    Tiny   t = TINY;
    Writer w = tiny_writer(&t);
    Model *m = opened(&w);

    (void)state;
    assert_string_equal(m->config.arch, "llama");
    assert_string_equal(m->format, "gguf");
    assert_true(m->config.causal && m->config.gated && m->config.tied);
    assert_int_equal(m->config.layers, 1);
    assert_int_equal(m->config.heads, 2);
    assert_int_equal(m->config.kv_heads, 1);
    assert_int_equal(m->config.head_dim, 4);
    assert_int_equal(m->config.vocab, 6);
    assert_int_equal(m->config.rotary, 4);
    assert_true(m->config.inverse[0] == 1 && fabs(m->config.inverse[1] - 0.01) < 1e-15);
    assert_true(m->config.scale == 0.5);
    assert_int_equal(m->type_count[WEIGHT_F32], 11);
    check_weight(&m->embedding, 6, 8);
    check_weight(&m->head, 6, 8);
    check_weight(&m->layer[0].q, 8, 8);
    check_weight(&m->layer[0].k, 4, 8);
    check_weight(&m->layer[0].output, 8, 8);
    check_weight(&m->layer[0].gate, 8, 8);
    assert_int_equal(m->layer[0].q.unpermute, 2);
    assert_int_equal(m->layer[0].k.unpermute, 1);
    assert_int_equal(m->layer[0].v.unpermute, 0);
    assert_true(m->layer[0].attention_norm.weight[7] == 1);
    assert_null(m->layer[0].attention_norm.bias);
    assert_null(m->layer[0].q_bias);
    assert_int_equal(m->positions.type, WEIGHT_NONE);
    assert_null(m->tokenizer);
    assert_true(m->tokenizer_why[0]);
    model_close(m);
}

static void biases_are_unpermuted_as_their_rows(void **state)
{
    Tiny   t = TINY;
    Writer w = tiny_writer(&t);
    Model *m;

    (void)state;
    tensor_f32(&w, "blk.0.attn_q.bias", 0, 8);
    tensor_f32(&w, "blk.0.attn_v.bias", 0, 4);
    tensor_f32(&w, "output.weight", 6, 8);
    m = opened(&w);
    assert_false(m->config.tied);
    for (int head = 0; head < 2; head++) {
        assert_true(m->layer[0].q_bias[4 * head + 1] == (float)(4 * head + 3) / 8);
        assert_true(m->layer[0].q_bias[4 * head + 2] == (float)(4 * head + 2) / 8);
    }
    assert_true(m->layer[0].v_bias[1] == 0.5f);
    model_close(m);
}

/* The same tensors as the other architectures of the family. */
static void other_families_are_not_permuted(void **state)
{
    Tiny   t = TINY;
    Writer w;
    Model *m;

    (void)state;
    t.arch = "qwen2";
    w = tiny_writer(&t);
    tensor_f32(&w, "blk.0.attn_q.bias", 0, 8);
    m = opened(&w);
    assert_int_equal(m->layer[0].q.unpermute, 0);
    assert_true(m->layer[0].q_bias[1] == 0.25f);
    model_close(m);
    t.arch = "gemma";
    w = tiny_writer(&t);
    m = opened(&w);
    assert_true(m->config.embedding_scale == sqrt(8.0));
    assert_int_equal(m->config.activation, MODEL_GELU_TANH);
    assert_true(m->layer[0].attention_norm.weight[7] == 1); /* the 1 is in the file */
    model_close(m);
    t.arch = "qwen3";
    w = tiny_writer(&t);
    refuse(&w, "tensor blk.0.attn_q_norm.weight is missing");
    tensor_f32(&w, "blk.0.attn_q_norm.weight", 0, 4);
    tensor_f32(&w, "blk.0.attn_k_norm.weight", 0, 4);
    m = opened(&w);
    assert_true(m->layer[0].k_norm[3] == 1);
    model_close(m);
}

static void norm_f32(Writer *w, const char *name)
{
    char full[64];

    snprintf(full, sizeof(full), "%s.weight", name);
    tensor_f32(w, full, 0, 8);
    snprintf(full, sizeof(full), "%s.bias", name);
    tensor_f32(w, full, 0, 8);
}

static void linear_f32(Writer *w, const char *name, int rows)
{
    char full[64];

    snprintf(full, sizeof(full), "%s.weight", name);
    tensor_f32(w, full, rows, 8);
    snprintf(full, sizeof(full), "%s.bias", name);
    tensor_f32(w, full, 0, rows);
}

static Writer classic(const char *arch)
{
    Tiny   t = TINY;
    Writer w = { 0 };
    char   eps[64];

    t.arch = arch;
    t.kv_heads = 2;
    tiny_keys(&w, &t);
    snprintf(eps, sizeof(eps), "%s.attention.layer_norm_epsilon", arch);
    key_f32(&w, eps, 1e-5f);
    tensor_f32(&w, "token_embd.weight", 6, 8);
    tensor_f32(&w, "position_embd.weight", 16, 8);
    linear_f32(&w, "blk.0.attn_qkv", 24);
    linear_f32(&w, "blk.0.attn_output", 8);
    linear_f32(&w, "blk.0.ffn_up", 8);
    linear_f32(&w, "blk.0.ffn_down", 8);
    return w;
}

static void joint_rows_are_divided(void **state)
{
    Writer w = classic("gpt2");
    Model *m;
    float  row[8];

    (void)state;
    norm_f32(&w, "blk.0.attn_norm");
    norm_f32(&w, "blk.0.ffn_norm");
    norm_f32(&w, "output_norm");
    m = opened(&w);
    assert_false(m->config.gated);
    assert_int_equal(m->config.rotary, 0);
    assert_int_equal(m->config.activation, MODEL_GELU_TANH);
    check_weight(&m->layer[0].k, 8, 8);
    weight_read(&m->layer[0].k, 1, 1, row);
    assert_true(row[0] == (float)(9 * 8 + 1) / (24 * 8));
    assert_true(m->layer[0].v_bias[0] == (float)17 / 24);
    assert_true(m->layer[0].mlp_norm.bias[7] == 1);
    check_weight(&m->positions, 16, 8);
    model_close(m);
}

static void an_encoder_has_no_head(void **state)
{
    Writer w = classic("bert");
    Model *m;

    (void)state;
    key_bool(&w, "bert.attention.causal", 0);
    key_u32(&w, "bert.pooling_type", 1);
    tensor_f32(&w, "token_types.weight", 2, 8);
    norm_f32(&w, "token_embd_norm");
    norm_f32(&w, "blk.0.attn_output_norm");
    norm_f32(&w, "blk.0.layer_output_norm");
    m = opened(&w);
    assert_false(m->config.causal);
    assert_int_equal(m->config.pooling, 1);
    assert_int_equal(m->head.type, WEIGHT_NONE);
    assert_null(m->final_norm.weight);
    check_weight(&m->types, 2, 8);
    assert_int_equal(m->config.activation, MODEL_GELU);
    model_close(m);
    w = classic("bert");
    key_bool(&w, "bert.attention.causal", 1);
    refuse(&w, "bert.attention.causal|not covered");
}

/* ---- what is refused --------------------------------------------------------- */

static void missing_keys_are_named(void **state)
{
    static const char *const keys[] = {
        "general.architecture", "llama.block_count", "llama.embedding_length",
        "llama.feed_forward_length", "llama.context_length", "llama.attention.head_count",
        "llama.attention.layer_norm_rms_epsilon"
    };

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        Tiny t = TINY;
        char words[80];

        t.without = keys[i];
        snprintf(words, sizeof(words), "key %s is missing", keys[i]);
        refuse_tiny(&t, words);
    }
}

static void tensors_that_are_missing_or_wrong_are_named(void **state)
{
    static const char *const names[] = {
        "token_embd.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.weight",
        "blk.0.attn_k.weight", "blk.0.attn_v.weight", "blk.0.attn_output.weight",
        "blk.0.ffn_norm.weight", "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight",
        "blk.0.ffn_down.weight", "output_norm.weight"
    };

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        Tiny without = TINY, wrong = TINY;
        char words[80];

        without.without = wrong.wrong = names[i];
        snprintf(words, sizeof(words), "tensor %s is missing", names[i]);
        refuse_tiny(&without, words);
        snprintf(words, sizeof(words), "tensor %s has shape (|wanted (", names[i]);
        if (i > 0) /* rows of the embedding are the vocabulary */
            refuse_tiny(&wrong, words);
    }
}

static void the_shape_says_found_and_wanted(void **state)
{
    Tiny t = TINY;

    (void)state;
    t.inner = 9;
    refuse_tiny(&t, "tensor blk.0.ffn_gate.weight has shape (8,8), wanted (9,8)");
    t = (Tiny)TINY;
    t.layers = 2;
    refuse_tiny(&t, "tensor blk.1.attn_norm.weight is missing");
    t = (Tiny)TINY;
    t.kv_heads = 2;
    refuse_tiny(&t, "tensor blk.0.attn_k.weight has shape (4,8), wanted (8,8)");
}

#define REFUSE_WITH(field, value, words)                                                           \
    do {                                                                                           \
        Tiny t = TINY;                                                                             \
                                                                                                   \
        t.field = value;                                                                           \
        refuse_tiny(&t, words);                                                                    \
    } while (0)

static void sizes_out_of_range_are_refused(void **state)
{
    (void)state;
    REFUSE_WITH(layers, 0, "llama.block_count is 0|1 to 1024");
    REFUSE_WITH(layers, 1025, "llama.block_count is 1025|1 to 1024");
    REFUSE_WITH(heads, 0, "llama.attention.head_count is 0|1 to 1024");
    REFUSE_WITH(heads, 1025, "llama.attention.head_count is 1025");
    REFUSE_WITH(heads, 3, "8 channels|3 heads|key_length");
    REFUSE_WITH(heads, 8, "1 channels|even");
    REFUSE_WITH(kv_heads, 0, "head_count_kv is 0");
    REFUSE_WITH(kv_heads, 4, "2 heads|4 key and value heads");
    REFUSE_WITH(width, 0, "embedding_length is 0");
    REFUSE_WITH(width, UINT32_MAX, "embedding_length is 4294967295");
    REFUSE_WITH(width, 4096, "2048 channels|even number up to 1024");
    REFUSE_WITH(inner, 0, "feed_forward_length is 0");
    REFUSE_WITH(context, 0, "context_length is 0");
    REFUSE_WITH(eps, 0, "epsilon|0");
    REFUSE_WITH(eps, 1, "epsilon|1");
    REFUSE_WITH(eps, NAN, "layer_norm_rms_epsilon|finite");
    REFUSE_WITH(base, 1, "base of RoPE|1");
    REFUSE_WITH(base, INFINITY, "rope.freq_base|finite");
    REFUSE_WITH(arch, "phi3", "general.architecture|'phi3'|qwen2, qwen3, gemma, gpt2 and bert");
    REFUSE_WITH(arch, "albert", "'albert'|not covered");
    REFUSE_WITH(arch, "", "general.architecture");
}

static void refuse_key(void (*add)(Writer *w, const char *name), const char *name,
                       const char *words)
{
    Tiny   t = TINY;
    Writer w = { 0 };

    t.without = name;
    add(&w, name);
    tiny_keys(&w, &t);
    tiny_tensors(&w, &t);
    refuse(&w, words);
}

static void add_3(Writer *w, const char *name)
{
    key_u32(w, name, 3);
}

static void add_6(Writer *w, const char *name)
{
    key_u32(w, name, 6);
}

static void add_text(Writer *w, const char *name)
{
    key_text(w, name, "dynamic");
}

static void add_lines(Writer *w, const char *name)
{
    key_text(w, name, "a\nb");
}

static void other_keys_are_checked(void **state)
{
    (void)state;
    refuse_key(add_3, "llama.rope.dimension_count", "RoPE turns 3 channels|2 to 4");
    refuse_key(add_6, "llama.rope.dimension_count", "RoPE turns 6 channels|2 to 4");
    refuse_key(add_6, "llama.attention.key_length", "attn_q.weight has shape (8,8), wanted (12,8)");
    refuse_key(add_3, "llama.attention.value_length", "value_length is 3|4");
    refuse_key(add_3, "llama.expert_count", "llama.expert_count|mixture of experts");
    refuse_key(add_text, "llama.expert_count", "llama.expert_count|whole number");
    refuse_key(add_text, "llama.rope.scaling.type", "rope.scaling.type|'dynamic'|linear and yarn");
    refuse_key(add_3, "llama.rope.scaling.type", "rope.scaling.type is no text");
    refuse_key(add_text, "tokenizer.ggml.tokens", "tokens is no list of texts");
    refuse_key(add_6, "tokenizer.ggml.bos_token_id", "bos_token_id is 6|below 6");
    refuse_key(add_text, "tokenizer.ggml.eos_token_id", "eos_token_id is no whole number");
    refuse_key(add_lines, "general.architecture", "'a b'|not covered");
    refuse_key(add_3, "tokenizer.ggml.merges", "merges is no list of texts");
}

static void lists_may_stand_for_equal_values(void **state)
{
    Tiny   t = TINY;
    Writer w = { 0 };
    Model *m;

    (void)state;
    t.without = "llama.attention.head_count";
    tiny_keys(&w, &t);
    tiny_tensors(&w, &t);
    key_array(&w, "llama.attention.head_count", GGUF_I32, 3, (int32_t[]){ 2, 2, 2 }, 12);
    m = opened(&w);
    assert_int_equal(m->config.heads, 2);
    model_close(m);
    w = (Writer){ 0 };
    tiny_keys(&w, &t);
    key_array(&w, "llama.attention.head_count", GGUF_I32, 2, (int32_t[]){ 2, 4 }, 8);
    refuse(&w, "head_count differs between layers");
    w = (Writer){ 0 };
    tiny_keys(&w, &t);
    key_array(&w, "llama.attention.head_count", GGUF_I32, 0, NULL, 0);
    refuse(&w, "head_count");
}

static Writer with_tokens(int tokens, int scores, const char *merge)
{
    static const char *const words[] = { "a", "b", "c", "d", "e", "f", "g" };
    static const float       zeros[7] = { 0 };
    Tiny                     t = TINY;
    Writer                   w = tiny_writer(&t);

    key_texts(&w, "tokenizer.ggml.tokens", tokens, words);
    key_array(&w, "tokenizer.ggml.scores", GGUF_F32, (uint64_t)scores, zeros, 4 * scores);
    key_texts(&w, "tokenizer.ggml.merges", 1, &merge);
    return w;
}

static void lists_of_tokens_are_checked(void **state)
{
    static const char *const merges[] = { "ab", " ab", "ab ", "a b c", "a  b", " ", "" };
    Writer                   w = with_tokens(4, 4, "a b");

    (void)state;
    model_close(opened(&w));
    w = with_tokens(7, 7, "a b");
    refuse(&w, "tokenizer.ggml.tokens has 7 tokens|token_embd.weight has 6 rows");
    w = with_tokens(5, 4, "a b");
    refuse(&w, "tokenizer.ggml.scores has 4 values|wanted 5");
    for (size_t i = 0; i < sizeof(merges) / sizeof(*merges); i++) {
        w = with_tokens(5, 5, merges[i]);
        refuse(&w, "tokenizer.ggml.merges|merge 0|one blank");
    }
}

/* ---- RoPE -------------------------------------------------------------------- */

static void divisors_of_the_converter_are_used(void **state)
{
    Tiny   t = TINY;
    Writer w = tiny_writer(&t);
    Model *m;

    (void)state;
    tensor_f32(&w, "rope_freqs.weight", 0, 2);
    m = opened(&w);
    assert_true(fabs(m->config.inverse[0] - 2) < 1e-12);
    assert_true(fabs(m->config.inverse[1] - 0.01) < 1e-12);
    model_close(m);
    w = tiny_writer(&t);
    tensor_f32(&w, "rope_freqs.weight", 0, 4);
    refuse(&w, "rope_freqs.weight|4 values|wanted 2");
    w = tiny_writer(&t);
    tensor_raw(&w, "rope_freqs.weight", 1, (uint64_t[]){ 2 }, 0, (float[]){ 1, 0 }, 8);
    refuse(&w, "rope_freqs.weight|value 1 is 0");
}

static Model *scaled(const char *type, float factor)
{
    Tiny   t = TINY;
    Writer w = tiny_writer(&t);

    key_text(&w, "llama.rope.scaling.type", type);
    key_f32(&w, "llama.rope.scaling.factor", factor);
    return opened(&w);
}

static void scalings_of_keys_are_applied(void **state)
{
    Tiny   t = TINY;
    Writer w = tiny_writer(&t);
    Model *m = scaled("linear", 4);

    (void)state;
    assert_true(m->config.inverse[0] == 0.25 && m->config.rotary_scale == 1);
    model_close(m);
    m = scaled("none", 4);
    assert_true(m->config.inverse[0] == 1);
    model_close(m);
    m = scaled("yarn", 4);
    assert_true(fabs(m->config.rotary_scale - 1.138629436111989) < 1e-12);
    model_close(m);
    key_text(&w, "llama.rope.scaling.type", "linear");
    refuse(&w, "llama.rope.scaling.factor is missing");
    key_f32(&w, "llama.rope.scaling.factor", 0.5f);
    refuse(&w, "factor of RoPE's scaling is 0.5|1 to");
}

static void an_ignored_window_is_noted(void **state)
{
    Tiny   t = TINY;
    Writer w = tiny_writer(&t);
    Model *m;

    (void)state;
    key_u32(&w, "llama.attention.sliding_window", 8);
    m = opened(&w);
    assert_int_equal(m->config.window, 0);
    assert_non_null(strstr(m->notes, "sliding_window of 8 is ignored"));
    assert_non_null(strstr(m->notes, "window(window=15)"));
    model_close(m);
    w = tiny_writer(&t);
    key_raw(&w, "llama.attention.sliding_window", GGUF_U64, &(int64_t){ INT64_MAX }, 8);
    m = opened(&w);
    assert_string_equal(m->notes, ""); /* longer than any text */
    model_close(m);
}

/* ---- any bytes --------------------------------------------------------------- */

static void read_matrix(const Weight *w)
{
    float *row = malloc((size_t)(w->cols ? w->cols : 1) * sizeof(*row));

    if (w->type != WEIGHT_NONE && w->rows > 0)
        weight_read(w, w->rows - 1, 1, row);
    free(row);
}

/* With a tokenizer that can be read. */
static Writer whole_model(void)
{
    static const char *const words[] = { "<s>", "a", "b", "c", "ab" };
    const char              *merge = "a b";
    Tiny                     t = TINY;
    Writer                   w = tiny_writer(&t);

    key_text(&w, "tokenizer.ggml.model", "gpt2");
    key_text(&w, "tokenizer.ggml.pre", "gpt-2");
    key_texts(&w, "tokenizer.ggml.tokens", 5, words);
    key_array(&w, "tokenizer.ggml.token_type", GGUF_I32, 5, (int32_t[]){ 3, 1, 1, 1, 1 }, 20);
    key_texts(&w, "tokenizer.ggml.merges", 1, &merge);
    key_u32(&w, "tokenizer.ggml.bos_token_id", 0);
    key_bool(&w, "tokenizer.ggml.add_bos_token", 1);
    return w;
}

static void a_tokenizer_comes_with_the_model(void **state)
{
    Writer    w = whole_model();
    Model    *m = opened(&w);
    TokenList list;
    Error     err = ERROR_INIT;

    (void)state;
    assert_string_equal(m->tokenizer_why, "");
    assert_non_null(m->tokenizer);
    assert_true(tokenizer_encode(m->tokenizer, "abc", 3, true, &list, &err));
    assert_int_equal(list.count, 3);
    assert_int_equal(list.ids[1], 4);
    token_list_free(&list);
    model_close(m);
}

static void changed_bytes_do_no_harm(void **state)
{
    static Bytes b;
    Writer       w = whole_model();
    int64_t      header;

    (void)state;
    gguf_bytes(&w, &b);
    header = b.size - w.data_size;
    for (int64_t at = 0; at < header; at++)
        for (int mask = 1; mask < 256; mask <<= 2) {
            Error  err = ERROR_INIT;
            char   path[64];
            int    file;
            Model *m;

            b.data[at] ^= (uint8_t)mask;
            m = model_open(memory_file(b.data, b.size, &file, path), &err);
            close(file);
            if (m) {
                read_matrix(&m->layer[m->config.layers - 1].q);
                read_matrix(&m->head);
            } else {
                check_words(&err, "/proc/self/fd/");
                assert_int_equal(error_exit_status(err.code), 2);
            }
            model_close(m);
            b.data[at] ^= (uint8_t)mask;
        }
}

static void a_cut_model_is_refused(void **state)
{
    static Bytes b;
    Tiny         t = TINY;
    Writer       w = tiny_writer(&t);

    (void)state;
    gguf_bytes(&w, &b);
    for (int64_t size = 0; size < b.size; size += 1 + size / 100) {
        Error err = ERROR_INIT;
        char  path[64];
        int   file;

        assert_null(model_open(memory_file(b.data, size, &file, path), &err));
        close(file);
        assert_int_equal(error_exit_status(err.code), 2);
    }
}

static void a_path_that_is_no_model_is_known(void **state)
{
    Error err = ERROR_INIT;
    char  path[64];
    int   file;

    (void)state;
    assert_true(model_is_model(memory_file("GGUF...", 7, &file, path)));
    close(file);
    assert_false(model_is_model(memory_file("GGU", 3, &file, path)));
    close(file);
    assert_false(model_is_model("/nowhere"));
    assert_false(model_is_model("/proc"));
    assert_null(model_open("/nowhere", &err));
    assert_int_equal(err.code, ERR_FILE);
    assert_non_null(strstr(err.text, "/nowhere: cannot be opened"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_llama_has_its_config_and_weights),
        cmocka_unit_test(biases_are_unpermuted_as_their_rows),
        cmocka_unit_test(other_families_are_not_permuted),
        cmocka_unit_test(joint_rows_are_divided),
        cmocka_unit_test(an_encoder_has_no_head),
        cmocka_unit_test(missing_keys_are_named),
        cmocka_unit_test(tensors_that_are_missing_or_wrong_are_named),
        cmocka_unit_test(the_shape_says_found_and_wanted),
        cmocka_unit_test(sizes_out_of_range_are_refused),
        cmocka_unit_test(other_keys_are_checked),
        cmocka_unit_test(lists_may_stand_for_equal_values),
        cmocka_unit_test(lists_of_tokens_are_checked),
        cmocka_unit_test(divisors_of_the_converter_are_used),
        cmocka_unit_test(scalings_of_keys_are_applied),
        cmocka_unit_test(an_ignored_window_is_noted),
        cmocka_unit_test(a_tokenizer_comes_with_the_model),
        cmocka_unit_test(changed_bytes_do_no_harm),
        cmocka_unit_test(a_cut_model_is_refused),
        cmocka_unit_test(a_path_that_is_no_model_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
