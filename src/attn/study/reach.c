/* reach.c -- hop counts of a block of rows; see reach.h.
 *
 * A block has one word of bits for every token: bit b says that row b of the
 * block reaches it.  One layer moves the words along its cells (reach_move.c).
 *
 * With one repeated layer only the words of newly reached tokens move on (a
 * breadth-first search of all rows of the block at once).  With different layers
 * every depth is searched from the start, because its result depends on all
 * layers below.
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

/* ---- the result of a depth -------------------------------------------------------- */

/* Removes from `set` what was reached before, and adds the rest to `reached`. */
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

/* `reached` becomes a copy of `set`; returns whether it changed. */
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

/* Transposes 64 x 64 bits: word c holds column c before, word r row r after. */
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

/* Reports the tokens of `set`, 64 at a time. */
/* Called when row `row` of a block reaches the tokens 64 group + (bits of `tokens`) at a depth:
 * with residual connections at this depth first, else at exactly this depth. */
typedef void (*ReachFound)(void *context, int depth, int64_t row, int64_t group, uint64_t tokens);

static void report(const ReachBlock *b, int depth, ReachFound found, void *context)
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

static bool reach_stopped(const atomic_bool *cancel)
{
    return cancel && atomic_load_explicit(cancel, memory_order_relaxed);
}

/* At depth 0 every row of the block reaches its own token. */
static void reach_begin(ReachBlock *b, int64_t first)
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

/* Tokens that `depth` layers reach, new or not.  One repeated layer continues from the tokens that
 * were new at the depth before, which is enough with residual connections. */
static bool go_deeper(ReachBlock *b, const ReachStack *s, int64_t first, int depth,
                      const atomic_bool *cancel)
{
    int from = s->count > 1 ? depth : 1;

    if (s->count > 1)
        reach_begin(b, first);
    for (int layer = from; layer > 0; layer--) {
        if (reach_stopped(cancel))
            return false;
        reach_move(b, reach_layer_at(s, layer), s->residual && s->count > 1,
                   s->residual && s->count == 1);
    }
    return true;
}

/* Reports all depths from 0 for the rows from `first` on.  With residual connections
 * it ends where nothing more can be reached.  changed (may be NULL; [depth + 1]): set for the
 * depths at which some row reaches other tokens than at the one before.  False:
 * cancelled, or out of memory. */
static bool reach_search(const ReachStack *s, ReachBlock *b, int64_t first, ReachFound found,
                         void *context, bool *changed, const atomic_bool *cancel)
{
    int  quiet = 0; /* consecutive depths without a change; one for each layer: the end */
    bool other;

    if (!block_fits(b, s))
        return false;
    reach_begin(b, first);
    memcpy(b->reached, b->set, (size_t)(b->tokens * b->lanes) * sizeof(Word));
    report(b, 0, found, context);
    for (int depth = 1; depth <= s->depth; depth++) {
        if (!go_deeper(b, s, first, depth, cancel))
            return false;
        other = s->residual ? only_new(b) : replaced(b);
        quiet = other ? 0 : quiet + 1;
        if (changed && other)
            changed[depth] = true;
        report(b, depth, found, context);
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
static uint64_t reach_spread(uint64_t flags)
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
        eight ^= reach_spread(tokens & 255) * (uint64_t)(REACH_NONE ^ depth);
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

/* How much of the matrix is reached at each depth; see reach.h.
 *
 * Blocks of rows are items of work.  Each worker sums over its blocks; sums and extremes do
 * not depend on which worker took a block.
 */

#define DEPTHS (REACH_MOST + 1)

typedef struct Tally {
    ReachBlock *block;
    int32_t    *tokens; /* [rows of a block][DEPTHS] found at each depth */
    ReachDepth  at[DEPTHS];
    bool        changed[DEPTHS]; /* some row reaches other tokens than at the depth before */
} Tally;

typedef struct Job {
    const ReachStack  *stack;
    const atomic_bool *cancel;
    int64_t            n;
    Tally             *tallies; /* one a worker */
    atomic_bool        failed;
} Job;

static void count_tokens(void *context, int depth, int64_t row, int64_t group, uint64_t tokens)
{
    Tally *t = context;

    (void)group;
    t->tokens[row * DEPTHS + depth] += __builtin_popcountll(tokens);
}

static void reach_add_row(Tally *t, const ReachStack *s, const int32_t *tokens)
{
    int64_t sum = 0;

    for (int depth = 0; depth <= s->depth; depth++) {
        ReachDepth *at = &t->at[depth];

        sum = (s->residual ? sum : 0) + tokens[depth];
        at->pairs += sum;
        at->least = sum < at->least ? sum : at->least;
        at->most = sum > at->most ? sum : at->most;
    }
}

static void tally_block(void *context, int64_t item, int worker)
{
    Job    *job = context;
    Tally  *t = &job->tallies[worker];
    int64_t rows = reach_block_rows(job->n), first = item * rows;

    if (atomic_load(&job->failed))
        return;
    memset(t->tokens, 0, (size_t)(rows * DEPTHS) * sizeof(*t->tokens));
    if (!reach_search(job->stack, t->block, first, count_tokens, t, t->changed, job->cancel)) {
        atomic_store(&job->failed, true);
        return;
    }
    for (int64_t r = 0; r < rows && first + r < job->n; r++)
        reach_add_row(t, job->stack, t->tokens + r * DEPTHS);
}

static void merge(Job *job, int workers, ReachSummary *out, bool *changed)
{
    for (int depth = 0; depth <= job->stack->depth; depth++) {
        ReachDepth *at = &out->at[depth];

        *at = (ReachDepth){ .least = INT64_MAX };
        for (int w = 0; w < workers; w++) {
            const ReachDepth *part = &job->tallies[w].at[depth];

            at->pairs += part->pairs;
            at->least = part->least < at->least ? part->least : at->least;
            at->most = part->most > at->most ? part->most : at->most;
            changed[depth] = changed[depth] || job->tallies[w].changed[depth];
        }
    }
}

/* The depth after which a full round of layers changes nothing; -1: none. */
static int fixed_depth(const ReachStack *s, const bool *changed)
{
    int quiet = 0;

    for (int depth = 1; depth <= s->depth; depth++) {
        quiet = changed[depth] ? 0 : quiet + 1;
        if (quiet == s->count)
            return depth - quiet;
    }
    return -1;
}

static void conclude(const ReachStack *s, const bool *changed, ReachSummary *out)
{
    const ReachDepth *at = out->at;
    double            hops = 0;

    out->full = out->fixed = -1;
    for (int depth = s->depth; depth >= 0; depth--)
        if (at[depth].pairs == out->possible)
            out->full = depth;
    out->fixed = fixed_depth(s, changed);
    if (s->residual && out->full >= 0) /* nothing more to reach */
        out->fixed = out->full;
    for (int depth = 1; depth <= s->depth && s->residual; depth++)
        hops += (double)depth * (double)(at[depth].pairs - at[depth - 1].pairs);
    if (s->residual && at[s->depth].pairs > out->tokens)
        out->mean = hops / (double)(at[s->depth].pairs - out->tokens);
}

static bool tallies_new(Job *job, int workers, Error *err)
{
    size_t size = (size_t)(reach_block_rows(job->n) * DEPTHS) * sizeof(int32_t);

    job->tallies = calloc((size_t)workers, sizeof(*job->tallies));
    for (int w = 0; job->tallies && w < workers; w++) {
        Tally *t = &job->tallies[w];

        t->tokens = malloc(size);
        t->block = reach_block_new(job->n, err);
        if (!t->tokens || !t->block)
            return error_set(err, ERR_NOMEM, "the reach of %lld tokens: not enough memory",
                             (long long)job->n);
        for (int depth = 0; depth < DEPTHS; depth++)
            t->at[depth].least = INT64_MAX;
    }
    return job->tallies || error_set(err, ERR_NOMEM, "the reach of %lld tokens: not enough memory",
                                     (long long)job->n);
}

bool reach_summary(const ReachStack *s, bool causal, Threads *threads, const atomic_bool *cancel,
                   ReachSummary *out, Error *err)
{
    int64_t n = reach_layer_tokens(s->layers[0]), rows = reach_block_rows(n);
    int     workers = threads_count(threads);
    bool    changed[DEPTHS] = { false }, ok;
    Job     job = { .stack = s, .cancel = cancel, .n = n };

    *out = (ReachSummary){ .tokens = n,
                           .depth = s->depth,
                           .possible = causal ? n * (n + 1) / 2 : n * n };
    ok = tallies_new(&job, workers, err);
    if (ok)
        threads_run(threads, (n + rows - 1) / rows, tally_block, &job);
    if (ok && atomic_load(&job.failed))
        ok =
            cancel && atomic_load(cancel)
                ? error_set(err, ERR_CANCELLED, "the reach of %lld tokens: cancelled", (long long)n)
                : error_set(err, ERR_NOMEM, "the reach of %lld tokens: not enough memory",
                            (long long)n);
    if (ok) {
        merge(&job, workers, out, changed);
        conclude(s, changed, out);
    }
    for (int w = 0; job.tallies && w < workers; w++) {
        reach_block_free(job.tallies[w].block);
        free(job.tallies[w].tokens);
    }
    free(job.tallies);
    return ok;
}

/* A shortest path between two tokens; see reach.h.
 *
 * For every t the tokens that query i reaches after t layers from the top are marked.
 * Then the path is found from the bottom up, each step with the lowest marked token.
 */

typedef struct Search {
    const ReachStack *stack;
    int64_t           n;
    uint8_t          *marks; /* [depth + 1][n]: token is reached after t layers from the top */
    uint8_t          *done;  /* lists visited in this layer */
} Search;

static uint8_t *marks_at(const Search *s, int t)
{
    return s->marks + t * s->n;
}

static void mark_list(const ReachLayer *l, int32_t list, uint8_t *to)
{
    for (int64_t e = l->first[list]; e < l->first[list + 1]; e++) {
        int32_t         edge = l->edge[e];
        const ReachRun *run = edge < 0 ? &l->run[~edge] : NULL;

        if (!run)
            to[edge] = 1;
        else if (run->step == 1)
            memset(to + run->start, 1, (size_t)run->count);
        else
            for (int64_t c = 0; c < run->count; c++)
                to[run->start + c * run->step] = 1;
    }
}

/* Step t of a path of `hops` layers from the top. */
static void mark_step(Search *s, int hops, int t)
{
    const ReachLayer *l = reach_layer_at(s->stack, hops - t + 1);
    const uint8_t    *from = marks_at(s, t - 1);
    uint8_t          *to = marks_at(s, t);

    memset(s->done, 0, (size_t)l->lists);
    if (s->stack->residual)
        memcpy(to, from, (size_t)s->n);
    else
        memset(to, 0, (size_t)s->n);
    for (int64_t k = 0; k < s->n; k++)
        if (from[k] && !s->done[l->list[k]]) {
            s->done[l->list[k]] = 1;
            mark_list(l, l->list[k], to);
        }
}

static bool has_key(const ReachLayer *l, int64_t k, int64_t key)
{
    for (int64_t e = l->first[l->list[k]]; e < l->first[l->list[k] + 1]; e++) {
        int32_t         edge = l->edge[e];
        const ReachRun *run = edge < 0 ? &l->run[~edge] : NULL;
        int64_t         at = run ? key - run->start : 0;

        if (run ? at >= 0 && at % run->step == 0 && at / run->step < run->count : edge == key)
            return true;
    }
    return false;
}

/* The token reached before step t that leads to `key`. */
static int64_t step_back(const Search *s, int hops, int t, int64_t key)
{
    const ReachLayer *l = reach_layer_at(s->stack, hops - t + 1);
    const uint8_t    *from = marks_at(s, t - 1);

    for (int64_t k = 0; k < s->n; k++)
        if (from[k] && ((s->stack->residual && k == key) || has_key(l, k, key)))
            return k;
    return key;
}

/* Marks the tokens that a path of `hops` layers can reach; one repeated layer needs only its last
 * step. */
static void mark_path(Search *s, int64_t i, int hops)
{
    bool again = s->stack->count > 1;

    if (hops == 0 || again) {
        memset(s->marks, 0, (size_t)s->n);
        s->marks[i] = 1;
    }
    for (int t = again ? 1 : hops; t >= 1 && t <= hops; t++)
        mark_step(s, hops, t);
}

/* The repeated layer reaches nothing new. */
static bool at_rest(const Search *s, int hops)
{
    return s->stack->count == 1 && hops > 0 &&
           memcmp(marks_at(s, hops), marks_at(s, hops - 1), (size_t)s->n) == 0;
}

static int find_path(Search *s, int64_t i, int64_t j, int64_t *path)
{
    for (int hops = 0; hops <= s->stack->depth; hops++) {
        mark_path(s, i, hops);
        if (!marks_at(s, hops)[j] && s->stack->residual && at_rest(s, hops))
            return -1;
        if (!marks_at(s, hops)[j] || (!s->stack->residual && hops < s->stack->depth))
            continue;
        path[hops] = j;
        for (int t = hops; t > 0; t--)
            path[t - 1] = step_back(s, hops, t, path[t]);
        return hops;
    }
    return -1;
}

int reach_path(const ReachStack *stack, int64_t i, int64_t j, int64_t *path)
{
    int64_t n = reach_layer_tokens(stack->layers[0]);
    Search  s = { .stack = stack, .n = n };
    int     hops = -2;

    s.marks = malloc((size_t)(n * (stack->depth + 1)));
    s.done = malloc((size_t)n);
    if (s.marks && s.done)
        hops = find_path(&s, i, j, path);
    free(s.marks);
    free(s.done);
    return hops;
}
