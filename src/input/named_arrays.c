/* named_arrays.c -- which array of a file is which: "layer.npz[q=query,k=key,v=value]".
 *
 * Files of other programs name their arrays as they like.  What is in brackets behind the path
 * says which are q, k, v, x, attn, segments and the tokens; the others are found by their own
 * names, as without brackets.  A file that really has such a name is that file.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "input/load.h"

static const char *const roles[] = { "q", "k", "v", "x", "attn", "segments", "tokens", "q_tokens",
                                     "k_tokens", NULL };

size_t load_path_length(const char *spec)
{
    size_t      length = strlen(spec);
    const char *open = length && spec[length - 1] == ']' ? strrchr(spec, '[') : NULL;

    return open && open > spec && access(spec, F_OK) != 0 ? (size_t)(open - spec) : length;
}

static const char *role_at(const char *text, size_t length)
{
    for (int i = 0; roles[i]; i++)
        if (strlen(roles[i]) == length && !strncmp(roles[i], text, length))
            return roles[i];
    return NULL;
}

static bool no_array(const Store *store, const char *name, Error *err)
{
    Meant nearest = { name, NULL, ANY_SLIPS };

    for (int64_t i = 0; i < store->count; i++)
        meant_offer(&nearest, store->entries[i].info.name);
    return error_set(err, ERR_DATA, "holds no array '%.80s'%s%.80s%s", name,
                     nearest.name ? "; did you mean '" : "", nearest.name ? nearest.name : "",
                     nearest.name ? "'?" : "");
}

/* Which array is to have the role; none is taken away from what is said after it. */
typedef struct Naming {
    const char *role;
    int64_t     entry;
} Naming;

/* "q=query" of so many bytes. */
static bool read_one(const Store *store, const char *item, size_t length, Naming *out, Error *err)
{
    const char *equal = memchr(item, '=', length), *role;
    StoreEntry *entry;
    char        name[sizeof(store->entries->info.name)];
    size_t      size = equal ? length - (size_t)(equal + 1 - item) : 0;

    role = equal ? role_at(item, (size_t)(equal - item)) : NULL;
    if (!role || size == 0 || size >= sizeof(name))
        return error_set(err, ERR_USAGE, "'%.*s' in brackets: expected ROLE=ARRAY, where the role "
                         "is q, k, v, x, attn, segments, tokens, q_tokens or k_tokens",
                         (int)(length < 80 ? length : 80), item);
    memcpy(name, equal + 1, size);
    name[size] = '\0';
    entry = store_find(store, name);
    if (!entry)
        return no_array(store, name, err);
    *out = (Naming){ role, entry - store->entries };
    return true;
}

/* A further entry of the same array has the role's name, so that one array may have several; what
 * was called so before has no name. */
static bool give_role(Store *store, const Naming *naming, Error *err)
{
    StoreEntry *copy = store_add(store, naming->role, strlen(naming->role), err);

    if (!copy)
        return false;
    *copy = store->entries[naming->entry];
    copy->owned = NULL;
    strcpy(copy->info.name, naming->role);
    return true;
}

bool load_name_arrays(Store *store, const char *brackets, Error *err)
{
    Naming      namings[sizeof(roles) / sizeof(*roles)];
    size_t      most = sizeof(namings) / sizeof(*namings), count = 0, length;
    StoreEntry *before;

    if (!*brackets)
        return true;
    for (const char *at = brackets + 1; *at; at += length + 1) {
        length = strcspn(at, ",]");
        if (count == most)
            return error_set(err, ERR_USAGE, "more arrays in brackets than there are roles");
        if (!read_one(store, at, length, &namings[count], err))
            return false;
        for (size_t i = 0; i < count; i++)
            if (namings[i].role == namings[count].role)
                return error_set(err, ERR_USAGE, "%s is named twice in brackets", namings[i].role);
        count++;
    }
    for (size_t i = 0; i < count; i++)
        if ((before = store_find(store, namings[i].role)))
            before->info.name[0] = '\0';
    for (size_t i = 0; i < count; i++)
        if (!give_role(store, &namings[i], err))
            return false;
    return true;
}
