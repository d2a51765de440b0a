/* chunked_ffn.c -- the feed-forward layer, some tokens at a time.
 *
 *     y_i = act(x_i W1 + b1) W2 + b2          for every token on its own
 *
 * No token needs another, so size = ceil(n / chunks) tokens may go through at
 * once and hand their hidden layer's memory on to the next.  With c f numbers
 * of hidden layer a token (c = 1 for relu, in place; 2 for gelu, before and
 * after) and `element_bytes` a number:
 *
 *     peak = element_bytes (n dm + n out + c size f)
 *
 * (Kitaev, Kaiser, Levskaya 2020, section 3.)
 */
#include "attn/run.h"

#include <math.h>

#define FLOPS_GELU 10 /* erf, product, sum: as a token mixer counts it */

enum { ACT_RELU, ACT_GELU };
static const char *const activations[] = { "relu", "gelu", NULL };

typedef struct Params {
    int64_t chunks, d_ff, element_bytes;
    int     activation;
    Tensor  w1, b1, w2, b2;
} Params;

static const Param params[] = {
    PARAM_INT(Params, chunks, 1, 1, INT32_MAX,
              "pieces asked for; more than tokens: one token each"),
    PARAM_ENUM(Params, activation, ACT_RELU, activations,
               "between the two matrices (gelu: by erf)"),
    PARAM_INT(Params, element_bytes, 4, 1, 64, "bytes of a number, for the accounts"),
    PARAM_INT(Params, d_ff, 0, 0, INT32_MAX, "hidden units f when w1 is not given; 0: 4 dm"),
    PARAM_TENSOR(Params, w1, "[dm,f]", "normal, 1/sqrt(dm)", "first matrix"),
    PARAM_TENSOR(Params, b1, "[f]", "zeros", "first bias"),
    PARAM_TENSOR(Params, w2, "[f,out]", "normal, 1/sqrt(f)", "second matrix"),
    PARAM_TENSOR(Params, b2, "[out]", "zeros", "second bias"),
    PARAM_END
};

typedef struct Layer {
    const Params *p;
    int64_t n, dm, f, out;
    int64_t size, chunks; /* tokens of a chunk, chunks there are */
    Tensor  w1, b1, w2, b2;
} Layer;

static Layer chunked_layer_of(Run *r, const Params *p);
static int64_t size_for(int64_t n, int64_t chunks);
static int64_t ceil_of(int64_t a, int64_t b);
static double peak_of(const Layer *l, int64_t size);
static int64_t chunked_copies(const Layer *l);
static void chunked_take_weights(Run *r, Layer *l);
static void chunks_run(Run *r, const Layer *l);
static void chunk_run(Run *r, const Layer *l, int64_t first, Tensor hidden, Tensor active);
static void chunked_add_bias(Run *r, Tensor y, Tensor bias);
static void chunked_activate(Run *r, const Layer *l, Tensor hidden, Tensor active);
static double unit_flops(const Layer *l);
static double bias_flops(const Layer *l);
static void chunked_show(Run *r, const Layer *l);
static void show_chunks(Run *r, const Layer *l);
static void show_tradeoff(Run *r, const Layer *l);

static void chunked_ffn_run(Run *r, const void *opaque)
{
    Layer l = chunked_layer_of(r, opaque);

    if (!(peak_of(&l, l.n) < PARAM_COUNT_MAX))
        run_fail(r, ERR_PARAM, "chunked-ffn: %lld tokens of %lld hidden units take more bytes than "
                 "can be counted; choose a smaller d_ff", (long long)l.n, (long long)l.f);
    run_heads(r, 1, l.dm, l.out);
    chunked_take_weights(r, &l);
    chunks_run(r, &l);
    chunked_show(r, &l);
}

static Layer chunked_layer_of(Run *r, const Params *p)
{
    Layer l = { .p = p, .n = r->n, .dm = r->dm };

    l.f = layer_size(r, "d_ff", p->d_ff, 4 * r->dm,
                     (const SizeFrom[]){ { "w1", p->w1, 2, 1, 1 }, { "b1", p->b1, 1, 0, 1 },
                                         { "w2", p->w2, 2, 0, 1 }, { .name = NULL } });
    l.f = l.f > 0 ? l.f : 4 * r->dm;
    l.out = layer_size(r, "out", 0, r->dm,
                       (const SizeFrom[]){ { "w2", p->w2, 2, 1, 1 }, { "b2", p->b2, 1, 0, 1 },
                                           { .name = NULL } });
    l.size = size_for(l.n, p->chunks);
    l.chunks = ceil_of(l.n, l.size);
    return l;
}

static int64_t size_for(int64_t n, int64_t chunks)
{
    return ceil_of(n, chunks < n ? chunks : n);
}

static int64_t ceil_of(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static double peak_of(const Layer *l, int64_t size)
{
    return (double)l->p->element_bytes *
           ((double)l->n * (double)(l->dm + l->out) +
            (double)chunked_copies(l) * (double)size * (double)l->f);
}

/* Numbers of hidden layer kept for a unit. */
static int64_t chunked_copies(const Layer *l)
{
    return l->p->activation == ACT_GELU ? 2 : 1;
}

static void chunked_take_weights(Run *r, Layer *l)
{
    run_stage(r, "weights");
    l->w1 = layer_weight(r, "w1", l->p->w1, 2, (int64_t[]){ l->dm, l->f },
                         (Init){ INIT_NORMAL, 1 / sqrt((double)l->dm) });
    l->b1 = layer_given(r, "b1", l->p->b1, 1, (int64_t[]){ l->f });
    l->w2 = layer_weight(r, "w2", l->p->w2, 2, (int64_t[]){ l->f, l->out },
                         (Init){ INIT_NORMAL, 1 / sqrt((double)l->f) });
    l->b2 = layer_given(r, "b2", l->p->b2, 1, (int64_t[]){ l->out });
}

/* ---- a chunk ------------------------------------------------------------------ */

static void chunks_run(Run *r, const Layer *l)
{
    Tensor hidden, active;

    r->out = run_tensor3(r, DT_F32, 1, l->n, l->out);
    hidden = run_tensor3(r, DT_F32, 1, l->size, l->f);
    active = chunked_copies(l) > 1 ? run_tensor3(r, DT_F32, 1, l->size, l->f) : hidden;
    for (int64_t c = 0; c < l->chunks && !run_failed(r); c++) {
        int64_t first = c * l->size, left = l->n - first;

        hidden.shape[1] = active.shape[1] = left < l->size ? left : l->size;
        run_iteration(r, "chunk", c);
        chunk_run(r, l, first, hidden, active);
    }
}

/* Rows [first, first + hidden's rows) of the output. */
static void chunk_run(Run *r, const Layer *l, int64_t first, Tensor hidden, Tensor active)
{
    int64_t rows = hidden.shape[1];
    Tensor  x = tensor_rows(tensor_with_rank(r->x, 3), first, rows);
    Tensor  y = tensor_rows(r->out, first, rows);

    op_gemm(r, x, false, tensor_with_rank(l->w1, 3), false, 1, 0, hidden, FLOP_OVERHEAD);
    chunked_add_bias(r, hidden, l->b1);
    chunked_activate(r, l, hidden, active);
    op_gemm(r, active, false, tensor_with_rank(l->w2, 3), false, 1, 0, y, FLOP_OVERHEAD);
    chunked_add_bias(r, y, l->b2);
    op_charge(r, FLOP_OVERHEAD, (double)rows * ((double)l->f * unit_flops(l) + bias_flops(l)));
}

static void chunked_add_bias(Run *r, Tensor y, Tensor bias)
{
    if (bias.data)
        op_entries_of(r, y, bias, ENTRY_SUM, 1, y);
}

static void chunked_activate(Run *r, const Layer *l, Tensor hidden, Tensor active)
{
    op_entries(r, hidden, l->p->activation == ACT_GELU ? ENTRY_GELU_ERF : ENTRY_RELU, 0, active);
}

static double unit_flops(const Layer *l)
{
    return (l->p->b1.data ? 1 : 0) + (l->p->activation == ACT_GELU ? FLOPS_GELU : 1);
}

static double bias_flops(const Layer *l)
{
    return l->p->b2.data ? (double)l->out : 0;
}

/* ---- views -------------------------------------------------------------------- */

static void chunked_show(Run *r, const Layer *l)
{
    if (!run_wants_views(r))
        return;
    run_stage(r, "accounts");
    show_chunks(r, l);
    show_tradeoff(r, l);
    run_figure_int(r, "peak_bytes", (int64_t)peak_of(l, l->size));
    run_figure_int(r, "unchunked_bytes", (int64_t)peak_of(l, l->n));
    run_figure_int(r, "chunk_size", l->size);
    run_figure_int(r, "chunks", l->chunks);
    run_figure_int(r, "hidden_bytes", (int64_t)(peak_of(l, l->size) - peak_of(l, 0)));
}

static void show_chunks(Run *r, const Layer *l)
{
    Tensor chunk = run_tensor1(r, DT_I32, l->n);

    for (int64_t i = 0; i < l->n && !run_failed(r); i++)
        tensor_i32(&chunk)[i] = (int32_t)(i / l->size);
    view_tensor(r, "chunk", VIEW_BUCKETS, chunk, "chunk of", "token");
}

/* What 1, 2, 4, ... and n chunks would take. */
static void show_tradeoff(Run *r, const Layer *l)
{
    int64_t rows = 1;
    Tensor  table, tried, peaks;

    for (int64_t asked = 1; asked < l->n; asked *= 2)
        rows++;
    table = run_tensor2(r, DT_I64, rows, 3);
    tried = run_tensor1(r, DT_I64, rows);
    peaks = run_tensor1(r, DT_I64, rows);
    for (int64_t row = 0, asked = 1; row < rows && !run_failed(r); row++, asked *= 2) {
        int64_t *to = (int64_t *)table.data + 3 * row, size;

        to[0] = asked < l->n ? asked : l->n;
        size = size_for(l->n, to[0]);
        to[1] = ceil_of(l->n, size);
        to[2] = (int64_t)peak_of(l, size);
        ((int64_t *)tried.data)[row] = to[1];
        ((int64_t *)peaks.data)[row] = to[2];
    }
    view_tensor(r, "tradeoff", VIEW_COUNT, table, "choice", "asked, chunks, peak bytes");
    view_tensor(r, "tried", VIEW_COUNT, tried, "chunks", "choice");
    view_tensor(r, "peaks", VIEW_COUNT, peaks, "peak bytes", "chunks");
}

static Flops chunked_ffn_flops(Run *r, const void *opaque)
{
    Layer  l = chunked_layer_of(r, opaque);
    double n = (double)l.n, f = (double)l.f;

    return (Flops){ .overhead = n * (2 * f * (double)(l.dm + l.out) + f * unit_flops(&l) +
                                     bias_flops(&l)) };
}

static const StageNote notes[] = {
    { "weights", "The two matrices are taken from files or drawn; they are the same for every "
                 "token." },
    { "chunk", "These tokens alone go through both matrices; the memory of their hidden layer is "
               "then used again for the next chunk." },
    { "accounts", "What other numbers of chunks would take, counted from the shapes: the hidden "
                  "layer shrinks as 1/chunks, input and output stay." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("chunk", VIEW_BUCKETS, "the chunk each token goes through in", .quantity = "chunk"),
    VIEW("tradeoff", VIEW_COUNT, "chunks asked for, chunks there are, peak bytes"),
    VIEW("tried", VIEW_COUNT, "numbers of chunks of peaks"),
    VIEW("peaks", VIEW_COUNT, "peak bytes of each"),
    VIEW("w1", VIEW_TENSOR, "first matrix, when drawn", .maybe = true),
    VIEW("w2", VIEW_TENSOR, "second matrix, when drawn", .maybe = true),
    VIEW_PROMISE_END
};

const Mechanism mech_chunked_ffn = {
    .id = "chunked-ffn",
    .title = "Chunked feed-forward",
    .authors = "Kitaev, Kaiser, Levskaya",
    .year = 2020,
    .arxiv = "2001.04451",
    .source = "paper, section 3",
    .formula = "y_i = act(x_i W1 + b1) W2 + b2, ceil(n/chunks) tokens at a time\n"
               "peak = bytes (n dm + n out + c size f), c = 1 (relu) or 2 (gelu)",
    .problem = "Once attention stores no n x n matrix, the inner tensor of the feed-forward layer "
               "is the largest.",
    .idea = "Tokens are put through in chunks, because they do not need each other there.",
    .price = "Small chunks use the hardware badly, and attention itself gains nothing.",
    .teaches = "The largest tensor of a layer need not exist whole: tokens do not need each other "
               "here, so its memory falls as 1/chunks, down to what input and output take, for "
               "the same FLOPs and the same numbers.",
    .picture = "tradeoff",
    .example = "chunks=4",
    .classes = CLASS_LAB,
    .claim_time = "O(n dm f)",
    .claim_memory = "O(n dm + n f / chunks)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .needs_x = true,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .run = chunked_ffn_run,
    .flops = chunked_ffn_flops,
    .decode = decode_tokenless,
};
