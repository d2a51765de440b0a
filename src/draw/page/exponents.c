/* exponents.c -- the chart of exponents on a page; see draw/plot/exponents.h.
 *
 * Two columns of words, the plot's field, three columns of numbers. On a page too narrow for that a
 * claim stands below its mechanism, and the marks alone show the numbers. The three marks of a row
 * stand one below the other, so that none hides another.
 */
#include "draw/plot/exponents.h"

#include <math.h>
#include <stdio.h>

#include "draw/page/sheet.h"

#define PAGE_INCH   6.75
#define ROW_POINTS  11.5
#define COLUMN      "0.00   " /* of numbers: at least as wide as this */
#define FIELD_LEAST 60        /* points */
#define MINUS       "\xe2\x88\x92"
#define NAMES_HEAD  "mechanism"
#define CLAIMS_HEAD "claimed"

typedef struct Chart {
    const ExponentChart *chart;
    Sheet                sheet; /* without panels: the chart has its own layout */
    Pens                 pens;  /* the box is the field: all rows */
    double               margin, row, claim_x, numbers_x, column;
    double               line; /* of a legend: a row with one line of words */
    bool                 narrow; /* claims below the names, no column of numbers */
} Chart;

static const char *short_name(const Chart *c, int of)
{
    static const char *const names[EXPONENTS] = { "FLOPs", "time", "mem." };

    return c->chart->step && of == EXPONENT_MEMORY ? "bytes" : names[of];
}

/* ---- measuring -------------------------------------------------------------- */

static double widest(const Chart *c, bool claims)
{
    double most = pens_width(&c->pens, claims ? CLAIMS_HEAD : NAMES_HEAD);

    for (int i = 0; i < c->chart->count; i++) {
        const ExponentRow *row = &c->chart->rows[i];

        most = fmax(most, pens_width(&c->pens, claims ? row->claim : row->name));
    }
    return most;
}

/* Number of lines: rows and titles of groups. */
static int chart_lines(const ExponentChart *chart)
{
    int count = chart->count;

    for (int i = 0; i < chart->count; i++)
        count += chart->rows[i].group != NULL;
    return count;
}

/* Of numbers: their heads keep a gap too. */
static double column_width(Chart *c)
{
    double most = pens_width(&c->pens, COLUMN);

    for (int of = 0; of < EXPONENTS; of++)
        most = fmax(most, canvas_text_width(c->sheet.canvas, short_name(c, of), FONT_SANS,
                                            c->sheet.style.small) + 2 * c->sheet.style.space);
    return most;
}

#define NARROW_ROW 1.5 /* two lines of words */

/* A column of words, the field; false: the field is too narrow. */
static bool place_narrow(Chart *c)
{
    const SheetStyle *s = &c->sheet.style;
    double            most = 0.5 * c->sheet.width, words = fmax(widest(c, false), widest(c, true));

    c->narrow = true;
    c->margin = 2 * s->space;
    c->line = sheet_points(s, ROW_POINTS);
    c->row = NARROW_ROW * c->line;
    c->claim_x = c->margin;
    c->pens.box.x = c->margin + fmin(words, most) + 3 * s->space;
    c->pens.box.w = c->sheet.width - c->margin - 3 * s->space - c->pens.box.x;
    return c->pens.box.w > sheet_points(s, FIELD_LEAST);
}

/* Two columns of words, the field, numbers; false: the field is too narrow. */
static bool place_wide(Chart *c)
{
    const SheetStyle *s = &c->sheet.style;
    double            most = 0.26 * c->sheet.width, claims;

    c->narrow = false;
    c->margin = 2 * s->space;
    c->row = c->line = sheet_points(s, ROW_POINTS);
    c->claim_x = c->margin + fmin(widest(c, false), most) + 2 * s->space;
    claims = fmin(widest(c, true), most);
    c->pens.box.x = c->claim_x + claims + 3 * s->space;
    c->column = column_width(c);
    c->numbers_x = c->sheet.width - c->margin - EXPONENTS * c->column +
                   pens_width(&c->pens, "  ");
    c->pens.box.w = c->numbers_x - 4 * s->space - c->pens.box.x;
    return c->pens.box.w > sheet_points(s, FIELD_LEAST);
}

static bool place_chart(Chart *c)
{
    return place_wide(c) || place_narrow(c);
}

static int draw_marks_legend(Chart *c, double y, bool drawn);

/* Sets title, caption and field; returns the height of the page. */
static int place_lines(Chart *c)
{
    const SheetStyle *s = &c->sheet.style;
    Sheet            *sheet = &c->sheet;
    double            room = c->sheet.width - 2 * c->margin, legend;
    LabelBox         *box = &c->pens.box;

    sheet_wrap(sheet->canvas, c->chart->caption, s->tick, room, WRAP_LINES, &sheet->caption);
    room *= s->tick / s->head; /* the title has larger letters */
    sheet_wrap(sheet->canvas, c->chart->title, s->tick, room, 2, &sheet->title);
    box->y = c->margin + sheet_lines_height(&sheet->title, s->head, s->space) + 2 * c->line;
    box->h = chart_lines(c->chart) * c->row;
    legend = (sheet->caption.count ? 3.2 : 2.4) + draw_marks_legend(c, 0, false);
    return (int)ceil(box->y + box->h + legend * c->line +
                     sheet_lines_height(&sheet->caption, s->tick, s->space) + c->margin);
}

/* ---- drawing ---------------------------------------------------------------- */

static void words(Chart *c, double x, double y, const char *text, double size, Rgb rgb,
                  CanvasAlign align)
{
    canvas_text(c->sheet.canvas, x, y, text,
                (CanvasText){ .align = align, .size = size, .rgb = rgb });
}

static void words_in(Chart *c, double x, double y, double room, const char *text, Rgb rgb)
{
    char cut[256];

    sheet_fit(c->sheet.canvas, text, c->sheet.style.tick, room, cut, sizeof(cut));
    pens_text(&c->pens, x, y, cut, rgb);
}

static void draw_paragraph(Chart *c, const Lines *lines, double y, double size, Rgb rgb)
{
    for (int i = 0; i < lines->count; i++)
        words(c, c->margin, y + (i + 0.8) * size * SHEET_LINE, lines->text[i], size, rgb,
              ALIGN_LEFT);
}

/* The same hues on paper and on dark pages. */
static Rgb hue_of(const PlotSeries *s)
{
    return plot_colour(s->hue, false);
}

/* A claim is a bar behind the marks. */
static void draw_claim(const Chart *c, double x, double top, double bottom)
{
    pens_line(&c->pens, x, top, x, bottom, sheet_points(&c->sheet.style, 2.2),
              c->sheet.style.muted, 0.4);
}

/* The slopes that a verdict takes for the claimed one. */
static void draw_tolerance(const Chart *c, double at, double top, double bottom)
{
    double from = pens_x(&c->pens, fmax(at - EXPONENT_TOLERANCE, c->pens.axis.lo));
    double to = pens_x(&c->pens, fmin(at + EXPONENT_TOLERANCE, c->pens.axis.hi));
    double band[4][2] = { { from, top }, { to, top }, { to, bottom }, { from, bottom } };

    if (at - at == 0 && to > from)
        canvas_polygon(c->sheet.canvas, band, 4, c->sheet.style.muted, 0.15);
}

static void draw_claims(const Chart *c, int row, double y)
{
    const PlotSeries *s = &c->pens.plot->series[EXPONENTS];
    int64_t           first = (int64_t)row * EXPONENT_CLAIMS, end = first + EXPONENT_CLAIMS;

    for (int64_t i = first; i < end; i++)
        draw_tolerance(c, s->x[i], y + c->sheet.style.hair, y + c->row);
    for (int64_t i = first; i < end; i++)
        draw_claim(c, pens_x(&c->pens, s->x[i]), y + c->sheet.style.hair, y + c->row);
}

/* An interval that goes on beyond the field ends in a head. */
static void draw_beyond(Chart *c, double end, double at, Rgb rgb)
{
    double edge = fmin(fmax(end, c->pens.axis.lo), c->pens.axis.hi), x = pens_x(&c->pens, edge);
    double size = sheet_points(&c->sheet.style, 1.7), way = end > edge ? size : -size;
    double head[3][2] = { { x + way, at }, { x - way, at - size }, { x - way, at + size } };

    if (fabs(end - edge) > 0)
        canvas_polygon(c->sheet.canvas, head, 3, rgb, 1);
}

/* The mark of a series and its interval, each in a lane of its own. */
static void draw_measured(Chart *c, int row, double y)
{
    double lane = c->row / 4;

    for (int of = 0; of < EXPONENTS; of++) {
        const PlotSeries *s = &c->pens.plot->series[of];
        double            at = y + (of + 1) * lane;

        pens_line(&c->pens, pens_x(&c->pens, s->low[row]), at, pens_x(&c->pens, s->high[row]), at,
                  2 * c->sheet.style.frame, hue_of(s), 0.45);
        draw_beyond(c, s->low[row], at, hue_of(s));
        draw_beyond(c, s->high[row], at, hue_of(s));
        pens_solid(&c->pens, s->hue, pens_x(&c->pens, s->x[row]), at,
                   sheet_points(&c->sheet.style, 1.7), hue_of(s));
    }
}

static void draw_values(Chart *c, int row, double y)
{
    for (int of = 0; of < EXPONENTS; of++) {
        double value = c->pens.plot->series[of].x[row];
        char   text[32] = "-";

        if (!isnan(value))
            snprintf(text, sizeof(text), "%s%.2f", value < -0.005 ? MINUS : "", fabs(value));
        pens_text(&c->pens, c->numbers_x + of * c->column, y, text, c->sheet.style.ink);
    }
}

static void draw_rule(Chart *c, double y)
{
    canvas_line(c->sheet.canvas, c->margin, y, c->sheet.width - c->margin, y,
                c->sheet.style.hair, c->sheet.style.rule, 1);
}

static void draw_chart_row(Chart *c, int at, double y)
{
    const SheetStyle  *s = &c->sheet.style;
    const ExponentRow *row = &c->chart->rows[at];
    double             line = y + c->row / 2 + 0.36 * s->tick, field = c->pens.box.x;
    double             up = c->narrow ? 0.22 * c->row : 0, end = c->narrow ? field : c->claim_x;

    draw_rule(c, y);
    words_in(c, c->margin, line - up, end - c->margin - s->space, row->name,
             row->note ? s->muted : s->ink);
    words_in(c, c->claim_x, line + up, field - c->claim_x - s->space, row->claim, s->muted);
    draw_claims(c, at, y);
    if (row->note) {
        words_in(c, field + s->space, line, c->pens.box.w - s->space, row->note, s->muted);
        return;
    }
    draw_measured(c, at, y);
    if (!c->narrow)
        draw_values(c, at, line);
}

static void draw_heads(Chart *c, double y)
{
    const SheetStyle *s = &c->sheet.style;

    pens_text(&c->pens, c->margin, y, c->narrow && !c->chart->step ? NAMES_HEAD ", " CLAIMS_HEAD
                                                                 : NAMES_HEAD,
              s->muted);
    if (c->narrow)
        return;
    if (!c->chart->step)
        pens_text(&c->pens, c->claim_x, y, CLAIMS_HEAD, s->muted);
    for (int of = 0; of < EXPONENTS; of++)
        words(c, c->numbers_x + of * c->column, y, short_name(c, of), s->small,
              s->muted, ALIGN_LEFT);
}

/* Every which tick has a label: the fewest left out so that they stand apart. */
static int label_step(const Chart *c)
{
    const PlotAxis *axis = &c->pens.axis;
    double          from = pens_x(&c->pens, axis->names[0].at), wide = 0;
    double          step = pens_x(&c->pens, axis->names[1].at) - from;
    int             every = 1;

    for (int k = 0; k < axis->name_count; k++)
        wide = fmax(wide, pens_width(&c->pens, axis->names[k].text));
    while (every * step < wide + 1.5 * c->sheet.style.space)
        every *= 2;
    return every;
}

/* Labels above the field; lines of whole numbers are stronger. */
static void draw_exponent_axis(Chart *c)
{
    const SheetStyle *s = &c->sheet.style;
    const PlotAxis   *axis = &c->pens.axis;
    const LabelBox   *box = &c->pens.box;
    int               every = label_step(c);

    for (int k = 0; k < axis->name_count; k++) {
        double at = axis->names[k].at, x = pens_x(&c->pens, at);
        bool   whole = fabs(at - round(at)) < 1e-9;

        pens_line(&c->pens, x, box->y, x, box->y + box->h, s->hair, whole ? s->muted : s->rule,
                  whole ? 0.7 : 1);
        if (exponent_tick(at) % every == 0)
            words(c, x, box->y - s->space, axis->names[k].text, s->tick, s->ink, ALIGN_CENTRE);
    }
    words(c, box->x + box->w / 2, box->y - s->space - 1.3 * s->tick, axis->name, s->axis, s->ink,
          ALIGN_CENTRE);
    draw_heads(c, box->y - s->space);
}

/* Some row has an interval of this series. */
static bool has_interval(const PlotSeries *s)
{
    for (int64_t i = 0; s->low && i < s->count; i++)
        if (isfinite(s->low[i]))
            return true;
    return false;
}

static bool has_point(const PlotSeries *s)
{
    for (int64_t i = 0; i < s->count; i++)
        if (isfinite(s->x[i]))
            return true;
    return false;
}

/* Of marks that are in the picture, or words on them. */
static bool has_entry(const Chart *c, int entry)
{
    const PlotSeries *s = &c->pens.plot->series[entry];

    return entry < EXPONENTS ? has_point(s) : *s->name;
}

static double legend_width(const Chart *c, int entry)
{
    double size = sheet_points(&c->sheet.style, 2);

    return (entry < EXPONENTS ? 7 : 2) * size +
           canvas_text_width(c->sheet.canvas, c->pens.plot->series[entry].name, FONT_SANS,
                             c->sheet.style.legend);
}

static void draw_entry(Chart *c, int entry, double x, double y)
{
    const SheetStyle *s = &c->sheet.style;
    const PlotSeries *series = &c->pens.plot->series[entry];
    double            size = sheet_points(s, 2);

    if (entry < EXPONENTS) {
        if (has_interval(series))
            pens_line(&c->pens, x, y - size, x + 6 * size, y - size, 2 * s->frame, hue_of(series),
                      0.45);
        pens_solid(&c->pens, series->hue, x + 3 * size, y - size, size, hue_of(series));
        x += 7 * size;
    } else if (has_point(series)) {
        draw_claim(c, x, y - 2.5 * size, y + size);
        x += 2 * size;
    }
    words(c, x, y, series->name, s->legend, s->ink, ALIGN_LEFT);
}

/* Legend of the marks and of the claims' bar. Returns its lines below the first. */
static int draw_marks_legend(Chart *c, double y, bool drawn)
{
    double gap = 5 * sheet_points(&c->sheet.style, 2), x = c->margin;
    int    more = 0;

    for (int entry = 0; entry < c->pens.plot->count; entry++) {
        double width = has_entry(c, entry) ? legend_width(c, entry) : 0;

        if (!has_entry(c, entry))
            continue;
        if (x > c->margin && x + width > c->sheet.width - c->margin) {
            x = c->margin;
            more++;
        }
        if (drawn)
            draw_entry(c, entry, x, y + more * c->line);
        x += width + gap;
    }
    return more;
}

static void draw_chart(Chart *c)
{
    const SheetStyle *s = &c->sheet.style;
    double            y = c->pens.box.y;

    draw_paragraph(c, &c->sheet.title, c->margin, s->head, s->ink);
    draw_exponent_axis(c);
    for (int i = 0; i < c->chart->count; i++) {
        if (c->chart->rows[i].group) {
            words(c, c->margin, y + c->row / 2 + 0.36 * s->axis, c->chart->rows[i].group, s->axis,
                  s->ink, ALIGN_LEFT);
            y += c->row;
        }
        draw_chart_row(c, i, y);
        y += c->row;
    }
    draw_rule(c, y);
    y += 1.6 * c->line;
    y += (1 + draw_marks_legend(c, y, true)) * c->line;
    draw_paragraph(c, &c->sheet.caption, y, s->tick, s->muted);
}

/* ---- the file --------------------------------------------------------------- */

/* Says the width that would do, in whole hundredths. */
static bool too_narrow(Chart *c, double inch, Error *err)
{
    double least = ceil(inch * 100) / 100;

    do {
        least += 0.01;
        c->sheet.width = (int)lround(least * c->sheet.style.dpi);
    } while (!place_chart(c) && least < 100);
    return error_set(err, ERR_USAGE, "--width: with letters of this size, this chart of exponents "
                                     "needs %.2f inches, not %.4g", least, inch);
}

/* Opens the chart's own page, or the page around it with the chart in its middle. */
static bool open_chart(Chart *c, CanvasKind kind, const PngOptions *options, Error *err)
{
    int dpi = c->sheet.style.dpi, high = place_lines(c), width = c->sheet.width, height = high;

    if (!sheet_on_page(options, dpi, &width, &height))
        return sheet_refuse_page(options, dpi, width, height,
                                 "a higher page or a smaller --size has room for the rows", err);
    if (!sheet_open(&c->sheet, kind, width, height, options, err))
        return false;
    canvas_shift(c->sheet.canvas, (width - c->sheet.width) / 2, (height - high) / 2);
    return true;
}

static bool write_chart(Chart *c, FigureFormat format, const PngOptions *options, Text *bytes,
                        Error *err)
{
    double inch = options->width_inch > 0   ? options->width_inch
                  : options->page_width > 0 ? options->page_width
                                            : PAGE_INCH;

    c->sheet.width = (int)lround(inch * c->sheet.style.dpi);
    if (!place_chart(c))
        return too_narrow(c, inch, err);
    if (!open_chart(c, sheet_canvas(format), options, err))
        return false;
    draw_chart(c);
    return sheet_finish(&c->sheet, sheet_canvas(format), c->chart->title, options, bytes, err);
}

bool exponent_chart_file(const ExponentChart *chart, FigureFormat format,
                         const PngOptions *options, Text *bytes, Error *err)
{
    Chart c = { .chart = chart, .sheet.style = sheet_style(options) };
    Plot *plot;
    bool  ok;

    if (sheet_canvas(format) == CANVAS_PIXELS && format != FORMAT_PNG_FILE)
        return error_set(err, ERR_USAGE,
                         "a chart of exponents is a .png, .svg or .pdf; as text it is "
                         "the table that fit prints, or writes as .md or .csv");
    if (chart->count < 1)
        return error_set(err, ERR_DATA, "the chart has no row");
    plot = exponents_plot(chart, err);
    if (!plot)
        return false;
    c.pens = (Pens){ .sheet = &c.sheet, .plot = plot, .s = &c.sheet.style, .axis = plot->x };
    c.sheet.canvas = canvas_new(CANVAS_PIXELS, 8, 8, 72, &c.sheet.style.letters, NULL, err);
    ok = c.sheet.canvas && write_chart(&c, format, options, bytes, err);
    canvas_free(c.sheet.canvas);
    plot_free(plot);
    return ok;
}
