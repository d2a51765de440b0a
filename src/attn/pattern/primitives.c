/* primitives.c -- what each name of the pattern language builds.
 *
 * One row of the table per primitive: its name, its builder, and its arguments
 * with their types, defaults and least values (docs/patterns.md).
 */
#include "attn/pattern/node.h"
#include "attn/pattern/pattern.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"

Pattern *pattern_built(PatternParser *p, Pattern *pattern)
{
    return pattern ? pattern : pattern_no_memory(p);
}

/* A builder that is one call of pattern.h; P: where it is built; N(i): the number of argument i. */
#define P    p->arena, p->shape
#define N(i) v[i].number
#define BUILD(name, pattern)                                                                   \
    static Pattern *build_##name(PatternParser *p, const PatternValue *v)                      \
    {                                                                                          \
        (void)v;                                                                               \
        return pattern_built(p, pattern);                                                      \
    }

BUILD(full, pattern_full(P, COMPONENT_OTHER))
BUILD(none, pattern_none(P))
BUILD(self, pattern_band(P, 0, 0, 1, COMPONENT_OTHER))
BUILD(causal, pattern_causal(P))
BUILD(band, pattern_band(P, N(0), N(1), 1, COMPONENT_WINDOW))
BUILD(block, pattern_chunk(P, N(0), 0, 0))
BUILD(chunk, pattern_chunk(P, N(0), N(1), N(2)))
BUILD(local, pattern_local(P, N(0), N(1), N(2)))
BUILD(shift, pattern_shift(P, N(0), N(1)))
BUILD(stride, pattern_stride(P, N(0)))
BUILD(log, pattern_log(P, N(0), N(1)))
BUILD(ring, pattern_ring(P, N(0)))
BUILD(image, pattern_image(P, N(0), N(1), N(2), N(3), N(4), N(5)))

static Pattern *build_window(PatternParser *p, const PatternValue *v)
{
    int64_t reach = v[0].number / 2 * v[1].number;

    if (v[0].number > 0 && v[0].number % 2 == 0 && p->source && p->source->even)
        p->source->even(p->source->context, v[0].number);
    return pattern_built(p, pattern_band(p->arena, p->shape, -reach, reach, v[1].number,
                                         v[1].number > 1 ? COMPONENT_STRIDED : COMPONENT_WINDOW));
}

static Pattern *build_summary(PatternParser *p, const PatternValue *v)
{
    int64_t s = v[0].number, c = v[1].number, part = v[2].number;

    if ((part + 1) * c > s)
        return pattern_fail(
            p, v[0].offset,
            "summary: (v+1) c must not exceed the stride, got v=%lld c=%lld stride=%lld",
            (long long)part, (long long)c, (long long)s);
    return pattern_built(p, pattern_summary(p->arena, p->shape, s, c, part));
}

/* Indices of a $tensor as flags; negative ones count from the end. */
static uint8_t *tensor_flags(PatternParser *p, PatternValue *v, uint8_t *flags)
{
    int64_t n = p->shape.n, index[TENSOR_MAX_RANK] = { 0 };
    double  value = 0;

    if (v->tensor.rank > 1)
        return pattern_fail(p, v->offset, "$%s: expected a list of indices (one axis), it has %d",
                            v->name, v->tensor.rank);
    if (tensor_not_whole(&v->tensor, -n, n - 1, &value) >= 0)
        return pattern_fail(p, v->offset, "$%s: index %.17g is none of the %lld positions "
                            "(0..%lld, or -%lld..-1)", v->name, value, (long long)n,
                            (long long)n - 1, (long long)n);
    for (int64_t c = 0; c < tensor_count(&v->tensor); c++) {
        int64_t j;

        index[0] = c;
        j = (int64_t)tensor_get(&v->tensor, index);
        v->moves |= j < 0;
        flags[j < 0 ? j + n : j] = 1;
    }
    return flags;
}

/* count, list or $tensor as flags of the n positions. */
static uint8_t *index_flags(PatternParser *p, PatternValue *v)
{
    int64_t  n = p->shape.n;
    uint8_t *flags;

    if (v->kind == VALUE_LIST)
        return tensor_u8(&v->tensor);
    flags = arena_zalloc(p->arena, n, 1);
    if (!flags)
        return pattern_no_memory(p);
    if (v->kind == VALUE_TENSOR)
        return tensor_flags(p, v, flags);
    if (v->number < 0)
        return pattern_fail(p, v->offset, "the count must be at least 0, got %lld",
                            (long long)v->number);
    v->moves = v->number > n;
    memset(flags, 1, (size_t)(v->number < n ? v->number : n));
    return flags;
}

/* Rows or columns of these positions. */
static Pattern *lines_of(PatternParser *p, const PatternValue *v, const uint8_t *flags,
                         Pattern *(*build)(Arena *, PatternShape, const uint8_t *))
{
    Pattern *lines = build(p->arena, p->shape, flags);

    return v->moves ? pattern_ruled(lines, RULE_UNKNOWN) : lines;
}

static Pattern *build_global(PatternParser *p, const PatternValue *v)
{
    PatternValue g = v[0];
    uint8_t     *flags = index_flags(p, &g);

    if (!flags)
        return NULL;
    return pattern_built(p, pattern_union(p->arena, lines_of(p, &g, flags, pattern_rows),
                                          lines_of(p, &g, flags, pattern_cols)));
}

static Pattern *primitives_build_rows(PatternParser *p, const PatternValue *v)
{
    PatternValue g = v[0];
    uint8_t     *flags = index_flags(p, &g);

    return flags ? pattern_built(p, lines_of(p, &g, flags, pattern_rows)) : NULL;
}

static Pattern *build_cols(PatternParser *p, const PatternValue *v)
{
    PatternValue g = v[0];
    uint8_t     *flags = index_flags(p, &g);

    return flags ? pattern_built(p, lines_of(p, &g, flags, pattern_cols)) : NULL;
}

/* The tensor has `rank_lo`..3 axes: [n, last] or [h, n, last]. */
static bool table_fits(PatternParser *p, const PatternValue *v, int64_t last)
{
    const Tensor *t = &v->tensor;
    char          shape[80];
    bool          fits = t->rank == 2 || t->rank == 3;

    fits = fits && t->shape[t->rank - 2] == p->shape.n &&
           (t->rank == 2 || t->shape[0] == p->shape.heads || t->shape[0] == 1) &&
           (last < 0 || t->shape[t->rank - 1] == last);
    if (fits)
        return true;
    if (last < 0)
        pattern_fail(p, v->offset, "$%s: expected [%lld,r] or [%lld,%lld,r], it is %s", v->name,
                     (long long)p->shape.n, (long long)p->shape.heads, (long long)p->shape.n,
                     tensor_shape_text(t, shape, sizeof(shape)));
    else
        pattern_fail(p, v->offset, "$%s: expected [%lld,%lld] or [%lld,%lld,%lld], it is %s",
                     v->name, (long long)p->shape.n, (long long)last, (long long)p->shape.heads,
                     (long long)p->shape.n, (long long)last,
                     tensor_shape_text(t, shape, sizeof(shape)));
    return false;
}

static Pattern *random_table(PatternParser *p, const PatternValue *v)
{
    Tensor table = v->tensor;
    double key = 0;

    if (!table_fits(p, v, -1))
        return NULL;
    if (tensor_not_whole(&table, -1, p->shape.m - 1, &key) >= 0)
        return pattern_fail(p, v->offset, "$%s: key %.17g is none of the %lld positions (0..%lld, "
                            "-1: unused)", v->name, key, (long long)p->shape.m,
                            (long long)p->shape.m - 1);
    table = tensor_convert(p->arena, table, DT_I32);
    if (!table.data)
        return pattern_no_memory(p);
    return pattern_built(p, pattern_table(p->arena, p->shape, &table, COMPONENT_RANDOM));
}

static Pattern *build_random(PatternParser *p, const PatternValue *v)
{
    char   name[32] = "random";
    Tensor table;

    if (v[0].kind == VALUE_TENSOR)
        return random_table(p, &v[0]);
    if (v[0].number < 0)
        return pattern_fail(p, v[0].offset, "random: the count must be at least 0, got %lld",
                            (long long)v[0].number);
    if (p->draws++ > 0)
        snprintf(name, sizeof(name), "random_%d", p->draws);
    table =
        pattern_draw_random(p->arena, p->shape, v[0].number < p->shape.m ? v[0].number : p->shape.m,
                            p->source ? p->source->seed : 0, name, NULL, NULL);
    if (!table.data)
        return pattern_no_memory(p);
    if (p->source && p->source->drawn)
        p->source->drawn(p->source->context, name, table);
    return pattern_built(p, pattern_table(p->arena, p->shape, &table, COMPONENT_RANDOM));
}

static Pattern *build_mask(PatternParser *p, const PatternValue *v)
{
    Tensor mask = v[0].tensor, flags;

    if (!table_fits(p, &v[0], p->shape.m))
        return NULL;
    flags = tensor_nonzero(p->arena, mask);
    if (!flags.data)
        return pattern_no_memory(p);
    return pattern_built(p, pattern_mask(p->arena, p->shape, &flags));
}

/* One whole number a token: [n], or [h,n] where heads differ. */
static bool primitives_numbers_fit(PatternParser *p, const PatternValue *v)
{
    const Tensor *t = &v->tensor;
    int64_t       n = p->shape.n, h = p->shape.heads;
    char          shape[80];

    if (t->dtype == DT_F32 || t->dtype == DT_F64)
        return pattern_fail(p, v->offset,
                            "same: $%s has dtype %s; expected whole numbers (int32 or int64), "
                            "one a token",
                            v->name, dtype_name(t->dtype)) != NULL;
    if ((t->rank == 1 && t->shape[0] == n) ||
        (t->rank == 2 && t->shape[1] == n && (t->shape[0] == h || t->shape[0] == 1)))
        return true;
    return pattern_fail(p, v->offset, "same: $%s: expected [%lld] or [%lld,%lld]%s, it is %s",
                        v->name, (long long)n, (long long)h, (long long)n,
                        p->tiled ? " (inside tile: one number a block)" : "",
                        tensor_shape_text(t, shape, sizeof(shape))) != NULL;
}

static Pattern *build_same(PatternParser *p, const PatternValue *v)
{
    Tensor numbers;

    if (!primitives_numbers_fit(p, &v[0]))
        return NULL;
    numbers = tensor_convert(p->arena, v[0].tensor, DT_I64);
    return pattern_built(p, pattern_same(p->arena, p->shape, &numbers));
}

static Pattern *build_runs(PatternParser *p, const PatternValue *v)
{
    const Tensor *t = &v[0].tensor;
    Tensor        list;
    Pattern      *out;
    Error         err = ERROR_INIT;
    char          shape[80];

    if (t->dtype == DT_F32 || t->dtype == DT_F64 || t->rank != 2 || t->shape[1] != LISTED_FIELDS)
        return pattern_fail(p, v[0].offset,
                            "$%s: expected whole numbers [count,%d], it is %s of %s", v[0].name,
                            LISTED_FIELDS, tensor_shape_text(t, shape, sizeof(shape)),
                            dtype_name(t->dtype));
    list = tensor_convert(p->arena, *t, DT_I64);
    if (!list.data)
        return pattern_no_memory(p);
    out = pattern_of_list(p->arena, p->shape, &list, &err);
    return out ? out : pattern_fail(p, v[0].offset, "$%s: %s", v[0].name, err.text);
}

static const PatternPrimitive primitives[] = {
    { "full", build_full, { { 0 } } },
    { "none", build_none, { { 0 } } },
    { "self", build_self, { { 0 } } },
    { "causal", build_causal, { { 0 } } },
    { "window", build_window, { { "w", "i", true, 0, 0 }, { "d", "i", false, 1, 1 } } },
    { "band",
      build_band,
      { { "lo", "i", true, 0, INT32_MIN }, { "hi", "i", true, 0, INT32_MIN } } },
    { "block", build_block, { { "b", "i", true, 0, 1 } } },
    { "row", build_block, { { "width", "i", true, 0, 1 } } },
    { "chunk",
      build_chunk,
      { { "b", "i", true, 0, 1 }, { "back", "i", false, 0, 0 }, { "ahead", "i", false, 0, 0 } } },
    { "local",
      build_local,
      { { "b", "i", true, 0, 1 }, { "left", "i", false, 0, 0 }, { "right", "i", false, 0, 0 } } },
    { "shift", build_shift, { { "nb", "i", true, 0, 1 }, { "s", "i", false, 0, INT32_MIN } } },
    { "stride", build_stride, { { "s", "i", true, 0, 1 } } },
    { "col", build_stride, { { "width", "i", true, 0, 1 } } },
    { "summary",
      build_summary,
      { { "s", "i", true, 0, 1 }, { "c", "i", false, 1, 1 }, { "v", "i", false, 0, 0 } } },
    { "log", build_log, { { "local", "i", false, 1, 1 }, { "restart", "i", false, 0, 0 } } },
    { "global", build_global, { { "g", "ilt", true, 0, INT32_MIN } } },
    { "rows", primitives_build_rows, { { "g", "ilt", true, 0, INT32_MIN } } },
    { "cols", build_cols, { { "g", "ilt", true, 0, INT32_MIN } } },
    { "random", build_random, { { "r", "it", true, 0, INT32_MIN } } },
    { "image",
      build_image,
      { { "width", "i", true, 0, 1 },
        { "hq", "i", true, 0, 1 },
        { "wq", "i", true, 0, 1 },
        { "hm", "i", false, 0, 0 },
        { "wm", "i", false, 0, 0 },
        { "below", "i", false, 0, 0 } } },
    { "ring", build_ring, { { "first", "i", false, 0, 0 } } },
    { "same", build_same, { { "t", "t", true, 0, 0 } } },
    { "mask", build_mask, { { "t", "t", true, 0, 0 } } },
    { "runs", build_runs, { { "t", "t", true, 0, 0 } } },
};
#define PRIMITIVES (sizeof(primitives) / sizeof(*primitives))

const PatternPrimitive *pattern_primitive(PatternParser *p, const char *name, size_t offset)
{
    Meant nearest = { name, NULL, ANY_SLIPS };
    Text  names = { 0 };

    for (size_t i = 0; i < PRIMITIVES; i++)
        if (!strcmp(primitives[i].name, name))
            return &primitives[i];
    for (size_t i = 0; i < PRIMITIVES; i++) {
        meant_offer(&nearest, primitives[i].name);
        text_addf(&names, "%s%s", i ? " " : "", primitives[i].name);
    }
    pattern_fail(p, offset, "unknown primitive '%s'; nearest is '%s' (there are: tile %s)", name,
                 nearest.name, text_str(&names));
    text_free(&names);
    return NULL;
}
