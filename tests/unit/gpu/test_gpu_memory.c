/* test_gpu_memory.c -- the device's memory: more than it has is refused before it is asked for. */
#include "check.h"
#include "unit/gpu_fixture.h"

#define MIB ((int64_t)1 << 20)
#define OTHERS "8388608000" /* bytes that other programs hold of the emulated device's 8 GiB */

/* The emulated device fills what it gives, so it is to have little. */
static GpuFixture small_device(void)
{
    if (!gpu_fixture_is_real())
        setenv("EMULATED_FAIL", "memory:" OTHERS, 1);
    return gpu_fixture_new(1, 3);
}

static void done(GpuFixture *f)
{
    gpu_fixture_free(f);
    unsetenv("EMULATED_FAIL");
}

static int64_t left(const Device *d)
{
    return d->memory.left(d->memory.context);
}

static Tensor ones(GpuFixture *f)
{
    Tensor x = fixture_tensor(&f->gpu, DT_F32, 1, 4, 4);

    for (int64_t i = 0; i < 16; i++)
        tensor_f32(&x)[i] = 1;
    return x;
}

/* Softmax of equal numbers; the run is as it was made. */
static void check_works(GpuFixture *f)
{
    Tensor x = ones(f);

    gpu_softmax(f->gpu.run, &(SoftmaxRows){ .x = x });
    CHECK_BELOW(fabs((double)tensor_f32(&x)[5] - 0.25), 1e-7, "softmax: %s", f->gpu.run->err.text);
    assert_false(run_failed(f->gpu.run));
}

static bool can_take(const Device *d, int64_t bytes)
{
    void *data = d->memory.take(d->memory.context, bytes);

    if (data)
        d->memory.give(d->memory.context, data, bytes);
    return data != NULL;
}

/* CUDA's managed memory would be given beyond that; the emulated device ends the program then. */
TEST(more_than_there_is)
{
    GpuFixture f = small_device();
    int64_t    all = device_info(f.device)->memory, room = left(f.device);

    assert_in_range(room, 1, all - all / 64); /* some is spared */
    assert_false(can_take(f.device, room + 1));
    assert_false(can_take(f.device, 4 * all));
    assert_true(can_take(f.device, room / 2));
    check_works(&f);
    done(&f);
}

/* What we hold, and the GPU does not know of before it touches it, is counted too. */
TEST(one_after_the_other)
{
    GpuFixture   f = small_device();
    ArenaSource *memory = &f.device->memory;
    int64_t      each = left(f.device) / 4 + 1;
    void        *taken[4] = { 0 };

    for (int x = 0; x < 4; x++) {
        taken[x] = memory->take(memory->context, each);
        assert_true((taken[x] != NULL) == (x < 3));
    }
    for (int x = 0; x < 3; x++)
        memory->give(memory->context, taken[x], each);
    check_works(&f);
    done(&f);
}

TEST(run_says_so)
{
    GpuFixture f = small_device();

    assert_null(gpu_scratch(f.gpu.run, device_info(f.device)->memory, 2));
    assert_int_equal(f.gpu.run->err.code, ERR_NOMEM);
    CHECK(strstr(f.gpu.run->err.text, "not enough memory: "), "%s", f.gpu.run->err.text);
    CHECK(strstr(f.gpu.run->err.text, "iB free; nvidia-smi"), "%s", f.gpu.run->err.text);
    f.gpu.run->err = (Error){ 0 };
    done(&f);
}

SUITE(NULL, NULL)
