/* lens.c -- see lens.h. */
#include "ui/pane/lens.h"

#include <math.h>

#define LARGEST 16 /* pixels per entry */

static int64_t within(int64_t value, int64_t lo, int64_t hi)
{
    return value > hi ? (hi < lo ? lo : hi) : value < lo ? lo : value;
}

/* Pixels per entry: a whole number from 1 up. */
static double settle(double pixels)
{
    return pixels >= 1 ? fmin(floor(pixels), LARGEST) : pixels;
}

static double fit_of(int64_t count, int pixels)
{
    return settle((double)pixels / (double)(count > 0 ? count : 1));
}

static double of_zoom(int zoom)
{
    return zoom > 0 ? zoom : zoom < 0 ? 1.0 / -zoom : 0;
}

/* Pixels per entry on both axes. */
static void scales(const Lens *lens, const LensShape *s, double *row, double *col)
{
    double fit_row = fit_of(s->rows, s->height), fit_col = fit_of(s->cols, s->width);
    double zoom = of_zoom(lens->zoom);

    if (s->even) {
        double raw =
            fmin((double)s->height / (double)s->rows, (double)s->width / (double)s->cols / s->tall);

        /* Flat pixels: better entries of uneven shape than entries lost. */
        if (s->tall > 1 && raw < 1 && fit_row >= 1 && fit_col >= 1)
            raw = 1;
        *row = zoom > 0 ? zoom : settle(raw);
        *col = settle(*row * s->tall);
        if (*col > fit_col && lens->zoom == 0)
            *col = fit_col;
        return;
    }
    *row = fmax(fit_row, zoom);
    *col = fmax(fit_col, settle(zoom * s->tall));
}

static LensAxis axis_of(int64_t count, int64_t origin, int pixels, double scale)
{
    LensAxis axis = { .count = count,
                      .size = scale >= 1 ? (int)scale : 1,
                      .per = scale >= 1 ? 1 : 1 / scale };
    int64_t  room = pixels / axis.size > 0 ? pixels / axis.size : 1;
    int64_t  seen = within((int64_t)floor((double)room * axis.per + 1e-9), 1, count);

    axis.first = within(origin, 0, count - seen);
    axis.last = axis.first + seen;
    axis.cells = within((int64_t)ceil((double)seen / axis.per - 1e-9), 1, room);
    return axis;
}

LensView lens_view(Lens *lens, const LensShape *s)
{
    double   row, col;
    LensView view;

    scales(lens, s, &row, &col);
    lens->q = within(lens->q, 0, s->rows - 1);
    lens->k = within(lens->k, 0, s->cols - 1);
    view.row = axis_of(s->rows, lens->row0, s->height, row);
    view.col = axis_of(s->cols, lens->col0, s->width, col);
    lens->row0 = view.row.first;
    lens->col0 = view.col.first;
    return view;
}

Region lens_region(const LensView *view)
{
    return (Region){ view->row.first, view->row.last, view->col.first, view->col.last };
}

/* The next zoom of the ladder ... -4 -2 1 2 3 4 6 8 12 16 beyond `scale`. */
static int next_zoom(double scale, int direction)
{
    static const int steps[] = { 1, 2, 3, 4, 6, 8, 12, 16 };
    int              count = sizeof(steps) / sizeof(*steps), per = 2;

    if (direction > 0) {
        for (int i = 0; i < count; i++)
            if (steps[i] > scale && scale >= 0.5)
                return steps[i];
        if (scale >= 0.5)
            return LARGEST;
        while (per * 2 * scale < 1)
            per *= 2;
        return -per;
    }
    for (int i = count - 1; i >= 0; i--)
        if (steps[i] < scale)
            return steps[i];
    while (1.0 / per >= scale)
        per *= 2;
    return -per;
}

static int64_t keep_place(int64_t cursor, const LensAxis *before, const LensAxis *after)
{
    double share = (double)(cursor - before->first) / (double)(before->last - before->first);

    return cursor - (int64_t)llround(share * (double)(after->last - after->first));
}

void lens_zoom_to(Lens *lens, const LensShape *s, int zoom)
{
    LensView before = lens_view(lens, s), after;

    lens->zoom = zoom;
    after = lens_view(lens, s);
    lens->row0 = keep_place(lens->q, &before.row, &after.row);
    lens->col0 = keep_place(lens->k, &before.col, &after.col);
    lens_move(lens, s, 0, 0); /* at the edges rounding would lose it */
}

void lens_zoom(Lens *lens, const LensShape *s, int direction)
{
    Lens   fit = { 0 };
    double row, col, fit_row, fit_col;
    int    zoom;

    scales(lens, s, &row, &col);
    scales(&fit, s, &fit_row, &fit_col);
    zoom = next_zoom(row, direction);
    if (of_zoom(zoom) <= fit_row)
        zoom = 0;
    if (!s->even && zoom == 0 && direction > 0)
        zoom = next_zoom(fmin(row, col), direction);
    lens_zoom_to(lens, s, zoom);
}

static int64_t into_sight(int64_t cursor, const LensAxis *axis)
{
    int64_t seen = axis->last - axis->first;

    if (cursor < axis->first)
        return cursor;
    return cursor >= axis->last ? cursor - seen + 1 : axis->first;
}

void lens_move(Lens *lens, const LensShape *s, int64_t dq, int64_t dk)
{
    LensView view;

    lens->q = within(lens->q + dq, 0, s->rows - 1);
    lens->k = within(lens->k + dk, 0, s->cols - 1);
    view = lens_view(lens, s);
    lens->row0 = into_sight(lens->q, &view.row);
    lens->col0 = into_sight(lens->k, &view.col);
    lens_view(lens, s);
}

void lens_centre(Lens *lens, const LensShape *s)
{
    LensView view = lens_view(lens, s);

    lens->row0 = lens->q - (view.row.last - view.row.first) / 2;
    lens->col0 = lens->k - (view.col.last - view.col.first) / 2;
    lens_view(lens, s);
}

void lens_pan(Lens *lens, const LensShape *s, int64_t rows, int64_t cols)
{
    LensView view = lens_view(lens, s);

    lens->row0 += rows;
    lens->col0 += cols;
    view = lens_view(lens, s);
    lens->q = within(lens->q, view.row.first, view.row.last - 1);
    lens->k = within(lens->k, view.col.first, view.col.last - 1);
}

int64_t lens_entry(const LensAxis *axis, int pixel)
{
    int64_t cell = pixel / axis->size;

    if (cell >= axis->cells || pixel < 0)
        return -1;
    return axis->first + cell * (axis->last - axis->first) / axis->cells;
}

int lens_pixel(const LensAxis *axis, int64_t entry)
{
    int64_t seen = axis->last - axis->first;

    if (entry < axis->first || entry >= axis->last)
        return -1;
    /* The last cell that begins at or before the entry. */
    return (int)(((entry - axis->first + 1) * axis->cells - 1) / seen) * axis->size;
}

/* Pixels of an entry that lets the region fit; below 0: entries of a pixel; 0: all. */
static int zoom_for(const LensShape *s, int64_t rows, int64_t cols)
{
    static const int sizes[] = { 16, 12, 8, 6, 4, 3, 2, 1 };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        if (rows * sizes[i] <= s->height && cols * sizes[i] * s->tall <= s->width)
            return sizes[i];
    for (int64_t by = 2; by < s->rows || by < s->cols; by *= 2)
        if (rows <= s->height * by && cols * s->tall <= s->width * by)
            return -(int)by;
    return 0;
}

void lens_show(Lens *lens, const LensShape *shape, Region r)
{
    lens->zoom = zoom_for(shape, r.row1 - r.row0, r.col1 - r.col0);
    lens->row0 = r.row0;
    lens->col0 = r.col0;
    lens->q = r.row0 + (r.row1 - r.row0) / 2;
    lens->k = r.col0 + (r.col1 - r.col0) / 2;
}
