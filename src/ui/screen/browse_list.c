/* browse_list.c -- the mechanisms as lines: a tree by class, year or claimed time. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ui/shell/browse.h"

/* A stage or what is said of it: "hash" finds what hashes. */
static bool notes_match(const Mechanism *m, const char *wanted)
{
    for (const StageNote *note = m->notes; note && note->stage; note++)
        if (strcasestr(note->stage, wanted) || (note->note && strcasestr(note->note, wanted)))
            return true;
    return false;
}

static bool matches(const Browse *b, const Mechanism *m)
{
    char        classes[64];
    const char *wanted = b->filter.text;

    return !*wanted || strcasestr(m->id, wanted) || strcasestr(m->title, wanted) ||
           (m->authors && strcasestr(m->authors, wanted)) ||
           (m->teaches && strcasestr(m->teaches, wanted)) || notes_match(m, wanted) ||
           strcasestr(mechanism_classes(m, classes, sizeof(classes)), wanted);
}

/* ---- groups ----------------------------------------------------------------- */

#define GROUPS     64 /* bits of Browse.folded */
#define FIRST_YEAR 2000

enum { COST_LINEAR, COST_LOG, COST_SQRT, COST_SQUARE, COST_OTHER };

static int group_by_class(const Mechanism *m)
{
    return __builtin_ctz(m->classes);
}

static void class_heading(int group, char *text, size_t size)
{
    snprintf(text, size, "%-3s %s", class_name(1u << group), class_title(1u << group));
}

static int group_by_year(const Mechanism *m)
{
    int group = m->year - FIRST_YEAR;

    return group < 0 ? 0 : group >= GROUPS ? GROUPS - 1 : group;
}

static void year_heading(int group, char *text, size_t size)
{
    if (group)
        snprintf(text, size, "%d", FIRST_YEAR + group);
    else
        snprintf(text, size, "no year");
}

static int group_by_cost(const Mechanism *m)
{
    return m->claim_exponent <= 0             ? COST_OTHER
           : m->claim_exponent > 1.5          ? COST_SQUARE
           : m->claim_exponent > 1            ? COST_SQRT
           : strstr(m->claim_time, "n log n") ? COST_LOG
                                              : COST_LINEAR;
}

static void cost_heading(int group, char *text, size_t size)
{
    static const char *const titles[] = { "n: linear", "n log n", "n sqrt(n)", "n^2: quadratic",
                                          "that of what it is put around, and others" };

    snprintf(text, size, "%s", titles[group]);
}

/* The orders of the list: the group of a mechanism, below GROUPS, and its heading. */
static const struct Order {
    const char *title;
    int (*group)(const Mechanism *m);
    void (*heading)(int group, char *text, size_t size);
} orders[] = {
    [BROWSE_BY_CLASS] = { "by class", group_by_class, class_heading },
    [BROWSE_BY_YEAR] = { "by year", group_by_year, year_heading },
    [BROWSE_BY_COST] = { "by claimed time", group_by_cost, cost_heading },
};

_Static_assert(sizeof(((Browse *)0)->folded) / sizeof(uint64_t) == BROWSE_ORDERS,
               "what is folded in each order");

bool browse_is_folded(const Browse *b, int group)
{
    return b->folded[b->order] >> group & 1 && !b->filter.length;
}

static void add_line(BrowseList *list, int index, int group, const char *text)
{
    BrowseLine *line;

    if (list->count == LINES_MOST)
        return;
    line = &list->lines[list->count++];
    *line = (BrowseLine){ .index = index, .group = group };
    snprintf(line->text, sizeof(line->text), "%s", text);
}

/* Its heading and, unless it is folded, its mechanisms; nothing where it has none. */
static void add_group(const Browse *b, int group, BrowseList *list)
{
    const struct Order *order = &orders[b->order];
    const Mechanism    *m;
    int                 heading = list->count, size = 0;
    char                text[64];

    add_line(list, -1, group, "");
    for (int i = 0; (m = mechanism_at((size_t)i)) && i < MARKS_MOST; i++) {
        if (order->group(m) != group || !matches(b, m))
            continue;
        size++;
        if (!browse_is_folded(b, group))
            add_line(list, i, group, m->id);
    }
    list->mechanisms += size;
    if (!size) {
        list->count = heading;
    } else if (heading < LINES_MOST) {
        order->heading(group, text, sizeof(text));
        snprintf(list->lines[heading].text, sizeof(list->lines[heading].text),
                 browse_is_folded(b, group) ? "%.48s (%d)" : "%.48s", text, size);
    }
}

void browse_list(Browse *b, BrowseList *list)
{
    list->count = list->mechanisms = 0;
    for (int group = 0; group < GROUPS; group++)
        add_group(b, group, list);
    if (b->cursor >= list->count)
        b->cursor = list->count - 1;
    if (b->cursor < 0)
        b->cursor = 0;
}

int browse_line_of(const BrowseList *list, int index)
{
    for (int i = 0; i < list->count; i++)
        if (list->lines[i].index == index)
            return i;
    return 0;
}

/* ---- drawing ---------------------------------------------------------------- */

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
        term_char(ui->term, y, x + 1, browse_is_folded(b, line->group) ? 0x25B8 : 0x25BE, style);
        style.attr |= here ? 0 : ATTR_BOLD;
        term_text(ui->term, y, x + 3, width - 4, line->text, style);
        return;
    }
    snprintf(claim, sizeof(claim), "%s", m->claim_time ? m->claim_time : "");
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
    Browse *b = &ui->browse;
    char    title[64];
    int     room = area.h - 2;

    snprintf(title, sizeof(title), "Mechanisms (%s)", orders[b->order].title);
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
        term_paragraph(ui->term, (Area){ area.y + 2, area.x + 3, area.h - 4, area.w - 5 },
                       "No mechanism matches the filter.  Esc shows all again; Ctrl-P looks for "
                       "actions and commands too.",
                       ui_style(ui, ROLE_DIM));
}
