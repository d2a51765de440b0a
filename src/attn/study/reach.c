/* reach.c -- hop counts of a block of rows; see reach.h.
 *
 * A block keeps one word of bits for every token: bit b says that row b of the
 * block has come there.  One layer moves the words along its cells (reach_move.c).
 *
 * With one layer repeated only the words of newly reached tokens move on (a
 * breadth-first search of all rows of the block at once).  With different layers
 * every depth is walked down on its own, because what a layer brings depends on
 * those below it.
 */
#include <stdlib.h>
#include <string.h>

#include "attn/study/reach_layer.h"

int64_t reach_block_rows(int64_t tokens)
{
    return 64 * (tokens <= REACH_WIDE ? LANES_WIDE : 1);
}

int64_t reach_row_bytes(int64_t tokens)
{
    return (tokens + 63) / 64 * 64 + 64; /* rows apart in the cache's sets too */
}

void reach_block_free(ReachBlock *b)
{
    if (!b)
        return;
    free(b->set);
    free(b->next);
    free(b->reached);
    free(b->tree);
    free(b->lists);
    free(b->runs);
    free(b);
}

ReachBlock *reach_block_new(int64_t tokens, Error *err)
{
    ReachBlock *b = calloc(1, sizeof(*b));
    size_t      words;

    if (b) {
        b->tokens = tokens;
        b->lanes = (int)(reach_block_rows(tokens) / 64);
        words = (size_t)tokens * (size_t)b->lanes;
        b->set = calloc(words, sizeof(Word));
        b->next = calloc(words, sizeof(Word));
        b->reached = calloc(words, sizeof(Word));
        b->tree = calloc(2 * words, sizeof(Word));
    }
    if (b && b->set && b->next && b->reached && b->tree)
        return b;
    reach_block_free(b);
    error_set(err, ERR_NOMEM, "the reach of %lld tokens: not enough memory", (long long)tokens);
    return NULL;
}

static bool room_for(Word **words, int64_t *room, int64_t wanted)
{
    if (wanted <= *room)
        return true;
    free(*words);
    *words = calloc((size_t)wanted, sizeof(Word));
    *room = *words ? wanted : 0;
    return *words != NULL;
}

static bool block_fits(ReachBlock *b, const ReachStack *s)
{
    bool ok = true;

    for (int i = 0; i < s->count; i++)
        ok = ok && room_for(&b->lists, &b->list_room, s->layers[i]->shared_lists * b->lanes) &&
             room_for(&b->runs, &b->run_room, s->layers[i]->shared_runs * b->lanes);
    return ok;
}

/* ---- what a depth brought --------------------------------------------------------- */

/* `set` loses what was reached before, and is reached now; whether any is left. */
LANED void take_new(ReachBlock *b, int lanes)
{
    int64_t lo = b->tokens, hi = 0;

    b->active = b->bits = 0;
    memset(b->alive, 0, sizeof(b->alive));
    for (int64_t j = b->set_lo; j < b->set_hi; j++) {
        Word *set = b->set + j * lanes, *reached = b->reached + j * lanes, any = 0;

        for (int w = 0; w < lanes; w++) {
            set[w] &= ~reached[w];
            reached[w] |= set[w];
            any |= set[w];
            b->alive[w] |= set[w];
        }
        if (!any)
            continue;
        for (int w = 0; w < lanes; w++)
            b->bits += __builtin_popcountll(set[w]);
        b->active++;
        lo = j < lo ? j : lo;
        hi = j + 1;
    }
    b->set_lo = lo; /* words outside are zero */
    b->set_hi = hi;
}

static bool only_new(ReachBlock *b)
{
    if (b->lanes == LANES_WIDE)
        take_new(b, LANES_WIDE);
    else
        take_new(b, 1);
    return b->set_hi > b->set_lo;
}

/* `reached` becomes a copy of `set`; whether it was another. */
static bool replaced(ReachBlock *b)
{
    size_t bytes = (size_t)(b->tokens * b->lanes) * sizeof(Word);
    bool   other = memcmp(b->reached, b->set, bytes) != 0;

    memcpy(b->reached, b->set, bytes);
    return other;
}

static bool all_reached(const ReachBlock *b)
{
    for (int64_t at = b->tokens * b->lanes - 1; at >= 0; at--)
        if (b->reached[at] != b->full[at % b->lanes])
            return false;
    return true;
}

/* Word c of 64 holds column c's bits of 64 rows; afterwards word r holds row r's of
 * 64 columns. */
static void transpose(Word word[64])
{
    Word mask = 0x00000000FFFFFFFFu;

    for (int j = 32; j; j >>= 1, mask ^= mask << j)
        for (int k = 0; k < 64; k = ((k | j) + 1) & ~j) {
            Word swap = ((word[k] >> j) ^ word[k | j]) & mask;

            word[k] ^= swap << j;
            word[k | j] ^= swap;
        }
}

/* Tells the tokens of `set`, 64 at a time. */
static void tell(const ReachBlock *b, int depth, ReachFound found, void *context)
{
    for (int64_t group = b->set_lo / 64; group * 64 < b->set_hi; group++)
        for (int lane = 0; lane < b->lanes; lane++) {
            Word word[64] = { 0 }, any = 0;

            for (int64_t c = 0; c < 64 && group * 64 + c < b->tokens; c++) {
                word[c] = b->set[(group * 64 + c) * b->lanes + lane];
                any |= word[c];
            }
            if (!any)
                continue;
            transpose(word);
            for (int r = 0; r < 64; r++)
                if (word[r])
                    found(context, depth, lane * 64 + r, group, word[r]);
        }
}

/* ---- searches ---------------------------------------------------------------------- */

static bool stopped(const atomic_bool *cancel)
{
    return cancel && atomic_load_explicit(cancel, memory_order_relaxed);
}

/* Every row of the block stands on its own token. */
static void begin(ReachBlock *b, int64_t first)
{
    int64_t rows = reach_block_rows(b->tokens), left = b->tokens - first;

    memset(b->set, 0, (size_t)(b->tokens * b->lanes) * sizeof(Word));
    memset(b->next, 0, (size_t)(b->tokens * b->lanes) * sizeof(Word));
    b->next_lo = b->tree_lo = b->tokens;
    b->next_hi = b->tree_hi = 0;
    b->set_lo = first;
    b->set_hi = first + (left < rows ? left : rows);
    memset(b->full, 0, sizeof(b->full));
    for (int64_t r = 0; r < b->set_hi - first; r++) {
        b->set[(first + r) * b->lanes + r / 64] = (Word)1 << r % 64;
        b->full[r / 64] |= (Word)1 << r % 64;
    }
    memcpy(b->alive, b->full, sizeof(b->full));
    b->active = b->bits = b->set_hi - first;
}

/* What `depth` layers bring, before it is known what of it is new.  One layer
 * repeated goes on from the depth before: from what was new there, which is enough
 * with residual connections. */
static bool go_deeper(ReachBlock *b, const ReachStack *s, int64_t first, int depth,
                      const atomic_bool *cancel)
{
    int from = s->count > 1 ? depth : 1;

    if (s->count > 1)
        begin(b, first);
    for (int layer = from; layer > 0; layer--) {
        if (stopped(cancel))
            return false;
        reach_move(b, reach_layer_at(s, layer), s->residual && s->count > 1,
                   s->residual && s->count == 1);
    }
    return true;
}

bool reach_search(const ReachStack *s, ReachBlock *b, int64_t first, ReachFound found,
                  void *context, bool *changed, const atomic_bool *cancel)
{
    int  quiet = 0; /* depths in a row that changed nothing: once for each layer is the end */
    bool other;

    if (!block_fits(b, s))
        return false;
    begin(b, first);
    memcpy(b->reached, b->set, (size_t)(b->tokens * b->lanes) * sizeof(Word));
    tell(b, 0, found, context);
    for (int depth = 1; depth <= s->depth; depth++) {
        if (!go_deeper(b, s, first, depth, cancel))
            return false;
        other = s->residual ? only_new(b) : replaced(b);
        quiet = other ? 0 : quiet + 1;
        if (changed && other)
            changed[depth] = true;
        tell(b, depth, found, context);
        if (s->residual && (quiet == s->count || all_reached(b)))
            return true;
    }
    return true;
}

/* ---- rows of hop counts ------------------------------------------------------------- */

typedef struct Rows {
    uint8_t *out;
    int64_t  stride;
    int      only; /* depth that counts; -1: each */
} Rows;

/* Eight flags of a byte as eight bytes of 0 or 1. */
static uint64_t spread(uint64_t flags)
{
    uint64_t bytes = flags * 0x0101010101010101u & 0x8040201008040201u;

    return (bytes + 0x7F7F7F7F7F7F7F7Fu) >> 7 & 0x0101010101010101u;
}

static void write_hops(void *context, int depth, int64_t row, int64_t group, uint64_t tokens)
{
    const Rows *rows = context;
    uint8_t    *to = rows->out + row * rows->stride + group * 64;
    uint64_t    eight;

    if (rows->only >= 0 && depth != rows->only)
        return;
    for (; tokens; tokens >>= 8, to += 8) {
        if (!(tokens & 255))
            continue;
        memcpy(&eight, to, sizeof(eight));
        eight ^= spread(tokens & 255) * (uint64_t)(REACH_NONE ^ depth);
        memcpy(to, &eight, sizeof(eight));
    }
}

bool reach_rows(const ReachStack *s, ReachBlock *b, int64_t first, uint8_t *out,
                const atomic_bool *cancel)
{
    Rows    rows = { .out = out,
                     .stride = reach_row_bytes(b->tokens),
                     .only = s->residual ? -1 : s->depth };
    int64_t count = reach_block_rows(b->tokens);

    memset(out, REACH_NONE, (size_t)(count * rows.stride));
    return reach_search(s, b, first, write_hops, &rows, NULL, cancel);
}
