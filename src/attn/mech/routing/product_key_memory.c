/* product_key_memory.c -- a large memory read through products of small keys.
 *
 * A query has two halves and each half its own n_keys sub-keys.  Slot (p, r) of
 * the n_keys^2 slots has the key [k1_p ; k2_r], so its score is a sum:
 *
 *     s1_p = k1_p . q1,  s2_r = k2_r . q2,     score of slot (p, r) = s1_p + s2_r
 *     the best knn slots lie among (best knn of s1) x (best knn of s2)
 *     output = sum over heads of softmax(best scores / temperature) @ values
 *
 * (Lample et al., section 3; XLM model/memory).  Queries and scores are in double because slots are
 * chosen by them.  Tokens are processed in tiles.
 */
#include "attn/ops/dense.h"
#include "attn/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TILE (1 << 21) /* numbers of queries or scores held at a time */
#define SMALLEST_NORM 1e-12

typedef struct Params {
    int64_t heads, n_keys, k_dim, v_dim, knn;
    double  temperature;
    bool    normalize_query;
    Tensor  query_w, query_b, query_scale, query_shift, keys, values;
} Params;

static const Param params[] = {
    PARAM_INT(Params, heads, 4, 1, 1e6, "heads, each with keys of its own and all with the "
              "same values"),
    PARAM_INT(Params, n_keys, 512, 1, 46340, "sub-keys of a half; the memory has n_keys^2 slots"),
    PARAM_EVEN(Params, k_dim, 256, 2, INT32_MAX - 1, "size of a query, both halves together"),
    PARAM_INT(Params, v_dim, PARAM_AUTO, 1, INT32_MAX, "size of a value; auto: dm"),
    PARAM_INT(Params, knn, 32, 1, PARAM_COUNT_MAX, "slots a head reads; at most n_keys"),
    PARAM_POSITIVE(Params, temperature, 1, "divides the chosen scores"),
    PARAM_BOOL(Params, normalize_query, false, "give each half of a query length 1"),
    PARAM_TENSOR(Params, query_w, "[dm,heads*k_dim]", "U(+-1/sqrt(dm))", "makes the queries"),
    PARAM_TENSOR(Params, query_b, "[heads*k_dim]", "U(+-1/sqrt(dm))", "their bias"),
    PARAM_TENSOR(Params, query_scale, "[heads*k_dim]", "absent", "then multiplies them (batch "
                 "norm, folded)"),
    PARAM_TENSOR(Params, query_shift, "[heads*k_dim]", "absent", "then is added to them"),
    PARAM_TENSOR(Params, keys, "[heads,2,n_keys,k_dim/2]", "U(+-1/sqrt(k_dim/2))", "sub-keys"),
    PARAM_TENSOR(Params, values, "[n_keys^2,v_dim]", "N(0, 1/v_dim)", "what the slots hold"),
    PARAM_END
};

typedef struct Memory {
    const Params *p;
    int64_t n, dm, heads, keys, half, knn, width; /* width: of a value */
    Tensor  query_w, query_b, scale, shift, values;
    Tensor  wide_keys;     /* f64 [2*heads,keys,half] */
    Tensor  slot;          /* i32 [heads,n,knn], best first */
    Tensor  weight;        /* f32 [heads,n,knn] */
    int32_t *pick;         /* [heads,n,knn] chosen candidates p * knn + r; NULL: no views */
    float   *score;        /* [heads,n,2,knn] best scores of each half; NULL: no views */
} Memory;

static Memory pkm_shape_of(Run *r, const Params *p);
static int64_t root_of(int64_t slots);
static int64_t pkm_columns(const Tensor *t);
static void take_weights(Run *r, Memory *s);
static Init pkm_within(double bound);
static void score_tokens(Run *r, Memory *s);
static Tensor queries(Run *r, const Memory *s, int64_t first, int64_t count);
static void pkm_settle(Run *r, const Memory *s, Tensor product, int64_t which, Tensor q);
static Tensor of_halves(const Memory *s, Tensor vector, int64_t which);
static Tensor halves(Tensor q, int64_t which);
static void pkm_choose(Run *r, const Memory *s, Tensor q, int64_t head, int64_t first);
static Tensor key_scores(Run *r, const Memory *s, Tensor q, int64_t plane);
static void keep_candidates(Run *r, const Memory *s, const BestColumns *sums, int64_t row);
static void show_candidates(Run *r, const Memory *s);
static Pattern *chosen_cells(Run *r, const Memory *s);
static int pkm_by_number(const void *a, const void *b);
static void read_candidates(const View *view, int64_t plane, int64_t p, int64_t start,
                            int64_t count, int64_t step, float *out);
static void show_choices(Run *r, const Memory *s);
static void read_values(Run *r, const Memory *s);
static SumLists lists_of(Run *r, const Memory *s);
static Tensor by_token(Run *r, const Memory *s, Tensor x);
static void show_memory(Run *r, const Memory *s);

static void product_key_memory_run(Run *r, const void *opaque)
{
    Memory *s = run_alloc(r, 1, sizeof(*s)); /* views read it later */
    int64_t chosen;

    if (!s)
        return;
    *s = pkm_shape_of(r, opaque);
    run_heads(r, s->heads, 2 * s->half, s->width);
    take_weights(r, s);
    chosen = s->heads * s->n * s->knn;
    s->slot = run_tensor3(r, DT_I32, s->heads, s->n, s->knn);
    s->weight = run_tensor3(r, DT_F32, s->heads, s->n, s->knn);
    if (run_wants_views(r)) {
        s->pick = run_alloc(r, chosen, sizeof(*s->pick));
        s->score = run_alloc(r, 2 * chosen, sizeof(*s->score));
    }
    score_tokens(r, s);
    if (run_failed(r))
        return;
    show_candidates(r, s);
    show_choices(r, s);
    read_values(r, s);
    show_memory(r, s);
}

/* ---- sizes and weights ------------------------------------------------------ */

static Memory pkm_shape_of(Run *r, const Params *p)
{
    Memory  s = { .p = p, .n = r->n, .dm = r->dm };
    int64_t slots = p->values.data && p->values.rank == 2 ? root_of(p->values.shape[0]) : -1;
    int64_t wide = pkm_columns(&p->query_w), k_dim = p->k_dim;

    s.heads = layer_size(r, "heads", p->heads,
                         run_is_given(r, "k_dim") && wide >= k_dim ? wide / k_dim : p->heads,
                         (const SizeFrom[]){ { "keys", p->keys, 4, 0, 1 }, { .name = NULL } });
    s.keys = layer_size(r, "n_keys", p->n_keys, slots > 0 ? slots : p->n_keys,
                        (const SizeFrom[]){ { "keys", p->keys, 4, 2, 1 }, { .name = NULL } });
    k_dim = layer_size(r, "k_dim", k_dim,
                       wide >= 2 * s.heads && wide % (2 * s.heads) == 0 ? wide / s.heads : k_dim,
                       (const SizeFrom[]){ { "keys", p->keys, 4, 3, 2 }, { .name = NULL } });
    s.half = k_dim / 2;
    s.width = layer_size(r, "v_dim", p->v_dim, r->dm,
                         (const SizeFrom[]){ { "values", p->values, 2, 1, 1 },
                                             { .name = NULL } });
    s.knn = p->knn < s.keys ? p->knn : s.keys;
    return s;
}

/* n_keys of n_keys^2 slots; -1: not a square. */
static int64_t root_of(int64_t slots)
{
    int64_t root = (int64_t)llround(sqrt((double)slots));

    return root * root == slots ? root : -1;
}

static int64_t pkm_columns(const Tensor *t)
{
    return t->data && t->rank == 2 ? t->shape[1] : 0;
}

static void take_weights(Run *r, Memory *s)
{
    const Params *p = s->p;
    int64_t       wide = 2 * s->heads * s->half, slots = s->keys * s->keys;
    Tensor        keys;

    if (s->keys > 46340)
        run_fail(r, ERR_PARAM, "product-key-memory: %lld sub-keys a half are %lld slots, too many "
                 "to number; at most 46340", (long long)s->keys, (long long)slots);
    run_stage(r, "weights");
    s->query_w = layer_weight(r, "query_w", p->query_w, 2, (int64_t[]){ s->dm, wide },
                              pkm_within(1 / sqrt((double)s->dm)));
    s->query_b = layer_weight(r, "query_b", p->query_b, 1, (int64_t[]){ wide },
                              pkm_within(1 / sqrt((double)s->dm)));
    s->scale = layer_given(r, "query_scale", p->query_scale, 1, (int64_t[]){ wide });
    s->shift = layer_given(r, "query_shift", p->query_shift, 1, (int64_t[]){ wide });
    keys = layer_weight(r, "keys", p->keys, 4, (int64_t[]){ s->heads, 2, s->keys, s->half },
                        pkm_within(1 / sqrt((double)s->half)));
    s->values = layer_weight(r, "values", p->values, 2, (int64_t[]){ slots, s->width },
                             (Init){ INIT_NORMAL, 1 / sqrt((double)s->width) });
    s->wide_keys = run_tensor3(r, DT_F64, 2 * s->heads, s->keys, s->half);
    op_entries(r, tensor_of(DT_F32, 3, s->wide_keys.shape, keys.data), ENTRY_CAST, 0, s->wide_keys);
}

static Init pkm_within(double bound)
{
    return (Init){ INIT_UNIFORM, bound };
}

static void score_tokens(Run *r, Memory *s)
{
    int64_t largest = 2 * (s->heads * s->half > s->keys ? s->heads * s->half : s->keys);
    int64_t tile = TILE / largest + 1;
    double  n = (double)s->n, heads = (double)s->heads, knn = (double)s->knn;

    run_stage(r, "scores");
    for (int64_t first = 0; first < s->n && !run_failed(r); first += tile) {
        ArenaMark mark = arena_mark(r->arena);
        Tensor    q = queries(r, s, first, s->n - first < tile ? s->n - first : tile);

        for (int64_t head = 0; head < s->heads && !run_failed(r); head++) {
            ArenaMark inner = arena_mark(r->arena);

            pkm_choose(r, s, q, head, first);
            arena_release(r->arena, inner);
        }
        arena_release(r->arena, mark);
    }
    op_charge(r, FLOP_SCORE, 2 * n * heads * (double)s->keys * (double)(2 * s->half));
    op_charge(r, FLOP_OVERHEAD, n * heads * knn * (knn + FLOPS_SOFTMAX));
}

/* ---- queries ---------------------------------------------------------------- */

/* f64 [2*heads,count,half] of tokens [first, first+count). */
static Tensor queries(Run *r, const Memory *s, int64_t first, int64_t count)
{
    int64_t k_dim = 2 * s->half;
    Tensor  x = tensor_of(DT_F32, 3, (int64_t[]){ 1, count, s->dm },
                          tensor_f32(&r->x) + first * s->dm);
    Tensor  w = { .dtype = DT_F32, .rank = 3, .shape = { s->heads, s->dm, k_dim, 1 },
                  .stride = { k_dim, s->heads * k_dim, 1, 1 }, .data = s->query_w.data };
    Tensor  product = op_dots64(r, x, w), q = run_tensor3(r, DT_F64, 2 * s->heads, count, s->half);

    for (int64_t which = 0; which < 2 && !run_failed(r); which++)
        pkm_settle(r, s, product, which, halves(q, which));
    return s->p->normalize_query ? op_normalise64(r, q, NORMALISE_L2, SMALLEST_NORM) : q;
}

/* q [heads,count,half] = half `which` of product [heads,count,k_dim] + query_b, then scale and
 * shift. */
static void pkm_settle(Run *r, const Memory *s, Tensor product, int64_t which, Tensor q)
{
    op_entries_of(r, tensor_columns(product, which * s->half, s->half),
                  of_halves(s, s->query_b, which), ENTRY_SUM, 1, q);
    if (s->scale.data)
        op_entries_of(r, q, of_halves(s, s->scale, which), ENTRY_PRODUCT, 1, q);
    if (s->shift.data)
        op_entries_of(r, q, of_halves(s, s->shift, which), ENTRY_SUM, 1, q);
}

/* The entries of a vector [heads*k_dim] for half `which` of each head: [heads,1,half]. */
static Tensor of_halves(const Memory *s, Tensor vector, int64_t which)
{
    Tensor t = tensor_of(DT_F32, 3, (int64_t[]){ s->heads, 1, s->half },
                         tensor_f32(&vector) + which * s->half);

    t.stride[0] = 2 * s->half;
    return t;
}

/* Every second head of q [2*heads,count,half], from `which` on: [heads,count,half]. */
static Tensor halves(Tensor q, int64_t which)
{
    q.data = (double *)q.data + which * q.stride[0];
    q.shape[0] /= 2;
    q.stride[0] *= 2;
    return q;
}

/* The best of each half, then the best sums of the two. */
static void pkm_choose(Run *r, const Memory *s, Tensor q, int64_t head, int64_t first)
{
    int64_t     count = q.shape[1], row = head * s->n + first, shape[3] = { 1, count, s->knn };
    Tensor      weight = tensor_of(DT_F32, 3, shape, tensor_f32(&s->weight) + row * s->knn);
    Tensor      slot = tensor_of(DT_I32, 3, shape, tensor_i32(&s->slot) + row * s->knn);
    BestColumns half = { .k = s->knn }, sums = { .k = s->knn, .names = s->keys };
    BestResult  one, two, best;

    half.x = key_scores(r, s, q, 2 * head);
    one = op_best_columns(r, &half);
    half.x = key_scores(r, s, q, 2 * head + 1);
    two = op_best_columns(r, &half);
    sums.x = one.value;
    sums.y = two.value;
    sums.x_name = one.index;
    sums.y_name = two.index;
    best = op_best_columns(r, &sums);
    op_entries(r, best.index, ENTRY_CAST, 0, slot);
    if (s->pick)
        keep_candidates(r, s, &sums, row);
    op_entries(r, best.value, ENTRY_DIVIDE, s->p->temperature, best.value);
    op_softmax_rows(r, &(SoftmaxRows){ .x = best.value });
    op_entries(r, best.value, ENTRY_CAST, 0, weight);
}

/* f64 [1,n,keys]: the queries of one half of a head times the keys of that half, summed in index
 * order. */
static Tensor key_scores(Run *r, const Memory *s, Tensor q, int64_t plane)
{
    int64_t n = q.shape[1], size = s->keys * s->half;
    Tensor  out = run_tensor3(r, DT_F64, 1, n, s->keys);
    Tensor  turned = run_tensor3(r, DT_F64, 1, s->half, s->keys);
    Tensor  rows, keys;

    if (run_failed(r))
        return out;
    keys = tensor_of(DT_F64, 3, (int64_t[]){ 1, s->keys, s->half },
                     (double *)s->wide_keys.data + plane * size);
    op_entries(r, tensor_turned(keys), ENTRY_CAST, 0, turned);
    rows = tensor_of(DT_F64, 3, (int64_t[]){ 1, n, s->half },
                     (double *)q.data + plane * n * s->half);
    op_product64(r, rows, turned, NULL, out);
    return out;
}

/* Candidates and scores of the halves, which the views show. */
static void keep_candidates(Run *r, const Memory *s, const BestColumns *sums, int64_t row)
{
    BestColumns plain = { .x = sums->x, .y = sums->y, .k = s->knn };
    int64_t     shape[3] = { 1, sums->x.shape[1], s->knn };
    Tensor      score = tensor_of(DT_F32, 3, shape, s->score + row * 2 * s->knn), other;
    BestResult  picks = op_best_columns(r, &plain);

    score.stride[1] = 2 * s->knn;
    other = score;
    other.data = tensor_f32(&score) + s->knn;
    op_entries(r, picks.index, ENTRY_CAST, 0,
               tensor_of(DT_I32, 3, shape, s->pick + row * s->knn));
    op_entries(r, sums->x, ENTRY_CAST, 0, score);
    op_entries(r, sums->y, ENTRY_CAST, 0, other);
}

static void show_candidates(Run *r, const Memory *s)
{
    View      *view = view_add(r, "candidates", VIEW_SIGNED, DT_F32, 4,
                               (int64_t[]){ s->heads, s->n, s->knn, s->knn });
    ViewMarks *marks = view ? run_alloc(r, 1, sizeof(*marks)) : NULL;

    if (!marks)
        return;
    *marks = (ViewMarks){ .cells = chosen_cells(r, s), .name = "chosen", .chosen = true };
    view->read = read_candidates;
    view->context = s;
    view->rows = "first half";
    view->cols = "second half";
    view->round = "token";
    view->marks = marks;
    if (!marks->cells)
        run_fail(r, ERR_NOMEM, "product-key-memory: not enough memory for a view");
}

/* The chosen cells, rows of one grid after another. */
static Pattern *chosen_cells(Run *r, const Memory *s)
{
    int64_t  grids = s->heads * s->n, knn = s->knn, at = 0;
    int64_t *start = run_alloc(r, grids * knn + 1, sizeof(*start));
    int32_t *column = run_alloc(r, grids * knn, sizeof(*column));

    if (run_failed(r))
        return NULL;
    memcpy(column, s->pick, (size_t)(grids * knn) * sizeof(*column));
    for (int64_t grid = 0; grid < grids; grid++) {
        qsort(column + grid * knn, (size_t)knn, sizeof(*column), pkm_by_number);
        for (int64_t p = 0; p < knn; p++)
            for (start[grid * knn + p] = at; at < (grid + 1) * knn && column[at] / knn == p; at++)
                ;
    }
    start[grids * knn] = at;
    for (int64_t c = 0; c < at; c++)
        column[c] %= (int32_t)knn;
    return pattern_lists(r->arena, (PatternShape){ .heads = grids, .n = knn, .m = knn }, start,
                         column, COMPONENT_OTHER);
}

static int pkm_by_number(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Cell (p, r) of plane head * n + token. */
static void read_candidates(const View *view, int64_t plane, int64_t p, int64_t start,
                            int64_t count, int64_t step, float *out)
{
    const Memory *s = view->context;
    const float  *score = s->score + plane * 2 * s->knn;

    for (int64_t c = 0; c < count; c++)
        out[c] = score[p] + score[s->knn + start + c * step];
}

static void show_choices(Run *r, const Memory *s)
{
    view_tensor(r, "indices", VIEW_ORDER, s->slot, "token", "place");
    view_tensor(r, "scores", VIEW_WEIGHTS, s->weight, "token", "place");
}

/* ---- reading ---------------------------------------------------------------- */

static void read_values(Run *r, const Memory *s)
{
    double   read = (double)(s->n * s->heads) * (double)s->knn * (double)s->width;
    SumLists in;

    run_stage(r, "read");
    in = lists_of(r, s);
    r->out = op_sum_lists(r, &in);
    op_charge(r, FLOP_MIX, 2 * read);
    op_traffic(r, 4 * read, 0);
}

static SumLists lists_of(Run *r, const Memory *s)
{
    return (SumLists){ .x = tensor_with_rank(s->values, 3),
                       .start = sum_lists_even(r, s->n, s->heads * s->knn),
                       .entry = by_token(r, s, s->slot).data,
                       .weight = by_token(r, s, s->weight).data, .heads = 1, .n = s->n };
}

/* x [heads,n,knn] as [1,n,heads*knn]. */
static Tensor by_token(Run *r, const Memory *s, Tensor x)
{
    Tensor y = run_tensor3(r, x.dtype, 1, s->n, s->heads * s->knn);

    op_entries(r, x, ENTRY_CAST, 0, tensor_split(y, s->heads));
    return y;
}

/* Total weight of every slot; rows: sub-keys of the first half. */
static void show_memory(Run *r, const Memory *s)
{
    int64_t  slots = s->keys * s->keys, dead = slots;
    Tensor   memory;
    double  *total;
    uint8_t *seen;

    if (!run_wants_views(r))
        return;
    memory = run_tensor2(r, DT_F32, s->keys, s->keys);
    total = run_alloc(r, slots, sizeof(*total));
    seen = run_alloc(r, slots, sizeof(*seen));
    if (run_failed(r))
        return;
    memset(total, 0, (size_t)slots * sizeof(*total));
    memset(seen, 0, (size_t)slots * sizeof(*seen));
    for (int64_t c = 0; c < s->heads * s->n * s->knn; c++) {
        total[tensor_i32(&s->slot)[c]] += (double)tensor_f32(&s->weight)[c];
        seen[tensor_i32(&s->slot)[c]] = 1;
    }
    for (int64_t c = 0; c < slots; c++) {
        tensor_f32(&memory)[c] = (float)total[c];
        dead -= seen[c];
    }
    run_figure_int(r, "slots", slots);
    run_figure_int(r, "slots_never_read", dead);
    view_tensor(r, "memory", VIEW_FEATURES, memory, "first half", "second half");
}

static Flops product_key_memory_flops(Run *r, const void *opaque)
{
    Memory s = pkm_shape_of(r, opaque);
    double n = (double)s.n, heads = (double)s.heads, knn = (double)s.knn, k = 2 * (double)s.half;

    return (Flops){ .score = 2 * n * heads * (double)s.keys * k,
                    .mix = 2 * n * heads * knn * (double)s.width,
                    .overhead = 2 * n * (double)s.dm * heads * k +
                                n * heads * knn * (knn + FLOPS_SOFTMAX) };
}

static const StageNote notes[] = {
    { "weights",
      "The queries' matrix, the two halves of the keys and the slots' values are taken from "
      "files or drawn." },
    { "scores",
      "Each half of a query finds its best half keys; the sums of the pairs hold the best of "
      "all products." },
    { "read", "The best slots are weighed by a softmax and their values are added up." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("memory", VIEW_FEATURES, "total weight read from every slot"),
    VIEW("candidates", VIEW_SIGNED, "for one token the sums of its best sub-keys' scores, the "
         "chosen ones ringed"),
    VIEW("indices", VIEW_ORDER, "slots a token reads, best first"),
    VIEW("scores", VIEW_WEIGHTS, "their weights"),
    VIEW("query_w", VIEW_TENSOR, "query layer, when drawn", .maybe = true),
    VIEW("query_b", VIEW_TENSOR, "its bias, when drawn", .maybe = true),
    VIEW("keys", VIEW_TENSOR, "sub-keys, when drawn", .maybe = true),
    VIEW("values", VIEW_TENSOR, "values, when drawn", .maybe = true),
    VIEW_PROMISE_END
};

const Mechanism mech_product_key_memory = {
    .id = "product-key-memory",
    .title = "Product-key memory layer",
    .authors = "Lample, Sablayrolles, Ranzato, Denoyer, Jegou",
    .year = 2019,
    .arxiv = "1907.05242",
    .source = "paper, section 3; facebookresearch/XLM model/memory (memory, query, utils)",
    .formula = "s1 = K1 q1,  s2 = K2 q2;  slot (p, r) has the score s1_p + s2_r\n"
               "best knn of (best knn of s1) x (best knn of s2) = best knn of all n_keys^2\n"
               "output = sum over heads of softmax(best / temperature) values\n"
               "k: numbers of a query; M = n_keys^2",
    .problem = "A large memory makes a model better, but searching all its slots is too expensive.",
    .idea = "Each slot's key is a pair of half keys, so the best slots are found from two short "
            "lists.",
    .price = "Many slots may never be read, and the values take much memory.",
    .teaches = "n_keys^2 slots are searched at the price of 2 n_keys: the best sums lie where the "
               "best halves cross, in a corner of the grid of candidates.  Over a sequence many "
               "slots are never read.",
    .picture = "memory",
    .example = "heads=2,n_keys=16,k_dim=32,knn=6",
    .classes = CLASS_SP,
    .claim_time = "O(n (sqrt(M) k + knn^2)), M slots, in a model that is O(n^2)",
    .claim_memory = "O(M), in a model that is O(n^2)",
    .claim_decode = "yes",
    .causal = true,
    .needs_x = true,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .run = product_key_memory_run,
    .flops = product_key_memory_flops,
    .decode = decode_tokenless,
};
