/* test_gpu_lists.c -- rows by lists, windows, entries: the device's kernels, emulated, against the
 * CPU's. */
#include "unit/gpu_fixture.h"

typedef struct Sizes {
    int64_t h, shared, n, rows, w; /* shared: heads of x */
} Sizes;

static const Sizes sizes[] = {
    { 1, 1, 1, 1, 1 }, { 2, 1, 7, 13, 5 }, { 3, 3, 70, 300, 33 }, { 4, 2, 129, 64, 128 },
};

static Tensor indices(GpuFixture *f, int64_t heads, int64_t rows, int64_t below)
{
    Tensor t = tensor_new(f->gpu.run->arena, DT_I32, 2, (int64_t[]){ heads, rows });

    for (int64_t x = 0; x < heads * rows; x++)
        tensor_i32(&t)[x] = (int32_t)rng_below(&f->gpu.rng, (uint64_t)below);
    return t;
}

/* A list of all rows, in a random order. */
static Tensor permutations(GpuFixture *f, int64_t heads, int64_t lists, int64_t n)
{
    Tensor t = tensor_new(f->gpu.run->arena, DT_I32, 2, (int64_t[]){ heads, lists * n });

    for (int64_t l = 0; l < heads * lists; l++) {
        int32_t *list = tensor_i32(&t) + l * n;

        for (int64_t x = 0; x < n; x++)
            list[x] = (int32_t)x;
        for (int64_t x = n - 1; x > 0; x--) {
            int64_t y = (int64_t)rng_below(&f->gpu.rng, (uint64_t)x + 1);
            int32_t kept = list[x];

            list[x] = list[y];
            list[y] = kept;
        }
    }
    return t;
}

TEST(gathers_and_scatters)
{
    for (size_t at = 0; at < sizeof(sizes) / sizeof(*sizes); at++) {
        Sizes      s = sizes[at];
        GpuFixture f = gpu_fixture_new(s.h, at);
        Tensor     x = fixture_normal(&f.gpu, s.shared, s.n, s.w, 1);
        Tensor     index = indices(&f, s.shared, s.rows, s.n);
        Tensor     order = permutations(&f, s.h, 1, s.n);
        Tensor     one = op_gather(f.cpu.run, x, index), other = op_gather(f.gpu.run, x, index);
        Tensor     y = fixture_tensor(&f.gpu, DT_F32, s.h, s.n, s.w);
        Tensor     back = op_gather(f.gpu.run, x, order);

        assert_true(gpu_difference(&other, &one) == 0);
        op_scatter(f.gpu.run, back, order, y);
        for (int64_t t = 0; t < s.h; t++)
            assert_memory_equal(tensor_head(&y, t, s.h), tensor_head(&x, t, s.h),
                                (size_t)(s.n * s.w) * sizeof(float));
        gpu_fixture_free(&f);
    }
}

static Tensor filled(Fixture *f, int64_t a, int64_t b, int64_t c, float value)
{
    Tensor t = fixture_tensor(f, DT_F32, a, b, c);

    for (int64_t x = 0; x < a * b * c; x++)
        tensor_f32(&t)[x] = value;
    return t;
}

static MergeRows merge_of(Fixture *f, const MergeRows *from, int64_t n, int64_t e)
{
    MergeRows in = *from;
    int64_t   h = from->rows.shape[0];

    in.out = filled(f, h, n, e, 0);
    in.z = tensor_of(DT_F32, 2, (int64_t[]){ h, n }, filled(f, h, n, 1, -INFINITY).data);
    return in;
}

/* Rounds of softmaxes; some rows have nothing to add. */
TEST(merges)
{
    for (size_t at = 0; at < sizeof(sizes) / sizeof(*sizes); at++) {
        Sizes      s = sizes[at];
        GpuFixture f = gpu_fixture_new(s.h, 10 + at);
        MergeRows  in = { .lists = 3, .rows = fixture_normal(&f.gpu, s.h, 3 * s.n, s.w, 1),
                          .index = permutations(&f, s.h, 3, s.n) };
        Tensor     lse = fixture_normal(&f.gpu, s.h, 3 * s.n, 1, 5);
        MergeRows  one, other;

        for (int64_t x = 0; x < s.h * 3 * s.n; x += 4)
            tensor_f32(&lse)[x] = -INFINITY;
        in.lse = tensor_of(DT_F32, 2, (int64_t[]){ s.h, 3 * s.n }, lse.data);
        one = merge_of(&f.cpu, &in, s.n, s.w);
        other = merge_of(&f.gpu, &in, s.n, s.w);
        op_merge_rows(f.cpu.run, &one);
        op_merge_rows(f.gpu.run, &other);
        CHECK_BELOW(gpu_difference(&other.out, &one.out), 1e-6, "merged rows %zu", at);
        CHECK_BELOW(gpu_difference(&other.z, &one.z), 1e-6, "merged sums %zu", at);
        gpu_fixture_free(&f);
    }
}

TEST(sums_lists)
{
    for (size_t at = 0; at < sizeof(sizes) / sizeof(*sizes); at++) {
        Sizes      s = sizes[at];
        GpuFixture f = gpu_fixture_new(s.h, 20 + at);
        int64_t    rows = s.h * s.n;
        int64_t   *start = arena_alloc(f.gpu.run->arena, rows + 1, sizeof(*start));
        float     *share = arena_alloc(f.gpu.run->arena, rows, sizeof(*share));
        Tensor     entry = indices(&f, 1, 3 * rows, s.rows), one, other;
        SumLists   in = { .x = fixture_normal(&f.gpu, s.h, s.rows, s.w, 1), .start = start,
                          .entry = tensor_i32(&entry), .share = share, .heads = s.h, .n = s.n };

        start[0] = 0;
        for (int64_t x = 0; x < rows; x++) {
            start[x + 1] = start[x] + x % 4;
            share[x] = 1 / (float)(1 + x % 4);
        }
        one = op_sum_lists(f.cpu.run, &in);
        other = op_sum_lists(f.gpu.run, &in);
        CHECK_BELOW(gpu_difference(&other, &one), 1e-6, "sums of lists %zu", at);
        in.weight = tensor_f32(&in.x);
        in.share = NULL;
        if (s.h * s.rows * s.w >= start[rows]) { /* so many weights there are */
            one = op_sum_lists(f.cpu.run, &in);
            other = op_sum_lists(f.gpu.run, &in);
            CHECK_BELOW(gpu_difference(&other, &one), 1e-5, "weighed sums of lists %zu", at);
        }
        gpu_fixture_free(&f);
    }
}

TEST(pools)
{
    int32_t first[5] = { 0, 0, 2, 6, 3 }, end[5] = { 1, 7, 5, 7, 3 };

    for (int kind = WINDOW_SUM; kind <= WINDOW_MIN; kind++) {
        GpuFixture  f = gpu_fixture_new(2, 30 + (uint64_t)kind);
        int64_t     windows = kind == WINDOW_SUM ? 5 : 4; /* the last one is empty */
        PoolWindows in = { .x = fixture_normal(&f.gpu, 2, 7, 70, 1), .kind = (WindowKind)kind };
        Tensor      one = fixture_tensor(&f.cpu, DT_F64, 2, windows, 70);
        Tensor      other = fixture_tensor(&f.gpu, DT_F64, 2, windows, 70);
        int32_t    *places = arena_alloc(f.gpu.run->arena, 10, sizeof(*places));

        tensor_f32(&in.x)[3 * 70 + 1] = NAN;
        memcpy(places, first, sizeof(first));
        memcpy(places + 5, end, sizeof(end));
        in.first = places;
        in.end = places + 5;
        op_pool_windows(f.cpu.run, &in, one);
        op_pool_windows(f.gpu.run, &in, other);
        assert_true(gpu_difference(&other, &one) == 0);
        gpu_fixture_free(&f);
    }
}

TEST(converts_entries)
{
    for (int kind = ENTRY_CAST; kind <= ENTRY_DIVIDE; kind++)
        for (size_t at = 0; at < sizeof(sizes) / sizeof(*sizes); at++) {
            Sizes      s = sizes[at];
            GpuFixture f = gpu_fixture_new(s.h, 40 + at);
            Tensor     x = fixture_normal(&f.gpu, s.shared, s.n, s.w, 1);
            Tensor     one = fixture_tensor(&f.cpu, DT_F64, s.h, s.n, s.w);
            Tensor     other = fixture_tensor(&f.gpu, DT_F64, s.h, s.n, s.w);
            Tensor     narrow_one = fixture_tensor(&f.cpu, DT_F32, s.h, s.n, s.w);
            Tensor     narrow_other = fixture_tensor(&f.gpu, DT_F32, s.h, s.n, s.w);

            op_entries(f.cpu.run, x, (EntryKind)kind, 3, one);
            op_entries(f.gpu.run, x, (EntryKind)kind, 3, other);
            op_entries(f.cpu.run, one, ENTRY_CAST, 0, narrow_one);
            op_entries(f.gpu.run, other, ENTRY_CAST, 0, narrow_other);
            CHECK_BELOW(gpu_difference(&other, &one), 1e-14, "entries %d %zu", kind, at);
            CHECK_BELOW(gpu_difference(&narrow_other, &narrow_one), 1e-6, "narrowed %zu", at);
            gpu_fixture_free(&f);
        }
}

TEST(normalises_in_double)
{
    for (int kind = NORMALISE_NONE; kind <= NORMALISE_LAYER; kind++) {
        GpuFixture f = gpu_fixture_new(3, 50);
        Tensor     x = fixture_normal(&f.gpu, 1, 67, 33, 2);
        Tensor     one = op_normalise64(f.cpu.run, x, (NormaliseKind)kind, 1e-6);
        Tensor     other = op_normalise64(f.gpu.run, x, (NormaliseKind)kind, 1e-6);

        assert_true(gpu_difference(&other, &one) == 0);
        gpu_fixture_free(&f);
    }
}

SUITE(NULL, NULL)
