/* app/lesson/lesson_check.h -- every run, text and answer of a lesson, tried. */
#ifndef APP_LESSON_LESSON_CHECK_H
#define APP_LESSON_LESSON_CHECK_H

#include "app/lesson/lesson_time.h"

/* A line for each thing that is wrong; returns how many.  time: what it takes a learner. */
int lesson_check(Session *s, const Lesson *lesson, LessonTime *time, Text *out);

#endif
