/* difference_near.c -- see difference.h. */
#include "attn/cpu/difference/difference.h"

#include <math.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "core/threads.h"

#define LEAST_KEYS 128      /* fewer are left to double */
#define LEAST_ROWS 16
#define SCORES (3 << 19)    /* of one head that a worker holds, unless a group has more */
#define MOST_ROWS 96
#define LEAST 24            /* rows whose tiles read a panel together */
#define PANELS 4            /* of a step */
#define STEP_KEYS (PANELS * TILE_KEYS)
#define CHECKED 4           /* blocks of which one row is computed again */
#define UNIT 0x1p-24        /* of rounding */
/* The spec allows 1e-5 of max(1, |number|).  The worst number of a row is off by two to four times
 * error_of.  A row with error_of above SURE is left to double; a block is, if its row that is
 * computed again differs by more than CLOSE. */
#define SURE 2e-6
#define CLOSE 4e-6

typedef struct NearWorker {
    float  *q;      /* [rows][d] scaled into base 2 */
    float  *s[2];   /* [rows][wide] 2^(score - the largest up to this step) */
    float  *base[2]; /* [rows][steps] that largest score */
    float  *max[2]; /* [rows] */
    float  *top;    /* [2][rows][LANES] */
    double *total[2]; /* [rows] sums of 2^(score - max) */
    float  *w;      /* [TILE_ROWS][STEP_KEYS] */
    float  *part;   /* [TILE_ROWS][2 lda] */
    double *sum;    /* [rows][2 lda] W times the values */
    double *squares; /* [rows] of the weights of both heads */
    int64_t *negative; /* [rows] */
    double *z[2];   /* [m] of the row that is computed again, */
    double *wide_q; /* [d] its query, */
    double *raw[2]; /* [2e] what it gives, and the output of either computation */
} NearWorker;

/* The row of a block, of those not left to double, that may be furthest from exact. */
typedef struct Suspect {
    int64_t row;   /* -1: none */
    double  error;
} Suspect;

struct NearDifference {
    Run                    *run;
    const Kernel           *kernel;
    const DifferenceAttend *in;
    DifferenceResult       *out;
    int64_t                 h, n, m, d, e, lda, pair;
    int64_t                 rows, blocks, panels, steps, wide;
    double                  gain;      /* the largest factor behind the norm */
    double                  longest;   /* root of the largest mean square of a value */
    double                 *squares[2]; /* [panels] largest sums of squares of values */
    float                  *packed[2]; /* [panels][d][TILE_KEYS] */
    Suspect                *suspect;   /* [blocks] */
    uint8_t                *doubt;     /* [n] */
    NearWorker             *workers;
};

/* ---- scores ---------------------------------------------------------------------------- */

static int64_t head_of(const NearDifference *o, int t)
{
    return difference_head(o->in, o->h, o->pair, t);
}

static int64_t keys_of(const NearDifference *o, int64_t i)
{
    return difference_keys(o->in, min_i64(i, o->n - 1));
}

static void pack_item(void *context, int64_t item, int worker)
{
    const NearDifference *o = context;
    const Tensor         *k = &o->in->in.k, *v = &o->in->in.v;
    int64_t               panel = item / 2, first = panel * TILE_KEYS;
    int64_t               count = min_i64(TILE_KEYS, o->m - first);
    int                   t = (int)(item % 2);
    const float          *value = tensor_row_f32(v, difference_value(o->in, o->h, o->pair, t),
                                                 v->shape[0], first);

    (void)worker;
    pack_panel(tensor_row_f32(k, head_of(o, t), o->h, first), k->stride[1], count, o->d,
               o->packed[t] + first * o->d);
    o->squares[t][panel] = (double)o->kernel->most_squares(value, v->stride[1], count, o->e);
}

static double longest_value(const NearDifference *o)
{
    double most = 0;

    for (int64_t panel = 0; panel < o->panels; panel++)
        most = larger_or_nan(larger_or_nan(most, o->squares[0][panel]), o->squares[1][panel]);
    return sqrt(most / (double)o->e);
}

static void begin_head(const NearDifference *o, NearWorker *w, int t, int64_t first, int64_t rows)
{
    memset(w->q, 0, (size_t)(o->rows * o->d) * sizeof(float));
    for (int64_t x = 0; x < rows; x++)
        o->kernel->scale(tensor_row_f32(&o->in->in.q, head_of(o, t), o->h, first + x), o->d,
                         (float)(o->in->in.scale * LOG2_E), w->q + x * o->d);
    for (int64_t x = 0; x < o->rows; x++) {
        w->max[t][x] = -INFINITY;
        w->total[t][x] = 0;
    }
    for (int64_t x = 0; x < o->rows * LANES; x++)
        w->top[x] = -INFINITY;
}

/* The cells of a tile, from row i on, that are keys of their row; NULL: all. */
static const uint64_t *kept_cells(const NearDifference *o, int64_t i, int64_t key, uint64_t *keep)
{
    if (keys_of(o, i) >= key + TILE_KEYS)
        return NULL;
    for (int x = 0; x < TILE_ROWS; x++) {
        int64_t count = max_i64(0, min_i64(TILE_KEYS, keys_of(o, i + x) - key));

        keep[x] = count < TILE_KEYS ? ((uint64_t)1 << count) - 1 : ~(uint64_t)0;
    }
    return keep;
}

static void score_panel(const NearDifference *o, NearWorker *w, int t, int64_t first, int64_t rows,
                        int64_t panel)
{
    int64_t  key = panel * TILE_KEYS;
    uint64_t keep[TILE_ROWS];

    for (int64_t x = 0; x < rows; x += TILE_ROWS)
        o->kernel->score_fine(w->q + x * o->d, o->d, o->packed[t] + key * o->d, o->d,
                              kept_cells(o, first + x, key, keep), 0, TILE_KEYS,
                              w->s[t] + x * o->wide + key, o->wide, w->top + x * LANES);
}

/* Scores of a step become weights. */
static void soften_step(const NearDifference *o, NearWorker *w, int t, int64_t rows, int64_t step,
                        int64_t count)
{
    for (int64_t x = 0; x < rows; x += TILE_ROWS) {
        float sum[TILE_ROWS] = { 0 }, factor[TILE_ROWS];

        o->kernel->softmax(w->s[t] + x * o->wide + step * STEP_KEYS, o->wide, TILE_ROWS, count,
                           w->top + x * LANES, w->max[t] + x, sum, factor);
        for (int64_t r = 0; r < TILE_ROWS; r++) {
            double *total = &w->total[t][x + r];

            *total = *total * (double)factor[r] + (double)sum[r];
            w->base[t][(x + r) * o->steps + step] = w->max[t][x + r];
        }
    }
}

/* Weights of one head for `keys` keys. */
static void weigh_head(const NearDifference *o, NearWorker *w, int t, int64_t first, int64_t rows,
                       int64_t keys)
{
    int64_t panels = ceil_div(keys, TILE_KEYS);

    begin_head(o, w, t, first, rows);
    for (int64_t step = 0; step * PANELS < panels; step++) {
        int64_t end = min_i64((step + 1) * PANELS, panels);

        for (int64_t panel = step * PANELS; panel < end; panel++)
            score_panel(o, w, t, first, rows, panel);
        soften_step(o, w, t, rows, step, (end - step * PANELS) * TILE_KEYS);
    }
}

/* ---- differences ----------------------------------------------------------------------- */

/* What row x's weights of a step are multiplied by to be those of its softmax. */
static float share_of(const NearDifference *o, const NearWorker *w, int t, int64_t x, int64_t step)
{
    float base = w->base[t][x * o->steps + step], max = w->max[t][x];

    if (w->total[t][x] == 0)
        return 0; /* no keys */
    return (float)((base == max ? 1 : exp2((double)base - (double)max)) / w->total[t][x]);
}

/* Rows from x on of W for the keys of a step. */
static void subtract_rows(const NearDifference *o, NearWorker *w, int64_t x, int64_t step,
                          int64_t keys)
{
    int64_t at = step * STEP_KEYS;

    for (int64_t r = 0; r < TILE_ROWS; r++) {
        int64_t row = (x + r) * o->wide + at;
        float   other = (float)((double)share_of(o, w, 1, x + r, step) * o->in->lambda[o->pair]);

        w->negative[x + r] += o->kernel->subtract(w->s[0] + row, keys,
                                                  share_of(o, w, 0, x + r, step), w->s[1] + row,
                                                  other, w->w + r * STEP_KEYS, &w->squares[x + r]);
    }
}

/* Adds what W of a step makes of the values of both heads. */
static void mix_rows(const NearDifference *o, NearWorker *w, int64_t x, int64_t step, int64_t keys)
{
    static const float none[TILE_ROWS];
    const Tensor      *v = &o->in->in.v;
    int64_t            ld = 2 * o->lda;

    memset(w->part, 0, (size_t)(TILE_ROWS * ld) * sizeof(float));
    for (int t = 0; t < 2; t++) {
        int64_t head = difference_value(o->in, o->h, o->pair, t);

        o->kernel->mix(w->w, STEP_KEYS, tensor_row_f32(v, head, v->shape[0], step * STEP_KEYS),
                       v->stride[1], keys, o->e, none, w->part + t * o->lda, ld);
    }
    o->kernel->fold(w->part, TILE_ROWS * ld, w->sum + x * ld);
}

static void mix_block(const NearDifference *o, NearWorker *w, int64_t first, int64_t rows,
                      int64_t keys)
{
    memset(w->sum, 0, (size_t)(o->rows * 2 * o->lda) * sizeof(double));
    memset(w->negative, 0, (size_t)o->rows * sizeof(*w->negative));
    memset(w->squares, 0, (size_t)o->rows * sizeof(*w->squares));
    for (int64_t step = 0; step * STEP_KEYS < keys; step++)
        for (int64_t x = 0; x < rows; x += TILE_ROWS) {
            int64_t count = min_i64(keys, keys_of(o, first + x + TILE_ROWS - 1)) - step * STEP_KEYS;

            if (count <= 0)
                continue;
            count = min_i64(count, STEP_KEYS);
            subtract_rows(o, w, x, step, count);
            mix_rows(o, w, x, step, count);
        }
}

/* ---- rows ------------------------------------------------------------------------------ */

/* The error of a row's outputs, if those of its scores are independent; NaN stays. */
static double error_of(const NearDifference *o, const NearWorker *w, int64_t x, const double *raw)
{
    double size = 0, top = fmax(fabs((double)w->max[0][x]), fabs((double)w->max[1][x]));
    double error = UNIT * (1 + top) * o->longest * sqrt(w->squares[x]);

    for (int64_t c = 0; c < 2 * o->e; c++)
        size += raw[c] * raw[c];
    if (w->total[0][x] == 0)
        return 0;
    return o->in->norm ? error * o->gain / sqrt(size / (double)(2 * o->e) + o->in->eps) : error;
}

static void end_row(const NearDifference *o, NearWorker *w, int64_t x, int64_t i, Suspect *suspect)
{
    const double *sum = w->sum + x * 2 * o->lda;
    double        error;

    for (int t = 0; t < 2; t++) {
        int64_t at = head_of(o, t) * o->n + i;
        bool    none = w->total[t][x] == 0;

        memcpy(w->raw[0] + t * o->e, sum + t * o->lda, (size_t)o->e * sizeof(*sum));
        tensor_f64(&o->out->top)[at] = none ? 0 : (double)w->max[t][x] * LN_2;
        tensor_f64(&o->out->sum)[at] = none ? 1 : w->total[t][x];
    }
    ((int64_t *)o->out->negative.data)[o->pair * o->n + i] = w->negative[x];
    difference_write(o->in, o->out, o->h, o->pair, i, w->raw[0]);
    error = error_of(o, w, x, w->raw[0]);
    o->doubt[i] = !(error <= SURE);
    if (!o->doubt[i] && error > suspect->error)
        *suspect = (Suspect){ i, error };
}

static void block_item(void *context, int64_t item, int worker)
{
    NearDifference *o = context;
    NearWorker     *w = &o->workers[worker];
    int64_t         block = o->blocks - 1 - item, first = block * o->rows;
    int64_t         rows = min_i64(o->rows, o->n - first), keys = keys_of(o, first + rows - 1);

    if (cpu_cancelled(o->run))
        return;
    weigh_head(o, w, 0, first, rows, keys);
    weigh_head(o, w, 1, first, rows, keys);
    mix_block(o, w, first, rows, keys);
    o->suspect[block] = (Suspect){ -1, -1 };
    for (int64_t x = 0; x < rows; x++) {
        end_row(o, w, x, first + x, &o->suspect[block]);
        run_ahead(o->run, 4.0 * (double)keys_of(o, first + x) * (double)(o->d + o->e));
    }
}

/* ---- the row that is computed again ------------------------------------------------------ */

/* z <- exp(score - top); returns the sum. */
static double soften_wide(const NearDifference *o, NearWorker *w, int t, int64_t i, int64_t keys)
{
    const Tensor *k = &o->in->in.k;
    const float  *q = tensor_row_f32(&o->in->in.q, head_of(o, t), o->h, i);

    for (int64_t c = 0; c < o->d; c++)
        w->wide_q[c] = (double)q[c];
    o->kernel->dots_wide(w->wide_q, tensor_row_f32(k, head_of(o, t), o->h, 0), k->stride[1], keys,
                         o->d, w->z[t]);
    o->kernel->scale64(w->z[t], keys, o->in->in.scale);
    return o->kernel->soften64(w->z[t], keys, o->kernel->largest64(w->z[t], keys));
}

static void row_wide(const NearDifference *o, NearWorker *w, int64_t i, double *raw)
{
    const Tensor *v = &o->in->in.v;
    int64_t       keys = keys_of(o, i);
    double        first, second;

    memset(raw, 0, (size_t)(2 * o->e) * sizeof(*raw));
    if (!keys)
        return;
    first = soften_wide(o, w, 0, i, keys);
    second = soften_wide(o, w, 1, i, keys);
    o->kernel->subtract64(w->z[0], keys, 1 / first, w->z[1], o->in->lambda[o->pair] / second);
    for (int t = 0; t < 2; t++) {
        int64_t head = difference_value(o->in, o->h, o->pair, t);

        o->kernel->mix_wide(w->z[0], tensor_row_f32(v, head, v->shape[0], 0), v->stride[1], keys,
                            o->e, raw + t * o->e);
    }
}

/* Whether row i of the output is what double makes of it. */
static bool is_close(const NearDifference *o, NearWorker *w, int64_t i)
{
    bool close = true;

    row_wide(o, w, i, w->raw[0]);
    difference_normed(o->in, w->raw[0], w->raw[1]);
    for (int64_t c = 0; c < 2 * o->e; c++) {
        int64_t head = difference_head(o->in, o->h, o->pair, c >= o->e);
        double  y = (double)tensor_f32(&o->out->out)[(head * o->n + i) * o->e + c % o->e];

        close &= fabs(y - w->raw[1][c]) <= CLOSE * fmax(1, fabs(w->raw[1][c]));
    }
    return close;
}

/* The row with the largest error in CHECKED blocks; -1: all are left to double. */
static int64_t suspect_of(const NearDifference *o, int64_t item)
{
    Suspect most = { -1, -1 };

    for (int64_t x = item * CHECKED; x < min_i64(o->blocks, (item + 1) * CHECKED); x++)
        if (o->suspect[x].error > most.error)
            most = o->suspect[x];
    return most.row;
}

static void check_item(void *context, int64_t item, int worker)
{
    const NearDifference *o = context;
    int64_t first = item * CHECKED * o->rows, end = min_i64(o->n, first + CHECKED * o->rows);
    int64_t row = cpu_cancelled(o->run) ? -1 : suspect_of(o, item);

    if (row >= 0 && !is_close(o, &o->workers[worker], row))
        memset(o->doubt + first, 1, (size_t)(end - first));
}

int64_t near_difference_pair(NearDifference *o, int64_t pair, uint8_t *doubt)
{
    Threads *threads = o->run->threads;
    int64_t  count = 0;

    o->pair = pair;
    o->doubt = doubt;
    threads_run(threads, 2 * o->panels, pack_item, o);
    o->longest = longest_value(o);
    threads_run(threads, o->blocks, block_item, o);
    threads_run(threads, ceil_div(o->blocks, CHECKED), check_item, o);
    for (int64_t i = 0; i < o->n && !cpu_cancelled(o->run); i++)
        count += doubt[i];
    return count;
}

/* ---- memory ------------------------------------------------------------------------------ */

bool near_difference_pays(const DifferenceAttend *in)
{
    const AttendInput *a = &in->in;

    return a->k.shape[1] >= LEAST_KEYS && a->q.shape[1] >= LEAST_ROWS && !a->cell_term &&
           !tensor_given(&a->row.table) && !tensor_given(&a->col.table) &&
           !tensor_given(&a->value.table) && !tensor_given(&a->distance) && !(a->softcap > 0);
}

static bool worker_init(NearDifference *o, NearWorker *w)
{
    Arena  *arena = o->run->arena;
    int64_t near = (int64_t)sizeof(float), wide = (int64_t)sizeof(double);
    bool    taken = true;

    for (int t = 0; t < 2; t++) {
        w->s[t] = arena_alloc(arena, o->rows * o->wide, near);
        w->base[t] = arena_alloc(arena, o->rows * o->steps, near);
        w->max[t] = arena_alloc(arena, o->rows, near);
        w->total[t] = arena_alloc(arena, o->rows, wide);
        w->z[t] = arena_alloc(arena, o->m, wide);
        w->raw[t] = arena_alloc(arena, 2 * o->e, wide);
        taken &= w->s[t] && w->base[t] && w->max[t] && w->total[t] && w->z[t] && w->raw[t];
    }
    w->q = arena_alloc(arena, o->rows * o->d, near);
    w->top = arena_alloc(arena, o->rows * LANES, near);
    w->w = arena_alloc(arena, TILE_ROWS * STEP_KEYS, near);
    w->part = arena_alloc(arena, TILE_ROWS * 2 * o->lda, near);
    w->sum = arena_alloc(arena, o->rows * 2 * o->lda, wide);
    w->negative = arena_alloc(arena, o->rows, (int64_t)sizeof(*w->negative));
    w->squares = arena_alloc(arena, o->rows, wide);
    w->wide_q = arena_alloc(arena, o->d, wide);
    return taken && w->squares && w->q && w->top && w->w && w->part && w->sum && w->negative &&
           w->wide_q;
}

static double largest_gain(const DifferenceAttend *in)
{
    double most = in->gain ? 0 : 1;

    for (int64_t c = 0; in->gain && c < 2 * in->in.v.shape[2]; c++)
        most = fmax(most, fabs(in->gain[c]));
    return fabs(in->factor) * most;
}

static bool take_memory(NearDifference *o)
{
    Arena  *arena = o->run->arena;
    int     count = threads_count(o->run->threads);
    bool    taken = true;

    o->suspect = arena_alloc(arena, o->blocks, sizeof(*o->suspect));
    o->workers = arena_zalloc(arena, count, sizeof(*o->workers));
    for (int t = 0; t < 2; t++) {
        o->packed[t] = arena_alloc(arena, o->panels * o->d, TILE_KEYS * (int64_t)sizeof(float));
        o->squares[t] = arena_alloc(arena, o->panels, (int64_t)sizeof(double));
    }
    for (int x = 0; o->workers && x < count; x++)
        taken &= worker_init(o, &o->workers[x]);
    return taken && o->suspect && o->workers && o->packed[0] && o->packed[1] && o->squares[0] &&
           o->squares[1];
}

NearDifference *near_difference_new(Run *r, const DifferenceAttend *in, DifferenceResult *out)
{
    NearDifference *o = arena_alloc(r->arena, 1, sizeof(*o));

    if (!o)
        return NULL;
    *o = (NearDifference){ .run = r, .kernel = kernel_at(0), .in = in, .out = out, .h = r->h,
                           .n = in->in.q.shape[1], .m = in->in.k.shape[1], .d = in->in.q.shape[2],
                           .e = in->in.v.shape[2], .gain = largest_gain(in) };
    o->lda = round_up_to(o->e, LANES);
    o->panels = ceil_div(o->m, TILE_KEYS);
    o->steps = ceil_div(o->panels, PANELS);
    o->wide = o->panels * TILE_KEYS + LANES; /* rows a power of two apart conflict */
    o->rows = max_i64(LEAST, min_i64(MOST_ROWS, SCORES / o->wide / TILE_ROWS * TILE_ROWS));
    o->rows = min_i64(o->rows, round_up_to(o->n, TILE_ROWS));
    o->blocks = ceil_div(o->n, o->rows);
    return take_memory(o) ? o : NULL;
}
