/* test_scales.c -- which panels of a figure have one range of values, and which their own. */

#include "check.h"
#include "draw/page/sheet.h"

static View matrix(ViewKind kind, float *values)
{
    View view = { .name = "m", .kind = kind, .dtype = DT_F32, .rank = 2, .shape = { 8, 8 },
                  .stage = "", .rows = "query", .cols = "key", .iteration = -1, .step = -1 };

    view.tensor = tensor_of(DT_F32, 2, view.shape, values);
    return view;
}

/* Three panels in a row. */
static Figure *row_of(const View *a, const View *b, const View *c)
{
    const View *views[] = { a, b, c };
    Figure     *figure = figure_new(3, NULL);

    assert_non_null(figure);
    for (int k = 0; k < 3; k++)
        panel_init(&figure->panels[k], views[k], NULL, 0, "m");
    figure->rows = 1;
    figure->cols = 3;
    return figure;
}

static void plan_of(Sheet *sheet, const Figure *figure, double inches)
{
    *sheet = (Sheet){ .figure = figure, .style = sheet_style(&(PngOptions){ .dpi = 300 }) };
    sheet->width = (int)(inches * 300);
    assert_true(sheet_plan(sheet, NULL));
}

/* Signed values have no logarithmic scale by themselves: a panel that its neighbours' range would
 * leave empty has its own range and its own bar, both said. Asked to share, it shares, and its
 * caption has the values that its colours do not show. */
TEST(no_panel_is_left_empty_by_a_shared_scale)
{
    static const struct {
        ScaleSharing sharing;
        float        factor;
        bool         apart, told;
    } cases[] = {
        { SHARE_QUANTITIES, 0.01f, true, false }, { SHARE_QUANTITIES, 0.4f, false, false },
        { SHARE_ALL, 0.01f, false, true },        { SHARE_NONE, 0.01f, false, false },
    };
    static float signs[64], faint[64];
    View         view = matrix(VIEW_SIGNED, signs), low = matrix(VIEW_SIGNED, faint);
    Figure      *figure = row_of(&view, &low, &view);

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        bool  apart = cases[c].apart, none = cases[c].sharing == SHARE_NONE;
        Sheet sheet;
        char  caption[256];

        for (int k = 0; k < 64; k++) {
            signs[k] = (float)(k % 7) - 3;
            faint[k] = cases[c].factor * signs[k];
        }
        figure->sharing = cases[c].sharing;
        plan_of(&sheet, figure, 6);
        assert_int_equal(sheet.scene.panels[1].apart, apart);
        CHECK((sheet.scene.panels[1].hi < 0.1 * sheet.scene.panels[0].hi) == (apart || none),
              "%zu: %g, %g", c, sheet.scene.panels[0].hi, sheet.scene.panels[1].hi);
        assert_int_equal(sheet.needs[0].bar_w > 0, none);
        assert_int_equal(sheet.needs[1].bar_w > 0, apart || none);
        assert_true(sheet.needs[2].bar_w > 0);
        assert_string_equal(sheet_bar_note(&sheet, 1), apart ? "own scale" : none ? "" : "shared");
        assert_string_equal(sheet_bar_note(&sheet, 2), none ? "" : "shared");
        panel_caption(&sheet.scene.panels[1], &sheet.scene.grids[1], caption, sizeof(caption));
        CHECK(!strstr(caption, " of the scale") == !cases[c].told, "%zu: %s", c, caption);
        sheet_free(&sheet);
    }
    figure_free(figure);
}

/* Differences share one range, unless somebody wants it otherwise. */
TEST(differences_have_their_own_ranges_when_asked)
{
    static float values[64], zeros[64], halves[64];
    View         view = matrix(VIEW_WEIGHTS, values), none = matrix(VIEW_WEIGHTS, zeros);
    View         half = matrix(VIEW_WEIGHTS, halves);
    Figure      *figure = row_of(&view, &view, &view);

    for (int k = 0; k < 64; k++) {
        values[k] = 0.1f * (float)(k % 8);
        halves[k] = 0.5f * values[k];
    }
    figure->panels[1].minus = &none;
    figure->panels[2].minus = &half;
    for (int own = 0; own < 2; own++) {
        Sheet sheet;

        figure->sharing = own ? SHARE_NONE : SHARE_DIFFERENCES;
        plan_of(&sheet, figure, 6);
        assert_int_equal(sheet.needs[1].bar_w > 0, own);
        assert_true(sheet.needs[0].bar_w > 0 && sheet.needs[2].bar_w > 0);
        CHECK((sheet.scene.panels[2].hi < 0.6 * sheet.scene.panels[1].hi) == own, "%g, %g",
              sheet.scene.panels[1].hi, sheet.scene.panels[2].hi);
        sheet_free(&sheet);
    }
    figure_free(figure);
}

SUITE(NULL, NULL)
