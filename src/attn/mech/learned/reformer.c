/* reformer.c -- LSH attention (Reformer).
 *
 * Queries and keys are the same vectors x_i = q_i.  In every round a random
 * rotation gives each position a bucket; positions are sorted by (bucket,
 * position) and cut into chunks; a chunk attends to itself and its neighbours,
 * inside the bucket:
 *
 *     bucket_i = argmax [x_i R ; -x_i R]
 *     s_ij     = scale * x_i . normalised(x_j)
 *     l_ij     = s_ij - ln N_ij          N_ij: rounds in which i visited j
 *     output   = softmax over the visits of all rounds together
 *
 * The rounds are merged by their log-sum-exp as they come, so only one round
 * is in memory.  A position sees itself only if it sees nothing else: the
 * published penalty of 1e5 is 1e30 here, the same rule at any size of score.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "attn/mech/learned/groups.h"
#include "attn/ops/dense.h"
#include "attn/ops/ops.h"
#include "attn/ops/weights.h"
#include "attn/run.h"
#include "core/rng.h"

typedef struct Lsh {
    int64_t h, n, rounds;
    int64_t first, end; /* rounds that are looked at: all, or one for a picture of it */
    bool    joint, across, causal;
    Chunks  chunks; /* of one sorted list: a round, or all rounds end to end */
    Tensor  bucket; /* i32 [h,rounds,n] of each position */
    Tensor  order;  /* i32 [h,rounds,n] position at each sorted slot */
    Tensor  chunk;  /* i32 [h,rounds,n] of each position */
} Lsh;

/* What the weights are made of: queries are the run's. */
typedef struct LshLook {
    Tensor k;
    double scale;
    Tensor z;            /* f32 [h,n] log-sum-exp of each row over all rounds */
    bool   exclude_self; /* a position sees itself only if it sees nothing else */
    bool   weigh;        /* a cell counts as often as it is visited */
} LshLook;

#define KEY_EPS_RMS 1e-6
#define KEY_EPS_L2 1e-12
#define SELF_PENALTY 1e30

enum { KEY_RMS, KEY_L2, KEY_NONE };
enum { LAYOUT_PER_ROUND, LAYOUT_JOINT };

static const char *const key_norms[] = { "rms", "l2", "none", NULL };
static const char *const layouts[] = { "per_round", "joint", NULL };

typedef struct Params {
    int64_t rounds, block, n_buckets, n_buckets2, chunks_before, chunks_after;
    bool    attend_across_buckets, dedup, exclude_self;
    int     key_norm, layout;
    double  scale;
    Tensor  rotations;
} Params;

static const Param params[] = {
    PARAM_INT(Params, rounds, 4, 1, 1e6, "independent hash rounds; a pair missed by one may meet "
              "in another"),
    PARAM_INT(Params, block, 64, 1, PARAM_COUNT_MAX, "length of the chunks the sorted order is "
              "cut into"),
    PARAM_EVEN(Params, n_buckets, 0, 0, INT32_MAX - 1, "buckets of the (first) hash; 0: "
               "2 floor(n/block), at least 2"),
    PARAM_EVEN(Params, n_buckets2, 0, 0, INT32_MAX - 1, "second hash factor, the bucket is the "
               "pair; 0: off"),
    PARAM_INT(Params, chunks_before, 1, 0, PARAM_COUNT_MAX, "chunks before its own a query sees"),
    PARAM_INT(Params, chunks_after, 0, 0, PARAM_COUNT_MAX, "chunks after its own a query sees"),
    PARAM_BOOL(Params, attend_across_buckets, false, "see the whole window, whatever the bucket "
               "(current trax and HF)"),
    PARAM_BOOL(Params, dedup, true, "divide a pair by how often it was visited, so it counts once"),
    PARAM_BOOL(Params, exclude_self, true, "a position sees itself only if it sees nothing else"),
    PARAM_ENUM(Params, key_norm, KEY_RMS, key_norms, "how keys are normalised (queries are not)"),
    PARAM_ENUM(Params, layout, LAYOUT_PER_ROUND, layouts, "chunks inside each round, or of all "
               "rounds end to end with wrap-around"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_TENSOR(Params, rotations, "[h,d,rounds,R] or [d,rounds,R], R = (n_buckets+n_buckets2)/2",
                 "N(0,1)", "the random rotations"),
    PARAM_END
};

/* The sorted list attention works on: one round, or all end to end.  A round's rows are
 * positions; end to end a position stands in the list more than once, so rows are slots
 * and what belongs to them is copied. */
typedef struct List {
    const Lsh *l;
    int64_t    round;
    Tensor     order; /* i32 [h,slots] position of each slot */
} List;

#define ONLY_SELF -1e29 /* a log-sum-exp below it: nothing but the position itself */
#define COARSE 16       /* a log-sum-exp as large as this is not exact enough in float */

/* Rounds, and their cells together, that get a picture of their own. */
#define ROUNDS_SHOWN 8
#define CELLS_SHOWN  5e7

typedef struct Seen {
    const Lsh      *l;
    AttendInput     in;
    double         *z; /* [h*n] log-sum-exp of each row */
    bool            exclude_self, weigh; /* weigh: w ~ N exp(s) */
    const CellRows *visits, *kept;
    const Pattern  *first; /* what the first round saw; NULL: not shown */
} Seen;

static Lsh lsh_shape(const Run *r, const Params *p);
static void hash(Run *r, const Params *p, Lsh *l);
static int64_t first_factor(const Run *r, const Params *p);
static double token_flops(const Run *r, const Params *p);
static void sort(Run *r, Lsh *l);
static void chunk(Run *r, Lsh *l);
static void number_chunks(Run *r, const Lsh *l);
static Tensor normalised_keys(Run *r, const Params *p);
static Tensor reformer_attend(Run *r, const Params *p, const Lsh *l, Tensor keys);
static Tensor empty_rows(Run *r);
static List reformer_list_of(const Lsh *l, int64_t round);
static GroupResult attend_list(Run *r, const Params *p, const List *list, GroupAttend g,
                               Tensor keys, const Visits *visits);
static void slots_as_rows(Run *r, const List *list, Tensor keys, GroupAttend *g);
static Tensor slot_tags(Run *r, const List *list);
static void positions_as_rows(Run *r, const List *list, Tensor keys, GroupAttend *g);
static Tensor positions_of(Run *r, const List *list, Tensor slots);
static void reformer_combine(Run *r, const List *list, GroupResult result, Tensor z);
static void last_visits(Run *r, const Params *p, const Lsh *l);
static void lsh_chunks_show(Run *r, const Lsh *l, const LshLook *look);
static int64_t visited(const void *context, int64_t head, int64_t i, int32_t *count, int32_t *key);
static void reformer_refine(Run *r, Seen *s, Tensor z);
static double times(const Seen *s, int64_t head, int64_t i, int64_t j);
static void show_rounds(Run *r, Seen *all);
static int64_t attended(const void *context, int64_t head, int64_t i, int32_t *count,
                        int32_t *key);
static void show_unions(Run *r, const Seen *last, const Pattern *all);
static void reformer_read_weights(const View *view, int64_t head, int64_t i, int64_t start,
                                  int64_t count, int64_t step, float *out);
static double reformer_cell(const Seen *s, int64_t head, int64_t i, int64_t j, double z);

static void reformer_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Lsh          *l = run_alloc(r, 1, sizeof(*l)); /* views read it later */
    Tensor        keys, z;

    if (!l)
        return;
    *l = lsh_shape(r, p);
    hash(r, p, l);
    sort(r, l);
    chunk(r, l);
    run_stage(r, "normalise keys");
    keys = normalised_keys(r, p);
    z = reformer_attend(r, p, l, keys);
    last_visits(r, p, l);
    lsh_chunks_show(r, l, &(LshLook){ .k = keys, .scale = run_scale(r, p->scale), .z = z,
                                      .exclude_self = p->exclude_self, .weigh = !p->dedup });
}

static Lsh lsh_shape(const Run *r, const Params *p)
{
    bool joint = p->layout == LAYOUT_JOINT;

    return (Lsh){ .h = r->h, .n = r->n, .rounds = p->rounds, .end = p->rounds,
                  .joint = joint,
                  .across = p->attend_across_buckets, .causal = r->causal,
                  .chunks = chunks_of(joint ? p->rounds * r->n : r->n, p->block,
                                      p->chunks_before, p->chunks_after, joint) };
}

/* f32 [h,d,rounds,width], drawn round after round: what one round draws does not depend on how many
 * there are, so a round more keeps all cells of those before it. */
static Tensor drawn_rotations(Run *r, int64_t rounds, int64_t width)
{
    Rng     rng = run_rng(r, "rotations");
    Tensor  drawn = run_tensor4(r, DT_F32, rounds, r->h, r->d, width);
    Tensor  w = run_tensor4(r, DT_F32, r->h, r->d, rounds, width);
    int64_t size = r->d * width;

    run_draw(r, &rng, (Init){ INIT_NORMAL, 1 }, drawn);
    for (int64_t head = 0; head < r->h && !run_failed(r); head++) {
        Tensor to = tensor_of(DT_F32, 3, (int64_t[]){ r->d, rounds, width },
                              tensor_f32(&w) + head * rounds * size);
        Tensor from = tensor_of(DT_F32, 3, to.shape, tensor_f32(&drawn) + head * size);

        from.stride[0] = width;
        from.stride[1] = r->h * size;
        op_entries(r, from, ENTRY_CAST, 0, to);
    }
    if (!run_failed(r))
        view_drawn(r, "rotations", w);
    return w;
}

static Tensor rotations_of(Run *r, const Params *p, int64_t rounds, int64_t width)
{
    Tensor w = run_param_given(r, "rotations", p->rotations, DT_F32, 4,
                               (int64_t[]){ r->h, r->d, rounds, width });

    return w.data || run_failed(r) ? w : drawn_rotations(r, rounds, width);
}

static void hash(Run *r, const Params *p, Lsh *l)
{
    int64_t buckets = first_factor(r, p);
    Tensor  w;

    run_stage(r, "hash");
    run_size(r, "n_buckets", buckets);
    r->excludes_self = p->exclude_self;
    if (buckets * (p->n_buckets2 ? p->n_buckets2 : 1) > INT32_MAX)
        run_fail(r, ERR_PARAM, "reformer: %lld buckets times n_buckets2=%lld are more than can be "
                 "numbered; take smaller factors", (long long)buckets, (long long)p->n_buckets2);
    w = rotations_of(r, p, l->rounds, (buckets + p->n_buckets2) / 2);
    l->bucket = lsh_buckets(r, r->q, w, buckets / 2);
    view_tensor(r, "buckets", VIEW_BUCKETS, l->bucket, "round", "token");
}

static int64_t first_factor(const Run *r, const Params *p)
{
    const Tensor *w = &p->rotations;
    int64_t       columns = w->data && w->rank ? w->shape[w->rank - 1] : 0;

    if (p->n_buckets)
        return p->n_buckets;
    if (2 * columns > p->n_buckets2)
        return 2 * columns - p->n_buckets2;
    return 2 * (r->n / p->block > 1 ? r->n / p->block : 1);
}

static void sort(Run *r, Lsh *l)
{
    run_stage(r, "sort");
    l->order = op_sort(r, l->bucket);
    view_tensor(r, "order", VIEW_ORDER, l->order, "round", "slot");
    run_figure(r, "sort_comparisons",
               (double)(l->h * l->rounds * l->n) * log2((double)l->n));
}

static void chunk(Run *r, Lsh *l)
{
    run_stage(r, "chunk");
    l->chunk = run_tensor3(r, DT_I32, l->h, l->rounds, l->n);
    number_chunks(r, l);
    view_tensor(r, "chunks", VIEW_BUCKETS, l->chunk, "round", "token");
}

/* The token at a slot is in the slot's chunk; joint slots go on over the rounds. */
static void number_chunks(Run *r, const Lsh *l)
{
    Tensor  slot = run_tensor3(r, DT_I32, l->rounds, l->n, 1);
    int64_t all = l->rounds * l->n;

    run_prepare(r, true);
    for (int64_t s = 0; s < all && !run_failed(r); s++)
        tensor_i32(&slot)[s] = (int32_t)((l->joint ? s : s % l->n) / l->chunks.block);
    op_toward(r, slot.data, tensor_bytes(&slot));
    run_prepare(r, false);
    for (int64_t head = 0; head < l->h && !run_failed(r); head++)
        op_scatter(r, slot, tensor_of(DT_I32, 2, slot.shape, tensor_i32(&l->order) + head * all),
                   tensor_of(DT_I32, 3, slot.shape, tensor_i32(&l->chunk) + head * all));
}

static Tensor normalised_keys(Run *r, const Params *p)
{
    if (p->key_norm == KEY_RMS)
        return op_normalise(r, r->q, NORMALISE_RMS, KEY_EPS_RMS);
    return p->key_norm == KEY_L2 ? op_normalise(r, r->q, NORMALISE_L2, KEY_EPS_L2) : r->q;
}

/* ---- attention -------------------------------------------------------------- */

/* Returns the log-sum-exp of every row over all rounds. */
static Tensor reformer_attend(Run *r, const Params *p, const Lsh *l, Tensor keys)
{
    Tensor      z = empty_rows(r);
    GroupAttend g = { .scale = 0 };
    Visits      visits = { .chunk = l->chunk, .before = l->chunks.before,
                           .after = l->chunks.after, .ring = l->joint ? l->chunks.count : 0,
                           .cross = l->joint && l->across };

    if (!l->across)
        visits.tag = l->bucket;
    chunks_groups(r, &l->chunks, &g);
    for (int64_t round = 0; round < (l->joint ? 1 : l->rounds) && !run_failed(r); round++) {
        ArenaMark   mark = arena_mark(r->arena);
        List        list = reformer_list_of(l, round);
        GroupResult result;

        run_iteration(r, "attend", l->joint ? -1 : round);
        result = attend_list(r, p, &list, g, keys, &visits);
        run_iteration(r, "combine", l->joint ? -1 : round);
        reformer_combine(r, &list, result, z);
        arena_release(r->arena, mark);
    }
    return z;
}

static Tensor empty_rows(Run *r)
{
    Tensor z = run_tensor2(r, DT_F32, r->h, r->n);

    r->out = run_tensor3(r, DT_F32, r->h, r->n, r->e);
    op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, 0, r->out);
    op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, -(double)INFINITY,
               tensor_of(DT_F32, 3, (int64_t[]){ 1, r->h, r->n }, z.data));
    return z;
}

static List reformer_list_of(const Lsh *l, int64_t round)
{
    Tensor order = { .dtype = DT_I32, .rank = 2, .shape = { l->h, l->chunks.slots, 1, 1 },
                     .stride = { l->rounds * l->n, 1, 1, 1 },
                     .data = tensor_i32(&l->order) + round * l->n };

    return (List){ .l = l, .round = round, .order = order };
}

static GroupResult attend_list(Run *r, const Params *p, const List *list, GroupAttend g,
                               Tensor keys, const Visits *visits)
{
    (list->l->joint ? slots_as_rows : positions_as_rows)(r, list, keys, &g);
    g.scale = run_scale(r, p->scale);
    g.causal = r->causal;
    g.self_last = p->exclude_self;
    g.self_penalty = p->exclude_self ? SELF_PENALTY : 0;
    g.visits = p->dedup && list->l->rounds > 1 ? visits : NULL;
    return op_group_attend(r, &g);
}

static void slots_as_rows(Run *r, const List *list, Tensor keys, GroupAttend *g)
{
    g->q = op_gather(r, r->q, list->order);
    g->k = op_gather(r, keys, list->order);
    g->v = op_gather(r, r->v, list->order);
    if (!list->l->across)
        g->query_tag = g->key_tag = slot_tags(r, list);
    g->query_at = g->key_at = list->order;
}

/* Equal tags: same bucket and same round.  Sorted, so a tag is a count of ends. */
static Tensor slot_tags(Run *r, const List *list)
{
    const Lsh *l = list->l;
    Tensor     tag = run_tensor2(r, DT_I32, l->h, l->chunks.slots);

    for (int64_t t = 0; t < l->h && !run_failed(r); t++) {
        const int32_t *order = tensor_head(&list->order, t, l->h);
        const int32_t *bucket = tensor_i32(&l->bucket) + t * l->rounds * l->n;
        int32_t        kind = 0;

        for (int64_t s = 0; s < l->chunks.slots; s++) {
            if (s && s % l->n == 0)
                bucket += l->n;
            kind += s && (s % l->n == 0 || bucket[order[s]] != bucket[order[s - 1]]);
            tensor_i32(&tag)[t * l->chunks.slots + s] = kind;
        }
    }
    return tag;
}

static void positions_as_rows(Run *r, const List *list, Tensor keys, GroupAttend *g)
{
    const Lsh *l = list->l;
    Tensor     positions = positions_of(r, list, g->key_index);
    Tensor     place = run_tensor2(r, DT_I32, 1, l->n), bucket = list->order;

    if (run_failed(r))
        return;
    for (int64_t i = 0; i < l->n; i++)
        tensor_i32(&place)[i] = (int32_t)i;
    bucket.data = tensor_i32(&l->bucket) + list->round * l->n;
    g->q = r->q;
    g->k = keys;
    g->v = r->v;
    g->query_index = list->order;
    g->key_index = positions;
    if (!l->across)
        g->query_tag = g->key_tag = bucket;
    g->query_at = g->key_at = place;
}

/* i32 [h,total]: the positions in the slots that the chunks see. */
static Tensor positions_of(Run *r, const List *list, Tensor slots)
{
    Tensor order = list->order, found;

    order.rank = 3; /* rows of one */
    order.shape[2] = order.stride[1] = order.stride[2] = 1;
    order.shape[1] = list->order.shape[1];
    found = op_gather(r, order, slots);
    return tensor_of(DT_I32, 2, (int64_t[]){ r->h, slots.shape[1] }, found.data);
}

static void reformer_combine(Run *r, const List *list, GroupResult result, Tensor z)
{
    MergeRows in = { .rows = result.out, .lse = result.lse, .index = list->order, .out = r->out,
                     .z = z, .lists = list->l->joint ? list->l->rounds : 1 };

    op_merge_rows(r, &in);
    op_charge(r, FLOP_OVERHEAD, 2 * (double)(r->h * list->l->chunks.slots * r->e));
}

/* The last row: its keys, and the slots of its windows, computed whatever their bucket. */
static void last_visits(Run *r, const Params *p, const Lsh *l)
{
    Seen    seen = { .l = l, .exclude_self = p->exclude_self };
    int64_t first, slots = 0;

    run_last_listed(r, attended, &seen, r->h); /* queries are keys */
    for (int64_t x = 0; x < l->h * l->rounds && r->last.known; x++) {
        int32_t chunk = tensor_i32(&l->chunk)[x * l->n + l->n - 1];
        int64_t window = chunks_window(&l->chunks, chunk, &first);

        for (int64_t w = 0; w < window; w++) {
            int64_t c = (first + w) % l->chunks.count;

            slots += chunks_end(&l->chunks, c) - c * l->chunks.block;
        }
    }
    r->last.cells = (double)slots;
}

/* connectivity, union, visits and weights; l must live in the run's arena. */
static void lsh_chunks_show(Run *r, const Lsh *l, const LshLook *look)
{
    Seen    *s = run_wants_views(r) ? run_alloc(r, 1, sizeof(*s)) : NULL;
    Pattern *k;

    if (!s)
        return;
    *s = (Seen){ .l = l, .weigh = look->weigh, .exclude_self = look->exclude_self,
                 .z = run_alloc(r, r->h * r->n, sizeof(*s->z)),
                 .in = { .q = r->q, .k = look->k, .v = r->v, .scale = look->scale } };
    s->visits = cell_rows_counted(r, visited, s);
    s->kept = s->exclude_self ? cell_rows_others(r, s->visits) : s->visits;
    k = cell_rows_pattern(r, s->kept, COMPONENT_BUCKET);
    reformer_refine(r, s, look->z);
    show_rounds(r, s);
    view_pattern(r, k, false);
    show_unions(r, s, k);
    view_reader(r, "visits", VIEW_COUNT, DT_I32, cell_rows_read, s->visits, NULL);
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, reformer_read_weights, s, k);
}

/* The cells with N_ij > 0. */
static int64_t visited(const void *context, int64_t head, int64_t i, int32_t *count, int32_t *key)
{
    const Lsh     *l = ((const Seen *)context)->l;
    const int32_t *order = tensor_i32(&l->order) + head * l->rounds * l->n;
    const int32_t *bucket = tensor_i32(&l->bucket) + head * l->rounds * l->n;
    const int32_t *chunk = tensor_i32(&l->chunk) + head * l->rounds * l->n;
    int64_t        found = 0, first;

    for (int64_t own = l->first * l->n; own < l->end * l->n; own += l->n) {
        int64_t base = l->joint ? 0 : own;
        int64_t chunks = chunks_window(&l->chunks, chunk[own + i], &first);

        for (int64_t w = 0; w < chunks; w++) {
            int64_t c = (first + w) % l->chunks.count, s = base + c * l->chunks.block;

            for (; s < base + chunks_end(&l->chunks, c); s++) {
                int32_t j = order[s];
                bool    same = s >= own && s < own + l->n && bucket[own + j] == bucket[own + i];

                if ((same || l->across) && !(l->causal && j > i) && !count[j]++)
                    key[found++] = j;
            }
        }
    }
    return found;
}

/* Recomputes large log-sum-exps in double: float rounding would show in the weights. */
static void reformer_refine(Run *r, Seen *s, Tensor z)
{
    for (int64_t row = 0; row < r->h * r->n && !run_failed(r); row++) {
        LogSum sum = log_sum_new();

        s->z[row] = (double)tensor_f32(&z)[row];
        if (fabs(s->z[row]) < COARSE || s->z[row] < ONLY_SELF)
            continue;
        for (int64_t c = s->kept->start[row]; c < s->kept->start[row + 1]; c++) {
            int64_t head = row / r->n, i = row % r->n, j = s->kept->key[c];

            log_sum_add(&sum, attend_score(&s->in, s->l->h, head, i, j) +
                                  log(times(s, head, i, j)));
        }
        s->z[row] = log_sum_of(&sum);
    }
}

/* How often a cell counts. */
static double times(const Seen *s, int64_t head, int64_t i, int64_t j)
{
    return s->weigh ? (double)cell_rows_count(s->visits, head, i, j) : 1;
}

/* Cells of each round, before their union; skipped for very many cells. */
static void show_rounds(Run *r, Seen *all)
{
    const Lsh *l = all->l;
    double     cells = (double)(l->h * l->rounds) * chunks_pairs(&l->chunks);

    if (l->joint || l->rounds < 2 || l->rounds > ROUNDS_SHOWN || cells > CELLS_SHOWN)
        return;
    for (int64_t round = 0; round < l->rounds && !run_failed(r); round++) {
        Lsh      one = *l; /* read here and now only */
        Seen     seen = *all;
        Pattern *k;

        one.first = round;
        one.end = round + 1;
        seen.l = &one;
        view_stage(r, "attend", round);
        k = cell_rows_pattern(r, cell_rows_new(r, attended, &seen), COMPONENT_BUCKET);
        all->first = round == 0 ? k : all->first;
        view_pattern(r, k, false);
    }
    view_stage(r, NULL, -1);
}

/* K_i: without the own position, unless there is no other. */
static int64_t attended(const void *context, int64_t head, int64_t i, int32_t *count,
                        int32_t *key)
{
    int64_t found = visited(context, head, i, count, key), kept = 0;

    if (!((const Seen *)context)->exclude_self || found == 1)
        return found;
    for (int64_t c = 0; c < found; c++)
        if (key[c] != i)
            key[kept++] = key[c];
    count[i] = 0;
    return kept;
}

/* The union of the rounds so far, after each; `all` after the last. */
static void show_unions(Run *r, const Seen *last, const Pattern *all)
{
    const Lsh *l = last->l;
    double     cells = (double)(l->h * l->rounds) * chunks_pairs(&l->chunks);

    if (l->joint || l->rounds < 2 || l->rounds > ROUNDS_SHOWN || cells > CELLS_SHOWN)
        return;
    for (int64_t round = 0; round < l->rounds && !run_failed(r); round++) {
        const Pattern *k = round + 1 < l->rounds ? last->first : all;
        Lsh            some = *l; /* read here and now only */
        Seen           seen = *last;

        some.end = round + 1;
        seen.l = &some;
        if (round > 0 && round + 1 < l->rounds)
            k = cell_rows_pattern(r, cell_rows_new(r, attended, &seen), COMPONENT_BUCKET);
        view_stage(r, "combine", round);
        view_cells(r, "union", k);
    }
    view_stage(r, NULL, -1);
}

static void reformer_read_weights(const View *view, int64_t head, int64_t i, int64_t start,
                                  int64_t count, int64_t step, float *out)
{
    const Seen *s = view->context;
    double      z = s->z[head * s->l->n + i];

    for (int64_t c = 0; c < count; c++)
        out[c] = z < ONLY_SELF ? 1 : (float)reformer_cell(s, head, i, start + c * step, z);
}

static double reformer_cell(const Seen *s, int64_t head, int64_t i, int64_t j, double z)
{
    return times(s, head, i, j) * exp(attend_score(&s->in, s->l->h, head, i, j) - z);
}

static void reformer_check(Run *r, const void *opaque)
{
    (void)opaque;
    if (tensor_same_shape(&r->q, &r->k) &&
        memcmp(r->q.data, r->k.data, (size_t)tensor_bytes(&r->q)) == 0)
        return;
    run_warn(r, "reformer uses q as the keys too and ignores the given k: on a head trained with "
             "q and k apart this is another head");
}

static Flops reformer_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Lsh           l = lsh_shape(r, p);
    double        h = (double)r->h, n = (double)r->n, d = (double)r->d, e = (double)r->e;
    double        rounds = (double)l.rounds;
    double        pairs = h * chunks_pairs(&l.chunks) * (l.joint ? 1 : rounds);

    return (Flops){ .score = 2 * pairs * d, .mix = 2 * pairs * e,
                    .overhead = FLOPS_SOFTMAX * pairs + n * token_flops(r, p) };
}

/* FLOPs of each token before its scores and after: its hashes, its key, and the sum of rounds. */
static double token_flops(const Run *r, const Params *p)
{
    double columns = (double)((first_factor(r, p) + p->n_buckets2) / 2);
    double d = (double)r->d, rounds = (double)p->rounds;

    return (double)r->h * (2 * d * rounds * columns + 2 * rounds * (double)r->e +
                           (p->key_norm == KEY_NONE ? 0 : 5 * d));
}

/* One vector is query and key.  A token's buckets are held beside it: 4 bytes a round. */
static DecodeCost reformer_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        h = (double)r->h, values = (double)(r->v.shape[0] * r->e);
    double        token = (double)r->cache_bytes * (h * (double)r->d + values) +
                   4 * h * (double)p->rounds;

    return (DecodeCost){ .state_bytes = token * (double)r->m, .kv_bytes_per_token = token,
                         .step_bytes = decode_read(r),
                         .decode_flops = decode_row(r) + token_flops(r, p) };
}

static const StageNote notes[] = {
    { "hash", "Each query is turned by random rotations; the axis it ends up nearest to is its "
              "bucket.  Vectors that point the same way tend to share a bucket.  Every round "
              "turns differently." },
    { "sort", "Tokens are sorted by bucket, and by position within a bucket: what is alike stands "
              "side by side." },
    { "chunk", "The sorted order is cut into chunks of equal length, which buckets are not.  A "
               "chunk's border may cut a bucket: that is why a chunk also looks at the one before "
               "it." },
    { "normalise keys", "The keys are the queries brought to one length, so that a token does not "
                        "simply prefer long vectors.  Itself it would always prefer: no direction "
                        "is nearer to it than its own." },
    { "attend", "In the sorted order each chunk attends to itself and to the chunks before it, to "
                "keys of the same bucket only.  With exclude_self a token sees itself only if it "
                "sees nobody else." },
    { "combine", "Un-sorted, the round's results stand at their tokens again; they are merged with "
                 "the earlier rounds, weighted by how much softmax mass each round saw." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("buckets", VIEW_BUCKETS, "bucket of each token, by round"),
    VIEW("order", VIEW_ORDER, "position at each slot of the sorted order"),
    VIEW("chunks", VIEW_BUCKETS, "chunk of each token, by round"),
    VIEW("visits", VIEW_COUNT, "how often a query visits a key"),
    VIEW("connectivity", VIEW_PATTERN, "cells that take part in the softmax"),
    VIEW("union", VIEW_PATTERN, "cells of the rounds so far, after each", .maybe = true),
    VIEW("weights", VIEW_WEIGHTS, "attention weights of all rounds together"),
    VIEW("rotations", VIEW_TENSOR, "the random rotations, when they were drawn", .maybe = true),
    VIEW_PROMISE_END
};

const Mechanism mech_reformer = {
    .id = "reformer",
    .title = "Reformer (LSH attention)",
    .authors = "Kitaev, Kaiser, Levskaya",
    .year = 2020,
    .arxiv = "2001.04451",
    .source = "paper, section 2; trax efficient_attention.py for the order of the steps",
    .formula = "bucket_i = argmax [q_i R ; -q_i R] in each round; sort by bucket, cut into chunks\n"
               "S[i,j] = scale * q_i . q_j/rms(q_j), j in i's bucket and own or previous chunk\n"
               "output = softmax over the pairs of all rounds, each pair counted once, times V",
    .problem = "Full attention scores all pairs, though only keys near the query in direction "
               "get much weight.",
    .idea = "Locality-sensitive hashing (LSH) gives near vectors the same bucket with high "
            "probability, and only tokens of a bucket are compared.",
    .price = "Near vectors may fall into different buckets, so some large weights are missed, and "
             "queries must equal keys.  Attention takes O(n block) a round.  Hashing takes O(n^2 "
             "d/block) with one hash and O(n^1.5 d) with n_buckets2 near the root of 2 n/block; "
             "the paper claims O(n log n).",
    .lesson = "lsh",
    .teaches = "Sorted by bucket, attention is a block diagonal with one block before it and an "
               "empty diagonal; more rounds fill the pairs that one round missed.  The keys are "
               "the queries: the input's k is ignored, so on a head that was trained with k other "
               "than q the result is a different head, not an approximation of it.",
    .sketch = "block=8",
    .classes = CLASS_LP,
    .claim_time = "O(n log n)",
    .claim_memory = "O(n log n)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .no_at_end = "its queries are its keys, one vector for both",
    .views = views,
    .notes = notes,
    .size = "block",
    .params = params,
    .params_size = sizeof(Params),
    .check = reformer_check,
    .run = reformer_run,
    .flops = reformer_flops,
    .decode = reformer_decode,
};
