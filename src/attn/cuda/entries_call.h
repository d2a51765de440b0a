/* attn/cuda/entries_call.h -- entry by entry, and rows in double; part of device.h. */
#ifndef ATTN_CUDA_ENTRIES_CALL_H
#define ATTN_CUDA_ENTRIES_CALL_H

typedef struct EntriesCall {
    DeviceTensor x, y;  /* f32 or f64; rows contiguous */
    int32_t      kind;  /* EntryKind: 0 as it is, 1 e^x, 2 x / by */
    double       by;
} EntriesCall;

typedef struct Normalise64Call {
    DeviceTensor x, y;  /* f32, f64 */
    int32_t      kind;  /* NormaliseKind */
    double       eps;
} Normalise64Call;

#endif
