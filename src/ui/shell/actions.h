/* ui/shell/actions.h -- the action table and who looks into it. */
#ifndef UI_SHELL_ACTIONS_H
#define UI_SHELL_ACTIONS_H

#include <stddef.h>

#include "ui/shell/explorer.h"

typedef struct Action {
    const char *id, *keys;
    unsigned    scope; /* IN_ bits */
    const char *words, *help;
    void (*run)(Ui *ui);
} Action;

#define ACTION(id, keys, scope, words, help) void action_##id(Ui *ui);
#include "ui/shell/actions.def"
#undef ACTION

const Action *action_at(size_t index); /* NULL past the end */
const Action *action_of_key(unsigned scope, uint32_t key);
const Action *action_find(const char *id);
/* A key never does nothing without a word: where it works, and how to get there. */
void action_say_none(Ui *ui, uint32_t key);
/* "h, ←": every key of the action. Returns text. */
char *action_keys(const Action *action, char *text, size_t size);

#endif
