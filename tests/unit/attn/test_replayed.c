/* test_replayed.c -- what a replay says in numbers: bytes that a decoder holds, costs of views. */

#include "attn/study/replay.h"
#include "unit/mech_fixture.h"

#define N 13

/* Whether a query from i on reads key j, by the cells [planes,N,N] of the run. */
static bool is_read(const Tensor *cells, int64_t plane, int64_t i, int64_t j)
{
    bool read = false;

    for (int64_t row = i; row < N; row++)
        read |= tensor_u8(cells)[(plane * N + row) * N + j] != 0;
    return read;
}

/* Each token adds a key and a value; a key stays until its last query. */
static void check_held(const char *id, const char *params, int64_t planes)
{
    Fixture     f = fixture_new(N);
    Run        *replay = replay_new(fixture_run(&f, id, params, true));
    Tensor      cells = fixture_view(&f, "connectivity");
    const View *view = replay ? run_view(replay, "held_bytes") : NULL;
    int64_t     pair = HEADS / planes * (KEY_SIZE + VALUE_SIZE) * (int64_t)sizeof(float);

    assert_non_null(view);
    assert_int_equal(tensor_count(&cells), planes * N * N);
    for (int64_t i = 0; i < N; i++) {
        int64_t held = 0, *bytes = (int64_t *)view->tensor.data + 2 * i;

        for (int64_t plane = 0; plane < planes; plane++)
            for (int64_t j = 0; j <= i; j++)
                held += is_read(&cells, plane, i, j);
        assert_int_equal(bytes[0], held * pair);
        assert_int_equal(bytes[1], (i + 1) * planes * pair);
    }
    run_free(replay);
    fixture_free(&f);
}

TEST(a_decoder_holds_what_is_read_again)
{
    check_held("full", "", 1);
    check_held("window", "window=3", 1);
    check_held("random", "", HEADS);
    check_held("sparse-strided", "heads=split", HEADS);
}

/* The scores of a row are computed anew, and its values are added: of each tile a part. */
TEST(a_running_number_costs_a_share_of_its_row)
{
    static const char *const names[] = { "running_max", "running_sum", "rescaled" };
    Fixture                  f = fixture_new(N);
    Run                     *replay = replay_new(fixture_run(&f, "full", "", false));

    assert_non_null(replay);
    for (size_t x = 0; x < sizeof(names) / sizeof(*names); x++) {
        const View *view = run_view(replay, names[x]);

        assert_non_null(view);
        CHECK_NEAR(view->cost, (double)(N * (KEY_SIZE + VALUE_SIZE)) / (double)view_cols(view), 0);
    }
    run_free(replay);
    fixture_free(&f);
}

SUITE(NULL, NULL)
