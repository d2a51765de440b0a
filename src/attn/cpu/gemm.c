/* gemm.c -- dense products by OpenBLAS, one thread per call, parallel outside.
 *
 * The rows of c go in blocks of fixed size, so the result does not depend on
 * the number of threads.
 */
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <cblas.h>

#define GEMM_ROWS 256 /* of a block, fewer where c has few rows */
#define GEMM_BLOCKS 8
#define GEMM_LEAST 32
#define GEMM_ITEMS 16 /* in double, of all heads: every block of rows widens its factors again */

void cpu_sgemm(Matrix a, Matrix b, int64_t rows, int64_t cols, int64_t inner, float alpha,
               float beta, float *c, int64_t ldc)
{
    if (rows <= 0 || cols <= 0)
        return;
    cblas_sgemm(CblasRowMajor, a.turned ? CblasTrans : CblasNoTrans,
                b.turned ? CblasTrans : CblasNoTrans, (blasint)rows, (blasint)cols,
                (blasint)inner, alpha, a.data, (blasint)a.ld, b.data, (blasint)b.ld, beta, c,
                (blasint)ldc);
}

void cpu_dgemm(WideMatrix a, WideMatrix b, int64_t rows, int64_t cols, int64_t inner,
               double alpha, double beta, double *c, int64_t ldc)
{
    if (rows <= 0 || cols <= 0)
        return;
    cblas_dgemm(CblasRowMajor, a.turned ? CblasTrans : CblasNoTrans,
                b.turned ? CblasTrans : CblasNoTrans, (blasint)rows, (blasint)cols,
                (blasint)inner, alpha, a.data, (blasint)a.ld, b.data, (blasint)b.ld, beta, c,
                (blasint)ldc);
}

void cpu_single_blas(void)
{
    if (openblas_get_num_threads() != 1)
        openblas_set_num_threads(1);
}

typedef struct Job {
    Run          *run;
    const Tensor *a, *b;
    bool          ta, tb;
    double        alpha, beta;
    Tensor       *c;
    double       *work; /* f64 only: [workers] tiles of a and b */
    int64_t       blocks, rows; /* per head; of a block */
} Job;

static void gemm_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    h = job->c->shape[0], head = item / job->blocks;
    int64_t    first = item % job->blocks * job->rows;
    Matrix     a = { tensor_head(job->a, head, h), job->a->stride[1], job->ta };
    Matrix     b = { tensor_head(job->b, head, h), job->b->stride[1], job->tb };
    float     *c = (float *)job->c->data + head * job->c->stride[0] + first * job->c->stride[1];

    (void)worker;
    if (cpu_cancelled(job->run))
        return;
    a.data += job->ta ? first : first * a.ld;
    cpu_sgemm(a, b, min_i64(job->rows, job->c->shape[1] - first), job->c->shape[2],
              job->a->shape[job->ta ? 1 : 2], (float)job->alpha, (float)job->beta, c,
              job->c->stride[1]);
}

/* ---- c in double: tiles, so that f32 factors can be widened piece by piece ------ */

#define TILE_COLS 512
#define TILE_INNER 256

/* A piece of op(t): rows [i, i + rows), columns [j, j + cols), widened into `to`
 * unless it is f64 already. */
static WideMatrix piece(const Tensor *t, int64_t head, int64_t heads, bool turned, int64_t i,
                        int64_t rows, int64_t j, int64_t cols, double *to)
{
    const void *slice = tensor_head(t, head, heads);
    int64_t     ld = t->stride[1], at = turned ? j * ld + i : i * ld + j;

    if (t->dtype == DT_F64)
        return (WideMatrix){ (const double *)slice + at, ld, turned };
    for (int64_t y = 0; y < (turned ? cols : rows); y++) {
        const float *from = (const float *)slice + at + y * ld;
        int64_t      count = turned ? rows : cols;

        for (int64_t x = 0; x < count; x++)
            to[y * count + x] = (double)from[x];
    }
    return (WideMatrix){ to, turned ? rows : cols, turned };
}

static void gemm_item_wide(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    h = job->c->shape[0], cols = job->c->shape[2];
    int64_t    tiles = ceil_div(cols, TILE_COLS), at = item % tiles * TILE_COLS;
    int64_t    head = item / tiles / job->blocks, first = item / tiles % job->blocks * job->rows;
    int64_t    rows = min_i64(job->rows, job->c->shape[1] - first);
    int64_t    wide = min_i64(TILE_COLS, cols - at), inner = job->a->shape[job->ta ? 1 : 2];
    double    *c = (double *)job->c->data + head * job->c->stride[0] + first * job->c->stride[1];
    double    *left = job->work + worker * TILE_INNER * (GEMM_ROWS + TILE_COLS);

    for (int64_t t = 0; t < inner && !cpu_cancelled(job->run); t += TILE_INNER) {
        int64_t    depth = min_i64(TILE_INNER, inner - t);
        WideMatrix a = piece(job->a, head, h, job->ta, first, rows, t, depth, left);
        WideMatrix b = piece(job->b, head, h, job->tb, t, depth, at, wide,
                             left + TILE_INNER * GEMM_ROWS);

        cpu_dgemm(a, b, rows, wide, depth, job->alpha, t ? 1 : job->beta, c + at,
                  job->c->stride[1]);
    }
}

static void gemm_wide(Job *job)
{
    Run      *r = job->run;
    ArenaMark mark = arena_mark(r->arena);
    int64_t   tiles = job->c->shape[0] * job->blocks * ceil_div(job->c->shape[2], TILE_COLS);

    job->work = cpu_scratch(r, threads_count(r->threads) * TILE_INNER,
                            (GEMM_ROWS + TILE_COLS) * (int64_t)sizeof(double));
    if (job->work)
        threads_run(r->threads, tiles, gemm_item_wide, job);
    arena_release(r->arena, mark);
}

void cpu_gemm(Run *r, const Tensor *a, bool ta, const Tensor *b, bool tb, double alpha,
              double beta, Tensor *c)
{
    Job job = { .run = r, .a = a, .b = b, .ta = ta, .tb = tb, .alpha = alpha,
                .beta = beta, .c = c };

    job.blocks = c->dtype == DT_F64 ? ceil_div(GEMM_ITEMS, c->shape[0]) : GEMM_BLOCKS;
    job.rows = round_up_to(ceil_div(c->shape[1], job.blocks), GEMM_LEAST);
    job.rows = max_i64(GEMM_LEAST, min_i64(GEMM_ROWS, job.rows));
    job.blocks = ceil_div(c->shape[1], job.rows);
    cpu_single_blas();
    if (c->dtype == DT_F64)
        gemm_wide(&job);
    else
        threads_run(r->threads, c->shape[0] * job.blocks, gemm_item, &job);
}
