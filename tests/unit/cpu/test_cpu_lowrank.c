/* test_cpu_lowrank.c -- products in double, softmax, pseudo-inverse, and attention
 * over logits, against plain references. */
#include "check.h"
#include "cpu_fixture.h"

static double *f64(Tensor t)
{
    return t.data;
}

static double entry(const Tensor *t, int64_t head, int64_t heads, int64_t r, int64_t c)
{
    const void *slice = tensor_head(t, head, heads);
    int64_t     at = r * t->stride[1] + c;

    return t->dtype == DT_F64 ? ((const double *)slice)[at] : (double)((const float *)slice)[at];
}

static Tensor some(Fixture *f, bool wide, int64_t a, int64_t b, int64_t c)
{
    Tensor t = fixture_normal(f, a, b, c, 1);

    return wide ? tensor_convert(f->run->arena, t, DT_F64) : t;
}

/* ---- products --------------------------------------------------------------- */

static void check_gemm(const int64_t *n, bool ta, bool tb, bool wide_a, bool wide_b)
{
    Fixture f = fixture_new(2, 3);
    Tensor  a = some(&f, wide_a, 1, n[ta ? 2 : 0], n[ta ? 0 : 2]);
    Tensor  b = some(&f, wide_b, 2, n[tb ? 1 : 2], n[tb ? 2 : 1]);
    Tensor  c = some(&f, true, 4, n[0], n[1]), old = some(&f, true, 4, n[0], n[1]);

    memcpy(old.data, c.data, (size_t)tensor_bytes(&c));
    cpu_gemm(f.run, &a, ta, &b, tb, 0.5, 2, &c);
    for (int64_t at = 0; at < tensor_count(&c); at++) {
        int64_t t = at / n[0] / n[1], r = at / n[1] % n[0], x = at % n[1];
        double  want = 2 * f64(old)[at];

        for (int64_t k = 0; k < n[2]; k++)
            want += 0.5 * entry(&a, t, 4, ta ? k : r, ta ? r : k) *
                    entry(&b, t, 4, tb ? x : k, tb ? k : x);
        CHECK_NEAR(f64(c)[at], want, 1e-12);
    }
    fixture_free(&f);
}

TEST(gemm_in_double)
{
    static const int64_t sizes[][3] = { { 1, 1, 1 }, { 7, 5, 3 }, { 300, 33, 65 },
                                        { 2, 600, 700 } };

    for (int which = 0; which < 4 * 16; which++)
        check_gemm(sizes[which % 4], which / 4 & 1, which / 4 & 2, which / 4 & 4, which / 4 & 8);
}

/* n: rows, columns, inner, heads of c and b.  Rows of a are those of all heads, and c is part of a
 * larger tensor. */
static void check_shared(const int64_t *n)
{
    Fixture f = fixture_new(2, 3);
    Tensor  a = some(&f, false, 1, n[0], n[2]), b = some(&f, false, n[3], n[2], n[1]);
    Tensor  all = fixture_normal(&f, n[3], n[0], n[1] + 2, 1), c = all;

    c.shape[2] = n[1];
    cpu_gemm(f.run, &a, false, &b, false, 0.5, 0, &c);
    for (int64_t t = 0; t < n[3]; t++)
        for (int64_t r = 0; r < n[0]; r++) {
            const float *row = tensor_row_f32(&c, t, n[3], r);
            double       want[64] = { 0 };

            for (int64_t k = 0; k < n[2]; k++)
                for (int64_t x = 0; x < n[1]; x++)
                    want[x] += 0.5 * entry(&a, 0, 1, r, k) * entry(&b, t, n[3], k, x);
            for (int64_t x = 0; x < n[1]; x++)
                CHECK_NEAR(row[x], want[x], 2e-5); /* of sums of 300 terms in float */
        }
    fixture_free(&f);
}

TEST(few_columns_of_heads_that_share_their_rows)
{
    static const int64_t sizes[][4] = { { 32, 4, 300, 8 }, { 31, 4, 300, 8 }, { 301, 1, 5, 2 },
                                        { 700, 8, 129, 8 }, { 130, 9, 64, 8 } };

    for (size_t x = 0; x < sizeof(sizes) / sizeof(*sizes); x++)
        check_shared(sizes[x]);
}

TEST(softmax_of_rows)
{
    for (int wide = 0; wide < 2; wide++)
        for (int64_t cols = 1; cols < 300; cols += 74) {
            Fixture f = fixture_new(2, 3);
            Tensor  x = some(&f, wide, 2, 70, cols), old = some(&f, wide, 2, 70, cols);

            memcpy(old.data, x.data, (size_t)tensor_bytes(&x));
            cpu_softmax(f.run, &(SoftmaxRows){ .x = x });
            for (int64_t at = 0; at < tensor_count(&x); at++) {
                int64_t row = at / cols;
                double  sum = 0, mine = entry(&old, row / 70, 2, row % 70, at % cols);

                for (int64_t c = 0; c < cols; c++)
                    sum += exp(entry(&old, row / 70, 2, row % 70, c) - mine);
                CHECK_NEAR(entry(&x, row / 70, 2, row % 70, at % cols), 1 / sum,
                           wide ? 1e-14 : 3e-7);
            }
            fixture_free(&f);
        }
}

/* Row i has i + offset + 1 entries; with offset -2 the first two rows have none. */
TEST(softmax_of_causal_rows)
{
    for (int64_t offset = -2; offset <= 2; offset++) {
        Fixture f = fixture_new(2, 3);
        Tensor  x = some(&f, true, 1, 4, 5);

        cpu_softmax(f.run, &(SoftmaxRows){ .x = x, .causal = true, .offset = offset });
        for (int64_t i = 0; i < 4; i++) {
            double sum = 0;

            for (int64_t j = 0; j < 5; j++) {
                double w = entry(&x, 0, 1, i, j);

                assert_true(j <= i + offset ? w > 0 : w == 0);
                sum += w;
            }
            CHECK_NEAR(sum, i + offset >= 0, 1e-14);
        }
        fixture_free(&f);
    }
}

/* Rows without an entry are all zeros, and nothing before them is written. */
TEST(softmax_of_rows_without_entries)
{
    Fixture f = fixture_new(2, 3);
    Tensor  whole = some(&f, true, 2, 5, 5), x = whole;

    x.shape[1] = 4; /* the first row of each head is not of x */
    x.data = tensor_f64(&whole) + 5;
    for (int64_t head = 0; head < 2; head++)
        for (int64_t j = 0; j < 5; j++)
            tensor_f64(&whole)[head * 25 + j] = 7;
    cpu_softmax(f.run, &(SoftmaxRows){ .x = x, .causal = true, .offset = -3 });
    for (int64_t head = 0; head < 2; head++)
        for (int64_t j = 0; j < 5; j++) {
            assert_true(tensor_f64(&whole)[head * 25 + j] == 7);
            for (int64_t i = 0; i < 3; i++)
                assert_true(tensor_f64(&x)[head * 25 + i * 5 + j] == 0);
        }
    fixture_free(&f);
}

/* ---- pseudo-inverse --------------------------------------------------------- */

static void multiply(const double *a, const double *b, int64_t n, double *c)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            c[i * n + j] = 0;
            for (int64_t t = 0; t < n; t++)
                c[i * n + j] += a[i * n + t] * b[t * n + j];
        }
}

static void check_equal(const double *a, const double *b, int64_t n, bool turned, double tolerance)
{
    for (int64_t at = 0; at < n * n; at++)
        CHECK_NEAR(a[at], b[turned ? at % n * n + at / n : at], tolerance);
}

/* The four conditions of Penrose, for matrices of every rank. */
TEST(penrose)
{
    for (int64_t n = 1; n <= 24; n += n < 4 ? 1 : 10)
        for (int64_t rank = 0; rank <= n; rank += n < 4 ? 1 : n / 4) {
            Fixture f = fixture_new(2, 3);
            Tensor  left = some(&f, true, 2, n, n), right = some(&f, true, 2, n, n);
            Tensor  a = some(&f, true, 2, n, n), y = some(&f, true, 2, n, n);
            Tensor  ay = some(&f, true, 1, n, n), back = some(&f, true, 1, n, n);

            for (int64_t at = 0; at < 2 * n * n; at++)
                f64(left)[at] = at % n < rank ? f64(left)[at] : 0;
            for (int64_t t = 0; t < 2; t++)
                multiply(f64(left) + t * n * n, f64(right) + t * n * n, n, f64(a) + t * n * n);
            cpu_pinv(f.run, &a, 1e-9, &y);
            for (int64_t t = 0; t < 2 * n * n; t += n * n) {
                multiply(f64(a) + t, f64(y) + t, n, f64(ay));
                check_equal(f64(ay), f64(ay), n, true, 1e-9);
                multiply(f64(ay), f64(a) + t, n, f64(back));
                check_equal(f64(back), f64(a) + t, n, false, 1e-9);
                multiply(f64(y) + t, f64(a) + t, n, f64(ay));
                check_equal(f64(ay), f64(ay), n, true, 1e-9);
                multiply(f64(ay), f64(y) + t, n, f64(back));
                check_equal(f64(back), f64(y) + t, n, false, 1e-9);
            }
            fixture_free(&f);
        }
}

TEST(small_singular_values_are_dropped)
{
    Fixture f = fixture_new(1, 3);
    Tensor  a = some(&f, true, 1, 3, 3), y = some(&f, true, 1, 3, 3);
    double  diagonal[9] = { 2, 0, 0, 0, 1e-3, 0, 0, 0, 1e-7 };

    memcpy(a.data, diagonal, sizeof(diagonal));
    cpu_pinv(f.run, &a, 1e-6, &y);
    CHECK_NEAR(f64(y)[0], 0.5, 1e-14);
    CHECK_NEAR(f64(y)[4], 1000, 1e-14);
    CHECK_NEAR(f64(y)[8], 0, 0);
    cpu_pinv(f.run, &a, 1e-3, &y);
    CHECK_NEAR(f64(y)[4], 0, 0);
    fixture_free(&f);
}

/* ---- attention over logits -------------------------------------------------- */

static double logit(const LogitAttend *in, int64_t h, int64_t head, int64_t i, int64_t j)
{
    int64_t a = in->left.data ? in->left.shape[2] : 0, b = in->right.data ? in->right.shape[2] : 0;
    double  sum = in->bias.data ? entry(&in->bias, head, h, 0, j) : 0;
    Rng     rng = { .seed = in->seed, .stream = in->stream };
    float   drawn;

    switch (in->kind) {
    case LOGITS_GIVEN: return entry(&in->left, head, h, i, j);
    case LOGITS_UNIFORM:
        rng.at = (uint64_t)((head * in->n + i) * in->v.shape[1] + j);
        rng_fill_uniform(&rng, &drawn, 1, -in->bound, in->bound);
        return (double)drawn;
    case LOGITS_PRODUCT:
        for (int64_t t = 0; t < a; t++)
            sum += entry(&in->left, head, h, i, t) *
                   entry(&in->right, head, h, in->turned ? j : t, in->turned ? t : j);
        return sum;
    case LOGITS_FOLDED:
        return entry(&in->left, head, h, i, j % a) * entry(&in->right, head, h, i, j / a);
    case LOGITS_TILED:
        for (int64_t t = 0; t < a * b; t++)
            sum += entry(&in->left, head, h, i, t % a) * entry(&in->right, head, h, j, t / a);
        break;
    }
    return sum;
}

/* 3e-6: values are summed in float, up to 305 of them with weights that need not be small. */
static void check_attend(const LogitAttend *in, const LogitResult *out)
{
    int64_t n = in->n, m = in->v.shape[1], e = in->v.shape[2];

    for (int64_t row = 0; row < 2 * n; row++) {
        int64_t head = row / n, i = row % n, seen = in->causal ? i + 1 : m;
        double  sum = 0, values[3] = { 0 }, read;

        for (int64_t j = 0; j < seen; j++) {
            double weight = exp(logit(in, 2, head, i, j));

            logit_run(in, 2, head, i, j, 1, 1, &read);
            CHECK_NEAR(read, logit(in, 2, head, i, j), 1e-12);
            sum += weight;
            for (int64_t p = 0; p < e; p++)
                values[p] += weight * entry(&in->v, head, 2, j, p);
        }
        CHECK_NEAR(f64(out->lse)[row], log(sum), 1e-6);
        for (int64_t p = 0; p < e; p++)
            CHECK_NEAR((double)tensor_f32(&out->out)[row * e + p], values[p] / sum, 3e-6);
    }
}

static LogitAttend logits_of(Fixture *f, LogitKind kind, int64_t n, int64_t m)
{
    LogitAttend in = { .kind = kind, .n = n, .v = fixture_normal(f, 1, m, 3, 1), .seed = 4,
                       .stream = 9, .bound = 0.7, .turned = n % 2 };

    if (kind == LOGITS_GIVEN)
        in.left = some(f, false, 2, n, m);
    if (kind == LOGITS_PRODUCT) {
        in.left = some(f, n % 3, 2, n, 6);
        in.right = some(f, n % 3 == 1, 1, in.turned ? m : 6, in.turned ? 6 : m);
        in.bias = tensor_with_rank(fixture_normal(f, 1, 2, m, 1), 2);
    }
    if (kind == LOGITS_FOLDED || kind == LOGITS_TILED) {
        in.left = some(f, true, 2, n, 4);
        in.right = some(f, true, 2, n, (m + 3) / 4);
    }
    return in;
}

TEST(every_kind_of_logits)
{
    static const int64_t sizes[] = { 1, 2, 7, 40, 131, 300 };

    for (int which = 0; which < 6 * 5 * 2 * 2; which++) {
        int64_t     n = sizes[which % 6];
        LogitKind   kind = (LogitKind)(which / 6 % 5);
        bool        cross = which / 60 && kind <= LOGITS_PRODUCT;
        Fixture     f = fixture_new(1 + which % 3, 8);
        LogitAttend in = logits_of(&f, kind, n, cross ? n + 5 : n);
        LogitResult out = { fixture_tensor(&f, DT_F32, 2, n, 3),
                            tensor_with_rank(fixture_tensor(&f, DT_F64, 1, 2, n), 2) };

        in.causal = !cross && which / 30 % 2;
        cpu_logit_attend(f.run, &in, &out);
        check_attend(&in, &out);
        fixture_free(&f);
    }
}

/* A row of folded logits ends where `left` does not: memory behind the scratch of the rows keeps
 * what stands there. */
TEST(folded_logits_stay_in_their_row)
{
    enum { N = 7, FOLD = 2000, BEHIND = 8 << 10, ROOM = 20 << 10 };
    Fixture     f = fixture_new(1, 8);
    LogitAttend in = { .kind = LOGITS_FOLDED, .n = N, .v = fixture_normal(&f, 1, N, 3, 1),
                       .left = some(&f, true, 2, N, FOLD), .right = some(&f, true, 2, N, 1) };
    LogitResult out = { fixture_tensor(&f, DT_F32, 2, N, 3),
                        tensor_with_rank(fixture_tensor(&f, DT_F64, 1, 2, N), 2) };
    ArenaMark   mark = arena_mark(f.run->arena);
    char       *room = arena_alloc(f.run->arena, ROOM, 1), *again, before[ROOM];

    assert_non_null(room);
    memset(room, 0x5a, ROOM);
    arena_release(f.run->arena, mark);
    assert_ptr_equal(arena_alloc(f.run->arena, ROOM, 1), room); /* as scratch of the operation is */
    memcpy(before, room, ROOM); /* what a release leaves */
    arena_release(f.run->arena, mark);
    cpu_logit_attend(f.run, &in, &out);
    check_attend(&in, &out);
    again = arena_alloc(f.run->arena, ROOM, 1);
    assert_ptr_equal(again, room);
    assert_memory_equal(again + BEHIND, before + BEHIND, ROOM - BEHIND);
    arena_release(f.run->arena, mark);
    fixture_free(&f);
}

SUITE(NULL, NULL)
