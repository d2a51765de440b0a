/* test_mech_clusters.c -- clusterformer, clustered attention and its improvement, entmax
 * and the differentiable mask against what they must equal, and their own promises. */
#include "mech_fixture.h"

static const int64_t lengths[] = { 1, 2, 13, 16 };
#define LENGTHS (sizeof(lengths) / sizeof(*lengths))

/* ---- where nothing is left out ---------------------------------------------- */

static void check_equals(const char *id, const char *params, const char *other,
                         const char *others, bool causal)
{
    for (size_t x = 0; x < LENGTHS; x++) {
        Fixture f = fixture_new(lengths[x]);
        float  *exact;

        fixture_run(&f, other, others, causal);
        exact = fixture_output(&f);
        fixture_run(&f, id, params, causal);
        check_near(tensor_f32(&f.run->out), exact, tensor_count(&f.run->out), 1e-5);
        check_weights(&f);
        free(exact);
        fixture_free(&f);
    }
}

TEST(everything_visible_is_exact_attention)
{
    check_equals("clusterformer", "block=64,attend_across_clusters=true", "full", "", false);
    check_equals("clusterformer", "layer=window,block=64", "full", "", false);
    for (int causal = 0; causal < 2; causal++) {
        check_equals("clustered-improved", "n_clusters=3,topk=64", "full", "", causal);
        check_equals("entmax", "alpha=1", "full", "", causal);
        check_equals("entmax", "alpha=1,method=bisect", "full", "", causal);
        check_equals("sparsebert-dam", "hard=false,keep_special=false,tau=1e9", "full", "", causal);
        check_equals("entmax", "alpha=2", "entmax", "alpha=2,method=bisect", causal);
        check_equals("entmax", "alpha=1.5", "entmax", "alpha=1.5,method=bisect", causal);
        check_equals("sparsebert-dam", "hard=false,tau=1e-9", "sparsebert-dam", "", causal);
    }
    check_equals("clusterformer", "layer=window,block=4", "block-local", "block=4", false);
}

TEST(weights_give_the_output)
{
    static const struct {
        const char *id, *params;
        bool        causal;
    } runs[] = {
        { "clusterformer", "block=4", false },
        { "clusterformer", "block=5,stride=2,n_clusters=2,cluster_source=k,kmeans_iters=2", false },
        { "clustered", "n_clusters=3", false },
        { "clustered", "n_clusters=30,bits=2,hash_bias=false,iterations=1", false },
        { "clustered-improved", "n_clusters=3,topk=4", false },
        { "clustered-improved", "n_clusters=4,bits=3,topk=2", true },
        { "entmax", "", true },
        { "entmax", "alpha=1.2,n_iter=7,ensure_sum_one=false", false },
        { "sparsebert-dam", "", true },
        { "sparsebert-dam", "sample=true,drop_diagonal=true,keep_special=false", true },
        { "sparsebert-dam", "structured=false,apply=multiply", false },
        { "sparsebert-dam", "structured=false,symmetric=false,hard=false,sample=true", true },
        { "sparsebert-dam", "mask_source=scores,sample=true", false },
        { "sparsebert-dam", "mask_source=scores,apply=multiply,hard=false", true },
    };

    for (size_t x = 0; x < sizeof(runs) / sizeof(*runs) * LENGTHS; x++) {
        Fixture f = fixture_new(lengths[x % LENGTHS]);

        fixture_run(&f, runs[x / LENGTHS].id, runs[x / LENGTHS].params, runs[x / LENGTHS].causal);
        check_weights(&f);
        check_flops(&f);
        fixture_free(&f);
    }
}

/* ---- clusters --------------------------------------------------------------- */

TEST(clusterformer_sorts_by_cluster_and_serves_the_stride)
{
    Fixture f = fixture_new(16);
    Tensor  cluster, order, chunk, cells;

    fixture_run(&f, "clusterformer", "block=6,stride=4,n_clusters=3", false);
    cluster = fixture_view(&f, "clusters");
    order = fixture_view(&f, "order");
    chunk = fixture_view(&f, "chunks");
    cells = fixture_view(&f, "connectivity");
    for (int64_t s = 0; s < HEADS * 16; s++) {
        const int32_t *z = tensor_i32(&cluster) + s / 16 * 16, *o = tensor_i32(&order);

        assert_int_equal(tensor_i32(&chunk)[s / 16 * 16 + o[s]], s % 16 / 4);
        if (s % 16)
            assert_true(z[o[s - 1]] < z[o[s]] || (z[o[s - 1]] == z[o[s]] && o[s - 1] < o[s]));
        for (int64_t t = s / 16 * 16; t < s / 16 * 16 + 16; t++) {
            int64_t first = s % 16 / 4 * 4;
            bool    seen = t % 16 >= first && t % 16 < first + 6 && z[o[t]] == z[o[s]];

            assert_int_equal(tensor_u8(&cells)[(s / 16 * 16 + o[s]) * 16 + o[t]], seen);
        }
    }
    fixture_free(&f);
}

/* Vectors along one line have the same cosine with all that lie on their side. */
TEST(clusterformer_ties_go_to_the_lowest)
{
    Fixture f = fixture_new(13);
    float   mu[3 * KEY_SIZE] = { 0 };
    Tensor  cluster, given = tensor_of(DT_F32, 2, (int64_t[]){ 3, KEY_SIZE }, mu);
    Error   err = ERROR_INIT;

    memset(f.q.data, 0, (size_t)tensor_bytes(&f.q));
    for (int64_t i = 0; i < HEADS * 13; i++)
        tensor_f32(&f.q)[i * KEY_SIZE] = (float)(i % 3 - 1) * (0.1f + (float)i / 7);
    mu[0] = 0.3f;
    mu[KEY_SIZE] = 1.7f;
    mu[2 * KEY_SIZE] = -0.9f;
    assert_true(assignments_set_tensor(&f.given, "centroids", given, "@c.npy", &err));
    fixture_run_given(&f, "clusterformer", false);
    cluster = fixture_view(&f, "clusters");
    for (int64_t i = 0; i < HEADS * 13; i++)
        assert_int_equal(tensor_i32(&cluster)[i], i % 3 == 0 ? 2 : 0);
    fixture_free(&f);
}

static int count_views(const Run *r, const char *name, int64_t iteration)
{
    int found = 0;

    for (int i = 0; i < r->view_count; i++)
        found += !strcmp(r->views[i].name, name) && r->views[i].iteration == iteration;
    return found;
}

TEST(iterations_can_be_stepped_through)
{
    Fixture f = fixture_new(13);

    fixture_run(&f, "clusterformer", "kmeans_iters=2", false);
    for (int64_t t = 0; t < 12; t++) { /* 10 from the drawn tokens, then 2 */
        assert_int_equal(count_views(f.run, "clusters", t), 1);
        assert_int_equal(count_views(f.run, "centroids", t), 1);
    }
    assert_int_equal(run_view(f.run, "clusters")->iteration, -1);
    fixture_run(&f, "clustered", "n_clusters=4,iterations=3,bits=8", false);
    assert_int_equal(count_views(f.run, "clusters", 0), 1);
    assert_int_equal(count_views(f.run, "codes", 0), 1);
    assert_int_equal(run_view(f.run, "clusters")->iteration, -1);
    fixture_run(&f, "entmax", "alpha=1.3", false);
    assert_int_equal(count_views(f.run, "tau", 0), 1);
    assert_int_equal(count_views(f.run, "tau", 15), 1);
    assert_int_equal(run_view(f.run, "tau")->iteration, -1);
    fixture_free(&f);
}

/* Equal queries share a cluster, and each cluster's row is the attention of its mean. */
TEST(clustered_rows_are_those_of_the_mean)
{
    Fixture f = fixture_new(16);
    Tensor  cluster, counts, hash, weights, rows;
    int64_t n = 16, total = 0;

    for (int64_t i = 1; i < HEADS * 16; i += 2)
        memcpy(tensor_f32(&f.q) + i * KEY_SIZE, tensor_f32(&f.q) + (i - 1) * KEY_SIZE,
               KEY_SIZE * sizeof(float));
    fixture_run(&f, "clustered", "n_clusters=5,bits=12", false);
    cluster = fixture_view(&f, "clusters");
    counts = fixture_view(&f, "counts");
    hash = fixture_view(&f, "hashes");
    weights = fixture_view(&f, "weights");
    rows = fixture_view(&f, "cluster_weights");
    for (int64_t i = 0; i < HEADS * n; i++) {
        int32_t c = tensor_i32(&cluster)[i];

        assert_int_equal(c, tensor_i32(&cluster)[i / 2 * 2]);
        assert_true(((int64_t *)hash.data)[i] == ((int64_t *)hash.data)[i / 2 * 2]);
        assert_true(((int64_t *)hash.data)[i] >= 0 && ((int64_t *)hash.data)[i] < 1 << 12);
        assert_memory_equal(tensor_f32(&weights) + i * n,
                            tensor_f32(&rows) + (i / n * 5 + c) * n, (size_t)n * sizeof(float));
    }
    for (int64_t x = 0; x < HEADS * 5; x++)
        total += tensor_i32(&counts)[x];
    assert_int_equal(total, HEADS * n);
    fixture_free(&f);
}

TEST(clustered_takes_other_keys)
{
    static const char *const ids[] = { "clustered", "clustered-improved", "entmax" };
    Fixture f = fixture_new(13), g = fixture_new(7);

    for (size_t x = 0; x < sizeof(ids) / sizeof(*ids); x++) {
        const char *params = x < 2 ? "n_clusters=3" : "";

        f.k = g.k;
        f.v = g.v;
        fixture_run(&f, ids[x], params, false);
        assert_int_equal(view_cols(run_view(f.run, "weights")), 7);
    }
    fixture_free(&g);
    fixture_free(&f);
}

/* ---- entmax and the mask ---------------------------------------------------- */

TEST(larger_alpha_is_sparser)
{
    static const char *const params[] = { "alpha=1", "alpha=1.5", "alpha=2", "alpha=4" };
    Fixture f = fixture_new(16);
    int64_t before = HEADS * 16 * 16;

    for (size_t x = 0; x < sizeof(params) / sizeof(*params); x++) {
        Tensor  size, support;
        int64_t all = 0, cells = 0;

        fixture_run(&f, "entmax", params[x], false);
        size = fixture_view(&f, "support_size");
        support = fixture_view(&f, "support");
        for (int64_t i = 0; i < HEADS * 16; i++)
            all += tensor_i32(&size)[i];
        for (int64_t i = 0; i < HEADS * 16 * 16; i++)
            cells += tensor_u8(&support)[i];
        assert_int_equal(all, cells);
        assert_true(all <= before);
        before = all;
    }
    fixture_free(&f);
}

TEST(a_mask_of_one_token_without_diagonal_is_empty)
{
    static const char *const params[] = { "drop_diagonal=true",
                                          "drop_diagonal=true,apply=multiply",
                                          "drop_diagonal=true,mask_source=scores" };
    Fixture f = fixture_new(1);

    for (size_t x = 0; x < sizeof(params) / sizeof(*params); x++) {
        fixture_run(&f, "sparsebert-dam", params[x], false);
        for (int64_t c = 0; c < HEADS * VALUE_SIZE; c++)
            assert_true(tensor_f32(&f.run->out)[c] == 0);
        assert_true(tensor_f32(&run_view(f.run, "sparsity")->tensor)[0] == 1);
        assert_true(tensor_f32(&run_view(f.run, "loss")->tensor)[0] == 0);
    }
    fixture_free(&f);
}

/* ---- causality, errors, memory ---------------------------------------------- */

TEST(causal_runs_know_nothing_later)
{
    for (int64_t t = 0; t < 13; t += 3) {
        Fixture f = fixture_new(13);

        check_causal(&f, "entmax", "", t);
        check_causal(&f, "entmax", "alpha=1.3", t);
        check_causal(&f, "sparsebert-dam", "", t);
        check_causal(&f, "sparsebert-dam", "hard=false,sample=true", t);
        check_causal(&f, "sparsebert-dam", "mask_source=scores", t);
        fixture_free(&f);
    }
}

TEST(what_cannot_be_is_refused)
{
    expect_refusal("clusterformer", "", true, "no causal form");
    expect_refusal("clusterformer", "block=4,stride=5", false, "stride=5");
    expect_refusal("clusterformer", "cluster_source=x", false, "cluster_source=x");
    expect_refusal("clustered", "", true, "no causal form");
    expect_refusal("clustered", "bits=64", false, "from 1 to 63");
    expect_refusal("clustered-improved", "topk=0", false, "topk: must be at least 1");
    expect_refusal("entmax", "alpha=0.9", false, "alpha: must be at least 1");
    expect_refusal("entmax", "alpha=1.3,method=sort", false, "method=sort");
    expect_refusal("sparsebert-dam", "tau=0", false, "tau: must be greater than 0");
}

static void expect_tensor_error(const char *id, const char *name, Tensor t, const char *says)
{
    Fixture f = fixture_new(13);
    Error   err = ERROR_INIT;
    Run    *r;

    assert_true(assignments_set_tensor(&f.given, name, t, "@t.npy", &err));
    r = fixture_run_given_at(&f, id, false);
    if (r->err.code == ERR_NONE || !strstr(r->err.text, says))
        fail_msg("%s(%s): '%s' does not say '%s'", id, name, r->err.text, says);
    fixture_free(&f);
}

TEST(tensors_that_do_not_fit_are_refused)
{
    float   numbers[64] = { 0 };
    int32_t index[3] = { 0, 1, 13 };

    expect_tensor_error("clusterformer", "centroids",
                        tensor_of(DT_F32, 2, (int64_t[]){ 3, 4 }, numbers), "centroids");
    expect_tensor_error("clustered", "planes",
                        tensor_of(DT_F32, 2, (int64_t[]){ 4, KEY_SIZE }, numbers), "planes");
    expect_tensor_error("clustered", "init_indices",
                        tensor_of(DT_I32, 1, (int64_t[]){ 3 }, index), "entry 2 is 13");
    expect_tensor_error("clustered", "init_indices",
                        tensor_of(DT_F32, 1, (int64_t[]){ 3 }, numbers), "int32 or int64");
    expect_tensor_error("entmax", "alpha", tensor_of(DT_F32, 1, (int64_t[]){ 2 }, numbers),
                        "head 0 has 0");
    expect_tensor_error("entmax", "alpha", tensor_of(DT_F32, 1, (int64_t[]){ 3 }, numbers),
                        "alpha");
    expect_tensor_error("sparsebert-dam", "alphas",
                        tensor_of(DT_F32, 2, (int64_t[]){ 2, 10 }, numbers), "10 distances");
}

TEST(failed_allocations_are_ordinary_errors)
{
    Fixture f = fixture_new(13);

    check_out_of_memory(&f, "clusterformer", "block=4,kmeans_iters=1");
    check_out_of_memory(&f, "clustered", "n_clusters=3");
    check_out_of_memory(&f, "clustered-improved", "n_clusters=3,topk=2");
    check_out_of_memory(&f, "entmax", "alpha=1.3");
    check_out_of_memory(&f, "sparsebert-dam", "sample=true,drop_diagonal=true");
    check_out_of_memory(&f, "sparsebert-dam", "structured=false,hard=false");
    fixture_free(&f);
}

/* An iteration takes the memory that the one before it gave back. */
TEST(more_iterations_take_no_more_memory)
{
    static const char *const params[] = { "kmeans_iters=20", "kmeans_iters=200" };
    int64_t                  peak[2];

    for (int x = 0; x < 2; x++) {
        Fixture f = fixture_new(200);
        Run    *r = fixture_run_at(&f, "clusterformer", params[x], false, false, 0);

        assert_int_equal(r->err.code, ERR_NONE);
        peak[x] = arena_peak(r->arena);
        fixture_free(&f);
    }
    CHECK(peak[1] - peak[0] < 64 * 1024, "%lld bytes more", (long long)(peak[1] - peak[0]));
}

SUITE(NULL, NULL)
