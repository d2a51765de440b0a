/* latents.c -- see latents.h. */
#include "attn/mech/lowrank/latents.h"

#include "attn/ops/dense.h"
#include "attn/ops/weights.h"
#include "attn/run.h"

/* Float rounds logits, and so weights, by 2^-24 of the largest logit, and outputs by that
 * times the values' length: within this bound to 1e-5 at the very worst, mostly to 1e-6. */
#define FLOAT_ENOUGH 256.0

static Tensor latents_scaled(Run *r, Tensor x, double scale)
{
    Tensor y = run_tensor3(r, DT_F64, x.shape[0], x.shape[1], x.shape[2]);

    op_entries(r, x, ENTRY_SCALE, scale, y);
    return y;
}

static Pattern *latents_read_cells(Run *r, int64_t rows, int64_t keys, bool causal, int64_t offset)
{
    PatternShape shape = { .heads = r->h, .n = rows, .m = keys };
    Pattern     *cells = causal ? pattern_band(r->arena, shape, -rows, offset, 1, COMPONENT_OTHER)
                                : pattern_full(r->arena, shape, COMPONENT_OTHER);

    return cells ? pattern_finish(r->arena, shape, cells, false) : NULL;
}

/* One copy for all heads that share both. */
static Tensor latents_beside(Run *r, Tensor v, Tensor k)
{
    int64_t heads = v.shape[0] == k.shape[0] ? v.shape[0] : r->h, e = v.shape[2];
    Tensor  y = run_tensor3(r, DT_F32, heads, v.shape[1], e + k.shape[2]);

    op_entries(r, v, ENTRY_CAST, 0, tensor_columns(y, 0, e));
    op_entries(r, k, ENTRY_CAST, 0, tensor_columns(y, e, k.shape[2]));
    return y;
}

/* ---- logits in double --------------------------------------------------------- */

/* The reader's logits.  The scale multiplies the side with fewer rows, or k if it is f64. */
static LogitAttend exact_logits(Run *r, const AttendInput *in, bool causal, int64_t offset)
{
    bool left = in->q.shape[1] <= in->k.shape[1] && in->k.dtype != DT_F64;

    return (LogitAttend){ .kind = LOGITS_PRODUCT, .turned = true, .n = in->q.shape[1],
                          .v = in->v, .causal = causal, .offset = offset,
                          .left = left ? latents_scaled(r, in->q, in->scale) : in->q,
                          .right = left ? in->k : latents_scaled(r, in->k, in->scale) };
}

static LatentRead latents_read_exactly(Run *r, const AttendInput *in, bool causal, int64_t offset)
{
    LatentRead  read = { .in = exact_logits(r, in, causal, offset) };
    LogitResult found = op_logit_attend(r, &read.in);

    read.out = found.out;
    read.lse = found.lse;
    return read;
}

static bool steep(double logit, double value)
{
    return !(logit * value <= FLOAT_ENOUGH);
}

bool latents_steep(Run *r, Tensor q, Tensor k, Tensor v, double scale)
{
    double logit = scale * op_largest_norm(r, q) * op_largest_norm(r, k);

    return steep(logit, op_largest_norm(r, v));
}

/* ---- in float ----------------------------------------------------------------- */

static Tensor latents_widened(Run *r, Tensor lse)
{
    int64_t shape[3] = { lse.shape[0], lse.shape[1], 1 };

    return dense_wide(r, tensor_of(DT_F32, 3, shape, lse.data));
}

static LatentRead collect(Run *r, const AttendInput *in, Tensor more)
{
    FewAttend few = { .q = in->q, .k = in->k, .v = in->v, .more = more, .scale = in->scale };
    FewResult found = op_few_attend(r, &few);

    return (LatentRead){ .out = found.out, .more = found.more, .lse = found.lse,
                         .key_length = found.key_length, .value_length = found.value_length };
}

static LatentRead collect_exactly(Run *r, const AttendInput *given, Tensor more)
{
    AttendInput in = *given;
    LatentRead  read;
    Tensor      both;

    if (!more.data)
        return latents_read_exactly(r, &in, false, 0);
    in.v = latents_beside(r, in.v, more);
    read = latents_read_exactly(r, &in, false, 0);
    both = read.out;
    read.out = dense_columns(r, both, 0, given->v.shape[2]);
    read.more = dense_columns(r, both, given->v.shape[2], more.shape[2]);
    return read;
}

/* Few queries that read all keys; more: other values for the same weights, or absent.  The pass
 * also gives the lengths of keys and values; where they are too large for float, it is rerun in
 * double. */
static LatentRead latents_collect(Run *r, const AttendInput *in, Tensor more)
{
    LatentRead read = collect(r, in, more);

    if (run_failed(r))
        return read;
    if (steep(in->scale * op_largest_norm(r, in->q) * read.key_length, read.value_length)) {
        r->again = true;
        read = collect_exactly(r, in, more);
        r->again = false;
    } else if (run_wants_views(r)) {
        read.in = exact_logits(r, in, false, 0);
    }
    return read;
}

static LatentRead read_in_float(Run *r, const AttendInput *in, bool causal, int64_t offset)
{
    AttendInput  counted = *in;
    int64_t      rows = in->q.shape[1], keys = in->k.shape[1];
    AttendResult found;
    LatentRead   read;

    counted.softmax_flops = FLOPS_ROW_SOFTMAX;
    found = op_attend(r, &counted, latents_read_cells(r, rows, keys, causal, offset));
    read = (LatentRead){ .out = found.out };
    if (run_wants_views(r)) {
        read.lse = latents_widened(r, found.lse);
        read.in = exact_logits(r, in, causal, offset);
    }
    return read;
}

/* Reading all keys once for a few queries costs less than packing them. */
static bool are_few(const AttendInput *in, bool causal)
{
    return !causal && in->q.shape[1] < in->k.shape[1];
}

LatentRead latents_read_float(Run *r, Tensor q, Tensor k, Tensor v, double scale)
{
    AttendInput in = { .q = q, .k = k, .v = v, .scale = scale };
    LatentRead  read;

    if (are_few(&in, false)) {
        read = collect(r, &in, (Tensor){ .rank = 0 });
        if (run_wants_views(r))
            read.in = exact_logits(r, &in, false, 0);
        return read;
    }
    read = read_in_float(r, &in, false, 0);
    read.key_length = op_largest_norm(r, k);
    read.value_length = op_largest_norm(r, v);
    return read;
}

LatentRead latents_read_exact(Run *r, Tensor q, Tensor k, Tensor v, double scale)
{
    AttendInput in = { .q = q, .k = k, .v = v, .scale = scale };

    return latents_read_exactly(r, &in, false, 0);
}

LatentRead latents_read(Run *r, Tensor q, Tensor k, Tensor v, double scale, bool causal,
                        int64_t offset)
{
    AttendInput in = { .q = q, .k = k, .v = v, .scale = scale };

    if (are_few(&in, causal))
        return latents_collect(r, &in, (Tensor){ .rank = 0 });
    if (run_failed(r) || latents_steep(r, q, k, v, scale))
        return latents_read_exactly(r, &in, causal, offset);
    return read_in_float(r, &in, causal, offset);
}

Flops latents_read_flops(const Run *r, double cells, double d, double e)
{
    double h = (double)r->h;

    return (Flops){ .score = 2 * h * cells * d, .mix = 2 * h * cells * e,
                    .overhead = FLOPS_ROW_SOFTMAX * h * cells };
}

Tensor latents_weights(Run *r, const LatentRead *read)
{
    return logit_weights(r, &read->in, read->lse);
}

/* ---- there and back ------------------------------------------------------------ */

static void show_nested(Run *r, const Nested *s, const LatentRead *in, const LatentRead *out,
                        Tensor memory)
{
    Pattern *cells;
    Tensor   left, right;

    if (!run_wants_views(r))
        return;
    cells = run_allowed_cells(r);
    left = latents_weights(r, out);
    right = latents_weights(r, in);
    implicit_factor(r, "factor_left", VIEW_WEIGHTS, left, "query", s->latent);
    implicit_connectivity(r, cells);
    implicit_weights(r, (Implicit){ .left = left, .right = dense_turned(r, right) },
                     VIEW_WEIGHTS, cells);
    view_stage(r, s->pack, -1);
    implicit_factor(r, "factor_right", VIEW_WEIGHTS, right, s->latent, "key");
    view_tensor(r, "memory", VIEW_VECTORS, memory, s->latent, "component");
    view_stage(r, NULL, -1);
}

void latents_nested(Run *r, const Nested *s)
{
    Tensor      keys = s->with_keys ? r->k : (Tensor){ .rank = 0 };
    AttendInput pack = { .q = s->latents, .k = s->keys, .v = r->v, .scale = s->scale };
    LatentRead  in, out;

    run_stage(r, s->pack);
    in = latents_collect(r, &pack, keys);
    run_stage(r, s->unpack);
    out = latents_read(r, r->q, s->with_keys ? in.more : in.out, in.out, s->scale, false, 0);
    r->out = out.out;
    show_nested(r, s, &in, &out, in.out);
}

Flops latents_nested_flops(const Run *r, int64_t latents, bool with_keys)
{
    double l = (double)latents, d = (double)r->d, e = (double)r->e;

    return flops_sum(latents_read_flops(r, l * (double)r->m, d, with_keys ? e + d : e),
                     latents_read_flops(r, (double)r->n * l, d, e));
}
