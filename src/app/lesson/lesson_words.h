/* app/lesson/lesson_words.h -- what a lesson's words tell the learner to press and to change. */
#ifndef APP_LESSON_LESSON_WORDS_H
#define APP_LESSON_LESSON_WORDS_H

#include "app/lesson/lesson.h"

/* The task has this name of a parameter, as a word of its own. */
bool lesson_task_names(const LessonStep *step, const char *name);
/* It says to press p, which opens the form of parameters. */
bool lesson_task_opens_form(const LessonStep *step);
/* It names a parameter, or a row of the form that every mechanism has, of one of the panes. */
bool lesson_task_names_any(const LessonStep *step, const LessonFacts *facts);

typedef struct LessonKey {
    const char *name; /* in the words */
    size_t      length;
} LessonKey;

#define LESSON_KEYS_MOST 16
/* The keys that the words say to press, how many: "press p, then Enter" has two.  Words in small
 * letters ("press the key") are none. */
int lesson_keys(const char *words, LessonKey keys[LESSON_KEYS_MOST]);

#endif
