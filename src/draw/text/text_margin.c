/* text_margin.c -- bars beside a matrix of characters; see text_panel.h. */
#include <math.h>
#include <stdio.h>

#include "draw/text/text_panel.h"

/* Displayed entries of cells [first, last) of one axis. */
static void entries_of(const Grid *grid, bool rows, int64_t first, int64_t last, int64_t *from,
                       int64_t *to)
{
    int64_t start = rows ? grid->region.row0 : grid->region.col0;
    int64_t count = (rows ? grid->region.row1 : grid->region.col1) - start;
    int64_t cells = rows ? grid->rows : grid->cols;

    *from = start + first * count / cells;
    *to = start + last * count / cells;
}

static double most_of(const Panel *panel, const Grid *grid, bool rows)
{
    int64_t cells = rows ? grid->rows : grid->cols, from, to;

    entries_of(grid, rows, 0, cells, &from, &to);
    return margin_most(panel->margin, rows, rows ? panel->row_order : panel->col_order, from, to,
                       (to - from + cells - 1) / cells);
}

/* Eighths of a bar of `length` characters; what is not 0 shows. */
static int eighths(double value, double most, int length)
{
    int parts = isnan(value) ? 0 : (int)lround(fmin(fabs(value) / most, 1) * 8 * length);

    return parts == 0 && fabs(value) > 0 ? 1 : parts;
}

/* Character U+2580 + offset as UTF-8. */
static void add_block(Line *line, int offset)
{
    char text[4] = { (char)0xE2, (char)0x96, (char)(0x80 + offset), '\0' };

    line_add(line, text);
}

void text_margin_row(const Panel *panel, const Grid *grid, const TextPlan *plan, int64_t at,
                     bool utf8, Line *line)
{
    int     per = plan->mode == TEXT_HALVES ? 2 : 1, parts;
    int64_t first = per * at / plan->down, last = (per * (at + 1) - 1) / plan->down + 1, from, to;
    double  value;

    entries_of(grid, true, first, last < grid->rows ? last : grid->rows, &from, &to);
    value = margin_mean(panel->margin->row, panel->row_order, from, to);
    parts = eighths(value, most_of(panel, grid, true), plan->side - 2);
    line_pad(line, plan->gutter + (int)grid->cols * plan->across);
    line_add(line, value < 0 ? "-" : " ");
    for (; parts > 0; parts -= 8)
        if (utf8)
            add_block(line, parts >= 8 ? 8 : 16 - parts);
        else
            line_add(line, parts >= 4 ? "=" : "-");
}

void text_margin_cols(const Panel *panel, const Grid *grid, const TextPlan *plan, bool utf8,
                      Block *out)
{
    static const char ascii[] = " .:-=+*#@";
    double            most = panel->margin->col ? most_of(panel, grid, false) : 0;
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
             most_of(panel, grid, true));
    if (line)
        snprintf(text, sizeof(text), "bars: %s, to %.3g, %.3g", title,
                 most_of(panel, grid, true), most);
    block_wrap(out, text, plan->width, !utf8);
}
