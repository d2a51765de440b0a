/* test_gpu_row_attend.c -- rows of scores in double: the device's kernels, emulated, against the
 * CPU's. */
#include "unit/gpu_fixture.h"

enum { NO_MASK, BY_CELL, BY_DISTANCE, BY_SCORE, MASKS };

/* Forms of masks go by `form`, a number of any kind. */
static RowMask mask_of(GpuFixture *f, int from, int64_t n, int64_t m, unsigned form)
{
    int64_t longest = n > m ? n : m;
    RowMask mask = { .n = n, .m = m, .hard = form & 1, .multiply = form & 2,
                     .borders = form & 4, .no_diagonal = form & 8,
                     .symmetric = form & 16 && n == m && from == BY_CELL, .tau = 0.5,
                     .penalty = 3 };

    if (from == BY_CELL)
        mask.logits = fixture_normal(&f->gpu, 2, n, m, 1);
    if (from != BY_DISTANCE && form & 32) {
        mask.plus = fixture_normal(&f->gpu, 4, n, m, 1);
        mask.minus = fixture_normal(&f->gpu, 1, n, m, 1);
    }
    if (from == BY_DISTANCE)
        mask.distance = tensor_with_rank(fixture_tensor(&f->gpu, DT_F64, 1, 4, longest), 2);
    for (int64_t x = 0; from == BY_DISTANCE && x < 4 * longest; x++)
        ((double *)mask.distance.data)[x] = (double)(x % 5) / 4;
    return mask;
}

typedef struct Rows {
    int64_t n, m, d, e;
    double  scale; /* of the scores: small ones leave many weights */
    bool    causal, trace;
    int     mask;
    unsigned form; /* of the mask */
} Rows;

static RowAttend rows_of(GpuFixture *f, const Rows *s, const Entmax *form)
{
    RowAttend in = { .scale = s->scale, .causal = s->causal, .form = form, .negligible = 1e-6 };

    in.q = fixture_normal(&f->gpu, 4, s->n, s->d, 1);
    in.k = fixture_normal(&f->gpu, 2, s->m, s->d, 1);
    in.v = fixture_normal(&f->gpu, 2, s->m, s->e, 1);
    f->cpu.run->q_offset = f->gpu.run->q_offset = s->causal ? s->m - s->n : 0;
    return in;
}

static Tensor traced(Fixture *f, int64_t n)
{
    Tensor t = fixture_tensor(f, DT_F64, 4, n, 5);

    memset(t.data, 0, (size_t)tensor_bytes(&t));
    return t;
}

static void check_rows(const Rows *s)
{
    static const Entmax forms[4] = {
        { .form = ENTMAX_SOFTMAX, .alpha = 1 },
        { .form = ENTMAX_SPARSEMAX, .alpha = 2 },
        { .form = ENTMAX_SQUARE, .alpha = 1.5 },
        { .form = ENTMAX_BISECT, .alpha = 1.25, .iterations = 50, .divide = true },
    };
    GpuFixture f = gpu_fixture_new(4, (uint64_t)(s->n + s->m));
    RowMask    mask = mask_of(&f, s->mask, s->n, s->m, s->form);
    RowAttend  in = rows_of(&f, s, forms), same;
    RowResult  one, other;

    in.mask = s->mask == NO_MASK ? NULL : &mask;
    in.negligible = s->form & 64 ? -1 : in.negligible; /* every key that is there counts */
    same = in;
    if (s->trace) {
        in.trace = traced(&f.cpu, s->n);
        same.trace = traced(&f.gpu, s->n);
    }
    one = op_row_attend(f.cpu.run, &in);
    other = op_row_attend(f.gpu.run, &same);
    CHECK_BELOW(gpu_difference(&other.out, &one.out), 2e-6, "%d by %d, out", (int)s->n, (int)s->m);
    CHECK_BELOW(gpu_difference(&other.tau, &one.tau), 1e-13, "%d by %d, tau", (int)s->n,
                (int)s->m);
    CHECK_BELOW(gpu_difference(&other.total, &one.total), 1e-10, "%d by %d, total", (int)s->n,
                (int)s->m);
    assert_memory_equal(other.support.data, one.support.data,
                        (size_t)tensor_bytes(&one.support));
    if (s->trace)
        CHECK_BELOW(gpu_difference(&same.trace, &in.trace), 1e-13, "trace");
    gpu_fixture_free(&f);
}

TEST(rows_of_any_normaliser)
{
    static const Rows sizes[] = {
        { 1, 1, 5, 9, 0.7, 0, 0, 0, 0 },       { 7, 7, 3, 70, 0.7, 0, 0, 0, 0 },
        { 70, 64, 17, 3, 0.7, 0, 0, 0, 0 },    { 9, 130, 40, 1, 0.7, 0, 0, 0, 0 },
        { 5, 2, 5, 9, 0.7, 0, 0, 0, 0 },       { 66, 70, 8, 64, 3, 0, 0, 0, 0 },
        { 2, 3000, 2, 5, 1e-3, 0, 0, 0, 0 }, /* more entries than a warp lists */
    };

    for (size_t x = 0; x < sizeof(sizes) / sizeof(sizes[0]); x++)
        for (int way = 0; way < 4 * MASKS; way++) {
            Rows s = sizes[x];

            s.causal = way & 1;
            s.trace = way & 2;
            s.mask = way / 4;
            s.form = (unsigned)(7 * x + 11 * (size_t)way);
            check_rows(&s);
        }
}

/* The first threshold is -5/8 and the weights there sum to 1, in numbers that double holds: the
 * threshold is a lower end, so the second one is above it. */
TEST(a_sum_of_one_is_enough)
{
    static const float  scores[16] = { 0, 0, -0.5f, -0.75f, -1, -2, -2, -2,
                                       -2, -2, -2, -2, -2, -2, -2, -2 };
    static const Entmax form = { .form = ENTMAX_BISECT, .alpha = 1.5, .iterations = 50 };
    GpuFixture          f = gpu_fixture_new(1, 1);
    RowAttend           in = { .scale = 1, .form = &form, .negligible = 1e-6 };

    in.q = fixture_tensor(&f.gpu, DT_F32, 1, 1, 1);
    in.k = fixture_tensor(&f.gpu, DT_F32, 1, 16, 1);
    in.v = fixture_normal(&f.gpu, 1, 16, 1, 1);
    tensor_f32(&in.q)[0] = 1;
    memcpy(in.k.data, scores, sizeof(scores));
    for (int side = 0; side < 2; side++) {
        Fixture *g = side ? &f.gpu : &f.cpu;

        in.trace = fixture_tensor(g, DT_F64, 1, 1, 2);
        op_row_attend(g->run, &in);
        assert_true(((double *)in.trace.data)[0] == -0.625);
        assert_true(((double *)in.trace.data)[1] == -0.4375);
    }
    gpu_fixture_free(&f);
}

/* A part of the rows, and of the heads, at a time. */
TEST(little_memory_is_enough)
{
    static const Entmax forms[4] = { { .form = ENTMAX_SPARSEMAX, .alpha = 2 },
                                     { .form = ENTMAX_SOFTMAX, .alpha = 1 },
                                     { .form = ENTMAX_SOFTMAX, .alpha = 1 },
                                     { .form = ENTMAX_SQUARE, .alpha = 1.5 } };
    static const Rows shapes[] = { { 150, 90, 5, 9, 1, 1, 0, 0, 0 },
                                   { 20, 20, 5, 9, 1, 0, 0, 0, 0 } };

    for (int x = 0; x < 2; x++) {
        GpuFixture f = gpu_fixture_new(4, 3);
        RowAttend  in = rows_of(&f, &shapes[x], forms);
        RowResult  one = op_row_attend(f.cpu.run, &in), other;
        Tensor     usage = op_key_usage(f.cpu.run, in.q, in.k, 1, false), again;

        f.gpu.run->spec.memory_limit = 64 * 64 * 64; /* told to the op, not to the arena */
        other = op_row_attend(f.gpu.run, &in);
        again = op_key_usage(f.gpu.run, in.q, in.k, 1, false);
        CHECK_BELOW(gpu_difference(&other.out, &one.out), 2e-6, "shape %d", x);
        CHECK_BELOW(gpu_difference(&again, &usage), 1e-14, "usage, shape %d", x);
        assert_memory_equal(other.support.data, one.support.data,
                            (size_t)tensor_bytes(&one.support));
        gpu_fixture_free(&f);
    }
}

/* Keys that are alike are used alike, to the last bit. */
static void check_usage(int64_t h, int64_t n, int64_t m, bool causal)
{
    GpuFixture f = gpu_fixture_new(h, (uint64_t)(n + m));
    Tensor     q = fixture_normal(&f.gpu, h, n, 7, 2), k = fixture_normal(&f.gpu, 1, m, 7, 2);
    Tensor     one, other;

    for (int64_t c = 0; m > 2 && c < 7; c++)
        tensor_f32(&k)[c] = tensor_f32(&k)[7 + c];
    one = op_key_usage(f.cpu.run, q, k, 0.6, causal);
    other = op_key_usage(f.gpu.run, q, k, 0.6, causal);
    for (int64_t j = 0; j < m; j++)
        CHECK_BELOW(fabs(((double *)other.data)[j] - ((double *)one.data)[j]),
                    1e-14 * ((double *)one.data)[j], "key %d of %d", (int)j, (int)m);
    if (m > n)
        assert_true(((double *)other.data)[0] == ((double *)other.data)[1]);
    gpu_fixture_free(&f);
}

TEST(keys_are_used)
{
    check_usage(1, 1, 1, false);
    check_usage(2, 5, 70, false);
    check_usage(2, 5, 70, true);
    check_usage(3, 130, 300, true);
}

SUITE(NULL, NULL)
