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

/* The array takes the role's name; one that had it has none any more. */
static bool give_role(Store *store, const char *role, const char *name, Error *err)
{
    StoreEntry *entry = store_find(store, name), *before = store_find(store, role);

    if (!entry)
        return no_array(store, name, err);
    if (before && before != entry)
        before->info.name[0] = '\0';
    strcpy(entry->info.name, role);
    return true;
}

/* "q=query" of so many bytes. */
static bool apply_one(Store *store, const char *item, size_t length, Error *err)
{
    const char *equal = memchr(item, '=', length), *role;
    char        name[sizeof(store->entries->info.name)];
    size_t      size = equal ? length - (size_t)(equal + 1 - item) : 0;

    role = equal ? role_at(item, (size_t)(equal - item)) : NULL;
    if (!role || size == 0 || size >= sizeof(name))
        return error_set(err, ERR_USAGE, "'%.*s' in brackets: expected ROLE=ARRAY, where the role "
                         "is q, k, v, x, attn, segments, tokens, q_tokens or k_tokens",
                         (int)(length < 80 ? length : 80), item);
    memcpy(name, equal + 1, size);
    name[size] = '\0';
    return give_role(store, role, name, err);
}

bool load_name_arrays(Store *store, const char *brackets, Error *err)
{
    size_t length;

    if (!*brackets)
        return true;
    for (const char *at = brackets + 1; *at; at += length + 1) {
        length = strcspn(at, ",]");
        if (!apply_one(store, at, length, err))
            return false;
    }
    return true;
}
