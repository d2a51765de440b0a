/* experts.c -- room for tokens with the experts they asked for; see experts.h.
 *
 * Groups take their slots one after another: first choices, then second ones.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/mech/routing/experts.h"
#include "attn/ops/dense.h"
#include "attn/run.h"
#include "core/rng.h"

/* One run.  An entry is a choice of a token: token * choices + which. */
typedef struct Experts {
    const ExpertParams *p;
    int64_t  n, dm, experts, ff, choices;
    int64_t  group, groups; /* tokens of a group, the last may be short */
    Tensor   router_w, router_b, w1, b1, w_gate, w2, b2; /* biases, w_gate: may be absent */
    double  *first;    /* [n] probability of the first choice */
    double  *gate;     /* [n*choices] */
    Tensor   expert;   /* i32 [n,choices]; -1: none */
    Tensor   slot;     /* i32 [n,choices]; -1: no place */
    Tensor   lost;     /* u8 [n,choices] asked for, but there was no room */
    Tensor   capacity; /* i32 [groups,experts,2] used, there */
    int64_t *start;    /* [experts+1] placed entries of each expert in `entry` */
    int64_t *entry;    /* [placed] */
    int64_t *row;      /* [n*choices] place of an entry in `entry`; -1: none */
    Tensor   y;        /* f32 [placed,dm] what the experts made of them */
} Experts;

static inline int64_t experts_placed(const Experts *s)
{
    return s->start[s->experts];
}

/* Stage route: first, gate and expert. */
static void experts_route(Run *r, Experts *s);
/* Stages expert and combine: s->y, then the output. */
static void experts_compute(Run *r, Experts *s);

const char *const expert_policies[] = { "all", "none", "threshold", "random", NULL };
const char *const expert_activations[] = { "relu", "gelu", NULL };

/* ---- sizes and weights ------------------------------------------------------ */

static int64_t expert_count(Run *r, const ExpertParams *p)
{
    return layer_size(r, "n_experts", p->n_experts, p->n_experts,
                      (const SizeFrom[]){ { "router_w", p->router_w, 2, 1, 1 },
                                          { "router_b", p->router_b, 1, 0, 1 },
                                          { "w1", p->w1, 3, 0, 1 },
                                          { "b1", p->b1, 2, 0, 1 },
                                          { "w_gate", p->w_gate, 3, 0, 1 },
                                          { "w2", p->w2, 3, 0, 1 },
                                          { "b2", p->b2, 2, 0, 1 },
                                          { .name = NULL } });
}

static int64_t hidden_units(Run *r, const ExpertParams *p)
{
    return layer_size(r, "d_ff", p->d_ff, 4 * r->dm,
                      (const SizeFrom[]){ { "w1", p->w1, 3, 2, 1 },
                                          { "b1", p->b1, 2, 1, 1 },
                                          { "w_gate", p->w_gate, 3, 2, 1 },
                                          { "w2", p->w2, 3, 1, 1 },
                                          { .name = NULL } });
}

static Experts experts_shape_of(Run *r, const ExpertParams *p, int choices)
{
    Experts s = { .p = p, .n = r->n, .dm = r->dm, .choices = choices };

    s.experts = expert_count(r, p);
    s.ff = hidden_units(r, p);
    s.group = p->group_size > 0 ? min_i64(p->group_size, s.n) : s.n;
    s.groups = (s.n + s.group - 1) / s.group;
    return s;
}

static Init normal(double variance)
{
    return (Init){ INIT_NORMAL, sqrt(variance) };
}

static void experts_take_weights(Run *r, Experts *s)
{
    const ExpertParams *p = s->p;
    int64_t             e = s->experts, dm = s->dm, ff = s->ff;

    run_stage(r, "weights");
    s->router_w = layer_weight(r, "router_w", p->router_w, 2, (int64_t[]){ dm, e },
                               normal(0.1 / (double)dm));
    s->router_b = layer_given(r, "router_b", p->router_b, 1, (int64_t[]){ e });
    s->w1 = layer_weight(r, "w1", p->w1, 3, (int64_t[]){ e, dm, ff }, normal(1 / (double)dm));
    s->b1 = layer_given(r, "b1", p->b1, 2, (int64_t[]){ e, ff });
    if (p->gated)
        s->w_gate = layer_weight(r, "w_gate", p->w_gate, 3, (int64_t[]){ e, dm, ff },
                                 normal(1 / (double)dm));
    s->w2 = layer_weight(r, "w2", p->w2, 3, (int64_t[]){ e, ff, dm }, normal(1 / (double)ff));
    s->b2 = layer_given(r, "b2", p->b2, 2, (int64_t[]){ e, dm });
    if (!p->gated && p->w_gate.data)
        run_warn(r, "%s: w_gate is given but gated=false: it is not used", r->mechanism->id);
}

/* ---- capacity and drop ------------------------------------------------------ */

static int64_t group_tokens(const Experts *s, int64_t group)
{
    return min_i64(s->group, s->n - group * s->group);
}

/* Slots of each expert for a group. */
static int64_t slots_of(const Experts *s, int64_t group)
{
    const ExpertParams *p = s->p;
    double              tokens = (double)group_tokens(s, group);
    double              share = floor(p->capacity_factor * tokens / (double)s->experts);

    if (p->capacity > 0)
        return p->capacity;
    share = fmin(tokens, share);
    return share > (double)p->min_capacity ? (int64_t)share : p->min_capacity;
}

static void count_capacity(Run *r, Experts *s)
{
    run_stage(r, "capacity");
    s->capacity = run_tensor3(r, DT_I32, s->groups, s->experts, 2);
    if (run_failed(r))
        return;
    memset(s->capacity.data, 0, (size_t)tensor_bytes(&s->capacity));
    for (int64_t x = 0; x < s->n * s->choices; x++) {
        int64_t e = tensor_i32(&s->expert)[x], group = x / s->choices / s->group;

        if (e >= 0)
            tensor_i32(&s->capacity)[(group * s->experts + e) * 2]++;
    }
    for (int64_t c = 0; c < s->groups * s->experts; c++) {
        int32_t *pair = tensor_i32(&s->capacity) + 2 * c;

        pair[1] = (int32_t)slots_of(s, c / s->experts);
        pair[0] = pair[0] < pair[1] ? pair[0] : pair[1];
    }
    view_tensor(r, "capacity", VIEW_COUNT, s->capacity, "expert", "used, there");
}

typedef struct Turn { /* a token's place in the queue */
    double  p;
    int64_t token;
} Turn;

static int by_probability(const void *x, const void *y)
{
    const Turn *a = x, *b = y;

    if (a->p > b->p || a->p < b->p)
        return a->p > b->p ? -1 : 1;
    return (a->token > b->token) - (a->token < b->token);
}

static void queue_group(const Experts *s, int64_t group, Turn *queue)
{
    int64_t tokens = group_tokens(s, group);

    for (int64_t x = 0; x < tokens; x++) {
        int64_t i = group * s->group + x;

        queue[x] = (Turn){ isnan(s->first[i]) ? -1 : s->first[i], i };
    }
    if (s->p->batch_prioritized)
        qsort(queue, (size_t)tokens, sizeof(*queue), by_probability);
}

static void fill_group(Experts *s, int64_t group, const Turn *queue, int64_t *used)
{
    int64_t tokens = group_tokens(s, group);

    memset(used, 0, (size_t)s->experts * sizeof(*used));
    for (int64_t x = 0; x < s->choices * tokens; x++) {
        int64_t entry = queue[x % tokens].token * s->choices + x / tokens;
        int64_t e = tensor_i32(&s->expert)[entry];
        bool    fits = e >= 0 && used[e] < slots_of(s, group);

        tensor_i32(&s->slot)[entry] = fits ? (int32_t)used[e]++ : -1;
        tensor_u8(&s->lost)[entry] = e >= 0 && !fits;
    }
}

static void show_dropped(Run *r, const Experts *s)
{
    Tensor  dropped = run_tensor1(r, DT_U8, s->n);
    int64_t tokens = 0, choices = 0;

    for (int64_t i = 0; i < s->n && !run_failed(r); i++) {
        tensor_u8(&dropped)[i] = 1;
        for (int64_t x = i * s->choices; x < (i + 1) * s->choices; x++) {
            tensor_u8(&dropped)[i] &= tensor_i32(&s->slot)[x] < 0;
            choices += tensor_u8(&s->lost)[x];
        }
        tokens += tensor_u8(&dropped)[i];
    }
    run_figure_int(r, "dropped_tokens", tokens);
    run_figure_int(r, "dropped_choices", choices);
    view_tensor(r, "position", VIEW_ORDER, s->slot, "token", "choice");
    view_tensor(r, "dropped_choices", VIEW_COUNT, s->lost, "token", "choice");
    view_tensor(r, "dropped", VIEW_COUNT, dropped, "", "token");
}

static void drop(Run *r, Experts *s)
{
    Turn    *queue;
    int64_t *used;

    run_stage(r, "drop");
    s->slot = run_tensor2(r, DT_I32, s->n, s->choices);
    s->lost = run_tensor2(r, DT_U8, s->n, s->choices);
    queue = run_alloc(r, s->group, sizeof(*queue));
    used = run_alloc(r, s->experts, sizeof(*used));
    for (int64_t g = 0; g < s->groups && !run_failed(r); g++) {
        queue_group(s, g, queue);
        fill_group(s, g, queue, used);
    }
    show_dropped(r, s);
}

/* ---- dispatch --------------------------------------------------------------- */

/* Lists the placed entries of each expert, in the order of the tokens. */
static void list_entries(Run *r, Experts *s)
{
    int64_t entries = s->n * s->choices;

    s->start = run_alloc(r, s->experts + 1, sizeof(*s->start));
    s->entry = run_alloc(r, entries, sizeof(*s->entry));
    s->row = run_alloc(r, entries, sizeof(*s->row));
    if (run_failed(r))
        return;
    memset(s->start, 0, (size_t)(s->experts + 1) * sizeof(*s->start));
    for (int64_t x = 0; x < entries; x++)
        if (tensor_i32(&s->slot)[x] >= 0)
            s->start[tensor_i32(&s->expert)[x] + 1]++;
    for (int64_t e = 0; e < s->experts; e++)
        s->start[e + 1] += s->start[e];
    for (int64_t x = entries - 1; x >= 0; x--) { /* ends become starts */
        s->row[x] = tensor_i32(&s->slot)[x] < 0
                        ? -1
                        : --s->start[tensor_i32(&s->expert)[x] + 1];
        if (s->row[x] >= 0)
            s->entry[s->row[x]] = x;
    }
    memmove(s->start, s->start + 1, (size_t)s->experts * sizeof(*s->start));
    s->start[s->experts] = 0;
    for (int64_t x = 0; x < entries; x++)
        s->start[s->experts] += s->row[x] >= 0;
}

static void read_routing(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const Experts *s = view->context;

    (void)head;
    memset(out, 0, (size_t)count * sizeof(*out));
    for (int64_t x = i * s->choices; x < (i + 1) * s->choices; x++) {
        int64_t away = tensor_i32(&s->expert)[x] - start;

        if (s->row[x] >= 0 && away >= 0 && away % step == 0 && away / step < count)
            out[away / step] += (float)s->gate[x];
    }
}

/* The experts a token asked for, or only those where it was dropped. */
static Pattern *asked_cells(Run *r, const Experts *s, bool only_lost)
{
    PatternShape shape = { .heads = 1, .n = s->n, .m = s->experts };
    Tensor       table = s->expert;

    if (only_lost)
        table = run_tensor2(r, DT_I32, s->n, s->choices);
    for (int64_t x = 0; x < s->n * s->choices && only_lost && !run_failed(r); x++)
        tensor_i32(&table)[x] = tensor_u8(&s->lost)[x] ? tensor_i32(&s->expert)[x] : -1;
    return run_failed(r) ? NULL : pattern_table(r->arena, shape, &table, COMPONENT_OTHER);
}

static const ViewLoad *expert_load(Run *r, const Experts *s)
{
    ViewLoad *load = run_alloc(r, 1, sizeof(*load));

    if (!load)
        return NULL;
    *load = (ViewLoad){ .used_name = "placed", .over_name = "dropped", .limit_name = "capacity" };
    load->used = run_tensor1(r, DT_I32, s->experts);
    load->over = run_tensor1(r, DT_I32, s->experts);
    if (run_failed(r))
        return NULL;
    memset(load->used.data, 0, (size_t)tensor_bytes(&load->used));
    memset(load->over.data, 0, (size_t)tensor_bytes(&load->over));
    for (int64_t x = 0; x < s->n * s->choices; x++) {
        int64_t e = tensor_i32(&s->expert)[x];

        if (e >= 0)
            tensor_i32(s->row[x] >= 0 ? &load->used : &load->over)[e]++;
    }
    for (int64_t g = 0; g < s->groups; g++)
        load->limit += slots_of(s, g);
    return load;
}

static void experts_show_routing(Run *r, const Experts *s)
{
    View      *view = view_add(r, "routing", VIEW_ROUTING, DT_F32, 2,
                               (int64_t[]){ s->n, s->experts });
    ViewMarks *marks = view ? run_alloc(r, 1, sizeof(*marks)) : NULL;

    if (!marks)
        return;
    *marks = (ViewMarks){ .cells = asked_cells(r, s, true), .name = "dropped" };
    view->read = read_routing;
    view->context = s;
    view->rows = "token";
    view->cols = "expert";
    view->quantity = "gate";
    view->support = asked_cells(r, s, false);
    view->marks = marks;
    view->load = expert_load(r, s);
    if (!run_failed(r) && (!marks->cells || !view->support))
        run_fail(r, ERR_NOMEM, "%s: not enough memory for a view", r->mechanism->id);
}

static void dispatch(Run *r, Experts *s)
{
    run_stage(r, "dispatch");
    list_entries(r, s);
    if (!run_failed(r))
        run_figure_int(r, "placed", experts_placed(s));
    experts_show_routing(r, s);
}

/* ---- the layer -------------------------------------------------------------- */

/* Of one token in one expert. */
static double token_flops(const Experts *s)
{
    return (s->p->gated ? 6 : 4) * (double)s->dm * (double)s->ff;
}

/* What fixed shapes would pay for, and a layer in which every expert sees every token. */
static void show_costs(Run *r, const Experts *s)
{
    double slots = 0;

    if (run_failed(r))
        return;
    for (int64_t g = 0; g < s->groups; g++)
        slots += (double)s->experts * (double)slots_of(s, g);
    run_figure(r, "expert_flops", (double)experts_placed(s) * token_flops(s));
    run_figure(r, "padded_flops", slots * token_flops(s));
    run_figure(r, "dense_flops", (double)s->n * (double)s->experts * token_flops(s));
}

void experts_run(Run *r, const ExpertParams *p, int choices)
{
    Experts *s = run_alloc(r, 1, sizeof(*s)); /* the readers keep it */

    if (!s)
        return;
    *s = experts_shape_of(r, p, choices);
    experts_take_weights(r, s);
    experts_route(r, s);
    count_capacity(r, s);
    drop(r, s);
    dispatch(r, s);
    experts_compute(r, s);
    show_costs(r, s);
}

Flops experts_flops(Run *r, const ExpertParams *p, int choices)
{
    Experts s = experts_shape_of(r, p, choices);
    bool    second = choices > 1 && s.experts > 1 && p->second_policy != SECOND_NONE;
    double  n = (double)s.n, dm = (double)s.dm, e = (double)s.experts, placed = 0;

    for (int64_t g = 0; g < s.groups; g++)
        placed += fmin(e * (double)slots_of(&s, g),
                       (double)group_tokens(&s, g) * (second ? 2 : 1));
    return (Flops){ .mix = 2 * placed * dm,
                    .overhead = 2 * n * dm * e + FLOPS_SOFTMAX * n * e +
                                placed * token_flops(&s) };
}

/* ---- notes ------------------------------------------------------------------ */

const StageNote experts_notes[] = {
    { "weights",
      "The router's and the experts' matrices are taken from files or drawn." },
    { "route",
      "The router scores every expert for every token, and each token asks for its best one or "
      "two." },
    { "capacity",
      "How many tokens an expert can take: its even share, times a factor." },
    { "drop",
      "Tokens are taken in order; those that find their expert full are dropped and pass by "
      "unchanged." },
    { "dispatch",
      "Tokens are laid out by expert." },
    { "expert",
      "Each expert, a network of its own, works on the tokens it got." },
    { "combine",
      "Results go back to their tokens, weighed by what the router gave." },
    { NULL, NULL }
};

/* What the experts compute; see experts.h.
 *
 *     FFN_e(x) = (act(x w1_e + b1_e) [* x w_gate_e]) w2_e + b2_e
 *
 * Every expert works on the tokens placed with it and on no others, a tile of
 * them at a time.
 */

#define FFN_TILE 4096 /* tokens of an expert at a time */

static const Tensor none = { .rank = 0 };

/* hidden <- act(hidden + b1) [* gate] */
static void activate(Run *r, const Experts *s, Tensor hidden, Tensor gate, Tensor bias)
{
    bool relu = s->p->activation == EXPERT_RELU;

    if (!relu)
        op_gelu(r, hidden, bias.data);
    if (relu && bias.data)
        op_entries_of(r, hidden, bias, ENTRY_SUM, 1, hidden);
    if (relu)
        op_entries(r, hidden, ENTRY_RELU, 0, hidden);
    if (gate.data)
        op_entries_of(r, hidden, gate, ENTRY_PRODUCT, 1, hidden);
}

/* An expert's slice of weights [experts,a,b] as [1,a,b]. */
static Tensor slice_of(Tensor weights, int64_t expert)
{
    int64_t shape[3] = { 1, weights.shape[1], weights.shape[2] };

    return tensor_of(DT_F32, 3, shape, tensor_f32(&weights) + expert * shape[1] * shape[2]);
}

static Tensor experts_row_of(const Tensor *bias, int64_t expert)
{
    return bias->data ? tensor_of(DT_F32, 1, &bias->shape[1],
                                  tensor_f32(bias) + expert * bias->shape[1])
                      : none;
}

static Tensor gather(Run *r, const Experts *s, int64_t first, int64_t count)
{
    Tensor index = run_tensor2(r, DT_I32, 1, count);

    for (int64_t i = 0; i < count && !run_failed(r); i++)
        tensor_i32(&index)[i] = (int32_t)(s->entry[first + i] / s->choices);
    return op_gather(r, tensor_with_rank(r->x, 3), index);
}

/* Entries [first, first+count), all of one expert. */
static void expert_tile(Run *r, Experts *s, int64_t expert, int64_t first, int64_t count)
{
    Tensor x = gather(r, s, first, count), gate = none, bias, y;
    Tensor hidden = run_tensor3(r, DT_F32, 1, count, s->ff);

    op_gemm(r, x, false, slice_of(s->w1, expert), false, 1, 0, hidden, FLOP_OVERHEAD);
    if (s->p->gated) {
        gate = run_tensor3(r, DT_F32, 1, count, s->ff);
        op_gemm(r, x, false, slice_of(s->w_gate, expert), false, 1, 0, gate, FLOP_OVERHEAD);
    }
    if (run_failed(r))
        return;
    activate(r, s, hidden, gate, experts_row_of(&s->b1, expert));
    y = tensor_of(DT_F32, 3, (int64_t[]){ 1, count, s->dm },
                  tensor_f32(&s->y) + first * s->dm);
    op_gemm(r, hidden, false, slice_of(s->w2, expert), false, 1, 0, y, FLOP_OVERHEAD);
    bias = experts_row_of(&s->b2, expert);
    if (bias.data)
        op_entries_of(r, y, bias, ENTRY_SUM, 1, y);
}

/* Each token's places that an expert took. */
static SumLists experts_places(Run *r, const Experts *s)
{
    int64_t  at = 0, placed = experts_placed(s);
    int64_t *start = run_alloc(r, s->n + 1, sizeof(*start));
    int32_t *entry = run_alloc(r, placed, sizeof(*entry));
    float   *weight = run_alloc(r, placed, sizeof(*weight));

    for (int64_t i = 0; i < s->n && !run_failed(r); i++) {
        start[i] = at;
        for (int64_t x = i * s->choices; x < (i + 1) * s->choices; x++)
            if (s->row[x] >= 0) {
                entry[at] = (int32_t)s->row[x];
                weight[at++] = (float)s->gate[x];
            }
    }
    if (!run_failed(r))
        start[s->n] = at;
    return (SumLists){ .x = tensor_with_rank(s->y, 3), .start = start, .entry = entry,
                       .weight = weight, .heads = 1, .n = s->n };
}

/* y_i = sum of gate * what the expert made of it. */
static void experts_combine(Run *r, const Experts *s)
{
    SumLists in;

    run_stage(r, "combine");
    in = experts_places(r, s);
    r->out = op_sum_lists(r, &in);
    op_charge(r, FLOP_MIX, 2 * (double)experts_placed(s) * (double)s->dm);
    op_traffic(r, (double)tensor_bytes(&s->y), 0);
}

static void experts_compute(Run *r, Experts *s)
{
    run_stage(r, "expert");
    if (run_failed(r))
        return;
    s->y = run_tensor2(r, DT_F32, experts_placed(s), s->dm);
    for (int64_t e = 0; e < s->experts; e++)
        for (int64_t first = s->start[e]; first < s->start[e + 1] && !run_failed(r);
             first += FFN_TILE) {
            ArenaMark mark = arena_mark(r->arena);

            expert_tile(r, s, e, first, min_i64(FFN_TILE, s->start[e + 1] - first));
            arena_release(r->arena, mark);
        }
    experts_combine(r, s);
}

/* Which experts a token asks for; see experts.h.
 *
 *     p = softmax((x * jitter) W_r + b_r),  e_1 = argmax p,  e_2 = argmax of the others
 *     share = p_2 / (p_1 + p_2 + 1e-9);  e_2 is asked for always, never, when
 *     share > threshold, or when u < share / threshold with u uniform
 *     aux = mean over groups of E sum_e (share of first choices)_e (mean p)_e
 *
 * Probabilities are in double from the float32 inputs, because they decide; they
 * are held for a tile of tokens at a time.
 */

#define ROUTE_TILE (1 << 21) /* probabilities held at a time */
#define GATE_EPS 1e-9

typedef struct Routing {
    Experts *s;
    Tensor   w;        /* f32 [1,dm,experts] */
    Tensor   jitter;   /* f32 [n,dm] or absent */
    Tensor   uniform;  /* f32 [n] or absent */
    Tensor   probs;    /* f32 [n,experts]; only for the view */
    double  *firsts, *mass; /* [experts] of the group under way */
    double   aux, squares;  /* summed over groups, over tokens */
} Routing;

static Tensor second_chances(Run *r, const Experts *s)
{
    Rng    rng = run_rng(r, "second_uniform");
    Tensor u = layer_given(r, "second_uniform", s->p->second_uniform, 1, (int64_t[]){ s->n });

    if (s->choices < 2 || s->p->second_policy != SECOND_RANDOM || u.data)
        return u;
    u = run_tensor1(r, DT_F32, s->n);
    if (run_failed(r))
        return u;
    rng_fill_uniform(&rng, tensor_f32(&u), s->n, 0, 1);
    view_drawn(r, "second_uniform", u);
    return u;
}

/* Logits of `count` tokens from `first` on, without the bias; f64 [1,count,experts]. */
static Tensor router_logits(Run *r, const Routing *t, int64_t first, int64_t count)
{
    int64_t dm = t->s->dm;
    float  *x = tensor_f32(&r->x) + first * dm;
    Tensor  rows = tensor_of(DT_F32, 3, (int64_t[]){ 1, count, dm }, x), wide;

    if (!t->jitter.data)
        return op_dots64(r, rows, t->w);
    wide = run_tensor3(r, DT_F64, 1, count, dm);
    op_entries_of(r, rows, tensor_of(DT_F32, 3, rows.shape, tensor_f32(&t->jitter) + first * dm),
                  ENTRY_PRODUCT, 1, wide);
    return dense_linear(r, wide, t->w, (Tensor){ .rank = 0 }, t->s->experts);
}

static bool keeps_second(const Routing *t, int64_t i, double share)
{
    const ExpertParams *p = t->s->p;

    switch ((SecondPolicy)p->second_policy) {
    case SECOND_ALL: return true;
    case SECOND_NONE: return false;
    case SECOND_THRESHOLD: return share > p->second_threshold;
    case SECOND_RANDOM:
        return (double)tensor_f32(&t->uniform)[i] < share / fmax(p->second_threshold, 1e-9);
    }
    return false;
}

/* p: the largest probabilities of token i, of the experts `which`; as many as there are. */
static void experts_choose(const Routing *t, int64_t i, const double *p, const int32_t *which,
                           int64_t count)
{
    Experts *s = t->s;
    int32_t *expert = tensor_i32(&s->expert) + i * s->choices;
    double  *gate = s->gate + i * s->choices, second = count > 1 ? p[1] : 0, sum;

    expert[0] = which[0];
    gate[0] = s->first[i] = p[0];
    if (s->choices < 2)
        return;
    sum = p[0] + second + GATE_EPS;
    expert[1] = count > 1 && keeps_second(t, i, second / sum) ? which[1] : -1;
    gate[1] = second;
    for (int c = 0; c < 2 && s->p->normalize_gates; c++)
        gate[c] /= sum;
}

/* aux of a group: experts * sum of (share of first choices) * (mean probability). */
static void close_group(Routing *t, int64_t tokens)
{
    Experts *s = t->s;
    double   sum = 0, size = (double)tokens;

    for (int64_t e = 0; e < s->experts; e++)
        sum += t->firsts[e] / size * (t->mass[e] / size);
    t->aux += (double)s->experts * sum;
    memset(t->firsts, 0, (size_t)s->experts * sizeof(*t->firsts));
    memset(t->mass, 0, (size_t)s->experts * sizeof(*t->mass));
}

/* Probabilities f64 [1,count,experts] of tokens from `first` on, in place of their logits, the
 * log-sum-exp of which is lse [1,count]. */
static void experts_soften(Run *r, const Experts *s, Tensor rows, Tensor lse)
{
    if (s->router_b.data)
        op_entries_of(r, rows, s->router_b, ENTRY_SUM, 1, rows);
    op_softmax_rows(r, &(SoftmaxRows){ .x = rows, .lse = lse });
}

/* mass += the sums of the probabilities of tokens [at, end) of the tile. */
static void add_mass(Run *r, Routing *t, Tensor rows, int64_t at, int64_t end)
{
    Tensor   sums = run_tensor3(r, DT_F64, 1, 1, t->s->experts);
    int32_t *ends = run_alloc(r, 2, sizeof(*ends));

    if (run_failed(r))
        return;
    ends[0] = (int32_t)at;
    ends[1] = (int32_t)end;
    op_pool_windows(r, &(PoolWindows){ .x = rows, .first = ends, .end = ends + 1,
                                       .kind = WINDOW_SUM }, sums);
    op_wait(r, "the host adds up what experts were chosen for");
    for (int64_t e = 0; e < t->s->experts && !run_failed(r); e++)
        t->mass[e] += ((double *)sums.data)[e];
}

/* The tokens of a tile that belong to one group. */
static void route_group(Run *r, Routing *t, Tensor rows, const BestResult *best, int64_t first,
                        int64_t at, int64_t end)
{
    Experts *s = t->s;
    int64_t  count = best->index.shape[2];

    add_mass(r, t, rows, at, end);
    for (int64_t i = at; i < end && !run_failed(r); i++) {
        experts_choose(t, first + i, (double *)best->value.data + i * count,
                       tensor_i32(&best->index) + i * count, count);
        t->firsts[tensor_i32(&s->expert)[(first + i) * s->choices]]++;
    }
    if (!run_failed(r) && ((first + end) % s->group == 0 || first + end == s->n))
        close_group(t, (first + end - 1) % s->group + 1);
}

static void route_tile(Run *r, Routing *t, int64_t first, int64_t count)
{
    Experts   *s = t->s;
    Tensor     rows = router_logits(r, t, first, count), lse = run_tensor2(r, DT_F64, 1, count);
    BestResult best;

    experts_soften(r, s, rows, lse);
    best = op_best_columns(r, &(BestColumns){ .x = rows, .k = min_i64(2, s->experts) });
    if (t->probs.data)
        op_entries(r, rows, ENTRY_CAST, 0,
                   tensor_of(DT_F32, 3, rows.shape,
                             tensor_f32(&t->probs) + first * s->experts));
    op_wait(r, "the host routes tokens to experts");
    for (int64_t i = 0; i < count && !run_failed(r); i++)
        t->squares += ((double *)lse.data)[i] * ((double *)lse.data)[i];
    for (int64_t at = 0, end; at < count && !run_failed(r); at = end) {
        end = min_i64(count, at + s->group - (first + at) % s->group);
        route_group(r, t, rows, &best, first, at, end);
    }
}

static void route_tokens(Run *r, Routing *t)
{
    Experts *s = t->s;
    int64_t  tile = ROUTE_TILE / s->experts + 1;

    for (int64_t first = 0; first < s->n && !run_failed(r); first += tile) {
        ArenaMark mark = arena_mark(r->arena);

        route_tile(r, t, first, min_i64(tile, s->n - first));
        arena_release(r->arena, mark);
    }
    op_charge(r, FLOP_OVERHEAD, FLOPS_SOFTMAX * (double)s->n * (double)s->experts);
}

static void show_losses(Run *r, const Routing *t)
{
    const ExpertParams *p = t->s->p;
    double              aux = t->aux / (double)t->s->groups, z = t->squares / (double)t->s->n;
    double              total = p->aux_coef * aux + p->z_coef * z;
    Tensor              losses;

    run_figure(r, "aux_loss", aux);
    run_figure(r, "z_loss", z);
    run_figure(r, "loss", total);
    if (!run_wants_views(r))
        return;
    losses = run_tensor1(r, DT_F32, 3);
    if (run_failed(r))
        return;
    tensor_f32(&losses)[0] = (float)aux;
    tensor_f32(&losses)[1] = (float)z;
    tensor_f32(&losses)[2] = (float)total;
    view_tensor(r, "losses", VIEW_TENSOR, losses, "", "aux, z, total");
}

static void experts_route(Run *r, Experts *s)
{
    int64_t entries = s->n * s->choices;
    Routing t = { .s = s };

    run_stage(r, "route");
    t.w = tensor_of(DT_F32, 3, (int64_t[]){ 1, s->dm, s->experts }, s->router_w.data);
    t.jitter = layer_given(r, "jitter_noise", s->p->jitter_noise, 2, (int64_t[]){ s->n, s->dm });
    t.uniform = second_chances(r, s);
    s->expert = run_tensor2(r, DT_I32, s->n, s->choices);
    s->gate = run_alloc(r, entries, sizeof(*s->gate));
    s->first = run_alloc(r, s->n, sizeof(*s->first));
    t.firsts = run_alloc(r, s->experts, sizeof(*t.firsts));
    t.mass = run_alloc(r, s->experts, sizeof(*t.mass));
    if (run_wants_views(r))
        t.probs = run_tensor2(r, DT_F32, s->n, s->experts);
    if (run_failed(r))
        return;
    memset(t.firsts, 0, (size_t)s->experts * sizeof(*t.firsts));
    memset(t.mass, 0, (size_t)s->experts * sizeof(*t.mass));
    route_tokens(r, &t);
    view_tensor(r, "router_probs", VIEW_FEATURES, t.probs, "token", "expert");
    view_tensor(r, "assignment", VIEW_BUCKETS, s->expert, "token", "choice");
    show_losses(r, &t);
}
