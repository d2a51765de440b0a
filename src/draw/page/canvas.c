/* canvas.c -- the canvas on Cairo, or on svg.h; see canvas.h.
 *
 * Fonts come from memory through FreeType, without hinting and subpixel rendering. Cairo may cache
 * a font face beyond the canvas, so the face owns its FreeType library and both end together.
 * Cairo measures texts for an SVG too, so every file of a figure has the same layout.
 * Cairo, pixman and FreeType crash in places where memory is short: what takes memory there is
 * called between shortage_in_library(true) and (false).
 */
#include <cairo-ft.h>
#include <cairo-pdf.h>
#include <cairo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/shortage.h"
#include "draw/file/format.h"
#include "draw/file/svg.h"
#include "draw/page/canvas.h"
#include "draw/text/unicode.h"

extern const unsigned char font_sans_start[], font_sans_end[]; /* DejaVu Sans, TrueType */
extern const unsigned char font_mono_start[], font_mono_end[]; /* DejaVu Sans Mono */

#define SIDE_MOST 32767 /* pixels; the limit of a page too */

#define FACE_BUILT_IN FONT_COUNT /* stands in for signs that a file's font lacks */
#define FACES         (FONT_COUNT + 1)

struct Canvas {
    cairo_surface_t   *surface;
    cairo_t           *cairo;
    cairo_font_face_t *fonts[FACES];
    bool               own;  /* fonts[FONT_SANS] is a file's; FACE_BUILT_IN has the rest */
    CanvasKind         kind;
    Svg               *svg; /* of CANVAS_SVG; Cairo only measures */
    Text               pdf; /* of CANVAS_PDF */
    bool               opaque;
    Rgb                paper;
    int                right, down; /* offset of images; Cairo moves the rest */
    bool               failed;      /* an image was not written */
    cairo_surface_t  **images;      /* in a PDF: until it is finished */
    int                image_count;
    int64_t            shortages;   /* shortage_count of when it was made */
};

typedef struct Face {
    FT_Library library;
    FT_Face    face;
    char      *bytes; /* of a file; owned; NULL: built in */
    const unsigned char *start, *end;
} Face;

static const cairo_user_data_key_t face_key;

static void face_free(void *opaque)
{
    Face *face = opaque;

    if (face->face)
        FT_Done_Face(face->face);
    if (face->library)
        FT_Done_FreeType(face->library);
    free(face->bytes);
    free(face);
}

/* Takes bytes over, which are NULL or hold the font. */
static cairo_font_face_t *font_open_inside(const unsigned char *start, const unsigned char *end,
                                           char *bytes)
{
    Face              *face = calloc(1, sizeof(*face));
    cairo_font_face_t *font;

    if (!face) {
        free(bytes);
        return NULL;
    }
    *face = (Face){ .bytes = bytes, .start = start, .end = end };
    if (FT_Init_FreeType(&face->library) != 0 ||
        FT_New_Memory_Face(face->library, start, (FT_Long)(end - start), 0, &face->face) != 0) {
        face_free(face);
        return NULL;
    }
    font = cairo_ft_font_face_create_for_ft_face(face->face, FT_LOAD_NO_HINTING);
    if (cairo_font_face_set_user_data(font, &face_key, face, face_free) == CAIRO_STATUS_SUCCESS)
        return font;
    cairo_font_face_destroy(font);
    face_free(face);
    return NULL;
}

static cairo_font_face_t *font_open(const unsigned char *start, const unsigned char *end,
                                    char *bytes)
{
    cairo_font_face_t *font;

    shortage_in_library(true);
    font = font_open_inside(start, end, bytes);
    shortage_in_library(false);
    return font;
}

/* ---- a font of the user's ----------------------------------------------------- */

#define FONT_BYTES_MOST (64 << 20)

static bool is_built_in(const char *font)
{
    return !font || !strcmp(font, "sans") || !strcmp(font, "mono");
}

/* Opens the file; NULL with an error. */
static cairo_font_face_t *font_of_file(const char *path, Error *err)
{
    Text                 bytes = { 0 };
    const unsigned char *start;
    cairo_font_face_t   *font;

    if (!file_read(path, FONT_BYTES_MOST, &bytes, err)) {
        text_free(&bytes);
        return NULL;
    }
    start = (const unsigned char *)bytes.data;
    font = font_open(start, start + bytes.length, bytes.data);
    if (!font)
        error_set(err, ERR_FORMAT, "%s: no font that can be read; expected a TrueType or OpenType "
                  "file (.ttf, .otf), or sans or mono for the built-in fonts", path);
    return font;
}

bool canvas_font_check(const char *font, Error *err)
{
    cairo_font_face_t *face = is_built_in(font) ? NULL : font_of_file(font, err);

    if (!face)
        return is_built_in(font);
    cairo_font_face_destroy(face);
    return true;
}

static bool open_fonts(Canvas *c, const char *font, Error *err)
{
    bool mono = font && !strcmp(font, "mono");

    c->own = !is_built_in(font);
    c->fonts[FONT_MONO] = font_open(font_mono_start, font_mono_end, NULL);
    c->fonts[FACE_BUILT_IN] = font_open(font_sans_start, font_sans_end, NULL);
    c->fonts[FONT_SANS] = c->own ? font_of_file(font, err)
                          : mono ? font_open(font_mono_start, font_mono_end, NULL)
                                 : font_open(font_sans_start, font_sans_end, NULL);
    for (int k = 0; k < FACES; k++)
        if (!c->fonts[k])
            return c->own && k == FONT_SANS
                       ? false
                       : error_set(err, ERR_NOMEM,
                                   "drawing a figure: the built-in fonts cannot be opened");
    return true;
}

static void set_font_options(cairo_t *cairo)
{
    cairo_font_options_t *options = cairo_font_options_create();

    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_set_font_options(cairo, options);
    cairo_font_options_destroy(options);
}

static void set_colour(Canvas *c, Rgb rgb, double alpha)
{
    cairo_set_source_rgba(c->cairo, rgb.r / 255.0, rgb.g / 255.0, rgb.b / 255.0, alpha);
}

static cairo_status_t add_to_pdf(void *text, const unsigned char *bytes, unsigned length)
{
    text_add_bytes(text, bytes, length);
    return text_ok(text) ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_NO_MEMORY;
}

/* For older readers, and without compressed objects, so the keywords stay readable. */
static cairo_surface_t *pdf_surface(Text *out, double width, double height)
{
    cairo_surface_t *surface = cairo_pdf_surface_create_for_stream(add_to_pdf, out, width, height);

    cairo_pdf_surface_restrict_to_version(surface, CAIRO_PDF_VERSION_1_4);
    return surface;
}

static bool open_surface(Canvas *c, int width, int height, int dpi, SvgLetters letters)
{
    double point = 72.0 / dpi;

    shortage_in_library(true);
    if (c->kind == CANVAS_PDF)
        c->surface = pdf_surface(&c->pdf, width * point, height * point);
    else if (c->kind == CANVAS_SVG)
        c->surface = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, 1, 1);
    else
        c->surface = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, width, height);
    c->cairo = cairo_create(c->surface);
    if (c->kind == CANVAS_PDF)
        cairo_scale(c->cairo, point, point);
    shortage_in_library(false);
    if (c->kind == CANVAS_SVG)
        c->svg = svg_new(width, height, dpi, letters);
    return c->svg || c->kind != CANVAS_SVG;
}

static void fill(Canvas *c)
{
    shortage_in_library(true);
    cairo_fill(c->cairo);
    shortage_in_library(false);
}

static void paint_paper(Canvas *c, int width, int height, Rgb paper)
{
    c->opaque = true;
    c->paper = paper;
    if (c->svg) {
        svg_rect(c->svg, 0, 0, width, height, paper);
        return;
    }
    set_colour(c, paper, 1);
    shortage_in_library(true);
    cairo_paint(c->cairo);
    shortage_in_library(false);
}

Canvas *canvas_new(CanvasKind kind, int width, int height, int dpi, const CanvasLetters *letters,
                   const Rgb *background, Error *err)
{
    Canvas *c = calloc(1, sizeof(*c));

    if (!c) {
        error_set(err, ERR_NOMEM, "drawing a figure: out of memory");
        return NULL;
    }
    c->kind = kind;
    c->shortages = shortage_count();
    if (!open_surface(c, width, height, dpi, letters ? letters->svg : LETTERS_OUTLINES)
            ? !error_set(err, ERR_NOMEM, "drawing a figure: out of memory")
            : !open_fonts(c, letters ? letters->font : NULL, err)) {
        canvas_free(c);
        return NULL;
    }
    if (width > SIDE_MOST || height > SIDE_MOST ? !error_set(err, ERR_DATA, "too large")
                                                : !canvas_ok(c, err)) {
        error_prefix(err, "a figure of %d x %d pixels", width, height);
        canvas_free(c);
        return NULL;
    }
    set_font_options(c->cairo);
    if (background)
        paint_paper(c, width, height, *background);
    return c;
}

/* Cairo cannot let go of a page of a PDF that it could not finish: it would copy the images, and
 * crash where memory is still short. */
static void drop_page(Canvas *c)
{
    bool broken = cairo_status(c->cairo) == CAIRO_STATUS_NO_MEMORY ||
                  cairo_surface_status(c->surface) == CAIRO_STATUS_NO_MEMORY;

    if (c->kind == CANVAS_PDF && (broken || c->failed))
        return;
    shortage_in_library(true);
    cairo_destroy(c->cairo);
    cairo_surface_destroy(c->surface);
    for (int k = 0; k < c->image_count; k++)
        cairo_surface_destroy(c->images[k]);
    shortage_in_library(false);
    free(c->images);
}

void canvas_free(Canvas *c)
{
    if (!c)
        return;
    drop_page(c);
    for (int k = 0; k < FACES; k++)
        if (c->fonts[k])
            cairo_font_face_destroy(c->fonts[k]);
    svg_free(c->svg);
    text_free(&c->pdf);
    free(c);
}

bool canvas_ok(const Canvas *c, Error *err)
{
    cairo_status_t status = cairo_status(c->cairo);

    if (c->failed)
        return error_set(err, ERR_NOMEM, "drawing failed: out of memory");
    if (status == CAIRO_STATUS_SUCCESS)
        return true;
    return error_set(err, status == CAIRO_STATUS_NO_MEMORY ? ERR_NOMEM : ERR_DATA,
                     "drawing failed: %s", cairo_status_to_string(status));
}

void canvas_shift(Canvas *c, int right, int down)
{
    c->right += right;
    c->down += down;
    cairo_translate(c->cairo, right, down);
}

bool canvas_is_vector(const Canvas *c)
{
    return c->kind != CANVAS_PIXELS;
}

void canvas_rect(Canvas *c, double x, double y, double width, double height, Rgb rgb)
{
    if (c->svg) {
        svg_rect(c->svg, x + c->right, y + c->down, width, height, rgb);
        return;
    }
    set_colour(c, rgb, 1);
    cairo_rectangle(c->cairo, x, y, width, height);
    fill(c);
}

void canvas_clear(Canvas *c, double x, double y, double width, double height)
{
    if (c->opaque)
        canvas_rect(c, x, y, width, height, c->paper);
}

void canvas_line(Canvas *c, double x0, double y0, double x1, double y1, double width, Rgb rgb,
                 double alpha)
{
    bool upright = fabs(x1 - x0) < 1e-9 || fabs(y1 - y0) < 1e-9;

    if (c->svg) {
        svg_line(c->svg, x0 + c->right, y0 + c->down, x1 + c->right, y1 + c->down, width, rgb,
                 alpha);
        return;
    }
    set_colour(c, rgb, alpha);
    /* Strokes meet without a notch where a curve bends, at any magnification. */
    cairo_set_line_cap(c->cairo, c->kind == CANVAS_PDF && !upright ? CAIRO_LINE_CAP_ROUND
                                                                   : CAIRO_LINE_CAP_BUTT);
    cairo_set_line_width(c->cairo, width);
    cairo_move_to(c->cairo, x0, y0);
    cairo_line_to(c->cairo, x1, y1);
    shortage_in_library(true);
    cairo_stroke(c->cairo);
    shortage_in_library(false);
}

void canvas_clear_line(Canvas *c, double x0, double y0, double x1, double y1, double width)
{
    if (c->opaque)
        canvas_line(c, x0, y0, x1, y1, width, c->paper, 1);
}

void canvas_polygon(Canvas *c, const double (*points)[2], int count, Rgb rgb, double alpha)
{
    if (c->svg) {
        svg_polygon(c->svg, points, count, c->right, c->down, rgb, alpha);
        return;
    }
    set_colour(c, rgb, alpha);
    cairo_new_path(c->cairo); /* letters leave a point behind */
    for (int k = 0; k < count; k++)
        cairo_line_to(c->cairo, points[k][0], points[k][1]);
    cairo_close_path(c->cairo);
    fill(c);
}

static bool font_has(const void *opaque, uint32_t code)
{
    const Face *face = opaque;

    return FT_Get_Char_Index(face->face, code) != 0;
}

static const Face *face_of(const Canvas *c, int font)
{
    return cairo_font_face_get_user_data(c->fonts[font], &face_key);
}

#define TEXT_BYTES 1024

/* A text in reading order, and its signs from left to right. */
typedef struct CleanText {
    char read[TEXT_BYTES], shown[TEXT_BYTES];
} CleanText;

/* A file's font, or the built-in one if the text has a sign that the file lacks. */
static int face_for(const Canvas *c, const char *text, CanvasFont font)
{
    if (!c->own || font != FONT_SANS)
        return font;
    while (*text) {
        uint32_t code = utf8_next(&text);

        if (!font_has(face_of(c, font), code) && font_has(face_of(c, FACE_BUILT_IN), code))
            return FACE_BUILT_IN;
    }
    return font;
}

static double text_start(Canvas *c, const char *text, int font, CleanText *clean)
{
    cairo_text_extents_t extents;

    utf8_escape(text, font_has, face_of(c, font), clean->read, TEXT_BYTES);
    shape_text(clean->read, font_has, face_of(c, font), clean->shown, TEXT_BYTES);
    shortage_in_library(true);
    cairo_text_extents(c->cairo, clean->shown, &extents);
    shortage_in_library(false);
    return extents.x_advance;
}

static SvgFont svg_font(const Canvas *c, int at)
{
    const Face *face = face_of(c, at);

    return (SvgFont){ .face = face->face, .index = at, .start = face->start, .end = face->end };
}

void canvas_text(Canvas *c, double x, double y, const char *text, CanvasText style)
{
    CleanText clean;
    int       face = face_for(c, text, style.font);
    double    width, back, angle = (style.upward ? 90 : style.turn) * M_PI / 180;

    cairo_set_font_face(c->cairo, c->fonts[face]);
    cairo_set_font_size(c->cairo, style.size);
    width = text_start(c, text, face, &clean);
    back = style.align == ALIGN_LEFT ? 0 : style.align == ALIGN_RIGHT ? width : width / 2;
    if (c->svg) {
        svg_text(c->svg, x + c->right - (style.upward ? 0 : back * cos(angle)),
                 y + c->down + back * sin(angle), clean.read, clean.shown, width,
                 svg_font(c, face), style);
        return;
    }
    set_colour(c, style.rgb, 1);
    cairo_save(c->cairo);
    cairo_translate(c->cairo, x, y);
    if (angle > 0 || angle < 0)
        cairo_rotate(c->cairo, -angle);
    cairo_move_to(c->cairo, -back, 0);
    shortage_in_library(true);
    cairo_show_text(c->cairo, clean.shown);
    shortage_in_library(false);
    cairo_restore(c->cairo);
}

double canvas_text_width(Canvas *c, const char *text, CanvasFont font, double size)
{
    CleanText clean;
    int       face = face_for(c, text, font);

    cairo_set_font_face(c->cairo, c->fonts[face]);
    cairo_set_font_size(c->cairo, size);
    return text_start(c, text, face, &clean);
}

/* ---- images ------------------------------------------------------------------- */

static void fill_pixels(uint8_t *row, Rgb rgb, int count)
{
    uint32_t pixel = 0xFF000000u | (uint32_t)rgb.r << 16 | (uint32_t)rgb.g << 8 | rgb.b;

    for (int k = 0; k < count; k++)
        memcpy(row + 4 * k, &pixel, sizeof(pixel));
}

/* Writes whole pixels into the surface: exact colours, sharp edges. */
static void image_as_pixels(Canvas *c, int x, int y, const Rgb *cells, const uint8_t *skip,
                            int64_t cols, int64_t rows, int w, int h)
{
    int      stride = cairo_image_surface_get_stride(c->surface);
    int      width = cairo_image_surface_get_width(c->surface);
    int      height = cairo_image_surface_get_height(c->surface);
    uint8_t *data;

    if (x < 0 || y < 0 || x + w > width || y + h > height)
        return;
    cairo_surface_flush(c->surface);
    data = cairo_image_surface_get_data(c->surface);
    for (int64_t r = 0; data && r < rows; r++)
        for (int64_t at = r * h / rows; at < (r + 1) * h / rows; at++) {
            uint8_t *row = data + (y + at) * stride + 4 * (int64_t)x;

            for (int64_t k = 0; k < cols; k++)
                if (!skip || !skip[r * cols + k])
                    fill_pixels(row + 4 * (k * w / cols), cells[r * cols + k],
                                (int)((k + 1) * w / cols - k * w / cols));
        }
    cairo_surface_mark_dirty(c->surface);
}

#define CELL_PIXELS 16 /* pixels per side of a cell, at most */
#define CELL_LEAST  8  /* and at least, up to so many of all cells: */
#define IMAGE_SIDE  1024

/* Of one cell in an embedded image.  Many readers smooth enlarged images whatever the file says
 * (poppler below four times, macOS); with several pixels a cell only its edge is smoothed. */
static int cell_pixels(int extent, int64_t cells)
{
    int64_t each = extent / cells, least = IMAGE_SIDE / cells;

    each = each < CELL_PIXELS ? each : CELL_PIXELS;
    least = least < CELL_LEAST ? least : CELL_LEAST;
    each = each > least ? each : least;
    return each > 1 ? (int)each : 1;
}

/* A pixel in Cairo's order, or red, green, blue, alpha.  On paper all are opaque, which every
 * reader scales well. */
static void cell_pixel(const Canvas *c, Rgb rgb, bool left, uint8_t out[4])
{
    uint8_t alpha = left && !c->opaque ? 0 : 255;

    if (left)
        rgb = c->paper;
    memcpy(out, (uint8_t[4]){ rgb.r, rgb.g, rgb.b, alpha }, 4);
    if (c->kind == CANVAS_PDF && alpha)
        fill_pixels(out, rgb, 1);
    else if (c->kind == CANVAS_PDF)
        memset(out, 0, 4);
}

/* Each cell as across x down pixels. */
static uint8_t *image_bytes(const Canvas *c, const Rgb *cells, const uint8_t *skip, int64_t cols,
                            int64_t rows, int across, int down)
{
    size_t   stride = (size_t)cols * (size_t)across * 4;
    uint8_t *bytes = malloc(stride * (size_t)rows * (size_t)down), *row = bytes;

    for (int64_t r = 0; bytes && r < rows; r++, row += stride * (size_t)down) {
        for (int64_t k = 0; k < cols; k++) {
            uint8_t *at = row + 4 * k * across;

            cell_pixel(c, cells[r * cols + k], skip && skip[r * cols + k], at);
            for (int i = 1; i < across; i++)
                memcpy(at + (ptrdiff_t)4 * i, at, 4);
        }
        for (int i = 1; i < down; i++)
            memcpy(row + stride * (size_t)i, row, stride);
    }
    return bytes;
}

static const cairo_user_data_key_t bytes_key;

/* An image that owns bytes and stays until the page is finished: if it went before, Cairo would
 * copy it, and crash where it cannot.  NULL: no memory, and bytes are freed. */
static cairo_surface_t *kept_image(Canvas *c, uint8_t *bytes, int cols, int rows)
{
    cairo_surface_t **images = realloc(c->images, (size_t)(c->image_count + 1) * sizeof(*images));
    cairo_surface_t  *image;

    if (!images) {
        free(bytes);
        return NULL;
    }
    c->images = images;
    image = cairo_image_surface_create_for_data(bytes, CAIRO_FORMAT_ARGB32, cols, rows, 4 * cols);
    if (cairo_surface_set_user_data(image, &bytes_key, bytes, free) != CAIRO_STATUS_SUCCESS) {
        cairo_surface_destroy(image);
        free(bytes);
        return NULL;
    }
    return images[c->image_count++] = image;
}

static void image_in_pdf(Canvas *c, int x, int y, cairo_surface_t *image, int cols, int rows,
                         int width, int height)
{
    cairo_save(c->cairo);
    cairo_translate(c->cairo, x, y);
    cairo_scale(c->cairo, (double)width / cols, (double)height / rows);
    cairo_set_source_surface(c->cairo, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(c->cairo), CAIRO_FILTER_NEAREST);
    cairo_rectangle(c->cairo, 0, 0, cols, rows);
    fill(c);
    cairo_restore(c->cairo);
}

void canvas_image(Canvas *c, int x, int y, const Rgb *cells, const uint8_t *skip, int64_t cols,
                  int64_t rows, int width, int height)
{
    int across = cell_pixels(width, cols), down = cell_pixels(height, rows);
    int pixels_x = (int)cols * across, pixels_y = (int)rows * down;
    cairo_surface_t *image = NULL;
    uint8_t         *bytes;

    if (c->kind == CANVAS_PIXELS) {
        image_as_pixels(c, x + c->right, y + c->down, cells, skip, cols, rows, width, height);
        return;
    }
    bytes = image_bytes(c, cells, skip, cols, rows, across, down);
    if (bytes && c->svg) {
        c->failed |= !svg_image(c->svg, x + c->right, y + c->down, bytes, pixels_x, pixels_y,
                                width, height, NULL);
        free(bytes);
        return;
    }
    if (bytes)
        image = kept_image(c, bytes, pixels_x, pixels_y);
    if (image)
        image_in_pdf(c, x, y, image, pixels_x, pixels_y, width, height);
    else
        c->failed = true;
}

/* ---- the file ------------------------------------------------------------------- */

/* A fixed date: the same figure gives the same file. */
#define PDF_DATE "2000-01-01T00:00:00Z"

static bool finish_pdf(Canvas *c, const char *title, const char *const *metadata, Text *out,
                       Error *err)
{
    Text           lines = { 0 };
    cairo_status_t status;
    bool           ok;

    metadata_write_lines(metadata, "", &lines);
    shortage_in_library(true);
    cairo_pdf_surface_set_metadata(c->surface, CAIRO_PDF_METADATA_CREATE_DATE, PDF_DATE);
    cairo_pdf_surface_set_metadata(c->surface, CAIRO_PDF_METADATA_MOD_DATE, PDF_DATE);
    cairo_pdf_surface_set_metadata(c->surface, CAIRO_PDF_METADATA_CREATOR,
                                   "attnscope " ATTNSCOPE_VERSION);
    if (*title)
        cairo_pdf_surface_set_metadata(c->surface, CAIRO_PDF_METADATA_TITLE, title);
    if (lines.length)
        cairo_pdf_surface_set_metadata(c->surface, CAIRO_PDF_METADATA_KEYWORDS, text_str(&lines));
    cairo_show_page(c->cairo);
    cairo_surface_finish(c->surface);
    shortage_in_library(false);
    /* A stream within the surface that lacked memory does not tell the surface. */
    c->failed |= shortage_count() != c->shortages;
    status = cairo_surface_status(c->surface);
    ok = text_ok(&lines) && !c->failed && status == CAIRO_STATUS_SUCCESS && c->pdf.length;
    if (ok)
        text_add_bytes(out, c->pdf.data, c->pdf.length);
    text_free(&lines);
    return (ok && text_ok(out)) ||
           error_set(err, ERR_NOMEM, "a figure as PDF: %s",
                     status == CAIRO_STATUS_SUCCESS ? "out of memory"
                                                    : cairo_status_to_string(status));
}

bool canvas_finish(Canvas *c, const char *title, const char *const *metadata, Text *out, Error *err)
{
    char clean[TEXT_BYTES];

    utf8_escape(title, NULL, NULL, clean, sizeof(clean));
    return canvas_ok(c, err) && (c->svg ? svg_finish(c->svg, clean, metadata, out, err)
                                        : finish_pdf(c, clean, metadata, out, err));
}

static void straight(const uint8_t *in, uint8_t *out)
{
    uint32_t pixel, alpha;

    memcpy(&pixel, in, sizeof(pixel));
    alpha = pixel >> 24;
    for (int k = 0; k < 3; k++) {
        uint32_t value = pixel >> (16 - 8 * k) & 0xFF;

        out[k] = (uint8_t)(alpha == 255 ? value : alpha ? (value * 255 + alpha / 2) / alpha : 0);
    }
    out[3] = (uint8_t)alpha;
}

uint8_t *canvas_pixels(Canvas *c, int *width, int *height)
{
    int            stride = cairo_image_surface_get_stride(c->surface);
    const uint8_t *data;
    uint8_t       *pixels;

    *width = cairo_image_surface_get_width(c->surface);
    *height = cairo_image_surface_get_height(c->surface);
    cairo_surface_flush(c->surface);
    data = cairo_image_surface_get_data(c->surface);
    pixels = data ? malloc((size_t)*width * (size_t)*height * 4) : NULL;
    for (int r = 0; pixels && r < *height; r++)
        for (int k = 0; k < *width; k++)
            straight(data + (int64_t)r * stride + 4 * k,
                     pixels + 4 * ((int64_t)r * *width + k));
    return pixels;
}
