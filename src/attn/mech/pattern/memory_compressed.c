/* memory_compressed.c -- memory-compressed attention of T-DMCA.
 *
 * A convolution of kernel and stride f makes one key and one value of every f tokens:
 *
 *     K'_s = sum_{x<f} k_{sf+x} conv_k[x] + bias_k,   V'_s likewise   (zero past the end)
 *     output_i = softmax over s of q_i . K'_s / sqrt(d), times V'
 *
 * Without trained taps the convolution is the mean.  Causal: slot s is seen once all its
 * tokens are before i; the first token is put in front, as it is, so that row 0 has a key.
 * The paper alternates this with block-local layers and convolves the layer input; here
 * the convolution acts on K and V.
 */
#include "attn/mech/pattern/keys.h"
#include "attn/run.h"

#include <string.h>

enum { INIT_OF_MEAN, INIT_OF_GLOROT };
enum { ADD_AUTO, ADD_TRUE, ADD_FALSE };
enum { TAIL_KEEP, TAIL_DROP };

typedef struct Params {
    int64_t factor;
    Tensor  conv_k, conv_v, bias_k, bias_v;
    int     conv_init, add_first, tail;
    double  scale, softcap;
} Params;

static const char *const inits[] = { "mean", "glorot", NULL };
static const char *const additions[] = { "auto", "true", "false", NULL };
static const char *const tails[] = { "keep", "drop", NULL };

static const Param params[] = {
    PARAM_INT(Params, factor, 3, 1, PARAM_COUNT_MAX, "tokens made into one key: kernel and stride"),
    PARAM_TENSOR(Params, conv_k, "[h,f,d,d]", "as conv_init says",
                 "taps for keys: input axis, then output axis"),
    PARAM_TENSOR(Params, conv_v, "[h,f,e,e]", "as conv_init says",
                 "taps for values: input axis, then output axis"),
    PARAM_TENSOR(Params, bias_k, "[h,d]", "zeros", "added to the compressed keys"),
    PARAM_TENSOR(Params, bias_v, "[h,e]", "zeros", "added to the compressed values"),
    PARAM_ENUM(Params, conv_init, INIT_OF_MEAN, inits,
               "taps without a file: the mean, or uniform +-sqrt(6/(f c + f c)), c = d or e"),
    PARAM_ENUM(Params, add_first, ADD_AUTO, additions,
               "put the first token in front, uncompressed; auto: when causal"),
    PARAM_ENUM(Params, tail, TAIL_KEEP, tails,
               "a last group of fewer than f tokens: padded with zeros, or left out"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

/* One kind of vector: keys or values. */
typedef struct Side {
    const char *conv_name, *bias_name;
    Tensor      x, conv, bias; /* conv, bias: as given */
} Side;

static Side keys(const Params *p, Tensor x);
static Side values(const Params *p, Tensor x);
static Slots shortened_slots_of(const Run *r, const Params *p);
static Tensor compressed(Run *r, const Params *p, const Slots *s, const Side *side);
static Tensor shortened_rows_of(Tensor to, int64_t first, int64_t count);
static bool is_mean(const Params *p, const Side *side);
static void average(Run *r, const Params *p, const Slots *s, Tensor x, Tensor to);
static Tensor shortened_equal_shares(Run *r, const Params *p, const Slots *s);
static void convolve(Run *r, const Params *p, const Slots *s, const Side *side, Tensor to);
static Tensor padded_tail(Run *r, Tensor x, int64_t first, int64_t f);
static void add_bias(Run *r, const Side *side, Tensor to);
static Pattern *slot_cells(Run *r, const Slots *s);
static PatternShape shortened_shape_of(const Run *r, int64_t keys);
static void shortened_show(Run *r, const Params *p, SlotAttention *a, const Side *side,
                           Pattern *slots);
static double side_flops(const Run *r, const Params *p, const Slots *s, const Side *side);

static void memory_compressed_run(Run *r, const void *opaque)
{
    const Params  *p = opaque;
    AttendInput    in = run_attend_input(r, p->scale);
    SlotAttention *a = run_alloc(r, 1, sizeof(*a)); /* views read it later */
    Side           k = keys(p, in.k), v = values(p, in.v);
    Pattern       *slots;
    AttendResult   result;

    if (!a)
        return;
    *a = (SlotAttention){ .slots = shortened_slots_of(r, p), .heads = r->h };
    run_stage(r, "compress");
    in.k = compressed(r, p, &a->slots, &k);
    in.v = compressed(r, p, &a->slots, &v);
    slots = slot_cells(r, &a->slots);
    run_stage(r, "attend");
    result = op_attend(r, &in, slots);
    r->out = result.out;
    run_last_row(r, slots);
    a->on_slots = (KeyPart){ .in = in, .lse = result.lse, .seen = slots,
                             .sums = row_sums_of(r, r->h, 1, slots) };
    shortened_show(r, p, a, &v, slots);
    view_tensor(r, "compressed_k", VIEW_VECTORS, in.k, "slot", "key");
    view_tensor(r, "compressed_v", VIEW_VECTORS, in.v, "slot", "value");
}

static Side keys(const Params *p, Tensor x)
{
    return (Side){ "conv_k", "bias_k", x, p->conv_k, p->bias_k };
}

static Side values(const Params *p, Tensor x)
{
    return (Side){ "conv_v", "bias_v", x, p->conv_v, p->bias_v };
}

static Slots shortened_slots_of(const Run *r, const Params *p)
{
    int64_t f = p->factor, n = r->n;
    bool    first = p->add_first == ADD_TRUE || (p->add_first == ADD_AUTO && r->causal);

    return (Slots){ .n = n, .lead = first, .ranges = p->tail == TAIL_KEEP ? (n - 1) / f + 1 : n / f,
                    .per = 1, .stride = f, .size = f < n ? f : n };
}

/* [first token, compressed] of every head. */
static Tensor compressed(Run *r, const Params *p, const Slots *s, const Side *side)
{
    int64_t w = side->x.shape[2];
    Tensor  to = run_tensor3(r, DT_F32, r->h, slots_count(s), w), ranges;

    if (run_failed(r))
        return to;
    if (s->lead)
        op_entries(r, tensor_rows(side->x, 0, 1), ENTRY_CAST, 0, tensor_rows(to, 0, 1));
    ranges = shortened_rows_of(to, s->lead, s->ranges);
    if (is_mean(p, side))
        average(r, p, s, side->x, ranges);
    else
        convolve(r, p, s, side, ranges);
    add_bias(r, side, ranges);
    return to;
}

/* `count` rows of every head of `to`. */
static Tensor shortened_rows_of(Tensor to, int64_t first, int64_t count)
{
    to.data = tensor_f32(&to) + first * to.stride[1];
    to.shape[1] = count;
    return to;
}

static bool is_mean(const Params *p, const Side *side)
{
    return p->conv_init == INIT_OF_MEAN && !side->conv.data;
}

static void average(Run *r, const Params *p, const Slots *s, Tensor x, Tensor to)
{
    Tensor mean = slots_pool(r, s, x, shortened_equal_shares(r, p, s));

    op_entries(r, mean, ENTRY_CAST, 0, to);
    op_charge(r, FLOP_OVERHEAD,
              2 * (double)(r->h * s->ranges) * (double)p->factor * (double)x.shape[2]);
}

static Tensor shortened_equal_shares(Run *r, const Params *p, const Slots *s)
{
    Tensor share = run_tensor3(r, DT_F32, 1, s->ranges, s->size);

    op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, 1 / (double)p->factor, share);
    return share;
}

/* f tokens beside each other are one row, so the convolution is one product. */
static void convolve(Run *r, const Params *p, const Slots *s, const Side *side, Tensor to)
{
    int64_t f = p->factor, w = side->x.shape[2], whole = r->n / f;
    int64_t shape[4] = { r->h, f, w, w };
    Init    init = { INIT_GLOROT, 2 * (double)f * (double)w };
    Tensor  taps = run_param(r, side->conv_name, side->conv, DT_F32, 4, shape, init), groups;

    if (run_failed(r))
        return;
    taps = tensor_of(DT_F32, 3, (int64_t[]){ taps.shape[0], f * w, w }, taps.data);
    groups = tensor_of(DT_F32, 3, (int64_t[]){ side->x.shape[0], whole, f * w }, side->x.data);
    groups.stride[0] = side->x.stride[0];
    if (whole)
        op_gemm(r, groups, false, taps, false, 1, 0, shortened_rows_of(to, 0, whole),
                FLOP_OVERHEAD);
    if (s->ranges > whole)
        op_gemm(r, padded_tail(r, side->x, whole * f, f), false, taps, false, 1, 0,
                shortened_rows_of(to, whole, 1), FLOP_OVERHEAD);
}

/* The last group, padded with zero vectors: [h',1,f w]. */
static Tensor padded_tail(Run *r, Tensor x, int64_t first, int64_t f)
{
    int64_t w = x.shape[2], left = x.shape[1] - first;
    Tensor  tail = run_tensor3(r, DT_F32, x.shape[0], 1, f * w), tokens;

    if (run_failed(r))
        return tail;
    op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, 0, tail);
    tokens = tensor_of(DT_F32, 3, (int64_t[]){ x.shape[0], left, w }, tail.data);
    tokens.stride[0] = f * w;
    op_entries(r, tensor_rows(x, first, left), ENTRY_CAST, 0, tokens);
    return tail;
}

static void add_bias(Run *r, const Side *side, Tensor to)
{
    int64_t w = to.shape[2], shape[2] = { r->h, w };
    Tensor  bias;

    if (!side->bias.data)
        return;
    bias = run_param_given(r, side->bias_name, side->bias, DT_F32, 2, shape);
    op_entries_of(r, to, tensor_of(DT_F32, 3, (int64_t[]){ bias.shape[0], 1, w }, bias.data),
                  ENTRY_SUM, 1, to);
}

static Pattern *slot_cells(Run *r, const Slots *s)
{
    PatternShape shape = shortened_shape_of(r, slots_count(s));
    Pattern     *cells = r->causal ? slots_before(r->arena, shape, s)
                                   : pattern_full(r->arena, shape, COMPONENT_BLOCK);

    return pattern_marked(r->arena, cells, COMPONENT_BLOCK);
}

static PatternShape shortened_shape_of(const Run *r, int64_t keys)
{
    return (PatternShape){ .heads = r->h, .n = r->n, .m = keys };
}

static void shortened_show(Run *r, const Params *p, SlotAttention *a, const Side *side,
                           Pattern *slots)
{
    PatternShape s = shortened_shape_of(r, r->n);
    Pattern     *all;

    if (!run_wants_views(r))
        return;
    all = slots_behind(r->arena, s, &a->slots, slots, COMPONENT_BLOCK);
    if (!all)
        run_fail(r, ERR_NOMEM, "memory-compressed: not enough memory for a view");
    view_pattern(r, all, true);
    if (is_mean(p, side) && !side->bias.data) {
        a->share = shortened_equal_shares(r, p, &a->slots);
        view_slot_weights(r, a, all);
        view_shares(r, a, "pool", 2, "slot");
    }
    view_part(r, &a->on_slots, "connectivity_compressed", "weights_compressed", "slot");
}

static Flops memory_compressed_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Slots         s = shortened_slots_of(r, p);
    Pattern      *slots = slot_cells(r, &s);
    Side          k = keys(p, r->k), v = values(p, r->v);
    Flops         sum = run_pattern_flops(r, slots ? (double)pattern_count(slots) : 0);

    sum.overhead += side_flops(r, p, &s, &k) + side_flops(r, p, &s, &v);
    return sum;
}

/* 2 S f c per head and side for the mean, times c for taps. */
static double side_flops(const Run *r, const Params *p, const Slots *s, const Side *side)
{
    double width = (double)side->x.shape[2];
    double mean = 2 * (double)(r->h * s->ranges) * (double)p->factor * width;

    return is_mean(p, side) ? mean : mean * width;
}

/* Slots are kept, and the group that is not over as the sum that becomes one.  A slot is made once,
 * when its group begins. */
static DecodeCost memory_compressed_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    Slots         s = shortened_slots_of(r, p), before = s;
    Run           shorter = *r;
    Side          k = keys(p, r->k), v = values(p, r->v);
    double        token = (double)r->cache_bytes * decode_token(r), made;

    shorter.n = shorter.m = r->n - 1;
    if (r->n > 1)
        before = shortened_slots_of(&shorter, p);
    else
        before.ranges = 0;
    made = side_flops(r, p, &s, &k) + side_flops(r, p, &s, &v) -
           side_flops(r, p, &before, &k) - side_flops(r, p, &before, &v);
    return (DecodeCost){ .state_bytes = token * (double)slots_count(&s),
                         .kv_bytes_per_token = token / (double)p->factor,
                         .step_bytes = decode_read(r),
                         .decode_flops = decode_row(r) + made };
}

static const ViewPromise views[] = {
    VIEW("connectivity", VIEW_PATTERN, "tokens behind the visible slots"),
    VIEW("components", VIEW_COMPONENTS, "what allows a cell"),
    VIEW("weights", VIEW_WEIGHTS, "weights on tokens (values compressed by the mean)",
         .maybe = true),
    VIEW("pool", VIEW_WEIGHTS, "tokens in each slot (values compressed by the mean)",
         .maybe = true),
    VIEW("connectivity_compressed", VIEW_PATTERN, "slots that a token sees"),
    VIEW("weights_compressed", VIEW_WEIGHTS, "weights on the slots"),
    VIEW("compressed_k", VIEW_VECTORS, "keys, the first token in front"),
    VIEW("compressed_v", VIEW_VECTORS, "values, the first token in front"),
    VIEW_PROMISE_END
};

const Mechanism mech_memory_compressed = {
    .id = "memory-compressed",
    .title = "Memory-compressed attention",
    .authors = "Liu et al.",
    .year = 2018,
    .arxiv = "1801.10198",
    .source = "paper, section 4.2.3 (T-DMCA); tensor2tensor multihead_self_attention_reduced",
    .formula = "K' = conv(K), V' = conv(V), kernel and stride f\n"
               "output = softmax(Q K'^T / sqrt(d)) V'\n"
               "n_c = n/f: keys that are left",
    .problem = "Summaries of many documents need inputs of more than ten thousand tokens.",
    .idea = "A strided convolution shortens keys and values before attention compares them.",
    .price = "Tokens within one stride are blended, and the cost stays quadratic, divided by "
             "the stride.",
    .lesson = "patterns",
    .teaches = "Columns in groups of f with one weight each.  Causal, a staircase f wide lags "
               "behind the diagonal: a group is seen only once it is over; column 0 fills the "
               "first rows.",
    .picture = "weights",
    .classes = CLASS_FP | CLASS_M,
    .claim_time = "O(n n_c)",
    .claim_memory = "O(n n_c)",
    .claim_decode = "yes",
    .claim_exponent = 2,
    .causal = true,
    .positions = POSITION_INPUT,
    .views = views,
    .size = "factor",
    .size_falls = true,
    .params = params,
    .params_size = sizeof(Params),
    .run = memory_compressed_run,
    .flops = memory_compressed_flops,
    .decode = memory_compressed_decode,
};
