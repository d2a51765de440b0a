/* lesson_time.c -- see lesson_time.h. */
#include "app/lesson/lesson_time.h"

#include <stdio.h>
#include <string.h>

#include "app/lesson/lesson_page.h"

#define WORDS_A_MINUTE  200.0 /* of a text that one learns from */
#define KEY_SECONDS     3.0   /* with the look for the key and at what it did */
#define SEARCH_SECONDS  20.0  /* for an answer, or for what a task is about */
#define FORM_KEYS       8     /* the form opened, a field gone to, a number typed, Enter */
#define LOOK_KEYS       3     /* another head, view or order */
#define CHOICE_KEYS     2     /* a letter and Enter */

static int words_of(const char *text)
{
    int words = 0;

    for (bool inside = false; *text; text++) {
        words += *text != ' ' && *text != '\n' && !inside;
        inside = *text != ' ' && *text != '\n';
    }
    return words;
}

/* The keys of the shortest number that is taken, and Enter. */
static int number_keys(const LessonStep *step, double right)
{
    char   typed[64] = "";
    double given;
    Error  err = ERROR_INIT;

    for (int digits = 1; digits < 17; digits++) {
        snprintf(typed, sizeof(typed), "%.*g", digits, right);
        if (!strchr(typed, 'e') && lesson_number(typed, step->unit, &given, &err) &&
            lesson_accepts(step, right, given))
            break;
    }
    return (int)strlen(typed) + 1;
}

static bool add_answer(const Lesson *lesson, int at, const LessonFacts *facts, LessonTime *total,
                       const char **why, Error *err)
{
    const LessonStep *step = &lesson->steps[at];
    double            right;

    *why = "";
    if (step->ask == LESSON_ASKS_NOTHING)
        return true;
    if (!lesson_answer(lesson, at, facts, &right, err))
        return false;
    total->questions++;
    if (step->ask == LESSON_ASKS_NUMBER) {
        total->keys += number_keys(step, right);
    } else {
        total->keys += CHOICE_KEYS;
        *why = step->choices[(int)right - 1].why ? step->choices[(int)right - 1].why : "";
    }
    return true;
}

/* "full:weights@3" without what only says how it is looked at: bytes. */
static int run_length(const char *word)
{
    const char *end = strrchr(word, ')'), *rest = end ? end : word;

    return (int)(rest - word + (long)strcspn(rest, ":@"));
}

static bool is_look(const char *word)
{
    static const char *const looks[] = { "--sorted", "--head", "--layers", "--view" };

    for (size_t i = 0; i < sizeof(looks) / sizeof(*looks); i++)
        if (!strncmp(word, looks[i], strlen(looks[i])))
            return true;
    return false;
}

/* Every word of the one that makes a run is in the other: no parameter was changed. */
static bool same_runs(const LessonWords *a, const LessonWords *b)
{
    for (int i = 0; i < a->count; i++) {
        bool found = is_look(a->items[i]);
        int  length = run_length(a->items[i]);

        for (int k = 0; k < b->count && !found; k++)
            found = run_length(b->items[k]) == length &&
                    !strncmp(a->items[i], b->items[k], (size_t)length);
        if (!found)
            return false;
    }
    return true;
}

static int task_keys(const Lesson *lesson, int at)
{
    const LessonWords *shown = lesson_shows(lesson, at), *solution = &lesson->steps[at].solution;

    return shown && same_runs(shown, solution) && same_runs(solution, shown) ? LOOK_KEYS
                                                                              : FORM_KEYS;
}

bool lesson_time_step(const Lesson *lesson, int step, const LessonFacts *facts, LessonTime *total,
                      Error *err)
{
    LessonSight sight = { .chosen = -1, .done = true, .answered = true };
    LessonPage  page = { .count = 0 };
    bool        ok = add_answer(lesson, step, facts, total, &sight.said, err) &&
              lesson_page(lesson, step, facts, &sight, LESSON_PAGE_WIDTH, &page, err);

    total->words += words_of(lesson->steps[step].title);
    for (int i = 0; ok && i < page.count; i++)
        total->words += words_of(lesson_line(&page, i));
    if (lesson->steps[step].done) {
        total->questions++;
        total->keys += task_keys(lesson, step);
    }
    total->keys++; /* that goes on */
    lesson_page_free(&page);
    return ok;
}

double lesson_minutes(const LessonTime *total)
{
    return total->words / WORDS_A_MINUTE +
           (total->keys * KEY_SECONDS + total->questions * SEARCH_SECONDS) / 60;
}
