/* gpu_rival.c -- other ways to what our kernel for all GPUs computes; see gpu_matrix.h.
 *
 * One is another's program, of whatever version is installed, and one has not run on a GPU: the
 * first result of each kind is compared with our kernel's, in the first and in the last row of
 * tiles (under a causal pattern these have the fewest and the most keys).  What gives something
 * else is not used again, and the run says so.
 */
#include "attn/cuda/host/gpu_matrix.h"

#include <math.h>

/* rows x cols of each head; where ours is a NaN anything is right, where it is infinite (of a row
 * without keys) only the same. */
static bool is_near(const DeviceTensor *a, const DeviceTensor *own, int64_t rows, double near)
{
    double most = 0, apart = 0;

    for (int64_t h = 0; h < own->heads; h++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t c = 0; c < own->cols; c++) {
                float x = ((float *)a->data)[h * a->head_stride + i * a->row_stride + c];
                float y = ((float *)own->data)[h * own->head_stride + i * own->row_stride + c];

                if (isnan(y) || x == y)
                    continue;
                if (isnan(x) || isinf(y))
                    return false;
                most = fmax(most, fabs((double)y));
                apart = fmax(apart, fabs((double)x - (double)y));
            }
    return apart <= near * fmax(most, 1e-30);
}

static DeviceTensor block_of(Run *r, int64_t heads, int64_t rows, int64_t cols)
{
    return (DeviceTensor){ .data = gpu_scratch(r, heads * rows * cols, sizeof(float)),
                           .dtype = DEVICE_F32, .heads = heads, .rows = rows, .cols = cols,
                           .head_stride = rows * cols, .row_stride = cols };
}

static void *moved(void *data, int64_t bytes)
{
    return (char *)data + bytes;
}

/* The row of tiles from query `first` on as a call of its own. */
static MatrixAttendCall row_of(Run *r, const MatrixAttendCall *call, int64_t first)
{
    MatrixAttendCall row = *call;
    int64_t          left = call->n - first, lists = call->tiles.per_head ? call->heads : 1;
    AttendItem      *items = gpu_list(r, lists, sizeof(*items));

    row.n = left < call->tiles.height ? left : call->tiles.height;
    row.q.data = moved(call->q.data, first * call->size * (int64_t)sizeof(uint16_t));
    row.tiles.start = call->tiles.start + first / call->tiles.height;
    row.out = block_of(r, call->heads, row.n, call->out.cols);
    row.lse = block_of(r, call->heads, 1, row.n);
    for (int64_t x = 0; items && x < lists; x++)
        items[x] = (AttendItem){ .head = call->tiles.per_head ? (int32_t)x : -1,
                                 .end = INT32_MAX, .slot = -1 };
    row.items = items;
    row.item_count = lists;
    row.join_count = 0;
    return row;
}

static bool row_agrees(Run *r, const MatrixAttendCall *call, int64_t first, double near)
{
    MatrixAttendCall row = row_of(r, call, first);
    DeviceTensor     out = call->out, lse = call->lse;

    out.data = moved(out.data, first * out.row_stride * (int64_t)sizeof(float));
    lse.data = moved(lse.data, first * (int64_t)sizeof(float));
    if (!run_failed(r))
        gpu_began(r, "attend", gpu_attend_begin(r, &row));
    gpu_wait(r, "a first result is compared with our own kernel's");
    return !run_failed(r) && is_near(&out, &row.out, row.n, near) &&
           is_near(&lse, &row.lse, 1, near);
}

static bool agrees(Run *r, const MatrixAttendCall *call, double near)
{
    int64_t last = (call->tiles.rows - 1) * call->tiles.height;

    return row_agrees(r, call, 0, near) && (!last || row_agrees(r, call, last, near));
}

bool gpu_rival_trusted(Run *r, const MatrixAttendCall *call, const RivalWay *way)
{
    static const char *const shapes[] = { "pattern", "full", "causal" };
    const DeviceKind        *kind = gpu_kind(r);
    atomic_int *known = &kind->device->rivals[way->which][kind->arithmetic][call->size / 128]
                                             [call->tiles.shape];
    bool        good;
    int         code;

    if (atomic_load(known))
        return atomic_load(known) > 0;
    code = way->begin(r, way->context);
    gpu_began(r, way->name, 0);
    good = !code && agrees(r, call, way->near);
    if (run_failed(r))
        return false;
    atomic_store(known, good ? 1 : -1);
    if (code)
        run_warn(r, "%s is not used: %s", way->name, gpu_api(r)->text(code));
    else if (!good)
        run_warn(r, "%s's %s attention differs from our own kernel's: not used", way->name,
                 shapes[call->tiles.shape]);
    return good;
}
