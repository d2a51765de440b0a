/* attn/cuda/matrix_call.h -- attention on tensor cores; part of device.h.
 *
 * Its tensors are packed: numbers of 16 bits, or of 32 rounded to TF32, [heads, rows, size]
 * with zeros behind the last row and column, so that kernels copy whole tiles. */
#ifndef ATTN_CUDA_MATRIX_CALL_H
#define ATTN_CUDA_MATRIX_CALL_H

#define PACKED_ROWS 128 /* packed tensors have a multiple of so many */

typedef struct Packed {
    void   *data;
    int64_t heads, rows, size;
} Packed;

typedef struct PackCall {
    DeviceTensor from; /* f32 */
    Packed       to;
    int32_t      arithmetic;
} PackCall;

/* What one block computes: the tiles of row `row` with panels of keys first .. end - 1. */
typedef struct AttendItem {
    int32_t head; /* -1: of every head */
    int32_t row;
    int32_t first, end;
    int64_t slot; /* its place among the parts (plus head * slots, for all heads); -1: done */
} AttendItem;

/* A row whose tiles several blocks had: parts first .. first + count - 1. */
typedef struct AttendJoin {
    int32_t head, row;
    int64_t first, count;
} AttendJoin;

/* Rows that are not done: O without division, m in base 2, l. */
typedef struct AttendParts {
    int64_t slots;         /* for one head, where items are of every head */
    float  *out;           /* [slots][height][size] */
    float  *largest, *sum; /* [slots][height] */
} AttendParts;

/* Queries of a block, and its shared memory, for vectors of `size` numbers of so many bytes. */
#define ATTEND_HEIGHT(size) ((size) <= 128 ? 128 : 64)
#define ATTEND_SHARED(size, bytes) ((ATTEND_HEIGHT(size) + 2 * ATTEND_TILE) * (size) * (bytes))

typedef struct MatrixAttendCall {
    int64_t           heads, n, m;
    int64_t           size;  /* 64, 128 or 256 */
    Packed            q, k, v;
    double            scale;
    TileList          tiles; /* of height attend_height(size) */
    DeviceTensor      distance;
    const AttendItem *items;
    int64_t           item_count;
    const AttendJoin *joins;
    int64_t           join_count;
    AttendParts       parts;
    DeviceTensor      out, lse;
} MatrixAttendCall;

/* A code: the kernel for Hopper's warpgroups does not do this, or is not there; text() says why. */
#define WARPGROUP_DECLINED (-78)

/* The same by warpgroups: numbers of 16 bits, size 64 or 128, nothing added to scores. */
typedef struct WarpgroupCall {
    MatrixAttendCall attend;     /* heads 0: only whether it can be used at all */
    int32_t          arithmetic; /* BF16 or F16 */
} WarpgroupCall;

#endif
