/* ui/pane/pane.h -- one matrix on the compare screen: a request, its last good
 * result, and how it is looked at. */
#ifndef UI_PANE_PANE_H
#define UI_PANE_PANE_H

#include "app/figure/picture.h"
#include "ui/pane/matrix.h"
#include "ui/pane/reduction.h"
#include "ui/pane/row.h"

typedef struct Ui Ui;

/* Zoom and cursor of a view with other axes, to restore them later. */
typedef struct Place {
    const char *row, *col; /* what the axes are; NULL: none */
    int64_t     rows, cols;
    Lens        lens;
} Place;

#define PLACES_MOST 4

/* Colours that a pane has together with others: sharing.c. */
typedef enum ScaleStand {
    SCALE_ALONE,  /* no other pane on the screen shows its quantity */
    SCALE_OWN,    /* others do, and it has its own */
    SCALE_SHARED,
} ScaleStand;

typedef struct PaneColours {
    ScaleStand  stand;
    Panel       asked; /* whose colours they are: view, pooling and what was chosen */
    ColourMap   map;
    Scale       scale;
    double      lo, hi; /* of all that share it */
    bool        apart;  /* it would not be seen in them: they are its own */
    int         first;  /* index of the first pane that shares it */
    /* As decided when all views were last seen whole, so that colours stay while they are moved. */
    const View *whole;
    ColourMap   whole_map;
    Scale       whole_scale;
    bool        whole_apart;
} PaneColours;

typedef struct Pane {
    Request     request;      /* what is asked for; owned */
    Result     *result;       /* the last good one, retained; NULL: none yet */
    Job        *job;          /* its next one; NULL: none under way */
    char        problem[512]; /* why there is no result for `request`; "": there is or will be */
    bool        ask;          /* a parameter must be typed before the first run */
    Result     *measured;     /* retained; NULL: not measured */
    Job        *measuring;
    const View *default_view; /* of the result; NULL: it has no matrix */
    const View *pinned;   /* shown whatever `view` says; NULL: off */
    PanelSpec   spec;     /* what is shown, and how; `region`: to be shown as soon as the shape
                             is known */
    bool        differs; /* shown as a difference to pane 1, whatever the others are */
    Lens        lens;
    bool        unplaced; /* the first result is there, and the cursor has no place yet */
    Place       places[PLACES_MOST];
    Drawing     drawing;
    bool        dotted;  /* matrix_draw's answer */
    /* The view whose values, seen whole, lie on one side, or span decades; as Drawing.shown. */
    const void *one_side, *decades;
    PaneColours colours;
    Side        side; /* bars beside it */
    Row         row; /* of the weights at the cursor */
    Row         marked; /* of the marked queries */
    /* Sorted order of the result for the view looked at, found once. */
    const int32_t *order;
    const View    *order_view;
    int64_t       *borders; /* first slots of its chunks; owned; NULL: none found yet */
    int64_t        border_count;
    const int32_t *borders_of; /* the order that they are of; to compare with only */
    const int32_t *buckets; /* of the result's tokens, which colour its rows; NULL: off */
    int64_t        order_head, order_round; /* head -1: not looked for */
    /* As last laid out: */
    Area      area;   /* of the pane; h 0: not on the screen */
    Area      canvas; /* of the matrix in it */
    Area      beside; /* room for the strips, right of and above the canvas: w, h; 0: none */
    Area      loads;  /* room for the view's loads, right of and below it: w, h; 0: none */
    LensShape shape;
} Pane;

/* Without a request: nothing is chosen. */
Pane pane_new(void);
/* The round that is shown of a head's planes, from 0. */
int64_t pane_round(const Pane *pane);

/* Starts the request; the result replaces the present one when it is good. */
void pane_run(Ui *ui, Pane *pane);
/* Takes finished jobs; true when something is to be drawn. */
bool pane_poll(Ui *ui, Pane *pane);
void pane_measure(Ui *ui, Pane *pane);
void pane_close(Ui *ui, Pane *pane);

/* The view looked at, or NULL. */
const View *pane_view(const Pane *pane);
bool        pane_shows_reach(const Pane *pane);
bool        pane_shows_missed(const Pane *pane);
/* The view `missed` is requested but not computed yet. */
bool        pane_lacks_missed(const Pane *pane);
/* "cascade > cascade": the mechanisms of a stack, without parameters. */
void pane_name(const Pane *pane, Text *out);
/* Where it runs in one word: "cpu", "cuda", "bf16"; whether not all panes run in one place. */
const char *pane_place(const Pane *pane);
bool        panes_apart(const Ui *ui);
/* "2 performer", with its place where not all panes have that: "2 performer cuda",
 * "2 perfor. bf16". */
void        pane_placed_name(const Ui *ui, int index, int room, char *text, size_t size);
/* Where the numbers of a cell come from: the view looked at, or the weights for
 * one that only says allowed or not; NULL: none. */
const View *pane_numbers(const Pane *pane);
/* Device and precision only; of the layers above, too. */
void        request_take_place(Request *to, const Request *from);
/* Axes of two views that stand for the same things. */
bool        views_share_rows(const View *a, const View *b);
bool        views_share_cols(const View *a, const View *b);
int64_t     pane_heads(const Pane *pane); /* 1 at least */
int64_t     pane_rounds(const Pane *pane);
int64_t     pane_plane(const Pane *pane, const View *view);
/* The pane as a panel that can be drawn; false: nothing to show. */
bool pane_panel(Ui *ui, Pane *pane, Panel *panel);
/* Pooling, scale and colours that were chosen for the pane. */
void pane_set_looks(const Pane *pane, Panel *panel);
/* The view's whole grid, not a part of it or another view's; NULL: that is not at hand. */
const Grid *pane_whole_grid(const Pane *pane, const Panel *panel);
/* The excluded key is a column of the view looked at. */
bool pane_excludes(const Pane *pane);
bool pane_differs(Ui *ui, const Pane *pane); /* shown as a difference to the first */
bool pane_has_order(Pane *pane);             /* an order exists, and the view has tokens */
bool pane_is_sorted(Pane *pane);             /* asked for, and the mechanism has an order */
/* Entry of the view under the cursor (displayed order undone). */
void pane_cursor(const Pane *pane, int64_t *q, int64_t *k);
/* Displayed position of an entry. */
void pane_point(Pane *pane, int64_t q, int64_t k);
void pane_step_view(Pane *pane, int direction);
/* The at-th view that v goes to; "": none there, NULL: no more. */
const char *pane_offers(const Pane *pane, int at);
bool        pane_take_view(Pane *pane, const char *name); /* false: it is not offered */
void pane_title(Ui *ui, const Pane *pane, int number, char *text, size_t size);
/* "q" and "k"; "kv head" and "key", whose letters are one, by their words. */
typedef struct AxisNames {
    char rows[16], cols[16];
} AxisNames;
AxisNames   axis_names(const View *view);

/* ---- drawing (pane_draw.c, strips.c, legend.c) ------------------------------- */

void         legend_draw(Ui *ui, int y, int x); /* what colours mean, on one line */
void         pane_draw(Ui *ui, Pane *pane, int number, bool focused);
/* A plot on the screen. */
void         plot_draw(Ui *ui, const Plot *plot, Area area);
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
/* Ends of the colours of a pane; false: its colours are not of values. */
bool pane_range(const Panel *panel, const Grid *grid, double *lo, double *hi);
/* The next kind of strips, with a message. */
void strips_next(Ui *ui);

/* ---- one colour scale for several panes (sharing.c) ---------------------------- */

/* Decides which panes on the screen share their colours, before they are drawn. */
void panes_share_colours(Ui *ui);
/* The panel, as asked for, gets the colours that its pane shares; others stay. */
void pane_wear_colours(const Pane *pane, Panel *panel);
/* Whether the pane's colours are those of others: SCALE_ALONE where there is nothing to compare. */
ScaleStand pane_scale_stand(const Pane *pane);
bool       panes_share_one_scale(const Pane *a, const Pane *b);
/* Whether the pane's colours have a scale; a hint says why not. */
bool       pane_has_scale(Ui *ui, Pane *pane);
void       pane_set_scale(Ui *ui, Pane *pane, Scale scale);
/* ":scale own", "shared", "linear", "log" or "row". */
void       scale_typed(Ui *ui, const char *word);

/* ---- rows and cells (cell.c) ------------------------------------------------- */

/* Reads the row under the cursor; false: not at hand. */
bool pane_row(Ui *ui, Pane *pane, int64_t q);
/* The marked queries that the pane's view has; returns how many. */
int  pane_marked(Ui *ui, const Pane *pane, int64_t *queries);
/* Reads their sum or mean; false: none is marked, or it is not at hand. */
bool pane_marked_row(Ui *ui, Pane *pane);

/* What one pane shows of a cell. */
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
/* What allows a cell of a row that was read; "dense" where the query sees every key. */
void        reason_text(const Row *row, uint8_t bits, char *text, size_t size);
/* All about a cell, a line each, for the inspector; narrow screens leave out what its title
 * says. */
void        inspect_facts(Ui *ui, Pane *pane, int64_t q, int64_t k, Text *out);
/* "bigbird on cuda bf16, weights": title of the numbers around the cell.  Narrow panes name the
 * place in one word; the CPU is named only if not all panes run there. */
void        inspect_title(Ui *ui, const Pane *pane, int width, char *text, size_t size);
/* The place alone, added to a title. */
void        inspect_place(const Ui *ui, const Pane *pane, char *text, size_t size);
#define INSPECT_WIDE 76 /* columns for the cell and the numbers around it */
/* Token of an entry of a view's axis; NULL: no labels, or the axis is not of tokens. */
const char *row_token(const Pane *pane, const View *view, int64_t index);
const char *col_token(const Pane *pane, const View *view, int64_t index);
#define TOKEN_BYTES 256 /* of a token as a label */
/* At most so many columns of it as a label, cut with an ellipsis. */
char       *token_short(const char *label, int columns, char *text, size_t size);
/* Frees the inspector's data. */
void        inspect_close(Ui *ui);

/* ---- the inspector (inspector.c) --------------------------------------------- */

void inspect_line(Ui *ui, int y);
void inspect_dock(Ui *ui, Area area);
/* Columns that its text needs with the shortest bars; *wanted: with bars that can be compared. Of
 * the panes and the input, so that they stay while the cursor moves. */
int  inspect_columns(Ui *ui, int *wanted);
/* Where the cursor is, "(q=3 'the', k=5)", with the layer and the head as far as `width` columns
 * have room for them. */
void cursor_title(const Ui *ui, const Pane *pane, int width, char *text, size_t size);
/* A row as lines of keys, values and bars, in columns beside each other where one is too short;
 * k: the cursor's key. */
void row_draw(Ui *ui, const Pane *pane, Row *row, Area area, int64_t k);
void row_summary(const Pane *pane, int64_t q, char *text, size_t size);
/* "mean of queries 3, 17, 20: 24 of 64 keys, sum 1.0000" */
void marked_summary(Ui *ui, const Pane *pane, char *text, size_t size);
Role row_role(const Row *row);

#endif
