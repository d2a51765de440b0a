/* experts_route.c -- which experts a token asks for; see experts.h.
 *
 *     p = softmax((x * jitter) W_r + b_r),  e_1 = argmax p,  e_2 = argmax of the others
 *     share = p_2 / (p_1 + p_2 + 1e-9);  e_2 is asked for always, never, when
 *     share > threshold, or when u < share / threshold with u uniform
 *     aux = mean over groups of E sum_e (share of first choices)_e (mean p)_e
 *
 * Probabilities are in double from the float32 inputs, because they decide; they
 * are held for a tile of tokens at a time.
 */
#include <math.h>
#include <string.h>

#include "attn/experts_parts.h"

#define TILE (1 << 21) /* probabilities held at a time */
#define GATE_EPS 1e-9

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

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
    for (int64_t c = 0; c < count * dm && !run_failed(r); c++)
        ((double *)wide.data)[c] = (double)x[c] * (double)tensor_f32(&t->jitter)[first * dm + c];
    return exact_linear(r, wide, t->w, (Tensor){ .rank = 0 }, t->s->experts);
}

/* Logits to probabilities; returns the log of the sum of exp. */
static double soften(double *row, int64_t count, const Tensor *bias)
{
    double most = -HUGE_VAL, sum = 0;

    for (int64_t e = 0; e < count; e++) {
        row[e] += bias->data ? (double)tensor_f32(bias)[e] : 0;
        most = fmax(most, row[e]);
    }
    for (int64_t e = 0; e < count; e++) {
        row[e] = exp(row[e] - most);
        sum += row[e];
    }
    for (int64_t e = 0; e < count; e++)
        row[e] /= sum;
    return most + log(sum);
}

/* The largest but `without`; ties: the lowest.  -1: there is none. */
static int64_t largest(const double *row, int64_t count, int64_t without)
{
    int64_t best = -1;

    for (int64_t e = 0; e < count; e++)
        if (e != without && (best < 0 || row[e] > row[best]))
            best = e;
    return best;
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

static void choose(const Routing *t, int64_t i, const double *p)
{
    Experts *s = t->s;
    int32_t *expert = tensor_i32(&s->expert) + i * s->choices;
    double  *gate = s->gate + i * s->choices, sum;
    int64_t  one = largest(p, s->experts, -1), two = largest(p, s->experts, one);

    expert[0] = (int32_t)one;
    gate[0] = s->first[i] = p[one];
    if (s->choices < 2)
        return;
    sum = p[one] + (two < 0 ? 0 : p[two]) + GATE_EPS;
    expert[1] = two >= 0 && keeps_second(t, i, p[two] / sum) ? (int32_t)two : -1;
    gate[1] = two < 0 ? 0 : p[two];
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

static void route_token(Routing *t, int64_t i, double *row)
{
    Experts *s = t->s;
    double   lse = soften(row, s->experts, &s->router_b);

    choose(t, i, row);
    t->squares += lse * lse;
    t->firsts[tensor_i32(&s->expert)[i * s->choices]]++;
    for (int64_t e = 0; e < s->experts; e++) {
        t->mass[e] += row[e];
        if (t->probs.data)
            tensor_f32(&t->probs)[i * s->experts + e] = (float)row[e];
    }
    if ((i + 1) % s->group == 0 || i + 1 == s->n)
        close_group(t, i % s->group + 1);
}

static void route_tokens(Run *r, Routing *t)
{
    Experts *s = t->s;
    int64_t  tile = TILE / s->experts + 1;

    for (int64_t first = 0; first < s->n && !run_failed(r); first += tile) {
        int64_t   count = min64(tile, s->n - first);
        ArenaMark mark = arena_mark(r->arena);
        Tensor    rows = router_logits(r, t, first, count);

        for (int64_t i = 0; i < count && !run_failed(r); i++)
            route_token(t, first + i, (double *)rows.data + i * s->experts);
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
