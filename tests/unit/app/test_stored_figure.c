/* test_stored_figure.c -- measured plots in files: kept to the last bit, drawn again, damaged. */
#include <jansson.h>
#include <unistd.h>

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "check.h"
#include "draw/page/canvas.h"

/* A plot with every field set. */
static Plot *plot_full(void)
{
    Error       err = ERROR_INIT;
    Plot       *plot = plot_new(&err);
    PlotSeries *s = plot_add(plot, "time \xc2\xb7 \"a\\b\"", CURVE_LINE, 3, true);

    for (int i = 0; i < 3; i++) {
        s->x[i] = pow(2, i);
        s->y[i] = i == 1 ? (double)NAN : 0.1 * (i + 1) / 3;
        s->low[i] = s->y[i] * 0.9;
        s->high[i] = s->y[i] * 1.1;
    }
    s->whiskers = true;
    assert_true(plot_label(s));
    snprintf(s->labels[2], sizeof(s->labels[2]), "the last");
    assert_non_null(plot_line(plot, "claim", 0, s->x, s->high, 3));
    plot->series[1].roof = true;
    assert_non_null(plot_add(plot, "none", CURVE_STEPS, 0, false));
    plot_guide(plot, "limit", true, 3);
    assert_true(plot_name_points(plot, "one|two|four"));
    snprintf(plot->x.name, sizeof(plot->x.name), "n");
    snprintf(plot->y.name, sizeof(plot->y.name), "time (ms)");
    plot->x.log = plot->y.log = true;
    snprintf(plot->note, sizeof(plot->note), "a note");
    snprintf(plot->measured, sizeof(plot->measured), "a machine");
    plot->binned = 7;
    plot_settle(plot);
    return plot;
}

static Plot *plot_with_rows(void)
{
    Error       err = ERROR_INIT;
    Plot       *plot = plot_new(&err);
    PlotSeries *s = plot_add(plot, "spans", CURVE_SPANS, 2, true);

    assert_true(plot_rows(plot, 2, &err));
    snprintf(plot->rows[0], sizeof(plot->rows[0]), "first");
    for (int i = 0; i < 2; i++) {
        s->y[i] = i;
        s->low[i] = i;
        s->x[i] = s->high[i] = i + 1.0 / 3;
    }
    plot_settle(plot);
    return plot;
}

static void text_of(const Plot *plot, Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '{');
    plot_json(plot, &json);
    jsonw_close(&json, '}');
}

static Plot *read_plot(const char *text, Error *err)
{
    json_t *json = json_loads(text, 0, NULL);
    Plot   *plot = plot_of_json(json, err);

    json_decref(json);
    return plot;
}

TEST(a_plot_comes_back_to_the_last_bit)
{
    Plot *plots[] = { plot_full(), plot_with_rows() };

    for (int k = 0; k < 2; k++) {
        Text  before = { 0 }, after = { 0 };
        Error err = ERROR_INIT;
        Plot *again;

        text_of(plots[k], &before);
        again = read_plot(text_str(&before), &err);
        CHECK(again, "%s in %s", err.text, text_str(&before));
        text_of(again, &after);
        assert_string_equal(text_str(&before), text_str(&after));
        for (int i = 0; i < plots[k]->count; i++)
            assert_memory_equal(plots[k]->series[i].x, again->series[i].x,
                                (size_t)plots[k]->series[i].count * sizeof(double));
        assert_memory_equal(&plots[k]->x.lo, &again->x.lo, 2 * sizeof(double));
        assert_true(k == 1 || again->series[1].roof);
        assert_true(isnan(again->series[0].y[1]) == isnan(plots[k]->series[0].y[1]));
        plot_free(again);
        plot_free(plots[k]);
        text_free(&before);
        text_free(&after);
    }
}

/* The text with the first `what` in it made `with`. */
static void replaced(const Text *text, const char *what, const char *with, Text *out)
{
    const char *at = strstr(text_str(text), what);

    CHECK(at, "no %s in %s", what, text_str(text));
    text_add_bytes(out, text_str(text), (size_t)(at - text_str(text)));
    text_addf(out, "%s%s", with, at + strlen(what));
}

TEST(damaged_numbers_are_refused)
{
    static const struct {
        const char *what, *with;
    } cases[] = {
        { "\"mark\":\"line\"", "\"mark\":\"wave\"" }, { "\"y\":[", "\"y\":[1,2,3,4,5,6,7," },
        { "\"range\":[", "\"range\":[1e9," },         { "\"labels\":[", "\"labels\":[\"more\"," },
        { "\"low\":[", "\"low\":[3," },               { "\"series\":", "\"serious\":" },
        { "\"hue\":0", "\"hue\":-2" },                { "\"hue\":0", "\"hue\":4000000000" },
        { "\"places\":[", "\"places\":[0," },         { "\"x\":\"n\"", "\"x\":7" },
        { "\"along\":", "\"alone\":" },               { "\"guides\":[{", "\"guides\":[{},{" },
    };
    Plot *plot = plot_full();
    Text  good = { 0 };

    text_of(plot, &good);
    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        Text  bad = { 0 };
        Error err = ERROR_INIT;

        replaced(&good, cases[k].what, cases[k].with, &bad);
        CHECK(!read_plot(text_str(&bad), &err), "%s", text_str(&bad));
        assert_non_null(strstr(err.text, "damaged"));
        text_free(&bad);
    }
    text_free(&good);
    plot_free(plot);
}

/* ---- files ------------------------------------------------------------------ */

static bool run(Session *s, const char *line, Text *out, Error *err)
{
    const char *words[CALL_MAX_WORDS];
    Text        storage = { 0 };
    int         count;
    bool        ok;

    *err = ERROR_INIT;
    ok = call_split(line, words, CALL_MAX_WORDS, &count, &storage, err) &&
         command_run(s, words, count, READER_FILE, 80, out, err);
    text_free(&storage);
    return ok;
}

static const char *const kinds[] = { "png", "svg", "pdf", "txt", "ans" };

static const char *const figures[] = {
    "figure 'full:plot(time) + window:plot(time)' 'full:plot(timeline)' -n 32 -d 8 --repeat 2",
    "figure window 'window:plot(memory)' -n 32 -d 8 --repeat 2 --titles 'a | b'", /* matrix too */
    "compare full linear --plot time,flops -n 32 -d 8 --repeat 2 --theme slide",
    "compare linear --plot scaling -n 128 -d 4 --repeat 2 --width 3.25 --title T --caption C",
    "compare window --vary window=1:9:+4 --plot mass,time -n 32 -d 8 --repeat 2 --theme print",
};

TEST(every_kind_is_drawn_again_from_its_numbers)
{
    Error    err = ERROR_INIT;
    Session *s = session_new(&err);

    for (size_t f = 0; f < sizeof(figures) / sizeof(*figures); f++)
        for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
            Text line = { 0 }, out = { 0 };
            char path[] = "/tmp/storedXXXXXX";

            close(mkstemp(path));
            text_addf(&line, "%s --dpi 80 --format %s -o %s", figures[f], kinds[k], path);
            CHECK(run(s, text_str(&line), &out, &err), "%s: %s", text_str(&line), err.text);
            text_clear(&line);
            text_addf(&line, "rerender %s --check", path);
            CHECK(run(s, text_str(&line), &out, &err), "%s as %s: %s", figures[f], kinds[k],
                  err.text);
            text_clear(&line);
            text_addf(&line, "info %s", path);
            text_clear(&out);
            CHECK(run(s, text_str(&line), &out, &err), "%s", err.text);
            CHECK(strstr(text_str(&out), "\nmeasured "), "%s", text_str(&out));
            remove(path);
            text_free(&line);
            text_free(&out);
        }
    session_free(s);
}

/* A file with these numbers in the text. */
static void write_numbers(const char *path, const char *numbers)
{
    FILE *file = fopen(path, "w");

    fprintf(file, "a figure\n# attnscope:command: figure full -n 8\n# " NUMBERS_KEY ": %s\n",
            numbers);
    fclose(file);
}

TEST(files_that_were_tampered_with_are_refused)
{
    static const char *const bad[] = {
        "{", "[]", "{\"panels\":[]}", "{\"panels\":[{}]}", "{\"panels\":7}",
        "{\"figure\":{\"panels\":1,\"rows\":-1},\"panels\":[{}]}",
        "{\"figure\":{\"panels\":1,\"dpi\":999999999},\"panels\":[{}]}",
        "{\"figure\":{\"panels\":1,\"width\":1e300},\"panels\":[{}]}",
    };
    char path[] = "/tmp/storedXXXXXX";

    close(mkstemp(path));
    for (size_t k = 0; k < sizeof(bad) / sizeof(*bad); k++) {
        Error err = ERROR_INIT;

        write_numbers(path, bad[k]);
        CHECK(!stored_figure_read(path, &err), "%s", bad[k]);
        CHECK(strstr(err.text, "damaged"), "%s: '%s'", bad[k], err.text);
    }
    remove(path);
}

/* ---- steps -------------------------------------------------------------------- */

TEST(a_figure_of_steps_says_its_input)
{
    char     path[] = "/tmp/stepsXXXXXX", all[1 << 16] = "";
    Error    err = ERROR_INIT;
    Session *s = session_new(&err);
    Text     line = { 0 }, out = { 0 };
    FILE    *file;

    close(mkstemp(path));
    text_addf(&line, "step window -n 24 --seed 7 --format svg --letters text -o %s", path);
    CHECK(run(s, text_str(&line), &out, &err), "%s", err.text);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(all, 1, sizeof(all) - 1, file) > 0);
    fclose(file);
    unlink(path);
    CHECK(strstr(all, "n = 24, d = 64, seed 7"), "%s", all);
    text_free(&line);
    text_free(&out);
    session_free(s);
}

/* ---- charts of exponents ----------------------------------------------------- */

static void chart_text(const ExponentChart *chart, Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '{');
    exponents_json(chart, &json);
    jsonw_close(&json, '}');
}

static ExponentChart *read_chart(const char *text, Error *err)
{
    json_t        *json = json_loads(text, 0, NULL);
    ExponentChart *chart = exponents_of_json(json, err);

    json_decref(json);
    return chart;
}

TEST(a_chart_comes_back_to_the_last_bit)
{
    ExponentRow rows[2] = {
        { .group = "first", .name = "full \"x\"", .claim = "O(n^2)", .claims = { 2, 1 + 1 / 3.0 },
          .claim_count = 2,
          .measured = { { 1.99, 1.9 + 0.1 / 3, 2.05, true, true },
                        { .value = 1.7, .valid = true } } },
        { .name = "window", .claim = "-", .note = "one length only" },
    };
    ExponentChart  chart = { "title", "caption", "a machine", rows, 2, true }, *again;
    PngOptions     options = { .dpi = 72 };
    Text           a = { 0 }, b = { 0 }, x = { 0 }, y = { 0 };
    Error          err = ERROR_INIT;

    chart_text(&chart, &a);
    again = read_chart(text_str(&a), &err);
    CHECK(again, "%s", err.text);
    chart_text(again, &b);
    assert_string_equal(text_str(&a), text_str(&b));
    for (FigureFormat kind = FORMAT_PNG_FILE; kind <= FORMAT_PDF_FILE; kind++) {
        text_clear(&x);
        text_clear(&y);
        assert_true(exponent_chart_file(&chart, kind, &options, &x, &err) &&
                    exponent_chart_file(again, kind, &options, &y, &err));
        assert_int_equal(x.length, y.length);
        assert_memory_equal(x.data, y.data, x.length);
    }
    assert_false(exponent_chart_file(&chart, FORMAT_TEXT_FILE, &options, &x, &err));
    exponents_free(again);
    text_free(&a);
    text_free(&b);
    text_free(&x);
    text_free(&y);
}

/* ---- what a chart of exponents draws ------------------------------------------ */

static const ExponentRow wide_row = {
    .name = "full", .claim = "O(n^2)", .claims = { 2 }, .claim_count = 1,
    .measured = { { 1.99, 1.9, 2.05, true, true }, { 2.2, 0.4, 2.3, true, true },
                  { -0.03, -0.04, -0.02, true, true } },
};

TEST(only_what_is_claimed_is_drawn)
{
    ExponentChart chart = { "title", "caption", "a machine", &wide_row, 1, false };
    Error         err = ERROR_INIT;
    Plot         *plot = exponents_plot(&chart, &err);

    CHECK(plot, "%s", err.text);
    assert_int_equal(plot->series[EXPONENTS].count, EXPONENT_CLAIMS);
    assert_true(plot->series[EXPONENTS].x[0] == 2);
    for (int k = 1; k < EXPONENT_CLAIMS; k++)
        assert_true(isnan(plot->series[EXPONENTS].x[k]));
    plot_free(plot);
}

/* A value beyond the axis lies on its end. */
TEST(the_axis_of_exponents_ends)
{
    ExponentRow   row = { .name = "full", .measured = { { -7, 0, 0, true, false },
                                                        { 9, 0, 0, true, false } } };
    ExponentChart chart = { "title", "caption", "a machine", &row, 1, false };
    Error         err = ERROR_INIT;
    Plot         *plot = exponents_plot(&chart, &err);

    CHECK(plot, "%s", err.text);
    CHECK(plot->x.lo == -2 && plot->x.hi == 5.5, "from %g to %g", plot->x.lo, plot->x.hi);
    plot_free(plot);
}

static bool draw_row(const ExponentRow *row, double inch, Text *bytes, Error *err)
{
    ExponentChart chart = { "title", "caption", "a machine", row, 1, false };
    PngOptions    options = { .dpi = 300, .width_inch = inch, .size_inch = 8 / 72.27,
                              .letters = LETTERS_NAMED };

    text_clear(bytes);
    return exponent_chart_file(&chart, FORMAT_SVG_FILE, &options, bytes, err);
}

static int times(const Text *bytes, const char *word)
{
    int count = 0;

    for (const char *at = text_str(bytes); (at = strstr(at, word)); at += strlen(word))
        count++;
    return count;
}

TEST(labels_of_a_narrow_chart_are_fewer)
{
    Text  bytes = { 0 };
    Error err = ERROR_INIT;

    CHECK(draw_row(&wide_row, 6.75, &bytes, &err), "%s", err.text);
    CHECK(times(&bytes, ">0.5<") == 1 && times(&bytes, ">1.0<") == 1, "wide");
    CHECK(draw_row(&wide_row, 3.8, &bytes, &err), "%s", err.text);
    CHECK(times(&bytes, ">0.5<") == 0 && times(&bytes, ">1.0<") == 1, "narrow");
    text_free(&bytes);
}

TEST(a_chart_writes_a_true_minus)
{
    Text  bytes = { 0 };
    Error err = ERROR_INIT;

    assert_true(draw_row(&wide_row, 6.75, &bytes, &err));
    CHECK(times(&bytes, ">\xe2\x88\x92" "0.03<") == 1 && times(&bytes, ">-0.03<") == 0, "number");
    CHECK(times(&bytes, ">\xe2\x88\x92" "0.5<") == 1 && times(&bytes, ">-0.5<") == 0, "tick");
    text_free(&bytes);
}

/* The heads are the only new shapes. */
TEST(an_interval_cut_by_the_field_has_a_head)
{
    ExponentRow cut = wide_row;
    Text        bytes = { 0 };
    Error       err = ERROR_INIT;
    int         before;

    assert_true(draw_row(&cut, 6.75, &bytes, &err));
    CHECK(times(&bytes, "arrows: beyond the axis") == 0, "no arrow");
    before = times(&bytes, "<path") + times(&bytes, "<polygon");
    cut.measured[EXPONENT_TIME].hi = 9;
    cut.measured[EXPONENT_TIME].lo = -7;
    assert_true(draw_row(&cut, 6.75, &bytes, &err));
    assert_int_equal(times(&bytes, "<path") + times(&bytes, "<polygon"), before + 2);
    CHECK(times(&bytes, "arrows: beyond the axis") == 1, "arrows are not named");
    text_free(&bytes);
}

TEST(a_narrow_chart_says_the_width_that_it_needs)
{
    Text        bytes = { 0 };
    Error       err = ERROR_INIT;
    const char *needs;
    double      inch;

    assert_false(draw_row(&wide_row, 1.5, &bytes, &err));
    needs = strstr(err.text, "needs ");
    CHECK(needs && strstr(err.text, "not 1.5"), "%s", err.text);
    inch = strtod(needs + 6, NULL);
    CHECK(draw_row(&wide_row, inch, &bytes, &err), "%.2f: %s", inch, err.text);
    assert_false(draw_row(&wide_row, inch - 0.02, &bytes, &err));
    text_free(&bytes);
}

TEST(a_damaged_chart_is_refused)
{
    static const char *const damaged[] = {
        "{}", "{\"measured\":\"m\",\"title\":\"t\",\"caption\":\"c\",\"rows\":[]}",
        "{\"measured\":\"m\",\"title\":\"t\",\"caption\":\"c\",\"rows\":[{}]}",
        "{\"measured\":\"m\",\"title\":\"t\",\"caption\":3,\"rows\":[{\"name\":\"n\",\"claim\":"
        "\"c\",\"claims\":[],\"flops\":null,\"time\":null,\"memory\":null}]}",
        "{\"measured\":\"m\",\"title\":\"t\",\"caption\":\"c\",\"rows\":[{\"name\":\"n\",\"claim\":"
        "\"c\",\"claims\":[1,2,3,4],\"flops\":null,\"time\":[1,2],\"memory\":null}]}",
    };

    for (size_t k = 0; k < sizeof(damaged) / sizeof(*damaged); k++) {
        Error err = ERROR_INIT;

        assert_null(read_chart(damaged[k], &err));
        CHECK(err.code == ERR_FORMAT && strstr(err.text, "damaged"), "%s: %s", damaged[k],
              err.text);
    }
}

SUITE(NULL, NULL)
