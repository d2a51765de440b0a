/* npy.c -- NumPy's array file, versions 1 to 3.
 *
 *     "\x93NUMPY" major minor, header length (u16 in version 1, else u32; little-endian),
 *     the header: a Python dict {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), },
 *     then the elements, to the end of the file.
 *
 * The keys may come in any order and each must come once.  Arrays of objects
 * (pickle) and structured types parse, so that an archive holding one can be
 * listed, but their kind stays ELEMENT_UNKNOWN and no reader takes them.
 *
 * Source: the format description in the NumPy reference (numpy.lib.format).
 */
#include "input/store.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Cursor {
    const char *start, *at, *end; /* of the whole file, so that offsets can be told */
} Cursor;

static bool expected(const Cursor *c, const char *what, Error *err)
{
    char found[16] = "the end";

    if (c->at < c->end)
        snprintf(found, sizeof(found), isprint((unsigned char)*c->at) ? "'%c'" : "byte 0x%02x",
                 (unsigned char)*c->at);
    return error_set(err, ERR_FORMAT, "npy header, byte %lld: expected %s, found %s",
                     (long long)(c->at - c->start), what, found);
}

static void skip_space(Cursor *c)
{
    while (c->at < c->end && isspace((unsigned char)*c->at))
        c->at++;
}

static bool take(Cursor *c, char wanted)
{
    skip_space(c);
    if (c->at >= c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

/* 'text' or "text" without escapes. */
static bool parse_string(Cursor *c, char *out, size_t size, Error *err)
{
    const char *begin;
    size_t      length;
    char        quote;

    skip_space(c);
    if (c->at >= c->end || (*c->at != '\'' && *c->at != '"'))
        return expected(c, "a quoted string", err);
    quote = *c->at++;
    begin = c->at;
    while (c->at < c->end && *c->at != quote)
        c->at++;
    length = (size_t)(c->at - begin);
    if (c->at >= c->end || length >= size)
        return expected(c, "a short string and its closing quote", err);
    memcpy(out, begin, length);
    out[length] = '\0';
    c->at++;
    return true;
}

/* The value of 'descr' of a structured type: kept as text, not understood. */
static bool parse_structured(Cursor *c, char *out, size_t size, Error *err)
{
    int    depth = 0;
    size_t length = 0;

    for (; c->at < c->end; c->at++) {
        if (length + 1 < size)
            out[length++] = *c->at;
        depth += *c->at == '[' || *c->at == '(';
        depth -= *c->at == ']' || *c->at == ')';
        if (depth == 0) {
            c->at++;
            out[length] = '\0';
            return true;
        }
    }
    return expected(c, "the end of the list of fields", err);
}

static bool parse_extent(Cursor *c, int64_t *out, Error *err)
{
    const char *begin;
    int64_t     value = 0;

    skip_space(c);
    begin = c->at;
    for (; c->at < c->end && isdigit((unsigned char)*c->at); c->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *c->at - '0', &value))
            return expected(c, "an extent below 2^63", err);
    if (c->at == begin)
        return expected(c, "an extent", err);
    if (c->at < c->end && *c->at == 'L') /* a Python 2 long */
        c->at++;
    *out = value;
    return true;
}

static bool parse_shape(Cursor *c, StoreEntry *entry, Error *err)
{
    int64_t extent = 0;

    if (!take(c, '('))
        return expected(c, "'(' of the shape", err);
    while (!take(c, ')')) {
        if (!parse_extent(c, &extent, err))
            return false;
        if (entry->info.rank == STORE_MAX_RANK)
            return expected(c, "at most 8 extents", err);
        entry->info.shape[entry->info.rank++] = extent;
        skip_space(c);
        if (!take(c, ',') && (c->at >= c->end || *c->at != ')'))
            return expected(c, "',' or ')'", err);
    }
    return true;
}

static bool parse_bool(Cursor *c, bool *out, Error *err)
{
    size_t left;

    skip_space(c);
    left = (size_t)(c->end - c->at);
    if (left >= 4 && memcmp(c->at, "True", 4) == 0) {
        *out = true;
        c->at += 4;
        return true;
    }
    if (left >= 5 && memcmp(c->at, "False", 5) == 0) {
        *out = false;
        c->at += 5;
        return true;
    }
    return expected(c, "True or False", err);
}

static ElementKind number_kind(char letter, long size)
{
    bool power = size == 1 || size == 2 || size == 4 || size == 8;

    if (letter == 'b' && size == 1)
        return ELEMENT_BOOL;
    if (letter == 'i' && power)
        return ELEMENT_INT;
    if (letter == 'u' && power)
        return ELEMENT_UINT;
    if (letter == 'f' && power && size > 1)
        return ELEMENT_FLOAT;
    return ELEMENT_UNKNOWN;
}

/* "<f4": byte order, kind, size.  What is not understood stays unknown. */
static ElementType parse_descr(const char *descr)
{
    ElementType type = { .kind = ELEMENT_UNKNOWN };
    char       *end;
    long        size;

    if (!*descr || !strchr("<>|=", *descr) || !descr[1] || !isdigit((unsigned char)descr[2]))
        return type;
    size = strtol(descr + 2, &end, 10);
    if (*end || size < 0 || size > 1 << 24)
        return type;
    type.swapped = *descr == '>';
    type.size = size;
    if (descr[1] == 'S')
        type.kind = ELEMENT_BYTES;
    else if (descr[1] == 'U')
        type.kind = ELEMENT_UCS4, type.size = 4 * size;
    else
        type.kind = number_kind(descr[1], size);
    return type;
}

static bool parse_descr_value(Cursor *c, StoreEntry *entry, Error *err)
{
    char text[sizeof(entry->info.dtype)];

    skip_space(c);
    if (c->at < c->end && (*c->at == '[' || *c->at == '(')) {
        if (!parse_structured(c, text, sizeof(text), err))
            return false;
    } else if (!parse_string(c, text, sizeof(text), err)) {
        return false;
    }
    for (char *s = text; *s; s++)
        if (!isprint((unsigned char)*s))
            *s = '?';
    memcpy(entry->info.dtype, text, sizeof(text));
    entry->type = parse_descr(text);
    return true;
}

static bool parse_dict(Cursor *c, StoreEntry *entry, Error *err)
{
    static const char *const keys[] = { "descr", "fortran_order", "shape" };
    bool seen[3] = { false };
    char key[32];
    int  k;

    if (!take(c, '{'))
        return expected(c, "'{'", err);
    while (!take(c, '}')) {
        if (!parse_string(c, key, sizeof(key), err))
            return false;
        for (k = 0; k < 3 && strcmp(keys[k], key) != 0;)
            k++;
        if (k == 3 || seen[k])
            return expected(c, "one each of 'descr', 'fortran_order' and 'shape' before this", err);
        seen[k] = true;
        if (!take(c, ':'))
            return expected(c, "':'", err);
        if (!(k == 0   ? parse_descr_value(c, entry, err)
              : k == 1 ? parse_bool(c, &entry->fortran, err)
                       : parse_shape(c, entry, err)))
            return false;
        if (!take(c, ',') && (c->at >= c->end || *c->at != '}'))
            return expected(c, "',' or '}'", err);
    }
    if (!seen[0] || !seen[1] || !seen[2])
        return expected(c, "'descr', 'fortran_order' and 'shape' before this", err);
    skip_space(c);
    return c->at == c->end || expected(c, "nothing after the dict", err);
}

bool npy_parse_header(const uint8_t *bytes, int64_t size, StoreEntry *entry, int64_t *offset,
                      Error *err)
{
    const char *text = (const char *)bytes;
    int64_t     begin, length;
    Cursor      c;

    if (size < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return error_set(err, ERR_FORMAT, "byte 0: expected the 10 bytes that begin an npy array");
    if (bytes[6] < 1 || bytes[6] > 3)
        return error_set(err, ERR_FORMAT, "byte 6: npy version %d.%d, expected 1 to 3", bytes[6],
                         bytes[7]);
    begin = bytes[6] == 1 ? 10 : 12;
    if (size < begin)
        return error_set(err, ERR_FORMAT, "byte %lld: the npy header is cut off", (long long)size);
    length = bytes[8] | bytes[9] << 8;
    if (bytes[6] > 1)
        length |= (int64_t)bytes[10] << 16 | (int64_t)bytes[11] << 24;
    if (length > NPY_HEADER_MAX)
        return error_set(err, ERR_FORMAT, "byte 8: npy header of %lld bytes, at most %d are read",
                         (long long)length, NPY_HEADER_MAX);
    if (begin + length > size)
        return error_set(err, ERR_FORMAT, "byte 8: npy header of %lld bytes, but only %lld follow",
                         (long long)length, (long long)(size - begin));
    c = (Cursor){ .start = text, .at = text + begin, .end = text + begin + length };
    *offset = begin + length;
    return parse_dict(&c, entry, err) && store_entry_size(entry, err);
}

bool store_open_npy(Store *store, Mapped bytes, const char *stem, Error *err)
{
    int64_t     offset;
    StoreEntry *entry = store_add(store, stem, strlen(stem), err);
    char        shape[200];

    store->kind = "npy";
    if (!entry || !npy_parse_header(bytes.data, bytes.size, entry, &offset, err))
        return false;
    entry->data = bytes.data + offset;
    if (entry->type.kind == ELEMENT_UNKNOWN || entry->info.bytes == bytes.size - offset)
        return true;
    return error_set(err, ERR_FORMAT,
                     "byte %lld: shape %s of dtype %s needs %lld bytes, but %lld are there",
                     (long long)offset, store_shape_text(entry, shape, sizeof(shape)),
                     entry->info.dtype, (long long)entry->info.bytes,
                     (long long)(bytes.size - offset));
}
