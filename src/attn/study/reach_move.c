/* reach_move.c -- one layer moves the words of a block's rows along its lists of runs.
 *
 * A long run is written to O(log n) nodes of a segment tree over the tokens, and the tree is
 * emptied into its leaves once.  A list or a run that several rows share gets the union of their
 * words.  So a layer costs its lists and runs, not its cells.
 *
 * Scattered keys gain nothing by that.  Such a layer also has transposed lists, the rows of each
 * key, and once most of the matrix is reached, words are fetched rather than sent: a token stops
 * as soon as it has all the bits that it lacks.
 */
#include <string.h>

#include "attn/study/reach_layer.h"

#define DIRECT_MOST 6 /* tokens of a run that are cheaper without the tree */

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

/* Copies the word and tracks the ends in locals: most edges of scattered keys are single keys. */
LANED void put_list(ReachBlock *b, const ReachLayer *l, int32_t list, const Word *from, int lanes)
{
    const int32_t *edge = l->edge + l->first[list], *end = l->edge + l->first[list + 1];
    int32_t        lo = INT32_MAX, hi = -1;
    Word           word[LANES_WIDE], *next = b->next;

    memcpy(word, from, (size_t)lanes * sizeof(Word));
    for (; edge < end; edge++) {
        if (*edge >= 0) {
            word_or(next + (int64_t)*edge * lanes, word, lanes);
            lo = *edge < lo ? *edge : lo;
            hi = *edge > hi ? *edge : hi;
        } else if (l->run[~*edge].shared >= 0) {
            word_or(b->runs + (int64_t)l->run[~*edge].shared * lanes, word, lanes);
        } else {
            put_run(b, &l->run[~*edge], word, lanes);
        }
    }
    b->next_lo = lo < b->next_lo ? lo : b->next_lo;
    b->next_hi = hi >= b->next_hi ? hi + 1 : b->next_hi;
}

/* Moves the words of the tree down to its leaves, and these to `next`. */
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
LANED void send_words(ReachBlock *b, const ReachLayer *l, int lanes)
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

/* ---- fetching ------------------------------------------------------------------------ */

#define FETCH_AT_ONCE 4 /* words between two checks of what is still lacking */

/* Fetches the bits that token j lacks from the rows that have it as a key.  False: some may be in
 * rows that are not stored. */
LANED bool fetch(ReachBlock *b, const ReachLayer *l, int64_t j, int lanes)
{
    const int32_t *into = l->into + l->into_first[j], *end = l->into + l->into_first[j + 1];
    const Word    *reached = b->reached + j * lanes, *set = b->set, *lists = b->lists;
    Word           lacks[LANES_WIDE], got[LANES_WIDE] = { 0 }, left = 0;

    for (int w = 0; w < lanes; w++) {
        lacks[w] = b->alive[w] & ~reached[w];
        left |= lacks[w];
    }
    while (left && into < end) {
        const int32_t *stop = end - into > FETCH_AT_ONCE ? into + FETCH_AT_ONCE : end;

        for (; into < stop; into++)
            word_or(got, *into >= 0 ? set + (int64_t)*into * lanes : lists + ~*into * lanes, lanes);
        left = 0;
        for (int w = 0; w < lanes; w++)
            left |= lacks[w] & ~got[w];
    }
    if (word_any(got, lanes)) {
        memcpy(b->next + j * lanes, got, (size_t)lanes * sizeof(Word));
        b->next_lo = j < b->next_lo ? j : b->next_lo;
        b->next_hi = j + 1;
    }
    return !left || !l->into_cut[j];
}

LANED bool fetch_words(ReachBlock *b, const ReachLayer *l, int lanes)
{
    bool whole = true;

    for (int64_t i = b->set_lo; l->shared_lists && i < b->set_hi; i++)
        if (l->shared[l->list[i]] >= 0)
            word_or(b->lists + (int64_t)l->shared[l->list[i]] * lanes, b->set + i * lanes, lanes);
    for (int64_t j = 0; whole && j < b->tokens; j++)
        whole = fetch(b, l, j, lanes);
    if (l->shared_lists)
        memset(b->lists, 0, (size_t)(l->shared_lists * lanes) * sizeof(Word));
    return whole;
}

/* Tokens that some row may yet reach. */
static int64_t open_tokens(const ReachBlock *b)
{
    int64_t open = 0;

    for (int64_t j = 0; j < b->tokens; j++) {
        Word lacks = 0;

        for (int w = 0; w < b->lanes; w++)
            lacks |= b->alive[w] & ~b->reached[j * b->lanes + w];
        open += lacks != 0;
    }
    return open;
}

/* A token that lacks all rows of the block finds them after about so many words when
 * each word holds the share p of them: log(256) / p. */
#define WORDS_TO_FILL 6.0

/* Whether fetching takes fewer words than sending. */
static bool fetches(const ReachBlock *b, const ReachLayer *l)
{
    int64_t rows = 0;
    double  n = (double)b->tokens, each, share, words;

    if (!l->into || 4 * b->active < b->tokens)
        return false;
    for (int w = 0; w < b->lanes; w++)
        rows += __builtin_popcountll(b->alive[w]);
    each = (double)l->cells / n;
    share = (double)b->bits / (n * (double)rows); /* some row is alive: a token is active */
    words = share * each > WORDS_TO_FILL ? WORDS_TO_FILL / share : each;
    return (double)open_tokens(b) * words < (double)b->active * each;
}

/* ---- on to the next depth ------------------------------------------------------------ */

static void clear_next(ReachBlock *b)
{
    b->next_lo = b->tokens;
    b->next_hi = 0;
}

/* `next` becomes `set`, and the old `set` is zeroed. */
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

/* The residual connection: every token keeps its word. */
static void keep_words(ReachBlock *b)
{
    for (int64_t w = b->set_lo * b->lanes; w < b->set_hi * b->lanes; w++)
        b->next[w] |= b->set[w];
    b->next_lo = b->set_lo < b->next_lo ? b->set_lo : b->next_lo;
    b->next_hi = b->set_hi > b->next_hi ? b->set_hi : b->next_hi;
}

LANED void move_words(ReachBlock *b, const ReachLayer *l, bool fetched, int lanes)
{
    if (!fetched || !fetch_words(b, l, lanes))
        send_words(b, l, lanes);
}

void reach_move(ReachBlock *b, const ReachLayer *l, bool keep, bool fresh)
{
    bool fetched = fresh && fetches(b, l);

    if (b->lanes == LANES_WIDE)
        move_words(b, l, fetched, LANES_WIDE);
    else
        move_words(b, l, fetched, 1);
    if (keep)
        keep_words(b);
    step_on(b);
}
