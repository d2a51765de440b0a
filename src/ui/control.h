/* ui/control.h -- the explorer's half of app/scripting.h. */
#ifndef UI_CONTROL_H
#define UI_CONTROL_H

#include "app/scripting.h"
#include "ui/explorer.h"

void control_fill(Ui *ui, Control *control);

#endif
