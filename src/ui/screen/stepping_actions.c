/* stepping_actions.c -- the keys of the step screen, and its clock. */
#include <string.h>

#include "app/command/command.h"
#include "ui/screen/stepping.h"
#include "ui/shell/actions.h"

static const double paces[] = { 4, 2, 1, 0.5, 0.25 }; /* seconds a stage stays */
#define PACES ((int)(sizeof(paces) / sizeof(*paces)))

static double pace_of(const Stepping *s)
{
    return s->pace > 0 ? s->pace : paces[s->speed];
}

double step_deadline(const Ui *ui)
{
    double left = ui->stepping.due - ui_now();

    return !ui->stepping.playing || ui->screen != SCREEN_STEP ? -1 : left > 0 ? left : 0.001;
}

void stepping_play(Ui *ui)
{
    Stepping *s = &ui->stepping;
    Step      step;

    if (step_deadline(ui) < 0 || ui_now() < s->due || !stepping_now(ui, &step))
        return;
    if (s->at + 1 < step.count)
        s->at++;
    else
        s->playing = false;
    s->due = ui_now() + pace_of(s);
    ui->dirty = true;
}

void stepping_start(Ui *ui, const Step *step)
{
    Stepping *s = &ui->stepping;

    s->playing = true;
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

void action_step_next(Ui *ui)
{
    step_go(ui, ui->stepping.at + 1);
}
void action_step_back(Ui *ui)
{
    step_go(ui, ui->stepping.at - 1);
}
void action_step_first(Ui *ui)
{
    step_go(ui, 0);
}
void action_step_last(Ui *ui)
{
    Step step;

    if (stepping_now(ui, &step))
        step_go(ui, step.count - 1);
}

/* Half of the line in sight further. */
static void move_tokens(Ui *ui, int way)
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

void action_step_tokens_next(Ui *ui)
{
    move_tokens(ui, 1);
}
void action_step_tokens_back(Ui *ui)
{
    move_tokens(ui, -1);
}

/* Another query's running numbers. */
static void move_row(Ui *ui, int64_t by)
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

void action_step_row_down(Ui *ui)
{
    move_row(ui, 1);
}
void action_step_row_up(Ui *ui)
{
    move_row(ui, -1);
}
void action_step_rows_down(Ui *ui)
{
    move_row(ui, 10);
}
void action_step_rows_up(Ui *ui)
{
    move_row(ui, -10);
}

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

static void change_speed(Ui *ui, int by)
{
    Stepping *s = &ui->stepping;

    s->speed += by;
    s->speed = s->speed < 0 ? 0 : s->speed >= PACES ? PACES - 1 : s->speed;
    s->pace = 0;
    ui_say(ui, ROLE_DIM, "%g s a stage", paces[s->speed]);
}

void action_step_faster(Ui *ui)
{
    change_speed(ui, 1);
}
void action_step_slower(Ui *ui)
{
    change_speed(ui, -1);
}

void action_step_order(Ui *ui)
{
    Pane *pane = compare_focus(ui);
    Step  step;

    if (!stepping_now(ui, &step))
        return;
    if (!stepping_order(&step, stepping_head(pane))) {
        ui_say(ui, ROLE_DIM, "no order is known at this stage, or its matrix is not of tokens");
        return;
    }
    ui->stepping.sorted_alone = !ui->stepping.sorted_alone;
    if (ui->stepping.panes[1].area.h)
        ui_say(ui, ROLE_DIM, "both orders are shown, side by side");
    else
        ui_say(ui, ROLE_DIM, ui->stepping.sorted_alone ? "tokens in the mechanism's order"
                                                       : "tokens by position");
}

void action_step_export(Ui *ui)
{
    Pane *pane = compare_focus(ui);
    Text  line = { 0 };

    if (!pane)
        return;
    request_command(ui->session, &pane->request, "step", &line);
    text_addf(&line, " -o %s-steps.png", pane->request.mechanism);
    prompt_open(ui, PROMPT_COMMAND);
    field_set(&ui->prompt.field, text_str(&line) + strlen("attnscope "));
    text_free(&line);
}
