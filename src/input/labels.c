/* labels.c -- see labels.h. */
#include "input/labels.h"

#include <ctype.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT 0xfffdu

int labels_utf8(const uint8_t *text, int64_t size)
{
    uint32_t least, code;
    int      more;

    if (size <= 0)
        return 0;
    if (text[0] < 0x80)
        return 1;
    if (text[0] < 0xc2 || text[0] > 0xf4)
        return 0;
    more = text[0] < 0xe0 ? 1 : text[0] < 0xf0 ? 2 : 3;
    least = more == 1 ? 0x80 : more == 2 ? 0x800 : 0x10000;
    if (size <= more)
        return 0;
    code = text[0] & (0x3fu >> more);
    for (int i = 1; i <= more; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    return more + 1;
}

/* At most 4 bytes; returns how many. */
static int encode(uint32_t code, char out[4])
{
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        code = REPLACEMENT;
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* What is shown for a code point. */
static uint32_t shown(uint32_t code)
{
    if (code < 0x20)
        return 0x2400 + code;
    if (code == 0x7f)
        return 0x2421;
    return code > 0x7f && code < 0xa0 ? REPLACEMENT : code;
}

/* The code point at src; *used bytes hold it. */
static uint32_t next_code(ElementType type, const uint8_t *src, int64_t left, int *used)
{
    uint32_t code;

    if (type.kind == ELEMENT_UCS4) {
        memcpy(&code, src, 4);
        *used = 4;
        return type.swapped ? __builtin_bswap32(code) : code;
    }
    *used = labels_utf8(src, left);
    if (*used == 0) {
        *used = 1;
        return REPLACEMENT;
    }
    code = *used == 1 ? src[0] : src[0] & (0x7fu >> *used);
    for (int i = 1; i < *used; i++)
        code = code << 6 | (src[i] & 0x3fu);
    return code;
}

static int64_t text_end(ElementType type, const uint8_t *src)
{
    int64_t end = type.size;

    while (end > 0 && src[end - 1] == 0)
        end--;
    if (type.kind == ELEMENT_UCS4) /* a code point's own upper bytes are zero */
        end = (end + 3) / 4 * 4;
    return end;
}

int64_t labels_text(ElementType type, const uint8_t *src, char *out, int64_t size)
{
    int64_t length = 0, end = text_end(type, src);
    char    piece[4];
    int     used, count;

    for (int64_t at = 0; at < end; at += used) {
        count = encode(shown(next_code(type, src + at, end - at, &used)), piece);
        if (length + count >= size)
            break;
        memcpy(out + length, piece, (size_t)count);
        length += count;
    }
    out[length] = '\0';
    return length;
}

static char *text_label(Arena *arena, ElementType type, const uint8_t *src)
{
    /* One bad byte becomes three; a code point is never more than four. */
    int64_t room = text_end(type, src) * (type.kind == ELEMENT_UCS4 ? 1 : 3) + 1;
    char   *text = arena_alloc(arena, room, 1);

    if (text)
        labels_text(type, src, text, room);
    return text;
}

char *labels_copy(Arena *arena, const uint8_t *text, int64_t size)
{
    return text_label(arena, (ElementType){ .kind = ELEMENT_BYTES, .size = size }, text);
}

char **labels_of(Arena *arena, ElementType type, const uint8_t *src, int64_t count)
{
    char **labels = arena_alloc(arena, count, sizeof(*labels));

    for (int64_t i = 0; labels && i < count; i++) {
        const uint8_t *at = src + i * type.size;

        labels[i] = element_is_text(type)
                        ? text_label(arena, type, at)
                        : arena_printf(arena, "%lld", (long long)element_to_i64(type, at));
        if (!labels[i])
            return NULL;
    }
    return labels;
}

bool labels_parse(const char *text, size_t length, double *out)
{
    locale_t plain; /* a new "C" locale costs nothing: glibc keeps it */
    char     copy[64], *end;

    while (length && isspace((unsigned char)*text))
        text++, length--;
    while (length && isspace((unsigned char)text[length - 1]))
        length--;
    if (length == 0 || length >= sizeof(copy))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    plain = newlocale(LC_ALL_MASK, "C", NULL);
    if (!plain)
        return false;
    *out = strtod_l(copy, &end, plain);
    freelocale(plain);
    return end == copy + length;
}

/* The fewest digits that read back as the same number. */
static void shortest(double value, char *text, size_t size)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
}

char *labels_number(double value, char *text, size_t size)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", NULL), before;

    before = plain ? uselocale(plain) : NULL;
    if (value >= -1e15 && value <= 1e15 && value == (double)(int64_t)value)
        snprintf(text, size, "%lld", (long long)value); /* 20, not 2e+01 */
    else
        shortest(value, text, size);
    if (plain) {
        uselocale(before);
        freelocale(plain);
    }
    return text;
}
