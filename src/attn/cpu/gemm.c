/* gemm.c -- dense products by OpenBLAS, one thread per call, parallel outside.
 *
 * The rows of c go in blocks of fixed size, so the result does not depend on
 * the number of threads.
 */
#include <cblas.h>
#include <string.h>

#include "attn/cpu/blas.h"
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#define GEMM_ROWS 256 /* of a block, fewer where c has few rows */
#define GEMM_BLOCKS 8
#define GEMM_LEAST 32
#define NARROW 64        /* columns of c, whose products have no copies */
#define NARROW_ROWS 96   /* whole tiles */
#define NARROW_PIECE 128 /* of the inner axis */
#define ROWS_AHEAD 8     /* that are prefetched before they are standardised */
#define ALONE (1 << 18)  /* multiply-adds: about ten microseconds */
#define GEMM_ITEMS 16 /* in double, over all heads: few, as each block widens its factors again */

void cpu_sgemm(Matrix a, Matrix b, int64_t rows, int64_t cols, int64_t inner, float alpha,
               float beta, float *c, int64_t ldc)
{
    if (rows <= 0 || cols <= 0)
        return;
    blas_enter();
    cblas_sgemm(CblasRowMajor, a.turned ? CblasTrans : CblasNoTrans,
                b.turned ? CblasTrans : CblasNoTrans, (blasint)rows, (blasint)cols,
                (blasint)inner, alpha, a.data, (blasint)a.ld, b.data, (blasint)b.ld, beta, c,
                (blasint)ldc);
    blas_leave();
}

/* BLAS refuses an lda below the row's length, which a lone row of turned features has. */
static Matrix left_of(const SmallProduct *p)
{
    return p->step == 1 ? (Matrix){ p->a, p->rows == 1 ? p->inner : p->lda, false }
                        : (Matrix){ p->a, p->step, true };
}

void cpu_product(const SmallProduct *p)
{
    const Kernel *kernel = kernel_at(0);

    if (kernel != &kernel_generic)
        kernel->product(p);
    else
        cpu_sgemm(left_of(p), (Matrix){ p->b, p->ldb, false }, p->rows, p->cols, p->inner, p->alpha,
                  p->add ? 1 : 0, p->c, p->ldc);
}

void cpu_dgemm(WideMatrix a, WideMatrix b, int64_t rows, int64_t cols, int64_t inner,
               double alpha, double beta, double *c, int64_t ldc)
{
    if (rows <= 0 || cols <= 0)
        return;
    blas_enter();
    cblas_dgemm(CblasRowMajor, a.turned ? CblasTrans : CblasNoTrans,
                b.turned ? CblasTrans : CblasNoTrans, (blasint)rows, (blasint)cols,
                (blasint)inner, alpha, a.data, (blasint)a.ld, b.data, (blasint)b.ld, beta, c,
                (blasint)ldc);
    blas_leave();
}

bool cpu_blas(Run *r)
{
    Error err = ERROR_INIT;

    if (!blas_ready(threads_count(r->threads), &err))
        run_fail(r, err.code, "%s", err.text);
    r->blas = true;
    return !run_failed(r);
}

typedef struct Job {
    Run          *run;
    const Tensor *a, *b;
    bool          ta, tb;
    double        alpha, beta;
    Tensor       *c;
    double       *work;        /* f64 only: [workers] tiles of a and b */
    int64_t       left, right; /* doubles of one tile of each */
    int64_t       blocks, rows; /* per head; of a block */
} Job;

/* Threads for the product; NULL where it is done before a second one is awake: a step of decoding
 * multiplies one row a head. */
static Threads *threads_of(const Job *job)
{
    bool alone = tensor_count(job->c) * job->a->shape[job->ta ? 1 : 2] <= ALONE;

    return alone ? NULL : job->run->threads;
}

/* Few columns and rows of a that are read once: OpenBLAS would copy a, which costs half as much as
 * the product.  A piece of b stays in the first-level cache for some rows. */
static bool is_narrow(const Job *job)
{
    return job->c->shape[2] <= NARROW && !job->ta && !job->tb && job->beta == 0 &&
           kernel_at(0) != &kernel_generic;
}

/* c, of `rows` rows from those at a on. */
static void gemm_narrow(const Job *job, const float *a, const float *b, int64_t rows, float *c)
{
    int64_t inner = job->a->shape[2];

    if (inner == 0)
        for (int64_t r = 0; r < rows; r++)
            memset(c + r * job->c->stride[1], 0, (size_t)job->c->shape[2] * sizeof(*c));
    for (int64_t r = 0; r < rows; r += NARROW_ROWS)
        for (int64_t t = 0; t < inner; t += NARROW_PIECE)
            kernel_at(0)->product(&(SmallProduct){
                .a = a + r * job->a->stride[1] + t, .lda = job->a->stride[1], .step = 1,
                .b = b + t * job->b->stride[1], .ldb = job->b->stride[1],
                .rows = min_i64(NARROW_ROWS, rows - r), .cols = job->c->shape[2],
                .inner = min_i64(NARROW_PIECE, inner - t), .alpha = (float)job->alpha,
                .add = t > 0, .c = c + r * job->c->stride[1], .ldc = job->c->stride[1] });
}

static void gemm_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    h = job->c->shape[0], head = item / job->blocks;
    int64_t    first = item % job->blocks * job->rows;
    Matrix     a = { tensor_head(job->a, head, h), job->a->stride[1], job->ta };
    Matrix     b = { tensor_head(job->b, head, h), job->b->stride[1], job->tb };
    float     *c = tensor_f32(job->c) + head * job->c->stride[0] + first * job->c->stride[1];

    (void)worker;
    if (cpu_cancelled(job->run))
        return;
    a.data += job->ta ? first : first * a.ld;
    if (is_narrow(job))
        gemm_narrow(job, a.data, b.data, min_i64(job->rows, job->c->shape[1] - first), c);
    else
        cpu_sgemm(a, b, min_i64(job->rows, job->c->shape[1] - first), job->c->shape[2],
              job->a->shape[job->ta ? 1 : 2], (float)job->alpha, (float)job->beta, c,
              job->c->stride[1]);
}

/* ---- few columns of each head, of rows that all heads share ----------------------- */

/* One product whose columns are those of all heads: rows are read once, and vectors are full. */
typedef struct SharedJob {
    Job           product; /* of a and columns */
    Tensor        columns; /* [1,inner,h cols] */
    Tensor        sums;    /* [1,workers rows,h cols] */
    Tensor       *c;
} SharedJob;

static bool is_shared(const Job *job)
{
    int64_t h = job->c->shape[0];

    return h > 1 && job->a->shape[0] == 1 && job->b->shape[0] == h && is_narrow(job) &&
           h * job->c->shape[2] <= NARROW && job->c->shape[1] >= GEMM_LEAST;
}

static void shared_item(void *context, int64_t item, int worker)
{
    const SharedJob *job = context;
    const Job       *p = &job->product;
    Tensor          *c = job->c;
    int64_t          h = c->shape[0], cols = c->shape[2], first = item * p->rows;
    int64_t          rows = min_i64(p->rows, c->shape[1] - first), ld = job->sums.stride[1];
    float           *sums = tensor_f32(&job->sums) + worker * p->rows * ld;

    if (cpu_cancelled(p->run))
        return;
    gemm_narrow(p, tensor_row_f32(p->a, 0, 1, first), tensor_f32(&job->columns), rows, sums);
    for (int64_t t = 0; t < h; t++)
        for (int64_t i = 0; i < rows; i++)
            memcpy(tensor_f32(c) + t * c->stride[0] + (first + i) * c->stride[1],
                   sums + i * ld + t * cols, (size_t)cols * sizeof(*sums));
}

/* The heads' matrices b [h,inner,cols] side by side, to [inner][h cols]. */
static void join_columns(const Tensor *b, int64_t h, float *to)
{
    int64_t inner = b->shape[1], cols = b->shape[2];

    for (int64_t t = 0; t < h; t++)
        for (int64_t x = 0; x < inner; x++)
            memcpy(to + (x * h + t) * cols, tensor_row_f32(b, t, h, x), (size_t)cols * sizeof(*to));
}

static void gemm_shared(const Job *of)
{
    Run      *r = of->run;
    ArenaMark mark = arena_mark(r->arena);
    SharedJob job = { .product = *of, .c = of->c };
    int64_t   h = of->c->shape[0], cols = of->c->shape[2], inner = of->a->shape[2];
    int64_t   workers = threads_count(r->threads), f = (int64_t)sizeof(float);
    float    *columns = cpu_scratch(r, inner * h * cols, f);
    float    *sums = cpu_scratch(r, workers * of->rows * h * cols, f);

    job.columns = tensor_of(DT_F32, 3, (int64_t[]){ 1, inner, h * cols }, columns);
    job.sums = tensor_of(DT_F32, 3, (int64_t[]){ 1, workers * of->rows, h * cols }, sums);
    job.product.b = &job.columns;
    job.product.c = &job.sums;
    if (columns)
        join_columns(of->b, h, columns);
    if (columns && sums)
        threads_run(threads_of(of), of->blocks, shared_item, &job);
    arena_release(r->arena, mark);
}

/* ---- rows standardised, and multiplied while they are in the caches --------------- */

typedef struct StandardJob {
    Job                 product; /* of z, `rows` at a time */
    const Standardised *in;
    Tensor              z;       /* [1,workers rows,inner] */
} StandardJob;

static void standardised_item(void *context, int64_t item, int worker)
{
    const StandardJob *job = context;
    const Job         *p = &job->product;
    const Tensor      *x = &job->in->x;
    int64_t            first = item * p->rows, rows = min_i64(p->rows, p->c->shape[1] - first);
    int64_t            inner = x->shape[2], ld = p->c->stride[1];
    float             *z = tensor_f32(&job->z) + worker * p->rows * inner;
    float             *c = tensor_f32(p->c) + first * ld;

    if (cpu_cancelled(p->run))
        return;
    for (int64_t i = 0; i < rows; i++) {
        if (first + i + ROWS_AHEAD < x->shape[1])
            cpu_fetch(tensor_row_f32(x, 0, 1, first + i + ROWS_AHEAD), inner);
        kernel_at(0)->standardise(tensor_row_f32(x, 0, 1, first + i), inner, job->in->eps,
                                  job->in->gain, job->in->bias, z + i * inner);
    }
    if (is_narrow(p))
        gemm_narrow(p, z, tensor_f32(p->b), rows, c);
    else
        cpu_sgemm((Matrix){ z, inner, false }, (Matrix){ tensor_f32(p->b), p->b->stride[1], false },
                  rows, p->c->shape[2], inner, 1, 0, c, ld);
}

void cpu_standardised_product(Run *r, const Standardised *in, const Tensor *w, Tensor *y)
{
    ArenaMark   mark = arena_mark(r->arena);
    StandardJob job = { .product = { .run = r, .b = w, .alpha = 1, .c = y }, .in = in };
    int64_t     inner = in->x.shape[2], workers = threads_count(r->threads);

    job.product.a = &job.z;
    job.product.rows = is_narrow(&job.product) ? NARROW_ROWS : GEMM_ROWS;
    job.z = tensor_of(DT_F32, 3, (int64_t[]){ 1, workers * job.product.rows, inner }, NULL);
    job.z.data = cpu_scratch(r, tensor_count(&job.z), (int64_t)sizeof(float));
    if (job.z.data && cpu_blas(r))
        threads_run(r->threads, ceil_div(y->shape[1], job.product.rows), standardised_item, &job);
    arena_release(r->arena, mark);
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

        floats_widen(DT_F32, from, 0, count, to + y * count);
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
    double    *c = tensor_f64(job->c) + head * job->c->stride[0] + first * job->c->stride[1];
    double    *left = job->work + worker * (job->left + job->right);

    for (int64_t t = 0; t < inner && !cpu_cancelled(job->run); t += TILE_INNER) {
        int64_t    depth = min_i64(TILE_INNER, inner - t);
        WideMatrix a = piece(job->a, head, h, job->ta, first, rows, t, depth, left);
        WideMatrix b = piece(job->b, head, h, job->tb, t, depth, at, wide,
                             left + job->left);

        cpu_dgemm(a, b, rows, wide, depth, job->alpha, t ? 1 : job->beta, c + at,
                  job->c->stride[1]);
    }
}

/* One row of floats a head, which is multiplied sooner than its factors are widened and packed. */
static bool is_row(const Job *job)
{
    return job->c->shape[1] == 1 && !job->ta && job->a->dtype == DT_F32 &&
           job->b->dtype == DT_F32 && job->beta == 0 && !threads_of(job);
}

static void gemm_rows(const Job *job)
{
    const Kernel *kernel = kernel_at(0);
    int64_t       h = job->c->shape[0], cols = job->c->shape[2], inner = job->a->shape[2];
    double       *row = cpu_scratch(job->run, inner, sizeof(*row));

    for (int64_t head = 0; row && head < h; head++) {
        const float *b = tensor_head(job->b, head, h);
        double      *c = tensor_f64(job->c) + head * job->c->stride[0];

        floats_widen(DT_F32, tensor_head(job->a, head, h), 0, inner, row);
        memset(c, 0, (size_t)cols * sizeof(*c));
        if (job->tb)
            kernel->dots_wide(row, b, job->b->stride[1], cols, inner, c);
        else
            kernel->mix_wide(row, b, job->b->stride[1], inner, cols, c);
        kernel->scale64(c, cols, job->alpha);
    }
}

/* Room for the factors of one tile; what is f64 stays where it is. */
static void wide_room(Job *job)
{
    Run    *r = job->run;
    int64_t depth = min_i64(TILE_INNER, job->a->shape[job->ta ? 1 : 2]);

    job->left = job->a->dtype == DT_F64 ? 0 : round_up_to(job->rows * depth, LINE);
    job->right = job->b->dtype == DT_F64
                     ? 0
                     : round_up_to(min_i64(TILE_COLS, job->c->shape[2]) * depth, LINE);
    job->work = cpu_scratch(r, threads_count(r->threads),
                            max_i64(1, job->left + job->right) * (int64_t)sizeof(double));
}

static void gemm_wide(Job *job)
{
    Run      *r = job->run;
    ArenaMark mark = arena_mark(r->arena);
    int64_t   tiles = job->c->shape[0] * job->blocks * ceil_div(job->c->shape[2], TILE_COLS);

    if (is_row(job))
        gemm_rows(job);
    else
        wide_room(job);
    if (job->work)
        threads_run(threads_of(job), tiles, gemm_item_wide, job);
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
    if (!cpu_blas(r))
        return;
    if (c->dtype == DT_F64)
        gemm_wide(&job);
    else if (is_shared(&job))
        gemm_shared(&job);
    else
        threads_run(threads_of(&job), c->shape[0] * job.blocks, gemm_item, &job);
}

/* Products with a long inner axis: projections along the sequence.
 *
 *     c = alpha a b,    c f64 [rows,cols], a f32 [rows,inner], b f32 [inner,cols]
 *
 * A float sum of tens of thousands of products is too inexact for the attention that follows,
 * and double runs at half the speed.  So PIECE products at a time are summed in float, by the
 * kernel `mix`, and these sums in double.  Rows go in blocks; where blocks are few the inner axis
 * is cut into slices that are added in order.  Both depend on the shapes only, so the number of
 * threads changes no bit.  A row that is not cut is summed where it stays.  One column a head, of
 * rows that all heads share, is one product whose columns are the heads.
 */

#define PIECE 256         /* this part of b stays in the second-level cache for a whole block */
#define BLOCK_ROWS 96     /* whole tiles */
#define SLICE_LEAST 4096  /* whole pieces */
#define ITEMS 16          /* enough for every thread */

typedef struct LongJob {
    Run          *run;
    const Kernel *kernel;
    const Tensor *a, *b;
    Tensor       *c;
    double        alpha;
    int64_t       h, rows, cols, inner, blocks, slices, slice;
    int64_t       lda;    /* of a tile's float sums */
    double       *parts;  /* [h][slices][rows][cols]; c itself where a row is not cut */
    float        *work;   /* [workers][TILE_ROWS][lda], then [TILE_ROWS][PIECE] of a short tile */
    int64_t       work_size;
} LongJob;

/* part += rows [row, row + TILE_ROWS) times the piece of b from `at`. */
static void add_tile(const LongJob *job, int64_t head, int64_t row, int64_t at, int64_t depth,
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
    const LongJob *job = context;
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
    if (job->slices == 1)
        job->kernel->scale64(part + first * job->cols, (end - first) * job->cols, job->alpha);
}

static void add_pieces_item(void *context, int64_t item, int worker)
{
    const LongJob    *job = context;
    int64_t       head = item / job->rows, row = item % job->rows, size = job->rows * job->cols;
    const double *part = job->parts + head * job->slices * size + row * job->cols;
    double       *c = tensor_f64(job->c) + head * job->c->stride[0] + row * job->c->stride[1];

    (void)worker;
    for (int64_t x = 0; x < job->cols; x++) {
        double sum = 0;

        for (int64_t s = 0; s < job->slices; s++)
            sum += part[s * size + x];
        c[x] = job->alpha * sum;
    }
}

/* c through a scratch product [1,rows,h]. */
static void gemm_of_heads(Run *r, const Tensor *a, const Tensor *b, double alpha, Tensor *c)
{
    int64_t   h = c->shape[0], rows = c->shape[1], inner = a->shape[2];
    ArenaMark mark = arena_mark(r->arena);
    float    *weight = cpu_scratch(r, inner * h, (int64_t)sizeof(*weight));
    double   *both = cpu_scratch(r, rows * h, (int64_t)sizeof(*both));
    Tensor    columns = tensor_of(DT_F32, 3, (int64_t[]){ 1, inner, h }, weight);
    Tensor    sums = tensor_of(DT_F64, 3, (int64_t[]){ 1, rows, h }, both);

    if (weight)
        join_columns(b, h, weight);
    if (weight && both)
        cpu_gemm_long(r, a, &columns, alpha, &sums);
    for (int64_t t = 0; t < h && weight && both; t++)
        for (int64_t i = 0; i < rows; i++)
            tensor_f64(c)[t * c->stride[0] + i * c->stride[1]] = both[i * h + t];
    arena_release(r->arena, mark);
}

static void run_long(LongJob *job)
{
    Run *r = job->run;

    threads_run(r->threads, job->h * job->slices * job->blocks, part_item, job);
    if (job->slices > 1)
        threads_run(r->threads, job->h * job->rows, add_pieces_item, job);
}

void cpu_gemm_long(Run *r, const Tensor *a, const Tensor *b, double alpha, Tensor *c)
{
    ArenaMark mark = arena_mark(r->arena);
    LongJob       job = { .run = r, .kernel = kernel_at(0), .a = a, .b = b, .c = c, .alpha = alpha,
                          .h = c->shape[0], .rows = c->shape[1], .cols = c->shape[2],
                          .inner = a->shape[2] };
    int64_t   many, workers = threads_count(r->threads);

    if (job.cols == 1 && job.h > 1 && a->shape[0] == 1) {
        gemm_of_heads(r, a, b, alpha, c);
        return;
    }
    job.blocks = ceil_div(job.rows, BLOCK_ROWS);
    many = ceil_div(ITEMS, max_i64(1, job.h * job.blocks));
    job.slice = max_i64(SLICE_LEAST, round_up_to(ceil_div(job.inner, many), PIECE));
    job.slices = max_i64(1, ceil_div(job.inner, job.slice));
    job.lda = round_up_to(job.cols, LANES);
    job.work_size = TILE_ROWS * (job.lda + PIECE);
    job.parts = job.slices == 1 ? tensor_f64(c)
                                : cpu_scratch(r, job.h * job.slices,
                                              job.rows * job.cols * (int64_t)sizeof(*job.parts));
    job.work = cpu_scratch(r, workers, job.work_size * (int64_t)sizeof(*job.work));
    if (job.parts && job.work)
        run_long(&job);
    arena_release(r->arena, mark);
}

/* Convolutions whose taps may differ by channel and by row; see op_tap_sums.
 *
 * The sums of a row are in double, COLUMNS at a time, so that they stay in the first-level cache.
 * A tap that neighbouring channels share multiplies all of them at once.
 */

#define COLUMNS 256 /* of a row at a time */
#define TAP_PIECE 16384 /* products of one item of work, at least a row */

typedef struct TapJob {
    Run           *run;
    const TapSums *in;
    Tensor        *y;
    int64_t        heads, rows, width, taps, apart, each; /* each: rows of an item */
} TapJob;

static void add_tap(const double *x, double tap, int64_t count, double *sum)
{
    for (int64_t c = 0; c < count; c++)
        sum[c] += tap * x[c];
}

/* Columns [first, end) of row j of x, times tap. */
static void add(const TapJob *job, const void *x, int64_t j, int64_t first, int64_t end, double tap,
                double *sum)
{
    int64_t at = j * job->in->x.stride[1] + first;

    if (job->in->x.dtype == DT_F64)
        add_tap((const double *)x + at, tap, end - first, sum);
    else
        kernel_at(0)->fold_scaled((const float *)x + at, end - first, tap, sum);
}

/* Sets the sums to the bias, plus y where the result is added to it. */
static void begin_sums(const TapJob *job, const void *y, int64_t at, int64_t first, int64_t count,
                  double *sum)
{
    const float *bias = job->in->bias.data;

    for (int64_t c = 0; c < count; c++) {
        sum[c] = bias ? (double)bias[first + c] : 0;
        if (job->in->add)
            sum[c] += float_at(job->y->dtype, y, at + c);
    }
}

static void store_sums(const TapJob *job, void *y, int64_t at, int64_t count, const double *sum)
{
    if (job->y->dtype == DT_F64)
        memcpy((double *)y + at, sum, (size_t)count * sizeof(*sum));
    else
        kernel_at(0)->mean_rows(NULL, 0, sum, 1, NULL, (float *)y + at, count, (float *)y + at);
}

static void columns(const TapJob *job, int64_t head, int64_t i, int64_t first, int64_t end)
{
    const TapSums *in = job->in;
    const Tensor  *taps = &in->taps;
    const void    *x = tensor_head(&in->x, head, job->heads);
    const char    *own = (const char *)tensor_head(taps, head, job->heads);
    void          *y = tensor_head(job->y, head, job->heads);
    int64_t        per = job->width / in->groups, start = in->first + i * in->step;
    int64_t        from = max_i64(0, ceil_div(-start, job->apart));
    int64_t        to = min_i64(job->taps, ceil_div(in->x.shape[1] - start, job->apart));
    double         sum[COLUMNS];

    if (taps->shape[1] > 1)
        own += i * taps->stride[1] * dtype_size(taps->dtype);
    begin_sums(job, y, i * job->y->stride[1] + first, first, end - first, sum);
    for (int64_t s = from; s < to; s++)
        for (int64_t c = first, next; c < end; c = next) {
            next = min_i64(end, (c / per + 1) * per);
            add(job, x, start + s * job->apart, c, next,
                float_at(taps->dtype, own, c / per * job->taps + s), sum + c - first);
        }
    store_sums(job, y, i * job->y->stride[1] + first, end - first, sum);
}

static void tap_rows_item(void *context, int64_t item, int worker)
{
    const TapJob *job = context;
    int64_t    end = min_i64(job->heads * job->rows, (item + 1) * job->each);

    (void)worker;
    for (int64_t row = item * job->each; row < end && !cpu_cancelled(job->run); row++)
        for (int64_t c = 0; c < job->width; c += COLUMNS)
            columns(job, row / job->rows, row % job->rows, c, min_i64(job->width, c + COLUMNS));
}

void cpu_tap_sums(Run *r, const TapSums *in, Tensor *y)
{
    TapJob job = { .run = r, .in = in, .y = y, .heads = y->shape[0], .rows = y->shape[1],
                   .width = y->shape[2], .taps = in->taps.shape[2] / in->groups,
                   .apart = max_i64(1, in->apart) };

    job.each = max_i64(1, TAP_PIECE / max_i64(1, job.width * job.taps));
    threads_run(r->threads, ceil_div(job.heads * job.rows, job.each), tap_rows_item, &job);
}
