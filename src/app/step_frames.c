/* step_frames.c -- see step_frames.h.
 *
 * A numbered frame holds the command of all with --frame behind it, so that it can be
 * made again by itself.
 */
#include "app/step_frames.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command_parts.h"
#include "app/picture.h"

/* Where the number stands in "steps-%02d.png": *digits of it, 0 as many as it takes; NULL:
 * there is none, or err says what is wrong with it. */
static const char *number_in(const char *path, int *digits, size_t *length, Error *err)
{
    const char *at = strchr(path, '%'), *end = at ? at + 1 : NULL;

    if (!at)
        return NULL;
    *digits = 0;
    while (isdigit((unsigned char)*end) && *digits < 10)
        *digits = 10 * *digits + *end++ - '0';
    if (*end == 'd' && *digits < 10 && !strchr(end, '%')) {
        *length = (size_t)(end + 1 - at);
        return at;
    }
    error_set(err, ERR_USAGE, "%s: the number of a frame is written %%d or %%02d, once", path);
    return NULL;
}

bool steps_are_frames(const char *path, const char *frame, const PngOptions *options, bool *moves,
                      Error *err)
{
    FigureFormat format;
    Error        own = ERROR_INIT;
    size_t       length;
    int          digits;

    if (!figure_format(path, options, &format, err))
        return false;
    *moves = format == FORMAT_APNG_FILE || frame || number_in(path, &digits, &length, &own);
    if (own.code != ERR_NONE)
        return error_set(err, own.code, "%s", own.text);
    return format != FORMAT_APNG_FILE || (!frame && !strchr(path, '%')) ||
           error_set(err, ERR_USAGE, "%s: an animation is one file of all frames", path);
}

/* What the step does, under its picture. */
static void add_words(Figure *figure, Result *result, const int *which)
{
    for (int k = 0; k < figure->count; k++) {
        Panel *panel = &figure->panels[k];
        Step   step;

        if (!result_step(result, which[k], &step))
            continue;
        snprintf(panel->title, sizeof(panel->title), "step %d of %d: ", step.index + 1, step.count);
        step_name(&step, panel->title + strlen(panel->title),
                  sizeof(panel->title) - strlen(panel->title));
        snprintf(panel->caption, sizeof(panel->caption), "%s%s%s", step.shown->name,
                 step.note ? ": " : "", step.note ? step.note : "");
    }
}

static bool save(const Figure *figure, Result *result, int only, const char *command,
                 const PngOptions *options, const char *path, Error *err)
{
    PngOptions         own = *options;
    Text               bytes = { 0 }, storage = { 0 };
    const char *const *metadata;
    FigureFormat       format;
    bool               ok;

    if (!figure_format(path, options, &format, err))
        return false;
    metadata = picture_metadata(figure, &result, 1, command, &storage);
    own.metadata = metadata;
    ok = figure_frames(figure, only, format, &own, &bytes, err) &&
         file_write(path, bytes.data, bytes.length, err);
    free((void *)(uintptr_t)metadata);
    text_free(&storage);
    text_free(&bytes);
    return ok;
}

static bool save_numbered(const Figure *figure, Result *result, const Call *call,
                          const PngOptions *options, Error *err)
{
    const char *path = call->values[OPT_OUTPUT], *at;
    size_t      length = 0;
    int         digits = 0;
    bool        ok = true;

    at = number_in(path, &digits, &length, err);
    for (int k = 0; at && ok && k < figure->count; k++) {
        Text name = { 0 }, command = { 0 };

        text_addf(&name, "%.*s%0*d%s", (int)(at - path), path, digits, k + 1, at + length);
        text_addf(&command, "%s --frame %d", call->line, k + 1);
        ok = save(figure, result, k, text_str(&command), options, text_str(&name), err);
        text_free(&name);
        text_free(&command);
    }
    return at && ok;
}

bool steps_save_frames(Figure *figure, Result *result, const int *which,
                       const Call *call, const PngOptions *options, Error *err)
{
    const char *frame = call->values[OPT_FRAME], *path = call->values[OPT_OUTPUT];
    char       *end;
    long        number = frame ? strtol(frame, &end, 10) : 0;

    add_words(figure, result, which);
    if (frame && (end == frame || *end || number < 1 || number > figure->count))
        return error_set(err, ERR_USAGE, "--frame: there are frames 1 to %d, not '%s'",
                         figure->count, frame);
    if (frame)
        return save(figure, result, (int)number - 1, call->line, options, path, err);
    return strchr(path, '%') ? save_numbered(figure, result, call, options, err)
                             : save(figure, result, -1, call->line, options, path, err);
}
