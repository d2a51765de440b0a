/* app/lesson/play.h -- a step's runs made here and now: for texts and checks, without a screen. */
#ifndef APP_LESSON_PLAY_H
#define APP_LESSON_PLAY_H

#include "app/figure/plan.h"
#include "app/lesson/lesson.h"
#include "app/lesson/page.h"

/* Panes and runs of a step; the results are retained. */
typedef struct LessonPlay {
    LessonFacts facts;
    char        views[LESSON_PANES_MOST][48];
} LessonPlay;

/* words: of what stands in the panes; NULL: as the step shows. */
bool lesson_play(Session *s, const Lesson *lesson, int step, const LessonWords *words,
                 LessonPlay *out, Error *err);
void lesson_play_free(LessonPlay *play);

/* The view has the cell that a lesson puts the cursor on. */
bool lesson_cursor_fits(const View *view, int64_t query, int64_t key, Error *err);

/* The plan of words, with quality asked for where it is quick; its input is loaded. */
bool lesson_plan(Session *s, const LessonCall *made, FigurePlan *plan, Error *err);

/* Every run, text and answer of a lesson, tried. */

/* A line for each thing that is wrong; returns how many.  Finds the lesson's effort. */
int lesson_check(Session *s, Lesson *lesson, Text *out);

#endif
