/* view_fixture.h -- what a view's reader promises: a piece of a row is that part of it, and nothing
 * beside the piece is written. */
#ifndef TESTS_UNIT_VIEW_FIXTURE_H
#define TESTS_UNIT_VIEW_FIXTURE_H

#include "attn/run/view.h"
#include "check.h"

#define VIEW_FIXTURE_KEYS 300
#define VIEW_FIXTURE_GUARD (-12345.5f)

/* A piece of row i and its neighbours in memory, which stay as they were. */
static inline void view_fixture_piece(const View *view, int64_t plane, int64_t i, PatternRun at)
{
    float   row[VIEW_FIXTURE_KEYS], piece[VIEW_FIXTURE_KEYS + 2];
    double  largest = 0;
    int64_t cols = view_cols(view);

    assert_true(cols <= VIEW_FIXTURE_KEYS);
    view_read(view, plane, i, 0, cols, 1, row);
    for (int64_t j = 0; j < cols; j++)
        largest = isfinite(row[j]) ? fmax(largest, fabs((double)row[j])) : largest;
    for (int64_t c = 0; c < at.count + 2; c++)
        piece[c] = VIEW_FIXTURE_GUARD;
    view_read(view, plane, i, at.start, at.count, at.step, piece + 1);
    for (int64_t c = 0; c < at.count; c++) {
        double part = (double)piece[1 + c], whole = (double)row[at.start + c * at.step];
        bool   same = part == whole || (isnan(part) && isnan(whole)) ||
                    fabs(part - whole) <= 1e-6 * largest;

        CHECK(same, "%s [%d,%d]: %g, in the row %g", view->name, (int)i,
              (int)(at.start + c * at.step), part, whole);
    }
    CHECK(piece[0] == VIEW_FIXTURE_GUARD && piece[at.count + 1] == VIEW_FIXTURE_GUARD,
          "%s: row %d, beside the piece", view->name, (int)i);
}

/* Pieces of the first, the middle and the last row of the last plane. */
static inline void view_fixture_check(const View *view)
{
    int64_t rows = view_rows(view), cols = view_cols(view), last = view_planes(view) - 1;

    for (int64_t x = 0; x < 3 && rows > 0 && cols > 1 && cols <= VIEW_FIXTURE_KEYS; x++) {
        int64_t i = x * (rows - 1) / 2;

        view_fixture_piece(view, last, i, (PatternRun){ .start = 0, .count = cols - 1, .step = 1 });
        view_fixture_piece(view, last, i, (PatternRun){ .start = 1, .count = cols - 1, .step = 1 });
        view_fixture_piece(view, last, i, (PatternRun){ .start = cols / 3, .count = 1, .step = 1 });
        view_fixture_piece(view, last, i, (PatternRun){ .start = 1, .count = cols / 2, .step = 2 });
    }
}

#endif
