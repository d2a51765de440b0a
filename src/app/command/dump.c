/* dump.c -- what `run --dump DIR` writes: output.npy, one .npy per view under
 * the names of the spec, figures.json and flops.json. */
#include "app/command/command_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The folder and those above it. */
bool dump_folder(const char *folder, Error *err)
{
    char path[4096];

    if (!*folder || strlen(folder) >= sizeof(path))
        return error_set(err, ERR_USAGE, "--dump: expected a folder's name of 1 to %zu bytes",
                         sizeof(path) - 1);
    strcpy(path, folder);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777); /* whether it is there shows at the end */
        *slash = '/';
    }
    if (mkdir(folder, 0777) == 0 || errno == EEXIST)
        return true;
    return error_set(err, ERR_FILE, "%s: the folder cannot be made: %s", folder, strerror(errno));
}

static bool write_npy(const char *folder, const char *name, const Tensor *t, Error *err)
{
    char path[4096];

    if (snprintf(path, sizeof(path), "%s/%s.npy", folder, name) >= (int)sizeof(path))
        return error_set(err, ERR_FILE, "%.200s: the path is too long", folder);
    return input_write_npy(path, t, err);
}

static bool write_json(const char *folder, const char *name, const Text *json, Error *err)
{
    char path[4096];

    if (snprintf(path, sizeof(path), "%s/%s.json", folder, name) >= (int)sizeof(path))
        return error_set(err, ERR_FILE, "%.200s: the path is too long", folder);
    return file_write(path, text_str(json), json->length, err);
}

/* The last view of a name is the final one; earlier ones are its iterations. */
static bool is_last(const Run *run, int index)
{
    return run_view(run, run->views[index].name) == &run->views[index];
}

static bool dump_view(const View *view, const char *folder, int64_t limit, Error *err)
{
    Arena *arena = arena_new();
    Tensor tensor;
    bool   ok;

    if (!arena)
        return error_set(err, ERR_NOMEM, "view %s: not enough memory", view->name);
    ok = view_materialise(view, arena, limit, &tensor, err) &&
         write_npy(folder, view->name, &tensor, err);
    arena_free(arena);
    return ok;
}

static bool dump_figures(const Run *run, const char *folder, Error *err)
{
    Text text = { 0 };
    Json json = jsonw_to(&text);
    bool ok;

    record_figures_json(run, &json);
    ok = write_json(folder, "figures", &text, err);
    text_free(&text);
    return ok;
}

static bool dump_flops(const Run *run, const char *folder, Error *err)
{
    Flops flops = run_flops(run);
    Text  text = { 0 };
    bool  ok;

    text_addf(&text, "{\"score\": %.17g, \"mixing\": %.17g, \"overhead\": %.17g}", flops.score,
              flops.mix, flops.overhead);
    ok = write_json(folder, "flops", &text, err);
    text_free(&text);
    return ok;
}

bool dump_result(const Result *result, const char *folder, int64_t limit, Text *messages,
                 Error *err)
{
    const Run *run = result->run;

    if (!dump_folder(folder, err) || !write_npy(folder, "output", &run->out, err) ||
        !dump_flops(run, folder, err) || !dump_figures(run, folder, err))
        return false;
    for (int i = 0; i < run->view_count; i++) {
        Error refused = ERROR_INIT;

        if (!is_last(run, i) || dump_view(&run->views[i], folder, limit, &refused))
            continue;
        if (refused.code != ERR_NOMEM) {
            *err = refused;
            return false;
        }
        text_addf(messages, "%s\n", refused.text);
    }
    return true;
}
