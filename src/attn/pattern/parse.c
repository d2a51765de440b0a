/* parse.c -- the pattern expression language.
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
#include "attn/pattern/node.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

#define MAX_DEPTH 64
#define MAX_HEADS 4096

static Pattern *parse_expression(PatternParser *p);

void *pattern_fail(PatternParser *p, size_t offset, const char *fmt, ...)
{
    va_list args;
    char    what[300];

    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    error_set(p->err, ERR_PARAM, "pattern, at offset %zu: %s", offset, what);
    return NULL;
}

void *pattern_no_memory(PatternParser *p)
{
    error_set(p->err, ERR_NOMEM, "pattern: not enough memory");
    return NULL;
}

static void skip_blanks(PatternParser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static size_t parse_offset_of(PatternParser *p)
{
    skip_blanks(p);
    return (size_t)(p->at - p->text);
}

static bool accept(PatternParser *p, char c)
{
    skip_blanks(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

/* "')'" or "the end of the text": what stands at the current place. */
static const char *parse_here(PatternParser *p, char buffer[8])
{
    skip_blanks(p);
    if (!*p->at)
        return "the end of the text";
    snprintf(buffer, 8, "'%c'", *p->at);
    return buffer;
}

static bool expect(PatternParser *p, char c)
{
    char buffer[8];

    if (accept(p, c))
        return true;
    return pattern_refuse(p, parse_offset_of(p), "expected '%c', found %s", c,
                          parse_here(p, buffer));
}

static bool is_name_start(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool parse_name(PatternParser *p, char *name, size_t size)
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

static bool parse_integer(PatternParser *p, int64_t *value)
{
    const char *end;
    char        buffer[8];

    skip_blanks(p);
    if (!isdigit((unsigned char)p->at[*p->at == '-']))
        return pattern_refuse(p, parse_offset_of(p), "expected an integer, found %s",
                              parse_here(p, buffer));
    if (!text_whole_at(p->at, &end, value) || llabs(*value) > INT32_MAX)
        return pattern_refuse(p, parse_offset_of(p), "the integer is too large (at most %d)",
                              INT32_MAX);
    p->at = end;
    return true;
}

/* ---- lists ------------------------------------------------------------------ */

static int64_t parse_clip(int64_t value, int64_t n)
{
    if (value < 0)
        value += n;
    return value < 0 ? 0 : value > n ? n : value;
}

/* One item: start, stop (excluded) and step, all inside the sequence. */
static bool parse_item(PatternParser *p, int64_t *start, int64_t *stop, int64_t *step, bool *moves)
{
    size_t  offset = parse_offset_of(p);
    int64_t n = p->shape.n, given;

    if (!parse_integer(p, start))
        return false;
    given = *start;
    *moves |= given < 0;
    *step = 1;
    if (accept(p, ':')) {
        if (!parse_integer(p, stop))
            return false;
        if (accept(p, ':') && !parse_integer(p, step))
            return false;
        if (*step < 1)
            return pattern_refuse(p, offset, "the step of a range must be at least 1, got %lld",
                                  (long long)*step);
        *moves |= *stop < 0 || *stop > n;
        *start = parse_clip(*start, n);
        *stop = parse_clip(*stop, n);
        return true;
    }
    if (*start < 0)
        *start += n;
    *stop = *start + 1;
    if (*start >= 0 && *start < n)
        return true;
    return pattern_refuse(p, offset,
                          "index %lld is outside the %lld positions (0..%lld, or -%lld..-1)",
                          (long long)given, (long long)n, (long long)n - 1, (long long)n);
}

/* The list as flags of positions: order and repetition do not matter. */
static bool parse_list(PatternParser *p, PatternValue *value)
{
    int64_t  shape[1] = { p->shape.n }, start, stop, step;
    Tensor   flags = tensor_new(p->arena, DT_U8, 1, shape);
    uint8_t *in = flags.data;

    if (!in)
        return pattern_no_memory(p) != NULL;
    memset(in, 0, (size_t)p->shape.n);
    value->kind = VALUE_LIST;
    value->tensor = flags;
    if (accept(p, ']'))
        return true;
    do {
        if (!parse_item(p, &start, &stop, &step, &value->moves))
            return false;
        for (int64_t j = start; j < stop; j += step)
            in[j] = 1;
    } while (accept(p, ','));
    return expect(p, ']');
}

static bool parse_tensor(PatternParser *p, PatternValue *value)
{
    char buffer[8];

    if (!parse_name(p, value->name, sizeof(value->name)))
        return pattern_refuse(p, parse_offset_of(p),
                              "expected the name of a tensor after '$', found %s",
                              parse_here(p, buffer));
    if (!strcmp(value->name, "expr") || !strcmp(value->name, "scale") ||
        !strncmp(value->name, "pos_", 4))
        return pattern_refuse(p, value->offset,
                              "$%s: this name belongs to a parameter, choose another", value->name);
    if (p->source && p->source->lookup)
        value->tensor = p->source->lookup(p->source->context, value->name);
    if (!value->tensor.data) {
        pattern_fail(p, value->offset, "tensor $%s is not given; give it by -p %s=@FILE.npy",
                     value->name, value->name);
        return false;
    }
    if (p->source->used)
        p->source->used(p->source->context, value->name);
    value->kind = VALUE_TENSOR;
    return true;
}

static bool parse_typed_value(PatternParser *p, PatternValue *value)
{
    value->offset = parse_offset_of(p);
    if (accept(p, '$'))
        return parse_tensor(p, value);
    if (accept(p, '['))
        return parse_list(p, value);
    value->kind = VALUE_INT;
    return parse_integer(p, &value->number);
}

/* ---- primitives ------------------------------------------------------------- */

static int find_arg(const PatternPrimitive *f, const char *name)
{
    for (int i = 0; f->args[i].name; i++)
        if (!strcmp(f->args[i].name, name))
            return i;
    return -1;
}

static bool check_value(PatternParser *p, const PatternPrimitive *f, const PatternArg *arg,
                        const PatternValue *v)
{
    static const char letters[] = { [VALUE_INT] = 'i', [VALUE_LIST] = 'l', [VALUE_TENSOR] = 't' };

    if (!strchr(arg->takes, letters[v->kind]))
        return pattern_refuse(p, v->offset, "%s: %s must be %s", f->name, arg->name,
                              !strcmp(arg->takes, "i")   ? "an integer"
                              : !strcmp(arg->takes, "t") ? "a tensor ($name)"
                              : !strcmp(arg->takes, "it")
                                  ? "an integer or a tensor ($name)"
                                  : "an integer, a list or a tensor ($name)");
    if (v->kind == VALUE_INT && v->number < arg->lo)
        return pattern_refuse(p, v->offset, "%s: %s must be at least %lld, got %lld", f->name,
                              arg->name, (long long)arg->lo, (long long)v->number);
    return true;
}

/* global(0,1) wants [0,1]. */
static void too_many(PatternParser *p, const PatternPrimitive *f, size_t offset)
{
    char   names[120] = "";
    size_t length = 0;
    bool   list = false;

    for (int i = 0; i < PATTERN_MAX_ARGUMENTS && f->args[i].name; i++) {
        list = list || strchr(f->args[i].takes, 'l');
        if (length + 24 < sizeof(names))
            length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%.16s",
                                       i ? ", " : "", f->args[i].name);
    }
    pattern_fail(p, offset, "%s: one argument too many, it is %s(%s)%s", f->name, f->name, names,
                 list ? "; several numbers for one are a list, [0,1]" : "");
}

/* An argument may start with "name =": its first character is a letter, a value's is not. */
static bool parse_one_argument(PatternParser *p, const PatternPrimitive *f, PatternValue *values,
                                 int position, bool *named)
{
    char   name[64];
    size_t offset = parse_offset_of(p);
    int    slot = position;

    if (parse_name(p, name, sizeof(name))) {
        slot = find_arg(f, name);
        if (slot < 0)
            return pattern_refuse(p, offset, "%s has no argument '%s'%s", f->name, name,
                                  strcmp(name, "seed")
                                      ? ""
                                      : "; the seed is the run's: --seed, or in Lua seed=");
        *named = true;
        if (!expect(p, '='))
            return false;
    } else if (*named) {
        return pattern_refuse(p, offset, "%s: a positional argument after a named one", f->name);
    }
    if (slot >= PATTERN_MAX_ARGUMENTS || !f->args[slot].name) {
        too_many(p, f, offset);
        return false;
    }
    if (values[slot].kind != VALUE_ABSENT)
        return pattern_refuse(p, offset, "%s: %s is given twice", f->name, f->args[slot].name);
    return parse_typed_value(p, &values[slot]) && check_value(p, f, &f->args[slot], &values[slot]);
}

static bool parse_arguments(PatternParser *p, const PatternPrimitive *f, PatternValue *values)
{
    bool named = false;

    if (!accept(p, '(') || accept(p, ')'))
        return true;
    for (int position = 0;; position++) {
        if (!parse_one_argument(p, f, values, position, &named))
            return false;
        if (!accept(p, ','))
            return expect(p, ')');
    }
}

static Pattern *parse_primitive(PatternParser *p, const char *name, size_t offset)
{
    PatternValue            values[PATTERN_MAX_ARGUMENTS] = { { 0 } };
    const PatternPrimitive *f = pattern_primitive(p, name, offset);

    if (!f || !parse_arguments(p, f, values))
        return NULL;
    for (int i = 0; f->args[i].name; i++) {
        if (values[i].kind != VALUE_ABSENT)
            continue;
        if (f->args[i].required)
            return pattern_fail(p, offset, "%s needs its argument '%s'", f->name, f->args[i].name);
        values[i].kind = VALUE_INT;
        values[i].number = f->args[i].fallback;
        values[i].offset = offset;
    }
    return f->build(p, values);
}

static Pattern *parse_tile(PatternParser *p)
{
    PatternShape outer = p->shape;
    bool         tiled = p->tiled;
    size_t       offset;
    int64_t      b;
    Pattern     *inner;

    if (!expect(p, '('))
        return NULL;
    offset = parse_offset_of(p);
    if (!parse_integer(p, &b))
        return NULL;
    if (b < 1)
        return pattern_fail(p, offset, "tile: the block must be at least 1, got %lld",
                            (long long)b);
    if (!expect(p, ','))
        return NULL;
    p->shape.n = (outer.n + b - 1) / b;
    p->shape.m = (outer.m + b - 1) / b;
    p->tiled = true;
    inner = parse_expression(p);
    p->shape = outer;
    p->tiled = tiled;
    if (!inner || !expect(p, ')'))
        return NULL;
    return pattern_built(p, pattern_tile(p->arena, outer, b, inner));
}

static Pattern *parse_factor(PatternParser *p)
{
    char     name[64], buffer[8];
    size_t   offset = parse_offset_of(p);
    Pattern *inner;

    if (p->depth >= MAX_DEPTH)
        return pattern_fail(p, offset, "the expression is nested more than %d deep", MAX_DEPTH);
    p->depth++;
    if (accept(p, '!')) {
        inner = parse_factor(p);
        inner = inner ? pattern_built(p, pattern_complement(p->arena, inner)) : NULL;
    } else if (accept(p, '(')) {
        inner = parse_expression(p);
        inner = inner && expect(p, ')') ? inner : NULL;
    } else if (!parse_name(p, name, sizeof(name))) {
        inner = pattern_fail(p, offset, "expected a primitive, 'tile', '!' or '(', found %s",
                             parse_here(p, buffer));
    } else {
        inner = strcmp(name, "tile") ? parse_primitive(p, name, offset) : parse_tile(p);
    }
    p->depth--;
    return inner;
}

static Pattern *parse_term(PatternParser *p)
{
    Pattern *x = parse_factor(p);

    while (x && accept(p, '&')) {
        Pattern *y = parse_factor(p);

        x = y ? pattern_built(p, pattern_intersect(p->arena, x, y)) : NULL;
    }
    return x;
}

static Pattern *parse_expression(PatternParser *p)
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
        x = pattern_built(p, minus ? pattern_difference(p->arena, x, y)
                                   : pattern_union(p->arena, x, y));
    }
    return x;
}

Pattern *pattern_parse(Arena *a, PatternShape s, const char *text, const PatternSource *source,
                       Error *err)
{
    PatternParser p = {
        .arena = a, .shape = s, .text = text, .at = text, .source = source, .err = err
    };
    Pattern *heads[MAX_HEADS], *whole;
    int64_t  count = 0;
    char     buffer[8];

    do {
        if (count == MAX_HEADS)
            return pattern_fail(&p, parse_offset_of(&p), "more than %d heads", MAX_HEADS);
        heads[count] = parse_expression(&p);
        if (!heads[count++])
            return NULL;
    } while (accept(&p, ';'));
    if (*p.at)
        return pattern_fail(&p, parse_offset_of(&p),
                            "expected an operator, ';' or the end, found %s",
                            parse_here(&p, buffer));
    whole = pattern_by_head(a, s, heads, count);
    return pattern_built(&p, whole);
}
