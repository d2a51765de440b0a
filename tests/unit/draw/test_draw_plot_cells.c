/* test_draw_plot_cells.c -- a plot in characters: no word hides another, no omission is silent. */

#include <jansson.h>

#include "draw/text/plot_cells.h"
#include "unit/plot_fixture.h"

static void text_of(const Plot *plot, int width, int height, bool utf8, char *out)
{
    PlotCells cells;
    Error     err = ERROR_INIT;

    CHECK(plot_cells(plot, width, height, utf8, &cells, &err), "%s", err.text);
    for (int i = 0; i < cells.width * cells.height; i++) {
        CHECK(utf8 || cells.cells[i].ch < 128, "not ASCII");
        *out++ = cells.cells[i].ch < 128 ? (char)cells.cells[i].ch : '~';
        if ((i + 1) % cells.width == 0)
            *out++ = '\n';
    }
    *out = '\0';
    plot_cells_free(&cells);
}

TEST(ascii_has_letters_ticks_and_names)
{
    Plot *plot = new_plot();
    char  text[4096];

    snprintf(plot->x.name, sizeof(plot->x.name), "layer");
    snprintf(plot->y.name, sizeof(plot->y.name), "error");
    add(plot, CURVE_LINE, 5, (double[]){ 0, 1, 2, 3, 4 });
    add(plot, CURVE_POINTS, 5, (double[]){ 4, 3, NAN, 1, 0 });
    plot_guide(plot, "rank 2", true, 2);
    plot_settle(plot);
    text_of(plot, 40, 16, false, text);
    CHECK(strstr(text, "o s  x s") && strstr(text, "error") && strstr(text, "layer"), "%s", text);
    CHECK(strstr(text, ": rank 2") && strstr(text, "ooo") && strstr(text, "4+"), "%s", text);
    text_of(plot, 40, 16, true, text);
    CHECK(strchr(text, '~'), "%s", text);
    plot_free(plot);
}

TEST(any_size_can_be_drawn)
{
    Plot *plot = new_plot();
    char  text[20000];

    add(plot, CURVE_BARS, 3, (double[]){ 1, 5, 2 });
    add(plot, CURVE_STEPS, 3, (double[]){ 1, 5, 2 });
    plot_settle(plot);
    for (int width = 0; width < 100; width += 7)
        for (int height = 0; height < 40; height += 3) {
            text_of(plot, width, height, true, text);
            text_of(plot, width, height, false, text);
        }
    plot_free(plot);
}

/* Names, values and axis names keep apart, and a number is there whole or not at all. */
TEST(rows_keep_numbers_whole)
{
    Plot       *plot = new_plot();
    PlotSeries *s = add(plot, CURVE_BARS, 2, (double[]){ 0, 1 });
    Error       err = ERROR_INIT;
    char        text[8000];

    assert_true(plot_rows(plot, 2, &err) && plot_label(s));
    snprintf(plot->rows[0], sizeof(plot->rows[0]), "full");
    snprintf(plot->rows[1], sizeof(plot->rows[1]), "performer");
    snprintf(s->labels[0], sizeof(s->labels[0]), "0.0421 ms");
    snprintf(s->labels[1], sizeof(s->labels[1]), "0.1234 ms");
    snprintf(plot->x.name, sizeof(plot->x.name), "a long name (milliseconds)");
    s->x[0] = 0.0421;
    s->x[1] = 0.1234;
    plot_settle(plot);
    for (int width = 12; width < 90; width++) {
        bool there;

        text_of(plot, width, 12, false, text);
        there = strstr(text, "0.0421 ms") != NULL;
        CHECK(there || !strstr(text, "0.04"), "a number is cut:\n%s", text);
        CHECK(!strstr(text, "full0"), "no gap:\n%s", text);
        CHECK(strstr(text, "(milliseconds)") || strstr(text, "~\n") || strstr(text, "~ \n"),
              "the name of the axis ends without a sign:\n%s", text);
        CHECK(there || width < 30, "there is room for the number:\n%s", text);
    }
    plot_free(plot);
}

/* As many letters as curves, though names are cut for it. */
TEST(every_curve_is_in_the_legend)
{
    static const char letters[] = "ox+*#@";
    Plot             *plot = new_plot();
    char              text[8000], name[40];

    for (int k = 0; k < 6; k++) {
        PlotSeries *s = add(plot, CURVE_LINE, 2, (double[]){ 1, 2 });

        snprintf(s->name, sizeof(s->name), "A long name of mechanism %c", 'a' + k);
        s->x[0] = 1;
        s->x[1] = 2;
    }
    plot_settle(plot);
    text_of(plot, 38, 14, true, text);
    for (int k = 0; k < 6; k++) {
        snprintf(name, sizeof(name), "%c A long", letters[k]);
        CHECK(strstr(text, name), "no '%s' in\n%s", name, text);
    }
    plot_free(plot);
}

/* Twelve curves with names such as those of stacks of layers. */
static Plot *many_names(void)
{
    Plot *plot = new_plot();

    for (int k = 0; k < 12; k++) {
        PlotSeries *s = add(plot, CURVE_LINE, 2, (double[]){ 1 + k, 2 + k });

        snprintf(s->name, sizeof(s->name), "(a window of %d keys, full) by 8", 100 + k);
    }
    plot_settle(plot);
    return plot;
}

/* A height of its own has room for whole names; letters do not repeat. */
TEST(many_curves_have_whole_names)
{
    static const char letters[] = "ox+*#@%&ABCD";
    Plot             *plot = many_names();
    char              text[9000], name[64];

    for (int width = 40; width <= 160; width += 40) {
        text_of(plot, width, plot_cells_lines(plot, width), true, text);
        for (int k = 0; k < 12; k++) {
            snprintf(name, sizeof(name), "%c (a window of %d keys, full) by 8", letters[k],
                     100 + k);
            CHECK(strstr(text, name), "no '%s' in\n%s", name, text);
        }
    }
    text_of(plot, 80, 24, false, text);
    CHECK(strstr(text, "D (a window of 111 keys, full) by 8"), "a pane:\n%s", text);
    plot_free(plot);
}

TEST(curves_without_room_for_names_are_counted)
{
    Plot *plot = many_names();
    char  text[9000];

    text_of(plot, 20, 14, true, text);
    CHECK(strstr(text, "o (a~") && !strstr(text, "+3"), "four lines have room for 20:\n%s", text);
    text_of(plot, 20, 10, true, text);
    CHECK(strstr(text, "+3\n") || strstr(text, "+3 "), "ten places, nine names:\n%s", text);
    plot_free(plot);
}

/* Rows that have no line are counted and named. */
TEST(rows_without_room_are_named)
{
    Plot       *plot = new_plot();
    PlotSeries *s = add(plot, CURVE_BARS, 4, (double[]){ 0, 1, 2, 3 });
    Error       err = ERROR_INIT;
    char        text[8000];

    assert_true(plot_rows(plot, 4, &err));
    for (int r = 0; r < 4; r++) {
        snprintf(plot->rows[r], sizeof(plot->rows[r]), "mechanism%d", r);
        s->x[r] = r + 1;
    }
    snprintf(plot->x.name, sizeof(plot->x.name), "mass");
    plot_settle(plot);
    text_of(plot, 60, 5, false, text);
    CHECK(strstr(text, "2 more: mechanism2, mecha"), "rows are dropped in silence:\n%s", text);
    text_of(plot, 60, 6, false, text);
    CHECK(strstr(text, "1 more: mechanism3"), "%s", text);
    text_of(plot, 60, 12, false, text);
    CHECK(strstr(text, "mechanism3") && !strstr(text, "more"), "%s", text);
    plot_free(plot);
}

/* Words beside points keep a blank from the name of a line. */
TEST(names_of_lines_keep_apart)
{
    char text[8000];

    for (int shift = 0; shift < 40; shift++) {
        Plot       *plot = new_plot();
        PlotSeries *line = add(plot, CURVE_LINE, 2, (double[]){ 10, 10 }), *points;

        line->guide = true;
        snprintf(line->name, sizeof(line->name), "ceiling");
        points = add(plot, CURVE_POINTS, 2, (double[]){ 9, 0 });
        points->x[0] = shift / 40.0;
        assert_true(plot_label(points));
        snprintf(points->labels[0], sizeof(points->labels[0]), "stage");
        plot_settle(plot);
        text_of(plot, 60, 12, false, text);
        CHECK(!strstr(text, "stageceiling") && !strstr(text, "ceilingstage"), "no gap:\n%s", text);
        CHECK(!strstr(text, "stagex") && !strstr(text, "xstage"), "no gap:\n%s", text);
        plot_free(plot);
    }
}

/* The key's entry, and the same number among the points. */
static bool is_numbered(const char *text, int point)
{
    char        entry[40], after[24], before[24];
    const char *key;

    for (int k = 1; k <= 12; k++) {
        snprintf(entry, sizeof(entry), "o%d the name of %c", k, 'a' + point);
        snprintf(after, sizeof(after), "o%d", k);
        snprintf(before, sizeof(before), "%do", k);
        key = strstr(text, entry);
        if (key)
            return strstr(text, after) < key || strstr(text, before);
    }
    return false;
}

/* Names in little room: beside their points, or numbered in a key below. */
TEST(names_without_room_are_numbered)
{
    char text[8000], name[24];
    bool numbered = false;

    for (int width = 48; width < 120; width += 6) {
        Plot       *plot = new_plot();
        PlotSeries *points = add(plot, CURVE_POINTS, 10,
                                 (double[]){ 1, 1, 2, 1, 1, 1, 2, 1, 1, 1 });

        assert_true(plot_label(points));
        for (int i = 0; i < 10; i++)
            snprintf(points->labels[i], sizeof(points->labels[i]), "the name of %c", 'a' + i);
        plot_settle(plot);
        text_of(plot, width, 20, false, text);
        for (int i = 0; i < 10; i++) {
            snprintf(name, sizeof(name), "the name of %c", 'a' + i);
            CHECK(strstr(text, name), "%s is nowhere:\n%s", name, text);
            numbered |= is_numbered(text, i);
        }
        for (int k = 1; k < 10; k++) {
            char number[16];

            snprintf(number, sizeof(number), "o%d the", k);
            if (strstr(text, number))
                CHECK(is_numbered(text, strstr(text, number)[strlen("o1 the name of ")] - 'a'),
                      "%d is on no point:\n%s", k, text);
        }
        plot_free(plot);
    }
    assert_true(numbered);
}

/* Without room for a key either, the field keeps its lines. */
TEST(a_key_leaves_the_points_their_room)
{
    Plot       *plot = new_plot();
    PlotSeries *points = add(plot, CURVE_POINTS, 9, (double[]){ 1, 1, 1, 1, 1, 1, 1, 1, 1 });
    char        text[4096];

    assert_true(plot_label(points));
    for (int i = 0; i < 9; i++)
        snprintf(points->labels[i], sizeof(points->labels[i]), "a name that is long %d", i);
    plot_settle(plot);
    text_of(plot, 30, 10, false, text);
    CHECK(strstr(text, "o") && !strstr(text, "o4 a name"), "%s", text);
    plot_free(plot);
}

/* An upright guide does not cut the name of a level one. */
TEST(names_of_guides_stay_whole)
{
    char text[8000];

    for (int at = 0; at <= 40; at++) {
        Plot *plot = new_plot();

        add(plot, CURVE_LINE, 2, (double[]){ 0, 1 })->x[1] = 40;
        plot_guide(plot, "level", false, 6);
        plot_guide(plot, "", true, at);
        plot_guide(plot, "", true, at > 5 ? at - 5 : at);
        plot_settle(plot);
        text_of(plot, 50, 12, false, text);
        CHECK(strstr(text, "level"), "guide at %d:\n%s", at, text);
        plot_free(plot);
    }
}

/* The name of a level guide keeps off a curve that ends on it. */
TEST(names_of_guides_keep_off_curves)
{
    Plot       *plot = new_plot();
    PlotSeries *s = add(plot, CURVE_LINE, 3, (double[]){ 0, 6, 12 });
    char        text[8000];
    const char *name, *line;

    s->x[1] = 37;
    s->x[2] = 40;
    plot_guide(plot, "a level name", false, 6);
    plot_settle(plot);
    text_of(plot, 60, 14, false, text);
    name = strstr(text, " a level name ");
    if (!name)
        name = strstr(text, "-a level name-");
    CHECK(name, "%s", text);
    for (line = name; line > text && line[-1] != '\n';)
        line--;
    CHECK(name - line < 38, "%s", text); /* left of the curve, not over it */
    plot_free(plot);
}

/* Busy points have a sign and a caption, and a stored plot keeps them. */
TEST(busy_points_are_told)
{
    Plot       *plot = new_plot(), *copy;
    PlotSeries *s = add(plot, CURVE_LINE, 3, (double[]){ 1, 5, 9 });
    char        text[8000], caption[PLOT_CAPTION];
    Error       err = ERROR_INIT;
    Text        json = { 0 };
    Json        out = jsonw_to(&json);
    json_t     *stored;

    assert_false(plot_any_busy(plot));
    assert_true(plot_busy(s, 1));
    plot_settle(plot);
    text_of(plot, 50, 12, false, text);
    assert_non_null(strchr(text, '!'));
    plot_caption(plot, false, caption, sizeof(caption));
    CHECK(strstr(caption, "ringed: more threads"), "%s", caption);
    plot_caption(plot, true, caption, sizeof(caption));
    CHECK(strstr(caption, "!: more threads"), "%s", caption);
    copy = plot_copy(plot, &err);
    assert_true(copy && copy->series[0].busy[1] && !copy->series[0].busy[0]);
    plot_free(copy);
    jsonw_open(&out, '{');
    plot_json(plot, &out);
    jsonw_close(&out, '}');
    stored = json_loads(text_str(&json), 0, NULL);
    copy = plot_of_json(stored, &err);
    CHECK(copy && copy->series[0].busy[1] && !copy->series[0].busy[2], "%s", err.text);
    plot_free(copy);
    assert_true(plot_busy(s, 0) && plot_busy(s, 2)); /* all: a sign would tell nothing apart */
    text_of(plot, 50, 12, false, text);
    assert_null(strchr(text, '!'));
    plot_caption(plot, false, caption, sizeof(caption));
    CHECK(strstr(caption, "all points: more threads"), "%s", caption);
    json_decref(stored);
    text_free(&json);
    plot_free(plot);
}

SUITE(NULL, NULL)
