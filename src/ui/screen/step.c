/* step.c -- the step screen: the focused pane's algorithm, stage by stage.
 *
 * Two panes of its own look at the matrix a stage made, by position and in the
 * mechanism's order; they borrow the compared pane's result and never run anything.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "ui/shell/actions.h"
#include "ui/shell/shell.h"
#include "ui/state/panes.h"

#define WIDE   120 /* columns from which both orders stand side by side */
#define BESIDE 60  /* columns from which there is room for words beside the matrix */

#define STRIP_NAME 10 /* columns before the tokens of a line */

typedef struct StepRooms {
    Area rail, strip, first, second, words; /* h 0: not there */
} StepRooms;

/* ---- what is looked at ------------------------------------------------------ */

static int64_t stepping_head(const Pane *pane)
{
    int64_t heads = pane->result->run->h;

    return pane->spec.head < heads ? pane->spec.head : heads - 1;
}

/* The first stage, after that of the draws where it shows nothing. */
static int first_shown(Pane *pane, int count)
{
    Step step;

    return count > 1 && result_step(pane->result, 0, &step) && !step.shown &&
           !strcmp(step.stage->name, "draw");
}

bool stepping_now(Ui *ui, Step *step)
{
    Pane *pane = panes_focus(ui);
    int   count = pane && pane->result ? result_steps(pane->result) : 0;

    if (!count)
        return false;
    if (ui->stepping.of != pane->result->run->mechanism) {
        ui->stepping.of = pane->result->run->mechanism;
        ui->stepping.at = first_shown(pane, count);
        ui->stepping.token = 0;
        ui->stepping.row = -1;
        ui->stepping.playing = false;
    }
    if (ui->stepping.at >= count)
        ui->stepping.at = count - 1;
    if (!result_step(pane->result, ui->stepping.at, step))
        return false;
    step->head = stepping_head(pane);
    if (!step->stage->about && ui->stepping.row >= 0 && ui->stepping.row < step->row)
        step->row = ui->stepping.row;
    return true;
}

static bool has_tokens(const View *view)
{
    return view && (!strcmp(view->rows, "query") || !strcmp(view->cols, "key"));
}

static const int32_t *stepping_order(const Step *step, int64_t head)
{
    return has_tokens(step->shown) ? step_order(step, head) : NULL;
}

/* The matrix has the tokens as rows, and is of the run whose tokens are sorted. */
static bool has_buckets(const Step *step)
{
    return stepping_order(step, step->head) && !strcmp(step->shown->rows, "query") &&
           view_rows(step->shown) == step->run->n;
}

static void drop_run(Ui *ui, Pane *pane)
{
    drawing_clear(&ui->draughtsman, &pane->drawing);
    result_release(pane->result);
    free(pane->borders);
    *pane = pane_new();
}

/* Points one of the screen's two panes at the step's matrix. */
static void look_at(Ui *ui, Pane *pane, const Pane *source, const Step *step, bool sorted)
{
    int64_t head = stepping_head(source);
    double  value;

    if (pane->result != source->result || pane->pinned != step->shown || pane->spec.head != head ||
        pane->spec.sorted != sorted) {
        const View *before = pane->result == source->result ? pane->pinned : NULL;
        Lens        lens = pane->lens;

        if (pane->result != source->result) {
            drop_run(ui, pane);
            pane->result = result_retain(source->result);
        }
        pane->lens = before && views_share_rows(before, step->shown) &&
                             views_share_cols(before, step->shown)
                         ? lens
                         : (Lens){ .q = 0 };
    }
    pane->pinned = step->shown;
    pane->default_view = step->shown;
    pane->spec.head = head;
    pane->spec.sorted = sorted;
    pane->spec.pool = source->spec.pool;
    pane->spec.scale = source->spec.scale;
    pane->spec.map = source->spec.map;
    pane->order = sorted ? stepping_order(step, head) : NULL;
    pane->order_head = head;
    pane->order_view = step->shown;
    pane->order_round = step_round(step);
    pane->buckets = has_buckets(step) ? step_line(step, head) : NULL;
    if (!sorted && (step->stage->about || step_watched(step, 0, &value)))
        pane->lens.q = step->row;
}

/* ---- the line of tokens ------------------------------------------------------- */

/* Tokens that a line has room for, and the first one in sight; the last page is full. */
static int64_t stepping_tokens(Area area)
{
    return area.w - 4 - STRIP_NAME - 1;
}

static int64_t stepping_token(const Ui *ui, int64_t n, int64_t room)
{
    int64_t most = n > room ? n - room : 0;

    return ui->stepping.token < most ? ui->stepping.token : most;
}

/* ---- rooms ------------------------------------------------------------------ */

static int strip_lines(const Strip *strip)
{
    return strip->original ? 4 + (strip->sorted != NULL) + (strip->chunk != NULL) : 0;
}

/* Beside a lesson's own words: the tokens in as many lines as they need, or the matrix. */
static StepRooms rooms_narrow(Area area, const Strip *strip, const Step *step)
{
    StepRooms r = { .rail = { area.y, area.x, 1, area.w } };
    Area      rest = { area.y + 1, area.x, area.h - 1, area.w };
    int       lines = strip_lines(strip), block = lines - 2;
    int64_t   room = stepping_tokens(area), blocks = lines ? (strip->n + room - 1) / room : 0;

    if (!has_tokens(step->shown) || !lines) /* what it shows is the tokens' own line */
        lines = (int)(2 + block * blocks < rest.h ? 2 + block * blocks : rest.h);
    lines = strip_lines(strip) ? lines : 0;
    r.strip = (Area){ rest.y, rest.x, lines, rest.w };
    rest.y += lines;
    rest.h -= lines;
    if (rest.h >= 10 && step->shown)
        r.first = rest;
    else if (!lines)
        r.words = rest;
    return r;
}

static StepRooms rooms_of(Area area, int strip, bool matrix, bool second)
{
    StepRooms r = { .rail = { area.y, area.x, 1, area.w } };
    Area      rest = { area.y + 1, area.x, area.h - 1, area.w };
    int       words;

    if (strip && rest.h - strip >= 10) {
        r.strip = (Area){ rest.y, rest.x, strip, rest.w };
        rest.y += strip;
        rest.h -= strip;
    }
    words = !matrix ? rest.w : area.w >= WIDE ? 46 : rest.w / 2 - 2;
    r.words = (Area){ rest.y, rest.x + rest.w - words, rest.h, words };
    rest.w -= words;
    if (!matrix)
        return r;
    r.first = rest;
    if (!second || area.w < WIDE)
        return r;
    r.first.w = rest.w / 2;
    r.second = (Area){ rest.y, rest.x + r.first.w, rest.h, rest.w - r.first.w };
    return r;
}

static StepRooms stepping_rooms(const Pane *pane, const Step *step, Area area)
{
    Strip     strip = { 0 };
    StepRooms rooms;

    if (area.w < 20)
        return (StepRooms){ .words = area };
    strip_read(step, stepping_head(pane), &strip);
    rooms = area.w < BESIDE ? rooms_narrow(area, &strip, step)
                            : rooms_of(area, strip_lines(&strip), step->shown != NULL,
                                       step->shown && stepping_order(step, stepping_head(pane)));
    strip_free(&strip);
    return rooms;
}

static void step_prepare(Ui *ui, Area area)
{
    Stepping *s = &ui->stepping;
    Pane     *source = panes_focus(ui);
    Step      step;
    StepRooms rooms;
    bool      sorted;

    s->panes[0].area.h = s->panes[1].area.h = 0;
    if (!stepping_now(ui, &step) || !step.shown)
        return;
    rooms = stepping_rooms(source, &step, area);
    sorted = stepping_order(&step, stepping_head(source)) && !(s->by_position && !rooms.second.h);
    look_at(ui, &s->panes[0], source, &step, sorted);
    look_at(ui, &s->panes[1], source, &step, false);
    pane_lay_out(ui, &s->panes[0], rooms.first);
    pane_lay_out(ui, &s->panes[1], rooms.second);
    for (int i = 0; i < 2; i++)
        if (s->panes[i].area.h)
            pane_want_drawing(ui, &s->panes[i]);
}

/* The keys of the step screen, and its clock. */

static const double paces[] = { 4, 2, 1, 0.5, 0.25 }; /* seconds a stage stays */
#define PACES ((int)(sizeof(paces) / sizeof(*paces)))

static double pace_of(const Stepping *s)
{
    return s->pace > 0 ? s->pace : paces[s->speed];
}

static double step_deadline(Ui *ui)
{
    double left = ui->stepping.due - ui_now();

    return !ui->stepping.playing || ui->screen != SCREEN_STEP ? -1 : left > 0 ? left : 0.001;
}

static void play_on(Ui *ui)
{
    Stepping *s = &ui->stepping;
    Step      step;

    if (step_deadline(ui) < 0 || ui_now() < s->due || !stepping_now(ui, &step))
        return;
    if (s->at + 1 < step.count && s->at != s->until)
        s->at++;
    s->playing = s->at + 1 < step.count && s->at != s->until;
    s->due = ui_now() + pace_of(s);
    ui->dirty = true;
}

void stepping_play_part(Ui *ui, const Mechanism *mechanism, int from, int until)
{
    Stepping *s = &ui->stepping;

    if (s->of != mechanism || s->at < from || s->at > until)
        s->at = from;
    s->of = mechanism;
    s->token = 0;
    s->until = until;
    s->playing = s->at != until;
    s->due = ui_now() + pace_of(s);
}

void stepping_start(Ui *ui, const Step *step)
{
    Stepping *s = &ui->stepping;

    s->playing = true;
    s->until = -1;
    if (s->at + 1 == step->count)
        s->at = 0;
    s->due = ui_now() + pace_of(s);
}

void step_go(Ui *ui, int at)
{
    Step step;

    if (!stepping_now(ui, &step))
        return;
    ui->stepping.playing = false;
    if (at >= 0 && at < step.count)
        ui->stepping.at = at;
    else
        ui_say(ui, ROLE_DIM, at < 0 ? "this is the first stage" : "this is the last stage");
}

void step_turn(Ui *ui, int by)
{
    step_go(ui, ui->stepping.at + by);
}

void action_step_last(Ui *ui)
{
    Step step;

    if (stepping_now(ui, &step))
        step_go(ui, step.count - 1);
}

/* Scrolls the line of tokens by half of its width. */
void step_move_tokens(Ui *ui, int way)
{
    Step    step;
    int64_t room = stepping_tokens(ui_area(ui)), n;

    if (!stepping_now(ui, &step))
        return;
    n = step.result->run->n;
    if (!step_categories(&step) || n <= room) {
        ui_say(ui, ROLE_DIM, "there is no line of tokens longer than the screen");
        return;
    }
    ui->stepping.token = stepping_token(ui, n, room) + way * (room / 2);
    if (ui->stepping.token < 0)
        ui->stepping.token = 0;
    ui->stepping.token = stepping_token(ui, n, room);
}

/* Follows the running numbers of another query. */
void step_move_row(Ui *ui, int by)
{
    Step    step;
    double  value;
    int64_t n;

    if (!stepping_now(ui, &step))
        return;
    if (!step_watched(&step, 0, &value)) {
        ui_say(ui, ROLE_DIM, "no row is followed at this stage");
        return;
    }
    n = step.run->n;
    if (by > 0 ? step.row == n - 1 : step.row == 0)
        ui_hint(ui, "query %lld is the %s", (long long)step.row, by > 0 ? "last" : "first");
    step.row += by;
    ui->stepping.row = step.row < 0 ? 0 : step.row >= n ? n - 1 : step.row;
}

/* ---- finding a stage ------------------------------------------------------------ */

/* The words stand in the stage's name, or, where the notes are looked through, in its note. */
static bool stage_has(const Step *step, const char *words, bool notes)
{
    char name[80];

    step_name(step, name, sizeof(name));
    return strcasestr(name, words) || (notes && step->note && strcasestr(step->note, words));
}

/* The next stage that way, round the ends, by name before note; -1: none. */
static int stage_sought(const Step *now, const char *words, int way)
{
    Step step;

    for (int notes = 0; notes < 2; notes++)
        for (int i = 1; i <= now->count; i++) {
            int at = (int)ui_round(now->index, way * i, now->count);

            if (result_step(now->result, at, &step) && stage_has(&step, words, notes))
                return at;
        }
    return -1;
}

void step_seek(Ui *ui, int way)
{
    const char *words = ui->stepping.sought;
    Step        step;
    int         at;

    if (!stepping_now(ui, &step))
        return;
    at = *words ? stage_sought(&step, words, way) : -1;
    if (at >= 0)
        step_go(ui, at);
    else if (*words)
        ui_say(ui, ROLE_WARN, "no stage has '%s' in its name or its words", words);
    else
        ui_say(ui, ROLE_DIM, "nothing is sought yet: / finds a stage by a word or its number");
}

/* "hash" a stage, "3" the third, "q:12" the query that is followed. */
static void step_search(Ui *ui, const char *text)
{
    bool    query = !strncmp(text, "q:", 2);
    int64_t number;
    Step    step;

    if (!stepping_now(ui, &step))
        return;
    if (!text_whole(query ? text + 2 : text, &number)) {
        if (*text)
            snprintf(ui->stepping.sought, sizeof(ui->stepping.sought), "%s", text);
        step_seek(ui, 1);
    } else if (number < !query || number >= (query ? step.run->n : step.count + 1)) {
        ui_say(ui, ROLE_WARN, "%s %lld is outside %d..%lld", query ? "query" : "stage",
               (long long)number, !query, (long long)(query ? step.run->n - 1 : step.count));
    } else if (query) {
        step_move_row(ui, (int)(number - step.row));
    } else {
        step_go(ui, (int)number - 1);
    }
}

/* ---- playing -------------------------------------------------------------------- */

void action_step_play(Ui *ui)
{
    Stepping *s = &ui->stepping;
    Step      step;

    if (!stepping_now(ui, &step))
        return;
    if (s->playing)
        s->playing = false;
    else
        stepping_start(ui, &step);
    ui_say(ui, ROLE_DIM, s->playing ? "playing, %g s a stage; Space pauses" : "paused",
           pace_of(s));
}

void step_speed(Ui *ui, int by)
{
    Stepping *s = &ui->stepping;

    s->speed += by;
    s->speed = s->speed < 0 ? 0 : s->speed >= PACES ? PACES - 1 : s->speed;
    s->pace = 0;
    ui_say(ui, ROLE_DIM, "%g s a stage", paces[s->speed]);
}

void action_step_order(Ui *ui)
{
    Pane *pane = panes_focus(ui);
    Step  step;

    if (!stepping_now(ui, &step))
        return;
    if (!stepping_order(&step, stepping_head(pane))) {
        ui_say(ui, ROLE_DIM, "no order is known at this stage, or its matrix is not of tokens");
        return;
    }
    ui->stepping.by_position = !ui->stepping.by_position;
    if (ui->stepping.panes[1].area.h)
        ui_say(ui, ROLE_DIM, "both orders are shown, side by side");
    else
        ui_say(ui, ROLE_DIM, ui->stepping.by_position ? "tokens by position"
                                                      : "tokens in the mechanism's order");
}

void action_step_export(Ui *ui)
{
    Pane *pane = panes_focus(ui);
    Text  line = { 0 };

    if (!pane)
        return;
    request_command(ui->session, &pane->request, "step", &line);
    text_addf(&line, " -o %s-steps.png", pane->request.mechanism);
    ui_prompt(ui, text_str(&line) + strlen("attnscope "));
    text_free(&line);
}

/* The step screen's picture: the stages in a line, the tokens in theirs, the
 * matrix of a stage, and in words what happens.
 */

#define CURVE_LINES 14 /* most of the plot under the words */

/* Columns of a stage's name with its number and the sign before it. */
static int rail_width(const Step *now, int index)
{
    Step step;
    char name[80], text[96];

    result_step(now->result, index, &step);
    step_name(&step, name, sizeof(name));
    snprintf(text, sizeof(text), " %d %s ", index + 1, name);
    return term_width(text) + 1;
}

/* "1 hash > 2 sort > [3 attend 1/4] > ... 8", the present one in the middle. */
static void draw_rail(Ui *ui, const Step *now, Area area)
{
    Term *term = ui->term;
    int   x = area.x + 1, first = now->index, width = 0;
    char  last[16] = "";

    for (int i = now->index; i >= 0; i--) { /* whole names only */
        int wider = width + rail_width(now, i);

        if (i < now->index && wider > area.w * 2 / 3)
            break;
        width = wider;
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
        if (i + 1 < now->count) /* the sign that more follows, and how many there are */
            room -= 2 + snprintf(last, sizeof(last), " %d", now->count);
        if (i > now->index && term_width(text) > room) {
            term_textf(term, area.y, x, 8, ui_style(ui, ROLE_DIM), " \xe2\x80\xa6%s", last);
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
        Style style = values && term->colours >= TERM_256 ? style_on(rgb, colour_nearest_256(rgb))
                      : values ? (Style){ .fg = ink_of(rgb, colour_nearest_256(rgb)) }
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

/* Two categories of one colour: their letters differ. */
static bool repeats_colours(const Strip *strip)
{
    for (int64_t i = 0; i < strip->n; i++)
        if (strip->original[i] >= category_kinds(false))
            return true;
    return false;
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
    text_addf(out, strip->n > room ? " (%s" : " (letter = %s", step_categories(step)->name);
    if (repeats_colours(strip))
        text_addf(out, "; %d colours repeat", category_kinds(false));
    text_add(out, ")");
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

static void draw_explanation(Ui *ui, const Step *step, Area area)
{
    Text out = { 0 };
    char title[96], name[64];
    int  lines;

    step_name(step, name, sizeof(name));
    snprintf(title, sizeof(title), "what happens: %s", name);
    ui_frame(ui, area, title, false);
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
    const Pane *pane = panes_focus(ui);
    char        text[600];

    snprintf(text, sizeof(text), "%s",
             !pane             ? "No pane is open, so there is no algorithm to watch.\n\n"
                                 "1 goes to the list: Enter opens a mechanism, 3 comes back here."
             : pane->problem[0] ? pane->problem
                                : "running\xe2\x80\xa6");
    term_paragraph(ui->term, (Area){ area.y + area.h / 3, area.x + 4, 6, area.w - 8 }, text,
                   ui_style(ui, pane && pane->problem[0] ? ROLE_ERROR : ROLE_TEXT));
}

static void step_draw(Ui *ui, Area area)
{
    Stepping *s = &ui->stepping;
    Pane     *source = panes_focus(ui);
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
    draw_explanation(ui, &step, rooms.words);
}

/* ---- work ------------------------------------------------------------------- */

static bool step_pending(const Ui *ui)
{
    const Stepping *s = &ui->stepping;

    if (ui->screen != SCREEN_STEP)
        return false;
    return (s->panes[0].area.h && drawing_pending(&s->panes[0].drawing)) ||
           (s->panes[1].area.h && drawing_pending(&s->panes[1].drawing));
}

static bool step_poll(Ui *ui)
{
    bool changed = false;

    if (ui->screen != SCREEN_STEP)
        return false;
    play_on(ui);
    for (int i = 0; i < 2; i++)
        changed |= drawing_poll(&ui->draughtsman, &ui->stepping.panes[i].drawing);
    return changed;
}

static void step_end(Ui *ui)
{
    for (int i = 0; i < 2; i++)
        drop_run(ui, &ui->stepping.panes[i]);
}

static unsigned step_scope(const Ui *ui)
{
    return ui->compare.count ? IN_STEP : IN_EMPTY;
}

const Screen screen_step = {
    .tab = "3 Step",
    .mode = "STEP",
    .scope = IN_STEP,
    .scope_now = step_scope,
    .hint = pane_hint,
    .find = step_search,
    .draw = step_draw,
    .prepare = step_prepare,
    .pending = step_pending,
    .poll = step_poll,
    .deadline = step_deadline,
    .end = step_end,
};
