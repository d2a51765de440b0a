/* app/complete.h -- what the last word of a command line may become.
 *
 * The tables of commands, options, mechanisms and their parameters answer, so a new one is
 * completed without further code.  The shells ask by `attnscope completions words -- WORD...`.
 */
#ifndef APP_COMPLETE_H
#define APP_COMPLETE_H

#include "app/session/session.h"

/* A word that fits; help: what it is, one line, or "". */
typedef void (*CompletionTaker)(void *context, const char *word, const char *help);

/* Gives each word that words[count - 1] may become, which may be "".  words[0] is the command or
 * what there is of its name.  The session reads the line's input where layers or heads are asked
 * for; NULL: the line is one that is typed in the explorer, which has no options of its own and
 * offers no layers and heads.  True: names of files fit, too. */
bool complete_words(Session *s, const char *const *words, int count, CompletionTaker take,
                    void *context);

#endif
