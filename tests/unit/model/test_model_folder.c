/* test_model_folder.c -- Hugging Face folders: config.json, safetensors, shards, names. */
#include "gguf_fixture.h"

#include <math.h>
#include <sys/stat.h>

#include "core/text.h"
#include "model/config.h"
#include "model/model.h"

/* ---- config.json alone ------------------------------------------------------- */

static Arena *arena;

static bool read_config(const char *json, const char *pooling, ModelConfig *out, Text *notes,
                        Error *err)
{
    json_error_t why;
    json_t      *root = json_loads(json, 0, &why), *pool = NULL;
    bool         ok;

    if (!root)
        fail_msg("%s: %s", json, why.text);
    if (pooling)
        pool = json_loads(pooling, 0, &why);
    ok = config_from_json(root, pool, arena, out, notes, err);
    json_decref(root);
    json_decref(pool);
    return ok;
}

static ModelConfig config_of(const char *json)
{
    ModelConfig c;
    Text        notes = { 0 };
    Error       err = ERROR_INIT;

    if (!read_config(json, NULL, &c, &notes, &err))
        fail_msg("%s", err.text);
    text_free(&notes);
    return c;
}

static void refuse_config(const char *json, const char *words)
{
    ModelConfig c;
    Text        notes = { 0 };
    Error       err = ERROR_INIT;

    if (read_config(json, NULL, &c, &notes, &err))
        fail_msg("was read, but \"%s\" was expected", words);
    check_words(&err, words);
    assert_non_null(strstr(err.text, "config.json: "));
    text_free(&notes);
}

#define SIZES "\"hidden_size\":64,\"intermediate_size\":256,\"num_hidden_layers\":2,"              \
              "\"num_attention_heads\":4,\"max_position_embeddings\":256"
#define LLAMA(more) "{\"model_type\":\"llama\"," SIZES more "}"
#define OF(type, more) "{\"model_type\":\"" type "\"," SIZES more "}"

static void defaults_follow_the_family(void **state)
{
    ModelConfig c = config_of(LLAMA(""));

    (void)state;
    assert_int_equal(c.kv_heads, 4);
    assert_int_equal(c.head_dim, 16);
    assert_int_equal(c.rotary, 16);
    assert_int_equal(c.activation, MODEL_SILU);
    assert_true(c.eps == 1e-6 && c.rotary_scale == 1 && c.embedding_scale == 1);
    assert_true(fabs(c.inverse[7] - pow(10000, -14.0 / 16)) < 1e-15);
    c = config_of(OF("gemma", ",\"head_dim\":32,\"num_key_value_heads\":1,"
                     "\"hidden_act\":\"gelu\""));
    assert_int_equal(c.head_dim, 32);
    assert_int_equal(c.kv_heads, 1);
    assert_int_equal(c.activation, MODEL_GELU_TANH);
    assert_true(c.embedding_scale == 8 && c.scale == 1 / sqrt(32));
    c = config_of("{\"model_type\":\"gpt2\",\"n_embd\":64,\"n_layer\":2,\"n_head\":4,"
                  "\"n_positions\":256,\"n_inner\":null,\"activation_function\":\"gelu_new\"}");
    assert_int_equal(c.inner, 256);
    assert_int_equal(c.rotary, 0);
    assert_true(c.eps == 1e-5);
    c = config_of("{\"type_vocab_size\":2," SIZES ",\"hidden_act\":\"relu\"}");
    assert_string_equal(c.arch, "bert");
    assert_int_equal(c.activation, MODEL_RELU);
    assert_true(!c.causal && c.eps == 1e-12 && c.inner == 256);
    c = config_of(OF("albert", ",\"embedding_size\":32,\"num_hidden_groups\":2,"
                     "\"inner_group_num\":1"));
    assert_int_equal(c.embedding_width, 32);
    assert_int_equal(c.groups, 2);
}

static void check_inverse(const char *json, const double *want, int count)
{
    ModelConfig c = config_of(json);

    assert_int_equal(c.rotary, 2 * count);
    for (int t = 0; t < count; t++)
        if (!(fabs(c.inverse[t] - want[t]) <= 1e-14 * want[t]))
            fail_msg("%s: frequency %d is %.15g, expected %.15g", json, t, c.inverse[t], want[t]);
}

/* Expected: the equations in numpy. */
static void frequencies_are_scaled(void **state)
{
    static const double llama3[] = { 1, 0.45986329782677, 0.0976166326565209, 0.0121561559058259,
                                     0.00559016994374947, 0.00257071398574472,
                                     0.00118217701125397, 0.000543639819010245 };
    static const double yarn[] = { 1, 0.237170824512628, 0.05, 0.00790569415042095, 0.0025,
                                   0.000790569415042095, 0.00025, 7.90569415042095e-05 };
    static const double linear[] = { 0.25, 0.025 };

    (void)state;
    check_inverse(LLAMA(",\"rope_theta\":500,\"rope_scaling\":{\"rope_type\":\"llama3\","
                        "\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
                        "\"original_max_position_embeddings\":64}"), llama3, 8);
    check_inverse(LLAMA(",\"rope_parameters\":{\"rope_theta\":500,\"rope_type\":\"llama3\","
                        "\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
                        "\"original_max_position_embeddings\":64}"), llama3, 8);
    check_inverse(LLAMA(",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,"
                        "\"original_max_position_embeddings\":64}"), yarn, 8);
    check_inverse(LLAMA(",\"partial_rotary_factor\":0.25,\"rope_theta\":100,"
                        "\"rope_scaling\":{\"type\":\"linear\",\"factor\":4}"), linear, 2);
    assert_true(fabs(config_of(LLAMA(",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}"))
                     .rotary_scale - 1.138629436111989) < 1e-15);
    assert_true(config_of(LLAMA(",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,"
                                "\"attention_factor\":2}")).rotary_scale == 2);
    assert_true(config_of(LLAMA(",\"rope_scaling\":null")).inverse[0] == 1);
}

static void windows_are_those_of_all_layers(void **state)
{
    (void)state;
    assert_int_equal(config_of(OF("mistral", ",\"sliding_window\":8")).window, 8);
    assert_int_equal(config_of(OF("mistral", ",\"sliding_window\":null")).window, 0);
    assert_int_equal(config_of(LLAMA(",\"sliding_window\":8")).window, 0);
    assert_int_equal(config_of(OF("qwen2", ",\"sliding_window\":8")).window, 0);
    assert_int_equal(config_of(OF("qwen2", ",\"sliding_window\":8,\"use_sliding_window\":true,"
                                  "\"max_window_layers\":0")).window, 8);
    assert_int_equal(config_of(OF("qwen2", ",\"sliding_window\":8,\"use_sliding_window\":true,"
                                  "\"max_window_layers\":2")).window, 0);
    assert_int_equal(config_of(OF("qwen3", ",\"sliding_window\":8,\"layer_types\":"
                                  "[\"full_attention\",\"full_attention\"]")).window, 0);
    assert_int_equal(config_of(OF("qwen3", ",\"sliding_window\":8,\"layer_types\":"
                                  "[\"sliding_attention\",\"sliding_attention\"]")).window, 8);
    refuse_config(OF("qwen2", ",\"sliding_window\":8,\"use_sliding_window\":true,"
                     "\"max_window_layers\":1"), "max_window_layers of 1 of 2|alternate");
    refuse_config(OF("qwen3", ",\"layer_types\":[\"full_attention\",\"sliding_attention\"]"),
                  "layer_types|alternate");
    refuse_config(OF("qwen3", ",\"layer_types\":[\"linear_attention\"]"), "linear_attention");
}

static void the_pooling_of_sentences_is_read(void **state)
{
    static const char bert[] = OF("bert", ",\"type_vocab_size\":2");
    ModelConfig       c;
    Text              notes = { 0 };
    Error             err = ERROR_INIT;

    (void)state;
    assert_true(read_config(bert, "{\"pooling_mode_mean_tokens\":true}", &c, &notes, &err));
    assert_int_equal(c.pooling, 1);
    assert_true(read_config(bert, "{\"pooling_mode_cls_token\":true}", &c, &notes, &err));
    assert_int_equal(c.pooling, 2);
    assert_string_equal(text_str(&notes), "");
    assert_true(read_config(bert, "{\"pooling_mode_max_tokens\":true}", &c, &notes, &err));
    assert_int_equal(c.pooling, 0);
    assert_non_null(strstr(text_str(&notes), "ignored"));
    text_free(&notes);
}

static void what_is_not_covered_is_named(void **state)
{
    (void)state;
    refuse_config("{}", "model_type is missing");
    refuse_config("{\"model_type\":7}", "model_type is no text");
    refuse_config(OF("phi3", ""), "model_type|'phi3'|llama, mistral, qwen2");
    refuse_config(LLAMA(",\"num_local_experts\":8"), "num_local_experts|mixture of experts");
    refuse_config(LLAMA(",\"quantization_config\":{}"), "quantization_config|quantised");
    refuse_config(LLAMA(",\"attn_logit_softcapping\":50.0"), "attn_logit_softcapping");
    refuse_config(OF("bert", ",\"is_decoder\":true"), "is_decoder");
    refuse_config(OF("bert", ",\"position_embedding_type\":\"relative_key\""),
                  "position_embedding_type|'relative_key'|absolute");
    refuse_config(OF("albert", ",\"embedding_size\":8,\"inner_group_num\":2"), "inner_group_num");
    refuse_config(LLAMA(",\"hidden_act\":\"xielu\""), "hidden_act|'xielu'|silu");
    refuse_config(LLAMA(",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}"),
                  "'dynamic'|linear, llama3 and yarn");
    refuse_config(LLAMA(",\"rope_scaling\":{\"type\":\"longrope\",\"factor\":2}"), "'longrope'");
    refuse_config(LLAMA(",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,\"mscale\":1}"),
                  "mscale");
    refuse_config(LLAMA(",\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1}}"),
                  "full_attention|differs between layers");
}

static void bad_values_of_config_are_named(void **state)
{
    (void)state;
    refuse_config("{\"model_type\":\"llama\"}", "num_hidden_layers is missing");
    refuse_config(LLAMA(",\"num_key_value_heads\":3"), "4 heads|3 key and value heads");
    refuse_config(LLAMA(",\"num_key_value_heads\":0"), "num_key_value_heads is 0|1 to 1024");
    refuse_config(LLAMA(",\"num_key_value_heads\":\"2\""), "num_key_value_heads|whole number");
    refuse_config(LLAMA(",\"num_key_value_heads\":1.5"), "num_key_value_heads|whole number");
    refuse_config(LLAMA(",\"head_dim\":3"), "3 channels");
    refuse_config(LLAMA(",\"head_dim\":2048"), "head_dim is 2048|1 to 1024");
    refuse_config(LLAMA(",\"rms_norm_eps\":1"), "epsilon|1");
    refuse_config(LLAMA(",\"rms_norm_eps\":\"small\""), "rms_norm_eps is no number");
    refuse_config(LLAMA(",\"vocab_size\":0"), "vocab_size is 0");
    refuse_config(LLAMA(",\"rope_theta\":0"), "base of RoPE is 0");
    refuse_config(LLAMA(",\"partial_rotary_factor\":2"), "partial_rotary_factor is 2");
    refuse_config(LLAMA(",\"partial_rotary_factor\":0.1"), "RoPE turns 1 channels");
    refuse_config(LLAMA(",\"rope_scaling\":7"), "rope_scaling is no object");
    refuse_config(LLAMA(",\"rope_scaling\":{\"type\":\"linear\"}"), "factor is missing");
    refuse_config(LLAMA(",\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,"
                        "\"low_freq_factor\":4,\"high_freq_factor\":1,"
                        "\"original_max_position_embeddings\":64}"), "low_freq_factor is 4");
    refuse_config(LLAMA(",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"beta_slow\":64}"),
                  "beta_slow is 64");
    refuse_config("{\"model_type\":\"llama\",\"hidden_size\":64,\"intermediate_size\":256,"
                  "\"num_hidden_layers\":1025}", "num_hidden_layers is 1025|1 to 1024");
    refuse_config("{\"model_type\":\"llama\",\"hidden_size\":1e300,\"num_hidden_layers\":2}",
                  "hidden_size");
    refuse_config(OF("bert", ",\"num_attention_heads_\":1,\"hidden_size_\":1,"
                     "\"type_vocab_size\":2,\"layer_norm_eps\":0"), "epsilon|0");
}

/* ---- folders ----------------------------------------------------------------- */

/* A safetensors file of F32 tensors with the values 1, 2, 3 ... over their count. */
typedef struct Tensors {
    char    header[16384];
    uint8_t data[65536];
    int64_t length, size;
} Tensors;

static void add(Tensors *t, const char *name, int rows, int cols)
{
    int   count = (rows ? rows : 1) * cols;
    char  shape[32];
    float value;

    if (rows)
        snprintf(shape, sizeof(shape), "%d,%d", rows, cols);
    else
        snprintf(shape, sizeof(shape), "%d", cols);
    t->length += snprintf(t->header + t->length, sizeof(t->header) - (size_t)t->length,
                          "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":"
                          "[%lld,%lld]}", t->length ? "," : "", name, shape, (long long)t->size,
                          (long long)t->size + 4 * count);
    for (int i = 0; i < count; i++) {
        value = (float)(i + 1) / (float)count;
        put(t->data, &t->size, &value, 4);
    }
}

static void add_linear(Tensors *t, const char *name, int rows, int cols)
{
    char full[128];

    snprintf(full, sizeof(full), "%s.weight", name);
    add(t, full, rows, cols);
    snprintf(full, sizeof(full), "%s.bias", name);
    add(t, full, 0, rows ? rows : cols);
}

static void write_bytes(const char *folder, const char *name, const void *data, int64_t size)
{
    char  path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, (size_t)size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void write_text(const char *folder, const char *name, const char *text)
{
    write_bytes(folder, name, text, (int64_t)strlen(text));
}

static void write_tensors(const char *folder, const char *name, const Tensors *t)
{
    static uint8_t bytes[131072];
    int64_t        size = 0;

    put_u64(bytes, &size, (uint64_t)t->length + 2);
    put(bytes, &size, "{", 1);
    put(bytes, &size, t->header, t->length);
    put(bytes, &size, "}", 1);
    put(bytes, &size, t->data, t->size);
    write_bytes(folder, name, bytes, size);
}

static char folder[64];

static void remove_folder(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

static int new_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/attnscope-model-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return 0;
}

static int old_folder(void **state)
{
    (void)state;
    remove_folder();
    return 0;
}

static Model *opened(void)
{
    Error  err = ERROR_INIT;
    Model *m = model_open(folder, &err);

    if (!m)
        fail_msg("%s", err.text);
    return m;
}

static void refuse(const char *words)
{
    Error  err = ERROR_INIT;
    Model *m = model_open(folder, &err);

    if (m)
        fail_msg("was opened, but \"%s\" was expected", words);
    check_words(&err, words);
    assert_non_null(strstr(err.text, folder));
    assert_int_equal(error_exit_status(err.code), 2);
}

#define SMALL "\"hidden_size\":8,\"intermediate_size\":6,\"num_hidden_layers\":1,"                 \
              "\"num_attention_heads\":2,\"max_position_embeddings\":16"

static void add_named(Tensors *t, const char *prefix, const char *name, int rows, int cols)
{
    char full[128];

    snprintf(full, sizeof(full), "%s%s.weight", prefix, name);
    add(t, full, rows, cols);
}

static void llama_tensors(Tensors *t, const char *prefix)
{
    add_named(t, prefix, "embed_tokens", 5, 8);
    add_named(t, prefix, "layers.0.input_layernorm", 0, 8);
    add_named(t, prefix, "layers.0.self_attn.q_proj", 8, 8);
    add_named(t, prefix, "layers.0.self_attn.k_proj", 4, 8);
    add_named(t, prefix, "layers.0.self_attn.v_proj", 4, 8);
    add_named(t, prefix, "layers.0.self_attn.o_proj", 8, 8);
    add_named(t, prefix, "layers.0.post_attention_layernorm", 0, 8);
    add_named(t, prefix, "layers.0.mlp.gate_proj", 6, 8);
    add_named(t, prefix, "layers.0.mlp.up_proj", 6, 8);
    add_named(t, prefix, "layers.0.mlp.down_proj", 8, 6);
    add_named(t, prefix, "norm", 0, 8);
}

#define LLAMA_CONFIG "{\"model_type\":\"llama\"," SMALL ",\"num_key_value_heads\":1}"

static void a_prefix_may_be_there_or_not(void **state)
{
    (void)state;
    for (int with = 0; with < 2; with++) {
        Tensors t = { .length = 0 };
        Model  *m;

        llama_tensors(&t, with ? "model." : "");
        if (with)
            add(&t, "lm_head.weight", 5, 8);
        write_text(folder, "config.json", LLAMA_CONFIG);
        write_tensors(folder, "model.safetensors", &t);
        assert_true(model_is_model(folder));
        m = opened();
        assert_string_equal(m->format, "folder");
        assert_int_equal(m->config.tied, !with);
        assert_int_equal(m->config.vocab, 5);
        assert_int_equal(m->layer[0].down.rows, 8);
        assert_int_equal(m->layer[0].down.cols, 6);
        assert_int_equal(m->layer[0].q.unpermute, 0);
        assert_int_equal(m->type_count[WEIGHT_F32], 11 + with);
        model_close(m);
    }
}

static void gemma_adds_one_to_its_norms(void **state)
{
    Tensors t = { .length = 0 };
    Model  *m;

    (void)state;
    llama_tensors(&t, "model.");
    write_text(folder, "config.json",
               "{\"model_type\":\"gemma\"," SMALL ",\"num_key_value_heads\":1}");
    write_tensors(folder, "model.safetensors", &t);
    m = opened();
    assert_true(m->final_norm.weight[7] == 2 && m->layer[0].mlp_norm.weight[3] == 1.5f);
    model_close(m);
}

static void conv1d_is_read_transposed(void **state)
{
    Tensors t = { .length = 0 };
    Model  *m;
    float   row[8];

    (void)state;
    add(&t, "transformer.wte.weight", 5, 8);
    add(&t, "transformer.wpe.weight", 16, 8);
    add_linear(&t, "transformer.h.0.ln_1", 0, 8);
    add(&t, "transformer.h.0.attn.c_attn.weight", 8, 24);
    add(&t, "transformer.h.0.attn.c_attn.bias", 0, 24);
    add_linear(&t, "transformer.h.0.attn.c_proj", 8, 8);
    add_linear(&t, "transformer.h.0.ln_2", 0, 8);
    add(&t, "transformer.h.0.mlp.c_fc.weight", 8, 32);
    add(&t, "transformer.h.0.mlp.c_fc.bias", 0, 32);
    add(&t, "transformer.h.0.mlp.c_proj.weight", 32, 8);
    add(&t, "transformer.h.0.mlp.c_proj.bias", 0, 8);
    add_linear(&t, "transformer.ln_f", 0, 8);
    write_text(folder, "config.json", "{\"model_type\":\"gpt2\",\"n_embd\":8,\"n_layer\":1,"
               "\"n_head\":2,\"n_positions\":16}");
    write_tensors(folder, "model.safetensors", &t);
    m = opened();
    assert_int_equal(m->layer[0].up.rows, 32);
    assert_int_equal(m->layer[0].up.cols, 8);
    weight_read(&m->layer[0].k, 2, 1, row); /* columns 8 .. 15 of 24 */
    for (int i = 0; i < 8; i++)
        assert_true(row[i] == (float)(24 * i + 8 + 2 + 1) / (24 * 8));
    assert_true(m->layer[0].k_bias[2] == (float)11 / 24);
    weight_read(&m->layer[0].output, 3, 1, row);
    assert_true(row[1] == (float)(8 + 3 + 1) / 64);
    model_close(m);
}

/* gamma and beta in the embedding's norm, as in old checkpoints. */
static void bert_tensors(Tensors *t, const char *prefix)
{
    static const struct {
        const char *name;
        int         rows, cols;
    } list[] = { { "attention.self.query", 8, 8 }, { "attention.self.key", 8, 8 },
                 { "attention.self.value", 8, 8 }, { "attention.output.dense", 8, 8 },
                 { "attention.output.LayerNorm", 0, 8 }, { "intermediate.dense", 6, 8 },
                 { "output.dense", 8, 6 }, { "output.LayerNorm", 0, 8 } };
    char name[128];

    add_named(t, prefix, "embeddings.word_embeddings", 5, 8);
    add_named(t, prefix, "embeddings.position_embeddings", 16, 8);
    add_named(t, prefix, "embeddings.token_type_embeddings", 2, 8);
    snprintf(name, sizeof(name), "%sembeddings.LayerNorm.gamma", prefix);
    add(t, name, 0, 8);
    snprintf(name, sizeof(name), "%sembeddings.LayerNorm.beta", prefix);
    add(t, name, 0, 8);
    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
        snprintf(name, sizeof(name), "%sencoder.layer.0.%s", prefix, list[i].name);
        add_linear(t, name, list[i].rows, list[i].cols);
    }
}

static void a_masked_head_is_there_or_not(void **state)
{
    Tensors t = { .length = 0 };
    Model  *m;

    (void)state;
    bert_tensors(&t, "");
    write_text(folder, "config.json", "{" SMALL ",\"type_vocab_size\":2,\"vocab_size\":5}");
    write_tensors(folder, "model.safetensors", &t);
    m = opened();
    assert_int_equal(m->head.type, WEIGHT_NONE);
    assert_int_equal(m->head_dense.type, WEIGHT_NONE);
    assert_true(m->embedding_norm.bias[7] == 1);
    model_close(m);
    t = (Tensors){ .length = 0 };
    bert_tensors(&t, "bert.");
    add_linear(&t, "cls.predictions.transform.dense", 8, 8);
    add_linear(&t, "cls.predictions.transform.LayerNorm", 0, 8);
    add(&t, "cls.predictions.bias", 0, 5);
    write_tensors(folder, "model.safetensors", &t);
    m = opened();
    assert_int_equal(m->head.rows, 5);
    assert_int_equal(m->head_dense.rows, 8);
    assert_true(m->config.tied && m->head_bias[4] == 1 && m->head_norm.bias);
    assert_int_equal(m->head_activation, MODEL_GELU);
    model_close(m);
    write_text(folder, "config.json", "{" SMALL ",\"type_vocab_size\":2,\"vocab_size\":6}");
    refuse("embeddings.word_embeddings.weight has 5 rows, wanted 6");
}

/* Every token adds the first row of this table. */
static void a_table_has_a_row(void **state)
{
    Tensors t = { .length = 0 };

    (void)state;
    bert_tensors(&t, "");
    memcpy(strstr(t.header, "token_type_embeddings"), "other", 5);
    t.length += snprintf(t.header + t.length, sizeof(t.header) - (size_t)t.length,
                         ",\"embeddings.token_type_embeddings.weight\":{\"dtype\":\"F32\","
                         "\"shape\":[0,8],\"data_offsets\":[%lld,%lld]}", (long long)t.size,
                         (long long)t.size);
    write_text(folder, "config.json", "{" SMALL ",\"type_vocab_size\":2,\"vocab_size\":5}");
    write_tensors(folder, "model.safetensors", &t);
    refuse("embeddings.token_type_embeddings.weight has no rows");
}

static void albert_repeats_its_groups(void **state)
{
    static const char *const list[] = { "attention.query", "attention.key", "attention.value",
                                        "attention.dense" };
    Tensors t = { .length = 0 };
    char    name[128];
    Model  *m;

    (void)state;
    add(&t, "albert.embeddings.word_embeddings.weight", 5, 4);
    add(&t, "albert.embeddings.position_embeddings.weight", 16, 4);
    add(&t, "albert.embeddings.token_type_embeddings.weight", 2, 4);
    add_linear(&t, "albert.embeddings.LayerNorm", 0, 4);
    add_linear(&t, "albert.encoder.embedding_hidden_mapping_in", 8, 4);
    for (int g = 0; g < 2; g++) {
#define GROUP(rest) (snprintf(name, sizeof(name), "albert.encoder.albert_layer_groups.%d."         \
                              "albert_layers.0.%s", g, rest), name)
        for (size_t i = 0; i < 4; i++)
            add_linear(&t, GROUP(list[i]), 8, 8);
        add_linear(&t, GROUP("attention.LayerNorm"), 0, 8);
        add_linear(&t, GROUP("ffn"), 6, 8);
        add_linear(&t, GROUP("ffn_output"), 8, 6);
        add_linear(&t, GROUP("full_layer_layer_norm"), 0, 8);
#undef GROUP
    }
    write_text(folder, "config.json",
               "{\"model_type\":\"albert\",\"hidden_size\":8,\"intermediate_size\":6,"
               "\"num_hidden_layers\":5,\"num_attention_heads\":2,\"max_position_embeddings\":16,"
               "\"embedding_size\":4,\"num_hidden_groups\":2}");
    write_tensors(folder, "model.safetensors", &t);
    m = opened();
    assert_int_equal(m->map.rows, 8);
    assert_int_equal(m->map.cols, 4);
    for (int i = 1; i < 5; i++) /* floor(2 i / 5): 0 0 0 1 1 */
        assert_int_equal(m->layer[i].up.data == m->layer[i - 1].up.data, i != 3);
    model_close(m);
}

static void shards_are_one_model(void **state)
{
    Tensors first = { .length = 0 }, second = { .length = 0 };
    char    index[2048] = "{\"weight_map\":{\"embed_tokens.weight\":\"a.safetensors\"";
    Model  *m;

    (void)state;
    add(&first, "embed_tokens.weight", 5, 8);
    llama_tensors(&second, "model.");
    write_text(folder, "config.json", LLAMA_CONFIG);
    write_text(folder, "model.safetensors.index.json", strcat(index, "}}"));
    write_tensors(folder, "a.safetensors", &first);
    refuse("model.layers.0.input_layernorm.weight is missing");
    write_text(folder, "model.safetensors.index.json",
               "{\"weight_map\":{\"embed_tokens.weight\":\"a.safetensors\","
               "\"model.norm.weight\":\"b.safetensors\"}}");
    write_tensors(folder, "b.safetensors", &second);
    m = opened();
    assert_true(m->file_bytes > 4 * (5 * 8 + 8 * 8));
    model_close(m);
    write_text(folder, "model.safetensors.index.json",
               "{\"weight_map\":{\"embed_tokens.weight\":\"../a.safetensors\"}}");
    refuse("model.safetensors.index.json|../a.safetensors|not a file name");
}

static void folders_without_a_model_say_what_is_missing(void **state)
{
    Error   err = ERROR_INIT;
    Tensors t = { .length = 0 };

    (void)state;
    assert_false(model_is_model(folder));
    assert_null(model_open(folder, &err));
    assert_non_null(strstr(err.text, "config.json"));
    write_text(folder, "config.json", "{\"model_type\":");
    refuse("config.json: bad JSON|line 1");
    write_text(folder, "config.json", "[1]");
    refuse("config.json: is JSON, but no object");
    write_text(folder, "config.json", LLAMA_CONFIG);
    refuse("neither model.safetensors nor model.safetensors.index.json");
    write_text(folder, "pytorch_model.bin", "PK");
    refuse("pytorch_model.bin|pickle|convert it");
    write_text(folder, "model.safetensors", "");
    refuse("model.safetensors: byte 0");
    add(&t, "embed_tokens.weight", 5, 7);
    write_tensors(folder, "model.safetensors", &t);
    refuse("embed_tokens.weight has shape (5,7), wanted (5,8)");
}

static void types_that_are_not_read_are_named(void **state)
{
    Tensors t = { .length = 0 };
    char   *at;

    (void)state;
    llama_tensors(&t, "model.");
    at = strstr(t.header, "k_proj.weight\":{\"dtype\":\"F32\"");
    memcpy(strstr(at, "F32"), "I32", 3);
    write_text(folder, "config.json", LLAMA_CONFIG);
    write_tensors(folder, "model.safetensors", &t);
    refuse("self_attn.k_proj.weight is of type I32, which is not read");
}

static int begin(void **state)
{
    (void)state;
    arena = arena_new();
    return arena ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, new_folder, old_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_follow_the_family),
        cmocka_unit_test(frequencies_are_scaled),
        cmocka_unit_test(windows_are_those_of_all_layers),
        cmocka_unit_test(the_pooling_of_sentences_is_read),
        cmocka_unit_test(what_is_not_covered_is_named),
        cmocka_unit_test(bad_values_of_config_are_named),
        IN_FOLDER(a_prefix_may_be_there_or_not),
        IN_FOLDER(gemma_adds_one_to_its_norms),
        IN_FOLDER(conv1d_is_read_transposed),
        IN_FOLDER(a_masked_head_is_there_or_not),
        IN_FOLDER(a_table_has_a_row),
        IN_FOLDER(albert_repeats_its_groups),
        IN_FOLDER(shards_are_one_model),
        IN_FOLDER(folders_without_a_model_say_what_is_missing),
        IN_FOLDER(types_that_are_not_read_are_named),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
