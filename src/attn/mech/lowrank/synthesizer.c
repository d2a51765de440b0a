/* synthesizer.c -- see synthesizer.h. */
#include "attn/mech/lowrank/synthesizer.h"

#include <math.h>

#include "attn/run.h"

#define CELLS 256        /* logits read at once */
#define DRAWING_COST 512 /* of a random number, in multiply-adds */

const char *const first_layer_names[] = { "auto", "true", "false", NULL };

/* ---- the network ------------------------------------------------------------ */

void synthesizer_check(Run *r)
{
    if (!r->x.data && !r->q.data)
        run_fail(r, ERR_DATA, "%s reads the layer input x, or q, and the input holds neither",
                 r->mechanism->id);
}

static int64_t extent(const Tensor *t, int from_end, int64_t otherwise)
{
    return t->data && t->rank >= from_end ? t->shape[t->rank - from_end] : otherwise;
}

void synthesizer_net(const Run *r, SynthesizerNet *net, FirstLayer first, int64_t out)
{
    net->first = first == FIRST_LAYER_TRUE || (first == FIRST_LAYER_AUTO && r->x.data);
    net->u = r->x.data && (net->first || !r->q.data) ? tensor_with_rank(r->x, 3) : r->q;
    net->width = net->hidden = net->u.data ? net->u.shape[2] : 0;
    if (net->first)
        net->hidden = extent(&net->w1, 1, extent(&net->b1, 1, extent(&net->w2, 2, net->width)));
    net->out = out;
}

static Tensor widened(Run *r, Tensor t)
{
    Tensor y = run_tensor3(r, DT_F64, t.shape[0], t.shape[1], t.shape[2]);

    op_entries(r, t, ENTRY_CAST, 0, y);
    return y;
}

/* f64 x w + bias; x f32 or f64 [h',n,in], w f32 [h',in,out], bias f32 [h',out] or absent. */
static Tensor layer(Run *r, Tensor x, Tensor w, Tensor bias)
{
    Tensor y = run_tensor3(r, DT_F64, r->h, x.shape[1], w.shape[2]);

    if (bias.data) {
        bias.rank = 3; /* [h',1,out], which may be cut out of more */
        bias.shape[2] = bias.shape[1];
        bias.stride[2] = bias.stride[1];
        bias.shape[1] = 1;
        op_entries(r, bias, ENTRY_CAST, 0, y);
    }
    op_gemm(r, x, false, w, false, 1, bias.data ? 1 : 0, y, FLOP_OVERHEAD);
    return y;
}

static Tensor rectify(Run *r, Tensor x)
{
    op_entries(r, x, ENTRY_RELU, 0, x);
    return x;
}

Tensor synthesizer_hidden(Run *r, const SynthesizerNet *net)
{
    Init    init = { INIT_GLOROT, (double)(net->width + net->hidden) };
    int64_t shape[3] = { r->h, net->width, net->hidden };
    Tensor  w1, b1;

    if (!net->first)
        return rectify(r, widened(r, net->u));
    w1 = run_param(r, net->w1_name, net->w1, DT_F32, 3, shape, init);
    b1 = run_param_given(r, net->b1_name, net->b1, DT_F32, 2, (int64_t[]){ r->h, net->hidden });
    return rectify(r, layer(r, net->u, w1, b1));
}

void synthesizer_second(Run *r, const SynthesizerNet *net, Tensor *w2, Tensor *b2)
{
    Init init = { INIT_GLOROT, (double)(net->hidden + net->out) };

    *w2 = run_param_cut(r, net->w2_name, net->w2, 3, (int64_t[]){ r->h, net->hidden, net->out }, 4,
                        &init);
    *b2 = run_param_cut(r, net->b2_name, net->b2, 2, (int64_t[]){ r->h, net->out }, 2, NULL);
}

Tensor synthesizer_apply(Run *r, const SynthesizerNet *net)
{
    Tensor hidden = synthesizer_hidden(r, net), w2, b2;

    synthesizer_second(r, net, &w2, &b2);
    return layer(r, hidden, w2, b2);
}

bool synthesizer_net_drawn(const SynthesizerNet *net)
{
    return !net->w2.data || (net->first && !net->w1.data);
}

double synthesizer_net_flops(const Run *r, const SynthesizerNet *net, bool second)
{
    double rows = (double)r->h * (double)r->n, hidden = (double)net->hidden;

    return (net->first ? 2 * rows * (double)net->width * hidden : 0) +
           (second ? 2 * rows * hidden * (double)net->out : 0);
}

/* ---- softmax and views ------------------------------------------------------ */

typedef struct Synthesized {
    LogitAttend in;
    Tensor      lse; /* f64 [h,n] */
    int64_t     heads;
} Synthesized;

static void read_logits(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    const Synthesized *s = view->context;
    bool               weights = view->kind == VIEW_WEIGHTS;
    double             lse = ((const double *)s->lse.data)[head * view->shape[1] + i];
    double             logits[CELLS];

    for (int64_t done = 0; done < count; done += CELLS) {
        int64_t part = count - done < CELLS ? count - done : CELLS;

        logit_run(&s->in, s->heads, head, i, start + done * step, part, step, logits);
        for (int64_t c = 0; c < part; c++)
            out[done + c] = (float)(weights ? exp(logits[c] - lse) : logits[c]);
    }
}

/* View.cost of a logit. */
static double reading_cost(const LogitAttend *in)
{
    switch (in->kind) {
    case LOGITS_PRODUCT: return (double)in->left.shape[2];
    case LOGITS_TILED: return (double)in->right.shape[2];
    case LOGITS_UNIFORM: return DRAWING_COST;
    case LOGITS_GIVEN:
    case LOGITS_FOLDED: break;
    }
    return 0;
}

static void show(Run *r, const LogitAttend *in, Tensor lse, bool drawn)
{
    Synthesized *s = run_wants_views(r) ? run_alloc(r, 1, sizeof(*s)) : NULL;
    Pattern     *cells;
    View        *weights, *logits;

    if (!s)
        return;
    *s = (Synthesized){ .in = *in, .lse = lse, .heads = r->h };
    cells = implicit_cells(r);
    implicit_connectivity(r, cells);
    weights = view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, read_logits, s, cells);
    logits = view_reader(r, "logits", VIEW_SIGNED, DT_F32, read_logits, s, NULL);
    if (!weights || !logits)
        return;
    weights->cost = logits->cost = reading_cost(in);
    if (drawn)
        weights->origin = logits->origin = implicit_origin(r);
}

void synthesizer_attend(Run *r, const LogitAttend *in, bool drawn)
{
    LogitResult result;

    run_stage(r, "logits, softmax, mix");
    result = op_logit_attend(r, in);
    r->out = result.out;
    show(r, in, result.lse, drawn);
}

Flops synthesizer_flops(const Run *r, double cost)
{
    double n = (double)r->n, cells = (double)r->h * n * (r->causal ? (n + 1) / 2 : n);

    return (Flops){ .score = cells * cost, .mix = 2 * cells * (double)r->e,
                    .overhead = FLOPS_ROW_SOFTMAX * cells };
}
