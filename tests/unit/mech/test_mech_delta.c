/* test_mech_delta.c -- states that are corrected: forms agree, which is a special case of which,
 * and what a rewritten key leaves behind. */
#include "mech_fixture.h"

#define NEAR 1e-5

static Tensor give_gates(Fixture *f, const char *name, int rank, int64_t a, int64_t b, int64_t c,
                         double low, double high)
{
    Tensor t = tensor_new(f->arena, DT_F32, rank, (int64_t[]){ a, b, c });
    Rng    rng = rng_named(17, name);

    assert_non_null(t.data);
    for (int64_t x = 0; x < tensor_count(&t); x++)
        tensor_f32(&t)[x] = (float)(low + rng_uniform(&rng) * (high - low));
    fixture_give(f, name, t);
    return t;
}

/* Every row of k gets unit length. */
static void unit_keys(Fixture *f)
{
    for (int64_t row = 0; row < HEADS * f->n; row++) {
        float *k = tensor_f32(&f->k) + row * KEY_SIZE;
        double squares = 0;

        for (int c = 0; c < KEY_SIZE; c++)
            squares += (double)k[c] * (double)k[c];
        for (int c = 0; c < KEY_SIZE; c++)
            k[c] = (float)((double)k[c] / sqrt(squares));
    }
}

/* x times a factor for each token, or 1/sqrt(d). */
static Tensor times(Fixture *f, Tensor x, const float *factor)
{
    Tensor  y = tensor_new(f->arena, DT_F32, 3, x.shape);
    int64_t width = x.shape[2];

    assert_non_null(y.data);
    for (int64_t at = 0; at < tensor_count(&x); at++)
        tensor_f32(&y)[at] = tensor_f32(&x)[at] *
                             (factor ? factor[at / width]
                                     : (float)(1 / sqrt((double)KEY_SIZE)));
    return y;
}

/* The views that all of them have. */
typedef struct Seen {
    Tensor weights, memory, norm;
    float *out;
} Seen;

/* A view that outlives the run. */
static Tensor kept_view(Fixture *f, const char *name)
{
    Tensor view = fixture_view(f, name), copy = tensor_new(f->arena, DT_F32, view.rank, view.shape);

    assert_true(view.dtype == DT_F32 && copy.data);
    memcpy(copy.data, view.data, (size_t)tensor_bytes(&copy));
    return copy;
}

static Seen see(Fixture *f, const char *id, const char *params)
{
    fixture_run(f, id, params, true);
    return (Seen){ .weights = kept_view(f, "weights"), .memory = kept_view(f, "memory"),
                   .norm = kept_view(f, "state_norm"), .out = fixture_output(f) };
}

static void check_same(Seen *a, Seen *b, int64_t n)
{
    check_near(a->out, b->out, HEADS * n * VALUE_SIZE, NEAR);
    check_near(tensor_f32(&a->weights), tensor_f32(&b->weights), tensor_count(&a->weights), NEAR);
    check_near(tensor_f32(&a->memory), tensor_f32(&b->memory), tensor_count(&a->memory), NEAR);
    check_near(tensor_f32(&a->norm), tensor_f32(&b->norm), tensor_count(&a->norm), NEAR);
    free(a->out);
    free(b->out);
    a->out = b->out = NULL;
}

static const char *const runs[] = { "deltanet ",
                                    "deltanet negative_eigenvalues=true",
                                    "deltanet norm=rms",
                                    "gated-deltanet ",
                                    "gated-deltanet gate=channel",
                                    "gated-deltanet gate=channel,norm=rms",
                                    "rwkv7 ",
                                    "rwkv7 norm=rms" };

TEST(all_forms_and_chunks_are_one_result)
{
    static const char *const forms[] = { "recurrent", "chunked,chunk=1", "chunked,chunk=5",
                                         "chunked,chunk=16", "chunked,chunk=37" };

    for (size_t x = 0; x < sizeof(runs) / sizeof(*runs) * 5; x++) {
        Fixture     f = fixture_new(37);
        char        id[24], params[100];
        const char *own = strchr(runs[x / 5], ' ') + 1;
        float      *plain;

        snprintf(id, sizeof(id), "%.*s", (int)strcspn(runs[x / 5], " "), runs[x / 5]);
        fixture_run(&f, id, own, true);
        check_weights(&f);
        check_flops(&f);
        plain = fixture_output(&f);
        snprintf(params, sizeof(params), "%s%sform=%s", own, *own ? "," : "", forms[x % 5]);
        fixture_run(&f, id, params, true);
        check_near(tensor_f32(&f.run->out), plain, tensor_count(&f.run->out), NEAR);
        check_flops(&f);
        check_causal(&f, id, params, 11);
        free(plain);
        fixture_free(&f);
    }
}

TEST(without_memory_the_run_fails_in_order)
{
    Fixture f = fixture_new(20);

    check_out_of_memory(&f, "deltanet", "form=chunked,chunk=8");
    check_out_of_memory(&f, "gated-deltanet", "gate=channel,form=chunked,chunk=8,norm=rms");
    check_out_of_memory(&f, "rwkv7", "form=chunked,chunk=8");
    fixture_free(&f);
}

/* ---- which is a special case of which -------------------------------------------------- */

TEST(a_gate_of_1_is_deltanet)
{
    Fixture f = fixture_new(19);
    Seen    a, b;

    give_gates(&f, "beta", 2, HEADS, 19, 0, 0, 2);
    a = see(&f, "deltanet", "");
    fixture_fill(&f, "gates", 2, (int64_t[]){ HEADS, 19 }, 1);
    b = see(&f, "gated-deltanet", "form=chunked,chunk=4");
    check_same(&a, &b, 19);
    fixture_free(&f);
}

TEST(equal_gates_of_channels_are_one_gate)
{
    Fixture f = fixture_new(19);
    Tensor  token, channel = tensor_new(f.arena, DT_F32, 3, (int64_t[]){ HEADS, 19, KEY_SIZE });
    Seen    a, b;

    give_gates(&f, "beta", 2, HEADS, 19, 0, 0, 1);
    token = give_gates(&f, "gates", 2, HEADS, 19, 0, 0.5, 1);
    tensor_f32(&token)[5] = 0;
    a = see(&f, "gated-deltanet", "form=chunked,chunk=8");
    assert_non_null(channel.data);
    for (int64_t x = 0; x < HEADS * 19 * KEY_SIZE; x++)
        tensor_f32(&channel)[x] = tensor_f32(&token)[x / KEY_SIZE];
    f.tensors[1].tensor = channel;
    b = see(&f, "gated-deltanet", "gate=channel,form=chunked,chunk=8");
    check_same(&a, &b, 19);
    fixture_free(&f);
}

/* rwkv7 with decay g, rate beta g, ka_scale 0 and keys beta k: the delta rule after the decay. */
static void check_rwkv7(bool gated)
{
    Fixture f = fixture_new(23), other;
    Tensor  beta, gates = { .rank = 0 }, decay, rate;
    Seen    a, b;

    unit_keys(&f);
    beta = give_gates(&f, "beta", 2, HEADS, 23, 0, 0, 1);
    if (gated)
        gates = give_gates(&f, "gates", 2, HEADS, 23, 0, 0.6, 1);
    a = see(&f, gated ? "gated-deltanet" : "deltanet", "qk_norm=none,form=recurrent");
    other = fixture_new(23);
    other.q = times(&other, f.q, NULL);
    other.k = gated ? times(&other, f.k, tensor_f32(&beta)) : f.k;
    other.v = f.v;
    decay = give_gates(&other, "decay", 3, HEADS, 23, KEY_SIZE, 1, 1);
    rate = give_gates(&other, "rate", 3, HEADS, 23, KEY_SIZE, 1, 1);
    if (gated)
        fixture_fill(&other, "ka_scale", 1, (int64_t[]){ KEY_SIZE }, 0);
    for (int64_t x = 0; x < tensor_count(&rate); x++) {
        double g = gated ? (double)tensor_f32(&gates)[x / KEY_SIZE] : 1;

        tensor_f32(&decay)[x] = (float)g;
        tensor_f32(&rate)[x] = (float)(g * (double)tensor_f32(&beta)[x / KEY_SIZE]);
    }
    b = see(&other, "rwkv7", "form=chunked,chunk=8");
    check_same(&a, &b, 23);
    fixture_free(&other);
    fixture_free(&f);
}

TEST(deltanet_is_rwkv7_without_decay)
{
    check_rwkv7(false);
}

TEST(gated_deltanet_is_rwkv7_that_writes_what_it_removes)
{
    check_rwkv7(true);
}

TEST(rwkv7_that_removes_nothing_is_gla)
{
    Fixture f = fixture_new(19);
    Tensor  decay;
    Seen    a, b;

    decay = give_gates(&f, "decay", 3, HEADS, 19, KEY_SIZE, 0.4, 1);
    fixture_fill(&f, "rate", 3, (int64_t[]){ HEADS, 19, KEY_SIZE }, 0);
    fixture_fill(&f, "ka_scale", 1, (int64_t[]){ KEY_SIZE }, 0);
    a = see(&f, "rwkv7", "form=chunked,chunk=8");
    f.tensor_count = 0;
    fixture_give(&f, "gates", decay);
    b = see(&f, "gla", "scale=1,form=chunked,chunk=8");
    check_same(&a, &b, 19);
    fixture_free(&f);
}

/* n = 1: scale (q . k) times the strength of the write times v. */
TEST(one_token_reads_what_it_writes)
{
    static const char *const ids[] = { "deltanet", "gated-deltanet", "rwkv7" };

    for (int x = 0; x < 3; x++) {
        Fixture f = fixture_new(1);
        bool    delta = x < 2;

        if (delta)
            fixture_fill(&f, "beta", 2, (int64_t[]){ HEADS, 1 }, 0.5f);
        else
            fixture_fill(&f, "ka_scale", 1, (int64_t[]){ KEY_SIZE }, 0);
        fixture_run(&f, ids[x], delta ? "qk_norm=none,scale=3" : "scale=3", true);
        for (int64_t t = 0; t < HEADS; t++) {
            double dot = 0;

            for (int c = 0; c < KEY_SIZE; c++)
                dot += (double)tensor_f32(&f.q)[t * KEY_SIZE + c] *
                       (double)tensor_f32(&f.k)[t * KEY_SIZE + c];
            for (int c = 0; c < VALUE_SIZE; c++)
                assert_true(fabs((double)tensor_f32(&f.run->out)[t * VALUE_SIZE + c] -
                                 3 * dot * (delta ? 0.5 : 1) *
                                     (double)tensor_f32(&f.v)[t * VALUE_SIZE + c]) < NEAR);
        }
        fixture_free(&f);
    }
}

/* ---- facts ------------------------------------------------------------------------------- */

TEST(orthonormal_keys_are_all_recalled)
{
    Fixture f = fixture_new(KEY_SIZE);
    Tensor  recall;

    memset(f.k.data, 0, (size_t)tensor_bytes(&f.k));
    for (int64_t row = 0; row < HEADS * KEY_SIZE; row++)
        tensor_f32(&f.k)[row * KEY_SIZE + row % KEY_SIZE] = 1;
    fixture_fill(&f, "beta", 2, (int64_t[]){ HEADS, KEY_SIZE }, 1);
    fixture_run(&f, "deltanet", "", true);
    recall = fixture_view(&f, "recall");
    for (int64_t row = 0; row < HEADS * KEY_SIZE; row++)
        assert_true(fabs((double)tensor_f32(&recall)[row] - 1) < NEAR);
    fixture_free(&f);
}

/* One unit key, written n times: deltanet holds the last value, retnet with gamma 1 their sum. */
TEST(a_key_that_is_written_again_keeps_its_last_value)
{
    Fixture f = fixture_new(9);
    Tensor  memory, sums;

    memset(f.k.data, 0, (size_t)tensor_bytes(&f.k));
    for (int64_t row = 0; row < HEADS * 9; row++)
        tensor_f32(&f.k)[row * KEY_SIZE + 2] = 1;
    fixture_fill(&f, "beta", 2, (int64_t[]){ HEADS, 9 }, 1);
    fixture_run(&f, "deltanet", "qk_norm=none,form=chunked,chunk=4", true);
    memory = kept_view(&f, "memory");
    f.tensor_count = 0;
    fixture_run(&f, "retnet", "decay=none", true);
    sums = fixture_view(&f, "memory");
    for (int64_t t = 0; t < HEADS; t++)
        for (int64_t c = 0; c < VALUE_SIZE; c++) {
            int64_t at = (t * KEY_SIZE + 2) * VALUE_SIZE + c;
            double  sum = 0;

            for (int64_t j = 0; j < 9; j++)
                sum += (double)tensor_f32(&f.v)[(t * 9 + j) * VALUE_SIZE + c];
            assert_true(fabs((double)tensor_f32(&memory)[at] -
                             (double)tensor_f32(&f.v)[(t * 9 + 8) * VALUE_SIZE + c]) < NEAR);
            assert_true(fabs((double)tensor_f32(&sums)[at] - sum) < NEAR);
        }
    fixture_free(&f);
}

/* beta 2 mirrors what the state returns for the key about the new value; beta 0 leaves no trace. */
TEST(beta_of_2_mirrors_and_0_leaves_no_trace)
{
    Fixture f = fixture_new(3);
    Tensor  beta, weights, surprise;

    memset(f.k.data, 0, (size_t)tensor_bytes(&f.k));
    for (int64_t row = 0; row < HEADS * 3; row++)
        tensor_f32(&f.k)[row * KEY_SIZE] = tensor_f32(&f.q)[row * KEY_SIZE] = 1;
    beta = fixture_fill(&f, "beta", 1, (int64_t[]){ 3 }, 1);
    tensor_f32(&beta)[1] = 2;
    tensor_f32(&beta)[2] = 0;
    fixture_run(&f, "deltanet", "qk_norm=none,scale=1", true);
    weights = fixture_view(&f, "weights");
    surprise = fixture_view(&f, "surprise");
    for (int64_t t = 0; t < HEADS; t++) {
        const float *w = tensor_f32(&weights) + t * 9;

        check_near(w, (const float[]){ 1, 0, 0, -1, 2, 0, -1, 2, 0 }, 9, NEAR);
        assert_true(tensor_f32(&surprise)[t * 3] > 0);
    }
    fixture_free(&f);
}

TEST(a_gate_of_0_starts_the_state_again)
{
    static const char *const cases[] = { "gated-deltanet ", "gated-deltanet form=chunked,chunk=4",
                                         "gated-deltanet gate=channel,form=chunked,chunk=8" };

    for (int x = 0; x < 3; x++) {
        Fixture f = fixture_new(11);
        Tensor  gates, weights, span;
        int     channels = x == 2 ? KEY_SIZE : 1;

        gates = x == 2 ? fixture_fill(&f, "gates", 2, (int64_t[]){ 11, KEY_SIZE }, 1)
                       : fixture_fill(&f, "gates", 1, (int64_t[]){ 11 }, 1);
        for (int c = 0; c < channels; c++)
            tensor_f32(&gates)[6 * channels + c] = 0;
        fixture_run(&f, "gated-deltanet", strchr(cases[x], ' ') + 1, true);
        check_weights(&f);
        weights = fixture_view(&f, "weights");
        for (int64_t i = 6; i < 11; i++)
            for (int64_t j = 0; j < 6; j++)
                assert_true(tensor_f32(&weights)[i * 11 + j] == 0);
        for (int64_t at = 0; at < 11 * channels; at++)
            tensor_f32(&gates)[at] = 0;
        fixture_run(&f, "gated-deltanet", strchr(cases[x], ' ') + 1, true);
        span = fixture_view(&f, "span");
        for (int64_t row = 0; row < HEADS * 11; row++)
            assert_int_equal(tensor_i32(&span)[row], 1);
        fixture_free(&f);
    }
}

/* A rate of 0 keeps the removal key out; a zero key is no removal key. */
TEST(a_rate_of_0_removes_nothing)
{
    Fixture f = fixture_new(8);
    Tensor  removal, scale;
    float  *plain;

    memset(tensor_f32(&f.k) + 3 * KEY_SIZE, 0, KEY_SIZE * sizeof(float));
    fixture_fill(&f, "rate", 2, (int64_t[]){ 8, KEY_SIZE }, 0);
    scale = fixture_fill(&f, "kk_scale", 1, (int64_t[]){ KEY_SIZE }, 1);
    fixture_run(&f, "rwkv7", "", true);
    removal = fixture_view(&f, "removal");
    for (int c = 0; c < KEY_SIZE; c++)
        assert_true(tensor_f32(&removal)[3 * KEY_SIZE + c] == 0);
    plain = fixture_output(&f);
    tensor_f32(&scale)[0] = -4;
    fixture_run(&f, "rwkv7", "", true);
    check_near(tensor_f32(&f.run->out), plain, HEADS * 8 * VALUE_SIZE, 0);
    free(plain);
    fixture_free(&f);
}

/* ---- what is refused and told -------------------------------------------------------------- */

static const char *error_of(Fixture *f, const char *id, const char *params)
{
    return fixture_run_at(f, id, params, true, true, 0)->err.text;
}

TEST(gates_outside_their_range_are_named)
{
    Fixture f = fixture_new(6);
    Tensor  beta = fixture_fill(&f, "beta", 2, (int64_t[]){ HEADS, 6 }, 1);

    tensor_f32(&beta)[8] = 2.5f;
    assert_non_null(strstr(error_of(&f, "deltanet", ""),
                           "deltanet: parameter beta: entry [1,2] is 2.5; expected 0 to 2"));
    tensor_f32(&beta)[8] = 2;
    fixture_run(&f, "deltanet", "", true);
    fixture_fill(&f, "gates", 2, (int64_t[]){ 6, KEY_SIZE }, 0.5f);
    assert_non_null(strstr(error_of(&f, "gated-deltanet", ""), "parameter gates: expected shape"));
    fixture_run(&f, "gated-deltanet", "gate=channel", true);
    tensor_f32(&f.tensors[1].tensor)[7] = -0.5f;
    assert_non_null(strstr(error_of(&f, "gated-deltanet", "gate=channel"),
                           "entry [1,2] is -0.5; expected 0 to 1"));
    f.tensor_count = 0;
    fixture_fill(&f, "rate", 2, (int64_t[]){ 6, KEY_SIZE }, 1.25f);
    assert_non_null(strstr(error_of(&f, "rwkv7", ""), "parameter rate: entry [0,0] is 1.25"));
    fixture_free(&f);
}

TEST(a_state_that_grows_is_told)
{
    Fixture f = fixture_new(6);

    for (int64_t x = 0; x < tensor_count(&f.k); x++)
        tensor_f32(&f.k)[x] = x / KEY_SIZE % 6 == 4 ? 1 : 0.1f;
    fixture_fill(&f, "beta", 1, (int64_t[]){ 6 }, 1);
    fixture_run(&f, "deltanet", "qk_norm=none", true);
    assert_non_null(strstr(f.run->warnings.data, "first at token 4 of head 0, where it is 5"));
    fixture_run(&f, "deltanet", "", true);
    assert_null(f.run->warnings.data ? strstr(f.run->warnings.data, "grows") : NULL);
    fixture_free(&f);
}

SUITE(NULL, NULL)
