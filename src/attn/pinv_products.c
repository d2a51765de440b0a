/* pinv_products.c -- see pinv_products.h. */
#include "attn/pinv_products.h"

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
    int64_t L = t.shape[1];

    for (int64_t x = 0; x < tensor_count(&t) && !run_failed(r); x++)
        f64(t)[x] = (x / L % L == x % L ? value : 0) - f64(t)[x];
}

static void to_identity(Run *r, Tensor t, double value)
{
    if (run_failed(r))
        return;
    memset(t.data, 0, (size_t)tensor_bytes(&t));
    from_identity(r, t, value);
}

static double largest_column_sum(const double *a, int64_t L)
{
    double most = 0;

    for (int64_t j = 0; j < L; j++) {
        double sum = 0;

        for (int64_t i = 0; i < L; i++)
            sum += a[i * L + j];
        most = fmax(most, sum);
    }
    return most;
}

/* Z = A^T / c */
static void start(Run *r, PinvProducts *p)
{
    int64_t L = p->a.shape[1];
    double  all = 0;

    p->z = square(r, p);
    for (int64_t t = 0; t < r->h && !run_failed(r); t++)
        all = fmax(all, largest_column_sum(f64(p->a) + t * L * L, L));
    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        const double *a = f64(p->a) + t * L * L;
        double        c = p->common_start ? all : largest_column_sum(a, L);

        for (int64_t x = 0; x < L * L; x++)
            f64(p->z)[t * L * L + x] = a[x % L * L + x / L] / c;
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
        memcpy(inner.data, az.data, (size_t)tensor_bytes(&az));
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
