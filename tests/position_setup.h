/* tests/position_setup.h -- what the tests of positional modifiers share.
 *
 * A probe mechanism applies the run's position and shows the scores it leads
 * to, cell by cell, and the inputs as the position left them.
 */
#ifndef TESTS_POSITION_SETUP_H
#define TESTS_POSITION_SETUP_H

#include "attn/run.h"
#include "attn/run/position.h"
#include "check.h"
#include "core/rng.h"

#define LENGTH(a) ((int)(sizeof(a) / sizeof(*(a))))

/* ---- the probe -------------------------------------------------------------- */

typedef struct ProbeParams {
    double scale;
} ProbeParams;

static const Param probe_params[] = {
    PARAM_FLOAT(ProbeParams, scale, 0, 0, 1e30, "factor of the scores; 0: automatic"),
    PARAM_END,
};

static inline void probe_run(Run *r, const void *opaque)
{
    AttendInput in = run_attend_input(r, ((const ProbeParams *)opaque)->scale);
    Tensor      scores = run_tensor3(r, DT_F64, r->h, r->n, r->m);

    if (run_failed(r))
        return;
    assert_true(!tensor_given(&in.distance) || in.distance.shape[0] == 1 ||
                in.distance.shape[0] == r->h);
    for (int64_t t = 0; t < r->h; t++)
        for (int64_t i = 0; i < r->n; i++)
            for (int64_t j = 0; j < r->m; j++)
                ((double *)scores.data)[(t * r->n + i) * r->m + j] =
                    attend_score(&in, r->h, t, i, j);
    view_tensor(r, "scores", VIEW_TENSOR, scores, "query", "key");
    view_tensor(r, "q", VIEW_TENSOR, in.q, "query", "d");
    view_tensor(r, "k", VIEW_TENSOR, in.k, "key", "d");
    view_tensor(r, "v", VIEW_TENSOR, in.v, "key", "e");
    r->out = run_tensor3(r, DT_F32, r->h, r->n, r->e);
}

static const Mechanism probe = {
    .id = "probe", .causal = true, .cross = true, .positions = POSITIONS_ALL,
    .params = probe_params, .params_size = sizeof(ProbeParams), .run = probe_run,
};

/* ---- inputs ----------------------------------------------------------------- */

typedef struct Setup {
    int64_t     h, n, m, d, e;
    bool        causal;
    int         variant;  /* what the formula under test wants to know */
    Tensor      q, k, v, a, b, c;
    Assignments given;
    Threads    *threads;  /* NULL: none */
    Arena      *arena;
} Setup;

static inline Tensor filled(Setup *s, const char *name, int rank, const int64_t *shape,
                            double deviation)
{
    Tensor t = tensor_new(s->arena, DT_F32, rank, shape);
    Rng    rng = rng_named(11, name);

    assert_non_null(t.data);
    rng_fill_normal(&rng, tensor_f32(&t), tensor_count(&t), deviation);
    return t;
}

static inline void setup_open(Setup *s, int64_t h, int64_t n, int64_t m, int64_t d, bool causal)
{
    *s = (Setup){ .h = h, .n = n, .m = m, .d = d, .e = 3, .causal = causal,
                  .arena = arena_new() };
    assert_non_null(s->arena);
    s->q = filled(s, "q", 3, (int64_t[]){ h, n, d }, 1);
    s->k = filled(s, "k", 3, (int64_t[]){ h, m, d }, 1);
    s->v = filled(s, "v", 3, (int64_t[]){ h, m, s->e }, 1);
}

static inline void setup_close(Setup *s)
{
    assignments_free(&s->given);
    arena_free(s->arena);
}

static inline Tensor give(Setup *s, const char *name, int rank, const int64_t *shape)
{
    Tensor t = filled(s, name, rank, shape, 0.5);
    Error  err = ERROR_INIT;

    assert_true(assignments_set_tensor(&s->given, name, t, "@file.npy", &err));
    return t;
}

static inline void set(Setup *s, const char *list)
{
    Error err = ERROR_INIT;

    assert_true(assignments_parse(&s->given, list, &err));
}

static inline Run *run_any(Setup *s, const Mechanism *mechanism, const char *position)
{
    RunSpec spec = { .mechanism = mechanism, .q = s->q, .k = s->k, .v = s->v,
                     .causal = s->causal, .position = position_find(position),
                     .given = &s->given, .seed = 7, .views = true,
                     .threads = s->threads };
    Run    *run = run_new(&spec);

    run_execute(run);
    assert_non_null(run);
    return run;
}

static inline Run *run_probe(Setup *s, const char *position)
{
    Run *run = run_any(s, &probe, position);

    if (run->err.code != ERR_NONE)
        print_error("%s\n", run->err.text);
    assert_int_equal(run->err.code, ERR_NONE);
    return run;
}

static inline double at(const Tensor *t, int64_t head, int64_t row, int64_t c)
{
    if (t->rank == 2)
        return tensor_get(t, (int64_t[]){ row, c });
    return tensor_get(t, (int64_t[]){ t->shape[0] == 1 ? 0 : head, row, c });
}

static inline double shown(const Run *run, const char *view, int64_t head, int64_t row, int64_t c)
{
    const View *v = run_view(run, view);

    assert_non_null(v);
    return at(&v->tensor, head, row, c);
}

static inline void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * fmax(1, fabs(want))))
        fail_msg("got %.9g, want %.9g", got, want);
}

/* Position of query i. */
static inline double where(const Setup *s, int64_t i)
{
    return (double)(i + (s->causal ? s->m - s->n : 0));
}

#endif
