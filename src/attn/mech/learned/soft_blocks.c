/* soft_blocks.c -- see soft_blocks.h. */
#include <math.h>
#include <string.h>

#include "attn/mech/learned/soft_blocks.h"
#include "attn/mech/learned/groups.h"
#include "attn/ops/dense.h"
#include "attn/run.h"

#define CACHE 256 /* slot weights a reader remembers */
#define COARSE 16 /* a log-sum-exp as large as this is not exact enough in float */

SoftBlocks soft_blocks_of(const Run *r, int64_t block, int64_t cut, SoftLocal local, double scale)
{
    SoftBlocks s = { .h = r->h, .n = r->n, .d = r->d, .e = r->e, .b = min_i64(block, r->n),
                     .cut = cut > 0, .causal = r->causal, .local = local, .scale = scale };

    s.nb = (s.n + s.b - 1) / s.b;
    s.rows = s.cut ? min_i64(cut, s.nb) : s.nb;
    return s;
}

int64_t soft_blocks_length(const SoftBlocks *s, int64_t u)
{
    return min_i64(s->b, s->n - u * s->b);
}

/* ---- sorting and attention -------------------------------------------------- */

/* Slots t < filled have a source: only the last block may lack tokens. */
static void blocks_count_slots(Run *r, SoftBlocks *s)
{
    s->filled = run_alloc(r, s->h * s->rows, sizeof(*s->filled));
    op_wait(r, "the host looks which blocks are sorted where");
    for (int64_t x = 0; x < s->h * s->rows && !run_failed(r); x++) {
        const double *row = (double *)s->perm.data + (x / s->rows * s->nb + x % s->rows) * s->nb;

        s->filled[x] = 0;
        for (int64_t v = 0; v < s->nb; v++)
            if (row[v] > 0 && s->filled[x] < soft_blocks_length(s, v))
                s->filled[x] = soft_blocks_length(s, v);
    }
}

/* Whether the keys of one common softmax lie in two tensors: a causal run has a rule for them. */
static bool own_apart(const Run *r, const SoftBlocks *s)
{
    return s->local == SOFT_LOCAL_CONCAT && !s->causal && op_group_takes_more(r);
}

/* Perm x of every head, and behind it, for one common softmax, x itself. */
static Tensor sorted_rows(Run *r, const SoftBlocks *s, Tensor x)
{
    bool    joined = s->local == SOFT_LOCAL_CONCAT && !own_apart(r, s);
    int64_t w = x.shape[2], slots = s->rows * s->b, own = joined ? s->n : 0;
    Tensor  y = run_tensor3(r, DT_F32, s->h, slots + own, w);

    op_mix_blocks(r, s->perm, x, s->b, tensor_rows(y, 0, slots));
    if (own && !run_failed(r))
        op_entries(r, x, ENTRY_CAST, 0, tensor_rows(y, slots, own));
    return y;
}

static int32_t *blocks_list_keys(const SoftBlocks *s, int64_t head, int64_t u, int32_t *key)
{
    int64_t first = s->cut ? 0 : u, last = s->cut ? s->rows - 1 : u;

    for (int64_t w = first; w <= last; w++)
        for (int64_t t = 0; t < s->filled[head * s->rows + w]; t++)
            *key++ = (int32_t)(w * s->b + t);
    for (int64_t t = 0; s->local == SOFT_LOCAL_CONCAT && t < soft_blocks_length(s, u); t++)
        *key++ = (int32_t)(s->rows * s->b + u * s->b + t);
    return key;
}

void soft_blocks_sort(Run *r, SoftBlocks *s)
{
    blocks_count_slots(r, s);
    s->k = sorted_rows(r, s, r->k);
    s->v = sorted_rows(r, s, r->v);
}

/* Block u's queries see its sorted slots (SortCut: the first blocks'), then,
 * with concat, its own tokens. */
static void sorted_groups(Run *r, const SoftBlocks *s, GroupAttend *g)
{
    int64_t keys = s->nb * ((s->cut ? s->rows : 1) + 1) * s->b, slots = s->rows * s->b;
    Chunks  c = chunks_of(s->n, s->b, 0, 0, false);

    if (keys > INT32_MAX)
        run_fail(r, ERR_PARAM, "%s: %lld sorted blocks for each of %lld blocks are too many keys "
                 "to list; see fewer", r->mechanism->id, (long long)s->rows, (long long)s->nb);
    chunks_groups(r, &c, g);
    g->query_at = run_tensor2(r, DT_I32, 1, s->n);
    g->key_at = run_tensor2(r, DT_I32, 1, slots + s->n);
    g->key_start = run_tensor2(r, DT_I32, s->h, s->nb + 1);
    g->key_index = run_tensor2(r, DT_I32, s->h, keys);
    if (run_failed(r))
        return;
    for (int64_t i = 0; i < s->n; i++)
        tensor_i32(&g->query_at)[i] = tensor_i32(&g->key_at)[slots + i] = (int32_t)i;
    for (int64_t i = 0; i < slots; i++)
        tensor_i32(&g->key_at)[i] = -1; /* chosen from the past already */
    for (int64_t t = 0; t < s->h; t++) {
        int32_t *start = tensor_i32(&g->key_start) + t * (s->nb + 1);
        int32_t *first = tensor_i32(&g->key_index) + t * keys, *key = first;

        for (int64_t u = 0; u < s->nb; u++) {
            start[u] = (int32_t)(key - first);
            key = blocks_list_keys(s, t, u, key);
        }
        start[s->nb] = (int32_t)(key - first);
    }
    g->causal = s->causal;
}

static GroupResult blocks_attend_own(Run *r, const SoftBlocks *s)
{
    GroupAttend g = { .q = r->q, .k = r->k, .v = r->v, .scale = s->scale, .causal = s->causal };
    Chunks      c = chunks_of(s->n, s->b, 0, 0, false);

    chunks_groups(r, &c, &g);
    g.query_at = g.key_at = g.query_index; /* rows are positions */
    return op_group_attend(r, &g);
}

void soft_blocks_attend(Run *r, SoftBlocks *s)
{
    GroupAttend g = { .q = r->q, .k = s->k, .v = s->v, .scale = s->scale };
    GroupResult sorted, own;

    if (own_apart(r, s)) {
        g.more_k = r->k;
        g.more_v = r->v;
    }
    sorted_groups(r, s, &g);
    sorted = op_group_attend(r, &g);
    s->sorted_lse = sorted.lse;
    r->out = sorted.out;
    if (s->local != SOFT_LOCAL_SUM)
        return;
    run_stage(r, "attend own block");
    own = blocks_attend_own(r, s);
    s->own_lse = own.lse;
    op_entries_of(r, r->out, own.out, ENTRY_SUM, 1, r->out);
    op_charge(r, FLOP_OVERHEAD, (double)(s->h * s->n * s->e));
}

/* ---- views ------------------------------------------------------------------ */

static double blocks_cell(const SoftBlocks *s, const AttendInput *in, const double *z, int64_t head,
                          int64_t i, int64_t j)
{
    return exp(attend_score(in, s->h, head, i, j) - z[head * s->n + i]);
}

/* Cache of the softmax weights of the slots read last. */
typedef struct SlotCache {
    int64_t slot[CACHE];
    double  weight[CACHE];
} SlotCache;

static double slot_weight(const SoftBlocks *s, SlotCache *cache, int64_t head, int64_t i,
                          int64_t slot)
{
    int64_t at = slot % CACHE;

    if (cache->slot[at] != slot) {
        cache->slot[at] = slot;
        cache->weight[at] = blocks_cell(s, &s->sorted, s->sorted_z, head, i, slot);
    }
    return cache->weight[at];
}

static void blocks_read_weights(const View *view, int64_t head, int64_t i, int64_t start,
                                int64_t count, int64_t step, float *out)
{
    const SoftBlocks *s = view->context;
    int64_t       u = i / s->b, first = s->cut ? 0 : u, last = s->cut ? s->rows - 1 : u;
    SlotCache     cache;

    memset(cache.slot, -1, sizeof(cache.slot));
    for (int64_t c = 0; c < count; c++) {
        int64_t j = start + c * step, v = j / s->b, t = j % s->b;
        double  sum = 0;

        for (int64_t w = first; w <= last; w++) {
            double share = ((double *)s->perm.data)[(head * s->nb + w) * s->nb + v];

            if (share > 0)
                sum += share * slot_weight(s, &cache, head, i, w * s->b + t);
        }
        if (s->local != SOFT_LOCAL_NONE && v == u && !(s->causal && j > i))
            sum += blocks_cell(s, &s->own, s->own_z, head, i, j);
        out[c] = (float)sum;
    }
}

/* Log-sum-exp of a row: of its sorted slots, its own block, or both. */
static double blocks_row_log_sum(const SoftBlocks *s, int64_t head, int64_t i, bool slots, bool own)
{
    int64_t u = i / s->b, first = s->cut ? 0 : u, last = s->cut ? s->rows - 1 : u;
    int64_t from = u * s->b, to = s->causal ? i + 1 : from + soft_blocks_length(s, u);
    LogSum  sum = log_sum_new();

    for (int64_t w = first; slots && w <= last; w++)
        for (int64_t t = 0; t < s->filled[head * s->rows + w]; t++)
            log_sum_add(&sum, attend_score(&s->sorted, s->h, head, i, w * s->b + t));
    for (int64_t j = from; own && j < to; j++)
        log_sum_add(&sum, attend_score(&s->own, s->h, head, i, j));
    return log_sum_of(&sum);
}

/* Recomputes large log-sum-exps in double: float rounding would show in the weights. */
static double *refined(Run *r, const SoftBlocks *s, Tensor lse, bool slots, bool own)
{
    double *z = run_alloc(r, s->h * s->n, sizeof(*z));

    for (int64_t x = 0; x < s->h * s->n && !run_failed(r); x++) {
        z[x] = (double)tensor_f32(&lse)[x];
        if (isfinite(z[x]) && fabs(z[x]) >= COARSE)
            z[x] = blocks_row_log_sum(s, x / s->n, x % s->n, slots, own);
    }
    return z;
}

static void read_ones(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    (void)view, (void)head, (void)i, (void)start, (void)step;
    for (int64_t c = 0; c < count; c++)
        out[c] = 1;
}

/* Sources of sorted block w into a row of block flags: all, or the largest. */
static void mark_sources(const SoftBlocks *s, int64_t head, int64_t w, bool hard, uint8_t *flags)
{
    const double *row = (double *)s->perm.data + (head * s->nb + w) * s->nb;
    int64_t       best = 0;

    for (int64_t v = 0; v < s->nb; v++) {
        if (!hard && row[v] > 0)
            flags[v] = 1;
        if (row[v] > row[best])
            best = v;
    }
    if (hard && row[best] > 0)
        flags[best] = 1;
}

/* Cells a query reaches through its sorted blocks, and its own block. */
static Pattern *blocks_cells(Run *r, const SoftBlocks *s, bool hard)
{
    PatternShape shape = { .heads = s->h, .n = s->n, .m = s->n };
    PatternShape blocks = { .heads = s->h, .n = s->nb, .m = s->nb };
    Tensor       mask = run_tensor3(r, DT_U8, s->h, s->nb, s->nb);
    Pattern     *p;

    if (run_failed(r))
        return NULL;
    memset(mask.data, 0, (size_t)tensor_bytes(&mask));
    for (int64_t x = 0; x < s->h * s->nb; x++) {
        int64_t u = x % s->nb, first = s->cut ? 0 : u, last = s->cut ? s->rows - 1 : u;

        for (int64_t w = first; w <= last; w++)
            mark_sources(s, x / s->nb, w, hard, tensor_u8(&mask) + x * s->nb);
    }
    p = pattern_tile(r->arena, shape, s->b, pattern_mask(r->arena, blocks, &mask));
    if (s->local != SOFT_LOCAL_NONE)
        p = pattern_union(r->arena, p, pattern_chunk(r->arena, shape, s->b, 0, 0));
    p = pattern_finish(r->arena, shape, p, s->causal);
    if (!p)
        run_fail(r, ERR_NOMEM, "%s: not enough memory for the pattern", r->mechanism->id);
    return p;
}

/* The block that sorted block `row` of Perm takes: of those not taken, the one that weighs most. */
static int64_t take_block(const double *row, int64_t nb, uint8_t *taken)
{
    int64_t best = -1;

    for (int64_t v = 0; v < nb; v++)
        if (!taken[v] && (best < 0 || row[v] > row[best]))
            best = v;
    taken[best] = 1;
    return best;
}

/* Keys as the sort places them.  Every token stands there once, although several sorted blocks
 * may want the same block: the first of them has it. */
static void show_order(Run *r, const SoftBlocks *s)
{
    Tensor   order = run_tensor2(r, DT_I32, s->h, s->n);
    uint8_t *taken = run_alloc(r, s->nb, sizeof(*taken));

    for (int64_t t = 0; t < s->h && !run_failed(r); t++) {
        int32_t *slot = tensor_i32(&order) + t * s->n;

        memset(taken, 0, (size_t)s->nb);
        for (int64_t u = 0; u < s->nb; u++) {
            const double *row = (double *)s->perm.data + (t * s->nb + u) * s->nb;
            int64_t       v = take_block(row, s->nb, taken);

            for (int64_t i = 0; i < soft_blocks_length(s, v); i++)
                *slot++ = (int32_t)(v * s->b + i);
        }
    }
    if (!run_failed(r))
        view_tensor(r, "order", VIEW_ORDER, order, "head", "key slot");
}

void soft_blocks_show(Run *r, SoftBlocks *s)
{
    const Pattern *soft, *hard;

    if (!run_wants_views(r))
        return;
    s->sorted = (AttendInput){ .q = r->q, .k = s->k, .v = s->v, .scale = s->scale };
    s->own = (AttendInput){ .q = r->q, .k = r->k, .v = r->v, .scale = s->scale };
    s->sorted_z = refined(r, s, s->sorted_lse, true, s->local == SOFT_LOCAL_CONCAT);
    s->own_z = s->local == SOFT_LOCAL_SUM ? refined(r, s, s->own_lse, false, true) : s->sorted_z;
    soft = blocks_cells(r, s, false);
    hard = blocks_cells(r, s, true);
    view_pattern(r, soft, false);
    view_stage(r, "sort blocks", -1); /* what each query is given, before any score */
    view_reader(r, "connectivity_hard", VIEW_PATTERN, DT_U8, read_ones, s, hard);
    show_order(r, s);
    view_stage(r, NULL, -1);
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, blocks_read_weights, s, soft);
    view_meaning(r, soft, NULL, "sorted block");
    view_meaning(r, hard, NULL, "sorted block");
}

/* Scores of blocks without parameters, from the means of their tokens.
 *
 *     R[u,v] = qbar_u . kbar_v / sqrt(d)
 *
 * kbar_v is the mean key of block v, qbar_u the mean query of block u; in a causal run qbar_u
 * is the mean of all queries up to the block's first, and only blocks before u count.
 */

double soft_blocks_mean_flops(const SoftBlocks *s)
{
    double h = (double)s->h, d = (double)s->d, nb = (double)s->nb, tokens = (double)s->n;

    if (s->causal) /* queries up to each block's first */
        tokens = nb + (double)s->b * nb * (nb - 1) / 2;
    return h * d * ((double)s->n + tokens + 2 * nb * nb);
}

/* Rows [first, last) of x averaged. */
static void mean_rows(const float *x, int64_t first, int64_t last, int64_t d, double *out)
{
    for (int64_t c = 0; c < d; c++)
        out[c] = 0;
    for (int64_t i = first; i < last; i++)
        for (int64_t c = 0; c < d; c++)
            out[c] += (double)x[i * d + c];
    for (int64_t c = 0; c < d; c++)
        out[c] /= (double)(last - first);
}

Tensor soft_blocks_mean_logits(Run *r, const SoftBlocks *s)
{
    Tensor  logits = run_tensor3(r, DT_F64, r->h, s->nb, s->nb);
    double *q = run_alloc(r, r->d, sizeof(*q)), *k = run_alloc(r, s->nb * r->d, sizeof(*k));

    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        const float *query = tensor_head(&r->q, t, r->h), *key = tensor_head(&r->k, t, r->h);

        for (int64_t v = 0; v < s->nb; v++)
            mean_rows(key, v * s->b, v * s->b + soft_blocks_length(s, v), r->d, k + v * r->d);
        for (int64_t u = 0; u < s->nb; u++) {
            double *row = (double *)logits.data + (t * s->nb + u) * s->nb;

            mean_rows(query, s->causal ? 0 : u * s->b,
                      u * s->b + (s->causal ? 1 : soft_blocks_length(s, u)), r->d, q);
            for (int64_t v = 0; v < s->nb; v++) {
                row[v] = 0;
                for (int64_t c = 0; c < r->d; c++)
                    row[v] += q[c] * k[v * r->d + c];
                row[v] = (double)(float)(row[v] / sqrt((double)r->d)); /* as it is dumped */
            }
        }
    }
    op_charge(r, FLOP_OVERHEAD, soft_blocks_mean_flops(s));
    return logits;
}
