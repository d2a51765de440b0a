/* panel.c -- one panel as characters, with its bars; see panel.h.
 *
 * A character is about twice as high as wide. Half blocks are therefore square; whole characters
 * are doubled to squares while there is room, and a reduced matrix gets half as many rows of cells
 * as columns.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/tensor.h"
#include "draw/page/layout.h"
#include "draw/text/panel.h"
#include "draw/text/unicode.h"

#define ROOMY 48        /* columns up to which small matrices are enlarged */
#define TALL 64         /* limit of a matrix's lines without a requested height */
#define TOKEN_COLUMNS 12
#define TOKENS_MOST 32
#define TOKEN_BYTES 128
#define SIDE 9 /* columns for the bars of rows */

static TextMode text_mode(const Panel *panel, const TextOptions *options, bool several_causes)
{
    PanelStyle style = panel_style(panel);

    if (options->colours)
        return options->utf8 ? TEXT_HALVES : TEXT_FIELDS;
    if (!options->utf8 || style == STYLE_CATEGORY || style == STYLE_HOPS || panel->picture ||
        (style == STYLE_CAUSE && panel->view->found))
        return TEXT_LETTERS;
    if (style == STYLE_CAUSE)
        return several_causes ? TEXT_LETTERS : TEXT_HALVES;
    return panel->minus || panel->map == MAP_DIVERGING ? TEXT_LETTERS : TEXT_SHADES;
}

/* Number of cells of equally many entries, at most `most`. */
static int64_t even_cells(int64_t n, int64_t most)
{
    int64_t block;

    most = most < 1 ? 1 : most;
    block = (n + most - 1) / most;
    return (n + block - 1) / block;
}

static void plan_halves(TextPlan *plan, int64_t rows, int64_t cols, int64_t width, int64_t lines)
{
    int64_t most = 2 * lines, times = min_i64(min_i64(width, ROOMY) / cols, most / rows);
    double  scale = fmin((double)width / (double)cols, (double)most / (double)rows);
    bool    strip = rows <= 8 && 2 * rows <= most; /* one line a row */

    plan->across = plan->down = times > 1 ? (int)times : 1;
    plan->cells = (CellCount){ rows, cols };
    if (cols > width || rows > most) {
        plan->cells.cols = even_cells(cols, (int64_t)((double)cols * fmin(scale, 1)));
        plan->cells.rows = strip ? rows : even_cells(rows, (int64_t)((double)rows * scale));
    }
    if (strip && plan->down == 1)
        plan->down = 2;
}

static void plan_characters(TextPlan *plan, int64_t rows, int64_t cols, int64_t width,
                            int64_t lines)
{
    /* columns per entry; lines per entry are half of it */
    double scale = fmin((double)width / (double)cols, 2.0 * (double)lines / (double)rows);

    plan->across = plan->down = 1;
    plan->cells = (CellCount){ rows, cols };
    if (cols <= width && rows <= lines) {
        plan->across = 2 * cols <= width ? 2 : 1;
        return;
    }
    plan->cells.cols = even_cells(cols, (int64_t)((double)cols * fmin(scale, 1)));
    if (rows > 8 || rows > lines)
        plan->cells.rows = even_cells(rows, (int64_t)((double)rows * fmin(scale / 2, 1)));
}

static int gutter_of(const Panel *panel, Region region, bool tokens, bool ascii, int width)
{
    char text[32];
    int  columns = snprintf(text, sizeof(text), "%lld", (long long)(region.row1 - 1));

    for (int64_t at = region.row0; tokens && at < region.row1; at++) {
        int64_t token = panel->row_order ? panel->row_order[at] : at;
        char    label[TOKEN_BYTES];
        int     wide;

        utf8_token(panel->row_labels[token], ascii, label, sizeof(label));
        wide = utf8_columns(label);
        columns = wide > columns ? wide : columns;
    }
    columns = (int)min_i64(columns, TOKEN_COLUMNS);
    return columns + 1 < width ? columns + 1 : 0;
}

TextPlan text_plan(const Panel *panel, const TextOptions *options, int width, int lines,
                   bool several_causes)
{
    Region   region = panel_region(panel);
    int64_t  rows = region.row1 - region.row0, cols = region.col1 - region.col0;
    int64_t  most = lines ? lines : width > TALL ? width : TALL;
    TextPlan plan = { .mode = text_mode(panel, options, several_causes), .width = width };

    rows = rows > 0 ? rows : 1;
    cols = cols > 0 ? cols : 1;
    if (panel->bare) {
        int low = lines ? lines : (width + 1) / 2;

        (plan.mode == TEXT_HALVES ? plan_halves : plan_characters)(&plan, rows, cols, width, low);
        return plan;
    }
    plan.tokens = panel->row_labels && rows <= TOKENS_MOST && plan.mode != TEXT_HALVES &&
                  (!lines || rows <= lines);
    plan.gutter = gutter_of(panel, region, plan.tokens, !options->utf8, width);
    plan.side = panel->margin && !panel->picture && width - plan.gutter > 2 * SIDE ? SIDE : 0;
    width -= plan.side;
    if (plan.mode == TEXT_HALVES)
        plan_halves(&plan, rows, cols, width - plan.gutter, most);
    else
        plan_characters(&plan, rows, cols, width - plan.gutter, most);
    return plan;
}

int text_overhead(const Panel *panel)
{
    if (panel->bare)
        return 0;
    /* ticks, scale, two lines of caption; bars of columns and their name */
    return (panel_style(panel) == STYLE_VALUE ? 4 : 3) + (panel->margin ? 2 : 0) +
           panel->note_count;
}

/* ---- cells ------------------------------------------------------------------ */

static int levels_of(const Panel *panel, TextMode mode, int colours)
{
    int length = 0;

    if (mode == TEXT_SHADES)
        return 5;
    if (mode == TEXT_LETTERS)
        return panel->minus || panel->map == MAP_DIVERGING ? 8 : 10;
    colour_ramp_256(panel->minus ? MAP_DIVERGING : panel->map, &length);
    return colours == 256 ? length + 1 : 64;
}

static PenColour colour_of(const Paint *paint)
{
    return (PenColour){ .set = !paint->background, .rgb = paint->rgb,
                        .index256 = paint->index256 };
}

/* A dot for a rarer cause where both halves have the same commonest one, on the stronger shade. */
static bool put_dot(Pen *pen, const Paint *above, const Paint *below)
{
    const Paint *strong = below->level > above->level ? below : above;
    const Paint *dotted = above->dotted ? above : below;

    if (!pen->colours || !dotted->dotted || above->background || below->background ||
        above->ascii != below->ascii)
        return false;
    pen_put(pen, "\xE2\x80\xA2",
            (PenColour){ .set = true, .rgb = dotted->dot, .index256 = dotted->dot256 },
            colour_of(strong));
    return true;
}

static void put_half(Pen *pen, const Paint *above, const Paint *below)
{
    PenColour top = colour_of(above), bottom = colour_of(below), none = { 0 };
    bool      same = memcmp(&above->rgb, &below->rgb, sizeof(above->rgb)) == 0;

    if (put_dot(pen, above, below))
        return;
    if (!top.set && !bottom.set)
        pen_put(pen, " ", none, none);
    else if (!top.set)
        pen_put(pen, "\xE2\x96\x84", bottom, none);
    else if (!bottom.set)
        pen_put(pen, "\xE2\x96\x80", top, none);
    else if (!pen->colours || same)
        pen_put(pen, "\xE2\x96\x88", top, none);
    else
        pen_put(pen, "\xE2\x96\x80", top, bottom);
}

static void put_cell(Pen *pen, const Paint *paint, TextMode mode)
{
    static const char *const shades[] = { " ", "\xE2\x96\x91", "\xE2\x96\x92", "\xE2\x96\x93",
                                          "\xE2\x96\x88" };
    char letter[2] = { paint->ascii, '\0' };

    if (mode == TEXT_FIELDS)
        pen_put(pen, paint->dotted ? "." : " ",
                (PenColour){ .set = paint->dotted, .rgb = paint->dot, .index256 = paint->dot256 },
                colour_of(paint));
    else if (mode == TEXT_SHADES && paint->ascii != '!' && !paint->marked)
        pen_put(pen, shades[paint->background ? 0 : paint->level], (PenColour){ 0 },
                (PenColour){ 0 });
    else
        pen_put(pen, letter, (PenColour){ 0 }, (PenColour){ 0 });
}

typedef struct Brush { /* what a painted line needs */
    const Panel    *panel;
    const Grid     *grid;
    const TextPlan *plan;
    Pen             pen;
    int             levels;
} Brush;

static Paint paint_half(const Brush *b, int64_t half, int64_t col)
{
    int64_t row = half / b->plan->down;

    if (row >= b->grid->rows)
        return (Paint){ .background = true };
    return panel_paint(b->panel, b->grid, row, col, b->levels, true);
}

static void draw_line(Brush *b, int64_t at)
{
    for (int64_t c = 0; c < b->grid->cols; c++) {
        bool  halves = b->plan->mode == TEXT_HALVES;
        Paint above = paint_half(b, halves ? 2 * at : at, c), below = above;

        if (halves)
            below = paint_half(b, 2 * at + 1, c);
        for (int k = 0; k < b->plan->across; k++) {
            if (halves)
                put_half(&b->pen, &above, &below);
            else
                put_cell(&b->pen, &above, b->plan->mode);
        }
    }
    pen_end(&b->pen);
}

/* ---- axes ------------------------------------------------------------------- */

static void draw_ticks(const Panel *panel, const Grid *grid, const TextPlan *plan, Line *line)
{
    int64_t first = grid->region.col0 + panel_first(panel, false);
    int64_t n = grid->region.col1 - grid->region.col0, step;
    int     extent = (int)grid->cols * plan->across, digits;
    char    text[32];

    digits = snprintf(text, sizeof(text), "%lld", (long long)grid->region.col1);
    step = layout_tick_step(n, extent / (digits + 3), false);
    line_pad(line, plan->gutter);
    for (int64_t at = 0; at < n; at += step) {
        int64_t cell = ((at + 1) * grid->cols - 1) / n;
        int     column = plan->gutter + (int)cell * plan->across;

        snprintf(text, sizeof(text), "%lld", (long long)(first + at));
        if (column + (int)strlen(text) > plan->width || (line && at > 0 && column <= line->columns))
            continue;
        line_pad(line, column);
        line_add(line, text);
    }
}

/* The label of the line that shows row `at`, or "". */
static void row_label(const Panel *panel, const Grid *grid, const TextPlan *plan, int64_t line_at,
                      bool ascii, char *text, size_t size)
{
    int     per_line = plan->mode == TEXT_HALVES ? 2 : 1;
    int64_t n = grid->region.row1 - grid->region.row0;
    int64_t lines = (grid->rows * plan->down + per_line - 1) / per_line;
    int     most = (int)(n <= 8 ? lines : lines / 3 > 8 ? 8 : lines / 3 + 1);
    int64_t step = layout_tick_step(n, most, false);

    *text = '\0';
    if (plan->tokens) {
        int64_t at = grid->region.row0 + line_at;
        char    label[TOKEN_BYTES];

        utf8_token(panel->row_labels[panel->row_order ? panel->row_order[at] : at], ascii, label,
                   sizeof(label));
        utf8_fit(label, plan->gutter - 1, ascii, text, size);
        return;
    }
    for (int64_t at = 0; at < n; at += step) {
        int64_t cell = ((at + 1) * grid->rows - 1) / n;

        if (cell * plan->down / per_line == line_at && !*text)
            snprintf(text, size, "%lld",
                     (long long)(grid->region.row0 + panel_first(panel, true) + at));
    }
}

static void text_margin_cols(const Panel *panel, const Grid *grid, const TextPlan *plan, bool utf8,
                             Block *out);
static void text_margin_row(const Panel *panel, const Grid *grid, const TextPlan *plan, int64_t at,
                            bool utf8, Line *line);

static void draw_rows(Brush *b, const TextOptions *options, Block *out)
{
    int     per_line = b->plan->mode == TEXT_HALVES ? 2 : 1;
    int64_t lines = (b->grid->rows * b->plan->down + per_line - 1) / per_line;
    char    label[64];

    for (int64_t at = 0; at < lines; at++) {
        b->pen.line = block_line(out);
        if (b->plan->gutter) {
            *label = '\0';
            if (!(options->hides & HIDE_TICKS))
                row_label(b->panel, b->grid, b->plan, at, !options->utf8, label, sizeof(label));
            line_pad(b->pen.line, b->plan->gutter - 1 - utf8_columns(label));
            line_add(b->pen.line, label);
            line_pad(b->pen.line, b->plan->gutter);
        }
        draw_line(b, at);
        if (b->plan->side)
            text_margin_row(b->panel, b->grid, b->plan, at, options->utf8, b->pen.line);
    }
    if (b->plan->side)
        text_margin_cols(b->panel, b->grid, b->plan, options->utf8, out);
}

static bool begins_chunk(const Panel *panel, int64_t slot)
{
    for (int64_t c = 0; c < panel->slot_group_count; c++)
        if (panel->slot_groups[c] == slot)
            return true;
    return false;
}

/* "[------][------]" below sorted columns where each column is one token. */
static void draw_chunks(const Panel *panel, const Grid *grid, const TextPlan *plan, Block *out)
{
    int64_t first = grid->region.col0, all = view_cols(panel->view);
    Line   *line;

    if (!panel->col_order || !panel->slot_group_count ||
        grid->cols != grid->region.col1 - grid->region.col0)
        return;
    line = block_line(out);
    line_pad(line, plan->gutter);
    for (int64_t c = 0; c < grid->cols * plan->across; c++) {
        int64_t slot = first + c / plan->across;
        bool    left = c % plan->across == 0 && begins_chunk(panel, slot);
        bool    right = c % plan->across == plan->across - 1 &&
                     (slot + 1 == all || begins_chunk(panel, slot + 1));

        line_add(line, left && right ? "|" : left ? "[" : right ? "]" : "-");
    }
}

/* ---- words ------------------------------------------------------------------ */

/* Step k of the ramp, painted as a cell: a grid of one cell with that value. */
static Paint paint_step(const Brush *b, int k, int steps)
{
    GridCell cell = { .any = true, .count = 1, .max = (float)k / (float)(steps - 1) };
    double   peak[POOL_COUNT] = { 1 };
    Grid     grid = { .region = { 0, 1, 0, 1 }, .rows = 1, .cols = 1, .cells = &cell,
                      .row_peak = peak, .value_max = 1 };
    Panel    panel = *b->panel;

    panel.pool = POOL_MAX;
    panel.scale = SCALE_LINEAR;
    panel.lo = 0;
    panel.hi = 1;
    return panel_paint(&panel, &grid, 0, 0, b->levels, true);
}

static void scale_ends(const Panel *panel, char *lo, char *hi, size_t size)
{
    bool decades = panel_is_log(panel) && panel->lo >= 0;
    int  digits = decades ? 3 : range_digits(panel->lo, panel->hi);

    number_text(panel_bottom(panel, panel->lo, panel->hi), digits, lo, size);
    number_text(panel->hi, digits, hi, size);
    if (panel->pool == POOL_COVER || panel->scale == SCALE_ROW) {
        snprintf(lo, size, "%s", panel->pool == POOL_COVER ? "1e-4" : "0");
        snprintf(hi, size, "%s", panel->pool == POOL_COVER ? "1" : "row max");
    }
}

/* "weight", "weight, log", where there is room. */
static void add_quantity(const Brush *b, Line *line)
{
    const char *name = panel_quantity(b->panel);
    bool        log = panel_is_log(b->panel);

    if (!line || line->columns + 2 + (int)strlen(name) > b->plan->width)
        return;
    line_add(line, "  ");
    line_add(line, name);
    if (log && line->columns + (int)strlen(", log") <= b->plan->width)
        line_add(line, ", log");
}

static void draw_scale(Brush *b, Block *out)
{
    Line    *line = block_line(out);
    TextMode mode = b->plan->mode == TEXT_HALVES ? TEXT_FIELDS : b->plan->mode;
    char     lo[32], hi[32];
    int      steps, room;

    scale_ends(b->panel, lo, hi, sizeof(lo));
    room = b->plan->width - b->plan->gutter - (int)strlen(lo) - (int)strlen(hi) - 2;
    steps = b->levels - 1 < 24 ? b->levels - 1 : 24;
    steps = room < steps ? room : steps;
    if (steps < 2)
        return;
    b->pen.line = line;
    line_pad(line, b->plan->gutter);
    line_add(line, lo);
    line_add(line, " ");
    for (int k = 0; k < steps; k++) {
        Paint paint = paint_step(b, k, steps);

        put_cell(&b->pen, &paint, mode);
    }
    pen_end(&b->pen);
    line_add(line, " ");
    line_add(line, hi);
    add_quantity(b, line);
}

/* The last line also names the axes if there is room. */
static void draw_title(const Panel *panel, const TextPlan *plan, const Lines *title,
                       int least_lines, unsigned hides, Block *out)
{
    Line *line = NULL;
    char  axes[128] = "";

    if (panel->view->rows && panel->view->cols && !(hides & HIDE_AXES))
        snprintf(axes, sizeof(axes), "%s(%s x %s)", title->count ? "  " : "", panel->view->rows,
                 panel->view->cols);
    for (int k = 0; k < title->count || (k < 1 && (*axes || !(hides & HIDE_TITLES))); k++) {
        line = block_line(out);
        line_add(line, title->count ? title->text[k] : "");
    }
    if (line && line->columns + utf8_columns(axes) <= plan->width)
        line_add(line, axes);
    while (out->count < least_lines && !out->failed)
        block_line(out);
}

static void text_loads(const Panel *panel, const Grid *grid, const TextPlan *plan, Block *out);

void text_panel(const Panel *panel, const Grid *grid, const TextPlan *plan,
                const TextOptions *options, const Lines *title, int title_lines, Block *out)
{
    Brush brush = { .panel = panel, .grid = grid, .plan = plan,
                    .pen = { .colours = options->colours },
                    .levels = levels_of(panel, plan->mode, options->colours) };
    char  caption[512];

    if (panel->bare) {
        for (int k = 0; k < title->count; k++)
            line_add(block_line(out), title->text[k]);
        while (title->count && out->count < title_lines && !out->failed)
            block_line(out);
        draw_rows(&brush, options, out);
        return;
    }
    draw_title(panel, plan, title, title_lines, options->hides, out);
    if (!(options->hides & HIDE_TICKS))
        draw_ticks(panel, grid, plan, block_line(out));
    draw_rows(&brush, options, out);
    draw_chunks(panel, grid, plan, out);
    text_loads(panel, grid, plan, out);
    if (panel_style(panel) == STYLE_VALUE)
        draw_scale(&brush, out);
    snprintf(caption, sizeof(caption), "%s", panel->caption);
    if (!*caption)
        (plan->mode == TEXT_LETTERS ? panel_caption_letters : panel_caption)(
            panel, grid, caption, sizeof(caption));
    if (!(options->hides & HIDE_COUNTS))
        block_wrap(out, caption, plan->width, !options->utf8);
    for (int i = 0; i < panel->note_count; i++) {
        note_words(&panel->notes[i], panel->view->rows, panel->view->cols, caption,
                   sizeof(caption));
        block_wrap(out, caption, plan->width, !options->utf8);
    }
}

/* ---- bars ------------------------------------------------------------------- */

/* Displayed entries of the cells [first, last) of one axis. */
static void entries_of(const Grid *grid, bool rows, int64_t first, int64_t last, int64_t *from,
                       int64_t *to)
{
    int64_t start = rows ? grid->region.row0 : grid->region.col0;
    int64_t count = (rows ? grid->region.row1 : grid->region.col1) - start;
    int64_t cells = rows ? grid->rows : grid->cols;

    *from = start + first * count / cells;
    *to = start + last * count / cells;
}

static double longest_bar(const Panel *panel, const Grid *grid, bool rows)
{
    int64_t cells = rows ? grid->rows : grid->cols, from, to;

    entries_of(grid, rows, 0, cells, &from, &to);
    return margin_most(panel->margin, rows, rows ? panel->row_order : panel->col_order, from, to,
                       (to - from + cells - 1) / cells);
}

/* Eighths of a bar of `length` characters; at least one unless the value is 0. */
static int eighths(double value, double most, int length)
{
    int parts = isnan(value) ? 0 : (int)lround(fmin(fabs(value) / most, 1) * 8 * length);

    return parts == 0 && fabs(value) > 0 ? 1 : parts;
}

/* Writes character U+2580 + offset. */
static void add_block(Line *line, int offset)
{
    char text[4] = { (char)0xE2, (char)0x96, (char)(0x80 + offset), '\0' };

    line_add(line, text);
}

/* The bar at the end of the matrix' line `at`; below, the bars of the columns. */
static void text_margin_row(const Panel *panel, const Grid *grid, const TextPlan *plan, int64_t at,
                            bool utf8, Line *line)
{
    int     per = plan->mode == TEXT_HALVES ? 2 : 1, parts;
    int64_t first = per * at / plan->down, last = (per * (at + 1) - 1) / plan->down + 1, from, to;
    double  value;

    entries_of(grid, true, first, last < grid->rows ? last : grid->rows, &from, &to);
    value = margin_mean(panel->margin->row, panel->row_order, from, to);
    parts = eighths(value, longest_bar(panel, grid, true), plan->side - 2);
    line_pad(line, plan->gutter + (int)grid->cols * plan->across);
    line_add(line, value < 0 ? "-" : " ");
    for (; parts > 0; parts -= 8)
        if (utf8)
            add_block(line, parts >= 8 ? 8 : 16 - parts);
        else
            line_add(line, parts >= 4 ? "=" : "-");
}

static void text_margin_cols(const Panel *panel, const Grid *grid, const TextPlan *plan, bool utf8,
                             Block *out)
{
    static const char ascii[] = " .:-=+*#@";
    double            most = panel->margin->col ? longest_bar(panel, grid, false) : 0;
    Line             *line = panel->margin->col ? block_line(out) : NULL;
    char              text[128], title[64];

    line_pad(line, plan->gutter);
    for (int64_t c = 0; line && c < grid->cols; c++) {
        int64_t from, to;
        int     parts;

        entries_of(grid, false, c, c + 1, &from, &to);
        parts = eighths(margin_mean(panel->margin->col, panel->col_order, from, to), most, 1);
        for (int k = 0; k < plan->across; k++) {
            if (utf8 && parts)
                add_block(line, parts);
            else
                line_add(line, (char[]){ ascii[parts], '\0' });
        }
    }
    margin_title(panel->margin, title, sizeof(title));
    snprintf(text, sizeof(text), "bars: %s, to %.3g", title,
             longest_bar(panel, grid, true));
    if (line)
        snprintf(text, sizeof(text), "bars: %s, to %.3g, %.3g", title,
                 longest_bar(panel, grid, true), most);
    block_wrap(out, text, plan->width, !utf8);
}

/* ---- bars as numbers -------------------------------------------------------- */

#define LISTED 24 /* numbers on a line when they do not fit below their columns */

/* Writes each number below its column; false: they do not fit. */
static bool add_below(const Panel *panel, const Grid *grid, const TextPlan *plan, bool over,
                      const char *name, Block *out)
{
    const ViewLoad *load = panel->view->load;
    int64_t         count = grid->region.col1 - grid->region.col0;
    Line           *line;
    char            text[24];

    if (grid->cols != count)
        return false;
    for (int64_t c = 0; c < count; c++) {
        int64_t more, used = view_load(load, panel->plane, grid->region.col0 + c, &more);

        if (snprintf(text, sizeof(text), "%lld", (long long)(over ? more : used)) > plan->across)
            return false;
    }
    line = block_line(out);
    line_pad(line, plan->gutter);
    for (int64_t c = 0; c < count; c++) {
        int64_t at = grid->region.col0 + c, more, used;

        used = view_load(load, panel->plane, panel->col_order ? panel->col_order[at] : at, &more);
        snprintf(text, sizeof(text), "%*lld", plan->across, (long long)(over ? more : used));
        line_add(line, text);
    }
    if (line && line->columns + 1 + (int)strlen(name) > plan->width) {
        block_wrap(out, name, plan->width, true);
    } else {
        line_add(line, " ");
        line_add(line, name);
    }
    return true;
}

static void add_listed(const Panel *panel, const ViewLoad *load, int64_t first, int64_t last,
                       bool over, const char *name, const TextPlan *plan, Block *out)
{
    Text words = { 0 };

    if (last - first > LISTED)
        return;
    text_addf(&words, "%s:", name);
    for (int64_t at = first; at < last; at++) {
        int64_t more, used = view_load(load, panel->plane, at, &more);

        text_addf(&words, " %lld", (long long)(over ? more : used));
    }
    block_wrap(out, text_str(&words), plan->width, true);
    text_free(&words);
}

/* The view's own bars of columns and rows, as numbers below the matrix. */
static void text_loads(const Panel *panel, const Grid *grid, const TextPlan *plan, Block *out)
{
    const ViewLoad *cols = panel->view->load, *rows = panel->view->row_load;
    char            name[96];

    if (panel->minus || panel->picture || panel->margin)
        return;
    if (cols) {
        snprintf(name, sizeof(name), cols->limit ? "%s (%s %lld)" : "%s", cols->used_name,
                 cols->limit_name, (long long)cols->limit);
        if (!add_below(panel, grid, plan, false, name, out))
            add_listed(panel, cols, grid->region.col0, grid->region.col1, false, name, plan, out);
    }
    if (cols && cols->over.data && !add_below(panel, grid, plan, true, cols->over_name, out))
        add_listed(panel, cols, grid->region.col0, grid->region.col1, true, cols->over_name, plan,
                   out);
    if (rows)
        add_listed(panel, rows, grid->region.row0, grid->region.row1, false, rows->used_name, plan,
                   out);
}
