/* test_results.c -- files of results: torn, damaged, doubled lines; rows of them. */
#include <jansson.h>
#include <unistd.h>

#include "check.h"
#include "profile/results.h"

#define LINE(key, mechanism, n, median)                                                            \
    "{\"key\":\"" key "\",\"mechanism\":\"" mechanism "\",\"params\":{\"b\":1,\"a\":2},"           \
    "\"n\":" #n ",\"seed\":0,\"threads\":1,\"d\":16,\"heads\":1,\"causal\":false,"                 \
    "\"status\":\"OK\",\"time_ms\":{\"median\":" median ",\"samples\":[1,2]}}\n"

static Results read_text(const char *text, bool *ok)
{
    char    path[] = "/tmp/attnscope-results-XXXXXX";
    int     file = mkstemp(path);
    Results rows = { 0 };
    Error   err = ERROR_INIT;

    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
    *ok = results_read(path, 0, &rows, &err);
    unlink(path);
    return rows;
}

static Results read_good(const char *text)
{
    bool    ok;
    Results rows = read_text(text, &ok);

    assert_true(ok);
    return rows;
}

TEST(numbers_are_valid_or_not)
{
    Results rows = read_good(LINE("a@1", "full", 64, "2.5") LINE("b@1", "full", 128, "null"));

    assert_int_equal(rows.count, 2);
    CHECK_NEAR(row_number(&rows.rows[0], "time_ms.median").value, 2.5, 0);
    assert_false(row_number(&rows.rows[1], "time_ms.median").valid); /* null is not 0 */
    assert_false(row_number(&rows.rows[0], "memory.arena_peak").valid);
    assert_false(row_number(&rows.rows[0], "mechanism").valid);
    assert_int_equal(row_sample_count(&rows.rows[0]), 2);
    assert_string_equal(rows.rows[0].params, "{\"a\":2,\"b\":1}");
    assert_true(row_same_series(&rows.rows[0], &rows.rows[1]));
    assert_int_equal(key_point_length("abc@0.1.0"), 3);
    results_free(&rows);
}

#define NAMED(key, mechanism, params)                                                              \
    "{\"key\":\"" key "\",\"mechanism\":\"" mechanism "\",\"params\":{" params "},\"n\":8,"        \
    "\"seed\":0,\"threads\":1,\"d\":4,\"heads\":1,\"causal\":false,\"status\":\"OK\"}\n"

/* A name has the parameters in which rows of the mechanism differ, and no others. */
TEST(names_of_rows_have_what_differs)
{
    static const char *const names[] = { "window(window=3)", "window(window=5,kind=wide)",
                                         "full" };
    Results rows = read_good(NAMED("a@1", "window", "\"window\":3,\"kind\":null,\"softcap\":0")
                             NAMED("b@1", "window", "\"window\":5,\"kind\":\"wide\",\"softcap\":0")
                             NAMED("c@1", "full", "\"window\":7,\"softcap\":0"));

    assert_int_equal(rows.count, 3);
    for (int k = 0; k < 3; k++) {
        Text name = { 0 };

        row_name(&rows, &rows.rows[k], &name);
        assert_string_equal(text_str(&name), names[k]);
        text_free(&name);
    }
    results_free(&rows);
}

/* At whatever byte the writer was killed: whole lines are rows, the rest is torn. */
TEST(a_file_may_end_anywhere)
{
    const char *two = LINE("a@1", "full", 64, "2.5") LINE("b@1", "full", 128, "3.5");
    size_t      first = strlen(LINE("a@1", "full", 64, "2.5"));

    for (size_t cut = 0; cut <= strlen(two); cut++) {
        char   *text = strndup(two, cut);
        Results rows = read_good(text);
        int     whole = (cut >= first) + (cut == strlen(two));

        assert_int_equal(rows.count, whole);
        assert_int_equal(rows.torn, cut != 0 && cut != first && cut != strlen(two));
        assert_int_equal(rows.whole_bytes, whole == 2 ? strlen(two) : whole ? first : 0);
        assert_int_equal(rows.damaged, 0);
        results_free(&rows);
        free(text);
    }
}

/* Its end is not known, so what was read is not all, and nothing of it is torn. */
TEST(a_file_that_cannot_be_read_to_its_end_is_an_error)
{
    static const char *const paths[] = { "/", "/proc/self/mem" };
    static const char *const words[] = { "/: cannot be read: Is a directory",
                                         "/proc/self/mem: cannot be read: Input/output error" };

    for (int i = 0; i < 2; i++) {
        Results results = { 0 };
        Error   err = ERROR_INIT;

        assert_false(results_read(paths[i], 0, &results, &err));
        assert_string_equal(err.text, words[i]);
        results_free(&results);
    }
}

TEST(damaged_lines_are_counted)
{
    Results rows = read_good("rubbish\n" LINE("a@1", "full", 64, "1") "{\"key\":\"x\"}\n\n[]\n"
                             "{\"mechanism\":\"full\",\"status\":\"OK\",\"params\":5}\n"
                             LINE("b@1", "full", -64, "1") LINE("c@1", "full", "64", "1"));
    bool    ok;

    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.damaged, 6); /* a measured point has a length */
    results_free(&rows);
    rows = read_text("nothing of ours\n", &ok);
    assert_false(ok);
    results_free(&rows);
}

TEST(of_one_key_the_last_counts)
{
    Results rows = read_good(LINE("a@1", "full", 64, "1") LINE("b@1", "full", 128, "2")
                             LINE("a@1", "full", 64, "3") LINE("a@2", "full", 64, "4"));

    CHECK_NEAR(row_number(results_find(&rows, "a@1"), "time_ms.median").value, 3, 0);
    assert_null(results_find(&rows, "a@3"));
    assert_true(results_latest(&rows, NULL));
    assert_int_equal(rows.count, 3);
    assert_int_equal(rows.replaced, 1);
    assert_string_equal(rows.rows[0].key, "b@1");
    assert_string_equal(rows.rows[1].key, "a@1");
    CHECK_NEAR(row_number(&rows.rows[1], "time_ms.median").value, 3, 0);
    results_free(&rows);
}

static int until_refused; /* allocations of jansson; negative: all are given */

static void *give(size_t size)
{
    return until_refused >= 0 && until_refused-- == 0 ? NULL : malloc(size);
}

/* diff sorts what it has before it reports. */
TEST(rows_without_memory_can_be_sorted)
{
    bool ok = false;
    int  refused = 0;

    json_set_alloc_funcs(give, free);
    for (int k = 0; !ok; k++) {
        Results rows;

        until_refused = k;
        rows = read_text(LINE("a@1", "full", 64, "1") LINE("a@1", "full", 128, "1")
                             LINE("a@1", "full", 32, "1"), &ok);
        refused += !ok;
        ok = until_refused >= 0; /* none was left to refuse */
        until_refused = -1;
        results_sort(&rows);
        results_free(&rows);
    }
    json_set_alloc_funcs(malloc, free);
    assert_true(refused > 0);
}

TEST(rows_are_sorted_by_series)
{
    Results rows = read_good(LINE("a@1", "bigbird", 128, "1") LINE("b@1", "full", 128, "2")
                             LINE("c@1", "bigbird", 64, "3") LINE("d@1", "full", 64, "4")
                             LINE("e@1", "no-such-thing", 64, "4"));

    results_sort(&rows);
    for (int i = 0; i < 4; i += 2) {
        assert_true(row_same_series(&rows.rows[i], &rows.rows[i + 1]));
        assert_int_equal(rows.rows[i].n, 64);
        assert_int_equal(rows.rows[i + 1].n, 128);
    }
    assert_string_equal(rows.rows[4].mechanism, "no-such-thing");
    assert_true(row_same_setting(&rows.rows[0], &rows.rows[2]));
    rows.rows[0].version = "9.9"; /* another version's is another curve, the same point */
    assert_false(row_same_series(&rows.rows[0], &rows.rows[1]));
    results_free(&rows);
}

/* ---- the identity of a point -------------------------------------------------- */

#define WITH(params, more)                                                                         \
    "{" more "\"mechanism\":\"full\",\"params\":{" params "},\"n\":8,\"seed\":0,"                  \
    "\"threads\":1,\"source\":\"x.npz\",\"status\":\"OK\"}\n"
#define POINT(more) WITH("", more)
#define KEYS(key, point) "\"key\":\"" key "@1\",\"point\":\"" point "\","
#define RUN(options)     "\"command\":\"run full " options " --json\","
#define INPUT(sha)       "\"input_sha256\":\"" sha "\","
#define SCRIPT(sha)      "\"script_sha256\":\"" sha "\","

/* Two records, and whether they are one point: for what is counted, and for time. */
static const struct {
    const char *a, *b;
    bool        counted, timed;
} pairs[] = {
    { POINT(""), POINT(""), true, true },
    { POINT(INPUT("aa")), POINT(INPUT("bb")), false, false },
    { POINT(INPUT("aa")), POINT(""), true, true }, /* of run --json: not known */
    { POINT("\"process\":{\"number\":2},"), POINT(""), false, false },
    { POINT(KEYS("k", "p") SCRIPT("11")), POINT(KEYS("l", "p") SCRIPT("22")), true, true },
    { POINT(KEYS("k", "p") RUN("--repeat=1")), POINT(KEYS("l", "p") RUN("--repeat=2")), true,
      false },
    { POINT(KEYS("k", "p")), POINT(KEYS("k", "q")), false, false },
    /* records from before points had fingerprints of their own */
    { POINT("\"key\":\"k@1\","), POINT("\"key\":\"k@2\","), true, true },
    { POINT("\"key\":\"k@1\","), POINT("\"key\":\"l@1\","), false, false },
    { POINT("\"key\":\"k@1\"," RUN("--repeat=1")), POINT("\"key\":\"l@1\"," RUN("--repeat=2")),
      true, false },
    { POINT("\"key\":\"k@1\"," INPUT("aa") RUN("--repeat=1")),
      POINT("\"key\":\"l@1\"," INPUT("bb") RUN("--repeat=2")), false, false },
    /* a version that added a parameter */
    { WITH("\"a\":1", KEYS("k", "p") RUN("--n=8")),
      WITH("\"a\":1,\"b\":0", KEYS("l", "q") RUN("--n=8")), true, true },
    { WITH("\"a\":1,\"b\":0", "\"key\":\"k@1\"," RUN("--n=8 --mem=5")),
      WITH("\"a\":1", KEYS("l", "q") RUN("--n=8")), true, true },
    { WITH("\"a\":1", KEYS("k", "p") RUN("--repeat=1")),
      WITH("\"a\":1,\"b\":0", KEYS("l", "q") RUN("--repeat=2")), true, false },
    /* another value, another command, another file, other parameters in each */
    { WITH("\"a\":1", KEYS("k", "p") RUN("--n=8")),
      WITH("\"a\":2,\"b\":0", KEYS("l", "q") RUN("--n=8")), false, false },
    { WITH("\"a\":1", KEYS("k", "p") RUN("--n=8")),
      WITH("\"a\":1,\"b\":3", KEYS("l", "q") RUN("--n=8 -p b=3")), false, false },
    { WITH("\"a\":1", KEYS("k", "p") RUN("-p w=@w.npy")),
      WITH("\"a\":1,\"b\":0", KEYS("l", "q") RUN("-p w=@w.npy")), false, false },
    { WITH("\"a\":1,\"c\":0", KEYS("k", "p") RUN("--n=8")),
      WITH("\"a\":1,\"b\":0,\"d\":0", KEYS("l", "q") RUN("--n=8")), false, false },
    { WITH("\"a\":1", KEYS("k", "p") RUN("--n=8") INPUT("aa")),
      WITH("\"a\":1,\"b\":0", KEYS("l", "q") RUN("--n=8") INPUT("bb")), false, false },
};

TEST(a_point_is_what_is_measured)
{
    for (size_t k = 0; k < sizeof(pairs) / sizeof(*pairs); k++) {
        Results a = read_good(pairs[k].a), b = read_good(pairs[k].b);

        CHECK(row_same_point(a.rows, b.rows, true) == pairs[k].counted, "pair %zu, counted", k);
        CHECK(row_same_point(a.rows, b.rows, false) == pairs[k].timed, "pair %zu, timed", k);
        results_free(&a);
        results_free(&b);
    }
}

/* An edit of a script makes another curve, as another version of the program does. */
TEST(scripts_and_inputs_part_curves)
{
    Results rows = read_good(POINT(SCRIPT("11") INPUT("aa")) POINT(SCRIPT("22") INPUT("aa"))
                             POINT(SCRIPT("11") INPUT("bb")) POINT(SCRIPT("11") INPUT("aa")));
    Text    what = { 0 };

    assert_false(row_same_series(&rows.rows[0], &rows.rows[1]));
    assert_false(row_same_series(&rows.rows[0], &rows.rows[2]));
    assert_true(row_same_series(&rows.rows[0], &rows.rows[3]));
    assert_int_equal(row_differences(&rows.rows[0], &rows.rows[2], &what), 1);
    assert_non_null(strstr(text_str(&what), "content of the input"));
    text_free(&what);
    results_free(&rows);
}

SUITE(NULL, NULL)
