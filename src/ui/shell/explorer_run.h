/* ui/shell/explorer_run.h -- the loop of the explorer, for ui.c. */
#ifndef UI_SHELL_EXPLORER_RUN_H
#define UI_SHELL_EXPLORER_RUN_H

#include "ui/shell/explorer.h"

void explorer_loop(Ui *ui); /* until it is left */
/* As if the key was pressed. */
void explorer_key(Ui *ui, uint32_t key);

#endif
