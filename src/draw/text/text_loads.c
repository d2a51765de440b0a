/* text_loads.c -- the bars of a panel's columns and rows as numbers; see text_panel.h. */
#include "draw/text/text_panel.h"

#include <stdio.h>
#include <string.h>

#define LISTED 24 /* numbers of a line that are not below their columns */

/* Below each column its number; false: they do not fit there. */
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

void text_loads(const Panel *panel, const Grid *grid, const TextPlan *plan, Block *out)
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
