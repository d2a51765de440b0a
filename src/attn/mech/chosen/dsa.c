/* dsa.c -- DeepSeek sparse attention: a small indexer chooses the keys of every query.
 *
 *     I[i,j]   = sum over t of w[i,t] max(0, qI[i,t] . kI[j]) / sqrt(H dI)
 *     A_i      = the topk keys with the largest I[i,:], of equal numbers the first
 *     output_i = softmax over A_i of q_i . k_j / sqrt(d), times V, with the same A_i in all heads
 *
 * qI, kI and w are given, or made from the tokens: q heads side by side times wq, k heads times wk,
 * q heads times ww, before any position.  The relu makes exact zeros, so equal numbers are common.
 */
#include "attn/mech/chosen/chosen.h"
#include "attn/run.h"

typedef struct Params {
    int64_t topk, index_heads, index_dim;
    double  scale, softcap;
    Tensor  index_q, index_k, index_w, index_wq, index_wk, index_ww;
} Params;

static const Param params[] = {
    PARAM_INT(Params, topk, 8, 1, PARAM_COUNT_MAX, "keys of a query"),
    PARAM_INT(Params, index_heads, 4, 1, 1 << 20, "H, heads of the indexer; files decide"),
    PARAM_INT(Params, index_dim, 16, 1, 1 << 20, "dI, their size; files decide"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params),
    PARAM_TENSOR(Params, index_q, "[n,H,dI]", "made", "queries of the indexer"),
    PARAM_TENSOR(Params, index_k, "[m,dI]", "made", "its keys"),
    PARAM_TENSOR(Params, index_w, "[n,H]", "made", "weights of its heads"),
    PARAM_TENSOR(Params, index_wq, "[h d,H dI]", "N(0, 1/rows)", "makes its queries"),
    PARAM_TENSOR(Params, index_wk, "[h' d,dI]", "N(0, 1/rows)", "makes its keys, of h' key heads"),
    PARAM_TENSOR(Params, index_ww, "[h d,H]", "N(0, 1/rows)", "makes the weights of its heads"),
    PARAM_END
};

/* Of the indexer. */
typedef struct Indexer {
    int64_t heads, d;
    bool    made;
    Tensor  q, k, w; /* [1,n,H d], [1,m,d], [1,n,H] */
} Indexer;

static Indexer indexer_sizes(Run *r, const Params *p)
{
    const SizeFrom heads[] = { { "index_q", p->index_q, 3, 1, 0 },
                               { "index_w", p->index_w, 2, 1, 0 },
                               { "index_ww", p->index_ww, 2, 1, 0 }, { .name = NULL } };
    const SizeFrom sizes[] = { { "index_q", p->index_q, 3, 2, 0 },
                               { "index_k", p->index_k, 2, 1, 0 },
                               { "index_wk", p->index_wk, 2, 1, 0 }, { .name = NULL } };

    return (Indexer){ .heads = layer_size(r, "index_heads", p->index_heads, p->index_heads, heads),
                      .d = layer_size(r, "index_dim", p->index_dim, p->index_dim, sizes),
                      .made = !p->index_q.data };
}

static void dsa_check(Run *r, const void *opaque)
{
    const Params *p = opaque;
    int           given = !!p->index_q.data + !!p->index_k.data + !!p->index_w.data;

    if (given && given < 3)
        run_fail(r, ERR_PARAM, "dsa: %s%s%s missing; give index_q, index_k and index_w together, "
                 "or none of them", p->index_q.data ? "" : "index_q ",
                 p->index_k.data ? "" : "index_k ", p->index_w.data ? "" : "index_w ");
}

/* f64 [1,n,h d]: the heads of x side by side.  Tokens come first, so that rows of the result are
 * written in order. */
static Tensor beside(Run *r, Tensor x)
{
    int64_t heads = x.shape[0], count = x.shape[1], width = x.shape[2];
    Tensor  all = run_tensor3(r, DT_F64, 1, count, heads * width), from = x;

    from.shape[0] = count;
    from.shape[1] = heads;
    from.stride[0] = x.stride[1];
    from.stride[1] = x.stride[0];
    op_entries(r, from, ENTRY_CAST, 0,
               tensor_of(DT_F64, 3, (int64_t[]){ count, heads, width }, all.data));
    return all;
}

static Tensor made(Run *r, const char *name, Tensor given, Tensor x, int64_t columns)
{
    int64_t rows = x.shape[2];
    Tensor  w = layer_weight(r, name, given, 2, (int64_t[]){ rows, columns }, layer_by_fan(rows));
    Tensor  wide = run_tensor3(r, DT_F64, 1, rows, columns);
    Tensor  y = run_tensor3(r, DT_F64, 1, x.shape[1], columns);

    op_entries(r, tensor_with_rank(w, 3), ENTRY_CAST, 0, wide);
    op_product64(r, x, wide, NULL, y);
    op_charge(r, FLOP_OVERHEAD, 2 * (double)(x.shape[1] * rows) * (double)columns);
    return y;
}

static void index_make(Run *r, const Params *p, Indexer *x)
{
    Tensor q, k;

    run_stage(r, "index keys");
    k = beside(r, r->k);
    x->k = made(r, "index_wk", p->index_wk, k, x->d);
    run_stage(r, "indexer");
    q = beside(r, r->q);
    x->q = made(r, "index_wq", p->index_wq, q, x->heads * x->d);
    x->w = made(r, "index_ww", p->index_ww, q, x->heads);
}

static void index_take(Run *r, const Params *p, Indexer *x)
{
    int64_t q[] = { r->n, x->heads, x->d }, k[] = { r->m, x->d }, w[] = { r->n, x->heads };

    x->q = layer_given(r, "index_q", p->index_q, 3, q);
    x->q = tensor_of(DT_F32, 3, (int64_t[]){ 1, r->n, x->heads * x->d }, x->q.data);
    x->k = tensor_with_rank(layer_given(r, "index_k", p->index_k, 2, k), 3);
    x->w = tensor_with_rank(layer_given(r, "index_w", p->index_w, 2, w), 3);
}

static double index_cell(const Indexer *x)
{
    return (double)x->heads * (2 * (double)x->d + 2);
}

/* ---- views --------------------------------------------------------------------- */

static void read_index(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                       int64_t step, float *out)
{
    const ChooseKeys *c = view->context;

    (void)plane;
    for (int64_t x = 0; x < count; x++)
        out[x] = (float)choose_number(c, 1, 0, i, start + x * step);
}

static void read_index_rows(const View *view, int64_t plane, const int64_t *rows,
                            int64_t row_count, int64_t start, int64_t count, float *out)
{
    (void)plane;
    choose_numbers(view->context, 1, 0, rows, row_count, start, count, out);
}

static void show_index(Run *r, const ChooseKeys *choice)
{
    int64_t     shape[2] = { r->n, r->m };
    View       *view = view_add(r, "index_scores", VIEW_SIGNED, DT_F32, 2, shape);
    ChooseKeys *kept = view ? run_alloc(r, 1, sizeof(*kept)) : NULL;

    if (!kept)
        return;
    *kept = *choice;
    view->read = read_index;
    view->read_rows = read_index_rows;
    view->context = kept;
    view->cost = (double)choice->heads * (double)choice->k.shape[2];
    view->support = run_allowed_cells(r);
}

static void show_selected(Run *r, const ChosenKeys *chosen, int64_t topk)
{
    int64_t most = min_i64(topk, r->m);
    Tensor  t = run_tensor2(r, DT_I32, r->n, most);

    for (int64_t at = 0; !run_failed(r) && at < r->n * most; at++) {
        int64_t place = chosen->start[at / most] + at % most;

        tensor_i32(&t)[at] = place < chosen->start[at / most + 1] ? chosen->best[place] : -1;
    }
    view_order(r, "selected", t, "query", "rank");
}

/* ---- the run --------------------------------------------------------------------- */

static void dsa_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Indexer       x = indexer_sizes(r, p);
    AttendInput   in = run_attend_input(r, p->scale);
    ChooseKeys    choice = { .kind = CHOOSE_INDEX, .heads = x.heads, .most = p->topk,
                             .causal = r->causal, .ranked = run_wants_views(r) };
    ChosenKeys    chosen;
    Pattern      *cells;
    AttendResult  result;

    if (x.made)
        index_make(r, p, &x);
    run_stage(r, "choose");
    if (!x.made)
        index_take(r, p, &x);
    choice.q = x.q;
    choice.k = x.k;
    choice.w = x.w;
    chosen = op_choose(r, &choice);
    op_charge(r, FLOP_OVERHEAD, index_cell(&x) * chosen.seen);
    show_index(r, &choice);
    if (run_wants_views(r))
        show_selected(r, &chosen, p->topk);
    cells = chosen_cells(r, &chosen);
    run_stage(r, "attend");
    result = op_attend(r, &in, cells);
    r->out = result.out;
    view_pattern(r, cells, false);
    view_meaning(r, cells, NULL, "chosen key");
    view_attention(r, cells, &in, result.lse);
    run_last_row(r, cells);
    run_masses(r, &in, cells);
    replay_offer_attend(r, &in, cells);
}

/* Of q, k and the weights of the heads, for so many queries and keys. */
static double making(const Run *r, const Indexer *x, double queries, double keys)
{
    double dq = (double)(r->h * r->d), dk = (double)(r->k.shape[0] * r->d);

    return x->made ? 2 * queries * dq * (double)(x->heads * (x->d + 1)) +
                         2 * keys * dk * (double)x->d
                   : 0;
}

static Flops dsa_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Indexer       x = indexer_sizes(r, p);
    Flops         f = run_pattern_flops(r, (double)r->h * chosen_count(r, p->topk));

    f.overhead += index_cell(&x) * chosen_count(r, 0);
    f.overhead += making(r, &x, (double)r->n, (double)r->m);
    return f;
}

/* As exact attention, and the indexer's keys, which every step reads whole. */
static DecodeCost dsa_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    Indexer       x = { .heads = p->index_heads, .d = p->index_dim, .made = !p->index_q.data };
    DecodeCost    cost = decode_dense(r);
    double        bytes = (double)r->cache_bytes, keys = (double)r->m;

    if (p->index_q.data)
        x.heads = p->index_q.shape[1];
    else if (p->index_ww.data)
        x.heads = p->index_ww.shape[1];
    if (p->index_q.data)
        x.d = p->index_q.shape[2];
    else if (p->index_wk.data)
        x.d = p->index_wk.shape[1];
    cost.state_bytes += bytes * (double)x.d * keys;
    cost.kv_bytes_per_token += bytes * (double)x.d;
    cost.step_bytes = decode_read(r) + bytes * (double)x.d * keys;
    cost.decode_flops = decode_row(r) + index_cell(&x) * keys + making(r, &x, 1, 1);
    return cost;
}

static const ViewPromise views[] = {
    VIEW("index_scores", VIEW_SIGNED, "what the indexer gives each key"),
    VIEW("selected", VIEW_ORDER, "the chosen keys of a query, the best first; -1, blank: there are "
         "no more"),
    VIEW("connectivity", VIEW_PATTERN, "chosen cells"),
    VIEW("weights", VIEW_WEIGHTS, "attention weights"),
    VIEW("position_bias", VIEW_SIGNED, "what the position adds to the scores (with --position)",
         .maybe = true),
    VIEW("index_wq", VIEW_TENSOR, "makes the indexer's queries, when drawn", .maybe = true),
    VIEW("index_wk", VIEW_TENSOR, "makes its keys, when drawn", .maybe = true),
    VIEW("index_ww", VIEW_TENSOR, "makes the weights of its heads, when drawn", .maybe = true),
    VIEWS_OF_MASSES,
    VIEW_PROMISE_END
};

static const StageNote notes[] = {
    { "index keys", "A small key of every token is made, for the indexer alone." },
    { "indexer", "Small queries and weights of heads are made from the tokens, for the indexer "
                 "alone." },
    { "choose", "The indexer gives every key a number: a few small products, their negative part "
                "cut off, summed with weights.  Each query takes the keys with the largest." },
    { "attend", "All heads attend to the same chosen keys, with their own queries and keys." },
    { NULL, NULL }
};

const Mechanism mech_dsa = {
    .id = "dsa",
    .title = "DeepSeek sparse attention",
    .authors = "DeepSeek-AI",
    .year = 2025,
    .arxiv = "2512.02556",
    .source = "report of DeepSeek-V3.2-Exp, equations 1 and 2; transformers deepseek_v32 Indexer.  "
              "There it runs over latent attention; here over plain keys and values",
    .formula = "I[i,j] = sum over t of w[i,t] relu(qI[i,t] . kI[j]) / sqrt(H dI)\n"
               "A_i = the topk largest of I[i,:]\n"
               "output_i = softmax over A_i of q_i . k_j / sqrt(d), times V",
    .problem = "To know the largest scores all of them must be computed.",
    .idea = "A cheaper scorer with few small heads ranks the keys, and attention reads only the "
            "first of its ranking.",
    .price = "The indexer still meets every key, and what it misjudges is lost.",
    .teaches = "The indexer's map beside the attention it replaces.  The gap between kept_mass and "
               "best_mass is what the cheap scorer loses to the largest scores.",
    .picture = "index_scores",
    .classes = CLASS_LP,
    .claim_time = "O(n^2 H dI + n k d)",
    .claim_memory = "O(n k)",
    .claim_decode = "yes: reads n small keys and k tokens",
    .claim_exponent = 2,
    .causal = true,
    .cross = true,
    .at_end = AT_END_OWN,
    .kind_of_layer = true,
    .positions = POSITION_INPUT,
    .views = views,
    .lesson = "top-k",
    .notes = notes,
    .kept_stage = "index keys",
    .size = "topk",
    .size_reads = true,
    .params = params,
    .params_size = sizeof(Params),
    .check = dsa_check,
    .run = dsa_run,
    .flops = dsa_flops,
    .decode = dsa_decode,
};
