/* test_cpu_difference.c -- cpu_difference_attend beside the same in double, where float is exact
 * enough and where it is not.
 */
#include "cpu_fixture.h"

#include "attn/ops/difference.h"

#define ROWS 211
#define KEYS 333
#define SIZE 20
#define WIDTH 24
#define LIMIT 1e-5

typedef enum Kind {
    NORMAL,
    LARGE,  /* scores of hundreds */
    EQUAL,  /* both maps nearly the same */
    SAME,   /* and just the same */
    TWINS,  /* few different keys, whose errors are not independent */
    RAISED, /* values far from 0 */
    KINDS
} Kind;

static const char *const kinds[KINDS] = { "normal", "large", "equal", "same", "twins", "raised" };

static void shape_rows(Tensor *q, Tensor *k, Tensor *v, Kind kind)
{
    float *x = q->data, *y = k->data, *z = v->data;

    for (int64_t i = 0; i < tensor_count(q); i++)
        x[i] *= kind == LARGE ? 300 : 1;
    for (int64_t i = 0; i < ROWS * SIZE && (kind == EQUAL || kind == SAME); i++)
        x[ROWS * SIZE + i] = x[i] * (kind == EQUAL && i % 3 ? 1.0001f : 1.0f);
    for (int64_t i = 0; i < KEYS * SIZE && (kind == EQUAL || kind == SAME); i++)
        y[KEYS * SIZE + i] = y[i];
    for (int64_t i = 3 * SIZE; i < KEYS * SIZE && kind == TWINS; i++)
        y[i] = y[i % (3 * SIZE)];
    for (int64_t i = 0; i < tensor_count(v); i++)
        z[i] += kind == RAISED ? 50 : 0;
}

/* Row i of the softmax of head t; *lse of its scores. */
static void softmax_row(const DifferenceAttend *in, int64_t t, int64_t i, double *w, double *lse)
{
    const float *q = tensor_row_f32(&in->in.q, t, 2, i);
    int64_t      keys = difference_keys(in, i);
    double       top = -HUGE_VAL, sum = 0;

    memset(w, 0, KEYS * sizeof(*w));
    for (int64_t j = 0; j < keys; j++) {
        const float *k = tensor_row_f32(&in->in.k, t, 2, j);

        for (int64_t c = 0; c < SIZE; c++)
            w[j] += (double)q[c] * (double)k[c];
        w[j] *= in->in.scale;
        top = fmax(top, w[j]);
    }
    for (int64_t j = 0; j < keys; j++)
        sum += exp(w[j] - top);
    *lse = top + log(sum);
    for (int64_t j = 0; j < keys; j++)
        w[j] = exp(w[j] - *lse);
}

/* y [2 WIDTH], both lse, and how many weights are negative. */
static int64_t exact_row(const DifferenceAttend *in, int64_t i, double *y, double *lse)
{
    double  w[2][KEYS], squares = 0, root;
    int64_t negative = 0;

    memset(y, 0, 2 * WIDTH * sizeof(*y));
    softmax_row(in, 0, i, w[0], &lse[0]);
    softmax_row(in, 1, i, w[1], &lse[1]);
    for (int64_t j = 0; j < KEYS; j++) {
        double weight = w[0][j] - in->lambda[0] * w[1][j];

        negative += weight < 0;
        for (int64_t c = 0; c < 2 * WIDTH; c++)
            y[c] += weight * (double)tensor_row_f32(&in->in.v, c / WIDTH, 2, j)[c % WIDTH];
    }
    for (int64_t c = 0; c < 2 * WIDTH; c++)
        squares += y[c] * y[c];
    root = sqrt(squares / (2 * WIDTH) + in->eps);
    for (int64_t c = 0; c < 2 * WIDTH && in->norm; c++)
        y[c] *= in->factor / root;
    return negative;
}

static DifferenceResult result_new(Fixture *f)
{
    return (DifferenceResult){ .out = fixture_tensor(f, DT_F32, 2, ROWS, WIDTH),
                               .top = fixture_tensor(f, DT_F64, 1, 2, ROWS),
                               .sum = fixture_tensor(f, DT_F64, 1, 2, ROWS),
                               .negative = fixture_tensor(f, DT_I64, 1, 1, ROWS) };
}

static void check_row(const DifferenceAttend *in, const DifferenceResult *out, int64_t i,
                      const char *kind)
{
    double  y[2 * WIDTH], lse[2];
    int64_t negative = exact_row(in, i, y, lse);

    for (int64_t t = 0; t < 2; t++) {
        double top = tensor_f64(&out->top)[t * ROWS + i], sum = tensor_f64(&out->sum)[t * ROWS + i];

        CHECK_BELOW(worst_error(tensor_row_f32(&out->out, t, 2, i), y + t * WIDTH, WIDTH), LIMIT,
                    "%s, row %lld, head %lld", kind, (long long)i, (long long)t);
        CHECK_BELOW(fabs(top + log(sum) - lse[t]) / fmax(1, fabs(lse[t])), LIMIT,
                    "%s, row %lld, its scores", kind, (long long)i);
    }
    /* A weight that is 0 up to rounding may be on either side. */
    if (strcmp(kind, "same"))
        assert_in_range(llabs((long long)(((int64_t *)out->negative.data)[i] - negative)), 0, 2);
}

static void check_kind(Kind kind, double lambda, bool causal, bool norm)
{
    Fixture          f = fixture_new(2, 7 + kind), alone = fixture_new(1, 1);
    Tensor           q = fixture_normal(&f, 2, ROWS, SIZE, 1);
    Tensor           k = fixture_normal(&f, 2, KEYS, SIZE, 1);
    Tensor           v = fixture_normal(&f, 2, KEYS, WIDTH, 1);
    DifferenceAttend in = { .in = { .scale = 1 / sqrt(SIZE) }, .lambda = &lambda, .causal = causal,
                            .offset = KEYS - ROWS, .norm = norm, .eps = 1e-5, .factor = 0.8 };
    DifferenceResult out = result_new(&f), one = result_new(&alone);

    shape_rows(&q, &k, &v, kind);
    in.in.q = q;
    in.in.k = k;
    in.in.v = v;
    f.run->h = alone.run->h = 2;
    cpu_difference_attend(f.run, &in, &out);
    cpu_difference_attend(alone.run, &in, &one);
    assert_memory_equal(out.out.data, one.out.data, (size_t)tensor_bytes(&out.out));
    for (int64_t i = 0; i < ROWS; i++)
        check_row(&in, &out, i, kinds[kind]);
    fixture_free(&alone);
    fixture_free(&f);
}

TEST(rows_agree_with_double)
{
    static const double lambdas[] = { 0.2, 0.99, 1 };

    for (Kind kind = 0; kind < KINDS; kind++)
        for (size_t x = 0; x < sizeof(lambdas) / sizeof(*lambdas); x++) {
            check_kind(kind, lambdas[x], false, true);
            check_kind(kind, lambdas[x], true, true);
            check_kind(kind, lambdas[x], true, false);
        }
}

TEST(nan_stays_where_it_is_seen)
{
    Fixture          f = fixture_new(1, 3);
    double           lambda = 0.5;
    DifferenceResult out = result_new(&f);
    DifferenceAttend in = { .in = { .q = fixture_normal(&f, 2, ROWS, SIZE, 1),
                                    .k = fixture_normal(&f, 2, KEYS, SIZE, 1),
                                    .v = fixture_normal(&f, 2, KEYS, WIDTH, 1),
                                    .scale = 0.2 },
                            .lambda = &lambda, .causal = true, .norm = true, .eps = 1e-5,
                            .factor = 0.8 };

    tensor_f32(&in.in.k)[100 * SIZE] = NAN;
    f.run->h = 2;
    cpu_difference_attend(f.run, &in, &out);
    for (int64_t i = 0; i < ROWS; i++)
        assert_int_equal(isnan(tensor_f32(&out.out)[i * WIDTH]), i >= 100);
    fixture_free(&f);
}

SUITE(NULL, NULL)
