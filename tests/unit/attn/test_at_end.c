/* test_at_end.c -- few queries at the end of longer keys: they are the last rows of the causal run
 * of all positions, for every mechanism that takes them. */
#include "attn/run.h"
#include "attn/run/position.h"
#include "check.h"
#include "core/rng.h"
#include "core/threads.h"

#define D 5
#define E 3

typedef struct Sizes {
    int64_t m, n, h, shared; /* keys, queries, their heads, heads of k and v */
} Sizes;

static const Sizes sizes[] = {
    { 2, 1, 1, 1 },  { 12, 11, 2, 1 },  { 36, 12, 4, 2 },
    { 36, 1, 2, 2 }, { 49, 20, 4, 1 }, { 101, 40, 2, 1 },
};
#define SIZES (sizeof(sizes) / sizeof(*sizes))

static Tensor normal(Arena *arena, const char *name, int64_t h, int64_t n, int64_t w)
{
    Tensor t = tensor_new(arena, DT_F32, 3, (int64_t[]){ h, n, w });
    Rng    rng = rng_named(11, name);

    assert_non_null(t.data);
    rng_fill_normal(&rng, t.data, tensor_count(&t), 1);
    return t;
}

/* [h,n,w]: the last n rows of each head of [h,m,w]. */
static Tensor last_rows(Arena *arena, Tensor all, int64_t n)
{
    int64_t h = all.shape[0], m = all.shape[1], w = all.shape[2];
    Tensor  t = tensor_new(arena, DT_F32, 3, (int64_t[]){ h, n, w });

    assert_non_null(t.data);
    for (int64_t s = 0; s < h; s++)
        memcpy(tensor_f32(&t) + s * n * w, tensor_f32(&all) + (s * m + m - n) * w,
               (size_t)(n * w) * sizeof(float));
    return t;
}

typedef struct Fixture {
    Arena      *arena;
    Threads    *threads;
    Assignments given[2]; /* of each run: a list that was read belongs to its last one */
    RunSpec     spec; /* of all positions */
    Tensor      few;  /* queries */
    Run        *all, *end;
} Fixture;

static void start(Fixture *f, const Mechanism *m, const char *params, Sizes s)
{
    Error err = ERROR_INIT;

    *f = (Fixture){ .arena = arena_new(), .threads = threads_new(2) };
    assert_non_null(f->arena);
    for (int x = 0; x < 2 && params && *params; x++)
        assert_true(assignments_parse(&f->given[x], params, &err));
    f->spec = (RunSpec){ .mechanism = m, .causal = true, .views = true, .given = &f->given[0],
                         .threads = f->threads, .seed = 5 };
    f->spec.q = normal(f->arena, "q", s.h, s.m, D);
    f->spec.k = normal(f->arena, "k", s.shared, s.m, D);
    f->spec.v = normal(f->arena, "v", s.shared, s.m, E);
    f->few = last_rows(f->arena, f->spec.q, s.n);
}

static void run_both(Fixture *f)
{
    RunSpec end = f->spec;

    end.q = f->few;
    end.given = &f->given[1];
    f->all = run_new(&f->spec);
    f->end = run_new(&end);
    assert_true(f->all && f->end);
    run_execute(f->all);
    run_execute(f->end);
}

static void stop(Fixture *f)
{
    run_free(f->all);
    run_free(f->end);
    threads_free(f->threads);
    assignments_free(&f->given[0]);
    assignments_free(&f->given[1]);
    arena_free(f->arena);
}

static void check_output(const Fixture *f, const char *id, Sizes s)
{
    CHECK(f->end->out.shape[0] == s.h && f->end->out.shape[1] == s.n, "%s: %d rows, not %d", id,
          (int)f->end->out.shape[1], (int)s.n);
    for (int64_t x = 0; x < s.h * s.n * E; x++) {
        int64_t head = x / (s.n * E), at = (head * s.m + s.m - s.n) * E + x % (s.n * E);
        double  own = (double)tensor_f32(&f->end->out)[x];
        double  want = (double)tensor_f32(&f->all->out)[at];

        CHECK(fabs(own - want) <= 1e-5 * fmax(1, fabs(want)),
              "%s m=%d n=%d: head %d row %d is %.9g, of all positions %.9g", id, (int)s.m,
              (int)s.n, (int)head, (int)(x % (s.n * E) / E), own, want);
    }
}

/* Cells of the last rows have one plane where the heads agree there, if not in the rows before. */
static bool planes_fit(const View *end, const View *all)
{
    bool cells = all->kind == VIEW_PATTERN || all->kind == VIEW_COMPONENTS;

    return view_planes(end) == view_planes(all) || (cells && view_planes(end) == 1);
}

/* A view with a row for each query. */
static void check_view(const Fixture *f, const char *id, Sizes s, const char *name)
{
    const View *end = run_view(f->end, name), *all = run_view(f->all, name);
    float       own[128], want[128];

    CHECK(!end == !all, "%s: %s in one run alone", id, name);
    if (!end || view_rows(all) != s.m)
        return;
    CHECK(view_rows(end) == s.n && view_cols(end) == view_cols(all) && planes_fit(end, all),
          "%s m=%d n=%d: %s is %dx%dx%d", id, (int)s.m, (int)s.n, name, (int)view_planes(end),
          (int)view_rows(end), (int)view_cols(end));
    assert_true(view_cols(all) <= 128);
    for (int64_t x = 0; x < view_planes(all) * s.n; x++) {
        view_read(end, x / s.n % view_planes(end), x % s.n, 0, view_cols(end), 1, own);
        view_read(all, x / s.n, s.m - s.n + x % s.n, 0, view_cols(all), 1, want);
        for (int64_t j = 0; j < view_cols(all); j++)
            CHECK(fabsf(own[j] - want[j]) <= 1e-5f,
                  "%s m=%d n=%d: %s plane %d row %d column %d is %g, of all positions %g", id,
                  (int)s.m, (int)s.n, name, (int)(x / s.n), (int)(x % s.n), (int)j,
                  (double)own[j], (double)want[j]);
    }
}

static void check_flops(const Fixture *f, const char *id, Sizes s)
{
    double counted = flops_total(run_flops(f->end));
    Flops  closed;
    bool   bound;

    assert_true(run_closed_form(f->end, &closed, &bound));
    CHECK(bound ? counted <= flops_total(closed) * (1 + 1e-12)
                : fabs(counted - flops_total(closed)) <= 1e-9 * flops_total(closed),
          "%s m=%d n=%d: counted %.17g, closed form %.17g", id, (int)s.m, (int)s.n, counted,
          flops_total(closed));
}

/* Sizes or positions that the mechanism takes in no run. */
static bool is_never_taken(const Run *all)
{
    return strstr(all->err.text, "give an even number of heads") ||
           strstr(all->err.text, "cannot move with the cache");
}

static void check(const char *id, const char *params, Sizes s, const Position *position)
{
    static const char *const names[] = { "connectivity", "components", "weights", "position_bias",
                                         "selected", "cache", "neighbours", "gates",
                                         "connectivity_cmp", "weights_cmp", "weights_slc", "mask" };
    Fixture f;

    start(&f, mechanism_find(id), params, s);
    f.spec.position = position;
    run_both(&f);
    if (is_never_taken(f.all)) {
        stop(&f);
        return;
    }
    CHECK(f.all->err.code == ERR_NONE, "%s(%s) m=%d: %s", id, params ? params : "", (int)s.m,
          f.all->err.text);
    CHECK(f.end->err.code == ERR_NONE, "%s(%s) m=%d n=%d: %s", id, params ? params : "", (int)s.m,
          (int)s.n, f.end->err.text);
    check_output(&f, id, s);
    for (size_t x = 0; x < sizeof(names) / sizeof(*names); x++)
        check_view(&f, id, s, names[x]);
    check_flops(&f, id, s);
    stop(&f);
}

/* ---- which mechanisms ---------------------------------------------------------- */

/* Parameters beside the defaults; "m" stands for the length. */
static const struct {
    const char *id, *params;
} more[] = {
    { "window", "window=1" }, { "window", "window=400" },
    { "dilated", "dilation=3,window=9" }, { "cascade", "base_window=2,cardinal=2,layer=2" },
    { "block-local", "block=5,back=1" }, { "blockbert", "blocks=1" }, { "blockbert", "blocks=2" },
    { "image-local-1d", "query_block=3,memory=4" },
    { "image-local-2d", "order=raster" }, { "image-local-2d", "order=blocks,both=true" },
    { "logsparse", "local=2,restart=8,first=2" },
    { "logsparse", "restart=7,restart_mode=blocks" },
    { "sparse-strided", "heads=split" }, { "sparse-strided", "local_kind=block" },
    { "sparse-fixed", "heads=split" }, { "sparse-fixed", "heads=summary" },
    { "star", "ring=true" }, { "star", "ring=true,window=5" },
    { "axial", "combine=union" }, { "axial", "combine=heads" }, { "axial", "axis=col" },
    { "axial", "axis=row" }, { "longformer", "global=[-1]" }, { "longformer", "global=[0,-2]" },
    { "bigbird", "block=4,repeats=count" }, { "bigbird", "block=3,global_position=ends" },
    { "natten", "kernel=1" }, { "natten", "kernel=2,stride=2" },
    { "random", "self=true" }, { "pattern", "expr='window(3)+global(1)+random(2)'" },
    { "pattern", "expr='stride(3)-window(3)'" },
    { "moba", "block=3,topk=2" }, { "moba", "block=8,topk=1" },
    { "nsa", "cmp_block=4,cmp_stride=2,sel_block=4,topk=3,window=5" },
    { "nsa", "compress=linear" }, { "nsa", "first=0,last=1" },
    { "mla", "rank=2" }, { "mla", "form=plain" },
    { "adaptive-span", "z=3,ramp=2" }, { "adaptive-span", "offset=1,ramp=7.5" },
    { "adaptive-span", "z=5,ramp=4,max_span=6,include_self=false" },
    { "quest", "page=4,budget=12" }, { "topk", "k=3" }, { "dsa", "topk=4" },
};
#define MORE (sizeof(more) / sizeof(*more))

static bool takes(const Mechanism *m)
{
    return m->causal && m->at_end;
}

/* These need the queries that vote, or both passes: tests of their own below. */
static bool is_apart(const char *id)
{
    return !strcmp(id, "axial") || !strcmp(id, "snapkv") || !strcmp(id, "vertical-slash");
}

TEST(every_mechanism_gives_the_last_rows)
{
    for (size_t i = 0; mechanism_at(i); i++)
        for (size_t s = 0; s < SIZES && takes(mechanism_at(i)); s++)
            if (!is_apart(mechanism_at(i)->id))
                check(mechanism_at(i)->id, mechanism_at(i)->example, sizes[s], NULL);
}

TEST(so_with_other_parameters)
{
    for (size_t x = 0; x < MORE; x++)
        for (size_t s = 1; s < SIZES; s++)
            check(more[x].id, more[x].params, sizes[s], NULL);
}

static const Position *position(const char *id)
{
    Error           err = ERROR_INIT;
    const Position *p;

    assert_true(position_parse(id, &p, &err));
    return p;
}

TEST(positions_are_those_among_the_keys)
{
    static const char *const ids[] = { "rope", "alibi", "sinusoidal", "t5" };

    for (size_t i = 0; mechanism_at(i); i++)
        for (int p = 0; p < 4; p++) {
            const Mechanism *m = mechanism_at(i);

            if (takes(m) && !is_apart(m->id) && position_fits(position(ids[p]), m->positions))
                check(m->id, m->example, sizes[4], position(ids[p]));
        }
}

/* ---- a choice made by rows before the queries ------------------------------------ */

TEST(a_choice_by_the_last_rows_needs_these)
{
    static const char *const ways[] = { "", "pool=max,per=head,keep=3", "observation=8,keep=2",
                                        "prompt=40" };

    for (int x = 0; x < 4; x++) {
        check("snapkv", ways[x], sizes[4], x ? NULL : position("alibi"));
        check("snapkv", ways[x], (Sizes){ 52, 39, 4, 2 }, position("rope"));
        check("vertical-slash", x ? "last_q=3,vertical=5" : "", sizes[4], position("rope"));
        check("vertical-slash", x ? "last_q=9,slash=6" : "last_q=1", sizes[1], position("alibi"));
    }
    check("vertical-slash", "last_q=1", sizes[0], NULL);
    check("vertical-slash", "last_q=1,keep_recent=3", sizes[3], NULL);
}

static void refused(const char *id, const char *params, Sizes s, bool causal, const char *why)
{
    Fixture f;

    start(&f, mechanism_find(id), params, s);
    f.spec.causal = causal;
    run_both(&f);
    CHECK(f.all->err.code == ERR_NONE, "%s: %s", id, f.all->err.text);
    CHECK(strstr(f.end->err.text, why), "%s: '%s' does not say '%s'", id, f.end->err.text, why);
    stop(&f);
}

TEST(what_is_refused_is_told_why)
{
    refused("window", "", sizes[2], false, "with --causal the queries are the last 12 of 36");
    refused("moba", "", sizes[2], false, "with --causal the queries are the last 12 of 36");
    refused("axial", "", sizes[2], true, "needs the query of every position");
    refused("snapkv", "", sizes[3], true, "give at least 13 queries");
    refused("h2o", "", sizes[2], true, "every earlier query");
    refused("gla", "", sizes[2], true, "a query for each");
}

TEST(few_voters_are_told)
{
    Fixture f;

    start(&f, mechanism_find("vertical-slash"), "", sizes[3]);
    run_both(&f);
    assert_int_equal(f.end->err.code, ERR_NONE);
    assert_non_null(strstr(text_str(&f.end->warnings), "the last 1 queries only"));
    assert_null(strstr(text_str(&f.all->warnings), "queries only"));
    check_flops(&f, "vertical-slash", sizes[3]);
    stop(&f);
}

/* One query reads keys where they lie, in slices; two queries read packed ones. */
static void check_one_query(const char *id, const char *position)
{
    enum { KEYS = 20011, HEADS = 4, SHARED = 2 };
    Arena  *arena = arena_new();
    RunSpec spec = { .mechanism = mechanism_find(id), .causal = true, .seed = 5,
                     .position = position ? position_find(position) : NULL };
    Tensor  two = normal(arena, "q", HEADS, 2, D);
    Run    *run[3];

    spec.k = normal(arena, "k", SHARED, KEYS, D);
    spec.v = normal(arena, "v", SHARED, KEYS, E);
    for (int x = 0; x < 3; x++) {
        spec.q = x ? last_rows(arena, two, 1) : two;
        spec.threads = threads_new(x == 2 ? 2 : 1);
        run[x] = run_new(&spec);
        assert_non_null(run[x]);
        run_execute(run[x]);
        CHECK(run[x]->err.code == ERR_NONE, "%s: %s", id, run[x]->err.text);
        threads_free(spec.threads);
    }
    for (int64_t x = 0; x < HEADS * E; x++) {
        double own = (double)tensor_f32(&run[1]->out)[x];
        double want = (double)tensor_f32(&run[0]->out)[x / E * 2 * E + E + x % E];

        CHECK(fabs(own - want) <= 1e-5 * fmax(1, fabs(want)),
              "%s, %s: head %d is %.9g alone, %.9g after another", id,
              position ? position : "no position", (int)(x / E), own, want);
    }
    assert_memory_equal(run[1]->out.data, run[2]->out.data, HEADS * E * sizeof(float));
    for (int x = 0; x < 3; x++)
        run_free(run[x]);
    arena_free(arena);
}

TEST(one_query_over_many_keys_is_the_last_of_two)
{
    static const char *const ids[] = { "full", "sigmoid", "differential" };

    for (size_t x = 0; x < sizeof(ids) / sizeof(*ids); x++) {
        check_one_query(ids[x], NULL);
        check_one_query(ids[x], "alibi");
        check_one_query(ids[x], "shaw");
    }
}

SUITE(NULL, NULL)
