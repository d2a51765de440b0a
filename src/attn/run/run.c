/* run.c -- executing a mechanism; see run.h. */
#include "attn/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ----------------------------------------------------------------- */

bool run_failed(const Run *r)
{
    return r->err.code != ERR_NONE || (r->spec.cancel && atomic_load(r->spec.cancel));
}

void run_fail(Run *r, ErrorCode code, const char *fmt, ...)
{
    va_list args;

    if (r->err.code != ERR_NONE)
        return;
    va_start(args, fmt);
    error_vset(&r->err, code, fmt, args);
    va_end(args);
}

void run_warn(Run *r, const char *fmt, ...)
{
    char    line[400];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    text_addf(&r->warnings, "%s\n", line);
}

/* ---- stages ----------------------------------------------------------------- */

static Stage *current_stage(Run *r)
{
    return r->stage_count ? &r->stages[r->stage_count - 1] : NULL;
}

static void stage_end(Run *r)
{
    Stage *stage = current_stage(r);

    if (stage)
        stage->arena_peak = arena_peak(r->arena);
}

void run_iteration(Run *r, const char *name, int64_t iteration)
{
    Stage *stage;

    if (run_failed(r))
        return;
    stage_end(r);
    /* A very long iteration keeps counting in its last stage. */
    if (r->stage_count < RUN_MAX_STAGES)
        r->stage_count++;
    stage = current_stage(r);
    if (r->stage_count < RUN_MAX_STAGES || !stage->name)
        *stage = (Stage){ .name = name, .iteration = iteration };
    if (r->spec.observer)
        r->spec.observer(r->spec.observer_context, r, stage);
}

void run_stage(Run *r, const char *name)
{
    run_iteration(r, name, -1);
}

int64_t run_iterations(const Run *r, const char *name)
{
    int64_t count = 0;

    for (int i = 0; i < r->stage_count; i++)
        count += !strcmp(r->stages[i].name, name);
    return count;
}

void run_ahead(const Run *r, double flops)
{
    if (r->spec.progress && !r->again)
        progress_ahead(r->spec.progress, flops);
}

void run_tell(const Run *r, double share)
{
    if (r->spec.progress && share > atomic_load(&r->spec.progress->told))
        atomic_store(&r->spec.progress->told, share < 1 ? share : 1);
}

void op_charge(Run *r, FlopClass charge, double flops)
{
    Stage *stage = current_stage(r);

    if (!stage || run_failed(r) || r->again)
        return;
    if (r->spec.progress && charge < FLOP_POSITION)
        progress_charge(r->spec.progress, flops);
    switch (charge) {
    case FLOP_SCORE: stage->flops.score += flops; break;
    case FLOP_MIX: stage->flops.mix += flops; break;
    case FLOP_OVERHEAD: stage->flops.overhead += flops; break;
    case FLOP_POSITION: stage->flops.position += flops; break;
    case FLOP_APART:
    case FLOP_NONE: break;
    }
}

void op_traffic(Run *r, double bytes_read, double bytes_written)
{
    Stage *stage = current_stage(r);

    if (!stage || run_failed(r) || r->again)
        return;
    stage->bytes.read += bytes_read;
    stage->bytes.written += bytes_written;
}

Flops run_flops(const Run *r)
{
    Flops sum = { 0 };

    for (int i = 0; i < r->stage_count; i++) {
        sum.score += r->stages[i].flops.score;
        sum.mix += r->stages[i].flops.mix;
        sum.overhead += r->stages[i].flops.overhead;
        sum.position += r->stages[i].flops.position;
    }
    return sum;
}

Bytes run_bytes(const Run *r)
{
    Bytes sum = { 0 };

    for (int i = 0; i < r->stage_count; i++) {
        sum.read += r->stages[i].bytes.read;
        sum.written += r->stages[i].bytes.written;
    }
    return sum;
}

bool run_closed_form(Run *r, Flops *flops, bool *bound)
{
    const Mechanism *m = r->mechanism;

    if (!m->flops || run_failed(r))
        return false;
    *flops = m->flops(r, r->params);
    /* score is 2 d per cell wherever a bias kind is accepted */
    flops->position = r->position_flops;
    if (r->position_cell_flops > 0)
        flops->position += r->position_cell_flops * flops->score / (2 * (double)r->d);
    *bound = m->flops_bound || r->inner_bound;
    return !run_failed(r);
}

static const View *view_named(const Run *r, const char *name)
{
    for (int i = r->view_count - 1; i >= 0; i--)
        if (!strcmp(r->views[i].name, name))
            return &r->views[i];
    return NULL;
}

/* "permutation#3": the third view of that name, in the order they were made. */
static const View *view_numbered(const Run *r, const char *name)
{
    const char *sign = strchr(name, '#');
    char       *end;
    long        number = sign ? strtol(sign + 1, &end, 10) : 0;

    for (int i = 0; number > 0 && !*end && i < r->view_count; i++)
        if (strlen(r->views[i].name) == (size_t)(sign - name) &&
            !strncmp(r->views[i].name, name, (size_t)(sign - name)) && --number == 0)
            return &r->views[i];
    return NULL;
}

const View *run_view(const Run *r, const char *name)
{
    const View *view = strchr(name, '#') ? view_numbered(r, name) : view_named(r, name);

    return view || strcmp(name, "bias") != 0 ? view : view_named(r, "position_bias");
}

/* ---- memory ----------------------------------------------------------------- */

/* Of the two ends of memory, --mem's and the GPU's, the one that was met. */
static void memory_end(const Run *r, int64_t bytes, char *text, size_t size)
{
    int64_t limit = r->spec.memory_limit, used = arena_used(r->arena), left = arena_left(r->arena);
    char    a[32], b[32];

    if (r->ops->memory && (!limit || bytes <= limit - used))
        snprintf(text, size, " from the GPU, with %s of it in use and %s free; nvidia-smi shows "
                 "what else takes its memory", format_bytes(used, a, sizeof(a)),
                 left < 0 ? "an unknown part" : format_bytes(left, b, sizeof(b)));
    else if (limit)
        snprintf(text, size, " with %s in use, and the limit is %s (--mem)",
                 format_bytes(used, a, sizeof(a)), format_bytes(limit, b, sizeof(b)));
    else
        *text = '\0';
}

void run_out_of_memory(Run *r)
{
    char    asked[32], end[160];
    int64_t bytes = arena_largest_refused(r->arena);

    if (arena_broken(r->arena)) {
        run_fail(r, ERR_UNSUPPORTED, "%s: %s", r->mechanism->id, arena_broken(r->arena));
        return;
    }
    memory_end(r, bytes, end, sizeof(end));
    run_fail(r, ERR_NOMEM, "%s: not enough memory: %s were asked for in one piece%s",
             r->mechanism->id,
             bytes == INT64_MAX ? "more bytes than can be counted"
                                : format_bytes(bytes, asked, sizeof(asked)),
             end);
}

void *run_alloc(Run *r, int64_t count, int64_t size)
{
    void *data;

    if (run_failed(r))
        return NULL;
    data = arena_alloc(r->arena, count, size);
    if (!data)
        run_out_of_memory(r);
    return data;
}

Tensor run_tensor(Run *r, DType dtype, int rank, const int64_t *shape)
{
    Tensor t = tensor_of(dtype, rank, shape, NULL);

    if (run_failed(r))
        return t;
    t = tensor_new(r->arena, dtype, rank, shape);
    if (!t.data)
        run_out_of_memory(r);
    return t;
}

Tensor run_tensor1(Run *r, DType dtype, int64_t a)
{
    return run_tensor(r, dtype, 1, (int64_t[]){ a });
}

Tensor run_tensor2(Run *r, DType dtype, int64_t a, int64_t b)
{
    return run_tensor(r, dtype, 2, (int64_t[]){ a, b });
}

Tensor run_tensor3(Run *r, DType dtype, int64_t a, int64_t b, int64_t c)
{
    return run_tensor(r, dtype, 3, (int64_t[]){ a, b, c });
}

Tensor run_tensor4(Run *r, DType dtype, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return run_tensor(r, dtype, 4, (int64_t[]){ a, b, c, d });
}

/* ---- what mechanisms ask --------------------------------------------------------- */

void run_heads(Run *r, int64_t heads, int64_t d, int64_t e)
{
    r->h = heads;
    r->d = d;
    r->e = e;
}

void run_read_x(Run *r)
{
    if (!r->x.data)
        return;
    r->n = r->m = r->x.shape[0];
    r->q_offset = 0;
    r->of_x = true;
    run_heads(r, 1, r->dm, r->dm);
}

double run_scale(const Run *r, double scale)
{
    if (scale > 0)
        return scale;
    return r->spec.scale > 0 ? r->spec.scale : 1 / sqrt((double)r->d);
}

int64_t run_image_width(Run *r, int64_t width)
{
    int64_t root = (int64_t)floor(sqrt((double)r->n) + 0.5);

    r->width = width > 0 ? width : r->spec.width > 0 ? r->spec.width : root > 1 ? root : 1;
    return r->width;
}

static AttendInput positioned(Run *r, Tensor q, Tensor k, Tensor v, double scale)
{
    const Position *position = r->spec.position;
    AttendInput     in = { .q = q, .k = k, .v = v, .scale = run_scale(r, scale), .raw_q = q,
                           .raw_k = k };

    if (run_failed(r) || !position)
        return in;
    if (position->default_scale && !(scale > 0) && !(r->spec.scale > 0))
        in.scale = position->default_scale(r->position_params, r->d);
    run_stage(r, "position");
    position->apply(r, r->position_params, &in);
    r->position_flops += r->stages[r->stage_count - 1].flops.position;
    r->position_cell_flops = in.cell_flops;
    return in;
}

AttendInput run_attend_input(Run *r, double scale)
{
    return positioned(r, r->q, r->k, r->v, scale);
}

AttendInput run_attend_input_of(Run *r, Tensor q, Tensor k, Tensor v, double scale)
{
    bool        views = r->spec.views;
    AttendInput in;

    r->spec.views = false;
    in = positioned(r, q, k, v, scale);
    r->spec.views = views;
    if (views)
        op_wait(r, NULL);
    return in;
}

void run_figure(Run *r, const char *name, double value)
{
    if (r->figure_count < (int)(sizeof(r->figures) / sizeof(*r->figures))) {
        r->figures[r->figure_count].name = name;
        r->figures[r->figure_count].integer = false;
        r->figures[r->figure_count++].value = value;
    }
}

void run_figure_int(Run *r, const char *name, int64_t value)
{
    run_figure(r, name, (double)value);
    r->figures[r->figure_count - 1].integer = true;
}
