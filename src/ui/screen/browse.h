/* ui/screen/browse.h -- the list of mechanisms, and the card beside it (card.c). */
#ifndef UI_SCREEN_BROWSE_H
#define UI_SCREEN_BROWSE_H

#include "ui/state/explorer.h"

/* The card of mechanism `index`, with its thumbnail. */
void card_draw(Ui *ui, Area area, int index);
/* All of it as text. */
void card_text(const Mechanism *m, Text *out);
bool card_poll(Ui *ui); /* true: a thumbnail is there */
int  card_wake_fd(const Ui *ui);
void card_forget(Ui *ui, const Mechanism *changed); /* its thumbnail */
void card_end(Ui *ui);

/* Opens the marked mechanisms, or else the chosen one. */
void browse_open_chosen(Ui *ui);

#endif
