/* test_model_cache.c -- the caches of real models, from their configurations. */
#include "check.h"

#include "model/cache.h"
#include "profile/stack.h"
#include "gguf_fixture.h"

#include <stdlib.h>
#include <string.h>

/* The keys that the cache depends on.  They were compared with what the models' makers publish:
 *
 *   Llama 3 8B, Llama 3.1 405B  models/sku_list.py of meta-llama/llama-models
 *   Mistral 7B v0.1             model_preset.py of mlc-ai/mlc-llm, which has its config.json
 *   Gemma 2 9B                  gemma/config.py of google/gemma_pytorch
 *   Gemma 3 27B                 the Gemma3Config of google/gemma-3-27b in the transformers'
 *                               converter of it; the pattern of layers: Gemma3TextConfig
 *   gpt-oss-120b                gpt_oss/torch/model.py of openai/gpt-oss
 *   DeepSeek-V3                 DeepseekV3Config of transformers: its defaults are this model's
 *   Qwen3-Next-80B-A3B          Qwen3NextConfig of transformers, likewise
 *   Qwen2.5-72B                 copies of its config.json
 *   GPT-2                       model_preset.py of mlc-ai/mlc-llm
 *
 * 70272, 327680 and 516096 bytes a token in bf16 are also what the makers of DeepSeek-V3 publish of
 * it, of Qwen2.5-72B and of Llama 3.1 405B (arXiv 2505.09343, Table 1: 70.272, 327.680 and 516.096
 * KB).  The bytes held are the products of these numbers, worked out by hand. */
static const struct {
    const char *model, *config, *layers;
    int64_t     n;
    double      token, held;
} models[] = {
    { "Llama 3 8B",
      "{'model_type':'llama','hidden_size':4096,'num_hidden_layers':32,'num_attention_heads':32,"
      "'num_key_value_heads':8}",
      "fullx32", 8192, 131072, 1073741824 },
    { "Llama 3.1 405B",
      "{'model_type':'llama','hidden_size':16384,'num_hidden_layers':126,"
      "'num_attention_heads':128,'num_key_value_heads':8}",
      "fullx126", 131072, 516096, 67645734912 },
    { "Mistral 7B v0.1",
      "{'model_type':'mistral','hidden_size':4096,'num_hidden_layers':32,'num_attention_heads':32,"
      "'num_key_value_heads':8,'sliding_window':4096}",
      "window(4096)x32", 32768, 0, 536870912 },
    { "Gemma 2 9B",
      "{'model_type':'gemma2','hidden_size':3584,'num_hidden_layers':42,'num_attention_heads':16,"
      "'num_key_value_heads':8,'head_dim':256,'sliding_window':4096}",
      "(window(4096),full)x21", 8192, 172032, 2113929216 },
    { "Gemma 3 27B", "@gemma3.json",
      "(window(1024)x5,full)x10,window(1024)x2", 131072, 81920, 11173625856 },
    { "gpt-oss-120b",
      "{'model_type':'gpt_oss','hidden_size':2880,'num_hidden_layers':36,'num_attention_heads':64,"
      "'num_key_value_heads':8,'head_dim':64,'sliding_window':128}",
      "(window(128),full)x18", 131072, 36864, 4836556800 },
    { "DeepSeek-V3",
      "{'model_type':'deepseek_v3','hidden_size':7168,'num_hidden_layers':61,"
      "'num_attention_heads':128,'num_key_value_heads':128,'kv_lora_rank':512,"
      "'qk_rope_head_dim':64,'n_routed_experts':256}",
      "fullx61", 131072, 70272, 9210691584 },
    { "Qwen3-Next-80B-A3B",
      "{'model_type':'qwen3_next','hidden_size':2048,'num_hidden_layers':48,"
      "'num_attention_heads':16,'num_key_value_heads':2,'head_dim':256,"
      "'linear_num_value_heads':32,'linear_key_head_dim':128,'linear_value_head_dim':128}",
      "(gated-deltanet(32,128,128)+conv(8192,4)x3,full)x12", 262144, 24576, 6519717888 },
    { "Qwen2.5-72B",
      "{'model_type':'qwen2','hidden_size':8192,'num_hidden_layers':80,'num_attention_heads':64,"
      "'num_key_value_heads':8,'sliding_window':131072,'use_sliding_window':false,"
      "'max_window_layers':80}",
      "fullx80", 32768, 327680, 10737418240 },
    { "GPT-2", "{'model_type':'gpt2','n_embd':768,'n_layer':12,'n_head':12}", "fullx12", 1024,
      36864, 37748736 },
};

/* "@NAME" is a file of tests/model. */
static json_t *config_root(const char *config)
{
    const char  *oracle = getenv("ATTNSCOPE_ORACLE");
    bool         file = *config == '@';
    json_error_t why;
    char         text[1024];
    json_t      *root;

    if (file)
        snprintf(text, sizeof(text), "%.900s/../model/%s", oracle ? oracle : "tests/oracle",
                 config + 1);
    else
        snprintf(text, sizeof(text), "%s", config);
    for (char *c = text; !file && *c; c++)
        *c = *c == '\'' ? '"' : *c;
    root = file ? json_load_file(text, 0, &why) : json_loads(text, 0, &why);
    if (!root)
        fail_msg("%s: %s", config, why.text);
    return root;
}

static bool read_config(const char *config, ModelCache *out, Error *err)
{
    json_t *root = config_root(config);
    bool    ok = model_cache_from_json(root, out, err);

    json_decref(root);
    return ok;
}

static StackShape shape_of(const ModelCache *cache)
{
    return (StackShape){ .heads = cache->heads, .kv_heads = cache->kv_heads, .dim = cache->dim,
                         .rank = cache->rank, .rope = cache->rope, .bits = 16 };
}

TEST(caches_of_real_configurations)
{
    Stack *stack = calloc(1, sizeof(*stack));

    assert_non_null(stack);
    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
        ModelCache cache;
        StackShape shape;
        StackCost  cost;
        Text       layers = { 0 };
        Error      err = ERROR_INIT;

        if (!read_config(models[i].config, &cache, &err) ||
            !stack_parse(text_str(&cache.layers), stack, &err))
            fail_msg("%s: %s", models[i].model, err.text);
        shape = shape_of(&cache);
        assert_true(stack_shape_check(&shape, &err));
        stack_text(stack, &layers);
        cost = stack_cost(stack, &shape, models[i].n);
        if (strcmp(text_str(&layers), models[i].layers) != 0 ||
            cost.token_bytes != models[i].token || cost.cache_bytes != models[i].held)
            fail_msg("%s: %s, %.0f bytes a token, %.0f held", models[i].model, text_str(&layers),
                     cost.token_bytes, cost.cache_bytes);
        text_free(&layers);
        model_cache_free(&cache);
    }
    free(stack);
}

static void check_layers(const char *config, const char *expected)
{
    ModelCache cache;
    Error      err = ERROR_INIT;

    if (!read_config(config, &cache, &err))
        fail_msg("%s: %s", config, err.text);
    assert_string_equal(text_str(&cache.layers), expected);
    model_cache_free(&cache);
}

#define SIZES "'hidden_size':64,'num_hidden_layers':3,'num_attention_heads':4"

TEST(layers_of_a_configuration)
{
    check_layers("{'model_type':'mistral'," SIZES ",'sliding_window':null}", "full,full,full");
    check_layers("{'model_type':'qwen2'," SIZES ",'sliding_window':8,'max_window_layers':1,"
                 "'use_sliding_window':true}", "full,window(8),window(8)");
    check_layers("{'model_type':'qwen3'," SIZES ",'sliding_window':8,'max_window_layers':0}",
                 "full,full,full");
    check_layers("{'model_type':'gemma3_text'," SIZES ",'sliding_window':8,"
                 "'sliding_window_pattern':2}", "window(8),full,window(8)");
    check_layers("{'model_type':'qwen3_next'," SIZES ",'full_attention_interval':3,"
                 "'linear_num_value_heads':2,'linear_key_head_dim':5}",
                 "gated-deltanet(2,5,128)+conv(416,4),gated-deltanet(2,5,128)+conv(416,4),full");
    check_layers("{'model_type':'llama'," SIZES ",'sliding_window':8,'layer_types':"
                 "['sliding_attention','full_attention','linear_attention'],"
                 "'linear_num_value_heads':2,'linear_key_head_dim':5,'linear_value_head_dim':6}",
                 "window(8),full,state(2,5,6)");
}

/* A model of pictures, too, leaves out what its text model has by default. */
TEST(a_text_model_has_its_defaults)
{
    ModelCache cache;
    Error      err = ERROR_INIT;

    assert_true(read_config("{'model_type':'gemma3','text_config':{'hidden_size':2560,"
                            "'num_hidden_layers':34,'sliding_window':1024}}", &cache, &err));
    assert_int_equal(cache.heads, 8);
    assert_int_equal(cache.kv_heads, 4);
    assert_int_equal(cache.dim, 256);
    model_cache_free(&cache);
}

TEST(wrong_configurations_name_their_fault)
{
    static const char *const wrong[][2] = {
        { "{}", "model_type is missing" },
        { "{'model_type':'mamba'}", "model_type is 'mamba', of which the layers are not known" },
        { "{'model_type':'bert'}", "bert is an encoder: it writes no text, so it keeps no cache" },
        { "{'model_type':'llama'}", "num_hidden_layers is missing" },
        { "{'model_type':'llama','num_hidden_layers':0}", "num_hidden_layers is 0, wanted 1" },
        { "{'model_type':'llama','num_hidden_layers':'x'}", "num_hidden_layers is no whole" },
        { "{'model_type':'llama','num_hidden_layers':3,'num_attention_heads':4}",
          "neither head_dim nor hidden_size" },
        { "{'model_type':'llama','num_hidden_layers':3,'num_attention_heads':3,'hidden_size':64}",
          "64 channels cannot be shared by 3 heads" },
        { "{'model_type':'llama'," SIZES ",'num_key_value_heads':3}", "4 heads cannot share 3" },
        { "{'model_type':'llama'," SIZES ",'layer_types':['full_attention']}", "no list of 3" },
        { "{'model_type':'llama'," SIZES ",'layer_types':['a','b','c']}", "layers of 'a'" },
        { "{'model_type':'llama'," SIZES ",'layer_types':['sliding_attention','b','c']}",
          "sliding_window is missing" },
        { "{'model_type':'qwen2'," SIZES ",'sliding_window':8,'use_sliding_window':1}",
          "use_sliding_window is neither" },
        { "{'model_type':'deepseek_v3'," SIZES "}", "kv_lora_rank is missing" },
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        ModelCache cache;
        Error      err = ERROR_INIT;

        assert_false(read_config(wrong[i][0], &cache, &err));
        if (!strstr(err.text, wrong[i][1]) || strncmp(err.text, "config.json: ", 13) != 0)
            fail_msg("%s: %s", wrong[i][0], err.text);
        model_cache_free(&cache);
    }
}

/* A GGUF file with these keys of the architecture, and no tensor. */
static bool read_gguf(const char *arch, const char *const *keys, const uint32_t *values,
                      ModelCache *out, Error *err)
{
    static Writer w;
    static Bytes  b;
    char          path[64], name[128];
    int           file;
    bool          ok;

    w = (Writer){ 0 };
    key_text(&w, "general.architecture", arch);
    for (int i = 0; keys[i]; i++) {
        snprintf(name, sizeof(name), "%s.%s", arch, keys[i]);
        key_u32(&w, name, values[i]);
    }
    gguf_bytes(&w, &b);
    ok = model_cache_read(memory_file(b.data, b.size, &file, path), out, err);
    close(file);
    return ok;
}

#define GGUF_SIZES                                                                             \
    "block_count", "attention.head_count", "attention.head_count_kv", "embedding_length",      \
        "attention.key_length"

/* Sizes of the makers' files of Gemma 2 9B, Gemma 3 27B and gpt-oss-120b; DeepSeek-V3's file says
 * what a head has with the latent, which plays no part. */
TEST(windows_of_files_that_are_not_run)
{
    static const char *const keys[] = { GGUF_SIZES, "attention.sliding_window", NULL };
    static const char *const latent[] = { GGUF_SIZES, "attention.kv_lora_rank",
                                          "rope.dimension_count", NULL };
    static const struct {
        const char        *arch;
        const char *const *keys;
        uint32_t           values[8];
        const char        *config; /* of models[] */
    } files[] = {
        { "gemma2", keys, { 42, 16, 8, 3584, 256, 4096 }, "Gemma 2 9B" },
        { "gemma3", keys, { 62, 32, 16, 5376, 128, 1024 }, "Gemma 3 27B" },
        { "gpt-oss", keys, { 36, 64, 8, 2880, 64, 128 }, "gpt-oss-120b" },
        { "deepseek2", latent, { 61, 128, 1, 7168, 576, 512, 64 }, "DeepSeek-V3" },
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        ModelCache file = { 0 }, json = { 0 };
        Error      err = ERROR_INIT;
        size_t     at = 0;

        while (strcmp(models[at].model, files[i].config) != 0)
            at++;
        if (!read_gguf(files[i].arch, files[i].keys, files[i].values, &file, &err) ||
            !read_config(models[at].config, &json, &err))
            fail_msg("%s: %s", files[i].arch, err.text);
        assert_string_equal(text_str(&file.layers), text_str(&json.layers));
        assert_int_equal(file.heads, json.heads);
        assert_int_equal(file.kv_heads, json.kv_heads);
        assert_int_equal(file.rank, json.rank);
        assert_int_equal(file.rope, json.rope);
        assert_true(file.rank || file.dim == json.dim);
        model_cache_free(&file);
        model_cache_free(&json);
    }
}

TEST(wrong_files_that_are_not_run_name_their_key)
{
    static const char *const keys[] = { "block_count", "attention.head_count",
                                        "attention.head_count_kv", NULL };
    ModelCache cache;
    Error      err = ERROR_INIT;

    assert_false(read_gguf("gemma3", keys, (uint32_t[]){ 3, 4, 2 }, &cache, &err));
    assert_non_null(strstr(err.text, "key gemma3.embedding_length is missing"));
    model_cache_free(&cache);
}

SUITE(NULL, NULL)
