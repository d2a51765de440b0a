/* browse.c -- the list of mechanisms, a tree by class, year or claimed time, and the card of the
 * chosen one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ui/screen/browse.h"
#include "ui/shell/actions.h"
#include "ui/shell/shell.h"
#include "ui/state/panes.h"
#include "ui/state/workspace.h"

#define LINES_MOST 256

/* A line of the list: a group or a mechanism. */
typedef struct BrowseLine {
    int  index; /* of the mechanism; -1: a heading */
    int  group; /* of the order: a bit of Browse.folded */
    char text[64];
} BrowseLine;

typedef struct BrowseList {
    BrowseLine lines[LINES_MOST];
    int        count, mechanisms;
} BrowseList;

/* Searches stages and their notes: "hash" finds mechanisms that hash. */
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

static bool browse_is_folded(const Browse *b, int group)
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

/* Adds the group's heading and, unless folded, its mechanisms; an empty group adds nothing. */
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

static void browse_list(Browse *b, BrowseList *list)
{
    list->count = list->mechanisms = 0;
    for (int group = 0; group < GROUPS; group++)
        add_group(b, group, list);
    if (b->cursor >= list->count)
        b->cursor = list->count - 1;
    if (b->cursor < 0)
        b->cursor = 0;
}

static int browse_line_of(const BrowseList *list, int index)
{
    for (int i = 0; i < list->count; i++)
        if (list->lines[i].index == index)
            return i;
    return 0;
}

/* ---- drawing ---------------------------------------------------------------- */

static void draw_list_line(Ui *ui, const BrowseLine *line, int y, int x, int width, bool here)
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
        term_char(ui->term, y, x + 3, '0' + b->marked[line->index],
                  here ? style : ui_style(ui, ROLE_MARK));
    term_text(ui->term, y, x + 5, width - claim_width - 8, line->text, style);
    term_text(ui->term, y, x + width - claim_width - 1, claim_width, claim,
              here ? style : ui_style(ui, ROLE_DIM));
}

static int count_marked(const Browse *b)
{
    int count = 0;

    for (int i = 0; i < MARKS_MOST; i++)
        count += b->marked[i] > 0;
    return count;
}

static void draw_no_match(Ui *ui, Area area)
{
    const Mechanism *near = mechanism_nearest(ui->browse.filter.text);
    char             text[256];

    snprintf(text, sizeof(text), "No mechanism matches '%.60s'%s%s.  Esc shows all again; Ctrl-P "
             "looks for actions, commands and lessons too.", ui->browse.filter.text,
             near ? "; nearest is " : "", near ? near->id : "");
    term_paragraph(ui->term, area, text, ui_style(ui, ROLE_DIM));
}

static void browse_list_draw(Ui *ui, Area area, const BrowseList *list)
{
    Browse *b = &ui->browse;
    char    title[64];
    int     room = area.h - 2;

    snprintf(title, sizeof(title), "Mechanisms (%s)", orders[b->order].title);
    ui_frame(ui, area, title, true);
    if (b->cursor < b->top)
        b->top =
            b->cursor > 0 && list->lines[b->cursor].index >= 0 && b->cursor == 1 ? 0 : b->cursor;
    if (b->cursor >= b->top + room)
        b->top = b->cursor - room + 1;
    if (b->top > 0 && list->count <= room)
        b->top = 0;
    for (int i = 0; i < room && b->top + i < list->count; i++)
        draw_list_line(ui, &list->lines[b->top + i], area.y + 1 + i, area.x + 1, area.w - 2,
                       b->top + i == b->cursor);
    if (list->count == 0)
        draw_no_match(ui, (Area){ area.y + 2, area.x + 3, area.h - 4, area.w - 5 });
}

/* How well the name fits what is sought: whole, its beginning, or somewhere else. */
static int fit_of(const Mechanism *m, const char *wanted)
{
    size_t      length = strlen(wanted);
    const char *inside = strcasestr(m->id, wanted);

    if (!strcasecmp(m->id, wanted))
        return 4;
    if (!strncasecmp(m->id, wanted, length))
        return 3;
    if (!strncasecmp(m->title, wanted, length))
        return 2;
    return inside && inside[-1] == '-';
}

/* The line whose name fits the filter best; of equal ones the first. */
static int best_line(Browse *b)
{
    BrowseList list;
    int        best = 0, fit = -1;

    browse_list(b, &list);
    for (int i = 0; i < list.count; i++) {
        int index = list.lines[i].index, f;

        if (index < 0)
            continue;
        f = fit_of(mechanism_at((size_t)index), b->filter.text);
        if (f > fit) {
            fit = f;
            best = i;
        }
    }
    return best;
}

/* Of the group, whether it is folded or not; -1: none. */
static int first_of(const Browse *b, int group)
{
    const Mechanism *m;

    for (int i = 0; (m = mechanism_at((size_t)i)) && i < MARKS_MOST; i++)
        if (orders[b->order].group(m) == group && matches(b, m))
            return i;
    return -1;
}

/* The mechanism under the cursor, or the first of its group; -1: none. */
static int chosen_mechanism(Ui *ui)
{
    Browse    *b = &ui->browse;
    BrowseList list;

    browse_list(b, &list);
    if (!list.count)
        return -1;
    return list.lines[b->cursor].index >= 0 ? list.lines[b->cursor].index
                                            : first_of(b, list.lines[b->cursor].group);
}

static void browse_draw(Ui *ui, Area area)
{
    Browse    *b = &ui->browse;
    BrowseList list;
    int        width = area.w * 9 / 20, index, marked = 0, y = area.y + area.h;

    browse_list(b, &list);
    width = width > 56 ? 56 : width;
    browse_list_draw(ui, (Area){ area.y, 0, area.h, width }, &list);
    index = chosen_mechanism(ui);
    if (index >= 0)
        card_draw(ui, (Area){ area.y, width, area.h, area.w - width }, index);
    if (b->filtering) { /* the typed filter hides every message */
        term_fill(ui->term, (Area){ y, 0, 1, area.w }, ' ', (Style){ 0 });
        term_text(ui->term, y, 1, 8, "filter", ui_style(ui, ROLE_KEY));
        field_draw(&b->filter, ui->term, y, 8, 30, ui_style(ui, ROLE_FIELD));
        return;
    }
    if (ui_line_taken(ui))
        return;
    marked = count_marked(b);
    term_textf(ui->term, y, 1, area.w - 2, ui_style(ui, ROLE_DIM), "%d mechanism%s%s%s",
               list.mechanisms, list.mechanisms == 1 ? "" : "s",
               b->filter.length ? "  filter " : "", b->filter.text);
    if (marked)
        term_textf(ui->term, y, 40, area.w - 42, ui_style(ui, ROLE_MARK),
                   "%d marked: c compares them", marked);
}

/* ---- keys ------------------------------------------------------------------- */

void list_move(Ui *ui, int by)
{
    Browse    *b = &ui->browse;
    BrowseList list;

    b->cursor += by;
    browse_list(b, &list);
}

/* The cursor to a mechanism, after the lines changed. */
static void find_line(Ui *ui, int index)
{
    Browse    *b = &ui->browse;
    BrowseList list;

    b->top = 0;
    browse_list(b, &list);
    b->cursor = browse_line_of(&list, index);
}

void browse_find_weights(Ui *ui)
{
    for (size_t i = 0; mechanism_at(i); i++)
        if (mechanism_at(i)->needs_attn) {
            find_line(ui, (int)i);
            return;
        }
}

void list_page(Ui *ui, int by)
{
    list_move(ui, by * (ui->term->rows - 6));
}

void list_fold(Ui *ui, int on)
{
    Browse    *b = &ui->browse;
    BrowseList list;
    uint64_t   group;

    browse_list(b, &list);
    if (!list.count)
        return;
    group = UINT64_C(1) << list.lines[b->cursor].group;
    while (on && b->cursor > 0 && list.lines[b->cursor].index >= 0)
        b->cursor--;
    b->folded[b->order] = on ? b->folded[b->order] | group : b->folded[b->order] & ~group;
}

void action_list_order(Ui *ui)
{
    int index = chosen_mechanism(ui);

    ui->browse.order = (ui->browse.order + 1) % BROWSE_ORDERS;
    find_line(ui, index);
}

static void open_alone(Ui *ui, int index)
{
    history_note(ui);
    panes_clear(ui);
    panes_pick(ui, mechanism_at((size_t)index));
    ui->screen = SCREEN_COMPARE;
    panes_ask(ui);
}

/* As the last one; those after one that is not marked any more move up. */
static void mark(Browse *b, int index)
{
    int place = b->marked[index];

    b->marked[index] = place ? 0 : (uint8_t)(count_marked(b) + 1);
    for (int i = 0; place && i < MARKS_MOST; i++)
        b->marked[i] -= b->marked[i] > place;
}

void browse_open_chosen(Ui *ui)
{
    int index = chosen_mechanism(ui);

    if (count_marked(&ui->browse))
        action_list_compare(ui);
    else if (index >= 0)
        open_alone(ui, index);
}

void action_list_open(Ui *ui)
{
    Browse    *b = &ui->browse;
    BrowseList list;
    int        index = chosen_mechanism(ui);

    browse_list(b, &list);
    if (list.count && list.lines[b->cursor].index < 0 && !b->filter.length) {
        b->folded[b->order] ^= UINT64_C(1) << list.lines[b->cursor].group;
        return;
    }
    if (index < 0)
        return;
    open_alone(ui, index);
}

void action_list_step(Ui *ui)
{
    int index = chosen_mechanism(ui);

    if (index < 0)
        return;
    open_alone(ui, index);
    if (!panes_focus(ui) || !panes_focus(ui)->ask)
        ui->screen = SCREEN_STEP;
}

static void begin_filter(Ui *ui)
{
    ui->browse.filtering = true;
    field_set(&ui->browse.filter, "");
    find_line(ui, chosen_mechanism(ui));
}

static void browse_show_all(Ui *ui)
{
    int index = chosen_mechanism(ui);

    ui->browse.filtering = false;
    field_set(&ui->browse.filter, "");
    find_line(ui, index);
}

void action_filter_keep(Ui *ui)
{
    ui->browse.filtering = false;
}

void action_list_mark(Ui *ui)
{
    Browse    *b = &ui->browse;
    BrowseList list;
    int        index;

    browse_list(b, &list);
    index = list.count ? list.lines[b->cursor].index : -1;
    if (index >= 0 && !b->marked[index] && count_marked(b) == PANES_MOST)
        ui_say(ui, ROLE_WARN, "%d are marked; that is as many as fit side by side", PANES_MOST);
    else if (index >= 0)
        mark(b, index);
    else
        ui_say(ui, ROLE_DIM, "a class is not marked; Space marks a mechanism");
    list_move(ui, 1);
}

void action_list_compare(Ui *ui)
{
    Browse          *b = &ui->browse;
    const Mechanism *m;

    if (!count_marked(b)) {
        ui_say(ui, ROLE_WARN, "nothing is marked: Space marks, up to %d", PANES_MOST);
        return;
    }
    history_note(ui);
    panes_clear(ui);
    for (int place = 1; (m = workspace_marked(b->marked, place)); place++)
        panes_pick(ui, m);
    ui->compare.now.focus = 0;
    ui->compare.align = true;
    ui->screen = SCREEN_COMPARE;
}

static bool browse_key(Ui *ui, uint32_t key)
{
    Browse *b = &ui->browse;

    if (!b->filtering || key == K_ARROW_UP || key == K_ARROW_DOWN || key == K_PAGE_UP ||
        key == K_PAGE_DOWN)
        return false;
    if (key == K_ESCAPE) {
        browse_show_all(ui);
        return true;
    }
    if (!field_key(&b->filter, key))
        return false;
    b->cursor = b->filter.length ? best_line(b) : 0;
    b->top = 0;
    return true;
}

static void browse_press(Ui *ui, const Event *event)
{
    Browse *b = &ui->browse;

    if (event->kind == EVENT_WHEEL_UP || event->kind == EVENT_WHEEL_DOWN)
        list_move(ui, event->kind == EVENT_WHEEL_UP ? -3 : 3);
    if (event->kind != EVENT_PRESS || event->y < 2 || event->y >= ui->term->rows - 3)
        return;
    if (b->top + event->y - 2 == b->cursor) {
        action_list_open(ui);
        return;
    }
    b->cursor = b->top + event->y - 2;
    list_move(ui, 0);
}

void action_info(Ui *ui)
{
    int              index = chosen_mechanism(ui);
    const Mechanism *m = index >= 0 ? mechanism_at((size_t)index) : NULL;
    Pane            *pane = panes_focus(ui);
    Text             text = { 0 };

    if (ui->screen != SCREEN_BROWSE && pane)
        m = mechanism_find(pane->request.mechanism);
    if (!m)
        return;
    card_text(m, &text);
    pager_open_prose(ui, m->id, text_str(&text));
    text_free(&text);
}

static unsigned browse_scope(const Ui *ui)
{
    return ui->browse.filtering ? IN_FILTER : IN_BROWSE;
}

const Screen screen_browse = {
    .tab = "1 Browse",
    .mode = "BROWSE",
    .scope = IN_BROWSE,
    .scope_now = browse_scope,
    .draw = browse_draw,
    .key = browse_key,
    .clear = browse_show_all,
    .press = browse_press,
    .filter = begin_filter,
    .poll = card_poll,
    .wake_fd = card_wake_fd,
    .forget = card_forget,
    .end = card_end,
};
