/* gpu_row_attend.c -- rows of scores in double on the device; see attn/ops/ops.h, op_row_attend and
 * op_key_usage.
 *
 * As many rows as fit are scored, made weights and mixed at a time.
 */
#include "attn/cuda/host/gpu_panels.h"

#define LINES ((int64_t)1 << 25) /* scores at a time, unless one panel has more */

_Static_assert(ENTMAX_SOFTMAX == 0 && ENTMAX_SPARSEMAX == 1 && ENTMAX_SQUARE == 2 &&
               ENTMAX_BISECT == 3, "row_forms.cuh counts them like this");

/* Scores that may be held at a time. */
static int64_t lines_of(const Run *r)
{
    int64_t limit = r->spec.memory_limit / 8 / (int64_t)sizeof(double);

    return limit > 0 && limit < LINES ? limit : LINES;
}

static int64_t pitch_of(int64_t keys)
{
    return (keys + 7) / 8 * 8;
}

/* Takes z; whole heads where they fit, else whole panels. */
static void take_lines(Run *r, ScoreRows *at)
{
    int64_t n = at->q.rows;

    at->pitch = pitch_of(at->k.rows);
    at->rows = lines_of(r) / at->pitch / PANEL_ROWS * PANEL_ROWS;
    at->rows = at->rows < PANEL_ROWS ? PANEL_ROWS : at->rows;
    at->heads = at->rows > n ? at->rows / n : 1;
    at->heads = at->heads < at->all_heads ? at->heads : at->all_heads;
    at->rows = at->rows < n ? at->rows : n;
    at->z = gpu_scratch(r, at->heads * at->rows * at->pitch, sizeof(double));
}

typedef struct RowJob {
    Run             *run;
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
                       .distance = gpu_lines(gpu_tensor(r, &mask->distance)),
                       .logits = gpu_tensor(r, &mask->logits),
                       .plus = gpu_tensor(r, &mask->plus), .minus = gpu_tensor(r, &mask->minus),
                       .symmetric = mask->symmetric, .hard = mask->hard,
                       .borders = mask->borders, .no_diagonal = mask->no_diagonal,
                       .multiply = mask->multiply, .tau = mask->tau, .penalty = mask->penalty };
}

/* Panels of the rows in hand with the columns that their last rows see. */
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
    if (gpu_has_panels(r, &job->mix.work) &&
        gpu_began(r, "scores", api->row_scores(&job->weights.at)) &&
        gpu_began(r, "weights of rows", api->row_weights(&job->weights)) &&
        gpu_began(r, "rows", api->row_mix(&job->mix)) &&
        gpu_join(r, &job->mix.work, &job->mix.to))
        gpu_done(r, "rows", 0);
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
    RowJob    job = { .run = r, .in = in };

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
    int64_t       pitch = pitch_of(m), step = lines_of(r) / pitch / h;
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
