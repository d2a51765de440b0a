/* completion.c -- see completion.h. */
#include "ui/shell/completion.h"

#include <stdio.h>
#include <string.h>

#include "attn/mechanism.h"

void found_add(void *found, const char *word)
{
    Found *f = found;
    size_t same = 0;

    if (strncmp(word, f->stem, f->stem_length) != 0)
        return;
    if (f->count++ == 0) {
        snprintf(f->common, sizeof(f->common), "%s", word);
    } else {
        while (f->common[same] && f->common[same] == word[same])
            same++;
        f->common[same] = '\0';
    }
    text_addf(&f->all, "%s%s", f->all.length ? "  " : "", word);
}

static const Mechanism *mechanism_of(const char *text, size_t length)
{
    char id[64];

    if (length >= sizeof(id))
        return NULL;
    snprintf(id, sizeof(id), "%.*s", (int)length, text);
    return mechanism_find(id);
}

/* "window=", and after the sign what it may be. */
static void add_parameters(Found *f, const Mechanism *m)
{
    for (const Param *p = m->params; p && p->name; p++) {
        char word[96];

        snprintf(word, sizeof(word), "%s=", p->name);
        if (strncmp(word, f->stem, strlen(word)) != 0 || f->stem_length < strlen(word)) {
            found_add(f, word);
            continue;
        }
        for (int i = 0; p->choices && p->choices[i]; i++) {
            snprintf(word, sizeof(word), "%s=%s", p->name, p->choices[i]);
            found_add(f, word);
        }
        for (int i = 0; p->type == PARAM_TYPE_BOOL && i < 2; i++) {
            snprintf(word, sizeof(word), "%s=%s", p->name, i ? "true" : "false");
            found_add(f, word);
        }
    }
}

bool found_in_layer(Found *f)
{
    const char      *end = f->stem + f->stem_length, *open = memchr(f->stem, '(', f->stem_length);
    const Mechanism *m = open ? mechanism_of(f->stem, (size_t)(open - f->stem)) : NULL;
    const char      *at = end;

    if (!m || memchr(open, ')', (size_t)(end - open)))
        return false;
    while (at > open + 1 && at[-1] != ',')
        at--;
    f->stem = at;
    f->stem_length = (size_t)(end - at);
    add_parameters(f, m);
    return true;
}

/* The mechanisms of a line are its words. */
static void add_parameters_of_line(Found *f, const char *line)
{
    while (*line) {
        size_t           length = strcspn(line, " (");
        const Mechanism *m = mechanism_of(line + strspn(line, "'"),
                                          length - strspn(line, "'"));

        if (m)
            add_parameters(f, m);
        line += strcspn(line, " ");
        line += strspn(line, " ");
    }
}

bool found_in_call(Found *f, const Command *command, const char *line)
{
    bool follows = f->stem - line >= 3 && !strncmp(f->stem - 3, "-p ", 3);

    if (follows)
        add_parameters_of_line(f, line);
    if (follows || *f->stem != '-' || f->stem_length == 0)
        return follows;
    for (int i = 0; i < OPT_COUNT; i++) {
        char flag[64];

        snprintf(flag, sizeof(flag), "--%s", option_at(i)->flag);
        if (call_option(command, flag) == i)
            found_add(f, flag);
    }
    return true;
}
