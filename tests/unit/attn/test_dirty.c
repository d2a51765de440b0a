/* test_dirty.c -- memory that held something else changes no run: what it reads it has written. */

#include "unit/mech_fixture.h"

#define N 37
#define ROOM (8 << 20) /* bytes: more than these runs take */

typedef struct Runs {
    Fixture f;
    Arena  *dirty;
    Run    *clean, *again;
} Runs;

/* The run's memory is full of NaN: 0xff in every byte. */
static Arena *full_of_nan(void)
{
    Arena *arena = arena_new();
    void  *room = arena_alloc(arena, ROOM, 1);

    assert_non_null(room);
    memset(room, 0xff, ROOM);
    return arena;
}

static Runs runs_of(const Mechanism *m, const char *params, bool causal)
{
    Runs    runs = { .f = fixture_new_x(N), .dirty = full_of_nan() };
    Error   err = ERROR_INIT;
    RunSpec spec = { .mechanism = m, .q = runs.f.q, .k = runs.f.k, .v = runs.f.v, .x = runs.f.x,
                     .given = &runs.f.given, .seed = 7, .causal = causal, .views = true };

    assert_true(!*params || assignments_parse(&runs.f.given, params, &err));

    runs.clean = run_new(&spec);
    run_execute(runs.clean);
    runs.again = run_new_in(&spec, runs.dirty);
    run_execute(runs.again);
    return runs;
}

static void runs_free(Runs *runs)
{
    run_free(runs->again);
    run_free(runs->clean);
    arena_free(runs->dirty);
    fixture_free(&runs->f);
}

static bool same_view(Arena *arena, const View *a, const View *b)
{
    Error  err = ERROR_INIT;
    Tensor x, y;

    if (strcmp(a->name, b->name) != 0 || view_rows(a) != view_rows(b) ||
        view_cols(a) != view_cols(b) || view_planes(a) != view_planes(b))
        return false;
    assert_true(view_materialise(a, arena, 0, &x, &err) && view_materialise(b, arena, 0, &y, &err));
    x = tensor_convert(arena, x, x.dtype);
    y = tensor_convert(arena, y, y.dtype);
    return !memcmp(x.data, y.data, (size_t)tensor_bytes(&x));
}

/* Whether it ran. */
static bool check(const Mechanism *m, const char *params, bool causal)
{
    Runs runs = runs_of(m, params, causal);
    bool ran = runs.clean->err.code == ERR_NONE;

    assert_int_equal(runs.again->err.code, runs.clean->err.code);
    if (ran) {
        assert_int_equal(runs.again->view_count, runs.clean->view_count);
        CHECK(!memcmp(runs.again->out.data, runs.clean->out.data,
                      (size_t)tensor_bytes(&runs.clean->out)), "%s(%s)%s: another output", m->id,
              params, causal ? ", causal" : "");
        for (int v = 0; v < runs.clean->view_count; v++)
            CHECK(same_view(runs.f.arena, &runs.clean->views[v], &runs.again->views[v]),
                  "%s(%s)%s: view %s differs", m->id, params, causal ? ", causal" : "",
                  runs.clean->views[v].name);
    }
    runs_free(&runs);
    return ran;
}

/* With each choice of a parameter that is a word; returns how many ran. */
static int check_choices(const Mechanism *m, const Param *p, bool causal)
{
    char params[160];
    int  ran = 0;

    for (int x = 0; p->type == PARAM_TYPE_ENUM && p->choices[x]; x++) {
        snprintf(params, sizeof(params), "%s=%s", p->name, p->choices[x]);
        ran += check(m, params, causal);
    }
    return ran;
}

TEST(memory_that_was_used_before_changes_nothing)
{
    int ran = 0;

    for (size_t x = 0; mechanism_at(x); x++)
        for (int causal = 0; causal < 2; causal++) {
            const Mechanism *m = mechanism_at(x);

            ran += check(m, "", causal);
            for (const Param *p = m->params; p && p->name; p++)
                ran += check_choices(m, p, causal);
        }
    assert_true(ran > 400);
}

SUITE(NULL, NULL)
