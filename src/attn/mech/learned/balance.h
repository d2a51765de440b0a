/* attn/mech/learned/balance.h -- how evenly tokens are spread over groups, as bars and in words. */
#ifndef ATTN_MECH_LEARNED_BALANCE_H
#define ATTN_MECH_LEARNED_BALANCE_H

#include <stdint.h>

#include "attn/run/view.h"

typedef struct Run Run;

/* Puts bars beside a view of membership (rows are groups, columns tokens): the size of each
 * group, i32 [planes,groups], and in how many groups a token is, i32 [planes,tokens], where
 * it is not always one (times.data NULL).  The words: the largest size against the mean,
 * the entropy of the sizes in bits, groups without and tokens in no or several groups. */
void balance_show(Run *r, View *view, Tensor sizes, Tensor times);

#endif
