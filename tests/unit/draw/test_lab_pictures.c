/* test_lab_pictures.c -- what the presets of the lab show. */

#include "preview.h"

static Plot *lab_plot(const Preview *p, int panel)
{
    Error err = ERROR_INIT;
    Plot *plot = panel_plot(&p->figure->panels[panel], &err);

    CHECK(plot, "%s", err.text);
    return plot;
}

static double highest(const PlotSeries *s)
{
    double most = 0;

    for (int64_t i = 0; i < s->count; i++)
        most = fmax(most, s->y[i]);
    return most;
}

/* Plain: up and down; reversible: flat; checkpointed: between them, with several tops. */
TEST(memory_over_time)
{
    Preview          *p = preview_open("lab-memory", 4);
    Plot             *plot = lab_plot(p, 0), *error = lab_plot(p, 1);
    const PlotSeries *plain = &plot->series[0], *reversible = &plot->series[1];
    const PlotSeries *saw = &plot->series[2];

    assert_int_equal(plot->count, 3);
    assert_true(highest(plain) > highest(saw) && highest(saw) > highest(reversible));
    for (int64_t i = 1; i < plain->count / 2; i++)
        assert_true(plain->y[i] > plain->y[i - 1]);
    for (int64_t i = plain->count / 2; i < plain->count - 1; i++)
        assert_true(plain->y[i] < plain->y[i - 1]);
    assert_true(plain->y[plain->count - 1] == plain->y[plain->count - 2]); /* its end */
    for (int64_t i = 2; i < reversible->count; i++)
        assert_true(reversible->y[i] == reversible->y[0] || reversible->y[i] == reversible->y[1]);
    assert_int_equal(error->count, 2);
    for (int k = 0; k < 2; k++) /* what is undone last has lost most; the end is where it began */
        assert_true(error->series[k].y[0] > error->series[k].y[error->series[k].count - 2]);
    plot_free(plot);
    plot_free(error);
    preview_close(p);
}

/* Idle cells are (d-1)/(m+d-1) of all; the curve says the same. */
TEST(a_bubble_shrinks)
{
    static const int64_t batches[] = { 1, 4, 8 };
    Preview             *p = preview_open("lab-gpipe", 4);
    Plot                *plot = lab_plot(p, 3);

    for (int panel = 0; panel < 3; panel++) {
        const View *view = p->figure->panels[panel].view;
        int64_t     idle = 0, cells = view_rows(view) * view_cols(view), m = batches[panel];
        double      bubble = 3.0 / ((double)m + 3);

        for (int64_t d = 0; d < view_rows(view); d++)
            for (int64_t t = 0; t < view_cols(view); t++)
                idle += shown(p, panel, d, t) == 0;
        CHECK_NEAR((double)idle / (double)cells, bubble, 1e-12);
        for (int64_t i = 0; i < plot->series[0].count; i++)
            if (plot->series[0].x[i] == (double)m)
                CHECK_NEAR(plot->series[0].y[i], bubble, 1e-6); /* read in float32 */
    }
    plot_free(plot);
    preview_close(p);
}

/* The line below a schedule counts from the first micro-batch to the last. */
TEST(a_schedule_names_its_micro_batches)
{
    Preview *p = preview_open("lab-gpipe", 4);
    Text     out = { 0 };
    Error    err = ERROR_INIT;

    CHECK(figure_text(p->figure, &(TextOptions){ .width = 100, .utf8 = true }, &out, &err), "%s",
          err.text);
    assert_non_null(strstr(text_str(&out), "micro-batch 0, 75 % idle"));
    assert_non_null(strstr(text_str(&out), "micro-batches 0 to 3, 42.9 % idle"));
    text_free(&out);
    preview_close(p);
}

/* The first head removed costs what its importance says. */
TEST(heads_are_removed_in_order)
{
    Preview          *p = preview_open("lab-heads", 2);
    Plot             *plot = lab_plot(p, 1);
    const PlotSeries *curve = &plot->series[0];
    double            least = INFINITY;

    for (int64_t l = 0; l < 6; l++)
        for (int64_t h = 0; h < 4; h++)
            least = fmin(least, shown(p, 0, l, h));
    assert_int_equal(curve->count, 25);
    assert_true(curve->y[0] == 0);
    CHECK_NEAR(curve->y[1], least, 1e-6); /* read in float32 */
    plot_free(plot);
    preview_close(p);
}

/* A halted token has no probability left; its ponder time is its steps plus a remainder. */
TEST(tokens_stop_pondering)
{
    Preview          *p = preview_open("lab-ponder", 2);
    Plot             *plot = lab_plot(p, 1);
    const View       *halting = p->figure->panels[0].view;
    const PlotSeries *ponder = &plot->series[0];

    for (int64_t i = 0; i < 48; i++) {
        int64_t steps = 0;

        for (int64_t t = 0; t < view_rows(halting); t++)
            steps += shown(p, 0, t, i) > 0;
        assert_true(ponder->y[i] > (double)steps && ponder->y[i] <= (double)steps + 2);
    }
    plot_free(plot);
    preview_close(p);
}

SUITE(NULL, NULL)
