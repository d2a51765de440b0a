/* test_steps.c -- a run as steps: notes, order, traces, strips, provenance, seeds. */

#include "app/figure/picture.h"
#include "app/result/steps.h"
#include "app/result/views.h"
#include "session_fixture.h"

static Session *session;

static int open_session(void **state)
{
    *state = session = session_on("synthetic:normal(n=40,d=8,heads=2)");
    return 0;
}

static Result *run_of(const char *text, int seeds)
{
    Request request = REQUEST_INIT;

    request.quality = seeds > 0;
    request.seeds = seeds;
    return result_as(session, request, text);
}

/* A mechanism that has notes has one for every stage it runs, and no other. */
TEST(every_stage_has_its_note)
{
    for (size_t i = 0; mechanism_at(i); i++) {
        const Mechanism *m = mechanism_at(i);
        Request          request = REQUEST_INIT;
        Error            err = ERROR_INIT;
        Result          *result;
        Step             step;

        if (!m->notes || m->needs_x || m->needs_attn)
            continue;
        assert_true(request_example(session, &request, m, &err));
        result = session_run(session, &request, &err);
        CHECK(result && result->run->err.code == ERR_NONE, "%s: %s", m->id, err.text);
        for (int s = 0; result_step(result, s, &step); s++)
            CHECK(step.note || !strcmp(step.stage->name, "position"), "%s: stage '%s' has no note",
                  m->id, step.stage->name);
        result_release(result);
        request_free(&request);
    }
}

TEST(views_belong_to_the_stage_that_made_them)
{
    Result     *result = run_of("reformer(block=8,rounds=2)", 0);
    const View *views[8];
    Step        step;
    char        name[64];

    assert_int_equal(result_steps(result), 8);
    assert_true(result_step(result, 0, &step));
    assert_int_equal(step_views(&step, views, 8), 2);
    assert_string_equal(views[1]->name, "buckets");
    assert_true(step.fresh);
    assert_null(step_order(&step, 0)); /* nothing is sorted yet */
    assert_true(result_step(result, 4, &step));
    assert_string_equal(step.shown->name, "connectivity");
    assert_true(step.shown != run_view(result->run, "connectivity")); /* of one round only */
    step_name(&step, name, sizeof(name));
    assert_string_equal(name, "attend, 1 of 2");
    assert_true(result_step(result, 5, &step));
    assert_string_equal(step.shown->name, "union"); /* of the rounds so far */
    assert_true(step.fresh);
    assert_true(result_step(result, 3, &step));
    assert_false(step.fresh); /* normalising makes no matrix: the one before stays */
    assert_false(result_step(result, 8, &step));
    result_release(result);
}

/* The union of the rounds is what the run attended to. */
TEST(rounds_add_up_to_the_connectivity)
{
    Result     *result = run_of("reformer(block=8,rounds=3,exclude_self=false)", 0);
    const View *whole = run_view(result->run, "connectivity");
    float       row[40], sum[40], all[40];

    for (int64_t i = 0; i < 80; i++) {
        memset(sum, 0, sizeof(sum));
        for (int v = 0; v < result->run->view_count; v++) {
            const View *view = &result->run->views[v];

            if (strcmp(view->name, "connectivity") != 0 || view == whole)
                continue;
            view_read(view, i / 40, i % 40, 0, 40, 1, row);
            for (int j = 0; j < 40; j++)
                sum[j] = row[j] > 0 ? 1 : sum[j];
        }
        view_read(whole, i / 40, i % 40, 0, 40, 1, all);
        assert_memory_equal(sum, all, sizeof(all));
    }
    result_release(result);
}

/* Sorted by its own round, what a round attends to lies in own and previous chunks. */
TEST(each_round_is_contiguous_in_its_own_order)
{
    Result *result = run_of("reformer(block=8,rounds=3)", 0);
    Step    step;
    int     seen = 0;

    for (int s = 0; result_step(result, s, &step); s++) {
        int64_t round = step_round(&step);
        Panel   panel;
        Strip   strip;

        if (strcmp(step.stage->name, "attend") != 0)
            continue;
        assert_int_equal(round, step.stage->iteration);
        assert_int_equal(result_order_round(result, step.shown), round);
        for (int64_t head = 0; head < 2; head++) {
            panel_init(&panel, step.shown, NULL, head, "");
            picture_sort_panel(result, head, round, &panel);
            assert_ptr_equal(panel.row_order, step_order(&step, head));
            for (int64_t i = 0; i < 40; i++)
                for (int64_t j = 0; j < 40; j++) {
                    float value;

                    view_read(step.shown, head, panel.row_order[i], panel.col_order[j], 1, 1,
                              &value);
                    assert_true(value == 0 || (i / 8 - j / 8 + 5) % 5 <= 1);
                    seen += value != 0;
                }
            assert_int_equal(panel.slot_group_count, 5);
            assert_true(strip_read(&step, head, &strip));
            for (int64_t i = 1; i < strip.n; i++)
                assert_true(strip.sorted[i - 1] <= strip.sorted[i] &&
                            strip.chunk[i] == i / 8);
            strip_free(&strip);
        }
    }
    assert_true(seen > 0);
    result_release(result);
}

/* A row for each round: each in the order of its round. */
TEST(rows_of_rounds_are_sorted_one_by_one)
{
    Result     *result = run_of("reformer(block=8,rounds=3)", 0);
    const View *view = run_view(result->run, "buckets");
    Panel       panel;

    for (int64_t head = 0; head < 2; head++) {
        panel_init(&panel, view, NULL, head, "");
        picture_sort_panel(result, head, 0, &panel);
        assert_non_null(panel.col_order);
        for (int64_t row = 0; row < 3; row++)
            for (int64_t j = 0; j < 40; j++) {
                const int32_t *order = result_sorted_order(result, head, row);
                float          value, want, before;

                view_read(panel.view, head, row, panel.col_order[j], 1, 1, &value);
                view_read(view, head, row, order[j], 1, 1, &want);
                assert_true(value == want);
                view_read(panel.view, head, row, j ? j - 1 : 0, 1, 1, &before);
                assert_true(before <= value);
            }
    }
    result_release(result);
}

/* Sinkhorn sorts keys beside queries, which stay where they are. */
TEST(an_order_of_keys_leaves_queries_in_place)
{
    Result     *result = run_of("sinkhorn(block=8,temperature=0.1)", 0);
    const View *view = run_view(result->run, "weights");
    Panel       panel;

    panel_init(&panel, view, NULL, 1, "");
    picture_sort_panel(result, 1, 0, &panel);
    assert_null(panel.row_order);
    assert_non_null(panel.col_order);
    assert_ptr_equal(panel.col_order, result_sorted_order(result, 1, 0));
    assert_false(result_sorts_rows(result, view));
    assert_true(result_sorts_cols(result, view));
    result_release(result);
}

/* The views of a stage are filed under it. */
TEST(stages_show_what_they_made)
{
    static const struct {
        const char *word, *stage, *view;
    } cases[] = {
        { "routing(n_clusters=4)", "route", "membership" },
        { "routing(n_clusters=4)", "attend", "connectivity" },
        { "sinkhorn(block=8)", "pool", "pooled" },
        { "sinkhorn(block=8)", "temperature", "scaled_logits" },
        { "sinkhorn(block=8)", "sort blocks", "connectivity_hard" },
        { "linear", "features", "features_q" },
        { "linear", "state and read", "weights" }, /* that all pairs are there says nothing */
        { "linformer(k=8)", "projections", "projection" },
        { "linformer(k=8)", "project keys and values", "projected_keys" },
        { "clusterformer(n_clusters=4)", "attend", "connectivity" },
        { "clusterformer(n_clusters=4)", "restore order", "weights" },
        { "clustered(n_clusters=4)", "attend means", "cluster_weights" },
        { "clustered-improved(n_clusters=4,topk=8)", "choose keys", "kept_mass" },
        { "clustered-improved(n_clusters=4,topk=8)", "attend chosen keys", "connectivity" },
        { "act(max_steps=3)", "step", "halting" },
    };

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        Result *result = run_of(cases[c].word, 0);
        Step    step;
        int     found = 0;

        for (int s = 0; result_step(result, s, &step); s++) {
            if (strcmp(step.stage->name, cases[c].stage) != 0)
                continue;
            found++;
            CHECK(step.fresh && !strcmp(step.shown->name, cases[c].view), "%s, %s: shows %s",
                  cases[c].word, cases[c].stage, step.shown ? step.shown->name : "nothing");
        }
        CHECK(found, "%s has no stage %s", cases[c].word, cases[c].stage);
        result_release(result);
    }
}

/* The union grows from round to round, up to all that is attended to. */
TEST(unions_grow)
{
    Result     *result = run_of("reformer(block=8,rounds=3)", 0);
    const View *whole = run_view(result->run, "connectivity"), *before = NULL;
    float       row[40], last[40] = { 0 };

    for (int v = 0; v < result->run->view_count; v++) {
        const View *view = &result->run->views[v];

        for (int64_t i = 0; !strcmp(view->name, "union") && i < 80; i++) {
            view_read(view, i / 40, i % 40, 0, 40, 1, row);
            if (before)
                view_read(before, i / 40, i % 40, 0, 40, 1, last);
            for (int64_t j = 0; before && j < 40; j++) /* oneself, only while alone */
                assert_true(row[j] >= last[j] || j == i % 40);
        }
        before = !strcmp(view->name, "union") ? view : before;
    }
    for (int64_t i = 0; i < 80; i++) {
        view_read(before, i / 40, i % 40, 0, 40, 1, row);
        view_read(whole, i / 40, i % 40, 0, 40, 1, last);
        assert_memory_equal(row, last, sizeof(row));
    }
    result_release(result);
}

TEST(both_orders_hold_the_same_tokens)
{
    Result *result = run_of("reformer(block=8,rounds=2)", 0);
    Strip   strip;
    Step    step;
    int     count[64] = { 0 };

    assert_true(result_step(result, 1, &step));
    assert_true(strip_read(&step, 0, &strip));
    assert_true(strip.sorted && !strip.chunk); /* sorted, not yet cut */
    strip_free(&strip);
    assert_true(result_step(result, 2, &step));
    for (int64_t head = 0; head < 2; head++) {
        assert_true(strip_read(&step, head, &strip));
        assert_true(strip.sorted && strip.chunk);
        for (int64_t i = 0; i < strip.n; i++) {
            count[strip.original[i]]++;
            count[strip.sorted[i]]--;
            assert_true(i == 0 || strip.sorted[i - 1] <= strip.sorted[i]);
        }
        for (int c = 0; c < 64; c++)
            assert_int_equal(count[c], 0);
        assert_int_equal(strip_border(&strip, 0), '[');
        assert_int_equal(strip_border(&strip, 7), ']');
        strip_free(&strip);
    }
    result_release(result);
}

static const PlotSeries *series_called(const Plot *plot, const char *name)
{
    for (int i = 0; i < plot->count; i++)
        if (!strcmp(plot->series[i].name, name))
            return &plot->series[i];
    fail_msg("no series '%s'", name);
    return NULL;
}

TEST(balancing_can_be_watched)
{
    Result           *result = run_of("sinkhorn(block=8,sinkhorn_iters=6)", 0);
    const PlotSeries *rows, *cols;
    Plot             *plot = NULL;
    Step              step;

    for (int at = result_steps(result) - 1; at >= 0 && !plot; at--)
        if (result_step(result, at, &step))
            plot = step_plot(&step);
    assert_non_null(plot);
    rows = series_called(plot, "row error");
    cols = series_called(plot, "column error");
    assert_int_equal(rows->count, 6);
    assert_true(rows->y[5] < rows->y[0]);
    assert_int_equal(cols->count, 6);
    assert_true(cols->y[5] < 1e-9); /* columns are balanced last */
    plot_free(plot);
    result_release(result);
}

TEST(tensors_say_where_they_are_from)
{
    Result *drawn = run_of("reformer(block=8,seed=7)", 0);

    assert_non_null(strstr(drawn->record.tensors, "\"rotations\":\"random seed 7\""));
    result_release(drawn);
}

static void assert_caption(const PanelChoice *panels, int count, const char *words, bool has,
                           const char *expected)
{
    PictureOptions options = { .head = -1, .caption = words };
    Error          err = ERROR_INIT;
    Figure        *figure = picture_of_panels(panels, count, &options, &err);

    assert_non_null(figure);
    if ((strstr(figure->caption, expected) != NULL) != has)
        fail_msg("'%s' in '%s'", expected, figure->caption);
    figure_free(figure);
}

/* What the line below each panel begins with. */
static void assert_sizes(const PanelChoice *panels, int count, const char *const *expected)
{
    PictureOptions options = { .head = -1 };
    Figure        *figure = picture_of_panels(panels, count, &options, NULL);

    assert_non_null(figure);
    for (int k = 0; k < count; k++)
        assert_string_equal(figure->panels[k].sizes, expected[k]);
    figure_free(figure);
}

/* The sizes of a pattern, but not those that its title names: in the figure's caption if it shows
 * one mechanism, else below each panel. */
TEST(captions_say_the_sizes_of_a_pattern)
{
    Result           *bird = run_of("bigbird", 0), *other = run_of("longformer", 0);
    Result           *wide = run_of("bigbird(window=5,block=2)", 0);
    const PanelChoice panels[] = { { .result = bird, .spec = PANEL_SPEC_INIT },
                                   { .result = other, .spec = PANEL_SPEC_INIT } };
    const PanelChoice one = { .result = wide, .spec = PANEL_SPEC_INIT };
    Result           *entmax = run_of("entmax", 0);
    const PanelChoice drawn[] = { { .result = entmax, .spec = panel_spec("support") },
                                  { .result = other, .spec = PANEL_SPEC_INIT } };
    const PanelChoice same[] = { { .result = bird, .spec = PANEL_SPEC_INIT },
                                 { .result = bird, .spec = panel_spec("weights") } };

    assert_caption(panels, 1, NULL, true, "; window 3, 2 global tokens, 3 random keys a row");
    assert_caption(panels + 1, 1, NULL, true, "; window 7, 1 global token");
    assert_caption(&one, 1, NULL, true, "; 2 global blocks, 3 random blocks a row");
    assert_caption(panels, 1, NULL, false, "random blocks"); /* the seed is said, the cause named */
    assert_caption(panels, 1, NULL, false, "d = ");
    assert_caption(same, 2, NULL, true, "d = 8"); /* weights depend on it */
    assert_caption(panels, 2, NULL, false, "window");
    assert_sizes(panels, 2, (const char *[]){ "window 3, 2 global tokens, 3 random keys a row",
                                              "window 7, 1 global token" });
    assert_sizes(drawn, 2, (const char *[]){ "", "window 7, 1 global token" });
    assert_sizes(same, 2, (const char *[]){ "", "" });
    assert_caption(same, 2, NULL, true, "; window 3, 2 global tokens, 3 random keys a row");
    assert_caption(panels + 1, 1, "mine", false, "window");
    result_release(bird);
    result_release(other);
    result_release(wide);
    result_release(entmax);
}

static void assert_size_of(const char *mechanism, const char *view, const char *expected)
{
    Result           *result = run_of(mechanism, 0), *other = run_of("full", 0);
    const PanelChoice panels[] = { { .result = result, .spec = panel_spec(view) },
                                   { .result = other, .spec = panel_spec("weights") } };

    assert_sizes(panels, 2, (const char *[]){ expected, "" });
    result_release(result);
    result_release(other);
}

/* Weights depend on the sizes as pairs do; a size that its default leaves to the mechanism is what
 * the run had, and how something is computed (chunk) is no size.  The session has 40 tokens. */
TEST(captions_say_the_sizes_of_weights)
{
    assert_size_of("bigbird", "weights", "window 3, 2 global tokens, 3 random keys a row");
    assert_size_of("routing", "weights", "clusters 6, cluster window 7");
    assert_size_of("routing(n_clusters=4)", "connectivity", "cluster window 10");
    assert_size_of("reformer", "missed", "rounds 4, block 64, buckets 2");
    assert_size_of("performer", "weights", "features 256");
    assert_size_of("performer(kernel=relu,relu_features=deterministic)", "weights", "");
    assert_size_of("linformer", "weights", "k 256");
    assert_size_of("linformer(k=4)", "weights", "");
    assert_size_of("sparse-strided", "connectivity", "stride 6");
}

/* Rows are counted in the head that is drawn; a head that has none has no warning. */
TEST(captions_count_the_rows_of_their_head)
{
    Result           *result = run_of("performer(denominator_eps=1e9)", 0);
    const PanelChoice panel = { .result = result, .spec = panel_spec("weights") };
    const char *lines = "performer: 3 of 80 rows are short\nperformer: 3 of 80 rows are long\n";
    int64_t     counts[] = { 0, 3 };
    Text        line = { 0 };

    assert_int_equal(result->run->h, 2);
    assert_caption(&panel, 1, NULL, true, "; \u2020 Performer: 40 of 40 rows have a denominator");
    assert_caption(&panel, 1, NULL, false, "of 80");
    result->run->by_head_count = 0;
    assert_int_equal(run_count_by_head(result->run, counts, 2, 40), 3);
    assert_false(result_head_warning(result, 0, &(const char *){ lines }, &line));
    assert_true(result_head_warning(result, 1, &lines, &line));
    assert_string_equal(text_str(&line), "performer: 3 of 40 rows are short");
    text_free(&line);
    result_release(result);
}

static void assert_read(const char *text, const char *expected)
{
    Text out = { 0 };

    add_reader_words(text, &out);
    assert_string_equal(text_str(&out), expected);
    text_free(&out);
}

TEST(readers_see_words_instead_of_parameters)
{
    assert_read("k=256 is more than the m=64 keys", "k = 256 is more than the m = 64 keys");
    assert_read("within denominator_eps=1e-06 of 0", "within denominator eps 1e-06 of 0");
    assert_read("--causal intersects (try stabilize=false, -1)",
                "causal intersects (try stabilize false, -1)");
    assert_read("w_1 of heads_2.npz, a <= b, x == y", "w 1 of heads_2.npz, a <= b, x == y");
}

/* One panel or several, with titles given by the user or without. */
TEST(captions_say_where_tensors_are_from)
{
    Result           *drawn = run_of("linformer(seed=7)", 0), *other = run_of("performer", 0);
    Result           *fixed = run_of("window", 0);
    const PanelChoice panels[] = { { .result = drawn, .spec = PANEL_SPEC_INIT },
                                   { .result = other, .spec = PANEL_SPEC_INIT } };
    const PanelChoice plain = { .result = fixed, .spec = PANEL_SPEC_INIT };

    assert_caption(panels, 1, NULL, true, "; e proj, f proj drawn at random, seed 7");
    assert_caption(panels, 1, "after a paper", true, "after a paper; ");
    assert_caption(panels, 1, "after a paper", true, "; e proj, f proj drawn at random, seed 7");
    assert_caption(panels, 2, NULL, true, "; Linformer (e proj, f proj) drawn at random, seed 7; "
                                          "Performer (projection) drawn at random");
    assert_caption(&plain, 1, NULL, false, "drawn");
    assert_caption(&plain, 1, "after a paper", false, ";");
    assert_caption(panels, 1, "", false, "random"); /* what is asked for empty is empty */
    assert_caption(panels, 1, "", false, ";");
    result_release(drawn);
    result_release(other);
    result_release(fixed);
}

TEST(seeds_give_a_band)
{
    Result *drawn = run_of("random(r=5)", 6), *fixed = run_of("window", 6);
    const SeedSpread *s = &drawn->record.seeds;

    assert_int_equal(s->count, 6);
    assert_true(s->mass.min.value < s->mass.mean.value && s->mass.mean.value < s->mass.max.value);
    assert_true(s->output_error.mean.valid);
    assert_int_equal(fixed->record.seeds.count, 0);
    assert_non_null(strstr(fixed->record.warnings, "every seed"));
    result_release(drawn);
    result_release(fixed);
}

/* A mechanism that reads x, or has its own rows, has no baseline for seeds: the message says so. */
TEST(seeds_without_a_band_say_why)
{
    static const char *const whys[][2] = {
        { "switch", "it reads x" },
        { "perceiver(n_latents=4)", "rows of its own" },
    };

    for (size_t i = 0; i < sizeof(whys) / sizeof(*whys); i++) {
        Result *drawn = run_of(whys[i][0], 2);
        Text    text = { 0 };

        assert_int_equal(drawn->record.seeds.count, 2);
        record_text(&drawn->record, &text);
        assert_non_null(strstr(text_str(&text), "no exact attention to compare with"));
        assert_non_null(strstr(text_str(&text), whys[i][1]));
        assert_null(strstr(text_str(&text), "least, most"));
        text_free(&text);
        result_release(drawn);
    }
}

/* The objective of k-means is traced at every assignment and never rises. */
TEST(clustering_is_watched)
{
    static const char *const cases[][2] = {
        { "routing(kmeans_iters=6)", "mean 1 - cosine" },
        { "clusterformer", "mean 1 - cosine" },
        { "clustered(iterations=6)", "bits off the code" },
    };

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        Result    *result = run_of(cases[c][0], 0);
        const Run *run = result->run;
        double     last = (double)INFINITY;
        int        count = 0;

        for (int i = 0; i < run->trace_count; i++) {
            if (strcmp(run->traces[i].name, cases[c][1]))
                continue;
            CHECK(run->traces[i].value <= last + 1e-12, "%s: %g after %g", cases[c][0],
                  run->traces[i].value, last);
            last = run->traces[i].value;
            count++;
        }
        CHECK(count >= 2, "%s: %d numbers", cases[c][0], count);
        result_release(result);
    }
}

SUITE(open_session, session_close)
