/* choose.c -- op_choose: the numbers of a row in double, and the largest of them.
 *
 * Keys of a head are widened once, in strips [LANES]; pages have their bounds beside each other, so
 * that a row's loop over channels runs along the pages.  An item is a few rows; what they choose
 * grows in the item's own list, and the lists are joined when all lengths are known.
 */
#include "attn/ops/choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "core/threads.h"

#define PANEL 64
#define LINES (1 << 17) /* numbers a worker holds, unless one row has more */
#define MOST_ROWS 16
#define MASS_SLACK 1e-12 /* a share that is reached up to rounding is reached */
#define MASS_FIRST 32    /* keys that a share is first sought among */

/* What an item chose. */
typedef struct Piece {
    int32_t *key;  /* owned */
    int32_t *best; /* owned; NULL: not asked for */
    int64_t  count, capacity;
} Piece;

typedef struct Worker {
    double  *z;    /* [rows][keys], or CHOOSE_INDEX [H][keys] */
    double  *sum;  /* [keys] numbers of a row that are made of several */
    double  *e;    /* [keys] exponentials */
    int64_t *order, *work; /* [keys] */
    int32_t *place; /* [keys] */
    struct Ranked *ranked; /* [keys] */
} Worker;

typedef struct Job {
    Run              *run;
    const Kernel     *kernel;
    const ChooseKeys *in;
    ChosenKeys       *out;
    int64_t           head, n, d, count, keys, rows, items; /* count: keys or pages; keys: padded */
    bool              terms; /* scores are more than products */
    double           *k;     /* [keys / LANES][d][LANES] of the head */
    double           *q;     /* [n,H d] CHOOSE_INDEX */
    double           *lo, *hi; /* [d][keys] of the head's pages; CHOOSE_MEANS: lo, their means */
    Piece            *pieces;  /* [sets][items] */
    Worker           *workers;
    atomic_bool       lacks; /* memory */
} Job;

/* ---- numbers ------------------------------------------------------------------------ */

static void widen_keys(const Job *job, const Tensor *k, int64_t heads)
{
    for (int64_t j = 0; j < job->keys; j++)
        for (int64_t t = 0; t < job->d; t++)
            job->k[(j / LANES * job->d + t) * LANES + j % LANES] =
                j < job->count ? tensor_float(k, job->head, heads, j, t) : 0;
}

/* Bounds of pages, turned: a row's loop over channels runs along the pages. */
static void turn_pages(const Job *job)
{
    const ChooseKeys *in = job->in;

    for (int64_t u = 0; u < job->count; u++)
        for (int64_t t = 0; t < job->d; t++) {
            job->lo[t * job->keys + u] = tensor_float(&in->lo, job->head, job->run->h, u, t);
            job->hi[t * job->keys + u] = tensor_float(&in->hi, job->head, job->run->h, u, t);
        }
}

static void turn_means(const Job *job)
{
    for (int64_t u = 0; u < job->count; u++)
        for (int64_t t = 0; t < job->d; t++)
            job->lo[t * job->keys + u] = tensor_float(&job->in->mean, job->head, job->run->h, u, t);
}

static void product_rows(const Job *job, Worker *w, int64_t first, int64_t rows, int64_t most)
{
    const Tensor *q = &job->in->in.q;

    for (int64_t at = 0; at < most; at += PANEL)
        job->kernel->dots64(tensor_row_f32(q, job->head, job->run->h, first), q->stride[1], rows,
                            job->d, job->k + at * job->d, PANEL, w->z + at, job->keys);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < most; j++)
            w->z[r * job->keys + j] *= job->in->in.scale;
}

static double *index_row(const Job *job, Worker *w, int64_t i, int64_t count)
{
    const ChooseKeys *in = job->in;

    for (int64_t at = 0; at < count; at += PANEL)
        job->kernel->product64(job->q + i * in->heads * job->d, job->d, in->heads, job->d, NULL,
                               job->k + at * job->d, PANEL, w->z + at, job->keys);
    memset(w->sum, 0, (size_t)count * sizeof(*w->sum));
    for (int64_t t = 0; t < in->heads; t++) {
        double        weight = tensor_float(&in->w, 0, 1, i, t);
        const double *z = w->z + t * job->keys;

        for (int64_t j = 0; j < count; j++)
            w->sum[j] += weight * (z[j] > 0 ? z[j] : 0);
    }
    for (int64_t j = 0; j < count; j++)
        w->sum[j] /= sqrt((double)(in->heads * job->d));
    return w->sum;
}

/* The last page may be seen in part; then its bounds are those of what is seen. */
static double *page_row(const Job *job, Worker *w, int64_t i, int64_t count)
{
    const float *q = tensor_row_f32(&job->in->in.q, job->head, job->run->h, i);

    memset(w->sum, 0, (size_t)count * sizeof(*w->sum));
    for (int64_t t = 0; t < job->d; t++) {
        const double *lo = job->lo + t * job->keys, *hi = job->hi + t * job->keys;
        double        x = (double)q[t];

        for (int64_t u = 0; u < count; u++) {
            double low = x * lo[u], high = x * hi[u];

            w->sum[u] += low > high ? low : high;
        }
    }
    for (int64_t u = 0; u < count; u++)
        w->sum[u] *= job->in->in.scale;
    if (count)
        w->sum[count - 1] = choose_number(job->in, job->run->h, job->head, i, count - 1);
    return w->sum;
}

static double *mean_row(const Job *job, Worker *w, int64_t i, int64_t count)
{
    const float *q = tensor_row_f32(&job->in->in.q, job->head, job->run->h, i);

    memset(w->sum, 0, (size_t)count * sizeof(*w->sum));
    for (int64_t t = 0; t < job->d; t++) {
        const double *mean = job->lo + t * job->keys;
        double        x = (double)q[t];

        for (int64_t u = 0; u < count; u++)
            w->sum[u] += x * mean[u];
    }
    return w->sum;
}

/* ---- the choice of a row ------------------------------------------------------------- */

static int by_decrease(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x < y) - (x > y);
}

/* The fewest of the largest of e[count] whose sum is at least `wanted`; work: room for count. */
static int64_t fewest(double *e, int64_t count, double wanted, int64_t *order, double *work)
{
    for (int64_t t = min_i64(MASS_FIRST, count);; t = min_i64(4 * t, count)) {
        int64_t bound, kept = 0;
        double  sum = 0;

        for (int64_t j = 0; j < count; j++)
            order[j] = cpu_order_key(e[j]);
        bound = cpu_kth_largest(order, count, t - 1);
        for (int64_t j = 0; j < count; j++)
            if (cpu_order_key(e[j]) >= bound)
                work[kept++] = e[j];
        qsort(work, (size_t)kept, sizeof(*work), by_decrease);
        for (int64_t j = 0; j < kept; j++) {
            sum += work[j];
            if (sum >= wanted)
                return j + 1;
        }
        if (t == count)
            return count;
    }
}

/* How many keys of z[count] hold the share; *lse of all. */
static int64_t keys_of_mass(const Job *job, Worker *w, const double *z, int64_t count, double *lse)
{
    double top = -HUGE_VAL, total = 0, share = job->in->mass;

    for (int64_t j = 0; j < count; j++)
        top = fmax(top, z[j]);
    for (int64_t j = 0; j < count; j++)
        w->e[j] = z[j] - top;
    job->kernel->exp64(w->e, count);
    for (int64_t j = 0; j < count; j++)
        total += w->e[j];
    *lse = top + log(total);
    if (!(share > 0) || share >= 1)
        return count;
    return fewest(w->e, count, share * total * (1 - MASS_SLACK), w->order, w->sum);
}

static int64_t row_takes(const Job *job, Worker *w, const double *z, int64_t at, int64_t count)
{
    const ChooseKeys *in = job->in;
    int64_t           most = in->most ? min_i64(in->most, count) : count, by_mass;

    if (!job->out->lse.data)
        return most;
    by_mass = count ? keys_of_mass(job, w, z, count, tensor_f64(&job->out->lse) + at) : 0;
    if (!count)
        tensor_f64(&job->out->lse)[at] = -HUGE_VAL;
    return min_i64(most, by_mass);
}

/* Puts the row's choice into w->place, increasing; fixed: -1, or one that is among them. */
static void choose_places(Worker *w, const double *z, int64_t count, int64_t takes, int64_t fixed)
{
    for (int64_t j = 0; j < count; j++)
        w->order[j] = cpu_order_key(z[j]);
    if (fixed >= 0)
        w->order[fixed] = INT64_MAX;
    if (takes == count)
        for (int64_t j = 0; j < count; j++)
            w->place[j] = (int32_t)j;
    else if (takes)
        cpu_largest_places(w->order, w->work, count, takes, w->place);
}

/* Room for `count` more. */
static bool piece_reserve(Piece *piece, int64_t count, bool ranked)
{
    int64_t  capacity = 2 * (piece->count + count);
    int32_t *key, *best = NULL;

    if (piece->count + count <= piece->capacity)
        return true;
    key = realloc(piece->key, (size_t)capacity * sizeof(*key));
    piece->key = key ? key : piece->key;
    if (ranked)
        best = realloc(piece->best, (size_t)capacity * sizeof(*best));
    piece->best = best ? best : piece->best;
    if (key && (best || !ranked))
        piece->capacity = capacity;
    return key && (best || !ranked);
}

typedef struct Ranked {
    double  z;
    int32_t place;
} Ranked;

static int by_rank(const void *a, const void *b)
{
    const Ranked *x = a, *y = b;

    return x->z != y->z ? (x->z < y->z) - (x->z > y->z) : x->place - y->place;
}

static void rank_places(Worker *w, const double *z, int64_t takes, int32_t *best)
{
    for (int64_t x = 0; x < takes; x++)
        w->ranked[x] = (Ranked){ z[w->place[x]], w->place[x] };
    qsort(w->ranked, (size_t)takes, sizeof(*w->ranked), by_rank);
    for (int64_t x = 0; x < takes; x++)
        best[x] = w->ranked[x].place;
}

static void piece_add(Job *job, Worker *w, Piece *piece, const double *z, int64_t takes)
{
    if (!takes)
        return;
    if (!piece_reserve(piece, takes, job->in->ranked)) {
        atomic_store(&job->lacks, true);
        return;
    }
    memcpy(piece->key + piece->count, w->place, (size_t)takes * sizeof(*w->place));
    if (job->in->ranked)
        rank_places(w, z, takes, piece->best + piece->count);
    piece->count += takes;
}

static void take_share(const Job *job, const Worker *w, int64_t at, int64_t count, int64_t takes)
{
    double all = 0, kept = 0;

    for (int64_t j = 0; j < count; j++)
        all += w->e[j];
    for (int64_t x = 0; x < takes; x++)
        kept += w->e[w->place[x]];
    tensor_f64(&job->out->share)[at] = takes ? kept / all : 0;
}

/* z: the numbers of row i of the set. */
static void choose_of_row(Job *job, Worker *w, Piece *piece, int64_t i, const double *z)
{
    int64_t at = job->head * job->n + i, count = choose_candidates(job->in, i);
    int64_t takes = row_takes(job, w, z, at, count);
    double  least = takes ? HUGE_VAL : 0;

    choose_places(w, z, count, takes, choose_fixed(job->in, i));
    for (int64_t x = 0; x < takes; x++)
        least = fmin(least, z[w->place[x]]);
    tensor_f32(&job->out->least)[at] = (float)least;
    job->out->start[at + 1] = takes;
    if (job->out->share.data)
        take_share(job, w, at, count, takes);
    piece_add(job, w, piece, z, takes);
}

static double *numbers_of_row(const Job *job, Worker *w, int64_t i, int64_t count)
{
    const ChooseKeys *in = job->in;

    if (in->kind == CHOOSE_INDEX)
        return index_row(job, w, i, count);
    if (in->kind == CHOOSE_PAGES)
        return page_row(job, w, i, count);
    if (in->kind == CHOOSE_MEANS)
        return mean_row(job, w, i, count);
    for (int64_t j = 0; j < count; j++)
        w->z[j] = choose_number(in, job->run->h, job->head, i, j);
    return w->z;
}

static void choose_item(void *context, int64_t item, int worker)
{
    Job     *job = context;
    Worker  *w = &job->workers[worker];
    Piece   *piece = &job->pieces[job->head * job->items + item];
    int64_t  first = item * job->rows, rows = min_i64(job->rows, job->n - first);
    bool     tiled = job->in->kind == CHOOSE_SCORES && !job->terms;

    if (cpu_cancelled(job->run))
        return;
    if (tiled)
        product_rows(job, w, first, rows, choose_candidates(job->in, first + rows - 1));
    for (int64_t i = first; i < first + rows; i++) {
        int64_t count = choose_candidates(job->in, i);

        choose_of_row(job, w, piece, i, tiled ? w->z + (i - first) * job->keys
                                              : numbers_of_row(job, w, i, count));
    }
}

/* ---- the op --------------------------------------------------------------------------- */

static bool choose_scratch(Job *job)
{
    Run    *r = job->run;
    int64_t lines = job->in->kind == CHOOSE_INDEX ? job->in->heads : job->rows, keys = job->keys;
    int     count = threads_count(r->threads);
    bool    pages = choose_pages(job->in);

    job->k = pages ? NULL : cpu_scratch(r, keys * job->d, sizeof(*job->k));
    job->lo = pages ? cpu_scratch(r, keys * job->d, sizeof(*job->lo)) : NULL;
    if (job->in->kind == CHOOSE_PAGES)
        job->hi = cpu_scratch(r, keys * job->d, sizeof(*job->hi));
    job->workers = cpu_scratch(r, count, sizeof(*job->workers));
    for (int x = 0; job->workers && x < count; x++)
        job->workers[x] = (Worker){ .z = cpu_scratch(r, lines * keys, sizeof(double)),
                                    .sum = cpu_scratch(r, keys, sizeof(double)),
                                    .e = cpu_scratch(r, keys, sizeof(double)),
                                    .order = cpu_scratch(r, keys, sizeof(int64_t)),
                                    .work = cpu_scratch(r, keys, sizeof(int64_t)),
                                    .place = cpu_scratch(r, keys, sizeof(int32_t)),
                                    .ranked = cpu_scratch(r, keys, sizeof(Ranked)) };
    return !run_failed(r);
}

static void widen_queries(Job *job)
{
    const Tensor *q = &job->in->q;
    int64_t       width = job->in->heads * job->d;

    job->q = cpu_scratch(job->run, job->n * width, sizeof(*job->q));
    for (int64_t i = 0; job->q && i < job->n; i++)
        for (int64_t c = 0; c < width; c++)
            job->q[i * width + c] = tensor_float(q, 0, 1, i, c);
}

static void choose_all(Job *job)
{
    const ChooseKeys *in = job->in;

    if (in->kind == CHOOSE_INDEX)
        widen_queries(job);
    for (job->head = 0; job->head < job->out->sets && !run_failed(job->run); job->head++) {
        if (in->kind == CHOOSE_INDEX)
            widen_keys(job, &in->k, 1);
        else if (in->kind == CHOOSE_PAGES)
            turn_pages(job);
        else if (in->kind == CHOOSE_MEANS)
            turn_means(job);
        else if (!job->terms)
            widen_keys(job, &in->in.k, job->run->h);
        threads_run(job->run->threads, job->items, choose_item, job);
    }
}

/* Lengths become places, and the lists one. */
static void join_pieces(Job *job)
{
    ChosenKeys *out = job->out;
    int64_t     rows = out->sets * out->n, used = 0;

    out->start[0] = 0;
    for (int64_t at = 0; at < rows; at++) {
        out->seen += (double)choose_candidates(job->in, at % out->n);
        out->start[at + 1] += out->start[at];
    }
    out->taken = (double)out->start[rows];
    out->key = run_alloc(job->run, out->start[rows], sizeof(*out->key));
    if (job->in->ranked)
        out->best = run_alloc(job->run, out->start[rows], sizeof(*out->best));
    for (int64_t x = 0; out->key && x < out->sets * job->items; x++) {
        const Piece *piece = &job->pieces[x];

        if (piece->count)
            memcpy(out->key + used, piece->key, (size_t)piece->count * sizeof(*out->key));
        if (piece->count && out->best)
            memcpy(out->best + used, piece->best, (size_t)piece->count * sizeof(*out->best));
        used += piece->count;
    }
}

static Job job_of(Run *r, const ChooseKeys *in, ChosenKeys *out)
{
    const Tensor *k = in->kind == CHOOSE_INDEX ? &in->k : &in->in.k;
    int64_t       count = choose_pages(in) ? ceil_div(k->shape[1], in->page) : k->shape[1];
    Job           job = { .run = r, .kernel = kernel_at(0), .in = in, .out = out, .n = out->n,
                          .d = k->shape[2], .count = count, .keys = round_up_to(count, PANEL),
                          .terms = in->kind == CHOOSE_SCORES && attend_has_terms(&in->in) };

    job.rows = max_i64(1, min_i64(MOST_ROWS, LINES / job.keys));
    job.items = ceil_div(job.n, job.rows);
    return job;
}

void cpu_choose(Run *r, const ChooseKeys *in, ChosenKeys *out)
{
    Job       job = job_of(r, in, out);
    int64_t   pieces = out->sets * job.items;
    ArenaMark mark = arena_mark(r->arena);

    job.pieces = calloc((size_t)pieces, sizeof(*job.pieces));
    if (job.pieces && choose_scratch(&job))
        choose_all(&job);
    arena_release(r->arena, mark);
    if (!job.pieces || atomic_load(&job.lacks))
        run_fail(r, ERR_NOMEM, "%s: not enough memory for the keys that rows choose",
                 r->mechanism->id);
    if (!run_failed(r))
        join_pieces(&job);
    for (int64_t x = 0; job.pieces && x < pieces; x++) {
        free(job.pieces[x].key);
        free(job.pieces[x].best);
    }
    free(job.pieces);
}
