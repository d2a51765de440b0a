/* test_model_pass.c -- the memory that a forward pass opens. */
#include "check.h"
#include "model/model.h"
#include "model/pass.h"

/* Whichever side of a matrix is long, a product takes one row of it at once. */
TEST(a_product_has_room_for_the_longest_row)
{
    const int64_t longest = PASS_WEIGHTS + 4096;

    for (int side = 0; side < 4; side++) {
        Model    m = { .config = { .width = 4, .embedding_width = 4, .inner = 4, .heads = 1,
                                   .head_dim = 4 } };
        int64_t *sides[] = { &m.config.width, &m.config.embedding_width, &m.config.inner,
                             &m.config.heads };
        Pass     pass;
        Error    err = ERROR_INIT;

        *sides[side] = side < 3 ? longest : longest / m.config.head_dim;
        CHECK(pass_open(&pass, &m, 1, 1, NULL, &err), "%s", err.text);
        CHECK(arena_used(pass.arena) >= longest * (int64_t)sizeof(float), "side %d", side);
        pass_close(&pass);
    }
}

SUITE(NULL, NULL)
