/* test_draw_range.c -- the numbers at colours, and the words of component bits. */

#include "check.h"
#include "draw/figure/figure.h"
#include "draw/page/sheet.h"

static void assert_spread(const Panel *panel, double lo, double hi, double want_lo,
                          double want_hi)
{
    panel_spread(panel, &lo, &hi);
    assert_true(fabs(lo - want_lo) <= 1e-12 && fabs(hi - want_hi) <= 1e-12);
}

TEST(two_colours_part_at_the_centre)
{
    View  view = { .name = "gate", .kind = VIEW_SIGNED, .dtype = DT_F32, .rank = 2,
                   .shape = { 2, 2 } };
    Panel panel;

    panel_init(&panel, &view, NULL, 0, NULL);
    assert_spread(&panel, -1, 3, -3, 3);
    view.centre = 1;
    assert_spread(&panel, 0.5, 3, -1, 3);
    assert_spread(&panel, -4, 0, -4, 6);
    panel.minus = &view; /* a difference is about 0 whatever it is the difference of */
    assert_spread(&panel, -1, 3, -3, 3);
    panel.minus = NULL;
    view.kind = VIEW_WEIGHTS;
    panel_init(&panel, &view, NULL, 0, NULL);
    assert_spread(&panel, 0.25, 3, 0, 3);
    panel.minus = &view; /* of weights, rounding is no finding */
    assert_spread(&panel, -1e-7, 3e-7, -1e-5, 1e-5);
    assert_spread(&panel, -2e-5, 0, -2e-5, 2e-5);
}

TEST(values_on_one_side_need_one_end)
{
    View  view = { .name = "bias", .kind = VIEW_SIGNED, .dtype = DT_F32, .rank = 2,
                   .shape = { 2, 2 } };
    Panel panel;

    panel_init(&panel, &view, NULL, 0, NULL);
    assert_true(panel_has_one_side(&panel, -3, 0) && panel_has_one_side(&panel, 0.5, 2));
    assert_false(panel_has_one_side(&panel, -3, 0.1) || panel_has_one_side(&panel, 0, 0));
    view.centre = 1;
    assert_true(!panel_has_one_side(&panel, 0.5, 2) && panel_has_one_side(&panel, -3, 1));
    panel.map_given = true; /* somebody wants both ends */
    assert_false(panel_has_one_side(&panel, -3, 1));
    panel.map_given = false;
    panel.minus = &view; /* a difference has two sides whatever its values */
    assert_false(panel_has_one_side(&panel, -3, -1));
}

TEST(numbers_tell_the_ends_apart)
{
    assert_int_equal(range_digits(0, 1), 3);
    assert_int_equal(range_digits(-2e-5, 2e-5), 3);
    assert_int_equal(range_digits(0, 0), 3);
    assert_int_equal(range_digits(0.999, 1.001), 6);
    assert_int_equal(range_digits(1, 1 + 1e-13), 7);
}

static int bar_ticks(Panel *panel, int most, double *places, char (*texts)[24])
{
    Sheet sheet = { .scene.panels = panel };

    return sheet_bar_ticks(&sheet, 0, most, places, texts);
}

static int ticks(double lo, double hi, int most, double *places, char (*texts)[24])
{
    View  view = { .kind = VIEW_WEIGHTS };
    Panel panel = { .view = &view, .lo = lo, .hi = hi };

    return bar_ticks(&panel, most, places, texts);
}

/* A colour between a value's and the image's would be another value's. */
TEST(a_value_on_an_image_has_the_colour_of_its_bar)
{
    static const float values[] = { 1, 0.5f, 0.2f, 0.01f }, pixels[] = { 0.8f, 0.8f, 0.8f, 0.8f };
    View        view = { .name = "row", .kind = VIEW_WEIGHTS, .dtype = DT_F32, .rank = 2,
                         .shape = { 1, 4 } };
    Panel       panel;
    GridRequest request = { .view = &view, .region = { 0, 1, 0, 4 }, .rows = 1, .cols = 4 };
    Grid        grid;

    view.tensor = tensor_of(DT_F32, 2, view.shape, (void *)(uintptr_t)values);
    panel_init(&panel, &view, NULL, 0, NULL);
    panel.picture = true;
    panel.pixels = pixels;
    panel.pixel_count = 4;
    panel.mark_row = 9;
    assert_true(grid_reduce(&request, &grid, NULL));
    for (int k = 0; k < 4; k++) {
        Rgb is = panel_paint(&panel, &grid, 0, k, PAGE_LEVELS, false).rgb;
        Rgb bar = colour_of_value(panel.map, round(254 * (double)values[k]) / 254);
        Rgb want = values[k] > 0.05f ? bar : (Rgb){ 204, 204, 204 };

        CHECK(is.r == want.r && is.g == want.g && is.b == want.b, "%g: %d %d %d, not %d %d %d",
              (double)values[k], is.r, is.g, is.b, want.r, want.g, want.b);
        assert_int_equal(panel_lets_through(&panel, (double)values[k]), values[k] < 0.05f);
    }
    grid_free(&grid);
}

/* 1/6 of 0.2 is the border of two of five levels; a difference of 0 has a sign of its own. */
TEST(equal_weights_have_one_level)
{
    enum { LEVELS = 5 };
    static const float values[] = { 0.2f, 0.16666667f, 0.166666f, 0.166f, 0 };
    static const int   levels[] = { 4, 4, 4, 3, 1 };
    View        view = { .name = "row", .kind = VIEW_WEIGHTS, .dtype = DT_F32, .rank = 2,
                         .shape = { 1, 5 } };
    Panel       panel;
    GridRequest request = { .view = &view, .region = { 0, 1, 0, 5 }, .rows = 1, .cols = 5 };
    Grid        grid;

    view.tensor = tensor_of(DT_F32, 2, view.shape, (void *)(uintptr_t)values);
    panel_init(&panel, &view, NULL, 0, NULL);
    assert_true(grid_reduce(&request, &grid, NULL));
    for (int k = 0; k < 5; k++)
        assert_int_equal(panel_paint(&panel, &grid, 0, k, LEVELS, false).level, levels[k]);
    grid_free(&grid);
}

TEST(a_bar_has_two_numbers_at_least)
{
    double places[SHEET_TICKS];
    char   texts[SHEET_TICKS][24];

    for (double hi = 0.1; hi < 20; hi *= 1.03)
        for (int most = 2; most <= 6; most++) {
            int count = ticks(-hi, hi, most, places, texts);

            assert_in_range(count, 2, 6);
            for (int k = 0; k < count; k++)
                assert_true(places[k] >= 0 && places[k] <= 1 && (!k || places[k] > places[k - 1]));
        }
    assert_int_equal(ticks(-0.47, 0.47, 3, places, texts), 5);
    assert_string_equal(texts[0], "\xE2\x88\x92" "0.4");
    assert_int_equal(ticks(0.9998, 1.0002, 5, places, texts), 5);
    assert_string_equal(texts[1], "0.9999");
    assert_string_equal(texts[2], "1");
}

/* The middle of the bar is zero, and each quarter two decades: its numbers say so. */
TEST(a_logarithmic_bar_of_both_sides_is_true)
{
    static const char *const expected[] = { "\xE2\x88\x92" "0.5", "\xE2\x88\x92" "0.005", "0",
                                            "0.005", "0.5" };
    double places[SHEET_TICKS];
    char   texts[SHEET_TICKS][24];
    View   view = { .kind = VIEW_SIGNED };
    Panel  panel = { .view = &view, .lo = -0.5, .hi = 0.5, .pool = POOL_MAX, .scale = SCALE_LOG };

    assert_int_equal(bar_ticks(&panel, 6, places, texts), 5);
    for (int k = 0; k < 5; k++) {
        assert_string_equal(texts[k], expected[k]);
        assert_true(fabs(places[k] - k / 4.0) < 1e-9);
    }
}

/* Powers of ten at their places in the four decades, few enough for the bar. */
TEST(a_logarithmic_bar_has_powers_of_ten)
{
    double places[SHEET_TICKS];
    char   texts[SHEET_TICKS][24];
    View   view = { .kind = VIEW_WEIGHTS };
    Panel  panel = { .view = &view, .hi = 0.67, .pool = POOL_MAX, .scale = SCALE_LOG };

    assert_int_equal(bar_ticks(&panel, 6, places, texts), 4);
    assert_string_equal(texts[0], "10\u207B\u00B9"); /* all as powers, or none */
    assert_string_equal(texts[3], "10\u207B\u2074");
    assert_true(fabs(places[0] - (1 - log10(6.7) / 4)) < 1e-9);
    assert_int_equal(bar_ticks(&panel, 2, places, texts), 2);
    panel.hi = 1;
    assert_int_equal(bar_ticks(&panel, 6, places, texts), 5);
    assert_true(places[0] >= 1 && places[4] <= 0);
    assert_string_equal(texts[0], "1");
    assert_string_equal(texts[1], "10\u207B\u00B9");
    panel.hi = 50;
    assert_int_equal(bar_ticks(&panel, 6, places, texts), 4);
    assert_string_equal(texts[0], "10");
    assert_string_equal(texts[3], "0.01");
}

TEST(bits_have_the_words_of_their_view)
{
    View     plain = { .name = "components" }, own = plain, third = plain;
    BitNames names = { 0 };

    own.window = "convolution";
    own.other = "attention";
    third.window = "position";
    assert_string_equal(cause_name(&plain, COMPONENT_WINDOW), "window");
    assert_string_equal(cause_name(&own, COMPONENT_WINDOW), "convolution");
    assert_string_equal(cause_name(&own, COMPONENT_OTHER), "attention");
    assert_string_equal(cause_name(&own, COMPONENT_RANDOM), "random");
    bit_names_add(&names, &own, COMPONENT_WINDOW | COMPONENT_OTHER, NULL);
    assert_string_equal(names.name[0], "convolution");
    assert_string_equal(names.name[5], "attention");
    assert_string_equal(names.name[1], "");
    bit_names_add(&names, &own, COMPONENT_WINDOW, NULL);
    assert_string_equal(names.name[0], "convolution");
    for (int twice = 0; twice < 2; twice++) {
        bit_names_add(&names, &third, COMPONENT_WINDOW, NULL);
        assert_string_equal(names.name[0], "convolution / position");
    }
    third.window = "position of a token in the words before it and after it";
    bit_names_add(&names, &third, COMPONENT_WINDOW, NULL); /* no room */
    assert_string_equal(names.name[0], "window");
    bit_names_add(&names, &own, COMPONENT_WINDOW, NULL); /* and it stays so */
    assert_string_equal(names.name[0], "window");
}

/* The bit of what no round found is no round: the next one has the next number. */
TEST(bits_of_what_was_found_are_its_rounds)
{
    ViewFound found = { .rounds = VIEW_FOUND_ROUNDS };
    View      view = { .name = "found", .found = &found };
    int       round = 0;

    for (int bit = COMPONENT_WINDOW; bit <= COMPONENT_LAST; bit <<= 1) {
        char name[32];

        if (bit == COMPONENT_OTHER)
            continue;
        round++;
        snprintf(name, sizeof(name), "round %d%s", round,
                 round < VIEW_FOUND_ROUNDS ? "" : " or later");
        assert_string_equal(cause_name(&view, (uint8_t)bit), name);
    }
    assert_int_equal(round, VIEW_FOUND_ROUNDS);
    assert_null(strstr(cause_name(&view, COMPONENT_OTHER), "round"));
    found.rounds = 0;
    assert_string_equal(cause_name(&view, COMPONENT_WINDOW), "window");
}

/* Hops have colours of their own where a cell is the least, the most or the mean, not a count. */
TEST(hops_are_shown_as_hops_where_their_pool_is_one)
{
    View  view = { .name = "hops", .kind = VIEW_HOPS };
    Panel panel = { .view = &view };

    for (int pool = 0; pool < POOL_COUNT; pool++) {
        bool hops = pool == POOL_MIN || pool == POOL_MAX || pool == POOL_MEAN;

        panel.pool = (Pool)pool;
        assert_int_equal(panel_shows_hops(&panel), hops);
        assert_int_equal(panel_style(&panel), hops ? STYLE_HOPS : STYLE_VALUE);
        view.kind = VIEW_WEIGHTS;
        assert_false(panel_shows_hops(&panel));
        view.kind = VIEW_HOPS;
    }
    panel.pool = POOL_MIN;
    panel.minus = &view;
    assert_false(panel_shows_hops(&panel));
    assert_int_equal(panel_style(&panel), STYLE_VALUE);
}

TEST(bits_have_the_style_of_causes)
{
    static const ViewKind kinds[] = { VIEW_PATTERN, VIEW_COMPONENTS, VIEW_WEIGHTS };

    Arena         *a = arena_new();
    const Pattern *components = pattern_causal(a, (PatternShape){ .heads = 1, .n = 4, .m = 4 });
    View           view = { .name = "v" };
    Panel          panel = { .view = &view };

    for (int shown = 0; shown < 2; shown++) {
        panel.components = shown ? components : NULL;
        for (int k = 0; k < 3; k++) {
            view.kind = kinds[k];
            assert_int_equal(panel_style(&panel),
                             shown || k < 2 ? STYLE_CAUSE : STYLE_VALUE);
        }
    }
    arena_free(a);
}

SUITE(NULL, NULL)
