/* tests/unit/gpu_choices.h -- the device of the tests, which runs its kernels on the CPU. */
#ifndef TESTS_UNIT_GPU_CHOICES_H
#define TESTS_UNIT_GPU_CHOICES_H

#include <libgen.h>
#include <unistd.h>

#include "cpu_fixture.h"

#include "attn/cuda/library.h"

/* The fixture's run is on the CPU; `run` is one on the device, with an arena of its memory. */
typedef struct GpuFixture {
    Fixture   cpu;
    Device   *device;
    Run      *run;
    Mechanism mechanism; /* that messages name */
} GpuFixture;

/* Makes device_open() find the library beside the test. */
static inline void gpu_use_emulated(void)
{
    char    path[4096], library[4200];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    assert_true(length > 0);
    path[length] = '\0';
    snprintf(library, sizeof(library), "%s/attnscope-emulated.so", dirname(path));
    assert_int_equal(setenv("ATTNSCOPE_DEVICE_LIBRARY", library, 1), 0);
}

static inline GpuFixture gpu_fixture_new(Arithmetic arithmetic, uint64_t seed)
{
    GpuFixture g = { .cpu = fixture_new(2, seed), .run = calloc(1, sizeof(Run)),
                     .mechanism = { .id = "test" } };
    Error      err = ERROR_INIT;

    gpu_use_emulated();
    g.device = device_open(&err);
    if (!g.device)
        fail_msg("%s", err.text);
    assert_non_null(g.run);
    g.run->ops = device_ops(g.device, arithmetic);
    g.run->arena = arena_new_from(g.run->ops->memory);
    assert_non_null(g.run->arena);
    g.run->threads = g.cpu.run->threads;
    g.run->mechanism = &g.mechanism;
    return g;
}

static inline void gpu_fixture_free(GpuFixture *g)
{
    if (g->run->err.code != ERR_NONE)
        fail_msg("%s", g->run->err.text);
    assert_true(arena_check(g->run->arena));
    arena_free(g->run->arena);
    assert_int_equal(device_in_use(g->device), 0);
    device_release(g->device);
    free(g->run);
    fixture_free(&g->cpu);
}

/* Room on the device for a result like t. */
static inline Tensor gpu_fixture_like(GpuFixture *g, Tensor t)
{
    Tensor to = tensor_new(g->run->arena, t.dtype, t.rank, t.shape);

    assert_non_null(to.data);
    memset(to.data, 0x5a, (size_t)tensor_bytes(&to));
    return to;
}

/* The same, with the same contents. */
static inline Tensor gpu_fixture_copy(GpuFixture *g, Tensor t)
{
    Tensor to = gpu_fixture_like(g, t);

    memcpy(to.data, t.data, (size_t)tensor_bytes(&t));
    return to;
}

/* Two results of the same shape are the same to the last bit. */
static inline void check_same_bits(const char *what, Tensor a, Tensor b)
{
    int64_t size = dtype_size(a.dtype);

    assert_int_equal(tensor_count(&a), tensor_count(&b));
    for (int64_t x = 0; x < tensor_count(&a); x++)
        if (memcmp((char *)a.data + x * size, (char *)b.data + x * size, (size_t)size) != 0)
            fail_msg("%s: entry %lld of %lld differs", what, (long long)x,
                     (long long)tensor_count(&a));
}

#endif
