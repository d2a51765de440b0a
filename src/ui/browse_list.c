/* browse_list.c -- the mechanisms as lines: by class in a tree, or flat in an order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ui/browse.h"

static bool matches(const Browse *b, const Mechanism *m)
{
    char        classes[64];
    const char *wanted = b->filter.text;

    return !*wanted || strcasestr(m->id, wanted) || strcasestr(m->title, wanted) ||
           (m->authors && strcasestr(m->authors, wanted)) ||
           strcasestr(mechanism_classes(m, classes, sizeof(classes)), wanted);
}

static unsigned first_class(const Mechanism *m)
{
    return m->classes & -m->classes;
}

static void add_line(BrowseList *list, int index, unsigned group, const char *text)
{
    BrowseLine *line;

    if (list->count == LINES_MOST)
        return;
    line = &list->lines[list->count++];
    *line = (BrowseLine){ .index = index, .group = group };
    snprintf(line->text, sizeof(line->text), "%s", text);
}

static void list_by_class(const Browse *b, BrowseList *list)
{
    const Mechanism *m;
    char             text[64];

    for (unsigned bit = 1; bit <= CLASS_LAB; bit <<= 1) {
        bool folded = b->folded & bit && !b->filter.length, any = false;
        int  before = list->count;

        snprintf(text, sizeof(text), "%-3s %s", class_name(bit), class_title(bit));
        add_line(list, -1, bit, text);
        for (int i = 0; (m = mechanism_at((size_t)i)) && i < MARKS_MOST; i++) {
            if (first_class(m) != bit || !matches(b, m))
                continue;
            list->mechanisms++;
            any = true;
            if (!folded)
                add_line(list, i, bit, m->id);
        }
        if (!any)
            list->count = before;
    }
}

static int compare_year(const void *x, const void *y)
{
    const Mechanism *a = mechanism_at((size_t) * (const int *)x);
    const Mechanism *b = mechanism_at((size_t) * (const int *)y);

    return a->year != b->year ? a->year - b->year : *(const int *)x - *(const int *)y;
}

static int compare_cost(const void *x, const void *y)
{
    const Mechanism *a = mechanism_at((size_t) * (const int *)x);
    const Mechanism *b = mechanism_at((size_t) * (const int *)y);

    if (a->claim_exponent != b->claim_exponent)
        return a->claim_exponent < b->claim_exponent ? -1 : 1;
    return *(const int *)x - *(const int *)y;
}

static void list_flat(const Browse *b, BrowseList *list)
{
    int              order[MARKS_MOST], count = 0;
    const Mechanism *m;

    for (int i = 0; (m = mechanism_at((size_t)i)) && i < MARKS_MOST; i++)
        if (matches(b, m))
            order[count++] = i;
    qsort(order, (size_t)count, sizeof(*order),
          b->order == BROWSE_BY_YEAR ? compare_year : compare_cost);
    for (int i = 0; i < count; i++)
        add_line(list, order[i], 0, mechanism_at((size_t)order[i])->id);
    list->mechanisms = count;
}

void browse_list(Browse *b, BrowseList *list)
{
    list->count = list->mechanisms = 0;
    if (b->order == BROWSE_BY_CLASS)
        list_by_class(b, list);
    else
        list_flat(b, list);
    if (b->cursor >= list->count)
        b->cursor = list->count - 1;
    if (b->cursor < 0)
        b->cursor = 0;
}

/* ---- drawing ---------------------------------------------------------------- */

static int group_size(const Browse *b, unsigned bit)
{
    const Mechanism *m;
    int              count = 0;

    for (int i = 0; (m = mechanism_at((size_t)i)); i++)
        count += first_class(m) == bit && matches(b, m);
    return count;
}

static void draw_line(Ui *ui, const BrowseLine *line, int y, int x, int width, bool here)
{
    Browse          *b = &ui->browse;
    Style            style = ui_style(ui, here ? ROLE_SELECT : ROLE_TEXT);
    const Mechanism *m = line->index >= 0 ? mechanism_at((size_t)line->index) : NULL;
    char             claim[40];
    int              claim_width;

    if (here)
        term_fill(ui->term, (Area){ y, x, 1, width }, ' ', style);
    if (!m) {
        bool folded = b->folded & line->group && !b->filter.length;

        term_char(ui->term, y, x + 1, folded ? 0x25B8 : 0x25BE, style);
        style.attr |= here ? 0 : ATTR_BOLD;
        term_textf(ui->term, y, x + 3, width - 4, style, folded ? "%s (%d)" : "%s", line->text,
                   group_size(b, line->group));
        return;
    }
    snprintf(claim, sizeof(claim), b->order == BROWSE_BY_YEAR ? "%s  %d" : "%s",
             m->claim_time ? m->claim_time : "", m->year);
    claim_width = term_width(claim);
    if (claim_width > width - 8 - term_width(m->id))
        claim_width = width - 8 - term_width(m->id);
    if (b->marked[line->index])
        term_char(ui->term, y, x + 3, 0x25CF, here ? style : ui_style(ui, ROLE_MARK));
    term_text(ui->term, y, x + 5, width - claim_width - 8, line->text, style);
    term_text(ui->term, y, x + width - claim_width - 1, claim_width, claim,
              here ? style : ui_style(ui, ROLE_DIM));
}

void browse_list_draw(Ui *ui, Area area, const BrowseList *list)
{
    static const char *const orders[] = { "by class", "by year", "by claimed time" };
    Browse                  *b = &ui->browse;
    char                     title[64];
    int                      room = area.h - 2;

    snprintf(title, sizeof(title), "Mechanisms (%s)", orders[b->order]);
    term_frame(ui->term, area, title, true, ui_style(ui, ROLE_FOCUS), ui_style(ui, ROLE_TITLE));
    if (b->cursor < b->top)
        b->top =
            b->cursor > 0 && list->lines[b->cursor].index >= 0 && b->cursor == 1 ? 0 : b->cursor;
    if (b->cursor >= b->top + room)
        b->top = b->cursor - room + 1;
    if (b->top > 0 && list->count <= room)
        b->top = 0;
    for (int i = 0; i < room && b->top + i < list->count; i++)
        draw_line(ui, &list->lines[b->top + i], area.y + 1 + i, area.x + 1, area.w - 2,
                  b->top + i == b->cursor);
    if (list->count == 0)
        term_text(ui->term, area.y + 2, area.x + 3, area.w - 5, "nothing matches the filter",
                  ui_style(ui, ROLE_DIM));
}
