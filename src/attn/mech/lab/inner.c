/* inner.c -- see inner.h. */
#include "attn/mech/lab/inner.h"

#include <string.h>

#include "attn/run.h"

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

bool inner_holds_cells(const Mechanism *m)
{
    return !(m->classes & (CLASS_KR | CLASS_LR));
}

/* Of what the outer run was given, what is the inner mechanism's and not its own. */
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

    if (inner->warnings.length && !strstr(text_str(&r->warnings), text))
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

static void measure(const Run *inner, InnerCall *call)
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

static void take(Run *r, Run *inner, InnerCall *call)
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
        measure(inner, call);
    if (call->charge)
        add_flops(r, inner);
    for (int i = 0; i < inner->tensor_count; i++)
        run_origin(r, inner->tensors[i].name, inner->tensors[i].origin);
    pass_warnings(r, inner);
    r->keys_ahead = r->keys_ahead || inner->keys_ahead;
    r->computed |= inner->computed;
}

void inner_attend(Run *r, InnerCall *call)
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
    call->used = arena_used(r->arena);
    if (!inner)
        run_fail(r, ERR_NOMEM, "%s: no memory for a run of %s", r->mechanism->id,
                 call->mechanism->id);
    else
        take(r, inner, call);
    run_free(inner);
    arena_release(r->arena, mark);
    assignments_free(&given);
}
