/* test_gpu_logits.c -- attention over logits: the device's kernels, emulated, against the CPU's. */
#include "unit/gpu_fixture.h"

static Tensor some(GpuFixture *f, bool wide, int64_t a, int64_t b, int64_t c)
{
    Tensor from = fixture_normal(&f->gpu, a, b, c, 1), t;

    if (!wide)
        return from;
    t = fixture_tensor(&f->gpu, DT_F64, a, b, c);
    for (int64_t x = 0; x < tensor_count(&t); x++)
        ((double *)t.data)[x] = (double)tensor_f32(&from)[x];
    return t;
}

/* Which of left and right is in double, and turned, goes by n. */
static LogitAttend logits_of(GpuFixture *f, LogitKind kind, int64_t n, int64_t m, int64_t e)
{
    LogitAttend in = { .kind = kind, .n = n, .v = fixture_normal(&f->gpu, 1, m, e, 1), .seed = 4,
                       .stream = 9, .bound = 0.7, .turned = n % 2 };

    if (kind == LOGITS_GIVEN)
        in.left = some(f, false, 2, n + 1, m + 2);
    if (kind == LOGITS_PRODUCT) {
        in.left = some(f, n % 3, 2, n, 19);
        in.right = some(f, n % 3 == 1, 1, in.turned ? m : 19, in.turned ? 19 : m);
        in.bias = tensor_with_rank(fixture_normal(&f->gpu, 1, 2, m, 1), 2);
    }
    if (kind == LOGITS_FOLDED || kind == LOGITS_TILED) {
        in.left = some(f, true, 2, n, 4);
        in.right = some(f, true, 2, n, (m + 3) / 4);
    }
    return in;
}

static void check(LogitKind kind, int64_t n, int64_t m, int64_t e, bool causal)
{
    GpuFixture  f = gpu_fixture_new(2, (uint64_t)(n + m));
    LogitAttend in = logits_of(&f, kind, n, m, e);
    LogitResult one, other;

    in.causal = causal;
    in.offset = causal ? m - n : 0;
    one = op_logit_attend(f.cpu.run, &in);
    other = op_logit_attend(f.gpu.run, &in);
    CHECK_BELOW(gpu_difference(&other.out, &one.out), 2e-6, "kind %d, %d by %d", (int)kind, (int)n,
                (int)m);
    CHECK_BELOW(gpu_difference(&other.lse, &one.lse), 1e-7, "kind %d, %d by %d, lse", (int)kind,
                (int)n, (int)m);
    gpu_fixture_free(&f);
}

TEST(every_kind_of_logits)
{
    static const int64_t sizes[] = { 1, 2, 7, 40, 65, 131 };

    for (int which = 0; which < 6 * 5 * 2; which++) {
        int64_t   n = sizes[which % 6];
        LogitKind kind = (LogitKind)(which / 6 % 5);

        check(kind, n, n, 3, which / 30);
        if (kind <= LOGITS_PRODUCT)
            check(kind, n, n + 5, 70, which / 30);
        else
            check(kind, n, n, 70, which / 30);
    }
}

/* So many columns that their pieces are joined. */
TEST(long_rows_are_cut)
{
    check(LOGITS_UNIFORM, 3, 1400, 5, false);
    check(LOGITS_PRODUCT, 66, 1300, 9, false);
    check(LOGITS_PRODUCT, 65, 1300, 2, true);
}

SUITE(NULL, NULL)
