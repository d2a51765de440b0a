/* tests/unit/mech_fixture.h -- runs of one mechanism on small random inputs. */
#ifndef TESTS_UNIT_MECH_FIXTURE_H
#define TESTS_UNIT_MECH_FIXTURE_H

#include "attn/run.h"
#include "check.h"
#include "core/rng.h"

#define HEADS 2
#define KEY_SIZE 5
#define VALUE_SIZE 3
#define FEATURES 6 /* of x, where a test wants one */

typedef struct Fixture {
    int64_t     n;
    Arena      *arena;
    Tensor      q, k, v, x; /* x: [n,dm], absent unless a test sets it */
    const char *names[4];   /* tensor parameters of the next runs; NULL: no more */
    Tensor      values[4];
    Assignments given;
    const Position *position; /* of the runs to come; NULL: none */
    Assignment tensors[12];   /* tensor parameters of the runs to come */
    int        tensor_count;
    Run        *run;
} Fixture;

static inline Tensor fixture_normal(Fixture *f, const char *name, int64_t width)
{
    Rng    rng = rng_named(3, name);
    Tensor t = tensor_new(f->arena, DT_F32, 3, (int64_t[]){ HEADS, f->n, width });

    assert_non_null(t.data);
    rng_fill_normal(&rng, t.data, tensor_count(&t), 1);
    return t;
}

static inline Fixture fixture_new(int64_t n)
{
    Fixture f = { .n = n, .arena = arena_new() };

    assert_non_null(f.arena);
    f.q = fixture_normal(&f, "q", KEY_SIZE);
    f.k = fixture_normal(&f, "k", KEY_SIZE);
    f.v = fixture_normal(&f, "v", VALUE_SIZE);
    return f;
}

/* Gives tensor parameter `name` to the runs to come. */
static inline void fixture_give(Fixture *f, const char *name, Tensor t)
{
    Assignment *item = &f->tensors[f->tensor_count++];

    snprintf(item->name, sizeof(item->name), "%s", name);
    item->tensor = t;
}

/* The same, normal, of a shape of three axes. */
static inline Tensor fixture_draw(Fixture *f, const char *name, int64_t a, int64_t b, int64_t c)
{
    Rng    rng = rng_named(5, name);
    Tensor t = tensor_new(f->arena, DT_F32, 3, (int64_t[]){ a, b, c });

    assert_non_null(t.data);
    rng_fill_normal(&rng, t.data, tensor_count(&t), 0.5);
    fixture_give(f, name, t);
    return t;
}

/* With x besides. */
static inline Fixture fixture_new_x(int64_t n)
{
    Fixture f = fixture_new(n);
    Rng     rng = rng_named(3, "x");

    f.x = tensor_new(f.arena, DT_F32, 2, (int64_t[]){ n, FEATURES });
    assert_non_null(f.x.data);
    rng_fill_normal(&rng, f.x.data, tensor_count(&f.x), 1);
    return f;
}

/* Gives a tensor parameter of one value. */
static inline Tensor fixture_fill(Fixture *f, const char *name, int rank, const int64_t *shape,
                                  float value)
{
    Tensor t = tensor_new(f->arena, DT_F32, rank, shape);

    assert_non_null(t.data);
    for (int64_t i = 0; i < tensor_count(&t); i++)
        tensor_f32(&t)[i] = value;
    fixture_give(f, name, t);
    return t;
}

static inline Run *fixture_start(Fixture *f, RunSpec spec)
{
    spec.q = f->q;
    spec.k = f->k;
    spec.v = f->v;
    spec.x = f->x;
    spec.given = &f->given;
    spec.seed = 7;
    spec.position = f->position;
    run_free(f->run);
    assert_non_null(spec.mechanism);
    f->run = run_new(&spec);
    run_execute(f->run);
    assert_non_null(f->run);
    return f->run;
}

/* Runs `id` with parameters "a=1,b=2"; the run before is freed. */
static inline Run *fixture_run_at(Fixture *f, const char *id, const char *params, bool causal,
                                  bool views, int64_t fail_at)
{
    Error err = ERROR_INIT;

    assignments_free(&f->given);
    assert_true(!*params || assignments_parse(&f->given, params, &err));
    for (int t = 0; t < f->tensor_count; t++)
        assert_true(assignments_set_tensor(&f->given, f->tensors[t].name, f->tensors[t].tensor,
                                           "test", &err));
    for (int i = 0; i < 4 && f->names[i]; i++)
        assert_true(assignments_set_tensor(&f->given, f->names[i], f->values[i], "test", &err));
    return fixture_start(f, (RunSpec){ .mechanism = mechanism_find(id), .causal = causal,
                                       .views = views, .fail_at = fail_at });
}

/* As fixture_run_at, with the parameters that f->given holds already. */
static inline Run *fixture_run_given_at(Fixture *f, const char *id, bool causal)
{
    return fixture_start(f, (RunSpec){ .mechanism = mechanism_find(id), .causal = causal,
                                       .views = true });
}

static inline Run *fixture_run(Fixture *f, const char *id, const char *params, bool causal)
{
    Run *r = fixture_run_at(f, id, params, causal, true, 0);

    if (r->err.code != ERR_NONE)
        fail_msg("%s(%s): %s", id, params, r->err.text);
    assert_true(arena_check(r->arena));
    return r;
}

static inline Run *fixture_run_given(Fixture *f, const char *id, bool causal)
{
    Run *r = fixture_run_given_at(f, id, causal);

    if (r->err.code != ERR_NONE)
        fail_msg("%s: %s", id, r->err.text);
    assert_true(arena_check(r->arena));
    return r;
}

static inline void fixture_free(Fixture *f)
{
    run_free(f->run);
    assignments_free(&f->given);
    arena_free(f->arena);
}

/* A copy of the output that outlives the run. */
static inline float *fixture_output(const Fixture *f)
{
    size_t bytes = (size_t)tensor_bytes(&f->run->out);
    float *copy = malloc(bytes);

    assert_non_null(copy);
    memcpy(copy, f->run->out.data, bytes);
    return copy;
}

static inline void check_near(const float *a, const float *b, int64_t count, double tolerance)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= tolerance))
            fail_msg("entry %lld: %.9g, want %.9g", (long long)i, (double)a[i], (double)b[i]);
}

static inline Tensor fixture_view(const Fixture *f, const char *name)
{
    const View *view = run_view(f->run, name);
    Error       err = ERROR_INIT;
    Tensor      t = { .rank = 0 };

    assert_non_null(view);
    assert_true(view_materialise(view, f->arena, 0, &t, &err));
    return t;
}

/* weights @ V is the output, and a cell outside connectivity weighs nothing. */
static inline void check_weights(const Fixture *f)
{
    Tensor  weights = fixture_view(f, "weights"), cells = fixture_view(f, "connectivity");
    int64_t n = f->n, planes = tensor_count(&cells) / (n * n);

    for (int64_t row = 0; row < HEADS * n; row++)
        for (int64_t c = 0; c < VALUE_SIZE; c++) {
            double sum = 0;

            for (int64_t j = 0; j < n; j++) {
                float w = tensor_f32(&weights)[row * n + j];

                if (!tensor_u8(&cells)[(planes > 1 ? row : row % n) * n + j])
                    assert_true(w == 0);
                sum += (double)w *
                       (double)tensor_f32(&f->v)[(row / n * n + j) * VALUE_SIZE + c];
            }
            if (!(fabs(sum - (double)tensor_f32(&f->run->out)[row * VALUE_SIZE + c]) <= 1e-5))
                fail_msg("row %lld, value %lld: weights give %.9g", (long long)row, (long long)c,
                         sum);
        }
}

static inline void check_flops(const Fixture *f)
{
    Flops counted = run_flops(f->run), closed;
    bool  bound;

    assert_true(run_closed_form(f->run, &closed, &bound));
    assert_true(counted.score <= closed.score * (1 + 1e-12));
    assert_true(flops_total(counted) <= flops_total(closed) * (1 + 1e-9));
    if (!bound) {
        assert_true(fabs(flops_total(counted) - flops_total(closed)) <=
                    1e-9 * flops_total(closed));
        assert_true(counted.score >= closed.score * (1 - 1e-12));
    }
}

/* Rows up to t do not move when everything behind them does. */
static inline void check_causal_near(Fixture *f, const char *id, const char *params, int64_t t,
                                     double tolerance)
{
    float *before;

    fixture_run(f, id, params, true);
    before = fixture_output(f);
    for (int64_t row = 0; row < HEADS * f->n; row++)
        if (row % f->n > t) {
            tensor_f32(&f->q)[row * KEY_SIZE] += 2;
            tensor_f32(&f->k)[row * KEY_SIZE] -= 3;
            tensor_f32(&f->v)[row * VALUE_SIZE] += 5;
        }
    fixture_run(f, id, params, true);
    for (int64_t head = 0; head < HEADS; head++)
        check_near(tensor_f32(&f->run->out) + head * f->n * VALUE_SIZE,
                   before + head * f->n * VALUE_SIZE, (t + 1) * VALUE_SIZE, tolerance);
    free(before);
}

static inline void check_causal(Fixture *f, const char *id, const char *params, int64_t t)
{
    check_causal_near(f, id, params, t, 0);
}

/* Whichever allocation fails, the run ends with an ordinary error. */
static inline void check_out_of_memory(Fixture *f, const char *id, const char *params)
{
    for (int64_t k = 1;; k++) {
        Run *r = fixture_run_at(f, id, params, false, false, k);

        if (r->err.code == ERR_NONE) {
            assert_true(k > 3);
            return;
        }
        assert_int_equal(r->err.code, ERR_NOMEM);
    }
}

/* A figure of the run that is there. */
static inline double figure_of(const Run *r, const char *name)
{
    for (int i = 0; i < r->figure_count; i++)
        if (!strcmp(r->figures[i].name, name))
            return r->figures[i].value;
    fail_msg("no figure %s", name);
    return 0;
}

/* The run fails, and its message holds `text`. */
static inline void check_fails(Fixture *f, const char *id, const char *params, bool causal,
                               const char *text)
{
    Run *r = fixture_run_at(f, id, params, causal, true, 0);

    if (r->err.code == ERR_NONE || !strstr(r->err.text, text))
        fail_msg("%s(%s): expected '%s', got '%s'", id, params, text, r->err.text);
}

/* The same on an input of 13 tokens. */
static inline void expect_refusal(const char *id, const char *params, bool causal, const char *text)
{
    Fixture f = fixture_new(13);

    check_fails(&f, id, params, causal, text);
    fixture_free(&f);
}

#endif
