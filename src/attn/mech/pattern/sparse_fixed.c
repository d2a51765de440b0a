/* sparse_fixed.c -- Sparse Transformer, fixed pattern.
 *
 * Blocks of s tokens; the last c of each block (or an earlier group of c) are its
 * summary, which every other block can read:
 *
 *     L = { floor(i/s) = floor(j/s) }
 *     T = { s - (g+1) c <= j mod s < s - g c },   g = head mod verts
 */
#include "attn/run.h"

#include <math.h>

enum { HEADS_MERGED, HEADS_SPLIT, HEADS_LOCAL, HEADS_SUMMARY };

static const char *const head_kinds[] = { "merged", "split", "local", "summary", NULL };

typedef struct Params {
    int64_t stride, summary, verts;
    int     heads;
    double  scale;
} Params;

static const Param params[] = {
    PARAM_INT(Params, stride, 0, 0, PARAM_COUNT_MAX, "s, length of a block; 0: sqrt(n), rounded"),
    PARAM_INT(Params, summary, 1, 1, PARAM_COUNT_MAX, "c, summary columns of a block"),
    PARAM_INT(Params, verts, 1, 1, PARAM_COUNT_MAX,
              "groups of summary columns, one after the other over the heads"),
    PARAM_ENUM(Params, heads, HEADS_MERGED, head_kinds,
               "merged: both sets in every head; split: half the heads each; or one set only"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"), PARAM_END
};

static int64_t stride_of(const Run *r, const Params *p)
{
    int64_t root = (int64_t)floor(sqrt((double)r->n) + 0.5);

    return p->stride ? p->stride : root > 1 ? root : 1;
}

static bool sees_block(const Run *r, const Params *p, int64_t head)
{
    return p->heads == HEADS_MERGED || p->heads == HEADS_LOCAL ||
           (p->heads == HEADS_SPLIT && head < (r->h + 1) / 2);
}

static bool sees_summary(const Run *r, const Params *p, int64_t head)
{
    return p->heads == HEADS_MERGED || p->heads == HEADS_SUMMARY ||
           (p->heads == HEADS_SPLIT && head >= (r->h + 1) / 2);
}

static Pattern *head_cells(Run *r, PatternShape s, const Params *p, int64_t head)
{
    int64_t  stride = stride_of(r, p);
    Pattern *block = pattern_chunk(r->arena, s, stride, 0, 0);
    Pattern *summary = pattern_summary(r->arena, s, stride, p->summary, head % p->verts);

    if (!sees_summary(r, p, head))
        return block;
    return sees_block(r, p, head) ? pattern_union(r->arena, block, summary) : summary;
}

static void sparse_fixed_check(Run *r, const void *opaque)
{
    const Params *p = opaque;
    int64_t       stride = stride_of(r, p);

    if (p->verts > stride || p->summary > stride / p->verts)
        run_fail(r, ERR_PARAM,
                 "sparse-fixed: verts=%lld groups of summary=%lld columns do not fit into a block "
                 "of stride=%lld; take fewer, or a larger stride",
                 (long long)p->verts, (long long)p->summary, (long long)stride);
}

static void sparse_fixed_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    PatternShape  s = { .heads = r->h, .n = r->n, .m = r->n };
    bool          alike = p->heads != HEADS_SPLIT && p->verts == 1;
    int64_t       kinds = alike ? 1 : r->h;
    Pattern     **heads = run_alloc(r, kinds, sizeof(*heads));

    if (run_failed(r))
        return;
    if (p->heads == HEADS_SPLIT && r->h == 1)
        run_warn(r, "sparse-fixed: with one head heads=split has only local cells; use "
                    "heads=merged");
    for (int64_t t = 0; t < kinds; t++)
        heads[t] = head_cells(r, s, p, t);
    run_pattern_attention(r, p->scale,
                          pattern_finish(r->arena, s,
                                         pattern_by_head(r->arena, s, heads, kinds), r->causal));
}

/* Summary columns of a head before column x. */
static int64_t columns_before(int64_t x, int64_t stride, int64_t c, int64_t group)
{
    int64_t part = x % stride - (stride - (group + 1) * c);

    return x / stride * c + (part < 0 ? 0 : part < c ? part : c);
}

/* Row by row: the own block, the summary columns, less those in both. */
static Flops sparse_fixed_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    int64_t       s = stride_of(r, p);
    double        cells = 0;

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

static const ViewPromise views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_sparse_fixed = {
    .id = "sparse-fixed",
    .title = "Sparse Transformer, fixed",
    .authors = "Child, Gray, Radford, Sutskever",
    .year = 2019,
    .arxiv = "1904.10509",
    .source = "paper, section 4.3; survey of Fournier et al., figure 11",
    .formula = "A = { floor(i/s) = floor(j/s) } + { j mod s >= s - c },  s = sqrt(n)",
    .teaches = "Squares on the diagonal, and full columns at the end of each block: the columns "
               "are the relays through which blocks hear of each other.",
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
    .check = sparse_fixed_check,
    .run = sparse_fixed_run,
    .flops = sparse_fixed_flops,
};
