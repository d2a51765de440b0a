/* test_profile_memory.c -- the memory of a run over its time. */
#include <time.h>

#include "profile/memory.h"
#include "profile_fixture.h"

#define MIB (1 << 20)

static void *(*volatile take)(size_t) = malloc;
static void (*volatile give)(void *) = free;

static void pause_ms(int ms)
{
    struct timespec t = { .tv_nsec = ms * 1000000L };

    nanosleep(&t, NULL);
}

static int64_t most(const int64_t *values, int count)
{
    int64_t most = 0;

    for (int i = 0; i < count; i++)
        most = values[i] > most ? values[i] : most;
    return most;
}

/* The lowest level in steps of a stage. */
static int64_t least_in_stage(const MemoryTimeline *line, int stage)
{
    int64_t least = INT64_MAX;

    for (int i = 0; i < line->count; i++)
        if (line->stage[i] == stage && line->arena[i] < least)
            least = line->arena[i];
    return least;
}

/* The axis starts at microseconds; a pause folds it many times over. */
TEST(peaks_outlive_the_folding_of_the_axis)
{
    MemoryTrace trace;
    Arena      *arena = arena_new();
    ArenaMark   mark;
    void       *block;

    memory_trace_start(&trace, arena, NULL);
    mark = arena_mark(arena);
    memory_trace_stage(&trace, 0);
    assert_non_null(arena_alloc(arena, 3 * MIB, 1));
    block = take(2 * MIB);
    give(block);
    arena_release(arena, mark);
    memory_trace_stage(&trace, 1);
    pause_ms(20);
    assert_non_null(arena_alloc(arena, MIB, 1));
    memory_trace_stop(&trace, 0);
    assert_true(trace.line.count > MEMORY_STEPS / 4 && trace.line.count <= MEMORY_STEPS);
    assert_true(trace.line.step * trace.line.count >= 0.02);
    assert_int_equal(most(trace.line.arena, trace.line.count), 3 * MIB);
    assert_int_equal(least_in_stage(&trace.line, 1), 0); /* wherever the pause lies */
    assert_int_equal(trace.line.arena[trace.line.count - 1], MIB);
    assert_int_equal(trace.line.stage[trace.line.count - 1], 1);
    if (heap_hooks_active(NULL))
        assert_true(most(trace.line.heap, trace.line.count) >= 2 * MIB);
    arena_free(arena);
}

TEST(the_largest_are_named_by_stage)
{
    MemoryTrace trace;
    Arena      *arena = arena_new();

    memory_trace_start(&trace, arena, NULL);
    for (int i = 0; i < 20; i++) {
        memory_trace_stage(&trace, i);
        assert_non_null(arena_alloc(arena, (i * 7 % 20 + 1) * 4096, 1));
    }
    memory_trace_stop(&trace, 0);
    assert_int_equal(trace.arena_calls, 20);
    assert_int_equal(trace.line.largest_count, MEMORY_LARGEST);
    for (int i = 0; i < MEMORY_LARGEST; i++) {
        const LargeAllocation *a = &trace.line.largest[i];

        assert_false(a->heap);
        assert_int_equal(a->bytes, (20 - i) * 4096);
        assert_int_equal((a->stage * 7 % 20 + 1) * 4096, a->bytes);
    }
    arena_free(arena);
}

TEST(after_the_stop_nobody_listens)
{
    MemoryTrace trace;
    Arena      *arena = arena_new();
    int         count;

    memory_trace_start(&trace, arena, NULL);
    memory_trace_stop(&trace, 0);
    count = trace.line.largest_count;
    assert_non_null(arena_alloc(arena, MIB, 1));
    give(take(MIB));
    assert_int_equal(trace.line.largest_count, count);
    arena_free(arena);
}

/* A record's timeline reaches the record's own peak. */
TEST(a_record_keeps_the_timeline_of_its_peaks)
{
    Fixture     f = fixture_new(2, 256, 32, 2);
    MeasurePlan plan = MEASURE_DEFAULT;
    Record      r;
    Error       err = ERROR_INIT;

    plan.max_seconds = 2;
    plan.repeats = 6;
    plan.min_seconds = 0;
    plan.width = INFINITY;
    fixture_choose(&f, "linformer", "k=32");
    assert_true(measure(&f.spec, &plan, &r, &err));
    assert_non_null(r.timeline);
    assert_int_equal(most(r.timeline->arena, r.timeline->count), r.arena_peak.value);
    assert_true(r.arena_allocations.value > 0);
    assert_int_equal(r.allocations.valid, heap_hooks_active(NULL));
    record_free(&r);
    fixture_free(&f);
}

/* Pages that were written are held. */
TEST(resident_memory_counts_what_was_written)
{
    enum { SIZE = 64 * MIB };
    int64_t before = rss_anonymous(), more;
    char   *block = take(SIZE);

    assert_non_null(block);
    memset(block, 1, SIZE);
    more = rss_anonymous() - before;
    give(block);
    assert_true(before > 0);
    /* a sanitizer's shadow is an eighth */
    CHECK(more > SIZE - 4 * MIB && more < SIZE + 32 * MIB, "%lld bytes more", (long long)more);
}

SUITE(NULL, NULL)
