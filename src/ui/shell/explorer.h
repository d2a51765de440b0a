/* ui/shell/explorer.h -- everything the explorer has open; shared by the ui files only. */
#ifndef UI_SHELL_EXPLORER_H
#define UI_SHELL_EXPLORER_H

#include "app/call.h"
#include "app/figure/plan.h"
#include "app/result/cell.h"
#include "app/session/session.h"
#include "app/study/vary.h"
#include "ui/pane/pane.h"
#include "ui/pane/reduction.h"
#include "ui/pane/row.h"
#include "ui/screen/lessons.h"
#include "ui/screen/params.h"
#include "ui/state/history.h"
#include "ui/term/term.h"

#define PANES_MOST 6

typedef enum Screen {
    SCREEN_BROWSE,
    SCREEN_COMPARE,
    SCREEN_STEP,
    SCREEN_PROFILE,
    SCREEN_LESSONS,
    SCREEN_COUNT
} Screen;

/* Where an action is valid: bits. */
enum {
    IN_BROWSE = 1,
    IN_COMPARE = 2,
    IN_PROFILE = 4,
    IN_INSPECT = 8, /* the cell overlay */
    IN_PARAMS = 16,
    IN_TEXT = 32, /* pager */
    IN_LIST = 64, /* help and palette */
    IN_PROMPT = 128,
    IN_EXPORT = 256,
    IN_CONFIRM = 512,
    IN_EMPTY = 1024,  /* compare without a pane */
    IN_FILTER = 2048, /* of the list, being typed */
    IN_SEARCH = 4096,
    IN_STEP = 8192,
    IN_FILLED = IN_BROWSE | IN_COMPARE | IN_STEP | IN_PROFILE,
    IN_LESSONS = 131072, /* the list of lessons */
    IN_LESSON = 262144,  /* the words of the lesson that runs */
    IN_SCREENS = IN_FILLED | IN_EMPTY | IN_LESSONS | IN_LESSON,
    IN_LISTED = IN_BROWSE | IN_FILTER,
    IN_MATRIX = IN_COMPARE | IN_INSPECT,
    IN_SPAN = 16384, /* the picture of a query */
    IN_VARY = 32768, /* one parameter at several values */
    IN_OVERVIEW = 65536, /* all layers and heads */
    IN_LAID = IN_INSPECT | IN_SPAN | IN_VARY | IN_OVERVIEW, /* pictures over the panes */
    IN_CONSOLE = 524288, /* Lua, typed */
    IN_ALL = 1048575,
};

/* Something laid over the screen; it gets the keys first. */
typedef struct Layer {
    const char *mode;  /* "PARAM", in the first line */
    unsigned    scope; /* one IN_ bit */
    void (*draw)(Ui *ui);
    bool (*key)(Ui *ui, uint32_t key); /* true: taken.  NULL: actions only */
    void (*leave)(Ui *ui);             /* Esc; NULL: nothing to undo */
    const char *escape;                /* what Esc does, in the last line; NULL: "close" */
    void (*press)(Ui *ui, const Event *event); /* of the mouse; NULL: the wheel alone */
} Layer;

/* Words on the screen that a click on them does. */
typedef struct Hit {
    int                  y, x, width;
    const struct Action *action;
} Hit;
#define HITS_MOST 32

typedef struct Browse {
    Field    filter;
    bool     filtering;   /* keys go to the filter */
    int      order;       /* BROWSE_BY_* */
    uint64_t folded[3];   /* in each order: bits of groups */
    int      cursor, top; /* line of the list */
    bool     marked[128]; /* by index in the table */
    int64_t  card_scroll;
    Session *side; /* owned; its input is the sample cut to 64; NULL: not open */
    bool     side_failed;
    Result  *thumbs[128]; /* retained, of `side` */
    Job     *thumb_job;
    int      thumb_of; /* index the job is for */
    bool     thumb_failed[128];
    Drawing  thumb;
} Browse;

typedef struct Compare {
    Pane panes[PANES_MOST];
    int  count, focus;
    int  first; /* first pane on the screen when not all fit */
    bool solo, linked, difference, labels, adding;
    bool effect; /* panes without and with one position, their difference, the bias */
    char layout[8];    /* ROWSxCOLS of the panes; "": as they are largest */
    MarginKind strips; /* beside the matrices */
    Marks marks;       /* queries seen together */
    bool align; /* the views are to be made alike once all panes have a result */
    char sought[64];
    int  drag_y, drag_x; /* -1: no drag */
} Compare;

/* The focused pane's run, stage by stage. */
typedef struct Stepping {
    Pane   panes[2]; /* the step's matrix by position, and sorted; they own no request */
    const Mechanism *of; /* whose stages; another one begins at its first */
    int    at;       /* step */
    bool   playing, sorted_alone;
    int    speed;    /* index of the pace */
    double pace;     /* seconds a stage stays, as a script wants it; 0: that of the index */
    double due;      /* when playing goes on, seconds */
    int64_t token;   /* first of the line of tokens in sight */
    int64_t row;     /* query whose running numbers are told; -1: the last */
} Stepping;

/* What the profile screen shows: profile.h. */
typedef struct Profiling {
    int              view;
    int              line;     /* of a GPU's page, the first in sight */
    bool             known;    /* the ceilings are measured */
    bool             failed;   /* they cannot be */
    Ceilings         ceilings;
    const Ops       *ops;      /* whose ceilings; NULL: not asked for */
    struct RoofWork *work;     /* measures them; NULL: none */
    struct Scaling  *scaling;  /* time over n: profile.h; owned; NULL: not begun */
} Profiling;

/* What the inspector has found out of a result. */
typedef struct Inspecting {
    CellReader   *reader; /* owned; NULL: nothing yet */
    const Result *of;     /* to compare with only */
    bool          by_key; /* its row by position instead of weight */
} Inspecting;

/* What the query under the cursor sees, on the image. */
typedef struct Spanning {
    Arena        *arena; /* owned: of the picture; NULL: none yet */
    Panel         panel;
    Grid          grid;
    const Result *of; /* what they are of; to compare with only */
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
    int64_t ready;         /* tiles as last counted */
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

/* One parameter of a pane at several values: a run after the other, as they come. */
typedef struct Varying {
    Sweep         sweep;    /* count 0: none yet */
    Job          *job;      /* of the point below; NULL: none under way */
    int           line, point;
    int           main;     /* the line of the pane */
    int           pane;     /* its index when it began */
    const Input  *input;    /* it began on; to compare with only */
    bool          stopped, told;
    bool          seeks;    /* the smallest value that reaches the goal is to be set */
    bool          closes_in; /* between the values there are, too */
    SweepGoal     goal;
    SweepQuantity loss, cost; /* of the plots */
    int           cursor;   /* among the points from left to right */
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
    bool from_end;
    char sought[128]; /* "": nothing */
    int  found;       /* its line */
} Pager;

typedef enum PromptKind { PROMPT_COMMAND, PROMPT_SEARCH, PROMPT_ASK } PromptKind;

typedef struct Prompt {
    PromptKind kind;
    Field      field;
    char       past[32][256]; /* newest last */
    int        past_count, past_at;
    char       choices[512]; /* what Tab found; what a script asks */
} Prompt;

typedef struct Export {
    Field              field;
    char               problem[512]; /* of what was typed; "": none */
    struct ExportWork *work; /* being written; NULL: none */
} Export;

typedef struct Commanding {
    struct CommandWork *work; /* a command that runs; NULL: none */
} Commanding;

struct Ui {
    Term        *term;
    Session     *session;
    Draughtsman  draughtsman;
    Theme        theme;
    Glyphs       glyphs;
    Screen       screen;
    const Layer *layers[6];
    int          layer_count;
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
    struct Console *console; /* owned; NULL: no scripts */
    struct Journal *journal; /* owned; what was done; NULL: nothing yet */
    bool         keep_messages; /* on leaving */
    char         session_name[256]; /* last saved or restored; "": none */
};

double ui_now(void); /* seconds, monotonic */

/* Message line; also kept in the log. */
void  ui_say(Ui *ui, Role role, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same for what is of this moment only: it is not kept. */
void  ui_hint(Ui *ui, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
Style ui_style(const Ui *ui, Role role);

void ui_push(Ui *ui, const Layer *layer);
void ui_pop(Ui *ui); /* without telling it */
bool ui_has(const Ui *ui, const Layer *layer);
/* Room of the screen's own between the lines, beside a lesson that runs. */
Area ui_area(const Ui *ui);
/* The IN_ bit of the screen under the layers. */
unsigned ui_screen_scope(const Ui *ui);
/* The IN_ bit that decides which keys are valid now. */
unsigned ui_scope(const Ui *ui);
bool     ui_job_runs(const Ui *ui);

/* ---- the parts, each in its file -------------------------------------------- */

bool status_draw(Ui *ui);        /* first and last lines; false: the terminal is too small */

bool status_tells(const Ui *ui); /* the message line is taken: a message, or what runs */
bool status_fits(const Ui *ui);  /* false: nothing but that is said */
void status_draw_long(Ui *ui);   /* a message that needs more than its line, over the screen */

void browse_draw(Ui *ui, Area area);
bool browse_key(Ui *ui, uint32_t key);
bool browse_poll(Ui *ui);
void browse_press(Ui *ui, const Event *event);
void browse_close(Ui *ui);
void browse_forget(Ui *ui, const Mechanism *changed); /* its picture */
int  browse_chosen(Ui *ui); /* index in the table, -1: none */
void browse_filter(Ui *ui); /* a new filter is typed */
void browse_show_all(Ui *ui); /* no filter */
void card_text(const Mechanism *m, Text *out);

Pane *compare_focus(Ui *ui);              /* NULL: no pane */
void  compare_prepare(Ui *ui, Area area); /* lays out, asks for drawings */
void  compare_draw(Ui *ui, Area area);
void  compare_link(Ui *ui); /* the others follow the focused pane */
/* A pane's first cursor: where the linked panes have theirs; false: nowhere yet. */
bool compare_adopt(Ui *ui, Pane *pane);
bool  compare_poll(Ui *ui);
void  compare_mouse(Ui *ui, const Event *event);
void  compare_close(Ui *ui);
/* A pane for "bigbird(window=5):weights@1"; NULL with a message. */
Pane *compare_open(Ui *ui, const char *text);
/* A pane for a mechanism picked from a list: with its sketch on a short input. */
Pane *compare_pick(Ui *ui, const Mechanism *m);
/* A pane for a request, which it takes over; NULL with a message (then it is freed). */
Pane *compare_open_request(Ui *ui, Request *request);
/* The panels of a plan, as many as there is room for, in the place of all panes. */
void compare_open_plan(Ui *ui, FigurePlan *plan);
/* A preset in panes, on its own input; with a message. */
void compare_open_preset(Ui *ui, const char *name);
/* The focused pane shows that view, or why it does not is said; "": which there are. */
void compare_typed_view(Ui *ui, const char *name);
/* The pane's request was changed: it is run, and what hangs on it. */
void compare_run(Ui *ui, Pane *pane);
/* Device and precision only; of the layers above, too. */
void compare_take_place(Request *to, const Request *from);
/* Asks for what the focused pane cannot run without. */
void compare_ask(Ui *ui);
void compare_clear(Ui *ui); /* closes all panes */
void compare_search(Ui *ui, const char *text);

void               inspect_line(Ui *ui, int y);
void               inspect_dock(Ui *ui, Area area);
void               inspect_close(Ui *ui);
extern const Layer inspect_layer;

extern const Layer span_layer;
void               span_close(Ui *ui);

extern const Layer overview_layer;
bool               overview_poll(Ui *ui);           /* true: something is to be drawn */
double             overview_deadline(const Ui *ui); /* seconds from now; < 0: none */
void               overview_close(Ui *ui);

void   step_prepare(Ui *ui, Area area);
void   step_draw(Ui *ui, Area area);
bool   step_poll(Ui *ui);             /* true: something is to be drawn */
double step_deadline(const Ui *ui);   /* seconds from now; < 0: none */
bool   step_pending(const Ui *ui);    /* a first drawing is still to come */
void   step_close(Ui *ui);
void   step_go(Ui *ui, int at);

void profile_draw(Ui *ui, Area area);
bool profile_poll(Ui *ui); /* true: something is to be drawn */
void profile_close(Ui *ui);
/* "130 kFLOP" */
char *flops_text(double flops, char *text, size_t size);
void profile_bars(Ui *ui, Area area, bool wide);

void               params_open(Ui *ui);
void               params_tick(Ui *ui);           /* the live re-run */
double             params_deadline(Ui *ui); /* seconds from now; < 0: none */
Area               params_area(Ui *ui);             /* what the editor covers */
extern const Layer params_layer;

/* "features=16:512:x2"; and "NAME=RANGE 95%": the smallest value that keeps so much is set. */
void vary_enter(Ui *ui, const char *range);
void vary_enter_goal(Ui *ui, const char *text);
/* Over the row of a pane's parameter editor; false with a message: it has no range. */
bool vary_param(Ui *ui, int pane, const Param *param, bool seek);
bool vary_poll(Ui *ui);   /* true: something is to be drawn */
bool vary_cancel(Ui *ui); /* false: nothing runs */
/* "features: 3 of 6, performer at 64"; false: nothing runs. */
bool vary_progress(const Ui *ui, char *text, size_t size);
void vary_close(Ui *ui);
void vary_layer_draw(Ui *ui);
/* The pane it began on, while it is still that; else NULL. */
Pane *vary_pane(Ui *ui);
/* Place on the axis of the value that the pane has; NaN: none there. */
double vary_now(Ui *ui);
extern const Layer vary_layer;

void               help_open(Ui *ui, bool palette);
extern const Layer help_layer;
void               pager_open(Ui *ui, const char *title, const char *text, bool from_end);
/* Goes to the first line from here on that holds the text. */
void               pager_search(Ui *ui, const char *text);
extern const Layer pager_layer;
void               prompt_open(Ui *ui, PromptKind kind);
/* A script's question; the answer goes to console_answer. */
void               prompt_ask(Ui *ui, const char *question);
extern const Layer prompt_layer, search_layer, ask_layer;
/* Runs a typed line: a command, an action, or a mechanism to open. */
void               say_glyphs(Ui *ui);
void               command_enter(Ui *ui, const char *line);
bool               command_poll(Ui *ui);
bool               command_cancel(Ui *ui); /* false: none runs */
void               command_close(Ui *ui);
void               command_complete(Ui *ui, Field *field, char *choices, size_t size);
void               export_open(Ui *ui);
/* Writes what is on the screen; with a message.  False: nothing is written. */
bool               export_start(Ui *ui, const char *path);
bool               export_poll(Ui *ui);
bool               export_cancel(Ui *ui);
void               export_close(Ui *ui);
extern const Layer export_layer;
extern const Layer confirm_layer;

/* The loop of the explorer, for ui.c. */

void explorer_loop(Ui *ui); /* until it is left */
/* As if the key was pressed. */
void explorer_key(Ui *ui, uint32_t key);
/* The earlier of two times in seconds from now; < 0: none. */
double deadline_earlier(double a, double b);

/* What the last line but one has said so far: seen, found, written, kept. */

/* Adds the message that is shown now to the log, with its time. */
void messages_add(Ui *ui);
/* Where it was asked for: the log goes to the end of the file in the state folder. */
bool messages_keep(Ui *ui, Error *err);
/* :messages FILE writes them; :messages keep, :messages drop: on leaving, or not. */
void messages_typed(Ui *ui, const char *rest);

/* Inside of the first screen; for its own files. */

#define LINES_MOST 256
#define MARKS_MOST 128 /* mechanisms there may be */

enum { BROWSE_BY_CLASS, BROWSE_BY_YEAR, BROWSE_BY_COST, BROWSE_ORDERS };

/* A line of the list: a group or a mechanism. */
typedef struct BrowseLine {
    int  index; /* of the mechanism; -1: a heading */
    int  group; /* of the order: a bit of Browse.folded */
    char text[64];
} BrowseLine;

typedef struct BrowseList {
    BrowseLine lines[LINES_MOST];
    int        count, mechanisms;
} BrowseList;

/* Lines as filtered and folded; clamps the cursor to them. */
void browse_list(Browse *browse, BrowseList *list);
bool browse_is_folded(const Browse *browse, int group);
/* The cursor to the mechanism that shows finished weights. */
void browse_find_weights(Ui *ui);
/* Where a mechanism stands; 0: not in sight. */
int  browse_line_of(const BrowseList *list, int index);
void browse_list_draw(Ui *ui, Area area, const BrowseList *list);
/* The card of mechanism `index`, with its thumbnail. */
void browse_card_draw(Ui *ui, Area area, int index);

#endif
