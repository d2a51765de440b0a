/* best.c -- for each of some vectors the k rows with the largest products: op_best_rows;
 * op_best_columns and op_pair_dots at the end.
 *
 * An item is a panel of vectors of one head, and passes over all rows.  A vector keeps a
 * list of the rows whose product, in float, reaches its limit.  The first limit is guessed from
 * a sample of the rows; whenever the list is full the limit rises to A - 2b, where A is the k-th
 * largest product in float so far and b is that of columns.h.  In the end a row above A + 2b is
 * among the best k and one below A - 2b is not; rows between are decided in double.
 */
#include <string.h>

#include "attn/cpu/columns.h"
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#define SAMPLE 256      /* rows of the guess */
#define SAMPLE_WORTH 8  /* a guess pays from so many times SAMPLE rows, and so many times k */
#define EXACT_ROWS 8    /* rows in double at once */

/* A row that may be among the best. */
typedef struct Entry {
    float   product;
    int32_t row;
} Entry;

typedef struct Worker {
    Entry   *list;   /* [TILE_KEYS][capacity], rows increasing */
    int64_t *keys;   /* [capacity or n], for kth_largest */
    int64_t *band;   /* [capacity], of entries that float cannot order */
    int64_t *strip;  /* [LANES][n], of all rows in double */
    float   *rows;   /* [TILE_ROWS][d] where rows end within a tile */
    double  *exact;  /* [EXACT_ROWS][d] */
    float   *sample; /* [TILE_KEYS][SAMPLE] */
    int64_t  held[TILE_KEYS];
    float    limit[TILE_KEYS];
    double   margin[TILE_KEYS]; /* 2b */
    bool     lost[TILE_KEYS];   /* float cannot order the vector: all rows in double */
    float    tile[TILE_ROWS * TILE_KEYS], top[TILE_ROWS * LANES];
} Worker;

typedef struct Job {
    Run              *run;
    const ChoiceRows *x;
    Columns           columns;
    Tensor           *index;
    int64_t           heads, n, k, capacity;
    double           *longest; /* [heads] bounds of the rows' lengths */
    Worker           *workers;
} Job;

static const float *near_vector(const Job *job, int64_t head, int64_t i)
{
    return tensor_row_f32(&job->x->near, head, job->heads, i);
}

/* ---- lists ------------------------------------------------------------------ */

/* The number at place k (0-based), in decreasing order, of those whose keys are w->keys. */
static double kth_value(Worker *w, int64_t count, int64_t k)
{
    int64_t key = cpu_kth_largest(w->keys, count, k);
    double  value;

    key = key < 0 ? key ^ INT64_MAX : key;
    memcpy(&value, &key, sizeof(value));
    return value;
}

/* The k-th largest product of the list. */
static double kth_product(const Job *job, Worker *w, const Entry *list, int64_t held)
{
    for (int64_t e = 0; e < held; e++)
        w->keys[e] = cpu_order_key((double)list[e].product);
    return kth_value(w, held, job->k - 1);
}

/* Drops rows of a full list that can no longer be among the best. */
static void thin_out(const Job *job, Worker *w, int64_t c)
{
    Entry  *list = w->list + c * job->capacity;
    double  left = kth_product(job, w, list, w->held[c]) - w->margin[c];
    int64_t kept = 0;

    w->limit[c] = fmaxf(w->limit[c], nextafterf((float)left, -INFINITY));
    for (int64_t e = 0; e < w->held[c]; e++)
        if (list[e].product >= w->limit[c])
            list[kept++] = list[e];
    w->held[c] = kept;
    if (kept < job->capacity)
        return;
    w->lost[c] = true; /* too many products are nearly equal */
    w->held[c] = 0;
    w->limit[c] = INFINITY;
}

static void take_tile(const Job *job, Worker *w, int64_t first, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++) {
        uint64_t bits = kernel_at(0)->at_least(w->tile + r * TILE_KEYS, w->limit);

        for (; bits; bits &= bits - 1) {
            int64_t c = __builtin_ctzll(bits);

            w->list[c * job->capacity + w->held[c]++] =
                (Entry){ w->tile[r * TILE_KEYS + c], (int32_t)(first + r) };
            if (w->held[c] == job->capacity)
                thin_out(job, w, c);
        }
    }
}

/* Products of rows first, first + step, ... with the panel. */
static void score_vectors(const Job *job, Worker *w, int64_t head, int64_t first, int64_t step,
                          int64_t rows, const float *panel)
{
    columns_score(near_vector(job, head, first), step * job->x->near.stride[1], rows,
                  job->columns.d, panel, NULL, w->rows, w->tile, TILE_KEYS, w->top);
}

/* Limits that about 3 k rows reach, and hardly ever fewer than k. */
static void guess_limits(const Job *job, Worker *w, int64_t head, const float *panel,
                         int64_t count)
{
    int64_t step = job->n / SAMPLE, place = 2 * (job->k * SAMPLE / job->n) + 8;

    for (int64_t i = 0; i < SAMPLE; i += TILE_ROWS) {
        int64_t rows = min_i64(TILE_ROWS, SAMPLE - i);

        score_vectors(job, w, head, i * step, step, rows, panel);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < count; c++)
                w->sample[c * SAMPLE + i + r] = w->tile[r * TILE_KEYS + c];
    }
    for (int64_t c = 0; c < count; c++) {
        for (int64_t i = 0; i < SAMPLE; i++)
            w->keys[i] = cpu_order_key((double)w->sample[c * SAMPLE + i]);
        w->limit[c] = (float)kth_value(w, SAMPLE, place - 1);
    }
}

/* ---- in double -------------------------------------------------------------- */

/* Rows first, ... of x into w->exact. */
static void exact_rows(const Job *job, Worker *w, int64_t head, int64_t first, int64_t rows)
{
    int64_t d = job->columns.d;

    for (int64_t i = 0; i < rows; i++) {
        if (job->x->exact)
            job->x->exact(job->x->context, head, first + i, w->exact + i * d);
        else
            floats_widen(DT_F32, near_vector(job, head, first + i), 0, d, w->exact + i * d);
    }
}

/* Products of rows first, ... with the strip of LANES columns that column c lies in. */
static void strip_products(const Job *job, Worker *w, int64_t head, int64_t place, int64_t c,
                           int64_t first, int64_t rows, double *y)
{
    const Columns *columns = &job->columns;

    exact_rows(job, w, head, first, rows);
    kernel_at(0)->product64(w->exact, columns->d, rows, columns->d, NULL,
                            columns_strip(columns, place, c / LANES * LANES), LANES, y, LANES);
}

/* All rows, for the strip of columns [first, first + LANES). */
static void strip_keys(const Job *job, Worker *w, int64_t head, int64_t place, int64_t first)
{
    double y[EXACT_ROWS * LANES];

    for (int64_t i = 0; i < job->n && !cpu_cancelled(job->run); i += EXACT_ROWS) {
        int64_t rows = min_i64(EXACT_ROWS, job->n - i);

        strip_products(job, w, head, place, first, i, rows, y);
        for (int64_t x = 0; x < rows * LANES; x++)
            w->strip[x % LANES * job->n + i + x / LANES] = cpu_order_key(y[x]);
    }
}

/* ---- the choice ------------------------------------------------------------- */

/* Puts the keys of the list's entries in [low, high] into w->band, by double.  The best
 * `wanted` of them lie above the bound that is returned, and *equal of those at it. */
static int64_t band_bound(const Job *job, Worker *w, int64_t head, int64_t place, int64_t first,
                          int64_t c, double low, double high, int64_t wanted, int64_t *equal)
{
    const Entry *list = w->list + c * job->capacity;
    int64_t      count = 0, bound;
    double       y[LANES];

    for (int64_t e = 0; e < w->held[c]; e++)
        if ((double)list[e].product >= low && (double)list[e].product <= high) {
            strip_products(job, w, head, place, first + c, list[e].row, 1, y);
            w->keys[count] = w->band[count] = cpu_order_key(y[(first + c) % LANES]);
            count++;
        }
    bound = cpu_kth_largest(w->keys, count, wanted - 1);
    *equal = wanted;
    for (int64_t e = 0; e < count; e++)
        *equal -= w->band[e] > bound;
    return bound;
}

/* Writes the best k rows; false: the list does not decide them. */
static bool choose(const Job *job, Worker *w, int64_t head, int64_t place, int64_t first,
                   int64_t c, int32_t *out)
{
    const Entry *list = w->list + c * job->capacity;
    int64_t      held = w->held[c], sure = 0, band = 0, bound = INT64_MIN, equal = 0, at = 0;
    double       kth, low, high;

    if (w->lost[c] || held < job->k)
        return false;
    kth = kth_product(job, w, list, held);
    low = kth - w->margin[c];
    high = kth + w->margin[c];
    if (low < (double)w->limit[c])
        return false;
    for (int64_t e = 0; e < held; e++) {
        sure += (double)list[e].product > high;
        band += (double)list[e].product >= low && (double)list[e].product <= high;
    }
    if (sure + band > job->k)
        bound = band_bound(job, w, head, place, first, c, low, high, job->k - sure, &equal);
    for (int64_t e = 0; e < held; e++) {
        bool above = (double)list[e].product > high, in = (double)list[e].product >= low;

        if (in && !above && sure + band > job->k) {
            int64_t key = w->band[at++];

            in = key > bound || (key == bound && equal-- > 0);
        }
        if (in)
            *out++ = list[e].row;
    }
    return true;
}

/* Columns [first, first + count), a panel. */
static void begin_panel(const Job *job, Worker *w, int64_t head, int64_t place, int64_t first,
                        int64_t count)
{
    const Columns *columns = &job->columns;
    const double  *length = columns->length + place * columns->padded + first;
    bool           guess = job->n >= SAMPLE_WORTH * SAMPLE && job->k * SAMPLE_WORTH <= job->n;

    for (int64_t c = 0; c < TILE_KEYS; c++) {
        double margin = 2.0001 * columns_margin(columns, job->longest[head], length[c]);

        w->held[c] = 0;
        w->margin[c] = margin;
        w->lost[c] = c < count && !(margin < COLUMNS_LARGEST);
        w->limit[c] = -INFINITY;
    }
    if (guess)
        guess_limits(job, w, head, columns_panel(columns, place, first / TILE_KEYS), count);
    for (int64_t c = 0; c < TILE_KEYS; c++)
        if (c >= count || w->lost[c] || !(w->limit[c] < INFINITY))
            w->limit[c] = INFINITY;
}

static void best_item(void *context, int64_t item, int worker)
{
    const Job     *job = context;
    const Columns *columns = &job->columns;
    Worker        *w = &job->workers[worker];
    int64_t        panels = columns->padded / TILE_KEYS, head = item / panels;
    int64_t        first = item % panels * TILE_KEYS;
    int64_t        count = min_i64(TILE_KEYS, columns->count - first), strip = -1;
    int64_t        place = columns_place(columns, head, job->heads, 0);
    int32_t       *out = tensor_i32(job->index) + (head * columns->count + first) * job->k;

    begin_panel(job, w, head, place, first, count);
    for (int64_t i = 0; i < job->n && !cpu_cancelled(job->run); i += TILE_ROWS) {
        int64_t rows = min_i64(TILE_ROWS, job->n - i);

        score_vectors(job, w, head, i, 1, rows, columns_panel(columns, place, item % panels));
        take_tile(job, w, i, rows);
    }
    for (int64_t c = 0; c < count && !cpu_cancelled(job->run); c++) {
        if (choose(job, w, head, place, first, c, out + c * job->k))
            continue;
        if (strip != (first + c) / LANES)
            strip_keys(job, w, head, place, first + c / LANES * LANES);
        strip = (first + c) / LANES;
        cpu_largest_places(w->strip + c % LANES * job->n, w->keys, job->n, job->k,
                           out + c * job->k);
    }
}

/* ---- the op ----------------------------------------------------------------- */

static void length_item(void *context, int64_t head, int worker)
{
    const Job *job = context;

    (void)worker;
    job->longest[head] = 0;
    for (int64_t i = 0; i < job->n; i++) {
        double length = row_length_bound(kernel_at(0), near_vector(job, head, i), job->columns.d);

        if (length > job->longest[head] || isnan(length)) /* NaN stays */
            job->longest[head] = length;
    }
}

static bool best_workers_new(Job *job)
{
    int     count = threads_count(job->run->threads);
    int64_t d = job->columns.d;

    job->workers = cpu_scratch(job->run, count, sizeof(*job->workers));
    for (int x = 0; job->workers && x < count; x++) {
        Worker *w = &job->workers[x];

        w->list = cpu_scratch(job->run, TILE_KEYS * job->capacity, sizeof(*w->list));
        w->keys = cpu_scratch(job->run, max_i64(SAMPLE, job->n + 1), sizeof(*w->keys));
        w->band = cpu_scratch(job->run, job->capacity, sizeof(*w->band));
        w->strip = cpu_scratch(job->run, LANES * job->n, sizeof(*w->strip));
        w->rows = cpu_scratch(job->run, TILE_ROWS * d, sizeof(*w->rows));
        w->exact = cpu_scratch(job->run, EXACT_ROWS * d, sizeof(*w->exact));
        w->sample = cpu_scratch(job->run, TILE_KEYS * SAMPLE, sizeof(*w->sample));
        memset(w->top, 0, sizeof(w->top)); /* raised by the kernel, never read */
        if (!w->list || !w->keys || !w->band || !w->strip || !w->rows || !w->exact || !w->sample)
            return false;
    }
    return job->workers != NULL;
}

void cpu_best_rows(Run *r, const ChoiceRows *x, const Tensor *y, int64_t k, Tensor *index)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = { .run = r, .x = x, .index = index, .heads = index->shape[0],
                      .n = x->near.shape[1], .k = k };

    job.capacity = min_i64(job.n, 8 * k + SAMPLE) + 1; /* so that n entries are not too many */
    job.longest = cpu_scratch(r, job.heads, sizeof(*job.longest));
    if (job.longest && columns_new(r, y, 1, false, &job.columns) && best_workers_new(&job)) {
        threads_run(r->threads, job.heads, length_item, &job);
        threads_run(r->threads, job.heads * (job.columns.padded / TILE_KEYS), best_item, &job);
    }
    arena_release(r->arena, mark);
}

/* The largest entries of every row, or of the sums of two rows, in decreasing order; products
 * of a row with rows given by index. */

#define PIECE 16384 /* entries of one item of work, at least a row */
#define SUM_LANES 8

typedef struct Best {
    Run               *run;
    const BestColumns *in;
    BestResult        *out;
    int64_t            rows, each; /* of all heads; of an item */
} Best;

/* Inserts `value` into the best k so far, behind equal values. */
static int64_t insert(double value, int32_t index, int64_t have, int64_t k, double *best,
                      int32_t *which)
{
    int64_t at = have < k ? have : k - 1;

    if (have == k && !(value > best[k - 1]))
        return have;
    for (; at > 0 && value > best[at - 1]; at--) {
        best[at] = best[at - 1];
        which[at] = which[at - 1];
    }
    best[at] = value;
    which[at] = index;
    return have < k ? have + 1 : k;
}

static const double *best_row_of(const Tensor *t, int64_t row)
{
    return tensor_f64(t) + row / t->shape[1] * t->stride[0] +
           row % t->shape[1] * t->stride[1];
}

static const int32_t *names_of(const Tensor *t, int64_t row)
{
    return tensor_i32(t) + row / t->shape[1] * t->stride[0] + row % t->shape[1] * t->stride[1];
}

static void name_columns(const BestColumns *in, int64_t row, int64_t others, int32_t *which)
{
    const int32_t *x = names_of(&in->x_name, row), *y = names_of(&in->y_name, row);

    for (int64_t c = 0; c < in->k; c++)
        which[c] = (int32_t)(x[which[c] / others] * in->names + y[which[c] % others]);
}

static void best_row(const Best *job, int64_t row)
{
    const BestColumns *in = job->in;
    const double      *x = best_row_of(&in->x, row);
    const double      *y = in->y.data ? best_row_of(&in->y, row) : NULL;
    int64_t            others = y ? in->y.shape[2] : 1, have = 0;
    double            *best = tensor_f64(&job->out->value) + row * in->k;
    int32_t           *which = tensor_i32(&job->out->index) + row * in->k;

    for (int64_t p = 0; p < in->x.shape[2]; p++)
        for (int64_t c = 0; c < others; c++)
            have = insert(y ? x[p] + y[c] : x[p], (int32_t)(p * others + c), have, in->k, best,
                          which);
    if (in->x_name.data)
        name_columns(in, row, others, which);
}

static void best_columns_item(void *context, int64_t item, int worker)
{
    const Best *job = context;

    (void)worker;
    for (int64_t row = item * job->each;
         row < min_i64(job->rows, (item + 1) * job->each) && !cpu_cancelled(job->run); row++)
        best_row(job, row);
}

void cpu_best_columns(Run *r, const BestColumns *in, BestResult *out)
{
    int64_t columns = in->x.shape[2] * (in->y.data ? in->y.shape[2] : 1);
    Best    job = { .run = r, .in = in, .out = out, .rows = in->x.shape[0] * in->x.shape[1],
                    .each = max_i64(1, PIECE / max_i64(1, columns)) };

    threads_run(r->threads, ceil_div(job.rows, job.each), best_columns_item, &job);
}

/* ---- products of a row with rows by index ------------------------------------------- */

typedef struct Dots {
    Run          *run;
    const Tensor *x, *y, *index;
    Tensor       *dots;
    int64_t       each; /* rows of an item */
} Dots;

/* In SUM_LANES partial sums, added at the end. */
static float float_dot(const float *x, const float *y, int64_t count)
{
    float   lane[SUM_LANES] = { 0 }, sum = 0;
    int64_t c = 0;

    for (; c + SUM_LANES <= count; c += SUM_LANES)
        for (int t = 0; t < SUM_LANES; t++)
            lane[t] += x[c + t] * y[c + t];
    for (; c < count; c++)
        sum += x[c] * y[c];
    for (int t = 0; t < SUM_LANES; t++)
        sum += lane[t];
    return sum;
}

static void pair_dots_item(void *context, int64_t item, int worker)
{
    const Dots *job = context;
    int64_t     heads = job->index->shape[0], n = job->index->shape[1], k = job->index->shape[2];

    (void)worker;
    for (int64_t row = item * job->each;
         row < min_i64(heads * n, (item + 1) * job->each) && !cpu_cancelled(job->run); row++) {
        const float *x = tensor_row_f32(job->x, row / n, heads, row % n);
        const float *y = tensor_head(job->y, row / n, heads);

        for (int64_t at = row * k; at < (row + 1) * k; at++)
            tensor_f32(job->dots)[at] =
                float_dot(x, y + tensor_i32(job->index)[at] * job->y->stride[1], job->x->shape[2]);
    }
}

void cpu_pair_dots(Run *r, const Tensor *x, const Tensor *y, const Tensor *index, Tensor *dots)
{
    int64_t work = max_i64(1, index->shape[2] * x->shape[2]);
    Dots    job = { .run = r, .x = x, .y = y, .index = index, .dots = dots,
                    .each = max_i64(1, PIECE / work) };

    threads_run(r->threads, ceil_div(index->shape[0] * index->shape[1], job.each), pair_dots_item,
                &job);
}
