/* attn/ops/state.h -- attention by a state that forgets.
 *
 * A head holds S [d,e], 0 at the start.  Token i changes it by one of three rules and reads it:
 *
 *     add       S <- diag(g) S + k^T v
 *     delta     S <- diag(g) S, then S <- S + beta k^T (v - k S)
 *     replace   S <- diag(g) S - erase^T (removal S) + k^T v      (removal reads the old S)
 *     o = scale q S
 *
 * All are linear in v: o = A v with a lower triangular A [n,n] that only pictures read.  With
 * `levels` the past is cut into runs by the bits of i, each with a state of its own (log-linear).
 */
#ifndef ATTN_OPS_STATE_H
#define ATTN_OPS_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/ops.h"
#include "attn/pattern/pattern.h"
#include "attn/run/view.h"
#include "core/tensor.h"

typedef struct Run Run;

typedef enum StateRule { STATE_ADD, STATE_DELTA, STATE_REPLACE } StateRule;

/* None, one a token, one for each key channel of a token. */
typedef enum StateGates { STATE_NO_GATES, STATE_TOKEN_GATES, STATE_CHANNEL_GATES } StateGates;

/* What the cost depends on. */
typedef struct StateForm {
    StateRule  rule;
    StateGates gates;
    int64_t    levels; /* 0: one state */
    bool       chunked;
    int64_t    chunk;  /* with levels a power of two */
} StateForm;

typedef struct StateAttend {
    StateForm form;
    Tensor    q, k, v;  /* f32 [h,n,d], [h',n,d], [h',n,e]; k: the key that is written */
    Tensor    gates;    /* f64 [h',n,1 or d], in [0,1]; the stride of a token may be 0 */
    Tensor    beta;     /* f64 [h',n,1]: STATE_DELTA */
    Tensor    removal, erase; /* f32 [h',n,d]: STATE_REPLACE */
    Tensor    levels;   /* f64 [h',n,>= levels] weight of each level: STATE_ADD, one gate a token */
    double    scale;
    bool      wide;     /* all in double, out too: where a norm or a state that grows magnifies
                           rounding */
} StateAttend;

/* f32 [h,n,e], or wide f64.  Charges state_flops. */
Tensor op_state_attend(Run *r, const StateAttend *in);
/* For the run's h, n, d and e. */
Flops  state_flops(const Run *r, const StateForm *form);
/* Of one token of all heads in recurrent form; levels: all in use and no carry. */
double state_token_flops(const Run *r, const StateForm *form);

/* One token, in double: state [d,e] changes as the rule says (levels apart), out [e] = read S.
 * work: room for 2 (d + e) numbers; error: |v - k S| before the write, or NULL. */
void state_step(const StateAttend *in, int64_t heads, int64_t head, int64_t i, const double *read,
                double *state, double *work, double *out, double *error);

/* Number of binary digits of x; 0 of 0. */
static inline int state_bits(int64_t x)
{
    return x > 0 ? 64 - __builtin_clzll((unsigned long long)x) : 0;
}
/* Levels that n tokens read by: the own token and one for each binary digit. */
static inline int64_t state_levels(int64_t n)
{
    return 1 + state_bits(n - 1);
}

/* The hidden matrix: A, or A with more on its diagonal and its rows divided. */
typedef struct StateMatrix {
    StateAttend in;     /* STATE_REPLACE: k, removal and erase may be f64 */
    Tensor write;       /* f64 [h',n,1]: column j is multiplied, where in.v holds v_j write_j */
    Tensor before;      /* f64 [h',n,1], the stride of a token may be 0: added to the diagonal */
    Tensor divisor;     /* f64 [h,n,1] of the rows */
    Tensor after;       /* as before, added when the rows are divided */
    Tensor values;      /* f32 [h',n,e] what the state should return for keys; data NULL: in.v */
    /* Filled in by state_show. */
    int64_t heads;
    double *skip;       /* [h][blocks][1 or d] products over blocks of tokens; NULL: none */
} StateMatrix;

/* What pictures show of it. */
typedef struct StateShow {
    StateMatrix matrix;
    const char *name;   /* of the view of the matrix: "weights", "hidden" */
    double      span_mass;
    bool        surprise; /* the view `surprise`, |v - k S| before the write: STATE_DELTA */
} StateShow;

/* The views of the matrix, `connectivity`, `state_norm`, `memory`, `span`, `recall`, `surprise`
 * and the figures mean_span and mean_recall.  In double, token by token, whatever the form. */
void state_show(Run *r, const StateShow *s);

/* Cells start, start + step, ... of row i; any thread.  NaN where there is no memory. */
void state_read(const StateMatrix *m, int64_t head, int64_t i, PatternRun keys, float *out);

#endif
