/* figure.c -- the command figure, and the options of every command that draws. */
#include <langinfo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/figure/overview.h"
#include "app/figure/picture.h"

static bool parse_number(const char *flag, const char *text, double lo, double hi, double *out,
                         Error *err)
{
    char  *end;
    double value;

    if (!text)
        return true;
    value = strtod(text, &end);
    if (end == text || *end || !(value >= lo && value <= hi))
        return error_set(err, ERR_USAGE, "--%s: expected a number from %g to %g, got '%s'", flag,
                         lo, hi, text);
    *out = value;
    return true;
}

bool call_dpi(const Call *call, double *out, Error *err)
{
    return parse_number("dpi", call->values[OPT_DPI], 20, 2400, out, err);
}

static bool parse_width(const Call *call, double *out, Error *err)
{
    const char *text = call->values[OPT_WIDTH] ? call->values[OPT_WIDTH]
                                               : call->values[OPT_FIGWIDTH];

    *out = text ? figure_width(text) : 0;
    return !text || (*out >= 0.5 && *out <= 40) ||
           error_set(err, ERR_USAGE, "--width: expected inches from 0.5 to 40, or as 8.5cm, 85mm "
                     "or 246pt, got '%s'", text);
}

static bool is_empty(const char *text)
{
    return text && !*text;
}

/* The words that are not drawn. */
static bool parse_hidden(const Call *call, unsigned *hides, Error *err)
{
    const char *labels = call->values[OPT_LABELS];

    *hides = 0;
    if (call->values[OPT_NOTITLE] || (is_empty(call->values[OPT_TITLE]) &&
                                      !call->values[OPT_TITLES]))
        *hides |= HIDE_TITLES | HIDE_LETTERS;
    if (is_empty(call->values[OPT_CAPTION]))
        *hides |= HIDE_CAPTION;
    if (call->values[OPT_NOCOUNT])
        *hides |= HIDE_COUNTS;
    return !labels || figure_labels_parse(labels, hides, err) || error_prefix(err, "--labels");
}

/* Font, size and kind of letters. */
static bool parse_letters(const Call *call, PngOptions *o, Error *err)
{
    const char *size = call->values[OPT_SIZE], *letters = call->values[OPT_LETTERS];

    o->font = call->values[OPT_FONT];
    o->size_inch = size ? figure_size(size) : 0;
    if (o->size_inch != o->size_inch)
        return error_set(err, ERR_USAGE, "--size: expected 2pt to 72pt, or as 3mm, got '%s'", size);
    if (!figure_font_check(o->font, err))
        return error_prefix(err, "--font");
    return !letters || figure_letters_parse(letters, &o->letters, err) ||
           error_prefix(err, "--letters");
}

bool call_png_options(const Call *call, PngOptions *o, Error *err)
{
    const char *theme = call->values[OPT_THEME], *colour = call->values[OPT_COLOR];
    const char *page = call->values[OPT_PAGE];
    double      dpi = 0, width = 0, delay = 0, sides[2] = { 0 };

    if (!figure_theme_check(theme, err)) {
        error_prefix(err, "--theme");
        return false;
    }
    if (!call_dpi(call, &dpi, err) ||
        !parse_width(call, &width, err) ||
        !parse_number("delay", call->values[OPT_DELAY], 0.01, 60, &delay, err))
        return false;
    if (page && !figure_page_parse(page, &sides[0], &sides[1], err))
        return error_prefix(err, "--page");
    *o = (PngOptions){ .page_width = sides[0],
                       .page_height = sides[1],
                       .format = call->values[OPT_FORMAT],
                       .dpi = (int)dpi,
                       .colours = colour && !strcmp(colour, "256") ? 256 : 24,
                       .delay = delay,
                       .width_inch = width,
                       .theme = theme,
                       .transparent = call->values[OPT_TRANSPARENT] != NULL };
    return parse_hidden(call, &o->hides, err) && parse_letters(call, o, err);
}

/* A terminal without UTF-8 would show three characters for one.  Files and pipes get UTF-8
 * everywhere. */
static bool shows_utf8(const Call *call)
{
    return !call->tty || !strcmp(nl_langinfo(CODESET), "UTF-8");
}

bool call_text_options(const Call *call, TextOptions *o, Error *err)
{
    const char *when = call->values[OPT_COLOR] ? call->values[OPT_COLOR] : "auto";
    const char *term = getenv("COLORTERM"), *no_colour = getenv("NO_COLOR");

    *o = (TextOptions){ .width = call->columns > 0 ? call->columns : 80, .utf8 = shows_utf8(call) };
    if (!strcmp(when, "truecolor"))
        o->colours = 24;
    else if (!strcmp(when, "256"))
        o->colours = 256;
    else if (strcmp(when, "auto") && strcmp(when, "none"))
        return error_set(err, ERR_USAGE, "--color: expected auto, truecolor, 256 or none, got '%s'",
                         when);
    else if (!strcmp(when, "auto") && call->tty && !(no_colour && *no_colour) &&
             terminal_obeys())
        o->colours = term && (!strcmp(term, "truecolor") || !strcmp(term, "24bit")) ? 24 : 256;
    return parse_hidden(call, &o->hides, err);
}

static bool call_save(const Call *call, const Figure *figure, Result *const *results,
               int count, const PngOptions *options, Error *err)
{
    bool ok = true;

    for (int i = 0; ok && i < call->file_count; i++)
        ok = picture_save(figure, results, count, call->line, options, call->files[i], err);
    return ok;
}

#define PAGE_WIDE 6.75 /* inches of two columns */

/* Says what would fit a page of print, where the figure that was written does not. */
static void warn_of_height(const Call *call, const Figure *figure, const PngOptions *png,
                           double high, Text *out)
{
    PngOptions wide = *png;
    Error      ignored = ERROR_INIT;
    double     other;
    bool       fits;

    if (call_to_stdout(call))
        return;
    wide.high = NULL;
    wide.width_inch = PAGE_WIDE;
    fits = figure_inches(figure, png) < PAGE_WIDE &&
           figure_height(figure, &wide, &other, &ignored) && other <= FIGURE_PAGE_HIGH;
    text_addf(out, "warning  the figure is %.3g inches high, more than a page (%g): %s\n", high,
              FIGURE_PAGE_HIGH, fits ? "--width 6.75 fits" : "draw fewer panels in one figure");
}

/* A grid is kept as it was given, so its panels may be too small for their words. */
static void warn_of_width(const Call *call, const Figure *figure, const PngOptions *png,
                          double least, Text *out)
{
    if (call_to_stdout(call))
        return;
    text_addf(out, "warning  %.3g inches are too narrow for %s; ",
              figure_inches(figure, png), figure->count > 1 ? "these panels" : "this panel");
    if (least <= PAGE_WIDE)
        text_addf(out, "--width %.4g has room\n", least);
    else if (isfinite(least))
        text_addf(out, "fewer columns, or --width %.4g, have room\n", least);
    else
        text_add(out, "fewer columns have room\n");
}

bool call_write_figure(const Call *call, const Figure *figure, Result *const *results, int count,
                       Text *out, Error *err)
{
    TextOptions text;
    PngOptions  png;
    double      high = 0, least_width = 0;

    if (!call->file_count)
        return call_text_options(call, &text, err) && figure_text(figure, &text, out, err);
    if (!call_png_options(call, &png, err))
        return false;
    png.high = &high;
    png.least_width = &least_width;
    if (!call_save(call, figure, results, count, &png, err))
        return false;
    /* An overview has a warning of its own; a theme may be for slides, which are no pages. */
    if (out && high > FIGURE_PAGE_HIGH && !call->values[OPT_OVERVIEW] && !call->values[OPT_THEME] &&
        !call->values[OPT_PAGE])
        warn_of_height(call, figure, &png, high, out);
    if (out && least_width > 0 && !call->values[OPT_OVERVIEW])
        warn_of_width(call, figure, &png, least_width, out);
    return true;
}

void call_add_warnings(const Call *call, Result *const *results, int count, Text *out)
{
    if (!call_to_stdout(call))
        results_warnings(results, count, call_room(call), out);
}

static void tell_files(Session *s, const Call *call)
{
    for (int i = 0; session_listens(s) && i < call->file_count; i++) {
        Text text = { 0 };
        Json json = jsonw_to(&text);

        jsonw_open(&json, '{');
        jsonw_key_string(&json, "path", call->files[i]);
        jsonw_close(&json, '}');
        if (strcmp(call->files[i], "-") != 0)
            session_tell(s, "figure", &text);
        text_free(&text);
    }
}

/* A figure as text has the warnings in its caption. */
static bool make_figure(Session *s, const Call *call, Text *out, Error *err)
{
    PngOptions png; /* checked before the runs */
    FigureRun *d = calloc(1, sizeof(*d));
    Figure    *figure = NULL;
    bool       ok;

    if (!d)
        return error_set(err, ERR_NOMEM, "not enough memory");
    ok = call_png_options(call, &png, err) && figure_run_make(s, call, true, d, err);
    if (ok)
        figure = figure_run_draw(s, call, d, err);
    ok = figure && call_write_figure(call, figure, d->results, d->count, out, err);
    if (ok && call->file_count)
        call_add_warnings(call, d->results, d->count, out);
    if (ok)
        tell_files(s, call);
    figure_free(figure);
    figure_run_free(d);
    free(d);
    return ok;
}

/* A preset is a stored command; the call's own options change it. */
static bool draw_preset(Session *s, const Call *call, Text *out, Error *err)
{
    const Preset *preset;
    PresetCall    made;
    bool          ok;

    if (!strcmp(call->values[OPT_PRESET], "list")) {
        preset_list(call, out);
        return true;
    }
    if (!preset_parse(call->values[OPT_PRESET], &preset, err))
        return false;
    ok = preset_model_call(preset, call, &made, err) &&
         (preset->model ? command_model(s, &made.call, out, err)
                        : make_figure(s, &made.call, out, err));
    preset_call_free(&made);
    return ok;
}

bool command_figure(Session *s, const Call *call, Text *out, Error *err)
{
    if (call->values[OPT_OVERVIEW])
        return overview_figure(s, call, out, err);
    if (call->values[OPT_SORT])
        return error_set(err, ERR_USAGE, "--sort orders the heads of an overview: it goes with "
                         "--overview");
    if (call->values[OPT_PRESET])
        return draw_preset(s, call, out, err);
    if (!call->word_count)
        return error_set(err, ERR_USAGE,
                         "figure needs at least one mechanism, for example "
                         "attnscope figure bigbird -n 48 -o bigbird.png");
    return make_figure(s, call, out, err);
}
