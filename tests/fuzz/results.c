/* results.c -- what the program wrote, as a stranger may have changed it: records of sweeps, the
 * metadata of figures, sessions of the explorer, and lessons. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/figure/picture.h"
#include "app/lesson/lesson.h"
#include "draw/figure/figure.h"
#include "profile/results.h"
#include "target.h"
#include "ui/state/workspace.h"

/* ---- records ------------------------------------------------------------------ */

static void read_rows(Results *results)
{
    results_latest(results, NULL);
    results_sort(results);
    for (int i = 0; i < results->count; i++) {
        const ResultRow *row = &results->rows[i];
        Text             name = { 0 };
        Number           median = row_number(row, "time_ms.median");

        target_assert(!median.valid || isfinite(median.value), "a time that is no number");
        target_assert(row_sample_count(row) >= 0, "fewer samples than none");
        row_name(results, row, &name);
        target_assert(results_find(results, row->key), "a row that its key does not find");
        text_free(&name);
    }
}

void feed_records(const uint8_t *data, size_t size)
{
    TargetFile file = target_file(data, size);
    Results    results = { 0 };
    Error      err = ERROR_INIT;

    if (results_read(file.path, 0, &results, &err))
        read_rows(&results);
    else
        target_message(&err);
    results_free(&results);
    target_command((const char *[]){ "fit", file.path }, 2);
    target_command((const char *[]){ "diff", file.path, file.path }, 3);
    target_file_close(&file);
}

/* ---- figures -------------------------------------------------------------------- */

void feed_figure(const uint8_t *data, size_t size)
{
    TargetFile    file = target_file(data, size);
    Error         err = ERROR_INIT;
    StoredFigure *stored = stored_figure_read(file.path, &err);
    char         *copy = stored ? stored_figure_copy(stored) : NULL;

    if (stored) {
        target_assert(*stored_figure_measured(stored) != '\0', "numbers that nothing measured");
        for (int k = 0; k < 4; k++)
            stored_figure_panel(stored, k);
        stored_figure_whole(stored);
        stored_figure_font(stored);
    }
    free(copy);
    stored_figure_free(stored);
    target_command((const char *[]){ "info", file.path }, 2);
    target_file_close(&file);
}

/* ---- sessions of the explorer ----------------------------------------------------- */

void feed_session(const uint8_t *data, size_t size)
{
    static Ui *ui;
    Workspace  saved, again;
    Text       first = { 0 }, second = { 0 };
    Error      err = ERROR_INIT;
    char      *text = target_text(data, size);

    if (!ui) {
        ui = calloc(1, sizeof(*ui));
        target_assert(ui, "no memory for the explorer");
        ui->session = target_session();
    }
    if (workspace_read(ui, "session", text, &saved, &err)) {
        workspace_write(&saved, &first);
        if (workspace_read(ui, "again", text_str(&first), &again, &err)) {
            workspace_write(&again, &second);
            target_assert(!strcmp(text_str(&first), text_str(&second)),
                          "a session that reads otherwise");
            workspace_free(&again);
        } else {
            target_assert(false, err.text);
        }
        workspace_free(&saved);
    } else {
        target_message(&err);
    }
    text_free(&first);
    text_free(&second);
    free(text);
}

/* ---- lessons ------------------------------------------------------------------------ */

static void show_step(const Lesson *lesson, int step)
{
    const LessonWords *words = lesson_shows(lesson, step);
    LessonFacts        facts = { .count = 0 };
    LessonSight        sight = { .chosen = -1, .hint = true, .lenient = true };
    LessonPage         page = { .count = 0 };
    LessonCall         call;
    Error              err = ERROR_INIT;

    if (!lesson_page(lesson, step, &facts, &sight, LESSON_PAGE_WIDTH, &page, &err))
        target_message(&err);
    lesson_page_free(&page);
    err = ERROR_INIT;
    if (words && words->count) {
        if (lesson_call(target_session(), lesson, words, &call, &err))
            lesson_call_free(&call);
        else
            target_message(&err);
    }
}

void feed_lesson(const uint8_t *data, size_t size)
{
    LessonFile file = { .id = "fuzzed", .bytes = data, .size = size };
    Error      err = ERROR_INIT;
    Lesson    *lesson = lesson_open(target_session(), &file, &err);

    if (!lesson)
        target_message(&err);
    for (int i = 0; lesson && i < lesson->count; i++)
        show_step(lesson, i);
    lesson_free(lesson);
}
