/* ui/state/history.h -- undo and redo of parameters, zoom and layout. */
#ifndef UI_STATE_HISTORY_H
#define UI_STATE_HISTORY_H

#include "app/session/session.h"
#include "ui/pane/matrix.h"

typedef struct Ui        Ui;
typedef struct Workspace Workspace;

#define HISTORY_MOST 64

typedef struct History {
    Workspace *past[HISTORY_MOST], *future[HISTORY_MOST]; /* owned; newest last */
    int       past_count, future_count;
} History;

void history_note(Ui *ui); /* before a change */
void history_drop(Ui *ui); /* the newest note: nothing was changed */
bool history_undo(Ui *ui); /* false: nothing to undo */
bool history_redo(Ui *ui);
void history_clear(Ui *ui);

#endif
