/* one_row.c -- attention of one query a head: a step of decoding over a cache.
 *
 * A key serves one query, or those of the heads that share it, so packing the keys into panels
 * would cost more than their scores.  The row's keys are listed once for all heads that share the
 * list, and cut into slices of a fixed size, each with its own softmax; an item is a slice for all
 * query heads of one head of k.  The slices are joined in order at the end, so the number of
 * threads changes no bit.
 */
#include "attn/cpu/attend.h"

#include "attn/ops/weights.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define SLICE_KEYS (16 * LIST_KEYS)

typedef struct OneRow {
    const Job *job;
    int64_t    slices, lda;
    int64_t   *start; /* [lists + 1] into key; a list serves all heads, or one */
    int32_t   *key;
    float     *q;     /* [h][d] scaled */
    float     *max, *sum; /* [h][slices] */
    float     *acc;   /* [h][slices][lda] */
} OneRow;

static int64_t list_of(const OneRow *o, int64_t head)
{
    return o->job->per_head ? head : 0;
}

/* Lists the row's keys; false: no memory. */
static bool list_keys(OneRow *o)
{
    const Job *job = o->job;
    int64_t    lists = job->per_head ? job->h : 1, longest = 0;
    PatternRow row = { 0 };

    o->start = arena_zalloc(job->run->arena, lists + 1, sizeof(*o->start));
    for (int64_t t = 0; o->start && t < lists && !row.failed; t++) {
        pattern_row(job->pattern, t, 0, &row);
        o->start[t + 1] = o->start[t] + pattern_row_cells(&row);
        longest = max_i64(longest, o->start[t + 1] - o->start[t]);
    }
    o->slices = max_i64(1, ceil_div(longest, SLICE_KEYS));
    if (o->start)
        o->key = cpu_scratch(job->run, max_i64(1, o->start[lists]), sizeof(*o->key));
    for (int64_t t = 0, at = 0; o->key && t < lists && !row.failed; t++) {
        pattern_row(job->pattern, t, 0, &row);
        for (int64_t x = 0; x < row.count; x++)
            for (int64_t y = 0; y < row.runs[x].count; y++)
                o->key[at++] = (int32_t)(row.runs[x].start + y * row.runs[x].step);
    }
    pattern_row_free(&row);
    return o->key && !row.failed;
}

static bool one_row_init(OneRow *o)
{
    const Job *job = o->job;
    int64_t    parts = job->h * o->slices, size = (int64_t)sizeof(float);

    o->lda = round_up_to(job->e, LANES);
    o->q = cpu_scratch(job->run, job->h, job->d * size);
    o->max = cpu_scratch(job->run, parts, size);
    o->sum = arena_zalloc(job->run->arena, parts, size);
    o->acc = arena_zalloc(job->run->arena, parts, o->lda * size);
    for (int64_t x = 0; o->max && x < parts; x++)
        o->max[x] = -INFINITY;
    for (int64_t t = 0; o->q && t < job->h; t++)
        job->kernel->scale(tensor_row_f32(&job->in->q, t, job->h, 0), job->d,
                           (float)(job->in->scale * LOG2_E), o->q + t * job->d);
    return o->q && o->max && o->sum && o->acc;
}

/* Some listed keys join the part's softmax and sums. */
static void take_keys(const OneRow *o, Worker *w, int64_t head, int64_t part, const int32_t *key,
                      int64_t count)
{
    const Job    *job = o->job;
    const Tensor *k = &job->in->k, *v = &job->in->v;
    int64_t       padded = round_up_to(count, TILE_KEYS);
    float         factor, *acc = o->acc + part * o->lda;

    job->kernel->dots(o->q + head * job->d, tensor_head(k, head, job->h), k->stride[1], key, count,
                      job->d, w->s);
    if (job->has_terms)
        terms_add_list(&w->terms, head, 0, key, count, w->s);
    for (int64_t x = count; x < padded; x++)
        w->s[x] = -INFINITY;
    job->kernel->softmax(w->s, padded, 1, padded, NULL, o->max + part, o->sum + part, &factor);
    job->kernel->mix_row(w->s, tensor_head(v, head, job->h), v->stride[1], key, count, job->e,
                         factor, acc);
    if (w->terms.value)
        terms_mix_list(&w->terms, head, 0, key, count, w->s, acc);
    w->cells += (double)count;
}

static void slice_item(void *context, int64_t item, int worker)
{
    OneRow    *o = context;
    const Job *job = o->job;
    Worker    *w = &job->workers[worker];
    int64_t    h_kv = job->in->k.shape[0], shared = item / o->slices, slice = item % o->slices;
    int64_t    first = ceil_div(shared * job->h, h_kv), end = ceil_div((shared + 1) * job->h, h_kv);
    double     before = w->cells;

    for (int64_t x = slice * SLICE_KEYS; x < (slice + 1) * SLICE_KEYS; x += LIST_KEYS)
        for (int64_t head = first; head < end && !cpu_cancelled(job->run); head++) {
            const int64_t *start = o->start + list_of(o, head);
            int64_t        count = min_i64(LIST_KEYS, start[1] - start[0] - x);

            if (count > 0)
                take_keys(o, w, head, head * o->slices + slice, o->key + start[0] + x, count);
        }
    run_ahead(job->run, (w->cells - before) * job->cell_flops);
}

/* A slice's weight; one that holds only NaN passes it on. */
static double weight_of(float max, double top)
{
    return max > -INFINITY ? exp2((double)max - top) : 1;
}

static void join_head(const OneRow *o, int64_t head)
{
    const Job   *job = o->job;
    const float *max = o->max + head * o->slices, *sum = o->sum + head * o->slices;
    const float *acc = o->acc + head * o->slices * o->lda;
    float       *out = tensor_f32(&job->out->out) + head * job->e;
    double       top = -(double)INFINITY, total = 0;

    for (int64_t s = 0; s < o->slices; s++)
        top = fmax(top, (double)max[s]);
    top = top > -(double)INFINITY ? top : 0;
    for (int64_t s = 0; s < o->slices; s++)
        total += weight_of(max[s], top) * (double)sum[s];
    for (int64_t c = 0; c < job->e; c++) {
        double y = 0;

        for (int64_t s = 0; s < o->slices; s++)
            y += weight_of(max[s], top) * (double)acc[s * o->lda + c];
        out[c] = total == 0 ? 0 : (float)(y / total);
    }
    tensor_f32(&job->out->lse)[head] = total == 0 ? -INFINITY
                                                  : (float)((top + log2(total)) * LN_2);
}

void attend_one_row(Job *job)
{
    OneRow o = { .job = job };

    if (!list_keys(&o) || !one_row_init(&o)) {
        job->workers->failed = true;
        return;
    }
    threads_run(job->run->threads, job->in->k.shape[0] * o.slices, slice_item, &o);
    for (int64_t head = 0; head < job->h && !cpu_cancelled(job->run); head++)
        join_head(&o, head);
}
