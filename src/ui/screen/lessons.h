/* ui/screen/lessons.h -- lessons in the explorer: the list, and the one that runs beside the panes.
 *
 * A lesson that runs is a dock at the left of the compare, step and profile screens: the
 * panes are the real ones and keep their keys.  Tab goes between the words and the panes.
 */
#ifndef UI_SCREEN_LESSONS_H
#define UI_SCREEN_LESSONS_H

#include "app/lesson/lesson.h"
#include "ui/term/term.h"

typedef struct Ui Ui;
struct Action;

#define LESSON_END 100000

typedef struct LessonItem {
    Lesson *lesson; /* owned; NULL: it cannot be read */
    char    id[LESSON_NAME];
    char    problem[512];
} LessonItem;

typedef struct Lessons {
    LessonItem *items; /* owned; NULL: not read yet; those opened by a path stand at the end */
    int         count, cursor, top;
    char        sought[64]; /* in the list; "": nothing */
    Progress    progress;
    bool        unsaved; /* progress cannot be written; it is lost on exit */
    Lesson     *running; /* of the list; NULL: none */
    int         behind;  /* screen that was left for the list, or for a lesson */
    int         step;
    uint32_t    done;    /* bit of each step */
    bool        over;    /* the closing page is shown, behind the last step */
    bool        focused; /* the words have the keys */
    LessonSight sight;
    char        said[600];
    char        fault[600]; /* why the task cannot be judged; "": it can */
    char        moved[200]; /* about a head that is not the step's */
    Field       field;   /* a number being typed */
    bool        judged;  /* its content was judged */
    int         again;   /* lesson, from 1, whose progress the next press deletes; 0: none */
    int         scroll;  /* LESSON_END: to the last lines */
    int         rows;    /* lines of words in sight, which is a page */
    bool        whole;   /* the last line of the page is in sight */
    char        problem[512]; /* why the step does not show; "": it does */
    int          opened; /* panes that the step opened */
    char         mechanisms[LESSON_PANES_MOST][48]; /* theirs */
    int64_t      heads[LESSON_PANES_MOST]; /* and these */
    Text         requests; /* and all of them, a line each */
    Text         explained; /* why the answer is right, as the panes were then */
    bool         recalled; /* the answer of an earlier time was looked up */
    const LessonWords *shown; /* what is in the panes; to compare with only */
    bool        aimed;   /* the cursor was not yet checked against the views */
    Area      (*form_area)(Ui *ui, Area dock); /* lesson_form_area, while a lesson is shown */
    const char *at;      /* stage to go to once the run is there; NULL: none */
    Session    *side;    /* owned: of the runs beside the panes; NULL: none yet */
    char        device[8], precision[8]; /* where they run: as the panes' when they began */
    Job        *jobs[LESSON_RUNS_MOST];
    LessonLoss  losses[LESSON_RUNS_MOST]; /* of runs of a model */
    Result     *results[LESSON_RUNS_MOST]; /* retained */
    struct Workspace *before; /* owned: what was open; NULL: nothing to go back to */
} Lessons;

/* ---- lessons.c ---- */

/* Begins a lesson, at a step from 0 or where it was left (-1); false with a message. */
bool lessons_begin(Ui *ui, const char *name, int step);
/* What is typed after "lesson": a name, a path, or nothing. */
void lessons_typed(Ui *ui, const char *name);
void lessons_names(void (*each)(void *context, const char *name), void *context);
/* Of the list, which is read when it was not yet; NULL past the last. */
const LessonItem *lessons_at(Ui *ui, int index);
/* What the lesson is about, to look for words in: its name, title, summary, recap, titles of steps.
 */
void lessons_topics(const LessonItem *item, Text *out);
void lessons_leave(Ui *ui); /* what was open before comes back */
/* The same, by the key that closes: the list is shown, with a message. */
void lessons_close(Ui *ui);
/* The next unfinished lesson after the one that runs, around the list; NULL: none, or the one that
 * runs did not come with the program, and has an end of its own. */
const LessonItem *lessons_following(const Lessons *l);
/* Marks the step as done and saves the progress, if it is done. */
void lesson_finish(Ui *ui);
/* All that is asked of the learner is done. */
bool lesson_step_is_done(const Ui *ui);

/* ---- lesson_dock.c: the words as they are drawn ---- */

/* Where the form of parameters stands: below the task, which stays in sight. */
Area lesson_form_area(Ui *ui, Area dock);

/* A page in a room that may have too few lines for it. */
typedef struct LessonSplit {
    int from;  /* first line in sight */
    int words; /* lines from there */
    int kept;  /* lines of the task or question in sight below them, and below a rule; 0: the lines
                * from `from` on are all */
} LessonSplit;

/* First line of the open task, or of the question if it is not answered (asks) and both have no
 * room; the count of lines if nothing is open. */
int lesson_held(const LessonPage *page, bool asks, int room);
LessonSplit lesson_split(const LessonPage *page, int held, int room, int scroll);

/* ---- lesson_step.c: what a step shows, and answering ---- */

bool lesson_key(Ui *ui, uint32_t key); /* true: taken */
/* Letters of the actions that belong to a lesson alone (ui/shell/actions.def), for key_among. */
extern const char lesson_own_keys[];
/* The action's key is typed into the answer, or would be a slip of one. */
bool lesson_takes(const Ui *ui, const struct Action *action);
bool lesson_hint(Ui *ui, const struct Action *action); /* the last line lists it */
void lesson_show(Ui *ui, int step);
void lesson_facts(Ui *ui, LessonFacts *out);
bool lesson_poll(Ui *ui); /* true: something is to be drawn */
void lesson_drop_runs(Ui *ui);
/* No parameter was changed since the lesson opened the panes. */
bool lesson_untouched(const Ui *ui);
/* Mechanism of the first pane that is no longer the step's; NULL: all are. */
const char *lesson_instead(const Ui *ui);
int  lesson_wake_fd(const Ui *ui); /* -1: none */

#endif
