/* test_spectrum.c -- singular values of matrices with known ones. */

#include "attn/cpu/cpu.h"
#include "attn/study/spectrum.h"
#include "check.h"
#include "core/rng.h"
#include "core/threads.h"

/* A matrix of floats as a view; rows x cols. */
static View view_of(float *values, int64_t rows, int64_t cols)
{
    View view = { .name = "matrix", .kind = VIEW_TENSOR, .dtype = DT_F32, .rank = 2,
                  .shape = { rows, cols }, .rows = "row", .cols = "column" };

    view.tensor = tensor_of(DT_F32, 2, view.shape, values);
    return view;
}

/* sum of s[k] u_k v_k^T over `count` random orthonormal pairs. */
static float *product(int64_t rows, int64_t cols, int64_t count, const double *s)
{
    double *u = malloc((size_t)(rows * count) * sizeof(*u));
    double *v = malloc((size_t)(cols * count) * sizeof(*v));
    float  *out = malloc((size_t)(rows * cols) * sizeof(*out));
    Rng     rng = rng_named(5, "product");
    Error   err = ERROR_INIT;

    assert_true(u && v && out);
    for (int64_t i = 0; i < rows * count; i++)
        u[i] = rng_normal(&rng);
    for (int64_t i = 0; i < cols * count; i++)
        v[i] = rng_normal(&rng);
    CHECK(svd_orthonormal(u, rows, count, &err), "%s", err.text);
    CHECK(svd_orthonormal(v, cols, count, &err), "%s", err.text);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            double sum = 0;

            for (int64_t k = 0; k < count; k++)
                sum += s[k] * u[k * rows + i] * v[k * cols + j];
            out[i * cols + j] = (float)sum;
        }
    free(u);
    free(v);
    return out;
}

TEST(orthogonal_factors_have_equal_values)
{
    float  hadamard[16 * 16];
    double values[16], energy;
    View   view = view_of(hadamard, 16, 16);
    Error  err = ERROR_INIT;

    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++)
            hadamard[i * 16 + j] = __builtin_popcount((unsigned)(i & j)) % 2 ? -1 : 1;
    CHECK(spectrum_make(&view, 0, &(SpectrumWay){ 0 }, values, &energy, &err), "%s", err.text);
    for (int i = 0; i < 16; i++)
        CHECK(fabs(values[i] - 4) < 1e-12, "value %d: %.15g", i, values[i]);
    CHECK(fabs(energy - 256) < 1e-12, "%.15g", energy);
}

TEST(products_of_rank_k_have_k_values)
{
    static const double s[] = { 3, 2, 1, 0.5, 0.01 };
    static const int64_t shapes[][2] = { { 30, 30 }, { 50, 12 }, { 12, 50 }, { 5, 5 } };

    for (int k = 0; k < 4; k++) {
        int64_t rows = shapes[k][0], cols = shapes[k][1], count = rows < cols ? rows : cols;
        float  *a = product(rows, cols, 5, s);
        View    view = view_of(a, rows, cols);
        double  values[30], energy;
        Error   err = ERROR_INIT;

        assert_int_equal(spectrum_count(&view, &(SpectrumWay){ 0 }), count);
        CHECK(spectrum_make(&view, 0, &(SpectrumWay){ 0 }, values, &energy, &err), "%s", err.text);
        for (int64_t i = 0; i < count; i++) /* what floats keep of the product */
            CHECK(fabs(values[i] - (i < 5 ? s[i] : 0)) < 1e-6, "%lld of %lld x %lld: %.9g",
                  (long long)i, (long long)rows, (long long)cols, values[i]);
        free(a);
    }
}

typedef struct Both {
    double  exact[400], found[400], energy, energy_found;
    int64_t count;
} Both;

static Both both_ways(float *a, int64_t rows, int64_t cols, int64_t rank, Threads *threads)
{
    View        view = view_of(a, rows, cols);
    SpectrumWay way = { .exact = 1, .rank = rank, .seed = 3, .threads = threads };
    Both        b = { .count = spectrum_count(&view, &way) };
    Error       err = ERROR_INIT;

    CHECK(spectrum_make(&view, 0, &(SpectrumWay){ 0 }, b.exact, &b.energy, &err), "%s", err.text);
    CHECK(spectrum_make(&view, 0, &way, b.found, &b.energy_found, &err), "%s", err.text);
    CHECK(fabs(b.energy - b.energy_found) <= 1e-12 * b.energy, "energy");
    return b;
}

/* Both sides must fit: one that does not is enough for random directions. */
TEST(one_long_side_is_no_longer_exact)
{
    float             numbers[24] = { 0 };
    const SpectrumWay way = { .exact = 5, .rank = 2 };
    const struct {
        int64_t rows, cols;
        bool    exact;
    } known[] = { { 5, 4, true }, { 4, 5, true }, { 6, 4, false }, { 4, 6, false } };

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        View view = view_of(numbers, known[i].rows, known[i].cols);

        assert_int_equal(spectrum_is_exact(&view, &way), known[i].exact);
        assert_int_equal(spectrum_count(&view, &way), known[i].exact ? 4 : 2);
    }
}

TEST(random_directions_find_a_falling_spectrum)
{
    double s[120];
    float *a;
    Both   b;

    for (int k = 0; k < 120; k++) /* s_(l+1) = s_20 / 2.4 */
        s[k] = pow(0.95, k);
    a = product(330, 290, 120, s);
    b = both_ways(a, 330, 290, 20, NULL);
    assert_int_equal(b.count, 20);
    for (int64_t i = 0; i < b.count; i++) {
        CHECK(b.found[i] <= b.exact[i] * (1 + 1e-12), "%lld: above the true value", (long long)i);
        CHECK(b.found[i] >= b.exact[i] * (1 - 5e-3), "%lld: %.9g of %.9g", (long long)i,
              b.found[i], b.exact[i]);
    }
    free(a);
}

TEST(a_flat_spectrum_is_a_lower_bound)
{
    int64_t rows = 400, cols = 400;
    float  *a = malloc((size_t)(rows * cols) * sizeof(*a));
    Rng     rng = rng_named(9, "flat");
    Both    b;

    assert_non_null(a);
    rng_fill_normal(&rng, a, rows * cols, 1);
    b = both_ways(a, rows, cols, 40, NULL);
    for (int64_t i = 0; i < b.count; i++) {
        CHECK(b.found[i] <= b.exact[i] * (1 + 1e-12), "%lld: above", (long long)i);
        CHECK(b.found[i] >= b.exact[i] * 0.9, "%lld: %.4g of %.4g", (long long)i, b.found[i],
              b.exact[i]);
    }
    free(a);
}

TEST(directions_that_span_all_are_exact)
{
    double s[9] = { 5, 4, 3, 2, 1, 1, 1, 0.1, 0.01 };
    float *a = product(40, 9, 9, s);
    Both   b = both_ways(a, 40, 9, 9, NULL);

    for (int64_t i = 0; i < b.count; i++)
        CHECK(fabs(b.found[i] - b.exact[i]) < 1e-12, "%lld", (long long)i);
    free(a);
    a = product(9, 40, 9, s); /* there are no more directions than rows */
    b = both_ways(a, 9, 40, 9, NULL);
    assert_int_equal(b.count, 9);
    for (int64_t i = 0; i < b.count; i++)
        CHECK(fabs(b.found[i] - b.exact[i]) < 1e-12, "%lld of columns", (long long)i);
    free(a);
}

TEST(threads_do_not_change_a_bit)
{
    double   s[60];
    float   *a;
    Threads *threads = threads_new(3);
    Both     one, three;

    for (int k = 0; k < 60; k++)
        s[k] = 1.0 / (k + 1);
    a = product(300, 280, 60, s);
    one = both_ways(a, 300, 280, 50, NULL);
    three = both_ways(a, 300, 280, 50, threads);
    assert_memory_equal(one.found, three.found, (size_t)one.count * sizeof(double));
    threads_free(threads);
    free(a);
}

/* A matrix whose reads are counted. */
typedef struct Counted {
    const float *a;
    int64_t      cols;
    atomic_int  *rows; /* reads, of which each is of one row */
} Counted;

static void read_counted(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const Counted *c = view->context;

    (void)head;
    atomic_fetch_add(c->rows, 1);
    for (int64_t x = 0; x < count; x++)
        out[x] = c->a[i * c->cols + start + x * step];
}

/* A band of numbers, the same with zeros around it, and both as views. */
TEST(few_cells_are_read_once_and_have_the_same_values)
{
    enum { N = 230, REACH = 3 };
    PatternShape s = { .heads = 1, .n = N, .m = N };
    SpectrumWay  way = { .exact = 1, .rank = 30, .seed = 3 };
    Arena       *arena = arena_new();
    float       *a = calloc((size_t)(N * N), sizeof(*a));
    atomic_int   reads = 0;
    Counted      counted = { .a = a, .cols = N, .rows = &reads };
    View         dense = view_of(a, N, N), sparse = view_of(NULL, N, N);
    double       whole[30], few[30], energy[2];
    Rng          rng = rng_named(9, "band");
    Error        err = ERROR_INIT;

    assert_true(a && arena);
    for (int i = 0; i < N; i++)
        for (int j = max_i64(0, i - REACH); j < min_i64(N, i + REACH + 1); j++)
            a[i * N + j] = (float)rng_normal(&rng);
    sparse.read = read_counted;
    sparse.context = &counted;
    sparse.support = pattern_band(arena, s, -REACH, REACH, 1, COMPONENT_WINDOW);
    CHECK(spectrum_make(&dense, 0, &way, whole, &energy[0], &err), "%s", err.text);
    CHECK(spectrum_make(&sparse, 0, &way, few, &energy[1], &err), "%s", err.text);
    for (int i = 0; i < 30; i++)
        CHECK(fabs(whole[i] - few[i]) <= 1e-9 * whole[0], "%d: %.15g and %.15g", i, whole[i],
              few[i]);
    CHECK(fabs(energy[0] - energy[1]) <= 1e-12 * energy[0], "energy");
    assert_int_equal(atomic_load(&reads), N);
    arena_free(arena);
    free(a);
}

/* Columns of a narrow matrix, each over eight columns, and a band: as a sum and whole. */
TEST(a_view_that_is_spread_has_the_same_values)
{
    enum { N = 260, REACH = 3, STRIDE = 4, SIZE = 8, WIDTH = (N - SIZE) / STRIDE + 1 };
    PatternShape s = { .heads = 1, .n = N, .m = N };
    SpectrumWay  way = { .exact = 1, .rank = 30, .seed = 3 };
    Arena       *arena = arena_new();
    float       *a = calloc((size_t)(N * N), sizeof(*a)), *b = calloc((size_t)(N * N), sizeof(*b));
    float       *c = calloc((size_t)(N * WIDTH), sizeof(*c));
    atomic_int   reads = 0, narrow_reads = 0;
    Counted      band = { .a = b, .cols = N, .rows = &reads };
    Counted      shares = { .a = c, .cols = WIDTH, .rows = &narrow_reads };
    View         dense = view_of(a, N, N), sum = view_of(NULL, N, N), rest = view_of(NULL, N, N);
    View         narrow = view_of(NULL, N, WIDTH);
    ViewSpread   spread = { &narrow, &rest, STRIDE, SIZE };
    double       whole[30], apart[30], energy[2];
    Rng          rng = rng_named(9, "spread");
    Error        err = ERROR_INIT;

    assert_true(a && b && c && arena);
    for (int i = 0; i < N; i++) {
        for (int x = 0; x < WIDTH && x * STRIDE + SIZE <= i; x++) {
            c[i * WIDTH + x] = (float)rng_normal(&rng);
            for (int j = 0; j < SIZE; j++)
                a[i * N + x * STRIDE + j] += c[i * WIDTH + x];
        }
        for (int j = max_i64(0, i - REACH); j < min_i64(N, i + REACH + 1); j++) {
            b[i * N + j] = (float)rng_normal(&rng);
            a[i * N + j] += b[i * N + j];
        }
    }
    rest.read = narrow.read = read_counted;
    rest.context = &band;
    rest.support = pattern_band(arena, s, -REACH, REACH, 1, COMPONENT_WINDOW);
    narrow.context = &shares;
    sum.spread = &spread; /* and no reader: the sum itself is not read */
    CHECK(spectrum_make(&dense, 0, &way, whole, &energy[0], &err), "%s", err.text);
    CHECK(spectrum_make(&sum, 0, &way, apart, &energy[1], &err), "%s", err.text);
    for (int i = 0; i < 30; i++) /* sums of the whole are rounded to float */
        CHECK(fabs(whole[i] - apart[i]) <= 1e-6 * whole[0], "%d: %.15g and %.15g", i, whole[i],
              apart[i]);
    CHECK(fabs(energy[0] - energy[1]) <= 1e-12 * energy[0], "%.15g and %.15g", energy[0],
          energy[1]);
    assert_int_equal(atomic_load(&reads), N);
    assert_int_equal(atomic_load(&narrow_reads), 3 * N);
    arena_free(arena);
    free(a);
    free(b);
    free(c);
}

TEST(what_cannot_be_found_is_said)
{
    float       a[] = { 1, NAN, 2, 3 };
    View        view = view_of(a, 2, 2);
    double      values[2], energy;
    atomic_bool cancel = true;
    Error       err = ERROR_INIT;

    assert_false(spectrum_make(&view, 0, &(SpectrumWay){ 0 }, values, &energy, &err));
    CHECK(strstr(err.text, "NaN"), "%s", err.text);
    err = (Error)ERROR_INIT;
    assert_false(spectrum_make(&view, 0, &(SpectrumWay){ .exact = 1 }, values, &energy, &err));
    CHECK(strstr(err.text, "NaN"), "%s", err.text);
    err = (Error)ERROR_INIT;
    assert_false(spectrum_make(&view, 0, &(SpectrumWay){ .cancel = &cancel }, values, &energy,
                               &err));
    assert_int_equal(err.code, ERR_CANCELLED);
}

TEST(zero_is_zero)
{
    float  a[12] = { 0 };
    View   view = view_of(a, 3, 4);
    double values[3], energy;
    Error  err = ERROR_INIT;

    for (int way = 0; way < 2; way++) {
        CHECK(spectrum_make(&view, 0, &(SpectrumWay){ .exact = way }, values, &energy, &err), "%s",
              err.text);
        CHECK(values[0] == 0 && values[2] == 0 && energy == 0, "not zero");
    }
}

SUITE(NULL, NULL)
