/* weight.c -- block types to float32, see weight.h.
 *
 * A block function reads one block; a row is one loop over it, compiled twice: for any processor
 * and for AVX2, which is chosen at run time.  Loops inside a block have constant lengths, so the
 * compiler makes vectors of them.
 */
#include "model/file/weight.h"
#include "attn/cpu/simd/kernel.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

static const struct {
    const char *name;
    int         values, bytes;
} types[WEIGHT_TYPES] = {
    [WEIGHT_NONE] = { "none", 1, 0 },      [WEIGHT_F32] = { "F32", 1, 4 },
    [WEIGHT_F16] = { "F16", 1, 2 },        [WEIGHT_BF16] = { "BF16", 1, 2 },
    [WEIGHT_F64] = { "F64", 1, 8 },        [WEIGHT_Q4_0] = { "Q4_0", 32, 18 },
    [WEIGHT_Q4_1] = { "Q4_1", 32, 20 },    [WEIGHT_Q5_0] = { "Q5_0", 32, 22 },
    [WEIGHT_Q5_1] = { "Q5_1", 32, 24 },    [WEIGHT_Q8_0] = { "Q8_0", 32, 34 },
    [WEIGHT_Q2_K] = { "Q2_K", 256, 84 },   [WEIGHT_Q3_K] = { "Q3_K", 256, 110 },
    [WEIGHT_Q4_K] = { "Q4_K", 256, 144 },  [WEIGHT_Q5_K] = { "Q5_K", 256, 176 },
    [WEIGHT_Q6_K] = { "Q6_K", 256, 210 },
};

const char *weight_type_name(WeightType type)
{
    return types[type].name;
}

int64_t weight_block_values(WeightType type)
{
    return types[type].values;
}

int64_t weight_block_bytes(WeightType type)
{
    return types[type].bytes;
}

/* ---- scalars --------------------------------------------------------------- */

INLINE float float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, 4);
    return value;
}

/* IEEE 754 binary16.  Both magnitudes are computed and chosen by a mask: a branch would keep the
 * compiler from making vectors. */
INLINE float half_to_float(uint32_t bits)
{
    uint32_t rest = bits & 0x7fffu, infinite = -(uint32_t)(rest >= 0x7c00u);
    uint32_t small = -(uint32_t)(rest < 0x400u), subnormal;
    uint32_t normal = (rest << 13) + 0x38000000u + (infinite & 0x38000000u);
    float    magnitude = (float)(int32_t)rest * 0x1p-24f;

    memcpy(&subnormal, &magnitude, 4);
    return float_of_bits((bits & 0x8000u) << 16 | (small & subnormal) | (~small & normal));
}

INLINE uint32_t load16(const uint8_t *at)
{
    uint16_t bits;

    memcpy(&bits, at, 2);
    return bits;
}

INLINE uint32_t load32(const uint8_t *at)
{
    uint32_t bits;

    memcpy(&bits, at, 4);
    return bits;
}

INLINE float load_half(const uint8_t *at)
{
    return half_to_float(load16(at));
}

/* ---- plain types: pieces of 16 values, which the compiler makes vectors of - */

INLINE void some_f16(const uint8_t *restrict in, float *restrict out, const int count)
{
    for (int i = 0; i < count; i++)
        out[i] = load_half(in + 2 * i);
}

INLINE void some_bf16(const uint8_t *restrict in, float *restrict out, const int count)
{
    for (int i = 0; i < count; i++)
        out[i] = float_of_bits(load16(in + 2 * i) << 16);
}

INLINE void some_f64(const uint8_t *restrict in, float *restrict out, const int count)
{
    for (int i = 0; i < count; i++) {
        double value;

        memcpy(&value, in + 8 * i, 8);
        out[i] = (float)value;
    }
}

/* ---- blocks of 32 ---------------------------------------------------------- */

INLINE void block_q4_0(const uint8_t *restrict b, float *restrict x)
{
    float d = load_half(b);

    for (int j = 0; j < 16; j++) {
        x[j] = d * (float)((b[2 + j] & 15) - 8);
        x[j + 16] = d * (float)((b[2 + j] >> 4) - 8);
    }
}

INLINE void block_q4_1(const uint8_t *restrict b, float *restrict x)
{
    float d = load_half(b), m = load_half(b + 2);

    for (int j = 0; j < 16; j++) {
        x[j] = d * (float)(b[4 + j] & 15) + m;
        x[j + 16] = d * (float)(b[4 + j] >> 4) + m;
    }
}

INLINE void block_q5_0(const uint8_t *restrict b, float *restrict x)
{
    float    d = load_half(b);
    uint32_t high = load32(b + 2);

    for (int j = 0; j < 16; j++) {
        int low = (b[6 + j] & 15) | (int)(high >> j & 1) << 4;
        int top = b[6 + j] >> 4 | (int)(high >> (j + 16) & 1) << 4;

        x[j] = d * (float)(low - 16);
        x[j + 16] = d * (float)(top - 16);
    }
}

INLINE void block_q5_1(const uint8_t *restrict b, float *restrict x)
{
    float    d = load_half(b), m = load_half(b + 2);
    uint32_t high = load32(b + 4);

    for (int j = 0; j < 16; j++) {
        int low = (b[8 + j] & 15) | (int)(high >> j & 1) << 4;
        int top = b[8 + j] >> 4 | (int)(high >> (j + 16) & 1) << 4;

        x[j] = d * (float)low + m;
        x[j + 16] = d * (float)top + m;
    }
}

INLINE void block_q8_0(const uint8_t *restrict b, float *restrict x)
{
    float d = load_half(b);

    for (int j = 0; j < 32; j++)
        x[j] = d * (float)(int8_t)b[2 + j];
}

/* ---- blocks of 256: scales for each 16 or 32 values ------------------------ */

INLINE void block_q2_k(const uint8_t *restrict b, float *restrict x)
{
    const uint8_t *scales = b, *qs = b + 16;
    float          d = load_half(b + 80), dmin = load_half(b + 82);

    for (int g = 0; g < 16; g++) {
        const uint8_t *q = qs + 32 * (g / 8) + 16 * (g % 2);
        int            shift = 2 * (g / 2 % 4);
        float          scale = d * (float)(scales[g] & 15), least = dmin * (float)(scales[g] >> 4);

        for (int j = 0; j < 16; j++)
            x[16 * g + j] = scale * (float)(q[j] >> shift & 3) - least;
    }
}

INLINE void block_q3_k(const uint8_t *restrict b, float *restrict x)
{
    const uint8_t *mask = b, *qs = b + 32, *s = b + 96;
    float          d = load_half(b + 108);

    for (int g = 0; g < 16; g++) {
        const uint8_t *q = qs + 32 * (g / 8) + 16 * (g % 2), *m = mask + 16 * (g % 2);
        int            shift = 2 * (g / 2 % 4), bit = g / 2;
        int   number = (s[g % 8] >> 4 * (g / 8) & 15) + 16 * (s[8 + g % 4] >> 2 * (g / 4) & 3);
        float scale = d * (float)(number - 32);

        for (int j = 0; j < 16; j++)
            x[16 * g + j] = scale * (float)((q[j] >> shift & 3) + 4 * (m[j] >> bit & 1) - 4);
    }
}

/* Scale and minimum of group g of Q4_K and Q5_K: six bits each. */
INLINE void scale_minimum(const uint8_t *s, int g, int *scale, int *least)
{
    if (g < 4) {
        *scale = s[g] & 63;
        *least = s[g + 4] & 63;
    } else {
        *scale = (s[g + 4] & 15) + 16 * (s[g - 4] >> 6);
        *least = (s[g + 4] >> 4) + 16 * (s[g] >> 6);
    }
}

/* Q4_K, and with a plane of fifth bits Q5_K; high NULL: none. */
INLINE void block_q45_k(const uint8_t *restrict b, const uint8_t *restrict nibbles,
                        const uint8_t *restrict high, float *restrict x)
{
    float d = load_half(b), dmin = load_half(b + 2);

    for (int g = 0; g < 8; g++) {
        const uint8_t *q = nibbles + 32 * (g / 2);
        int            shift = 4 * (g % 2), sc, mn;
        float          scale, least;

        scale_minimum(b + 4, g, &sc, &mn);
        scale = d * (float)sc;
        least = dmin * (float)mn;
        for (int j = 0; j < 32; j++) {
            int fifth = high ? high[j] >> g & 1 : 0;

            x[32 * g + j] = scale * (float)((q[j] >> shift & 15) + 16 * fifth) - least;
        }
    }
}

INLINE void block_q4_k(const uint8_t *restrict b, float *restrict x)
{
    block_q45_k(b, b + 16, NULL, x);
}

INLINE void block_q5_k(const uint8_t *restrict b, float *restrict x)
{
    block_q45_k(b, b + 48, b + 16, x);
}

INLINE void block_q6_k(const uint8_t *restrict b, float *restrict x)
{
    float d = load_half(b + 208);

    for (int g = 0; g < 16; g++) {
        const uint8_t *low = b + 64 * (g / 8) + 16 * (g % 4);
        const uint8_t *high = b + 128 + 32 * (g / 8) + 16 * (g % 2);
        int            shift = 4 * (g / 4 % 2), shift_high = 2 * (g / 2 % 4);
        float          scale = d * (float)(int8_t)b[192 + g];

        for (int j = 0; j < 16; j++)
            x[16 * g + j] = scale * (float)((low[j] >> shift & 15) +
                                            16 * (high[j] >> shift_high & 3) - 32);
    }
}

/* ---- rows ------------------------------------------------------------------ */

#define BLOCKS(block, values, bytes)                                                               \
    for (int64_t i = 0; i < count / (values); i++)                                                 \
        block(in + i * (bytes), out + i * (values));                                               \
    break

#define PIECES(some, bytes)                                                                        \
    for (; count >= 16; count -= 16, in += 16 * (bytes), out += 16)                                \
        some(in, out, 16);                                                                         \
    some(in, out, (int)count);                                                                     \
    break

INLINE void row_body(WeightType type, const uint8_t *restrict in, float *restrict out,
                     int64_t count)
{
    switch (type) {
    case WEIGHT_F32: memcpy(out, in, (size_t)count * 4); break;
    case WEIGHT_F16: PIECES(some_f16, 2);
    case WEIGHT_BF16: PIECES(some_bf16, 2);
    case WEIGHT_F64: PIECES(some_f64, 8);
    case WEIGHT_Q4_0: BLOCKS(block_q4_0, 32, 18);
    case WEIGHT_Q4_1: BLOCKS(block_q4_1, 32, 20);
    case WEIGHT_Q5_0: BLOCKS(block_q5_0, 32, 22);
    case WEIGHT_Q5_1: BLOCKS(block_q5_1, 32, 24);
    case WEIGHT_Q8_0: BLOCKS(block_q8_0, 32, 34);
    case WEIGHT_Q2_K: BLOCKS(block_q2_k, 256, 84);
    case WEIGHT_Q3_K: BLOCKS(block_q3_k, 256, 110);
    case WEIGHT_Q4_K: BLOCKS(block_q4_k, 256, 144);
    case WEIGHT_Q5_K: BLOCKS(block_q5_k, 256, 176);
    case WEIGHT_Q6_K: BLOCKS(block_q6_k, 256, 210);
    case WEIGHT_NONE:
    case WEIGHT_TYPES: break;
    }
}

static void row_any(WeightType type, const uint8_t *restrict in, float *restrict out,
                    int64_t count)
{
    row_body(type, in, out, count);
}

#if defined(__x86_64__)
__attribute__((target("avx2,f16c"))) static void row_avx2(WeightType type,
                                                          const uint8_t *restrict in,
                                                          float *restrict out, int64_t count)
{
    row_body(type, in, out, count);
}
#endif

WeightReader *weight_reader_at(int index)
{
    WeightReader *found[2] = { NULL };
    int           count = 0;

#if defined(__x86_64__)
    if (strcmp(kernel_at(0)->name, "generic") != 0 && __builtin_cpu_supports("avx2"))
        found[count++] = row_avx2;
#endif
    found[count++] = row_any;
    return index >= 0 && index < count ? found[index] : NULL;
}

/* ---- matrices -------------------------------------------------------------- */

#define TILE 64

/* The file's [cols, stride], `rows` of its columns from `first` on, to rows of W. */
static void read_transposed(const Weight *w, int64_t first, int64_t rows, float *out)
{
    WeightReader *read = weight_reader_at(0);
    int64_t       bytes = types[w->type].bytes, stride = w->stride ? w->stride : w->rows;
    float         tile[16][TILE];

    for (int64_t c = 0; c < w->cols; c += 16)
        for (int64_t r = 0; r < rows; r += TILE) {
            int64_t deep = w->cols - c < 16 ? w->cols - c : 16;
            int64_t wide = rows - r < TILE ? rows - r : TILE;

            for (int64_t i = 0; i < deep; i++)
                read(w->type, w->data + ((c + i) * stride + first + r) * bytes, tile[i], wide);
            for (int64_t j = 0; j < wide; j++)
                for (int64_t i = 0; i < deep; i++)
                    out[(r + j) * w->cols + c + i] = tile[i][j];
        }
}

/* The file's row that is row r of W: row 2t + s of a head in the file is its row s d/2 + t. */
static int64_t row_in_file(const Weight *w, int64_t r)
{
    int64_t d, half, in_head;

    if (!w->unpermute)
        return r;
    d = w->rows / w->unpermute;
    half = d / 2;
    in_head = r % d;
    return r - in_head + 2 * (in_head % half) + in_head / half;
}

void weight_read(const Weight *w, int64_t first, int64_t rows, float *out)
{
    WeightReader *read = weight_reader_at(0);
    int64_t       bytes = w->cols / types[w->type].values * types[w->type].bytes;

    if (w->type == WEIGHT_NONE)
        return;
    if (w->transposed) {
        read_transposed(w, first, rows, out);
        return;
    }
    if (!w->unpermute) { /* rows of whole blocks lie one behind the other */
        read(w->type, w->data + first * bytes, out, rows * w->cols);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        read(w->type, w->data + row_in_file(w, first + r) * bytes, out + r * w->cols, w->cols);
}
