/* act.c -- adaptive computation time: every token decides how often it is transformed.
 *
 *     cur = state (+ time_t);  new = layer(cur);  p = sigmoid(w . cur + b)
 *     a token halts when its sum of p passes 1 - epsilon; its last share is what is missing to 1
 *     universal:  acc = u new + (1 - u) acc        graves:  acc = acc + u new, p from new
 *
 * Step t uses layer min(t, L-1), so one layer makes the recurrent Universal Transformer.  Halted
 * tokens go on being keys and values.
 *
 * (Graves section 2; Dehghani et al. section 2.2, signs and accumulation as in the published
 * tensor2tensor model; attn/mech/lab/stack.h is the layer.)
 */
#include "attn/mech/lab/stack.h"
#include "attn/run.h"

#include <math.h>
#include <string.h>

enum { VARIANT_UNIVERSAL, VARIANT_GRAVES };
static const char *const variants[] = { "universal", "graves", NULL };

#define SNAPSHOTS 16 /* steps that are shown */

typedef struct Params {
    StackParams stack;
    int64_t     max_steps;
    double      epsilon, b_halt;
    int         variant;
    bool        freeze_halted;
    Tensor      w_halt, time;
} Params;

static const Param params[] = {
    STACK_PARAMS,
    PARAM_INT(Params, max_steps, 6, 1, RUN_MAX_STAGES - 8, "steps T at most"),
    PARAM_FLOAT(Params, epsilon, 0.01, 0, 1, "a token halts above 1 - epsilon"),
    PARAM_ENUM(Params, variant, VARIANT_UNIVERSAL, variants,
               "halting before the layer, or as Graves: after it, shares summing to 1"),
    PARAM_BOOL(Params, freeze_halted, true,
               "a halted token keeps its state; false: only its output is frozen"),
    PARAM_TENSOR(Params, w_halt, "[dm]", "N(0, 1/dm)", "weights of the halting unit"),
    PARAM_FLOAT(Params, b_halt, 1, -1e30, 1e30, "its bias; large: everything halts at once"),
    PARAM_TENSOR(Params, time, "[T,dm]", "nothing is added",
                 "added to the state at the start of each step"),
    PARAM_END
};

typedef struct Work {
    const Params *p;
    Stack    stack;
    Tensor   w_halt, time;        /* f32 [dm], [T,dm] or data NULL */
    Tensor   state, next, output; /* f64 [1,n,dm] */
    double  *sum, *share, *p_now; /* [n] cum, u, p */
    uint8_t *running;             /* [n] before the step */
    int64_t  steps;
    Tensor   halting, update, cumulative, active; /* [T,n] f64, f64, f64, u8 */
    Tensor   updates, remainder, ponder;          /* [n] i32, f64, f64 */
} Work;

static void act_prepare(Run *r, Work *w);
static void act_prepare_views(Run *r, Work *w);
static void zero(Run *r, Tensor t);
static bool any_running(const Work *w, int64_t n);
static void one_step(Run *r, Work *w, uint8_t *ran);
static void begin_step(Run *r, Work *w);
static void halting_unit(Run *r, Work *w, Tensor x);
static void freeze(Run *r, const Work *w, const uint8_t *ran);
static void decide(Run *r, Work *w);
static bool halts(const Work *w, double sum);
static void note_step(const Work *w, int64_t n);
static void accumulate(Run *r, const Work *w);
static double mean_sum(const Run *r, const Work *w);
static void show_step(Run *r, const Work *w);
static void act_show_steps(Run *r, int64_t steps, const char *name, ViewKind kind, Tensor t,
                           const ViewLoad *load, const Pattern *shown);
static const Pattern *running_cells(Run *r, const Work *w, int64_t steps);
static void act_show(Run *r, Work *w);
static const ViewLoad *step_load(Run *r, const Work *w);
static void ponder_times(Run *r, Work *w);
static void act_show_figures(Run *r, const Work *w);
static double steps_taken(const Run *r);

static void act_run(Run *r, const void *params_)
{
    const Params *p = params_;
    Work          w = { .p = p };
    uint8_t      *ran;

    run_stage(r, "weights");
    act_prepare(r, &w);
    ran = run_alloc(r, r->n, 1);
    for (; !run_failed(r) && w.steps < p->max_steps && any_running(&w, r->n); w.steps++) {
        one_step(r, &w, ran);
        show_step(r, &w);
    }
    run_stage(r, "output");
    stack_out(r, w.output);
    act_show(r, &w);
}

static void act_prepare(Run *r, Work *w)
{
    const Params *p = w->p;

    w->stack = stack_open(r, &p->stack, r->dm);
    w->w_halt = layer_weight(r, "w_halt", p->w_halt, 1, (int64_t[]){ r->dm },
                             (Init){ INIT_NORMAL, 1 / sqrt((double)r->dm) });
    w->time = layer_given(r, "time", p->time, 2, (int64_t[]){ p->max_steps, r->dm });
    w->sum = run_alloc(r, 3 * r->n, sizeof(*w->sum));
    w->running = run_alloc(r, r->n, 1);
    w->updates = run_tensor1(r, DT_I32, r->n);
    w->remainder = run_tensor1(r, DT_F64, r->n);
    act_prepare_views(r, w);
    if (run_failed(r))
        return;
    w->share = w->sum + r->n;
    w->p_now = w->share + r->n;
    memset(w->sum, 0, (size_t)r->n * sizeof(*w->sum));
    memset(w->running, 1, (size_t)r->n);
    zero(r, w->updates);
    zero(r, w->remainder);
    w->state = stack_input(r, &w->stack);
    w->next = stack_tokens(r, &w->stack);
    w->output = stack_tokens(r, &w->stack);
    zero(r, w->output);
}

static void act_prepare_views(Run *r, Work *w)
{
    int64_t most = w->p->max_steps;

    if (!run_wants_views(r))
        return;
    w->halting = run_tensor2(r, DT_F64, most, r->n);
    w->update = run_tensor2(r, DT_F64, most, r->n);
    w->cumulative = run_tensor2(r, DT_F64, most, r->n);
    w->active = run_tensor2(r, DT_U8, most, r->n);
}

static void zero(Run *r, Tensor t)
{
    if (!run_failed(r))
        memset(t.data, 0, (size_t)tensor_bytes(&t));
}

/* ---- one step --------------------------------------------------------------- */

static bool any_running(const Work *w, int64_t n)
{
    return memchr(w->running, 1, (size_t)n) != NULL;
}

static void one_step(Run *r, Work *w, uint8_t *ran)
{
    int64_t last = w->stack.shape.layers - 1;
    bool    before = w->p->variant == VARIANT_UNIVERSAL;

    run_iteration(r, "step", w->steps);
    if (run_failed(r))
        return;
    memcpy(ran, w->running, (size_t)r->n);
    begin_step(r, w);
    if (before)
        halting_unit(r, w, w->next);
    stack_layer(r, &w->stack, w->steps < last ? w->steps : last, w->next);
    freeze(r, w, ran);
    if (!before)
        halting_unit(r, w, w->next);
    decide(r, w);
    accumulate(r, w);
    stack_copy(r, w->next, w->state);
    if (!run_failed(r))
        run_trace(r, "mean cumulative probability", mean_sum(r, w));
}

/* next = state + time_t */
static void begin_step(Run *r, Work *w)
{
    const float *time = w->time.data ? tensor_f32(&w->time) + w->steps * r->dm : NULL;

    stack_copy(r, w->state, w->next);
    if (time)
        op_entries_of(r, w->next, tensor_of(DT_F32, 1, &r->dm, (float *)(uintptr_t)time), ENTRY_SUM,
                      1, w->next);
    if (time)
        op_charge(r, FLOP_OVERHEAD, (double)r->n * (double)r->dm);
}

/* p of every running token from its row of x. */
static void halting_unit(Run *r, Work *w, Tensor x)
{
    ArenaMark mark = arena_mark(r->arena);
    Tensor    p = run_tensor3(r, DT_F64, 1, r->n, 1);

    op_gemm(r, x, false, tensor_of(DT_F32, 3, (int64_t[]){ 1, r->dm, 1 }, w->w_halt.data), false, 1,
            0, p, FLOP_APART);
    op_entries(r, p, ENTRY_SHIFT, w->p->b_halt, p);
    op_entries(r, p, ENTRY_SIGMOID, 0, p);
    op_wait(r, "the host decides which tokens halt");
    for (int64_t i = 0; i < r->n && !run_failed(r); i++)
        w->p_now[i] = w->running[i] ? ((double *)p.data)[i] : 0;
    arena_release(r->arena, mark);
    op_charge(r, FLOP_OVERHEAD, (double)r->n * (2 * (double)r->dm + 4));
}

/* Tokens that had halted before the step stay as they were. */
static void freeze(Run *r, const Work *w, const uint8_t *ran)
{
    ArenaMark mark = arena_mark(r->arena);
    Tensor    halted = run_tensor3(r, DT_I32, 1, r->n, 1);

    for (int64_t i = 0; i < r->n && !run_failed(r); i++)
        tensor_i32(&halted)[i] = w->p->freeze_halted && !ran[i];
    if (w->p->freeze_halted)
        op_entries_of(r, w->state, halted, ENTRY_WHERE, 0, w->next);
    arena_release(r->arena, mark);
}

/* Shares of this step; afterwards `running` holds the tokens that continue. */
static void decide(Run *r, Work *w)
{
    if (run_failed(r))
        return;
    if (w->active.data)
        memcpy(tensor_u8(&w->active) + w->steps * r->n, w->running, (size_t)r->n);
    for (int64_t i = 0; i < r->n; i++) {
        w->share[i] = 0;
        if (!w->running[i])
            continue;
        tensor_i32(&w->updates)[i]++;
        if (halts(w, w->sum[i] + w->p_now[i])) {
            w->share[i] = ((double *)w->remainder.data)[i] = 1 - w->sum[i];
            w->sum[i] = 1;
            w->running[i] = 0;
        } else {
            w->share[i] = w->p_now[i];
            w->sum[i] += w->p_now[i];
        }
    }
    note_step(w, r->n);
}

static bool halts(const Work *w, double sum)
{
    double threshold = 1 - w->p->epsilon;

    if (w->p->variant == VARIANT_UNIVERSAL)
        return sum > threshold;
    return sum >= threshold || w->steps == w->p->max_steps - 1;
}

static void note_step(const Work *w, int64_t n)
{
    size_t row = (size_t)n * sizeof(double);

    if (!w->halting.data)
        return;
    memcpy((double *)w->halting.data + w->steps * n, w->p_now, row);
    memcpy((double *)w->update.data + w->steps * n, w->share, row);
    memcpy((double *)w->cumulative.data + w->steps * n, w->sum, row);
}

static void accumulate(Run *r, const Work *w)
{
    bool      fading = w->p->variant == VARIANT_UNIVERSAL;
    ArenaMark mark = arena_mark(r->arena);
    Tensor    share = tensor_of(DT_F64, 3, (int64_t[]){ 1, r->n, 1 }, w->share);
    Tensor    taken = stack_tokens(r, &w->stack);

    op_entries_of(r, w->next, share, ENTRY_PRODUCT, 1, taken);
    op_entries_of(r, taken, w->output, ENTRY_SUM, 1, taken);
    if (fading) {
        op_entries_of(r, w->output, share, ENTRY_PRODUCT, 1, w->output);
        op_entries_of(r, taken, w->output, ENTRY_SUM, -1, w->output);
    } else {
        op_entries(r, taken, ENTRY_CAST, 0, w->output);
    }
    arena_release(r->arena, mark);
    op_charge(r, FLOP_OVERHEAD, 3 * (double)r->n * (double)r->dm);
}

static double mean_sum(const Run *r, const Work *w)
{
    double sum = 0;

    for (int64_t i = 0; i < r->n; i++)
        sum += w->sum[i];
    return sum / (double)r->n;
}

/* ---- views ------------------------------------------------------------------ */

/* The halting probabilities so far, a row for each step. */
static void show_step(Run *r, const Work *w)
{
    int64_t steps = w->steps + 1;

    if (run_wants_views(r) && !run_failed(r) && steps <= SNAPSHOTS)
        act_show_steps(r, steps, "halting", VIEW_FEATURES, w->halting, NULL,
                       running_cells(r, w, steps));
}

static void act_show_steps(Run *r, int64_t steps, const char *name, ViewKind kind, Tensor t,
                           const ViewLoad *load, const Pattern *shown)
{
    int before = r->view_count;

    t.shape[0] = steps;
    view_tensor(r, name, kind, t, "step", "token");
    if (r->view_count == before)
        return;
    r->views[before].load = load;
    r->views[before].shown = shown;
}

/* Tokens that ran in each of the first steps: only those have a p and a share. */
static const Pattern *running_cells(Run *r, const Work *w, int64_t steps)
{
    Tensor   table = run_tensor2(r, DT_I32, steps, r->n);
    Pattern *cells = NULL;

    for (int64_t t = 0; t < steps * r->n && !run_failed(r); t++)
        tensor_i32(&table)[t] = tensor_u8(&w->active)[t] ? (int32_t)(t % r->n) : -1;
    if (!run_failed(r))
        cells = pattern_table(r->arena, (PatternShape){ .heads = 1, .n = steps, .m = r->n },
                              &table, COMPONENT_OTHER);
    if (!cells)
        run_fail(r, ERR_NOMEM, "act: not enough memory for a view");
    return cells;
}

static void act_show(Run *r, Work *w)
{
    const ViewLoad *load;
    const Pattern  *ran;

    if (!run_wants_views(r))
        return;
    load = step_load(r, w);
    ran = running_cells(r, w, w->steps);
    ponder_times(r, w);
    act_show_steps(r, w->steps, "halting", VIEW_FEATURES, w->halting, load, ran);
    act_show_steps(r, w->steps, "update_weights", VIEW_FEATURES, w->update, load, ran);
    act_show_steps(r, w->steps, "active", VIEW_MEMBERSHIP, w->active, load, NULL);
    act_show_steps(r, w->steps, "cumulative", VIEW_MASK, w->cumulative, load, NULL);
    view_tensor(r, "updates", VIEW_COUNT, w->updates, "steps", "token");
    view_tensor(r, "remainder", VIEW_MASK, w->remainder, "share", "token");
    view_tensor(r, "ponder", VIEW_FEATURES, w->ponder, "steps", "token");
    if (!run_failed(r))
        act_show_figures(r, w);
}

/* Bars under the tokens: how many steps each took. */
static const ViewLoad *step_load(Run *r, const Work *w)
{
    ViewLoad *load = run_alloc(r, 1, sizeof(*load));

    if (load)
        *load = (ViewLoad){ .used = w->updates, .limit = w->p->max_steps, .used_name = "steps",
                            .limit_name = "at most" };
    return load;
}

static void ponder_times(Run *r, Work *w)
{
    w->ponder = run_tensor1(r, DT_F64, r->n);
    for (int64_t i = 0; i < r->n && !run_failed(r); i++)
        ((double *)w->ponder.data)[i] = (double)tensor_i32(&w->updates)[i] +
                                        ((double *)w->remainder.data)[i];
}

static void act_show_figures(Run *r, const Work *w)
{
    double  n = (double)r->n, updates = 0, ponder = 0;
    int64_t never = 0;

    for (int64_t i = 0; i < r->n; i++) {
        updates += (double)tensor_i32(&w->updates)[i];
        ponder += ((double *)w->ponder.data)[i];
        never += w->running[i];
    }
    run_figure_int(r, "steps", w->steps);
    run_figure(r, "mean_ponder", ponder / n);
    run_figure(r, "mean_updates", updates / n);
    run_figure_int(r, "token_steps", (int64_t)updates);
    run_figure(r, "saved_fraction", 1 - updates / ((double)w->p->max_steps * n));
    run_figure_int(r, "never_halted", never);
}

/* FLOPs if no token ever halts. */
static Flops act_flops(Run *r, const void *params_)
{
    const Params *p = params_;
    StackShape    s = stack_shape(r, &p->stack, r->dm);
    double        n = (double)r->n, dm = (double)r->dm, most = (double)p->max_steps;
    double        more = most / fmax(1, steps_taken(r));
    Flops         f = r->inner_flops;

    f.score *= more;
    f.mix *= more;
    f.overhead *= more;
    f.overhead += most * (stack_attend_flops(&s) + stack_ffn_flops(&s) + n * (2 * dm + 4) +
                          3 * n * dm + (p->time.data ? n * dm : 0));
    return f;
}

static double steps_taken(const Run *r)
{
    double steps = 0;

    for (int i = 0; i < r->stage_count; i++)
        steps += !strcmp(r->stages[i].name, "step");
    return steps;
}

static const StageNote notes[] = {
    { "weights", "The weights of the layers and of the halting unit are taken from files or "
                 "drawn." },
    { "step", "One more turn for the tokens that still run.  The halting unit looks at each and "
              "adds to its sum; who passes 1 - epsilon gets what is missing to 1 as the last "
              "share and is done, but goes on being seen by the others." },
    { "output", "What the steps left behind of each token, weighed by their shares." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("halting", VIEW_FEATURES, "halting probability of each token at each step; 0: it had "
         "halted", .quantity = "probability"),
    VIEW("update_weights", VIEW_FEATURES, "share of the step in the output", .quantity = "share"),
    VIEW("active", VIEW_MEMBERSHIP, "tokens that ran in the step"),
    VIEW("cumulative", VIEW_MASK, "sum of halting probabilities", .quantity = "probability"),
    VIEW("updates", VIEW_COUNT, "steps that each token took",
         .curve = { .x = "token", .y = "steps", .mark = CURVE_BARS }),
    VIEW("remainder", VIEW_MASK, "last share; 0: the token never halted",
         .quantity = "share", .curve = { .x = "token", .y = "last share", .mark = CURVE_BARS }),
    VIEW("ponder", VIEW_FEATURES, "ponder time: updates + remainder",
         .quantity = "steps", .curve = { .x = "token", .y = "ponder time", .mark = CURVE_BARS }),
    VIEW("w_halt", VIEW_TENSOR, "drawn halting unit", .maybe = true),
    STACK_VIEWS,
    VIEW_PROMISE_END
};

const Mechanism mech_act = {
    .id = "act",
    .title = "Adaptive computation time",
    .authors = "Graves; Dehghani, Gouws, Vinyals, Uszkoreit, Kaiser",
    .year = 2016,
    .arxiv = "1603.08983",
    .source = "Graves section 2; Universal Transformers (1807.03819) section 2.2",
    .formula = "p = sigmoid(w . state + b);  a token halts when its sum of p > 1 - epsilon\n"
               "share u = p while it runs, 1 - sum at the end;  acc = u new + (1 - u) acc",
    .problem = "Easy tokens get as many steps as hard ones.",
    .idea = "Each token decides after each step whether to halt.",
    .price = "Tokens that halted are still read by others, and uneven depths are hard to run "
             "together.",
    .teaches = "Depth becomes a choice of each token: columns of different height.  What is saved "
               "is work done token by token; a halted token is still a key and a value.",
    .picture = "halting",
    .classes = CLASS_LAB | CLASS_SP,
    .claim_time = "O(n^2) for each step, the attention inside",
    .claim_memory = "O(n^2), the attention inside",
    .claim_decode = "yes",
    .causal = true,
    .needs_x = true,
    .inner = "attention",
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .run = act_run,
    .flops = act_flops,
    .decode = decode_around,
    .flops_bound = true,
};
