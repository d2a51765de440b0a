/* page.c -- themes, and a figure as the bytes of a file; see figure.h.
 *
 * Components have the Okabe-Ito colours in all themes, and differences run from purple to orange:
 * colour-blind readers tell both apart. The theme for them changes the map of values (cividis
 * looks the same to them) and the categories. For print the hues differ in lightness; on a dark
 * page none is too dark.
 *
 * PNG, SVG and PDF are one drawing on three canvases; a text is laid out in columns. Frames and
 * animations have pages of one size, and one range of colours for each quantity.
 */
#include <math.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "draw/figure/figure.h"
#include "draw/file/format.h"
#include "draw/page/sheet.h"

#define COLUMN_INCH 3.25 /* one column of a two-column paper */
#define PAGE_INCH 6.75   /* its text width */
#define HALF_SLIDE 6.5   /* of a slide of 13.33 inches */
#define WHOLE_SLIDE 12.5

#define WHITE { 255, 255, 255 }
#define ON_PAPER .type = 1, .one = COLUMN_INCH, .page = PAGE_INCH
#define DARK                                                                                       \
    .dark = true, .paper = { 18, 18, 18 }, .ink = { 235, 235, 235 }, .muted = { 165, 165, 165 },   \
    .rule = { 48, 48, 48 }, .hues = HUES_DARK
#define LIGHT                                                                                      \
    .paper = WHITE, .ink = { 20, 20, 20 }, .muted = { 90, 90, 90 }, .rule = { 216, 216, 216 }

static const PageTheme themes[] = {
    { .name = "light", LIGHT, ON_PAPER, .values = MAP_VIRIDIS, .hues = HUES_PAGE },
    { .name = "dark", DARK, ON_PAPER, .values = MAP_VIRIDIS },
    { .name = "print", .paper = WHITE, .ink = { 0, 0, 0 }, .muted = { 50, 50, 50 },
      .rule = { 200, 200, 200 }, ON_PAPER, .values = MAP_INK,
      .hues = HUES_PRINT },
    { .name = "slide", DARK, .type = 1.9, .one = HALF_SLIDE, .page = WHOLE_SLIDE,
      .values = MAP_VIRIDIS },
    { .name = "colour-blind", LIGHT, ON_PAPER, .values = MAP_CIVIDIS, .hues = HUES_SAFE },
};

static const PageTheme *find_theme(const char *name)
{
    for (size_t k = 0; k < sizeof(themes) / sizeof(*themes); k++)
        if (!strcmp(name, themes[k].name))
            return &themes[k];
    return NULL;
}

const char *figure_theme_name(int index)
{
    return index < (int)(sizeof(themes) / sizeof(*themes)) ? themes[index].name : NULL;
}

const PageTheme *page_theme(const char *name)
{
    const PageTheme *theme = name ? find_theme(name) : NULL;

    return theme ? theme : &themes[0];
}

double figure_width(const char *text)
{
    static const struct {
        const char *name;
        double      inches;
    } units[] = { { "", 1 }, { "in", 1 }, { "cm", 1 / 2.54 }, { "mm", 1 / 25.4 },
                  { "pt", 1 / 72.27 } };
    char  *end;
    double value = strtod(text, &end);

    for (size_t i = 0; end != text && i < sizeof(units) / sizeof(*units); i++)
        if (!strcmp(end, units[i].name))
            return value * units[i].inches;
    return (double)NAN;
}

#define LEAST_PAGE 0.5 /* inches */
#define MOST_PAGE 40

static bool is_side(double inch)
{
    return inch >= LEAST_PAGE && inch <= MOST_PAGE;
}

bool figure_page_parse(const char *text, double *width, double *height, Error *err)
{
    static const struct {
        const char *name;
        double      width, height;
    } pages[] = { { "16:9", 40.0 / 3, 7.5 }, { "4:3", 10, 7.5 }, { "A4", 210 / 25.4, 297 / 25.4 } };
    const char *cross = strchr(text, 'x');
    char        first[32];

    for (size_t k = 0; k < sizeof(pages) / sizeof(*pages); k++)
        if (!strcmp(text, pages[k].name)) {
            *width = pages[k].width;
            *height = pages[k].height;
            return true;
        }
    snprintf(first, sizeof(first), "%.*s", cross ? (int)(cross - text) : 0, text);
    *width = figure_width(first);
    *height = cross ? figure_width(cross + 1) : (double)NAN;
    return (is_side(*width) && is_side(*height)) ||
           error_set(err, ERR_USAGE, "expected 16:9, 4:3, A4, or width x height from %g to %d "
                     "inches as 13.333x7.5 or 24cmx13.5cm, got '%.40s'", LEAST_PAGE, MOST_PAGE,
                     text);
}

double figure_size(const char *text)
{
    char  *end;
    double value = strtod(text, &end);
    double inch = end != text && !*end ? value / 72.27 : figure_width(text);

    return inch >= 1.99 / 72.27 && inch <= 72.01 / 72.27 ? inch : (double)NAN;
}

bool figure_font_check(const char *font, Error *err)
{
    return canvas_font_check(font, err);
}

bool figure_letters_parse(const char *text, int *out, Error *err)
{
    static const char *const names[] = { "outlines", "text", "font" };

    for (int k = 0; k < 3; k++)
        if (!strcmp(text, names[k])) {
            *out = k;
            return true;
        }
    return error_set(err, ERR_USAGE, "expected outlines, text (in a font by its name) or font (the "
                     "font inside the file), got '%.40s'", text);
}

/* One name of the list removes its bit. */
static bool shows_label(const char *name, size_t length, unsigned *hides)
{
    static const struct {
        const char *name;
        unsigned    bit;
    } labels[] = { { "letters", HIDE_LETTERS }, { "axes", HIDE_AXES }, { "ticks", HIDE_TICKS },
                   { "none", 0 }, { "all", HIDE_LABELS } };

    for (size_t k = 0; k < sizeof(labels) / sizeof(*labels); k++)
        if (strlen(labels[k].name) == length && !strncmp(name, labels[k].name, length)) {
            *hides &= ~labels[k].bit;
            return true;
        }
    return false;
}

bool figure_labels_parse(const char *text, unsigned *hides, Error *err)
{
    *hides |= HIDE_LABELS;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");

        if (!shows_label(at, length, hides))
            return error_set(err, ERR_USAGE, "expected some of letters, axes and ticks, with "
                             "commas between them, or all or none, got '%.40s'", text);
        at += length + (at[length] == ',');
    }
    return true;
}

bool figure_theme_check(const char *name, Error *err)
{
    return !name || find_theme(name) ||
           error_set(err, ERR_USAGE, "there is no theme '%.40s'; choose light, dark, print, slide "
                     "or colour-blind", name);
}

/* ---- files ------------------------------------------------------------------ */

#define TEXT_COLUMNS 100 /* of a text in a file */
#define DPI 300

static const struct {
    const char *name;
    FigureFormat format;
} formats[] = {
    { "png", FORMAT_PNG_FILE }, { "svg", FORMAT_SVG_FILE },   { "pdf", FORMAT_PDF_FILE },
    { "txt", FORMAT_TEXT_FILE }, { "ans", FORMAT_ANSI_FILE }, { "apng", FORMAT_APNG_FILE },
};

bool figure_format(const char *path, const PngOptions *options, FigureFormat *out, Error *err)
{
    const char *given = options ? options->format : NULL, *ending = strrchr(path, '.');
    const char *name = given ? given : !strcmp(path, "-") ? "png" : ending ? ending + 1 : "";

    for (size_t k = 0; k < sizeof(formats) / sizeof(*formats); k++)
        if (!strcmp(name, formats[k].name)) {
            *out = formats[k].format;
            return true;
        }
    if (given)
        return error_set(err, ERR_USAGE, "there is no kind of file '%.40s'; choose png, svg, pdf, "
                         "txt, ans or apng", given);
    return error_set(err, ERR_USAGE, "%s: the ending says what to write: .png or .txt, .svg, .pdf, "
                     ".ans, for steps .apng", path);
}

/* ---- pages ------------------------------------------------------------------ */

static const PngOptions usual = { .dpi = DPI };

double figure_inches(const Figure *figure, const PngOptions *options)
{
    const PageTheme *theme = page_theme(options->theme);
    int              rows, cols;

    figure_arrange(figure, &rows, &cols);
    return options->width_inch > 0 ? fmin(options->width_inch, 200)
           : options->page_width > 0 ? options->page_width
           : cols > 1 ? theme->page : theme->one;
}

#define ROUND_UP 0.25 /* pixels that a sheet may be wider than asked: TeX reports an overfull column
                        from 0.1pt on */

static bool plan(Sheet *sheet, const Figure *figure, const PngOptions *options, Error *err)
{
    *sheet = (Sheet){ .figure = figure, .style = sheet_style(options) };
    sheet->free_width = !(options->width_inch > 0);
    sheet->width = (int)floor(figure_inches(figure, options) * sheet->style.dpi + ROUND_UP);
    return sheet_plan(sheet, err);
}

bool figure_height(const Figure *figure, const PngOptions *options, double *inches, Error *err)
{
    Sheet sheet = { 0 };
    bool  ok = plan(&sheet, figure, options, err);

    *inches = ok ? (double)sheet.layout.height / sheet.style.dpi : (double)NAN;
    sheet_free(&sheet);
    return ok;
}

#define TRIES 40 /* of widths for a page */

/* All of some frames, or one figure, fit the page. */
static bool all_fit(const Figure *figures, int count, const PngOptions *options)
{
    bool fit = true;

    for (int k = 0; fit && k < count; k++) {
        Error  ignored = ERROR_INIT;
        double high;

        fit = figure_height(&figures[k], options, &high, &ignored) && high <= options->page_height;
    }
    return fit;
}

/* The largest of some widths at which they fit the page; 0: none. */
static double width_that_fits(const Figure *figures, int count, const PngOptions *options)
{
    PngOptions narrow = *options;

    narrow.width_inch = fmin(figure_inches(figures, options), options->page_width);
    for (int k = 0; k < TRIES && narrow.width_inch >= LEAST_PAGE; k++) {
        narrow.width_inch = floor(narrow.width_inch * 20 * (k ? 0.96 : 1)) / 20;
        if (all_fit(figures, count, &narrow))
            return narrow.width_inch;
    }
    return 0;
}

/* What makes them fit. */
static void advise(const Figure *figures, int count, const PngOptions *options, char *advice,
                   size_t size)
{
    PngOptions bare = *options;
    double     fits = width_that_fits(figures, count, options);

    if (fits > 0) {
        snprintf(advice, size, "--width %.4g fits", fits);
        return;
    }
    bare.hides |= HIDE_CAPTION | HIDE_COUNTS;
    fits = width_that_fits(figures, count, &bare);
    if (fits > 0)
        snprintf(advice, size, "--no-caption --no-count --width %.4g fits", fits);
    else
        snprintf(advice, size, "no width fits; draw fewer panels");
}

bool sheet_on_page(const PngOptions *options, int dpi, int *width, int *height)
{
    int page_width = (int)lround(options->page_width * dpi);
    int page_height = (int)lround(options->page_height * dpi);

    if (!(options->page_width > 0))
        return true;
    if (*width > page_width || *height > page_height)
        return false;
    *width = page_width;
    *height = page_height;
    return true;
}

bool sheet_refuse_page(const PngOptions *options, int dpi, int width, int height,
                       const char *advice, Error *err)
{
    return error_set(err, ERR_USAGE, "the figure is %.3g x %.3g inches, the page %.4g x %.4g: %s",
                     (double)width / dpi, (double)height / dpi, options->page_width,
                     options->page_height, advice);
}

/* The figure, or the largest of frames, has width x height pixels: they become those of its
 * page. */
static bool take_page(const Figure *figures, int count, const PngOptions *options, int dpi,
                      int *width, int *height, Error *err)
{
    char advice[64];

    if (sheet_on_page(options, dpi, width, height))
        return true;
    advise(figures, count, options, advice, sizeof(advice));
    return sheet_refuse_page(options, dpi, *width, *height, advice, err);
}

bool sheet_open(Sheet *sheet, CanvasKind kind, int width, int height, const PngOptions *options,
                Error *err)
{
    canvas_free(sheet->canvas);
    sheet->canvas = canvas_new(kind, width, height, sheet->style.dpi, &sheet->style.letters,
                               options->transparent ? NULL : &sheet->style.paper, err);
    return sheet->canvas != NULL;
}

/* Draws the sheet centred on a page of this size, at the top where it is a frame among others. */
static bool draw_page(Sheet *sheet, CanvasKind kind, int width, int height,
                      const PngOptions *options, Error *err)
{
    if (!sheet_open(sheet, kind, width, height, options, err))
        return false;
    canvas_shift(sheet->canvas, (width - sheet->layout.width) / 2,
                 options->page_width > 0 ? (height - sheet->layout.height) / 2 : 0);
    sheet_draw(sheet);
    return canvas_ok(sheet->canvas, err);
}

CanvasKind sheet_canvas(FigureFormat format)
{
    return format == FORMAT_SVG_FILE   ? CANVAS_SVG
           : format == FORMAT_PDF_FILE ? CANVAS_PDF
                                       : CANVAS_PIXELS;
}

bool sheet_finish(Sheet *sheet, CanvasKind kind, const char *title, const PngOptions *options,
                  Text *bytes, Error *err)
{
    int      width, height;
    uint8_t *pixels;
    bool     ok;

    if (!canvas_ok(sheet->canvas, err))
        return false;
    if (kind != CANVAS_PIXELS)
        return canvas_finish(sheet->canvas, title, options->metadata, bytes, err);
    pixels = canvas_pixels(sheet->canvas, &width, &height);
    ok = pixels ? png_encode(pixels, width, height, sheet->style.dpi, options->metadata, bytes, err)
                : error_set(err, ERR_NOMEM, "a figure of %d x %d pixels: out of memory", width,
                            height);
    free(pixels);
    return ok;
}

static bool write_page(Sheet *sheet, FigureFormat format, int width, int height,
                       const PngOptions *options, Text *bytes, Error *err)
{
    CanvasKind kind = sheet_canvas(format);

    return draw_page(sheet, kind, width, height, options, err) &&
           sheet_finish(sheet, kind, sheet->figure->title, options, bytes, err);
}

static bool write_text(const Figure *figure, bool colours, const PngOptions *options, Text *bytes,
                       Error *err)
{
    TextOptions text = { .width = TEXT_COLUMNS, .utf8 = true, .hides = options->hides };

    if (colours)
        text.colours = options->colours ? options->colours : 24;
    if (!figure_text(figure, &text, bytes, err))
        return false;
    if (options->metadata && options->metadata[0])
        text_add(bytes, "\n");
    metadata_write_lines(options->metadata, METADATA_TEXT_MARK, bytes);
    return text_ok(bytes) || error_set(err, ERR_NOMEM, "a figure as text: out of memory");
}

bool figure_file(const Figure *figure, FigureFormat format, const PngOptions *options, Text *bytes,
                 Error *err)
{
    Sheet sheet = { 0 };
    int   width, height;
    bool  ok;

    options = options ? options : &usual;
    if (figure->count < 1)
        return error_set(err, ERR_USAGE, "the figure has no panel");
    if (!figure_theme_check(options->theme, err))
        return false;
    if (format == FORMAT_APNG_FILE)
        return error_set(err, ERR_USAGE, "an animation is of the steps of a mechanism: "
                                         "attnscope step MECH -o FILE.apng");
    if (format == FORMAT_TEXT_FILE || format == FORMAT_ANSI_FILE)
        return write_text(figure, format == FORMAT_ANSI_FILE, options, bytes, err);
    ok = plan(&sheet, figure, options, err);
    if (ok && options->least_width)
        *options->least_width = sheet_least_width(&sheet);
    width = sheet.layout.width;
    height = sheet.layout.height;
    ok = ok && take_page(figure, 1, options, sheet.style.dpi, &width, &height, err) &&
         write_page(&sheet, format, width, height, options, bytes, err);
    if (ok && options->high)
        *options->high = (double)sheet.layout.height / sheet.style.dpi;
    sheet_free(&sheet);
    return ok;
}

/* ---- frames ----------------------------------------------------------------- */

#define SETTLE_CELLS 256 /* per side, for finding ranges */

typedef struct Frames {
    Figure   *each;   /* owned; one panel of `panels` each */
    Panel    *panels; /* owned; with their ranges */
    Sheet    *sheets; /* owned */
    uint8_t **pixels; /* owned, and each of them */
    int       count, width, height;
} Frames;

static void frames_free(Frames *f)
{
    for (int k = 0; k < f->count; k++) {
        if (f->sheets)
            sheet_free(&f->sheets[k]);
        if (f->pixels)
            free(f->pixels[k]);
    }
    free(f->each);
    free(f->panels);
    free(f->sheets);
    free(f->pixels);
}

/* Settles one range for all panels of a quantity. */
static bool settle_ranges(const Figure *all, Panel *panels, Error *err)
{
    Figure     figure = *all;
    Scene      scene;
    CellCount *cells = calloc((size_t)all->count, sizeof(*cells));
    bool       ok;

    figure.sharing = SHARE_ALL;
    for (int k = 0; cells && k < all->count; k++)
        cells[k] = (CellCount){ SETTLE_CELLS, SETTLE_CELLS };
    ok = cells ? scene_make(&scene, &figure, cells, err)
               : error_set(err, ERR_NOMEM, "drawing frames: out of memory");
    for (int k = 0; ok && k < all->count; k++) {
        panels[k] = all->panels[k];
        if (panel_style(&panels[k]) == STYLE_VALUE) {
            panels[k].lo = scene.panels[k].lo;
            panels[k].hi = scene.panels[k].hi;
            panels[k].map = scene.panels[k].map;
            panels[k].scale_given = true; /* a frame alone chooses nothing */
        }
    }
    if (ok)
        scene_free(&scene);
    free(cells);
    return ok;
}

static bool frames_plan(Frames *f, const Figure *all, const PngOptions *options, Error *err)
{
    size_t count = (size_t)all->count;
    bool   ok;

    *f = (Frames){ .count = all->count, .each = calloc(count, sizeof(*f->each)),
                   .panels = calloc(count, sizeof(*f->panels)),
                   .sheets = calloc(count, sizeof(*f->sheets)),
                   .pixels = calloc(count, sizeof(*f->pixels)) };
    ok = (f->each && f->panels && f->sheets && f->pixels) ||
         error_set(err, ERR_NOMEM, "drawing frames: out of memory");
    ok = ok && settle_ranges(all, f->panels, err);
    for (int k = 0; ok && k < f->count; k++) {
        f->each[k] = *all;
        f->each[k].panels = &f->panels[k];
        f->each[k].count = 1;
        f->each[k].rows = f->each[k].cols = 1;
        ok = plan(&f->sheets[k], &f->each[k], options, err);
        f->width = (int)fmax(f->width, f->sheets[k].layout.width);
        f->height = (int)fmax(f->height, f->sheets[k].layout.height);
    }
    return ok;
}

static bool animate(Frames *f, const PngOptions *options, Text *bytes, Error *err)
{
    int  width, height;
    bool ok = true;

    for (int k = 0; ok && k < f->count; k++) {
        ok = draw_page(&f->sheets[k], CANVAS_PIXELS, f->width, f->height, options, err);
        f->pixels[k] = ok ? canvas_pixels(f->sheets[k].canvas, &width, &height) : NULL;
        if (ok && !f->pixels[k])
            ok = error_set(err, ERR_NOMEM, "%d frames of %d x %d pixels: out of memory", f->count,
                           f->width, f->height);
    }
    return ok && apng_encode(f->pixels, f->count, f->width, f->height, f->sheets[0].style.dpi,
                             options->delay > 0 ? options->delay : 1, options->metadata, bytes,
                             err);
}

bool figure_frames(const Figure *all, int only, FigureFormat format, const PngOptions *options,
                   Text *bytes, Error *err)
{
    Frames f;
    bool   ok;

    options = options ? options : &usual;
    if (all->count < 1 || only >= all->count)
        return error_set(err, ERR_USAGE, "frame %d: there are %d", only + 1, all->count);
    if (!figure_theme_check(options->theme, err))
        return false;
    ok = frames_plan(&f, all, options, err) &&
         take_page(f.each, f.count, options, f.sheets[0].style.dpi, &f.width, &f.height, err);
    if (ok && only < 0)
        ok = animate(&f, options, bytes, err);
    else if (ok && (format == FORMAT_TEXT_FILE || format == FORMAT_ANSI_FILE))
        ok = write_text(&f.each[only], format == FORMAT_ANSI_FILE, options, bytes, err);
    else
        ok = ok && write_page(&f.sheets[only], format, f.width, f.height, options, bytes, err);
    frames_free(&f);
    return ok;
}
