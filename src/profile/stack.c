/* stack.c -- what a stack of layers holds and reads while it generates. */
#include "profile/stack.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/run.h"

/* ---- from text ------------------------------------------------------------------ */

#define DEEPEST 16
#define LARGEST ((int64_t)1 << 40)

typedef struct Reader {
    const char *text, *at;
    Stack      *out;
    Error      *err;
    int         depth;
} Reader;

static bool refuse(const Reader *r, const char *what)
{
    return error_set(r->err, ERR_PARAM,
                     "layers '%.200s', character %d: %s; e.g. (window(4096)x5,full)x8", r->text,
                     (int)(r->at - r->text) + 1, what);
}

static void skip_blanks(Reader *r)
{
    r->at += strspn(r->at, " \t");
}

static bool take(Reader *r, const char *word)
{
    size_t length = strlen(word);

    skip_blanks(r);
    if (strncmp(r->at, word, length))
        return false;
    r->at += length;
    return true;
}

static bool read_number(Reader *r, int64_t *out)
{
    const char *start;

    skip_blanks(r);
    start = r->at;
    for (*out = 0; *r->at >= '0' && *r->at <= '9'; r->at++) {
        *out = 10 * *out + (*r->at - '0');
        if (*out > LARGEST)
            return refuse(r, "a number is too large");
    }
    if (r->at == start)
        return refuse(r, "expected a whole number");
    if (!*out) {
        r->at = start;
        return refuse(r, "a number must be at least 1");
    }
    return true;
}

/* "(1,2)" into as many numbers. */
static bool read_numbers(Reader *r, int64_t **out, int count)
{
    for (int i = 0; i < count; i++) {
        if (!take(r, i ? "," : "("))
            return refuse(r, i ? "expected ','" : "expected '('");
        if (!read_number(r, out[i]))
            return false;
    }
    return take(r, ")") || refuse(r, "expected ')'");
}

static bool add_layer(Reader *r, const StackLayer *layer)
{
    if (r->out->count == STACK_LAYERS)
        return refuse(r, "more than 1024 layers");
    r->out->layers[r->out->count++] = *layer;
    return true;
}

/* ---- states --------------------------------------------------------------------- */

/* The mechanism of the first `length` characters, which are taken if there is one. */
static const Mechanism *take_name(Reader *r, size_t length)
{
    char             name[64];
    const Mechanism *m;

    if (!length || length >= sizeof(name))
        return NULL;
    snprintf(name, sizeof(name), "%.*s", (int)length, r->at);
    m = mechanism_find(name);
    r->at += m ? length : 0;
    return m;
}

/* "gated-deltanet" at the reader, of "gated-deltanetx3" too; NULL, without an error: none. */
static const Mechanism *take_mechanism(Reader *r)
{
    size_t           length = strspn(r->at, "abcdefghijklmnopqrstuvwxyz0123456789-");
    const Mechanism *m = take_name(r, length);
    size_t           times = length;

    if (m)
        return m;
    while (times && r->at[times - 1] >= '0' && r->at[times - 1] <= '9')
        times--;
    return times && times < length && r->at[times - 1] == 'x' ? take_name(r, times - 1) : NULL;
}

/* Of a mechanism: what is wrong, and what layers there are instead. */
static bool refuse_mechanism(const Reader *r, const char *wrong)
{
    Text why = { 0 };

    text_addf(&why, "%s; a pattern that keeps keys is window(KEYS) or window(KEYS,sinks=S), where "
              "KEYS counts the query's own; latent attention is full with --rank R --rope R; by "
              "parameters there are ", wrong);
    for (size_t i = 0, count = 0; mechanism_at(i); i++)
        if (mechanism_at(i)->kind_of_layer)
            text_addf(&why, "%s%s", count++ ? ", " : "", mechanism_at(i)->id);
    refuse(r, text_str(&why));
    text_free(&why);
    return false;
}

static bool read_state(Reader *r, const Mechanism *m, StackLayer *layer)
{
    int64_t    *sizes[] = { &layer->heads, &layer->keys, &layer->values };
    int64_t    *conv[] = { &layer->channels, &layer->width };
    const char *start = r->at;

    layer->kind = LAYER_STATE;
    if (!read_numbers(r, sizes, 3))
        return false;
    layer->state_bytes = layer->step_bytes =
        4.0 * (double)layer->heads * (double)layer->keys * (double)layer->values;
    layer->step_flops = (double)NAN;
    if (m) {
        layer->mechanism = m->id;
        if (!stack_state_find(m, layer)) {
            r->at = start;
            return refuse_mechanism(r, "the mechanism holds no state of one size");
        }
    }
    return !take(r, "+") || (take(r, "conv") ? read_numbers(r, conv, 2)
                                             : refuse(r, "expected conv(CHANNELS,WIDTH)"));
}

/* ---- keys that a mechanism keeps -------------------------------------------------- */

/* "(heavy=64,recent=64)"; brackets inside are whole. */
static bool read_given(Reader *r, StackLayer *layer)
{
    const char *start = r->at + 1;
    int         depth = 1;

    if (!take(r, "("))
        return true;
    for (; *r->at && depth; r->at++)
        depth += (*r->at == '(') - (*r->at == ')');
    if (depth)
        return refuse(r, "expected ')'");
    if (r->at - start > LAYER_GIVEN)
        return refuse(r, "the parameters of a layer are too long");
    snprintf(layer->given, LAYER_GIVEN, "%.*s", (int)(r->at - 1 - start), start);
    return true;
}

/* "(4": not the parameters of a mechanism, as in "topk(k=8)". */
static bool gives_sizes(const Reader *r)
{
    return r->at[0] == '(' && r->at[1] >= '0' && r->at[1] <= '9';
}

/* Numbers in the brackets at the reader. */
static int count_sizes(const Reader *r)
{
    int count = 1;

    for (const char *at = r->at; *at && *at != ')'; at++)
        count += *at == ',';
    return count;
}

static bool read_kept(Reader *r, const Mechanism *m, StackLayer *layer)
{
    const char *start = r->at;
    Error       err = ERROR_INIT;
    StackShape  least = { .heads = 1, .kv_heads = 1, .dim = 1 };
    StackKept   held, adds;
    char        text[sizeof(err.text)];

    layer->kind = LAYER_KEPT;
    layer->mechanism = m->id;
    snprintf(text, sizeof(text), "its parameters have names, as in %s(%s=8)", m->id, m->size);
    if (gives_sizes(r))
        return refuse(r, text);
    if (!read_given(r, layer))
        return false;
    if (stack_kept_find(layer, &least, 1, &held, &adds, &err))
        return true;
    r->at = start;
    snprintf(text, sizeof(text), "%.200s", err.text);
    return refuse(r, text);
}

/* ---- layers ------------------------------------------------------------------------ */

/* "(60)", "(60,sinks=4)" or "(keys=60)"; "(window=W)" as the causal mechanism has it. */
static bool read_window(Reader *r, StackLayer *layer)
{
    bool halves;

    layer->kind = LAYER_WINDOW;
    if (!take(r, "("))
        return refuse(r, "expected '('");
    halves = take(r, "window=");
    if (!halves)
        take(r, "keys=");
    if (!read_number(r, &layer->window))
        return false;
    layer->window = halves ? layer->window / 2 + 1 : layer->window;
    if (take(r, ",") &&
        (!take(r, "sinks=") ? !refuse(r, "expected sinks=KEYS") : !read_number(r, &layer->sinks)))
        return false;
    return take(r, ")") || refuse(r, "expected ',sinks=KEYS' or ')'");
}

/* "(sinks=4,window=60)", as the mechanism has it: its window counts the query's own key. */
static bool read_sinks(Reader *r, StackLayer *layer)
{
    *layer = (StackLayer){ .kind = LAYER_WINDOW, .sinks = 4, .window = 8 };
    if (!take(r, "("))
        return true;
    do {
        if (!(take(r, "sinks=")    ? read_number(r, &layer->sinks)
              : take(r, "window=") ? read_number(r, &layer->window)
                                   : refuse(r, "expected sinks=KEYS or window=KEYS, as in "
                                               "streaming-llm(sinks=4,window=60)")))
            return false;
    } while (take(r, ","));
    return take(r, ")") || refuse(r, "expected ',' or ')'");
}

static bool read_named(Reader *r, const Mechanism *m, StackLayer *layer)
{
    return gives_sizes(r) && count_sizes(r) == 3
               ? read_state(r, m, layer)
               : refuse_mechanism(r, "expected the sizes of a state, NAME(HEADS,KEYS,VALUES)");
}

static bool read_layer(Reader *r)
{
    StackLayer       layer = { 0 };
    const Mechanism *m;

    if (take(r, "full")) {
        layer.kind = LAYER_FULL;
    } else if (take(r, "window")) {
        if (!read_window(r, &layer))
            return false;
    } else if (take(r, "streaming-llm")) {
        if (!read_sinks(r, &layer))
            return false;
    } else if (take(r, "state")) {
        if (!read_state(r, NULL, &layer))
            return false;
    } else if ((m = take_mechanism(r)) != NULL) {
        if (!(m->kind_of_layer ? read_kept(r, m, &layer) : read_named(r, m, &layer)))
            return false;
    } else {
        return refuse(r, "expected full, window(KEYS), window(KEYS,sinks=S), "
                         "state(HEADS,KEYS,VALUES), a mechanism with a state such as "
                         "retnet(HEADS,KEYS,VALUES), one that keeps keys such as "
                         "h2o(heavy=64,recent=64), or '('");
    }
    return add_layer(r, &layer);
}

static bool read_list(Reader *r);

static bool read_brackets(Reader *r)
{
    bool ok;

    if (r->depth == DEEPEST)
        return refuse(r, "more than 16 brackets in each other");
    r->depth++;
    ok = read_list(r) && (take(r, ")") || refuse(r, "expected ',', 'x' or ')'"));
    r->depth--;
    return ok;
}

/* A layer or brackets, and how many times. */
static bool read_item(Reader *r)
{
    int     first = r->out->count, count;
    int64_t times = 1;

    if (!(take(r, "(") ? read_brackets(r) : read_layer(r)))
        return false;
    if (take(r, "x") && !read_number(r, &times))
        return false;
    count = r->out->count - first;
    for (int64_t t = 1; t < times; t++)
        for (int i = 0; i < count; i++)
            if (!add_layer(r, &r->out->layers[first + i]))
                return false;
    return true;
}

static bool read_list(Reader *r)
{
    do {
        if (!read_item(r))
            return false;
    } while (take(r, ","));
    return true;
}

bool stack_parse(const char *text, Stack *out, Error *err)
{
    Reader r = { .text = text, .at = text, .out = out, .err = err };

    out->count = 0;
    if (!read_list(&r))
        return false;
    skip_blanks(&r);
    return !*r.at || refuse(&r, "expected ',', 'x' or the end");
}

/* ---- as text ---------------------------------------------------------------------- */

static void window_text(const StackLayer *layer, Text *out)
{
    text_addf(out, "window(%lld", (long long)layer->window);
    if (layer->sinks)
        text_addf(out, ",sinks=%lld", (long long)layer->sinks);
    text_add(out, ")");
}

void stack_layer_text(const StackLayer *layer, Text *out)
{
    if (layer->kind == LAYER_FULL)
        text_add(out, "full");
    else if (layer->kind == LAYER_WINDOW)
        window_text(layer, out);
    else if (layer->kind == LAYER_KEPT)
        text_addf(out, *layer->given ? "%s(%s)" : "%s", layer->mechanism, layer->given);
    else
        text_addf(out, "%s(%lld,%lld,%lld)", layer->mechanism ? layer->mechanism : "state",
                  (long long)layer->heads, (long long)layer->keys, (long long)layer->values);
    if (layer->width)
        text_addf(out, "+conv(%lld,%lld)", (long long)layer->channels, (long long)layer->width);
}

static bool same_layer(const StackLayer *a, const StackLayer *b)
{
    return a->kind == b->kind && a->window == b->window && a->sinks == b->sinks &&
           a->heads == b->heads && a->keys == b->keys && a->values == b->values &&
           a->mechanism == b->mechanism && a->channels == b->channels && a->width == b->width &&
           !strcmp(a->given, b->given);
}

/* The fewest layers of which the stack is repetitions, the last one perhaps cut short. */
static int period(const Stack *stack)
{
    for (int p = 1; p < stack->count; p++) {
        int at = p;

        while (at < stack->count && same_layer(&stack->layers[at], &stack->layers[at - p]))
            at++;
        if (at == stack->count)
            return p;
    }
    return stack->count;
}

static void list_text(const StackLayer *layers, int count, Text *out)
{
    for (int at = 0, times; at < count; at += times) {
        for (times = 1; at + times < count; times++)
            if (!same_layer(&layers[at], &layers[at + times]))
                break;
        text_add(out, at ? "," : "");
        stack_layer_text(&layers[at], out);
        if (times > 1)
            text_addf(out, "x%d", times);
    }
}

void stack_text(const Stack *stack, Text *out)
{
    int each = period(stack), times = each > 1 ? stack->count / each : 1;
    int rest = times > 1 ? times * each : 0;

    if (times > 1) {
        text_add(out, "(");
        list_text(stack->layers, each, out);
        text_addf(out, ")x%d%s", times, rest < stack->count ? "," : "");
    }
    list_text(stack->layers + rest, stack->count - rest, out);
}

bool stack_repeat(Stack *stack, int64_t depth, Error *err)
{
    int each = stack->count;

    if (depth < each)
        return error_set(err, ERR_PARAM, "%d layers are given, but the depth is %lld; give at most "
                         "as many layers", each, (long long)depth);
    if (depth > STACK_LAYERS)
        return error_set(err, ERR_PARAM, "a depth of %lld; give at most %d", (long long)depth,
                         STACK_LAYERS);
    for (; stack->count < depth; stack->count++)
        stack->layers[stack->count] = stack->layers[stack->count - each];
    return true;
}

int stack_kinds(const Stack *stack, StackKind *out)
{
    int count = 0;

    for (int i = 0; i < stack->count; i++) {
        int at = 0;

        while (at < count && !same_layer(&out[at].layer, &stack->layers[i]))
            at++;
        if (at == count)
            out[count++] = (StackKind){ .layer = stack->layers[i] };
        out[at].count++;
    }
    return count;
}

/* ---- cached numbers ----------------------------------------------------------------- */

/* q8, q5 and q4 are llama.cpp's Q8_0, Q5_0 and Q4_0: a scale in f16 for 32 numbers. */
static const struct {
    const char *name;
    double      bits;
    int64_t     group;
} dtypes[] = {
    { "bf16", 16, 0 }, { "f16", 16, 0 }, { "f32", 32, 0 }, { "f8", 8, 0 },
    { "q8", 8, 32 },   { "q5", 5, 32 },  { "q4", 4, 32 },
};

const char *stack_dtype_name(int index)
{
    return index < (int)(sizeof(dtypes) / sizeof(*dtypes)) ? dtypes[index].name : NULL;
}

bool stack_dtype_parse(const char *name, StackShape *shape, Error *err)
{
    for (int i = 0; stack_dtype_name(i); i++) {
        if (strcmp(dtypes[i].name, name) != 0)
            continue;
        shape->bits = dtypes[i].bits;
        shape->group = dtypes[i].group;
        shape->scale_bits = 16;
        return true;
    }
    return error_set(err, ERR_PARAM, "'%.40s' is no type of cached numbers; there are bf16, f16, "
                     "f32, f8, q8, q5 and q4", name);
}

/* ---- its cost --------------------------------------------------------------------- */

bool stack_shape_check(const StackShape *s, Error *err)
{
    if (s->heads < 1 || s->kv_heads < 1 || s->dim < 1 || s->rank < 0 || s->rope < 0 ||
        s->group < 0)
        return error_set(err, ERR_PARAM,
                         "shape: heads, kv heads and head dim must be at least 1, rank, rope and "
                         "group at least 0");
    if (s->rope && !s->rank)
        return error_set(err, ERR_PARAM, "shape: rope %lld without a rank; give both, or neither",
                         (long long)s->rope);
    if (s->heads % s->kv_heads)
        return error_set(err, ERR_PARAM, "shape: %lld heads do not divide among %lld kv heads",
                         (long long)s->heads, (long long)s->kv_heads);
    if (!(s->bits > 0 && s->bits <= 64))
        return error_set(err, ERR_PARAM, "shape: %g bits a number; give 1 to 64", s->bits);
    if (s->group && !(s->scale_bits > 0 && s->scale_bits <= 64))
        return error_set(err, ERR_PARAM, "shape: %g bits a scale; give 1 to 64", s->scale_bits);
    return true;
}

bool stack_check(const Stack *stack, const StackShape *s, Error *err)
{
    if (!stack_shape_check(s, err))
        return false;
    for (int i = 0; s->rank && i < stack->count; i++)
        if (stack->layers[i].kind == LAYER_KEPT)
            return error_set(err, ERR_PARAM, "layers: %s keeps keys and values of heads, but with "
                             "a rank a layer holds one latent a token; leave one of them out",
                             stack->layers[i].mechanism);
    return true;
}

/* Numbers of a row of the cache, which is one token's: of its keys and, as many, of its values. */
static int64_t row_numbers(const StackShape *s)
{
    return s->rank ? s->rank + s->rope : s->kv_heads * s->dim;
}

/* Groups are whole: the last of a row has a scale and room for all its numbers. */
static double token_bytes(const StackShape *s)
{
    double numbers = (double)row_numbers(s), rows = s->rank ? 1 : 2, groups;

    if (!s->group)
        return rows * numbers * s->bits / 8;
    groups = ceil(numbers / (double)s->group);
    return rows * groups * ((double)s->group * s->bits + s->scale_bits) / 8;
}

int64_t stack_group_rest(const StackShape *s)
{
    int64_t rest = s->group ? row_numbers(s) % s->group : 0;

    return rest ? s->group - rest : 0;
}

bool stack_group_cuts_heads(const StackShape *s)
{
    return s->group && !s->rank && s->dim % s->group != 0;
}

/* FLOPs of the cells of one key.  Latent keys are compared as they are stored: the projections to
 * and from the latent belong to the query and the output, not to a key. */
static double key_flops(const StackShape *s)
{
    double score = (double)(s->rank ? s->rank + s->rope : s->dim);
    double value = (double)(s->rank ? s->rank : s->dim);

    return (double)s->heads * (2 * score + 2 * value + FLOPS_SOFTMAX);
}

/* Bytes of the inputs that a short convolution sees again. */
static double conv_bytes(const StackLayer *layer, const StackShape *s)
{
    double bits = s->group || s->bits < 16 ? 16 : s->bits;

    return layer->width ? (double)layer->channels * (double)(layer->width - 1) * bits / 8 : 0;
}

static StackCost of_state(const StackLayer *layer, const StackShape *s)
{
    double conv = conv_bytes(layer, s);

    return (StackCost){ .cache_bytes = layer->state_bytes + conv,
                        .state_bytes = layer->state_bytes + conv,
                        .read_bytes = layer->step_bytes + conv,
                        .step_flops = layer->step_flops +
                                      2 * (double)layer->channels * (double)layer->width };
}

/* Which keys the step reads the tokens decide. */
static StackCost of_kept(const StackLayer *layer, const StackShape *s, int64_t n)
{
    double    none = (double)NAN, each = token_bytes(s) / (double)(2 * row_numbers(s));
    StackCost cost = { .token_bytes = none, .cache_bytes = none, .read_bytes = none,
                       .step_flops = none };
    StackKept held, adds;

    if (stack_kept_find(layer, s, n, &held, &adds, NULL)) {
        cost.cache_bytes = held.numbers * each + held.bytes;
        cost.token_bytes = adds.numbers * each + adds.bytes;
    }
    return cost;
}

static StackCost layer_cost(const StackLayer *layer, const StackShape *s, int64_t n)
{
    int64_t   most = layer->window + layer->sinks;
    bool      whole = layer->kind == LAYER_FULL || n < most;
    double    keys = (double)(whole ? n : most);
    StackCost cost = { .cache_bytes = keys * token_bytes(s) };

    if (layer->kind == LAYER_STATE)
        return of_state(layer, s);
    if (layer->kind == LAYER_KEPT)
        return of_kept(layer, s, n);
    cost.token_bytes = whole ? token_bytes(s) : 0;
    cost.step_flops = keys * key_flops(s);
    cost.read_bytes = cost.cache_bytes;
    return cost;
}

static void add_cost(StackCost *sum, const StackCost *cost, double times)
{
    sum->token_bytes += times * cost->token_bytes;
    sum->cache_bytes += times * cost->cache_bytes;
    sum->state_bytes += times * cost->state_bytes;
    sum->read_bytes += times * cost->read_bytes;
    sum->step_flops += times * cost->step_flops;
}

StackCost stack_kind_cost(const StackKind *kind, const StackShape *shape, int64_t n)
{
    StackCost one = layer_cost(&kind->layer, shape, n), sum = { 0 };

    add_cost(&sum, &one, kind->count);
    return sum;
}

StackCost stack_cost(const Stack *stack, const StackShape *shape, int64_t n)
{
    StackCost sum = { 0 };

    for (int i = 0, times; i < stack->count; i += times) {
        StackCost one = layer_cost(&stack->layers[i], shape, n);

        for (times = 1; i + times < stack->count; times++)
            if (!same_layer(&stack->layers[i], &stack->layers[i + times]))
                break;
        add_cost(&sum, &one, times);
    }
    return sum;
}
