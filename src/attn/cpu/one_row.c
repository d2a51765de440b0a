/* one_row.c -- attention of one query a head: a step of decoding over a cache.
 *
 * A key serves one query, or those of the heads that share it, so packing the keys into panels
 * would cost more than their scores.  The row's keys are listed once for all heads that share the
 * list, unless they are neighbours, and cut into slices of a fixed size, each with its own softmax;
 * an item is a slice for all query heads of one head of k, which take some keys in turn.  The
 * slices are joined in order at the end, so the number of threads changes no bit.
 */
#include "attn/cpu/attend.h"

#include "attn/ops/weights.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define SLICE_KEYS (4 * LIST_KEYS)
#define STEP_KEYS LIST_KEYS /* keys at once of queries that are taken in one pass */
#define MANY_KEYS 64        /* of more queries, for which they stay in the first-level cache */
#define ALONE (1 << 17) /* numbers of keys and values that are not worth a second thread */

typedef struct OneRow {
    const Job *job;
    int64_t    slices, lda;
    int64_t   *start; /* [lists + 1] into key; a list serves all heads, or one */
    int64_t   *first; /* [lists] the first key */
    int32_t   *key;   /* NULL where keys are neighbours */
    float     *q;     /* [h][d] scaled */
    float     *s;     /* [workers][STEP_KEYS] */
    float     *max, *sum; /* [h][slices] */
    double    *weight;    /* [slices] of the head that is joined */
    float     *acc;   /* [h][slices][lda] */
} OneRow;

/* Some keys, counted from row `base`. */
typedef struct Listed {
    const int32_t *key; /* NULL: neighbours */
    int64_t        count, base;
} Listed;

static int64_t list_of(const OneRow *o, int64_t head)
{
    return o->job->per_head ? head : 0;
}

static bool are_neighbours(const PatternRow *row)
{
    return row->count == 0 || (row->count == 1 && row->runs[0].step == 1);
}

/* Counts the row's keys and those of the longest list; *neighbours: in every list, and no position
 * asks for their places.  False: no memory. */
static bool count_keys(OneRow *o, PatternRow *row, int64_t lists, int64_t *longest,
                       bool *neighbours)
{
    *longest = 0;
    *neighbours = !o->job->has_terms && !tensor_given(&o->job->in->value.table);
    for (int64_t t = 0; t < lists; t++) {
        pattern_row(o->job->pattern, t, 0, row);
        if (row->failed)
            return false;
        o->start[t + 1] = o->start[t] + pattern_row_cells(row);
        o->first[t] = row->count ? row->runs[0].start : 0;
        *longest = max_i64(*longest, o->start[t + 1] - o->start[t]);
        *neighbours &= are_neighbours(row);
    }
    return true;
}

static void fill_lists(const OneRow *o, PatternRow *row, int64_t lists)
{
    int64_t at = 0;

    for (int64_t t = 0; t < lists; t++) {
        pattern_row(o->job->pattern, t, 0, row);
        for (int64_t x = 0; x < row->count && !row->failed; x++)
            for (int64_t y = 0; y < row->runs[x].count; y++)
                o->key[at++] = (int32_t)(row->runs[x].start + y * row->runs[x].step);
    }
}

/* Lists the row's keys; false: no memory. */
static bool list_keys(OneRow *o)
{
    const Job *job = o->job;
    int64_t    lists = job->per_head ? job->h : 1, longest;
    PatternRow row = { 0 };
    bool       neighbours, ok;

    o->start = arena_zalloc(job->run->arena, lists + 1, sizeof(*o->start));
    o->first = cpu_scratch(job->run, lists, sizeof(*o->first));
    ok = o->start && o->first && count_keys(o, &row, lists, &longest, &neighbours);
    if (ok)
        o->slices = max_i64(1, ceil_div(longest, SLICE_KEYS));
    if (ok && !neighbours) {
        o->key = cpu_scratch(job->run, max_i64(1, o->start[lists]), sizeof(*o->key));
        ok = o->key != NULL;
    }
    if (ok && !neighbours)
        fill_lists(o, &row, lists);
    pattern_row_free(&row);
    return ok && !row.failed;
}

/* At most `most` from place x of the head's list on. */
static Listed listed(const OneRow *o, int64_t head, int64_t x, int64_t most)
{
    int64_t list = list_of(o, head), start = o->start[list], count = o->start[list + 1] - start;
    Listed  l = { .count = min_i64(most, count - x) };

    if (!o->key)
        l.base = o->first[list] + x;
    else if (l.count > 0)
        l.key = o->key + start + x;
    return l;
}

static bool one_row_init(OneRow *o)
{
    const Job *job = o->job;
    int64_t    parts = job->h * o->slices, size = (int64_t)sizeof(float);

    o->lda = round_up_to(job->e, LANES);
    o->q = cpu_scratch(job->run, job->h, job->d * size);
    o->s = cpu_scratch(job->run, threads_count(job->run->threads), STEP_KEYS * size);
    o->max = cpu_scratch(job->run, parts, size);
    o->sum = arena_zalloc(job->run->arena, parts, size);
    o->weight = cpu_scratch(job->run, o->slices, sizeof(*o->weight));
    o->acc = arena_zalloc(job->run->arena, parts, o->lda * size);
    for (int64_t x = 0; o->max && x < parts; x++)
        o->max[x] = -INFINITY;
    for (int64_t t = 0; o->q && t < job->h; t++)
        job->kernel->scale(tensor_row_f32(&job->in->q, t, job->h, 0), job->d,
                           (float)(job->in->scale * LOG2_E), o->q + t * job->d);
    return o->q && o->s && o->max && o->sum && o->weight && o->acc;
}

/* Scores become weights; the factor of what was mixed before. */
static float weigh_keys(const OneRow *o, int64_t part, int64_t count, float *s)
{
    int64_t padded = round_up_to(count, TILE_KEYS);
    float   factor;

    for (int64_t x = count; x < padded; x++)
        s[x] = -INFINITY;
    o->job->kernel->softmax(s, padded, 1, padded, NULL, o->max + part, o->sum + part, &factor);
    return factor;
}

/* Some listed keys join the part's softmax and sums. */
static void take_keys(const OneRow *o, Worker *w, int64_t head, int64_t slice, Listed l, float *s)
{
    const Job    *job = o->job;
    const Tensor *k = &job->in->k, *v = &job->in->v;
    int64_t       part = head * o->slices + slice;
    float         factor, *acc = o->acc + part * o->lda;

    job->kernel->dots(o->q + head * job->d, tensor_row_f32(k, head, job->h, l.base), k->stride[1],
                      l.key, l.count, job->d, s);
    if (job->has_terms)
        terms_add_list(&w->terms, head, 0, l.key, l.count, s);
    factor = weigh_keys(o, part, l.count, s);
    job->kernel->mix_row(s, tensor_row_f32(v, head, job->h, l.base), v->stride[1], l.key, l.count,
                         job->e, factor, acc);
    if (w->terms.value)
        terms_mix_list(&w->terms, head, 0, l.key, l.count, s, acc);
}

/* The same without terms, for `rows` heads from `head` on, which see the same keys. */
static void take_pass(const OneRow *o, int rows, int64_t head, int64_t slice, Listed l)
{
    const Job    *job = o->job;
    const Tensor *k = &job->in->k, *v = &job->in->v;
    int64_t       part = head * o->slices + slice;
    KeyPass       pass = {
        .rows = rows, .q = o->q + head * job->d, .ldq = job->d,
        .k = tensor_row_f32(k, head, job->h, l.base), .ldk = k->stride[1],
        .v = tensor_row_f32(v, head, job->h, l.base), .ldv = v->stride[1],
        .keys = l.key, .count = l.count, .d = job->d, .e = job->e,
        .max = o->max + part, .sum = o->sum + part, .ldm = o->slices,
        .acc = o->acc + part * o->lda, .lda = o->slices * o->lda,
    };

    job->kernel->pass(&pass);
}

/* Nothing is added to scores or values. */
static bool is_plain(const OneRow *o, const Worker *w)
{
    return !o->job->has_terms && !w->terms.value;
}

/* How many heads the worker takes in one pass. */
static int rows_together(const OneRow *o, const Worker *w)
{
    return is_plain(o, w) && !o->job->per_head ? PASS_ROWS : 1;
}

/* Heads [first, end) of one head of k take `step` keys from place x of their lists on. */
static void take_step(const OneRow *o, Worker *w, int64_t first, int64_t end, int64_t slice,
                      int64_t x, int64_t step, float *s)
{
    for (int64_t head = first, rows; head < end; head += rows) {
        Listed l = listed(o, head, x, step);

        rows = min_i64(rows_together(o, w), end - head);
        if (l.count <= 0)
            continue;
        w->cells += (double)(rows * l.count);
        if (is_plain(o, w))
            take_pass(o, (int)rows, head, slice, l);
        else
            take_keys(o, w, head, slice, l, s);
    }
}

static void slice_item(void *context, int64_t item, int worker)
{
    OneRow    *o = context;
    const Job *job = o->job;
    Worker    *w = &job->workers[worker];
    int64_t    h_kv = job->in->k.shape[0], shared = item / o->slices, slice = item % o->slices;
    int64_t    first = ceil_div(shared * job->h, h_kv), end = ceil_div((shared + 1) * job->h, h_kv);
    int64_t    step = end - first > rows_together(o, w) ? MANY_KEYS : STEP_KEYS;
    float     *s = o->s + worker * STEP_KEYS;
    double     before = w->cells;

    for (int64_t x = slice * SLICE_KEYS; x < (slice + 1) * SLICE_KEYS && !cpu_cancelled(job->run);
         x += step)
        take_step(o, w, first, end, slice, x, step, s);
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
    for (int64_t s = 0; s < o->slices; s++) {
        o->weight[s] = weight_of(max[s], top);
        total += o->weight[s] * (double)sum[s];
    }
    for (int64_t c = 0; c < job->e; c++) {
        double y = 0;

        for (int64_t s = 0; s < o->slices; s++)
            y += o->weight[s] * (double)acc[s * o->lda + c];
        out[c] = total == 0 ? 0 : (float)(y / total);
    }
    job->kernel->log_sums(&(float){ total == 0 ? -INFINITY : (float)top }, &(float){ (float)total },
                          1, tensor_f32(&job->out->lse) + head);
}

void attend_one_row(Job *job)
{
    OneRow  o = { .job = job };
    int64_t items;

    if (!list_keys(&o) || !one_row_init(&o)) {
        job->workers->failed = true;
        return;
    }
    items = job->in->k.shape[0] * o.slices;
    if (o.start[job->per_head ? job->h : 1] * (job->d + job->e) > ALONE)
        threads_run(job->run->threads, items, slice_item, &o);
    else
        for (int64_t item = 0; item < items; item++)
            slice_item(&o, item, 0);
    for (int64_t head = 0; head < job->h && !cpu_cancelled(job->run); head++)
        join_head(&o, head);
}
