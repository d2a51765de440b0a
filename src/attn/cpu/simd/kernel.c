/* kernel.c -- the kernels that this CPU can run, and packed panels; see kernel.h. */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cpu/simd/kernel.h"

Fetching kernel_fetching;

static const char *const names[] = { "avx512", "avx2", "generic" };
#define NAMES 3

static struct {
    const Kernel *kernel[NAMES];
    int           count;
    const char   *unknown;
} found;

/* The place among names of the best kernel that may run. */
static int best_wanted(void)
{
    const char *value = getenv("ATTNSCOPE_ISA");
    int         at = 0;

    if (!value || !*value)
        return 0;
    while (at < NAMES && strcmp(value, names[at]) != 0)
        at++;
    found.unknown = at < NAMES ? NULL : value;
    return at < NAMES ? at : 0;
}

#if defined(__x86_64__)
/* Of AMD's processors only Zen 5 has VP2INTERSECT.  Fetching ahead makes Zen 4 slower, fetching the
 * line that is read faster.  Long runs are faster without where there is AVX2 alone. */
static void find_fetching(bool avx512)
{
    bool ahead = __builtin_cpu_is("intel") || __builtin_cpu_supports("avx512vp2intersect");

    kernel_fetching.runs = ahead || avx512;
    kernel_fetching.near = !ahead;
}
#endif

static void find_kernels(void)
{
    int best = best_wanted();

#if defined(__x86_64__)
    if (best <= 0 && __builtin_cpu_supports("avx512f"))
        found.kernel[found.count++] = &kernel_avx512;
    if (best <= 1 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        found.kernel[found.count++] = &kernel_avx2;
    find_fetching(found.kernel[0] == &kernel_avx512);
#endif
    (void)best;
    found.kernel[found.count++] = &kernel_generic;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

const Kernel *kernel_at(int index)
{
    pthread_once(&once, find_kernels);
    return index >= 0 && index < found.count ? found.kernel[index] : NULL;
}

const char *kernel_unknown(void)
{
    pthread_once(&once, find_kernels);
    return found.unknown;
}

/* ---- panels: 4 x 4 blocks transposed in registers ---- */

typedef float Vec4 __attribute__((vector_size(16)));

static Vec4 load4(const float *p)
{
    Vec4 x;

    memcpy(&x, p, sizeof(x));
    return x;
}

static void store4(float *p, Vec4 x)
{
    memcpy(p, &x, sizeof(x));
}

/* Columns 0..3 of the panel rows t..t+3 become rows a, b, c, e at t..t+3. */
static void turn_block(Vec4 a, Vec4 b, Vec4 c, Vec4 e, float *panel)
{
    Vec4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    Vec4 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    Vec4 ce_low = __builtin_shufflevector(c, e, 0, 4, 1, 5);
    Vec4 ce_high = __builtin_shufflevector(c, e, 2, 6, 3, 7);

    store4(panel, __builtin_shufflevector(ab_low, ce_low, 0, 1, 4, 5));
    store4(panel + TILE_KEYS, __builtin_shufflevector(ab_low, ce_low, 2, 3, 6, 7));
    store4(panel + 2 * TILE_KEYS, __builtin_shufflevector(ab_high, ce_high, 0, 1, 4, 5));
    store4(panel + 3 * TILE_KEYS, __builtin_shufflevector(ab_high, ce_high, 2, 3, 6, 7));
}

/* Four rows (NULL: zeros) as columns 0..3 of the panel, from t on. */
static void pack_four(const float *const row[4], int64_t t, int64_t d, float *panel)
{
    if (!row[0] && !row[1] && !row[2] && !row[3])
        for (; t < d; t++)
            store4(panel + t * TILE_KEYS, (Vec4){ 0 });
    else if (row[0] && row[1] && row[2] && row[3])
        for (; t + 4 <= d; t += 4)
            turn_block(load4(row[0] + t), load4(row[1] + t), load4(row[2] + t),
                       load4(row[3] + t), panel + t * TILE_KEYS);
    for (; t < d; t++)
        for (int x = 0; x < 4; x++)
            panel[t * TILE_KEYS + x] = row[x] ? row[x][t] : 0.0f;
}

static void pack(const float *const row[TILE_KEYS], int64_t count, int64_t d, float *panel)
{
    const Kernel *kernel = kernel_at(0);

    for (int64_t j = 0; j < TILE_KEYS; j += TURN_ROWS) {
        int64_t t = kernel->turn && j + TURN_ROWS <= count ? kernel->turn(row + j, d, panel + j)
                                                           : 0;

        for (int64_t x = j; x < j + TURN_ROWS; x += 4)
            pack_four(row + x, t, d, panel + x);
    }
}

void pack_panel(const float *k, int64_t ld, int64_t count, int64_t d, float *panel)
{
    const float *row[TILE_KEYS];

    for (int64_t j = 0; j < TILE_KEYS; j++)
        row[j] = j < count ? k + j * ld : NULL;
    pack(row, count, d, panel);
}

void pack_rows(const float *k, int64_t ld, const int32_t *index, int64_t count, int64_t d,
               float *panel)
{
    const float *row[TILE_KEYS];

    for (int64_t j = 0; j < TILE_KEYS; j++)
        row[j] = j < count ? k + index[j] * ld : NULL;
    pack(row, count, d, panel);
}
