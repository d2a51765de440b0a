/* test_gpu_conformance.c -- every mechanism of the catalogue on a device gives what it gives on the
 * CPU: the same output and float views, and exactly the same choices.
 *
 * The device is the emulated one, or a GPU (gpu_fixture.h), which takes larger runs too.
 */

#include "attn/run.h"
#include "check.h"
#include "unit/gpu_differences.h"

#define NEAR 1e-4 /* float32 sums in another order, through several layers of softmax */

typedef struct Case {
    int64_t h, n, d, e;
    bool    causal;
    const char *params; /* NULL: the mechanism's example */
    int64_t few;        /* queries at the end of n keys; 0: as many */
} Case;

typedef struct Pair {
    Arena      *arena;
    Assignments given;
    Run        *cpu, *gpu;
} Pair;

static RunSpec spec_of(Pair *p, const Mechanism *m, Case c)
{
    Error   err = ERROR_INIT;
    RunSpec spec = { .mechanism = m, .causal = c.causal, .seed = 1, .views = true };

    p->arena = arena_new();
    assert_non_null(p->arena);
    if (c.params || m->example)
        assert_true(assignments_parse(&p->given, c.params ? c.params : m->example, &err));
    spec.given = &p->given;
    spec.q = draw(p->arena, "q", c.h, c.few ? c.few : c.n, c.d);
    spec.k = draw(p->arena, "k", c.h, c.n, c.d);
    spec.v = draw(p->arena, "v", c.h, c.n, c.e);
    spec.x = tensor_with_rank(draw(p->arena, "x", 1, c.n, c.h * c.d), 2);
    if (m->needs_attn)
        spec.attn = draw(p->arena, "attn", c.h, c.n, c.n);
    return spec;
}

static Pair pair_new(const Mechanism *m, Case c, const Ops *ops)
{
    Pair    p = { 0 };
    RunSpec spec = spec_of(&p, m, c);

    p.cpu = run_new(&spec);
    run_execute(p.cpu);
    spec.ops = ops;
    p.gpu = run_new(&spec);
    run_execute(p.gpu);
    assert_non_null(p.cpu);
    assert_non_null(p.gpu);
    return p;
}

static void pair_free(Pair *p)
{
    run_free(p->cpu);
    run_free(p->gpu);
    assignments_free(&p->given);
    arena_free(p->arena);
}

/* ---- comparing -------------------------------------------------------------------- */

static bool is_float(DType dtype)
{
    return dtype == DT_F32 || dtype == DT_F64;
}

static void compare(const char *what, const char *name, Tensor a, Tensor b)
{
    double apart;

    if (a.dtype != b.dtype || !tensor_same_shape(&a, &b)) {
        DIFFERS(true, "%s: %s has another shape", what, name);
    } else if (is_float(a.dtype)) {
        apart = gpu_difference(&b, &a);
        DIFFERS(!(apart <= NEAR), "%s: %s is off by %g", what, name, apart);
    } else {
        DIFFERS(memcmp(a.data, b.data, (size_t)tensor_bytes(&a)) != 0,
                "%s: %s, a choice, differs", what, name);
    }
}

static void compare_views(const char *what, const Pair *p)
{
    DIFFERS(p->cpu->view_count != p->gpu->view_count, "%s: %d views, on the device %d", what,
            p->cpu->view_count, p->gpu->view_count);
    for (int i = 0; i < p->cpu->view_count && i < p->gpu->view_count; i++) {
        const View *own = &p->cpu->views[i], *other = &p->gpu->views[i];
        Error       err = ERROR_INIT;
        Tensor      a, b;

        if (strcmp(own->name, other->name) != 0 || !view_materialise(own, p->arena, 0, &a, &err) ||
            !view_materialise(other, p->arena, 0, &b, &err))
            DIFFERS(true, "%s: the view %s cannot be read: %s", what, own->name, err.text);
        else
            compare(what, own->name, a, b);
    }
}

static void compare_runs(const char *what, const Pair *p)
{
    double a = flops_total(run_flops(p->cpu)), b = flops_total(run_flops(p->gpu));

    DIFFERS(p->cpu->err.code != p->gpu->err.code, "%s: on the CPU '%s', on the device '%s'", what,
            p->cpu->err.text, p->gpu->err.text);
    if (p->cpu->err.code != ERR_NONE || p->gpu->err.code != ERR_NONE)
        return;
    compare(what, "output", p->cpu->out, p->gpu->out);
    compare_views(what, p);
    DIFFERS(!(fabs(a - b) <= 1e-9 * a), "%s: %g FLOPs, on the device %g", what, a, b);
    DIFFERS(!arena_check(p->gpu->arena), "%s: a guard band was overwritten", what);
}

/* ---- what is not offered ------------------------------------------------------------- */

/* Operations of the CPU's table that the device's lacks; without features_top it keeps features. */
static int holes(const Ops *ops)
{
    const char *own = (const char *)ops_cpu(), *other = (const char *)ops;
    int         count = 0;

    for (size_t at = offsetof(Ops, attend); at < offsetof(Ops, ceilings); at += sizeof(void *)) {
        void *here, *there;

        memcpy(&here, own + at, sizeof(here));
        memcpy(&there, other + at, sizeof(there));
        count += here && !there && at != offsetof(Ops, features_top);
    }
    return count;
}

/* As long as operations are missing, mechanisms that ask for one are only told of. */
static bool not_offered(const Pair *p, const Ops *ops)
{
    if (p->gpu->err.code != ERR_UNSUPPORTED || p->cpu->err.code != ERR_NONE || !holes(ops))
        return false;
    printf("not offered: %s\n", p->gpu->err.text);
    return true;
}

static int check(const Mechanism *m, Case c, const Ops *ops)
{
    Pair p = pair_new(m, c, ops);
    bool skipped = not_offered(&p, ops);
    char what[128];

    snprintf(what, sizeof(what), "%s n=%d%s", m->id, (int)c.n, c.causal ? " causal" : "");
    if (!skipped)
        compare_runs(what, &p);
    pair_free(&p);
    return skipped;
}

static const Case shapes[] = { { .h = 2, .n = 37, .d = 8, .e = 8 },
                               { .h = 1, .n = 1, .d = 4, .e = 3 },
                               { .h = 2, .n = 70, .d = 5, .e = 7 },
                               { .h = 4, .n = 601, .d = 64, .e = 64 } };
#define ALL_SHAPES (sizeof(shapes) / sizeof(*shapes))

static void check_all(bool causal)
{
    Device    *device = gpu_fixture_device();
    const Ops *ops = device_ops(device, ARITHMETIC_F32);
    int        skipped = 0;

    differences = 0;
    for (size_t i = 0; mechanism_at(i); i++)
        for (size_t s = 0; s < ALL_SHAPES - !gpu_fixture_is_real(); s++) {
            Case c = shapes[s];

            c.causal = causal;
            if (!causal || mechanism_at(i)->causal)
                skipped += check(mechanism_at(i), c, ops);
        }
    printf("%d operations missing; %d runs asked for one\n", holes(ops), skipped);
    assert_int_equal(holes(ops), 0);
    assert_int_equal(differences, 0);
    assert_int_equal(device_in_use(device), 0);
    device_release(device);
}

TEST(all_tokens)
{
    check_all(false);
}

TEST(causal_runs)
{
    check_all(true);
}

/* What is refused is so on both. */
TEST(few_queries_at_the_end)
{
    Device    *device = gpu_fixture_device();
    const Ops *ops = device_ops(device, ARITHMETIC_F32);

    differences = 0;
    for (size_t i = 0; mechanism_at(i); i++)
        for (size_t s = 0; s < ALL_SHAPES - !gpu_fixture_is_real() && mechanism_at(i)->at_end; s++)
            for (int64_t few = 1; few < shapes[s].n; few += shapes[s].n / 3) {
                Case c = shapes[s];

                c.causal = true;
                c.few = few;
                assert_int_equal(check(mechanism_at(i), c, ops), 0);
            }
    assert_int_equal(differences, 0);
    assert_int_equal(device_in_use(device), 0);
    device_release(device);
}

/* Forms that the defaults do not reach. */
static const struct { const char *id, *params; } others[] = {
    { "sinkhorn", "block=5,sort_net=means" },
    { "sinkhorn", "block=8,sort_net=means,top1=true" },
    { "linear", "feature_map=taylor2" },
    { "linear", "feature_map=hedgehog" },
    { "linear", "feature_map=hedgehog,hedgehog_norm=split" },
    { "linear", "feature_map=hedgehog,hedgehog_norm=exp" },
    { "linear", "feature_map=t2r" },
    { "linear", "feature_map=dpfp,nu=3" },
    { "linear", "feature_map=identity,normalize=false" },
    { "deltanet", "form=chunked,chunk=8,negative_eigenvalues=true" },
    { "deltanet", "qk_norm=none" },
    { "gated-deltanet", "form=chunked,chunk=16,norm=rms" },
    { "gated-deltanet", "gate=channel,form=chunked,chunk=5" },
    { "rwkv7", "form=chunked,chunk=9" },
    { "rwkv7", "form=recurrent,norm=group" },
    { "gla", "form=chunked,chunk=7,norm=rms" },
};

TEST(other_parameters)
{
    Device    *device = gpu_fixture_device();
    const Ops *ops = device_ops(device, ARITHMETIC_F32);

    differences = 0;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        for (int causal = 0; causal < 2; causal++) {
            Case c = shapes[0];

            c.causal = causal;
            c.params = others[i].params;
            assert_int_equal(check(mechanism_find(others[i].id), c, ops), 0);
        }
    assert_int_equal(differences, 0);
    device_release(device);
}

/* ---- failures in the middle ------------------------------------------------------------ */

/* Whichever act of the device fails, the run ends with an ordinary error, and gives all back. */
static void check_failing(const char *act, const char *id, ErrorCode code, int least)
{
    Case c = { .h = 2, .n = 20, .d = 4, .e = 4 };
    int  k = 0;
    bool over = false;

    for (; !over && k < 400; k++) {
        char    text[64];
        Device *device;
        Pair    p;

        snprintf(text, sizeof(text), "%s:%d", act, k);
        setenv("EMULATED_FAIL", text, 1);
        device = gpu_fixture_device();
        p = pair_new(mechanism_find(id), c, device_ops(device, ARITHMETIC_F32));
        over = p.gpu->err.code == ERR_NONE || strstr(p.gpu->err.text, "no operation");
        CHECK(over || p.gpu->err.code == code, "%s, %s: %s", id, text, p.gpu->err.text);
        pair_free(&p);
        assert_int_equal(device_in_use(device), 0);
        device_release(device);
    }
    unsetenv("EMULATED_FAIL");
    CHECK(over && k > least, "%s, %s: ended after %d", id, act, k);
}

TEST(failures_are_ordinary)
{
    static const char *const ids[] = { "full", "window", "reformer", "routing", "performer",
                                       "nystrom", "compressive" };

    if (gpu_fixture_is_real())
        skip();
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        check_failing("take", ids[i], ERR_NOMEM, 1);
        check_failing("launch", ids[i], ERR_UNSUPPORTED, 0);
        check_failing("finish", ids[i], ERR_UNSUPPORTED, 0);
    }
    check_failing("launch", "full", ERR_UNSUPPORTED, 1);
    check_failing("finish", "full", ERR_UNSUPPORTED, 1);
}

SUITE(NULL, NULL)
