/* attn/cpu/sieve.h -- the few keys that may have the largest scores of a row, by scores in float.
 *
 * A score q . k in float is wrong by at most margin = (d + 8) 2^-24 |q| |k|.  If `takes` scores in
 * float are at least T, as many in double are at least T - margin, and whatever is among the
 * largest in double is at least T - 2 margin in float.  So a row holds the keys whose scores in
 * float are that large; these few are computed again in double, which decides as it would among
 * all.  Rows of large or infinite numbers, and rows with too many such keys, hold none.
 *
 *     keys = sieve_keys_new(...), sieve_fill for a head; for a block of rows: sieve_row for each,
 *     sieve_rows, and sieve_numbers of each row that sieve_holds
 */
#ifndef ATTN_CPU_SIEVE_H
#define ATTN_CPU_SIEVE_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/cpu/simd/kernel.h"
#include "attn/run.h"

#define SIEVE_ROWS 48 /* whole tiles; they read a panel of keys from the first-level cache */

typedef struct SieveKeys {
    const Kernel *kernel;
    const float  *k;       /* row j at k + j ld */
    int64_t       ld, count, d;
    int64_t       takes;   /* keys that a row chooses */
    int64_t       most;    /* that it holds meanwhile */
    float        *panels;  /* [panels][d][TILE_KEYS] */
    double        longest; /* length of the longest key */
} SieveKeys;

typedef struct Sieve Sieve;

/* Whether rows that choose `takes` of so many keys gain. */
bool      sieve_pays(int64_t takes, int64_t keys);
/* Without memory the run has failed. */
SieveKeys sieve_keys_new(Run *r, int64_t count, int64_t d, int64_t takes);
Sieve    *sieve_new(Run *r, int64_t d, int64_t takes);
/* Takes the keys of a head, on all threads. */
void      sieve_fill(Run *r, SieveKeys *keys, const Tensor *k, int64_t head);
/* Row x of the block chooses among the first `count` keys; rows are set in order. */
void      sieve_row(const SieveKeys *keys, Sieve *s, int64_t x, const float *q, int64_t count);
/* Finds the keys of the first `rows` rows, of which none sees more keys than the last. */
void      sieve_rows(const SieveKeys *keys, Sieve *s, int64_t rows);
bool      sieve_holds(const Sieve *s, int64_t x);
/* The keys of row x, at least `takes`, increasing, and q . k of each in double; returns how many.
 * place and number: room for all keys. */
int64_t   sieve_numbers(const SieveKeys *keys, Sieve *s, int64_t x, int32_t *place,
                        double *number);

#endif
