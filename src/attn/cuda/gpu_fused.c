/* gpu_fused.c -- full and causal attention by cuDNN, the host's side; see gpu_matrix.h.
 *
 * Taken where the pattern is one of these two, numbers are of 16 bits, sizes are multiples of 8
 * and no term is added.  ATTNSCOPE_CUDNN=0 switches it off, to compare; a path names the library.
 * What it does not take goes to our own kernel.  Its first result of each kind is compared
 * with our own, because it is another's program, of whatever version is installed.
 */
#include "attn/cuda/gpu_matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_wanted(void)
{
    const char *given = getenv("ATTNSCOPE_CUDNN");

    return !given || strcmp(given, "0") != 0;
}

static bool fits(const Run *r, const AttendInput *in, TileShape shape)
{
    Arithmetic how = gpu_kind(r)->arithmetic;
    int64_t    d = in->q.shape[2], e = in->v.shape[2], n = in->q.shape[1], m = in->k.shape[1];

    return (how == ARITHMETIC_BF16 || how == ARITHMETIC_F16) && d % 8 == 0 && e % 8 == 0 &&
           d <= 256 && e <= 256 && !tensor_given(&in->distance) && !in->cell_term &&
           in->q.shape[0] == r->h && in->k.shape[0] == in->v.shape[0] &&
           (shape == TILES_FULL || (shape == TILES_CAUSAL && n == m));
}

/* ---- trying it first -------------------------------------------------------------------- */

#define TRUST_NEAR 3e-2 /* of the largest output: cuDNN rounds weights and outputs to 8 bits too */

static bool is_near(const DeviceTensor *a, const DeviceTensor *b, int64_t rows)
{
    double most = 0, apart = 0;

    for (int64_t h = 0; h < b->heads; h++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t c = 0; c < b->cols; c++) {
                float x = ((float *)a->data)[h * a->head_stride + i * a->row_stride + c];
                float y = ((float *)b->data)[h * b->head_stride + i * b->row_stride + c];

                if (isnan(x) || isnan(y) || x == y)
                    continue;
                most = fmax(most, fabs((double)y));
                apart = fmax(apart, fabs((double)x - (double)y));
            }
    return apart <= TRUST_NEAR * fmax(most, 1e-30);
}

static DeviceTensor block_of(Run *r, int64_t heads, int64_t rows, int64_t cols)
{
    return (DeviceTensor){ .data = gpu_scratch(r, heads * rows * cols, sizeof(float)),
                           .dtype = DEVICE_F32, .heads = heads, .rows = rows, .cols = cols,
                           .head_stride = rows * cols, .row_stride = cols };
}

/* Whether the first queries come out as our own kernel makes them. */
static bool agrees(Run *r, const MatrixAttendCall *call, const FusedCall *fused)
{
    MatrixAttendCall own = *call;
    AttendItem      *item = gpu_scratch(r, 1, sizeof(*item));

    own.n = call->n < call->tiles.height ? call->n : call->tiles.height;
    own.out = block_of(r, call->heads, own.n, call->out.cols);
    own.lse = block_of(r, call->heads, 1, own.n);
    if (run_failed(r))
        return false;
    *item = (AttendItem){ .head = -1, .row = 0, .first = 0, .end = INT32_MAX, .slot = -1 };
    own.items = item;
    own.item_count = 1;
    if (gpu_api(r)->fused(fused) || gpu_api(r)->unpack(fused))
        return false;
    gpu_began(r, "attend", gpu_attend_begin(r, &own));
    gpu_wait(r, "cuDNN's first result is compared with our own kernel's");
    return !run_failed(r) && is_near(&fused->out, &own.out, own.n) &&
           is_near(&fused->lse, &own.lse, 1);
}

/* A library that gives something else is not used; asked once for each kind of call. */
static bool is_trusted(Run *r, const MatrixAttendCall *call, const FusedCall *fused)
{
    Device     *d = gpu_kind(r)->device;
    atomic_int *known = &d->cudnn[fused->arithmetic][fused->causal];
    bool        good;

    if (atomic_load(known))
        return atomic_load(known) > 0;
    good = agrees(r, call, fused);
    if (!run_failed(r))
        atomic_store(known, good ? 1 : -1);
    if (!run_failed(r) && !good)
        run_warn(r, "cuDNN's %s attention differs from our own kernel's: not used",
                 fused->causal ? "causal" : "full");
    return good;
}

/* A plan, and trust in it: before the clock runs. */
static bool is_ready(Run *r, const MatrixAttendCall *call, const FusedCall *fused)
{
    bool ready;

    run_prepare(r, true);
    ready = !gpu_api(r)->fused_plan(fused) && is_trusted(r, call, fused);
    run_prepare(r, false);
    return ready;
}

bool gpu_attend_fused(Run *r, const AttendInput *in, const MatrixAttendCall *call)
{
    FusedCall fused = {
        .heads = r->h, .n = call->n, .m = call->m, .d = in->q.shape[2], .e = in->v.shape[2],
        .causal = call->tiles.shape == TILES_CAUSAL,
        .arithmetic = (int32_t)gpu_kind(r)->arithmetic, .scale = in->scale,
        .q = call->q, .k = call->k, .v = call->v, .narrow = call->q,
        .out = call->out, .lse = call->lse,
    };
    int code;

    if (run_failed(r) || !is_wanted() || !fits(r, in, (TileShape)call->tiles.shape))
        return false;
    fused.narrow.data = gpu_scratch(r, call->q.heads * call->q.rows * call->size,
                                    (int64_t)sizeof(uint16_t));
    if (run_failed(r) || !is_ready(r, call, &fused))
        return false;
    code = gpu_api(r)->fused(&fused);
    if (code == FUSED_DECLINED)
        return false;
    gpu_began(r, "cuDNN", code ? code : gpu_api(r)->unpack(&fused));
    r->computed |= COMPUTED_CUDNN;
    return true;
}
