/* paint.c -- the colour and the character of one cell; see figure.h.
 *
 * All surfaces call panel_paint, so a cell means the same everywhere. Values are quantised to the
 * levels of the device first: a screen with twelve colours and an image with 256 keep the same
 * order.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/colour/colour.h"
#include "draw/figure/scene.h"

bool panel_shows_hops(const Panel *panel)
{
    return panel->view->kind == VIEW_HOPS && !panel->minus &&
           (panel->pool == POOL_MIN || panel->pool == POOL_MAX || panel->pool == POOL_MEAN);
}

bool panel_shows_categories(const Panel *panel)
{
    ViewKind kind = panel->view->kind;

    return !panel->minus &&
           (kind == VIEW_BUCKETS || kind == VIEW_MEMBERSHIP || kind == VIEW_SCHEDULE);
}

PanelStyle panel_style(const Panel *panel)
{
    ViewKind kind = panel->view->kind;

    if (panel->plot)
        return STYLE_PLOT;
    if (panel->minus)
        return STYLE_VALUE;
    if (panel_shows_hops(panel))
        return STYLE_HOPS;
    if (panel_shows_categories(panel))
        return STYLE_CATEGORY;
    if (panel->components || kind == VIEW_PATTERN || kind == VIEW_COMPONENTS)
        return STYLE_CAUSE;
    return STYLE_VALUE;
}

static ColourMap panel_map(const Panel *panel)
{
    return panel->minus ? MAP_DIVERGING : panel->map;
}

/* Weights are float32 sums: smaller differences are rounding, and no colour may present them as a
 * finding. */
#define LEAST_DIFFERENCE 1e-5

void panel_spread(const Panel *panel, double *lo, double *hi)
{
    double centre = panel->minus ? 0 : panel->view->centre, far;

    if (panel_map(panel) != MAP_DIVERGING) {
        *lo = fmin(*lo, 0);
        return;
    }
    far = fmax(fabs(*lo - centre), fabs(*hi - centre));
    if (panel->minus && panel->view->kind == VIEW_WEIGHTS)
        far = fmax(far, LEAST_DIFFERENCE);
    *lo = centre - far;
    *hi = centre + far;
}

void panel_settle(Panel *panel, const Grid *grid)
{
    double lo = grid->pool_lo[panel->pool], hi = grid->pool_hi[panel->pool];

    if (panel->hi > panel->lo)
        return;
    panel_spread(panel, &lo, &hi);
    panel->lo = lo;
    panel->hi = hi > lo ? hi : lo + 1;
    if (!(hi > lo) && panel_map(panel) == MAP_DIVERGING)
        panel->lo = lo - 1;
}

#define ROUNDING 1e-5 /* to which two ways to a weight agree */

/* Place of a value on the colour map, quantised; 0..1 or NaN.  Equal weights, such as 1/6 of 0.2,
 * can lie on the border of two levels but for rounding: all of them take the upper one.  Where 0 is
 * the middle of the map, numbers near it keep their sign. */
static double map_place(const Panel *panel, const Grid *grid, int64_t row, int64_t col, int levels,
                        int *level)
{
    Panel  settled;
    double lo = panel->lo, hi = panel->hi, unit;

    if (!(hi > lo)) {
        settled = *panel;
        panel_settle(&settled, grid);
        lo = settled.lo;
        hi = settled.hi;
    }
    unit = grid_unit(grid, row, col, panel->pool, panel->scale, lo, hi);
    *level = grid_unit_level(panel_map(panel) == MAP_DIVERGING ? unit : unit + ROUNDING, levels);
    if (isnan(unit) || levels <= 2)
        return isnan(unit) ? unit : 1;
    return (double)(*level - 1) / (levels - 2);
}

/* The map has the page's colour, or nearly: differences except in print; magma on a terminal. */
bool panel_greys_masked(const Panel *panel, bool dark)
{
    ColourMap map = panel_map(panel);
    bool      own = (map == MAP_DIVERGING && panel->hues != HUES_PRINT) ||
               (dark && map == MAP_MAGMA && panel->hues != HUES_DARK);

    return panel_style(panel) == STYLE_VALUE && (panel->greyed[dark] || own);
}

static Paint paint_background(const Panel *panel, bool dark)
{
    bool    masked = panel_greys_masked(panel, dark);
    uint8_t page = dark ? 0 : 255;
    uint8_t index = dark ? (masked ? 238 : 16) : masked ? 251 : 231;

    if (panel_style(panel) == STYLE_HOPS)
        return (Paint){ .rgb = hops_background(dark),
                        .index256 = dark ? 236 : 255,
                        .ascii = '.',
                        .background = true };
    return (Paint){ .rgb = masked ? colour_masked(dark) : (Rgb){ page, page, page },
                    .index256 = index,
                    .ascii = panel_style(panel) == STYLE_VALUE ? ' ' : '.',
                    .background = true };
}

static char value_letter(ColourMap map, double t)
{
    static const char ramp[] = ".:-=+*#%@", signs[] = "Nn-.+pP";

    if (map == MAP_DIVERGING)
        return signs[lround(t * ((int)sizeof(signs) - 2))];
    return ramp[lround(t * ((int)sizeof(ramp) - 2))];
}

static void paint_value(Paint *paint, const Panel *panel, double t)
{
    ColourMap      map = panel_map(panel);
    int            length;
    const uint8_t *ramp = colour_ramp_256(map, &length);

    paint->rgb = colour_of_value_in(panel->hues, map, t);
    paint->index256 = ramp[lround(t * (length - 1))];
    paint->ascii = value_letter(map, t);
}

#define BUCKET_PROBES 6 /* tokens looked at on each axis of a cell */

static int32_t bucket_at(const Panel *panel, const int32_t *order, int64_t first, int64_t last,
                         int probe, int probes)
{
    int64_t entry = first + (last - first) * probe / probes;

    return panel->row_buckets[order ? order[entry] : entry];
}

static int probes_of(int64_t entries)
{
    return entries < BUCKET_PROBES ? (int)entries : BUCKET_PROBES;
}

/* Of the buckets of a cell's queries the one that most of its keys are in, too. */
static int32_t bucket_of_cell(const Panel *panel, const Grid *grid, int64_t row, int64_t col)
{
    Region  r = grid_cell_region(grid, row, col);
    int     rows = probes_of(r.row1 - r.row0), cols = probes_of(r.col1 - r.col0), most = 0;
    int32_t best = bucket_at(panel, panel->row_order, r.row0, r.row1, 0, rows);

    if (view_cols(panel->view) != view_rows(panel->view))
        return best;
    for (int y = 0; y < rows; y++) {
        int32_t bucket = bucket_at(panel, panel->row_order, r.row0, r.row1, y, rows);
        int     same = 0;

        for (int x = 0; x < cols; x++)
            same += bucket_at(panel, panel->col_order, r.col0, r.col1, x, cols) == bucket;
        best = same > most ? bucket : best;
        most = same > most ? same : most;
    }
    return best;
}

static void paint_bucket(Paint *paint, const Panel *panel, int32_t bucket, double strength,
                         bool page, bool dark)
{
    paint->rgb = colour_shade(panel_category_colour(panel, bucket), strength, dark);
    if (!page)
        paint->index256 = colour_nearest_256(paint->rgb);
    paint->ascii = category_letter(panel->view, bucket);
}

static void paint_cause(Paint *paint, const Panel *panel, const GridCell *cell, double strength,
                        bool page, bool dark)
{
    const View *view = panel->view;
    uint8_t     bit = panel_worn(panel, cell->cause ? cell->cause : COMPONENT_OTHER);
    uint8_t     rare = panel_worn(panel, cell->rare);
    Hues        hues = !page && dark ? HUES_DARK : panel->hues; /* a terminal has no theme */

    paint->rgb = colour_shade(cause_colour_in(hues, view, bit), strength, dark);
    if (!page)
        paint->index256 = strength > 0.9 ? cause_256(view, bit) : colour_nearest_256(paint->rgb);
    paint->ascii = cause_letter(view, bit);
    paint->dotted = cell->rare != 0;
    if (paint->dotted)
        paint->dot = cause_colour_in(hues, view, rare);
    if (paint->dotted && !page)
        paint->dot256 = cause_256(view, rare);
}

bool panel_shows_dots(const Panel *panel, const Grid *grid)
{
    if (panel_style(panel) != STYLE_CAUSE || panel->row_buckets)
        return false;
    for (int64_t c = 0; grid->cells && c < grid->rows * grid->cols; c++)
        if (grid->cells[c].rare && !grid->cells[c].odd)
            return true;
    return false;
}

static void paint_category(Paint *paint, const Panel *panel, const Grid *grid, int64_t row,
                           int64_t col, bool page, bool dark)
{
    const GridCell *cell = &grid->cells[row * grid->cols + col];
    int64_t         category = cell->category, group = grid_cell_region(grid, row, col).row0;
    bool            mixed = false;
    Rgb             from = dark ? (Rgb){ 0, 0, 0 } : (Rgb){ 255, 255, 255 };

    if (panel->view->kind == VIEW_MEMBERSHIP)
        category = panel->row_order ? panel->row_order[group] : group;
    else
        mixed = cell->purity < 0.5f;
    paint->rgb = panel_category_colour(panel, (int32_t)category);
    if (mixed)
        paint->rgb = colour_mix(paint->rgb, from, 0.5);
    if (!page)
        paint->index256 = colour_nearest_256(paint->rgb);
    paint->ascii = category_letter(panel->view, category);
    if (mixed)
        paint->ascii = (char)tolower((unsigned char)paint->ascii);
}

/* ---- pictures ---------------------------------------------------------------- */

#define TINT_SHARE    0.62 /* of a cause's colour; the rest is the picture behind it */
#define UNKNOWN       0.5  /* brightness of an unknown pixel; drawn as empty paper */
#define UNKNOWN_LIGHT 0.93
#define UNKNOWN_DARK  0.22

/* Mean brightness of the pixels under a cell; -1: there is no pixel. */
static double brightness(const Panel *panel, Region r)
{
    int64_t width = view_cols(panel->view), count = 0;
    double  sum = 0;

    for (int64_t y = r.row0; y < r.row1; y++)
        for (int64_t x = r.col0; x < r.col1 && y * width + x < panel->pixel_count; x++) {
            sum += panel->pixels ? (double)panel->pixels[y * width + x] : UNKNOWN;
            count++;
        }
    return count ? sum / (double)count : -1;
}

static Rgb grey_level(double light)
{
    uint8_t g = (uint8_t)lround(255 * (light < 0 ? 0 : light > 1 ? 1 : light));

    return (Rgb){ g, g, g };
}

#define PALE 0.9 /* brightness of a black pixel in print */

/* In print, where values are greys too, every pixel is lighter than the least value. */
static Rgb grey_of(const Panel *panel, double light)
{
    if (panel->hues == HUES_PRINT)
        light = PALE + (1 - PALE) * light;
    return grey_level(light);
}

Rgb picture_grey(Hues hues)
{
    return hues == HUES_PRINT ? grey_level(PALE) : PICTURE_GREY;
}

bool panel_lets_through(const Panel *panel, double t)
{
    double faint = panel_map(panel) == MAP_DIVERGING ? 2 * fabs(t - 0.5) : t;

    return panel->picture && panel->pixels && panel_style(panel) == STYLE_VALUE &&
           faint < PICTURE_SHARE;
}

static void paint_picture(Paint *paint, const Panel *panel, const Grid *grid, int64_t row,
                          int64_t col, bool through, bool dark)
{
    static const char shades[] = " .,:-";
    Region            r = grid_cell_region(grid, row, col);
    double            light = brightness(panel, r);
    bool              marked = panel->mark_row >= r.row0 && panel->mark_row < r.row1 &&
                  panel->mark_col >= r.col0 && panel->mark_col < r.col1;

    if (light < 0)
        return; /* the image ends here */
    paint->background = false;
    if (marked) {
        *paint = (Paint){
            .rgb = PICTURE_MARK, .index256 = PICTURE_MARK_256, .ascii = 'Q', .level = paint->level
        };
        return;
    }
    if (through) { /* characters cannot show both: they are the value's */
        paint->rgb = grey_of(panel, light);
    } else if (grid->cells[row * grid->cols + col].any) {
        if (panel_style(panel) == STYLE_CAUSE &&
            grid->cells[row * grid->cols + col].cause == COMPONENT_OTHER)
            paint->rgb = PICTURE_OTHER;
        /* colours of a bar are whole: a tinted one would be another value's */
        if (panel->pixels && panel_style(panel) != STYLE_VALUE && panel->hues != HUES_PRINT)
            paint->rgb = colour_mix(grey_of(panel, light), paint->rgb, TINT_SHARE);
    } else {
        paint->rgb = grey_of(panel, panel->pixels ? light : dark ? UNKNOWN_DARK : UNKNOWN_LIGHT);
        paint->ascii = shades[lround(light * ((int)sizeof(shades) - 2))];
        paint->level = 1;
    }
    paint->index256 = colour_nearest_256(paint->rgb);
}

static Paint paint_cell(const Panel *panel, const Grid *grid, int64_t row, int64_t col, int levels,
                        bool dark_background)
{
    const GridCell *cell = &grid->cells[row * grid->cols + col];
    Paint           paint = { .level = 1 };
    double          t;
    int32_t         bucket;

    if (!cell->any)
        return paint_background(panel, dark_background);
    t = map_place(panel, grid, row, col, levels, &paint.level);
    if (isnan(t)) {
        paint.rgb = colour_odd();
        paint.index256 = 200;
        paint.ascii = '!';
        return paint;
    }
    switch (panel_style(panel)) {
    case STYLE_HOPS:
        hops_paint(&paint, panel->map, grid_value(grid, row, col, panel->pool), dark_background);
        break;
    case STYLE_CAUSE:
        bucket = panel->row_buckets ? bucket_of_cell(panel, grid, row, col) : -1;
        if (bucket >= 0)
            paint_bucket(&paint, panel, bucket, t, levels == PAGE_LEVELS, dark_background);
        else
            paint_cause(&paint, panel, cell, t, levels == PAGE_LEVELS, dark_background);
        break;
    case STYLE_CATEGORY:
        if (panel_shows_schedule(panel))
            schedule_paint(&paint, cell, panel->hues, dark_background);
        else
            paint_category(&paint, panel, grid, row, col, levels == PAGE_LEVELS, dark_background);
        break;
    default: paint_value(&paint, panel, t);
    }
    return paint;
}

Paint panel_paint(const Panel *panel, const Grid *grid, int64_t row, int64_t col, int levels,
                  bool dark_background)
{
    Paint paint = paint_cell(panel, grid, row, col, levels, dark_background);
    int   level;

    if (grid->cells[row * grid->cols + col].marked && !panel->minus) {
        paint.marked = true;
        paint.ascii = panel->view->marks->chosen ? 'o' : 'x';
        paint.background = false;
        if (!panel->view->marks->chosen) {
            paint.rgb = lost_colour_in(panel->hues);
            paint.index256 = colour_nearest_256(paint.rgb);
        }
    }
    if (panel->picture)
        paint_picture(&paint, panel, grid, row, col,
                      panel_lets_through(panel, map_place(panel, grid, row, col, levels, &level)),
                      dark_background);
    return paint;
}

int range_digits(double lo, double hi)
{
    double share = (hi - lo) / fmax(fabs(lo), fabs(hi));

    return share > 0 && share < 1 ? (int)fmin(3 - floor(log10(share)), 7) : 3;
}

void number_text(double value, int digits, char *text, size_t size)
{
    snprintf(text, size, "%.*g", digits, value);
    if (fabs(value) >= 1000 && fabs(value) < 1e6)
        snprintf(text, size, "%.0f", value);
}
