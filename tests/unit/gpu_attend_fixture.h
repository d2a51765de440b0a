/* tests/unit/gpu_attend_fixture.h -- pattern attention of one problem on the CPU and on the device.
 *
 * What narrow numbers may be off by, for values and scores of size 1 to 4 as here:
 *   bf16  8 bits: a value is off by 2^-9 of itself, a score of 4 by up to 4 2^-8, so is a weight
 *   tf32, f16  11 bits: an eighth of that
 */
#ifndef TESTS_UNIT_GPU_ATTEND_FIXTURE_H
#define TESTS_UNIT_GPU_ATTEND_FIXTURE_H

#include "gpu_fixture.h"

#define NEAR_F32 1e-5
#define NEAR_TF32 3e-3
#define NEAR_BF16 2.4e-2

typedef struct Shape {
    int64_t h, h_kv, n, m, d, e;
} Shape;

typedef struct Case {
    GpuFixture   f;
    Shape        s;
    AttendInput  in;
    Pattern     *pattern;
    AttendResult cpu, gpu;
    double       cpu_cells, gpu_cells;
} Case;

static inline double near_of(Arithmetic arithmetic)
{
    return arithmetic == ARITHMETIC_F32    ? NEAR_F32
           : arithmetic == ARITHMETIC_BF16 ? NEAR_BF16
                                           : NEAR_TF32;
}

static inline Case case_new(Shape s, Arithmetic arithmetic)
{
    Case     c = { .f = gpu_fixture_new(s.h, 11), .s = s };
    Fixture *g = &c.f.gpu;

    g->run->ops = device_ops(c.f.device, arithmetic);
    c.in.q = fixture_normal(g, s.h, s.n, s.d, 1);
    c.in.k = fixture_normal(g, s.h_kv, s.m, s.d, 1);
    c.in.v = fixture_normal(g, s.h_kv, s.m, s.e, 1);
    c.in.scale = 1 / sqrt((double)s.d);
    return c;
}

static inline PatternShape pattern_shape(const Case *c)
{
    return (PatternShape){ .heads = c->s.h, .n = c->s.n, .m = c->s.m };
}

static inline AttendResult result_new(Fixture *f, const Shape *s)
{
    AttendResult out = { .out = fixture_tensor(f, DT_F32, s->h, s->n, s->e),
                         .lse = fixture_tensor(f, DT_F32, 1, s->h, s->n) };

    out.lse = tensor_with_rank(out.lse, 2);
    return out;
}

static inline void case_run(Case *c)
{
    Run *cpu = c->f.cpu.run, *gpu = c->f.gpu.run;

    c->cpu = result_new(&c->f.gpu, &c->s);
    c->gpu = result_new(&c->f.gpu, &c->s);
    cpu->ops->attend(cpu, &c->in, c->pattern, &c->cpu, &c->cpu_cells);
    gpu->ops->attend(gpu, &c->in, c->pattern, &c->gpu, &c->gpu_cells);
    assert_int_equal(gpu->err.code, ERR_NONE);
    assert_true(c->cpu_cells == c->gpu_cells);
}

static inline void case_check(Case *c, double near)
{
    double out, lse;

    case_run(c);
    out = gpu_difference(&c->gpu.out, &c->cpu.out);
    lse = gpu_difference(&c->gpu.lse, &c->cpu.lse);
    if (!(out <= near && lse <= near))
        fprintf(stderr, "h=%d/%d n=%d m=%d d=%d e=%d: output off by %g, log-sum-exp by %g\n",
                (int)c->s.h, (int)c->s.h_kv, (int)c->s.n, (int)c->s.m, (int)c->s.d, (int)c->s.e,
                out, lse);
    assert_true(out <= near && lse <= near);
}

static inline void case_free(Case *c)
{
    gpu_fixture_free(&c->f);
}

/* ---- patterns ------------------------------------------------------------------------ */

typedef Pattern *(*Maker)(Case *c, Arena *a, PatternShape s);

static inline Pattern *full(Case *c, Arena *a, PatternShape s)
{
    (void)c;
    return pattern_full(a, s, 0);
}

static inline Pattern *causal(Case *c, Arena *a, PatternShape s)
{
    s.q_offset = c->s.m - c->s.n;
    return pattern_causal(a, s);
}

static inline Pattern *causal_from_first(Case *c, Arena *a, PatternShape s)
{
    (void)c;
    return pattern_causal(a, s);
}

static inline Pattern *window(Case *c, Arena *a, PatternShape s)
{
    (void)c;
    return pattern_band(a, s, -9, 9, 1, COMPONENT_WINDOW);
}

static inline Pattern *strided(Case *c, Arena *a, PatternShape s)
{
    (void)c;
    return pattern_union(a, pattern_stride(a, s, 7), pattern_band(a, s, -3, 0, 1, 0));
}

static inline Pattern *with_global(Case *c, Arena *a, PatternShape s)
{
    uint8_t *flags = arena_zalloc(a, (c->s.n > c->s.m ? c->s.n : c->s.m), 1);

    flags[0] = 1;
    return pattern_union(a, window(c, a, s),
                         pattern_union(a, pattern_rows(a, s, flags), pattern_cols(a, s, flags)));
}

/* Every third row has no key. */
static inline Pattern *with_holes(Case *c, Arena *a, PatternShape s)
{
    uint8_t *flags = arena_zalloc(a, c->s.n, 1);

    for (int64_t i = 0; i < c->s.n; i += 3)
        flags[i] = 1;
    return pattern_difference(a, window(c, a, s), pattern_rows(a, s, flags));
}

static inline Pattern *by_head(Case *c, Arena *a, PatternShape s)
{
    Pattern *each[2] = { window(c, a, s), strided(c, a, s) };

    return pattern_by_head(a, s, each, 2);
}

static inline Pattern *nothing(Case *c, Arena *a, PatternShape s)
{
    (void)c;
    return pattern_none(a, s);
}

static const Maker makers[] = { full, causal, causal_from_first, window, strided, with_global,
                                with_holes, by_head, nothing };
#define MAKERS (sizeof(makers) / sizeof(*makers))

#endif
