/* app/lesson/lesson.h -- a lesson as data: steps with words, runs to look at, and questions.
 *
 * A lesson is one Lua file, but nothing here knows Lua: main gives the session a LessonReader,
 * which makes a Lesson of the file's text and calls the lesson's functions.  A step shows what the
 * words of a command `figure` or `step` draw, so the explorer and the command line show the same.
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

/* Fixed words, or the number of a lesson's function that makes them of the runs. */
typedef struct LessonText {
    const char *fixed;  /* NULL: none, or made */
    int         make;   /* 0: none */
} LessonText;

/* Words of a command: "figure", "full:weights", "--n=64". */
typedef struct LessonWords {
    const char *items[LESSON_WORDS_MOST];
    int         count; /* 0: none */
    int64_t     query, key; /* cell of the cursor; -1: not given */
} LessonWords;

/* A run beside the panes, known to the lesson's functions by its name. */
typedef struct LessonRun {
    char        name[LESSON_NAME];
    LessonWords words;
    bool        measure; /* with time and memory */
    bool        model;   /* words of the command model with one swap: a LessonLoss, no Result */
} LessonRun;

/* A model's loss on a text, as it is and with a mechanism under its heads; nats a token. */
typedef struct LessonLoss {
    int64_t n;          /* tokens */
    double  loss, own;  /* with the mechanism; without */
    double  kl;         /* mean over positions */
    double  agreement;  /* share of positions with the same most probable token */
} LessonLoss;

typedef struct LessonChoice {
    const char *text, *why; /* why the choice is wrong or right; NULL: not given */
} LessonChoice;

typedef enum LessonAsk { LESSON_ASKS_NOTHING, LESSON_ASKS_CHOICE, LESSON_ASKS_NUMBER } LessonAsk;

typedef struct LessonStep {
    const char  *title;
    LessonText   text, now, hint, explain;
    const char  *task;     /* NULL: none */
    bool         opens_form; /* the task says to press p, which opens the form of parameters */
    int          done;     /* function: the task is done; 0: no task */
    LessonWords  show;     /* count 0: as the step before */
    LessonWords  solution; /* does the task; used by the check */
    LessonRun    runs[LESSON_RUNS_MOST];
    int          run_count;
    LessonAsk    ask;
    const char  *question;
    LessonChoice choices[LESSON_CHOICES_MOST];
    int          choice_count;
    int          answer;  /* choice, from 1; 0: `answer_of` gives it */
    int          answer_of; /* function: the number, or the choice */
    double       within;  /* tolerance of the answer, as a share of the number */
    const char  *unit;    /* printed after the number; NULL: none */
} LessonStep;

/* A learner's effort: all there is to read, to type and to find out. */
typedef struct LessonEffort {
    int    words;     /* words to read, with the explanation of the right answers */
    int    keys;      /* pressed to answer, to do the tasks and to go on */
    int    questions; /* questions and tasks, each with something to look for */
    double waited;    /* seconds for runs, on this machine */
} LessonEffort;

typedef struct Lesson {
    char        id[LESSON_NAME]; /* of the file's name */
    const char *title, *summary;
    const char *recap; /* what the learner has seen; NULL: none */
    int         minutes;
    char       *file; /* where it was read, or NULL: it came with the program */
    LessonStep  steps[LESSON_STEPS_MOST];
    int         count;
    LessonEffort effort; /* found by lesson_check */
    Arena      *arena; /* of the texts */
    const struct LessonReader *reader;
    void       *state; /* the reader's */
} Lesson;

/* ---- facts that functions of a lesson get ---------------------------------- */

typedef struct LessonFact {
    const char   *name;     /* of a run; NULL: a pane */
    Result       *result;   /* NULL: there is none yet, or a model ran */
    const LessonLoss *loss; /* of a model; NULL: none */
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

/* Where the keys are that the words name: behind the words, in the panes after Tab, in the form
 * after p. */
typedef enum LessonPlace {
    LESSON_IN_WORDS = 1, LESSON_IN_PANES = 2, LESSON_IN_FORM = 4
} LessonPlace;

typedef struct LessonReader {
    /* Fills a zeroed lesson whose id and arena are set; the error names step and field.
     * name: of the file, for messages. */
    bool (*read)(Lesson *lesson, const char *name, const char *text, size_t length, Error *err);
    bool (*call)(const Lesson *lesson, int function, const LessonFacts *facts, LessonValue *out,
                 Error *err);
    void (*close)(void *state);
    /* The explorer has a key of this name in one of these places (bits of LessonPlace), or
     * anywhere (0); NULL: keys are not checked. */
    bool (*knows_key)(const char *name, size_t length, unsigned places);
} LessonReader;

/* Who reads lessons for this session; borrowed. */
void session_on_lessons(Session *s, const LessonReader *reader);
/* Device of the session's lessons where their words name none; words as of request_device.  At
 * first the CPU. */
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

/* The program's lessons, those of attnscope/lessons in the folders of $XDG_DATA_DIRS, and those of
 * $XDG_DATA_HOME/attnscope/lessons; of several with one name the last replaces the others. */
bool lessons_find(LessonList *out, Error *err);
void lessons_free(LessonList *list);

/* The caller frees it with lesson_free; NULL with an error. */
Lesson *lesson_open(Session *s, const LessonFile *file, Error *err);
/* "5": the fifth of `count` lessons; 0: no such number. */
int     lesson_ordinal(const char *name, int count);
/* A name of the list, its number there, or a path that ends in .lua. */
Lesson *lesson_open_named(Session *s, const char *name, Error *err);
void    lesson_free(Lesson *lesson);

/* ---- a step ----------------------------------------------------------------------- */

/* What the screen shows at a step: the last `show` up to it; NULL: nothing yet. */
const LessonWords *lesson_shows(const Lesson *lesson, int step);

/* A call made of words; it owns its strings, or the lesson does. */
typedef struct LessonCall {
    Call  call;
    Text  input, line;
} LessonCall;

/* Inputs "sample:NAME" are the program's own; other files are relative to the lesson.  Words
 * without a device get the session's. */
bool lesson_call(Session *s, const Lesson *lesson, const LessonWords *words, LessonCall *out,
                 Error *err);
void lesson_call_free(LessonCall *made);
/* Request of a run beside the panes; its input is loaded into the session. */
bool lesson_run_request(Session *s, const Lesson *lesson, const LessonRun *run, Request *out,
                        Error *err);
/* Largest input on which runs are compared with full attention. */
#define LESSON_QUALITY_TO 1024
/* Loss of a run of a model.  It is made at once, so the model must be small. */
#define LESSON_MODEL_MOST (8 << 20) /* bytes of the file */
bool lesson_run_loss(Session *s, const Lesson *lesson, const LessonRun *run, LessonLoss *out,
                     Error *err);

/* ---- words and answers ------------------------------------------------------------ */

/* All facts have their result, so functions can be called. */
bool lesson_facts_ready(const LessonFacts *facts);

/* Appends the text; an ellipsis for a made text while runs are not finished. */
bool lesson_text(const Lesson *lesson, const LessonText *text, const LessonFacts *facts, Text *out,
                 Error *err);
bool lesson_task_done(const Lesson *lesson, int step, const LessonFacts *facts, bool *done,
                      Error *err);
/* The right answer: a number, or a choice from 1. */
bool lesson_answer(const Lesson *lesson, int step, const LessonFacts *facts, double *out,
                   Error *err);
/* Reads "1 234", "4,096", "1,5", "1.5k", "2 M", "12 %", "64*64", "2^10 + 1" in the unit asked for
 * (NULL: none); false with an error that shows the form of a number. */
bool lesson_number(const char *typed, const char *unit, double *out, Error *err);
/* The text is such a number, or may become one with further typing.  No unit begins with T, a key
 * of lessons. */
bool lesson_number_begins(const char *typed, const char *unit);
bool lesson_accepts(const LessonStep *step, double right, double given);
/* "72.8 %", as a right number is shown: whole numbers as they are, others in three digits. */
#define LESSON_RIGHT 400 /* bytes that hold the largest double there is, its unit, and words */
const char *lesson_right_text(const LessonStep *step, double right, char *out, size_t size);

/* A learner's progress, as a text file of lines.
 *
 * It is $XDG_STATE_HOME/attnscope/lessons.  A damaged line loses its own lesson only; a file that
 * is no progress is renamed and kept.
 */

#define PROGRESS_MOST 256

typedef struct LessonProgress {
    char     id[LESSON_NAME];
    int      at;   /* step where the learner left */
    uint32_t done; /* bit of each step */
} LessonProgress;

typedef struct Progress {
    LessonProgress items[PROGRESS_MOST];
    int            count;
    int            damaged; /* damaged lines; -1: the whole file */
} Progress;

/* Parses the text of the file. */
void progress_parse(const char *text, Progress *out);
void progress_write(const Progress *progress, Text *out);

/* Reads the file; no file is no progress. */
void progress_read(Progress *out);
/* Progress of a lesson; zeroed where there is none. */
LessonProgress progress_of(const Progress *progress, const char *id);
/* Replaces the lesson's progress. */
void progress_put(Progress *progress, const LessonProgress *item);
/* Reads the file again, changes this lesson and writes it: two explorers may share the file. */
bool progress_save(const LessonProgress *item, Error *err);
int  progress_steps(const LessonProgress *item); /* steps done */

/* Of a lesson that came with the program, from 1; 0 where there is none of that id. */
int lesson_place(const char *id);
/* Adds "lesson    lsh (5): attnscope lesson lsh", of a lesson that came with the program. */
void lesson_reference(const char *id, Text *out);

/* The lessons inside the program, made by mk/lessons.mk. */

typedef struct ShippedLesson {
    const char          *name; /* file name; NULL ends the table */
    const unsigned char *bytes;
    size_t               size;
} ShippedLesson;

extern const ShippedLesson lessons_shipped[];

/* ---- a step as lines of a width: for the screen, for print, for the check that it fits ---- */

/* Room for the words on the smallest usual screen, 80x24, with the panes beside them. */
#define LESSON_PAGE_WIDTH 40
#define LESSON_PAGE_LINES 19
/* Room for a task above the form of parameters, on 60x16. */
#define LESSON_TASK_WIDTH 32
#define LESSON_TASK_LINES 4

typedef enum LessonLineKind {
    LESSON_LINE_TEXT,
    LESSON_LINE_TASK,
    LESSON_LINE_DONE, /* the task is done */
    LESSON_LINE_NOW,
    LESSON_LINE_QUESTION,
    LESSON_LINE_CHOICE,
    LESSON_LINE_CHOSEN,
    LESSON_LINE_FIELD, /* the answer is typed here */
    LESSON_LINE_RIGHT,
    LESSON_LINE_WRONG,
    LESSON_LINE_HINT,
} LessonLineKind;

typedef struct LessonLine {
    LessonLineKind kind;
    size_t         at; /* start of its text */
} LessonLine;

typedef struct LessonPage {
    Text        text;
    LessonLine *lines; /* owned */
    int         count, capacity;
    bool        failed;
} LessonPage;

/* How far the learner is in the step, and what is shown. */
typedef struct LessonSight {
    int         chosen;   /* choice from 0; -1: none is */
    bool        hint;     /* it is shown */
    bool        done;     /* the task is, since its panes were opened */
    bool        answered; /* rightly */
    const char *reply;    /* reply to the last answer; NULL: none */
    bool        right;
    const char *instead; /* mechanism in a pane in place of the step's; NULL: it is the step's */
    const char *moved;    /* words about a head that is not the step's; NULL: none */
    const char *fault;    /* why the task cannot be judged; NULL: it can */
    bool        lenient;  /* a text that cannot be made is a short notice, no error */
    bool        untouched; /* the panes are the step's, so that notice is the lesson's error */
    const char *explain;  /* as it was made when the step was done; NULL: of the facts as given */
} LessonSight;

/* Lays out all there is to read at the step.  Free the page also on failure. */
bool lesson_page(const Lesson *lesson, int step, const LessonFacts *facts,
                 const LessonSight *sight, int width, LessonPage *out, Error *err);
/* Task and present state of the step, or its question where it has no task: what must stay in
 * sight while a form is open. */
bool lesson_brief(const Lesson *lesson, int step, const LessonFacts *facts,
                  const LessonSight *sight, int width, LessonPage *out, Error *err);
/* The page after the last step: what was seen, the steps still open (`done` has a bit of each that
 * is not), and the next lesson.  next: its title; NULL: none. */
bool lesson_closing(const Lesson *lesson, uint32_t done, const char *next, int width,
                    LessonPage *out, Error *err);
const char *lesson_line(const LessonPage *page, int index);
void        lesson_page_free(LessonPage *page);

/* Adds the step to lesson->effort; facts as the step shows them. */
bool lesson_add_effort(Lesson *lesson, int step, const LessonFacts *facts, Error *err);
/* Minutes of the lesson's effort, without the waiting for runs. */
double lesson_minutes(const Lesson *lesson);

/* A lesson may take so much longer than the whole minutes that it states. */
#define LESSON_MINUTES_ROOM 0.5

/* The task names this parameter, as a whole word. */
bool lesson_task_names(const LessonStep *step, const char *name);
/* The step's fixed words say to press this key. */
bool lesson_step_names_key(const LessonStep *step, const char *name, size_t length);
bool lesson_task_names_key(const LessonStep *step, const char *name, size_t length); /* its task */
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
/* Finds the keys that the words say to press: "press p, then Enter" has two, "press the key" none
 * (lower case words are no keys).  Returns their number. */
int lesson_keys(const char *words, LessonKey keys[LESSON_KEYS_MOST]);

/* ---- a step's runs, made at once: for texts and checks, without a screen ---- */

/* Panes and runs of a step; the results are retained. */
typedef struct LessonPlay {
    LessonFacts facts;
    LessonLoss  losses[LESSON_RUNS_MOST];
    int         loss_count;
    char        views[LESSON_PANES_MOST][48];
} LessonPlay;

/* words: of the panes; NULL: as the step shows. */
bool lesson_play(Session *s, const Lesson *lesson, int step, const LessonWords *words,
                 LessonPlay *out, Error *err);
void lesson_play_free(LessonPlay *play);

/* The view has the cell of the lesson's cursor. */
bool lesson_cursor_fits(const View *view, int64_t query, int64_t key, Error *err);

/* Plans the words and loads their input; asks for quality where that is quick. */
bool lesson_plan(Session *s, const LessonCall *made, FigurePlan *plan, Error *err);

/* ---- the check of a lesson ----------------------------------------------- */

/* Prints a line for each fault and returns their number.  Finds the lesson's effort. */
int lesson_check(Session *s, Lesson *lesson, Text *out);

#endif
