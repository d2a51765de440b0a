/* experts_ffn.c -- what the experts compute; see experts.h.
 *
 *     FFN_e(x) = (act(x w1_e + b1_e) [* x w_gate_e]) w2_e + b2_e
 *
 * Every expert works on the tokens placed with it and on no others, a tile of
 * them at a time.
 */
#include "attn/mech/routing/experts_parts.h"

#define TILE 4096 /* tokens of an expert at a time */

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static const Tensor none = { .rank = 0 };

/* hidden <- act(hidden + b1) [* gate] */
static void activate(Run *r, const Experts *s, Tensor hidden, Tensor gate, Tensor bias)
{
    bool relu = s->p->activation == EXPERT_RELU;

    if (!relu)
        op_gelu(r, hidden, bias.data);
    if (relu && bias.data)
        op_entries_of(r, hidden, bias, ENTRY_SUM, 1, hidden);
    if (relu)
        op_entries(r, hidden, ENTRY_RELU, 0, hidden);
    if (gate.data)
        op_entries_of(r, hidden, gate, ENTRY_PRODUCT, 1, hidden);
}

/* An expert's slice of weights [experts,a,b] as [1,a,b]. */
static Tensor slice_of(Tensor weights, int64_t expert)
{
    int64_t shape[3] = { 1, weights.shape[1], weights.shape[2] };

    return tensor_of(DT_F32, 3, shape, tensor_f32(&weights) + expert * shape[1] * shape[2]);
}

static Tensor row_of(const Tensor *bias, int64_t expert)
{
    return bias->data ? tensor_of(DT_F32, 1, &bias->shape[1],
                                  tensor_f32(bias) + expert * bias->shape[1])
                      : none;
}

static Tensor gather(Run *r, const Experts *s, int64_t first, int64_t count)
{
    Tensor index = run_tensor2(r, DT_I32, 1, count);

    for (int64_t i = 0; i < count && !run_failed(r); i++)
        tensor_i32(&index)[i] = (int32_t)(s->entry[first + i] / s->choices);
    return op_gather(r, tensor_with_rank(r->x, 3), index);
}

/* Entries [first, first+count), all of one expert. */
static void expert_tile(Run *r, Experts *s, int64_t expert, int64_t first, int64_t count)
{
    Tensor x = gather(r, s, first, count), gate = none, bias, y;
    Tensor hidden = run_tensor3(r, DT_F32, 1, count, s->ff);

    op_gemm(r, x, false, slice_of(s->w1, expert), false, 1, 0, hidden, FLOP_OVERHEAD);
    if (s->p->gated) {
        gate = run_tensor3(r, DT_F32, 1, count, s->ff);
        op_gemm(r, x, false, slice_of(s->w_gate, expert), false, 1, 0, gate, FLOP_OVERHEAD);
    }
    if (run_failed(r))
        return;
    activate(r, s, hidden, gate, row_of(&s->b1, expert));
    y = tensor_of(DT_F32, 3, (int64_t[]){ 1, count, s->dm },
                  tensor_f32(&s->y) + first * s->dm);
    op_gemm(r, hidden, false, slice_of(s->w2, expert), false, 1, 0, y, FLOP_OVERHEAD);
    bias = row_of(&s->b2, expert);
    if (bias.data)
        op_entries_of(r, y, bias, ENTRY_SUM, 1, y);
}

/* Each token's places that an expert took. */
static SumLists places(Run *r, const Experts *s)
{
    int64_t  at = 0, placed = experts_placed(s);
    int64_t *start = run_alloc(r, s->n + 1, sizeof(*start));
    int32_t *entry = run_alloc(r, placed, sizeof(*entry));
    float   *weight = run_alloc(r, placed, sizeof(*weight));

    for (int64_t i = 0; i < s->n && !run_failed(r); i++) {
        start[i] = at;
        for (int64_t x = i * s->choices; x < (i + 1) * s->choices; x++)
            if (s->row[x] >= 0) {
                entry[at] = (int32_t)s->row[x];
                weight[at++] = (float)s->gate[x];
            }
    }
    if (!run_failed(r))
        start[s->n] = at;
    return (SumLists){ .x = tensor_with_rank(s->y, 3), .start = start, .entry = entry,
                       .weight = weight, .heads = 1, .n = s->n };
}

/* y_i = sum of gate * what the expert made of it. */
static void combine(Run *r, const Experts *s)
{
    SumLists in;

    run_stage(r, "combine");
    in = places(r, s);
    r->out = op_sum_lists(r, &in);
    op_charge(r, FLOP_MIX, 2 * (double)experts_placed(s) * (double)s->dm);
    op_traffic(r, (double)tensor_bytes(&s->y), 0);
}

void experts_compute(Run *r, Experts *s)
{
    run_stage(r, "expert");
    if (run_failed(r))
        return;
    s->y = run_tensor2(r, DT_F32, experts_placed(s), s->dm);
    for (int64_t e = 0; e < s->experts; e++)
        for (int64_t first = s->start[e]; first < s->start[e + 1] && !run_failed(r);
             first += TILE) {
            ArenaMark mark = arena_mark(r->arena);

            expert_tile(r, s, e, first, min64(TILE, s->start[e + 1] - first));
            arena_release(r->arena, mark);
        }
    combine(r, s);
}
