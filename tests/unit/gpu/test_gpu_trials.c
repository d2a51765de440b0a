/* test_gpu_trials.c -- faster ways are taken where a trial said so: what is kept of trials, by
 * whom they are made, and what their processes may do.
 *
 * A trial is the program once more, and here that is this test, which then does what TRIAL_ACTS
 * says.
 */
#include <signal.h>
#include <sys/stat.h>

#include "app/session/session.h"
#include "gpu_fixture.h"

#define ACTS "TRIAL_ACTS"

static char home[] = "/tmp/attnscope-trials-XXXXXX";

/* ---- the process of a trial -------------------------------------------------------------- */

static int act(const char *way)
{
    const char *how = getenv(ACTS);

    signal(SIGSEGV, SIG_DFL); /* a sanitizer has its own */
    if (!strcmp(how, "good"))
        return printf("%s is\tright\n", way) < 0;
    if (!strcmp(how, "wrong") && printf("%s is wrong\n", way) > 0)
        return 3;
    if (!strcmp(how, "crash"))
        raise(SIGSEGV);
    if (!strcmp(how, "hang"))
        pause();
    if (!strcmp(how, "killed"))
        raise(SIGKILL);
    fprintf(stderr, "attnscope: not enough memory\n");
    return 1;
}

/* ---- tests --------------------------------------------------------------------------------- */

static int setup(void **state)
{
    (void)state;
    setenv("XDG_STATE_HOME", home, 1);
    setenv("ATTNSCOPE_WGMMA", "auto", 1);
    setenv("ATTNSCOPE_GRAPHS", "0", 1);
    return 0;
}

static int forget(void **state)
{
    Text path = { 0 };

    (void)state;
    if (trials_path(&path, NULL))
        remove(text_str(&path));
    text_free(&path);
    trials_forbid();
    unsetenv(ACTS);
    return setup(NULL);
}

static int clean(void **state)
{
    Text path = { 0 };

    forget(state);
    if (trials_path(&path, NULL))
        rmdir(dirname(path.data));
    text_free(&path);
    return rmdir(home);
}

TEST_AFTER(what_the_variable_says_goes, forget)
{
    Device *d = gpu_fixture_device();

    assert_int_equal(device_way(d, WAY_WARPGROUP), WAY_UNTRIED);
    assert_false(device_way_taken(d, WAY_WARPGROUP));
    device_way_settle(d, WAY_WARPGROUP, true, "right");
    assert_int_equal(device_way(d, WAY_WARPGROUP), WAY_TRUSTED);
    assert_true(device_way_taken(d, WAY_WARPGROUP));
    setenv("ATTNSCOPE_WGMMA", "0", 1);
    assert_int_equal(device_way(d, WAY_WARPGROUP), WAY_DECIDED);
    assert_false(device_way_taken(d, WAY_WARPGROUP));
    device_way_settle(d, WAY_WARPGROUP, false, "wrong");
    setenv("ATTNSCOPE_WGMMA", "1", 1);
    assert_true(device_way_taken(d, WAY_WARPGROUP));
    setenv("ATTNSCOPE_WGMMA", "auto", 1);
    assert_int_equal(device_way(d, WAY_WARPGROUP), WAY_REFUSED);
    assert_non_null(strstr(device_way_text(d, WAY_WARPGROUP),
                           "not used: wrong; ATTNSCOPE_WGMMA=1"));
    device_release(d);
}

/* Runs go ahead as soon as a trial trusts it, and no sooner. */
TEST_AFTER(graphs_follow_their_trial, forget)
{
    Device *d;

    setenv("ATTNSCOPE_GRAPHS", "auto", 1);
    d = gpu_fixture_device();
    assert_int_equal(d->ahead, AHEAD_NOT);
    device_way_settle(d, WAY_GRAPHS, true, "right");
    assert_int_equal(d->ahead, AHEAD_GRAPHS);
    device_way_settle(d, WAY_GRAPHS, false, "wrong");
    assert_int_equal(d->ahead, AHEAD_NOT);
    device_release(d);
}

static void add_line(const char *line)
{
    Text  path = { 0 };
    FILE *file;

    assert_true(trials_path(&path, NULL));
    file = fopen(text_str(&path), "a");
    assert_non_null(file);
    assert_true(fputs(line, file) >= 0);
    assert_int_equal(fclose(file), 0);
    text_free(&path);
}

static int occurrences(const char *text, const char *word)
{
    int count = 0;

    while ((text = strstr(text, word)) && ++count)
        text++;
    return count;
}

TEST_AFTER(the_newest_stands_and_others_stay, forget)
{
    Device *d = gpu_fixture_device();
    TrialVerdict first = { false, "apart" }, second = { true, "right after all" }, found;
    Text    path = { 0 }, text = { 0 };

    assert_false(trial_recall(d, WAY_WARPGROUP, &found));
    assert_true(trial_keep(d, WAY_WARPGROUP, &first, NULL));
    assert_false(trial_recall(d, WAY_GRAPHS, &found));
    assert_true(trial_keep(d, WAY_GRAPHS, &first, NULL));
    add_line("wgmma\tanother GPU\tnot\tapart\n\nno line of ours\n");
    assert_true(trial_keep(d, WAY_WARPGROUP, &second, NULL));
    assert_true(trial_recall(d, WAY_WARPGROUP, &found));
    assert_true(found.good);
    assert_string_equal(found.what, second.what);
    assert_true(trial_recall(d, WAY_GRAPHS, &found));
    assert_false(found.good);
    assert_true(trials_path(&path, NULL));
    assert_true(file_read(text_str(&path), 1 << 16, &text, NULL));
    assert_non_null(strstr(text_str(&text), "another GPU"));
    assert_non_null(strstr(text_str(&text), "no line of ours"));
    assert_int_equal(occurrences(text_str(&text), "wgmma\temulated"), 1);
    text_free(&path);
    text_free(&text);
    device_release(d);
}

TEST_AFTER(what_its_process_does_is_judged, forget)
{
    static const struct {
        const char *acts;
        bool        tried, good;
        const char *says;
    } cases[] = {
        { "good", true, true, "wgmma is right" },
        { "wrong", true, false, "wgmma is wrong" },
        { "crash", true, false, "ended by signal 11" },
        { "killed", false, false, "not tried: its process was ended by signal 9" },
        { "short", false, false, "not tried: not enough memory" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        TrialVerdict verdict;
        Error   err = { 0 };

        setenv(ACTS, cases[i].acts, 1);
        assert_int_equal(trial_make(WAY_WARPGROUP, NULL, NULL, &verdict, &err), cases[i].tried);
        assert_int_equal(verdict.good, cases[i].good);
        assert_non_null(strstr(cases[i].tried ? verdict.what : err.text, cases[i].says));
    }
}

static bool at_once(void *context)
{
    (void)context;
    return true;
}

TEST_AFTER(a_trial_can_be_stopped, forget)
{
    TrialVerdict verdict;
    Error   err = { 0 };

    setenv(ACTS, "hang", 1);
    assert_false(trial_make(WAY_WARPGROUP, at_once, NULL, &verdict, &err));
    assert_int_equal(err.code, ERR_CANCELLED);
}

static void count(void *context, const char *text)
{
    assert_non_null(strstr(text, "trying wgmma, once (120 s at most; ATTNSCOPE_WGMMA=0"));
    ++*(int *)context;
}

static WayState state_after(const char *acts, int *told)
{
    Device  *d = gpu_fixture_device();
    WayState is;

    setenv(ACTS, acts, 1);
    trials_apply(d, count, told);
    is = device_way(d, WAY_WARPGROUP);
    device_release(d);
    return is;
}

/* Once, where it may be; what was not tried is tried the next time. */
TEST_AFTER(a_gpu_is_tried_once, forget)
{
    int told = 0;

    assert_int_equal(state_after("good", &told), WAY_UNTRIED);
    trials_allow();
    assert_int_equal(state_after("short", &told), WAY_UNTRIED);
    assert_int_equal(state_after("wrong", &told), WAY_REFUSED);
    assert_int_equal(told, 2);
    assert_int_equal(state_after("good", &told), WAY_REFUSED);
    assert_int_equal(told, 2);
    trials_forbid();
    assert_int_equal(state_after("good", &told), WAY_REFUSED);
}

TEST_AFTER(without_a_place_to_keep_it_nothing_is_tried, forget)
{
    int told = 0;

    setenv("XDG_STATE_HOME", "/proc/nowhere", 1);
    trials_allow();
    assert_int_equal(state_after("good", &told), WAY_UNTRIED);
    assert_int_equal(told, 0);
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "trial"))
        return act(argv[3]);
    unsetenv("ATTNSCOPE_TEST_DEVICE"); /* a real one need not be a Hopper */
    if (!mkdtemp(home))
        return 1;
    return suite_run(NULL, clean);
}
