/* matrix.c -- see matrix.h. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "ui/pane/matrix.h"

#define LARGEST 16 /* pixels per entry */
#define NEARLY  1.05
#define UNEVEN  1.5 /* from here on entries may differ by a pixel, so that the room is used */

static int64_t within(int64_t value, int64_t lo, int64_t hi)
{
    return value > hi ? (hi < lo ? lo : hi) : value < lo ? lo : value;
}

/* Cells of the same number of entries each, where that costs little of the size and one more or
 * less would be seen. */
static double evened(double pixels)
{
    double per = ceil(1 / pixels - 1e-9);

    return per <= 4 && per * pixels <= NEARLY ? 1 / per : pixels;
}

static double grown(double pixels)
{
    if (pixels < 1)
        return evened(pixels);
    return pixels >= UNEVEN ? fmin(pixels, LARGEST) : 1;
}

/* Of lists, where equal cells are what makes entries countable. */
static double whole_pixels(double pixels)
{
    return pixels >= 1 ? fmin(floor(pixels), LARGEST) : pixels;
}

double lens_fit(int64_t count, int pixels)
{
    return grown((double)pixels / (double)(count > 0 ? count : 1));
}

static double of_zoom(int zoom)
{
    return zoom > 0 ? zoom : zoom < 0 ? 1.0 / -zoom : 0;
}

/* Pixels per entry on both axes. */
static void scales(const Lens *lens, const LensShape *s, double *row, double *col)
{
    double fit_row = lens_fit(s->rows, s->height), fit_col = lens_fit(s->cols, s->width);
    double zoom = of_zoom(lens->zoom);

    if (s->even) {
        double raw =
            fmin((double)s->height / (double)s->rows, (double)s->width / (double)s->cols / s->tall);

        /* A matrix much wider than high: stretch entries rather than drop some. */
        if (s->tall > 1 && raw < 1 && fit_row >= 1 && fit_col >= 1)
            raw = 1;
        *row = zoom > 0 ? zoom : grown(raw);
        *col = grown(*row * s->tall);
        if (*col > fit_col && lens->zoom == 0)
            *col = fit_col;
        return;
    }
    *row = fmax(whole_pixels(fit_row), zoom);
    *col = fmax(whole_pixels(fit_col), whole_pixels(zoom * s->tall));
}

static LensAxis axis_of(int64_t count, int64_t origin, int pixels, double scale)
{
    LensAxis axis = { .size = scale >= 1 ? (int)scale : 1,
                      .per = scale >= 1 ? 1 : 1 / scale };
    double   cell = fmax(scale, 1);
    int64_t  room = within((int64_t)floor(pixels / cell + 1e-9), 1, pixels);
    int64_t  seen = within((int64_t)floor((double)room * axis.per + 1e-9), 1, count);

    axis.first = within(origin, 0, count - seen);
    axis.last = axis.first + seen;
    axis.cells = within((int64_t)ceil((double)seen / axis.per - 1e-9), 1, room);
    axis.span = (int)((double)axis.cells * cell + 1e-9);
    return axis;
}

/* The pixels that the lens may use. */
static LensShape near_shape(const Lens *lens, const LensShape *s)
{
    LensShape shape = *s;

    if (lens->zoom && s->near_height && s->near_width) {
        shape.height = (int)min_i64(s->height, s->near_height);
        shape.width = (int)min_i64(s->width, s->near_width);
    }
    return shape;
}

LensView lens_view(Lens *lens, const LensShape *whole)
{
    LensShape        shape = near_shape(lens, whole);
    const LensShape *s = &shape;
    double           row, col;
    LensView         view;

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
    lens_move(lens, s, 0, 0); /* rounding must not move it past the edge */
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

/* Cell under a pixel, -1 beyond the last. */
static int64_t lens_cell(const LensAxis *axis, int pixel)
{
    return pixel < 0 || pixel >= axis->span
               ? -1
               : ((int64_t)(pixel + 1) * axis->cells - 1) / axis->span;
}

static int cell_start(const LensAxis *axis, int64_t cell)
{
    return (int)(cell * axis->span / axis->cells);
}

int64_t lens_entry(const LensAxis *axis, int pixel)
{
    int64_t cell = lens_cell(axis, pixel);

    if (cell < 0)
        return -1;
    return axis->first + cell * (axis->last - axis->first) / axis->cells;
}

/* The last cell that begins at or before the entry; -1: out of sight. */
static int64_t cell_with(const LensAxis *axis, int64_t entry)
{
    int64_t seen = axis->last - axis->first;

    if (entry < axis->first || entry >= axis->last)
        return -1;
    return ((entry - axis->first + 1) * axis->cells - 1) / seen;
}

int lens_pixel(const LensAxis *axis, int64_t entry)
{
    int64_t cell = cell_with(axis, entry);

    return cell < 0 ? -1 : cell_start(axis, cell);
}

int lens_end(const LensAxis *axis, int64_t entry)
{
    int64_t cell = cell_with(axis, entry);

    return cell < 0 ? -1 : cell_start(axis, cell + 1);
}

int lens_middle(const LensAxis *axis, int64_t entry)
{
    int first = lens_pixel(axis, entry), end = lens_end(axis, entry);

    return first < 0 ? -1 : first + (end - first) / 2;
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

/* ---- characters ------------------------------------------------------------ */

const char *glyphs_name(Glyphs glyphs)
{
    static const char *const names[] = {
        "half blocks", "quadrants", "braille", "full cells", "ASCII", "", "shades",
    };

    return names[glyphs];
}

bool glyphs_parse(const char *name, Glyphs *out, Error *err)
{
    for (int i = 0; i < GLYPHS_COUNT; i++)
        if (*name && !strncasecmp(glyphs_name((Glyphs)i), name, strlen(name))) {
            *out = (Glyphs)i;
            return true;
        }
    return error_set(err, ERR_USAGE, "there are no glyphs '%.40s'; choose half blocks, "
                     "quadrants, braille, full cells or ASCII", name);
}

static bool is_pattern(const Panel *panel)
{
    ViewKind kind = panel->view->kind;

    return !panel->minus && (kind == VIEW_PATTERN || kind == VIEW_COMPONENTS);
}

static bool shows_values(const Panel *panel)
{
    return panel->minus || !(panel_shows_hops(panel) || panel_shows_categories(panel) ||
                             is_pattern(panel));
}

/* Shades can show it: values, or the share of a cell that is allowed. Not what was found and what
 * was missed: that needs colours or letters. */
static bool has_shades(const Panel *panel)
{
    return shows_values(panel) || (is_pattern(panel) && !panel->view->found);
}

bool glyphs_name_causes(const Term *term, Glyphs glyphs, const Panel *panel, const Grid *grid)
{
    const Region *r = &grid->region;

    if (glyphs != GLYPHS_SHADE)
        return glyphs == GLYPHS_ASCII;
    return term->colours == TERM_MONO && is_pattern(panel) && grid->rows == r->row1 - r->row0 &&
           grid->cols == r->col1 - r->col0;
}

Glyphs glyphs_for(const Term *term, Glyphs wish, const Panel *panel)
{
    if (!term->utf8)
        return wish != GLYPHS_ASCII && term->colours < TERM_256 && is_pattern(panel) &&
                       has_shades(panel)
                   ? GLYPHS_SHADE
                   : GLYPHS_ASCII;
    if (!term->half_block && wish != GLYPHS_ASCII)
        wish = GLYPHS_FULL;
    if (wish == GLYPHS_QUADRANT || wish == GLYPHS_BRAILLE || wish == GLYPHS_ASCII)
        return wish;
    if (term->colours == TERM_MONO)
        return has_shades(panel) ? GLYPHS_SHADE : GLYPHS_ASCII;
    return term->colours < TERM_256 && has_shades(panel) ? GLYPHS_SHADE : wish;
}

GlyphSize glyphs_size(Glyphs glyphs)
{
    switch (glyphs) {
    case GLYPHS_HALF: return (GlyphSize){ 1, 2, 1, 1 };
    case GLYPHS_QUADRANT: return (GlyphSize){ 2, 2, 1, 2 };
    case GLYPHS_BRAILLE: return (GlyphSize){ 2, 4, 1, 1 };
    case GLYPHS_FULL: return (GlyphSize){ 1, 1, 2, 1 };
    default: return (GlyphSize){ 1, 1, 1, 2 };
    }
}

void matrix_pixels(Area canvas, Glyphs glyphs, int *height, int *width)
{
    GlyphSize size = glyphs_size(glyphs);

    *height = canvas.h * size.down;
    *width = canvas.w / size.columns * size.across;
}

static const char ascii_shades[] = ".:-=+*#%@";

/* Number of levels of a panel's colours here. */
static int matrix_levels(const Term *term, Glyphs glyphs, const Panel *panel)
{
    int length;

    if (glyphs == GLYPHS_SHADE)
        return term->utf8 ? 5 : (int)sizeof(ascii_shades);
    if (glyphs == GLYPHS_ASCII && term->colours < TERM_256)
        return 10;
    if (term->colours == TERM_TRUE)
        return 64;
    if (term->colours < TERM_256)
        return 4;
    colour_ramp_256(panel->minus ? MAP_DIVERGING : panel->map, &length);
    return length + 1;
}

/* ---- pixels ----------------------------------------------------------------- */

typedef struct Pixel {
    Ink  ink;
    char ascii;
    int  level;
    bool there;      /* inside the matrix */
    bool background; /* nothing allowed */
    bool marked;     /* its letter says what it is */
    bool cursor;
    bool dotted;     /* entries of a rarer cause */
    Ink  dot;
} Pixel;

typedef struct Painter {
    Term             *term;
    const Panel      *panel;
    const Grid       *grid;
    const LensView   *view;
    const MatrixLook *look;
    int               levels;
    int64_t           cursor_y, cursor_x; /* cell; -2: not in sight */
    bool              same;               /* the grid is of exactly this sight */
    GlyphSize         size;
    bool             *dots;               /* set where a dot is drawn */
    bool              letters;            /* that name causes */
} Painter;

/* Cell of the grid for a cell of the sight, -1 outside. */
static int64_t cell_of(const LensAxis *axis, int pixel, int64_t from, int64_t to, int64_t cells,
                       bool same)
{
    int64_t cell = lens_cell(axis, pixel), entry;

    if (cell < 0)
        return -1;
    if (same && cells == axis->cells)
        return cell;
    entry = axis->first + (2 * cell + 1) * (axis->last - axis->first) / (2 * axis->cells);
    return entry < from || entry >= to ? -2 : (entry - from) * cells / (to - from);
}

/* Number of the chunk in sorted order that holds the entry in the middle of the cell. */
static int64_t chunk_at(const Panel *panel, const LensAxis *axis, int pixel)
{
    int64_t cell = lens_cell(axis, pixel), lo = 0, hi = panel->slot_group_count;
    int64_t entry = axis->first + (2 * cell + 1) * (axis->last - axis->first) / (2 * axis->cells);

    while (lo + 1 < hi) {
        int64_t middle = (lo + hi) / 2;

        if (panel->slot_groups[middle] <= entry)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

/* Empty cells of a token's own chunk, or bucket, are lighter: the squares are its borders. */
static bool in_own_chunk(const Painter *p, int y, int x)
{
    const Panel *panel = p->panel;

    return panel->slot_group_count > 1 && panel->row_order && panel->col_order &&
           chunk_at(panel, &p->view->row, y) == chunk_at(panel, &p->view->col, x);
}

static Pixel pixel_at(const Painter *p, int y, int x)
{
    const Grid *g = p->grid;
    int64_t     row = cell_of(&p->view->row, y, g->region.row0, g->region.row1, g->rows, p->same);
    int64_t     col = cell_of(&p->view->col, x, g->region.col0, g->region.col1, g->cols, p->same);
    Pixel       pixel = { .ascii = ' ', .background = true };
    bool        on_row = lens_cell(&p->view->row, y) == p->cursor_y;
    bool        on_col = lens_cell(&p->view->col, x) == p->cursor_x;
    Paint       paint;

    if (row == -1 || col == -1)
        return pixel;
    pixel.there = true;
    pixel.cursor = on_row && on_col;
    pixel.ink = p->look->cross && (on_row || on_col) ? theme_cross(p->look->theme)
                : in_own_chunk(p, y, x)              ? theme_chunk(p->look->theme)
                                                     : theme_matrix(p->look->theme);
    if (row < 0 || col < 0 || !g->cells)
        return pixel;
    /* Eight colours have no lighter shade of a hue: the character shows it. */
    paint = panel_paint(p->panel, g, row, col, p->levels,
                        p->look->glyphs == GLYPHS_SHADE || theme_dark(p->look->theme));
    pixel.ascii = paint.ascii;
    pixel.marked = paint.marked;
    pixel.dotted = paint.dotted && !pixel.cursor &&
                   (p->letters || p->term->colours != TERM_MONO); /* the cause must be visible */
    pixel.dot = ink_of(paint.dot, paint.dot256);
    pixel.level = paint.level;
    pixel.background = paint.background;
    if (!paint.background || paint.ascii == ' ')
        pixel.ink = paint.background && p->panel->map != MAP_DIVERGING && !p->panel->minus
                        ? pixel.ink
                        : ink_of(paint.rgb, paint.index256);
    return pixel;
}

/* White, or black on a light cell, so that it is seen on every map. */
static Ink cursor_ink(Pixel under)
{
    int light =
        (int)(under.ink >> 16 & 255) * 3 + (int)(under.ink >> 8 & 255) * 6 + (int)(under.ink & 255);

    return light > 1500 ? ink_of((Rgb){ 8, 8, 8 }, 232) : ink_of((Rgb){ 255, 255, 255 }, 231);
}

/* A dot for a rarer cause stands on both halves, so both must have the same commonest one. */
static bool takes_dot(Pixel a, Pixel b)
{
    return (a.dotted || b.dotted) && a.there && b.there && !a.cursor && !b.cursor &&
           !a.background && !b.background && a.ascii == b.ascii;
}

static void draw_half(const Painter *p, int y, int x, Pixel a, Pixel b)
{
    Ink top = a.there ? a.cursor ? cursor_ink(a) : a.ink : INK_NONE;
    Ink low = b.there ? b.cursor ? cursor_ink(b) : b.ink : INK_NONE;

    *p->dots |= takes_dot(a, b);
    if (takes_dot(a, b))
        term_char(p->term, y, x, 0x2022,
                  (Style){ .fg = a.dotted ? a.dot : b.dot, .bg = b.level > a.level ? low : top });
    else if (top == low)
        term_char(p->term, y, x, ' ', (Style){ .bg = top });
    else if (top == INK_NONE)
        term_char(p->term, y, x, 0x2584, (Style){ .fg = low });
    else
        term_char(p->term, y, x, 0x2580, (Style){ .fg = top, .bg = low });
}

static void draw_full(const Painter *p, int y, int x, Pixel a)
{
    Style style = { .bg = a.there ? a.cursor ? cursor_ink(a) : a.ink : INK_NONE };

    term_char(p->term, y, x, ' ', style);
    style.fg = a.dotted ? a.dot : style.fg;
    *p->dots |= a.dotted;
    term_char(p->term, y, x + 1, a.dotted ? 0x2022 : ' ', style);
}

/* A letter, or a shade: in its cause's colour where there are eight. */
static void draw_letter(const Painter *p, int y, int x, Pixel a)
{
    static const uint32_t shades[] = { ' ', 0x2591, 0x2592, 0x2593, 0x2588 };
    uint32_t              ch = (unsigned char)a.ascii;
    Style                 style = { .fg = a.background ? INK_NONE : a.ink };

    if (p->look->glyphs == GLYPHS_SHADE && !p->letters && a.ascii != '!' && !a.marked) {
        if (p->term->utf8)
            ch = a.background ? ' ' : shades[a.level > 4 ? 4 : a.level];
        else if (!a.background)
            ch = (unsigned char)ascii_shades[a.level > 0 ? a.level - 1 : 0];
        else if (a.there)
            ch = ' ';
    }
    if (p->term->colours < TERM_256 && p->look->glyphs == GLYPHS_SHADE && shows_values(p->panel))
        style.fg = INK_NONE;
    if (panel_shows_categories(p->panel) && !a.background && p->term->colours >= TERM_256)
        style = style_on((Rgb){ (uint8_t)(a.ink >> 16), (uint8_t)(a.ink >> 8), (uint8_t)a.ink },
                         (uint8_t)(a.ink >> 24));
    if (a.background && a.there && !a.cursor)
        style.attr = ATTR_DIM;
    if (a.dotted)
        style.attr |= ATTR_UNDERLINE;
    *p->dots |= a.dotted;
    if (a.cursor) {
        style = (Style){ .attr = ATTR_REVERSE | ATTR_BOLD };
    }
    term_char(p->term, y, x, ch, style);
}

/* One colour for the character: of the pixel that stands out most. */
static void draw_dots(const Painter *p, Area canvas, int y, int x)
{
    static const uint8_t  dots[4][2] = { { 1, 8 }, { 2, 16 }, { 4, 32 }, { 64, 128 } };
    static const uint32_t quadrants[16] = {
        ' ',    0x2598, 0x259D, 0x2580, 0x2596, 0x258C, 0x259E, 0x259B,
        0x2597, 0x259A, 0x2590, 0x259C, 0x2584, 0x2599, 0x259F, 0x2588,
    };
    bool  braille = p->look->glyphs == GLYPHS_BRAILLE;
    int   set = 0, best = -1;
    Style style = { .bg = INK_NONE };
    bool  cursor = false;

    for (int dy = 0; dy < p->size.down; dy++)
        for (int dx = 0; dx < 2; dx++) {
            Pixel a = pixel_at(p, y * p->size.down + dy, x * 2 + dx);

            cursor |= a.cursor;
            if (a.there && !style.bg)
                style.bg = theme_matrix(p->look->theme);
            if (!a.there || a.background)
                continue;
            set |= braille ? dots[dy][dx] : 1 << (2 * dy + dx);
            if (a.level > best) {
                best = a.level;
                style.fg = a.ink;
            }
        }
    if (cursor)
        style = (Style){ .attr = ATTR_REVERSE | ATTR_BOLD };
    term_char(p->term, canvas.y + y, canvas.x + x,
              braille ? 0x2800u + (uint32_t)set : quadrants[set], style);
}

/* -1 is the cell of pixels beyond the last one. */
static int64_t cursor_cell(const LensAxis *axis, int64_t entry)
{
    int64_t cell = cell_with(axis, entry);

    return cell < 0 ? -2 : cell;
}

bool matrix_draw(Term *term, Area canvas, const Panel *panel, const Grid *grid,
                 const LensView *view, const MatrixLook *look)
{
    Region  sight = lens_region(view);
    bool    dots = false;
    Painter p = {
        .term = term,
        .panel = panel,
        .grid = grid,
        .view = view,
        .look = look,
        .levels = matrix_levels(term, look->glyphs, panel),
        .cursor_y = cursor_cell(&view->row, look->q),
        .cursor_x = cursor_cell(&view->col, look->k),
        .same = memcmp(&sight, &grid->region, sizeof(sight)) == 0,
        .size = glyphs_size(look->glyphs),
        .dots = &dots,
        .letters = glyphs_name_causes(term, look->glyphs, panel, grid),
    };

    for (int y = 0; y < canvas.h; y++)
        for (int x = 0; x < canvas.w / p.size.columns; x++) {
            int at_y = canvas.y + y, at_x = canvas.x + x * p.size.columns;

            switch (look->glyphs) {
            case GLYPHS_HALF:
                draw_half(&p, at_y, at_x, pixel_at(&p, 2 * y, x), pixel_at(&p, 2 * y + 1, x));
                break;
            case GLYPHS_FULL: draw_full(&p, at_y, at_x, pixel_at(&p, y, x)); break;
            case GLYPHS_QUADRANT:
            case GLYPHS_BRAILLE: draw_dots(&p, canvas, y, x); break;
            default: draw_letter(&p, at_y, at_x, pixel_at(&p, y, x));
            }
        }
    return dots;
}
