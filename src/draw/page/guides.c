/* guides.c -- guides, reference lines and their names, and words beside points; see sheet.h. */
#include <math.h>

#include "draw/page/sheet.h"

#define SLANT_STEPS 12 /* places along a slanted line that are tried for its name */
#define SLANT_FIRST 0.4 /* from this share of its length to the last, then the rest */
#define SLANT_LAST  0.9
#define LEVEL_STEPS 12 /* places along a level line */
#define LEVEL_ROWS  8  /* and rows above and under it */
#define FIELD_ROWS  40 /* all of a field */

#define POINT_MARK  5  /* points of paper that the mark of a named point takes */
#define LEAD_MOST   10 /* lines of words to what they name: a longer line is not followed */

/* The box around words on a baseline. */
static LabelBox words_box(const Pens *p, double x, double baseline, double width)
{
    return (LabelBox){ x, baseline - p->s->tick, width, 1.25 * p->s->tick };
}

/* The plot's grid is no line through the words. */
static void write_in(const Pens *p, LabelBox box, const char *text, Rgb rgb)
{
    double tick = p->s->tick;

    canvas_clear(p->sheet->canvas, box.x - 0.1 * tick, box.y + 0.2 * tick, box.w + 0.2 * tick,
                 tick);
    pens_text(p, box.x, box.y + p->s->tick, text, rgb);
}

/* The guide at `at` is the nearest upright one to the middle of the box: its name is no other's. */
static bool is_nearest(const Pens *p, LabelBox box, double at)
{
    double middle = box.x + box.w / 2, own = fabs(middle - at);

    for (int k = 0; k < p->plot->guide_count; k++)
        if (p->plot->guides[k].vertical &&
            fabs(middle - pens_x(p, p->plot->guides[k].at)) < own)
            return false;
    return true;
}

/* A place of w x h right or left of the guide, from the bottom up, across nothing. */
static bool beside_upright(Pens *p, double at, double w, double h, LabelBox *box)
{
    double space = p->s->space, step = p->s->tick / 2, bottom = p->box.y + p->box.h - space / 2;

    for (double up = 0; up + h <= p->box.h; up += step)
        for (int side = 0; side < 2; side++) {
            *box = (LabelBox){ side ? at - space / 2 - w : at + space / 2, bottom - up - h, w, h };
            if (is_nearest(p, *box, at) && label_fits_alone(&p->places, *box))
                return true;
        }
    return false;
}

/* Names an upright guide on a side where there is room: level, else along the guide. A name that
 * would lie across a curve or another guide is left out. */
static void name_upright(Pens *p, const PlotGuide *g, double at)
{
    double   gap = p->s->space / 2.0, wide = pens_width(p, g->name) + 2 * gap;
    double   high = 1.25 * p->s->tick;
    LabelBox box;

    if (!*g->name || plot_has_flags(p->plot))
        return;
    for (int k = 0; k < 4; k++) { /* off all bands first */
        bool along = k % 2;

        p->places.off_bands = k < 2;
        if (!beside_upright(p, at, along ? high : wide, along ? wide : high, &box))
            continue;
        canvas_clear(p->sheet->canvas, box.x + gap / 2, box.y + 0.2 * p->s->tick, box.w - gap,
                     box.h - 0.2 * p->s->tick);
        canvas_text(p->sheet->canvas, box.x + (along ? p->s->tick : gap),
                    box.y + (along ? box.h - gap : p->s->tick), g->name,
                    (CanvasText){ .size = p->s->tick, .upward = along, .rgb = p->s->muted });
        return;
    }
}

/* ---- the page as a device of names ------------------------------------------ */

static bool point_at(const void *context, double x, double y, double *at_x, double *at_y)
{
    *at_x = pens_x(context, x);
    *at_y = pens_y(context, y);
    return isfinite(*at_x) && isfinite(*at_y);
}

static bool guide_on_page(const void *context, const PlotGuide *g, double *at)
{
    *at = g->vertical ? pens_x(context, g->at) : pens_y(context, g->at);
    return isfinite(*at);
}

static bool level_on_page(const void *context, const PlotSeries *s, double *at)
{
    const Pens *p = context;

    if (!s->guide || s->count < 2)
        return false;
    *at = pens_y(p, s->y[s->count - 1]);
    return fabs(*at - pens_y(p, s->y[0])) < p->s->tick;
}

static void name_line(void *context, const PlotSeries *line);

static LabelDevice page_device(Pens *p)
{
    return (LabelDevice){ .plot = p->plot, .places = &p->places, .context = p,
                          .mark = sheet_points(p->s, POINT_MARK), .point = point_at,
                          .guide = guide_on_page, .level = level_on_page, .name = name_line };
}

/* ---- names of lines --------------------------------------------------------- */

/* No other level line is nearer to the box: a reader takes the nearest for the named one. */
static bool is_own(Pens *p, LabelBox box, double y)
{
    LabelDevice device = page_device(p);
    double      middle = box.y + box.h / 2;

    for (int k = 0; k < p->plot->guide_count; k++)
        if (!p->plot->guides[k].vertical &&
            fabs(middle - pens_y(p, p->plot->guides[k].at)) < fabs(middle - y))
            return false;
    return label_is_own(&device, middle, y);
}

/* Kinds of places for the name of a level line, tried in this order: none is across a curve. */
static const struct LevelPlaces {
    bool own;  /* nearest to no other level line */
    bool far;  /* also left of the line's beginning */
    int  rows; /* lines of words away from it */
} level_places[] = {
    { true, false, 1 },          { true, true, 1 },           { true, false, LEVEL_ROWS },
    { true, true, LEVEL_ROWS },  { false, true, LEVEL_ROWS }, { false, true, FIELD_ROWS },
};
#define LEVEL_PLACES ((int)(sizeof(level_places) / sizeof(*level_places)))

/* Where a line from a point reaches words. */
static void lead_end(LabelBox box, double x, double y, double *to_x, double *to_y)
{
    *to_x = fmin(fmax(x, box.x), box.x + box.w);
    *to_y = fmin(fmax(y, box.y), box.y + box.h);
}

/* A line to what stands nearest on the level line from x0 to x1 at height y is short enough. */
static bool is_led_shortly(const Pens *p, LabelBox box, double x0, double x1, double y)
{
    double x = fmin(fmax(box.x + box.w / 2, x0), x1), to_x, to_y;

    lead_end(box, x, y, &to_x, &to_y);
    return hypot(to_x - x, to_y - y) < (LEAD_MOST - 1) * p->s->tick;
}

static bool lead_is_clear(const Pens *p, LabelBox box, double x, double y);

/* A thin line from such words to the level line crosses no other words. */
static bool is_led_clearly(const Pens *p, LabelBox box, double x0, double x1, double y)
{
    return lead_is_clear(p, box, fmin(fmax(box.x + box.w / 2, x0), x1), y);
}

/* Finds a place above or under a level line from x0 to x1 at height y, from its right end to the
 * left. */
static bool name_beside(Pens *p, const struct LevelPlaces *places, double x0, double x1, double y,
                        double wide, LabelBox *box)
{
    double   space = p->s->space, right = fmin(x1, p->box.x + p->box.w) - wide - space;
    double   left = places->far ? p->box.x : fmax(x0, p->box.x);
    LabelBox above = words_box(p, right, y - space, wide);

    for (int k = 0; k < 2 * LEVEL_STEPS * (2 * places->rows - 1); k++) { /* rows of half a line */
        int step = k / 2 % LEVEL_STEPS, row = k / 2 / LEVEL_STEPS;

        *box = above;
        box->x -= step * fmax(0, right - left - space) / LEVEL_STEPS;
        box->y += (k % 2 ? box->h + 2 * space : 0) + (k % 2 ? row : -row) * box->h / 2;
        if (is_led_shortly(p, *box, x0, x1, y) && is_led_clearly(p, *box, x0, x1, y) &&
            (!places->own || is_own(p, *box, y)) && label_fits(&p->places, *box, true))
            return true;
    }
    return false;
}

static bool is_inside(const LabelBox *box, double x, double y)
{
    return x > box->x && x < box->x + box->w && y > box->y && y < box->y + box->h;
}

#define LEAD_STEPS 40
#define SAME_SPOT  2 /* lines of words: points so near are one spot */

/* The box is the mark of a point at the same spot. */
static bool is_beside(const Pens *p, const LabelBox *box, double x, double y)
{
    double mark = sheet_points(p->s, POINT_MARK);

    return fabs(box->w - mark) < 1e-6 && fabs(box->h - mark) < 1e-6 &&
           hypot(box->x + mark / 2 - x, box->y + mark / 2 - y) < SAME_SPOT * p->s->tick;
}

/* The line from the point to such words crosses no other words and no mark elsewhere. */
static bool lead_is_clear(const Pens *p, LabelBox box, double x, double y)
{
    double to_x, to_y;

    lead_end(box, x, y, &to_x, &to_y);
    for (int k = p->places.lines; k < p->places.count; k++) {
        const LabelBox *other = &p->places.taken[k];

        if (is_inside(other, x, y) || is_beside(p, other, x, y))
            continue;
        for (int step = 0; step < LEAD_STEPS; step++) {
            double t = (double)step / LEAD_STEPS;

            if (is_inside(other, x + t * (to_x - x), y + t * (to_y - y)))
                return false;
        }
    }
    return true;
}

#define LEAD_BOXES 8

/* Later words keep off the line. */
static void take_lead(Pens *p, double x, double y, double to_x, double to_y)
{
    double side = hypot(to_x - x, to_y - y) / LEAD_BOXES;

    for (int k = 0; k < LEAD_BOXES; k++) {
        double t = (k + 0.5) / LEAD_BOXES;

        label_take(&p->places, (LabelBox){ x + t * (to_x - x) - side / 2,
                                           y + t * (to_y - y) - side / 2, side, side });
    }
}

/* A thin line from words that stand away from what they name. */
static void lead(Pens *p, LabelBox box, double x, double y, Rgb rgb)
{
    double to_x, to_y;

    lead_end(box, x, y, &to_x, &to_y);
    if (!(hypot(to_x - x, to_y - y) > 1.2 * p->s->tick))
        return;
    pens_line(p, x, y, to_x, to_y, p->s->hair, rgb, 1);
    take_lead(p, x, y, to_x, to_y);
}

/* Leaves the name out if there is no room; it lies on a band where all else is full. */
static void name_level(Pens *p, const char *name, double x0, double x1, double y, Rgb rgb)
{
    LabelBox box;

    for (int k = 0; k < 2 * LEVEL_PLACES; k++) {
        p->places.off_bands = k < LEVEL_PLACES;
        if (name_beside(p, &level_places[k % LEVEL_PLACES], x0, x1, y, pens_width(p, name),
                        &box)) {
            write_in(p, box, name, rgb);
            lead(p, box, fmin(fmax(box.x + box.w / 2, x0), x1), y, rgb);
            return;
        }
    }
}

static void draw_guide(const Pens *p, const PlotGuide *g)
{
    double at = g->vertical ? pens_x(p, g->at) : pens_y(p, g->at);

    if (g->vertical)
        pens_dashes(p, at, p->box.y, at, p->box.y + p->box.h, p->s->muted);
    else
        pens_dashes(p, p->box.x, at, p->box.x + p->box.w, at, p->s->muted);
}

static void name_guide(Pens *p, const PlotGuide *g)
{
    if (g->vertical)
        name_upright(p, g, pens_x(p, g->at));
    else if (*g->name)
        name_level(p, g->name, p->box.x, p->box.x + p->box.w, pens_y(p, g->at), p->s->muted);
}

void pens_name_slanted(Pens *p, const PlotSeries *s)
{
    int64_t last = s->count - 1;
    double  x0 = pens_x(p, s->x[0]), x1 = pens_x(p, s->x[last]);
    double  y0 = pens_y(p, s->y[0]), y1 = pens_y(p, s->y[last]);

    for (int k = 0; k < 4 * SLANT_STEPS; k++) {
        double   t = fmod(SLANT_FIRST + (double)(k % SLANT_STEPS) / SLANT_STEPS, SLANT_LAST);
        double   wide = pens_width(p, s->name), x = x0 + t * (x1 - x0), y = y0 + t * (y1 - y0);
        LabelBox box = k / SLANT_STEPS % 2 == 0
                           ? words_box(p, x + 2 * p->s->space, y + 1.4 * p->s->tick, wide)
                           : words_box(p, x - 2 * p->s->space - wide, y - 0.6 * p->s->tick, wide);

        p->places.off_bands = k < 2 * SLANT_STEPS;
        if (label_fits(&p->places, box, true)) {
            write_in(p, box, s->name, pens_colour(p, s->hue));
            return;
        }
    }
}

static void name_line(void *context, const PlotSeries *s)
{
    Pens   *p = context;
    double  at;

    if (level_on_page(p, s, &at) && s->roof && p->ends)
        return;
    if (level_on_page(p, s, &at))
        name_level(p, s->name, pens_x(p, s->x[0]), pens_x(p, s->x[s->count - 1]), at,
                   pens_colour(p, s->hue));
    else if (!s->roof) /* pens_name_roofs did it */
        pens_name_slanted(p, s);
}

void pens_guides(const Pens *p)
{
    for (int k = 0; k < p->plot->guide_count; k++)
        draw_guide(p, &p->plot->guides[k]);
    for (int k = 0; k < p->plot->count; k++) {
        const PlotSeries *s = &p->plot->series[k];

        for (int64_t i = 0; s->guide && i + 1 < s->count; i++)
            pens_dashes(p, pens_x(p, s->x[i]), pens_y(p, s->y[i]), pens_x(p, s->x[i + 1]),
                        pens_y(p, s->y[i + 1]), pens_colour(p, s->hue));
    }
}

void pens_name_guides(Pens *p)
{
    LabelDevice device = page_device(p);

    p->places.own = -1;
    for (int k = 0; k < p->plot->guide_count; k++)
        name_guide(p, &p->plot->guides[k]);
    label_name_lines(&device);
}

void pens_take_points(Pens *p)
{
    LabelDevice device = page_device(p);

    label_take_plot(&device);
}

#define FAR_RINGS  ((int)((LEAD_MOST - 1) / 1.25)) /* around a point, a box of words apart */
#define FAR_PLACES 16 /* on a ring */

/* The nearest free place around a point whose neighbourhood is full. */
static bool place_far(Pens *p, double x, double y, double w, double h, LabelBox *box)
{
    for (int ring = 1; ring <= FAR_RINGS; ring++)
        for (int k = 0; k < FAR_PLACES; k++) {
            double angle = 2 * M_PI * k / FAR_PLACES, across = cos(angle), down = sin(angle);

            *box = (LabelBox){ x + across * (ring * h + w / 2) - w / 2,
                               y + down * (ring * h + h / 2) - h / 2, w, h };
            if (lead_is_clear(p, *box, x, y) && label_fits(&p->places, *box, true))
                return true;
        }
    return false;
}

/* A place beside the point; one whose thin line would cross other words is given back. */
static bool place_near(Pens *p, double x, double y, double r, double air, LabelBox size,
                       LabelBox *box)
{
    if (!label_place_clear(&p->places, x, y, r, r + air, size.w, size.h, box))
        return false;
    p->places.count--;
    if (!lead_is_clear(p, *box, x, y))
        return false;
    p->places.count++;
    return true;
}

/* A place near the point or further off, on no other curve's band if there is one. */
static bool place_point(Pens *p, double x, double y, double r, double air, LabelBox size,
                        LabelBox *box)
{
    for (int k = 0; k < 2; k++) {
        p->places.off_bands = k == 0;
        if (place_near(p, x, y, r, air, size, box) || place_far(p, x, y, size.w, size.h, box))
            return true;
    }
    return false;
}

/* Words lie across a curve only where all of the plot is full, and where nothing else names the
 * point: those of a series that the key names are left out instead. */
static void label_point(Pens *p, const PlotSeries *s, int64_t i, double x, double y)
{
    const char *text = s->labels[i];
    bool        ringed = plot_has_busy_signs(p->plot) && s->busy && s->busy[i];
    Rgb         rgb = pens_colour(p, s->hue);
    double      air = p->s->space / 2.0; /* beside the words: two names are not one */
    double      r = sheet_points(p->s, ringed ? 5 : 4) - air, h = 1.25 * p->s->tick;
    double      w = pens_width(p, text) + 2 * air;
    LabelBox    box;

    p->places.own = (int)(s - p->plot->series);
    if (!place_point(p, x, y, r, air, (LabelBox){ .w = w, .h = h }, &box) &&
        (*s->name || !label_place(&p->places, x, y, r, r + air, w, h, &box)))
        return;
    box.x += air;
    box.w -= 2 * air;
    lead(p, box, x, y, rgb);
    write_in(p, box, text, rgb);
}

void pens_labels(Pens *p)
{
    for (int k = 0; k < p->plot->count; k++) {
        const PlotSeries *s = &p->plot->series[k];

        for (int64_t i = 0; s->labels && i < s->count; i++) {
            double x = pens_x(p, s->x[i]), y = pens_y(p, s->y[i]);

            if (s->labels[i][0] && isfinite(x) && isfinite(y))
                label_point(p, s, i, x, y);
        }
    }
}
