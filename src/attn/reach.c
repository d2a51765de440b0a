/* reach.c -- hop counts of a block of rows; see reach.h.
 *
 * A block keeps one word of bits for every token: bit b says that row b of the
 * block has come there.  One layer moves the words of its rows along their lists
 * of runs.  A long run is put down at O(log) nodes of a segment tree over the
 * tokens, and the tree is emptied into its leaves once; a list or a run that
 * several rows share is fed by the union of their words.  So a layer costs its
 * lists and runs, not its cells.
 *
 * With one layer repeated only the words of newly reached tokens move on (a
 * breadth-first search of all rows of the block at once).  With different layers
 * every depth is walked down on its own, because what a layer brings depends on
 * those below it.
 */
#include <stdlib.h>
#include <string.h>

#include "attn/reach_parts.h"

#define LANES_WIDE  4
#define DIRECT_MOST 6 /* tokens of a run that are cheaper without the tree */

typedef uint64_t Word;

struct ReachBlock {
    int64_t tokens;
    int     lanes;        /* words of one token */
    Word   *set;          /* [tokens * lanes] where the rows are */
    Word   *next;         /* after one more layer */
    Word   *reached;      /* at any depth so far */
    Word   *tree;         /* [2 tokens * lanes]; its leaves are the second half */
    Word   *lists, *runs; /* of those that are shared; grow with the layers */
    int64_t list_room, run_room;
    int64_t tree_lo, tree_hi; /* leaves that hold something */
    int64_t set_lo, set_hi;   /* tokens that may have a word in `set` */
    int64_t next_lo, next_hi;
};

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

/* ---- one layer ------------------------------------------------------------------ */

/* The functions below are made twice, for one word a token and for four, so that
 * the loops over lanes vanish. */
#define LANED static inline __attribute__((always_inline))

LANED void word_or(Word *to, const Word *from, int lanes)
{
    for (int w = 0; w < lanes; w++)
        to[w] |= from[w];
}

LANED bool word_any(const Word *word, int lanes)
{
    Word any = 0;

    for (int w = 0; w < lanes; w++)
        any |= word[w];
    return any != 0;
}

LANED void put_interval(ReachBlock *b, int64_t start, int64_t count, const Word *word, int lanes)
{
    int64_t n = b->tokens, end = start + count;

    if (count <= DIRECT_MOST) {
        for (int64_t j = start; j < end; j++)
            word_or(b->next + j * lanes, word, lanes);
    } else {
        b->tree_lo = start < b->tree_lo ? start : b->tree_lo;
        b->tree_hi = end > b->tree_hi ? end : b->tree_hi;
        for (int64_t l = start + n, r = end + n; l < r; l /= 2, r /= 2) {
            if (l % 2)
                word_or(b->tree + l++ * lanes, word, lanes);
            if (r % 2)
                word_or(b->tree + --r * lanes, word, lanes);
        }
    }
    b->next_lo = start < b->next_lo ? start : b->next_lo;
    b->next_hi = end > b->next_hi ? end : b->next_hi;
}

LANED void put_run(ReachBlock *b, const ReachRun *run, const Word *word, int lanes)
{
    int64_t last = run->start + (int64_t)(run->count - 1) * run->step;

    if (run->step == 1) {
        put_interval(b, run->start, run->count, word, lanes);
        return;
    }
    for (int64_t j = run->start; j <= last; j += run->step)
        word_or(b->next + j * lanes, word, lanes);
    b->next_lo = run->start < b->next_lo ? run->start : b->next_lo;
    b->next_hi = last >= b->next_hi ? last + 1 : b->next_hi;
}

LANED void put_list(ReachBlock *b, const ReachLayer *l, int32_t list, const Word *word, int lanes)
{
    for (int64_t e = l->first[list]; e < l->first[list + 1]; e++) {
        int32_t edge = l->edge[e];

        if (edge >= 0)
            put_interval(b, edge, 1, word, lanes);
        else if (l->run[~edge].shared >= 0)
            word_or(b->runs + (int64_t)l->run[~edge].shared * lanes, word, lanes);
        else
            put_run(b, &l->run[~edge], word, lanes);
    }
}

/* Words of the tree's nodes go down to the leaves, and these to `next`. */
LANED void empty_tree(ReachBlock *b, int lanes)
{
    int64_t n = b->tokens, lo = b->tree_lo + n, hi = b->tree_hi + n - 1;
    int     depth = 0;

    if (b->tree_lo >= b->tree_hi)
        return;
    while (hi >> (depth + 1))
        depth++;
    for (; depth > 0; depth--)
        for (int64_t i = lo >> depth; i <= hi >> depth; i++) {
            Word *node = b->tree + i * lanes;

            if (i == 0 || !word_any(node, lanes))
                continue;
            word_or(node + i * lanes, node, lanes); /* children 2 i and 2 i + 1 */
            word_or(node + (i + 1) * lanes, node, lanes);
            memset(node, 0, (size_t)lanes * sizeof(Word));
        }
    for (int64_t j = b->tree_lo; j < b->tree_hi; j++)
        word_or(b->next + j * lanes, b->tree + (n + j) * lanes, lanes);
    memset(b->tree + lo * lanes, 0, (size_t)((hi - lo + 1) * lanes) * sizeof(Word));
    b->tree_lo = n;
    b->tree_hi = 0;
}

/* next |= the keys of the tokens in `set`. */
LANED void move_words(ReachBlock *b, const ReachLayer *l, int lanes)
{
    for (int64_t i = b->set_lo; i < b->set_hi; i++) {
        const Word *word = b->set + i * lanes;
        int32_t     list = l->list[i];

        if (!word_any(word, lanes))
            continue;
        if (l->shared[list] >= 0)
            word_or(b->lists + (int64_t)l->shared[list] * lanes, word, lanes);
        else
            put_list(b, l, list, word, lanes);
    }
    for (int64_t c = 0; c < l->shared_lists; c++)
        if (word_any(b->lists + c * lanes, lanes))
            put_list(b, l, l->shared_list[c], b->lists + c * lanes, lanes);
    for (int64_t c = 0; c < l->shared_runs; c++)
        if (word_any(b->runs + c * lanes, lanes))
            put_run(b, &l->run[l->shared_run[c]], b->runs + c * lanes, lanes);
    if (l->shared_lists)
        memset(b->lists, 0, (size_t)(l->shared_lists * lanes) * sizeof(Word));
    if (l->shared_runs)
        memset(b->runs, 0, (size_t)(l->shared_runs * lanes) * sizeof(Word));
    empty_tree(b, lanes);
}

static void clear_next(ReachBlock *b)
{
    b->next_lo = b->tokens;
    b->next_hi = 0;
}

/* `next` becomes `set`, and what was there is wiped. */
static void step_on(ReachBlock *b)
{
    Word   *set = b->set;
    int64_t lo = b->set_lo, hi = b->set_hi;

    b->set = b->next;
    b->set_lo = b->next_lo;
    b->set_hi = b->next_hi;
    b->next = set;
    if (hi > lo)
        memset(set + lo * b->lanes, 0, (size_t)((hi - lo) * b->lanes) * sizeof(Word));
    clear_next(b);
}

/* Over the residual connection every token keeps what it has. */
static void keep_words(ReachBlock *b)
{
    for (int64_t w = b->set_lo * b->lanes; w < b->set_hi * b->lanes; w++)
        b->next[w] |= b->set[w];
    b->next_lo = b->set_lo < b->next_lo ? b->set_lo : b->next_lo;
    b->next_hi = b->set_hi > b->next_hi ? b->set_hi : b->next_hi;
}

/* ---- what a depth brought --------------------------------------------------------- */

/* `set` loses what was reached before, and is reached now; whether any is left. */
static bool only_new(ReachBlock *b)
{
    int64_t lo = b->tokens, hi = 0;

    for (int64_t j = b->set_lo; j < b->set_hi; j++) {
        Word any = 0;

        for (int64_t at = j * b->lanes; at < (j + 1) * b->lanes; at++) {
            b->set[at] &= ~b->reached[at];
            b->reached[at] |= b->set[at];
            any |= b->set[at];
        }
        if (any) {
            lo = j < lo ? j : lo;
            hi = j + 1;
        }
    }
    b->set_lo = lo; /* words outside are zero */
    b->set_hi = hi;
    return hi > lo;
}

/* `reached` becomes a copy of `set`; whether it was another. */
static bool replaced(ReachBlock *b)
{
    size_t bytes = (size_t)(b->tokens * b->lanes) * sizeof(Word);
    bool   other = memcmp(b->reached, b->set, bytes) != 0;

    memcpy(b->reached, b->set, bytes);
    return other;
}

static bool all_reached(const ReachBlock *b, int64_t first)
{
    int64_t left = b->tokens - first;

    for (int64_t at = b->tokens * b->lanes - 1; at >= 0; at--) {
        int64_t rows = left - at % b->lanes * 64;
        Word    full = rows >= 64 ? ~(Word)0 : rows > 0 ? ((Word)1 << rows) - 1 : 0;

        if (b->reached[at] != full)
            return false;
    }
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
    for (int64_t r = 0; r < b->set_hi - first; r++)
        b->set[(first + r) * b->lanes + r / 64] = (Word)1 << r % 64;
}

/* `set` goes down through one layer; keep: it stays where it is as well. */
static void move_layer(ReachBlock *b, const ReachLayer *l, bool keep)
{
    if (b->lanes == LANES_WIDE)
        move_words(b, l, LANES_WIDE);
    else
        move_words(b, l, 1);
    if (keep)
        keep_words(b);
    step_on(b);
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
        move_layer(b, reach_layer_at(s, layer), s->residual && s->count > 1);
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
        if (s->residual && (quiet == s->count || all_reached(b, first)))
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
