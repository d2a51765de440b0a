/* app/lesson/lesson.h -- a lesson as data: steps with words, runs to look at, and questions.
 *
 * A lesson is one Lua file, but nothing here knows Lua: a LessonReader, given to the
 * session by main, makes a Lesson of the file's text and calls the lesson's functions.
 * What a step shows are the words of the command `figure` or `step`, so the explorer
 * opens what the command line draws.
 */
#ifndef APP_LESSON_LESSON_H
#define APP_LESSON_LESSON_H

#include <stddef.h>

#include "app/call.h"
#include "app/figure/plan.h"

#define LESSON_STEPS_MOST   32
#define LESSON_CHOICES_MOST 6
#define LESSON_RUNS_MOST    6
#define LESSON_WORDS_MOST   48
#define LESSON_NAME         32

/* Words as they are, or those that a function of the lesson makes of the runs. */
typedef struct LessonText {
    const char *fixed;  /* NULL: none, or made */
    int         make;   /* 0: none */
} LessonText;

/* Of a command: "figure", "full:weights", "--n=64". */
typedef struct LessonWords {
    const char *items[LESSON_WORDS_MOST];
    int         count; /* 0: none */
    int64_t     query, key; /* where the cursor is put; -1: not said */
} LessonWords;

/* A run beside the panes, known to the lesson's functions by its name. */
typedef struct LessonRun {
    char        name[LESSON_NAME];
    LessonWords words;
    bool        measure; /* time and memory are taken */
} LessonRun;

typedef struct LessonChoice {
    const char *text, *why; /* why it is wrong, or right; NULL: not said */
} LessonChoice;

typedef enum LessonAsk { LESSON_ASKS_NOTHING, LESSON_ASKS_CHOICE, LESSON_ASKS_NUMBER } LessonAsk;

typedef struct LessonStep {
    const char  *title;
    LessonText   text, now, hint, explain;
    const char  *task;     /* NULL: none */
    bool         opens_form; /* the task says to press p, which opens the form of parameters */
    int          done;     /* function: the task is done; 0: no task */
    LessonWords  show;     /* count 0: what the step before showed */
    LessonWords  solution; /* what does the task; for the check */
    LessonRun    runs[LESSON_RUNS_MOST];
    int          run_count;
    LessonAsk    ask;
    const char  *question;
    LessonChoice choices[LESSON_CHOICES_MOST];
    int          choice_count;
    int          answer;  /* choice from 1; 0: `answer_of` says it */
    int          answer_of; /* function: the number, or the choice */
    double       within;  /* share of the number that an answer may be off; of 0: itself */
    const char  *unit;    /* said behind the number; NULL: none */
} LessonStep;

/* What it takes a learner: all there is to read, to type and to find out. */
typedef struct LessonEffort {
    int    words;     /* all that is read, with what comes with the right answers */
    int    keys;      /* pressed to answer, to do the tasks and to go on */
    int    questions; /* and tasks: each wants something to be looked for */
    double waited;    /* seconds for runs, on this machine */
} LessonEffort;

typedef struct Lesson {
    char        id[LESSON_NAME]; /* of the file's name */
    const char *title, *summary;
    int         minutes;
    char       *file; /* where it was read, or NULL: it came with the program */
    LessonStep  steps[LESSON_STEPS_MOST];
    int         count;
    LessonEffort effort; /* of a lesson that was checked */
    Arena      *arena; /* of the texts */
    const struct LessonReader *reader;
    void       *state; /* the reader's */
} Lesson;

/* ---- what functions of a lesson are told ----------------------------------------- */

typedef struct LessonFact {
    const char   *name;     /* of a run; NULL: a pane */
    Result       *result;   /* NULL: there is none yet */
    const Record *measured; /* NULL: not measured */
    const char   *view;     /* of a pane */
    int64_t       head, query, key; /* of a pane; query, key -1: not known */
    bool          sorted;
} LessonFact;

#define LESSON_PANES_MOST 6
#define LESSON_FACTS_MOST (LESSON_PANES_MOST + LESSON_RUNS_MOST)

typedef struct LessonFacts {
    LessonFact items[LESSON_FACTS_MOST];
    int        count;
} LessonFacts;

typedef enum LessonKind { LESSON_NIL, LESSON_TRUTH, LESSON_NUMBER, LESSON_STRING } LessonKind;

typedef struct LessonValue {
    LessonKind kind;
    bool       truth;
    double     number;
    Text       text; /* owned */
} LessonValue;

typedef struct LessonReader {
    /* Fills a zeroed lesson whose id and arena are set; the error names step and field.
     * name: of the file, for messages. */
    bool (*read)(Lesson *lesson, const char *name, const char *text, size_t length, Error *err);
    bool (*call)(const Lesson *lesson, int function, const LessonFacts *facts, LessonValue *out,
                 Error *err);
    void (*close)(void *state);
    /* The explorer has a key of that name; NULL: nobody knows its keys. */
    bool (*knows_key)(const char *name, size_t length);
} LessonReader;

/* Who reads lessons for this session; borrowed. */
void session_on_lessons(Session *s, const LessonReader *reader);
/* Where this session's lessons run, but for what names its device itself; words as
 * request_device takes them.  The CPU until then. */
bool session_lessons_on(Session *s, const char *device, const char *precision, Error *err);

/* ---- finding and reading ---------------------------------------------------------- */

typedef struct LessonFile {
    char  id[LESSON_NAME];
    char *path; /* owned; NULL: it came with the program */
    const unsigned char *bytes; /* of one that came with the program */
    size_t size;
} LessonFile;

typedef struct LessonList {
    LessonFile *files; /* owned; the program's in their order, then the user's by name */
    int         count;
} LessonList;

/* Those of the program, and of $XDG_DATA_HOME/attnscope/lessons; a user's lesson stands
 * in the place of the program's of the same name. */
bool lessons_find(LessonList *out, Error *err);
void lessons_free(LessonList *list);

/* The caller frees it with lesson_free; NULL with an error. */
Lesson *lesson_open(Session *s, const LessonFile *file, Error *err);
/* A name of the list or a path that ends in .lua. */
Lesson *lesson_open_named(Session *s, const char *name, Error *err);
void    lesson_free(Lesson *lesson);

/* ---- a step ----------------------------------------------------------------------- */

/* What is on the screen at a step: the last `show` up to there; NULL: nothing yet. */
const LessonWords *lesson_shows(const Lesson *lesson, int step);

/* A call made of words; its strings live here and in the lesson. */
typedef struct LessonCall {
    Call  call;
    Text  input, line;
} LessonCall;

/* Inputs "sample:NAME" are the program's own; others are looked for beside the lesson.  Words
 * that name no device get the session's. */
bool lesson_call(Session *s, const Lesson *lesson, const LessonWords *words, LessonCall *out,
                 Error *err);
void lesson_call_free(LessonCall *made);
/* Request of a run beside the panes; its input is loaded into the session. */
bool lesson_run_request(Session *s, const Lesson *lesson, const LessonRun *run, Request *out,
                        Error *err);
/* Errors and kept mass are found in runs of inputs up to this long. */
#define LESSON_QUALITY_TO 1024

/* ---- words and answers ------------------------------------------------------------ */

/* All facts have their result: functions can be called. */
bool lesson_facts_ready(const LessonFacts *facts);

/* Nothing for no text; while runs are under way, an ellipsis for one that is made. */
bool lesson_text(const Lesson *lesson, const LessonText *text, const LessonFacts *facts, Text *out,
                 Error *err);
bool lesson_task_done(const Lesson *lesson, int step, const LessonFacts *facts, bool *done,
                      Error *err);
/* The right answer: a number, or a choice from 1. */
bool lesson_answer(const Lesson *lesson, int step, const LessonFacts *facts, double *out,
                   Error *err);
/* "1 234", "4,096", "1,5", "1.5k", "2 M", "12 %" in the unit that is asked for (NULL: none);
 * false with an error that says what a number looks like. */
bool lesson_number(const char *typed, const char *unit, double *out, Error *err);
/* It is such a number, or may become one with what is typed next; not by x and T, which are keys
 * of the explorer. */
bool lesson_number_begins(const char *typed, const char *unit);
bool lesson_accepts(const LessonStep *step, double right, double given);

/* How far the learner came: a file of lines anyone can read.
 *
 * It stands in $XDG_STATE_HOME/attnscope/lessons.  What is damaged in it costs what the
 * damaged lines said, and no more; a file that is no progress at all is put aside.
 */

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

/* The lessons put into the program by mk/lessons.mk. */

typedef struct ShippedLesson {
    const char          *name; /* of the file; NULL ends the table */
    const unsigned char *bytes;
    size_t               size;
} ShippedLesson;

extern const ShippedLesson lessons_shipped[];

/* A step of a lesson as lines of a width: for the screen, for print, and
 * for the check that it fits. */

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

/* Adds a step to the lesson's effort; facts as the step shows them. */
bool lesson_add_effort(Lesson *lesson, int step, const LessonFacts *facts, Error *err);
/* Of the lesson's effort, without the waiting, which differs on every machine. */
double lesson_minutes(const Lesson *lesson);

/* What a lesson may take beyond the minutes that it promises: it says whole ones. */
#define LESSON_MINUTES_ROOM 0.5

/* The task has this name of a parameter, as a word of its own. */
bool lesson_task_names(const LessonStep *step, const char *name);
/* Sets step->opens_form. */
void lesson_task_read(LessonStep *step);
/* The task names a parameter of one of the panes, or a row of the form that every mechanism
 * has. */
bool lesson_task_names_any(const LessonStep *step, const LessonFacts *facts);

typedef struct LessonKey {
    const char *name; /* in the words */
    size_t      length;
} LessonKey;

#define LESSON_KEYS_MOST 16
/* The keys that the words say to press, how many: "press p, then Enter" has two.  Words in small
 * letters ("press the key") are none. */
int lesson_keys(const char *words, LessonKey keys[LESSON_KEYS_MOST]);

/* A step's runs made here and now: for texts and checks, without a screen. */

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
