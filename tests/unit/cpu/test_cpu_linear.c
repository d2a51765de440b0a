/* test_cpu_linear.c -- feature maps and linear attention against double references. */
#include "check.h"
#include "cpu_fixture.h"

typedef struct Sizes {
    int64_t h, n, m, d, f, e;
} Sizes;

static const Sizes sizes[] = {
    { 1, 1, 1, 1, 1, 1 },      { 2, 7, 7, 5, 3, 9 },         { 2, 131, 131, 16, 33, 65 },
    { 1, 5, 2100, 8, 16, 12 }, { 3, 300, 300, 64, 128, 64 },
};

/* ---- features --------------------------------------------------------------- */

static double u_of(const Tensor *x, const Tensor *w, const FeatureMap *map, int64_t i, int64_t r)
{
    int64_t d = x->shape[2];
    double  sum = 0;

    for (int64_t t = 0; t < d; t++)
        sum += map->input_scale * (double)tensor_f32(x)[i * d + t] *
               (double)tensor_f32(w)[r * d + t];
    return sum;
}

static double s_of(const Tensor *x, const FeatureMap *map, int64_t i)
{
    int64_t d = x->shape[2];
    double  sum = 0;

    for (int64_t t = 0; t < d; t++)
        sum += pow(map->input_scale * (double)tensor_f32(x)[i * d + t], 2);
    return sum / 2;
}

/* The largest number that the specification subtracts, over rows [from, to). */
static double top_of(const Tensor *x, const Tensor *w, const FeatureMap *map, int64_t from,
                     int64_t to)
{
    double top = -(double)INFINITY;

    for (int64_t i = from; i < to; i++)
        for (int64_t r = 0; r < w->shape[1]; r++) {
            double u = u_of(x, w, map, i, r);

            top = fmax(top, map->kind == FEATURE_TRIG ? s_of(x, map, i)
                            : map->kind == FEATURE_HYPERBOLIC ? fabs(u) : u);
        }
    return top;
}

static double feature(const Tensor *x, const Tensor *w, const FeatureMap *map, int64_t i,
                      int64_t r, double c)
{
    int64_t m = w->shape[1];
    double  u, s = s_of(x, map, i);

    if (!map->project)
        return fmax(map->input_scale * (double)tensor_f32(x)[i * x->shape[2] + r], 0) + map->eps;
    u = u_of(x, w, map, i, r % m);
    switch (map->kind) {
    case FEATURE_POSITIVE: return (exp(u - s - c) + map->eps) / sqrt((double)m);
    case FEATURE_HYPERBOLIC:
        return (exp((r < m ? u : -u) - s - c) + map->eps) / sqrt(2.0 * (double)m);
    case FEATURE_TRIG: return (r < m ? cos(u) : sin(u)) * exp(s - c) / sqrt((double)m);
    default: break;
    }
    return fmax(u, 0) + map->eps;
}

static void check_features(const Sizes *s, const FeatureMap *map, bool keys)
{
    Fixture f = fixture_new(2, 6);
    bool    twice = map->kind == FEATURE_HYPERBOLIC || map->kind == FEATURE_TRIG;
    int64_t count = !map->project ? s->d : twice ? 2 * s->f : s->f;
    Tensor  x = fixture_normal(&f, 1, s->n, s->d, 1), w = fixture_normal(&f, 1, s->f, s->d, 1);
    Tensor  y = fixture_tensor(&f, DT_F32, 2, s->n, count);
    bool    whole = keys || map->kind == FEATURE_TRIG;
    double  c = 0, size, *want = calloc((size_t)count, sizeof(*want));

    cpu_features(f.run, &x, &w, map, keys, &y);
    if (map->stabilise && whole)
        c = top_of(&x, &w, map, 0, s->n);
    for (int64_t i = 0; i < 2 * s->n; i++) {
        int64_t row = i % s->n;

        if (map->stabilise && !whole)
            c = top_of(&x, &w, map, row, row + 1);
        for (int64_t r = 0; r < count; r++)
            want[r] = feature(&x, &w, map, row, r, c);
        /* A wave is as exact as its amplitude allows. */
        size = map->kind == FEATURE_TRIG ? exp(s_of(&x, map, row) - c) / sqrt((double)s->f) : 1;
        CHECK_BELOW(worst_error(tensor_f32(&y) + i * count, want, count), 5e-6 * fmax(1, size),
                    "features kind %d row %d n=%d", (int)map->kind, (int)i, (int)s->n);
    }
    free(want);
    fixture_free(&f);
}

TEST(features)
{
    for (size_t x = 0; x < 4; x++)
        for (int which = 0; which < 32; which++) {
            FeatureMap map = { .kind = (FeatureKind)(which & 3), .input_scale = 0.5,
                               .eps = 1e-3, .stabilise = which & 4, .project = which & 8 };

            if (map.project || map.kind == FEATURE_RELU)
                check_features(&sizes[x], &map, which & 16);
        }
}

/* ---- linear attention ------------------------------------------------------- */

typedef struct Case {
    Fixture      f;
    Sizes        s;
    LinearAttend in;
    LinearResult out;
} Case;

static Case case_new(const Sizes *s, int threads)
{
    Case c = { .f = fixture_new(threads, 21), .s = *s };

    c.in.fq = fixture_normal(&c.f, s->h, s->n, s->f, 1);
    c.in.fk = fixture_normal(&c.f, s->h, s->m, s->f, 1);
    c.in.v = fixture_normal(&c.f, 1, s->m, s->e, 1);
    for (int64_t x = 0; x < tensor_count(&c.in.fq); x++)
        tensor_f32(&c.in.fq)[x] = fabsf(tensor_f32(&c.in.fq)[x]);
    for (int64_t x = 0; x < tensor_count(&c.in.fk); x++)
        tensor_f32(&c.in.fk)[x] = fabsf(tensor_f32(&c.in.fk)[x]);
    c.out.out = fixture_tensor(&c.f, DT_F32, s->h, s->n, s->e);
    c.out.memory = fixture_tensor(&c.f, DT_F32, s->h, s->f, s->e);
    c.out.denominator = tensor_with_rank(fixture_tensor(&c.f, DT_F32, 1, s->h, s->n), 2);
    c.out.divisor = tensor_with_rank(fixture_tensor(&c.f, DT_F64, 1, s->h, s->n), 2);
    c.in.eps = 1e-2;
    c.in.chunk = 50;
    return c;
}

static double divisor(const LinearAttend *in, double z, const float *fq)
{
    double sum = 0;

    for (int64_t t = 0; t < in->fq.shape[2]; t++)
        sum += (double)fq[t];
    switch (in->denominator) {
    case DENOMINATOR_GUARD: return fabs(z) <= in->eps ? z + 2 * in->eps : z;
    case DENOMINATOR_ADD: return z + in->eps;
    case DENOMINATOR_ADD_FEATURES: return z + in->eps * sum;
    case DENOMINATOR_FLOOR: return fmax(z, in->eps);
    case DENOMINATOR_NONE: break;
    }
    return 1;
}

/* *size: the largest sum of magnitudes behind an output, which bounds rounding. */
static void reference_row(const Case *c, int64_t t, int64_t i, double *out, double *z,
                          double *size)
{
    const Sizes *s = &c->s;
    const float *fq = tensor_f32(&c->in.fq) + (t * s->n + i) * s->f;

    *z = 0;
    for (int64_t p = 0; p < s->e; p++)
        out[p] = 0;
    for (int64_t j = 0; j < (c->in.causal ? i + 1 : s->m); j++) {
        const float *fk = tensor_f32(&c->in.fk) + (t * s->m + j) * s->f;
        double       a = 0;

        for (int64_t x = 0; x < s->f; x++)
            a += (double)fq[x] * (double)fk[x];
        *z += a;
        for (int64_t p = 0; p < s->e; p++)
            out[p] += a * (double)tensor_f32(&c->in.v)[j * s->e + p];
    }
    *size = *z / fabs(divisor(&c->in, *z, fq));
    for (int64_t p = 0; p < s->e; p++)
        out[p] /= divisor(&c->in, *z, fq);
}

static void check_case(const Case *c, const char *what)
{
    const Sizes *s = &c->s;
    double      *out = calloc((size_t)s->e, sizeof(*out)), z, size;

    for (int64_t t = 0; t < s->h; t++)
        for (int64_t i = 0; i < s->n; i++) {
            int64_t row = t * s->n + i;
            double  want;

            reference_row(c, t, i, out, &z, &size);
            want = divisor(&c->in, z, tensor_f32(&c->in.fq) + row * s->f);
            CHECK_BELOW(worst_error(tensor_f32(&c->out.out) + row * s->e, out, s->e),
                        2e-6 * fmax(1, size), "%s out %d n=%d", what, (int)i, (int)s->n);
            CHECK_BELOW(worst_error(tensor_f32(&c->out.denominator) + row, &z, 1), 1e-6, "%s z",
                        what);
            CHECK_NEAR(((double *)c->out.divisor.data)[row], want, 1e-6);
        }
    free(out);
}

/* The rounding of a sum grows with its terms, not with its value. */
static void check_memory(const Case *c, const char *what)
{
    const Sizes *s = &c->s;

    for (int64_t t = 0; t < s->h; t++)
        for (int64_t x = 0; x < s->f; x++)
            for (int64_t p = 0; p < s->e; p++) {
                float  got = tensor_f32(&c->out.memory)[(t * s->f + x) * s->e + p];
                double want = 0, squares = 0;

                for (int64_t j = 0; j < s->m; j++) {
                    double term = (double)tensor_f32(&c->in.fk)[(t * s->m + j) * s->f + x] *
                                  (double)tensor_f32(&c->in.v)[j * s->e + p];

                    want += term;
                    squares += term * term;
                }
                CHECK_BELOW(fabs((double)got - want), 3e-6 * fmax(1, sqrt(squares)), "%s memory",
                            what);
            }
}

TEST(forms)
{
    for (size_t x = 0; x < sizeof(sizes) / sizeof(sizes[0]); x++)
        for (int form = LINEAR_AUTO; form <= LINEAR_CHUNKED; form++)
            for (int which = 0; which < 10; which++) {
                Case c = case_new(&sizes[x], 2);
                char what[80];

                c.in.form = (LinearForm)form;
                c.in.causal = which & 1;
                c.in.denominator = (DenominatorForm)(which >> 1);
                snprintf(what, sizeof(what), "form %d causal %d denominator %d", form, which & 1,
                         which >> 1);
                if (!c.in.causal || c.s.n == c.s.m) {
                    cpu_linear_attend(c.f.run, &c.in, &c.out);
                    check_case(&c, what);
                    check_memory(&c, what);
                }
                fixture_free(&c.f);
            }
}

/* How the lengths of keys go from the first to the last, which moves their maximum. */
static double length_of(int way, int64_t j, int64_t m)
{
    double at = (double)j / (double)m;

    return way == 0 ? 1 : way == 1 ? 0.2 + 2 * at : way == 2 ? 2.2 - 2 * at : j == m - 5 ? 3 : 0.5;
}

/* Features of keys are not given but made, so their maximum is found while they are summed; causal,
 * after rows were read that do not see it. */
static void check_under_top(const Sizes *s, FeatureKind kind, int way, LinearForm form, bool causal)
{
    Case       c = case_new(s, 2);
    int64_t    m = kind == FEATURE_HYPERBOLIC ? s->f / 2 : s->f;
    FeatureMap map = { .kind = kind, .input_scale = 0.5, .eps = way & 1 ? 1e-2 : 1e-6,
                       .stabilise = true, .project = true };
    Tensor     x = fixture_normal(&c.f, 1, s->m, s->d, 1), w = fixture_normal(&c.f, 1, m, s->d, 1);
    Tensor     made = c.in.fk, top = fixture_tensor(&c.f, DT_F64, 1, 1, 1);
    char       what[80];

    for (int64_t y = 0; y < s->m * s->d; y++)
        tensor_f32(&x)[y] *= (float)length_of(way, y / s->d, s->m);
    top = tensor_with_rank(top, 1);
    cpu_features_top(c.f.run, &x, &w, &map, &top); /* rounded as the projections are */
    for (int64_t y = 0; y < s->m * s->f; y++)
        tensor_f32(&made)[y] = (float)feature(&x, &w, &map, y / s->f, y % s->f,
                                              *tensor_f64(&top));
    c.in.from_k = (FeatureSource){ .x = x, .w = w, .map = map };
    c.in.fk.data = NULL;
    c.in.form = form;
    c.in.causal = causal;
    c.in.denominator = (DenominatorForm)(way & 3);
    assert_true(linear_finds_top(&c.in));
    cpu_linear_attend(c.f.run, &c.in, &c.out);
    c.in.fk = made;
    snprintf(what, sizeof(what), "kind %d way %d form %d causal %d m=%d", (int)kind, way, (int)form,
             causal, (int)s->m);
    check_case(&c, what);
    check_memory(&c, what);
    fixture_free(&c.f);
}

TEST(the_maximum_of_keys_is_found_while_they_are_summed)
{
    static const Sizes some[] = { { 1, 1, 1, 1, 2, 1 }, { 1, 7, 130, 8, 12, 9 },
                                  { 1, 5, 2100, 8, 16, 12 }, { 1, 3, 4500, 16, 34, 65 } };

    for (size_t x = 0; x < sizeof(some) / sizeof(*some); x++)
        for (int way = 0; way < 4; way++) {
            check_under_top(&some[x], FEATURE_POSITIVE, way, LINEAR_AUTO, false);
            check_under_top(&some[x], FEATURE_HYPERBOLIC, way, LINEAR_AUTO, false);
        }
}

TEST(a_causal_row_is_scaled_when_the_maximum_of_all_keys_is_known)
{
    static const Sizes some[] = { { 1, 1, 1, 1, 2, 1 }, { 1, 130, 130, 8, 12, 9 },
                                  { 1, 700, 700, 16, 34, 65 } };

    for (size_t x = 0; x < sizeof(some) / sizeof(*some); x++)
        for (int way = 0; way < 4; way++)
            for (int form = LINEAR_RECURRENT; form <= LINEAR_CHUNKED; form++) {
                check_under_top(&some[x], FEATURE_POSITIVE, way, (LinearForm)form, true);
                check_under_top(&some[x], FEATURE_HYPERBOLIC, way, (LinearForm)form, true);
            }
}

TEST(threads_change_nothing)
{
    for (int which = 0; which < 8; which++) {
        Sizes s = { 3, 2500, 2500, 8, 20, 24 };
        Case  a = case_new(&s, 1), b = case_new(&s, 3);

        a.in.form = b.in.form = (LinearForm)(which & 3);
        a.in.causal = b.in.causal = which & 4;
        cpu_linear_attend(a.f.run, &a.in, &a.out);
        cpu_linear_attend(b.f.run, &b.in, &b.out);
        assert_memory_equal(a.out.out.data, b.out.out.data, (size_t)tensor_bytes(&a.out.out));
        assert_memory_equal(a.out.memory.data, b.out.memory.data,
                            (size_t)tensor_bytes(&a.out.memory));
        fixture_free(&a.f);
        fixture_free(&b.f);
    }
}

SUITE(NULL, NULL)
