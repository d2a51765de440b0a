/* utf8.c -- see utf8.h. */
#include "core/utf8.h"

#include <string.h>

/* Bytes that a first byte announces; 0: it is none. */
static int announced(unsigned char first)
{
    return first < 0x80   ? 1
           : first < 0xC2 ? 0 /* a continuation, or a longer form of ASCII */
           : first < 0xE0 ? 2
           : first < 0xF0 ? 3
           : first < 0xF5 ? 4
                          : 0;
}

static bool is_character(uint32_t code)
{
    return code <= 0x10FFFF && (code < 0xD800 || code >= 0xE000);
}

int utf8_decode(const void *text, size_t size, uint32_t *code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char  *s = text;
    int                   length = size ? announced(s[0]) : 0;
    bool                  whole = length && (size_t)length <= size;
    uint32_t              value = whole ? s[0] & (length == 1 ? 0x7Fu : 0xFFu >> (length + 1)) : 0;

    for (int k = 1; whole && k < length; k++) {
        whole = (s[k] & 0xC0) == 0x80;
        value = value << 6 | (s[k] & 0x3F);
    }
    whole = whole && value >= least[length] && is_character(value);
    if (code)
        *code = whole ? value : UTF8_MALFORMED;
    return whole ? length : 0;
}

uint32_t utf8_next(const char **text)
{
    uint32_t code;
    int      length = utf8_decode(*text, strnlen(*text, 4), &code);

    *text += length ? length : 1;
    return code;
}

int utf8_encode(uint32_t code, char out[4])
{
    int length;

    if (!is_character(code))
        code = UTF8_REPLACEMENT;
    length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int k = length - 1; k > 0; k--, code >>= 6)
        out[k] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(length == 1 ? code : (0xF00u >> length & 0xFF) | code);
    return length;
}

bool utf8_continues(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

int utf8_count(const char *text, size_t length)
{
    int count = 0;

    for (size_t i = 0; i < length; i++)
        count += !utf8_continues(text[i]);
    return count;
}

bool utf8_is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

bool utf8_reorders(uint32_t code)
{
    return (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}
