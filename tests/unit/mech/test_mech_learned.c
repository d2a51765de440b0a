/* test_mech_learned.c -- reformer, routing and sinkhorn against what they must
 * equal: exact attention where nothing is left out, and their own promises. */
#include "mech_fixture.h"

static const int64_t lengths[] = { 1, 2, 13, 16 };
#define LENGTHS (sizeof(lengths) / sizeof(*lengths))

static void check_equals_full(const char *id, const char *params, bool keys_are_queries,
                              bool causal)
{
    for (size_t x = 0; x < LENGTHS; x++) {
        Fixture f = fixture_new(lengths[x]);
        float  *exact;

        if (keys_are_queries)
            f.k = f.q;
        fixture_run(&f, "full", "", causal);
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
    const char *reformer = "block=64,attend_across_buckets=true,exclude_self=false,key_norm=none,"
                           "rounds=3";
    const char *routing = "n_clusters=1,share_qk=false,score_norm=none";

    for (int causal = 0; causal < 2; causal++) {
        check_equals_full("reformer", reformer, true, causal);
        check_equals_full("routing", routing, false, causal);
        check_equals_full("sinkhorn", "block=64", false, causal);
    }
}

TEST(weights_give_the_output)
{
    static const struct {
        const char *id, *params;
    } runs[] = {
        { "reformer", "block=4" },
        { "reformer", "block=3,layout=joint,n_buckets=4,n_buckets2=2,chunks_after=1" },
        { "reformer", "block=3,dedup=false,exclude_self=false,attend_across_buckets=true" },
        { "routing", "" },
        { "routing", "share_qk=false,exclude_self=true,combine=sum,kmeans_iters=2" },
        { "routing", "normalize=l2,score_norm=keys,routing_source=sum,combine_eps=0.01" },
        { "sinkhorn", "block=4" },
        { "sinkhorn", "block=3,local=sum,pool=qk,sort_net=mlp,noise=true" },
        { "sinkhorn", "block=3,sort_net=means" },
        { "sinkhorn", "block=3,local=none,top1=true,sinkhorn_iters=0" },
    };

    for (size_t x = 0; x < sizeof(runs) / sizeof(*runs) * LENGTHS * 2; x++) {
        Fixture f = fixture_new(lengths[x / 2 % LENGTHS]);

        fixture_run(&f, runs[x / 2 / LENGTHS].id, runs[x / 2 / LENGTHS].params, x % 2);
        check_weights(&f);
        check_flops(&f);
        fixture_free(&f);
    }
}

TEST(reformer_sorts_by_bucket_then_position)
{
    Fixture f = fixture_new(16);
    Tensor  bucket, order, chunk;

    fixture_run(&f, "reformer", "block=4,rounds=3", false);
    bucket = fixture_view(&f, "buckets");
    order = fixture_view(&f, "order");
    chunk = fixture_view(&f, "chunks");
    for (int64_t s = 0; s < HEADS * 3 * 16; s++) {
        const int32_t *b = tensor_i32(&bucket) + s / 16 * 16, *o = tensor_i32(&order);

        assert_int_equal(tensor_i32(&chunk)[s / 16 * 16 + o[s]], s % 16 / 4);
        if (s % 16)
            assert_true(b[o[s - 1]] < b[o[s]] || (b[o[s - 1]] == b[o[s]] && o[s - 1] < o[s]));
    }
    fixture_free(&f);
}

/* So a round more can only add cells: what the first two find is found by three. */
TEST(reformer_rounds_do_not_depend_on_their_number)
{
    Fixture f = fixture_new(16);
    int32_t first[HEADS][2][16];
    Tensor  bucket;
    int     used = 0;

    fixture_run(&f, "reformer", "block=4,n_buckets=6,rounds=2", false);
    bucket = fixture_view(&f, "buckets");
    memcpy(first, bucket.data, sizeof(first));
    fixture_run(&f, "reformer", "block=4,n_buckets=6,rounds=3", false);
    bucket = fixture_view(&f, "buckets");
    for (int head = 0; head < HEADS; head++)
        for (int at = 0; at < 2 * 16; at++) {
            assert_int_equal(tensor_i32(&bucket)[head * 3 * 16 + at],
                             first[head][at / 16][at % 16]);
            used |= 1 << first[head][at / 16][at % 16];
        }
    assert_true((used & (used - 1)) != 0); /* more than one bucket */
    fixture_free(&f);
}

TEST(reformer_zero_rows_share_bucket_zero)
{
    Fixture f = fixture_new(7);
    Tensor  bucket, visits;

    memset(f.q.data, 0, (size_t)tensor_bytes(&f.q));
    fixture_run(&f, "reformer", "rounds=2", false);
    bucket = fixture_view(&f, "buckets");
    visits = fixture_view(&f, "visits");
    for (int64_t i = 0; i < tensor_count(&bucket); i++)
        assert_int_equal(tensor_i32(&bucket)[i], 0);
    for (int64_t i = 0; i < tensor_count(&visits); i++)
        assert_int_equal(tensor_i32(&visits)[i], 2);
    check_weights(&f);
    fixture_free(&f);
}

TEST(routing_leaves_out_whom_no_cluster_takes)
{
    Fixture f = fixture_new(13);
    Tensor  members;
    int     zero = 0;

    fixture_run(&f, "routing", "n_clusters=2,cluster_window=3", false);
    members = fixture_view(&f, "membership");
    for (int64_t row = 0; row < HEADS * 2 * 2; row++) {
        int size = 0;

        for (int64_t i = 0; i < 13; i++)
            size += tensor_u8(&members)[row * 13 + i];
        assert_int_equal(size, 3);
    }
    for (int64_t i = 0; i < HEADS * 13; i++)
        zero += tensor_f32(&f.run->out)[i * VALUE_SIZE] == 0;
    assert_true(zero >= HEADS * (13 - 6));
    fixture_free(&f);
}

TEST(sinkhorn_balances_the_columns)
{
    Fixture f = fixture_new(16);
    Tensor  p;

    fixture_run(&f, "sinkhorn", "block=4,sinkhorn_iters=20", false);
    p = fixture_view(&f, "permutation");
    for (int64_t head = 0; head < HEADS; head++)
        for (int64_t v = 0; v < 4; v++) {
            float sum = 0;

            for (int64_t u = 0; u < 4; u++)
                sum += tensor_f32(&p)[(head * 4 + u) * 4 + v];
            assert_true(fabsf(sum - 1) < 1e-5f);
        }
    fixture_free(&f);
}

/* Sharp scores that want the blocks 2, 0, 3, 1, but for the last: it wants a block that is taken,
 * and has the one that is left.  The last block is short. */
/* Rows, then columns: of an entry four operations each. */
TEST(sinkhorn_charges_each_iteration)
{
    double overhead[2];

    for (int x = 0; x < 2; x++) {
        Fixture f = fixture_new(16);

        fixture_run(&f, "sinkhorn", x ? "block=4,sinkhorn_iters=5" : "block=4,sinkhorn_iters=2",
                    false);
        overhead[x] = run_flops(f.run).overhead;
        fixture_free(&f);
    }
    CHECK_NEAR(overhead[1] - overhead[0], 3 * 2 * 4.0 * HEADS * 4 * 4, 0);
}

TEST(sinkhorn_shows_each_key_once_where_it_was_sorted)
{
    static const int wants[] = { 2, 0, 3, 0 }, gets[] = { 2, 0, 3, 1 };
    Fixture          f = fixture_new(14);
    Tensor           logits = tensor_new(f.arena, DT_F32, 2, (int64_t[]){ 4, 4 }), order;

    for (int x = 0; x < 16; x++)
        tensor_f32(&logits)[x] = x % 4 == wants[x / 4] ? 30 : 0;
    fixture_give(&f, "sort_logits", logits);
    fixture_run(&f, "sinkhorn", "block=4,sinkhorn_iters=0", false);
    order = fixture_view(&f, "order");
    assert_int_equal(tensor_count(&order), HEADS * 14);
    for (int64_t head = 0, at = 0; head < HEADS; head++)
        for (int u = 0; u < 4; u++)
            for (int t = 0; t < (gets[u] == 3 ? 2 : 4); t++)
                assert_int_equal(tensor_i32(&order)[at++], 4 * gets[u] + t);
    fixture_free(&f);
}

/* Legends of sets and lists of weights use the same word. */
TEST(sinkhorn_calls_its_parts_the_same_in_all_views)
{
    static const char *const names[] = { "connectivity", "connectivity_hard", "weights" };
    Fixture f = fixture_new(8);

    fixture_run(&f, "sinkhorn", "block=4", false);
    for (int i = 0; i < 3; i++)
        assert_string_equal(run_view(f.run, names[i])->other, "sorted block");
    fixture_free(&f);
}

TEST(causal_runs_know_nothing_later)
{
    for (int64_t t = 0; t < 13; t += 3) {
        Fixture f = fixture_new(13);

        check_causal(&f, "sinkhorn", "block=3", t);
        check_causal(&f, "sinkhorn", "block=4,local=sum,pool=qk,sort_net=mlp,top1=true", t);
        /* Later tokens that change buckets move the earlier ones in the sorted list, so a row sums
         * the same numbers in another order. */
        check_causal_near(&f, "reformer", "block=64,attend_across_buckets=true", t, 1e-6);
        fixture_free(&f);
    }
}

TEST(what_cannot_be_is_refused)
{
    expect_refusal("reformer", "n_buckets=3", false, "n_buckets: must be even");
    expect_refusal("reformer", "n_buckets=65536,n_buckets2=65536", false, "n_buckets2=65536");
    expect_refusal("sinkhorn", "sortcut=1", true, "no causal form");
    expect_refusal("sinkhorn", "pool=x", false, "pool=x");
}

TEST(failed_allocations_are_ordinary_errors)
{
    Fixture f = fixture_new(13);

    check_out_of_memory(&f, "reformer", "block=4,rounds=2");
    check_out_of_memory(&f, "routing", "share_qk=false,kmeans_iters=1");
    check_out_of_memory(&f, "sinkhorn", "block=4,local=sum,sort_net=mlp,noise=true");
    fixture_free(&f);
}

SUITE(NULL, NULL)
