/* position_terms.c -- see position_terms.h.
 *
 * Angles are taken in double: at position 65536 a float angle would be wrong in
 * the third digit of its sine.  Each row is one function of its position, so
 * the number of threads changes nothing.
 */
#include "attn/position_terms.h"

#include <math.h>
#include <string.h>

#define BLOCK 64 /* rows a worker takes at a time */

Tensor position_copy(Run *r, Tensor x)
{
    Tensor y = run_tensor3(r, DT_F32, x.shape[0], x.shape[1], x.shape[2]);
    size_t row_bytes = (size_t)x.shape[2] * sizeof(float);

    if (run_failed(r))
        return y;
    for (int64_t head = 0; head < x.shape[0]; head++)
        for (int64_t i = 0; i < x.shape[1]; i++)
            memcpy(tensor_f32(&y) + (head * x.shape[1] + i) * x.shape[2],
                   tensor_f32(&x) + head * x.stride[0] + i * x.stride[1], row_bytes);
    op_traffic(r, (double)tensor_bytes(&y), (double)tensor_bytes(&y));
    return y;
}

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

typedef struct Sinusoid {
    Tensor        y;
    const double *period;
    int64_t       first;
    double        amplitude;
    bool          concat;
} Sinusoid;

static void sinusoid_row(const void *context, int64_t i)
{
    const Sinusoid *s = context;
    int64_t         width = s->y.shape[2], half = (width + 1) / 2;

    for (int64_t t = 0; t < half; t++) {
        double  angle = (double)(s->first + i) / s->period[t];
        double  sine = s->amplitude * sin(angle), cosine = s->amplitude * cos(angle);
        int64_t at = s->concat ? t : 2 * t, next = s->concat ? half + t : 2 * t + 1;

        for (int64_t head = 0; head < s->y.shape[0]; head++) {
            float *row = tensor_f32(&s->y) + head * s->y.stride[0] + i * s->y.stride[1];

            row[at] = (float)((double)row[at] + sine);
            if (next < width)
                row[next] = (float)((double)row[next] + cosine);
        }
    }
}

void position_sinusoid(Run *r, Tensor y, int64_t first, double base, bool concat,
                       double amplitude)
{
    int64_t  width = y.shape[2];
    Sinusoid job = { .y = y, .first = first, .amplitude = amplitude, .concat = concat };

    job.period = position_periods(r, base, width, (width + 1) / 2);
    position_rows(r, y.shape[1], sinusoid_row, &job);
}

/* ---- views ------------------------------------------------------------------ */

/* A causal run has no scores ahead: pictures stop at the diagonal. */
static void show_past(Run *r, View *view, const AttendInput *in)
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
    show_past(r, view_reader(r, name, VIEW_SIGNED, DT_F32, term_read, term, NULL), with);
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
    show_past(r, view, in);
}
