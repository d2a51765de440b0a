/* test_margins.c -- bars beside a matrix, against sums taken by hand from the views. */

#include "app/figure/picture.h"
#include "app/result/views.h"
#include "session_fixture.h"

#define N 29

static Margin margin_of(const Result *r, const char *name, MarginKind kind, int64_t plane,
                        int64_t excluded, double budget)
{
    Error         err = ERROR_INIT;
    const View   *view = margin_view(r->run, run_view(r->run, name), kind, &err);
    MarginRequest request = { .kind = kind, .run = r->run, .view = view, .plane = plane,
                              .head = plane, .excluded = excluded, .budget_entries = budget };
    Margin        margin;

    CHECK(view, "%s", err.text);
    if (view_planes(view) == 1)
        request.plane = 0;
    CHECK(margin_make(&request, &margin, &err), "%s", err.text);
    return margin;
}

static void read_row(const View *view, int64_t plane, int64_t i, float *out)
{
    view_read(view, view_planes(view) > 1 ? plane : 0, i, 0, N, 1, out);
}

static void check_near(const char *what, int64_t at, double is, double wanted)
{
    CHECK(isnan(wanted) ? isnan(is) : fabs(is - wanted) <= 1e-5 * fmax(1, fabs(wanted)),
          "%s %d: %.9g instead of %.9g", what, (int)at, is, wanted);
}

/* Sums of all rows and columns but the excluded one. */
static void check_sums(const Result *r, const char *name, int64_t plane, int64_t excluded)
{
    const View *view = run_view(r->run, name);
    Margin      margin = margin_of(r, name, MARGIN_SUMS, plane, excluded, 0);
    double      col[N] = { 0 };

    for (int64_t i = 0; i < N; i++) {
        float  line[N];
        double sum = 0;

        read_row(view, plane, i, line);
        for (int64_t j = 0; j < N; j++) {
            double w = view->kind == VIEW_PATTERN ? line[j] > 0 : (double)line[j];

            sum += j == excluded ? 0 : w;
            col[j] += w;
        }
        check_near("sum of row", i, margin.row[i], sum);
    }
    for (int64_t j = 0; j < N; j++)
        check_near("sum of column", j, margin.col[j], j == excluded ? (double)NAN : col[j]);
    assert_true(margin.share >= 1);
    margin_free(&margin);
}

static void check_entropy(const Result *r, int64_t plane, int64_t excluded)
{
    Margin margin = margin_of(r, "weights", MARGIN_ENTROPY, plane, excluded, 0);

    assert_null(margin.col);
    for (int64_t i = 0; i < N; i++) {
        float  line[N];
        double sum = 0, entropy = 0;

        read_row(run_view(r->run, "weights"), plane, i, line);
        for (int64_t j = 0; j < N; j++)
            sum += j == excluded ? 0 : (double)line[j];
        for (int64_t j = 0; j < N; j++)
            if (j != excluded && line[j] > 0)
                entropy -= (double)line[j] / sum * log((double)line[j] / sum);
        check_near("entropy of row", i, margin.row[i], sum > 0 ? entropy : (double)NAN);
    }
    margin_free(&margin);
}

/* Compared with the weights of full attention on the same input. */
static void check_kept(const Result *r, const Result *full, int64_t plane, int64_t excluded)
{
    Margin margin = margin_of(r, "connectivity", MARGIN_KEPT, plane, excluded, 0);

    for (int64_t i = 0; i < N; i++) {
        float  exact[N], cells[N];
        double kept = 0, all = 0;

        read_row(run_view(full->run, "weights"), plane, i, exact);
        read_row(run_view(r->run, "connectivity"), plane, i, cells);
        for (int64_t j = 0; j < N; j++) {
            all += j == excluded ? 0 : (double)exact[j];
            kept += j != excluded && cells[j] > 0 ? (double)exact[j] : 0;
        }
        check_near("kept of row", i, margin.row[i], all > 0 ? kept / all : (double)NAN);
    }
    margin_free(&margin);
}

TEST(numbers_are_those_of_the_views)
{
    static const char *const mechanisms[] = { "full", "window(window=5)", "bigbird(block=2)",
                                              "reformer(block=4)", "window(window=3,causal=true)" };
    static const char *const positions[] = { "", "position=alibi", "position=rope" };
    Session                 *s = session_on("synthetic:normal(n=29,d=8,heads=3)");

    for (size_t m = 0; m < sizeof(mechanisms) / sizeof(*mechanisms); m++)
        for (size_t p = 0; p < sizeof(positions) / sizeof(*positions); p++) {
            const char *name = mechanisms[m], *end = strchr(name, ')');
            char        text[128], exact[64];
            Result     *r, *full;

            if (*positions[p] && strstr(name, "reformer")) /* it takes none */
                continue;
            snprintf(text, sizeof(text), end ? "%.*s%s%s)" : "%.*s(%s%s)",
                     (int)(end ? end - name : (int)strlen(name)), name,
                     end && *positions[p] ? "," : "", positions[p]);
            snprintf(exact, sizeof(exact), "full(causal=%s%s%s)",
                     strstr(name, "causal") ? "true" : "false", *positions[p] ? "," : "",
                     positions[p]);
            r = result_of(s, text);
            full = result_of(s, exact);
            for (int64_t plane = 0; plane < 3; plane += 2)
                for (int64_t excluded = -1; excluded < 8; excluded += 4) {
                    check_sums(r, "connectivity", plane, excluded);
                    check_sums(r, "weights", plane, excluded);
                    check_entropy(r, plane, excluded);
                    check_kept(r, full, plane, excluded);
                }
            result_release(r);
            result_release(full);
        }
    session_free(s);
}

TEST(a_budget_reads_some_rows_and_says_so)
{
    Session *s = session_on("synthetic:normal(n=29,d=8,heads=3)");
    Result  *r = result_of(s, "full");
    Margin   margin = margin_of(r, "weights", MARGIN_SUMS, 1, -1, 7 * N);
    int      known = 0;
    double   all = 0;

    for (int64_t i = 0; i < N; i++)
        known += !isnan(margin.row[i]);
    for (int64_t j = 0; j < N; j++)
        all += margin.col[j];
    assert_int_equal(known, 7);
    check_near("share", 0, margin.share, 7.0 / N);
    check_near("all columns", 0, all, N); /* rows that were read stand for all */
    margin_free(&margin);
    margin = margin_of(r, "weights", MARGIN_SUMS, 1, -1, 1); /* less than a row has: one is read */
    check_near("share", 0, margin.share, 1.0 / N);
    check_near("the row in the middle", 0, margin.row[N / 2], 1);
    margin_free(&margin);
    result_release(r);
    session_free(s);
}

TEST(columns_are_of_the_queries_asked_for)
{
    Session      *s = session_on("synthetic:normal(n=29,d=8,heads=3)");
    Result       *r = result_of(s, "bigbird(block=2)");
    const View   *view = run_view(r->run, "weights");
    MarginRequest request = { .kind = MARGIN_SUMS, .run = r->run, .view = view, .plane = 2,
                              .excluded = -1, .queries = { 3, 11, 28 }, .query_count = 3,
                              .budget_entries = 40 };
    Margin        margin;
    float         line[3][N];
    Error         err = ERROR_INIT;

    CHECK(margin_make(&request, &margin, &err), "%s", err.text);
    for (int k = 0; k < 3; k++)
        read_row(view, 2, request.queries[k], line[k]);
    for (int64_t j = 0; j < N; j++) /* exact, however few rows the budget has */
        check_near("column", j, margin.col[j],
                   (double)line[0][j] + (double)line[1][j] + (double)line[2][j]);
    check_near("row", 11, margin.row[11], 1);
    assert_true(margin.share < 1);
    assert_int_equal(margin.queries, 3);
    margin_free(&margin);
    result_release(r);
    session_free(s);
}

TEST(lists_of_queries_are_read)
{
    MarginChoice choice = { .kind = MARGIN_SUMS }, kept = { .kind = MARGIN_KEPT };
    Error        err = ERROR_INIT;

    assert_true(margin_parse_queries("3,17,20", &choice, &err));
    assert_int_equal(choice.query_count, 3);
    assert_int_equal(choice.queries[2], 20);
    assert_false(margin_parse_queries("3", &kept, &err));
    for (int k = 0; k < 6; k++) {
        static const char *const wrong[] = { "3,,4", "4,3", "-1", "x", "3;4", "3," };

        choice.query_count = 0;
        assert_false(margin_parse_queries(wrong[k], &choice, &err));
    }
}

TEST(what_has_no_numbers_says_why)
{
    Session    *s = session_on("synthetic:normal(n=29,d=8,heads=3)");
    Result     *r = result_of(s, "reformer(block=4)");
    const View *buckets = run_view(r->run, "buckets");
    Error       err = ERROR_INIT;

    assert_null(margin_view(r->run, buckets, MARGIN_SUMS, &err));
    assert_non_null(strstr(err.text, "do not add up"));
    assert_null(margin_view(r->run, buckets, MARGIN_KEPT, &err));
    assert_null(margin_view(r->run, buckets, MARGIN_ENTROPY, &err));
    result_release(r);
    r = result_of(s, "lambda"); /* its weights have signs, and what adds up to nearly 0 */
    assert_non_null(margin_view(r->run, run_view(r->run, "weights"), MARGIN_SUMS, &err));
    assert_null(margin_view(r->run, run_view(r->run, "weights"), MARGIN_ENTROPY, &err));
    assert_non_null(strstr(err.text, "signs"));
    result_release(r);
    session_free(s);
}

SUITE(NULL, NULL)
