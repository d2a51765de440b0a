/* terms.c -- see terms.h.
 *
 * Angles are taken in double: at position 65536 a float angle would be wrong in
 * the third digit of its sine.  Each row is one function of its position, so
 * the number of threads changes nothing.
 */
#include "attn/position/terms.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define BLOCK 64 /* rows a worker takes at a time */

double *position_periods(Run *r, double base, int64_t width, int64_t count)
{
    double *period = run_alloc(r, count, sizeof(*period));

    for (int64_t t = 0; period && t < count; t++)
        period[t] = pow(base, 2.0 * (double)t / (double)width);
    return period;
}

typedef struct Rows {
    PositionRowFn fn;
    const void   *context;
    int64_t       rows;
} Rows;

static void rows_block(void *context, int64_t item, int worker)
{
    const Rows *job = context;
    int64_t     end = (item + 1) * BLOCK < job->rows ? (item + 1) * BLOCK : job->rows;

    (void)worker;
    for (int64_t i = item * BLOCK; i < end; i++)
        job->fn(job->context, i);
}

void position_rows(Run *r, int64_t rows, PositionRowFn fn, const void *context)
{
    Rows job = { .fn = fn, .context = context, .rows = rows };

    if (!run_failed(r))
        threads_run(r->threads, (rows + BLOCK - 1) / BLOCK, rows_block, &job);
}

typedef struct SinusoidRows {
    const Sinusoids *in;
    const double    *period;
    float           *y;
} SinusoidRows;

static void sinusoid_row(const void *context, int64_t i)
{
    const SinusoidRows *s = context;
    int64_t             width = s->in->width, half = (width + 1) / 2;
    float              *row = s->y + i * width;

    for (int64_t t = 0; t < half; t++) {
        double  angle = (double)(s->in->first + (s->in->at ? s->in->at[i] : i)) / s->period[t];
        int64_t at = s->in->concat ? t : 2 * t, next = s->in->concat ? half + t : 2 * t + 1;

        row[at] = (float)(s->in->amplitude * sin(angle));
        if (next < width)
            row[next] = (float)(s->in->amplitude * cos(angle));
    }
}

Tensor position_sinusoids(Run *r, const Sinusoids *in)
{
    Tensor       y = run_tensor3(r, DT_F32, 1, in->rows, in->width);
    SinusoidRows job = { .in = in, .y = tensor_f32(&y) };

    run_prepare(r, true);
    job.period = position_periods(r, in->base, in->width, (in->width + 1) / 2);
    position_rows(r, in->rows, sinusoid_row, &job);
    op_toward(r, y.data, tensor_bytes(&y));
    run_prepare(r, false);
    return y;
}

Tensor position_added(Run *r, Tensor x, Tensor by)
{
    Tensor y = run_tensor3(r, DT_F32, x.shape[0], x.shape[1], x.shape[2]);

    op_entries_of(r, x, by, ENTRY_SUM, 1, y);
    op_charge(r, FLOP_POSITION, (double)tensor_count(&y));
    return y;
}

int32_t *position_index(Run *r, const AttendInput *in, PositionIndexFn fn, const void *context)
{
    int64_t  entries = position_entries(in);
    int32_t *index = run_alloc(r, entries, sizeof(*index));

    run_prepare(r, true);
    for (int64_t x = 0; index && x < entries; x++)
        index[x] = (int32_t)fn(context, position_distance(r, in, x));
    op_toward(r, index, entries * (int64_t)sizeof(*index));
    run_prepare(r, false);
    return index;
}

/* ---- distances that are needed ---------------------------------------------- */

/* mark[x]: how many more rows need entry x than entry x - 1; steps leave gaps, so they are marked
 * one by one. */
static void mark_run(int32_t *mark, int64_t i, int64_t m, PatternRun run)
{
    int64_t most = i - run.start + m - 1;

    if (run.step == 1) {
        mark[most - run.count + 1]++;
        mark[most + 1]--;
        return;
    }
    for (int64_t t = 0; t < run.count; t++) {
        mark[most - t * run.step]++;
        mark[most - t * run.step + 1]--;
    }
}

static void mark_cells(Run *r, const Pattern *cells, int32_t *mark)
{
    int64_t    heads = pattern_per_head(cells) ? pattern_heads(cells) : 1;
    PatternRow row = { 0 };

    for (int64_t t = 0; t < heads; t++)
        for (int64_t i = 0; i < pattern_queries(cells) && !row.failed; i++) {
            pattern_row(cells, t, i, &row);
            for (int64_t k = 0; k < row.count && !row.failed; k++)
                mark_run(mark, i, pattern_keys(cells), row.runs[k]);
        }
    if (row.failed)
        run_fail(r, ERR_NOMEM, "%s: not enough memory for the distances", r->mechanism->id);
    pattern_row_free(&row);
}

static void list_distances(Distances *d, const int32_t *mark, int64_t entries)
{
    int64_t rows = 0;

    for (int64_t x = 0; x < entries; x++) {
        rows += mark[x];
        d->row[x] = rows > 0 ? (int32_t)d->count : 0;
        if (rows > 0)
            d->entry[d->count++] = (int32_t)x;
    }
    d->none = !d->count;
    if (d->none)
        d->entry[d->count++] = 0;
}

Distances position_distances(Run *r, const AttendInput *in)
{
    int64_t        entries = position_entries(in);
    const Pattern *cells = r->position_cells;
    int32_t       *mark = run_alloc(r, entries + 1, sizeof(*mark));
    Distances      d = { .row = run_alloc(r, entries, sizeof(*d.row)),
                         .entry = run_alloc(r, entries, sizeof(*d.entry)) };

    run_prepare(r, true);
    if (mark)
        memset(mark, 0, (size_t)(entries + 1) * sizeof(*mark));
    if (mark && cells && pattern_queries(cells) == in->q.shape[1] &&
        pattern_keys(cells) == in->k.shape[1])
        mark_cells(r, cells, mark);
    else if (mark)
        mark[0] = 1;
    if (!run_failed(r)) {
        list_distances(&d, mark, entries);
        op_toward(r, d.row, entries * (int64_t)sizeof(*d.row));
    }
    run_prepare(r, false);
    return d;
}

/* ---- views ------------------------------------------------------------------ */

/* A causal run has no scores above the diagonal, so the view shows none. */
static void terms_show_past(Run *r, View *view, const AttendInput *in)
{
    PatternShape shape = { .heads = r->h, .n = in->q.shape[1], .m = in->k.shape[1],
                           .q_offset = r->q_offset };

    if (view && r->causal)
        view->shown = pattern_causal(r->arena, shape);
}

typedef struct Term {
    AttendInput with, without;
    bool        differs;
    int64_t     heads;
} Term;

static void term_read(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    const Term *t = view->context;

    for (int64_t c = 0; c < count; c++) {
        int64_t j = start + c * step;
        double  score = attend_score(&t->with, t->heads, head, i, j);

        out[c] = (float)(t->differs ? score - attend_score(&t->without, t->heads, head, i, j)
                                    : score);
    }
}

void position_show_term(Run *r, const char *name, const AttendInput *with,
                        const AttendInput *without)
{
    Term *term;

    if (!run_wants_views(r) || run_view(r, name))
        return;
    term = run_alloc(r, 1, sizeof(*term));
    if (!term)
        return;
    *term = (Term){ .with = *with, .differs = without != NULL, .heads = r->h };
    if (without)
        term->without = *without;
    terms_show_past(r, view_reader(r, name, VIEW_SIGNED, DT_F32, term_read, term, NULL), with);
}

typedef struct Buckets {
    const int32_t *at;
    int64_t        m;
} Buckets;

static void buckets_read(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const Buckets *b = view->context;

    (void)head;
    for (int64_t c = 0; c < count; c++)
        out[c] = (float)b->at[i - (start + c * step) + b->m - 1];
}

void position_show_buckets(Run *r, const char *name, const AttendInput *in, const int32_t *at)
{
    int64_t  shape[] = { in->q.shape[1], in->k.shape[1] };
    Buckets *b;
    View    *view;

    if (!run_wants_views(r) || run_view(r, name))
        return;
    b = run_alloc(r, 1, sizeof(*b));
    view = b ? view_add(r, name, VIEW_BUCKETS, DT_I32, 2, shape) : NULL;
    if (!view)
        return;
    *b = (Buckets){ .at = at, .m = shape[1] };
    view->read = buckets_read;
    view->context = b;
    terms_show_past(r, view, in);
}
