/* place.c -- see place.h. */
#include "app/place.h"

#ifdef ATTNSCOPE_MODULE
#include <dlfcn.h>
#endif
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef ATTNSCOPE_MODULE

bool place_home(Text *out)
{
    static const char own; /* lies in the module */
    Dl_info           found;
    char              path[PATH_MAX];

    if (!dladdr(&own, &found) || !found.dli_fname || !realpath(found.dli_fname, path))
        return false;
    text_add(out, dirname(path));
    return text_ok(out);
}

/* A folder may have that name too. */
static bool is_program(const char *folder, size_t length, const char *below, Text *out)
{
    struct stat about;

    text_clear(out);
    text_addf(out, "%.*s%s/attnscope", (int)length, folder, below);
    return text_ok(out) && stat(text_str(out), &about) == 0 && S_ISREG(about.st_mode) &&
           access(text_str(out), X_OK) == 0;
}

bool place_program(Text *out, Error *err)
{
    const char *path = getenv("PATH");
    Text        home = { 0 };
    bool        found = place_home(&home) && (is_program(home.data, home.length, "", out) ||
                                              is_program(home.data, home.length, "/..", out));

    text_free(&home);
    for (; !found && path && *path; path += strcspn(path, ":"), path += *path == ':')
        found = is_program(path, strcspn(path, ":"), "", out);
    return found || error_set(err, ERR_FILE, "the program attnscope, which runs each point of a "
                              "sweep, is neither beside the module nor on PATH");
}

#else

bool place_home(Text *out)
{
    char    path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (length <= 0)
        return false;
    path[length] = '\0';
    text_add(out, dirname(path));
    return text_ok(out);
}

bool place_program(Text *out, Error *err)
{
    text_add(out, "/proc/self/exe"); /* the very file, even when another took its place */
    return text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory for a path");
}

#endif

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
