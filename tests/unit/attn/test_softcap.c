/* test_softcap.c -- the cap of scores: its kernels, and every mechanism that takes it. */
#include "attn/cpu/simd/kernel.h"
#include "mech_fixture.h"

#define COUNT 4099

static float sample(int64_t i)
{
    double size = pow(10, -9 + 13 * (double)(i / 2) / (COUNT / 2));

    return (float)(i % 2 ? -size : size);
}

TEST(kernels_are_near_tanh)
{
    static const double tops[] = { 1e-30, 0.01, 1, 50, 1e6, 1e30 };
    float               x[COUNT];

    for (int k = 0; kernel_at(k); k++)
        for (int t = 0; t < 6; t++) {
            for (int64_t i = 0; i < COUNT; i++)
                x[i] = sample(i);
            kernel_at(k)->cap(x, COUNT, (float)tops[t]);
            for (int64_t i = 0; i < COUNT; i++) {
                double want = tops[t] * tanh((double)sample(i) / tops[t]);

                if (!(fabs((double)x[i] - want) <= 4e-7 * fabs(want) + 1e-44 * tops[t]))
                    fail_msg("%s: %g under %g is %.9g, not %.9g", kernel_at(k)->name,
                             (double)sample(i), tops[t], (double)x[i], want);
            }
        }
}

/* Masked cells stay masked, an infinite score has the largest value, NaN stays. */
TEST(kernels_keep_what_is_no_number)
{
    for (int k = 0; kernel_at(k); k++) {
        float x[3] = { -INFINITY, INFINITY, NAN };

        kernel_at(k)->cap(x, 3, 2);
        assert_true(x[0] == -INFINITY && x[1] == 2 && isnan(x[2]));
    }
}

static double largest_difference(const Tensor *a, const Tensor *b)
{
    double most = 0;

    for (int64_t x = 0; x < tensor_count(a); x++)
        most = fmax(most, fabs((double)tensor_f32(a)[x] - (double)tensor_f32(b)[x]));
    return most;
}

/* Three more FLOPs a cell, as the closed form says: a cell has 2 e of mixing, but for those of a
 * softmax that only decides (vertical-slash). */
static void check_cap_flops(Run *r, const char *id, Flops plain)
{
    Flops counted = run_flops(r), closed;
    bool  bound;

    assert_true(run_closed_form(r, &closed, &bound));
    CHECK(bound ? counted.overhead <= closed.overhead
                : counted.overhead == closed.overhead && counted.score == closed.score,
          "%s: %g counted, %g by its closed form", id, counted.overhead, closed.overhead);
    CHECK(!strcmp(id, "vertical-slash")
              ? counted.overhead - plain.overhead > 3 * plain.mix / (2 * VALUE_SIZE)
              : counted.overhead - plain.overhead == 3 * plain.mix / (2 * VALUE_SIZE),
          "%s: a cap costs %g", id, counted.overhead - plain.overhead);
}

static void check_mechanism(Fixture *f, const char *id, const char *params, bool causal)
{
    static const char *const caps[] = { "softcap=1e25", "softcap=0.2" };
    Run   *r = fixture_run(f, id, params, causal);
    Flops  plain = run_flops(r);
    Tensor out = tensor_new(f->arena, DT_F32, r->out.rank, r->out.shape);

    memcpy(out.data, r->out.data, (size_t)tensor_bytes(&out));
    for (int x = 0; x < 2; x++) {
        char   all[128];
        double apart;

        snprintf(all, sizeof(all), "%s%s%s", caps[x], *params ? "," : "", params);
        r = fixture_run(f, id, all, causal);
        check_cap_flops(r, id, plain);
        apart = largest_difference(&r->out, &out);
        CHECK(x ? apart > 1e-3 : apart < 1e-5, "%s(%s): the output changes by %g", id, all, apart);
    }
}

TEST(every_mechanism_that_takes_it)
{
    const Mechanism *m;
    Fixture          f = fixture_new(23);
    int              found = 0;

    for (size_t x = 0; (m = mechanism_at(x)); x++) {
        if (!params_find(m->params, "softcap"))
            continue;
        found++;
        for (int causal = 0; causal <= (m->causal ? 1 : 0); causal++)
            check_mechanism(&f, m->id, !strcmp(m->id, "pattern") ? "expr='window(5)'"
                                       : !strcmp(m->id, "mla")   ? "form=plain"
                                       : !strcmp(m->id, "cascade") ? "layer=2" : "", causal);
    }
    CHECK(found >= 21, "%d mechanisms take a cap", found);
    fixture_free(&f);
}

/* A two-level mechanism caps both of its softmaxes, and each of several parts. */
TEST(every_softmax_of_a_mechanism)
{
    Fixture f = fixture_new(23);

    check_mechanism(&f, "poolingformer", "level2=sequential", false);
    check_mechanism(&f, "bigbird", "repeats=count", false);
    check_mechanism(&f, "axial", "causal_mode=shift,combine=sequential", true);
    fixture_draw(&f, "k_l2g", HEADS, 2, KEY_SIZE);
    check_mechanism(&f, "etc", "", false);
    f.tensor_count = 0;
    fixture_draw(&f, "q_global", HEADS, 23, KEY_SIZE);
    check_mechanism(&f, "longformer", "", false);
    fixture_free(&f);
}

/* Weights of a row differ at most by e^(2 cap), and the shown weights sum to 1. */
TEST(rows_are_flat_under_a_small_cap)
{
    Fixture     f = fixture_new(30);
    Run        *r = fixture_run(&f, "full", "softcap=0.5", false);
    const View *w = run_view(r, "weights");
    float       row[30];

    for (int64_t i = 0; i < 30; i++) {
        double low = 1, high = 0, sum = 0;

        view_read(w, 1, i, 0, 30, 1, row);
        for (int64_t j = 0; j < 30; j++) {
            low = fmin(low, (double)row[j]);
            high = fmax(high, (double)row[j]);
            sum += (double)row[j];
        }
        CHECK_NEAR(sum, 1, 1e-5);
        assert_true(high <= exp(1) * low * 1.00001);
    }
    fixture_free(&f);
}

TEST(a_negative_cap_is_refused)
{
    Fixture f = fixture_new(4);
    Run    *r = fixture_run_at(&f, "window", "softcap=-1", false, true, 0);

    assert_int_equal(r->err.code, ERR_PARAM);
    assert_non_null(strstr(r->err.text, "softcap"));
    fixture_free(&f);
}

SUITE(NULL, NULL)
