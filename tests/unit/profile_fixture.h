/* tests/unit/profile_fixture.h -- inputs, specs and reading back JSON, for the profiler's tests. */
#ifndef TESTS_UNIT_PROFILE_FIXTURE_H
#define TESTS_UNIT_PROFILE_FIXTURE_H

#include <jansson.h>

#include "check.h"
#include "core/rng.h"
#include "core/threads.h"
#include "profile/measure.h"

/* cmocka's own comparison of reals is in float. */
#define CHECK_WITHIN(value, expected, tolerance)                                                   \
    do {                                                                                         \
        double value_ = (value), expected_ = (expected);                                         \
        if (!(fabs(value_ - expected_) <= (tolerance)))                                          \
            fail_msg("%s = %.17g, expected %.17g", #value, value_, expected_);                   \
    } while (0)

#define MEASURE_ONCE ((MeasurePlan){ .repeats = 0 })

typedef struct Fixture {
    Arena      *arena;
    Threads    *threads;
    Assignments given;
    RunSpec     spec;
} Fixture;

static inline Tensor fixture_normal(Fixture *f, const char *name, int64_t h, int64_t n, int64_t d,
                                    double deviation)
{
    int64_t shape[3] = { h, n, d };
    Tensor  t = tensor_new(f->arena, DT_F32, 3, shape);
    Rng     rng = rng_named(3, name);

    assert_non_null(t.data);
    rng_fill_normal(&rng, t.data, tensor_count(&t), deviation);
    return t;
}

/* Parameters as on the command line: "expr=window(5)". */
static inline void fixture_choose(Fixture *f, const char *mechanism, const char *params)
{
    Error err = ERROR_INIT;

    assignments_free(&f->given);
    assert_true(mechanism_parse(mechanism, &f->spec.mechanism, &err));
    assert_true(assignments_parse(&f->given, params, &err));
    f->spec.given = &f->given;
}

static inline Fixture fixture_new(int64_t h, int64_t n, int64_t d, int threads)
{
    Fixture f = { .arena = arena_new() };

    assert_non_null(f.arena);
    f.threads = threads > 1 ? threads_new(threads) : NULL;
    f.spec.q = fixture_normal(&f, "q", h, n, d, 2);
    f.spec.k = fixture_normal(&f, "k", h, n, d, 2);
    f.spec.v = fixture_normal(&f, "v", h, n, d, 1);
    f.spec.threads = f.threads;
    f.spec.seed = 7;
    return f;
}

static inline void fixture_free(Fixture *f)
{
    assignments_free(&f->given);
    threads_free(f->threads);
    arena_free(f->arena);
}

/* The record as jansson reads it; the caller decrefs. */
static inline json_t *record_parsed(const Record *record)
{
    Text         text = { 0 };
    Json         j = jsonw_to(&text);
    json_error_t why;
    json_t      *root;

    record_json(record, &j);
    assert_true(text_ok(&text));
    root = json_loads(text_str(&text), JSON_REJECT_DUPLICATES, &why);
    if (!root)
        fail_msg("not JSON: %s at %d in %s", why.text, why.position, text_str(&text));
    text_free(&text);
    return root;
}

/* "a.b.c" of an object; fails when a key is missing. */
static inline json_t *json_at(json_t *root, const char *path)
{
    char  copy[128], *rest = NULL;
    char *key;

    snprintf(copy, sizeof(copy), "%s", path);
    for (key = strtok_r(copy, ".", &rest); key; key = strtok_r(NULL, ".", &rest)) {
        root = json_object_get(root, key);
        if (!root)
            fail_msg("no key '%s' of %s", key, path);
    }
    return root;
}

#endif
