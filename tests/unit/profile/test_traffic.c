/* test_traffic.c -- the bytes that must move at least, of every mechanism of the catalogue: some
 * in each stage that computes something, and not of another order than what is computed.
 */

#include "session_fixture.h"

typedef struct Count {
    double flops, bytes;
} Count;

static void each_stage_has_some(const Run *r)
{
    for (int x = 0; x < r->stage_count; x++) {
        const Stage *stage = &r->stages[x];

        CHECK(flops_total(stage->flops) == 0 || stage->bytes.read + stage->bytes.written > 0,
              "%s, stage '%s': %g FLOPs on no bytes", r->mechanism->id, stage->name,
              flops_total(stage->flops));
    }
}

static bool count(Session *s, const Mechanism *m, Count *out)
{
    Request r = REQUEST_INIT;
    Error   err = ERROR_INIT;
    Result *result = request_example(s, &r, m, &err) ? session_run(s, &r, &err) : NULL;
    bool    ok = result && result->run->err.code == ERR_NONE;

    if (ok) {
        Flops flops = run_flops(result->run);
        Bytes bytes = run_bytes(result->run);

        each_stage_has_some(result->run);
        *out = (Count){ flops.score + flops.mix + flops.overhead, bytes.read + bytes.written };
    }
    if (result)
        result_release(result);
    request_free(&r);
    return ok;
}

static void check(const Mechanism *m, Count few, Count many)
{
    double more = fmax(4, many.flops / few.flops); /* four times the tokens */

    CHECK(few.flops == 0 || few.bytes > 0, "%s: %g FLOPs on no bytes", m->id, few.flops);
    CHECK(few.flops == 0 || many.bytes <= 1.2 * more * few.bytes,
          "%s: %g times the FLOPs, but %g times the bytes", m->id, many.flops / few.flops,
          many.bytes / few.bytes);
}

TEST(bytes_follow_what_is_computed)
{
    Session *small = session_on("synthetic:normal(n=256,d=8,heads=2)");
    Session *large = session_on("synthetic:normal(n=1024,d=8,heads=2)");
    int      checked = 0;

    for (size_t i = 0; mechanism_at(i); i++) {
        Count few, many;

        if (!count(small, mechanism_at(i), &few) || !count(large, mechanism_at(i), &many))
            continue; /* an input of another shape is asked for */
        check(mechanism_at(i), few, many);
        checked++;
    }
    assert_true(checked >= 60);
    session_free(small);
    session_free(large);
}

SUITE(NULL, NULL)
