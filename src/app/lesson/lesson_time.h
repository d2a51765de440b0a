/* app/lesson/lesson_time.h -- how long a lesson takes: what there is to read, to type and to find out. */
#ifndef APP_LESSON_LESSON_TIME_H
#define APP_LESSON_LESSON_TIME_H

#include "app/lesson/lesson.h"

typedef struct LessonTime {
    int    words;     /* all that is read, with what comes with the right answers */
    int    keys;      /* that are pressed to answer, to do the tasks and to go on */
    int    questions; /* and tasks: each wants something to be looked for */
    double waited;    /* s, for runs; as it was here and now */
} LessonTime;

/* Adds a step; facts as the step shows them. */
bool lesson_time_step(const Lesson *lesson, int step, const LessonFacts *facts, LessonTime *total,
                      Error *err);
/* Without the waiting, which is another one on every machine. */
double lesson_minutes(const LessonTime *total);

/* What a lesson may take beyond the minutes that it promises: it says whole ones. */
#define LESSON_MINUTES_ROOM 0.5

#endif
