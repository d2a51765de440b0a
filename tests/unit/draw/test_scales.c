/* test_scales.c -- scales of panels: one range or their own, linear or logarithmic. */

#include "check.h"
#include "draw/page/sheet.h"
#include "unit/page_fixture.h"

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

/* Differences stand beside each other to be compared; values beside them keep their own range. */
TEST(differences_share_one_range)
{
    static const float zeros[64] = { 0 }, halves[64] = { 0, 0, 0, 0, 0, 0, 0, 0.5f };
    View               view, none, half;
    Figure            *figure = matrices(&view, 3, "m");
    Sheet              sheet;

    none = half = view;
    none.tensor = tensor_of(DT_F32, 2, view.shape, (void *)(uintptr_t)zeros);
    half.tensor = tensor_of(DT_F32, 2, view.shape, (void *)(uintptr_t)halves);
    figure->sharing = SHARE_DIFFERENCES;
    figure->panels[1].minus = &none;
    figure->panels[2].minus = &half;
    plan_of(&sheet, figure, 6);
    CHECK(sheet.scene.panels[1].hi >= 1 && sheet.scene.panels[1].hi <= sheet.scene.panels[2].hi,
          "%g, %g", sheet.scene.panels[1].hi, sheet.scene.panels[2].hi);
    assert_true(sheet.needs[0].bar_w && !sheet.needs[1].bar_w && sheet.needs[2].bar_w);
    sheet_free(&sheet);
    figure_free(figure);
}

/* One scale: one bar, which says so.  Where all of a panel would be dark it is logarithmic. */
TEST(a_shared_scale_is_said_and_leaves_no_panel_dark)
{
    static float faint[64];
    View         view, low;
    Figure      *figure = matrices(&view, 2, "m");
    Sheet        sheet;
    char         name[80];

    low = view;
    low.tensor = tensor_of(DT_F32, 2, view.shape, faint);
    for (int factor = 0; factor < 2; factor++) {
        for (int k = 0; k < 64; k++)
            faint[k] = ramp[k] * (factor ? 0.5f : 0.005f);
        figure->panels[1].view = &low;
        plan_of(&sheet, figure, 6);
        CHECK(sheet.scene.panels[1].hi >= sheet.scene.panels[0].hi, "%g, %g",
              sheet.scene.panels[0].hi, sheet.scene.panels[1].hi);
        assert_int_equal(sheet.scene.panels[0].scale, factor ? SCALE_LINEAR : SCALE_LOG);
        assert_int_equal(sheet.scene.panels[1].scale, factor ? SCALE_LINEAR : SCALE_LOG);
        assert_true(!sheet.needs[0].bar_w && sheet.needs[1].bar_w);
        sheet_bar_name(&sheet, 1, name, sizeof(name));
        assert_string_equal(name, "weight,");
        assert_true(sheet_bar_shared(&sheet, 1));
        sheet_free(&sheet);
    }
    figure->panels[1].lo = 0;
    figure->panels[1].hi = 0.25; /* ends that somebody chose are kept */
    plan_of(&sheet, figure, 6);
    CHECK(sheet.scene.panels[1].hi < 0.3, "%g", sheet.scene.panels[1].hi);
    assert_true(sheet.needs[0].bar_w && sheet.needs[1].bar_w);
    sheet_free(&sheet);
    figure_free(figure);
}

/* A matrix entry by entry: one large weight would leave the other rows in the darkest colour, so
 * its scale is logarithmic, and the bar says so. Rows that each have a large weight are as they
 * are. */
TEST(one_large_weight_leaves_no_dark_sheet)
{
    static float weights[64];
    View         view;
    Figure      *figure = matrices(&view, 1, "m");
    Sheet        sheet;
    char         name[80];

    view.tensor = tensor_of(DT_F32, 2, view.shape, weights);
    for (int large = 1; large <= 8; large += 7) {
        for (int k = 0; k < 64; k++)
            weights[k] = k % 9 == 0 && k / 9 < large ? 1 : 0.001f * (float)(1 + k % 5);
        plan_of(&sheet, figure, 3.25);
        assert_int_equal(sheet.scene.panels[0].scale, large == 1 ? SCALE_LOG : SCALE_LINEAR);
        sheet_bar_name(&sheet, 0, name, sizeof(name));
        assert_string_equal(name, large == 1 ? "weight," : "weight");
        assert_string_equal(sheet_bar_note(&sheet, 0), large == 1 ? "log" : "");
        sheet_free(&sheet);
    }
    figure->panels[0].scale_given = true;
    weights[63] = weights[54] = weights[45] = weights[36] = weights[27] = 0;
    plan_of(&sheet, figure, 3.25);
    assert_int_equal(sheet.scene.panels[0].scale, SCALE_LINEAR);
    sheet_free(&sheet);
    figure_free(figure);
}

/* A logarithmic scale reaches four decades down: a panel below them has its own range, and the
 * others a scale as if it were not there. */
TEST(weights_below_a_logarithmic_scale_stand_apart)
{
    static float tiny[64];
    View         view, low;
    Figure      *figure = matrices(&view, 3, "m");
    Sheet        sheet;

    low = view;
    low.tensor = tensor_of(DT_F32, 2, view.shape, tiny);
    figure->panels[1].view = &low;
    for (int all = 0; all < 2; all++) {
        figure->sharing = all ? SHARE_ALL : SHARE_QUANTITIES;
        for (int k = 0; k < 64; k++)
            tiny[k] = ramp[k] * 5e-5f;
        plan_of(&sheet, figure, 6);
        assert_int_equal(sheet.scene.panels[1].apart, !all);
        assert_int_equal(sheet.scene.panels[0].scale, all ? SCALE_LOG : SCALE_LINEAR);
        assert_int_equal(sheet.scene.panels[1].scale, all ? SCALE_LOG : SCALE_LINEAR);
        CHECK((sheet.scene.panels[1].hi < 1e-4 * sheet.scene.panels[0].hi) == !all, "%g",
              sheet.scene.panels[1].hi);
        sheet_free(&sheet);
    }
    figure_free(figure);
}

/* What is chosen for a matrix of few entries does not depend on the cells it is drawn with. */
TEST(fewer_cells_choose_the_same_scale)
{
    static float weights[64 * 64];
    View         view = matrix(VIEW_WEIGHTS, weights);
    Figure      *figure = figure_new(1, NULL);

    view.shape[0] = view.shape[1] = 64;
    view.tensor = tensor_of(DT_F32, 2, view.shape, weights);
    panel_init(&figure->panels[0], &view, NULL, 0, "m");
    for (int large = 2; large <= 64; large += 62) { /* rows with a large weight */
        for (int k = 0; k < 64 * 64; k++)
            weights[k] = k % 65 == 0 && k / 65 < large ? 1 : 0.001f * (float)(1 + k % 5);
        for (int64_t cells = 64; cells >= 4; cells /= 2) {
            CellCount count = { cells, cells };
            Scene     scene;

            assert_true(scene_make(&scene, figure, &count, NULL));
            CHECK(scene.panels[0].scale == (large == 2 ? SCALE_LOG : SCALE_LINEAR),
                  "%d large, %lld cells", large, (long long)cells);
            scene_free(&scene);
        }
    }
    figure_free(figure);
}

SUITE(NULL, NULL)
