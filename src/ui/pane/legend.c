/* legend.c -- the line below the panes: what their colours and letters mean.
 *
 * Causes, counts of layers, schedules and loads are listed for all visible panes, each meaning
 * once; values and categories have ranges of their own, so those of the focused pane.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/state/panes.h"

/* No earlier pane lists a cause of the same name. */
static bool is_new_cause(const Ui *ui, int pane, const View *view, uint8_t bit)
{
    for (int i = 0; i < pane; i++) {
        const Pane *before = &ui->compare.panes[i];
        const View *other = before->area.h && before->drawing.causes ? pane_view(before) : NULL;

        for (int b = COMPONENT_WINDOW; other && b <= COMPONENT_LAST; b <<= 1)
            if (grid_causes(&before->drawing.grid) & b &&
                !strcmp(cause_name(other, (uint8_t)b), cause_name(view, bit)))
                return false;
    }
    return true;
}

/* The pane's causes have shades in place of letters or colours of their own. */
static bool is_shaded(Ui *ui, Pane *pane)
{
    Panel  panel;
    Glyphs glyphs;

    if (!pane->drawing.grid.cells || !pane_panel(ui, pane, &panel))
        return false;
    glyphs = glyphs_for(ui->term, ui->glyphs, &panel);
    return glyphs == GLYPHS_SHADE &&
           !glyphs_name_causes(ui->term, glyphs, &panel, &pane->drawing.grid);
}

#define NAME_WIDE   24 /* columns of a cause's name */
#define NAME_NARROW 12
#define WIDE_TERM   110

static int legend_bit(Ui *ui, int y, int x, const View *view, uint8_t bit, bool shaded)
{
    Term *term = ui->term;
    Hues  hues = theme_dark(ui->theme) ? HUES_DARK : HUES_USUAL;
    Ink   ink = ink_of(cause_colour_in(hues, view, bit), cause_256(view, bit));
    bool  letters = !term->utf8 || term->colours == TERM_MONO;
    int   most = term->cols < WIDE_TERM ? NAME_NARROW : NAME_WIDE;

    if (shaded && term->colours == TERM_MONO) /* only its name */
        return x + 2 + term_text(term, y, x, most, cause_name(view, bit), ui_style(ui, ROLE_TEXT));
    term_char(term, y, x,
              !letters ? 0x25A0 : shaded ? '@' : (uint32_t)cause_letter(view, bit),
              (Style){ .fg = ink });
    return x + 4 + term_text(term, y, x + 2, most, cause_name(view, bit),
                             ui_style(ui, ROLE_TEXT));
}

/* There is room for a sign, this name and, where more follow, the sign that there are more. */
static bool bit_fits(const Term *term, int x, const char *name, bool more)
{
    int most = term->cols < WIDE_TERM ? NAME_NARROW : NAME_WIDE;
    int width = term_width(name) < most ? term_width(name) : most;

    return x + 2 + width + (more ? 2 : 0) <= term->cols;
}

#define LETTERS_HINT ":glyphs ascii names them"

/* The name of what sorts the rows: a cause in sight that follows the content; else a bucket. */
static const char *sorter_name(const Pane *pane, const View *view)
{
    uint8_t causes = (uint8_t)grid_causes(&pane->drawing.grid);

    return causes & COMPONENT_CLUSTER && !(causes & COMPONENT_BUCKET)
               ? cause_name(view, COMPONENT_CLUSTER)
               : "bucket";
}

#define COVER_SHORT 14 /* columns of "brighter: more", which follows */

/* The colours of rows that are sorted: whose they are, in the words that fit. */
static int legend_sorter(Ui *ui, const Pane *pane, const View *view, int y, int x)
{
    const char *name = sorter_name(pane, view);
    const char *lead = ui->term->colours == TERM_MONO ? "letter" : "colour";
    int         long_width = (int)(strlen(lead) + strlen(": the query's ") + strlen(name));
    bool        fits = x + long_width + 2 + COVER_SHORT <= ui->term->cols;

    if (!fits && x + (int)(strlen(lead) + strlen(": ") + strlen(name)) > ui->term->cols)
        return x;
    return x + 2 + term_textf(ui->term, y, x, 40, ui_style(ui, ROLE_DIM), "%s: %s%s", lead,
                              fits ? "the query's " : "", name);
}

/* A pane from `pane` on has a new cause; of that pane itself a bit above `bit`. */
static bool more_bits(const Ui *ui, int pane, int bit)
{
    for (int i = pane; i < ui->compare.count; i++, bit = 0) {
        const Pane *p = &ui->compare.panes[i];
        const View *view = p->area.h && p->drawing.causes ? pane_view(p) : NULL;

        for (int b = bit ? bit << 1 : COMPONENT_WINDOW; view && b <= COMPONENT_LAST; b <<= 1)
            if (grid_causes(&p->drawing.grid) & b && is_new_cause(ui, i, view, (uint8_t)b))
                return true;
    }
    return false;
}

static int legend_bits(Ui *ui, int y, int x)
{
    bool  mono = ui->term->colours == TERM_MONO;
    bool  hidden = false; /* the causes of some picture */
    Panel panel;

    for (int i = 0; i < ui->compare.count; i++) {
        Pane       *pane = &ui->compare.panes[i];
        const View *view = pane->area.h && pane->drawing.causes ? pane_view(pane) : NULL;
        bool        shaded = view && is_shaded(ui, pane);

        if (view && pane_panel(ui, pane, &panel) && panel.row_buckets && panel.components &&
            !(shaded && mono)) {
            x = legend_sorter(ui, pane, view, y, x);
            continue;
        }
        hidden |= shaded && mono;
        for (int bit = COMPONENT_WINDOW; view && bit <= COMPONENT_LAST; bit <<= 1) {
            if (!(grid_causes(&pane->drawing.grid) & bit) ||
                !is_new_cause(ui, i, view, (uint8_t)bit))
                continue;
            if (!bit_fits(ui->term, x, cause_name(view, (uint8_t)bit), more_bits(ui, i, bit))) {
                term_char(ui->term, y, x, 0x2026, ui_style(ui, ROLE_DIM));
                return ui->term->cols; /* nothing has room behind it */
            }
            x = legend_bit(ui, y, x, view, (uint8_t)bit, shaded);
        }
    }
    if (hidden && x + (int)sizeof(LETTERS_HINT) + 48 < ui->term->cols)
        x += 2 + term_text(ui->term, y, x, 40, LETTERS_HINT, ui_style(ui, ROLE_DIM));
    return x;
}

static int legend_list(Ui *ui, const LegendItem *items, int count, int y, int x)
{
    bool letters = !ui->term->utf8 || ui->term->colours == TERM_MONO;

    for (int k = 0; k < count; k++) {
        Ink ink = items[k].background ? INK_NONE : ink_of(items[k].rgb, items[k].index256);
        int width = term_width(items[k].text) < 12 ? term_width(items[k].text) : 12;

        if (x + 2 + width + (k + 1 < count ? 3 : 0) > ui->term->cols) { /* there are more */
            term_char(ui->term, y, x, 0x2026, ui_style(ui, ROLE_DIM));
            return x + 2;
        }

        term_char(ui->term, y, x,
                  letters               ? (uint32_t)items[k].ascii
                  : items[k].background ? 0x25A1
                                        : 0x25A0,
                  (Style){ .fg = ink });
        x += 2 + term_text(ui->term, y, x + 2, 12, items[k].text, ui_style(ui, ROLE_TEXT)) + 2;
    }
    return x;
}

/* The words that fit; NULL: none do. */
static const char *dots_words(bool letters, int room)
{
    static const char *const words[][2] = {
        { DOT_WORDS, "dot: rarer cause" },
        { "underlined: a rarer cause too", "underlined: rarer" },
    };

    for (int k = 0; k < 2; k++)
        if (term_width(words[letters][k]) <= room)
            return words[letters][k];
    return NULL;
}

/* The mark of cells that also hold a rarer cause: a dot, or an underlined letter. */
static int legend_dots(Ui *ui, int y, int x)
{
    for (int i = 0; i < ui->compare.count; i++) {
        Pane       *pane = &ui->compare.panes[i];
        Panel       panel;
        const char *words;
        bool        letters;

        if (!pane->area.h || !pane->dotted || !pane_panel(ui, pane, &panel) ||
            !panel_shows_dots(&panel, &pane->drawing.grid))
            continue;
        letters = glyphs_size(glyphs_for(ui->term, ui->glyphs, &panel)).down == 1 &&
                  glyphs_for(ui->term, ui->glyphs, &panel) != GLYPHS_FULL;
        words = dots_words(letters, ui->term->cols - x);
        return words ? x + 2 + term_text(ui->term, y, x, ui->term->cols - x, words,
                                         ui_style(ui, ROLE_DIM))
                     : x;
    }
    return x;
}

/* Legend of reach for all panes: a hop count has the same colour in all of them. */
static int legend_hops(Ui *ui, int y, int x)
{
    double     least = REACH_MOST, most = 0;
    bool       any = false, unreached = false;
    ColourMap  map = MAP_VIRIDIS;
    LegendItem items[32];
    int        count;

    for (int i = 0; i < ui->compare.count; i++) {
        Pane       *pane = &ui->compare.panes[i];
        const Grid *g = &pane->drawing.grid;
        Panel       panel;

        if (!pane->area.h || !g->cells || pane->drawing.kind != VIEW_HOPS ||
            !pane_panel(ui, pane, &panel) || !panel_shows_hops(&panel))
            continue;
        any = true;
        map = panel.map;
        least = fmin(least, g->value_min);
        most = fmax(most, g->value_max);
        unreached |= g->count < (double)(g->region.row1 - g->region.row0) *
                                    (double)(g->region.col1 - g->region.col0);
    }
    count = any ? hops_legend(map, least, most, unreached, theme_dark(ui->theme), items, 32) : 0;
    return legend_list(ui, items, count, y, x);
}

/* Legend of a schedule: which worker computes which block. */
static int legend_schedule(Ui *ui, int y, int x)
{
    LegendItem items[4];
    bool       any = false;
    Panel      panel;

    for (int i = 0; i < ui->compare.count; i++) {
        Pane *pane = &ui->compare.panes[i];

        any |= pane->area.h && pane->drawing.grid.cells && pane_panel(ui, pane, &panel) &&
               panel_shows_schedule(&panel);
    }
    return any ? legend_list(ui, items, schedule_legend(HUES_USUAL, items, 4), y, x) : x;
}

/* ---- categories ------------------------------------------------------------- */

typedef struct CategoryKey {
    Ui          *ui;
    const Panel *panel;
    int64_t      first, last; /* categories in sight */
    int64_t      cursor;      /* the one under it; -1: none */
    bool         letters;
    bool         mixed; /* some cell's commonest is less than half of it */
} CategoryKey;

#define CURSOR_WORD "cursor "

/* Categories of the focused pane, or of the first visible pane that has some. */
static Pane *categories_pane(Ui *ui, Panel *panel)
{
    for (int i = -1; i < ui->compare.count; i++) {
        Pane *pane = i < 0 ? panes_focus(ui) : &ui->compare.panes[i];

        if (pane->area.h && pane->drawing.grid.cells && pane_panel(ui, pane, panel) &&
            !panel->plot && panel_shows_categories(panel) && !panel_shows_schedule(panel))
            return pane;
    }
    return NULL;
}

static bool is_mixed(const Grid *g)
{
    for (int64_t c = 0; c < g->rows * g->cols; c++)
        if (g->cells[c].category >= 0 && g->cells[c].purity < 0.5f)
            return true;
    return false;
}

/* False: no visible cell has a category. */
static bool find_categories(CategoryKey *t, Pane *pane)
{
    const Grid *g = &pane->drawing.grid;
    const View *view = t->panel->view;
    CellFacts   facts;
    int64_t     q, k;

    if (!(g->count > 0))
        return false;
    pane_cursor(pane, &q, &k);
    facts = cell_facts(t->ui, pane, q, k);
    t->letters = glyphs_for(t->ui->term, t->ui->glyphs, t->panel) == GLYPHS_ASCII;
    if (view->kind == VIEW_MEMBERSHIP) { /* a colour for each row */
        t->last = view_rows(view) - 1;
        t->cursor = facts.known && facts.allowed ? q : -1;
        return true;
    }
    t->first = (int64_t)g->value_min;
    t->last = (int64_t)g->value_max;
    t->cursor = facts.known && facts.value >= 0 ? (int64_t)facts.value : -1;
    t->mixed = is_mixed(g);
    return true;
}

static bool legend_has_name(const CategoryKey *t)
{
    return t->panel->view->kind == VIEW_BUCKETS && t->panel->view->categories;
}

/* Columns of "A=12", of a square and "12", or of a square, a blank and a name. */
static int category_width(const CategoryKey *t, int64_t category)
{
    LegendItem item = category_item(t->panel, category);

    return term_width(item.text) + (legend_has_name(t) || t->letters ? 2 : 1);
}

static int draw_category(const CategoryKey *t, int y, int x, int64_t category)
{
    LegendItem item = category_item(t->panel, category);
    Term      *term = t->ui->term;

    term_char(term, y, x, t->letters ? (uint32_t)item.ascii : 0x25A0,
              t->letters && term->colours >= TERM_256
                  ? style_on(item.rgb, item.index256)
                  : (Style){ .fg = ink_of(item.rgb, item.index256) });
    if (legend_has_name(t) || t->letters)
        term_char(term, y, ++x, legend_has_name(t) ? ' ' : '=', ui_style(t->ui, ROLE_DIM));
    return x + 1 + term_text(term, y, x + 1, 40, item.text, ui_style(t->ui, ROLE_TEXT));
}

/* Draws what fits before column `end`; where not all do, an ellipsis and the last one follow. */
static int draw_categories(const CategoryKey *t, int y, int x, int end)
{
    int     gap = legend_has_name(t) ? 2 : 1, kinds = category_kinds(t->letters), rest = 0;
    int64_t last = t->last - t->first < kinds || legend_has_name(t) ? t->last
                                                                    : t->first + kinds - 1;

    for (int64_t c = t->first; c <= last; c++)
        rest += category_width(t, c) + gap;
    for (int64_t c = t->first; c <= last; c++) {
        int width = category_width(t, c) + gap, closing = 2 + category_width(t, last) + gap;

        if (x + rest > end && c < last && x + width + closing > end) {
            if (x + closing > end)
                return x;
            term_char(t->ui->term, y, x, 0x2026, ui_style(t->ui, ROLE_DIM));
            return draw_category(t, y, x + 2, last) + gap;
        }
        x = draw_category(t, y, x, c) + gap;
        rest -= width;
    }
    return x;
}

/* "buckets 0-15", "bucket 3"; named ones need no word. */
static void lead_text(const CategoryKey *t, char *text, size_t size)
{
    char word[64];

    text[0] = '\0';
    if (legend_has_name(t))
        return;
    if (t->first == t->last)
        category_word(t->panel->view, word, sizeof(word));
    else
        categories_word(t->panel->view, word, sizeof(word));
    if (t->first == t->last)
        snprintf(text, size, "%s %lld", word, (long long)t->first);
    else
        snprintf(text, size, "%s %lld-%lld", word, (long long)t->first, (long long)t->last);
}

/* Warns where a colour repeats or a cell holds several categories. With 8 or 16 colours the first
 * four categories already share one. */
static void caution_text(const CategoryKey *t, bool brief, char *text, size_t size)
{
    bool few = !t->letters && t->ui->term->colours < TERM_256, warns = t->mixed && !brief;
    int  kinds = few ? 3 : category_kinds(t->letters);
    bool again = !legend_has_name(t) && t->last - t->first >= kinds;

    text[0] = '\0';
    if (again && few)
        snprintf(text, size, "colours repeat%s", warns ? "; " : "");
    else if (again)
        snprintf(text, size, "%d %s repeat%s", kinds, t->letters ? "letters" : "colours",
                 warns ? "; " : "");
    if (warns)
        snprintf(text + strlen(text), size - strlen(text), "%s: under half of the cell",
                 t->letters ? "lower case" : "paler");
}

/* Draws the range, the colours or letters, the warning, and the category under the cursor, which
 * the cursor hides. If there is too little room, the colours are cut first. */
static int legend_categories(Ui *ui, int y, int x)
{
    Panel panel;
    Pane *pane = categories_pane(ui, &panel);
    CategoryKey  t = { .ui = ui, .panel = &panel, .cursor = -1 };
    int   end = ui->term->cols - 1, cursor, cautious;
    char  lead[96], caution[64];

    if (!pane || !find_categories(&t, pane))
        return x;
    lead_text(&t, lead, sizeof(lead));
    cursor = t.cursor < 0 ? 0 : (int)strlen(CURSOR_WORD) + category_width(&t, t.cursor);
    caution_text(&t, end - x < 120, caution, sizeof(caution));
    if (x + term_width(lead) > end)
        return x;
    if (*lead)
        x += term_text(ui->term, y, x, end - x, lead, ui_style(ui, ROLE_DIM)) + 2;
    cautious = *caution ? term_width(caution) + 2 : 0;
    if (x + cautious + cursor > end)
        cautious = 0;
    x = draw_categories(&t, y, x, end - 1 - cautious - cursor) + 1;
    if (cautious)
        x += term_text(ui->term, y, x, end - x, caution, ui_style(ui, ROLE_DIM)) + 2;
    if (cursor && x + cursor <= end) {
        x += term_text(ui->term, y, x, end - x, CURSOR_WORD, ui_style(ui, ROLE_DIM));
        x = draw_category(&t, y, x, t.cursor) + 2;
    }
    return x;
}

/* ---- values ----------------------------------------------------------------- */

static bool colours_values(const Panel *panel)
{
    ViewKind kind = panel->view->kind;

    return panel->minus ||
           !(panel_shows_hops(panel) || panel->components || kind == VIEW_PATTERN ||
             kind == VIEW_COMPONENTS || kind == VIEW_BUCKETS || kind == VIEW_MEMBERSHIP ||
             kind == VIEW_SCHEDULE);
}

bool pane_range(const Panel *panel, const Grid *grid, double *lo, double *hi)
{
    if (!colours_values(panel))
        return false;
    *lo = grid->pool_lo[panel->pool];
    *hi = grid->pool_hi[panel->pool];
    panel_spread(panel, lo, hi);
    if (panel->hi > panel->lo) { /* fixed by the kind */
        *lo = panel->lo;
        *hi = panel->hi;
    }
    *lo = panel_bottom(panel, *lo, *hi);
    return true;
}

/* Brightness or shades: the share of a cell that is allowed, or holds strongest keys. */
static int legend_cover(Ui *ui, const View *view, bool shaded, int y, int x)
{
    const char *lead = !shaded ? "brighter:" : ui->term->utf8 ? "\u2591\u2592\u2593\u2588"
                                                              : ".:-=+*#%@";
    bool        wide = x + 38 < ui->term->cols;
    const char *words = !wide ? "more" : view->found ? "more of the strongest keys"
                                                     : "more of the cell is allowed";

    if (x + term_width(lead) + 1 + term_width(words) > ui->term->cols)
        return x; /* half of it says nothing */
    return x + 2 + term_textf(ui->term, y, x, 40, ui_style(ui, ROLE_DIM), "%s %s", lead, words);
}

/* The words of a figure's bar: "log, shared". */
static const char *bar_note(const Pane *pane, const Panel *panel)
{
    static const char *const notes[SCALE_COUNT][SCALE_SHARED + 1] = {
        [SCALE_LINEAR] = { "", "own scale", "shared" },
        [SCALE_LOG] = { "log", "log, own scale", "log, shared" },
        [SCALE_ROW] = { "row", "row, own scale", "row, shared" },
    };

    return notes[panel->scale][pane_scale_stand(pane)];
}

#define RAMP 12 /* columns of the colours of values */

static int legend_values(Ui *ui, const Pane *pane, int y, int x)
{
    Panel          panel;
    double         lo, hi;
    int            length, digits;
    const uint8_t *ramp;
    ColourMap      map;
    char           ends[2][48];
    const char    *note;

    if (!pane_panel(ui, panes_focus(ui), &panel) || !pane->drawing.grid.cells || panel.plot)
        return x;
    if (!pane_range(&panel, &pane->drawing.grid, &lo, &hi)) {
        if (panel.view->kind != VIEW_HOPS && panel.view->kind != VIEW_BUCKETS &&
            panel.view->kind != VIEW_MEMBERSHIP && panel.view->kind != VIEW_SCHEDULE &&
            pane->drawing.grid.rows <
            pane->drawing.grid.region.row1 - pane->drawing.grid.region.row0)
            return legend_cover(ui, panel.view, is_shaded(ui, panes_focus(ui)), y, x);
        return x;
    }
    map = panel.minus ? MAP_DIVERGING : panel.map;
    note = bar_note(pane, &panel);
    ramp = colour_ramp_256(map, &length);
    digits = range_digits(lo, hi);
    snprintf(ends[0], sizeof(ends[0]), "%.*g ", digits, lo);
    snprintf(ends[1], sizeof(ends[1]), " %.*g %s", digits, hi, note);
    if (x + term_width(ends[0]) + RAMP + term_width(ends[1]) > ui->term->cols + 1)
        return x; /* half of it says nothing; the last may be a blank */
    x += term_textf(ui->term, y, x, 12, ui_style(ui, ROLE_DIM), "%s", ends[0]);
    for (int i = 0; i < RAMP; i++) {
        double t = i / (RAMP - 1.0);
        Ink    ink = panel_lets_through(&panel, t)
                         ? ink_of(PICTURE_GREY, PICTURE_GREY_256)
                         : ink_of(colour_of_value(map, t), ramp[lround(t * (length - 1))]);

        if (ui->term->utf8 && ui->term->colours >= TERM_256)
            term_char(ui->term, y, x++, ' ', (Style){ .bg = ink });
        else if (i % 3 == 0)
            term_char(
                ui->term, y, x++,
                ui->term->utf8 ? (uint32_t[]){ 0x2591, 0x2592, 0x2593, 0x2588 }[i / 3]
                               : (uint32_t) ".-*@" [i / 3],
                (Style) { 0 });
    }
    x += term_textf(ui->term, y, x, 30, ui_style(ui, ROLE_DIM), "%s", ends[1]);
    return x + 2;
}

void legend_draw(Ui *ui, int y, int x)
{
    x = legend_dots(ui, y, legend_bits(ui, y, x));
    x = legend_hops(ui, y, x);
    x = legend_schedule(ui, y, x);
    x = legend_loads(ui, y, x);
    x = legend_categories(ui, y, x);
    legend_values(ui, panes_focus(ui), y, x);
}
