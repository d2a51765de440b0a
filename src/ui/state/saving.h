/* ui/state/saving.h -- sessions by name: :save, :restore, --session, and the one kept on leaving. */
#ifndef UI_STATE_SAVING_H
#define UI_STATE_SAVING_H

#include "ui/shell/explorer.h"

#define SAVING_LAST "last" /* name of the session that leaving keeps */

/* input: stands for the saved one; NULL: just that.  False: nothing was changed. */
bool saving_restore(Ui *ui, const char *name, const char *input, const InputChoice *choice,
                    Error *err);
/* "; 2 shows its panes" where it was left in the list, though panes are open; else "". */
const char *saving_behind(const Ui *ui);
/* Keeps what is open as SAVING_LAST, if anything is. */
bool saving_keep(Ui *ui, Error *err);
/* Calls `each` with the name of every saved session. */
void saving_names(void (*each)(void *context, const char *name), void *context);

/* What :save and :restore do. */
void saving_typed_save(Ui *ui, const char *name);
void saving_typed_restore(Ui *ui, const char *name);

#endif
