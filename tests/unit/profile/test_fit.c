/* test_fit.c -- tensors that a mechanism fits on its own input. */
#include "mech_fixture.h"

static Run *fit_run(Fixture *f, const char *id, const char *params, bool causal)
{
    Error err = ERROR_INIT;

    assignments_free(&f->given);
    assert_true(!*params || assignments_parse(&f->given, params, &err));
    for (int t = 0; t < f->tensor_count; t++)
        assert_true(assignments_set_tensor(&f->given, f->tensors[t].name, f->tensors[t].tensor,
                                           "test", &err));
    return fixture_start(f, (RunSpec){ .mechanism = mechanism_find(id), .causal = causal,
                                       .views = true, .fit = true });
}

static Run *fit_well(Fixture *f, const char *id, const char *params, bool causal)
{
    Run *r = fit_run(f, id, params, causal);

    if (r->err.code != ERR_NONE)
        fail_msg("%s(%s): %s", id, params, r->err.text);
    assert_true(arena_check(r->arena));
    check_flops(f);
    return r;
}

static bool is_fitted(const Run *r, const char *name)
{
    for (int i = 0; i < r->tensor_count; i++)
        if (!strcmp(r->tensors[i].name, name))
            return r->tensors[i].origin == ORIGIN_FITTED;
    return false;
}

/* A copy of a view's tensor that outlives the run. */
static Tensor kept_view(const Fixture *f, const char *name)
{
    Tensor t = fixture_view(f, name), copy = tensor_new(f->arena, t.dtype, t.rank, t.shape);

    assert_non_null(copy.data);
    memcpy(copy.data, t.data, (size_t)tensor_bytes(&t));
    return copy;
}

/* The fitted tensor given again, without a fit, is the same run. */
static void check_again(const char *id, const char *params, const char *again, const char *name,
                        bool causal)
{
    Fixture f = fixture_new(37);
    Tensor  fitted;
    float  *out;

    fit_well(&f, id, params, causal);
    assert_true(is_fitted(f.run, name));
    check_weights(&f);
    out = fixture_output(&f);
    fitted = kept_view(&f, name);
    fixture_give(&f, name, fitted);
    fixture_run(&f, id, again, causal);
    assert_false(is_fitted(f.run, name));
    assert_memory_equal(out, f.run->out.data, (size_t)tensor_bytes(&f.run->out));
    free(out);
    fixture_free(&f);
}

TEST(a_fit_can_be_given_again)
{
    check_again("routing", "", "", "centroids", false);
    check_again("routing", "n_clusters=4,kmeans_iters=2", "n_clusters=4,kmeans_iters=2",
                "centroids", true);
    check_again("routing", "share_qk=false,normalize=l2", "share_qk=false,normalize=l2",
                "centroids", false);
    check_again("routing", "routing_source=sum,normalize=none,n_clusters=3",
                "routing_source=sum,normalize=none,n_clusters=3", "centroids", false);
    check_again("clusterformer", "block=8", "block=8", "centroids", false);
    check_again("clusterformer", "block=8,cluster_source=k,n_clusters=5",
                "block=8,cluster_source=k,n_clusters=5", "centroids", false);
    check_again("sinkhorn", "block=8", "block=8", "sort_logits", false);
    check_again("sinkhorn", "block=5,pool=x", "block=5", "sort_logits", true);
}

/* The sort net without parameters scores blocks as a fit does, and needs no layer input. */
TEST(means_of_blocks_sort_as_a_fit_does)
{
    for (int causal = 0; causal < 2; causal++) {
        Fixture f = fixture_new(37);
        float  *out;

        fit_run(&f, "sinkhorn", "block=5", causal);
        assert_int_equal(f.run->err.code, ERR_NONE);
        out = fixture_output(&f);
        fixture_run(&f, "sinkhorn", "block=5,sort_net=means", causal);
        assert_memory_equal(out, f.run->out.data, (size_t)tensor_bytes(&f.run->out));
        free(out);
        fixture_free(&f);
    }
}

/* Codes start from queries that are listed; Lloyd then goes on until it settles. */
TEST(codes_start_from_queries_of_this_input)
{
    static const char *const ids[] = { "clustered", "clustered-improved" };
    Fixture                  f = fixture_new(37);

    for (int i = 0; i < 2; i++) {
        Tensor index;
        float *out;

        fit_run(&f, ids[i], "n_clusters=6,iterations=1", false);
        assert_int_equal(f.run->err.code, ERR_NONE);
        assert_true(is_fitted(f.run, "init_indices") && is_fitted(f.run, "codes"));
        index = kept_view(&f, "init_indices");
        for (int a = 0; a < 6; a++)
            for (int b = 0; b < a; b++)
                assert_int_not_equal(tensor_i32(&index)[a], tensor_i32(&index)[b]);
        out = fixture_output(&f);
        fixture_give(&f, "init_indices", index);
        fixture_run(&f, ids[i], "n_clusters=6,iterations=100", false);
        assert_memory_equal(out, f.run->out.data, (size_t)tensor_bytes(&f.run->out));
        f.tensor_count = 0;
        free(out);
    }
    fixture_free(&f);
}

/* After the last pass of k-means nothing moves, and the trace says so. */
TEST(a_fit_goes_on_until_nothing_moves)
{
    static const char *const runs[][2] = { { "routing", "vectors that moved" },
                                           { "clusterformer", "tokens that moved" } };
    Fixture f = fixture_new(64);

    for (int i = 0; i < 2; i++) {
        int    count = 0;
        double first = 0, last = -1;

        fit_well(&f, runs[i][0], "n_clusters=4", false);
        for (int t = 0; t < f.run->trace_count; t++)
            if (!strcmp(f.run->traces[t].name, runs[i][1])) {
                last = f.run->traces[t].value;
                first = count++ ? first : last;
            }
        assert_true(count > 1);
        assert_true(first == HEADS * 64);
        assert_true(last == 0);
    }
    fixture_free(&f);
}

/* Rows before `first` are as before when all from there on change. */
static void check_looks_back(bool fits, int first)
{
    Fixture f = fixture_new(24);
    int     size = first * VALUE_SIZE;
    float  *before;

    if (fits)
        fit_well(&f, "sinkhorn", "block=4", true);
    else
        fixture_run(&f, "sinkhorn", "block=4", true);
    before = fixture_output(&f);
    for (int t = 0; t < HEADS; t++)
        for (int c = 0; c < (24 - first) * KEY_SIZE; c++) {
            tensor_f32(&f.q)[(t * 24 + first) * KEY_SIZE + c] += 3;
            tensor_f32(&f.k)[(t * 24 + first) * KEY_SIZE + c] -= 2;
        }
    if (fits)
        fit_well(&f, "sinkhorn", "block=4", true);
    else
        fixture_run(&f, "sinkhorn", "block=4", true);
    for (int t = 0; t < HEADS; t++)
        check_near(tensor_f32(&f.run->out) + t * 24 * VALUE_SIZE, before + t * 24 * VALUE_SIZE,
                   size, 0);
    free(before);
    fixture_free(&f);
}

/* The logits of a causal run know nothing of later tokens, also of those in the same block. */
TEST(sort_logits_do_not_look_ahead)
{
    for (int fits = 0; fits < 2; fits++)
        for (int first = 5; first <= 20; first++)
            check_looks_back(fits, first);
}

TEST(sizes_that_leave_little_to_fit)
{
    for (int64_t n = 1; n <= 5; n++) {
        Fixture f = fixture_new(n);

        fit_well(&f, "routing", "n_clusters=7", false);
        fit_well(&f, "routing", "", true);
        fit_well(&f, "clusterformer", "n_clusters=3", false);
        fit_well(&f, "sinkhorn", "block=2", false);
        fit_well(&f, "sinkhorn", "block=2", true);
        fit_run(&f, "clustered", "n_clusters=9", false);
        assert_int_equal(f.run->err.code, ERR_NONE);
        fixture_free(&f);
    }
}

static void refuse(Fixture *f, const char *id, const char *params, const char *say)
{
    Run *r = fit_run(f, id, params, false);

    assert_int_equal(r->err.code, ERR_USAGE);
    if (!strstr(r->err.text, say))
        fail_msg("%s: '%s' does not say '%s'", id, r->err.text, say);
}

TEST(what_has_no_fit_names_those_that_have)
{
    Fixture f = fixture_new(16);

    refuse(&f, "reformer", "", "routing, ");
    refuse(&f, "full", "", "clustered-improved");
    refuse(&f, "clusterformer", "layer=window", "no centroids to fit");
    fixture_draw(&f, "sort_logits", HEADS, 2, 2);
    refuse(&f, "sinkhorn", "block=8", "sort_logits is given");
    fixture_free(&f);
}

TEST(every_failed_allocation_is_told)
{
    static const char *const ids[] = { "routing", "clusterformer", "clustered", "sinkhorn" };
    Fixture                  f = fixture_new(12);

    for (int i = 0; i < 4; i++) {
        int64_t k = 1;

        for (; k < 2000; k++) {
            assignments_free(&f.given);
            fixture_start(&f, (RunSpec){ .mechanism = mechanism_find(ids[i]), .views = true,
                                         .fit = true, .fail_at = k });
            if (f.run->err.code == ERR_NONE)
                break;
            assert_int_equal(f.run->err.code, ERR_NOMEM);
        }
        assert_true(k > 10 && k < 2000);
    }
    fixture_free(&f);
}

SUITE(NULL, NULL)
