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

#define SAMPLE_LEAST 256 /* rows of the guess */
#define SAMPLE_MOST 1024
#define SAMPLE_PART 16   /* one row of so many */
#define SAMPLE_WORTH 8   /* a guess pays from so many times SAMPLE_LEAST rows and k */
#define STEPS 12         /* of bisection, in a guess */
#define EXACT_ROWS 8     /* rows in double at once */

typedef struct Worker {
    float   *value;  /* [TILE_KEYS][capacity]: products of the rows that may be among the best, */
    int32_t *row;    /* and these rows, increasing */
    int64_t *keys;   /* [capacity or n], for cpu_kth_largest */
    int64_t *band;   /* [capacity], of entries that float cannot order */
    int64_t *strip;  /* [LANES][n], of all rows in double */
    float   *rows;   /* [TILE_ROWS][d] where rows end within a tile */
    double  *exact;  /* [EXACT_ROWS][d] */
    float   *sample; /* [SAMPLE_MOST + TILE_ROWS][TILE_KEYS] */
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
    int64_t           heads, n, k;
    int64_t           most, capacity; /* of a list; capacity: whole panels */
    double           *longest; /* [heads] bounds of the rows' lengths */
    Worker           *workers;
} Job;

static const float *near_vector(const Job *job, int64_t head, int64_t i)
{
    return tensor_row_f32(&job->x->near, head, job->heads, i);
}

/* ---- lists ------------------------------------------------------------------ */

/* The products of vector c, filled up to whole panels. */
static const float *padded_list(const Job *job, Worker *w, int64_t c)
{
    float *value = w->value + c * job->capacity;

    for (int64_t e = w->held[c]; e % TILE_KEYS; e++)
        value[e] = -INFINITY;
    return value;
}

/* A number that k of the products of vector c reach; more only if several equal the k-th. */
static float list_bound(const Job *job, Worker *w, int64_t c, int64_t *reached)
{
    const Kernel *kernel = kernel_at(0);
    const float  *value = padded_list(job, w, c);
    int64_t       padded = round_up_to(w->held[c], TILE_KEYS);
    float         high = kernel->largest(value, w->held[c], 1);
    float         low = w->limit[c] > -INFINITY ? w->limit[c]
                                                : -kernel->largest(value, w->held[c], -1);

    *reached = w->held[c];
    while (*reached > job->k) {
        float   middle = low + (high - low) / 2;
        int64_t now = kernel->reach(value, padded, middle);

        if (!(middle > low && middle < high)) { /* neighbours: high was not tried yet */
            now = kernel->reach(value, padded, high);
            return now >= job->k ? (*reached = now, high) : low;
        }
        *(now < job->k ? &high : &low) = middle;
        *reached = now < job->k ? *reached : now;
    }
    return low;
}

/* The k-th largest product of vector c. */
static double kth_product(const Job *job, Worker *w, int64_t c)
{
    int64_t      reached;
    const float *value = w->value + c * job->capacity;
    float        bound = list_bound(job, w, c, &reached), least = INFINITY;

    for (int64_t e = 0; e < w->held[c]; e++)
        least = value[e] >= bound && value[e] < least ? value[e] : least;
    return (double)least;
}

/* Drops rows of a full list that can no longer be among the best. */
static void thin_out(const Job *job, Worker *w, int64_t c)
{
    float   *value = w->value + c * job->capacity;
    int32_t *row = w->row + c * job->capacity;
    double   left = kth_product(job, w, c) - w->margin[c];
    int64_t  kept = 0;

    w->limit[c] = fmaxf(w->limit[c], nextafterf((float)left, -INFINITY));
    for (int64_t e = 0; e < w->held[c]; e++)
        if (value[e] >= w->limit[c]) {
            value[kept] = value[e];
            row[kept++] = row[e];
        }
    w->held[c] = kept;
    if (kept < job->most)
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
            int64_t c = __builtin_ctzll(bits), at = c * job->capacity + w->held[c]++;

            w->value[at] = w->tile[r * TILE_KEYS + c];
            w->row[at] = (int32_t)(first + r);
            if (w->held[c] == job->most)
                thin_out(job, w, c);
        }
    }
}

/* Products of rows first, first + step, ... (a tile at most) with the panel. */
static void score_vectors(const Job *job, Worker *w, int64_t head, int64_t first, int64_t step,
                          int64_t rows, const float *panel, float *s)
{
    columns_score(near_vector(job, head, first), step * job->x->near.stride[1], rows,
                  job->columns.d, panel, NULL, w->rows, s, TILE_KEYS, w->top);
}

/* Limits that hardly ever fewer than k rows reach, and not many more: the best k rows of n have
 * about mean = k sample / n rows in the sample, hardly ever 4 deviations more. */
static void guess_limits(const Job *job, Worker *w, int64_t head, const float *panel)
{
    int64_t rows = max_i64(SAMPLE_LEAST, min_i64(SAMPLE_MOST, job->n / SAMPLE_PART));
    int64_t step = job->n / rows;
    double  mean = (double)(job->k * rows) / (double)job->n;

    for (int64_t i = 0; i < rows; i += TILE_ROWS)
        score_vectors(job, w, head, i * step, step, min_i64(TILE_ROWS, rows - i), panel,
                      w->sample + i * TILE_KEYS);
    kernel_at(0)->column_bounds(w->sample, rows, (int64_t)ceil(mean + 4 * sqrt(mean)) + 3, STEPS,
                                w->limit);
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
    const float   *value = w->value + c * job->capacity;
    const int32_t *row = w->row + c * job->capacity;
    int64_t        count = 0, bound;
    double         y[LANES];

    for (int64_t e = 0; e < w->held[c]; e++)
        if ((double)value[e] >= low && (double)value[e] <= high) {
            strip_products(job, w, head, place, first + c, row[e], 1, y);
            w->keys[count] = w->band[count] = cpu_order_key(y[(first + c) % LANES]);
            count++;
        }
    bound = cpu_kth_largest(w->keys, count, wanted - 1);
    *equal = wanted;
    for (int64_t e = 0; e < count; e++)
        *equal -= w->band[e] > bound;
    return bound;
}

/* Writes the rows whose products reach `bound`, of which there are k. */
static void take_reaching(const Job *job, const Worker *w, int64_t c, float bound, int32_t *out)
{
    const Kernel *kernel = kernel_at(0);
    const float  *value = w->value + c * job->capacity;
    float         limit[TILE_KEYS];

    for (int t = 0; t < TILE_KEYS; t++)
        limit[t] = bound;
    for (int64_t e = 0; e < w->held[c]; e += TILE_KEYS)
        for (uint64_t bits = kernel->at_least(value + e, limit); bits; bits &= bits - 1)
            *out++ = w->row[c * job->capacity + e + __builtin_ctzll(bits)];
}

/* Writes the best k rows where double has to decide between some; false: the list does not decide
 * them. */
static bool choose_closely(const Job *job, Worker *w, int64_t head, int64_t place, int64_t first,
                           int64_t c, int32_t *out)
{
    const float *value = w->value + c * job->capacity;
    int64_t      sure = 0, band = 0, bound = INT64_MIN, equal = 0, at = 0;
    double       kth = kth_product(job, w, c), low = kth - w->margin[c];
    double       high = kth + w->margin[c];

    if (low < (double)w->limit[c])
        return false;
    for (int64_t e = 0; e < w->held[c]; e++) {
        sure += (double)value[e] > high;
        band += (double)value[e] >= low && (double)value[e] <= high;
    }
    if (sure + band > job->k)
        bound = band_bound(job, w, head, place, first, c, low, high, job->k - sure, &equal);
    for (int64_t e = 0; e < w->held[c]; e++) {
        bool above = (double)value[e] > high, in = (double)value[e] >= low;

        if (in && !above && sure + band > job->k) {
            int64_t key = w->band[at++];

            in = key > bound || (key == bound && equal-- > 0);
        }
        if (in)
            *out++ = w->row[c * job->capacity + e];
    }
    return true;
}

/* Writes the best k rows; false: the list does not decide them. */
static bool choose(const Job *job, Worker *w, int64_t head, int64_t place, int64_t first,
                   int64_t c, int32_t *out)
{
    int64_t reached;
    float   bound, below;

    if (w->lost[c] || w->held[c] < job->k)
        return false;
    bound = list_bound(job, w, c, &reached);
    below = nextafterf((float)((double)bound - w->margin[c]), -INFINITY);
    if (reached > job->k || below < w->limit[c] ||
        kernel_at(0)->reach(w->value + c * job->capacity, round_up_to(w->held[c], TILE_KEYS),
                            below) > job->k)
        return choose_closely(job, w, head, place, first, c, out);
    take_reaching(job, w, c, bound, out);
    return true;
}

/* Columns [first, first + count), a panel. */
static void begin_panel(const Job *job, Worker *w, int64_t head, int64_t place, int64_t first,
                        int64_t count)
{
    const Columns *columns = &job->columns;
    const double  *length = columns->length + place * columns->padded + first;
    bool           guess = job->n >= SAMPLE_WORTH * SAMPLE_LEAST &&
                           job->k * SAMPLE_WORTH <= job->n;

    for (int64_t c = 0; c < TILE_KEYS; c++) {
        double margin = 2.0001 * columns_margin(columns, job->longest[head], length[c]);

        w->held[c] = 0;
        w->margin[c] = margin;
        w->lost[c] = c < count && !(margin < COLUMNS_LARGEST);
        w->limit[c] = -INFINITY;
    }
    if (guess)
        guess_limits(job, w, head, columns_panel(columns, place, first / TILE_KEYS));
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

        score_vectors(job, w, head, i, 1, rows, columns_panel(columns, place, item % panels),
                      w->tile);
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
    const Job    *job = context;
    const Tensor *x = &job->x->near;
    int64_t       d = job->columns.d;

    (void)worker;
    job->longest[head] = length_bound((double)kernel_at(0)->most_squares(near_vector(job, head, 0),
                                                                         x->stride[1], job->n, d),
                                      d);
}

static bool best_workers_new(Job *job)
{
    int     count = threads_count(job->run->threads);
    int64_t d = job->columns.d;

    job->workers = cpu_scratch(job->run, count, sizeof(*job->workers));
    for (int x = 0; job->workers && x < count; x++) {
        Worker *w = &job->workers[x];

        w->value = cpu_scratch(job->run, TILE_KEYS * job->capacity, sizeof(*w->value));
        w->row = cpu_scratch(job->run, TILE_KEYS * job->capacity, sizeof(*w->row));
        w->keys = cpu_scratch(job->run, max_i64(job->most, job->n + 1), sizeof(*w->keys));
        w->band = cpu_scratch(job->run, job->capacity, sizeof(*w->band));
        w->strip = cpu_scratch(job->run, LANES * job->n, sizeof(*w->strip));
        w->rows = cpu_scratch(job->run, TILE_ROWS * d, sizeof(*w->rows));
        w->exact = cpu_scratch(job->run, EXACT_ROWS * d, sizeof(*w->exact));
        w->sample = cpu_scratch(job->run, (SAMPLE_MOST + TILE_ROWS) * TILE_KEYS,
                                sizeof(*w->sample));
        memset(w->top, 0, sizeof(w->top)); /* raised by the kernel, never read */
        if (!w->value || !w->row || !w->keys || !w->band || !w->strip || !w->rows || !w->exact ||
            !w->sample)
            return false;
    }
    return job->workers != NULL;
}

void cpu_best_rows(Run *r, const ChoiceRows *x, const Tensor *y, int64_t k, Tensor *index)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = { .run = r, .x = x, .index = index, .heads = index->shape[0],
                      .n = x->near.shape[1], .k = k };

    job.most = min_i64(job.n, 8 * k + SAMPLE_LEAST) + 1; /* so that n entries are not too many */
    job.capacity = round_up_to(job.most, TILE_KEYS);
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
