/* matrix.c -- whole matrices: singular values, inverse, balancing.
 *
 * OpenBLAS contains LAPACK.  Its Fortran symbols are declared here, since its header may be
 * missing. */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cpu/blas.h"
#include "attn/cpu/cpu.h"
#include "attn/ops/dense.h"
#include "attn/run.h"
#include "core/threads.h"

extern void dgesdd_(const char *job, const int *m, const int *n, double *a, const int *lda,
                    double *s, double *u, const int *ldu, double *vt, const int *ldvt, double *work,
                    const int *lwork, int *iwork, int *info, size_t job_length);
extern void dgeqrf_(const int *m, const int *n, double *a, const int *lda, double *tau,
                    double *work, const int *lwork, int *info);
extern void dsyevd_(const char *job, const char *half, const int *n, double *a, const int *lda,
                    double *w, double *work, const int *lwork, int *iwork, const int *liwork,
                    int *info, size_t job_length, size_t half_length);
extern void dorgqr_(const int *m, const int *n, const int *k, double *a, const int *lda,
                    const double *tau, double *work, const int *lwork, int *info);

static bool all_finite(const double *a, int64_t count, Error *err)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(a[i]))
            return error_set(err, ERR_DATA,
                             "singular values: the matrix holds NaN or infinite values");
    return true;
}

static bool no_memory(Error *err)
{
    return error_set(err, ERR_NOMEM, "singular values: out of memory");
}

bool svd_values(double *a, int64_t rows, int64_t cols, double *values, Error *err)
{
    int    m = (int)rows, n = (int)cols, least = m < n ? m : n, one = 1, info = 0, size = -1;
    int   *whole = malloc((size_t)(8 * (least > 0 ? least : 1)) * sizeof(*whole));
    double asked = 0, unused = 0, *work = NULL;

    if (!all_finite(a, rows * cols, err) || !blas_ready(1, err)) {
        free(whole);
        return false;
    }
    blas_enter();
    dgesdd_("N", &m, &n, a, &m, values, &unused, &one, &unused, &one, &asked, &size, whole, &info,
            1);
    size = (int)asked > 1 ? (int)asked : 1;
    work = malloc((size_t)size * sizeof(*work));
    if (whole && work && least > 0)
        dgesdd_("N", &m, &n, a, &m, values, &unused, &one, &unused, &one, work, &size, whole,
                &info, 1);
    blas_leave();
    free(work);
    free(whole);
    if (!whole || !work)
        return no_memory(err);
    return info == 0 || error_set(err, ERR_INTERNAL,
                                  "singular values of %d x %d: no convergence (%d)", m, n, info);
}

bool svd_orthonormal(double *a, int64_t rows, int64_t cols, Error *err)
{
    int     m = (int)rows, n = (int)cols, size = 64 * (n > 0 ? n : 1), info = 0;
    double *tau = malloc((size_t)(n > 0 ? n : 1) * sizeof(*tau));
    double *work = malloc((size_t)size * sizeof(*work));
    bool    made = tau && work;

    if (made && all_finite(a, rows * cols, err) && blas_ready(1, err)) {
        blas_enter();
        dgeqrf_(&m, &n, a, &m, tau, work, &size, &info);
        dorgqr_(&m, &n, &n, a, &m, tau, work, &size, &info);
        blas_leave();
    } else {
        info = 1;
    }
    free(tau);
    free(work);
    return made ? info == 0 : no_memory(err);
}

/* A matrix by rows is its transpose by columns, so left and right change places. */
void cpu_svd(Run *r, Tensor *x, DenseSvd *out)
{
    int     m = (int)x->shape[2], n = (int)x->shape[1], least = m < n ? m : n, info = 0, size = -1;
    int    *whole = run_alloc(r, 8 * (int64_t)least, sizeof(*whole));
    double *a = tensor_f64(x), asked = 0, *work = NULL;

    if (run_failed(r) || !all_finite(a, tensor_count(x), &r->err) || !cpu_blas(r))
        return;
    blas_enter();
    dgesdd_("S", &m, &n, a, &m, tensor_f64(&out->values), tensor_f64(&out->right), &m,
            tensor_f64(&out->turned), &least, &asked, &size, whole, &info, 1);
    size = (int)asked > 1 ? (int)asked : 1;
    work = run_alloc(r, size, sizeof(*work));
    if (work)
        dgesdd_("S", &m, &n, a, &m, tensor_f64(&out->values), tensor_f64(&out->right), &m,
                tensor_f64(&out->turned), &least, work, &size, whole, &info, 1);
    blas_leave();
    if (info)
        run_fail(r, ERR_INTERNAL, "singular values of %d x %d: no convergence (%d)", n, m, info);
    for (int64_t c = 0; c < (int64_t)n * least && !run_failed(r); c++)
        tensor_f64(&out->turned)[c] *= tensor_f64(&out->values)[c % least];
}

#define LEAST_SHARE 1e-10 /* of the largest square; below it a value has few digits left */

bool cpu_svd_gram(Run *r, Tensor *gram, DenseSvd *out)
{
    int     n = (int)gram->shape[2], size = 1 + 6 * n + 2 * n * n, whole = 3 + 5 * n, info = 0;
    double *a = tensor_f64(gram), *squares = run_alloc(r, n, sizeof(*squares));
    double *work = run_alloc(r, size, sizeof(*work));
    int    *order = run_alloc(r, whole, sizeof(*order));
    Error   unused = ERROR_INIT;

    for (int i = 0; i < n && !run_failed(r); i++)
        memset(a + i * n + i + 1, 0, (size_t)(n - i - 1) * sizeof(*a));
    if (run_failed(r) || !all_finite(a, tensor_count(gram), &unused) || !cpu_blas(r))
        return false;
    blas_enter();
    dsyevd_("V", "U", &n, a, &n, squares, work, &size, order, &whole, &info, 1, 1);
    blas_leave();
    if (info || !(squares[0] > LEAST_SHARE * squares[n - 1]))
        return false;
    for (int64_t t = 0; t < n; t++) {
        tensor_f64(&out->values)[t] = sqrt(squares[n - 1 - t]);
        memcpy(tensor_f64(&out->right) + t * n, a + (n - 1 - t) * n, (size_t)n * sizeof(*a));
    }
    return true;
}

/* The Moore-Penrose inverse through singular values (one-sided Jacobi).
 *
 * Rotations of pairs of columns turn B = A into B = A V with orthogonal columns s_c u_c, whose
 * lengths s_c are the singular values:
 *
 *     A^+ = sum over s_c > rcond max s of v_c b_c^T / s_c^2
 *
 * Small singular values have full relative accuracy, which the cut at rcond needs.  Matrices
 * are stored by columns.
 */

#define MOST_SWEEPS 60

typedef struct Job {
    Run          *run;
    const Tensor *a;
    Tensor       *y;
    double        rcond;
    int64_t       size;
    double       *work; /* [heads][2][size][size]: columns of B, columns of V */
} Job;

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;

    for (int64_t t = 0; t < n; t++)
        sum += a[t] * b[t];
    return sum;
}

static void rotate(double *a, double *b, int64_t n, double cosine, double sine)
{
    for (int64_t t = 0; t < n; t++) {
        double x = a[t], y = b[t];

        a[t] = cosine * x - sine * y;
        b[t] = sine * x + cosine * y;
    }
}

/* Makes columns p and q orthogonal; false: they were already. */
static bool turn_pair(double *b, double *v, int64_t n, int64_t p, int64_t q)
{
    double *x = b + p * n, *y = b + q * n;
    double  xx = dot(x, x, n), yy = dot(y, y, n), xy = dot(x, y, n), zeta, tangent, cosine;

    if (!(fabs(xy) > 2 * DBL_EPSILON * sqrt(xx * yy)) || !(fabs(xy) > DBL_MIN))
        return false;
    zeta = (yy - xx) / (2 * xy);
    tangent = (zeta < 0 ? -1 : 1) / (fabs(zeta) + hypot(1, zeta));
    cosine = 1 / hypot(1, tangent);
    rotate(x, y, n, cosine, cosine * tangent);
    rotate(v + p * n, v + q * n, n, cosine, cosine * tangent);
    return true;
}

static void diagonalise(const Job *job, double *b, double *v)
{
    bool turned = true;

    for (int sweep = 0; turned && sweep < MOST_SWEEPS; sweep++) {
        turned = false;
        for (int64_t p = 0; p < job->size && !cpu_cancelled(job->run); p++)
            for (int64_t q = p + 1; q < job->size; q++)
                turned = turn_pair(b, v, job->size, p, q) || turned;
    }
}

static void pinv_item(void *context, int64_t head, int worker)
{
    const Job    *job = context;
    int64_t       n = job->size;
    const double *a = tensor_head(job->a, head, job->y->shape[0]);
    double       *y = tensor_f64(job->y) + head * n * n;
    double       *b = job->work + head * 2 * n * n, *v = b + n * n, most = 0;

    (void)worker;
    memset(v, 0, (size_t)(n * n) * sizeof(*v));
    memset(y, 0, (size_t)(n * n) * sizeof(*y));
    for (int64_t i = 0; i < n; i++) {
        v[i * n + i] = 1;
        for (int64_t j = 0; j < n; j++)
            b[j * n + i] = a[i * n + j];
    }
    diagonalise(job, b, v);
    for (int64_t c = 0; c < n; c++)
        most = fmax(most, sqrt(dot(b + c * n, b + c * n, n)));
    for (int64_t c = 0; c < n; c++) {
        double square = dot(b + c * n, b + c * n, n);

        for (int64_t i = 0; i < n && sqrt(square) > job->rcond * most; i++)
            for (int64_t j = 0; j < n; j++)
                y[i * n + j] += v[c * n + i] / square * b[c * n + j];
    }
}

void cpu_pinv(Run *r, const Tensor *a, double rcond, Tensor *y)
{
    ArenaMark mark = arena_mark(r->arena);
    int64_t   n = a->shape[1];
    Job       job = { .run = r, .a = a, .y = y, .rcond = rcond, .size = n };

    job.work = cpu_scratch(r, a->shape[0] * n, 2 * n * (int64_t)sizeof(*job.work));
    if (job.work)
        threads_run(r->threads, a->shape[0], pinv_item, &job);
    arena_release(r->arena, mark);
}

/* Sinkhorn's balancing, and what a balanced matrix does to blocks.
 *
 *     L_uv <- L_uv - ln sum_v exp(L_uv)         over the allowed entries of a line
 *     y_u  =  sum_v P_uv x_v                    x_v: block v of b tokens, as one row
 *
 * A line is a row or a column.  LINES are taken at a time, so that columns are read along rows.
 */

#define LINES 16 /* of one item of work */
#define PAD 8    /* lines a power of two apart would conflict in the cache */

typedef struct Balance {
    double        *log_p;
    const uint8_t *allowed; /* NULL: all */
    int64_t        b;
    bool           columns;
    double        *lines;   /* [workers][LINES][b + PAD]: allowed entries, side by side */
} Balance;

/* The allowed entries of a line, `step` apart from x on; returns how many. */
static int64_t take_line(const double *x, const uint8_t *allowed, int64_t b, int64_t step,
                         double *line)
{
    int64_t used = 0;

    for (int64_t c = 0; c < b; c++)
        if (!allowed || allowed[c * step])
            line[used++] = x[c * step];
    return used;
}

/* The log-sum-exp of a line; 0 for a line without entries. */
static double line_sum(const double *line, int64_t used)
{
    double sum = kernel_at(0)->log_sum_exp64(line, used);

    return sum == -(double)INFINITY ? 0 : sum;
}

static void subtract(double *x, const uint8_t *allowed, int64_t count, const double *sum,
                     int64_t step)
{
    for (int64_t c = 0; c < count; c++)
        if (!allowed || allowed[c])
            x[c] -= sum[c * step];
}

static void balance_rows(const Balance *job, double *x, const uint8_t *allowed, double *line)
{
    double sum = allowed ? line_sum(line, take_line(x, allowed, job->b, 1, line))
                         : line_sum(x, job->b);

    subtract(x, allowed, job->b, &sum, 0);
}

/* `count` columns; rows are read once for all of them. */
static void balance_columns(const Balance *job, double *x, const uint8_t *allowed, int64_t count,
                            double *lines)
{
    int64_t b = job->b, ld = b + PAD;
    double  sum[LINES];

    for (int64_t c = 0; c < b && !allowed; c++)
        for (int64_t t = 0; t < count; t++)
            lines[t * ld + c] = x[c * b + t];
    for (int64_t t = 0; t < count; t++)
        sum[t] = line_sum(lines + t * ld, allowed ? take_line(x + t, allowed + t, b, b,
                                                              lines + t * ld) : b);
    for (int64_t c = 0; c < b; c++)
        subtract(x + c * b, allowed ? allowed + c * b : NULL, count, sum, 1);
}

/* An item is LINES lines of one head. */
static void balance_item(void *context, int64_t item, int worker)
{
    const Balance *job = context;
    int64_t        b = job->b, strips = ceil_div(b, LINES), first = item % strips * LINES;
    int64_t        end = min_i64(b, first + LINES);
    double        *x = job->log_p + item / strips * b * b;
    double        *lines = job->lines + worker * LINES * (b + PAD);

    if (job->columns)
        balance_columns(job, x + first, job->allowed ? job->allowed + first : NULL, end - first,
                        lines);
    else
        for (int64_t u = first; u < end; u++)
            balance_rows(job, x + u * b, job->allowed ? job->allowed + u * b : NULL, lines);
}

void cpu_sinkhorn(Run *r, Tensor *log_p, const Tensor *allowed, bool columns)
{
    ArenaMark mark = arena_mark(r->arena);
    Balance   job = { .log_p = log_p->data, .b = log_p->shape[1], .columns = columns,
                      .allowed = tensor_given(allowed) ? allowed->data : NULL };

    job.lines = cpu_scratch(r, threads_count(r->threads) * LINES * (job.b + PAD),
                            sizeof(*job.lines));
    if (job.lines)
        threads_run(r->threads, log_p->shape[0] * ceil_div(job.b, LINES), balance_item, &job);
    arena_release(r->arena, mark);
}

/* Steps without exponentials.
 *
 * Entries K = e^(L - max) of a head stay, and a step makes the factors of their rows and columns:
 *
 *     row_u = 1 / sum_v K_uv column_v,  column_v = 1 / sum_u row_u K_uv
 *     P_uv = row_u K_uv column_v
 *
 * With L within POWER_RANGE of its largest entry, the limits of the columns lie within
 * e^POWER_RANGE of each other, and no step takes the columns, which begin at 1, farther from
 * them.  So all factors lie within e^(2 POWER_RANGE) of 1, and nothing overflows. */

#define POWER_RANGE 300.0
#define POWER_ROWS 32 /* of an item; they stay in the first-level cache for both sums */

typedef struct Powers {
    double  *k, *row, *column;
    int64_t  heads, b, strips;
    double  *high, *low; /* [heads][strips] largest and smallest entries */
    double  *sums;       /* [heads][strips][b] of columns, of the rows of a strip */
    double  *p;          /* shares */
} Powers;

typedef struct Strip {
    int64_t head, first, rows;
} Strip;

static Powers powers_of(const Balancing *b)
{
    int64_t size = b->log_p.shape[1];

    return (Powers){ .k = b->log_p.data, .row = b->row.data, .column = b->column.data,
                     .heads = b->log_p.shape[0], .b = size, .strips = ceil_div(size, POWER_ROWS) };
}

/* Items are strips, by heads.  Eight entries take as long as one number of other operations. */
static void powers_run(const Run *r, Powers *job, ThreadsFn item)
{
    threads_run(cpu_threads_for(r, job->heads * job->b * job->b / 8), job->heads * job->strips,
                item, job);
}

static Strip strip_of(const Powers *job, int64_t item)
{
    int64_t first = item % job->strips * POWER_ROWS;

    return (Strip){ item / job->strips, first, min_i64(POWER_ROWS, job->b - first) };
}

static double *strip_rows(const Powers *job, double *x, Strip s)
{
    return x + (s.head * job->b + s.first) * job->b;
}

/* NaN is left out. */
static double smallest(const double *x, int64_t count)
{
    enum { SIDE = 8 }; /* side by side, which the compiler turns into vectors */
    double  low[SIDE], all = (double)INFINITY;
    int64_t c = 0;

    for (int s = 0; s < SIDE; s++)
        low[s] = (double)INFINITY;
    for (; c + SIDE <= count; c += SIDE)
        for (int s = 0; s < SIDE; s++)
            low[s] = x[c + s] < low[s] ? x[c + s] : low[s];
    for (; c < count; c++)
        low[0] = x[c] < low[0] ? x[c] : low[0];
    for (int s = 0; s < SIDE; s++)
        all = low[s] < all ? low[s] : all;
    return all;
}

static void extent_item(void *context, int64_t item, int worker)
{
    const Powers *job = context;
    Strip         s = strip_of(job, item);
    const double *x = strip_rows(job, job->k, s);

    (void)worker;
    job->high[item] = kernel_at(0)->largest64(x, s.rows * job->b);
    job->low[item] = smallest(x, s.rows * job->b);
}

static void power_item(void *context, int64_t item, int worker)
{
    const Powers *job = context;
    Strip         s = strip_of(job, item);

    (void)worker;
    kernel_at(0)->soften64(strip_rows(job, job->k, s), s.rows * job->b,
                           job->high[s.head * job->strips]);
}

/* The largest entry of each head is the first of its strips'; false: some lie too far apart. */
static bool powers_fit(Powers *job)
{
    for (int64_t head = 0; head < job->heads; head++) {
        double *high = job->high + head * job->strips, low = job->low[head * job->strips];

        for (int64_t x = 1; x < job->strips; x++) {
            high[0] = fmax(high[0], high[x]);
            low = fmin(low, job->low[head * job->strips + x]);
        }
        if (!(high[0] - low <= POWER_RANGE))
            return false;
    }
    return true;
}

bool cpu_balance_powers(Run *r, Balancing *b)
{
    ArenaMark mark = arena_mark(r->arena);
    Powers    job = powers_of(b);
    bool      fit;

    job.high = cpu_scratch(r, job.heads * job.strips, 2 * (int64_t)sizeof(*job.high));
    job.low = job.high ? job.high + job.heads * job.strips : NULL;
    if (job.low)
        powers_run(r, &job, extent_item);
    fit = job.low && powers_fit(&job);
    if (fit)
        threads_run(r->threads, job.heads * job.strips, power_item, &job);
    for (int64_t x = 0; fit && x < job.heads * job.b; x++)
        job.column[x] = 1;
    arena_release(r->arena, mark);
    return fit;
}

/* Factors of the rows, and what the strip adds to the sums of the columns. */
static void factor_item(void *context, int64_t item, int worker)
{
    const Kernel *kernel = kernel_at(0);
    const Powers *job = context;
    Strip         s = strip_of(job, item);
    const double *k = strip_rows(job, job->k, s), *column = job->column + s.head * job->b;
    double       *sums = job->sums + item * job->b, *row = job->row + s.head * job->b + s.first;

    (void)worker;
    memset(sums, 0, (size_t)job->b * sizeof(*sums));
    for (int64_t u = 0; u < s.rows; u++, k += job->b) {
        row[u] = 1 / kernel->dot_double(k, column, job->b);
        kernel->fold_positive64(k, job->b, row[u], sums); /* none is below 0 */
    }
}

static void column_factors(Powers *job, int64_t head)
{
    const double *sums = job->sums + head * job->strips * job->b;
    double       *column = job->column + head * job->b;

    memcpy(column, sums, (size_t)job->b * sizeof(*column));
    for (int64_t x = 1; x < job->strips; x++)
        for (int64_t v = 0; v < job->b; v++)
            column[v] += sums[x * job->b + v];
    for (int64_t v = 0; v < job->b; v++)
        column[v] = 1 / column[v];
}

void cpu_balance(Run *r, Balancing *b)
{
    ArenaMark mark = arena_mark(r->arena);
    Powers    job = powers_of(b);

    job.sums = cpu_scratch(r, job.heads * job.strips, job.b * (int64_t)sizeof(*job.sums));
    if (job.sums)
        powers_run(r, &job, factor_item);
    for (int64_t head = 0; head < job.heads && job.sums; head++)
        column_factors(&job, head);
    arena_release(r->arena, mark);
}

static void share_item(void *context, int64_t item, int worker)
{
    const Kernel *kernel = kernel_at(0);
    const Powers *job = context;
    Strip         s = strip_of(job, item);
    const double *k = strip_rows(job, job->k, s), *row = job->row + s.head * job->b + s.first;
    double       *p = strip_rows(job, job->p, s);

    (void)worker;
    for (int64_t u = 0; u < s.rows; u++, k += job->b, p += job->b) {
        if (p != k)
            memcpy(p, k, (size_t)job->b * sizeof(*p));
        kernel->scale64(p, job->b, row[u]);
        kernel->times64(p, job->column + s.head * job->b, job->b);
    }
}

void cpu_balance_shares(Run *r, const Balancing *b, Tensor *p)
{
    Powers job = powers_of(b);

    job.p = p->data;
    powers_run(r, &job, share_item);
}

/* ---- mixed blocks ------------------------------------------------------------ */

typedef struct Mix {
    const Tensor *perm, *x;
    int64_t       b, rows, nb, strips; /* strips: of a block's columns */
    float        *share;               /* [h][rows padded to TILE_ROWS][nb] */
    float        *strip;               /* [workers][nb][TILE_KEYS] */
    Tensor       *y;
} Mix;

/* Columns [first, first + count) of all blocks, one row a block; 0 behind the last token. */
static void take_strip(const Mix *job, int64_t head, int64_t first, int64_t count, float *to)
{
    int64_t      w = job->x->shape[2], end = job->x->shape[1] * w, block = job->b * w;
    const float *x = tensor_head(job->x, head, job->y->shape[0]);

    for (int64_t v = 0; v < job->nb; v++, to += TILE_KEYS) {
        int64_t at = v * block + first, given = min_i64(count, max_i64(0, end - at));

        memcpy(to, x + at, (size_t)given * sizeof(*to));
        memset(to + given, 0, (size_t)(count - given) * sizeof(*to));
    }
}

/* An item is a strip of the columns of one head. */
static void mix_item(void *context, int64_t item, int worker)
{
    static const float none[TILE_ROWS] = { 0 };
    const Mix         *job = context;
    int64_t            head = item / job->strips, first = item % job->strips * TILE_KEYS;
    int64_t            block = job->b * job->x->shape[2];
    int64_t            count = min_i64(TILE_KEYS, block - first);
    float             *strip = job->strip + worker * job->nb * TILE_KEYS;
    const float       *share = job->share + head * round_up_to(job->rows, TILE_ROWS) * job->nb;
    float             *y = tensor_f32(job->y) + head * job->y->stride[0] + first;
    float              tile[TILE_ROWS * TILE_KEYS] = { 0 };

    take_strip(job, head, first, count, strip);
    for (int64_t u = 0; u < job->rows; u += TILE_ROWS) {
        kernel_at(0)->mix(share + u * job->nb, job->nb, strip, TILE_KEYS, job->nb, count, none,
                          tile, TILE_KEYS);
        for (int64_t r = 0; r < min_i64(TILE_ROWS, job->rows - u); r++)
            memcpy(y + (u + r) * block, tile + r * TILE_KEYS, (size_t)count * sizeof(*y));
    }
}

/* An item is one row of shares of a head; padding rows are 0. */
static void round_item(void *context, int64_t item, int worker)
{
    const Mix    *job = context;
    int64_t       padded = round_up_to(job->rows, TILE_ROWS), nb = job->nb, u = item % padded;
    const double *row = (const double *)tensor_head(job->perm, item / padded, job->y->shape[0]) +
                        u * nb;

    (void)worker;
    for (int64_t v = 0; v < nb; v++)
        job->share[item * nb + v] = u < job->rows ? (float)row[v] : 0;
}

void cpu_mix_blocks(Run *r, const Tensor *perm, const Tensor *x, int64_t b, Tensor *y)
{
    ArenaMark mark = arena_mark(r->arena);
    Mix       job = { .perm = perm, .x = x, .b = b, .nb = perm->shape[2], .y = y,
                      .strips = ceil_div(b * x->shape[2], TILE_KEYS) };
    int64_t   h = y->shape[0], f = (int64_t)sizeof(float);

    job.rows = y->shape[1] / b;
    job.share = cpu_scratch(r, h * round_up_to(job.rows, TILE_ROWS), job.nb * f);
    job.strip = cpu_scratch(r, threads_count(r->threads) * TILE_KEYS, job.nb * f);
    if (job.share && job.strip) {
        threads_run(r->threads, h * round_up_to(job.rows, TILE_ROWS), round_item, &job);
        threads_run(r->threads, h * job.strips, mix_item, &job);
    }
    arena_release(r->arena, mark);
}
