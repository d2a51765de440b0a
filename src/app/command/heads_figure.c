/* heads_figure.c -- heads -o: labels and scores as figures of layers x heads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/command/heads.h"

#define PANELS_MOST (HEAD_SCORE_COUNT + 1)

/* As head_labels; first letters differ, because figures as text show these. */
static const char *const categories[] = { "induction", "previous", "self", "key 0 (sink)", "broad",
                                          "mixed", "offset", NULL };

typedef struct HeadsFigure {
    const HeadsResult *result;
    View               views[PANELS_MOST];
    char              *names[PANELS_MOST]; /* "label", "entropy" */
    int                count;
    Arena             *arena;
} HeadsFigure;

/* A matrix of layers x heads; its numbers are the caller's to fill. */
static View *add_view(HeadsFigure *f, const char *name, const char *quantity, DType dtype,
                      Error *err)
{
    View   *view = &f->views[f->count];
    int64_t shape[] = { f->result->layers, f->result->heads };

    *view = (View){ .kind = dtype == DT_I32 ? VIEW_BUCKETS : VIEW_TENSOR, .stage = "heads",
                    .iteration = -1, .step = -1, .dtype = dtype, .rank = 2,
                    .shape = { shape[0], shape[1] }, .rows = "layer", .cols = "head",
                    .quantity = quantity, .tensor = tensor_new(f->arena, dtype, 2, shape) };
    snprintf(view->name, sizeof(view->name), "%s", name);
    if (!view->tensor.data) {
        error_set(err, ERR_NOMEM, "not enough memory for a figure of %lld layers",
                  (long long)shape[0]);
        return NULL;
    }
    f->count++;
    return view;
}

static bool add_labels(HeadsFigure *f, Error *err)
{
    View    *view = add_view(f, "label", NULL, DT_I32, err);
    int32_t *out = view ? view->tensor.data : NULL;

    for (int64_t at = 0; out && at < f->result->layers * f->result->heads; at++)
        out[at] = head_label_index(f->result->score[at].shown);
    if (view)
        view->categories = categories;
    return view != NULL;
}

/* A score that applies to no head has no panel. */
static bool add_score(HeadsFigure *f, HeadScore which, Error *err)
{
    const char *unit = which == HEAD_ENTROPY    ? "nats"
                       : which == HEAD_DISTANCE ? "tokens"
                                                : "weight";
    int64_t     count = f->result->layers * f->result->heads, given = 0;
    View       *view;
    float      *out;

    for (int64_t at = 0; at < count; at++)
        given += !isnan(head_score(&f->result->score[at], which));
    if (!given)
        return true;
    view = add_view(f, head_score_name(which), unit, DT_F32, err);
    out = view ? view->tensor.data : NULL;
    for (int64_t at = 0; out && at < count; at++)
        out[at] = (float)head_score(&f->result->score[at], which);
    return view != NULL;
}

/* The names with commas between, or all; each at most once. */
static bool add_views(HeadsFigure *f, const char *list, Error *err)
{
    bool      ok = list || add_labels(f, err);
    HeadScore which;
    char      name[32];

    for (int s = 0; ok && !list && s < HEAD_SCORE_COUNT; s++)
        ok = add_score(f, (HeadScore)s, err);
    while (ok && list) {
        size_t length = strcspn(list, ",");

        snprintf(name, sizeof(name), "%.*s", (int)length, list);
        list = list[length] ? list + length + 1 : NULL;
        if (f->count == PANELS_MOST)
            return error_set(err, ERR_USAGE, "--score: at most %d panels", PANELS_MOST);
        if (!strcmp(name, "label"))
            ok = add_labels(f, err);
        else if (!head_score_parse(name, &which, NULL))
            ok = error_set(err, ERR_USAGE, "--score: expected label, previous, self, first, next, "
                           "entropy, distance, near, induction or offset, got '%s'", name);
        else
            ok = add_score(f, which, err);
    }
    return ok && (f->count || error_set(err, ERR_DATA, "--score: no head of this model and text "
                                        "has such a score"));
}

bool heads_figure_check(const Call *call, Error *err)
{
    PngOptions png;

    if (!call->file_count && (call->values[OPT_SCORE] || call->values[OPT_FORMAT]))
        return error_set(err, ERR_USAGE, "--score and --format are of a figure: add -o FILE.png");
    if (call->file_count && (call->values[OPT_JSON] || call->values[OPT_CSV] ||
                             call->values[OPT_MD] || call->values[OPT_SORT] ||
                             call->values[OPT_LAYER]))
        return error_set(err, ERR_USAGE, "-o writes a figure of all layers and heads: leave out "
                         "--json, --csv, --md, --sort and --layer");
    return call_png_options(call, &png, err);
}

bool heads_figure(const Call *call, const HeadsResult *result, const char *words, Error *err)
{
    HeadsFigure f = { .result = result, .arena = arena_new() };
    Figure     *figure = NULL;
    bool        ok = f.arena || error_set(err, ERR_NOMEM, "not enough memory for a figure");

    ok = ok && add_views(&f, call->values[OPT_SCORE], err);
    if (ok)
        figure = figure_new(f.count, err);
    for (int k = 0; figure && k < f.count; k++) {
        panel_init(&figure->panels[k], &f.views[k], NULL, 0, f.views[k].name);
        snprintf(figure->panels[k].caption, sizeof(figure->panels[k].caption), " ");
    }
    if (figure) {
        snprintf(figure->title, sizeof(figure->title), "%s",
                 call->values[OPT_TITLE] ? call->values[OPT_TITLE] : "");
        snprintf(figure->caption, sizeof(figure->caption), "%s",
                 call->values[OPT_CAPTION] ? call->values[OPT_CAPTION] : words);
        ok = call_write_figure(call, figure, NULL, 0, NULL, err);
    }
    figure_free(figure);
    arena_free(f.arena);
    return ok && figure;
}
