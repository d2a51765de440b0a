/* pager.c -- a text laid over the screen: cards, results of commands, messages. */
#include <stdio.h>
#include <string.h>

#include "core/utf8.h"
#include "ui/shell/actions.h"
#include "ui/state/explorer.h"

static int count_lines(const char *text)
{
    int lines = 0;

    for (; *text; text++)
        lines += *text == '\n' || !text[1];
    return lines;
}

static const char *line_at(const char *text, int line)
{
    while (line-- > 0 && text) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return text;
}

/* What is sought stands out in the line. */
static void mark_sought(Ui *ui, const char *line, Area at)
{
    const char *sought = ui->pager.sought, *found = line;
    char        before[1024];

    while (*sought && (found = strcasestr(found, sought))) {
        char word[sizeof(ui->pager.sought)];
        int  x;

        snprintf(before, sizeof(before), "%.*s", (int)(found - line), line);
        snprintf(word, sizeof(word), "%.*s", (int)strlen(sought), found);
        x = term_width(before);
        if (x < at.w)
            term_text(ui->term, at.y, at.x + x, at.w - x, word, ui_style(ui, ROLE_SELECT));
        found += strlen(sought);
    }
}

static void pager_draw(Ui *ui, Area screen)
{
    Pager *p = &ui->pager;
    Area   area = ui_whole(ui);
    int    lines = count_lines(text_str(&p->text)), most = lines - (area.h - 2);
    char   title[160];

    (void)screen;
    p->top = p->top > most ? most : p->top;
    p->top = p->top < 0 ? 0 : p->top;
    snprintf(title, sizeof(title), "%s  %d-%d/%d", p->title, lines ? p->top + 1 : 0,
             p->top + area.h - 2 < lines ? p->top + area.h - 2 : lines, lines);
    ui_window(ui, area, title);
    for (int i = 0; i < area.h - 2; i++) {
        const char *line = line_at(text_str(&p->text), p->top + i);
        char        copy[1024];

        if (!line || !*line)
            break;
        snprintf(copy, sizeof(copy), "%.*s", (int)strcspn(line, "\n"), line);
        if ((int)strlen(copy) <= p->left)
            continue;
        term_text(ui->term, area.y + 1 + i, area.x + 2, area.w - 4, copy + p->left,
                  ui_style(ui, ROLE_TEXT));
        mark_sought(ui, copy + p->left, (Area){ area.y + 1 + i, area.x + 2, 1, area.w - 4 });
    }
}

/* Blanks before what goes on from a line: in prose as many as before it, and two more if it is an
 * item of a list; else four. */
static int hang_of(const char *line, bool prose)
{
    int lead = (int)strspn(line, " ");

    return !prose ? 4 : lead ? lead + 2 : 0;
}

/* Long lines are broken at the width there is now. */
static void wrap(const char *text, int width, bool prose, Text *out)
{
    int column = 0, hang = hang_of(text, prose);

    while (*text) {
        size_t word = strcspn(text, " \n"), blanks = strspn(text + word, " ");
        int    columns = utf8_count(text, word);

        if (column > 0 && column + columns > width) {
            text_addf(out, "\n%*s", hang, "");
            column = hang;
        }
        text_add_bytes(out, text, word);
        column += columns + (int)blanks;
        text += word;
        if (column + (int)strcspn(text + blanks, " \n") <= width) /* else the line ends here */
            text_add_bytes(out, text, blanks);
        text += blanks;
        if (*text == '\n') {
            text_add(out, "\n");
            column = 0;
            text++;
            hang = hang_of(text, prose);
        }
    }
}

static int widest(const char *text)
{
    int most = 0;

    for (; *text; text += *text == '\n') {
        size_t length = strcspn(text, "\n");
        int    columns = utf8_count(text, length);

        most = columns > most ? columns : most;
        text += length;
    }
    return most;
}

#define PROSE_MOST 96 /* columns of a line that the eye follows */

static void open_text(Ui *ui, const char *title, const char *text, bool from_end, bool prose)
{
    Pager *p = &ui->pager;
    int    room = ui->term->cols - 5, most = prose ? PROSE_MOST : 200;

    text_clear(&p->text);
    wrap(text, room > most ? most : room, prose, &p->text);
    snprintf(p->title, sizeof(p->title), "%s", title);
    p->top = from_end ? count_lines(text_str(&p->text)) : 0;
    p->left = 0;
    p->sought[0] = '\0';
    if (!ui_has(ui, SCREEN_TEXT))
        ui_push(ui, SCREEN_TEXT);
}

void pager_open(Ui *ui, const char *title, const char *text, bool from_end)
{
    open_text(ui, title, text, from_end, false);
}

void pager_open_prose(Ui *ui, const char *title, const char *text)
{
    open_text(ui, title, text, false, true);
}

/* ---- finding ---------------------------------------------------------------- */

static bool line_has(const char *text, int line, const char *sought)
{
    const char *at = line_at(text, line);
    char        copy[1024];

    snprintf(copy, sizeof(copy), "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
    return strcasestr(copy, sought) != NULL;
}

/* The next line from `line` on in that direction, round the end. */
static void go_to_sought(Ui *ui, int line, int direction)
{
    Pager *p = &ui->pager;
    int    lines = count_lines(text_str(&p->text));

    if (!p->sought[0]) {
        ui_say(ui, ROLE_DIM, "nothing is sought yet: / finds");
        return;
    }
    for (int tries = 0; tries < lines; tries++, line += direction) {
        line = (line + lines) % lines;
        if (!line_has(text_str(&p->text), line, p->sought))
            continue;
        p->top = p->found = line;
        return;
    }
    ui_say(ui, ROLE_WARN, "'%s' is not in this text", p->sought);
}

static void pager_search(Ui *ui, const char *text)
{
    snprintf(ui->pager.sought, sizeof(ui->pager.sought), "%s", text);
    if (*text)
        go_to_sought(ui, ui->pager.top, 1);
}

void text_find(Ui *ui, int direction)
{
    go_to_sought(ui, ui->pager.found + direction, direction);
}

static int lines_with_sought(const Pager *p)
{
    int lines = count_lines(text_str(&p->text)), found = 0;

    for (int i = 0; i < lines; i++)
        found += line_has(text_str(&p->text), i, p->sought);
    return found;
}

static bool pager_line(Ui *ui, int y)
{
    const Pager *p = &ui->pager;
    int          found = *p->sought ? lines_with_sought(p) : 0;

    if (found)
        term_textf(ui->term, y, 1, ui->term->cols - 2, ui_style(ui, ROLE_DIM),
                   found == 1 ? "'%s' stands in one line"
                              : "'%s' stands in %d lines: n next, N before", p->sought, found);
    return found > 0;
}

static void pager_end(Ui *ui)
{
    text_free(&ui->pager.text);
}

/* ---- moving ----------------------------------------------------------------- */

void text_scroll(Ui *ui, int by)
{
    ui->pager.top += by;
}

void text_page(Ui *ui, int by)
{
    text_scroll(ui, by * (ui->term->rows - 6));
}

void text_shift(Ui *ui, int by)
{
    Pager *p = &ui->pager;
    int    most = widest(text_str(&p->text)) - (ui_whole(ui).w - 4);

    p->left = p->left + by < most ? p->left + by : most;
    p->left = p->left > 0 ? p->left : 0;
    if (most <= 0)
        ui_hint(ui, "all of each line is in sight");
}

void action_text_first(Ui *ui)
{
    ui->pager.top = 0;
}

void action_text_last(Ui *ui)
{
    ui->pager.top = count_lines(text_str(&ui->pager.text));
}
const Screen screen_text = {
    .mode = "TEXT",
    .scope = IN_TEXT,
    .draw = pager_draw,
    .find = pager_search,
    .line = pager_line,
    .end = pager_end,
};
