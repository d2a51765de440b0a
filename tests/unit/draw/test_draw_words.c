/* test_draw_words.c -- words and bars of a page: none is cut, none hides another; line breaks. */
#include "check.h"
#include "core/rng.h"
#include "draw/page/sheet.h"
#include "unit/page_fixture.h"

/* As high as the panel, then up to the title, then two lines; no sign of an omission. */
TEST(the_name_of_an_upright_axis_is_never_cut)
{
    View    view;
    Figure *figure = matrices(&view, 2, "m");

    view.cols = "key";
    view.rows = "a block of queries";
    expect_words(figure, 3.25, "a block of queries");
    expect_words(figure, 1.6, "a block of queries"); /* in smaller letters */
    view.rows = "a block of queries and the next one";
    expect_words(figure, 1.6, "a block of queries and");
    expect_words(figure, 1.6, "the next one");
    view.rows = "a_block_of_many_queries_and_all_those_that_come_after_it";
    expect_words(figure, 6.75, view.rows);
    figure_free(figure);
}

/* Two ceilings that are nearly one, with a point where their names usually stand. */
TEST(names_of_level_guides_do_not_meet)
{
    View        view;
    Figure     *figure = matrices(&view, 1, "m");
    Plot       *plot = plot_new(NULL);
    PlotSeries *points = plot_add(plot, "points", CURVE_POINTS, 3, false);
    Text        out = { 0 };

    assert_non_null(points);
    for (int i = 0; i < 3; i++) {
        points->x[i] = i;
        points->y[i] = (double[]){ 0, 9.9, 5 }[i];
    }
    plot_guide(plot, "the first ceiling", false, 9.6);
    plot_guide(plot, "the second ceiling", false, 9.3);
    plot_settle(plot);
    panel_init_plot(&figure->panels[0], plot, "p");
    words_of(figure, 3.25, &out);
    assert_true(fabs(height_of(text_str(&out), "the first ceiling") -
                     height_of(text_str(&out), "the second ceiling")) >= 7.0 * 300 / 72);
    text_free(&out);
    figure_free(figure);
}

static void line_of(Plot *plot, const char *name, double x, double y)
{
    assert_non_null(plot_line(plot, name, -1, (double[]){ x, 10 }, (double[]){ y, y }, 2));
}

/* The names of ceilings stand in the order of their lines, however near those are: a name beside
 * another one's line would be taken for it. */
TEST(names_of_ceilings_stand_by_their_own)
{
    for (int k = 0; k < 24; k++) {
        View        view;
        Figure     *figure = matrices(&view, 1, "m");
        Plot       *plot = plot_new(NULL);
        PlotSeries *points = plot_add(plot, "points", CURVE_POINTS, 2, false);
        double      tensor = 5.6e8 * pow(1.05, k), top = 5.3e9;
        Text        out = { 0 };
        bool        above;

        assert_non_null(points);
        assert_true(plot_label(points));
        for (int i = 0; i < 2; i++) {
            points->x[i] = 0.25;
            points->y[i] = (double[]){ 8e6, 5e6 }[i];
            snprintf(points->labels[i], PLOT_LABEL, i ? "features" : "state and read");
        }
        plot->x.log = plot->y.log = true;
        assert_non_null(plot_line(plot, "memory 0.625 GB/s", -1, (double[]){ 0.1, 1.1 },
                                  (double[]){ 6.25e7, 6.9e8 }, 2));
        line_of(plot, "multiply-add 0.9 GFLOP/s", 1.1, 9e8);
        line_of(plot, "tensor cores 0.56 GFLOP/s", 0.9, tensor);
        line_of(plot, "matrix products 5.3 GFLOP/s", 8.4, top);
        plot_settle(plot);
        panel_init_plot(&figure->panels[0], plot, "p");
        words_of(figure, 3.25, &out);
        above = height_of(text_str(&out), "tensor cores 0.56 GFLOP/s") <
                height_of(text_str(&out), "multiply-add 0.9 GFLOP/s");
        assert_int_equal(above, tensor > 9e8);
        assert_true(height_of(text_str(&out), "matrix products 5.3 GFLOP/s") <
                    fmin(height_of(text_str(&out), "tensor cores 0.56 GFLOP/s"),
                         height_of(text_str(&out), "multiply-add 0.9 GFLOP/s")));
        text_free(&out);
        figure_free(figure);
    }
}

static Plot *stages_plot(double step)
{
    static const char *const names[] = { "hash", "sort", "attend" };
    Plot       *plot = plot_new(NULL);
    PlotSeries *memory = plot_add(plot, "memory", CURVE_STEPS, 9, false);

    assert_non_null(memory);
    for (int i = 0; i < 9; i++) {
        memory->x[i] = i;
        memory->y[i] = i < 4 ? 0 : 10;
    }
    for (int k = 0; k < 3; k++)
        plot_guide(plot, names[k], true, 1 + k * step);
    plot_settle(plot);
    return plot;
}

/* Some words above the frame are numbers, and this is one of them. */
static bool has_number(const char *svg, int number, double top)
{
    char own[16];

    snprintf(own, sizeof(own), "%d", number);
    for (const char *at = svg; (at = strstr(at, "aria-label=\"")); at++) {
        const char *words = at + strlen("aria-label=\"");
        size_t      length = strspn(words, "0123456789 ");
        double      x, y;

        if (length && words[length] == '"' && memmem(words, length, own, strlen(own)) &&
            sscanf(words + length, "\" transform=\"translate(%lf %lf", &x, &y) == 2 && y < top)
            return true;
    }
    return false;
}

/* However near the stages are, each is named: at its line, or by a number that the key has. */
TEST(stages_are_named_however_near_they_are)
{
    int numbered = 0;

    for (double step = 0.02; step < 2; step *= 1.3) {
        View    view;
        Figure *figure = matrices(&view, 1, "m");
        Plot   *plot = stages_plot(step);
        Text    out = { 0 };
        Sheet   sheet;
        Box     field;
        double  ends = 0; /* of the name before */

        panel_init_plot(&figure->panels[0], plot, "p");
        words_of(figure, 3.25, &out);
        plan_of(&sheet, figure, 3.25);
        field = sheet.layout.panels[0].matrix;
        for (int k = 0; k < 3; k++) {
            const char *name = plot->guides[k].name;
            double      font = sheet.style.tick, box[2] = { 0 };
            double      wide = canvas_text_width(sheet.canvas, name, FONT_SANS, font);
            double      line = field.x + plot_place(&plot->x, plot->guides[k].at) * field.w;

            CHECK(across_of(text_str(&out), name, wide, font, box), "step %g: no '%s'", step, name);
            if (fabs(box[0] - line) < 2 && height_of(text_str(&out), name) < field.y) {
                CHECK(box[0] > ends, "step %g: '%s' lies over the name before it",
                      step, name);
                ends = box[1];
                continue;
            }
            numbered++;
            CHECK(has_number(text_str(&out), k + 1, field.y), "step %g: no number %d", step, k + 1);
        }
        sheet_free(&sheet);
        text_free(&out);
        figure_free(figure);
    }
    CHECK(numbered > 6 && numbered < 48, "%d of 54 are numbers", numbered);
}

/* A stage may come twice, one after the other: its number and its name are the same. */
TEST(a_stage_that_comes_again_is_in_the_key_once)
{
    View    view;
    Figure *figure = matrices(&view, 1, "m");
    Plot   *plot = stages_plot(0.02);
    Text    out = { 0 };
    int     count = 0;

    plot_guide(plot, "attend", true, 1.06);
    panel_init_plot(&figure->panels[0], plot, "p");
    words_of(figure, 3.25, &out);
    for (const char *at = text_str(&out); (at = strstr(at, "aria-label=\"attend\"")); at++)
        count++;
    assert_int_equal(count, 1);
    text_free(&out);
    figure_free(figure);
}

/* Words beside points are not read as one: air is between them. */
TEST(names_of_points_do_not_touch)
{
    for (int step = 80; step < 200; step++) {
        View        view;
        Figure     *figure = matrices(&view, 1, "m");
        Plot       *plot = plot_new(NULL);
        PlotSeries *points = plot_add(plot, "points", CURVE_LINE, 3, false);
        double      one[2] = { 0 }, two[2] = { 0 };
        Sheet       sheet;
        Text        out = { 0 };

        assert_true(points && plot_label(points));
        for (int i = 0; i < 3; i++) {
            points->x[i] = i < 2 ? i * step : 1000;
            points->y[i] = 1;
        }
        snprintf(points->labels[0], PLOT_LABEL, "102 KiB");
        snprintf(points->labels[1], PLOT_LABEL, "128 KiB");
        plot_settle(plot);
        panel_init_plot(&figure->panels[0], plot, "p");
        words_of(figure, 3.25, &out);
        plan_of(&sheet, figure, 3.25);
        double wide = canvas_text_width(sheet.canvas, "102 KiB", FONT_SANS, sheet.style.tick);
        bool   beside = fabs(height_of(text_str(&out), "102 KiB") -
                             height_of(text_str(&out), "128 KiB")) < sheet.style.tick;

        assert_true(across_of(text_str(&out), "102 KiB", wide, 1, one) &&
                    across_of(text_str(&out), "128 KiB", wide, 1, two));
        CHECK(!beside || two[0] - one[1] > 0.3 * sheet.style.tick ||
              one[0] - two[1] > 0.3 * sheet.style.tick, "step %d: %g after %g", step, two[0],
              one[1]);
        sheet_free(&sheet);
        text_free(&out);
        figure_free(figure);
    }
}

/* Bars of such a height or width in an SVG, which has them as rectangles in this colour. */
static int bars_in(const char *svg, bool rows, double size)
{
    int count = 0;

    for (const char *at = svg; (at = strstr(at, "<rect ")); at++) {
        double   x, y, w, h;
        unsigned rgb;

        if (sscanf(at, "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\" fill=\"#%x\"/>", &x,
                   &y, &w, &h, &rgb) == 5)
            count += rgb == 0x5A7FA8 && fabs((rows ? h : w) - size) < 0.011;
    }
    return count;
}

/* However small they are, bars that have a pixel between them have a whole one at each side. */
TEST(bars_beside_a_matrix_keep_apart)
{
    static float flat[64 * 64];
    int          seen = 0;

    for (double inches = 1.5; inches < 3; inches += 0.1) {
        View    view;
        Figure *figure = matrices(&view, 1, "m");
        Margin *margin = calloc(1, sizeof(*margin));
        Text    out = { 0 };
        Sheet   sheet;
        double  high, wide;

        view.shape[0] = view.shape[1] = 64;
        view.tensor = tensor_of(DT_F32, 2, view.shape, flat);
        panel_init(&figure->panels[0], &view, NULL, 0, "m");
        *margin = (Margin){ .kind = MARGIN_SUMS, .rows = 64, .cols = 64, .share = 1,
                            .row = calloc(64, sizeof(double)), .col = calloc(64, sizeof(double)) };
        for (int k = 0; k < 64; k++)
            margin->row[k] = margin->col[k] = 1;
        figure->panels[0].margin = margin;
        plan_of(&sheet, figure, inches);
        high = sheet.layout.panels[0].row_load.h / 64.0;
        wide = sheet.layout.panels[0].load.w / 64.0;
        words_of(figure, inches, &out);
        if (high >= 6 && 0.12 * high < 1 && ++seen)
            assert_int_equal(bars_in(text_str(&out), true, high - 2), 64);
        if (wide >= 6 && 0.12 * wide < 1)
            assert_int_equal(bars_in(text_str(&out), false, wide - 2), 64);
        text_free(&out);
        sheet_free(&sheet);
        figure_free(figure);
    }
    assert_true(seen > 1);
}

/* Sums below 0 have bars in another colour, and these begin at the same side. */
TEST(bars_of_negative_sums_are_as_long)
{
    const Rgb lost = lost_colour_in(page_theme("light")->hues);
    View      view;
    Figure   *figure = matrices(&view, 1, "m");
    Margin   *margin = calloc(1, sizeof(*margin));
    Text      out = { 0 };
    double    wide[2] = { 0 }, high[2] = { 0 }; /* the largest: of sums above 0, below 0 */

    *margin = (Margin){ .kind = MARGIN_SUMS, .rows = 8, .cols = 8, .share = 1,
                        .row = calloc(8, sizeof(double)), .col = calloc(8, sizeof(double)) };
    for (int k = 0; k < 8; k++)
        margin->row[k] = margin->col[k] = k % 2 ? -3 : 3;
    figure->panels[0].margin = margin;
    words_of(figure, 2, &out);
    for (const char *at = text_str(&out); (at = strstr(at, "<rect ")); at++) {
        double   x, y, w, h;
        unsigned rgb;
        int      below;

        if (sscanf(at, "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\" fill=\"#%x\"/>", &x,
                   &y, &w, &h, &rgb) != 5)
            continue;
        below = rgb == ((unsigned)lost.r << 16 | (unsigned)lost.g << 8 | lost.b);
        if (!below && rgb != 0x5A7FA8)
            continue;
        assert_true(w > 0 && h > 0);
        wide[below] = fmax(wide[below], w);
        high[below] = fmax(high[below], h);
    }
    assert_true(wide[0] > 0 && high[0] > 0);
    CHECK_NEAR(wide[1], wide[0], 1e-9);
    CHECK_NEAR(high[1], high[0], 1e-9);
    text_free(&out);
    figure_free(figure);
}

#define CROWD 14 /* points that lie together */

static Plot *crowded_plot(uint64_t seed)
{
    Plot       *plot = plot_new(NULL);
    PlotSeries *points = plot_add(plot, "points", CURVE_POINTS, CROWD + 2, false);
    Rng         rng = rng_named(seed, "crowd");

    assert_true(points && plot_label(points));
    for (int i = 0; i < CROWD + 2; i++) { /* two corners, and the crowd in the middle */
        points->x[i] = i < 2 ? i : 0.4 + 0.2 * rng_uniform(&rng);
        points->y[i] = i < 2 ? i : 0.4 + 0.2 * rng_uniform(&rng);
        if (i >= 2)
            snprintf(points->labels[i], PLOT_LABEL, "the name of %c", 'a' + i);
    }
    plot_settle(plot);
    return plot;
}

/* The box of words in an SVG, without the air around them; false: they are left out. */
static bool words_at(const char *svg, const char *words, const Sheet *sheet, double box[4])
{
    double font = sheet->style.tick;
    double wide = canvas_text_width(sheet->canvas, words, FONT_SANS, font);

    if (!across_of(svg, words, wide, font, box))
        return false;
    box[3] = height_of(svg, words) - 0.1 * font;
    box[2] = box[3] - 0.5 * font;
    return true;
}

static bool crosses(const double line[4], const double box[4])
{
    for (int k = 0; k <= 400; k++) {
        double x = line[0] + k / 400.0 * (line[2] - line[0]);
        double y = line[1] + k / 400.0 * (line[3] - line[1]);

        if (x > box[0] + 1 && x < box[1] - 1 && y > box[2] && y < box[3])
            return true;
    }
    return false;
}

/* The lines that begin at a point of the plot and lead to its words; how many. */
static int leads_of(const char *svg, const Sheet *sheet, const Plot *plot, double leads[CROWD][4])
{
    const PlotSeries *points = &plot->series[0];
    Box               field = sheet->layout.panels[0].matrix;
    int               count = 0;

    for (const char *at = svg; (at = strstr(at, "<line ")) && count < CROWD; at++) {
        double line[4];

        assert_int_equal(sscanf(at, "<line x1=\"%lf\" y1=\"%lf\" x2=\"%lf\" y2=\"%lf\"", &line[0],
                                &line[1], &line[2], &line[3]), 4);
        for (int i = 2; i < CROWD + 2; i++)
            if (hypot(line[0] - field.x - plot_place(&plot->x, points->x[i]) * field.w,
                      line[1] - field.y - field.h +
                          plot_place(&plot->y, points->y[i]) * field.h) < 0.02) {
                memcpy(leads[count++], line, sizeof(line));
                break;
            }
    }
    return count;
}

/* Words that stand away from their point are joined to it by a line, which no other words hide. */
TEST(lines_to_names_cross_no_other_names)
{
    int all = 0;

    for (uint64_t seed = 0; seed < 24; seed++) {
        View    view;
        Figure *figure = matrices(&view, 1, "m");
        Plot   *plot = crowded_plot(seed);
        Text    out = { 0 };
        Sheet   sheet;
        double  leads[CROWD][4], box[4];
        int     count;

        panel_init_plot(&figure->panels[0], plot, "p");
        words_of(figure, 3.25, &out);
        plan_of(&sheet, figure, 3.25);
        all += count = leads_of(text_str(&out), &sheet, plot, leads);
        for (int i = 2; i < CROWD + 2; i++)
            for (int k = 0; k < count; k++)
                if (words_at(text_str(&out), plot->series[0].labels[i], &sheet, box))
                    CHECK(!crosses(leads[k], box),
                          "seed %d: a line from %g,%g to %g,%g crosses '%s'", (int)seed,
                          leads[k][0], leads[k][1], leads[k][2], leads[k][3],
                          plot->series[0].labels[i]);
        sheet_free(&sheet);
        text_free(&out);
        figure_free(figure);
    }
    CHECK(all > 24, "%d lines", all);
}

/* On a page a number of a sentence is a power of ten; names and words stay. */
TEST(numbers_in_words_are_powers)
{
    static const char *const cases[][2] = {
        { "within 1e-06 of 0", "within 10\u207B\u2076 of 0" },
        { "2.18e-06 to 0.969", "2.18\u00B710\u207B\u2076 to 0.969" },
        { "below 7e-10, (5e+09)", "below 7\u00B710\u207B\u00B9\u2070, (5\u00B710\u2079)" },
        { "run-1e-06.npz, 1e5x, the 3 e-mails", "run-1e-06.npz, 1e5x, the 3 e-mails" },
    };
    char text[128], brief[8];

    for (int k = 0; k < 4; k++) {
        sheet_write_powers(cases[k][0], text, sizeof(text));
        assert_string_equal(text, cases[k][1]);
    }
    sheet_write_powers("a longer text", brief, sizeof(brief));
    assert_string_equal(brief, "a longe");
    snprintf(text, sizeof(text), "-4e-05");
    sheet_powers(text, sizeof(text));
    assert_string_equal(text, "-4\u00B710\u207B\u2075");
}

/* A title of the program begins with a capital letter; a formula's letter stays. */
TEST(titles_begin_with_a_capital_letter)
{
    static const char *const cases[][2] = {
        { "roofline", "Roofline" },     { "\u2020 output error", "\u2020 Output error" },
        { "top-k", "Top-k" },           { "q\u00B7k under the mask", "q\u00B7k under the mask" },
        { "b = 4", "b = 4" },           { "1 hash", "1 hash" },
        { "", "" },                     { "window(5) + cols(2)", "window(5) + cols(2)" },
    };
    char text[64];

    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        snprintf(text, sizeof(text), "%s", cases[k][0]);
        title_capital(text);
        assert_string_equal(text, cases[k][1]);
    }
}

/* A title that two lines do not hold takes more of them: nothing is cut that has room below. */
TEST(long_titles_of_narrow_panels_are_whole)
{
    static const char title[] = "Short words that say what the panel shows, and of how many "
                                "tokens it is made";
    const char *word = title;
    View        view;
    Figure     *figure = matrices(&view, 3, title);
    Text        out = { 0 };

    words_of(figure, 3.25, &out);
    assert_null(strstr(text_str(&out), "\u2026"));
    while (*word) { /* each is drawn */
        char   one[16];
        size_t length = strcspn(word, " ");

        snprintf(one, sizeof(one), "%.*s", (int)length, word);
        CHECK(strstr(text_str(&out), one), "%s", one);
        word += length + strspn(word + length, " ");
    }
    text_free(&out);
    figure_free(figure);
}

/* A number stays with its unit, a name with its value, and 3 x 3 together. */
TEST(lines_do_not_begin_with_a_unit)
{
    static const char text[] = "828 of 4656 causal pairs (17.8 %), n = 48, max of 3 x 3";

    for (int columns = 12; columns < 60; columns++) {
        WrapRule rule = wrap_columns(columns, false);
        Lines    lines;

        wrap_text(text, &rule, WRAP_LINES, &lines);
        for (int k = 0; k < lines.count; k++) {
            const char *line = lines.text[k], *end = line + strlen(line) - 1;

            CHECK(*line != '%' && *line != '=' && *end != '=' && strncmp(line, "x 3", 3) != 0 &&
                      (*end != 'x' || end[-1] != ' '), "%d columns: '%s'", columns, line);
        }
    }
}

/* ---- line breaks ------------------------------------------------------------ */

/* A parameter is what tells two panels apart: it is never left out. */
TEST(long_titles_stay_whole)
{
    WrapRule rule = wrap_columns(18, false);
    Lines    lines;

    assert_false(wrap_title("(f) Sliding window, window 129 \xC2\xB7 connectivity", &rule, &lines));
    assert_true(wrap_title_whole("(f) Sliding window, window 129 \xC2\xB7 connectivity", &rule,
                                 &lines));
    assert_int_equal(lines.count, 3);
    assert_string_equal(lines.text[0], "(f) Sliding");
    assert_string_equal(lines.text[1], "window, window 129");
    assert_string_equal(lines.text[2], "connectivity");
    assert_false(wrap_title_whole("(a) antidisestablishmentarianism", &rule, &lines));
}

TEST(titles_break_beside_no_equals_sign)
{
    WrapRule rule = wrap_columns(14, true);
    Lines    lines;

    assert_true(wrap_title("(a) random, r = 2", &rule, &lines));
    assert_int_equal(lines.count, 2);
    assert_string_equal(lines.text[0], "(a) random,");
    assert_string_equal(lines.text[1], "r = 2");
    rule = wrap_columns(9, true);
    assert_true(wrap_title("(b) m = 1/4", &rule, &lines));
    assert_string_equal(lines.text[1], "m = 1/4");
    rule = wrap_columns(8, true);
    assert_true(wrap_title("features = 64", &rule, &lines)); /* no other place */
    assert_string_equal(lines.text[0], "features");
}

/* What has no blank breaks behind its first joint, also where that is its first character. */
TEST(a_word_breaks_behind_a_leading_joint)
{
    WrapRule rule = wrap_columns(5, true);

    assert_int_equal(wrap_break("+abcdefgh", &rule), 1);
    assert_int_equal(wrap_break("a+bcdefgh", &rule), 2);
    assert_int_equal(wrap_break("abcdefghi", &rule), 5);
}

SUITE(NULL, NULL)
