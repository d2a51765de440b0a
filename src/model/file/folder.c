/* folder.c -- see folder.h.  The tensors' headers are read by input/safetensors.c. */
#include "model/file/folder.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"

#define CONFIG_MAX ((size_t)16 << 20)
#define TENSORS "model.safetensors"
#define INDEX "model.safetensors.index.json"

struct ModelFolder {
    json_t            *config, *pooling;
    Mapped             file; /* the tensors, or the index of the shards */
    Store              store;
    const StoreEntry **order; /* by name */
};

static bool join(char path[PATH_MAX], const char *folder, const char *name)
{
    return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

static bool exists(const char *folder, const char *name)
{
    char path[PATH_MAX];

    return join(path, folder, name) && access(path, F_OK) == 0;
}

static json_t *parse_object(const Text *text, Error *err)
{
    json_error_t why;
    json_t      *root = json_loadb(text_str(text), text->length, JSON_REJECT_DUPLICATES, &why);

    if (json_is_object(root))
        return root;
    if (root)
        error_set(err, ERR_FORMAT, "is JSON, but no object");
    else
        error_set(err, ERR_FORMAT, "bad JSON in line %d, column %d: %.150s", why.line, why.column,
                  why.text);
    json_decref(root);
    return NULL;
}

json_t *folder_json(const char *path, Error *err)
{
    Text    text = { 0 };
    json_t *root = NULL;

    if (!file_read(path, CONFIG_MAX, &text, err))
        ;
    else if (text.length > CONFIG_MAX)
        error_set(err, ERR_FORMAT, "has more than %zu bytes", CONFIG_MAX);
    else
        root = parse_object(&text, err);
    text_free(&text);
    return root;
}

static json_t *read_json(const char *folder, const char *name, Error *err)
{
    char    path[PATH_MAX];
    json_t *root = NULL;

    if (!join(path, folder, name))
        error_set(err, ERR_FILE, "the path is too long");
    else
        root = folder_json(path, err);
    if (!root)
        error_prefix(err, "%s", name);
    return root;
}

/* ---- tensors --------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const StoreEntry *x = *(const StoreEntry *const *)a, *y = *(const StoreEntry *const *)b;

    return strcmp(x->info.name, y->info.name);
}

static bool sort_tensors(ModelFolder *f, Error *err)
{
    f->order = calloc((size_t)f->store.count + 1, sizeof(*f->order));
    if (!f->order)
        return error_set(err, ERR_NOMEM, "no memory for %lld tensors", (long long)f->store.count);
    for (int64_t i = 0; i < f->store.count; i++)
        f->order[i] = &f->store.entries[i];
    qsort(f->order, (size_t)f->store.count, sizeof(*f->order), by_name);
    for (int64_t i = 1; i < f->store.count; i++)
        if (by_name(&f->order[i - 1], &f->order[i]) == 0)
            return error_set(err, ERR_FORMAT, "tensor %.80s is there twice",
                             f->order[i]->info.name);
    return true;
}

static bool no_tensors(const char *path, Error *err)
{
    if (!exists(path, "pytorch_model.bin"))
        return error_set(err, ERR_DATA, "has neither " TENSORS " nor " INDEX);
    pickle_refuse(err);
    return error_prefix(err, "pytorch_model.bin");
}

static bool open_tensors(ModelFolder *f, const char *folder, Error *err)
{
    const char *name = exists(folder, TENSORS) ? TENSORS : INDEX;
    char        path[PATH_MAX];
    bool        ok;

    if (!exists(folder, name))
        return no_tensors(folder, err);
    if (!join(path, folder, name))
        return error_set(err, ERR_FILE, "the path is too long");
    ok = mapped_open(path, &f->file, err) &&
         (strcmp(name, INDEX) == 0 ? store_open_shards(&f->store, f->file, path, err)
                                   : store_open_safetensors(&f->store, f->file, err)) &&
         sort_tensors(f, err);
    return ok || error_prefix(err, "%s", name);
}

/* ---- the folder ------------------------------------------------------------ */

static bool open_folder(ModelFolder *f, const char *path, Error *err)
{
    f->config = read_json(path, "config.json", err);
    if (!f->config)
        return false;
    if (exists(path, "1_Pooling/config.json")) {
        f->pooling = read_json(path, "1_Pooling/config.json", err);
        if (!f->pooling)
            return false;
    }
    return open_tensors(f, path, err);
}

ModelFolder *folder_open(const char *path, Error *err)
{
    ModelFolder *f = calloc(1, sizeof(*f));

    if (!f) {
        error_set(err, ERR_NOMEM, "no memory for a model");
        return NULL;
    }
    if (open_folder(f, path, err))
        return f;
    folder_close(f);
    return NULL;
}

void folder_close(ModelFolder *f)
{
    if (!f)
        return;
    store_close(&f->store);
    mapped_close(&f->file);
    json_decref(f->config);
    json_decref(f->pooling);
    free(f->order);
    free(f);
}

json_t *folder_config(const ModelFolder *f)
{
    return f->config;
}

json_t *folder_pooling(const ModelFolder *f)
{
    return f->pooling;
}

int64_t folder_bytes(const ModelFolder *f)
{
    int64_t bytes = 0;

    if (!f->store.shards_count)
        return f->file.size;
    for (int64_t i = 0; i < f->store.shards_count; i++)
        bytes += f->store.shards[i].size;
    return bytes;
}

int64_t folder_count(const ModelFolder *f)
{
    return f->store.count;
}

const StoreEntry *folder_tensor(const ModelFolder *f, int64_t index)
{
    return f->order[index];
}

static int name_to_entry(const void *name, const void *entry)
{
    return strcmp(name, (*(const StoreEntry *const *)entry)->info.name);
}

const StoreEntry *folder_find(const ModelFolder *f, const char *name)
{
    const StoreEntry *const *found = bsearch(name, f->order, (size_t)f->store.count,
                                             sizeof(*f->order), name_to_entry);

    return found ? *found : NULL;
}
