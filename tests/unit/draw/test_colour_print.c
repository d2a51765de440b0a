/* test_colour_print.c -- the print theme without colours: which of them remain distinguishable. */

#include "app/figure/picture.h"
#include "check.h"
#include "draw/figure/scene.h"

#define PAPER 100.0

static const Rgb white = { 255, 255, 255 };

/* 9 L* can be distinguished side by side and in a legend, 20 at a glance. */
static double grey_apart(Rgb a, Rgb b)
{
    return fabs(colour_lightness(a) - colour_lightness(b));
}

static Rgb printed(uint8_t bit)
{
    return component_colour_in(HUES_PRINT, bit);
}

TEST(lightness_is_that_of_cielab)
{
    CHECK_NEAR(colour_lightness(white), PAPER, 1e-3); /* the coefficients have four digits */
    CHECK_NEAR(colour_lightness((Rgb){ 0, 0, 0 }), 0, 1e-9);
    CHECK_NEAR(colour_lightness((Rgb){ 119, 119, 119 }), 50.03, 0.01); /* tables say 50.03 */
    CHECK_NEAR(colour_lightness((Rgb){ 255, 0, 0 }), 53.24, 0.01);     /* 53.24 */
}

TEST(causes_are_told_apart_without_colours)
{
    const uint8_t often[] = { COMPONENT_WINDOW, COMPONENT_GLOBAL, COMPONENT_RANDOM };

    for (int a = 0; a < 8; a++) {
        CHECK(grey_apart(printed((uint8_t)(1 << a)), white) >= 9, "%s on paper",
              component_name((uint8_t)(1 << a)));
        for (int b = 0; b < a; b++)
            CHECK(grey_apart(printed((uint8_t)(1 << a)), printed((uint8_t)(1 << b))) >= 9,
                  "%s and %s", component_name((uint8_t)(1 << a)),
                  component_name((uint8_t)(1 << b)));
    }
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < a; b++)
            assert_true(grey_apart(printed(often[a]), printed(often[b])) >= 19);
    /* which the usual colours are not: that is why there are others */
    assert_true(grey_apart(colour_of_component(COMPONENT_GLOBAL),
                           colour_of_component(COMPONENT_RANDOM)) < 9);
}

/* Evenly added or removed light keeps the order of the channels. */
TEST(hues_keep_their_meaning)
{
    for (int bit = 1; bit <= COMPONENT_LAST; bit <<= 1) {
        Rgb a = colour_of_component((uint8_t)bit), b = printed((uint8_t)bit);

        assert_true((a.r >= a.g) == (b.r >= b.g));
        assert_true((a.g >= a.b) == (b.g >= b.b));
        assert_true((a.r >= a.b) == (b.r >= b.b));
        a = component_colour_in(HUES_SAFE, (uint8_t)bit); /* those of Okabe and Ito stay */
        b = colour_of_component((uint8_t)bit);
        assert_memory_equal(&a, &b, sizeof(a));
    }
}

TEST(categories_and_curves_are_told_apart_without_colours)
{
    for (int a = 0; a < 12; a++) {
        Rgb own = category_colour_in(HUES_PRINT, a);

        assert_true(grey_apart(own, white) >= 9);
        assert_true(a == 11 || grey_apart(own, category_colour_in(HUES_PRINT, a + 1)) >= 25);
        for (int b = 0; b < a; b++)
            assert_true(grey_apart(own, category_colour_in(HUES_PRINT, b)) >= 6);
    }
    for (int a = 0; a < 6; a++) {
        assert_true(grey_apart(plot_colour_printed(a), white) >= 28); /* lines are thin */
        for (int b = 0; b < a; b++)
            assert_true(grey_apart(plot_colour_printed(a), plot_colour_printed(b)) >= 10);
    }
    for (int a = 0; a < 12; a += 2) /* any forward is darker than any backward */
        for (int b = 1; b < 12; b += 2)
            assert_true(colour_lightness(schedule_colour(b, HUES_PRINT)) -
                            colour_lightness(schedule_colour(a, HUES_PRINT)) >= 15);
}

TEST(what_was_missed_is_darkest)
{
    static const double one = 1;
    ViewFound          found = { .rounds = 7, .share = &one };
    View               view = { .kind = VIEW_COMPONENTS, .found = &found };
    Rgb                missed = cause_colour_in(HUES_PRINT, &view, COMPONENT_OTHER);

    for (found.rounds = 0; found.rounds <= 7; found.rounds += 7)
        for (int bit = 1; bit <= COMPONENT_LAST; bit <<= 1)
            if (bit != COMPONENT_OTHER)
                CHECK(colour_lightness(cause_colour_in(HUES_PRINT, &view, (uint8_t)bit)) -
                              colour_lightness(missed) >= 9,
                      "%s", cause_name(&view, (uint8_t)bit));
}

/* The page is drawn with them: "#003e61" or alike is in the legend and nowhere else. */
static void expect_colour(const char *theme, bool there)
{
    const char *words[] = { "figure", "bigbird", "-n", "16", "-d", "4" };
    Rgb         rgb = printed(COMPONENT_WINDOW);
    PngOptions  options = { .theme = theme };
    Error       err = ERROR_INIT;
    Session    *s = session_new(&err);
    Text        svg = { 0 };
    FigureRun     drawing;
    Figure     *figure;
    Call        call;
    char        hex[16];

    assert_true(call_parse(&call, words, 6, &err));
    CHECK(figure_run_make(s, &call, true, &drawing, &err), "%s", err.text);
    figure = figure_run_draw(s, &call, &drawing, &err);
    CHECK(figure && figure_file(figure, FORMAT_SVG_FILE, &options, &svg, &err), "%s", err.text);
    snprintf(hex, sizeof(hex), "#%02x%02x%02x", rgb.r, rgb.g, rgb.b);
    CHECK((strstr(text_str(&svg), hex) != NULL) == there, "%s: %s", theme, hex);
    figure_free(figure);
    figure_run_free(&drawing);
    session_free(s);
    text_free(&svg);
}

/* The cells of a panel over an image that are darker than all of the image; *gap: by how many
 * L*. */
static int span_cells(const Scene *scene, int k, double *gap)
{
    const Grid *g = &scene->grids[k];
    double      image = PAPER, span = 0, limit = colour_lightness(picture_grey(HUES_PRINT)) - 0.1;
    int         count = 0;

    for (int64_t at = 0; at < g->rows * g->cols; at++) {
        Paint  paint = panel_paint(&scene->panels[k], g, at / g->cols, at % g->cols, 256, false);
        double light = colour_lightness(paint.rgb);

        if (light < limit)
            span = fmax(span, light);
        else
            image = fmin(image, light);
        count += light < limit;
    }
    *gap = image - span;
    return count;
}

/* Values and causes, the least of them too. */
TEST(spans_stand_out_of_an_image_without_colours)
{
    const char *words[] = { "figure", "axial", "image-local-2d", "--input", "sample:image.png",
                            "--span", "13,17" };
    CellCount   cells[2] = { { 32, 32 }, { 32, 32 } };
    Error       err = ERROR_INIT;
    Session    *s = session_new(&err);
    FigureRun   drawing;
    Figure     *figure;
    Scene       scene;
    Call        call;

    assert_true(call_parse(&call, words, 7, &err));
    CHECK(figure_run_make(s, &call, true, &drawing, &err), "%s", err.text);
    figure = figure_run_draw(s, &call, &drawing, &err);
    CHECK(figure, "%s", err.text);
    for (int k = 0; k < 2; k++) {
        figure->panels[k].hues = HUES_PRINT;
        figure->panels[k].map = MAP_INK;
    }
    CHECK(scene_make(&scene, figure, cells, &err), "%s", err.text);
    for (int k = 0; k < 2; k++) {
        double gap;
        int    count = span_cells(&scene, k, &gap);

        CHECK(count > 8 && count < 200 && gap > 5, "panel %d: %d cells, %g", k, count, gap);
    }
    scene_free(&scene);
    figure_free(figure);
    figure_run_free(&drawing);
    session_free(s);
}

/* Contrast as WCAG defines it, 1 to 21. */
static double contrast(Rgb a, Rgb b)
{
    double x = pow((colour_lightness(a) + 16) / 116, 3) + 0.05;
    double y = pow((colour_lightness(b) + 16) / 116, 3) + 0.05;

    return x > y ? x / y : y / x;
}

static const Rgb dark_paper = { 18, 18, 18 };

static double apart(Rgb a, Rgb b)
{
    return hypot(hypot(a.r - b.r, a.g - b.g), a.b - b.b);
}

/* Slides must be readable from the last row: areas need a contrast of 3. */
TEST(nothing_is_lost_on_dark_paper)
{
    for (int bit = 1; bit <= COMPONENT_LAST; bit <<= 1) {
        Rgb rgb = component_colour_in(HUES_DARK, (uint8_t)bit);

        CHECK(contrast(rgb, dark_paper) >= 3, "%s", component_name((uint8_t)bit));
        for (int other = 1; other < bit; other <<= 1)
            assert_true(apart(rgb, component_colour_in(HUES_DARK, (uint8_t)other)) >= 60);
    }
    for (int k = 0; k < 12; k++) {
        CHECK(contrast(category_colour_in(HUES_DARK, k), dark_paper) >= 3, "category %d", k);
        CHECK(contrast(schedule_colour(k, HUES_DARK), dark_paper) >= 3, "schedule %d", k);
        for (int other = 0; other < k; other++)
            CHECK(apart(category_colour_in(HUES_DARK, k),
                        category_colour_in(HUES_DARK, other)) >= 35, "%d and %d", k, other);
    }
    assert_true(contrast(lost_colour_in(HUES_DARK), dark_paper) >= 3);
    /* which the usual ones are not */
    assert_true(contrast(category_colour_in(HUES_USUAL, 7), dark_paper) < 1.5);
}

/* The least value that is there is no paper: white, and for grey, which begins dark, dark paper
 * and the explorer's matrix too.  Its ramp of 256 colours is a given one. */
TEST(values_keep_off_the_paper)
{
    const Rgb      matrix = { 0x1c, 0x1c, 0x1c }, light = { 0xee, 0xee, 0xee };
    int            length;
    const uint8_t *ramp = colour_ramp_256(MAP_INK, &length);

    for (int k = 0; k <= 20; k++) {
        Rgb grey = colour_of_value(MAP_GREY, k / 20.0), ink = colour_of_value(MAP_INK, k / 20.0);

        CHECK(grey_apart(grey, white) >= 9 && grey_apart(ink, white) >= 9, "%d of 20", k);
        CHECK(grey_apart(grey, light) >= 5 && grey_apart(ink, light) >= 5, "%d of 20", k);
        CHECK(grey_apart(grey, dark_paper) >= 9 && grey_apart(grey, matrix) >= 9, "%d of 20", k);
    }
    assert_true(ramp[0] < 254); /* 255 is the light matrix itself */
}

TEST(the_theme_uses_them)
{
    expect_colour("print", true);
    expect_colour("light", false);
    expect_colour("colour-blind", false);
}

/* White is what is not allowed, beside weights and beside differences: no grey stands for it, which
 * would be some weight's. Both maps begin with the same grey. */
TEST(what_is_not_allowed_is_white_in_print)
{
    View  view = { .kind = VIEW_WEIGHTS };
    Panel panel = { .view = &view, .hues = HUES_PRINT };
    Rgb   zero = colour_of_value_in(HUES_PRINT, MAP_DIVERGING, 0.5);
    Rgb   least = colour_of_value(MAP_INK, 0);

    for (int map = 0; map < MAP_COUNT; map++) {
        panel.map = (ColourMap)map;
        CHECK(!panel_greys_masked(&panel, false), "%s", colour_map_name((ColourMap)map));
    }
    panel.hues = HUES_USUAL;
    panel.map = MAP_DIVERGING;
    assert_true(panel_greys_masked(&panel, false));
    assert_memory_equal(&zero, &least, sizeof(zero));
    for (int t = 0; t < 50; t++) {
        Rgb nearer = colour_of_value_in(HUES_PRINT, MAP_DIVERGING, (t + 1) / 100.0);
        Rgb further = colour_of_value_in(HUES_PRINT, MAP_DIVERGING, t / 100.0);

        CHECK(colour_lightness(nearer) > colour_lightness(further), "at %d of 100", t);
    }
}

SUITE(NULL, NULL)
