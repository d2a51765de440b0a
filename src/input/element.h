/* input/element.h -- the number formats found in files, and their conversion.
 *
 * An ElementType says how one element lies in a file: its kind, its size in
 * bytes, and whether its bytes stand in the other order than this machine's.
 * Conversions read unaligned bytes at a constant step and never fail; what may
 * not be converted (text, Python objects) is refused before, by kind.
 *
 * 16-bit and 8-bit floats are decoded by hand: IEEE 754 binary16, bfloat16
 * (the upper half of binary32), and the two OCP 8-bit formats E4M3 (no
 * infinities, bias 7) and E5M2 (the upper half of binary16).
 */
#ifndef INPUT_ELEMENT_H
#define INPUT_ELEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tensor.h"

typedef enum ElementKind {
    ELEMENT_UNKNOWN, /* listed, but cannot be read */
    ELEMENT_BOOL,
    ELEMENT_INT,     /* signed, 1 to 8 bytes */
    ELEMENT_UINT,
    ELEMENT_FLOAT,   /* 2, 4 or 8 bytes */
    ELEMENT_BFLOAT,  /* 2 bytes */
    ELEMENT_E4M3,    /* 1 byte */
    ELEMENT_E5M2,    /* 1 byte */
    ELEMENT_BYTES,   /* text: `size` bytes, zero padded */
    ELEMENT_UCS4     /* text: size / 4 code points, zero padded */
} ElementKind;

typedef struct ElementType {
    ElementKind kind;
    int64_t     size;    /* bytes of one element */
    bool        swapped; /* the other byte order */
} ElementType;

bool element_is_number(ElementType type);
bool element_is_text(ElementType type);

/* Our dtype that holds every value of a number type (f32 for the short floats,
 * u8 for bool and u8, i32 for other integers that fit it, i64 for the rest). */
DType element_dtype(ElementType type);

/* `count` elements, `step` bytes apart, to contiguous out. */
void element_to_f32(ElementType type, const uint8_t *src, int64_t step, int64_t count, float *out);
void element_to_f64(ElementType type, const uint8_t *src, int64_t step, int64_t count, double *out);
int64_t element_to_i64(ElementType type, const uint8_t *src); /* integers and bool only */

#endif
