/* test_sweep.c -- points, keys, shards, and going on after a kill at any byte.
 *
 * A point is a process of this very program: called with `run` it is the command line.
 */
#include <unistd.h>

#include "app/study/sweep.h"
#include "check.h"
#include "cli/cli.h"
#include "profile/machine.h"

/* ---- lists ------------------------------------------------------------------ */

static void check_list(const char *text, const char *expected)
{
    WordList list = { 0 };
    Text     all = { 0 };
    Error    err = ERROR_INIT;

    CHECK(words_expand("--n", text, &list, &err), "%s", err.text);
    for (int i = 0; i < list.count; i++)
        text_addf(&all, "%s%s", i ? " " : "", list.items[i]);
    assert_string_equal(text_str(&all), expected);
    text_free(&all);
    words_free(&list);
}

TEST(lists_and_ranges_mix)
{
    static const char *const bad[] = { "", "1,,2", "8:4", "0:8:x2", "1:4:x1", "1:4:+0", "1:2:z" };

    check_list("256:2048:x2", "256 512 1024 2048");
    check_list("7,1:5:+2,64", "7 1 3 5 64");
    check_list("full,bigbird(window=3,random=2)", "full bigbird(window=3,random=2)");
    check_list("pattern(\"a,b\"),full", "pattern(\"a,b\") full");
    check_list("[1,2],[3,4]", "[1,2] [3,4]");
    check_list("0.1:0.3:+0.1", "0.1 0.2 0.3");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        WordList list = { 0 };
        Error    err = ERROR_INIT;

        assert_false(words_expand("--n", bad[i], &list, &err));
        assert_int_equal(err.code, ERR_USAGE);
        words_free(&list);
    }
}

TEST(lengths_rise)
{
    WordList list = { 0 };
    Error    err = ERROR_INIT;

    assert_true(words_expand("--n", "512,64,1024,64", &list, &err));
    words_sort_numbers(&list);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.items[0], "64");
    assert_string_equal(list.items[2], "1024");
    words_free(&list);
}

/* ---- plans ------------------------------------------------------------------ */

typedef struct Planned {
    Session     *session;
    SweepSpec spec;
    SweepPlan plan;
} Planned;

static bool try_parse(Session *s, const char *line, SweepSpec *spec, Error *err)
{
    const char *words[CALL_MAX_WORDS];
    Text        storage = { 0 };
    Call        call;
    int         count;
    bool        ok = call_split(line, words, CALL_MAX_WORDS, &count, &storage, err) &&
              call_parse(&call, words, count, err) && sweep_spec_parse(s, &call, spec, err);

    text_free(&storage);
    return ok;
}

static Planned plan_of(const char *line)
{
    Error   err = ERROR_INIT;
    Planned p = { .session = session_new(&err) };

    CHECK(p.session && try_parse(p.session, line, &p.spec, &err), "%s", err.text);
    CHECK(sweep_plan(p.session, &p.spec, &p.plan, &err), "%s", err.text);
    return p;
}

static void planned_free(Planned *p)
{
    sweep_plan_free(&p->plan);
    sweep_spec_free(&p->spec);
    session_free(p->session);
}

static bool holds(const SweepPlan *plan, const char *key)
{
    for (int i = 0; i < plan->count; i++)
        if (!strcmp(plan->points[i].key, key))
            return true;
    return false;
}

#define SMALL "sweep -m full,window,bigbird -p window=3:7:+2 -n 32:128:x2 -d 8 --seeds 2"

TEST(points_are_all_combinations)
{
    Planned p = plan_of(SMALL " --position none,alibi --threads 1,2");

    /* full has no window: one point where the others have three. */
    assert_int_equal(p.plan.count, (1 + 3 + 3) * 3 * 2 * 2 * 2);
    for (int i = 1; i < p.plan.count; i++)
        assert_true(p.plan.points[i - 1].n <= p.plan.points[i].n);
    for (int i = 0; i < p.plan.count; i++) {
        const SweepPoint *point = &p.plan.points[i];

        assert_int_equal(point->shorter < 0, point->n == 32);
        if (point->shorter < 0)
            continue;
        assert_int_equal(p.plan.points[point->shorter].n, point->n / 2);
        assert_string_equal(p.plan.points[point->shorter].mechanism, point->mechanism);
    }
    planned_free(&p);
}

TEST(memory_is_what_the_machine_or_its_group_gives)
{
    Planned half = plan_of("sweep -m full -n 32 -d 8");
    Planned given = plan_of("sweep -m full -n 32 --mem 3M");

    assert_int_equal(half.spec.memory, machine_memory() / 2);
    assert_false(half.spec.memory_given);
    assert_int_equal(given.spec.memory, 3 << 20);
    assert_true(given.spec.memory_given);
    planned_free(&half);
    planned_free(&given);
}

TEST(shards_part_the_points)
{
    Planned whole = plan_of(SMALL);

    for (int n = 2; n <= 7; n++) {
        int sum = 0;

        for (int k = 1; k <= n; k++) {
            char    line[200];
            Planned part;

            snprintf(line, sizeof(line), SMALL " -o x.jsonl --shard %d/%d", k, n);
            part = plan_of(line);
            snprintf(line, sizeof(line), "x.%dof%d.jsonl", k, n);
            assert_string_equal(part.spec.path, line);
            for (int i = 0; i < part.plan.count; i++)
                assert_true(holds(&whole.plan, part.plan.points[i].key));
            sum += part.plan.count;
            assert_true(part.plan.count >= whole.plan.count / n);
            planned_free(&part);
        }
        assert_int_equal(sum, whole.plan.count); /* keys are unique, so nothing is twice */
    }
    planned_free(&whole);
}

TEST(a_point_is_planned_once)
{
    Planned twice = plan_of("sweep -m full,full -m bigbird -m 'bigbird(window=3)' -n 32,64,32");
    Planned all = plan_of("sweep -m all -m full -n 32"), every = plan_of("sweep -m all -n 32");

    assert_int_equal(twice.plan.count, 4); /* window=3 is bigbird's default */
    assert_int_equal(all.plan.count, every.plan.count);
    planned_free(&twice);
    planned_free(&all);
    planned_free(&every);
}

static void key_of(const char *line, char key[96])
{
    Planned p = plan_of(line);

    assert_int_equal(p.plan.count, 1);
    snprintf(key, 96, "%s", p.plan.points[0].key);
    planned_free(&p);
}

TEST(keys_tell_points_apart)
{
    static const char *const other[] = {
        "sweep -m bigbird -n 64",
        "sweep -m full -n 32",
        "sweep -m bigbird -n 32 -p window=5",
        "sweep -m bigbird -n 32 --causal",
        "sweep -m bigbird -n 32 --no-causal",
        "sweep -m bigbird -n 32 --seed 1",
        "sweep -m bigbird -n 32 --threads 1",
        "sweep -m bigbird -n 32 --position alibi",
        "sweep -m bigbird -n 32 -d 8",
        "sweep -m bigbird -n 32 --heads 2",
        "sweep -m bigbird -n 32 --repeat 9",
        "sweep -m bigbird -n 32 --within 1%",
        "sweep -m bigbird -n 32 --quality",
        "sweep -m bigbird -n 32 --fit-tensors",
        "sweep -m bigbird -n 32 --input synthetic:blocks",
    };
    char key[96], again[96], seen[20][96];
    int  count = sizeof(other) / sizeof(*other);

    key_of("sweep -m bigbird -n 32", key);
    key_of("sweep -m 'bigbird(window=3)' -n 32", again);
    assert_string_equal(key, again);
    key_of("sweep -m bigbird -n 32,32 --mem 1G --budget 10s", again); /* limits are no cost */
    assert_string_equal(key, again);
    assert_string_equal(key + key_point_length(key) + 1, ATTNSCOPE_VERSION);
    for (int i = 0; i < count; i++) {
        key_of(other[i], seen[i]);
        assert_string_not_equal(seen[i], key);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(seen[i], seen[j]);
    }
}

/* How often a point is repeated is no part of what it is; all else is. */
TEST(identities_leave_out_repeats)
{
    Planned a = plan_of("sweep -m bigbird -n 32"), b = plan_of("sweep -m bigbird -n 32 --repeat 9"),
            c = plan_of("sweep -m bigbird -n 32 --seed 1"),
            d = plan_of("sweep -m bigbird -n 32 --input synthetic:blocks");

    assert_int_equal(strlen(a.plan.points[0].identity), 16);
    assert_string_equal(a.plan.points[0].identity, b.plan.points[0].identity);
    assert_string_not_equal(a.plan.points[0].identity, c.plan.points[0].identity);
    assert_string_not_equal(a.plan.points[0].identity, d.plan.points[0].identity);
    planned_free(&a);
    planned_free(&b);
    planned_free(&c);
    planned_free(&d);
}

/* JSON has no such numbers; the point's record says what was given. */
TEST(values_that_are_no_numbers_stay_text)
{
    Planned p = plan_of("sweep -m pattern -n 32 -p expr=nan,inf,0.5");

    assert_int_equal(p.plan.count, 3);
    assert_string_equal(p.plan.points[0].params, "{\"expr\":\"nan\"}");
    assert_string_equal(p.plan.points[1].params, "{\"expr\":\"inf\"}");
    assert_string_equal(p.plan.points[2].params, "{\"expr\":0.5}");
    planned_free(&p);
}

TEST(parentheses_have_the_last_word)
{
    Planned p = plan_of("sweep -m 'bigbird(window=9)' -m 'full(position=rope,seed=5,causal=true)' "
                        "-n 32 -p window=3,5 --position alibi");

    assert_int_equal(p.plan.count, 2);
    assert_string_equal(p.plan.points[0].mechanism, "bigbird(window=9)");
    assert_string_equal(p.plan.points[0].position, "alibi");
    assert_string_equal(p.plan.points[1].position, "rope");
    assert_int_equal(p.plan.points[1].causal, 1);
    assert_int_equal(p.plan.points[1].seed, 5);
    planned_free(&p);
}

/* A generator's own text does not overrule what the sweep asks for. */
TEST(lengths_are_those_asked_for)
{
    static const char *const inputs[][2] = {
        { "synthetic:blocks(n=64, d=8, heads=1)", "synthetic:blocks(d=8, heads=1)" },
        { "synthetic:blocks(d=8,n=64)", "synthetic:blocks(d=8)" },
        { "synthetic:blocks(n=64)", "synthetic:blocks()" },
        { "synthetic:blocks", "synthetic:blocks" },
    };

    for (size_t i = 0; i < sizeof(inputs) / sizeof(*inputs); i++) {
        char    line[200];
        Planned p;

        snprintf(line, sizeof(line), "sweep -m full -n 32 --input '%s'", inputs[i][0]);
        p = plan_of(line);
        assert_string_equal(p.spec.input, inputs[i][1]);
        planned_free(&p);
        snprintf(line, sizeof(line), "sweep -m full --input '%s'", inputs[i][0]);
        p = plan_of(line);
        assert_string_equal(p.spec.input, inputs[i][0]);
        planned_free(&p);
    }
}

TEST(what_does_not_bind_is_a_refused_point)
{
    Planned p = plan_of("sweep -m dilated,nsa -n 32 -p window=0");

    assert_int_equal(p.plan.count, 2);
    assert_string_equal(p.plan.points[0].refused, "");
    assert_non_null(strstr(p.plan.points[1].refused, "window"));
    planned_free(&p);
}

/* Every system that something here runs has its points. */
TEST(table1_is_the_surveys_table)
{
    Planned p = plan_of("sweep -m table1 -n 32");

    assert_true(p.spec.table);
    for (size_t i = 0; system_at(i); i++) {
        const char *at = system_at(i)->runs;
        char        word[96];

        while (system_next_word(&at, word, sizeof(word))) {
            bool found = false;

            for (int k = 0; k < p.plan.count; k++)
                found |= !strcmp(p.plan.points[k].asked, word);
            CHECK(found, "%s of %s", word, system_at(i)->name);
        }
    }
    planned_free(&p);
}

TEST(slips_are_told)
{
    static const char *const bad[] = {
        "sweep -n 32",
        "sweep -m fulll -n 32",
        "sweep -m class:XX -n 32",
        "sweep -m full -n 0",
        "sweep -m full -n x",
        "sweep -m full -n 32 --threads 0",
        "sweep -m full -n 32 --shard 1/2",
        "sweep -m full -n 32 -o a.jsonl --shard 3/2",
        "sweep -m full -n 32 -o a.jsonl --shard 1",
        "sweep -m full -n 32 -o a.txt",
        "sweep -m full -n 32 --budget 3x",
        "sweep -m full -n 32 --budget 0",
        "sweep -m full -n 32 --position roope",
        "sweep -m full -n 32 --input no-such-file.npz",
        "sweep -m full -n 32 --within 2",
        "sweep -m full -n 32 --input synthetic:normall",
    };
    Error    err = ERROR_INIT;
    Session *s = session_new(&err);

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        SweepSpec spec = { 0 };

        err = ERROR_INIT;
        CHECK(!try_parse(s, bad[i], &spec, &err), "%s", bad[i]);
        assert_string_not_equal(err.text, "");
        sweep_spec_free(&spec);
    }
    session_free(s);
}

/* ---- Slurm ------------------------------------------------------------------ */

static void task(const char *id, const char *min, const char *max, const char *count)
{
    setenv("SLURM_ARRAY_TASK_ID", id, 1);
    setenv("SLURM_ARRAY_TASK_MIN", min, 1);
    setenv("SLURM_ARRAY_TASK_MAX", max, 1);
    setenv("SLURM_ARRAY_TASK_COUNT", count, 1);
}

static void no_task(void)
{
    unsetenv("SLURM_ARRAY_TASK_ID");
    unsetenv("SLURM_ARRAY_TASK_MIN");
    unsetenv("SLURM_ARRAY_TASK_MAX");
    unsetenv("SLURM_ARRAY_TASK_COUNT");
}

TEST(array_tasks_are_shards)
{
    static const struct {
        const char *id, *min, *max, *count;
        int         shard, shards; /* 0: refused */
    } tasks[] = {
        { "1", "1", "8", "8", 1, 8 },    { "8", "1", "8", "8", 8, 8 }, { "0", "0", "3", "4", 1, 4 },
        { "12", "10", "20", "6", 2, 6 }, { "5", "5", "5", "1", 1, 1 }, { "4", "1", "5", "3", 0, 0 },
        { "9", "1", "8", "8", 0, 0 },
    };
    Error    err = ERROR_INIT;
    Session *s = session_new(&err);

    for (size_t i = 0; i < sizeof(tasks) / sizeof(*tasks); i++) {
        SweepSpec spec = { 0 };
        bool         ok;

        task(tasks[i].id, tasks[i].min, tasks[i].max, tasks[i].count);
        ok = try_parse(s, "sweep -m full -n 32 -o a.jsonl", &spec, &err);
        assert_int_equal(ok, tasks[i].shard > 0);
        assert_true(!ok || (spec.shard == tasks[i].shard && spec.shards == tasks[i].shards));
        sweep_spec_free(&spec);
    }
    task("2", "1", "8", "8");
    {
        SweepSpec spec = { 0 };

        assert_true(try_parse(s, "sweep -m full -n 32 -o a.jsonl --shard 3/4", &spec, &err));
        assert_int_equal(spec.shard, 3); /* what is said stands above the environment */
        sweep_spec_free(&spec);
    }
    no_task();
    session_free(s);
}

/* ---- going on --------------------------------------------------------------- */

static char folder[] = "/tmp/attnscope-sweep-XXXXXX";

static SweepOutcome sweep_file(const char *line, Results *rows, Error *err)
{
    SweepOutcome outcome = { 0 };
    SweepSpec    spec = { 0 };
    Session        *s = session_new(err);

    *rows = (Results){ 0 };
    CHECK(try_parse(s, line, &spec, err), "%s", err->text);
    sweep_run(s, &spec, NULL, rows, &outcome, err);
    sweep_spec_free(&spec);
    session_free(s);
    return outcome;
}

static char *read_all(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);

    assert_non_null(file);
    *length = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    return text;
}

static void write_all(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    fclose(file);
}

static int whole_lines(const char *text, size_t length)
{
    int count = 0;

    for (size_t i = 0; i < length; i++)
        count += text[i] == '\n';
    return count;
}

/* A kill leaves a beginning of the file.  Whatever its length, going on keeps the whole
 * lines as they are and adds the rest, each point once. */
TEST(it_goes_on_from_any_byte)
{
    char            path[64], line[200];
    size_t          length, after;
    char           *whole, *again;
    Results         rows;
    Error           err = ERROR_INIT;
    SweepOutcome o;

    snprintf(path, sizeof(path), "%s/k.jsonl", folder);
    snprintf(line, sizeof(line), "sweep -m full,bigbird -n 16,32 -d 8 --threads 1 --resume -o %s",
             path);
    o = sweep_file(line, &rows, &err);
    CHECK(o.ok == 4 && o.before == 0 && o.now == 4, "%s", err.text);
    results_free(&rows);
    whole = read_all(path, &length);
    for (size_t cut = 0; cut < length; cut += 1 + length / 23) {
        int kept = whole_lines(whole, cut);

        write_all(path, whole, cut);
        o = sweep_file(line, &rows, &err);
        CHECK(o.ok == 4 && o.before == kept && o.now == 4 - kept, "cut at %zu: %s", cut, err.text);
        assert_int_equal(o.torn, cut > 0 && whole[cut - 1] != '\n');
        results_free(&rows);
        again = read_all(path, &after);
        assert_int_equal(whole_lines(again, after), 4);
        for (size_t i = cut; i > 0 && kept > 0; i--)
            if (whole[i - 1] == '\n') {
                assert_memory_equal(again, whole, i);
                break;
            }
        free(again);
    }
    free(whole);
}

TEST(other_files_are_left_alone)
{
    static const char foreign[] = "my notes, without a newline";
    char              path[64], line[200];
    size_t            length;
    char             *text;
    Results           rows;
    Error             err = ERROR_INIT;

    snprintf(path, sizeof(path), "%s/n.jsonl", folder);
    snprintf(line, sizeof(line), "sweep -m full -n 16 -d 8 --resume -o %s", path);
    write_all(path, foreign, sizeof(foreign) - 1);
    sweep_file(line, &rows, &err);
    assert_int_equal(err.code, ERR_FORMAT);
    results_free(&rows);
    text = read_all(path, &length);
    assert_memory_equal(text, foreign, sizeof(foreign) - 1);
    free(text);
}

/* Another version's point, or another parameter's, is not taken for this one. */
TEST(other_keys_are_other_points)
{
    char            path[64], line[200];
    size_t          length;
    char           *text, *at;
    Results         rows;
    Error           err = ERROR_INIT;
    SweepOutcome o;

    snprintf(path, sizeof(path), "%s/v.jsonl", folder);
    snprintf(line, sizeof(line), "sweep -m full -n 16 -d 8 --threads 1 --resume -o %s", path);
    sweep_file(line, &rows, &err);
    results_free(&rows);
    text = read_all(path, &length);
    at = strchr(text, '@');
    assert_non_null(at);
    at[1] = 'x'; /* of the version */
    write_all(path, text, length);
    free(text);
    o = sweep_file(line, &rows, &err);
    assert_int_equal(o.before, 0);
    assert_int_equal(o.now, 1);
    assert_int_equal(rows.count, 1);
    results_free(&rows);
    o = sweep_file(line, &rows, &err);
    assert_int_equal(o.before, 1);
    results_free(&rows);
    text = read_all(path, &length);
    assert_int_equal(whole_lines(text, length), 2);
    free(text);
}

/* Not run is a record with the reason, its numbers null, and is run when one goes on. */
TEST(what_was_not_run_is_a_record)
{
    char            path[64], line[240];
    Results         rows;
    Error           err = ERROR_INIT;
    SweepOutcome o;

    snprintf(path, sizeof(path), "%s/b.jsonl", folder);
    snprintf(line, sizeof(line),
             "sweep -m full,dilated,nsa -p window=0 -n 16 -d 8 --budget 0.000001s -o %s", path);
    o = sweep_file(line, &rows, &err);
    assert_int_equal(o.failed, 3);
    assert_true(o.budget_ended);
    for (int i = 0; i < rows.count; i++) {
        assert_false(rows.rows[i].ok);
        assert_string_not_equal(rows.rows[i].message, "");
        assert_false(row_number(&rows.rows[i], "time_ms.median").valid);
        assert_false(row_number(&rows.rows[i], "flops.counted").valid);
        assert_false(row_number(&rows.rows[i], "memory.arena_peak").valid);
    }
    results_free(&rows);
    snprintf(line, sizeof(line), "sweep -m full,dilated,nsa -p window=0 -n 16 -d 8 --resume -o %s",
             path);
    o = sweep_file(line, &rows, &err);
    assert_int_equal(o.ok, 2);
    assert_int_equal(o.failed, 1);
    assert_int_equal(o.before, 1); /* a parameter that does not bind never will */
    results_free(&rows);
}

/* A parameter that does not bind never will; another machine may have the device that this one
 * lacks. */
TEST(what_only_a_device_does_not_support_is_run_again)
{
    char            path[64], line[240];
    Results         rows;
    Error           err = ERROR_INIT;
    SweepOutcome o;

    setenv("ATTNSCOPE_DEVICE_LIBRARY", "/nowhere.so", 1);
    snprintf(path, sizeof(path), "%s/d.jsonl", folder);
    snprintf(line, sizeof(line),
             "sweep -m dilated,nsa -p window=0 -n 16 -d 8 --threads 1 --device cpu,cuda --resume "
             "-o %s", path);
    o = sweep_file(line, &rows, &err);
    CHECK(o.points == 4 && o.ok == 1 && o.failed == 3, "%d points, %d measured", o.points, o.ok);
    for (int i = 0; i < rows.count; i++)
        assert_true(rows.rows[i].ok || !strcmp(rows.rows[i].status, "UNSUPPORTED"));
    results_free(&rows);
    o = sweep_file(line, &rows, &err);
    assert_int_equal(o.before, 2); /* on the CPU: the measured one and that without a meaning */
    assert_int_equal(o.now, 2);
    results_free(&rows);
    unsetenv("ATTNSCOPE_DEVICE_LIBRARY");
}

TEST(growth_is_forecast)
{
    static const int64_t n[] = { 64, 128 };
    static const double  y[] = { 10, 40 }, falling[] = { 10, 5 };
    Forecast             f = forecast_growth(n, y, 2, 512);

    CHECK_NEAR(f.value.value, 640, 1e-9);
    CHECK_NEAR(f.slope, 2, 1e-12);
    assert_int_equal(f.from, 128);
    CHECK_NEAR(forecast_growth(n, y, 1, 128).value.value, 20, 1e-9);
    CHECK_NEAR(forecast_growth(n, falling, 2, 512).value.value, 5, 1e-9); /* never less */
    assert_false(forecast_growth(n, y, 0, 512).value.valid);
    assert_false(forecast_growth(n, y, 2, 128).value.valid);
}

/* Rows of the first `count` points: `ms` a run, a process of `seconds`. */
static double left_after(const Planned *p, int count, const double *ms, const double *seconds)
{
    Results rows = { 0 };
    Error   err = ERROR_INIT;
    int     row_of[16];
    double  left;

    for (int i = 0; i < p->plan.count; i++) {
        char line[200];

        row_of[i] = i < count ? i : -1;
        if (i >= count)
            continue;
        snprintf(line, sizeof(line), "{\"mechanism\":\"full\",\"status\":\"OK\",\"process\":"
                 "{\"seconds\":%g},\"time_ms\":{\"median\":%g}}", seconds[i], ms[i]);
        assert_true(results_add(&rows, line, strlen(line), 0, &err));
    }
    assert_int_equal(rows.count, count);
    left = sweep_left(&p->spec, &p->plan, &rows, row_of, count);
    results_free(&rows);
    return left;
}

/* One run of 1, 4, 16, 64 ms: with 100 of them, and two more, 0.1, 0.4, 1.6, 6.4 s. */
TEST(time_left_follows_work)
{
    static const double ms[] = { 1, 4, 16, 64 }, seconds[] = { 0.202, 0.508, 1.732, 6.628 };
    Planned p = plan_of("sweep -m full -n 256:2048:x2 -d 8 --repeat 100");
    Planned two = plan_of("sweep -m full,linear -n 512,1024 -d 8 --repeat 100");

    assert_int_equal(p.plan.count, 4);
    CHECK_NEAR(sweep_work(&p.spec, &p.plan.points[1]) / sweep_work(&p.spec, &p.plan.points[0]), 4,
               1e-12);
    CHECK_NEAR(sweep_work(&two.spec, &two.plan.points[3]) /
                   sweep_work(&two.spec, &two.plan.points[1]), 2, 1e-12); /* linear in n */
    CHECK_NEAR(left_after(&p, 0, ms, seconds), -1, 0);
    for (int count = 1; count <= 3; count++) {
        double left = left_after(&p, count, ms, seconds), rest = 0;

        for (int i = count; i < 4; i++)
            rest += seconds[i];
        CHECK(left > 0.6 * rest && left < 1.6 * rest, "after %d: %g of %g", count, left, rest);
    }
    CHECK_NEAR(left_after(&p, 4, ms, seconds), 0, 0);
    planned_free(&p);
    planned_free(&two);
}

/* A process is not repeated beyond the limit of its time. */
TEST(time_left_of_long_runs_is_a_few_runs)
{
    static const double ms[] = { 5000, 20000 }, seconds[] = { 20, 50 };
    Planned             p = plan_of("sweep -m full -n 512,1024,2048 -d 8");
    double              left = left_after(&p, 2, ms, seconds);

    CHECK(left > 120 && left < 180, "%g", left);
    planned_free(&p);
}

/* Of a mechanism that has not run yet, by the work of the others: 64 times that of the first. */
TEST(time_left_of_another_mechanism)
{
    static const double ms[] = { 1 }, seconds[] = { 0.2 };
    Planned             p = plan_of("sweep -m linear,full -n 512,1024 -d 8 --repeat 100");
    double              left = left_after(&p, 1, ms, seconds);

    CHECK(left > 8 && left < 20, "%g", left);
    planned_free(&p);
}

static int make_folder(void **state)
{
    (void)state;
    no_task();
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
    static const char *const names[] = { "k", "n", "v", "b", "d" };
    char                     path[64];

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s/%s.jsonl", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "run"))
        return cli_main(argc, argv, NULL, NULL, NULL);
    return suite_run(make_folder, drop_folder);
}
