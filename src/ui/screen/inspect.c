/* inspect.c -- the cell under the cursor: one line, a column, or a screen of its own. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/shell/actions.h"
#include "ui/state/panes.h"

#define ROW_LEAST  6  /* lines of the row, with its frame */

/* A named category is shown by its first letter. */
static void draw_number(Ui *ui, int y, int x, const Row *row, const RowCell *cell, bool here,
                        const View *view)
{
    const char *const *names = row->minus ? NULL : view->categories;
    char               text[16] = "\xc2\xb7";

    if (cell && names && cell->value < 0)
        cell = NULL;
    if (cell && (view->kind == VIEW_PATTERN || view->kind == VIEW_COMPONENTS))
        snprintf(text, sizeof(text), "%c", cause_letter(view, (uint8_t)(cell->bits & -cell->bits)));
    else if (cell && names)
        snprintf(text, sizeof(text), "%c", toupper((unsigned char)*names[(int)cell->value]));
    else if (cell && (view->kind == VIEW_HOPS || view->kind == VIEW_BUCKETS ||
                      view->kind == VIEW_ORDER))
        snprintf(text, sizeof(text), "%.0f", (double)cell->value);
    else if (cell)
        snprintf(text, sizeof(text), fabs((double)cell->value) < 1 ? "%.3f" : "%.3g",
                 (double)cell->value);
    term_text(ui->term, y, x + 6 - term_width(text), 6, text[0] == '0' && text[1] ? text + 1 : text,
              ui_style(ui, here   ? ROLE_SELECT
                           : cell ? ROLE_TEXT
                                  : ROLE_DIM));
}

/* The numbers around the cursor, as far as they fit. */
static void draw_around(Ui *ui, Pane *pane, Area area, int64_t q, int64_t k)
{
    const View *view = pane_numbers(pane);
    int64_t     rows = view_rows(view), cols = view_cols(view);
    int         across = (area.w - 9) / 6, down = area.h - 3;
    int64_t     q0 = q - down / 2, k0 = k - across / 2;

    q0 = q0 + down > rows ? rows - down : q0;
    k0 = k0 + across > cols ? cols - across : k0;
    q0 = q0 < 0 ? 0 : q0;
    k0 = k0 < 0 ? 0 : k0;
    for (int x = 0; x < across && k0 + x < cols; x++)
        term_textf(ui->term, area.y + 1, area.x + 8 + 6 * x, 6,
                   ui_style(ui, k0 + x == k ? ROLE_KEY : ROLE_DIM), "%6lld", (long long)(k0 + x));
    for (int y = 0; y < down && q0 + y < rows; y++) {
        term_textf(ui->term, area.y + 2 + y, area.x + 1, 7,
                   ui_style(ui, q0 + y == q ? ROLE_KEY : ROLE_DIM), "%6lld", (long long)(q0 + y));
        if (!pane_row(ui, pane, q0 + y))
            continue;
        for (int x = 0; x < across && k0 + x < cols; x++)
            draw_number(ui, area.y + 2 + y, area.x + 8 + 6 * x, &pane->row,
                        row_find(&pane->row, k0 + x), q0 + y == q && k0 + x == k, view);
    }
}

/* The cursor's row, or the marked queries together. */
static void draw_below(Ui *ui, Pane *pane, Area low, int64_t q, int64_t k)
{
    bool marked = pane_marked_row(ui, pane), known = marked || pane_row(ui, pane, q);
    char title[64], summary[200];

    if (marked)
        snprintf(title, sizeof(title), "marked queries, %s",
                 ui->inspecting.by_key ? "by position" : "by value");
    else
        snprintf(title, sizeof(title), "%s %lld, %s", pane_view(pane)->rows, (long long)q,
                 ui->inspecting.by_key ? "by position" : "by value");
    ui_frame(ui, low, title, false);
    if (known)
        row_draw(ui, pane, marked ? &pane->marked : &pane->row,
                 (Area){ low.y + 1, low.x + 2, low.h - 2, low.w - 4 }, k);
    if (marked)
        marked_summary(ui, pane, summary, sizeof(summary));
    else
        row_summary(pane, q, summary, sizeof(summary));
    term_text(ui->term, low.y + low.h, 1, low.w - 2, summary,
              ui_style(ui, marked ? ROLE_KEY : row_role(&pane->row)));
}

/* The text about the cell is shown completely if the row keeps some lines. The numbers around the
 * cell take the remaining width; a small screen drops them. */
static void lay_out(Area all, const char *facts, Area *left, Area *right, Area *low)
{
    int wide = all.w / 2 > 48 ? all.w / 2 : all.w < INSPECT_WIDE ? all.w : 48;
    int least = all.h < 16 ? ROW_LEAST - 2 : ROW_LEAST;
    int lines = term_paragraph(NULL, (Area){ 0, 0, 100, wide - 4 }, facts, (Style){ 0 });
    int height = lines + 2 > all.h / 2 ? lines + 2 : all.h / 2;

    height = height > all.h - least ? all.h - least : height;
    *left = (Area){ all.y, 0, height, all.w - wide };
    *right = (Area){ all.y, left->w, height, wide };
    *low = (Area){ all.y + height, 0, all.h - height - 1, all.w };
}

static void inspect_draw(Ui *ui, Area screen)
{
    Pane   *pane = panes_focus(ui);
    Term   *term = ui->term;
    Area    all = ui_whole(ui), left, right, low;
    Text    text = { 0 };
    char    title[300];
    int64_t q, k;

    (void)screen;
    if (!pane || !pane_view(pane))
        return;
    pane_cursor(pane, &q, &k);
    term_fill(term, all, ' ', (Style){ 0 });
    inspect_facts(ui, pane, q, k, &text);
    lay_out(all, text_str(&text), &left, &right, &low);
    if (left.w) {
        inspect_title(ui, pane, left.w - 6, title, sizeof(title));
        ui_frame(ui, left, title, false);
        draw_around(ui, pane, left, q, k);
    }
    cursor_title(ui, pane, right.w - 6, title, sizeof(title));
    if (!left.w) /* no numbers are shown whose title names the device */
        inspect_place(ui, pane, title, sizeof(title));
    ui_frame(ui, right, title, true);
    term_paragraph(term, (Area){ right.y + 1, right.x + 2, right.h - 2, right.w - 4 },
                   text_str(&text), ui_style(ui, ROLE_TEXT));
    text_free(&text);
    draw_below(ui, pane, low, q, k);
}

const Screen screen_inspect = {
    .mode = "INSPECT",
    .scope = IN_INSPECT,
    .draw = inspect_draw,
    .hint = pane_hint,
    .close = inspect_close,
    .end = inspect_close,
};

void action_inspect(Ui *ui)
{
    Pane *pane = panes_focus(ui);

    if (pane && pane_view(pane))
        ui_push(ui, SCREEN_INSPECT);
    else
        ui_hint(ui, pane && pane->job ? "it still runs" : "no matrix is shown");
}

void action_inspect_sort(Ui *ui)
{
    ui->inspecting.by_key = !ui->inspecting.by_key;
}
