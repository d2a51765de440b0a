/* test_gpu_entries.c -- operations on entries, rows and columns (attn/ops/rows.h): the CPU's
 * against plain loops, the emulated device's against the CPU's. */
#include "attn/ops/dense.h"
#include "unit/gpu_fixture.h"

/* t seen with the last two axes exchanged. */
static Tensor turned(Tensor t)
{
    Tensor y = t;

    y.shape[1] = t.shape[2];
    y.shape[2] = t.shape[1];
    y.stride[1] = t.stride[2];
    y.stride[2] = t.stride[1];
    return y;
}

static double at(const Tensor *t, int64_t head, int64_t heads, int64_t i, int64_t c)
{
    int64_t place = head * t->shape[0] / heads * t->stride[0] +
                    (t->shape[1] > 1 ? i * t->stride[1] : 0) +
                    (t->shape[2] > 1 ? c * t->stride[2] : 0);

    return t->dtype == DT_F64   ? ((double *)t->data)[place]
           : t->dtype == DT_F32 ? (double)((float *)t->data)[place]
                                : (double)((int32_t *)t->data)[place];
}

static Tensor wide_normal(GpuFixture *f, int64_t a, int64_t b, int64_t c)
{
    return tensor_convert(f->gpu.run->arena, fixture_normal(&f->gpu, a, b, c, 1), DT_F64);
}

/* ---- entries ------------------------------------------------------------------ */

static double expected(EntryKind kind, double by, double x, double z, double y)
{
    switch (kind) {
    case ENTRY_EXP: return exp(x);
    case ENTRY_DIVIDE: return x / by;
    case ENTRY_SCALE: return by * x;
    case ENTRY_SHIFT: return x + by;
    case ENTRY_FILL: return by;
    case ENTRY_SUM: return x + by * z;
    case ENTRY_PRODUCT: return by * x * z;
    case ENTRY_QUOTIENT: return x / z;
    case ENTRY_GATE: return x / (1 + exp(-z));
    case ENTRY_WHERE: return fabs(z) > 0 ? x : y;
    case ENTRY_LEAST: return fmin(x, by);
    case ENTRY_MOST: return fmax(x, by);
    case ENTRY_RINT: return nearbyint(x);
    case ENTRY_RELU: return x > 0 ? x : 0;
    case ENTRY_GELU_TANH: return x * gelu_gate(x, GELU_TANH);
    case ENTRY_GELU_ERF: return x * gelu_gate(x, GELU_ERF);
    case ENTRY_SIGMOID: return 1 / (1 + exp(-x));
    case ENTRY_ELU: return x > 0 ? x + 1 : exp(x);
    case ENTRY_SOFTPLUS: return log1p(exp(by * x)) / by;
    case ENTRY_ROUND: return precision_round(precision_of((PrecisionFormat)by), x);
    default: return x;
    }
}

static double by_of(EntryKind kind)
{
    return kind == ENTRY_ROUND ? PRECISION_BF16 : 1.5;
}

/* One and the other side's results, and what they should be, have the same entries. */
static void check_entries(GpuFixture *f, Tensor x, Tensor z, EntryKind kind, Tensor one,
                          Tensor other, const char *what)
{
    Tensor  before = fixture_tensor(&f->cpu, DT_F64, one.shape[0], one.shape[1], one.shape[2]);
    int64_t h = one.shape[0], n = one.shape[1], w = one.shape[2];
    double  worst = 0, by = by_of(kind);

    for (int64_t t = 0; t < h * n * w; t++)
        ((double *)before.data)[t] = at(&one, t / (n * w), h, t / w % n, t % w);
    op_entries_of(f->cpu.run, x, z, kind, by, one);
    op_entries_of(f->gpu.run, x, z, kind, by, other);
    for (int64_t t = 0; t < h * n * w; t++) {
        int64_t head = t / (n * w), i = t / w % n, c = t % w;
        double  want = expected(kind, by, x.data ? at(&x, head, h, i, c) : 0,
                                z.data ? at(&z, head, h, i, c) : 0, ((double *)before.data)[t]);
        double  got = at(&one, head, h, i, c), device = at(&other, head, h, i, c);

        worst = fmax(worst, fabs(got - want) / fmax(1, fabs(want)));
        worst = fmax(worst, fabs(device - want) / fmax(1, fabs(want)));
    }
    CHECK_BELOW(worst, one.dtype == DT_F32 ? 1e-7 : 1e-14, "entries %s kind %d", what, (int)kind);
}

typedef struct Shape {
    int64_t h, shared, n, w;
} Shape;

TEST(entries)
{
    static const Shape shapes[] = { { 1, 1, 1, 1 }, { 4, 2, 3, 5 }, { 2, 1, 70, 33 },
                                    { 1, 1, 1, 9000 }, { 3, 3, 40, 1 } };

    for (int kind = ENTRY_CAST; kind <= ENTRY_ROUND; kind++)
        for (size_t s = 0; s < sizeof(shapes) / sizeof(*shapes); s++) {
            Shape      p = shapes[s];
            GpuFixture f = gpu_fixture_new(p.h, 3 + s);
            Tensor     x = fixture_normal(&f.gpu, p.shared, p.n, p.w, 1);
            Tensor     row = fixture_normal(&f.gpu, 1, 1, p.w, 1), wide = row;
            Tensor     column = wide_normal(&f, p.h, p.n, 1);
            Tensor     one = wide_normal(&f, p.h, p.n, p.w), other = one, small_one, small_other;

            other.data = tensor_convert(f.gpu.run->arena, one, DT_F32).data;
            other = tensor_convert(f.gpu.run->arena, tensor_of(DT_F32, 3, one.shape, other.data),
                                   DT_F64);
            op_entries(f.cpu.run, other, ENTRY_CAST, 0, one);
            tensor_f32(&row)[0] = kind == ENTRY_WHERE ? 0 : tensor_f32(&row)[0];
            wide.rank = 1; /* a vector of the last axis */
            wide.shape[0] = p.w;
            wide.stride[0] = 1;
            check_entries(&f, x, row, (EntryKind)kind, one, other, "by a row");
            op_entries_of(f.cpu.run, x, wide, (EntryKind)kind, by_of((EntryKind)kind), one);
            op_entries_of(f.gpu.run, x, row, (EntryKind)kind, by_of((EntryKind)kind), other);
            CHECK_BELOW(gpu_difference(&other, &one), 1e-14, "by a vector, kind %d", kind);
            check_entries(&f, x, column, (EntryKind)kind, one, other, "by a column");
            small_one = fixture_normal(&f.gpu, p.h, p.n, p.w, 1);
            small_other = tensor_convert(f.gpu.run->arena, tensor_convert(f.gpu.run->arena,
                                         small_one, DT_F64), DT_F32);
            check_entries(&f, one, x, (EntryKind)kind, small_one, small_other, "in float");
            gpu_fixture_free(&f);
        }
}

/* Transposed, in parts of a larger tensor, in place, and whole numbers. */
TEST(entries_with_strides)
{
    GpuFixture f = gpu_fixture_new(2, 5);
    Tensor     x = fixture_normal(&f.gpu, 2, 45, 70, 1), none = { .rank = 0 }, part;
    Tensor     one = fixture_tensor(&f.cpu, DT_F64, 2, 70, 45);
    Tensor     other = fixture_tensor(&f.gpu, DT_F64, 2, 70, 45);
    Tensor     ints = fixture_tensor(&f.gpu, DT_I32, 2, 70, 45), device = ints;

    check_entries(&f, turned(x), none, ENTRY_CAST, one, other, "turned");
    check_entries(&f, turned(x), turned(x), ENTRY_PRODUCT, one, other, "turned twice");
    check_entries(&f, x, none, ENTRY_SCALE, turned(one), turned(other), "turned result");
    op_entries(f.cpu.run, one, ENTRY_CAST, 0, other);
    op_entries_of(f.cpu.run, one, one, ENTRY_SUM, 2, one);
    op_entries_of(f.gpu.run, other, other, ENTRY_SUM, 2, other);
    assert_true(gpu_difference(&other, &one) == 0);
    part = tensor_rows(one, 3, 9);
    check_entries(&f, tensor_rows(one, 20, 9), none, ENTRY_CAST, part, tensor_rows(other, 3, 9),
                  "rows");
    device.data = fixture_tensor(&f.gpu, DT_I32, 2, 70, 45).data;
    op_entries(f.cpu.run, none, ENTRY_FILL, 7, ints);
    op_entries(f.gpu.run, none, ENTRY_FILL, 7, device);
    assert_memory_equal(ints.data, device.data, (size_t)tensor_bytes(&ints));
    op_entries_of(f.cpu.run, ints, ints, ENTRY_SUM, 2, ints);
    op_entries_of(f.gpu.run, device, device, ENTRY_SUM, 2, device);
    assert_memory_equal(ints.data, device.data, (size_t)tensor_bytes(&ints));
    assert_int_equal(tensor_i32(&ints)[5], 21);
    gpu_fixture_free(&f);
}

/* ---- rows ---------------------------------------------------------------------- */

static void check_standardised(int64_t rows, int64_t a, int64_t c, bool across, bool lines)
{
    GpuFixture f = gpu_fixture_new(1, 9);
    Tensor     x = fixture_normal(&f.gpu, across ? a : rows, across ? rows : a, c, 2), y = x;
    Tensor     gain = fixture_normal(&f.gpu, 1, lines ? a : 1, c, 1);
    Tensor     bias = fixture_normal(&f.gpu, 1, lines ? a : 1, c, 1);
    Tensor     one, other;

    if (across) { /* a row lies across the heads */
        y.shape[0] = rows;
        y.shape[1] = a;
        y.stride[0] = c;
        y.stride[1] = rows * c;
    }
    one = fixture_tensor(&f.cpu, DT_F64, rows, a, c);
    other = fixture_tensor(&f.gpu, DT_F64, rows, a, c);
    op_standardise64(f.cpu.run, y, 1e-5, gain, bias, one);
    op_standardise64(f.gpu.run, y, 1e-5, gain, bias, other);
    CHECK_BELOW(gpu_difference(&other, &one), 1e-12, "standardised %d %d", (int)rows, (int)a);
    for (int64_t i = 0; i < rows; i++) {
        double mean = 0, squares = 0, size = (double)(a * c), worst = 0;

        for (int64_t t = 0; t < a * c; t++)
            mean += at(&y, i, rows, t / c, t % c) / size;
        for (int64_t t = 0; t < a * c; t++)
            squares += pow(at(&y, i, rows, t / c, t % c) - mean, 2);
        for (int64_t t = 0; t < a * c; t++) {
            double want = (at(&y, i, rows, t / c, t % c) - mean) / sqrt(squares / size + 1e-5);

            want = want * at(&gain, 0, 1, t / c, t % c) + at(&bias, 0, 1, t / c, t % c);
            worst = fmax(worst, fabs(want - at(&one, i, rows, t / c, t % c)));
        }
        CHECK_BELOW(worst, 1e-12, "standardised row %d", (int)i);
    }
    op_standardise64(f.gpu.run, y, 1e-5, gain, (Tensor){ .rank = 0 }, y); /* in place, in float */
    gpu_fixture_free(&f);
}

TEST(standardises)
{
    check_standardised(1, 1, 1, false, false);
    check_standardised(33, 1, 70, false, false);
    check_standardised(5, 4, 9, true, true);
    check_standardised(40, 3, 700, false, true); /* a block computes a row */
    check_standardised(1, 90, 800, false, false); /* in pieces */
    check_standardised(1, 300, 300, false, true);
}

TEST(softens)
{
    static const int64_t offsets[] = { 0, 4, -3 };

    for (int wide = 0; wide < 2; wide++)
        for (int o = 0; o < 3; o++) {
            GpuFixture  f = gpu_fixture_new(2, 12);
            Tensor      x = fixture_normal(&f.gpu, 2, 20, 2100, 3), lse[2], copy[2];
            SoftmaxRows in = { .causal = true, .offset = offsets[o] };

            for (int side = 0; side < 2; side++) {
                Fixture *g = side ? &f.gpu : &f.cpu;

                copy[side] = fixture_tensor(g, wide ? DT_F64 : DT_F32, 2, 20, 2100);
                op_entries(f.cpu.run, x, ENTRY_CAST, 0, copy[side]);
                lse[side] = fixture_tensor(g, DT_F64, 1, 2, 20);
                in.x = tensor_rows(copy[side], 0, 11); /* heads lie apart */
                in.lse = tensor_of(DT_F64, 2, (int64_t[]){ 2, 11 }, lse[side].data);
                op_softmax_rows(g->run, &in);
            }
            lse[0].shape[2] = lse[1].shape[2] = 11;
            CHECK_BELOW(gpu_difference(&copy[1], &copy[0]), 1e-6, "softmax of rows %d", o);
            CHECK_BELOW(gpu_difference(&lse[1], &lse[0]), 1e-6, "log of sums %d", o);
            assert_true(at(&copy[0], 1, 2, 10, 11 + offsets[o]) == 0);
            assert_true(at(&copy[0], 1, 2, 11, 2000) != 0); /* not one of the rows */
            assert_true(offsets[o] >= 0 || ((double *)lse[0].data)[0] == -(double)INFINITY);
            gpu_fixture_free(&f);
        }
}

/* ---- columns ------------------------------------------------------------------- */

static void check_taps(DType dtype, int64_t groups, int64_t rows, int64_t own, TapSums in)
{
    GpuFixture f = gpu_fixture_new(2, 15);
    int64_t    n = 40, w = 12, taps = 5;
    Tensor     x = fixture_normal(&f.gpu, 1, n, w, 1), bias = fixture_normal(&f.gpu, 1, 1, w, 1);
    Tensor     one = fixture_tensor(&f.cpu, dtype, 2, rows, w);
    Tensor     other = fixture_tensor(&f.gpu, dtype, 2, rows, w);
    double     worst = 0;

    in.x = dtype == DT_F64 ? tensor_convert(f.gpu.run->arena, x, DT_F64) : x;
    in.taps = fixture_normal(&f.gpu, 2, own, groups * taps, 1);
    in.groups = groups;
    in.bias = in.add ? (Tensor){ .rank = 0 } : bias;
    op_entries(f.cpu.run, bias, ENTRY_CAST, 0, one);
    op_entries(f.gpu.run, bias, ENTRY_CAST, 0, other);
    op_tap_sums(f.cpu.run, &in, one);
    op_tap_sums(f.gpu.run, &in, other);
    for (int64_t t = 0; t < 2 * rows * w; t++) {
        int64_t head = t / (rows * w), i = t / w % rows, c = t % w;
        double  sum = at(&bias, 0, 1, 0, c);

        for (int64_t s = 0; s < taps; s++) {
            int64_t j = in.first + i * in.step + s * (in.apart ? in.apart : 1);

            if (j >= 0 && j < n)
                sum += at(&in.taps, head, 2, i, c / (w / groups) * taps + s) * at(&x, 0, 1, j, c);
        }
        worst = fmax(worst, fabs(sum - at(&one, head, 2, i, c)));
    }
    CHECK_BELOW(worst, dtype == DT_F64 ? 1e-12 : 1e-6, "sums of taps");
    CHECK_BELOW(gpu_difference(&other, &one), dtype == DT_F64 ? 1e-12 : 1e-6, "taps on the device");
    gpu_fixture_free(&f);
}

TEST(convolves)
{
    check_taps(DT_F64, 3, 40, 1, (TapSums){ .first = -2, .step = 1 });
    check_taps(DT_F64, 1, 40, 40, (TapSums){ .first = -4, .step = 1 });
    check_taps(DT_F32, 1, 40, 1, (TapSums){ .first = -2, .step = 1, .add = true });
    check_taps(DT_F32, 12, 10, 10, (TapSums){ .first = 0, .step = 4 });
    check_taps(DT_F64, 1, 13, 1, (TapSums){ .first = -3, .step = 4, .apart = 3 });
}

TEST(finds_best_columns)
{
    for (int sums = 0; sums < 2; sums++) {
        GpuFixture  f = gpu_fixture_new(2, 18);
        BestColumns in = { .x = wide_normal(&f, 2, 30, 50), .k = 7 };
        BestResult  one, other;

        ((double *)in.x.data)[3] = ((double *)in.x.data)[9] = 10; /* a tie */
        if (sums)
            in.y = wide_normal(&f, 2, 30, 6);
        one = op_best_columns(f.cpu.run, &in);
        other = op_best_columns(f.gpu.run, &in);
        assert_memory_equal(one.index.data, other.index.data, (size_t)tensor_bytes(&one.index));
        assert_true(gpu_difference(&other.value, &one.value) == 0);
        assert_true(sums || (tensor_i32(&one.index)[0] == 3 && tensor_i32(&one.index)[1] == 9));
        for (int64_t row = 0; row < 60; row++)
            for (int64_t c = 0; c < 7; c++) {
                int64_t index = tensor_i32(&one.index)[row * 7 + c], r = sums ? 6 : 1;
                double  value = at(&in.x, row / 30, 2, row % 30, index / r) +
                               (sums ? at(&in.y, row / 30, 2, row % 30, index % r) : 0);

                assert_true(((double *)one.value.data)[row * 7 + c] == value);
                assert_true(c == 0 || value <= ((double *)one.value.data)[row * 7 + c - 1]);
            }
        gpu_fixture_free(&f);
    }
}

TEST(names_best_columns)
{
    GpuFixture  f = gpu_fixture_new(1, 33);
    BestColumns in = { .x = wide_normal(&f, 2, 5, 4), .y = wide_normal(&f, 2, 5, 3), .k = 6 };
    Tensor      x = fixture_tensor(&f.gpu, DT_I32, 2, 5, 4);
    Tensor      y = fixture_tensor(&f.gpu, DT_I32, 2, 5, 3);
    BestResult  plain, one, other;

    for (int64_t t = 0; t < 40; t++)
        tensor_i32(&x)[t] = (int32_t)(t * 3);
    for (int64_t t = 0; t < 30; t++)
        tensor_i32(&y)[t] = (int32_t)(t * 5);
    plain = op_best_columns(f.cpu.run, &in);
    in.x_name = x;
    in.y_name = y;
    in.names = 1000;
    one = op_best_columns(f.cpu.run, &in);
    other = op_best_columns(f.gpu.run, &in);
    assert_memory_equal(one.index.data, other.index.data, (size_t)tensor_bytes(&one.index));
    for (int64_t t = 0; t < 60; t++) {
        int32_t c = tensor_i32(&plain.index)[t];

        assert_int_equal(tensor_i32(&one.index)[t], tensor_i32(&x)[t / 6 * 4 + c / 3] * 1000 +
                                                        tensor_i32(&y)[t / 6 * 3 + c % 3]);
    }
    gpu_fixture_free(&f);
}

TEST(multiplies_listed_rows)
{
    GpuFixture f = gpu_fixture_new(2, 19);
    Tensor     x = fixture_normal(&f.gpu, 2, 9, 37, 1), y = fixture_normal(&f.gpu, 1, 20, 37, 1);
    Tensor     index = fixture_tensor(&f.gpu, DT_I32, 2, 9, 4), one, other;

    for (int64_t t = 0; t < 72; t++)
        tensor_i32(&index)[t] = (int32_t)(t * 7 % 20);
    one = op_pair_dots(f.cpu.run, x, y, index);
    other = op_pair_dots(f.gpu.run, x, y, index);
    CHECK_BELOW(gpu_difference(&other, &one), 1e-5, "products with listed rows");
    for (int64_t t = 0; t < 72; t++) {
        double sum = 0;

        for (int64_t c = 0; c < 37; c++)
            sum += at(&x, t / 36, 2, t / 4 % 9, c) * at(&y, 0, 1, t * 7 % 20, c);
        CHECK_BELOW(fabs(sum - (double)tensor_f32(&one)[t]), 1e-5, "product %d", (int)t);
    }
    gpu_fixture_free(&f);
}

/* ---- attention of narrow formats ---------------------------------------------------- */

static Tensor in_format(GpuFixture *f, int64_t rows, int64_t cols, PrecisionFormat format)
{
    Tensor x = wide_normal(f, 2, rows, cols);

    op_entries(f->gpu.run, x, ENTRY_ROUND, format, x);
    return x;
}

static RoundedAttend rounded_results(Fixture *f, RoundedAttend in)
{
    in.out = fixture_tensor(f, DT_F64, 2, 21, 9);
    in.top = fixture_tensor(f, DT_F64, 1, 2, 21);
    in.total = fixture_tensor(f, DT_F64, 1, 2, 21);
    in.weights = fixture_tensor(f, DT_F64, 1, 2, 21);
    in.overflows = fixture_tensor(f, DT_I32, 1, 2, 21);
    op_rounded_attend(f->run, &in);
    return in;
}

TEST(rounds_attention)
{
    for (int way = 0; way < 8; way++) {
        PrecisionFormat format = way & 1 ? PRECISION_FP16 : PRECISION_BF16;
        GpuFixture      f = gpu_fixture_new(2, 21);
        RoundedAttend   in = { .q = in_format(&f, 21, 13, format), .format = format,
                               .k = in_format(&f, 300, 13, format),
                               .v = in_format(&f, 300, 9, format), .scale = 0.25,
                               .half_sums = way & 2, .half_softmax = way & 4,
                               .causal = way & 2, .offset = -2 };
        RoundedAttend   one = rounded_results(&f.cpu, in), other = rounded_results(&f.gpu, in);

        CHECK_BELOW(gpu_difference(&other.out, &one.out), 1e-12, "rounded attention %d", way);
        CHECK_BELOW(gpu_difference(&other.top, &one.top), 0, "largest scores %d", way);
        CHECK_BELOW(gpu_difference(&other.total, &one.total), 1e-12, "totals %d", way);
        CHECK_BELOW(gpu_difference(&other.weights, &one.weights), 1e-12, "weights %d", way);
        assert_memory_equal(other.overflows.data, one.overflows.data,
                            (size_t)tensor_bytes(&one.overflows));
        gpu_fixture_free(&f);
    }
}

/* ---- what other operations learnt to do in double ------------------------------------- */

TEST(sums_members_in_double)
{
    GpuFixture f = gpu_fixture_new(2, 23);
    Tensor     x = wide_normal(&f, 2, 50, 7), index = fixture_tensor(&f.gpu, DT_I32, 1, 2, 50);
    Tensor     one = fixture_tensor(&f.cpu, DT_F64, 2, 6, 7), count, counts;
    Tensor     other = fixture_tensor(&f.gpu, DT_F64, 2, 6, 7);

    index = tensor_of(DT_I32, 2, (int64_t[]){ 2, 50 }, index.data);
    for (int64_t t = 0; t < 100; t++)
        tensor_i32(&index)[t] = (int32_t)(t * t % 5); /* the last one has no members */
    op_member_sums(f.cpu.run, x, index, false, one);
    op_member_sums(f.gpu.run, x, index, false, other);
    assert_true(gpu_difference(&other, &one) == 0);
    count = op_tally(f.cpu.run, index, 6);
    counts = op_tally(f.gpu.run, index, 6);
    assert_memory_equal(count.data, counts.data, 12 * sizeof(int32_t));
    assert_int_equal(tensor_i32(&count)[0] + tensor_i32(&count)[1] + tensor_i32(&count)[4], 50);
    assert_int_equal(tensor_i32(&count)[5], 0);
    gpu_fixture_free(&f);
}

TEST(pools_in_double)
{
    int32_t places[8] = { 0, 2, 6, 3, 1, 5, 7, 7 };

    for (int kind = WINDOW_SUM; kind <= WINDOW_MIN; kind++) {
        GpuFixture  f = gpu_fixture_new(2, 25);
        PoolWindows in = { .x = wide_normal(&f, 1, 7, 70), .kind = (WindowKind)kind };
        Tensor      one = fixture_tensor(&f.cpu, DT_F64, 2, 4, 70);
        Tensor      other = fixture_tensor(&f.gpu, DT_F64, 2, 4, 70);
        int32_t    *kept = arena_alloc(f.gpu.run->arena, 8, sizeof(*kept));

        memcpy(kept, places, sizeof(places));
        in.first = kept;
        in.end = kept + 4;
        op_pool_windows(f.cpu.run, &in, one);
        op_pool_windows(f.gpu.run, &in, other);
        assert_true(gpu_difference(&other, &one) == 0);
        gpu_fixture_free(&f);
    }
}

TEST(means_in_double)
{
    GpuFixture   f = gpu_fixture_new(2, 27);
    PatternShape shape = { .heads = 2, .n = 30, .m = 30 };
    PatternMeans in = { .x = wide_normal(&f, 2, 30, 33), .less_own = true };
    Tensor       one, other;

    one = op_pattern_means(f.cpu.run, &in, pattern_band(f.cpu.run->arena, shape, -2, 3, 1, 1));
    other = op_pattern_means(f.gpu.run, &in, pattern_band(f.gpu.run->arena, shape, -2, 3, 1, 1));
    assert_int_equal(one.dtype, DT_F64);
    CHECK_BELOW(gpu_difference(&other, &one), 1e-14, "means in double");
    gpu_fixture_free(&f);
}

TEST(normalises_doubles)
{
    for (int kind = NORMALISE_NONE; kind <= NORMALISE_LAYER; kind++) {
        GpuFixture f = gpu_fixture_new(1, 28);
        Tensor     x = wide_normal(&f, 3, 67, 33);
        Tensor     one = op_normalise64(f.cpu.run, x, (NormaliseKind)kind, 1e-6);
        Tensor     other = op_normalise64(f.gpu.run, x, (NormaliseKind)kind, 1e-6);

        assert_true(gpu_difference(&other, &one) == 0);
        gpu_fixture_free(&f);
    }
}

/* Neighbours, or half of the columns apart; the last ones stay. */
TEST(turns_pairs)
{
    for (int half = 0; half < 2; half++)
        for (int64_t n = 1; n < 90; n += 44) {
            GpuFixture f = gpu_fixture_new(4, 7);
            Tensor     x = fixture_normal(&f.gpu, 2, n, 75, 1), turns = wide_normal(&f, 1, n, 72);
            TurnPairs  in = { .x = x, .turns = turns, .step = half ? 1 : 2, .gap = half ? 36 : 1 };
            Tensor     y[2];

            for (int side = 0; side < 2; side++)
                y[side] = fixture_tensor(&f.gpu, DT_F32, 2, n, 75);
            cpu_turn_pairs(f.cpu.run, &in, &y[0]);
            for (int64_t row = 0; row < 2 * n; row++) {
                const float  *from = tensor_f32(&x) + row * 75, *to = tensor_f32(&y[0]) + row * 75;
                const double *turn = (double *)turns.data + row % n * 72;

                double        a = (double)from[0], b = (double)from[in.gap];

                assert_true(fabs((double)to[0] - (a * turn[0] - b * turn[1])) < 1e-5);
                assert_true(fabs((double)to[in.gap] - (a * turn[1] + b * turn[0])) < 1e-5);
                assert_true(to[74] == from[74]);
            }
            gpu_turn_pairs(f.gpu.run, &in, &y[1]);
            assert_memory_equal(y[1].data, y[0].data, (size_t)tensor_bytes(&y[0]));
            gpu_fixture_free(&f);
        }
}

SUITE(NULL, NULL)
