// pinv.cu -- the Moore-Penrose inverse through singular values, by one-sided Jacobi.
//
// As on the CPU (attn/cpu/matrix.c), but a round turns all pairs of a tournament at once: each
// warp has pairs of columns of B = A V, and every column is in one pair of a round.  The
// columns, one after the other, lie in shared memory where they fit.
#include "attn/cuda/kernels/portable.cuh"

#define THREADS 1024
#define WARPS (THREADS / 32)
#define MOST_SWEEPS 60
#define TINY 2.2250738585072014e-308 // the least normal double
#define STEP 2.2204460492503131e-16  // the distance from 1 to the next double
#define SHARED_BYTES (200 << 10)     // of a block, so that it runs on GPUs of some years

static __device__ void rotate(double *a, double *b, int64_t n, double cosine, double sine)
{
    for (int64_t t = threadIdx.x % 32; t < n; t += 32) {
        double x = a[t], y = b[t];

        a[t] = cosine * x - sine * y;
        b[t] = sine * x + cosine * y;
    }
}

// A warp makes columns p and q orthogonal; false: they were so already.
static __device__ bool turn_pair(double *b, double *v, int64_t n, int64_t p, int64_t q)
{
    double *x = b + p * n, *y = b + q * n, xx = 0, yy = 0, xy = 0, zeta, tangent, cosine;

    for (int64_t t = threadIdx.x % 32; t < n; t += 32) {
        xx += x[t] * x[t];
        yy += y[t] * y[t];
        xy += x[t] * y[t];
    }
    xx = warp_sum(xx);
    yy = warp_sum(yy);
    xy = warp_sum(xy);
    if (!(fabs(xy) > 2 * STEP * sqrt(xx * yy)) || !(fabs(xy) > TINY))
        return false;
    zeta = (yy - xx) / (2 * xy);
    tangent = (zeta < 0 ? -1 : 1) / (fabs(zeta) + hypot(1.0, zeta));
    cosine = 1 / hypot(1.0, tangent);
    rotate(x, y, n, cosine, cosine * tangent);
    rotate(v + p * n, v + q * n, n, cosine, cosine * tangent);
    return true;
}

// Pair `pair` of a round of a tournament of an even number of players.
static __device__ void pair_of(int64_t players, int64_t round, int64_t pair, int64_t *p, int64_t *q)
{
    int64_t ring = players - 1, a = (round + pair) % ring, b = (round + ring - pair) % ring;

    if (pair == 0)
        b = ring;
    *p = a < b ? a : b;
    *q = a < b ? b : a;
}

static __device__ void diagonalise(double *b, double *v, int64_t n)
{
    SHARED_VALUE(int, turned);
    int64_t        players = n + n % 2, p, q;

    for (int sweep = 0; sweep < MOST_SWEEPS; sweep++) {
        bool again = false;

        __syncthreads();
        if (threadIdx.x == 0)
            turned = 0;
        for (int64_t round = 0; round < players - 1; round++) {
            __syncthreads();
            for (int64_t pair = threadIdx.x / 32; pair < players / 2; pair += WARPS) {
                pair_of(players, round, pair, &p, &q);
                if (q < n)
                    again = turn_pair(b, v, n, p, q) || again;
            }
        }
        if (again)
            atomicOr(&turned, 1);
        __syncthreads();
        if (!turned)
            break;
    }
}

// factor[c] = 1 / s_c^2, or 0 below the cut; first the squares s_c^2, one warp per column.
static __device__ void invert_squares(const double *b, int64_t n, double rcond, double *factor)
{
    double most = 0;

    for (int64_t c = threadIdx.x / 32; c < n; c += WARPS) {
        double sum = 0;

        for (int64_t t = threadIdx.x % 32; t < n; t += 32)
            sum += b[c * n + t] * b[c * n + t];
        sum = warp_sum(sum);
        if (threadIdx.x % 32 == 0)
            factor[c] = sum;
    }
    __syncthreads();
    for (int64_t c = 0; c < n; c++)
        most = fmax(most, sqrt(factor[c]));
    __syncthreads();
    for (int64_t c = threadIdx.x; c < n; c += THREADS)
        factor[c] = sqrt(factor[c]) > rcond * most ? 1 / factor[c] : 0;
    __syncthreads();
}

static __global__ void __launch_bounds__(THREADS) pinv_heads(PinvCall a, bool shared)
{
    int64_t       n = a.a.rows, size = n * n;
    const double *from = head_of<double>(a.a, blockIdx.x, a.a.heads);
    double       *y = a.y + blockIdx.x * size, *b = a.work + blockIdx.x * 2 * size, *v;
    SHARED(double, dynamic);

    if (shared)
        b = dynamic;
    v = b + size;
    for (int64_t x = threadIdx.x; x < size; x += THREADS) {
        b[x % n * n + x / n] = from[x / n * a.a.row_stride + x % n];
        v[x] = x % n == x / n ? 1 : 0;
    }
    diagonalise(b, v, n);
    // y holds the factors until the columns have them.
    invert_squares(b, n, a.rcond, y);
    for (int64_t x = threadIdx.x; x < size; x += THREADS) {
        int64_t c = x / n;

        v[x] = y[c] != 0 ? v[x] * y[c] : 0;
        b[x] = y[c] != 0 ? b[x] : 0;
    }
    __syncthreads();
    for (int64_t x = threadIdx.x; x < size; x += THREADS) {
        double sum = 0;

        for (int64_t c = 0; c < n; c++)
            sum += v[c * n + x / n] * b[c * n + x % n];
        y[x] = sum;
    }
}

extern "C" int call_pinv(const PinvCall *a)
{
    int64_t bytes = 2 * a->a.rows * a->a.rows * (int64_t)sizeof(double);
    bool    shared = bytes <= SHARED_BYTES;

    if (a->a.heads <= 0 || a->a.rows <= 0)
        return 0;
    if (shared && bytes > (48 << 10) && ALLOW_SHARED(pinv_heads, bytes) != cudaSuccess)
        shared = false;
    return LAUNCH(pinv_heads, (unsigned)a->a.heads, THREADS, shared ? (size_t)bytes : 0, *a,
                  shared);
}
