/* test_gpu_gemm.c -- products of matrices: the emulated device against the CPU. */
#include "unit/gpu_fixture.h"

typedef struct Case {
    int64_t rows, cols, inner;
    int64_t heads_a, heads_b;
} Case;

static const Case cases[] = {
    { 1, 1, 1, 1, 1 },  { 7, 5, 3, 4, 2 }, { 67, 65, 33, 1, 4 }, { 130, 3, 17, 2, 1 },
    { 2, 5, 2051, 4, 2 }, { 5, 0, 3, 1, 1 }, { 3, 4, 0, 1, 1 },
};

static Tensor normal(GpuFixture *f, DType dtype, int64_t heads, int64_t rows, int64_t cols)
{
    Tensor x = fixture_normal(&f->gpu, heads, rows, cols, 1), wide;

    if (dtype == DT_F32)
        return x;
    wide = fixture_tensor(&f->gpu, DT_F64, heads, rows, cols);
    for (int64_t i = 0; i < tensor_count(&x); i++)
        ((double *)wide.data)[i] = rng_normal(&f->gpu.rng);
    return wide;
}

/* The middle of a tensor whose rows lie `gap` further apart. */
static Tensor inside(GpuFixture *f, DType dtype, int64_t heads, int64_t rows, int64_t cols,
                     int64_t gap)
{
    Tensor all = normal(f, dtype, heads, rows + 1, cols + gap);

    all.shape[1] = rows;
    all.shape[2] = cols;
    all.data = (char *)all.data + gap / 2 * dtype_size(dtype);
    return all;
}

static Tensor copy_of(GpuFixture *f, const Tensor *t)
{
    Tensor copy = fixture_tensor(&f->gpu, t->dtype, t->shape[0], t->shape[1], t->shape[2]);

    for (int64_t i = 0; i < tensor_count(t); i++) {
        int64_t c = i % t->shape[2], r = i / t->shape[2] % t->shape[1];
        int64_t at = i / t->shape[2] / t->shape[1] * t->stride[0] + r * t->stride[1] + c;

        memcpy((char *)copy.data + i * dtype_size(t->dtype),
               (char *)t->data + at * dtype_size(t->dtype), (size_t)dtype_size(t->dtype));
    }
    return copy;
}

static void check_gemm(const Case *s, DType da, DType db, DType dc, int turned, double beta,
                       Arithmetic arithmetic, double tolerance)
{
    GpuFixture f = gpu_fixture_new(4, 11);
    bool       ta = turned & 1, tb = turned & 2;
    Tensor     a = inside(&f, da, s->heads_a, ta ? s->inner : s->rows, ta ? s->rows : s->inner, 4);
    Tensor     b = inside(&f, db, s->heads_b, tb ? s->cols : s->inner, tb ? s->inner : s->cols, 6);
    Tensor     c = inside(&f, dc, 4, s->rows, s->cols, 2), want = copy_of(&f, &c), got;

    f.gpu.run->ops = device_ops(f.device, arithmetic);
    cpu_gemm(f.cpu.run, &a, ta, &b, tb, 0.5, beta, &want);
    gpu_gemm(f.gpu.run, &a, ta, &b, tb, 0.5, beta, &c);
    got = copy_of(&f, &c);
    CHECK_BELOW(gpu_difference(&got, &want), tolerance * fmax(1, sqrt((double)s->inner)),
                "gemm %d x %d x %d, turned %d", (int)s->rows, (int)s->cols, (int)s->inner, turned);
    gpu_fixture_free(&f);
}

TEST(gemm)
{
    for (size_t x = 0; x < sizeof(cases) / sizeof(*cases); x++)
        for (int turned = 0; turned < 4; turned++) {
            double beta = turned == 1 ? 2 : 0;

            check_gemm(&cases[x], DT_F32, DT_F32, DT_F32, turned, beta, ARITHMETIC_F32, 1e-6);
            if (!cases[x].inner) /* the CPU leaves c in double as it was */
                continue;
            check_gemm(&cases[x], DT_F32, DT_F32, DT_F64, turned, beta, ARITHMETIC_F32, 1e-14);
            check_gemm(&cases[x], DT_F64, DT_F32, DT_F64, turned, beta, ARITHMETIC_F32, 1e-14);
            check_gemm(&cases[x], DT_F32, DT_F64, DT_F64, turned, beta, ARITHMETIC_F32, 1e-14);
            check_gemm(&cases[x], DT_F64, DT_F64, DT_F64, turned, beta, ARITHMETIC_F32, 1e-14);
        }
}

/* A rounded factor is off by 2^-12 (TF32, F16: 2^-11 at most) or 2^-9 (BF16) of it, so that a
 * sum of products is off by about twice that times the root of their number. */
TEST(gemm_by_words)
{
    for (size_t x = 0; x < sizeof(cases) / sizeof(*cases); x++)
        for (int turned = 0; turned < 4; turned++) {
            double beta = turned == 2 ? 1 : 0;

            check_gemm(&cases[x], DT_F32, DT_F32, DT_F32, turned, beta, ARITHMETIC_TF32, 2e-3);
            check_gemm(&cases[x], DT_F32, DT_F32, DT_F32, turned, beta, ARITHMETIC_BF16, 1.6e-2);
            check_gemm(&cases[x], DT_F32, DT_F32, DT_F32, turned, beta, ARITHMETIC_F16, 2e-3);
        }
}

/* Whole numbers that each format holds: no rounding, so every entry stands where it should. */
static void check_whole_numbers(int64_t heads, int64_t rows, int64_t inner, int64_t cols)
{
    for (int kind = ARITHMETIC_TF32; kind <= ARITHMETIC_F16; kind++) {
        GpuFixture f = gpu_fixture_new(heads, 5);
        Tensor     a = fixture_tensor(&f.gpu, DT_F32, heads, rows, inner);
        Tensor     b = fixture_tensor(&f.gpu, DT_F32, heads, inner, cols);
        Tensor     c = fixture_tensor(&f.gpu, DT_F32, heads, rows, cols);
        Tensor     want = fixture_tensor(&f.gpu, DT_F32, heads, rows, cols);

        for (int64_t i = 0; i < tensor_count(&a); i++)
            tensor_f32(&a)[i] = (float)(i * 7 % 13 - 6);
        for (int64_t i = 0; i < tensor_count(&b); i++)
            tensor_f32(&b)[i] = (float)(i * 5 % 11 - 5);
        f.gpu.run->ops = device_ops(f.device, (Arithmetic)kind);
        cpu_gemm(f.cpu.run, &a, false, &b, false, 1, 0, &want);
        gpu_gemm(f.gpu.run, &a, false, &b, false, 1, 0, &c);
        assert_memory_equal(c.data, want.data, (size_t)tensor_bytes(&c));
        gpu_fixture_free(&f);
    }
}

TEST(words_of_small_whole_numbers_are_exact)
{
    check_whole_numbers(2, 133, 50, 71);
    check_whole_numbers(1, 1410, 37, 1450); /* so many tiles that larger ones are taken */
}

/* Rows and columns that hold NaN or infinities do not touch others. */
TEST(what_is_no_number_stays_in_its_row)
{
    for (int kind = ARITHMETIC_F32; kind <= ARITHMETIC_F16; kind++) {
        GpuFixture f = gpu_fixture_new(1, 5);
        Tensor     a = fixture_normal(&f.gpu, 1, 70, 20, 1);
        Tensor     b = fixture_normal(&f.gpu, 1, 20, 9, 1);
        Tensor     c = fixture_tensor(&f.gpu, DT_F32, 1, 70, 9);

        tensor_f32(&a)[3 * 20 + 4] = NAN;
        tensor_f32(&a)[5 * 20 + 19] = INFINITY;
        f.gpu.run->ops = device_ops(f.device, (Arithmetic)kind);
        gpu_gemm(f.gpu.run, &a, false, &b, false, 1, 0, &c);
        for (int64_t i = 0; i < 70 * 9; i++)
            assert_true(isfinite(tensor_f32(&c)[i]) == (i / 9 != 3 && i / 9 != 5));
        gpu_fixture_free(&f);
    }
}

TEST(long_sums)
{
    static const Case sizes[] = {
        { 1, 1, 1, 1, 1 }, { 7, 5, 700, 1, 2 }, { 66, 3, 5003, 4, 1 }, { 3, 4, 0, 1, 1 },
    };

    for (size_t x = 0; x < sizeof(sizes) / sizeof(*sizes); x++) {
        const Case *s = &sizes[x];
        GpuFixture  f = gpu_fixture_new(4, 12);
        Tensor      a = normal(&f, DT_F32, s->heads_a, s->rows, s->inner);
        Tensor      b = normal(&f, DT_F32, s->heads_b, s->inner, s->cols);
        Tensor      c = fixture_tensor(&f.gpu, DT_F64, 4, s->rows, s->cols);
        Tensor      want = fixture_tensor(&f.gpu, DT_F64, 4, s->rows, s->cols);

        cpu_gemm_long(f.cpu.run, &a, &b, 0.25, &want);
        gpu_gemm_long(f.gpu.run, &a, &b, 0.25, &c);
        /* Float sums of 256 products, about 16 large, are off by 1e-5 and more on both. */
        CHECK_BELOW(gpu_difference(&c, &want), 5e-5, "long sums of %d", (int)s->inner);
        gpu_fixture_free(&f);
    }
}

/* Bit for bit. */
TEST(sums_in_order)
{
    static const Case sizes[] = {
        { 1, 1, 1, 1, 1 }, { 70, 65, 131, 2, 1 }, { 5, 3, 2051, 4, 4 }, { 0, 3, 4, 1, 1 },
    };

    for (size_t x = 0; x < sizeof(sizes) / sizeof(*sizes); x++)
        for (int wide = 0; wide < 2; wide++) {
            const Case *s = &sizes[x];
            GpuFixture  f = gpu_fixture_new(4, 13);
            Tensor      a = inside(&f, DT_F32, s->heads_a, s->rows, s->inner, 2);
            Tensor      w = normal(&f, wide ? DT_F64 : DT_F32, s->heads_b, s->inner, s->cols);
            Tensor      y = fixture_tensor(&f.gpu, DT_F64, 4, s->rows, s->cols);
            Tensor      want = fixture_tensor(&f.gpu, DT_F64, 4, s->rows, s->cols);

            cpu_dots64(f.cpu.run, &a, &w, &want);
            gpu_dots64(f.gpu.run, &a, &w, &y);
            assert_memory_equal(y.data, want.data, (size_t)tensor_bytes(&y));
            gpu_fixture_free(&f);
        }
}

TEST(sums_of_doubles_in_order)
{
    static const int64_t sizes[][3] = { { 1, 1, 1 }, { 70, 65, 131 }, { 5, 3, 2048 } };

    for (size_t x = 0; x < sizeof(sizes) / sizeof(*sizes); x++)
        for (int with_bias = 0; with_bias < 2; with_bias++) {
            GpuFixture f = gpu_fixture_new(1, 13);
            Tensor     a = normal(&f, DT_F64, 1, sizes[x][0], sizes[x][2]);
            Tensor     w = normal(&f, DT_F64, 1, sizes[x][2], sizes[x][1]);
            Tensor     y = fixture_tensor(&f.gpu, DT_F64, 1, sizes[x][0], sizes[x][1]);
            Tensor     want = fixture_tensor(&f.gpu, DT_F64, 1, sizes[x][0], sizes[x][1]);
            float      bias[65] = { 0.5f, -0.25f, 3 };

            cpu_product64(f.cpu.run, &a, &w, with_bias ? bias : NULL, &want);
            gpu_product64(f.gpu.run, &a, &w, with_bias ? bias : NULL, &y);
            assert_memory_equal(y.data, want.data, (size_t)tensor_bytes(&y));
            gpu_fixture_free(&f);
        }
}

TEST(mixed_blocks)
{
    static const int64_t sizes[][4] = { /* n, b, w, rows */
        { 1, 1, 1, 1 }, { 12, 4, 5, 3 }, { 131, 16, 33, 9 }, { 7, 16, 3, 1 }, { 130, 16, 2, 4 },
    };

    for (size_t x = 0; x < sizeof(sizes) / sizeof(*sizes); x++) {
        int64_t    n = sizes[x][0], b = sizes[x][1], w = sizes[x][2], rows = sizes[x][3];
        GpuFixture f = gpu_fixture_new(2, 14);
        int64_t    nb = (n + b - 1) / b;
        Tensor     perm = normal(&f, DT_F64, 2, nb + 1, nb), t = normal(&f, DT_F32, 1, n, w);
        Tensor     y[2];

        for (int side = 0; side < 2; side++) {
            y[side] = fixture_tensor(&f.gpu, DT_F32, 2, rows * b + 3, w);
            y[side].shape[1] = rows * b;
        }
        cpu_mix_blocks(f.cpu.run, &perm, &t, b, &y[0]);
        gpu_mix_blocks(f.gpu.run, &perm, &t, b, &y[1]);
        for (int side = 0; side < 2; side++)
            y[side] = copy_of(&f, &y[side]);
        CHECK_BELOW(gpu_difference(&y[1], &y[0]), 1e-5, "mixed blocks of %d", (int)n);
        gpu_fixture_free(&f);
    }
}

TEST(a_result_elsewhere_is_refused)
{
    GpuFixture f = gpu_fixture_new(1, 5);
    Tensor     a = fixture_normal(&f.gpu, 1, 3, 3, 1), c = fixture_normal(&f.cpu, 1, 3, 3, 1);

    gpu_gemm(f.gpu.run, &a, false, &a, false, 1, 0, &c);
    assert_int_equal(f.gpu.run->err.code, ERR_INTERNAL);
    f.gpu.run->err = (Error){ 0 };
    gpu_fixture_free(&f);
}

SUITE(NULL, NULL)
