/* usage.c -- how much each key is used; see op_key_usage.
 *
 * A head is an item of work and has sums of its own, which are added in the order of the
 * heads, so the result depends neither on the threads nor on which takes what.
 */
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define ROWS 16 /* scores kept at once */

typedef struct Usage {
    Run          *run;
    const Tensor *q, *k;
    double        scale;
    bool          causal;
    int64_t       h, n, m, d, cols; /* cols: m, padded */
    double       *keys;             /* [h][cols / LANES][d][LANES]: as dots64 has them */
    double       *scores;           /* [h][ROWS][cols] */
    double       *sums;             /* [h][m] */
} Usage;

static void turn_keys(const Usage *u, int64_t head, double *keys)
{
    const float *k = tensor_head(u->k, head, u->h);

    memset(keys, 0, (size_t)(u->d * u->cols) * sizeof(*keys));
    for (int64_t j = 0; j < u->m; j++)
        for (int64_t t = 0; t < u->d; t++)
            keys[(j / LANES * u->d + t) * LANES + j % LANES] = (double)k[j * u->k->stride[1] + t];
}

static void add_row(const Usage *u, int64_t i, double *score, double *sums)
{
    int64_t seen = u->causal ? i + u->m - u->n + 1 : u->m;
    double  most = -(double)INFINITY, total = 0;

    for (int64_t j = 0; j < seen; j++)
        most = fmax(most, u->scale * score[j]);
    for (int64_t j = 0; j < seen; j++) {
        score[j] = exp(u->scale * score[j] - most);
        total += score[j];
    }
    for (int64_t j = 0; j < seen; j++)
        sums[j] += score[j] / total;
}

static void usage_item(void *context, int64_t head, int worker)
{
    const Usage *u = context;
    double      *keys = u->keys + head * u->d * u->cols;
    double      *scores = u->scores + head * ROWS * u->cols, *sums = u->sums + head * u->m;
    const float *q = tensor_head(u->q, head, u->h);
    int64_t      ldq = u->q->stride[1];

    (void)worker;
    turn_keys(u, head, keys);
    memset(sums, 0, (size_t)u->m * sizeof(*sums));
    for (int64_t first = 0; first < u->n; first += ROWS) {
        int64_t rows = min_i64(ROWS, u->n - first);

        if (cpu_cancelled(u->run))
            return;
        kernel_at(0)->dots64(q + first * ldq, ldq, rows, u->d, keys, u->cols, scores, u->cols);
        for (int64_t i = 0; i < rows; i++)
            add_row(u, first + i, scores + i * u->cols, sums);
    }
}

void cpu_key_usage(Run *r, const Tensor *q, const Tensor *k, double scale, bool causal,
                   Tensor *usage)
{
    ArenaMark mark = arena_mark(r->arena);
    double   *out = usage->data;
    Usage     u = { .run = r, .q = q, .k = k, .scale = scale, .causal = causal, .h = q->shape[0],
                    .n = q->shape[1], .m = k->shape[1], .d = q->shape[2],
                    .cols = round_up_to(k->shape[1], LANES) };

    u.keys = cpu_scratch(r, u.h * u.d, u.cols * (int64_t)sizeof(double));
    u.scores = cpu_scratch(r, u.h * ROWS, u.cols * (int64_t)sizeof(double));
    u.sums = cpu_scratch(r, u.h, u.m * (int64_t)sizeof(double));
    if (u.keys && u.scores && u.sums) {
        threads_run(r->threads, u.h, usage_item, &u);
        for (int64_t j = 0; j < u.m; j++) {
            out[j] = 0;
            for (int64_t head = 0; head < u.h; head++)
                out[j] += u.sums[head * u.m + j];
            out[j] /= (double)(u.h * u.n);
        }
    }
    arena_release(r->arena, mark);
}
