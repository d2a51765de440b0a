/* sparse_strided.c -- Sparse Transformer, strided pattern.
 *
 * With a stride s near sqrt(n):
 *
 *     L = { |i - j| < s }                 or, local_kind=block, floor(i/s) = floor(j/s)
 *     T = { (i - j) mod s = 0 }
 *
 * merged heads see L and T; split: the first half of the heads sees L, the rest T.
 * Any two tokens are two hops apart: along the stride, then to the neighbour.
 */
#include "attn/run.h"

#include <math.h>

enum { HEADS_MERGED, HEADS_SPLIT, HEADS_LOCAL, HEADS_STRIDED };
enum { LOCAL_WINDOW, LOCAL_BLOCK };

static const char *const head_kinds[] = { "merged", "split", "local", "strided", NULL };
static const char *const local_kinds[] = { "window", "block", NULL };

typedef struct Params {
    int64_t stride;
    int     heads, local_kind;
    double  scale;
} Params;

static const Param params[] = {
    PARAM_INT(Params, stride, 0, 0, PARAM_COUNT_MAX, "s; 0: sqrt(n), rounded"),
    PARAM_ENUM(Params, heads, HEADS_MERGED, head_kinds,
               "merged: both sets in every head; split: half the heads each; or one set only"),
    PARAM_ENUM(Params, local_kind, LOCAL_WINDOW, local_kinds,
               "local set: the s nearest on each side, or the own block"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"), PARAM_END
};

static int64_t stride_of(const Run *r, const Params *p)
{
    int64_t root = (int64_t)floor(sqrt((double)r->n) + 0.5);

    return p->stride ? p->stride : root > 1 ? root : 1;
}

static Pattern *local_set(Run *r, PatternShape s, const Params *p)
{
    int64_t stride = stride_of(r, p), reach = (stride < r->n ? stride : r->n) - 1;

    return p->local_kind == LOCAL_BLOCK
               ? pattern_chunk(r->arena, s, stride, 0, 0)
               : pattern_band(r->arena, s, -reach, reach, 1, COMPONENT_WINDOW);
}

static Pattern *cells_of(Run *r, PatternShape s, const Params *p)
{
    Pattern  *local = local_set(r, s, p), **heads;
    Pattern  *strided = pattern_stride(r->arena, s, stride_of(r, p));

    switch (p->heads) {
    case HEADS_MERGED: return pattern_union(r->arena, local, strided);
    case HEADS_LOCAL: return local;
    case HEADS_STRIDED: return strided;
    default: break;
    }
    heads = run_alloc(r, r->h, sizeof(*heads));
    for (int64_t t = 0; t < r->h && !run_failed(r); t++)
        heads[t] = t < (r->h + 1) / 2 ? local : strided;
    return run_failed(r) ? NULL : pattern_by_head(r->arena, s, heads, r->h);
}

static void sparse_strided_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    PatternShape  s = { .heads = r->h, .n = r->n, .m = r->n };

    if (p->heads == HEADS_SPLIT && r->h == 1)
        run_warn(r, "sparse-strided: with one head heads=split has only local cells; use "
                    "heads=merged");
    run_pattern_attention(r, p->scale,
                          pattern_finish(r->arena, s, cells_of(r, s, p), r->causal));
}

/* n + 2 sum_{t=1..k} (n - t step), causal once. */
static double diagonals(const Run *r, double k, double step)
{
    double n = (double)r->n;

    return n + (r->causal ? 1 : 2) * (k * n - step * k * (k + 1) / 2);
}

/* The two sets share the diagonal only: |i - j| < s and a multiple of s. */
static Flops sparse_strided_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    int64_t       s = stride_of(r, p), n = r->n;
    double        local = diagonals(r, (double)((s < n ? s : n) - 1), 1), cells;
    double        strided = diagonals(r, (double)((n - 1) / s), (double)s);
    double        h = (double)r->h, first = (double)((r->h + 1) / 2);

    if (p->local_kind == LOCAL_BLOCK) {
        double whole = (double)(n / s), b = (double)s, rest = (double)(n % s);

        local = r->causal ? whole * b * (b + 1) / 2 + rest * (rest + 1) / 2
                          : whole * b * b + rest * rest;
    }
    switch (p->heads) {
    case HEADS_MERGED: cells = h * (local + strided - (double)n); break;
    case HEADS_LOCAL: cells = h * local; break;
    case HEADS_STRIDED: cells = h * strided; break;
    default: cells = first * local + (h - first) * strided;
    }
    return run_pattern_flops(r, cells);
}

static const ViewPromise views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_sparse_strided = {
    .id = "sparse-strided",
    .title = "Sparse Transformer, strided",
    .authors = "Child, Gray, Radford, Sutskever",
    .year = 2019,
    .arxiv = "1904.10509",
    .source = "paper, section 4.3; openai/sparse_attention attention.py for the local set",
    .formula = "A = { |i - j| < s } + { (i - j) mod s = 0 },  s = sqrt(n)",
    .teaches = "A band and every s-th diagonal: one hop along the stride and one to the "
               "neighbour reach any token.",
    .classes = CLASS_FP,
    .claim_time = "O(n sqrt(n))",
    .claim_memory = "O(n sqrt(n))",
    .claim_decode = "yes",
    .claim_exponent = 1.5,
    .causal = true,
    .positions = POSITIONS_ALL,
    .views = views,
    .params = params,
    .params_size = sizeof(Params),
    .run = sparse_strided_run,
    .flops = sparse_strided_flops,
};
