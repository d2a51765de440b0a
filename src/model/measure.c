/* measure.c -- the head's logits, reduced as they come: ForwardMeasure of forward.h.
 *
 * Logits of all positions would be larger than the model.  They come in blocks of the vocabulary,
 * and each position keeps what it needs of the blocks so far: the largest logit, the sum of
 * exp(z - max), its next tokens, the logit of the token that follows, and for KL the sum of
 * exp(z_full - max) z.  So the head is dequantised once.  All in double.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "model/pass.h"

#define VOCAB_BLOCK 2048
#define TILE_BYTES ((int64_t)32 << 20) /* of logits at once */
#define LEAST_ROWS 64
#define ROWS_ITEM 4

/* What one position of one variant keeps. */
typedef struct Position {
    double    max, sum;     /* of the logits so far: the largest; of exp(z - max) */
    double    target;       /* logit of the token that follows */
    double    mixed;        /* the sum of exp(z0 - max0) z, z0 of variant 0 */
    NextToken next[FORWARD_NEXT]; /* p holds the logit */
} Position;

typedef struct LogitJob {
    Pass         *p;
    const int32_t *ids;
    int64_t       n, slots;
    int64_t       first, rows;    /* positions in hand */
    int64_t       begin, count;   /* vocabulary in hand */
    const float  *logits;         /* [slots][rows][VOCAB_BLOCK] */
    int64_t       capacity;       /* rows of a slot there */
    Position     *at;             /* [slots][n] */
    double       *power;          /* [workers][2][VOCAB_BLOCK] */
} LogitJob;

bool measure_transform(Pass *p, float *states, int64_t rows)
{
    const Model *m = p->m;
    int64_t      width = p->c->width;
    Linear       dense = { .part = { &m->head_dense }, .bias = { m->head_dense_bias }, .count = 1 };
    ArenaMark    mark = arena_mark(p->arena);
    int64_t      inner = m->head.cols;
    float       *y;

    if (m->head_dense.type == WEIGHT_NONE)
        return true;
    y = pass_floats(p, rows, inner);
    if (y) { /* albert's head is narrower than the states: rows move together */
        pass_linear(p, &dense, states, width, rows, y, inner, false);
        pass_activate(p, m->head_activation, false, y, rows, inner, inner);
        if (m->head_norm.weight)
            pass_norm(p, &m->head_norm, y, rows, inner, y);
        memcpy(states, y, (size_t)(rows * inner) * sizeof(float));
    }
    arena_release(p->arena, mark);
    return y != NULL;
}

/* ---- one position -------------------------------------------------------- */

/* Falling logits; equal ones by smaller id, which came earlier. */
static void keep_best(Position *at, const float *z, int64_t count, int64_t begin, double largest)
{
    NextToken *next = at->next;

    if (!(largest > next[FORWARD_NEXT - 1].p))
        return;
    for (int64_t i = 0; i < count; i++) {
        int place = FORWARD_NEXT - 1;

        if (!((double)z[i] > next[place].p))
            continue;
        for (; place > 0 && (double)z[i] > next[place - 1].p; place--)
            next[place] = next[place - 1];
        next[place] = (NextToken){ (int32_t)(begin + i), (double)z[i] };
    }
}

/* power[i] = exp(z[i] - max) after the maximum has advanced; returns what earlier sums shrink
 * by. */
static double advance(const LogitJob *job, Position *at, const float *z, double *power)
{
    double largest = (double)job->p->kernel->largest(z, job->count, 1);
    double factor = 1, sum[4] = { 0 };

    keep_best(at, z, job->count, job->begin, largest);
    if (largest > at->max) {
        factor = exp(at->max - largest);
        at->max = largest;
    }
    for (int64_t i = 0; i < job->count; i++)
        power[i] = (double)z[i] - at->max;
    job->p->kernel->exp64(power, job->count);
    for (int64_t i = 0; i < job->count; i++)
        sum[i % 4] += power[i];
    at->sum = at->sum * factor + (sum[0] + sum[1]) + (sum[2] + sum[3]);
    return factor;
}

static void reduce_position(const LogitJob *job, int64_t row, double *power)
{
    const Kernel *kernel = job->p->kernel;
    int64_t       t = job->first + row;
    int64_t       target = t + 1 < job->n ? job->ids[t + 1] - job->begin : -1;
    double        factor = 0;

    for (int64_t s = 0; s < job->slots; s++) {
        const float *z = job->logits + (s * job->capacity + row) * VOCAB_BLOCK;
        Position    *at = &job->at[s * job->n + t];
        double       shrunk = advance(job, at, z, s ? power + VOCAB_BLOCK : power);

        if (target >= 0 && target < job->count)
            at->target = (double)z[target];
        factor = s ? factor : shrunk;
        at->mixed = at->mixed * factor + kernel->dot_wide(z, power, job->count);
    }
}

static void reduce_item(void *context, int64_t item, int worker)
{
    const LogitJob *job = context;
    int64_t         end = min_i64(job->rows, (item + 1) * ROWS_ITEM);

    if (pass_cancelled(job->p))
        return;
    for (int64_t row = item * ROWS_ITEM; row < end; row++)
        reduce_position(job, row, job->power + worker * 2 * VOCAB_BLOCK);
}

/* ---- all of them --------------------------------------------------------- */

/* Biases of the vocabulary's rows, added to the logits. */
static void add_bias(const Pass *p, float *logits, int64_t rows, int64_t begin, int64_t count,
                     int64_t stride)
{
    const float *bias = p->m->head_bias;

    for (int64_t r = 0; bias && r < rows; r++)
        for (int64_t c = 0; c < count; c++)
            logits[r * stride + c] += bias[begin + c];
}

static void logits_block(LogitJob *job, const float *final, float *logits)
{
    Pass   *p = job->p;
    int64_t width = p->m->head.cols;
    bool    whole = job->capacity == job->n; /* the rows of all variants lie below each other */

    for (int64_t s = 0; s < (whole ? 1 : job->slots); s++) {
        float  *out = logits + s * job->capacity * VOCAB_BLOCK;
        int64_t rows = whole ? job->slots * job->n : job->rows;

        pass_linear_rows(p, &p->m->head, job->begin, job->count,
                         final + (s * job->n + job->first) * width, width, rows, out, VOCAB_BLOCK);
        add_bias(p, out, rows, job->begin, job->count, VOCAB_BLOCK);
    }
    threads_run(p->threads, ceil_div(job->rows, ROWS_ITEM), reduce_item, job);
}

static bool job_new(LogitJob *job, float **logits)
{
    Pass   *p = job->p;
    int64_t fit = TILE_BYTES / (job->slots * VOCAB_BLOCK * (int64_t)sizeof(float));

    job->capacity = min_i64(job->n, max_i64(LEAST_ROWS, fit));
    *logits = pass_floats(p, job->slots * job->capacity, VOCAB_BLOCK);
    job->logits = *logits;
    job->at = arena_zalloc(p->arena, job->slots * job->n, sizeof(*job->at));
    job->power = arena_alloc(p->arena, threads_count(p->threads),
                             2 * VOCAB_BLOCK * (int64_t)sizeof(double));
    for (int64_t x = 0; job->at && x < job->slots * job->n; x++) {
        job->at[x].max = (double)-INFINITY;
        for (int k = 0; k < FORWARD_NEXT; k++)
            job->at[x].next[k] = (NextToken){ -1, (double)-INFINITY };
    }
    return (*logits && job->at && job->power) ||
           error_set(p->err, ERR_NOMEM, "not enough memory for the logits");
}

static double log_sum(const Position *at)
{
    return at->max + log(at->sum);
}

/* Loss, its parts, and next tokens of one variant. */
static bool fill_own(const LogitJob *job, int64_t slot, ForwardMeasure *m)
{
    int64_t n = job->n, terms = n - 1;
    double  sum = 0;

    m->next = calloc((size_t)n, FORWARD_NEXT * sizeof(*m->next));
    m->nll = job->p->c->causal && n > 1 ? calloc((size_t)terms, sizeof(*m->nll)) : NULL;
    if (!m->next || (job->p->c->causal && n > 1 && !m->nll))
        return error_set(job->p->err, ERR_NOMEM, "not enough memory for the measures");
    for (int64_t t = 0; t < n; t++) {
        const Position *at = &job->at[slot * n + t];

        for (int k = 0; k < FORWARD_NEXT; k++)
            m->next[t * FORWARD_NEXT + k] =
                (NextToken){ at->next[k].id, exp(at->next[k].p - log_sum(at)) };
        if (m->nll && t < terms)
            sum += m->nll[t] = log_sum(at) - at->target;
    }
    if (m->nll) {
        m->loss = sum / (double)terms;
        m->perplexity = exp(m->loss);
    }
    return true;
}

/* Against the plain variant. */
static void fill_against(const LogitJob *job, int64_t slot, const ForwardMeasure *full,
                         ForwardMeasure *m)
{
    int64_t n = job->n, agreed = 0;
    double  sum = 0;

    m->kl_max = 0;
    for (int64_t t = 0; t < n; t++) {
        const Position *own = &job->at[t], *at = &job->at[slot * n + t];
        double kl = (own->mixed - at->mixed) / own->sum - log_sum(own) + log_sum(at);

        kl = kl < 0 ? 0 : kl; /* of equal rows only rounding is left */
        sum += kl;
        if (!(kl <= m->kl_max))
            m->kl_max = kl;
        agreed += own->next[0].id == at->next[0].id;
    }
    m->kl = sum / (double)n;
    m->agreement = (double)agreed / (double)n;
    m->delta = m->loss - full->loss;
}

static bool check_finite(const LogitJob *job)
{
    for (int64_t t = 0; t < job->n; t++)
        if (!isfinite(log_sum(&job->at[t])))
            return error_set(job->p->err, ERR_MODEL,
                             "%s: the logits of position %lld are not finite, though the residual "
                             "of every layer is; the head's weights are damaged",
                             job->p->m->path ? job->p->m->path : job->p->c->arch, (long long)t);
    return true;
}

/* Rows of whole logits for who asked for them. */
static bool report_logits(LogitJob *job, const ForwardOptions *o, const float *final,
                          const int64_t *slot, int64_t variants)
{
    Pass     *p = job->p;
    int64_t   vocab = p->m->head.rows, width = p->m->head.cols;
    int64_t   rows = max_i64(LEAST_ROWS, 2 * TILE_BYTES / (vocab * (int64_t)sizeof(float)));
    ArenaMark mark = arena_mark(p->arena);
    float    *logits;

    rows = min_i64(rows, job->n);
    logits = pass_floats(p, rows, vocab);
    for (int64_t v = 0; logits && v < variants; v++)
        for (int64_t t = 0; t < job->n && !pass_cancelled(p); t += rows) {
            int64_t count = min_i64(rows, job->n - t);

            pass_linear_rows(p, &p->m->head, 0, vocab, final + (slot[v] * job->n + t) * width,
                             width, count, logits, vocab);
            add_bias(p, logits, count, 0, vocab, vocab);
            o->on_logits(o->context, v, t, count, logits);
        }
    arena_release(p->arena, mark);
    return logits != NULL;
}

static void run_blocks(LogitJob *job, const float *final, float *logits)
{
    int64_t vocab = job->p->m->head.rows;

    for (job->begin = 0; job->begin < vocab && !pass_cancelled(job->p);
         job->begin += VOCAB_BLOCK) {
        job->count = min_i64(VOCAB_BLOCK, vocab - job->begin);
        for (job->first = 0; job->first < job->n; job->first += job->capacity) {
            job->rows = min_i64(job->capacity, job->n - job->first);
            logits_block(job, final, logits);
        }
    }
}

bool measure_logits(Pass *p, const ForwardOptions *o, const int32_t *ids, int64_t n,
                    const float *final, const int64_t *slot, ForwardResult *out)
{
    LogitJob job = { .p = p, .ids = ids, .n = n, .slots = out->variants };
    float   *logits;

    if (!job_new(&job, &logits))
        return false;
    run_blocks(&job, final, logits);
    if (pass_cancelled(p))
        return error_set(p->err, ERR_CANCELLED, "interrupted in the head");
    if (!check_finite(&job))
        return false;
    for (int64_t v = 0; v < out->variants; v++) {
        if (!fill_own(&job, slot[v], &out->measure[v]))
            return false;
        if (v)
            fill_against(&job, slot[v], &out->measure[0], &out->measure[v]);
    }
    return !o->on_logits || report_logits(&job, o, final, slot, out->variants);
}
