/* test_profile_measure.c -- measuring runs: times, memory, failures.
 *
 * Times are only checked for order and consistency, never against a clock of
 * another machine.
 */
#include <sys/resource.h>

#include "attn/run/position.h"
#include "profile/watch.h"
#include "profile_fixture.h"

#define QUICK                                                                                      \
    ((MeasurePlan){                                                                                \
        .repeats = 5, .most = 9, .min_seconds = 0, .max_seconds = 20, .width = INFINITY })

static Record measured(const RunSpec *spec, MeasurePlan plan)
{
    Record r;
    Error  err = ERROR_INIT;

    if (!measure(spec, &plan, &r, &err))
        fail_msg("%s", err.text);
    return r;
}

TEST(a_measured_run_has_all_its_numbers)
{
    Fixture f = fixture_new(2, 96, 16, 2);
    Record  r;
    double  stages = 0, counted = 0;

    fixture_choose(&f, "bigbird", "window=3,random=2");
    r = measured(&f.spec, QUICK);
    assert_int_equal(r.status, RECORD_OK);
    assert_string_equal(r.message, "");
    assert_string_equal(r.mechanism, "bigbird");
    assert_string_equal(r.position, "none");
    assert_int_equal(r.n, 96);
    assert_int_equal(r.heads, 2);
    assert_int_equal(r.threads, 2);
    assert_int_equal(r.time.count, 5);
    assert_true(r.time.first.valid && r.time.first.value > 0);
    assert_true(r.time.min.value > 0 && r.time.min.value <= r.time.q1.value);
    assert_true(r.time.q1.value <= r.time.median.value && r.time.median.value <= r.time.q3.value);
    assert_true(r.cpu_ms.valid && r.arena_peak.valid && r.arena_peak.value > 0);
    assert_true(r.stage_count >= 2);
    for (int i = 0; i < r.stage_count; i++) {
        assert_true(r.stages[i].time_ms.valid && r.stages[i].time_ms.value >= 0);
        stages += r.stages[i].time_ms.value;
        counted += flops_total(r.stages[i].flops);
    }
    assert_true(stages > 0 && stages <= 1.5 * r.time.q3.value);
    CHECK_WITHIN(counted, flops_total(r.counted), 0);
    assert_true(r.has_closed_form);
    CHECK_WITHIN(flops_total(r.closed_form), flops_total(r.counted), 0);
    assert_true(r.hardware.cycles.valid || r.hardware.flops.valid || *r.hardware_note);
    assert_false(r.quality.mass_mean.valid);
    record_free(&r);
    fixture_free(&f);
}

/* A preparation of a quarter second. */
static void prepare_long(void *context, bool begins)
{
    double start = clock_wall();

    (void)context;
    while (begins && clock_wall() - start < 0.25)
        continue;
}

TEST(no_time_includes_preparation)
{
    Fixture f = fixture_new(1, 32, 8, 1);
    Arena  *arena = arena_new();
    Watch   watch = { .next_preparing = prepare_long };

    fixture_choose(&f, "performer", "");
    f.spec.observer = watch_stage;
    f.spec.preparing = watch_preparing;
    f.spec.observer_context = &watch;
    run_free(watch_run(&watch, &f.spec, arena));
    assert_true(watch.preparing >= 0.25);
    assert_true(watch.cpu >= 0 && watch.cpu < 0.2);
    arena_free(arena);
    fixture_free(&f);
}

TEST(timed_seconds_shorten_a_measurement)
{
    Fixture     f = fixture_new(1, 8, 4, 1);
    MeasurePlan plan = QUICK;
    Record      r;

    plan.most = 1000000;
    plan.min_seconds = 0.02; /* thousands of runs */
    fixture_choose(&f, "full", "");
    for (int i = 0; i < 4; i++) {
        /* More than planned, and what is no number, change nothing. */
        const char *text = ((const char *[]){ "0", "9", "short", "-1" })[i];

        setenv("ATTNSCOPE_TIMED_SECONDS", text, 1);
        r = measured(&f.spec, plan);
        if (i == 0)
            assert_int_equal(r.time.count, plan.repeats);
        else
            assert_true(r.time.count > plan.repeats);
        record_free(&r);
    }
    unsetenv("ATTNSCOPE_TIMED_SECONDS");
    fixture_free(&f);
}

TEST(once_is_one_run)
{
    Fixture f = fixture_new(1, 64, 8, 1);
    Record  r;

    fixture_choose(&f, "full", "");
    r = measured(&f.spec, MEASURE_ONCE);
    assert_int_equal(r.time.count, 1);
    CHECK_WITHIN(r.time.samples[0], r.time.first.value, 0);
    CHECK_WITHIN(r.time.median.value, r.time.first.value, 0);
    record_free(&r);
    fixture_free(&f);
}

/* Pages that the system cleared in each run, from its first stage to its end. */
typedef struct Pages {
    long before, cleared[16];
    int  runs;
    bool inside;
} Pages;

static void count_pages(void *context, const Run *run, const Stage *stage)
{
    Pages        *p = context;
    struct rusage usage = { 0 };

    (void)run;
    getrusage(RUSAGE_SELF, &usage);
    if (stage && !p->inside)
        p->before = usage.ru_minflt;
    p->inside = stage != NULL;
    if (!stage && p->runs < 16)
        p->cleared[p->runs++] = usage.ru_minflt - p->before;
}

/* Whichever runs are samples: the last, and all but the first two where there is a warm-up. */
TEST(timed_runs_find_their_pages_touched)
{
    const MeasurePlan plans[] = { { .max_seconds = 60 }, QUICK };

    for (int i = 0; i < 2; i++) {
        Fixture f = fixture_new(2, 2048, 64, 1);
        Pages   pages = { 0 };
        Record  r;

        fixture_choose(&f, "retnet", "");
        f.spec.causal = true;
        f.spec.observer = count_pages;
        f.spec.observer_context = &pages;
        r = measured(&f.spec, plans[i]);
        assert_int_equal(r.status, RECORD_OK);
        assert_int_equal(r.time.count, i ? 5 : 1);
        assert_true(pages.runs >= r.time.count + 1 + i);
        for (int x = 1 + i; x < pages.runs; x++)
            assert_true(10 * pages.cleared[x] < pages.cleared[0]);
        record_free(&r);
        fixture_free(&f);
    }
}

TEST(a_budget_that_is_gone_leaves_the_first_call)
{
    Fixture     f = fixture_new(1, 64, 8, 1);
    MeasurePlan plan = { .repeats = 50, .most = 50, .max_seconds = 0 };
    Record      r;

    fixture_choose(&f, "full", "");
    r = measured(&f.spec, plan);
    assert_int_equal(r.status, RECORD_OK);
    assert_int_equal(r.time.count, 1);
    record_free(&r);
    fixture_free(&f);
}

TEST(parameters_are_typed_json)
{
    Fixture f = fixture_new(1, 32, 8, 1);
    Record  r;
    json_t *root;

    fixture_choose(&f, "bigbird", "window=5");
    r = measured(&f.spec, MEASURE_ONCE);
    root = record_parsed(&r);
    assert_int_equal(json_integer_value(json_at(root, "params.window")), 5);
    assert_string_equal(json_string_value(json_at(root, "params.variant")), "itc");
    assert_true(json_is_number(json_at(root, "params.scale")));
    assert_true(json_is_null(json_at(root, "params.random_blocks")));
    json_decref(root);
    record_free(&r);
    fixture_choose(&f, "full", "pos_slopes=1");
    f.spec.position = position_find("alibi");
    r = measured(&f.spec, MEASURE_ONCE);
    assert_int_equal(r.status, RECORD_FAILED);
    root = record_parsed(&r);
    assert_string_equal(json_string_value(json_at(root, "params.pos_slopes")), "1");
    json_decref(root);
    record_free(&r);
    fixture_choose(&f, "full", "");
    r = measured(&f.spec, MEASURE_ONCE);
    root = record_parsed(&r);
    assert_true(json_is_null(json_at(root, "params.q_offset")));
    assert_string_equal(json_string_value(json_at(root, "params.pos_future")), "mirror");
    assert_string_equal(json_string_value(json_at(root, "position")), "alibi");
    json_decref(root);
    record_free(&r);
    fixture_free(&f);
}

/* One page, when glibc's rounding of blocks crosses its border. */
#define HEAP_NOISE 4096

TEST(memory_does_not_depend_on_the_order)
{
    Fixture f = fixture_new(4, 400, 32, 2);
    Record  a[2], b[2];

    for (int order = 0; order < 2; order++)
        for (int turn = 0; turn < 2; turn++) {
            bool first = turn == order;

            fixture_choose(&f, first ? "full" : "pattern", first ? "" : "expr=window(9)");
            *(first ? &a[order] : &b[order]) = measured(&f.spec, QUICK);
        }
    CHECK_WITHIN(a[0].arena_peak.value, a[1].arena_peak.value, 0);
    CHECK_WITHIN(b[0].arena_peak.value, b[1].arena_peak.value, 0);
    assert_int_equal(a[0].heap_peak.valid, heap_hooks_active(NULL));
    if (a[0].heap_peak.valid) {
        assert_true(a[0].heap_peak.value > 0);
        CHECK_WITHIN(a[0].heap_peak.value, a[1].heap_peak.value, HEAP_NOISE);
        CHECK_WITHIN(b[0].heap_peak.value, b[1].heap_peak.value, HEAP_NOISE);
        for (int i = 0; i < a[0].stage_count; i++)
            CHECK_WITHIN(a[0].stages[i].heap_peak.value, a[1].stages[i].heap_peak.value,
                         HEAP_NOISE);
    } else {
        assert_true(strlen(a[0].heap_note) > 0);
    }
    for (int order = 0; order < 2; order++) {
        record_free(&a[order]);
        record_free(&b[order]);
    }
    fixture_free(&f);
}

TEST(a_failing_run_is_a_record)
{
    Fixture f = fixture_new(2, 64, 16, 1);
    atomic_bool cancel;
    Record  r;
    json_t *root;

    fixture_choose(&f, "full", "");
    f.spec.memory_limit = 4096;
    r = measured(&f.spec, QUICK);
    assert_int_equal(r.status, RECORD_OOM);
    assert_int_equal(r.code, ERR_NOMEM);
    assert_true(strlen(r.message) > 0);
    assert_false(r.time.median.valid);
    assert_int_equal(r.n, 64);
    root = record_parsed(&r);
    assert_true(json_is_null(json_at(root, "flops.counted")));
    assert_true(json_is_null(json_at(root, "memory.arena_peak")));
    json_decref(root);
    record_free(&r);

    f.spec.memory_limit = 0;
    atomic_init(&cancel, true);
    f.spec.cancel = &cancel;
    r = measured(&f.spec, QUICK);
    assert_int_equal(r.status, RECORD_CANCELLED);
    record_free(&r);

    f.spec.cancel = NULL;
    fixture_choose(&f, "bigbird", "variant=etc");
    f.spec.causal = true;
    r = measured(&f.spec, QUICK);
    assert_int_equal(r.status, RECORD_UNSUPPORTED);
    root = record_parsed(&r);
    assert_string_equal(json_string_value(json_at(root, "params.variant")), "etc");
    assert_int_equal(json_integer_value(json_at(root, "params.block")), 1);
    json_decref(root);
    record_free(&r);

    fixture_choose(&f, "full", "nonsense=1");
    r = measured(&f.spec, QUICK);
    assert_int_equal(r.status, RECORD_FAILED);
    assert_non_null(strstr(r.message, "nonsense"));
    record_free(&r);
    fixture_free(&f);
}

/* Every allocation of the run's arena in turn. */
TEST(every_refused_allocation_is_a_record)
{
    Fixture f = fixture_new(1, 40, 8, 1);
    Record  r;
    int64_t k = 0;

    fixture_choose(&f, "bigbird", "");
    do {
        f.spec.fail_at = ++k;
        r = measured(&f.spec, MEASURE_ONCE);
        assert_true(r.status == RECORD_OK || r.status == RECORD_OOM);
        assert_true(k < 1000);
        f.spec.fail_at = 0;
        if (r.status == RECORD_OK)
            break;
        record_free(&r);
    } while (true);
    assert_true(k > 3);
    record_free(&r);
    fixture_free(&f);
}

typedef struct Cut {
    atomic_bool cancel;
    int         ends, stages;
} Cut;

static void cut_after_three(void *context, const Run *run, const Stage *stage)
{
    Cut *cut = context;

    (void)run;
    cut->stages += stage != NULL;
    cut->ends += stage == NULL;
    if (cut->ends == 3)
        atomic_store(&cut->cancel, true);
}

TEST(the_callers_observer_hears_and_may_cancel)
{
    Fixture f = fixture_new(1, 64, 8, 1);
    Cut     cut = { 0 };
    Record  r;

    fixture_choose(&f, "full", "");
    f.spec.cancel = &cut.cancel;
    f.spec.observer = cut_after_three;
    f.spec.observer_context = &cut;
    r = measured(&f.spec, QUICK);
    assert_int_equal(r.status, RECORD_CANCELLED);
    assert_true(cut.stages >= 3 && cut.ends >= 3 && cut.ends <= 4);
    record_free(&r);
    fixture_free(&f);
}

TEST(a_live_run_keeps_its_parameters)
{
    Fixture f = fixture_new(1, 32, 8, 1);
    Record  r, of_run;
    Error   err = ERROR_INIT;
    Run    *run;

    fixture_choose(&f, "pattern", "expr=window(3)+global(1)");
    f.spec.views = true;
    run = run_new(&f.spec);
    run_execute(run);
    assert_non_null(run);
    assert_int_equal(run->err.code, ERR_NONE);
    r = measured(&f.spec, QUICK);
    assert_true(record_of_run(run, &of_run, &err));
    assert_string_equal(of_run.params, r.params);
    CHECK_WITHIN(flops_total(of_run.counted), flops_total(r.counted), 0);
    assert_false(of_run.time.median.valid || of_run.time.first.valid || of_run.heap_peak.valid);
    assert_int_equal(of_run.quality.worst_query, -1);
    record_free(&of_run);
    record_free(&r);
    run_free(run);
    fixture_free(&f);
}

/* Fresh pages are touched outside of the clocks, once: a second run finds them touched. */
TEST(fresh_pages_are_touched_apart)
{
    Fixture f = fixture_new(2, 8192, 64, 2);
    Watch   w = { .stage = -1 };
    Arena  *arena = arena_new();

    fixture_choose(&f, "window", "window=9");
    f.spec.observer = watch_stage;
    f.spec.observer_context = &w;
    run_free(watch_run(&w, &f.spec, arena));
    assert_true(w.touching > 0 && w.touching_cpu > 0);
    assert_true(w.wall > 0 && w.stage_ms[0] <= 1e3 * w.wall);
    run_free(watch_run(&w, &f.spec, arena));
    assert_true(w.touching == 0 && w.touching_cpu == 0);
    arena_free(arena);
    fixture_free(&f);
}

SUITE(NULL, NULL)
