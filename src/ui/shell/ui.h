/* ui/shell/ui.h -- the explorer: the front end that lives in a terminal. */
#ifndef UI_SHELL_UI_H
#define UI_SHELL_UI_H

#include <stdbool.h>

#include "app/lesson/lesson.h"
#include "app/scripting.h"
#include "core/text.h"

/* Opens the terminal, explores, and gives the process's exit status.  argv[0]
 * is skipped.  Needs a terminal on standard input and output: without one it
 * says so on standard error and returns 2.  interpreter: of scripts; NULL: none.
 * `lessons` reads their files. */
int ui_main(int argc, char **argv, Interpreter *interpreter, const LessonReader *lessons);

/* True when these words are a command the explorer shows better than a text can:
 * `step MECH` without an option that asks for text or a file. */
bool ui_takes(int argc, char **argv);

/* The explorer's own options, as --help lists them. */
void ui_options(Text *out);
void ui_man(Text *out); /* the same as a section of the man page */

/* Some action has the key in these places of a lesson (bits of LessonPlace; 0: anywhere): "p",
 * "Enter", "C-p", "Ctrl-P". */
bool ui_knows_key(const char *name, size_t length, unsigned places);
/* The keys as a Markdown table, from the action table. */
void ui_docs(Text *out);

#endif
