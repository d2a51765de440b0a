/* test_gpu_ahead.c -- work that the host does not wait for at once.
 *
 * The emulated device puts off what it is given until it is waited for (EMULATED_DEFER), so a
 * wait that is missing gives other numbers, and the same ones each time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unit/gpu_fixture.h"

#include "check.h"

/* ---- the emulation itself --------------------------------------------------------------- */

static void nothing_happens_before_a_wait(void **state)
{
    GpuFixture f;
    Tensor     x;
    GeluCall   call = { .count = 2, .width = 2 };

    (void)state;
    if (gpu_fixture_is_real())
        skip();
    setenv("EMULATED_DEFER", "1", 1);
    f = gpu_fixture_new(1, 1);
    x = tensor_new(f.gpu.run->arena, DT_F32, 3, (int64_t[]){ 1, 1, 2 });
    for (int i = 0; i < 2; i++)
        tensor_f32(&x)[i] = 1;
    call.x = tensor_f32(&x);
    assert_int_equal(gpu_api(f.gpu.run)->gelu(&call), 0);
    assert_true(tensor_f32(&x)[0] == 1);
    tensor_f32(&x)[1] = 0; /* too soon: the kernel reads it */
    assert_int_equal(gpu_api(f.gpu.run)->finish(), 0);
    assert_true(fabsf(tensor_f32(&x)[0] - 0.8412f) < 1e-3f);
    assert_true(tensor_f32(&x)[1] == 0);
    gpu_fixture_free(&f);
    unsetenv("EMULATED_DEFER");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_happens_before_a_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
