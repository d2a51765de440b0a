/* ui/shell/console.h -- the explorer's half of app/scripting.h. */
#ifndef UI_SHELL_CONSOLE_H
#define UI_SHELL_CONSOLE_H

#include "app/scripting.h"
#include "ui/shell/explorer.h"

void control_fill(Ui *ui, Control *control);

/* Scripts in the explorer: the docked prompt, keys of their own, their turn. */

/* Before the loop; NULL: there is no interpreter. */
void console_begin(Ui *ui, Interpreter *interpreter);
/* Before anything else is closed. */
void console_end(Ui *ui);

/* A script's file begins to run; false with a message. */
bool console_file(Ui *ui, const char *path);
void console_typed_script(Ui *ui, const char *path);
/* Scripts go on; true: something is to be drawn. */
bool   console_tick(Ui *ui);
double console_deadline(const Ui *ui); /* seconds from now; < 0: none */
bool   console_stop(Ui *ui);           /* false: no script runs */
bool   console_runs(const Ui *ui);     /* one has run for so long that it is to be said */
/* What a script waits for, when that takes long; NULL: nothing. */
const char *console_doing(const Ui *ui);
int    console_height(const Ui *ui);   /* rows it takes at the bottom; 0: it is closed */
/* What was asked for was typed; NULL: it was not. */
void console_answer(Ui *ui, const char *text);

bool console_map(Ui *ui, const char *where, const char *key, const char *action, int function,
                 Error *err);
/* True: the key is one of a script. */
bool console_key(Ui *ui, uint32_t key);

extern const Layer console_layer;

#endif
