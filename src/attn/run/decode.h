/* attn/run/decode.h -- what a causal run costs token by token.
 *
 * The step is the last row of the run: one query against all keys so far.  A mechanism gives closed
 * forms (Mechanism.decode); where data decide which keys the step reads, it tells the run which
 * cells the last row has (run_last_row), and the forms use their numbers.
 */
#ifndef ATTN_RUN_DECODE_H
#define ATTN_RUN_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/weights.h"
#include "attn/pattern/pattern.h"

typedef struct Run Run;

/* All in numbers that a run can have; NaN: not known. */
typedef struct DecodeCost {
    double state_bytes;        /* what must be held after the tokens of the run */
    double kv_bytes_per_token; /* its growth per further token; 0: bounded */
    double step_bytes;         /* bytes of it that the step reads; heads of a group read once */
    double decode_flops;       /* of the step, what is kept incrementally counted once */
    const char *why;           /* a number is not known; static; NULL: none is given */
} DecodeCost;

/* The cells of the last row. */
typedef struct LastRow {
    bool   known;
    double cells;        /* of all query heads */
    double keys, values; /* distinct ones in each head of k, of v: heads of a group share them */
    double span;         /* keys up to its own, from the farthest that a row reads; 0: no bound */
    const Pattern *rule; /* of the run's arena: says what is kept; NULL: span does */
} LastRow;

/* Records the last row of these cells: of [n,m], or one for each query head.
 * run_pattern_attention does it. */
void run_last_row(Run *r, const Pattern *cells);
/* The same of so many keys that every query head reads, where no row reaches farther than span
 * (0: no bound). */
void run_last_keys(Run *r, int64_t keys, int64_t span);
/* The same of keys that are listed (CellRowFn of attn/ops/weights.h); the query heads share their
 * keys in `groups` heads, and values as v does. */
void run_last_listed(Run *r, CellRowFn list, const void *context, int64_t groups);

/* Numbers that one token adds to the keys and values: g (d + e). */
double decode_token(const Run *r);
/* Overhead of one cell: a softmax, and the cap of its score where there is one. */
double decode_cell(const Run *r);
/* Bytes of the keys and values of the last row. */
double decode_read(const Run *r);
/* FLOPs of the last row: its scores, its softmax and the sum of its values. */
double decode_row(const Run *r);
/* Under these parameters no token has a cost of its own: `why`, "it makes whole image rows at
 * once"; static. */
DecodeCost decode_unknown(const char *why);
/* Of exact attention: all keys and values are held and read. */
DecodeCost decode_dense(const Run *r);
/* Of cells that a rule gives: the step reads the last row's, and what no later row can reach is
 * not held.  A Mechanism.decode; params are not looked at. */
DecodeCost decode_cells(const Run *r, const void *params);
/* The same where a row reaches `span` keys back (0: all), and `apart` other tokens stay. */
DecodeCost decode_span(const Run *r, double span, double apart);

/* Of sums in float32 that every token is added to and that its query reads: f features by e values
 * and, to divide by, f; `made`: FLOPs of the token's features. */
DecodeCost decode_state(const Run *r, int64_t f, double made);

/* FLOPs that the closed form gains by the last token; NaN where that form is a bound. */
double decode_gain(const Run *r, const void *params);
/* Of a layer that keeps nothing of the tokens before: decode_gain.  A Mechanism.decode. */
DecodeCost decode_tokenless(const Run *r, const void *params);
/* Of a layer that keeps and reads so many numbers of every token: decode_gain. */
DecodeCost decode_kept(const Run *r, const void *params, double numbers);
/* Of layers around another mechanism: the step is that one's.  A Mechanism.decode. */
DecodeCost decode_around(const Run *r, const void *params);

/* Bytes that are held after n tokens, by the closed form; NaN: not known.  A span without a rule
 * that reaches past the run's first key was cut there, so nothing is known of more tokens than the
 * run has. */
double decode_held(const Run *r, int64_t n);

/* The figures state_bytes, kv_bytes_per_token, step_bytes and decode_flops of a causal run whose
 * mechanism has them. */
void decode_figures(Run *r);

#endif
