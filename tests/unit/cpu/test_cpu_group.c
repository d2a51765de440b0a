/* test_cpu_group.c -- attention inside groups against its definition in double. */
#include "attn/cpu/attend.h"
#include "attn/pattern/pattern.h"
#include "cpu_fixture.h"

typedef struct Case {
    Fixture     f;
    GroupAttend g;
    GroupResult out;
    Visits      visits;
    int64_t     h, total, keys, d, e;
} Case;

enum { TAGS = 1, POSITIONS_CAUSAL = 2, SELF_LAST = 4, PENALTY = 8, VISITS = 16, RING = 32,
       CROSS = 64 };

static Tensor integers(Fixture *f, int64_t h, int64_t count)
{
    return tensor_with_rank(fixture_tensor(f, DT_I32, 1, h, count), 2);
}

/* Group x holds a different number of queries and keys, some none at all. */
static void fill_lists(Case *c, int64_t nq, int64_t nk)
{
    int64_t groups = c->g.groups;

    c->g.query_start = integers(&c->f, c->h, groups + 1);
    c->g.key_start = integers(&c->f, c->h, groups + 1);
    c->g.query_index = integers(&c->f, c->h, c->total);
    c->g.key_index = integers(&c->f, c->h, c->keys);
    for (int64_t t = 0; t < c->h; t++) {
        for (int64_t x = 0; x <= groups; x++) {
            tensor_i32(&c->g.query_start)[t * (groups + 1) + x] =
                (int32_t)(x == groups ? c->total : c->total * x * x / (groups * groups));
            tensor_i32(&c->g.key_start)[t * (groups + 1) + x] =
                (int32_t)(x == groups ? c->keys : x < 2 ? 0 : c->keys * x / (2 * groups));
        }
        for (int64_t x = 0; x < c->total; x++)
            tensor_i32(&c->g.query_index)[t * c->total + x] = (int32_t)((x * 5 + t) % nq);
        for (int64_t x = 0; x < c->keys; x++)
            tensor_i32(&c->g.key_index)[t * c->keys + x] = (int32_t)((x * 7 + t) % nk);
    }
}

static Tensor cycle(Fixture *f, int64_t h, int64_t count, int64_t period, int64_t step)
{
    Tensor t = integers(f, h, count);

    for (int64_t x = 0; x < h * count; x++)
        tensor_i32(&t)[x] = (int32_t)(x % count * step % period);
    return t;
}

/* Three lists in which the positions meet now and then. */
static Visits visits_of(Fixture *f, int64_t h, int64_t positions, int rules)
{
    Visits  v = { .before = 1, .after = 2, .ring = rules & RING ? 7 : 0, .cross = rules & CROSS };
    int64_t stride = 3 * positions;

    v.chunk = cycle(f, 1, h * stride, 7, 3);
    v.chunk = tensor_of(DT_I32, 3, (int64_t[]){ h, 3, positions }, v.chunk.data);
    if (rules & CROSS)
        return v;
    v.tag = cycle(f, 1, h * stride, 3, 1);
    v.tag = tensor_of(DT_I32, 3, (int64_t[]){ h, 3, positions }, v.tag.data);
    return v;
}

static Case case_new(int64_t h, int64_t nq, int64_t nk, int64_t d, int64_t e, int rules,
                     int threads)
{
    Case c = { .f = fixture_new(threads, 5), .h = h, .total = nq + 3, .keys = 2 * nk, .d = d,
               .e = e };

    c.g = (GroupAttend){ .scale = 1 / sqrt((double)d), .groups = 4 };
    c.g.q = fixture_normal(&c.f, h, nq, d, 1);
    c.g.k = fixture_normal(&c.f, 1, nk, d, 1);
    c.g.v = fixture_normal(&c.f, h, nk, e, 1);
    fill_lists(&c, nq, nk);
    if (rules & TAGS) {
        c.g.query_tag = cycle(&c.f, h, nq, 3, 1);
        c.g.key_tag = cycle(&c.f, h, nk, 3, 2);
    }
    if (rules & (POSITIONS_CAUSAL | SELF_LAST | PENALTY | VISITS)) {
        c.g.query_at = cycle(&c.f, h, nq, nq, 1);
        c.g.key_at = cycle(&c.f, h, nk, nk, 1);
        for (int64_t t = 0; t < h && nk > 4 && !(rules & VISITS); t++)
            tensor_i32(&c.g.key_at)[t * nk + 2] = -1;
    }
    c.g.causal = rules & POSITIONS_CAUSAL;
    c.g.self_last = rules & SELF_LAST;
    c.g.self_penalty = rules & PENALTY ? 1e5 : 0;
    if (rules & VISITS)
        c.visits = visits_of(&c.f, h, nq > nk ? nq : nk, rules);
    c.out.out = fixture_tensor(&c.f, DT_F32, h, c.total, e);
    c.out.lse = tensor_with_rank(fixture_tensor(&c.f, DT_F32, 1, h, c.total), 2);
    return c;
}

static int32_t at(const Tensor *t, int64_t head, int64_t x)
{
    return t->data ? tensor_i32(t)[head * t->shape[1] + x] : 0;
}

static bool stays(const GroupAttend *g, int64_t t, int64_t q, int64_t k)
{
    if (at(&g->query_tag, t, q) != at(&g->key_tag, t, k))
        return false;
    return !g->causal || at(&g->key_at, t, k) < 0 || at(&g->key_at, t, k) <= at(&g->query_at, t, q);
}

static int64_t times_met(const Visits *v, int64_t t, int64_t i, int64_t j)
{
    int64_t lists = v->chunk.shape[1], n = v->chunk.shape[2], met = 0;

    for (int64_t pair = 0; pair < lists * lists; pair++) {
        int64_t a = (t * lists + pair / lists) * n + i, b = (t * lists + pair % lists) * n + j;
        int64_t ahead = tensor_i32(&v->chunk)[b] - tensor_i32(&v->chunk)[a];
        bool    alike = !v->tag.data || tensor_i32(&v->tag)[a] == tensor_i32(&v->tag)[b];
        bool    seen = false;

        for (int64_t turn = v->ring ? -1 : 0; turn <= (v->ring ? 1 : 0); turn++)
            seen |= -v->before <= ahead + turn * v->ring && ahead + turn * v->ring <= v->after;
        met += (v->cross || pair / lists == pair % lists) && alike && seen;
    }
    return met;
}

static double score(const Case *c, int64_t t, int64_t q, int64_t k)
{
    const float *a = tensor_f32(&c->g.q) + (t * c->g.q.shape[1] + q) * c->d;
    const float *b = tensor_f32(&c->g.k) + k * c->d;
    double       sum = 0;

    for (int64_t x = 0; x < c->d; x++)
        sum += (double)a[x] * (double)b[x];
    sum *= c->g.scale;
    if (c->g.self_penalty != 0 && at(&c->g.query_at, t, q) == at(&c->g.key_at, t, k))
        sum -= c->g.self_penalty;
    if (c->g.visits)
        sum -= log(fmax(1, (double)times_met(c->g.visits, t, at(&c->g.query_at, t, q),
                                             at(&c->g.key_at, t, k))));
    return sum;
}

/* One entry of the query list, by definition. */
static void reference(const Case *c, int64_t t, int64_t group, int64_t entry, double *out,
                      double *lse)
{
    const GroupAttend *g = &c->g;
    int64_t            q = at(&g->query_index, t, entry), from = at(&g->key_start, t, group);
    int64_t            to = at(&g->key_start, t, group + 1);
    bool               others = false;
    double             top = -(double)INFINITY, sum = 0;

    for (int64_t x = from; x < to; x++) {
        int64_t k = at(&g->key_index, t, x);

        others |= stays(g, t, q, k) && at(&g->key_at, t, k) != at(&g->query_at, t, q);
    }
    for (int64_t p = 0; p < c->e; p++)
        out[p] = 0;
    for (int pass = 0; pass < 3; pass++)
        for (int64_t x = from; x < to; x++) {
            int64_t k = at(&g->key_index, t, x);
            double  s = score(c, t, q, k), weight;

            if (!stays(g, t, q, k) ||
                (g->self_last && others && at(&g->key_at, t, k) == at(&g->query_at, t, q)))
                continue;
            if (pass == 0)
                top = fmax(top, s);
            else if (pass == 1)
                sum += exp(s - top);
            weight = pass == 2 ? exp(s - top) / sum : 0;
            for (int64_t p = 0; pass == 2 && p < c->e; p++)
                out[p] +=
                    weight * (double)tensor_f32(&g->v)[(t * g->v.shape[1] + k) * c->e + p];
        }
    *lse = sum > 0 ? top + log(sum) : -(double)INFINITY;
}

static void check_case(const Case *c, const char *what)
{
    double *out = calloc((size_t)c->e, sizeof(*out)), lse;

    for (int64_t t = 0; t < c->h; t++)
        for (int64_t group = 0; group < c->g.groups; group++)
            for (int64_t x = at(&c->g.query_start, t, group);
                 x < at(&c->g.query_start, t, group + 1); x++) {
                const float *got = tensor_f32(&c->out.out) + (t * c->total + x) * c->e;

                reference(c, t, group, x, out, &lse);
                CHECK_BELOW(worst_error(got, out, c->e), 2e-6, "%s out %d", what, (int)x);
                CHECK_BELOW(worst_error(tensor_f32(&c->out.lse) + t * c->total + x, &lse, 1), 2e-6,
                            "%s lse %d", what, (int)x);
            }
    free(out);
}

TEST(rules_and_shapes)
{
    static const int64_t shapes[][5] = {
        { 1, 1, 1, 1, 1 }, { 2, 7, 5, 3, 9 }, { 2, 64, 128, 64, 64 }, { 1, 131, 300, 20, 65 },
        { 3, 300, 90, 33, 16 },
    };
    const Kernel *kernel;

    for (size_t x = 0; x < sizeof(shapes) / sizeof(shapes[0]); x++)
        for (int rules = 0; rules < 128; rules++)
            for (int y = 0; (kernel = kernel_at(y)); y++) {
                const int64_t *s = shapes[x];
                Case           c;
                char           what[80];

                if (rules > 31 && (rules & 31) != VISITS && (rules & 31) != 31)
                    continue; /* rings and pairs of lists are forms of visits */
                c = case_new(s[0], s[1], s[2], s[3], s[4], rules, 2);
                c.g.visits = rules & VISITS ? &c.visits : NULL;
                snprintf(what, sizeof(what), "%s shape %d rules %d", kernel->name, (int)x, rules);
                cpu_group_attend_on(kernel, c.f.run, &c.g, &c.out);
                check_case(&c, what);
                fixture_free(&c.f);
            }
}

/* Chunks of TILE_KEYS slots in a ring, each with the keys of those before it and its own:
 * neighbours share panels, also the last chunk of a head and the first of the next, in other rows.
 * Now and then a single key differs. */
static void list_chunks(Case *c, int64_t before, int64_t nk)
{
    int64_t groups = c->g.groups = c->total / TILE_KEYS, window = (before + 1) * TILE_KEYS;

    c->keys = groups * window;
    c->g.query_start = cycle(&c->f, c->h, groups + 1, c->total + 1, TILE_KEYS);
    c->g.key_start = cycle(&c->f, c->h, groups + 1, c->keys + 1, window);
    c->g.key_index = integers(&c->f, c->h, c->keys);
    for (int64_t x = 0; x < c->h * c->keys; x++) {
        int64_t group = x % c->keys / window, odd = group % 3 == 2 && x % window == 40;
        int64_t slot = (group + groups - before) * TILE_KEYS + x % window + 100 * odd;

        tensor_i32(&c->g.key_index)[x] = (int32_t)(slot % c->total * 7 % nk);
    }
}

TEST(neighbouring_chunks_share_keys)
{
    const Kernel *kernel;

    for (int rules = 0; rules < 64; rules++)
        for (int y = 0; (kernel = kernel_at(y)); y++) {
            Case c = case_new(2, 8 * TILE_KEYS - 3, 8 * TILE_KEYS - 3, 9, 17, rules % 32, 1);
            char what[80];

            list_chunks(&c, rules < 32 ? 1 : STEP_PANELS, c.total - 3);
            c.g.visits = rules & VISITS ? &c.visits : NULL;
            snprintf(what, sizeof(what), "%s chunks, rules %d", kernel->name, rules);
            cpu_group_attend_on(kernel, c.f.run, &c.g, &c.out);
            check_case(&c, what);
            fixture_free(&c.f);
        }
}

/* Runs of neighbours of many lengths, and keys by themselves between them. */
static void list_runs(Case *c, int64_t nk)
{
    int64_t run = 1, key = 0;

    for (int64_t x = 0, left = run; x < c->h * c->keys; x++, left--) {
        if (left == 0) {
            run = run * 3 % 101;
            left = run;
            key += 13;
        }
        tensor_i32(&c->g.key_index)[x] = (int32_t)(key++ % nk);
    }
}

/* The rows of x from `first` on move away from those before them. */
static Tensor rows_apart(Fixture *f, const Tensor *x, int64_t first)
{
    int64_t rows = x->shape[1] - first, w = x->shape[2];
    size_t  bytes = (size_t)(rows * w) * sizeof(float);
    Tensor  y = fixture_tensor(f, DT_F32, x->shape[0], rows, w);

    for (int64_t t = 0; t < x->shape[0]; t++) {
        float *from = tensor_f32(x) + t * x->stride[0] + first * w;

        memcpy(tensor_f32(&y) + t * rows * w, from, bytes);
        memset(from, 0x7f, bytes);
    }
    return y;
}

/* Neighbours are read where they lie, and keys of two tensors are as those of one. */
TEST(neighbours_and_two_tensors_of_keys)
{
    const Kernel *kernel;

    for (int y = 0; (kernel = kernel_at(y)); y++)
        for (int64_t split = 1; split < 700; split += 233) {
            enum { H = 2, NQ = 150, NK = 700, D = 20, E = 33 };
            Case c = case_new(H, NQ, NK, D, E, 0, 2), apart = case_new(H, NQ, NK, D, E, 0, 1);

            list_runs(&c, NK);
            list_runs(&apart, NK);
            cpu_group_attend_on(kernel, c.f.run, &c.g, &c.out);
            check_case(&c, kernel->name);
            apart.g.more_k = rows_apart(&apart.f, &apart.g.k, split);
            apart.g.more_v = rows_apart(&apart.f, &apart.g.v, split);
            apart.g.k = tensor_rows(apart.g.k, 0, split);
            apart.g.v = tensor_rows(apart.g.v, 0, split);
            cpu_group_attend_on(kernel, apart.f.run, &apart.g, &apart.out);
            assert_memory_equal(apart.out.out.data, c.out.out.data,
                                (size_t)tensor_bytes(&c.out.out));
            fixture_free(&c.f);
            fixture_free(&apart.f);
        }
}

TEST(threads_change_nothing)
{
    Case a = case_new(3, 300, 90, 33, 16, 31, 1), b = case_new(3, 300, 90, 33, 16, 31, 3);

    a.g.visits = &a.visits;
    b.g.visits = &b.visits;
    cpu_group_attend(a.f.run, &a.g, &a.out);
    cpu_group_attend(b.f.run, &b.g, &b.out);
    assert_memory_equal(a.out.out.data, b.out.out.data, (size_t)tensor_bytes(&a.out.out));
    assert_memory_equal(a.out.lse.data, b.out.lse.data, (size_t)tensor_bytes(&a.out.lse));
    fixture_free(&a.f);
    fixture_free(&b.f);
}

/* Alone, a cell under the penalty has weight 1; beside another it is nothing. */
TEST(penalty_is_absolute)
{
    Case  c = case_new(1, 2, 2, 4, 3, PENALTY, 1);
    float *out = tensor_f32(&c.out.out), *v = tensor_f32(&c.g.v);

    for (int x = 0; x < 5; x++)
        tensor_i32(&c.g.query_start)[x] = x == 0 ? 0 : x == 1 ? 2 : 5;
    for (int x = 0; x < 5; x++)
        tensor_i32(&c.g.key_start)[x] = x == 0 ? 0 : x == 1 ? 1 : 3;
    tensor_i32(&c.g.key_index)[0] = 0; /* group 0: key 0 only; group 1: keys 0 and 1 */
    tensor_i32(&c.g.key_index)[1] = 0;
    tensor_i32(&c.g.key_index)[2] = 1;
    for (int x = 0; x < 5; x++)
        tensor_i32(&c.g.query_index)[x] = 0;
    tensor_i32(&c.g.query_at)[0] = 0;
    tensor_i32(&c.g.key_at)[0] = 0;
    tensor_i32(&c.g.key_at)[1] = 1;
    cpu_group_attend(c.f.run, &c.g, &c.out);
    for (int p = 0; p < 3; p++) {
        assert_true(out[p] == v[p]);
        assert_true(out[2 * 3 + p] == v[3 + p]);
    }
    fixture_free(&c.f);
}

/* A query with a skip list sees what it would see if its keys were listed without them. */
static void check_skips(int64_t nk, int64_t size, bool causal)
{
    Case        c = case_new(2, 7, nk, 5, 9, causal ? POSITIONS_CAUSAL : 0, 2);
    GroupAttend g = c.g;
    GroupResult skipped = { .out = fixture_tensor(&c.f, DT_F32, 2, c.total, 9) };

    skipped.lse = tensor_with_rank(fixture_tensor(&c.f, DT_F32, 1, 2, c.total), 2);
    g.query_skip = fixture_tensor(&c.f, DT_I32, 2, 7, size);
    g.key_index = integers(&c.f, 1, nk);
    g.key_start = integers(&c.f, 1, g.groups + 1);
    for (int64_t x = 0; x <= g.groups; x++)
        tensor_i32(&g.key_start)[x] = x ? (int32_t)nk : 0; /* all in the first group */
    for (int64_t x = 0; x < nk; x++)
        tensor_i32(&g.key_index)[x] = (int32_t)x;
    for (int64_t x = 0; x < 2 * 7 * size; x++)
        tensor_i32(&g.query_skip)[x] = (int32_t)(nk - 1 - (size - 1 - x % size) * (nk / size));
    for (int64_t t = 0; t < 2; t++)
        for (int64_t x = 0; x <= g.groups; x++)
            tensor_i32(&g.query_start)[t * (g.groups + 1) + x] = x ? (int32_t)c.total : 0;
    cpu_group_attend(c.f.run, &g, &skipped);
    c.g.key_start = g.key_start;
    c.g.key_index = integers(&c.f, 1, nk);
    for (int64_t x = 0, kept = 0; x < nk; x++) {
        if ((nk - 1 - x) % (nk / size) || (nk - 1 - x) / (nk / size) >= size)
            tensor_i32(&c.g.key_index)[kept++] = (int32_t)x;
        for (int64_t y = 1; y <= g.groups; y++)
            tensor_i32(&c.g.key_start)[y] = (int32_t)kept;
    }
    cpu_group_attend(c.f.run, &c.g, &c.out);
    for (int64_t x = 0; x < 2 * c.total; x++) {
        float a = tensor_f32(&skipped.lse)[x], b = tensor_f32(&c.out.lse)[x];

        CHECK_BELOW(a == b ? 0 : fabs((double)(a - b)), 2e-6, "keys %d, row %d", (int)nk, (int)x);
        for (int64_t e = 0; e < 9; e++)
            CHECK_BELOW(fabs((double)(tensor_f32(&skipped.out)[x * 9 + e] -
                                      tensor_f32(&c.out.out)[x * 9 + e])), 2e-6, "row %d", (int)x);
    }
    fixture_free(&c.f);
}

TEST(skipped_keys_are_absent)
{
    for (int causal = 0; causal < 2; causal++) {
        check_skips(1, 1, causal); /* nothing is left */
        check_skips(5, 2, causal);
        check_skips(64, 64, causal);
        check_skips(300, 1, causal);
        check_skips(301, 43, causal);
    }
}

/* Whether rows share their keys, `each` neighbours the same; in memory that was used. */
static bool shares(int64_t each)
{
    enum { ROWS = 514, ROOM = 1 << 17 };
    Fixture      f = fixture_new(1, 1);
    Arena       *a = f.run->arena;
    PatternShape s = { .heads = 1, .n = ROWS, .m = ROWS };
    Tensor       numbers = tensor_new(a, DT_I64, 2, (int64_t[]){ 1, ROWS });
    GroupAttend  g = { 0 };
    ArenaMark    mark;
    Pattern     *p;
    double       cells;
    bool         shared;

    for (int64_t i = 0; i < ROWS; i++)
        ((int64_t *)numbers.data)[i] = i / each;
    p = pattern_same(a, s, &numbers);
    assert_non_null(p);
    mark = arena_mark(a);
    memset(arena_alloc(a, ROOM, 1), 0x7f, ROOM);
    arena_release(a, mark);
    shared = shared_rows(f.run, p, &g, &cells);
    assert_true(!shared || g.groups == (ROWS - 1) / each + 1);
    fixture_free(&f);
    return shared;
}

TEST(many_groups_are_none)
{
    assert_true(shares(128));
    assert_true(shares(514));
    assert_false(shares(2)); /* neighbours look the same, and yet there are 257 groups */
    assert_false(shares(1));
}

SUITE(NULL, NULL)
