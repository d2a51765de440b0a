/* layer.c -- the parts of a transformer's layer, over the rows of all variants.
 *
 * Every part is cut into items by its shapes alone, so the number of threads changes no bit.
 * Sums of norms are in double: one channel of the first token may be a thousand times as large as
 * all others (Sun et al. 2024, "Massive activations in large language models").
 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "attn/cpu/blas.h"
#include "attn/cpu/cpu.h"
#include "model/pass.h"

#define ROWS 16 /* of an item of work that goes along rows */

double pass_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool pass_cancelled(const Pass *p)
{
    return p->cancel && atomic_load_explicit(p->cancel, memory_order_relaxed);
}

float *pass_floats(Pass *p, int64_t rows, int64_t cols)
{
    float *data = arena_alloc_data(p->arena, rows, cols * (int64_t)sizeof(float));

    if (!data)
        error_set(p->err, ERR_NOMEM,
                  "not enough memory for %lld x %lld numbers of the forward pass; give fewer "
                  "tokens or swaps", (long long)rows, (long long)cols);
    return data;
}

/* ---- RoPE's table -------------------------------------------------------- */

/* Angles in double: in float they are wrong by 1e-5 at position 100. */
static bool make_turns(Pass *p, int64_t positions)
{
    int64_t half = p->c->rotary / 2;
    float  *cosine = half ? pass_floats(p, positions, half) : NULL;
    float  *sine = half ? pass_floats(p, positions, half) : NULL;

    if (half && (!cosine || !sine))
        return false;
    for (int64_t i = 0; i < positions; i++)
        for (int64_t t = 0; t < half; t++) {
            double angle = (double)i * p->c->inverse[t];

            cosine[i * half + t] = (float)(cos(angle) * p->c->rotary_scale);
            sine[i * half + t] = (float)(sin(angle) * p->c->rotary_scale);
        }
    p->cosine = cosine;
    p->sine = sine;
    return true;
}

/* A product takes at least one row of a matrix, however long it is. */
static int64_t longest_row(const ModelConfig *c)
{
    int64_t wide = max_i64(c->width, c->embedding_width);

    return max_i64(max_i64(wide, c->inner), c->heads * c->head_dim);
}

bool pass_open(Pass *p, const Model *m, int threads, int64_t positions, const atomic_bool *cancel,
               Error *err)
{
    *p = (Pass){ .m = m, .c = &m->config, .kernel = kernel_at(0), .cancel = cancel, .err = err };
    p->threads = threads_new(threads > 0 ? threads : threads_default());
    p->arena = arena_new();
    if (!p->threads || !p->arena)
        return error_set(err, ERR_NOMEM, "not enough memory for a forward pass");
    if (!blas_ready(threads_count(p->threads), err))
        return false;
    p->weights = pass_floats(p, max_i64(PASS_WEIGHTS, longest_row(p->c)), 1);
    return p->weights && make_turns(p, positions);
}

void pass_close(Pass *p)
{
    threads_free(p->threads);
    if (p->arena)
        arena_free(p->arena);
}

/* ---- products ------------------------------------------------------------ */

#define DEQUANT_ROWS 16
#define BLOCK_ROWS 512 /* of X: a block packs all of W once more */
#define BLOCK_COLS 128 /* least */
#define ITEMS 4        /* at least, where there are so many columns */

typedef struct LinearJob {
    Pass         *p;
    const Linear *l;
    const float  *x;
    float        *y;
    int64_t       ldx, ldy, rows, inner;
    int64_t       first, count;            /* rows of W in hand */
    int64_t       row_block, row_blocks, col_block, col_blocks;
    bool          add;
} LinearJob;

/* Part that row `at` of the joined matrix is in; *at becomes its row there. */
static int part_of(const Linear *l, int64_t *at)
{
    int part = 0;

    while (part + 1 < l->count && *at >= l->part[part]->rows)
        *at -= l->part[part++]->rows;
    return part;
}

static void dequantise_item(void *context, int64_t item, int worker)
{
    const LinearJob *job = context;
    int64_t          at = item * DEQUANT_ROWS, end = min_i64(job->count, at + DEQUANT_ROWS);

    (void)worker;
    while (at < end) {
        int64_t row = job->first + at, count;
        int     part = part_of(job->l, &row);

        count = min_i64(end - at, job->l->part[part]->rows - row);
        weight_read(job->l->part[part], row, count, job->p->weights + at * job->inner);
        at += count;
    }
}

/* What the sums begin with. */
static void begin_rows(const LinearJob *job, float *y, int64_t rows, int64_t col, int64_t cols)
{
    for (int64_t c = 0; c < cols; c++) {
        int64_t      at = job->first + col + c;
        int          part = part_of(job->l, &at);
        const float *bias = job->l->bias[part];

        for (int64_t r = 0; bias && r < rows; r++)
            y[r * job->ldy + c] = bias[at] + (job->add ? y[r * job->ldy + c] : 0);
        for (int64_t r = 0; !bias && !job->add && r < rows; r++)
            y[r * job->ldy + c] = 0;
    }
}

static void product_item(void *context, int64_t item, int worker)
{
    const LinearJob *job = context;
    int64_t          row = item % job->row_blocks * job->row_block;
    int64_t          col = item / job->row_blocks * job->col_block;
    int64_t          rows = min_i64(job->row_block, job->rows - row);
    int64_t          cols = min_i64(job->col_block, job->count - col);
    float           *y = job->y + row * job->ldy + job->first + col;
    bool             biased = false;

    (void)worker;
    if (rows <= 0 || cols <= 0 || pass_cancelled(job->p))
        return;
    for (int x = 0; x < job->l->count; x++)
        biased |= job->l->bias[x] != NULL;
    if (biased)
        begin_rows(job, y, rows, col, cols);
    cpu_sgemm((Matrix){ job->x + row * job->ldx, job->ldx, false },
              (Matrix){ job->p->weights + col * job->inner, job->inner, true }, rows, cols,
              job->inner, 1, job->add || biased ? 1 : 0, y, job->ldy);
}

/* Blocks of rows, and of columns where these are few. */
static void choose_blocks(LinearJob *job)
{
    int64_t most;

    job->row_blocks = (job->rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    job->row_block = (job->rows + job->row_blocks - 1) / job->row_blocks;
    most = max_i64(1, job->count / BLOCK_COLS);
    job->col_blocks = min_i64(most, (ITEMS + job->row_blocks - 1) / job->row_blocks);
    job->col_block = round_up_to(ceil_div(job->count, job->col_blocks), LANES);
}

static void run_linear(LinearJob *job, int64_t first, int64_t count)
{
    int64_t most = max_i64(1, PASS_WEIGHTS / job->inner);

    for (int64_t at = first; at < first + count; at += most) {
        job->first = at;
        job->count = min_i64(most, first + count - at);
        choose_blocks(job);
        threads_run(job->p->threads, (job->count + DEQUANT_ROWS - 1) / DEQUANT_ROWS,
                    dequantise_item, job);
        threads_run(job->p->threads, job->row_blocks * job->col_blocks, product_item, job);
    }
}

void pass_linear(Pass *p, const Linear *l, const float *x, int64_t ldx, int64_t rows, float *y,
                 int64_t ldy, bool add)
{
    LinearJob job = { .p = p, .l = l, .x = x, .y = y, .ldx = ldx, .ldy = ldy, .rows = rows,
                      .inner = l->part[0]->cols, .add = add };
    int64_t   all = 0;

    for (int part = 0; part < l->count; part++)
        all += l->part[part]->rows;
    run_linear(&job, 0, all);
}

void pass_linear_rows(Pass *p, const Weight *w, int64_t first, int64_t count, const float *x,
                      int64_t ldx, int64_t rows, float *y, int64_t ldy)
{
    Linear    l = { .part = { w }, .count = 1 };
    LinearJob job = { .p = p, .l = &l, .x = x, .y = y - first, .ldx = ldx, .ldy = ldy,
                      .rows = rows, .inner = w->cols };

    run_linear(&job, first, count);
}

/* ---- norms --------------------------------------------------------------- */

typedef struct RowJob {
    Pass                   *p;
    const ModelNormWeights *w;
    const float            *x, *z;
    float                  *y;
    double                 *out;
    int64_t                 rows, width, stride;
    ModelActivation         activation;
    bool                    gated;
} RowJob;

/* y = x / sqrt(mean(x^2) + eps) * w */
static void row_rms(const Kernel *kernel, const float *x, int64_t count, double eps,
                    const float *w, float *y)
{
    double squares = kernel->squares(x, count);
    float  by = (float)(1 / sqrt(squares / (double)count + eps));

    for (int64_t c = 0; c < count; c++)
        y[c] = x[c] * by * w[c];
}

void row_norm(const Pass *p, const ModelNormWeights *w, const float *x, int64_t width, float *y)
{
    if (p->c->norm == MODEL_RMS)
        row_rms(p->kernel, x, width, p->c->eps, w->weight, y);
    else
        p->kernel->standardise(x, width, p->c->eps, w->weight, w->bias, y);
}

static void norm_item(void *context, int64_t item, int worker)
{
    const RowJob *job = context;
    int64_t       end = min_i64(job->rows, (item + 1) * ROWS);

    (void)worker;
    for (int64_t row = item * ROWS; row < end; row++)
        row_norm(job->p, job->w, job->x + row * job->width, job->width,
                 job->y + row * job->width);
}

void pass_norm(Pass *p, const ModelNormWeights *w, const float *x, int64_t rows, int64_t width,
               float *y)
{
    RowJob job = { .p = p, .w = w, .x = x, .y = y, .rows = rows, .width = width };

    threads_run(p->threads, (rows + ROWS - 1) / ROWS, norm_item, &job);
}

static void squares_item(void *context, int64_t item, int worker)
{
    const RowJob *job = context;
    int64_t       end = min_i64(job->rows, (item + 1) * ROWS);

    (void)worker;
    for (int64_t row = item * ROWS; row < end; row++) {
        const float *x = job->x + row * job->width, *z = job->z + row * job->width;
        double       sum = 0;

        for (int64_t c = 0; job->z && c < job->width; c++)
            sum += ((double)x[c] - (double)z[c]) * ((double)x[c] - (double)z[c]);
        job->out[row] = job->z ? sum : job->p->kernel->squares(x, job->width);
    }
}

void pass_squares(Pass *p, const float *x, const float *y, int64_t rows, int64_t width,
                  double *out)
{
    RowJob job = { .p = p, .x = x, .z = y, .rows = rows, .width = width, .out = out };

    threads_run(p->threads, (rows + ROWS - 1) / ROWS, squares_item, &job);
}

/* ---- embedding ----------------------------------------------------------- */

static bool check_id(Pass *p, const int32_t *ids, int64_t at)
{
    return (ids[at] >= 0 && ids[at] < p->m->embedding.rows) ||
           error_set(p->err, ERR_DATA, "token %lld has id %d; the model's ids are 0 to %lld",
                     (long long)at, ids[at], (long long)p->m->embedding.rows - 1);
}

/* row += the row `at` of w, where there is a w. */
static void add_row(const Weight *w, int64_t at, float *scratch, float *row)
{
    if (w->type == WEIGHT_NONE)
        return;
    weight_read(w, at, 1, scratch);
    for (int64_t c = 0; c < w->cols; c++)
        row[c] += scratch[c];
}

bool pass_embed(Pass *p, const int32_t *ids, int64_t n, int64_t position, float *h)
{
    const Model *m = p->m;
    ArenaMark    mark = arena_mark(p->arena);
    int64_t      width = m->embedding.cols;
    float       *e = m->map.type == WEIGHT_NONE ? h : pass_floats(p, n, width);
    float       *scratch = pass_floats(p, 1, width);
    bool         ok = e && scratch;

    for (int64_t t = 0; ok && t < n; t++) {
        float *row = e + t * width;

        ok = check_id(p, ids, t);
        if (!ok)
            break;
        weight_read(&m->embedding, ids[t], 1, row);
        for (int64_t c = 0; p->c->embedding_scale != 1 && c < width; c++)
            row[c] *= (float)p->c->embedding_scale;
        add_row(&m->positions, position + t, scratch, row);
        add_row(&m->types, 0, scratch, row);
    }
    if (ok && m->embedding_norm.weight)
        pass_norm(p, &m->embedding_norm, e, n, width, e);
    if (ok && e != h)
        pass_linear(p, &(Linear){ .part = { &m->map }, .bias = { m->map_bias }, .count = 1 }, e,
                    width, n, h, p->c->width, false);
    arena_release(p->arena, mark);
    return ok;
}

/* ---- heads --------------------------------------------------------------- */

typedef struct HeadsJob {
    const Pass       *p;
    const ModelLayer *layer;
    const float      *rows;
    int64_t           n, position;
    float            *q, *k, *v;
} HeadsJob;

/* By halves: channel t turns with t + r/2. */
static void turn(float *x, const float *cosine, const float *sine, int64_t half)
{
    for (int64_t t = 0; t < half; t++) {
        float a = x[t], b = x[t + half];

        x[t] = a * cosine[t] - b * sine[t];
        x[t + half] = b * cosine[t] + a * sine[t];
    }
}

void turn_head(const Pass *p, const float *norm, int64_t position, float *x)
{
    int64_t half = p->c->rotary / 2;

    if (norm)
        row_rms(p->kernel, x, p->c->head_dim, p->c->eps, norm, x);
    if (half)
        turn(x, p->cosine + position * half, p->sine + position * half, half);
}

static void heads_item(void *context, int64_t item, int worker)
{
    const HeadsJob    *job = context;
    const ModelConfig *c = job->p->c;
    int64_t            d = c->head_dim, end = min_i64(job->n, (item + 1) * ROWS);
    size_t             bytes = (size_t)d * sizeof(float);

    (void)worker;
    for (int64_t i = item * ROWS; i < end; i++) {
        const float *row = job->rows + i * (c->heads + 2 * c->kv_heads) * d;

        for (int64_t t = 0; t < c->heads; t++, row += d) {
            memcpy(job->q + (t * job->n + i) * d, row, bytes);
            turn_head(job->p, job->layer->q_norm, job->position + i,
                        job->q + (t * job->n + i) * d);
        }
        for (int64_t t = 0; t < c->kv_heads; t++, row += d) {
            memcpy(job->k + (t * job->n + i) * d, row, bytes);
            turn_head(job->p, job->layer->k_norm, job->position + i,
                        job->k + (t * job->n + i) * d);
        }
        for (int64_t t = 0; t < c->kv_heads; t++, row += d)
            memcpy(job->v + (t * job->n + i) * d, row, bytes);
    }
}

void pass_heads(Pass *p, const ModelLayer *layer, const float *rows, int64_t n, int64_t position,
                float *q, float *k, float *v)
{
    HeadsJob job = { .p = p, .layer = layer, .rows = rows, .n = n, .position = position, .q = q,
                     .k = k, .v = v };

    threads_run(p->threads, (n + ROWS - 1) / ROWS, heads_item, &job);
}

/* ---- MLP ----------------------------------------------------------------- */

#define STRETCH 256
#define MLP_ROWS 1024 /* at once, so that memory does not grow with variants */

/* Whole stretches of a length the compiler knows become vectors; what lies past the end is 0. */
typedef struct Stretch {
    float x[STRETCH], e[STRETCH];
} Stretch;

/* x / (1 + e^-x) */
static void silu(const Kernel *kernel, Stretch *s)
{
    for (int c = 0; c < STRETCH; c++)
        s->e[c] = s->x[c] < -87.0f ? -87.0f : s->x[c]; /* 2^x overflows beyond; NaN stays */
    kernel->exp2(s->e, STRETCH, (float)-LOG2_E, 0);
    for (int c = 0; c < STRETCH; c++)
        s->x[c] /= 1.0f + s->e[c];
}

/* x/2 (1 + erf(x / sqrt 2)), erf to 1.5e-7 (Abramowitz and Stegun 7.1.26): for z >= 0
 * 1 - erf(z) = t (a1 + t (a2 + ..)) e^(-z^2), t = 1 / (1 + p z). */
static void gelu(const Kernel *kernel, Stretch *s)
{
    for (int c = 0; c < STRETCH; c++)
        s->e[c] = s->x[c] * s->x[c];
    kernel->exp2(s->e, STRETCH, (float)(-0.5 * LOG2_E), 0);
    for (int c = 0; c < STRETCH; c++) {
        float x = s->x[c], z = fabsf(x) * 0.70710678f, t = 1.0f / (1.0f + 0.3275911f * z);
        float rest = 1.061405429f * t - 1.453152027f;

        rest = ((rest * t + 1.421413741f) * t - 0.284496736f) * t + 0.254829592f;
        rest *= 0.5f * t * s->e[c]; /* half of 1 - erf(z) */
        s->x[c] = x > 0 ? x - x * rest : x * rest;
    }
}

static void activate_stretch(const Kernel *kernel, ModelActivation activation, float *x,
                             int64_t count)
{
    Stretch s;

    memcpy(s.x, x, (size_t)count * sizeof(*x));
    memset(s.x + count, 0, (size_t)(STRETCH - count) * sizeof(*x));
    if (activation == MODEL_SILU)
        silu(kernel, &s);
    else
        gelu(kernel, &s);
    memcpy(x, s.x, (size_t)count * sizeof(*x));
}

void activate(const Kernel *kernel, ModelActivation activation, float *x, const float *up,
              int64_t count)
{
    if (activation == MODEL_SILU || activation == MODEL_GELU)
        for (int64_t at = 0; at < count; at += STRETCH)
            activate_stretch(kernel, activation, x + at, min_i64(STRETCH, count - at));
    else if (activation == MODEL_GELU_TANH)
        kernel->gelu(x, NULL, count);
    else
        for (int64_t c = 0; c < count; c++)
            x[c] = x[c] < 0 ? 0 : x[c];
    for (int64_t c = 0; up && c < count; c++)
        x[c] *= up[c];
}

static void activate_item(void *context, int64_t item, int worker)
{
    const RowJob *job = context;
    int64_t       end = min_i64(job->rows, (item + 1) * ROWS);

    (void)worker;
    for (int64_t row = item * ROWS; row < end; row++) {
        float *x = job->y + row * job->stride;

        activate(job->p->kernel, job->activation, x, job->gated ? x + job->width : NULL,
                 job->width);
    }
}

void pass_activate(Pass *p, ModelActivation activation, bool gated, float *rows, int64_t count,
                   int64_t inner, int64_t stride)
{
    RowJob job = { .p = p, .y = rows, .rows = count, .width = inner, .stride = stride,
                   .activation = activation, .gated = gated };

    threads_run(p->threads, (count + ROWS - 1) / ROWS, activate_item, &job);
}

int64_t pass_mlp_rows(int64_t rows)
{
    return min_i64(rows, MLP_ROWS);
}

void pass_mlp(Pass *p, const ModelLayer *layer, const float *z, int64_t rows, float *inner,
              float *h)
{
    int64_t width = p->c->width, f = p->c->inner, stride = p->c->gated ? 2 * f : f;
    Linear  up = { .part = { &layer->up }, .bias = { layer->up_bias }, .count = 1 };
    Linear  down = { .part = { &layer->down }, .bias = { layer->down_bias }, .count = 1 };

    if (p->c->gated)
        up = (Linear){ .part = { &layer->gate, &layer->up },
                       .bias = { layer->gate_bias, layer->up_bias }, .count = 2 };
    for (int64_t at = 0; at < rows; at += MLP_ROWS) {
        int64_t count = min_i64(MLP_ROWS, rows - at);

        pass_linear(p, &up, z + at * width, width, count, inner, stride, false);
        pass_activate(p, p->c->activation, p->c->gated, inner, count, f, stride);
        pass_linear(p, &down, inner, stride, count, h + at * width, width, true);
    }
}
