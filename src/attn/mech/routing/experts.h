/* attn/mech/routing/experts.h -- mixtures of experts: which token goes to which expert.
 *
 * The switch, gshard, glam and st-moe layers differ in their defaults and in
 * how many experts a token has; the algorithm is one:
 *
 *     p = softmax(x W_r + b_r)                        router, in double
 *     e_1 = argmax p, e_2 = argmax of the others      choices
 *     an expert has room for cap tokens of a group; what comes later is dropped
 *     y_i = sum of gate * FFN_e(x_i) over the choices that found a place
 *
 * Stages: route, capacity, drop, dispatch, expert, combine.
 */
#ifndef ATTN_MECH_ROUTING_EXPERTS_H
#define ATTN_MECH_ROUTING_EXPERTS_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/ops.h"
#include "attn/run/mechanism.h"
#include "attn/run/param.h"
#include "core/tensor.h"

typedef enum SecondPolicy { SECOND_ALL, SECOND_NONE, SECOND_THRESHOLD, SECOND_RANDOM }
    SecondPolicy;
typedef enum ExpertActivation { EXPERT_RELU, EXPERT_GELU } ExpertActivation;

extern const char *const expert_policies[], *const expert_activations[];

typedef struct ExpertParams {
    int64_t n_experts, d_ff, capacity, min_capacity, group_size;
    double  capacity_factor, second_threshold, aux_coef, z_coef;
    int     second_policy, activation;
    bool    normalize_gates, batch_prioritized, gated;
    Tensor  router_w, router_b, w1, b1, w_gate, w2, b2, jitter_noise, second_uniform;
} ExpertParams;

/* Rows of a mechanism's table of parameters. */
#define EXPERT_PARAMS_SIZES(factor)                                                            \
    PARAM_INT(ExpertParams, n_experts, 8, 1, 1e6, "experts; files decide when given"),     \
    PARAM_INT(ExpertParams, d_ff, PARAM_AUTO, 1, INT32_MAX,                              \
              "hidden units of an expert; auto: 4 dm"),                                        \
    PARAM_POSITIVE(ExpertParams, capacity_factor, (factor),                                    \
                   "room of an expert, in even shares of its group"),                          \
    PARAM_INT(ExpertParams, capacity, 0, 0, INT32_MAX,                                         \
              "slots of an expert for each group; 0: by capacity_factor"),                     \
    PARAM_INT(ExpertParams, min_capacity, 1, 0, INT32_MAX,                                     \
              "slots it has at least, when the factor decides"),                               \
    PARAM_INT(ExpertParams, group_size, 0, 0, PARAM_COUNT_MAX,                                 \
              "tokens routed together, the last group may be short; 0: all")
#define EXPERT_PARAMS_SECOND(policy, threshold)                                                \
    PARAM_ENUM(ExpertParams, second_policy, (policy), expert_policies,                         \
               "when a token keeps its second expert"),                                        \
    PARAM_FLOAT(ExpertParams, second_threshold, (threshold), -1e30, 1e30,                      \
                "share of the second gate that counts (threshold), or that is always kept "    \
                "(random)"),                                                                   \
    PARAM_BOOL(ExpertParams, normalize_gates, true, "divide the two gates by their sum")
#define EXPERT_PARAMS_REST(act, with_gate, z)                                                  \
    PARAM_BOOL(ExpertParams, batch_prioritized, false,                                         \
               "serve tokens by their first gate, not by position"),                           \
    PARAM_ENUM(ExpertParams, activation, (act), expert_activations, "of the hidden units"),    \
    PARAM_BOOL(ExpertParams, gated, (with_gate), "multiply the hidden units by x w_gate"),     \
    PARAM_FLOAT(ExpertParams, aux_coef, 0.01, -1e30, 1e30, "weight of the load balancing loss"), \
    PARAM_FLOAT(ExpertParams, z_coef, (z), -1e30, 1e30, "weight of the router z-loss"),        \
    PARAM_TENSOR(ExpertParams, router_w, "[dm,E]", "N(0, 0.1/dm)", "the router"),              \
    PARAM_TENSOR(ExpertParams, router_b, "[E]", "0", "its bias"),                              \
    PARAM_TENSOR(ExpertParams, w1, "[E,dm,ff]", "N(0, 1/dm)", "first layer of the experts"),   \
    PARAM_TENSOR(ExpertParams, b1, "[E,ff]", "0", "its bias"),                                 \
    PARAM_TENSOR(ExpertParams, w_gate, "[E,dm,ff]", "N(0, 1/dm)", "gate of the hidden units"), \
    PARAM_TENSOR(ExpertParams, w2, "[E,ff,dm]", "N(0, 1/ff)", "second layer"),                 \
    PARAM_TENSOR(ExpertParams, b2, "[E,dm]", "0", "its bias"),                                 \
    PARAM_TENSOR(ExpertParams, jitter_noise, "[n,dm]", "ones", "multiplies x for the router only")
#define EXPERT_PARAMS_UNIFORM                                                                  \
    PARAM_TENSOR(ExpertParams, second_uniform, "[n]", "U(0,1)",                                \
                 "chances of the second experts (second_policy=random)")

#define EXPERT_VIEWS                                                                           \
    { .name = "routing", .kind = VIEW_ROUTING,                                                 \
      .help = "gates of the experts a token got; crossed where it was dropped" },              \
    { .name = "router_probs", .kind = VIEW_FEATURES, .help = "softmax of the router" },        \
    { .name = "assignment", .kind = VIEW_BUCKETS, .quantity = "expert",                         \
      .help = "experts a token asked for; -1: none" },                                         \
    { .name = "position", .kind = VIEW_ORDER, .help = "its slot there; -1: none" },            \
    { .name = "dropped", .kind = VIEW_COUNT, .help = "1: the token found no place at all" },   \
    { .name = "dropped_choices", .kind = VIEW_COUNT,                                           \
      .help = "1: that choice found no place" },                                               \
    { .name = "capacity", .kind = VIEW_COUNT,                                                  \
      .help = "slots used and there, by group and expert" },                                   \
    { .name = "losses", .kind = VIEW_TENSOR,                                                   \
      .help = "load balancing, z, and their weighted sum",                                     \
      .curve = { .x = "", .y = "loss", .points = "aux|z|total", .mark = CURVE_BARS } },        \
    { .name = "router_w", .kind = VIEW_TENSOR, .maybe = true,                                  \
      .help = "the router, when drawn" },                                                      \
    { .name = "w1", .kind = VIEW_TENSOR, .maybe = true, .help = "first layers, when drawn" },  \
    { .name = "w_gate", .kind = VIEW_TENSOR, .maybe = true, .help = "gates, when drawn" },     \
    { .name = "w2", .kind = VIEW_TENSOR, .maybe = true, .help = "second layers, when drawn" }

/* The layer with `choices` (1 or 2) experts for a token. */
void experts_run(Run *r, const ExpertParams *p, int choices);
/* An upper bound: which tokens find a place depends on the data. */
Flops experts_flops(Run *r, const ExpertParams *p, int choices);

/* Notes of the stages, for every mixture. */
extern const StageNote experts_notes[];

/* ---- between experts.c and experts_route.c ---- */

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
    Tensor   lost;     /* u8 [n,choices] the chosen expert was full */
    Tensor   capacity; /* i32 [groups,experts,2] slots used, slots in all */
    int64_t *start;    /* [experts+1] placed entries of each expert in `entry` */
    int64_t *entry;    /* [placed] */
    int64_t *row;      /* [n*choices] place of an entry in `entry`; -1: none */
    Tensor   y;        /* f32 [placed,dm] outputs of the experts */
} Experts;

/* Stage route: first, gate and expert. */
void experts_route(Run *r, Experts *s);

#endif
