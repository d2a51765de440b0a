/* app/lesson/lesson_page.h -- a step of a lesson as lines of a width: for the screen, for print, and
 * for the check that it fits. */
#ifndef APP_LESSON_LESSON_PAGE_H
#define APP_LESSON_LESSON_PAGE_H

#include "app/lesson/lesson.h"

/* Room of the words on the smallest usual screen, 80x24, with the panes beside them. */
#define LESSON_PAGE_WIDTH 40
#define LESSON_PAGE_LINES 19

typedef enum LessonLineKind {
    LESSON_LINE_TEXT,
    LESSON_LINE_TASK,
    LESSON_LINE_DONE, /* the task is done */
    LESSON_LINE_NOW,
    LESSON_LINE_QUESTION,
    LESSON_LINE_CHOICE,
    LESSON_LINE_CHOSEN,
    LESSON_LINE_FIELD, /* room for the answer */
    LESSON_LINE_RIGHT,
    LESSON_LINE_WRONG,
    LESSON_LINE_HINT,
} LessonLineKind;

typedef struct LessonLine {
    LessonLineKind kind;
    size_t         at; /* of its text */
} LessonLine;

typedef struct LessonPage {
    Text        text;
    LessonLine *lines; /* owned */
    int         count, capacity;
    bool        failed;
} LessonPage;

/* How far the learner is in the step. */
typedef struct LessonSight {
    int         chosen;   /* choice from 0; -1: none is */
    bool        hint;     /* it is shown */
    bool        done;     /* the task is */
    bool        answered; /* rightly */
    const char *said;     /* of the last answer; NULL: nothing */
    bool        right;
    bool        lenient;  /* words that cannot be made of what the panes show say so, and no more */
} LessonSight;

/* All there is to read at the step.  Free the page also on failure. */
bool lesson_page(const Lesson *lesson, int step, const LessonFacts *facts,
                 const LessonSight *sight, int width, LessonPage *out, Error *err);
const char *lesson_line(const LessonPage *page, int index);
void        lesson_page_free(LessonPage *page);

#endif
