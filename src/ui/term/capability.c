/* capability.c -- see capability.h. */
#include "ui/term/capability.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = { "mono", "8", "16", "256", "truecolor" };

bool capability_parse(const char *name, int *out, Error *err)
{
    if (!strcmp(name, "auto")) {
        *out = -1;
        return true;
    }
    for (int i = 0; i <= TERM_TRUE; i++)
        if (!strcmp(name, names[i])) {
            *out = i;
            return true;
        }
    return error_set(err, ERR_USAGE,
                     "there is no colour mode '%.40s'; choose auto, truecolor, 256, 16, 8 or mono",
                     name);
}

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "";
}

static TermColours colours_of_environment(const char *term)
{
    const char *colour = environment("COLORTERM");

    if (*environment("NO_COLOR"))
        return TERM_MONO;
    if (!strcmp(colour, "truecolor") || !strcmp(colour, "24bit") || strstr(term, "direct"))
        return TERM_TRUE;
    return TERM_256;
}

Capability capability_find(const TermOptions *options)
{
    const char *term = environment("TERM");
    Capability  found = {
         .wanted =
            options->colours >= 0 ? (TermColours)options->colours : colours_of_environment(term),
         .tmux = !strncmp(term, "tmux", 4) || !strncmp(term, "screen", 6),
    };

    setlocale(LC_CTYPE, "");
    found.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    if (options->utf8 == 1 && !found.utf8)
        found.utf8 = setlocale(LC_CTYPE, "C.UTF-8") != NULL;
    if (options->utf8 == 0)
        found.utf8 = false;
    found.half_block = found.utf8 && strcmp(term, "linux") != 0;
    if (!strcmp(term, "linux") || !strcmp(term, "dumb") || !strncmp(term, "vt", 2))
        found.wanted = found.wanted == TERM_TRUE && options->colours < 0 ? TERM_256 : found.wanted;
    return found;
}
