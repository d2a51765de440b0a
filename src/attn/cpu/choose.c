/* choose.c -- op_choose: the numbers of a row in double, and the largest of them.
 *
 * What the rows of a head multiply (keys, or bounds or means of pages) is widened once, in strips
 * of LANES.  An item is a few rows, multiplied together; what they choose grows in the item's own
 * list, and the lists are joined when all lengths are known.  Where a row chooses few candidates by
 * products alone, a sieve in float leaves out those that cannot be among them (sieve.h).  Few
 * queries keep no strips: the sieve reads their candidates where they lie, or the strips are made
 * panel by panel.
 */
#include "attn/ops/choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "attn/cpu/sieve.h"
#include "core/threads.h"

#define PANEL 64
#define LINES (1 << 17) /* numbers a worker holds, unless a group has more */
#define MOST_ROWS 16
#define FEW_NUMBERS (1 << 22) /* of few rows, of the heads that are sieved together */
#define GROUP 8          /* rows that the kernels multiply together */
#define MASS_SLACK 1e-12 /* a share that is reached up to rounding is reached */
#define MORE 64          /* numbers held beyond twice those taken, before some are dropped */

/* What an item chose. */
typedef struct Piece {
    int32_t *key;  /* owned */
    int32_t *best; /* owned; NULL: not asked for */
    int64_t  count, capacity;
} Piece;

typedef struct Worker {
    Sieve   *sieve; /* NULL: not used */
    double  *z;     /* [rows][keys]; with a sieve of one row */
    double  *part;  /* CHOOSE_INDEX: [rows H][PANEL] */
    double  *strips; /* of one panel, where the job keeps none */
    bool    *sure;  /* [keys] with a sieve */
    double  *weight; /* [H] CHOOSE_INDEX, with a sieve */
    double  *q;     /* [rows][depth] queries; CHOOSE_PAGES: max(q, 0), min(q, 0) of each channel */
    double  *sum;   /* [keys] numbers in order of size */
    double  *e;     /* [keys] exponentials */
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
    int64_t           depth;   /* of strips: 2d with CHOOSE_PAGES, else d */
    bool              terms;   /* scores are more than products */
    bool              few;     /* their numbers are made before the items, in the first worker's
                                  z */
    bool              sieved;
    SieveKeys         sieve;   /* the head's */
    double           *strips;  /* [keys / LANES][depth][LANES] of the head: what rows multiply;
                                  NULL: terms or few */
    double           *q;       /* [n,H d] CHOOSE_INDEX */
    Piece            *pieces;  /* [sets][items] */
    Worker           *workers;
    bool             *held;    /* [group] whether the sieve holds the head's few rows */
    int64_t           first_head, group; /* of few rows, heads that are sieved together */
    atomic_bool      *lacks;   /* memory */
} Job;

/* ---- numbers ------------------------------------------------------------------------ */

/* Strip `strip` of the head's candidates. */
static void fill_strip(const Job *job, int64_t strip, double *to)
{
    for (int64_t j = strip * LANES; j < (strip + 1) * LANES; j++, to++)
        if (j < job->count)
            choose_factors(job->in, job->run->h, job->head, j, 0, job->depth, LANES, to);
        else
            for (int64_t t = 0; t < job->depth; t++)
                to[t * LANES] = 0;
}

static void strip_item(void *context, int64_t strip, int worker)
{
    const Job *job = context;

    (void)worker;
    fill_strip(job, strip, job->strips + strip * job->depth * LANES);
}

/* Rows of the queries as the strips want them, widened: w->q. */
static void widen_rows(const Job *job, Worker *w, int64_t first, int64_t rows)
{
    const Tensor *q = &job->in->in.q;

    for (int64_t x = 0; x < rows; x++) {
        const float *row = tensor_row_f32(q, job->head, job->run->h, first + x);
        double      *to = w->q + x * job->depth;

        if (job->in->kind == CHOOSE_PAGES)
            choose_split(row, job->d, to);
        else
            for (int64_t c = 0; c < job->d; c++)
                to[c] = (double)row[c];
    }
}

/* Heads of the index against PANEL keys: part. */
static void multiply_heads(const Job *job, int64_t first, int64_t rows, const double *strips,
                           double *part)
{
    const ChooseKeys *in = job->in;
    const double     *q = job->q + first * in->heads * job->d;

    if (!choose_exact(in)) {
        job->kernel->product64(q, job->d, rows * in->heads, job->d, NULL, strips, PANEL, part,
                               PANEL);
        return;
    }
    for (int64_t c = 0; c < PANEL; c += LANES)
        job->kernel->fused64(q, job->d, rows * in->heads, job->d, strips + c * job->d, part + c,
                             PANEL);
}

static void sum_heads(const Job *job, int64_t first, int64_t rows, const double *part, double *z)
{
    const ChooseKeys *in = job->in;

    for (int64_t x = 0; x < rows; x++, z += job->keys) {
        memset(z, 0, PANEL * sizeof(*z));
        for (int64_t t = 0; t < in->heads; t++)
            job->kernel->fold_positive64(part + (x * in->heads + t) * PANEL, PANEL,
                                         tensor_float(&in->w, 0, 1, first + x, t), z);
        job->kernel->over64(z, PANEL, sqrt((double)(in->heads * job->d)));
    }
}

/* Numbers of PANEL candidates, whose strips these are, for `rows` queries from `first` on, into the
 * columns z of as many rows.  q: the queries' factors; part: room with CHOOSE_INDEX. */
static void multiply_panel(const Job *job, const double *q, double *part, int64_t first,
                           int64_t rows, const double *strips, double *z)
{
    if (job->in->kind == CHOOSE_INDEX) {
        multiply_heads(job, first, rows, strips, part);
        sum_heads(job, first, rows, part, z);
    } else if (!choose_exact(job->in)) {
        job->kernel->product64(q, job->depth, rows, job->depth, NULL, strips, PANEL, z, job->keys);
    } else {
        for (int64_t c = 0; c < PANEL; c += LANES)
            job->kernel->fused64(q, job->depth, rows, job->depth, strips + c * job->depth, z + c,
                                 job->keys);
        for (int64_t x = 0; x < rows; x++)
            job->kernel->scale64(z + x * job->keys, PANEL, job->in->in.scale);
    }
}

static void multiply(const Job *job, Worker *w, int64_t first, int64_t rows, int64_t most)
{
    if (job->in->kind != CHOOSE_INDEX)
        widen_rows(job, w, first, rows);
    for (int64_t at = 0; at < most; at += PANEL)
        multiply_panel(job, w->q, w->part, first, rows, job->strips + at * job->depth, w->z + at);
}

/* Few queries: threads share the panels, whose strips are not kept. */
static void panel_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    Worker    *w = &job->workers[worker];
    int64_t    at = item * PANEL;

    if (cpu_cancelled(job->run))
        return;
    for (int64_t c = 0; c < PANEL; c += LANES)
        fill_strip(job, (at + c) / LANES, w->strips + c * job->depth);
    multiply_panel(job, job->workers->q, w->part, 0, job->n, w->strips, job->workers->z + at);
}

static void number_few(Job *job)
{
    if (job->in->kind != CHOOSE_INDEX)
        widen_rows(job, job->workers, 0, job->n);
    threads_run(job->run->threads, ceil_div(job->count, PANEL), panel_item, job);
}

/* Numbers of some rows: w->z. */
static void number_rows(const Job *job, Worker *w, int64_t first, int64_t rows)
{
    const ChooseKeys *in = job->in;
    int64_t           most = choose_candidates(in, first + rows - 1), heads = job->run->h;

    if (job->strips)
        multiply(job, w, first, rows, most);
    for (int64_t x = 0; x < rows; x++) {
        int64_t count = choose_candidates(in, first + x);
        int64_t j = job->terms ? 0 : count - choose_bounds_differ(in, first + x);

        for (; j < count; j++)
            w->z[x * job->keys + j] = choose_number(in, heads, job->head, first + x, j);
    }
}

/* ---- the choice of a row ------------------------------------------------------------- */

/* How many keys of z[count] hold the share; *lse of all. */
static int64_t keys_of_mass(const Job *job, Worker *w, const double *z, int64_t count, double *lse)
{
    double top = -HUGE_VAL, total = 0, share = job->in->mass;

    for (int64_t j = 0; j < count; j++)
        top = z[j] > top ? z[j] : top;
    for (int64_t j = 0; j < count; j++)
        w->e[j] = z[j] - top;
    job->kernel->exp64(w->e, count);
    for (int64_t j = 0; j < count; j++)
        total += w->e[j];
    *lse = top + log(total);
    if (!(share > 0) || share >= 1)
        return count;
    return cpu_fewest(w->e, count, share * total * (1 - MASS_SLACK), w->order, w->sum);
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

/* Keeps the `takes` best of w->order[0..have) and their places, in order of places; returns the
 * number of the last of them. */
static double keep_best(Worker *w, int64_t have, int64_t takes)
{
    int64_t bound, equal = takes, kept = 0;

    memcpy(w->work, w->order, (size_t)have * sizeof(*w->order));
    bound = cpu_kth_largest(w->work, have, takes - 1);
    for (int64_t x = 0; x < have; x++)
        equal -= w->order[x] > bound;
    for (int64_t x = 0; x < have; x++)
        if (w->order[x] > bound || (w->order[x] == bound && equal-- > 0)) {
            w->order[kept] = w->order[x];
            w->place[kept++] = w->place[x];
        }
    return cpu_order_number(bound);
}

/* Puts the places of the `takes` largest of z[count] but `without` into w->place, increasing.
 * Numbers at most the last of those kept so far are passed over, many at once. */
static void pick_places(const Job *job, Worker *w, const double *z, int64_t count, int64_t takes,
                        int64_t without)
{
    int64_t have = 0, most = 2 * takes + MORE;
    double  limit = (double)NAN; /* nothing is at most this */

    for (int64_t j = 0; j < count; j++) {
        if (!isnan(limit))
            j = job->kernel->next_above64(z, j, count, limit);
        if (j == count)
            break;
        if (j == without)
            continue;
        w->order[have] = cpu_order_key(z[j]);
        w->place[have++] = (int32_t)j;
        if (have == most) {
            limit = keep_best(w, have, takes);
            have = takes;
        }
    }
    if (have > takes)
        keep_best(w, have, takes);
}

/* Puts `fixed`, if it is one, among w->place[0..others). */
static void add_fixed(Worker *w, int64_t others, int64_t fixed)
{
    int64_t x = others;

    if (fixed < 0)
        return;
    for (; x > 0 && w->place[x - 1] > fixed; x--)
        w->place[x] = w->place[x - 1];
    w->place[x] = (int32_t)fixed;
}

/* Puts the row's choice into w->place, increasing; fixed: -1, or one that is among them. */
static void choose_places(const Job *job, Worker *w, const double *z, int64_t count,
                          int64_t takes, int64_t fixed)
{
    int64_t others = takes - (fixed >= 0);

    if (takes == count) {
        for (int64_t j = 0; j < count; j++)
            w->place[j] = (int32_t)j;
        return;
    }
    if (others > 0)
        pick_places(job, w, z, count, others, fixed);
    if (takes)
        add_fixed(w, others, fixed);
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
        atomic_store(job->lacks, true);
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

/* w->place is the choice of row i of the set; z: the numbers. */
static void record_row(Job *job, Worker *w, Piece *piece, int64_t i, const double *z, int64_t takes)
{
    int64_t at = job->head * job->n + i;
    bool    scores = job->in->kind == CHOOSE_SCORES;
    double  least = takes && scores ? HUGE_VAL : 0;

    for (int64_t x = 0; x < takes && scores; x++)
        least = fmin(least, z[w->place[x]]);
    tensor_f32(&job->out->least)[at] = (float)least;
    job->out->start[at + 1] = takes;
    if (job->out->share.data)
        take_share(job, w, at, choose_candidates(job->in, i), takes);
    piece_add(job, w, piece, z, takes);
}

static void choose_of_row(Job *job, Worker *w, Piece *piece, int64_t i, const double *z)
{
    int64_t at = job->head * job->n + i, count = choose_candidates(job->in, i);
    int64_t takes = row_takes(job, w, z, at, count);

    choose_places(job, w, z, count, takes, choose_fixed(job->in, i));
    record_row(job, w, piece, i, z, takes);
}

static void choose_item(void *context, int64_t item, int worker)
{
    Job     *job = context;
    Worker  *w = &job->workers[job->few ? 0 : worker];
    Piece   *piece = &job->pieces[job->head * job->items + item];
    int64_t  first = item * job->rows, rows = min_i64(job->rows, job->n - first);

    if (cpu_cancelled(job->run))
        return;
    number_rows(job, w, first, rows);
    for (int64_t x = 0; x < rows; x++)
        choose_of_row(job, w, piece, first + x, w->z + x * job->keys);
}

/* ---- rows with a sieve ------------------------------------------------------------------ */

/* The fixed candidate is not sought. */
static int64_t sought(const Job *job)
{
    const ChooseKeys *in = job->in;

    return in->most - (in->kind == CHOOSE_MEANS || in->newest);
}

/* Pages whose bounds differ from row to row are left to number_rows, unless they are fixed. */
static bool is_sieved(const Job *job)
{
    const ChooseKeys *in = job->in;
    bool scaled = in->kind == CHOOSE_SCORES || in->kind == CHOOSE_PAGES;
    bool apart = in->kind == CHOOSE_PAGES && in->causal && !in->newest;

    if (job->few && in->kind == CHOOSE_INDEX)
        return false;
    return !job->terms && !job->out->lse.data && (!scaled || in->in.scale > 0) && !apart &&
           sieve_pays(sought(job), job->count);
}

/* Numbers in double of w->place[0..have); `all`: also of those that are chosen for certain. */
static void number_places(const Job *job, Worker *w, int64_t i, int64_t x, int64_t have, bool all)
{
    const ChooseKeys *in = job->in;
    bool              scores = in->kind == CHOOSE_SCORES;

    if (scores)
        sieve_products(&job->sieve, w->sieve, x, w->place, have, w->sum);
    for (int64_t c = 0; c < have; c++) {
        double *z = &w->z[w->place[c]];

        w->order[c] = INT64_MAX;
        if (!scores && !all && w->sure[c])
            continue;
        *z = scores ? w->sum[c] * in->in.scale
                    : choose_number(in, job->run->h, job->head, i, w->place[c]);
        w->order[c] = cpu_order_key(*z);
    }
}

/* The choice among what the sieve left: in double, unless these are no more than wanted. */
static void choose_sieved(Job *job, Worker *w, Piece *piece, int64_t i, int64_t x)
{
    const ChooseKeys *in = job->in;
    int64_t           have = sieve_places(&job->sieve, w->sieve, x, w->place, w->sure);
    int64_t           others = sought(job);

    if (have > others || in->kind == CHOOSE_SCORES || in->ranked)
        number_places(job, w, i, x, have, in->ranked);
    if (have > others)
        keep_best(w, have, others);
    add_fixed(w, others, choose_fixed(in, i));
    record_row(job, w, piece, i, w->z, in->most);
}

/* Gives the sieve row i, the x-th of its block. */
static void sieve_take(const Job *job, Worker *w, int64_t x, int64_t i)
{
    const ChooseKeys *in = job->in;
    int64_t           count = choose_candidates(in, i), fixed = choose_fixed(in, i);

    if (in->kind != CHOOSE_INDEX) {
        sieve_query(&job->sieve, w->sieve, x,
                    tensor_row_f32(&in->in.q, job->head, job->run->h, i), count, fixed);
        return;
    }
    for (int64_t t = 0; t < in->heads; t++)
        w->weight[t] = tensor_float(&in->w, 0, 1, i, t);
    sieve_row(&job->sieve, w->sieve, x, job->q + i * in->heads * job->d, w->weight, count, fixed);
}

/* ---- few rows ----------------------------------------------------------------------------- */

/* The job of head `place` of the group, with the rows in the worker's sieve. */
static Job few_job(const Job *job, Worker *w, int64_t place)
{
    Job own = *job;

    own.head = job->first_head + place;
    own.sieve = sieve_head(&job->sieve, own.head, place);
    for (int64_t x = 0; x < job->n; x++)
        sieve_take(&own, w, x, x);
    return own;
}

static void few_numbers_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    Worker    *w = &job->workers[worker];
    int64_t    items = sieve_few_items(&job->sieve);
    Job        own;

    if (cpu_cancelled(job->run))
        return;
    own = few_job(job, w, item / items);
    sieve_few_item(&own.sieve, w->sieve, item % items);
}

static void few_choice_item(void *context, int64_t place, int worker)
{
    const Job *job = context;
    Worker    *w = &job->workers[worker];
    Job        own;

    if (cpu_cancelled(job->run))
        return;
    own = few_job(job, w, place);
    sieve_few(&own.sieve, w->sieve);
    for (int64_t x = 0; x < job->n && job->held[place]; x++)
        job->held[place] = sieve_holds(w->sieve, x);
    for (int64_t x = 0; x < job->n && job->held[place]; x++)
        choose_sieved(&own, w, &job->pieces[own.head], x, x);
}

/* Heads [first, first + count), on all threads. */
static void choose_few(Job *job, int64_t first, int64_t count)
{
    job->first_head = first;
    for (int64_t place = 0; place < count; place++)
        job->held[place] = job->sieved;
    if (job->sieved) {
        threads_run(job->run->threads, count * sieve_few_items(&job->sieve), few_numbers_item, job);
        threads_run(cpu_threads_for(job->run, count * job->count), count, few_choice_item, job);
    }
    for (int64_t place = 0; place < count && !cpu_cancelled(job->run); place++) {
        if (job->held[place])
            continue;
        job->head = first + place;
        number_few(job);
        choose_item(job, 0, 0);
    }
}

static void sieved_item(void *context, int64_t item, int worker)
{
    Job     *job = context;
    Worker  *w = &job->workers[worker];
    Piece   *piece = &job->pieces[job->head * job->items + item];
    int64_t  first = item * job->rows, rows = min_i64(job->rows, job->n - first);

    if (cpu_cancelled(job->run))
        return;
    for (int64_t x = 0; x < rows; x++)
        sieve_take(job, w, x, first + x);
    sieve_rows(&job->sieve, w->sieve, rows);
    for (int64_t x = 0; x < rows; x++)
        if (sieve_holds(w->sieve, x)) {
            choose_sieved(job, w, piece, first + x, x);
        } else {
            number_rows(job, w, first + x, 1);
            choose_of_row(job, w, piece, first + x, w->z);
        }
}

/* ---- the op --------------------------------------------------------------------------- */

static bool choose_scratch(Job *job)
{
    Run    *r = job->run;
    int64_t keys = job->keys, rows = job->sieved && !job->few ? 1 : job->rows;
    int     count = threads_count(r->threads);

    if (!job->terms && !job->few)
        job->strips = cpu_scratch(r, keys * job->depth, sizeof(*job->strips));
    if (job->sieved)
        job->sieve = sieve_keys_new(r, job->in, job->count, job->depth, sought(job),
                                    job->few ? job->n : 0, job->group);
    job->held = cpu_scratch(r, job->group, sizeof(*job->held));
    job->workers = cpu_scratch(r, count, sizeof(*job->workers));
    for (int x = 0; job->workers && x < count; x++) {
        job->workers[x] = (Worker){ .z = cpu_scratch(r, rows * keys, sizeof(double)),
                                    .sum = cpu_scratch(r, keys, sizeof(double)),
                                    .e = cpu_scratch(r, keys, sizeof(double)),
                                    .order = cpu_scratch(r, keys, sizeof(int64_t)),
                                    .work = cpu_scratch(r, keys, sizeof(int64_t)),
                                    .place = cpu_scratch(r, keys, sizeof(int32_t)),
                                    .ranked = cpu_scratch(r, keys, sizeof(Ranked)) };
        if (job->few)
            job->workers[x].strips = cpu_scratch(r, PANEL * job->depth, sizeof(double));
        if (job->in->kind == CHOOSE_INDEX)
            job->workers[x].part = cpu_scratch(r, rows * job->in->heads, PANEL * sizeof(double));
        else
            job->workers[x].q = cpu_scratch(r, rows * job->depth, sizeof(double));
        if (job->sieved)
            job->workers[x].sieve = sieve_new(r, &job->sieve);
        if (job->sieved)
            job->workers[x].sure = cpu_scratch(r, keys, sizeof(bool));
        if (job->sieved && job->in->kind == CHOOSE_INDEX)
            job->workers[x].weight = cpu_scratch(r, job->in->heads, sizeof(double));
    }
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
    for (int64_t head = 0; head < job->out->sets && job->few && !run_failed(job->run);
         head += job->group)
        choose_few(job, head, min_i64(job->group, job->out->sets - head));
    for (job->head = 0; job->head < job->out->sets && !job->few && !run_failed(job->run);
         job->head++) {
        if (job->strips)
            threads_run(job->run->threads, job->keys / LANES, strip_item, job);
        if (job->sieved)
            sieve_fill(job->run, &job->sieve, job->head);
        threads_run(job->run->threads, job->items, job->sieved ? sieved_item : choose_item, job);
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
                          .d = k->shape[2], .count = count,
                          .keys = round_up_to(count, PANEL) + LANES, /* no power of two apart */
                          .depth = (in->kind == CHOOSE_PAGES ? 2 : 1) * k->shape[2],
                          .terms = in->kind == CHOOSE_SCORES && attend_has_terms(&in->in) };

    job.few = job.n <= GROUP && !job.terms;
    job.sieved = is_sieved(&job);
    job.rows = job.sieved && !job.few ? SIEVE_ROWS
                          : max_i64(GROUP, min_i64(MOST_ROWS, LINES / job.keys / GROUP * GROUP));
    job.items = ceil_div(job.n, job.rows);
    job.group = max_i64(1, min_i64(out->sets, FEW_NUMBERS / (job.n * job.keys)));
    return job;
}

void cpu_choose(Run *r, const ChooseKeys *in, ChosenKeys *out)
{
    Job         job = job_of(r, in, out);
    int64_t     pieces = out->sets * job.items;
    ArenaMark   mark = arena_mark(r->arena);
    atomic_bool lacks = false;

    job.lacks = &lacks;
    job.pieces = calloc((size_t)pieces, sizeof(*job.pieces));
    if (job.pieces && choose_scratch(&job))
        choose_all(&job);
    arena_release(r->arena, mark);
    if (!job.pieces || atomic_load(&lacks))
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
