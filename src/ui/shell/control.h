/* ui/shell/control.h -- the explorer's half of app/scripting.h. */
#ifndef UI_SHELL_CONTROL_H
#define UI_SHELL_CONTROL_H

#include "app/scripting.h"
#include "ui/shell/explorer.h"

void control_fill(Ui *ui, Control *control);

#endif
