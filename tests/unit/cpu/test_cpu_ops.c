/* test_cpu_ops.c -- products, decisions and row operations of the CPU's back end. */
#include "cpu_fixture.h"

static double element(const Tensor *t, int64_t head, int64_t heads, int64_t r, int64_t c,
                      bool turned)
{
    const float *x = tensor_head(t, head, heads);

    return (double)x[turned ? c * t->stride[1] + r : r * t->stride[1] + c];
}

/* 0.5 a b + beta c; with beta 0 what c holds is not read. */
static void check_gemm(int64_t rows, int64_t cols, int64_t inner, bool ta, bool tb, double beta)
{
    Fixture f = fixture_new(2, 3);
    Tensor  a = fixture_normal(&f, 1, ta ? inner : rows, ta ? rows : inner, 1);
    Tensor  b = fixture_normal(&f, 2, tb ? cols : inner, tb ? inner : cols, 1);
    Tensor  c = fixture_normal(&f, 4, rows, cols, 1);
    float  *old = malloc((size_t)tensor_bytes(&c));
    /* The rounding of a float32 sum grows with its length, and OpenBLAS kernels for
     * other CPUs add in other orders: 1.03e-5 was seen for 400 products. */
    double tolerance = inner > 256 ? 2e-5 : 1e-5;

    memcpy(old, c.data, (size_t)tensor_bytes(&c));
    for (int64_t x = 0; x < tensor_count(&c) && beta == 0; x++)
        tensor_f32(&c)[x] = NAN;
    cpu_gemm(f.run, &a, ta, &b, tb, 0.5, beta, &c);
    for (int64_t t = 0; t < 4; t++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t x = 0; x < cols; x++) {
                int64_t at = (t * rows + r) * cols + x;
                double  want = beta * (double)old[at];

                for (int64_t k = 0; k < inner; k++)
                    want += 0.5 * element(&a, t, 4, r, k, ta) * element(&b, t, 4, k, x, tb);
                CHECK_BELOW(worst_error(tensor_f32(&c) + at, &want, 1), tolerance, "gemm %d %d %d",
                            (int)rows, (int)cols, (int)inner);
            }
    free(old);
    fixture_free(&f);
}

TEST(gemm)
{
    static const int64_t sizes[][3] = { { 1, 1, 1 }, { 7, 5, 3 }, { 300, 33, 65 }, { 2, 64, 400 },
                                        { 200, 64, 300 } };

    for (size_t x = 0; x < sizeof(sizes) / sizeof(sizes[0]); x++)
        for (int form = 0; form < 8; form++)
            check_gemm(sizes[x][0], sizes[x][1], sizes[x][2], form & 1, form & 2, form & 4 ? 2 : 0);
}

/* c in double, 0.5 a b + beta c, where a is heads of one row or of more. */
static void check_gemm_wide(int64_t rows, int64_t cols, int64_t inner, bool tb, double beta)
{
    Fixture f = fixture_new(2, 3);
    Tensor  a = fixture_normal(&f, 4, rows, inner, 1);
    Tensor  b = fixture_normal(&f, 2, tb ? cols : inner, tb ? inner : cols, 1);
    Tensor  c = fixture_tensor(&f, DT_F64, 4, rows, cols);

    for (int64_t x = 0; x < tensor_count(&c); x++)
        tensor_f64(&c)[x] = beta == 0 ? (double)NAN : (double)x;
    cpu_gemm(f.run, &a, false, &b, tb, 0.5, beta, &c);
    for (int64_t at = 0; at < tensor_count(&c); at++) {
        int64_t t = at / (rows * cols), r = at / cols % rows, x = at % cols;
        double  want = beta == 0 ? 0 : beta * (double)at;

        for (int64_t k = 0; k < inner; k++)
            want += 0.5 * element(&a, t, 4, r, k, false) * element(&b, t, 4, k, x, tb);
        CHECK_BELOW(fabs(tensor_f64(&c)[at] - want), 1e-12 * fmax(1, fabs(want)),
                    "gemm %d %d %d at %d", (int)rows, (int)cols, (int)inner, (int)at);
    }
    fixture_free(&f);
}

TEST(gemm_in_double)
{
    static const int64_t sizes[][3] = { { 1, 1, 1 },   { 1, 64, 64 }, { 1, 37, 129 },
                                        { 3, 37, 29 }, { 1, 512, 700 } };

    for (size_t x = 0; x < sizeof(sizes) / sizeof(sizes[0]); x++)
        for (int way = 0; way < 4; way++)
            check_gemm_wide(sizes[x][0], sizes[x][1], sizes[x][2], way & 1, way & 2 ? 3 : 0);
}

/* y [2,b,c] is x [2,c,b] turned, whose rows are ldx apart. */
static void check_turned(int64_t b, int64_t c, int64_t ldx)
{
    Fixture f = fixture_new(2, 3);
    Tensor  x = fixture_normal(&f, 2, c, ldx, 1), y = fixture_tensor(&f, DT_F32, 2, b, c + 1);
    Tensor  from = x, to = y;

    from.shape[1] = b;
    from.shape[2] = to.shape[2] = c;
    from.stride[1] = 1;
    from.stride[2] = ldx;
    memset(y.data, 0, (size_t)tensor_bytes(&y));
    cpu_entries(f.run, &(Entries){ .x = from, .y = to, .kind = ENTRY_CAST });
    for (int64_t t = 0; t < 2; t++)
        for (int64_t i = 0; i < b; i++) {
            for (int64_t j = 0; j < c; j++)
                assert_true(tensor_f32(&y)[(t * b + i) * (c + 1) + j] ==
                            tensor_f32(&x)[(t * c + j) * ldx + i]);
            assert_true(tensor_f32(&y)[(t * b + i) * (c + 1) + c] == 0); /* beside it */
        }
    fixture_free(&f);
}

TEST(turned_entries)
{
    check_turned(64, 128, 64);
    check_turned(65, 63, 70);
    check_turned(3, 130, 5);
    check_turned(1, 7, 4);
    check_turned(5, 1, 5);
}

/* Exactly the sum in index order, for every row, column and kernel. */
TEST(dots64)
{
    static const int64_t sizes[][3] = { { 1, 1, 1 }, { 7, 5, 3 }, { 131, 64, 16 }, { 70, 65, 37 } };

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        int64_t n = sizes[s][0], d = sizes[s][1], cols = sizes[s][2];
        Fixture f = fixture_new(2, 3);
        Tensor  x = fixture_normal(&f, 2, n, d, 1), w = fixture_normal(&f, 1, d, cols, 1);
        Tensor  y = fixture_tensor(&f, DT_F64, 2, n, cols);

        cpu_dots64(f.run, &x, &w, &y);
        for (int64_t r = 0; r < 2 * n; r++)
            for (int64_t c = 0; c < cols; c++) {
                double want = 0;

                for (int64_t t = 0; t < d; t++)
                    want += (double)tensor_f32(&x)[r * d + t] *
                            (double)tensor_f32(&w)[t * cols + c];
                assert_true(((double *)y.data)[r * cols + c] == want);
            }
        fixture_free(&f);
    }
}

/* Columns in double are added in the same order as columns in float. */
TEST(dots64_of_wide_columns)
{
    Fixture f = fixture_new(2, 3);
    Tensor  x = fixture_normal(&f, 2, 70, 37, 1), w = fixture_tensor(&f, DT_F64, 2, 37, 21);
    Tensor  y = fixture_tensor(&f, DT_F64, 2, 70, 21);

    for (int64_t i = 0; i < tensor_count(&w); i++)
        ((double *)w.data)[i] = rng_normal(&f.rng);
    cpu_dots64(f.run, &x, &w, &y);
    for (int64_t i = 0; i < tensor_count(&y); i++) {
        const double *columns = (double *)w.data + i / (70 * 21) * 37 * 21 + i % 21;
        double        want = 0;

        for (int64_t t = 0; t < 37; t++)
            want += (double)tensor_f32(&x)[i / 21 * 37 + t] * columns[t * 21];
        assert_true(((double *)y.data)[i] == want);
    }
    fixture_free(&f);
}

TEST(kernels_agree_on_dots64)
{
    Fixture       f = fixture_new(1, 9);
    Tensor        x = fixture_normal(&f, 1, 23, 50, 1);
    Tensor        w = fixture_tensor(&f, DT_F64, 1, 50, 48);
    Tensor        y[4];
    const Kernel *kernel;

    for (int64_t i = 0; i < 50 * 48; i++)
        ((double *)w.data)[i] = (double)(float)rng_normal(&f.rng);
    for (int k = 0; (kernel = kernel_at(k)); k++) {
        y[k] = fixture_tensor(&f, DT_F64, 1, 23, 48);
        kernel->dots64(x.data, 50, 23, 50, w.data, 48, y[k].data, 48);
        assert_memory_equal(y[0].data, y[k].data, (size_t)tensor_bytes(&y[k]));
    }
    fixture_free(&f);
}

/* Sums of doubles in index order, from the bias on, whatever the kernel. */
TEST(products_of_doubles_keep_their_order)
{
    Fixture f = fixture_new(1, 9);
    Tensor  x = fixture_tensor(&f, DT_F64, 1, 71, 37), w = fixture_tensor(&f, DT_F64, 1, 37, 21);
    Tensor  y = fixture_tensor(&f, DT_F64, 1, 71, 21);
    float   bias[21];

    for (int64_t i = 0; i < 71 * 37; i++)
        ((double *)x.data)[i] = rng_normal(&f.rng);
    for (int64_t i = 0; i < 37 * 21; i++)
        ((double *)w.data)[i] = rng_normal(&f.rng);
    for (int c = 0; c < 21; c++)
        bias[c] = (float)c / 7;
    cpu_product64(f.run, &x, &w, bias, &y);
    for (int64_t i = 0; i < 71; i++)
        for (int64_t c = 0; c < 21; c++) {
            double sum = (double)bias[c];

            for (int64_t t = 0; t < 37; t++)
                sum += ((double *)x.data)[i * 37 + t] * ((double *)w.data)[t * 21 + c];
            assert_true(((double *)y.data)[i * 21 + c] == sum);
        }
    fixture_free(&f);
}

TEST(gelu_is_close_everywhere)
{
    const Kernel *kernel;

    for (int k = 0; (kernel = kernel_at(k)); k++)
        for (int start = -400; start < 400; start += 37) {
            float x[37], bias[37];

            for (int i = 0; i < 37; i++) {
                x[i] = (float)(start + i) * 0.05f;
                bias[i] = (float)(i % 5) * 0.01f;
            }
            kernel->gelu(x, bias, 37);
            for (int i = 0; i < 37; i++) {
                double in = (double)((float)(start + i) * 0.05f + bias[i]);
                double u = sqrt(2 / M_PI) * (in + 0.044715 * in * in * in);
                double wanted = in / (1 + exp(-2 * u));

                /* u is rounded to float, and e^u grows what that costs by u */
                if (!(fabs((double)x[i] - wanted) <=
                      (4e-7 + 5e-7 * fabs(u)) * fabs(wanted) + 1e-30))
                    fail_msg("%s: gelu(%g) = %g, expected %g", kernel->name, in, (double)x[i],
                             wanted);
            }
        }
}

static bool nearly(double got, double want, double unit)
{
    return isnan(want) ? isnan(got) : got == want || fabs(got - want) <= 4e-16 * unit;
}

/* Exponentials and waves in double, with and without the range that the library decides. */
TEST(exponentials_and_waves_in_double)
{
    static const double special[] = { 0, -0.0, 710, -710, -746, 699.9, 1e4, 3e5, -1e9, 1e-300,
                                      INFINITY, -INFINITY, NAN };
    enum { SPECIAL = sizeof(special) / sizeof(special[0]), COUNT = 4000 + SPECIAL };
    static double x[COUNT], e[COUNT], sines[COUNT], cosines[COUNT];
    const Kernel *kernel;

    for (int i = 0; i < COUNT; i++)
        x[i] = i < 4000 ? (i - 2000) * (i % 2 ? 0.00731 : 0.31) : special[i - 4000];
    for (int k = 0; (kernel = kernel_at(k)); k++) {
        memcpy(e, x, sizeof(e));
        memcpy(sines, x, sizeof(sines));
        kernel->exp64(e, COUNT);
        kernel->waves(sines, 4009, 0.5, sines, cosines); /* in place; the infinite ones apart */
        for (int i = 0; i < COUNT; i++) {
            if (!nearly(e[i], exp(x[i]), exp(x[i])))
                fail_msg("%s: exp(%g) = %.17g", kernel->name, x[i], e[i]);
            if (i < 4009 && (!nearly(sines[i], 0.5 * sin(x[i]), 0.5) ||
                             !nearly(cosines[i], 0.5 * cos(x[i]), 0.5)))
                fail_msg("%s: waves of %g", kernel->name, x[i]);
        }
    }
}

/* 1 / (1 + 2^-(x + shift)) and the sum, in every kernel; far below it is exactly 0. */
TEST(logistic_weights_and_their_sum)
{
    enum { COUNT = 5 * LANES };

    for (int k = 0; kernel_at(k); k++) {
        float  x[COUNT], y[COUNT], sum;
        double want = 0;

        for (int i = 0; i < COUNT; i++)
            y[i] = x[i] = (float)(i - COUNT / 2) * 0.7f;
        y[0] = x[0] = -INFINITY;
        y[1] = x[1] = 400;
        y[2] = x[2] = -400;
        sum = kernel_at(k)->logistic(y, COUNT, 0.3f);
        for (int i = 0; i < COUNT; i++) {
            double exact = 1 / (1 + exp2(-(double)(x[i] + 0.3f)));

            CHECK_BELOW(fabs((double)y[i] - exact), 1e-6 * exact + 1e-37, "%s of %g",
                        kernel_at(k)->name, (double)x[i]);
            want += exact;
        }
        assert_true(y[0] == 0 && y[1] == 1 && y[2] == 0);
        CHECK_BELOW(fabs((double)sum - want), 1e-6 * want, "the sum of %s", kernel_at(k)->name);
        y[7] = NAN;
        assert_true(isnan(kernel_at(k)->logistic(y, LANES, 0)) && isnan(y[7]) && !isnan(y[6]));
    }
}

/* Relative errors of a few units in the last place, also where a sigmoid or a softplus is tiny. */
TEST(sigmoids_and_softplus_in_double)
{
    static const double special[] = { 0, -0.0, 36, -36, -40, 710, -710, -746, 1e4, -1e9, 1e-300,
                                      1e-17, INFINITY, -INFINITY, NAN };
    enum { SPECIAL = sizeof(special) / sizeof(special[0]), COUNT = 4000 + SPECIAL };
    static double x[COUNT], sigmoid[COUNT], softplus[COUNT];
    const Kernel *kernel;

    for (int i = 0; i < COUNT; i++)
        x[i] = i < 4000 ? (i - 2000) * (i % 2 ? 0.00731 : 0.31) : special[i - 4000];
    for (int k = 0; (kernel = kernel_at(k)); k++) {
        memcpy(sigmoid, x, sizeof(x));
        memcpy(softplus, x, sizeof(x));
        kernel->sigmoid64(sigmoid, COUNT);
        kernel->softplus64(softplus, COUNT, 1.7);
        for (int i = 0; i < COUNT; i++) {
            long double e = expl(-(long double)x[i]);
            double      soft = fmax(x[i], 0) + log1p(exp(-fabs(1.7 * x[i]))) / 1.7;
            double      want = isnan(x[i]) ? x[i] : (double)(1 / (1 + e));

            if (!nearly(sigmoid[i], want, 2 * want))
                fail_msg("%s: sigmoid(%g) = %.17g, not %.17g", kernel->name, x[i], sigmoid[i],
                         want);
            if (!nearly(softplus[i], soft, 3 * soft))
                fail_msg("%s: softplus(%g) = %.17g, not %.17g", kernel->name, x[i], softplus[i],
                         soft);
        }
    }
}

/* y = exp(-rate softplus(x + bias)), entry by entry. */
static void check_steps(int64_t h, int64_t n, int64_t width, DType dtype)
{
    Fixture   f = fixture_new(2, 11);
    Tensor    x = fixture_normal(&f, h, n, width, 2), bias = fixture_normal(&f, 1, 1, width, 1);
    Tensor    rate = fixture_normal(&f, h, 1, 1, 1), y = fixture_tensor(&f, dtype, h, n, width);
    EntryStep more[] = { { .kind = ENTRY_SOFTPLUS, .by = 1 },
                         { .kind = ENTRY_PRODUCT, .by = -1, .z = rate },
                         { .kind = ENTRY_EXP } };
    Entries   in = { .x = x, .z = bias, .kind = ENTRY_SUM, .by = 1, .y = y, .more = more,
                     .more_count = 3 };

    cpu_entries(f.run, &in);
    for (int64_t at = 0; at < h * n * width; at++) {
        double sum = (double)tensor_f32(&x)[at] + (double)tensor_f32(&bias)[at % width];
        double want = exp(-(double)tensor_f32(&rate)[at / width / n] * log1p(exp(sum)));

        assert_true(fabs(float_at(dtype, y.data, at) - want) <=
                    (dtype == DT_F64 ? 1e-12 : 1e-6) * want);
    }
    fixture_free(&f);
}

TEST(steps_of_entries_in_one_pass)
{
    check_steps(2, 5, 37, DT_F64);
    check_steps(3, 300, 64, DT_F32);
    check_steps(2, 700, 1, DT_F64);
    check_steps(1, 9, 600, DT_F32);
}

/* y = x times a number of each row, rounded once, in place or not. */
static void check_scaled(int64_t width, DType dtype, bool in_place)
{
    Fixture f = fixture_new(2, 13);
    Tensor  x = fixture_normal(&f, 2, 9, width, 1), z = fixture_tensor(&f, dtype, 2, 9, 1);
    Tensor  y = in_place ? x : fixture_tensor(&f, DT_F32, 2, 9, width);
    float   want[2 * 9 * 70];

    for (int64_t row = 0; row < 2 * 9; row++) {
        double by = 0.3 + 0.7 * (double)row;

        if (dtype == DT_F32)
            tensor_f32(&z)[row] = (float)by;
        else
            tensor_f64(&z)[row] = by;
        for (int64_t c = 0; c < width; c++)
            want[row * width + c] = (float)((double)tensor_f32(&x)[row * width + c] *
                                            float_at(dtype, z.data, row));
    }
    cpu_entries(f.run, &(Entries){ .x = x, .z = z, .kind = ENTRY_PRODUCT, .by = 1, .y = y });
    assert_memory_equal(y.data, want, (size_t)(2 * 9 * width) * sizeof(float));
    fixture_free(&f);
}

TEST(rows_times_a_number_of_the_row)
{
    for (int way = 0; way < 4; way++) {
        check_scaled(64, way & 1 ? DT_F32 : DT_F64, way & 2);
        check_scaled(70, way & 1 ? DT_F32 : DT_F64, way & 2);
        check_scaled(3, way & 1 ? DT_F32 : DT_F64, way & 2);
    }
}

/* x times its gate, by vectors and in the remainder, at every size of x. */
TEST(gelu_of_entries_in_its_tanh_form)
{
    Fixture f = fixture_new(2, 14);
    Tensor  x = fixture_tensor(&f, DT_F64, 1, 3, 333), y = fixture_tensor(&f, DT_F64, 1, 3, 333);

    for (int at = 0; at < 3 * 333; at++)
        tensor_f64(&x)[at] = (at - 500) * (at % 2 ? 0.013 : 0.9);
    cpu_entries(f.run, &(Entries){ .x = x, .kind = ENTRY_GELU_TANH, .y = y });
    for (int at = 0; at < 3 * 333; at++) {
        double a = tensor_f64(&x)[at];
        double gate = 0.5 * (1 + tanh(0.79788456080286535588 * (a + 0.044715 * a * a * a)));

        CHECK_NEAR(tensor_f64(&y)[at], a * gate, 1e-14 * fmax(1, fabs(a)));
    }
    fixture_free(&f);
}

/* One number for each row and head, of rows that all heads share. */
TEST(long_products_of_one_column)
{
    for (int64_t of = 1; of <= 3; of += 2) { /* one a for all heads, and one for each */
        Fixture f = fixture_new(2, 12);
        Tensor  a = fixture_normal(&f, of, 101, 300, 1), b = fixture_normal(&f, 3, 300, 1, 1);
        Tensor  c = fixture_tensor(&f, DT_F64, 3, 101, 1);

        cpu_gemm_long(f.run, &a, &b, 0.5, &c);
        for (int64_t t = 0; t < 3; t++)
            for (int64_t i = 0; i < 101; i++) {
                double want = 0;

                for (int64_t x = 0; x < 300; x++)
                    want += 0.5 * (double)tensor_f32(&a)[(t % of * 101 + i) * 300 + x] *
                            (double)tensor_f32(&b)[t * 300 + x];
                assert_true(fabs(tensor_f64(&c)[t * 101 + i] - want) <= 2e-5);
            }
        fixture_free(&f);
    }
}

TEST(argmax_takes_the_lowest)
{
    Fixture f = fixture_new(2, 1);
    Tensor  x = fixture_tensor(&f, DT_F64, 1, 4, 3), index = fixture_tensor(&f, DT_I32, 1, 1, 4);
    double  rows[] = { 1, 2, 2, 0, 0, 0, -3, 1, 3, -5, 4, 4 };

    memcpy(x.data, rows, sizeof(rows));
    cpu_argmax(f.run, &x, false, &index);
    assert_memory_equal(index.data, ((int32_t[]){ 1, 0, 2, 1 }), 16);
    cpu_argmax(f.run, &x, true, &index);
    assert_memory_equal(index.data, ((int32_t[]){ 1, 0, 2, 3 }), 16);
    fixture_free(&f);
}

/* By definition: i is in iff fewer than k rows beat it. */
static void check_top_k(int64_t n, int64_t cols, int64_t k, int levels)
{
    Fixture f = fixture_new(2, (uint64_t)n);
    Tensor  x = fixture_tensor(&f, DT_F64, 2, n, cols);
    Tensor  index = fixture_tensor(&f, DT_I32, 2, cols, k);
    double *v = x.data;

    for (int64_t i = 0; i < 2 * n * cols; i++)
        v[i] = levels ? (double)rng_below(&f.rng, (uint64_t)levels) - 1 : rng_normal(&f.rng);
    cpu_top_k(f.run, &x, k, &index);
    for (int64_t t = 0; t < 2; t++)
        for (int64_t c = 0; c < cols; c++) {
            const int32_t *got = tensor_i32(&index) + (t * cols + c) * k;
            int64_t        found = 0;

            for (int64_t i = 0; i < n; i++) {
                double  own = v[(t * n + i) * cols + c];
                int64_t better = 0;

                for (int64_t j = 0; j < n; j++) {
                    double other = v[(t * n + j) * cols + c];

                    better += other > own || (other == own && j < i);
                }
                if (better < k)
                    assert_int_equal(got[found++], i);
            }
            assert_int_equal(found, k);
        }
    fixture_free(&f);
}

TEST(top_k)
{
    check_top_k(1, 1, 1, 0);
    check_top_k(97, 5, 13, 0);
    check_top_k(97, 5, 13, 3);
    check_top_k(64, 3, 64, 2);
    check_top_k(200, 2, 1, 1);
}

static void check_sort(int64_t n, int64_t spread)
{
    Fixture  f = fixture_new(2, (uint64_t)n);
    Tensor   key = fixture_tensor(&f, DT_I32, 2, 3, n), order = fixture_tensor(&f, DT_I32, 2, 3, n);
    int32_t *k = tensor_i32(&key);

    for (int64_t i = 0; i < 6 * n; i++)
        k[i] = (int32_t)((int64_t)rng_below(&f.rng, (uint64_t)spread) - spread / 2);
    cpu_sort(f.run, &key, &order);
    for (int64_t r = 0; r < 6; r++)
        for (int64_t i = 1; i < n; i++) {
            int32_t a = tensor_i32(&order)[r * n + i - 1], b = tensor_i32(&order)[r * n + i];

            assert_true(k[r * n + a] < k[r * n + b] || (k[r * n + a] == k[r * n + b] && a < b));
        }
    fixture_free(&f);
}

TEST(sort_is_stable)
{
    check_sort(1, 3);
    check_sort(1000, 7);
    check_sort(1000, 100000);
    check_sort(777, INT64_C(0xffffffff));
}

TEST(normalise)
{
    for (int kind = NORMALISE_RMS; kind <= NORMALISE_LAYER; kind++) {
        Fixture f = fixture_new(2, 4);
        Tensor  x = fixture_normal(&f, 1, 130, 37, 3), y = fixture_tensor(&f, DT_F32, 2, 130, 37);

        memset(x.data, 0, 37 * sizeof(float)); /* a row of zeros */
        cpu_normalise(f.run, &x, kind, 1e-6, &y);
        for (int64_t r = 0; r < 260; r++) {
            const float *row = tensor_f32(&x) + r % 130 * 37;
            double       mean = 0, square = 0, want[37];

            for (int c = 0; c < 37; c++)
                mean += kind == NORMALISE_LAYER ? (double)row[c] / 37 : 0;
            for (int c = 0; c < 37; c++)
                square += ((double)row[c] - mean) * ((double)row[c] - mean);
            for (int c = 0; c < 37; c++)
                want[c] = ((double)row[c] - mean) /
                          (kind == NORMALISE_L2 ? fmax(sqrt(square), 1e-6)
                                                : sqrt(square / 37 + 1e-6));
            CHECK_BELOW(worst_error(tensor_f32(&y) + r * 37, want, 37), 1e-6, "kind %d", kind);
        }
        fixture_free(&f);
    }
}

enum { NO_MASK, ABSENT, PENALISED, MULTIPLIED };

/* Logits -1, 0, 1 in turn. */
static RowMask mask_of(Fixture *f, int kind, int64_t n, int64_t m)
{
    RowMask mask = { .n = n, .m = m, .hard = kind == ABSENT, .multiply = kind == MULTIPLIED,
                     .tau = 0.5, .penalty = 3, .logits = fixture_tensor(f, DT_F32, 1, n, m) };

    for (int64_t x = 0; x < n * m; x++)
        tensor_f32(&mask.logits)[x] = (float)(x % m % 3) - 1;
    return mask;
}

static double mask_at(int kind, int64_t j)
{
    return kind == ABSENT ? j % 3 != 0 : 1 / (1 + exp(-2.0 * (double)(j % 3 - 1)));
}

static void check_row(const Fixture *f, const RowAttend *in, const RowResult *out, int64_t row,
                      int kind)
{
    int64_t       n = in->q.shape[1], m = in->k.shape[1], d = in->q.shape[2], e = in->v.shape[2];
    int64_t       count = row_attend_keys(f->run, in, row % n);
    const Entmax *form = &in->form[row / n];
    double       *z = calloc((size_t)m + 1, 2 * sizeof(*z)), want[16] = { 0 };
    EntmaxRow     tau;
    int           support = 0;

    for (int64_t j = 0; j < count; j++) {
        for (int64_t t = 0; t < d; t++)
            z[j] += (double)tensor_f32(&in->q)[row * d + t] *
                    (double)tensor_f32(&in->k)[(row / n * m + j) * d + t];
        z[j] *= in->scale;
        if (kind == ABSENT && j % 3 == 0)
            z[j] = -HUGE_VAL;
        else if (kind == PENALISED)
            z[j] -= 3 * (1 - mask_at(kind, j));
    }
    tau = entmax_row(form, z, count, z + m, NULL, 0);
    for (int64_t j = 0; j < count; j++) {
        double w = z[j] > -HUGE_VAL ? entmax_weight(form, tau, z[j]) : 0;

        w *= kind == MULTIPLIED ? mask_at(kind, j) : 1;
        support += w > 1e-6;
        for (int64_t c = 0; c < e; c++)
            want[c] += w * (double)tensor_f32(&in->v)[(row / n * m + j) * e + c];
    }
    CHECK_BELOW(worst_error(tensor_f32(&out->out) + row * e, want, e), 2e-6, "row %d", (int)row);
    assert_true(((double *)out->tau.data)[row] == tau.tau);
    assert_int_equal(tensor_i32(&out->support)[row], support);
    free(z);
}

static void check_rows(int64_t n, int64_t m, bool causal, int kind, int threads)
{
    Fixture f = fixture_new(threads, (uint64_t)(n * m));
    Entmax  forms[4] = {
        { .form = ENTMAX_SOFTMAX, .alpha = 1 },
        { .form = ENTMAX_SPARSEMAX, .alpha = 2 },
        { .form = ENTMAX_SQUARE, .alpha = 1.5 },
        { .form = ENTMAX_BISECT, .alpha = 1.25, .iterations = 50, .divide = true },
    };
    RowMask   mask = mask_of(&f, kind, n, m);
    RowAttend in = { .scale = 0.7, .causal = causal, .form = forms, .negligible = 1e-6,
                     .mask = kind == NO_MASK ? NULL : &mask };
    RowResult out = { .out = fixture_tensor(&f, DT_F32, 4, n, 9),
                      .tau = fixture_tensor(&f, DT_F64, 1, 4, n),
                      .total = fixture_tensor(&f, DT_F64, 1, 4, n),
                      .support = fixture_tensor(&f, DT_I32, 1, 4, n) };

    in.q = fixture_normal(&f, 4, n, 5, 1);
    in.k = fixture_normal(&f, 4, m, 5, 1);
    in.v = fixture_normal(&f, 4, m, 9, 1);
    f.run->h = 4;
    f.run->q_offset = causal ? m - n : 0;
    cpu_row_attend(f.run, &in, &out);
    for (int64_t row = 0; row < 4 * n; row++)
        check_row(&f, &in, &out, row, kind);
    fixture_free(&f);
}

TEST(rows_of_any_normaliser)
{
    static const int64_t sizes[][2] = { { 1, 1 }, { 7, 7 }, { 70, 64 }, { 9, 130 }, { 5, 2 } };

    for (size_t x = 0; x < sizeof(sizes) / sizeof(sizes[0]); x++)
        for (int way = 0; way < 16; way++)
            check_rows(sizes[x][0], sizes[x][1], way & 1, way / 2 % 4, way & 8 ? 3 : 1);
}

/* How much key j is used, by definition. */
static double usage_of(const Tensor *q, const Tensor *k, double scale, bool causal, int64_t j)
{
    int64_t h = q->shape[0], n = q->shape[1], m = k->shape[1], d = q->shape[2];
    double  mean = 0;

    for (int64_t row = 0; row < h * n; row++) {
        int64_t seen = causal ? row % n + m - n + 1 : m;
        double  own = 0, sum = 0;

        for (int64_t y = 0; y < seen; y++) {
            double z = 0;

            for (int64_t c = 0; c < d; c++)
                z += (double)tensor_f32(q)[row * d + c] * (double)tensor_f32(k)[y * d + c];
            sum += exp(scale * z);
            own += y == j ? exp(scale * z) : 0;
        }
        mean += own / sum / (double)(h * n);
    }
    return mean;
}

TEST(usage_of_keys)
{
    static const int64_t sizes[][2] = { { 1, 1 }, { 3, 8 }, { 5, 9 }, { 20, 70 } };

    for (int x = 0; x < 8; x++) {
        int64_t n = sizes[x / 2][0], m = sizes[x / 2][1];
        Fixture f = fixture_new(2, (uint64_t)m);
        Tensor  q = fixture_normal(&f, 2, n, 5, 1), k = fixture_normal(&f, 1, m, 5, 1);
        Tensor  usage = tensor_with_rank(fixture_tensor(&f, DT_F64, 1, 1, m), 1);

        cpu_key_usage(f.run, &q, &k, 0.6, x % 2, &usage);
        for (int64_t j = 0; j < m; j++)
            CHECK_BELOW(fabs(((double *)usage.data)[j] - usage_of(&q, &k, 0.6, x % 2, j)), 1e-14,
                        "key %d of %d", (int)j, (int)m);
        fixture_free(&f);
    }
}

static void check_line_sums(const double *p, const uint8_t *allowed, int64_t b, bool columns)
{
    for (int64_t line = 0; line < b; line++) {
        double sum = 0;
        bool   any = false;

        for (int64_t c = 0; c < b; c++) {
            int64_t at = columns ? c * b + line : line * b + c;

            any |= allowed[at] != 0;
            sum += allowed[at] ? exp(p[at]) : 0;
        }
        CHECK_BELOW(fabs(sum - any), 1e-12, "line %d", (int)line);
    }
}

TEST(sinkhorn)
{
    enum { B = 19 };
    Fixture  f = fixture_new(2, 8);
    Tensor   p = fixture_tensor(&f, DT_F64, 3, B, B), allowed = fixture_tensor(&f, DT_U8, 1, B, B);
    double  *x = p.data;
    Tensor   none = { 0 };

    for (int64_t i = 0; i < 3 * B * B; i++)
        x[i] = 5 * rng_normal(&f.rng);
    for (int64_t i = 0; i < B * B; i++)
        tensor_u8(&allowed)[i] = i % B < i / B; /* row 0 and the last column: nothing */
    cpu_sinkhorn(f.run, &p, &allowed, false);
    check_line_sums(x + B * B, allowed.data, B, false);
    cpu_sinkhorn(f.run, &p, &allowed, true);
    check_line_sums(x, allowed.data, B, true);
    memset(allowed.data, 1, B * B);
    cpu_sinkhorn(f.run, &p, &none, false);
    check_line_sums(x + 2 * B * B, allowed.data, B, false);
    fixture_free(&f);
}

SUITE(NULL, NULL)
