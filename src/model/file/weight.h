/* model/file/weight.h -- a matrix of a model as it lies in its file, and its values in float32.
 *
 * Types and block layouts: ggml's quantised types (ggml-quants), safetensors' F32, F16, BF16, F64.
 * A value is the product written in the layout, left to right in float32.
 */
#ifndef MODEL_FILE_WEIGHT_H
#define MODEL_FILE_WEIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

typedef enum WeightType {
    WEIGHT_NONE, /* not in the file */
    WEIGHT_F32, WEIGHT_F16, WEIGHT_BF16, WEIGHT_F64,
    WEIGHT_Q4_0, WEIGHT_Q4_1, WEIGHT_Q5_0, WEIGHT_Q5_1, WEIGHT_Q8_0,
    WEIGHT_Q2_K, WEIGHT_Q3_K, WEIGHT_Q4_K, WEIGHT_Q5_K, WEIGHT_Q6_K,
    WEIGHT_TYPES
} WeightType;

/* y = x W^T, W [rows, cols] = [out, in]. */
typedef struct Weight {
    WeightType     type;       /* WEIGHT_NONE: absent */
    const uint8_t *data;       /* borrowed from the model's file */
    int64_t        rows, cols; /* of W, whatever the file's order */
    bool           transposed; /* the file holds [cols, rows] (GPT-2's Conv1D of safetensors) */
    int64_t        stride;     /* transposed: columns of the file, of which rows may be a part */
    int64_t        unpermute;  /* heads whose rows lie as interleaved pairs (GGUF llama); 0: none */
} Weight;

const char *weight_type_name(WeightType type);  /* "Q4_1" */
int64_t     weight_block_values(WeightType type); /* 1, 32 or 256 */
int64_t     weight_block_bytes(WeightType type);

/* out [rows, cols] = rows first .. first + rows - 1 of W, f32, un-permuted.  Serial; callers split
 * rows between threads. */
void weight_read(const Weight *w, int64_t first, int64_t rows, float *out);

/* Reads the blocks of `count` values, a multiple of a block's.  weight_reader_at: those that this
 * processor can run, best first; NULL past the end.  ATTNSCOPE_ISA=generic leaves the last one. */
typedef void WeightReader(WeightType type, const uint8_t *in, float *out, int64_t count);
WeightReader *weight_reader_at(int index);

#endif
