/* pattern_parse.c -- the pattern expression language.
 *
 *     heads      = expression { ";" expression }
 *     expression = term { ("+" | "|" | "-") term }
 *     term       = factor { "&" factor }
 *     factor     = "!" factor | "(" expression ")" | tile | primitive
 *     tile       = "tile" "(" integer "," expression ")"
 *     primitive  = name [ "(" [ argument { "," argument } ] ")" ]
 *     argument   = [ name "=" ] value
 *     value      = integer | list | "$" name
 *     list       = "[" [ item { "," item } ] "]"
 *     item       = integer [ ":" integer [ ":" integer ] ]
 *
 * A recursive descent parser that builds the nodes of pattern.c as it goes.
 * Every error names the byte offset and what was expected there.
 */
#include "attn/pattern.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

#define MAX_DEPTH 64
#define MAX_ARGUMENTS 6
#define MAX_HEADS 4096

typedef struct Value {
    enum { VALUE_ABSENT, VALUE_INT, VALUE_LIST, VALUE_TENSOR } kind;
    int64_t number;
    Tensor  tensor;  /* TENSOR as given; LIST: i64 indices in [0, n), arena */
    char    name[64]; /* TENSOR */
    size_t  offset;   /* where it stands in the text */
} Value;

typedef struct Parser {
    Arena               *arena;
    PatternShape         shape;  /* of the level being parsed; tile() changes it */
    const char          *text, *at;
    const PatternSource *source;
    Error               *err;
    int                  depth;
    int                  draws; /* random tables drawn so far */
} Parser;

static Pattern *parse_expression(Parser *p);

static void *fail(Parser *p, size_t offset, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void *fail(Parser *p, size_t offset, const char *fmt, ...)
{
    va_list args;
    char    what[300];

    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    error_set(p->err, ERR_PARAM, "pattern, at offset %zu: %s", offset, what);
    return NULL;
}

static void *no_memory(Parser *p)
{
    error_set(p->err, ERR_NOMEM, "pattern: not enough memory");
    return NULL;
}

static void skip_blanks(Parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static size_t offset_of(Parser *p)
{
    skip_blanks(p);
    return (size_t)(p->at - p->text);
}

static bool accept(Parser *p, char c)
{
    skip_blanks(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

/* "')'" or "the end of the text": what stands at the current place. */
static const char *here(Parser *p, char buffer[8])
{
    skip_blanks(p);
    if (!*p->at)
        return "the end of the text";
    snprintf(buffer, 8, "'%c'", *p->at);
    return buffer;
}

static bool expect(Parser *p, char c)
{
    char buffer[8];

    if (accept(p, c))
        return true;
    fail(p, offset_of(p), "expected '%c', found %s", c, here(p, buffer));
    return false;
}

static bool is_name_start(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool parse_name(Parser *p, char *name, size_t size)
{
    size_t length = 0;

    skip_blanks(p);
    if (!is_name_start(*p->at))
        return false;
    while (is_name_start(*p->at) || isdigit((unsigned char)*p->at) || *p->at == '_') {
        if (length + 1 < size)
            name[length++] = *p->at;
        p->at++;
    }
    name[length] = '\0';
    return true;
}

static bool parse_integer(Parser *p, int64_t *value)
{
    const char *digit;
    char        buffer[8];
    __int128    number = 0;
    bool        negative;

    skip_blanks(p);
    negative = *p->at == '-';
    digit = p->at + negative;
    if (!isdigit((unsigned char)*digit)) {
        fail(p, offset_of(p), "expected an integer, found %s", here(p, buffer));
        return false;
    }
    for (; isdigit((unsigned char)*digit); digit++) {
        number = number * 10 + (*digit - '0');
        if (number > INT32_MAX) {
            fail(p, offset_of(p), "the integer is too large (at most %d)", INT32_MAX);
            return false;
        }
    }
    p->at = digit;
    *value = negative ? -(int64_t)number : (int64_t)number;
    return true;
}

/* ---- lists ------------------------------------------------------------------ */

static int64_t clip(int64_t value, int64_t n)
{
    if (value < 0)
        value += n;
    return value < 0 ? 0 : value > n ? n : value;
}

/* One item: start, stop (excluded) and step, all inside the sequence. */
static bool parse_item(Parser *p, int64_t *start, int64_t *stop, int64_t *step)
{
    size_t  offset = offset_of(p);
    int64_t n = p->shape.n, given;

    if (!parse_integer(p, start))
        return false;
    given = *start;
    *step = 1;
    if (accept(p, ':')) {
        if (!parse_integer(p, stop))
            return false;
        if (accept(p, ':') && !parse_integer(p, step))
            return false;
        if (*step < 1) {
            fail(p, offset, "the step of a range must be at least 1, got %lld", (long long)*step);
            return false;
        }
        *start = clip(*start, n);
        *stop = clip(*stop, n);
        return true;
    }
    if (*start < 0)
        *start += n;
    *stop = *start + 1;
    if (*start >= 0 && *start < n)
        return true;
    fail(p, offset, "index %lld is outside the %lld positions (0..%lld, or -%lld..-1)",
         (long long)given, (long long)n, (long long)n - 1, (long long)n);
    return false;
}

/* The list as flags of positions: order and repetition do not matter. */
static bool parse_list(Parser *p, Value *value)
{
    int64_t  shape[1] = { p->shape.n }, start, stop, step;
    Tensor   flags = tensor_new(p->arena, DT_U8, 1, shape);
    uint8_t *in = flags.data;

    if (!in)
        return no_memory(p) != NULL;
    memset(in, 0, (size_t)p->shape.n);
    value->kind = VALUE_LIST;
    value->tensor = flags;
    if (accept(p, ']'))
        return true;
    do {
        if (!parse_item(p, &start, &stop, &step))
            return false;
        for (int64_t j = start; j < stop; j += step)
            in[j] = 1;
    } while (accept(p, ','));
    return expect(p, ']');
}

static bool parse_tensor(Parser *p, Value *value)
{
    char buffer[8];

    if (!parse_name(p, value->name, sizeof(value->name))) {
        fail(p, offset_of(p), "expected the name of a tensor after '$', found %s",
             here(p, buffer));
        return false;
    }
    if (!strcmp(value->name, "expr") || !strcmp(value->name, "scale") ||
        !strncmp(value->name, "pos_", 4)) {
        fail(p, value->offset, "$%s: this name belongs to a parameter, choose another",
             value->name);
        return false;
    }
    if (p->source && p->source->lookup)
        value->tensor = p->source->lookup(p->source->context, value->name);
    if (!value->tensor.data) {
        fail(p, value->offset, "tensor $%s is not given; give it by -p %s=@FILE.npy", value->name,
             value->name);
        return false;
    }
    if (p->source->used)
        p->source->used(p->source->context, value->name);
    value->kind = VALUE_TENSOR;
    return true;
}

static bool parse_value(Parser *p, Value *value)
{
    value->offset = offset_of(p);
    if (accept(p, '$'))
        return parse_tensor(p, value);
    if (accept(p, '['))
        return parse_list(p, value);
    value->kind = VALUE_INT;
    return parse_integer(p, &value->number);
}

/* ---- primitives ------------------------------------------------------------- */

typedef struct Arg {
    const char *name;
    const char *takes;    /* of "i": integer, "l": list, "t": tensor */
    bool        required;
    int64_t     fallback, lo;
} Arg;

typedef struct Primitive {
    const char *name;
    Pattern *(*build)(Parser *p, const Value *v);
    Arg         args[MAX_ARGUMENTS + 1];
} Primitive;

static Pattern *built(Parser *p, Pattern *pattern)
{
    return pattern ? pattern : no_memory(p);
}

static Pattern *build_full(Parser *p, const Value *v)
{
    (void)v;
    return built(p, pattern_full(p->arena, p->shape, COMPONENT_OTHER));
}

static Pattern *build_none(Parser *p, const Value *v)
{
    (void)v;
    return built(p, pattern_none(p->arena, p->shape));
}

static Pattern *build_self(Parser *p, const Value *v)
{
    (void)v;
    return built(p, pattern_band(p->arena, p->shape, 0, 0, 1, COMPONENT_OTHER));
}

static Pattern *build_causal(Parser *p, const Value *v)
{
    (void)v;
    return built(p, pattern_causal(p->arena, p->shape));
}

static Pattern *build_window(Parser *p, const Value *v)
{
    int64_t reach = v[0].number / 2 * v[1].number;

    return built(p, pattern_band(p->arena, p->shape, -reach, reach, v[1].number,
                                 v[1].number > 1 ? COMPONENT_STRIDED : COMPONENT_WINDOW));
}

static Pattern *build_band(Parser *p, const Value *v)
{
    return built(p, pattern_band(p->arena, p->shape, v[0].number, v[1].number, 1,
                                 COMPONENT_WINDOW));
}

static Pattern *build_block(Parser *p, const Value *v)
{
    return built(p, pattern_chunk(p->arena, p->shape, v[0].number, 0, 0));
}

static Pattern *build_chunk(Parser *p, const Value *v)
{
    return built(p, pattern_chunk(p->arena, p->shape, v[0].number, v[1].number, v[2].number));
}

static Pattern *build_local(Parser *p, const Value *v)
{
    return built(p, pattern_local(p->arena, p->shape, v[0].number, v[1].number, v[2].number));
}

static Pattern *build_shift(Parser *p, const Value *v)
{
    return built(p, pattern_shift(p->arena, p->shape, v[0].number, v[1].number));
}

static Pattern *build_stride(Parser *p, const Value *v)
{
    return built(p, pattern_stride(p->arena, p->shape, v[0].number));
}

static Pattern *build_summary(Parser *p, const Value *v)
{
    int64_t s = v[0].number, c = v[1].number, part = v[2].number;

    if ((part + 1) * c > s)
        return fail(p, v[0].offset,
                    "summary: (v+1) c must not exceed the stride, got v=%lld c=%lld stride=%lld",
                    (long long)part, (long long)c, (long long)s);
    return built(p, pattern_summary(p->arena, p->shape, s, c, part));
}

static Pattern *build_log(Parser *p, const Value *v)
{
    return built(p, pattern_log(p->arena, p->shape, v[0].number, v[1].number));
}

static Pattern *build_ring(Parser *p, const Value *v)
{
    return built(p, pattern_ring(p->arena, p->shape, v[0].number));
}

static Pattern *build_image(Parser *p, const Value *v)
{
    return built(p, pattern_image(p->arena, p->shape, v[0].number, v[1].number, v[2].number,
                                  v[3].number, v[4].number, v[5].number));
}

/* Indices of a $tensor as flags; negative ones count from the end. */
static uint8_t *tensor_flags(Parser *p, const Value *v, uint8_t *flags)
{
    int64_t n = p->shape.n, index[TENSOR_MAX_RANK] = { 0 };

    if (v->tensor.rank > 1)
        return fail(p, v->offset, "$%s: expected a list of indices (one axis), it has %d",
                    v->name, v->tensor.rank);
    for (int64_t c = 0; c < tensor_count(&v->tensor); c++) {
        int64_t j;

        index[0] = c;
        j = (int64_t)tensor_get(&v->tensor, index);
        if (j < 0)
            j += n;
        if (j < 0 || j >= n)
            return fail(p, v->offset, "$%s: index %lld is outside the %lld positions", v->name,
                        (long long)tensor_get(&v->tensor, index), (long long)n);
        flags[j] = 1;
    }
    return flags;
}

/* count, list or $tensor as flags of the n positions. */
static uint8_t *index_flags(Parser *p, const Value *v)
{
    int64_t  n = p->shape.n;
    uint8_t *flags;

    if (v->kind == VALUE_LIST)
        return tensor_u8(&v->tensor);
    flags = arena_zalloc(p->arena, n, 1);
    if (!flags)
        return no_memory(p);
    if (v->kind == VALUE_TENSOR)
        return tensor_flags(p, v, flags);
    if (v->number < 0)
        return fail(p, v->offset, "the count must be at least 0, got %lld", (long long)v->number);
    memset(flags, 1, (size_t)(v->number < n ? v->number : n));
    return flags;
}

static Pattern *build_global(Parser *p, const Value *v)
{
    uint8_t *flags = index_flags(p, &v[0]);

    if (!flags)
        return NULL;
    return built(p, pattern_union(p->arena, pattern_rows(p->arena, p->shape, flags),
                                  pattern_cols(p->arena, p->shape, flags)));
}

static Pattern *build_rows(Parser *p, const Value *v)
{
    uint8_t *flags = index_flags(p, &v[0]);

    return flags ? built(p, pattern_rows(p->arena, p->shape, flags)) : NULL;
}

static Pattern *build_cols(Parser *p, const Value *v)
{
    uint8_t *flags = index_flags(p, &v[0]);

    return flags ? built(p, pattern_cols(p->arena, p->shape, flags)) : NULL;
}

/* The tensor has `rank_lo`..3 axes: [n, last] or [h, n, last]. */
static bool table_fits(Parser *p, const Value *v, int64_t last)
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
        fail(p, v->offset, "$%s: expected [%lld,r] or [%lld,%lld,r], it is %s", v->name,
             (long long)p->shape.n, (long long)p->shape.heads, (long long)p->shape.n,
             tensor_shape_text(t, shape, sizeof(shape)));
    else
        fail(p, v->offset, "$%s: expected [%lld,%lld] or [%lld,%lld,%lld], it is %s", v->name,
             (long long)p->shape.n, (long long)last, (long long)p->shape.heads,
             (long long)p->shape.n, (long long)last, tensor_shape_text(t, shape, sizeof(shape)));
    return false;
}

static Pattern *random_table(Parser *p, const Value *v)
{
    Tensor table = v->tensor;

    if (!table_fits(p, v, -1))
        return NULL;
    table = tensor_convert(p->arena, table, DT_I32);
    if (!table.data)
        return no_memory(p);
    for (int64_t c = 0; c < tensor_count(&table); c++)
        if (tensor_i32(&table)[c] < -1 || tensor_i32(&table)[c] >= p->shape.m)
            return fail(p, v->offset, "$%s: key %d is outside the %lld positions (-1: unused)",
                        v->name, tensor_i32(&table)[c], (long long)p->shape.m);
    return built(p, pattern_table(p->arena, p->shape, &table, COMPONENT_RANDOM));
}

static Pattern *build_random(Parser *p, const Value *v)
{
    char   name[32] = "random";
    Tensor table;

    if (v[0].kind == VALUE_TENSOR)
        return random_table(p, &v[0]);
    if (v[0].number < 0)
        return fail(p, v[0].offset, "random: the count must be at least 0, got %lld",
                    (long long)v[0].number);
    if (p->draws++ > 0)
        snprintf(name, sizeof(name), "random_%d", p->draws);
    table = pattern_draw_random(p->arena, p->shape,
                                v[0].number < p->shape.m ? v[0].number : p->shape.m,
                                p->source ? p->source->seed : 0, name, NULL, NULL);
    if (!table.data)
        return no_memory(p);
    if (p->source && p->source->drawn)
        p->source->drawn(p->source->context, name, table);
    return built(p, pattern_table(p->arena, p->shape, &table, COMPONENT_RANDOM));
}

static Pattern *build_mask(Parser *p, const Value *v)
{
    Tensor mask = v[0].tensor, flags;

    if (!table_fits(p, &v[0], p->shape.m))
        return NULL;
    flags = tensor_new(p->arena, DT_U8, mask.rank, mask.shape);
    if (!flags.data)
        return no_memory(p);
    for (int64_t c = 0, index[TENSOR_MAX_RANK] = { 0 }; c < tensor_count(&mask); c++) {
        double value = tensor_get(&mask, index);

        tensor_u8(&flags)[c] = !(value >= 0 && value <= 0); /* NaN is not zero either */
        for (int i = mask.rank - 1; i >= 0 && ++index[i] == mask.shape[i]; i--)
            index[i] = 0;
    }
    return built(p, pattern_mask(p->arena, p->shape, &flags));
}

static const Primitive primitives[] = {
    { "full", build_full, { { 0 } } },
    { "none", build_none, { { 0 } } },
    { "self", build_self, { { 0 } } },
    { "causal", build_causal, { { 0 } } },
    { "window", build_window, { { "w", "i", true, 0, 0 }, { "d", "i", false, 1, 1 } } },
    { "band", build_band,
      { { "lo", "i", true, 0, INT32_MIN }, { "hi", "i", true, 0, INT32_MIN } } },
    { "block", build_block, { { "b", "i", true, 0, 1 } } },
    { "row", build_block, { { "width", "i", true, 0, 1 } } },
    { "chunk", build_chunk,
      { { "b", "i", true, 0, 1 }, { "back", "i", false, 0, 0 }, { "ahead", "i", false, 0, 0 } } },
    { "local", build_local,
      { { "b", "i", true, 0, 1 }, { "left", "i", false, 0, 0 }, { "right", "i", false, 0, 0 } } },
    { "shift", build_shift,
      { { "nb", "i", true, 0, 1 }, { "s", "i", false, 0, INT32_MIN } } },
    { "stride", build_stride, { { "s", "i", true, 0, 1 } } },
    { "col", build_stride, { { "width", "i", true, 0, 1 } } },
    { "summary", build_summary,
      { { "s", "i", true, 0, 1 }, { "c", "i", false, 1, 1 }, { "v", "i", false, 0, 0 } } },
    { "log", build_log, { { "local", "i", false, 1, 1 }, { "restart", "i", false, 0, 0 } } },
    { "global", build_global, { { "g", "ilt", true, 0, INT32_MIN } } },
    { "rows", build_rows, { { "g", "ilt", true, 0, INT32_MIN } } },
    { "cols", build_cols, { { "g", "ilt", true, 0, INT32_MIN } } },
    { "random", build_random, { { "r", "it", true, 0, INT32_MIN } } },
    { "image", build_image,
      { { "width", "i", true, 0, 1 }, { "hq", "i", true, 0, 1 }, { "wq", "i", true, 0, 1 },
        { "hm", "i", false, 0, 0 }, { "wm", "i", false, 0, 0 }, { "below", "i", false, 0, 0 } } },
    { "ring", build_ring, { { "first", "i", false, 0, 0 } } },
    { "mask", build_mask, { { "t", "t", true, 0, 0 } } },
};
#define PRIMITIVES (sizeof(primitives) / sizeof(*primitives))

static const Primitive *find_primitive(Parser *p, const char *name, size_t offset)
{
    const Primitive *nearest = primitives;
    Text             names = { 0 };

    for (size_t i = 0; i < PRIMITIVES; i++)
        if (!strcmp(primitives[i].name, name))
            return &primitives[i];
    for (size_t i = 0; i < PRIMITIVES; i++) {
        if (text_distance(name, primitives[i].name) < text_distance(name, nearest->name))
            nearest = &primitives[i];
        text_addf(&names, "%s%s", i ? " " : "", primitives[i].name);
    }
    fail(p, offset, "unknown primitive '%s'; nearest is '%s' (there are: tile %s)", name,
         nearest->name, text_str(&names));
    text_free(&names);
    return NULL;
}

static int find_arg(const Primitive *f, const char *name)
{
    for (int i = 0; f->args[i].name; i++)
        if (!strcmp(f->args[i].name, name))
            return i;
    return -1;
}

static bool check_value(Parser *p, const Primitive *f, const Arg *arg, const Value *v)
{
    static const char letters[] = { [VALUE_INT] = 'i', [VALUE_LIST] = 'l', [VALUE_TENSOR] = 't' };

    if (!strchr(arg->takes, letters[v->kind])) {
        fail(p, v->offset, "%s: %s must be %s", f->name, arg->name,
             !strcmp(arg->takes, "i") ? "an integer"
             : !strcmp(arg->takes, "t") ? "a tensor ($name)"
             : !strcmp(arg->takes, "it") ? "an integer or a tensor ($name)"
                                         : "an integer, a list or a tensor ($name)");
        return false;
    }
    if (v->kind == VALUE_INT && v->number < arg->lo) {
        fail(p, v->offset, "%s: %s must be at least %lld, got %lld", f->name, arg->name,
             (long long)arg->lo, (long long)v->number);
        return false;
    }
    return true;
}

/* An argument may start with "name =", told from a value by its first letter. */
static bool parse_argument(Parser *p, const Primitive *f, Value *values, int position, bool *named)
{
    char   name[64];
    size_t offset = offset_of(p);
    int    slot = position;

    if (parse_name(p, name, sizeof(name))) {
        slot = find_arg(f, name);
        if (slot < 0) {
            fail(p, offset, "%s has no argument '%s'", f->name, name);
            return false;
        }
        *named = true;
        if (!expect(p, '='))
            return false;
    } else if (*named) {
        fail(p, offset, "%s: a positional argument after a named one", f->name);
        return false;
    }
    if (slot >= MAX_ARGUMENTS || !f->args[slot].name) {
        fail(p, offset, "%s: one argument too many", f->name);
        return false;
    }
    if (values[slot].kind != VALUE_ABSENT) {
        fail(p, offset, "%s: %s is given twice", f->name, f->args[slot].name);
        return false;
    }
    return parse_value(p, &values[slot]) && check_value(p, f, &f->args[slot], &values[slot]);
}

static bool parse_arguments(Parser *p, const Primitive *f, Value *values)
{
    bool named = false;

    if (!accept(p, '(') || accept(p, ')'))
        return true;
    for (int position = 0;; position++) {
        if (!parse_argument(p, f, values, position, &named))
            return false;
        if (!accept(p, ','))
            return expect(p, ')');
    }
}

static Pattern *parse_primitive(Parser *p, const char *name, size_t offset)
{
    Value            values[MAX_ARGUMENTS] = { { 0 } };
    const Primitive *f = find_primitive(p, name, offset);

    if (!f || !parse_arguments(p, f, values))
        return NULL;
    for (int i = 0; f->args[i].name; i++) {
        if (values[i].kind != VALUE_ABSENT)
            continue;
        if (f->args[i].required)
            return fail(p, offset, "%s needs its argument '%s'", f->name, f->args[i].name);
        values[i].kind = VALUE_INT;
        values[i].number = f->args[i].fallback;
        values[i].offset = offset;
    }
    return f->build(p, values);
}

static Pattern *parse_tile(Parser *p)
{
    PatternShape outer = p->shape;
    size_t       offset;
    int64_t      b;
    Pattern     *inner;

    if (!expect(p, '('))
        return NULL;
    offset = offset_of(p);
    if (!parse_integer(p, &b))
        return NULL;
    if (b < 1)
        return fail(p, offset, "tile: the block must be at least 1, got %lld", (long long)b);
    if (!expect(p, ','))
        return NULL;
    p->shape.n = (outer.n + b - 1) / b;
    p->shape.m = (outer.m + b - 1) / b;
    inner = parse_expression(p);
    p->shape = outer;
    if (!inner || !expect(p, ')'))
        return NULL;
    return built(p, pattern_tile(p->arena, outer, b, inner));
}

static Pattern *parse_factor(Parser *p)
{
    char     name[64], buffer[8];
    size_t   offset = offset_of(p);
    Pattern *inner;

    if (p->depth >= MAX_DEPTH)
        return fail(p, offset, "the expression is nested more than %d deep", MAX_DEPTH);
    p->depth++;
    if (accept(p, '!')) {
        inner = parse_factor(p);
        inner = inner ? built(p, pattern_complement(p->arena, inner)) : NULL;
    } else if (accept(p, '(')) {
        inner = parse_expression(p);
        inner = inner && expect(p, ')') ? inner : NULL;
    } else if (!parse_name(p, name, sizeof(name))) {
        inner = fail(p, offset, "expected a primitive, 'tile', '!' or '(', found %s",
                     here(p, buffer));
    } else {
        inner = strcmp(name, "tile") ? parse_primitive(p, name, offset) : parse_tile(p);
    }
    p->depth--;
    return inner;
}

static Pattern *parse_term(Parser *p)
{
    Pattern *x = parse_factor(p);

    while (x && accept(p, '&')) {
        Pattern *y = parse_factor(p);

        x = y ? built(p, pattern_intersect(p->arena, x, y)) : NULL;
    }
    return x;
}

static Pattern *parse_expression(Parser *p)
{
    Pattern *x = parse_term(p);

    while (x) {
        bool     minus = false;
        Pattern *y;

        if (!accept(p, '+') && !accept(p, '|') && !(minus = accept(p, '-')))
            break;
        y = parse_term(p);
        if (!y)
            return NULL;
        x = built(p, minus ? pattern_difference(p->arena, x, y) : pattern_union(p->arena, x, y));
    }
    return x;
}

Pattern *pattern_parse(Arena *a, PatternShape s, const char *text, const PatternSource *source,
                       Error *err)
{
    Parser   p = { .arena = a, .shape = s, .text = text, .at = text, .source = source,
                   .err = err };
    Pattern *heads[MAX_HEADS], *whole;
    int64_t  count = 0;
    char     buffer[8];

    do {
        if (count == MAX_HEADS)
            return fail(&p, offset_of(&p), "more than %d heads", MAX_HEADS);
        heads[count] = parse_expression(&p);
        if (!heads[count++])
            return NULL;
    } while (accept(&p, ';'));
    if (*p.at)
        return fail(&p, offset_of(&p), "expected an operator, ';' or the end, found %s",
                    here(&p, buffer));
    whole = pattern_by_head(a, s, heads, count);
    return built(&p, whole);
}
