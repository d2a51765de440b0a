/* test_draw_layout.c -- the geometry of figures: inside, disjoint, non-empty.
 *
 * Needs are drawn at random; every layout must keep the promises of layout.h.  Needs whose layout
 * breaks one are made smaller, as long as it breaks one, and printed.
 */

#include "check.h"
#include "core/rng.h"
#include "draw/page/layout.h"

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

SUITE(NULL, NULL)
