/* soft_rows.c -- see attn/ops/soft_rows.h. */
#include "attn/ops/soft_rows.h"

#include <math.h>

#include "attn/cpu/cpu.h"

SoftRows soft_rows_of(Run *r, const Tensor *keys, double scale, double cap)
{
    int64_t  g = keys->shape[0], count = keys->shape[1], d = keys->shape[2];
    SoftRows s = { .count = count, .padded = round_up_to(count, LANES), .d = d, .scale = scale,
                   .cap = cap };
    double  *to = run_alloc(r, max_i64(1, g * s.padded * d), sizeof(*to));

    s.strips = to;
    for (int64_t at = 0; to && at < g * s.padded / LANES; at++)
        for (int64_t x = 0; x < d * LANES; x++) {
            int64_t c = at * LANES % s.padded + x % LANES;

            *to++ = c < count ? tensor_float(keys, at * LANES / s.padded, g, c, x / LANES) : 0;
        }
    return s;
}

/* Scores become weights.  Exponentials are those of whole strips, so that none depends on how many
 * keys stand behind it. */
static void soften(const SoftRows *s, int64_t seen, double *w)
{
    const Kernel *kernel = kernel_at(0);
    int64_t       wide = round_up_to(seen, LANES);
    double        most = -HUGE_VAL, sum = 0;

    kernel->scale64(w, seen, s->scale);
    for (int64_t c = 0; c < seen && s->cap > 0; c++)
        w[c] = s->cap * tanh(w[c] / s->cap);
    for (int64_t c = 0; c < seen; c++)
        most = w[c] > most ? w[c] : most;
    for (int64_t c = 0; c < seen; c++)
        w[c] -= most;
    for (int64_t c = seen; c < wide; c++)
        w[c] = 0;
    kernel->exp64(w, wide);
    for (int64_t c = 0; c < seen; c++)
        sum += w[c];
    kernel->over64(w, seen, sum);
}

void soft_rows_weigh(const SoftRows *s, int64_t g, const float *q, int64_t ldq, int64_t rows,
                     const int64_t *seen, double *wide, double *w)
{
    const double *strips = s->strips + g * s->padded * s->d;
    int64_t       most = 0;

    for (int64_t x = 0; x < rows; x++) {
        most = max_i64(most, seen[x]);
        for (int64_t c = 0; c < s->d; c++)
            wide[x * s->d + c] = (double)q[x * ldq + c];
    }
    for (int64_t at = 0; at < most; at += LANES)
        kernel_at(0)->product64(wide, s->d, rows, s->d, NULL, strips + at * s->d, LANES, w + at,
                                s->padded);
    for (int64_t x = 0; x < rows; x++)
        soften(s, seen[x], w + x * s->padded);
}
