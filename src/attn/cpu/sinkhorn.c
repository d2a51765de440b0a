/* sinkhorn.c -- Sinkhorn's balancing, and what a balanced matrix does to blocks.
 *
 *     L_uv <- L_uv - ln sum_v exp(L_uv)         over the allowed entries of a line
 *     y_u  =  sum_v P_uv x_v                    x_v: block v of b tokens, as one row
 *
 * Lines are taken LINES at a time, so that columns are read along rows too.
 */
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define LINES 16 /* of one item of work */
#define PAD 8    /* lines a power of two apart would fight for the same places of the cache */

typedef struct Balance {
    double        *log_p;
    const uint8_t *allowed; /* NULL: all */
    int64_t        b;
    bool           columns;
    double        *lines;   /* [workers][LINES][b + PAD]: allowed entries, side by side */
} Balance;

/* The allowed entries of a line, `step` apart from x on; returns how many. */
static int64_t take_line(const double *x, const uint8_t *allowed, int64_t b, int64_t step,
                         double *line)
{
    int64_t used = 0;

    for (int64_t c = 0; c < b; c++)
        if (!allowed || allowed[c * step])
            line[used++] = x[c * step];
    return used;
}

/* The log-sum-exp of a line; 0 where there is nothing to share. */
static double line_sum(const double *line, int64_t used)
{
    double sum = kernel_at(0)->log_sum_exp64(line, used);

    return sum == -(double)INFINITY ? 0 : sum;
}

static void subtract(double *x, const uint8_t *allowed, int64_t count, const double *sum,
                     int64_t step)
{
    for (int64_t c = 0; c < count; c++)
        if (!allowed || allowed[c])
            x[c] -= sum[c * step];
}

static void balance_rows(const Balance *job, double *x, const uint8_t *allowed, double *line)
{
    double sum = allowed ? line_sum(line, take_line(x, allowed, job->b, 1, line))
                         : line_sum(x, job->b);

    subtract(x, allowed, job->b, &sum, 0);
}

/* `count` columns; rows are read once for all of them. */
static void balance_columns(const Balance *job, double *x, const uint8_t *allowed, int64_t count,
                            double *lines)
{
    int64_t b = job->b, ld = b + PAD;
    double  sum[LINES];

    for (int64_t c = 0; c < b && !allowed; c++)
        for (int64_t t = 0; t < count; t++)
            lines[t * ld + c] = x[c * b + t];
    for (int64_t t = 0; t < count; t++)
        sum[t] = line_sum(lines + t * ld, allowed ? take_line(x + t, allowed + t, b, b,
                                                              lines + t * ld) : b);
    for (int64_t c = 0; c < b; c++)
        subtract(x + c * b, allowed ? allowed + c * b : NULL, count, sum, 1);
}

/* An item is LINES lines of one head. */
static void balance_item(void *context, int64_t item, int worker)
{
    const Balance *job = context;
    int64_t        b = job->b, strips = ceil_div(b, LINES), first = item % strips * LINES;
    int64_t        end = min_i64(b, first + LINES);
    double        *x = job->log_p + item / strips * b * b;
    double        *lines = job->lines + worker * LINES * (b + PAD);

    if (job->columns)
        balance_columns(job, x + first, job->allowed ? job->allowed + first : NULL, end - first,
                        lines);
    else
        for (int64_t u = first; u < end; u++)
            balance_rows(job, x + u * b, job->allowed ? job->allowed + u * b : NULL, lines);
}

void cpu_sinkhorn(Run *r, Tensor *log_p, const Tensor *allowed, bool columns)
{
    ArenaMark mark = arena_mark(r->arena);
    Balance   job = { .log_p = log_p->data, .b = log_p->shape[1], .columns = columns,
                      .allowed = tensor_given(allowed) ? allowed->data : NULL };

    job.lines = cpu_scratch(r, threads_count(r->threads) * LINES * (job.b + PAD),
                            sizeof(*job.lines));
    if (job.lines)
        threads_run(r->threads, log_p->shape[0] * ceil_div(job.b, LINES), balance_item, &job);
    arena_release(r->arena, mark);
}

/* ---- blocks mixed ----------------------------------------------------------- */

typedef struct Mix {
    const Tensor *perm, *x;
    int64_t       b, rows, nb, strips; /* strips: of a block's columns */
    float        *share;               /* [h][rows padded to TILE_ROWS][nb] */
    float        *strip;               /* [workers][nb][TILE_KEYS] */
    Tensor       *y;
} Mix;

/* Columns [first, first + count) of all blocks, side by side; 0 behind the last token. */
static void take_strip(const Mix *job, int64_t head, int64_t first, int64_t count, float *to)
{
    int64_t      w = job->x->shape[2], end = job->x->shape[1] * w, block = job->b * w;
    const float *x = tensor_head(job->x, head, job->y->shape[0]);

    for (int64_t v = 0; v < job->nb; v++, to += TILE_KEYS) {
        int64_t at = v * block + first, given = min_i64(count, max_i64(0, end - at));

        memcpy(to, x + at, (size_t)given * sizeof(*to));
        memset(to + given, 0, (size_t)(count - given) * sizeof(*to));
    }
}

/* An item is a strip of the columns of one head. */
static void mix_item(void *context, int64_t item, int worker)
{
    static const float none[TILE_ROWS] = { 0 };
    const Mix         *job = context;
    int64_t            head = item / job->strips, first = item % job->strips * TILE_KEYS;
    int64_t            block = job->b * job->x->shape[2];
    int64_t            count = min_i64(TILE_KEYS, block - first);
    float             *strip = job->strip + worker * job->nb * TILE_KEYS;
    const float       *share = job->share + head * round_up_to(job->rows, TILE_ROWS) * job->nb;
    float             *y = (float *)job->y->data + head * job->y->stride[0] + first;
    float              tile[TILE_ROWS * TILE_KEYS] = { 0 };

    take_strip(job, head, first, count, strip);
    for (int64_t u = 0; u < job->rows; u += TILE_ROWS) {
        kernel_at(0)->mix(share + u * job->nb, job->nb, strip, TILE_KEYS, job->nb, count, none,
                          tile, TILE_KEYS);
        for (int64_t r = 0; r < min_i64(TILE_ROWS, job->rows - u); r++)
            memcpy(y + (u + r) * block, tile + r * TILE_KEYS, (size_t)count * sizeof(*y));
    }
}

/* An item is a head's row of shares; those behind the last are 0. */
static void round_item(void *context, int64_t item, int worker)
{
    const Mix    *job = context;
    int64_t       padded = round_up_to(job->rows, TILE_ROWS), nb = job->nb, u = item % padded;
    const double *row = (const double *)tensor_head(job->perm, item / padded, job->y->shape[0]) +
                        u * nb;

    (void)worker;
    for (int64_t v = 0; v < nb; v++)
        job->share[item * nb + v] = u < job->rows ? (float)row[v] : 0;
}

void cpu_mix_blocks(Run *r, const Tensor *perm, const Tensor *x, int64_t b, Tensor *y)
{
    ArenaMark mark = arena_mark(r->arena);
    Mix       job = { .perm = perm, .x = x, .b = b, .nb = perm->shape[2], .y = y,
                      .strips = ceil_div(b * x->shape[2], TILE_KEYS) };
    int64_t   h = y->shape[0], f = (int64_t)sizeof(float);

    job.rows = y->shape[1] / b;
    job.share = cpu_scratch(r, h * round_up_to(job.rows, TILE_ROWS), job.nb * f);
    job.strip = cpu_scratch(r, threads_count(r->threads) * TILE_KEYS, job.nb * f);
    if (job.share && job.strip) {
        threads_run(r->threads, h * round_up_to(job.rows, TILE_ROWS), round_item, &job);
        threads_run(r->threads, h * job.strips, mix_item, &job);
    }
    arena_release(r->arena, mark);
}
