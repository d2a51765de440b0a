/* attn/cuda/panel_call.h -- attention of listed panels of rows, whatever makes the scores; part
 * of device.h.
 *
 * A panel is at most PANEL_ROWS rows (queries) of one head with some keys: what one block
 * computes.  Long lists of keys are cut, so that a few rows with very many keys occupy the whole
 * device; the pieces leave unfinished results in slots, which a join puts together in order.
 */
#ifndef ATTN_CUDA_PANEL_CALL_H
#define ATTN_CUDA_PANEL_CALL_H

#define PANEL_ROWS 64

typedef struct RowPanel {
    int64_t first, first_key; /* of the head's rows and keys, or of its lists of them */
    int64_t keys;
    int64_t slot;             /* -1: all keys are in this panel, its results are final */
    int32_t head, rows;
    int32_t group;            /* the maker's own number */
} RowPanel;

/* Rows first .. first + rows of a head are those of slots slot .. slot + count. */
typedef struct PanelJoin {
    int64_t first, slot, count;
    int32_t head, rows;
} PanelJoin;

typedef struct PanelWork {
    int64_t          count, joins;
    const RowPanel     *panels;
    const PanelJoin *join;
    int64_t          width; /* columns of a slot's rows */
    double          *top;   /* [slots][PANEL_ROWS] the largest score */
    double          *sum;   /* [slots][PANEL_ROWS] of exp(score - top) */
    float           *part;  /* [slots][PANEL_ROWS][width] sums of exp(score - top) times values */
} PanelWork;

/* Where results go: row x of a head to row place[x], or x. */
typedef struct PanelOut {
    int64_t      heads;
    DeviceTensor out, more; /* f32 [h,n,e], [h,n,f]; columns of `more` follow those of out */
    DeviceTensor lse;       /* f32 or f64 [h,1,n]; or absent */
    DeviceTensor place;     /* i32 [h',1,n]; or absent */
} PanelOut;

typedef struct JoinCall {
    PanelWork work;
    PanelOut  to;
} JoinCall;

#endif
