/* test_cpu_long.c -- operations that read the whole sequence into a few rows, norms and waves,
 * against plain references. */
#include "check.h"
#include "cpu_fixture.h"

static double *f64(Tensor t)
{
    return t.data;
}

static double at(const Tensor *t, int64_t head, int64_t heads, int64_t r, int64_t c)
{
    return (double)((const float *)tensor_head(t, head, heads))[r * t->stride[1] + c];
}

/* ---- a few queries, all keys -------------------------------------------------- */

static double score(const FewAttend *in, int64_t head, int64_t heads, int64_t i, int64_t j)
{
    double sum = 0;

    for (int64_t c = 0; c < in->q.shape[2]; c++)
        sum += at(&in->q, head, heads, i, c) * at(&in->k, head, heads, j, c);
    return in->scale * sum;
}

/* Row i of softmax(scale q k^T), and the log of its denominator. */
static double weights_of(const FewAttend *in, int64_t head, int64_t heads, int64_t i, double *w)
{
    double top = -(double)INFINITY, sum = 0;

    for (int64_t j = 0; j < in->k.shape[1]; j++)
        top = fmax(top, w[j] = score(in, head, heads, i, j));
    for (int64_t j = 0; j < in->k.shape[1]; j++)
        sum += w[j] = exp(w[j] - top);
    for (int64_t j = 0; j < in->k.shape[1]; j++)
        w[j] /= sum;
    return top + log(sum);
}

static void check_mixed(const double *w, const Tensor *v, const Tensor *out, int64_t head,
                        int64_t heads, int64_t i)
{
    for (int64_t c = 0; c < out->shape[2]; c++) {
        double want = 0;

        for (int64_t j = 0; j < v->shape[1]; j++)
            want += w[j] * at(v, head, heads, j, c);
        CHECK_NEAR(at(out, head, heads, i, c), want, 2e-6);
    }
}

static void check_few(int threads, int64_t l, int64_t m, int64_t d, int64_t e, int64_t more)
{
    Fixture   f = fixture_new(threads, 3);
    FewAttend in = { .q = fixture_normal(&f, 1, l, d, 1), .k = fixture_normal(&f, 2, m, d, 1),
                     .v = fixture_normal(&f, 1, m, e, 1), .scale = 1 / sqrt((double)d) };
    FewResult out = { .out = fixture_tensor(&f, DT_F32, 2, l, e),
                      .lse = tensor_with_rank(fixture_tensor(&f, DT_F64, 1, 2, l), 2) };
    double   *w = calloc((size_t)m, sizeof(*w));

    if (more > 0) {
        in.more = fixture_normal(&f, 2, m, more, 1);
        out.more = fixture_tensor(&f, DT_F32, 2, l, more);
    }
    cpu_few_attend(f.run, &in, &out);
    for (int64_t row = 0; row < 2 * l; row += l > 40 ? 7 : 1) {
        double lse = weights_of(&in, row / l, 2, row % l, w);

        CHECK_NEAR(f64(out.lse)[row], lse, 2e-6);
        check_mixed(w, &in.v, &out.out, row / l, 2, row % l);
        if (more > 0)
            check_mixed(w, &in.more, &out.more, row / l, 2, row % l);
    }
    free(w);
    fixture_free(&f);
}

TEST(a_few_queries_read_all_keys)
{
    check_few(1, 1, 1, 1, 1, 0);
    check_few(2, 3, 7, 5, 9, 0);
    check_few(2, 16, 300, 8, 16, 8);
    check_few(3, 17, 253, 64, 64, 64);
    check_few(2, 64, 5000, 12, 20, 3);
    check_few(2, 131, 9000, 6, 5, 0);
}

TEST(threads_change_no_bit_of_few)
{
    float first[2 * 20 * 8];

    for (int threads = 1; threads <= 3; threads++) {
        Fixture   f = fixture_new(threads, 3);
        FewAttend in = { .q = fixture_normal(&f, 2, 20, 8, 1), .scale = 1,
                         .k = fixture_normal(&f, 2, 9000, 8, 1),
                         .v = fixture_normal(&f, 2, 9000, 8, 1) };
        FewResult out = { .out = fixture_tensor(&f, DT_F32, 2, 20, 8),
                          .lse = tensor_with_rank(fixture_tensor(&f, DT_F64, 1, 2, 20), 2) };

        cpu_few_attend(f.run, &in, &out);
        if (threads == 1)
            memcpy(first, out.out.data, sizeof(first));
        assert_memory_equal(first, out.out.data, sizeof(first));
        fixture_free(&f);
    }
}

TEST(a_number_that_is_none_reaches_its_query_only)
{
    Fixture   f = fixture_new(2, 3);
    FewAttend in = { .q = fixture_normal(&f, 1, 3, 4, 1), .k = fixture_normal(&f, 1, 50, 4, 1),
                     .v = fixture_normal(&f, 1, 50, 2, 1), .scale = 1 };
    FewResult out = { .out = fixture_tensor(&f, DT_F32, 1, 3, 2),
                      .lse = tensor_with_rank(fixture_tensor(&f, DT_F64, 1, 1, 3), 2) };

    tensor_f32(&in.q)[1 * 4] = NAN;
    cpu_few_attend(f.run, &in, &out);
    assert_true(isnan(tensor_f32(&out.out)[1 * 2]));
    assert_false(isnan(tensor_f32(&out.out)[0]) || isnan(tensor_f32(&out.out)[2 * 2]));
    fixture_free(&f);
}

/* ---- long products ------------------------------------------------------------ */

static void check_long(int threads, int64_t rows, int64_t inner, int64_t cols)
{
    Fixture f = fixture_new(threads, 3);
    Tensor  a = fixture_normal(&f, 1, rows, inner, 1), b = fixture_normal(&f, 2, inner, cols, 1);
    Tensor  c = fixture_tensor(&f, DT_F64, 2, rows, cols);

    cpu_gemm_long(f.run, &a, &b, 0.5, &c);
    for (int64_t x = 0; x < tensor_count(&c); x += 1 + tensor_count(&c) / 500) {
        int64_t head = x / rows / cols, r = x / cols % rows;
        double  want = 0;

        for (int64_t t = 0; t < inner; t++)
            want += 0.5 * at(&a, head, 2, r, t) * at(&b, head, 2, t, x % cols);
        /* Sums of this many products of normal numbers are of size sqrt(inner). */
        CHECK_NEAR(f64(c)[x] / sqrt((double)inner), want / sqrt((double)inner), 1e-6);
    }
    fixture_free(&f);
}

TEST(products_over_a_long_axis)
{
    check_long(1, 1, 1, 1);
    check_long(2, 7, 255, 5);
    check_long(2, 8, 9000, 70);
    check_long(3, 100, 4097, 17);
}

/* ---- norms -------------------------------------------------------------------- */

/* `first` and `all` are added to the first number of the row, and to all. */
static void check_standardised(const Kernel *kernel, int64_t count, bool more, float first,
                               float all)
{
    Fixture f = fixture_new(1, 3);
    Tensor  x = fixture_normal(&f, 3, 1, count, 4);
    float  *row = tensor_f32(&x), *gain = row + count, *bias = gain + count, y[300];
    double  mean = 0, variance = 0;

    row[0] += first;
    for (int64_t c = 0; c < count; c++)
        row[c] += all;
    for (int64_t c = 0; c < count; c++)
        mean += (double)row[c] / (double)count;
    for (int64_t c = 0; c < count; c++)
        variance += ((double)row[c] - mean) * ((double)row[c] - mean) / (double)count;
    kernel->standardise(row, count, 1e-6, more ? gain : NULL, more ? bias : NULL, y);
    for (int64_t c = 0; c < count; c++)
        CHECK_NEAR((double)y[c], ((double)row[c] - mean) / sqrt(variance + 1e-6) *
                                         (more ? (double)gain[c] : 1) +
                                     (more ? (double)bias[c] : 0), 1e-6);
    fixture_free(&f);
}

TEST(norms_of_every_kernel)
{
    for (int which = 0; kernel_at(which); which++)
        for (int64_t count = 1; count < 300; count += 23) {
            check_standardised(kernel_at(which), count, false, 0, 0);
            check_standardised(kernel_at(which), count, true, 0, 0);
            check_standardised(kernel_at(which), count, true, 0, 4096);
            check_standardised(kernel_at(which), count, false, 1e6f, 0);
        }
}

#define WAVES 1003

static void check_waves(const Kernel *kernel, const float *y, float factor)
{
    float sines[WAVES], cosines[WAVES];

    kernel->float_waves(y, WAVES, factor, 2.0f, sines, cosines);
    for (int x = 0; x < WAVES; x++) {
        double angle = (double)(factor * y[x]);

        if (!isfinite(angle)) {
            assert_true(isnan(sines[x]) && isnan(cosines[x]));
            continue;
        }
        CHECK_NEAR((double)sines[x], 2 * sin(angle), 4e-7);
        CHECK_NEAR((double)cosines[x], 2 * cos(angle), 4e-7);
    }
}

TEST(waves_of_every_kernel)
{
    float y[WAVES];

    for (int x = 0; x < WAVES; x++)
        y[x] = (float)(x - WAVES / 2) * 0.37f;
    for (int which = 0; kernel_at(which); which++) {
        check_waves(kernel_at(which), y, 1);
        check_waves(kernel_at(which), y, -2.7f);
    }
    y[3] = 1e9f; /* the C library computes from here on */
    y[40] = INFINITY;
    y[41] = NAN;
    for (int which = 0; kernel_at(which); which++)
        check_waves(kernel_at(which), y, 1);
}

TEST(largest_and_squares)
{
    float x[70];

    for (int i = 0; i < 70; i++)
        x[i] = (float)((i * 37) % 71 - 30);
    for (int which = 0; kernel_at(which); which++)
        for (int64_t count = 1; count <= 70; count++) {
            float  most = -INFINITY, least = INFINITY;
            double sum = 0;

            for (int64_t i = 0; i < count; i++) {
                most = fmaxf(most, x[i]);
                least = fminf(least, x[i]);
                sum += (double)x[i] * (double)x[i];
            }
            assert_true(kernel_at(which)->largest(x, count, 1) == most);
            assert_true(kernel_at(which)->largest(x, count, -1) == -least);
            assert_true(kernel_at(which)->squares(x, count) == sum);
            CHECK_NEAR((double)kernel_at(which)->squares_near(x, count) / (sum + 1),
                       sum / (sum + 1), 1e-6);
        }
}

/* Whichever row is the longest, and however many there are; one that is no number stays. */
TEST(most_squares_of_rows)
{
    enum { ROWS = 7, PITCH = 40 };
    float x[ROWS * PITCH];

    for (int which = 0; kernel_at(which); which++)
        for (int64_t d = 1; d < PITCH; d++)
            for (int64_t rows = 1; rows <= ROWS; rows++)
                for (int64_t longest = 0; longest < rows; longest++) {
                    for (int i = 0; i < ROWS * PITCH; i++)
                        x[i] = i % PITCH < d ? 1 : 1000;
                    x[longest * PITCH + d - 1] = 3;
                    assert_true(kernel_at(which)->most_squares(x, PITCH, rows, d) ==
                                (float)(d + 8));
                    x[longest * PITCH] = NAN;
                    assert_true(isnan(kernel_at(which)->most_squares(x, PITCH, rows, d)));
                }
}

TEST(log_sums_of_rows)
{
    enum { COUNT = 21 };
    float max[COUNT], sum[COUNT], y[COUNT + 1];

    for (int i = 0; i < COUNT; i++) {
        max[i] = (float)((i * 37) % 71 - 30) * 1.5f;
        sum[i] = 1 + (float)(i * i * i) / 3;
    }
    max[4] = max[5] = -INFINITY;
    sum[4] = 0;
    sum[5] = sum[6] = NAN;
    max[7] = INFINITY;
    sum[7] = NAN;
    for (int which = 0; kernel_at(which); which++)
        for (int64_t count = 1; count <= COUNT; count++) {
            y[count] = 17;
            kernel_at(which)->log_sums(max, sum, count, y);
            for (int i = 0; i < count; i++)
                if (i < 4 || i > 7)
                    CHECK_NEAR((double)y[i],
                               ((double)max[i] + log2((double)sum[i])) * log(2), 1e-5);
            assert_true(count <= 4 || y[4] == -INFINITY);
            assert_true(count <= 7 || (isnan(y[5]) && isnan(y[6]) && isnan(y[7])));
            assert_true(y[count] == 17);
        }
}

/* Row 1 has no key in this pass, row 2 none before; row 3 is NaN in this pass, row 4 before. */
TEST(joins_of_rows)
{
    enum { COUNT = 21 };
    float max[COUNT], sum[COUNT], old[COUNT], lse[COUNT + 1], kept[COUNT + 1], added[COUNT + 1];

    for (int i = 0; i < COUNT; i++) {
        max[i] = (float)((i * 37) % 71 - 30) * 1.5f;
        sum[i] = 1 + (float)(i * i) / 3;
        old[i] = (float)((i * 23) % 67 - 40) + (i == 20 ? 900 : 0);
    }
    max[1] = old[2] = -INFINITY;
    sum[1] = 0;
    sum[3] = old[4] = NAN;
    for (int which = 0; kernel_at(which); which++)
        for (int64_t count = 1; count <= COUNT; count++) {
            memcpy(lse, old, sizeof(old));
            lse[count] = kept[count] = added[count] = 17;
            kernel_at(which)->join(max, sum, count, lse, kept, added);
            for (int i = 0; i < count; i++) {
                double more = ((double)max[i] + log2((double)sum[i])) * log(2);
                double high = fmax(more, (double)old[i]);
                double all = high + log(exp(more - high) + exp((double)old[i] - high));

                if (i == 3 || i == 4) {
                    assert_true(isnan(lse[i]) && isnan(kept[i]) && isnan(added[i]));
                    continue;
                }
                CHECK_NEAR((double)lse[i], i == 1 ? (double)old[i] : all, 1e-5);
                CHECK_NEAR((double)kept[i], i == 1 ? 1 : exp((double)old[i] - all), 1e-6);
                CHECK_NEAR((double)added[i] * (double)sum[i], i == 1 ? 0 : exp(more - all), 1e-6);
            }
            assert_true(count <= 1 || (kept[1] == 1 && added[1] == 0));
            assert_true(lse[count] == 17 && kept[count] == 17 && added[count] == 17);
        }
}

/* Row r keeps every key of which the bit in keep[r] is 1; row 2 keeps none, row 3 sees NaN. */
static void check_shares(const Kernel *kernel, int keys, const uint64_t *keep)
{
    enum { ROWS = 5, PITCH = 80 };
    float s[ROWS * PITCH], was[ROWS * PITCH], max[ROWS], sum[ROWS];

    for (int i = 0; i < ROWS * PITCH; i++)
        s[i] = was[i] = i % PITCH < keys ? (float)((i * 29) % 53) / 4 : 1000;
    for (int j = 0; keep && j < keys; j++)
        s[3 * PITCH + j] = NAN;
    kernel->shares(s, PITCH, ROWS, keys, keep, max, sum);
    for (int r = 0; r < ROWS; r++) {
        double top = -(double)INFINITY, total = 0;

        for (int pass = 0; pass < 2; pass++)
            for (int j = 0; j < keys; j++)
                if (!keep || keep[r] >> j & 1) {
                    total += pass ? exp2((double)was[r * PITCH + j] - top) : 0;
                    top = pass ? top : fmax(top, (double)was[r * PITCH + j]);
                }
        assert_true(s[r * PITCH + PITCH - 1] == 1000);
        if (keep && r == 3) {
            assert_true(max[r] == -INFINITY && isnan(sum[r]) && isnan(s[r * PITCH]));
            continue;
        }
        assert_true((double)max[r] == top);
        CHECK_NEAR((double)sum[r] / (total + 1), total / (total + 1), 1e-6);
        for (int j = 0; j < (keys + LANES - 1) / LANES * LANES; j++) {
            bool   kept = j < keys && (!keep || keep[r] >> j & 1);
            double share = kept ? exp2((double)was[r * PITCH + j] - top) / total : 0;

            CHECK_NEAR((double)s[r * PITCH + j], share, 1e-6);
        }
    }
}

TEST(shares_of_rows)
{
    static const uint64_t keep[] = { ~UINT64_C(0), UINT64_C(0x123456789abcdef1), 0,
                                     ~UINT64_C(0), 1 };

    for (int which = 0; kernel_at(which); which++)
        for (int keys = 1; keys <= TILE_KEYS; keys++) {
            check_shares(kernel_at(which), keys, NULL);
            check_shares(kernel_at(which), keys, keep);
        }
}

/* Exactly the sum in order, whatever the kernel. */
TEST(means_of_rows)
{
    enum { ROWS = 9, WIDTH = 75 };
    const Kernel *kernel;
    Fixture       f = fixture_new(1, 3);
    Tensor        x = fixture_normal(&f, 1, ROWS, WIDTH, 1);
    const float  *row[ROWS];
    double        more[WIDTH];

    for (int r = 0; r < ROWS; r++)
        row[r] = tensor_f32(&x) + (r * 5 % ROWS) * WIDTH;
    for (int c = 0; c < WIDTH; c++)
        more[c] = c / 7.0;
    for (int k = 0; (kernel = kernel_at(k)); k++)
        for (int kind = 0; kind < 4; kind++)
            for (int rows = 0; rows <= ROWS; rows++) {
                const float *own = kind & 1 ? row[3] : NULL;
                float        y[WIDTH];

                kernel->mean_rows(row, rows, kind & 2 ? more : NULL, 0.3, own, row[0], WIDTH, y);
                for (int c = 0; c < WIDTH; c++) {
                    double sum = kind & 2 ? more[c] : 0;

                    for (int r = 0; r < rows; r++)
                        sum += (double)row[r][c];
                    assert_true(y[c] == (float)(sum * 0.3 - (own ? (double)own[c] : 0)));
                }
            }
    fixture_free(&f);
}

SUITE(NULL, NULL)
