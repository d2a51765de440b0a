/* generate.c -- see generate.h.
 *
 * One token is one call of the pool: each worker does its share of the rows of every product, and
 * the workers wait for each other between the products by a barrier that spins.  To wake sleeping
 * threads two hundred times a token would take longer than the arithmetic.
 */
#include "model/generate.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "core/rng.h"
#include "input/store.h"
#include "model/dot.h"
#include "model/pass.h"

#define SPINS 300 /* before the processor is left to others */

typedef struct Barrier {
    atomic_int arrived, round;
    int        count;
} Barrier;

/* A worker's own. */
typedef struct Hand {
    float     *z, *sums;   /* a vector that it multiplies, and its sums */
    float     *scores;     /* [capacity] */
    float     *mixed;      /* [d], padded: the kernels write whole vectors */
    int32_t   *keys;       /* [capacity] */
    PatternRow row;
    int64_t    read;       /* keys */
    bool       failed;
} Hand;

typedef struct Writer {
    Pass               pass;
    const Model       *m;
    const ModelConfig *c;
    const GenerateOptions *o;
    const DotKernel   *dot;
    int                workers;
    Barrier            barrier;
    int64_t            position, capacity;
    float             *h, *qkv, *mixed, *inner, *logits;
    float             *keys, *values; /* [layers][K][capacity][d] */
    int32_t           *count_up;      /* 0, 1, 2, .. */
    Hand              *hand;          /* [workers] */
    const Pattern    **cells;         /* [parts] of the swap's parts; NULL: no swap */
    Run              **cells_run;     /* [parts] */
    int64_t            parts;
    bool               wants_logits;
    Rng                rng;
    GenerateResult    *out;
    Error             *err;
} Writer;

/* ---- workers in step ----------------------------------------------------- */

static void barrier_wait(Barrier *b)
{
    int round = atomic_load(&b->round), spins = 0;

    if (atomic_fetch_add(&b->arrived, 1) + 1 == b->count) {
        atomic_store(&b->arrived, 0);
        atomic_fetch_add(&b->round, 1);
        return;
    }
    while (atomic_load_explicit(&b->round, memory_order_acquire) == round)
        if (++spins > SPINS)
            sched_yield();
#if defined(__x86_64__)
        else
            __builtin_ia32_pause();
#elif defined(__aarch64__)
        else
            __asm__ volatile("yield");
#endif
}

/* ---- products ------------------------------------------------------------ */

/* Bytes of row r as it lies in the file: the rows of a head may lie as pairs. */
static const uint8_t *row_at(const Weight *w, int64_t bytes, int64_t r)
{
    if (w->unpermute) {
        int64_t d = w->rows / w->unpermute, at = r % d;

        r += 2 * (at % (d / 2)) + at / (d / 2) - at;
    }
    return w->data + r * bytes;
}

/* Rows [from, to) of a matrix whose file has it transposed: a row of the file is a column. */
static void columns_product(const Weight *w, const float *x, int64_t from, int64_t to, float *y)
{
    memset(y + from, 0, (size_t)(to - from) * sizeof(*y));
    for (int64_t c = 0; c < w->cols; c++) {
        const uint8_t *at = w->data + (c * w->stride + from) * (int64_t)sizeof(float);

        for (int64_t r = from; r < to; r++, at += sizeof(float)) {
            float one;

            memcpy(&one, at, sizeof(one));
            y[r] += one * x[c];
        }
    }
}

/* Rows that only weight_read can read. */
static void read_product(const Writer *w, const Weight *m, const float *x, float *row, int64_t from,
                         int64_t to, float *y)
{
    for (int64_t r = from; r < to; r++) {
        weight_read(m, r, 1, row);
        y[r] = w->dot->dot[WEIGHT_F32]((const uint8_t *)(const void *)row, x, NULL, m->cols);
    }
}

/* y[from..to) = W x + b; x's sums beside it. */
static void rows_product(const Writer *w, const Weight *m, const float *bias, const Hand *hand,
                         int64_t from, int64_t to, float *y)
{
    RowDot  dot = w->dot->dot[m->type];
    int64_t bytes = m->cols / weight_block_values(m->type) * weight_block_bytes(m->type);

    if (m->transposed && m->type == WEIGHT_F32)
        columns_product(m, hand->z, from, to, y);
    else if (m->transposed)
        read_product(w, m, hand->z, hand->scores, from, to, y);
    else
        for (int64_t r = from; r < to; r++)
            y[r] = dot(row_at(m, bytes, r), hand->z, hand->sums, m->cols);
    for (int64_t r = from; bias && r < to; r++)
        y[r] += bias[r];
}

/* A worker's rows of a matrix of so many. */
static void share_of(const Writer *w, int64_t rows, int64_t rank, int64_t *from, int64_t *to)
{
    *from = rows * rank / w->workers;
    *to = rows * (rank + 1) / w->workers;
}

/* The worker's copy of x, normalised if there is a norm, and its sums. */
static void take_vector(const Writer *w, Hand *hand, const float *x, int64_t count,
                        const ModelNormWeights *norm)
{
    if (norm)
        row_norm(&w->pass, norm, x, count, hand->z);
    else
        memcpy(hand->z, x, (size_t)count * sizeof(*x));
    dot_sums(hand->z, count, hand->sums);
}

/* The worker's share of W x + b, or of y += W x + b through its scratch. */
static void product(const Writer *w, Hand *hand, int64_t rank, const Weight *m, const float *bias,
                    float *y)
{
    int64_t from, to;

    share_of(w, m->rows, rank, &from, &to);
    rows_product(w, m, bias, hand, from, to, y);
}

static void product_added(const Writer *w, Hand *hand, int64_t rank, const Weight *m,
                          const float *bias, float *h)
{
    float  *y = w->logits; /* [V >= D], free until the head */
    int64_t from, to;

    share_of(w, m->rows, rank, &from, &to);
    rows_product(w, m, bias, hand, from, to, y);
    for (int64_t r = from; r < to; r++)
        h[r] += y[r];
}

/* ---- attention ----------------------------------------------------------- */

static float *cached(const Writer *w, float *all, int64_t layer, int64_t head)
{
    return all + (layer * w->c->kv_heads + head) * w->capacity * w->c->head_dim;
}

/* Keys and values of the new position into the cache, queries turned, each by who has the head. */
static void store_heads(const Writer *w, int64_t layer, int64_t rank)
{
    const ModelConfig *c = w->c;
    const ModelLayer  *l = &w->m->layer[layer];
    int64_t            d = c->head_dim;
    float             *k = w->qkv + c->heads * d, *v = k + c->kv_heads * d;

    for (int64_t t = rank; t < c->heads; t += w->workers)
        turn_head(&w->pass, l->q_norm, w->position, w->qkv + t * d);
    for (int64_t t = rank; t < c->kv_heads; t += w->workers) {
        turn_head(&w->pass, l->k_norm, w->position, k + t * d);
        memcpy(cached(w, w->keys, layer, t) + w->position * d, k + t * d,
               (size_t)d * sizeof(float));
        memcpy(cached(w, w->values, layer, t) + w->position * d, v + t * d,
               (size_t)d * sizeof(float));
    }
}

/* The cells of the part of the swap that has the head; NULL: it stays exact. */
static const Pattern *cells_of(const Writer *w, int64_t layer, int64_t head)
{
    const Swap *part = swap_part(w->o->swap, layer, head);
    int64_t     at = 0;

    for (const Swap *s = w->o->swap; s != part; s = s->also)
        at++;
    return part ? w->cells[at] : NULL;
}

/* The keys that the new position reads. */
static const int32_t *keys_of(const Writer *w, Hand *hand, int64_t layer, int64_t head,
                              int64_t *count)
{
    int64_t        low = w->c->window ? max_i64(0, w->position - w->c->window + 1) : 0;
    const Pattern *cells = cells_of(w, layer, head);

    *count = 0;
    if (!cells) {
        *count = w->position + 1 - low;
        return w->count_up + low;
    }
    pattern_row(cells, head, w->position, &hand->row);
    hand->failed |= hand->row.failed;
    for (int64_t x = 0; !hand->row.failed && x < hand->row.count; x++)
        for (int64_t i = 0; i < hand->row.runs[x].count; i++)
            hand->keys[(*count)++] = (int32_t)(hand->row.runs[x].start +
                                               i * hand->row.runs[x].step);
    return hand->keys;
}

static void attend_head(const Writer *w, Hand *hand, int64_t layer, int64_t head)
{
    const Kernel  *kernel = w->pass.kernel;
    int64_t        d = w->c->head_dim, own = head / (w->c->heads / w->c->kv_heads), count;
    const int32_t *keys = keys_of(w, hand, layer, head, &count);
    float         *out = hand->mixed, *s = hand->scores;
    float          by = (float)(w->c->scale * LOG2_E);
    double         sum = 0;

    memset(out, 0, (size_t)round_up_to(d, LANES) * sizeof(*out));
    memset(w->mixed + head * d, 0, (size_t)d * sizeof(*out));
    hand->read += count;
    if (!count)
        return;
    kernel->dots(w->qkv + head * d, cached(w, w->keys, layer, own), d, keys, count, d, s);
    kernel->exp2(s, count, by, by * kernel->largest(s, count, 1));
    for (int64_t x = 0; x < count; x++)
        sum += (double)s[x];
    kernel->mix_row(s, cached(w, w->values, layer, own), d, keys, count, d, 0, out);
    for (int64_t x = 0; x < d; x++)
        w->mixed[head * d + x] = (float)((double)out[x] / sum);
}

/* ---- one token ----------------------------------------------------------- */

static void attention_share(Writer *w, Hand *hand, int64_t layer, int64_t rank)
{
    const ModelConfig *c = w->c;
    const ModelLayer  *l = &w->m->layer[layer];
    float             *k = w->qkv + c->heads * c->head_dim, *v = k + c->kv_heads * c->head_dim;

    take_vector(w, hand, w->h, c->width, &l->attention_norm);
    product(w, hand, rank, &l->q, l->q_bias, w->qkv);
    product(w, hand, rank, &l->k, l->k_bias, k);
    product(w, hand, rank, &l->v, l->v_bias, v);
    barrier_wait(&w->barrier);
    store_heads(w, layer, rank);
    barrier_wait(&w->barrier);
    for (int64_t t = rank; t < c->heads; t += w->workers)
        attend_head(w, hand, layer, t);
    barrier_wait(&w->barrier);
    take_vector(w, hand, w->mixed, c->heads * c->head_dim, NULL);
    product_added(w, hand, rank, &l->output, l->output_bias, w->h);
    barrier_wait(&w->barrier);
}

static void mlp_share(Writer *w, Hand *hand, int64_t layer, int64_t rank)
{
    const ModelConfig *c = w->c;
    const ModelLayer  *l = &w->m->layer[layer];
    float             *up = c->gated ? w->inner + c->inner : w->inner;
    int64_t            from, to;

    take_vector(w, hand, w->h, c->width, &l->mlp_norm);
    if (c->gated)
        product(w, hand, rank, &l->gate, l->gate_bias, w->inner);
    product(w, hand, rank, &l->up, l->up_bias, up);
    share_of(w, c->inner, rank, &from, &to);
    activate(w->pass.kernel, c->activation, w->inner + from, c->gated ? up + from : NULL,
             to - from);
    barrier_wait(&w->barrier);
    take_vector(w, hand, w->inner, c->inner, NULL);
    product_added(w, hand, rank, &l->down, l->down_bias, w->h);
    barrier_wait(&w->barrier);
}

static void token_item(void *context, int64_t rank, int worker)
{
    Writer *w = context;
    Hand   *hand = &w->hand[rank];

    (void)worker;
    hand->read = 0;
    for (int64_t layer = 0; layer < w->c->layers; layer++) {
        attention_share(w, hand, layer, rank);
        mlp_share(w, hand, layer, rank);
    }
    if (!w->wants_logits)
        return;
    take_vector(w, hand, w->h, w->c->width, w->m->final_norm.weight ? &w->m->final_norm : NULL);
    barrier_wait(&w->barrier); /* logits were scratch */
    product(w, hand, rank, &w->m->head, w->m->head_bias, w->logits);
}

/* The next position holds this token; its logits, if wanted, are those of the one after. */
static bool step(Writer *w, int32_t id, bool logits)
{
    bool failed = false;

    w->wants_logits = logits;
    if (!pass_embed(&w->pass, &id, 1, w->position, w->h))
        return false;
    threads_run(w->pass.threads, w->workers, token_item, w);
    w->position++;
    for (int x = 0; x < w->workers; x++)
        failed |= w->hand[x].failed;
    return !failed || error_set(w->err, ERR_NOMEM, "not enough memory for a row of the pattern");
}

/* ---- choosing ------------------------------------------------------------ */

/* The k-th largest logit, or the smallest. */
static float least_logit(const float *z, int64_t count, int64_t k, float *copy)
{
    int64_t low = 0, high = count - 1;

    if (k <= 0 || k >= count)
        return -INFINITY;
    memcpy(copy, z, (size_t)count * sizeof(*z));
    while (low < high) { /* quickselect by the middle one */
        float   pivot = copy[(low + high) / 2];
        int64_t i = low, j = high;

        while (i <= j) {
            while (copy[i] > pivot)
                i++;
            while (copy[j] < pivot)
                j--;
            if (i <= j) {
                float other = copy[i];

                copy[i++] = copy[j];
                copy[j--] = other;
            }
        }
        if (k - 1 <= j)
            high = j;
        else if (k - 1 >= i)
            low = i;
        else
            break;
    }
    return copy[k - 1];
}

static int64_t largest_at(const float *z, int64_t count)
{
    int64_t best = 0;

    for (int64_t i = 1; i < count; i++)
        if (z[i] > z[best])
            best = i;
    return best;
}

/* Draws from softmax(z / temperature) over the top k. */
static int64_t draw(Writer *w, int64_t best)
{
    const float *z = w->logits;
    int64_t      count = w->m->head.rows;
    float        least = least_logit(z, count, w->o->top_k, w->logits + count);
    double       sum = 0, at;

    for (int64_t i = 0; i < count; i++)
        if (z[i] >= least)
            sum += exp(((double)z[i] - (double)z[best]) / w->o->temperature);
    at = rng_uniform(&w->rng) * sum;
    for (int64_t i = 0; i < count; i++)
        if (z[i] >= least) {
            at -= exp(((double)z[i] - (double)z[best]) / w->o->temperature);
            if (at < 0)
                return i;
        }
    return best;
}

#define EXPS 256 /* at once, on vectors */

/* The sum of exp(z - largest). */
static double sum_exps(const Writer *w, const float *z, int64_t count, double largest)
{
    double power[EXPS], sum = 0;

    for (int64_t at = 0; at < count; at += EXPS) {
        int64_t size = min_i64(EXPS, count - at);

        for (int64_t i = 0; i < size; i++)
            power[i] = (double)z[at + i] - largest;
        w->pass.kernel->exp64(power, size);
        for (int64_t i = 0; i < size; i++)
            sum += power[i];
    }
    return sum;
}

/* The next token, or -1 with *err set. */
static int32_t choose(Writer *w, double *p)
{
    int64_t count = w->m->head.rows, best = largest_at(w->logits, count), id;
    double  sum = sum_exps(w, w->logits, count, (double)w->logits[best]);

    if (!isfinite(sum)) {
        error_set(w->err, ERR_MODEL, "the logits after position %lld are not finite",
                  (long long)w->position - 1);
        return -1;
    }
    id = w->o->temperature > 0 ? draw(w, best) : best;
    *p = exp((double)w->logits[id] - (double)w->logits[best]) / sum;
    return (int32_t)id;
}

/* ---- reading the text ---------------------------------------------------- */

typedef struct Reader {
    Writer *w;
    int64_t variant;
} Reader;

static bool read_layer(void *context, const LayerView *view)
{
    const Reader *r = context;
    const Writer *w = r->w;
    int64_t       count = view->k.shape[1] * w->c->head_dim;

    if (view->variant != r->variant)
        return true;
    for (int64_t t = 0; t < w->c->kv_heads; t++) {
        memcpy(cached(w, w->keys, view->layer, t), (float *)view->k.data + t * count,
               (size_t)count * sizeof(float));
        memcpy(cached(w, w->values, view->layer, t), (float *)view->v.data + t * count,
               (size_t)count * sizeof(float));
    }
    return true;
}

/* Whether the text alone has the rows that a part has as the beginning of what will be written. */
static bool part_reads_ahead(const Writer *w, const Swap *part, const Pattern *whole, int64_t n)
{
    const Pattern *cells;
    MechanismSpec  spec;
    Error          ignored = ERROR_INIT;
    Run           *run = NULL;
    bool           same, failed;

    if (!mechanism_spec_parse(part->mechanism, &spec, &ignored))
        return false;
    cells = swap_pattern(&spec, part->mechanism, w->c, n, part->seed, &run, &ignored);
    same = cells && pattern_rows_same(cells, whole, n, &failed);
    run_free(run);
    mechanism_spec_free(&spec);
    return same;
}

static bool reads_ahead(const Writer *w, int64_t n)
{
    int64_t at = 0;

    for (const Swap *s = w->cells ? w->o->swap : NULL; s; s = s->also, at++)
        if (!part_reads_ahead(w, s, w->cells[at], n))
            return false;
    return true;
}

/* All but the last token of the text, by one pass where that is the same. */
static bool read_text(Writer *w, const int32_t *ids, int64_t n)
{
    Reader         reader = { w, w->cells ? 1 : 0 };
    ForwardOptions o = { .swaps = w->o->swap, .swap_count = w->cells ? 1 : 0,
                         .last_layer = w->c->layers - 1, .threads = w->o->threads,
                         .cancel = w->o->cancel, .on_layer = read_layer, .context = &reader };
    ForwardResult  result = { 0 };
    bool           ok = true;

    if (n > 1 && reads_ahead(w, n - 1)) {
        ok = forward_run(w->m, ids, n - 1, &o, &result, w->err);
        forward_result_free(&result);
        w->position = n - 1;
    }
    while (ok && w->position < n - 1) {
        if (pass_cancelled(&w->pass))
            return error_set(w->err, ERR_CANCELLED, "interrupted while reading the text");
        ok = step(w, ids[w->position], false);
    }
    return ok;
}

/* ---- beginning and end --------------------------------------------------- */

static bool hands_new(Writer *w)
{
    const ModelConfig *c = w->c;
    int64_t wide = max_i64(c->inner, max_i64(c->width, c->heads * c->head_dim));
    int64_t most = max_i64(w->capacity, wide);

    w->hand = calloc((size_t)w->workers, sizeof(*w->hand));
    for (int x = 0; w->hand && x < w->workers; x++) {
        Hand *hand = &w->hand[x];

        hand->z = pass_floats(&w->pass, wide, 1);
        hand->sums = hand->z ? pass_floats(&w->pass, wide / DOT_SUM + 2, 1) : NULL;
        hand->scores = hand->sums ? pass_floats(&w->pass, most, 1) : NULL;
        hand->mixed = pass_floats(&w->pass, round_up_to(c->head_dim, LANES), 1);
        hand->keys = arena_alloc(w->pass.arena, w->capacity, sizeof(*hand->keys));
        if (!hand->scores || !hand->mixed || !hand->keys)
            return false;
    }
    return w->hand != NULL;
}

static bool cache_new(Writer *w)
{
    const ModelConfig *c = w->c;
    Pass   *p = &w->pass;
    int64_t cache = c->layers * c->kv_heads * w->capacity, d = c->head_dim;

    w->out->cache_bytes = 2 * cache * d * (int64_t)sizeof(float);
    w->keys = pass_floats(p, cache, d);
    w->values = w->keys ? pass_floats(p, cache, d) : NULL;
    w->h = w->values ? pass_floats(p, 1, c->width) : NULL;
    w->qkv = w->h ? pass_floats(p, c->heads + 2 * c->kv_heads, d) : NULL;
    w->mixed = w->qkv ? pass_floats(p, c->heads, d) : NULL;
    w->inner = w->mixed ? pass_floats(p, 2, c->inner) : NULL;
    w->logits = w->inner ? pass_floats(p, 2, max_i64(w->m->head.rows, c->width)) : NULL;
    w->count_up = arena_alloc(p->arena, w->capacity, sizeof(*w->count_up));
    w->out->ids = calloc((size_t)w->o->count, sizeof(*w->out->ids));
    w->out->p = calloc((size_t)w->o->count, sizeof(*w->out->p));
    for (int64_t i = 0; w->count_up && i < w->capacity; i++)
        w->count_up[i] = (int32_t)i;
    return (w->logits && w->count_up && w->out->ids && w->out->p && hands_new(w)) ||
           error_set(w->err, ERR_NOMEM, "not enough memory for a cache of %lld positions",
                     (long long)w->capacity);
}

static bool check_request(const Model *m, const int32_t *ids, int64_t n, const GenerateOptions *o,
                          Error *err)
{
    const ModelConfig *c = &m->config;

    if (!c->causal || m->head.type == WEIGHT_NONE)
        return error_set(err, ERR_UNSUPPORTED,
                         "%s is an encoder and writes no text; take a decoder (llama, qwen2, "
                         "qwen3, gemma, gpt2)", c->arch);
    if (n < 1 || o->count < 1)
        return error_set(err, ERR_DATA, "writing needs a text of at least one token, and at least "
                         "one token to write; there are %lld and %lld", (long long)n,
                         (long long)o->count);
    if (m->positions.type != WEIGHT_NONE && n + o->count > m->positions.rows + 1)
        return error_set(err, ERR_DATA, "%lld tokens and %lld more are beyond the model's table of "
                         "%lld positions; write fewer", (long long)n, (long long)o->count,
                         (long long)m->positions.rows);
    for (int64_t t = 0; t < n; t++)
        if (ids[t] < 0 || ids[t] >= m->embedding.rows)
            return error_set(err, ERR_DATA, "token %lld has id %d; the model's ids are 0 to %lld",
                             (long long)t, ids[t], (long long)m->embedding.rows - 1);
    return true;
}

/* The cells of a part for all that will be written. */
static bool take_part(Writer *w, const Swap *part, int64_t at)
{
    MechanismSpec spec;
    bool          ok;

    if (!mechanism_spec_parse(part->mechanism, &spec, w->err))
        return error_prefix(w->err, "swap");
    ok = spec.mechanism->causal ||
         error_set(w->err, ERR_UNSUPPORTED, "swap %s: %s has no causal form (%s)", part->mechanism,
                   spec.mechanism->id, spec.mechanism->no_causal ? spec.mechanism->no_causal
                                                                 : "its paper gives none");
    if (ok) {
        w->cells[at] = swap_pattern(&spec, part->mechanism, w->c, w->capacity, part->seed,
                                    &w->cells_run[at], w->err);
        ok = w->cells[at] != NULL;
    }
    mechanism_spec_free(&spec);
    return ok;
}

static bool take_swap(Writer *w)
{
    int64_t at = 0;

    for (const Swap *s = w->o->swap; s; s = s->also)
        w->parts++;
    if (!w->parts)
        return true;
    w->cells = calloc((size_t)w->parts, sizeof(*w->cells));
    w->cells_run = calloc((size_t)w->parts, sizeof(*w->cells_run));
    if (!w->cells || !w->cells_run)
        return error_set(w->err, ERR_NOMEM, "not enough memory for the cells of a swap");
    for (const Swap *s = w->o->swap; s; s = s->also)
        if (!take_part(w, s, at++))
            return false;
    return true;
}

static void cells_free(Writer *w)
{
    for (int64_t at = 0; w->cells_run && at < w->parts; at++)
        run_free(w->cells_run[at]);
    free(w->cells_run);
    free(w->cells);
}

static bool write_tokens(Writer *w, int32_t last)
{
    int32_t end = w->m->tokenizer ? tokenizer_end(w->m->tokenizer) : -1;
    bool    going = true;

    while (going && w->out->count < w->o->count && !pass_cancelled(&w->pass)) {
        int64_t at = w->out->count;

        if (!step(w, last, true))
            return false;
        last = choose(w, &w->out->p[at]);
        if (last < 0)
            return false;
        w->out->ids[at] = last;
        w->out->count++;
        w->out->ended = last == end && !w->o->past_end;
        going = !w->out->ended &&
                (!w->o->on_token || w->o->on_token(w->o->context, at, last, w->out->p[at]));
    }
    for (int x = 0; x < w->workers; x++)
        w->out->read_keys += w->hand[x].read;
    return true;
}

static void writer_close(Writer *w)
{
    for (int x = 0; w->hand && x < w->workers; x++)
        pattern_row_free(&w->hand[x].row);
    free(w->hand);
    cells_free(w);
    pass_close(&w->pass);
}

bool generate_check(const Model *m, const int32_t *ids, int64_t n, const GenerateOptions *options,
                    Error *err)
{
    Writer w = { .m = m, .c = &m->config, .o = options, .capacity = n + options->count,
                 .err = err };
    bool   ok = check_request(m, ids, n, options, err) && take_swap(&w);

    cells_free(&w);
    return ok;
}

bool generate_run(const Model *m, const int32_t *ids, int64_t n, const GenerateOptions *options,
                  GenerateResult *out, Error *err)
{
    Writer w = { .m = m, .c = &m->config, .o = options, .dot = dot_kernel_at(0), .out = out,
                 .capacity = n + options->count, .rng = rng_named(options->seed, "sample"),
                 .err = err };
    double start = pass_seconds();
    bool   ok;

    *out = (GenerateResult){ 0 };
    if (!check_request(m, ids, n, options, err))
        return false;
    ok = pass_open(&w.pass, m, options->threads, w.capacity, options->cancel, err);
    w.workers = threads_count(w.pass.threads);
    w.barrier.count = w.workers;
    ok = ok && take_swap(&w) && cache_new(&w) && read_text(&w, ids, n);
    out->seconds_prompt = pass_seconds() - start;
    start = pass_seconds();
    ok = ok && write_tokens(&w, ids[n - 1]);
    out->seconds = pass_seconds() - start;
    ok = ok && mapped_whole(err);
    writer_close(&w);
    if (!ok)
        generate_result_free(out);
    return ok;
}

void generate_result_free(GenerateResult *r)
{
    free(r->ids);
    free(r->p);
    *r = (GenerateResult){ 0 };
}
