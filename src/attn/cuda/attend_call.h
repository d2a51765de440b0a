/* attn/cuda/attend_call.h -- exact attention over blocks of cells; part of device.h. */
#ifndef ATTN_CUDA_ATTEND_CALL_H
#define ATTN_CUDA_ATTEND_CALL_H

#define ATTEND_TILE 64 /* queries of a row of tiles, and keys of a tile */

/* The tiles that hold an allowed cell, by rows of tiles: those of row b are
 * start[b] .. start[b+1].  With `per_head`, the rows of head t are those from t * rows on. */
typedef struct TileList {
    int64_t        rows;     /* of tiles, for one head */
    bool           per_head;
    const int64_t *start;    /* [(heads *) rows + 1] */
    const int32_t *key;      /* [tiles] first key / ATTEND_TILE, increasing in a row */
    const int32_t *mask;     /* [tiles] which of keep; -1: every cell of the tile that exists */
    const uint64_t *keep;    /* [masks][ATTEND_TILE] bit c of entry r: row r sees key c */
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
    const float *extra;      /* [masks][ATTEND_TILE][ATTEND_TILE] added last; NULL: none */
    DeviceTensor out, lse;   /* f32 [h,n,e], [h,1,n] */
} AttendCall;

#endif
