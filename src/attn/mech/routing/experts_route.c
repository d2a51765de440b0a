/* experts_route.c -- which experts a token asks for; see experts.h.
 *
 *     p = softmax((x * jitter) W_r + b_r),  e_1 = argmax p,  e_2 = argmax of the others
 *     share = p_2 / (p_1 + p_2 + 1e-9); e_2 is chosen always, never, when
 *     share > threshold, or when u < share / threshold with u uniform
 *     aux = mean over groups of E sum_e (share of first choices)_e (mean p)_e
 *
 * Probabilities are in double from the float32 inputs, because they decide; they
 * are held for a tile of tokens at a time.
 */
#include <math.h>
#include <string.h>

#include "attn/mech/routing/experts.h"
#include "attn/ops/dense.h"
#include "attn/run.h"
#include "core/rng.h"

#define ROUTE_TILE (1 << 21) /* probabilities held at a time */
#define GATE_EPS 1e-9

typedef struct Routing {
    Experts *s;
    Tensor   w;        /* f32 [1,dm,experts] */
    Tensor   jitter;   /* f32 [n,dm] or absent */
    Tensor   uniform;  /* f32 [n] or absent */
    Tensor   probs;    /* f32 [n,experts]; only for the view */
    double  *firsts, *mass; /* [experts] of the current group */
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

/* Sets the choices and gates of token i from its `count` largest probabilities p, largest first,
 * and their experts `which`. */
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

/* Turns logits f64 [1,count,experts] into probabilities in place; lse [1,count] is their
 * log-sum-exp. */
static void experts_soften(Run *r, const Experts *s, Tensor rows, Tensor lse)
{
    if (s->router_b.data)
        op_entries_of(r, rows, s->router_b, ENTRY_SUM, 1, rows);
    op_softmax_rows(r, &(SoftmaxRows){ .x = rows, .lse = lse });
}

/* mass += the sums of the probabilities of tokens [at, end) of the tile. */
static void add_mass(Run *r, Routing *t, Tensor rows, int64_t at, int64_t end)
{
    Tensor sums = run_tensor3(r, DT_F64, 1, 1, t->s->experts);

    op_pool_rows(r, rows, at, end, WINDOW_SUM, sums);
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

void experts_route(Run *r, Experts *s)
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
