/* test_missed.c -- the strongest keys and the rounds that found them, against direct counting. */

#include "app/call.h"
#include "app/figure/picture.h"
#include "app/result/views.h"
#include "core/threads.h"
#include "profile/reference.h"
#include "profile/strongest.h"
#include "session_fixture.h"

#define N 29

/* Marks the k largest of a row, ties to the lower key; returns how many are there. */
static int mark_largest(const float *row, int k, bool *marked)
{
    int count = 0;

    memset(marked, 0, N * sizeof(*marked));
    for (; count < k; count++) {
        int best = -1;

        for (int j = 0; j < N; j++)
            if (!marked[j] && row[j] > 0 && (best < 0 || row[j] > row[best]))
                best = j;
        if (best < 0)
            break;
        marked[best] = true;
    }
    return count;
}

static void row_of(const View *view, int64_t head, int64_t i, float *out)
{
    view_read(view, view_planes(view) > 1 ? head : 0, i, 0, N, 1, out);
}

static void check_view(Session *s, const char *text, int keys, const char *cells, bool ranked)
{
    Result       *r = result_of(s, text), *full = NULL;
    Error         err = ERROR_INIT;
    const Missed *missed = result_missed(r, keys, NULL, NULL, &err);
    const View   *found = run_view(r->run, cells);
    double        all = 0, hits = 0;

    CHECK(missed, "%s: %s", text, err.text);
    CHECK(missed->ranked == ranked, "%s", text);
    full = result_of(s, r->run->causal ? "full(causal=true)" : "full");
    for (int64_t head = 0; head < r->run->h; head++)
        for (int64_t i = 0; i < N; i++) {
            float exact[N], seen[N], shown[N];
            bool  wanted[N], own[N];
            int   count, hit = 0;

            row_of(run_view(full->run, "weights"), head, i, exact);
            row_of(found, head, i, seen);
            row_of(missed_view(missed), head, i, shown);
            count = mark_largest(exact, keys, wanted);
            mark_largest(seen, keys, own);
            for (int j = 0; j < N; j++) {
                bool there = ranked ? own[j] : seen[j] > 0;

                CHECK((shown[j] > 0) == wanted[j], "%s: query %d, key %d", text, (int)i, j);
                if (!wanted[j])
                    continue;
                CHECK((shown[j] != COMPONENT_OTHER) == there, "%s: query %d, key %d", text, (int)i,
                      j);
                hit += there;
            }
            if (count)
                assert_true(fabs(missed->query[head * N + i] - (double)hit / count) < 1e-12);
            all += count;
            hits += hit;
        }
    assert_true(fabs(missed->found[missed->h] - hits / all) < 1e-12);
    result_release(full);
    result_release(r);
}

TEST(each_cell_is_what_counting_says)
{
    Session *s = session_on("synthetic:normal(n=29,d=8,heads=3)");

    check_view(s, "window(window=5)", 4, "connectivity", false);
    check_view(s, "bigbird(block=2)", 8, "connectivity", false);
    check_view(s, "bigbird(block=2,causal=true)", 8, "connectivity", false);
    check_view(s, "reformer(block=4)", 8, "connectivity", false);
    check_view(s, "reformer(block=4,rounds=9,causal=true)", 3, "connectivity", false);
    check_view(s, "reformer(block=4,layout=joint)", 8, "connectivity", false);
    check_view(s, "routing", 8, "connectivity", false);
    check_view(s, "clusterformer(block=8)", 29, "connectivity", false);
    check_view(s, "sinkhorn(block=4)", 5, "connectivity_hard", false);
    check_view(s, "clustered(n_clusters=5)", 8, "weights", true);
    check_view(s, "clustered-improved(n_clusters=5,topk=6)", 6, "weights", true);
    check_view(s, "full", 8, "weights", true);
    session_free(s);
}

/* The view's numbers lie in the range that docs/lessons.md gives, and its end occurs. */
static void check_numbers(Session *s, const char *text, const uint8_t *numbers, int count)
{
    Result       *r = result_of(s, text);
    const Missed *o = result_missed(r, 8, NULL, NULL, NULL);
    bool          last = false;

    assert_non_null(o);
    for (int64_t x = 0; x < o->h * N; x++) {
        float row[N];

        row_of(missed_view(o), x / N, x % N, row);
        for (int j = 0; j < N; j++) {
            CHECK(row[j] == 0 || memchr(numbers, (int)row[j], (size_t)count), "%s: %g", text,
                  (double)row[j]);
            last |= row[j] == numbers[count - 1];
        }
    }
    CHECK(last, "%s: no %d", text, numbers[count - 1]);
    result_release(r);
}

TEST(numbers_are_those_documented)
{
    static const uint8_t rounds[] = { 32, 1, 2, 4, 8, 16, 64, 128 }, found[] = { 32, 1 };
    static const uint8_t causes[] = { 32, COMPONENT_GLOBAL, COMPONENT_RANDOM, COMPONENT_WINDOW };
    Session *s = session_on("synthetic:normal(n=29,d=8,heads=3)");

    check_numbers(s, "reformer(block=2,rounds=8)", rounds, 8); /* 128: round 7 or 8 */
    check_numbers(s, "reformer(block=4,rounds=6)", rounds, 7);
    check_numbers(s, "bigbird(block=2)", causes, 4);
    check_numbers(s, "full", found, 2);
    session_free(s);
}

/* Rounds find more and more, none more than all; together they give the whole. */
TEST(rounds_add_up)
{
    Session      *s = session_on("synthetic:clusters(n=64,heads=2)");
    Result       *r = result_of(s, "reformer(block=8)");
    const Missed *o = result_missed(r, 0, NULL, NULL, NULL);

    assert_non_null(o);
    assert_int_equal(o->keys, MISSED_USUAL);
    assert_int_equal(o->rounds, 4);
    for (int64_t head = 0; head <= o->h; head++)
        for (int round = 0; round < 4; round++) {
            double alone = o->alone[head * 4 + round], together = o->together[head * 4 + round];

            assert_true(alone <= together + 1e-12);
            assert_true(together <= o->found[head] + 1e-12);
            if (round)
                assert_true(together >= o->together[head * 4 + round - 1]);
        }
    assert_true(fabs(o->together[o->h * 4 + 3] - o->found[o->h]) < 1e-12);
    assert_ptr_equal(result_missed(r, 8, NULL, NULL, NULL), o);
    assert_ptr_not_equal(result_missed(r, 4, NULL, NULL, NULL), o);
    assert_ptr_equal(result_missed_known(r, 8), o); /* views of the first are still good */
    result_release(r);
    session_free(s);
}

/* The keys that one product of matrices chooses are those of all weights, one after the other. */
static void check_search(const char *input, const char *mechanism, int64_t keys)
{
    Session  *s = session_on(input);
    Result   *r = result_of(s, mechanism);
    Strongest a, b;
    int64_t   all = r->run->h * r->run->n * keys;

    assert_true(strongest_keys(r->run, keys, NULL, NULL, &a, NULL));
    assert_true(strongest_of(run_view(r->run, "weights"), r->run->h, keys, NULL, NULL, &b, NULL));
    for (int64_t x = 0; x < all; x++)
        CHECK(a.key[x] == b.key[x] && !(a.weight[x] < b.weight[x] || a.weight[x] > b.weight[x]),
              "%s, %s: row %lld, place %lld: key %d of %g, not %d of %g", input, mechanism,
              (long long)(x / keys), (long long)(x % keys), a.key[x], (double)a.weight[x],
              b.key[x], (double)b.weight[x]);
    strongest_free(&a);
    strongest_free(&b);
    result_release(r);
    session_free(s);
}

TEST(products_choose_the_same_keys)
{
    static const char *const inputs[] = {
        "synthetic:normal(n=1100,d=32,heads=2)",
        "synthetic:normal(n=150,d=5)",
        "synthetic:copy(n=400,d=16,period=3)",  /* over a hundred keys are equal */
        "synthetic:uniform(n=300,d=16)",        /* all are */
        "synthetic:sink(n=300,d=16,match=300)", /* the other weights are 0 */
        "synthetic:sink(n=300,d=16,match=102)", /* they are too small for all bits of a float */
        "synthetic:local(n=300,d=16,width=2)",
        "synthetic:clusters(n=400,d=16,clusters=2,spread=0.0000001)", /* many are nearly equal */
    };

    for (size_t x = 0; x < sizeof(inputs) / sizeof(*inputs); x++) {
        check_search(inputs[x], "full", 7);
        check_search(inputs[x], "full(causal=true)", 7);
        check_search(inputs[x], "full", 40);
    }
}

TEST(threads_change_nothing)
{
    Session  *s = session_on("synthetic:normal(n=64,heads=3)");
    Result   *r = result_of(s, "full");
    Threads  *threads = threads_new(3);
    Strongest a, b;

    assert_true(strongest_keys(r->run, 7, NULL, NULL, &a, NULL));
    assert_true(strongest_keys(r->run, 7, threads, NULL, &b, NULL));
    assert_memory_equal(a.key, b.key, 3 * 64 * 7 * sizeof(*a.key));
    assert_memory_equal(a.weight, b.weight, 3 * 64 * 7 * sizeof(*a.weight));
    for (int64_t x = 1; x < 3 * 64 * 7; x++)
        assert_true(x % 7 == 0 || a.weight[x] < a.weight[x - 1] ||
                    (!(a.weight[x] > a.weight[x - 1]) && a.key[x] > a.key[x - 1]));
    strongest_free(&a);
    strongest_free(&b);
    threads_free(threads);
    result_release(r);
    session_free(s);
}

TEST(a_cancelled_search_says_so)
{
    Session    *s = session_on("synthetic:normal(n=64)");
    Result     *r = result_of(s, "window");
    atomic_bool cancel = true;
    Error       err = ERROR_INIT;

    assert_null(result_missed(r, 0, NULL, &cancel, &err));
    assert_int_equal(err.code, ERR_CANCELLED);
    result_release(r);
    session_free(s);
}

TEST(what_has_no_pairs_is_refused)
{
    Session *s = session_on("synthetic:normal(n=16,d=8)");
    Result  *r = result_of(s, "switch");
    Error    err = ERROR_INIT;

    assert_null(result_view(r, "missed", &err));
    assert_int_equal(err.code, ERR_UNSUPPORTED);
    result_release(r);
    r = result_of(s, "window");
    assert_null(result_missed(r, 5000, NULL, NULL, &err));
    assert_int_equal(err.code, ERR_USAGE);
    result_release(r);
    session_free(s);
}

/* Rows without a key have nothing to find. */
TEST(few_tokens)
{
    for (int n = 1; n <= 3; n++) {
        char     spec[64];
        Session *s;
        Result  *r;

        snprintf(spec, sizeof(spec), "synthetic:normal(n=%d,d=4)", n);
        s = session_on(spec);
        r = result_of(s, "window(window=1)");
        assert_non_null(result_view(r, "missed", NULL));
        assert_int_equal(result_missed(r, 8, NULL, NULL, NULL)->keys, n);
        result_release(r);
        session_free(s);
    }
}

/* A view of an iteration has a number: its position among the views of its name. */
TEST(views_on_the_way_are_numbered)
{
    Session *s = session_on("synthetic:normal(n=32,d=8)");
    Result  *r = result_of(s, "sinkhorn(block=4,sinkhorn_iters=5)");

    for (int i = 0; i < 5; i++) {
        char        name[32];
        const View *view;

        snprintf(name, sizeof(name), "permutation#%d", i + 1);
        view = result_view(r, name, NULL);
        assert_non_null(view);
        assert_int_equal(view->iteration, i);
    }
    assert_ptr_equal(result_view(r, "permutation#5", NULL), run_view(r->run, "permutation"));
    assert_null(run_view(r->run, "permutation#6"));
    assert_null(run_view(r->run, "permutation#0"));
    assert_null(run_view(r->run, "permutation#"));
    assert_null(run_view(r->run, "permutation#1x"));
    result_release(r);
    session_free(s);
}

/* A diagonal that the mechanism leaves out is not missed by accident; colours name the first round
 * that found a key. */
TEST(captions_say_what_is_missed_by_design)
{
    Session       *s = session_on("synthetic:clusters(n=64)");
    PictureOptions options = { .head = -1 };
    LegendItem     items[16];
    char           caption[256];

    for (int own = 0; own < 2; own++) {
        Result           *r = result_of(s, own ? "reformer(block=8,exclude_self=false)"
                                               : "reformer(block=8)");
        const PanelChoice panel = { .result = r, .spec = panel_spec("missed") };
        Figure           *figure = picture_of_panels(&panel, 1, &options, NULL);
        GridRequest       request = { .view = figure->panels->view, .rows = 64, .cols = 64 };
        Grid              grid;

        assert_true(figure_legend(figure, items, 16) > 3);
        assert_string_equal(items[0].text, "first found by:");
        assert_string_equal(items[1].text, "round 1");
        assert_true(grid_reduce(&request, &grid, NULL));
        panel_caption(figure->panels, &grid, caption, sizeof(caption));
        CHECK((strstr(caption, ", 57 missed by design: the query itself") != NULL) == !own, "%s",
              caption);
        grid_free(&grid);
        figure_free(figure);
        result_release(r);
    }
    session_free(s);
}

SUITE(NULL, NULL)
