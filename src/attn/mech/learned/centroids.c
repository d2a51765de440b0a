/* centroids.c -- see centroids.h. */
#include "attn/mech/learned/centroids.h"

#include <math.h>
#include <string.h>

#include "attn/ops/exact.h"
#include "attn/run.h"

typedef struct Source {
    Tensor        x;
    int64_t       heads;
    NormaliseKind kind;
    double        eps;
} Source;

static void copied_row(const void *context, int64_t head, int64_t i, double *row)
{
    const Source *s = context;
    int64_t       d = s->x.shape[2];

    memcpy(row, (const double *)tensor_head(&s->x, head, s->heads) + i * d,
           (size_t)d * sizeof(*row));
}

static void normalised_row(const void *context, int64_t head, int64_t i, double *row)
{
    const Source *s = context;

    exact_normalised_row((const float *)tensor_head(&s->x, head, s->heads) + i * s->x.stride[1],
                         s->x.shape[2], s->kind, s->eps, row);
}

static const Source *source_new(Run *r, Source source)
{
    Source *s = run_alloc(r, 1, sizeof(*s));

    if (s)
        *s = source;
    return s;
}

ChoiceRows choice_rows_exact(Run *r, Tensor x)
{
    return (ChoiceRows){ .near = exact_rounded(r, x), .exact = copied_row, .whole = x,
                         .context = source_new(r, (Source){ .x = x, .heads = r->h }) };
}

ChoiceRows choice_rows_normalised(Run *r, Tensor x, NormaliseKind kind, double eps)
{
    double copies = (double)(r->h - x.shape[0]); /* of heads that share keys */

    if (kind == NORMALISE_NONE)
        return (ChoiceRows){ .near = x };
    op_charge(r, FLOP_OVERHEAD, 5 * copies * (double)(x.shape[1] * x.shape[2]));
    return (ChoiceRows){
        .near = op_normalise(r, x, kind, eps), .exact = normalised_row, .whole = x, .kind = kind,
        .eps = eps,
        .context = source_new(r, (Source){ .x = x, .heads = r->h, .kind = kind, .eps = eps })
    };
}

/* Row i in double. */
static void choice_row(const ChoiceRows *x, int64_t heads, int64_t head, int64_t i, double *row)
{
    const float *near = tensor_head(&x->near, head, heads);

    if (x->exact) {
        x->exact(x->context, head, i, row);
        return;
    }
    for (int64_t t = 0; t < x->near.shape[2]; t++)
        row[t] = (double)near[i * x->near.stride[1] + t];
}

Tensor centroids_drawn(Run *r, const ChoiceRows *x, const char *name, int64_t count)
{
    int64_t n = x->near.shape[1], d = x->near.shape[2], all = count < n ? count : n;
    Tensor  drawn = run_tensor3(r, DT_F64, r->h, count, d);
    Rng     rng = run_rng(r, name);

    op_wait(r, "the host takes the first centroids");
    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        double *to = (double *)drawn.data + t * count * d;
        int64_t taken = 0;

        for (int64_t i = 0; i < n && taken < all; i++)
            if ((int64_t)rng_below(&rng, (uint64_t)(n - i)) < all - taken)
                choice_row(x, r->h, t, i, to + taken++ * d);
        for (int64_t c = all; c < count; c++)
            memcpy(to + c * d, to + c % all * d, (size_t)d * sizeof(*to));
    }
    return drawn;
}

int64_t centroids_moved(Tensor before, Tensor now)
{
    int64_t moved = 0;

    for (int64_t x = 0; x < tensor_count(&now); x++)
        moved += tensor_i32(&before)[x] != tensor_i32(&now)[x];
    memcpy(before.data, now.data, (size_t)tensor_bytes(&now));
    return moved;
}

Tensor centroids_nearest(Run *r, Tensor mu, const ChoiceRows *x)
{
    Tensor index = op_nearest(r, &(Nearest){ .x = *x, .y = mu, .parts = 1 });

    return tensor_of(DT_I32, 2, (int64_t[]){ r->h, x->near.shape[1] }, index.data);
}

Tensor centroids_members(Run *r, Tensor mu, const ChoiceRows *x, int64_t w)
{
    Tensor set = op_best_rows(r, x, mu, w);

    return tensor_of(DT_I32, 2, (int64_t[]){ r->h, mu.shape[1] * w }, set.data);
}

/* The rows that are added up: in double where they are not as near. */
static Tensor exact_rows(Run *r, const ChoiceRows *x)
{
    const Source *s = x->context;

    if (!x->exact)
        return x->near;
    return x->exact == copied_row ? s->x : op_normalise64(r, s->x, s->kind, s->eps);
}

void centroids_gather(Run *r, const ChoiceRows *x, Tensor nearest, Tensor sum, Tensor count)
{
    ArenaMark mark = arena_mark(r->arena);
    Tensor    more = run_tensor3(r, DT_F64, sum.shape[0], sum.shape[1], sum.shape[2]);

    op_member_sums(r, exact_rows(r, x), nearest, false, more);
    op_entries_of(r, sum, more, ENTRY_SUM, 1, sum);
    op_entries_of(r, count, op_tally(r, nearest, sum.shape[1]), ENTRY_SUM, 1, count);
    arena_release(r->arena, mark);
}

double centroids_spread(Run *r, Tensor mu, const ChoiceRows *x, Tensor nearest)
{
    int64_t   count = tensor_count(&nearest), n = nearest.shape[1], d = mu.shape[2];
    ArenaMark mark = arena_mark(r->arena);
    double   *row = run_alloc(r, d, sizeof(*row)), spread = 0;

    for (int64_t at = 0; at < count && !run_failed(r); at++) {
        int64_t       head = at / n, c = tensor_i32(&nearest)[at];
        const double *m = (double *)mu.data + (head * mu.shape[1] + c) * d;
        double        dot = 0, squares = 0, length = 0;

        choice_row(x, nearest.shape[0], head, at % n, row);
        for (int64_t t = 0; t < d; t++) {
            dot += row[t] * m[t];
            squares += row[t] * row[t];
            length += m[t] * m[t];
        }
        spread += 1 - (squares > 0 && length > 0 ? dot / sqrt(squares * length) : 0);
    }
    arena_release(r->arena, mark);
    return count ? spread / (double)count : 0;
}
