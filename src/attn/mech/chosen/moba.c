/* moba.c -- mixture of block attention: every query reads its own block and those whose mean key
 * suits it best.
 *
 *     mean[u]    = mean of the keys of block u
 *     gate[i,u]  = q_i . mean[u]            for blocks before the query's own, or all others
 *     A_i        = tokens of the own block and of the topk - 1 with the largest gates
 *     output_i   = softmax over A_i of q_i . k_j / sqrt(d), times V
 *
 * Every head chooses for itself.  The gate only selects: it is no factor of the output.
 */
#include "attn/mech/chosen/chosen.h"
#include "attn/ops/dense.h"
#include "attn/run.h"

typedef struct Params {
    int64_t block, topk;
    double  scale, softcap;
} Params;

static const Param params[] = {
    PARAM_INT(Params, block, 8, 1, INT32_MAX, "tokens of a block"),
    PARAM_INT(Params, topk, 3, 1, PARAM_COUNT_MAX, "blocks that a query reads, its own included"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params),
    PARAM_END
};

static int64_t blocks_of(const Run *r, const Params *p)
{
    return r->m / p->block + (r->m % p->block != 0);
}

/* f64 [h',blocks,d] */
static Tensor block_means(Run *r, const Params *p, Tensor k)
{
    int64_t  blocks = blocks_of(r, p);
    int32_t *first = run_alloc(r, blocks, sizeof(*first));
    int32_t *end = run_alloc(r, blocks, sizeof(*end));
    Tensor   mean = run_tensor3(r, DT_F64, k.shape[0], blocks, k.shape[2]);

    for (int64_t u = 0; u < blocks && !run_failed(r); u++) {
        first[u] = (int32_t)(u * p->block);
        end[u] = (int32_t)min_i64((u + 1) * p->block, r->m);
    }
    op_pool_windows(r, &(PoolWindows){ .x = k, .first = first, .end = end, .kind = WINDOW_MEAN },
                    mean);
    op_charge(r, FLOP_OVERHEAD, (double)tensor_count(&k));
    return mean;
}

/* ---- views --------------------------------------------------------------------- */

typedef struct Gates {
    ChooseKeys choice;
    int64_t    h;
} Gates;

static void read_gates(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                       int64_t step, float *out)
{
    const Gates *s = view->context;
    int64_t      seen = choose_candidates(&s->choice, i), own = choose_fixed(&s->choice, i);

    for (int64_t x = 0; x < count; x++) {
        int64_t u = start + x * step;

        out[x] = u < seen && u != own ? (float)choose_number(&s->choice, s->h, head, i, u) : 0;
    }
}

static void read_gate_rows(const View *view, int64_t head, const int64_t *rows, int64_t row_count,
                           int64_t start, int64_t count, float *out)
{
    const Gates *s = view->context;

    choose_numbers(&s->choice, s->h, head, rows, row_count, start, count, out);
    for (int64_t x = 0; x < row_count; x++, out += count) {
        int64_t own = choose_fixed(&s->choice, rows[x]) - start;

        if (own >= 0 && own < count)
            out[own] = 0;
    }
}

static void read_selected(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                          int64_t step, float *out)
{
    const Gates *s = view->context;
    int64_t      own = choose_fixed(&s->choice, i);

    (void)head;
    for (int64_t x = 0; x < count; x++)
        out[x] = start + x * step == own ? 2 : 1;
}

static const char *const whys[8] = { "chosen blocks", "own block" };
static const char *const kinds[8] = { [4] = "own block", [5] = "chosen blocks" };

static void show_blocks(Run *r, const ChooseKeys *choice, const ChosenKeys *chosen)
{
    int64_t      shape[3] = { r->h, r->n, choice->mean.shape[1] };
    Pattern     *read = chosen_pages(r, choice, chosen);
    Gates       *kept = run_alloc(r, 1, sizeof(*kept));
    View        *gates, *selected;

    if (!kept || !read)
        return;
    *kept = (Gates){ .choice = *choice, .h = r->h };
    gates = view_add(r, "gates", VIEW_SIGNED, DT_F32, 3, shape);
    selected = view_add(r, "selected", VIEW_COMPONENTS, DT_U8, 3, shape);
    if (!gates || !selected)
        return;
    gates->read = read_gates;
    gates->read_rows = read_gate_rows;
    gates->cost = (double)r->d;
    gates->shown = chosen_candidates(r, choice, false);
    selected->read = read_selected;
    selected->support = read;
    selected->components = whys;
    gates->context = selected->context = kept;
    gates->cols = selected->cols = "block";
}

/* ---- the run --------------------------------------------------------------------- */

static void moba_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    AttendInput   in = run_attend_input(r, p->scale);
    ChooseKeys    choice = { .kind = CHOOSE_MEANS, .in = in, .page = p->block, .most = p->topk,
                             .causal = r->causal };
    ChosenKeys    chosen;
    Pattern      *cells;
    AttendResult  result;

    run_stage(r, "means");
    choice.mean = block_means(r, p, in.k);
    if (r->n < r->m)
        choice.near = dense_rounded(r, choice.mean); /* half the bytes for a step of decoding */
    run_stage(r, "choose");
    chosen = op_choose(r, &choice);
    op_charge(r, FLOP_OVERHEAD, 2 * (double)r->d * (chosen.seen - (double)(r->h * r->n)));
    cells = chosen_page_cells(r, &chosen, p->block, true);
    if (cells && run_wants_views(r))
        show_blocks(r, &choice, &chosen);
    run_stage(r, "attend");
    result = op_attend(r, &in, cells);
    r->out = result.out;
    view_pattern(r, cells, false);
    view_reader(r, "components", VIEW_COMPONENTS, DT_U8, NULL, NULL, cells);
    view_meanings(r, cells, kinds);
    view_attention(r, cells, &in, result.lse);
    run_last_row(r, cells);
    run_masses(r, &in, cells);
    replay_offer_attend(r, &in, cells);
}

/* Keys of position i; *bound: at most, as the data decide whether a short last block is read. */
static double keys_read(const Run *r, const Params *p, int64_t i, bool *bound)
{
    int64_t own = i / p->block, last = blocks_of(r, p) - 1;
    int64_t others = min_i64(p->topk - 1, r->causal ? own : last);
    int64_t end = r->causal ? i + 1 : min_i64((own + 1) * p->block, r->n);

    if (!r->causal && others == last)
        return (double)r->n;
    *bound |= !r->causal && others && own != last && r->n % p->block;
    return (double)(end - own * p->block) + (double)others * (double)p->block;
}

static Flops moba_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        keys = 0, gates = 0, all = (double)(blocks_of(r, p) - 1);
    bool          bound = false;
    Flops         f;

    for (int64_t i = 0; i < r->n; i++) {
        keys += keys_read(r, p, i + r->q_offset, &bound);
        gates += r->causal ? (double)((i + r->q_offset) / p->block) : all;
    }
    r->inner_bound |= bound;
    f = run_pattern_flops(r, (double)r->h * keys);
    f.overhead += 2 * (double)(r->d * r->h) * gates + (double)tensor_count(&r->k);
    return f;
}

/* All is held, and a mean for each block; a step reads the means of earlier blocks and the chosen
 * blocks, and adds its key to the mean of its own. */
static DecodeCost moba_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    DecodeCost    cost = decode_dense(r);
    double        blocks = (double)blocks_of(r, p), bytes = (double)r->cache_bytes;
    double        mean = (double)(r->k.shape[0] * r->d);

    cost.state_bytes += bytes * mean * blocks;
    cost.kv_bytes_per_token += bytes * mean / (double)p->block;
    cost.step_bytes = decode_read(r) + bytes * mean * (blocks - 1);
    cost.decode_flops = decode_row(r) + 2 * (double)(r->d * r->h) * (blocks - 1) + mean;
    return cost;
}

static const ViewPromise views[] = {
    VIEW("gates", VIEW_SIGNED, "query times mean key of a block"),
    VIEW("selected", VIEW_COMPONENTS, "blocks that a query reads"),
    VIEWS_OF_PATTERN,
    VIEWS_OF_MASSES,
    VIEW_PROMISE_END
};

static const StageNote notes[] = {
    { "means", "The keys of each block are averaged: one vector stands for the whole block." },
    { "choose", "A query's product with the mean key is the block's gate.  The query reads its own "
                "block and those with the largest gates; every head chooses for itself." },
    { "attend", "One softmax over all tokens of the blocks read.  The gates only select: they are "
                "no factors of the result." },
    { NULL, NULL }
};

const Mechanism mech_moba = {
    .id = "moba",
    .title = "Mixture of block attention (MoBA)",
    .authors = "Lu et al.",
    .year = 2025,
    .arxiv = "2502.13189",
    .source = "paper, section 2.2; MoonshotAI/MoBA moba_naive.py.  Without causal order every "
              "other block is a candidate",
    .formula = "mean[u] = mean of the keys of block u, gate[i,u] = q_i . mean[u]\n"
               "A_i = the own block of i and the topk - 1 others with the largest gates\n"
               "output_i = softmax over A_i of q_i . k_j / sqrt(d), times V",
    .problem = "A fixed pattern decides beforehand where a long text may be read, whatever the "
               "query asks for.",
    .idea = "The text is cut into blocks as if they were experts: each query is sent to its own "
            "block and to the few whose mean key it agrees with most.",
    .price = "A mean hides single keys: a block with one strong key among many others may be left "
             "out.  The whole cache is still held.",
    .teaches = "Triangles on the diagonal, and in each row a few squares that move from row to "
               "row.  With topk=1 only the triangles stay; with all blocks it is full attention.",
    .picture = "components",
    .classes = CLASS_LP,
    .claim_time = "O(n k B d + n^2 d/B)",
    .claim_memory = "O(n)",
    .claim_decode = "yes: reads k B tokens and n/B means",
    .claim_exponent = 2,
    .causal = true,
    .at_end = AT_END_OWN,
    .kind_of_layer = true,
    .positions = POSITION_INPUT,
    .views = views,
    .lesson = "top-k",
    .notes = notes,
    .kept_stage = "means",
    .size = "topk",
    .size_reads = true,
    .params = params,
    .params_size = sizeof(Params),
    .run = moba_run,
    .flops = moba_flops,
    .decode = moba_decode,
};
