// groups.cu -- attention inside groups: panels of a group's queries and of its keys, in float32.
//
// Tags, positions and lists of omitted keys decide which cells remain; the penalty of a row's own
// key and the visits change scores.  Shared memory holds the data of rows and keys.
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

// Panels without rules: few queries that read all keys, and groups in which all see all.

struct NoRules {
    __device__ void begin(const RowPanel &, PanelMemory *) {}
    __device__ void keys(const RowPanel &, PanelMemory *) {}
    __device__ void cells(const RowPanel &, PanelMemory *, float[OWN][OWN]) {}
};

template <int WIDE>
static __global__ void __launch_bounds__(THREADS) panels_attend(PanelInput a)
{
    SHARED_VALUE(PanelMemory, memory);
    NoRules                none;

    attend_panel<WIDE>(a, &memory, none);
}

extern "C" int call_few(const PanelInput *a)
{
    return PANEL_LAUNCH(panels_attend, &a->work, *a);
}

// Panels with rules.

#define LISTS 8 // lists of visits in shared memory at a time

struct RuleMemory {
    int32_t  row_tag[PANEL_ROWS], row_at[PANEL_ROWS], key_tag[PANEL_ROWS], key_at[PANEL_ROWS];
    int32_t  next[PANEL_ROWS];     // position in a row's list of omitted keys
    uint64_t left_out[PANEL_ROWS]; // the tile's omitted keys
    int32_t  others[PANEL_ROWS];   // in the whole group a key other than the row itself remains
    int32_t  missing;              // some row has found none
};

static __device__ const int32_t *list_of(const DeviceTensor &t, int64_t head, int64_t heads)
{
    return t.data ? head_of<int32_t>(t, head, heads) : NULL;
}

// to[x] = list[rows[x]]; absent lists are all 0.
static __device__ void take_list(const int32_t *list, const int32_t *rows, int32_t *to)
{
    for (int x = (int)threadIdx.x; x < PANEL_ROWS; x += THREADS)
        to[x] = list && rows[x] >= 0 ? list[rows[x]] : 0;
}

struct GroupRules {
    const GroupCall &a;
    RuleMemory      *w;

    __device__ GroupRules(const GroupCall &call, RuleMemory *memory) : a(call), w(memory) {}

    __device__ const int32_t *skips(const RowPanel &p, int32_t row) const
    {
        return head_of<int32_t>(a.skip, p.head, a.in.heads) + row * a.skip.row_stride;
    }

    // Both lists increase, so a row's position in its list never goes back.
    __device__ void leave_out(const RowPanel &p, const PanelMemory *m)
    {
        int x = (int)threadIdx.x, last = PANEL_ROWS - 1;

        if (!a.skip.data || x >= PANEL_ROWS)
            return;
        w->left_out[x] = 0;
        while (last > 0 && m->key[last] < 0)
            last--;
        if (m->row[x] < 0 || m->key[last] < 0)
            return;
        for (const int32_t *skip = skips(p, m->row[x]);
             w->next[x] < a.skip.cols && skip[w->next[x]] <= m->key[last]; w->next[x]++) {
            int low = 0, high = last;

            while (low < high) {
                int middle = (low + high) / 2;

                if (m->key[middle] < skip[w->next[x]])
                    low = middle + 1;
                else
                    high = middle;
            }
            if (m->key[low] == skip[w->next[x]])
                w->left_out[x] |= (uint64_t)1 << low;
        }
    }

    __device__ void rewind(void)
    {
        if (threadIdx.x < PANEL_ROWS)
            w->next[threadIdx.x] = 0;
    }

    __device__ bool stays(int row, int key) const
    {
        int32_t own = w->row_at[row] > -1 ? w->row_at[row] : -1; // a key at -1 always remains

        if (a.key_tag.data && w->row_tag[row] != w->key_tag[key])
            return false;
        if (a.causal && w->key_at[key] > own)
            return false;
        return !a.skip.data || !(w->left_out[row] >> key & 1);
    }

    // Finds the rows that keep a key other than themselves; four threads search for a row.
    __device__ void find_others(const RowPanel &p, PanelMemory *m)
    {
        const int32_t *start = head_of<int32_t>(a.key_start, p.head, a.in.heads);
        int            row = (int)threadIdx.x / 4;

        if (threadIdx.x < PANEL_ROWS)
            w->others[threadIdx.x] = m->row[threadIdx.x] < 0;
        for (int64_t from = start[p.group]; from < start[p.group + 1]; from += PANEL_ROWS) {
            int64_t count = start[p.group + 1] - from;

            take_entries(a.in.key_index, p, a.in.heads, from, count, m->key);
            if (threadIdx.x == 0)
                w->missing = 0;
            __syncthreads();
            keys(p, m);
            __syncthreads();
            for (int key = (int)threadIdx.x % 4; key < PANEL_ROWS && key < count; key += 4)
                if (m->row[row] >= 0 && w->key_at[key] != w->row_at[row] && stays(row, key))
                    atomicOr(&w->others[row], 1);
            __syncthreads();
            if (threadIdx.x < PANEL_ROWS && !w->others[threadIdx.x])
                atomicOr(&w->missing, 1);
            __syncthreads();
            if (!w->missing)
                break;
            __syncthreads();
        }
    }

    __device__ void begin(const RowPanel &p, PanelMemory *m)
    {
        take_list(list_of(a.query_tag, p.head, a.in.heads), m->row, w->row_tag);
        take_list(list_of(a.query_at, p.head, a.in.heads), m->row, w->row_at);
        rewind();
        __syncthreads();
        if (!a.self_last)
            return;
        find_others(p, m);
        __syncthreads();
        rewind();
        __syncthreads();
    }

    __device__ void keys(const RowPanel &p, PanelMemory *m)
    {
        take_list(list_of(a.key_tag, p.head, a.in.heads), m->key, w->key_tag);
        take_list(list_of(a.key_at, p.head, a.in.heads), m->key, w->key_at);
        leave_out(p, m);
    }

    __device__ int32_t visit_of(const DeviceTensor &t, const RowPanel &p, int64_t list,
                                int32_t place) const
    {
        return place < 0 || !t.data
                   ? 0
                   : head_of<int32_t>(t, p.head, a.in.heads)[list * t.row_stride + place];
    }

    // Tags and chunks of lists first .. first + count at the places `at`; [4][LISTS][PANEL_ROWS] of
    // chunks and tags of rows, then of keys.
    __device__ void take_visits(const RowPanel &p, const int32_t *rows, const int32_t *at,
                                int64_t first, int count, int32_t *to) const
    {
        const DeviceTensor &chunk = a.visits.chunk, &tag = a.visits.tag;

        for (int x = (int)threadIdx.x; x < count * PANEL_ROWS; x += THREADS) {
            int64_t list = first + x / PANEL_ROWS;
            int32_t place = rows[x % PANEL_ROWS] >= 0 ? at[x % PANEL_ROWS] : -1;

            to[x] = visit_of(chunk, p, list, place);
            to[LISTS * PANEL_ROWS + x] = visit_of(tag, p, list, place);
        }
    }

    __device__ bool meets(const int32_t *row, const int32_t *key) const
    {
        int64_t ahead = (int64_t)key[0] - row[0], low = -a.visits.before, high = a.visits.after;
        bool    seen = low <= ahead && ahead <= high;

        if (!a.visits.cross && row[LISTS * PANEL_ROWS] != key[LISTS * PANEL_ROWS])
            return false;
        if (a.visits.ring)
            seen |= (low <= ahead - a.visits.ring && ahead - a.visits.ring <= high) ||
                    (low <= ahead + a.visits.ring && ahead + a.visits.ring <= high);
        return seen;
    }

    __device__ void count_visits(const int32_t *rows, int row_lists, const int32_t *keys,
                                 int key_lists, int met[OWN][OWN]) const
    {
        for (int x = 0; x < row_lists; x++)
            for (int y = a.visits.cross ? 0 : x; y < (a.visits.cross ? key_lists : x + 1); y++)
                for (int r = 0; r < OWN; r++)
                    for (int c = 0; c < OWN; c++)
                        met[r][c] += meets(rows + x * PANEL_ROWS + OWN * own_y() + r,
                                           keys + y * PANEL_ROWS + OWN * own_x() + c);
    }

    __device__ void divide_by_visits(const RowPanel &p, PanelMemory *m, float s[OWN][OWN])
    {
        int32_t *rows = (int32_t *)m->parts, *keys = rows + 2 * LISTS * PANEL_ROWS;
        int64_t  lists = a.visits.chunk.rows;
        int      met[OWN][OWN] = {};

        for (int64_t x = 0; x < lists; x += LISTS) {
            int64_t last = a.visits.cross ? lists : x + 1;

            for (int64_t y = a.visits.cross ? 0 : x; y < last; y += LISTS) {
                int row_lists = lists - x < LISTS ? (int)(lists - x) : LISTS;
                int key_lists = lists - y < LISTS ? (int)(lists - y) : LISTS;

                __syncthreads();
                take_visits(p, m->row, w->row_at, x, row_lists, rows);
                take_visits(p, m->key, w->key_at, y, key_lists, keys);
                __syncthreads();
                count_visits(rows, row_lists, keys, key_lists, met);
            }
        }
        for (int r = 0; r < OWN; r++)
            for (int c = 0; c < OWN; c++)
                if (met[r][c] > 1)
                    s[r][c] -= logf((float)met[r][c]);
    }

    __device__ void cells(const RowPanel &p, PanelMemory *m, float s[OWN][OWN])
    {
        for (int r = 0; r < OWN; r++)
            for (int c = 0; c < OWN; c++) {
                int  row = OWN * own_y() + r, key = OWN * own_x() + c;
                bool self = w->key_at[key] == w->row_at[row];

                if (!stays(row, key) || (a.self_last && self && w->others[row]))
                    s[r][c] = -INFINITY;
                else if (self)
                    s[r][c] -= (float)a.self_penalty;
            }
        if (a.visits.chunk.data)
            divide_by_visits(p, m, s);
    }
};

template <int WIDE>
static __global__ void __launch_bounds__(THREADS) group_attend(GroupCall a)
{
    SHARED_VALUE(PanelMemory, memory);
    SHARED_VALUE(RuleMemory, known);
    GroupRules             rules(a, &known);

    attend_panel<WIDE>(a.in, &memory, rules);
}

extern "C" int call_group(const GroupCall *a)
{
    bool rules = a->key_tag.data || a->causal || a->self_last || a->skip.data ||
                 a->self_penalty != 0 || a->visits.chunk.data;

    if (!rules)
        return call_few(&a->in);
    return PANEL_LAUNCH(group_attend, &a->in.work, *a);
}

// Joins panels whose keys were cut; see calls.h.
//
//     top = max_s top_s,  sum = sum_s e^(top_s - top) sum_s,  out = sum_s e^(top_s - top) part_s / sum
//
// A warp joins a row, its lanes the columns; slots are added in order.

#define WARPS 8 // rows of a block
#define MOST_JOINS 65535

static __device__ double share_of(double top, double all)
{
    return top == -INFINITY ? 1 : exp(top - all); // without keys, or NaN
}

static __global__ void __launch_bounds__(32 * WARPS) join_panels(JoinCall a)
{
    for (int64_t which = blockIdx.x; which < a.work.joins; which += gridDim.x) {
        PanelJoin j = a.work.join[which];
        int       row = (int)blockIdx.y * WARPS + (int)threadIdx.x / 32;
        double    top = -INFINITY, sum = 0;
        int64_t   place;

        if (row >= j.rows)
            continue;
        for (int64_t s = 0; s < j.count; s++)
            top = fmax(top, a.work.top[(j.slot + s) * PANEL_ROWS + row]);
        for (int64_t s = 0; s < j.count; s++) {
            int64_t at = (j.slot + s) * PANEL_ROWS + row;

            sum += share_of(a.work.top[at], top) * a.work.sum[at];
        }
        place = place_of(a.to, j.head, j.first + row);
        if (threadIdx.x % 32 == 0)
            put_lse(a.to, j.head, place, top, sum);
        for (int64_t col = threadIdx.x % 32; col < a.work.width; col += 32) {
            double value = 0;

            for (int64_t s = 0; s < j.count; s++) {
                int64_t at = (j.slot + s) * PANEL_ROWS + row;

                value += share_of(a.work.top[at], top) *
                         (double)a.work.part[at * a.work.width + col];
            }
            put_value(a.to, j.head, place, col, sum == 0 ? 0.0f : (float)(value / sum));
        }
    }
}

extern "C" int call_join(const JoinCall *a)
{
    int64_t blocks = a->work.joins < MOST_JOINS ? a->work.joins : MOST_JOINS;

    return LAUNCH(join_panels, dim3((unsigned)blocks, PANEL_ROWS / WARPS), 32 * WARPS, 0, *a);
}
