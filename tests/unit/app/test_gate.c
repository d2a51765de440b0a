/* test_gate.c -- verdicts of diff: pairs of processes, false alarms and missed slowdowns by
 * simulation, Holm's correction, what is left out and what is not judged.
 */
#include "app/study/match.h"
#include "check.h"
#include "core/rng.h"

#define PAIRS 30

/* ---- ratios of pairs ------------------------------------------------------------ */

static Ratio ratio_of(const double *a, const double *b, int pairs, double over)
{
    Ratio r;
    Error err = ERROR_INIT;

    CHECK(ratio_of_pairs(a, b, pairs, over, &r, &err), "%s", err.text);
    return r;
}

TEST(ratios_of_pairs_have_intervals)
{
    static const double a[] = { 10, 20, 40, 10, 30 }, b[] = { 12, 24.3, 47.8, 12.1, 35.7 };
    Ratio               r = ratio_of(a, b, 5, 0.02), same = ratio_of(a, a, 5, 0);

    /* By hand: mean of log b/a .1854, its standard error .00462, t of 4 degrees 2.776. */
    CHECK_NEAR(r.value.value, 1.2023, 1e-3);
    assert_true(r.lo.value > 1.18 && r.hi.value < 1.22);
    assert_true(r.p.value < 1e-4);
    assert_true(same.value.value >= 1 && same.value.value <= 1 && same.p.value >= 1);
    assert_false(ratio_of(a, b, 4, 0).lo.valid);
    assert_false(ratio_of(a, b, 4, 0).p.valid);
    assert_true(ratio_of(a, b, 1, 0).value.valid);
    assert_false(ratio_of(a, b, 0, 0).value.valid);
}

TEST(bursts_move_no_verdict)
{
    double a[PAIRS], b[PAIRS];
    Ratio  r;

    for (int i = 0; i < PAIRS; i++) {
        a[i] = 1 + 0.001 * i;
        b[i] = 1.05 * a[i] * (1 + 0.002 * (i % 3));
    }
    b[4] *= 10;
    a[7] *= 3;
    r = ratio_of(a, b, PAIRS, 0.02);
    CHECK_NEAR(r.value.value, 1.052, 0.002);
    assert_true(r.p.value < MATCH_LEVEL);
}

TEST(holm_steps_down)
{
    double p[] = { 0.01, 0.04, (double)NAN, 0.03, 0.005 };
    Error  err = ERROR_INIT;

    assert_true(stats_holm(p, 5, &err)); /* of four: 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1 */
    CHECK_NEAR(p[4], 0.02, 1e-12);
    CHECK_NEAR(p[0], 0.03, 1e-12);
    CHECK_NEAR(p[3], 0.06, 1e-12);
    CHECK_NEAR(p[1], 0.06, 1e-12);
    assert_true(isnan(p[2]));
}

/* ---- simulated machines --------------------------------------------------------- */

typedef struct Machine {
    double spread;  /* of the logarithm of a process's median */
    double bursts;  /* share of processes that a neighbour hits */
    double drift;   /* of the machine, over one comparison */
} Machine;

static double process_ms(const Machine *m, double at, Rng *rng)
{
    double burst = rng_uniform(rng) < m->bursts ? fabs(0.3 * rng_normal(rng)) : 0;

    return exp(m->spread * rng_normal(rng) + m->drift * at + burst);
}

/* Pairs as a sweep makes them, A B then B A. */
static bool finds(const Machine *m, double slower, double over, Rng *rng)
{
    double a[PAIRS], b[PAIRS];
    Ratio  r;

    for (int i = 0; i < PAIRS; i++) {
        double first = process_ms(m, 2.0 * i / (2 * PAIRS), rng);
        double second = process_ms(m, (2.0 * i + 1) / (2 * PAIRS), rng);

        a[i] = i % 2 ? second : first;
        b[i] = slower * (i % 2 ? first : second);
    }
    r = ratio_of(a, b, PAIRS, over);
    return r.p.value <= MATCH_LEVEL;
}

static int count_found(const Machine *m, double slower, double over, int comparisons)
{
    Rng rng = rng_named(1, "machines");
    int found = 0;

    for (int i = 0; i < comparisons; i++)
        found += finds(m, slower, over, &rng);
    return found;
}

TEST(a_program_against_itself_rarely_alarms)
{
    static const Machine machines[] = {
        { .spread = 0.005 },
        { .spread = 0.03 },
        { .spread = 0.1 },
        { .spread = 0.01, .bursts = 0.1 },
        { .spread = 0.03, .bursts = 0.3 },
        { .spread = 0.01, .drift = 0.2 },
    };

    for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++) {
        int usual = count_found(&machines[i], 1, MATCH_OVER, 4000);
        int least = count_found(&machines[i], 1, 0, 4000);

        CHECK(usual <= 40, "machine %zu: %d of 4000 at the default", i, usual);
        CHECK(least <= 60, "machine %zu: %d of 4000 over 0 %%", i, least); /* 40, and luck */
    }
}

TEST(five_percent_slower_is_found)
{
    static const Machine machines[] = {
        { .spread = 0.005 },
        { .spread = 0.012 },
        { .spread = 0.02 },
        { .spread = 0.01, .bursts = 0.13 },
        { .spread = 0.005, .drift = 0.2 },
    };

    for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++) {
        int found = count_found(&machines[i], 1.05, MATCH_OVER, 1000);

        CHECK(found >= 900, "machine %zu: %d of 1000", i, found);
    }
}

/* ---- records ---------------------------------------------------------------------- */

typedef struct Made {
    const char *mechanism;
    int         seed, process;
    bool        against;
    double      ms, flops, bytes, memory;
    int         outliers; /* of ten samples */
} Made;

static void add_record(Results *rows, const Made *made)
{
    char  line[1000];
    Error err = ERROR_INIT;
    int   length = snprintf(
        line, sizeof(line),
        "{\"key\":\"%s%d.%d%c1234@1\",\"process\":{\"number\":%d,\"against\":%s},"
          "\"mechanism\":\"%s\",\"params\":{},\"n\":64,\"seed\":%d,\"status\":\"OK\","
          "\"flops\":{\"counted\":%g},\"bytes\":%g,\"memory\":{\"arena_peak\":%g},"
          "\"time_ms\":{\"median\":%g,\"q1\":%g,\"q3\":%g,\"outliers\":%d,\"drift\":0,"
          "\"involuntary_switches\":0,\"samples\":[1,1,1,1,1,1,1,1,1,1]}}",
        made->mechanism, made->seed, made->process, made->against ? '-' : '+', made->process,
        made->against ? "\"/before\"" : "null", made->mechanism, made->seed, made->flops,
        made->bytes, made->memory, made->ms, 0.99 * made->ms, 1.01 * made->ms, made->outliers);

    assert_true(length < (int)sizeof(line));
    CHECK(results_add(rows, line, (size_t)length, 0, &err), "%s", err.text);
    assert_int_equal(rows->damaged, 0);
}

typedef struct Files {
    Results a, b;
    Matches all;
} Files;

static void compare_files(Files *f, MatchPlan plan)
{
    Error err = ERROR_INIT;

    results_sort(&f->a);
    results_sort(&f->b);
    CHECK(matches_find(&f->a, &f->b, &plan, &f->all, &err), "%s", err.text);
}

static void free_files(Files *f)
{
    matches_free(&f->all);
    results_free(&f->a);
    results_free(&f->b);
}

/* Adds pairs of a mechanism, `slower` in B; of them `busy` are spoiled in A. */
static void add_pairs(Files *f, const char *mechanism, int seeds, int processes, double slower,
                      int busy)
{
    for (int i = 0; i < seeds * processes; i++) {
        Made made = { .mechanism = mechanism, .seed = i % seeds, .process = 1 + i / seeds,
                      .flops = 100, .bytes = 50, .memory = 10 };

        made.against = true;
        made.ms = 1 + 0.002 * (i % 3);
        made.outliers = i < busy ? 3 : 0;
        add_record(&f->a, &made);
        made.against = false;
        made.ms = slower * (1 + 0.002 * (i % 4));
        made.outliers = 0;
        add_record(&f->b, &made);
    }
}

#define USUAL ((MatchPlan){ .over = MATCH_OVER })

TEST(seeds_and_processes_are_one_comparison)
{
    Files f = { .a.rows = NULL };

    add_pairs(&f, "full", 3, 4, 1.05, 0);
    add_pairs(&f, "window", 1, 5, 1, 0);
    compare_files(&f, USUAL);
    assert_int_equal(f.all.count, 2);
    assert_int_equal(f.all.items[0].pairs, 12);
    assert_int_equal(f.all.items[0].seeds, 3);
    assert_null(f.all.items[0].unjudged);
    assert_true(f.all.items[0].dearer[MATCH_TIME]);
    assert_false(match_is_dearer(&f.all.items[1]));
    assert_true(f.all.items[0].p.value >= 2 * f.all.items[0].ratio[MATCH_TIME].p.value);
    free_files(&f);
}

TEST(a_busy_machine_gets_no_verdict)
{
    Files f = { .a.rows = NULL };

    add_pairs(&f, "full", 1, 10, 1.05, 5);
    add_pairs(&f, "window", 1, 10, 1.05, 6);
    compare_files(&f, USUAL);
    assert_int_equal(f.all.items[0].busy, 5);
    assert_true(f.all.items[0].dearer[MATCH_TIME]);
    assert_false(match_is_dearer(&f.all.items[1]));
    assert_non_null(f.all.items[1].unjudged);
    assert_string_equal(f.all.items[1].unjudged, "the machine was busy");
    free_files(&f);
}

/* Whether one record is spoiled; the rest of it is quiet. */
static bool spoiled(double q1, double q3, double drift, int outliers, int switches)
{
    char    line[800];
    Results rows = { 0 };
    Error   err = ERROR_INIT;
    bool    bad;
    int     length = snprintf(
        line, sizeof(line),
        "{\"key\":\"full+1234@1\",\"mechanism\":\"full\",\"params\":{},\"n\":64,\"seed\":1,"
            "\"status\":\"OK\",\"flops\":{\"counted\":1},\"bytes\":1,\"memory\":{\"arena_peak\":1},"
            "\"time_ms\":{\"median\":1,\"q1\":%g,\"q3\":%g,\"outliers\":%d,\"drift\":%g,"
            "\"involuntary_switches\":%d,\"samples\":[1,1,1,1,1,1,1,1,1,1]}}",
        q1, q3, outliers, drift, switches);

    assert_true(length < (int)sizeof(line));
    CHECK(results_add(&rows, line, (size_t)length, 0, &err), "%s", err.text);
    assert_int_equal(rows.count, 1);
    bad = row_is_spoiled(&rows.rows[0]);
    results_free(&rows);
    return bad;
}

/* Of ten samples: more than two outliers; a drift of more than a tenth and more than the spread;
 * a lost processor in every sample beside a spread of more than a twentieth. */
TEST(what_spoils_a_record_has_edges)
{
    assert_false(spoiled(0.99, 1.01, 0, 2, 0));
    assert_true(spoiled(0.99, 1.01, 0, 3, 0));
    assert_false(spoiled(0.99, 1.01, 0.1, 0, 0));
    assert_true(spoiled(0.99, 1.01, 0.11, 0, 0));
    assert_true(spoiled(0.99, 1.01, -0.11, 0, 0));
    assert_false(spoiled(0.9, 1.1, 0.15, 0, 0)); /* its spread is wider */
    assert_true(spoiled(0.9, 1.1, -0.25, 0, 0));
    assert_false(spoiled(0.9, 1.1, 0, 0, 9));
    assert_true(spoiled(0.9, 1.1, 0, 0, 10));
    assert_false(spoiled(0.99, 1.01, 0, 0, 10));
}

TEST(few_processes_get_no_verdict)
{
    Files f = { .a.rows = NULL };

    add_pairs(&f, "full", 1, 4, 2, 0);
    compare_files(&f, USUAL);
    assert_false(match_is_dearer(&f.all.items[0]));
    assert_string_equal(f.all.items[0].unjudged, "fewer than five processes");
    free_files(&f);
}

TEST(two_sweeps_one_after_the_other_get_no_verdict_on_time)
{
    Files f = { .a.rows = NULL };

    for (int i = 0; i < 10; i++) {
        Made made = { .mechanism = "full", .process = i + 1, .ms = 1, .flops = 100, .bytes = 50,
                      .memory = 10 };

        add_record(&f.a, &made);
        made.ms = 2;
        add_record(&f.b, &made);
    }
    compare_files(&f, USUAL);
    CHECK_NEAR(f.all.items[0].ratio[MATCH_TIME].value.value, 2, 1e-9);
    assert_false(match_is_dearer(&f.all.items[0]));
    assert_string_equal(f.all.items[0].unjudged, MATCH_NO_TURNS);
    free_files(&f);
}

TEST(what_is_counted_is_judged_as_it_is)
{
    static const Made a[] = {
        { .mechanism = "full", .process = 1, .ms = 1, .flops = 100, .bytes = 50 },
        { .mechanism = "full", .process = 1, .seed = 1, .ms = 1, .flops = 100, .bytes = 50 },
    };
    static const Made b[] = {
        { .mechanism = "full", .process = 1, .ms = 9, .flops = 99, .bytes = 50, .memory = 8 },
        { .mechanism = "full", .process = 1, .seed = 1, .ms = 9, .flops = 101, .bytes = 50 },
    };
    Files f = { .a.rows = NULL };

    for (int i = 0; i < 2; i++) {
        add_record(&f.a, &a[i]);
        add_record(&f.b, &b[i]);
    }
    compare_files(&f, (MatchPlan){ .counted = true });
    assert_int_equal(f.all.count, 1);
    assert_false(f.all.items[0].ratio[MATCH_TIME].value.valid);
    assert_false(f.all.items[0].dearer[MATCH_TIME]);
    assert_true(f.all.items[0].dearer[MATCH_FLOPS]); /* by the seed that grew */
    CHECK_NEAR(f.all.items[0].ratio[MATCH_FLOPS].value.value, 1.01, 1e-9);
    assert_false(f.all.items[0].dearer[MATCH_BYTES]);
    assert_true(f.all.items[0].dearer[MATCH_MEMORY]); /* from nothing to something */
    free_files(&f);
}

SUITE(NULL, NULL)
