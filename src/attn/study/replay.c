/* replay.c -- see replay.h: what is offered, and the run that a replay is. */
#include "attn/study/replay_parts.h"

#include <stdlib.h>

/* ---- what a run leaves ------------------------------------------------------ */

void replay_offer_attend(Run *r, const AttendInput *in, const Pattern *cells)
{
    if (!run_wants_views(r) || !cells || pattern_queries(cells) != r->n ||
        pattern_keys(cells) != r->m || in->q.shape[1] != r->n || in->k.shape[1] != r->m)
        return;
    r->replay.attend = *in;
    r->replay.cells = cells;
}

void replay_offer_state(Run *r, const LinearAttend *in)
{
    if (!run_wants_views(r) || in->gates.data)
        return;
    r->replay.fq = in->fq;
    r->replay.fk = in->fk;
    r->replay.v = in->v;
    r->replay.denominator = in->denominator;
    r->replay.eps = in->eps;
}

void replay_offer_features(Run *r, int64_t directions, int waves, bool negative, double scale)
{
    r->replay.directions = directions;
    r->replay.waves = waves;
    r->replay.negative = negative;
    r->replay.scale = scale;
}

/* Whether there is more to see of this run than its own stages. */
static bool replay_is_offered(const Run *run)
{
    const ReplaySource *s = &run->replay;

    return run->err.code == ERR_NONE && run->n <= REPLAY_QUERIES && run->m <= REPLAY_QUERIES &&
           (s->cells || (s->fk.data && (run->causal || s->directions)));
}

bool replay_wants_causal(const Run *run)
{
    const ReplaySource *s = &run->replay;

    return (s->cells || s->fk.data) && run->mechanism->causal && !run->causal &&
           run->n == run->m && run->n <= REPLAY_QUERIES;
}

/* ---- the run ---------------------------------------------------------------- */

int64_t replay_steps(int64_t n)
{
    return n < REPLAY_TOKENS ? n : REPLAY_TOKENS;
}

int64_t replay_last(int64_t n, int64_t step)
{
    return (step + 1) * n / replay_steps(n) - 1;
}

static const StageNote notes[] = {
    { "tile",
      "The keys come a tile at a time.  Of its scores a row keeps the largest so far, the sum of "
      "exp(score - largest) and the output; a larger one first scales both down." },
    { "token",
      "Decoding, query by query: a key and its value are held until the last query that reads "
      "them." },
    { "state",
      "Decoding: a token adds features times value to the state and is forgotten; the state does "
      "not grow." },
    { "growing",
      "The same random directions, only the first few: few give a coarse and noisy picture of "
      "the softmax, more a better one." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    { .name = "running_max", .kind = VIEW_SIGNED, .quantity = "score",
      .help = "largest score of a row after each tile" },
    { .name = "running_sum", .kind = VIEW_TENSOR, .help = "sum of exp(score - largest) so far" },
    { .name = "rescaled", .kind = VIEW_TENSOR, .help = "what the sum so far was multiplied by" },
    { .name = "output_off", .kind = VIEW_TENSOR, .help = "distance to the output at the end" },
    { .name = "held_bytes", .kind = VIEW_COUNT, .help = "keys and values held at each token",
      .curve = { .x = "token", .y = "memory (bytes)", .series = "held|all so far" } },
    VIEW_PROMISE_END
};

/* Not of the catalogue: nobody runs it by name. */
static const Mechanism replay = { .id = "replay", .title = "Replay", .notes = notes,
                                  .views = views };

Run *replay_new(const Run *run)
{
    Run *r = replay_is_offered(run) ? calloc(1, sizeof(*r)) : NULL;

    if (!r)
        return NULL;
    *r = (Run){ .mechanism = &replay, .q = run->q, .k = run->k, .v = run->v, .h = run->h,
                .n = run->n, .m = run->m, .d = run->d, .e = run->e, .causal = run->causal,
                .keys_ahead = run->keys_ahead, .q_offset = run->q_offset, .seed = run->seed,
                .ops = run->ops, .view_step = -1, .owns_arena = true };
    r->spec.views = true;
    r->arena = arena_new_from(run->ops->memory);
    if (!r->arena) {
        free(r);
        return NULL;
    }
    replay_tiles(r, &run->replay);
    replay_tokens(r, &run->replay);
    replay_features(r, &run->replay);
    replay_state(r, &run->replay);
    view_join_curves(r);
    if (run_failed(r) || !r->stage_count) {
        run_free(r);
        return NULL;
    }
    return r;
}
