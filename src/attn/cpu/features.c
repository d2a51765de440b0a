/* features.c -- feature maps of kernel attention (spec: performer).
 *
 *     x' = input_scale x,  u_r = w_r . x',  s = |x'|^2 / 2
 *     positive    M^-1/2   (exp(u_r - s - c) + eps)
 *     hyperbolic  (2M)^-1/2 (exp(+-u_r - s - c) + eps)
 *     trig        M^-1/2   (cos u_r, sin u_r) exp(s - c)
 *     relu        max(u_r, 0) + eps, or of x' itself
 *     sin cos     amplitude (sin u_r, cos u_r), of x' or of x / (|x| + norm_eps)
 *     arc cos     amplitude max(u_r, 0)
 *
 * c: for a query the maximum of its own (+-)u; for the keys of a head the
 * maximum over all of them; trig: the maximum of s over the head's rows.
 */
#include <math.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "core/threads.h"

#define ROWS 128

typedef struct Job {
    Run              *run;
    const Kernel     *kernel;
    const Tensor     *x, *w;
    const FeatureMap *map;
    Tensor           *y;
    int64_t           h, n, d, m, f, blocks;
    bool              head_top;  /* c is one number per head */
    bool              projected; /* y holds u, from the first pass */
    double           *top;       /* [h][blocks], then [h][0] for the head */
} Job;

static const float *features_row(const Job *job, int64_t head, int64_t i)
{
    return tensor_row_f32(job->x, head, job->h, i);
}

static float *features_out(const Job *job, int64_t head, int64_t i)
{
    return tensor_f32(job->y) + (head * job->n + i) * job->f;
}

static double half_square(const Job *job, int64_t head, int64_t i)
{
    double sum = job->kernel->squares(features_row(job, head, i), job->d);

    return sum * job->map->input_scale * job->map->input_scale / 2;
}

static void project(const Job *job, int64_t head, int64_t first, int64_t rows)
{
    Matrix x = { features_row(job, head, first), job->x->stride[1], false };
    Matrix w = { tensor_head(job->w, head, job->h), job->w->stride[1], true };

    cpu_sgemm(x, w, rows, job->m, job->d, (float)job->map->input_scale, 0,
              features_out(job, head, first), job->f);
}

static double largest_of_head(const Job *job, const float *u)
{
    float top = job->kernel->largest(u, job->m, 1);

    if (job->map->kind == FEATURE_HYPERBOLIC)
        top = fmaxf(top, job->kernel->largest(u, job->m, -1));
    return (double)top;
}

static void exponentials(const Job *job, int64_t head, int64_t i, double c)
{
    const FeatureMap *map = job->map;
    float            *y = features_out(job, head, i);
    double            shift = (half_square(job, head, i) + c) * LOG2_E;
    /* A factor undoes the rounding of the shift to float.  It stays a float, so that nothing times
     * it is nothing where the shift is in the thousands of millions. */
    float             mend = (float)exp2(fmin(fmax((double)(float)shift - shift, -126), 126));
    float             norm = (float)(1 / sqrt((double)job->f)), eps = (float)map->eps;

    for (int64_t x = job->m; x < job->f; x++)
        y[x] = -y[x - job->m];
    job->kernel->exp2(y, job->f, (float)LOG2_E, (float)shift);
    job->kernel->line(y, job->f, mend * norm, eps * norm);
}

static void waves(const Job *job, int64_t head, int64_t i, double c)
{
    float *y = features_out(job, head, i);
    float  size = (float)(exp(half_square(job, head, i) - c) / sqrt((double)job->m));

    job->kernel->float_waves(y, job->m, size, y + job->m, y);
}

/* The projection of a row, scaled as if the row had unit length. */
static void shorten(const Job *job, int64_t head, int64_t i)
{
    double length = sqrt(job->kernel->squares(features_row(job, head, i), job->d));
    double factor = 1 / (length + job->map->norm_eps);
    float *y = features_out(job, head, i);

    /* Not finite: a zero vector and norm_eps = 0. */
    job->kernel->scale(y, job->m, isfinite(factor) ? (float)factor : 0.0f, y);
}

static void amplify(const Job *job, int64_t head, int64_t i)
{
    float *y = features_out(job, head, i), size = (float)job->map->amplitude;

    if (job->map->unit)
        shorten(job, head, i);
    if (job->map->kind == FEATURE_SIN_COS)
        job->kernel->float_waves(y, job->m, size, y, y + job->m);
    for (int64_t x = 0; x < job->m && job->map->kind == FEATURE_ARC_COS; x++)
        y[x] = y[x] <= 0 ? 0 : size * y[x];
}

static void rectified(const Job *job, int64_t head, int64_t i)
{
    const float *x = features_row(job, head, i);
    float       *y = features_out(job, head, i);
    float        scale = (float)job->map->input_scale, eps = (float)job->map->eps;

    for (int64_t c = 0; c < job->f; c++) {
        float u = job->map->project ? y[c] : scale * x[c];

        y[c] = (u > 0 ? u : 0) + eps;
    }
}

static void map_row(const Job *job, int64_t head, int64_t i)
{
    double c = job->head_top ? job->top[head * job->blocks] : 0;

    if (job->map->kind == FEATURE_SIN_COS || job->map->kind == FEATURE_ARC_COS) {
        amplify(job, head, i);
    } else if (job->map->kind == FEATURE_RELU || !job->map->project) {
        rectified(job, head, i);
    } else if (job->map->kind == FEATURE_TRIG) {
        waves(job, head, i, c);
    } else {
        if (job->map->stabilise && !job->head_top)
            c = largest_of_head(job, features_out(job, head, i));
        exponentials(job, head, i, c);
    }
}

static void measure_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * ROWS;
    int64_t    rows = min_i64(ROWS, job->n - first);
    double     top = -(double)INFINITY;

    (void)worker;
    if (job->projected)
        project(job, head, first, rows);
    for (int64_t i = first; i < first + rows; i++)
        top = fmax(top, job->projected ? largest_of_head(job, features_out(job, head, i))
                                       : half_square(job, head, i));
    job->top[item] = top;
}

static void map_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * ROWS;
    int64_t    rows = min_i64(ROWS, job->n - first);

    (void)worker;
    if (cpu_cancelled(job->run))
        return;
    if (job->map->project && !job->projected)
        project(job, head, first, rows);
    for (int64_t i = first; i < first + rows; i++)
        map_row(job, head, i);
}

void cpu_features(Run *r, const Tensor *x, const Tensor *w, const FeatureMap *map, bool keys,
                  Tensor *y)
{
    ArenaMark mark;
    Job       job = { .run = r, .kernel = kernel_at(0), .x = x, .w = w, .map = map, .y = y,
                      .h = y->shape[0],
                      .n = y->shape[1], .d = x->shape[2], .f = y->shape[2],
                      .m = map->project ? w->shape[1] : 0,
                      .blocks = ceil_div(y->shape[1], ROWS) };
    bool      trig = map->kind == FEATURE_TRIG;

    if (y->dtype == DT_F64) {
        cpu_features_wide(r, x, w, map, keys, y);
        return;
    }
    if (map->kind >= FEATURE_ELU && map->kind < FEATURE_SIN_COS) {
        cpu_features_plain(r, x, map, y);
        return;
    }
    mark = arena_mark(r->arena);
    job.head_top = map->stabilise && map->project && map->kind != FEATURE_RELU && (keys || trig);
    job.projected = job.head_top && !trig;
    job.top = cpu_scratch(r, job.h, job.blocks * (int64_t)sizeof(double));
    if (!cpu_blas(r))
        job.top = NULL;
    if (job.top && job.head_top) {
        threads_run(r->threads, job.h * job.blocks, measure_item, &job);
        for (int64_t x_head = 0; x_head < job.h; x_head++)
            for (int64_t b = 1; b < job.blocks; b++)
                job.top[x_head * job.blocks] = fmax(job.top[x_head * job.blocks],
                                                    job.top[x_head * job.blocks + b]);
    }
    if (job.top)
        threads_run(r->threads, job.h * job.blocks, map_item, &job);
    arena_release(r->arena, mark);
}

/* Feature maps of the vectors themselves, f = d (spec: linear).
 *
 *     elu             x + 1 for x >= 0, alpha (e^x - 1) + 1 below
 *     rectified       max(x, 0)
 *     exp             e^x
 *     softmax         over the d features of a row
 *     column softmax  over the n rows of a head, separately for each feature
 */

#define PIECE 512 /* columns of a column softmax at once */

typedef struct PlainJob {
    Run              *run;
    const Tensor     *x;
    const FeatureMap *map;
    Tensor           *y;
    int64_t           h, n, d, blocks;
} PlainJob;

static const float *plain_row_of(const PlainJob *job, int64_t head, int64_t i)
{
    return tensor_row_f32(job->x, head, job->h, i);
}

static float *plain_out(const PlainJob *job, int64_t head, int64_t i)
{
    return tensor_f32(job->y) + (head * job->n + i) * job->d;
}

static void map_plain_row(const PlainJob *job, int64_t head, int64_t i)
{
    const Kernel *kernel = kernel_at(0);
    const float  *x = plain_row_of(job, head, i);
    float        *y = plain_out(job, head, i);

    switch (job->map->kind) {
    case FEATURE_ELU:
        kernel->elu(x, job->d, (float)job->map->alpha, y);
        break;
    case FEATURE_RECTIFIED:
        for (int64_t c = 0; c < job->d; c++)
            y[c] = 0 > x[c] ? 0 : x[c];
        break;
    case FEATURE_EXP:
        memcpy(y, x, (size_t)job->d * sizeof(*y));
        kernel->exp2(y, job->d, (float)LOG2_E, 0);
        break;
    default:
        memcpy(y, x, (size_t)job->d * sizeof(*y));
        kernel->scale(y, job->d, (float)(1 / cpu_exp_row(kernel, y, job->d)), y);
        break;
    }
}

static void map_plain_item(void *context, int64_t item, int worker)
{
    const PlainJob *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * ROWS;
    int64_t    end = min_i64(job->n, first + ROWS);

    (void)worker;
    for (int64_t i = first; i < end && !cpu_cancelled(job->run); i++)
        map_plain_row(job, head, i);
}

/* One head, PIECE features: maximum, exponentials and their sums, division. */
static void column_piece(const PlainJob *job, int64_t head, int64_t first, int64_t count)
{
    const Kernel *kernel = kernel_at(0);
    float         top[PIECE];
    double        sum[PIECE] = { 0 };

    for (int64_t c = 0; c < count; c++)
        top[c] = plain_row_of(job, head, 0)[first + c];
    for (int64_t i = 1; i < job->n; i++) {
        const float *x = plain_row_of(job, head, i) + first;

        for (int64_t c = 0; c < count; c++)
            top[c] = x[c] > top[c] ? x[c] : top[c];
    }
    for (int64_t i = 0; i < job->n && !cpu_cancelled(job->run); i++) {
        const float *x = plain_row_of(job, head, i) + first;
        float       *y = plain_out(job, head, i) + first;

        for (int64_t c = 0; c < count; c++)
            y[c] = x[c] - top[c];
        kernel->exp2(y, count, (float)LOG2_E, 0);
        kernel->fold(y, count, sum);
    }
    for (int64_t i = 0; i < job->n; i++) {
        float *y = plain_out(job, head, i) + first;

        for (int64_t c = 0; c < count; c++)
            y[c] = (float)((double)y[c] / sum[c]);
    }
}

static void column_item(void *context, int64_t item, int worker)
{
    const PlainJob *job = context;
    int64_t    pieces = ceil_div(job->d, PIECE), first = item % pieces * PIECE;

    (void)worker;
    column_piece(job, item / pieces, first, min_i64(PIECE, job->d - first));
}

void cpu_features_plain(Run *r, const Tensor *x, const FeatureMap *map, Tensor *y)
{
    PlainJob job = { .run = r, .x = x, .map = map, .y = y, .h = y->shape[0], .n = y->shape[1],
                     .d = y->shape[2], .blocks = ceil_div(y->shape[1], ROWS) };

    if (map->kind == FEATURE_COLUMN_SOFTMAX)
        threads_run(r->threads, job.h * ceil_div(job.d, PIECE), column_item, &job);
    else
        threads_run(r->threads, job.h * job.blocks, map_plain_item, &job);
}

/* Feature maps in double, for features whose sums cancel or span many magnitudes
 * (spec: linear, rfa; performer without a maximum).
 *
 *     x' = input_scale x, or x / (|x| + norm_eps);  y = W x';  s = |x'|^2 / 2
 *     positive      M^-1/2 (exp(y - s - c) + eps)
 *     hyperbolic    (2M)^-1/2 (exp(+-y - s - c) + eps)
 *     relu          max(y, 0) + eps, or of x' itself
 *     exp, softmax  of x' itself
 *     sin cos       amplitude (sin y_1 .. sin y_M, cos y_1 .. cos y_M)
 *     arc cos       amplitude max(y, 0)
 *     trig          M^-1/2 (cos y_1 .. cos y_M, sin y_1 .. sin y_M) exp(s - c)
 *
 * c as above.
 */

#define WIDE_ROWS 64

typedef struct WideJob {
    Run              *run;
    const Tensor     *x, *w;
    const FeatureMap *map;
    Tensor           *y;
    int64_t           h, n, d, m, f, blocks;
    bool              keys; /* one maximum of y per head, not one per row */
    double           *top;  /* [h][blocks], then [h][0] is c of the head */
    double           *work; /* [workers][WIDE_ROWS][d] */
} WideJob;

static double *wide_out(const WideJob *job, int64_t head, int64_t i)
{
    return tensor_f64(job->y) + (head * job->n + i) * job->f;
}

/* x' of one row; returns s. */
static double take_row(const WideJob *job, int64_t head, int64_t i, double *to)
{
    const float *x = tensor_row_f32(job->x, head, job->h, i);
    double       sum = 0, factor;

    for (int64_t t = 0; t < job->d; t++)
        sum += (double)x[t] * (double)x[t];
    factor = job->map->unit ? 1 / (sqrt(sum) + job->map->norm_eps) : job->map->input_scale;
    if (job->map->unit && !isfinite(factor)) /* a zero vector and norm_eps = 0 */
        factor = 0;
    for (int64_t t = 0; to && t < job->d; t++)
        to[t] = factor * (double)x[t];
    return sum * factor * factor / 2;
}

static void wide_exponentials(double *y, int64_t d, bool divide)
{
    double top = divide ? y[0] : 0, sum = 0;

    for (int64_t t = 1; t < d && divide; t++)
        top = fmax(top, y[t]);
    for (int64_t t = 0; t < d; t++)
        y[t] -= top;
    kernel_at(0)->exp64(y, d);
    for (int64_t t = 0; t < d; t++)
        sum += y[t];
    for (int64_t t = 0; t < d && divide; t++)
        y[t] /= sum;
}

static double wide_largest(const WideJob *job, const double *y)
{
    double top = -(double)INFINITY;

    for (int64_t t = 0; t < job->m; t++)
        top = fmax(top, job->map->kind == FEATURE_HYPERBOLIC ? fabs(y[t]) : y[t]);
    return top;
}

static bool is_positive(const WideJob *job)
{
    return job->map->kind == FEATURE_POSITIVE || job->map->kind == FEATURE_HYPERBOLIC;
}

static void shifted_exponentials(const WideJob *job, double shift, double *y)
{
    double norm = 1 / sqrt((double)job->f);

    for (int64_t t = job->m; t < job->f; t++)
        y[t] = -y[t - job->m];
    for (int64_t t = 0; t < job->f; t++)
        y[t] -= shift;
    kernel_at(0)->exp64(y, job->f);
    for (int64_t t = 0; t < job->f; t++)
        y[t] = (y[t] + job->map->eps) * norm;
}

/* y holds W x' in its first m entries, or x'. */
static void map_wide_row(const WideJob *job, double s, double c, double *y)
{
    const FeatureMap *map = job->map;
    int64_t           m = job->m;

    switch (map->kind) {
    case FEATURE_POSITIVE:
    case FEATURE_HYPERBOLIC:
        if (map->stabilise && !job->keys)
            c = wide_largest(job, y);
        shifted_exponentials(job, s + c, y);
        break;
    case FEATURE_TRIG:
        kernel_at(0)->waves(y, m, exp(s - c) / sqrt((double)m), y + m, y);
        break;
    case FEATURE_RELU:
        for (int64_t t = 0; t < job->f; t++)
            y[t] = (y[t] <= 0 ? 0 : y[t]) + map->eps;
        break;
    case FEATURE_SIN_COS:
        kernel_at(0)->waves(y, m, map->amplitude, y, y + m);
        break;
    case FEATURE_ARC_COS:
        for (int64_t t = 0; t < m; t++)
            y[t] = y[t] <= 0 ? 0 : map->amplitude * y[t];
        break;
    default:
        wide_exponentials(y, job->f, map->kind == FEATURE_SOFTMAX);
        break;
    }
}

/* Writes W x', or x', to y, and the maximum over the block to top. */
static void project_item(void *context, int64_t item, int worker)
{
    const WideJob *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * WIDE_ROWS;
    int64_t    rows = min_i64(WIDE_ROWS, job->n - first);
    double    *x = job->work + worker * WIDE_ROWS * job->d, top = -(double)INFINITY;

    if (cpu_cancelled(job->run))
        return;
    for (int64_t i = 0; i < rows; i++) {
        double s = take_row(job, head, first + i,
                            job->map->project ? x + i * job->d : wide_out(job, head, first + i));

        top = fmax(top, s);
    }
    if (job->map->project)
        cpu_dgemm((WideMatrix){ x, job->d, false },
                  (WideMatrix){ tensor_head(job->w, head, job->h), job->w->stride[1], true }, rows,
                  job->m, job->d, 1, 0, wide_out(job, head, first), job->f);
    if (is_positive(job))
        top = -(double)INFINITY;
    for (int64_t i = 0; i < rows && is_positive(job); i++)
        top = fmax(top, wide_largest(job, wide_out(job, head, first + i)));
    job->top[item] = top;
}

static void map_wide_item(void *context, int64_t item, int worker)
{
    const WideJob *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * WIDE_ROWS;
    int64_t    end = min_i64(job->n, first + WIDE_ROWS);
    double     c = job->map->stabilise ? job->top[head * job->blocks] : 0;

    (void)worker;
    for (int64_t i = first; i < end && !cpu_cancelled(job->run); i++)
        map_wide_row(job, take_row(job, head, i, NULL), c, wide_out(job, head, i));
}

void cpu_features_wide(Run *r, const Tensor *x, const Tensor *w, const FeatureMap *map, bool keys,
                       Tensor *y)
{
    ArenaMark mark = arena_mark(r->arena);
    WideJob       job = { .run = r, .x = x, .w = w, .map = map, .y = y, .h = y->shape[0],
                          .n = y->shape[1], .d = x->shape[2], .f = y->shape[2],
                          .m = map->project ? w->shape[1] : 0,
                          .blocks = ceil_div(y->shape[1], WIDE_ROWS), .keys = keys };

    job.top = cpu_scratch(r, job.h, job.blocks * (int64_t)sizeof(*job.top));
    job.work = cpu_scratch(r, threads_count(r->threads),
                           WIDE_ROWS * job.d * (int64_t)sizeof(double));
    if (job.top && job.work && cpu_blas(r)) {
        threads_run(r->threads, job.h * job.blocks, project_item, &job);
        for (int64_t item = 0; item < job.h * job.blocks; item++) {
            double *top = &job.top[item / job.blocks * job.blocks];

            *top = fmax(*top, job.top[item]);
        }
        threads_run(r->threads, job.h * job.blocks, map_wide_item, &job);
    }
    arena_release(r->arena, mark);
}
