/* features_wide.c -- feature maps in double, where sums of features cancel or
 * span many magnitudes (spec: linear, rfa; performer without a maximum).
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
 * c as in features.c.
 */
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define ROWS 64

typedef struct Job {
    Run              *run;
    const Tensor     *x, *w;
    const FeatureMap *map;
    Tensor           *y;
    int64_t           h, n, d, m, f, blocks;
    bool              keys; /* one maximum of y per head, not one per row */
    double           *top;  /* [h][blocks], then [h][0] is c of the head */
    double           *work; /* [workers][ROWS][d] */
} Job;

static double *out_of(const Job *job, int64_t head, int64_t i)
{
    return (double *)job->y->data + (head * job->n + i) * job->f;
}

/* x' of one row; returns s. */
static double take_row(const Job *job, int64_t head, int64_t i, double *to)
{
    const float *x = (const float *)tensor_head(job->x, head, job->h) + i * job->x->stride[1];
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

static void exponentials(double *y, int64_t d, bool divide)
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

static double largest(const Job *job, const double *y)
{
    double top = -(double)INFINITY;

    for (int64_t t = 0; t < job->m; t++)
        top = fmax(top, job->map->kind == FEATURE_HYPERBOLIC ? fabs(y[t]) : y[t]);
    return top;
}

static bool is_positive(const Job *job)
{
    return job->map->kind == FEATURE_POSITIVE || job->map->kind == FEATURE_HYPERBOLIC;
}

static void shifted_exponentials(const Job *job, double shift, double *y)
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
static void map_row(const Job *job, double s, double c, double *y)
{
    const FeatureMap *map = job->map;
    int64_t           m = job->m;

    switch (map->kind) {
    case FEATURE_POSITIVE:
    case FEATURE_HYPERBOLIC:
        if (map->stabilise && !job->keys)
            c = largest(job, y);
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
        exponentials(y, job->f, map->kind == FEATURE_SOFTMAX);
        break;
    }
}

/* Leaves W x', or x', in y, and the block's share of the maximum in top. */
static void project_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * ROWS;
    int64_t    rows = min_i64(ROWS, job->n - first);
    double    *x = job->work + worker * ROWS * job->d, top = -(double)INFINITY;

    if (cpu_cancelled(job->run))
        return;
    for (int64_t i = 0; i < rows; i++) {
        double s = take_row(job, head, first + i,
                            job->map->project ? x + i * job->d : out_of(job, head, first + i));

        top = fmax(top, s);
    }
    if (job->map->project)
        cpu_dgemm((WideMatrix){ x, job->d, false },
                  (WideMatrix){ tensor_head(job->w, head, job->h), job->w->stride[1], true }, rows,
                  job->m, job->d, 1, 0, out_of(job, head, first), job->f);
    if (is_positive(job))
        top = -(double)INFINITY;
    for (int64_t i = 0; i < rows && is_positive(job); i++)
        top = fmax(top, largest(job, out_of(job, head, first + i)));
    job->top[item] = top;
}

static void map_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * ROWS;
    int64_t    end = min_i64(job->n, first + ROWS);
    double     c = job->map->stabilise ? job->top[head * job->blocks] : 0;

    (void)worker;
    for (int64_t i = first; i < end && !cpu_cancelled(job->run); i++)
        map_row(job, take_row(job, head, i, NULL), c, out_of(job, head, i));
}

void cpu_features_wide(Run *r, const Tensor *x, const Tensor *w, const FeatureMap *map, bool keys,
                       Tensor *y)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = { .run = r, .x = x, .w = w, .map = map, .y = y, .h = y->shape[0],
                      .n = y->shape[1], .d = x->shape[2], .f = y->shape[2],
                      .m = map->project ? w->shape[1] : 0,
                      .blocks = ceil_div(y->shape[1], ROWS), .keys = keys };

    job.top = cpu_scratch(r, job.h, job.blocks * (int64_t)sizeof(*job.top));
    job.work = cpu_scratch(r, threads_count(r->threads), ROWS * job.d * (int64_t)sizeof(double));
    cpu_single_blas();
    if (job.top && job.work) {
        threads_run(r->threads, job.h * job.blocks, project_item, &job);
        for (int64_t item = 0; item < job.h * job.blocks; item++) {
            double *top = &job.top[item / job.blocks * job.blocks];

            *top = fmax(*top, job.top[item]);
        }
        threads_run(r->threads, job.h * job.blocks, map_item, &job);
    }
    arena_release(r->arena, mark);
}
