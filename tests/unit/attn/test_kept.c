/* test_kept.c -- the keys that a decoder keeps by the rule of a pattern, against those that later
 * rows of a longer sequence read.
 */
#include "attn/pattern/pattern.h"
#include "check.h"

#define SHORT 41  /* the longest that is asked for */
#define LONG  400 /* rows that may read a key */

/* `spare`: keys held besides those that are read.  `from_end`: nothing is ruled out. */
static const struct {
    const char *expr;
    int64_t     spare;
    bool        from_end;
} rules[] = {
    { "full", 0, false },
    { "none", 0, false },
    { "self", 0, false },
    { "causal", 0, false },
    { "window(0)", 0, false },
    { "window(9)", 0, false },
    { "window(7,3)", 0, false },
    { "band(-7,-2)", 0, false },
    { "band(1,4)", 0, false },
    { "block(6)", 0, false },
    { "chunk(5,1)", 0, false },
    { "local(4,3)", 0, false },
    { "stride(5)", 0, false },
    { "window(9)+stride(5)", 0, false },
    { "window(25)&stride(5)", 0, false },
    { "window(25,2)&stride(3)", 0, false },
    { "summary(6,2)", 0, false },
    { "block(6)+summary(6,2)", 0, false },
    { "window(9)+summary(6,2,1)", 0, false },
    { "tile(3,window(3)+cols(2))", 0, false },
    { "tile(3,summary(4))", 0, false },
    { "log(2)", 0, false },
    { "log(2,8)", 0, false },
    { "log(2,8)&block(8)", 2, false }, /* reads 5 keys back at most, of 7 in a block */
    { "log(2)&block(5)", 0, false },
    { "log(3)&window(31)", 0, false },
    { "(log(2)+self)&window(31)", 9, false }, /* two kinds of distances: the window bounds */
    { "cols(4)", 0, false },
    { "cols([0,3,17])", 0, false },
    { "window(9)+cols(4)", 0, false },
    { "window(9)+cols([2,11:15])", 0, false },
    { "window(7,2)+cols(3)", 0, false },
    { "window(9)+global(4)", 0, false },
    { "rows([20])", 0, false },
    { "window(5)+rows([20])", 0, false },
    { "window(5)+global([20])", 0, false },
    { "window(9)&cols(4)", 0, false },
    { "cols(9)-cols(4)", 0, false },
    { "full-cols(4)", 0, false },
    { "window(9)-cols(4)", 0, false },
    { "window(21)-window(9)", 0, false },
    { "full-window(9)", 0, false },
    { "!cols(3)", 0, false },
    { "!(!window(9))", 0, false },
    { "!(!window(9)&!cols(3))", 0, false },
    { "window(9);window(3)+cols(2)", 0, false },
    { "image(6,2,6)", 0, false },
    { "image(6,2,2,1,1)", 1, false }, /* the farthest pixel decides */
    { "cols([-3])", 0, true },
    { "global([-1])", 0, true },
    { "window(5)+cols([0:-4])", 0, true },
    { "random(2)", 0, true },
    { "window(5)+random(2)", 0, true },
    { "shift(3,0)", 0, true },
};
#define RULES (sizeof(rules) / sizeof(*rules))

static Pattern *built(Arena *arena, const char *expr, int64_t n)
{
    PatternShape s = { .heads = 2, .n = n, .m = n, .causal = true };
    Error        err = ERROR_INIT;
    Pattern     *p = pattern_parse(arena, s, expr, NULL, &err);

    CHECK(p, "%s: %s", expr, err.text);
    return pattern_finish(arena, s, p, true);
}

/* The last row that reads each key; -1: none. */
static void last_readers(const Pattern *p, int64_t last[LONG])
{
    PatternRow row = { 0 };

    for (int64_t j = 0; j < LONG; j++)
        last[j] = -1;
    for (int64_t head = 0; head < 2; head++)
        for (int64_t i = 0; i < LONG; i++) {
            pattern_row(p, head, i, &row);
            for (int64_t x = 0; x < row.count; x++)
                for (int64_t c = 0; c < row.runs[x].count; c++) {
                    int64_t *at = &last[row.runs[x].start + c * row.runs[x].step];

                    *at = *at < i ? i : *at;
                }
        }
    pattern_row_free(&row);
}

static int64_t needed_after(const int64_t last[LONG], int64_t n)
{
    int64_t needed = 0;

    for (int64_t j = 0; j < n; j++)
        needed += last[j] >= n - 1;
    return needed;
}

/* At every length no fewer are kept than are read; no more than the most up to it. */
static void check_rule(size_t at)
{
    Arena  *arena = arena_new();
    int64_t last[LONG], most = 0;

    last_readers(built(arena, rules[at].expr, LONG), last);
    for (int64_t n = 21; n <= SHORT; n++) {
        int64_t kept = pattern_kept(built(arena, rules[at].expr, n), n);
        int64_t needed = needed_after(last, n);

        if (rules[at].from_end) {
            CHECK(kept == n, "%s: %d of %d keys are kept", rules[at].expr, (int)kept, (int)n);
            continue;
        }
        CHECK(kept >= needed, "%s, n=%d: %d keys are kept, %d read", rules[at].expr, (int)n,
              (int)kept, (int)needed);
        most = 0;
        for (int64_t t = 1; t <= n; t++)
            most = needed_after(last, t) > most ? needed_after(last, t) : most;
        CHECK(kept <= most + rules[at].spare, "%s, n=%d: %d keys are kept, at most %d read",
              rules[at].expr, (int)n, (int)kept, (int)most);
    }
    arena_free(arena);
}

TEST(what_is_kept_is_what_later_rows_read)
{
    for (size_t at = 0; at < RULES; at++)
        check_rule(at);
}

TEST(the_share_that_is_kept_for_ever)
{
    static const struct {
        const char *expr;
        double      share;
    } shares[] = {
        { "full", 1 },
        { "window(9)", 0 },
        { "window(9)+cols(4)", 0 },
        { "window(9)+stride(5)", 1 },
        { "block(6)+summary(6,2)", 2.0 / 6 },
        { "summary(6)+summary(4)", 4.0 / 12 },
        { "tile(3,summary(4))", 1.0 / 4 },
        { "full-cols(4)", 1 },
        { "full-summary(4)", 3.0 / 4 },
        { "random(3)", 1 },
        { "cols([-1])", 1 },
        { "window(9);summary(5)", 1.0 / 5 },
        { "none", 0 },
    };

    for (size_t at = 0; at < sizeof(shares) / sizeof(*shares); at++) {
        Arena *arena = arena_new();
        double share = pattern_kept_share(built(arena, shares[at].expr, SHORT));

        CHECK(fabs(share - shares[at].share) <= 1e-12, "%s: %g", shares[at].expr, share);
        arena_free(arena);
    }
}

SUITE(NULL, NULL)
