/* one_panel.c -- attention where all keys of a head fit one panel: latents, landmarks, slots.
 *
 * A row then has a single step, so its softmax is whole before any value is mixed: queries are read
 * where they lie, weights are divided by their sum, and the mix of values is the output.  Nothing
 * is scaled, kept or added up on the way, and queries are fetched ahead, as the memory is what
 * such rows wait for.  The keys of each row are bits, which all heads share.
 */
#include <math.h>
#include <string.h>

#include "attn/cpu/attend.h"
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#define ITEM_ROWS 768
#define STEP_ROWS 96 /* whole tiles, which stay in the first-level cache */
#define DEPTH 64     /* long dot products are summed in pieces, as by Kernel.score */

typedef struct OnePanel {
    const Job *job;
    int64_t    items;  /* of a head */
    float     *packed; /* [heads of k][d][TILE_KEYS] */
    uint64_t  *keep;   /* [1 or h][n] */
    bool       all;    /* each row sees every key */
    float     *s;      /* [workers][STEP_ROWS][lds] */
    float     *sums;   /* [workers][2][STEP_ROWS] */
    int64_t    lds;
} OnePanel;

/* ---- the keys of each row ----------------------------------------------------- */

static uint64_t bits_of(const PatternRow *row)
{
    uint64_t bits = 0;

    for (int64_t x = 0; x < row->count; x++)
        for (int64_t y = 0; y < row->runs[x].count; y++)
            bits |= UINT64_C(1) << (row->runs[x].start + y * row->runs[x].step);
    return bits;
}

static void keep_item(void *context, int64_t item, int worker)
{
    const OnePanel *o = context;
    const Job      *job = o->job;
    Worker         *w = &job->workers[worker];
    int64_t         head = item / o->items, first = item % o->items * ITEM_ROWS;
    int64_t         end = min_i64(job->n, first + ITEM_ROWS);

    for (int64_t i = first, to; i < end && !w->failed; i = to) {
        uint64_t bits;

        to = min_i64(end, pattern_same_until(job->pattern, head, i));
        pattern_row(job->pattern, head, i, &w->plan.row);
        w->failed = w->plan.row.failed;
        bits = bits_of(&w->plan.row);
        w->cells += (double)(__builtin_popcountll(bits) * (to - i));
        for (int64_t x = i; x < to; x++)
            o->keep[head * job->n + x] = bits;
    }
}

/* False: no memory for a row's runs. */
static bool find_keys(OnePanel *o)
{
    const Job *job = o->job;
    int64_t    heads = job->per_head ? job->h : 1;
    double     cells = 0;
    bool       failed = false;

    threads_run(job->run->threads, heads * o->items, keep_item, o);
    for (int x = 0; x < threads_count(job->run->threads); x++) {
        job->workers[x].cells *= (double)(job->h / heads);
        cells += job->workers[x].cells;
        failed |= job->workers[x].failed;
    }
    o->all = cells == (double)(job->h * job->n * job->m);
    return !failed;
}

/* ---- rows --------------------------------------------------------------------- */

static void pack_item(void *context, int64_t item, int worker)
{
    const OnePanel *o = context;
    const Tensor   *k = &o->job->in->k;

    (void)worker;
    pack_panel(tensor_f32(k) + item * k->stride[0], k->stride[1], o->job->m, o->job->d,
               o->packed + item * o->job->d * TILE_KEYS);
}

/* s[r] = scores of the rows from q on, in base 2. */
static void score_rows(const OnePanel *o, const float *q, int64_t rows, const float *panel,
                       float *s)
{
    const Job   *job = o->job;
    SmallProduct p = { .a = q, .lda = job->in->q.stride[1], .step = 1, .b = panel,
                       .ldb = TILE_KEYS, .rows = rows, .cols = o->lds,
                       .alpha = (float)(job->in->scale * LOG2_E), .c = s, .ldc = o->lds };

    for (int64_t t = 0; t < job->d; t += DEPTH) {
        p.inner = min_i64(DEPTH, job->d - t);
        job->kernel->product(&p);
        p.a += DEPTH;
        p.b += DEPTH * TILE_KEYS;
        p.add = true;
    }
}

/* Rows [i, i + rows) of a head. */
static void take_rows(const OnePanel *o, int worker, int64_t head, int64_t i, int64_t rows)
{
    const Job         *job = o->job;
    const AttendInput *in = job->in;
    int64_t            at = head * job->n + i, slice = head * in->k.shape[0] / job->h;
    float             *s = o->s + worker * STEP_ROWS * o->lds;
    float             *max = o->sums + worker * 2 * STEP_ROWS, *sum = max + STEP_ROWS;
    float             *out = tensor_f32(&job->out->out) + at * job->e;
    float             *lse = tensor_f32(&job->out->lse) + at;
    const uint64_t    *keep = o->all ? NULL : o->keep + (job->per_head ? at : i);
    SmallProduct       mix = { .a = s, .lda = o->lds, .step = 1, .ldb = in->v.stride[1],
                               .b = tensor_head(&in->v, head, job->h), .rows = rows,
                               .cols = job->e, .inner = job->m, .alpha = 1, .c = out,
                               .ldc = job->e };

    for (int64_t x = i + rows; x < min_i64(job->n, i + rows + STEP_ROWS); x++)
        cpu_fetch(tensor_row_f32(&in->q, head, job->h, x), job->d);
    score_rows(o, tensor_row_f32(&in->q, head, job->h, i), rows,
               o->packed + slice * job->d * TILE_KEYS, s);
    job->kernel->shares(s, o->lds, rows, (int)job->m, keep, max, sum);
    job->kernel->product(&mix);
    job->kernel->log_sums(max, sum, rows, lse);
    for (int64_t x = 0; x < rows; x++)
        if (lse[x] == -INFINITY)
            memset(out + x * job->e, 0, (size_t)job->e * sizeof(*out));
}

/* Cells of rows [first, end). */
static double cells_of(const OnePanel *o, int64_t head, int64_t first, int64_t end)
{
    const uint64_t *keep = o->keep + (o->job->per_head ? head * o->job->n : 0);
    double          cells = 0;

    for (int64_t i = first; i < end; i++)
        cells += (double)__builtin_popcountll(keep[i]);
    return cells;
}

static void rows_item(void *context, int64_t item, int worker)
{
    const OnePanel *o = context;
    int64_t         head = item / o->items, first = item % o->items * ITEM_ROWS;
    int64_t         end = min_i64(o->job->n, first + ITEM_ROWS);

    for (int64_t i = first; i < end && !cpu_cancelled(o->job->run); i += STEP_ROWS)
        take_rows(o, worker, head, i, min_i64(STEP_ROWS, end - i));
    run_ahead(o->job->run, cells_of(o, head, first, end) * o->job->cell_flops);
}

void attend_one_panel(Job *job)
{
    Run     *r = job->run;
    int64_t  size = (int64_t)sizeof(float), h_kv = job->in->k.shape[0];
    int      threads = threads_count(r->threads);
    OnePanel o = { .job = job, .items = ceil_div(job->n, ITEM_ROWS),
                   .lds = round_up_to(job->m, LANES) };

    o.packed = cpu_scratch(r, h_kv * job->d, TILE_KEYS * size);
    o.keep = cpu_scratch(r, (job->per_head ? job->h : 1) * job->n, sizeof(*o.keep));
    o.s = cpu_scratch(r, threads * STEP_ROWS, o.lds * size);
    o.sums = cpu_scratch(r, threads * STEP_ROWS, 2 * size);
    if (run_failed(r) || !find_keys(&o))
        return;
    threads_run(r->threads, h_kv, pack_item, &o);
    threads_run(r->threads, job->h * o.items, rows_item, &o);
}
