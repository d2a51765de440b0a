/* select.c -- choices on the device: nearest vectors, best rows, codes, sorts. */
#include "attn/cuda/host/gpu.h"
#include "core/threads.h"

#define FILL_ROWS 256                /* rows in double of one work item */
#define KEYS_MOST ((int64_t)1 << 25) /* keys held at once, unless one column has more */

/* ---- rows in double ---------------------------------------------------------------- */

typedef struct Fill {
    const ChoiceRows *x;
    DeviceTensor      to;
    int64_t           blocks; /* of a head */
} Fill;

static void fill_item(void *context, int64_t item, int worker)
{
    const Fill *job = context;
    int64_t     head = item / job->blocks, first = item % job->blocks * FILL_ROWS;
    int64_t     end = first + FILL_ROWS < job->to.rows ? first + FILL_ROWS : job->to.rows;

    (void)worker;
    for (int64_t i = first; i < end; i++)
        job->x->exact(job->x->context, head, i,
                      (double *)job->to.data + head * job->to.head_stride + i * job->to.row_stride);
}

/* The rows of `exact`, made on the device. */
static DeviceTensor whole_rows(Run *r, const ChoiceRows *x)
{
    Tensor y = x->whole;

    if (y.dtype != DT_F64) {
        y = tensor_of(DT_F64, 3, x->whole.shape,
                      gpu_scratch(r, tensor_count(&x->whole), (int64_t)sizeof(double)));
        if (!run_failed(r))
            gpu_normalise64(r, &x->whole, x->kind, x->eps, &y);
    }
    return gpu_tensor(r, &y);
}

/* The rows that choices are made on.  Rows that only the host can make are moved to the device
 * before the kernels start. */
static DeviceTensor choice_rows(Run *r, const ChoiceRows *x, int64_t heads)
{
    int64_t n = x->near.shape[1], d = x->near.shape[2];
    Fill    job = { .x = x, .blocks = (n + FILL_ROWS - 1) / FILL_ROWS };

    if (!x->exact)
        return gpu_tensor(r, &x->near);
    if (x->whole.data)
        return whole_rows(r, x);
    job.to = (DeviceTensor){ .dtype = DEVICE_F64, .heads = heads, .rows = n, .cols = d,
                             .head_stride = n * d, .row_stride = d };
    job.to.data = gpu_scratch(r, heads * n, d * (int64_t)sizeof(double));
    if (job.to.data) {
        gpu_wait(r, "rows that choices are made on are the host's");
        threads_run(r->threads, heads * job.blocks, fill_item, &job);
        gpu_toward(r, job.to.data, heads * n * d * (int64_t)sizeof(double));
    }
    return job.to;
}

/* ---- the nearest, codes -------------------------------------------------------------- */

void gpu_argmax(Run *r, const Tensor *x, bool with_negative, Tensor *index)
{
    ArenaMark  mark = arena_mark(r->arena);
    ArgmaxCall call = {
        .x = gpu_tensor(r, x).data,
        .lines = x->shape[0] * x->shape[1],
        .count = x->shape[2],
        .negative = with_negative,
        .index = index->data,
    };

    GPU_OP(r, mark, "argmax", argmax, &call);
}

void gpu_nearest(Run *r, const Nearest *in, Tensor *index)
{
    ArenaMark   mark = arena_mark(r->arena);
    NearestCall call = {
        .heads = index->shape[0],
        .parts = in->parts,
        .count = in->y.shape[1] / in->parts,
        .x = choice_rows(r, &in->x, index->shape[0]),
        .y = gpu_tensor(r, &in->y),
        .negative = in->with_negative,
        .cosine = in->cosine,
        .index = index->data,
    };

    GPU_OP(r, mark, "nearest", nearest, &call);
}

void gpu_codes(Run *r, const Tensor *x, const Tensor *planes, bool bias, Tensor *code)
{
    ArenaMark mark = arena_mark(r->arena);
    CodesCall call = {
        .heads = code->shape[0],
        .x = gpu_tensor(r, x),
        .planes = gpu_tensor(r, planes),
        .bias = bias,
        .code = code->data,
    };

    GPU_OP(r, mark, "codes", codes, &call);
}

/* ---- the best ------------------------------------------------------------------------ */

/* The number of columns of n keys held at once, of a head or of all heads. */
static int64_t columns_at_once(int64_t columns, int64_t n)
{
    int64_t most = KEYS_MOST / n;

    return most < 1 ? 1 : most < columns ? most : columns;
}

/* Chooses for as many columns of one head as fit, or for those of several heads. */
static bool best_columns(Run *r, ProductKeysCall *keys, int64_t k, int32_t *index)
{
    SelectCall select = { .key = keys->key, .n = keys->x.rows, .k = k, .index = index,
                          .lines = keys->heads_now * keys->columns_now };

    return gpu_ready(r) && gpu_began(r, "best_rows", gpu_api(r)->product_keys(keys)) &&
           gpu_began(r, "best_rows", gpu_api(r)->select(&select));
}

void gpu_best_rows(Run *r, const ChoiceRows *x, const Tensor *y, int64_t k, Tensor *index)
{
    ArenaMark mark = arena_mark(r->arena);
    int64_t   heads = index->shape[0], columns = index->shape[1], n = x->near.shape[1];
    int64_t   most = columns_at_once(heads * columns, n), together = most / columns;
    bool      going = true;
    ProductKeysCall call = { .heads = heads, .x = choice_rows(r, x, heads),
                             .y = gpu_tensor(r, y) };

    call.key = gpu_scratch(r, most * n, sizeof(*call.key));
    for (int64_t head = 0; head < heads && going; head += call.heads_now) {
        call.first_head = head;
        call.heads_now = together < 1 ? 1 : together < heads - head ? together : heads - head;
        for (int64_t c = 0; c < columns && going; c += call.columns_now) {
            call.first_column = c;
            call.columns_now = most < columns - c ? most : columns - c;
            going = best_columns(r, &call, k, (int32_t *)index->data + (head * columns + c) * k);
        }
    }
    gpu_finish(r, "best_rows");
    arena_release(r->arena, mark);
}

void gpu_top_k(Run *r, const Tensor *x, int64_t k, Tensor *index)
{
    ArenaMark      mark = arena_mark(r->arena);
    int64_t        heads = x->shape[0], n = x->shape[1], columns = x->shape[2];
    DeviceTensor   from = gpu_tensor(r, x);
    ColumnKeysCall call = { .n = n, .columns = columns };
    SelectCall     select = { .lines = columns, .n = n, .k = k };

    call.key = gpu_scratch(r, n, columns * (int64_t)sizeof(*call.key));
    select.key = call.key;
    for (int64_t head = 0; head < heads && k > 0 && gpu_ready(r); head++) {
        call.x = (const double *)from.data + head * from.head_stride;
        select.index = (int32_t *)index->data + head * columns * k;
        if (gpu_began(r, "top_k", gpu_api(r)->column_keys(&call)))
            gpu_began(r, "top_k", gpu_api(r)->select(&select));
    }
    gpu_finish(r, "top_k");
    arena_release(r->arena, mark);
}

/* ---- sorting and sums in sorted order ------------------------------------------------- */

/* Starts it; the caller releases the scratch. */
static bool start_sort(Run *r, const int32_t *key, int64_t lines, int64_t n, int32_t *order)
{
    int64_t  tiles = (n + SORT_TILE - 1) / SORT_TILE;
    SortCall call = { .key = key, .lines = lines, .n = n, .order = order };

    call.work = gpu_scratch(r, lines * n, sizeof(*call.work));
    call.start = gpu_scratch(r, lines * tiles, SORT_DIGITS * (int64_t)sizeof(*call.start));
    call.mask = gpu_scratch(r, 1, sizeof(*call.mask));
    return gpu_ready(r) && gpu_began(r, "sort", gpu_api(r)->sort(&call));
}

void gpu_sort(Run *r, const Tensor *key, Tensor *order)
{
    ArenaMark mark = arena_mark(r->arena);
    int64_t   n = key->shape[key->rank - 1];

    if (n > 0) {
        start_sort(r, gpu_tensor(r, key).data, tensor_count(key) / n, n, order->data);
        gpu_finish(r, "sort");
    }
    arena_release(r->arena, mark);
}

void gpu_member_sums(Run *r, const Tensor *x, const Tensor *index, bool unit, Tensor *sum)
{
    ArenaMark      mark = arena_mark(r->arena);
    int64_t        heads = sum->shape[0], n = index->shape[1];
    int32_t       *order = gpu_scratch(r, heads * n, sizeof(*order));
    MemberSumsCall call = {
        .heads = heads,
        .clusters = sum->shape[1],
        .x = gpu_tensor(r, x),
        .index = gpu_tensor(r, index).data,
        .order = order,
        .factor = unit ? gpu_scratch(r, heads * n, sizeof(double)) : NULL,
        .sum = sum->data,
    };

    if (start_sort(r, call.index, heads, n, order))
        gpu_began(r, "member_sums", gpu_api(r)->member_sums(&call));
    gpu_finish(r, "member_sums");
    arena_release(r->arena, mark);
}

void gpu_nearest_codes(Run *r, const Tensor *codes, const Tensor *centres, Tensor *cluster)
{
    ArenaMark        mark = arena_mark(r->arena);
    NearestCodesCall call = {
        .heads = codes->shape[0],
        .n = codes->shape[1],
        .count = centres->shape[1],
        .code = gpu_tensor(r, codes).data,
        .centre = gpu_tensor(r, centres).data,
        .cluster = cluster->data,
    };

    GPU_OP(r, mark, "nearest_codes", nearest_codes, &call);
}

void gpu_bit_sums(Run *r, const Tensor *codes, const Tensor *cluster, Tensor *ones)
{
    ArenaMark   mark = arena_mark(r->arena);
    BitSumsCall call = {
        .heads = codes->shape[0],
        .n = codes->shape[1],
        .clusters = ones->shape[1],
        .code = gpu_tensor(r, codes).data,
        .cluster = gpu_tensor(r, cluster).data,
        .ones = ones->data,
    };

    GPU_OP(r, mark, "bit_sums", bit_sums, &call);
}

void gpu_tally(Run *r, const Tensor *index, Tensor *count)
{
    ArenaMark mark = arena_mark(r->arena);
    TallyCall call = { .heads = count->shape[0], .n = index->shape[1], .size = count->shape[1],
                       .index = gpu_tensor(r, index).data, .count = gpu_result(r, count).data };

    GPU_OP(r, mark, "tally", tally, &call);
}
