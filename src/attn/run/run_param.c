/* run_param.c -- tensors that a mechanism is given, or that are drawn for it; see run.h. */
#include "attn/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
static void check_whole(Run *r, const char *name, const Tensor *given)
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
        check_whole(r, name, &given);
    return of_run(r, given, dtype);
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
    Rng     rng;
    Init    init;
    float  *out;
    int64_t count;
} Draw;

static void draw_item(void *context, int64_t item, int worker)
{
    const Draw *d = context;
    int64_t     first = item * DRAW_PIECE;
    int64_t     count = d->count - first < DRAW_PIECE ? d->count - first : DRAW_PIECE;
    double      bound = d->init.kind == INIT_GLOROT ? sqrt(6 / d->init.a) : d->init.a;
    Rng         rng = d->rng;

    (void)worker;
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
        op_wait(r, NULL); /* what goes on is the time of neither side's neighbour */
    if (outermost && r->spec.preparing)
        r->spec.preparing(r->spec.observer_context, begins);
}

void run_draw(Run *r, Rng *rng, Init init, Tensor t)
{
    Draw d = { .rng = *rng, .init = init, .out = tensor_f32(&t), .count = tensor_count(&t) };

    if (run_failed(r))
        return;
    run_prepare(r, true);
    if (init.kind == INIT_NORMAL) /* numbers come in pairs */
        d.rng.at += d.rng.at % 2;
    if (init.kind == INIT_ZERO)
        memset(t.data, 0, (size_t)tensor_bytes(&t));
    else
        threads_run(r->threads, (d.count + DRAW_PIECE - 1) / DRAW_PIECE, draw_item, &d);
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
