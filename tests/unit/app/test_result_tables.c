/* test_result_tables.c -- claims in words, the surveys' table measured, speed beside full
 * attention's, the chart: from records made up with exact growth. */

#include "app/study/sweep.h"
#include "check.h"

TEST(claims_grow_as_they_say)
{
    static const struct {
        const char *claim;
        double      power;
        bool        log;
    } claims[] = {
        { "O(n^2)", 2, false },          { "O(n)", 1, false },
        { "O(n log n)", 1, true },       { "O(n sqrt(n))", 1.5, false },
        { "O(k n)", 1, false },          { "O(n (k + m))", 1, false },
        { "O(n m)", 1, false },          { "O(n_g^2 + n n_g)", 1, false },
        { "O(n_c^2)", -1, false },       { "O(b^2)", -1, false },
        { "O(k^2)", -1, false },         { "O(n b m^l)", 1, false },
        { "O(n_b^2)", -1, false },       { "O(n^2) memory, whatever the batch", -1, false },
        { "O(log n)", -1, false },       { "", -1, false },
        { NULL, -1, false },
    };

    for (size_t i = 0; i < sizeof(claims) / sizeof(*claims); i++) {
        Growth g = claim_growth(claims[i].claim);

        CHECK(g.power == claims[i].power && g.log == claims[i].log, "%s: n^%g%s",
              claims[i].claim ? claims[i].claim : "NULL", g.power, g.log ? " log n" : "");
    }
}

/* Every claim of the table is parsed to its exponent; none is invented. */
TEST(the_surveys_claims_are_understood)
{
    for (size_t i = 0; system_at(i); i++)
        for (int s = 0; s < SURVEYS; s++) {
            const char *claim = system_at(i)->claims[s].complexity;
            Growth      g = claim_growth(claim);

            assert_true(g.power == -1 || g.power == 1 || g.power == 1.5 || g.power == 2);
            assert_false(g.log && g.power != 1);
        }
}

static void add_row(Results *rows, const char *asked, double ms, double flops, double bytes,
                    int64_t n)
{
    char  line[600];
    Error err = ERROR_INIT;

    snprintf(line, sizeof(line),
             "{\"key\":\"%s-%lld@1\",\"asked\":\"%s\",\"mechanism\":\"%s\",\"params\":{},"
             "\"n\":%lld,"
             "\"seed\":0,\"threads\":1,\"d\":16,\"heads\":1,\"causal\":false,\"position\":\"none\","
             "\"device\":\"cpu\",\"source\":\"x\",\"status\":\"OK\",\"time_ms\":{\"median\":%.17g},"
             "\"flops\":{\"counted\":%.17g},\"memory\":{\"arena_peak\":%.17g}}",
             asked, (long long)n, asked, asked, (long long)n, ms, flops, bytes);
    assert_true(results_add(rows, line, strlen(line), 0, &err));
}

/* full: n^2; routing: n^1.5; reformer: n log n; linear twice as slow as full at 1024. */
static Results made_up(void)
{
    Results rows = { 0 };

    for (int k = 1; k <= 4; k++) {
        int64_t n = 1024 * k;
        double  x = (double)n;

        add_row(&rows, "full", x * x * 1e-6, x * x, x * 100, n);
        add_row(&rows, "routing", pow(x, 1.5) * 1e-5, pow(x, 1.5), x * 50, n);
        add_row(&rows, "reformer", x * log(x) * 1e-5, x * log(x), x * 50, n);
        add_row(&rows, "linear", x * 2 * 1024 * 1e-6, x, x * 200, n);
    }
    results_sort(&rows);
    return rows;
}

static char *table_of(TableStyle style, void (*write)(const Results *, const SeriesFit *, int,
                                                      TableStyle, Text *))
{
    Results    rows = made_up();
    SeriesFit *fits;
    Text       out = { 0 };
    int        count;
    Error      err = ERROR_INIT;

    CHECK(fit_series(&rows, 0, &fits, &count, &err), "%s", err.text);
    assert_int_equal(count, 4);
    write(&rows, fits, count, style, &out);
    free(fits);
    results_free(&rows);
    return out.data;
}

static void check_line(const char *table, const char *begin, const char *const *holds)
{
    const char *line = strstr(table, begin);
    char        copy[600];

    CHECK(line, "no line '%s' in:\n%s", begin, table);
    snprintf(copy, sizeof(copy), "%.*s", (int)strcspn(line, "\n"), line);
    for (; *holds; holds++)
        CHECK(strstr(copy, *holds), "no '%s' in: %s", *holds, copy);
}

TEST(each_surveys_claim_is_judged)
{
    static const char *const routing[] = { "1.50 [1.50, 1.50]", "n^1.5", "within [b], above [a]",
                                           NULL };
    static const char *const reformer[] = { "n log n", "within [abc]", NULL };
    static const char *const full[] = { "2.00 [2.00, 2.00]", "within [c]", NULL };
    static const char *const bigbird[] = { "bigbird", "n/a", "not in this file", NULL };
    char *table = table_of(TABLE_MARKDOWN, systems_table);
    int   rows = 0;

    check_line(table, "| Routing Transformer", routing);
    check_line(table, "| Reformer", reformer);
    check_line(table, "| Transformer ", full);
    check_line(table, "| Big Bird", bigbird);
    for (size_t i = 0; system_at(i); i++) {
        char begin[100];

        snprintf(begin, sizeof(begin), "| %s ", system_at(i)->name);
        CHECK(strstr(table, begin), "no row of %s", system_at(i)->name);
        rows++;
    }
    assert_true(rows > 40); /* one row per system, measured or not */
    free(table);
}

TEST(the_table_is_for_programs_too)
{
    static const char *const routing[] = { ",routing,", ",1.5,1.5,1.5,n^1.5,", NULL };
    char *table = table_of(TABLE_CSV, systems_table);

    assert_true(!strncmp(table, "system,runs_as,", 15));
    check_line(table, "Routing Transformer,", routing);
    free(table);
}

static void fits_anywhere(const Results *rows, const SeriesFit *fits, int count, TableStyle style,
                          Text *out)
{
    fits_table(rows, fits, count, style, 0, out);
}

TEST(own_claims_are_judged)
{
    static const char *const routing[] = { "O(n sqrt(n))", "1.50 [1.50, 1.50]", "within", "1024",
                                           NULL };
    char *table = table_of(TABLE_TEXT, fits_anywhere);

    check_line(table, "routing", routing);
    free(table);
}

/* An interval that holds O(1) to O(n^2) confirms no claim; what lies outside is still refused. */
TEST(a_wide_interval_decides_nothing)
{
    SeriesFit f = { .plain[FIT_TIME] = { .lo = number_of(0.77), .hi = number_of(2.91) } };

    assert_string_equal(verdict_word(fit_verdict(&f, FIT_TIME, (Growth){ 1, false })), "undecided");
    assert_string_equal(verdict_word(fit_verdict(&f, FIT_TIME, (Growth){ 4, false })), "below");
    f.plain[FIT_TIME].hi = number_of(1.4);
    assert_string_equal(verdict_word(fit_verdict(&f, FIT_TIME, (Growth){ 1, false })), "within");
}

TEST(speed_and_memory_stand_beside_full)
{
    static const char *const linear[] = { "(0.50x)", "(1.00x)", "(1.50x)", "(2.00x)", NULL };
    static const char *const memory[] = { "100 KiB (1.00x)", NULL };
    Results rows = made_up();
    Text    out = { 0 };

    relative_table(&rows, TABLE_TEXT, &out);
    check_line(text_str(&out), "linear", linear);
    check_line(strstr(text_str(&out), "memory n=1024"), "full", memory);
    text_clear(&out);
    add_row(&rows, "linear", 1, 1, 1, 8192); /* without full attention: no ratio */
    relative_table(&rows, TABLE_TEXT, &out);
    assert_null(strstr(text_str(&out), "n=8192")); /* 1k to 4k are all there */
    text_clear(&out);
    relative_table(&rows, TABLE_CSV, &out);
    assert_true(!strncmp(text_str(&out), "mechanism,speed.1024,speed_ratio.1024,", 38));
    text_free(&out);
    results_free(&rows);
}

TEST(other_lengths_are_the_longest)
{
    Results rows = { 0 };
    Text    out = { 0 };

    relative_table(&rows, TABLE_TEXT, &out);
    assert_int_equal(out.length, 0);
    for (int k = 0; k < 9; k++)
        add_row(&rows, "full", 1 << k, 1, 1, 16 << k);
    relative_table(&rows, TABLE_TEXT, &out);
    assert_null(strstr(text_str(&out), "n=64 "));
    assert_non_null(strstr(text_str(&out), "n=128"));
    assert_non_null(strstr(text_str(&out), "n=4096"));
    text_free(&out);
    results_free(&rows);
}

/* A decoder whose cache grows with n, and one that keeps a window: step ms as n, and constant. */
static Results decoders(void)
{
    Results rows = { 0 };

    for (int n = 64; n <= 1024; n *= 2)
        for (int k = 0; k < 2; k++) {
            char  line[600];
            Error err = ERROR_INIT;
            int   kept = k ? 64 : n;

            snprintf(line, sizeof(line),
                     "{\"mechanism\":\"%s\",\"params\":{},\"n\":%d,\"status\":\"OK\","
                     "\"time_ms\":{\"median\":1},\"decode\":{\"state_bytes\":%d,"
                     "\"step_bytes\":%d,\"decode_flops\":%d,\"way\":\"last query\",%s"
                     "\"step_ms\":{\"median\":%d}}}",
                     k ? "window" : "full", n, 256 * kept, 256 * kept, 512 * kept,
                     k ? "\"kept_ms\":0.5," : "", kept);
            assert_true(results_add(&rows, line, strlen(line), 0, &err));
        }
    results_sort(&rows);
    return rows;
}

TEST(one_token_more_is_fitted)
{
    static const char *const full[] = { "1.00 [1.00, 1.00]", " n ", NULL };
    static const char *const window[] = { "0.00 [0.00, 0.00]", NULL };
    Results    rows = decoders(), without = made_up();
    SeriesFit *fits;
    Text       out = { 0 };
    int        count;
    Error      err = ERROR_INIT;

    assert_true(rows_decode(&rows) && !rows_decode(&without));
    assert_true(fit_series(&rows, 0, &fits, &count, &err));
    assert_int_equal(count, 2);
    CHECK_NEAR(fits[0].plain[FIT_CACHE].alpha.value, 1, 1e-9);
    CHECK_NEAR(fits[1].plain[FIT_STEP_BYTES].alpha.value, 0, 1e-9);
    fits_decode_table(&rows, fits, count, TABLE_TEXT, 0, &out);
    check_line(text_str(&out), "full", full);
    check_line(text_str(&out), "window", window);
    text_clear(&out);
    fits_decode_table(&rows, fits, count, TABLE_CSV, 0, &out);
    assert_non_null(strstr(text_str(&out), ",decode.step_ms.alpha,"));
    text_clear(&out);
    fits_json(&rows, fits, count, &out);
    assert_non_null(strstr(text_str(&out), "\"decode\":{\"step_ms\":{\"alpha\":"));
    free(fits);
    text_free(&out);
    results_free(&rows);
    results_free(&without);
}

TEST(tables_of_points_have_decode_numbers)
{
    Results rows = decoders();
    Text    out = { 0 };

    points_table(&rows, TABLE_TEXT, 0, &out);
    assert_non_null(strstr(text_str(&out), "step reads"));
    assert_non_null(strstr(text_str(&out), "16.0 KiB"));
    CHECK(strstr(text_str(&out), "4*") || strstr(text_str(&out), "0*"), "%s", text_str(&out));
    text_clear(&out);
    points_table(&rows, TABLE_CSV, 0, &out);
    assert_non_null(strstr(text_str(&out), "decode.way"));
    assert_non_null(strstr(text_str(&out), "last query"));
    assert_non_null(strstr(text_str(&out), "decode.kept_ms"));
    text_free(&out);
    results_free(&rows);
}

static Text chart_of(FitsOf of, const PngOptions *options)
{
    Results    rows = made_up();
    SeriesFit *fits;
    Text       out = { 0 };
    int        count;
    Error      err = ERROR_INIT;

    assert_true(fit_series(&rows, 0, &fits, &count, &err));
    CHECK(exponents_file(&rows, fits, count, of, &(ChartWords){ NULL, NULL }, FORMAT_PNG_FILE,
                         options, &out, &err), "%s", err.text);
    free(fits);
    results_free(&rows);
    return out;
}

TEST(the_chart_is_the_same_twice)
{
    const PngOptions options = { .dpi = 60 }, dark = { .dpi = 60, .theme = "dark" };
    Text             a = chart_of(FITS_SYSTEMS, &options);
    Text             b = chart_of(FITS_SYSTEMS, &options);
    Text             c = chart_of(FITS_SERIES, &options), d = chart_of(FITS_SERIES, &dark);

    assert_int_equal(a.length, b.length);
    assert_memory_equal(a.data, b.data, a.length);
    assert_true(c.length != a.length && d.length != c.length);
    assert_memory_equal(a.data, "\x89PNG", 4);
    text_free(&a);
    text_free(&b);
    text_free(&c);
    text_free(&d);
}

/* Costs that do not grow leave slopes of +-1e-17. */
TEST(an_exponent_of_0_has_no_sign)
{
    Fit  fit = { .alpha = number_of(-1e-17), .lo = number_of(-0.004), .hi = number_of(-0.006) };
    char text[64];

    assert_string_equal(exponent_text(&fit, text, sizeof(text)), "0.00 [0.00, -0.01]");
    fit.lo = fit.hi = NUMBER_NONE;
    assert_string_equal(exponent_text(&fit, text, sizeof(text)), "0.00");
}

SUITE(NULL, NULL)
