/* attn/cuda/means_call.h -- equal shares of a pattern's rows; part of device.h. */
#ifndef ATTN_CUDA_MEANS_CALL_H
#define ATTN_CUDA_MEANS_CALL_H

/* Keys start, start + step, ...; so many. */
typedef struct KeyRun {
    int32_t start, count, step;
} KeyRun;

/* The runs of row i are start[i] .. start[i + 1]; per_head: those of head t from t * rows on. */
typedef struct RowRuns {
    int64_t        rows;
    bool           per_head;
    const int64_t *start; /* [(heads *) rows + 1] */
    const KeyRun  *runs;
} RowRuns;

typedef struct MeansCall {
    int64_t      heads;
    DeviceTensor x, y;
    RowRuns      cells;
    double       divisor; /* 0: as many as the row has */
    bool         less_own;
} MeansCall;

#endif
