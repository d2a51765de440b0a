/* gemm.c -- dense products by OpenBLAS, one thread per call, parallel outside.
 *
 * The rows of c go in blocks of fixed size, so the result does not depend on
 * the number of threads.
 */
#include "attn/cpu/cpu.h"

#include <cblas.h>

#define GEMM_ROWS 256

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

void cpu_single_blas(void)
{
    if (openblas_get_num_threads() != 1)
        openblas_set_num_threads(1);
}

typedef struct Job {
    Run          *run;
    const Tensor *a, *b;
    bool          ta, tb;
    float         alpha, beta;
    Tensor       *c;
    int64_t       blocks;
} Job;

static void gemm_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    h = job->c->shape[0], head = item / job->blocks;
    int64_t    first = item % job->blocks * GEMM_ROWS;
    Matrix     a = { tensor_head(job->a, head, h), job->a->stride[1], job->ta };
    Matrix     b = { tensor_head(job->b, head, h), job->b->stride[1], job->tb };
    float     *c = (float *)job->c->data + head * job->c->stride[0] + first * job->c->stride[1];

    (void)worker;
    if (cpu_cancelled(job->run))
        return;
    a.data += job->ta ? first : first * a.ld;
    cpu_sgemm(a, b, min_i64(GEMM_ROWS, job->c->shape[1] - first), job->c->shape[2],
              job->a->shape[job->ta ? 1 : 2], job->alpha, job->beta, c, job->c->stride[1]);
}

void cpu_gemm(Run *r, const Tensor *a, bool ta, const Tensor *b, bool tb, double alpha,
              double beta, Tensor *c)
{
    Job job = { .run = r, .a = a, .b = b, .ta = ta, .tb = tb, .alpha = (float)alpha,
                .beta = (float)beta, .c = c, .blocks = ceil_div(c->shape[1], GEMM_ROWS) };

    cpu_single_blas();
    threads_run(r->threads, c->shape[0] * job.blocks, gemm_item, &job);
}
