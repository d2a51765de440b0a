/* test_gpu_ahead.c -- work that the host does not wait for at once.
 *
 * The emulated device puts off what it is given until it is waited for (EMULATED_DEFER), so a
 * wait that is missing gives other numbers, and the same ones each time.
 */

#include "attn/cuda/host/graph.h"
#include "attn/run/position.h"
#include "check.h"
#include "unit/gpu_differences.h"

/* ---- the emulation itself --------------------------------------------------------------- */

TEST(nothing_happens_before_a_wait)
{
    GpuFixture f;
    Tensor     x;
    GeluCall   call = { .count = 2, .width = 2 };

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

/* ---- every mechanism -------------------------------------------------------------------- */

typedef struct Case {
    int64_t         n;
    bool            causal, fit;
    const char     *given; /* besides the mechanism's example; NULL: nothing */
    const Position *position;
} Case;

/* Without views, as timed runs are. */
static RunSpec spec_of(Arena *arena, Assignments *given, const Mechanism *m, Case c)
{
    Error   err = ERROR_INIT;
    RunSpec spec = { .mechanism = m, .causal = c.causal, .fit = c.fit, .seed = 1, .given = given,
                     .position = c.position };

    if (m->example)
        assert_true(assignments_parse(given, m->example, &err));
    if (c.given)
        assert_true(assignments_parse(given, c.given, &err));
    spec.q = draw(arena, "q", 2, c.n, 8);
    spec.k = draw(arena, "k", 2, c.n, 8);
    spec.v = draw(arena, "v", 2, c.n, 8);
    spec.x = tensor_with_rank(draw(arena, "x", 1, c.n, 16), 2);
    if (m->needs_attn)
        spec.attn = draw(arena, "attn", 2, c.n, c.n);
    return spec;
}

/* The same bits, NaN or not. */
static bool is_same(const void *a, const void *b, size_t size)
{
    return memcmp(a, b, size) == 0;
}

static void compare_numbers(const char *what, const Run *a, const Run *b)
{
    DIFFERS(flops_total(run_flops(a)) != flops_total(run_flops(b)), "%s: other FLOPs", what);
    DIFFERS(a->stage_count != b->stage_count, "%s: %d stages, and %d without waits", what,
            a->stage_count, b->stage_count);
    DIFFERS(a->figure_count != b->figure_count || a->trace_count != b->trace_count,
            "%s: other figures or traces", what);
    for (int i = 0; i < a->figure_count && i < b->figure_count; i++)
        DIFFERS(!is_same(&a->figures[i].value, &b->figures[i].value, sizeof(double)),
                "%s: %s is %g, and %g without waits", what, a->figures[i].name,
                a->figures[i].value, b->figures[i].value);
    for (int i = 0; i < a->trace_count && i < b->trace_count; i++)
        DIFFERS(!is_same(&a->traces[i].value, &b->traces[i].value, sizeof(double)),
                "%s: trace %s differs", what, a->traces[i].name);
}

static void compare_runs(const char *what, const Run *a, const Run *b)
{
    DIFFERS(a->err.code != b->err.code, "%s: '%s', and without waits '%s'", what, a->err.text,
            b->err.text);
    if (a->err.code != ERR_NONE || b->err.code != ERR_NONE)
        return;
    compare_numbers(what, a, b);
    DIFFERS(!a->out.data != !b->out.data ||
                (a->out.data && !tensor_same_shape(&a->out, &b->out)),
            "%s: another shape", what);
    if (a->out.data && tensor_same_shape(&a->out, &b->out))
        DIFFERS(!is_same(a->out.data, b->out.data, (size_t)tensor_bytes(&a->out)),
                "%s: another output", what);
    DIFFERS(!arena_check(b->arena), "%s: a guard band was overwritten", what);
}

/* As every op is waited for, or as all is put off until the host says that it reads. */
static Run *run_so(const RunSpec *spec, bool ahead)
{
    Run *run;

    device_of(spec->ops)->ahead = ahead ? AHEAD_WORK : AHEAD_NOT;
    if (ahead)
        setenv("EMULATED_DEFER", "1", 1);
    run = run_new(spec);
    run_execute(run);
    unsetenv("EMULATED_DEFER");
    assert_non_null(run);
    return run;
}

static void check(const Mechanism *m, Case c, const Ops *ops)
{
    Arena      *arena = arena_new();
    Assignments given = { 0 };
    RunSpec     spec;
    Run        *waiting, *ahead;
    char        what[200];

    assert_non_null(arena);
    spec = spec_of(arena, &given, m, c);
    spec.ops = ops;
    waiting = run_so(&spec, false);
    ahead = run_so(&spec, true);
    snprintf(what, sizeof(what), "%s n=%d%s%s %s %s", m->id, (int)c.n, c.causal ? " causal" : "",
             c.fit ? " fit" : "", c.given ? c.given : "", c.position ? c.position->id : "");
    compare_runs(what, waiting, ahead);
    run_free(waiting);
    run_free(ahead);
    assignments_free(&given);
    arena_free(arena);
}

/* ---- what is not the default ------------------------------------------------------------ */

/* Another value of a parameter than its default, as text; the which-th, false: no more. */
static bool other_value(const Param *p, int which, char *text, size_t size)
{
    int64_t number = p->fallback > 2 ? (int64_t)p->fallback / 2 : 2;

    switch (p->type) {
    case PARAM_TYPE_ENUM:
        if (!p->choices[which])
            return false;
        snprintf(text, size, "%s=%s", p->name, p->choices[which]);
        return true;
    case PARAM_TYPE_BOOL:
        snprintf(text, size, "%s=%s", p->name, p->fallback > 0 ? "false" : "true");
        return which == 0;
    case PARAM_TYPE_INT:
        snprintf(text, size, "%s=%lld", p->name, (long long)number);
        return which == 0;
    case PARAM_TYPE_LIST: snprintf(text, size, "%s=2", p->name); return which == 0;
    default: return false;
    }
}

static void check_parameters(const Mechanism *m, const Ops *ops)
{
    char text[96];

    for (const Param *p = m->params; p && p->name; p++)
        for (int which = 0; other_value(p, which, text, sizeof(text)); which++) {
            check(m, (Case){ .n = 12, .given = text }, ops);
            if (m->causal && p->type != PARAM_TYPE_INT)
                check(m, (Case){ .n = 12, .given = text, .causal = true }, ops);
        }
}

static void check_shapes(const Mechanism *m, const Ops *ops)
{
    static const int64_t lengths[] = { 37, 1 };

    for (int x = 0; x < 4; x++)
        if (x % 2 == 0 || m->causal)
            check(m, (Case){ .n = lengths[x / 2], .causal = x % 2 }, ops);
    if (m->fit)
        check(m, (Case){ .n = 37, .fit = true }, ops);
    for (size_t i = 0; position_at(i); i++)
        if (position_fits(position_at(i), m->positions))
            check(m, (Case){ .n = 20, .position = position_at(i) }, ops);
}

/* ONE=ID in the environment: that mechanism only, to look for a wait that is missing. */
TEST(every_mechanism_waits_where_it_reads)
{
    const char *one = getenv("ONE");
    Device     *device;

    device = gpu_fixture_device();
    differences = 0;
    for (size_t i = 0; mechanism_at(i); i++)
        if (!one || !strcmp(one, mechanism_at(i)->id)) {
            check_shapes(mechanism_at(i), device_ops(device, ARITHMETIC_F32));
            check(mechanism_at(i), (Case){ .n = 37 }, device_ops(device, ARITHMETIC_BF16));
            check_parameters(mechanism_at(i), device_ops(device, ARITHMETIC_F32));
        }
    assert_int_equal(device_in_use(device), 0);
    device_release(device);
    assert_int_equal(differences, 0);
}

/* ---- what the test is worth ------------------------------------------------------------- */

static void wait_for_clocks_only(Run *r, const char *reads)
{
    if (!reads)
        gpu_wait(r, reads);
}

/* Without the wait of its decision a mechanism decides on what was there before. */
TEST(a_missing_wait_shows)
{
    Device *device;
    Ops    *ops;

    if (gpu_fixture_is_real())
        skip();
    device = gpu_fixture_device();
    ops = &device->kinds[ARITHMETIC_F32].ops;
    ops->wait = wait_for_clocks_only;
    differences = 0;
    printf("made to differ: ");
    check(mechanism_find("act"), (Case){ .n = 37 }, ops);
    assert_true(differences > 0);
    device_release(device);
}

/* ---- graphs ----------------------------------------------------------------------------- */

typedef struct Graphs {
    Device *device;
    int     made, refused;
    char    why[256]; /* of the last that was refused */
} Graphs;

/* Replays as often as asked, each with another output behind it. */
static void check_replays(const char *what, RunGraph *g, const Run *run, int times)
{
    const Tensor *out = run_graph_output(g);
    size_t        bytes = (size_t)tensor_bytes(out);

    for (int x = 0; x < times; x++) {
        memset(out->data, x, bytes);
        DIFFERS(!run_graph_replay(g), "%s: replay %d failed", what, x);
        DIFFERS(!is_same(out->data, run->out.data, bytes), "%s: replay %d differs", what, x);
    }
}

static void check_graph(Graphs *all, const Mechanism *m, Case c, const Ops *ops)
{
    Arena      *arena = arena_new(), *own = arena_new_from(ops->memory);
    Assignments given = { 0 };
    RunSpec     spec;
    RunGraph   *g;
    Run        *run;
    char        what[128];

    assert_non_null(arena);
    assert_non_null(own);
    spec = spec_of(arena, &given, m, c);
    spec.ops = ops;
    run = run_so(&spec, false);
    snprintf(what, sizeof(what), "%s n=%d%s %s as a graph", m->id, (int)c.n,
             c.causal ? " causal" : "", c.position ? c.position->id : "");
    setenv("EMULATED_DEFER", "1", 1);
    all->device->ahead = AHEAD_GRAPHS;
    g = run_graph_new(&spec, own, all->why, sizeof(all->why));
    if (g)
        check_replays(what, g, run, gpu_fixture_is_real() ? 100 : 2);
    else if (getenv("TELL"))
        printf("%s: %s\n", what, all->why);
    all->made += g != NULL;
    all->refused += !g;
    unsetenv("EMULATED_DEFER");
    run_graph_free(g);
    run_free(run);
    assignments_free(&given);
    arena_free(own);
    arena_free(arena);
}

/* Which read nothing is known; the others say what they read. */
TEST(graphs_give_what_runs_give)
{
    const char *one = getenv("ONE");
    Graphs      all = { .device = gpu_fixture_device() };
    const Ops  *ops = device_ops(all.device, ARITHMETIC_F32);

    differences = 0;
    for (size_t i = 0; mechanism_at(i); i++)
        if (!one || !strcmp(one, mechanism_at(i)->id))
            for (int causal = 0; causal <= mechanism_at(i)->causal; causal++) {
                check_graph(&all, mechanism_at(i), (Case){ .n = 20, .causal = causal }, ops);
                if (!causal)
                    check_graph(&all, mechanism_at(i), (Case){ .n = 20 },
                                device_ops(all.device, ARITHMETIC_BF16));
            }
    printf("%d runs became graphs, %d did not\n", all.made, all.refused);
    assert_int_equal(device_in_use(all.device), 0);
    device_release(all.device);
    assert_int_equal(differences, 0);
    assert_true(one || all.made > 90);
}

/* Tables of positions are there before, and what is done with them are operations. */
TEST(positions_become_graphs)
{
    static const char *const ids[] = { "full", "window", "reformer", "linear", "perceiver" };
    const char *every = getenv("EVERY"); /* mechanism */
    Graphs      all = { .device = gpu_fixture_device() };
    const Ops  *ops = device_ops(all.device, ARITHMETIC_F32);
    size_t      count = every ? 0 : sizeof(ids) / sizeof(*ids);
    const Mechanism *m;

    differences = 0;
    while (every && mechanism_at(count))
        count++;
    for (size_t x = 0; x < count; x++) {
        m = every ? mechanism_at(x) : mechanism_find(ids[x]);
        for (size_t i = 0; position_at(i); i++)
            if (m->positions & position_at(i)->class_)
                check_graph(&all, m, (Case){ .n = 20, .position = position_at(i) }, ops);
    }
    assert_int_equal(device_in_use(all.device), 0);
    device_release(all.device);
    printf("%d with a position became graphs, %d did not\n", all.made, all.refused);
    assert_int_equal(differences, 0);
    assert_true(every || all.refused == 0);
}

TEST(what_reads_is_no_graph)
{
    static const struct {
        const char *id, *why;
    } known[] = { { "act", "halt" }, { "switch", "routes tokens" }, { "routing", "clusters" },
                  { "nystrom", "" }, { "entmax", "weights that are not zero" } };
    Graphs     all = { .device = gpu_fixture_device() };
    const Ops *ops = device_ops(all.device, ARITHMETIC_F32);

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        all.made = 0;
        check_graph(&all, mechanism_find(known[i].id), (Case){ .n = 37 }, ops);
        CHECK(!all.made && strstr(all.why, known[i].why), "%s: '%s'", known[i].id, all.why);
    }
    device_release(all.device);
}

/* A read that nobody told of makes another graph than the run was, which is found out. */
TEST(a_missing_wait_makes_no_graph)
{
    Graphs all = { 0 };
    Ops   *ops;

    if (gpu_fixture_is_real())
        skip();
    all.device = gpu_fixture_device();
    ops = &all.device->kinds[ARITHMETIC_F32].ops;
    ops->wait = wait_for_clocks_only;
    check_graph(&all, mechanism_find("act"), (Case){ .n = 37 }, ops);
    printf("%s\n", all.why);
    assert_int_equal(all.made, 0);
    device_release(all.device);
}

/* A run, a graph of it and a replay on a device of which one act fails.  False: something did. */
static bool try_all(const Mechanism *m, const char *what, ErrorCode code)
{
    Device     *device = gpu_fixture_device();
    Arena      *arena = arena_new(), *own;
    Assignments given = { 0 };
    RunSpec     spec = spec_of(arena, &given, m, (Case){ .n = 20 });
    RunGraph   *g = NULL;
    Run        *run;
    char        why[256] = "";
    bool        ok, replayed;

    spec.ops = device_ops(device, ARITHMETIC_F32);
    own = arena_new_from(spec.ops->memory);
    assert_non_null(own);
    run = run_so(&spec, true);
    ok = run->err.code == ERR_NONE;
    CHECK(ok || run->err.code == code, "%s, %s: %s", m->id, what, run->err.text);
    run_free(run);
    device->ahead = AHEAD_GRAPHS;
    setenv("EMULATED_DEFER", "1", 1);
    if (ok)
        g = run_graph_new(&spec, own, why, sizeof(why));
    replayed = g && run_graph_replay(g);
    CHECK(!ok || g || *why, "%s, %s: no graph, and not why", m->id, what);
    unsetenv("EMULATED_DEFER");
    run_graph_free(g);
    arena_free(own);
    arena_free(arena);
    assignments_free(&given);
    assert_int_equal(device_in_use(device), 0);
    device_release(device);
    return replayed;
}

/* Whichever act of the device fails, an ordinary error says so, or why there is no graph. */
TEST(failures_are_ordinary)
{
    static const char *const acts[] = { "take", "launch", "finish" }, *const ids[] = {
        "full", "linear", "poolformer"
    };

    if (gpu_fixture_is_real())
        skip();
    for (int a = 0; a < 3; a++)
        for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
            bool over = false;
            int  k = 0;

            for (; !over && k < 200; k++) {
                char text[32];

                snprintf(text, sizeof(text), "%s:%d", acts[a], k);
                setenv("EMULATED_FAIL", text, 1);
                over = try_all(mechanism_find(ids[i]), text, a ? ERR_UNSUPPORTED : ERR_NOMEM);
            }
            CHECK(over && k > 1, "%s, %s: ended after %d", ids[i], acts[a], k);
        }
    unsetenv("EMULATED_FAIL");
}

/* As CUDA has it: waiting ends a capture, and so does taking memory; the device works on. */
TEST(captures_end_where_the_host_waits)
{
    GpuFixture       f = gpu_fixture_new(1, 1);
    const DeviceApi *api = gpu_api(f.gpu.run);
    void            *graph = NULL, *memory = NULL;

    assert_int_equal(api->capture_begin(), 0);
    assert_int_not_equal(api->finish(), 0);
    assert_int_not_equal(api->capture_end(&graph), 0);
    assert_null(graph);
    assert_int_equal(api->finish(), 0);
    assert_int_equal(api->capture_begin(), 0);
    assert_int_not_equal(api->take(4096, &memory), 0);
    assert_int_not_equal(api->capture_end(&graph), 0);
    assert_int_equal(api->finish(), 0);
    gpu_fixture_free(&f);
}

/* ---- memory ----------------------------------------------------------------------------- */

static bool busy_for(void *context)
{
    return *(bool *)context;
}

static void settle_down(void *context)
{
    *(bool *)context = false;
}

static void *take_aligned(void *context, int64_t bytes)
{
    (void)context;
    return aligned_alloc(64, (size_t)bytes);
}

static void give_back(void *context, void *data, int64_t bytes)
{
    (void)context;
    (void)bytes;
    free(data);
}

/* What is released while the device works stays, is counted as free, and comes back later. */
TEST(released_memory_stays)
{
    bool        busy = true;
    ArenaSource source = { .take = take_aligned, .give = give_back, .busy = busy_for,
                           .settle = settle_down, .context = &busy };
    Arena      *arena = arena_new_from(&source);
    ArenaMark   outer = arena_mark(arena), mark;
    char       *first, *second, *third;

    assert_non_null(arena);
    first = arena_alloc(arena, 1000, 1);
    mark = arena_mark(arena);
    second = arena_alloc(arena, 1000, 1);
    arena_release(arena, mark);
    assert_int_equal(arena_used(arena), 1024);
    third = arena_alloc(arena, 1000, 1);
    assert_true(third != first && third != second);
    assert_int_equal(arena_peak(arena), 2048);
    busy = false;
    arena_release(arena, outer);
    assert_ptr_equal(arena_alloc(arena, 1000, 1), first);
    busy = true;
    mark = arena_mark(arena);
    arena_alloc(arena, ARENA_KEPT + 1, 1);
    arena_release(arena, mark); /* too much to keep: it waits */
    assert_false(busy);
    arena_free(arena);
}

SUITE(NULL, NULL)
