/* panels.c -- attention by lists of panels: groups, few queries, logits, rows of scores.
 *
 * A panel with more than its share of all tiles of PANEL_ROWS keys is cut into pieces of that
 * share, so that neither one large group nor a few rows with very many keys leave most of the
 * device idle.
 */
#include <stdlib.h>

#include "attn/cuda/host/gpu.h"

#define SHARES 8      /* of a multiprocessor */
#define LEAST_TILES 8 /* of a piece */

static int64_t panel_tiles(int64_t count)
{
    return (count + PANEL_ROWS - 1) / PANEL_ROWS;
}

/* Keys of a piece. */
static int64_t share_of(const Run *r, const PanelSpan *spans, int64_t count)
{
    int64_t all = 0, shares = SHARES * gpu_kind(r)->device->info.processors;

    for (int64_t x = 0; x < count; x++)
        all += panel_tiles(spans[x].rows) * panel_tiles(spans[x].keys);
    all = (all + shares - 1) / (shares > 0 ? shares : 1);
    return PANEL_ROWS * (all > LEAST_TILES ? all : LEAST_TILES);
}

static int64_t panel_pieces(const PanelSpan *span, int64_t share)
{
    return span->keys > share ? (span->keys + share - 1) / share : 1;
}

typedef struct Plan {
    PanelWork  work;
    RowPanel  *panel;
    PanelJoin *join;
    int64_t    share, slots;
} Plan;

static void count_span(Plan *plan, const PanelSpan *span)
{
    int64_t panels = panel_tiles(span->rows), pieces = panel_pieces(span, plan->share);

    plan->work.count += panels * pieces;
    plan->work.joins += pieces > 1 ? panels : 0;
    plan->slots += pieces > 1 ? panels * pieces : 0;
}

/* The pieces of PANEL_ROWS rows of a span. */
static void add_rows(Plan *plan, const PanelSpan *span, int64_t first, int64_t rows)
{
    int64_t pieces = panel_pieces(span, plan->share);

    if (pieces > 1)
        plan->join[plan->work.joins++] = (PanelJoin){
            .first = first, .slot = plan->slots, .count = pieces, .head = (int32_t)span->head,
            .rows = (int32_t)rows };
    for (int64_t from = 0; from < pieces; from++) {
        int64_t start = from * plan->share, left = span->keys - start;

        plan->panel[plan->work.count++] = (RowPanel){
            .first = first, .first_key = span->first_key + start,
            .keys = left < plan->share ? left : plan->share,
            .slot = pieces > 1 ? plan->slots++ : -1, .head = (int32_t)span->head,
            .rows = (int32_t)rows, .group = (int32_t)span->group };
    }
}

static int longest_first(const void *a, const void *b)
{
    const RowPanel *x = a, *y = b;

    if (x->keys != y->keys)
        return x->keys < y->keys ? 1 : -1;
    if (x->head != y->head)
        return x->head < y->head ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->first_key > y->first_key) - (x->first_key < y->first_key);
}

static void fill_panels(Plan *plan, const PanelSpan *spans, int64_t count)
{
    plan->work.count = plan->work.joins = plan->slots = 0;
    for (int64_t x = 0; x < count; x++)
        for (int64_t from = 0; from < spans[x].rows; from += PANEL_ROWS)
            add_rows(plan, &spans[x], spans[x].first + from,
                     spans[x].rows - from < PANEL_ROWS ? spans[x].rows - from : PANEL_ROWS);
    qsort(plan->panel, (size_t)plan->work.count, sizeof(*plan->panel), longest_first);
}

PanelWork gpu_panels(Run *r, const PanelSpan *spans, int64_t count, int64_t width)
{
    Plan plan = { .work = { .width = width } };

    if (run_failed(r))
        return plan.work;
    plan.share = share_of(r, spans, count);
    for (int64_t x = 0; x < count; x++)
        count_span(&plan, &spans[x]);
    plan.panel = gpu_list(r, plan.work.count, sizeof(RowPanel));
    plan.join = gpu_list(r, plan.work.joins, sizeof(PanelJoin));
    plan.work.top = gpu_scratch(r, plan.slots * PANEL_ROWS, sizeof(double));
    plan.work.sum = gpu_scratch(r, plan.slots * PANEL_ROWS, sizeof(double));
    plan.work.part = gpu_scratch(r, plan.slots * PANEL_ROWS * width, sizeof(float));
    plan.work.panels = plan.panel;
    plan.work.join = plan.join;
    if (!run_failed(r))
        fill_panels(&plan, spans, count);
    gpu_toward(r, plan.panel, plan.work.count * (int64_t)sizeof(RowPanel));
    gpu_toward(r, plan.join, plan.work.joins * (int64_t)sizeof(PanelJoin));
    return plan.work;
}

static bool has_panels(Run *r, const PanelWork *work)
{
    return gpu_ready(r) && work->count > 0;
}

/* Joins the pieces where keys were cut, and ends the op. */
static void join(Run *r, const char *what, const PanelWork *work, const PanelOut *to)
{
    JoinCall call = { .work = *work, .to = *to };

    if (!run_failed(r) && (!work->joins || gpu_began(r, "join", gpu_api(r)->join(&call))))
        gpu_done(r, what, 0);
}

/* ---- groups and few queries (op_group_attend, op_few_attend) -------------------------- */

static DeviceTensor lines(Run *r, const Tensor *t)
{
    return gpu_lines(gpu_tensor(r, t));
}

/* One for each head and group; the host reads where groups begin. */
static const PanelSpan *group_spans(Run *r, const GroupAttend *g, int64_t heads)
{
    PanelSpan *spans = gpu_list(r, heads * g->groups, sizeof(*spans));

    for (int64_t x = 0; spans && x < heads * g->groups; x++) {
        int64_t        head = x / g->groups, group = x % g->groups;
        const int32_t *first = tensor_head(&g->query_start, head, heads);
        const int32_t *key = tensor_head(&g->key_start, head, heads);

        spans[x] = (PanelSpan){ .head = head, .group = group, .first = first[group],
                                .rows = first[group + 1] - first[group], .first_key = key[group],
                                .keys = key[group + 1] - key[group] };
    }
    return spans;
}

static VisitCall visit_call(Run *r, const Visits *v)
{
    VisitCall call = { 0 };

    if (!v)
        return call;
    return (VisitCall){ .tag = gpu_tensor(r, &v->tag), .chunk = gpu_tensor(r, &v->chunk),
                        .before = v->before, .after = v->after, .ring = v->ring,
                        .cross = v->cross };
}

static PanelInput group_input(Run *r, const GroupAttend *g, const GroupResult *out)
{
    int64_t    heads = out->out.shape[0];
    PanelInput in = { .heads = heads, .q = gpu_tensor(r, &g->q), .k = gpu_tensor(r, &g->k),
                      .v = gpu_tensor(r, &g->v), .scale = g->scale,
                      .query_index = lines(r, &g->query_index),
                      .key_index = lines(r, &g->key_index) };

    in.to = (PanelOut){ .heads = heads, .out = gpu_tensor(r, &out->out),
                        .lse = lines(r, &out->lse) };
    if (g->placed)
        in.to.place = in.query_index;
    in.work = gpu_panels(r, group_spans(r, g, heads), heads * g->groups, g->v.shape[2]);
    return in;
}

void gpu_group_attend(Run *r, const GroupAttend *g, GroupResult *out)
{
    ArenaMark mark = arena_mark(r->arena);
    GroupCall call = {
        .in = group_input(r, g, out),
        .key_start = lines(r, &g->key_start),
        .query_tag = lines(r, &g->query_tag), .key_tag = lines(r, &g->key_tag),
        .query_at = lines(r, &g->query_at), .key_at = lines(r, &g->key_at),
        .causal = g->causal, .self_last = g->self_last, .self_penalty = g->self_penalty,
        .visits = visit_call(r, g->visits),
        .skip = gpu_tensor(r, &g->query_skip),
    };

    if (has_panels(r, &call.in.work) &&
        gpu_began(r, "group attention", gpu_api(r)->group(&call)))
        join(r, "group attention", &call.in.work, &call.in.to);
    gpu_computed(r, ARITHMETIC_F32);
    arena_release(r->arena, mark);
}

void gpu_few_attend(Run *r, const FewAttend *in, FewResult *out)
{
    ArenaMark  mark = arena_mark(r->arena);
    int64_t    heads = out->out.shape[0], width = in->v.shape[2];
    PanelSpan *spans = gpu_list(r, heads, sizeof(*spans));
    PanelInput call = { .heads = heads, .q = gpu_tensor(r, &in->q), .k = gpu_tensor(r, &in->k),
                        .v = gpu_tensor(r, &in->v), .more = gpu_tensor(r, &in->more),
                        .scale = in->scale };

    width += in->more.data ? in->more.shape[2] : 0;
    call.to = (PanelOut){ .heads = heads, .out = gpu_tensor(r, &out->out),
                             .lse = lines(r, &out->lse) };
    if (in->more.data)
        call.to.more = gpu_tensor(r, &out->more);
    for (int64_t t = 0; spans && t < heads; t++)
        spans[t] = (PanelSpan){ .head = t, .rows = in->q.shape[1], .keys = in->k.shape[1] };
    call.work = gpu_panels(r, spans, heads, width);
    if (has_panels(r, &call.work) &&
        gpu_began(r, "attention of few", gpu_api(r)->few(&call)))
        join(r, "attention of few", &call.work, &call.to);
    gpu_computed(r, ARITHMETIC_F32);
    arena_release(r->arena, mark);
}

/* ---- logits (op_logit_attend) ------------------------------------------------------- */

_Static_assert(LOGITS_GIVEN == 0 && LOGITS_UNIFORM == 1 && LOGITS_PRODUCT == 2 &&
               LOGITS_FOLDED == 3 && LOGITS_TILED == 4, "logits.cu has the same numbers");

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
        .bias = lines(r, &in->bias), .turned = in->turned, .seed = in->seed,
        .stream = in->stream, .bound = in->bound, .n = in->n, .m = in->v.shape[1],
        .v = gpu_tensor(r, &in->v), .causal = in->causal, .offset = in->offset,
    };

    call.to = (PanelOut){ .heads = heads, .out = gpu_tensor(r, &out->out),
                          .lse = lines(r, &out->lse) };
    call.work = gpu_panels(r, spans, count, in->v.shape[2]);
    if (has_panels(r, &call.work) &&
        gpu_began(r, "attention over logits", gpu_api(r)->logits(&call)))
        join(r, "attention over logits", &call.work, &call.to);
    gpu_computed(r, ARITHMETIC_F32);
    arena_release(r->arena, mark);
}

/* ---- rows of scores in double (op_row_attend, op_key_usage) ---------------------------
 *
 * Scores, weights and mixing take as many rows at a time as fit.
 */

#define LINES ((int64_t)1 << 25) /* scores at a time, unless one panel has more */

_Static_assert(ENTMAX_SOFTMAX == 0 && ENTMAX_SPARSEMAX == 1 && ENTMAX_SQUARE == 2 &&
               ENTMAX_BISECT == 3, "row_attend.cu has the same numbers");

/* The number of scores held at a time. */
static int64_t panel_lines(const Run *r)
{
    int64_t limit = r->spec.memory_limit / 8 / (int64_t)sizeof(double);

    return limit > 0 && limit < LINES ? limit : LINES;
}

static int64_t pitch_of(int64_t keys)
{
    return (keys + 7) / 8 * 8;
}

/* Allocates z: whole heads where they fit, else whole panels. */
static void take_lines(Run *r, ScoreRows *at)
{
    int64_t n = at->q.rows;

    at->pitch = pitch_of(at->k.rows);
    at->rows = panel_lines(r) / at->pitch / PANEL_ROWS * PANEL_ROWS;
    at->rows = at->rows < PANEL_ROWS ? PANEL_ROWS : at->rows;
    at->heads = at->rows > n ? at->rows / n : 1;
    at->heads = at->heads < at->all_heads ? at->heads : at->all_heads;
    at->rows = at->rows < n ? at->rows : n;
    at->z = gpu_scratch(r, at->heads * at->rows * at->pitch, sizeof(double));
}

typedef struct RowJob {
    const RowAttend *in;
    RowWeightsCall   weights;
    RowMixCall       mix;
} RowJob;

static const RowForm *forms_of(Run *r, const RowAttend *in, int64_t heads)
{
    RowForm *form = gpu_list(r, heads, sizeof(*form));

    for (int64_t t = 0; form && t < heads; t++)
        form[t] = (RowForm){ .form = (int32_t)in->form[t].form, .alpha = in->form[t].alpha,
                             .iterations = in->form[t].iterations,
                             .divide = in->form[t].divide };
    return form;
}

static RowMaskCall mask_call(Run *r, const RowMask *mask)
{
    RowMaskCall call = { 0 };

    if (!mask)
        return call;
    return (RowMaskCall){ .on = true, .n = mask->n, .m = mask->m,
                       .distance = lines(r, &mask->distance),
                       .logits = gpu_tensor(r, &mask->logits),
                       .plus = gpu_tensor(r, &mask->plus), .minus = gpu_tensor(r, &mask->minus),
                       .symmetric = mask->symmetric, .hard = mask->hard,
                       .borders = mask->borders, .no_diagonal = mask->no_diagonal,
                       .multiply = mask->multiply, .tau = mask->tau, .penalty = mask->penalty };
}

/* Panels of the current rows, with the columns that their last rows see. */
static PanelWork row_panels(Run *r, const RowJob *job)
{
    const ScoreRows *at = &job->weights.at;
    int64_t          panels = (at->rows + PANEL_ROWS - 1) / PANEL_ROWS;
    PanelSpan       *spans = gpu_list(r, at->heads * panels, sizeof(*spans));

    for (int64_t x = 0; spans && x < at->heads * panels; x++) {
        int64_t first = x % panels * PANEL_ROWS, left = at->rows - first;
        int64_t rows = left < PANEL_ROWS ? left : PANEL_ROWS;

        spans[x] = (PanelSpan){
            .head = at->first_head + x / panels, .first = at->first + first, .rows = rows,
            .keys = row_attend_keys(r, job->in, at->first + first + rows - 1) };
    }
    return gpu_panels(r, spans, at->heads * panels, job->in->v.shape[2]);
}

/* Rows at->first .. of heads at->first_head .. . */
static void take_rows(Run *r, RowJob *job)
{
    const DeviceApi *api = gpu_api(r);
    ArenaMark        mark = arena_mark(r->arena);

    job->mix.at = job->weights.at;
    job->mix.work = row_panels(r, job);
    if (has_panels(r, &job->mix.work) &&
        gpu_began(r, "scores", api->row_scores(&job->weights.at)) &&
        gpu_began(r, "weights of rows", api->row_weights(&job->weights)) &&
        gpu_began(r, "rows", api->row_mix(&job->mix)))
        join(r, "rows", &job->mix.work, &job->mix.to);
    arena_release(r->arena, mark);
}

static void take_heads(Run *r, RowJob *job)
{
    ScoreRows *at = &job->weights.at;
    int64_t    rows = at->rows, heads = at->heads;

    for (at->first_head = 0; at->first_head < at->all_heads; at->first_head += at->heads) {
        at->heads = heads < at->all_heads - at->first_head ? heads
                                                           : at->all_heads - at->first_head;
        for (at->first = 0; at->first < at->q.rows && gpu_ready(r); at->first += at->rows) {
            at->rows = rows < at->q.rows - at->first ? rows : at->q.rows - at->first;
            take_rows(r, job);
        }
    }
}

void gpu_row_attend(Run *r, const RowAttend *in, RowResult *out)
{
    ArenaMark mark = arena_mark(r->arena);
    int64_t   heads = out->out.shape[0];
    RowJob    job = { .in = in };

    job.weights = (RowWeightsCall){
        .at = { .all_heads = heads, .q = gpu_tensor(r, &in->q), .k = gpu_tensor(r, &in->k),
                .scale = in->scale, .causal = in->causal, .offset = r->q_offset },
        .form = forms_of(r, in, heads), .mask = mask_call(r, in->mask),
        .negligible = in->negligible, .tau = out->tau.data, .total = out->total.data,
        .support = tensor_i32(&out->support), .trace = in->trace.data,
        .steps = in->trace.data ? in->trace.shape[2] : 0 };
    job.mix = (RowMixCall){ .v = gpu_tensor(r, &in->v),
                            .to = { .heads = heads, .out = gpu_tensor(r, &out->out) } };
    take_lines(r, &job.weights.at);
    if (gpu_ready(r))
        take_heads(r, &job);
    gpu_computed(r, ARITHMETIC_F32);
    arena_release(r->arena, mark);
}

/* ---- how much keys are used ------------------------------------------------------- */

void gpu_key_usage(Run *r, const Tensor *q, const Tensor *k, double scale, bool causal,
                   Tensor *usage)
{
    ArenaMark     mark = arena_mark(r->arena);
    int64_t       h = q->shape[0], n = q->shape[1], m = k->shape[1];
    int64_t       pitch = pitch_of(m), step = panel_lines(r) / pitch / h;
    UsageMeanCall mean = { .heads = h, .n = n, .m = m, .usage = usage->data };
    UsageCall     call = { .at = { .all_heads = h, .heads = h, .q = gpu_tensor(r, q),
                                   .k = gpu_tensor(r, k), .scale = scale, .causal = causal,
                                   .offset = m - n, .pitch = pitch } };

    step = step < 1 ? 1 : step < n ? step : n;
    call.at.z = gpu_scratch(r, h * step * pitch, sizeof(double));
    call.total = gpu_scratch(r, h * step, sizeof(double));
    mean.sums = call.sums = gpu_scratch(r, h * m, sizeof(double));
    for (; call.at.first < n && gpu_ready(r); call.at.first += step) {
        call.at.rows = step < n - call.at.first ? step : n - call.at.first;
        if (gpu_began(r, "scores", gpu_api(r)->row_scores(&call.at)))
            gpu_began(r, "usage of keys", gpu_api(r)->usage(&call));
    }
    gpu_done(r, "usage of keys", gpu_ready(r) ? gpu_api(r)->usage_mean(&mean) : 0);
    arena_release(r->arena, mark);
}
