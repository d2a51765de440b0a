/* gpu_groups.c -- attention inside groups, and of few queries, on the device; see attn/ops/ops.h,
 * op_group_attend and op_few_attend. */
#include "attn/cuda/host/gpu_panels.h"

static DeviceTensor lines(Run *r, const Tensor *t)
{
    return gpu_lines(gpu_tensor(r, t));
}

/* Of every head and group; the host reads where they begin. */
static const PanelSpan *group_spans(Run *r, const GroupAttend *g, int64_t heads)
{
    PanelSpan *spans = gpu_list(r, heads * g->groups, sizeof(*spans));

    for (int64_t x = 0; spans && x < heads * g->groups; x++) {
        int64_t        head = x / g->groups, group = x % g->groups;
        const int32_t *first = tensor_head(&g->query_start, head, heads);
        const int32_t *key = tensor_head(&g->key_start, head, heads);

        spans[x] = (PanelSpan){ .head = head, .group = group, .first = first[group],
                                .rows = first[group + 1] - first[group], .first_key = key[group],
                                .keys = key[group + 1] - key[group] };
    }
    return spans;
}

static VisitCall visit_call(Run *r, const Visits *v)
{
    VisitCall call = { 0 };

    if (!v)
        return call;
    return (VisitCall){ .tag = gpu_tensor(r, &v->tag), .chunk = gpu_tensor(r, &v->chunk),
                        .before = v->before, .after = v->after, .ring = v->ring,
                        .cross = v->cross };
}

static PanelInput group_input(Run *r, const GroupAttend *g, const GroupResult *out)
{
    int64_t    heads = out->out.shape[0];
    PanelInput in = { .heads = heads, .q = gpu_tensor(r, &g->q), .k = gpu_tensor(r, &g->k),
                      .v = gpu_tensor(r, &g->v), .scale = g->scale,
                      .query_index = lines(r, &g->query_index),
                      .key_index = lines(r, &g->key_index) };

    in.to = (PanelOut){ .heads = heads, .out = gpu_tensor(r, &out->out),
                        .lse = lines(r, &out->lse) };
    if (g->placed)
        in.to.place = in.query_index;
    in.work = gpu_panels(r, group_spans(r, g, heads), heads * g->groups, g->v.shape[2]);
    return in;
}

void gpu_group_attend(Run *r, const GroupAttend *g, GroupResult *out)
{
    ArenaMark mark = arena_mark(r->arena);
    GroupCall call = {
        .in = group_input(r, g, out),
        .key_start = lines(r, &g->key_start),
        .query_tag = lines(r, &g->query_tag), .key_tag = lines(r, &g->key_tag),
        .query_at = lines(r, &g->query_at), .key_at = lines(r, &g->key_at),
        .causal = g->causal, .self_last = g->self_last, .self_penalty = g->self_penalty,
        .visits = visit_call(r, g->visits),
        .skip = gpu_tensor(r, &g->query_skip),
    };

    if (gpu_has_panels(r, &call.in.work) &&
        gpu_began(r, "group attention", gpu_api(r)->group(&call)) &&
        gpu_join(r, &call.in.work, &call.in.to))
        gpu_done(r, "group attention", 0);
    gpu_computed(r, ARITHMETIC_F32);
    arena_release(r->arena, mark);
}

void gpu_few_attend(Run *r, const FewAttend *in, FewResult *out)
{
    ArenaMark  mark = arena_mark(r->arena);
    int64_t    heads = out->out.shape[0], width = in->v.shape[2];
    PanelSpan *spans = gpu_list(r, heads, sizeof(*spans));
    FewCall    call = { .in = { .heads = heads, .q = gpu_tensor(r, &in->q),
                                .k = gpu_tensor(r, &in->k), .v = gpu_tensor(r, &in->v),
                                .more = gpu_tensor(r, &in->more), .scale = in->scale } };

    width += in->more.data ? in->more.shape[2] : 0;
    call.in.to = (PanelOut){ .heads = heads, .out = gpu_tensor(r, &out->out),
                             .lse = lines(r, &out->lse) };
    if (in->more.data)
        call.in.to.more = gpu_tensor(r, &out->more);
    for (int64_t t = 0; spans && t < heads; t++)
        spans[t] = (PanelSpan){ .head = t, .rows = in->q.shape[1], .keys = in->k.shape[1] };
    call.in.work = gpu_panels(r, spans, heads, width);
    if (gpu_has_panels(r, &call.in.work) &&
        gpu_began(r, "attention of few", gpu_api(r)->few(&call)) &&
        gpu_join(r, &call.in.work, &call.in.to))
        gpu_done(r, "attention of few", 0);
    gpu_computed(r, ARITHMETIC_F32);
    arena_release(r->arena, mark);
}
