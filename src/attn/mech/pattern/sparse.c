/* sparse.c -- the sparse transformers: strided and fixed. */
#include <math.h>

#include "attn/run.h"

/* Sparse Transformer, strided pattern.
 *
 * With a stride s near sqrt(n):
 *
 *     L = { |i - j| < s }                 or, local_kind=block, floor(i/s) = floor(j/s)
 *     T = { (i - j) mod s = 0 }
 *
 * merged heads see L and T; split: the first half of the heads sees L, the rest T.
 * Any two tokens are two hops apart: along the stride, then to the neighbour.
 */

enum { STRIDED_MERGED, STRIDED_SPLIT, STRIDED_LOCAL, STRIDED_STRIDE };
enum { LOCAL_WINDOW, LOCAL_BLOCK };

static const char *const strided_heads[] = { "merged", "split", "local", "strided", NULL };
static const char *const local_kinds[] = { "window", "block", NULL };

typedef struct SparseStridedParams {
    int64_t stride;
    int     heads, local_kind;
    double  scale, softcap;
} SparseStridedParams;

static const Param sparse_strided_params[] = {
    PARAM_INT(SparseStridedParams, stride, 0, 0, PARAM_COUNT_MAX, "s; 0: sqrt(n), rounded"),
    PARAM_ENUM(SparseStridedParams, heads, STRIDED_MERGED, strided_heads,
               "merged: both sets in every head; split: half the heads each; or one set only"),
    PARAM_ENUM(SparseStridedParams, local_kind, LOCAL_WINDOW, local_kinds,
               "local set: the s nearest on each side, or the own block"),
    PARAM_FLOAT(SparseStridedParams, scale, 0, 0, 1e30,
              "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(SparseStridedParams), PARAM_END
};

static Pattern *sparse_cells_of(Run *r, PatternShape s, const SparseStridedParams *p);
static Pattern *local_set(Run *r, PatternShape s, const SparseStridedParams *p);
static int64_t strided_stride(const Run *r, const SparseStridedParams *p);
static double diagonals(const Run *r, double k, double step);

static void sparse_strided_run(Run *r, const void *opaque)
{
    const SparseStridedParams *p = opaque;
    PatternShape               s = { .heads = r->h, .n = r->n, .m = r->n };

    if (p->heads == STRIDED_SPLIT && r->h == 1)
        run_warn(r, "sparse-strided: with one head heads=split has only local cells; use "
                    "heads=merged");
    run_size(r, "stride", strided_stride(r, p));
    run_pattern_attention(r, p->scale,
                          pattern_finish(r->arena, s, sparse_cells_of(r, s, p), r->causal));
}

static Pattern *sparse_cells_of(Run *r, PatternShape s, const SparseStridedParams *p)
{
    Pattern  *local = local_set(r, s, p), **heads;
    Pattern  *strided = pattern_stride(r->arena, s, strided_stride(r, p));

    switch (p->heads) {
    case STRIDED_MERGED: return pattern_union(r->arena, local, strided);
    case STRIDED_LOCAL: return local;
    case STRIDED_STRIDE: return strided;
    default: break;
    }
    heads = run_alloc(r, r->h, sizeof(*heads));
    for (int64_t t = 0; t < r->h && !run_failed(r); t++)
        heads[t] = t < (r->h + 1) / 2 ? local : strided;
    return run_failed(r) ? NULL : pattern_by_head(r->arena, s, heads, r->h);
}

static Pattern *local_set(Run *r, PatternShape s, const SparseStridedParams *p)
{
    int64_t stride = strided_stride(r, p), reach = stride - 1;

    return p->local_kind == LOCAL_BLOCK
               ? pattern_chunk(r->arena, s, stride, 0, 0)
               : pattern_band(r->arena, s, -reach, reach, 1, COMPONENT_WINDOW);
}

static int64_t strided_stride(const Run *r, const SparseStridedParams *p)
{
    int64_t root = (int64_t)floor(sqrt((double)r->m) + 0.5);

    return p->stride ? p->stride : root > 1 ? root : 1;
}

/* The two sets share the diagonal only: |i - j| < s and a multiple of s. */
static Flops sparse_strided_flops(Run *r, const void *opaque)
{
    const SparseStridedParams *p = opaque;
    int64_t                    s = strided_stride(r, p), n = r->n;
    double                     local = diagonals(r, (double)((s < n ? s : n) - 1), 1), cells;
    double                     strided = diagonals(r, (double)((n - 1) / s), (double)s);
    double                     h = (double)r->h, first = (double)((r->h + 1) / 2);

    if (p->local_kind == LOCAL_BLOCK) {
        double whole = (double)(n / s), b = (double)s, rest = (double)(n % s);

        local = r->causal ? whole * b * (b + 1) / 2 + rest * (rest + 1) / 2
                          : whole * b * b + rest * rest;
    }
    switch (p->heads) {
    case STRIDED_MERGED: cells = h * (local + strided - (double)n); break;
    case STRIDED_LOCAL: cells = h * local; break;
    case STRIDED_STRIDE: cells = h * strided; break;
    default: cells = first * local + (h - first) * strided;
    }
    return run_pattern_flops(r, cells);
}

/* n + 2 sum_{t=1..k} (n - t step), causal once. */
static double diagonals(const Run *r, double k, double step)
{
    double n = (double)r->n;

    return n + (r->causal ? 1 : 2) * (k * n - step * k * (k + 1) / 2);
}

static const ViewPromise sparse_strided_views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_sparse_strided = {
    .id = "sparse-strided",
    .title = "Sparse Transformer, strided",
    .authors = "Child, Gray, Radford, Sutskever",
    .year = 2019,
    .arxiv = "1904.10509",
    .source = "paper, section 4.3; openai/sparse_attention attention.py for the local set",
    .formula = "A = { |i - j| < s } + { (i - j) mod s = 0 },  s = sqrt(n)",
    .problem = "Full attention is too expensive for images and sound of many thousand steps.",
    .idea = "Each query sees its near past and every s-th key, so that two layers join any pair.",
    .price = "A pair that is neither near nor a multiple of the stride apart needs two steps.",
    .lesson = "patterns",
    .teaches = "A band and every s-th diagonal: one hop along the stride and one to the "
               "neighbour reach any token.",
    .classes = CLASS_FP,
    .claim_time = "O(n sqrt(n))",
    .claim_memory = "O(n sqrt(n))",
    .claim_decode = "yes",
    .claim_exponent = 1.5,
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .views = sparse_strided_views,
    .params = sparse_strided_params,
    .params_size = sizeof(SparseStridedParams),
    .run = sparse_strided_run,
    .flops = sparse_strided_flops,
    .decode = decode_cells,
};

/* Sparse Transformer, fixed pattern.
 *
 * Blocks of s tokens; the last c of each block (or an earlier group of c) are its
 * summary, which every other block can read:
 *
 *     L = { floor(i/s) = floor(j/s) }
 *     T = { s - (g+1) c <= j mod s < s - g c },   g = head mod verts
 */

enum { FIXED_MERGED, FIXED_SPLIT, FIXED_LOCAL, FIXED_SUMMARY };

static const char *const fixed_heads[] = { "merged", "split", "local", "summary", NULL };

typedef struct SparseFixedParams {
    int64_t stride, summary, verts;
    int     heads;
    double  scale, softcap;
} SparseFixedParams;

static const Param sparse_fixed_params[] = {
    PARAM_INT(SparseFixedParams, stride, 0, 0, PARAM_COUNT_MAX,
              "s, length of a block; 0: sqrt(n), rounded"),
    PARAM_INT(SparseFixedParams, summary, 1, 1, PARAM_COUNT_MAX, "c, summary columns of a block"),
    PARAM_INT(SparseFixedParams, verts, 1, 1, PARAM_COUNT_MAX,
              "groups of summary columns, one after the other over the heads"),
    PARAM_ENUM(SparseFixedParams, heads, FIXED_MERGED, fixed_heads,
               "merged: both sets in every head; split: half the heads each; or one set only"),
    PARAM_FLOAT(SparseFixedParams, scale, 0, 0, 1e30,
              "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(SparseFixedParams), PARAM_END
};

static Pattern *head_cells(Run *r, PatternShape s, const SparseFixedParams *p, int64_t head);
static int64_t fixed_stride(const Run *r, const SparseFixedParams *p);
static bool sees_summary(const Run *r, const SparseFixedParams *p, int64_t head);
static bool sees_block(const Run *r, const SparseFixedParams *p, int64_t head);
static int64_t columns_before(int64_t x, int64_t stride, int64_t c, int64_t group);

static void sparse_fixed_run(Run *r, const void *opaque)
{
    const SparseFixedParams *p = opaque;
    PatternShape             s = { .heads = r->h, .n = r->n, .m = r->n };
    bool                     alike = p->heads != FIXED_SPLIT && p->verts == 1;
    int64_t                  kinds = alike ? 1 : r->h;
    Pattern                **heads = run_alloc(r, kinds, sizeof(*heads));

    if (run_failed(r))
        return;
    if (p->heads == FIXED_SPLIT && r->h == 1)
        run_warn(r, "sparse-fixed: with one head heads=split has only local cells; use "
                    "heads=merged");
    for (int64_t t = 0; t < kinds; t++)
        heads[t] = head_cells(r, s, p, t);
    run_pattern_attention(r, p->scale,
                          pattern_finish(r->arena, s,
                                         pattern_by_head(r->arena, s, heads, kinds), r->causal));
}

static Pattern *head_cells(Run *r, PatternShape s, const SparseFixedParams *p, int64_t head)
{
    int64_t  stride = fixed_stride(r, p);
    Pattern *block = pattern_chunk(r->arena, s, stride, 0, 0);
    Pattern *summary = pattern_summary(r->arena, s, stride, p->summary, head % p->verts);

    if (!sees_summary(r, p, head))
        return block;
    return sees_block(r, p, head) ? pattern_union(r->arena, block, summary) : summary;
}

static int64_t fixed_stride(const Run *r, const SparseFixedParams *p)
{
    int64_t root = (int64_t)floor(sqrt((double)r->m) + 0.5);

    return p->stride ? p->stride : root > 1 ? root : 1;
}

static bool sees_summary(const Run *r, const SparseFixedParams *p, int64_t head)
{
    return p->heads == FIXED_MERGED || p->heads == FIXED_SUMMARY ||
           (p->heads == FIXED_SPLIT && head >= (r->h + 1) / 2);
}

static bool sees_block(const Run *r, const SparseFixedParams *p, int64_t head)
{
    return p->heads == FIXED_MERGED || p->heads == FIXED_LOCAL ||
           (p->heads == FIXED_SPLIT && head < (r->h + 1) / 2);
}

static void sparse_fixed_check(Run *r, const void *opaque)
{
    const SparseFixedParams *p = opaque;
    int64_t                  stride = fixed_stride(r, p);

    if (p->verts > stride || p->summary > stride / p->verts)
        run_fail(r, ERR_PARAM,
                 "sparse-fixed: verts=%lld groups of summary=%lld columns do not fit into a block "
                 "of stride=%lld; take fewer, or a larger stride",
                 (long long)p->verts, (long long)p->summary, (long long)stride);
}

/* Row by row: the own block, the summary columns, less those in both. */
static Flops sparse_fixed_flops(Run *r, const void *opaque)
{
    const SparseFixedParams *p = opaque;
    int64_t                  s = fixed_stride(r, p);
    double                   cells = 0;

    for (int64_t x = 0; x < r->h * r->n; x++) {
        int64_t head = x / r->n, i = x % r->n, group = head % p->verts;
        int64_t end = r->causal ? i + 1 : r->n, first = i / s * s;
        int64_t last = first + s < end ? first + s : end;
        int64_t within = columns_before(last, s, p->summary, group) -
                         columns_before(first, s, p->summary, group);
        bool    block = sees_block(r, p, head), summary = sees_summary(r, p, head);

        cells += block ? (double)(last - first) : 0;
        cells += summary ? (double)columns_before(end, s, p->summary, group) : 0;
        cells -= block && summary ? (double)within : 0;
    }
    return run_pattern_flops(r, cells);
}

/* Summary columns of a head before column x. */
static int64_t columns_before(int64_t x, int64_t stride, int64_t c, int64_t group)
{
    int64_t part = x % stride - (stride - (group + 1) * c);

    return x / stride * c + (part < 0 ? 0 : part < c ? part : c);
}

static bool some_head_sees_block(const Run *r, const SparseFixedParams *p)
{
    bool some = false;

    for (int64_t t = 0; t < r->h; t++)
        some = some || sees_block(r, p, t);
    return some;
}

/* Whether some head sees this group of summary columns. */
static bool group_is_seen(const Run *r, const SparseFixedParams *p, int64_t group)
{
    bool some = false;

    for (int64_t t = group; t < r->h; t += p->verts)
        some = some || sees_summary(r, p, t);
    return some;
}

/* Summary columns stay, and the tokens of a block.  A stride that follows n is that of the run's
 * length, so the rule of its cells says nothing of another one. */
static DecodeCost sparse_fixed_decode(const Run *r, const void *opaque)
{
    const SparseFixedParams *p = opaque;
    int64_t    s = fixed_stride(r, p), near = some_head_sees_block(r, p) ? min_i64(s, r->m) : 0;
    double     token = (double)r->cache_bytes * decode_token(r);
    int64_t    kept = near, every = 0;
    DecodeCost cost = decode_cells(r, opaque);

    for (int64_t g = 0; g < p->verts && g < r->h; g++)
        if (group_is_seen(r, p, g)) {
            kept += columns_before(r->m - near, s, p->summary, g);
            every += p->summary;
        }
    cost.state_bytes = token * (double)kept;
    cost.kv_bytes_per_token = token * (double)every / (double)s;
    return cost;
}

static const ViewPromise sparse_fixed_views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_sparse_fixed = {
    .id = "sparse-fixed",
    .title = "Sparse Transformer, fixed",
    .authors = "Child, Gray, Radford, Sutskever",
    .year = 2019,
    .arxiv = "1904.10509",
    .source = "paper, section 4.3; survey of Fournier et al., figure 11",
    .formula = "A = { floor(i/s) = floor(j/s) } + { j mod s >= s - c },  s = sqrt(n)",
    .problem = "Strides fit images, but in text what matters does not come at regular distances.",
    .idea = "Queries see their own block and a few summary columns at the end of each block.",
    .price = "What another block holds must first be collected in its few summary columns.",
    .lesson = "patterns",
    .teaches = "Squares on the diagonal, and full columns at the end of each block: the columns "
               "are the relays through which blocks hear of each other.",
    .classes = CLASS_FP,
    .claim_time = "O(n sqrt(n))",
    .claim_memory = "O(n sqrt(n))",
    .claim_decode = "yes",
    .claim_exponent = 1.5,
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .views = sparse_fixed_views,
    .params = sparse_fixed_params,
    .params_size = sizeof(SparseFixedParams),
    .check = sparse_fixed_check,
    .run = sparse_fixed_run,
    .flops = sparse_fixed_flops,
    .decode = sparse_fixed_decode,
};
