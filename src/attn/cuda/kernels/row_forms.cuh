// row_forms.cuh -- the normalisers of attn/ops/ops.h for a row of scores that a block has.
//
// The CPU sorts; here thresholds are found by steps from below.  Entries that can have a weight
// (less than 1 below the largest, in the scale of the threshold) are listed by each warp in
// shared memory, from its own part of the row; where they are too many the row itself is read
// each time.  Sums over the block are in a fixed order, so a row's result never varies.
#ifndef ATTN_CUDA_KERNELS_ROW_FORMS_CUH
#define ATTN_CUDA_KERNELS_ROW_FORMS_CUH

#include "attn/cuda/kernels/score_rows.cuh"

#define LISTED 256  // entries of a warp's list
#define STEPS 100   // most of Newton's method, which takes some ten
#define CLOSE 1e-14 // steps that change no entry's being in or out

// attn/ops/ops.h, EntmaxForm, which the host checks.
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

// tau = (sum of the entries above tau - 1) / their number: the next tau is never lower, and no
// entry comes back, so it ends when none falls out.
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

// The root of |max(x - tau, 0)| = 1 by Newton's method, from below, where its steps never go too
// far; then exactly, from the entries above it.
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

// Step by step as on the CPU: a bisection that is stopped early shows every decision.
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
            break; // the steps have become too small to count
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

#endif
