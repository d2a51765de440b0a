/* ui/screen/home.h -- the first screen of a person who has never been here. */
#ifndef UI_SCREEN_HOME_H
#define UI_SCREEN_HOME_H

#include "ui/state/explorer.h"

/* Lays the welcome over the list, unless this user has seen it. */
void home_greet(Ui *ui);

#endif
