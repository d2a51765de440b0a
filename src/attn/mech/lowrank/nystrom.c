/* nystrom.c -- the softmax matrix from a few landmark rows and columns.
 *
 * Landmarks Ql, Kl are means of L runs of queries and keys:
 *
 *     F1 = softmax(scale Q Kl^T)    (n x L)
 *     A  = softmax(scale Ql Kl^T)   (L x L)
 *     F3 = softmax(scale Ql K^T)    (L x m)
 *     output = (F1 Z)(F3 V),  Z near the pseudo-inverse of A
 *
 * Z comes from matrix products alone (attn/mech/lowrank/nystrom.c).  A is nearly
 * singular when landmarks look alike; then Z is large and the product cancels, so
 * A and Z are in double, and where Z is large all of it is.  (Xiong et al. 2021;
 * runs of unequal length as in the official token_nystromformer.py.)
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "attn/mech/lowrank/latents.h"
#include "attn/ops/dense.h"
#include "attn/ops/weights.h"
#include "attn/run.h"
#include "core/tensor.h"

typedef struct Run Run;

typedef struct PinvProducts {
    Tensor  a;            /* its rows sum to 1 */
    int64_t rounds;
    bool    common_start; /* c is the largest of all heads */
    Tensor  z;            /* the result */
    Tensor  residual;     /* f32 [h,rounds + 1]; without views data NULL */
} PinvProducts;

#define POOR 1e-2 /* a residual worth a warning */
/* Logits, rows of Z and values multiplied: float rounds outputs by 2^-24 of that, 1e-5 at the
 * very worst and 1e-6 in tries with it. */
#define FLOAT_ENOUGH 128.0

enum { PINV_ITERATIVE, PINV_EXACT };
static const char *const pinvs[] = { "iterative", "exact", NULL };
enum { START_HEAD, START_GLOBAL };
static const char *const starts[] = { "head", "global", NULL };

typedef struct Params {
    int64_t n_landmarks, pinv_iterations;
    int     pinv, pinv_init;
    bool    exact_when_full;
    double  rcond, scale;
    Tensor  conv_weight;
} Params;

static const Param params[] = {
    PARAM_INT(Params, n_landmarks, 64, 1, INT32_MAX, "landmarks L; at most as many as tokens"),
    PARAM_ENUM(Params, pinv, PINV_ITERATIVE, pinvs, "pseudo-inverse of A: by products, or by "
               "singular values"),
    PARAM_INT(Params, pinv_iterations, 6, 0, 10000, "products' rounds (pinv=iterative)"),
    PARAM_ENUM(Params, pinv_init, START_HEAD, starts, "what A^T is divided by at first: the head's "
               "largest column sum, or the largest of all heads"),
    PARAM_FLOAT(Params, rcond, 1e-6, 0, 1, "pinv=exact: singular values up to this share of the "
                "largest count as 0"),
    PARAM_BOOL(Params, exact_when_full, true, "with a landmark for every token, plain attention"),
    PARAM_TENSOR(Params, conv_weight, "[s] or [h,s], s odd", "no convolution",
                 "convolution of the values over positions, added to the output"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_END
};

/* All f64 [h,.,.] unless said otherwise. */
typedef struct Nystrom {
    int64_t count;         /* L */
    Tensor  ql, kl;        /* landmarks */
    Tensor  a;
    Tensor  f1, f3, f1z;   /* f32 where float is enough; then f1 and f3 for views only */
    Tensor  band;          /* f32 [1 or h,s] or absent */
    PinvProducts inverse;
    LogitAttend in;        /* the shortcut's */
    Tensor  lse;           /* [h,n], the shortcut's */
} Nystrom;

#define SNAPSHOTS 32 /* most rounds that are shown one by one */

static int64_t landmark_count(const Run *r, const Params *p);
static bool shortcut(const Run *r, const Params *p);
static void attend_plainly(Run *r, const Params *p, Nystrom *s);
static void landmarks(Run *r, const Params *p, Nystrom *s);
static Tensor means(Run *r, Tensor x, int64_t count);
static Tensor factor(Run *r, Tensor q, Tensor k, double scale);
static void invert(Run *r, const Params *p, Nystrom *s);
static void pinv_products(Run *r, PinvProducts *p);
static Tensor nystrom_square(Run *r, const PinvProducts *p);
static void take_residuals(Run *r, PinvProducts *p);
static void nystrom_start(Run *r, PinvProducts *p);
static Tensor column_sums(Run *r, Tensor a);
static double nystrom_largest(const double *x, int64_t count);
static double *f64(Tensor t);
static void note_residual(Run *r, const PinvProducts *p, Tensor az, int64_t at);
static void from_identity(Run *r, Tensor t, double value);
static void to_identity(Run *r, Tensor t, double value);
static void show_products(Run *r, const PinvProducts *p);
static void pinv_products_finish(Run *r, PinvProducts *p);
static void nystrom_mix(Run *r, const Params *p, Nystrom *s);
static bool nystrom_float_will_do(Run *r, const Params *p, const LatentRead *f3, Tensor ql,
                                  Tensor kl, Tensor z);
static void mix_in_float(Run *r, const Params *p, Nystrom *s, const LatentRead *f3, Tensor kl,
                         Tensor z);
static void mix_in_double(Run *r, const Params *p, Nystrom *s);
static void nystrom_convolve(Run *r, const Params *p, Nystrom *s);
static int64_t band_size(const Params *p);
static void nystrom_show(Run *r, const Params *p, Nystrom *s);
static void show_segments(Run *r, const Nystrom *s);
static void show_landmarks(Run *r, const Nystrom *s, Tensor ql, Tensor kl);
static void read_plain(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                       int64_t step, float *out);
static void set_apart(Run *r, const Nystrom *s, View *view, bool queries, bool keys);
static const int64_t *run_starts(Run *r, int64_t n, int64_t count);
static void trace_residual(Run *r, const Params *p, const Nystrom *s);
static double pinv_products_residual(const PinvProducts *p);

static void nystrom_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Nystrom      *s = run_alloc(r, 1, sizeof(*s)); /* views read it later */

    if (!s)
        return;
    *s = (Nystrom){ .count = landmark_count(r, p) };
    if (shortcut(r, p)) {
        attend_plainly(r, p, s);
    } else {
        landmarks(r, p, s);
        invert(r, p, s);
        nystrom_mix(r, p, s);
    }
    nystrom_convolve(r, p, s);
    nystrom_show(r, p, s);
}

static int64_t landmark_count(const Run *r, const Params *p)
{
    int64_t most = r->n < r->m ? r->n : r->m;

    return p->n_landmarks < most ? p->n_landmarks : most;
}

static bool shortcut(const Run *r, const Params *p)
{
    return p->exact_when_full && r->n == r->m && landmark_count(r, p) == r->n;
}

static void attend_plainly(Run *r, const Params *p, Nystrom *s)
{
    double      scale = run_scale(r, p->scale);
    Tensor      k = dense_wide(r, r->k);
    LogitResult result;

    op_entries(r, k, ENTRY_SCALE, scale, k);
    run_stage(r, "plain attention");
    s->in = (LogitAttend){ .kind = LOGITS_PRODUCT, .turned = true, .left = r->q, .right = k,
                           .n = r->n, .v = r->v };
    result = op_logit_attend(r, &s->in);
    r->out = result.out;
    s->lse = result.lse;
}

/* ---- landmarks and the three factors ---------------------------------------- */

static void landmarks(Run *r, const Params *p, Nystrom *s)
{
    run_stage(r, "landmarks");
    s->ql = means(r, r->q, s->count);
    s->kl = means(r, r->k, s->count);
    run_stage(r, "A landmarks");
    s->a = factor(r, s->ql, s->kl, run_scale(r, p->scale));
}

/* f64 [h,count,d]: the mean of each run of rows. */
static Tensor means(Run *r, Tensor x, int64_t count)
{
    Tensor      y = run_tensor3(r, DT_F64, r->h, count, x.shape[2]);
    int32_t    *first = run_alloc(r, count + 1, sizeof(*first));
    PoolWindows in = { .x = x, .first = first, .end = first ? first + 1 : NULL,
                       .kind = WINDOW_MEAN };

    for (int64_t i = 0; i <= count && !run_failed(r); i++)
        first[i] = (int32_t)segment_start(x.shape[1], count, i);
    op_pool_windows(r, &in, y);
    op_charge(r, FLOP_OVERHEAD, (double)(r->h * x.shape[1]) * (double)x.shape[2]);
    return y;
}

static Tensor factor(Run *r, Tensor q, Tensor k, double scale)
{
    Tensor y = run_tensor3(r, DT_F64, r->h, q.shape[1], k.shape[1]);

    op_gemm(r, q, false, k, true, scale, 0, y, FLOP_SCORE);
    op_softmax(r, y);
    return y;
}

static void invert(Run *r, const Params *p, Nystrom *s)
{
    bool exact = p->pinv == PINV_EXACT;

    s->inverse = (PinvProducts){ .a = s->a, .rounds = exact ? 0 : p->pinv_iterations,
                                 .common_start = p->pinv_init == START_GLOBAL };
    run_stage(r, exact ? "pseudo-inverse" : "A^T / c");
    if (exact)
        s->inverse.z = op_pinv(r, s->a, p->rcond);
    else
        pinv_products(r, &s->inverse);
    pinv_products_finish(r, &s->inverse);
}

/* Sets z, a stage for each round.  Charges 8 L^2, and 8 L^3 a round, per head. */
static void pinv_products(Run *r, PinvProducts *p)
{
    Tensor az = nystrom_square(r, p), inner = nystrom_square(r, p), outer = nystrom_square(r, p),
    next = nystrom_square(r, p);

    take_residuals(r, p);
    nystrom_start(r, p);
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
            show_products(r, p);
    }
}

static Tensor nystrom_square(Run *r, const PinvProducts *p)
{
    return run_tensor3(r, DT_F64, r->h, p->a.shape[1], p->a.shape[1]);
}

static void take_residuals(Run *r, PinvProducts *p)
{
    if (run_wants_views(r) && !p->residual.data)
        p->residual = run_tensor2(r, DT_F32, r->h, p->rounds + 1);
}

/* Z = A^T / c */
static void nystrom_start(Run *r, PinvProducts *p)
{
    int64_t L = p->a.shape[1];
    Tensor  columns;
    double  all = 0;

    p->z = nystrom_square(r, p);
    columns = column_sums(r, p->a);
    op_wait(r, "the host looks for the largest column");
    for (int64_t t = 0; t < r->h && !run_failed(r); t++)
        all = fmax(all, nystrom_largest(f64(columns) + t * L, L));
    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        const double *sums = f64(columns) + t * L;
        Tensor        head = tensor_of(DT_F64, 3, (int64_t[]){ 1, L, L }, f64(p->a) + t * L * L);

        op_entries(r, tensor_turned(head), ENTRY_DIVIDE,
                   p->common_start ? all : nystrom_largest(sums, L),
                   tensor_of(DT_F64, 3, head.shape, f64(p->z) + t * L * L));
    }
    op_charge(r, FLOP_OVERHEAD, 8 * (double)(r->h * L * L));
}

/* f64 [h,1,L] of a [h,L,L]. */
static Tensor column_sums(Run *r, Tensor a)
{
    Tensor sums = run_tensor3(r, DT_F64, a.shape[0], 1, a.shape[2]);

    op_pool_rows(r, a, 0, a.shape[1], WINDOW_SUM, sums);
    return sums;
}

static double nystrom_largest(const double *x, int64_t count)
{
    double most = 0;

    for (int64_t j = 0; j < count; j++)
        most = fmax(most, x[j]);
    return most;
}

static double *f64(Tensor t)
{
    return t.data;
}

/* residual[head, at] = max |A Z A - A|; az = A Z */
static void note_residual(Run *r, const PinvProducts *p, Tensor az, int64_t at)
{
    int64_t   size = p->a.shape[1] * p->a.shape[1], columns = p->residual.shape[1];
    ArenaMark mark = arena_mark(r->arena);
    Tensor    back;

    if (!p->residual.data || run_failed(r))
        return;
    back = nystrom_square(r, p);
    op_gemm(r, az, false, p->a, false, 1, 0, back, FLOP_NONE);
    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        double most = 0;

        for (int64_t x = t * size; x < (t + 1) * size; x++)
            most = fmax(most, fabs(f64(back)[x] - f64(p->a)[x]));
        tensor_f32(&p->residual)[t * columns + at] = (float)most;
    }
    arena_release(r->arena, mark);
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

static void show_products(Run *r, const PinvProducts *p)
{
    implicit_factor(r, "factor_core", VIEW_SIGNED, p->z, "landmark", "landmark");
}

/* Residual and view of the final z, also of one that came by other ways (rounds 0). */
static void pinv_products_finish(Run *r, PinvProducts *p)
{
    ArenaMark mark;
    Tensor    az;

    take_residuals(r, p);
    if (!p->residual.data || run_failed(r))
        return;
    show_products(r, p);
    mark = arena_mark(r->arena);
    az = nystrom_square(r, p);
    op_gemm(r, p->a, false, p->z, false, 1, 0, az, FLOP_NONE);
    note_residual(r, p, az, p->residual.shape[1] - 1);
    arena_release(r->arena, mark);
}

static void nystrom_mix(Run *r, const Params *p, Nystrom *s)
{
    LatentRead f3;
    Tensor     ql, kl, z;

    if (run_failed(r))
        return;
    ql = dense_rounded(r, s->ql);
    kl = dense_rounded(r, s->kl);
    z = dense_rounded(r, s->inverse.z);
    if (run_failed(r))
        return;
    r->out = run_tensor3(r, DT_F32, r->h, r->n, r->e);
    run_stage(r, "F3 landmarks to keys");
    f3 = latents_read_float(r, ql, r->k, r->v, run_scale(r, p->scale));
    if (run_failed(r))
        return;
    if (nystrom_float_will_do(r, p, &f3, ql, kl, z))
        mix_in_float(r, p, s, &f3, kl, z);
    else
        mix_in_double(r, p, s);
}

/* Z with large entries makes a product that cancels: the rounding of the float form is that of its
 * logits, times the length of Z's rows, times the length of the values.  F3 V has given the
 * lengths of keys and values. */
static bool nystrom_float_will_do(Run *r, const Params *p, const LatentRead *f3, Tensor ql,
                                  Tensor kl, Tensor z)
{
    double values = f3->value_length, rows = op_largest_norm(r, z);
    double left = op_largest_norm(r, r->q) * op_largest_norm(r, kl);
    double right = op_largest_norm(r, ql) * f3->key_length;

    return run_scale(r, p->scale) * (left + right) * fmax(1, rows) * fmax(1, values) <=
           FLOAT_ENOUGH;
}

/* F1 Z is attention whose values are the rows of Z, F3 V attention of the landmarks. */
static void mix_in_float(Run *r, const Params *p, Nystrom *s, const LatentRead *f3, Tensor kl,
                         Tensor z)
{
    LatentRead f1;

    run_stage(r, "F1 queries to landmarks");
    f1 = latents_read_float(r, r->q, kl, z, run_scale(r, p->scale));
    s->f1z = f1.out;
    run_stage(r, "mix");
    op_gemm(r, s->f1z, false, f3->out, false, 1, 0, r->out, FLOP_MIX);
    if (!run_wants_views(r))
        return;
    s->f1 = latents_weights(r, &f1);
    s->f3 = latents_weights(r, f3);
}

static void mix_in_double(Run *r, const Params *p, Nystrom *s)
{
    Tensor    values = run_tensor3(r, DT_F64, r->h, s->count, r->e), out;
    double    scale = run_scale(r, p->scale);
    ArenaMark mark;

    s->f1z = run_tensor3(r, DT_F64, r->h, r->n, s->count);
    r->again = true; /* F3 V */
    s->f3 = factor(r, s->ql, r->k, scale);
    op_gemm(r, s->f3, false, r->v, false, 1, 0, values, FLOP_MIX);
    r->again = false;
    run_stage(r, "F1 queries to landmarks");
    s->f1 = factor(r, r->q, s->kl, scale);
    op_gemm(r, s->f1, false, s->inverse.z, false, 1, 0, s->f1z, FLOP_MIX);
    run_stage(r, "mix");
    mark = arena_mark(r->arena);
    out = run_tensor3(r, DT_F64, r->h, r->n, r->e);
    op_gemm(r, s->f1z, false, values, false, 1, 0, out, FLOP_MIX);
    op_entries(r, out, ENTRY_CAST, 0, r->out);
    arena_release(r->arena, mark);
}

static void nystrom_convolve(Run *r, const Params *p, Nystrom *s)
{
    TapSums sums = { .x = r->v, .groups = 1, .first = -(band_size(p) / 2), .step = 1, .add = true };

    s->band = run_param_given(r, "conv_weight", p->conv_weight, DT_F32, 2,
                              (int64_t[]){ r->h, band_size(p) });
    if (!s->band.data || run_failed(r))
        return;
    run_stage(r, "convolution");
    sums.taps = tensor_of(DT_F32, 3, (int64_t[]){ s->band.shape[0], 1, band_size(p) },
                          s->band.data);
    op_tap_sums(r, &sums, r->out);
    op_charge(r, FLOP_MIX, 2 * (double)(r->h * r->n) * (double)band_size(p) * (double)r->e);
}

static int64_t band_size(const Params *p)
{
    const Tensor *t = &p->conv_weight;

    return t->data && t->rank >= 1 ? t->shape[t->rank - 1] : 0;
}

static void nystrom_show(Run *r, const Params *p, Nystrom *s)
{
    Pattern *cells;

    if (!run_wants_views(r))
        return;
    cells = run_allowed_cells(r);
    implicit_connectivity(r, cells);
    show_segments(r, s);
    if (shortcut(r, p)) {
        show_landmarks(r, s, r->q, r->k);
        view_reader(r, "weights", VIEW_SIGNED, DT_F32, read_plain, s, cells);
        return;
    }
    show_landmarks(r, s, s->ql, s->kl);
    implicit_factor(r, "kernel_landmarks", VIEW_WEIGHTS, s->a, "landmark", "landmark");
    set_apart(r, s, implicit_factor(r, "factor_left", VIEW_WEIGHTS, s->f1, "query", "landmark"),
              true, false);
    set_apart(r, s, implicit_factor(r, "factor_right", VIEW_WEIGHTS, s->f3, "landmark", "key"),
              false, true);
    set_apart(r, s,
              implicit_weights(r, (Implicit){ .left = s->f1z, .right = dense_turned(r, s->f3),
                                                    .band = s->band }, VIEW_SIGNED, cells),
              true, true);
    if (!s->band.data)
        run_rank(r, s->count, "landmarks");
    if (run_wants_views(r))
        trace_residual(r, p, s);
}

/* Which run each query belongs to. */
static void show_segments(Run *r, const Nystrom *s)
{
    Tensor segment = run_tensor2(r, DT_I32, r->h, r->n);

    for (int64_t t = 0; t < r->h && !run_failed(r); t++)
        for (int64_t run = 0; run < s->count; run++)
            for (int64_t i = segment_start(r->n, s->count, run);
                 i < segment_start(r->n, s->count, run + 1); i++)
                tensor_i32(&segment)[t * r->n + i] = (int32_t)run;
    view_tensor(r, "segments", VIEW_BUCKETS, segment, "head", "query");
}

static void show_landmarks(Run *r, const Nystrom *s, Tensor ql, Tensor kl)
{
    int64_t size = s->count * r->d;
    Tensor  both = run_tensor4(r, DT_F32, r->h, 2, s->count, r->d);

    for (int64_t x = 0; x < tensor_count(&both) && !run_failed(r); x++) {
        Tensor     *side = x / size % 2 ? &kl : &ql;
        const void *from = tensor_head(side, x / size / 2, r->h);

        tensor_f32(&both)[x] = side->dtype == DT_F64 ? (float)((const double *)from)[x % size]
                                                     : ((const float *)from)[x % size];
    }
    view_tensor(r, "landmarks", VIEW_VECTORS, both, "landmark", "component");
}

static void read_plain(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                       int64_t step, float *out)
{
    const Nystrom *s = view->context;
    int64_t        heads = view->shape[0], size = s->band.data ? s->band.shape[1] : 0;
    double         lse = f64(s->lse)[head * s->in.n + i], logit;

    for (int64_t c = 0; c < count; c++) {
        int64_t j = start + c * step, at = j - i + size / 2;

        logit_run(&s->in, heads, head, i, j, 1, 1, &logit);
        out[c] = (float)exp(logit - lse);
        if (at >= 0 && at < size)
            out[c] += ((float *)tensor_head(&s->band, head, heads))[at];
    }
}

/* Lines between the runs on the sides of a view that stand for tokens. */
static void set_apart(Run *r, const Nystrom *s, View *view, bool queries, bool keys)
{
    if (!view)
        return;
    view->row_groups = queries ? run_starts(r, r->n, s->count) : NULL;
    view->col_groups = keys ? run_starts(r, r->m, s->count) : NULL;
    view->row_group_count = view->col_group_count = s->count;
}

static const int64_t *run_starts(Run *r, int64_t n, int64_t count)
{
    int64_t *first = run_alloc(r, count, sizeof(*first));

    for (int64_t i = 0; i < count && first; i++)
        first[i] = segment_start(n, count, i);
    return first;
}

static void trace_residual(Run *r, const Params *p, const Nystrom *s)
{
    double worst = pinv_products_residual(&s->inverse);

    view_tensor(r, "residuals", VIEW_TENSOR, s->inverse.residual, "head", "iteration");
    run_figure(r, "residual", worst);
    if (p->pinv == PINV_ITERATIVE && !(worst <= POOR))
        run_warn(r, "nystrom: max|A Z A - A| = %.2g after %lld iterations: the pseudo-inverse is "
                 "not there yet (raise pinv_iterations, or pinv=exact)", worst,
                 (long long)p->pinv_iterations);
}

/* The largest final residual of all heads. */
static double pinv_products_residual(const PinvProducts *p)
{
    int64_t columns = p->residual.shape[1];
    double  worst = 0;

    for (int64_t t = 0; t < p->residual.shape[0]; t++)
        worst = fmax(worst, (double)tensor_f32(&p->residual)[(t + 1) * columns - 1]);
    return worst;
}

static void nystrom_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (!p->conv_weight.data)
        return;
    if (band_size(p) % 2 == 0)
        run_fail(r, ERR_PARAM, "nystrom: conv_weight has %lld taps; it needs an odd number, so "
                 "that one is in the middle", (long long)band_size(p));
    if (r->m != r->n)
        run_fail(r, ERR_DATA, "nystrom: conv_weight adds neighbours of each position, so it needs "
                 "as many keys as queries: the input has n=%lld and m=%lld", (long long)r->n,
                 (long long)r->m);
}

static Flops nystrom_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double h = (double)r->h, n = (double)r->n, m = (double)r->m, d = (double)r->d;
    double e = (double)r->e, L = (double)landmark_count(r, p);
    double rounds = (double)p->pinv_iterations;
    Flops  sum = { .mix = 2 * h * n * (double)band_size(p) * e };

    if (shortcut(r, p)) {
        sum.score = 2 * h * n * m * d;
        sum.mix += 2 * h * n * m * e;
        sum.overhead = FLOPS_ROW_SOFTMAX * h * n * m;
        return sum;
    }
    sum.score = 2 * h * L * d * (n + L + m);
    sum.mix += 2 * h * L * (m * e + n * L + n * e);
    sum.overhead = h * ((n + m) * d + FLOPS_ROW_SOFTMAX * L * (n + L + m) +
                        (p->pinv == PINV_EXACT ? 24 * L * L * L
                                               : 8 * L * L * L * rounds + 8 * L * L));
    return sum;
}

static const StageNote notes[] = {
    { "landmarks", "Queries and keys are averaged over segments: a few landmarks stand for all." },
    { "A landmarks", "Landmark queries weigh landmark keys: the small matrix in the middle." },
    { "A^T / c",
      "The first guess of the inverse: the small matrix turned, and made small enough." },
    { "pseudo-inverse",
      "The small matrix is inverted by iteration; the residual says how far it is." },
    { "F3 landmarks to keys", "Landmark queries weigh all keys and take their values: L rows." },
    { "F1 queries to landmarks",
      "Every query weighs the landmark keys; the small inverse corrects these weights." },
    { "mix", "The corrected weights mix the landmarks' values: never n x n." },
    { "plain attention", "The sequence is no longer than the landmarks, so attention is exact." },
    { "convolution", "A convolution along the sequence is added to the values that were mixed." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("connectivity", VIEW_PATTERN, "all cells"),
    VIEW("weights", VIEW_SIGNED, "F1 Z F3, some entries negative (and the convolution's band)"),
    VIEW("factor_left", VIEW_WEIGHTS, "F1: queries over landmarks (not when every token is one)",
         .maybe = true),
    VIEW("factor_core", VIEW_SIGNED, "Z, after each iteration (not when every token is a landmark)",
         .maybe = true),
    VIEW("factor_right", VIEW_WEIGHTS, "F3: landmarks over keys (not when every token is one)",
         .maybe = true),
    VIEW("kernel_landmarks", VIEW_WEIGHTS, "A: landmarks over landmarks (not when every token is "
         "one)", .maybe = true),
    VIEW("landmarks", VIEW_VECTORS, "means of runs: queries', then keys'"),
    VIEW("segments", VIEW_BUCKETS, "the run each query belongs to"),
    VIEW("residuals", VIEW_TENSOR, "max|A Z A - A| before the first iteration and after each",
         .maybe = true),
    VIEW_PROMISE_END
};

const Mechanism mech_nystrom = {
    .id = "nystrom",
    .title = "Nystromformer",
    .authors = "Xiong, Zeng, Chakraborty, Tan, Fung, Li, Singh",
    .year = 2021,
    .arxiv = "2102.03902",
    .source = "paper; mlpen/Nystromformer attention_nystrom.py, token_nystromformer.py",
    .formula = "F1 = softmax(Q Kl^T), A = softmax(Ql Kl^T), F3 = softmax(Ql K^T)\n"
               "output = F1 Z (F3 V),  Z near A^+, Ql and Kl means of runs",
    .problem = "The softmax map is large, but a few of its rows and columns determine most of it.",
    .idea = "Means of runs of tokens serve as landmarks, and the map is rebuilt from three "
            "small maps through them.",
    .price = "What the means blur is lost, and the inverse in the middle is only approximated.",
    .lesson = "low-rank",
    .teaches = "A tall, a small and a wide panel stand for the square: tokens meet only through "
               "landmarks.  The inverse in the middle brings signs, and its residual shows "
               "whether its iterations were enough.",
    .example = "n_landmarks=8",
    .classes = CLASS_M | CLASS_DS,
    .claim_time = "O(n)",
    .claim_memory = "O(n)",
    .claim_decode = "no (landmarks mean over all positions)",
    .claim_exponent = 1,
    .no_causal = "landmarks are means of runs that hold later tokens",
    .cross = true,
    .views = views,
    .notes = notes,
    .size = "n_landmarks",
    .params = params,
    .params_size = sizeof(Params),
    .check = nystrom_check,
    .run = nystrom_run,
    .flops = nystrom_flops,
};
