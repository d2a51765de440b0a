/* test_mech_routing.c -- mechanisms that read x: experts, product keys, sparse
 * feed-forward and factored projections against what they must equal. */

#include "attn/run.h"
#include "check.h"
#include "core/rng.h"
#include "core/threads.h"

#define DM 8

typedef struct Fixture {
    int64_t     n;
    Arena      *arena;
    Tensor      x, q; /* q: of another length, to be passed over; absent unless set */
    Assignments given;
    Run        *run;
    bool        causal, no_views;
    int64_t     fail_at;
    int         threads;
} Fixture;

static Tensor normal(Fixture *f, const char *name, int rank, const int64_t *shape)
{
    Rng    rng = rng_named(5, name);
    Tensor t = tensor_new(f->arena, DT_F32, rank, shape);

    assert_non_null(t.data);
    rng_fill_normal(&rng, t.data, tensor_count(&t), 1);
    return t;
}

static Fixture fixture_new(int64_t n)
{
    Fixture f = { .n = n, .arena = arena_new() };

    assert_non_null(f.arena);
    f.x = normal(&f, "x", 2, (int64_t[]){ n, DM });
    return f;
}

static void give(Fixture *f, const char *name, Tensor t)
{
    Error err = ERROR_INIT;

    assert_true(assignments_set_tensor(&f->given, name, t, "@test", &err));
}

/* Runs `id` with parameters "a=1,b=2" on top of the given tensors. */
static Run *try_run(Fixture *f, const char *id, const char *params)
{
    Error    err = ERROR_INIT;
    Threads *threads = threads_new(f->threads ? f->threads : 1);
    RunSpec  spec = { .mechanism = mechanism_find(id), .x = f->x, .q = f->q, .causal = f->causal,
                      .given = &f->given, .seed = 7, .views = !f->no_views,
                      .fail_at = f->fail_at, .threads = threads };

    run_free(f->run);
    assert_non_null(spec.mechanism);
    assert_true(!*params || assignments_parse(&f->given, params, &err));
    f->run = run_new(&spec);
    run_execute(f->run);
    assert_non_null(f->run);
    assert_true(arena_check(f->run->arena));
    threads_free(threads);
    f->run->threads = f->run->spec.threads = NULL;
    return f->run;
}

static Run *good_run(Fixture *f, const char *id, const char *params)
{
    Run *r = try_run(f, id, params);

    CHECK(r->err.code == ERR_NONE, "%s(%s): %s", id, params, r->err.text);
    return r;
}

static void fixture_free(Fixture *f)
{
    run_free(f->run);
    assignments_free(&f->given);
    arena_free(f->arena);
}

static Tensor view_of(Fixture *f, const char *name)
{
    const View *view = run_view(f->run, name);
    Error       err = ERROR_INIT;
    Tensor      t = { .rank = 0 };

    CHECK(view, "%s shows no %s", f->run->mechanism->id, name);
    CHECK(view_materialise(view, f->arena, 0, &t, &err), "%s", err.text);
    return t;
}

static double figure_of(const Run *r, const char *name)
{
    for (int i = 0; i < r->figure_count; i++)
        if (!strcmp(r->figures[i].name, name))
            return r->figures[i].value;
    fail_msg("%s has no figure %s", r->mechanism->id, name);
    return 0;
}

static void check_flops(Run *r)
{
    Flops counted = run_flops(r), closed;
    bool  bound;

    assert_true(run_closed_form(r, &closed, &bound));
    CHECK(bound ? flops_total(counted) <= flops_total(closed) * (1 + 1e-12)
                : fabs(flops_total(counted) - flops_total(closed)) <= 1e-9 * flops_total(closed),
          "%s: counted %.17g, closed form %.17g", r->mechanism->id, flops_total(counted),
          flops_total(closed));
}

/* ---- experts ---------------------------------------------------------------- */

static const char *const layers[] = { "switch", "gshard", "glam", "st-moe" };
static const char *const settings[] = {
    "", "capacity=1", "capacity_factor=0.5,group_size=5", "batch_prioritized=true,capacity=2",
    "n_experts=1", "n_experts=3,min_capacity=4", "capacity_factor=0.01,min_capacity=0",
};
#define LAYERS 4
#define SETTINGS (sizeof(settings) / sizeof(*settings))

static void check_slots(Fixture *f)
{
    Tensor  asked = view_of(f, "assignment"), slot = view_of(f, "position");
    Tensor  lost = view_of(f, "dropped_choices"), room = view_of(f, "capacity");
    int64_t k = asked.shape[1], e = room.shape[1], groups = room.shape[0];
    int64_t group = (f->n + groups - 1) / groups, found = 0, expected = 0;

    for (int64_t x = 0; x < f->n * k; x++) {
        int32_t        a = tensor_i32(&asked)[x], s = tensor_i32(&slot)[x];
        const int32_t *pair = tensor_i32(&room) + (x / k / group * e + (a < 0 ? 0 : a)) * 2;

        assert_true(a >= -1 && a < e && (k == 1 || x % 2 == 0 ? a >= 0 : true));
        assert_int_equal(tensor_u8(&lost)[x], a >= 0 && s < 0);
        assert_true(s < 0 || (a >= 0 && s < pair[0]));
        found += s >= 0;
        for (int64_t y = 0; y < x && s >= 0; y++)
            assert_false(tensor_i32(&asked)[y] == a && tensor_i32(&slot)[y] == s &&
                         y / k / group == x / k / group);
    }
    for (int64_t c = 0; c < groups * e; c++) {
        assert_true(tensor_i32(&room)[2 * c] <= tensor_i32(&room)[2 * c + 1]);
        expected += tensor_i32(&room)[2 * c];
    }
    assert_int_equal(found, expected);
    assert_int_equal(found, (int64_t)figure_of(f->run, "placed"));
}

static void check_routing(Fixture *f)
{
    Tensor routing = view_of(f, "routing"), dropped = view_of(f, "dropped");

    for (int64_t i = 0; i < f->n; i++) {
        float  sum = 0;
        double out = 0;

        for (int64_t e = 0; e < routing.shape[1]; e++)
            sum += tensor_f32(&routing)[i * routing.shape[1] + e];
        for (int64_t c = 0; c < DM; c++)
            out += fabs((double)tensor_f32(&f->run->out)[i * DM + c]);
        assert_true(sum >= 0 && sum <= 1 + 1e-6f);
        CHECK(!tensor_u8(&dropped)[i] || (sum <= 0 && out <= 0), "token %d is dropped, yet %g %g",
              (int)i, (double)sum, out);
    }
}

TEST(every_slot_has_one_token_and_none_is_beyond_the_room)
{
    for (size_t t = 0; t < LAYERS * SETTINGS * 3; t++) {
        Fixture f = fixture_new((int64_t[]){ 1, 2, 23 }[t % 3]);

        good_run(&f, layers[t / 3 % LAYERS], settings[t / 3 / LAYERS]);
        check_slots(&f);
        check_routing(&f);
        check_flops(f.run);
        fixture_free(&f);
    }
}

/* All tokens are the same token: the first choice fills up in their order. */
TEST(a_full_expert_drops_the_later_tokens)
{
    Fixture f = fixture_new(9);
    Tensor  dropped;

    for (int64_t i = 1; i < f.n; i++)
        memcpy(tensor_f32(&f.x) + i * DM, f.x.data, DM * sizeof(float));
    good_run(&f, "switch", "capacity=4");
    dropped = view_of(&f, "dropped");
    for (int64_t i = 0; i < f.n; i++)
        assert_int_equal(tensor_u8(&dropped)[i], i >= 4);
    fixture_free(&f);
}

TEST(equal_logits_go_to_the_lowest_experts)
{
    Fixture f = fixture_new(5);
    Tensor  asked;

    memset(f.x.data, 0, (size_t)tensor_bytes(&f.x));
    good_run(&f, "glam", "");
    asked = view_of(&f, "assignment");
    for (int64_t x = 0; x < 10; x++)
        assert_int_equal(tensor_i32(&asked)[x], x % 2);
    fixture_free(&f);
}

/* First choices are served before any second one, in any order of tokens. */
TEST(first_choices_come_before_second_ones)
{
    Fixture f = fixture_new(2);
    Tensor  w = tensor_new(f.arena, DT_F32, 2, (int64_t[]){ DM, 2 }), slot;
    float  *x = tensor_f32(&f.x);

    memset(x, 0, (size_t)tensor_bytes(&f.x));
    memset(w.data, 0, (size_t)tensor_bytes(&w));
    tensor_f32(&w)[0] = 1; /* expert 0 likes positive x_0, expert 1 negative */
    tensor_f32(&w)[1] = -1;
    x[0] = 1;
    x[DM] = -1;
    give(&f, "router_w", w);
    good_run(&f, "glam", "capacity=1");
    slot = view_of(&f, "position");
    assert_int_equal(tensor_i32(&slot)[0], 0);
    assert_int_equal(tensor_i32(&slot)[1], -1); /* expert 1 belongs to the token after it */
    assert_int_equal(tensor_i32(&slot)[2], 0);
    assert_int_equal(tensor_i32(&slot)[3], -1);
    fixture_free(&f);
}

TEST(marks_and_loads_tell_what_was_dropped)
{
    Fixture     f = fixture_new(23);
    const View *routing;
    int64_t     used = 0, over = 0;

    good_run(&f, "gshard", "capacity_factor=0.5,group_size=8");
    routing = run_view(f.run, "routing");
    assert_non_null(routing->marks);
    assert_non_null(routing->load);
    for (int64_t e = 0; e < 8; e++) {
        used += tensor_i32(&routing->load->used)[e];
        over += tensor_i32(&routing->load->over)[e];
        assert_true(tensor_i32(&routing->load->used)[e] <= routing->load->limit);
    }
    assert_int_equal(used, (int64_t)figure_of(f.run, "placed"));
    assert_int_equal(over, (int64_t)figure_of(f.run, "dropped_choices"));
    assert_int_equal(over, pattern_count(routing->marks->cells));
    assert_int_equal(used + over, pattern_count(routing->support));
    assert_true(over > 0);
    fixture_free(&f);
}

/* With one expert that always has room the layer is a plain feed-forward one. */
TEST(one_roomy_expert_is_a_dense_layer)
{
    Fixture f = fixture_new(13);
    Tensor  w1 = normal(&f, "w1", 3, (int64_t[]){ 1, DM, 5 });
    Tensor  w2 = normal(&f, "w2", 3, (int64_t[]){ 1, 5, DM });

    give(&f, "w1", w1);
    give(&f, "w2", w2);
    good_run(&f, "switch", "capacity=13");
    for (int64_t i = 0; i < 13 * DM; i++) {
        double y = 0;

        for (int64_t u = 0; u < 5; u++) {
            double h = 0;

            for (int64_t c = 0; c < DM; c++)
                h += (double)tensor_f32(&f.x)[i / DM * DM + c] *
                     (double)tensor_f32(&w1)[c * 5 + u];
            y += fmax(h, 0) * (double)tensor_f32(&w2)[u * DM + i % DM];
        }
        CHECK_NEAR((double)tensor_f32(&f.run->out)[i], y, 1e-5 * fmax(1, fabs(y)));
    }
    fixture_free(&f);
}

/* ---- product keys ----------------------------------------------------------- */

/* Score of slot s for a token, of both halves, in double. */
static double slot_score(const Fixture *f, const Tensor *w, const Tensor *b, const Tensor *keys,
                         int64_t i, int64_t n_keys, int64_t slot)
{
    double score = 0;

    for (int64_t t = 0; t < 6; t++) {
        double  q = (double)tensor_f32(b)[t];
        int64_t key = t < 3 ? slot / n_keys : n_keys + slot % n_keys;

        for (int64_t c = 0; c < DM; c++)
            q += (double)tensor_f32(&f->x)[i * DM + c] * (double)tensor_f32(w)[c * 6 + t];
        score += q * (double)tensor_f32(keys)[key * 3 + t % 3];
    }
    return score;
}

TEST(products_of_the_best_are_the_best_products)
{
    enum { KEYS = 7, KNN = 4 };
    Fixture f = fixture_new(11);
    Tensor  w = normal(&f, "w", 2, (int64_t[]){ DM, 6 }), b = normal(&f, "b", 1, (int64_t[]){ 6 });
    Tensor  keys = normal(&f, "keys", 4, (int64_t[]){ 1, 2, KEYS, 3 }), chosen, grid;

    give(&f, "query_w", w);
    give(&f, "query_b", b);
    give(&f, "keys", keys);
    good_run(&f, "product-key-memory", "knn=4");
    check_flops(f.run);
    chosen = view_of(&f, "indices");
    grid = view_of(&f, "candidates");
    for (int64_t i = 0; i < f.n; i++) {
        const int32_t *slots = tensor_i32(&chosen) + i * KNN;
        double         least = slot_score(&f, &w, &b, &keys, i, KEYS, slots[KNN - 1]);
        int            better = 0;

        for (int64_t s = 0; s < KEYS * KEYS; s++)
            better += slot_score(&f, &w, &b, &keys, i, KEYS, s) > least + 1e-12;
        assert_int_equal(better, KNN - 1);
        CHECK_NEAR((double)tensor_f32(&grid)[i * KNN * KNN],
                   slot_score(&f, &w, &b, &keys, i, KEYS, slots[0]), 1e-5);
    }
    assert_int_equal(pattern_count(run_view(f.run, "candidates")->marks->cells), f.n * KNN);
    fixture_free(&f);
}

/* ---- scaling ---------------------------------------------------------------- */

TEST(blocks_of_one_unit_are_a_dense_layer)
{
    Fixture f = fixture_new(13);
    Tensor  w1, w2, dense, routing;

    good_run(&f, "scaling", "ff_block=1");
    check_flops(f.run);
    w1 = view_of(&f, "w1");
    w2 = view_of(&f, "w2");
    dense = view_of(&f, "dense_hidden");
    routing = view_of(&f, "routing");
    for (int64_t i = 0; i < 13 * DM; i++) {
        double y = 0;

        for (int64_t u = 0; u < 4 * DM; u++) {
            double h = 0;

            for (int64_t c = 0; c < DM; c++)
                h += (double)tensor_f32(&f.x)[i / DM * DM + c] *
                     (double)tensor_f32(&w1)[c * 4 * DM + u];
            assert_true(tensor_f32(&routing)[i / DM * 4 * DM + u] == 1);
            CHECK_NEAR((double)tensor_f32(&dense)[i / DM * 4 * DM + u], fmax(h, 0), 1e-5);
            y += fmax(h, 0) * (double)tensor_f32(&w2)[u * DM + i % DM];
        }
        CHECK_NEAR((double)tensor_f32(&f.run->out)[i], y, 1e-5 * fmax(1, fabs(y)));
    }
    fixture_free(&f);
}

TEST(one_unit_of_each_block_is_active)
{
    Fixture f = fixture_new(7);
    Tensor  routing, controller, hidden, dense;

    good_run(&f, "scaling", "ff_block=8");
    routing = view_of(&f, "routing");
    controller = view_of(&f, "controller");
    hidden = view_of(&f, "hidden");
    dense = view_of(&f, "dense_hidden");
    for (int64_t b = 0; b < 7 * 4; b++) {
        double on = 0, sum = 0, best = 0, chosen = 0;

        for (int64_t c = b * 8; c < (b + 1) * 8; c++) {
            double share = (double)tensor_f32(&controller)[c];

            on += (double)tensor_f32(&routing)[c];
            sum += share;
            best = fmax(best, share);
            chosen += (double)tensor_f32(&routing)[c] * share;
            CHECK_NEAR((double)tensor_f32(&hidden)[c],
                       (double)tensor_f32(&routing)[c] * (double)tensor_f32(&dense)[c], 1e-6);
        }
        assert_true(on == 1);
        CHECK_NEAR(sum, 1, 1e-5);
        CHECK_NEAR(chosen, best, 0);
    }
    fixture_free(&f);
}

/* The views q, k, v and weights are those of the attention that ran. */
TEST(factored_projections_feed_softmax_attention)
{
    for (int t = 0; t < 4; t++) {
        Fixture f = fixture_new(13);
        Tensor  q, k, v, weights;

        f.causal = t % 2;
        good_run(&f, "scaling", t < 2 ? "part=qkv,heads=2,output_layer=false"
                                      : "part=qkv,heads=2,qkv_mode=multconv");
        check_flops(f.run);
        assert_int_equal(f.run->h, 2);
        q = view_of(&f, "q");
        k = view_of(&f, "k");
        v = view_of(&f, "v");
        weights = view_of(&f, "weights");
        for (int64_t h = 0; h < 2; h++)
            for (int64_t i = 0; i < 13; i++) {
                const float *row = tensor_f32(&weights) + (h * 13 + i) * 13;
                double       first = 0, other = 0, out = 0;

                for (int64_t c = h * 4; c < h * 4 + 4; c++) {
                    first += (double)(tensor_f32(&q)[i * DM + c] * tensor_f32(&k)[c]) / 2;
                    other += (double)(tensor_f32(&q)[i * DM + c] *
                                      tensor_f32(&k)[i * DM + c]) / 2;
                }
                CHECK_NEAR(log((double)row[i] / (double)row[0]), other - first, 1e-4); /* of logs */
                for (int64_t j = 0; j < 13; j++)
                    out += (double)row[j] * (double)tensor_f32(&v)[j * DM + h * 4];
                CHECK_NEAR((double)tensor_f32(&f.run->out)[i * DM + h * 4], out, 1e-5);
            }
        fixture_free(&f);
    }
}

/* ---- all of them ------------------------------------------------------------ */

static const struct {
    const char *id, *params;
} runs[] = {
    { "switch", "batch_prioritized=true,group_size=5" },
    { "gshard", "second_policy=threshold" },
    { "glam", "" },
    { "st-moe", "capacity=2" },
    { "product-key-memory", "heads=3,n_keys=5,k_dim=4,knn=3,normalize_query=true" },
    { "scaling", "ff_block=4,multiply_by_controller=true" },
    { "scaling", "part=qkv" },
    { "scaling", "part=qkv,qkv_mode=multconv,sparsity=2,output_layer=true" },
};
#define RUNS (sizeof(runs) / sizeof(*runs))

TEST(sizes_are_those_of_x)
{
    for (size_t t = 0; t < RUNS; t++) {
        Fixture f = fixture_new(6);

        f.q = normal(&f, "q", 3, (int64_t[]){ 2, 9, 3 });
        good_run(&f, runs[t].id, runs[t].params);
        assert_int_equal(f.run->n, 6);
        assert_int_equal(f.run->out.shape[0], 1);
        assert_int_equal(f.run->out.shape[1], 6);
        assert_int_equal(f.run->out.shape[2], DM);
        fixture_free(&f);
    }
}

TEST(threads_and_views_change_no_bit)
{
    for (size_t t = 0; t < RUNS; t++) {
        Fixture f = fixture_new(101);
        float  *before = malloc(101 * DM * sizeof(*before));

        good_run(&f, runs[t].id, runs[t].params);
        memcpy(before, f.run->out.data, 101 * DM * sizeof(*before));
        f.threads = 3;
        f.no_views = true;
        good_run(&f, runs[t].id, "");
        assert_memory_equal(before, f.run->out.data, 101 * DM * sizeof(*before));
        free(before);
        fixture_free(&f);
    }
}

TEST(failed_allocations_are_ordinary_errors)
{
    for (size_t t = 0; t < RUNS; t++) {
        Fixture f = fixture_new(7);
        Run    *r;

        for (f.fail_at = 1; (r = try_run(&f, runs[t].id, runs[t].params))->err.code; f.fail_at++)
            CHECK(r->err.code == ERR_NOMEM, "%s, allocation %d: %s", runs[t].id, (int)f.fail_at,
                  r->err.text);
        assert_true(f.fail_at > 5);
        fixture_free(&f);
    }
}

static void expect_error(const char *id, const char *params, const char *name, int rank,
                         const int64_t *shape, const char *says)
{
    Fixture f = fixture_new(6);
    Run    *r;

    if (name)
        give(&f, name, normal(&f, name, rank, shape));
    r = try_run(&f, id, params);
    CHECK(r->err.code != ERR_NONE && strstr(r->err.text, says), "%s(%s): '%s' does not say '%s'",
          id, params, r->err.text, says);
    fixture_free(&f);
}

TEST(what_cannot_be_is_refused)
{
    expect_error("switch", "n_experts=4", "router_w", 2, (int64_t[]){ DM, 3 }, "which says 3");
    expect_error("switch", "", "router_w", 2, (int64_t[]){ DM + 1, 3 }, "expected shape [8,3]");
    expect_error("glam", "", "w1", 3, (int64_t[]){ 1, DM + 1, 5 }, "expected shape [1,8,5]");
    expect_error("gshard", "", "second_uniform", 1, (int64_t[]){ 7 }, "expected shape [6]");
    expect_error("switch", "second_policy=all", NULL, 0, NULL, "no parameter");
    expect_error("product-key-memory", "k_dim=5", NULL, 0, NULL, "must be even");
    expect_error("product-key-memory", "n_keys=4", "values", 2, (int64_t[]){ 25, 3 },
                 "expected shape [16,3]");
    expect_error("product-key-memory", "heads=2", "keys", 4, (int64_t[]){ 1, 2, 3, 4 },
                 "which says 1");
    expect_error("scaling", "ff_block=5", NULL, 0, NULL, "its divisors are 1, 2, 4, 8, 16, 32");
    expect_error("scaling", "part=qkv,sparsity=3", NULL, 0, NULL, "does not divide dm=8");
    expect_error("scaling", "part=qkv,heads=3", NULL, 0, NULL, "does not divide dm=8");
    expect_error("scaling", "part=qkv,qkv_mode=multconv", "conv_q", 4, (int64_t[]){ 3, 2, 2, 2 },
                 "odd number of modules");
}

SUITE(NULL, NULL)
