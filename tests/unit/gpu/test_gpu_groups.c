/* test_gpu_groups.c -- attention inside groups, and of few queries: the device's kernels, emulated,
 * against the CPU's. */
#include "unit/gpu_fixture.h"

enum { TAGS = 1, CAUSAL = 2, SELF_LAST = 4, PENALTY = 8, VISITS = 16, SKIPS = 32, PLACED = 64,
       RING = 128, CROSS = 256 };

typedef struct Shape {
    int64_t h, shared, nq, nk, d, e, groups; /* shared: heads of k and v */
} Shape;

static Tensor integers(Fixture *f, int64_t h, int64_t count)
{
    return tensor_with_rank(fixture_tensor(f, DT_I32, 1, h, count), 2);
}

static Tensor below(Fixture *f, int64_t h, int64_t count, int64_t bound)
{
    Tensor t = integers(f, h, count);

    for (int64_t x = 0; x < h * count; x++)
        tensor_i32(&t)[x] = (int32_t)rng_below(&f->rng, (uint64_t)bound);
    return t;
}

/* Where the groups of a list begin: some are empty, the last is the longest. */
static Tensor starts(Fixture *f, int64_t h, int64_t groups, int64_t total)
{
    Tensor t = integers(f, h, groups + 1);

    for (int64_t x = 0; x < h; x++)
        for (int64_t g = 0; g <= groups; g++)
            tensor_i32(&t)[x * (groups + 1) + g] =
                (int32_t)(g == groups ? total : g < 2 ? 0 : total * g / (3 * groups));
    return t;
}

/* Each row once: in the order of the lists, shifted by the head. */
static Tensor rows_once(Fixture *f, int64_t h, int64_t n)
{
    Tensor t = integers(f, h, n);

    for (int64_t x = 0; x < h * n; x++)
        tensor_i32(&t)[x] = (int32_t)((x % n + x / n) % n);
    return t;
}

/* Key lists that increase inside each group. */
static Tensor increasing(Fixture *f, int64_t h, int64_t n)
{
    Tensor t = integers(f, h, n);

    for (int64_t x = 0; x < h * n; x++)
        tensor_i32(&t)[x] = (int32_t)(x % n);
    return t;
}

/* Some of the keys of each group's last part, which is in every list. */
static Tensor skip_lists(Fixture *f, const GroupAttend *g, int64_t nq, int64_t nk)
{
    int64_t h = g->query_start.shape[0], size = nk < 12 ? 1 : 5;
    Tensor  t = fixture_tensor(f, DT_I32, h, nq, size);

    for (int64_t x = 0; x < h * nq; x++)
        for (int64_t s = 0; s < size; s++)
            tensor_i32(&t)[x * size + s] = (int32_t)(nk - 1 - (size - 1 - s) * (1 + x % 2));
    return t;
}

static Visits visits_of(Fixture *f, int64_t h, int64_t positions, int rules)
{
    int64_t lists = rules & CROSS ? 9 : 3;
    Visits  v = { .before = 1, .after = 2, .ring = rules & RING ? 7 : 0, .cross = rules & CROSS };
    int64_t shape[3] = { h, lists, positions };

    v.chunk = tensor_of(DT_I32, 3, shape, below(f, h, lists * positions, 7).data);
    if (!v.cross)
        v.tag = tensor_of(DT_I32, 3, shape, below(f, h, lists * positions, 2).data);
    return v;
}

static GroupAttend group_of(Fixture *f, const Shape *s, int rules, Visits *visits)
{
    GroupAttend g = { .scale = 1 / sqrt((double)s->d), .groups = s->groups,
                      .causal = rules & CAUSAL, .self_last = rules & SELF_LAST,
                      .self_penalty = rules & PENALTY ? 1e5 : 0, .placed = rules & PLACED };

    g.q = fixture_normal(f, s->h, s->nq, s->d, 1);
    g.k = fixture_normal(f, s->shared, s->nk, s->d, 1);
    g.v = fixture_normal(f, s->shared, s->nk, s->e, 1);
    g.query_start = starts(f, s->h, s->groups, s->nq);
    g.query_index = rows_once(f, s->h, s->nq);
    if (rules & SKIPS) { /* all keys in the last group, and every query there */
        g.key_start = starts(f, 1, s->groups, s->nk);
        g.query_start = starts(f, s->h, s->groups, s->nq);
        for (int64_t x = 0; x < s->groups; x++) {
            tensor_i32(&g.key_start)[x] = 0;
            for (int64_t t = 0; t < s->h; t++)
                tensor_i32(&g.query_start)[t * (s->groups + 1) + x] = 0;
        }
        g.key_index = increasing(f, 1, s->nk);
        g.query_skip = skip_lists(f, &g, s->nq, s->nk);
    } else {
        g.key_start = starts(f, s->shared, s->groups, 2 * s->nk);
        g.key_index = below(f, s->shared, 2 * s->nk, s->nk);
    }
    if (rules & TAGS) {
        g.query_tag = below(f, s->h, s->nq, 3);
        g.key_tag = below(f, s->h, s->nk, 4);
    }
    if (rules & (CAUSAL | SELF_LAST | PENALTY | VISITS)) {
        g.query_at = rows_once(f, s->h, s->nq);
        g.key_at = rows_once(f, s->h, s->nk); /* a position is one key's */
    }
    for (int64_t t = 0; rules & CAUSAL && !(rules & VISITS) && t < s->h; t++)
        tensor_i32(&g.key_at)[t * s->nk] = -1;
    *visits = visits_of(f, s->h, s->nq > s->nk ? s->nq : s->nk, rules);
    g.visits = rules & VISITS ? visits : NULL;
    return g;
}

static void check_group(const Shape *s, int rules)
{
    GpuFixture  f = gpu_fixture_new(s->h, (uint64_t)rules);
    Visits      visits;
    GroupAttend g = group_of(&f.gpu, s, rules, &visits);
    GroupResult one = op_group_attend(f.cpu.run, &g), other = op_group_attend(f.gpu.run, &g);

    CHECK_BELOW(gpu_difference(&other.out, &one.out), 5e-6, "n %d rules %d out", (int)s->nq, rules);
    CHECK_BELOW(gpu_difference(&other.lse, &one.lse), 5e-6, "n %d rules %d lse", (int)s->nq, rules);
    gpu_fixture_free(&f);
}

TEST(groups_of_all_rules)
{
    static const Shape shapes[] = {
        { 1, 1, 1, 1, 1, 1, 1 }, { 2, 1, 7, 5, 3, 9, 4 }, { 4, 2, 131, 90, 33, 20, 3 },
        { 1, 1, 70, 150, 64, 130, 2 },
    };

    for (size_t x = 0; x < sizeof(shapes) / sizeof(*shapes); x++)
        for (int rules = 0; rules < 512; rules++) {
            if (rules >= RING && !(rules & VISITS))
                continue; /* forms of visits */
            if (x > 1 && rules % 13 && rules & (rules - 1))
                continue; /* on large inputs each rule alone, and some together */
            check_group(&shapes[x], rules);
        }
}

/* So many keys that their pieces are joined. */
TEST(long_lists_are_cut)
{
    static const Shape shape = { 1, 1, 66, 1500, 8, 70, 2 };

    check_group(&shape, 0);
    check_group(&shape, PLACED);
    check_group(&shape, CAUSAL | SELF_LAST | TAGS);
    check_group(&shape, SKIPS);
    check_group(&shape, SKIPS | CAUSAL | SELF_LAST | PENALTY);
    check_group(&shape, VISITS | RING);
}

static void check_few(int64_t l, int64_t m, int64_t e, int64_t more)
{
    GpuFixture f = gpu_fixture_new(2, (uint64_t)(l + m));
    FewAttend  in = { .q = fixture_normal(&f.gpu, 2, l, 10, 1), .scale = 0.4,
                      .k = fixture_normal(&f.gpu, 1, m, 10, 1),
                      .v = fixture_normal(&f.gpu, 1, m, e, 1) };
    FewResult  one, other;

    if (more)
        in.more = fixture_normal(&f.gpu, 2, m, more, 1);
    one = op_few_attend(f.cpu.run, &in);
    other = op_few_attend(f.gpu.run, &in);
    CHECK_BELOW(gpu_difference(&other.out, &one.out), 2e-6, "%d of %d", (int)l, (int)m);
    CHECK_BELOW(gpu_difference(&other.lse, &one.lse), 2e-6, "%d of %d, lse", (int)l, (int)m);
    if (more)
        CHECK_BELOW(gpu_difference(&other.more, &one.more), 2e-6, "%d of %d, more", (int)l,
                    (int)m);
    gpu_fixture_free(&f);
}

TEST(few_read_all_keys)
{
    check_few(1, 1, 1, 0);
    check_few(3, 65, 7, 2);
    check_few(65, 130, 64, 64);
    check_few(5, 1300, 62, 5);
    check_few(70, 1111, 30, 0);
}

/* A score that is NaN is no absent key. */
TEST(nan_stays)
{
    static const Shape shape = { 1, 1, 7, 5, 3, 9, 2 };
    GpuFixture  f = gpu_fixture_new(1, 3);
    Visits      visits;
    GroupAttend g = group_of(&f.gpu, &shape, 0, &visits);
    GroupResult one, other;

    tensor_f32(&g.q)[4] = NAN;
    one = op_group_attend(f.cpu.run, &g);
    other = op_group_attend(f.gpu.run, &g);
    CHECK_BELOW(gpu_difference(&other.out, &one.out), 2e-6, "NaN in a query");
    gpu_fixture_free(&f);
}

SUITE(NULL, NULL)
