/* model.c -- opens a file or a folder as a Model; see model.h. */
#include "model/model.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/text.h"
#include "model/config.h"
#include "model/load.h"

/* What a model holds until it is closed; the Model itself is in the arena. */
typedef struct Owned {
    Arena    *arena;
    ModelFile file;
} Owned;

static bool is_folder(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool is_file(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

bool model_is_model(const char *path)
{
    char   begin[4], config[PATH_MAX];
    FILE  *file;
    size_t got = 0;

    if (is_folder(path))
        return snprintf(config, sizeof(config), "%s/config.json", path) < (int)sizeof(config) &&
               is_file(config);
    file = is_file(path) ? fopen(path, "rbe") : NULL; /* a pipe would be waited for */
    if (file) {
        got = fread(begin, 1, 4, file);
        fclose(file);
    }
    return got == 4 && memcmp(begin, "GGUF", 4) == 0;
}

/* ---- parts ----------------------------------------------------------------- */

static bool read_config(Model *m, const ModelFile *file, Arena *arena, Error *err)
{
    Text notes = { 0 };
    bool ok = file->gguf ? config_from_gguf(file->gguf, arena, &m->config, &notes, err)
                         : config_from_json(folder_config(file->folder),
                                            folder_pooling(file->folder), arena, &m->config,
                                            &notes, err);

    m->notes = ok && text_ok(&notes) ? arena_strdup(arena, text_str(&notes)) : NULL;
    if (ok && !m->notes)
        ok = error_set(err, ERR_NOMEM, "no memory for a model");
    text_free(&notes);
    return ok;
}

/* A model without a tokenizer still runs on ids. */
static bool read_tokenizer(Model *m, const ModelFile *file, Error *err)
{
    Error why = ERROR_INIT;

    m->tokenizer = file->gguf ? tokenizer_from_gguf(file->gguf, &why)
                              : tokenizer_from_folder(m->path, &why);
    if (!m->tokenizer) {
        snprintf(m->tokenizer_why, sizeof(m->tokenizer_why), "%s", why.text);
        return true;
    }
    return tokenizer_size(m->tokenizer) <= m->config.vocab ||
           error_set(err, ERR_DATA, "the tokenizer has %lld tokens, but the embedding has %lld "
                     "rows", (long long)tokenizer_size(m->tokenizer),
                     (long long)m->config.vocab);
}

static bool open_file(Model *m, ModelFile *file, Error *err)
{
    if (is_folder(m->path))
        file->folder = folder_open(m->path, err);
    else
        file->gguf = gguf_open(m->path, err);
    if (!file->folder && !file->gguf)
        return false;
    m->format = file->gguf ? "gguf" : "folder";
    m->file_bytes = file->gguf ? gguf_file_bytes(file->gguf) : folder_bytes(file->folder);
    return true;
}

/* ---- the whole ------------------------------------------------------------- */

static Model *new_model(const char *path, Error *err)
{
    Arena *arena = arena_new();
    Model *m = arena ? arena_zalloc(arena, 1, sizeof(*m)) : NULL;
    Owned *owned = m ? arena_zalloc(arena, 1, sizeof(*owned)) : NULL;

    if (owned)
        m->name = m->path = arena_strdup(arena, path);
    if (!owned || !m->path) {
        arena_free(arena);
        error_set(err, ERR_NOMEM, "no memory for a model");
        return NULL;
    }
    owned->arena = arena;
    m->owned = owned;
    return m;
}

Model *model_open(const char *path, Error *err)
{
    Model *m = new_model(path, err);
    Owned *owned;

    if (!m)
        return NULL;
    owned = m->owned;
    if (open_file(m, &owned->file, err) && read_config(m, &owned->file, owned->arena, err) &&
        model_load(m, &owned->file, owned->arena, err) && read_tokenizer(m, &owned->file, err))
        return m;
    model_failed(path, err);
    model_close(m);
    return NULL;
}

bool model_name(Model *m, const char *name, Error *err)
{
    char *copy = arena_strdup(((Owned *)m->owned)->arena, name);

    if (!copy)
        return error_set(err, ERR_NOMEM, "no memory for a model's name");
    m->name = copy;
    return true;
}

void model_close(Model *m)
{
    Owned *owned = m ? m->owned : NULL;

    if (!m)
        return;
    if (m->tokenizer)
        tokenizer_free(m->tokenizer);
    gguf_close(owned->file.gguf);
    folder_close(owned->file.folder);
    arena_free(owned->arena); /* the Model, too */
}
