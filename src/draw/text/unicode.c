/* unicode.c -- columns, escapes and labels of a text, and the shapes and the order of scripts
 * written from the right; see unicode.h. */
#include "draw/text/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_BOX "\xE2\x90\xA3"
#define RETURN_ARROW "\xE2\x86\xB5"

/* The next character, or what is shown in its place; *text moves past it. */
static uint32_t next_shown(const char **text)
{
    uint32_t code = utf8_next(text);

    return code == UTF8_MALFORMED || utf8_is_control(code) || utf8_reorders(code) ? UTF8_REPLACEMENT
                                                                               : code;
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
    int columns = 0;

    while (*text)
        columns += columns_of(next_shown(&text));
    return columns;
}

static size_t put_bytes(char *out, size_t at, size_t size, const char *bytes, size_t length)
{
    if (at + length >= size)
        return at;
    memcpy(out + at, bytes, length);
    return at + length;
}

const char *const footnote_signs[FOOTNOTE_SIGNS] = { "\xe2\x80\xa0", "\xe2\x80\xa1", "\xc2\xa7",
                                                    "\xc2\xb6" };

/* The ASCII replacement of a sign of `width` columns. */
static const char *ascii_of(uint32_t c, int width)
{
    if (c == 0xB7)
        return "-";
    if (c == 0x2026)
        return ".";
    if (c == 0x2020) /* signs of footnotes stay apart */
        return "!";
    if (c == 0x2021)
        return "*";
    if (c == 0xA7)
        return "+";
    if (c == 0xB6)
        return "#";
    return width > 1 ? "??" : "?";
}

void utf8_fit(const char *text, int columns, bool ascii, char *out, size_t size)
{
    bool   cut = utf8_columns(text) > columns;
    int    used = 0, room = cut ? columns - 1 : columns;
    size_t at = 0;

    while (*text) {
        const char *first = text;
        uint32_t    c = next_shown(&text);
        int         width = columns_of(c);

        if (used + width > room)
            break;
        used += width;
        if (ascii && c >= 0x80)
            at = put_bytes(out, at, size, ascii_of(c, width), (size_t)width);
        else if (c == UTF8_REPLACEMENT)
            at = put_bytes(out, at, size, "\xEF\xBF\xBD", 3);
        else
            at = put_bytes(out, at, size, first, (size_t)(text - first));
    }
    if (cut && columns > 0)
        at = ascii ? put_bytes(out, at, size, ".", 1) : put_bytes(out, at, size, "\xE2\x80\xA6", 3);
    out[at] = '\0';
}

/* Marks of direction, joiners and other invisible signs. */
static bool is_invisible(uint32_t c)
{
    return c == 0xAD || (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
           (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF;
}

static void escape_of(uint32_t code, char byte, char *text, size_t size)
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
        snprintf(text, size, "\\x%02X", (unsigned char)byte);
    else
        snprintf(text, size, "\\u%04X", (unsigned)code);
}

void utf8_escape(const char *text, bool (*has)(const void *context, uint32_t code),
                 const void *context, char *out, size_t size)
{
    size_t at = 0;

    while (*text) {
        const char *first = text;
        uint32_t    code = utf8_next(&text);
        char        escape[16];

        if (code != UTF8_MALFORMED && !utf8_is_control(code) && !is_invisible(code) &&
            (!has || has(context, code))) {
            at = put_bytes(out, at, size, first, (size_t)(text - first));
            continue;
        }
        escape_of(code, *first, escape, sizeof(escape));
        at = put_bytes(out, at, size, escape, strlen(escape));
    }
    out[at] = '\0';
}

static bool in_ascii(const void *context, uint32_t code)
{
    (void)context;
    return code < 0x80;
}

/* How vocabularies write a blank or a line end that begins a token; NULL: another character.
 * *token moves behind it. */
static const char *token_mark(const char **token, bool ascii)
{
    static const struct {
        const char *text, *mark, *ascii;
    } marks[] = {
        { "\xC4\xA0", OPEN_BOX, "_" },     /* U+0120 of byte-level BPE: a blank */
        { "\xC4\x8A", RETURN_ARROW, "\\n" }, /* U+010A: a line end */
        { "\xE2\x96\x81", OPEN_BOX, "_" }, /* U+2581 of SentencePiece: a blank */
    };

    for (size_t k = 0; k < sizeof(marks) / sizeof(*marks); k++)
        if (!strncmp(*token, marks[k].text, strlen(marks[k].text))) {
            *token += strlen(marks[k].text);
            return ascii ? marks[k].ascii : marks[k].mark;
        }
    return NULL;
}

void utf8_token(const char *token, bool ascii, char *out, size_t size)
{
    const char *box = ascii ? "_" : OPEN_BOX, *mark;
    size_t      at = 0;

    if (*token && !token[strspn(token, " ")]) {
        for (; *token; token++)
            at = put_bytes(out, at, size, box, strlen(box));
        out[at] = '\0';
        return;
    }
    while ((mark = token_mark(&token, ascii)))
        at = put_bytes(out, at, size, mark, strlen(mark));
    utf8_escape(token, ascii ? in_ascii : NULL, NULL, out + at, size - at);
}

size_t utf8_token_blank(const char *text)
{
    const char *at = text;

    return token_mark(&at, false) ? (size_t)(at - text) : 0;
}

size_t utf8_mark(const char *label)
{
    return strncmp(label, OPEN_BOX, strlen(OPEN_BOX)) || !label[strlen(OPEN_BOX)] ? 0
                                                                            : strlen(OPEN_BOX);
}

/* Right-to-left scripts.
 *
 * A letter has one, two or four forms, in this order: alone, at the end of a word, at its
 * beginning, within. A letter with two forms joins only the one before it. A run from the right
 * begins at such a letter and ends before the next left-to-right letter; blanks and signs between
 * belong to it, and so does a number after it. (Unicode, chapter 9.2 and annex 9, as far as a
 * label of one line needs them.)
 */

typedef struct Letter {
    uint16_t code, form; /* its first form; the others follow */
    uint8_t  forms;      /* 0: joins on both sides without changing */
} Letter;

/* Sorted by code. */
static const Letter letters[] = {
    { 0x0621, 0xFE80, 1 }, { 0x0622, 0xFE81, 2 }, { 0x0623, 0xFE83, 2 }, { 0x0624, 0xFE85, 2 },
    { 0x0625, 0xFE87, 2 }, { 0x0626, 0xFE89, 4 }, { 0x0627, 0xFE8D, 2 }, { 0x0628, 0xFE8F, 4 },
    { 0x0629, 0xFE93, 2 }, { 0x062A, 0xFE95, 4 }, { 0x062B, 0xFE99, 4 }, { 0x062C, 0xFE9D, 4 },
    { 0x062D, 0xFEA1, 4 }, { 0x062E, 0xFEA5, 4 }, { 0x062F, 0xFEA9, 2 }, { 0x0630, 0xFEAB, 2 },
    { 0x0631, 0xFEAD, 2 }, { 0x0632, 0xFEAF, 2 }, { 0x0633, 0xFEB1, 4 }, { 0x0634, 0xFEB5, 4 },
    { 0x0635, 0xFEB9, 4 }, { 0x0636, 0xFEBD, 4 }, { 0x0637, 0xFEC1, 4 }, { 0x0638, 0xFEC5, 4 },
    { 0x0639, 0xFEC9, 4 }, { 0x063A, 0xFECD, 4 }, { 0x0640, 0x0640, 0 }, { 0x0641, 0xFED1, 4 },
    { 0x0642, 0xFED5, 4 }, { 0x0643, 0xFED9, 4 }, { 0x0644, 0xFEDD, 4 }, { 0x0645, 0xFEE1, 4 },
    { 0x0646, 0xFEE5, 4 }, { 0x0647, 0xFEE9, 4 }, { 0x0648, 0xFEED, 2 }, { 0x0649, 0xFEEF, 2 },
    { 0x064A, 0xFEF1, 4 }, { 0x0679, 0xFB66, 4 }, { 0x067E, 0xFB56, 4 }, { 0x0686, 0xFB7A, 4 },
    { 0x0688, 0xFB88, 2 }, { 0x0691, 0xFB8C, 2 }, { 0x0698, 0xFB8A, 2 }, { 0x06A9, 0xFB8E, 4 },
    { 0x06AF, 0xFB92, 4 }, { 0x06BA, 0xFB9E, 2 }, { 0x06BE, 0xFBAA, 4 }, { 0x06CC, 0xFBFC, 4 },
};
#define LETTERS (sizeof(letters) / sizeof(*letters))

#define LAM 0x0644

/* The ligature of lam and alef, which has two forms; 0: another pair. */
static uint32_t ligature(uint32_t first, uint32_t second)
{
    if (first != LAM)
        return 0;
    return second == 0x0622 ? 0xFEF5 : second == 0x0623 ? 0xFEF7 : second == 0x0625 ? 0xFEF9
           : second == 0x0627 ? 0xFEFB : 0;
}

static int by_code(const void *key, const void *letter)
{
    uint32_t code = *(const uint32_t *)key, own = ((const Letter *)letter)->code;

    return (code > own) - (code < own);
}

static const Letter *letter_of(uint32_t code)
{
    return bsearch(&code, letters, LETTERS, sizeof(*letters), by_code);
}

static bool is_within(uint32_t code, uint32_t from, uint32_t to)
{
    return code >= from && code <= to;
}

/* A mark above or below a letter: it neither joins nor separates. */
static bool is_mark(uint32_t code)
{
    return is_within(code, 0x0591, 0x05BD) || is_within(code, 0x05BF, 0x05C7) ||
           is_within(code, 0x0610, 0x061A) || is_within(code, 0x064B, 0x065F) || code == 0x0670 ||
           is_within(code, 0x06D6, 0x06DC) || is_within(code, 0x06DF, 0x06E8) ||
           is_within(code, 0x06EA, 0x06ED) || is_within(code, 0x07EB, 0x07F3);
}

static bool is_digit(uint32_t code)
{
    return is_within(code, '0', '9') || is_within(code, 0x0660, 0x0669) ||
           is_within(code, 0x06F0, 0x06F9);
}

static bool from_right(uint32_t code)
{
    return !is_digit(code) && (is_within(code, 0x0590, 0x07FF) || is_within(code, 0xFB1D, 0xFDFF) ||
                               is_within(code, 0xFE70, 0xFEFC));
}

/* Blanks and signs have no direction of their own. */
static bool is_neutral(uint32_t code)
{
    return code < 0x80 ? !(is_within(code | 0x20, 'a', 'z') || is_digit(code))
                       : code == 0xA0 || is_within(code, 0x2000, 0x2BFF);
}

/* ---- joining ---------------------------------------------------------------- */

typedef struct Codes {
    uint32_t code[SHAPE_MOST];
    int      count;
} Codes;

typedef struct Font {
    bool (*has)(const void *context, uint32_t code);
    const void *context;
} Font;

/* The letter next to `at`, skipping marks; NULL: none that joins. */
static const Letter *neighbour(const Codes *c, int at, int step)
{
    do
        at += step;
    while (at >= 0 && at < c->count && is_mark(c->code[at]));
    return at >= 0 && at < c->count ? letter_of(c->code[at]) : NULL;
}

static bool joins_next(const Letter *letter)
{
    return letter && (letter->forms == 4 || !letter->forms);
}

static bool joins_last(const Letter *letter)
{
    return letter && letter->forms != 1;
}

static uint32_t form_of(const Codes *c, int at, const Letter *own)
{
    bool before = joins_next(neighbour(c, at, -1)) && joins_last(own);
    bool after = joins_last(neighbour(c, at, 1)) && joins_next(own);

    return own->form + (uint32_t)(after ? (before ? 3 : 2) : before ? 1 : 0);
}

static void join(const Codes *in, const Font *font, Codes *out)
{
    out->count = 0;
    for (int at = 0; at < in->count; at++) {
        const Letter *own = letter_of(in->code[at]);
        uint32_t      both = at + 1 < in->count ? ligature(in->code[at], in->code[at + 1]) : 0;
        uint32_t      form = own && own->forms ? form_of(in, at, own) : in->code[at];

        if (both) /* its last form joins the letter before */
            both += joins_next(neighbour(in, at, -1));
        if (both && font->has(font->context, both)) {
            out->code[out->count++] = both;
            at++;
        } else {
            out->code[out->count++] = font->has(font->context, form) ? form : in->code[at];
        }
    }
}

/* ---- order ------------------------------------------------------------------ */

static int run_end(const Codes *c, int from)
{
    int end = from;

    for (int at = from; at < c->count; at++) {
        if (from_right(c->code[at]) || is_digit(c->code[at]))
            end = at + 1;
        else if (!is_neutral(c->code[at]))
            break;
    }
    return end;
}

/* A digit, or a sign between two. */
static bool goes_on(const Codes *c, int at, int end)
{
    uint32_t code = c->code[at];
    bool     sign = code == '.' || code == ',' || code == ':' || code == '/';

    return is_digit(code) || (sign && at + 1 < end && is_digit(c->code[at + 1]));
}

/* End of a piece that is not reversed: a letter with its marks, a number. */
static int piece_end(const Codes *c, int at, int end)
{
    bool number = is_digit(c->code[at]);

    for (at++; at < end; at++)
        if (!is_mark(c->code[at]) && !(number && goes_on(c, at, end)))
            break;
    return at;
}

static uint32_t mirrored(uint32_t code)
{
    static const char pairs[] = "()[]{}<>";
    const char       *at = code && code < 0x80 ? strchr(pairs, (int)code) : NULL;

    return at ? (uint32_t)pairs[(at - pairs) ^ 1] : code;
}

static void turn(const Codes *in, int from, int end, Codes *out)
{
    int to = end;

    for (int at = from, next; at < end; at = next) {
        next = piece_end(in, at, end);
        to -= next - at;
        memcpy(out->code + to, in->code + at, (size_t)(next - at) * sizeof(*in->code));
        out->code[to] = mirrored(out->code[to]);
    }
}

/* ---- the whole -------------------------------------------------------------- */

static bool code_points(const char *text, Codes *out)
{
    bool any = false;

    out->count = 0;
    while (*text && out->count < SHAPE_MOST) {
        uint32_t code = utf8_next(&text);

        if (code == UTF8_MALFORMED)
            return false;
        out->code[out->count++] = code;
        any = any || from_right(code);
    }
    return any && !*text;
}

void shape_text(const char *text, bool (*has)(const void *context, uint32_t code),
                const void *context, char *out, size_t size)
{
    Codes  given, joined, seen;
    size_t used = 0;
    char   bytes[4];

    if (!code_points(text, &given)) {
        used = strnlen(text, size - 1);
        memcpy(out, text, used);
        out[used] = '\0';
        return;
    }
    join(&given, &(Font){ has, context }, &joined);
    seen = joined;
    for (int at = 0; at < joined.count; at++)
        if (from_right(joined.code[at])) {
            int end = run_end(&joined, at);

            turn(&joined, at, end, &seen);
            at = end - 1;
        }
    for (int at = 0; at < seen.count && used + sizeof(bytes) < size; at++) {
        size_t length = (size_t)utf8_encode(seen.code[at], bytes);

        memcpy(out + used, bytes, length);
        used += length;
    }
    out[used] = '\0';
}
