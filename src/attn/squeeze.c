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

/* Column `c` of the slot: rows are `ld` apart, `count` of them are in its group and `after`
 * from its first to the batch's end. */
static double squeeze(const Squeeze *s, const float *row, int64_t ld, int64_t count, int64_t after)
{
    double sum = s->way == SQUEEZE_MAX ? (double)row[0] : 0;

    switch (s->way) {
    case SQUEEZE_MAX:
        for (int64_t u = 1; u < count; u++)
            sum = fmax(sum, (double)row[u * ld]);
        return sum;
    case SQUEEZE_CONV:
        for (int64_t u = 0; u < count; u++)
            sum += s->taps[u] * (double)row[u * ld];
        return sum;
    case SQUEEZE_DILATED:
        for (int64_t u = 0; u < s->ratio && 2 * u < after; u++)
            sum += s->taps[u] * (double)row[2 * u * ld];
        return sum;
    case SQUEEZE_USED: return (double)row[0];
    default:
        for (int64_t u = 0; u < count; u++)
            sum += (double)row[u * ld];
        return sum / (double)count;
    }
}

static void squeeze_rows(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to)
{
    const CompressedMemory *c = s->memory;
    int64_t                 first, end, w = from.shape[2];

    compressed_memory_batch(c, t, &first, &end);
    for (int64_t head = 0; head < from.shape[0]; head++)
        for (int64_t g = c->made[t]; g < c->made[t + 1]; g++) {
            const float *row = tensor_f32(&from) + head * from.stride[0] +
                               c->first[g] * from.stride[1];
            float       *slot = tensor_f32(&to) + head * to.stride[0] + g * w;

            if (run_failed(r))
                return;
            for (int64_t x = 0; x < w; x++)
                slot[x] = (float)squeeze(s, row + x, from.stride[1], c->end[g] - c->first[g],
                                         end - c->first[g]);
        }
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
        op_gemm(r, rows, false, matrix, false, 1, 0, tensor_rows(to, c->made[t], whole), FLOP_NONE);
    matrix.shape[1] = left * dm;
    rows = tensor_of(DT_F32, 3, (int64_t[]){ 1, 1, left * dm }, tensor_f32(&rows) + whole * wide);
    if (left)
        op_gemm(r, rows, false, matrix, false, 1, 0, tensor_rows(to, c->made[t] + whole, 1),
                FLOP_NONE);
    for (int64_t x = c->made[t] * dm; x < c->made[t + 1] * dm && s->bias.data; x++)
        tensor_f32(&to)[x] += tensor_f32(&s->bias)[x % dm];
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
