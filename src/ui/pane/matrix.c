/* matrix.c -- see matrix.h. */
#include "ui/pane/matrix.h"

#include <string.h>
#include <strings.h>

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

static bool shows_values(const Panel *panel)
{
    ViewKind kind = panel->view->kind;

    return panel->minus ||
           !(panel_shows_hops(panel) || kind == VIEW_BUCKETS || kind == VIEW_MEMBERSHIP ||
             kind == VIEW_SCHEDULE || kind == VIEW_PATTERN || kind == VIEW_COMPONENTS);
}

Glyphs glyphs_for(const Term *term, Glyphs wish, const Panel *panel)
{
    if (!term->utf8)
        return GLYPHS_ASCII;
    if (!term->half_block && wish != GLYPHS_ASCII)
        wish = GLYPHS_FULL;
    if (wish == GLYPHS_QUADRANT || wish == GLYPHS_BRAILLE || wish == GLYPHS_ASCII)
        return wish;
    if (term->colours == TERM_MONO)
        return shows_values(panel) ? GLYPHS_SHADE : GLYPHS_ASCII;
    return term->colours < TERM_256 && shows_values(panel) ? GLYPHS_SHADE : wish;
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

/* Number of levels of a panel's colours here. */
static int matrix_levels(const Term *term, Glyphs glyphs, const Panel *panel)
{
    int length;

    if (glyphs == GLYPHS_SHADE)
        return 5;
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
} Pixel;

typedef struct Painter {
    Term             *term;
    const Panel      *panel;
    const Grid       *grid;
    const LensView   *view;
    const MatrixLook *look;
    int               levels;
    int               cursor_y, cursor_x; /* pixel; -1: not in sight */
    bool              same;               /* the grid is of exactly this sight */
    GlyphSize         size;
} Painter;

/* Cell of the grid for a cell of the sight, -1 outside. */
static int64_t cell_of(const LensAxis *axis, int pixel, int64_t from, int64_t to, int64_t cells,
                       bool same)
{
    int64_t cell = pixel / axis->size, entry;

    if (cell >= axis->cells)
        return -1;
    if (same && cells == axis->cells)
        return cell;
    entry = axis->first + (2 * cell + 1) * (axis->last - axis->first) / (2 * axis->cells);
    return entry < from || entry >= to ? -2 : (entry - from) * cells / (to - from);
}

static Pixel pixel_at(const Painter *p, int y, int x)
{
    const Grid *g = p->grid;
    int64_t     row = cell_of(&p->view->row, y, g->region.row0, g->region.row1, g->rows, p->same);
    int64_t     col = cell_of(&p->view->col, x, g->region.col0, g->region.col1, g->cols, p->same);
    Pixel       pixel = { .ascii = ' ', .background = true };
    int         cell_y = y / p->view->row.size, cell_x = x / p->view->col.size;
    bool        on_row = cell_y == p->cursor_y, on_col = cell_x == p->cursor_x;
    Paint       paint;

    if (row == -1 || col == -1)
        return pixel;
    pixel.there = true;
    pixel.cursor = on_row && on_col;
    pixel.ink = p->look->cross && (on_row || on_col) ? theme_cross(p->look->theme)
                                                     : theme_matrix(p->look->theme);
    if (row < 0 || col < 0 || !g->cells)
        return pixel;
    paint = panel_paint(p->panel, g, row, col, p->levels, theme_dark(p->look->theme));
    pixel.ascii = paint.ascii;
    pixel.marked = paint.marked;
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

static void draw_half(const Painter *p, int y, int x, Pixel a, Pixel b)
{
    Ink top = a.there ? a.cursor ? cursor_ink(a) : a.ink : INK_NONE;
    Ink low = b.there ? b.cursor ? cursor_ink(b) : b.ink : INK_NONE;

    if (top == low)
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
    term_char(p->term, y, x + 1, ' ', style);
}

/* Without colours a shade, else the shade in the value's colour. */
static void draw_letter(const Painter *p, int y, int x, Pixel a)
{
    static const uint32_t shades[] = { ' ', 0x2591, 0x2592, 0x2593, 0x2588 };
    uint32_t              ch = (unsigned char)a.ascii;
    Style                 style = { .fg = a.background ? INK_NONE : a.ink };

    if (p->look->glyphs == GLYPHS_SHADE && a.ascii != '!' && !a.marked)
        ch = a.background ? ' ' : shades[a.level > 4 ? 4 : a.level];
    if (p->term->colours < TERM_256 && p->look->glyphs == GLYPHS_SHADE)
        style.fg = INK_NONE;
    if (a.background && a.there && !a.cursor)
        style.attr = ATTR_DIM;
    if (a.cursor) {
        style.attr = ATTR_REVERSE | ATTR_BOLD;
        style.fg = INK_NONE;
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

void matrix_draw(Term *term, Area canvas, const Panel *panel, const Grid *grid,
                 const LensView *view, const MatrixLook *look)
{
    Region  sight = lens_region(view);
    Painter p = {
        .term = term,
        .panel = panel,
        .grid = grid,
        .view = view,
        .look = look,
        .levels = matrix_levels(term, look->glyphs, panel),
        .cursor_y = lens_pixel(&view->row, look->q),
        .cursor_x = lens_pixel(&view->col, look->k),
        .same = memcmp(&sight, &grid->region, sizeof(sight)) == 0,
        .size = glyphs_size(look->glyphs),
    };

    if (p.cursor_y >= 0)
        p.cursor_y /= view->row.size;
    if (p.cursor_x >= 0)
        p.cursor_x /= view->col.size;
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
}
