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

static Area text_area(const Ui *ui)
{
    return ui_whole(ui);
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
    Area   area = text_area(ui);
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

/* Long lines of prose are broken at the width there is now. */
static void wrap(const char *text, int width, Text *out)
{
    int column = 0;

    while (*text) {
        size_t word = strcspn(text, " \n"), blanks = strspn(text + word, " ");
        int    columns = utf8_count(text, word);

        if (column > 0 && column + columns > width) {
            text_add(out, "\n    ");
            column = 4;
        }
        text_add_bytes(out, text, word + (text[word] == ' ' ? blanks : 0));
        column += columns + (int)blanks;
        text += word + blanks;
        if (*text == '\n') {
            text_add(out, "\n");
            column = 0;
            text++;
        }
    }
}

void pager_open(Ui *ui, const char *title, const char *text, bool from_end)
{
    Pager *p = &ui->pager;

    text_clear(&p->text);
    wrap(text, ui->term->cols - 5 > 200 ? 200 : ui->term->cols - 5, &p->text);
    snprintf(p->title, sizeof(p->title), "%s", title);
    p->top = from_end ? count_lines(text_str(&p->text)) : 0;
    p->left = 0;
    p->sought[0] = '\0';
    if (!ui_has(ui, SCREEN_TEXT))
        ui_push(ui, SCREEN_TEXT);
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
    ui->pager.left = ui->pager.left + by > 0 ? ui->pager.left + by : 0;
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
    .end = pager_end,
};
