/* ui/shell/completion.h -- what the word before the cursor may become. */
#ifndef UI_SHELL_COMPLETION_H
#define UI_SHELL_COMPLETION_H

#include "app/call.h"

typedef struct Found {
    const char *stem; /* what is there of the word; not ended */
    size_t      stem_length;
    char        common[64]; /* beginning of all that fit */
    Text        all;
    int         count;
} Found;

/* A word that may be meant; for use as a callback the first is a Found. */
void found_add(void *found, const char *word);
/* Parameters and their values inside the parentheses of the stem, "bigbird(win"; false: it
 * has none.  The stem becomes what stands after the last of them. */
bool found_in_layer(Found *f);
/* Long options of a command, and what follows its -p: parameters of the line's mechanisms;
 * false: the stem is neither. */
bool found_in_call(Found *f, const Command *command, const char *line);

#endif
