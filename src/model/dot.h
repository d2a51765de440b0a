/* model/dot.h -- y = x . w for a row w as it lies in a model's file, without dequantising it first.
 *
 * Writing a text token by token reads every weight once a token, so it takes as long as the bytes
 * take from memory; a row in float32 would be up to eight times as long.  Products and sums are in
 * float32.  The loops are written once in dot_body.h; dot_avx512.c, dot_avx2.c and dot_generic.c
 * give them vectors.
 */
#ifndef MODEL_DOT_H
#define MODEL_DOT_H

#include <stdint.h>

#include "model/file/weight.h"

#define DOT_SUM 16 /* values of x that a sum stands for */

/* sums[b]: x[16 b] + .. + x[16 b + 15], for types whose blocks have a minimum or an offset. */
typedef float (*RowDot)(const uint8_t *w, const float *x, const float *sums, int64_t cols);

typedef struct DotKernel {
    const char *name; /* "avx512", "avx2", "generic" */
    RowDot      dot[WEIGHT_TYPES];
} DotKernel;

/* Those this CPU can run, best first; NULL past the end. */
const DotKernel *dot_kernel_at(int index);
/* The sums that a RowDot takes: of x [cols], the last perhaps of fewer than DOT_SUM values. */
void dot_sums(const float *x, int64_t cols, float *sums);

extern const DotKernel dot_generic;
#if defined(__x86_64__)
extern const DotKernel dot_avx2, dot_avx512;
#endif

static inline uint32_t dot_u16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

#endif
