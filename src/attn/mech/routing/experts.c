/* experts.c -- mixtures of experts: capacity, drop, dispatch, compute; see experts.h.
 *
 * In a group, slots go to all first choices in order, then to the second choices.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/mech/routing/experts.h"
#include "attn/ops/dense.h"
#include "attn/run.h"

static inline int64_t experts_placed(const Experts *s)
{
    return s->start[s->experts];
}

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
    if (choices && s->p->batch_prioritized)
        run_looks_ahead(r, "the most certain tokens take an expert's places first");
    else if (choices && s->choices > 1)
        run_looks_ahead(r, "first choices take an expert's places before second ones");
    run_figure_int(r, "dropped_tokens", tokens);
    run_figure_int(r, "dropped_choices", choices);
    view_order(r, "position", s->slot, "token", "choice");
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

/* Cells (token, chosen expert); only_lost: only those where the token was dropped. */
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

/* FLOPs of one token in one expert. */
static double token_flops(const Experts *s)
{
    return (s->p->gated ? 6 : 4) * (double)s->dm * (double)s->ff;
}

/* Figures: FLOPs as run, with all slots full, and with every expert on every token. */
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
    Experts *s = run_alloc(r, 1, sizeof(*s)); /* views read it later */

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
      "Tokens are taken in order; those that find their expert full are dropped.  The layer gives "
      "0 for them: only a model's residual connection carries them on." },
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

    op_gemm(r, x, false, tensor_plane(s->w1, expert), false, 1, 0, hidden, FLOP_OVERHEAD);
    if (s->p->gated) {
        gate = run_tensor3(r, DT_F32, 1, count, s->ff);
        op_gemm(r, x, false, tensor_plane(s->w_gate, expert), false, 1, 0, gate, FLOP_OVERHEAD);
    }
    if (run_failed(r))
        return;
    activate(r, s, hidden, gate, experts_row_of(&s->b1, expert));
    y = tensor_of(DT_F32, 3, (int64_t[]){ 1, count, s->dm },
                  tensor_f32(&s->y) + first * s->dm);
    op_gemm(r, hidden, false, tensor_plane(s->w2, expert), false, 1, 0, y, FLOP_OVERHEAD);
    bias = experts_row_of(&s->b2, expert);
    if (bias.data)
        op_entries_of(r, y, bias, ENTRY_SUM, 1, y);
}

/* For each token the rows of s->y that its experts computed, with their gates. */
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

/* y_i = sum of gate * FFN_e(x_i) over the choices that found a place. */
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
