/* ui/state/explorer.h -- everything the explorer has open; shared by the ui files only. */
#ifndef UI_STATE_EXPLORER_H
#define UI_STATE_EXPLORER_H

#include "app/call.h"
#include "app/figure/picture.h"
#include "app/figure/plan.h"
#include "app/result/views.h"
#include "app/session/session.h"
#include "app/study/study.h"
#include "ui/pane/costs.h"
#include "ui/screen/lessons.h"
#include "ui/term/term.h"

#define PANES_MOST 6
#define OVERLAYS_MOST 6

typedef enum ScreenId {
#define SCREEN(NAME, name) SCREEN_##NAME,
#include "ui/screen/screens.def"
    SCREEN_COUNT
} ScreenId;

/* Where an action is valid: bits. */
enum {
#define SCREEN(NAME, name) IN_##NAME = 1 << SCREEN_##NAME,
#include "ui/screen/screens.def"
    IN_EMPTY = 1 << SCREEN_COUNT,        /* compare or step without a pane */
    IN_FILTER = 1 << (SCREEN_COUNT + 1), /* of the list, being typed */
    IN_ALL = (1 << (SCREEN_COUNT + 2)) - 1,
    IN_FILLED = IN_BROWSE | IN_COMPARE | IN_STEP | IN_PROFILE,
    IN_SCREENS = IN_FILLED | IN_EMPTY | IN_LESSONS | IN_LESSON | IN_MODEL,
    IN_LISTED = IN_BROWSE | IN_FILTER,
    IN_MATRIX = IN_COMPARE | IN_INSPECT,
    IN_LAID = IN_INSPECT | IN_SPAN | IN_VARY | IN_OVERVIEW, /* pictures over the panes */
};

/* What a key does: a line of ui/shell/actions.def, or of a screen's own table. */
typedef struct Action {
    const char *id, *keys;
    unsigned    scope; /* IN_ bits */
    const char *words, *help;
    void (*run)(Ui *ui); /* NULL: run_with(ui, value) */
    void (*run_with)(Ui *ui, int value);
    int value; /* steps, a direction, on or off */
} Action;

enum { TO_FIRST = -(1 << 20), TO_LAST = 1 << 20 }; /* steps; more than any list has lines */

#define FIGURE_CHOICES_MOST (3 * PANES_MOST)

/* What an export writes of a screen without matrices. */
typedef struct ScreenFigure {
    PanelChoice    choices[FIGURE_CHOICES_MOST];
    int            count;
    PictureOptions options; /* of the choices */
    Figure        *figure;  /* owned; made already, where there are no choices */
    Text           command; /* owned; what draws it again */
} ScreenFigure;

/* A screen, or something laid over one.  Every function may be NULL but `draw`. */
typedef struct Screen {
    const char *tab;   /* "2 Compare", in the first line; NULL: no tab */
    const char *mode;  /* "VIEW", at the right end of the first line */
    unsigned    scope; /* the IN_ bit of its keys */
    unsigned (*scope_now)(const Ui *ui); /* where that bit changes; NULL: it is `scope` */
    void (*draw)(Ui *ui, Area area); /* area: between the first line and the last ones */
    bool (*key)(Ui *ui, uint32_t key); /* true: taken.  NULL: actions only */
    bool (*hint)(Ui *ui, const Action *action); /* its words are in the last line; NULL: all are */
    bool (*needs)(Ui *ui, const Action *action); /* and stay there on any width; NULL: none */
    bool (*open)(Ui *ui);  /* before it is shown; false: it is not */
    void (*close)(Ui *ui); /* overlay: Esc; screen: q, which else goes to the list */
    void (*clear)(Ui *ui); /* screen: Esc */
    const char *escape;    /* what Esc does, in the last line; NULL: "close" */
    void (*keep)(Ui *ui);  /* applies what was set, before another screen opens */
    void (*press)(Ui *ui, const Event *event); /* overlay: a press; screen: all of the mouse */
    void (*turn)(Ui *ui, int by);              /* v: another view of its own; NULL: the pane's */
    void (*find)(Ui *ui, const char *text);    /* what was typed after / */
    void (*filter)(Ui *ui);                    /* / is typed here; NULL: in a line of its own */
    bool (*line)(Ui *ui, int y);     /* draws the message line where there is no message */
    void (*prepare)(Ui *ui, Area area); /* lays out, and asks the worker for drawings */
    bool (*pending)(const Ui *ui);      /* their first answers are still to come */

    /* Work that goes on whether it is shown or not. */
    bool (*poll)(Ui *ui);             /* takes what is finished; true: something is to be drawn */
    double (*deadline)(Ui *ui);       /* seconds until it wants to be polled; < 0: none */
    int (*wake_fd)(const Ui *ui);     /* readable when something is finished; -1: none */
    bool (*runs)(const Ui *ui);       /* something that Ctrl-C would stop */
    bool (*cancel)(Ui *ui);           /* false: nothing ran */
    bool (*progress)(const Ui *ui, char *text, size_t size); /* false: nothing to report */
    void (*forget)(Ui *ui, const Mechanism *changed); /* drops what the old definition made */
    void (*end)(Ui *ui);              /* frees everything, after the terminal is given back */

    /* What an export writes, with an error where there is nothing; NULL: the panes. */
    bool (*figure)(Ui *ui, ScreenFigure *out, Error *err);
    bool (*take)(Ui *ui, Pane *pane); /* a pane opened for a view that this screen shows */
    const Action *actions;            /* its own, beside those of actions.def */
    int           action_count;
} Screen;
#define SCREEN_ACTIONS(table) .actions = table, .action_count = sizeof(table) / sizeof(*table)

/* Words on the screen; a click on them runs the action. */
typedef struct Hit {
    int                  y, x, width;
    const Action *action;
} Hit;
#define HITS_MOST 32

#define MARKS_MOST 128 /* mechanisms at most */

enum { BROWSE_BY_CLASS, BROWSE_BY_YEAR, BROWSE_BY_COST, BROWSE_ORDERS };

typedef struct Browse {
    Field    filter;
    bool     filtering;   /* keys go to the filter */
    int      order;       /* BROWSE_BY_* */
    uint64_t folded[3];   /* in each order: bits of groups */
    int      cursor, top; /* line of the list */
    uint8_t  marked[MARKS_MOST]; /* by index in the table: 0, or which one it is, from 1 */
    Session *side; /* owned; its input is the sample cut to 64; NULL: not open */
    bool     side_failed;
    const Input *side_of; /* the input it was cut from; to compare with only */
    int      side_causal; /* as chosen for new panes */
    Result  *thumbs[128]; /* retained, of `side` */
    Job     *thumb_job;
    int      thumb_of; /* index the job is for */
    bool     thumb_failed[128];
    Drawing  thumb;
} Browse;

/* Relations between the panes; undone and saved. */
typedef struct Arrangement {
    int  focus;
    bool linked; /* cursor and zoom of all panes together */
    bool solo;   /* the focused one alone */
    bool difference; /* to pane 1 */
    bool effect; /* panes without and with one position, their difference, the bias */
} Arrangement;

/* How the panes are drawn; saved, not undone. */
typedef struct PanesLook {
    bool       labels;    /* tokens on the axes */
    MarginKind strips;    /* beside the matrices */
    bool       own_scales; /* each pane its own colours, also of one quantity: sharing.c */
    char       layout[8]; /* ROWSxCOLS of the panes; "": as they are largest */
} PanesLook;

typedef struct Compare {
    Pane panes[PANES_MOST];
    int  count;
    int  first; /* first pane on the screen when not all fit */
    Arrangement now;
    PanesLook look;
    Marks marks; /* queries seen together */
    bool adding; /* a mechanism is being picked for one pane more */
    bool align; /* one common view is chosen once all panes have a result */
    char sought[64]; /* a token, which n goes on to; "": nothing */
    bool seeks_keys; /* among the keys, not the queries */
    int  drag_y, drag_x; /* -1: no drag */
} Compare;

/* The focused pane's run, stage by stage. */
typedef struct Stepping {
    Pane   panes[2]; /* the step's matrix, sorted from the stage on that sorts, and by position;
                        they own no request */
    const Mechanism *of; /* whose stages; another mechanism starts at its first */
    int    at;       /* step */
    bool   playing;
    bool   by_position; /* not in the mechanism's order, where one matrix stands alone */
    int    until;    /* stage at which playing ends; -1: the last */
    int    speed;    /* index of the pace */
    double pace;     /* seconds a stage stays, set by a script; 0: by `speed` */
    double due;      /* when playing goes on, seconds */
    int64_t token;   /* first of the line of tokens in sight */
    int64_t row;     /* query whose running numbers are shown; -1: the last */
    char    sought[64]; /* in the names and notes of stages; "": nothing */
} Stepping;

/* What the profile screen shows: profile.h. */
typedef struct Profiling {
    int              view;
    int              line;     /* of a GPU's page, the first in sight */
    bool             known;    /* the ceilings are measured */
    bool             failed;   /* they cannot be */
    Ceilings         ceilings;
    const Ops       *ops;      /* back end that they are of; NULL: not requested */
    struct RoofWork *work;     /* measures them; NULL: none */
    struct Scaling  *scaling;  /* time over n: profile.h; owned; NULL: not begun */
} Profiling;

/* What the inspector has read from a result. */
typedef struct Inspecting {
    CellReader   *reader; /* owned; NULL: nothing yet */
    const Result *of;     /* to compare with only */
    bool          by_key; /* its row by position instead of weight */
} Inspecting;

/* Keys that the cursor's query sees, laid out on the image. */
typedef struct Spanning {
    Arena        *arena; /* owned: of the picture; NULL: none yet */
    Panel         panel;
    Grid          grid;
    Result       *of; /* retained: what they are of */
    const View   *view;
    int64_t       plane, query;
    int           height, width; /* pixels it was reduced to */
    char          problem[256];
} Spanning;

/* The focused pane's view in all layers and heads. */
typedef struct Overview {
    Tiles  *tiles;  /* owned; NULL: none */
    const Result *of; /* what they are of; to compare with only */
    const View   *view;
    int64_t layers, heads;
    int64_t layer, head;   /* chosen */
    int64_t top, left;     /* first row and column of tiles on the screen */
    int     height, width; /* pixels of a tile */
    int64_t ready;         /* tiles and scores as last counted */
    int64_t *order;        /* owned; [layers * heads] tiles as they stand */
    int     sorted;        /* by the HeadScore of this number, from 1; 0: by layer and head */
    bool    leads;         /* the first place stays chosen while scores arrive */
} Overview;

typedef struct Params {
    int     pane; /* its index */
    int     line, top;
    bool    typing;
    Field   field;
    Request before;     /* owned; for Esc */
    bool    changed;    /* something is to be run */
    double  changed_at; /* seconds */
    char    problem[512];
    Meter   meter;
} Params;

/* Runs of a pane's mechanism over several values of one parameter. */
typedef struct Varying {
    Study         study;    /* count 0: none yet */
    int           main;     /* index of the pane's own line */
    int           pane;     /* its index when it began */
    const Input  *input;    /* of the study; to compare with only */
    bool          stopped, reported;
    bool          seeks;    /* the smallest value that reaches the goal is to be set */
    bool          closes_in; /* tries values between the listed ones, too */
    StudyGoal     goal;
    StudyQuantity loss, cost; /* of the plots */
    int           cursor;   /* among the points from left to right */
    const Param  *wanted;   /* to vary when it is opened; NULL: shows the present study */
    int           wanted_of; /* the pane whose parameter that is */
    bool          wanted_seeks;
} Varying;

typedef struct Console Console;

typedef struct Help {
    Field filter;
    int   line, top;
    bool  palette;
} Help;

typedef struct Pager {
    Text text;
    char title[96];
    int  top, left;
    char sought[128]; /* "": nothing */
    int  found;       /* its line */
} Pager;

typedef enum PromptKind { PROMPT_COMMAND, PROMPT_SEARCH, PROMPT_ASK } PromptKind;

typedef struct Prompt {
    PromptKind kind;
    Field      field;
    Past       past;
    char       choices[512]; /* completions of Tab, or a script's question */
} Prompt;

typedef struct Export {
    Field              field;
    char               problem[512]; /* why the typed name was refused; "": it was not */
    struct ExportWork *work; /* being written; NULL: none */
} Export;

typedef struct Commanding {
    struct CommandWork *work; /* a command that runs; NULL: none */
} Commanding;

#define HISTORY_MOST 64

typedef struct WorkspaceStack {
    struct Workspace *items[HISTORY_MOST]; /* owned; newest last */
    int               count;
} WorkspaceStack;

/* Workspaces before and after, for undo and redo. */
typedef struct History {
    WorkspaceStack past, future;
} History;

struct Ui {
    Term        *term;
    Session     *session;
    Draughtsman  draughtsman;
    Theme        theme;
    Glyphs       glyphs;
    const Screen *const *screens; /* by ScreenId */
    ScreenId     screen;
    ScreenId     overlays[OVERLAYS_MOST]; /* over it; the last one gets the keys */
    int          overlay_count;
    bool         quit, dirty;
    int          signal;   /* that ended us; 0: none */
    Request      defaults; /* causal, seed, threads for new panes; no parameters */
    Hit          hits[HITS_MOST]; /* of the frame on the screen */
    int          hit_count;
    char         message[512];
    Role         message_role;
    Text         log;
    Browse       browse;
    Compare      compare;
    Stepping     stepping;
    Spanning     spanning;
    Profiling    profiling;
    Overview     overview;
    Params       params;
    Varying      varying;
    Help         help;
    Pager        pager;
    Prompt       prompt;
    Export export;
    Commanding command;
    History    history;
    Inspecting inspecting;
    Lessons    lessons;
    struct Modelling *modelling; /* a model with a text; owned; NULL: none */
    struct Console *console; /* owned; NULL: no scripts */
    /* Something happened that scripts wait for (attn.on): its name, and lines of name and value.
     * NULL: no scripts.  Call ui_event. */
    void (*on_event)(Ui *ui, const char *event, const char *lines);
    struct Journal *journal; /* owned; what was done; NULL: nothing yet */
    bool         keep_messages; /* on leaving */
    char         session_name[256]; /* last saved or restored; "": none */
};

double ui_now(void); /* seconds, monotonic */

/* Scripts that wait for that event run. */
void ui_event(Ui *ui, const char *event, const char *lines);

/* ---- words ------------------------------------------------------------------- */

/* Message line; also kept in the log. */
void  ui_say(Ui *ui, Role role, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* As ui_say, but the log does not keep it. */
void  ui_hint(Ui *ui, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
Style ui_style(const Ui *ui, Role role);
/* A frame with a title; focused: its keys are the ones that work. */
void  ui_frame(Ui *ui, Area area, const char *title, bool focused);
/* An empty focused frame over the screen. */
void  ui_window(Ui *ui, Area area, const char *title);
/* The first line of a list in sight, so that `line` is among the `room` lines from there on. */
int   ui_scroll(int top, int line, int room);
/* The place in a list of `count` after `by` steps from `at`, round its ends. */
int64_t ui_round(int64_t at, int64_t by, int64_t count);
/* How many lines of a list are out of sight; nothing where all are seen. */
void  ui_more(Ui *ui, int y, int x, int above, int below);
/* The message line is taken: by a message, by what runs, or by a window over the screen. */
bool  ui_line_taken(const Ui *ui);
/* Something runs that Ctrl-C would stop. */
bool  ui_job_runs(const Ui *ui);
/* Leaves the program; where a job runs, after a question. */
void  ui_ask_to_quit(Ui *ui);
/* The run under way; NULL: none.  *which: its pane. */
const Job *ui_running_job(const Ui *ui, const Pane **which);
/* Progress of the first screen that reports some; its number, or -1. */
int   ui_progress(const Ui *ui, char *text, size_t size);

/* ---- screens and overlays ---------------------------------------------------- */

enum {
#define TAB(NAME, name) +1
#define OVERLAY(NAME, name)
    SCREEN_TABS = 0
#include "ui/screen/screens.def"
};
/* "compare": of a screen with a tab, in saved sessions and for the action that goes to it. */
const char *screen_word(ScreenId id);

/* Opens an overlay, if it can be opened. */
void ui_open(Ui *ui, ScreenId id);
void ui_push(Ui *ui, ScreenId id); /* without its `open` */
void ui_pop(Ui *ui);               /* without its `close` */
bool ui_has(const Ui *ui, ScreenId overlay);
/* What gets the keys: the last overlay, the words of a lesson, or the screen. */
const Screen *ui_front(const Ui *ui);
/* As ui_front, without the overlays. */
const Screen *ui_below(const Ui *ui);
/* The IN_ bits that decide which keys are valid: now, and under the overlays. */
unsigned ui_scope(const Ui *ui);
unsigned ui_screen_scope(const Ui *ui);
Pane *panes_focus(Ui *ui); /* NULL: no pane */
/* Goes to the screen that shows what the pane was opened for; false: that is a matrix. */
bool ui_take(Ui *ui, Pane *pane);
/* A text over the screen; from_end: its last lines first. */
void pager_open(Ui *ui, const char *title, const char *text, bool from_end);
void pager_open_prose(Ui *ui, const char *title, const char *text); /* lines of a readable width */
/* The command line opens with this text in it. */
void ui_prompt(Ui *ui, const char *text);

/* ---- undo and redo (history.c) --------------------------------------------- */

void history_note(Ui *ui); /* before a change */
void history_drop(Ui *ui); /* the newest note: nothing was changed */
bool history_undo(Ui *ui); /* false: nothing to undo */
bool history_redo(Ui *ui);
void history_clear(Ui *ui);

/* ---- room -------------------------------------------------------------------- */

/* Area of the screen: between the status lines, beside the dock of a lesson. */
Area ui_area(const Ui *ui);
/* Area of what is laid over the whole screen: between the status lines. */
Area ui_whole(const Ui *ui);

#define MESSAGE_LINES   6 /* at most */
#define TYPED_AT_BOTTOM (IN_PROMPT | IN_SEARCH | IN_ASK | IN_CONSOLE) /* where messages are */

/* Lines of the message, or of what is typed; what is above makes room for them. */
int  message_lines(const Ui *ui);
bool console_hides(const Ui *ui); /* it leaves the screen too few rows, and takes them */
int  console_height(const Ui *ui); /* rows that it takes at the bottom; 0: it is closed */
/* Columns of a lesson's dock; the panes have the rest.  On narrow terminals none while the
 * panes have the keys. */
int  lesson_width(const Ui *ui);
/* The lesson has a dock on the screen that is open. */
bool lessons_docked(const Ui *ui);
/* The dock is there and receives the keys. */
bool lessons_focused(const Ui *ui);
/* True: Tab moved the keys from the dock to the panes, or back. */
bool lessons_passes(Ui *ui, int direction);

#endif
