/* ui/shell/messages.h -- what the last line but one has said so far: seen, found, written, kept. */
#ifndef UI_SHELL_MESSAGES_H
#define UI_SHELL_MESSAGES_H

#include "ui/shell/explorer.h"

/* Adds the message that is shown now to the log, with its time. */
void messages_add(Ui *ui);
/* Where it was asked for: the log goes to the end of the file in the state folder. */
bool messages_keep(Ui *ui, Error *err);
/* :messages FILE writes them; :messages keep, :messages drop: on leaving, or not. */
void messages_typed(Ui *ui, const char *rest);

#endif
