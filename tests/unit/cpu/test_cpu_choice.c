/* test_cpu_choice.c -- choices screened in float equal those in double.
 *
 * Every choice is compared with sums in double, in index order, on numbers that float cannot
 * distinguish: exact ties, differences of the last bit, and what overflows or is no number.
 */
#include "cpu_fixture.h"

typedef enum Kind {
    NORMAL,
    LEVELS, /* -1, 0, 1: ties everywhere */
    TWINS,  /* columns that differ in a bit or not at all */
    ALIKE,  /* all rows the same */
    TINY,   /* products underflow in float */
    HUGE,   /* products overflow in float */
    HOLES,  /* zero rows, NaN and infinity */
    KINDS
} Kind;

static void shape_rows(Tensor *t, Kind kind, bool columns)
{
    int64_t rows = t->shape[0] * t->shape[1], d = t->shape[2];
    float  *x = t->data;

    for (int64_t i = 0; i < rows * d; i++) {
        int64_t row = i / d;

        if (kind == LEVELS)
            x[i] = rintf(x[i]) > 0 ? 1 : rintf(x[i]) < 0 ? -1 : 0;
        if (kind == TWINS && columns && row % 3)
            x[i] = i % d == 0 && row % 3 == 1 ? nextafterf(x[i - d], INFINITY) : x[i - d];
        if (kind == ALIKE && !columns)
            x[i] = x[i % d];
        if (kind == TINY || kind == HUGE)
            x[i] *= kind == TINY ? 1e-22f : 1e22f;
        if (kind == HOLES && row % 7 == 1)
            x[i] = 0;
        if (kind == HOLES && !columns && row % 97 == 5 && i % d == 2)
            x[i] = row % 2 ? NAN : INFINITY;
    }
}

static double product(const double *x, const Tensor *y, int64_t row, int64_t d)
{
    double sum = 0;

    for (int64_t t = 0; t < d; t++)
        sum += x[t] * (y->dtype == DT_F64 ? ((double *)y->data)[row * d + t]
                                          : (double)((float *)y->data)[row * d + t]);
    return sum;
}

static double length(const double *x, int64_t d)
{
    double squares = 0;

    for (int64_t t = 0; t < d; t++)
        squares += x[t] * x[t];
    return squares < 1e-24 ? 1e-12 : sqrt(squares);
}

static void wide_row(const Tensor *x, int64_t row, double *to)
{
    for (int64_t t = 0; t < x->shape[2]; t++)
        to[t] = x->dtype == DT_F64 ? ((double *)x->data)[row * x->shape[2] + t]
                                   : (double)((float *)x->data)[row * x->shape[2] + t];
}

/* The same numbers in double, a last bit of double apart where `apart`. */
static Tensor widened(Fixture *f, Tensor x, bool apart)
{
    Tensor y = fixture_tensor(f, DT_F64, x.shape[0], x.shape[1], x.shape[2]);

    for (int64_t i = 0; i < tensor_count(&x); i++)
        ((double *)y.data)[i] = (double)((float *)x.data)[i] *
                                (apart ? 1 + 0x1p-50 * (double)(i / x.shape[2] % 5) : 1);
    return y;
}

typedef struct Exact {
    Tensor  x; /* f64 [h,n,d] */
} Exact;

static void exact_row(const void *context, int64_t head, int64_t i, double *row)
{
    const Exact *e = context;

    wide_row(&e->x, head * e->x.shape[1] + i, row);
}

static ChoiceRows choice_of(const Exact *e, Tensor near, bool exact)
{
    return (ChoiceRows){ .near = near, .exact = exact ? exact_row : NULL, .context = e };
}

/* ---- the nearest ------------------------------------------------------------ */

static int32_t nearest_plain(const double *x, const Nearest *in, int64_t first, int64_t count)
{
    int64_t d = in->y.shape[2], all = in->with_negative ? 2 * count : count, best = 0;
    double  top = 0;

    for (int64_t c = 0; c < all; c++) {
        double z = product(x, &in->y, first + c % count, d), column[128];

        z = c < count ? z : -z;
        wide_row(&in->y, first + c % count, column);
        if (in->cosine)
            z /= length(x, d) * length(column, d);
        if (c == 0 || z > top) {
            top = z;
            best = c;
        }
    }
    return (int32_t)best;
}

static void check_nearest(Kind kind, bool exact, bool negative, bool cosine, int64_t n,
                          int64_t parts, int64_t count, int64_t d)
{
    Fixture f = fixture_new(2, 7);
    Tensor  x = fixture_normal(&f, 2, n, d, 1), y = fixture_normal(&f, 2, parts * count, d, 1);
    Tensor  index = { .dtype = DT_I32 };
    Exact   e;
    Nearest in;
    double  row[128];

    shape_rows(&x, kind, false);
    shape_rows(&y, kind, true);
    e.x = widened(&f, x, exact);
    in = (Nearest){ .x = choice_of(&e, x, exact), .y = exact ? widened(&f, y, true) : y,
                    .parts = parts, .with_negative = negative, .cosine = cosine };
    index = fixture_tensor(&f, DT_I32, 2, parts, n);
    cpu_nearest(f.run, &in, &index);
    for (int64_t i = 0; i < 2 * parts * n; i++) {
        int64_t head = i / (parts * n), part = i / n % parts;

        wide_row(exact ? &e.x : &x, head * n + i % n, row);
        assert_int_equal(tensor_i32(&index)[i],
                         nearest_plain(row, &in, (head * parts + part) * count, count));
    }
    fixture_free(&f);
}

TEST(nearest_is_that_of_double)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int form = 0; form < 6; form++) {
            check_nearest((Kind)kind, form % 2, form / 2 == 1, form / 2 == 2, 101, 2, 70, 17);
            check_nearest((Kind)kind, form % 2, form / 2 == 1, form / 2 == 2, 25, 1, 64, 64);
            check_nearest((Kind)kind, form % 2, form / 2 == 1, form / 2 == 2, 3, 3, 1, 1);
        }
}

/* ---- the best --------------------------------------------------------------- */

static void check_best(Kind kind, bool exact, int64_t n, int64_t count, int64_t d, int64_t k)
{
    Fixture    f = fixture_new(2, 9);
    Tensor     x = fixture_normal(&f, 2, n, d, 1), y = fixture_normal(&f, 2, count, d, 1);
    Tensor     index = fixture_tensor(&f, DT_I32, 2, count, k);
    Exact      e;
    ChoiceRows rows;
    double    *z = malloc((size_t)n * sizeof(*z)), row[128];

    shape_rows(&x, kind, false);
    shape_rows(&y, kind, true);
    e.x = widened(&f, x, exact);
    rows = choice_of(&e, x, exact);
    cpu_best_rows(f.run, &rows, &y, k, &index);
    for (int64_t c = 0; c < 2 * count; c++) {
        const int32_t *got = tensor_i32(&index) + c * k;
        int64_t        at = 0;

        for (int64_t i = 0; i < n; i++) {
            wide_row(&e.x, c / count * n + i, row);
            z[i] = product(row, &y, c, d);
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t ahead = 0;

            for (int64_t j = 0; j < n && ahead < k; j++)
                ahead += cpu_order_key(z[j]) > cpu_order_key(z[i]) ||
                         (cpu_order_key(z[j]) == cpu_order_key(z[i]) && j < i);
            if (ahead < k)
                assert_int_equal(got[at++], i);
        }
        assert_int_equal(at, k);
    }
    free(z);
    fixture_free(&f);
}

TEST(best_rows_are_those_of_double)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int exact = 0; exact < 2; exact++) {
            check_best((Kind)kind, exact, 2300, 5, 16, 40);
            check_best((Kind)kind, exact, 9000, 2, 8, 70);
            check_best((Kind)kind, exact, 300, 67, 9, 13);
            check_best((Kind)kind, exact, 61, 3, 64, 61);
            check_best((Kind)kind, exact, 1, 1, 1, 1);
        }
}

/* Row i is (a, a), in double (a + more, a + more). */
static void set_row(Tensor *near, Tensor *wide, int64_t i, float a, double more)
{
    for (int64_t t = 0; t < 2; t++) {
        tensor_f32(near)[2 * i + t] = a;
        ((double *)wide->data)[2 * i + t] = (double)a + more;
    }
}

/* The limit that the sample gives is reached by as many rows as are wanted, but float is not sure
 * of the last: row 1001 below the limit equals row 3001 on it in double, and comes first. */
TEST(best_rows_are_sought_below_the_limit)
{
    enum { ROWS = 4096, WANTED = 23, STEP = 16, SURE = 10 };
    const float limit = 1 - 0x1p-12f; /* 12 steps of bisection from [0, 1] */
    Fixture     f = fixture_new(1, 9);
    Tensor      x = fixture_tensor(&f, DT_F32, 1, ROWS, 2), y = fixture_tensor(&f, DT_F32, 1, 1, 2);
    Tensor      index = fixture_tensor(&f, DT_I32, 1, 1, WANTED);
    Exact       e = { .x = fixture_tensor(&f, DT_F64, 1, ROWS, 2) };
    ChoiceRows  rows = choice_of(&e, x, true);

    tensor_f32(&y)[0] = tensor_f32(&y)[1] = 1;
    for (int64_t i = 0; i < ROWS; i++)
        set_row(&x, &e.x, i, i % STEP == 0 && i / STEP < SURE ? 0.5f : 0, 0);
    for (int64_t i = 0; i < WANTED - SURE - 1; i++)
        set_row(&x, &e.x, 2001 + STEP * i, 0.49995f, 0);
    set_row(&x, &e.x, 1001, limit / 2 - 0x1p-25f, 0x1p-26);
    set_row(&x, &e.x, 3001, limit / 2, -0x1p-26);
    cpu_best_rows(f.run, &rows, &y, WANTED, &index);
    assert_int_equal(tensor_i32(&index)[SURE], 1001);
    assert_int_equal(tensor_i32(&index)[WANTED - 1], 2001 + STEP * (WANTED - SURE - 2));
    fixture_free(&f);
}

/* ---- codes ------------------------------------------------------------------ */

static void check_codes(Kind kind, bool bias, int64_t n, int64_t bits, int64_t d)
{
    Fixture f = fixture_new(2, 11);
    Tensor  x = fixture_normal(&f, 2, n, d, 1), planes = fixture_normal(&f, 1, bits, d + 1, 1);
    Tensor  code = fixture_tensor(&f, DT_I64, 2, n, 1);
    double  row[128];

    shape_rows(&x, kind, false);
    shape_rows(&planes, kind, true);
    cpu_codes(f.run, &x, &planes, bias, &code);
    for (int64_t i = 0; i < 2 * n; i++)
        for (int64_t t = 0; t < bits; t++) {
            const float *plane = tensor_f32(&planes) + t * (d + 1);
            double       sum = 0;

            wide_row(&x, i, row);
            for (int64_t s = 0; s < d; s++)
                sum += row[s] * (double)plane[s];
            assert_int_equal(((int64_t *)code.data)[i] >> t & 1,
                             sum > (bias ? (double)plane[d] : 0));
        }
    fixture_free(&f);
}

TEST(codes_are_those_of_double)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int bias = 0; bias < 2; bias++) {
            check_codes((Kind)kind, bias, 50, 63, 64);
            check_codes((Kind)kind, bias, 7, 5, 3);
        }
}

/* ---- kernels ---------------------------------------------------------------- */

#define PEAK_ROWS 5

/* The largest entry of a row, or -1 where another is within the margin. */
static int32_t only_peak(const float *s, int64_t count, bool negative, float margin)
{
    int32_t at = 0;
    int     found = 0;

    for (int32_t j = 1; j < count; j++)
        if ((negative ? fabsf(s[j]) : s[j]) > (negative ? fabsf(s[at]) : s[at]))
            at = j;
    for (int64_t j = 0; j < count; j++)
        found += (negative ? fabsf(s[j]) : s[j]) >= (negative ? fabsf(s[at]) : s[at]) - margin;
    return found == 1 ? at : -1;
}

static void check_peaks(const Kernel *kernel, const float *s, int64_t lds, int64_t count,
                        bool negative)
{
    const float margin[PEAK_ROWS] = { 0, 0.01f, 0.25f, NAN, INFINITY };
    float       top[PEAK_ROWS * LANES];
    int32_t     at[PEAK_ROWS + 1] = { 0, 0, 0, 0, 0, -7 };

    for (int64_t r = 0; r < PEAK_ROWS; r++)
        for (int64_t c = 0; c < LANES; c++)
            top[r * LANES + c] = kernel->largest(s + r * lds, count, 1);
    kernel->peaks(s, lds, PEAK_ROWS, count, negative ? NULL : top, margin, at);
    for (int64_t r = 0; r < PEAK_ROWS; r++)
        assert_int_equal(at[r], isnan(margin[r]) ? -1
                                                 : only_peak(s + r * lds, count, negative,
                                                             margin[r]));
    assert_int_equal(at[PEAK_ROWS], -7);
}

TEST(kernels_find_limits_and_peaks)
{
    Fixture f = fixture_new(1, 13);
    Tensor  s = fixture_normal(&f, 1, PEAK_ROWS, 200, 1), limit = fixture_normal(&f, 1, 1, 192, 1);
    float  *x = s.data, *low = limit.data;

    low[7] = x[7];
    low[8] = -INFINITY;
    low[9] = INFINITY;
    x[190] = x[191] = 9; /* a tie, */
    x[200 + 63] = 9;     /* and single peaks */
    x[200 + 128] = 9.005f;
    x[400 + 64] = -9;
    for (int k = 0; kernel_at(k); k++) {
        uint64_t bits = kernel_at(k)->at_least(x, low);

        for (int j = 0; j < TILE_KEYS; j++)
            assert_int_equal(bits >> j & 1, x[j] >= low[j]);
        for (int64_t count = 64; count <= 192; count += 64)
            for (int negative = 0; negative < 2; negative++)
                check_peaks(kernel_at(k), x, 200, count, negative);
    }
    fixture_free(&f);
}

/* How many of x[count] are at least `limit`. */
static int64_t count_reaching(const float *x, int64_t count, float limit)
{
    int64_t found = 0;

    for (int64_t j = 0; j < count; j++)
        found += x[j] >= limit;
    return found;
}

TEST(kernels_bound_the_largest_numbers)
{
    Fixture f = fixture_new(1, 14);
    Tensor  t = fixture_normal(&f, 1, 1, 192, 1);
    float  *x = t.data;

    x[5] = -INFINITY;
    for (int k = 0; kernel_at(k); k++)
        for (int64_t count = LANES; count <= 192; count += LANES)
            for (int64_t takes = 1; takes <= LANES; takes++) {
                float bound = kernel_at(k)->class_bound(x, count, takes);

                assert_true(bound == kernel_at(0)->class_bound(x, count, takes));
                assert_true(count_reaching(x, count, bound) >= takes);
                assert_true(takes > 1 || count_reaching(x, count, bound) == 1);
                assert_int_equal(kernel_at(k)->reach(x, count, bound),
                                 count_reaching(x, count, bound));
            }
    fixture_free(&f);
}

TEST(kernels_bound_the_columns_of_scores)
{
    enum { ROWS = 300, TAKES = 17 };
    Fixture f = fixture_new(1, 15);
    Tensor  t = fixture_normal(&f, 1, ROWS, TILE_KEYS, 1);
    float  *s = t.data;

    for (int r = 0; r < ROWS; r++)
        s[r * TILE_KEYS + 5] = 2; /* all alike */
    for (int k = 0; kernel_at(k); k++) {
        float limit[TILE_KEYS];

        kernel_at(k)->column_bounds(s, ROWS, TAKES, 12, limit);
        for (int c = 0; c < TILE_KEYS; c++) {
            int reached = 0;

            for (int r = 0; r < ROWS; r++)
                reached += s[r * TILE_KEYS + c] >= limit[c];
            assert_true(reached >= TAKES);
            assert_true(c == 5 || reached <= TAKES + 1);
        }
    }
    fixture_free(&f);
}

TEST(kernels_sum_the_squares_of_rows)
{
    Fixture f = fixture_new(1, 16);
    Tensor  t = fixture_normal(&f, 1, 7, 41, 1);
    float  *x = t.data;

    for (int k = 0; kernel_at(k); k++)
        for (int64_t d = 1; d <= 37; d++) {
            float found[8] = { [7] = -7 };

            kernel_at(k)->rows_squares_near(x, 41, 7, d, found);
            for (int64_t r = 0; r < 7; r++)
                CHECK_BELOW(fabs((double)found[r] - kernel_at(k)->squares(x + r * 41, d)), 1e-5,
                            "squares");
            assert_true(found[7] == -7);
        }
    fixture_free(&f);
}

/* The lowest of the nearest. */
static int32_t nearest_code(int64_t code, const int64_t *centres, int32_t of)
{
    int32_t best = 0;

    for (int32_t c = 1; c < of; c++)
        if (__builtin_popcountll((uint64_t)(code ^ centres[c])) <
            __builtin_popcountll((uint64_t)(code ^ centres[best])))
            best = c;
    return best;
}

TEST(kernels_find_the_nearest_codes)
{
    enum { CODES = 75, CENTRES = 33 };
    int64_t code[CODES], centre[CENTRES];
    int32_t found[CODES + 1];
    Rng     rng = rng_named(1, "codes");

    for (int c = 0; c < CENTRES; c++)
        centre[c] = (int64_t)rng_next(&rng);
    for (int i = 0; i < CODES; i++)
        code[i] = (int64_t)rng_next(&rng);
    centre[20] = centre[4]; /* a tie */
    code[3] = code[74] = ~centre[7];
    code[40] = centre[20];
    for (int k = 0; kernel_at(k); k++)
        for (int count = 0; count <= CODES; count++) {
            found[count] = -7;
            kernel_at(k)->nearest_codes(code, count, centre, CENTRES, found);
            for (int i = 0; i < count; i++)
                assert_int_equal(found[i], nearest_code(code[i], centre, CENTRES));
            assert_int_equal(found[count], -7);
        }
}

TEST(kernels_agree_on_moments)
{
    Fixture f = fixture_new(1, 13);
    Tensor  t = fixture_normal(&f, 1, 1, 37, 1), y = fixture_tensor(&f, DT_F32, 1, 1, 37);
    float  *x = t.data;

    for (int k = 0; kernel_at(k); k++) {
        double sum, squares, want[2] = { 0, 0 };

        for (int j = 0; j < 37; j++) {
            want[0] += (double)x[j] - 0.5;
            want[1] += ((double)x[j] - 0.5) * ((double)x[j] - 0.5);
        }
        kernel_at(k)->moments(x, 37, 0.5, &sum, &squares);
        CHECK_BELOW(fabs(sum - want[0]), 1e-12, "sum");
        CHECK_BELOW(fabs(squares - want[1]), 1e-12, "squares");
        kernel_at(k)->centre(x, 37, 0.5, 3, y.data);
        for (int j = 0; j < 37; j++)
            assert_true(tensor_f32(&y)[j] == (float)(((double)x[j] - 0.5) * 3));
    }
    fixture_free(&f);
}

/* ---- balancing ----------------------------------------------------------------- */

/* Steps from normal entries with this deviation, by factors and by logarithms; false: factors are
 * not taken, and the entries are left alone. */
static bool balanced_alike(int threads, int64_t b, double deviation, int steps)
{
    Fixture   f = fixture_new(threads, 8);
    Tensor    p = fixture_tensor(&f, DT_F64, 3, b, b), l = fixture_tensor(&f, DT_F64, 3, b, b);
    Balancing x = { .log_p = p, .row = fixture_tensor(&f, DT_F64, 1, 3, b),
                    .column = fixture_tensor(&f, DT_F64, 1, 3, b) };
    double   *want = l.data, *got = p.data;
    bool      taken;

    for (int64_t i = 0; i < 3 * b * b; i++)
        want[i] = got[i] = deviation * rng_normal(&f.rng);
    taken = cpu_balance_powers(f.run, &x);
    if (!taken)
        assert_memory_equal(got, want, (size_t)tensor_bytes(&p));
    for (int t = 0; taken && t < steps; t++) {
        cpu_balance(f.run, &x);
        cpu_sinkhorn(f.run, &l, &(Tensor){ 0 }, false);
        cpu_sinkhorn(f.run, &l, &(Tensor){ 0 }, true);
    }
    if (taken)
        cpu_balance_shares(f.run, &x, &p);
    for (int64_t i = 0; taken && i < 3 * b * b; i++)
        CHECK_BELOW(fabs(got[i] - exp(want[i])), 1e-11, "entry %d of %d, deviation %g", (int)i,
                    (int)b, deviation);
    fixture_free(&f);
    return taken;
}

/* Also the widest that factors take, and beyond. */
TEST(factors_balance_as_logarithms_do)
{
    for (int steps = 1; steps <= 24; steps *= 2)
        for (int64_t b = 1; b < 90; b += 1 + b / 2) {
            assert_true(balanced_alike(1, b, 2, steps));
            if (b == 19 || b == 43)
                assert_true(balanced_alike(1, b, 30, steps));
            if (b > 20)
                assert_true(!balanced_alike(1, b, 120, steps));
        }
    assert_true(balanced_alike(3, 450, 5, 3)); /* enough for threads */
}

SUITE(NULL, NULL)
