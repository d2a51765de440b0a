/* test_lens.c -- what is in sight: the limits of panning, scrolling by what is needed, growth. */

#include "check.h"
#include "ui/pane/matrix.h"

/* 100 x 80 entries; 20 x 10 of them in sight, a pixel each. */
static const LensShape shape = { .rows = 100, .cols = 80, .height = 20, .width = 10, .tall = 1 };

static void check_sight(Lens *lens, int64_t row, int64_t col)
{
    LensView view = lens_view(lens, &shape);

    assert_int_equal(view.row.first, row);
    assert_int_equal(view.row.last, row + 20);
    assert_int_equal(view.col.first, col);
    assert_int_equal(view.col.last, col + 10);
}

TEST(a_pan_ends_at_the_edges)
{
    Lens lens = { .zoom = 1 };

    lens_pan(&lens, &shape, -1, -1);
    check_sight(&lens, 0, 0);
    lens_pan(&lens, &shape, 1, 1);
    check_sight(&lens, 1, 1);
    lens_pan(&lens, &shape, 79, 69);
    check_sight(&lens, 80, 70);
    lens_pan(&lens, &shape, 1, 1);
    check_sight(&lens, 80, 70);
    lens_pan(&lens, &shape, -1, -1);
    check_sight(&lens, 79, 69);
}

/* The cursor stays in sight: on the nearest entry that is. */
TEST(a_pan_takes_the_cursor_along)
{
    Lens lens = { .zoom = 1, .q = 5, .k = 5 };

    lens_pan(&lens, &shape, 5, 5);
    assert_true(lens.q == 5 && lens.k == 5);
    lens_pan(&lens, &shape, 1, 1);
    assert_true(lens.q == 6 && lens.k == 6);
    lens_pan(&lens, &shape, 30, 30);
    assert_true(lens.q == 36 && lens.k == 36);
    lens_pan(&lens, &shape, -17, -27);
    assert_true(lens.q == 36 && lens.k == 18); /* rows 19 to 38, columns 9 to 18 */
    lens_pan(&lens, &shape, -3, 0);
    assert_true(lens.q == 35 && lens.k == 18);
}

/* A cursor that would leave by one entry scrolls by one entry. */
TEST(a_move_scrolls_by_what_is_needed)
{
    Lens lens = { .zoom = 1 };

    lens_move(&lens, &shape, 19, 9);
    check_sight(&lens, 0, 0);
    lens_move(&lens, &shape, 1, 1);
    check_sight(&lens, 1, 1);
    lens_move(&lens, &shape, -19, -9);
    check_sight(&lens, 1, 1);
    lens_move(&lens, &shape, -1, -1);
    check_sight(&lens, 0, 0);
    lens_move(&lens, &shape, 1000, 1000);
    check_sight(&lens, 80, 70);
    assert_true(lens.q == 99 && lens.k == 79);
    lens_move(&lens, &shape, -1000, -1000);
    check_sight(&lens, 0, 0);
}

/* Where there is room for it an entry takes several pixels, all of the room; every entry has its
 * own pixels, and one entry at most one pixel more than another. */
TEST(entries_grow_into_the_room)
{
    LensShape large = { .rows = 64, .cols = 64, .height = 100, .width = 130, .tall = 1,
                        .even = true };
    Lens      lens = { 0 };
    LensView  view = lens_view(&lens, &large);
    int       before = 0;

    assert_int_equal(view.row.span, 100);
    assert_int_equal(view.col.span, 100);
    for (int64_t e = 0; e < 64; e++) {
        int first = lens_pixel(&view.row, e), end = lens_end(&view.row, e);

        assert_int_equal(first, before);
        assert_in_range(end - first, 1, 2);
        for (int pixel = first; pixel < end; pixel++)
            assert_int_equal(lens_entry(&view.row, pixel), e);
        before = end;
    }
    assert_int_equal(before, 100);
    assert_int_equal(lens_entry(&view.row, 100), -1);
}

/* No entry is larger than its neighbour where that would nearly double it, nor in a list. */
TEST(small_growth_and_lists_stay_even)
{
    LensShape small = { .rows = 64, .cols = 64, .height = 90, .width = 90, .tall = 1,
                        .even = true };
    LensShape list = { .rows = 4, .cols = 64, .height = 90, .width = 150, .tall = 1 };
    LensShape halves = { .rows = 64, .cols = 64, .height = 33, .width = 90, .tall = 1,
                         .even = true };
    Lens      lens = { 0 };
    LensView  view = lens_view(&lens, &small);

    assert_int_equal(view.row.span, 64);
    view = lens_view(&lens, &list);
    assert_int_equal(view.col.span, 128);
    view = lens_view(&lens, &halves);
    assert_int_equal(view.row.cells, 32); /* two entries in each cell */
}

SUITE(NULL, NULL)
