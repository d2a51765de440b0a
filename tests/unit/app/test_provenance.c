/* test_provenance.c -- random tensors are named: where the seed changes the output, the run
 * names the tensor that was drawn.
 *
 * Every mechanism of the catalogue, by its example, and with each of its choices and switches
 * turned in turn.
 */

#include "app/figure/picture.h"
#include "attn/run.h"
#include "check.h"
#include "core/rng.h"
#include "profile/measure.h"

#define TOKENS 24
#define HEADS 2
#define WIDTH 8

typedef struct Data {
    Arena *arena;
    Tensor q, k, v, x, attn;
} Data;

static Tensor draw(Data *d, const char *name, int64_t h, int64_t rows, int64_t cols)
{
    Tensor t = tensor_new(d->arena, DT_F32, 3, (int64_t[]){ h, rows, cols });
    Rng    rng = rng_named(11, name);

    assert_non_null(t.data);
    rng_fill_normal(&rng, tensor_f32(&t), tensor_count(&t), 1);
    return t;
}

static Data data_new(void)
{
    Data d = { .arena = arena_new() };

    assert_non_null(d.arena);
    d.q = draw(&d, "q", HEADS, TOKENS, WIDTH);
    d.k = draw(&d, "k", HEADS, TOKENS, WIDTH);
    d.v = draw(&d, "v", HEADS, TOKENS, WIDTH);
    d.x = tensor_with_rank(draw(&d, "x", 1, TOKENS, HEADS * WIDTH), 2);
    d.attn = draw(&d, "attn", HEADS, TOKENS, TOKENS);
    return d;
}

/* A variant: one parameter beside the example's; fitted or not, with views or as timed. */
typedef struct Variant {
    const char *name, *value; /* NULL: the example alone */
    bool        fit, views;
} Variant;

/* NULL: this variant cannot run here. */
static Run *run_variant(const Data *d, const Mechanism *m, Variant variant, uint64_t seed,
                        Assignments *given)
{
    RunSpec spec = { .mechanism = m, .q = d->q, .k = d->k, .v = d->v, .x = d->x, .seed = seed,
                     .views = variant.views, .fit = variant.fit, .given = given };
    Error   err = ERROR_INIT;
    Run    *r;

    if (m->example)
        assert_true(assignments_parse(given, m->example, &err));
    if (variant.name && !assignments_set(given, variant.name, variant.value, &err))
        return NULL;
    if (m->needs_attn)
        spec.attn = d->attn;
    r = run_new(&spec);
    run_execute(r);
    assert_non_null(r);
    if (r->err.code == ERR_NONE)
        return r;
    run_free(r);
    return NULL;
}

static bool outputs_differ(const Run *a, const Run *b)
{
    return !tensor_same_shape(&a->out, &b->out) ||
           memcmp(a->out.data, b->out.data, (size_t)tensor_bytes(&a->out)) != 0;
}

/* A view that says it is random is named too, whatever the output. */
static bool shows_random(const Run *r)
{
    for (int i = 0; i < r->view_count; i++)
        if (r->views[i].origin && strstr(r->views[i].origin, "random seed"))
            return true;
    return false;
}

static void check_variant(const Data *d, const Mechanism *m, Variant variant)
{
    Assignments first = { 0 }, second = { 0 };
    Run        *a = run_variant(d, m, variant, 1, &first);
    Run        *b = run_variant(d, m, variant, 2, &second);

    assert_int_equal(a != NULL, b != NULL);
    if (a && b)
        CHECK(run_is_drawn(a) || (!outputs_differ(a, b) && !shows_random(a)),
              "%s(%s=%s)%s%s: the seed changes it, but no tensor is said to be drawn", m->id,
              variant.name ? variant.name : "", variant.name ? variant.value : "",
              variant.fit ? " fitted" : "", variant.views ? "" : " timed");
    run_free(a);
    run_free(b);
    assignments_free(&first);
    assignments_free(&second);
}

static void check_ways(const Data *d, const Mechanism *m, const char *name, const char *value)
{
    for (int views = 0; views < 2; views++)
        for (int fit = 0; fit <= (m->fit != NULL); fit++)
            check_variant(d, m, (Variant){ name, value, fit, views });
}

TEST(what_the_seed_changes_is_named)
{
    Data d = data_new();

    for (size_t i = 0; mechanism_at(i); i++) {
        const Mechanism *m = mechanism_at(i);

        check_ways(&d, m, NULL, NULL);
        for (const Param *p = m->params; p && p->name; p++) {
            for (int c = 0; p->type == PARAM_TYPE_ENUM && p->choices[c]; c++)
                check_ways(&d, m, p->name, p->choices[c]);
            for (int on = 0; p->type == PARAM_TYPE_BOOL && on < 2; on++)
                check_ways(&d, m, p->name, on ? "true" : "false");
        }
    }
    arena_free(d.arena);
}

static Origin origin_of(const Run *r, const char *name)
{
    for (int i = 0; i < r->tensor_count; i++)
        if (!strcmp(r->tensors[i].name, name))
            return r->tensors[i].origin;
    return ORIGIN_FILE;
}

/* With views and without: a timed run's record says the same. */
TEST(projections_are_named)
{
    static const char *const drawn[][2] = {
        { "linformer", "e_proj" }, { "linformer", "f_proj" },
        { "performer", "projection" }, { "rfa", "projection" },
    };
    Data d = data_new();

    for (size_t i = 0; i < sizeof(drawn) / sizeof(*drawn); i++)
        for (int views = 0; views < 2; views++) {
            Assignments given = { 0 };
            Run        *r = run_variant(&d, mechanism_find(drawn[i][0]),
                                        (Variant){ .views = views }, 1, &given);

            assert_non_null(r);
            assert_int_equal(origin_of(r, drawn[i][1]), ORIGIN_DRAWN);
            run_free(r);
            assignments_free(&given);
        }
    arena_free(d.arena);
}

/* ---- in words ------------------------------------------------------------------ */

static void assert_words(const Run *const *runs, int count, int most, const char *expected)
{
    Text out = { 0 };

    origins_of_runs(runs, count, most, &out);
    assert_string_equal(text_str(&out), expected);
    text_free(&out);
}

/* For readers: no seed that the caption says, no name twice. */
static void assert_reader_words(const Run *const *runs, int count, uint64_t seed,
                                const char *expected)
{
    Text out = { 0 };

    origins_in_words(runs, count, 4, seed, &out);
    assert_string_equal(text_str(&out), expected);
    text_free(&out);
}

TEST(origins_are_grouped)
{
    static const char *const ids[] = { "linformer", "performer", "linformer", "full" };
    static const uint64_t    seeds[] = { 1, 1, 2, 1 };
    Data        d = data_new();
    Assignments given[4] = { { 0 } };
    Run        *made[4];
    const Run  *runs[4];

    for (int i = 0; i < 4; i++) {
        made[i] = run_variant(&d, mechanism_find(ids[i]), (Variant){ .views = true }, seeds[i],
                              &given[i]);
        assert_non_null(made[i]);
        runs[i] = made[i];
    }
    assert_words(&runs[0], 1, 4, "e_proj, f_proj: random seed 1");
    assert_words(&runs[0], 1, 1, "e_proj and 1 more: random seed 1");
    assert_words(&runs[3], 1, 4, "");
    assert_words((const Run *[]){ runs[0], runs[2] }, 2, 4,
                 "e_proj, f_proj: random seed 1; e_proj, f_proj: random seed 2");
    assert_words(runs, 4, 4, "linformer (e_proj, f_proj), performer (projection): random seed 1; "
                             "linformer (e_proj, f_proj): random seed 2");
    assert_reader_words(&runs[1], 1, 1, "projection drawn at random");
    assert_reader_words(&runs[1], 1, 0, "projection drawn at random, seed 1");
    assert_reader_words((const Run *[]){ runs[0], runs[2] }, 2, 1,
                        "e_proj, f_proj drawn at random or with seed 2");
    run_origin(made[0], "f_proj", ORIGIN_FILE);
    assert_words(&runs[0], 1, 4, "e_proj: random seed 1; f_proj: file");
    for (int i = 0; i < 4; i++) {
        run_free(made[i]);
        assignments_free(&given[i]);
    }
    arena_free(d.arena);
}

SUITE(NULL, NULL)
