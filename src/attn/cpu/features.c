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
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define ROWS 128

typedef struct Job {
    Run              *run;
    const Kernel     *kernel;
    const Tensor     *x, *w;
    const FeatureMap *map;
    Tensor           *y;
    int64_t           h, n, d, m, f, blocks;
    bool              head_top;  /* c is one number per head */
    bool              projected; /* the first pass has left u in y */
    double           *top;       /* [h][blocks], then [h][0] for the head */
} Job;

static const float *row_of(const Job *job, int64_t head, int64_t i)
{
    return (const float *)tensor_head(job->x, head, job->h) + i * job->x->stride[1];
}

static float *out_of(const Job *job, int64_t head, int64_t i)
{
    return (float *)job->y->data + (head * job->n + i) * job->f;
}

static double half_square(const Job *job, int64_t head, int64_t i)
{
    double sum = job->kernel->squares(row_of(job, head, i), job->d);

    return sum * job->map->input_scale * job->map->input_scale / 2;
}

static void project(const Job *job, int64_t head, int64_t first, int64_t rows)
{
    Matrix x = { row_of(job, head, first), job->x->stride[1], false };
    Matrix w = { tensor_head(job->w, head, job->h), job->w->stride[1], true };

    cpu_sgemm(x, w, rows, job->m, job->d, (float)job->map->input_scale, 0,
              out_of(job, head, first), job->f);
}

static double largest(const Job *job, const float *u)
{
    float top = job->kernel->largest(u, job->m, 1);

    if (job->map->kind == FEATURE_HYPERBOLIC)
        top = fmaxf(top, job->kernel->largest(u, job->m, -1));
    return (double)top;
}

static void exponentials(const Job *job, int64_t head, int64_t i, double c)
{
    const FeatureMap *map = job->map;
    float            *y = out_of(job, head, i);
    double            shift = (half_square(job, head, i) + c) * LOG2_E;
    /* What rounding the shift to a float would lose is put back as a factor. */
    float             mend = (float)exp2((double)(float)shift - shift);
    float             norm = (float)(1 / sqrt((double)job->f)), eps = (float)map->eps;

    for (int64_t x = job->m; x < job->f; x++)
        y[x] = -y[x - job->m];
    job->kernel->exp2(y, job->f, (float)LOG2_E, (float)shift);
    job->kernel->line(y, job->f, mend * norm, eps * norm);
}

static void waves(const Job *job, int64_t head, int64_t i, double c)
{
    float *y = out_of(job, head, i);
    float  size = (float)(exp(half_square(job, head, i) - c) / sqrt((double)job->m));

    job->kernel->float_waves(y, job->m, size, y + job->m, y);
}

/* What of a row's projection is left when the row has unit length. */
static void shorten(const Job *job, int64_t head, int64_t i)
{
    double length = sqrt(job->kernel->squares(row_of(job, head, i), job->d));
    double factor = 1 / (length + job->map->norm_eps);
    float *y = out_of(job, head, i);

    /* A zero vector and norm_eps = 0. */
    job->kernel->scale(y, job->m, isfinite(factor) ? (float)factor : 0.0f, y);
}

static void amplify(const Job *job, int64_t head, int64_t i)
{
    float *y = out_of(job, head, i), size = (float)job->map->amplitude;

    if (job->map->unit)
        shorten(job, head, i);
    if (job->map->kind == FEATURE_SIN_COS)
        job->kernel->float_waves(y, job->m, size, y, y + job->m);
    for (int64_t x = 0; x < job->m && job->map->kind == FEATURE_ARC_COS; x++)
        y[x] = y[x] <= 0 ? 0 : size * y[x];
}

static void rectified(const Job *job, int64_t head, int64_t i)
{
    const float *x = row_of(job, head, i);
    float       *y = out_of(job, head, i);
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
            c = largest(job, out_of(job, head, i));
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
        top = fmax(top, job->projected ? largest(job, out_of(job, head, i))
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
    cpu_single_blas();
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
