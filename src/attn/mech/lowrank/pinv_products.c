/* pinv_products.c -- see pinv_products.h. */
#include "attn/mech/lowrank/pinv_products.h"

#include <math.h>
#include <string.h>

#include "attn/run.h"

#define SNAPSHOTS 32 /* most rounds that are shown one by one */

static double *f64(Tensor t)
{
    return t.data;
}

static Tensor square(Run *r, const PinvProducts *p)
{
    return run_tensor3(r, DT_F64, r->h, p->a.shape[1], p->a.shape[1]);
}

/* t = value I - t */
static void from_identity(Run *r, Tensor t, double value)
{
    Tensor diagonal = t;

    op_entries(r, t, ENTRY_SCALE, -1, t);
    diagonal.shape[1] = 1;
    diagonal.stride[2] = t.shape[2] + 1;
    op_entries(r, diagonal, ENTRY_SHIFT, value, diagonal);
}

static void to_identity(Run *r, Tensor t, double value)
{
    op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, 0, t);
    from_identity(r, t, value);
}

/* f64 [h,1,L] of a [h,L,L]. */
static Tensor column_sums(Run *r, Tensor a)
{
    Tensor   sums = run_tensor3(r, DT_F64, a.shape[0], 1, a.shape[2]);
    int32_t *ends = run_alloc(r, 2, sizeof(*ends));

    if (run_failed(r))
        return sums;
    ends[0] = 0;
    ends[1] = (int32_t)a.shape[1];
    op_pool_windows(r, &(PoolWindows){ .x = a, .first = ends, .end = ends + 1, .kind = WINDOW_SUM },
                    sums);
    return sums;
}

static double largest(const double *x, int64_t count)
{
    double most = 0;

    for (int64_t j = 0; j < count; j++)
        most = fmax(most, x[j]);
    return most;
}

/* Z = A^T / c */
static void start(Run *r, PinvProducts *p)
{
    int64_t L = p->a.shape[1];
    Tensor  columns;
    double  all = 0;

    p->z = square(r, p);
    columns = column_sums(r, p->a);
    op_wait(r, "the host looks for the largest column");
    for (int64_t t = 0; t < r->h && !run_failed(r); t++)
        all = fmax(all, largest(f64(columns) + t * L, L));
    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        const double *sums = f64(columns) + t * L;
        Tensor        head = tensor_of(DT_F64, 3, (int64_t[]){ 1, L, L }, f64(p->a) + t * L * L);

        op_entries(r, tensor_turned(head), ENTRY_DIVIDE,
                   p->common_start ? all : largest(sums, L),
                   tensor_of(DT_F64, 3, head.shape, f64(p->z) + t * L * L));
    }
    op_charge(r, FLOP_OVERHEAD, 8 * (double)(r->h * L * L));
}

/* residual[head, at] = max |A Z A - A|; az = A Z */
static void note_residual(Run *r, const PinvProducts *p, Tensor az, int64_t at)
{
    int64_t   size = p->a.shape[1] * p->a.shape[1], columns = p->residual.shape[1];
    ArenaMark mark = arena_mark(r->arena);
    Tensor    back;

    if (!p->residual.data || run_failed(r))
        return;
    back = square(r, p);
    op_gemm(r, az, false, p->a, false, 1, 0, back, FLOP_NONE);
    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        double most = 0;

        for (int64_t x = t * size; x < (t + 1) * size; x++)
            most = fmax(most, fabs(f64(back)[x] - f64(p->a)[x]));
        tensor_f32(&p->residual)[t * columns + at] = (float)most;
    }
    arena_release(r->arena, mark);
}

static void take_residuals(Run *r, PinvProducts *p)
{
    if (run_wants_views(r) && !p->residual.data)
        p->residual = run_tensor2(r, DT_F32, r->h, p->rounds + 1);
}

static void show(Run *r, const PinvProducts *p)
{
    implicit_factor(r, "factor_core", VIEW_SIGNED, p->z, "landmark", "landmark");
}

void pinv_products(Run *r, PinvProducts *p)
{
    Tensor az = square(r, p), inner = square(r, p), outer = square(r, p), next = square(r, p);

    take_residuals(r, p);
    start(r, p);
    for (int64_t t = 0; t < p->rounds && !run_failed(r); t++) {
        Tensor last = p->z;

        run_iteration(r, "pseudo-inverse", t);
        op_gemm(r, p->a, false, p->z, false, 1, 0, az, FLOP_OVERHEAD);
        note_residual(r, p, az, t);
        op_entries(r, az, ENTRY_CAST, 0, inner);
        from_identity(r, inner, 7);
        to_identity(r, outer, 15);
        op_gemm(r, az, false, inner, false, -1, 1, outer, FLOP_OVERHEAD);
        to_identity(r, inner, 13);
        op_gemm(r, az, false, outer, false, -1, 1, inner, FLOP_OVERHEAD);
        op_gemm(r, p->z, false, inner, false, 0.25, 0, next, FLOP_OVERHEAD);
        p->z = next;
        next = last;
        if (t < SNAPSHOTS && t + 1 < p->rounds)
            show(r, p);
    }
}

void pinv_products_finish(Run *r, PinvProducts *p)
{
    ArenaMark mark;
    Tensor    az;

    take_residuals(r, p);
    if (!p->residual.data || run_failed(r))
        return;
    show(r, p);
    mark = arena_mark(r->arena);
    az = square(r, p);
    op_gemm(r, p->a, false, p->z, false, 1, 0, az, FLOP_NONE);
    note_residual(r, p, az, p->residual.shape[1] - 1);
    arena_release(r->arena, mark);
}

double pinv_products_residual(const PinvProducts *p)
{
    int64_t columns = p->residual.shape[1];
    double  worst = 0;

    for (int64_t t = 0; t < p->residual.shape[0]; t++)
        worst = fmax(worst, (double)tensor_f32(&p->residual)[(t + 1) * columns - 1]);
    return worst;
}
