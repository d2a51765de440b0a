/* app/figure/panel_word.h -- one panel of a figure in words.
 *
 *     words = word { " + " word }         curves that share one plot
 *     word = side [ " - " side ] [looks]  the second is subtracted from the first
 *     side = MECH[(name=value,..)] [":" VIEW ["/sorted"]] ["@" HEAD]
 *     looks = "{" name=value,.. "}"       see panel_looks.h
 *
 * HEAD is a number, or * for a panel of every head.  The command line, presets and the
 * explorer's command line read the same words.
 */
#ifndef APP_FIGURE_PANEL_WORD_H
#define APP_FIGURE_PANEL_WORD_H

#include <stdint.h>

#include "app/figure/panel_looks.h"
#include "core/error.h"

#define HEADS_ALL (-2)

typedef struct PanelSide {
    char   *mechanism; /* "bigbird(window=5)"; owned; NULL: this side is not there */
    char    view[48];  /* "": the most telling one; "permutation#3": the third */
    bool    sorted;    /* tokens in the mechanism's own order */
    int64_t head;      /* -1: not said; HEADS_ALL: a panel each */
} PanelSide;

typedef struct PanelWord {
    PanelSide  shown, minus;
    PanelLooks looks;
} PanelWord;

/* The end of the first of these words; after it " + " or nothing. */
const char *panel_word_end(const char *words);
/* On failure nothing is to be freed. */
bool panel_word_parse(const char *text, PanelWord *out, Error *err);
void panel_word_free(PanelWord *word);

#endif
