/* features.c -- feature maps of kernel attention, of performer and rfa.
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

#define ROWS_AHEAD 32          /* distance at which rows are prefetched */
#define PRODUCT_MOST (1 << 17) /* numbers of directions that stay in the second-level cache */

typedef struct Job {
    FeatureRows rows;
    Run        *run;
    Tensor     *y;    /* NULL: only the maxima are wanted */
    float      *work; /* [workers][FEATURE_ROWS][m], without y */
    int64_t     h, n, blocks;
    bool        projected; /* y holds u, from the first pass */
    double     *top;       /* [h][blocks], then [h][0] for the head */
} Job;

static const float *features_row(const FeatureRows *f, int64_t head, int64_t i)
{
    return tensor_row_f32(f->x, head, f->h, i);
}

static float *features_out(const Job *job, int64_t head, int64_t i)
{
    return tensor_f32(job->y) + (head * job->n + i) * job->rows.f;
}

static double half_square(const FeatureRows *f, int64_t head, int64_t i)
{
    double sum = f->kernel->squares(features_row(f, head, i), f->d);

    return sum * f->map->input_scale * f->map->input_scale / 2;
}

/* Feature maps of the vectors themselves, f = d, of linear.
 *
 *     elu             x + 1 for x >= 0, alpha (e^x - 1) + 1 below
 *     rectified       max(x, 0)
 *     exp             e^x
 *     softmax         over the d features of a row
 *     column softmax  over the n rows of a head, separately for each feature
 */

static bool is_plain(FeatureKind kind)
{
    return kind >= FEATURE_ELU && kind < FEATURE_COLUMN_SOFTMAX;
}

static void map_plain_row(const FeatureRows *f, int64_t head, int64_t i, float *y)
{
    const float *x = features_row(f, head, i);

    switch (f->map->kind) {
    case FEATURE_ELU:
        f->kernel->elu(x, f->d, (float)f->map->alpha, y);
        break;
    case FEATURE_RECTIFIED:
        for (int64_t c = 0; c < f->d; c++)
            y[c] = 0 > x[c] ? 0 : x[c];
        break;
    case FEATURE_EXP:
        memcpy(y, x, (size_t)f->d * sizeof(*y));
        f->kernel->exp2(y, f->d, (float)LOG2_E, 0);
        break;
    default:
        memcpy(y, x, (size_t)f->d * sizeof(*y));
        f->kernel->scale(y, f->d, (float)(1 / cpu_exp_row(f->kernel, y, f->d)), y);
        break;
    }
}

#define PIECE 512 /* columns of a column softmax at once */

typedef struct ColumnJob {
    Run          *run;
    const Tensor *x;
    Tensor       *y;
    int64_t       h, n, d;
} ColumnJob;

static const float *column_row(const ColumnJob *job, int64_t head, int64_t i)
{
    return tensor_row_f32(job->x, head, job->h, i);
}

static float *column_out(const ColumnJob *job, int64_t head, int64_t i)
{
    return tensor_f32(job->y) + (head * job->n + i) * job->d;
}

/* One head, PIECE features: maximum, exponentials and their sums, division. */
static void column_piece(const ColumnJob *job, int64_t head, int64_t first, int64_t count)
{
    const Kernel *kernel = kernel_at(0);
    float         top[PIECE];
    double        sum[PIECE] = { 0 };

    for (int64_t c = 0; c < count; c++)
        top[c] = column_row(job, head, 0)[first + c];
    for (int64_t i = 1; i < job->n; i++) {
        const float *x = column_row(job, head, i) + first;

        for (int64_t c = 0; c < count; c++)
            top[c] = x[c] > top[c] ? x[c] : top[c];
    }
    for (int64_t i = 0; i < job->n && !cpu_cancelled(job->run); i++) {
        const float *x = column_row(job, head, i) + first;
        float       *y = column_out(job, head, i) + first;

        for (int64_t c = 0; c < count; c++)
            y[c] = x[c] - top[c];
        kernel->exp2(y, count, (float)LOG2_E, 0);
        kernel->fold(y, count, sum);
    }
    for (int64_t i = 0; i < job->n; i++) {
        float *y = column_out(job, head, i) + first;

        for (int64_t c = 0; c < count; c++)
            y[c] = (float)((double)y[c] / sum[c]);
    }
}

static void column_item(void *context, int64_t item, int worker)
{
    const ColumnJob *job = context;
    int64_t    pieces = ceil_div(job->d, PIECE), first = item % pieces * PIECE;

    (void)worker;
    column_piece(job, item / pieces, first, min_i64(PIECE, job->d - first));
}

static void column_softmax(Run *r, const Tensor *x, Tensor *y)
{
    ColumnJob job = { .run = r, .x = x, .y = y, .h = y->shape[0], .n = y->shape[1],
                      .d = y->shape[2] };

    threads_run(r->threads, job.h * ceil_div(job.d, PIECE), column_item, &job);
}

/* ---- rows ------------------------------------------------------------------- */

/* u of some rows, in rows of f numbers. */
static void project(const FeatureRows *f, int64_t head, int64_t first, int64_t rows, float *y)
{
    const float *x = features_row(f, head, first);
    int64_t      of = f->w->shape[0] == 1 ? 0 : head;

    if (f->turned)
        cpu_product(&(SmallProduct){ .a = x, .lda = f->x->stride[1], .step = 1,
                                     .b = f->turned + of * f->d * f->m, .ldb = f->m, .rows = rows,
                                     .cols = f->m, .inner = f->d,
                                     .alpha = (float)f->map->input_scale, .c = y, .ldc = f->f });
    else
        cpu_sgemm((Matrix){ x, f->x->stride[1], false },
                  (Matrix){ tensor_head(f->w, head, f->h), f->w->stride[1], true }, rows, f->m,
                  f->d, (float)f->map->input_scale, 0, y, f->f);
}

static double largest_of_row(const FeatureRows *f, const float *u)
{
    float top = f->kernel->largest(u, f->m, 1);

    if (f->map->kind == FEATURE_HYPERBOLIC)
        top = fmaxf(top, f->kernel->largest(u, f->m, -1));
    return (double)top;
}

static void exponentials(const FeatureRows *f, int64_t head, int64_t i, double c, double eps,
                         float *y)
{
    double shift = (half_square(f, head, i) + c) * LOG2_E;
    /* A factor undoes the rounding of the shift to float.  It stays a float, so that nothing times
     * it is nothing where the shift is in the thousands of millions. */
    float  mend = (float)exp2(fmin(fmax((double)(float)shift - shift, -126), 126));
    float  norm = (float)(1 / sqrt((double)f->f));

    for (int64_t x = f->m; x < f->f; x++)
        y[x] = -y[x - f->m];
    f->kernel->exp2(y, f->f, (float)LOG2_E, (float)shift);
    f->kernel->line(y, f->f, mend * norm, (float)eps * norm);
}

static void waves(const FeatureRows *f, int64_t head, int64_t i, double c, float *y)
{
    float size = (float)(exp(half_square(f, head, i) - c) / sqrt((double)f->m));

    f->kernel->float_waves(y, f->m, 1, size, y + f->m, y);
}

/* What a row's projection is multiplied by, as if the row had unit length. */
static float shortening(const FeatureRows *f, int64_t head, int64_t i)
{
    double factor = 1 / (sqrt(f->kernel->squares(features_row(f, head, i), f->d)) +
                         f->map->norm_eps);

    /* Not finite: a zero vector and norm_eps = 0. */
    return isfinite(factor) ? (float)factor : 0.0f;
}

static void amplify(const FeatureRows *f, int64_t head, int64_t i, float *y)
{
    float size = (float)f->map->amplitude, by = f->map->unit ? shortening(f, head, i) : 1;

    if (f->map->kind == FEATURE_SIN_COS)
        f->kernel->float_waves(y, f->m, by, size, y, y + f->m);
    for (int64_t x = 0; x < f->m && f->map->kind == FEATURE_ARC_COS; x++)
        y[x] = y[x] <= 0 ? 0 : size * (by * y[x]);
}

static void rectified(const FeatureRows *f, int64_t head, int64_t i, float *y)
{
    const float *x = features_row(f, head, i);
    float        scale = (float)f->map->input_scale, eps = (float)f->map->eps;

    for (int64_t c = 0; c < f->f; c++) {
        float u = f->map->project ? y[c] : scale * x[c];

        y[c] = (u > 0 ? u : 0) + eps;
    }
}

/* Of a row whose projection lies in y. */
static void map_row(const FeatureRows *f, int64_t head, int64_t i, float *y)
{
    const FeatureMap *map = f->map;
    double            c = f->top ? f->top[head * f->top_step] : 0;

    if (is_plain(map->kind)) {
        map_plain_row(f, head, i, y);
    } else if (map->kind == FEATURE_SIN_COS || map->kind == FEATURE_ARC_COS) {
        amplify(f, head, i, y);
    } else if (map->kind == FEATURE_RELU || !map->project) {
        rectified(f, head, i, y);
    } else if (map->kind == FEATURE_TRIG) {
        waves(f, head, i, c, y);
    } else {
        if (map->stabilise && !f->top)
            c = largest_of_row(f, y);
        exponentials(f, head, i, c, map->eps, y);
    }
}

/* Prefetches row i, if there is one. */
static PREFETCHES void fetch_row(const FeatureRows *f, int64_t head, int64_t i)
{
    if (i < f->x->shape[1])
        cpu_fetch(tensor_row_f32(f->x, head, f->h, i), f->x->shape[2]);
}

void cpu_features_make(const FeatureRows *f, int64_t head, int64_t first, int64_t rows, float *y)
{
    if (f->map->project)
        project(f, head, first, rows, y);
    for (int64_t i = 0; i < rows; i++) {
        /* A projection has read these rows; the next call's are read from the first on. */
        fetch_row(f, head, first + i + (f->map->project ? rows : ROWS_AHEAD));
        map_row(f, head, first + i, y + i * f->f);
    }
}

double cpu_features_project(const FeatureRows *f, int64_t head, int64_t first, int64_t rows,
                            float *y)
{
    double top = -(double)INFINITY;

    project(f, head, first, rows, y);
    for (int64_t i = 0; i < rows; i++)
        top = fmax(top, largest_of_row(f, y + i * f->f));
    return top;
}

void cpu_features_under(const FeatureRows *f, int64_t head, int64_t first, int64_t rows, double c,
                        float *y)
{
    for (int64_t i = 0; i < rows; i++)
        exponentials(f, head, first + i, c, 0, y + i * f->f);
}

double cpu_features_constant(const FeatureRows *f)
{
    return f->map->eps / sqrt((double)f->f);
}

/* Directions as columns, for products of small matrices; false: no memory. */
static bool turn_directions(Run *r, FeatureRows *f)
{
    int64_t size = f->m * f->d, rows;

    if (!f->map->project || size > PRODUCT_MOST)
        return true;
    rows = f->w->shape[0] * f->m;
    f->turned = cpu_scratch(r, f->w->shape[0], size * (int64_t)sizeof(*f->turned));
    for (int64_t x = 0; f->turned && x < rows; x++)
        for (int64_t t = 0; t < f->d; t++)
            f->turned[(x / f->m * f->d + t) * f->m + x % f->m] =
                tensor_row_f32(f->w, x / f->m, f->w->shape[0], x % f->m)[t];
    return f->turned != NULL;
}

bool cpu_features_begin(Run *r, const Tensor *x, const Tensor *w, const FeatureMap *map,
                        int64_t h, int64_t f, FeatureRows *rows)
{
    *rows = (FeatureRows){ .kernel = kernel_at(0), .x = x, .w = w, .map = map, .h = h,
                           .d = x->shape[2], .m = map->project ? w->shape[1] : 0, .f = f };
    return cpu_blas(r) && turn_directions(r, rows);
}

static void measure_item(void *context, int64_t item, int worker)
{
    const Job         *job = context;
    const FeatureRows *f = &job->rows;
    int64_t            head = item / job->blocks, first = item % job->blocks * FEATURE_ROWS;
    int64_t            rows = min_i64(FEATURE_ROWS, job->n - first);
    float             *u = job->y ? features_out(job, head, first)
                                  : job->work + worker * FEATURE_ROWS * f->f;
    double             top = -(double)INFINITY;

    if (job->projected)
        top = cpu_features_project(f, head, first, rows, u);
    for (int64_t i = 0; i < rows && !job->projected; i++)
        top = fmax(top, half_square(f, head, first + i));
    job->top[item] = top;
}

static void map_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * FEATURE_ROWS;
    int64_t    rows = min_i64(FEATURE_ROWS, job->n - first);
    float     *y = features_out(job, head, first);

    (void)worker;
    if (cpu_cancelled(job->run))
        return;
    if (!job->projected)
        cpu_features_make(&job->rows, head, first, rows, y);
    for (int64_t i = 0; i < rows && job->projected; i++)
        map_row(&job->rows, head, first + i, y + i * job->rows.f);
}

/* c of each head, into top[head blocks]. */
static void measure(Job *job)
{
    threads_run(job->run->threads, job->h * job->blocks, measure_item, job);
    for (int64_t head = 0; head < job->h; head++)
        for (int64_t b = 1; b < job->blocks; b++)
            job->top[head * job->blocks] = fmax(job->top[head * job->blocks],
                                                job->top[head * job->blocks + b]);
}

void cpu_features_top(Run *r, const Tensor *x, const Tensor *w, const FeatureMap *map, Tensor *top)
{
    ArenaMark mark = arena_mark(r->arena);
    int64_t   m = w->shape[1];
    Job       job = { .run = r, .h = top->shape[0], .n = x->shape[1], .projected = true,
                      .blocks = ceil_div(x->shape[1], FEATURE_ROWS) };

    job.top = cpu_scratch(r, job.h, job.blocks * (int64_t)sizeof(double));
    job.work = cpu_scratch(r, threads_count(r->threads), FEATURE_ROWS * m * (int64_t)sizeof(float));
    if (job.top && job.work && cpu_features_begin(r, x, w, map, job.h, m, &job.rows)) {
        measure(&job);
        for (int64_t head = 0; head < job.h; head++)
            tensor_f64(top)[head] = job.top[head * job.blocks];
    }
    arena_release(r->arena, mark);
}

static void features_wide(Run *r, const Tensor *x, const Tensor *w, const FeatureMap *map,
                          bool keys, Tensor *y);

void cpu_features(Run *r, const Tensor *x, const Tensor *w, const FeatureMap *map, bool keys,
                  Tensor *y)
{
    ArenaMark mark;
    Job       job = { .run = r, .y = y, .h = y->shape[0], .n = y->shape[1],
                      .blocks = ceil_div(y->shape[1], FEATURE_ROWS) };
    bool      trig = map->kind == FEATURE_TRIG, top;

    if (y->dtype == DT_F64) {
        features_wide(r, x, w, map, keys, y);
        return;
    }
    if (map->kind == FEATURE_COLUMN_SOFTMAX) {
        column_softmax(r, x, y);
        return;
    }
    mark = arena_mark(r->arena);
    top = map->stabilise && map->project && map->kind != FEATURE_RELU && (keys || trig);
    job.projected = top && !trig;
    job.top = cpu_scratch(r, job.h, job.blocks * (int64_t)sizeof(double));
    if (job.top && cpu_features_begin(r, x, w, map, job.h, y->shape[2], &job.rows)) {
        if (top)
            measure(&job);
        job.rows.top = top ? job.top : NULL;
        job.rows.top_step = job.blocks;
        threads_run(r->threads, job.h * job.blocks, map_item, &job);
    }
    arena_release(r->arena, mark);
}

/* Feature maps in double, for features whose sums cancel or span many magnitudes
 * (linear, rfa; performer without a maximum).
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

static void features_wide(Run *r, const Tensor *x, const Tensor *w, const FeatureMap *map,
                          bool keys, Tensor *y)
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
