/* test_complete.c -- what a line typed in the explorer may become; `tests/cli` has the shells. */
#include "app/complete.h"
#include "check.h"

static void add(void *context, const char *word, const char *help)
{
    (void)help;
    text_addf(context, "%s ", word);
}

/* Whether `word` is among what the line's last word may become. */
static bool offers(const char *first, const char *last, const char *word)
{
    const char *words[] = { first, last };
    char        between[64];
    Text        all = { 0 };
    bool        found;

    text_add(&all, " ");
    complete_words(NULL, words, 2, add, &all);
    snprintf(between, sizeof(between), " %s ", word);
    found = strstr(text_str(&all), between) != NULL;
    text_free(&all);
    return found;
}

TEST(views_are_offered_behind_a_word_that_is_no_command)
{
    assert_true(offers("figures", "full:", "full:weights"));
    assert_false(offers("figures", "full:", "full:plot(time)"));
    assert_true(offers("figure", "full:", "full:plot(time)"));
    assert_false(offers("run", "full:", "full:plot(time)"));
}

TEST(the_explorer_has_no_options_of_its_own)
{
    assert_false(offers("figures", "--", "--session"));
    assert_false(offers("bigbird", "--", "--delay"));
    assert_true(offers("step", "--", "--delay"));
}

SUITE(NULL, NULL)
