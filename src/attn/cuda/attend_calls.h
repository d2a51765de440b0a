/* attn/cuda/attend_calls.h -- the arguments of pattern attention's calls; part of calls.h. */
#ifndef ATTN_CUDA_ATTEND_CALLS_H
#define ATTN_CUDA_ATTEND_CALLS_H

/* Exact attention over blocks of cells. */

#define ATTEND_TILE 64 /* keys of a tile */

/* Tiles key, key + 1, ..., key + count - 1 of a row, all with the same mask. */
typedef struct TileRun {
    int32_t key;   /* first key / ATTEND_TILE */
    int32_t count;
    int32_t mask;  /* index into keep; -1: every existing cell */
    int32_t term;  /* index into extra; -1: none */
} TileRun;

/* A property of all rows: row i sees all keys, or those up to i. */
typedef enum TileShape { TILES_ANY, TILES_FULL, TILES_CAUSAL } TileShape;

/* The tiles that hold an allowed cell: row b of tiles has runs start[b] .. start[b+1] in order of
 * keys.  With `per_head`, head t has the rows of tiles from t * rows on. */
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

/* Scores become top tanh(score / top), before or after the distance's term is added. */
typedef struct ScoreCap {
    float   top;            /* 0: off */
    int32_t after_distance;
} ScoreCap;

typedef struct AttendCall {
    int64_t      heads;
    DeviceTensor q, k, v;    /* f32 */
    double       scale;
    ScoreCap     cap;
    TileList     tiles;
    DeviceTensor distance;   /* f32 [h',1,n+m-1] added after scaling; or absent */
    DistanceCall row, col, value;
    DeviceTensor out, lse;   /* f32 [h,n,e], [h,1,n] */
} AttendCall;

/* Attention on tensor cores.
 *
 * Its tensors are packed: numbers of 16 bits, or of 32 bits rounded to TF32, [heads, rows, size],
 * padded with zeros so that kernels copy whole tiles. */

#define PACKED_ROWS 128 /* the rows of packed tensors are a multiple */

typedef struct Packed {
    void   *data;
    int64_t heads, rows, size;
} Packed;

typedef struct PackCall {
    DeviceTensor from; /* f32 */
    Packed       to;
    int32_t      arithmetic;
} PackCall;

/* The work of one block: the tiles of row `row` with panels of keys first .. end - 1. */
typedef struct AttendItem {
    int32_t head; /* -1: of every head */
    int32_t row;
    int32_t first, end;
    int64_t slot; /* index into the parts (plus head * slots, for all heads); -1: a whole row */
} AttendItem;

/* A row cut among several blocks: parts first .. first + count - 1. */
typedef struct AttendJoin {
    int32_t head, row;
    int64_t first, count;
} AttendJoin;

/* Partial rows: O without division, m in base 2, l. */
typedef struct AttendParts {
    int64_t slots;         /* of one head, if items are of every head */
    float  *out;           /* [slots][height][size] */
    float  *largest, *sum; /* [slots][height] */
} AttendParts;

/* Queries of a block, and its shared memory, for vectors of `size` numbers of `bytes` bytes. */
#define ATTEND_HEIGHT(size) ((size) <= 128 ? 128 : 64)
#define ATTEND_SHARED(size, bytes) ((ATTEND_HEIGHT(size) + 2 * ATTEND_TILE) * (size) * (bytes))

typedef struct MatrixAttendCall {
    int64_t           heads, n, m;
    int64_t           size;  /* 64, 128 or 256 */
    Packed            q, k, v;
    double            scale;
    ScoreCap          cap;
    TileList          tiles; /* of height ATTEND_HEIGHT(size) */
    DeviceTensor      distance;
    const AttendItem *items;
    int64_t           item_count;
    const AttendJoin *joins;
    int64_t           join_count;
    AttendParts       parts;
    DeviceTensor      out, lse;
} MatrixAttendCall;

/* A code: the kernel for Hopper's warpgroups does not support this, or is missing; see text(). */
#define WARPGROUP_DECLINED (-78)

/* By warpgroups: numbers of 16 bits, size 64 or 128, nothing added to scores. */
typedef struct WarpgroupCall {
    MatrixAttendCall attend;     /* heads 0: only asks whether it can be used */
    int32_t          arithmetic; /* BF16 or F16 */
} WarpgroupCall;

/* Full and causal attention by cuDNN. */

/* A code: cuDNN does not support this, or is missing; see text(). */
#define FUSED_DECLINED (-77)

typedef struct FusedCall {
    int64_t heads;       /* 0: only asks whether cuDNN can be used */
    int64_t n, m, d, e;
    bool    causal;      /* row i sees keys up to i */
    int32_t arithmetic;  /* BF16 or F16 */
    double  scale;
    Packed  q, k, v;
    Packed  narrow;      /* [heads, rows, size]: the output as cuDNN writes it */
    DeviceTensor out, lse; /* f32; lse contiguous */
} FusedCall;

#endif
