/* checkpointing.c -- keep the inputs of some layers, compute the rest again.
 *
 *     kept forward:   the inputs of layers 0, k, 2k, ...
 *     backward:       from the last segment to the first, run its k layers again from the
 *                     kept input, then go back through them
 *
 *     peak about (L/k) I + k A;  I: a token matrix, A: what a layer needs to go backward
 *
 * There are no gradients here: the run follows the schedule with real layers, holds what the
 * schedule holds, and gives it back where a backward pass would.  Bytes are accounted beside.
 *
 * (Chen et al.; torch.utils.checkpoint's sequential helper for keep_last; attn/mech/lab/stack.h.)
 */
#include "attn/mech/lab/stack.h"
#include "attn/run.h"

#include <math.h>
#include <string.h>

enum { SCHEDULE_SQRT, SCHEDULE_EVERY, SCHEDULE_NONE, SCHEDULE_ALL };
static const char *const schedules[] = { "sqrt", "every", "none", "all", NULL };
enum { OP_FORWARD, OP_RECOMPUTE, OP_BACKWARD };

typedef struct Params {
    StackParams stack;
    int64_t     every;
    int         schedule;
    bool        keep_last;
} Params;

static const Param params[] = {
    STACK_PARAMS,
    PARAM_ENUM(Params, schedule, SCHEDULE_SQRT, schedules,
               "sqrt: every sqrt(L)-th input is kept; none: everything; all: x only"),
    PARAM_INT(Params, every, 1, 1, INT32_MAX, "schedule=every: layers of a segment, at most L"),
    PARAM_BOOL(Params, keep_last, true, "the last segment is not computed twice"),
    PARAM_END
};

typedef struct Schedule {
    int64_t layers, every; /* L, k */
    bool    keep_last, saved, all; /* saved: nothing is ever dropped */
} Schedule;

typedef struct Event {
    int     op;
    int64_t layer;
    int64_t inputs, works; /* live during it: inputs I + works W */
} Event;

typedef void (*Visit)(void *context, Event e);

typedef struct Totals {
    StackBytes bytes;
    int64_t    peak, recomputed, steps;
} Totals;

typedef struct Walk {
    Run       *r;
    Schedule   schedule;
    Stack      stack;
    Tensor     now;      /* the running token matrix */
    Tensor    *kept;     /* [L] inputs; data NULL: not kept */
    ArenaMark *kept_at, *work_at; /* [L] where they, and a layer's own numbers, begin */
    Event     *events;
    int64_t    at, base;
    int64_t   *measured; /* [steps]; NULL: not wanted */
    bool       back;     /* the forward pass is over */
} Walk;

#define BYTES_OVER_STEPS                                                                       \
    { .x = "layers passed, forward and back", .y = "memory (bytes)", .mark = CURVE_STEPS }

static const char *const doings[] = { "forward", "recomputed", "backward", NULL };

static Schedule schedule_of(const Params *p, int64_t layers);
static Totals totals_of(const Schedule *s, StackBytes bytes);
static void visit_events(const Schedule *s, Visit visit, void *context);
static void visit_all(const Schedule *s, Visit visit, void *context);
static void visit_forward(const Schedule *s, Visit visit, void *context);
static bool is_saved(const Schedule *s, int64_t segment);
static int64_t last_segment(const Schedule *s);
static void visit_segment(const Schedule *s, int64_t segment, Visit visit, void *context);
static void add_total(void *context, Event e);
static int64_t live(const StackBytes *b, Event e);
static void checkpoint_prepare(Run *r, Walk *w, int64_t steps);
static void note_event(void *context, Event e);
static void checkpoint_follow(Walk *w, int64_t steps);
static void go_back(Walk *w, Event e);
static bool is_stored(const Schedule *s, int64_t layer);
static void checkpoint_compute(Walk *w, Event e);
static void checkpoint_keep_input(Walk *w, int64_t layer);
static bool stays(const Walk *w, Event e);
static void checkpoint_show(Run *r, Walk *w, int64_t steps);
static void checkpoint_show_grid(Run *r, const Walk *w, int64_t steps);
static void checkpoint_read_grid(const View *view, int64_t head, int64_t i, int64_t start,
                                 int64_t count, int64_t step, float *out);
static void show_events(Run *r, const Walk *w, int64_t steps, const StackBytes *b);
static void checkpoint_show_tradeoff(Run *r, const Schedule *s, StackBytes b);
static void show_guides(Run *r, const Schedule *s, const StackBytes *b);

static void checkpointing_run(Run *r, const void *params_)
{
    const Params *p = params_;
    Walk          w = { .r = r };
    int64_t       steps;

    run_stage(r, "weights");
    w.stack = stack_open(r, &p->stack, r->dm);
    if (run_failed(r))
        return;
    w.schedule = schedule_of(p, w.stack.shape.layers);
    steps = totals_of(&w.schedule, (StackBytes){ 0 }).steps;
    checkpoint_prepare(r, &w, steps);
    checkpoint_follow(&w, steps);
    run_stage(r, "accounts");
    checkpoint_show(r, &w, steps);
}

static Schedule schedule_of(const Params *p, int64_t layers)
{
    Schedule s = { .layers = layers, .every = layers, .keep_last = p->keep_last,
                   .saved = p->schedule == SCHEDULE_NONE, .all = p->schedule == SCHEDULE_ALL };

    if (p->schedule == SCHEDULE_EVERY)
        s.every = p->every < layers ? p->every : layers;
    for (int64_t k = 1; p->schedule == SCHEDULE_SQRT && k < s.every; k++)
        if (k * k >= layers)
            s.every = k;
    return s;
}

static Totals totals_of(const Schedule *s, StackBytes bytes)
{
    Totals t = { .bytes = bytes };

    visit_events(s, add_total, &t);
    return t;
}

static void visit_events(const Schedule *s, Visit visit, void *context)
{
    if (s->all) {
        visit_all(s, visit, context);
        return;
    }
    visit_forward(s, visit, context);
    for (int64_t g = last_segment(s); g >= 0; g--)
        visit_segment(s, g, visit, context);
}

/* Only x is kept: every layer is reached from it again. */
static void visit_all(const Schedule *s, Visit visit, void *context)
{
    int64_t layers = s->layers, last = layers - 1;

    for (int64_t l = 0; l < layers; l++)
        visit(context, (Event){ OP_FORWARD, l, 2 + (l > 0), 1 });
    for (int64_t l = last; l >= 0; l--) {
        for (int64_t t = 0; t <= l && !(s->keep_last && l == last); t++)
            visit(context, (Event){ OP_RECOMPUTE, t, 2 + (t > 0), 1 });
        visit(context, (Event){ OP_BACKWARD, l, 1 + (l > 0), 1 });
    }
}

static void visit_forward(const Schedule *s, Visit visit, void *context)
{
    for (int64_t l = 0; l < s->layers; l++) {
        int64_t held = l / s->every + 1, t = l % s->every + 1;
        Event   e = { OP_FORWARD, l, held + 1 + (t > 1), 1 };

        if (is_saved(s, l / s->every))
            e = (Event){ OP_FORWARD, l, held + t, t };
        visit(context, e);
    }
}

static bool is_saved(const Schedule *s, int64_t segment)
{
    return s->saved || (s->keep_last && segment == last_segment(s));
}

static int64_t last_segment(const Schedule *s)
{
    return (s->layers - 1) / s->every;
}

static void visit_segment(const Schedule *s, int64_t segment, Visit visit, void *context)
{
    int64_t first = segment * s->every, held = segment + 1;
    int64_t count = s->layers - first < s->every ? s->layers - first : s->every;

    for (int64_t t = 1; t <= count && !is_saved(s, segment); t++)
        visit(context, (Event){ OP_RECOMPUTE, first + t - 1, held + t, t });
    for (int64_t t = count; t >= 1; t--)
        visit(context, (Event){ OP_BACKWARD, first + t - 1, held + t - 1, t });
}

static void add_total(void *context, Event e)
{
    Totals *t = context;
    int64_t bytes = live(&t->bytes, e);

    t->peak = bytes > t->peak ? bytes : t->peak;
    t->recomputed += e.op == OP_RECOMPUTE;
    t->steps++;
}

static int64_t live(const StackBytes *b, Event e)
{
    return e.inputs * b->token + e.works * b->work;
}

static void checkpoint_prepare(Run *r, Walk *w, int64_t steps)
{
    int64_t layers = w->schedule.layers;

    w->events = run_alloc(r, steps, sizeof(*w->events));
    w->kept = run_alloc(r, layers, sizeof(*w->kept));
    w->kept_at = run_alloc(r, layers, sizeof(*w->kept_at));
    w->work_at = run_alloc(r, layers, sizeof(*w->work_at));
    w->measured = run_wants_views(r) ? run_alloc(r, steps, sizeof(*w->measured)) : NULL;
    r->out = run_tensor3(r, DT_F32, 1, r->n, r->dm);
    w->base = arena_used(r->arena);
    w->now = stack_input(r, &w->stack);
    if (!run_failed(r))
        visit_events(&w->schedule, note_event, w);
}

static void note_event(void *context, Event e)
{
    Walk *w = context;

    w->events[w->at++] = e;
}

static void checkpoint_follow(Walk *w, int64_t steps)
{
    for (w->at = 0; w->at < steps && !run_failed(w->r); w->at++) {
        Event e = w->events[w->at];

        w->stack.used = 0;
        if (e.op == OP_BACKWARD)
            go_back(w, e);
        else
            checkpoint_compute(w, e);
        if (w->measured && !run_failed(w->r))
            w->measured[w->at] = w->stack.used - w->base;
    }
}

static void go_back(Walk *w, Event e)
{
    if (!w->back)
        stack_out(w->r, w->now);
    w->back = true;
    run_iteration(w->r, "backward", e.layer);
    w->stack.used = arena_used(w->r->arena);
    arena_release(w->r->arena, w->work_at[e.layer]);
    if (is_stored(&w->schedule, e.layer))
        arena_release(w->r->arena, w->kept_at[e.layer]);
}

static bool is_stored(const Schedule *s, int64_t layer)
{
    return s->all ? layer == 0 : layer % s->every == 0;
}

static void checkpoint_compute(Walk *w, Event e)
{
    run_iteration(w->r, e.op == OP_FORWARD ? "forward" : "recompute", e.layer);
    if (e.op == OP_FORWARD && is_stored(&w->schedule, e.layer))
        checkpoint_keep_input(w, e.layer);
    else if (e.op == OP_RECOMPUTE && is_stored(&w->schedule, e.layer))
        stack_copy(w->r, w->kept[e.layer], w->now);
    w->work_at[e.layer] = arena_mark(w->r->arena);
    w->stack.keep = stays(w, e);
    stack_layer(w->r, &w->stack, e.layer, w->now);
}

static void checkpoint_keep_input(Walk *w, int64_t layer)
{
    w->kept_at[layer] = arena_mark(w->r->arena);
    w->kept[layer] = stack_tokens(w->r, &w->stack);
    stack_copy(w->r, w->now, w->kept[layer]);
}

/* True if the backward pass uses what the layer computes now. */
static bool stays(const Walk *w, Event e)
{
    const Schedule *s = &w->schedule;

    if (s->all)
        return e.op == OP_FORWARD ? s->keep_last && e.layer == s->layers - 1
                                  : w->events[w->at + 1].op == OP_BACKWARD;
    return e.op == OP_RECOMPUTE || is_saved(s, e.layer / s->every);
}

static void checkpoint_show(Run *r, Walk *w, int64_t steps)
{
    Schedule  *s = &w->schedule;
    int64_t    most = 0;
    StackBytes b;
    Totals     t;

    if (!run_wants_views(r))
        return;
    b = stack_bytes(r, &w->stack);
    t = totals_of(s, b);
    checkpoint_show_grid(r, w, steps);
    show_events(r, w, steps, &b);
    checkpoint_show_tradeoff(r, s, b);
    view_tensor(r, "measured", VIEW_COUNT, tensor_of(DT_I64, 1, &steps, w->measured), "", "step");
    if (run_failed(r))
        return;
    show_guides(r, s, &b);
    for (int64_t i = 0; i < steps; i++)
        most = w->measured[i] > most ? w->measured[i] : most;
    run_figure_int(r, "peak_bytes", t.peak);
    run_figure_int(r, "plain_peak_bytes", b.token + s->layers * b.layer);
    run_figure_int(r, "every", s->every);
    run_figure_int(r, "recomputed_layers", t.recomputed);
    run_figure(r, "forward_ratio", (double)(s->layers + t.recomputed) / (double)s->layers);
    run_figure_int(r, "layer_bytes", b.layer);
    run_figure_int(r, "checkpoint_bytes", b.token);
    run_figure(r, "best_every", sqrt((double)s->layers * (double)b.token / (double)b.layer));
    run_figure_int(r, "measured_peak_bytes", most);
}

static void checkpoint_show_grid(Run *r, const Walk *w, int64_t steps)
{
    View *view = view_add(r, "grid", VIEW_BUCKETS, DT_I32, 2,
                          (int64_t[]){ w->schedule.layers, steps });

    if (!view)
        return;
    view->read = checkpoint_read_grid;
    view->context = w->events;
    view->rows = "layer";
    view->cols = "step";
}

static void checkpoint_read_grid(const View *view, int64_t head, int64_t i, int64_t start,
                                 int64_t count, int64_t step, float *out)
{
    const Event *events = view->context;

    (void)head;
    for (int64_t c = 0; c < count; c++) {
        Event e = events[start + c * step];

        out[c] = e.layer == i ? (float)e.op : -1;
    }
}

static void show_events(Run *r, const Walk *w, int64_t steps, const StackBytes *b)
{
    Tensor timeline = run_tensor2(r, DT_I32, steps, 2), memory = run_tensor1(r, DT_I64, steps);
    Tensor stored = run_tensor1(r, DT_U8, w->schedule.layers);

    for (int64_t t = 0; t < steps && !run_failed(r); t++) {
        tensor_i32(&timeline)[2 * t] = w->events[t].op;
        tensor_i32(&timeline)[2 * t + 1] = (int32_t)w->events[t].layer;
        ((int64_t *)memory.data)[t] = live(b, w->events[t]);
    }
    for (int64_t l = 0; l < w->schedule.layers && !run_failed(r); l++)
        tensor_u8(&stored)[l] = is_stored(&w->schedule, l);
    view_tensor(r, "timeline", VIEW_TENSOR, timeline, "step", "op, layer");
    view_tensor(r, "memory", VIEW_COUNT, memory, "", "step");
    view_tensor(r, "stored", VIEW_MEMBERSHIP, stored, "", "layer");
}

static void checkpoint_show_tradeoff(Run *r, const Schedule *s, StackBytes b)
{
    Tensor   table = run_tensor2(r, DT_I64, s->layers, 3);
    Tensor   peaks = run_tensor1(r, DT_I64, s->layers);
    Tensor   again = run_tensor1(r, DT_I64, s->layers);
    int64_t *row = table.data;

    for (int64_t k = 1; k <= s->layers && !run_failed(r); k++, row += 3) {
        Schedule other = { .layers = s->layers, .every = k, .keep_last = s->keep_last };
        Totals   t = totals_of(&other, b);

        row[0] = k;
        row[1] = ((int64_t *)peaks.data)[k - 1] = t.peak;
        row[2] = ((int64_t *)again.data)[k - 1] = t.recomputed;
    }
    view_tensor(r, "peaks", VIEW_COUNT, peaks, "bytes", "k - 1");
    view_tensor(r, "recomputed", VIEW_COUNT, again, "layers", "k - 1");
    view_tensor(r, "tradeoff", VIEW_TENSOR, table, "k", "k, peak bytes, layers recomputed");
}

/* The rules of thumb for k: for kept inputs as heavy as layers, and for these. */
static void show_guides(Run *r, const Schedule *s, const StackBytes *b)
{
    double best = sqrt((double)s->layers * (double)b->token / (double)b->layer);

    view_guide(r, "memory", false, (double)(b->token + s->layers * b->layer), "plain peak");
    view_guide(r, "peaks", true, sqrt((double)s->layers), "sqrt(L)");
    if (best >= 1)
        view_guide(r, "peaks", true, best, "sqrt(L I/A)");
}

static Flops checkpointing_flops(Run *r, const void *params_)
{
    const Params *p = params_;
    StackShape    s = stack_shape(r, &p->stack, r->dm);
    Schedule      schedule = schedule_of(p, s.layers);
    Totals        t = totals_of(&schedule, (StackBytes){ 0 });
    Flops         f = r->inner_flops;

    f.overhead += (double)(s.layers + t.recomputed) *
                  (stack_attend_flops(&s) + stack_ffn_flops(&s));
    return f;
}

static const StageNote notes[] = {
    { "weights", "The weights of all layers are taken from files or drawn." },
    { "forward", "One layer forward.  If it starts a segment its input is kept; of the rest "
                 "nothing, unless it is the last segment, which is needed first on the way back." },
    { "recompute", "The way back has come to this segment, and what its layers computed is gone: "
                   "they run again from the kept input, and this time all of it stays." },
    { "backward", "A training step would take this layer's gradient now.  Here its memory is "
                  "given back; with the first layer of a segment goes the kept input." },
    { "accounts", "The bytes live at every step, and what other segment lengths would cost." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("grid", VIEW_BUCKETS, "layers against time: 0 forward, 1 computed again, 2 backward, -1 "
         "idle", .categories = doings),
    VIEW("memory", VIEW_COUNT, "bytes live during each step, accounted", .curve = BYTES_OVER_STEPS),
    VIEW("measured", VIEW_COUNT, "bytes this program's arena held during each step, measured; "
         "numbers in double, weights never stored", .curve = BYTES_OVER_STEPS),
    VIEW("timeline", VIEW_TENSOR, "the steps: 0 forward, 1 computed again, 2 backward; and the "
         "layer"),
    VIEW("stored", VIEW_MEMBERSHIP, "layers whose input is kept"),
    VIEW("tradeoff", VIEW_TENSOR, "for each segment length: peak bytes and layers computed again"),
    VIEW("peaks", VIEW_COUNT, "peak bytes for each segment length 1 to L",
         .curve = { .x = "segment length k", .y = "peak (bytes)", .first = 1 }),
    VIEW("recomputed", VIEW_COUNT, "layers computed again for each",
         .curve = { .x = "segment length k", .y = "layers computed again", .first = 1 }),
    STACK_VIEWS,
    VIEW_PROMISE_END
};

const Mechanism mech_checkpointing = {
    .id = "checkpointing",
    .title = "Gradient checkpointing",
    .authors = "Chen, Xu, Zhang, Guestrin",
    .year = 2016,
    .arxiv = "1604.06174",
    .source = "paper sections 3 and 4; PyTorch's checkpoint_sequential for keep_last",
    .formula = "keep the inputs of layers 0, k, 2k, ...\n"
               "peak about (L/k) I + k A;  best k = sqrt(L I / A), sqrt(L) when I = A",
    .problem = "Training keeps the activations of every layer for the backward pass.",
    .idea = "Only some layers' inputs are kept, and the rest is computed again when it is "
            "needed.",
    .price = "Up to one more forward pass is computed.",
    .teaches = "The memory of a training step as a saw instead of a triangle: less kept, more "
               "computed again.  Deep stacks have a U of peaks against k, its bottom near sqrt(L "
               "I/A) for I bytes of a kept input and A of a layer's activations.  As A is far "
               "more than I, in a stack of few layers k = 1 is best.",
    .picture = "grid",
    .classes = CLASS_LAB,
    .claim_time = "O(n^2), the attention inside; one more forward pass",
    .claim_memory = "O(sqrt(L)) layers",
    .claim_decode = "yes; it saves nothing there",
    .causal = true,
    .needs_x = true,
    .inner = "attention",
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .run = checkpointing_run,
    .flops = checkpointing_flops,
    .decode = decode_around,
};
