/* ui/shell/actions.h -- the tables of screens and actions, and look-ups in them. */
#ifndef UI_SHELL_ACTIONS_H
#define UI_SHELL_ACTIONS_H

#include <stddef.h>

#include "ui/state/explorer.h"

/* Every screen: one file each. */
#define SCREEN(NAME, name) extern const Screen screen_##name;
#include "ui/screen/screens.def"
extern const Screen *const screens[SCREEN_COUNT];

#define ACTION(id, keys, scope, words, help) void action_##id(Ui *ui);
#define ACTION_WITH(id, keys, scope, words, help, function, value) void function(Ui *ui, int);
#define SCREENS_OWN
#include "ui/shell/actions.def"

const Action *action_at(size_t index); /* NULL past the end */
const Action *action_of_key(unsigned scope, uint32_t key);
const Action *action_find(const char *id);
void          action_run(Ui *ui, const Action *action);
/* Hints where a key without effect here would work. */
void action_say_none(Ui *ui, uint32_t key);
/* "h, ←": every key of the action. Returns text. */
char *action_keys(const Action *action, char *text, size_t size);

#endif
