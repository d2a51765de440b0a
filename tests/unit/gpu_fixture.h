/* tests/unit/gpu_fixture.h -- runs without a mechanism on the CPU and on the emulated device,
 * for tests that compare an op of both.
 *
 * Tensors live in the device run's arena, which both sides read.  The emulated device is the
 * shared object beside the test (mk/cuda.mk); ATTNSCOPE_TEST_DEVICE names that of a GPU instead
 * (tests/gpu/run).
 */
#ifndef TESTS_UNIT_GPU_FIXTURE_H
#define TESTS_UNIT_GPU_FIXTURE_H

#include <libgen.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attn/cuda/host/gpu.h"
#include "unit/cpu_fixture.h"

typedef struct GpuFixture {
    Device *device;
    Fixture cpu, gpu; /* share no memory; gpu.run->ops are the device's */
} GpuFixture;

/* A mechanism's name for messages; it cannot run. */
static const Mechanism gpu_fixture_mechanism = { .id = "test" };

/* On a GPU: more and larger shapes are worth while, and nothing fails by asking for it. */
static inline bool gpu_fixture_is_real(void)
{
    return getenv("ATTNSCOPE_TEST_DEVICE") != NULL;
}

static inline Device *gpu_fixture_device(void)
{
    char    program[2048], path[2200];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    Error   err = { 0 };
    Device *device;

    assert_true(length > 0);
    program[length] = '\0';
    snprintf(path, sizeof(path), "%s/attnscope-emulated.so", dirname(program));
    setenv("ATTNSCOPE_DEVICE_LIBRARY",
           gpu_fixture_is_real() ? getenv("ATTNSCOPE_TEST_DEVICE") : path, 1);
    device = device_open(&err);
    if (!device)
        fprintf(stderr, "%s\n", err.text);
    assert_non_null(device);
    return device;
}

/* How a process that does so ends, by waitpid; what it says is not shown. */
static inline int gpu_fixture_end_of(void (*what)(void *context), void *context)
{
    pid_t child = fork();
    int   status = 0;

    assert_true(child >= 0);
    if (child == 0) {
        assert_non_null(freopen("/dev/null", "w", stderr));
        signal(SIGABRT, SIG_DFL);
        what(context);
        _exit(0);
    }
    assert_true(waitpid(child, &status, 0) == child);
    return status;
}

static inline GpuFixture gpu_fixture_new(int64_t heads, uint64_t seed)
{
    GpuFixture f = { .device = gpu_fixture_device(), .cpu = fixture_new(1, seed),
                     .gpu = fixture_new(1, seed) };

    f.cpu.run->mechanism = f.gpu.run->mechanism = &gpu_fixture_mechanism;
    f.cpu.run->h = f.gpu.run->h = heads;
    f.cpu.run->ops = ops_cpu();
    f.gpu.run->ops = device_ops(f.device, ARITHMETIC_F32);
    arena_free(f.gpu.run->arena);
    f.gpu.run->arena = arena_new_from(f.gpu.run->ops->memory);
    assert_non_null(f.gpu.run->arena);
    assert_true(arena_attach(f.gpu.run->arena, true));
    return f;
}

static inline void gpu_fixture_free(GpuFixture *f)
{
    fixture_free(&f->cpu);
    fixture_free(&f->gpu);
    assert_int_equal(device_in_use(f->device), 0);
    device_release(f->device);
}

/* Largest |a - b| / max(1, |b|) of two f32 or f64 tensors of one shape, contiguous; equal
 * infinities and a NaN on both sides are no difference, a NaN on one side is infinite. */
static inline double gpu_difference(const Tensor *a, const Tensor *b)
{
    double worst = 0;

    assert_true(tensor_same_shape(a, b));
    for (int64_t x = 0; x < tensor_count(a); x++) {
        double p = a->dtype == DT_F64 ? ((double *)a->data)[x] : (double)((float *)a->data)[x];
        double q = b->dtype == DT_F64 ? ((double *)b->data)[x] : (double)((float *)b->data)[x];

        if (p == q || (isnan(p) && isnan(q)))
            continue;
        worst = isnan(p - q) ? (double)INFINITY
                             : fmax(worst, fabs(p - q) / fmax(1, fabs(q)));
    }
    return worst;
}

#endif
