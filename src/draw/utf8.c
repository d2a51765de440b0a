/* utf8.c -- see utf8.h.  A malformed byte is one character on its own, so any
 * bytes (a token cut in the middle of a letter) can be shown. */
#include "draw/utf8.h"

#include <stdint.h>
#include <string.h>

#define REPLACEMENT 0xFFFDu

/* One character; *length bytes were used. */
static uint32_t decode(const unsigned char *s, int *length)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    int      need = s[0] < 0x80 ? 1 : s[0] >= 0xF8 ? 0 : s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3
                  : s[0] >= 0xC0 ? 2 : 0;
    uint32_t code = need == 1 ? s[0] : need ? s[0] & (0xFFu >> (need + 1)) : REPLACEMENT;

    *length = 1;
    for (int k = 1; k < need; k++) {
        if ((s[k] & 0xC0) != 0x80)
            return REPLACEMENT;
        code = code << 6 | (s[k] & 0x3F);
    }
    if (need && (code < least[need] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)))
        return REPLACEMENT;
    *length = need ? need : 1;
    return code < 0x20 || code == 0x7F ? REPLACEMENT : code;
}

static int columns_of(uint32_t c)
{
    if ((c >= 0x300 && c < 0x370) || (c >= 0x200B && c <= 0x200F) || (c >= 0xFE00 && c <= 0xFE0F))
        return 0;
    return (c >= 0x1100 && c < 0x1160) || (c >= 0x2E80 && c < 0xA4D0) ||
                   (c >= 0xAC00 && c < 0xD7A4) || (c >= 0xF900 && c < 0xFB00) ||
                   (c >= 0xFE30 && c < 0xFE70) || (c >= 0xFF00 && c < 0xFF61) ||
                   (c >= 0x1F300 && c < 0x1FB00) || (c >= 0x20000 && c < 0x3FFFE)
               ? 2
               : 1;
}

int utf8_columns(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    int                  columns = 0, length;

    for (; *s; s += length)
        columns += columns_of(decode(s, &length));
    return columns;
}

static size_t put(char *out, size_t at, size_t size, const char *bytes, size_t length)
{
    if (at + length >= size)
        return at;
    memcpy(out + at, bytes, length);
    return at + length;
}

void utf8_fit(const char *text, int columns, bool ascii, char *out, size_t size)
{
    const unsigned char *s = (const unsigned char *)text;
    bool   cut = utf8_columns(text) > columns;
    int    used = 0, length, room = cut ? columns - 1 : columns;
    size_t at = 0;

    for (; *s; s += length) {
        uint32_t c = decode(s, &length);
        int      width = columns_of(c);

        if (used + width > room)
            break;
        used += width;
        if (ascii && c >= 0x80)
            at = put(out, at, size, "??", (size_t)width);
        else if (c == REPLACEMENT)
            at = put(out, at, size, "\xEF\xBF\xBD", 3);
        else
            at = put(out, at, size, (const char *)s, (size_t)length);
    }
    if (cut && columns > 0)
        at = ascii ? put(out, at, size, ".", 1) : put(out, at, size, "\xE2\x80\xA6", 3);
    out[at] = '\0';
}
