/* extra_tokens.c -- [extra, tokens] and back; see extra_tokens.h. */
#include "attn/run.h"

#include <string.h>

Tensor extra_tokens_stack(Run *r, Tensor extra, Tensor tokens)
{
    int64_t g = extra.shape[1], n = tokens.shape[1];
    Tensor  out = run_tensor3(r, DT_F32, r->h, g + n, tokens.shape[2]);

    if (run_failed(r))
        return out;
    if (g > 0)
        op_entries(r, extra, ENTRY_CAST, 0, tensor_rows(out, 0, g));
    op_entries(r, tokens, ENTRY_CAST, 0, tensor_rows(out, g, n));
    return out;
}

Tensor extra_tokens_rows(Run *r, Tensor all, int64_t from, int64_t count)
{
    Tensor out = run_tensor3(r, DT_F32, r->h, count, all.shape[2]);

    if (!run_failed(r))
        op_entries(r, tensor_rows(all, from, count), ENTRY_CAST, 0, out);
    return out;
}

void extra_tokens_check(Run *r, const char *form)
{
    const Position *position = r->spec.position;

    if (position && position->class_ == POSITION_BIAS)
        run_fail(r, ERR_USAGE,
                 "position=%s is not supported by %s with %s: the extra tokens have no "
                 "position; sinusoidal and rope are",
                 position->id, r->mechanism->id, form);
}

void extra_tokens_prepend(Run *r, AttendInput *in, Tensor q, Tensor k, Tensor v)
{
    AttendInput tokens = *in;
    bool        moved = r->spec.position && run_wants_views(r); /* what position_bias shows */

    in->q = extra_tokens_stack(r, q, tokens.q);
    in->k = extra_tokens_stack(r, k, tokens.k);
    in->v = extra_tokens_stack(r, v, tokens.v);
    in->raw_q = moved ? extra_tokens_stack(r, q, tokens.raw_q) : in->q;
    in->raw_k = moved ? extra_tokens_stack(r, k, tokens.raw_k) : in->k;
}

Pattern *extra_tokens_cells(Run *r, int64_t g, Pattern *tokens)
{
    int64_t      total = g + r->n;
    PatternShape s = { .heads = r->h, .n = total, .m = total };
    uint8_t     *flags = run_alloc(r, total, 1);
    Pattern     *cells;

    if (!flags)
        return NULL;
    memset(flags, 0, (size_t)total);
    memset(flags, 1, (size_t)g);
    cells =
        pattern_union(r->arena, pattern_rows(r->arena, s, flags), pattern_cols(r->arena, s, flags));
    return pattern_union(r->arena, cells, pattern_offset(r->arena, s, g, g, tokens));
}

void extra_tokens_split(Run *r, Tensor all, int64_t g, const char *view, const char *rows)
{
    r->out = extra_tokens_rows(r, all, g, r->n);
    if (run_wants_views(r))
        view_tensor(r, view, VIEW_VECTORS, extra_tokens_rows(r, all, 0, g), rows, "value");
}
