/* stored_figure.c -- measured plots as metadata of a file, and a figure drawn from them; picture.h.
 *
 * Numbers that were measured are not measured again by `rerender`: the file holds every curve, the
 * look of its page, and the machine and the time of the measurement (NUMBERS_KEY).
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "input/store.h"
#include "profile/record.h"

struct StoredFigure {
    Figure    *figure;  /* of the plots alone; owned */
    int       *at;      /* the number of each of its panels in the whole figure; owned */
    int        panels;  /* of the whole figure */
    ExponentChart *chart; /* instead of a figure; owned; NULL: none */
    PngOptions options; /* it was drawn with */
    char       theme[32], *font; /* font: owned; NULL: the usual one */
    char      *text;    /* owned */
};

/* ---- to text ---------------------------------------------------------------- */

static void add_options(const PngOptions *o, Json *json)
{
    if (o && o->width_inch > 0) {
        jsonw_key_number(json, "width", o->width_inch);
    }
    if (o && o->page_width > 0) {
        jsonw_key_number(json, "page_width", o->page_width);
        jsonw_key_number(json, "page_height", o->page_height);
    }
    jsonw_some_int(json, "dpi", o ? o->dpi : 0);
    jsonw_some_int(json, "colours", o ? o->colours : 0);
    jsonw_some_string(json, "theme", o ? o->theme : NULL);
    jsonw_some_string(json, "font", o ? o->font : NULL);
    if (o && o->size_inch > 0) {
        jsonw_key_number(json, "size", o->size_inch);
    }
    jsonw_some_int(json, "letters", o ? o->letters : 0);
    jsonw_some_int(json, "hides", o ? (int)o->hides : 0);
    jsonw_key_bool(json, "transparent", o && o->transparent);
}

static void add_look(const Figure *figure, const PngOptions *o, Json *json)
{
    jsonw_open(json, '{');
    jsonw_some_int(json, "panels", figure->count);
    jsonw_some_string(json, "title", figure->title);
    jsonw_some_string(json, "caption", figure->caption);
    jsonw_some_int(json, "rows", figure->rows);
    jsonw_some_int(json, "cols", figure->cols);
    if (figure->loose) {
        jsonw_key_bool(json, "loose", true);
    }
    jsonw_key_bool(json, "legend", figure->legend);
    add_options(o, json);
    jsonw_close(json, '}');
}

static void add_stored_panel(const Panel *panel, const Plot *plot, int number, Json *json)
{
    jsonw_open(json, '{');
    jsonw_key_int(json, "panel", number);
    jsonw_some_string(json, "title", panel->title);
    jsonw_some_string(json, "caption", panel->caption);
    plot_json(plot, json);
    jsonw_close(json, '}');
}

static void panels_json(const Figure *figure, Json *json)
{
    jsonw_key_open(json, "panels", '[');
    for (int k = 0; k < figure->count; k++)
        if (figure->panels[k].made)
            add_stored_panel(&figure->panels[k], figure->panels[k].made, k, json);
    jsonw_close(json, ']');
}

bool figure_numbers_json(const Figure *figure, Text *out, Error *err)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '{');
    jsonw_key_open(&json, "panels", '[');
    for (int k = 0; k < figure->count; k++) {
        Plot *plot = panel_plot(&figure->panels[k], err);

        if (!plot)
            return false;
        add_stored_panel(&figure->panels[k], plot, k, &json);
        plot_free(plot);
    }
    jsonw_close(&json, ']');
    jsonw_close(&json, '}');
    text_add(out, "\n");
    return true;
}

/* {"environment":..,"figure":..,"panels":[..]}: all plots of the figure and the options it is drawn
 * with; nothing where it has no plot. */
void stored_figure_text(const Figure *figure, const PngOptions *options, Text *out)
{
    Json json = jsonw_to(out);
    bool any = false;

    for (int k = 0; k < figure->count; k++)
        any = any || figure->panels[k].made;
    if (!any)
        return;
    if (figure->numbers) {
        text_add(out, figure->numbers);
        return;
    }
    jsonw_open(&json, '{');
    jsonw_key(&json, "environment");
    environment_json(&json);
    jsonw_key(&json, "figure");
    add_look(figure, options, &json);
    panels_json(figure, &json);
    jsonw_close(&json, '}');
}

void stored_chart_text(const ExponentChart *chart, const PngOptions *options, Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '{');
    jsonw_key_open(&json, "figure", '{');
    add_options(options, &json);
    jsonw_close(&json, '}');
    jsonw_key_open(&json, "exponents", '{');
    exponents_json(chart, &json);
    jsonw_close(&json, '}');
    jsonw_close(&json, '}');
}

/* ---- from text -------------------------------------------------------------- */

/* Larger numbers come from a damaged file. */
#define PANELS_MOST 4096
#define DPI_MOST    4800
#define INCHES_MOST 100

static bool damaged(Error *err)
{
    return error_set(err, ERR_FORMAT, "its numbers are damaged, or of another version; "
                                       "rerender --measure takes new ones");
}

static int int_of(const json_t *object, const char *key)
{
    return (int)json_integer_value(json_object_get(object, key));
}

static void copy_string(const json_t *object, const char *key, char *out, size_t size)
{
    const char *value = json_string_value(json_object_get(object, key));

    snprintf(out, size, "%s", value ? value : "");
}

static bool take_options(const json_t *look, StoredFigure *out)
{
    const char *font = json_string_value(json_object_get(look, "font"));

    copy_string(look, "theme", out->theme, sizeof(out->theme));
    if (font && !(out->font = strdup(font)))
        return false;
    out->options = (PngOptions){
        .width_inch = json_number_value(json_object_get(look, "width")),
        .page_width = json_number_value(json_object_get(look, "page_width")),
        .page_height = json_number_value(json_object_get(look, "page_height")),
        .dpi = int_of(look, "dpi"),
        .colours = int_of(look, "colours"),
        .theme = *out->theme ? out->theme : NULL,
        .font = out->font,
        .size_inch = json_number_value(json_object_get(look, "size")),
        .letters = int_of(look, "letters"),
        .hides = (unsigned)int_of(look, "hides"),
        .transparent = json_is_true(json_object_get(look, "transparent")),
    };
    return out->options.letters >= 0 && out->options.letters <= 2 && out->options.size_inch >= 0 &&
           out->options.size_inch <= 1 && out->options.dpi >= 0 && out->options.dpi <= DPI_MOST &&
           out->options.page_width >= 0 && out->options.page_width <= INCHES_MOST &&
           out->options.page_height >= 0 && out->options.page_height <= INCHES_MOST &&
           out->options.width_inch >= 0 && out->options.width_inch <= INCHES_MOST;
}

static bool take_look(const json_t *look, StoredFigure *out)
{
    Figure *figure = out->figure;

    out->panels = int_of(look, "panels");
    copy_string(look, "title", figure->title, sizeof(figure->title));
    copy_string(look, "caption", figure->caption, sizeof(figure->caption));
    figure->rows = int_of(look, "rows");
    figure->cols = int_of(look, "cols");
    figure->loose = json_is_true(json_object_get(look, "loose"));
    figure->legend = !json_is_false(json_object_get(look, "legend"));
    return take_options(look, out) && figure->rows >= 0 && figure->rows <= PANELS_MOST &&
           figure->cols >= 0 && figure->cols <= PANELS_MOST && out->panels <= PANELS_MOST;
}

static bool take_panel(const json_t *json, StoredFigure *out, int k, Error *err)
{
    Panel *panel = &out->figure->panels[k];
    char   title[sizeof(panel->title)];
    Plot  *plot = plot_of_json(json, err);

    if (!plot)
        return false;
    copy_string(json, "title", title, sizeof(title));
    panel_init_plot(panel, plot, title);
    copy_string(json, "caption", panel->caption, sizeof(panel->caption));
    out->at[k] = int_of(json, "panel");
    return true;
}

static bool take_chart(const json_t *json, StoredFigure *out, Error *err)
{
    out->chart = exponents_of_json(json_object_get(json, "exponents"), err);
    return out->chart && (take_options(json_object_get(json, "figure"), out) || damaged(err));
}

static bool take_figure(const json_t *json, StoredFigure *out, Error *err)
{
    const json_t *panels = json_object_get(json, "panels");
    size_t        count = json_array_size(panels);

    if (!count || count > PANELS_MOST)
        return damaged(err);
    out->figure = figure_new((int)count, err);
    out->at = calloc(count, sizeof(*out->at));
    if (!out->figure || !out->at)
        return error_set(err, ERR_NOMEM, "not enough memory for the numbers of a figure");
    if (!take_look(json_object_get(json, "figure"), out))
        return damaged(err);
    for (size_t k = 0; k < count; k++)
        if (!take_panel(json_array_get(panels, k), out, (int)k, err))
            return false;
    return true;
}

const char *stored_figure_measured(const StoredFigure *stored)
{
    if (stored->chart)
        return stored->chart->measured;
    for (int k = 0; k < stored->figure->count; k++)
        if (*stored->figure->panels[k].made->measured)
            return stored->figure->panels[k].made->measured;
    return "";
}

StoredFigure *stored_figure_read(const char *path, Error *err)
{
    char         *text = figure_metadata(path, NUMBERS_KEY, err);
    StoredFigure *out = text ? calloc(1, sizeof(*out)) : NULL;
    json_t       *json = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    bool          ok = out && (json_object_get(json, "exponents") ? take_chart(json, out, err)
                                                             : take_figure(json, out, err));

    json_decref(json);
    if (out)
        out->text = text;
    else
        free(text);
    if (text && !out)
        error_set(err, ERR_NOMEM, "not enough memory for the numbers of a figure");
    if (out && !ok)
        error_prefix(err, "%s", path);
    if (ok && *stored_figure_measured(out)) {
        if (out->figure)
            out->figure->numbers = stored_figure_copy(out);
        return out;
    }
    stored_figure_free(out);
    return NULL;
}

void stored_figure_free(StoredFigure *stored)
{
    if (!stored)
        return;
    figure_free(stored->figure);
    exponents_free(stored->chart);
    free(stored->at);
    free(stored->font);
    free(stored->text);
    free(stored);
}

const Panel *stored_figure_panel(const StoredFigure *stored, int panel)
{
    for (int k = 0; stored->figure && k < stored->figure->count; k++)
        if (stored->at[k] == panel)
            return &stored->figure->panels[k];
    return NULL;
}

const char *stored_figure_font(const StoredFigure *stored)
{
    return font_is_file(stored->font) ? stored->font : NULL;
}

bool stored_figure_whole(const StoredFigure *stored)
{
    return stored->chart || stored->figure->count == stored->panels;
}

char *stored_figure_copy(const StoredFigure *stored)
{
    return strdup(stored->text);
}

#define DIGITS 17 /* as many as a double needs */

static bool set_number(json_t *look, const char *key, double value)
{
    return !(value > 0) || !json_object_set_new(look, key, json_real(value));
}

/* What the look says replaces what the text had. */
static bool set_look(json_t *look, const PngOptions *o)
{
    return (o->dpi <= 0 || !json_object_set_new(look, "dpi", json_integer(o->dpi))) &&
           (!o->theme || !json_object_set_new(look, "theme", json_string(o->theme))) &&
           set_number(look, "width", o->width_inch) &&
           set_number(look, "page_width", o->page_width) &&
           set_number(look, "page_height", o->page_height);
}

bool stored_figure_set_look(StoredFigure *stored, const PngOptions *look, Error *err)
{
    json_t *json = json_loads(stored->text, 0, NULL), *held = json_object_get(json, "figure");
    char   *text = NULL, *copy = NULL, *font = stored->font;

    stored->font = NULL;
    if (held && set_look(held, look) && take_options(held, stored))
        text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
    json_decref(json);
    free(font);
    copy = text ? strdup(text) : NULL;
    if (!copy) {
        free(text);
        return error_set(err, ERR_NOMEM, "not enough memory for the numbers of a figure");
    }
    free(stored->text);
    stored->text = text;
    if (stored->figure) {
        free(stored->figure->numbers);
        stored->figure->numbers = copy;
    } else {
        free(copy);
    }
    return true;
}

/* ---- again ------------------------------------------------------------------ */

/* Keys copied to the new file, in this order, after name and version of the program and its
 * command; then its numbers. */
static const char *const keys[] = {
    "attnscope:params", "attnscope:tensors", "attnscope:seed",
    "attnscope:input", "attnscope:input-sha256", SCRIPT_KEY, SCRIPT_HASH_KEY, FONT_HASH_KEY,
};

static void copy_metadata(const StoredFigure *stored, const char *from, const char *line,
                          Metadata *out)
{
    *out = (Metadata){ .count = 0 };
    metadata_add(out, "Software", "attnscope " ATTNSCOPE_VERSION);
    metadata_add(out, "attnscope:version", ATTNSCOPE_VERSION);
    if (*line)
        metadata_add(out, "attnscope:command", line);
    for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
        Error ignored;
        char *value = figure_metadata(from, keys[k], &ignored);

        if (value)
            metadata_add(out, keys[k], value);
        free(value);
    }
    metadata_add(out, NUMBERS_KEY, stored->text);
}

static bool draw_stored(const StoredFigure *stored, FigureFormat kind, const PngOptions *options,
                        const char *to, Text *bytes, Error *err)
{
    if (!stored->chart)
        return figure_file(stored->figure, kind, options, bytes, err);
    return exponent_chart_file(stored->chart, kind, options, bytes, err) ||
           error_prefix(err, "%s", to);
}

bool stored_figure_write(const StoredFigure *stored, const char *from, const char *line,
                         const char *font, const char *format, const char *to, Error *err)
{
    PngOptions   options = stored->options;
    Metadata     metadata;
    Text         bytes = { 0 };
    FigureFormat kind;
    bool         ok;

    options.format = format;
    options.font = font ? font : options.font;
    if (!figure_format(to, &options, &kind, err) || !steps_name_once(to, err))
        return false;
    copy_metadata(stored, from, line, &metadata);
    options.metadata = metadata_list(&metadata);
    ok = draw_stored(stored, kind, &options, to, &bytes, err) && figure_write(to, &bytes, err);
    metadata_free(&metadata);
    text_free(&bytes);
    return ok;
}
