// row_attend.cu -- attention by rows of scores in double: z = scale q k^T, weights, weights times v.
//
// A block computes 64 x 64 scores, then one row of weights, then a panel of 64 rows of results.
#include "attn/cuda/kernels/panels.cuh"
#include "attn/cuda/kernels/portable.cuh"

#define ROW_THREADS 256 // of a block that computes a row
#define ROW_WARPS (ROW_THREADS / 32)

// Keys that row i (of its head) sees.
static __device__ __forceinline__ int64_t row_sees(const ScoreRows &a, int64_t i)
{
    int64_t seen = i + a.offset + 1;

    return !a.causal || seen > a.k.rows ? a.k.rows : seen < 0 ? 0 : seen;
}

// The sum over the block in a fixed order; every thread gets it.
template <typename T>
static __device__ T block_sum(T x, T *words)
{
    T sum = 0;

    x = warp_sum(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        words[threadIdx.x / 32] = x;
    __syncthreads();
    for (int w = 0; w < ROW_WARPS; w++)
        sum += words[w];
    return sum;
}

static __device__ __forceinline__ double block_max(double x, double *words)
{
    double most = -INFINITY;

    x = warp_max(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        words[threadIdx.x / 32] = x;
    __syncthreads();
    for (int w = 0; w < ROW_WARPS; w++)
        most = words[w] > most ? words[w] : most;
    return most;
}

#define LISTED 256  // entries of a warp's list
#define STEPS 100   // of Newton's method, at most; about ten are usual
#define CLOSE 1e-14 // a step too small to change the set of entries above tau

// As EntmaxForm of attn/ops/ops.h; the host asserts it.
enum { FORM_SOFTMAX, FORM_SPARSEMAX, FORM_SQUARE, FORM_BISECT };

struct FormRow {
    double tau, total;
};

struct RowMemory {
    double  list[ROW_WARPS][LISTED];
    double  words[ROW_WARPS];
    int32_t counts[ROW_WARPS];
};

struct Entries {
    const double *z;
    int64_t       count;
    double        scale, shift, least; // x = scale z - shift, where that is at least `least`
    const double *list;                // of this warp
    int           found;
    bool          listed;
    double       *words;
};

static __device__ __forceinline__ double scaled(const Entries &e, double z)
{
    return __dadd_rn(__dmul_rn(e.scale, z), -e.shift);
}

// The sum of f(x) over all entries.
template <class F>
static __device__ double sum_over(const Entries &e, F f)
{
    double sum = 0;

    if (e.listed) {
        for (int at = (int)threadIdx.x % 32; at < e.found; at += 32)
            sum += f(e.list[at]);
    } else {
        for (int64_t j = threadIdx.x; j < e.count; j += ROW_THREADS) {
            double x = scaled(e, e.z[j]);

            if (x >= e.least)
                sum += f(x);
        }
    }
    return block_sum(sum, e.words);
}

static __device__ Entries entries_of(const double *z, int64_t count, double scale, double shift,
                                     double least, RowMemory *m)
{
    int     lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int64_t part = ((count + ROW_THREADS - 1) / ROW_THREADS) * 32, first = warp * part;
    Entries e;

    e.z = z;
    e.count = count;
    e.scale = scale;
    e.shift = shift;
    e.least = least;
    e.list = m->list[warp];
    e.found = 0;
    e.words = m->words;
    for (int64_t j = first + lane; j < first + part + lane && j - lane < count; j += 32) {
        double   x = j < count ? scaled(e, z[j]) : 0;
        bool     in = j < count && x >= least;
        unsigned all = __ballot_sync(0xffffffffu, in);
        int      at = e.found + __popc(all & ((1u << lane) - 1));

        if (in && at < LISTED)
            m->list[warp][at] = x;
        e.found += __popc(all);
    }
    e.listed = block_sum((int32_t)(e.found > LISTED), m->counts) == 0;
    return e;
}

static __device__ double softmax_tau(const double *z, int64_t count, double top, RowMemory *m)
{
    double sum = 0;

    for (int64_t j = threadIdx.x; j < count; j += ROW_THREADS)
        sum += exp(z[j] - top);
    return top + log(block_sum(sum, m->words));
}

// tau = (sum of the entries above tau - 1) / their number.  tau never decreases, so entries only
// leave the set; it ends when none leaves.
static __device__ double sparsemax_tau(const double *z, int64_t count, double top, RowMemory *m)
{
    Entries e = entries_of(z, count, 1, top, -1, m);
    double  tau = -1, size = (double)count + 1;

    for (;;) {
        double above = sum_over(e, [=](double x) { return x > tau ? 1.0 : 0.0; });
        double sum = sum_over(e, [=](double x) { return x > tau ? x : 0.0; });

        if (!(above < size))
            return top + tau;
        size = above;
        tau = (sum - 1) / size;
    }
}

// The root of |max(x - tau, 0)| = 1 by Newton's method from below, where steps never overshoot; then
// exactly, from the entries above it.
static __device__ double square_tau(const double *z, int64_t count, double top, RowMemory *m)
{
    Entries e = entries_of(z, count, 0.5, top / 2, -1, m);
    double  tau = -1, size, sum, squares, mean;

    for (int step = 0; step < STEPS; step++) {
        double line = sum_over(e, [=](double x) { return x > tau ? x - tau : 0.0; });
        double area = sum_over(e, [=](double x) {
            return x > tau ? (x - tau) * (x - tau) : 0.0;
        });
        double ahead = (area - sqrt(area)) / line;

        if (!(ahead > CLOSE))
            break;
        tau += ahead;
    }
    size = sum_over(e, [=](double x) { return x > tau ? 1.0 : 0.0; });
    sum = sum_over(e, [=](double x) { return x > tau ? x : 0.0; });
    squares = sum_over(e, [=](double x) { return x > tau ? x * x : 0.0; });
    mean = sum / size;
    return top / 2 + mean - sqrt(fmax(0.0, (1 - (squares - size * mean * mean)) / size));
}

static __device__ double power_sum(const Entries &e, double tau, double power)
{
    return sum_over(e, [=](double x) { return x > tau ? pow(x - tau, power) : 0.0; });
}

// The CPU's steps: the trace of a bisection that stops early shows every decision.
static __device__ FormRow bisect(const RowForm &f, const double *z, int64_t count, double top,
                                 RowMemory *m, double *trace, int64_t steps)
{
    double  power = 1 / (f.alpha - 1), high = (f.alpha - 1) * top, low = high - 1;
    double  tau = low, sum = 0, present = 0, step;
    Entries e = entries_of(z, count, f.alpha - 1, 0, low, m);

    for (int64_t j = threadIdx.x; j < count; j += ROW_THREADS)
        present += z[j] > -INFINITY;
    present = block_sum(present, m->words);
    step = high - pow(1 / present, f.alpha - 1) - low;
    for (int64_t t = 0; t < f.iterations; t++) {
        step /= 2;
        tau = low + step;
        sum = power_sum(e, tau, power);
        if (t < steps && threadIdx.x == 0)
            trace[t] = tau;
        if (tau <= low && t >= steps)
            break; // the steps no longer change tau
        if (sum >= 1)
            low = tau;
    }
    if (!(sum > 0)) { // tau was rounded up to the largest entry itself
        tau = low;
        sum = power_sum(e, tau, power);
    }
    return { tau, f.divide ? sum : 1 };
}

static __device__ FormRow form_row(const RowForm &f, const double *z, int64_t count, RowMemory *m,
                                   double *trace, int64_t steps)
{
    double  top = -INFINITY;

    for (int64_t j = threadIdx.x; j < count; j += ROW_THREADS)
        top = z[j] > top ? z[j] : top;
    top = block_max(top, m->words);
    if (!(top > -INFINITY))
        return { 0, 1 };
    switch (f.form) {
    case FORM_SOFTMAX: return { softmax_tau(z, count, top, m), 1 };
    case FORM_SPARSEMAX: return { sparsemax_tau(z, count, top, m), 1 };
    case FORM_SQUARE: return { square_tau(z, count, top, m), 1 };
    default: return bisect(f, z, count, top, m, trace, trace ? steps : 0);
    }
}

static __device__ __forceinline__ double form_weight(const RowForm &f, const FormRow &row,
                                                     double z)
{
    double x;

    switch (f.form) {
    case FORM_SOFTMAX: return exp(z - row.tau);
    case FORM_SPARSEMAX: return fmax(z - row.tau, 0.0);
    case FORM_SQUARE:
        x = fmax(z / 2 - row.tau, 0.0);
        return x * x;
    default:
        x = __dadd_rn(__dmul_rn(f.alpha - 1, z), -row.tau);
        return x > 0 ? pow(x, 1 / (f.alpha - 1)) / row.total : 0;
    }
}

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

// A score after the mask.
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

// One row: its threshold, its weights, and 0 for keys that only other rows of its panel see.
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
    for (int r = 0; r < OWN; r++) { // weights are final, so a join only adds the pieces
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
    return PANEL_LAUNCH(row_mix, &a->work, *a);
}

// Usage of keys: softmaxes of rows in double, summed for each key.
//
// A block computes a row; then a thread sums a key over the rows in order, alike for every key,
// because choices are made on the result.

// z = e^(z - max z) of the keys that the row sees, and their sum.
static __global__ void __launch_bounds__(ROW_THREADS) usage_rows(UsageCall a)
{
    SHARED_ARRAY(double, words, [ROW_WARPS]);
    int64_t at = blockIdx.y * a.at.rows + blockIdx.x;
    int64_t count = row_sees(a.at, a.at.first + blockIdx.x);
    double *z = a.at.z + at * a.at.pitch, most = -INFINITY, sum = 0;

    for (int64_t j = threadIdx.x; j < count; j += ROW_THREADS)
        most = z[j] > most ? z[j] : most;
    most = block_max(most, words);
    for (int64_t j = threadIdx.x; j < count; j += ROW_THREADS) {
        z[j] = exp(z[j] - most);
        sum += z[j];
    }
    sum = block_sum(sum, words);
    if (threadIdx.x == 0)
        a.total[at] = sum;
}

static __global__ void __launch_bounds__(ROW_THREADS) usage_keys(UsageCall a)
{
    int64_t j = (int64_t)blockIdx.x * ROW_THREADS + threadIdx.x, m = a.at.k.rows;
    double  sum;

    if (j >= m)
        return;
    sum = a.at.first ? a.sums[blockIdx.y * m + j] : 0;
    for (int64_t i = 0; i < a.at.rows; i++)
        if (j < row_sees(a.at, a.at.first + i)) {
            int64_t at = blockIdx.y * a.at.rows + i;

            sum += a.at.z[at * a.at.pitch + j] / a.total[at];
        }
    a.sums[blockIdx.y * m + j] = sum;
}

extern "C" int call_usage(const UsageCall *a)
{
    int64_t keys = (a->at.k.rows + ROW_THREADS - 1) / ROW_THREADS;
    int     code = LAUNCH(usage_rows, dim3((unsigned)a->at.rows, (unsigned)a->at.heads),
                          ROW_THREADS, 0, *a);

    return code ? code
                : LAUNCH(usage_keys, dim3((unsigned)keys, (unsigned)a->at.heads), ROW_THREADS, 0,
                         *a);
}

static __global__ void __launch_bounds__(ROW_THREADS) usage_mean(UsageMeanCall a)
{
    int64_t j = (int64_t)blockIdx.x * ROW_THREADS + threadIdx.x;
    double  sum = 0;

    if (j >= a.m)
        return;
    for (int64_t t = 0; t < a.heads; t++)
        sum += a.sums[t * a.m + j];
    a.usage[j] = sum / (double)(a.heads * a.n);
}

extern "C" int call_usage_mean(const UsageMeanCall *a)
{
    return LAUNCH(usage_mean, (unsigned)((a->m + ROW_THREADS - 1) / ROW_THREADS), ROW_THREADS, 0,
                  *a);
}
