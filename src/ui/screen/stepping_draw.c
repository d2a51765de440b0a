/* stepping_draw.c -- the step screen's picture: the stages in a line, the tokens in theirs, the
 * matrix of a stage, and in words what happens.
 */
#include <stdio.h>

#include "ui/screen/stepping.h"

#define STRIP_NAME 10 /* columns before the tokens of a line */

#define CURVE_LINES 14 /* most of the plot under the words */

int64_t stepping_tokens(Area area)
{
    return area.w - 4 - STRIP_NAME - 1;
}

int64_t stepping_token(const Ui *ui, int64_t n, int64_t room)
{
    int64_t most = n > room ? n - room : 0;

    return ui->stepping.token < most ? ui->stepping.token : most;
}

/* "1 hash > 2 sort > [3 attend 1/4] > ...", the present one in the middle. */
static void draw_rail(Ui *ui, const Step *now, Area area)
{
    Term *term = ui->term;
    int   x = area.x + 1, first = now->index, width = 0;

    for (int i = now->index; i >= 0 && width < area.w / 2; i--) {
        Step step;
        char name[80];

        result_step(now->result, i, &step);
        step_name(&step, name, sizeof(name));
        width += term_width(name) + 6;
        first = i;
    }
    if (first > 0)
        x += term_text(term, area.y, x, 2, "\xe2\x80\xa6", ui_style(ui, ROLE_DIM)) + 1;
    for (int i = first; i < now->count; i++) {
        int  room = area.x + area.w - 1 - x;
        Step step;
        char name[80], text[96];

        result_step(now->result, i, &step);
        step_name(&step, name, sizeof(name));
        snprintf(text, sizeof(text), " %d %s ", i + 1, name);
        if (i + 1 < now->count) /* the sign that more follows */
            room -= 2;
        if (i > now->index && term_width(text) > room) { /* whole names only */
            term_text(term, area.y, x, 2, " \xe2\x80\xa6", ui_style(ui, ROLE_DIM));
            break;
        }
        x += term_text(term, area.y, x, room, text,
                       ui_style(ui, i == now->index ? ROLE_SELECT : ROLE_DIM));
        if (i + 1 < now->count)
            x += term_text(term, area.y, x, 1, "\xe2\x94\x80", ui_style(ui, ROLE_DIM));
    }
}

/* A line of tokens as letters, coloured by category. */
static void draw_tokens(Ui *ui, Area line, const char *name, const Strip *strip,
                        const int32_t *values, int64_t first)
{
    Term *term = ui->term;
    int   x = line.x + STRIP_NAME;

    term_text(term, line.y, line.x, 9, name, ui_style(ui, ROLE_DIM));
    if (first)
        term_char(term, line.y, x - 1, 0x2026, ui_style(ui, ROLE_DIM));
    for (int64_t i = first; i < strip->n && x < line.x + line.w - 1; i++, x++) {
        Rgb   rgb = values ? colour_of_category(values[i]) : (Rgb){ 0 };
        Style style = values ? (Style){ .fg = ink_of(rgb, colour_nearest_256(rgb)) }
                             : ui_style(ui, ROLE_DIM);

        term_char(term, line.y, x, (uint32_t)(values ? strip_letter(values[i])
                                                     : strip_border(strip, i)), style);
    }
    if (x - line.x - STRIP_NAME < strip->n - first)
        term_char(term, line.y, line.x + line.w - 1, 0x2026, ui_style(ui, ROLE_DIM));
}

static void draw_positions(Ui *ui, Area line, int64_t first, int64_t n)
{
    for (int64_t i = (first + 9) / 10 * 10; i < n && i - first + 4 < line.w - STRIP_NAME; i += 10)
        term_textf(ui->term, line.y, line.x + STRIP_NAME + (int)(i - first), 6,
                   ui_style(ui, ROLE_DIM), "%lld", (long long)i);
}

/* "tokens 0-64 of 96 (H L) by position, then sorted in round 2 (buckets)" */
static void title_strip(const Step *step, const Strip *strip, int64_t first, int64_t room,
                        bool tight, Text *out)
{
    text_add(out, "tokens ");
    if (strip->n > room)
        text_addf(out, "%lld-%lld of %lld (H L) ", (long long)first,
                  (long long)(first + room - 1), (long long)strip->n);
    if (tight)
        text_add(out, strip->sorted ? "sorted" : "by position");
    else
        text_addf(out, "by %s", strip->sorted ? "position, then sorted" : "position");
    if (step->stage->iteration >= 0 && result_order_rounds(step->result) > 1)
        text_addf(out, " in round %lld", (long long)step_round(step) + 1);
    text_addf(out, strip->n > room ? " (%s)" : " (letter = %s)", step_categories(step)->name);
}

/* The lines of the tokens from `first` on; returns how many. */
static int draw_block(Ui *ui, Area line, const Strip *strip, int64_t first)
{
    int y = line.y;

    draw_positions(ui, line, first, strip->n);
    line.y++;
    draw_tokens(ui, line, "position", strip, strip->original, first);
    line.y++;
    if (strip->sorted) {
        draw_tokens(ui, line, "sorted", strip, strip->sorted, first);
        line.y++;
    }
    if (strip->chunk)
        draw_tokens(ui, line, "chunks", strip, NULL, first);
    return line.y + (strip->chunk != NULL) - y;
}

static void draw_strip(Ui *ui, Area area, const Step *step, int64_t head)
{
    Strip   strip;
    Area    line = { area.y + 1, area.x + 2, 1, area.w - 4 };
    int64_t room = stepping_tokens(area), first, seen;
    int     blocks;
    Text    title = { 0 };

    if (!area.h || !strip_read(step, head, &strip))
        return;
    blocks = (area.h - 2) / (2 + (strip.sorted != NULL) + (strip.chunk != NULL));
    seen = room * (blocks > 0 ? blocks : 1);
    first = stepping_token(ui, strip.n, seen);
    title_strip(step, &strip, first, seen, false, &title);
    if (term_width(text_str(&title)) > area.w - 6) {
        text_clear(&title);
        title_strip(step, &strip, first, seen, true, &title);
    }
    term_frame(ui->term, area, text_str(&title), false, ui_style(ui, ROLE_FRAME),
               ui_style(ui, ROLE_TEXT));
    text_free(&title);
    for (int i = 0; i < blocks && first + i * room < strip.n; i++)
        line.y += draw_block(ui, line, &strip, first + i * room);
    strip_free(&strip);
}

/* The watched numbers, from the first iteration to this one. */
static void draw_curve(Ui *ui, const Step *step, int y, Area area)
{
    Area  room = { y, area.x + 2, area.y + area.h - 1 - y, area.w - 4 };
    Plot *plot = room.h >= 6 && room.w >= 20 ? step_plot(step) : NULL;

    if (!plot)
        return;
    room.h = room.h > CURVE_LINES ? CURVE_LINES : room.h;
    plot_draw(ui, plot, room);
    plot_free(plot);
}

static void draw_words(Ui *ui, const Step *step, Area area)
{
    Text out = { 0 };
    char title[96], name[64];
    int  lines;

    step_name(step, name, sizeof(name));
    snprintf(title, sizeof(title), "what happens: %s", name);
    term_frame(ui->term, area, title, false, ui_style(ui, ROLE_FRAME), ui_style(ui, ROLE_TITLE));
    step_describe(step, &out);
    if (step->shown && !step->fresh)
        text_addf(&out, "\nThe matrix beside is of step %d: this one makes none.",
                  step->shown->step + 1);
    lines = term_paragraph(ui->term,
                           (Area){ area.y + 1, area.x + 2, area.h - 2, area.w - 4 },
                           text_str(&out), ui_style(ui, ROLE_TEXT));
    text_free(&out);
    draw_curve(ui, step, area.y + 2 + lines, area);
}

static void draw_nothing(Ui *ui, Area area)
{
    const Pane *pane = compare_focus(ui);
    char        text[600];

    snprintf(text, sizeof(text), "%s",
             !pane             ? "No pane is open, so there is no algorithm to watch.\n\n"
                                 "1 goes to the list: Enter opens a mechanism, 3 comes back here."
             : pane->problem[0] ? pane->problem
                                : "running\xe2\x80\xa6");
    term_paragraph(ui->term, (Area){ area.y + area.h / 3, area.x + 4, 6, area.w - 8 }, text,
                   ui_style(ui, pane && pane->problem[0] ? ROLE_ERROR : ROLE_TEXT));
}

void step_draw(Ui *ui, Area area)
{
    Stepping *s = &ui->stepping;
    Pane     *source = compare_focus(ui);
    StepRooms rooms;
    Step      step;

    if (!stepping_now(ui, &step)) {
        draw_nothing(ui, area);
        return;
    }
    rooms = stepping_rooms(source, &step, area);
    draw_rail(ui, &step, rooms.rail);
    draw_strip(ui, rooms.strip, &step, stepping_head(source));
    for (int i = 0; i < 2; i++)
        if (s->panes[i].area.h)
            pane_draw(ui, &s->panes[i], i + 1, false);
    draw_words(ui, &step, rooms.words);
}
