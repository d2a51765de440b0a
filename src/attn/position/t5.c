/* t5.c -- one learned number per head and bucket of the relative position.
 *
 *     S[i,j] = s q_i . k_j + pos_bias[bucket(j - p_i), h]
 *
 * Buckets are exact for the nearest E distances and then widen logarithmically
 * up to pos_max_distance; with both directions, keys ahead have buckets of
 * their own (the upper half).  T5 itself does not scale: scale=1 is its form.
 */
#include "attn/position/terms.h"

#include <math.h>

typedef struct Params {
    int64_t pos_buckets, pos_max_distance;
    int     pos_bidirectional;
    Tensor  pos_bias;
} Params;

enum { BIDIRECTIONAL_AUTO, BIDIRECTIONAL_TRUE, BIDIRECTIONAL_FALSE };
static const char *const directions[] = { "auto", "true", "false", NULL };

static const Param params[] = {
    PARAM_INT(Params, pos_buckets, 32, 1, INT_MAX, "buckets, of both directions together"),
    PARAM_INT(Params, pos_max_distance, 128, 1, PARAM_COUNT_MAX,
              "distance from which on all keys share the last bucket"),
    PARAM_ENUM(Params, pos_bidirectional, BIDIRECTIONAL_AUTO, directions,
               "keys ahead have their own buckets; auto: unless causal"),
    PARAM_TENSOR(Params, pos_bias, "[pos_buckets,h]", "N(0, 1/(h d))",
                 "what each bucket adds to the scores of each head"),
    PARAM_END,
};

typedef struct Ladder {
    bool    both;  /* keys ahead have buckets of their own */
    int64_t count; /* buckets of one direction: N */
    int64_t exact; /* distances with a bucket each: E */
    int64_t far;   /* pos_max_distance */
} Ladder;

static Ladder ladder_of(Run *r, const Params *p)
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
static Tensor bias_table(Run *r, const Params *p, int64_t h)
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

static void fill(Run *r, Tensor *distance, const Tensor *bias, const int32_t *bucket)
{
    int64_t h = distance->shape[0], entries = distance->shape[1];

    for (int64_t head = 0; head < h; head++)
        for (int64_t x = 0; x < entries; x++)
            tensor_f32(distance)[head * entries + x] = tensor_f32(bias)[bucket[x] * h + head];
    op_toward(r, distance->data, tensor_bytes(distance));
}

static void t5_apply(Run *r, const void *opaque, AttendInput *in)
{
    const Params *p = opaque;
    int64_t       entries = position_entries(in), h = in->q.shape[0];
    Ladder        ladder = ladder_of(r, p);
    Tensor        bias = bias_table(r, p, h);
    int32_t      *bucket = position_index(r, in, bucket_of, &ladder);

    in->distance = run_tensor2(r, DT_F32, h, entries);
    in->cell_flops = 1;
    run_prepare(r, true);
    if (!run_failed(r))
        fill(r, &in->distance, &bias, bucket);
    run_prepare(r, false);
    if (!run_failed(r))
        position_show_buckets(r, "position_buckets", in, bucket);
}

const Position position_t5 = {
    .id = "t5",
    .title = "T5 relative buckets",
    .source = "Raffel et al. 2020, arXiv:1910.10683, section 2.1; bucket rule of mesh-tensorflow",
    .help = "adds one number per head for each bucket of relative positions",
    .views = "position_buckets: the bucket of each pair",
    .class_ = POSITION_BIAS,
    .params = params,
    .params_size = sizeof(Params),
    .apply = t5_apply,
};
