/* head_pruning.c -- which heads can go, measured by taking them out.
 *
 * A removed head has its context multiplied by 0 before wo; the others are not rescaled.
 *
 *     stack:     importance = |out without it - out| / |out|, of the whole stack
 *     sublayer:  importance = |context_a wo[rows of a]| / |att_l|, at its own layer: the
 *                change of the sub-layer's output, which is linear in the mask
 *
 * Heads go by ascending importance, which is measured once.  Michel et al. score heads by the
 * gradient of a loss; there is no loss here, so that score is not offered.
 *
 * (Michel, Levy, Neubig section 3; Voita et al.; attn/mech/lab/stack.h is the stack.)
 */
#include "attn/mech/lab/stack.h"
#include "attn/run.h"

#include <math.h>
#include <string.h>

enum { MEASURE_STACK, MEASURE_SUBLAYER };
static const char *const measures[] = { "stack", "sublayer", NULL };
enum { NORMALIZE_NONE, NORMALIZE_PER_LAYER };
static const char *const normalizers[] = { "none", "layer", NULL };

typedef struct Params {
    StackParams stack;
    int64_t     prune;
    int         measure, normalize;
} Params;

typedef struct Work {
    const Params *p;
    Stack    stack;
    int64_t  layers, heads, count; /* count: all heads, L h */
    Tensor  *inputs, *contexts;    /* [L] f64 [1,n,dm] of the whole stack */
    Tensor   full;                 /* f64 [1,n,dm] its output */
    Tensor   now, context, branch; /* scratch */
    double   size;                 /* norm of full */
    double  *sublayer;             /* [L] norms of att_l */
    uint8_t *kept;                 /* [L,h] of the run that is on */
    Tensor   raw, importance;      /* f64 [L,h] */
    Tensor   order;                /* i32 [L h,2] */
    Tensor   curve;                /* f64 [L h+1] */
} Work;

static void pruning_prepare(Run *r, Work *w);
static void run_whole(Run *r, Work *w);
static double norm_of(Run *r, const Work *w, Tensor x, const Tensor *from);
static void finish_layer(Run *r, Work *w, int64_t layer);
static void pruning_measure(Run *r, Work *w);
static double without_head(Run *r, Work *w, int64_t layer, int64_t head);
static void run_masked(Run *r, Work *w, int64_t from);
static void mask(Run *r, const Work *w, int64_t layer, int64_t only);
static double change(Run *r, const Work *w);
static double ratio(double part, double whole);
static double share_of_sublayer(Run *r, Work *w, int64_t layer, int64_t head);
static void pruning_take_out(Run *r, Work *w);
static void pruning_sort(Run *r, const Work *w);
static void remove_heads(const Work *w, int64_t count);
static void pruning_show(Run *r, const Work *w);
static void show_importance(Run *r, const Work *w, const char *name, Tensor values);
static const ViewMarks *removed_marks(Run *r, const Work *w);
static void show_figures(Run *r, const Work *w);

static const Param params[] = {
    STACK_PARAMS,
    PARAM_ENUM(Params, measure, MEASURE_STACK, measures,
               "what a head's removal is measured on"),
    PARAM_ENUM(Params, normalize, NORMALIZE_NONE, normalizers,
               "layer: divide a layer's importances by their L2 norm"),
    PARAM_INT(Params, prune, 0, 0, INT32_MAX, "heads removed from the output"),
    PARAM_END
};

static void head_pruning_run(Run *r, const void *params_)
{
    const Params *p = params_;
    Work          w = { .p = p };

    run_stage(r, "weights");
    w.stack = stack_open(r, &p->stack, r->dm);
    if (run_failed(r))
        return;
    pruning_prepare(r, &w);
    run_whole(r, &w);
    pruning_measure(r, &w);
    pruning_take_out(r, &w);
    pruning_show(r, &w);
}

static void pruning_prepare(Run *r, Work *w)
{
    const Params *p = w->p;

    w->layers = w->stack.shape.layers;
    w->heads = w->stack.shape.heads;
    w->count = w->layers * w->heads;
    if (p->prune > w->count)
        run_fail(r, ERR_PARAM, "head-pruning: prune=%lld, but the stack has only %lld heads (%lld "
                 "in each of %lld layers)", (long long)p->prune, (long long)w->count,
                 (long long)w->heads, (long long)w->layers);
    w->inputs = run_alloc(r, w->layers, sizeof(*w->inputs));
    w->contexts = run_alloc(r, w->layers, sizeof(*w->contexts));
    w->sublayer = run_alloc(r, w->layers, sizeof(*w->sublayer));
    w->kept = run_alloc(r, w->count, 1);
    w->raw = run_tensor2(r, DT_F64, w->layers, w->heads);
    w->importance = run_tensor2(r, DT_F64, w->layers, w->heads);
    w->order = run_tensor2(r, DT_I32, w->count, 2);
    w->curve = run_tensor1(r, DT_F64, w->count + 1);
    if (!run_failed(r))
        memset(w->kept, 1, (size_t)w->count);
}

static void run_whole(Run *r, Work *w)
{
    run_stage(r, "stack");
    w->now = stack_input(r, &w->stack);
    w->branch = stack_tokens(r, &w->stack);
    w->context = stack_tokens(r, &w->stack);
    for (int64_t l = 0; l < w->layers && !run_failed(r); l++) {
        w->inputs[l] = stack_tokens(r, &w->stack);
        w->contexts[l] = stack_tokens(r, &w->stack);
        stack_copy(r, w->now, w->inputs[l]);
        stack_context(r, &w->stack, l, w->now, w->contexts[l]);
        stack_project(r, &w->stack, l, w->contexts[l], w->branch);
        if (!run_failed(r))
            w->sublayer[l] = norm_of(r, w, w->branch, NULL);
        finish_layer(r, w, l);
    }
    w->full = stack_tokens(r, &w->stack);
    stack_copy(r, w->now, w->full);
    if (!run_failed(r))
        w->size = norm_of(r, w, w->full, NULL);
}

/* |x|, or |x - from|, of tokens [1,n,dm]. */
static double norm_of(Run *r, const Work *w, Tensor x, const Tensor *from)
{
    ArenaMark mark = arena_mark(r->arena);
    Tensor    off = stack_tokens(r, &w->stack), sums = run_tensor3(r, DT_F64, 1, 1, x.shape[2]);
    double    sum = 0;

    if (from)
        op_entries_of(r, x, *from, ENTRY_SUM, -1, off);
    op_entries_of(r, from ? off : x, from ? off : x, ENTRY_PRODUCT, 1, off);
    op_pool_rows(r, off, 0, x.shape[1], WINDOW_SUM, sums);
    op_wait(r, "the host measures how much a head changes");
    for (int64_t c = 0; c < x.shape[2] && !run_failed(r); c++)
        sum += ((double *)sums.data)[c];
    arena_release(r->arena, mark);
    return sqrt(sum);
}

static void finish_layer(Run *r, Work *w, int64_t layer)
{
    stack_add(r, &w->stack, w->now, w->branch);
    stack_ffn(r, &w->stack, layer, w->now, w->branch);
    stack_add(r, &w->stack, w->now, w->branch);
}

static void pruning_measure(Run *r, Work *w)
{
    double *raw = w->raw.data, *importance = w->importance.data;

    for (int64_t l = 0; l < w->layers && !run_failed(r); l++) {
        double sum = 0;

        run_iteration(r, "importance", l);
        for (int64_t a = 0; a < w->heads; a++) {
            double x = (w->p->measure == MEASURE_STACK ? without_head
                                                       : share_of_sublayer)(r, w, l, a);

            if (run_failed(r))
                return;
            raw[l * w->heads + a] = x;
            sum += x * x;
            run_trace(r, "importance", x);
        }
        for (int64_t a = 0; a < w->heads; a++)
            importance[l * w->heads + a] = w->p->normalize == NORMALIZE_NONE
                                               ? raw[l * w->heads + a]
                                               : ratio(raw[l * w->heads + a], sqrt(sum));
    }
}

static double without_head(Run *r, Work *w, int64_t layer, int64_t head)
{
    double value;

    w->kept[layer * w->heads + head] = 0;
    run_masked(r, w, layer);
    value = change(r, w);
    w->kept[layer * w->heads + head] = 1;
    return value;
}

/* The stack from layer `from` on, whose context is known, into w->now. */
static void run_masked(Run *r, Work *w, int64_t from)
{
    stack_copy(r, w->inputs[from], w->now);
    stack_copy(r, w->contexts[from], w->context);
    for (int64_t l = from; l < w->layers && !run_failed(r); l++) {
        if (l > from)
            stack_context(r, &w->stack, l, w->now, w->context);
        mask(r, w, l, -1);
        stack_project(r, &w->stack, l, w->context, w->branch);
        finish_layer(r, w, l);
    }
}

/* Zeroes the columns of the heads that are not kept (or of all but `only`, unless -1). */
static void mask(Run *r, const Work *w, int64_t layer, int64_t only)
{
    int64_t dh = w->stack.shape.dm / w->heads;

    for (int64_t head = 0; head < w->heads && !run_failed(r); head++)
        if (only >= 0 ? head != only : !w->kept[layer * w->heads + head])
            op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, 0,
                       tensor_columns(w->context, head * dh, dh));
}

static double change(Run *r, const Work *w)
{
    return run_failed(r) ? 0 : ratio(norm_of(r, w, w->now, &w->full), w->size);
}

static double ratio(double part, double whole)
{
    return part > 0 || isnan(part) ? part / whole : 0;
}

static double share_of_sublayer(Run *r, Work *w, int64_t layer, int64_t head)
{
    stack_copy(r, w->contexts[layer], w->context);
    mask(r, w, layer, head);
    stack_project(r, &w->stack, layer, w->context, w->branch);
    return run_failed(r) ? 0 : ratio(norm_of(r, w, w->branch, NULL), w->sublayer[layer]);
}

static void pruning_take_out(Run *r, Work *w)
{
    double *curve = w->curve.data;

    pruning_sort(r, w);
    if (run_failed(r))
        return;
    curve[0] = 0;
    if (w->p->prune == 0)
        stack_out(r, w->full);
    for (int64_t t = 1; t <= w->count && !run_failed(r); t++) {
        run_iteration(r, "prune", t);
        remove_heads(w, t);
        run_masked(r, w, 0);
        curve[t] = change(r, w);
        run_trace(r, "relative change", curve[t]);
        if (t == w->p->prune)
            stack_out(r, w->now);
    }
}

/* Ascending importance; ties by layer, then head. */
static void pruning_sort(Run *r, const Work *w)
{
    const double *x = w->importance.data;
    int32_t      *order = tensor_i32(&w->order);

    for (int64_t t = 0; t < w->count && !run_failed(r); t++) {
        int64_t at = t;

        for (; at > 0 && x[t] < x[order[2 * at - 2] * w->heads + order[2 * at - 1]]; at--)
            memcpy(order + 2 * at, order + 2 * at - 2, 2 * sizeof(*order));
        order[2 * at] = (int32_t)(t / w->heads);
        order[2 * at + 1] = (int32_t)(t % w->heads);
    }
}

static void remove_heads(const Work *w, int64_t count)
{
    const int32_t *order = tensor_i32(&w->order);

    memset(w->kept, 1, (size_t)w->count);
    for (int64_t t = 0; t < count; t++)
        w->kept[order[2 * t] * w->heads + order[2 * t + 1]] = 0;
}

static void pruning_show(Run *r, const Work *w)
{
    Tensor reference, kept;

    if (!run_wants_views(r))
        return;
    remove_heads(w, w->p->prune);
    show_importance(r, w, "importance", w->importance);
    show_importance(r, w, "importance_raw", w->raw);
    view_tensor(r, "curve", VIEW_TENSOR, w->curve, "relative change", "heads removed");
    view_tensor(r, "order", VIEW_TENSOR, w->order, "place", "layer, head");
    kept = tensor_of(DT_U8, 2, (int64_t[]){ w->layers, w->heads }, w->kept);
    view_tensor(r, "kept", VIEW_MEMBERSHIP, kept, "layer", "head");
    reference = run_tensor2(r, DT_F32, r->n, r->dm);
    for (int64_t t = 0; t < tensor_count(&reference) && !run_failed(r); t++)
        tensor_f32(&reference)[t] = (float)((double *)w->full.data)[t];
    view_tensor(r, "reference", VIEW_VECTORS, reference, "token", "channel");
    if (w->p->prune > 0)
        view_guide(r, "curve", true, (double)w->p->prune, "prune");
    if (!run_failed(r))
        show_figures(r, w);
}

static void show_importance(Run *r, const Work *w, const char *name, Tensor values)
{
    const ViewMarks *marks = w->p->prune > 0 ? removed_marks(r, w) : NULL;
    int              before = r->view_count;

    view_tensor(r, name, VIEW_FEATURES, values, "layer", "head");
    if (r->view_count > before)
        r->views[before].marks = marks;
}

/* Crosses on the heads that were removed. */
static const ViewMarks *removed_marks(Run *r, const Work *w)
{
    ViewMarks *marks = run_alloc(r, 1, sizeof(*marks));
    Tensor     table = run_tensor2(r, DT_I32, w->layers, w->heads);

    if (run_failed(r))
        return NULL;
    for (int64_t t = 0; t < w->count; t++)
        tensor_i32(&table)[t] = w->kept[t] ? -1 : (int32_t)(t % w->heads);
    *marks = (ViewMarks){ .name = "removed" };
    marks->cells = pattern_table(r->arena,
                                 (PatternShape){ .heads = 1, .n = w->layers, .m = w->heads },
                                 &table, COMPONENT_OTHER);
    if (!marks->cells)
        run_fail(r, ERR_NOMEM, "head-pruning: not enough memory for a view");
    return marks;
}

static void show_figures(Run *r, const Work *w)
{
    const double *x = w->importance.data;
    int64_t       best = 0, dm = w->stack.shape.dm;

    for (int64_t t = 1; t < w->count; t++)
        best = x[t] > x[best] ? t : best;
    run_figure(r, "change", ((double *)w->curve.data)[w->p->prune]);
    run_figure_int(r, "heads_removed", w->p->prune);
    run_figure_int(r, "parameters_removed", 4 * dm * (dm / w->heads) * w->p->prune);
    run_figure_int(r, "most_important_layer", best / w->heads);
    run_figure_int(r, "most_important_head", best % w->heads);
}

static Flops head_pruning_flops(Run *r, const void *params_)
{
    const Params *p = params_;
    StackShape    s = stack_shape(r, &p->stack, r->dm);
    double        layers = (double)s.layers, heads = (double)s.heads;
    double        layer = stack_attend_flops(&s) + stack_ffn_flops(&s);
    double        project = 2 * (double)s.n * (double)s.dm * (double)s.dm;
    double        known = (double)s.n * (double)s.dm + project + stack_ffn_flops(&s);
    Flops         f = r->inner_flops;

    f.overhead += layers * layer; /* the whole stack */
    f.overhead += p->measure == MEASURE_STACK
                      ? heads * (layers * known + layers * (layers - 1) / 2 * layer)
                      : layers * heads * project;
    f.overhead += layers * heads * (known + (layers - 1) * layer); /* the curve */
    return f;
}

static const StageNote notes[] = {
    { "weights", "The weights of all layers are taken from files or drawn." },
    { "stack", "The whole stack runs once; every layer's input and the heads' contexts are "
               "remembered, because a run without a head of layer l differs only from there on." },
    { "importance", "One layer: each of its heads is taken out alone (its context becomes 0), and "
                    "what changes is measured.  A small number says that nobody would miss it." },
    { "prune", "The heads go one after the other, the least important first, and stay away; the "
               "change of the stack's output is the next point of the curve." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("importance", VIEW_FEATURES, "relative change without the head; crossed out: removed",
         .quantity = "change"),
    VIEW("importance_raw", VIEW_FEATURES, "the same before normalising", .quantity = "change"),
    VIEW("curve", VIEW_TENSOR, "relative change of the output with the first heads of the order "
         "removed", .curve = { .x = "heads removed", .y = "relative change of the output" }),
    VIEW("order", VIEW_TENSOR, "layer and head, the least important first"),
    VIEW("kept", VIEW_MEMBERSHIP, "heads that are left"),
    VIEW("reference", VIEW_VECTORS, "output with all heads"),
    STACK_VIEWS,
    VIEW_PROMISE_END
};

const Mechanism mech_head_pruning = {
    .id = "head-pruning",
    .title = "Head pruning",
    .authors = "Michel, Levy, Neubig; Voita, Talbot, Moiseev, Sennrich, Titov",
    .year = 2019,
    .arxiv = "1905.10650",
    .source = "Michel et al. section 3; Voita et al. 1905.09418",
    .formula = "importance(l,a) = |out without head a of layer l - out| / |out|\n"
               "remove by ascending importance: context_a := 0 before wo",
    .problem = "Many heads do little, yet each costs as much as the others.",
    .idea = "Heads are ordered by how much the output changes without them, and the least "
            "important are removed.  The gradient of a loss, which Michel et al. take instead, is "
            "out of scope here.",
    .price = "The importance depends on the data, and removing many heads hurts.",
    .teaches = "Where few heads carry a layer, the curve stays flat while the others go, and rises "
               "when those are touched that the rest relies on.  Weights that are drawn have no "
               "such heads: their curve rises from the first.",
    .picture = "importance",
    .classes = CLASS_LAB,
    .claim_time = "O(n^2), the attention inside; fewer heads, less of it",
    .claim_memory = "O(n^2), the attention inside",
    .claim_decode = "yes; fewer keys and values to keep",
    .causal = true,
    .needs_x = true,
    .inner = "attention",
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .run = head_pruning_run,
    .flops = head_pruning_flops,
    .decode = decode_around,
};
