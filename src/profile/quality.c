/* quality.c -- a run against exact attention, row by row; see measure.h.
 *
 *     mass_i  = sum over kept j of w*[i,j] / sum over all j of w*[i,j]
 *     error   = |o - o*| / |o*|                     (Frobenius, all heads)
 *     tv_i    = 1/2 sum_j |w[i,j] - w*[i,j]|
 *     kl_i    = sum_j w[i,j] ln(w[i,j] / w*[i,j])
 *
 * w* and o* are those of the catalogue's baseline, run here on the same q, k,
 * v, position and scale; its weights are read some rows at a time, so a worker
 * holds some rows and nothing n x n exists.  Rows without a key do not count.
 *
 * Where the run weighs few cells, w* is read at these only: its rows sum to 1, so
 *     sum_j |w - w*| = sum over these of |w - w*| + 1 - sum over these of w*,
 * and keys without weight add nothing to KL.  The comparison then costs little
 * more than exact attention itself.
 *
 * A sample of rows costs its share of that: exact attention is computed for its rows only.
 * Per-row results are kept and summed in order: threads change no bit.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/study/row.h"
#include "core/rng.h"
#include "core/threads.h"
#include "profile/measure.h"
#include "profile/reference.h"
#include "profile/statistics.h"

#define ROWS_MOST 32 /* of an item of work; fewer where they are long */
#define LINES_BYTES (4 << 20) /* of a worker, if more than a row's */
#define LINES(rows) (2 * (rows) + 1) /* of exact weights and of the run's, and one of kept flags */
#define KEYS_AT_ONCE 256 /* read for all rows of an item while they are near */
#define FEW 4 /* at most one cell in so many: read one by one */
#define SAMPLE_STREAM 0x71726f7773 /* of draws */
#define CHOOSES_CELLS (CLASS_BASELINE | CLASS_FP | CLASS_LP)

typedef struct Row {
    double mass;            /* NaN: the row has no key */
    double variation;
    double kl;              /* NaN: none */
    const char *kl_lacks;   /* why; NULL: the row has no key, or there is one */
    OutputError output;     /* of o_i */
    bool        unknown;    /* exact attention's weights are NaN: infinity, a score too large */
} Row;

typedef struct Comparison {
    const Run  *run, *exact;    /* exact NULL: a sample of rows is compared */
    int64_t     sample;         /* rows of each head; 0: all */
    const ReferenceRows *rows_of; /* exact attention of a sample */
    const View *kept, *weights; /* NULL: not comparable */
    const View *exact_weights;
    const Pattern *cells;       /* that the run weighs; NULL: nearly all, or not known */
    bool        output;
    Row        *rows;       /* [h][n] */
    int64_t     each;       /* rows of an item, of one head */
    Quality    *by_head;    /* [h]; NULL: not wanted */
    float      *lines;      /* LINES(rows_read) of m cells for each worker */
    atomic_bool left_out;   /* some cell exact attention weighs is not kept */
    atomic_bool failed;     /* no memory for the cells of a row */
} Comparison;

/* ---- what can be compared --------------------------------------------------- */

const View *run_matrix(const Run *run, const char *name)
{
    const View *view = run_view(run, name);

    if (!view || view->rank < 2 || view_rows(view) != run->n || view_cols(view) != run->m)
        return NULL;
    return view_planes(view) == run->h || view_planes(view) == 1 ? view : NULL;
}

static bool comparable_output(const Run *run)
{
    const Tensor *o = &run->out;

    return o->data && o->dtype == DT_F32 && o->rank == 3 && tensor_contiguous(o) &&
           o->shape[0] == run->h && o->shape[1] == run->n && o->shape[2] == run->e;
}

/* ---- one row ---------------------------------------------------------------- */

static void read_row(const View *view, int64_t head, int64_t i, float *out)
{
    view_read(view, view_planes(view) > 1 ? head : 0, i, 0, view_cols(view), 1, out);
}

static const float *output_row(const Run *run, int64_t head, int64_t i)
{
    return tensor_f32(&run->out) + (head * run->n + i) * run->e;
}

static void compare_output(const Comparison *c, int64_t head, int64_t i, Row *row)
{
    const float *o = output_row(c->run, head, i), *exact = output_row(c->exact, head, i);

    for (int64_t p = 0; p < c->run->e; p++)
        output_error_add(&row->output, (double)o[p], (double)exact[p]);
}

/* The mass of exact attention on the kept cells. */
static void compare_kept(Comparison *c, const float *exact, double total, const float *kept,
                         Row *row)
{
    bool   left_out = false;
    double mass = kept_mass(exact, kept, c->run->m, &left_out);

    row->mass = mass / total;
    if (left_out)
        atomic_store(&c->left_out, true);
}

/* Rows of m cells, for one worker. */
typedef struct Lines {
    float *exact, *own, *kept; /* own and exact: of all rows of an item */
} Lines;

/* Row i of a head, row x of the item. */
static void compare_weights(Comparison *c, int64_t head, int64_t i, int64_t x, const Lines *lines,
                            Row *row)
{
    int64_t      m = c->run->m;
    const float *exact = lines->exact + x * m, *own = lines->own + x * m;
    double       total = row_sum(exact, m);

    row->unknown = isnan(total);
    if (!(total > 0))
        return;
    if (c->kept) {
        read_row(c->kept, head, i, lines->kept);
        compare_kept(c, exact, total, lines->kept, row);
    }
    if (c->weights) {
        row->variation = row_distance(own, exact, 1 / total, m) / 2;
        row->kl = row_divergence(own, row_sum(own, m), exact, total, m, &row->kl_lacks);
    }
}

/* ---- the cells that a run weighs ---------------------------------------------------- */

/* Cells of one row, side by side in the lines. */
typedef struct Weighed {
    PatternRow own, exact; /* the run's, and those exact attention may weigh */
    int64_t    count;
    bool       left_out;   /* exact attention may weigh others, too */
} Weighed;

static int64_t plane_of(const View *view, int64_t head)
{
    return view_planes(view) > 1 ? head : 0;
}

/* `inside`: all cells of the run are in the view's support. */
static void read_run(const View *view, int64_t head, int64_t i, PatternRun run, bool inside,
                     float *out)
{
    if (inside && view->read && !view->tensor.data)
        view->read(view, plane_of(view, head), i, run.start, run.count, run.step, out);
    else
        view_read(view, plane_of(view, head), i, run.start, run.count, run.step, out);
}

/* Whether the row is one range of keys that holds the run. */
static bool holds_run(const PatternRow *row, PatternRun run)
{
    const PatternRun *all = row->runs;

    return row->count == 1 && all->step == 1 && run.start >= all->start &&
           run.start + (run.count - 1) * run.step < all->start + all->count;
}

/* False: no memory. */
static bool read_cells(const Comparison *c, int64_t head, int64_t i, const Lines *lines,
                       Weighed *w)
{
    const View *exact = c->exact_weights;
    bool        all = !exact->support;

    pattern_row(c->cells, pattern_per_head(c->cells) ? head : 0, i, &w->own);
    if (!all)
        pattern_row(exact->support, pattern_per_head(exact->support) ? head : 0, i, &w->exact);
    w->count = 0;
    if (w->own.failed || w->exact.failed)
        return false;
    for (int64_t x = 0; x < w->own.count; x++) {
        PatternRun run = w->own.runs[x];

        read_run(exact, head, i, run, all || holds_run(&w->exact, run), lines->exact + w->count);
        if (c->weights)
            read_run(c->weights, head, i, run, true, lines->own + w->count);
        w->count += run.count;
    }
    w->left_out = w->count < (all ? c->run->m : pattern_row_cells(&w->exact));
    return true;
}

/* False: nothing in these cells says that the row has a key. */
static bool compare_cells(Comparison *c, int64_t head, int64_t i, const Lines *lines, Weighed *w,
                          Row *row)
{
    bool   read = read_cells(c, head, i, lines, w);
    double mass = read ? row_sum(lines->exact, w->count) : 0;

    if (!(mass > 0))
        return false;
    if (c->kept)
        row->mass = fmin(mass, 1);
    if (c->kept && w->left_out)
        atomic_store(&c->left_out, true);
    if (c->weights) {
        row->variation = (row_distance(lines->own, lines->exact, 1, w->count) +
                          fmax(1 - mass, 0)) / 2;
        row->kl = row_divergence(lines->own, row_sum(lines->own, w->count), lines->exact, 1,
                                 w->count, &row->kl_lacks);
    }
    return true;
}

/* ---- rows of an item ---------------------------------------------------------------- */

/* Reads KEYS_AT_ONCE keys of all rows at a time, while these keys are in the cache. */
static void read_by_keys(const View *view, int64_t head, int64_t from, int64_t rows, float *lines)
{
    int64_t m = view_cols(view);

    for (int64_t j = 0; j < m; j += KEYS_AT_ONCE)
        for (int64_t x = 0; x < rows; x++)
            view_read(view, view_planes(view) > 1 ? head : 0, from + x, j,
                      m - j < KEYS_AT_ONCE ? m - j : KEYS_AT_ONCE, 1, lines + x * m + j);
}

static void read_weight_lines(const Comparison *c, int64_t head, int64_t from, int64_t rows,
                              const Lines *lines)
{
    const View *own = c->weights;

    read_by_keys(c->exact_weights, head, from, rows, lines->exact);
    if (own)
        view_read_rows(own, view_planes(own) > 1 ? head : 0, from, rows, 0, c->run->m, lines->own,
                       c->run->m);
}

static bool comparison_cancelled(const Comparison *c)
{
    return c->run->spec.cancel && atomic_load(c->run->spec.cancel);
}

/* Together, by one worker. */
static int64_t rows_read(const Comparison *c)
{
    return c->cells || c->sample ? 1 : c->each;
}

static Lines lines_of(const Comparison *c, int worker)
{
    int64_t m = c->run->m, rows = rows_read(c) * m;
    float  *at = c->lines + LINES(rows_read(c)) * m * worker;

    return (Lines){ .exact = at, .own = at + rows, .kept = at + 2 * rows };
}

/* ---- a sample of rows ---------------------------------------------------------------- */

#define CHANNELS 64 /* of a value, summed at once */

/* The output of exact attention is summed from its weights. */
static void compare_mixed(const Comparison *c, int64_t head, int64_t i, const float *weights,
                          Row *row)
{
    const Tensor *v = &c->rows_of->in.v;
    const float  *o = output_row(c->run, head, i);
    int64_t       heads = c->run->h, e = c->run->e;

    for (int64_t from = 0; from < e; from += CHANNELS) {
        int64_t count = e - from < CHANNELS ? e - from : CHANNELS;
        double  exact[CHANNELS] = { 0 };

        for (int64_t j = 0; j < c->run->m; j++) {
            const float *value = tensor_row_f32(v, head, heads, j) + from;

            for (int64_t p = 0; p < count && weights[j] > 0; p++)
                exact[p] += (double)weights[j] * (double)value[p];
        }
        for (int64_t p = 0; p < count; p++)
            output_error_add(&row->output, (double)o[from + p], exact[p]);
    }
}

/* One row in each of `sample` ranges of nearly equal length. */
static int64_t drawn_row(const Comparison *c, int64_t item)
{
    int64_t n = c->run->n, range = item % c->sample;
    int64_t first = range * n / c->sample, end = (range + 1) * n / c->sample;
    uint64_t draw = rng_at(c->run->spec.seed, SAMPLE_STREAM, (uint64_t)item);

    return first + (int64_t)(draw % (uint64_t)(end - first));
}

static void compare_drawn(void *context, int64_t item, int worker)
{
    Comparison *c = context;
    int64_t     head = item / c->sample, i = drawn_row(c, item);
    Lines       lines = lines_of(c, worker);
    Row        *row = &c->rows[head * c->run->n + i];
    PatternRow  cells = { 0 };

    if (!comparison_cancelled(c) && reference_row(c->rows_of, head, i, &cells, lines.exact)) {
        if (c->output && isnan(row_sum(lines.exact, c->run->m)))
            output_error_add(&row->output, (double)NAN, (double)NAN);
        else if (c->output)
            compare_mixed(c, head, i, lines.exact, row);
        if (c->weights)
            view_read_rows(c->weights, plane_of(c->weights, head), i, 1, 0, c->run->m, lines.own,
                           c->run->m);
        if (c->kept || c->weights)
            compare_weights(c, head, i, 0, &lines, row);
    }
    if (cells.failed)
        atomic_store(&c->failed, true);
    pattern_row_free(&cells);
}

/* ---- rows of an item ---------------------------------------------------------------- */

static int64_t items_of_head(const Comparison *c)
{
    return (c->run->n + c->each - 1) / c->each;
}

/* One row of few cells; of those that say nothing, all cells are read. */
static void compare_few(Comparison *c, int64_t head, int64_t i, const Lines *lines, Weighed *w,
                        Row *row)
{
    if (compare_cells(c, head, i, lines, w, row))
        return;
    read_weight_lines(c, head, i, 1, lines);
    compare_weights(c, head, i, 0, lines, row);
}

static void compare_rows(void *context, int64_t item, int worker)
{
    Comparison *c = context;
    int64_t     n = c->run->n, head = item / items_of_head(c);
    int64_t     from = item % items_of_head(c) * c->each;
    int64_t     rows = n - from < c->each ? n - from : c->each;
    Lines       lines = c->lines ? lines_of(c, worker) : (Lines){ 0 };
    Weighed     weighed = { .count = 0 };

    if (c->lines && !c->cells && !comparison_cancelled(c))
        read_weight_lines(c, head, from, rows, &lines);
    for (int64_t x = 0; x < rows && !comparison_cancelled(c); x++) {
        Row *row = &c->rows[head * n + from + x];

        if (c->output)
            compare_output(c, head, from + x, row);
        if (c->lines && c->cells)
            compare_few(c, head, from + x, &lines, &weighed, row);
        else if (c->lines)
            compare_weights(c, head, from + x, x, &lines, row);
    }
    pattern_row_free(&weighed.own);
    pattern_row_free(&weighed.exact);
}

/* ---- all rows --------------------------------------------------------------- */

/* Rows [first, last) of all heads, one after the other. */
typedef struct RowRange {
    int64_t first, last;
} RowRange;

static void mass_summary(const Comparison *c, RowRange of, Quality *out, double *values)
{
    int    count = 0;
    double sum = 0;

    for (int64_t r = of.first; r < of.last; r++)
        if (!isnan(c->rows[r].mass)) {
            sum += c->rows[r].mass;
            values[count++] = c->rows[r].mass;
        }
    if (!count)
        return;
    out->mass_mean = number_of(sum / count);
    out->mass_p5 = number_of(stats_quantile(values, count, 0.05));
    out->mass_min = number_of(stats_quantile(values, count, 0));
}

static void variation_summary(const Comparison *c, RowRange of, Quality *out)
{
    double  sum = 0;
    int64_t count = 0;

    for (int64_t r = of.first; r < of.last; r++)
        if (!isnan(c->rows[r].variation)) {
            sum += c->rows[r].variation;
            count++;
        }
    if (count)
        out->total_variation = number_of(sum / (double)count);
}

static void kl_summary(const Comparison *c, RowRange of, Quality *out)
{
    double  sum = 0;
    int64_t count = 0;

    for (int64_t r = of.first; r < of.last && !out->kl_lacks; r++) {
        out->kl_lacks = c->rows[r].kl_lacks;
        if (!isnan(c->rows[r].kl)) {
            sum += c->rows[r].kl;
            count++;
        }
    }
    if (count && !out->kl_lacks)
        out->kl = number_of(sum / (double)count);
}

static void error_summary(const Comparison *c, RowRange of, Quality *out)
{
    double error2 = 0, norm2 = 0;

    for (int64_t r = of.first; r < of.last; r++) {
        error2 += c->rows[r].output.error2;
        norm2 += c->rows[r].output.norm2;
    }
    if (norm2 > 0 && isfinite(error2) && isfinite(norm2)) /* else an output is not finite */
        out->output_error = number_of(sqrt(error2 / norm2));
}

/* Half of the 95 % interval of a mean. */
static Number margin_of(double sum, double squares, int64_t count)
{
    double variance = count > 1 ? (squares - sum * sum / (double)count) / (double)(count - 1) : 0;

    if (count < 2)
        return NUMBER_NONE;
    return number_of(stats_student_95((int)(count - 1)) * sqrt(fmax(variance, 0) / (double)count));
}

/* The number of a row, of which a sample has the mean; NaN: none. */
typedef double (*RowNumber)(const Row *row, double ratio);

static double row_mass(const Row *row, double ratio)
{
    (void)ratio;
    return row->mass;
}

static double row_variation(const Row *row, double ratio)
{
    (void)ratio;
    return row->variation;
}

static double row_kl(const Row *row, double ratio)
{
    (void)ratio;
    return row->kl;
}

/* What the row adds to a ratio of two sums: its interval is that of the mean of these. */
static double row_excess(const Row *row, double ratio)
{
    return row->output.norm2 > 0 ? row->output.error2 - ratio * row->output.norm2 : (double)NAN;
}

static Number sample_margin(const Comparison *c, RowRange of, RowNumber number, double ratio)
{
    double  sum = 0, squares = 0;
    int64_t count = 0;

    for (int64_t r = of.first; r < of.last; r++) {
        double x = number(&c->rows[r], ratio);

        if (isnan(x))
            continue;
        sum += x;
        squares += x * x;
        count++;
    }
    return margin_of(sum, squares, count);
}

/* The error is the root of a ratio of means, so its margin is that of the ratio by the slope of
 * the root. */
static Number error_margin(const Comparison *c, RowRange of, double error)
{
    double norm2 = 0;
    int64_t count = 0;
    Number  excess = sample_margin(c, of, row_excess, error * error);

    for (int64_t r = of.first; r < of.last; r++)
        if (c->rows[r].output.norm2 > 0) {
            norm2 += c->rows[r].output.norm2;
            count++;
        }
    if (!excess.valid || !(error > 0))
        return excess;
    return number_of(excess.value / (norm2 / (double)count) / (2 * error));
}

/* A sample has no least mass and no worst rows. */
static void sample_summary(const Comparison *c, RowRange of, Quality *out)
{
    out->rows = c->sample;
    out->mass_min = NUMBER_NONE;
    if (out->mass_mean.valid)
        out->mass_margin = sample_margin(c, of, row_mass, 0);
    if (out->total_variation.valid)
        out->variation_margin = sample_margin(c, of, row_variation, 0);
    if (out->kl.valid)
        out->kl_margin = sample_margin(c, of, row_kl, 0);
    if (out->output_error.valid)
        out->output_error_margin = error_margin(c, of, out->output_error.value);
}

/* How bad a row is: mass lost, else the row's output error, else variation. */
static double badness(const Row *row, const Quality *q)
{
    if (q->mass_mean.valid)
        return -row->mass;
    if (q->output_error.valid)
        return row->output.norm2 > 0 ? sqrt(row->output.error2 / row->output.norm2) : (double)NAN;
    return row->variation;
}

/* Inserts into the sorted list of the worst; of equal ones the earlier stays first. */
static void note_worst(Quality *out, WorstQuery query, double bad, double *kept)
{
    int at = out->worst_count;

    if (at == WORST_QUERIES && !(bad > kept[at - 1]))
        return;
    if (at < WORST_QUERIES)
        out->worst_count++;
    else
        at--;
    for (; at > 0 && bad > kept[at - 1]; at--) {
        kept[at] = kept[at - 1];
        out->worst[at] = out->worst[at - 1];
    }
    kept[at] = bad;
    out->worst[at] = query;
}

static void find_worst(const Comparison *c, RowRange of, Quality *out)
{
    int64_t n = c->run->n;
    double  kept[WORST_QUERIES];

    for (int64_t r = of.first; r < of.last; r++) {
        double bad = badness(&c->rows[r], out);

        if (!isnan(bad))
            note_worst(out, (WorstQuery){ .query = r % n, .head = r / n, .value = fabs(bad) }, bad,
                       kept);
    }
    out->worst_query = out->worst_count ? out->worst[0].query : -1;
    out->worst_head = out->worst_count ? out->worst[0].head : -1;
}

static bool no_memory(const Run *run, Error *err)
{
    return error_set(err, ERR_NOMEM, "not enough memory for the comparison of %lld rows",
                     (long long)(run->h * run->n));
}

/* A low-rank or kernel mechanism sees every key. */
static bool chooses_cells(const Mechanism *m)
{
    return m->classes & CHOOSES_CELLS && !(m->classes & (CLASS_LR | CLASS_KR));
}

static void summarise(Comparison *c, RowRange of, double *values, Quality *out)
{
    *out = (Quality){ .worst_query = -1, .worst_head = -1 };
    for (int64_t r = of.first; r < of.last; r++)
        out->unknown_rows += c->rows[r].unknown;
    if (c->kept && (atomic_load(&c->left_out) || chooses_cells(c->run->mechanism)))
        mass_summary(c, of, out, values);
    if (c->weights) {
        variation_summary(c, of, out);
        kl_summary(c, of, out);
    } else {
        out->kl_lacks = "it shows no weights of queries on keys";
    }
    if (c->output)
        error_summary(c, of, out);
    if (c->sample)
        sample_summary(c, of, out);
    else
        find_worst(c, of, out);
}

static bool compare_all(Comparison *c, Quality *out, Error *err)
{
    const Run *run = c->run;
    int64_t    n = run->n, rows = run->h * n;
    double    *values;

    for (int64_t r = 0; r < rows; r++)
        c->rows[r] = (Row){ .mass = (double)NAN, .variation = (double)NAN, .kl = (double)NAN };
    if (c->sample)
        threads_run(run->threads, run->h * c->sample, compare_drawn, c);
    else
        threads_run(run->threads, run->h * items_of_head(c), compare_rows, c);
    if (comparison_cancelled(c))
        return error_set(err, ERR_CANCELLED, "interrupted");
    if (atomic_load(&c->failed))
        return no_memory(run, err);
    values = calloc((size_t)rows, sizeof(*values));
    if (!values)
        return no_memory(run, err);
    summarise(c, (RowRange){ 0, rows }, values, out);
    for (int64_t head = 0; c->by_head && head < run->h; head++)
        summarise(c, (RowRange){ head * n, (head + 1) * n }, values, &c->by_head[head]);
    free(values);
    return true;
}

/* Rows of an item share the reads of keys. */
static int64_t rows_of_item(int64_t m)
{
    int64_t rows = ROWS_MOST;

    while (rows > 1 && LINES(rows) * m * (int64_t)sizeof(float) > LINES_BYTES)
        rows /= 2;
    return rows;
}

/* NULL: the run weighs many cells, or does not say which. */
static const Pattern *few_cells(const Comparison *c)
{
    const View    *view = c->weights ? c->weights : c->kept;
    const Pattern *cells = view ? view->support : NULL;
    int64_t        count;

    if (!cells || (c->kept && (c->kept->support != cells || c->kept->read ||
                               c->kept->tensor.data)))
        return NULL;
    count = pattern_count(cells);
    return count >= 0 && count <= c->run->h * c->run->n * c->run->m / FEW ? cells : NULL;
}

/* Memory for the rows, and for lines of weights if any are read. */
static bool compare_in_memory(Comparison *c, bool lines, Quality *out, Error *err)
{
    const Run *run = c->run;
    bool       ok;

    c->each = c->cells ? ROWS_MOST : rows_of_item(run->m);
    c->rows = calloc((size_t)(run->h * run->n), sizeof(*c->rows));
    c->lines = lines ? calloc((size_t)threads_count(run->threads),
                              (size_t)(LINES(rows_read(c)) * run->m) * sizeof(*c->lines)) : NULL;
    ok = c->rows && (c->lines || !lines) ? compare_all(c, out, err) : no_memory(run, err);
    free(c->rows);
    free(c->lines);
    return ok;
}

static bool compare_with(Comparison *c, Quality *out, Error *err)
{
    bool wanted = c->kept || c->weights;

    c->exact_weights = run_matrix(c->exact, "weights");
    if (wanted && !c->exact_weights)
        return error_set(err, ERR_INTERNAL, "the baseline %s shows no weights",
                         c->exact->mechanism->id);
    c->output = c->output && comparable_output(c->exact);
    c->cells = few_cells(c);
    return compare_in_memory(c, wanted, out, err);
}

static bool compare_sample(Comparison *c, Quality *out, Error *err)
{
    ReferenceRows rows;
    bool          ok;

    ok = reference_rows_new(c->run, c->run->threads, c->run->spec.cancel, &rows, err);
    c->rows_of = &rows;
    ok = ok && compare_in_memory(c, true, out, err);
    reference_rows_free(&rows);
    return ok;
}

static bool compare_exactly(Comparison *c, Quality *out, Error *err)
{
    Reference exact = { 0 };
    bool      ok;

    ok = reference_new(c->run, c->run->threads, c->run->spec.cancel, &exact, err);
    c->exact = exact.run;
    ok = ok && compare_with(c, out, err);
    reference_free(&exact);
    return ok;
}

const char *quality_lacks(const Run *run)
{
    if (!reference_is_possible(run))
        return "it reads x, not q, k, v";
    if (run_matrix(run, "connectivity") || run_matrix(run, "weights") || comparable_output(run))
        return NULL;
    return run->mechanism->own_rows ? "its output has rows of its own"
                                    : "its output has another shape";
}

bool quality_measure(const Run *run, int64_t rows, Quality *out, Quality *by_head, Error *err)
{
    Comparison c = { .run = run, .by_head = by_head, .kept = run_matrix(run, "connectivity"),
                     .weights = run_matrix(run, "weights"), .output = comparable_output(run),
                     .sample = rows < run->n ? rows : 0 };

    *out = (Quality){ .worst_query = -1, .worst_head = -1 };
    if (quality_lacks(run))
        return true;
    return (c.sample ? compare_sample(&c, out, err) : compare_exactly(&c, out, err)) ||
           error_prefix(err, "quality of %s", run->mechanism->id);
}

/* ---- the spread of quality over seeds ----------------------------------------------------- */

bool run_is_drawn(const Run *run)
{
    for (int i = 0; i < run->tensor_count; i++)
        if (run->tensors[i].origin != ORIGIN_FILE) /* a fit starts from a drawn tensor */
            return true;
    return false;
}

/* One seed without the number makes the band invalid. */
static void band_add(SeedBand *band, int before, Number value)
{
    if (!before) {
        *band = (SeedBand){ value, value, value };
        return;
    }
    if (!value.valid || !band->mean.valid) {
        *band = (SeedBand){ .mean = NUMBER_NONE, .min = NUMBER_NONE, .max = NUMBER_NONE };
        return;
    }
    band->mean.value += (value.value - band->mean.value) / (before + 1);
    band->min.value = fmin(band->min.value, value.value);
    band->max.value = fmax(band->max.value, value.value);
}

static double row_value(Number number)
{
    return number.valid ? number.value : (double)NAN;
}

void seeds_add(SeedSpread *spread, const Quality *quality)
{
    band_add(&spread->mass, spread->count, quality->mass_mean);
    band_add(&spread->output_error, spread->count, quality->output_error);
    if (spread->kept < SEED_DRAWS_MOST) {
        spread->mass_draws[spread->kept] = row_value(quality->mass_mean);
        spread->output_error_draws[spread->kept++] = row_value(quality->output_error);
    }
    spread->count++;
}
