/* block.c -- blocks of tokens: block-local, blockbert. */
#include <string.h>

#include "attn/run.h"

/* Blockwise (chunked) local attention.
 *
 * The sequence is cut in blocks of b tokens; i sees j when
 *
 *     floor(i/b) - back <= floor(j/b) <= floor(i/b) + ahead
 *
 * The last block may be short; nothing is padded.
 */

typedef struct BlockLocalParams {
    int64_t block, back, ahead;
    double  scale, softcap;
} BlockLocalParams;

static const Param block_local_params[] = {
    PARAM_INT(BlockLocalParams, block, 8, 1, PARAM_COUNT_MAX, "tokens per block"),
    PARAM_INT(BlockLocalParams, back, 0, 0, PARAM_COUNT_MAX,
              "whole blocks before its own a token sees"),
    PARAM_INT(BlockLocalParams, ahead, 0, 0, PARAM_COUNT_MAX,
              "whole blocks after its own a token sees"),
    PARAM_FLOAT(BlockLocalParams, scale, 0, 0, 1e30,
              "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(BlockLocalParams), PARAM_END
};

static void block_local_run(Run *r, const void *opaque)
{
    const BlockLocalParams *p = opaque;
    PatternShape            s = { .heads = r->h, .n = r->n, .m = r->n };
    Pattern                *cells = pattern_chunk(r->arena, s, p->block, p->back, p->ahead);

    run_pattern_attention(r, p->scale, pattern_finish(r->arena, s, cells, r->causal));
}

/* Block by block: its rows times the keys of the blocks it sees; causal rows stop
 * at themselves. */
static Flops block_local_flops(Run *r, const void *opaque)
{
    const BlockLocalParams *p = opaque;
    int64_t                 blocks = (r->n - 1) / p->block + 1;
    double                  cells = 0, b = (double)p->block, n = (double)r->n;

    for (int64_t c = 0; c < blocks; c++) {
        double first = (double)c * b, last = first + b < n ? first + b : n;
        double lo = c > p->back ? (double)(c - p->back) * b : 0;
        double hi = (double)(c + 1) * b + (double)p->ahead * b;
        double rows = last - first;

        cells += r->causal ? rows * (first - lo) + rows * (rows + 1) / 2
                           : rows * ((hi < n ? hi : n) - lo);
    }
    return run_pattern_flops(r, (double)r->h * cells);
}

static const ViewPromise block_local_views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_block_local = {
    .id = "block-local",
    .title = "Blockwise local attention",
    .authors = "Liu et al.; Parmar et al.",
    .year = 2018,
    .arxiv = "1801.10198",
    .source = "survey of Tay et al., section 3.2.1; tensor2tensor masked_local_attention_1d",
    .formula = "A = { floor(i/b) - back <= floor(j/b) <= floor(i/b) + ahead }",
    .problem = "Full attention compares every pair, and a sliding window is awkward for "
               "hardware that likes dense blocks.",
    .idea = "The sequence is cut into blocks, and a query sees the keys of its own block and of "
            "the neighbours that are let in.",
    .price = "Two near tokens on both sides of a border are apart unless neighbours are let in.",
    .lesson = "patterns",
    .teaches = "Squares on the diagonal and no bridge between them, until neighbours are let in.",
    .classes = CLASS_FP,
    .claim_time = "O(n b)",
    .claim_memory = "O(n b)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .views = block_local_views,
    .size = "block",
    .params = block_local_params,
    .params_size = sizeof(BlockLocalParams),
    .run = block_local_run,
    .flops = block_local_flops,
    .decode = decode_cells,
};

/* Block-wise attention with a permutation of blocks for each head.
 *
 * n tokens make n_b blocks, block(i) = floor(i n_b / n).  Head t has a permutation
 * pi_t, and
 *
 *     i sees j   iff   block(j) = pi_t(block(i))
 *
 * so that a head with the identity keeps squares on the diagonal and the others put
 * them elsewhere; together they cover the matrix.  Default: pi_t(c) = (c - t) mod n_b.
 */

typedef struct BlockbertParams {
    int64_t blocks;
    Tensor  permutation;
    double  scale, softcap;
} BlockbertParams;

static const Param blockbert_params[] = {
    PARAM_INT(BlockbertParams, blocks, 3, 1, PARAM_COUNT_MAX, "number of blocks (not their size)"),
    PARAM_TENSOR(BlockbertParams, permutation, "[h,n_b] or [n_b]", "shift by the head's number",
                 "block seen by each block; each row a permutation of 0..n_b-1"),
    PARAM_FLOAT(BlockbertParams, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(BlockbertParams), PARAM_END
};

/* The block of keys that each block of queries sees, for each head. */
typedef struct Blocks {
    int64_t h, n, nb;
    Tensor  table; /* i32 [h',nb]; data NULL: shifts */
} Blocks;

static Blocks blocks_of(Run *r, const BlockbertParams *p);
static void block_check_row(Run *r, const int32_t *row, int64_t nb, int64_t head);
static Pattern *block_cells_of(Run *r, const Blocks *b, PatternShape s);
static void show_permutation(Run *r, Blocks b);
static void read_permutation(const View *view, int64_t head, int64_t c, int64_t start,
                             int64_t count, int64_t step, float *out);
static int64_t target_of(const Blocks *b, int64_t head, int64_t c);
static int64_t begin_of(const Blocks *b, int64_t c);

static void blockbert_run(Run *r, const void *opaque)
{
    const BlockbertParams *p = opaque;
    PatternShape           s = { .heads = r->h, .n = r->n, .m = r->n };
    Blocks                 b = blocks_of(r, p);

    if (run_failed(r))
        return;
    run_pattern_attention(r, p->scale,
                          pattern_finish(r->arena, s, block_cells_of(r, &b, s), r->causal));
    show_permutation(r, b);
}

static Blocks blocks_of(Run *r, const BlockbertParams *p)
{
    Blocks  b = { .h = r->h, .n = r->m, .nb = p->blocks };
    int64_t shape[2] = { r->h, p->blocks };

    if (!p->permutation.data)
        return b;
    b.table = run_param_given(r, "permutation", p->permutation, DT_I32, 2, shape);
    for (int64_t head = 0; !run_failed(r) && head < b.table.shape[0]; head++)
        block_check_row(r, tensor_i32(&b.table) + head * b.nb, b.nb, head);
    return b;
}

static void block_check_row(Run *r, const int32_t *row, int64_t nb, int64_t head)
{
    uint8_t *seen = run_alloc(r, nb, 1);

    if (run_failed(r))
        return;
    memset(seen, 0, (size_t)nb);
    for (int64_t c = 0; c < nb; c++) {
        if (row[c] < 0 || row[c] >= nb || seen[row[c]]) {
            run_fail(r, ERR_PARAM,
                     "blockbert: permutation, row %lld: entry %lld is %d, so the row is no "
                     "permutation of 0..%lld",
                     (long long)head, (long long)c, row[c], (long long)nb - 1);
            return;
        }
        seen[row[c]] = 1;
    }
}

static Pattern *block_cells_of(Run *r, const Blocks *b, PatternShape s)
{
    int64_t   kinds = b->nb < r->h ? b->nb : r->h; /* later heads repeat */
    Pattern **shifts;

    if (b->table.data)
        return pattern_permuted(r->arena, s, b->nb, &b->table);
    shifts = run_alloc(r, kinds, sizeof(*shifts));
    for (int64_t t = 0; t < kinds && !run_failed(r); t++)
        shifts[t] = pattern_shift(r->arena, s, b->nb, -t);
    return run_failed(r) ? NULL : pattern_by_head(r->arena, s, shifts, kinds);
}

static void show_permutation(Run *r, Blocks b)
{
    int64_t shape[3] = { r->h, b.nb, b.nb };
    View   *view = view_add(r, "permutation", VIEW_PERMUTATION, DT_F32, 3, shape);
    Blocks *kept = view ? run_alloc(r, 1, sizeof(*kept)) : NULL;

    if (!kept)
        return;
    *kept = b;
    view->read = read_permutation;
    view->context = kept;
    view->rows = "block";
    view->cols = "source block";
}

static void read_permutation(const View *view, int64_t head, int64_t c, int64_t start,
                             int64_t count, int64_t step, float *out)
{
    int64_t target = target_of(view->context, head, c);

    for (int64_t i = 0; i < count; i++)
        out[i] = start + i * step == target;
}

static int64_t target_of(const Blocks *b, int64_t head, int64_t c)
{
    if (b->table.data)
        return ((const int32_t *)tensor_head(&b->table, head, b->h))[c];
    c = (c - head) % b->nb;
    return c < 0 ? c + b->nb : c;
}

/* sum over blocks c of size(c) size(pi(c)), by rows; causal rows stop at i. */
static Flops blockbert_flops(Run *r, const void *opaque)
{
    Blocks b = blocks_of(r, opaque);
    double cells = 0;

    for (int64_t x = 0; x < r->h * r->n && !run_failed(r); x++) {
        int64_t i = x % r->n, c = (int64_t)((__int128)i * b.nb / b.n);
        int64_t target = target_of(&b, x / r->n, c);
        int64_t first = begin_of(&b, target), end = begin_of(&b, target + 1);

        end = r->causal && end > i + 1 ? i + 1 : end;
        cells += end > first ? (double)(end - first) : 0;
    }
    return run_pattern_flops(r, cells);
}

/* First token of a block; of n_b: n. */
static int64_t begin_of(const Blocks *b, int64_t c)
{
    return (int64_t)(((__int128)c * b->n + b->nb - 1) / b->nb);
}

static const ViewPromise blockbert_views[] = {
    VIEWS_OF_PATTERN,
    { .name = "permutation", .kind = VIEW_PERMUTATION, .help = "1 where a block (row) looks" },
    VIEW_PROMISE_END
};

const Mechanism mech_blockbert = {
    .id = "blockbert",
    .title = "BlockBERT",
    .authors = "Qiu et al.",
    .year = 2019,
    .arxiv = "1911.02972",
    .source = "survey of Fournier et al., equation 14 and figure 14, counted from 0",
    .formula = "block(i) = floor(i n_b / n)\n"
               "A_t = { block(j) = pi_t(block(i)) } for head t, pi_t a permutation of the blocks",
    .problem = "The matrix of a long text does not fit into memory when a BERT model is trained.",
    .idea = "Each head sees one block of keys for each block of queries, chosen by a "
            "permutation of the blocks.",
    .price = "No single head sees the whole text, and pairs of tokens meet only in the heads "
             "whose permutation joins them.",
    .lesson = "patterns",
    .teaches = "A head keeps the squares on the diagonal or moves them all off it.  With as many "
               "heads as blocks every pair of tokens meets in exactly one head.",
    .classes = CLASS_FP,
    .claim_time = "O(n^2 / n_b)",
    .claim_memory = "O(n^2 / n_b)",
    .claim_decode = "yes, cut to the past (ours)",
    .claim_exponent = 2,
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .views = blockbert_views,
    .size = "blocks",
    .size_falls = true,
    .params = blockbert_params,
    .params_size = sizeof(BlockbertParams),
    .run = blockbert_run,
    .flops = blockbert_flops,
    .decode = decode_cells,
};
