/* attn/pattern/pattern.h -- which (query, key) cells are allowed, without n x n storage.
 *
 * A Pattern is an expression tree.  Evaluating one row gives a list of
 * arithmetic runs {start, count, step}: pairwise disjoint as sets, each with
 * the component bits of its cells.  The attention kernel and the picture read
 * the same rows, so what is drawn is what ran.  The intersection of two runs
 * is again one run (Chinese remainder theorem), so union, intersection,
 * difference and complement stay exact and small.
 *
 * All nodes and tables live in an arena and are immutable once built; rows may
 * be evaluated by several threads at once, each with its own PatternRow.
 */
#ifndef ATTN_PATTERN_PATTERN_H
#define ATTN_PATTERN_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/error.h"
#include "core/tensor.h"

/* Component bits, as dumped in the `components` view. */
enum {
    COMPONENT_WINDOW = 1,
    COMPONENT_GLOBAL = 2,
    COMPONENT_RANDOM = 4,
    COMPONENT_STRIDED = 8, /* strided, dilated, logarithmic */
    COMPONENT_BLOCK = 16,
    COMPONENT_OTHER = 32,
    COMPONENT_BUCKET = 64,   /* content decides: same hash bucket; never dumped */
    COMPONENT_CLUSTER = 128, /* same cluster; never dumped */
    COMPONENT_LAST = COMPONENT_CLUSTER,
};

typedef struct PatternRun {
    int64_t start, count, step; /* keys start, start + step, ...; count >= 1, step >= 1 */
    uint8_t bits;
} PatternRun;

/* One row's runs.  Zero-initialise, reuse for many rows, then free. */
typedef struct PatternRow {
    PatternRun *runs; /* owned */
    int64_t     count, capacity;
    bool        failed; /* an allocation failed; the row is not usable */
} PatternRow;

void    pattern_row_free(PatternRow *row);
int64_t pattern_row_cells(const PatternRow *row); /* keys of all its runs */

typedef struct Pattern Pattern;

/* Key j of row i must satisfy 0 <= j < m; heads share a pattern unless
 * pattern_per_head. */
int64_t pattern_queries(const Pattern *p);  /* n */
int64_t pattern_keys(const Pattern *p);     /* m */
int64_t pattern_heads(const Pattern *p);    /* h */
bool    pattern_per_head(const Pattern *p); /* rows differ between heads */

/* Replaces *row by the runs of query i in `head`, sorted by start. */
void pattern_row(const Pattern *p, int64_t head, int64_t i, PatternRow *row);
/* The first row after i that may differ from row i of `head`; n: none does. */
int64_t pattern_same_until(const Pattern *p, int64_t head, int64_t i);

/* Bits of one cell; *allowed: whether the cell is in the pattern (a cell without bits is possible
 * inside an expression, never in a finished pattern). */
uint8_t pattern_cell(const Pattern *p, int64_t head, int64_t i, int64_t j, bool *allowed);

/* Of a causal run: keys among the first n that row n - 1 or a later one may read by the rule,
 * whatever the length.  Drawn and given tables, and positions counted from the end, rule nothing
 * out.  Keys of a block are kept as long as its first one. */
int64_t pattern_kept(const Pattern *p, int64_t n);
/* Of these, the share of each further key that is kept for ever. */
double pattern_kept_share(const Pattern *p);

/* Exact number of allowed cells summed over heads; -1: out of memory. */
int64_t pattern_count(const Pattern *p);
/* The same of rows i < end. */
int64_t pattern_count_before(const Pattern *p, int64_t end);

/* ---- builders; NULL when the arena is out of memory or an operand is NULL --- */

typedef struct PatternShape {
    int64_t heads, n, m;
    bool    causal;   /* used only by random draws: candidates j <= i + q_offset */
    int64_t q_offset;
} PatternShape;

Pattern *pattern_full(Arena *a, PatternShape s, uint8_t bits);
Pattern *pattern_none(Arena *a, PatternShape s);
/* j <= i + q_offset */
Pattern *pattern_causal(Arena *a, PatternShape s);
/* lo <= j - i <= hi, and (j - i) mod step = 0; step >= 1 */
Pattern *pattern_band(Arena *a, PatternShape s, int64_t lo, int64_t hi, int64_t step,
                      uint8_t bits);
/* floor(i/b) - back <= floor(j/b) <= floor(i/b) + ahead */
Pattern *pattern_chunk(Arena *a, PatternShape s, int64_t b, int64_t back, int64_t ahead);
/* B - left <= j < B + b + right, B = b floor(i/b) */
Pattern *pattern_local(Arena *a, PatternShape s, int64_t b, int64_t left, int64_t right);
/* (floor(i nb/n) + s) mod nb = floor(j nb/n) */
Pattern *pattern_shift(Arena *a, PatternShape s, int64_t nb, int64_t shift);
/* block(j) = table[head, block(i)], block(i) = floor(i nb/n); i32 [h',nb], borrowed */
Pattern *pattern_permuted(Arena *a, PatternShape s, int64_t nb, const Tensor *table);
/* (i - j) mod step = 0 */
Pattern *pattern_stride(Arena *a, PatternShape s, int64_t step);
/* stride - (v+1)c <= j mod stride < stride - v c */
Pattern *pattern_summary(Arena *a, PatternShape s, int64_t stride, int64_t c, int64_t v);
/* n = m: on[abs(i - j)] != 0, or always[i], or always[j]; on u8 [h',n] for each head or
 * shared, always u8 [n] or NULL; both borrowed, must live in a */
Pattern *pattern_distances(Arena *a, PatternShape s, const Tensor *on, const uint8_t *always);
/* n = m: least <= abs(i - j) <= reach[i]; i32 [h',n], or [h',1] for all rows, borrowed */
Pattern *pattern_spans(Arena *a, PatternShape s, const Tensor *reach, int64_t least,
                       uint8_t bits);
/* abs(i - j) in the distances of LogSparse (attn/mech/pattern/logsparse.c) */
Pattern *pattern_log(Arena *a, PatternShape s, int64_t local, int64_t restart);
/* row i is full if flags[i]; column j is full if flags[j]; flags u8 [n], copied */
Pattern *pattern_rows(Arena *a, PatternShape s, const uint8_t *flags);
Pattern *pattern_cols(Arena *a, PatternShape s, const uint8_t *flags);
Pattern *pattern_first_cols(Arena *a, PatternShape s, int64_t count); /* columns 0 .. count - 1 */
/* keys table[i,:]; int32 [n,r] or [h,n,r], -1 unused; borrowed, must live in a */
Pattern *pattern_table(Arena *a, PatternShape s, const Tensor *table, uint8_t bits);
/* n = m: keys j <= i that are one of the columns, or lie one of the offsets before i; increasing
 * int32 [h',c] and [h',o], borrowed; COMPONENT_GLOBAL and COMPONENT_STRIDED */
Pattern *pattern_lines(Arena *a, PatternShape s, const Tensor *columns, const Tensor *offsets);
/* n = m: rows before `prompt` see keys j <= i (COMPONENT_BLOCK), the others the columns, increasing
 * int32 [h',c] before `near`, borrowed (COMPONENT_OTHER), and near <= j <= i (COMPONENT_WINDOW);
 * near <= prompt */
Pattern *pattern_prompt(Arena *a, PatternShape s, int64_t prompt, const Tensor *columns,
                        int64_t near);
/* n = m: keys j <= i <= last[j], i32 [h',n], borrowed; those with i - j < near have
 * COMPONENT_WINDOW, the others `bits` */
Pattern *pattern_lasting(Arena *a, PatternShape s, const Tensor *last, int64_t near, uint8_t bits);
/* What a decoder's cache does at a step: bits of pattern_cached, one a cell. */
enum { CACHE_HELD = 1, CACHE_NEW = 2, CACHE_LEAVES = 4, CACHE_SLOT = 8 };
/* The keys of `held`, rows of neighbours, at each query: its own key is new, a key that the next
 * row lacks leaves; the others are held, those with one of the bits `slots` in a slot. */
Pattern *pattern_cached(Arena *a, PatternShape s, const Pattern *held, uint8_t slots);
/* compressed rows: keys[offset[h*n+i] .. offset[h*n+i+1]) sorted; borrowed */
Pattern *pattern_lists(Arena *a, PatternShape s, const int64_t *offset, const int32_t *keys,
                       uint8_t bits);
/* row i of head t: runs[offset[(t n +) i] .. offset[.. + 1]), disjoint; per_head: offsets of
 * every head, else of one; both borrowed */
Pattern *pattern_stored(Arena *a, PatternShape s, const int64_t *offset, const PatternRun *runs,
                        bool per_head);
/* Image Transformer 2-D: key pixel in the memory rectangle of i's query block */
Pattern *pattern_image(Arena *a, PatternShape s, int64_t width, int64_t hq, int64_t wq,
                       int64_t hm, int64_t wm, int64_t below);
/* The order in which the Image Transformer makes pixels: blocks of hq x wq in raster
 * order, pixels in raster order inside; cells whose key is not later; no bits */
Pattern *pattern_image_order(Arena *a, PatternShape s, int64_t width, int64_t hq, int64_t wq);
/* Key pixels reached by a pass along one axis and then the other, over a corner pixel inside the
 * image.  corner_row: the corner is in the image row of the key, else of the query.  causal: only
 * rows and columns not after those of the query. */
Pattern *pattern_image_product(Arena *a, PatternShape s, int64_t width, bool corner_row,
                               bool causal);
/* key pixel at most `rows` image rows and `cols` columns from the query's */
Pattern *pattern_grid(Arena *a, PatternShape s, int64_t width, int64_t rows, int64_t cols,
                      uint8_t bits);
/* One axis of a grid of tokens, and which places along it a place sees; every number >= 1,
 * stride <= kernel, kernel dilation <= length, or, of tiles, kernel <= their number. */
typedef struct GridAxis {
    int64_t length, kernel; /* kernel: places seen, or tiles */
    int64_t dilation;       /* gap between the places */
    int64_t stride;         /* places in a row that share a window, that of their leader */
    int64_t tile;           /* > 1: whole tiles see whole tiles (then dilation = stride = 1) */
    bool    causal;         /* no later place */
} GridAxis;
#define GRID_AXES_MOST 3
/* n = m = the product of the lengths, the last axis fastest: j is seen along every axis.  A window
 * is moved inwards at a border (every place sees `kernel`), or on a causal axis cut. */
Pattern *pattern_neighbours(Arena *a, PatternShape s, const GridAxis *axes, int count,
                            uint8_t bits);
/* What place x sees along the axis. */
PatternRun grid_axis_keys(const GridAxis *axis, int64_t x);
/* Cells of pattern_neighbours in one head, of queries i < end. */
int64_t grid_axes_cells_before(const GridAxis *axes, int count, int64_t end);
/* t[i] = t[j]; int64 [n] or [h,n], contiguous, not kept */
Pattern *pattern_same(Arena *a, PatternShape s, const Tensor *t);
/* {i,j} = {first, n-1}, n-1 > first */
Pattern *pattern_ring(Arena *a, PatternShape s, int64_t first);
/* mask[i,j] != 0; any dtype's u8 copy [n,n] or [h,n,n]; borrowed */
Pattern *pattern_mask(Arena *a, PatternShape s, const Tensor *mask);

/* n = m: keys that a decoder holds at row i < rows: its own (4), keys that it reads (1), and keys
 * held only for a later query (2); last i32 [h',m]: the last query that reads a key. */
Pattern *pattern_held(Arena *a, PatternShape s, const Pattern *reads, const Tensor *last,
                      int64_t rows);

/* A finished pattern as an operand: builders store it and change nothing. */
Pattern *pattern_operand(const Pattern *p);
Pattern *pattern_union(Arena *a, Pattern *x, Pattern *y);        /* ORs bits */
Pattern *pattern_intersect(Arena *a, Pattern *x, Pattern *y);    /* ORs bits */
Pattern *pattern_difference(Arena *a, Pattern *x, Pattern *y);   /* keeps x's bits */
Pattern *pattern_complement(Arena *a, Pattern *x);               /* bits 32 */
Pattern *pattern_marked(Arena *a, Pattern *x, uint8_t bits);     /* x, with these bits only */
/* E on ceil(n/b) blocks; x was built with the block shape */
Pattern *pattern_tile(Arena *a, PatternShape s, int64_t b, Pattern *x);
/* x moved down and right: cell (i, j) of x becomes (i + rows, j + cols) of s */
Pattern *pattern_offset(Arena *a, PatternShape s, int64_t rows, int64_t cols, Pattern *x);
/* The last s.n rows of x. */
Pattern *pattern_last_rows(Arena *a, PatternShape s, Pattern *x);
/* head t uses xs[t mod count] */
Pattern *pattern_by_head(Arena *a, PatternShape s, Pattern *const *xs, int64_t count);
/* The root of a finished pattern: intersects with causal if asked, and gives
 * cells without a bit COMPONENT_OTHER. */
Pattern *pattern_finish(Arena *a, PatternShape s, Pattern *x, bool causal);

/* ---- the expression language (docs/patterns.md) ----------------------------- */

/* Finds the tensor called `name`; data NULL: there is none. */
typedef Tensor (*PatternLookup)(void *context, const char *name);
/* Draws `random(r)` tables; see pattern_draw_random. */
typedef struct PatternSource {
    PatternLookup lookup;
    void         *context;
    uint64_t      seed;
    /* Called for each table drawn so that the run can show it; may be NULL.
     * name is "random", "random_2", ... in order of appearance. */
    void (*drawn)(void *context, const char *name, Tensor table);
    /* Called for each window of even width; may be NULL. */
    void (*even)(void *context, int64_t width);
    /* Called for each $name used, so unused tensors can be reported; may be NULL. */
    void (*used)(void *context, const char *name);
} PatternSource;

/* Parses and builds; the result still lacks pattern_finish.  An error names the
 * byte offset and what was expected. */
Pattern *pattern_parse(Arena *a, PatternShape s, const char *text, const PatternSource *source,
                       Error *err);

/* min(r, candidates) distinct keys per row and head, uniformly from all positions, j <= i when
 * causal.  int32 [h,n,r], unused entries -1.  `skip` (may be NULL) returns whether cell (i, j) is
 * left out; j = -1: the whole row. */
typedef bool (*PatternSkip)(void *context, int64_t i, int64_t j);
Tensor pattern_draw_random(Arena *a, PatternShape s, int64_t r, uint64_t seed, const char *name,
                           PatternSkip skip, void *context);

/* A pattern as a list of its runs, which a file can hold.
 *
 * i64 [c, 6]: head (-1: all), query, start, count, step, component bits.
 */

#define LISTED_FIELDS 6

/* In order of heads and queries, in the arena; data NULL: no memory. */
Tensor pattern_list(Arena *a, const Pattern *p);
/* From a contiguous i64 list in any order; a cell listed twice has the bits of both.  NULL with an
 * error that names the line. */
Pattern *pattern_of_list(Arena *a, PatternShape s, const Tensor *list, Error *err);

/* 0..n-1 split into L runs in order, nearly equally long.
 *
 * With base = floor(n/L) the first (base+1) L - n runs have `base` tokens and
 * the rest base + 1: long runs come last (as in Nystromformer's ImageNet code).
 */

/* First token of run i; i = L gives n. */
static inline int64_t segment_start(int64_t n, int64_t L, int64_t i)
{
    int64_t base = n / L, shorter = (base + 1) * L - n;

    return i * base + (i > shorter ? i - shorter : 0);
}

#endif
