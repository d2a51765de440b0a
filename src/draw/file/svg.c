/* svg.c -- shapes, letters and images as SVG elements, and the file around them; see svg.h. */
#include "draw/file/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include FT_OUTLINE_H

#include "draw/file/format.h"
#include "draw/text/unicode.h"

#define GLYPHS_MOST 65536
#define IMAGE_DPI 72 /* of an embedded image; no reader uses it */

struct Svg {
    int      width, height, dpi;
    SvgLetters letters;
    Text     glyphs, body, fonts;
    uint8_t *written[SVG_FONTS]; /* one bit per glyph; owned */
    bool     embedded[SVG_FONTS];
};

Svg *svg_new(int width, int height, int dpi, SvgLetters letters)
{
    Svg *svg = calloc(1, sizeof(*svg));
    bool ok = svg != NULL;

    for (int k = 0; ok && k < SVG_FONTS; k++)
        ok = (svg->written[k] = calloc(GLYPHS_MOST / 8, 1)) != NULL;
    if (!ok) {
        svg_free(svg);
        return NULL;
    }
    svg->width = width;
    svg->height = height;
    svg->dpi = dpi;
    svg->letters = letters;
    return svg;
}

void svg_free(Svg *svg)
{
    if (!svg)
        return;
    for (int k = 0; k < SVG_FONTS; k++)
        free(svg->written[k]);
    text_free(&svg->fonts);
    text_free(&svg->glyphs);
    text_free(&svg->body);
    free(svg);
}

/* Writes decimals without trailing zeros, independent of the locale. */
static void add_number(Text *out, double value, int decimals)
{
    int64_t unit = 1, scaled;
    char    digits[24];
    int     length;

    for (int k = 0; k < decimals; k++)
        unit *= 10;
    scaled = llround(value * (double)unit);
    text_addf(out, "%s%lld", scaled < 0 ? "-" : "", (long long)(llabs(scaled) / unit));
    length = snprintf(digits, sizeof(digits), "%0*lld", decimals,
                      (long long)(llabs(scaled) % unit));
    while (length > 0 && digits[length - 1] == '0')
        length--;
    if (length > 0)
        text_addf(out, ".%.*s", length, digits);
}

static void add_attribute(Text *out, const char *name, double value)
{
    text_addf(out, " %s=\"", name);
    add_number(out, value, 2);
    text_add(out, "\"");
}

static void add_paint(Text *out, const char *name, Rgb rgb, double alpha)
{
    text_addf(out, " %s=\"#%02x%02x%02x\"", name, rgb.r, rgb.g, rgb.b);
    if (alpha < 1) {
        text_addf(out, " %s-opacity=\"", name);
        add_number(out, alpha, 3);
        text_add(out, "\"");
    }
}

void svg_rect(Svg *svg, double x, double y, double width, double height, Rgb rgb)
{
    text_add(&svg->body, "<rect");
    add_attribute(&svg->body, "x", x);
    add_attribute(&svg->body, "y", y);
    add_attribute(&svg->body, "width", width > 0 ? width : 0);
    add_attribute(&svg->body, "height", height > 0 ? height : 0);
    add_paint(&svg->body, "fill", rgb, 1);
    text_add(&svg->body, "/>\n");
}

void svg_line(Svg *svg, double x0, double y0, double x1, double y1, double width, Rgb rgb,
              double alpha)
{
    bool upright = fabs(x1 - x0) < 1e-9 || fabs(y1 - y0) < 1e-9;

    text_add(&svg->body, "<line");
    add_attribute(&svg->body, "x1", x0);
    add_attribute(&svg->body, "y1", y0);
    add_attribute(&svg->body, "x2", x1);
    add_attribute(&svg->body, "y2", y1);
    add_attribute(&svg->body, "stroke-width", width);
    add_paint(&svg->body, "stroke", rgb, alpha);
    text_add(&svg->body, upright ? "/>\n" : " stroke-linecap=\"round\"/>\n");
}

void svg_polygon(Svg *svg, const double (*points)[2], int count, double right, double down, Rgb rgb,
                 double alpha)
{
    text_add(&svg->body, "<path d=\"");
    for (int k = 0; k < count; k++) {
        text_add(&svg->body, k ? "L" : "M");
        add_number(&svg->body, right + points[k][0], 2);
        text_add(&svg->body, " ");
        add_number(&svg->body, down + points[k][1], 2);
    }
    text_add(&svg->body, "Z\"");
    add_paint(&svg->body, "fill", rgb, alpha);
    text_add(&svg->body, "/>\n");
}

#define FONT_LETTERS "smb" /* of ids of glyphs, by the font's index */

/* ---- letters ---------------------------------------------------------------- */

static int outline_move(const FT_Vector *to, void *out)
{
    text_addf(out, "M%ld %ld", to->x, to->y);
    return 0;
}

static int outline_line(const FT_Vector *to, void *out)
{
    text_addf(out, "L%ld %ld", to->x, to->y);
    return 0;
}

static int outline_conic(const FT_Vector *by, const FT_Vector *to, void *out)
{
    text_addf(out, "Q%ld %ld %ld %ld", by->x, by->y, to->x, to->y);
    return 0;
}

static int outline_cubic(const FT_Vector *a, const FT_Vector *b, const FT_Vector *to, void *out)
{
    text_addf(out, "C%ld %ld %ld %ld %ld %ld", a->x, a->y, b->x, b->y, to->x, to->y);
    return 0;
}

/* The glyph's advance in font units; writes its outline at the first use. */
static long add_glyph(Svg *svg, FT_Face face, int font, FT_UInt index)
{
    static const FT_Outline_Funcs steps = { .move_to = outline_move, .line_to = outline_line,
                                            .conic_to = outline_conic,
                                            .cubic_to = outline_cubic };
    uint8_t *seen = &svg->written[font][index % GLYPHS_MOST / 8], bit = (uint8_t)(1 << index % 8);

    if (FT_Load_Glyph(face, index, FT_LOAD_NO_SCALE) != 0)
        return 0;
    if (!(*seen & bit) && face->glyph->format == FT_GLYPH_FORMAT_OUTLINE) {
        text_addf(&svg->glyphs, "<path id=\"%c%u\" d=\"", FONT_LETTERS[font], index);
        FT_Outline_Decompose(&face->glyph->outline, &steps, &svg->glyphs);
        text_add(&svg->glyphs, "Z\"/>\n");
        *seen |= bit;
    }
    return face->glyph->metrics.horiAdvance;
}

static void add_turn(Svg *svg, CanvasText style)
{
    double turn = style.upward ? 90 : style.turn;

    if (!(turn > 0 || turn < 0))
        return;
    text_add(&svg->body, " rotate(");
    add_number(&svg->body, -turn, 2);
    text_add(&svg->body, ")");
}

static void open_text(Svg *svg, double x, double y, const char *text, double scale,
                      CanvasText style)
{
    text_add(&svg->body, "<g aria-label=\"");
    metadata_add_xml(&svg->body, text);
    text_add(&svg->body, "\" transform=\"translate(");
    add_number(&svg->body, x, 2);
    text_add(&svg->body, " ");
    add_number(&svg->body, y, 2);
    text_add(&svg->body, ")");
    add_turn(svg, style);
    text_add(&svg->body, " scale(");
    add_number(&svg->body, scale, 7);
    text_add(&svg->body, " -");
    add_number(&svg->body, scale, 7);
    text_add(&svg->body, ")\"");
    add_paint(&svg->body, "fill", style.rgb, 1);
    text_add(&svg->body, ">");
}

static void add_base64(Text *out, const void *bytes, size_t length);

static void add_family(Text *out, const SvgFont *font)
{
    metadata_add_xml(out, font->face->family_name ? font->face->family_name : "font");
}

/* The whole font, once. */
static void embed_font(Svg *svg, const SvgFont *font)
{
    if (svg->embedded[font->index])
        return;
    svg->embedded[font->index] = true;
    text_add(&svg->fonts, "@font-face{font-family:\"");
    add_family(&svg->fonts, font);
    text_add(&svg->fonts, "\";src:url(data:font/sfnt;base64,");
    add_base64(&svg->fonts, font->start, (size_t)(font->end - font->start));
    text_add(&svg->fonts, ")}\n");
}

static void live_text(Svg *svg, double x, double y, const char *text, double width,
                      const SvgFont *font, CanvasText style)
{
    if (svg->letters == LETTERS_EMBEDDED)
        embed_font(svg, font);
    text_add(&svg->body, "<text xml:space=\"preserve\" transform=\"translate(");
    add_number(&svg->body, x, 2);
    text_add(&svg->body, " ");
    add_number(&svg->body, y, 2);
    text_add(&svg->body, ")");
    add_turn(svg, style);
    text_add(&svg->body, "\" font-family=\"'");
    add_family(&svg->body, font);
    text_add(&svg->body, "',sans-serif\"");
    add_attribute(&svg->body, "font-size", style.size);
    add_attribute(&svg->body, "textLength", width);
    add_paint(&svg->body, "fill", style.rgb, 1);
    text_add(&svg->body, ">");
    metadata_add_xml(&svg->body, text);
    text_add(&svg->body, "</text>\n");
}

void svg_text(Svg *svg, double x, double y, const char *text, const char *shown, double width,
              SvgFont font, CanvasText style)
{
    const char *at = shown;
    FT_Face     face = font.face;
    long        pen = 0;

    if (!*text)
        return;
    if (svg->letters != LETTERS_OUTLINES) {
        live_text(svg, x, y, text, width, &font, style);
        return;
    }
    open_text(svg, x, y, text, style.size / face->units_per_EM, style);
    while (*at) {
        FT_UInt index = FT_Get_Char_Index(face, utf8_next(&at));
        long    advance = add_glyph(svg, face, font.index, index);

        if (face->glyph->outline.n_points > 0)
            text_addf(&svg->body, "<use xlink:href=\"#%c%u\" x=\"%ld\"/>",
                      FONT_LETTERS[font.index], index, pen);
        pen += advance;
    }
    text_add(&svg->body, "</g>\n");
}

/* ---- images ----------------------------------------------------------------- */

static void add_base64(Text *out, const void *bytes, size_t length)
{
    static const char signs[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *in = bytes;

    for (size_t k = 0; k < length; k += 3) {
        size_t   left = length - k;
        uint32_t group = (uint32_t)in[k] << 16 | (left > 1 ? (uint32_t)in[k + 1] << 8 : 0) |
                         (left > 2 ? in[k + 2] : 0);
        char     four[4] = { signs[group >> 18], signs[group >> 12 & 63],
                             left > 1 ? signs[group >> 6 & 63] : '=',
                             left > 2 ? signs[group & 63] : '=' };

        text_add_bytes(out, four, 4);
    }
}

bool svg_image(Svg *svg, double x, double y, const uint8_t *rgba, int across, int down, int width,
               int height, Error *err)
{
    Text png = { 0 };
    bool ok = png_encode(rgba, across, down, IMAGE_DPI, NULL, &png, err);

    if (ok) {
        text_add(&svg->body, "<image");
        add_attribute(&svg->body, "x", x);
        add_attribute(&svg->body, "y", y);
        add_attribute(&svg->body, "width", width);
        add_attribute(&svg->body, "height", height);
        text_add(&svg->body, " preserveAspectRatio=\"none\" style=\"image-rendering:optimizeSpeed;"
                             "image-rendering:crisp-edges;image-rendering:pixelated\"\n"
                             "xlink:href=\"data:image/png;base64,");
        add_base64(&svg->body, png.data, png.length);
        text_add(&svg->body, "\"/>\n");
    }
    text_free(&png);
    return ok;
}

/* ---- the file --------------------------------------------------------------- */

static void add_head(const Svg *svg, const char *title, const char *const *metadata, Text *out)
{
    text_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" "
                  "xmlns:xlink=\"http://www.w3.org/1999/xlink\" version=\"1.1\"");
    text_add(out, " width=\"");
    add_number(out, (double)svg->width / svg->dpi, 4);
    text_add(out, "in\" height=\"");
    add_number(out, (double)svg->height / svg->dpi, 4);
    text_addf(out, "in\" viewBox=\"0 0 %d %d\">\n", svg->width, svg->height);
    if (*title) {
        text_add(out, "<title>");
        metadata_add_xml(out, title);
        text_add(out, "</title>\n");
    }
    metadata_write_xml(metadata, out);
}

bool svg_finish(Svg *svg, const char *title, const char *const *metadata, Text *out, Error *err)
{
    add_head(svg, title, metadata, out);
    if (svg->fonts.length) {
        text_add(out, "<style>\n");
        text_add_bytes(out, svg->fonts.data, svg->fonts.length);
        text_add(out, "</style>\n");
    }
    if (svg->glyphs.length) {
        text_add(out, "<defs>\n");
        text_add_bytes(out, svg->glyphs.data, svg->glyphs.length);
        text_add(out, "</defs>\n");
    }
    if (svg->body.length)
        text_add_bytes(out, svg->body.data, svg->body.length);
    text_add(out, "</svg>\n");
    return (text_ok(&svg->glyphs) && text_ok(&svg->fonts) && text_ok(&svg->body) && text_ok(out)) ||
           error_set(err, ERR_NOMEM, "a figure as SVG: out of memory");
}
