/* ui/shell/shell.h -- the shell: the loop, the lines above and below a screen, typed lines,
 * scripts; and what typed lines and scripts ask of screens. */
#ifndef UI_SHELL_SHELL_H
#define UI_SHELL_SHELL_H

#include "app/result/steps.h"
#include "app/scripting.h"
#include "ui/state/explorer.h"

/* ---- loop.c ------------------------------------------------------------------ */

void explorer_loop(Ui *ui); /* until it is left */
/* As if the key was pressed. */
void explorer_key(Ui *ui, uint32_t key);
/* The earlier of two times in seconds from now; < 0: none. */
double deadline_earlier(double a, double b);
void   say_glyphs(Ui *ui);

/* ---- status.c ---------------------------------------------------------------- */

bool status_draw(Ui *ui);       /* first and last lines; false: the terminal is too small */
bool status_fits(const Ui *ui); /* false: the terminal is too small */
void status_draw_long(Ui *ui);  /* a message that needs more than its line, below the screen */
/* Appends the log to the file in the state folder, if the user asked for that. */
bool messages_keep(Ui *ui, Error *err);
/* :messages FILE writes them; :messages keep, :messages drop: on leaving, or not. */
void messages_typed(Ui *ui, const char *rest);
/* What the panes' runs warn of, whole. */
void warnings_typed(Ui *ui, const char *rest);

/* ---- help.c ------------------------------------------------------------------ */

/* Opens the list of everything with what is about these words; false: nothing is. */
bool help_about(Ui *ui, const char *words);

/* ---- command_work.c: one at a time, on the worker --------------------------------- */

/* A typed command, with the explorer's settings.  Whatever is wrong is a message. */
void command_start(Ui *ui, const char *typed);
bool command_poll(Ui *ui);
bool command_runs(const Ui *ui);
bool command_progress(const Ui *ui, char *text, size_t size); /* as Screen.progress */
bool command_cancel(Ui *ui); /* false: none runs */
void command_end(Ui *ui);

/* ---- command_line.c ---------------------------------------------------------- */

/* Runs a typed line: a command, an action, or a mechanism to open; false, with a message: its first
 * word is none of them. */
bool command_enter(Ui *ui, const char *line);
void command_complete(Ui *ui, Field *field, char *choices, size_t size);

/* A word of the explorer's own that takes an argument: "layer N"; NULL past the end. */
typedef struct TypedHelp {
    const char *word, *help, *takes;
} TypedHelp;
TypedHelp command_typed(size_t index);
TypedHelp command_typed_named(const char *word);
/* A command, an action, a mechanism, or a word of the command line's own. */
bool command_line_knows(const char *word);

/* ---- input_line.c: typed lines that change the input and run the panes again --- */

/* The sample that is opened without INPUT; chooses a length where none was chosen. */
const char *samples_first(InputChoice *choice);
const char *sample_words(const char *spec); /* what is seen in it; NULL: not one of E */
void input_typed_open(Ui *ui, const char *spec);
void input_typed_layer(Ui *ui, const char *text);
void input_typed_n(Ui *ui, const char *text);
void input_typed_d(Ui *ui, const char *text);
void input_typed_heads(Ui *ui, const char *text);
void input_typed_seed(Ui *ui, const char *text);
void input_typed_causal(Ui *ui, const char *text); /* on, off, input */
void input_typed_head(Ui *ui, const char *text);

/* ---- console.c: the docked prompt of scripts, keys of their own, their turn --- */

/* Before the loop; NULL: there is no interpreter. */
void console_begin(Ui *ui, Interpreter *interpreter);
/* A script's file begins to run; false with a message. */
bool console_file(Ui *ui, const char *path);
void console_typed_script(Ui *ui, const char *path);
/* Scripts go on; true: something is to be drawn. */
bool   console_tick(Ui *ui);
double console_deadline(const Ui *ui); /* seconds from now; < 0: none */
bool   console_stop(Ui *ui);           /* false: no script runs */
/* The answer to a script's question; NULL: none was given. */
void console_answer(Ui *ui, const char *text);
bool console_map(Ui *ui, const char *where, const char *key, const char *action, int function,
                 Error *err);
/* A word of a script's own on the command line. */
bool console_command(Ui *ui, const char *name, const char *help, int function, Error *err);
/* False: the line begins with none of them. */
bool console_own_command(Ui *ui, const char *line);
const char *console_command_name(const Ui *ui, int index); /* NULL past the last */
const char *console_command_help(const Ui *ui, int index);
/* A key that a script mapped: its name, and the action (NULL: a function of the script) that it
 * does where a bit of *scope holds; false past the last. */
bool console_mapped(const Ui *ui, int index, char *key, size_t size, unsigned *scope,
                    const Action **action);
void console_run_mapped(Ui *ui, int index);
/* True: the key is one of a script. */
bool console_key(Ui *ui, uint32_t key);

/* ---- control.c --------------------------------------------------------------- */

/* The explorer's half of app/scripting.h. */
void control_fill(Ui *ui, Control *control);

/* ---- screens ----------------------------------------------------------------- */

/* Shows that view in the focused pane, or says why not; "": lists the views. */
void compare_typed_view(Ui *ui, const char *name);
/* "features=16:512:x2"; and "NAME=RANGE 95%": the smallest value that keeps so much is set. */
void vary_enter(Ui *ui, const char *range);
void vary_enter_goal(Ui *ui, const char *text);
/* Writes what is on the screen; with a message.  False: nothing is written. */
bool export_start(Ui *ui, const char *path);
/* The step looked at, with the row that is followed; false: no pane has any. */
bool stepping_now(Ui *ui, Step *step);
/* It plays from now on, from the first stage if this is the last. */
void stepping_start(Ui *ui, const Step *step);
/* Plays this mechanism's stages from one up to another, or from where they were left between. */
void stepping_play_part(Ui *ui, const Mechanism *mechanism, int from, int until);
void step_go(Ui *ui, int at);
/* A model and its text are opened: "PATH TEXT"; a mechanism is swapped in: "MECH LAYERS". */
void model_typed(Ui *ui, const char *rest);
void swap_typed(Ui *ui, const char *rest);
/* Back from a head in the panes to the screen that it came from; false: it came from nowhere. */
bool model_takes_back(Ui *ui);
/* "tales.gguf  english.txt n=119" for the first line, in so many columns; false: no model is shown.
 */
bool model_subject(Ui *ui, int room, Text *out);
/* The cursor to the mechanism that shows finished weights. */
void browse_find_weights(Ui *ui);

#endif
