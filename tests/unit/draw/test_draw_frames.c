/* test_draw_frames.c -- frames beside and below each other have one size. */

#include "check.h"
#include "draw/page/layout.h"
#include "draw/page/sheet.h"

/* Bars below one of them change no frame beside it: a plot is as high, one row a line of the same
 * width. */
TEST(frames_beside_a_matrix_with_bars_are_as_high)
{
    PanelNeed  panels[3] = { { .rows = 48, .cols = 48, .load_h = 30 }, { .plot = true },
                             { .rows = 1, .cols = 48 } };
    LayoutNeed need = { .width = 600, .margin = 10, .gap = 10, .fine = 1, .strip = 8, .rows = 1,
                        .cols = 3, .count = 3, .panels = panels };
    Layout     l;

    assert_true(layout_make(&need, &l, NULL));
    assert_int_equal(l.panels[1].matrix.h, l.panels[0].matrix.h);
    assert_int_equal(l.panels[2].matrix.w, l.panels[0].matrix.w);
    assert_int_equal(l.panels[2].matrix.h, need.strip);
    layout_free(&l);
}

/* Of whatever numbers of cells, and of curves: what has the same room has the same frame. */
TEST(frames_of_equal_columns_are_equal_to_the_pixel)
{
    static const int64_t sizes[] = { 12, 33, 48, 64, 90, 500, 4096 };

    for (int width = 200; width < 2400; width = width * 5 / 4 + 1)
        for (int a = 0; a < 7; a++)
            for (int b = 0; b < 7; b++) {
                PanelNeed  panels[4] = { { .rows = sizes[a], .cols = sizes[a] },
                                         { .rows = sizes[b], .cols = sizes[b] },
                                         { .rows = 4, .cols = sizes[a] }, { .plot = true } };
                LayoutNeed need = { .width = width, .margin = 10, .gap = 10, .strip = 20,
                                    .fine = 1 + width / 800, .rows = 2, .cols = 2, .count = 4,
                                    .panels = panels };
                Layout     l;

                assert_true(layout_make(&need, &l, NULL));
                for (int k = 1; k < 4; k++)
                    CHECK(l.panels[k].matrix.w == l.panels[0].matrix.w,
                          "%lld and %lld entries in %d: %d and %d pixels", (long long)sizes[a],
                          (long long)sizes[b], width, l.panels[0].matrix.w, l.panels[k].matrix.w);
                assert_int_equal(l.panels[0].matrix.h, l.panels[1].matrix.h);
                assert_int_equal(l.panels[2].matrix.h, l.panels[3].matrix.h);
                assert_true(l.panels[0].matrix.w >= (sizes[a] == sizes[b] ? 0.5 : 0.8) * l.room);
                layout_free(&l);
            }
}

/* Of equal ones where these use most of the room, else of cells that differ by a pixel: 96 cells in
 * 150 pixels. */
TEST(cells_fill_the_room_of_a_given_width)
{
    static const int64_t sizes[] = { 12, 33, 48, 64, 96, 220, 500 };

    for (int width = 200; width < 2400; width = width * 21 / 20 + 1)
        for (int a = 0; a < 7; a++) {
            PanelNeed  panel = { .rows = sizes[a], .cols = sizes[a], .row_labels_w = 20 };
            PanelNeed  panels[3] = { panel, panel, panel };
            LayoutNeed need = { .width = width, .margin = 10, .gap = 10, .strip = 20, .fine = 1,
                                .rows = 1, .cols = 3, .count = 3, .panels = panels,
                                .fill = true };
            Layout     l;

            assert_true(layout_make(&need, &l, NULL));
            for (int k = 0; k < 3; k++) {
                const PanelBoxes *b = &l.panels[k];

                CHECK(b->matrix.w >= 0.85 * l.room, "%lld entries: %d of %d pixels",
                      (long long)sizes[a], b->matrix.w, l.room);
                assert_int_equal(b->matrix.w, b->matrix.h);
                CHECK(b->matrix.w % b->cols == 0 || b->matrix.w == l.room, "%lld entries in %d",
                      (long long)sizes[a], b->matrix.w);
            }
            layout_free(&l);
        }
}

/* Schedules of different length stand beside one another as high as the shortest; beside curves as
 * high as these. */
TEST(strips_of_several_rows_have_one_height)
{
    PanelNeed  panels[4] = { { .rows = 4, .cols = 8 }, { .rows = 4, .cols = 14 },
                             { .rows = 4, .cols = 22 }, { .plot = true } };
    LayoutNeed need = { .width = 800, .margin = 10, .gap = 10, .fine = 1, .strip = 8, .rows = 2,
                        .cols = 2, .count = 4, .panels = panels };
    Layout     l;

    assert_true(layout_make(&need, &l, NULL));
    assert_int_equal(l.panels[0].matrix.h, l.panels[1].matrix.h);
    assert_int_equal(l.panels[2].matrix.h, l.panels[3].matrix.h);
    layout_free(&l);
}

/* One row of cells above three matrices reaches across the page, up to its colour bar; one of
 * several rows, which would get high, and two in a row keep their columns. */
TEST(a_strip_alone_in_its_row_reaches_across)
{
    static const struct {
        int     first_rows;
        int     strips; /* in the first row */
        bool    across;
    } cases[] = { { 1, 1, true }, { 24, 1, false }, { 1, 2, false } };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        PanelNeed  panels[5] = { { .rows = cases[i].first_rows, .cols = 64, .bar_w = 40 } };
        PanelPlace places[5] = { { 0, 0, 0 } };
        int        at = cases[i].strips;
        LayoutNeed need = { .width = 800, .margin = 10, .gap = 10, .fine = 1, .strip = 8,
                            .rows = 2, .cols = 3, .count = at + 3, .panels = panels,
                            .places = places };
        Layout     l;

        panels[1] = panels[0];
        places[1] = (PanelPlace){ 0, 1, 0 };
        for (int k = 0; k < 3; k++) {
            panels[at + k] = (PanelNeed){ .rows = 64, .cols = 64, .row_labels_w = 30 };
            places[at + k] = (PanelPlace){ 1, k, 0 };
        }
        assert_true(layout_make(&need, &l, NULL));
        CHECK((l.panels[0].matrix.w > 2 * l.room) == cases[i].across, "%zu: %d pixels, room %d", i,
              l.panels[0].matrix.w, l.room);
        CHECK(l.panels[0].bar.x + l.panels[0].bar.w <= need.width - need.margin, "%zu: bar", i);
        CHECK(!cases[i].across || (l.panels[0].matrix.x <= l.panels[at].matrix.x &&
              l.panels[0].title.x == l.panels[0].matrix.x), "%zu: its left end %d, %d",
              i, l.panels[0].matrix.x, l.panels[at].matrix.x);
        CHECK(l.panels[at].matrix.w == l.panels[at + 2].matrix.w &&
              (l.room > 210) == cases[i].across, "%zu: the frames below, room %d", i, l.room);
        layout_free(&l);
    }
}

/* A colour bar in one column, and numbers of different width beside the frames. */
TEST(frames_stand_equally_far_apart)
{
    PanelNeed  panels[4] = { { .rows = 48, .cols = 48, .row_axis_w = 20, .row_labels_w = 30 },
                             { .rows = 48, .cols = 48, .row_labels_w = 30, .bar_w = 90 },
                             { .rows = 48, .cols = 48, .row_labels_w = 45 },
                             { .plot = true, .row_labels_w = 60 } };
    LayoutNeed need = { .width = 1600, .margin = 10, .gap = 10, .fine = 1, .strip = 8, .rows = 1,
                        .cols = 4, .count = 4, .panels = panels };
    int        gap = 0;
    Layout     l;

    assert_true(layout_make(&need, &l, NULL));
    for (int k = 1; k < 4; k++) {
        const Box *before = &l.panels[k - 1].matrix, *own = &l.panels[k].matrix;

        assert_true(k == 1 || own->x - before->x - before->w == gap);
        gap = own->x - before->x - before->w;
        assert_true(own->x >= l.panels[k - 1].bar.x + l.panels[k - 1].bar.w);
    }
    layout_free(&l);
}

/* Equal distances beside two wide gutters would make frames much narrower: they stand closer. */
TEST(frames_stay_wide_before_they_stand_equally)
{
    PanelNeed  panels[4] = { { .rows = 8, .cols = 8, .row_labels_w = 20 },
                             { .rows = 8, .cols = 8, .row_labels_w = 20 },
                             { .rows = 8, .cols = 8, .row_labels_w = 20, .bar_w = 50 },
                             { .plot = true, .row_labels_w = 60 } };
    LayoutNeed need = { .width = 620, .margin = 3, .gap = 10, .fine = 1, .strip = 8, .rows = 1,
                        .cols = 4, .count = 4, .panels = panels };
    Layout     l;

    assert_true(layout_make(&need, &l, NULL));
    assert_int_equal(l.panels[0].matrix.w, 96);
    assert_true(l.panels[1].matrix.x - l.panels[0].matrix.x - 96 < 60);
    layout_free(&l);
    need.width = 2000; /* here they cost little */
    assert_true(layout_make(&need, &l, NULL));
    assert_int_equal(l.panels[1].matrix.x - l.panels[0].matrix.x,
                     l.panels[3].matrix.x - l.panels[2].matrix.x);
    layout_free(&l);
}

/* The name of a bar makes one panel's numbers higher: the names of axes stay on one line. */
TEST(names_of_axes_stand_on_one_line)
{
    PanelNeed  panels[2] = { { .rows = 8, .cols = 8, .col_axis_h = 20, .col_labels_h = 15 },
                             { .rows = 8, .cols = 8, .col_axis_h = 20, .col_labels_h = 24 } };
    LayoutNeed need = { .width = 800, .margin = 10, .gap = 10, .fine = 1, .strip = 8, .rows = 1,
                        .cols = 2, .count = 2, .panels = panels };
    Layout     l;

    assert_true(layout_make(&need, &l, NULL));
    assert_int_equal(l.panels[0].col_axis.y, l.panels[1].col_axis.y);
    layout_free(&l);
}

/* On a page around the figure (--page), bands and marks stand where their lines do. */
TEST(areas_move_with_all_else)
{
    Rgb          paper = { 255, 255, 255 }, ink = { 0, 0, 0 };
    const double corners[3][2] = { { 1, 2 }, { 11, 2 }, { 1, 22 } };
    Canvas      *canvas = canvas_new(CANVAS_SVG, 40, 40, 72, NULL, &paper, NULL);
    Text         out = { 0 };

    assert_non_null(canvas);
    canvas_shift(canvas, 5, 7);
    canvas_polygon(canvas, corners, 3, ink, 1);
    assert_true(canvas_finish(canvas, "", NULL, &out, NULL));
    CHECK(strstr(text_str(&out), "M6 9L16 9L6 29Z"), "%s", text_str(&out));
    text_free(&out);
    canvas_free(canvas);
}

/* On each side it is as wide as the style says, and it covers its corners. */
TEST(a_frame_goes_around_its_matrix)
{
    const Box matrix = { .x = 10, .y = 8, .w = 20, .h = 12 };
    Rgb       paper = { 255, 255, 255 };
    Sheet     sheet = { .style = { .frame = 2 } };
    int       width, height;
    uint8_t  *pixels;

    sheet.canvas = canvas_new(CANVAS_PIXELS, 40, 30, 72, NULL, &paper, NULL);
    assert_non_null(sheet.canvas);
    sheet_frame(&sheet, matrix, (Rgb){ 0, 0, 0 });
    pixels = canvas_pixels(sheet.canvas, &width, &height);
    assert_non_null(pixels);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            bool out = x < 8 || x >= 32 || y < 6 || y >= 22;
            bool in = x >= 10 && x < 30 && y >= 8 && y < 20;

            CHECK(pixels[4 * (y * width + x)] == (out || in ? 255 : 0), "pixel %d, %d", x, y);
        }
    free(pixels);
    canvas_free(sheet.canvas);
}

SUITE(NULL, NULL)
