/* h2o.c -- H2O: a cache of the newest keys and of those that got most attention so far.
 *
 * Per kv head, rows in order, the cache C empty and all sums 0 at first:
 *
 *     C      = C + {i};   A_i = C
 *     sum_j += w_ij for j in C, w the softmax over C, added up over the query heads of the kv head
 *     after row i >= prompt - 1 with |C| > heavy + recent:
 *     C      = the `heavy` keys j <= i - recent with the largest sums, and the last `recent`
 *
 * Ties: the lower key stays.  What has left never returns.  The sums are in double, in index order.
 * A softmax over the cache alone is what a cache can know; the simulation in the official
 * repository sums one over all keys.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/ops/weights.h"
#include "attn/run.h"
#include "core/threads.h"

typedef struct Params {
    int64_t heavy, recent, prompt;
    double  scale, softcap;
} Params;

static const Param params[] = {
    PARAM_INT(Params, heavy, 4, 0, PARAM_COUNT_MAX,
              "keys that stay for the attention that they got"),
    PARAM_INT(Params, recent, 4, 1, PARAM_COUNT_MAX, "newest keys, which stay in any case"),
    PARAM_INT(Params, prompt, 0, 0, PARAM_COUNT_MAX,
              "tokens of the prompt: nothing leaves before its last row"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

typedef struct Sizes {
    int64_t heavy, recent, prompt; /* of this run, at most n */
    int64_t most;                  /* keys that stay */
    int64_t room;                  /* keys that one row can see */
} Sizes;

static Sizes sizes_of(const Run *r, const Params *p)
{
    Sizes s = { .heavy = min_i64(p->heavy, r->n), .recent = min_i64(p->recent, r->n),
                .prompt = max_i64(1, p->prompt) };

    s.most = s.heavy + s.recent;
    s.room = min_i64(r->n, max_i64(s.prompt, s.most + 1));
    return s;
}

/* What a run leaves behind, of each kv head. */
typedef struct Left {
    double *sum;     /* [g,n] when a key left, or at the end */
    Tensor  evicted; /* i32 [g,n] the row after which a key left; -1: it is still there */
    Tensor  last;    /* i32 [g,n] the last row that sees a key */
} Left;

static Left evict(Run *r, const AttendInput *in, const Sizes *s);
static double cells_of(const Run *r, const Left *left);
static void show(Run *r, const Left *left);

static const char *const kinds[8] = { "recent", NULL, NULL, NULL, NULL, "older, kept" };

static void h2o_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Sizes         s = sizes_of(r, p);
    PatternShape  shape = { .heads = r->h, .n = r->n, .m = r->n };
    AttendInput   in = run_attend_input_allowed(r, p->scale);
    Left          left;
    Pattern      *held;

    run_stage(r, "evict");
    op_wait(r, "the host keeps the caches");
    left = evict(r, &in, &s);
    op_charge(r, FLOP_OVERHEAD, cells_of(r, &left));
    op_traffic(r, 4 * (double)(r->h * r->n * r->d) + (double)tensor_bytes(&in.k),
               12 * (double)(r->k.shape[0] * r->n));
    show(r, &left);
    held = run_failed(r) ? NULL : pattern_lasting(r->arena, shape, &left.last, s.recent,
                                                  COMPONENT_OTHER);
    run_stage(r, "attend");
    held = held ? pattern_finish(r->arena, shape, held, false) : NULL;
    run_attend_cells(r, &in, held, kinds);
    run_masses(r, &in, held);
    run_cache(r, &in, held, 0);
    run_last_row(r, held);
}

/* ---- the cache of a kv head, token by token -------------------------------------------- */

typedef struct Cache {
    int64_t  count;
    int32_t *key;    /* increasing */
    double  *weight; /* of the row, added up over the heads */
    double  *row;    /* of one head */
    double  *query;
} Cache;

typedef struct Evict {
    Run               *r;
    const AttendInput *in;
    const Sizes       *s;
    const Left        *left;
    bool               plain; /* scores are products of q and k alone */
    int64_t            bytes; /* of a worker's room */
    uint8_t           *room;
} Evict;

static Cache cache_in(const Evict *e, int worker)
{
    int64_t  rows = e->s->room;
    double  *numbers = (double *)(void *)(e->room + worker * e->bytes);

    return (Cache){ .weight = numbers, .row = numbers + rows, .query = numbers + 2 * rows,
                    .key = (int32_t *)(void *)(numbers + 2 * rows + e->r->d) };
}

static void score_row(const Evict *e, const Cache *c, int64_t head, int64_t i)
{
    const AttendInput *in = e->in;
    int64_t            h = e->r->h, d = in->q.shape[2];
    const float       *from = tensor_row_f32(&in->q, head, h, i);

    for (int64_t t = 0; t < d && e->plain; t++)
        c->query[t] = (double)from[t];
    for (int64_t x = 0; x < c->count; x++)
        c->row[x] = e->plain ? in->scale * implicit_dot(tensor_row_f32(&in->k, head, h, c->key[x]),
                                                        c->query, d)
                             : attend_score(in, h, head, i, c->key[x]);
}

static void add_softmax(const Cache *c)
{
    double sum = attend_soften(c->row, c->count);

    for (int64_t x = 0; x < c->count; x++)
        c->weight[x] += c->row[x] / sum;
}

static void add_weights(const Evict *e, const Cache *c, int64_t group, int64_t i)
{
    int64_t each = e->r->h / e->r->k.shape[0];
    double *sum = e->left->sum + group * e->r->n;

    memset(c->weight, 0, (size_t)c->count * sizeof(*c->weight));
    for (int64_t head = group * each; head < (group + 1) * each; head++) {
        score_row(e, c, head, i);
        add_softmax(c);
    }
    for (int64_t x = 0; x < c->count; x++)
        sum[c->key[x]] += c->weight[x];
}

/* A key and what it got, for sorting. */
typedef struct Got {
    double  sum;
    int64_t key;
} Got;

static int by_sum(const void *a, const void *b)
{
    const Got *x = a, *y = b;

    if (x->sum != y->sum)
        return x->sum > y->sum ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* Of the first `old` keys the one that leaves: the least sum, the highest of equal ones. */
static int64_t least_of(const Cache *c, const double *sum, int64_t old)
{
    int64_t least = 0;

    for (int64_t x = 1; x < old; x++)
        if (sum[c->key[x]] <= sum[c->key[least]])
            least = x;
    return least;
}

static void close_gaps(Cache *c, const int32_t *evicted)
{
    int64_t kept = 0;

    for (int64_t x = 0; x < c->count; x++)
        if (evicted[c->key[x]] < 0)
            c->key[kept++] = c->key[x];
    c->count = kept;
}

/* After row i, of the first `old` keys all but `heavy` leave. */
static void let_go(Cache *c, const double *sum, int64_t old, int64_t heavy, int64_t i,
                   int32_t *evicted)
{
    Got *got = (Got *)(void *)c->weight; /* over weight and row, which are done with */

    if (old - heavy == 1) {
        evicted[c->key[least_of(c, sum, old)]] = (int32_t)i;
    } else {
        for (int64_t x = 0; x < old; x++)
            got[x] = (Got){ .sum = sum[c->key[x]], .key = c->key[x] };
        qsort(got, (size_t)old, sizeof(*got), by_sum);
        for (int64_t x = heavy; x < old; x++)
            evicted[got[x].key] = (int32_t)i;
    }
    close_gaps(c, evicted);
}

static void evict_group(void *context, int64_t group, int worker)
{
    const Evict *e = context;
    const Sizes *s = e->s;
    Cache        c = cache_in(e, worker);
    int64_t      n = e->r->n;
    int32_t     *evicted = tensor_i32(&e->left->evicted) + group * n;

    for (int64_t j = 0; j < n; j++)
        evicted[j] = -1;
    for (int64_t i = 0; i < n && !run_failed(e->r); i++) {
        c.key[c.count++] = (int32_t)i;
        add_weights(e, &c, group, i);
        if (i >= s->prompt - 1 && c.count > s->most)
            let_go(&c, e->left->sum + group * n, c.count - s->recent, s->heavy, i, evicted);
    }
}

static Left evict(Run *r, const AttendInput *in, const Sizes *s)
{
    int64_t groups = r->k.shape[0], all = groups * r->n;
    Left    left = { .sum = run_alloc(r, all, sizeof(double)),
                     .evicted = run_tensor2(r, DT_I32, groups, r->n),
                     .last = run_tensor2(r, DT_I32, groups, r->n) };
    Evict   e = { .r = r, .in = in, .s = s, .left = &left, .plain = !attend_has_terms(in),
                  .bytes = (3 * s->room + r->d) * (int64_t)sizeof(double) };

    e.room = run_alloc(r, threads_count(r->threads) * e.bytes, 1);
    if (run_failed(r))
        return left;
    memset(left.sum, 0, (size_t)all * sizeof(*left.sum));
    threads_run(r->threads, groups, evict_group, &e);
    for (int64_t x = 0; x < all; x++) {
        int32_t after = tensor_i32(&left.evicted)[x];

        tensor_i32(&left.last)[x] = after < 0 ? (int32_t)(r->n - 1) : after;
    }
    return left;
}

/* Of all query heads. */
static double cells_of(const Run *r, const Left *left)
{
    int64_t groups = r->k.shape[0], cells = 0;

    for (int64_t x = 0; x < groups * r->n && !run_failed(r); x++)
        cells += tensor_i32(&left->last)[x] - x % r->n + 1;
    return (double)cells * (double)(r->h / groups);
}

/* ---- views ------------------------------------------------------------------------------- */

/* Positions of a kv head in the order that they left; those of one row increase. */
static void order_of(const int32_t *evicted, int64_t n, int32_t *order, int64_t *first)
{
    int64_t at = 0;

    memset(first, 0, (size_t)(n + 1) * sizeof(*first));
    for (int64_t j = 0; j < n; j++) {
        order[j] = -1;
        if (evicted[j] >= 0)
            first[evicted[j] + 1]++;
    }
    for (int64_t i = 0; i < n; i++)
        at = first[i + 1] += at;
    for (int64_t j = 0; j < n; j++)
        if (evicted[j] >= 0)
            order[first[evicted[j]]++] = (int32_t)j;
}

static void show(Run *r, const Left *left)
{
    int64_t  groups = r->k.shape[0];
    Tensor   sums, order;
    int64_t *first;

    if (!run_wants_views(r))
        return;
    sums = run_tensor2(r, DT_F32, groups, r->n);
    order = run_tensor2(r, DT_I32, groups, r->n);
    first = run_alloc(r, r->n + 1, sizeof(*first));
    if (run_failed(r))
        return;
    for (int64_t x = 0; x < groups * r->n; x++)
        tensor_f32(&sums)[x] = (float)left->sum[x];
    for (int64_t g = 0; g < groups; g++)
        order_of(tensor_i32(&left->evicted) + g * r->n, r->n, tensor_i32(&order) + g * r->n,
                 first);
    view_tensor(r, "accumulated", VIEW_TENSOR, sums, "kv head", "key");
    view_order(r, "evicted_at", left->evicted, "kv head", "key");
    view_order(r, "eviction_order", order, "kv head", "place");
}

/* ---- the rest ---------------------------------------------------------------------------- */

static Flops h2o_flops(Run *r, const void *opaque)
{
    Sizes  s = sizes_of(r, opaque);
    double n = (double)r->n, prompt = fmin((double)s.prompt, n), most = (double)s.most + 1;
    double growing = fmax(prompt, fmin(most, n)); /* rows that see all before them */
    double cells = (double)r->h * (growing * (growing + 1) / 2 + (n - growing) * most);
    Flops  f = run_pattern_flops(r, cells);

    f.overhead += cells;
    return f;
}

/* The sums are float numbers beside the cache. */
static DecodeCost h2o_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    double token = (double)r->cache_bytes * decode_token(r) + 4 * (double)r->k.shape[0];
    double held = fmin((double)r->n, (double)p->heavy + (double)p->recent);

    return (DecodeCost){ .state_bytes = token * held, .kv_bytes_per_token = 0,
                         .step_bytes = decode_read(r) + 4 * r->last.keys,
                         .decode_flops = decode_row(r) + r->last.cells };
}

static const StageNote notes[] = {
    { "evict", "Token after token joins the cache and attends to what is in it.  Each key adds up "
               "the attention that it gets.  When there are too many, the older key with the "
               "smallest sum leaves for ever." },
    { "attend", "Every query attends to the keys that were in the cache when it was made." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEWS_OF_PATTERN,
    VIEWS_OF_MASSES,
    VIEWS_OF_CACHE,
    VIEW("accumulated", VIEW_TENSOR, "attention that a key got while it was in the cache",
         .curve = { .x = "key", .y = "sum of weights", .mark = CURVE_BARS, .by_rows = true }),
    VIEW("evicted_at", VIEW_ORDER, "query after which a key left; -1, blank: it is still there"),
    VIEW("eviction_order", VIEW_ORDER, "keys in the order that they left; -1, blank: no more"),
    VIEW_PROMISE_END
};

const Mechanism mech_h2o = {
    .id = "h2o",
    .title = "H2O: heavy-hitter oracle",
    .authors = "Zhang et al.",
    .year = 2023,
    .arxiv = "2306.14048",
    .source = "paper, section 4 and algorithm 1; FMInference/H2O utils_real_drop/modify_llama.py",
    .formula = "A_i = C + {i};   sum_j += softmax over A_i of q_i . k_j / sqrt(d)\n"
               "C = the `recent` newest keys, and the `heavy` older ones with the largest sums\n"
               "output_i = softmax over A_i of q_i . k_j / sqrt(d), times V",
    .problem = "The cache of keys and values grows with every token, until it is larger than "
               "the model.",
    .idea = "A few keys get most of the attention.  Each key adds up what it got; when the cache "
            "is full, the older key that got least leaves.",
    .price = "What has left never returns, though a later query may need it.  Sums favour old "
             "keys, which had more queries to collect from.",
    .lesson = "eviction",
    .teaches = "Columns that end: a comb with few long teeth, and the newest keys along the "
               "diagonal.  Every key of the cache has a bar; the lowest of the older ones leaves.",
    .classes = CLASS_LP,
    .claim_time = "O(n (heavy + recent))",
    .claim_memory = "O(heavy + recent) cache",
    .claim_decode = "yes: keeps heavy + recent tokens",
    .claim_exponent = 1,
    .causal = true,
    .no_at_end = "what its cache evicts depends on the attention of every earlier query",
    .always_causal = true,
    .kind_of_layer = true,
    .positions = POSITIONS_ALL,
    .views = views,
    .notes = notes,
    .size = "heavy",
    .size_reads = true,
    .params = params,
    .params_size = sizeof(Params),
    .run = h2o_run,
    .flops = h2o_flops,
    .decode = h2o_decode,
};
