/* test_position_kernel.c -- positional modifiers through the attention kernel.
 *
 * Decoding (the last rows of a causal sequence equal those of the whole run),
 * the kernel against the scores of single cells, counted FLOPs, and memory
 * that runs out.
 */
#include "attn/run/position.h"
#include "core/threads.h"
#include "position_setup.h"

static const Mechanism *full(void)
{
    return mechanism_find("full");
}

static void kernel_setup(Setup *s, int64_t n, int64_t m, const char *position)
{
    setup_open(s, 3, n, m, 5, true);
    if (!strcmp(position, "disentangled"))
        set(s, "pos_terms=[c2p,p2c,p2p]");
    if (!strcmp(position, "shaw"))
        s->b = give(s, "pos_value", 2, (int64_t[]){ 9, s->e });
}

/* Drawn tables do not depend on n (pos_k of disentangled follows m), so both runs agree. */
TEST(test_decoding_equals_the_whole_run)
{
    enum { M = 130, LAST = 9 };

    for (size_t x = 0; position_at(x); x++) {
        const char *id = position_at(x)->id;
        Setup       s;
        Run        *whole, *last;
        Tensor      q;

        kernel_setup(&s, M, M, id);
        whole = run_any(&s, full(), id);
        q = s.q;
        s.n = LAST;
        s.q = filled(&s, "tail", 3, (int64_t[]){ s.h, LAST, s.d }, 1);
        for (int64_t head = 0; head < s.h; head++)
            memcpy(tensor_f32(&s.q) + head * LAST * s.d,
                   tensor_f32(&q) + (head * M + M - LAST) * s.d, LAST * 5 * sizeof(float));
        last = run_any(&s, full(), id);
        assert_int_equal(whole->err.code, ERR_NONE);
        assert_int_equal(last->err.code, ERR_NONE);
        for (int64_t head = 0; head < s.h; head++)
            for (int64_t i = 0; i < LAST; i++)
                for (int64_t c = 0; c < s.e; c++)
                    near(at(&last->out, head, i, c), at(&whole->out, head, M - LAST + i, c), 2e-6);
        run_free(whole);
        run_free(last);
        setup_close(&s);
    }
}

/* output of the kernel = softmax over j <= p_i of the probe's scores, times values. */
TEST(test_kernel_equals_the_scores)
{
    for (size_t x = 0; position_at(x); x++) {
        const char *id = position_at(x)->id;
        Setup       s;
        Run        *run, *scores;

        kernel_setup(&s, 75, 133, id);
        run = run_any(&s, full(), id);
        scores = run_probe(&s, id);
        assert_int_equal(run->err.code, ERR_NONE);
        for (int64_t head = 0; head < s.h; head++)
            for (int64_t i = 0; i < s.n; i++) {
                int64_t p = (int64_t)where(&s, i);
                double  sum = 0, mixed = 0;

                for (int64_t j = 0; j <= p; j++) {
                    double  weight = exp(shown(scores, "scores", head, i, j));
                    int64_t c = (j - p < -4 ? -4 : j - p) + 4;

                    sum += weight;
                    mixed += weight * (shown(scores, "v", head, j, 1) +
                                       (s.b.data ? at(&s.b, head, c, 1) : 0));
                }
                near(at(&run->out, head, i, 1), mixed / sum, 5e-6);
            }
        run_free(run);
        run_free(scores);
        setup_close(&s);
    }
}

/* Rows are shared out to threads, but each is a function of its position alone. */
TEST(test_threads_change_nothing)
{
    Threads *threads = threads_new(3);

    assert_non_null(threads);
    for (size_t x = 0; position_at(x); x++) {
        const char *id = position_at(x)->id;
        Setup       s;
        Run        *alone, *together;

        setup_open(&s, 2, 150, 150, 5, true);
        alone = run_probe(&s, id);
        s.threads = threads;
        together = run_probe(&s, id);
        assert_memory_equal(run_view(alone, "scores")->tensor.data,
                            run_view(together, "scores")->tensor.data,
                            2 * 150 * 150 * sizeof(double));
        run_free(alone);
        run_free(together);
        setup_close(&s);
    }
    threads_free(threads);
}

TEST(test_flops)
{
    /* h = 3, n = m = 10, d = 5, e = 3, causal: nnz = 165 */
    static const struct {
        const char *position;
        double      flops;
    } want[] = {
        { "sinusoidal", 5 * 20 * 3 },
        { "rope", 3 * 4 * 20 * 3 },
        { "alibi", 2 * 165 },
        { "t5", 165 },
        { "xl", 2 * 5 * 165 + 2 * 3 * 10 * 5 + 2 * 3 * 15 * 5 * 10 }, /* no later keys */
        { "disentangled", 2 * 5 * 3 * 2 * 10 * 20 + 3 * 165 },
        { "shaw", 2 * 5 * 3 * 10 * 9 + 165 + 3 * 165 },
    };

    for (int x = 0; x < LENGTH(want); x++) {
        Setup s;
        Run  *run;

        kernel_setup(&s, 10, 10, want[x].position);
        run = run_any(&s, full(), want[x].position);
        near(run_flops(run).position, want[x].flops, 0);
        run_free(run);
        setup_close(&s);
    }
}

/* ---- xl computes the distances that the cells need ------------------------------ */

static Run *run_without_views(Setup *s, const Mechanism *mechanism, const char *position)
{
    RunSpec spec = { .mechanism = mechanism, .q = s->q, .k = s->k, .v = s->v,
                     .causal = s->causal, .position = position_find(position),
                     .given = &s->given, .seed = 7, .threads = s->threads };
    Run    *run = run_new(&spec);

    run_execute(run);
    assert_non_null(run);
    return run;
}

/* 2 d a cell, 2 h n d for u and v, 2 h D d a distance, D = h d; in the closed form too. */
static void check_distances(const char *id, const char *params, int64_t n, int64_t m, bool causal,
                            int distances)
{
    Setup s;

    setup_open(&s, 3, n, m, 4, causal);
    if (*params)
        set(&s, params);
    for (int views = 0; views < 2; views++) {
        Run   *run = views ? run_any(&s, mechanism_find(id), "xl")
                           : run_without_views(&s, mechanism_find(id), "xl");
        Flops  counted = run_flops(run), closed;
        bool   bound;
        double expected;

        CHECK(run->err.code == ERR_NONE, "%s(%s): %s", id, params, run->err.text);
        expected = counted.score + 2 * 3 * (double)run->n * 4 + 2 * 3 * 12 * 4 * distances;
        CHECK(counted.position == expected, "%s(%s) n=%lld%s: %g position FLOPs, not %g", id,
              params, (long long)n, views ? " with views" : "", counted.position, expected);
        assert_true(run_closed_form(run, &closed, &bound));
        CHECK(closed.position == counted.position, "%s(%s): closed form %g, counted %g", id,
              params, closed.position, counted.position);
        run_free(run);
    }
    setup_close(&s);
}

TEST(xl_charges_the_distances_that_cells_need)
{
    check_distances("full", "", 20, 20, false, 39);
    check_distances("full", "", 20, 20, true, 20);
    check_distances("full", "", 5, 20, true, 20); /* decoding: all distances back */
    check_distances("full", "", 7, 20, false, 26);
    check_distances("window", "window=5", 40, 40, false, 5);
    check_distances("window", "window=5", 40, 40, true, 3);
    check_distances("window", "window=500", 40, 40, false, 79);
    check_distances("dilated", "window=5,dilation=[3]", 40, 40, false, 5);
    check_distances("dilated", "window=5,dilation=[1,2,3]", 40, 40, false, 11); /* of all heads */
    check_distances("block-local", "block=8", 40, 40, false, 15);
    check_distances("natten", "kernel=[7]", 40, 40, false, 13); /* moved at borders */
    check_distances("transformer-xl", "segment=8,mem_len=4", 40, 40, true, 12);
    check_distances("bigbird", "block=4,window=3,global=0,random=0", 40, 40, false, 15);
    check_distances("bigbird", "block=4,window=3,global=0,random=0", 40, 40, true, 8);
    check_distances("star", "window=3", 20, 20, true, 20);
    check_distances("axial", "width=8", 40, 40, false, 23);
    check_distances("axial", "width=8", 40, 40, true, 12);
    check_distances("streaming-llm", "sinks=2,window=4,positions=cache", 20, 20, true, 6);
    check_distances("streaming-llm", "sinks=2,window=4,positions=text", 20, 20, true, 20);
    check_distances("pattern", "expr=none", 12, 12, false, 0); /* no cell needs one */
}

/* A column pass with queries of its own projects its own distances, and the rows' only theirs: 7 of
 * rows of 4, 7 of 4 columns. */
TEST(xl_charges_each_projection_of_axial_its_own_distances)
{
    double cost[2];

    for (int given = 0; given < 2; given++) {
        Setup s;
        Run  *run;

        setup_open(&s, 3, 16, 16, 4, false);
        set(&s, "width=4");
        if (given)
            give(&s, "q2", 3, (int64_t[]){ 3, 16, 4 });
        run = run_without_views(&s, mechanism_find("axial"), "xl");
        CHECK(run->err.code == ERR_NONE, "%s", run->err.text);
        cost[given] = run_flops(run).position;
        run_free(run);
        setup_close(&s);
    }
    CHECK(cost[1] - cost[0] == 2 * 3 * 16 * 4 + 2 * 3 * 12 * 4 * (7 + 7 - 13), "%g more",
          cost[1] - cost[0]);
}

/* Where the content chooses the cells, the distances are those that the mask allows.  Ready vectors
 * leave the projection out: the difference is what it costs. */
TEST(xl_charges_no_distance_ahead_of_a_causal_run)
{
    static const char *const ids[] = { "topk", "sigmoid", "differential", "h2o", "snapkv",
                                       "vertical-slash" };

    for (int x = 0; x < LENGTH(ids); x++) {
        double cost[2];

        for (int given = 0; given < 2; given++) {
            Setup s;
            Run  *run;

            setup_open(&s, 4, 20, 20, 4, true);
            if (!strcmp(ids[x], "vertical-slash")) /* as many cells, whichever lines it takes */
                set(&s, "vertical=20,slash=20");
            if (given) /* no projection */
                give(&s, "pos_rel", 3, (int64_t[]){ 4, 39, 4 });
            run = run_without_views(&s, mechanism_find(ids[x]), "xl");
            CHECK(run->err.code == ERR_NONE, "%s: %s", ids[x], run->err.text);
            cost[given] = run_flops(run).position;
            run_free(run);
            setup_close(&s);
        }
        CHECK(cost[0] - cost[1] == 2 * 4 * 16 * 4 * 20, "%s: %g FLOPs of distances", ids[x],
              cost[0] - cost[1]);
    }
}

/* What no cell needs is not there: outputs and figures are those of a run that has it all. */
TEST(xl_is_the_same_with_few_distances)
{
    for (size_t x = 0; mechanism_at(x); x++) {
        const Mechanism *m = mechanism_at(x);

        for (int causal = 0; causal <= m->causal; causal++) {
            Setup s;
            Run  *all, *few;

            if (!(m->positions & POSITION_BIAS))
                continue;
            setup_open(&s, 2, 45, 45, 4, causal);
            if (m->example)
                set(&s, m->example);
            all = run_any(&s, m, "xl");
            few = run_without_views(&s, m, "xl");
            CHECK(all->err.code == few->err.code, "%s: '%s' and '%s'", m->id, all->err.text,
                  few->err.text);
            for (int64_t c = 0; all->err.code == ERR_NONE && c < tensor_count(&all->out); c++)
                CHECK(fabsf(tensor_f32(&all->out)[c] - tensor_f32(&few->out)[c]) <= 2e-6F,
                      "%s%s: entry %lld is %g, with all distances %g", m->id,
                      causal ? " causal" : "", (long long)c, (double)tensor_f32(&few->out)[c],
                      (double)tensor_f32(&all->out)[c]);
            run_free(all);
            run_free(few);
            setup_close(&s);
        }
    }
}

TEST(test_every_failed_allocation_is_an_error)
{
    for (size_t x = 0; position_at(x); x++) {
        Setup s;
        bool  done = false;

        kernel_setup(&s, 10, 10, position_at(x)->id);
        for (int64_t k = 1; !done; k++) {
            RunSpec spec = { .mechanism = full(), .q = s.q, .k = s.k, .v = s.v, .causal = true,
                             .position = position_at(x), .given = &s.given, .views = true,
                             .fail_at = k };
            Run    *run = run_new(&spec);

            run_execute(run);
            assert_non_null(run);
            done = run->err.code == ERR_NONE;
            if (!done)
                assert_int_equal(run->err.code, ERR_NOMEM);
            run_free(run);
        }
        setup_close(&s);
    }
}

SUITE(NULL, NULL)
