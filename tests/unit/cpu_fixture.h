/* tests/unit/cpu_fixture.h -- a Run without a mechanism, for tests of the CPU's ops.
 *
 * The ops look only at the run's arena, threads and cancel flag, so that is
 * all a fixture fills in.  References are in double and as plain as possible.
 */
#ifndef TESTS_UNIT_CPU_FIXTURE_H
#define TESTS_UNIT_CPU_FIXTURE_H

#include "attn/cpu/cpu.h"
#include "check.h"
#include "core/rng.h"
#include "core/threads.h"

typedef struct Fixture {
    Run *run;
    Rng  rng;
} Fixture;

static inline Fixture fixture_new(int threads, uint64_t seed)
{
    Fixture f = { .run = calloc(1, sizeof(Run)), .rng = { .seed = seed } };

    assert_non_null(f.run);
    f.run->arena = arena_new();
    assert_non_null(f.run->arena);
    f.run->threads = threads > 1 ? threads_new(threads) : NULL;
    return f;
}

static inline void fixture_free(Fixture *f)
{
    assert_int_equal(f->run->err.code, ERR_NONE);
    assert_true(arena_check(f->run->arena));
    threads_free(f->run->threads);
    arena_free(f->run->arena);
    free(f->run);
}

static inline Tensor fixture_tensor(Fixture *f, DType dtype, int64_t a, int64_t b, int64_t c)
{
    int64_t shape[3] = { a, b, c };
    Tensor  t = tensor_new(f->run->arena, dtype, 3, shape);

    assert_non_null(t.data);
    memset(t.data, 0x5a, (size_t)tensor_bytes(&t));
    return t;
}

static inline Tensor fixture_normal(Fixture *f, int64_t a, int64_t b, int64_t c, double deviation)
{
    Tensor t = fixture_tensor(f, DT_F32, a, b, c);

    rng_fill_normal(&f->rng, t.data, tensor_count(&t), deviation);
    return t;
}

/* max |a - b| / max(1, |b|); NaN when anything is not a number. */
static inline double worst_error(const float *a, const double *b, int64_t count)
{
    double worst = 0;

    for (int64_t x = 0; x < count; x++) {
        double diff = (double)a[x] == b[x] ? 0 : fabs((double)a[x] - b[x]);
        double error = diff / fmax(1.0, fabs(b[x]));

        if (!(error <= worst))
            worst = error;
        if (isnan(error))
            return (double)NAN;
    }
    return worst;
}

#define CHECK_BELOW(value, limit, ...)                                                           \
    do {                                                                                         \
        double value_ = (value);                                                                 \
        if (!(value_ <= (limit))) {                                                              \
            fprintf(stderr, __VA_ARGS__);                                                        \
            fprintf(stderr, ": %g > %g\n", value_, (double)(limit));                             \
            fail();                                                                              \
        }                                                                                        \
    } while (0)

#endif
