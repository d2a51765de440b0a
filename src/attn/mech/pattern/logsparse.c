/* logsparse.c -- LogSparse Transformer: distances that double.
 *
 * i sees j iff |i - j| is in D:
 *
 *     D0 = {0 .. k-1} + {k-1 + 2^t : t = 0, 1, 2, ...}          k = local
 *     D  = D0,                                                  restart = 0
 *     D  = {r L + x : r >= 0, x in D0, x <= L},                 restart_mode = repeat
 *     D  = D0 inside each subsequence of L tokens,              restart_mode = blocks
 *
 * and every position sees the first f.  After log2(n) layers every pair is
 * connected.
 */
#include "attn/run.h"

#include <string.h>

enum { RESTART_REPEAT, RESTART_BLOCKS };

static const char *const restart_modes[] = { "repeat", "blocks", NULL };

typedef struct Params {
    int64_t local, restart, first;
    int     restart_mode;
    double  scale, softcap;
} Params;

static const Param params[] = {
    PARAM_INT(Params, local, 1, 1, PARAM_COUNT_MAX, "k, dense cells: 0 to k-1 away"),
    PARAM_INT(Params, restart, 0, 0, PARAM_COUNT_MAX,
              "L, length after which the distances begin again; 0: never"),
    PARAM_ENUM(Params, restart_mode, RESTART_REPEAT, restart_modes,
               "repeat: the comb goes on beyond L; blocks: nothing beyond the own subsequence"),
    PARAM_INT(Params, first, 0, 0, PARAM_COUNT_MAX, "f, leading positions that everyone sees"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

static Pattern *logsparse_cells_of(Run *r, PatternShape s, const Params *p);
static bool in_blocks(const Params *p);
static Pattern *logsparse_inside(Run *r, PatternShape s, int64_t block, Pattern *x);
static Pattern *leading(Run *r, PatternShape s, int64_t count);
static int64_t *distances_up_to(Run *r, const Params *p);
static bool is_distance(const Params *p, int64_t x);

static void logsparse_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    PatternShape  s = { .heads = r->h, .n = r->n, .m = r->n };

    run_pattern_attention(r, p->scale,
                          pattern_finish(r->arena, s, logsparse_cells_of(r, s, p), r->causal));
}

static Pattern *logsparse_cells_of(Run *r, PatternShape s, const Params *p)
{
    int64_t  reach = (p->local < r->n ? p->local : r->n) - 1;
    Pattern *x = pattern_log(r->arena, s, p->local, in_blocks(p) ? 0 : p->restart);

    x = pattern_union(r->arena, x,
                      pattern_band(r->arena, s, -reach, reach, 1, COMPONENT_WINDOW));
    if (in_blocks(p))
        x = logsparse_inside(r, s, p->restart, x);
    return p->first ? pattern_union(r->arena, x, leading(r, s, p->first)) : x;
}

static bool in_blocks(const Params *p)
{
    return p->restart > 0 && p->restart_mode == RESTART_BLOCKS;
}

/* Only the cells of x inside their block; the components of x stay as they are. */
static Pattern *logsparse_inside(Run *r, PatternShape s, int64_t block, Pattern *x)
{
    Pattern *outside = pattern_complement(r->arena, pattern_chunk(r->arena, s, block, 0, 0));

    return pattern_difference(r->arena, x, outside);
}

static Pattern *leading(Run *r, PatternShape s, int64_t count)
{
    uint8_t *flags = run_alloc(r, r->n, 1);

    if (run_failed(r))
        return NULL;
    memset(flags, 0, (size_t)r->n);
    memset(flags, 1, (size_t)(count < r->n ? count : r->n));
    return pattern_cols(r->arena, s, flags);
}

/* n + 2 sum over D of (n - x), causal once; a leading key is seen by all. */
static Flops logsparse_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    int64_t      *upto = distances_up_to(r, p), n = r->n;
    double        cells = 0;

    for (int64_t j = 0; j < n && !run_failed(r); j++) {
        int64_t from = in_blocks(p) ? j / p->restart * p->restart : 0;
        int64_t to = in_blocks(p) && from + p->restart < n ? from + p->restart : n;

        if (j < p->first)
            cells += (double)(r->causal ? n - j : n);
        else
            cells += (double)(1 + upto[to - 1 - j] + (r->causal ? 0 : upto[j - from]));
    }
    return run_pattern_flops(r, (double)r->h * cells);
}

/* How many positive distances up to x there are, for every x < n. */
static int64_t *distances_up_to(Run *r, const Params *p)
{
    int64_t *upto = run_alloc(r, r->n, sizeof(*upto));

    if (run_failed(r))
        return NULL;
    upto[0] = 0;
    for (int64_t x = 1; x < r->n; x++)
        upto[x] = upto[x - 1] + is_distance(p, x);
    return upto;
}

static bool is_distance(const Params *p, int64_t x)
{
    int64_t power;

    if (p->restart > 0 && p->restart_mode == RESTART_REPEAT)
        x %= p->restart; /* x = L of one turn is x = 0 of the next */
    power = x - p->local + 1;
    return x < p->local || (power & (power - 1)) == 0;
}

/* The largest distance inside a block. */
static int64_t farthest_in_block(const Params *p)
{
    int64_t far = min_i64(p->local, p->restart) - 1;

    for (int64_t power = 1; p->local - 1 + power < p->restart; power *= 2)
        far = p->local - 1 + power;
    return far;
}

/* The leading positions stay; only blocks end the other distances. */
static DecodeCost logsparse_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;

    return decode_span(r, in_blocks(p) ? (double)farthest_in_block(p) + 1 : 0, (double)p->first);
}

static const ViewPromise views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_logsparse = {
    .id = "logsparse",
    .title = "LogSparse Transformer",
    .authors = "Li et al.",
    .year = 2019,
    .arxiv = "1907.00235",
    .source = "paper, section 4.2; survey of Fournier et al., figure 13",
    .formula = "A = { |i - j| in {0 .. k-1, k-1 + 1, k-1 + 2, k-1 + 4, ...} }",
    .problem = "A forecast must look far back, but full attention is too expensive for long "
               "series.",
    .idea = "A query sees the distances 1, 2, 4, 8 and so on, so its keys grow with log n.",
    .price = "Most pairs meet only over several layers.",
    .lesson = "patterns",
    .teaches = "Diagonals at distances that double: few cells per row, and log2(n) layers to "
               "connect any pair.  A restart repeats the comb.",
    .classes = CLASS_FP,
    .claim_time = "O(n log n)",
    .claim_memory = "O(n log n)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .views = views,
    .size = "local",
    .params = params,
    .params_size = sizeof(Params),
    .run = logsparse_run,
    .flops = logsparse_flops,
    .decode = logsparse_decode,
};
