/* test_query_picture.c -- the picture of a query keeps the result that it is of: a freed one might
 * get its address back, and an old picture would pass for one of the new result. */

#include "check.h"
#include "ui/shell/actions.h"
#include "ui/state/panes.h"

#define ROWS 24
#define COLS 80

static Result *result_of(Session *s, const char *words)
{
    Request request = REQUEST_INIT;
    Error   err = ERROR_INIT;
    Result *result;

    CHECK(request_parse(s, &request, words, &err), "%s", err.text);
    result = session_run(s, &request, &err);
    CHECK(result, "%s", err.text);
    CHECK(result->run->err.code == ERR_NONE, "%s", result->run->err.text);
    request_free(&request);
    return result;
}

/* An explorer with one pane and a terminal of cells alone. */
static Ui *open_ui(void)
{
    Error err = ERROR_INIT;
    Ui   *ui = calloc(1, sizeof(*ui));

    assert_non_null(ui);
    ui->session = session_new(&err);
    assert_true(session_load(ui->session, "synthetic:normal(n=16,d=8)", NULL, &err));
    ui->term = calloc(1, sizeof(*ui->term));
    *ui->term = (Term){ .rows = ROWS, .cols = COLS, .utf8 = true, .half_block = true,
                        .colours = TERM_256, .cells = calloc(ROWS * COLS, sizeof(TermCell)) };
    ui->screens = screens;
    ui->screen = SCREEN_COMPARE;
    ui->compare.count = 1;
    ui->compare.panes[0] = pane_new();
    ui->compare.panes[0].canvas = (Area){ 1, 1, 10, 10 };
    return ui;
}

static void show(Ui *ui, Result *result)
{
    Pane *pane = &ui->compare.panes[0];

    pane->result = result;
    pane->pinned = run_view(result->run, "connectivity");
    assert_non_null(pane->pinned);
    screen_span.draw(ui, (Area){ 0, 0, ROWS, COLS });
    assert_string_equal(ui->spanning.problem, "");
    assert_non_null(ui->spanning.grid.cells);
}

static void close_ui(Ui *ui)
{
    ui->compare.panes[0].result = NULL;
    pane_close(ui, &ui->compare.panes[0]);
    free(ui->term->cells);
    free(ui->term);
    session_free(ui->session);
    free(ui);
}

TEST(a_picture_keeps_its_result_until_the_next)
{
    Ui     *ui = open_ui();
    Result *first = result_of(ui->session, "image-local-2d(width=4)");
    Result *second = result_of(ui->session, "image-local-2d(width=8)");
    int     alone = first->references;

    assert_int_equal(second->references, alone);
    show(ui, first);
    assert_int_equal(first->references, alone + 1);
    show(ui, first); /* is the same picture */
    assert_int_equal(first->references, alone + 1);
    show(ui, second);
    assert_int_equal(first->references, alone);
    assert_int_equal(second->references, alone + 1);
    screen_span.close(ui);
    assert_int_equal(second->references, alone);
    show(ui, second);
    screen_span.end(ui);
    assert_int_equal(second->references, alone);
    result_release(first);
    result_release(second);
    close_ui(ui);
}

SUITE(NULL, NULL)
