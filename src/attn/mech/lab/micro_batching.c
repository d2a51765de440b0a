/* micro_batching.c -- a pipeline of devices, fed with pieces of a batch.
 *
 * d devices hold consecutive layers; the batch is cut into m micro-batches.
 * Device i does the forward cell F(i,j) and the backward cell B(i,j) of each:
 *
 *     F(i,j)        starts at max(end F(i-1,j), end F(i,j-1))
 *     B(i,o(p))     starts at max(end B(i+1,o(p)), p = 0 ? end F(i,m-1) : end B(i,o(p-1)))
 *
 * with o the order of micro-batches on the way back.  Sending costs no time.
 * What a device waits is the bubble; with even stages its share is
 * (d - 1)/(m + d - 1), whatever a cell takes.  No tensor plays a part: time
 * and bytes are accounted, not measured.  (Huang et al. 2019, GPipe, section 2.)
 */
#include "attn/run.h"

#include <math.h>

#define FIELDS 5 /* device, op, micro-batch, start, end */

enum { ORDER_REVERSE, ORDER_SAME };
static const char *const orders[] = { "reverse", "same", NULL };

typedef struct Params {
    int64_t devices, micro_batches;
    double  t_forward, t_backward;
    Tensor  stage_times;
    bool    recompute;
    int     order;
    int64_t layers, layer_bytes, boundary_bytes;
} Params;

#define MOST_BYTES (1LL << 50)

static const Param params[] = {
    PARAM_INT(Params, devices, 4, 1, 1 << 20, "devices d in a row"),
    PARAM_INT(Params, micro_batches, 4, 1, 1 << 20, "micro-batches m of a batch"),
    PARAM_POSITIVE(Params, t_forward, 1, "time of a forward cell"),
    PARAM_POSITIVE(Params, t_backward, 1, "time of a backward cell (often twice the forward)"),
    PARAM_TENSOR(Params, stage_times, "[d]", "ones", "multiplies both times, for each device"),
    PARAM_BOOL(Params, recompute, false,
               "backward cells do their forward again first, so that its values need not be kept"),
    PARAM_ENUM(Params, order, ORDER_REVERSE, orders,
               "micro-batches on the way back: last first, or as they came"),
    PARAM_INT(Params, layers, 0, 0, 1 << 30, "layers L of the model; for the memory, all three"),
    PARAM_INT(Params, layer_bytes, 0, 0, MOST_BYTES, "bytes A a layer keeps of one micro-batch"),
    PARAM_INT(Params, boundary_bytes, 0, 0, MOST_BYTES,
              "bytes I of one micro-batch between layers"),
    PARAM_END
};

typedef struct Pipeline {
    int64_t d, m;
    int     order;
    Tensor  cells; /* f64 [2dm,FIELDS]: by device, then start */
    Tensor  busy;  /* f64 [d] time each works, as a share of all time in the end */
    double  total, work;
    bool    whole; /* all times are */
} Pipeline;

static const double *stage_factors(Run *r, const Params *p);
static void batch_forward(Run *r, const Params *p, Pipeline *s, const double *stage);
static void batch_place(Pipeline *s, int64_t device, int64_t at, int64_t batch, double start,
                        double time);
static double *cell_at(const Pipeline *s, int64_t device, int64_t at);
static double batch_end_of(const Pipeline *s, int64_t device, int64_t at);
static void backward(Run *r, const Params *p, Pipeline *s, const double *stage);
static int64_t batch_turned(const Pipeline *s, int64_t p);
static void batch_show(Run *r, const Params *p, Pipeline *s);
static void show_grid(Run *r, const Pipeline *s);
static void read_grid(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out);
static float at_time(const Pipeline *s, int64_t device, double t);
static void show_bubbles(Run *r, const Pipeline *s);
static void trace_memory(Run *r, const Params *p);
static double peak_bytes(const Params *p, bool alone);

static void micro_batching_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Pipeline     *s = run_alloc(r, 1, sizeof(*s)); /* the reader keeps it */
    const double *stage = stage_factors(r, p);

    r->out = run_tensor3(r, DT_F32, r->h, r->n, 0);
    if (run_failed(r))
        return;
    *s = (Pipeline){ .d = p->devices, .m = p->micro_batches, .order = p->order, .whole = true };
    s->cells = run_tensor2(r, DT_F64, 2 * s->d * s->m, FIELDS);
    s->busy = run_tensor1(r, DT_F64, s->d);
    for (int64_t i = 0; i < s->d && !run_failed(r); i++)
        ((double *)s->busy.data)[i] = 0;
    run_stage(r, "forward");
    batch_forward(r, p, s, stage);
    run_stage(r, "backward");
    backward(r, p, s, stage);
    batch_show(r, p, s);
}

/* [d] factors of the times. */
static const double *stage_factors(Run *r, const Params *p)
{
    Tensor  given = run_param_given(r, "stage_times", p->stage_times, DT_F64, 1,
                                    (int64_t[]){ p->devices });
    double *out = run_alloc(r, p->devices, sizeof(*out));

    if (p->stage_times.data && p->stage_times.shape[0] != p->devices)
        run_fail(r, ERR_PARAM, "micro-batching: stage_times has %lld times, but there are %lld "
                 "devices", (long long)p->stage_times.shape[0], (long long)p->devices);
    for (int64_t i = 0; i < p->devices && !run_failed(r); i++) {
        out[i] = given.data ? ((const double *)given.data)[i] : 1;
        if (!(out[i] > 0 && out[i] <= 1e30))
            run_fail(r, ERR_PARAM, "micro-batching: stage_times: device %lld has %g, which must be "
                     "above 0", (long long)i, out[i]);
    }
    return run_failed(r) ? NULL : out;
}

/* Cell `at` of every device waits for the one before on the device, and for the neighbour
 * the micro-batch comes from. */
static void batch_forward(Run *r, const Params *p, Pipeline *s, const double *stage)
{
    for (int64_t i = 0; i < s->d && !run_failed(r); i++)
        for (int64_t j = 0; j < s->m; j++)
            batch_place(s, i, j, j, fmax(batch_end_of(s, i - 1, j), batch_end_of(s, i, j - 1)),
                        p->t_forward * stage[i]);
}

static void batch_place(Pipeline *s, int64_t device, int64_t at, int64_t batch, double start,
                        double time)
{
    double *cell = cell_at(s, device, at);

    cell[0] = (double)device;
    cell[1] = at >= s->m;
    cell[2] = (double)batch;
    cell[3] = start;
    cell[4] = start + time;
    ((double *)s->busy.data)[device] += time;
    s->total = fmax(s->total, cell[4]);
    s->whole = s->whole && fabs(cell[4] - floor(cell[4])) <= 0;
}

static double *cell_at(const Pipeline *s, int64_t device, int64_t at)
{
    return (double *)s->cells.data + (device * 2 * s->m + at) * FIELDS;
}

static double batch_end_of(const Pipeline *s, int64_t device, int64_t at)
{
    return at < 0 || device < 0 || device >= s->d ? 0 : cell_at(s, device, at)[4];
}

static void backward(Run *r, const Params *p, Pipeline *s, const double *stage)
{
    double time = p->t_backward + (p->recompute ? p->t_forward : 0);

    for (int64_t i = s->d - 1; i >= 0 && !run_failed(r); i--)
        for (int64_t t = 0; t < s->m; t++)
            batch_place(s, i, s->m + t, batch_turned(s, t),
                        fmax(batch_end_of(s, i + 1, s->m + t), batch_end_of(s, i, s->m + t - 1)),
                        time * stage[i]);
}

/* The micro-batch whose backward pass is p-th, and the inverse. */
static int64_t batch_turned(const Pipeline *s, int64_t p)
{
    return s->order == ORDER_REVERSE ? s->m - 1 - p : p;
}

/* ---- views ---------------------------------------------------------------------- */

static void batch_show(Run *r, const Params *p, Pipeline *s)
{
    if (!run_wants_views(r))
        return;
    for (int64_t i = 0; i < s->d; i++) {
        s->work += ((double *)s->busy.data)[i];
        ((double *)s->busy.data)[i] /= s->total;
    }
    show_grid(r, s);
    view_tensor(r, "timeline", VIEW_TENSOR, s->cells, "cell",
                "device, op, micro-batch, start, end");
    view_tensor(r, "busy", VIEW_MASK, s->busy, "share of the time", "device");
    show_bubbles(r, s);
    run_figure(r, "total_time", s->total);
    run_figure(r, "bubble_fraction", 1 - s->work / ((double)s->d * s->total));
    run_figure(r, "ideal_bubble_fraction", (double)(s->d - 1) / (double)(s->m + s->d - 1));
    run_figure(r, "speedup", s->work / s->total);
    trace_memory(r, p);
}

static void show_grid(Run *r, const Pipeline *s)
{
    View *view = s->whole && s->total < INT32_MAX
                     ? view_add(r, "grid", VIEW_SCHEDULE, DT_I32, 2,
                                (int64_t[]){ s->d, (int64_t)s->total })
                     : NULL;

    if (!view)
        return;
    view->read = read_grid;
    view->context = s;
    view->rows = "device";
    view->cols = "time";
}

static void read_grid(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    (void)plane;
    for (int64_t c = 0; c < count; c++)
        out[c] = at_time(view->context, i, (double)(start + c * step));
}

/* What the device does from time t to t + 1. */
static float at_time(const Pipeline *s, int64_t device, double t)
{
    int64_t lo = 0, hi = 2 * s->m; /* the last cell that starts at t or before */

    while (lo < hi) {
        int64_t middle = (lo + hi) / 2;

        if (cell_at(s, device, middle)[3] <= t)
            lo = middle + 1;
        else
            hi = middle;
    }
    if (lo == 0 || cell_at(s, device, lo - 1)[4] <= t)
        return 0;
    return (float)((cell_at(s, device, lo - 1)[2] + 1) * (lo - 1 < s->m ? 1 : -1));
}

/* Bubble of the even pipeline for 1, 2, 4, ... micro-batches. */
static void show_bubbles(Run *r, const Pipeline *s)
{
    int64_t most = 4 * s->d > s->m ? 4 * s->d : s->m, rows = 1;
    Tensor  batches, bubbles;

    while (1LL << (rows - 1) < most)
        rows++;
    batches = run_tensor1(r, DT_I64, rows);
    bubbles = run_tensor1(r, DT_F64, rows);
    for (int64_t row = 0; row < rows && !run_failed(r); row++) {
        int64_t m = 1LL << row;

        ((int64_t *)batches.data)[row] = m;
        ((double *)bubbles.data)[row] = (double)(s->d - 1) / (double)(m + s->d - 1);
    }
    view_tensor(r, "batches", VIEW_COUNT, batches, "micro-batches", "choice");
    view_tensor(r, "bubbles", VIEW_MASK, bubbles, "idle share", "micro-batches");
}

static void trace_memory(Run *r, const Params *p)
{
    if (!run_is_given(r, "layers") || !run_is_given(r, "layer_bytes") ||
        !run_is_given(r, "boundary_bytes"))
        return;
    run_figure_int(r, "peak_bytes_per_device", (int64_t)peak_bytes(p, false));
    run_figure_int(r, "peak_bytes_one_device", (int64_t)peak_bytes(p, true));
}

/* Of one device of the pipeline, or of one that holds the whole model. */
static double peak_bytes(const Params *p, bool alone)
{
    double m = (double)p->micro_batches, between = (double)p->boundary_bytes;
    double held = (double)p->layer_bytes *
                  (double)(alone ? p->layers : (p->layers + p->devices - 1) / p->devices);

    if (p->recompute)
        return m * between + held;
    return alone ? between + m * held : m * (between + held);
}

static void micro_batching_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (!(peak_bytes(p, false) < PARAM_COUNT_MAX) || !(peak_bytes(p, true) < PARAM_COUNT_MAX))
        run_fail(r, ERR_PARAM, "micro-batching: layers, layer_bytes and boundary_bytes take more "
                 "bytes than can be counted; choose smaller ones");
}

static Flops micro_batching_flops(Run *r, const void *opaque)
{
    (void)r;
    (void)opaque;
    return (Flops){ 0 };
}

static const StageNote notes[] = {
    { "forward", "A micro-batch is passed on as soon as a device is done with it, so the devices "
                 "start one after another." },
    { "backward", "The last device turns round first and the gradients come back the same way; "
                  "what a device waits in between is the bubble.  With recompute every cell of "
                  "this way does its forward again first." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("grid", VIEW_SCHEDULE, "what each device does in each unit of time (when all times are "
         "whole): 0 idle, j+1 forward, -(j+1) backward of micro-batch j", .maybe = true),
    VIEW("timeline", VIEW_TENSOR, "device, op (0 forward, 1 backward), micro-batch, start, end of "
         "every cell"),
    VIEW("busy", VIEW_MASK, "share of the time that each device works"),
    VIEW("batches", VIEW_COUNT, "numbers of micro-batches of bubbles"),
    VIEW("bubbles", VIEW_MASK, "idle share of an even pipeline against the number of micro-batches",
         .curve = { .x = "micro-batches", .y = "idle share", .along = "batches", .log_x = true }),
    VIEW_PROMISE_END
};

const Mechanism mech_micro_batching = {
    .id = "micro-batching",
    .title = "Micro-batching (GPipe)",
    .authors = "Huang, Cheng, Bapna, Firat, Chen, Chen, Lee, Ngiam, Le, Wu, Chen",
    .year = 2019,
    .arxiv = "1811.06965",
    .source = "paper, section 2 and figure 2",
    .formula = "F(i,j) starts at max(end F(i-1,j), end F(i,j-1)); B comes back the same way\n"
               "bubble = 1 - busy / (d T) = (d-1)/(m+d-1) for even stages",
    .problem = "With layers spread over devices, all but one device wait.",
    .idea = "The batch is cut into pieces that follow each other through the devices.",
    .price = "Some waiting remains at both ends, and it shrinks only with more pieces.",
    .teaches = "Layers spread over devices leave all but one idle; cutting the batch into pieces "
               "makes a staircase whose idle triangles shrink with the number of pieces.  Where "
               "a piece's activations are recomputed, the memory of each device shrinks too.",
    .picture = "grid",
    .classes = CLASS_LAB,
    .claim_time = "O((m + d - 1) / m) of the ideal",
    .claim_memory = "O(n + L/d n/m) activations a device, with recompute",
    .claim_decode = "-",
    .no_causal = "it schedules layers; tokens and their order play no part",
    .cross = true,
    .needs_none = true,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = micro_batching_check,
    .run = micro_batching_run,
    .flops = micro_batching_flops,
};
