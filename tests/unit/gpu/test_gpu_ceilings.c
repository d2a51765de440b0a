/* test_gpu_ceilings.c -- what a device can do is measured, and the memory for it given back. */
#include "unit/gpu_fixture.h"

TEST(ceilings_of_a_device)
{
    for (int kind = ARITHMETIC_F32; kind <= ARITHMETIC_BF16; kind += ARITHMETIC_BF16) {
        GpuFixture f = gpu_fixture_new(1, 1);
        const Ops *ops = device_ops(f.device, (Arithmetic)kind);
        Ceilings   c;
        Error      err = ERROR_INIT;

        if (!ops->ceilings(ops, NULL, &c, &err))
            fail_msg("%s", err.text);
        assert_true(c.peak > 0 && c.tensor > 0 && c.gemm > 0 && c.stream > 0);
        assert_true(isfinite(c.peak) && isfinite(c.tensor) && isfinite(c.stream));
        assert_true((c.peak == c.tensor) == (kind != ARITHMETIC_F32));
        gpu_fixture_free(&f);
    }
}

/* What keeps the compiler from leaving the work out writes nothing. */
TEST(steps_of_every_kind_write_nothing)
{
    GpuFixture f = gpu_fixture_new(1, 1);
    float     *first = gpu_scratch(f.gpu.run, 1, sizeof(float));

    *first = 3;
    for (int kind = ARITHMETIC_F32; kind <= ARITHMETIC_F16; kind++) {
        CeilingCall call = { .kind = kind == ARITHMETIC_F32 ? CEILING_FMA : CEILING_WORDS,
                             .arithmetic = kind, .blocks = 2, .rounds = 2, .a = first };

        assert_int_equal(f.device->api->ceiling(&call), 0);
        assert_int_equal(f.device->api->finish(), 0);
        assert_true(*first == 3);
    }
    gpu_fixture_free(&f);
}

/* A Hopper's products of warpgroups, which the way to them decides on. */
TEST(products_of_warpgroups)
{
    GpuFixture  f = gpu_fixture_new(1, 1);
    DeviceInfo *info = &f.device->info;
    float      *first = gpu_scratch(f.gpu.run, 1, sizeof(float));
    const Ops  *ops = device_ops(f.device, ARITHMETIC_F16);
    Ceilings    c;
    Error       err = ERROR_INIT;

    if (info->major != 9 || info->minor != 0)
        skip();
    *first = 3;
    for (int kind = ARITHMETIC_BF16; kind <= ARITHMETIC_F16; kind++) {
        CeilingCall call = { .kind = CEILING_GROUPS, .arithmetic = kind, .blocks = 2, .rounds = 3,
                             .a = first };

        assert_int_equal(f.device->api->ceiling(&call), 0);
        assert_int_equal(f.device->api->finish(), 0);
        assert_true(*first == 3);
    }
    setenv("ATTNSCOPE_WGMMA", "1", 1);
    assert_true(device_way_taken(f.device, WAY_WARPGROUP));
    if (!ops->ceilings(ops, NULL, &c, &err))
        fail_msg("%s", err.text);
    unsetenv("ATTNSCOPE_WGMMA");
    assert_true(c.peak == c.tensor && c.tensor > 0 && isfinite(c.tensor));
    gpu_fixture_free(&f);
}

SUITE(NULL, NULL)
