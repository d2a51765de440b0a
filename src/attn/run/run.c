/* run.c -- executing a mechanism; see run.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/run.h"
#include "attn/run/position.h"
#include "core/rng.h"
#include "core/threads.h"

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

static void add_line(Text *lines, bool once, const char *fmt, va_list args)
{
    char line[400];

    vsnprintf(line, sizeof(line), fmt, args);
    if (!once || !text_has_line(lines, line))
        text_addf(lines, "%s\n", line);
}

void run_warn(Run *r, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    add_line(&r->warnings, false, fmt, args);
    va_end(args);
}

int64_t *run_head_counts(Run *r, int64_t heads)
{
    int64_t *counts = run_alloc(r, heads, sizeof(*counts));

    return counts ? memset(counts, 0, (size_t)heads * sizeof(*counts)) : NULL;
}

int64_t run_count_by_head(Run *r, const int64_t *counts, int64_t heads, int64_t each)
{
    int64_t sum = 0;

    for (int64_t h = 0; counts && h < heads; h++)
        sum += counts[h];
    if (counts && heads > 1 && r->by_head_count < (int)(sizeof(r->by_head) / sizeof(*r->by_head))) {
        r->by_head[r->by_head_count].counts = counts;
        r->by_head[r->by_head_count].heads = heads;
        r->by_head[r->by_head_count++].each = each;
    }
    return sum;
}

void run_looks_ahead(Run *r, const char *why)
{
    if (r->causal)
        run_warn(r, "%s: %s, so later tokens can change earlier outputs", r->mechanism->id, why);
}

void run_note(Run *r, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    add_line(&r->notes, true, fmt, args);
    va_end(args);
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

void run_report(const Run *r, double share)
{
    if (r->spec.progress && share > atomic_load(&r->spec.progress->reported))
        atomic_store(&r->spec.progress->reported, share < 1 ? share : 1);
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

/* Of the last positions: of all of them, less those before. */
static Flops flops_at_end(Run *r)
{
    const Mechanism *m = r->mechanism;
    int64_t          n = r->n;
    Flops            all, before;

    r->n = r->m;
    all = m->flops(r, r->params);
    r->n = r->m - r->at_end;
    before = m->flops(r, r->params);
    r->n = n;
    return (Flops){ .score = all.score - before.score, .mix = all.mix - before.mix,
                    .overhead = all.overhead - before.overhead };
}

bool run_closed_form(Run *r, Flops *flops, bool *bound)
{
    const Mechanism *m = r->mechanism;

    if (!m->flops || run_failed(r))
        return false;
    *flops = r->at_end ? flops_at_end(r) : m->flops(r, r->params);
    /* score is 2 d per cell wherever a bias kind is accepted */
    flops->position = r->position_flops;
    if (r->position_cell_flops > 0)
        flops->position += r->position_cell_flops * flops->score / (2 * (double)r->d);
    *bound = m->flops_bound || r->inner_bound;
    return !run_failed(r);
}

static const View *run_view_named(const Run *r, const char *name)
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
    const View *view = strchr(name, '#') ? view_numbered(r, name) : run_view_named(r, name);

    return view || strcmp(name, "bias") != 0 ? view : run_view_named(r, "position_bias");
}

/* ---- memory ----------------------------------------------------------------- */

/* Which of the two memory limits was reached: --mem, or the GPU's. */
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
    int64_t root = (int64_t)floor(sqrt((double)(r->at_end ? r->m : r->n)) + 0.5);

    r->width = width > 0 ? width : r->spec.width > 0 ? r->spec.width : root > 1 ? root : 1;
    return r->width;
}

static AttendInput positioned(Run *r, Tensor q, Tensor k, Tensor v, double scale)
{
    const Position *position = r->spec.position;
    AttendInput     in = { .q = q, .k = k, .v = v, .scale = run_scale(r, scale),
                           .softcap = r->softcap, .raw_q = q, .raw_k = k };

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

static AttendInput positioned_within(Run *r, Tensor q, Tensor k, Tensor v, double scale,
                                     const Pattern *cells)
{
    AttendInput in;

    r->position_cells = cells;
    in = positioned(r, q, k, v, scale);
    r->position_cells = NULL;
    return in;
}

AttendInput run_attend_input_within(Run *r, double scale, const Pattern *cells)
{
    return positioned_within(r, r->q, r->k, r->v, scale, cells);
}

Pattern *run_allowed_cells(Run *r)
{
    PatternShape s = { .heads = r->h, .n = r->n, .m = r->m, .q_offset = r->q_offset };
    Pattern     *all = run_failed(r) ? NULL : pattern_full(r->arena, s, COMPONENT_OTHER);

    all = all ? pattern_finish(r->arena, s, all, r->causal) : NULL;
    if (!all)
        run_fail(r, ERR_NOMEM, "%s: not enough memory for the pattern", r->mechanism->id);
    return all;
}

AttendInput run_attend_input_allowed(Run *r, double scale)
{
    return run_attend_input_within(r, scale, r->spec.position ? run_allowed_cells(r) : NULL);
}

AttendInput run_attend_input_of(Run *r, Tensor q, Tensor k, Tensor v, double scale,
                                const Pattern *cells)
{
    bool        views = r->spec.views;
    AttendInput in;

    r->spec.views = false;
    in = positioned_within(r, q, k, v, scale, cells);
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

void run_size(Run *r, const char *param, int64_t value)
{
    if (r->size_count < (int)(sizeof(r->sizes) / sizeof(*r->sizes))) {
        r->sizes[r->size_count].name = param;
        r->sizes[r->size_count++].value = value;
    }
}

/* Tensors that a mechanism is given, or that are drawn for it; see run.h. */

/* The given tensor with its head axis put in where it is missing. */
static bool fit_shape(Tensor *t, int rank, const int64_t *shape)
{
    if (t->rank == rank - 1)
        *t = tensor_with_rank(*t, rank);
    if (t->rank != rank)
        return false;
    for (int i = 0; i < rank; i++)
        if (t->shape[i] != shape[i] && !(i == 0 && t->shape[0] == 1))
            return false;
    return true;
}

void run_origin(Run *r, const char *name, Origin origin)
{
    int i = 0;

    while (i < r->tensor_count && strcmp(r->tensors[i].name, name) != 0)
        i++;
    if (i == RUN_MAX_TENSORS)
        return;
    r->tensor_count = i == r->tensor_count ? i + 1 : r->tensor_count;
    snprintf(r->tensors[i].name, sizeof(r->tensors[i].name), "%s", name);
    r->tensors[i].origin = origin;
}

bool run_fits(const Run *r)
{
    return r->spec.fit;
}

char *run_origin_text(const Run *r, Origin origin, char *text, size_t size)
{
    if (origin == ORIGIN_DRAWN)
        snprintf(text, size, "random seed %llu", (unsigned long long)r->seed);
    else
        snprintf(text, size, origin == ORIGIN_FILE ? "file" : "fitted");
    return text;
}

/* The contiguous tensor as this type, where the run's operations read it: a model on a device has
 * its parameters there before it runs. */
static Tensor of_run(Run *r, Tensor given, DType dtype)
{
    bool   moves = r->ops->memory && !arena_holds(r->arena, given.data);
    Tensor t = given;

    if (!moves && given.dtype == dtype)
        return given;
    run_prepare(r, true);
    if (given.dtype != dtype)
        t = tensor_convert(r->arena, given, dtype);
    else
        t = run_tensor(r, dtype, given.rank, given.shape);
    if (!t.data)
        run_out_of_memory(r);
    else if (given.dtype == dtype)
        memcpy(t.data, given.data, (size_t)tensor_bytes(&given));
    op_toward(r, t.data, tensor_bytes(&t));
    run_prepare(r, false);
    return t;
}

/* Tables of indices may come in any dtype; what a 32-bit integer cannot hold is no index. */
static void run_check_whole(Run *r, const char *name, const Tensor *given)
{
    double  value = 0;
    int64_t at = tensor_not_whole(given, INT32_MIN, INT32_MAX, &value);

    if (at >= 0)
        run_fail(r, ERR_PARAM, "%s: parameter %s: entry %lld is %.17g; expected whole numbers "
                 "(int32)", r->mechanism->id, name, (long long)at, value);
}

/* No mechanism has a use for a tensor without values. */
static bool is_empty(Run *r, const char *name, const Tensor *t)
{
    char text[80];

    if (tensor_count(t) > 0)
        return false;
    run_fail(r, ERR_PARAM, "%s: parameter %s has shape %s: it is empty; every axis needs a size of "
             "at least 1", r->mechanism->id, name, tensor_shape_text(t, text, sizeof(text)));
    return true;
}

Tensor run_param_given(Run *r, const char *name, Tensor given, DType dtype, int rank,
                       const int64_t *shape)
{
    Tensor want = tensor_of(dtype, rank, shape, NULL), found = given;
    char   want_text[80], found_text[80];

    if (run_failed(r) || !given.data)
        return want;
    run_origin(r, name, ORIGIN_FILE);
    if (is_empty(r, name, &given))
        return want;
    if (!tensor_contiguous(&given))
        given = tensor_convert(r->arena, given, given.dtype);
    if (!fit_shape(&given, rank, shape)) {
        run_fail(r, ERR_PARAM, "%s: parameter %s: expected shape %s (or without its first axis), "
                 "found %s", r->mechanism->id, name,
                 tensor_shape_text(&want, want_text, sizeof(want_text)),
                 tensor_shape_text(&found, found_text, sizeof(found_text)));
        return want;
    }
    if (dtype == DT_I32)
        run_check_whole(r, name, &given);
    return run_failed(r) ? want : of_run(r, given, dtype);
}

Tensor run_for_each_head(Run *r, Tensor t)
{
    Tensor all;

    if (t.shape[0] == r->h || run_failed(r))
        return t;
    all = run_tensor3(r, DT_F32, r->h, t.shape[1], t.shape[2]);
    op_entries(r, t, ENTRY_CAST, 0, all);
    return all;
}

Rng run_rng(Run *r, const char *name)
{
    return rng_named(r->seed, name);
}

static void draw_gumbel(Rng *rng, float *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double u = rng_uniform(rng);

        out[i] = (float)-log(-log(u > 0 ? u : 0x1p-54));
    }
}

#define DRAW_PIECE 65536 /* even: a normal number comes with its pair */

typedef struct Draw {
    Run    *run;
    Rng     rng;
    Init    init;
    float  *out;
    int64_t count;
} Draw;

static void run_draw_item(void *context, int64_t item, int worker)
{
    const Draw *d = context;
    int64_t     first = item * DRAW_PIECE;
    int64_t     count = d->count - first < DRAW_PIECE ? d->count - first : DRAW_PIECE;
    double      bound = d->init.kind == INIT_GLOROT ? sqrt(6 / d->init.a) : d->init.a;
    Rng         rng = d->rng;

    (void)worker;
    if (run_failed(d->run))
        return;
    rng.at += (uint64_t)first;
    if (d->init.kind == INIT_NORMAL)
        rng_fill_normal(&rng, d->out + first, count, d->init.a);
    else if (d->init.kind == INIT_GUMBEL)
        draw_gumbel(&rng, d->out + first, count);
    else
        rng_fill_uniform(&rng, d->out + first, count, -bound, bound);
}

void run_prepare(Run *r, bool begins)
{
    bool outermost = begins ? r->preparing++ == 0 : --r->preparing == 0;

    if (outermost)
        op_wait(r, NULL); /* time spent here belongs to neither neighbouring stage */
    if (outermost && r->spec.preparing)
        r->spec.preparing(r->spec.observer_context, begins);
}

void run_draw(Run *r, Rng *rng, Init init, Tensor t)
{
    Draw d = { .run = r, .rng = *rng, .init = init, .out = tensor_f32(&t),
               .count = tensor_count(&t) };

    if (run_failed(r))
        return;
    run_prepare(r, true);
    if (init.kind == INIT_NORMAL) /* numbers come in pairs */
        d.rng.at += d.rng.at % 2;
    if (init.kind == INIT_ZERO)
        memset(t.data, 0, (size_t)tensor_bytes(&t));
    else
        threads_run(r->threads, (d.count + DRAW_PIECE - 1) / DRAW_PIECE, run_draw_item, &d);
    rng->at = d.rng.at + (uint64_t)d.count;
    if (init.kind == INIT_NORMAL)
        rng->at += rng->at % 2;
    op_toward(r, t.data, tensor_bytes(&t));
    run_prepare(r, false);
}

Tensor run_param(Run *r, const char *name, Tensor given, DType dtype, int rank,
                 const int64_t *shape, Init init)
{
    Tensor t;
    Rng    rng;

    if (given.data || run_failed(r))
        return run_param_given(r, name, given, dtype, rank, shape);
    t = run_tensor(r, dtype, rank, shape);
    if (!t.data)
        return t;
    rng = run_rng(r, name);
    run_draw(r, &rng, init, t);
    if (init.kind != INIT_ZERO)
        view_drawn(r, name, t);
    return t;
}

bool run_is_given(const Run *r, const char *name)
{
    return r->spec.given && assignments_find(r->spec.given, name);
}

const double *run_per_head(Run *r, const char *name, const PerHead *given)
{
    const Param *p = params_find(r->mechanism->params, name);
    Tensor       t = run_param_given(r, name, given->tensor, DT_F64, 1, (int64_t[]){ r->h });
    double      *out = run_alloc(r, r->h, sizeof(*out));

    for (int64_t head = 0; head < r->h && !run_failed(r); head++) {
        double x = t.data ? *(double *)tensor_head(&t, head, r->h) : given->value;

        out[head] = x;
        if (!(x >= p->lo && x <= p->hi) || (p->above_lo && x <= p->lo))
            run_fail(r, ERR_PARAM, "%s: parameter %s: head %lld has %g, which must be %s %g",
                     r->mechanism->id, name, (long long)head, x, p->above_lo ? "above" : "at least",
                     p->lo);
    }
    return run_failed(r) ? NULL : out;
}

Tensor run_param_cut(Run *r, const char *name, Tensor given, int rank, const int64_t *shape,
                     unsigned longer, const Init *init)
{
    int64_t want[TENSOR_MAX_RANK];
    int     lead = rank - given.rank; /* axes that are not written out */
    Tensor  t;

    for (int i = 0; i < rank; i++) {
        want[i] = shape[i];
        if (given.data && longer >> i & 1 && i >= lead && lead >= 0 &&
            given.shape[i - lead] > shape[i])
            want[i] = given.shape[i - lead];
    }
    t = !given.data && init ? run_param(r, name, given, DT_F32, rank, want, *init)
                            : run_param_given(r, name, given, DT_F32, rank, want);
    for (int i = 0; i < rank; i++)
        if (longer >> i & 1)
            t.shape[i] = shape[i];
    return t;
}

/* ---- a layer that is a mechanism of its own: sizes and weights --------------- */

static int64_t size_of_axis(const SizeFrom *from)
{
    return from->tensor.shape[from->axis] * (from->factor ? from->factor : 1);
}

static bool has_size(const SizeFrom *from)
{
    return from->tensor.data && from->tensor.rank == from->rank;
}

int64_t layer_size(Run *r, const char *name, int64_t value, int64_t fallback,
                   const SizeFrom *from)
{
    bool given = run_is_given(r, name);
    char shape[80];

    for (; from->name; from++) {
        if (!has_size(from))
            continue;
        if (size_of_axis(from) < 1)
            run_fail(r, ERR_PARAM, "%s: parameter %s has shape %s: it is empty", r->mechanism->id,
                     from->name, tensor_shape_text(&from->tensor, shape, sizeof(shape)));
        if (!given)
            return size_of_axis(from) < 1 ? 1 : size_of_axis(from);
        if (size_of_axis(from) == value)
            continue;
        run_fail(r, ERR_PARAM, "%s: %s=%lld, but parameter %s has shape %s, which says %lld; leave "
                 "%s out or give another file", r->mechanism->id, name, (long long)value,
                 from->name, tensor_shape_text(&from->tensor, shape, sizeof(shape)),
                 (long long)size_of_axis(from), name);
    }
    return given ? value : fallback;
}

static bool run_same_shape(const Tensor *t, int rank, const int64_t *shape)
{
    for (int i = 0; i < rank && t->rank == rank; i++)
        if (t->shape[i] != shape[i])
            return false;
    return t->rank == rank;
}

static void check_shape(Run *r, const char *name, Tensor given, int rank, const int64_t *shape)
{
    Tensor want = tensor_of(DT_F32, rank, shape, NULL);
    char   want_text[80], found_text[80];

    if (given.data && !run_same_shape(&given, rank, shape))
        run_fail(r, ERR_PARAM, "%s: parameter %s: expected shape %s, found %s", r->mechanism->id,
                 name, tensor_shape_text(&want, want_text, sizeof(want_text)),
                 tensor_shape_text(&given, found_text, sizeof(found_text)));
}

Init layer_by_fan(int64_t in)
{
    return (Init){ INIT_NORMAL, 1 / sqrt((double)in) };
}

Tensor layer_weight(Run *r, const char *name, Tensor given, int rank, const int64_t *shape,
                    Init init)
{
    check_shape(r, name, given, rank, shape);
    return run_param(r, name, given, DT_F32, rank, shape, init);
}

Tensor layer_given(Run *r, const char *name, Tensor given, int rank, const int64_t *shape)
{
    check_shape(r, name, given, rank, shape);
    return run_param_given(r, name, given, DT_F32, rank, shape);
}
