/* shape.c -- see shape.h.
 *
 * A letter has one, two or four forms, in this order: alone, at the end of a word, at its
 * beginning, within.  One with two joins the letter before it only.  A run from the right
 * begins at such a letter and ends before the next one from the left; what stands between
 * (blanks, signs) belongs to it, and so does a number after it.  (Unicode, chapter 9.2 and
 * annex 9, as far as a label of one line needs them.)
 */
#include "draw/text/shape.h"

#include <stdlib.h>
#include <string.h>

#include "draw/text/utf8.h"

typedef struct Letter {
    uint16_t code, form; /* its first form; the others follow */
    uint8_t  forms;      /* 0: joins on both sides, and looks the same */
} Letter;

/* In the order of their codes. */
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

/* Lam and alef are one sign, of two forms; 0: they are not these. */
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

static bool within(uint32_t code, uint32_t from, uint32_t to)
{
    return code >= from && code <= to;
}

/* A mark above or below a letter: it neither joins nor parts. */
static bool is_mark(uint32_t code)
{
    return within(code, 0x0591, 0x05BD) || within(code, 0x05BF, 0x05C7) ||
           within(code, 0x0610, 0x061A) || within(code, 0x064B, 0x065F) || code == 0x0670 ||
           within(code, 0x06D6, 0x06DC) || within(code, 0x06DF, 0x06E8) ||
           within(code, 0x06EA, 0x06ED) || within(code, 0x07EB, 0x07F3);
}

static bool is_digit(uint32_t code)
{
    return within(code, '0', '9') || within(code, 0x0660, 0x0669) || within(code, 0x06F0, 0x06F9);
}

static bool from_right(uint32_t code)
{
    return !is_digit(code) && (within(code, 0x0590, 0x07FF) || within(code, 0xFB1D, 0xFDFF) ||
                               within(code, 0xFE70, 0xFEFC));
}

/* Neither direction of its own: blanks and signs. */
static bool is_neutral(uint32_t code)
{
    return code < 0x80 ? !(within(code | 0x20, 'a', 'z') || is_digit(code))
                       : code == 0xA0 || within(code, 0x2000, 0x2BFF);
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

/* The letter next to `at` over marks; NULL: none that joins. */
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

        if (both) /* its end stands for the join with the letter before */
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

/* What stays as it is when a run is turned: a letter with its marks, a number. */
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

static bool decode(const char *text, Codes *out)
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

static size_t encode(uint32_t code, char *bytes)
{
    int length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    bytes[0] = (char)code;
    for (int k = length - 1; k > 0; k--, code >>= 6)
        bytes[k] = (char)(0x80 | (code & 0x3F));
    if (length > 1)
        bytes[0] = (char)((0xF00 >> length & 0xFF) | code);
    return (size_t)length;
}

void shape_text(const char *text, bool (*has)(const void *context, uint32_t code),
                const void *context, char *out, size_t size)
{
    Codes  given, joined, seen;
    size_t used = 0;
    char   bytes[4];

    if (!decode(text, &given)) {
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
        size_t length = encode(seen.code[at], bytes);

        memcpy(out + used, bytes, length);
        used += length;
    }
    out[used] = '\0';
}
