/* attn/mech/chosen/chosen.h -- what mechanisms whose queries choose their keys share. */
#ifndef ATTN_MECH_CHOSEN_CHOSEN_H
#define ATTN_MECH_CHOSEN_CHOSEN_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/choose.h"
#include "attn/pattern/pattern.h"

typedef struct Run Run;

/* The chosen keys as cells: of each head, or of one choice for all heads. */
Pattern *chosen_cells(Run *r, const ChosenKeys *chosen);
/* The keys of the chosen pages, up to the query's own position.  with_own: the page that holds the
 * query is COMPONENT_BLOCK and others COMPONENT_OTHER, else all are COMPONENT_BLOCK. */
Pattern *chosen_page_cells(Run *r, const ChosenKeys *chosen, int64_t page, bool with_own);
/* The chosen pages themselves as cells, h x n x pages: COMPONENT_GLOBAL, one that is taken whatever
 * its number (choose_fixed), or COMPONENT_WINDOW.  For views. */
Pattern *chosen_pages(Run *r, const ChooseKeys *choice, const ChosenKeys *chosen);
/* The pages that a row chooses among, n x pages, for views; with_fixed: also the one that is taken
 * whatever its number, where it is the last. */
Pattern *chosen_candidates(Run *r, const ChooseKeys *choice, bool with_fixed);

/* Keys that row i may see. */
int64_t chosen_allowed(const Run *r, int64_t i);
/* Sum over the rows of one head of the keys that they may see, of each `most` at most; 0: all. */
double chosen_count(const Run *r, int64_t most);

#endif
