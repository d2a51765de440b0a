/* test_heads.c -- scores of heads from rows of weights, by hand, and their order. */
#include <math.h>

#include "attn/study/heads.h"
#include "check.h"

/* Tokens a b a b: rows 2 and 3 saw theirs before. */
static const int32_t ids[] = { 7, 9, 7, 9 };

static const float weights[4][4] = {
    { 1, 0, 0, 0 },
    { 0.75f, 0.25f, 0, 0 },
    { 0.25f, 0.5f, 0.25f, 0 },
    { 0.25f, 0, 0.5f, 0.25f },
};

static HeadScores scores_of(bool causal, bool repeated)
{
    int64_t    earlier[4];
    HeadRows   rows = { .n = 4, .causal = causal, .repeated = repeated, .earlier = earlier,
                        .near = 1, .seen = head_earlier(ids, 4, earlier), .log_length = 1 };
    HeadSums   first = { 0 }, rest = { 0 };
    HeadScores out;

    for (int64_t i = 0; i < 4; i++)
        head_sums_row(i < 2 ? &first : &rest, &rows, i, weights[i], 0, causal ? i + 1 : 4);
    head_sums_add(&first, &rest);
    head_scores_of(&first, &rows, &out);
    return out;
}

TEST(scores_are_means_over_rows)
{
    HeadScores s = scores_of(true, false);

    assert_true(fabs(s.previous - (0.75 + 0.5 + 0.5) / 3) < 1e-7);
    assert_true(fabs(s.self - 0.25) < 1e-7);
    assert_true(fabs(s.first - (0.75 + 0.25 + 0.25) / 3) < 1e-7);
    assert_true(isnan(s.next));
    assert_true(fabs(s.distance - (0.75 + 1.0 + (0.75 + 0.5)) / 4) < 1e-7);
    assert_true(fabs(s.entropy - (0.5623351446 + 1.0397207708 + 1.0397207708) / 4) < 1e-6);
    assert_true(fabs(s.near - (0.75 + 0.75) / 2) < 1e-7); /* rows 2 and 3 see farther keys, too */
    assert_true(fabs(scores_of(false, false).near - (1 + 1 + 0.75 + 0.75) / 4) < 1e-7);
    assert_int_equal(s.induction_rows, 2);
    assert_true(fabs(s.induction - 0.5) < 1e-7); /* row 2 to key 1, row 3 to key 2 */
    assert_string_equal(s.label, "previous");
    assert_string_equal(scores_of(true, true).label, "induction");
    assert_true(fabs(scores_of(false, false).next) < 1e-7);
}

/* Ten tokens of period 4, each of which looks so many back, the first ones at themselves. */
static HeadScores scores_of_back(int64_t back, bool repeated)
{
    static const int32_t twice[10] = { 1, 2, 3, 4, 1, 2, 3, 4, 1, 2 };
    int64_t              earlier[10];
    HeadRows             rows = { .n = 10, .causal = true, .repeated = repeated, .near = 8,
                                  .earlier = earlier, .seen = head_earlier(twice, 10, earlier),
                                  .log_length = 1 };
    HeadSums             sums[2] = { { 0 } };
    HeadScores           out;

    for (int64_t i = 0; i < 10; i++) {
        float w[10] = { 0 };

        w[i < back ? i : i - back] = 0.5f;
        head_sums_row(&sums[i % 2], &rows, i, w, 0, i + 1);
    }
    head_sums_add(&sums[0], &sums[1]);
    head_scores_of(&sums[0], &rows, &out);
    return out;
}

TEST(a_head_that_looks_three_back_is_called_so)
{
    HeadScores s = scores_of_back(3, false);
    char       words[32];

    assert_true(fabs(s.offset - 0.5) < 1e-7);
    assert_int_equal(s.offset_tokens, 3);
    assert_string_equal(s.label, "mixed");
    assert_string_equal(s.shown, "offset");
    assert_string_equal(head_label_words(&s, words, sizeof(words)), "offset 3");
    s.shown = "broad";
    assert_string_equal(head_label_words(&s, words, sizeof(words)), "broad");
}

/* On tokens that are said twice, it is one that looks for the token or for what followed it. */
TEST(looking_a_period_back_is_no_offset)
{
    assert_string_equal(scores_of_back(4, false).shown, "offset");
    assert_string_equal(scores_of_back(4, true).label, "mixed");
    assert_string_equal(scores_of_back(3, true).label, "induction");
    assert_string_equal(scores_of_back(2, true).shown, "offset");
}

TEST(no_offset_is_looked_for_in_three_rows)
{
    HeadSums   sums = { 0 };
    HeadRows   rows = { .n = 3, .causal = true, .near = 1 };
    HeadScores out;

    head_scores_of(&sums, &rows, &out);
    assert_true(isnan(out.offset));
    assert_int_equal(out.offset_tokens, 0);
}

/* One token: there is nothing that its row could be spread over. */
TEST(a_row_of_one_key_is_not_broad)
{
    int64_t    earlier[1];
    HeadRows   rows = { .n = 1, .causal = true, .earlier = earlier, .near = 1,
                        .seen = head_earlier(ids, 1, earlier) };
    HeadSums   sums = { 0 };
    HeadScores out;

    head_sums_row(&sums, &rows, 0, weights[0], 0, 1);
    head_scores_of(&sums, &rows, &out);
    assert_string_equal(out.label, "mixed");
    assert_true(isnan(out.self));
}

TEST(order_puts_heads_without_a_score_last)
{
    HeadScores s[4] = { { .entropy = 1, .label = "mixed" }, { .entropy = (double)NAN,
                        .label = "mixed" }, { .entropy = 2, .label = "mixed" }, { .entropy = 9 } };
    int64_t    order[4] = { 0, 1, 2, 3 };

    head_scores_order(s, (HeadOrder){ .by = HEAD_ENTROPY }, order, 4);
    assert_int_equal(order[0], 2);
    assert_int_equal(order[1], 0);
    assert_int_equal(order[2], 1);
    assert_int_equal(order[3], 3);
    head_scores_order(s, (HeadOrder){ .by = HEAD_ENTROPY, .rising = true }, order, 4);
    assert_int_equal(order[0], 0);
    assert_int_equal(order[1], 2);
    assert_int_equal(order[2], 1);
    assert_int_equal(order[3], 3);
}

TEST(names_go_there_and_back)
{
    HeadScore which;
    HeadOrder order;
    Error     err = ERROR_INIT;

    for (int i = 0; i < HEAD_SCORE_COUNT; i++)
        assert_true(head_score_parse(head_score_name((HeadScore)i), &which, &err) &&
                    (int)which == i);
    assert_false(head_score_parse("loud", &which, &err));
    assert_true(head_order_parse("-near", &order, &err) && order.rising && order.by == HEAD_NEAR);
    assert_true(head_order_parse("near", &order, &err) && !order.rising);
    assert_int_equal(head_label_index("sink"), 3);
    assert_int_equal(head_label_index("none"), -1);
}

SUITE(NULL, NULL)
