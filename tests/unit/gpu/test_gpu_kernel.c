/* test_gpu_kernel.c -- feature maps and linear attention: the emulated device against the CPU. */
#include "unit/gpu_fixture.h"

typedef struct Sizes {
    int64_t n, m, d, f, e;
} Sizes;

static const Sizes sizes[] = {
    { 1, 1, 1, 1, 1 },     { 7, 7, 5, 3, 9 },    { 131, 131, 16, 33, 35 },
    { 5, 1100, 8, 16, 12 }, { 70, 70, 3, 70, 3 }, { 9, 9, 4, 300, 2 },
};
#define SIZES (sizeof(sizes) / sizeof(*sizes))

static Tensor widened(GpuFixture *f, Tensor x, bool wide)
{
    return wide ? tensor_convert(f->gpu.run->arena, x, DT_F64) : x;
}

/* ---- features ------------------------------------------------------------------ */

static int64_t feature_count(const Sizes *s, const FeatureMap *map)
{
    if (!map->project)
        return s->d;
    return map->kind == FEATURE_POSITIVE || map->kind == FEATURE_RELU ||
                   map->kind == FEATURE_ARC_COS
               ? s->f
               : 2 * s->f;
}

static void check_features(const Sizes *s, const FeatureMap *map, bool keys, bool spoiled)
{
    GpuFixture f = gpu_fixture_new(2, 6);
    Tensor     x = fixture_normal(&f.gpu, 2, s->n, s->d, 1);
    Tensor     w = widened(&f, fixture_normal(&f.gpu, 1, s->f, s->d, 1), map->wide);
    DType      dtype = map->wide ? DT_F64 : DT_F32;
    Tensor     y[2];

    if (spoiled) {
        tensor_f32(&x)[0] = NAN;
        tensor_f32(&x)[2 * s->d] = INFINITY;
    }
    for (int64_t t = 0; t < s->d; t++)
        tensor_f32(&x)[s->n / 2 * s->d + t] = spoiled ? tensor_f32(&x)[t + s->d] : 0;
    for (int side = 0; side < 2; side++)
        y[side] = fixture_tensor(&f.gpu, dtype, 2, s->n, feature_count(s, map));
    cpu_features(f.cpu.run, &x, &w, map, keys, &y[0]);
    gpu_features(f.gpu.run, &x, &w, map, keys, &y[1]);
    /* In float32 the projections are sums in another order; waves and exponentials keep that. */
    CHECK_BELOW(gpu_difference(&y[1], &y[0]), map->wide ? 1e-12 : 1e-5,
                "features kind %d n=%d wide %d keys %d", (int)map->kind, (int)s->n, map->wide,
                keys);
    gpu_fixture_free(&f);
}

TEST(projected_features)
{
    static const FeatureKind kinds[] = { FEATURE_POSITIVE, FEATURE_HYPERBOLIC, FEATURE_TRIG,
                                         FEATURE_RELU, FEATURE_SIN_COS, FEATURE_ARC_COS };

    for (size_t x = 0; x < SIZES; x++)
        for (int which = 0; which < 48; which++) {
            FeatureMap map = { .kind = kinds[which % 6], .input_scale = 0.5, .eps = 1e-3,
                               .stabilise = which / 6 & 1, .project = true, .amplitude = 0.7,
                               .wide = which / 12 & 1 };

            map.unit = map.kind >= FEATURE_SIN_COS && which / 6 & 1;
            if (!(x == 3 && which % 7)) /* the long one: some of them */
                check_features(&sizes[x], &map, which / 24 & 1, false);
        }
}

/* A block computes a row. */
TEST(features_of_long_rows)
{
    static const Sizes    many = { 3, 3, 4, 2100, 1 };
    static const FeatureKind kinds[] = { FEATURE_POSITIVE, FEATURE_TRIG, FEATURE_RELU };

    for (int which = 0; which < 12; which++) {
        FeatureMap map = { .kind = kinds[which % 3], .input_scale = 0.5, .eps = 1e-3,
                           .stabilise = which / 6, .project = true, .amplitude = 0.7,
                           .wide = which / 3 & 1 };

        check_features(&many, &map, which & 1, false);
    }
}

TEST(features_of_themselves)
{
    for (size_t x = 0; x < SIZES; x++)
        for (int kind = FEATURE_RELU; kind <= FEATURE_COLUMN_SOFTMAX; kind++)
            for (int wide = 0; wide < 2; wide++) {
                FeatureMap map = { .kind = (FeatureKind)kind, .input_scale = 1, .eps = 1e-3,
                                   .alpha = 0.8, .wide = wide };

                if (!wide || kind == FEATURE_RELU || kind == FEATURE_EXP ||
                    kind == FEATURE_SOFTMAX)
                    check_features(&sizes[x], &map, false,
                                   /* the CPU's exponential makes a number of a NaN */
                                   sizes[x].n > 5 && !wide && kind != FEATURE_ELU &&
                                       kind != FEATURE_EXP);
            }
}

/* exp(x) alone, and relative to another entry than the largest of a column, is beyond float. */
TEST(column_softmax_of_numbers_far_apart)
{
    FeatureMap map = { .kind = FEATURE_COLUMN_SOFTMAX, .input_scale = 1 };
    GpuFixture f = gpu_fixture_new(2, 6);
    Tensor     x = fixture_normal(&f.gpu, 2, 70, 5, 200), y[2];

    for (int side = 0; side < 2; side++)
        y[side] = fixture_tensor(&f.gpu, DT_F32, 2, 70, 5);
    cpu_features(f.cpu.run, &x, NULL, &map, true, &y[0]);
    gpu_features(f.gpu.run, &x, NULL, &map, true, &y[1]);
    CHECK_BELOW(gpu_difference(&y[1], &y[0]), 1e-5, "softmax of columns");
    gpu_fixture_free(&f);
}

/* ---- linear attention ------------------------------------------------------------ */

typedef struct Case {
    GpuFixture   f;
    LinearAttend in;
    LinearResult out[2];
} Case;

static Tensor two(Tensor t)
{
    return tensor_with_rank(t, 2);
}

static Case case_new(const Sizes *s, bool wide)
{
    Case     c = { .f = gpu_fixture_new(2, 21) };
    Fixture *f = &c.f.gpu;
    Tensor   fq = fixture_normal(f, 2, s->n, s->f, 1), fk = fixture_normal(f, 2, s->m, s->f, 1);

    for (int64_t x = 0; x < tensor_count(&fq); x++)
        tensor_f32(&fq)[x] = fabsf(tensor_f32(&fq)[x]);
    for (int64_t x = 0; x < tensor_count(&fk); x++)
        tensor_f32(&fk)[x] = fabsf(tensor_f32(&fk)[x]);
    c.in = (LinearAttend){ .fq = widened(&c.f, fq, wide), .fk = widened(&c.f, fk, wide),
                           .v = fixture_normal(f, 1, s->m, s->e, 1), .eps = 1e-2, .chunk = 50 };
    for (int side = 0; side < 2; side++) {
        c.out[side].out = fixture_tensor(f, DT_F32, 2, s->n, s->e);
        c.out[side].memory = fixture_tensor(f, DT_F32, 2, s->f, s->e);
        c.out[side].denominator = two(fixture_tensor(f, DT_F32, 1, 2, s->n));
        c.out[side].divisor = two(fixture_tensor(f, DT_F64, 1, 2, s->n));
    }
    return c;
}

/* Sums of positive features: as large as their number, off by its root times the rounding. */
static void check_case(Case *c, const char *what)
{
    double size = sqrt((double)c->in.fk.shape[1]), wide = c->in.fq.dtype == DT_F64 ? 1e-2 : 1;

    cpu_linear_attend(c->f.cpu.run, &c->in, &c->out[0]);
    gpu_linear_attend(c->f.gpu.run, &c->in, &c->out[1]);
    CHECK_BELOW(gpu_difference(&c->out[1].out, &c->out[0].out), 1e-5 * fmax(wide, 0.1),
                "%s form %d causal %d n=%d: out", what, (int)c->in.form, c->in.causal,
                (int)c->in.fq.shape[1]);
    CHECK_BELOW(gpu_difference(&c->out[1].memory, &c->out[0].memory), 2e-6 * size * wide + 1e-6,
                "%s form %d n=%d: memory", what, (int)c->in.form, (int)c->in.fq.shape[1]);
    CHECK_BELOW(gpu_difference(&c->out[1].denominator, &c->out[0].denominator), 2e-6,
                "%s form %d n=%d: denominator", what, (int)c->in.form, (int)c->in.fq.shape[1]);
    CHECK_BELOW(gpu_difference(&c->out[1].divisor, &c->out[0].divisor),
                c->in.fq.dtype == DT_F64 ? 1e-12 : 2e-6, "%s form %d: divisor", what,
                (int)c->in.form);
    gpu_fixture_free(&c->f);
}

TEST(linear_forms)
{
    for (size_t x = 0; x < SIZES; x++)
        for (int which = 0; which < 16; which++) {
            Case c = case_new(&sizes[x], which & 8);

            c.in.causal = which & 4;
            c.in.form = (LinearForm)(which & 3);
            if (c.in.causal && sizes[x].n != sizes[x].m)
                gpu_fixture_free(&c.f);
            else
                check_case(&c, "linear");
        }
}

/* Rounded factors are off by 2^-9; sums of positive products are off by less, relatively. */
TEST(linear_forms_in_bf16)
{
    for (int which = 0; which < 8; which++) {
        Case       c = case_new(&sizes[2], false);
        const Ops *ops = device_ops(c.f.device, ARITHMETIC_BF16);

        c.in.causal = which & 4;
        c.in.form = (LinearForm)(which & 3);
        c.f.gpu.run->ops = ops;
        cpu_linear_attend(c.f.cpu.run, &c.in, &c.out[0]);
        gpu_linear_attend(c.f.gpu.run, &c.in, &c.out[1]);
        CHECK_BELOW(gpu_difference(&c.out[1].out, &c.out[0].out), 1e-2, "form %d causal %d",
                    (int)c.in.form, c.in.causal);
        assert_int_equal(c.f.gpu.run->computed, 1u << (c.in.causal && c.in.form != LINEAR_MATRIX &&
                                                               c.in.form != LINEAR_CHUNKED
                                                           ? ARITHMETIC_F32
                                                           : ARITHMETIC_BF16));
        gpu_fixture_free(&c.f);
    }
}

TEST(every_denominator)
{
    for (int which = 0; which < 10; which++) {
        Case c = case_new(&sizes[1], which & 1);

        c.in.denominator = (DenominatorForm)(which / 2);
        c.in.eps = which / 2 == DENOMINATOR_FLOOR ? 15 : 1e-2;
        check_case(&c, "denominator");
    }
}

/* Denominators of both signs, near 0 and far from it: the guard leaves no divisor below it. */
TEST(guards_of_both_signs)
{
    for (int wide = 0; wide < 2; wide++) {
        Case    c = case_new(&sizes[2], false);
        float  *fq = tensor_f32(&c.in.fq), *fk = tensor_f32(&c.in.fk);
        int64_t low = 0;

        for (int64_t x = 0; x < tensor_count(&c.in.fq); x++)
            fq[x] *= x / sizes[2].f % 2 ? -0.02f * (float)(x / sizes[2].f % 7) : 0.01f;
        for (int64_t x = 0; x < tensor_count(&c.in.fk); x++)
            fk[x] *= x % sizes[2].f ? 0.02f : 0; /* but for this: the first rows are at the guard */
        fk[0] = 0.5f;
        for (int64_t x = 0; x < 2 * sizes[2].f; x++)
            fq[x] = x == 0 ? 1 : x == sizes[2].f ? -1 : 0;
        c.in.fq = widened(&c.f, c.in.fq, wide);
        c.in.fk = widened(&c.f, c.in.fk, wide);
        c.in.denominator = DENOMINATOR_GUARD;
        c.in.eps = 0.5;
        cpu_linear_attend(c.f.cpu.run, &c.in, &c.out[0]);
        assert_true(((double *)c.out[0].divisor.data)[0] == 1.5);
        assert_true(((double *)c.out[0].divisor.data)[1] == 0.5);
        for (int64_t i = 0; i < 2 * sizes[2].n; i++) {
            double divisor = ((double *)c.out[0].divisor.data)[i];

            assert_true(fabs(divisor) >= 0.5);
            low += divisor < -0.5;
        }
        assert_true(low > 20);
        check_case(&c, "guard");
    }
}

TEST(chunks_of_every_size)
{
    static const int64_t chunks[] = { 1, 2, 64, 130, 131, 1000 };

    for (int which = 0; which < 12; which++) {
        Case c = case_new(&sizes[2], which & 1);

        c.in.causal = true;
        c.in.form = LINEAR_CHUNKED;
        c.in.chunk = chunks[which / 2];
        check_case(&c, "chunk");
    }
}

/* A block computes a row: of features, and of a chunk. */
TEST(long_rows_of_features_and_chunks)
{
    static const Sizes many = { 3, 3, 1, 2100, 2 }, chunk = { 2100, 2100, 1, 2, 1 };

    for (int wide = 0; wide < 2; wide++) {
        Case c = case_new(&many, wide);

        check_case(&c, "many features");
        c = case_new(&many, wide);
        c.in.denominator = DENOMINATOR_ADD_FEATURES;
        check_case(&c, "many features in the denominator");
        c = case_new(&chunk, wide);
        c.in.causal = true;
        c.in.form = LINEAR_CHUNKED;
        c.in.chunk = chunk.n;
        check_case(&c, "a long chunk");
    }
}

TEST(gates)
{
    for (size_t x = 0; x < SIZES; x++) {
        Case c = case_new(&sizes[x], true);

        c.in.causal = true;
        c.in.gates = two(fixture_tensor(&c.f.gpu, DT_F64, 1, 2, sizes[x].n));
        for (int64_t i = 0; i < 2 * sizes[x].n; i++)
            ((double *)c.in.gates.data)[i] = rng_uniform(&c.f.gpu.rng);
        if (sizes[x].n == sizes[x].m)
            check_case(&c, "gates");
        else
            gpu_fixture_free(&c.f);
    }
}

/* The lanes of a column hold 4, 8, 16 or 32 features each in registers, or as many as there are. */
TEST(features_of_every_count_of_registers)
{
    static const int64_t counts[] = { 32, 33, 64, 65, 128, 129, 256, 257 };

    for (int which = 0; which < 24; which++) {
        Sizes s = { 6, 6, 1, counts[which % 8], 3 };
        Case  c = case_new(&s, which >= 8);

        c.in.causal = true;
        c.in.form = LINEAR_RECURRENT;
        if (which >= 16) {
            c.in.gates = two(fixture_tensor(&c.f.gpu, DT_F64, 1, 2, s.n));
            for (int64_t i = 0; i < 2 * s.n; i++)
                ((double *)c.in.gates.data)[i] = rng_uniform(&c.f.gpu.rng);
        }
        check_case(&c, "registers");
    }
}

/* Many features are taken in slices. */
TEST(features_beyond_a_slice)
{
    static const Sizes many = { 3, 3, 1, RECUR_ROWS + 5, 2 };

    for (int which = 0; which < 3; which++) {
        Case c = case_new(&many, which > 0);

        c.in.causal = true;
        c.in.form = LINEAR_RECURRENT;
        if (which == 2) {
            c.in.gates = two(fixture_tensor(&c.f.gpu, DT_F64, 1, 2, many.n));
            for (int64_t i = 0; i < 2 * many.n; i++)
                ((double *)c.in.gates.data)[i] = rng_uniform(&c.f.gpu.rng);
        }
        check_case(&c, "slices");
    }
}

/* Values and outputs in double, chunk by chunk. */
TEST(all_in_double)
{
    Case c = case_new(&sizes[2], true);

    c.in.causal = c.in.wide = true;
    c.in.form = LINEAR_CHUNKED;
    c.in.chunk = 64;
    c.in.v = tensor_convert(c.f.gpu.run->arena, c.in.v, DT_F64);
    for (int side = 0; side < 2; side++)
        c.out[side].out = fixture_tensor(&c.f.gpu, DT_F64, 2, sizes[2].n, sizes[2].e);
    cpu_linear_attend(c.f.cpu.run, &c.in, &c.out[0]);
    gpu_linear_attend(c.f.gpu.run, &c.in, &c.out[1]);
    CHECK_BELOW(gpu_difference(&c.out[1].out, &c.out[0].out), 1e-12, "all in double");
    gpu_fixture_free(&c.f);
}

SUITE(NULL, NULL)
