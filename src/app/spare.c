/* spare.c -- no output takes the place of a file that its command reads; see call.h.
 *
 * Files are compared by device and inode, so a link counts, too.
 */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/command/command.h"
#include "app/scripts.h"

/* What an output would replace. */
typedef struct Target {
    struct stat there, folder;
    bool        drawing; /* by its name: no folder of texts, and no model, has such files */
} Target;

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* False: nothing is there that could be lost. */
static bool target_of(const char *path, Target *out)
{
    char *copy = strdup(path);
    bool  there = copy && stat(path, &out->there) == 0 && S_ISREG(out->there.st_mode) &&
                 stat(dirname(copy), &out->folder) == 0;

    out->drawing = text_ends_in(path, ".png") || text_ends_in(path, ".svg") ||
                   text_ends_in(path, ".pdf") || text_ends_in(path, ".ans");
    free(copy);
    return there;
}

/* The file of that name, or one in the folder of that name. */
static bool is_target(const Target *target, const char *path, size_t length)
{
    char       *name = length ? strndup(path, length) : NULL;
    struct stat about;
    bool        there = name && stat(name, &about) == 0;

    free(name);
    return there && (same_file(&about, &target->there) ||
                     (!target->drawing && same_file(&about, &target->folder)));
}

/* "a.npz", "a.npz[q=k]", "model:a.gguf[text=b.txt,max-tokens=9]", "name=@a.npy": a name begins at
 * the start or behind a sign, and ends before one or at the end. */
static bool names_target(const Target *target, const char *spec, const char *begins)
{
    static const char ends[] = "[],) ";

    for (const char *at = spec; at; at = (at = strpbrk(at, begins)) ? at + 1 : NULL) {
        if (is_target(target, at, strlen(at)))
            return true;
        for (const char *end = strpbrk(at, ends); end; end = strpbrk(end + 1, ends))
            if (is_target(target, at, (size_t)(end - at)))
                return true;
    }
    return false;
}

/* A mechanism's name may be a file's, too: only @ begins one in its parameters. */
static bool parameter_names(const Target *target, const char *words)
{
    const char *file = strchr(words, '@');

    return file && names_target(target, file, "@");
}

static bool any_names(const Target *target, const char *const *list, int count,
                      bool (*names)(const Target *target, const char *words))
{
    for (int i = 0; i < count; i++)
        if (names(target, list[i]))
            return true;
    return false;
}

static bool spec_names(const Target *target, const char *spec)
{
    return names_target(target, spec, ":=@");
}

/* The words are mechanisms where a command has an input; else they are files.  rerender replaces
 * its own figure on purpose. */
static bool word_is_target(const Target *target, const Call *call)
{
    const bool mechanisms = command_takes(call->command, option_at(OPT_INPUT));

    if (call->command->run == command_rerender)
        return false;
    return any_names(target, call->words, call->word_count,
                     mechanisms ? parameter_names : spec_names);
}

static bool script_is_target(const Target *target)
{
    const MechanismScript *script;

    for (int i = 0; (script = scripts_at(i)); i++)
        if (script->path && is_target(target, script->path, strlen(script->path)))
            return true;
    return false;
}

static bool is_read(const Target *target, const Call *call)
{
    static const OptionId files[] = { OPT_INPUT, OPT_IDS };

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        if (call->values[files[i]] && spec_names(target, call->values[files[i]]))
            return true;
    return any_names(target, call->texts, call->text_count, spec_names) ||
           any_names(target, call->params, call->param_count, parameter_names) ||
           any_names(target, call->swaps, call->swap_count, parameter_names) ||
           word_is_target(target, call) || script_is_target(target);
}

bool call_spares(const Call *call, const char *path, Error *err)
{
    Target target;

    if (!strcmp(path, "-") || !target_of(path, &target) || !is_read(&target, call))
        return true;
    return error_set(err, ERR_USAGE, "%s is a file that %s reads: give another name to write", path,
                     call->command->name);
}

bool call_spares_all(const Call *call, Error *err)
{
    for (int i = 0; i < call->file_count; i++)
        if (!call_spares(call, call->files[i], err))
            return false;
    return true;
}
