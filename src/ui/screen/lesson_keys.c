/* lesson_keys.c -- answering: choices, numbers that are typed, and what is said to them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/shell/actions.h"
#include "ui/term/keys.h"

static void say_verdict(Ui *ui, bool right, const char *why, const char *usual)
{
    Lessons *l = &ui->lessons;

    snprintf(l->said, sizeof(l->said), "%s%s%s", right ? "Right." : "No.", *usual || why ? " " : "",
             why ? why : usual);
    l->sight.said = l->said;
    l->sight.right = right;
    l->scroll = LESSON_END;
    if (right) {
        l->sight.answered = true;
        lesson_finish(ui);
    }
}

static void answer_choice(Ui *ui, const LessonStep *step, double right)
{
    Lessons *l = &ui->lessons;

    if (l->sight.chosen < 0)
        ui_say(ui, ROLE_DIM, "choose first: a, b or the arrows");
    else
        say_verdict(ui, lesson_accepts(step, right, l->sight.chosen + 1),
                    step->choices[l->sight.chosen].why, "");
}

/* Whole numbers as they are, others in three digits. */
static void right_number(const LessonStep *step, double right, char *out, size_t size)
{
    bool whole = fabs(right) >= 999.5 || fabs(right - round(right)) <= 1e-9 * fabs(right);

    snprintf(out, size, whole ? "It is %.0f%s%s." : "It is %.3g%s%s.", right,
             step->unit ? " " : "", step->unit ? step->unit : "");
}

static void answer_number(Ui *ui, const LessonStep *step, double right)
{
    Lessons *l = &ui->lessons;
    Error    err = ERROR_INIT;
    double   given;
    char     value[400]; /* of the largest double there is */

    if (!l->field.length) {
        ui_say(ui, ROLE_DIM, "type a number, then Enter");
        return;
    }
    if (!lesson_number(l->field.text, step->unit, &given, &err)) {
        ui_say(ui, ROLE_WARN, "%s", err.text);
        return;
    }
    right_number(step, right, value, sizeof(value));
    l->judged = true;
    if (lesson_accepts(step, right, given))
        say_verdict(ui, true, NULL, value);
    else
        say_verdict(ui, false, NULL, given > right ? "It is less." : "It is more.");
}

void action_lesson_answer(Ui *ui)
{
    Lessons          *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];
    LessonFacts       facts;
    double            right;
    Error             err = ERROR_INIT;

    lesson_facts(ui, &facts);
    if (lesson_step_is_done(ui))
        action_lesson_next(ui);
    else if (step->ask == LESSON_ASKS_NOTHING || l->sight.answered)
        ui_say(ui, ROLE_DIM, "there is something to do first; . goes on without it");
    else if (!lesson_answer(l->running, l->step, &facts, &right, &err))
        ui_say(ui, ROLE_WARN, "%s", lesson_facts_ready(&facts)
               ? "the panes show something else than the question is about; r brings it back"
               : err.text);
    else if (step->ask == LESSON_ASKS_CHOICE)
        answer_choice(ui, step, right);
    else
        answer_number(ui, step, right);
}

/* A choice, or a line of the words where there is none. */
static void move(Ui *ui, int by)
{
    Lessons          *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];

    if (step->ask != LESSON_ASKS_CHOICE || l->sight.answered)
        l->scroll += by;
    else if (l->sight.chosen < 0)
        l->sight.chosen = by > 0 ? 0 : step->choice_count - 1;
    else
        l->sight.chosen = (l->sight.chosen + by + step->choice_count) % step->choice_count;
}

void action_lesson_up(Ui *ui)
{
    move(ui, -1);
}
void action_lesson_down(Ui *ui)
{
    move(ui, 1);
}
void action_lesson_page_up(Ui *ui)
{
    ui->lessons.scroll -= 8;
}
void action_lesson_page_down(Ui *ui)
{
    ui->lessons.scroll += 8;
}

/* A key that a number or its unit goes on with; any other is what it is without a question. */
static bool goes_on(const Lessons *l, const LessonStep *step, uint32_t key)
{
    char text[sizeof(l->field.text) + 2];

    if (key == K_BACK || key == K_CONTROL('U'))
        return l->field.length > 0;
    if (key < ' ' || key > '~')
        return false;
    snprintf(text, sizeof(text), "%s%c", l->judged ? "" : l->field.text, (char)key);
    return text[0] != ' ' && lesson_number_begins(text, step->unit);
}

/* A number that was wrong goes when the next one begins; Backspace mends it. */
static bool type_number(Lessons *l, const LessonStep *step, uint32_t key)
{
    if (!goes_on(l, step, key))
        return false;
    if (l->judged && key != K_BACK)
        field_set(&l->field, "");
    l->judged = false;
    return field_key(&l->field, key);
}

/* Letters choose; digits are typed where a number is asked for. */
bool lessons_key(Ui *ui, uint32_t key)
{
    Lessons          *l = &ui->lessons;
    const LessonStep *step = &l->running->steps[l->step];

    if (l->sight.answered || step->ask == LESSON_ASKS_NOTHING)
        return false;
    if (step->ask == LESSON_ASKS_NUMBER)
        return type_number(l, step, key);
    key |= 0x20; /* A as a */
    if (key < 'a' || key >= 'a' + (uint32_t)step->choice_count)
        return false;
    l->sight.chosen = (int)(key - 'a');
    return true;
}
