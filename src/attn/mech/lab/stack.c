/* stack.c -- see stack.h. */
#include <math.h>
#include <string.h>

#include "attn/mech/lab/stack.h"
#include "attn/run.h"

#define NORM_FLOPS 7 /* mean, variance, scale; gain and bias */
#define GELU_FLOPS 10

const char *const stack_norms[] = { "pre", "none", NULL };
const char *const stack_activations[] = { "relu", "gelu", NULL };

/* Attention by any mechanism of the catalogue, inside another's run.
 *
 * A stack does not know which mechanism it is built around.  The inner run lives in the outer
 * run's arena, under its memory limit, its threads and its seed.  Its charges go to the outer
 * run's current stage, its closed form is added to the outer run's, and its error is the outer
 * run's error.
 */

typedef struct InnerCall {
    const Mechanism *mechanism;
    Tensor q, k, v; /* f32 [h,n,d] */
    Tensor x;       /* f32 [n,dm], the layer's input, for those that read it too */
    Tensor out;     /* f32 [h,n,d], written */
    bool   charge;  /* false: counted nowhere */
    bool   measure; /* fill what follows; makes the inner run's views, charges the same */
    int64_t cells;  /* of its connectivity, summed over heads; -1: it shows none */
    int64_t written; /* numbers that its operations write besides the output */
    int64_t used;   /* bytes of the arena in use at its end; filled always */
} InnerCall;

static bool inner_holds_cells(const Mechanism *m);
static void inner_attend(Run *r, InnerCall *call);

/* ---- sizes and weights ------------------------------------------------------ */

static int64_t layers_of(Run *r, const StackParams *p)
{
    const SizeFrom from[] = { { "wq", p->wq, 3, 0, 1 }, { "wk", p->wk, 3, 0, 1 },
                              { "wv", p->wv, 3, 0, 1 }, { "wo", p->wo, 3, 0, 1 },
                              { "w1", p->w1, 3, 0, 1 }, { "b1", p->b1, 2, 0, 1 },
                              { "w2", p->w2, 3, 0, 1 }, { "b2", p->b2, 2, 0, 1 },
                              { "ln1_gamma", p->ln1_gamma, 2, 0, 1 },
                              { "ln1_beta", p->ln1_beta, 2, 0, 1 },
                              { "ln2_gamma", p->ln2_gamma, 2, 0, 1 },
                              { "ln2_beta", p->ln2_beta, 2, 0, 1 }, { .name = NULL } };

    return layer_size(r, "layers", p->layers, p->layers, from);
}

/* d_ff=0 takes the size from the files, also when the user sets it. */
static int64_t hidden_of(Run *r, const StackParams *p, int64_t dm)
{
    const SizeFrom from[] = { { "w1", p->w1, 3, 2, 1 }, { "b1", p->b1, 2, 1, 1 },
                              { "w2", p->w2, 3, 1, 1 }, { .name = NULL } };

    return layer_size(r, p->d_ff > 0 ? "d_ff" : "hidden units", p->d_ff, 4 * dm, from);
}

StackShape stack_shape(Run *r, const StackParams *p, int64_t dm)
{
    StackShape s = { .layers = layers_of(r, p), .heads = p->heads, .n = r->n, .dm = dm,
                     .norm = p->norm == STACK_PRE, .gelu = p->activation == STACK_GELU };

    s.d_ff = hidden_of(r, p, dm);
    if (dm % s.heads)
        run_fail(r, ERR_PARAM, "%s: heads=%lld does not divide the width dm=%lld of a layer",
                 r->mechanism->id, (long long)s.heads, (long long)dm);
    return s;
}

static Tensor stack_matrix(Run *r, const StackShape *s, const char *name, Tensor given, int64_t in,
                           int64_t out)
{
    return layer_weight(r, name, given, 3, (int64_t[]){ s->layers, in, out },
                        (Init){ INIT_NORMAL, 1 / sqrt((double)in) });
}

static Tensor stack_vector(Run *r, const StackShape *s, const char *name, Tensor given,
                           int64_t size)
{
    return layer_given(r, name, given, 2, (int64_t[]){ s->layers, size });
}

Stack stack_open(Run *r, const StackParams *p, int64_t dm)
{
    Stack       s = { .p = p, .shape = stack_shape(r, p, dm) };
    StackShape *z = &s.shape;

    s.attention = inner_find(r, "attention", p->attention);
    if (run_failed(r))
        return s;
    s.wq = stack_matrix(r, z, "wq", p->wq, dm, dm);
    s.wk = stack_matrix(r, z, "wk", p->wk, dm, dm);
    s.wv = stack_matrix(r, z, "wv", p->wv, dm, dm);
    s.wo = stack_matrix(r, z, "wo", p->wo, dm, dm);
    s.w1 = stack_matrix(r, z, "w1", p->w1, dm, z->d_ff);
    s.b1 = stack_vector(r, z, "b1", p->b1, z->d_ff);
    s.w2 = stack_matrix(r, z, "w2", p->w2, z->d_ff, dm);
    s.b2 = stack_vector(r, z, "b2", p->b2, dm);
    s.ln1_gamma = stack_vector(r, z, "ln1_gamma", p->ln1_gamma, dm);
    s.ln1_beta = stack_vector(r, z, "ln1_beta", p->ln1_beta, dm);
    s.ln2_gamma = stack_vector(r, z, "ln2_gamma", p->ln2_gamma, dm);
    s.ln2_beta = stack_vector(r, z, "ln2_beta", p->ln2_beta, dm);
    return s;
}

/* A vector of one layer, or absent. */
static Tensor vector_of(const Tensor *w, int64_t layer)
{
    return w->data ? tensor_of(DT_F32, 1, &w->shape[1], tensor_f32(w) + layer * w->shape[1])
                   : (Tensor){ .rank = 0 };
}

/* ---- steps of a branch ------------------------------------------------------ */

Tensor stack_tokens(Run *r, const Stack *s)
{
    return run_tensor3(r, DT_F64, 1, s->shape.n, s->shape.dm);
}

Tensor stack_input(Run *r, const Stack *s)
{
    Tensor x = stack_tokens(r, s);

    op_entries(r, r->x, ENTRY_CAST, 0, x);
    return x;
}

void stack_copy(Run *r, Tensor from, Tensor to)
{
    op_entries(r, from, ENTRY_CAST, 0, to);
}

static FlopClass charge_of(const Stack *s)
{
    return s->silent ? FLOP_APART : FLOP_OVERHEAD;
}

static void multiply(Run *r, const Stack *s, Tensor x, Tensor w, Tensor y)
{
    op_gemm(r, x, false, w, false, 1, 0, y, charge_of(s));
}

/* x itself without norm. */
static Tensor stack_normed(Run *r, const Stack *s, Tensor x, Tensor gamma, Tensor beta)
{
    int64_t rows[3] = { s->shape.n, 1, s->shape.dm };
    Tensor  y = x;

    if (!s->shape.norm)
        return x;
    y = stack_tokens(r, s);
    op_standardise64(r, tensor_of(DT_F64, 3, rows, x.data), s->p->ln_eps, gamma, beta,
                     tensor_of(DT_F64, 3, rows, y.data));
    op_charge(r, charge_of(s), NORM_FLOPS * (double)tensor_count(&y));
    return y;
}

/* x w cut into heads, f32 [h,n,dh]. */
static Tensor heads_of(Run *r, const Stack *s, Tensor x, Tensor w)
{
    int64_t   h = s->shape.heads, n = s->shape.n, dh = s->shape.dm / h;
    Tensor    y = run_tensor3(r, DT_F32, h, n, dh), wide;
    ArenaMark mark = arena_mark(r->arena);

    wide = stack_tokens(r, s);
    multiply(r, s, x, w, wide);
    op_entries(r, tensor_split(wide, h), ENTRY_CAST, 0, y);
    arena_release(r->arena, mark);
    return y;
}

static void note_use(const Run *r, Stack *s, int64_t used)
{
    int64_t now = arena_used(r->arena);

    used = used > now ? used : now;
    s->used = s->used > used ? s->used : used;
}

static Tensor narrowed(Run *r, Tensor x)
{
    Tensor y = run_tensor2(r, DT_F32, x.shape[1], x.shape[2]);

    op_entries(r, x, ENTRY_CAST, 0, y);
    return y;
}

void stack_context(Run *r, Stack *s, int64_t layer, Tensor x, Tensor context)
{
    int64_t   h = s->shape.heads, n = s->shape.n, dh = s->shape.dm / h;
    ArenaMark mark = arena_mark(r->arena);
    InnerCall call = { .mechanism = s->attention, .charge = !s->silent };
    Tensor    y;

    if (run_failed(r))
        return;
    y = stack_normed(r, s, x, vector_of(&s->ln1_gamma, layer), vector_of(&s->ln1_beta, layer));
    call.measure = run_wants_views(r) && !s->measured;
    call.q = heads_of(r, s, y, tensor_plane(s->wq, layer));
    call.k = heads_of(r, s, y, tensor_plane(s->wk, layer));
    call.v = heads_of(r, s, y, tensor_plane(s->wv, layer));
    call.out = run_tensor3(r, DT_F32, h, n, dh);
    call.x = narrowed(r, y);
    inner_attend(r, &call);
    op_entries(r, call.out, ENTRY_CAST, 0, tensor_split(context, h));
    if (call.measure) {
        s->measured = true;
        s->cells = call.cells;
        s->written = call.written;
    }
    note_use(r, s, call.used);
    if (!s->keep)
        arena_release(r->arena, mark);
}

void stack_project(Run *r, Stack *s, int64_t layer, Tensor context, Tensor y)
{
    if (!run_failed(r))
        multiply(r, s, context, tensor_plane(s->wo, layer), y);
}

void stack_attend(Run *r, Stack *s, int64_t layer, Tensor x, Tensor y)
{
    ArenaMark mark = arena_mark(r->arena);
    Tensor    context = stack_tokens(r, s);

    stack_context(r, s, layer, x, context);
    stack_project(r, s, layer, context, y);
    if (!s->keep)
        arena_release(r->arena, mark);
}

/* act(hidden + bias); into another tensor when a backward pass needs both. */
static void stack_activate(Run *r, const Stack *s, Tensor bias, Tensor hidden, Tensor to)
{
    if (bias.data)
        op_entries_of(r, hidden, bias, ENTRY_SUM, 1, hidden);
    op_entries(r, hidden, s->shape.gelu ? ENTRY_GELU_ERF : ENTRY_RELU, 0, to);
    op_charge(r, charge_of(s),
              (1 + (s->shape.gelu ? GELU_FLOPS : 1)) * (double)tensor_count(&hidden));
}

void stack_ffn(Run *r, Stack *s, int64_t layer, Tensor x, Tensor y)
{
    int64_t      n = s->shape.n, f = s->shape.d_ff, dm = s->shape.dm;
    Tensor       bias = vector_of(&s->b2, layer);
    ArenaMark    mark = arena_mark(r->arena);
    Tensor       normal, hidden, active;

    if (run_failed(r))
        return;
    normal = stack_normed(r, s, x, vector_of(&s->ln2_gamma, layer), vector_of(&s->ln2_beta, layer));
    hidden = run_tensor3(r, DT_F64, 1, n, f);
    active = s->shape.gelu && s->keep ? run_tensor3(r, DT_F64, 1, n, f) : hidden;
    multiply(r, s, normal, tensor_plane(s->w1, layer), hidden);
    stack_activate(r, s, vector_of(&s->b1, layer), hidden, active);
    multiply(r, s, active, tensor_plane(s->w2, layer), y);
    if (bias.data)
        op_entries_of(r, y, bias, ENTRY_SUM, 1, y);
    op_charge(r, charge_of(s), (double)n * (double)dm);
    note_use(r, s, 0);
    if (!s->keep)
        arena_release(r->arena, mark);
}

void stack_add(Run *r, const Stack *s, Tensor x, Tensor y)
{
    op_entries_of(r, x, y, ENTRY_SUM, 1, x);
    op_charge(r, charge_of(s), (double)tensor_count(&x));
}

void stack_layer(Run *r, Stack *s, int64_t layer, Tensor x)
{
    ArenaMark mark = arena_mark(r->arena);
    Tensor    y = stack_tokens(r, s);

    stack_attend(r, s, layer, x, y);
    stack_add(r, s, x, y);
    if (s->keep) /* the middle */
        y = stack_tokens(r, s);
    stack_ffn(r, s, layer, x, y);
    stack_add(r, s, x, y);
    if (!s->keep)
        arena_release(r->arena, mark);
}

void stack_out(Run *r, Tensor x)
{
    if (!r->out.data)
        r->out = run_tensor3(r, DT_F32, 1, x.shape[1], x.shape[2]);
    op_entries(r, x, ENTRY_CAST, 0, r->out);
}

/* ---- accounts --------------------------------------------------------------- */

double stack_attend_flops(const StackShape *s)
{
    double tokens = (double)s->n * (double)s->dm;

    return tokens * (1 + 8 * (double)s->dm + (s->norm ? NORM_FLOPS : 0));
}

double stack_ffn_flops(const StackShape *s)
{
    double tokens = (double)s->n * (double)s->dm, hidden = (double)s->n * (double)s->d_ff;

    return tokens * (2 + (s->norm ? NORM_FLOPS : 0)) + 4 * hidden * (double)s->dm +
           hidden * (1 + (s->gelu ? GELU_FLOPS : 1));
}

StackBytes stack_bytes(Run *r, const Stack *s)
{
    const StackShape *z = &s->shape;
    double  e = (double)s->p->element_bytes, tokens = (double)z->n * (double)z->dm;
    double  norm = z->norm ? tokens : 0;
    bool    cells = s->cells >= 0 && inner_holds_cells(s->attention);
    double  held = (double)(cells ? s->cells : s->written);
    double  ffn = e * (norm + (z->gelu ? 2 : 1) * (double)z->n * (double)z->d_ff);
    double  attention = e * (norm + 4 * tokens + held);
    StackBytes b = { 0 };

    if (run_failed(r))
        return b;
    if ((double)z->layers * (2 * e * tokens + attention + ffn) >= PARAM_COUNT_MAX / 4)
        run_fail(r, ERR_PARAM, "%s: the accounted bytes are beyond 2^51; give fewer layers or "
                 "smaller sizes", r->mechanism->id);
    if (!cells)
        run_warn(r, "%s: attention=%s holds no n x n weights; in their place the bytes count the "
                 "%.0f numbers that its operations write", r->mechanism->id, s->attention->id,
                 held);
    if (run_failed(r))
        return b;
    b.token = (int64_t)(e * tokens);
    b.attention = (int64_t)attention;
    b.ffn = (int64_t)ffn;
    b.work = b.attention + b.ffn + b.token;
    b.layer = b.work + b.token;
    return b;
}

static bool takes_qkv(const Mechanism *m)
{
    return !m->needs_x && !m->needs_attn && !m->needs_none && !m->inner;
}

static void list_fitting(Text *names)
{
    const Mechanism *m;

    for (size_t i = 0; (m = mechanism_at(i)); i++)
        if (takes_qkv(m))
            text_addf(names, "%s%s", names->length ? ", " : "", m->id);
}

const Mechanism *inner_find(Run *r, const char *name, const char *id)
{
    const Mechanism *m = mechanism_find(id);
    Text             names = { 0 };

    if (m && takes_qkv(m))
        return m;
    list_fitting(&names);
    run_fail(r, ERR_PARAM, "%s: %s=%s %s; choose one of %s", r->mechanism->id, name, id,
             m ? "does not take q, k and v" : "is no mechanism", text_str(&names));
    text_free(&names);
    return NULL;
}

/* Whether it holds a weight for every cell of its connectivity, in its plain form. */
static bool inner_holds_cells(const Mechanism *m)
{
    return !(m->classes & (CLASS_KR | CLASS_LR));
}

/* The given settings of the outer run that belong to the inner mechanism. */
static bool pass_on(const Run *r, const Mechanism *m, Assignments *to, Error *err)
{
    const Assignments *given = r->spec.given;

    for (int i = 0; given && i < given->count; i++) {
        const Assignment *item = &given->items[i];
        const char       *name = mechanism_inner_name(r->mechanism, item->name);

        if (!name || !params_find(m->params, name))
            continue;
        if (!(item->tensor.data ? assignments_set_tensor(to, name, item->tensor, item->text, err)
                                : assignments_set(to, name, item->text, err)))
            return false;
    }
    return true;
}

static void pass_warnings(Run *r, const Run *inner)
{
    const char *text = text_str(&inner->warnings);

    if (!text_has_line(&r->warnings, text))
        text_add(&r->warnings, text);
}

static void add_flops(Run *r, Run *inner)
{
    Flops counted = run_flops(inner), closed;
    Bytes bytes = run_bytes(inner);
    bool  bound = false;

    op_charge(r, FLOP_SCORE, counted.score);
    op_charge(r, FLOP_MIX, counted.mix);
    op_charge(r, FLOP_OVERHEAD, counted.overhead);
    op_traffic(r, bytes.read, bytes.written);
    if (!run_closed_form(inner, &closed, &bound))
        return;
    r->inner_flops = flops_sum(r->inner_flops, closed);
    r->inner_bound = r->inner_bound || bound;
}

static void stack_measure(const Run *inner, InnerCall *call)
{
    const View *cells = run_view(inner, "connectivity");
    double      written = run_bytes(inner).written / (double)sizeof(float);

    call->written = (int64_t)written - tensor_count(&call->out);
    if (call->written < 0)
        call->written = 0;
    call->cells = -1;
    if (cells && cells->support)
        call->cells = pattern_count(cells->support) * inner->h / pattern_heads(cells->support);
}

static void stack_take(Run *r, Run *inner, InnerCall *call)
{
    if (inner->err.code == ERR_NONE && !tensor_same_shape(&inner->out, &call->out))
        run_fail(r, ERR_PARAM, "%s: attention=%s gives an output of another shape than v; it "
                 "cannot stand in a layer", r->mechanism->id, inner->mechanism->id);
    if (inner->err.code != ERR_NONE)
        run_fail(r, inner->err.code, "%s: its attention: %s", r->mechanism->id, inner->err.text);
    if (run_failed(r))
        return;
    op_entries(r, inner->out, ENTRY_CAST, 0, call->out);
    if (call->measure)
        stack_measure(inner, call);
    if (call->charge)
        add_flops(r, inner);
    for (int i = 0; i < inner->tensor_count; i++)
        run_origin(r, inner->tensors[i].name, inner->tensors[i].origin);
    pass_warnings(r, inner);
    r->keys_ahead = r->keys_ahead || inner->keys_ahead;
    r->computed |= inner->computed;
}

static void inner_attend(Run *r, InnerCall *call)
{
    RunSpec     spec = r->spec;
    Assignments given = { 0 };
    ArenaMark   mark;
    Run        *inner;
    Error       err = ERROR_INIT;

    if (run_failed(r))
        return;
    if (!pass_on(r, call->mechanism, &given, &err)) {
        run_fail(r, err.code, "%s: %s", r->mechanism->id, err.text);
        assignments_free(&given);
        return;
    }
    spec.mechanism = call->mechanism;
    spec.q = call->q;
    spec.k = call->k;
    spec.v = call->v;
    spec.x = call->x;
    spec.attn = (Tensor){ .data = NULL };
    spec.scale = 0; /* the heads are the layer's own: 1/sqrt(d) */
    spec.position = NULL;
    spec.given = &given;
    spec.views = call->measure;
    spec.observer = NULL;
    spec.progress = NULL;
    mark = arena_mark(r->arena);
    inner = run_nested(r, &spec);
    run_execute(inner);
    call->used = arena_used(r->arena);
    if (!inner)
        run_fail(r, ERR_NOMEM, "%s: no memory for a run of %s", r->mechanism->id,
                 call->mechanism->id);
    else
        stack_take(r, inner, call);
    run_free(inner);
    arena_release(r->arena, mark);
    assignments_free(&given);
}
