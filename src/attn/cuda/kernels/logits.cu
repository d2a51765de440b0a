// logits.cu -- attention over logits: panels of rows, tiles of 64 columns, logits in double.
//
// Each kind of logit fills the thread's cells (rows 4y + r, columns x + 16c of the tile); the
// softmax advances in double, weights and values are in float, as on the CPU.
#include "attn/cuda/kernels/panels.cuh"
#include "attn/cuda/kernels/portable.cuh"

// Numbers 2 * block and 2 * block + 1 of the generator.
static __device__ __forceinline__ void random_block(uint64_t seed, uint64_t stream,
                                                    uint64_t block, uint64_t out[2])
{
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);

    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;

        c0 = (uint32_t)(b >> 32) ^ c1 ^ key0;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ key1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    out[0] = (uint64_t)c1 << 32 | c0;
    out[1] = (uint64_t)c3 << 32 | c2;
}

// As rng_fill_uniform: rounded to float, without fused multiply-adds.
static __device__ __forceinline__ float random_uniform(uint64_t bits, double low, double high)
{
    double unit = (double)(bits >> 11) * 0x1p-53;

    return (float)__dadd_rn(low, __dmul_rn(high - low, unit));
}

// As LogitKind of attn/ops/ops.h; the host asserts it.
enum { GIVEN, UNIFORM, PRODUCT, FOLDED, TILED };

struct LogitMemory {
    alignas(16) union {
        double wide[WIDE_PARTS];
        float  values[PART * 2 * PANEL_ROWS];
    } parts;
    alignas(16) float weights[PANEL_ROWS * PANEL_ROWS];
    int32_t key[PANEL_ROWS];
};

static __device__ __forceinline__ int64_t own_row(const RowPanel &p, int r)
{
    return p.first + OWN * own_y() + r;
}

static __device__ __forceinline__ int64_t own_col(int64_t first, int c)
{
    return first + own_x() + SIDE * c;
}

static __device__ void fill_given(const LogitsCall &a, const RowPanel &p, int64_t first,
                                  double s[OWN][OWN])
{
    const float *left = head_of<float>(a.left, p.head, a.heads);

    for (int r = 0; r < OWN; r++)
        for (int c = 0; c < OWN; c++)
            if (own_row(p, r) < a.n && own_col(first, c) < a.m)
                s[r][c] = (double)left[own_row(p, r) * a.left.row_stride + own_col(first, c)];
}

static __device__ void fill_uniform(const LogitsCall &a, const RowPanel &p, int64_t first,
                                    double s[OWN][OWN])
{
#pragma unroll
    for (int r = 0; r < OWN; r++)
#pragma unroll
        for (int c = 0; c < OWN; c++) {
            uint64_t at = (uint64_t)((p.head * a.n + own_row(p, r)) * a.m + own_col(first, c));
            uint64_t bits[2];

            random_block(a.seed, a.stream, at / 2, bits);
            s[r][c] = (double)random_uniform(at % 2 ? bits[1] : bits[0], -a.bound, a.bound);
        }
}

static __device__ void fill_product(const LogitsCall &a, const RowPanel &p, int64_t first,
                                    double *parts, double s[OWN][OWN])
{
    const float *bias = a.bias.data ? head_of<float>(a.bias, p.head, a.heads) : NULL;

    for (int r = 0; r < OWN && bias; r++)
        for (int c = 0; c < OWN; c++)
            s[r][c] = own_col(first, c) < a.m ? (double)bias[own_col(first, c)] : 0;
    wide_tile(WideRows(a.left, p.head, a.heads, p.first),
              WideRows(a.right, p.head, a.heads, first, !a.turned), a.left.cols, parts, s);
}

static __device__ void fill_folded(const LogitsCall &a, const RowPanel &p, int64_t first,
                                   double s[OWN][OWN])
{
    const void *comb = slice_of(a.left, p.head, a.heads);
    const void *tooth = slice_of(a.right, p.head, a.heads);

    for (int r = 0; r < OWN; r++)
        for (int c = 0; c < OWN; c++) {
            int64_t i = own_row(p, r), j = own_col(first, c);

            if (i < a.n && j < a.m)
                s[r][c] = entry_of(a.left, comb, i * a.left.row_stride + j % a.left.cols) *
                          entry_of(a.right, tooth, i * a.right.row_stride + j / a.left.cols);
        }
}

// A row of entries each repeated: element z of it is entry z mod a, or floor(z / a).
struct Repeated {
    WideRows rows;
    int64_t  a;
    bool     tile;
    bool     turned;

    __device__ Repeated(const DeviceTensor &t, int64_t head, int64_t heads, int64_t first,
                        int64_t length, bool tiled)
        : rows(t, head, heads, first), a(length), tile(tiled), turned(false)
    {
    }
    __device__ double at(int row, int64_t z) const { return rows.at(row, tile ? z % a : z / a); }
};

// The formula with both maps expanded.
static __device__ void fill_tiled(const LogitsCall &a, const RowPanel &p, int64_t first,
                                  double *parts, double s[OWN][OWN])
{
    int64_t length = a.left.cols;

    wide_tile(Repeated(a.left, p.head, a.heads, p.first, length, true),
              Repeated(a.right, p.head, a.heads, first, length, false), length * a.right.cols,
              parts, s);
}

template <int KIND>
static __device__ void fill_logits(const LogitsCall &a, const RowPanel &p, int64_t first,
                                   double *parts, double s[OWN][OWN])
{
    for (int r = 0; r < OWN; r++)
        for (int c = 0; c < OWN; c++)
            s[r][c] = 0;
    switch (KIND) {
    case GIVEN: fill_given(a, p, first, s); break;
    case UNIFORM: fill_uniform(a, p, first, s); break;
    case PRODUCT: fill_product(a, p, first, parts, s); break;
    case FOLDED: fill_folded(a, p, first, s); break;
    case TILED: fill_tiled(a, p, first, parts, s); break;
    }
}

// Removes logits of missing columns and of columns later than the row sees.
static __device__ void hide(const LogitsCall &a, const RowPanel &p, int64_t first, int64_t count,
                            double s[OWN][OWN])
{
    for (int r = 0; r < OWN; r++)
        for (int c = 0; c < OWN; c++)
            if (own_col(0, c) >= count ||
                (a.causal && own_col(first, c) > own_row(p, r) + a.offset))
                s[r][c] = -INFINITY;
}

template <int KIND, int WIDE>
static __global__ void __launch_bounds__(THREADS) logit_attend(LogitsCall a)
{
    SHARED_VALUE(LogitMemory, m);
    RowPanel p = a.work.panels[blockIdx.x];
    int64_t  first_col = (int64_t)blockIdx.y * PANEL_ROWS * WIDE;
    Values   values = values_of(a.v, DeviceTensor(), p.head, a.heads);
    Softmax  rows[OWN];
    float    out[OWN][4 * WIDE];
    double   s[OWN][OWN];

    softmax_begin<WIDE>(rows, out);
    for (int64_t from = 0; from < p.keys; from += PANEL_ROWS) {
        int64_t count = p.keys - from < PANEL_ROWS ? p.keys - from : PANEL_ROWS;
        int64_t first = p.first_key + from;

        __syncthreads();
        for (int x = (int)threadIdx.x; x < PANEL_ROWS; x += THREADS)
            m.key[x] = x < count ? (int32_t)(first + x) : -1;
        fill_logits<KIND>(a, p, first, m.parts.wide, s);
        hide(a, p, first, count, s);
        soften_tile<double, WIDE>(s, own_x(), SIDE, rows, m.weights, out);
        mix<WIDE>(values, m.key, count, first_col, m.weights, m.parts.values, out);
    }
    put_panel<WIDE>(a.work, a.to, p, first_col, rows, out);
}

template <int KIND>
static int launch(const LogitsCall *a)
{
    return a->work.width > PANEL_ROWS
               ? LAUNCH((logit_attend<KIND, 2>), panel_grid(&a->work, 2), THREADS, 0, *a)
               : LAUNCH((logit_attend<KIND, 1>), panel_grid(&a->work, 1), THREADS, 0, *a);
}

extern "C" int call_logits(const LogitsCall *a)
{
    switch (a->kind) {
    case GIVEN: return launch<GIVEN>(a);
    case UNIFORM: return launch<UNIFORM>(a);
    case PRODUCT: return launch<PRODUCT>(a);
    case FOLDED: return launch<FOLDED>(a);
    default: return launch<TILED>(a);
    }
}
