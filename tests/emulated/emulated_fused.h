// emulated_fused.h -- stands for cuDNN where kernels are emulated: ATTNSCOPE_CUDNN=right computes
// attention plainly, "wrong" gives what is a little off, anything else is not there.
#ifndef TESTS_EMULATED_FUSED_H
#define TESTS_EMULATED_FUSED_H

#include "emulated_matrix.h"

static inline bool emulated_fused_is(const char *what)
{
    const char *given = getenv("ATTNSCOPE_CUDNN");

    return given && !strcmp(given, what);
}

static inline double emulated_number(const FusedCall &a, const Packed &t, int64_t head,
                                     int64_t row, int64_t col)
{
    int64_t         slice = head * t.heads / a.heads;
    const uint16_t *from = (const uint16_t *)t.data + (slice * t.rows + row) * t.size;

    return a.arithmetic == ARITHMETIC_BF16 ? emulated_from_bf16(from[col])
                                           : emulated_from_f16(from[col]);
}

static inline void emulated_fused_row(const FusedCall &a, int64_t head, int64_t i)
{
    int64_t   keys = a.causal ? i + 1 : a.m;
    double   *s = (double *)calloc((size_t)keys, sizeof(*s)), most = -INFINITY, sum = 0;
    uint16_t *to = (uint16_t *)a.narrow.data + (head * a.narrow.rows + i) * a.narrow.size;

    for (int64_t j = 0; j < keys; j++) {
        for (int64_t c = 0; c < a.d; c++)
            s[j] += emulated_number(a, a.q, head, i, c) * emulated_number(a, a.k, head, j, c);
        s[j] *= a.scale;
        most = s[j] > most ? s[j] : most;
    }
    for (int64_t j = 0; j < keys; j++)
        sum += s[j] = exp(s[j] - most);
    for (int64_t c = 0; c < a.e; c++) {
        double mixed = 0;

        for (int64_t j = 0; j < keys; j++)
            mixed += s[j] / sum * emulated_number(a, a.v, head, j, c);
        mixed += emulated_fused_is("wrong") ? 0.25 : 0;
        to[c] = (uint16_t)(a.arithmetic == ARITHMETIC_BF16 ? emulated_bf16((float)mixed)
                                                           : emulated_f16((float)mixed));
    }
    ((float *)a.lse.data)[head * a.n + i] = (float)(most + log(sum));
    free(s);
}

#endif
