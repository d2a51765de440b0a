/* tests/unit/gpu_differences.h -- for tests that run all mechanisms on the emulated device: drawn
 * inputs, and differences that are all told before a test fails.
 */
#ifndef TESTS_UNIT_GPU_DIFFERENCES_H
#define TESTS_UNIT_GPU_DIFFERENCES_H

#include "unit/gpu_fixture.h"

static int differences; /* of the test that runs; all are told before it fails */

#define DIFFERS(condition, ...)                                                                \
    do {                                                                                       \
        if (condition) {                                                                       \
            printf(__VA_ARGS__);                                                               \
            printf("\n");                                                                      \
            differences++;                                                                     \
        }                                                                                      \
    } while (0)

static Tensor draw(Arena *arena, const char *name, int64_t h, int64_t n, int64_t w)
{
    Tensor t = tensor_new(arena, DT_F32, 3, (int64_t[]){ h, n, w });
    Rng    rng = rng_named(42, name);

    assert_non_null(t.data);
    rng_fill_normal(&rng, t.data, tensor_count(&t), 1);
    return t;
}

#endif
