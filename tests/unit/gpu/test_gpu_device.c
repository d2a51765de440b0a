/* test_gpu_device.c -- calls of the device that go wrong, and what they leave behind. */
#include <signal.h>
#include <sys/wait.h>

#include "attn/cuda/host/gpu.h"
#include "attn/ops/lambdas.h"
#include "attn/pattern/pattern.h"
#include "attn/run/position.h"
#include "check.h"
#include "unit/gpu_fixture.h"

#define COUNT 64

/* Sanitizers map memory where the emulated device looks for the host's. */
#ifdef ATTNSCOPE_SANITIZED
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif

static int begin_gelu(const DeviceApi *api, float *x)
{
    GeluCall call = { .x = x, .count = COUNT, .width = COUNT };

    return api->gelu(&call);
}

/* The runtime keeps what failed until somebody asks; a kernel begun afterwards has not failed. */
TEST(a_kernel_tells_of_its_own_failure)
{
    Device          *device = gpu_fixture_device();
    const DeviceApi *api = device_api(device);
    float            own[COUNT] = { 0 };
    void            *x = NULL, *none = NULL;
    int              refused;

    assert_int_equal(api->take(sizeof(own), &x), 0);
    memset(x, 0, sizeof(own));
    if (!gpu_fixture_is_real()) {
        setenv("EMULATED_FAIL", "take:1", 1);
        assert_int_not_equal(api->take(sizeof(own), &none), 0);
        unsetenv("EMULATED_FAIL");
        assert_int_equal(begin_gelu(api, x), 0);
    }
    refused = api->toward(own, sizeof(own), true); /* some GPUs share all of the host's memory */
    assert_true(refused || gpu_fixture_is_real());
    assert_int_equal(begin_gelu(api, x), 0);
    assert_int_equal(api->finish(), 0);
    assert_int_equal(api->give(x), 0);
    device_release(device);
}

static int begin_triad(const DeviceApi *api, float *x)
{
    CeilingCall call = { .kind = CEILING_TRIAD, .count = COUNT / 4, .rounds = 1,
                         .a = x, .b = x, .c = x };

    return api->ceiling(&call);
}

typedef struct Begun {
    const DeviceApi *api;
    int            (*begin)(const DeviceApi *api, float *x);
    float           *x;
} Begun;

static void begin_it(void *begun)
{
    const Begun *b = begun;

    b->begin(b->api, b->x);
}

/* How a process that gives a kernel such memory ends. */
static int status_with(Device *device, int (*begin)(const DeviceApi *api, float *x), float *x)
{
    return gpu_fixture_end_of(begin_it, &(Begun){ device_api(device), begin, x });
}

TEST(memory_that_a_gpu_faults_at_is_found)
{
    Device *device;
    float  *heap, stack[COUNT] = { 0 };
    void   *taken = NULL;

    if (gpu_fixture_is_real() || is_sanitized)
        skip();
    heap = malloc(COUNT * sizeof(float));
    device = gpu_fixture_device();
    assert_int_equal(device_api(device)->take(sizeof(stack), &taken), 0);
    memset(taken, 0, sizeof(stack));
    assert_true(status_with(device, begin_gelu, taken) == 0);
    assert_true(WIFSIGNALED(status_with(device, begin_gelu, stack)));
    assert_true(WIFSIGNALED(status_with(device, begin_gelu, heap)));
    assert_true(status_with(device, begin_triad, taken) == 0);
    assert_true(WIFSIGNALED(status_with(device, begin_triad, (float *)taken + 1)));
    device_api(device)->give(taken);
    free(heap);
    device_release(device);
}

/* Where memory may not be touched by the host while the GPU works (DeviceInfo.managed), each call
 * is waited for: the host writes lists between the calls of an op. */
TEST(nothing_is_under_way_while_the_host_goes_on)
{
    GpuFixture f = gpu_fixture_new(1, 1);
    Tensor     x = fixture_normal(&f.gpu, 1, 1, COUNT, 1);

    setenv("EMULATED_DEFER", "1", 1);
    assert_true(gpu_began(f.gpu.run, "gelu", begin_gelu(f.device->api, x.data)));
    assert_true(gpu_is_busy(f.device));
    gpu_finish(f.gpu.run, "gelu");
    f.device->info.managed = false;
    assert_true(gpu_began(f.gpu.run, "gelu", begin_gelu(f.device->api, x.data)));
    assert_false(gpu_is_busy(f.device));
    unsetenv("EMULATED_DEFER");
    gpu_fixture_free(&f);
}

/* What the host has written moves to the GPU as a whole, ahead of the kernel that reads it: else
 * that would wait for it page by page.  Here: what has been asked to move. */
#define MOVES 64
static const DeviceApi *moving_api;
static struct {
    const char *first;
    int64_t     bytes;
} moves[MOVES];
static int move_count;

static int noted_move(const void *data, int64_t bytes, bool device)
{
    if (device && move_count < MOVES) {
        moves[move_count].first = data;
        moves[move_count++].bytes = bytes;
    }
    return moving_api->toward(data, bytes, device);
}

static bool has_moved(const void *data, int64_t bytes)
{
    for (int x = 0; x < move_count; x++)
        if (moves[x].first <= (const char *)data &&
            (const char *)data + bytes <= moves[x].first + moves[x].bytes)
            return true;
    return false;
}

TEST(what_the_host_lists_moves_ahead)
{
    GpuFixture   f = gpu_fixture_new(2, 1);
    DeviceApi    api = *f.device->api;
    Run         *r = f.gpu.run;
    PanelSpan    span = { .rows = 100, .keys = 100 };
    int64_t     *start = gpu_scratch(r, 5, sizeof(*start));
    int32_t     *entry = gpu_scratch(r, 8, sizeof(*entry));
    Tensor       x = fixture_tensor(&f.gpu, DT_F32, 2, 3, 2);
    Tensor       y = fixture_tensor(&f.gpu, DT_F32, 2, 2, 2);
    SumLists     sums = { .x = x, .start = start, .entry = entry, .heads = 2, .n = 2 };
    AttendInput  in = { .q = fixture_normal(&f.gpu, 2, 3, 2, 1), .k = x, .v = x, .scale = 1 };
    AttendResult out = { .out = fixture_tensor(&f.gpu, DT_F32, 2, 3, 2),
                         .lse = tensor_with_rank(fixture_tensor(&f.gpu, DT_F32, 1, 2, 3), 2) };
    float        own[6] = { 0 };
    Tensor       host = tensor_of(DT_F32, 3, (int64_t[]){ 1, 2, 3 }, own);
    DeviceTensor copy;
    PanelWork    work;
    RowRuns      runs;
    double       cells;

    moving_api = f.device->api;
    move_count = 0;
    api.toward = noted_move;
    f.device->api = &api;
    for (int at = 0; at < 5; at++)
        start[at] = 2 * at;
    memset(entry, 0, 8 * sizeof(*entry));
    memset(x.data, 0, (size_t)tensor_bytes(&x));
    copy = gpu_tensor(r, &host);
    work = gpu_panels(r, &span, 1, 4);
    runs = gpu_row_runs(r, pattern_causal(r->arena, (PatternShape){ .heads = 2, .n = 9, .m = 9 }),
                        &cells);
    gpu_sum_lists(r, &sums, &y);
    gpu_attend(r, &in, pattern_full(r->arena, (PatternShape){ .heads = 2, .n = 3, .m = 3 }, 0),
               &out, &cells);
    f.device->api = moving_api;
    assert_int_equal(r->err.code, ERR_NONE);
    assert_true(has_moved(copy.data, sizeof(own)));
    assert_true(has_moved(work.panels, work.count * (int64_t)sizeof(*work.panels)));
    assert_true(has_moved(runs.start, 10 * (int64_t)sizeof(*runs.start)));
    assert_true(has_moved(runs.runs, 9 * (int64_t)sizeof(*runs.runs)));
    assert_true(has_moved(start, 5 * (int64_t)sizeof(*start)));
    assert_true(has_moved(entry, 8 * (int64_t)sizeof(*entry)));
    gpu_fixture_free(&f);
}

static bool has_moved_bytes(int64_t bytes)
{
    for (int x = 0; x < move_count; x++)
        if (moves[x].bytes == bytes)
            return true;
    return false;
}

/* What a run of 37 tokens in 2 heads of 8 numbers moves; given: a parameter's tensor, or none. */
static void note_moves(GpuFixture *f, const char *mechanism, const char *position,
                       const char *name, Tensor given)
{
    Error       err = ERROR_INIT;
    Assignments with = { 0 };
    RunSpec     spec = { .mechanism = mechanism_find(mechanism), .seed = 1, .given = &with,
                         .position = position ? position_find(position) : NULL,
                         .ops = device_ops(f->device, ARITHMETIC_F32) };
    Run        *run;

    spec.q = fixture_normal(&f->cpu, 2, 37, 8, 1);
    spec.k = fixture_normal(&f->cpu, 2, 37, 8, 2);
    spec.v = fixture_normal(&f->cpu, 2, 37, 8, 3);
    if (name)
        assert_true(assignments_set_tensor(&with, name, given, "@test.npy", &err));
    move_count = 0;
    run = run_new(&spec);
    run_execute(run);
    assert_non_null(run);
    CHECK(run->err.code == ERR_NONE, "%s", run->err.text);
    run_free(run);
    assignments_free(&with);
}

/* Parameters, drawn or given, and what positions list are there before a run is timed. */
TEST(what_is_prepared_moves_ahead)
{
    GpuFixture f = gpu_fixture_new(2, 1);
    DeviceApi  api = *f.device->api;
    Tensor     none = { 0 };

    moving_api = f.device->api;
    api.toward = noted_move;
    f.device->api = &api;
    note_moves(&f, "performer", NULL, "projection", fixture_normal(&f.cpu, 1, 5, 8, 4));
    assert_true(has_moved_bytes(5 * 8 * 4));
    note_moves(&f, "synthesizer-random", NULL, NULL, none);
    assert_true(has_moved_bytes(2 * 37 * 37 * 4));
    note_moves(&f, "full", "sinusoidal", NULL, none);
    assert_true(has_moved_bytes(37 * 8 * 4));
    note_moves(&f, "full", "rope", NULL, none);
    assert_true(has_moved_bytes(37 * 8 * 8));
    note_moves(&f, "full", "alibi", NULL, none);
    assert_true(has_moved_bytes(2 * 73 * 4));
    note_moves(&f, "full", "t5", NULL, none);
    assert_true(has_moved_bytes(2 * 73 * 4));
    note_moves(&f, "full", "shaw", NULL, none);
    assert_true(has_moved_bytes(73 * 4));
    f.device->api = moving_api;
    gpu_fixture_free(&f);
}

/* Shared memory is not the same everywhere: told before the launch that it would be refused at. */
TEST(lambdas_of_too_many_heads_are_told)
{
    GpuFixture f = gpu_fixture_new(8, 1);
    Tensor     out = fixture_tensor(&f.gpu, DT_F32, 8, 4, 2);
    Lambdas    l = { .r = f.gpu.run, .position = LAMBDA_NONE, .contexts = 1,
                     .s = { .h = 8, .hk = 1, .n = 4, .m = 4, .k = 2, .u = 1, .e = 2 } };

    l.reach = pattern_none(f.gpu.run->arena, (PatternShape){ .heads = 1, .n = 4, .m = 4 });
    f.device->info.shared = 7 * LAMBDA_GROUP_BYTES;
    gpu_lambda_apply(f.gpu.run, &l, &out);
    assert_int_equal(f.gpu.run->err.code, ERR_UNSUPPORTED);
    assert_non_null(strstr(f.gpu.run->err.text, "8 heads over 1 key heads; on this GPU at most 7"));
    f.gpu.run->err = (Error)ERROR_INIT;
    gpu_fixture_free(&f);
}

/* After a kernel that ran wild nothing reaches the GPU; what a later run lacks is no memory. */
TEST(what_is_lost_stays_lost)
{
    GpuFixture f;
    Tensor     x;

    if (gpu_fixture_is_real())
        skip();
    setenv("EMULATED_FAIL", "lost:0", 1);
    f = gpu_fixture_new(1, 1);
    gpu_note(f.device, 701); /* a launch that asked for too much: the next may be well */
    assert_null(gpu_broken(f.device));
    x = fixture_normal(&f.gpu, 1, 4, 4, 1);
    gpu_gelu(f.gpu.run, &x, NULL);
    CHECK(strstr(f.gpu.run->err.text, "unspecified launch failure") &&
          strstr(f.gpu.run->err.text, "lost the GPU"), "%s", f.gpu.run->err.text);
    f.gpu.run->err = (Error){ 0 };
    assert_null(gpu_scratch(f.gpu.run, (int64_t)64 << 20, 1));
    assert_int_equal(f.gpu.run->err.code, ERR_UNSUPPORTED);
    CHECK(strstr(f.gpu.run->err.text, "lost the GPU") &&
          !strstr(f.gpu.run->err.text, "memory"), "%s", f.gpu.run->err.text);
    f.gpu.run->err = (Error){ 0 };
    unsetenv("EMULATED_FAIL");
    gpu_fixture_free(&f);
}

SUITE(NULL, NULL)
