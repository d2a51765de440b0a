/* test_view_rows.c -- rows that are read together are those read alone, of every view of the
 * catalogue that offers it. */
#include "attn/run/view.h"
#include "unit/mech_fixture.h"
#include "unit/view_fixture.h"

#define KEYS 300 /* more than are read together */

/* 1e-6 of the row's largest: sums are cut elsewhere. */
static void compare_row(const View *view, int64_t plane, int64_t i, const float *together)
{
    float  alone[KEYS];
    double largest = 0;

    view_read(view, plane, i, 0, view_cols(view), 1, alone);
    for (int64_t j = 0; j < view_cols(view); j++)
        largest = fmax(largest, fabs((double)alone[j]));
    for (int64_t j = 0; j < view_cols(view); j++) {
        double off = fabs((double)alone[j] - (double)together[j]);

        if (!(off <= 1e-6 * largest))
            fprintf(stderr, "%s [%d,%d]: %g, alone %g\n", view->name, (int)i, (int)j,
                    (double)together[j], (double)alone[j]);
        assert_true(off <= 1e-6 * largest);
    }
}

static void compare(const View *view)
{
    static float rows[KEYS * KEYS];
    int64_t      m = view_cols(view), n = view_rows(view);

    assert_true(m <= KEYS && n <= KEYS);
    for (int64_t plane = 0; plane < view_planes(view); plane++) {
        view_read_rows(view, plane, 0, n, 0, m, rows, m);
        for (int64_t i = 0; i < n; i++)
            compare_row(view, plane, i, rows + i * m);
        view_read_rows(view, plane, n - 1, 1, 0, m, rows, m);
        compare_row(view, plane, n - 1, rows);
    }
}

/* How many views offer it; what cannot run on this input offers none. */
static int compare_views(const Mechanism *mechanism, const char *params, bool causal)
{
    Fixture f = fixture_new_x(KEYS - 7);
    Run    *run = fixture_run_at(&f, mechanism->id, params, causal, true, 0);
    int     found = 0;

    for (int v = 0; !run->err.code && v < run->view_count; v++)
        if (run->views[v].read_rows) {
            compare(&run->views[v]);
            found++;
        }
    fixture_free(&f);
    return found;
}

TEST(rows_together_are_rows_alone)
{
    int found = 0;

    for (size_t x = 0; mechanism_at(x); x++)
        for (int causal = 0; causal < 2; causal++)
            found += compare_views(mechanism_at(x), "", causal);
    assert_true(found >= 14);
    for (int causal = 0; causal < 2; causal++) {
        assert_true(compare_views(mechanism_find("dsa"), "index_dim=70", causal) > 0);
        assert_true(compare_views(mechanism_find("moba"), "block=5", causal) > 0);
        assert_true(compare_views(mechanism_find("quest"), "page=3", causal) > 0);
    }
    assert_true(compare_views(mechanism_find("rfa"), "gate=true", true) > 0);
    assert_true(compare_views(mechanism_find("performer"), "features=200", false) > 0);
    assert_true(compare_views(mechanism_find("performer"), "features=200", true) > 0);
    assert_true(compare_views(mechanism_find("linformer"), "k=130", false) > 0);
}

TEST(a_piece_of_a_row_is_that_part_and_nothing_beside_it)
{
    int found = 0;

    for (size_t x = 0; mechanism_at(x); x++)
        for (int causal = 0; causal < 2; causal++) {
            Fixture f = fixture_new_x(40);
            Run    *run = fixture_run_at(&f, mechanism_at(x)->id, "", causal, true, 0);

            for (int v = 0; !run->err.code && v < run->view_count; v++, found++)
                view_fixture_check(&run->views[v]);
            fixture_free(&f);
        }
    assert_true(found > 300);
}

/* How many views of the run are captioned by the mechanism's own words. */
static int check_words(const Run *run)
{
    int own = 0;

    for (int v = 0; !run->err.code && v < run->view_count; v++) {
        const View        *view = &run->views[v];
        const ViewPromise *p = run->mechanism->views;

        while (p && p->name && strcmp(p->name, view->name) != 0)
            p++;
        CHECK(!strcmp(view_words(view), p && p->name ? p->help : view_kind_meaning(view->kind)),
              "%s: %s: %s", run->mechanism->id, view->name, view_words(view));
        own += p && p->name;
    }
    return own;
}

TEST(a_view_has_the_words_of_its_mechanism)
{
    int own = 0;

    for (size_t x = 0; mechanism_at(x); x++)
        for (int causal = 0; causal < 2; causal++) {
            Fixture f = fixture_new_x(40);

            own += check_words(fixture_run_at(&f, mechanism_at(x)->id, "", causal, true, 0));
            fixture_free(&f);
        }
    assert_true(own > 300);
}

TEST(a_rectangle_is_inside_its_view)
{
    static const struct {
        int64_t plane, i, rows, j, cols;
        bool    inside;
    } cases[] = { { 1, 0, 9, 0, 9, true },   { 0, 8, 1, 8, 1, true },   { 0, 9, 0, 9, 0, true },
                  { 2, 0, 9, 0, 9, false },  { -1, 0, 9, 0, 9, false }, { 0, -1, 2, 0, 9, false },
                  { 0, 0, 9, -1, 2, false }, { 0, 1, 9, 0, 9, false },  { 0, 0, 9, 1, 9, false },
                  { 0, 0, -1, 0, 9, false }, { 0, 0, 9, 0, -1, false } };
    Fixture     f = fixture_new(9);
    const View *view = run_view(fixture_run(&f, "full", "", false), "weights");

    for (size_t x = 0; x < sizeof(cases) / sizeof(*cases); x++) {
        float cells[9 * 9];
        Error err = ERROR_INIT;
        bool  read = view_read_rect(view, cases[x].plane, cases[x].i, cases[x].rows, cases[x].j,
                                    cases[x].cols, cells, &err);

        CHECK(read == cases[x].inside, "case %zu: %s", x, err.text);
        assert_true(read || strstr(err.text, "are outside 2 planes of 9 x 9"));
    }
    fixture_free(&f);
}

SUITE(NULL, NULL)
