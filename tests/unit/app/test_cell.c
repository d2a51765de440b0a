/* test_cell.c -- one cell explained: its score, its share of the output, exact attention. */

#include "app/result/views.h"
#include "session_fixture.h"

#define N 29
#define D 8

static CellWhy why_of(CellReader *reader, int64_t head, int64_t q, int64_t k)
{
    CellWhy why;
    Error   err = ERROR_INIT;

    CHECK(cell_read(reader, head, q, k, &why, &err), "%s", err.text);
    return why;
}

static CellReader *reader_of(Result *r)
{
    Error       err = ERROR_INIT;
    CellReader *reader = cell_reader_new(r, &err);

    CHECK(reader, "%s", err.text);
    return reader;
}

/* q.k / sqrt(d), by hand. */
static double score_by_hand(const Run *run, int64_t head, int64_t q, int64_t k)
{
    const float *a = (const float *)tensor_head(&run->q, head, run->h) + q * D;
    const float *b = (const float *)tensor_head(&run->k, head, run->h) + k * D;
    double       sum = 0;

    for (int c = 0; c < D; c++)
        sum += (double)a[c] * (double)b[c];
    return sum / sqrt(D);
}

TEST(scores_are_those_before_the_softmax)
{
    Session    *s = session_on("synthetic:normal(n=29,d=8,heads=3)");
    Result     *full = result_of(s, "full(causal=true)");
    Result     *window = result_of(s, "window(window=5,causal=true)");
    CellReader *of_full = reader_of(full), *of_window = reader_of(window);

    for (int64_t q = 0; q < N; q++)
        for (int64_t k = 0; k < N; k++) {
            CellWhy a = why_of(of_full, 1, q, k), b = why_of(of_window, 1, q, k);

            assert_int_equal(a.scored, k <= q);
            assert_int_equal(b.scored, k <= q);
            if (k > q)
                continue;
            assert_true(a.own_score && b.own_score);
            assert_true(fabs(a.score - score_by_hand(full->run, 1, q, k)) < 1e-5);
            assert_true(a.score == b.score && a.exact == b.exact);
            assert_true(fabs(a.exact - a.weight) < 1e-5);
            assert_int_equal(a.exact_of, q + 1);
            assert_int_equal(b.softmax, q - k <= 2);
            assert_true(b.softmax || b.weight == 0);
        }
    cell_reader_free(of_full);
    cell_reader_free(of_window);
    result_release(full);
    result_release(window);
    session_free(s);
}

/* The shares of a row add up to the output for any weights; exact weights add up to 1. */
TEST(shares_of_a_row_add_up)
{
    static const char *const texts[] = {
        "full(position=alibi)", "full(position=rope)", "bigbird(position=rope)",
        "reformer(block=4)",    "performer",           "linformer(k=4)",
        "sinkhorn(block=4)"
    };
    Session *s = session_on("synthetic:normal(n=29,d=8,heads=3)");

    for (size_t t = 0; t < sizeof(texts) / sizeof(*texts); t++) {
        Result     *r = result_of(s, texts[t]);
        CellReader *reader = reader_of(r);
        bool        pattern = strstr(texts[t], "position") != NULL;

        for (int64_t q = 0; q < N; q += 7) {
            double share = 0, exact = 0, largest = 0;

            for (int64_t k = 0; k < N; k++) {
                CellWhy why = why_of(reader, 2, q, k);

                share += why.share;
                exact += why.exact;
                largest = fmax(largest, why.weight);
                if (pattern)
                    assert_true(why.own_score);
                if (why.softmax)
                    assert_true(why.below >= 0);
            }
            CHECK(fabs(share - 1) < 1e-4, "%s, row %d: shares add up to %g", texts[t], (int)q,
                  share);
            CHECK(fabs(exact - 1) < 1e-5, "%s, row %d: exact weights add up to %g", texts[t],
                  (int)q, exact);
        }
        cell_reader_free(reader);
        result_release(r);
    }
    session_free(s);
}

/* Keys scaled by their length give other scores, and the cell shows them. */
TEST(other_scores_are_not_taken_for_exact_ones)
{
    Session    *s = session_on("synthetic:normal(n=29,d=8,heads=1)");
    Result     *r = result_of(s, "reformer(block=8)");
    CellReader *reader = reader_of(r);
    Text        text = { 0 };
    int         own = 0;

    for (int64_t q = 0; q < N; q++) {
        CellWhy why = why_of(reader, 0, q, q ? q - 1 : 1);

        own += why.own_score;
        text_clear(&text);
        cell_describe(&why, &text);
        assert_int_equal(why.softmax && !why.own_score, strstr(text_str(&text), "log weight") != 0);
    }
    assert_true(own < N / 2);
    text_free(&text);
    cell_reader_free(reader);
    result_release(r);
    session_free(s);
}

/* A mechanism that reads x, or has no weights, does not fail: the cell shows less. */
TEST(what_cannot_be_told_is_left_out)
{
    Session    *s = session_on("synthetic:normal(n=29,d=8,heads=1)");
    Result     *r = result_of(s, "synthesizer-random");
    CellReader *reader = reader_of(r);
    CellWhy     why = why_of(reader, 0, 3, 5);

    assert_true(why.weighs && why.scored && !why.own_score && why.adds);
    cell_reader_free(reader);
    result_release(r);
    session_free(s);
}

/* Values of another number of keys, or without heads, are not those that the weights add up. */
TEST(values_of_another_shape_are_not_added)
{
    Session     *s = session_on("synthetic:normal(n=29,d=8,heads=3)");
    Result      *r = result_of(s, "full");
    const Tensor whole = r->run->v;

    for (int k = 0; k < 3; k++) {
        CellReader *reader;

        if (k == 1)
            r->run->v.shape[1] = N - 1;
        if (k == 2)
            r->run->v = tensor_of(whole.dtype, 2, (int64_t[]){ D, N }, whole.data);
        reader = reader_of(r);
        assert_int_equal(why_of(reader, 1, 3, 5).adds, k == 0);
        cell_reader_free(reader);
        r->run->v = whole;
    }
    result_release(r);
    session_free(s);
}

/* Views may have more rows and columns than the run has queries and keys: those of ETC. */
TEST(a_cell_outside_the_run_is_refused)
{
    static const int64_t outside[][3] = { { 0, 0, N }, { 0, N, 0 }, { 2, 0, 0 }, { 0, 0, -1 } };
    Session    *s = session_on("synthetic:normal(n=29,d=8,heads=2)");
    Result     *r = result_of(s, "etc");
    CellReader *reader = reader_of(r);
    CellWhy     why;

    assert_true(view_cols(run_view(r->run, "weights")) > N);
    for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++) {
        Error err = ERROR_INIT;

        assert_false(cell_read(reader, outside[i][0], outside[i][1], outside[i][2], &why, &err));
        assert_int_equal(err.code, ERR_DATA);
        assert_non_null(strstr(err.text, "2 heads, 29 queries and 29 keys"));
    }
    cell_reader_free(reader);
    result_release(r);
    session_free(s);
}

SUITE(NULL, NULL)
