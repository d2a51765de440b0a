/* test_input_synthetic.c -- the generators make the structure they promise. */
#include "input/generators.h"
#include "input_fixture.h"

static Input *make(const char *spec)
{
    Error  err = ERROR_INIT;
    Input *in = input_load(spec, NULL, &err);

    if (!in)
        fail_msg("%s: %s", spec, err.text);
    return in;
}

/* Full attention of head 0, row-major [n,n]; freed by the caller. */
static double *attention(const Input *in)
{
    int64_t      n = in->n, d = in->d;
    const float *q = tensor_f32(&in->q), *k = tensor_f32(&in->k);
    double      *w = malloc((size_t)(n * n) * sizeof(*w));

    assert_non_null(w);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;

        for (int64_t j = 0; j < n; j++) {
            double s = 0;

            for (int64_t c = 0; c < d; c++)
                s += (double)q[i * d + c] * (double)k[j * d + c];
            sum += w[i * n + j] = exp(s / sqrt((double)d));
        }
        for (int64_t j = 0; j < n; j++)
            w[i * n + j] /= sum;
    }
    return w;
}

typedef bool (*Expected)(int64_t i, int64_t j, int64_t n);

static bool after_the_same_word(int64_t i, int64_t j, int64_t n)
{
    return j > 0 && (j - 1) % (n / 2) == i % (n / 2);
}

static bool same_word(int64_t i, int64_t j, int64_t n)
{
    return i % (n / 4) == j % (n / 4);
}

static bool one_before(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return j == i - 1 || i == 0;
}

static bool nearby(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return llabs(i - j) <= 16;
}

static bool near_in_the_plane(int64_t i, int64_t j, int64_t n)
{
    int64_t width = (int64_t)floor(sqrt((double)n));

    return hypot((double)(i / width - j / width), (double)(i % width - j % width)) <= 4;
}

static bool same_block(int64_t i, int64_t j, int64_t n)
{
    return i / (n / 8) == j / (n / 8);
}

static bool its_delimiter(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return j == i / 8 * 8;
}

static bool the_first(int64_t i, int64_t j, int64_t n)
{
    (void)i, (void)n;
    return j == 0;
}

TEST(promised_structure_is_there)
{
    static const struct {
        const char *spec;
        Expected    expected;
    } cases[] = {
        { "synthetic:induction(n=64)", after_the_same_word },
        { "synthetic:copy(n=64,seed=9)", same_word },
        { "synthetic:previous(n=61)", one_before },
        { "synthetic:local", nearby },
        { "synthetic:grid(n=64)", near_in_the_plane },
        { "synthetic:blocks(n=48, d=32)", same_block },
        { "synthetic:delimiter(n=64)", its_delimiter },
        { "synthetic:sink(n=64)", the_first },
    };

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        Input  *in = make(cases[c].spec);
        double *w = attention(in);

        for (int64_t i = 0; i < in->n; i++) {
            double mass = 0;

            for (int64_t j = 0; j < in->n; j++)
                if (cases[c].expected(i, j, in->n))
                    mass += w[i * in->n + j];
            if (!(mass >= 0.9))
                fail_msg("%s, query %lld: %g", cases[c].spec, (long long)i, mass);
        }
        free(w);
        input_free(in);
    }
}

TEST(uniform_is_uniform)
{
    Input  *in = make("synthetic:uniform(n=37)");
    double *w = attention(in);

    for (int i = 0; i < 37 * 37; i++)
        assert_true(fabs(w[i] * 37 - 1) <= 1e-6);
    free(w);
    input_free(in);
}

TEST(the_needle_is_found)
{
    Input  *in = make("synthetic:needle(n=80, at=5, queries=3, heads=2)");
    double *w = attention(in);

    for (int64_t i = 77; i < 80; i++)
        assert_true(w[i * 80 + 5] >= 0.95);
    assert_string_equal(in->q_tokens[5], "needle");
    assert_string_equal(in->q_tokens[79], "?");
    free(w);
    input_free(in);
}

TEST(shuffled_blocks_look_at_one_block_each)
{
    Input  *in = make("synthetic:blocks(n=64, block=8, shuffle=1, seed=1)");
    double *w = attention(in);
    int     seen = 0, moved = 0;

    for (int b = 0; b < 8; b++)
        for (int c = 0; c < 8; c++) {
            double mass = 0;

            for (int j = 0; j < 8; j++)
                mass += w[8 * b * 64 + 8 * c + j];
            if (mass >= 0.95) {
                assert_false(seen >> c & 1);
                seen |= 1 << c;
                moved += b != c;
            }
        }
    assert_int_equal(seen, 255);
    assert_true(moved > 0);
    free(w);
    input_free(in);
}

TEST(clusters_are_scattered)
{
    Input  *in = make("synthetic:clusters(n=96, clusters=4)");
    double *w = attention(in);
    double  mass = 0;
    int     changes = 0;

    for (int i = 1; i < 96; i++)
        changes += strcmp(in->q_tokens[i - 1], in->q_tokens[i]) != 0;
    for (int i = 0; i < 96; i++)
        for (int j = 0; j < 96; j++)
            if (strcmp(in->q_tokens[i], in->q_tokens[j]) == 0)
                mass += w[i * 96 + j] / 96;
    assert_true(mass >= 0.9);
    assert_true(changes >= 48);
    free(w);
    input_free(in);
}

TEST(normal_numbers_are_normal)
{
    Input       *in = make("synthetic:normal(n=300, heads=8, d=32)");
    const float *v = tensor_f32(&in->v);
    int64_t      count = tensor_count(&in->v);
    double       mean = 0, square = 0;

    for (int64_t i = 0; i < count; i++) {
        mean += (double)v[i] / (double)count;
        square += (double)v[i] * (double)v[i] / (double)count;
    }
    assert_true(fabs(mean) <= 0.02);
    assert_true(fabs(square - 1) <= 0.03);
    assert_memory_not_equal(in->q.data, in->k.data, 64);
    assert_memory_equal(tensor_f32(&in->x) + 32, v + 300 * 32, 32 * 4); /* head 1, position 0 */
    input_free(in);
}

/* The last tokens ask alone: their queries, all keys, and no x. */
TEST(few_queries_stand_at_the_end)
{
    Input *all = make("synthetic:normal(n=7, heads=2, d=4)");
    Input *in = make("synthetic:normal(n=7, heads=2, d=4, queries=3)");
    Input *again = make(in->name), *whole = make("synthetic:normal(n=7, heads=2, d=4, queries=7)");

    assert_true(in->n == 3 && in->m == 7 && in->q.shape[1] == 3 && !in->x.data);
    for (int h = 0; h < 2; h++)
        assert_memory_equal(tensor_f32(&in->q) + h * 3 * 4,
                            tensor_f32(&all->q) + (h * 7 + 4) * 4, 3 * 4 * sizeof(float));
    assert_memory_equal(in->k.data, all->k.data, 2 * 7 * 4 * sizeof(float));
    assert_non_null(strstr(in->name, ", queries=3)"));
    assert_string_equal(again->sha256, in->sha256);
    assert_string_equal(whole->name, all->name); /* goes without saying */
    input_free(whole);
    input_free(again);
    input_free(in);
    input_free(all);
}

/* Query heads keep their numbers; k and v are those of fewer heads, and x what each head sees. */
TEST(query_heads_share_keys_and_values)
{
    Input *own = make("synthetic:normal(n=7, heads=6, d=4)");
    Input *in = make("synthetic:normal(n=7, heads=6, d=4, kv_heads=2)");
    Input *again = make(in->name);

    assert_true(in->heads == 6 && in->q.shape[0] == 6 && in->k.shape[0] == 2);
    assert_true(in->v.shape[0] == 2 && in->x.shape[1] == 24);
    assert_memory_equal(in->q.data, own->q.data, 6 * 7 * 4 * sizeof(float));
    assert_memory_equal(in->k.data, own->k.data, 2 * 7 * 4 * sizeof(float));
    for (int h = 0; h < 6; h++)
        assert_memory_equal(tensor_f32(&in->x) + h * 4, tensor_f32(&in->v) + h / 3 * 7 * 4, 16);
    assert_non_null(strstr(in->name, ", kv_heads=2)"));
    assert_string_equal(again->sha256, in->sha256);
    assert_string_not_equal(own->sha256, in->sha256);
    assert_null(strstr(own->name, "kv_heads"));
    input_free(again);
    again = make("synthetic:normal(n=7, heads=6, d=4, kv_heads=6)");
    assert_string_equal(again->name, own->name); /* goes without saying */
    input_free(again);
    input_free(in);
    input_free(own);
}

TEST(shared_heads_divide_the_query_heads)
{
    Error err = ERROR_INIT;

    assert_null(input_load("synthetic:normal(heads=6, kv_heads=4)", NULL, &err));
    assert_non_null(strstr(err.text, "kv_heads must divide heads = 6, got 4"));
    assert_null(input_load("synthetic:blocks(heads=6, kv_heads=2)", NULL, &err));
    assert_non_null(strstr(err.text, "kv_heads"));
}

TEST(the_name_makes_the_same_input)
{
    for (const InputGenerator *g = input_generators(); g->name; g++) {
        InputChoice choice = { .n = 23, .d = 6, .heads = 2, .seed = 18446744073709551615u };
        char        spec[64];
        Error       err = ERROR_INIT;
        Input      *in, *again;

        snprintf(spec, sizeof(spec), "synthetic:%s", g->name);
        in = input_load(spec, &choice, &err);
        if (!in)
            fail_msg("%s", err.text);
        assert_int_equal(in->n, 23);
        assert_int_equal(in->d, 6);
        assert_int_equal(in->heads, 2);
        assert_non_null(strstr(in->name, "seed=18446744073709551615"));
        assert_string_equal(in->kind, "synthetic");
        assert_non_null(in->note);
        again = make(in->name);
        assert_string_equal(in->name, again->name);
        assert_string_equal(in->sha256, again->sha256);
        assert_memory_equal(in->q.data, again->q.data, 23 * 6 * 2 * 4);
        assert_memory_equal(in->k.data, again->k.data, 23 * 6 * 2 * 4);
        assert_memory_equal(in->v.data, again->v.data, 23 * 6 * 2 * 4);
        for (int64_t i = 0; i < tensor_count(&in->q); i++)
            assert_true(isfinite(tensor_f32(&in->q)[i]) && isfinite(tensor_f32(&in->k)[i]) &&
                        isfinite(tensor_f32(&in->v)[i]));
        input_free(in);
        input_free(again);
    }
}

TEST(smallest_sizes_work)
{
    for (const InputGenerator *g = input_generators(); g->name; g++)
        for (int n = 1; n <= 3; n++) {
            char   spec[64];
            Input *in;

            snprintf(spec, sizeof(spec), "synthetic:%s(n=%d,d=%d)", g->name, n, 4 - n);
            in = make(spec);
            assert_int_equal(in->n, n);
            input_free(in);
        }
}

static void refuse_spec(const char *spec, ErrorCode code, const char *words)
{
    Error  err = ERROR_INIT;
    char   copy[256], *at, *word;

    assert_null(input_load(spec, NULL, &err));
    assert_int_equal(err.code, code);
    snprintf(copy, sizeof(copy), "%s", words);
    for (word = strtok_r(copy, "|", &at); word; word = strtok_r(NULL, "|", &at))
        if (!strstr(err.text, word))
            fail_msg("\"%s\" is not in: %s", word, err.text);
}

TEST(bad_specs_are_refused)
{
    refuse_spec("synthetic:inducton", ERR_USAGE, "inducton|nearest: induction|needle, ");
    refuse_spec("synthetic:", ERR_USAGE, "normal");
    refuse_spec("synthetic:blocks(sede=1)", ERR_USAGE, "sede|nearest: seed|shuffle=0");
    refuse_spec("synthetic:blocks(=1)", ERR_USAGE, "no argument");
    refuse_spec("synthetic:blocks(n)", ERR_USAGE, "n must be a number");
    refuse_spec("synthetic:blocks(n=x)", ERR_USAGE, "got \"x\"");
    refuse_spec("synthetic:blocks(n=-4)", ERR_USAGE, "-4");
    refuse_spec("synthetic:blocks(n=0)", ERR_USAGE, "at least 1");
    refuse_spec("synthetic:blocks(n=nan)", ERR_USAGE, "nan");
    refuse_spec("synthetic:blocks(n=2.5)", ERR_USAGE, "whole");
    refuse_spec("synthetic:blocks(n=8,n=9)", ERR_USAGE, "twice");
    refuse_spec("synthetic:blocks(n=8,block=9)", ERR_USAGE, "at most n = 8|9");
    refuse_spec("synthetic:blocks(n=8", ERR_USAGE, "')'");
    refuse_spec("synthetic:blocks(seed=18446744073709551616)", ERR_USAGE, "2^64");
    refuse_spec("synthetic:blocks(n=1000000000000, d=1000000000000)", ERR_NOMEM, "limit");
}

static void expect_reseeded(const char *spec, const char *wanted)
{
    Text text = { 0 };
    bool own = input_reseeded(spec, 18446744073709551615u, &text);

    CHECK(own == (wanted != NULL) && !strcmp(text_str(&text), wanted ? wanted : ""), "%s: %s", spec,
          text_str(&text));
    text_free(&text);
}

TEST(a_seed_in_a_spec_is_replaced)
{
    expect_reseeded("synthetic:blocks(seed=3)", "synthetic:blocks(seed=18446744073709551615)");
    expect_reseeded("synthetic:copy( n=8, seed = 3 , d=4 )",
                    "synthetic:copy( n=8, seed = 18446744073709551615 , d=4 )");
    expect_reseeded("synthetic:blocks", NULL);
    expect_reseeded("synthetic:blocks(n=8)", NULL);
    expect_reseeded("synthetic:blocks(seed=3", NULL);
    expect_reseeded("synthetic:blocks)seed=3(", NULL);
    expect_reseeded("file(seed=3).npz", NULL);
    expect_reseeded("-", NULL);
}

TEST(memory_limits_are_ordinary_errors)
{
    for (int64_t limit = 1; limit < 30000; limit += 97) {
        InputChoice choice = { .max_bytes = limit };
        Error       err = ERROR_INIT;
        Input      *in = input_load("synthetic:document(n=20,d=16,heads=3)", &choice, &err);

        assert_true(in || err.code == ERR_NOMEM);
        input_free(in);
    }
}

static void one_item(void *context, int64_t item, int worker)
{
    (void)worker;
    ((int *)context)[item]++;
}

TEST(nothing_is_an_input)
{
    InputChoice choice = { .n = 12, .heads = 3 };
    Input      *in = input_load("-", &choice, NULL);
    int         visits[40] = { 0 };

    assert_non_null(in);
    assert_int_equal(in->n, 12);
    assert_int_equal(in->m, 12);
    assert_int_equal(in->heads, 3);
    assert_null(in->q.data);
    input_free(in);
    generate_parallel(40, one_item, visits);
    for (int i = 0; i < 40; i++)
        assert_int_equal(visits[i], 1);
}

/* Every generator, and the reading of a file, ends soon after a cancel. */
TEST(a_load_that_nobody_waits_for_ends)
{
    atomic_bool cancel = true;
    InputChoice choice = { .cancel = &cancel };

    for (const InputGenerator *g = input_generators(); g->name; g++) {
        char  spec[80];
        Error err = ERROR_INIT;

        snprintf(spec, sizeof(spec), "synthetic:%s", g->name);
        assert_null(input_load(spec, &choice, &err));
        assert_int_equal(err.code, ERR_CANCELLED);
    }
    assert_null(input_load("samples/induction.npz", &choice, NULL));
    atomic_store(&cancel, false);
    input_free(make("synthetic:normal"));
}

SUITE(NULL, NULL)
