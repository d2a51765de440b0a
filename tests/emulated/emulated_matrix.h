// emulated_matrix.h -- matrix.cuh on the host, by the layouts that PTX documents.
#ifndef TESTS_EMULATED_MATRIX_H
#define TESTS_EMULATED_MATRIX_H

#include "emulated.h"

// Copies happen when they are waited for, and not before.
void emulated_copy(void *to, const void *from);
void emulated_copies_end(void);
void emulated_copies_wait(int left);

static inline uint32_t emulated_bf16(float x)
{
    uint32_t u = __float_as_uint(x);

    return x != x ? 0x7fffu : (u + 0x7fffu + (u >> 16 & 1)) >> 16;
}

// Half the spacing of f16 at |x| is added and taken away again in double, which is exact.
static inline uint32_t emulated_f16(float x)
{
    uint32_t sign = __float_as_uint(x) >> 16 & 0x8000;
    int      exponent = 0;
    double   size = fabs((double)x), step, whole;

    if (x != x)
        return 0x7fff;
    frexp(size, &exponent);
    step = ldexp(1.0, (exponent < -13 ? -13 : exponent) - 11);
    whole = nearbyint(size / step);
    if (whole * step >= 65520.0)
        return sign | 0x7c00;
    if (whole * step < ldexp(1.0, -14))
        return sign | (uint32_t)whole;
    frexp(whole * step, &exponent);
    return sign | ((uint32_t)(exponent + 14) << 10) |
           ((uint32_t)ldexp(whole * step, 11 - exponent) & 0x3ff);
}

static inline float emulated_from_bf16(uint32_t x) { return __uint_as_float(x << 16); }

static inline float emulated_from_f16(uint32_t x)
{
    uint32_t exponent = x >> 10 & 31, bits = exponent + 127 - 15;
    float    size = exponent == 31  ? (x & 0x3ff ? NAN : INFINITY)
                    : exponent == 0 ? (float)(x & 0x3ff) * 0x1p-24f
                                    : __uint_as_float(bits << 23 | (x & 0x3ff) << 13);

    return x & 0x8000 ? -size : size;
}

static inline uint32_t bf16_pair(float low, float high)
{
    return emulated_bf16(low) | emulated_bf16(high) << 16;
}

static inline uint32_t f16_pair(float low, float high)
{
    return emulated_f16(low) | emulated_f16(high) << 16;
}

// To nearest, ties away from zero.
static inline uint32_t tf32_bits(float x)
{
    return x != x || isinf(x) ? __float_as_uint(x) : (__float_as_uint(x) + 0x1000u) & ~0x1fffu;
}

static inline float exp2_fast(float x) { return exp2f(x); }

struct EmulatedFragments {
    uint32_t a[4], b[2];
};

// value(word, half) is the number in a 32-bit word; `pairs`: there are two of them.
template <typename Value>
static inline void emulated_product(float c[4], const uint32_t a[4], const uint32_t b[2],
                                    bool pairs, Value value)
{
    EmulatedFragments own = { { a[0], a[1], a[2], a[3] }, { b[0], b[1] } };
    int lane = emulation.lane->number & 31, g = lane / 4, t = lane % 4, each = pairs ? 2 : 1;
    const EmulatedFragments *row[4], *column[2][4];

    emulated_leave(&own, sizeof(own));
    for (int from = 0; from < 4; from++) {
        row[from] = (const EmulatedFragments *)emulated_word(4 * g + from);
        for (int x = 0; x < 2; x++)
            column[x][from] = (const EmulatedFragments *)emulated_word(4 * (2 * t + x) + from);
    }
    for (int k = 0; k < 8 * each; k++) {
        int from = k / each % 4, high = k / each / 4, half = k % each;

        for (int x = 0; x < 2; x++) {
            float y = value(column[x][from]->b[high], half);

            c[x] += value(row[from]->a[2 * high], half) * y;
            c[2 + x] += value(row[from]->a[2 * high + 1], half) * y;
        }
    }
}

static inline void product_bf16(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    emulated_product(c, a, b, true, [](uint32_t word, int half) {
        return emulated_from_bf16(word >> 16 * half & 0xffff);
    });
}

static inline void product_f16(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    emulated_product(c, a, b, true, [](uint32_t word, int half) {
        return emulated_from_f16(word >> 16 * half & 0xffff);
    });
}

// The hardware does not look at the lowest 13 bits.
static inline void product_tf32(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    emulated_product(c, a, b, false,
                     [](uint32_t word, int) { return __uint_as_float(word & ~0x1fffu); });
}

static inline const unsigned char *emulated_row(int lane)
{
    const unsigned char *row;

    memcpy(&row, emulated_word(lane), sizeof(row));
    return row;
}

static inline void load_matrices(uint32_t out[4], const void *row)
{
    int lane = emulation.lane->number & 31;

    emulated_leave(&row, sizeof(row));
    for (int x = 0; x < 4; x++)
        memcpy(&out[x], emulated_row(8 * x + lane / 4) + lane % 4 * 4, 4);
    emulated_gather();
}

static inline void load_turned(uint32_t out[4], const void *row)
{
    int lane = emulation.lane->number & 31, g = lane / 4, t = lane % 4;

    emulated_leave(&row, sizeof(row));
    for (int x = 0; x < 4; x++) {
        uint16_t low, high;

        memcpy(&low, emulated_row(8 * x + 2 * t) + 2 * g, 2);
        memcpy(&high, emulated_row(8 * x + 2 * t + 1) + 2 * g, 2);
        out[x] = low | (uint32_t)high << 16;
    }
    emulated_gather();
}

static inline void copy_ahead(void *to, const void *from) { emulated_copy(to, from); }
static inline void copies_end(void) { emulated_copies_end(); }
template <int left>
static inline void copies_wait(void) { emulated_copies_wait(left); }

#endif
