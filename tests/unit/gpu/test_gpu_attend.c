/* test_gpu_attend.c -- pattern attention on the emulated device against the CPU's: shapes,
 * patterns, positions' terms and numbers that are none, in every arithmetic.
 */
#include "check.h"
#include "core/threads.h"
#include "gpu_attend_fixture.h"
#include "gpu_fixture.h"

static const Shape shapes[] = {
    { 1, 1, 1, 1, 1, 1 },       { 2, 1, 7, 7, 5, 3 },     { 3, 3, 64, 64, 64, 64 },
    { 1, 1, 97, 97, 7, 65 },    { 4, 2, 131, 131, 65, 17 }, { 2, 2, 5, 200, 16, 48 },
    { 6, 3, 13, 65, 128, 80 },  { 1, 1, 193, 193, 33, 130 }, { 2, 1, 1, 257, 256, 64 },
};
#define SHAPES (sizeof(shapes) / sizeof(*shapes))

static void every_shape_and_pattern(Arithmetic arithmetic, size_t step)
{
    for (size_t x = 0; x < SHAPES * MAKERS; x += step) {
        Case c = case_new(shapes[x % SHAPES], arithmetic);

        c.pattern = makers[x / SHAPES](&c, c.f.gpu.run->arena, pattern_shape(&c));
        case_check(&c, near_of(arithmetic));
        assert_int_equal(c.f.gpu.run->computed & ~COMPUTED_CUDNN, 1u << arithmetic);
        case_free(&c);
    }
}

TEST(in_f32)
{
    every_shape_and_pattern(ARITHMETIC_F32, 1);
}

TEST(in_bf16)
{
    every_shape_and_pattern(ARITHMETIC_BF16, 1);
}

TEST(in_f16)
{
    every_shape_and_pattern(ARITHMETIC_F16, 2);
}

TEST(in_tf32)
{
    every_shape_and_pattern(ARITHMETIC_TF32, 2);
}

/* What a block has of shared memory on GPUs of capability 8.6, 8.9 and 12.0, and of 8.0: what does
 * not fit there is computed in float32, and says so. */
TEST(less_shared_memory)
{
    static const char *const room[] = { "101376", "166912" };
    static const int64_t     longest[] = { 64, 128 }; /* vectors of 32-bit numbers */

    if (gpu_fixture_is_real())
        skip();
    for (int x = 0; x < 2; x++)
        for (int kind = ARITHMETIC_TF32; kind <= ARITHMETIC_F16; kind++)
            for (int64_t d = 64; d <= 256; d *= 2) {
                bool fits = kind != ARITHMETIC_TF32 || d <= longest[x];
                Case c;

                setenv("EMULATED_SHARED", room[x], 1);
                c = case_new((Shape){ 2, 1, 70, 130, d, d }, (Arithmetic)kind);
                c.pattern = causal(&c, c.f.gpu.run->arena, pattern_shape(&c));
                case_check(&c, near_of((Arithmetic)kind));
                unsetenv("EMULATED_SHARED");
                assert_int_equal(c.f.gpu.run->computed & ~COMPUTED_CUDNN,
                                 1u << (fits ? kind : ARITHMETIC_F32));
                case_free(&c);
            }
}

/* ---- long rows, cut among blocks -------------------------------------------------------- */

TEST(long_rows_are_cut)
{
    const Shape s = { 2, 1, 40, 3000, 16, 24 };

    for (int kind = ARITHMETIC_F32; kind <= ARITHMETIC_F16; kind++)
        for (size_t x = 0; x < MAKERS; x += 2) {
            Case c = case_new(s, (Arithmetic)kind);

            c.pattern = makers[x](&c, c.f.gpu.run->arena, pattern_shape(&c));
            case_check(&c, near_of((Arithmetic)kind));
            case_free(&c);
        }
}

TEST(long_rows_of_long_vectors_are_cut)
{
    for (int kind = ARITHMETIC_F32; kind <= ARITHMETIC_F16; kind++)
        for (int64_t d = 100; d <= 200; d += 100) {
            Case c = case_new((Shape){ 1, 1, 20, 2000, d, d }, (Arithmetic)kind);

            c.pattern = full(&c, c.f.gpu.run->arena, pattern_shape(&c));
            case_check(&c, near_of((Arithmetic)kind));
            case_free(&c);
        }
}

/* The first half of the keys, for every second row; the others see all. */
static Pattern *first_half(Case *c, Arena *a, PatternShape s)
{
    uint8_t *rows = arena_zalloc(a, c->s.n, 1), *cols = arena_zalloc(a, c->s.m, 1);

    for (int64_t i = 0; i < c->s.n; i += 2)
        rows[i] = 1;
    for (int64_t j = 0; j < c->s.m / 2; j++)
        cols[j] = 1;
    return pattern_union(a, pattern_rows(a, s, rows), pattern_cols(a, s, cols));
}

/* A row may see nothing of the last part, or of the first. */
TEST(parts_without_keys_are_joined)
{
    for (int kind = ARITHMETIC_F32; kind <= ARITHMETIC_F16; kind++)
        for (int x = 0; x < 2; x++) {
            Case c = case_new((Shape){ 2, 1, 40, 3000, 16, 24 }, (Arithmetic)kind);

            c.pattern = first_half(&c, c.f.gpu.run->arena, pattern_shape(&c));
            if (x)
                c.pattern = pattern_difference(c.f.gpu.run->arena,
                                               full(&c, c.f.gpu.run->arena, pattern_shape(&c)),
                                               c.pattern);
            case_check(&c, near_of((Arithmetic)kind));
            case_free(&c);
        }
}

TEST(threads_change_nothing)
{
    const Shape s = { 2, 2, 700, 700, 8, 8 };

    for (size_t x = 0; x < MAKERS; x++) {
        Case     c = case_new(s, ARITHMETIC_F32);
        Run     *r = c.f.gpu.run;
        TileList a, b;
        double   cells;

        c.pattern = makers[x](&c, r->arena, pattern_shape(&c));
        a = gpu_tiles(r, &c.in, c.pattern, 64, &cells);
        r->threads = threads_new(3);
        b = gpu_tiles(r, &c.in, c.pattern, 64, &cells);
        threads_free(r->threads);
        r->threads = NULL;
        assert_int_equal(a.shape, b.shape);
        for (int64_t row = 0; row < a.rows * (a.per_head ? 2 : 1); row++) {
            assert_int_equal(a.start[row + 1], b.start[row + 1]);
            for (int64_t y = a.start[row]; y < a.start[row + 1]; y++) {
                const TileRun *p = &a.runs[y], *q = &b.runs[y];

                assert_true(p->key == q->key && p->count == q->count);
                assert_true((p->mask < 0) == (q->mask < 0));
                if (p->mask >= 0)
                    assert_memory_equal(a.keep + p->mask * 64, b.keep + q->mask * 64, 512);
            }
        }
        case_free(&c);
    }
}

TEST(shapes_are_known)
{
    const Shape s = { 1, 1, 150, 150, 8, 8 };
    const int   expected[] = { TILES_FULL, TILES_CAUSAL, TILES_CAUSAL, TILES_ANY, TILES_ANY,
                               TILES_ANY, TILES_ANY, TILES_ANY, TILES_ANY };

    for (size_t x = 0; x < MAKERS; x++) {
        Case     c = case_new(s, ARITHMETIC_F32);
        double   cells;
        TileList t;

        c.pattern = makers[x](&c, c.f.gpu.run->arena, pattern_shape(&c));
        t = gpu_tiles(c.f.gpu.run, &c.in, c.pattern, 64, &cells);
        assert_int_equal(t.shape, expected[x]);
        case_free(&c);
    }
}

/* ---- terms ------------------------------------------------------------------------------ */

static double odd_cells(const void *context, int64_t head, int64_t i, int64_t j)
{
    (void)context;
    return (i + j + head) % 5 ? 0 : (i + j) % 2 ? 1.5 : log(3);
}

static double some_hidden(const void *context, int64_t head, int64_t i, int64_t j)
{
    (void)context;
    return (i * j + head) % 3 ? 0.25 : -(double)INFINITY;
}

TEST(terms_of_cells)
{
    const Shape s = { 2, 1, 150, 150, 16, 8 };

    for (int kind = ARITHMETIC_F32; kind <= ARITHMETIC_F16; kind++)
        for (int x = 0; x < 4; x++) {
            Case c = case_new(s, (Arithmetic)kind);

            c.in.cell_term = x % 2 ? some_hidden : odd_cells;
            c.pattern = makers[x < 2 ? 0 : 5](&c, c.f.gpu.run->arena, pattern_shape(&c));
            case_check(&c, near_of((Arithmetic)kind));
            case_free(&c);
        }
}

TEST(distances)
{
    const Shape s = { 4, 2, 90, 140, 24, 40 };

    for (int kind = ARITHMETIC_F32; kind <= ARITHMETIC_F16; kind++) {
        Case c = case_new(s, (Arithmetic)kind);

        c.in.distance = tensor_with_rank(fixture_normal(&c.f.gpu, 1, 2, s.n + s.m - 1, 1), 2);
        c.pattern = with_global(&c, c.f.gpu.run->arena, pattern_shape(&c));
        case_check(&c, near_of((Arithmetic)kind));
        assert_int_equal(c.f.gpu.run->computed, 1u << kind);
        case_free(&c);
    }
}

TEST(caps)
{
    const Shape s = { 4, 2, 90, 140, 24, 40 };

    for (int kind = ARITHMETIC_F32; kind <= ARITHMETIC_F16; kind++)
        for (int x = 0; x < 3; x++) {
            Case c = case_new(s, (Arithmetic)kind);

            if (x)
                c.in.distance = tensor_with_rank(fixture_normal(&c.f.gpu, 1, 2, s.n + s.m - 1, 1),
                                                 2);
            c.in.softcap = 0.75;
            c.in.distance_capped = x == 2;
            c.pattern = x ? with_global(&c, c.f.gpu.run->arena, pattern_shape(&c))
                          : full(&c, c.f.gpu.run->arena, pattern_shape(&c));
            case_check(&c, near_of((Arithmetic)kind));
            assert_int_equal(c.f.gpu.run->computed, 1u << kind);
            case_free(&c);
        }
}

/* Vectors of up to 128 and 256 numbers have kernels of their own. */
TEST(terms_of_long_vectors)
{
    for (int kind = ARITHMETIC_F32; kind <= ARITHMETIC_F16; kind++)
        for (int64_t d = 100; d <= 200; d += 100) {
            const Shape s = { 2, 1, 70, 130, d, d + 9 };
            Case        c = case_new(s, (Arithmetic)kind);

            c.in.distance = tensor_with_rank(fixture_normal(&c.f.gpu, 1, 2, s.n + s.m - 1, 1), 2);
            c.in.softcap = 0.75;
            c.pattern = with_holes(&c, c.f.gpu.run->arena, pattern_shape(&c));
            case_check(&c, near_of((Arithmetic)kind));
            assert_int_equal(c.f.gpu.run->computed, 1u << kind);
            case_free(&c);
        }
}

/* Terms that only the float32 kernel has: it is what ran, and the run says so. */
static void check_dot_terms(int64_t e)
{
    const Shape s = { 2, 1, 70, 90, 8, e };
    Case        c = case_new(s, ARITHMETIC_BF16);
    int32_t    *index = arena_alloc(c.f.gpu.run->arena, s.n + s.m - 1, sizeof(*index));

    for (int64_t x = 0; x < s.n + s.m - 1; x++)
        index[x] = (int32_t)(x % 11);
    c.in.row = (DistanceTerm){ c.in.q, fixture_normal(&c.f.gpu, 1, 11, s.d, 1), index };
    c.in.col = (DistanceTerm){ c.in.k, fixture_normal(&c.f.gpu, 2, 11, s.d, 1), index };
    c.in.value = (DistanceTerm){ .table = fixture_normal(&c.f.gpu, 1, 11, s.e, 1), .index = index };
    c.pattern = window(&c, c.f.gpu.run->arena, pattern_shape(&c));
    case_check(&c, NEAR_F32);
    assert_int_equal(c.f.gpu.run->computed, 1u << ARITHMETIC_F32);
    case_free(&c);
}

TEST(dot_terms_are_in_f32)
{
    check_dot_terms(12);
    check_dot_terms(PANEL_ROWS + 6); /* a thread has more columns */
}

/* ---- cuDNN: something that stands for it, right and wrong ---------------------------------- */

/* Whether the run says that it was used, of four patterns; bit x. */
static unsigned fused_used(const char *which, Arithmetic arithmetic)
{
    static const Shape these[] = { { 4, 2, 90, 90, 16, 24 }, { 2, 1, 40, 70, 8, 8 } };
    unsigned           used = 0;

    setenv("ATTNSCOPE_CUDNN", which, 1);
    for (int x = 0; x < 8; x++) {
        Case c = case_new(these[x / 4], arithmetic);

        c.pattern = makers[x % 4](&c, c.f.gpu.run->arena, pattern_shape(&c));
        case_check(&c, near_of(arithmetic));
        used |= (unsigned)((c.f.gpu.run->computed & COMPUTED_CUDNN) != 0) << x;
        text_free(&c.f.gpu.run->warnings);
        case_free(&c);
    }
    unsetenv("ATTNSCOPE_CUDNN");
    return used;
}

static bool has_cudnn(void)
{
    Device *device = gpu_fixture_device();
    bool    has = strncmp(device_cudnn(device), "cuDNN ", 6) == 0;

    device_release(device);
    return has;
}

/* On a GPU cuDNN itself, where it is installed. */
TEST(cudnn_is_used_where_it_fits)
{
    const char *given = gpu_fixture_is_real() ? "1" : "right";
    /* full, causal (n = m), causal from the first key; n < m: full only */
    unsigned    fits = !gpu_fixture_is_real() || has_cudnn() ? 0x17 : 0;

    assert_int_equal(fused_used(given, ARITHMETIC_BF16), fits);
    assert_int_equal(fused_used(given, ARITHMETIC_F16), fits);
    assert_int_equal(fused_used(given, ARITHMETIC_TF32), 0);
    assert_int_equal(fused_used("0", ARITHMETIC_BF16), 0);
    assert_int_equal(fused_used(gpu_fixture_is_real() ? "/nowhere.so" : "", ARITHMETIC_BF16), 0);
}

TEST(cudnn_is_not_trusted_blindly)
{
    if (gpu_fixture_is_real())
        skip();
    assert_int_equal(fused_used("wrong", ARITHMETIC_BF16), 0);
}

/* ---- scales, and numbers that are none -------------------------------------------------- */

TEST(scales)
{
    const Shape  s = { 1, 1, 80, 80, 8, 8 };
    const double scale[] = { 0, -0.5, 2 };

    for (int kind = ARITHMETIC_F32; kind <= ARITHMETIC_F16; kind++)
        for (int x = 0; x < 3; x++) {
            Case c = case_new(s, (Arithmetic)kind);

            c.in.scale = scale[x];
            c.pattern = causal(&c, c.f.gpu.run->arena, pattern_shape(&c));
            /* scores are twice as large as under 1/sqrt(d) at most, times sqrt(d) */
            case_check(&c, near_of((Arithmetic)kind) * (x == 2 ? 8 : 2));
            case_free(&c);
        }
}

/* A score that is no number makes its row so, and no other.  A value that is none does it to
 * the rows that see it; rows beside them in a tile give it the weight 0, which makes a NaN of
 * it too, here as on the CPU; no other tile does. */
TEST(no_numbers)
{
    const Shape s = { 1, 1, 400, 400, 8, 8 };

    for (int kind = ARITHMETIC_F32; kind <= ARITHMETIC_F16; kind++) {
        Case   c = case_new(s, (Arithmetic)kind);
        float *k = c.in.k.data, *v = c.in.v.data;

        k[40 * s.d + 3] = NAN;
        v[300 * s.e] = NAN;
        c.pattern = window(&c, c.f.gpu.run->arena, pattern_shape(&c));
        case_run(&c);
        for (int64_t i = 0; i < s.n; i++) {
            bool  hit = i >= 31 && i <= 49, mixed = i >= 291 && i <= 309;
            float out = ((float *)c.gpu.out.data)[i * s.e];

            assert_true(!isnan(((float *)c.cpu.lse.data)[i]) == !hit);
            assert_true(!isnan(((float *)c.gpu.lse.data)[i]) == !hit);
            if (hit || mixed)
                assert_true(isnan(out));
            else if (i < 128)
                assert_false(isnan(out));
        }
        case_free(&c);
    }
}

/* Scores are alike and large, so that the largest stays the same from tile to tile: then what a
 * row has is not to be rescaled by a hair either, or the first keys weigh less than the last ones
 * the longer the row is.  (A product and a difference as one operation do that: with FMA
 * 412 log2 e is off by 2.9e-5 from its own rounding.) */
TEST(large_scores_that_are_alike)
{
    const Shape s = { 1, 1, 768, 1024, 8, 8 };

    for (int kind = ARITHMETIC_F32; kind <= ARITHMETIC_F16; kind++) {
        Case  c = case_new(s, (Arithmetic)kind);
        float *q = c.in.q.data, *k = c.in.k.data, *v = c.in.v.data;

        for (int64_t x = 0; x < s.m * s.d; x++) {
            q[x % (s.n * s.d)] = x % s.d ? 0 : 2;
            k[x] = x % s.d ? 0 : 206;
            v[x] = (x < s.m * s.d / 2) == (x % s.d == 0);
        }
        c.in.scale = 1;
        c.pattern = full(&c, c.f.gpu.run->arena, pattern_shape(&c));
        setenv("ATTNSCOPE_CUDNN", "0", 1);
        case_run(&c);
        unsetenv("ATTNSCOPE_CUDNN");
        for (int64_t i = 0; i < s.n; i++) {
            const float *out = (float *)c.gpu.out.data + i * s.e;

            CHECK_BELOW(fabs((double)out[0] / (double)out[1] - 1), 1e-6, "halves in %s",
                        arithmetic_name((Arithmetic)kind));
        }
        case_free(&c);
    }
}

/* Of a block: 227 KiB on a Hopper, 163 on an Ampere, 99 on its small kin. */
TEST(what_needs_more_shared_memory_than_there_is)
{
    static const struct {
        int64_t    shared, d;
        Arithmetic asked, done;
    } tries[] = {
        { 163 << 10, 128, ARITHMETIC_TF32, ARITHMETIC_TF32 },
        { 163 << 10, 200, ARITHMETIC_TF32, ARITHMETIC_F32 },
        { 99 << 10, 64, ARITHMETIC_TF32, ARITHMETIC_TF32 },
        { 99 << 10, 128, ARITHMETIC_TF32, ARITHMETIC_F32 },
        { 99 << 10, 256, ARITHMETIC_BF16, ARITHMETIC_BF16 },
    };

    for (size_t x = 0; x < sizeof(tries) / sizeof(*tries); x++) {
        Case c = case_new((Shape){ 1, 1, 70, 70, tries[x].d, 16 }, tries[x].asked);

        if (c.f.device->info.shared > tries[x].shared)
            c.f.device->info.shared = tries[x].shared;
        c.pattern = full(&c, c.f.gpu.run->arena, pattern_shape(&c));
        setenv("ATTNSCOPE_CUDNN", "0", 1);
        case_check(&c, near_of(tries[x].asked));
        unsetenv("ATTNSCOPE_CUDNN");
        if (c.f.device->info.shared == tries[x].shared)
            assert_int_equal(c.f.gpu.run->computed, 1u << tries[x].done);
        case_free(&c);
    }
}

SUITE(NULL, NULL)
