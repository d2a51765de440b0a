/* test_cpu_wide.c -- features and linear attention in double, and the feature maps
 * of the vectors themselves, against plain references. */
#include "check.h"
#include "cpu_fixture.h"

static double *f64(Tensor t)
{
    return t.data;
}

/* ---- features --------------------------------------------------------------- */

static double x_of(const Tensor *x, const FeatureMap *map, int64_t i, int64_t t)
{
    int64_t d = x->shape[2];
    double  squares = 0, value = (double)tensor_f32(x)[i * d + t];

    for (int64_t c = 0; c < d; c++)
        squares += (double)tensor_f32(x)[i * d + c] * (double)tensor_f32(x)[i * d + c];
    return map->unit ? value / (sqrt(squares) + map->norm_eps) : value * map->input_scale;
}

static double s_of(const Tensor *x, const FeatureMap *map, int64_t i)
{
    double sum = 0;

    for (int64_t t = 0; t < x->shape[2]; t++)
        sum += pow(x_of(x, map, i, t), 2) / 2;
    return sum;
}

static double y_of(const Tensor *x, const Tensor *w, const FeatureMap *map, int64_t i, int64_t r)
{
    double sum = 0;

    for (int64_t t = 0; t < x->shape[2]; t++)
        sum += x_of(x, map, i, t) * f64(*w)[r * x->shape[2] + t];
    return sum;
}

/* The number subtracted from the exponents of row i. */
static double top_of(const Tensor *x, const Tensor *w, const FeatureMap *map, int64_t i, bool keys)
{
    bool    trig = map->kind == FEATURE_TRIG;
    int64_t from = keys || trig ? 0 : i, to = keys || trig ? x->shape[1] : i + 1;
    double  top = -HUGE_VAL;

    for (int64_t row = from; row < to && map->stabilise; row++) {
        top = trig ? fmax(top, s_of(x, map, row)) : top;
        for (int64_t r = 0; r < w->shape[1] && !trig; r++) {
            double y = y_of(x, w, map, row, r);

            top = fmax(top, map->kind == FEATURE_HYPERBOLIC ? fabs(y) : y);
        }
    }
    return map->stabilise ? top : 0;
}

static double projected_feature(const Tensor *x, const Tensor *w, const FeatureMap *map, int64_t i,
                                int64_t r, double c)
{
    int64_t m = w->shape[1];
    double  y = y_of(x, w, map, i, r % m), s = s_of(x, map, i);

    switch (map->kind) {
    case FEATURE_POSITIVE: return (exp(y - s - c) + map->eps) / sqrt((double)m);
    case FEATURE_HYPERBOLIC:
        return (exp((r < m ? y : -y) - s - c) + map->eps) / sqrt(2.0 * (double)m);
    case FEATURE_TRIG: return (r < m ? cos(y) : sin(y)) * exp(s - c) / sqrt((double)m);
    case FEATURE_RELU: return fmax(y, 0) + map->eps;
    case FEATURE_SIN_COS: return map->amplitude * (r < m ? sin(y) : cos(y));
    default: return map->amplitude * fmax(y, 0);
    }
}

static void check_projected(const Tensor *x, const Tensor *w, const FeatureMap *map, bool keys,
                            Tensor y)
{
    int64_t n = x->shape[1], count = y.shape[2];
    bool    shared = keys || map->kind == FEATURE_TRIG; /* one maximum for all rows */
    double  top = 0;

    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || !shared)
            top = top_of(x, w, map, i, keys);
        for (int64_t c = 0; c < count; c++) {
            double want = projected_feature(x, w, map, i, c, top);

            CHECK_NEAR(f64(y)[i * count + c], want, 1e-12);
            CHECK_NEAR(f64(y)[(n + i) * count + c], want, 1e-12);
        }
    }
}

TEST(projected)
{
    static const FeatureKind kinds[] = { FEATURE_POSITIVE, FEATURE_HYPERBOLIC, FEATURE_TRIG,
                                         FEATURE_SIN_COS, FEATURE_ARC_COS, FEATURE_RELU };
    static const int64_t     sizes[][3] = { { 1, 1, 1 }, { 7, 5, 3 }, { 131, 16, 33 } };

    for (int which = 0; which < 6 * 3 * 8; which++) {
        const int64_t *n = sizes[which / 6 % 3];
        FeatureMap     map = { .kind = kinds[which % 6], .input_scale = 0.7, .eps = 1e-3,
                               .stabilise = which / 18 & 1, .unit = which / 18 & 2,
                               .norm_eps = 0.1, .amplitude = 0.3, .project = true, .wide = true };
        bool           keys = which / 18 & 4;
        bool           twice = map.kind == FEATURE_HYPERBOLIC || map.kind == FEATURE_TRIG ||
                              map.kind == FEATURE_SIN_COS;
        Fixture        f = fixture_new(2, 9);
        int64_t        count = (twice ? 2 : 1) * n[2];
        Tensor x = fixture_normal(&f, 1, n[0], n[1], 1), w = fixture_normal(&f, 1, n[2], n[1], 1);
        Tensor y = fixture_tensor(&f, DT_F64, 2, n[0], count);

        w = tensor_convert(f.run->arena, w, DT_F64);
        cpu_features(f.run, &x, &w, &map, keys, &y);
        check_projected(&x, &w, &map, keys, y);
        fixture_free(&f);
    }
}

static double plain_feature(const Tensor *x, const FeatureMap *map, int64_t i, int64_t c)
{
    int64_t n = x->shape[1], d = x->shape[2];
    double  value = (double)tensor_f32(x)[i * d + c], sum = 0;

    switch (map->kind) {
    case FEATURE_ELU: return value >= 0 ? value + 1 : map->alpha * expm1(value) + 1;
    case FEATURE_RECTIFIED: return fmax(value, 0);
    case FEATURE_EXP: return exp(value);
    case FEATURE_SOFTMAX:
        for (int64_t t = 0; t < d; t++)
            sum += exp((double)tensor_f32(x)[i * d + t] - value);
        return 1 / sum;
    default:
        for (int64_t j = 0; j < n; j++)
            sum += exp((double)tensor_f32(x)[j * d + c] - value);
        return 1 / sum;
    }
}

TEST(of_the_vectors_themselves)
{
    static const int64_t sizes[][2] = { { 1, 1 }, { 7, 5 }, { 131, 33 }, { 3, 1100 } };

    for (int which = 0; which < 4 * 5 * 2; which++) {
        const int64_t *n = sizes[which % 4];
        FeatureMap     map = { .kind = FEATURE_ELU + (FeatureKind)(which / 4 % 5), .alpha = 0.4,
                               .input_scale = 1, .wide = which / 20 };
        Fixture        f = fixture_new(2, 9);
        Tensor         x = fixture_normal(&f, 1, n[0], n[1], 2), none = { 0 };
        Tensor y = fixture_tensor(&f, map.wide ? DT_F64 : DT_F32, 2, n[0], n[1]);

        if (!map.wide || map.kind == FEATURE_EXP || map.kind == FEATURE_SOFTMAX)
            cpu_features(f.run, &x, &none, &map, true, &y);
        for (int64_t at = 0; at < tensor_count(&y); at++) {
            double want = plain_feature(&x, &map, at / n[1] % n[0], at % n[1]);

            if (!map.wide)
                CHECK_NEAR((double)tensor_f32(&y)[at], want, 1e-6);
            else if (map.kind == FEATURE_EXP || map.kind == FEATURE_SOFTMAX)
                CHECK_NEAR(f64(y)[at], want, 1e-13);
        }
        fixture_free(&f);
    }
}

/* ---- linear attention ------------------------------------------------------- */

typedef struct Case {
    Fixture      f;
    int64_t      h, n, m, d, e;
    LinearAttend in;
    LinearResult out;
} Case;

static Case case_new(int64_t n, int64_t m, int threads, bool gated)
{
    Case c = { .f = fixture_new(threads, 5), .h = 2, .n = n, .m = m, .d = 7, .e = 5 };

    c.in.fq = tensor_convert(c.f.run->arena, fixture_normal(&c.f, 2, n, 7, 1), DT_F64);
    c.in.fk = tensor_convert(c.f.run->arena, fixture_normal(&c.f, 2, m, 7, 1), DT_F64);
    c.in.v = fixture_normal(&c.f, 1, m, 5, 1);
    c.out.out = fixture_tensor(&c.f, DT_F32, 2, n, 5);
    c.out.memory = fixture_tensor(&c.f, DT_F32, 2, 7, 5);
    c.out.denominator = tensor_with_rank(fixture_tensor(&c.f, DT_F32, 1, 2, n), 2);
    c.out.divisor = tensor_with_rank(fixture_tensor(&c.f, DT_F64, 1, 2, n), 2);
    c.in.eps = 0.5;
    c.in.chunk = 50;
    c.in.denominator = DENOMINATOR_FLOOR;
    if (!gated)
        return c;
    c.in.gates = tensor_with_rank(fixture_tensor(&c.f, DT_F64, 1, 2, n), 2);
    for (int64_t i = 0; i < 2 * n; i++)
        f64(c.in.gates)[i] = i % 11 == 3 ? 0 : i % 7 == 2 ? 1 : rng_uniform(&c.f.rng);
    return c;
}

static double fade(const Case *c, int64_t head, int64_t i, int64_t j)
{
    double product;

    if (!c->in.gates.data)
        return 1;
    product = 1 - f64(c->in.gates)[head * c->n + j];
    for (int64_t l = j + 1; l <= i; l++)
        product *= f64(c->in.gates)[head * c->n + l];
    return product;
}

static void check_row(const Case *c, int64_t head, int64_t i)
{
    const double *fq = f64(c->in.fq) + (head * c->n + i) * c->d;
    double        z = 0, sums[5] = { 0 };

    for (int64_t j = 0; j < (c->in.causal ? i + 1 : c->m); j++) {
        double a = 0;

        for (int64_t t = 0; t < c->d; t++)
            a += fq[t] * f64(c->in.fk)[(head * c->m + j) * c->d + t];
        a *= fade(c, head, i, j);
        z += a;
        for (int64_t p = 0; p < c->e; p++)
            sums[p] += a * (double)tensor_f32(&c->in.v)[j * c->e + p];
    }
    CHECK_NEAR((double)tensor_f32(&c->out.denominator)[head * c->n + i], z, 1e-6);
    for (int64_t p = 0; p < c->e; p++)
        CHECK_NEAR((double)tensor_f32(&c->out.out)[(head * c->n + i) * c->e + p],
                   sums[p] / fmax(z, 0.5), 1e-6);
}

static void check_state(const Case *c, int64_t head)
{
    for (int64_t at = 0; at < c->d * c->e; at++) {
        double want = 0;

        for (int64_t j = 0; j < c->m; j++)
            want += fade(c, head, c->m - 1, j) *
                    f64(c->in.fk)[(head * c->m + j) * c->d + at / c->e] *
                    (double)tensor_f32(&c->in.v)[j * c->e + at % c->e];
        CHECK_NEAR((double)tensor_f32(&c->out.memory)[head * c->d * c->e + at], want, 1e-6);
    }
}

TEST(every_form_is_the_sum)
{
    static const int64_t sizes[][2] = { { 1, 1 }, { 131, 131 }, { 300, 300 }, { 5, 2100 } };

    for (int which = 0; which < 4 * 4 * 2; which++) {
        const int64_t *n = sizes[which % 4];
        Case           c = case_new(n[0], n[1], 2, false);

        c.in.form = (LinearForm)(which / 4 % 4);
        c.in.causal = which / 16;
        if (!c.in.causal || c.n == c.m) {
            cpu_linear_attend(c.f.run, &c.in, &c.out);
            for (int64_t x = 0; x < 2 * c.n; x++)
                check_row(&c, x / c.n, x % c.n);
            check_state(&c, 1);
        }
        fixture_free(&c.f);
    }
}

TEST(gates_fade_the_state)
{
    for (int64_t n = 1; n < 100; n += 49) {
        Case c = case_new(n, n, 2, true);

        c.in.causal = true;
        cpu_linear_attend(c.f.run, &c.in, &c.out);
        for (int64_t x = 0; x < 2 * n; x++)
            check_row(&c, x / n, x % n);
        check_state(&c, 0);
        fixture_free(&c.f);
    }
}

TEST(threads_change_nothing)
{
    for (int which = 0; which < 8; which++) {
        Case a = case_new(2500, 2500, 1, false), b = case_new(2500, 2500, 3, false);

        a.in.form = b.in.form = (LinearForm)(which & 3);
        a.in.causal = b.in.causal = which & 4;
        cpu_linear_attend(a.f.run, &a.in, &a.out);
        cpu_linear_attend(b.f.run, &b.in, &b.out);
        assert_memory_equal(a.out.out.data, b.out.out.data, (size_t)tensor_bytes(&a.out.out));
        fixture_free(&a.f);
        fixture_free(&b.f);
    }
}

SUITE(NULL, NULL)
