/* transformer_xl.c -- segment recurrence.
 *
 * The sequence is read in segments.  A segment sees itself and the M tokens before it,
 * whose states of the layer below were kept from the segments before:
 *
 *     b = segment floor(i / segment),   c = min(n, b + segment)
 *     A_i = { j : max(0, b - M) <= j <= i }            (j < c without --causal)
 *     output_i = sum over A_i of softmax_j(q_i . k_j / sqrt(d)) v_j
 *
 * No gradient goes into what was kept; forwards it is as if computed again.  With
 * same_length a query sees the last M keys, itself included, and no others of these.
 * (Dai et al., section 3.2; relative positions are position=xl.)
 */
#include "attn/mech/memory/recurrence.h"
#include "attn/run.h"

typedef struct Params {
    int64_t segment, mem_len;
    bool    same_length;
    double  scale;
} Params;

static const Param params[] = {
    PARAM_INT(Params, segment, 64, 1, PARAM_COUNT_MAX, "tokens read at once"),
    PARAM_INT(Params, mem_len, 64, 0, PARAM_COUNT_MAX, "tokens kept from before the segment"),
    PARAM_BOOL(Params, same_length, false,
               "every query sees at most mem_len keys, itself included"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"), PARAM_END
};

static Pattern *xl_all_cells(Run *r, const Params *p, const Recurrence *c);
static int64_t xl_length_of(const Params *p);
static int64_t xl_first_key(const Params *p, const Recurrence *c, int64_t t, int64_t i);
static void xl_show_memory(Run *r, const Recurrence *c);
static Pattern *segment_cells(Run *r, const Params *p, const Recurrence *c, int64_t t);

static void transformer_xl_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Recurrence    c = recurrence_of(r, p->segment, p->mem_len);
    Pattern      *cells = xl_all_cells(r, p, &c);
    AttendInput   in = run_attend_input_within(r, p->scale, cells);
    Tensor        lse = run_tensor2(r, DT_F32, r->h, r->n);

    in.softmax_flops = FLOPS_ROW_SOFTMAX;
    r->out = run_tensor3(r, DT_F32, r->h, r->n, r->e);
    if (!r->causal)
        run_warn(r, "transformer-xl: without --causal a segment sees itself in both directions; "
                 "the model does not");
    run_stage(r, "segments");
    view_pattern(r, cells, true);
    view_meanings(r, cells, recurrence_components);
    xl_show_memory(r, &c);
    recurrence_show_reach(r, &c, cells);
    for (int64_t t = 0; t < c.count && !run_failed(r); t++) {
        int64_t     b = recurrence_start(&c, t), a = recurrence_memory(&c, t);
        AttendInput part = attend_input_part(&in, b, recurrence_end(&c, t) - b, a,
                                             recurrence_end(&c, t) - a);
        ArenaMark   mark = arena_mark(r->arena);

        run_iteration(r, "segment", t);
        run_trace(r, "tokens remembered", (double)(b - a));
        recurrence_attend(r, &part, segment_cells(r, p, &c, t), b, r->out, lse);
        arena_release(r->arena, mark);
        if (recurrence_shows(r, t))
            recurrence_show_segment(r, &part, lse, b, b - a, segment_cells(r, p, &c, t));
    }
    run_last_keys(r, r->n - xl_first_key(p, &c, c.count - 1, r->n - 1),
                  p->same_length ? xl_length_of(p) : c.segment + c.mem_len);
    view_attention(r, cells, &in, lse);
    run_figure_int(r, "cache_floats", c.mem_len * (r->d + r->e));
}

/* The same of the whole sequence, by parts. */
static Pattern *xl_all_cells(Run *r, const Params *p, const Recurrence *c)
{
    PatternShape s = { .heads = r->h, .n = r->n, .m = r->n };
    Pattern     *own = pattern_chunk(r->arena, s, c->segment, 0, 0);
    Pattern     *seen = pattern_local(r->arena, s, c->segment, c->mem_len, 0);
    Pattern     *memory = pattern_difference(r->arena, seen, own), *cells;

    cells = pattern_union(r->arena, pattern_marked(r->arena, own, COMPONENT_BLOCK),
                          pattern_marked(r->arena, memory, COMPONENT_WINDOW));
    if (p->same_length)
        cells = pattern_intersect(r->arena, cells,
                                  pattern_band(r->arena, s, 1 - xl_length_of(p), r->n, 1, 0));
    return pattern_finish(r->arena, s, cells, r->causal);
}

/* Keys that one query sees with same_length. */
static int64_t xl_length_of(const Params *p)
{
    return p->mem_len > 1 ? p->mem_len : 1;
}

static void xl_show_memory(Run *r, const Recurrence *c)
{
    Tensor memory = { .rank = 0 };

    if (!run_wants_views(r))
        return;
    memory = run_tensor2(r, DT_I32, c->count, 2);
    for (int64_t t = 0; t < c->count && !run_failed(r); t++) {
        tensor_i32(&memory)[2 * t] = (int32_t)recurrence_memory(c, t);
        tensor_i32(&memory)[2 * t + 1] = (int32_t)recurrence_start(c, t);
    }
    view_tensor(r, "memory", VIEW_TENSOR, memory, "segment", "first token, end");
}

/* Of the segment's queries and the keys from the oldest remembered one on. */
static Pattern *segment_cells(Run *r, const Params *p, const Recurrence *c, int64_t t)
{
    int64_t      b = recurrence_start(c, t), a = recurrence_memory(c, t);
    PatternShape s = { .heads = r->h, .n = recurrence_end(c, t) - b,
                       .m = recurrence_end(c, t) - a };
    int64_t      oldest = p->same_length ? b - a - xl_length_of(p) + 1 : -s.n;

    return pattern_band(r->arena, s, oldest, r->causal ? b - a : s.m, 1, COMPONENT_BLOCK);
}

/* That query i of segment t sees. */
static int64_t xl_first_key(const Params *p, const Recurrence *c, int64_t t, int64_t i)
{
    int64_t first = recurrence_memory(c, t);

    return p->same_length ? max_i64(first, i - xl_length_of(p) + 1) : first;
}

static Flops transformer_xl_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Recurrence    c = recurrence_of(r, p->segment, p->mem_len);
    double        cells = 0, h = (double)r->h;

    for (int64_t t = 0; t < c.count; t++)
        for (int64_t i = recurrence_start(&c, t); i < recurrence_end(&c, t); i++) {
            int64_t end = r->causal ? i + 1 : recurrence_end(&c, t);

            cells += (double)(end - xl_first_key(p, &c, t, i));
        }
    return (Flops){ .score = 2 * h * cells * (double)r->d, .mix = 2 * h * cells * (double)r->e,
                    .overhead = FLOPS_ROW_SOFTMAX * h * cells };
}

/* The last query of a segment reaches farthest: over the segment and its memory. */
static DecodeCost transformer_xl_decode(const Run *r, const void *opaque)
{
    DecodeCost cost = decode_cells(r, opaque);

    cost.decode_flops += (FLOPS_ROW_SOFTMAX - FLOPS_SOFTMAX) * r->last.cells;
    return cost;
}

static const StageNote notes[] = {
    { "segments",
      "The sequence is cut into segments that are read one after another.  Each keeps the tokens "
      "before it in memory, as they were; through L layers the past reaches L memories back." },
    { "segment",
      "The queries of this segment see its own keys, on the right of the line, and those in "
      "memory, on its left.  No gradient flows through the memory." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEWS_OF_PATTERN,
    VIEW("memory", VIEW_TENSOR, "first token in memory, and where the segment starts"),
    VIEW("segment_weights", VIEW_WEIGHTS, "weights of one segment on its memory and itself"),
    VIEW("reach_tokens", VIEW_COUNT, "tokens back that a query is reached from after so many "
         "layers"),
    VIEW("reach_segments", VIEW_COUNT, "the same in segments"),
    VIEW_PROMISE_END
};

const Mechanism mech_transformer_xl = {
    .id = "transformer-xl",
    .title = "Transformer-XL: segment recurrence",
    .authors = "Dai, Yang, Yang, Carbonell, Le, Salakhutdinov",
    .year = 2019,
    .arxiv = "1901.02860",
    .source = "paper, section 3.2; same_length as in the official evaluation code",
    .formula = "b = segment floor(i / segment)\n"
               "A_i = { j : b - mem_len <= j <= i },   output_i = softmax(q_i K_A^T / sqrt(d)) V_A",
    .problem = "A text is cut into segments, and a segment knows nothing of the one before.",
    .idea = "Keys and values of past segments are kept as memory and attended to again.",
    .price = "Memory costs time in each step, and what is older than the memory is seen only "
             "through layers.  It needs relative positions (--position xl), since stored keys "
             "change their distance.",
    .lesson = "recurrence",
    .teaches =
        "A staircase of blocks, each with a band of memory as wide as mem_len on its left.  "
        "One layer looks one memory back, L layers look L memories back (view reach_tokens); "
        "what was kept is detached, so it is used but not trained.",
    .picture = "components",
    .example = "segment=8,mem_len=8",
    .sketch = "segment=16,mem_len=16",
    .classes = CLASS_RC,
    .claim_time = "O(n (segment + mem_len))",
    .claim_memory = "O(segment (segment + mem_len))",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .no_at_end = "it reads the sequence segment by segment, each with its queries",
    .positions = POSITIONS_ALL,
    .views = views,
    .notes = notes,
    .size = "mem_len",
    .params = params,
    .params_size = sizeof(Params),
    .run = transformer_xl_run,
    .flops = transformer_xl_flops,
    .decode = transformer_xl_decode,
};
