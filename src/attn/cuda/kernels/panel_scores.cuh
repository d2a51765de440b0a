// panel_scores.cuh -- panels whose scores are products of rows of q and k, in float32.
//
// Rules say which cells stay and what changes their scores: a class with begin(), keys() as each
// tile of keys is taken, and cells() for this thread's scores.  Cell (r, c) of a thread is row
// 4y + r, key 4x + c of the tile.
#ifndef ATTN_CUDA_KERNELS_PANEL_SCORES_CUH
#define ATTN_CUDA_KERNELS_PANEL_SCORES_CUH

#include "attn/cuda/kernels/panels.cuh"

struct PanelMemory {
    alignas(16) float parts[2 * PART * PANEL_ROWS]; // of q and k; the values; the rules' lists
    alignas(16) float weights[PANEL_ROWS * PANEL_ROWS];
    int32_t row[PANEL_ROWS], key[PANEL_ROWS];            // of q; of k and v; -1: none
};

// to[z][r ^ ..] = column first + z of row index[r]; 0 beyond the ends.
static __device__ void turn_in(float *to, const DeviceTensor &t, const float *from,
                               const int32_t *index, int64_t first)
{
    int  quad = (int)threadIdx.x % (PART / 4);
    bool fours = by_fours(t, from);

    for (int r = (int)threadIdx.x / (PART / 4); r < PANEL_ROWS; r += THREADS / (PART / 4)) {
        float x[4] = { 0, 0, 0, 0 };

        if (index[r] >= 0)
            read_four(from + index[r] * t.row_stride, first + 4 * quad, t.cols, fours, x);
        for (int c = 0; c < 4; c++)
            to[(4 * quad + c) * PANEL_ROWS + (r ^ (4 * quad))] = x[c];
    }
}

static __device__ void score_tile(const PanelInput &a, const RowPanel &p, PanelMemory *m,
                                  float s[OWN][OWN])
{
    const float *q = head_of<float>(a.q, p.head, a.heads);
    const float *k = head_of<float>(a.k, p.head, a.heads);
    float       *k_part = m->parts + PART * PANEL_ROWS;

    for (int r = 0; r < OWN; r++)
        for (int c = 0; c < OWN; c++)
            s[r][c] = 0;
    for (int64_t part = 0; part < a.q.cols; part += PART) {
        int depth = a.q.cols - part < PART ? (int)(a.q.cols - part) : PART;

        __syncthreads();
        turn_in(m->parts, a.q, q, m->row, part);
        turn_in(k_part, a.k, k, m->key, part);
        __syncthreads();
        multiply_scores(m->parts, k_part, depth, s);
    }
    for (int r = 0; r < OWN; r++)
        for (int c = 0; c < OWN; c++)
            s[r][c] *= (float)a.scale;
}

// Entries first .. first + count of a list of rows; without a list the rows themselves.
static __device__ void take_entries(const DeviceTensor &list, const RowPanel &p, int64_t heads,
                                    int64_t first, int64_t count, int32_t *to)
{
    const int32_t *from = list.data ? head_of<int32_t>(list, p.head, heads) : NULL;

    for (int x = (int)threadIdx.x; x < PANEL_ROWS; x += THREADS)
        to[x] = x >= count ? -1 : from ? from[first + x] : (int32_t)(first + x);
}

template <int WIDE, class Rules>
static __device__ void attend_panel(const PanelInput &a, PanelMemory *m, Rules &rules)
{
    RowPanel   p = a.work.panels[blockIdx.x];
    int64_t first_col = (int64_t)blockIdx.y * PANEL_ROWS * WIDE;
    Values  values = values_of(a.v, a.more, p.head, a.heads);
    Softmax rows[OWN];
    float   out[OWN][4 * WIDE], s[OWN][OWN];

    softmax_begin<WIDE>(rows, out);
    take_entries(a.query_index, p, a.heads, p.first, p.rows, m->row);
    __syncthreads();
    rules.begin(p, m);
    for (int64_t from = 0; from < p.keys; from += PANEL_ROWS) {
        int64_t count = p.keys - from < PANEL_ROWS ? p.keys - from : PANEL_ROWS;

        take_entries(a.key_index, p, a.heads, p.first_key + from, count, m->key);
        __syncthreads();
        rules.keys(p, m);
        score_tile(a, p, m, s);
        for (int r = 0; r < OWN; r++)
            for (int c = 0; c < OWN; c++)
                s[r][c] = 4 * own_x() + c < count ? s[r][c] : -INFINITY;
        rules.cells(p, m, s);
        soften_tile<float, WIDE>(s, 4 * own_x(), 1, rows, m->weights, out);
        mix<WIDE>(values, m->key, count, first_col, m->weights, m->parts, out);
        __syncthreads();
    }
    put_panel<WIDE>(a.work, a.to, p, first_col, rows, out);
}

// All cells of the panels, without rules (few.cu).
int attend_panels(const PanelInput *a);

#endif
