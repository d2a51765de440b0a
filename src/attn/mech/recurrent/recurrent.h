/* attn/mech/recurrent/recurrent.h -- what the recurrent mechanisms share: parameters, gates,
 * output norm, views and figures.
 *
 * A mechanism of this family makes gates and keys, calls op_state_attend with them, and gives the
 * same StateAttend to recurrent_finish, which norms the output and shows the state:
 *
 *     RecurrentInput in = recurrent_input(r, scale, fallback);
 *     StateAttend s = { .form = recurrent_form(r, &p->common, rule, gates), ... };
 *     recurrent_finish(r, &p->common, op_state_attend(r, &s), &show);
 */
#ifndef ATTN_MECH_RECURRENT_RECURRENT_H
#define ATTN_MECH_RECURRENT_RECURRENT_H

#include "attn/ops/ops.h"
#include "attn/ops/state.h"
#include "attn/run/mechanism.h"

/* ---- parameters ------------------------------------------------------------------- */

enum { RECURRENT_AUTO, RECURRENT_RECURRENT, RECURRENT_CHUNKED };
enum { RECURRENT_NORM_NONE, RECURRENT_NORM_RMS, RECURRENT_NORM_GROUP };
extern const char *const recurrent_forms[], *const recurrent_norms[];

typedef struct RecurrentParams {
    double  scale;
    int     form, norm;
    int64_t chunk;
    double  norm_eps, span_mass;
} RecurrentParams;

#define RECURRENT_NO_AT_END "its state takes in and is read token by token, with a query for each"

#define RECURRENT_PARAM(S, member, name_, type_, ...)                                          \
    { .name = #name_, .type = type_, .offset = offsetof(S, member.name_), __VA_ARGS__ }
/* The rows of a table of S, whose member `member` is a RecurrentParams. */
#define RECURRENT_PARAMS(S, member, scale_help)                                                \
    RECURRENT_PARAM(S, member, scale, PARAM_TYPE_FLOAT, .lo = -1e30, .hi = 1e30,               \
                    .help = scale_help),                                                       \
    RECURRENT_PARAM(S, member, form, PARAM_TYPE_ENUM, .choices = recurrent_forms,              \
                    .help = "how it is computed; the result is the same to rounding; auto: "   \
                            "chunked when n > chunk"),                                         \
    RECURRENT_PARAM(S, member, chunk, PARAM_TYPE_INT, .fallback = 64, .lo = 1,                 \
                    .hi = INT32_MAX, .help = "tokens of a chunk"),                             \
    RECURRENT_PARAM(S, member, norm, PARAM_TYPE_ENUM, .choices = recurrent_norms,              \
                    .help = "of the output, for each token and head over its channels"),       \
    RECURRENT_PARAM(S, member, norm_eps, PARAM_TYPE_FLOAT, .fallback = 1e-5, .lo = 0,          \
                    .hi = 1e30, .help = "added to the mean square, or the variance"),          \
    RECURRENT_PARAM(S, member, span_mass, PARAM_TYPE_FLOAT, .fallback = 0.9, .lo = 0, .hi = 1, \
                    .above_lo = true, .below_hi = true,                                        \
                    .help = "share of a row that its span holds, below 1")

/* Warns that the mechanism is causal by construction.  A Mechanism.check. */
void recurrent_check(Run *r, const void *params);

/* ---- inputs and gates ------------------------------------------------------------- */

/* q, k, v after the position; u: what gates are computed from: x, or the head's own q. */
typedef struct RecurrentInput {
    Tensor q, k, v;
    Tensor u;      /* f32 [h',n,du] */
    double scale;  /* the parameter, or when 0 `fallback` (0: the input's own, 1/sqrt(d)) */
} RecurrentInput;
RecurrentInput recurrent_input(Run *r, double scale, double fallback);
/* Width du of u, known before a run. */
int64_t recurrent_u_width(const Run *r);

/* What entries of a given tensor may be: 0 to 1, 0 to 2, at least 0. */
typedef enum GateRange { GATE_SHARE, GATE_TWO, GATE_STEP } GateRange;

/* The given tensor as f64 [h',n,max(1, channels)]; data NULL: not given.  channels 0: it has one
 * number a token.  An entry outside the range is an error. */
Tensor recurrent_given(Run *r, const char *name, Tensor given, int64_t channels, GateRange range);
/* f64 [h,n,max(1, channels)] of u W: weight [h',du] or [h',du,channels], drawn
 * N(0, 1/(4 du)).  Charges 2 du + 4 an entry: what follows (bias, sigmoid, ...) is in the
 * 4. */
Tensor recurrent_logits(Run *r, const RecurrentInput *in, const char *name, Tensor weight,
                        int64_t channels);
/* x <- x + bias, unless it is absent, and then the steps; in one pass. */
void recurrent_steps(Run *r, Tensor x, Tensor bias, const EntryStep *steps, int count);
double recurrent_logit_flops(const Run *r, int64_t channels);
/* A bias f64 [h',1,max(1, channels)]; data NULL: not given. */
Tensor recurrent_bias(Run *r, const char *name, Tensor given, int64_t channels);
/* Biases and rates of steps as Mamba draws them: softplus(b) = exp(uniform(ln 0.001, ln 0.1)), at
 * least 1e-4; ln uniform(1, 16).  f64 [h',1,max(1, channels)] and [h',1,1]. */
Tensor recurrent_step_bias(Run *r, const char *name, Tensor given, int64_t channels);
Tensor recurrent_a_log(Run *r, const char *name, Tensor given);
/* y = exp(-exp(a) z) in f64, with a [h',1,1]: z is x plus a bias that may be absent, or its
 * softplus. */
void recurrent_decay(Run *r, Tensor x, Tensor bias, bool softplus, Tensor a_log, Tensor y);
/* A tensor f64 [h',n,w] as a view f32 [h,n] or [h,n,w]. */
void recurrent_show_gates(Run *r, const char *name, Tensor gates, int64_t channels);
/* Likewise, of numbers that are no shares. */
void recurrent_show_numbers(Run *r, const char *name, Tensor numbers, int64_t channels);
/* f32 [h,n,w] of f32 x [h',n,w] times f64 factors [h',n,1]. */
Tensor recurrent_times(Run *r, Tensor x, Tensor factors);

/* ---- state, output ---------------------------------------------------------------- */

StateForm recurrent_form(const Run *r, const RecurrentParams *p, StateRule rule,
                         StateGates gates);

/* Whether an output norm follows, which magnifies rounding: StateAttend.wide. */
bool recurrent_wide(const RecurrentParams *p);

/* Norms `out`, sets r->out, shows the state and the figures.  s: the matrix of the output before
 * the norm; name and span_mass are filled in. */
void recurrent_finish(Run *r, const RecurrentParams *p, Tensor out, StateShow *s);
/* token: FLOPs of one token, all heads, beside the state's and the norm's own. */
DecodeCost recurrent_decode(const Run *r, const RecurrentParams *p, const StateForm *form,
                            double token);
/* What op_state_attend and the norm charge. */
Flops recurrent_flops(const Run *r, const RecurrentParams *p, const StateForm *form);

/* Promises of what recurrent_finish shows. */
#define RECURRENT_VIEWS                                                                        \
    VIEW("weights", VIEW_SIGNED, "the hidden matrix A, output = A V (not with norm=group)",    \
         .maybe = true),                                                                       \
    VIEW("hidden", VIEW_SIGNED, "A before the norm (norm=group)", .maybe = true),              \
    VIEW("connectivity", VIEW_PATTERN, "lower triangle with diagonal"),                        \
    VIEW("state_norm", VIEW_COUNT, "Frobenius norm of the state after each token",             \
         .curve = { .x = "token", .y = "norm of the state", .by_rows = true }),                \
    VIEW("memory", VIEW_VECTORS, "the state after the last token"),                            \
    VIEW("span", VIEW_COUNT, "how far back a row reaches: tokens that hold span_mass of it",   \
         .maybe = true,                                                                        \
         .curve = { .x = "query", .y = "span (tokens)", .mark = CURVE_STEPS, .by_rows = true }), \
    VIEW("recall", VIEW_SIGNED, "cosine of what the last state returns for each key, and its " \
         "value", .curve = { .x = "token", .y = "recall", .by_rows = true })

/* The stages in order, and what they are. */
#define RECURRENT_STAGE_GATES "gates"
#define RECURRENT_STAGE_STATE "state"
#define RECURRENT_STAGE_NORM "norm"
#define RECURRENT_NOTE_NORM                                                                    \
    { RECURRENT_STAGE_NORM,                                                                    \
      "The output of every token and head is divided by its size, as the published layer does." }

#endif
