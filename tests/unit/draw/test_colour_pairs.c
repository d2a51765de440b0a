/* test_colour_pairs.c -- colours that may stand in one picture, measured in pairs in every theme.
 *
 * The distance of CIELAB is of readers who see all colours; the difference of L* is what a grey
 * print keeps. The base of Okabe and Ito has pairs of one lightness, which differ in hue.
 */

#include "attn/pattern/pattern.h"
#include "check.h"
#include "draw/colour/colour.h"
#include "draw/figure/figure.h"
#include "draw/page/sheet.h"

#define AT_A_GLANCE 25 /* distance of colours in cells that do not touch */
#define GREYS       10 /* difference of L* from which on hue need not help */
#define HUE         26 /* distance in a* and b* otherwise */

static double linear(uint8_t channel)
{
    double x = channel / 255.0;

    return x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4);
}

static void lab_of(Rgb c, double lab[3])
{
    double r = linear(c.r), g = linear(c.g), b = linear(c.b), f[3];

    f[0] = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505;
    f[1] = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    f[2] = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089;
    for (int k = 0; k < 3; k++)
        f[k] = f[k] > 216.0 / 24389 ? cbrt(f[k]) : (24389.0 / 27 * f[k] + 16) / 116;
    lab[0] = 116 * f[1] - 16;
    lab[1] = 500 * (f[0] - f[1]);
    lab[2] = 200 * (f[1] - f[2]);
}

static double greys(Rgb a, Rgb b)
{
    return fabs(colour_lightness(a) - colour_lightness(b));
}

static void expect_apart(Hues hues, const char *kind, int i, int k, Rgb a, Rgb b)
{
    double x[3], y[3], hue, all;

    lab_of(a, x);
    lab_of(b, y);
    hue = hypot(x[1] - y[1], x[2] - y[2]);
    all = hypot(hue, x[0] - y[0]);
    if (hues == HUES_PRINT) {
        CHECK(greys(a, b) >= 6, "%s %d and %d in print: %.1f", kind, i, k, greys(a, b));
        return;
    }
    CHECK(all >= AT_A_GLANCE, "%s %d and %d in hues %d: %.1f apart", kind, i, k, (int)hues, all);
    CHECK(greys(a, b) >= GREYS || hue >= HUE, "%s %d and %d in hues %d: lightness %.1f, hue %.1f",
          kind, i, k, (int)hues, greys(a, b), hue);
}

/* All of them, and what was missed. */
static void expect_all_apart(Hues hues, const char *kind, const Rgb *rgb, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            expect_apart(hues, kind, i, k, rgb[i], rgb[k]);
}

TEST(causes_of_a_pattern_are_apart_in_every_theme)
{
    for (int hues = HUES_USUAL; hues <= HUES_PAGE; hues++) {
        Rgb rgb[9];

        for (int k = 0; k < 8; k++)
            rgb[k] = component_colour_in((Hues)hues, (uint8_t)(1 << k));
        rgb[8] = lost_colour_in((Hues)hues); /* of another panel */
        expect_all_apart((Hues)hues, "cause", rgb, 9);
    }
}

/* Beside a panel of values, what is not allowed is grey: no cause may be as grey. In print, where
 * causes are greys, they differ in lightness alone. */
TEST(causes_are_apart_from_what_is_not_allowed)
{
    for (int hues = HUES_USUAL; hues <= HUES_PAGE; hues++)
        for (int bit = 1; bit <= COMPONENT_LAST; bit <<= 1) {
            Rgb    cause = component_colour_in((Hues)hues, (uint8_t)bit);
            Rgb    masked = colour_masked(hues == HUES_DARK);
            double x[3], y[3];

            lab_of(cause, x);
            lab_of(masked, y);
            if (hues == HUES_PRINT) {
                CHECK(greys(cause, masked) >= 5, "%s: %.1f", component_name((uint8_t)bit),
                      greys(cause, masked));
                continue;
            }
            expect_apart((Hues)hues, "cause and not allowed", bit, 0, cause, masked);
            CHECK(hypot(x[1] - y[1], x[2] - y[2]) >= 10, "%s in hues %d is grey",
                  component_name((uint8_t)bit), hues);
        }
}

TEST(what_found_a_key_is_apart_from_missed_in_every_theme)
{
    static const double one = 1;
    ViewFound           found = { .share = &one };
    View                view = { .kind = VIEW_COMPONENTS, .found = &found };

    for (found.rounds = 0; found.rounds <= 7; found.rounds += found.rounds == 1 ? 6 : 1) {
        for (int hues = HUES_USUAL; hues <= HUES_PAGE; hues++) {
            Rgb rgb[8];
            int count = found.rounds ? found.rounds : 7;

            for (int k = 0, bit = 1; k < count; bit <<= 1)
                if (bit != COMPONENT_OTHER)
                    rgb[k++] = cause_colour_in((Hues)hues, &view, (uint8_t)bit);
            rgb[count] = cause_colour_in((Hues)hues, &view, COMPONENT_OTHER);
            expect_all_apart((Hues)hues, found.rounds ? "round" : "found", rgb, count + 1);
        }
    }
}

/* One key holds both: "bigbird:missed" beside "reformer:missed". */
static void expect_rounds_apart_from_causes(Hues hues, int rounds)
{
    static const double one = 1;
    ViewFound           found = { .share = &one, .rounds = rounds };
    View                view = { .kind = VIEW_COMPONENTS, .found = &found };

    for (int bit = 1; bit <= COMPONENT_LAST; bit <<= 1)
        for (int cause = 1; cause <= COMPONENT_LAST && bit != COMPONENT_OTHER; cause <<= 1) {
            Rgb of_round = cause_colour_in(hues, &view, (uint8_t)bit);
            Rgb of_cause = component_colour_in(hues, (uint8_t)cause);

            if (hues != HUES_PRINT)
                expect_apart(hues, "round and cause", bit, cause, of_round, of_cause);
            CHECK(greys(of_round, of_cause) >= (hues == HUES_PRINT ? 4 : 0), "%d, %d", bit, cause);
        }
}

TEST(rounds_share_no_colour_with_causes)
{
    for (int hues = HUES_USUAL; hues <= HUES_PAGE; hues++) {
        expect_rounds_apart_from_causes((Hues)hues, 1);
        expect_rounds_apart_from_causes((Hues)hues, 7);
    }
}

TEST(categories_are_apart_from_each_other_and_from_what_was_lost)
{
    for (int hues = HUES_USUAL; hues <= HUES_PAGE; hues++) {
        Rgb rgb[CATEGORY_HUES + 1];

        for (int k = 0; k < CATEGORY_HUES; k++)
            rgb[k] = category_colour_in((Hues)hues, k);
        rgb[CATEGORY_HUES] = lost_colour_in((Hues)hues);
        expect_all_apart((Hues)hues, "category", rgb, CATEGORY_HUES + 1);
    }
}

/* One colour, one meaning: a legend names a cause once for all panels. */
TEST(a_cause_has_one_colour_in_patterns_and_in_what_it_found)
{
    static const double one = 1;
    ViewFound           found = { .rounds = 0, .share = &one };
    View                view = { .kind = VIEW_COMPONENTS, .found = &found };

    for (int hues = HUES_USUAL; hues <= HUES_PAGE; hues++)
        for (int bit = 1; bit <= COMPONENT_LAST; bit <<= 1) {
            Rgb here = cause_colour_in((Hues)hues, &view, (uint8_t)bit);
            Rgb there = component_colour_in((Hues)hues, (uint8_t)bit);

            CHECK(bit == COMPONENT_OTHER || !memcmp(&here, &there, sizeof(here)), "%s in hues %d",
                  component_name((uint8_t)bit), hues);
        }
}

/* Without the hues too. */
TEST(cluster_missed_and_window_differ_in_lightness_in_every_theme)
{
    static const double one = 1;
    ViewFound           found = { .rounds = 0, .share = &one };
    View                view = { .kind = VIEW_COMPONENTS, .found = &found };

    for (int hues = HUES_USUAL; hues <= HUES_PAGE; hues++) {
        Rgb missed = cause_colour_in((Hues)hues, &view, COMPONENT_OTHER);
        Rgb window = cause_colour_in((Hues)hues, &view, COMPONENT_WINDOW);
        Rgb cluster = cause_colour_in((Hues)hues, &view, COMPONENT_CLUSTER);
        Rgb global = cause_colour_in((Hues)hues, &view, COMPONENT_GLOBAL);

        CHECK(greys(missed, window) >= 11, "hues %d: missed, window", hues);
        CHECK(greys(missed, cluster) >= 11, "hues %d: missed, cluster", hues);
        CHECK(greys(window, cluster) >= 11, "hues %d: window, cluster", hues);
        CHECK(greys(missed, global) >= 9, "hues %d: missed, global", hues);
    }
}

/* Rings lie on values of every map of a theme. */
TEST(rings_show_on_every_value)
{
    static const struct {
        Hues      hues;
        ColourMap map;
    } themes[] = { { HUES_USUAL, MAP_VIRIDIS }, { HUES_DARK, MAP_VIRIDIS },
                   { HUES_SAFE, MAP_CIVIDIS } };

    for (int k = 0; k < 3; k++)
        for (int t = 0; t <= 50; t++) {
            double ring[3], value[3];

            lab_of(chosen_colour_in(themes[k].hues), ring);
            lab_of(colour_of_value(themes[k].map, t / 50.0), value);
            CHECK(hypot(hypot(ring[0] - value[0], ring[1] - value[1]), ring[2] - value[2]) >= 60,
                  "hues %d at %d of 50", (int)themes[k].hues, t);
        }
}

/* A pair that is not allowed is near-black paper; contrast 2 is the ends of the diverging map. */
TEST(every_value_stands_out_from_dark_paper)
{
    Rgb paper = page_theme("slide")->paper;

    for (int map = 0; map < MAP_COUNT; map++)
        for (int t = 0; t <= 200; t++) {
            Rgb value = colour_of_value_in(HUES_DARK, (ColourMap)map, t / 200.0);

            CHECK(colour_contrast(value, paper) >= 1.95, "%s at %d of 200: %.2f",
                  colour_map_name((ColourMap)map), t, colour_contrast(value, paper));
        }
}

/* Brighter lines on dark paper flicker at their crossings. */
TEST(lines_between_cells_are_as_faint_on_dark_paper_as_on_white)
{
    const PageTheme *dark = page_theme("slide"), *light = page_theme("light");
    double           on_dark = colour_contrast(dark->rule, dark->paper);

    CHECK(fabs(on_dark - colour_contrast(light->rule, light->paper)) < 0.1, "%.2f", on_dark);
}

/* The base stays. */
TEST(causes_have_the_colours_of_okabe_and_ito)
{
    static const struct {
        uint8_t bit;
        Rgb     rgb;
    } base[] = {
        { COMPONENT_WINDOW, { 0x00, 0x72, 0xB2 } },  { COMPONENT_GLOBAL, { 0xD5, 0x5E, 0x00 } },
        { COMPONENT_RANDOM, { 0x00, 0x9E, 0x73 } },  { COMPONENT_STRIDED, { 0xCC, 0x79, 0xA7 } },
        { COMPONENT_BLOCK, { 0xE6, 0x9F, 0x00 } },   { COMPONENT_BUCKET, { 0x56, 0xB4, 0xE9 } },
    };

    for (int hues = HUES_USUAL; hues <= HUES_DARK; hues++)
        for (size_t k = 0; k < sizeof(base) / sizeof(*base) && hues != HUES_PRINT; k++) {
            Rgb rgb = component_colour_in((Hues)hues, base[k].bit);

            assert_memory_equal(&rgb, &base[k].rgb, sizeof(rgb));
        }
}

/* ---- the default theme, printed with colours or without ------------------------ */

static Hues light(void)
{
    return page_theme("light")->hues;
}

static Rgb on_page(uint8_t bit)
{
    return component_colour_in(light(), bit);
}

/* Degrees from a hue to another, at most 180; *chroma receives that of the first. */
static double turned(Rgb a, Rgb b, double *chroma)
{
    double x[3], y[3], by;

    lab_of(a, x);
    lab_of(b, y);
    *chroma = hypot(x[1], x[2]);
    by = fabs(atan2(x[2], x[1]) - atan2(y[2], y[1])) * 180 / M_PI;
    return fmin(by, 360 - by);
}

/* Each is the same colour, darker or lighter. */
TEST(causes_of_light_have_the_hues_of_okabe_and_ito)
{
    for (int bit = 1; bit <= COMPONENT_LAST; bit <<= 1) {
        Rgb    rgb = on_page((uint8_t)bit);
        double chroma, by = turned(rgb, colour_of_component((uint8_t)bit), &chroma);

        CHECK(by <= 10, "%s by %.1f degrees", component_name((uint8_t)bit), by);
        CHECK(bit == COMPONENT_OTHER || chroma >= 25, "%s: %.1f", component_name((uint8_t)bit),
              chroma);
    }
}

/* In the order in which one hides another, and those that occur together most. */
TEST(causes_of_light_differ_in_lightness)
{
    static const uint8_t order[] = { COMPONENT_GLOBAL, COMPONENT_RANDOM, COMPONENT_STRIDED,
                                     COMPONENT_BLOCK, COMPONENT_WINDOW, COMPONENT_BUCKET,
                                     COMPONENT_CLUSTER };
    static const uint8_t often[] = { COMPONENT_WINDOW, COMPONENT_GLOBAL, COMPONENT_RANDOM };
    static const Rgb     white = { 255, 255, 255 };

    for (int k = 0; k < 6; k++)
        CHECK(greys(on_page(order[k]), on_page(order[k + 1])) >= 12, "%s and the next: %.1f",
              component_name(order[k]), greys(on_page(order[k]), on_page(order[k + 1])));
    for (int k = 0; k < 3; k++)
        CHECK(greys(on_page(often[k]), on_page(often[(k + 1) % 3])) >= 12, "%s and the next: %.1f",
              component_name(often[k]), greys(on_page(often[k]), on_page(often[(k + 1) % 3])));
    CHECK(greys(on_page(COMPONENT_WINDOW), on_page(COMPONENT_STRIDED)) >= 12, "window, strided");
    for (int a = 1; a <= COMPONENT_LAST; a <<= 1) {
        Rgb own = on_page((uint8_t)a);

        CHECK(greys(own, white) >= 15, "%s and paper", component_name((uint8_t)a));
        CHECK(greys(own, lost_colour_in(light())) >= 14, "%s, missed", component_name((uint8_t)a));
        for (int b = 1; b < a; b <<= 1)
            CHECK(greys(own, on_page((uint8_t)b)) >=
                      (a == COMPONENT_OTHER || b == COMPONENT_OTHER ? 5 : 6.5),
                  "%s and %s: %.1f", component_name((uint8_t)a), component_name((uint8_t)b),
                  greys(own, on_page((uint8_t)b)));
    }
}

/* The last is before the first again. */
TEST(neighbouring_categories_of_light_differ_in_lightness)
{
    for (int k = 0; k < CATEGORY_HUES; k++) {
        double by = greys(category_colour_in(light(), k), category_colour_in(light(), k + 1));

        CHECK(by >= 15, "category %d and the next: %.1f", k, by);
    }
}

SUITE(NULL, NULL)
