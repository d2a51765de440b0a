/* element.c -- see element.h. */
#include "input/element.h"

#include <math.h>
#include <string.h>

bool element_is_number(ElementType type)
{
    return type.kind >= ELEMENT_BOOL && type.kind <= ELEMENT_E5M2;
}

bool element_is_text(ElementType type)
{
    return type.kind == ELEMENT_BYTES || type.kind == ELEMENT_UCS4;
}

DType element_dtype(ElementType type)
{
    switch (type.kind) {
    case ELEMENT_BOOL: return DT_U8;
    case ELEMENT_INT: return type.size <= 4 ? DT_I32 : DT_I64;
    case ELEMENT_UINT: return type.size == 1 ? DT_U8 : type.size == 2 ? DT_I32 : DT_I64;
    case ELEMENT_FLOAT: return type.size == 8 ? DT_F64 : DT_F32;
    default: return DT_F32;
    }
}

static uint64_t load_bits(ElementType type, const uint8_t *src)
{
    uint16_t half;
    uint32_t word;
    uint64_t wide;

    switch (type.size) {
    case 1:
        return *src;
    case 2:
        memcpy(&half, src, 2);
        return type.swapped ? __builtin_bswap16(half) : half;
    case 4:
        memcpy(&word, src, 4);
        return type.swapped ? __builtin_bswap32(word) : word;
    default:
        memcpy(&wide, src, 8);
        return type.swapped ? __builtin_bswap64(wide) : wide;
    }
}

static float float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, 4);
    return value;
}

static double double_of_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, 8);
    return value;
}

/* binary16: 1 sign, 5 exponent (bias 15), 10 fraction. */
static float half_to_float(uint32_t bits)
{
    uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
    float    magnitude;

    if (exponent == 31)
        return float_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent)
        return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    magnitude = (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

/* OCP E4M3: 1 sign, 4 exponent (bias 7), 3 fraction; all ones is NaN. */
static float e4m3_to_float(uint32_t bits)
{
    int   exponent = (int)(bits >> 3 & 15), fraction = (int)(bits & 7);
    float magnitude;

    if (exponent == 15 && fraction == 7)
        return NAN;
    magnitude = exponent ? ldexpf((float)(8 + fraction), exponent - 10)
                         : ldexpf((float)fraction, -9);
    return bits & 0x80 ? -magnitude : magnitude;
}

static int64_t signed_bits(ElementType type, uint64_t bits)
{
    int shift = 64 - 8 * (int)type.size;

    return (int64_t)(bits << shift) >> shift;
}

int64_t element_to_i64(ElementType type, const uint8_t *src)
{
    uint64_t bits = load_bits(type, src);

    if (type.kind == ELEMENT_BOOL)
        return bits != 0;
    return type.kind == ELEMENT_INT ? signed_bits(type, bits) : (int64_t)bits;
}

static inline double to_real(ElementType type, const uint8_t *src)
{
    uint64_t bits = load_bits(type, src);

    switch (type.kind) {
    case ELEMENT_BOOL: return bits != 0;
    case ELEMENT_INT: return (double)signed_bits(type, bits);
    case ELEMENT_UINT: return (double)bits;
    case ELEMENT_BFLOAT: return (double)float_of_bits((uint32_t)bits << 16);
    case ELEMENT_E4M3: return (double)e4m3_to_float((uint32_t)bits);
    case ELEMENT_E5M2: return (double)half_to_float((uint32_t)bits << 8);
    case ELEMENT_FLOAT:
        if (type.size == 2)
            return (double)half_to_float((uint32_t)bits);
        return type.size == 4 ? (double)float_of_bits((uint32_t)bits) : double_of_bits(bits);
    default: return (double)NAN;
    }
}

static bool is_native(ElementType type, int64_t step, int64_t size)
{
    return type.kind == ELEMENT_FLOAT && type.size == size && step == size && !type.swapped;
}

void element_to_f32(ElementType type, const uint8_t *src, int64_t step, int64_t count, float *out)
{
    if (count > 0 && is_native(type, step, 4)) {
        memcpy(out, src, (size_t)count * 4);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)to_real(type, src + i * step);
}

void element_to_f64(ElementType type, const uint8_t *src, int64_t step, int64_t count, double *out)
{
    if (count > 0 && is_native(type, step, 8)) {
        memcpy(out, src, (size_t)count * 8);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        out[i] = to_real(type, src + i * step);
}
