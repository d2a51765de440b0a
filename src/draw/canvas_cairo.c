/* canvas_cairo.c -- the canvas drawn by Cairo; see canvas.h.
 *
 * Fonts come from memory through FreeType, with hinting and subpixel
 * rendering off.  Cairo may keep a font face alive in its caches after the
 * canvas is gone; the face therefore owns its FreeType library, and both end
 * when Cairo lets go of it.
 */
#include "draw/canvas.h"

#include <cairo-ft.h>
#include <cairo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/fonts.h"
#include "draw/utf8.h"

struct Canvas {
    cairo_surface_t   *surface;
    cairo_t           *cairo;
    cairo_font_face_t *fonts[FONT_COUNT];
};

typedef struct Face {
    FT_Library library;
    FT_Face    face;
} Face;

static const cairo_user_data_key_t face_key;

static void face_free(void *opaque)
{
    Face *face = opaque;

    if (face->face)
        FT_Done_Face(face->face);
    if (face->library)
        FT_Done_FreeType(face->library);
    free(face);
}

static cairo_font_face_t *font_open(const unsigned char *start, const unsigned char *end)
{
    Face              *face = calloc(1, sizeof(*face));
    cairo_font_face_t *font;

    if (!face)
        return NULL;
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

Canvas *canvas_new_image(int width, int height, const Rgb *background, Error *err)
{
    Canvas *c = calloc(1, sizeof(*c));

    if (!c) {
        error_set(err, ERR_NOMEM, "drawing a figure: out of memory");
        return NULL;
    }
    c->surface = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, width, height);
    c->cairo = cairo_create(c->surface);
    c->fonts[FONT_SANS] = font_open(font_sans_start, font_sans_end);
    c->fonts[FONT_MONO] = font_open(font_mono_start, font_mono_end);
    if (!c->fonts[FONT_SANS] || !c->fonts[FONT_MONO]) {
        error_set(err, ERR_NOMEM, "drawing a figure: the built-in fonts cannot be opened");
        canvas_free(c);
        return NULL;
    }
    if (!canvas_ok(c, err)) {
        error_prefix(err, "a figure of %d x %d pixels", width, height);
        canvas_free(c);
        return NULL;
    }
    set_font_options(c->cairo);
    if (background) {
        set_colour(c, *background, 1);
        cairo_paint(c->cairo);
    }
    return c;
}

void canvas_free(Canvas *c)
{
    if (!c)
        return;
    cairo_destroy(c->cairo);
    cairo_surface_destroy(c->surface);
    for (int k = 0; k < FONT_COUNT; k++)
        if (c->fonts[k])
            cairo_font_face_destroy(c->fonts[k]);
    free(c);
}

bool canvas_ok(const Canvas *c, Error *err)
{
    cairo_status_t status = cairo_status(c->cairo);

    if (status == CAIRO_STATUS_SUCCESS)
        return true;
    return error_set(err, status == CAIRO_STATUS_NO_MEMORY ? ERR_NOMEM : ERR_DATA,
                     "drawing failed: %s", cairo_status_to_string(status));
}

void canvas_rect(Canvas *c, double x, double y, double width, double height, Rgb rgb)
{
    set_colour(c, rgb, 1);
    cairo_rectangle(c->cairo, x, y, width, height);
    cairo_fill(c->cairo);
}

void canvas_line(Canvas *c, double x0, double y0, double x1, double y1, double width, Rgb rgb,
                 double alpha)
{
    set_colour(c, rgb, alpha);
    cairo_set_line_width(c->cairo, width);
    cairo_move_to(c->cairo, x0, y0);
    cairo_line_to(c->cairo, x1, y1);
    cairo_stroke(c->cairo);
}

static bool font_has(const void *opaque, uint32_t code)
{
    const Face *face = opaque;

    return FT_Get_Char_Index(face->face, code) != 0;
}

static double text_start(Canvas *c, const char *text, CanvasFont font, char *clean, size_t size)
{
    cairo_text_extents_t extents;

    utf8_escape(text, font_has, cairo_font_face_get_user_data(c->fonts[font], &face_key), clean,
                size);
    cairo_text_extents(c->cairo, clean, &extents);
    return extents.x_advance;
}

void canvas_text(Canvas *c, double x, double y, const char *text, CanvasText style)
{
    char   clean[1024];
    double width;

    cairo_set_font_face(c->cairo, c->fonts[style.font]);
    cairo_set_font_size(c->cairo, style.size);
    width = text_start(c, text, style.font, clean, sizeof(clean));
    set_colour(c, style.rgb, 1);
    cairo_save(c->cairo);
    cairo_translate(c->cairo, x, y);
    if (style.upward)
        cairo_rotate(c->cairo, -M_PI / 2);
    cairo_move_to(c->cairo,
                  style.align == ALIGN_LEFT ? 0 : style.align == ALIGN_RIGHT ? -width : -width / 2,
                  0);
    cairo_show_text(c->cairo, clean);
    cairo_restore(c->cairo);
}

double canvas_text_width(Canvas *c, const char *text, CanvasFont font, double size)
{
    char clean[1024];

    cairo_set_font_face(c->cairo, c->fonts[font]);
    cairo_set_font_size(c->cairo, size);
    return text_start(c, text, font, clean, sizeof(clean));
}

static void fill_pixels(uint8_t *row, Rgb rgb, int count)
{
    uint32_t pixel = 0xFF000000u | (uint32_t)rgb.r << 16 | (uint32_t)rgb.g << 8 | rgb.b;

    for (int k = 0; k < count; k++)
        memcpy(row + 4 * k, &pixel, sizeof(pixel));
}

/* Whole pixels written straight into the surface: exact colours, sharp edges. */
void canvas_image(Canvas *c, int x, int y, const Rgb *cells, const uint8_t *skip, int64_t cols,
                  int64_t rows, int cell_w, int cell_h)
{
    int      stride = cairo_image_surface_get_stride(c->surface);
    int      width = cairo_image_surface_get_width(c->surface);
    int      height = cairo_image_surface_get_height(c->surface);
    uint8_t *data;

    if (x < 0 || y < 0 || x + cols * cell_w > width || y + rows * cell_h > height)
        return;
    cairo_surface_flush(c->surface);
    data = cairo_image_surface_get_data(c->surface);
    for (int64_t r = 0; data && r < rows * cell_h; r++)
        for (int64_t k = 0; k < cols; k++) {
            int64_t at = r / cell_h * cols + k;

            if (!skip || !skip[at])
                fill_pixels(data + (y + r) * stride + 4 * (x + k * cell_w), cells[at], cell_w);
        }
    cairo_surface_mark_dirty(c->surface);
}

static void straight(const uint8_t *in, uint8_t *out)
{
    uint32_t pixel, alpha;

    memcpy(&pixel, in, sizeof(pixel));
    alpha = pixel >> 24;
    for (int k = 0; k < 3; k++) {
        uint32_t value = pixel >> (16 - 8 * k) & 0xFF;

        out[k] = (uint8_t)(alpha ? (value * 255 + alpha / 2) / alpha : 0);
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
