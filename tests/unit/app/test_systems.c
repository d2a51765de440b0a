/* test_systems.c -- every system that the surveys name runs, and is there once. */

#include "app/call.h"
#include "app/study/sweep.h"
#include "attn/run/mechanism.h"
#include "check.h"

static void one_runs(Session *s, const char *word)
{
    const char *words[] = { "run", word, "-n", "16", "-d", "8", "--repeat", "1" };
    Text        out = { 0 };
    Error       err = ERROR_INIT;

    CHECK(command_run(s, words, 8, READER_FILE, 0, &out, &err), "%s: %s", word, err.text);
    text_free(&out);
}

TEST(every_system_runs)
{
    Error    err = ERROR_INIT;
    Session *s = session_new(&err);

    CHECK(s, "%s", err.text);
    for (size_t i = 0; system_at(i); i++) {
        char  runs[256], *rest = runs;
        char *word;

        assert_true(strlen(system_at(i)->runs) < sizeof(runs));
        strcpy(runs, system_at(i)->runs);
        while ((word = strtok_r(rest, " ", &rest)))
            one_runs(s, word);
    }
    session_free(s);
}

TEST(no_system_is_there_twice)
{
    for (size_t i = 0; system_at(i); i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(system_at(i)->name, system_at(j)->name);
}

/* The year of a system is that of the card of what runs: the first mechanism that it names. */
TEST(years_are_those_of_the_cards)
{
    for (size_t i = 0; system_at(i); i++) {
        const Mechanism *m = system_mechanism(system_at(i));
        char             year[8];

        if (!m || strstr(system_at(i)->runs, "position="))
            continue;
        snprintf(year, sizeof(year), "%d", m->year);
        CHECK(strstr(system_at(i)->cite, year), "%s: %s, but its card says %s", system_at(i)->name,
              system_at(i)->cite, year);
    }
}

/* Both claims where the surveys disagree, one where they agree. */
TEST(disagreements_are_shown)
{
    const char *words[] = { "list", "--table" };
    Text        out = { 0 };
    Error       err = ERROR_INIT;
    Session    *s = session_new(&err);

    CHECK(s && command_run(s, words, 2, READER_FILE, 0, &out, &err), "%s", err.text);
    assert_non_null(strstr(text_str(&out), "O(n log n) [a]; O(n sqrt(n)) [b]"));
    assert_non_null(strstr(text_str(&out), "O(n log n) [abc]"));
    assert_non_null(strstr(text_str(&out), "O(n (k + m)) [ab]; O(n) [c]"));
    text_free(&out);
    session_free(s);
}

SUITE(NULL, NULL)
