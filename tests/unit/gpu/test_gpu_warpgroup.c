/* test_gpu_warpgroup.c -- attention by Hopper's warpgroups (ATTNSCOPE_WGMMA=1) against the CPU's:
 * sizes, patterns, rows without keys, and what goes to other kernels.
 *
 * Each case makes a device of its own, so each is also compared with our kernel for all GPUs.
 */
#include "gpu_attend_fixture.h"
#include "gpu_fixture.h"

#define SWITCH "ATTNSCOPE_WGMMA"
#define OTHERS "ATTNSCOPE_CUDNN"

static int take_it(void **state)
{
    (void)state;
    setenv(SWITCH, "1", 1);
    setenv(OTHERS, "0", 1);
    return 0;
}

static int leave_it(void **state)
{
    (void)state;
    unsetenv(SWITCH);
    unsetenv(OTHERS);
    unsetenv("EMULATED_FAIL");
    return 0;
}

static bool was_taken(const Case *c)
{
    return c->f.gpu.run->computed & COMPUTED_WARPGROUP;
}

static bool is_hopper(const Case *c)
{
    const DeviceInfo *info = device_info(c->f.device);

    return info->major == 9 && info->minor == 0;
}

/* The case is near the CPU's, and by this kernel where the GPU has it. */
static void check(Shape s, Arithmetic arithmetic, Maker maker)
{
    Case c = case_new(s, arithmetic);

    c.pattern = maker(&c, c.f.gpu.run->arena, pattern_shape(&c));
    case_check(&c, near_of(arithmetic));
    assert_true(was_taken(&c) == is_hopper(&c));
    case_free(&c);
}

/* Rows 64, 65, ... see all keys; the others the first block and the last: a warpgroup passes more
 * tiles by than there are stages. */
static Pattern *far_apart(Case *c, Arena *a, PatternShape s)
{
    uint8_t *rows = arena_zalloc(a, c->s.n, 1), *cols = arena_zalloc(a, c->s.m, 1);

    for (int64_t i = 64; i < c->s.n; i++)
        rows[i] = 1;
    for (int64_t j = 0; j < c->s.m; j++)
        cols[j] = j < 64 || j >= c->s.m - 64;
    return pattern_union(a, pattern_rows(a, s, rows), pattern_cols(a, s, cols));
}

/* One block of keys in four for each block of queries, by head. */
static Pattern *blocks(Case *c, Arena *a, PatternShape s)
{
    int64_t      count = (c->s.n + 63) / 64;
    PatternShape few = { .heads = c->s.h, .n = count, .m = count };
    Tensor       table = pattern_draw_random(a, few, (count + 3) / 4, 1, "blocks", NULL, NULL);

    return pattern_tile(a, s, 64, pattern_table(a, few, &table, COMPONENT_BLOCK));
}

TEST(every_remainder)
{
    for (int64_t n = 64; n < 128; n++) {
        int64_t d = n % 2 ? 64 : 128;
        Shape   s = { 1, 1, n, n, d, d };

        check(s, n / 2 % 2 ? ARITHMETIC_BF16 : ARITHMETIC_F16, makers[n % MAKERS]);
        check(s, n / 2 % 2 ? ARITHMETIC_F16 : ARITHMETIC_BF16, makers[(n + 4) % MAKERS]);
    }
}

TEST(every_shape_and_pattern)
{
    static const Shape shapes[] = {
        { 1, 1, 1, 1, 1, 1 },         { 2, 1, 7, 7, 5, 3 },       { 4, 2, 131, 131, 65, 17 },
        { 2, 2, 5, 200, 16, 48 },     { 6, 3, 13, 65, 128, 80 },  { 1, 1, 193, 193, 33, 128 },
        { 2, 1, 257, 129, 100, 64 },
    };
    const size_t count = sizeof(shapes) / sizeof(*shapes);

    for (size_t x = 0; x < count * MAKERS; x++)
        check(shapes[x % count], x % 2 ? ARITHMETIC_F16 : ARITHMETIC_BF16, makers[x / count]);
}

TEST(tiles_are_passed_by)
{
    const Shape s = { 2, 2, 200, 1500, 128, 128 }, square = { 2, 1, 700, 700, 64, 64 };

    check(s, ARITHMETIC_BF16, far_apart);
    check(square, ARITHMETIC_F16, blocks);
    check(square, ARITHMETIC_BF16, far_apart);
}

TEST(long_rows_are_cut)
{
    const Shape s = { 2, 1, 40, 3000, 16, 24 };

    for (size_t x = 0; x < MAKERS; x += 2)
        check(s, ARITHMETIC_BF16, makers[x]);
}

/* Only where the memory and the patience of an emulator do not end: sizes of real work. */
TEST(large_on_a_gpu)
{
    static const Shape shapes[] = {
        { 16, 16, 2048, 2048, 128, 128 }, { 16, 4, 4096, 4096, 64, 64 },
        { 3, 3, 5003, 5003, 128, 96 },    { 8, 8, 1000, 4096, 80, 128 },
    };

    if (!gpu_fixture_is_real())
        skip();
    for (size_t x = 0; x < sizeof(shapes) / sizeof(*shapes); x++)
        for (int kind = ARITHMETIC_BF16; kind <= ARITHMETIC_F16; kind++) {
            for (size_t y = 0; y < MAKERS; y++)
                check(shapes[x], (Arithmetic)kind, makers[y]);
            check(shapes[x], (Arithmetic)kind, far_apart);
            if (shapes[x].n == shapes[x].m)
                check(shapes[x], (Arithmetic)kind, blocks);
        }
}

/* A score that is no number makes its row so; a value that is none the rows that see it. */
TEST(no_numbers)
{
    const Shape s = { 1, 1, 400, 400, 64, 64 };
    Case        c = case_new(s, ARITHMETIC_BF16);

    ((float *)c.in.k.data)[40 * s.d + 3] = NAN;
    ((float *)c.in.v.data)[300 * s.e] = NAN;
    c.pattern = window(&c, c.f.gpu.run->arena, pattern_shape(&c));
    case_run(&c);
    assert_true(was_taken(&c) == is_hopper(&c));
    for (int64_t i = 0; i < s.n; i++) {
        bool  hit = i >= 31 && i <= 49, mixed = i >= 291 && i <= 309;
        float out = ((float *)c.gpu.out.data)[i * s.e];

        assert_true(!isnan(((float *)c.gpu.lse.data)[i]) == !hit);
        if (hit || mixed)
            assert_true(isnan(out));
        else if (i < 192)
            assert_false(isnan(out));
    }
    case_free(&c);
}

/* ---- what goes to other kernels ------------------------------------------------------------- */

static double some_terms(const void *context, int64_t head, int64_t i, int64_t j)
{
    (void)context;
    return (i + j + head) % 5 ? 0 : 1.5;
}

/* What of a call this kernel does not do: it is done right, and by another. */
TEST(others_do_the_rest)
{
    enum { size, scale, terms, distance, tf32, f32, cases };

    for (int x = 0; x < cases; x++) {
        const Shape s = { 2, 1, 90, 90, x == size ? 130 : 64, 24 };
        Arithmetic  kind = x == tf32 ? ARITHMETIC_TF32 : x == f32 ? ARITHMETIC_F32
                                                                  : ARITHMETIC_BF16;
        Case        c = case_new(s, kind);

        c.in.scale = x == scale ? -0.1 : c.in.scale;
        c.in.cell_term = x == terms ? some_terms : NULL;
        if (x == distance)
            c.in.distance = tensor_with_rank(fixture_normal(&c.f.gpu, 1, 2, s.n + s.m - 1, 1), 2);
        c.pattern = window(&c, c.f.gpu.run->arena, pattern_shape(&c));
        case_check(&c, near_of(kind));
        assert_false(was_taken(&c));
        assert_int_equal(c.f.gpu.run->warnings.length, 0);
        case_free(&c);
    }
}

static const DeviceApi *real;
static int              refused, asked;

static void ask(const WarpgroupCall *call)
{
    asked++;
    refused += real->attend_warpgroup(call) == WARPGROUP_DECLINED;
}

/* The call, and before it others, each with one thing that the kernel does not do. */
static int with_others_first(const WarpgroupCall *call)
{
    float         word = 0;
    WarpgroupCall other = *call;

    other.attend.size = 256;
    ask(&other);
    other = *call;
    other.attend.tiles.height = 64;
    ask(&other);
    other = *call;
    other.attend.distance.data = &word;
    ask(&other);
    other = *call;
    other.attend.tiles.extra = &word;
    ask(&other);
    other = *call;
    other.attend.cap.top = 1;
    ask(&other);
    other = *call;
    other.attend.scale = 0;
    ask(&other);
    return real->attend_warpgroup(call);
}

/* The host does not ask for it either; a kernel of its own says so too. */
TEST(the_kernel_refuses_the_rest)
{
    const Shape s = { 2, 2, 150, 150, 64, 64 };
    Case        c = case_new(s, ARITHMETIC_BF16);
    DeviceApi   other = *c.f.device->api;

    real = c.f.device->api;
    refused = asked = 0;
    other.attend_warpgroup = with_others_first;
    c.f.device->api = &other;
    c.pattern = causal(&c, c.f.gpu.run->arena, pattern_shape(&c));
    case_check(&c, NEAR_BF16);
    assert_true(asked > 0);
    assert_int_equal(refused, asked);
    text_free(&c.f.gpu.run->warnings);
    c.f.device->api = real;
    case_free(&c);
}

TEST(not_unless_asked_for)
{
    static const char *const off[] = { "0", "", "auto" };
    const Shape              s = { 1, 1, 70, 70, 64, 64 };

    for (int x = 0; x < 4; x++) {
        Case c = case_new(s, ARITHMETIC_BF16);

        if (x < 3)
            setenv(SWITCH, off[x], 1);
        else
            unsetenv(SWITCH);
        c.pattern = full(&c, c.f.gpu.run->arena, pattern_shape(&c));
        case_check(&c, NEAR_BF16);
        assert_false(was_taken(&c));
        if (is_hopper(&c))
            assert_non_null(strstr(device_way_text(c.f.device, WAY_WARPGROUP), SWITCH "=1"));
        case_free(&c);
    }
    take_it(NULL);
}

/* One that computes something else, and a GPU without warpgroups: our other kernel's results, and
 * the run says why. */
TEST(what_cannot_be_used_is_said)
{
    static const char *const fails[] = { "wgmma", "hopper" };
    static const char *const says[] = { "differs from our own kernel's", "this is 8.0" };
    const Shape              s = { 2, 2, 150, 150, 64, 64 };

    if (gpu_fixture_is_real())
        skip();
    for (int x = 0; x < 2; x++) {
        Case c = case_new(s, ARITHMETIC_BF16);

        setenv("EMULATED_FAIL", fails[x], 1);
        c.pattern = causal(&c, c.f.gpu.run->arena, pattern_shape(&c));
        case_check(&c, NEAR_BF16);
        assert_false(was_taken(&c));
        assert_non_null(strstr(c.f.gpu.run->warnings.data, says[x]));
        text_free(&c.f.gpu.run->warnings);
        case_free(&c);
        unsetenv("EMULATED_FAIL");
    }
}

/* Rows without keys get a log-sum-exp, which are a third of those of with_holes(). */
static int finite_everywhere(const WarpgroupCall *call)
{
    int    code = real->attend_warpgroup(call);
    float *lse = call->attend.lse.data;

    code = code ? code : real->finish();
    for (int64_t i = 0; i < call->attend.heads * call->attend.n; i++)
        lse[i] = lse[i] == -INFINITY ? 0 : lse[i];
    return code;
}

TEST(rows_without_keys_are_compared)
{
    const Shape s = { 2, 2, 150, 150, 64, 64 };
    Case        c = case_new(s, ARITHMETIC_BF16);
    DeviceApi   other = *c.f.device->api;

    real = c.f.device->api;
    other.attend_warpgroup = finite_everywhere;
    c.f.device->api = &other;
    c.pattern = with_holes(&c, c.f.gpu.run->arena, pattern_shape(&c));
    case_check(&c, NEAR_BF16);
    assert_false(was_taken(&c));
    if (is_hopper(&c))
        assert_non_null(strstr(c.f.gpu.run->warnings.data, "differs from our own kernel's"));
    text_free(&c.f.gpu.run->warnings);
    c.f.device->api = real;
    case_free(&c);
}

SUITE(take_it, leave_it)
