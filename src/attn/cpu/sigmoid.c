/* sigmoid.c -- attention whose weights are logistic functions of single scores; op_sigmoid_attend.
 *
 * The keys of one head of k are packed into panels; an item of work is a block of queries of one
 * head that reads them, some panels at a time: their scores become weights and are mixed, for
 * without a denominator no row has to wait for its largest score.  Scores are in base 2 (kernel.h).
 *
 * One query a head, a step of decoding, reads keys where they lie: packing costs more than their
 * scores.  The keys are cut into slices of a fixed size; an item is a slice for all query heads of
 * one head of k.  Slices are summed in order, so the number of threads changes no bit.
 */
#include <math.h>
#include <string.h>

#include "attn/cpu/attend.h"
#include "core/threads.h"

#define BLOCK 96 /* queries, a multiple of TILE_ROWS */
#define SLICE_KEYS (4 * LIST_KEYS)
#define LDS (STEP_PANELS * TILE_KEYS + LANES) /* no power of two: rows would share a set */

typedef struct SigmoidWorker {
    Terms    terms;
    float   *q;    /* [BLOCK][d] scaled into base 2 */
    float   *acc;  /* [BLOCK][lda] */
    float   *s;    /* [BLOCK][LDS] scores of a step, then weights; of one query [LIST_KEYS] */
    float   *top;  /* [TILE_ROWS][LANES] not used */
    double  *sum;  /* [BLOCK] */
    uint64_t keep[TILE_ROWS];
    int32_t *key;  /* [LIST_KEYS] keys of one query */
} SigmoidWorker;

typedef struct SigmoidJob {
    Run                 *run;
    const Kernel        *kernel;
    const SigmoidAttend *at;
    const AttendInput   *in;
    SigmoidResult       *out;
    int64_t              h, n, m, d, e, lda, panels, blocks;
    int64_t              first_head; /* of those that read the packed keys */
    bool                 has_terms, has_values; /* a position adds to scores, to values */
    float               *packed;     /* [panels][d][TILE_KEYS] */
    int64_t              slices;     /* of the keys of one query */
    float               *part;       /* [h][slices][lda] */
    double              *part_sum;   /* [h][slices] */
    SigmoidWorker       *workers;
} SigmoidJob;

static void pack_item(void *context, int64_t panel, int worker)
{
    const SigmoidJob    *job = context;
    const Tensor *k = &job->in->k;
    const float  *keys = tensor_row_f32(k, job->first_head, job->h, panel * TILE_KEYS);

    (void)worker;
    pack_panel(keys, k->stride[1], min_i64(TILE_KEYS, job->m - panel * TILE_KEYS), job->d,
               job->packed + panel * job->d * TILE_KEYS);
}

/* Scores of a row become weights, whose sum is returned; the last keys of their panel, which do not
 * exist, have none.  NaN stays. */
static double weigh(const Kernel *kernel, float *s, int64_t keys, float bias)
{
    int64_t padded = round_up_to(keys, TILE_KEYS);

    for (int64_t j = keys; j < padded; j++)
        s[j] = -INFINITY;
    return (double)kernel->logistic(s, padded, bias);
}

static int64_t keys_of(const SigmoidJob *job, int64_t i)
{
    return sigmoid_keys(job->run, job->at, min_i64(i, job->n - 1));
}

/* The cells that rows i, i + 1, ... may have in a panel; NULL: all of them. */
static const uint64_t *kept_cells(const SigmoidJob *job, SigmoidWorker *w, int64_t i, int64_t panel)
{
    int64_t key = panel * TILE_KEYS, all = min_i64(TILE_KEYS, job->m - key);

    if (keys_of(job, i) >= key + all)
        return NULL;
    for (int x = 0; x < TILE_ROWS; x++) {
        int64_t count = max_i64(0, min_i64(all, keys_of(job, i + x) - key));

        w->keep[x] = count < TILE_KEYS ? ((uint64_t)1 << count) - 1 : ~(uint64_t)0;
    }
    return w->keep;
}

/* How many panels, of all, the rows first + row, ... of a tile need. */
static int64_t tile_panels(const SigmoidJob *job, int64_t first, int64_t row)
{
    return ceil_div(keys_of(job, first + row + TILE_ROWS - 1), TILE_KEYS);
}

/* Scores of rows first, ... with panel x of the step that begins with panel `from`. */
static void score_panel(const SigmoidJob *job, SigmoidWorker *w, int64_t head, int64_t first,
                        int64_t rows, int64_t from, int64_t x)
{
    int64_t panel = from + x, keys = min_i64(TILE_KEYS, job->m - panel * TILE_KEYS);

    if (job->has_terms)
        terms_panel(&w->terms, head, first, rows, panel);
    for (int64_t row = 0; row < rows; row += TILE_ROWS) {
        float *tile = w->s + row * LDS + x * TILE_KEYS;

        if (tile_panels(job, first, row) <= panel)
            continue;
        job->kernel->score(w->q + row * job->d, job->d, job->packed + panel * TILE_KEYS * job->d,
                           job->d, kept_cells(job, w, first + row, panel), 0, (int)keys, tile, LDS,
                           w->top);
        if (job->has_terms)
            terms_add_tile(&w->terms, first + row, panel, tile, LDS);
    }
}

/* The scores of a tile of rows with `panels` panels from `from` on become weights and are mixed. */
static void mix_rows(const SigmoidJob *job, SigmoidWorker *w, int64_t head, int64_t first,
                     int64_t row, int64_t from, int64_t panels)
{
    static const float ones[TILE_ROWS] = { 1, 1, 1, 1, 1, 1 };
    const Tensor *v = &job->in->v;
    int64_t       i = first + row, key = from * TILE_KEYS;
    int64_t       keys = min_i64(panels * TILE_KEYS, job->m - key);
    float        *s = w->s + row * LDS, *acc = w->acc + row * job->lda;

    for (int64_t x = 0; x < TILE_ROWS; x++)
        w->sum[row + x] += weigh(job->kernel, s + x * LDS, keys,
                                 (float)(job->at->bias[min_i64(i + x, job->n - 1)] * LOG2_E));
    job->kernel->mix(s, LDS, tensor_row_f32(v, head, job->h, key), v->stride[1], keys, job->e, ones,
                     acc, job->lda);
    for (int64_t x = 0; x < panels && job->has_values; x++)
        terms_mix_tile(&w->terms, head, i, from + x, s + x * TILE_KEYS, LDS, acc, job->lda);
}

/* `count` panels from `from` on, at most STEP_PANELS. */
static void take_step(const SigmoidJob *job, SigmoidWorker *w, int64_t head, int64_t first,
                      int64_t rows, int64_t from, int64_t count)
{
    for (int64_t x = 0; x < count; x++)
        score_panel(job, w, head, first, rows, from, x);
    for (int64_t row = 0; row < rows; row += TILE_ROWS) {
        int64_t panels = min_i64(count, tile_panels(job, first, row) - from);

        if (panels > 0)
            mix_rows(job, w, head, first, row, from, panels);
    }
}

static void begin_block(const SigmoidJob *job, SigmoidWorker *w, int64_t head, int64_t first,
                        int64_t rows)
{
    memset(w->q, 0, (size_t)(BLOCK * job->d) * sizeof(float));
    memset(w->acc, 0, (size_t)(BLOCK * job->lda) * sizeof(float));
    memset(w->sum, 0, BLOCK * sizeof(double));
    for (int64_t x = 0; x < rows; x++)
        job->kernel->scale(tensor_row_f32(&job->in->q, head, job->h, first + x), job->d,
                           (float)(job->in->scale * LOG2_E), w->q + x * job->d);
}

static void end_block(const SigmoidJob *job, const SigmoidWorker *w, int64_t head, int64_t first,
                      int64_t rows)
{
    double cells = 0;

    for (int64_t x = 0; x < rows; x++) {
        int64_t at = head * job->n + first + x;

        memcpy(tensor_f32(&job->out->out) + at * job->e, w->acc + x * job->lda,
               (size_t)job->e * sizeof(float));
        tensor_f32(&job->out->sum)[at] = (float)w->sum[x];
        cells += (double)keys_of(job, first + x);
    }
    run_ahead(job->run, cells * ((double)(2 * (job->d + job->e)) + attend_cell_overhead(job->in)));
}

/* Blocks go last to first: the rows of the last causal blocks are the longest. */
static void attend_item(void *context, int64_t item, int worker)
{
    const SigmoidJob *job = context;
    SigmoidWorker    *w = &job->workers[worker];
    int64_t    head = job->first_head + item / job->blocks;
    int64_t    first = (job->blocks - 1 - item % job->blocks) * BLOCK;
    int64_t    rows = min_i64(BLOCK, job->n - first), seen = keys_of(job, first + rows - 1);

    if (cpu_cancelled(job->run))
        return;
    begin_block(job, w, head, first, rows);
    for (int64_t panel = 0; panel < ceil_div(seen, TILE_KEYS); panel += STEP_PANELS)
        take_step(job, w, head, first, rows, panel,
                  min_i64(STEP_PANELS, ceil_div(seen, TILE_KEYS) - panel));
    end_block(job, w, head, first, rows);
}

/* ---- one query a head --------------------------------------------------------- */

/* Keys [first, first + count) join a part. */
static void take_keys(const SigmoidJob *job, SigmoidWorker *w, int64_t head, int64_t part,
                      int64_t first, int64_t count)
{
    const Tensor *k = &job->in->k, *v = &job->in->v;
    float        *acc = job->part + part * job->lda;

    for (int64_t x = 0; x < count; x++)
        w->key[x] = (int32_t)(first + x);
    job->kernel->scale(tensor_row_f32(&job->in->q, head, job->h, 0), job->d,
                       (float)(job->in->scale * LOG2_E), w->q);
    job->kernel->dots(w->q, tensor_head(k, head, job->h), k->stride[1], w->key, count, job->d,
                      w->s);
    if (job->has_terms)
        terms_add_list(&w->terms, head, 0, w->key, count, w->s);
    job->part_sum[part] += weigh(job->kernel, w->s, count, (float)(job->at->bias[0] * LOG2_E));
    job->kernel->mix_row(w->s, tensor_head(v, head, job->h), v->stride[1], w->key, count, job->e, 1,
                         acc);
    if (job->has_values)
        terms_mix_list(&w->terms, head, 0, w->key, count, w->s, acc);
}

static void slice_item(void *context, int64_t item, int worker)
{
    const SigmoidJob *job = context;
    int64_t h_kv = job->in->k.shape[0], shared = item / job->slices, slice = item % job->slices;
    int64_t first = ceil_div(shared * job->h, h_kv), end = ceil_div((shared + 1) * job->h, h_kv);
    int64_t keys = min_i64((slice + 1) * SLICE_KEYS, keys_of(job, 0));

    for (int64_t x = slice * SLICE_KEYS; x < keys; x += LIST_KEYS)
        for (int64_t head = first; head < end && !cpu_cancelled(job->run); head++)
            take_keys(job, &job->workers[worker], head, head * job->slices + slice, x,
                      min_i64(LIST_KEYS, keys - x));
    run_ahead(job->run, (double)((end - first) * max_i64(0, keys - slice * SLICE_KEYS)) *
                            ((double)(2 * (job->d + job->e)) + attend_cell_overhead(job->in)));
}

static void join_head(const SigmoidJob *job, int64_t head)
{
    const float *part = job->part + head * job->slices * job->lda;
    float       *out = tensor_f32(&job->out->out) + head * job->e;
    double       total = 0;

    for (int64_t c = 0; c < job->e; c++) {
        double sum = 0;

        for (int64_t s = 0; s < job->slices; s++)
            sum += (double)part[s * job->lda + c];
        out[c] = (float)sum;
    }
    for (int64_t s = 0; s < job->slices; s++)
        total += job->part_sum[head * job->slices + s];
    tensor_f32(&job->out->sum)[head] = (float)total;
}

static void run_one_row(SigmoidJob *job)
{
    threads_run(job->run->threads, job->in->k.shape[0] * job->slices, slice_item, job);
    for (int64_t head = 0; head < job->h && !cpu_cancelled(job->run); head++)
        join_head(job, head);
}

/* ---- memory, and the whole ------------------------------------------------------ */

static bool terms_of(const SigmoidJob *job, SigmoidWorker *w, int64_t rows)
{
    int64_t span = job->has_terms || job->has_values
                       ? terms_span(job->in, job->n, job->m, rows) : 0;

    return !span || terms_init(&w->terms, job->run->arena, job->kernel, job->in, job->h, span);
}

static bool blocks_init(SigmoidJob *job, int count)
{
    Arena  *arena = job->run->arena;
    int64_t size = (int64_t)sizeof(float);

    job->packed = arena_alloc(arena, job->panels * TILE_KEYS, job->d * size);
    job->workers = arena_zalloc(arena, count, sizeof(SigmoidWorker));
    for (int x = 0; job->workers && x < count; x++) {
        SigmoidWorker *w = &job->workers[x];

        w->q = arena_alloc(arena, BLOCK, job->d * size);
        w->acc = arena_alloc(arena, BLOCK, job->lda * size);
        w->s = arena_alloc(arena, BLOCK, LDS * size);
        w->top = arena_zalloc(arena, TILE_ROWS, LANES * size);
        w->sum = arena_alloc(arena, BLOCK, (int64_t)sizeof(double));
        if (!w->q || !w->acc || !w->s || !w->top || !w->sum || !terms_of(job, w, BLOCK))
            return false;
    }
    return job->workers && job->packed;
}

static bool one_row_init(SigmoidJob *job, int count)
{
    Arena  *arena = job->run->arena;
    int64_t size = (int64_t)sizeof(float), parts;

    job->slices = max_i64(1, ceil_div(job->m, SLICE_KEYS));
    parts = job->h * job->slices;
    job->part = arena_zalloc(arena, parts, job->lda * size);
    job->part_sum = arena_zalloc(arena, parts, (int64_t)sizeof(double));
    job->workers = arena_zalloc(arena, count, sizeof(SigmoidWorker));
    for (int x = 0; job->workers && x < count; x++) {
        SigmoidWorker *w = &job->workers[x];

        w->q = arena_alloc(arena, job->d, size);
        w->s = arena_zalloc(arena, LIST_KEYS, size);
        w->key = arena_alloc(arena, LIST_KEYS, (int64_t)sizeof(*w->key));
        if (!w->q || !w->s || !w->key || !terms_of(job, w, 1))
            return false;
    }
    return job->workers && job->part && job->part_sum;
}

/* Heads that share one head of k, one such head after another. */
static void run_heads_of_keys(SigmoidJob *job)
{
    int64_t slices = job->in->k.shape[0];

    for (int64_t slice = 0; slice < slices && !run_failed(job->run); slice++) {
        int64_t end = ceil_div((slice + 1) * job->h, slices);

        job->first_head = ceil_div(slice * job->h, slices);
        threads_run(job->run->threads, job->panels, pack_item, job);
        threads_run(job->run->threads, (end - job->first_head) * job->blocks, attend_item, job);
    }
}

void cpu_sigmoid_attend(Run *r, const SigmoidAttend *at, SigmoidResult *out)
{
    const AttendInput *in = &at->in;
    ArenaMark          mark = arena_mark(r->arena);
    SigmoidJob                job = {
        .run = r, .kernel = kernel_at(0), .at = at, .in = in, .out = out, .h = r->h,
        .n = in->q.shape[1], .m = in->k.shape[1], .d = in->q.shape[2], .e = in->v.shape[2],
        .lda = round_up_to(in->v.shape[2], LANES), .panels = ceil_div(in->k.shape[1], TILE_KEYS),
        .blocks = ceil_div(in->q.shape[1], BLOCK), .has_terms = attend_has_terms(in),
        .has_values = tensor_given(&in->value.table),
    };

    if (job.n == 1 && one_row_init(&job, threads_count(r->threads)))
        run_one_row(&job);
    else if (job.n != 1 && blocks_init(&job, threads_count(r->threads)))
        run_heads_of_keys(&job);
    else
        run_fail(r, ERR_NOMEM, "sigmoid: no memory for packed keys and tiles (%lld keys of size "
                 "%lld); use fewer threads or a higher limit", (long long)job.m, (long long)job.d);
    arena_release(r->arena, mark);
}
