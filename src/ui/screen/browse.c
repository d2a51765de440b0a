/* browse.c -- the list of mechanisms with the card of the chosen one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ui/shell/actions.h"
#include "ui/shell/browse.h"
#include "ui/shell/console.h"
#include "ui/term/keys.h"

/* The mechanism under the cursor, or the first of its group; -1: none. */
static int chosen(Ui *ui)
{
    Browse    *b = &ui->browse;
    BrowseList list;

    browse_list(b, &list);
    for (int i = b->cursor; i < list.count; i++)
        if (list.lines[i].index >= 0)
            return list.lines[i].index;
    return -1;
}

void browse_draw(Ui *ui, Area area)
{
    Browse    *b = &ui->browse;
    BrowseList list;
    int        width = area.w * 9 / 20, index, marked = 0, y = area.y + area.h;

    browse_list(b, &list);
    width = width > 56 ? 56 : width;
    browse_list_draw(ui, (Area){ area.y, 0, area.h, width }, &list);
    index = chosen(ui);
    if (index >= 0)
        browse_card_draw(ui, (Area){ area.y, width, area.h, area.w - width }, index);
    if (b->filtering) { /* what is typed is to be seen, whatever else is told */
        term_fill(ui->term, (Area){ y, 0, 1, area.w }, ' ', (Style){ 0 });
        term_text(ui->term, y, 1, 8, "filter", ui_style(ui, ROLE_KEY));
        field_draw(&b->filter, ui->term, y, 8, 30, ui_style(ui, ROLE_FIELD));
        return;
    }
    if (status_tells(ui))
        return;
    for (int i = 0; i < MARKS_MOST; i++)
        marked += b->marked[i];
    term_textf(ui->term, y, 1, area.w - 2, ui_style(ui, ROLE_DIM), "%d mechanism%s%s%s",
               list.mechanisms, list.mechanisms == 1 ? "" : "s",
               b->filter.length ? "  filter " : "", b->filter.text);
    if (marked)
        term_textf(ui->term, y, 40, area.w - 42, ui_style(ui, ROLE_MARK),
                   "%d marked: c compares them", marked);
}

/* ---- keys ------------------------------------------------------------------- */

static void move(Ui *ui, int by)
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

void action_list_up(Ui *ui)
{
    move(ui, -1);
}
void action_list_down(Ui *ui)
{
    move(ui, 1);
}
void action_list_page_up(Ui *ui)
{
    move(ui, -(ui->term->rows - 6));
}
void action_list_page_down(Ui *ui)
{
    move(ui, ui->term->rows - 6);
}
void action_list_first(Ui *ui)
{
    move(ui, -LINES_MOST);
}
void action_list_last(Ui *ui)
{
    move(ui, LINES_MOST);
}

static void fold(Ui *ui, bool on)
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

void action_list_fold(Ui *ui)
{
    fold(ui, true);
}
void action_list_unfold(Ui *ui)
{
    fold(ui, false);
}

void action_list_order(Ui *ui)
{
    int index = chosen(ui);

    ui->browse.order = (ui->browse.order + 1) % BROWSE_ORDERS;
    find_line(ui, index);
}

static void open_alone(Ui *ui, int index)
{
    history_note(ui);
    compare_clear(ui);
    compare_pick(ui, mechanism_at((size_t)index));
    ui->screen = SCREEN_COMPARE;
    compare_ask(ui);
}

void action_list_open(Ui *ui)
{
    Browse    *b = &ui->browse;
    BrowseList list;
    int        index = chosen(ui);

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
    int index = chosen(ui);

    if (index < 0)
        return;
    open_alone(ui, index);
    if (!compare_focus(ui) || !compare_focus(ui)->ask)
        ui->screen = SCREEN_STEP;
}

void browse_filter(Ui *ui)
{
    ui->browse.filtering = true;
    field_set(&ui->browse.filter, "");
    find_line(ui, chosen(ui));
}

void browse_show_all(Ui *ui)
{
    int index = chosen(ui);

    ui->browse.filtering = false;
    field_set(&ui->browse.filter, "");
    find_line(ui, index);
}

void action_filter_keep(Ui *ui)
{
    ui->browse.filtering = false;
}

static int count_marked(const Browse *b)
{
    int count = 0;

    for (int i = 0; i < MARKS_MOST; i++)
        count += b->marked[i];
    return count;
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
        b->marked[index] = !b->marked[index];
    move(ui, 1);
}

void action_list_compare(Ui *ui)
{
    Browse *b = &ui->browse;

    if (!count_marked(b)) {
        ui_say(ui, ROLE_WARN, "nothing is marked: Space marks, up to %d", PANES_MOST);
        return;
    }
    history_note(ui);
    compare_clear(ui);
    for (int i = 0; i < MARKS_MOST; i++)
        if (b->marked[i])
            compare_pick(ui, mechanism_at((size_t)i));
    ui->compare.focus = 0;
    ui->compare.align = true;
    ui->screen = SCREEN_COMPARE;
}

bool browse_key(Ui *ui, uint32_t key)
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
    b->cursor = b->filter.length ? 1 : 0; /* the first mechanism below its heading */
    b->top = 0;
    return true;
}

void browse_press(Ui *ui, const Event *event)
{
    Browse *b = &ui->browse;

    if (event->kind == EVENT_WHEEL_UP || event->kind == EVENT_WHEEL_DOWN)
        move(ui, event->kind == EVENT_WHEEL_UP ? -3 : 3);
    if (event->kind != EVENT_PRESS || event->y < 2 || event->y >= ui->term->rows - 3)
        return;
    if (b->top + event->y - 2 == b->cursor) {
        action_list_open(ui);
        return;
    }
    b->cursor = b->top + event->y - 2;
    move(ui, 0);
}

int browse_chosen(Ui *ui)
{
    return chosen(ui);
}
