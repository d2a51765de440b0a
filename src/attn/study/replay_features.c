/* replay_features.c -- the softmax that the first 1, 2, 4, ... random directions make.
 *
 *     W[i,j] = phi(q_i) . phi(k_j) / sum over j',  phi: the features of those directions only
 *
 * Directions are drawn independently (or in orthogonal blocks) one after the other, so the
 * first of them are what a run with fewer would use; the common factors cancel in the ratio.
 * Errors are means over some rows, spread evenly, against exact attention in double.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/study/replay_parts.h"

#define LEVELS 16
#define WORK   (1 << 26) /* multiply-adds for the errors at most */
#define COPIED (1 << 24) /* numbers of features at most */

typedef struct Growth {
    const ReplaySource *source;
    int64_t             level[LEVELS]; /* directions */
    int                 levels;
    int64_t             rows;          /* that errors are taken of */
    double             *exact;         /* [rows,m] weights */
    double             *output;        /* [rows,e] */
} Growth;

/* The row of head and query that sample x is. */
static int64_t sampled(const Run *r, const Growth *g, int64_t x)
{
    return (int64_t)((double)x * (double)(r->h * r->n) / (double)g->rows);
}

static int64_t keys_of(const Run *r, int64_t i)
{
    return r->causal ? i + 1 : r->m;
}

/* ---- the exact rows --------------------------------------------------------- */

static void mix(const Run *r, const Growth *g, int64_t head, int64_t keys, const double *w,
                double *out)
{
    const Tensor *v = &g->source->v;

    memset(out, 0, (size_t)r->e * sizeof(*out));
    for (int64_t j = 0; j < keys; j++) {
        const float *row = (const float *)tensor_head(v, head, r->h) + j * v->stride[1];

        for (int64_t x = 0; x < r->e; x++)
            out[x] += w[j] * (double)row[x];
    }
}

static void make_exact(const Run *r, const Growth *g, int64_t x)
{
    AttendInput in = { .q = r->q, .k = r->k, .v = r->v, .scale = g->source->scale };
    int64_t     head = sampled(r, g, x) / r->n, i = sampled(r, g, x) % r->n;
    int64_t     keys = keys_of(r, i);
    double     *w = g->exact + x * r->m, top = -HUGE_VAL, sum = 0;

    for (int64_t j = 0; j < keys; j++)
        top = fmax(top, w[j] = attend_score(&in, r->h, head, i, j));
    for (int64_t j = 0; j < keys; j++)
        sum += w[j] = exp(w[j] - top);
    for (int64_t j = 0; j < keys; j++)
        w[j] /= sum;
    mix(r, g, head, keys, w, g->output + x * r->e);
}

/* ---- fewer features --------------------------------------------------------- */

/* [h',n,waves count] of the first directions. */
static Tensor first_features(Run *r, const ReplaySource *s, const Tensor *from, int64_t count)
{
    Tensor  y = run_tensor3(r, from->dtype, from->shape[0], from->shape[1], count * s->waves);
    int64_t rows = from->shape[0] * from->shape[1], f = from->shape[2];
    size_t  size = (size_t)dtype_size(from->dtype);

    for (int64_t x = 0; y.data && x < rows; x++)
        for (int64_t wave = 0; wave < s->waves; wave++)
            memcpy((char *)y.data + (size_t)((x * s->waves + wave) * count) * size,
                   (const char *)from->data + (size_t)(x * f + wave * s->directions) * size,
                   (size_t)count * size);
    return y;
}

static double number(const Tensor *t, int64_t at)
{
    return t->dtype == DT_F64 ? ((const double *)t->data)[at] : (double)tensor_f32(t)[at];
}

/* What a row's products z are divided by.  Features of fewer directions are larger by
 * sqrt(grown), so their guards are met as a run with so many would meet them. */
static double guarded(const ReplaySource *s, double z, double features, double grown)
{
    double whole = z * grown;

    switch (s->denominator) {
    case DENOMINATOR_GUARD: whole += fabs(whole) <= s->eps ? 2 * s->eps : 0; break;
    case DENOMINATOR_ADD: whole += s->eps; break;
    case DENOMINATOR_ADD_FEATURES: whole += s->eps * features * sqrt(grown); break;
    case DENOMINATOR_FLOOR: whole = fmax(whole, s->eps); break;
    default: break;
    }
    return whole / grown;
}

/* f64 [h,n]: what each row is divided by. */
static Tensor row_sums(Run *r, const ReplaySource *s, const Tensor *fq, const Tensor *fk)
{
    Tensor  y = run_tensor2(r, DT_F64, r->h, r->n);
    int64_t f = fq->shape[2], keys = fk->shape[1];
    double *sum = run_alloc(r, f, sizeof(*sum));

    for (int64_t head = 0; y.data && sum && head < r->h; head++) {
        int64_t q = head * fq->shape[0] / r->h, k = head * fk->shape[0] / r->h, done = 0;

        memset(sum, 0, (size_t)f * sizeof(*sum));
        for (int64_t i = 0; i < r->n; i++) {
            double z = 0, features = 0;

            for (; done < keys_of(r, i); done++)
                for (int64_t c = 0; c < f; c++)
                    sum[c] += number(fk, (k * keys + done) * f + c);
            for (int64_t c = 0; c < f; c++) {
                z += number(fq, (q * r->n + i) * f + c) * sum[c];
                features += number(fq, (q * r->n + i) * f + c);
            }
            ((double *)y.data)[head * r->n + i] =
                guarded(s, z, features, (double)(s->directions * s->waves) / (double)f);
        }
    }
    return y;
}

/* Mean distance of the sampled rows from exact attention. */
static void measure(Run *r, const Growth *g, const Implicit *w, double *variation, double *off)
{
    double *row = run_alloc(r, r->m, sizeof(*row)), *out = run_alloc(r, r->e, sizeof(*out));
    double  wrong = 0, size = 0;

    *variation = *off = 0;
    for (int64_t x = 0; row && out && x < g->rows; x++) {
        int64_t head = sampled(r, g, x) / r->n, i = sampled(r, g, x) % r->n;
        int64_t keys = keys_of(r, i);

        for (int64_t j = 0; j < keys; j++) {
            row[j] = implicit_cell(w, head, i, j);
            *variation += fabs(row[j] - g->exact[x * r->m + j]) / 2 / (double)g->rows;
        }
        mix(r, g, head, keys, row, out);
        for (int64_t c = 0; c < r->e; c++) {
            double exact = g->output[x * r->e + c];

            wrong += (out[c] - exact) * (out[c] - exact);
            size += exact * exact;
        }
    }
    *off = size > 0 ? sqrt(wrong / size) : 0;
}

/* ---- steps ------------------------------------------------------------------ */

static void show_level(Run *r, const Growth *g, int at, const Pattern *cells)
{
    const ReplaySource *s = g->source;
    Implicit            w = { .heads = r->h };
    double              variation, off;

    run_iteration(r, "growing", at);
    run_mark(r, "random directions", (double)g->level[at]);
    w.left = first_features(r, s, &s->fq, g->level[at]);
    w.right = first_features(r, s, &s->fk, g->level[at]);
    w.divisor = row_sums(r, s, &w.left, &w.right);
    if (run_failed(r))
        return;
    implicit_product(r, "approximation", w, s->negative ? VIEW_SIGNED : VIEW_WEIGHTS, cells);
    measure(r, g, &w, &variation, &off);
    run_trace(r, "weights off", variation);
    run_trace(r, "output off", off);
    run_say(r, "With %lld of %lld directions %.1f %% of a row's weight lies elsewhere than in "
            "exact attention; outputs are off by %.1f %% (%lld of %lld rows).",
            (long long)g->level[at], (long long)s->directions, 100 * variation, 100 * off,
            (long long)g->rows, (long long)(r->h * r->n));
}

/* Powers of two, and all of them at last. */
static void choose_levels(Growth *g, int64_t directions)
{
    for (int64_t m = 1; m < directions && g->levels < LEVELS - 1; m *= 2)
        g->level[g->levels++] = m;
    g->level[g->levels++] = directions;
}

void replay_features(Run *r, const ReplaySource *s)
{
    int64_t  f = s->directions * s->waves;
    double   row = (double)r->m * (double)(r->d + 2 * f + LEVELS * r->e);
    Growth   g = { .source = s };
    Pattern *cells;

    if (!s->directions || !s->fk.data || s->fk.shape[2] != f ||
        r->h * (r->n + r->m) * f > COPIED || row > WORK)
        return;
    choose_levels(&g, s->directions);
    g.rows = (int64_t)(WORK / row);
    g.rows = g.rows < r->h * r->n ? g.rows : r->h * r->n;
    g.exact = run_alloc(r, g.rows * r->m, sizeof(*g.exact));
    g.output = run_alloc(r, g.rows * r->e, sizeof(*g.output));
    cells = implicit_cells(r);
    for (int64_t x = 0; !run_failed(r) && x < g.rows; x++)
        make_exact(r, &g, x);
    for (int k = 0; k < g.levels && !run_failed(r); k++)
        show_level(r, &g, k, cells);
}
