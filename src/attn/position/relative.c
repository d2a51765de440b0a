/* relative.c -- positions by distance: shaw, alibi, t5. */
#include <math.h>

#include "attn/position/terms.h"
#include "attn/run/position.h"

/* Relative position representations, clipped at k.
 *
 *     c(i,j)   = clamp(j - p_i, -k, k) + k
 *     S[i,j]   = s q_i . (k_j + aK[c])
 *     output_i = sum_j W[i,j] (v_j + aV[c])        when pos_value is given
 *
 * With pos_value the output is not weights @ V; the weights are shown all the
 * same.  Without files one table is drawn for all heads, as in the paper.
 */

typedef struct ShawParams {
    int64_t pos_k;
    Tensor  pos_key, pos_value;
} ShawParams;

#define K_MAX 1000000000 /* 2k + 1 must fit an int32 index */

static const Param shaw_params[] = {
    PARAM_INT(ShawParams, pos_k, 4, 0, K_MAX, "distances beyond this count as this"),
    PARAM_TENSOR(ShawParams, pos_key, "[2k+1,d] or [h,2k+1,d]", "uniform +-sqrt(6/(2k+1+d))",
                 "what each distance adds to a key"),
    PARAM_TENSOR(ShawParams, pos_value, "[2k+1,e] or [h,2k+1,e]", NULL,
                 "what each distance adds to a value; without a file nothing"),
    PARAM_END,
};

static Tensor key_table(Run *r, const ShawParams *p, int64_t h, int64_t rows, int64_t d)
{
    Init   init = { .kind = INIT_GLOROT, .a = (double)(rows + d) };
    Tensor t;

    if (tensor_given(&p->pos_key))
        return run_param_given(r, "pos_key", p->pos_key, DT_F32, 3, (int64_t[]){ h, rows, d });
    t = run_param(r, "pos_key", p->pos_key, DT_F32, 2, (int64_t[]){ rows, d }, init);
    return tensor_with_rank(t, 3);
}

static int64_t clipped(const void *context, int64_t distance)
{
    int64_t k = *(const int64_t *)context;

    return (-distance < -k ? -k : -distance > k ? k : -distance) + k;
}

static void shaw_apply(Run *r, const void *opaque, AttendInput *in)
{
    const ShawParams *p = opaque;
    int64_t           h = in->q.shape[0], n = in->q.shape[1], d = in->q.shape[2];
    int64_t           e = in->v.shape[2], rows = 2 * p->pos_k + 1;

    in->row = (DistanceTerm){ .side = in->q, .table = key_table(r, p, h, rows, d),
                              .index = position_index(r, in, clipped, &p->pos_k) };
    in->cell_flops = 1;
    op_charge(r, FLOP_POSITION, 2 * (double)d * (double)h * (double)n * (double)rows);
    if (!tensor_given(&p->pos_value))
        return;
    in->value.table = run_param_given(r, "pos_value", p->pos_value, DT_F32, 3,
                                      (int64_t[]){ h, rows, e });
    in->value.index = in->row.index;
    in->cell_flops += (double)e;
}

const Position position_shaw = {
    .id = "shaw",
    .name = "Shaw",
    .title = "Relative position representations",
    .source = "Shaw et al. 2018, arXiv:1803.02155, section 3.2",
    .help = "keys (and values) gain a vector for their clipped distance to the query",
    .class_ = POSITION_BIAS,
    .params = shaw_params,
    .params_size = sizeof(ShawParams),
    .apply = shaw_apply,
};

/* Attention with linear biases.
 *
 *     S[i,j] = s q_i . k_j - slope_h dist(i, j)
 *     dist = abs(p_i - j) (mirror) or p_i - j (signed: the future is rewarded)
 *
 * The bias is not multiplied by the scale s.  Slopes of h heads, P the largest
 * power of two <= h: the first P are 2^(-8(t+1)/P); the rest are elements 0, 2,
 * 4, ... of the list for 2P heads.  They are not sorted.
 */

typedef struct AlibiParams {
    Tensor pos_slopes;
    int    pos_future;
} AlibiParams;

enum { FUTURE_MIRROR, FUTURE_SIGNED };
static const char *const futures[] = { "mirror", "signed", NULL };

static const Param alibi_params[] = {
    PARAM_TENSOR(AlibiParams, pos_slopes, "[h]", NULL,
                 "slope of each head; without a file the paper's geometric series"),
    PARAM_ENUM(AlibiParams, pos_future, FUTURE_MIRROR, futures,
               "later keys: as far as earlier ones, or at a negative distance"),
    PARAM_END,
};

static double slope_default(int64_t h, int64_t t)
{
    int64_t power = 1;

    while (2 * power <= h)
        power *= 2;
    if (t < power)
        return exp2(-8.0 * (double)(t + 1) / (double)power);
    return exp2(-8.0 * (double)(2 * (t - power) + 1) / (double)(2 * power));
}

static Tensor slopes(Run *r, const AlibiParams *p, int64_t h)
{
    Tensor t;

    if (tensor_given(&p->pos_slopes))
        return run_param_given(r, "pos_slopes", p->pos_slopes, DT_F32, 1, &h);
    t = run_tensor1(r, DT_F32, h);
    for (int64_t head = 0; head < h && !run_failed(r); head++)
        tensor_f32(&t)[head] = (float)slope_default(h, head);
    return t;
}

/* [h,entries] minus the slope of the head times the distance. */
static void alibi_fill(Run *r, const AlibiParams *p, const AttendInput *in, const Tensor *slope)
{
    int64_t entries = position_entries(in);

    for (int64_t head = 0; head < slope->shape[0]; head++)
        for (int64_t x = 0; x < entries; x++) {
            int64_t signed_distance = position_distance(r, in, x);
            double  distance = (double)(p->pos_future == FUTURE_MIRROR && signed_distance < 0
                                            ? -signed_distance : signed_distance);

            tensor_f32(&in->distance)[head * entries + x] =
                (float)(-(double)tensor_f32(slope)[head] * distance);
        }
    op_toward(r, in->distance.data, tensor_bytes(&in->distance));
}

static void alibi_apply(Run *r, const void *opaque, AttendInput *in)
{
    const AlibiParams *p = opaque;
    Tensor             slope = slopes(r, p, in->q.shape[0]);

    in->distance = run_tensor2(r, DT_F32, slope.shape[0], position_entries(in));
    in->cell_flops = 2;
    run_prepare(r, true);
    if (!run_failed(r))
        alibi_fill(r, p, in, &slope);
    run_prepare(r, false);
}

const Position position_alibi = {
    .id = "alibi",
    .name = "ALiBi",
    .title = "Attention with linear biases",
    .source = "Press et al. 2021, arXiv:2108.12409; get_slopes of the authors' transformer.py",
    .help = "subtracts from each score a slope of the head times the distance",
    .class_ = POSITION_BIAS,
    .params = alibi_params,
    .params_size = sizeof(AlibiParams),
    .apply = alibi_apply,
};

/* One learned number per head and bucket of the relative position.
 *
 *     S[i,j] = s q_i . k_j + pos_bias[bucket(j - p_i), h]
 *
 * Buckets are exact for the nearest E distances and then widen logarithmically
 * up to pos_max_distance; with both directions, keys ahead have buckets of
 * their own (the upper half).  T5 itself does not scale: scale=1 is its form.
 */

typedef struct T5Params {
    int64_t pos_buckets, pos_max_distance;
    int     pos_bidirectional;
    Tensor  pos_bias;
} T5Params;

enum { BIDIRECTIONAL_AUTO, BIDIRECTIONAL_TRUE, BIDIRECTIONAL_FALSE };
static const char *const directions[] = { "auto", "true", "false", NULL };

static const Param t5_params[] = {
    PARAM_INT(T5Params, pos_buckets, 32, 1, INT_MAX, "buckets, of both directions together"),
    PARAM_INT(T5Params, pos_max_distance, 128, 1, PARAM_COUNT_MAX,
              "distance from which on all keys share the last bucket"),
    PARAM_ENUM(T5Params, pos_bidirectional, BIDIRECTIONAL_AUTO, directions,
               "keys ahead have their own buckets; auto: unless causal"),
    PARAM_TENSOR(T5Params, pos_bias, "[pos_buckets,h]", "N(0, 1/(h d))",
                 "what each bucket adds to the scores of each head"),
    PARAM_END,
};

typedef struct Ladder {
    bool    both;  /* keys ahead have buckets of their own */
    int64_t count; /* buckets of one direction: N */
    int64_t exact; /* distances with a bucket each: E */
    int64_t far;   /* pos_max_distance */
} Ladder;

static Ladder ladder_of(Run *r, const T5Params *p)
{
    bool   both = p->pos_bidirectional == BIDIRECTIONAL_TRUE ||
                  (p->pos_bidirectional == BIDIRECTIONAL_AUTO &&
                   (!r->causal || r->keys_ahead));
    Ladder l = { .both = both, .count = both ? p->pos_buckets / 2 : p->pos_buckets,
                 .far = p->pos_max_distance };

    l.exact = l.count / 2;
    if (both && p->pos_buckets % 2)
        run_fail(r, ERR_PARAM, "position t5: pos_buckets must be even when both directions have "
                 "buckets, got %lld (or set pos_bidirectional=false)", (long long)p->pos_buckets);
    else if (l.exact < 1)
        run_fail(r, ERR_PARAM, "position t5: pos_buckets must be at least %d%s, got %lld",
                 both ? 4 : 2, both ? " with both directions" : "", (long long)p->pos_buckets);
    else if (l.exact >= l.far)
        run_fail(r, ERR_PARAM, "position t5: pos_max_distance must be above the %lld exact "
                 "buckets that pos_buckets=%lld gives, got %lld", (long long)l.exact,
                 (long long)p->pos_buckets, (long long)l.far);
    return l;
}

/* delta = -distance = j - p_i.  The 1e-9 puts exact powers on their own bucket. */
static int64_t bucket_of(const void *context, int64_t distance)
{
    const Ladder *l = context;
    int64_t       delta = -distance;
    int64_t base = l->both && delta > 0 ? l->count : 0;
    int64_t a = delta < 0 ? -delta : l->both ? delta : 0;
    double  step;

    if (a < l->exact)
        return base + a;
    step = floor(log((double)a / (double)l->exact) / log((double)l->far / (double)l->exact) *
                 (double)(l->count - l->exact) + 1e-9);
    if (step > (double)(l->count - 1 - l->exact))
        return base + l->count - 1;
    return base + l->exact + (int64_t)step;
}

/* pos_bias has its heads last, so run_param's rules on shared heads do not fit. */
static Tensor bias_table(Run *r, const T5Params *p, int64_t h)
{
    Tensor given = p->pos_bias;
    double deviation = 1 / sqrt((double)h * (double)r->d);
    char   text[80];

    if (tensor_given(&given) &&
        (given.rank != 2 || given.shape[0] != p->pos_buckets || given.shape[1] != h))
        run_fail(r, ERR_PARAM, "position t5: parameter pos_bias: expected shape "
                 "[pos_buckets,h] = [%lld,%lld], found %s", (long long)p->pos_buckets,
                 (long long)h, tensor_shape_text(&given, text, sizeof(text)));
    return run_param(r, "pos_bias", given, DT_F32, 2, (int64_t[]){ p->pos_buckets, h },
                     (Init){ .kind = INIT_NORMAL, .a = deviation });
}

static void t5_fill(Run *r, Tensor *distance, const Tensor *bias, const int32_t *bucket)
{
    int64_t h = distance->shape[0], entries = distance->shape[1];

    for (int64_t head = 0; head < h; head++)
        for (int64_t x = 0; x < entries; x++)
            tensor_f32(distance)[head * entries + x] = tensor_f32(bias)[bucket[x] * h + head];
    op_toward(r, distance->data, tensor_bytes(distance));
}

static void t5_apply(Run *r, const void *opaque, AttendInput *in)
{
    const T5Params *p = opaque;
    int64_t         entries = position_entries(in), h = in->q.shape[0];
    Ladder          ladder = ladder_of(r, p);
    Tensor          bias = bias_table(r, p, h);
    int32_t        *bucket = position_index(r, in, bucket_of, &ladder);

    in->distance = run_tensor2(r, DT_F32, h, entries);
    in->cell_flops = 1;
    run_prepare(r, true);
    if (!run_failed(r))
        t5_fill(r, &in->distance, &bias, bucket);
    run_prepare(r, false);
    if (!run_failed(r))
        position_show_buckets(r, "position_buckets", in, bucket);
}

const Position position_t5 = {
    .id = "t5",
    .name = "T5 buckets",
    .title = "T5 relative buckets",
    .source = "Raffel et al. 2020, arXiv:1910.10683, section 2.1; bucket rule of mesh-tensorflow",
    .help = "adds one number per head for each bucket of relative positions",
    .views = "position_buckets: the bucket of each pair",
    .class_ = POSITION_BIAS,
    .params = t5_params,
    .params_size = sizeof(T5Params),
    .apply = t5_apply,
};
