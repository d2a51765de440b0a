/* ui/shell/choices.h -- what the list of help and palette offers for what is typed. */
#ifndef UI_SHELL_CHOICES_H
#define UI_SHELL_CHOICES_H

#include "app/command/command.h"
#include "app/glossary.h"
#include "attn/run/position.h"
#include "ui/screen/lessons.h"
#include "ui/shell/actions.h"
#include "ui/shell/shell.h"

#define CHOICES_MOST 512

typedef struct Choice {
    const char      *heading; /* of the lines below it; or */
    const Action    *action;  /* or */
    const Mechanism *mechanism;
    char             way; /* to a mechanism: 'i' its card, 's' its stages; else its pane */
    const LessonItem *lesson;
    int              number; /* of the lesson, from 1 */
    const Command   *command;
    const Preset    *preset;
    const Position  *position; /* exact attention with it */
    const Gloss     *gloss;
    TypedHelp        typed; /* a word with an argument */
    const char      *own;    /* help of a command of a script; NULL: none */
    int              mapped; /* number of that command, else of a key of a script; from 1 */
} Choice;

typedef struct Choices {
    Choice items[CHOICES_MOST];
    int    count;
    bool   elsewhere; /* no key matches: lists what can be opened or run by name */
} Choices;

/* All that is typed in the list's filter finds. */
void choices_make(Ui *ui, Choices *list);
/* The name in front, and what it does. */
void choice_text(const Ui *ui, const Choice *c, char *keys, size_t keys_size, char *text,
                 size_t size);
/* What is typed is this word with an argument, which is returned: "layer 3", ":n 512". */
const char *choice_argument(const Ui *ui, const Choice *c);

#endif
