/* attn/cpu/sieve.h -- the few candidates that may have the largest numbers of a row, by numbers in
 * float.
 *
 * A product q . k in float is wrong by at most margin = (d + 16) 2^-24 |q| |k|; a sum over the
 * heads of an index by at most the sum of their margins, weighted.  If `takes` numbers in float
 * are at least T, as many in double are at least T - margin, and whatever is among the largest in
 * double is at least T - 2 margin in float.  So a row holds the candidates whose numbers in float
 * are that large.  Where these are `takes` they are the choice; else their numbers in double decide
 * as they would among all.  Rows of large or infinite numbers, and rows with too many such
 * candidates, hold none.
 *
 *     keys = sieve_keys_new(...), sieve_fill for a head; for a block of rows: sieve_row for each,
 *     sieve_rows, and sieve_places of each row that sieve_holds
 *
 * Few rows read the candidates where they lie, once.  Heads do so together, in items of candidates,
 * each with the sieve of its worker, and then take what they hold one head in an item:
 *
 *     own = sieve_head(...), sieve_row for each row, and sieve_few_item of all items
 *     own and sieve_row again, and sieve_few instead of sieve_rows
 *
 * Not for an index: products of several short heads with a key are faster in panels.
 */
#ifndef ATTN_CPU_SIEVE_H
#define ATTN_CPU_SIEVE_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/cpu/simd/kernel.h"
#include "attn/ops/choose.h"
#include "attn/run.h"

#define SIEVE_ROWS 48 /* whole tiles; they read a panel of keys from the first-level cache */

typedef struct SieveKeys {
    const Kernel     *kernel;
    const ChooseKeys *in;
    int64_t           head, all; /* all: query heads */
    int64_t           count, d;  /* candidates, and their factors (choose_factors) */
    int64_t           heads;     /* of the index; 1 */
    int64_t           takes;     /* candidates that a row chooses */
    int64_t           most;      /* that it holds meanwhile */
    float            *panels;    /* [panels][d][TILE_KEYS]; NULL: for few rows */
    int64_t           padded;    /* numbers of a row */
    int64_t           few;       /* rows, if they are few; else 0 */
    float            *numbers;   /* [heads][few][padded], else NULL */
    double           *lengths;   /* [heads][panels] of the longest candidate in each */
    double            longest;   /* of them; for few rows known after sieve_few */
} SieveKeys;

typedef struct Sieve Sieve;

/* Whether rows that choose `takes` of so many candidates gain. */
bool      sieve_pays(int64_t takes, int64_t count);
/* few: so many rows, if they are few, of so many heads together; else 0.  Without memory the run
 * has failed. */
SieveKeys sieve_keys_new(Run *r, const ChooseKeys *in, int64_t count, int64_t d, int64_t takes,
                         int64_t few, int64_t heads);
Sieve    *sieve_new(Run *r, const SieveKeys *keys);
/* Takes the candidates of a head, on all threads; not of few rows. */
void      sieve_fill(Run *r, SieveKeys *keys, int64_t head);
/* Row x of the block chooses among the first `count` candidates but `without` (-1: none), by the
 * factors q [heads d], of an index weighted by w [heads], else NULL; rows are set in order. */
void      sieve_row(const SieveKeys *keys, Sieve *s, int64_t x, const double *q, const double *w,
                    int64_t count, int64_t without);
/* The same by the query itself, for all but an index. */
void      sieve_query(const SieveKeys *keys, Sieve *s, int64_t x, const float *q, int64_t count,
                      int64_t without);
/* Finds the candidates of the first `rows` rows, of which none sees more than the last. */
void      sieve_rows(const SieveKeys *keys, Sieve *s, int64_t rows);
/* The keys of a head of few rows, whose numbers have the place `place`. */
SieveKeys sieve_head(const SieveKeys *keys, int64_t head, int64_t place);
int64_t   sieve_few_items(const SieveKeys *keys);
/* The numbers of an item of candidates, for the rows that s has. */
void      sieve_few_item(const SieveKeys *keys, const Sieve *s, int64_t item);
/* What sieve_rows does, when all items have been numbered. */
void      sieve_few(SieveKeys *keys, Sieve *s);
bool      sieve_holds(const Sieve *s, int64_t x);
/* The candidates of row x, at least `takes`, increasing; returns how many.  sure: whether each is
 * among the choice for certain.  place and sure: room for all. */
int64_t   sieve_places(const SieveKeys *keys, Sieve *s, int64_t x, int32_t *place, bool *sure);
/* q . k in double of the `count` keys named, for CHOOSE_SCORES. */
void      sieve_products(const SieveKeys *keys, Sieve *s, int64_t x, const int32_t *place,
                         int64_t count, double *number);

#endif
