/* snapkv.c -- SnapKV: a prompt's cache is cut once, to the keys that its last rows attend to.
 *
 * The prompt is rows 0..P-1.  Its last `observation` rows, from row pre = P - observation on, vote:
 *
 *     vote_aj   = sum over i = pre..P-1 of w_aij, j < pre,    w the causal softmax
 *     pooled_j  = mean (or largest) of the votes within `kernel` keys around j,
 *                 summed over the query heads of a kv head (per=kv)
 *     C         = the `keep` keys with the largest pooled vote; ties: the lower key
 *     A_i       = {0..i}             i < P: the prompt is processed exactly
 *                 C and {pre..i}     i >= P
 *
 * The choice is made in double, sums in index order.  A mean divides by `kernel` at the ends, too.
 */
#include <math.h>
#include <string.h>

#include "attn/ops/weights.h"
#include "attn/run.h"
#include "core/threads.h"

enum { POOL_AVG, POOL_MAX };
static const char *const pools[] = { "avg", "max", NULL };
enum { PER_KV, PER_HEAD };
static const char *const sets[] = { "kv", "head", NULL };

typedef struct Params {
    int64_t prompt, observation, keep, kernel;
    int     pool, per;
    double  scale, softcap;
} Params;

static const Param params[] = {
    PARAM_INT(Params, prompt, 0, 0, PARAM_COUNT_MAX,
              "tokens of the prompt; 0: three quarters of the tokens"),
    PARAM_INT(Params, observation, 4, 1, PARAM_COUNT_MAX, "last rows of the prompt, which vote"),
    PARAM_INT(Params, keep, 8, 0, PARAM_COUNT_MAX, "keys of the prompt that are kept besides them"),
    PARAM_INT(Params, kernel, 5, 1, PARAM_COUNT_MAX, "votes that are pooled, an odd number"),
    PARAM_ENUM(Params, pool, POOL_AVG, pools, "mean or largest of these votes"),
    PARAM_ENUM(Params, per, PER_KV, sets, "one choice for each kv head, or each query head"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

typedef struct Sizes {
    int64_t prompt, voters, pre; /* tokens; rows that vote; keys voted on */
    int64_t keep, sets;          /* kept of these, in each set */
} Sizes;

/* A cache that grows has the prompt of its run. */
static Sizes sizes_of(const Run *r, const Params *p)
{
    int64_t all = r->whole_m ? r->whole_m : r->m;
    Sizes   s = { .prompt = p->prompt ? p->prompt : max_i64(1, all - all / 4) };

    s.prompt = min_i64(s.prompt, r->m);
    s.voters = min_i64(p->observation, s.prompt);
    s.pre = s.prompt - s.voters;
    s.keep = min_i64(p->keep, s.pre);
    s.sets = p->per == PER_KV ? r->k.shape[0] : r->h;
    return s;
}

static void count_votes(Run *r, const AttendInput *in, const Sizes *s, double *votes);
static void pool_votes(const Run *r, const Params *p, const Sizes *s, const double *votes,
                       double *pooled);
static Tensor keep_most(Run *r, const Sizes *s, const double *pooled);
static Pattern *cells_of(Run *r, const Sizes *s, const Tensor *kept);
static AttendResult attend(Run *r, const AttendInput *in, const Sizes *s, Tensor kept,
                           const Pattern *cells);
static void show(Run *r, const Sizes *s, const double *votes, const double *pooled,
                 const Tensor *kept);
static double pooling_flops(const Run *r, const Params *p);

static const char *const kinds[8] = { "observed and later", NULL, NULL, NULL, "prompt", "kept" };

static void snapkv_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Sizes         s = sizes_of(r, p);
    AttendInput   in = run_attend_input_allowed(r, p->scale);
    double       *votes = run_alloc(r, r->h * r->n, sizeof(*votes));
    double       *pooled = run_alloc(r, s.sets * r->n, sizeof(*pooled));
    Tensor        kept;
    Pattern      *cells;

    if (!p->prompt)
        run_note(r, "the prompt is the first %lld of the %lld tokens", (long long)s.prompt,
                 (long long)r->m);
    run_stage(r, "vote");
    op_wait(r, "the host adds up the votes");
    count_votes(r, &in, &s, votes);
    op_traffic(r, 4 * (double)(r->h * s.voters * r->d) +
                      4 * (double)(r->k.shape[0] * s.prompt * r->d), 8 * (double)(r->h * s.pre));
    run_stage(r, "pool");
    if (!run_failed(r))
        pool_votes(r, p, &s, votes, pooled);
    op_charge(r, FLOP_OVERHEAD, pooling_flops(r, p));
    op_traffic(r, 8 * (double)(r->h * s.pre), 8 * (double)(s.sets * s.pre));
    run_stage(r, "keep");
    kept = keep_most(r, &s, pooled);
    cells = cells_of(r, &s, &kept);
    show(r, &s, votes, pooled, &kept);
    cells = run_last_rows(r, cells);
    run_stage(r, "attend");
    run_attended_cells(r, &in, cells, kinds, attend(r, &in, &s, kept, cells));
    run_masses(r, &in, cells);
    run_cache(r, &in, cells, 0);
    run_last_row(r, cells);
}

static void check_voters(Run *r, const Params *p)
{
    Sizes s = sizes_of(r, p);

    if (s.pre < r->q_offset)
        run_fail(r, ERR_DATA, "snapkv: rows %lld to %lld of the prompt vote, but the input has "
                 "queries from position %lld on: give at least %lld queries, or a longer prompt or "
                 "a smaller observation", (long long)s.pre, (long long)s.prompt - 1,
                 (long long)r->q_offset, (long long)(r->m - s.pre));
}

static void snapkv_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (p->kernel % 2 == 0)
        run_fail(r, ERR_PARAM, "snapkv: kernel=%lld is even; pooling around a key needs an odd "
                 "number of votes", (long long)p->kernel);
    if (r->at_end)
        check_voters(r, p);
}

/* ---- votes ------------------------------------------------------------------------------- */

#define KEYS_AT_ONCE 1024 /* added by one worker */

/* Some rows of weights: rows are computed side by side, then added in their order. */
typedef struct Batch {
    const AttendInput *in;
    const Sizes       *s;
    int64_t            heads, n;
    int64_t            offset;     /* position of query 0 */
    int64_t            from, rows; /* voters of all heads, one head after another */
    int64_t            pitch;      /* prompt + d */
    double            *weights;    /* [rows,pitch]: those of a row, then its query */
    double            *votes;      /* [h,n] */
} Batch;

static void weigh_row(void *context, int64_t item, int worker)
{
    const Batch *b = context;
    int64_t      head = (b->from + item) / b->s->voters;
    int64_t      i = b->s->pre + (b->from + item) % b->s->voters;
    double      *w = b->weights + item * b->pitch, sum;

    (void)worker;
    attend_scores(b->in, b->heads, head, i - b->offset, i + 1, w + b->s->prompt, w);
    sum = attend_soften(w, i + 1);
    for (int64_t j = 0; j < b->s->pre; j++)
        w[j] /= sum;
}

static void add_keys(void *context, int64_t item, int worker)
{
    const Batch *b = context;
    int64_t      first = item * KEYS_AT_ONCE, end = min_i64(first + KEYS_AT_ONCE, b->s->pre);

    (void)worker;
    for (int64_t x = 0; x < b->rows; x++) {
        const double *w = b->weights + x * b->pitch;
        double       *votes = b->votes + (b->from + x) / b->s->voters * b->n;

        for (int64_t j = first; j < end; j++)
            votes[j] += w[j];
    }
}

static void count_votes(Run *r, const AttendInput *in, const Sizes *s, double *votes)
{
    ArenaMark mark = arena_mark(r->arena);
    int64_t   all = r->h * s->voters, most = min_i64(all, 2 * threads_count(r->threads));
    Batch     b = { .in = in, .s = s, .heads = r->h, .n = r->n, .votes = votes,
                      .offset = r->q_offset, .pitch = s->prompt + r->d };

    b.weights = run_alloc(r, most * b.pitch, sizeof(*b.weights));
    if (run_failed(r))
        return;
    memset(votes, 0, (size_t)(r->h * r->n) * sizeof(*votes));
    for (; b.from < all && s->pre > 0; b.from += b.rows) {
        b.rows = min_i64(most, all - b.from);
        threads_run(r->threads, b.rows, weigh_row, &b);
        threads_run(r->threads, (s->pre + KEYS_AT_ONCE - 1) / KEYS_AT_ONCE, add_keys, &b);
    }
    arena_release(r->arena, mark);
}

/* ---- the choice -------------------------------------------------------------------------- */

static double pooled_vote(const Params *p, const Sizes *s, const double *votes, int64_t j)
{
    int64_t half = p->kernel / 2, end = min_i64(j + half + 1, s->pre);
    double  sum = 0, most = 0;

    for (int64_t x = max_i64(j - half, 0); x < end; x++) {
        sum += votes[x];
        most = fmax(most, votes[x]);
    }
    return p->pool == POOL_MAX ? most : sum / (double)p->kernel;
}

static void pool_votes(const Run *r, const Params *p, const Sizes *s, const double *votes,
                       double *pooled)
{
    memset(pooled, 0, (size_t)(s->sets * r->n) * sizeof(*pooled));
    for (int64_t head = 0; head < r->h; head++)
        for (int64_t j = 0; j < s->pre; j++)
            pooled[head * s->sets / r->h * r->n + j] +=
                pooled_vote(p, s, votes + head * r->n, j);
}

/* i32 [sets,keep], increasing. */
static Tensor keep_most(Run *r, const Sizes *s, const double *pooled)
{
    Tensor votes = run_tensor3(r, DT_F64, s->sets, r->n, 1), kept;

    for (int64_t x = 0; x < s->sets * r->n && !run_failed(r); x++)
        tensor_f64(&votes)[x] = x % r->n < s->pre ? pooled[x] : (double)-INFINITY;
    kept = op_top_k(r, votes, s->keep);
    op_wait(r, "rows are made of the kept keys");
    return tensor_of(DT_I32, 2, (int64_t[]){ s->sets, s->keep }, kept.data);
}

static Pattern *cells_of(Run *r, const Sizes *s, const Tensor *kept)
{
    PatternShape shape = { .heads = r->h, .n = r->n, .m = r->n };

    if (run_failed(r))
        return NULL;
    return pattern_prompt(r->arena, shape, s->prompt, kept, s->pre);
}

/* ---- attention --------------------------------------------------------------------------- */

#define LATER 64 /* rows after the prompt from which it pays to gather their keys */

/* Not where terms of a cell need the positions of its query and key. */
static bool takes_gathered(const Run *r, const AttendInput *in, const Sizes *s)
{
    return s->prompt + LATER <= r->n && r->n == r->m && s->keep > 0 && !attend_has_terms(in) &&
           !tensor_given(&in->value.table) && !r->spec.pairs_only;
}

/* i32 [sets, keep + n - pre]: C, then the keys from `pre` on. */
static Tensor keys_later(Run *r, const Sizes *s, Tensor kept)
{
    int64_t count = s->keep + r->n - s->pre;
    Tensor  index = run_tensor2(r, DT_I32, s->sets, count);

    for (int64_t x = 0; x < s->sets * count && !run_failed(r); x++) {
        int64_t at = x % count;

        tensor_i32(&index)[x] = at < s->keep ? tensor_i32(&kept)[x / count * s->keep + at]
                                             : (int32_t)(s->pre + at - s->keep);
    }
    return index;
}

/* Rows [0, first's) of `whole` and those after them. */
static void join_rows(Run *r, Tensor first, Tensor later, Tensor whole)
{
    Tensor to = whole;

    to.shape[1] = first.shape[1];
    op_entries(r, first, ENTRY_CAST, 0, to);
    to.shape[1] = later.shape[1];
    to.data = tensor_f32(&whole) + first.shape[1] * whole.stride[1];
    op_entries(r, later, ENTRY_CAST, 0, to);
}

static Pattern *causal_rows(Run *r, int64_t rows, int64_t keys)
{
    return pattern_causal(r->arena, (PatternShape){ .heads = r->h, .n = rows, .m = keys,
                                                    .q_offset = keys - rows });
}

/* The same cells as those of the pattern: with the kept keys side by side before the others, rows
 * after the prompt are those of a causal mask, too. */
static AttendResult attend_gathered(Run *r, const AttendInput *in, const Sizes *s, Tensor kept)
{
    int64_t      rows = r->n - s->prompt;
    Tensor       index = keys_later(r, s, kept);
    AttendInput  prompt = attend_input_part(in, 0, s->prompt, 0, s->prompt);
    AttendInput  later = attend_input_part(in, s->prompt, rows, 0, r->m);
    AttendResult whole = { .out = run_tensor3(r, DT_F32, r->h, r->n, in->v.shape[2]),
                           .lse = run_tensor2(r, DT_F32, r->h, r->n) };
    AttendResult first, then;

    if (run_failed(r))
        return whole;
    later.k = op_gather(r, in->k, index);
    later.v = op_gather(r, in->v, index);
    first = op_attend(r, &prompt, causal_rows(r, s->prompt, s->prompt));
    then = op_attend(r, &later, causal_rows(r, rows, index.shape[1]));
    if (run_failed(r))
        return whole;
    join_rows(r, first.out, then.out, whole.out);
    join_rows(r, first.lse, then.lse, whole.lse);
    return whole;
}

static AttendResult attend(Run *r, const AttendInput *in, const Sizes *s, Tensor kept,
                           const Pattern *cells)
{
    return !run_failed(r) && takes_gathered(r, in, s) ? attend_gathered(r, in, s, kept)
                                                      : op_attend(r, in, cells);
}

/* ---- what is shown ----------------------------------------------------------------------- */

static void show(Run *r, const Sizes *s, const double *votes, const double *pooled,
                 const Tensor *kept)
{
    Tensor before, after, which;

    if (!run_wants_views(r))
        return;
    before = run_tensor2(r, DT_F32, r->h, r->n);
    after = run_tensor2(r, DT_F32, s->sets, r->n);
    which = run_tensor2(r, DT_U8, s->sets, r->n);
    if (run_failed(r))
        return;
    for (int64_t x = 0; x < r->h * r->n; x++)
        tensor_f32(&before)[x] = (float)votes[x];
    for (int64_t x = 0; x < s->sets * r->n; x++) {
        tensor_f32(&after)[x] = (float)pooled[x];
        tensor_u8(&which)[x] = x % r->n >= s->pre && x % r->n < s->prompt ? 2 : 0;
    }
    for (int64_t x = 0; x < s->sets * s->keep; x++)
        tensor_u8(&which)[x / s->keep * r->n + tensor_i32(kept)[x]] = 1;
    view_tensor(r, "votes", VIEW_TENSOR, before, "head", "key");
    view_tensor(r, "pooled", VIEW_TENSOR, after, "set", "key");
    view_tensor(r, "kept", VIEW_BUCKETS, which, "set", "key");
}

/* ---- the rest ---------------------------------------------------------------------------- */

/* Of the votes' sums and of pooling; their weights are those of the prompt's attention. */
static double pooling_flops(const Run *r, const Params *p)
{
    Sizes s = sizes_of(r, p);

    return (double)(r->h * s.pre) * ((double)s.voters + (double)p->kernel);
}

static Flops snapkv_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Sizes         s = sizes_of(r, p);
    double        prompt = (double)min_i64(s.prompt, r->n);
    double        later = (double)max_i64(0, r->n - s.prompt);
    double        first = (double)(s.keep + s.voters + 1); /* keys of row P */
    double        cells = prompt * (prompt + 1) / 2 + later * first + later * (later - 1) / 2;
    Flops         f = run_pattern_flops(r, (double)r->h * cells);

    if (r->n == r->m) /* once, not for the rows before the queries */
        f.overhead += pooling_flops(r, p);
    return f;
}

/* A step reads all that is held.  The cache is cut when the prompt ends and grows again. */
static DecodeCost snapkv_decode(const Run *r, const void *opaque)
{
    Sizes      s = sizes_of(r, opaque);
    DecodeCost cost = decode_dense(r);

    cost.kv_bytes_per_token = (double)r->cache_bytes * (double)s.sets * (double)(r->d + r->e);
    if (r->m > s.prompt)
        cost.state_bytes = cost.step_bytes =
            cost.kv_bytes_per_token * (double)(s.keep + s.voters + r->m - s.prompt);
    cost.decode_flops = decode_row(r);
    return cost;
}

static const char *const choices[] = { "not kept", "by its votes", "observed", NULL };

static const StageNote notes[] = {
    { "vote", "The prompt is processed exactly.  The weights of its last rows are added up for "
              "each key before them." },
    { "pool", "Every key gets the votes around it, so that neighbours of a large vote are kept "
              "with it." },
    { "keep", "The keys with the largest pooled votes are kept, with the rows that voted.  All "
              "other keys of the prompt are dropped." },
    { "attend", "Rows of the prompt see every key before them; later rows see the kept keys, the "
                "observed ones and all that follow." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEWS_OF_PATTERN,
    VIEWS_OF_MASSES,
    VIEWS_OF_CACHE,
    VIEW("votes", VIEW_TENSOR, "attention of the prompt's last rows to each key before them",
         .curve = { .x = "key", .y = "sum of weights", .by_rows = true }),
    VIEW("pooled", VIEW_TENSOR, "votes after pooling, of each set of kept keys",
         .curve = { .x = "key", .y = "pooled votes", .by_rows = true }),
    VIEW("kept", VIEW_BUCKETS, "1: by its votes, 2: observed", .categories = choices),
    VIEW_PROMISE_END
};

const Mechanism mech_snapkv = {
    .id = "snapkv",
    .title = "SnapKV",
    .authors = "Li et al.",
    .year = 2024,
    .arxiv = "2404.14469",
    .source = "paper, section 4; FasterDecoding/SnapKV snapkv_utils.py (per=head); NVIDIA/kvpress "
              "snapkv_press.py (per=kv)",
    .formula = "vote_j = sum of the softmax weights of key j in the prompt's last rows\n"
               "C = the `keep` keys with the largest pooled votes\n"
               "A_i = {0..i} in the prompt, later C and {pre..i}\n"
               "output_i = softmax over A_i of q_i . k_j / sqrt(d), times V\n"
               "P: tokens of the prompt",
    .problem = "The cache of a long prompt stays for every token that is generated, and most of "
               "it is hardly read.",
    .idea = "The end of the prompt already attends to what the answer will need: the keys that it "
            "attends to are kept, the others are dropped once.",
    .price = "What a later question needs may be gone.  Reading the prompt costs as much as full "
             "attention, and the cache grows again with each token.",
    .lesson = "eviction",
    .teaches = "A full triangle, then below the line a few columns per head and the dense end.  "
               "Pooling keeps clusters of votes and widens lone peaks.",
    .classes = CLASS_LP,
    .claim_time = "O(P^2)",
    .claim_memory = "O(keep + new)",
    .claim_decode = "yes: keeps the chosen, the observed and all new tokens",
    .claim_exponent = 2,
    .causal = true,
    .at_end = AT_END_CELLS,
    .no_at_end = "the last rows of the prompt vote for the keys that its cache keeps",
    .always_causal = true,
    .kind_of_layer = true,
    .positions = POSITIONS_ALL,
    .views = views,
    .notes = notes,
    .size = "keep",
    .size_reads = true,
    .params = params,
    .params_size = sizeof(Params),
    .run = snapkv_run,
    .check = snapkv_check,
    .flops = snapkv_flops,
    .decode = snapkv_decode,
};
