/* runs.c -- see node.h.
 *
 * Two runs meet where x = a.start (mod a.step) and x = b.start (mod b.step):
 * by the Chinese remainder theorem that is again one run, of step
 * lcm(a.step, b.step).  The rest of a is, counted in steps of a, an interval
 * minus a run, hence few runs.
 */
#include "attn/pattern/node.h"

#include <stdlib.h>
#include <string.h>

void pattern_row_free(PatternRow *row)
{
    free(row->runs);
    *row = (PatternRow){ 0 };
}

static bool runs_room(PatternRow *row)
{
    int64_t     capacity = row->capacity ? 2 * row->capacity : 16;
    PatternRun *runs;

    if (row->failed || row->count < row->capacity)
        return !row->failed;
    runs = realloc(row->runs, (size_t)capacity * sizeof(*runs));
    if (!runs) {
        row->failed = true;
        return false;
    }
    row->runs = runs;
    row->capacity = capacity;
    return true;
}

static void runs_push_of(PatternRow *row, PatternRun run)
{
    if (run.count > 0 && runs_room(row))
        row->runs[row->count++] = run;
}

void runs_push(PatternRow *row, int64_t start, int64_t count, int64_t step, uint8_t bits)
{
    runs_push_of(row, (PatternRun){ start, count, count == 1 ? 1 : step, bits });
}

void runs_push_range(PatternRow *row, int64_t lo, int64_t hi, int64_t m, uint8_t bits)
{
    if (lo < 0)
        lo = 0;
    if (hi > m)
        hi = m;
    runs_push(row, lo, hi - lo, 1, bits);
}

static int64_t last_of(PatternRun run)
{
    return run.start + (run.count - 1) * run.step;
}

/* g = gcd(a, b) and u with a u = g (mod b). */
static int64_t gcd_extended(int64_t a, int64_t b, int64_t *u)
{
    int64_t u0 = 1, u1 = 0;

    while (b) {
        int64_t q = a / b, r = a % b, next = u0 - q * u1;

        a = b;
        b = r;
        u0 = u1;
        u1 = next;
    }
    *u = u0;
    return a;
}

/* The keys of a run in [lo, hi]; avoids divisions, which are slow, where the step is 1. */
static PatternRun between(PatternRun run, int64_t lo, int64_t hi)
{
    int64_t first = lo > run.start ? lo - run.start : 0, span;

    if (run.step > 1)
        first = (first + run.step - 1) / run.step * run.step;
    run.start += first;
    span = hi - run.start;
    run.count = span < 0 ? 0 : (run.step > 1 ? span / run.step : span) + 1;
    return run;
}

PatternRun runs_common(PatternRun a, PatternRun b)
{
    PatternRun none = { 0 };
    int64_t    lo = max_i64(a.start, b.start), hi = min_i64(last_of(a), last_of(b));
    int64_t    u, g, period, shift, start;

    if (lo > hi)
        return none;
    if (a.step == 1 || b.step == 1) {
        PatternRun common = between(a.step == 1 ? b : a, lo, hi);

        common.bits = (uint8_t)(a.bits | b.bits);
        return common.count ? common : none;
    }
    g = gcd_extended(a.step, b.step, &u);
    if ((b.start - a.start) % g)
        return none;
    period = b.step / g;
    shift = (int64_t)((__int128)((b.start - a.start) / g % period) * u % period);
    if (shift < 0)
        shift += period;
    period *= a.step; /* lcm */
    start = a.start + shift * a.step;
    if (start < lo)
        start += (lo - start + period - 1) / period * period;
    else
        start -= (start - lo) / period * period;
    if (start > hi)
        return none;
    return (PatternRun){ start, (hi - start) / period + 1, period,
                         (uint8_t)(a.bits | b.bits) };
}

typedef void (*Emit)(void *context, PatternRun piece);

static void emit_piece(Emit emit, void *context, PatternRun a, int64_t from, int64_t count,
                       int64_t step)
{
    if (count > 0)
        emit(context, (PatternRun){ a.start + from * a.step, count,
                                    count == 1 ? 1 : a.step * step, a.bits });
}

/* Emits the pieces of a outside `common`, a subset of a.  In steps of a, common is from,
 * from + k, ...: the pieces are both ends and the gaps, as intervals or as k - 1 strided runs,
 * whichever are fewer. */
static void runs_without(PatternRun a, PatternRun common, Emit emit, void *context)
{
    int64_t from = (common.start - a.start) / a.step;
    int64_t k = common.count > 1 ? common.step / a.step : 1;
    int64_t last = from + (common.count - 1) * k, gaps = common.count - 1;

    emit_piece(emit, context, a, 0, from, 1);
    if (k - 1 < gaps)
        for (int64_t phase = 1; phase < k; phase++)
            emit_piece(emit, context, a, from + phase, gaps, k);
    else
        for (int64_t gap = 0; gap < gaps; gap++)
            emit_piece(emit, context, a, from + gap * k + 1, k - 1, 1);
    emit_piece(emit, context, a, last + 1, a.count - last - 1, 1);
}

void runs_drop(PatternRow *row, int64_t to, int64_t from)
{
    if (row->failed)
        return;
    if (row->count > from) /* row->runs may be NULL */
        memmove(row->runs + to, row->runs + from,
                (size_t)(row->count - from) * sizeof(*row->runs));
    row->count -= from - to;
}

static void emit_push(void *context, PatternRun piece)
{
    runs_push_of(context, piece);
}

/* A run in pieces, each to be compared with the runs of a row from `at` on.  They have a stack of
 * their own: a row of 100,000 single keys cuts a long run as often, too deep for calls. */
typedef struct Piece {
    PatternRun run;
    int64_t    at;
} Piece;

#define PIECES_FEW 16

typedef struct Pieces {
    Piece   few[PIECES_FEW], *items; /* items: few, or owned */
    int64_t count, capacity;
    int64_t at; /* of the next ones */
    bool    failed;
} Pieces;

static void pieces_begin(Pieces *p, int64_t at)
{
    p->items = p->few;
    p->count = 0;
    p->capacity = PIECES_FEW;
    p->at = at;
    p->failed = false;
}

static void pieces_free(Pieces *p)
{
    if (p->items != p->few)
        free(p->items);
}

static bool pieces_room(Pieces *p)
{
    Piece *items;

    if (p->count < p->capacity)
        return true;
    items = realloc(p->items == p->few ? NULL : p->items, (size_t)p->capacity * 2 * sizeof(*items));
    if (!items) {
        p->failed = true;
        return false;
    }
    if (p->items == p->few)
        memcpy(items, p->few, sizeof(p->few));
    p->items = items;
    p->capacity *= 2;
    return true;
}

static void pieces_push(void *context, PatternRun piece)
{
    Pieces *p = context;

    if (piece.count > 0 && pieces_room(p))
        p->items[p->count++] = (Piece){ piece, p->at };
}

/* Pushes what is left of a piece, the first of it on top. */
static void pieces_push_rest(Pieces *p, Piece from, int64_t at, PatternRun common)
{
    int64_t first = p->count;

    p->at = at + 1;
    runs_without(from.run, common, pieces_push, p);
    for (int64_t lo = first, hi = p->count - 1; lo < hi; lo++, hi--) {
        Piece keep = p->items[lo];

        p->items[lo] = p->items[hi];
        p->items[hi] = keep;
    }
}

/* Takes from `run` what it has in common with the runs [from, end) of the row, and emits the rest.
 * joins: common keys get the bits of both, and the rest of their run is pushed on the row; its
 * runs are then compared to the row's end, whatever `end` is. */
static void runs_take(PatternRow *row, int64_t from, int64_t end, PatternRun run, bool joins,
                      Emit emit, void *context)
{
    Pieces pieces;

    pieces_begin(&pieces, from);
    pieces_push(&pieces, run);
    while (pieces.count > 0 && !row->failed && !pieces.failed) {
        Piece      p = pieces.items[--pieces.count];
        PatternRun common = { 0 };
        int64_t    at = p.at, last = joins ? row->count : end;

        while (at < last && !(common = runs_common(row->runs[at], p.run)).count)
            at++;
        if (at == last) {
            emit(context, p.run);
            continue;
        }
        if (joins) {
            PatternRun x = row->runs[at];

            row->runs[at] = common;
            runs_without(x, common, emit_push, row);
        }
        pieces_push_rest(&pieces, p, at, common);
    }
    row->failed = row->failed || pieces.failed;
    pieces_free(&pieces);
}

/* Whether the runs are of neighbours, in order. */
static bool are_intervals(const PatternRun *runs, int64_t count)
{
    bool so = count == 0 || runs[0].step == 1;

    for (int64_t i = 1; so && i < count; i++)
        so = runs[i].step == 1 && runs[i].start >= runs[i - 1].start + runs[i - 1].count;
    return so;
}

/* Pushes the first `count` keys of a run, and takes them from it. */
static void push_first(PatternRow *row, PatternRun *run, int64_t count, uint8_t bits)
{
    runs_push_of(row, (PatternRun){ run->start, count, 1, bits });
    run->start += count;
    run->count -= count;
}

/* Pushes the union of intervals [x, y) and [y, end), in order. */
static void merge_intervals(PatternRow *row, int64_t x, int64_t y, int64_t end)
{
    int64_t    i = x, j = y;
    PatternRun a = row->runs[x], b = row->runs[y];

    while (i < y && j < end) {
        int64_t gap = b.start - a.start;

        if (gap > 0) {
            push_first(row, &a, min_i64(a.count, gap), a.bits);
        } else if (gap < 0) {
            push_first(row, &b, min_i64(b.count, -gap), b.bits);
        } else {
            int64_t common = min_i64(a.count, b.count);

            push_first(row, &a, common, (uint8_t)(a.bits | b.bits));
            b.start += common;
            b.count -= common;
        }
        if (a.count == 0 && ++i < y)
            a = row->runs[i];
        if (b.count == 0 && ++j < end)
            b = row->runs[j];
    }
    runs_push_of(row, i < y ? a : b);
    while (++i < y)
        runs_push_of(row, row->runs[i]);
    while (++j < end)
        runs_push_of(row, row->runs[j]);
}

/* Runs of the second operand are disjoint, so each is compared with those of the first only.  Its
 * remainder is kept apart: else the time would be quadratic in the runs. */
static void join_runs(PatternRow *row, int64_t x, int64_t y, int64_t end)
{
    Pieces left;

    pieces_begin(&left, 0);
    for (int64_t i = x; i < y; i++)
        runs_push_of(row, row->runs[i]);
    for (int64_t i = y; i < end && !row->failed; i++)
        runs_take(row, end, end, row->runs[i], true, pieces_push, &left);
    row->failed = row->failed || left.failed;
    for (int64_t i = 0; i < left.count; i++)
        runs_push_of(row, left.items[i].run);
    pieces_free(&left);
}

void runs_union(PatternRow *row, int64_t x, int64_t y)
{
    int64_t end = row->count;

    if (x == y || y == end || row->failed)
        return;
    if (are_intervals(row->runs + x, y - x) && are_intervals(row->runs + y, end - y))
        merge_intervals(row, x, y, end);
    else
        join_runs(row, x, y, end);
    runs_drop(row, x, end);
}

void runs_intersect(PatternRow *row, int64_t x, int64_t y)
{
    int64_t end = row->count;

    if (row->failed)
        return;
    for (int64_t i = x; i < y; i++)
        for (int64_t j = y; j < end && !row->failed; j++)
            runs_push_of(row, runs_common(row->runs[i], row->runs[j]));
    runs_drop(row, x, end);
}

void runs_difference(PatternRow *row, int64_t x, int64_t y)
{
    int64_t end = row->count;

    if (y == end || row->failed)
        return;
    for (int64_t i = x; i < y && !row->failed; i++)
        runs_take(row, y, end, row->runs[i], false, emit_push, row);
    runs_drop(row, x, end);
}

static int by_start(const void *a, const void *b)
{
    int64_t x = ((const PatternRun *)a)->start, y = ((const PatternRun *)b)->start;

    return (x > y) - (x < y);
}

#define INSERTION_LIMIT 24
#define FEW_STRAYS 8

/* The number of runs that start before their predecessor.  It is small where a short list was
 * added to a long one, and then insertion sort is faster. */
static int64_t count_strays(const PatternRun *runs, int64_t count)
{
    int64_t strays = 0;

    for (int64_t i = 1; i < count; i++)
        strays += runs[i].start < runs[i - 1].start;
    return strays;
}

static void sort_runs(PatternRun *runs, int64_t count)
{
    if (count > INSERTION_LIMIT && count_strays(runs, count) > FEW_STRAYS) {
        qsort(runs, (size_t)count, sizeof(*runs), by_start);
        return;
    }
    for (int64_t i = 1; i < count; i++)
        for (int64_t j = i; j > 0 && runs[j].start < runs[j - 1].start; j--) {
            PatternRun swap = runs[j];

            runs[j] = runs[j - 1];
            runs[j - 1] = swap;
        }
}

void runs_tidy(PatternRow *row, int64_t x)
{
    int64_t kept = x;

    if (row->failed || row->count - x < 2)
        return;
    sort_runs(row->runs + x, row->count - x);
    for (int64_t i = x + 1; i < row->count; i++) {
        PatternRun *a = &row->runs[kept], b = row->runs[i];

        if (a->step == 1 && b.step == 1 && a->bits == b.bits && a->start + a->count == b.start)
            a->count += b.count;
        else
            row->runs[++kept] = b;
    }
    row->count = kept + 1;
}
