/* test_cpu_choose.c -- what rows choose (op_choose) against plain sorting, and its kernels. */
#include "attn/ops/choose.h"
#include "attn/ops/soft_rows.h"
#include "cpu_fixture.h"

/* ---- kernels -------------------------------------------------------------------------- */

#define MOST 75

static const double odd_numbers[] = { NAN, -0.0, 0, HUGE_VAL, -HUGE_VAL, 1, 1, -1 };

static void fill_numbers(Rng *rng, double *x, int64_t count)
{
    for (int64_t c = 0; c < count; c++) {
        int64_t drawn = rng_below(rng, 12);

        x[c] = drawn < 8 ? odd_numbers[drawn] : rng_normal(rng);
    }
}

static void check_passing(const Kernel *kernel, const double *x, int64_t count)
{
    static const double limits[] = { NAN, 0, 1, -1, HUGE_VAL, -HUGE_VAL, .3 };

    for (size_t l = 0; l < sizeof(limits) / sizeof(*limits); l++)
        for (int64_t at = 0; at <= count; at++) {
            int64_t want = at;

            while (want < count && x[want] <= limits[l])
                want++;
            assert_int_equal(kernel->next_above64(x, at, count, limits[l]), want);
        }
}

static void check_loops(const Kernel *kernel, const double *x, int64_t count)
{
    double scaled[MOST], over[MOST], sum[MOST];

    memcpy(scaled, x, sizeof(scaled));
    memcpy(over, x, sizeof(over));
    for (int64_t c = 0; c < MOST; c++)
        sum[c] = (double)c;
    kernel->scale64(scaled, count, .7);
    kernel->over64(over, count, 3);
    kernel->fold_positive64(x, count, -.7, sum);
    for (int64_t c = 0; c < MOST; c++) {
        bool   in = c < count;
        double want = in ? (double)c + -.7 * (x[c] > 0 ? x[c] : 0) : (double)c;

        assert_true(scaled[c] == (in ? x[c] * .7 : x[c]) || isnan(x[c]));
        assert_true(over[c] == (in ? x[c] / 3 : x[c]) || isnan(x[c]));
        assert_true(sum[c] == want);
    }
}

/* Products of floats are exact: whether they are added rounded or not is the same. */
static void check_fused(const Kernel *kernel, Rng *rng, int64_t rows, int64_t d)
{
    double x[20 * 9], w[9 * LANES], y[20 * LANES], want;

    for (int64_t at = 0; at < 20 * 9; at++)
        x[at] = (double)(float)rng_normal(rng);
    for (int64_t at = 0; at < 9 * LANES; at++)
        w[at] = (double)(float)rng_normal(rng);
    kernel->fused64(x, 9, rows, d, w, y, LANES);
    for (int64_t at = 0; at < rows * LANES; at++) {
        want = 0;
        for (int64_t t = 0; t < d; t++)
            want += x[at / LANES * 9 + t] * w[t * LANES + at % LANES];
        assert_true(y[at] == want);
    }
}

static void check_softening(const Kernel *kernel, Rng *rng, int64_t count)
{
    double  x[MOST], y[MOST], e[MOST], top = -HUGE_VAL, want = 0;
    int64_t below = 0;

    for (int64_t c = 0; c < count; c++) {
        x[c] = e[c] = rng_below(rng, 30) ? 3 * rng_normal(rng) : -HUGE_VAL;
        y[c] = rng_uniform(rng);
        top = fmax(top, x[c]);
    }
    assert_true(kernel->largest64(x, count) == top);
    if (!(top > -HUGE_VAL))
        return;
    for (int64_t c = 0; c < count; c++)
        want += exp(x[c] - top);
    CHECK_BELOW(fabs(kernel->soften64(e, count, top) - want), 1e-12, "sum of %d", (int)count);
    for (int64_t c = 0; c < count; c++)
        CHECK_BELOW(fabs(e[c] - exp(x[c] - top)), 1e-15, "entry %d of %d", (int)c, (int)count);
    for (int64_t c = 0; c < count; c++)
        below += .9 * e[c] - .4 * y[c] < 0;
    memcpy(x, e, sizeof(x));
    assert_int_equal(kernel->subtract64(e, count, .9, y, .4), below);
    for (int64_t c = 0; c < count; c++)
        assert_true(e[c] == .9 * x[c] - .4 * y[c]);
}

static void check_wide_rows(const Kernel *kernel, Rng *rng, int64_t count, int64_t width)
{
    enum { ROWS = 20, STRIDE = 90 };
    float  rows[ROWS * STRIDE];
    double q[STRIDE], w[ROWS], s[ROWS], acc[STRIDE], want[STRIDE];

    for (int64_t x = 0; x < ROWS * STRIDE; x++)
        rows[x] = (float)rng_normal(rng);
    for (int64_t c = 0; c < STRIDE; c++) {
        q[c] = rng_normal(rng);
        w[c % ROWS] = rng_normal(rng);
        acc[c] = want[c] = (double)c;
    }
    kernel->dots_wide(q, rows, STRIDE, count, width, s);
    kernel->mix_wide(w, rows, STRIDE, count, width, acc);
    for (int64_t x = 0; x < count; x++) {
        double dot = 0;

        for (int64_t c = 0; c < width; c++) {
            dot += q[c] * (double)rows[x * STRIDE + c];
            want[c] += w[x] * (double)rows[x * STRIDE + c];
        }
        CHECK_BELOW(fabs(s[x] - dot), 1e-13, "row %d of %d", (int)x, (int)count);
    }
    for (int64_t c = 0; c < STRIDE; c++)
        CHECK_BELOW(fabs(acc[c] - want[c]), 1e-13, "column %d of %d", (int)c, (int)width);
}

/* Rows in float, as steps of decoding read them. */
static void check_step_rows(const Kernel *kernel, Rng *rng, int64_t count, int64_t width)
{
    enum { ROWS = 20, STRIDE = 90 };
    float  rows[ROWS * STRIDE], q[STRIDE], all[ROWS], most = 0;
    double squares = 0;

    rng_fill_normal(rng, rows, ROWS * STRIDE, 1);
    rng_fill_normal(rng, q, STRIDE, 1);
    most = kernel->dots_squares(q, rows, STRIDE, count, width, all);
    for (int64_t x = 0; x < count; x++) {
        double dot = 0, square = 0;

        for (int64_t c = 0; c < width; c++) {
            double here = (double)rows[x * STRIDE + c];

            dot += (double)q[c] * here;
            square += here * here;
        }
        CHECK_BELOW(fabs((double)all[x] - dot), 1e-5, "row %d", (int)x);
        squares = fmax(squares, square);
    }
    assert_true((double)most >= squares * (1 - 1e-6));
}

/* Products of floats are exact in double, so the order of the sums alone decides their bits. */
static void check_panel(const Kernel *kernel, Rng *rng, int64_t columns, int64_t d)
{
    float  panel[20 * TILE_KEYS], q[20];
    double sums[TILE_KEYS];

    rng_fill_normal(rng, panel, 20 * TILE_KEYS, 1);
    rng_fill_normal(rng, q, 20, 1);
    kernel->panel64(q, panel, d, columns, sums);
    for (int64_t j = 0; j < columns; j++) {
        double want = 0;

        for (int64_t t = 0; t < d; t++)
            want += (double)q[t] * (double)panel[t * TILE_KEYS + j];
        assert_true(sums[j] == want);
    }
}

/* Keys that a panel lacks are zeros, whatever was there: some of four columns, or all four. */
TEST(a_panel_of_few_keys_ends_with_zeros)
{
    enum { SIZE = 11 };
    float k[TILE_KEYS * SIZE], panel[SIZE * TILE_KEYS];
    Rng   rng = { .seed = 9 };

    rng_fill_normal(&rng, k, TILE_KEYS * SIZE, 1);
    for (int64_t count = 0; count <= TILE_KEYS; count++) {
        for (int x = 0; x < SIZE * TILE_KEYS; x++)
            panel[x] = 7;
        pack_panel(k, SIZE, count, SIZE, panel);
        for (int64_t j = 0; j < TILE_KEYS; j++)
            for (int64_t t = 0; t < SIZE; t++)
                assert_true(panel[t * TILE_KEYS + j] == (j < count ? k[j * SIZE + t] : 0));
    }
}

TEST(kernels_agree_with_plain_loops)
{
    Rng    rng = { .seed = 5 };
    double x[MOST];

    for (int64_t count = 0; count <= MOST; count++) {
        fill_numbers(&rng, x, MOST);
        for (int k = 0; kernel_at(k); k++) {
            check_passing(kernel_at(k), x, count);
            check_loops(kernel_at(k), x, count);
            check_fused(kernel_at(k), &rng, count % 20, count % 9);
            check_softening(kernel_at(k), &rng, count);
            check_wide_rows(kernel_at(k), &rng, count % 20, count);
            check_panel(kernel_at(k), &rng, count % (TILE_KEYS + 1), count % 21);
            check_step_rows(kernel_at(k), &rng, count % 20, count);
        }
    }
}

TEST(a_key_of_an_order_gives_its_number_back)
{
    for (size_t c = 1; c < sizeof(odd_numbers) / sizeof(*odd_numbers); c++)
        assert_true(cpu_order_number(cpu_order_key(odd_numbers[c])) == odd_numbers[c]);
    assert_true(isnan(cpu_order_number(cpu_order_key(NAN))));
}

/* ---- choices --------------------------------------------------------------------------- */

typedef struct Candidate {
    double  z;
    int64_t at;
    bool    fixed;
} Candidate;

static int by_rank(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;

    if (x->fixed != y->fixed)
        return x->fixed ? -1 : 1;
    return x->z != y->z ? (x->z < y->z) - (x->z > y->z) : (x->at > y->at) - (x->at < y->at);
}

static int by_place(const void *a, const void *b)
{
    int64_t x = ((const Candidate *)a)->at, y = ((const Candidate *)b)->at;

    return (x > y) - (x < y);
}

static void check_row(const ChooseKeys *in, const ChosenKeys *got, int64_t heads, int64_t set,
                      int64_t i)
{
    int64_t    count = choose_candidates(in, i), at = set * got->n + i;
    int64_t    takes = in->most ? min_i64(in->most, count) : count;
    bool       scores = in->kind == CHOOSE_SCORES && takes > 0;
    double     least = scores ? HUGE_VAL : 0; /* of what is no score nothing is told */
    Candidate *all = calloc((size_t)max_i64(1, count), sizeof(*all));

    for (int64_t j = 0; j < count; j++)
        all[j] = (Candidate){ choose_number(in, heads, set, i, j), j, j == choose_fixed(in, i) };
    qsort(all, (size_t)count, sizeof(*all), by_rank);
    qsort(all, (size_t)takes, sizeof(*all), by_place);
    assert_int_equal(got->start[at + 1] - got->start[at], takes);
    for (int64_t x = 0; x < takes; x++) {
        assert_int_equal(got->key[got->start[at] + x], all[x].at);
        least = scores ? fmin(least, all[x].z) : 0;
    }
    if (tensor_f32(&got->least)[at] != (float)least) /* both may be infinite */
        CHECK_NEAR((double)tensor_f32(&got->least)[at], least, 1e-6);
    free(all);
}

static void check_choice(Fixture *f, const ChooseKeys *in)
{
    const Tensor *q = in->kind == CHOOSE_INDEX ? &in->q : &in->in.q;
    ChosenKeys    got = { .sets = q->shape[0], .n = q->shape[1] };

    got.start = run_alloc(f->run, got.sets * got.n + 1, sizeof(*got.start));
    got.least = fixture_tensor(f, DT_F32, 1, got.sets, got.n);
    cpu_choose(f->run, in, &got);
    assert_int_equal(f->run->err.code, ERR_NONE);
    for (int64_t set = 0; set < got.sets; set++)
        for (int64_t i = 0; i < got.n; i++)
            check_row(in, &got, f->run->h, set, i);
}

/* Whole numbers, so that many scores are equal. */
static Tensor few_numbers(Fixture *f, int64_t a, int64_t b, int64_t c)
{
    Tensor t = fixture_tensor(f, DT_F32, a, b, c);

    for (int64_t x = 0; x < tensor_count(&t); x++)
        tensor_f32(&t)[x] = (float)rng_below(&f->rng, 3) - 1;
    return t;
}

static Tensor in_double(Fixture *f, Tensor x)
{
    Tensor y = fixture_tensor(f, DT_F64, x.shape[0], x.shape[1], x.shape[2]);

    for (int64_t at = 0; at < tensor_count(&x); at++)
        tensor_f64(&y)[at] = (double)tensor_f32(&x)[at];
    return y;
}

/* Least or largest key of each channel of each whole page. */
static Tensor bounds_of(Fixture *f, Tensor k, int64_t page, float sign)
{
    int64_t pages = ceil_div(k.shape[1], page);
    Tensor  y = fixture_tensor(f, DT_F32, k.shape[0], pages, k.shape[2]);

    for (int64_t at = 0; at < tensor_count(&y); at++)
        tensor_f32(&y)[at] = -sign * HUGE_VALF;
    for (int64_t head = 0; head < k.shape[0]; head++)
        for (int64_t j = 0; j < k.shape[1]; j++)
            for (int64_t c = 0; c < k.shape[2]; c++) {
                float *to = &tensor_row_f32(&y, head, k.shape[0], j / page)[c];
                float  x = tensor_row_f32(&k, head, k.shape[0], j)[c];

                *to = sign * x > sign * *to ? x : *to;
            }
    return y;
}

static ChooseKeys choice_of(Fixture *f, ChooseKind kind, int64_t n, int64_t m, bool even)
{
    Tensor (*drawn)(Fixture *, int64_t, int64_t, int64_t) = few_numbers;
    ChooseKeys in = { .kind = kind, .heads = 3, .page = 8 };
    int64_t    d = even ? 16 : 70; /* more channels than bounds are held of at once */

    in.in = (AttendInput){ .q = drawn(f, 2, n, d), .k = drawn(f, 1, m, d), .scale = .3 };
    in.q = drawn(f, 1, n, in.heads * d);
    in.k = drawn(f, 1, m, d);
    in.w = drawn(f, 1, n, in.heads);
    in.lo = bounds_of(f, in.in.k, in.page, -1);
    in.hi = bounds_of(f, in.in.k, in.page, 1);
    in.mean = in_double(f, few_numbers(f, 1, ceil_div(m, in.page), d));
    return in;
}

static void check_kind(ChooseKind kind, int64_t n, int64_t m, bool even)
{
    static const int64_t most[] = { 0, 1, 2, 9, 50, 1000 };

    for (int x = 0; x < 24; x++) {
        Fixture    f = fixture_new(x % 2 + 1, (uint64_t)x);
        ChooseKeys in;

        f.run->h = 2;
        f.run->d = even ? 16 : 70;
        in = choice_of(&f, kind, n, m, even);
        in.most = most[x % 6];
        in.causal = x / 6 % 2;
        in.newest = x / 12 && in.causal && kind == CHOOSE_PAGES;
        check_choice(&f, &in);
        fixture_free(&f);
    }
}

TEST(rows_choose_as_sorting_does)
{
    for (ChooseKind kind = CHOOSE_SCORES; kind <= CHOOSE_MEANS; kind++) {
        check_kind(kind, 37, 37, true);
        check_kind(kind, 20, 150, false);
    }
}

/* Numbers that grow along a row are all kept for a while. */
/* Few of many keys: a sieve in float leaves out most of them, and changes no choice. */
TEST(a_sieve_changes_no_choice)
{
    for (int even = 0; even < 2; even++)
        for (int64_t most = 1; most <= 64; most = 4 * most + 1) {
            Fixture    f = fixture_new(2, 17);
            ChooseKeys in;

            f.run->h = 2;
            f.run->d = even ? 16 : 70;
            in = choice_of(&f, CHOOSE_SCORES, 530, 600, even != 0);
            in.in.q = fixture_normal(&f, 2, 530, f.run->d, 1);
            in.in.k = even ? in.in.k : fixture_normal(&f, 1, 600, f.run->d, 1);
            in.causal = even;
            in.most = most;
            check_choice(&f, &in);
            tensor_f32(&in.in.q)[7] = 1e25f; /* too large for it */
            tensor_f32(&in.in.k)[70] = 1e25f;
            check_choice(&f, &in);
            fixture_free(&f);
        }
}

static void check_sieved_kind(ChooseKind kind, bool even, int64_t most)
{
    Fixture    f = fixture_new(2, (uint64_t)most);
    ChooseKeys in;

    f.run->h = 2;
    f.run->d = even ? 16 : 70;
    in = choice_of(&f, kind, 130, 1200, even);
    in.in.q = fixture_normal(&f, 2, 130, f.run->d, 1);
    in.q = fixture_normal(&f, 1, 130, in.heads * f.run->d, 1);
    in.w = fixture_normal(&f, 1, 130, in.heads, 1);
    in.causal = even;
    in.newest = even && kind == CHOOSE_PAGES;
    in.most = most;
    check_choice(&f, &in);
    if (kind == CHOOSE_INDEX) /* made, as the indexer's own are */
        in.q = in_double(&f, in.q);
    tensor_f32(&in.in.q)[7] = 1e25f;
    tensor_f32(&in.in.q)[f.run->d + 1] = 1e-30f;
    check_choice(&f, &in);
    fixture_free(&f);
}

TEST(a_sieve_changes_no_choice_of_pages_or_by_an_index)
{
    for (ChooseKind kind = CHOOSE_INDEX; kind <= CHOOSE_MEANS; kind++)
        for (int even = 0; even < 2; even++)
            for (int64_t most = 1; most <= 18; most = 3 * most + 1)
                check_sieved_kind(kind, even != 0, most);
}

/* Some candidates are the largest of the first query, and differ in last bits. */
static void plant_twins(Fixture *f, Tensor *t, const float *q, float scale)
{
    int64_t d = t->shape[2];

    for (int64_t j = 7; j < t->shape[1]; j += t->shape[1] / 40)
        for (int64_t c = 0; c < d; c++) {
            float x = 4 * scale * q[c];

            x = nextafterf(x, rng_below(&f->rng, 2) ? HUGE_VALF : -HUGE_VALF);
            if (t->dtype == DT_F64)
                tensor_f64(t)[j * d + c] = (double)x;
            else
                tensor_f32(t)[j * d + c] = x;
        }
}

static void check_twins(Fixture *f, ChooseKeys *in, float scale)
{
    Tensor *tensors[] = { &in->in.k, &in->lo, &in->hi, &in->mean };

    for (int x = 0; x < 4; x++)
        plant_twins(f, tensors[x], tensor_f32(&in->in.q), scale);
    for (int64_t at = 0; at < tensor_count(&in->in.q); at++)
        tensor_f32(&in->in.q)[at] *= 1 / scale;
    check_choice(f, in);
}

/* Few rows read their candidates where they lie. */
static void check_few_rows(ChooseKind kind, int64_t n, bool even, int64_t most)
{
    Fixture    f = fixture_new(2, (uint64_t)(most + n));
    ChooseKeys in;

    f.run->h = 2;
    f.run->d = even ? 16 : 70;
    in = choice_of(&f, kind, n, 3001, even);
    in.in.q = fixture_normal(&f, 2, n, f.run->d, 1);
    in.q = fixture_normal(&f, 1, n, in.heads * f.run->d, 1);
    in.w = fixture_normal(&f, 1, n, in.heads, 1);
    in.causal = even;
    in.newest = even && kind == CHOOSE_PAGES;
    in.most = most;
    check_choice(&f, &in); /* whole numbers: many are equal, more than a row holds */
    in.in.k = fixture_normal(&f, 1, 3001, f.run->d, 1);
    in.k = fixture_normal(&f, 1, 3001, f.run->d, 1);
    in.lo = bounds_of(&f, in.in.k, in.page, -1);
    in.hi = bounds_of(&f, in.in.k, in.page, 1);
    in.mean = in_double(&f, fixture_normal(&f, 1, ceil_div(3001, in.page), f.run->d, 1));
    check_choice(&f, &in);
    check_twins(&f, &in, 1);
    for (int64_t at = 0; at < tensor_count(&in.in.k); at++)
        tensor_f32(&in.in.k)[at] *= 0x1p-90f; /* squares that float does not hold */
    check_twins(&f, &in, 0x1p-90f);
    tensor_f32(&in.in.q)[0] = tensor_f32(&in.q)[0] = 1e25f; /* too large for the sieve */
    tensor_f32(&in.in.k)[70] = tensor_f32(&in.k)[70] = 1e25f;
    check_choice(&f, &in);
    fixture_free(&f);
}

TEST(a_sieve_changes_no_choice_of_few_rows)
{
    for (ChooseKind kind = CHOOSE_SCORES; kind <= CHOOSE_MEANS; kind++)
        for (int even = 0; even < 2; even++)
            for (int64_t n = 1; n <= 8; n = 2 * n + 1)
                for (int64_t most = 1; most <= 18; most = 3 * most + 1)
                    check_few_rows(kind, n, even != 0, most);
}

/* Means whose order is lost where they are rounded: 40 about as large as the largest of the first
 * query. */
static void plant_close_means(Fixture *f, ChooseKeys *in)
{
    int64_t      d = in->mean.shape[2], pages = in->mean.shape[1];
    const float *q = tensor_f32(&in->in.q);

    for (int64_t j = 3; j < pages; j += pages / 40)
        for (int64_t c = 0; c < d; c++)
            tensor_f64(&in->mean)[j * d + c] =
                4 * (double)q[c] * (1 + 0x1p-23 * (rng_uniform(&f->rng) - 0.5));
}

static void check_rounded_means(int64_t n, int64_t most)
{
    Fixture    f = fixture_new(2, (uint64_t)(most + n));
    ChooseKeys in;

    f.run->h = 2;
    f.run->d = 70;
    in = choice_of(&f, CHOOSE_MEANS, n, 3001, false);
    in.in.q = fixture_normal(&f, 2, n, f.run->d, 1);
    in.most = most;
    plant_close_means(&f, &in);
    in.near = fixture_normal(&f, 1, in.mean.shape[1], f.run->d, 1);
    for (int64_t at = 0; at < tensor_count(&in.mean); at++)
        tensor_f32(&in.near)[at] = (float)tensor_f64(&in.mean)[at];
    check_choice(&f, &in);
    fixture_free(&f);
}

TEST(rounded_means_change_no_choice)
{
    for (int64_t n = 1; n <= 8; n = 2 * n + 1)
        for (int64_t most = 1; most <= 18; most = 3 * most + 1)
            check_rounded_means(n, most);
}

TEST(growing_numbers)
{
    Fixture    f = fixture_new(1, 1);
    ChooseKeys in;

    f.run->h = 2;
    f.run->d = 16;
    in = choice_of(&f, CHOOSE_SCORES, 4, 2000, true);
    for (int64_t at = 0; at < tensor_count(&in.in.k); at++)
        tensor_f32(&in.in.k)[at] = (float)(at / 16);
    in.most = 7;
    check_choice(&f, &in);
    fixture_free(&f);
}

TEST(an_infinite_key_leaves_its_page_a_number)
{
    Fixture    f = fixture_new(1, 1);
    ChooseKeys in;

    f.run->h = 2;
    f.run->d = 16;
    in = choice_of(&f, CHOOSE_PAGES, 5, 64, true);
    tensor_f32(&in.lo)[3] = -HUGE_VALF;
    in.most = 3;
    check_choice(&f, &in);
    fixture_free(&f);
}

/* ---- softmax of rows ---------------------------------------------------------------------- */

static void check_weights(const SoftRows *s, const Tensor *keys, const float *q, int64_t g,
                          int64_t seen, const double *w)
{
    double top = -HUGE_VAL, sum = 0, score[MOST];

    for (int64_t c = 0; c < seen; c++) {
        score[c] = 0;
        for (int64_t t = 0; t < s->d; t++)
            score[c] += (double)q[t] * tensor_float(keys, g, 2, c, t);
        score[c] *= s->scale;
        if (s->cap > 0)
            score[c] = s->cap * tanh(score[c] / s->cap);
        top = fmax(top, score[c]);
    }
    for (int64_t c = 0; c < seen; c++)
        sum += exp(score[c] - top);
    for (int64_t c = 0; c < seen; c++)
        CHECK_BELOW(fabs(w[c] - exp(score[c] - top) / sum), 1e-14, "weight %d", (int)c);
}

TEST(softmax_of_rows_in_double)
{
    int64_t seen[5] = { 0, 1, 16, 33, MOST };

    for (int x = 0; x < 4; x++) {
        Fixture  f = fixture_new(1, (uint64_t)x);
        Tensor   q = fixture_normal(&f, 1, 5, 24, 1), k = fixture_normal(&f, 2, MOST, 24, 1);
        Tensor   keys = in_double(&f, k);
        SoftRows s = soft_rows_of(f.run, &keys, .8, x % 2 ? 2 : 0);
        double   wide[5 * 24], *w = calloc((size_t)(5 * s.padded), sizeof(*w));

        soft_rows_weigh(&s, x / 2, tensor_f32(&q), 24, 5, seen, wide, w);
        for (int64_t row = 0; row < 5; row++)
            check_weights(&s, &keys, tensor_f32(&q) + row * 24, x / 2, seen[row],
                          w + row * s.padded);
        free(w);
        fixture_free(&f);
    }
}

/* The same key has the same weight wherever it stands, beside whatever keys that the row does not
 * see: what is chosen follows from it. */
static void check_equal_keys(uint64_t seed)
{
    Fixture  f = fixture_new(1, seed);
    Tensor   q = fixture_normal(&f, 1, 1, 24, 1), k = fixture_normal(&f, 1, MOST, 24, 1);
    int64_t  seen = MOST - 6; /* within a strip */
    double   wide[24], w[MOST + LANES];
    Tensor   keys;
    SoftRows s;

    for (int64_t c = 3; c < MOST; c++)
        memcpy(tensor_f32(&k) + c * 24, tensor_f32(&k) + c % 3 * 24, 24 * sizeof(float));
    for (int64_t at = seen * 24; at < MOST * 24; at++)
        tensor_f32(&k)[at] *= 1000;
    keys = in_double(&f, k);
    s = soft_rows_of(f.run, &keys, .8, 0);
    soft_rows_weigh(&s, 0, tensor_f32(&q), 24, 1, &seen, wide, w);
    for (int64_t c = 3; c < seen; c++)
        assert_true(w[c] == w[c % 3]);
    fixture_free(&f);
}

TEST(equal_keys_have_equal_weights)
{
    for (uint64_t seed = 0; seed < 40; seed++)
        check_equal_keys(seed);
}

SUITE(NULL, NULL)
