/* param.c -- binding texts to typed fields; see param.h. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/run/param.h"
#include "core/text.h"

static const char *const type_names[] = {
    [PARAM_TYPE_INT] = "int",   [PARAM_TYPE_FLOAT] = "float",   [PARAM_TYPE_BOOL] = "bool",
    [PARAM_TYPE_ENUM] = "enum", [PARAM_TYPE_FLAGS] = "flags",   [PARAM_TYPE_LIST] = "list",
    [PARAM_TYPE_TEXT] = "text", [PARAM_TYPE_TENSOR] = "tensor",
    [PARAM_TYPE_PER_HEAD] = "float or tensor",
};

const char *param_type_name(ParamType type)
{
    return type_names[type];
}

const Param *params_find(const Param *table, const char *name)
{
    for (; table && table->name; table++)
        if (!strcmp(table->name, name))
            return table;
    return NULL;
}

static void *param_field(void *out, const Param *p)
{
    return (char *)out + p->offset;
}

static void set_default(const Param *p, void *at)
{
    switch (p->type) {
    case PARAM_TYPE_INT: *(int64_t *)at = (int64_t)p->fallback; break;
    case PARAM_TYPE_FLOAT: *(double *)at = p->fallback; break;
    case PARAM_TYPE_BOOL: *(bool *)at = p->fallback > 0; break;
    case PARAM_TYPE_ENUM: *(int *)at = (int)p->fallback; break;
    case PARAM_TYPE_FLAGS: *(unsigned *)at = (unsigned)p->fallback; break;
    case PARAM_TYPE_LIST: *(IndexList *)at = (IndexList){ .count = (int64_t)p->fallback }; break;
    case PARAM_TYPE_TEXT: *(const char **)at = p->word; break;
    case PARAM_TYPE_TENSOR: *(Tensor *)at = (Tensor){ 0 }; break;
    case PARAM_TYPE_PER_HEAD: *(PerHead *)at = (PerHead){ .value = p->fallback }; break;
    }
}

static bool out_of_range(const Param *p, double value, const char *text, Error *err)
{
    bool open = p->hi >= PARAM_COUNT_MAX || p->hi >= 1e30; /* no bound but that of numbers */

    if (open && value > p->hi)
        return error_set(err, ERR_PARAM, "parameter %s: must be at most %g, got %s", p->name,
                         p->hi, text);
    if (open)
        return error_set(err, ERR_PARAM, "parameter %s: must be %s %g, got %s", p->name,
                         p->above_lo ? "greater than" : "at least", p->lo, text);
    return error_set(err, ERR_PARAM, "parameter %s: must be %s %g %s %g, got %s", p->name,
                     p->above_lo ? "greater than" : "from", p->lo,
                     p->below_hi ? "and less than" : p->above_lo ? "and at most" : "to", p->hi,
                     text);
}

static bool in_range(const Param *p, double value)
{
    return value >= p->lo && value <= p->hi && !(p->above_lo && value <= p->lo) &&
           !(p->below_hi && value >= p->hi);
}

static bool bind_int(const Param *p, const char *text, int64_t *at, Error *err)
{
    int64_t value;

    if (p->fallback <= -PARAM_COUNT_MAX && !strcmp(text, "auto")) {
        *at = (int64_t)p->fallback;
        return true;
    }
    if (!text_whole(text, &value))
        return error_set(err, ERR_PARAM, "parameter %s: expected an integer, got '%s'", p->name,
                         text);
    if (!in_range(p, (double)value))
        return out_of_range(p, (double)value, text, err);
    if (p->even && value % 2)
        return error_set(err, ERR_PARAM, "parameter %s: must be even, got %s", p->name, text);
    *at = value;
    return true;
}

static bool bind_float(const Param *p, const char *text, double *at, Error *err)
{
    const char *end;
    double      value = text_number_at(text, &end);

    if (p->fallback == PARAM_AUTO && !strcmp(text, "auto")) {
        *at = p->fallback;
        return true;
    }
    if (end == text || *end || !isfinite(value))
        return error_set(err, ERR_PARAM, "parameter %s: expected a number, got '%s'", p->name,
                         text);
    if (!in_range(p, value))
        return out_of_range(p, value, text, err);
    *at = value;
    return true;
}

static bool bind_bool(const Param *p, const char *text, bool *at, Error *err)
{
    static const char *const yes[] = { "true", "yes", "on", "1" };
    static const char *const no[] = { "false", "no", "off", "0" };

    for (size_t i = 0; i < 4; i++) {
        if (!strcmp(text, yes[i]) || !strcmp(text, no[i])) {
            *at = !strcmp(text, yes[i]);
            return true;
        }
    }
    return error_set(err, ERR_PARAM, "parameter %s: expected true or false, got '%s'", p->name,
                     text);
}

static bool unknown_choice(const Param *p, const char *text, Error *err)
{
    Text names = { 0 };

    for (int i = 0; p->choices[i]; i++)
        text_addf(&names, "%s%s", i ? ", " : "", p->choices[i]);
    error_set(err, ERR_PARAM, "parameter %s: '%s' is none of %s", p->name, text, text_str(&names));
    text_free(&names);
    return false;
}

static int find_choice(const Param *p, const char *text, size_t length)
{
    for (int i = 0; p->choices[i]; i++)
        if (strlen(p->choices[i]) == length && !strncmp(p->choices[i], text, length))
            return i;
    return -1;
}

static bool bind_enum(const Param *p, const char *text, int *at, Error *err)
{
    int choice = find_choice(p, text, strlen(text));

    if (choice < 0)
        return unknown_choice(p, text, err);
    *at = choice;
    return true;
}

/* Choices of one letter may be written together: "qk". */
static bool bind_letters(const Param *p, const char *text, unsigned *at)
{
    unsigned flags = 0;

    for (const char *s = text; *s; s++) {
        int choice = find_choice(p, s, 1);

        if (choice < 0)
            return false;
        flags |= 1u << choice;
    }
    *at = flags;
    return *text != '\0';
}

/* "[a,b]", "a,b", "a+b" or "none". */
static bool bind_flags(const Param *p, const char *text, unsigned *at, Error *err)
{
    unsigned flags = 0;

    if (!strcmp(text, "none") || !strcmp(text, "[]")) {
        *at = 0;
        return true;
    }
    if (bind_letters(p, text, at))
        return true;
    for (const char *s = text; *s;) {
        size_t skip = strspn(s, "[], +"), length;
        int    choice;

        s += skip;
        length = strcspn(s, "[], +");
        if (!length)
            break;
        choice = find_choice(p, s, length);
        if (choice < 0)
            return unknown_choice(p, text, err);
        flags |= 1u << choice;
        s += length;
    }
    *at = flags;
    return true;
}

/* "[1,2:8,-1]" keeps numbers only: ranges need the length, so they are not
 * part of list parameters. */
static bool list_items(const Param *p, const char *text, Assignment *given, int64_t *count,
                       Error *err)
{
    const char *s = text + 1;

    *count = 0;
    if (!given->items) /* a run that was bound before reads these */
        given->items = calloc(strlen(text), sizeof(*given->items));
    if (!given->items)
        return error_set(err, ERR_NOMEM, "parameter %s: not enough memory", p->name);
    s += strspn(s, " ");
    while (*s && *s != ']') {
        const char *end;
        bool        read = text_whole_at(s, &end, &given->items[(*count)++]);

        end += strspn(end, " ");
        if (!read || (*end != ',' && *end != ']'))
            return error_set(err, ERR_PARAM,
                             "parameter %s: expected a list like [0,5,-1], got '%s'", p->name,
                             text);
        s = end + (*end == ',');
        s += strspn(s, " ");
    }
    if (*s != ']' || s[1])
        return error_set(err, ERR_PARAM, "parameter %s: the list '%s' does not end with ]", p->name,
                         text);
    return true;
}

static bool bind_list(const Param *p, const char *text, Assignment *given, IndexList *at,
                      Error *err)
{
    int64_t value;

    if (*text == '[') {
        if (!list_items(p, text, given, &value, err))
            return false;
        *at = (IndexList){ .is_list = true, .count = value, .items = given->items };
        return true;
    }
    if (!text_whole(text, &value))
        return error_set(err, ERR_PARAM,
                         "parameter %s: expected a count like 2 or a list like [0,5,-1], got '%s'",
                         p->name, text);
    if (!in_range(p, (double)value))
        return out_of_range(p, (double)value, text, err);
    *at = (IndexList){ .count = value };
    return true;
}

/* A number in the place of a tensor: f64 [1], kept by the assignment. */
static bool bind_number(const Param *p, Assignment *given, Tensor *at, Error *err)
{
    static const int64_t one[] = { 1 };
    char                *end;
    double               value = strtod(given->text, &end);

    if (!p->number || end == given->text || *end || !isfinite(value))
        return error_set(err, ERR_PARAM,
                         "parameter %s is a tensor %s: give it as %s=@FILE.npy%s, got '%s'",
                         p->name, p->shape, p->name, p->number ? " or as a number" : "",
                         given->text);
    if (!given->items)
        given->items = malloc(sizeof(value));
    if (!given->items)
        return error_set(err, ERR_NOMEM, "parameter %s: not enough memory", p->name);
    memcpy(given->items, &value, sizeof(value));
    *at = tensor_of(DT_F64, 1, one, given->items);
    return true;
}

static bool bind_tensor(const Param *p, Assignment *given, Tensor *at, Error *err)
{
    if (!given->tensor.data)
        return bind_number(p, given, at, err);
    *at = given->tensor;
    return true;
}

static bool bind_per_head(const Param *p, const Assignment *given, PerHead *at, Error *err)
{
    at->tensor = given->tensor;
    return given->tensor.data || bind_float(p, given->text, &at->value, err);
}

static bool bind_one(const Param *p, Assignment *given, void *at, Error *err)
{
    const char *text = given->text;

    if (given->tensor.data && p->type != PARAM_TYPE_TENSOR && p->type != PARAM_TYPE_PER_HEAD)
        return error_set(err, ERR_PARAM, "parameter %s is %s, not a tensor: %s does not fit",
                         p->name, param_type_name(p->type), text);
    switch (p->type) {
    case PARAM_TYPE_INT: return bind_int(p, text, at, err);
    case PARAM_TYPE_FLOAT: return bind_float(p, text, at, err);
    case PARAM_TYPE_BOOL: return bind_bool(p, text, at, err);
    case PARAM_TYPE_ENUM: return bind_enum(p, text, at, err);
    case PARAM_TYPE_FLAGS: return bind_flags(p, text, at, err);
    case PARAM_TYPE_LIST: return bind_list(p, text, given, at, err);
    case PARAM_TYPE_TEXT: *(const char **)at = text; return true;
    case PARAM_TYPE_TENSOR: return bind_tensor(p, given, at, err);
    case PARAM_TYPE_PER_HEAD: return bind_per_head(p, given, at, err);
    }
    return false;
}

bool params_bind(const Param *table, void *out, const Assignments *given, Error *err)
{
    for (const Param *p = table; p && p->name; p++)
        set_default(p, param_field(out, p));
    for (int i = 0; given && i < given->count; i++) {
        const Param *p = params_find(table, given->items[i].name);

        if (p && !bind_one(p, &given->items[i], param_field(out, p), err))
            return false;
    }
    return true;
}

/* ---- printing and stepping -------------------------------------------------- */

static void print_int(int64_t value, Text *out)
{
    if ((double)value <= -PARAM_COUNT_MAX)
        text_add(out, "auto");
    else
        text_addf(out, "%lld", (long long)value);
}

static void print_float(const Param *p, double value, Text *out)
{
    if (p->fallback == PARAM_AUTO && value == PARAM_AUTO)
        text_add(out, "auto");
    else
        text_addf(out, "%.10g", value);
}

static void print_flags(const Param *p, unsigned flags, Text *out)
{
    bool first = true;

    text_add(out, "[");
    for (int i = 0; p->choices[i]; i++)
        if (flags & (1u << i)) {
            text_addf(out, "%s%s", first ? "" : ",", p->choices[i]);
            first = false;
        }
    text_add(out, "]");
}

static void print_list(const IndexList *list, Text *out)
{
    if (!list->is_list) {
        text_addf(out, "%lld", (long long)list->count);
        return;
    }
    text_add(out, "[");
    for (int64_t i = 0; i < list->count; i++)
        text_addf(out, "%s%lld", i ? "," : "", (long long)list->items[i]);
    text_add(out, "]");
}

static void print_tensor(const Tensor *t, Text *out)
{
    char shape[80];

    text_add(out, t->data ? tensor_shape_text(t, shape, sizeof(shape)) : "drawn");
}

static void print_per_head(const PerHead *x, Text *out)
{
    if (x->tensor.data)
        print_tensor(&x->tensor, out);
    else
        text_addf(out, "%.10g", x->value);
}

void params_print(const Param *p, const void *values, Text *out)
{
    union {
        int64_t     i;
        double      f;
        bool        b;
        int         e;
        unsigned    u;
        IndexList   l;
        const char *t;
        Tensor      x;
        PerHead     h;
    } fallback;
    const void *at = values ? (const char *)values + p->offset : (const void *)&fallback;

    if (!values)
        set_default(p, &fallback);
    switch (p->type) {
    case PARAM_TYPE_INT: print_int(*(const int64_t *)at, out); break;
    case PARAM_TYPE_FLOAT: print_float(p, *(const double *)at, out); break;
    case PARAM_TYPE_BOOL: text_add(out, *(const bool *)at ? "true" : "false"); break;
    case PARAM_TYPE_ENUM: text_add(out, p->choices[*(const int *)at]); break;
    case PARAM_TYPE_FLAGS: print_flags(p, *(const unsigned *)at, out); break;
    case PARAM_TYPE_LIST: print_list(at, out); break;
    case PARAM_TYPE_TEXT:
        text_add(out, *(const char *const *)at ? *(const char *const *)at : "");
        break;
    case PARAM_TYPE_TENSOR: print_tensor(at, out); break;
    case PARAM_TYPE_PER_HEAD: print_per_head(at, out); break;
    }
}

static bool step_choice(const Param *p, const char *text, int direction, Text *out)
{
    int count = 0, at = find_choice(p, text, strlen(text));

    while (p->choices[count])
        count++;
    if (at < 0)
        return false;
    text_add(out, p->choices[(at + direction + count) % count]);
    return true;
}

static bool step_float(const Param *p, double value, int direction, Text *out)
{
    double step = fabs(value) > 0 ? pow(10, floor(log10(fabs(value)) - 1e-9)) : 0.1;
    double next = value + direction * step;

    if (!in_range(p, next))
        return false;
    text_addf(out, "%.6g", next);
    return true;
}

bool params_step(const Param *p, const char *text, int direction, Text *out)
{
    int64_t value;

    switch (p->type) {
    case PARAM_TYPE_INT:
    case PARAM_TYPE_LIST:
        if (!text_whole(text, &value))
            return false;
        value += direction * (p->even ? 2 : 1);
        if (!in_range(p, (double)value))
            return false;
        text_addf(out, "%lld", (long long)value);
        return true;
    case PARAM_TYPE_FLOAT:
    case PARAM_TYPE_PER_HEAD: return step_float(p, strtod(text, NULL), direction, out);
    case PARAM_TYPE_BOOL: text_add(out, !strcmp(text, "true") ? "false" : "true"); return true;
    case PARAM_TYPE_ENUM: return step_choice(p, text, direction, out);
    default: return false;
    }
}

/* What the user gave, as names and texts; see param.h. */

static void assignment_free(Assignment *item)
{
    free(item->text);
    free(item->items);
    *item = (Assignment){ 0 };
}

void assignments_free(Assignments *a)
{
    for (int i = 0; i < a->count; i++)
        assignment_free(&a->items[i]);
    free(a->items);
    *a = (Assignments){ 0 };
}

const Assignment *assignments_find(const Assignments *a, const char *name)
{
    for (int i = 0; a && i < a->count; i++)
        if (!strcmp(a->items[i].name, name))
            return &a->items[i];
    return NULL;
}

void assignments_remove(Assignments *a, const char *name)
{
    for (int i = 0; i < a->count; i++)
        if (!strcmp(a->items[i].name, name)) {
            assignment_free(&a->items[i]);
            memmove(&a->items[i], &a->items[i + 1],
                    (size_t)(a->count - i - 1) * sizeof(*a->items));
            a->count--;
            return;
        }
}

static Assignment *assignments_slot(Assignments *a, const char *name)
{
    Assignment *items;
    int         capacity = a->capacity ? 2 * a->capacity : 8;

    assignments_remove(a, name);
    if (a->count == a->capacity) {
        items = realloc(a->items, (size_t)capacity * sizeof(*items));
        if (!items)
            return NULL;
        a->items = items;
        a->capacity = capacity;
    }
    a->items[a->count] = (Assignment){ 0 };
    return &a->items[a->count];
}

bool assignments_set_tensor(Assignments *a, const char *name, Tensor tensor, const char *source,
                            Error *err)
{
    Assignment *slot;

    if (!*name || strlen(name) >= sizeof(slot->name))
        return error_set(err, ERR_PARAM, "parameter name '%.70s': expected 1 to %zu characters",
                         name, sizeof(slot->name) - 1);
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-.", *c))
            return error_set(err, ERR_PARAM,
                             "parameter name '%.70s': expected letters, digits, '_', '-' and '.'",
                             name);
    if (strchr(source, '"') && strchr(source, '\''))
        return error_set(err, ERR_PARAM,
                         "parameter %s: '%.70s' holds both kinds of quotes: use one", name, source);
    slot = assignments_slot(a, name);
    if (!slot || !(slot->text = strdup(source)))
        return error_set(err, ERR_NOMEM, "parameter '%s': not enough memory", name);
    strcpy(slot->name, name);
    slot->tensor = tensor;
    a->count++;
    return true;
}

bool assignments_set(Assignments *a, const char *name, const char *text, Error *err)
{
    return assignments_set_tensor(a, name, (Tensor){ 0 }, text, err);
}

bool assignments_copy(Assignments *to, const Assignments *from, Error *err)
{
    *to = (Assignments){ 0 };
    for (int i = 0; from && i < from->count; i++) {
        const Assignment *item = &from->items[i];

        if (!assignments_set_tensor(to, item->name, item->tensor, item->text, err)) {
            assignments_free(to);
            return false;
        }
    }
    return true;
}

/* Length of the value at `s`: up to a comma outside brackets and quotes. */
static size_t value_length(const char *s)
{
    int  depth = 0;
    char quote = 0;

    for (const char *c = s;; c++) {
        if (!*c || (*c == ',' && depth == 0 && !quote))
            return (size_t)(c - s);
        if (quote)
            quote = *c == quote ? 0 : quote;
        else if (*c == '\'' || *c == '"')
            quote = *c;
        else
            depth += (*c == '(' || *c == '[') - (*c == ')' || *c == ']');
    }
}

/* A value that assignments_parse reads as it stands: no quotes, brackets in pairs, no comma or
 * '=' outside of them, no space at its ends. */
static bool reads_bare(const char *value)
{
    size_t length = strlen(value);
    int    depth = 0;

    if (strpbrk(value, "\"'") || (strpbrk(value, ",=") && *value != '[') ||
        value_length(value) != length ||
        (length && (isspace((unsigned char)*value) || isspace((unsigned char)value[length - 1]))))
        return false;
    for (const char *c = value; *c && depth >= 0; c++)
        depth += (*c == '(' || *c == '[') - (*c == ')' || *c == ']');
    return !depth;
}

void assignment_print(const char *name, const char *value, Text *out)
{
    const char *quote = reads_bare(value) ? "" : strchr(value, '"') ? "'" : "\"";

    text_addf(out, "%s=%s%s%s", name, quote, value, quote);
}

static char *param_trimmed(const char *s, size_t length)
{
    while (length && isspace((unsigned char)*s)) {
        s++;
        length--;
    }
    while (length && isspace((unsigned char)s[length - 1]))
        length--;
    if (length >= 2 && (*s == '\'' || *s == '"') && s[length - 1] == *s) {
        s++;
        length -= 2;
    }
    return strndup(s, length);
}

static bool param_parse_one(Assignments *a, const char *item, size_t length, Error *err)
{
    const char *equals = memchr(item, '=', length);
    char       *name, *value;
    bool        ok;

    if (!equals)
        return error_set(err, ERR_PARAM, "'%.*s': expected name=value", (int)length, item);
    name = param_trimmed(item, (size_t)(equals - item));
    value = param_trimmed(equals + 1, length - (size_t)(equals + 1 - item));
    ok = name && value ? assignments_set(a, name, value, err)
                       : error_set(err, ERR_NOMEM, "not enough memory for a parameter");
    free(name);
    free(value);
    return ok;
}

bool assignments_parse(Assignments *a, const char *list, Error *err)
{
    while (isspace((unsigned char)*list))
        list++;
    if (!*list)
        return true;
    for (;;) {
        size_t length = value_length(list);

        if (!param_parse_one(a, list, length, err))
            return false;
        if (!list[length])
            return true;
        list += length + 1;
    }
}
