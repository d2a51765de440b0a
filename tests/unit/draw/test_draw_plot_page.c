/* test_draw_plot_page.c -- a plot on a page: what its SVG and its pixels show. */

#include "draw/file/format.h"
#include "draw/page/sheet.h"
#include "unit/page_fixture.h"
#include "unit/plot_fixture.h"

/* A matrix and a plot beside each other, as text and as a page. */
TEST(matrices_and_plots_stand_in_one_figure)
{
    float       values[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
    ViewCurve   curve = { .x = "step", .y = "loss", .series = "a|b|c" };
    View        matrix = curve_view(values, DT_F32, 2, 4, 3, NULL), plot = matrix;
    Error       err = ERROR_INIT;
    Figure     *figure = figure_new(3, &err);
    Text        text = { 0 }, bytes = { 0 }, again = { 0 };
    TextOptions options = { .width = 100, .utf8 = true, .colours = 256 };

    assert_non_null(figure);
    plot.curve = &curve;
    panel_init(&figure->panels[0], &matrix, NULL, 0, "matrix");
    panel_init(&figure->panels[1], &plot, NULL, 0, "plot");
    panel_init(&figure->panels[2], &plot, NULL, 0, "both");
    figure->panels[2].overlays[0] = (Overlay){ .view = &plot, .name = "other" };
    figure->panels[2].overlay_count = 1;
    snprintf(figure->panels[2].name, sizeof(figure->panels[2].name), "one");
    CHECK(figure_text(figure, &options, &text, &err), "%s", err.text);
    CHECK(strstr(text_str(&text), "loss") && strstr(text_str(&text), "a 1 to 10"), "%s",
          text_str(&text));
    CHECK(figure_file(figure, FORMAT_PNG_FILE, NULL, &bytes, &err) &&
              figure_file(figure, FORMAT_PNG_FILE, NULL, &again, &err),
          "%s", err.text);
    CHECK(bytes.length == again.length && !memcmp(bytes.data, again.data, bytes.length),
          "the same figure twice");
    figure->panels[1].minus = &plot;
    CHECK(figure_file(figure, FORMAT_PNG_FILE, &(PngOptions){ .dpi = 72, .theme = "dark" }, &again,
                      &err), "%s", err.text);
    text_free(&text);
    text_free(&bytes);
    text_free(&again);
    figure_free(figure);
}

/* On a page of any width the key has each curve's name, in as many lines as that takes. */
TEST(the_key_names_every_curve)
{
    for (double inches = 2; inches < 7; inches += 1.6) {
        Plot   *plot = new_plot();
        Error   err = ERROR_INIT;
        Figure *figure = figure_new(1, &err);

        for (int k = 0; k < PLOT_SERIES_MOST; k++) {
            PlotSeries *s = add(plot, CURVE_LINE, 2, (double[]){ 1 + k, 2 + k });

            snprintf(s->name, sizeof(s->name), "a stack of %d layers", k);
        }
        plot_settle(plot);
        panel_init_plot(&figure->panels[0], plot, "many");
        for (int k = 0; k < PLOT_SERIES_MOST; k++)
            expect_words(figure, inches, plot->series[k].name);
        figure_free(figure);
    }
}

/* The next area of the SVG at `at` as the corners x, y; what is behind it. */
static const char *next_area(const char *at, double corners[4][2])
{
    while ((at = strstr(at, "<path d=\"M")) != NULL) {
        at += strlen("<path d=\"");
        if (sscanf(at, "M%lf %lfL%lf %lfL%lf %lfL%lf %lfZ", &corners[0][0], &corners[0][1],
                   &corners[1][0], &corners[1][1], &corners[2][0], &corners[2][1],
                   &corners[3][0], &corners[3][1]) == 8)
            return at;
    }
    return NULL;
}

/* Between two points it is an area that reaches from one to the other above and below. */
TEST(a_band_is_an_area_between_two_points)
{
    Plot       *plot = new_plot();
    PlotSeries *s = plot_add(plot, "s", CURVE_LINE, 3, true);
    PngOptions  options = { .dpi = 72 };
    Error       err = ERROR_INIT;
    Figure     *figure = figure_new(1, &err);
    Text        svg = { 0 };
    double      first[4][2], second[4][2];
    const char *at;

    assert_true(s && figure);
    for (int i = 0; i < 3; i++) {
        s->x[i] = i;
        s->y[i] = 2 + i;
        s->low[i] = s->y[i] - 1;
        s->high[i] = s->y[i] + 1;
    }
    plot_settle(plot);
    panel_init_plot(&figure->panels[0], plot, "band");
    CHECK(figure_file(figure, FORMAT_SVG_FILE, &options, &svg, &err), "%s", err.text);
    at = next_area(text_str(&svg), first);
    assert_true(at && next_area(at, second));
    assert_true(first[0][0] < first[1][0]);
    assert_true(first[2][0] == first[1][0] && first[3][0] == first[0][0]);
    assert_true(first[0][1] < first[3][1] && first[1][1] < first[2][1]); /* down the page */
    assert_true(second[0][0] == first[1][0] && second[3][1] == first[2][1]);
    assert_true(second[2][0] == second[1][0] && second[1][0] > second[0][0]);
    text_free(&svg);
    figure_free(figure);
}

/* A dashed guide through a point with a word: it is drawn first, and the word frees its paper. */
TEST(words_of_points_stand_on_guides)
{
    Plot       *plot = new_plot();
    PlotSeries *s = add(plot, CURVE_POINTS, 1, (double[]){ 5 });
    PngOptions  options = { .dpi = 72 };
    Error       err = ERROR_INIT;
    Figure     *figure = figure_new(1, &err);
    Text        svg = { 0 };
    const char *word, *dash = NULL;

    assert_true(plot_label(s));
    snprintf(s->labels[0], sizeof(s->labels[0]), "word");
    plot_guide(plot, "", true, 0);
    plot_settle(plot);
    panel_init_plot(&figure->panels[0], plot, "guides");
    CHECK(figure_file(figure, FORMAT_SVG_FILE, &options, &svg, &err), "%s", err.text);
    word = strstr(text_str(&svg), "aria-label=\"word\"");
    for (const char *at = text_str(&svg); (at = strstr(at, "stroke=\"#5a5a5a\"")) != NULL; at++)
        dash = at;
    CHECK(word && dash && dash < word, "%s", text_str(&svg));
    text_free(&svg);
    figure_free(figure);
}

/* Thin lines in ink of the SVG, `along` the x axis or the y axis. */
static int short_ticks(const char *svg, bool along)
{
    double x1, y1, x2, y2;
    int    wide, end = 0, count = 0;

    for (const char *at = svg; (at = strstr(at, "<line ")) != NULL; at++, end = 0)
        if (sscanf(at, "<line x1=\"%lf\" y1=\"%lf\" x2=\"%lf\" y2=\"%lf\" stroke-width=\"%d\" "
                       "stroke=\"#141414\"%n", &x1, &y1, &x2, &y2, &wide, &end) == 5 &&
            end && wide == 1)
            count += along ? x1 == x2 && fabs(y2 - y1) < 8 : y1 == y2 && fabs(x2 - x1) < 8;
    return count;
}

TEST(both_axes_have_short_ticks)
{
    for (int log = 0; log < 2; log++) {
        Plot       *plot = new_plot();
        PlotSeries *s = add(plot, CURVE_LINE, 3, (double[]){ 1, 10, 100 });
        PngOptions  options = { .dpi = 300 };
        Error       err = ERROR_INIT;
        Figure     *figure = figure_new(1, &err);
        Text        svg = { 0 };

        memcpy(s->x, (double[]){ 1, 30, 1000 }, 3 * sizeof(double));
        plot->x.log = plot->y.log = log;
        plot_settle(plot);
        panel_init_plot(&figure->panels[0], plot, "decades");
        CHECK(figure_file(figure, FORMAT_SVG_FILE, &options, &svg, &err), "%s", err.text);
        for (int along = 0; along < 2; along++) {
            int count = short_ticks(text_str(&svg), along);

            CHECK(log ? count >= (along ? 28 : 19) : !count, "%s axis: %d", along ? "x" : "y",
                  count);
        }
        text_free(&svg);
        figure_free(figure);
    }
}

/* The longest line of this colour in an SVG. */
static double longest_line(const char *svg, Rgb rgb)
{
    char   stroke[32];
    double longest = 0;

    snprintf(stroke, sizeof(stroke), "stroke=\"#%02x%02x%02x\"", rgb.r, rgb.g, rgb.b);
    for (const char *at = svg; (at = strstr(at, "<line ")); at++) {
        double x0, y0, x1, y1;
        size_t length = strcspn(at, ">");

        if (sscanf(at, "<line x1=\"%lf\" y1=\"%lf\" x2=\"%lf\" y2=\"%lf\"", &x0, &y0, &x1,
                   &y1) == 4 && memmem(at, length, stroke, strlen(stroke)))
            longest = fmax(longest, hypot(x1 - x0, y1 - y0));
    }
    return longest;
}

/* How far the names of `count` scattered points are led, in lines of words. */
static double farthest_lead(uint32_t state, int count)
{
    Plot       *plot = new_plot();
    PngOptions  options = { .dpi = 72 };
    SheetStyle  style = sheet_style(&options);
    Error       err = ERROR_INIT;
    Figure     *figure = figure_new(1, &err);
    Text        svg = { 0 };
    PlotSeries *s = plot_add(plot, "s", CURVE_POINTS, count, false);
    double      most;

    assert_true(figure && s && plot_label(s));
    for (int i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        s->x[i] = state >> 24;
        state = state * 1664525u + 1013904223u;
        s->y[i] = state >> 24;
        snprintf(s->labels[i], sizeof(s->labels[0]), "state %d", i);
    }
    plot_settle(plot);
    panel_init_plot(&figure->panels[0], plot, "crowded");
    CHECK(figure_file(figure, FORMAT_SVG_FILE, &options, &svg, &err), "%s", err.text);
    most = longest_line(text_str(&svg), plot_colour(0, false)) / style.tick;
    text_free(&svg);
    figure_free(figure);
    return most;
}

/* Among many points the last names would stand far away: they are left out. */
TEST(names_of_points_are_led_over_ten_lines_at_most)
{
    double most = 0;

    for (uint32_t seed = 0; seed < 20; seed++)
        most = fmax(most, farthest_lead(seed, 30 + 2 * (int)seed));
    CHECK(most > 5 && most < 10.01, "%g lines of words", most);
}

/* ---- whole marks -------------------------------------------------------------- */

static bool is_rgb(const uint8_t *at, Rgb rgb)
{
    return at[0] == rgb.r && at[1] == rgb.g && at[2] == rgb.b;
}

/* At least half of the pixel is of this colour, as the edges of a mark are. */
static bool is_mostly(const uint8_t *at, Rgb rgb)
{
    return abs(at[0] - rgb.r) + abs(at[1] - rgb.g) + abs(at[2] - rgb.b) <
           (3 * 255 - rgb.r - rgb.g - rgb.b) / 2;
}

typedef struct Drawn {
    uint8_t *pixels;
    int      width, height;
} Drawn;

/* The box of all pixels of this colour up to `far` pixels away from a place, and their number. */
static Box box_around(const Drawn *d, int x, int y, int far, Rgb rgb, int *count)
{
    int x0 = x + far, x1 = x - far, y0 = y + far, y1 = y - far;

    for (int j = y - far > 0 ? y - far : 0; j < y + far && j < d->height; j++)
        for (int i = x - far > 0 ? x - far : 0; i < x + far && i < d->width; i++) {
            const uint8_t *at = d->pixels + 4 * ((int64_t)j * d->width + i);

            *count += is_mostly(at, rgb);
            if (is_rgb(at, rgb)) {
                x0 = i < x0 ? i : x0;
                x1 = i > x1 ? i : x1;
                y0 = j < y0 ? j : y0;
                y1 = j > y1 ? j : y1;
            }
        }
    return (Box){ x0, y0, x1 - x0 + 1, y1 - y0 + 1 };
}

#define MARK_SHARE 0.85 /* of the pixels of another mark: they begin within pixels */

/* Each mark is as large as the first one, which is in the middle, and no line covers it. */
static void check_marks(const Sheet *sheet, const Drawn *drawn, const PlotSeries *s)
{
    const Plot *plot = sheet->scene.plots[0];
    Box         frame = sheet->layout.panels[0].matrix, middle = { 0 };
    int         far = (int)sheet_points(&sheet->style, 4), all = 0;

    for (int64_t i = 0; i < s->count; i++) {
        int    count = 0;
        double across = plot_place(&plot->x, s->x[i]), up = plot_place(&plot->y, s->y[i]);
        Box    own = box_around(drawn, frame.x + (int)(across * frame.w),
                                frame.y + (int)((1 - up) * frame.h), far,
                                plot_colour(s->hue, false), &count);

        middle = i ? middle : own;
        all = i ? all : count;
        CHECK(count >= MARK_SHARE * all, "point %d: %d of %d pixels", (int)i, count, all);
        CHECK(abs(own.w - middle.w) <= 1 && abs(own.h - middle.h) <= 1 && own.w > far / 2,
              "point %d: %d x %d, not %d x %d", (int)i, own.w, own.h, middle.w, middle.h);
    }
}

/* Marks at the ends of both axes, linear and logarithmic, are whole: 0, 1 or 2 is the mark. */
static void check_corners(int hue, bool log_x, bool log_y)
{
    static const double xs[] = { 10, 1, 100, 1, 100 }, ys[] = { 10, 1, 100, 100, 1 };
    PngOptions          options = { .dpi = 300 };
    Figure             *figure = figure_new(1, NULL);
    Plot               *plot = new_plot();
    PlotSeries         *s = add(plot, CURVE_POINTS, 5, ys);
    Sheet               sheet = { .figure = figure, .style = sheet_style(&options), .width = 1000 };
    Drawn               drawn;

    s->hue = hue;
    memcpy(s->x, xs, sizeof(xs));
    plot->x.log = log_x;
    plot->y.log = log_y;
    plot_settle(plot);
    panel_init_plot(&figure->panels[0], plot, "p");
    assert_true(sheet_plan(&sheet, NULL));
    assert_true(sheet_open(&sheet, CANVAS_PIXELS, sheet.layout.width, sheet.layout.height, &options,
                           NULL));
    sheet_draw(&sheet);
    drawn.pixels = canvas_pixels(sheet.canvas, &drawn.width, &drawn.height);
    check_marks(&sheet, &drawn, &sheet.scene.plots[0]->series[0]);
    free(drawn.pixels);
    sheet_free(&sheet);
    figure_free(figure);
}

TEST(marks_at_the_ends_of_axes_are_whole)
{
    for (int k = 0; k < 12; k++)
        check_corners(k / 4, k & 1, k & 2);
}

SUITE(NULL, NULL)
