/* varying_keys.c -- keys of a parameter at several values: the point, what is plotted, its file. */
#include "ui/screen/compare.h"
#include "ui/shell/actions.h"
#include "ui/term/keys.h"

/* Esc first stops what runs, then closes. */
static bool vary_key(Ui *ui, uint32_t key)
{
    if (key != K_ESCAPE || !vary_cancel(ui))
        return false;
    ui_say(ui, ROLE_WARN, "stopped; Esc closes");
    return true;
}

const Layer vary_layer = { .mode = "VARY",
                           .scope = IN_VARY,
                           .draw = vary_layer_draw,
                           .key = vary_key,
                           .escape = "stop, close" };

static void move(Ui *ui, int by)
{
    Varying *v = &ui->varying;
    int      to = v->cursor + by;

    if (v->sweep.count > 0 && to >= 0 && to < v->sweep.vary.count)
        v->cursor = to;
}

void action_vary_left(Ui *ui)
{
    move(ui, -1);
}
void action_vary_right(Ui *ui)
{
    move(ui, 1);
}

void action_vary_loss(Ui *ui)
{
    SweepQuantity *loss = &ui->varying.loss;

    *loss = *loss == SWEEP_ERROR ? SWEEP_MASS : *loss == SWEEP_MASS ? SWEEP_VARIATION : SWEEP_ERROR;
}

/* What must be measured is run again. */
void action_vary_cost(Ui *ui)
{
    Varying *v = &ui->varying;

    v->cost = v->cost == SWEEP_FLOPS ? SWEEP_TIME : v->cost == SWEEP_TIME ? SWEEP_MEMORY
                                                                           : SWEEP_FLOPS;
    if (!quantity_is_measured(v->cost) || v->sweep.measure)
        return;
    v->sweep.measure = true;
    for (int i = 0; i < v->sweep.count; i++)
        for (int p = 0; p < sweep_points(&v->sweep, i); p++)
            v->sweep.lines[i].points[p].done = false;
    v->stopped = v->told = false;
    vary_poll(ui);
}

void action_vary_export(Ui *ui)
{
    Varying  *v = &ui->varying;
    SweepLook look = { .quantities = { v->loss, v->cost }, .count = 2 };
    Text      line = { 0 };

    if (v->sweep.count <= 0)
        return;
    sweep_command(&v->sweep, ui->session, &look, &line);
    text_addf(&line, " -o %s-%s.png", v->sweep.lines[v->main].request.mechanism,
              v->sweep.vary.name);
    prompt_open(ui, PROMPT_COMMAND);
    field_set(&ui->prompt.field, text_str(&line));
    text_free(&line);
}
