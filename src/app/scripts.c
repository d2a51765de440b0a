/* scripts.c -- see scripts.h. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/scripts.h"
#include "input/store.h"

/* Each has room for its texts behind it. */
typedef struct Entry {
    MechanismScript script;
    struct Entry   *next;
    char           *renamed; /* NULL: it has the name of its file */
    char            path[];
} Entry;

static Entry *first;

static const char *file_name(const Entry *entry)
{
    const char *slash = strrchr(entry->path, '/');

    return slash ? slash + 1 : entry->path;
}

static Entry *append(const char *path, Error *err)
{
    size_t  length = strlen(path);
    Entry  *entry = calloc(1, sizeof(*entry) + length + 1), **end = &first;

    if (!entry) {
        error_set(err, ERR_NOMEM, "not enough memory for a script");
        return NULL;
    }
    memcpy(entry->path, path, length + 1);
    entry->script.name = file_name(entry);
    while (*end)
        end = &(*end)->next;
    *end = entry;
    return entry;
}

static bool hash_of(const char *path, char sha256[65], Error *err)
{
    Mapped bytes;

    if (!mapped_open(path, &bytes, err))
        return error_prefix(err, "%s", path);
    mapped_sha256(&bytes, 1, sha256);
    mapped_close(&bytes);
    return true;
}

const MechanismScript *scripts_add_code(const char *name, Error *err)
{
    Entry *entry = first;

    while (entry && (entry->script.path || strcmp(entry->script.name, name) != 0))
        entry = entry->next;
    entry = entry ? entry : append(name, err);

    return entry ? &entry->script : NULL;
}

/* A pipe cannot be read twice, so it is no file here. */
const MechanismScript *scripts_add_file(const char *path, bool everywhere, Error *err)
{
    char        real[PATH_MAX], sha256[65];
    struct stat about;
    Entry      *entry;

    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return scripts_add_code("a pipe", err);
    if (!realpath(path, real)) {
        error_set(err, ERR_FILE, "%s: cannot be read", path);
        return NULL;
    }
    if (!hash_of(real, sha256, err) || !(entry = append(real, err)))
        return NULL;
    entry->script.path = entry->path;
    entry->script.everywhere = everywhere;
    memcpy(entry->script.sha256, sha256, sizeof(sha256));
    return &entry->script;
}

const MechanismScript *scripts_at(int index)
{
    const Entry *entry = first;

    while (entry && index-- > 0)
        entry = entry->next;
    return entry ? &entry->script : NULL;
}

const MechanismScript *scripts_rename(const char *sha256, const char *name, size_t length)
{
    Entry *found = NULL;
    char  *own;

    for (Entry *entry = first; entry; entry = entry->next)
        if (*entry->script.sha256 && !strcmp(entry->script.sha256, sha256))
            found = entry;
    if (!found || !(own = strndup(name, length)))
        return NULL;
    free(found->renamed);
    found->renamed = own;
    found->script.name = own;
    return &found->script;
}

void scripts_rename_none(void)
{
    for (Entry *entry = first; entry; entry = entry->next) {
        free(entry->renamed);
        entry->renamed = NULL;
        entry->script.name = file_name(entry);
    }
}

void scripts_forget(void)
{
    scripts_rename_none();
    while (first) {
        Entry *entry = first;

        first = entry->next;
        free(entry);
    }
}

/* ---- of a request -------------------------------------------------------------- */

#define NESTED_MOST 4 /* mechanisms inside each other */

bool script_is_of_request(const MechanismScript *script, const Request *request)
{
    for (; request; request = request->above) {
        const Mechanism *m = mechanism_find(request->mechanism);

        for (int depth = 0; m && depth < NESTED_MOST; depth++) {
            if (m->script == script)
                return true;
            m = mechanism_inner(m, &request->given);
        }
    }
    return false;
}

/* A file that was run again stands later in the list, too. */
static bool is_same(const MechanismScript *a, const MechanismScript *b)
{
    return a->path && b->path && !strcmp(a->path, b->path);
}

/* As it was run last; NULL: an earlier entry of the file gave it. */
static const MechanismScript *newest_of(int index)
{
    const MechanismScript *script = scripts_at(index), *newest = script;

    for (int i = 0; i < index; i++)
        if (is_same(scripts_at(i), script))
            return NULL;
    for (int i = index + 1; scripts_at(i); i++)
        newest = is_same(scripts_at(i), script) ? scripts_at(i) : newest;
    return newest;
}

/* One script may use what another has set, so all of them are run. */
bool scripts_of_request(const Request *request,
                        bool (*add)(void *context, const MechanismScript *script, Error *err),
                        void *context, Error *err)
{
    const MechanismScript *script;
    bool                   needed = false;

    for (int i = 0; (script = scripts_at(i)); i++) {
        bool own = !script->everywhere && script_is_of_request(script, request);

        if (own && !script->path)
            return error_set(err, ERR_USAGE, "%s: the processes of a sweep cannot read its "
                             "script (%s): put the definition into a file, attnscope --lua "
                             "FILE.lua sweep ...", request->mechanism, script->name);
        needed |= own;
    }
    for (int i = 0; needed && (script = scripts_at(i)); i++)
        if (script->path && !script->everywhere && newest_of(i) &&
            !add(context, newest_of(i), err))
            return false;
    return true;
}

bool script_file_unchanged(const char *path, Error *err)
{
    const MechanismScript *script, *newest = NULL;
    char                   sha256[65];

    for (int i = 0; (script = scripts_at(i)); i++)
        newest = script->path && !strcmp(script->path, path) ? script : newest;
    return newest && hash_of(path, sha256, err) &&
           (!strcmp(sha256, newest->sha256) ||
            error_set(err, ERR_FILE, "%s has changed since it was run: start the sweep again "
                      "(points of the script as it is now are others)", path));
}
