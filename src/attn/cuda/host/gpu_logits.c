/* gpu_logits.c -- attention over logits on the device; see attn/ops/ops.h, op_logit_attend. */
#include "attn/cuda/host/gpu_panels.h"

_Static_assert(LOGITS_GIVEN == 0 && LOGITS_UNIFORM == 1 && LOGITS_PRODUCT == 2 &&
               LOGITS_FOLDED == 3 && LOGITS_TILED == 4, "logits.cu counts them like this");

/* Panels of rows with the columns that the last of them sees. */
static const PanelSpan *row_spans(Run *r, const LogitAttend *in, int64_t heads, int64_t *count)
{
    int64_t    m = in->v.shape[1], panels = (in->n + PANEL_ROWS - 1) / PANEL_ROWS;
    PanelSpan *spans = gpu_list(r, heads * panels, sizeof(*spans));

    *count = heads * panels;
    for (int64_t x = 0; spans && x < *count; x++) {
        int64_t first = x % panels * PANEL_ROWS, left = in->n - first;
        int64_t rows = left < PANEL_ROWS ? left : PANEL_ROWS, keys = m;

        if (in->causal && first + rows + in->offset < m)
            keys = first + rows + in->offset;
        spans[x] = (PanelSpan){ .head = x / panels, .first = first, .rows = rows,
                                .keys = keys > 0 ? keys : 0 };
    }
    return spans;
}

void gpu_logit_attend(Run *r, const LogitAttend *in, LogitResult *out)
{
    ArenaMark        mark = arena_mark(r->arena);
    int64_t          heads = out->out.shape[0], count;
    const PanelSpan *spans = row_spans(r, in, heads, &count);
    LogitsCall       call = {
        .heads = heads, .kind = (int32_t)in->kind,
        .left = gpu_tensor(r, &in->left), .right = gpu_tensor(r, &in->right),
        .bias = gpu_lines(gpu_tensor(r, &in->bias)), .turned = in->turned, .seed = in->seed,
        .stream = in->stream, .bound = in->bound, .n = in->n, .m = in->v.shape[1],
        .v = gpu_tensor(r, &in->v), .causal = in->causal, .offset = in->offset,
    };

    call.to = (PanelOut){ .heads = heads, .out = gpu_tensor(r, &out->out),
                          .lse = gpu_lines(gpu_tensor(r, &out->lse)) };
    call.work = gpu_panels(r, spans, count, in->v.shape[2]);
    if (gpu_has_panels(r, &call.work) &&
        gpu_began(r, "attention over logits", gpu_api(r)->logits(&call)) &&
        gpu_join(r, &call.work, &call.to))
        gpu_done(r, "attention over logits", 0);
    gpu_computed(r, ARITHMETIC_F32);
    arena_release(r->arena, mark);
}
