// row_attend.cu -- attention by rows of scores in double: z = scale q k^T, weights, weights times v.
//
// A block has 64 x 64 scores, then one row of weights, then a panel of 64 rows of results.
#include "attn/cuda/kernels/row_forms.cuh"
#include "attn/cuda/kernels/wide_tile.cuh"

static __global__ void __launch_bounds__(THREADS) row_scores(ScoreRows a)
{
    SHARED_ARRAY(double, parts, [WIDE_PARTS]);
    int64_t first_k = (int64_t)blockIdx.x * PANEL_ROWS, first = (int64_t)blockIdx.y * PANEL_ROWS;
    int64_t head = a.first_head + blockIdx.z, last = first + PANEL_ROWS;
    double  s[OWN][OWN] = {};

    last = a.first + (last < a.rows ? last : a.rows) - 1;
    if (first_k >= row_sees(a, last))
        return;
    wide_tile(WideRows(a.q, head, a.all_heads, a.first + first),
              WideRows(a.k, head, a.all_heads, first_k), a.q.cols, parts, s);
    for (int r = 0; r < OWN; r++)
        for (int c = 0; c < OWN; c++) {
            int64_t i = first + OWN * own_y() + r, j = first_k + own_x() + SIDE * c;

            if (i < a.rows && j < a.k.rows)
                a.z[(blockIdx.z * a.rows + i) * a.pitch + j] = s[r][c] * a.scale;
        }
}

extern "C" int call_row_scores(const ScoreRows *a)
{
    dim3 grid((unsigned)((a->k.rows + PANEL_ROWS - 1) / PANEL_ROWS),
              (unsigned)((a->rows + PANEL_ROWS - 1) / PANEL_ROWS), (unsigned)a->heads);

    return LAUNCH(row_scores, grid, THREADS, 0, *a);
}

static __device__ __forceinline__ double number_of(const DeviceTensor &t, int64_t heads,
                                                   int64_t head, int64_t i, int64_t j)
{
    return t.data ? (double)head_of<float>(t, head, heads)[i * t.row_stride + j] : 0;
}

// As row_mask() of the CPU.
static __device__ double mask_of(const RowMaskCall &m, int64_t heads, int64_t head, int64_t i,
                                 int64_t j, double x)
{
    bool    swap = m.symmetric && j < i;
    int64_t row = swap ? j : i, col = swap ? i : j;

    if (m.no_diagonal && i == j)
        return 0;
    if (m.borders && (i == 0 || i == m.n - 1 || j == 0 || j == m.m - 1))
        return 1;
    if (m.distance.data)
        return head_of<double>(m.distance, head, heads)[i < j ? j - i : i - j];
    if (m.logits.data)
        x = number_of(m.logits, heads, head, row, col);
    x += number_of(m.plus, heads, head, row, col) - number_of(m.minus, heads, head, row, col);
    return m.hard ? (double)(x >= 0) : 1 / (1 + exp(-x / m.tau));
}

// What a mask on the scores leaves of one.
static __device__ double masked(const RowWeightsCall &a, int64_t head, int64_t i, int64_t j,
                                double z)
{
    double m;

    if (!a.mask.on || a.mask.multiply)
        return z;
    m = mask_of(a.mask, a.at.all_heads, head, i, j, z);
    if (a.mask.hard)
        return m > 0 ? z : -INFINITY;
    return __dadd_rn(z, -__dmul_rn(a.mask.penalty, 1 - m));
}

// One row: its threshold, its weights, and 0 for what other rows of its panel see.
static __global__ void __launch_bounds__(ROW_THREADS) row_weights(RowWeightsCall a)
{
    SHARED_VALUE(RowMemory, memory);
    int64_t head = a.at.first_head + blockIdx.y, i = a.at.first + blockIdx.x;
    int64_t place = head * a.at.q.rows + i, count = row_sees(a.at, i);
    double *z = a.at.z + (blockIdx.y * a.at.rows + blockIdx.x) * a.at.pitch;
    int32_t support = 0;
    FormRow row;

    for (int64_t j = threadIdx.x; j < count && a.mask.on; j += ROW_THREADS)
        z[j] = masked(a, head, i, j, z[j]);
    __syncthreads();
    row = form_row(a.form[head], z, count, &memory, a.trace ? a.trace + place * a.steps : NULL,
                   a.steps);
    for (int64_t j = threadIdx.x; j < count; j += ROW_THREADS) {
        double w = z[j] > -INFINITY ? form_weight(a.form[head], row, z[j]) : 0;

        if (a.mask.on && a.mask.multiply)
            w *= mask_of(a.mask, a.at.all_heads, head, i, j, z[j]);
        support += z[j] > -INFINITY && w > a.negligible;
        z[j] = w > 0 ? (double)(float)w : 0;
    }
    for (int64_t j = count + threadIdx.x; j < count + PANEL_ROWS && j < a.at.k.rows;
         j += ROW_THREADS)
        z[j] = 0;
    support = block_sum(support, memory.counts);
    if (threadIdx.x == 0) {
        a.tau[place] = row.tau;
        a.total[place] = row.total;
        a.support[place] = support;
    }
}

extern "C" int call_row_weights(const RowWeightsCall *a)
{
    return LAUNCH(row_weights, dim3((unsigned)a->at.rows, (unsigned)a->at.heads), ROW_THREADS, 0,
                  *a);
}

struct MixMemory {
    alignas(16) float parts[PART * 2 * PANEL_ROWS];
    alignas(16) float weights[PANEL_ROWS * PANEL_ROWS];
    int32_t key[PANEL_ROWS];
};

// weights[key][row] of the panel's rows and columns first .. first + count.
static __device__ void take_weights(const RowMixCall &a, const RowPanel &p, int64_t first,
                                    int64_t count, float *weights)
{
    const double *z = a.at.z + ((p.head - a.at.first_head) * a.at.rows + p.first - a.at.first) *
                                   a.at.pitch + first;

    for (int x = (int)threadIdx.x; x < PANEL_ROWS * PANEL_ROWS; x += THREADS) {
        int key = x % PANEL_ROWS, row = x / PANEL_ROWS;

        weights[swapped(key, row / 4) + row % 4] =
            row < p.rows && key < count ? (float)z[row * a.at.pitch + key] : 0.0f;
    }
}

template <int WIDE>
static __global__ void __launch_bounds__(THREADS) row_mix(RowMixCall a)
{
    SHARED_VALUE(MixMemory, m);
    RowPanel p = a.work.panels[blockIdx.x];
    int64_t  first_col = (int64_t)blockIdx.y * PANEL_ROWS * WIDE;
    Values   values = values_of(a.v, DeviceTensor(), p.head, a.at.all_heads);
    Softmax  rows[OWN];
    float    out[OWN][4 * WIDE];

    softmax_begin<WIDE>(rows, out);
    for (int r = 0; r < OWN; r++) { // weights are final: the pieces' sums are added up
        rows[r].top = 0;
        rows[r].sum = p.first_key == 0 ? 1 : 0;
    }
    for (int64_t from = 0; from < p.keys; from += PANEL_ROWS) {
        int64_t count = p.keys - from < PANEL_ROWS ? p.keys - from : PANEL_ROWS;
        int64_t first = p.first_key + from;

        __syncthreads();
        for (int x = (int)threadIdx.x; x < PANEL_ROWS; x += THREADS)
            m.key[x] = x < count ? (int32_t)(first + x) : -1;
        take_weights(a, p, first, count, m.weights);
        mix<WIDE>(values, m.key, count, first_col, m.weights, m.parts, out);
    }
    put_panel<WIDE>(a.work, a.to, p, first_col, rows, out);
}

extern "C" int call_row_mix(const RowMixCall *a)
{
    return a->work.width > PANEL_ROWS
               ? LAUNCH(row_mix<2>, panel_grid(&a->work, 2), THREADS, 0, *a)
               : LAUNCH(row_mix<1>, panel_grid(&a->work, 1), THREADS, 0, *a);
}
