/* pinv.c -- the Moore-Penrose inverse through singular values (one-sided Jacobi).
 *
 * Rotations of column pairs of B = A make the columns orthogonal, B = A V; then
 * their lengths are the singular values s_c and the columns of B are s_c u_c:
 *
 *     A^+ = sum over s_c > rcond max s of v_c b_c^T / s_c^2
 *
 * Small singular values come out with their full relative accuracy, which the
 * cut at rcond needs.  Matrices are kept by columns, one after the other.
 */
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <float.h>
#include <math.h>
#include <string.h>

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

/* Makes columns p and q orthogonal; false: they were. */
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
    double       *y = (double *)job->y->data + head * n * n;
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
