/* words.c -- what a person types: patterns, parameters, command lines.
 *
 * Any text ends in a message, or in a value that holds what its type promises.
 */
#include <stdlib.h>
#include <string.h>

#include "app/call.h"
#include "app/lesson/lesson.h"
#include "app/study/sweep.h"
#include "attn/pattern/pattern.h"
#include "target.h"
#include "ui/state/workspace.h"

#define TOKENS  19  /* prime, so no block divides it */
#define LONGEST 400 /* bytes; longer texts only repeat what short ones do, slowly */

/* ---- patterns --------------------------------------------------------------- */

static void check_row(const PatternRow *row)
{
    uint8_t seen[TOKENS] = { 0 };

    for (int64_t r = 0; r < row->count; r++)
        for (int64_t c = 0; c < row->runs[r].count; c++) {
            int64_t j = row->runs[r].start + c * row->runs[r].step;

            target_assert(j >= 0 && j < TOKENS, "a key outside the sequence");
            target_assert(!seen[j]++, "a key that a row holds twice");
        }
}

/* $t has a number a token, $u one a head and token, $w keys; others are not given. */
static Tensor lookup(void *context, const char *name)
{
    static int32_t numbers[2 * TOKENS];

    (void)context;
    for (int i = 0; i < 2 * TOKENS; i++)
        numbers[i] = i * i % 7;
    if (!strcmp(name, "t"))
        return tensor_of(DT_I32, 1, (int64_t[]){ TOKENS }, numbers);
    if (!strcmp(name, "u"))
        return tensor_of(DT_I32, 2, (int64_t[]){ 2, TOKENS }, numbers);
    return tensor_of(DT_I32, 2, (int64_t[]){ TOKENS, 2 }, strcmp(name, "w") ? NULL : numbers);
}

static void try_pattern(const char *text)
{
    PatternShape  shape = { .heads = 2, .n = TOKENS, .m = TOKENS };
    PatternSource source = { .lookup = lookup };
    Arena       *arena = arena_new();
    PatternRow   row = { 0 };
    Error        err = ERROR_INIT;
    Pattern     *p;

    arena_limit(arena, 1 << 24);
    p = pattern_finish(arena, shape, pattern_parse(arena, shape, text, &source, &err), true);
    if (!p)
        target_message(&err);
    for (int64_t i = 0; p && i < TOKENS; i++) {
        pattern_row(p, i % 2, i, &row);
        if (!row.failed)
            check_row(&row);
    }
    pattern_row_free(&row);
    arena_free(arena);
}

void feed_pattern(const uint8_t *data, size_t size)
{
    char *text;

    if (size > LONGEST)
        return;
    text = target_text(data, size);
    try_pattern(text);
    free(text);
}

/* ---- parameters --------------------------------------------------------------- */

/* Of each layer of a request: bound, printed, and one step further. */
static void bind_all(const Request *request)
{
    for (; request; request = request->above) {
        const Mechanism *m = mechanism_find(request->mechanism);
        void            *values = calloc(1, m->params_size + 1);
        Error            err = ERROR_INIT;
        bool             bound = params_bind(m->params, values, &request->given, &err);

        if (!bound)
            target_message(&err);
        for (const Param *p = m->params; bound && p && p->name; p++) {
            Text shown = { 0 }, next = { 0 };

            params_print(p, values, &shown);
            params_step(p, text_str(&shown), 1, &next);
            text_free(&shown);
            text_free(&next);
        }
        free(values);
    }
}

/* A request's text is read again as the same request. */
static void read_again(const Request *request)
{
    Request again = REQUEST_INIT;
    Text    first = { 0 }, second = { 0 };
    Error   err = ERROR_INIT;

    request_text(request, &first);
    if (request_parse(target_session(), &again, text_str(&first), &err)) {
        request_text(&again, &second);
        target_assert(!strcmp(text_str(&first), text_str(&second)), "a text that reads otherwise");
    } else {
        target_message(&err);
    }
    request_free(&again);
    text_free(&first);
    text_free(&second);
}

void feed_parameters(const uint8_t *data, size_t size)
{
    Assignments given = { 0 };
    Request     request = REQUEST_INIT;
    Error       err = ERROR_INIT;
    char       *text;

    if (size > LONGEST)
        return;
    text = target_text(data, size);
    if (!assignments_parse(&given, text, &err))
        target_message(&err);
    err = ERROR_INIT;
    if (request_parse(target_session(), &request, text, &err)) {
        bind_all(&request);
        if (workspace_check_request(&request, &err)) /* else it has names that nothing takes */
            read_again(&request);
        else
            target_message(&err);
    } else {
        target_message(&err);
    }
    assignments_free(&given);
    request_free(&request);
    free(text);
}

/* ---- command lines -------------------------------------------------------------- */

#define WIDE 4096 /* numbers a token: 64 tokens of q, k, v and x are 4 MiB */

/* The input of a sweep is generated, and its size is what the numbers ask for. */
static bool is_wide(const Call *call)
{
    int64_t d = 64, heads = 1;

    return call_int(call, OPT_D, 1, 65536, &d, NULL) &&
           call_int(call, OPT_HEADS, 1, 65536, &heads, NULL) && d * heads > WIDE;
}

static void parse_spec(const Call *call)
{
    SweepSpec spec;
    Error     err = ERROR_INIT;

    if (call->values[OPT_INPUT] || call->values[OPT_OUTPUT] || is_wide(call))
        return; /* it would be opened, or be large */
    if (sweep_spec_parse(target_session(), call, &spec, &err))
        sweep_spec_free(&spec);
    else
        target_message(&err);
}

void feed_words(const uint8_t *data, size_t size)
{
    const char *words[64];
    Text        storage = { 0 };
    Error       err = ERROR_INIT;
    Call        call;
    int         count;
    char       *line;

    if (size > LONGEST)
        return;
    line = target_text(data, size);
    if (!call_split(line, words, 64, &count, &storage, &err) ||
        (count > 0 && !call_parse(&call, words, count, &err)))
        target_message(&err);
    else if (count > 0 && !strcmp(words[0], "sweep"))
        parse_spec(&call);
    text_free(&storage);
    free(line);
}

/* ---- what a learner did and types ----------------------------------------------- */

static void type_number(const char *text)
{
    static const char *const units[] = { "", "bytes", "FLOPs", "%", "ms" };
    Error  err = ERROR_INIT;
    double number;

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        if (!lesson_number(text, units[i], &number, &err))
            target_message(&err);
        else
            target_assert(lesson_number_begins(text, units[i]), "a number that cannot be typed");
    }
}

void feed_progress(const uint8_t *data, size_t size)
{
    Progress progress, again;
    Text     first = { 0 }, second = { 0 };
    char    *text = target_text(data, size);

    progress_parse(text, &progress);
    progress_write(&progress, &first);
    progress_parse(text_str(&first), &again);
    progress_write(&again, &second);
    target_assert(!strcmp(text_str(&first), text_str(&second)), "progress that reads otherwise");
    if (size <= LONGEST)
        type_number(text);
    text_free(&first);
    text_free(&second);
    free(text);
}
