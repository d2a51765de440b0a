/* squeeze.c -- see squeeze.h. */
#include "attn/run.h"

#include <math.h>

SlotCover squeeze_cover(SqueezeWay way)
{
    return way == SQUEEZE_USED      ? COVER_ONE
           : way == SQUEEZE_DILATED ? COVER_SPREAD
                                    : COVER_GROUP;
}

double squeeze_flops(SqueezeWay way, bool matrices, int64_t rows, double width)
{
    double e = (double)rows;

    if (way == SQUEEZE_USED)
        return e * log2(e);
    if (matrices)
        return 2 * e * width * width;
    return (squeeze_convolves(way) ? 2 : 1) * e * width;
}

/* ---- the convolution's weights ------------------------------------------------------ */

static double *taps_of(Run *r, int64_t ratio, Tensor given)
{
    int64_t count = given.data || ratio < r->n ? ratio : r->n; /* no row has more */
    Tensor  t = { .rank = 0 };
    Rng     rng = run_rng(r, "conv_weight");
    double *taps;

    if (given.data) {
        t = layer_given(r, "conv_weight", given, 1, &count);
    } else {
        t = run_tensor1(r, DT_F32, count);
        run_draw(r, &rng, (Init){ INIT_NORMAL, 0.1 / (double)ratio }, t);
        for (int64_t u = 0; u < count && !run_failed(r); u++)
            tensor_f32(&t)[u] += (float)(1 / (double)ratio);
        if (!run_failed(r))
            view_drawn(r, "conv_weight", t);
    }
    taps = run_alloc(r, count, sizeof(*taps));
    for (int64_t u = 0; u < count && !run_failed(r); u++)
        taps[u] = (double)tensor_f32(&t)[u];
    return taps;
}

void squeeze_weights(Run *r, Squeeze *s, bool matrices, Tensor weight, Tensor bias)
{
    int64_t dm = r->dm;

    if (matrices) {
        s->full = layer_weight(r, "conv_weight", weight, 3, (int64_t[]){ s->ratio, dm, dm },
                               (Init){ INIT_UNIFORM, 1 / sqrt((double)s->ratio * (double)dm) });
        s->full = tensor_of(DT_F32, 3, (int64_t[]){ 1, s->ratio * dm, dm }, s->full.data);
        s->bias = layer_given(r, "conv_bias", bias, 1, &dm);
    } else if (squeeze_convolves(s->way)) {
        s->taps = taps_of(r, s->ratio, weight);
    }
}

/* ---- squeezing ---------------------------------------------------------------------- */

/* The tokens of each slot of the batch, in numbers of rows of `from`. */
static void squeeze_windows(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to)
{
    const CompressedMemory *c = s->memory;
    int64_t                 slots = c->made[t + 1] - c->made[t];
    int32_t                *first = run_alloc(r, 2 * slots, sizeof(*first));
    PoolWindows             in = { .x = from, .first = first, .end = first ? first + slots : NULL };

    in.kind = s->way == SQUEEZE_MAX ? WINDOW_MAX : WINDOW_MEAN;
    for (int64_t g = 0; g < slots && !run_failed(r); g++) {
        first[g] = (int32_t)c->first[c->made[t] + g];
        first[slots + g] = s->way == SQUEEZE_USED ? first[g] + 1 : (int32_t)c->end[c->made[t] + g];
    }
    op_pool_windows(r, &in, to);
}

/* Groups are as far apart as they are long; dilated, their tokens are two apart. */
static void squeeze_taps(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to)
{
    int64_t first, end, count = s->ratio < r->n ? s->ratio : r->n;
    TapSums in = { .groups = 1, .step = s->ratio, .apart = s->way == SQUEEZE_DILATED ? 2 : 1,
                   .taps = tensor_of(DT_F64, 3, (int64_t[]){ 1, 1, count }, s->taps) };

    compressed_memory_batch(s->memory, t, &first, &end);
    in.x = tensor_rows(from, first, end - first);
    op_tap_sums(r, &in, to);
}

static void squeeze_rows(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to)
{
    ArenaMark mark = arena_mark(r->arena);
    bool      taps = s->way == SQUEEZE_CONV || s->way == SQUEEZE_DILATED;

    if (!run_failed(r))
        (taps ? squeeze_taps : squeeze_windows)(
            r, s, t, from,
            tensor_rows(to, s->memory->made[t], s->memory->made[t + 1] - s->memory->made[t]));
    arena_release(r->arena, mark);
}

/* ratio rows beside each other are one row; the last may have fewer of them. */
static void convolve_batch(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to)
{
    const CompressedMemory *c = s->memory;
    int64_t                 first, end, dm = r->dm, wide = s->ratio * dm, whole, left;
    Tensor                  rows, matrix = s->full;

    compressed_memory_batch(c, t, &first, &end);
    whole = (end - first) / s->ratio;
    left = (end - first) % s->ratio;
    rows = tensor_of(DT_F32, 3, (int64_t[]){ 1, whole, wide },
                     run_failed(r) ? NULL : tensor_f32(&from) + first * dm);
    if (run_failed(r))
        return;
    if (whole)
        op_gemm(r, rows, false, matrix, false, 1, 0, tensor_rows(to, c->made[t], whole),
                FLOP_APART);
    matrix.shape[1] = left * dm;
    rows = tensor_of(DT_F32, 3, (int64_t[]){ 1, 1, left * dm }, tensor_f32(&rows) + whole * wide);
    if (left)
        op_gemm(r, rows, false, matrix, false, 1, 0, tensor_rows(to, c->made[t] + whole, 1),
                FLOP_APART);
    rows = tensor_rows(to, c->made[t], c->made[t + 1] - c->made[t]);
    if (s->bias.data)
        op_entries_of(r, rows, s->bias, ENTRY_SUM, 1, rows);
}

void squeeze_batch(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to)
{
    if (s->full.data)
        convolve_batch(r, s, t, from, to);
    else
        squeeze_rows(r, s, t, from, to);
}

void squeeze_choose(Run *r, const Squeeze *s, int64_t t, const AttendInput *part)
{
    CompressedMemory *c = s->memory;
    Tensor            usage, best;
    int64_t           first, end, oldest, slots = compressed_memory_seen(c, t, &oldest);

    compressed_memory_batch(c, t, &first, &end);
    usage = op_key_usage(r, part->q, part->k, part->scale, r->causal);
    if (run_failed(r))
        return;
    usage = tensor_of(DT_F64, 3, (int64_t[]){ 1, end - first, 1 }, (double *)usage.data + slots);
    best = op_top_k(r, usage, c->made[t + 1] - c->made[t]);
    op_wait(r, "the host lists the slots that were chosen");
    for (int64_t g = c->made[t]; g < c->made[t + 1] && !run_failed(r); g++)
        compressed_memory_choose(c, g, first + tensor_i32(&best)[g - c->made[t]]);
}

/* ---- what was lost ------------------------------------------------------------------- */

/* f64 [h,queries,e]: attention of a segment to some rows alone. */
static Tensor attend_alone(Run *r, Tensor q, Tensor k, Tensor v, double scale)
{
    int64_t keys = k.shape[1];
    Tensor  p = run_tensor3(r, DT_F64, r->h, q.shape[1], keys);
    Tensor  out = run_tensor3(r, DT_F64, r->h, q.shape[1], r->e);

    op_gemm(r, q, false, k, true, scale, 0, p, FLOP_NONE);
    for (int64_t row = 0; row < r->h * q.shape[1] && !run_failed(r); row++) {
        double *w = (double *)p.data + row * keys, most = w[0], sum = 0;

        for (int64_t j = 1; j < keys; j++)
            most = fmax(most, w[j]);
        for (int64_t j = 0; j < keys; j++)
            sum += w[j] = exp(w[j] - most);
        for (int64_t j = 0; j < keys; j++)
            w[j] /= sum;
    }
    op_gemm(r, p, false, v, false, 1, 0, out, FLOP_NONE);
    return out;
}

void squeeze_loss(Run *r, const Squeeze *s, int64_t t, const AttendInput *tokens, Tensor slot_k,
                  Tensor slot_v, Tensor q, Tensor loss)
{
    const CompressedMemory *c = s->memory;
    ArenaMark               mark = arena_mark(r->arena);
    int64_t                 first, end, made = c->made[t + 1] - c->made[t];
    int64_t                 size = q.shape[1] * r->e;
    Tensor                  before, after;
    double                  mean = 0;

    compressed_memory_batch(c, t, &first, &end);
    before = attend_alone(r, q, tensor_rows(tokens->k, first, end - first),
                          tensor_rows(tokens->v, first, end - first), tokens->scale);
    after = attend_alone(r, q, tensor_rows(slot_k, c->made[t], made),
                         tensor_rows(slot_v, c->made[t], made), tokens->scale);
    for (int64_t head = 0; head < r->h && !run_failed(r); head++) {
        double sum = 0;

        for (int64_t x = head * size; x < (head + 1) * size; x++) {
            double lost = ((double *)before.data)[x] - ((double *)after.data)[x];

            sum += lost * lost;
        }
        tensor_f32(&loss)[t * r->h + head] = (float)sqrt(sum);
        mean += sqrt(sum) / (double)r->h;
    }
    arena_release(r->arena, mark);
    run_trace(r, "attention lost", mean);
}
