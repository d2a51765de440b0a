/* attn/run/view.h -- views: the matrices and tensors that a run shows.
 *
 * A View is a named matrix (per head) or tensor.  Its source is either a small
 * tensor or a reader that fills any piece on demand; nothing n x n is stored.
 * Views borrow from the Run and die with it.  Reading is thread-safe.
 */
#ifndef ATTN_RUN_VIEW_H
#define ATTN_RUN_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/pattern/pattern.h"
#include "core/error.h"
#include "core/tensor.h"

typedef enum ViewKind {
#define VIEW_KIND(name, cell) VIEW_##name,
#include "attn/run/views.def"
#undef VIEW_KIND
    VIEW_KIND_COUNT
} ViewKind;

typedef struct View View;

/* Values of row i of `head` at keys start, start + step, ... (count of them).
 * Only cells that `support` allows are asked for when there is a support. */
typedef void (*ViewReadRun)(const View *view, int64_t head, int64_t i, int64_t start,
                            int64_t count, int64_t step, float *out);

/* As ViewReadRun, of several rows at keys start .. start + count, into out [row_count,count]: for
 * views whose rows read the same large factors.  At most VIEW_ROWS_MOST rows and VIEW_KEYS_MOST
 * keys; cells outside the support may hold anything. */
typedef void (*ViewReadRows)(const View *view, int64_t head, const int64_t *rows,
                             int64_t row_count, int64_t start, int64_t count, float *out);
#define VIEW_ROWS_MOST 32
#define VIEW_KEYS_MOST 256

/* The load of each column, or row: a bar for each, beside the matrix. */
typedef struct ViewLoad {
    Tensor used, over; /* i32 [cols], or of each plane [planes,cols]: the bar, and the part that
                          exceeded the capacity (over.data NULL: none did) */
    int64_t     limit;      /* reference line of the bars; 0: none */
    const char *used_name, *over_name, *limit_name; /* "placed", "dropped", "capacity"; static */
} ViewLoad;

/* Cells that are marked whatever their value is. */
typedef struct ViewMarks {
    const Pattern *cells; /* heads: the view's planes, or fewer shared by groups */
    const char    *name;  /* "dropped"; static */
    bool           chosen; /* drawn as a ring (taken), else as a cross (lost) */
} ViewMarks;

/* A COMPONENTS view of a search: COMPONENT_OTHER is a cell that was missed, the other bits say what
 * found it. */
typedef struct ViewFound {
    int     rounds; /* bits in order are the rounds that found it first (the last: that and
                       later ones); 1: just found; 0: bits are causes, as everywhere */
    int64_t keys;   /* searched for in each row */
    const double  *share;  /* of each plane: the share found; NaN: nothing to find */
    const int64_t *itself; /* of each plane: rows that missed their own key because the mechanism
                              leaves it out; NULL: it does not */
    const int32_t *key;    /* [planes][rows][keys] the strongest first; -1: no further key */
    const float   *weight; /* [planes][rows][keys] theirs in exact attention */
} ViewFound;

#define VIEW_FOUND_ROUNDS 7 /* bits there are for rounds */
/* How the points of a curve are drawn; CURVE_SPANS: from low to high, in plots with rows. */
typedef enum CurveMark { CURVE_LINE, CURVE_STEPS, CURVE_BARS, CURVE_POINTS, CURVE_SPANS } CurveMark;

/* A view that is read along an axis: its rows are the points, its columns the series; a view
 * of one axis is one series.  A mechanism says so beside the view's promise. */
typedef struct ViewCurve {
    const char *x, *y;      /* the axes, units in brackets: "layer", "memory (bytes)"; y NULL: it
                               is none */
    const char *series;     /* names with bars between: "plain|reversible"; NULL: its own name */
    const int  *numbers;    /* of the series, where curves beside these have others; NULL: from 0
                               on */
    CurveMark   mark;
    bool        log_x, log_y;
    bool        by_rows;    /* rows are the series, columns the points */
    double      first;      /* x of the first point */
    double      spacing;    /* from point to point; 0: 1 */
    int         main;       /* series that go into a plot with other views'; 0: all */
    const char *points;     /* what the points are called: "relu|trig"; NULL: by their x */
    const char *along;      /* view of the run that holds the x of the points; NULL: see first */
    const char *low, *high; /* views of the same shape: the band around it; NULL: none */
} ViewCurve;

/* A reference line of a curve. */
typedef struct ViewGuide {
    const char *name; /* "capacity"; in the run's arena or static */
    double      at;
    bool        vertical;
} ViewGuide;

#define VIEW_GUIDES_MOST 4

/* A view as a sum: column c of `narrow` in each of its columns c stride .. c stride + size - 1, and
 * `rest`, whose support has few cells.  For what multiplies by the whole view. */
typedef struct ViewSpread {
    const View *narrow, *rest;
    int64_t     stride, size;
} ViewSpread;

struct View {
    char        name[48]; /* as the mechanism promises it: "weights" */
    ViewKind    kind;
    const char *stage;     /* stage that made it; static */
    int64_t     iteration; /* -1: not of an iteration */
    int         step;      /* index of that stage in the run; -1: none */
    DType       dtype;     /* as dumped */
    int         rank;      /* 1..4, as dumped */
    int64_t     shape[TENSOR_MAX_RANK];
    Tensor      tensor;    /* data NULL: use the reader */
    ViewReadRun read;      /* NULL: use the tensor */
    ViewReadRows read_rows; /* NULL: row by row; for a support of nearly all cells, or a triangle */
    const void *context;   /* the reader's; lives in the run's arena */
    const ViewSpread *spread; /* in the run's arena; NULL: none */
    double      cost;      /* multiply-adds to read one entry; 0: few */
    const Pattern *support; /* cells that can be non-zero; NULL: all */
    const Pattern *shown;   /* of a view without support: cells that pictures show, the
                               others hold values no score uses; NULL: all */
    const char *rows, *cols; /* what the last two axes are: "query", "key", "block"; static */
    /* Groups of rows and columns (segments, chunks) that a picture on paper sets apart by
     * lines: the first row of each, [count], in the run's arena; NULL: none. */
    const int64_t *row_groups, *col_groups;
    int64_t     row_group_count, col_group_count;
    const ViewMarks *marks; /* NULL: none */
    const ViewLoad  *load;  /* of the columns; NULL: none */
    const ViewLoad  *row_load; /* of the rows; NULL: none */
    const char *const *summary; /* caption numbers of each plane, in the run's arena; NULL: none */
    const ViewFound *found; /* of a view of what was found; NULL: none */
    const ViewCurve *curve; /* NULL: no curve; see view_curve */
    const View      *along, *low, *high; /* that the curve names; NULL: not there */
    ViewGuide   guides[VIEW_GUIDES_MOST];
    int         guide_count;
    const char *help;       /* the mechanism's words for it, one line; NULL: those of its kind */
    const char *quantity;   /* what its numbers are, "probability"; static; NULL: as of its kind */
    const char *const *categories; /* of a BUCKETS view, names of 0, 1, ... ending in NULL;
                               first letters differ; static; NULL: numbers */
    bool        headless;   /* planes are not of heads: `round` names them, a head's number is
                               which */
    const char *round;      /* what the planes of a head are, "token"; static; NULL: rounds */
    const char *other;      /* what COMPONENT_OTHER means here; static; NULL: "other" */
    const char *const *components; /* what the bits 1, 2, 4, ... mean here, [8], NULL where as
                               usual; static; NULL: all of them */
    const char *window;     /* what COMPONENT_WINDOW means here; static; NULL: "window" */
    double      centre;     /* of a signed view: the value that its two colours part at */
    const char *watched;    /* rows are followed through this stage's iterations, which are the
                               columns: its name, static; NULL: they are not */
    const char *origin;     /* "random seed 7", "file", or NULL when computed; run's arena */
};

/* The last two axes; everything before is folded into "head" planes. */
int64_t view_planes(const View *view);
int64_t view_rows(const View *view);
int64_t view_cols(const View *view);

/* True when the plane does not depend on the head (one plane for all). */
bool view_shared(const View *view);

/* How it is drawn as a curve: as declared, or any view of one axis by its names.  False: it
 * is a matrix. */
bool view_curve(const View *view, ViewCurve *out);

/* Row i, columns start, start+step, ...: any view.  Unsupported cells are 0. */
void view_read(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
               int64_t step, float *out);
/* rows [i, i+rows) x keys [start, start+count) into out, `pitch` numbers from one row to the next;
 * as view_read of each, together where the view reads rows together (read_rows). */
void view_read_rows(const View *view, int64_t plane, int64_t i, int64_t rows, int64_t start,
                    int64_t count, float *out, int64_t pitch);
/* rows [i0, i0+rows) x cols [j0, j0+cols) into out (row-major, float). */
bool view_read_rect(const View *view, int64_t plane, int64_t i0, int64_t rows, int64_t j0,
                    int64_t cols, float *out, Error *err);
/* The whole view in its own dtype and shape, for dumps and tests.  Refuses with
 * the size when it exceeds max_bytes (0: no limit). */
bool view_materialise(const View *view, Arena *arena, int64_t max_bytes, Tensor *out,
                      Error *err);

/* The bar of column (or row) `at` in a plane; over NULL: not asked for. */
int64_t view_load(const ViewLoad *load, int64_t plane, int64_t at, int64_t *over);

const char *view_kind_name(ViewKind kind);    /* "weights"; static, lower case */
const char *view_kind_meaning(ViewKind kind); /* static */
const char *view_words(const View *view);     /* what it shows: its help, or its kind's meaning */

#endif
