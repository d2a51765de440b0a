/* replay_state.c -- causal decoding of linear attention: a state instead of a cache.
 *
 *     S <- S + phi(k_t)^T v_t,   z <- z + phi(k_t)
 *
 * summed in double over the features that the run used.
 */
#include <math.h>
#include <string.h>

#include "attn/study/replay_parts.h"

#define WORK  (1 << 26) /* multiply-adds at most */
#define KEPT  (1 << 26) /* bytes of all snapshots at most */

static double feature(const Tensor *t, int64_t heads, int64_t head, int64_t i, int64_t c)
{
    const char *slice = tensor_head(t, head, heads);
    int64_t     at = i * t->stride[1] + c;

    return t->dtype == DT_F64 ? ((const double *)(const void *)slice)[at]
                              : (double)((const float *)(const void *)slice)[at];
}

static void add_token(Run *r, const ReplaySource *s, int64_t token, double *state)
{
    int64_t f = s->fk.shape[2];

    for (int64_t head = 0; head < r->h; head++) {
        const float *v = (const float *)tensor_head(&s->v, head, r->h) + token * s->v.stride[1];

        for (int64_t c = 0; c < f; c++) {
            double  phi = feature(&s->fk, r->h, head, token, c);
            double *row = state + (head * f + c) * r->e;

            for (int64_t x = 0; x < r->e; x++)
                row[x] += phi * (double)v[x];
        }
    }
}

static void show_state(Run *r, const double *state, int64_t f, float *before)
{
    Tensor shot = run_tensor3(r, DT_F32, r->h, f, r->e);
    double moved = 0, size = 0;

    for (int64_t x = 0; shot.data && x < r->h * f * r->e; x++) {
        double change = state[x] - (double)before[x];

        tensor_f32(&shot)[x] = before[x] = (float)state[x];
        moved += change * change;
        size += state[x] * state[x];
    }
    view_tensor(r, "state", VIEW_VECTORS, shot, "feature", "value");
    run_trace(r, "state changed by", size > 0 ? sqrt(moved / size) : 0);
}

static void say_state(Run *r, const ReplaySource *s, int64_t token)
{
    int64_t f = s->fk.shape[2], number = (int64_t)sizeof(float);
    char    held[32], all[32];

    format_bytes(r->h * f * (r->e + 1) * number, held, sizeof(held));
    format_bytes((token + 1) * (r->d + r->e) * s->v.shape[0] * number, all, sizeof(all));
    run_say(r, "After token %lld: %lld x %lld numbers and %lld sums for each head, %s, as after "
            "every other; keys and values so far are %s.", (long long)token, (long long)f,
            (long long)r->e, (long long)f, held, all);
}

void replay_state(Run *r, const ReplaySource *s)
{
    int64_t size = s->fk.data ? r->h * s->fk.shape[2] * r->e : 0, done = 0;
    double *state;
    float  *before;

    if (!size || !r->causal || r->n != r->m || size > WORK / r->n ||
        size > KEPT / (int64_t)sizeof(float) / replay_steps(r->n))
        return;
    state = run_alloc(r, size, sizeof(*state));
    before = run_alloc(r, size, sizeof(*before));
    if (!state || !before)
        return;
    memset(state, 0, (size_t)size * sizeof(*state));
    memset(before, 0, (size_t)size * sizeof(*before));
    for (int64_t k = 0; k < replay_steps(r->n) && !run_failed(r); k++) {
        int64_t t = replay_last(r->n, k);

        for (; done <= t; done++)
            add_token(r, s, done, state);
        run_iteration(r, "state", k);
        run_mark(r, "tokens decoded", (double)t + 1);
        run_about(r, t);
        show_state(r, state, s->fk.shape[2], before);
        say_state(r, s, t);
    }
}
