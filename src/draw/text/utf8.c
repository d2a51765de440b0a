/* utf8.c -- see utf8.h.  A malformed byte is one character on its own, so any
 * bytes (a token cut in the middle of a letter) can be shown. */
#include "draw/text/utf8.h"

#include <stdio.h>
#include <string.h>

#define REPLACEMENT 0xFFFDu
#define OPEN_BOX "\xE2\x90\xA3"

/* One character or UTF8_MALFORMED; *length bytes were used. */
static uint32_t decode_any(const unsigned char *s, int *length)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    int      need = s[0] < 0x80 ? 1 : s[0] >= 0xF8 ? 0 : s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3
                  : s[0] >= 0xC0 ? 2 : 0;
    uint32_t code = need == 1 ? s[0] : need ? s[0] & (0xFFu >> (need + 1)) : UTF8_MALFORMED;

    *length = 1;
    for (int k = 1; k < need; k++) {
        if ((s[k] & 0xC0) != 0x80)
            return UTF8_MALFORMED;
        code = code << 6 | (s[k] & 0x3F);
    }
    if (need && (code < least[need] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)))
        return UTF8_MALFORMED;
    *length = need ? need : 1;
    return code;
}

uint32_t utf8_next(const char **text)
{
    int      length;
    uint32_t code = decode_any((const unsigned char *)*text, &length);

    *text += length;
    return code;
}

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

/* One character that can be shown. */
static uint32_t decode(const unsigned char *s, int *length)
{
    uint32_t code = decode_any(s, length);

    return code == UTF8_MALFORMED || is_control(code) ? REPLACEMENT : code;
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

/* Columns for a sign beyond ASCII. */
static const char *ascii_of(uint32_t c, int width)
{
    if (c == 0xB7)
        return "-";
    if (c == 0x2026)
        return ".";
    return width > 1 ? "??" : "?";
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
            at = put(out, at, size, ascii_of(c, width), (size_t)width);
        else if (c == REPLACEMENT)
            at = put(out, at, size, "\xEF\xBF\xBD", 3);
        else
            at = put(out, at, size, (const char *)s, (size_t)length);
    }
    if (cut && columns > 0)
        at = ascii ? put(out, at, size, ".", 1) : put(out, at, size, "\xE2\x80\xA6", 3);
    out[at] = '\0';
}

/* Marks of direction, joiners and other signs without a picture of their own. */
static bool is_invisible(uint32_t c)
{
    return c == 0xAD || (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
           (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF;
}

static void escape_of(uint32_t code, const unsigned char *bytes, char *text, size_t size)
{
    static const struct {
        uint32_t    code;
        const char *text;
    } usual[] = { { '\n', "\\n" }, { '\t', "\\t" }, { '\r', "\\r" }, { 0x1B, "\\e" } };

    for (size_t k = 0; k < sizeof(usual) / sizeof(*usual); k++)
        if (usual[k].code == code) {
            snprintf(text, size, "%s", usual[k].text);
            return;
        }
    if (code == UTF8_MALFORMED || code < 0x80)
        snprintf(text, size, "\\x%02X", bytes[0]);
    else
        snprintf(text, size, "\\u%04X", (unsigned)code);
}

void utf8_escape(const char *text, bool (*has)(const void *context, uint32_t code),
                 const void *context, char *out, size_t size)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t at = 0;
    int    length;

    for (; *s; s += length) {
        uint32_t code = decode_any(s, &length);
        char     escape[16];

        if (code != UTF8_MALFORMED && !is_control(code) && !is_invisible(code) &&
            (!has || has(context, code))) {
            at = put(out, at, size, (const char *)s, (size_t)length);
            continue;
        }
        escape_of(code, s, escape, sizeof(escape));
        at = put(out, at, size, escape, strlen(escape));
    }
    out[at] = '\0';
}

static bool in_ascii(const void *context, uint32_t code)
{
    (void)context;
    return code < 0x80;
}

void utf8_token(const char *token, bool ascii, char *out, size_t size)
{
    const char *box = ascii ? "_" : OPEN_BOX;
    size_t      at = 0;

    if (*token && !token[strspn(token, " ")]) {
        for (; *token; token++)
            at = put(out, at, size, box, strlen(box));
        out[at] = '\0';
        return;
    }
    utf8_escape(token, ascii ? in_ascii : NULL, NULL, out, size);
}
