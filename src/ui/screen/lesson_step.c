/* lesson_step.c -- what a step of a lesson shows: panes, runs beside them, and the facts that
 * its functions receive. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/command/command.h"
#include "app/lesson/lesson.h"
#include "app/result/steps.h"
#include "ui/shell/actions.h"
#include "ui/shell/shell.h"
#include "ui/state/panes.h"

/* ---- opening ---------------------------------------------------------------------------- */

/* Applies pool, scale and other options that a figure plan does not hold. */
static void take_looks(Ui *ui, const Call *call, Pane *pane)
{
    Pool      pool;
    Scale     scale;
    ColourMap map;
    int64_t   head = pane->spec.head, layers = pane->spec.reach.layers;
    Error     err = ERROR_INIT;

    if (call->values[OPT_POOL] && pool_parse(call->values[OPT_POOL], &pool, &err))
        pane->spec.pool = (int)pool;
    if (call->values[OPT_SCALE] && scale_parse(call->values[OPT_SCALE], &scale, &err))
        pane->spec.scale = (int)scale;
    if (call->values[OPT_CMAP] && colour_map_parse(call->values[OPT_CMAP], &map, &err))
        pane->spec.map = (int)map;
    if (call->values[OPT_STRIPS])
        margin_parse(call->values[OPT_STRIPS], &ui->compare.look.strips, &err);
    if (call_int(call, OPT_HEAD, 0, 1 << 20, &head, &err) && call->values[OPT_HEAD])
        pane->spec.head = head;
    if (call_int(call, OPT_LAYERS, 1, 254, &layers, &err))
        pane->spec.reach.layers = (int)layers;
}

static void panes_text(const Ui *ui, Text *out)
{
    for (int i = 0; i < ui->compare.count; i++) {
        request_text(&ui->compare.panes[i].request, out);
        text_add(out, "\n");
    }
}

/* No parameter was changed since the lesson opened the panes. */
bool lesson_untouched(const Ui *ui)
{
    Text now = { 0 };
    bool same;

    panes_text(ui, &now);
    same = !strcmp(text_str(&now), text_str(&ui->lessons.requests));
    text_free(&now);
    return same;
}

static void open_panes(Ui *ui, const LessonWords *words, const Call *call, FigurePlan *plan)
{
    ui->compare.look.strips = (MarginKind)0;
    ui->compare.look.own_scales = call->values[OPT_OWN] != NULL;
    panes_open_plan(ui, plan);
    for (int i = 0; i < ui->compare.count; i++) {
        Pane *pane = &ui->compare.panes[i];

        take_looks(ui, call, pane);
        if (words->query >= 0) {
            pane->lens.q = words->query;
            pane->lens.k = words->key;
        }
        snprintf(ui->lessons.mechanisms[i], sizeof(ui->lessons.mechanisms[i]), "%s",
                 pane->request.mechanism);
        ui->lessons.heads[i] = pane->spec.head;
        ui_take(ui, pane);
    }
    text_clear(&ui->lessons.requests);
    panes_text(ui, &ui->lessons.requests);
    ui->lessons.opened = ui->compare.count;
    ui->lessons.aimed = words->query >= 0;
    ui->compare.now.focus = 0;
    ui->message[0] = '\0';
    if (call->values[OPT_AT]) {
        ui->screen = SCREEN_STEP;
        ui->lessons.at = call->values[OPT_AT];
    }
}

/* The lesson owns the strings of the call, except the input. */
static bool open_words(Ui *ui, const LessonWords *words, Error *err)
{
    LessonCall made;
    FigurePlan plan = { 0 };
    bool       ok;

    if (!session_lessons_on(ui->session, ui->defaults.device, ui->defaults.precision, err))
        return false;
    ok = lesson_call(ui->session, ui->lessons.running, words, &made, err) &&
         lesson_plan(ui->session, &made, &plan, err);
    if (ok)
        open_panes(ui, words, &made.call, &plan);
    figure_plan_free(&plan);
    lesson_call_free(&made);
    return ok;
}

const char *lesson_instead(const Ui *ui)
{
    const Lessons *l = &ui->lessons;

    for (int i = 0; i < l->opened && i < ui->compare.count; i++)
        if (strcmp(ui->compare.panes[i].request.mechanism, l->mechanisms[i]) != 0)
            return ui->compare.panes[i].request.mechanism;
    return NULL;
}

void lesson_drop_runs(Ui *ui)
{
    Lessons *l = &ui->lessons;

    for (int i = 0; i < LESSON_RUNS_MOST; i++) {
        job_free(l->jobs[i]);
        result_release(l->results[i]);
        l->jobs[i] = NULL;
        l->results[i] = NULL;
    }
}

/* On a session of their own: the panes keep their input. */
static bool start_runs(Ui *ui, const LessonStep *step, Error *err)
{
    Lessons *l = &ui->lessons;

    memcpy(l->device, ui->defaults.device, sizeof(l->device));
    memcpy(l->precision, ui->defaults.precision, sizeof(l->precision));
    if (step->run_count && ((!l->side && !(l->side = session_new(err))) ||
                            !session_lessons_on(l->side, l->device, l->precision, err)))
        return false;
    for (int i = 0; i < step->run_count; i++) {
        Request request = REQUEST_INIT;

        if (step->runs[i].model) {
            if (!lesson_run_loss(l->side, l->running, &step->runs[i], &l->losses[i], err))
                return false;
            continue;
        }
        bool    ok = lesson_run_request(l->side, l->running, &step->runs[i], &request, err);

        request.threads = ui->defaults.threads;
        l->jobs[i] = ok ? session_submit(l->side, &request, err) : NULL;
        request_free(&request);
        if (!l->jobs[i])
            return false;
    }
    return true;
}

void lesson_show(Ui *ui, int at)
{
    Lessons           *l = &ui->lessons;
    const LessonStep  *step = &l->running->steps[at];
    const LessonWords *words = lesson_shows(l->running, at);
    Error              err = ERROR_INIT;
    bool               known = l->done >> at & 1;

    l->step = at;
    l->over = false;
    l->scroll = 0;
    l->said[0] = l->problem[0] = l->fault[0] = '\0';
    l->sight = (LessonSight){ .chosen = -1, .answered = known, .lenient = true };
    field_set(&l->field, "");
    l->judged = false;
    l->recalled = !known;
    text_clear(&l->explained);
    lesson_drop_runs(ui);
    ui->overlay_count = 0;
    l->aimed &= words == l->shown;
    history_clear(ui); /* the panes belong to another step now */
    if ((words != l->shown && !open_words(ui, words, &err)) || !start_runs(ui, step, &err))
        snprintf(l->problem, sizeof(l->problem), "%s", err.text);
    if (!lessons_docked(ui)) /* no pane was opened; the words say why */
        ui->screen = SCREEN_COMPARE;
    l->shown = words;
    l->focused = true;
}

/* ---- facts --------------------------------------------------------------------------------- */

static void pane_fact(Pane *pane, LessonFact *out)
{
    const View *view = pane_view(pane);

    *out = (LessonFact){ .result = pane->job ? NULL : pane->result,
                         .measured = pane->measured ? &pane->measured->record : NULL,
                         .view = view ? view->name : "", .head = pane->spec.head,
                         .sorted = pane_is_sorted(pane), .query = -1, .key = -1 };
    if (view)
        pane_cursor(pane, &out->query, &out->key);
}

void lesson_facts(Ui *ui, LessonFacts *out)
{
    Lessons          *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];

    out->count = 0;
    for (int i = 0; i < ui->compare.count && i < LESSON_PANES_MOST; i++)
        pane_fact(&ui->compare.panes[i], &out->items[out->count++]);
    while (out->count < l->opened) /* the learner closed the pane */
        out->items[out->count++] = (LessonFact){ .query = -1, .key = -1 };
    for (int i = 0; i < step->run_count; i++)
        out->items[out->count++] = (LessonFact){
            .name = step->runs[i].name, .result = l->results[i], .query = -1, .key = -1,
            .measured = step->runs[i].measure && l->results[i] ? &l->results[i]->record : NULL,
            .loss = step->runs[i].model && !l->problem[0] ? &l->losses[i] : NULL,
        };
}

/* ---- replies ------------------------------------------------------------------ */

static void set_reply(Lessons *l, bool right, const char *why, const char *usual)
{
    snprintf(l->said, sizeof(l->said), "%s%s%s", right ? "Right." : "No.", *usual || why ? " " : "",
             why ? why : usual);
    l->sight.reply = l->said;
    l->sight.right = right;
}

static const char *it_is(const LessonStep *step, double right, char *out, size_t size)
{
    char value[LESSON_RIGHT - 16];

    snprintf(out, size, "It is %s.", lesson_right_text(step, right, value, sizeof(value)));
    return out;
}

/* A lesson's function failed, maybe because the learner changed the panes. */
static void fault_text(const Ui *ui, const Error *err, char *out, size_t size)
{
    snprintf(out, size, "%.500s%s", err->text, lesson_untouched(ui)
             ? "" : " (the panes are not as the step showed them; r brings them back)");
}

static void recall_answer(Lessons *l, const LessonStep *step, double right)
{
    char value[LESSON_RIGHT];

    if (step->ask == LESSON_ASKS_CHOICE) {
        l->sight.chosen = (int)right - 1;
        set_reply(l, true, step->choices[l->sight.chosen].why, "");
        return;
    }
    set_reply(l, true, NULL, it_is(step, right, value, sizeof(value)));
}

/* ---- as runs end ----------------------------------------------------------------- */

static bool poll_lesson_run(Lessons *l, int i)
{
    JobState state = l->jobs[i] ? job_state(l->jobs[i]) : JOB_WAITING;
    Result  *result;

    if (state == JOB_WAITING || state == JOB_RUNNING)
        return false;
    result = state == JOB_DONE ? job_result(l->jobs[i]) : NULL;
    if (result && result->run->err.code == ERR_NONE) {
        l->results[i] = result;
    } else {
        snprintf(l->problem, sizeof(l->problem), "runs.%s: %.450s",
                 l->running->steps[l->step].runs[i].name,
                 result                ? result->run->err.text
                 : state == JOB_FAILED ? job_error(l->jobs[i])->text
                                       : "cancelled");
        result_release(result);
    }
    job_free(l->jobs[i]);
    l->jobs[i] = NULL;
    return true;
}

/* When panes change device, the step's own runs follow, because their times are compared. */
static void follow_device(Ui *ui)
{
    Lessons *l = &ui->lessons;
    Error    err = ERROR_INIT;

    if (!strcmp(l->device, ui->defaults.device) && !strcmp(l->precision, ui->defaults.precision))
        return;
    lesson_drop_runs(ui);
    if (!start_runs(ui, &l->running->steps[l->step], &err))
        snprintf(l->problem, sizeof(l->problem), "%s", err.text);
}

/* Plays from the stage before the one that the step is about, once there is a run with stages: the
 * words are never beside the picture of a stage long before. */
static void go_to_stage(Ui *ui)
{
    Lessons *l = &ui->lessons;
    Pane    *pane = panes_focus(ui);
    Error    err = ERROR_INIT;
    int      from, to;

    if (!l->at || !pane || !pane->result || pane->job)
        return;
    if (result_steps_at(pane->result, l->at, &from, &to, &err)) {
        stepping_play_part(ui, pane->result->run->mechanism, from > 0 ? from - 1 : 0, to - 1);
    } else {
        snprintf(l->problem, sizeof(l->problem), "%s", err.text);
    }
    l->at = NULL;
}

/* Once all views are there: warns of the first that the lesson's cursor lies outside of, which
 * the pane then shows at the edge. */
static bool warn_edge(Ui *ui)
{
    Lessons           *l = &ui->lessons;
    const LessonWords *words = l->shown;
    Error              err = ERROR_INIT;

    for (int i = 0; i < ui->compare.count && l->aimed; i++)
        if (!ui->compare.panes[i].result && !ui->compare.panes[i].problem[0])
            return false;
    for (int i = 0; i < ui->compare.count && l->aimed && err.code == ERR_NONE; i++) {
        const View *view = pane_view(&ui->compare.panes[i]);

        if (view && !lesson_cursor_fits(view, words->query, words->key, &err))
            ui_say(ui, ROLE_WARN, "The lesson's %s: it stands at the edge", err.text);
    }
    l->aimed = false;
    return err.code != ERR_NONE;
}

/* Checks whether the panes now fulfil the task. */
static void judge(Ui *ui)
{
    Lessons    *l = &ui->lessons;
    LessonFacts facts;
    Error       err = ERROR_INIT;

    if (l->over || !l->running->steps[l->step].done || l->sight.done || lesson_instead(ui))
        return;
    lesson_facts(ui, &facts);
    if (lesson_task_done(l->running, l->step, &facts, &l->sight.done, &err))
        l->fault[0] = '\0';
    else
        fault_text(ui, &err, l->fault, sizeof(l->fault));
    if (l->sight.done)
        lesson_finish(ui);
}

/* A question that was answered before: its right answer and the reply to it, once there are runs.
 * After a task, or a change of parameters, the panes are others, so a function of them may say
 * something else now. */
static bool recall(Ui *ui)
{
    Lessons          *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];
    LessonFacts       facts;
    double            right;
    Error             err = ERROR_INIT;

    if (l->recalled || l->over || lesson_instead(ui))
        return false;
    lesson_facts(ui, &facts);
    if (!lesson_facts_ready(&facts))
        return false;
    l->recalled = true;
    if (step->ask == LESSON_ASKS_NOTHING ||
        (step->answer_of && (step->done || !lesson_untouched(ui))) ||
        !lesson_answer(l->running, l->step, &facts, &right, &err))
        return false;
    recall_answer(l, step, right);
    return true;
}

/* Why the answer is right stays beside it as it was, whatever the panes show later. */
static void keep_explanation(Ui *ui)
{
    Lessons          *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];
    LessonFacts       facts;
    Error             err = ERROR_INIT;

    if (l->over || !l->sight.reply || !l->sight.right || l->sight.explain || !step->explain.make ||
        (step->done && !l->sight.done) || lesson_instead(ui))
        return;
    lesson_facts(ui, &facts);
    if (!lesson_facts_ready(&facts))
        return;
    text_clear(&l->explained);
    if (lesson_text(l->running, &step->explain, &facts, &l->explained, &err) &&
        text_ok(&l->explained))
        l->sight.explain = text_str(&l->explained);
}

bool lesson_poll(Ui *ui)
{
    Lessons *l = &ui->lessons;
    bool     changed = false, failed;

    if (!l->running)
        return false;
    follow_device(ui);
    for (int i = 0; i < LESSON_RUNS_MOST; i++)
        changed |= poll_lesson_run(l, i);
    go_to_stage(ui);
    changed |= warn_edge(ui);
    changed |= recall(ui);
    failed = *l->fault;
    judge(ui);
    changed |= failed != (*l->fault != '\0');
    keep_explanation(ui);
    return changed;
}

int lesson_wake_fd(const Ui *ui)
{
    return ui->lessons.side ? session_wake_fd(ui->lessons.side) : -1;
}

/* ---- answers ------------------------------------------------------------------ */

static void say_verdict(Ui *ui, bool right, const char *why, const char *usual)
{
    Lessons *l = &ui->lessons;

    set_reply(l, right, why, usual);
    l->scroll = LESSON_END;
    if (right) {
        l->sight.answered = true;
        lesson_finish(ui);
        keep_explanation(ui);
    }
}

static void answer_choice(Ui *ui, const LessonStep *step, double right)
{
    Lessons *l = &ui->lessons;

    if (l->sight.chosen < 0)
        ui_say(ui, ROLE_DIM, "no answer is chosen yet: a letter or the arrows choose one, Enter "
                             "gives it");
    else
        say_verdict(ui, lesson_accepts(step, right, l->sight.chosen + 1),
                    step->choices[l->sight.chosen].why, "");
}

/* A share was given where a percentage is asked for: 0.5, without the sign, for 50 %. */
static bool is_share(const LessonStep *step, const char *typed, double right, double given)
{
    return step->unit && !strcmp(step->unit, "%") && !strchr(typed, '%') && given > 0 &&
           given <= 1 && right > 1;
}

static void answer_number(Ui *ui, const LessonStep *step, double right)
{
    Lessons *l = &ui->lessons;
    Error    err = ERROR_INIT;
    double   given;
    char     value[LESSON_RIGHT];

    if (!l->field.length) {
        ui_say(ui, ROLE_DIM, "type a number, then Enter");
        return;
    }
    if (!lesson_number(l->field.text, step->unit, &given, &err)) {
        ui_say(ui, ROLE_WARN, "%s", err.text);
        return;
    }
    l->judged = true;
    if (lesson_accepts(step, right, given))
        say_verdict(ui, true, NULL, it_is(step, right, value, sizeof(value)));
    else if (is_share(step, l->field.text, right, given))
        say_verdict(ui, false, NULL, "The answer is in per cent: a half is 50, not 0.5.");
    else
        say_verdict(ui, false, NULL, given > right ? "It is less." : "It is more.");
}

/* The lesson's own error stands where the verdict would. */
static void say_fault(Ui *ui, const Error *err)
{
    Lessons *l = &ui->lessons;

    fault_text(ui, err, l->said, sizeof(l->said));
    l->sight.reply = l->said;
    l->sight.right = false;
    l->judged = true;
    l->scroll = LESSON_END;
}

void action_lesson_answer(Ui *ui)
{
    Lessons          *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];
    LessonFacts       facts;
    double            right;
    Error             err = ERROR_INIT;

    lesson_facts(ui, &facts);
    if (l->over || lesson_step_is_done(ui))
        action_lesson_next(ui);
    else if (lesson_instead(ui))
        ui_say(ui, ROLE_WARN, "the pane shows %s, not what the step is about; r brings it back",
               lesson_instead(ui));
    else if (step->ask == LESSON_ASKS_NOTHING || l->sight.answered)
        ui_say(ui, ROLE_DIM, "there is something to do first; . goes on without it");
    else if (step->answer_of && !lesson_facts_ready(&facts))
        ui_say(ui, ROLE_WARN, "the runs of this step are not finished");
    else if (!lesson_answer(l->running, l->step, &facts, &right, &err))
        say_fault(ui, &err);
    else if (step->ask == LESSON_ASKS_CHOICE)
        answer_choice(ui, step, right);
    else
        answer_number(ui, step, right);
}

/* Choices and field, which stand below the words, come into sight. */
static void show_answers(Lessons *l)
{
    if (!l->whole)
        l->scroll = LESSON_END;
}

static void choose(Lessons *l, int choice)
{
    int count = l->running->steps[l->step].choice_count;

    l->sight.chosen = (choice + count) % count;
    show_answers(l);
}

/* A choice, or a line of the words where there is none. */
void lesson_move(Ui *ui, int by)
{
    Lessons          *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];

    if (l->over || step->ask != LESSON_ASKS_CHOICE || l->sight.answered)
        l->scroll += by;
    else
        choose(l, l->sight.chosen >= 0 ? l->sight.chosen + by : by > 0 ? 0 : -1);
}

void lesson_scroll(Ui *ui, int pages)
{
    ui->lessons.scroll += pages * (ui->lessons.rows > 2 ? ui->lessons.rows - 1 : 1);
}

/* Whether the key continues a number or its unit; other keys keep their usual meaning: a point
 * begins no number, it goes on to the next step. */
static bool goes_on(const Lessons *l, const LessonStep *step, uint32_t key)
{
    char text[sizeof(l->field.text) + 2];

    if (key == K_BACK || key == K_CONTROL('U'))
        return l->field.length > 0;
    if (key < ' ' || key > '~')
        return false;
    snprintf(text, sizeof(text), "%s%c", l->judged ? "" : l->field.text, (char)key);
    return text[0] != ' ' && text[0] != '.' && lesson_number_begins(text, step->unit);
}

/* Typing replaces a wrong number; Backspace edits it. */
static bool type_number(Lessons *l, const LessonStep *step, uint32_t key)
{
    if (!goes_on(l, step, key))
        return false;
    if (l->judged && key != K_BACK)
        field_set(&l->field, "");
    l->judged = false;
    return field_key(&l->field, key);
}

static bool is_sign(uint32_t key)
{
    return (key >= 'a' && key <= 'z') || (key >= 'A' && key <= 'Z') || (key >= '0' && key <= '9');
}

/* With the head and the layer the right answer changes. */
static bool is_of_heads(const Lessons *l, uint32_t key)
{
    return !l->sight.answered && key < 0x80 && key && strchr("[]{}", (int)key);
}

const char lesson_own_keys[] = "i r T j k";

/* Letters and digits that may be slips of an answer: all while a question is open, those of its
 * answers later.  Keys of the lesson and those that its words say to press are none. */
static bool is_slip(const Lessons *l, uint32_t key)
{
    const LessonStep *step = &l->running->steps[l->step];
    const char        name = (char)key;

    if (l->over || (!is_sign(key) && !is_of_heads(l, key)) || step->ask == LESSON_ASKS_NOTHING ||
        (key | 0x20) == 'q' ||
        key_among(key, lesson_own_keys) || lesson_step_names_key(step, &name, 1))
        return false;
    if (!l->sight.answered)
        return true;
    if (step->ask == LESSON_ASKS_NUMBER)
        return key <= '9';
    return key > '9' && (key | 0x20) < 'a' + (uint32_t)step->choice_count;
}

static void say_slip(Ui *ui, uint32_t key)
{
    Lessons          *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];
    char              last = (char)('a' + step->choice_count - 1);

    if (l->sight.answered)
        ui_say(ui, ROLE_DIM, "it is answered; %s", lesson_step_is_done(ui)
               ? "Enter goes on" : "there is still something to do");
    else if (step->ask == LESSON_ASKS_NUMBER)
        ui_say(ui, ROLE_DIM, "'%c' is no part of a number; Tab goes to the panes and their keys",
               (char)key);
    else
        ui_say(ui, ROLE_DIM, "'%c' is no answer: a to %c are; Tab goes to the panes and their keys",
               (char)key, last);
}

/* The letter of a choice, as A or a. */
static bool is_choice(const LessonStep *step, uint32_t key)
{
    return is_sign(key) && (key | 0x20) >= 'a' && (key | 0x20) < 'a' + (uint32_t)step->choice_count;
}

/* Letters choose; where a number is asked for, keys type it. */
static bool answer_key(Lessons *l, uint32_t key)
{
    const LessonStep *step = &l->running->steps[l->step];

    if (l->over || l->sight.answered || step->ask == LESSON_ASKS_NOTHING)
        return false;
    if (step->ask == LESSON_ASKS_NUMBER)
        return type_number(l, step, key);
    if (!is_choice(step, key))
        return false;
    l->sight.chosen = (int)((key | 0x20) - 'a');
    return true;
}

bool lesson_key(Ui *ui, uint32_t key)
{
    if (answer_key(&ui->lessons, key)) {
        show_answers(&ui->lessons);
        return true;
    }
    if (!is_slip(&ui->lessons, key))
        return false;
    say_slip(ui, key);
    return true;
}

/* A stage and a curve have no zoom. */
static bool shows_matrix(Ui *ui)
{
    Pane       *pane = panes_focus(ui);
    const View *view = pane ? pane_view(pane) : NULL;
    ViewCurve   curve;

    return ui->screen != SCREEN_STEP && view && !view_curve(view, &curve);
}

/* Whether the key has anything to do on this page.  zooms: a matrix is beside the words. */
static bool fits_page(const Lessons *l, bool zooms, const Action *action)
{
    const LessonStep *step = &l->running->steps[l->step];
    bool              asks = !l->over && step->ask != LESSON_ASKS_NOTHING && !l->sight.answered;
    bool              point = asks && l->field.length && !l->judged; /* of the number typed */

    if (!strcmp(action->id, "lesson_answer"))
        return asks;
    if (!strcmp(action->id, "lesson_next"))
        return !point;
    if (!strcmp(action->id, "lesson_skip"))
        return point;
    if (!strcmp(action->id, "zoom_in")) /* and out, whose minus begins a number */
        return zooms && (!asks || step->ask != LESSON_ASKS_NUMBER);
    if (!strcmp(action->id, "lesson_hint"))
        return !l->over && (step->hint.fixed || step->hint.make);
    return true;
}

bool lesson_takes(const Ui *ui, const Action *action)
{
    const Lessons    *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];
    uint32_t          key = key_parse(action->keys, strcspn(action->keys, " "));
    bool              asks = !l->over && !l->sight.answered;

    return is_slip(l, key) ||
           (asks && step->ask == LESSON_ASKS_NUMBER && goes_on(l, step, key)) ||
           (asks && step->ask == LESSON_ASKS_CHOICE && is_choice(step, key));
}

bool lesson_hint(Ui *ui, const Action *action)
{
    return !lesson_takes(ui, action) && fits_page(&ui->lessons, shows_matrix(ui), action) &&
           pane_hint(ui, action);
}
