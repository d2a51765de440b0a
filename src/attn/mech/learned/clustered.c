/* clustered.c -- clustered attention, plain and improved. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/mech/learned/query_clusters.h"
#include "attn/ops/weights.h"
#include "attn/run.h"

/* Clustered attention: one attention for all queries of a cluster.
 *
 * Queries are hashed to bits and clustered by Hamming distance; every query of a
 * cluster gets the attention of the cluster's mean:
 *
 *     qbar_c   = mean of the queries in cluster c
 *     A_c      = softmax_j(scale * qbar_c . k_j)
 *     output_i = sum_j A_c(i),j v_j
 *
 * So C rows of attention are computed, not n.  Hashing and clustering are exact
 * (attn/mech/learned/groups.h, attn/mech/learned/groups.h).
 */

static const Param clustered_params[] = { QUERY_CLUSTER_PARAM_ROWS, PARAM_END };

static void broadcast(Run *r, const QueryClusters *s, Tensor clusters, GroupResult result);
static void clustered_show(Run *r, QueryClusters *s);
static void read_clustered_weights(const View *view, int64_t head, int64_t i, int64_t start,
                                   int64_t count, int64_t step, float *out);

static void clustered_run(Run *r, const void *opaque)
{
    QueryClusters *s = query_clusters_new(r, opaque);
    GroupAttend    g;
    GroupResult    result;

    if (!s)
        return;
    run_stage(r, "attend means");
    g = query_clusters_group(r, s, r->v);
    result = op_group_attend(r, &g);
    broadcast(r, s, g.query_index, result);
    clustered_show(r, s);
}

/* The output of a cluster is that of each of its queries. */
static void broadcast(Run *r, const QueryClusters *s, Tensor clusters, GroupResult result)
{
    int32_t *row = run_alloc(r, s->clusters, sizeof(*row));
    Tensor   rows = run_tensor2(r, DT_I32, s->h, s->n);

    run_stage(r, "broadcast");
    for (int64_t t = 0; t < s->h && !run_failed(r); t++) {
        const int32_t *index = tensor_i32(&clusters) + t * s->clusters;
        int64_t        used = query_clusters_used(s, t);

        for (int64_t x = 0; x < used; x++)
            row[index[x]] = (int32_t)x;
        for (int64_t i = t * s->n; i < (t + 1) * s->n; i++)
            tensor_i32(&rows)[i] = row[tensor_i32(&s->parts.cluster)[i]];
    }
    r->out = op_gather(r, result.out, rows);
}

static void clustered_show(Run *r, QueryClusters *s)
{
    PatternShape shape = { .heads = r->h, .n = r->n, .m = r->m };
    Pattern     *all;

    if (!run_wants_views(r))
        return;
    query_clusters_show(r, s);
    all = pattern_full(r->arena, shape, COMPONENT_OTHER);
    if (!all)
        run_fail(r, ERR_NOMEM, "clustered: not enough memory for the pattern");
    view_pattern(r, all, false);
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, read_clustered_weights, s, NULL);
}

static void read_clustered_weights(const View *view, int64_t head, int64_t i, int64_t start,
                                   int64_t count, int64_t step, float *out)
{
    const QueryClusters *s = view->context;
    int32_t              c = tensor_i32(&s->parts.cluster)[head * s->n + i];
    double               z = s->z[head * s->clusters + c];

    for (int64_t x = 0; x < count; x++)
        out[x] = (float)exp(query_clusters_score(s, head, c, start + x * step) - z);
}

static Flops clustered_flops(Run *r, const void *opaque)
{
    double cells = (double)(r->h * query_clusters_count(r, opaque)) * (double)r->m;

    return (Flops){ .score = 2 * cells * (double)r->d, .mix = 2 * cells * (double)r->e,
                    .overhead = query_clusters_flops(r, opaque) + FLOPS_SOFTMAX * cells };
}

static const StageNote clustered_notes[] = {
    QUERY_CLUSTER_NOTES,
    { "attend means",
      "Each mean attends to all keys: C rows of attention instead of n." },
    { "broadcast",
      "Every query takes over its cluster's row, so rows of one cluster are identical." },
    { NULL, NULL }
};

static const ViewPromise clustered_views[] = {
    QUERY_CLUSTER_VIEWS,
    { .name = "connectivity", .kind = VIEW_PATTERN, .help = "every query weighs every key" },
    { .name = "weights", .kind = VIEW_WEIGHTS,
      .help = "attention weights; rows of one cluster are the same" },
    VIEW_PROMISE_END
};

const Mechanism mech_clustered = {
    .id = "clustered",
    .title = "Clustered attention",
    .authors = "Vyas, Katharopoulos, Fleuret",
    .year = 2020,
    .arxiv = "2007.04825",
    .source = "paper, section 3.2; idiap/fast-transformers clustered_attention.py, clustering, "
              "hashing",
    .formula = "qbar_c = mean of the queries in cluster c (Lloyd on the bits of their hashes)\n"
               "output_i = softmax_j(scale * qbar_c(i) . k_j) V",
    .picture = "weights",
    .problem = "Many queries ask nearly the same, yet each computes a row of its own.",
    .idea = "Queries are put into clusters, and one row is computed for the mean query of each "
            "cluster.",
    .price = "All queries of a cluster get the very same row, so what they differ in is lost.",
    .lesson = "clusters",
    .teaches = "Sorted by cluster the weights are horizontal bands: every query of a cluster has "
               "the very same row, and only as many rows are computed as there are clusters.",
    .example = "n_clusters=8",
    .classes = CLASS_LP,
    .claim_time = "O(n C)",
    .claim_memory = "O(n C)",
    .claim_decode = "no",
    .claim_exponent = 1,
    .no_causal = "one row serves queries at different positions",
    .cross = true,
    .fit = QUERY_CLUSTER_FIT,
    .views = clustered_views,
    .notes = clustered_notes,
    .size = "n_clusters",
    .params = clustered_params,
    .params_size = sizeof(QueryClusterParams),
    .check = query_clusters_check,
    .run = clustered_run,
    .flops = clustered_flops,
    .flops_bound = true,
};

/* Improved clustered attention: the best keys of a cluster are
 * weighed by each of its queries for itself.
 *
 *     A_c  = softmax_j(scale * qbar_c . k_j)         of the cluster's mean query
 *     T_c  = the topk keys with the largest qbar_c . k_j
 *     w_ij = A_cj                                    for j outside T_c
 *     w_ij = (1 - sum of A_c outside T_c) e_ij       for j in T_c,
 *            e_i = softmax over T_c of scale * q_i . k_j
 *
 * Causal: w_i is the softmax over the keys of T_c up to i, and nothing else; but
 * the clusters were made of the whole sequence, so it is no strict decoder.
 * T_c is decided in double.
 */

static const Param improved_params[] = {
    QUERY_CLUSTER_PARAM_ROWS,
    PARAM_INT(QueryClusterParams, topk, 32, 1, PARAM_COUNT_MAX, "keys of a cluster that its "
              "queries weigh themselves; m and more: exact attention"),
    PARAM_END
};

typedef struct Improved {
    QueryClusters *s;
    int64_t        topk;
    bool           causal;
    int64_t        offset; /* position of query 0 among the keys */
    Tensor         top;    /* i32 [h,C*topk] keys of T_c, increasing */
    Tensor         raw;    /* f64 [h,C*topk] their qbar_c . k_j */
    GroupResult    own;    /* softmax over T_c */
    AttendInput    in;     /* scores of queries and keys */
    double        *kept;   /* [h*C] what A_c gives to T_c; only with views */
    double        *z;      /* [h*n] log-sum-exp over T_c; only with views */
} Improved;

typedef struct Ranked {
    double  value;
    int32_t key;
} Ranked;

static int64_t key_count(const Run *r, const QueryClusterParams *p);
static void choose_keys(Run *r, Improved *p);
static void score_chosen(Run *r, Improved *p);
static void show_top(Run *r, const Improved *p);
static int by_rank(const void *a, const void *b);
static void clustered_attend(Run *r, Improved *p);
static void attend_rest(Run *r, const Improved *p, Tensor out, Tensor kept);
static double top_log_sum(const Improved *p, int64_t at);
static void clustered_attend_own(Run *r, Improved *p);
static void clustered_combine(Run *r, const Improved *p, Tensor rest, Tensor kept);
static void improved_show(Run *r, Improved *p);
static void prepare_reader(Run *r, Improved *p);
static const int32_t *clustered_keys_of(const Improved *p, int64_t head, int64_t i);
static void show_kept(Run *r, const Improved *p);
static int64_t clustered_seen_keys(const void *context, int64_t head, int64_t i, int32_t *count,
                                   int32_t *key);
static void read_improved_weights(const View *view, int64_t head, int64_t i, int64_t start,
                                  int64_t count, int64_t step, float *out);

static void clustered_improved_run(Run *r, const void *opaque)
{
    Improved *p = run_alloc(r, 1, sizeof(*p)); /* views read it later */

    if (!p)
        return;
    *p = (Improved){ .s = query_clusters_new(r, opaque), .topk = key_count(r, opaque),
                     .causal = r->causal, .offset = r->q_offset };
    if (!p->s)
        return;
    p->in = (AttendInput){ .q = r->q, .k = r->k, .v = r->v, .scale = p->s->scale };
    run_looks_ahead(r, "the clusters, and so the keys to choose from, are made of the whole "
                       "sequence");
    choose_keys(r, p);
    show_top(r, p);
    clustered_attend(r, p);
    improved_show(r, p);
}

static int64_t key_count(const Run *r, const QueryClusterParams *p)
{
    return min_i64(p->topk, r->m);
}

/* ---- the best keys ---------------------------------------------------------- */

static void choose_keys(Run *r, Improved *p)
{
    const QueryClusters *s = p->s;
    ChoiceRows           keys = { .near = r->k };
    int64_t              all = s->clusters * p->topk;

    run_stage(r, "choose keys");
    if (all > INT32_MAX)
        run_fail(r, ERR_PARAM, "clustered-improved: %lld clusters of topk=%lld keys are too many "
                 "to list; take fewer", (long long)s->clusters, (long long)p->topk);
    p->raw = run_tensor2(r, DT_F64, s->h, all);
    p->top = tensor_of(DT_I32, 2, (int64_t[]){ s->h, all },
                       op_best_rows(r, &keys, s->mean, p->topk).data);
    score_chosen(r, p);
    /* A causal run has no other use for the means' scores; else they are made once more. */
    op_charge(r, p->causal ? FLOP_SCORE : FLOP_OVERHEAD,
              2 * (double)(s->h * s->clusters) * (double)(s->m * s->d));
}

/* Products of the means and the keys that were chosen for them, in double. */
static void score_chosen(Run *r, Improved *p)
{
    const QueryClusters *s = p->s;

    op_wait(r, "the host scores the chosen keys");
    for (int64_t x = 0; x < s->h * s->clusters * p->topk && !run_failed(r); x++) {
        int64_t       head = x / (s->clusters * p->topk);
        const double *mean = (double *)s->mean.data + x / p->topk * s->d;
        const float  *key = (float *)tensor_head(&r->k, head, s->h) +
                           tensor_i32(&p->top)[x] * r->k.stride[1];
        double        sum = 0;

        for (int64_t t = 0; t < s->d; t++)
            sum += mean[t] * (double)key[t];
        ((double *)p->raw.data)[x] = sum;
    }
}

/* i32 [h,C,topk], the largest first; -1 for clusters without queries. */
static void show_top(Run *r, const Improved *p)
{
    Tensor  list;
    Ranked *rank;

    if (!run_wants_views(r))
        return;
    list = run_tensor3(r, DT_I32, r->h, p->s->clusters, p->topk);
    rank = run_alloc(r, p->topk, sizeof(*rank));
    for (int64_t at = 0; at < r->h * p->s->clusters && !run_failed(r); at++) {
        for (int64_t x = 0; x < p->topk; x++)
            rank[x] = (Ranked){ ((double *)p->raw.data)[at * p->topk + x],
                                tensor_i32(&p->top)[at * p->topk + x] };
        qsort(rank, (size_t)p->topk, sizeof(*rank), by_rank);
        for (int64_t x = 0; x < p->topk; x++)
            tensor_i32(&list)[at * p->topk + x] =
                tensor_i32(&p->s->parts.counts)[at] ? rank[x].key : -1;
    }
    view_tensor(r, "topk", VIEW_TENSOR, list, "cluster", "rank");
}

static int by_rank(const void *a, const void *b)
{
    const Ranked *x = a, *y = b;

    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

/* ---- attention -------------------------------------------------------------- */

static void clustered_attend(Run *r, Improved *p)
{
    const QueryClusters *s = p->s;
    Tensor               rest = { .rank = 0 }, kept = rest;

    if (!p->causal) {
        rest = run_tensor3(r, DT_F32, s->h, s->clusters, r->e);
        kept = run_tensor3(r, DT_F32, s->h, s->clusters, 1);
        attend_rest(r, p, rest, kept);
    }
    clustered_attend_own(r, p);
    clustered_combine(r, p, rest, kept);
}

/* Attention of the mean query outside T_c: row c of out is sum_j A_cj v_j, and what it leaves
 * is 1 - rest. */
static void attend_rest(Run *r, const Improved *p, Tensor out, Tensor kept)
{
    const QueryClusters *s = p->s;
    GroupAttend          g = query_clusters_group(r, s, r->v);
    GroupResult          rest;

    run_stage(r, "attend means");
    g.query_skip = tensor_of(DT_I32, 3, (int64_t[]){ s->h, s->clusters, p->topk }, p->top.data);
    rest = op_group_attend(r, &g);
    op_wait(r, "the host shares out what the chosen keys leave");
    for (int64_t t = 0; t < s->h && !run_failed(r); t++) {
        int64_t first = t * s->clusters, used = query_clusters_used(s, t);

        for (int64_t x = first; x < first + used; x++) {
            int64_t      at = first + tensor_i32(&g.query_index)[x];
            double       z = (double)tensor_f32(&rest.lse)[x];
            double       share = 1 / (1 + exp(top_log_sum(p, at) - z));
            const float *from = tensor_f32(&rest.out) + x * r->e;

            tensor_f32(&kept)[at] = (float)(1 - share);
            for (int64_t c = 0; c < r->e; c++)
                tensor_f32(&out)[at * r->e + c] = (float)(share * (double)from[c]);
        }
    }
}

static double top_log_sum(const Improved *p, int64_t at)
{
    const double *raw = (double *)p->raw.data + at * p->topk;
    double        top = -HUGE_VAL, sum = 0;

    for (int64_t x = 0; x < p->topk; x++)
        top = fmax(top, p->s->scale * raw[x]);
    for (int64_t x = 0; x < p->topk; x++)
        sum += exp(p->s->scale * raw[x] - top);
    return top + log(sum);
}

/* Each query to the best keys of its cluster. */
static void clustered_attend_own(Run *r, Improved *p)
{
    const QueryClusters *s = p->s;
    GroupAttend          g = { .q = r->q, .k = r->k, .v = r->v, .scale = s->scale,
                               .groups = s->clusters, .query_start = s->parts.start,
                               .query_index = s->parts.order, .key_index = p->top,
                               .causal = p->causal, .placed = true };

    run_stage(r, "attend chosen keys");
    g.key_start = run_tensor2(r, DT_I32, 1, s->clusters + 1);
    g.query_at = run_tensor2(r, DT_I32, 1, s->n);
    g.key_at = run_tensor2(r, DT_I32, 1, s->m);
    for (int64_t c = 0; c <= s->clusters && !run_failed(r); c++)
        tensor_i32(&g.key_start)[c] = (int32_t)(c * p->topk);
    for (int64_t i = 0; i < s->n && !run_failed(r); i++)
        tensor_i32(&g.query_at)[i] = (int32_t)(i + p->offset);
    for (int64_t j = 0; j < s->m && !run_failed(r); j++)
        tensor_i32(&g.key_at)[j] = (int32_t)j;
    p->own = op_group_attend(r, &g);
}

/* What a query's chosen keys give, times their share, and its cluster's rest [h,C,e]; causal runs
 * have no rest. */
static void clustered_combine(Run *r, const Improved *p, Tensor rest, Tensor kept)
{
    ArenaMark mark = arena_mark(r->arena);
    Tensor    cluster = p->s->parts.cluster;

    run_stage(r, "combine");
    r->out = p->own.out;
    if (p->causal)
        return;
    op_entries_of(r, r->out, op_gather(r, kept, cluster), ENTRY_PRODUCT, 1, r->out);
    op_entries_of(r, r->out, op_gather(r, rest, cluster), ENTRY_SUM, 1, r->out);
    arena_release(r->arena, mark);
}

static void improved_show(Run *r, Improved *p)
{
    PatternShape    shape = { .heads = r->h, .n = r->n, .m = r->m };
    const CellRows *rows;
    Pattern        *cells;

    if (!run_wants_views(r))
        return;
    query_clusters_show(r, p->s);
    prepare_reader(r, p);
    show_kept(r, p);
    if (p->causal) {
        rows = cell_rows_new(r, clustered_seen_keys, p);
        cells = cell_rows_pattern(r, rows, COMPONENT_CLUSTER);
        view_stage(r, "attend chosen keys", -1);
        view_pattern(r, cells, false);
        view_stage(r, NULL, -1);
        cell_rows_weights(r, rows, p->in, cells);
        return;
    }
    cells = pattern_full(r->arena, shape, COMPONENT_OTHER);
    if (!cells)
        run_fail(r, ERR_NOMEM, "clustered-improved: not enough memory for the pattern");
    view_stage(r, "attend chosen keys", -1);
    view_pattern(r, cells, false);
    view_stage(r, NULL, -1);
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, read_improved_weights, p, NULL);
}

/* The shares the readers need, in double. */
static void prepare_reader(Run *r, Improved *p)
{
    const QueryClusters *s = p->s;

    p->kept = run_alloc(r, s->h * s->clusters, sizeof(*p->kept));
    p->z = run_alloc(r, s->h * s->n, sizeof(*p->z));
    for (int64_t at = 0; at < s->h * s->clusters && !run_failed(r); at++)
        p->kept[at] = tensor_i32(&s->parts.counts)[at] ? exp(top_log_sum(p, at) - s->z[at]) : 0;
    for (int64_t x = 0; x < s->h * s->n && !run_failed(r); x++) {
        const int32_t *keys = clustered_keys_of(p, x / s->n, x % s->n);
        double         top = -HUGE_VAL, sum = 0;

        for (int64_t y = 0; y < p->topk; y++)
            top = fmax(top, attend_score(&p->in, s->h, x / s->n, x % s->n, keys[y]));
        for (int64_t y = 0; y < p->topk; y++)
            sum += exp(attend_score(&p->in, s->h, x / s->n, x % s->n, keys[y]) - top);
        p->z[x] = top + log(sum);
    }
}

static const int32_t *clustered_keys_of(const Improved *p, int64_t head, int64_t i)
{
    const QueryClusters *s = p->s;

    return tensor_i32(&p->top) +
           (head * s->clusters + tensor_i32(&s->parts.cluster)[head * s->n + i]) * p->topk;
}

static void show_kept(Run *r, const Improved *p)
{
    Tensor kept = run_tensor2(r, DT_F32, r->h, p->s->clusters);

    for (int64_t at = 0; at < tensor_count(&kept) && !run_failed(r); at++)
        tensor_f32(&kept)[at] = (float)p->kept[at];
    view_stage(r, "choose keys", -1);
    view_tensor(r, "kept_mass", VIEW_MASK, kept, "head", "cluster");
    view_stage(r, NULL, -1);
}

static int64_t clustered_seen_keys(const void *context, int64_t head, int64_t i, int32_t *count,
                                   int32_t *key)
{
    const Improved *p = context;
    const int32_t  *keys = clustered_keys_of(p, head, i);
    int64_t         found = 0;

    for (; found < p->topk && keys[found] <= i + p->offset; found++) {
        key[found] = keys[found];
        count[keys[found]] = 1;
    }
    return found;
}

static void read_improved_weights(const View *view, int64_t head, int64_t i, int64_t start,
                                  int64_t count, int64_t step, float *out)
{
    const Improved      *p = view->context;
    const QueryClusters *s = p->s;
    const int32_t       *keys = clustered_keys_of(p, head, i);
    int64_t c = tensor_i32(&s->parts.cluster)[head * s->n + i], at = head * s->clusters + c;

    for (int64_t x = 0; x < count; x++) {
        int64_t j = start + x * step, place = key_lower_bound(keys, 0, p->topk, j);

        out[x] = place < p->topk && keys[place] == j
                     ? (float)(p->kept[at] * exp(attend_score(&p->in, s->h, head, i, j) -
                                                 p->z[head * s->n + i]))
                     : (float)exp(query_clusters_score(s, head, c, j) - s->z[at]);
    }
}

static Flops clustered_improved_flops(Run *r, const void *opaque)
{
    double h = (double)r->h, c = (double)query_clusters_count(r, opaque), m = (double)r->m;
    double k = (double)key_count(r, opaque), d = (double)r->d, e = (double)r->e;
    double means = h * c * m, own = h * (double)r->n * k, weighed = r->causal ? 0 : means;

    return (Flops){ .score = 2 * d * (means + own),
                    .mix = 2 * e * ((r->causal ? 0 : h * c * (m - k)) + own),
                    .overhead = query_clusters_flops(r, opaque) + 2 * d * weighed +
                                FLOPS_SOFTMAX * (weighed + own) };
}

static DecodeCost improved_decode(const Run *r, const void *params_unused)
{
    (void)r;
    (void)params_unused;
    return decode_unknown("its clusters are made of all queries, so a further one may change them "
                          "all");
}

static const StageNote improved_notes[] = {
    QUERY_CLUSTER_NOTES,
    { "choose keys",
      "For each cluster the keys that its mean scores highest are set apart." },
    { "attend means",
      "Each mean attends to all keys; what the set-apart keys get together is kept as their "
      "share." },
    { "attend chosen keys",
      "Every query by itself weighs the few keys that were set apart for its cluster." },
    { "combine",
      "The share of the chosen keys is dealt out as the query itself weighs them; the rest "
      "stays as the cluster has it." },
    { NULL, NULL }
};

static const ViewPromise improved_views[] = {
    QUERY_CLUSTER_VIEWS,
    { .name = "topk", .kind = VIEW_TENSOR,
      .help = "keys each cluster's queries weigh themselves, the largest first" },
    { .name = "kept_mass", .kind = VIEW_MASK,
      .help = "share of the cluster's attention that falls on those keys" },
    { .name = "connectivity", .kind = VIEW_PATTERN,
      .help = "every key; causal: the chosen ones that are not later" },
    { .name = "weights", .kind = VIEW_WEIGHTS, .help = "attention weights" },
    VIEW_PROMISE_END
};

const Mechanism mech_clustered_improved = {
    .id = "clustered-improved",
    .title = "Improved clustered attention",
    .authors = "Vyas, Katharopoulos, Fleuret",
    .year = 2020,
    .arxiv = "2007.04825",
    .source = "paper, section 3.3; idiap/fast-transformers improved_clustered_attention.py and "
              "improved_clustered_causal_attention.py",
    .formula = "A_c = softmax_j(scale * qbar_c . k_j), T_c = its topk keys\n"
               "w_ij = A_cj outside T_c, (1 - rest_c) softmax_T(scale * q_i . k_j) inside\n"
               "output_i = sum_j w_ij v_j",
    .picture = "weights",
    .problem = "One row for a whole cluster is wrong most where the weights are largest.",
    .idea = "The keys with most weight in the cluster's row are computed again for each query "
            "of the cluster.",
    .price = "More is computed, and outside the chosen keys the row is still the shared one.",
    .lesson = "clusters",
    .teaches = "Each band of clustered attention now differs in a few columns: where most of the "
               "mass lies every query has weights of its own.  With topk = m it is exact "
               "attention, whatever the clusters.  Causal runs hide later keys, but the clusters "
               "were made of the whole sequence.",
    .example = "n_clusters=8,topk=8",
    .classes = CLASS_LP,
    .claim_time = "O(n C + n k)",
    .claim_memory = "O(n C + n k)",
    .claim_decode = "yes (clusters look ahead)",
    .claim_exponent = 1,
    .causal = true,
    .cross = true,
    .fit = QUERY_CLUSTER_FIT,
    .views = improved_views,
    .notes = improved_notes,
    .size = "topk",
    .params = improved_params,
    .params_size = sizeof(QueryClusterParams),
    .check = query_clusters_check,
    .run = clustered_improved_run,
    .flops = clustered_improved_flops,
    .decode = improved_decode,
    .flops_bound = true,
};
