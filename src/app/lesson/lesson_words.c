/* lesson_words.c -- see lesson_words.h. */
#include "app/lesson/lesson_words.h"

#include <ctype.h>
#include <string.h>

static bool is_part(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool lesson_task_names(const LessonStep *step, const char *name)
{
    const char *task = step->task, *at = task;
    size_t      length = strlen(name);

    while (at && (at = strstr(at, name))) {
        bool begins = at == task || at[-1] == ' ';

        at += length;
        if (begins && !is_part(*at))
            return true;
    }
    return false;
}

bool lesson_task_opens_form(const LessonStep *step)
{
    LessonKey keys[LESSON_KEYS_MOST];
    int       count = lesson_keys(step->task, keys);

    for (int i = 0; i < count; i++)
        if (keys[i].length == 1 && *keys[i].name == 'p')
            return true;
    return false;
}

static bool names_one(const LessonStep *step, const Param *params)
{
    for (const Param *p = params; p && p->name; p++)
        if (lesson_task_names(step, p->name))
            return true;
    return false;
}

bool lesson_task_names_any(const LessonStep *step, const LessonFacts *facts)
{
    static const char *const always[] = { "position", "causal", "seed", "fit" };

    for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
        if (lesson_task_names(step, always[i]))
            return true;
    for (int i = 0; i < facts->count; i++) {
        const Run *run = facts->items[i].result ? facts->items[i].result->run : NULL;

        if (run && !facts->items[i].name &&
            (names_one(step, run->mechanism->params) ||
             (run->spec.position && names_one(step, run->spec.position->params))))
            return true;
    }
    return false;
}

/* ---- keys ------------------------------------------------------------------- */

/* Without the full stop or comma behind it. */
static size_t bare_length(const char *word, size_t length)
{
    while (length > 1 && strchr(".,;:!?)\"", word[length - 1]))
        length--;
    return length;
}

/* One character, or a name as keys have: "Enter", "S-Right", "F5". */
static bool like_key(const char *at, size_t length)
{
    size_t characters = 0;

    for (size_t i = 0; i < length; i++)
        characters += ((unsigned char)at[i] & 0xC0) != 0x80;
    return characters == 1 || isupper((unsigned char)*at);
}

static bool is_word(const char *at, size_t length, const char *word)
{
    return at && length == strlen(word) && !strncmp(at, word, length);
}

int lesson_keys(const char *words, LessonKey keys[LESSON_KEYS_MOST])
{
    const char *before = NULL;
    size_t      last = 0;
    bool        pressed = false; /* in this sentence */
    int         count = 0;

    for (const char *at = words + strspn(words, " \n"); *at && count < LESSON_KEYS_MOST;) {
        size_t whole = strcspn(at, " \n"), length = bare_length(at, whole);
        bool   press = is_word(before, last, "press") || is_word(before, last, "Press");
        bool   more = pressed && (is_word(before, last, "then") || is_word(before, last, "or"));

        if ((press || more) && like_key(at, length)) {
            keys[count++] = (LessonKey){ at, length };
            pressed = true;
        }
        if (whole > length && strchr(".;!?", at[whole - 1]))
            pressed = false;
        before = at;
        last = length;
        at += whole + strspn(at + whole, " \n");
    }
    return count;
}
