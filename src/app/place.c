/* place.c -- see place.h. */
#include "app/place.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The specification: a relative path is not valid and is to be ignored. */
static bool place_below(const char *variable, const char *usual, const char *name, Text *out,
                        Error *err)
{
    const char *set = getenv(variable), *home = getenv("HOME");

    if (set && *set == '/')
        text_addf(out, "%s/attnscope/%s", set, name);
    else if (home && *home == '/')
        text_addf(out, "%s/%s/attnscope/%s", home, usual, name);
    else
        return error_set(err, ERR_FILE, "neither HOME nor %s is set", variable);
    return text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory for a path");
}

bool place_state(const char *name, Text *out, Error *err)
{
    return place_below("XDG_STATE_HOME", ".local/state", name, out, err);
}

bool place_data(const char *name, Text *out, Error *err)
{
    return place_below("XDG_DATA_HOME", ".local/share", name, out, err);
}

bool place_make_folders(const char *path, Error *err)
{
    char   folder[PATH_MAX];
    size_t length = strlen(path);

    if (length >= sizeof(folder))
        return error_set(err, ERR_FILE, "%.200s...: the path is too long", path);
    for (size_t i = 1; i < length; i++) {
        if (path[i] != '/')
            continue;
        snprintf(folder, sizeof(folder), "%.*s", (int)i, path);
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            return error_set(err, ERR_FILE, "%s: cannot be made: %s", folder, strerror(errno));
    }
    return true;
}

void place_absolute(const char *path, Text *out)
{
    char here[PATH_MAX];

    if (*path != '/' && getcwd(here, sizeof(here)))
        text_addf(out, "%s/", here);
    text_add(out, strncmp(path, "./", 2) ? path : path + 2);
}
