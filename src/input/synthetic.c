/* synthetic.c -- the synthetic inputs and the vectors they are made of; see generators.h. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "core/text.h"
#include "input/generators.h"
#include "input/labels.h"
#include "input/store.h"

#define CHUNK 65536 /* numbers per stream; part of a seed's meaning */

int64_t load_limit(const InputChoice *choice)
{
    return choice->max_bytes > 0 ? choice->max_bytes : INPUT_MAX_BYTES_DEFAULT;
}

bool load_no_memory(Error *err, const char *what, int64_t bytes, const InputChoice *choice)
{
    char need[32], limit[32];

    if (bytes <= load_limit(choice))
        return error_set(err, ERR_NOMEM, "%s: not enough memory for %s; the limit is %s (take "
                         "fewer positions)", what, format_bytes(bytes, need, sizeof(need)),
                         format_bytes(load_limit(choice), limit, sizeof(limit)));
    return error_set(err, ERR_NOMEM, "not enough memory: %s would need %s; the limit is %s (take "
                     "fewer positions, or raise it with --mem)", what,
                     format_bytes(bytes, need, sizeof(need)),
                     format_bytes(load_limit(choice), limit, sizeof(limit)));
}

bool generate_allocate(Input *in, int64_t heads, int64_t kv_heads, int64_t n, int64_t d,
                       const InputChoice *choice, Error *err)
{
    int64_t shape[3] = { heads, n, d }, shared[3] = { kv_heads, n, d };
    int64_t bytes = 4 * ((heads > 1 ? 2 : 1) * heads + 2 * kv_heads);

    for (int i = 1; i < 3; i++)
        if (__builtin_mul_overflow(bytes, shape[i], &bytes))
            bytes = INT64_MAX;
    if (bytes > load_limit(choice))
        return load_no_memory(err, "q, k, v and x", bytes, choice);
    in->heads = heads;
    in->n = in->m = n;
    in->d = in->e = d;
    in->q = tensor_new(in->arena, DT_F32, 3, shape);
    in->k = tensor_new(in->arena, DT_F32, 3, shared);
    in->v = tensor_new(in->arena, DT_F32, 3, shared);
    return (in->q.data && in->k.data && in->v.data) ||
           load_no_memory(err, "q, k, v and x", bytes, choice);
}

bool generate_x(Input *in, const InputChoice *choice, Error *err)
{
    int64_t shape[2] = { in->n, in->heads * in->d };
    int64_t group = in->heads / in->v.shape[0];
    size_t  row = (size_t)in->d * sizeof(float);

    if (in->heads == 1) { /* the same numbers */
        in->x = tensor_of(DT_F32, 2, shape, in->v.data);
        return true;
    }
    in->x = tensor_new(in->arena, DT_F32, 2, shape);
    if (!in->x.data)
        return load_no_memory(err, "x", shape[0] * shape[1] * 4, choice);
    for (int64_t h = 0; h < in->heads; h++)
        for (int64_t i = 0; i < in->n; i++)
            memcpy(tensor_f32(&in->x) + (i * in->heads + h) * in->d,
                   tensor_f32(&in->v) + (h / group * in->n + i) * in->d, row);
    return true;
}

void generate_parallel(int64_t items, ThreadsFn fn, void *context)
{
    Threads *pool = items > 1 ? threads_new(threads_default()) : NULL;

    threads_run(pool, items, fn, context);
    threads_free(pool);
}

typedef struct NormalTask {
    Rng     rng;
    float  *out;
    int64_t count;
    double  deviation;
} NormalTask;

static void normal_chunk(void *context, int64_t item, int worker)
{
    const NormalTask *task = context;
    int64_t           begin = item * CHUNK, left = task->count - begin;
    Rng               rng = task->rng;

    (void)worker;
    rng.stream += (uint64_t)item;
    rng_fill_normal(&rng, task->out + begin, left < CHUNK ? left : CHUNK, task->deviation);
}

void generate_normal(uint64_t seed, const char *name, float *out, int64_t count, double deviation)
{
    NormalTask task = { .rng = rng_named(seed, name), .out = out, .count = count,
                        .deviation = deviation };

    generate_parallel((count + CHUNK - 1) / CHUNK, normal_chunk, &task);
}

void generate_code(uint64_t seed, Symbol symbol, int64_t head, float *out, int64_t d)
{
    Rng    rng = rng_named(seed, symbol.kind);
    double squares = 0;
    float  factor;

    rng.stream ^= symbol.number * 0x9e3779b97f4a7c15u + (uint64_t)head * 0xc2b2ae3d27d4eb4fu;
    rng_fill_normal(&rng, out, d, 1);
    for (int64_t i = 0; i < d; i++)
        squares += (double)out[i] * (double)out[i];
    if (!(squares > 0))
        return;
    factor = (float)sqrt((double)d / squares);
    for (int64_t i = 0; i < d; i++)
        out[i] *= factor;
}

/* out = amplitude * sum of weight * code; scratch holds d numbers. */
static void generate_sum(uint64_t seed, const Symbol *symbols, int count, int64_t head,
                         double amplitude, float *scratch, float *out, int64_t d)
{
    memset(out, 0, (size_t)d * sizeof(*out));
    for (int t = 0; t < count; t++) {
        float factor = (float)(amplitude * symbols[t].weight);

        if (symbols[t].weight == 0)
            continue;
        generate_code(seed, symbols[t], head, scratch, d);
        for (int64_t i = 0; i < d; i++)
            out[i] += factor * scratch[i];
    }
}

double generate_amplitude(double match, int64_t d)
{
    return sqrt(match / sqrt((double)d));
}

void generate_frequencies(uint64_t seed, const char *name, int64_t head, int dims,
                          const double *bandwidth, int64_t d, float *frequencies)
{
    Rng rng = rng_named(seed, name);

    rng.stream += (uint64_t)head;
    for (int64_t f = 0; f < (d + 1) / 2; f++)
        for (int a = 0; a < dims; a++)
            frequencies[f * dims + a] = (float)(rng_normal(&rng) / bandwidth[a]);
}

void generate_features(const float *frequencies, int dims, const double *point,
                       double amplitude, float *out, int64_t d)
{
    double radius = amplitude * M_SQRT2; /* cos^2 + sin^2 = 1 for two numbers */

    for (int64_t f = 0; f < (d + 1) / 2; f++) {
        double angle = 0;

        for (int a = 0; a < dims; a++)
            angle += (double)frequencies[f * dims + a] * point[a];
        out[2 * f] = (float)(radius * cos(angle));
        if (2 * f + 1 < d)
            out[2 * f + 1] = (float)(radius * sin(angle));
    }
}

/* "synthetic:NAME(argument=value, ...)".
 *
 * Names and defaults are read from the generator's `arguments` text, so help and parser agree.
 * n, d and heads of the InputChoice replace those of the spec, its seed only a missing one; what
 * neither gives is the default, and sizes of 0 follow from n. The Input's name is the spec with all
 * arguments: it makes the same input again, and its SHA-256 is the fingerprint.
 */

typedef struct Argument {
    char   name[16];
    double value;
    bool   whole; /* its default has no decimal point */
    bool   set;   /* given in the spec */
} Argument;

typedef struct Spec {
    const InputGenerator *about;
    const Generator      *generator;
    Argument              arguments[GENERATOR_ARGUMENTS];
    int                   count;
    uint64_t              seed; /* a double would hold only 53 bits */
} Spec;

/* ---- parsing ------------------------------------------------------------- */

typedef struct Cut {
    const char *text;
    size_t      length;
} Cut;

static Cut trimmed(const char *begin, const char *end)
{
    while (begin < end && isspace((unsigned char)*begin))
        begin++;
    while (end > begin && isspace((unsigned char)end[-1]))
        end--;
    return (Cut){ .text = begin, .length = (size_t)(end - begin) };
}

/* The next "name=value" of a list up to `end`; false after the last. */
static bool next_pair(const char **at, const char *end, Cut *name, Cut *value)
{
    const char *stop, *equals;

    if (*at >= end)
        return false;
    stop = memchr(*at, ',', (size_t)(end - *at));
    stop = stop ? stop : end;
    equals = memchr(*at, '=', (size_t)(stop - *at));
    *name = trimmed(*at, equals ? equals : stop);
    *value = equals ? trimmed(equals + 1, stop) : (Cut){ .text = stop, .length = 0 };
    *at = stop < end ? stop + 1 : end;
    return true;
}

static bool cut_is(Cut cut, const char *text)
{
    return strlen(text) == cut.length && memcmp(cut.text, text, cut.length) == 0;
}

/* Reads the defaults from the generator's `arguments`. */
static void declare(Spec *spec)
{
    const char *at = spec->about->arguments, *end = at + strlen(at);
    Cut         name, value;

    while (spec->count < GENERATOR_ARGUMENTS && next_pair(&at, end, &name, &value)) {
        Argument *argument = &spec->arguments[spec->count++];

        snprintf(argument->name, sizeof(argument->name), "%.*s", (int)name.length, name.text);
        labels_parse(value.text, value.length, &argument->value);
        argument->whole = !memchr(value.text, '.', value.length);
    }
}

static bool unknown_generator(Cut name, Error *err)
{
    char  text[64], list[256] = "";
    Meant nearest = { text, NULL, ANY_SLIPS };

    snprintf(text, sizeof(text), "%.*s", (int)(name.length < 60 ? name.length : 60), name.text);
    for (const InputGenerator *g = input_generators(); g->name; g++) {
        size_t length = strlen(list);

        meant_offer(&nearest, g->name);
        snprintf(list + length, sizeof(list) - length, "%s%s", length ? ", " : "", g->name);
    }
    return error_set(err, ERR_USAGE, "no synthetic input is named \"%s\"; nearest: %s; there are "
                     "%s", text, nearest.name, list);
}

static bool unknown_argument(const Spec *spec, Cut name, Error *err)
{
    char  text[64];
    Meant nearest = { text, NULL, ANY_SLIPS };

    snprintf(text, sizeof(text), "%.*s", (int)(name.length < 60 ? name.length : 60), name.text);
    for (int i = 0; i < spec->count; i++)
        meant_offer(&nearest, spec->arguments[i].name);
    return error_set(err, ERR_USAGE, "synthetic:%s has no argument \"%s\"; nearest: %s; it takes "
                     "%s", spec->about->name, text, nearest.name, spec->about->arguments);
}

static bool bad_value(const Spec *spec, const Argument *argument, Cut value, const char *wanted,
                      Error *err)
{
    return error_set(err, ERR_USAGE, "synthetic:%s: %s must be %s, got \"%.*s\"",
                     spec->about->name, argument->name, wanted,
                     (int)(value.length < 40 ? value.length : 40), value.text);
}

static bool parse_seed(Spec *spec, Argument *argument, Cut value, Error *err)
{
    uint64_t seed = 0;

    for (size_t i = 0; i < value.length; i++)
        if (!isdigit((unsigned char)value.text[i]) || __builtin_mul_overflow(seed, 10u, &seed) ||
            __builtin_add_overflow(seed, (uint64_t)(value.text[i] - '0'), &seed))
            return bad_value(spec, argument, value, "a whole number below 2^64", err);
    if (value.length == 0)
        return bad_value(spec, argument, value, "a whole number below 2^64", err);
    spec->seed = seed;
    argument->set = true;
    return true;
}

/* A whole number may have a unit: n=32Ki. */
static bool read_argument(const Argument *argument, Cut value, double *out)
{
    char    word[24];
    int64_t whole;

    snprintf(word, sizeof(word), "%.*s", (int)value.length, value.text);
    if (!argument->whole || value.length >= sizeof(word) || !text_whole(word, &whole))
        return labels_parse(value.text, value.length, out);
    *out = (double)whole;
    return true;
}

static bool parse_argument(Spec *spec, Cut name, Cut value, Error *err)
{
    Argument *argument = spec->arguments;
    double    number;

    while (argument < spec->arguments + spec->count && !cut_is(name, argument->name))
        argument++;
    if (argument == spec->arguments + spec->count)
        return unknown_argument(spec, name, err);
    if (argument->set)
        return error_set(err, ERR_USAGE, "synthetic:%s: %s is given twice", spec->about->name,
                         argument->name);
    if (argument == &spec->arguments[ARGUMENT_SEED])
        return parse_seed(spec, argument, value, err);
    if (!read_argument(argument, value, &number) || !(number >= 0 && number <= 1e12))
        return bad_value(spec, argument, value, "a number, 0 or above", err);
    if (argument->whole && number != floor(number))
        return bad_value(spec, argument, value, "a whole number", err);
    if (argument < &spec->arguments[ARGUMENT_SEED] && number < 1)
        return bad_value(spec, argument, value, "at least 1", err);
    argument->value = number;
    argument->set = true;
    return true;
}

/* NAME or NAME(list). */
static bool parse_spec(const char *text, Spec *spec, Error *err)
{
    const char *open = strchr(text, '('), *end = text + strlen(text), *at;
    Cut         name = trimmed(text, open ? open : end), value;
    const InputGenerator *about = input_generators();

    while (about->name && !cut_is(name, about->name))
        about++;
    if (!about->name)
        return unknown_generator(name, err);
    spec->about = about;
    spec->generator = &generators[about - input_generators()];
    declare(spec);
    if (!open)
        return true;
    while (end > open && isspace((unsigned char)end[-1]))
        end--;
    if (end[-1] != ')')
        return error_set(err, ERR_USAGE, "synthetic:%s: expected ')' at the end", about->name);
    at = trimmed(open + 1, end - 1).text;
    while (next_pair(&at, end - 1, &name, &value))
        if (!parse_argument(spec, name, value, err))
            return false;
    return true;
}

bool input_reseeded(const char *spec, uint64_t seed, Text *out)
{
    const char *at = spec + strcspn(spec, "("), *end = strrchr(spec, ')');
    Cut         name, value;

    if (strncmp(spec, SYNTHETIC, strlen(SYNTHETIC)) != 0 || !*at || !end)
        return false;
    at++;
    while (next_pair(&at, end, &name, &value))
        if (cut_is(name, "seed")) {
            text_addf(out, "%.*s%llu%s", (int)(value.text - spec), spec, (unsigned long long)seed,
                      value.text + value.length);
            return text_ok(out);
        }
    return false;
}

/* ---- making -------------------------------------------------------------- */

/* An option overrides an argument: `-n 128` beside synthetic:blocks(n=64) is 128 tokens. */
static void take_choice(Spec *spec, const InputChoice *choice)
{
    const int64_t given[] = { choice->n, choice->d, choice->heads };

    for (int i = 0; i < 3; i++)
        if (given[i] > 0)
            spec->arguments[i].value = (double)given[i];
    if (!spec->arguments[ARGUMENT_SEED].set)
        spec->seed = choice->seed;
}

/* An argument of the generator's own; NULL: it has none of this name. */
static Argument *own_argument(Spec *spec, const char *name)
{
    for (int i = ARGUMENT_OWN; i < spec->count; i++)
        if (!strcmp(spec->arguments[i].name, name))
            return &spec->arguments[i];
    return NULL;
}

/* The argument that lets query heads share keys and values. */
static Argument *kv_heads_of(Spec *spec)
{
    return own_argument(spec, "kv_heads");
}

/* So many of the last tokens are queries; 0: all are. */
static int64_t queries_of(Spec *spec, const Generation *g)
{
    const Argument *given = own_argument(spec, "queries");
    int64_t         queries = given ? (int64_t)given->value : 0;

    return queries > 0 && queries < g->n && !strcmp(spec->about->name, "normal") ? queries : 0;
}

static bool settle_kv_heads(Spec *spec, Generation *g, Error *err)
{
    const Argument *given = kv_heads_of(spec);

    g->kv_heads = given && given->value > 0 ? (int64_t)given->value : g->heads;
    return g->heads % g->kv_heads == 0 ||
           error_set(err, ERR_USAGE, "synthetic:%s: kv_heads must divide heads = %lld, got %lld",
                     spec->about->name, (long long)g->heads, (long long)g->kv_heads);
}

static bool settle_sizes(Spec *spec, Generation *g, Error *err)
{
    Argument *own = &spec->arguments[ARGUMENT_OWN], *match = &spec->arguments[ARGUMENT_MATCH];

    for (int i = 0; ARGUMENT_OWN + i < spec->count; i++) {
        if (!own[i].whole || own[i].value <= (double)g->n || &own[i] == kv_heads_of(spec))
            continue;
        if (own[i].set)
            return error_set(err, ERR_USAGE, "synthetic:%s: %s must be at most n = %lld, got %.0f",
                             spec->about->name, own[i].name, (long long)g->n, own[i].value);
        own[i].value = (double)g->n; /* a default made for longer sequences */
    }
    if (!(match->value > 0)) /* stands out among n random matches */
        match->value = round(4 + 2 * log((double)g->n));
    g->match = match->value;
    if (spec->generator->settle)
        spec->generator->settle(g, &own[0].value, &own[1].value);
    g->a = own[0].value;
    g->b = own[1].value;
    return true;
}

/* As many kv_heads as heads, and queries as tokens, go without saying. */
static bool goes_without_saying(Spec *spec, const Generation *g, const Argument *argument)
{
    if (argument == kv_heads_of(spec))
        return g->kv_heads == (int64_t)spec->arguments[ARGUMENT_HEADS].value;
    return !strcmp(spec->about->name, "normal") && argument == own_argument(spec, "queries") &&
           !queries_of(spec, g);
}

/* Names the input by the spec with all values. */
static bool name_input(Spec *spec, const Generation *g, Input *in, Error *err)
{
    Text   text = { 0 };
    char   number[40];
    Mapped bytes;

    text_addf(&text, "synthetic:%s(", spec->about->name);
    for (int i = 0; i < spec->count; i++) {
        const Argument *argument = &spec->arguments[i];

        if (goes_without_saying(spec, g, argument))
            continue;
        text_addf(&text, "%s%s=", i ? ", " : "", argument->name);
        if (i == ARGUMENT_SEED)
            text_addf(&text, "%llu", (unsigned long long)spec->seed);
        else if (argument->whole)
            text_addf(&text, "%.0f", argument->value);
        else
            text_add(&text, labels_number(argument->value, number, sizeof(number)));
    }
    text_add(&text, ")");
    bytes = (Mapped){ .data = (const uint8_t *)text_str(&text), .size = (int64_t)text.length };
    mapped_sha256(&bytes, 1, in->sha256);
    in->name = text_ok(&text) ? arena_strdup(in->arena, text_str(&text)) : NULL;
    in->kind = arena_strdup(in->arena, "synthetic");
    in->note = arena_strdup(in->arena, spec->about->help);
    text_free(&text);
    return (in->name && in->kind && in->note) ||
           error_set(err, ERR_NOMEM, "no memory for an input");
}

#define ROWS 256 /* positions per work item */

typedef struct PlaceTask {
    const Generation *g;
    const Generator  *generator;
    float            *scratch; /* d numbers per worker */
} PlaceTask;

static void place_row(const Generation *g, const Position *position, int64_t i, int64_t head,
                      float *scratch)
{
    int64_t at = (head * g->n + i) * g->d;
    double  amplitude = generate_amplitude(g->match, g->d);

    generate_sum(g->seed, position->q, GENERATOR_TERMS, head, amplitude, scratch,
                 tensor_f32(&g->in->q) + at, g->d);
    generate_sum(g->seed, position->k, GENERATOR_TERMS, head, amplitude, scratch,
                 tensor_f32(&g->in->k) + at, g->d);
    generate_sum(g->seed, position->v, GENERATOR_TERMS, head, 1, scratch,
                 tensor_f32(&g->in->v) + at, g->d);
}

static void place_positions(void *context, int64_t item, int worker)
{
    const PlaceTask  *task = context;
    const Generation *g = task->g;
    float            *scratch = task->scratch + worker * g->d;

    if (!load_goes_on(g->choice, NULL))
        return;
    for (int64_t i = item * ROWS; i < (item + 1) * ROWS && i < g->n; i++) {
        Position position = { .label = "" };

        task->generator->place(g, i, &position);
        for (int64_t head = 0; head < g->heads; head++)
            place_row(g, &position, i, head, scratch);
    }
}

/* One thread adds the labels: an arena is not shared. */
static bool label_positions(const Generation *g, const Generator *generator, Error *err)
{
    Input *in = g->in;

    for (int64_t i = 0; i < g->n; i++) {
        Position position = { .label = "" };

        generator->place(g, i, &position);
        if (!position.label[0])
            return true; /* all positions have labels or none */
        if (i == 0)
            in->q_tokens = arena_alloc(in->arena, g->n, sizeof(*in->q_tokens));
        if (!in->q_tokens || !(in->q_tokens[i] = arena_strdup(in->arena, position.label)))
            return error_set(err, ERR_NOMEM, "no memory for %lld labels", (long long)g->n);
    }
    in->k_tokens = in->q_tokens;
    return true;
}

static bool run_generator(Generation *g, const Generator *generator, Error *err)
{
    float    *scratch = calloc((size_t)g->d + 1, (size_t)threads_hardware() * sizeof(*scratch));
    PlaceTask task = { .g = g, .generator = generator, .scratch = scratch };
    bool      ok = true;

    g->table = generator->plan ? calloc((size_t)g->n, sizeof(*g->table)) : NULL;
    if (!scratch || (generator->plan && !g->table)) {
        ok = error_set(err, ERR_NOMEM, "no memory to make %lld positions", (long long)g->n);
        goto out;
    }
    if (generator->plan)
        generator->plan(g);
    if (generator->fill)
        generator->fill(g, scratch);
    else if ((ok = label_positions(g, generator, err)))
        generate_parallel((g->n + ROWS - 1) / ROWS, place_positions, &task);
out:
    free(g->table);
    free(scratch);
    g->table = NULL;
    return ok && load_goes_on(g->choice, err);
}

/* What has fewer queries than keys has no x, whose rows would be both. */
static bool keep_last_queries(Input *in, int64_t queries)
{
    int64_t size = queries * in->d;
    float  *q = tensor_f32(&in->q);

    for (int64_t h = 0; h < in->heads; h++)
        memmove(q + h * size, q + (h + 1) * in->n * in->d - size, (size_t)size * sizeof(*q));
    in->q = tensor_of(DT_F32, 3, (int64_t[]){ in->heads, queries, in->d }, q);
    in->n = queries;
    return true;
}

bool load_synthetic(Input *in, const char *text, const InputChoice *choice, Error *err)
{
    Spec       spec = { .count = 0 };
    Generation g = { .in = in, .choice = choice };

    if (!parse_spec(text, &spec, err))
        return false;
    take_choice(&spec, choice);
    g.n = (int64_t)spec.arguments[ARGUMENT_N].value;
    g.d = (int64_t)spec.arguments[ARGUMENT_D].value;
    g.heads = (int64_t)spec.arguments[ARGUMENT_HEADS].value;
    g.seed = spec.seed;
    return settle_kv_heads(&spec, &g, err) && settle_sizes(&spec, &g, err) &&
           name_input(&spec, &g, in, err) &&
           generate_allocate(in, g.heads, g.kv_heads, g.n, g.d, choice, err) &&
           run_generator(&g, spec.generator, err) &&
           (queries_of(&spec, &g) ? keep_last_queries(in, queries_of(&spec, &g))
                                  : generate_x(in, choice, err));
}
