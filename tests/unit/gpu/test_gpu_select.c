/* test_gpu_select.c -- choices on the device are the CPU's: with ties, NaN, infinity, numbers that
 * overflow, of one row and of thousands.
 */
#include "unit/gpu_fixture.h"

/* Room on the device for a result like t. */
static Tensor gpu_like(GpuFixture *g, Tensor t)
{
    Tensor to = tensor_new(g->gpu.run->arena, t.dtype, t.rank, t.shape);

    assert_non_null(to.data);
    memset(to.data, 0x5a, (size_t)tensor_bytes(&to));
    return to;
}

/* Two results of the same shape are the same to the last bit. */
static void check_same(const char *what, Tensor a, Tensor b)
{
    int64_t size = dtype_size(a.dtype);

    assert_int_equal(tensor_count(&a), tensor_count(&b));
    for (int64_t x = 0; x < tensor_count(&a); x++)
        if (memcmp((char *)a.data + x * size, (char *)b.data + x * size, (size_t)size) != 0)
            fail_msg("%s: entry %lld of %lld differs", what, (long long)x,
                     (long long)tensor_count(&a));
}

typedef enum Kind {
    NORMAL,
    LEVELS, /* -1, 0, 1: ties everywhere */
    TWINS,  /* neighbours that differ in a bit or not at all */
    ALIKE,  /* every row the same */
    TINY,
    HUGE,
    HOLES,  /* zero rows, NaN of both signs and infinity */
    KINDS
} Kind;

static float bent(float x, float before, Kind kind, int64_t row, int64_t t)
{
    if (kind == LEVELS)
        return rintf(x) > 0 ? 1.0f : rintf(x) < 0 ? -1.0f : 0.0f;
    if (kind == TWINS && row % 3)
        return t == 0 && row % 3 == 1 ? nextafterf(before, INFINITY) : before;
    if (kind == ALIKE && row)
        return before;
    if (kind == TINY || kind == HUGE)
        return x * (kind == TINY ? 1e-22f : 1e22f);
    if (kind == HOLES && row % 7 == 1)
        return 0;
    if (kind == HOLES && row % 29 == 5 && t == 2)
        return row % 2 ? row % 3 ? NAN : -NAN : INFINITY;
    return x;
}

static void shape(Tensor *t, Kind kind)
{
    int64_t d = t->shape[2];
    float  *x = t->data;

    for (int64_t i = 0; i < tensor_count(t); i++)
        x[i] = bent(x[i], i >= d ? x[i - d] : 0, kind, i / d, i % d);
}

/* In double, some of them a last bit of double apart. */
static Tensor widened(GpuFixture *g, Tensor x)
{
    Tensor y = fixture_tensor(&g->cpu, DT_F64, x.shape[0], x.shape[1], x.shape[2]);

    for (int64_t i = 0; i < tensor_count(&x); i++)
        ((double *)y.data)[i] = (double)((float *)x.data)[i] *
                                (1 + 0x1p-50 * (double)(i / x.shape[2] % 5));
    return y;
}

static void wide_row(const void *context, int64_t head, int64_t i, double *row)
{
    const Tensor *x = context;
    int64_t       d = x->shape[2];

    memcpy(row, (double *)x->data + (head * x->shape[1] + i) * d, (size_t)d * sizeof(*row));
}

static Tensor lines_of(GpuFixture *g, DType dtype, int64_t lines, int64_t n)
{
    return tensor_of(dtype, 2, (int64_t[]){ lines, n },
                     fixture_tensor(&g->cpu, dtype, 1, lines, n).data);
}

/* ---- argmax and top-k: of numbers that are there ----------------------------------- */

static void check_chosen(Kind kind, int64_t n, int64_t count, int64_t k)
{
    GpuFixture g = gpu_fixture_new(2, 5);
    Tensor     near = fixture_normal(&g.cpu, 2, n, count, 1), x;
    Tensor     best = lines_of(&g, DT_I32, 2, n), top, other;

    shape(&near, kind);
    x = widened(&g, near);
    for (int negative = 0; negative < 2; negative++) {
        cpu_argmax(g.cpu.run, &x, negative, &best);
        other = gpu_like(&g, best);
        g.gpu.run->ops->argmax(g.gpu.run, &x, negative, &other);
        check_same("argmax", best, other);
    }
    top = fixture_tensor(&g.cpu, DT_I32, 2, count, k);
    other = gpu_like(&g, top);
    cpu_top_k(g.cpu.run, &x, k, &top);
    g.gpu.run->ops->top_k(g.gpu.run, &x, k, &other);
    check_same("top_k", top, other);
    gpu_fixture_free(&g);
}

TEST(argmax_and_top_k)
{
    for (int kind = 0; kind < KINDS; kind++) {
        check_chosen((Kind)kind, 1, 1, 1);
        check_chosen((Kind)kind, 70, 3, 70);
        check_chosen((Kind)kind, 33, 40, 7);
        check_chosen((Kind)kind, 1100, 2, 333);
    }
    check_chosen(LEVELS, 5000, 1, 2000);
}

/* ---- the nearest -------------------------------------------------------------------- */

/* form: 1 with negatives, 2 cosines, 4 y in double, 8 x in double */
static void check_nearest(Kind kind, int form, int64_t n, int64_t parts, int64_t count, int64_t d)
{
    GpuFixture g = gpu_fixture_new(2, 7);
    Tensor     x = fixture_normal(&g.cpu, form & 8 || form % 3 ? 2 : 1, n, d, 1), wide;
    Tensor     y = fixture_normal(&g.cpu, 2, parts * count, d, 1);
    Tensor     index = fixture_tensor(&g.cpu, DT_I32, 2, parts, n), other;
    Nearest    in = { .parts = parts, .with_negative = form & 1, .cosine = form >> 1 & 1 };

    shape(&x, kind);
    shape(&y, kind == HOLES ? NORMAL : kind);
    in.x.near = x;
    in.y = form & 4 ? widened(&g, y) : y;
    if (form & 8) {
        wide = widened(&g, x);
        in.x.exact = wide_row;
        in.x.context = &wide;
    }
    other = gpu_like(&g, index);
    cpu_nearest(g.cpu.run, &in, &index);
    g.gpu.run->ops->nearest(g.gpu.run, &in, &other);
    check_same("nearest", index, other);
    gpu_fixture_free(&g);
}

TEST(nearest)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int form = 0; form < 16; form++) {
            check_nearest((Kind)kind, form, 70, 2, 67, 17);
            check_nearest((Kind)kind, form, 1, 3, 1, 1);
        }
    check_nearest(NORMAL, 0, 2500, 1, 5, 16);
}

/* ---- the best ------------------------------------------------------------------------ */

static void check_best(Kind kind, int exact, int64_t n, int64_t count, int64_t d, int64_t k)
{
    GpuFixture g = gpu_fixture_new(2, 9);
    Tensor     x = fixture_normal(&g.cpu, 2, n, d, 1), wide;
    Tensor     y = fixture_normal(&g.cpu, exact ? 2 : 1, count, d, 1);
    Tensor     index = fixture_tensor(&g.cpu, DT_I32, 2, count, k), other;
    ChoiceRows rows;

    shape(&x, kind);
    shape(&y, kind == HOLES ? NORMAL : kind);
    wide = widened(&g, x);
    rows = (ChoiceRows){ .near = x, .exact = exact ? wide_row : NULL, .context = &wide };
    if (exact == 3)
        rows = (ChoiceRows){ .near = x };
    y = exact % 2 ? widened(&g, y) : y;
    other = gpu_like(&g, index);
    cpu_best_rows(g.cpu.run, &rows, &y, k, &index);
    g.gpu.run->ops->best_rows(g.gpu.run, &rows, &y, k, &other);
    check_same("best_rows", index, other);
    gpu_fixture_free(&g);
}

#define SHARERS 4 /* heads, of two of rows */

static void shared_row(const void *context, int64_t head, int64_t i, double *row)
{
    const Tensor *x = context;

    memcpy(row, (const double *)tensor_head(x, head, SHARERS) + i * x->shape[2],
           (size_t)x->shape[2] * sizeof(*row));
}

/* The host is not asked where the device can make the rows itself. */
static void asked_row(const void *context, int64_t head, int64_t i, double *row)
{
    (void)context, (void)head, (void)i, (void)row;
    fail_msg("the host was asked for a row");
}

TEST(best_of_rows_that_the_device_makes)
{
    static const NormaliseKind kinds[] = { NORMALISE_NONE, NORMALISE_L2, NORMALISE_RMS,
                                           NORMALISE_LAYER };

    for (size_t x = 0; x < sizeof(kinds) / sizeof(*kinds); x++) {
        GpuFixture g = gpu_fixture_new(SHARERS, 9);
        Tensor     own = fixture_normal(&g.cpu, 2, 300, 9, 1);
        Tensor     y = widened(&g, fixture_normal(&g.cpu, SHARERS, 5, 9, 1));
        Tensor     near = fixture_tensor(&g.cpu, DT_F32, 2, 300, 9);
        Tensor     wide = fixture_tensor(&g.cpu, DT_F64, 2, 300, 9);
        Tensor     index = fixture_tensor(&g.cpu, DT_I32, SHARERS, 5, 40);
        Tensor     other = gpu_like(&g, index);
        ChoiceRows rows;

        cpu_normalise64(g.cpu.run, &own, kinds[x], 1e-5, &wide);
        for (int64_t at = 0; at < tensor_count(&wide); at++)
            tensor_f32(&near)[at] = (float)((double *)wide.data)[at];
        rows = (ChoiceRows){ .near = near, .exact = shared_row, .context = &wide };
        cpu_best_rows(g.cpu.run, &rows, &y, 40, &index);
        for (int made = 0; made < 2; made++) {
            rows = (ChoiceRows){ .near = near, .exact = asked_row, .whole = made ? own : wide,
                                 .kind = kinds[x], .eps = 1e-5 };
            g.gpu.run->ops->best_rows(g.gpu.run, &rows, &y, 40, &other);
            check_same("best_rows", index, other);
        }
        gpu_fixture_free(&g);
    }
}

TEST(best_rows)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int exact = 0; exact < 4; exact++) { /* 2: y is in float; 3: only y is exact */
            check_best((Kind)kind, exact, 600, 5, 16, 40);
            check_best((Kind)kind, exact, 61, 67, 9, 61);
            check_best((Kind)kind, exact, 1, 1, 1, 1);
        }
    check_best(NORMAL, false, 5000, 3, 8, 1000);
}

/* ---- codes --------------------------------------------------------------------------- */

static void check_codes(Kind kind, bool bias, int64_t n, int64_t bits, int64_t d)
{
    GpuFixture g = gpu_fixture_new(2, 11);
    Tensor     x = fixture_normal(&g.cpu, 2, n, d, 1);
    Tensor     planes = fixture_normal(&g.cpu, 1, bits, d + 1, 1);
    Tensor     code = lines_of(&g, DT_I64, 2, n), other = gpu_like(&g, code);

    shape(&x, kind);
    cpu_codes(g.cpu.run, &x, &planes, bias, &code);
    g.gpu.run->ops->codes(g.gpu.run, &x, &planes, bias, &other);
    check_same("codes", code, other);
    gpu_fixture_free(&g);
}

TEST(codes)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int bias = 0; bias < 2; bias++) {
            check_codes((Kind)kind, bias, 130, 63, 16);
            check_codes((Kind)kind, bias, 1, 5, 3);
        }
}

/* ---- clusters of codes ------------------------------------------------------------------ */

static Tensor draw_codes(GpuFixture *g, int64_t heads, int64_t n)
{
    Tensor t = lines_of(g, DT_I64, heads, n);

    for (int64_t x = 0; x < heads * n; x++)
        ((uint64_t *)t.data)[x] = rng_below(&g->cpu.rng, 16) << 60 | rng_below(&g->cpu.rng, 1000);
    return t;
}

static void check_code_clusters(int64_t n, int64_t count)
{
    GpuFixture g = gpu_fixture_new(2, 13);
    Tensor     code = draw_codes(&g, 2, n), centre = draw_codes(&g, 2, count);
    Tensor     cluster = lines_of(&g, DT_I32, 2, n), other, ones, more;

    other = gpu_like(&g, cluster);
    cpu_nearest_codes(g.cpu.run, &code, &centre, &cluster);
    g.gpu.run->ops->nearest_codes(g.gpu.run, &code, &centre, &other);
    check_same("nearest_codes", cluster, other);
    ones = fixture_tensor(&g.cpu, DT_I32, 2, count, 64);
    more = gpu_like(&g, ones);
    cpu_bit_sums(g.cpu.run, &code, &cluster, &ones);
    g.gpu.run->ops->bit_sums(g.gpu.run, &code, &cluster, &more);
    check_same("bit_sums", ones, more);
    gpu_fixture_free(&g);
}

TEST(code_clusters)
{
    check_code_clusters(1, 1);
    check_code_clusters(700, 9);
    check_code_clusters(5000, 3);
    check_code_clusters(300, 301);
}

/* ---- sums of members --------------------------------------------------------------------- */

/* To the last bit, but for lengths, whose squares the CPU sums in as many parts as its vectors
 * have lanes: a few times 2^-53 of sums of up to 900 vectors of length 1. */
static void check_member_sums(int64_t n, int64_t clusters, int64_t d, bool unit)
{
    GpuFixture g = gpu_fixture_new(2, 15);
    Tensor     x = fixture_normal(&g.cpu, 1, n, d, 1);
    Tensor     index = lines_of(&g, DT_I32, 2, n), sum, other;

    shape(&x, TWINS);
    for (int64_t i = 0; i < 2 * n; i++)
        tensor_i32(&index)[i] = (int32_t)rng_below(&g.cpu.rng, (uint64_t)clusters) * 3 / 4;
    sum = fixture_tensor(&g.cpu, DT_F64, 2, clusters, d);
    other = gpu_like(&g, sum);
    cpu_member_sums(g.cpu.run, &x, &index, unit, &sum);
    g.gpu.run->ops->member_sums(g.gpu.run, &x, &index, unit, &other);
    if (!unit)
        check_same("member_sums", sum, other);
    for (int64_t i = 0; i < tensor_count(&sum); i++)
        assert_true(fabs(((double *)sum.data)[i] - ((double *)other.data)[i]) <= 1e-13);
    gpu_fixture_free(&g);
}

TEST(member_sums)
{
    for (int unit = 0; unit < 2; unit++) {
        check_member_sums(1, 1, 1, unit);
        check_member_sums(900, 7, 19, unit);
        check_member_sums(65, 70, 130, unit);
    }
}

/* ---- sorting ------------------------------------------------------------------------------- */

static void check_sort(int64_t lines, int64_t n, int64_t below, int64_t from)
{
    GpuFixture g = gpu_fixture_new(2, 17);
    Tensor     key = lines_of(&g, DT_I32, lines, n), order = lines_of(&g, DT_I32, lines, n);
    Tensor     other = gpu_like(&g, order);

    for (int64_t i = 0; i < lines * n; i++)
        tensor_i32(&key)[i] = (int32_t)((int64_t)rng_below(&g.cpu.rng, (uint64_t)below) + from);
    cpu_sort(g.cpu.run, &key, &order);
    g.gpu.run->ops->sort(g.gpu.run, &key, &other);
    check_same("sort", order, other);
    gpu_fixture_free(&g);
}

TEST(sort)
{
    check_sort(1, 1, 1, 0);
    check_sort(2, 3000, 1, 7); /* all alike */
    check_sort(3, 31, 4, 0);
    check_sort(2, 2048, 300, -150);
    check_sort(2, 5000, 1 << 20, -(1 << 19));
    check_sort(1, 9000, INT64_C(1) << 32, INT32_MIN);
}

SUITE(NULL, NULL)
