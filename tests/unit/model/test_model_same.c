/* test_model_same.c -- models of the folder ATTNSCOPE_MODELS open, and those that are there as a
 * file and as a folder are the same.
 *
 * SmolLM2-135M-Instruct.Q4_1.gguf, all-MiniLM-L6-v2 and rxnmapper as published; tiny: random ones
 * of every family.  What is not there is skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <math.h>

#include "model/model.h"

static void models_of_the_machine_open(void **state)
{
    static const struct {
        const char *name, *arch;
        int64_t     layers, width, heads, kv_heads, head_dim, vocab;
    } models[] = {
        { "SmolLM2-135M-Instruct.Q4_1.gguf", "llama", 30, 576, 9, 3, 64, 49152 },
        { "all-MiniLM-L6-v2", "bert", 6, 384, 12, 12, 32, 30522 },
        { "rxnmapper", "albert", 12, 256, 8, 8, 32, 591 },
        { "tiny/llama.gguf", "llama", 2, 64, 4, 2, 16, 380 },
        { "tiny/qwen2.gguf", "qwen2", 2, 64, 4, 2, 16, 380 },
        { "tiny/qwen3.gguf", "qwen3", 2, 64, 4, 2, 32, 380 },
        { "tiny/gemma.gguf", "gemma", 2, 64, 4, 1, 32, 380 },
        { "tiny/gpt2.gguf", "gpt2", 2, 64, 4, 4, 16, 380 },
        { "tiny/bert.gguf", "bert", 2, 64, 4, 4, 16, 156 },
        { "tiny/hf-llama", "llama", 2, 64, 4, 2, 16, 380 },
        { "tiny/hf-mistral", "mistral", 2, 64, 4, 2, 24, 380 },
        { "tiny/hf-qwen2", "qwen2", 2, 64, 4, 2, 16, 380 },
        { "tiny/hf-qwen3", "qwen3", 2, 64, 4, 2, 32, 380 },
        { "tiny/hf-gemma", "gemma", 2, 64, 4, 1, 32, 380 },
        { "tiny/hf-gpt2", "gpt2", 2, 64, 4, 4, 16, 380 },
        { "tiny/hf-bert", "bert", 2, 64, 4, 4, 16, 156 },
        { "tiny/hf-albert", "albert", 4, 64, 4, 4, 16, 156 },
    };
    const char *folder = getenv("ATTNSCOPE_MODELS");

    (void)state;
    if (!folder)
        printf("SKIPPED models of the machine: ATTNSCOPE_MODELS names no folder\n");
    for (size_t i = 0; folder && i < sizeof(models) / sizeof(*models); i++) {
        char   path[1024];
        Error  err = ERROR_INIT;
        Model *m;

        snprintf(path, sizeof(path), "%s/%s", folder, models[i].name);
        if (access(path, R_OK) != 0) {
            printf("SKIPPED %s: not in ATTNSCOPE_MODELS\n", models[i].name);
            continue;
        }
        m = model_open(path, &err);
        if (!m)
            fail_msg("%s", err.text);
        assert_string_equal(m->config.arch, models[i].arch);
        assert_int_equal(m->config.layers, models[i].layers);
        assert_int_equal(m->config.width, models[i].width);
        assert_int_equal(m->config.heads, models[i].heads);
        assert_int_equal(m->config.kv_heads, models[i].kv_heads);
        assert_int_equal(m->config.head_dim, models[i].head_dim);
        assert_int_equal(m->config.vocab, models[i].vocab);
        model_close(m);
    }
}

/* ---- the same model as a file and as a folder --------------------------------- */

/* Correlation of the two matrices' values. */
static double correlation(const Weight *a, const Weight *b)
{
    size_t count = (size_t)(a->rows * a->cols);
    float *x = malloc(count * sizeof(*x)), *y = malloc(count * sizeof(*y));
    double xx = 0, yy = 0, xy = 0;

    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->cols, b->cols);
    weight_read(a, 0, a->rows, x);
    weight_read(b, 0, b->rows, y);
    for (size_t i = 0; i < count; i++) {
        xx += (double)x[i] * (double)x[i];
        yy += (double)y[i] * (double)y[i];
        xy += (double)x[i] * (double)y[i];
    }
    free(x);
    free(y);
    return count ? xy / sqrt(xx * yy) : 1;
}

static void check_same(const Weight *a, const Weight *b, double least)
{
    double found;

    assert_int_equal(a->type == WEIGHT_NONE, b->type == WEIGHT_NONE);
    if (a->type == WEIGHT_NONE)
        return;
    found = correlation(a, b);
    if (!(found > least))
        fail_msg("correlation %.9f, expected above %g", found, least);
}

static void check_vector(const float *a, const float *b, int64_t count)
{
    assert_int_equal(a == NULL, b == NULL);
    for (int64_t i = 0; a && i < count; i++)
        assert_true(fabsf(a[i] - b[i]) <= 1e-6f);
}

/* q and k are quantised with an error of a percent; random blocks are not compared. */
static void check_models(const Model *a, const Model *b, bool quantised)
{
    double least = quantised ? 0.99 : 0.999999;
    bool   folder_has_head = a->config.causal;

    check_same(&a->embedding, &b->embedding, least);
    if (folder_has_head && !quantised)
        check_same(&a->head, &b->head, least);
    check_vector(a->final_norm.weight, b->final_norm.weight, a->config.width);
    for (int64_t i = 0; i < a->config.layers; i++) {
        const ModelLayer *x = &a->layer[i], *y = &b->layer[i];
        int64_t           rows = a->config.kv_heads * a->config.head_dim;

        check_vector(x->attention_norm.weight, y->attention_norm.weight, a->config.width);
        check_vector(x->mlp_norm.bias, y->mlp_norm.bias, a->config.width);
        check_vector(x->k_bias, y->k_bias, rows);
        check_vector(x->k_norm, y->k_norm, a->config.head_dim);
        if (quantised && i)
            continue;
        check_same(&x->q, &y->q, least);
        check_same(&x->k, &y->k, least);
        check_same(&x->v, &y->v, least);
        if (quantised)
            continue;
        check_same(&x->output, &y->output, least);
        check_same(&x->gate, &y->gate, least);
        check_same(&x->up, &y->up, least);
        check_same(&x->down, &y->down, least);
    }
    for (int64_t t = 0; t < a->config.rotary / 2; t++)
        assert_true(fabs(a->config.inverse[t] / b->config.inverse[t] - 1) < 1e-6);
}

static void a_file_holds_what_its_folder_holds(void **state)
{
    static const char *const names[] = { "llama", "qwen2", "qwen3", "gemma", "gpt2", "bert" };
    const char *folder = getenv("ATTNSCOPE_MODELS");

    (void)state;
    for (size_t i = 0; folder && i < sizeof(names) / sizeof(*names); i++) {
        char   path[1024];
        Error  err = ERROR_INIT;
        Model *file, *hf;

        snprintf(path, sizeof(path), "%s/tiny/%s.gguf", folder, names[i]);
        if (access(path, R_OK) != 0)
            continue;
        file = model_open(path, &err);
        snprintf(path, sizeof(path), "%s/tiny/hf-%s", folder, names[i]);
        hf = model_open(path, &err);
        if (!file || !hf)
            fail_msg("%s", err.text);
        check_models(file, hf, i == 0);
        model_close(file);
        model_close(hf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_of_the_machine_open),
        cmocka_unit_test(a_file_holds_what_its_folder_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
