/* test_gpu_exclusive.c -- GPUs whose memory the host may not touch while they work, as under WSL:
 * what one thread reads while another's run is under way.
 *
 * The emulated device closes its memory to the host from a launch on until that is waited for
 * (EMULATED_EXCLUSIVE); a wait that calls another thread in between makes each order happen.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "check.h"
#include "profile/measure.h"
#include "unit/gpu_differences.h"

#define COUNT 64
#define BYTES (COUNT * (int64_t)sizeof(float))
#define WAITS 3 /* of a run, at which the other thread comes */
#define FEW 16  /* a mechanism of so many, where each takes long */

/* Sanitizers map memory where the emulated device looks for what a kernel is given; all is slow. */
#ifdef ATTNSCOPE_SANITIZED
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif

static Device *exclusive_device(void)
{
    Device *device;

    if (gpu_fixture_is_real())
        skip();
    setenv("EMULATED_EXCLUSIVE", "1", 1);
    device = gpu_fixture_device();
    assert_false(device_info(device)->managed);
    return device;
}

static void done(Device *device)
{
    assert_int_equal(device_in_use(device), 0);
    device_release(device);
    unsetenv("EMULATED_EXCLUSIVE");
}

TEST(what_the_driver_does_not_say_the_host_may_not)
{
    Device *device;

    if (gpu_fixture_is_real())
        skip();
    setenv("EMULATED_FAIL", "attribute", 1);
    device = gpu_fixture_device();
    unsetenv("EMULATED_FAIL");
    assert_false(device_info(device)->managed);
    device_release(device);
}

/* ---- the emulation itself ---------------------------------------------------------------- */

typedef struct Memory {
    const DeviceApi *api;
    float           *own, *other; /* the device's, and the host's */
} Memory;

static int begin_gelu(const DeviceApi *api, float *x)
{
    return api->gelu(&(GeluCall){ .x = x, .count = COUNT, .width = COUNT });
}

static void too_soon(Memory *m)
{
    begin_gelu(m->api, m->own);
    m->own[0]++;
}

static void after_the_wait(Memory *m)
{
    begin_gelu(m->api, m->own);
    m->api->finish();
    m->own[0]++;
}

static void of_the_host(Memory *m)
{
    begin_gelu(m->api, m->own);
    m->other[0]++;
}

static void given_back(Memory *m)
{
    begin_gelu(m->api, m->own);
    m->api->attach(m->own, false);
    begin_gelu(m->api, m->own);
}

static void taken_meanwhile(Memory *m)
{
    void *more = NULL;

    begin_gelu(m->api, m->own);
    m->api->take(BYTES, &more);
    memset(more, 0, BYTES);
}

static void *touch(void *own)
{
    ((float *)own)[0]++;
    return NULL;
}

static void by_another_thread(Memory *m)
{
    pthread_t thread;

    begin_gelu(m->api, m->own);
    pthread_create(&thread, NULL, touch, m->own);
    pthread_join(thread, NULL);
}

typedef struct Deed {
    Memory *m;
    void  (*what)(Memory *m);
} Deed;

static void commit(void *deed)
{
    const Deed *d = deed;

    d->what(d->m);
}

/* Whether a process that does so is ended. */
static bool ends(Memory *m, void (*what)(Memory *m))
{
    int status = gpu_fixture_end_of(commit, &(Deed){ m, what });

    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static float *take(const DeviceApi *api, bool device)
{
    void *data = NULL;

    assert_int_equal(api->take(BYTES, &data), 0);
    memset(data, 0, BYTES);
    assert_int_equal(api->attach(data, device), 0);
    return data;
}

TEST(memory_is_closed_while_a_stream_works)
{
    Device *device = exclusive_device();
    Memory  m = { .api = device_api(device) };

    m.own = take(m.api, true);
    m.other = take(m.api, false);
    assert_false(ends(&m, after_the_wait));
    assert_false(ends(&m, of_the_host));
    assert_false(ends(&m, taken_meanwhile));
    assert_true(ends(&m, too_soon));
    assert_true(ends(&m, by_another_thread));
    assert_true(is_sanitized || ends(&m, given_back));
    m.api->give(m.own);
    m.api->give(m.other);
    done(device);
}

/* ---- while a run is under way ------------------------------------------------------------ */

/* What another thread does before each of the next waits of this one. */
static struct Meanwhile {
    const DeviceApi *real;
    DeviceApi        api;
    pthread_t        thread; /* whose waits count */
    void          *(*act)(void *context);
    void            *context;
    int              left, times;
} meanwhile;

static int finish_after_others(void)
{
    pthread_t other;

    if (meanwhile.left > 0 && pthread_equal(pthread_self(), meanwhile.thread)) {
        meanwhile.left--;
        meanwhile.times++;
        assert_int_equal(pthread_create(&other, NULL, meanwhile.act, meanwhile.context), 0);
        pthread_join(other, NULL);
    }
    return meanwhile.real->finish();
}

static void begin_meanwhile(Device *device, void *(*act)(void *context), void *context)
{
    if (device->api != &meanwhile.api) {
        meanwhile = (struct Meanwhile){ .real = device->api, .api = *device->api };
        meanwhile.api.finish = finish_after_others;
        device->api = &meanwhile.api;
    }
    meanwhile.thread = pthread_self();
    meanwhile.act = act;
    meanwhile.context = context;
    meanwhile.left = WAITS;
}

static RunSpec spec_of(Arena *arena, Assignments *given, const Mechanism *m, const Ops *ops)
{
    Error   err = ERROR_INIT;
    RunSpec spec = { .mechanism = m, .seed = 1, .views = true, .given = given, .ops = ops };

    if (m->example)
        assert_true(assignments_parse(given, m->example, &err));
    spec.q = draw(arena, "q", 2, 20, 8);
    spec.k = draw(arena, "k", 2, 20, 8);
    spec.v = draw(arena, "v", 2, 20, 8);
    spec.x = tensor_with_rank(draw(arena, "x", 1, 20, 16), 2);
    if (m->needs_attn)
        spec.attn = draw(arena, "attn", 2, 20, 20);
    return spec;
}

/* All that a run shows, as the explorer's thread reads it. */
static void *read_views(void *context)
{
    const Run *run = context;
    Arena     *arena = arena_new();

    for (int i = 0; arena && i < run->view_count; i++) {
        Error  err = ERROR_INIT;
        Tensor t;

        DIFFERS(!view_materialise(&run->views[i], arena, 0, &t, &err), "%s: %s: %s",
                run->mechanism->id, run->views[i].name, err.text);
    }
    arena_free(arena);
    return NULL;
}

static bool same_output(const Run *a, const Run *b)
{
    return tensor_bytes(&a->out) == tensor_bytes(&b->out) &&
           !memcmp(a->out.data, b->out.data, (size_t)tensor_bytes(&a->out));
}

static void check_reading(Device *device, const Mechanism *m)
{
    Arena      *arena = arena_new();
    Assignments given = { 0 };
    RunSpec     spec = spec_of(arena, &given, m, device_ops(device, ARITHMETIC_F32));
    Run        *first = run_new(&spec), *second;

    run_execute(first);
    DIFFERS(first->err.code, "%s", first->err.text);
    begin_meanwhile(device, read_views, first);
    second = run_new(&spec);
    run_execute(second);
    meanwhile.left = 0;
    DIFFERS(second->err.code || !same_output(first, second), "%s: another output: %s", m->id,
            second->err.text);
    run_free(second);
    run_free(first);
    assignments_free(&given);
    arena_free(arena);
}

TEST(a_finished_run_is_read_while_another_is_under_way)
{
    Device *device = exclusive_device();

    differences = 0;
    for (size_t i = 0; mechanism_at(i); i += is_sanitized ? FEW : 1)
        check_reading(device, mechanism_at(i));
    assert_int_equal(differences, 0);
    CHECK(meanwhile.times > 100 / (is_sanitized ? FEW : 1), "read %d times only", meanwhile.times);
    done(device);
}

/* ---- what else uses the device -------------------------------------------------------------- */

TEST(timed_runs_are_waited_for)
{
    MeasurePlan plan = { .repeats = 3, .most = 3, .max_seconds = 20 };
    Device     *device = exclusive_device();
    Arena      *arena = arena_new();
    Assignments given = { 0 };
    RunSpec     spec = spec_of(arena, &given, mechanism_find("bigbird"),
                               device_ops(device, ARITHMETIC_F32));
    Run        *run = run_new(&spec);
    Error       err = ERROR_INIT;
    Record      record;

    run_execute(run);
    differences = 0;
    begin_meanwhile(device, read_views, run);
    meanwhile.left = 100;
    assert_true(measure(&spec, &plan, &record, &err));
    meanwhile.left = 0;
    CHECK(record.status == RECORD_OK && record.time.count == 3, "%s", record.message);
    assert_int_equal(differences, 0);
    CHECK(!record.gpu->lacks[TIER_EVENTS][0], "%s", record.gpu->lacks[TIER_EVENTS]);
    record_free(&record);
    run_free(run);
    assignments_free(&given);
    arena_free(arena);
    done(device);
}

TEST(ceilings_are_measured)
{
    Device    *device = exclusive_device();
    const Ops *ops = device_ops(device, ARITHMETIC_F32);
    Ceilings   c;
    Error      err = ERROR_INIT;

    CHECK(ops->ceilings(ops, NULL, &c, &err), "%s", err.text);
    assert_true(c.peak > 0 && c.stream > 0);
    done(device);
}

/* Memory that the driver does not hand over is an ordinary error, whenever that is. */
TEST(refused_attachments_are_ordinary)
{
    bool over = false;
    int  k = 0;

    for (; !over && k < 40; k++) {
        Arena      *arena = arena_new();
        Assignments given = { 0 };
        char        text[32];
        Device     *device;
        RunSpec     spec;
        Run        *run;

        snprintf(text, sizeof(text), "attach:%d", k);
        setenv("EMULATED_FAIL", text, 1);
        device = exclusive_device();
        spec = spec_of(arena, &given, mechanism_find("full"), device_ops(device, ARITHMETIC_F32));
        run = run_new(&spec);
        run_execute(run);
        over = !run->err.code;
        CHECK(over || run->err.code == ERR_NOMEM || strstr(run->err.text, "the GPU did not take") ||
              strstr(run->err.text, "the GPU did not give back"), "%s: %s", text, run->err.text);
        run_free(run);
        assignments_free(&given);
        arena_free(arena);
        done(device);
    }
    unsetenv("EMULATED_FAIL");
    CHECK(over && k > 2, "ended after %d", k);
}

SUITE(NULL, NULL)
