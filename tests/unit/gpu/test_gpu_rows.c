/* test_gpu_rows.c -- softmax, normalisation, lengths, inverses and balancing: the emulated
 * device against the CPU. */
#include "check.h"
#include "unit/gpu_fixture.h"

static const int64_t shapes[][3] = {
    { 1, 1, 1 }, { 2, 7, 5 }, { 3, 13, 131 }, { 1, 3, 2049 }, { 1, 0, 4 }, { 2, 5, 33 },
};
#define SHAPES (sizeof(shapes) / sizeof(*shapes))

static Tensor copy_of(GpuFixture *f, const Tensor *t)
{
    Tensor copy = fixture_tensor(&f->gpu, t->dtype, t->shape[0], t->shape[1], t->shape[2]);

    memcpy(copy.data, t->data, (size_t)tensor_bytes(t));
    return copy;
}

/* Some numbers that are none; `low`: also rows of -infinity. */
static void spoil(Tensor *x, bool low)
{
    int64_t cols = x->shape[2], count = tensor_count(x);

    if (count < 20 * cols)
        return;
    tensor_f32(x)[3 * cols + 1] = NAN;
    tensor_f32(x)[5 * cols + 2] = INFINITY;
    tensor_f32(x)[6 * cols] = -INFINITY;
    for (int64_t c = 0; c < cols && low; c++)
        tensor_f32(x)[8 * cols + c] = -INFINITY;
}

TEST(softmax)
{
    for (size_t s = 0; s < SHAPES; s++)
        for (int wide = 0; wide < 2; wide++) {
            GpuFixture f = gpu_fixture_new(1, 3);
            Tensor     x = fixture_normal(&f.gpu, shapes[s][0], shapes[s][1], shapes[s][2], 4), y;

            spoil(&x, true);
            if (wide)
                x = tensor_convert(f.gpu.run->arena, x, DT_F64);
            y = copy_of(&f, &x);
            cpu_softmax(f.cpu.run, &(SoftmaxRows){ .x = x });
            gpu_softmax(f.gpu.run, &(SoftmaxRows){ .x = y });
            CHECK_BELOW(gpu_difference(&y, &x), wide ? 1e-14 : 1e-6, "softmax of %d",
                        (int)shapes[s][2]);
            gpu_fixture_free(&f);
        }
}

TEST(normalise)
{
    for (size_t s = 0; s < SHAPES; s++)
        for (int kind = NORMALISE_RMS; kind <= NORMALISE_LAYER; kind++) {
            GpuFixture f = gpu_fixture_new(1, 3);
            Tensor     x = fixture_normal(&f.gpu, shapes[s][0], shapes[s][1], shapes[s][2], 4);
            Tensor     y[2] = { copy_of(&f, &x), copy_of(&f, &x) };

            spoil(&x, false);
            cpu_normalise(f.cpu.run, &x, kind, 1e-6, &y[0]);
            gpu_normalise(f.gpu.run, &x, kind, 1e-6, &y[1]);
            CHECK_BELOW(gpu_difference(&y[1], &y[0]), 1e-6, "normalise %d", kind);
            gpu_fixture_free(&f);
        }
}

static void fill_gain_and_bias(float *gain, float *bias)
{
    for (int c = 0; c < 4096; c++) {
        gain[c] = 1 + (float)(c % 7) * 0.1f;
        bias[c] = (float)(c % 5) - 2;
    }
}

/* bias lies outside of the arena. */
TEST(gelu)
{
    static float gain[4096], bias[4096];

    fill_gain_and_bias(gain, bias);
    for (size_t s = 0; s < SHAPES; s++)
        for (int biased = 0; biased < 2; biased++) {
            GpuFixture   f = gpu_fixture_new(1, 3);
            Tensor       x = fixture_normal(&f.gpu, 1, shapes[s][1], shapes[s][2], 4);
            Tensor       y[2] = { copy_of(&f, &x), copy_of(&f, &x) };
            const float *b = biased ? bias : NULL;

            cpu_gelu(f.cpu.run, &y[0], b);
            gpu_gelu(f.gpu.run, &y[1], b);
            CHECK_BELOW(gpu_difference(&y[1], &y[0]), 1e-6, "gelu %d", biased);
            gpu_fixture_free(&f);
        }
}

/* gain and bias lie outside of the arena.  Columns: of one tile, and of more than one. */
TEST(standardised_product)
{
    static float gain[4096], bias[4096];

    fill_gain_and_bias(gain, bias);
    for (size_t s = 0; s < SHAPES; s++)
        for (int which = 0; which < 8; which++) {
            GpuFixture   f = gpu_fixture_new(1, 3);
            int64_t      n = shapes[s][0] * shapes[s][1], d = shapes[s][2];
            int64_t      cols = which & 4 ? 70 : 9;
            Tensor       w = fixture_normal(&f.gpu, 1, d, cols, 1);
            Tensor       y[2] = { fixture_tensor(&f.gpu, DT_F32, 1, n, cols),
                                  fixture_tensor(&f.gpu, DT_F32, 1, n, cols) };
            Standardised in = { .x = fixture_normal(&f.gpu, 1, n, d, 4), .eps = 1e-5,
                                .gain = which & 1 ? gain : NULL, .bias = which & 2 ? bias : NULL };

            for (int64_t c = 0; c < d * cols; c++)
                tensor_f32(&w)[c] /= sqrtf((float)d);
            cpu_standardised_product(f.cpu.run, &in, &w, &y[0]);
            gpu_standardised_product(f.gpu.run, &in, &w, &y[1]);
            CHECK_BELOW(gpu_difference(&y[1], &y[0]), 1e-5, "standardised product %d", which);
            gpu_fixture_free(&f);
        }
}

TEST(largest_norm)
{
    for (size_t s = 0; s < SHAPES; s++) {
        GpuFixture f = gpu_fixture_new(1, 3);
        Tensor     x = fixture_normal(&f.gpu, shapes[s][0], shapes[s][1], shapes[s][2], 4);

        CHECK_NEAR(gpu_largest_norm(f.gpu.run, &x) / fmax(1e-9, cpu_largest_norm(f.cpu.run, &x)),
                   tensor_count(&x) ? 1 : 0, 1e-6);
        if (tensor_count(&x)) {
            tensor_f32(&x)[0] = NAN;
            assert_true(isnan(gpu_largest_norm(f.gpu.run, &x)));
        }
        gpu_fixture_free(&f);
    }
}

/* Sizes of the shared memory's and of the arena's columns; `rank` of them independent.  88 of them
 * fit a Hopper's block and not the 99 KiB that other GPUs have. */
TEST(pinv)
{
    static const int64_t sizes[][2] = { { 1, 1 }, { 2, 2 }, { 7, 7 },   { 16, 5 },
                                        { 33, 33 }, { 64, 20 }, { 88, 88 },  { 129, 129 } };

    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        int64_t    n = sizes[s][0], rank = sizes[s][1];
        GpuFixture f = gpu_fixture_new(2, 3);
        Tensor     left = fixture_normal(&f.gpu, 2, n, rank, 1);
        Tensor     right = fixture_normal(&f.gpu, 2, rank, n, 1);
        Tensor     a = fixture_tensor(&f.gpu, DT_F64, 2, n, n), y[2];

        cpu_gemm(f.cpu.run, &left, false, &right, false, 1, 0, &a);
        for (int64_t i = 0; i < 2 * n && rank == n; i++)
            ((double *)a.data)[i * n + i % n] += 4 * (double)n;
        for (int side = 0; side < 2; side++)
            y[side] = fixture_tensor(&f.gpu, DT_F64, 2, n, n);
        cpu_pinv(f.cpu.run, &a, 1e-10, &y[0]);
        if (n == 88)
            setenv("EMULATED_SHARED", "101376", 1);
        gpu_pinv(f.gpu.run, &a, 1e-10, &y[1]);
        unsetenv("EMULATED_SHARED");
        /* Both are within rounding times the condition, some hundreds here. */
        CHECK_BELOW(gpu_difference(&y[1], &y[0]), 1e-11, "pinv of %d", (int)n);
        gpu_fixture_free(&f);
    }
}

TEST(pinv_of_what_is_no_number)
{
    GpuFixture f = gpu_fixture_new(1, 3);
    Tensor     a = fixture_tensor(&f.gpu, DT_F64, 1, 3, 3), y[2];

    for (int i = 0; i < 9; i++)
        ((double *)a.data)[i] = i == 4 ? (double)NAN : 0;
    for (int side = 0; side < 2; side++)
        y[side] = fixture_tensor(&f.gpu, DT_F64, 1, 3, 3);
    cpu_pinv(f.cpu.run, &a, 1e-10, &y[0]);
    gpu_pinv(f.gpu.run, &a, 1e-10, &y[1]);
    assert_true(gpu_difference(&y[1], &y[0]) == 0);
    gpu_fixture_free(&f);
}

/* Rows from TEAM_LONG on have a block each. */
TEST(sinkhorn_of_long_rows)
{
    GpuFixture f = gpu_fixture_new(1, 3);
    Tensor     x = fixture_normal(&f.gpu, 1, 2050, 2050, 3), y, none = { 0 };

    x = tensor_convert(f.gpu.run->arena, x, DT_F64);
    y = copy_of(&f, &x);
    cpu_sinkhorn(f.cpu.run, &x, &none, false);
    gpu_sinkhorn(f.gpu.run, &y, &none, false);
    CHECK_BELOW(gpu_difference(&y, &x), 1e-13, "sinkhorn of 2050");
    gpu_fixture_free(&f);
}

TEST(sinkhorn_of_nothing)
{
    for (int columns = 0; columns < 2; columns++) {
        GpuFixture f = gpu_fixture_new(2, 3);
        Tensor     x = fixture_tensor(&f.gpu, DT_F64, 2, 0, 0), none = { 0 };

        gpu_sinkhorn(f.gpu.run, &x, &none, columns);
        CHECK(f.gpu.run->err.code == ERR_NONE, "%s", f.gpu.run->err.text);
        gpu_fixture_free(&f);
    }
}

TEST(sinkhorn)
{
    static const int64_t sizes[] = { 1, 5, 33, 70 };

    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
        for (int which = 0; which < 4; which++) {
            int64_t    b = sizes[s], heads = 2;
            GpuFixture f = gpu_fixture_new(heads, 3);
            Tensor     x = fixture_normal(&f.gpu, heads, b, b, 3), y;
            Tensor     allowed = { 0 };
            int64_t    shape[2] = { b, b };

            spoil(&x, true);
            x = tensor_convert(f.gpu.run->arena, x, DT_F64);
            y = copy_of(&f, &x);
            if (which & 1)
                allowed = tensor_new(f.gpu.run->arena, DT_U8, 2, shape);
            for (int64_t i = 0; i < b * b && which & 1; i++)
                tensor_u8(&allowed)[i] = i / b >= i % b && i / b != 1 && i % b != 2;
            cpu_sinkhorn(f.cpu.run, &x, &allowed, which & 2);
            gpu_sinkhorn(f.gpu.run, &y, &allowed, which & 2);
            CHECK_BELOW(gpu_difference(&y, &x), 1e-13, "sinkhorn %d of %d", which, (int)b);
            gpu_fixture_free(&f);
        }
}

SUITE(NULL, NULL)
