/* test_gpu_ceilings.c -- what a device can do is measured, and the memory for it given back. */
#include "unit/gpu_fixture.h"

static void ceilings_of_a_device(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(ceilings_of_a_device) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
