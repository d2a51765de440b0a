/* decode.c -- causal decoding: which keys and values must be held, token by token.
 *
 * The pattern alone decides which query reads a key last; the key is held from its own token to
 * that query.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/study/replay.h"

typedef struct Cache {
    const Pattern *cells;
    Tensor         last;     /* i32 [planes,n] */
    int64_t        planes, n;
    int64_t        pair;     /* bytes of a key and its value, of all heads of a plane */
    int64_t       *held, *read; /* [n] keys at each token, over the planes */
    int64_t       *bytes;    /* [n,2] held, and of all so far */
} Cache;

/* The first key from j on whose last query is not known; next[j] = j: not known. */
static int64_t unsettled(int64_t *next, int64_t j)
{
    while (next[j] != j)
        j = next[j] = next[next[j]];
    return j;
}

/* Row i is the last query of the keys of the run whose last query is not known yet. */
static void decode_settle(int64_t *next, PatternRun run, int64_t i, int32_t *last)
{
    int64_t end = run.start + (run.count - 1) * run.step + 1;

    for (int64_t j = run.start; j < end; j += run.step) {
        if (run.step == 1 && (j = unsettled(next, j)) >= end)
            return;
        if (next[j] != j)
            continue;
        last[j] = last[j] < i ? (int32_t)i : last[j];
        next[j] = j + 1;
    }
}

/* The last query of every key: rows are visited backwards, and the first row with the key is it. */
static void find_last(Run *r, const Cache *c, int64_t plane, int64_t head)
{
    int32_t   *last = tensor_i32(&c->last) + plane * c->n;
    int64_t   *next = malloc(((size_t)c->n + 1) * sizeof(*next));
    PatternRow row = { 0 };

    if (!next)
        run_fail(r, ERR_NOMEM, "not enough memory for the keys that are held");
    for (int64_t j = 0; next && j <= c->n; j++)
        next[j] = j;
    for (int64_t i = c->n - 1; next && i >= 0; i--) {
        pattern_row(c->cells, head, i, &row);
        for (int64_t x = 0; x < row.count; x++)
            decode_settle(next, row.runs[x], i, last);
    }
    pattern_row_free(&row);
    free(next);
}

/* Keys held and read at each token, over all planes. */
static void count_held(const Cache *c)
{
    PatternRow row = { 0 };

    for (int64_t plane = 0; plane < c->planes; plane++)
        for (int64_t i = 0; i < c->n; i++) {
            int32_t last = tensor_i32(&c->last)[plane * c->n + i];

            c->held[i] += last >= i;
            if (last >= i && last + 1 < c->n)
                c->held[last + 1]--;
            pattern_row(c->cells, plane, i, &row);
            c->read[i] += pattern_row_cells(&row);
        }
    for (int64_t i = 1; i < c->n; i++)
        c->held[i] += c->held[i - 1];
    pattern_row_free(&row);
}

static void count_bytes(const Cache *c)
{
    for (int64_t i = 0; i < c->n; i++) {
        c->bytes[2 * i] = c->held[i] * c->pair;
        c->bytes[2 * i + 1] = (i + 1) * c->planes * c->pair;
    }
}

static Cache *cache_new(Run *r, const ReplaySource *s)
{
    Cache  *c = run_alloc(r, 1, sizeof(*c));
    bool    own = pattern_per_head(s->cells) && s->attend.k.shape[0] == r->h;
    int64_t each = (r->d + r->e) * (int64_t)sizeof(float);

    if (!c)
        return NULL;
    *c = (Cache){ .cells = s->cells, .planes = own ? r->h : 1, .n = r->n };
    c->pair = own ? each : each * s->attend.k.shape[0];
    c->last = run_tensor2(r, DT_I32, c->planes, c->n);
    c->held = run_alloc(r, c->n, sizeof(*c->held));
    c->read = run_alloc(r, c->n, sizeof(*c->read));
    c->bytes = run_alloc(r, 2 * c->n, sizeof(*c->bytes));
    if (run_failed(r))
        return NULL;
    memset(c->held, 0, (size_t)c->n * sizeof(*c->held));
    memset(c->read, 0, (size_t)c->n * sizeof(*c->read));
    for (int64_t j = 0; j < c->planes * c->n; j++)
        tensor_i32(&c->last)[j] = -1;
    /* heads that share keys hold what any of them reads */
    for (int64_t head = 0; head < (pattern_per_head(c->cells) ? r->h : 1); head++)
        find_last(r, c, own ? head : 0, head);
    count_held(c);
    count_bytes(c);
    return c;
}

/* ---- steps ------------------------------------------------------------------ */

static const char *const why[8] = { "read", "held for later", "new" };

static void show_held(Run *r, const Cache *c, int64_t token)
{
    PatternShape s = { .heads = r->h, .n = c->n, .m = c->n };
    bool         each = pattern_per_head(c->cells);
    int64_t      shape[3] = { r->h, c->n, c->n };
    Pattern     *held = pattern_held(r->arena, s, c->cells, &c->last, token + 1);
    View        *view;

    if (!held) {
        run_fail(r, ERR_NOMEM, "not enough memory for the keys of a token");
        return;
    }
    view = view_add(r, "held", VIEW_COMPONENTS, DT_U8, each ? 3 : 2, each ? shape : shape + 1);
    if (view) {
        view->support = held;
        view->components = why;
    }
}

/* Keys whose last reader is one of the tokens [from, to]. */
static int64_t let_go(const Cache *c, int64_t from, int64_t to)
{
    int64_t count = 0;

    for (int64_t x = 0; x < c->planes * c->n; x++) {
        int32_t last = tensor_i32(&c->last)[x];

        count += last >= from && last <= to && last < c->n - 1;
    }
    return count / c->planes;
}

static void say_token(Run *r, const Cache *c, int64_t from, int64_t t)
{
    char    held[32], all[32], pair[32];
    int64_t gone = let_go(c, from, t);

    format_bytes(c->bytes[2 * t], held, sizeof(held));
    format_bytes(c->bytes[2 * t + 1], all, sizeof(all));
    format_bytes(c->pair * c->planes, pair, sizeof(pair));
    run_say(r, "Token %lld reads %lld of the %lld keys so far; its own key and value add %s.  "
            "Held: %lld keys, %s; all so far are %s.%s", (long long)t,
            (long long)(c->read[t] / c->planes), (long long)t + 1, pair,
            (long long)(c->held[t] / c->planes), held, all,
            t + 1 < c->n && gone ? "  Some are let go now." : "");
    run_trace(r, "keys held", (double)c->held[t] / (double)c->planes);
    run_trace(r, "keys so far", (double)t + 1);
}

void replay_tokens(Run *r, const ReplaySource *s)
{
    bool    can = s->cells && r->causal && !r->keys_ahead && r->n == r->m && r->n > 1;
    Cache  *c = can ? cache_new(r, s) : NULL;
    int64_t shape[2] = { r->n, 2 };
    View   *view;

    for (int64_t k = 0; c && k < replay_steps(c->n) && !run_failed(r); k++) {
        int64_t t = replay_last(c->n, k);

        run_iteration(r, "token", k);
        run_mark(r, "tokens decoded", (double)t + 1);
        run_about(r, t);
        show_held(r, c, t);
        say_token(r, c, k ? replay_last(c->n, k - 1) + 1 : 0, t);
    }
    view = c ? view_add(r, "held_bytes", VIEW_COUNT, DT_I64, 2, shape) : NULL;
    if (view) {
        view->tensor = tensor_of(DT_I64, 2, shape, c->bytes);
        view->iteration = -1; /* it is of all tokens */
        view->rows = "token";
        view->cols = "series";
    }
}

/* Causal decoding of linear attention: a state instead of a cache.
 *
 *     S <- S + phi(k_t)^T v_t,   z <- z + phi(k_t)
 *
 * in double, with the features of the run.
 */

#define WORK  (1 << 26) /* multiply-adds at most */
#define KEPT  (1 << 26) /* bytes of all snapshots at most */

static void add_token(Run *r, const ReplaySource *s, int64_t token, double *state)
{
    int64_t f = s->fk.shape[2];

    for (int64_t head = 0; head < r->h; head++) {
        const float *v = tensor_row_f32(&s->v, head, r->h, token);

        for (int64_t c = 0; c < f; c++) {
            double  phi = tensor_float(&s->fk, head, r->h, token, c);
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
