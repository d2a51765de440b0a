/* picture.c -- which view is shown, and how; see picture.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "app/result/views.h"
#include "attn/study/row.h"

static bool is_matrix(const View *view)
{
    return view->rank >= 2 && view_rows(view) > 0 && view_cols(view) > 0;
}

static bool is_curve(const View *view)
{
    ViewCurve curve;

    return view_curve(view, &curve) && view_rows(view) > 0 && view_cols(view) > 0;
}

static const View *usual_view(const Run *run)
{
    const View *connectivity = run_view(run, "connectivity");
    const View *weights = run_view(run, "weights");
    const char *picture = run->mechanism->picture;

    if (picture && run_view(run, picture))
        return run_view(run, picture);
    if (connectivity && connectivity->support && !pattern_is_trivial(run, connectivity->support))
        return connectivity;
    if (weights)
        return weights;
    if (connectivity)
        return connectivity;
    for (int i = 0; i < run->view_count; i++)
        if (is_matrix(&run->views[i]))
            return &run->views[i];
    for (int i = 0; i < run->view_count; i++)
        if (is_curve(&run->views[i]))
            return &run->views[i];
    return NULL;
}

static void list_views(const Run *run, Text *out)
{
    for (int i = 0; i < run->view_count; i++)
        if (run_view(run, run->views[i].name) == &run->views[i])
            text_addf(out, "%s%s", out->length ? ", " : "", run->views[i].name);
}

bool picture_grid(const char *text, int *rows, int *cols, bool *loose)
{
    int end = 0;

    if (sscanf(text, "%4dx%4d%n", rows, cols, &end) != 2 || *rows < 1 || *cols < 1)
        return false;
    *loose = !strcmp(text + end, "~");
    return *loose || !text[end];
}

const char *picture_nearest_view(const Run *run, const char *name)
{
    Meant nearest = { name, NULL, 2 + (int)strlen(name) / 3 };

    for (int i = 0; i < run->view_count; i++)
        meant_offer(&nearest, run->views[i].name);
    return nearest.name;
}

/* The view of missed keys; computed here the first time. */
static const View *missed_of(const Result *result, Error *err)
{
    Result       *owner = (Result *)(uintptr_t)result; /* the result is cached */
    Threads      *threads = NULL;
    const Missed *missed = result_missed_soon(owner, result->request.keys);

    if (!missed) {
        int count = result->request.threads;

        threads = threads_new(count > 0 ? count : threads_default());
        missed = result_missed(owner, result->request.keys, threads, NULL, err);
        threads_free(threads);
    }
    return missed ? missed_view(missed) : NULL;
}

static bool is_reach(const Run *run, const char *name)
{
    return name && !strcmp(name, REACH_VIEW) && !run_view(run, name);
}

/* Views that are computed from the run's own. */
static void list_others(Result *result, Text *out)
{
    const View *view;

    if (result_reach(result, NULL, NULL))
        text_add(out, ", " REACH_VIEW);
    if (missed_is_offered(result->run))
        text_add(out, ", " MISSED_VIEW);
    for (int i = 0; (view = result_derived_at(result, i)); i++)
        text_addf(out, ", %s", view->name);
    text_add(out, ", plot(NAME)");
}

const View *result_view(Result *result, const char *name, Error *err)
{
    const Run  *run = result->run;
    const View *view = name && strcmp(name, "auto") ? run_view(run, name) : usual_view(run);
    const char *nearest;
    Text        names = { 0 };
    Error       own = ERROR_INIT;

    if (run->err.code != ERR_NONE) {
        if (err)
            *err = run->err;
        return NULL;
    }
    if (is_reach(run, name))
        return result_reach(result, NULL, err);
    if (name && !strcmp(name, MISSED_VIEW) && !run_view(run, name))
        return missed_of(result, err);
    if (view && (is_matrix(view) || is_curve(view)))
        return view;
    if (!view && name && (view = result_derived(result, name, &own)))
        return view;
    list_views(run, &names);
    list_others(result, &names);
    nearest = !view && name ? picture_nearest_view(run, name) : NULL;
    if (own.code != ERR_NONE)
        error_set(err, own.code, "%s", own.text);
    else
        error_set(err, ERR_USAGE, "%s has no %s '%s'%s%s%s (views: %s)", run->mechanism->id,
                  view ? "matrix called" : "view", name ? name : "auto",
                  nearest ? "; nearest is '" : "", nearest ? nearest : "", nearest ? "'" : "",
                  text_str(&names));
    text_free(&names);
    return NULL;
}

const Pattern *view_components(const View *view)
{
    return view->kind == VIEW_COMPONENTS || view->kind == VIEW_PATTERN ? view->support : NULL;
}

/* ---- panels ----------------------------------------------------------------- */

static void label_panel(const Result *result, const View *view, Panel *out)
{
    const Input *input = result->input;

    if (!strcmp(view->rows, "query") && view_rows(view) == input->n)
        out->row_labels = input->q_tokens;
    if (!strcmp(view->cols, "key") && view_cols(view) == input->m)
        out->col_labels = input->k_tokens;
}

/* "window(window=5) · reach, 12 layers" */
void picture_words(const char *name, Text *out)
{
    for (; *name; name++)
        text_add_bytes(out, *name == '_' ? " " : name, 1);
}

bool picture_all_heads(const Panel *panel)
{
    bool all = plot_has_heads(panel->view) && !panel->head;

    for (int k = 0; k < panel->overlay_count; k++)
        all &= plot_has_heads(panel->overlays[k].view) && !panel->overlays[k].head;
    return panel->made || all;
}

static void title_panel(const Result *result, const View *view, char *text, size_t size)
{
    Text title = { 0 };

    request_text(&result->request, &title);
    text_add(&title, " \xc2\xb7 ");
    picture_view_name(result->run, view, &title);
    snprintf(text, size, "%s", text_str(&title));
    text_free(&title);
}

bool picture_reach(const Result *result, const ReachOptions *options, Panel *panel, Error *err)
{
    const View *view;

    if (panel->view->kind != VIEW_HOPS)
        return true;
    view = result_reach(result, options, err);
    if (!view)
        return false;
    panel->view = view;
    title_panel(result, view, panel->title, sizeof(panel->title));
    return true;
}

bool picture_panel(Result *result, const char *name, int64_t head, Panel *out, Error *err)
{
    const View *view = result_view(result, name, err);
    char        title[128];
    int64_t     plane = 0, count;

    if (!view)
        return false;
    count = view->headless ? view_planes(view) : result->run->h;
    if (head >= count)
        return error_set(err, ERR_USAGE, "%s %lld: there are %lld (0..%lld)",
                         view->headless ? view->round : "head", (long long)head, (long long)count,
                         (long long)count - 1);
    if (view->headless) /* the last round has seen most */
        plane = head >= 0 ? head : count - 1;
    else if (head > 0 && !view_shared(view))
        plane = head * (view_planes(view) / result->run->h);
    if (view_is_derived(result, view) && !derived_ready(view, plane, err))
        return false;
    title_panel(result, view, title, sizeof(title));
    panel_init(out, view, view_components(view), plane, title);
    out->head = plot_has_heads(view) && head >= 0 ? head + 1 : 0;
    out->causal = result->run->causal && result->run->n == result->run->m;
    label_panel(result, view, out);
    return true;
}

bool picture_overlay(Result *result, const char *view, int64_t head, Panel *panel, Error *err)
{
    Overlay *o = &panel->overlays[panel->overlay_count];
    Panel    other;

    if (panel->overlay_count == PANEL_OVERLAYS)
        return error_set(err, ERR_USAGE, "at most %d curves in one plot", PANEL_OVERLAYS + 1);
    if (!picture_panel(result, view, head, &other, err))
        return false;
    if (!other.plot || !panel->plot)
        return error_set(err, ERR_USAGE, "only curves share a plot: %s is a matrix",
                         other.plot ? panel->view->name : other.view->name);
    *o = (Overlay){ .view = other.view, .plane = other.plane, .head = other.head };
    snprintf(o->name, sizeof(o->name), "%s", result->request.mechanism);
    panel->overlay_count++;
    return true;
}

bool picture_looks(const PictureOptions *options, Panel *panel, Error *err)
{
    if (options->pool && !pool_parse(options->pool, &panel->pool, err))
        return false;
    panel->scale_given = panel->scale_given || options->scale;
    if (options->scale && !scale_parse(options->scale, &panel->scale, err))
        return false;
    if (options->map && !colour_map_parse(options->map, &panel->map, err))
        return false;
    panel->map_given = options->map != NULL;
    return true;
}

bool picture_exclude(int64_t key, Panel *panel, Error *err)
{
    if (panel->plot || strcmp(panel->view->cols, "key") != 0)
        return true;
    if (key < 0 || key >= view_cols(panel->view))
        return error_set(err, ERR_USAGE, "--exclude: %s has the keys 0..%lld, not %lld",
                         panel->view->name, (long long)view_cols(panel->view) - 1, (long long)key);
    panel->excludes = true;
    panel->excluded = key;
    return true;
}

bool picture_region(Region r, Panel *panel, Error *err)
{
    int64_t rows = view_rows(panel->view), cols = view_cols(panel->view);

    if ((r.row1 == 0 && r.col1 == 0) || panel->plot) /* regions are of matrices */
        return true;
    if (r.row0 < 0 || r.col0 < 0 || r.row0 >= r.row1 || r.col0 >= r.col1 || r.row1 > rows ||
        r.col1 > cols)
        return error_set(err, ERR_USAGE, "the region %lld:%lld,%lld:%lld is not inside the %lld x "
                         "%lld view %s", (long long)r.row0, (long long)r.row1, (long long)r.col0,
                         (long long)r.col1, (long long)rows, (long long)cols, panel->view->name);
    panel->region = r;
    return true;
}

static bool subtract(const PanelChoice *choice, Panel *panel, Error *err)
{
    const char *name = *choice->spec.minus_view ? choice->spec.minus_view : panel->view->name;
    const View *minus = result_view(choice->minus, name, err);

    if (!minus)
        return false;
    if (view_rows(minus) != view_rows(panel->view) || view_cols(minus) != view_cols(panel->view))
        return error_set(err, ERR_USAGE, "no difference: %s and %s have views of other shapes",
                         choice->minus->request.mechanism, choice->result->request.mechanism);
    if (panel->view->kind == VIEW_HOPS)
        return error_set(err, ERR_USAGE, "no difference: what is not reached has no number of "
                         "layers");
    panel->minus = minus;
    panel->components = NULL;
    panel->map = MAP_DIVERGING;
    return true;
}

const char *panel_choice_view(const PanelChoice *choice)
{
    return *choice->spec.view ? choice->spec.view : NULL;
}

int64_t picture_head(const PanelChoice *choice, const PictureOptions *options)
{
    return choice->spec.head >= 0 ? choice->spec.head : options->head;
}

static bool make_panel(const PanelChoice *choice, const PictureOptions *options, Panel *panel,
                       Error *err)
{
    const char *chosen = panel_choice_view(choice);
    const char *view = chosen || !choice->minus ? chosen : "weights";
    int64_t     head = picture_head(choice, options);

    if (!picture_panel(choice->result, view, head, panel, err) ||
        !picture_reach(choice->result, &options->reach, panel, err) ||
        !picture_looks(options, panel, err) || !picture_region(options->region, panel, err) ||
        (options->excludes && !picture_exclude(options->excluded, panel, err)))
        return false;
    if (choice->minus && !subtract(choice, panel, err))
        return false;
    if (!panel_spec_apply(&choice->spec, choice->result, panel, err))
        return false;
    if (options->span)
        return picture_span(choice->result, options->span, NULL, panel, err);
    if (options->sorted || choice->spec.sorted)
        picture_sort_panel(choice->result, head < 0 ? 0 : head,
                           result_order_round(choice->result, panel->view), panel);
    return true;
}

/* Entries that are read exactly for one panel.  A larger dense view (n > 31622) is sampled by rows,
 * and its caption says so. */
#define MOST_ENTRIES 1e9

/* Plot number `number`, of the choice `at` and those that join it. */
static bool make_plot(const PanelChoice *panels, int count, int at, PlotKind kind, int number,
                      const PictureOptions *options, Panel *panel, Error *err)
{
    Result     *results[PLOT_ROWS_MOST];
    char        texts[PLOT_ROWS_MOST][PLOT_ROW];
    const char *names[PLOT_ROWS_MOST];
    int         own = 1 + picture_joining(panels, at, count);

    if (own > PLOT_ROWS_MOST)
        return error_set(err, ERR_USAGE, "more than %d mechanisms in one plot", PLOT_ROWS_MOST);
    for (int i = 0; i < own; i++) {
        const char *view = panel_choice_view(&panels[at + i]);

        if (!view || strcmp(view, panels[at].spec.view) != 0)
            return error_set(err, ERR_USAGE, "%s and %s do not share a plot",
                             panels[at].spec.view, view ? view : "a matrix");
        picture_result_name(panels, count, at + i, options, texts[i], sizeof(texts[i]));
        names[i] = texts[i];
        results[i] = panels[at + i].result;
    }
    if (options->stored)
        return picture_stored(kind, options->stored, number, panel, err);
    return picture_plot(kind, results, names, own,
                        panels[at].ceilings ? panels[at].ceilings : options->ceilings, panel, err);
}

static bool make_panels(const PanelChoice *panels, int count, const PictureOptions *options,
                        Figure *figure, Error *err)
{
    PlotKind kind;

    for (int i = 0, at = -1; i < count; i++) {
        Panel *panel = &figure->panels[at += !panels[i].joins];

        if (plot_word(panel_choice_view(&panels[i]), &kind, NULL)) {
            if (panels[i].joins)
                return error_set(err, ERR_USAGE, "%s is no curve of that plot",
                                 panels[i].spec.view);
            if (!make_plot(panels, count, i, kind, at, options, panel, err))
                return false;
            i += picture_joining(panels, i, count);
        } else if (panels[i].joins) {
            if (!picture_overlay(panels[i].result, panel_choice_view(&panels[i]),
                                 picture_head(&panels[i], options), panel, err))
                return false;
        } else if (!make_panel(&panels[i], options, panel, err)) {
            return false;
        }
    }
    return true;
}

bool picture_strips(Figure *figure, const PanelChoice *panels, int count,
                    const PictureOptions *options, const atomic_bool *cancel, Error *err)
{
    bool  any = false;
    Error why = ERROR_INIT;

    for (int i = 0, at = -1; i < count; i++) {
        Panel  *panel = &figure->panels[at += !panels[i].joins];
        int64_t head = picture_head(&panels[i], options);

        if (panels[i].joins || panel->plot || panel->picture)
            continue;
        if (margin_of_panel(panels[i].result, panels[i].minus, &options->strips,
                            head < 0 ? 0 : head, figure->threads, cancel, panel, &why))
            any = true;
        else if (why.code != ERR_UNSUPPORTED)
            break;
    }
    if ((any && (why.code == ERR_NONE || why.code == ERR_UNSUPPORTED)) || why.code == ERR_NONE)
        return true;
    *err = why;
    return false;
}

Figure *picture_of_panels(const PanelChoice *panels, int count, const PictureOptions *options,
                          Error *err)
{
    int     joined = 0;
    Figure *figure;

    for (int i = 0; i < count; i++)
        joined += panels[i].joins;
    figure = figure_new(count - joined, err);

    if (!figure)
        return NULL;
    figure->rows = options->rows;
    figure->cols = options->cols;
    figure->loose = options->loose;
    figure->sharing = options->sharing;
    figure->threads = options->threads;
    figure->budget_entries = MOST_ENTRIES;
    figure->numbers = options->stored ? stored_figure_copy(options->stored) : NULL;
    if (!make_panels(panels, count, options, figure, err) ||
        (options->strips.kind && !picture_strips(figure, panels, count, options, NULL, err))) {
        figure_free(figure);
        return NULL;
    }
    picture_caption(figure, panels, count, options);
    return figure;
}

/* ---- what one query sees, as an image ------------------------------------ */

int64_t picture_width(const Result *result)
{
    return result->run->width > 0 ? result->run->width : result->input->width;
}

/* "137" or "row,column" of an image with `width` columns and n pixels. */
static bool parse_query(const char *text, int64_t width, int64_t n, int64_t *query, Error *err)
{
    long long y, x;
    int       end = 0;

    if (sscanf(text, "%lld,%lld%n", &y, &x, &end) == 2 && !text[end]) {
        if (y < 0 || x < 0 || x >= width || y > n / width || y * width + x >= n)
            return error_set(err, ERR_USAGE,
                             "--span %s: the image has %lld columns and %lld rows (%lld pixels)",
                             text, (long long)width, (long long)((n - 1) / width + 1),
                             (long long)n);
        *query = y * width + x;
        return true;
    }
    end = 0;
    if (sscanf(text, "%lld%n", &y, &end) != 1 || text[end])
        return error_set(err, ERR_USAGE,
                         "--span: expected a query's number or row,column like 5,7, got '%s'",
                         text);
    if (y < 0 || y >= n)
        return error_set(err, ERR_USAGE, "--span %s: there are %lld queries (0..%lld)", text,
                         (long long)n, (long long)n - 1);
    *query = y;
    return true;
}

/* The input's own pixels, where the mechanism reads the sequence as that image. */
static const float *pixels_of(const Result *result, int64_t width)
{
    const Input *input = result->input;

    return input->pixels.data && input->width == width ? tensor_f32(&input->pixels) : NULL;
}

bool picture_span(Result *result, const char *query, Arena *arena, Panel *panel, Error *err)
{
    const View *base = panel->view, *span;
    int64_t     width = picture_width(result), at = 0, plane = panel->plane;
    char        title[sizeof(panel->title)];

    if (strcmp(base->rows, "query") != 0 || strcmp(base->cols, "key") != 0)
        return error_set(err, ERR_USAGE,
                         "%s of %s is not a matrix of queries and keys, so a query has no span in "
                         "it; take another view",
                         base->name, result->request.mechanism);
    if (!width)
        return error_set(err, ERR_USAGE,
                         "--span: the input is no image and %s reads it as none; give --input "
                         "FILE.png, or a mechanism with a width",
                         result->request.mechanism);
    if (!parse_query(query, width, view_rows(base), &at, err))
        return false;
    span = span_view(arena ? arena : result->run->arena, base, plane, at, width);
    if (!span)
        return error_set(err, ERR_NOMEM, "not enough memory for a picture");
    snprintf(title, sizeof(title), "%s", panel->title);
    panel_init(panel, span, view_components(span), 0, title);
    panel->picture = true;
    panel->pixels = pixels_of(result, width);
    panel->pixel_count = view_cols(base);
    panel->mark_row = at / width;
    panel->mark_col = at % width;
    return true;
}
