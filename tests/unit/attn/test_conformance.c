/* test_conformance.c -- the promises of attn/run/mechanism.h, for every mechanism.
 *
 * Everything is derived from the catalogue: a new mechanism is tested here
 * without editing this file.
 */

#include "attn/run.h"
#include "attn/run/position.h"
#include "check.h"
#include "core/rng.h"
#include "core/threads.h"

typedef struct Case {
    int64_t h, n, d, e;
    bool    causal;
    uint64_t seed;
    int     threads;
    bool    no_views, plan;
    int64_t fail_at;
    const Position *position;
    int64_t bend_from; /* rows of q, k, v from here on are changed; 0: none */
} Case;

/* Owns the data that a run borrows. */
typedef struct Fixture {
    Arena      *arena;
    Assignments given;
    Threads    *threads;
    Run        *run;
} Fixture;

static Tensor draw(Arena *arena, const char *name, int64_t h, int64_t n, int64_t w, int64_t bend)
{
    Tensor t = tensor_new(arena, DT_F32, 3, (int64_t[]){ h, n, w });
    Rng    rng = rng_named(42, name);

    assert_non_null(t.data);
    rng_fill_normal(&rng, tensor_f32(&t), tensor_count(&t), 1);
    for (int64_t s = 0; bend > 0 && s < h; s++)
        for (int64_t i = bend; i < n; i++)
            for (int64_t c = 0; c < w; c++)
                tensor_f32(&t)[(s * n + i) * w + c] += 0.7f * (float)(c + 1);
    return t;
}

static void start(Fixture *f, const Mechanism *m, Case c)
{
    Error   err = ERROR_INIT;
    RunSpec spec = { .mechanism = m, .causal = c.causal, .seed = c.seed, .views = !c.no_views,
                     .fail_at = c.fail_at, .position = c.position };

    *f = (Fixture){ .arena = arena_new(), .threads = threads_new(c.threads ? c.threads : 1) };
    assert_non_null(f->arena);
    if (m->example)
        assert_true(assignments_parse(&f->given, m->example, &err));
    spec.given = &f->given;
    spec.threads = f->threads;
    spec.q = draw(f->arena, "q", c.h, c.n, c.d, c.bend_from);
    spec.k = draw(f->arena, "k", c.h, c.n, c.d, c.bend_from);
    spec.v = draw(f->arena, "v", c.h, c.n, c.e, c.bend_from);
    spec.x = draw(f->arena, "x", 1, c.n, c.h * c.d, c.bend_from);
    spec.x = tensor_with_rank(spec.x, 2);
    if (m->needs_attn)
        spec.attn = draw(f->arena, "attn", c.h, c.n, c.n, 0);
    f->run = run_new(&spec);
    assert_non_null(f->run);
    if (!c.plan)
        run_execute(f->run);
}

static void stop(Fixture *f)
{
    run_free(f->run);
    threads_free(f->threads);
    assignments_free(&f->given);
    arena_free(f->arena);
}

static const Case shapes[] = {
    { .h = 1, .n = 1, .d = 4, .e = 3 },  { .h = 2, .n = 2, .d = 1, .e = 1 },
    { .h = 3, .n = 13, .d = 5, .e = 7 }, { .h = 2, .n = 64, .d = 16, .e = 16 },
    { .h = 1, .n = 101, .d = 8, .e = 8 },
};
#define SHAPES (sizeof(shapes) / sizeof(*shapes))

typedef void (*Check)(const Mechanism *m, Case c);
/* Of a run that has been: with views, by one thread. */
typedef void (*RunCheck)(const Mechanism *m, Case c, Run *r);

/* A mechanism of pairs of heads refuses an odd number of them before it runs. */
static bool takes_heads(const Mechanism *m, Case c)
{
    Fixture f;
    bool    takes;

    if (c.h % 2 == 0)
        return true;
    c.plan = true;
    start(&f, m, c);
    takes = !strstr(f.run->err.text, "give an even number of heads");
    stop(&f);
    return takes;
}

static void for_all(Check check)
{
    for (size_t i = 0; mechanism_at(i); i++)
        for (size_t s = 0; s < SHAPES; s++)
            for (int causal = 0; causal <= mechanism_at(i)->causal; causal++) {
                Case c = shapes[s];

                c.causal = causal;
                if (takes_heads(mechanism_at(i), c))
                    check(mechanism_at(i), c);
            }
}

static void assert_ran(const Run *r)
{
    CHECK(r->err.code == ERR_NONE, "%s h=%d n=%d causal=%d: %s", r->mechanism->id, (int)r->h,
          (int)r->n, r->causal, r->err.text);
}

/* ---- the promises ----------------------------------------------------------- */

static void output_is_finite(const Mechanism *m, Case c, Run *r)
{
    assert_ran(r);
    CHECK(r->out.data && (m->own_rows || r->out.shape[1] == c.n), "%s n=%d: no output", m->id,
          (int)c.n);
    for (int64_t i = 0; i < tensor_count(&r->out); i++)
        CHECK(isfinite(tensor_f32(&r->out)[i]), "%s n=%d: output %d is not finite", m->id,
              (int)c.n, (int)i);
    CHECK(arena_check(r->arena), "%s n=%d: a guard band was overwritten", m->id, (int)c.n);
}

static void promised_views_are_there(const Mechanism *m, Case c, Run *r)
{
    for (const ViewPromise *p = m->views; p && p->name; p++) {
        const View *v = run_view(r, p->name);

        CHECK(v || p->maybe, "%s n=%d: promised view %s is missing", m->id, (int)c.n, p->name);
        if (!v)
            continue;
        /* a parameter that was drawn is shown as the tensor it is */
        CHECK(v->kind == p->kind || v->origin, "%s: view %s is %s, promised %s", m->id, p->name,
              view_kind_name(v->kind), view_kind_name(p->kind));
        CHECK(v->tensor.data || v->read || v->support, "%s: view %s has no source", m->id, p->name);
    }
    for (int i = 0; i < r->view_count; i++) {
        bool promised = !strcmp(r->views[i].name, "output"); /* every run has it */

        for (const ViewPromise *p = m->views; p && p->name; p++)
            promised = promised || !strcmp(p->name, r->views[i].name);
        for (const Param *p = m->params; p && p->name; p++)
            promised = promised || !strcmp(p->name, r->views[i].name);
        CHECK(promised || m->free_tensors, "%s shows %s without promising it", m->id,
              r->views[i].name);
    }
}

/* Tolerance of an output whose values are rounded before they are mixed. */
static double rounding_of(const Mechanism *m, const Tensor *v)
{
    double most = 0;

    for (int64_t x = 0; x < tensor_count(v); x++)
        most = fmax(most, fabs((double)tensor_f32(v)[x]));
    return m->values_error * most;
}

/* output = weights @ V, in double.  2e-5: both sides are float32 sums of up to 101 products, taken
 * in different orders, so each may carry half of the 1e-5 asked of one of them. */
static void weights_times_values_is_the_output(const Mechanism *m, Case c, Run *r)
{
    const View  *w;
    const float *v;
    float       *row = calloc((size_t)c.n, sizeof(*row));
    double       rounding;

    v = m->values ? tensor_f32(&run_view(r, m->values)->tensor) : tensor_f32(&r->v);
    rounding = rounding_of(m, &r->v);
    w = run_view(r, "weights");
    if (w && view_cols(w) != c.n)
        w = NULL; /* over tokens of the mechanism's own too: its own test knows their values */
    if (m->needs_x)
        w = NULL; /* they weigh x, or what the mechanism makes of it: its own test knows */
    if (run_view(r, "output_raw"))
        w = NULL; /* a norm follows: its own test knows */
    for (int64_t h = 0; w && h < c.h; h++)
        for (int64_t i = 0; i < view_rows(w); i++) {
            view_read(w, view_shared(w) ? 0 : h, i, 0, c.n, 1, row);
            for (int64_t t = 0; t < c.e; t++) {
                double sum = 0;

                for (int64_t j = 0; j < c.n; j++)
                    sum += (double)row[j] * (double)v[(h * c.n + j) * c.e + t];
                CHECK_NEAR((double)tensor_f32(&r->out)[(h * view_rows(w) + i) * c.e + t], sum,
                           2e-5 + rounding);
            }
        }
    free(row);
}

static void no_connection_no_weight(const Mechanism *m, Case c, Run *r)
{
    const View *w, *a;
    float      *row = calloc((size_t)c.n, sizeof(*row)), *in = calloc((size_t)c.n, sizeof(*in));

    w = run_view(r, "weights");
    a = run_view(r, "connectivity");
    for (int64_t h = 0; w && a && h < r->h; h++)
        for (int64_t i = 0; i < view_rows(w); i++) {
            view_read(w, view_shared(w) ? 0 : h, i, 0, c.n, 1, row);
            view_read(a, view_shared(a) ? 0 : h, i, 0, c.n, 1, in);
            for (int64_t j = 0; j < c.n; j++) {
                CHECK(in[j] > 0 || fabsf(row[j]) <= 0, "%s: (%d,%d) is not connected but weighs %g",
                      m->id, (int)i, (int)j, (double)row[j]);
                CHECK(!c.causal || j <= i + c.n - view_rows(w) || in[j] <= 0 || r->keys_ahead,
                      "%s: causal, yet (%d,%d) is connected", m->id, (int)i, (int)j);
            }
        }
    free(row);
    free(in);
}

static void assert_same_output(const Run *a, const Run *b, int64_t rows, const char *what)
{
    int64_t n = a->out.shape[1], e = a->out.shape[2];

    rows = rows < n ? rows : n; /* latents: a number of rows of their own */
    for (int64_t h = 0; h < a->out.shape[0]; h++)
        CHECK(!memcmp(tensor_f32(&a->out) + h * n * e, tensor_f32(&b->out) + h * n * e,
                      (size_t)(rows * e) * sizeof(float)),
              "%s n=%d causal=%d head %d: %s", a->mechanism->id, (int)n, a->causal, (int)h, what);
}

static void same_seed_same_bits(const Mechanism *m, Case c, Run *r)
{
    Fixture again;

    start(&again, m, c);
    assert_same_output(r, again.run, c.n, "the same seed gave other bits");
    stop(&again);
    c.threads = 3;
    start(&again, m, c);
    assert_same_output(r, again.run, c.n, "three threads gave other bits than one");
    stop(&again);
    c.no_views = true;
    start(&again, m, c);
    assert_same_output(r, again.run, c.n, "without views the output has other bits");
    assert_int_equal(again.run->view_count, 0);
    stop(&again);
}

static void counted_flops_are_the_closed_form(const Mechanism *m, Case c, Run *r)
{
    Flops counted = run_flops(r), closed;
    bool  bound;

    CHECK(m->flops, "%s has no closed form", m->id);
    assert_true(run_closed_form(r, &closed, &bound));
    CHECK(bound ? flops_total(counted) <= flops_total(closed) * (1 + 1e-12)
                : fabs(flops_total(counted) - flops_total(closed)) <= 1e-9 * flops_total(closed),
          "%s h=%d n=%d causal=%d: counted %.17g (%g %g %g), closed form %.17g (%g %g %g)", m->id,
          (int)c.h, (int)c.n, c.causal, flops_total(counted), counted.score, counted.mix,
          counted.overhead, flops_total(closed), closed.score, closed.mix, closed.overhead);
}

/* What the parameter editor shows before anything is run.  Where the work is that of a
 * mechanism inside, or of the file's weights, only a run can tell it all. */
static void the_closed_form_needs_no_run(const Mechanism *m, Case c, Run *r)
{
    Fixture plan;
    Flops   closed, planned;
    bool    bound, known;

    c.plan = true;
    start(&plan, m, c);
    known = run_closed_form(r, &closed, &bound) && run_closed_form(plan.run, &planned, &bound);
    CHECK(known, "%s: no closed form without a run: %s", m->id, plan.run->err.text);
    CHECK(m->inner || m->needs_attn ||
              fabs(flops_total(closed) - flops_total(planned)) <= 1e-9 * flops_total(closed),
          "%s h=%d n=%d causal=%d: closed form %.17g, without a run %.17g", m->id, (int)c.h,
          (int)c.n, c.causal, flops_total(closed), flops_total(planned));
    CHECK(!plan.run->out.data && !plan.run->stage_count, "%s ran in a plan", m->id);
    stop(&plan);
}

/* All of one run, which is most of the time. */
static void check_run(const Mechanism *m, Case c)
{
    static const RunCheck checks[] = {
        output_is_finite,        promised_views_are_there, weights_times_values_is_the_output,
        no_connection_no_weight, same_seed_same_bits,      counted_flops_are_the_closed_form,
        the_closed_form_needs_no_run,
    };
    Fixture f;

    start(&f, m, c);
    for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++)
        checks[i](m, c, f.run);
    stop(&f);
}

TEST(every_run_keeps_its_promises)
{
    for_all(check_run);
}

static void check_flops(const Mechanism *m, Case c)
{
    Fixture f;

    start(&f, m, c);
    assert_ran(f.run);
    counted_flops_are_the_closed_form(m, c, f.run);
    stop(&f);
}

/* At real lengths too: formulas that hold for 13 tokens may not for 4096.  Sanitizers, under which
 * the longest takes minutes, find no other work there. */
static void check_large_flops(const Mechanism *m, Case c)
{
#ifdef __SANITIZE_ADDRESS__
    static const int64_t lengths[] = { 257, 1024 };
#else
    static const int64_t lengths[] = { 257, 1024, 4096 };
#endif

    if (c.n != shapes[0].n)
        return; /* once for each order, not for every small shape */
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
        check_flops(m, (Case){ .h = 2, .n = lengths[i], .d = 4, .e = 4, .causal = c.causal,
                               .no_views = true, .threads = 2 });
}

TEST(counted_flops_are_the_closed_form_at_real_lengths)
{
    for_all(check_large_flops);
}

/* ---- causal rows ------------------------------------------------------------ */

/* Where a decision or a scale is of the whole sequence, later tokens change earlier rows. */
static const char *const of_the_whole[][2] = {
    { "routing", "centroids" },           { "clustered-improved", "clusters" },
    { "mla", "latents that fit the keys" }, { "performer", "the keys' common maximum" },
    { "vertical-slash", "the last queries' choice" },
    { "gshard", "first choices go before second ones" },
    { "glam", "first choices go before second ones" },
    { "st-moe", "the most certain tokens go first" },
    { "quantization", "one step for the whole tensor" },
};
#define OF_THE_WHOLE (sizeof(of_the_whole) / sizeof(*of_the_whole))

/* Entries of rows before `first` that differ by more than 1e-5: sums over other numbers of keys may
 * be cut otherwise. */
static int64_t rows_changed(const Run *a, const Run *b, int64_t first)
{
    int64_t rows = a->out.shape[1], e = a->out.shape[2], changed = 0;

    for (int64_t h = 0; h < a->out.shape[0]; h++)
        for (int64_t x = h * rows * e; x < (h * rows + first) * e; x++)
            changed += !(fabs((double)tensor_f32(&a->out)[x] -
                              (double)tensor_f32(&b->out)[x]) <= 1e-5);
    return changed;
}

static int64_t looks_ahead(const Mechanism *m, Case c)
{
    Fixture f, bent;
    int64_t changed = 0;

    start(&f, m, c);
    c.bend_from = c.n / 2 + 1;
    start(&bent, m, c);
    assert_ran(f.run);
    assert_ran(bent.run);
    if (f.run->out.shape[1] == c.n && !f.run->keys_ahead)
        changed = rows_changed(f.run, bent.run, c.bend_from);
    CHECK(!changed || strstr(text_str(&f.run->warnings), "can change earlier outputs"),
          "%s n=%d knows of later tokens and does not say so", m->id, (int)c.n);
    stop(&bent);
    stop(&f);
    return changed;
}

static void check_no_look_ahead(const Mechanism *m, Case c)
{
    bool whole = false;

    for (size_t i = 0; i < OF_THE_WHOLE; i++)
        whole = whole || !strcmp(of_the_whole[i][0], m->id);
    if (c.causal && c.n >= 13 && !whole)
        CHECK(!looks_ahead(m, c), "%s n=%d: rows before %d know of later tokens", m->id,
              (int)c.n, (int)c.n / 2 + 1);
}

TEST(causal_rows_do_not_look_ahead)
{
    for_all(check_no_look_ahead);
    for (size_t i = 0; i < OF_THE_WHOLE; i++) {
        Case c = shapes[3];

        c.causal = true;
        CHECK(looks_ahead(mechanism_find(of_the_whole[i][0]), c), "%s is listed for %s, and does "
              "not look ahead", of_the_whole[i][0], of_the_whole[i][1]);
    }
}

/* The k-th allocation fails, for every k until the run succeeds. */
static void check_allocations(const Mechanism *m, Case c)
{
    bool done = c.n > 13; /* small shapes take the same path */

    for (c.fail_at = 1; !done; c.fail_at++) {
        Fixture f;

        start(&f, m, c);
        done = f.run->err.code == ERR_NONE;
        CHECK(done || f.run->err.code == ERR_NOMEM, "%s n=%d, allocation %d: %s", m->id, (int)c.n,
              (int)c.fail_at, f.run->err.text);
        stop(&f);
    }
}

TEST(every_failed_allocation_is_an_ordinary_error)
{
    for_all(check_allocations);
}

TEST(a_cancelled_run_says_so)
{
    for (size_t i = 0; mechanism_at(i); i++) {
        Fixture     f;
        atomic_bool cancel = true;
        RunSpec     spec;

        start(&f, mechanism_at(i), shapes[3]);
        spec = f.run->spec;
        spec.cancel = &cancel;
        run_free(f.run);
        f.run = run_new(&spec);
        run_execute(f.run);
        CHECK(f.run->err.code == ERR_CANCELLED, "%s: %s", mechanism_at(i)->id, f.run->err.text);
        f.run->spec.cancel = NULL;
        stop(&f);
    }
}

TEST(causal_where_there_is_none_is_an_error)
{
    for (size_t i = 0; mechanism_at(i); i++) {
        Fixture f;
        Case    c = shapes[3];

        if (mechanism_at(i)->causal)
            continue;
        c.causal = true;
        start(&f, mechanism_at(i), c);
        assert_int_equal(f.run->err.code, ERR_USAGE);
        stop(&f);
    }
}

TEST(positions_run_or_are_refused_by_name)
{
    for (size_t i = 0; mechanism_at(i); i++)
        for (size_t p = 0; position_at(p); p++) {
            const Mechanism *m = mechanism_at(i);
            Fixture f;
            Case    c = shapes[2];

            c.h = takes_heads(m, c) ? c.h : 2;
            c.position = position_at(p);
            start(&f, m, c);
            if (position_fits(c.position, m->positions))
                assert_ran(f.run);
            else
                CHECK(f.run->err.code == ERR_USAGE && strstr(f.run->err.text, m->id),
                      "%s with %s: %s", m->id, c.position->id, f.run->err.text);
            stop(&f);
        }
}

TEST(every_card_is_filled_in)
{
    for (size_t i = 0; mechanism_at(i); i++) {
        const Mechanism *m = mechanism_at(i);

        CHECK(m->id && m->title && m->authors && m->source && m->formula && m->teaches &&
                  m->problem && m->idea && m->price,
              "mechanism %d: a text is missing", (int)i);
        CHECK(m->classes && m->claim_time && m->claim_memory && m->claim_decode && m->views,
              "%s: a claim is missing", m->id);
        for (const Param *p = m->params; p && p->name; p++)
            CHECK(p->help && (p->type != PARAM_TYPE_TENSOR || (p->shape && p->drawn)),
                  "%s: parameter %s is not described", m->id, p->name);
    }
}

SUITE(NULL, NULL)
