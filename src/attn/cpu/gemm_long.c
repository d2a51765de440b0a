/* gemm_long.c -- products with a long inner axis: projections along the sequence.
 *
 *     c = alpha a b,    c f64 [rows,cols], a f32 [rows,inner], b f32 [inner,cols]
 *
 * A float sum of tens of thousands of products would lose the digits that the attention
 * after it needs; all in double runs at half the speed.  So pieces of PIECE products are
 * summed in float, by the tiles of attention's mixing, and the pieces in double.  Rows go
 * in blocks; where these are few the inner axis is cut into slices that are added in order.
 * Both depend on the shapes only, so threads change no bit.
 */
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <string.h>

#define PIECE 256         /* b's part stays in the second-level cache for all rows of a block */
#define BLOCK_ROWS 96     /* whole tiles */
#define SLICE_LEAST 4096  /* whole pieces */
#define ITEMS 16          /* enough for every thread */

typedef struct Job {
    Run          *run;
    const Kernel *kernel;
    const Tensor *a, *b;
    Tensor       *c;
    double        alpha;
    int64_t       h, rows, cols, inner, blocks, slices, slice;
    int64_t       lda;    /* of a tile's float sums */
    double       *parts;  /* [h][slices][rows][cols] */
    float        *work;   /* [workers][TILE_ROWS][lda], then [TILE_ROWS][PIECE] of a short tile */
    int64_t       work_size;
} Job;

/* part += rows [row, row + TILE_ROWS) times the piece of b from `at`. */
static void add_tile(const Job *job, int64_t head, int64_t row, int64_t at, int64_t depth,
                     float *sums, double *part)
{
    static const float zeros[TILE_ROWS] = { 0 };
    const Tensor      *b = job->b;
    int64_t            ld = job->a->stride[1], count = min_i64(TILE_ROWS, job->rows - row);
    const float       *a = (const float *)tensor_head(job->a, head, job->h) + row * ld + at;
    float             *last = sums + TILE_ROWS * job->lda;

    for (int64_t r = 0; r < count && count < TILE_ROWS; r++)
        memcpy(last + r * PIECE, a + r * ld, (size_t)depth * sizeof(*last));
    job->kernel->mix(count < TILE_ROWS ? last : a, count < TILE_ROWS ? PIECE : ld,
                     (const float *)tensor_head(b, head, job->h) + at * b->stride[1],
                     b->stride[1], depth, job->cols, zeros, sums, job->lda);
    for (int64_t r = 0; r < count; r++)
        job->kernel->fold(sums + r * job->lda, job->cols, part + r * job->cols);
}

static void part_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    block = item % job->blocks, at_slice = item / job->blocks;
    int64_t    head = at_slice / job->slices, first = block * BLOCK_ROWS;
    int64_t    from = at_slice % job->slices * job->slice;
    int64_t    to = min_i64(job->inner, from + job->slice);
    int64_t    end = min_i64(job->rows, first + BLOCK_ROWS);
    double    *part = job->parts + at_slice * job->rows * job->cols;
    float     *sums = job->work + worker * job->work_size;

    memset(sums, 0, (size_t)job->work_size * sizeof(*sums));
    memset(part + first * job->cols, 0, (size_t)((end - first) * job->cols) * sizeof(*part));
    for (int64_t at = from; at < to && !cpu_cancelled(job->run); at += PIECE)
        for (int64_t row = first; row < end; row += TILE_ROWS)
            add_tile(job, head, row, at, min_i64(PIECE, to - at), sums, part + row * job->cols);
}

static void sum_item(void *context, int64_t item, int worker)
{
    const Job    *job = context;
    int64_t       head = item / job->rows, row = item % job->rows, size = job->rows * job->cols;
    const double *part = job->parts + head * job->slices * size + row * job->cols;
    double       *c = (double *)job->c->data + head * job->c->stride[0] + row * job->c->stride[1];

    (void)worker;
    for (int64_t x = 0; x < job->cols; x++) {
        double sum = 0;

        for (int64_t s = 0; s < job->slices; s++)
            sum += part[s * size + x];
        c[x] = job->alpha * sum;
    }
}

void cpu_gemm_long(Run *r, const Tensor *a, const Tensor *b, double alpha, Tensor *c)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = { .run = r, .kernel = kernel_at(0), .a = a, .b = b, .c = c, .alpha = alpha,
                      .h = c->shape[0], .rows = c->shape[1], .cols = c->shape[2],
                      .inner = a->shape[2] };
    int64_t   many, workers = threads_count(r->threads);

    job.blocks = ceil_div(job.rows, BLOCK_ROWS);
    many = ceil_div(ITEMS, max_i64(1, job.h * job.blocks));
    job.slice = max_i64(SLICE_LEAST, round_up_to(ceil_div(job.inner, many), PIECE));
    job.slices = max_i64(1, ceil_div(job.inner, job.slice));
    job.lda = round_up_to(job.cols, LANES);
    job.work_size = TILE_ROWS * (job.lda + PIECE);
    job.parts = cpu_scratch(r, job.h * job.slices,
                            job.rows * job.cols * (int64_t)sizeof(*job.parts));
    job.work = cpu_scratch(r, workers, job.work_size * (int64_t)sizeof(*job.work));
    if (job.parts && job.work) {
        threads_run(r->threads, job.h * job.slices * job.blocks, part_item, &job);
        threads_run(r->threads, job.h * job.rows, sum_item, &job);
    }
    arena_release(r->arena, mark);
}
