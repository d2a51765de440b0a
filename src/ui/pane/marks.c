/* marks.c -- queries marked with a key, and their sum or mean; see marks.h. */
#include "ui/pane/marks.h"

#include <stdio.h>
#include <string.h>

#include "ui/screen/compare.h"
#include "ui/shell/actions.h"

bool marks_has(const Marks *marks, int64_t query)
{
    for (int k = 0; k < marks->count; k++)
        if (marks->at[k] == query)
            return true;
    return false;
}

static void take_out(Marks *marks, int64_t query)
{
    int kept = 0;

    for (int k = 0; k < marks->count; k++)
        if (marks->at[k] != query)
            marks->at[kept++] = marks->at[k];
    marks->count = kept;
}

bool marks_toggle(Marks *marks, int64_t query)
{
    int at = 0;

    if (marks_has(marks, query)) {
        take_out(marks, query);
        marks->version++;
        return true;
    }
    if (marks->count == MARGIN_QUERIES_MOST)
        return false;
    while (at < marks->count && marks->at[at] < query)
        at++;
    memmove(&marks->at[at + 1], &marks->at[at], (size_t)(marks->count - at) * sizeof(*marks->at));
    marks->at[at] = query;
    marks->count++;
    marks->version++;
    return true;
}

void marks_clear(Marks *marks)
{
    marks->count = 0;
    marks->version++;
}

/* ---- of a pane ---------------------------------------------------------------------- */

int pane_marked(Ui *ui, const Pane *pane, int64_t *queries)
{
    const Marks *marks = &ui->compare.marks;
    const View  *view = pane_view(pane);
    int          count = 0;

    for (int k = 0; view && !strcmp(view->rows, "query") && k < marks->count; k++)
        if (marks->at[k] < view_rows(view))
            queries[count++] = marks->at[k];
    return count;
}

/* ---- actions -------------------------------------------------------------------------- */

static void say(Ui *ui)
{
    const Marks *marks = &ui->compare.marks;
    const Pane  *pane = compare_focus(ui);

    if (!marks->count)
        ui_say(ui, ROLE_DIM, "no query is marked");
    else if (pane && pane_shows_missed(pane))
        ui_say(ui, ROLE_DIM, "%d quer%s marked; what was found has no %s: v goes to weights",
               marks->count, marks->count == 1 ? "y" : "ies", marks->summed ? "sum" : "mean");
    else
        ui_say(ui, ROLE_DIM, "%d quer%s marked; their %s is beside the matrix or behind Enter; # U",
               marks->count, marks->count == 1 ? "y" : "ies", marks->summed ? "sum" : "mean");
}

void action_mark_query(Ui *ui)
{
    Pane   *pane = compare_focus(ui);
    int64_t q, k;

    if (!pane || !pane_view(pane) || strcmp(pane_view(pane)->rows, "query") != 0) {
        ui_say(ui, ROLE_DIM, "only queries can be marked: v takes a view of queries and keys");
        return;
    }
    pane_cursor(pane, &q, &k);
    history_note(ui);
    if (marks_toggle(&ui->compare.marks, q))
        say(ui);
    else
        ui_say(ui, ROLE_WARN, "%d queries are marked; U unmarks all", MARGIN_QUERIES_MOST);
}

void action_marks_clear(Ui *ui)
{
    history_note(ui);
    marks_clear(&ui->compare.marks);
    say(ui);
}

void action_marks_sum(Ui *ui)
{
    ui->compare.marks.summed = !ui->compare.marks.summed;
    ui->compare.marks.version++;
    say(ui);
}
