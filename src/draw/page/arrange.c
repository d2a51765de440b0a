/* arrange.c -- the rows and columns of a figure's panels; see sheet.h.
 *
 * A grid that is given stays. Else columns become fewer while words have no room, and where strips
 * stand beside matrices the arrangement with the smallest page is taken: strips leave a void below
 * them, and a panel alone in its row leaves one beside it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/page/sheet.h"

/* The widest word of a title in the smallest size of titles; wrap.h also breaks after , and +. */
static double widest_word(const Sheet *sheet, const char *title)
{
    double widest = 0;
    char   word[160];

    while (*title) {
        size_t length = strcspn(title, " ,+");

        length += title[length] == ',' || title[length] == '+';
        snprintf(word, sizeof(word), "%.*s", (int)length, title);
        widest = fmax(widest, canvas_text_width(sheet->canvas, word, FONT_SANS,
                                                TITLE_LEAST * sheet->style.title));
        title += length + strspn(title + length, " ");
    }
    return widest;
}

/* Every word of the panels' titles fits its column: no word is cut that another arrangement shows
 * whole. */
static bool words_fit(const Sheet *sheet)
{
    for (int k = 0; k < sheet->figure->count; k++) {
        double wide = widest_word(sheet, sheet->figure->panels[k].title);

        /* The longest words do not fit beside another panel in any arrangement. */
        if (wide > sheet->layout.panels[k].title.w && wide < 0.4 * sheet->width)
            return false;
    }
    return true;
}

/* The least readable width: six ticks' numbers for a matrix, four for a narrow one, more for a
 * plot unless its grid may change. */
static double least_room(const Sheet *sheet)
{
    bool plots = false;

    for (int k = 0; k < sheet->figure->count; k++)
        plots = plots || sheet->figure->panels[k].plot;
    return (plots && !sheet->figure->loose ? 9 : sheet->layout.narrow ? 4 : 6) *
           sheet->style.tick;
}

#define NAME_SHARE 0.75 /* share of a name: the room grows once the bars' numbers are known */

/* Names of columns fit above their matrices. */
static bool axis_names_fit(const Sheet *sheet)
{
    for (int k = 0; k < sheet->figure->count; k++) {
        const Panel *panel = &sheet->figure->panels[k];
        double       font = sheet->style.axis;

        if (!panel->plot && sheet_names_axis(sheet, k, false) &&
            NAME_SHARE * canvas_text_width(sheet->canvas, sheet_axis_name(panel, false), FONT_SANS,
                                           font) > sheet->layout.room)
            return false;
    }
    return true;
}

bool sheet_is_readable(const Sheet *sheet)
{
    return sheet->layout.room >= least_room(sheet) && words_fit(sheet) &&
           axis_names_fit(sheet);
}

#define MIXED_MOST 64 /* panels of a figure whose strips are looked at */

static bool is_strip(const Panel *panel)
{
    Region region = panel_region(panel);

    return !panel->plot && !panel->bare &&
           layout_is_strip(region.row1 - region.row0, region.col1 - region.col0);
}

/* Puts the panels into sheet->cols columns. */
static void put_panels(Sheet *sheet, int stack)
{
    const Figure *f = sheet->figure;
    bool          strip[MIXED_MOST] = { false };

    for (int k = 0; stack && k < f->count; k++)
        strip[k] = is_strip(&f->panels[k]);
    if (stack) {
        sheet->rows = layout_places(strip, f->count, sheet->cols, stack, sheet->places);
        return;
    }
    for (int k = 0; k < f->count; k++)
        sheet->places[k] = (PanelPlace){ k / sheet->cols, k % sheet->cols, 0 };
    sheet->rows = (f->count + sheet->cols - 1) / sheet->cols;
}

/* Half of the columns keeps rows full, but not if the figure is then higher than a page. */
static int next_columns(Sheet *sheet, int stack, bool given)
{
    int  cols = sheet->cols, half = layout_fewer_columns(cols);
    bool high;

    if (given)
        return half;
    if (sheet->figure->count % cols) /* rows are not full anyway */
        return cols - 1;
    sheet->cols = half;
    put_panels(sheet, stack);
    high = sheet_layout(sheet, NULL) &&
           sheet->layout.height > FIGURE_PAGE_HIGH * sheet->style.dpi;
    sheet->cols = cols;
    return high ? cols - 1 : half;
}

/* Takes fewer columns while they are too narrow for their words, unless the arrangement is
 * fixed. */
static bool fit_columns(Sheet *sheet, int stack, Error *err)
{
    const Figure *f = sheet->figure;
    bool          given = f->rows > 0 || f->cols > 0, bound = given && !f->loose;

    for (;;) {
        Error own = ERROR_INIT;
        bool  ok;

        put_panels(sheet, stack);
        ok = sheet_layout(sheet, &own);
        if (bound || sheet->cols <= 1 || (ok && sheet_is_readable(sheet))) {
            if (!ok && err)
                *err = own;
            return ok;
        }
        sheet->cols = next_columns(sheet, stack, given);
    }
}

/* Strips and matrices in one figure, whose arrangement and width nobody gave. */
static bool mixes_strips(const Sheet *sheet)
{
    const Figure *f = sheet->figure;
    int           strips = 0, squares = 0;

    for (int k = 0; k < f->count && f->count <= MIXED_MOST; k++) {
        strips += is_strip(&f->panels[k]);
        squares += !f->panels[k].plot && !is_strip(&f->panels[k]);
    }
    return strips && squares && f->rows <= 0 && f->cols <= 0;
}

/* A line of words above and below each panel, as long as their words are not known. */
static void guess_words(Sheet *sheet, int lines)
{
    for (int k = 0; k < sheet->figure->count; k++)
        sheet->panels[k].title.count = sheet->panels[k].caption.count = lines;
}

#define STACK_MOST  3 /* strips below one another beside a matrix */
#define COLUMN_MOST 3 /* panels below one another in the width of a column */
#define ONE_COLUMN  (-1)
#define WIDER_ROWS  (-2) /* strips in rows of their own, one more column for the other panels */
#define WORTH       0.92 /* of a page, which another arrangement must save */

/* Columns to begin with. stack: as layout_places, or ONE_COLUMN, which is as narrow as a single
 * panel. */
static void begin_columns(Sheet *sheet, int stack)
{
    int last = sheet->figure->count - 1;

    figure_arrange(sheet->figure, &sheet->rows, &sheet->cols);
    if (stack == ONE_COLUMN) {
        sheet->cols = 1;
        sheet->width = (int)lround(sheet->style.theme->one * sheet->style.dpi);
    }
    if (stack == WIDER_ROWS)
        sheet->cols++;
    if (stack > 1) {
        int most = sheet->cols;

        sheet->cols = last + 1; /* all in one row: the last tells how many cells there are */
        put_panels(sheet, stack);
        sheet->cols = sheet->places[last].col < most ? sheet->places[last].col + 1 : most;
    }
}

static bool arrange_with(Sheet *sheet, int stack, Error *err)
{
    begin_columns(sheet, stack);
    return fit_columns(sheet, stack == ONE_COLUMN ? 0 : stack == WIDER_ROWS ? 1 : stack, err);
}

/* Area of the page in an arrangement of strips; infinite: it is not readable. */
static double area_of(Sheet *sheet, int stack)
{
    int    whole = sheet->width;
    double area = HUGE_VAL;

    if (arrange_with(sheet, stack, NULL) && sheet_is_readable(sheet))
        area = (double)sheet->layout.height * sheet->width;
    sheet->width = whole;
    return area;
}

/* One panel of those that are no strips would stand alone in the last row. */
static bool leaves_one(const Sheet *sheet)
{
    const Figure *f = sheet->figure;
    int           others = 0, rows, cols;

    figure_arrange(f, &rows, &cols);
    for (int k = 0; k < f->count; k++)
        others += !is_strip(&f->panels[k]);
    return others > cols && others % cols == 1;
}

/* Strips beside matrices leave a void below them: of all arrangements the one with the smallest
 * page. */
static int best_stack(Sheet *sheet)
{
    bool   page = sheet->free_width &&
                sheet->width == (int)lround(sheet->style.theme->page * sheet->style.dpi);
    int    best = 0;
    double least, wider;

    guess_words(sheet, 1);
    least = area_of(sheet, 0);
    for (int stack = 1; stack <= STACK_MOST; stack++) {
        double area = area_of(sheet, stack);

        if (area < WORTH * least) {
            best = stack;
            least = area;
        }
    }
    wider = leaves_one(sheet) ? area_of(sheet, WIDER_ROWS) : HUGE_VAL;
    if (wider < WORTH * least) {
        best = WIDER_ROWS;
        least = wider;
    }
    if (page && sheet->figure->count <= COLUMN_MOST && area_of(sheet, ONE_COLUMN) < least)
        best = ONE_COLUMN;
    guess_words(sheet, 0);
    return best;
}

bool sheet_arrange(Sheet *sheet, Error *err)
{
    return arrange_with(sheet, mixes_strips(sheet) ? best_stack(sheet) : 0, err);
}
