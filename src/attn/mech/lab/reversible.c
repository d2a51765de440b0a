/* reversible.c -- layers that can be undone, so that nothing has to be kept.
 *
 *     forward:  y1 = R(x1 + att(x2)),  y2 = R(x2 + ffn(y1))
 *     inverse:  x2 = R(y2 - ffn(y1)),  x1 = R(y1 - att(x2)),  from the last layer up
 *
 * Both streams are rounded (R) at the start and after every addition and subtraction, and what
 * was rounded away forward does not come back: the error of the inverse grows with depth, and with
 * coarser formats.  In exchange the activations of one branch are all that is ever held.
 *
 * (Gomez et al. section 3; Kitaev et al. section 3; attn/mech/lab/stack.h is the stack.)
 */
#include "attn/mech/lab/stack.h"
#include "attn/run.h"

#include <math.h>
#include <string.h>

enum { SPLIT_DUPLICATE, SPLIT_CHANNELS };
static const char *const splits[] = { "duplicate", "channels", NULL };

typedef struct Params {
    StackParams stack;
    int         split, precision;
} Params;

static const Param params[] = {
    STACK_PARAMS,
    PARAM_ENUM(Params, split, SPLIT_DUPLICATE, splits,
               "both streams start as x, or as halves of its channels"),
    PARAM_ENUM(Params, precision, PRECISION_FLOAT32, precision_names,
               "format of both streams: the input is rounded to it, and every sum"),
    PARAM_END
};

typedef struct Work {
    const Params    *p;
    Stack            stack;
    Tensor           one, two, branch; /* f64 [1,n,w] the streams, and what is added */
    Tensor           history;          /* f64 [L+1,2,n,w]; data NULL: not kept */
    Tensor           error, relative;  /* f64 [L+1,2] */
    Tensor           measured;         /* i64 [4L] */
    int64_t          base;             /* bytes in the arena before the streams */
    double           max_error;
} Work;

/* A layer is two steps: attention, feed-forward. */
#define BYTES_OVER_STEPS(name)                                                                 \
    { .x = "layers passed, forward and back", .y = "memory (bytes)", .mark = CURVE_STEPS,      \
      .spacing = 0.5, .series = name }
#define ERROR_OVER_DEPTH(what)                                                                 \
    { .x = "layer boundary", .y = what, .log_y = true, .series = "first stream|second stream" }

static int64_t reversible_width_of(const Run *r, const Params *p);
static void reversible_prepare(Run *r, Work *w);
static Tensor stream_input(Run *r, const Work *w, int64_t first);
static void forward(Run *r, Work *w);
static void reversible_remember(Run *r, Work *w, int64_t boundary);
static void reversible_step(Run *r, const Work *w, Tensor to, double sign);
static void note_memory(Run *r, Work *w, int64_t at);
static void reversible_combine(Run *r, const Work *w);
static void show_stream(Run *r, const Work *w, const char *name, Tensor stream);
static Tensor reversible_single(Run *r, int rank, const int64_t *shape, const double *from);
static void inverse(Run *r, Work *w);
static void reversible_compare(Run *r, Work *w, int64_t boundary);
static void reversible_show(Run *r, Work *w);
static void reversible_show_memory(Run *r, const StackBytes *b, int64_t layers);
static int64_t reversible_largest(Tensor t);
static void show_plain(Run *r, Work *w);
static Tensor run_plain(Run *r, Work *w, Tensor output);

static void reversible_run(Run *r, const void *params_)
{
    const Params *p = params_;
    Work          w = { .p = p };

    run_stage(r, "weights");
    w.stack = stack_open(r, &p->stack, reversible_width_of(r, p));
    if (run_failed(r))
        return;
    reversible_prepare(r, &w);
    forward(r, &w);
    run_stage(r, "output");
    reversible_combine(r, &w);
    show_stream(r, &w, "y1", w.one);
    show_stream(r, &w, "y2", w.two);
    inverse(r, &w);
    show_stream(r, &w, "x1", w.one);
    show_stream(r, &w, "x2", w.two);
    run_stage(r, "accounts");
    reversible_show(r, &w);
}

static int64_t reversible_width_of(const Run *r, const Params *p)
{
    return p->split == SPLIT_CHANNELS ? r->dm / 2 : r->dm;
}

static void reversible_prepare(Run *r, Work *w)
{
    StackShape *s = &w->stack.shape;

    if (run_wants_views(r)) {
        w->history = run_tensor4(r, DT_F64, s->layers + 1, 2, s->n, s->dm);
        w->error = run_tensor2(r, DT_F64, s->layers + 1, 2);
        w->relative = run_tensor2(r, DT_F64, s->layers + 1, 2);
        w->measured = run_tensor1(r, DT_I64, 4 * s->layers);
    }
    w->base = arena_used(r->arena);
    w->one = stream_input(r, w, 0);
    w->two = stream_input(r, w, w->p->split == SPLIT_CHANNELS ? s->dm : 0);
    w->branch = stack_tokens(r, &w->stack);
}

static Tensor stream_input(Run *r, const Work *w, int64_t first)
{
    Tensor x = stack_tokens(r, &w->stack);

    op_entries(r, tensor_columns(tensor_with_rank(r->x, 3), first, w->stack.shape.dm), ENTRY_CAST,
               0, x);
    op_entries(r, x, ENTRY_ROUND, (double)w->p->precision, x);
    return x;
}

static void forward(Run *r, Work *w)
{
    int64_t layers = w->stack.shape.layers;

    reversible_remember(r, w, 0);
    for (int64_t l = 0; l < layers && !run_failed(r); l++) {
        run_iteration(r, "forward", l);
        stack_attend(r, &w->stack, l, w->two, w->branch);
        reversible_step(r, w, w->one, 1);
        note_memory(r, w, 2 * l);
        stack_ffn(r, &w->stack, l, w->one, w->branch);
        reversible_step(r, w, w->two, 1);
        note_memory(r, w, 2 * l + 1);
        reversible_remember(r, w, l + 1);
    }
}

/* The streams as they are at a layer boundary. */
static void reversible_remember(Run *r, Work *w, int64_t boundary)
{
    int64_t count = tensor_count(&w->one);
    double *at = w->history.data;

    if (!at || run_failed(r))
        return;
    memcpy(at + 2 * boundary * count, w->one.data, (size_t)count * sizeof(double));
    memcpy(at + (2 * boundary + 1) * count, w->two.data, (size_t)count * sizeof(double));
}

/* to = R(to +- the branch) */
static void reversible_step(Run *r, const Work *w, Tensor to, double sign)
{
    op_entries_of(r, to, w->branch, ENTRY_SUM, sign, to);
    op_entries(r, to, ENTRY_ROUND, (double)w->p->precision, to);
    op_charge(r, FLOP_OVERHEAD, (double)tensor_count(&to));
}

static void note_memory(Run *r, Work *w, int64_t at)
{
    if (w->measured.data && !run_failed(r))
        ((int64_t *)w->measured.data)[at] = w->stack.used - w->base;
    w->stack.used = 0;
}

static void reversible_combine(Run *r, const Work *w)
{
    int64_t   width = w->stack.shape.dm;
    ArenaMark mark;
    Tensor    sum;

    r->out = run_tensor3(r, DT_F32, 1, r->n, r->dm);
    if (w->p->split != SPLIT_DUPLICATE) {
        op_entries(r, w->one, ENTRY_CAST, 0, tensor_columns(r->out, 0, width));
        op_entries(r, w->two, ENTRY_CAST, 0, tensor_columns(r->out, width, width));
        return;
    }
    mark = arena_mark(r->arena);
    sum = run_tensor3(r, DT_F64, 1, r->n, width);
    op_entries_of(r, w->one, w->two, ENTRY_SUM, 1, sum);
    op_entries(r, sum, ENTRY_DIVIDE, 2, r->out);
    arena_release(r->arena, mark);
}

static void show_stream(Run *r, const Work *w, const char *name, Tensor stream)
{
    int64_t shape[2] = { w->stack.shape.n, w->stack.shape.dm };

    if (run_wants_views(r))
        view_tensor(r, name, VIEW_VECTORS, reversible_single(r, 2, shape, stream.data), "token",
                    "channel");
}

static Tensor reversible_single(Run *r, int rank, const int64_t *shape, const double *from)
{
    Tensor y = rank == 4 ? run_tensor4(r, DT_F32, shape[0], shape[1], shape[2], shape[3])
                         : run_tensor2(r, DT_F32, shape[0], shape[1]);

    for (int64_t t = 0; t < tensor_count(&y) && !run_failed(r); t++)
        tensor_f32(&y)[t] = (float)from[t];
    return y;
}

static void inverse(Run *r, Work *w)
{
    int64_t layers = w->stack.shape.layers;

    reversible_compare(r, w, layers);
    for (int64_t l = layers - 1; l >= 0 && !run_failed(r); l--) {
        run_iteration(r, "inverse", l);
        stack_ffn(r, &w->stack, l, w->one, w->branch);
        reversible_step(r, w, w->two, -1);
        note_memory(r, w, 4 * layers - 2 * l - 2);
        stack_attend(r, &w->stack, l, w->two, w->branch);
        reversible_step(r, w, w->one, -1);
        note_memory(r, w, 4 * layers - 2 * l - 1);
        reversible_compare(r, w, l);
    }
}

static void reversible_compare(Run *r, Work *w, int64_t boundary)
{
    const Tensor stream[2] = { w->one, w->two };
    int64_t      count = tensor_count(&w->one);

    if (w->history.data)
        op_wait(r, "the host compares what was computed back");
    for (int64_t s = 0; s < 2 && w->history.data && !run_failed(r); s++) {
        const double *was = (double *)w->history.data + (2 * boundary + s) * count;
        const double *now = stream[s].data;
        double        most = 0, size = 0;

        for (int64_t t = 0; t < count; t++) {
            double off = fabs(now[t] - was[t]);

            most = off <= most ? most : off; /* what is not a number stays */
            size = fmax(size, fabs(was[t]));
        }
        ((double *)w->error.data)[2 * boundary + s] = most;
        ((double *)w->relative.data)[2 * boundary + s] = size > 0 ? most / size : most;
        w->max_error = most <= w->max_error ? w->max_error : most;
        run_trace(r, s ? "error of x2" : "error of x1", most);
    }
}

static void reversible_show(Run *r, Work *w)
{
    int64_t    layers = w->stack.shape.layers;
    StackBytes b;

    if (!run_wants_views(r))
        return;
    b = stack_bytes(r, &w->stack);
    view_tensor(r, "streams", VIEW_VECTORS,
                reversible_single(r, 4, w->history.shape, w->history.data), "token", "channel");
    view_tensor(r, "error", VIEW_TENSOR, w->error, "layer boundary", "stream");
    view_tensor(r, "error_relative", VIEW_TENSOR, w->relative, "layer boundary", "stream");
    reversible_show_memory(r, &b, layers);
    view_tensor(r, "measured_reversible", VIEW_COUNT, w->measured, "bytes", "step");
    if (run_failed(r))
        return;
    run_figure(r, "max_error", w->max_error);
    run_figure_int(r, "extra_forward_layers", layers);
    run_figure_int(r, "measured_peak_reversible_bytes", reversible_largest(w->measured));
    show_plain(r, w);
}

/* Both accounts, and side by side as two series. */
static void reversible_show_memory(Run *r, const StackBytes *b, int64_t layers)
{
    Tensor   both = run_tensor2(r, DT_I64, 4 * layers, 2);
    Tensor   plain = run_tensor1(r, DT_I64, 4 * layers);
    Tensor   reversible = run_tensor1(r, DT_I64, 4 * layers);
    int64_t *up = plain.data, *flat = reversible.data, held = 0, last = 4 * layers - 1;

    for (int64_t t = 0; t < 2 * layers && !run_failed(r); t++) {
        int64_t work = t % 2 ? b->ffn : b->attention;

        held += b->token + work;
        up[t] = held + b->token;
        up[last - t] = held;
        flat[t] = flat[last - t] = 2 * b->token + work;
    }
    for (int64_t t = 0; t <= last && !run_failed(r); t++) {
        ((int64_t *)both.data)[2 * t] = up[t];
        ((int64_t *)both.data)[2 * t + 1] = flat[t];
    }
    view_tensor(r, "memory", VIEW_COUNT, both, "step", "plain, reversible");
    view_tensor(r, "memory_plain", VIEW_COUNT, plain, "bytes", "step");
    view_tensor(r, "memory_reversible", VIEW_COUNT, reversible, "bytes", "step");
    run_figure_int(r, "peak_plain_bytes",
                   layers * (2 * b->token + b->attention + b->ffn) + b->token);
    run_figure_int(r, "peak_reversible_bytes",
                   2 * b->token + (b->ffn > b->attention ? b->ffn : b->attention));
}

static int64_t reversible_largest(Tensor t)
{
    int64_t most = 0;

    for (int64_t i = 0; i < tensor_count(&t); i++)
        most = ((int64_t *)t.data)[i] > most ? ((int64_t *)t.data)[i] : most;
    return most;
}

static void show_plain(Run *r, Work *w)
{
    Tensor output = run_tensor2(r, DT_F32, r->n, r->dm), used;

    if (w->p->split != SPLIT_DUPLICATE)
        return;
    used = run_plain(r, w, output);
    if (run_failed(r))
        return;
    view_tensor(r, "plain_output", VIEW_VECTORS, output, "token", "channel");
    view_tensor(r, "measured_plain", VIEW_COUNT, used, "bytes", "step");
    run_figure_int(r, "measured_peak_plain_bytes", reversible_largest(used));
}

/* ---- the ordinary stack ----------------------------------------------------- */

/* Everything it computes stays in the arena, as a backward pass needs it, and then goes,
 * a branch at a time.  Returns what the arena held at each step. */
static Tensor run_plain(Run *r, Work *w, Tensor output)
{
    int64_t    count = 2 * w->stack.shape.layers;
    Tensor     used = run_tensor1(r, DT_I64, 2 * count), x;
    ArenaMark *marks = run_alloc(r, count, sizeof(*marks));
    int64_t    base = arena_used(r->arena), *at = used.data;
    Stack      s = w->stack;

    s.silent = s.keep = true;
    x = stack_input(r, &s);
    for (int64_t t = 0; t < count && !run_failed(r); t++) {
        Tensor y;

        marks[t] = arena_mark(r->arena);
        y = stack_tokens(r, &s);
        (t % 2 ? stack_ffn : stack_attend)(r, &s, t / 2, x, y);
        stack_add(r, &s, y, x);
        x = y;
        at[t] = arena_used(r->arena) - base;
    }
    op_wait(r, "the host rounds what was computed back");
    for (int64_t c = 0; c < tensor_count(&output) && !run_failed(r); c++)
        tensor_f32(&output)[c] = (float)((double *)x.data)[c];
    for (int64_t t = count - 1; t >= 0 && !run_failed(r); t--) {
        at[2 * count - 1 - t] = arena_used(r->arena) - base;
        arena_release(r->arena, marks[t]);
    }
    return used;
}

static void reversible_check(Run *r, const void *params_)
{
    const Params *p = params_;

    if (p->split == SPLIT_CHANNELS && r->dm % 2)
        run_fail(r, ERR_PARAM, "reversible: split=channels halves the channels, but the input has "
                 "dm=%lld; use split=duplicate or an even width", (long long)r->dm);
}

static Flops reversible_flops(Run *r, const void *params_)
{
    const Params *p = params_;
    StackShape    s = stack_shape(r, &p->stack, reversible_width_of(r, p));
    Flops         f = r->inner_flops;

    f.overhead += 2 * (double)s.layers * (stack_attend_flops(&s) + stack_ffn_flops(&s));
    return f;
}

static const StageNote notes[] = {
    { "weights", "The weights of all layers are taken from files or drawn.  The reversible and "
                 "the ordinary stack use the same ones." },
    { "forward", "One layer: attention of the second stream is added to the first, then the "
                 "feed-forward branch of the first to the second.  Each sum is rounded to the "
                 "format.  Nothing but the two streams is kept." },
    { "output", "The two streams become one again: their mean, or side by side." },
    { "inverse", "One layer backward: the same branches are computed again from what is there "
                 "and subtracted, which gives the layer's input back -- up to what rounding lost "
                 "on the way." },
    { "accounts", "What a training step would hold at every moment, with and without "
                  "reversible layers, and what this program really held." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("error", VIEW_TENSOR, "largest difference of the reconstructed streams at each layer "
         "boundary", .curve = ERROR_OVER_DEPTH("largest difference")),
    VIEW("error_relative", VIEW_TENSOR, "the same, divided by the largest number there",
         .curve = ERROR_OVER_DEPTH("relative difference")),
    { .name = "memory", .kind = VIEW_COUNT, .help = "the next two side by side",
      .curve = { .x = "layers passed, forward and back", .y = "memory (bytes)",
                 .mark = CURVE_STEPS, .spacing = 0.5,
                 .series = "plain|reversible" } },
    VIEW("memory_plain", VIEW_COUNT, "bytes live at each step of an ordinary stack, forward, then "
         "backward", .curve = BYTES_OVER_STEPS("plain")),
    VIEW("memory_reversible", VIEW_COUNT, "the same of reversible layers",
         .curve = BYTES_OVER_STEPS("reversible")),
    VIEW("measured_plain", VIEW_COUNT, "split=duplicate: bytes this program's arena held in the "
         "ordinary stack, measured; numbers in double, weights never "
         "stored", .curve = BYTES_OVER_STEPS("plain"), .maybe = true),
    VIEW("measured_reversible", VIEW_COUNT, "bytes this program's arena held in the reversible "
         "stack, measured", .curve = BYTES_OVER_STEPS("reversible")),
    VIEW("y1", VIEW_VECTORS, "first stream at the end"),
    VIEW("y2", VIEW_VECTORS, "second stream at the end"),
    VIEW("x1", VIEW_VECTORS, "first stream, reconstructed"),
    VIEW("x2", VIEW_VECTORS, "second stream, reconstructed"),
    VIEW("streams", VIEW_VECTORS, "both streams at every layer boundary"),
    VIEW("plain_output", VIEW_VECTORS, "split=duplicate: what an ordinary stack makes of x with "
         "the same weights", .maybe = true),
    STACK_VIEWS,
    VIEW_PROMISE_END
};

const Mechanism mech_reversible = {
    .id = "reversible",
    .title = "Reversible layers",
    .authors = "Gomez, Ren, Urtasun, Grosse; Kitaev, Kaiser, Levskaya",
    .year = 2017,
    .arxiv = "1707.04585",
    .source = "RevNet section 3; Reformer (2001.04451) section 3",
    .formula = "y1 = x1 + att(x2),  y2 = x2 + ffn(y1)\n"
               "x2 = y2 - ffn(y1),  x1 = y1 - att(x2)",
    .problem = "Training keeps the activations of every layer for the backward pass.",
    .idea = "Layers are built so that their inputs can be computed back from their outputs.",
    .price = "More is computed, and rounding errors grow with the depth.",
    .teaches = "Activation memory stops growing with depth: a triangle against a flat line.  The "
               "price is a second forward pass, and an error that grows layer by layer as the "
               "inputs are reconstructed, more so in coarse formats.",
    .picture = "memory",
    .classes = CLASS_LAB,
    .claim_time = "O(n^2), the attention inside; one more forward pass",
    .claim_memory = "independent of depth",
    .claim_decode = "yes; it saves nothing there",
    .causal = true,
    .needs_x = true,
    .inner = "attention",
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = reversible_check,
    .run = reversible_run,
    .flops = reversible_flops,
    .decode = decode_around,
};
