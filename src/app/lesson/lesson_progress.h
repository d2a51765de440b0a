/* app/lesson/lesson_progress.h -- how far the learner came: a file of lines anyone can read.
 *
 * It stands in $XDG_STATE_HOME/attnscope/lessons.  What is damaged in it costs what the
 * damaged lines said, and no more; a file that is no progress at all is put aside.
 */
#ifndef APP_LESSON_LESSON_PROGRESS_H
#define APP_LESSON_LESSON_PROGRESS_H

#include "app/lesson/lesson.h"

#define PROGRESS_MOST 256

typedef struct LessonProgress {
    char     id[LESSON_NAME];
    int      at;   /* step it was left at */
    uint32_t done; /* bit of each step */
} LessonProgress;

typedef struct Progress {
    LessonProgress items[PROGRESS_MOST];
    int            count;
    int            damaged; /* lines that said nothing; -1: the whole file */
} Progress;

/* From the text of the file. */
void progress_parse(const char *text, Progress *out);
void progress_write(const Progress *progress, Text *out);

/* From the file; none yet is no progress. */
void progress_read(Progress *out);
/* Of a lesson; a zeroed one where there is none. */
LessonProgress progress_of(const Progress *progress, const char *id);
/* In the place of what was known of the lesson. */
void progress_put(Progress *progress, const LessonProgress *item);
/* Reads the file again, changes the one lesson and writes it: two explorers share it. */
bool progress_save(const LessonProgress *item, Error *err);
int  progress_steps(const LessonProgress *item); /* done */

#endif
