/* test_draw_colour.c -- colours keep their order, their names and their sides. */

#include "attn/pattern/pattern.h"
#include "check.h"
#include "draw/colour/colour.h"
#include "draw/figure/scene.h"
#include "draw/text/unicode.h"

static double linear(uint8_t c)
{
    double v = c / 255.0;

    return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

/* CIE L*, 0..100 */
static double lightness(Rgb c)
{
    double y = 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b);

    return y > 0.008856 ? 116 * cbrt(y) - 16 : 903.3 * y;
}

static Rgb entry_256(int index)
{
    static const uint8_t cube[6] = { 0, 95, 135, 175, 215, 255 };
    uint8_t              grey = (uint8_t)(8 + 10 * (index - 232));

    if (index >= 232)
        return (Rgb){ grey, grey, grey };
    index -= 16;
    return (Rgb){ cube[index / 36], cube[index / 6 % 6], cube[index % 6] };
}

TEST(value_maps_grow_lighter_all_the_way)
{
    for (int map = 0; map < MAP_DIVERGING; map++) {
        const uint8_t *ramp;
        int            length;

        for (int k = 0; k < 250; k++)
            assert_true(lightness(colour_of_value((ColourMap)map, (k + 5) / 255.0)) >
                        lightness(colour_of_value((ColourMap)map, k / 255.0)));
        ramp = colour_ramp_256((ColourMap)map, &length);
        assert_true(length >= 12);
        for (int k = 1; k < length; k++)
            assert_true(lightness(entry_256(ramp[k])) > lightness(entry_256(ramp[k - 1])));
    }
}

TEST(known_ends_of_known_maps)
{
    static const struct {
        ColourMap map;
        Rgb       lo, hi;
    } ends[] = {
        { MAP_VIRIDIS, { 68, 1, 84 }, { 253, 231, 37 } },
        { MAP_MAGMA, { 0, 0, 4 }, { 252, 253, 191 } },
        { MAP_CIVIDIS, { 0, 34, 78 }, { 254, 232, 56 } },
    };

    for (size_t k = 0; k < sizeof(ends) / sizeof(*ends); k++) {
        Rgb lo = colour_of_value(ends[k].map, -1), hi = colour_of_value(ends[k].map, 2);

        assert_memory_equal(&lo, &ends[k].lo, sizeof(lo));
        assert_memory_equal(&hi, &ends[k].hi, sizeof(hi));
    }
}

TEST(differences_look_equally_strong_on_both_sides)
{
    const uint8_t *ramp;
    int            length;

    for (int k = 0; k <= 100; k++)
        assert_true(fabs(lightness(colour_of_value(MAP_DIVERGING, 0.5 + k / 200.0)) -
                         lightness(colour_of_value(MAP_DIVERGING, 0.5 - k / 200.0))) < 2.5);
    ramp = colour_ramp_256(MAP_DIVERGING, &length);
    assert_int_equal(length % 2, 1);
    for (int k = 0; k < length / 2; k++)
        assert_true(fabs(lightness(entry_256(ramp[k])) -
                         lightness(entry_256(ramp[length - 1 - k]))) < 8);
}

/* CIELAB of a colour, D65. */
static void lab_of(Rgb c, double *lab)
{
    double r = linear(c.r), g = linear(c.g), b = linear(c.b), f[3];

    f[0] = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047;
    f[1] = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    f[2] = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883;
    for (int k = 0; k < 3; k++)
        f[k] = f[k] > 0.008856 ? cbrt(f[k]) : 7.787 * f[k] + 16.0 / 116;
    lab[0] = 116 * f[1] - 16;
    lab[1] = 500 * (f[0] - f[1]);
    lab[2] = 200 * (f[1] - f[2]);
}

static double distance(Rgb a, Rgb b)
{
    double x[3], y[3];

    lab_of(a, x);
    lab_of(b, y);
    return sqrt(pow(x[0] - y[0], 2) + pow(x[1] - y[1], 2) + pow(x[2] - y[2], 2));
}

/* From purple over blue and green to yellow, and never back. */
TEST(the_ramp_of_viridis_keeps_the_order_of_hues)
{
    const uint8_t *ramp;
    int            length;
    double         before = 360;

    ramp = colour_ramp_256(MAP_VIRIDIS, &length);
    for (int k = 0; k < length; k++) {
        double lab[3], hue;

        lab_of(entry_256(ramp[k]), lab);
        hue = fmod(atan2(lab[2], lab[1]) * 180 / M_PI + 360, 360);
        CHECK(hue < before + 0.5, "entry %d of viridis turns back: %.1f after %.1f", k, hue,
              before);
        before = hue;
    }
}

/* Light in the middle and darker to both sides; ink grows darker. */
TEST(ramps_of_differences_and_of_ink_are_in_order)
{
    const uint8_t *ramp;
    int            length;

    ramp = colour_ramp_256(MAP_DIVERGING, &length);
    for (int k = 0; k < length / 2; k++) {
        assert_true(lightness(entry_256(ramp[k])) < lightness(entry_256(ramp[k + 1])));
        assert_true(lightness(entry_256(ramp[length - 1 - k])) <
                    lightness(entry_256(ramp[length - 2 - k])));
    }
    ramp = colour_ramp_256(MAP_INK, &length);
    for (int k = 1; k < length; k++)
        assert_true(lightness(entry_256(ramp[k])) < lightness(entry_256(ramp[k - 1])));
}

static Rgb category(Hues hues, int k)
{
    return category_colour_in(hues, k);
}

/* 20 can be told apart at a glance; so, too, the component "bucket" and what was missed. */
TEST(categories_differ_from_each_other_from_bucket_and_from_missed)
{
    static const Hues hues[] = { HUES_USUAL, HUES_SAFE, HUES_DARK };
    Rgb               bucket = colour_of_component(COMPONENT_BUCKET), missed = colour_lost();

    for (size_t h = 0; h < sizeof(hues) / sizeof(*hues); h++)
        for (int a = 0; a < CATEGORY_HUES; a++) {
            Rgb own = category(hues[h], a);

            CHECK(distance(own, bucket) >= 20, "category %d of hues %d is bucket's", a,
                  (int)hues[h]);
            CHECK(distance(own, missed) >= 20, "category %d of hues %d is missed", a,
                  (int)hues[h]);
            for (int b = 0; b < a; b++)
                CHECK(distance(own, category(hues[h], b)) >= 20,
                      "categories %d and %d of hues %d are %.1f apart", b, a, (int)hues[h],
                      distance(own, category(hues[h], b)));
        }
}

TEST(categories_of_256_colours_differ_too)
{
    for (int a = 0; a < CATEGORY_HUES; a++) {
        int own = colour_nearest_256(colour_of_category(a));

        assert_true(own != colour_component_256(COMPONENT_BUCKET));
        assert_true(own != colour_nearest_256(colour_lost()));
        for (int b = 0; b < a; b++)
            assert_true(distance(entry_256(own),
                                 entry_256(colour_nearest_256(colour_of_category(b)))) >= 15);
    }
}

/* 4.5 is what WCAG 2 asks of text. */
TEST(letters_are_read_on_every_colour)
{
    static const Hues all[] = { HUES_USUAL, HUES_SAFE, HUES_PRINT, HUES_DARK,
                                HUES_PAGE };

    CHECK_NEAR(colour_contrast((Rgb){ 0, 0, 0 }, (Rgb){ 255, 255, 255 }), 21, 1e-9);
    for (size_t h = 0; h < sizeof(all) / sizeof(*all); h++)
        for (int k = 0; k < CATEGORY_HUES; k++) {
            Rgb own = category(all[h], k), ink = colour_ink_on(own);

            CHECK(colour_contrast(ink, own) >= 4.5, "category %d: %.2f", k,
                  colour_contrast(ink, own));
            if (all[h] == HUES_USUAL) /* those of terminals */
                CHECK(colour_contrast(ink, entry_256(colour_nearest_256(own))) >= 4.5,
                      "category %d of 256 colours: %.2f", k,
                      colour_contrast(ink, entry_256(colour_nearest_256(own))));
        }
    for (int r = 0; r < 256; r += 15)
        for (int g = 0; g < 256; g += 15)
            for (int b = 0; b < 256; b += 15) {
                Rgb own = { (uint8_t)r, (uint8_t)g, (uint8_t)b };

                assert_true(colour_contrast(colour_ink_on(own), own) >= 4.5);
            }
}

TEST(not_a_number_has_a_colour_of_its_own)
{
    Rgb odd = colour_odd(), nan = colour_of_value(MAP_VIRIDIS, (double)NAN);

    assert_memory_equal(&odd, &nan, sizeof(odd));
}

TEST(components_differ_in_colour_letter_and_name)
{
    for (int a = 1; a <= COMPONENT_OTHER; a <<= 1)
        for (int b = 1; b < a; b <<= 1) {
            Rgb x = colour_of_component((uint8_t)a), y = colour_of_component((uint8_t)b);

            assert_true(abs(x.r - y.r) + abs(x.g - y.g) + abs(x.b - y.b) > 40);
            assert_true(component_letter((uint8_t)a) != component_letter((uint8_t)b));
            assert_true(colour_component_256((uint8_t)a) != colour_component_256((uint8_t)b));
            assert_string_not_equal(component_name((uint8_t)a), component_name((uint8_t)b));
        }
    assert_string_equal(component_name(COMPONENT_STRIDED), "strided");
}

TEST(shades_never_fade_into_the_background)
{
    for (int bit = 1; bit <= COMPONENT_OTHER; bit <<= 1) {
        assert_true(lightness(colour_shade(colour_of_component((uint8_t)bit), 0, false)) < 93);
        assert_true(lightness(colour_shade(colour_of_component((uint8_t)bit), 0, true)) > 9);
    }
}

TEST(the_nearest_entry_of_an_entry_is_itself)
{
    for (int k = 16; k < 256; k++) {
        Rgb entry = entry_256(k), found = entry_256(colour_nearest_256(entry));

        assert_memory_equal(&entry, &found, sizeof(entry));
    }
}

TEST(map_names_are_read_back)
{
    ColourMap map;
    Error     err = ERROR_INIT;

    for (int k = 0; k < MAP_COUNT; k++)
        assert_true(colour_map_parse(colour_map_name((ColourMap)k), &map, NULL) && (int)map == k);
    assert_false(colour_map_parse("jet", &map, &err));
    assert_non_null(strstr(err.text, "viridis"));
}

/* A view's own word, or the last word of its name where that is a plural. */
TEST(categories_have_a_word)
{
    static const struct {
        View        view;
        const char *one, *many;
    } cases[] = {
        { { .name = "position_buckets", .kind = VIEW_BUCKETS }, "bucket", "buckets" },
        { { .name = "experts", .kind = VIEW_BUCKETS }, "expert", "experts" },
        { { .name = "some_route", .kind = VIEW_BUCKETS }, "category", "categories" },
        { { .name = "s", .kind = VIEW_BUCKETS }, "category", "categories" },
        { { .name = "a_s", .kind = VIEW_BUCKETS }, "category", "categories" },
        { { .name = "x", .kind = VIEW_BUCKETS, .quantity = "class" }, "class", "class" },
        { { .name = "buckets", .kind = VIEW_MEMBERSHIP, .rows = "query" }, "query", "queries" },
        { { .name = "buckets", .kind = VIEW_MEMBERSHIP, .rows = "" }, "category", "categories" },
        { { .name = "buckets", .kind = VIEW_MEMBERSHIP }, "category", "categories" },
    };
    char text[64];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        category_word(&cases[i].view, text, sizeof(text));
        assert_string_equal(text, cases[i].one);
        categories_word(&cases[i].view, text, sizeof(text));
        assert_string_equal(text, cases[i].many);
    }
}

/* One hop is the map's beginning, six are 60 % of what is used of it, and no number of hops is
 * beyond; none at all is grey. */
TEST(hops_go_along_the_map)
{
    Paint paint;
    double at = 0.9 * (1 - exp(-1 / 1.1)); /* of a spread of 5.5 hops */
    Rgb   six = colour_of_value(MAP_VIRIDIS, at), first = colour_of_value(MAP_VIRIDIS, 0);
    Rgb   dark = colour_of_value(MAP_VIRIDIS, 1 - at), grey = { 0x80, 0x80, 0x80 };

    hops_paint(&paint, MAP_VIRIDIS, 6, false);
    assert_memory_equal(&paint.rgb, &six, sizeof(six));
    assert_int_equal(paint.ascii, '6');
    hops_paint(&paint, MAP_VIRIDIS, 6, true);
    assert_memory_equal(&paint.rgb, &dark, sizeof(dark));
    hops_paint(&paint, MAP_VIRIDIS, 1, false);
    assert_memory_equal(&paint.rgb, &first, sizeof(first));
    hops_paint(&paint, MAP_VIRIDIS, 0, false);
    assert_memory_equal(&paint.rgb, &grey, sizeof(grey));
    assert_int_equal(paint.index256, 244);
    hops_paint(&paint, MAP_VIRIDIS, 35, false);
    assert_int_equal(paint.ascii, 'z');
    hops_paint(&paint, MAP_VIRIDIS, 36, false);
    assert_int_equal(paint.ascii, '+');
}

/* Twelve layers are the usual depth; in grey print a step of one is still a step. */
TEST(neighbouring_depths_differ_in_lightness)
{
    for (int dark = 0; dark < 2; dark++)
        for (int hops = 1; hops < 12; hops++) {
            Paint near, far;
            double step;

            hops_paint(&near, MAP_VIRIDIS, hops, dark);
            hops_paint(&far, MAP_VIRIDIS, hops + 1, dark);
            step = (dark ? -1 : 1) * (lightness(far.rgb) - lightness(near.rgb));
            CHECK(step > 1.6, "%d layers: %.2f", hops, step);
        }
    /* One layer and two are the most often seen side by side, also as ink on paper. */
    for (int k = 0; k < 2; k++) {
        Paint one, two;

        hops_paint(&one, k ? MAP_INK : MAP_VIRIDIS, 1, false);
        hops_paint(&two, k ? MAP_INK : MAP_VIRIDIS, 2, false);
        CHECK(lightness(two.rgb) - lightness(one.rgb) > 10, "map %d: %.2f", k,
              lightness(two.rgb) - lightness(one.rgb));
    }
}

TEST(labels_are_cut_to_columns)
{
    char out[64];

    assert_int_equal(utf8_columns("\xE6\x97\xA5\xE6\x9C\xAC"), 4);
    assert_int_equal(utf8_columns("e\xCC\x81"), 1);
    assert_int_equal(utf8_columns("\xFF\xC3"), 2);
    utf8_fit("gathering", 5, true, out, sizeof(out));
    assert_string_equal(out, "gath.");
    utf8_fit("\xE6\x97\xA5\xE6\x9C\xAC", 3, false, out, sizeof(out));
    assert_string_equal(out, "\xE6\x97\xA5\xE2\x80\xA6");
    utf8_fit("a\tb\xFF", 9, false, out, sizeof(out));
    assert_string_equal(out, "a\xEF\xBF\xBD" "b\xEF\xBF\xBD");
    utf8_fit("too long for it", 40, false, out, 5);
    assert_true(strlen(out) < 5);
}

SUITE(NULL, NULL)
