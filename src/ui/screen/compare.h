/* ui/screen/compare.h -- inside of the compare screen; for its own files. */
#ifndef UI_SCREEN_COMPARE_H
#define UI_SCREEN_COMPARE_H

#include "app/result/steps.h"
#include "ui/shell/explorer.h"

/* Rooms of the compare screen. */
typedef struct CompareRooms {
    Area panes, dock, strip; /* h 0: not there */
    int  legend_y;           /* two lines */
    int  rows, cols, shown;  /* tiles */
} CompareRooms;

CompareRooms compare_rooms(Ui *ui, Area area);
void         compare_state(Ui *ui, Area line); /* below the legend */
void         legend_draw(Ui *ui, int y, int x); /* what colours mean, on one line */
void         pane_draw(Ui *ui, Pane *pane, int number, bool focused);
/* A plot on the screen. */
void         plot_draw(Ui *ui, const Plot *plot, Area area);
/* Marked cells over its matrix. */
void         notes_draw(Ui *ui, const Pane *pane, const Panel *panel, const LensView *v,
                        GlyphSize glyph);
/* Asks for what its matrix shows, as laid out. */
void         pane_want_drawing(Ui *ui, Pane *pane);
/* Where the matrix stands in the pane's area. */
void pane_lay_out(Ui *ui, Pane *pane, Area area);
/* Room that the strips take beside and above a matrix in the area; and what they show. */
Area strips_room(Ui *ui, Pane *pane, Area area);
void strips_want(Ui *ui, Pane *pane);
void strips_draw(Ui *ui, Pane *pane);
/* Room that the view's loads take beside and below its matrix in the canvas; what they show;
 * and what their colours mean, for all panes: the column after it. */
Area loads_room(const Pane *pane, const Panel *panel, Area canvas);
void loads_draw(Ui *ui, const Pane *pane, const Panel *panel);
int  legend_loads(Ui *ui, int y, int x);
/* "strips: sums" of the focused pane, with what of it was read; nothing where they are off. */
void strips_describe(Ui *ui, const Pane *pane, Text *out);
/* Once the panes opened together have results: views of one kind; true: something changed. */
bool compare_align(Ui *ui);
/* The pane of the bias goes where there is none; true: it went. */
bool effect_poll(Ui *ui);
/* Reads the row under the cursor; false: not at hand. */
bool pane_row(Ui *ui, Pane *pane, int64_t q);
/* The marked queries that the pane's view has; returns how many. */
int  pane_marked(Ui *ui, const Pane *pane, int64_t *queries);
/* Reads their sum or mean; false: none is marked, or it is not at hand. */
bool pane_marked_row(Ui *ui, Pane *pane);

/* The focused pane if a matrix stands in it, else NULL. */
Pane *seen_pane(Ui *ui);
/* Cursor to an entry (token order), in sight, the others following. */
void go_to_cell(Ui *ui, Pane *pane, int64_t q, int64_t k);

/* What one pane says about a cell. */
typedef struct CellFacts {
    bool    known; /* the pane has such a cell */
    bool    allowed;
    bool    number; /* value means something beyond allowed */
    double  value;
    int64_t rank, of; /* 0: not at hand */
    uint8_t bits;
    char    text[80]; /* "0.187 #2/9 window" */
} CellFacts;
#define REACHED_IN "reached in " /* how facts of reach begin */
CellFacts cell_facts(Ui *ui, Pane *pane, int64_t q, int64_t k);
/* "window+pooled cell": components of a cell, by the view's own name for what is other. */
void        bits_text(const View *view, uint8_t bits, char *text, size_t size);
/* The same of a cell of a row that was read: "dense" where nothing was chosen. */
void        reason_text(const Row *row, uint8_t bits, char *text, size_t size);
/* All about a cell, a line each, for the inspector; narrow screens leave out what its title
 * says. */
void        inspect_facts(Ui *ui, Pane *pane, int64_t q, int64_t k, Text *out);
/* "bigbird on cuda bf16, weights": of the numbers around the cell; of a narrow pane the place is
 * one word, and the CPU's is said only beside another. */
void        inspect_title(Ui *ui, const Pane *pane, int width, char *text, size_t size);
/* The place alone, added to a title. */
void        inspect_place(const Ui *ui, const Pane *pane, char *text, size_t size);
#define INSPECT_WIDE 76 /* columns for the cell and the numbers around it */
/* Token of an entry of a view's axis; NULL: no labels, or the axis is not of tokens. */
const char *row_token(const Pane *pane, const View *view, int64_t index);
const char *col_token(const Pane *pane, const View *view, int64_t index);
/* At most so many columns of it, cut with an ellipsis. */
char       *token_short(const char *token, int columns, char *text, size_t size);
/* Ends of the colours of a pane; false: its colours are not of values. */
bool        pane_range(const Panel *panel, const Grid *grid, double *lo, double *hi);

/* The inside of the step screen: what its state, its picture and its keys
 * share. */

typedef struct StepRooms {
    Area rail, strip, first, second, words; /* h 0: not there */
} StepRooms;

/* The step looked at, with the row that is followed; false: no pane has any. */
bool    stepping_now(Ui *ui, Step *step);
int64_t stepping_head(const Pane *pane);
/* The order known at this step, for a matrix of tokens; NULL: none. */
const int32_t *stepping_order(const Step *step, int64_t head);
StepRooms      stepping_rooms(const Pane *pane, const Step *step, Area area);
/* Tokens that a line has room for, and the first one in sight; the last page is full. */
int64_t stepping_tokens(Area area);
int64_t stepping_token(const Ui *ui, int64_t n, int64_t room);
/* Goes on to the next stage when its time has come. */
void stepping_play(Ui *ui);
/* It plays from now on, from the first stage if this is the last. */
void stepping_start(Ui *ui, const Step *step);

#endif
