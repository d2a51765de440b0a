/* step_figure.c -- a mechanism's steps as pictures; see picture.h.
 *
 * A numbered frame holds the command of all frames with --frame behind it, so that it can be made
 * again alone.
 */
#include "app/figure/picture.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/result/views.h"
#include "attn/study/replay.h"

#define STEPS_MOST 48 /* in one figure or animation */

/* Plane of a head; of several rounds, the first. */
static int64_t step_plane(const Step *step, int64_t head)
{
    int64_t heads = step->result->run->h, planes = view_planes(step->shown);

    if (step->shown->headless)
        return planes - 1;
    return head > 0 && planes % heads == 0 && !view_shared(step->shown) ? head * (planes / heads)
                                                                        : 0;
}

/* Short, for columns of a paper: "7 attend 2/4 Â· connectivity". */
static void step_title(const Step *step, char *text, size_t size)
{
    char times[48] = "";
    Text view = { 0 };

    picture_words(step->shown->name, &view);
    if (step->total > 1)
        snprintf(times, sizeof(times), " %lld/%lld", (long long)step->stage->iteration + 1,
                 (long long)step->total);
    snprintf(text, size, "%d %s%s \xc2\xb7 %s", step->index + 1, step->stage->name, times,
             text_str(&view));
    text_free(&view);
}

static void step_panel(const Step *step, const PictureOptions *o, Panel *panel)
{
    char    title[128];
    int64_t head = o->head < 0 ? 0 : o->head;

    step_title(step, title, sizeof(title));
    panel_init(panel, step->shown, view_components(step->shown),
               step_plane(step, o->head), title);
    panel->causal = step->result->run->causal && step->result->run->n == step->result->run->m;
    if (o->sorted && step_order(step, head))
        picture_sort_panel(step->result, head, step_round(step), panel);
}

const View *steps_watched(Result *result, int from, int to)
{
    const Run *run = result->run;

    for (int i = 0; i < run->trace_count; i++)
        if (run->traces[i].step >= from && run->traces[i].step < to) {
            const View *view = result_derived(result, TRACE_VIEW, NULL);

            return view && view_rows(view) > 1 ? view : NULL;
        }
    return NULL;
}

Plot *step_last_plot(const Step *step)
{
    Step next;

    if (step->run == step->result->run ||
        (result_step(step->result, step->index + 1, &next) &&
         !strcmp(next.stage->name, step->stage->name)))
        return NULL;
    return step_plot(step);
}

/* Curves of the steps [from, to). */
static StepCurves steps_curves(Result *result, int from, int to)
{
    StepCurves curves = { .trace = steps_watched(result, from, to) };

    for (int i = from; i < to && curves.count < 4; i++) {
        Step  step;
        Plot *plot = result_step(result, i, &step) ? step_last_plot(&step) : NULL;

        if (plot)
            curves.last[curves.count++] = i;
        plot_free(plot);
    }
    return curves;
}

static bool curve_panels(Result *result, const StepCurves *curves, Panel *panel, Error *err)
{
    if (curves->trace)
        panel_init(panel++, curves->trace, NULL, 0, "What is watched, over the run");
    for (int i = 0; i < curves->count; i++) {
        Step   step;
        char   title[128];
        double value;
        Plot  *plot;

        result_step(result, curves->last[i], &step);
        plot = step_plot(&step);
        if (!plot)
            return error_set(err, ERR_NOMEM, "not enough memory for the curve of a step");
        snprintf(title, sizeof(title), "Over the %s", step.stage->at_name);
        if (step_watched(&step, 0, &value))
            snprintf(title, sizeof(title), "Query %lld, over the %s", (long long)step.row,
                     step.stage->at_name);
        panel_init_plot(panel++, plot, title);
    }
    return true;
}

Figure *steps_figure(Result *result, const int *which, int count, const StepCurves *curves,
                     const PictureOptions *o, Error *err)
{
    int     more = curves ? curves->count + (curves->trace != NULL) : 0;
    Figure *figure = figure_new(count + more, err);
    bool    ok = figure != NULL;

    for (int i = 0; ok && i < count; i++) {
        Step step;

        result_step(result, which[i], &step);
        step_panel(&step, o, &figure->panels[i]);
        ok = picture_looks(o, &figure->panels[i], err);
    }
    if (ok && more)
        ok = curve_panels(result, curves, &figure->panels[count], err);
    if (!ok) {
        figure_free(figure);
        return NULL;
    }
    figure->rows = o->rows;
    figure->cols = o->cols;
    figure->sharing = o->sharing == SHARE_DIFFERENCES ? SHARE_QUANTITIES : o->sharing;
    figure->legend = true;
    figure->threads = o->threads;
    return figure;
}

/* Side by side, a long replay shows only some steps, unless these alone were asked for. */
static bool is_left_out(const Step *step, int steps)
{
    int64_t each = (step->total + REPLAY_TILES - 1) / REPLAY_TILES;

    return step->run != step->result->run && step->total != steps &&
           (step->stage->iteration + 1) % each != 0 && step->stage->iteration + 1 != step->total;
}

/* Indices of the steps with a picture. */
static int telling_steps(Result *result, int from, int to, bool thin, int *which, int most)
{
    int count = 0;

    for (int i = from; i < to && count < most; i++) {
        Step step;

        if (result_step(result, i, &step) && step.fresh && !(thin && is_left_out(&step, to - from)))
            which[count++] = i;
    }
    return count;
}

/* ---- frames ----------------------------------------------------------------- */

/* Position of the number in "steps-%02d.png"; *digits: its width, 0 for any.  NULL: no number, or
 * err reports a bad one. */
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

bool steps_name_once(const char *path, Error *err)
{
    Error  own = ERROR_INIT;
    size_t length;
    int    digits;

    return !number_in(path, &digits, &length, &own) ||
           error_set(err, ERR_USAGE, "%s: a file each is written of the steps of a mechanism: "
                     "attnscope step MECH -o NAME-%%02d.png", path);
}

/* *moves: an animation, a name with a number, or one frame; else the steps are panels of one
 * figure. */
static bool are_frames(const char *path, const char *frame, const PngOptions *options, bool *moves,
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

/* What the step does stands below each picture, before its counts. */
static void caption_frames(Figure *figure, Result *result, const int *which)
{
    for (int k = 0; k < figure->count; k++) {
        Panel      *panel = &figure->panels[k];
        Text        view = { 0 };
        Step        step;
        const char *said;
        size_t      length;

        if (!result_step(result, which[k], &step))
            continue;
        said = step.stage->said ? step.stage->said : step.note;
        length = said ? strlen(said) : 0;
        picture_words(step.shown->name, &view);
        snprintf(panel->title, sizeof(panel->title), "step %d of %d: ", step.index + 1, step.count);
        step_name(&step, panel->title + strlen(panel->title),
                  sizeof(panel->title) - strlen(panel->title));
        text_add(&view, said ? ": " : "");
        text_add_bytes(&view, said ? said : "", length - (length && said[length - 1] == '.'));
        snprintf(panel->sizes, sizeof(panel->sizes), "%s", text_str(&view));
        text_free(&view);
    }
}

/* Writes the frame to the file of its number, from 1. */
static bool save_one(const Figure *figure, Result *result, int frame, const char *line,
                     const PngOptions *options, const char *path, Error *err)
{
    size_t      length = 0;
    int         digits = 0;
    const char *at = number_in(path, &digits, &length, err);
    Text        name = { 0 };
    bool        ok;

    if (at)
        text_addf(&name, "%.*s%0*d%s", (int)(at - path), path, digits, frame + 1, at + length);
    ok = at && picture_save_frames(figure, frame, result, line, options, text_str(&name), err);
    text_free(&name);
    return ok;
}

static bool save_numbered(const Figure *figure, Result *result, const char *line,
                          const PngOptions *options, const char *path, Error *err)
{
    bool ok = true;

    for (int k = 0; ok && k < figure->count; k++) {
        Text command = { 0 };

        text_addf(&command, "%s --frame %d", line, k + 1);
        ok = save_one(figure, result, k, text_str(&command), options, path, err);
        text_free(&command);
    }
    return ok;
}

static bool save_frames(Figure *figure, Result *result, const int *which, const char *frame,
                        const char *line, const PngOptions *options, const char *path, Error *err)
{
    char *end;
    long  number = frame ? strtol(frame, &end, 10) : 0;

    caption_frames(figure, result, which);
    if (frame && (end == frame || *end || number < 1 || number > figure->count))
        return error_set(err, ERR_USAGE, "--frame: there are frames 1 to %d, not '%s'",
                         figure->count, frame);
    if (!frame)
        return strchr(path, '%') ? save_numbered(figure, result, line, options, path, err)
                                 : picture_save_frames(figure, -1, result, line, options, path,
                                                       err);
    return strchr(path, '%') ? save_one(figure, result, (int)number - 1, line, options, path, err)
                             : picture_save_frames(figure, (int)number - 1, result, line, options,
                                                   path, err);
}

bool steps_save(Result *result, int from, int to, const PictureOptions *o,
                const char *frame, const char *line, const PngOptions *options, const char *path,
                Error *err)
{
    int        which[STEPS_MOST], count;
    StepCurves curves = steps_curves(result, from, to);
    Figure    *figure;
    Text       request = { 0 }, words = { 0 };
    bool       moves, ok;

    if (!are_frames(path, frame, options, &moves, err))
        return false;
    count = telling_steps(result, from, to, !moves, which, STEPS_MOST);
    if (!count)
        return error_set(err, ERR_USAGE, "%s: no matrix is made at these steps; leave out --at",
                         result->request.mechanism);
    figure = steps_figure(result, which, count, moves ? NULL : &curves, o, err);
    if (!figure)
        return false;
    request_text(&result->request, &request);
    mechanism_words(result->request.above ? NULL : result->run->mechanism, text_str(&request),
                    &words);
    snprintf(figure->title, sizeof(figure->title), "%s",
             o->title ? o->title : text_str(&words));
    text_free(&request);
    text_free(&words);
    picture_caption_steps(figure, result, o); /* of each frame, too */
    ok = moves ? save_frames(figure, result, which, frame, line, options, path, err)
               : picture_save(figure, &result, 1, line, options, path, err);
    figure_free(figure);
    return ok;
}
