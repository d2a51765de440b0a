/* attn/cuda/attend_call.h -- exact attention over blocks of cells; part of device.h. */
#ifndef ATTN_CUDA_ATTEND_CALL_H
#define ATTN_CUDA_ATTEND_CALL_H

#define ATTEND_TILE 64 /* keys of a tile */

/* Tiles key, key + 1, ..., key + count - 1 of a row, all with that mask. */
typedef struct TileRun {
    int32_t key;   /* first key / ATTEND_TILE */
    int32_t count;
    int32_t mask;  /* which of keep; -1: every cell that exists */
    int32_t term;  /* which of extra; -1: none */
} TileRun;

/* What is known of all rows: row i sees all keys, or those up to i. */
typedef enum TileShape { TILES_ANY, TILES_FULL, TILES_CAUSAL } TileShape;

/* The tiles that hold an allowed cell, by rows of tiles: those of row b are runs
 * start[b] .. start[b+1], keys increasing.  With `per_head`, the rows of head t are those
 * from t * rows on. */
typedef struct TileList {
    int64_t         rows;     /* of tiles, for one head */
    int64_t         height;   /* queries of a row of tiles */
    bool            per_head;
    int32_t         shape;    /* TileShape */
    const int64_t  *start;    /* [(heads *) rows + 1] */
    const TileRun  *runs;
    const uint64_t *keep;     /* [masks][height] bit c of entry r: row r sees key c */
    const float    *extra;    /* [terms][height][ATTEND_TILE] added to scores last */
} TileList;

/* scale * side . table[index[i - j + m - 1]]; side NULL: absent */
typedef struct DistanceCall {
    DeviceTensor   side, table;
    const int32_t *index;
} DistanceCall;

typedef struct AttendCall {
    int64_t      heads;
    DeviceTensor q, k, v;    /* f32 */
    double       scale;
    TileList     tiles;
    DeviceTensor distance;   /* f32 [h',1,n+m-1] added after scaling; or absent */
    DistanceCall row, col, value;
    DeviceTensor out, lse;   /* f32 [h,n,e], [h,1,n] */
} AttendCall;

#endif
