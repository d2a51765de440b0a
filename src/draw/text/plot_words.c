/* plot_words.c -- guides of a plot in characters, words beside points, and the key; see field.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/text/field.h"
#include "draw/text/unicode.h"

#define NAME_STEPS 8 /* places tried for the name of a line */
#define NAME_LINES 6 /* for names of upright guides */

/* ---- the key: names that find no place have a number in the plot and stand below it ------- */

/* Items are ordered by series, then by point. */
static bool is_before(const NameKey *key, int at, int series, int64_t point)
{
    return key->items[at].series < series ||
           (key->items[at].series == series && key->items[at].point < point);
}

/* Number of the name in the key; 0: the name has a place in the plot. */
static int cells_key_number(const Field *f, const PlotSeries *s, int64_t point)
{
    int series = (int)(s - f->plot->series);

    for (int k = 0; f->key && k < f->key->count; k++)
        if (f->key->items[k].series == series && f->key->items[k].point == point)
            return k + 1;
    return 0;
}

static bool cells_key_take(Field *f, const PlotSeries *s, int64_t point)
{
    NameKey *key = f->key;

    if (!key || key->full || key->wanted + key->count >= NAMES_MOST)
        return false;
    key->want[key->wanted].series = (int)(s - f->plot->series);
    key->want[key->wanted++].point = point;
    return true;
}

bool cells_key_grow(NameKey *key)
{
    bool grew = key->wanted > 0;

    for (int k = 0; k < key->wanted; k++) {
        int at = key->count;

        for (; at > 0 && !is_before(key, at - 1, key->want[k].series, key->want[k].point); at--)
            key->items[at] = key->items[at - 1];
        key->items[at] = key->want[k];
        key->count++;
    }
    key->wanted = 0;
    return grew;
}

/* "o1 attend"; without a letter for a line: "2 sgemm 24 GFLOP/s". */
static int put_item(const Field *f, int at, int y, int x, bool draw)
{
    const PlotSeries *s = &f->plot->series[f->key->items[at].series];
    int64_t           point = f->key->items[at].point;
    const char       *name = point < 0 ? s->name : s->labels[point];
    char              number[16];
    int               length, letter = point < 0 ? 0 : 1;

    snprintf(number, sizeof(number), "%d ", at + 1);
    length = (int)strlen(number);
    if (draw && letter)
        cells_put(f->out, y, x, (uint32_t)plot_letter(s->hue), s->hue);
    if (draw) {
        cells_text(f->out, y, x + letter, length, number, s->hue < 0 ? PLOT_INK_TEXT : s->hue,
                   f->utf8);
        cells_cut(f->out, y, x + letter + length, f->out->width - x - letter - length, name,
                  PLOT_INK_TEXT, f->utf8);
    }
    return letter + length + utf8_columns(name);
}

int cells_key(const Field *f, int top, bool draw)
{
    int x = 0, line = 0;

    for (int k = 0; k < f->key->count; k++) {
        int width = put_item(f, k, 0, 0, false);

        if (x && x + width > f->out->width) {
            x = 0;
            line++;
        }
        put_item(f, k, top + line, x, draw);
        x += width + 2;
    }
    return f->key->count ? line + 1 : 0;
}

/* ---- guides ----------------------------------------------------------------- */

static LabelBox cells_box(int y, int x, int width)
{
    return (LabelBox){ x, y, width, 1 };
}

static void write_upright(Field *f, const PlotGuide *g, int at)
{
    int      length = utf8_columns(g->name), most = f->h / 2 < NAME_LINES ? f->h / 2 : NAME_LINES;
    LabelBox right = cells_box(f->y, f->x + at + 1, length + 2), left = right, box;

    left.x = f->x + at - length - 2;
    if (length && label_beside(&f->places, right, left, 1, most, &box))
        cells_text(f->out, (int)box.y, (int)box.x + 1, f->w, g->name, PLOT_INK_GUIDE, f->utf8);
}

/* Column or line of a guide in the field; false: out of sight. */
static bool guide_at(const Field *f, const PlotGuide *g, int *at)
{
    double place = plot_place(g->vertical ? &f->axis : &f->plot->y, g->at);
    int    down = f->plot->rows ? f->h : f->h - 1;

    if (isnan(place))
        return false;
    *at = g->vertical ? (int)lround(place * (f->w - 1)) : (int)lround((1 - place) * down);
    return true;
}

static void put_guide(Field *f, const PlotGuide *g)
{
    uint32_t stroke = g->vertical ? (f->utf8 ? 0x250A : ':') : (f->utf8 ? 0x2504 : '-');
    int      at;

    if (!guide_at(f, g, &at))
        return;
    for (int i = 0; i < (g->vertical ? f->h : f->w); i++)
        cells_put(f->out, g->vertical ? f->y + i : f->y + at, g->vertical ? f->x + at : f->x + i,
                  stroke, PLOT_INK_GUIDE);
}

/* An upright guide cuts words that end there. */
static bool cuts_words(const Field *f, int x, int length)
{
    int upright;

    for (int k = 0; k < f->plot->guide_count; k++) {
        const PlotGuide *other = &f->plot->guides[k];

        if (other->vertical && guide_at(f, other, &upright) && upright >= x - 1 &&
            upright <= x + length)
            return true;
    }
    return false;
}

/* Finds a column for a name on the guide's line, or `off` lines from it, from the right: where no
 * curve and no upright guide is. */
static bool level_column(Field *f, int at, int off, int length, int *x)
{
    if (at + off < 0 || at + off >= f->h)
        return false;
    for (*x = f->w - length - 1; *x > 0; --*x)
        if (!cuts_words(f, *x, length) &&
            label_fits(&f->places, cells_box(f->y + at + off, f->x + *x - 1, length + 2), true))
            return true;
    return false;
}

/* Names a level guide on its line, else above or under it, as near to its right end as no curve
 * crosses; at the right end over the curves if there is no such place. */
static void write_level(Field *f, const PlotGuide *g)
{
    static const int offs[] = { 0, -1, 1 };
    int              length = utf8_columns(g->name), x, at;
    size_t           k = 0;

    if (!length || !guide_at(f, g, &at))
        return;
    while (k < sizeof(offs) / sizeof(*offs) && !level_column(f, at, offs[k], length, &x))
        k++;
    if (k == sizeof(offs) / sizeof(*offs)) {
        k = 0;
        x = f->w - length - 1;
        label_take(&f->places, cells_box(f->y + at, f->x + x, length));
    }
    cells_text(f->out, f->y + at + offs[k], f->x + x, f->w, g->name, PLOT_INK_GUIDE, f->utf8);
}

/* Names of guides are written over the curves. */
void cells_name_guides(Field *f)
{
    for (int k = 0; k < f->plot->guide_count; k++)
        if (!f->plot->guides[k].vertical)
            write_level(f, &f->plot->guides[k]);
    for (int k = 0; k < f->plot->guide_count; k++) {
        const PlotGuide *g = &f->plot->guides[k];
        double           place = plot_place(&f->axis, g->at);

        if (g->vertical && !isnan(place))
            write_upright(f, g, (int)lround(place * (f->w - 1)));
    }
}

void cells_guides(Field *f)
{
    for (int k = 0; k < f->plot->guide_count; k++)
        put_guide(f, &f->plot->guides[k]);
}

/* ---- lines ------------------------------------------------------------------ */

/* Height of a line's end in dots; false: not level, or out of sight. */
static bool level_at(const Field *f, const PlotSeries *s, int *dot_y)
{
    int from[2], to[2], down = f->utf8 ? 4 : 1;

    if (!s->guide || s->count < 2 || !cells_dot_of(f, s->x[0], s->y[0], &from[0], &from[1]) ||
        !cells_dot_of(f, s->x[s->count - 1], s->y[s->count - 1], &to[0], &to[1]))
        return false;
    *dot_y = to[1];
    return abs(to[1] - from[1]) < 2 * down;
}

/* ---- the field as a device of names ----------------------------------------- */

static bool place_of(const void *context, double x, double y, double *at_x, double *at_y)
{
    const Field *f = context;
    int          dot_x, dot_y;

    if (!cells_dot_of(f, x, y, &dot_x, &dot_y))
        return false;
    *at_x = f->x + (dot_x + 0.5) / (f->utf8 ? 2 : 1);
    *at_y = f->y + (dot_y + 0.5) / (f->utf8 ? 4 : 1);
    return true;
}

static bool guide_place(const void *context, const PlotGuide *g, double *place)
{
    const Field *f = context;
    int          at;

    if (!guide_at(f, g, &at))
        return false;
    *place = (g->vertical ? f->x : f->y) + at + 0.5;
    return true;
}

/* In dots from the top of the field. */
static bool level_place(const void *context, const PlotSeries *s, double *place)
{
    int dot_y;

    if (!level_at(context, s, &dot_y))
        return false;
    *place = dot_y;
    return true;
}

static void name_one(void *context, const PlotSeries *s);

static LabelDevice field_device(Field *f)
{
    return (LabelDevice){ .plot = f->plot, .places = &f->places, .context = f, .point = place_of,
                          .guide = guide_place, .level = level_place, .name = name_one };
}

/* No other level line is nearer to screen line y than the one at dot_y. */
static bool is_own_line(Field *f, int y, int dot_y)
{
    LabelDevice device = field_device(f);
    int         down = f->utf8 ? 4 : 1;

    return label_is_own(&device, down * (y - f->y) + (down - 1) / 2.0, dot_y);
}

/* The name's number in the key, else the name. */
static const char *word_of(const Field *f, const PlotSeries *s, int64_t point, char text[8])
{
    int number = cells_key_number(f, s, point);

    snprintf(text, 8, "%d", number);
    return number ? text : point < 0 ? s->name : s->labels[point];
}

/* Names a line: a level one above or under its end, another beside it. False: no place. */
static bool place_line_name(Field *f, const char *name, const int *from, const int *to, int ink,
                            bool clear)
{
    int  across = f->utf8 ? 2 : 1, down = f->utf8 ? 4 : 1, length = utf8_columns(name);
    bool level = abs(to[1] - from[1]) < 2 * down;

    for (int k = level ? 0 : NAME_STEPS; k < 2 * NAME_STEPS; k++) {
        int    step = k % NAME_STEPS;
        double t = level ? 1 : 0.4 + 0.5 * step / NAME_STEPS;
        int    x = f->x + (int)lround(from[0] + t * (to[0] - from[0])) / across;
        int    y = f->y + (int)lround(from[1] + t * (to[1] - from[1])) / down;

        x = level ? x - length : x + 3;
        y = level ? y + (step % 2 ? 1 : -1) * (1 + step / 2) : y + 1;
        if (k < NAME_STEPS && !is_own_line(f, y, to[1]))
            continue;
        if (label_fits(&f->places, cells_box(y, x - 1, length + 2), clear)) {
            cells_text(f->out, y, x, length, name, ink, f->utf8);
            return true;
        }
    }
    return false;
}

/* A name without a place clear of curves stands in the key; across a curve where that is full. */
static void write_line_name(Field *f, const PlotSeries *s, const int *from, const int *to, int ink)
{
    char        text[8];
    const char *name = word_of(f, s, -1, text);

    if (place_line_name(f, name, from, to, ink, true) ||
        (name == s->name && cells_key_take(f, s, -1)))
        return;
    place_line_name(f, name, from, to, ink, false);
}

/* Every other pair of dots. */
static void put_dashes(Field *f, const int *from, const int *to, int ink)
{
    int dx = abs(to[0] - from[0]), dy = abs(to[1] - from[1]), steps = dx > dy ? dx : dy;

    for (int k = 0; k <= steps; k++)
        if (k % 4 < 2 || !f->utf8)
            cells_dot(f, from[1] + (int)lround((double)k * (to[1] - from[1]) / (steps ? steps : 1)),
                      from[0] + (int)lround((double)k * (to[0] - from[0]) / (steps ? steps : 1)),
                      ink);
}

void cells_guide_line(Field *f, const PlotSeries *s)
{
    int from[2], to[2], ink = s->hue < 0 ? PLOT_INK_GUIDE : s->hue;

    if (s->count < 2 || !cells_dot_of(f, s->x[0], s->y[0], &from[0], &from[1]))
        return;
    for (int64_t i = 1; i < s->count; i++) {
        if (!cells_dot_of(f, s->x[i], s->y[i], &to[0], &to[1]))
            return;
        put_dashes(f, from, to, ink);
        from[0] = to[0];
        from[1] = to[1];
    }
}

static void name_one(void *context, const PlotSeries *s)
{
    Field  *f = context;
    int64_t last = s->count - 1;
    int     from[2], to[2];

    if (cells_dot_of(f, s->x[0], s->y[0], &from[0], &from[1]) &&
        cells_dot_of(f, s->x[last], s->y[last], &to[0], &to[1]))
        write_line_name(f, s, from, to, s->hue < 0 ? PLOT_INK_GUIDE : s->hue);
}

/* ---- words beside points ---------------------------------------------------- */

void cells_take_points(Field *f)
{
    LabelDevice device = field_device(f);

    label_take_plot(&device);
}

/* Squared distance of a point's character from a box; lines are twice as far apart as columns. */
static double distance(const LabelBox *box, int x, int y)
{
    double dx = fmax(fmax(box->x - x - 0.5, x + 0.5 - box->x - box->w), 0);
    double dy = 2 * fmax(fmax(box->y - y - 0.5, y + 0.5 - box->y - box->h), 0);

    return dx * dx + dy * dy;
}

/* Another point is nearer: a reader would take the words for its name. */
static bool is_astray(const Field *f, const LabelBox *box, int x, int y)
{
    double own = distance(box, x, y);
    int    other_x, other_y;

    for (int k = 0; k < f->plot->count; k++) {
        const PlotSeries *s = &f->plot->series[k];

        for (int64_t i = 0; s->labels && i < s->count; i++)
            if (s->labels[i][0] && /* a repeated name has none */
                cells_dot_of(f, s->x[i], s->y[i], &other_x, &other_y) &&
                distance(box, f->x + other_x / (f->utf8 ? 2 : 1),
                         f->y + other_y / (f->utf8 ? 4 : 1)) < own - 1e-9)
                return true;
    }
    return false;
}

/* A place for the word of a point, or for a number of the key (point -1). A word stands in the key
 * rather than across a curve; false: it does, or there is no room. */
static bool place_word(Field *f, const PlotSeries *s, int64_t point, int x, int y, int length,
                       LabelBox *box)
{
    double gap = point >= 0 ? 1.5 : 0.5; /* a blank lies between */

    if (label_place_clear(&f->places, x + 0.5, y + 0.5, gap, 0.5, length, 1, box))
        return true;
    return !(point >= 0 && cells_key_take(f, s, point)) &&
           label_place(&f->places, x + 0.5, y + 0.5, gap, 0.5, length, 1, box);
}

static void put_label(Field *f, const PlotSeries *s, int64_t i)
{
    char        text[8];
    const char *word = word_of(f, s, i, text);
    bool        whole = word != text;
    int         x, y, length = utf8_columns(word);
    LabelBox    box;

    if (!length || !cells_dot_of(f, s->x[i], s->y[i], &x, &y))
        return;
    x = f->x + x / (f->utf8 ? 2 : 1);
    y = f->y + y / (f->utf8 ? 4 : 1);
    if (!place_word(f, s, whole ? i : -1, x, y, length, &box))
        return;
    if (whole && is_astray(f, &box, x, y) && cells_key_take(f, s, i))
        f->places.count--;
    else
        cells_text(f->out, (int)lround(box.y), (int)lround(box.x), length, word,
                   s->hue < 0 ? PLOT_INK_TEXT : s->hue, f->utf8);
}

/* Names of lines are written over the curves. */
void cells_labels(Field *f)
{
    LabelDevice device = field_device(f);

    cells_name_guides(f);
    label_name_lines(&device);
    for (int k = 0; k < f->plot->count; k++)
        for (int64_t i = 0; f->plot->series[k].labels && i < f->plot->series[k].count; i++)
            put_label(f, &f->plot->series[k], i);
}
