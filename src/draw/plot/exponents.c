/* exponents.c -- the chart of exponents; see exponents.h.
 *
 * Two columns of words, the axis, one column of numbers.  A row holds three marks one
 * below the other, so that they do not hide each other where they agree.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/file/png.h"
#include "draw/page/sheet.h"
#include "draw/plot/exponents.h"

#define PAGE_INCH   6.75
#define ROW_POINTS  11.5
#define TICK_STEP   0.5
#define COLUMN      "0.00   " /* of numbers: as wide as this */
#define NAMES_HEAD  "mechanism"
#define CLAIMS_HEAD "claimed"

typedef struct Chart {
    const ExponentChart *chart;
    SheetStyle           style;
    Canvas              *canvas; /* owned; a scrap one while measuring */
    int                  width, height;
    double               margin, row, top; /* top: of the first row */
    double               claim_x, axis_x, axis_w, numbers_x;
    double               lo, hi; /* of the axis */
    Lines                title, caption;
} Chart;

/* Okabe and Ito's blue, vermilion and green: told apart in any eye, and by their shapes. */
static Rgb mark_colour(ExponentOf of)
{
    static const Rgb colours[EXPONENTS] = {
        [EXPONENT_FLOPS] = { 0, 114, 178 },
        [EXPONENT_TIME] = { 213, 94, 0 },
        [EXPONENT_MEMORY] = { 0, 158, 115 },
    };

    return colours[of];
}

static const char *mark_name(ExponentOf of)
{
    static const char *const names[EXPONENTS] = { "FLOPs counted", "time", "memory" };

    return names[of];
}

/* ---- measuring -------------------------------------------------------------- */

static double text_width(void *context, const char *text)
{
    const Chart *c = context;

    return canvas_text_width(c->canvas, text, FONT_SANS, c->style.tick);
}

static double widest(Chart *c, bool claims)
{
    double most = text_width(c, claims ? CLAIMS_HEAD : NAMES_HEAD);

    for (int i = 0; i < c->chart->count; i++)
        most = fmax(most, text_width(c, claims ? c->chart->rows[i].claim : c->chart->rows[i].name));
    return most;
}

static void widen(Chart *c, double value)
{
    if (!isfinite(value))
        return;
    c->lo = fmin(c->lo, fmax(value, -2));
    c->hi = fmax(c->hi, fmin(value, 5));
}

/* 0 to 2 at least, in whole ticks; a wide interval is cut at the edge. */
static void choose_axis(Chart *c)
{
    c->lo = 0;
    c->hi = 2;
    for (int i = 0; i < c->chart->count; i++) {
        const ExponentRow *row = &c->chart->rows[i];

        for (int k = 0; k < row->claim_count; k++)
            widen(c, row->claims[k]);
        for (int of = 0; of < EXPONENTS; of++)
            if (row->measured[of].valid)
                widen(c, row->measured[of].value);
    }
    c->lo = floor(c->lo / TICK_STEP) * TICK_STEP;
    c->hi = ceil((c->hi + 0.05) / TICK_STEP) * TICK_STEP;
}

static int groups(const ExponentChart *chart)
{
    int count = 0;

    for (int i = 0; i < chart->count; i++)
        count += chart->rows[i].group != NULL;
    return count;
}

static int legend(Chart *c, double y, bool drawn);

static void lay_out(Chart *c)
{
    const SheetStyle *s = &c->style;
    WrapRule          rule = { .width = text_width, .context = c };
    double            most = 0.26 * c->width, claims, numbers;

    c->margin = 2 * s->space;
    c->row = sheet_points(s, ROW_POINTS);
    rule.room = c->width - 2 * c->margin;
    wrap_text(c->chart->caption, &rule, WRAP_LINES, &c->caption);
    rule.room *= s->tick / s->head; /* the title is set larger */
    wrap_text(c->chart->title, &rule, 2, &c->title);
    c->claim_x = c->margin + fmin(widest(c, false), most) + 2 * s->space;
    claims = fmin(widest(c, true), most);
    c->axis_x = c->claim_x + claims + 3 * s->space;
    numbers = EXPONENTS * text_width(c, COLUMN) - text_width(c, " ");
    c->numbers_x = c->width - c->margin - numbers;
    c->axis_w = c->numbers_x - 4 * s->space - c->axis_x;
    c->top = c->margin + sheet_lines_height(&c->title, s->head, s->space) + 2 * c->row;
    c->height = (int)ceil(c->top + (c->chart->count + groups(c->chart)) * c->row +
                          ((c->caption.count ? 3.2 : 2.4) + legend(c, 0, false)) * c->row +
                          sheet_lines_height(&c->caption, s->tick, s->space) + c->margin);
    choose_axis(c);
}

/* ---- drawing ---------------------------------------------------------------- */

static double place(const Chart *c, double exponent)
{
    double t = (fmin(fmax(exponent, c->lo), c->hi) - c->lo) / (c->hi - c->lo);

    return c->axis_x + t * c->axis_w;
}

static void words(Chart *c, double x, double y, const char *text, double size, Rgb rgb,
                  CanvasAlign align)
{
    canvas_text(c->canvas, x, y, text,
                (CanvasText){ .font = FONT_SANS, .align = align, .size = size, .rgb = rgb });
}

static void words_in(Chart *c, double x, double y, double room, const char *text, Rgb rgb)
{
    char cut[256];

    sheet_fit(c->canvas, text, c->style.tick, room, cut, sizeof(cut));
    words(c, x, y, cut, c->style.tick, rgb, ALIGN_LEFT);
}

static void mark_outline(Canvas *canvas, double x, double y, double size, ExponentOf of, Rgb rgb)
{
    double half = 0.85 * size;
    double square[4][2] = { { x - half, y - half }, { x + half, y - half }, { x + half, y + half },
                            { x - half, y + half } };
    double diamond[4][2] = { { x, y - size }, { x + size, y }, { x, y + size }, { x - size, y } };
    double triangle[3][2] = { { x, y - size }, { x + size, y + size }, { x - size, y + size } };

    if (of == EXPONENT_MEMORY)
        canvas_polygon(canvas, (const double(*)[2])triangle, 3, rgb, 1);
    else if (of == EXPONENT_TIME)
        canvas_polygon(canvas, (const double(*)[2])diamond, 4, rgb, 1);
    else
        canvas_polygon(canvas, (const double(*)[2])square, 4, rgb, 1);
}

/* A square, a diamond and a triangle of the same size. */
static void mark(Chart *c, double x, double y, double size, ExponentOf of)
{
    Rgb rgb = mark_colour(of);

    if (canvas_is_vector(c->canvas)) {
        mark_outline(c->canvas, x, y, size, of, rgb);
        return;
    }
    x = round(x); /* on whole pixels, so that its lines leave no seams */
    y = round(y);
    size = round(size);
    for (double dy = -size; dy <= size; dy += 1) {
        double half = of == EXPONENT_FLOPS  ? size * 0.85
                      : of == EXPONENT_TIME ? size - fabs(dy)
                                            : (size + dy) / 2;

        half = floor(half);
        if (of != EXPONENT_FLOPS || fabs(dy) <= half)
            canvas_rect(c->canvas, x - half, y + dy, 2 * half + 1, 1, rgb);
    }
}

static void draw_measured(Chart *c, const ExponentRow *row, double y)
{
    double lane = c->row / 4;

    for (ExponentOf of = EXPONENT_FLOPS; of < EXPONENTS; of++) {
        const Exponent *e = &row->measured[of];
        double          at = y + (of + 1) * lane;

        if (!e->valid)
            continue;
        if (e->bounded)
            canvas_line(c->canvas, place(c, e->lo), at, place(c, e->hi), at, 2 * c->style.frame,
                        mark_colour(of), 0.45);
        mark(c, place(c, e->value), at, sheet_points(&c->style, 1.7), of);
    }
}

static void draw_numbers(Chart *c, const ExponentRow *row, double y)
{
    double column = text_width(c, COLUMN);

    for (ExponentOf of = EXPONENT_FLOPS; of < EXPONENTS; of++) {
        char text[32] = "-";

        if (row->measured[of].valid)
            snprintf(text, sizeof(text), "%.2f", row->measured[of].value);
        words(c, c->numbers_x + of * column, y, text, c->style.tick, c->style.ink, ALIGN_LEFT);
    }
}

static void draw_row(Chart *c, const ExponentRow *row, double y)
{
    const SheetStyle *s = &c->style;
    double            line = y + c->row / 2 + 0.36 * s->tick;
    Rgb               claim = s->muted;

    canvas_line(c->canvas, c->margin, y, c->width - c->margin, y, s->hair, s->rule, 1);
    words_in(c, c->margin, line, c->claim_x - c->margin - s->space, row->name,
             row->note ? s->muted : s->ink);
    words_in(c, c->claim_x, line, c->axis_x - c->claim_x - s->space, row->claim, s->muted);
    for (int k = 0; k < row->claim_count; k++)
        canvas_line(c->canvas, place(c, row->claims[k]), y + s->hair, place(c, row->claims[k]),
                    y + c->row, sheet_points(s, 2.2), claim, 0.4);
    if (row->note) {
        words_in(c, c->axis_x + s->space, line, c->axis_w - s->space, row->note, s->muted);
        return;
    }
    draw_measured(c, row, y);
    draw_numbers(c, row, line);
}

static void draw_axis(Chart *c, double top, double bottom)
{
    static const char *const short_names[EXPONENTS] = { "FLOPs", "time", "mem." };
    const SheetStyle        *s = &c->style;

    for (double at = c->lo; at <= c->hi + 1e-9; at += TICK_STEP) {
        char text[32];
        bool whole = fabs(at - round(at)) < 1e-9;

        canvas_line(c->canvas, place(c, at), top, place(c, at), bottom, s->hair,
                    whole ? s->muted : s->rule, whole ? 0.7 : 1);
        snprintf(text, sizeof(text), "%.1f", at);
        words(c, place(c, at), top - s->space, text, s->tick, s->ink, ALIGN_CENTRE);
    }
    words(c, c->axis_x + c->axis_w / 2, top - s->space - 1.3 * s->tick, "exponent of n", s->axis,
          s->ink, ALIGN_CENTRE);
    words(c, c->margin, top - s->space, NAMES_HEAD, s->tick, s->muted, ALIGN_LEFT);
    words(c, c->claim_x, top - s->space, CLAIMS_HEAD, s->tick, s->muted, ALIGN_LEFT);
    for (ExponentOf of = EXPONENT_FLOPS; of < EXPONENTS; of++)
        words(c, c->numbers_x + of * text_width(c, COLUMN), top - s->space, short_names[of],
              s->small, s->muted, ALIGN_LEFT);
}

#define CLAIMED_WORDS "claimed; lines: 95 % intervals"

static const char *legend_words(int entry)
{
    return entry < EXPONENTS ? mark_name((ExponentOf)entry) : CLAIMED_WORDS;
}

static double legend_width(Chart *c, int entry)
{
    double size = sheet_points(&c->style, 2);

    return (entry < EXPONENTS ? 7 : 2) * size +
           canvas_text_width(c->canvas, legend_words(entry), FONT_SANS, c->style.legend);
}

static void draw_entry(Chart *c, int entry, double x, double y)
{
    const SheetStyle *s = &c->style;
    double            size = sheet_points(s, 2);

    if (entry < EXPONENTS) {
        canvas_line(c->canvas, x, y - size, x + 6 * size, y - size, 2 * s->frame,
                    mark_colour((ExponentOf)entry), 0.45);
        mark(c, x + 3 * size, y - size, size, (ExponentOf)entry);
        x += 7 * size;
    } else {
        canvas_line(c->canvas, x, y - 2.5 * size, x, y + size, sheet_points(s, 2.2), s->muted, 0.4);
        x += 2 * size;
    }
    words(c, x, y, legend_words(entry), s->legend, s->ink, ALIGN_LEFT);
}

/* What the shapes mean; the claims' band too.  The lines below the first that it takes. */
static int legend(Chart *c, double y, bool drawn)
{
    double gap = 5 * sheet_points(&c->style, 2), x = c->margin;
    int    more = 0;

    for (int entry = 0; entry <= EXPONENTS; entry++) {
        double width = legend_width(c, entry);

        if (x > c->margin && x + width > c->width - c->margin) {
            x = c->margin;
            more++;
        }
        if (drawn)
            draw_entry(c, entry, x, y + more * c->row);
        x += width + gap;
    }
    return more;
}

static void draw_lines(Chart *c, const Lines *lines, double y, double size, Rgb rgb)
{
    for (int i = 0; i < lines->count; i++)
        words(c, c->margin, y + (i + 0.8) * size * SHEET_LINE, lines->text[i], size, rgb,
              ALIGN_LEFT);
}

static void draw(Chart *c)
{
    const SheetStyle *s = &c->style;
    double            y = c->top, bottom = c->top + (c->chart->count + groups(c->chart)) * c->row;

    draw_lines(c, &c->title, c->margin, s->head, s->ink);
    draw_axis(c, c->top, bottom);
    for (int i = 0; i < c->chart->count; i++) {
        if (c->chart->rows[i].group) {
            words(c, c->margin, y + c->row / 2 + 0.36 * s->axis, c->chart->rows[i].group, s->axis,
                  s->ink, ALIGN_LEFT);
            y += c->row;
        }
        draw_row(c, &c->chart->rows[i], y);
        y += c->row;
    }
    canvas_line(c->canvas, c->margin, y, c->width - c->margin, y, s->hair, s->rule, 1);
    y += 1.6 * c->row;
    y += (1 + legend(c, y, true)) * c->row;
    draw_lines(c, &c->caption, y, s->tick, s->muted);
}

/* ---- the file --------------------------------------------------------------- */

static bool write_chart(Chart *c, CanvasKind kind, const PngOptions *options, Text *bytes,
                        Error *err)
{
    canvas_free(c->canvas);
    c->canvas = canvas_new(kind, c->width, c->height, c->style.dpi,
                           options->transparent ? NULL : &c->style.paper, err);
    if (!c->canvas)
        return false;
    draw(c);
    return canvas_ok(c->canvas, err) &&
           sheet_finish(c->canvas, kind, c->style.dpi, c->chart->title, options, bytes, err);
}

static bool kind_of(FigureFormat format, CanvasKind *out, Error *err)
{
    *out = sheet_canvas(format);
    return *out != CANVAS_PIXELS || format == FORMAT_PNG_FILE ||
           error_set(err, ERR_USAGE, "a chart of exponents is a .png, .svg or .pdf; as text it is "
                     "the table that fit prints, or writes as .md or .csv");
}

bool exponent_chart_file(const ExponentChart *chart, FigureFormat format,
                         const PngOptions *options, Text *bytes, Error *err)
{
    CanvasKind kind;
    Chart  c = { .chart = chart, .style = sheet_style(options) };
    double inch = options->width_inch > 0 ? options->width_inch : PAGE_INCH;
    bool   ok;

    if (!kind_of(format, &kind, err))
        return false;
    if (chart->count < 1)
        return error_set(err, ERR_DATA, "the chart has no row");
    c.width = (int)lround(inch * c.style.dpi);
    c.canvas = canvas_new_image(8, 8, NULL, err);
    if (!c.canvas)
        return false;
    lay_out(&c);
    ok = c.axis_w > sheet_points(&c.style, 60)
             ? write_chart(&c, kind, options, bytes, err)
             : error_set(err, ERR_USAGE,
                         "--width: a chart of exponents needs more than %.2g "
                         "inches",
                         inch);
    canvas_free(c.canvas);
    return ok;
}

/* A chart of exponents as JSON and back; see exponents.h.
 *
 * All that is drawn is there, so that a file's chart can be drawn again without the records it
 * was made of, to the same bytes.
 */

/* What is larger in a file is not ours. */
#define ROWS_MOST 4096

static const char *const names[EXPONENTS] = {
    [EXPONENT_FLOPS] = "flops", [EXPONENT_TIME] = "time", [EXPONENT_MEMORY] = "memory",
};

/* ---- to JSON ---------------------------------------------------------------- */

/* [value, lo, hi], [value], or null where it was not measured. */
static void exponent_json(const Exponent *e, Json *out)
{
    if (!e->valid) {
        jsonw_null(out);
        return;
    }
    jsonw_open(out, '[');
    jsonw_number(out, e->value);
    if (e->bounded) {
        jsonw_number(out, e->lo);
        jsonw_number(out, e->hi);
    }
    jsonw_close(out, ']');
}

static void row_json(const ExponentRow *row, Json *out)
{
    jsonw_open(out, '{');
    jsonw_some_string(out, "group", row->group);
    jsonw_key_string(out, "name", row->name);
    jsonw_key_string(out, "claim", row->claim);
    jsonw_some_string(out, "note", row->note);
    jsonw_key(out, "claims");
    jsonw_open(out, '[');
    for (int i = 0; i < row->claim_count; i++)
        jsonw_number(out, row->claims[i]);
    jsonw_close(out, ']');
    for (int of = 0; of < EXPONENTS; of++) {
        jsonw_key(out, names[of]);
        exponent_json(&row->measured[of], out);
    }
    jsonw_close(out, '}');
}

void exponents_json(const ExponentChart *chart, Json *out)
{
    jsonw_key_string(out, "measured", chart->measured);
    jsonw_key_string(out, "title", chart->title);
    jsonw_key_string(out, "caption", chart->caption);
    jsonw_key(out, "rows");
    jsonw_open(out, '[');
    for (int i = 0; i < chart->count; i++)
        row_json(&chart->rows[i], out);
    jsonw_close(out, ']');
}

/* ---- from JSON -------------------------------------------------------------- */

/* A copy; *text NULL where there is none.  False: it is there and no string, or no memory. */
static bool take_string(const json_t *object, const char *key, const char **text)
{
    const json_t *value = json_object_get(object, key);

    *text = json_is_string(value) ? strdup(json_string_value(value)) : NULL;
    return !value || *text;
}

static bool take_exponent(const json_t *list, Exponent *out)
{
    size_t count = json_array_size(list);

    *out = (Exponent){ .valid = count > 0, .bounded = count == 3 };
    out->value = json_number_value(json_array_get(list, 0));
    out->lo = json_number_value(json_array_get(list, 1));
    out->hi = json_number_value(json_array_get(list, 2));
    return json_is_null(list) ? count == 0 : count == 1 || count == 3;
}

static bool take_row(const json_t *object, ExponentRow *row)
{
    const json_t *claims = json_object_get(object, "claims");
    size_t        count = json_array_size(claims);

    for (int of = 0; of < EXPONENTS; of++)
        if (!take_exponent(json_object_get(object, names[of]), &row->measured[of]))
            return false;
    if (!json_is_array(claims) || count > EXPONENT_CLAIMS)
        return false;
    row->claim_count = (int)count;
    for (size_t i = 0; i < count; i++)
        row->claims[i] = json_number_value(json_array_get(claims, i));
    return take_string(object, "group", &row->group) && take_string(object, "note", &row->note) &&
           take_string(object, "name", &row->name) && row->name &&
           take_string(object, "claim", &row->claim) && row->claim;
}

static bool take_all(const json_t *json, ExponentChart *chart)
{
    const json_t *list = json_object_get(json, "rows");
    size_t        count = json_array_size(list);
    ExponentRow  *rows = count && count <= ROWS_MOST ? calloc(count, sizeof(*rows)) : NULL;

    chart->rows = rows;
    chart->count = rows ? (int)count : 0;
    for (int i = 0; i < chart->count; i++)
        if (!take_row(json_array_get(list, (size_t)i), &rows[i]))
            return false;
    return rows && take_string(json, "measured", &chart->measured) && chart->measured &&
           take_string(json, "title", &chart->title) && chart->title &&
           take_string(json, "caption", &chart->caption) && chart->caption;
}

ExponentChart *exponents_of_json(const json_t *json, Error *err)
{
    ExponentChart *chart = calloc(1, sizeof(*chart));

    if (!chart) {
        error_set(err, ERR_NOMEM, "not enough memory for a chart of exponents");
        return NULL;
    }
    if (take_all(json, chart))
        return chart;
    exponents_free(chart);
    error_set(err, ERR_FORMAT, "its numbers are damaged, or of another version; rerender --measure "
                               "draws the sweep's records");
    return NULL;
}

static void text_drop(const char *text)
{
    free((char *)(uintptr_t)text);
}

void exponents_free(ExponentChart *chart)
{
    if (!chart)
        return;
    for (int i = 0; i < chart->count; i++) {
        text_drop(chart->rows[i].group);
        text_drop(chart->rows[i].name);
        text_drop(chart->rows[i].claim);
        text_drop(chart->rows[i].note);
    }
    text_drop(chart->title);
    text_drop(chart->caption);
    text_drop(chart->measured);
    free((void *)(uintptr_t)chart->rows);
    free(chart);
}
