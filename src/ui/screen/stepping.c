/* stepping.c -- the step screen: the focused pane's algorithm, stage by stage.
 *
 * Two panes of its own look at the matrix a stage made, by position and in the
 * mechanism's order; they borrow the compared pane's result and never run anything.
 */
#include "ui/screen/stepping.h"

#include <string.h>

#define WIDE 120 /* columns from which both orders stand side by side */

#define BESIDE 60 /* columns from which there is room for words beside the matrix */

/* ---- what is looked at ------------------------------------------------------ */

int64_t stepping_head(const Pane *pane)
{
    int64_t heads = pane->result->run->h;

    return pane->head < heads ? pane->head : heads - 1;
}

bool stepping_now(Ui *ui, Step *step)
{
    Pane *pane = compare_focus(ui);
    int   count = pane && pane->result ? result_steps(pane->result) : 0;

    if (!count)
        return false;
    if (ui->stepping.of != pane->result->run->mechanism) {
        ui->stepping.of = pane->result->run->mechanism;
        ui->stepping.at = 0;
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

const int32_t *stepping_order(const Step *step, int64_t head)
{
    return has_tokens(step->shown) ? step_order(step, head) : NULL;
}

static void forget(Ui *ui, Pane *pane)
{
    drawing_clear(&ui->draughtsman, &pane->drawing);
    result_release(pane->result);
    *pane = (Pane){ .pool = -1, .scale = -1, .map = -1, .order_head = -1 };
}

/* A pane of ours on the step's matrix. */
static void look_at(Ui *ui, Pane *pane, const Pane *source, const Step *step, bool sorted)
{
    int64_t head = stepping_head(source);
    double  value;

    if (pane->result != source->result || pane->pinned != step->shown || pane->head != head ||
        pane->sorted != sorted) {
        const View *before = pane->result == source->result ? pane->pinned : NULL;
        Lens        lens = pane->lens;

        if (pane->result != source->result) {
            forget(ui, pane);
            pane->result = result_retain(source->result);
        }
        pane->lens = before && views_share_rows(before, step->shown) &&
                             views_share_cols(before, step->shown)
                         ? lens
                         : (Lens){ .q = 0 };
    }
    pane->pinned = step->shown;
    pane->telling = step->shown;
    pane->head = head;
    pane->sorted = sorted;
    pane->pool = source->pool;
    pane->scale = source->scale;
    pane->map = source->map;
    pane->order = sorted ? stepping_order(step, head) : NULL;
    pane->order_head = head;
    pane->order_view = step->shown;
    pane->order_round = step_round(step);
    if (!sorted && (step->stage->about || step_watched(step, 0, &value)))
        pane->lens.q = step->row;
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

StepRooms stepping_rooms(const Pane *pane, const Step *step, Area area)
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

void step_prepare(Ui *ui, Area area)
{
    Stepping *s = &ui->stepping;
    Pane     *source = compare_focus(ui);
    Step      step;
    StepRooms rooms;
    bool      narrow;

    s->panes[0].area.h = s->panes[1].area.h = 0;
    if (!stepping_now(ui, &step) || !step.shown)
        return;
    rooms = stepping_rooms(source, &step, area);
    narrow = !rooms.second.h;
    look_at(ui, &s->panes[0], source, &step,
            narrow && s->sorted_alone && stepping_order(&step, stepping_head(source)));
    look_at(ui, &s->panes[1], source, &step, !narrow);
    pane_lay_out(ui, &s->panes[0], rooms.first);
    pane_lay_out(ui, &s->panes[1], rooms.second);
    for (int i = 0; i < 2; i++)
        if (s->panes[i].area.h)
            pane_want_drawing(ui, &s->panes[i]);
}

/* ---- time ------------------------------------------------------------------- */

bool step_pending(const Ui *ui)
{
    const Stepping *s = &ui->stepping;

    return (s->panes[0].area.h && drawing_pending(&s->panes[0].drawing)) ||
           (s->panes[1].area.h && drawing_pending(&s->panes[1].drawing));
}

bool step_poll(Ui *ui)
{
    bool changed = false;

    if (ui->screen != SCREEN_STEP)
        return false;
    stepping_play(ui);
    for (int i = 0; i < 2; i++)
        changed |= drawing_poll(&ui->draughtsman, &ui->stepping.panes[i].drawing);
    return changed;
}

void step_close(Ui *ui)
{
    for (int i = 0; i < 2; i++)
        forget(ui, &ui->stepping.panes[i]);
}
