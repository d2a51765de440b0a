/* ui/pane/head_label.h -- what a head does, as a letter on a colour: the figure of `heads` has the
 * same letters and colours.
 */
#ifndef UI_PANE_HEAD_LABEL_H
#define UI_PANE_HEAD_LABEL_H

#include "attn/study/heads.h"
#include "ui/state/explorer.h"

/* False, and nothing is changed: no label. */
bool head_label_mark(const Ui *ui, const char *label, char letter[2], Style *style);

/* "previous"; of a mixed one its score of copying where that is high, or, unless brief, why there
 * is none.  tokens: the input has some. */
void head_label_text(const HeadScores *scores, bool tokens, bool brief, Text *out);

/* Bits of head_label_index, for the labels that occur. */
typedef unsigned HeadLabels;
#define HEAD_LABELS_ALL (~0u)

/* "P previous  K sink", as far as it fits; returns the columns that it takes.  `draw` false: only
 * counts them. */
int head_label_legend(const Ui *ui, Area area, HeadLabels which, bool draw);

#endif
