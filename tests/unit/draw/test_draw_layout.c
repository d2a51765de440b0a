/* test_draw_layout.c -- the geometry of figures: inside, disjoint, non-empty.
 *
 * Needs are drawn at random; every layout must keep the promises of layout.h.  Needs whose layout
 * breaks one are made smaller, as long as it breaks one, and printed.
 */

#include "check.h"
#include "core/rng.h"
#include "draw/page/sheet.h"
#include "unit/page_fixture.h"

#define MOST_PANELS 9
#define MOST_BOXES (3 + 8 * MOST_PANELS)

static PanelNeed random_need(Rng *rng)
{
    static const int64_t sizes[] = { 1, 2, 4, 16, 48, 64, 100, 1000, 4096, 65536 };

    return (PanelNeed){
        .rows = sizes[rng_below(rng, 10)],
        .cols = sizes[rng_below(rng, 10)],
        .title_h = (int)rng_below(rng, 2) * 40,
        .row_axis_w = (int)rng_below(rng, 2) * 30,
        .col_axis_h = (int)rng_below(rng, 2) * 30,
        .row_labels_w = (int)rng_below(rng, 90),
        .col_labels_h = (int)rng_below(rng, 90),
        .bar_w = (int)rng_below(rng, 2) * 120,
        .caption_h = (int)rng_below(rng, 3) * 25,
    };
}

static int collect(const Layout *l, Box *boxes)
{
    int count = 0;

    boxes[count++] = l->title;
    boxes[count++] = l->footer;
    boxes[count++] = l->caption;
    for (int k = 0; k < l->count; k++) {
        const PanelBoxes *p = &l->panels[k];
        const Box own[] = { p->title, p->col_axis, p->col_labels, p->row_axis, p->row_labels,
                            p->matrix, p->bar, p->caption };

        memcpy(boxes + count, own, sizeof(own));
        count += 8;
    }
    return count;
}

static bool overlap(Box a, Box b)
{
    return a.w > 0 && a.h > 0 && b.w > 0 && b.h > 0 && a.x < b.x + b.w && b.x < a.x + a.w &&
           a.y < b.y + b.h && b.y < a.y + a.h;
}

/* NULL, or the promise that a panel breaks. */
static const char *panel_fault(const PanelNeed *need, const PanelBoxes *p)
{
    if (p->rows < 1 || p->rows > need->rows || p->cols < 1 || p->cols > need->cols)
        return "cells that the matrix has not";
    if (p->cell_w < 1 || p->cell_h < 1)
        return "a cell without a pixel";
    if (p->matrix.w / p->cols != p->cell_w || p->matrix.h / p->rows != p->cell_h)
        return "cells that differ by more than a pixel";
    if (p->title.w <= 0 || p->title.h != need->title_h || p->caption.h != need->caption_h)
        return "words of another height";
    return p->bar.w != need->bar_w || p->bar.h <= 0 ? "another bar" : NULL;
}

static const char *boxes_fault(const Layout *l)
{
    Box boxes[MOST_BOXES];
    int count = collect(l, boxes);

    for (int a = 0; a < count; a++) {
        if (boxes[a].x < 0 || boxes[a].y < 0 || boxes[a].x + boxes[a].w > l->width ||
            boxes[a].y + boxes[a].h > l->height)
            return "a box outside the sheet";
        for (int b = 0; b < a; b++)
            if (overlap(boxes[a], boxes[b]))
                return "boxes that overlap";
    }
    return NULL;
}

/* NULL, or what is wrong with the layout of these needs; *refused: there is none. */
static const char *layout_fault(const LayoutNeed *need, bool *refused)
{
    Layout      l;
    const char *fault;

    *refused = !layout_make(need, &l, NULL);
    if (*refused)
        return NULL;
    fault = l.width == need->width ? boxes_fault(&l) : "another width";
    for (int k = 0; !fault && k < l.count; k++)
        fault = panel_fault(&need->panels[k], &l.panels[k]);
    layout_free(&l);
    return fault;
}

static void place_strips(LayoutNeed *need, PanelPlace *places, int stack)
{
    bool strip[MOST_PANELS];

    for (int k = 0; k < need->count; k++)
        strip[k] = layout_is_strip(need->panels[k].rows, need->panels[k].cols);
    need->rows = layout_places(strip, need->count, need->cols, stack, places);
    need->places = places;
}

static LayoutNeed random_layout(Rng *rng, PanelNeed *panels, PanelPlace *places)
{
    LayoutNeed need = { .width = 300 + (int)rng_below(rng, 2500), .margin = 12, .gap = 30,
                        .fine = 2, .strip = 40, .panels = panels };

    need.count = 1 + (int)rng_below(rng, MOST_PANELS);
    need.cols = 1 + (int)rng_below(rng, (uint64_t)need.count);
    need.rows = (need.count + need.cols - 1) / need.cols;
    need.title_h = (int)rng_below(rng, 2) * 50;
    need.footer_h = (int)rng_below(rng, 2) * 50;
    need.caption_h = (int)rng_below(rng, 2) * 50;
    for (int k = 0; k < need.count; k++)
        panels[k] = random_need(rng);
    if (rng_below(rng, 2))
        place_strips(&need, places, (int)rng_below(rng, 4));
    return need;
}

/* Change `at` that makes needs smaller; false: it changes nothing, or there are no more of them. */
static bool make_smaller(LayoutNeed *need, PanelNeed *panels, int at, bool *more)
{
    int *const     words[] = { &need->title_h, &need->footer_h, &need->caption_h };
    const int      own = at - 5, k = own / 9;
    int *const     of[] = { &panels[k].title_h, &panels[k].row_axis_w, &panels[k].col_axis_h,
                            &panels[k].row_labels_w, &panels[k].col_labels_h, &panels[k].bar_w,
                            &panels[k].caption_h };
    int64_t *const sides[] = { &panels[k].rows, &panels[k].cols };
    int           *word = at < 3 ? words[at] : at >= 5 && own % 9 < 7 ? of[own % 9] : NULL;
    int64_t       *side = at >= 5 && own % 9 >= 7 ? sides[own % 9 - 7] : NULL;
    LayoutNeed     before = *need;

    *more = own < 9 * need->count;
    if (!*more)
        return false;
    if (word)
        *word = 0;
    else if (side)
        *side /= *side > 1 ? 2 : 1;
    else if (at == 3)
        need->width -= need->width / 8;
    else if (need->count > 1)
        need->count--;
    if (!need->places) {
        need->cols = need->cols < need->count ? need->cols : need->count;
        need->rows = (need->count + need->cols - 1) / need->cols;
    }
    return word || side || memcmp(&before, need, sizeof(before)) != 0;
}

/* The needs without all that the fault can do without, printed. */
static void tell_smallest(LayoutNeed need, PanelNeed *panels)
{
    bool more = true, refused;

    for (int at = 0; more; at++) {
        LayoutNeed kept = need;
        PanelNeed  kept_panels[MOST_PANELS];

        memcpy(kept_panels, panels, sizeof(kept_panels));
        if (!make_smaller(&need, panels, at, &more))
            continue;
        if (!layout_fault(&need, &refused)) {
            need = kept;
            memcpy(panels, kept_panels, sizeof(kept_panels));
        } else if (memcmp(&kept, &need, sizeof(need)) != 0 ||
                   memcmp(kept_panels, panels, sizeof(kept_panels)) != 0) {
            at = -1;
        }
    }
    fprintf(stderr, "width %d, %d x %d panels, title %d, footer %d, caption %d\n", need.width,
            need.rows, need.cols, need.title_h, need.footer_h, need.caption_h);
    for (int k = 0; k < need.count; k++)
        fprintf(stderr, "  [%d %d %d] %d x %d, title %d, axes %d %d, labels %d %d, bar %d, "
                "caption %d\n", need.places ? need.places[k].row : k / need.cols,
                need.places ? need.places[k].col : k % need.cols,
                need.places ? need.places[k].level : 0,
                (int)panels[k].rows, (int)panels[k].cols, panels[k].title_h, panels[k].row_axis_w,
                panels[k].col_axis_h, panels[k].row_labels_w, panels[k].col_labels_h,
                panels[k].bar_w, panels[k].caption_h);
    fail_msg("%s", layout_fault(&need, &refused));
}

TEST(random_layouts_keep_the_promises)
{
    Rng rng = rng_named(1, "layout");
    int made = 0;

    for (int trial = 0; trial < 2000; trial++) {
        PanelNeed  panels[MOST_PANELS] = { 0 };
        PanelPlace places[MOST_PANELS];
        LayoutNeed need = random_layout(&rng, panels, places);
        bool       refused;

        if (layout_fault(&need, &refused))
            tell_smallest(need, panels);
        made += !refused;
    }
    assert_true(made > 1000);
}

TEST(titles_of_bare_panels_keep_clear_of_the_bar)
{
    PanelNeed  panels[4];
    LayoutNeed need = { .width = 900, .margin = 12, .gap = 30, .fine = 2, .strip = 40, .rows = 2,
                        .cols = 2, .count = 4, .panels = panels };
    Layout     l;

    for (int k = 0; k < 4; k++)
        panels[k] = (PanelNeed){ .rows = 8, .cols = 8, .title_h = 40, .title_clear = true };
    panels[1].bar_w = 120;
    assert_true(layout_make(&need, &l, NULL));
    for (int k = 1; k < 4; k += 2) {
        const PanelBoxes *p = &l.panels[k];
        int left = p->matrix.x - p->title.x, right = p->title.x + p->title.w - p->bar.x;

        CHECK(right <= left + 1, "panel %d: %d, %d", k, left, right);
    }
    layout_free(&l);
}

/* A colour bar in the middle column takes no title's room: the last one's begins as far to the left
 * as the middle between the matrices. */
TEST(the_last_title_is_not_the_narrowest)
{
    PanelNeed  panels[3];
    LayoutNeed need = { .width = 900, .margin = 12, .gap = 30, .fine = 2, .strip = 40, .rows = 1,
                        .cols = 3, .count = 3, .panels = panels };
    Layout     l;

    for (int k = 0; k < 3; k++)
        panels[k] = (PanelNeed){ .rows = 8, .cols = 8, .title_h = 40, .row_labels_w = 30 };
    panels[1].bar_w = 120;
    assert_true(layout_make(&need, &l, NULL));
    for (int k = 1; k < 3; k++) {
        const PanelBoxes *a = &l.panels[k - 1], *b = &l.panels[k];
        int               middle = (a->matrix.x + a->matrix.w + b->matrix.x) / 2;

        CHECK(abs(b->title.x - middle) <= need.gap, "%d, %d", b->title.x, middle);
        CHECK(a->title.x + a->title.w < b->title.x, "%d", k);
    }
    layout_free(&l);
}

/* Alone, plots may be higher than the room is wide; beside a square they take its height. */
TEST(narrow_matrices_use_the_room)
{
    PanelNeed  panels[3] = { { .rows = 40, .cols = 8 }, { .rows = 40, .cols = 8 },
                             { .rows = 40, .cols = 8 } };
    LayoutNeed need = { .width = 1000, .margin = 10, .gap = 10, .fine = 2, .strip = 40, .rows = 1,
                        .cols = 3, .count = 3, .panels = panels };
    Layout     l;

    assert_true(layout_make(&need, &l, NULL));
    assert_true(l.narrow);
    assert_true(l.panels[0].matrix.h > 1.3 * l.room && l.panels[0].matrix.w > 0.5 * l.room);
    layout_free(&l);
    panels[1].cols = 40;
    assert_true(layout_make(&need, &l, NULL));
    assert_false(l.narrow);
    assert_int_equal(l.panels[0].matrix.h, l.panels[1].matrix.h);
    assert_true(l.panels[0].matrix.w < 0.4 * l.room);
    layout_free(&l);
}

/* A strip is as high beside a square as alone, and as wide as the square. */
TEST(strips_keep_their_height_beside_squares)
{
    for (int rows = 1; rows <= 4; rows += 3) {
        PanelNeed  panels[2] = { { .rows = rows, .cols = 48 }, { .rows = 48, .cols = 48 } };
        LayoutNeed need = { .width = 1000, .margin = 10, .gap = 10, .fine = 2, .strip = 20,
                            .rows = 1, .cols = 2, .count = 2, .panels = panels };
        Layout     l;
        int        beside;

        assert_true(layout_make(&need, &l, NULL));
        beside = l.panels[0].matrix.h;
        assert_int_equal(l.panels[0].matrix.w, l.panels[1].matrix.w);
        layout_free(&l);
        panels[1].rows = rows;
        assert_true(layout_make(&need, &l, NULL));
        assert_int_equal(l.panels[0].matrix.h, beside);
        CHECK(beside <= rows * 20 && beside >= rows * 10, "%d rows: %d", rows, beside);
        layout_free(&l);
    }
}

/* Three strips below one another are as high as the square beside them: from the top of its frame
 * to the bottom. */
TEST(strips_stand_below_one_another)
{
    static const bool strip[] = { true, true, true, false };
    PanelNeed         panels[4] = { { .rows = 1, .cols = 48 }, { .rows = 1, .cols = 48 },
                                    { .rows = 1, .cols = 48 }, { .rows = 48, .cols = 48 } };
    PanelPlace        places[4];
    LayoutNeed        need = { .width = 1000, .margin = 10, .gap = 10, .fine = 2, .strip = 20,
                               .cols = 2, .count = 4, .panels = panels, .places = places };
    Layout            l;
    Box               last, square;

    for (int k = 0; k < 4; k++)
        panels[k].title_h = panels[k].col_labels_h = panels[k].caption_h = 20;
    need.rows = layout_places(strip, 4, 2, 3, places);
    assert_int_equal(need.rows, 1);
    assert_true(places[2].level == 2 && places[2].col == 0 && places[3].col == 1);
    assert_true(layout_make(&need, &l, NULL));
    square = l.panels[3].matrix;
    last = l.panels[2].matrix;
    assert_int_equal(l.panels[0].matrix.y, square.y);
    CHECK(abs(last.y + last.h - square.y - square.h) <= 2, "%d, %d", last.y + last.h,
          square.y + square.h);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(l.panels[k].matrix.h, l.panels[0].matrix.h);
        assert_int_equal(l.panels[k].matrix.x, l.panels[0].matrix.x);
    }
    layout_free(&l);
}

/* Rows of strips and rows of others; stacks of even height. */
TEST(strips_have_rows_of_their_own)
{
    static const bool strip[] = { true, true, true, false, false, true, true, true, true };
    PanelPlace        at[9];

    assert_int_equal(layout_places(strip, 9, 4, 1, at), 3);
    assert_true(at[2].row == 0 && at[3].row == 1 && at[4].row == 1 && at[5].row == 2);
    assert_int_equal(layout_places(strip, 9, 8, 3, at), 1);
    assert_true(at[6].level == 1 && at[7].level == 0 && at[8].level == 1 && at[7].col == 4);
    assert_int_equal(layout_places(strip, 9, 4, 0, at), 3);
    for (int k = 0; k < 9; k++)
        assert_true(at[k].row == k / 4 && at[k].col == k % 4 && !at[k].level);
}

TEST(a_sheet_too_narrow_is_refused)
{
    PanelNeed  panels[4] = { { .rows = 8, .cols = 8, .row_labels_w = 100 },
                             { .rows = 8, .cols = 8, .row_labels_w = 100 },
                             { .rows = 8, .cols = 8, .row_labels_w = 100 },
                             { .rows = 8, .cols = 8, .row_labels_w = 100 } };
    LayoutNeed need = { .width = 300, .margin = 10, .gap = 10, .fine = 1, .strip = 10, .rows = 1,
                        .cols = 4, .count = 4, .panels = panels };
    Layout     l;
    Error      err = ERROR_INIT;

    assert_false(layout_make(&need, &l, &err));
    assert_non_null(strstr(err.text, "fewer columns"));
}

TEST(square_views_get_square_cells)
{
    PanelNeed  panel = { .rows = 48, .cols = 48 };
    LayoutNeed need = { .width = 1000, .margin = 10, .gap = 10, .fine = 2, .strip = 40, .rows = 1,
                        .cols = 1, .count = 1, .panels = &panel };
    Layout     l;

    for (int64_t n = 1; n < 5000; n = n * 2 + 1) {
        panel.rows = panel.cols = n;
        assert_true(layout_make(&need, &l, NULL));
        assert_int_equal(l.panels[0].cell_w, l.panels[0].cell_h);
        assert_int_equal(l.panels[0].rows, l.panels[0].cols);
        assert_true(l.panels[0].matrix.w > 980 / 2);
        if (n <= 980) /* one cell per entry as long as there are pixels */
            assert_int_equal(l.panels[0].rows, n);
        layout_free(&l);
    }
}

TEST(ticks_are_round_and_few)
{
    assert_int_equal(layout_tick_step(48, 8, false), 8);
    assert_int_equal(layout_tick_step(4096, 4, false), 1024);
    assert_int_equal(layout_tick_step(100, 5, false), 20);
    assert_int_equal(layout_tick_step(66, 8, false), 10);
    assert_int_equal(layout_tick_step(66, 9, true), 8); /* beside 64 */
    assert_int_equal(layout_tick_step(10, 10, false), 1);
    assert_int_equal(layout_tick_step(1000, 4, false), 500);
    for (int64_t n = 1; n < 3000; n++)
        for (int most = 1; most < 9; most++) {
            int64_t step = layout_tick_step(n, most, false);

            assert_true(step >= 1 && (n + step - 1) / step <= most);
        }
}

/* A number stays beside its name where there is room elsewhere. */

/* A parameter is what tells two panels apart: it is never left out. */
TEST(long_titles_stay_whole)
{
    WrapRule rule = wrap_columns(18, false);
    Lines    lines;

    assert_false(wrap_title("(f) Sliding window, window 129 \xC2\xB7 connectivity", &rule, &lines));
    assert_true(wrap_title_whole("(f) Sliding window, window 129 \xC2\xB7 connectivity", &rule,
                                 &lines));
    assert_int_equal(lines.count, 3);
    assert_string_equal(lines.text[0], "(f) Sliding");
    assert_string_equal(lines.text[1], "window, window 129");
    assert_string_equal(lines.text[2], "connectivity");
    assert_false(wrap_title_whole("(a) antidisestablishmentarianism", &rule, &lines));
}

TEST(titles_break_beside_no_equals_sign)
{
    WrapRule rule = wrap_columns(14, true);
    Lines    lines;

    assert_true(wrap_title("(a) random, r = 2", &rule, &lines));
    assert_int_equal(lines.count, 2);
    assert_string_equal(lines.text[0], "(a) random,");
    assert_string_equal(lines.text[1], "r = 2");
    rule = wrap_columns(9, true);
    assert_true(wrap_title("(b) m = 1/4", &rule, &lines));
    assert_string_equal(lines.text[1], "m = 1/4");
    rule = wrap_columns(8, true);
    assert_true(wrap_title("features = 64", &rule, &lines)); /* no other place */
    assert_string_equal(lines.text[0], "features");
}

/* What has no blank breaks behind its first joint, also where that is its first character. */
TEST(a_word_breaks_behind_a_leading_joint)
{
    WrapRule rule = wrap_columns(5, true);

    assert_int_equal(wrap_break("+abcdefgh", &rule), 1);
    assert_int_equal(wrap_break("a+bcdefgh", &rule), 2);
    assert_int_equal(wrap_break("abcdefghi", &rule), 5);
}

/* ---- figures ---------------------------------------------------------------- */

static int columns_of(const Figure *figure, double inches)
{
    Sheet sheet;
    int   cols;

    plan_of(&sheet, figure, inches);
    cols = sheet.cols;
    assert_true(sheet.rows * cols >= figure->count);
    sheet_free(&sheet);
    return cols;
}

/* Numbers of a second kind have paler colours; named categories are of no kind. */
TEST(only_numbers_of_another_kind_are_pale)
{
    static const char *const names[] = { "out", "in", NULL };
    static const int32_t     numbers[64] = { 0, 1 };
    static const char *const kinds[] = { "choices", "buckets", "chunks", "buckets" };
    static const bool        pale[] = { false, false, true, false };
    View    views[4];
    Figure *figure = matrices(&views[0], 4, "m");
    Sheet   sheet;

    for (int k = 0; k < 4; k++) {
        views[k] = views[0];
        snprintf(views[k].name, sizeof(views[k].name), "%s", kinds[k]);
        views[k].kind = VIEW_BUCKETS;
        views[k].categories = k ? NULL : names;
        views[k].tensor = tensor_of(DT_I32, 2, views[0].shape, (void *)(uintptr_t)numbers);
        panel_init(&figure->panels[k], &views[k], NULL, 0, "m");
    }
    plan_of(&sheet, figure, 6);
    for (int k = 0; k < 4; k++)
        assert_int_equal(sheet.scene.panels[k].pale, pale[k]);
    sheet_free(&sheet);
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

/* Titles are smaller, down to four fifths, before they take a second line. */
TEST(titles_get_smaller_before_they_break)
{
    View    view;
    Figure *figure = matrices(&view, 2, "Longformer \xC2\xB7 connectivity");
    bool    smaller = false;

    for (double inches = 2; inches < 6; inches += 0.05) {
        Sheet sheet;

        plan_of(&sheet, figure, inches);
        smaller = smaller || (sheet.title_font < sheet.style.title &&
                              sheet.panels[0].title.count == 1);
        CHECK(sheet.title_font >= 0.79 * sheet.style.title, "%g inches", inches);
        sheet_free(&sheet);
    }
    assert_true(smaller);
    figure_free(figure);
}

/* Many counts of layers have a bar of steps, each with its number in the middle; few have none. */
TEST(a_bar_of_layers_has_a_step_each)
{
    uint8_t hops[64];
    View    view;
    Figure *figure = matrices(&view, 2, "reach");
    Sheet   sheet;
    double  places[SHEET_TICKS];
    char    texts[SHEET_TICKS][24];

    view.kind = VIEW_HOPS;
    view.dtype = DT_U8;
    view.tensor = tensor_of(DT_U8, 2, view.shape, hops);
    figure->legend = true;
    for (int k = 0; k < 2; k++)
        panel_init(&figure->panels[k], &view, NULL, 0, "reach");
    for (int most = 2; most <= 6; most += 4) {
        for (int i = 0; i < 64; i++)
            hops[i] = (uint8_t)(1 + i % most);
        plan_of(&sheet, figure, 6);
        assert_int_equal(sheet_depths(&sheet), most > 2 ? most : 0);
        assert_false(sheet_has_bar(&sheet, 0)); /* one for both, beside the last */
        assert_int_equal(sheet_has_bar(&sheet, 1), most > 2);
        CHECK((sheet.item_count == 0) == (most > 2), "%d swatches", sheet.item_count);
        if (most > 2) {
            assert_int_equal(sheet_bar_ticks(&sheet, 1, 6, places, texts), most);
            for (int i = 0; i < most; i++) {
                CHECK_NEAR(places[i], (i + 0.5) / most, 1e-12);
                assert_int_equal(atoi(texts[i]), i + 1);
            }
        }
        sheet_free(&sheet);
    }
    figure_free(figure);
}

static Figure *bars_of(int count)
{
    Figure     *figure = figure_new(1, NULL);
    Plot       *plot = plot_new(NULL);
    PlotSeries *s = plot_add(plot, "time", CURVE_BARS, count, false);

    assert_true(plot_rows(plot, count, NULL) && plot_label(s));
    for (int i = 0; i < count; i++) {
        snprintf(plot->rows[i], sizeof(plot->rows[i]), "Full attention");
        snprintf(s->labels[i], sizeof(s->labels[i]), "0.42 ms");
        s->x[i] = 0.42;
        s->y[i] = i;
    }
    snprintf(plot->x.name, sizeof(plot->x.name), "time (ms)");
    plot_settle(plot);
    panel_init_plot(&figure->panels[0], plot, "time of one run");
    return figure;
}

/* A plot of one bar is as high as one bar needs, not as wide plots are, and keeps its words. */
TEST(one_bar_is_a_low_plot)
{
    int high[2];

    for (int bars = 1; bars <= 2; bars++) {
        Figure *figure = bars_of(bars);
        Sheet   sheet;

        plan_of(&sheet, figure, 3.25);
        high[bars - 1] = sheet.layout.panels[0].matrix.h;
        assert_true(figure->panels[0].made->x.lo <= 0); /* a bar begins at zero */
        CHECK(high[bars - 1] >= bars * sheet.style.tick, "%d pixels", high[bars - 1]);
        CHECK(high[bars - 1] < 0.3 * sheet.layout.panels[0].matrix.w, "%d pixels", high[bars - 1]);
        sheet_free(&sheet);
        figure_free(figure);
    }
    CHECK(abs(high[1] - 2 * high[0]) <= 1, "%d, %d", high[0], high[1]);
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

TEST(a_loose_grid_has_fewer_columns_where_it_is_narrow)
{
    View    view;
    Figure *figure = matrices(&view, 4, "temperature 0.5");

    assert_int_equal(layout_fewer_columns(4), 2);
    assert_int_equal(layout_fewer_columns(3), 2);
    assert_int_equal(layout_fewer_columns(1), 1);
    assert_int_equal(columns_of(figure, 3.25), 4); /* somebody wants it so */
    figure->loose = true;
    assert_int_equal(columns_of(figure, 3.25), 2);
    assert_int_equal(columns_of(figure, 1.2), 1);
    assert_int_equal(columns_of(figure, 6.75), 4);
    figure_free(figure);
}

/* Fourteen panels of which four are too wide for a row stand in rows of three. */
TEST(a_usual_arrangement_keeps_what_columns_it_can)
{
    View    view;
    Figure *figure = matrices(&view, 14, "a permutation_of_blocks");

    figure->rows = figure->cols = 0;
    assert_int_equal(columns_of(figure, 8), 4);
    assert_int_equal(columns_of(figure, 4.5), 3);
    figure_free(figure);
    figure = matrices(&view, 8, "a permutation_of_blocks"); /* full rows stay full */
    figure->rows = figure->cols = 0;
    assert_int_equal(columns_of(figure, 4.5), 2);
    figure_free(figure);
    figure = matrices(&view, 12, "a permutation_of_blocks"); /* two columns exceed a page */
    figure->rows = figure->cols = 0;
    assert_int_equal(columns_of(figure, 4.5), 3);
    figure_free(figure);
}

TEST(no_word_of_a_usual_arrangement_is_cut)
{
    View    view;
    Figure *figure = matrices(&view, 3, "short words");
    char   *title = figure->panels[1].title;
    size_t  size = sizeof(figure->panels[1].title);

    view.cols = "key";
    figure->rows = figure->cols = 0;
    assert_int_equal(columns_of(figure, 3.25), 3);
    snprintf(title, size, "a permutation_of_blocks");
    assert_int_equal(columns_of(figure, 3.25), 2);
    assert_int_equal(columns_of(figure, 6.75), 3);
    snprintf(title, size, "a permutation_of_blocks_of_keys_by_queries"); /* cut beside any other */
    assert_int_equal(columns_of(figure, 3.25), 3);
    snprintf(title, size, "short words");
    view.cols = "position of every key";
    assert_int_equal(columns_of(figure, 3.25), 2);
    figure_free(figure);
}

/* Pixels of the outermost columns on the right that are not paper. */
static int ink_at_the_edge(const Figure *figure, double inches)
{
    Sheet    sheet;
    int      width, height, ink = 0;
    uint8_t *pixels;

    plan_of(&sheet, figure, inches);
    canvas_free(sheet.canvas);
    sheet.canvas = canvas_new(CANVAS_PIXELS, sheet.layout.width, sheet.layout.height, 72, NULL,
                              &sheet.style.paper, NULL);
    sheet_draw(&sheet);
    pixels = canvas_pixels(sheet.canvas, &width, &height);
    assert_non_null(pixels);
    for (int y = 0; y < height; y++)
        for (int x = width - 4; x < width; x++)
            ink += pixels[4 * ((size_t)y * (size_t)width + (size_t)x)] < 255;
    free(pixels);
    sheet_free(&sheet);
    return ink;
}

TEST(names_of_curves_stay_on_the_sheet)
{
    View    view;
    Figure *figure = matrices(&view, 4, "m");
    Plot   *plot = plot_new(NULL);

    assert_non_null(plot);
    for (int k = 0; k < 3; k++) {
        PlotSeries *series = plot_add(plot, k ? "temperature=0.5 of the second kind" : "one",
                                      CURVE_LINE, 3, false);

        assert_non_null(series);
        for (int i = 0; i < 3; i++)
            series->x[i] = series->y[i] = i + k;
    }
    plot_settle(plot);
    panel_init_plot(&figure->panels[3], plot, "p");
    assert_int_equal(ink_at_the_edge(figure, 3.25), 0);
    assert_int_equal(ink_at_the_edge(figure, 6.75), 0);
    figure_free(figure);
}

/* Half-transparent strokes: nothing else is half-transparent in a figure of matrices. */
static int strokes_of(const Figure *figure, const char *theme)
{
    PngOptions options = { .theme = theme };
    Text       svg = { 0 };
    int        count = 0;

    assert_true(figure_file(figure, FORMAT_SVG_FILE, &options, &svg, NULL));
    for (const char *at = text_str(&svg); (at = strstr(at, "stroke-opacity=\"0.5\"")); at++)
        count++;
    text_free(&svg);
    return count;
}

/* A printer without colours shows -x and x as one grey: what is below zero has strokes. */
TEST(negative_differences_are_hatched_in_print)
{
    static const float zeros[64] = { 0 }, ones[64] = { [0 ... 63] = 1 };
    View               view, none, one;
    Figure            *figure = matrices(&view, 1, "m");

    none = one = view;
    none.tensor = tensor_of(DT_F32, 2, view.shape, (void *)(uintptr_t)zeros);
    one.tensor = tensor_of(DT_F32, 2, view.shape, (void *)(uintptr_t)ones);
    assert_int_equal(strokes_of(figure, "print"), 0); /* weights */
    figure->panels[0].minus = &one;
    assert_true(strokes_of(figure, "print") > 64); /* all but the cells of 1 are below zero */
    assert_int_equal(strokes_of(figure, "light"), 0);
    view.tensor = one.tensor;
    figure->panels[0].minus = &none;
    assert_true(strokes_of(figure, "print") < 64); /* only the lower half of the bar */
    figure_free(figure);
}

/* 1e-06 beside 0.0001 would be two ways to write one kind of number. */
TEST(small_numbers_of_a_logarithmic_axis_are_powers)
{
    View        view;
    Figure     *figure = matrices(&view, 1, "m");
    Plot       *plot = plot_new(NULL);
    PlotSeries *line = plot_add(plot, "line", CURVE_LINE, 2, false);
    char        text[24];

    assert_non_null(line);
    plot->y.log = true;
    for (int i = 0; i < 2; i++) {
        line->x[i] = i;
        line->y[i] = i ? 1 : 1e-8;
    }
    plot_settle(plot);
    panel_init_plot(&figure->panels[0], plot, "p");
    expect_words(figure, 3.25, "10\u207B\u2076");
    expect_words(figure, 3.25, "10\u2070");
    snprintf(text, sizeof(text), "2e-07");
    sheet_powers(text, sizeof(text));
    assert_string_equal(text, "2\u00B7" "10\u207B\u2077");
    figure_free(figure);
}

TEST(an_axis_that_is_reordered_is_named_apart)
{
    static const int32_t order[] = { 7, 6, 5, 4, 3, 2, 1, 0 };
    View                 view;
    Figure              *figure = matrices(&view, 2, "m");

    figure->rows = 2;
    figure->cols = 1;
    figure->panels[0].col_order = order;
    expect_words(figure, 3.25, "source block (reordered)");
    expect_words(figure, 3.25, "source block");
    figure_free(figure);
}

SUITE(NULL, NULL)
