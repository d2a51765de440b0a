/* test_ui_actions.c -- the explorer's one table of actions. */

#include <ctype.h>

#include "check.h"
#include "ui/shell/actions.h"
#include "ui/screen/lessons.h"
#include "ui/shell/shell.h"

/* The n-th word of an action's keys. */
static bool key_word(const Action *a, int n, char *word, size_t size)
{
    const char *at = a->keys;

    for (int i = 0; *at; i++) {
        size_t length = strcspn(at, " ");

        if (i == n) {
            snprintf(word, size, "%.*s", (int)length, at);
            return length > 0;
        }
        at += length + (at[length] == ' ');
    }
    return false;
}

/* In no place do two actions share a key: the later one could never be reached. */
TEST(no_key_means_two_things)
{
    char one[32], other[32];

    for (size_t i = 0; action_at(i); i++)
        for (size_t j = i + 1; action_at(j); j++) {
            if (!(action_at(i)->scope & action_at(j)->scope))
                continue;
            for (int x = 0; key_word(action_at(i), x, one, sizeof(one)); x++)
                for (int y = 0; key_word(action_at(j), y, other, sizeof(other)); y++)
                    CHECK(strcmp(one, other) != 0, "%s and %s share the key %s",
                          action_at(i)->id, action_at(j)->id, one);
        }
}

/* Letters that a lesson does not take for a slip of an answer. */
TEST(a_lesson_knows_its_own_letters)
{
    char word[32];

    for (size_t i = 0; action_at(i); i++)
        for (int x = 0; key_word(action_at(i), x, word, sizeof(word)); x++)
            if (!word[1])
                CHECK((action_at(i)->scope == IN_LESSON && isalpha((unsigned char)*word)) ==
                          (action_at(i)->scope == IN_LESSON &&
                           key_among((unsigned char)*word, lesson_own_keys)),
                      "%s: the letter %s", action_at(i)->id, word);
}

/* The loop sleeps until the first of several deadlines, whichever is asked for last. */
TEST(the_earlier_deadline_counts)
{
    static const double cases[][3] = { { 0.1, 0.5, 0.1 }, { -1, 0.5, 0.5 }, { 0.1, -1, 0.1 },
                                       { 0, 0.5, 0 },     { -1, -1, -1 } };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_true(deadline_earlier(cases[i][0], cases[i][1]) == cases[i][2]);
        assert_true(deadline_earlier(cases[i][1], cases[i][0]) == cases[i][2]);
    }
}

SUITE(NULL, NULL)
