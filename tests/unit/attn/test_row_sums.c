/* test_row_sums.c -- weights of rows whose scores are in the hundreds or far beyond, and shapes
 * that a causal run cannot have. */
#include "attn/cpu/simd/kernel.h"
#include "attn/run/view.h"
#include "unit/mech_fixture.h"

#define LARGE 40  /* times normal numbers: scores up to some thousands */
#define VAST  4e4f /* and to some tens of thousands of millions, where a float knows no hundreds */

static void enlarge(Tensor t, float by)
{
    for (int64_t i = 0; i < tensor_count(&t); i++)
        tensor_f32(&t)[i] *= by;
}

/* The largest deviation of a row sum from 1, rows without keys left out. */
static double furthest(const Run *run, const char *name)
{
    const View *view = run_view(run, name);
    float       line[64];
    double      worst = 0;

    assert_non_null(view);
    assert_true(view_cols(view) <= 64);
    for (int64_t h = 0; h < view_planes(view); h++)
        for (int64_t i = 0; i < view_rows(view); i++) {
            double sum = 0;

            view_read(view, h, i, 0, view_cols(view), 1, line);
            for (int64_t j = 0; j < view_cols(view); j++)
                sum += (double)line[j];
            if (!(sum <= 0) && !(fabs(sum - 1) <= worst)) /* NaN is as far as can be */
                worst = isnan(sum) ? HUGE_VAL : fabs(sum - 1);
        }
    return worst;
}

static void check_rows(float by)
{
    static const struct {
        const char *id, *params, *view;
        bool        causal;
    } cases[] = {
        { "full", "", "weights", false },
        { "full", "", "weights", true },
        { "window", "window=5", "weights", false },
        { "bigbird", "block=4,window=3,global=1,random=1", "weights", false },
        { "longformer", "window=4", "weights", false },
        { "axial", "width=5", "weights", false },
        { "axial", "width=5", "weights_row", false },
        { "funnel", "stride=2", "weights", false },
        { "long-short", "segment=4,rank=2", "weights", false },
        { "memory-compressed", "", "weights_compressed", false },
        { "poolingformer", "", "weights_first", false },
        { "poolingformer", "", "weights_pooled", false },
        { "transformer-xl", "segment=8,mem_len=8", "weights", true },
        { "transformer-xl", "segment=8,mem_len=8", "segment_weights", true },
        { "compressive", "segment=4,mem_len=4,cmem_len=3,ratio=2", "slot_weights", true },
        { "compressive", "segment=4,mem_len=4,cmem_len=3,ratio=1,compress=most-used", "weights",
          false },
        { "compressive", "segment=4,mem_len=0,cmem_len=9,compress=max", "slot_weights", true },
        { "reformer", "block=8,key_norm=none,exclude_self=false", "weights", false },
        { "routing", "n_clusters=2,cluster_window=24,score_norm=none", "weights", false },
        { "sinkhorn", "block=8", "weights", true },
        { "sparsebert-dam", "", "weights", false },
    };
    Fixture f = fixture_new(24);

    enlarge(f.q, by);
    enlarge(f.k, by);
    for (size_t x = 0; x < sizeof(cases) / sizeof(*cases); x++) {
        Run   *run = fixture_run(&f, cases[x].id, cases[x].params, cases[x].causal);
        double far = furthest(run, cases[x].view);

        if (far > 1e-6)
            fprintf(stderr, "%s %s at %g: %g\n", cases[x].id, cases[x].view, (double)by, far);
        assert_true(far <= 1e-6);
    }
    fixture_free(&f);
}

TEST(rows_of_large_scores_sum_to_1)
{
    check_rows(LARGE);
    check_rows(VAST);
}

static bool has_scale(const Mechanism *m)
{
    for (const Param *p = m->params; p && p->name; p++)
        if (!strcmp(p->name, "scale"))
            return true;
    return false;
}

static void check_finite(const Run *run, const float *line, int64_t count, const char *what)
{
    for (int64_t x = 0; x < count; x++)
        CHECK(isfinite(line[x]), "%s, causal %d: %s has %g", run->mechanism->id, run->causal, what,
              (double)line[x]);
}

/* An exponential outside its softmax would overflow, or all of a sum would vanish. */
static void check_large(const Mechanism *m, float by, bool causal)
{
    Fixture     f = fixture_new(24);
    Error       err = ERROR_INIT;
    const char *given = m->sketch ? m->sketch : m->example;
    Run        *run;
    const View *weights;
    float       line[64];

    enlarge(f.q, by);
    enlarge(f.k, by);
    assert_true(!given || assignments_parse(&f.given, given, &err));
    run = fixture_run_given(&f, m->id, causal);
    check_finite(run, run->out.data, tensor_count(&run->out), "the output");
    weights = run_view(run, "weights");
    for (int64_t row = 0; weights && row < view_planes(weights) * view_rows(weights); row++) {
        assert_true(view_cols(weights) <= 64);
        view_read(weights, row / view_rows(weights), row % view_rows(weights), 0,
                  view_cols(weights), 1, line);
        check_finite(run, line, view_cols(weights), "the view weights");
    }
    fixture_free(&f);
}

TEST(every_mechanism_with_a_scale_takes_large_scores)
{
    int count = 0;

    for (size_t i = 0; mechanism_at(i); i++)
        for (int causal = 0; has_scale(mechanism_at(i)) && causal <= mechanism_at(i)->causal;
             causal++) {
            if (mechanism_at(i)->needs_x || mechanism_at(i)->needs_attn)
                continue;
            check_large(mechanism_at(i), LARGE, causal);
            check_large(mechanism_at(i), VAST, causal);
            count++;
        }
    assert_true(count > 60);
}

/* Products of some thousands whose sum is small: lse does not bound the error of scores. */
TEST(rows_of_products_that_cancel_sum_to_1)
{
    Fixture f = fixture_new(24);
    float  *k = tensor_f32(&f.k);

    enlarge(f.q, LARGE);
    for (int64_t x = 0; x < tensor_count(&f.q); x++) { /* nearly at right angles to q */
        int64_t d = f.q.shape[2], t = x % d, pair = t % 2 ? x - 1 : x + 1;

        k[x] = t == d - 1 && d % 2 ? 0 : tensor_f32(&f.q)[pair] * (t % 2 ? 1 : -1.0005f);
    }
    for (int width = 1; width <= 7; width += 2) {
        char   params[32];
        double far;

        for (int64_t t = 0; width == 7 && t < HEADS * KEY_SIZE; t++) /* the last key is short */
            k[(t / KEY_SIZE * f.n + f.n - 1) * KEY_SIZE + t % KEY_SIZE] *= 1e-3f;
        snprintf(params, sizeof(params), "window=%d", width == 7 ? 1 : width);
        far = furthest(fixture_run(&f, "window", params, false), "weights");
        if (far > 1e-6)
            fprintf(stderr, "window=%d: %g\n", width, far);
        assert_true(far <= 1e-6);
    }
    fixture_free(&f);
}

/* Products in the hundreds that cancel: the score is small, its rounding is not. */
TEST(rows_whose_products_cancel_sum_to_1)
{
    static const struct {
        const char *id, *params;
    } cases[] = {
        { "window", "window=1" },
        { "longformer", "window=2,global=1" },
        { "transformer-xl", "segment=1,mem_len=0" },
        { "compressive", "segment=1,mem_len=0,cmem_len=1,ratio=1" },
    };
    Fixture f = fixture_new(24);
    int64_t rows = HEADS * f.n;

    enlarge(f.q, LARGE);
    enlarge(f.k, LARGE);
    for (int64_t i = 0; i < rows; i++) { /* its own key's score: what rounding makes of 5 */
        float *q = tensor_f32(&f.q) + i * KEY_SIZE, *k = tensor_f32(&f.k) + i * KEY_SIZE;
        double rest = 0;

        for (int t = 1; t < KEY_SIZE; t++)
            rest += (double)q[t] * (double)k[t];
        k[0] = (float)((5 - rest) / (double)q[0]);
    }
    for (size_t x = 0; x < sizeof(cases) / sizeof(*cases); x++) {
        double far = furthest(fixture_run(&f, cases[x].id, cases[x].params, true), "weights");

        if (far > 1e-6)
            fprintf(stderr, "%s: %g\n", cases[x].id, far);
        assert_true(far <= 1e-6);
    }
    fixture_free(&f);
}

/* Floats of that size are whole millions apart, and there are still weights. */
TEST(rows_of_immense_scores_sum_to_1)
{
    Fixture f = fixture_new(24);

    assert_true(furthest(fixture_run(&f, "window", "window=5,scale=1e20", false), "weights") <=
                1e-6);
    fixture_free(&f);
}

/* A weight does not depend on the cells read with it, and a tiny one is not 0. */
TEST(cells_alone_are_as_in_their_row)
{
    Fixture     f = fixture_new(37);
    const View *view;
    float       line[37], one;
    int         tiny = 0;

    for (int64_t i = 0; i < tensor_count(&f.q); i++)
        tensor_f32(&f.q)[i] *= i < tensor_count(&f.q) / 4 ? 1 : 30;
    view = run_view(fixture_run(&f, "full", "", false), "weights");
    for (int64_t h = 0; h < view_planes(view); h++)
        for (int64_t i = 0; i < 37; i++) {
            view_read(view, h, i, 0, 37, 1, line);
            for (int64_t j = 0; j < 37; j++) {
                view_read(view, h, i, j, 1, 1, &one);
                assert_memory_equal(&one, &line[j], sizeof(one));
                tiny += one > 0 && one < 1e-38f;
            }
        }
    assert_true(tiny > 0);
    fixture_free(&f);
}

/* Every kernel equals the library to an ulp, from the least float on. */
TEST(exponentials_are_the_librarys)
{
    float line[61];

    for (int x = 0; kernel_at(x); x++)
        for (int from = -110; from < 80; from += 3) {
            for (int j = 0; j < 61; j++)
                line[j] = (float)from + (float)j / 20;
            kernel_at(x)->exp_over(line, 61, 1.25);
            for (int j = 0; j < 61; j++) {
                float wanted = (float)(exp((double)((float)from + (float)j / 20)) / 1.25);

                assert_true(line[j] >= nextafterf(wanted, 0) &&
                            line[j] <= nextafterf(wanted, INFINITY));
            }
        }
}

/* In every kernel: products in double, and of floats rounded once. */
TEST(rows_fade_in_double)
{
    float  line[61];
    double wide[61], gate[61];

    for (int x = 0; kernel_at(x); x++) {
        for (int j = 0; j < 61; j++) {
            line[j] = (float)(j - 30) / 7;
            wide[j] = (double)(j - 30) / 7;
            gate[j] = 1.0 / (1 + j);
        }
        kernel_at(x)->fade(line, gate, 61);
        kernel_at(x)->times64(wide, gate, 61);
        for (int j = 0; j < 61; j++) {
            CHECK_NEAR(line[j], (float)((double)((float)(j - 30) / 7) * gate[j]), 0);
            CHECK_NEAR(wide[j], (double)(j - 30) / 7 * gate[j], 0);
        }
    }
}

/* In every kernel, for any number of columns: along a diagonal the same is added, also where it
 * stands in one entry alone; what lies behind the last column stays. */
TEST(what_a_distance_adds_lies_along_diagonals)
{
    enum { ROWS = 5, COLUMNS = 64, LONG = ROWS + COLUMNS };
    float s[ROWS * LONG], x[LONG] = { 0 };

    for (int k = 0; kernel_at(k); k++)
        for (int count = 1; count <= COLUMNS; count += count == 20 ? 41 : 1)
            for (int at = 0; at < ROWS + count - 1; at++) {
                x[at] = 3;
                memset(s, 0, sizeof(s));
                kernel_at(k)->add_turned(s, LONG, ROWS, count, x + count - 1, 0.5f);
                x[at] = 0;
                for (int c = 0; c < ROWS * LONG; c++) {
                    int j = c % LONG, r = c / LONG;

                    CHECK_NEAR(s[c], j < count && r - j + count - 1 == at ? 1.5 : 0, 0);
                }
            }
}

/* In every kernel: the product in double, rows by the product rounded to float. */
TEST(rows_of_a_token_are_gated_by_the_product)
{
    float  q[61], k[61], near[61], far[61];
    double product[61], gate[61];

    for (int x = 0; kernel_at(x); x++) {
        for (int j = 0; j < 61; j++) {
            q[j] = (float)(j - 30) / 7;
            k[j] = (float)(j - 11) / 3;
            product[j] = 1.0 / (2 + j);
            gate[j] = 1.0 / (1 + j % 7);
        }
        kernel_at(x)->gate_rows(gate, 61, product, q, near, k, far);
        for (int j = 0; j < 61; j++) {
            double wanted = 1.0 / (2 + j) * gate[j];

            CHECK_NEAR(product[j], wanted, 0);
            CHECK_NEAR(near[j], q[j] * (float)wanted, 0);
            CHECK_NEAR(far[j], k[j] / (float)wanted, 0);
        }
    }
}

#define WIDE_ROW 93 /* whole strips, vectors and a part in every kernel */
#define SOME 13     /* keys */

/* Rows of keys in an order of their own, and numbers for them. */
typedef struct RowCase {
    float   q[WIDE_ROW], k[SOME * WIDE_ROW], w[SOME];
    int32_t key[SOME];
} RowCase;

static RowCase *row_case(void)
{
    static RowCase c;
    Rng             rng = rng_named(4, "rows");

    rng_fill_normal(&rng, c.q, WIDE_ROW, 1);
    rng_fill_normal(&rng, c.k, SOME * WIDE_ROW, 1);
    rng_fill_normal(&rng, c.w, SOME, 1);
    for (int x = 0; x < SOME; x++)
        c.key[x] = x * 5 % SOME;
    return &c;
}

static double product_of(const float *x, const float *y, int64_t count)
{
    double sum = 0;

    for (int64_t c = 0; c < count; c++)
        sum += (double)x[c] * (double)y[c];
    return sum;
}

/* In every kernel and of any width: scores of keys, and the largest square. */
TEST(rows_score_keys)
{
    const RowCase *c = row_case();

    for (int x = 0; kernel_at(x); x++)
        for (int64_t d = 1; d <= WIDE_ROW; d += 4) {
            float  one[SOME], near[SOME], most;
            double square = 0;

            kernel_at(x)->dots(c->q, c->k, WIDE_ROW, c->key, SOME, d, one);
            most = kernel_at(x)->dots_squares(c->q, c->k, WIDE_ROW, SOME, d, near);
            for (int j = 0; j < SOME; j++) {
                const float *k = c->k + c->key[j] * WIDE_ROW;

                CHECK_NEAR(one[j], product_of(c->q, k, d), 1e-5);
                CHECK_NEAR(near[c->key[j]], product_of(c->q, k, d), 1e-5);
                square = fmax(square, product_of(k, k, d));
            }
            assert_true((double)most >= square * (1 - 1e-6));
            assert_true((double)most <= 4 * square);
        }
}

/* The same of sums. */
TEST(rows_mix_values)
{
    const RowCase *c = row_case();

    for (int x = 0; kernel_at(x); x++)
        for (int64_t e = 1; e <= WIDE_ROW; e += 4) {
            float one[WIDE_ROW + LANES];

            for (int64_t t = 0; t < WIDE_ROW + LANES; t++)
                one[t] = 3;
            kernel_at(x)->mix_row(c->w, c->k, WIDE_ROW, c->key, SOME, e, 0.5f, one);
            for (int64_t t = 0; t < e; t++) {
                double sum = 1.5;

                for (int j = 0; j < SOME; j++)
                    sum += (double)c->w[j] * (double)c->k[c->key[j] * WIDE_ROW + t];
                CHECK_NEAR(one[t], sum, 1e-5);
            }
        }
}

/* ---- queries that take the same keys in one pass ---------------------------------- */

#define PASSED 151 /* keys: whole steps, fetched ahead and not, and a part */

typedef struct Passed {
    int     rows;
    float   q[PASS_ROWS * WIDE_ROW], k[PASSED * WIDE_ROW], v[PASSED * WIDE_ROW];
    float   max[PASS_ROWS], sum[PASS_ROWS], acc[PASS_ROWS * (WIDE_ROW + LANES)];
    int32_t key[PASSED];
} Passed;

static Passed *pass_new(uint64_t seed, int rows)
{
    static Passed p;
    Rng           rng = rng_named(seed, "pass");

    memset(&p, 0, sizeof(p));
    p.rows = rows;
    rng_fill_normal(&rng, p.q, PASS_ROWS * WIDE_ROW, 1);
    rng_fill_normal(&rng, p.k, PASSED * WIDE_ROW, 1);
    rng_fill_normal(&rng, p.v, PASSED * WIDE_ROW, 1);
    for (int x = 0; x < PASS_ROWS * WIDE_ROW; x++)
        p.q[x] *= 0.3f;
    for (int x = 0; x < PASSED; x++)
        p.key[x] = x * 6 % PASSED;
    for (int r = 0; r < PASS_ROWS; r++)
        p.max[r] = -INFINITY;
    return &p;
}

/* Keys [first, end) of the list, or of the rows themselves. */
static void pass_take(Passed *p, const Kernel *kernel, bool listed, int first, int end, int64_t d,
                      int64_t e)
{
    int64_t from = listed ? 0 : (int64_t)first * WIDE_ROW;
    KeyPass pass = { .rows = p->rows, .q = p->q, .ldq = WIDE_ROW, .k = p->k + from,
                     .v = p->v + from, .ldk = WIDE_ROW, .ldv = WIDE_ROW,
                     .keys = listed ? p->key + first : NULL, .count = end - first, .d = d, .e = e,
                     .max = p->max, .sum = p->sum, .ldm = 1, .acc = p->acc,
                     .lda = WIDE_ROW + LANES };

    kernel->pass(&pass);
}

/* acc / sum, the largest score and the sum, against double, over the first `count` keys. */
static void pass_holds(const Passed *p, bool listed, int count, int64_t d, int64_t e)
{
    for (int i = 0; i < p->rows; i++) {
        double s[PASSED], top = -(double)INFINITY, sum = 0;

        for (int j = 0; j < count; j++) {
            s[j] = product_of(p->q + i * WIDE_ROW,
                              p->k + (listed ? p->key[j] : j) * WIDE_ROW, d);
            top = fmax(top, s[j]);
        }
        for (int j = 0; j < count; j++)
            sum += s[j] = exp2(s[j] - top);
        CHECK_NEAR(p->max[i], top, 1e-5);
        CHECK_NEAR(p->sum[i], sum, 1e-5);
        for (int64_t t = 0; t < e; t++) {
            double mixed = 0;

            for (int j = 0; j < count; j++)
                mixed += s[j] * (double)p->v[(listed ? p->key[j] : j) * WIDE_ROW + t];
            CHECK_NEAR(p->acc[i * (WIDE_ROW + LANES) + t], mixed, 2e-5); /* of 151 terms */
        }
    }
}

/* In every kernel, of any width, of listed keys and of neighbours, for one to PASS_ROWS queries,
 * however keys are fetched. */
static void queries_take_keys(void)
{
    for (int x = 0; kernel_at(x); x++)
        for (int64_t d = 1; d <= WIDE_ROW; d += 4)
            for (int way = 0; way < 2 * PASS_ROWS; way++) {
                Passed *p = pass_new(4, 1 + way / 2);
                int64_t e = WIDE_ROW - d + 1;

                pass_take(p, kernel_at(x), way & 1, 0, PASSED, d, e);
                pass_holds(p, way & 1, PASSED, d, e);
            }
}

TEST(queries_take_keys_as_a_softmax_does)
{
    bool before = kernel_at(0) && kernel_fetching.near;

    for (int near = 0; near < 2; near++) {
        kernel_fetching.near = near;
        queries_take_keys();
    }
    kernel_fetching.near = before;
}

/* Long runs of neighbours in dots and mix_row, however they are fetched. */
TEST(long_runs_score_and_mix_alike_fetched_or_not)
{
    Fetching before = kernel_at(0) ? kernel_fetching : (Fetching){ 0 };

    for (int x = 0; kernel_at(x); x++)
        for (int way = 0; way < 4; way++) {
            Passed *p = pass_new(7, 1);
            int32_t run[PASSED];
            float   s[PASSED], sum[WIDE_ROW + LANES];

            for (int j = 0; j < PASSED; j++)
                run[j] = j;
            for (int t = 0; t < WIDE_ROW + LANES; t++)
                sum[t] = 3;
            kernel_fetching = (Fetching){ .runs = way & 1, .near = way & 2 };
            kernel_at(x)->dots(p->q, p->k, WIDE_ROW, run, PASSED, 90, s);
            kernel_at(x)->mix_row(s, p->v, WIDE_ROW, run, PASSED, 90, 0.5f, sum);
            for (int j = 0; j < PASSED; j++)
                CHECK_NEAR(s[j], product_of(p->q, p->k + j * WIDE_ROW, 90), 1e-5);
            for (int t = 0; t < 90; t++) {
                double want = 1.5;

                for (int j = 0; j < PASSED; j++)
                    want += (double)s[j] * (double)p->v[j * WIDE_ROW + t];
                CHECK_NEAR(sum[t], want, 2e-5); /* of 151 terms */
            }
        }
    kernel_fetching = before;
}

/* What was taken before is scaled when a larger score comes, and not when none does. */
TEST(queries_take_keys_in_turns)
{
    for (int x = 0; kernel_at(x); x++)
        for (int cut = 0; cut <= PASSED; cut++)
            for (int way = 0; way < 4; way++) {
                Passed *p = pass_new(5 + (uint64_t)cut, way & 1 ? 4 + cut % 4 : 1 + cut % 2);

                pass_take(p, kernel_at(x), way & 2, 0, cut, 64, 64);
                pass_take(p, kernel_at(x), way & 2, cut, PASSED, 64, 64);
                pass_holds(p, way & 2, PASSED, 64, 64);
            }
}

/* A score that is no number is one of its own query; scores of -inf have no weight. */
TEST(queries_take_keys_that_are_no_numbers)
{
    for (int x = 0; kernel_at(x); x++) {
        Passed *p = pass_new(6, 4);

        p->q[WIDE_ROW] = NAN;
        p->k[3 * WIDE_ROW] = -INFINITY;
        p->q[0] = 1;
        pass_take(p, kernel_at(x), false, 0, PASSED, 8, 8);
        assert_true(isnan(p->sum[1]) && isnan(p->acc[WIDE_ROW + LANES]));
        assert_false(isnan(p->sum[0]) || isnan(p->acc[0]));
        p = pass_new(6, 2);
        p->q[0] = p->q[WIDE_ROW] = 1;
        for (int j = 0; j < PASSED; j++)
            p->k[j * WIDE_ROW] = -INFINITY;
        pass_take(p, kernel_at(x), false, 0, PASSED, 8, 8);
        assert_true(p->sum[0] == 0 && p->sum[1] == 0 && p->acc[0] == 0);
        assert_true(isinf(p->max[0]) && p->max[0] < 0);
    }
}

/* NaN in any key is NaN of the squares. */
TEST(a_square_that_is_no_number_is_told)
{
    for (int x = 0; kernel_at(x); x++)
        for (int j = 0; j < 9; j++) {
            float q[5] = { 1, 1, 1, 1, 1 }, k[9 * 5] = { 0 }, s[9];

            k[j * 5 + j % 5] = NAN;
            assert_true(isnan(kernel_at(x)->dots_squares(q, k, 5, 9, 5, s)));
        }
}

/* One key: a wrong bound would read cells that do not exist. */
TEST(a_causal_run_of_other_keys_is_refused)
{
    static const char *const ids[] = { "luna", "perceiver", "linear" };
    Fixture                  f = fixture_new(24);

    f.k.shape[1] = f.v.shape[1] = 1;
    for (int x = 0; x < 3; x++) {
        Run *run = fixture_run_at(&f, ids[x], "", true, true, 0);

        assert_int_equal(run->err.code, ERR_DATA);
        assert_non_null(strstr(run->err.text, "causal needs as many keys as queries"));
    }
    fixture_free(&f);
}

SUITE(NULL, NULL)
