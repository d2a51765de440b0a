/* nearest.c -- nearest vectors, codes of bits, and sums over the members of clusters. */
#include <math.h>
#include <string.h>

#include "attn/cpu/columns.h"
#include "attn/cpu/simd/kernel.h"
#include "core/threads.h"

typedef struct ColumnsJob {
    const Tensor  *y;
    const Columns *columns;
    bool           unit;
    float         *rows; /* [workers][TILE_KEYS][d] */
} ColumnsJob;

void columns_score(const float *x, int64_t ld, int64_t rows, int64_t d, const float *panel,
                   const uint64_t *keep, float *padding, float *s, int64_t lds, float *top)
{
    if (rows < TILE_ROWS) {
        memset(padding, 0, (size_t)(TILE_ROWS * d) * sizeof(*padding));
        for (int64_t i = 0; i < rows; i++)
            memcpy(padding + i * d, x + i * ld, (size_t)d * sizeof(*x));
        x = padding;
        ld = d;
    }
    kernel_at(0)->score(x, ld, panel, d, keep, 0, TILE_KEYS, s, lds, top);
}

double row_length_bound(const Kernel *kernel, const float *x, int64_t d)
{
    return length_bound((double)kernel->squares_near(x, d), d);
}

/* |x| in double, at least LENGTH_LEAST. */
static double row_length(const double *x, int64_t d)
{
    double squares = 0;

    for (int64_t t = 0; t < d; t++)
        squares += x[t] * x[t];
    return squares < LENGTH_LEAST * LENGTH_LEAST ? LENGTH_LEAST : sqrt(squares);
}

/* Column c of the panel, from the row of y that begins at `from`. */
static void pack_column(const ColumnsJob *job, int64_t from, int64_t c, double *strip,
                        double *length, float *row)
{
    const Columns *columns = job->columns;
    double        *to = strip + c / LANES * LANES * columns->d + c % LANES, squares = 0, factor;

    for (int64_t t = 0; t < columns->d; t++) {
        to[t * LANES] = float_at(job->y->dtype, job->y->data, from + t);
        squares += to[t * LANES] * to[t * LANES];
    }
    *length = squares < LENGTH_LEAST * LENGTH_LEAST ? LENGTH_LEAST : sqrt(squares);
    factor = job->unit ? 1 / *length : 1;
    for (int64_t t = 0; t < columns->d; t++)
        row[t] = (float)(to[t * LANES] * factor);
}

/* An item is a panel. */
static void pack_columns_item(void *context, int64_t item, int worker)
{
    const ColumnsJob *job = context;
    const Columns *c = job->columns;
    int64_t        panels = c->padded / TILE_KEYS, place = item / panels;
    int64_t        first = item % panels * TILE_KEYS, count = min_i64(TILE_KEYS, c->count - first);
    int64_t        slice = place / c->parts, own = place % c->parts * c->count + first;
    double        *strip = c->strip + (place * c->padded + first) * c->d;
    double        *length = c->length + place * c->padded + first;
    float         *rows = job->rows + worker * TILE_KEYS * c->d;

    memset(strip, 0, (size_t)(TILE_KEYS * c->d) * sizeof(*strip));
    memset(length, 0, TILE_KEYS * sizeof(*length));
    for (int64_t x = 0; x < count; x++)
        pack_column(job, slice * job->y->stride[0] + (own + x) * job->y->stride[1], x, strip,
                    length + x, rows + x * c->d);
    pack_panel(rows, c->d, count, c->d, c->panel + (place * c->padded + first) * c->d);
}

static void find_longest(Columns *c, bool unit)
{
    for (int64_t place = 0; place < c->slices * c->parts; place++) {
        const double *length = c->length + place * c->padded;

        c->longest[place] = 0;
        for (int64_t x = 0; x < c->count; x++)
            if (length[x] > c->longest[place] || isnan(length[x])) /* NaN stays */
                c->longest[place] = length[x];
        if (unit && isfinite(c->longest[place]))
            c->longest[place] = 1;
    }
}

bool columns_new(Run *r, const Tensor *y, int64_t parts, bool unit, Columns *out)
{
    int64_t places = y->shape[0] * parts, d = y->shape[2], f = (int64_t)sizeof(float);
    Columns c = { .slices = y->shape[0], .parts = parts, .d = d,
                  .count = y->shape[1] / parts };
    ColumnsJob     job = { .y = y, .columns = &c, .unit = unit };

    c.padded = round_up_to(c.count, TILE_KEYS);
    c.panel = cpu_scratch(r, places * c.padded, d * f);
    c.strip = cpu_scratch(r, places * c.padded, d * (int64_t)sizeof(double));
    c.length = cpu_scratch(r, places, c.padded * (int64_t)sizeof(double));
    c.longest = cpu_scratch(r, places, sizeof(double));
    job.rows = cpu_scratch(r, threads_count(r->threads) * TILE_KEYS, d * f);
    *out = c;
    if (!c.panel || !c.strip || !c.length || !c.longest || !job.rows)
        return false;
    threads_run(r->threads, places * (c.padded / TILE_KEYS), pack_columns_item, &job);
    find_longest(out, unit);
    return true;
}

/* Which vector has the largest product with a row; codes of bits.
 *
 *     index_i = argmax_c x_i . y_c          bit c of code_i = x_i . p_c > bias_c
 *
 * Decided in float where its error bound allows, else in double; see columns.h.
 */

#define BLOCK (16 * TILE_ROWS) /* rows of one item of work */
#define GROUPS 8               /* tiles of rows that use a panel while it is in the cache */
#define GROUP_ROWS (GROUPS * TILE_ROWS)

typedef struct Worker {
    float  *scores; /* [GROUP_ROWS][padded + LANES] */
    float  *rows;   /* [TILE_ROWS][d] where rows end within a tile */
    double *row;    /* [d] */
    double *exact;  /* [padded] */
    float   squares[GROUP_ROWS]; /* of the rows' lengths, nearly */
    float   margin[GROUP_ROWS];
    int32_t found[GROUP_ROWS];
    float   top[GROUP_ROWS * LANES];
} Worker;

typedef struct Job {
    Run           *run;
    const Nearest *in;
    Columns        columns;
    float         *bias; /* codes: [slices][TILE_KEYS], 0 behind the last plane */
    int64_t        blocks; /* of a head */
    int64_t        heads, n;
    Tensor        *out;
    Worker        *workers;
} Job;

static const float *near_row(const Job *job, int64_t head, int64_t i)
{
    return tensor_row_f32(&job->in->x.near, head, job->heads, i);
}

/* Scores of `rows` rows from x on (a tile at most) with a panel. */
static void score_tile(const Job *job, Worker *w, const float *x, int64_t rows,
                       const float *panel, const uint64_t *keep, float *s, int64_t lds,
                       float *top)
{
    columns_score(x, job->in->x.near.stride[1], rows, job->columns.d, panel, keep, w->rows, s,
                  lds, top);
}

/* Row i in double, and its products with all columns of the place. */
static void exact_products(const Job *job, Worker *w, int64_t head, int64_t i, int64_t place,
                           const float *x)
{
    const Columns *c = &job->columns;

    if (job->in->x.exact)
        job->in->x.exact(job->in->x.context, head, i, w->row);
    else
        floats_widen(DT_F32, x, 0, c->d, w->row);
    kernel_at(0)->product64(w->row, c->d, 1, c->d, NULL, columns_strip(c, place, 0), c->padded,
                            w->exact, c->padded);
}

static int32_t exact_index(const Job *job, Worker *w, int64_t head, int64_t i, int64_t place,
                           const float *x)
{
    const Columns *c = &job->columns;
    const double  *length = c->length + place * c->padded;

    exact_products(job, w, head, i, place, x);
    if (job->in->cosine) {
        double own = row_length(w->row, c->d);

        for (int64_t y = 0; y < c->count; y++)
            w->exact[y] /= own * length[y];
    }
    return cpu_argmax_row(w->exact, c->count, job->in->with_negative);
}

/* Prefetches a tile of rows from `first` on, as far as there are any. */
static PREFETCHES void fetch_tile(const Job *job, int64_t head, int64_t first)
{
    for (int64_t i = first; i < min_i64(job->n, first + TILE_ROWS); i++)
        cpu_fetch(near_row(job, head, i), job->columns.d);
}

/* Scores of `rows` rows from `first` on with all panels of the place; padding columns are -inf or,
 * with_negative, 0.  As many rows behind them are fetched with the first part. */
static void score_rows(const Job *job, Worker *w, int64_t head, int64_t part, int64_t first,
                       int64_t rows)
{
    const float   *x = near_row(job, head, first);
    int64_t        place = columns_place(&job->columns, head, job->heads, part);
    const Columns *c = &job->columns;
    int64_t        panels = c->padded / TILE_KEYS, tail = c->count - (panels - 1) * TILE_KEYS;
    int64_t        lds = c->padded + LANES, ldx = job->in->x.near.stride[1];
    uint64_t       keep[TILE_ROWS];

    for (int r = 0; r < TILE_ROWS; r++)
        keep[r] = ~UINT64_C(0) >> (TILE_KEYS - tail);
    for (int64_t t = 0; t < GROUP_ROWS * LANES; t++)
        w->top[t] = -INFINITY;
    for (int64_t p = 0; p < panels; p++) {
        bool cut = p == panels - 1 && tail < TILE_KEYS && !job->in->with_negative;

        for (int64_t i = 0; i < rows; i += TILE_ROWS) {
            if (part == 0 && p == 0)
                fetch_tile(job, head, first + rows + i);
            score_tile(job, w, x + i * ldx, min_i64(TILE_ROWS, rows - i),
                       columns_panel(c, place, p), cut ? keep : NULL,
                       w->scores + i * lds + p * TILE_KEYS, lds, w->top + i * LANES);
        }
    }
}

/* Twice the error of a row's products; NaN where double has to decide. */
static float apart(const Job *job, int64_t place, float squares)
{
    const Columns *c = &job->columns;
    double         margin = columns_margin(c, length_bound((double)squares, c->d),
                                           c->longest[place]);

    return margin < COLUMNS_LARGEST ? (float)(2.0001 * margin) : NAN;
}

static void nearest_rows(const Job *job, Worker *w, int64_t head, int64_t part, int64_t first,
                         int64_t rows)
{
    const Columns *c = &job->columns;
    const float   *x = near_row(job, head, first);
    int64_t        place = columns_place(c, head, job->heads, part), lds = c->padded + LANES;
    int32_t       *to = tensor_i32(job->out) + (head * c->parts + part) * job->n + first;

    score_rows(job, w, head, part, first, rows);
    for (int64_t i = 0; i < rows; i++)
        w->margin[i] = apart(job, place, w->squares[i]);
    kernel_at(0)->peaks(w->scores, lds, rows, c->padded, job->in->with_negative ? NULL : w->top,
                        w->margin, w->found);
    for (int64_t i = 0; i < rows; i++) {
        int32_t at = w->found[i];

        if (at < 0)
            at = exact_index(job, w, head, first + i, place,
                             x + i * job->in->x.near.stride[1]);
        else if (job->in->with_negative && w->scores[i * lds + at] < 0)
            at += (int32_t)c->count;
        to[i] = at;
    }
}

static void nearest_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * BLOCK;
    int64_t    end = min_i64(job->n, first + BLOCK);
    Worker    *w = &job->workers[worker];

    for (; first < end && !cpu_cancelled(job->run); first += GROUP_ROWS) {
        int64_t rows = min_i64(GROUP_ROWS, end - first);

        kernel_at(0)->rows_squares_near(near_row(job, head, first), job->in->x.near.stride[1],
                                        rows, job->columns.d, w->squares);
        for (int64_t part = 0; part < job->columns.parts; part++)
            nearest_rows(job, w, head, part, first, rows);
    }
}

static bool workers_new(Job *job)
{
    int     count = threads_count(job->run->threads);
    int64_t padded = job->columns.padded, d = job->columns.d;

    job->workers = cpu_scratch(job->run, count, sizeof(*job->workers));
    for (int x = 0; job->workers && x < count; x++) {
        Worker *w = &job->workers[x];

        w->scores = cpu_scratch(job->run, GROUP_ROWS * (padded + LANES),
                                sizeof(*w->scores));
        w->rows = cpu_scratch(job->run, TILE_ROWS * d, sizeof(*w->rows));
        w->row = cpu_scratch(job->run, d, sizeof(*w->row));
        w->exact = cpu_scratch(job->run, padded, sizeof(*w->exact));
        memset(w->top, 0, sizeof(w->top)); /* codes raise it and never read it */
        if (!w->scores || !w->rows || !w->row || !w->exact)
            return false;
    }
    return job->workers != NULL;
}

static Job job_of(Run *r, const Nearest *in, Tensor *out)
{
    return (Job){ .run = r, .in = in, .heads = out->shape[0], .n = in->x.near.shape[1],
                  .blocks = ceil_div(in->x.near.shape[1], BLOCK), .out = out };
}

void cpu_nearest(Run *r, const Nearest *in, Tensor *index)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = job_of(r, in, index);

    if (columns_new(r, &in->y, in->parts, in->cosine, &job.columns) && workers_new(&job))
        threads_run(r->threads, job.heads * job.blocks, nearest_item, &job);
    arena_release(r->arena, mark);
}

/* ---- codes ------------------------------------------------------------------ */

/* The code, decided in double. */
static uint64_t exact_bits(const Job *job, Worker *w, int64_t place, const float *x,
                           const float *bias)
{
    const Columns *c = &job->columns;
    uint64_t       code = 0;

    exact_products(job, w, 0, 0, place, x);
    for (int64_t t = 0; t < c->count; t++)
        code |= (uint64_t)(w->exact[t] > (double)bias[t]) << t;
    return code;
}

/* A bit is set for a score above `high` and not set below `low`; double decides between. */
static int64_t code_of(const Job *job, Worker *w, int64_t place, const float *x,
                       const float *bias, const float *s)
{
    const Kernel  *kernel = kernel_at(0);
    const Columns *c = &job->columns;
    double         length = row_length_bound(kernel, x, c->d);
    float          far = (float)(1.0001 * columns_margin(c, length, c->longest[place]));
    float          low[TILE_KEYS], high[TILE_KEYS];
    uint64_t       real = ~UINT64_C(0) >> (TILE_KEYS - c->count), set, open;

    for (int t = 0; t < TILE_KEYS; t++) {
        float apart = far + 0x1p-22f * fabsf(bias[t]); /* rounding of the limits */

        low[t] = bias[t] - apart;
        high[t] = bias[t] + apart;
    }
    set = kernel->at_least(s, high);
    open = kernel->at_least(s, low) & ~set & real;
    if (open || !(far < (float)COLUMNS_LARGEST))
        return (int64_t)exact_bits(job, w, place, x, bias);
    return (int64_t)(set & real);
}

static void code_item(void *context, int64_t item, int worker)
{
    const Job     *job = context;
    const Columns *c = &job->columns;
    Worker        *w = &job->workers[worker];
    int64_t        head = item / job->blocks, first = item % job->blocks * BLOCK;
    int64_t        end = min_i64(job->n, first + BLOCK);
    int64_t        place = columns_place(c, head, job->heads, 0);

    for (; first < end && !cpu_cancelled(job->run); first += TILE_ROWS) {
        int64_t rows = min_i64(TILE_ROWS, end - first);

        score_tile(job, w, near_row(job, head, first), rows, columns_panel(c, place, 0), NULL,
                   w->scores, TILE_KEYS, w->top);
        for (int64_t i = 0; i < rows; i++)
            ((int64_t *)job->out->data)[head * job->n + first + i] =
                code_of(job, w, place, near_row(job, head, first + i),
                        job->bias + place * TILE_KEYS, w->scores + i * TILE_KEYS);
    }
}

/* The last entries of planes [h',bits,d+1], or zeros. */
static float *plane_biases(Run *r, const Tensor *planes, bool bias)
{
    int64_t bits = planes->shape[1], d = planes->shape[2] - 1;
    float  *to = cpu_scratch(r, planes->shape[0] * TILE_KEYS, sizeof(*to));

    if (!to)
        return NULL;
    memset(to, 0, (size_t)(planes->shape[0] * TILE_KEYS) * sizeof(*to));
    for (int64_t x = 0; bias && x < planes->shape[0] * bits; x++)
        to[x / bits * TILE_KEYS + x % bits] = tensor_f32(planes)[x * (d + 1) + d];
    return to;
}

void cpu_codes(Run *r, const Tensor *x, const Tensor *planes, bool bias, Tensor *code)
{
    ArenaMark mark = arena_mark(r->arena);
    Nearest   in = { .x = { .near = *x }, .y = *planes, .parts = 1 };
    Job       job = job_of(r, &in, code);

    in.y.shape[2]--;
    job.bias = plane_biases(r, planes, bias);
    if (job.bias && columns_new(r, &in.y, 1, false, &job.columns) && workers_new(&job))
        threads_run(r->threads, job.heads * job.blocks, code_item, &job);
    arena_release(r->arena, mark);
}

/* Sums of the vectors, and counts of the bits, of the members of clusters.
 *
 *     sum_c = sum of x_i, or of x_i / |x_i|, over index_i = c        in double, in row order
 *     ones_ct = how many codes of cluster c have bit t
 *
 * For sums an item is a head, so they are the same for any number of threads.
 */

#define ROWS 1024     /* codes of one item of work */
#define ROWS_AHEAD 16 /* distance at which rows are prefetched */

typedef struct Sums {
    const Tensor *x, *index;
    bool          unit;
    Tensor       *sum;
} Sums;

/* Sums of f64 rows. */
static void add_doubles(const Sums *job, int64_t head)
{
    int64_t        h = job->sum->shape[0], clusters = job->sum->shape[1], d = job->sum->shape[2];
    int64_t        n = job->index->shape[1];
    const double  *x = tensor_head(job->x, head, h);
    const int32_t *index = tensor_i32(job->index) + head * n;

    for (int64_t i = 0; i < n; i++, x += job->x->stride[1]) {
        double *sum = tensor_f64(job->sum) + (head * clusters + index[i]) * d;

        for (int64_t t = 0; t < d; t++)
            sum[t] += x[t];
    }
}

static void sums_item(void *context, int64_t head, int worker)
{
    const Sums    *job = context;
    const Kernel  *kernel = kernel_at(0);
    int64_t        h = job->sum->shape[0], clusters = job->sum->shape[1], d = job->sum->shape[2];
    int64_t        n = job->index->shape[1];
    const float   *x = tensor_head(job->x, head, h);
    const int32_t *index = tensor_i32(job->index) + head * n;
    double        *sum = tensor_f64(job->sum) + head * clusters * d;

    (void)worker;
    memset(sum, 0, (size_t)(clusters * d) * sizeof(*sum));
    if (job->x->dtype == DT_F64) {
        add_doubles(job, head);
        return;
    }
    for (int64_t i = 0; i < n; i++, x += job->x->stride[1]) {
        double factor;

        if (i + ROWS_AHEAD < n)
            cpu_fetch(x + ROWS_AHEAD * job->x->stride[1], d);
        factor = job->unit ? 1 / fmax(sqrt(kernel->squares(x, d)), LENGTH_LEAST) : 1;

        kernel->fold_scaled(x, d, factor, sum + index[i] * d);
    }
}

void cpu_member_sums(Run *r, const Tensor *x, const Tensor *index, bool unit, Tensor *sum)
{
    Sums job = { .x = x, .index = index, .unit = unit, .sum = sum };

    threads_run(r->threads, sum->shape[0], sums_item, &job);
}

typedef struct Tally {
    const Tensor *index;
    Tensor       *count;
} Tally;

static void tally_item(void *context, int64_t head, int worker)
{
    const Tally *job = context;
    int64_t      n = job->index->shape[1], size = job->count->shape[1];
    int32_t     *count = tensor_i32(job->count) + head * size;

    (void)worker;
    memset(count, 0, (size_t)size * sizeof(*count));
    for (int64_t i = 0; i < n; i++)
        count[tensor_i32(job->index)[head * n + i]]++;
}

void cpu_tally(Run *r, const Tensor *index, Tensor *count)
{
    Tally job = { .index = index, .count = count };

    threads_run(r->threads, count->shape[0], tally_item, &job);
}

/* ---- codes ------------------------------------------------------------------ */

typedef struct Search {
    const Tensor *codes, *centres;
    Tensor       *cluster;
    int64_t       blocks; /* of a head */
} Search;

static void nearest_codes_item(void *context, int64_t item, int worker)
{
    const Search *job = context;
    int64_t      n = job->codes->shape[1], count = job->centres->shape[1];
    int64_t      head = item / job->blocks, first = item % job->blocks * ROWS;
    int64_t      at = head * n + first;

    (void)worker;
    kernel_at(0)->nearest_codes((const int64_t *)job->codes->data + at, min_i64(ROWS, n - first),
                                (const int64_t *)job->centres->data + head * count, count,
                                tensor_i32(job->cluster) + at);
}

void cpu_nearest_codes(Run *r, const Tensor *codes, const Tensor *centres, Tensor *cluster)
{
    Search job = { .codes = codes, .centres = centres, .cluster = cluster,
                  .blocks = ceil_div(codes->shape[1], ROWS) };

    threads_run(r->threads, codes->shape[0] * job.blocks, nearest_codes_item, &job);
}

typedef struct BitSums {
    const Tensor *codes, *cluster;
    Tensor       *ones;
} BitSums;

static void bits_item(void *context, int64_t head, int worker)
{
    const BitSums *job = context;
    int64_t        n = job->codes->shape[1], size = job->ones->shape[1] * CODE_BITS;
    int32_t       *ones = tensor_i32(job->ones) + head * size;

    (void)worker;
    memset(ones, 0, (size_t)size * sizeof(*ones));
    kernel_at(0)->bit_sums((const int64_t *)job->codes->data + head * n,
                           tensor_i32(job->cluster) + head * n, n, ones);
}

void cpu_bit_sums(Run *r, const Tensor *codes, const Tensor *cluster, Tensor *ones)
{
    BitSums job = { .codes = codes, .cluster = cluster, .ones = ones };

    threads_run(r->threads, codes->shape[0], bits_item, &job);
}
