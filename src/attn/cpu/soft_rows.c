/* soft_rows.c -- see attn/ops/soft_rows.h. */
#include "attn/ops/soft_rows.h"

#include <math.h>

#include "attn/cpu/cpu.h"

static int64_t panels_of(const SoftRows *s)
{
    return ceil_div(s->count, TILE_KEYS);
}

/* Key c as columns of its strip and of its panel; returns its length. */
static double put_key(const SoftRows *s, const double *key, int64_t c, double *strips,
                      float *panels)
{
    double squares = 0;

    strips += c / LANES * s->d * LANES + c % LANES;
    panels += c / TILE_KEYS * s->d * TILE_KEYS + c % TILE_KEYS;
    for (int64_t t = 0; t < s->d; t++) {
        strips[t * LANES] = key[t];
        panels[t * TILE_KEYS] = (float)key[t];
        squares += key[t] * key[t];
    }
    return sqrt(squares);
}

SoftRows soft_rows_of(Run *r, const Tensor *keys, double scale, double cap)
{
    int64_t  g = keys->shape[0], d = keys->shape[2];
    SoftRows s = { .count = keys->shape[1], .padded = round_up_to(keys->shape[1], LANES), .d = d,
                   .scale = scale, .cap = cap };
    int64_t  panel = panels_of(&s) * TILE_KEYS * d, strip = s.padded * d;
    double  *strips = run_alloc(r, max_i64(1, g * strip), sizeof(*strips));
    float   *panels = run_alloc(r, max_i64(1, g * panel), sizeof(*panels));
    double  *longest = run_alloc(r, g, sizeof(*longest));

    if (!strips || !panels || !longest)
        return s;
    memset(strips, 0, (size_t)(g * strip) * sizeof(*strips));
    memset(panels, 0, (size_t)(g * panel) * sizeof(*panels));
    for (int64_t at = 0; at < g; at++) {
        longest[at] = 0;
        for (int64_t c = 0; c < s.count; c++)
            longest[at] = larger_or_nan(longest[at], put_key(&s, tensor_row_f64(keys, at, g, c), c,
                                                             strips + at * strip,
                                                             panels + at * panel));
    }
    s.strips = strips;
    s.panels = panels;
    s.longest = longest;
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

/* ---- in float ------------------------------------------------------------------ */

#define LARGEST 1e4 /* a score's size up to which its error is small */
#define LEAST_WIDTH 4 /* floats of the shortest vector: each sums a part of the row */
#define EXP_ERROR 1e-6 /* of 2^x, of the sum's and of the product's roundings */

/* How far weights of this query may be off, relative to themselves: an exponential by the error of
 * its score, and its row's sum by as much and by the rounding of as many additions. */
static double near_error(const SoftRows *s, int64_t g, const float *q)
{
    double size = s->scale * sqrt(kernel_at(0)->squares(q, s->d)) * s->longest[g];
    double of_score = (double)(s->d + 24) * 0x1p-24 * size;
    double of_sum = (double)(s->count / LEAST_WIDTH + LANES) * 0x1p-24;

    return size <= LARGEST && s->cap <= 0 ? 2.2 * of_score + of_sum + EXP_ERROR : HUGE_VAL;
}

/* Scores of a tile of rows for the panel from `at`: those from seen[x] on are -inf. */
static void near_tile(const SoftRows *s, const float *q, const float *panel, int64_t at,
                      const int64_t *seen, int64_t rows, float *w, int64_t ldw)
{
    uint64_t keep[TILE_ROWS] = { 0 }, all = ~UINT64_C(0);
    float    top[TILE_ROWS * LANES] = { 0 };

    for (int64_t x = 0; x < rows; x++) {
        int64_t left = seen[x] - at;

        keep[x] = left >= TILE_KEYS ? ~UINT64_C(0) : left > 0 ? (UINT64_C(1) << left) - 1 : 0;
        all &= keep[x];
    }
    kernel_at(0)->score(q, s->d, panel, s->d, ~all ? keep : NULL, 0, TILE_KEYS, w + at, ldw, top);
}

static void near_softmax(int64_t seen, float *w, int64_t ldw)
{
    int64_t wide = round_up_to(seen, LANES);
    float   max = -INFINITY, sum = 0, factor;

    if (seen)
        kernel_at(0)->softmax(w, ldw, 1, wide, NULL, &max, &sum, &factor);
    kernel_at(0)->scale(w, seen, seen ? 1 / sum : 0, w);
    memset(w + seen, 0, (size_t)(ldw - seen) * sizeof(*w));
}

void soft_rows_near(const SoftRows *s, int64_t g, const float *q, int64_t ldq, int64_t rows,
                    const int64_t *seen, float *near_q, float *w, int64_t ldw, double *error)
{
    const float *panels = s->panels + g * panels_of(s) * s->d * TILE_KEYS;
    int64_t      most = 0;

    memset(near_q, 0, (size_t)(SOFT_ROWS_NEAR * s->d) * sizeof(*near_q));
    for (int64_t x = 0; x < rows; x++) {
        most = max_i64(most, seen[x]);
        error[x] = near_error(s, g, q + x * ldq);
        kernel_at(0)->scale(q + x * ldq, s->d, (float)(s->scale * LOG2_E), near_q + x * s->d);
    }
    for (int64_t at = 0; at < most; at += TILE_KEYS)
        for (int64_t x = 0; x < rows; x += TILE_ROWS)
            near_tile(s, near_q + x * s->d, panels + at * s->d, at, seen + x,
                      min_i64(TILE_ROWS, rows - x), w + x * ldw, ldw);
    for (int64_t x = 0; x < rows; x++)
        near_softmax(seen[x], w + x * ldw, ldw);
}
