/* fuzz_pattern.c -- pattern expressions and parameter lists.
 *
 * Any text must end in a message or in a pattern whose rows are disjoint runs
 * inside the sequence; any list of assignments in a message or in names.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "attn/pattern/pattern.h"
#include "attn/run/param.h"

#define TOKENS 19 /* prime, so no block divides it */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_row(const PatternRow *row)
{
    uint8_t seen[TOKENS] = { 0 };

    for (int64_t r = 0; r < row->count; r++)
        for (int64_t c = 0; c < row->runs[r].count; c++) {
            int64_t j = row->runs[r].start + c * row->runs[r].step;

            if (j < 0 || j >= TOKENS || seen[j]++)
                abort();
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
    if (!p && err.code == ERR_NONE)
        abort();
    for (int64_t i = 0; p && i < TOKENS; i++) {
        pattern_row(p, i % 2, i, &row);
        if (!row.failed)
            check_row(&row);
    }
    pattern_row_free(&row);
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Assignments given = { 0 };
    Error       err = ERROR_INIT;
    char       *text;

    if (size > 400) /* long texts only repeat what short ones do, slowly */
        return 0;
    text = strndup((const char *)data, size);
    try_pattern(text);
    assignments_parse(&given, text, &err);
    assignments_free(&given);
    free(text);
    return 0;
}
