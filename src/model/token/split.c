/* split.c -- pre-tokenising; see split.h. */
#include "model/token/split.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"
#include "model/token/vocab.h"

const char split_gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char split_llama3[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const char split_qwen2[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const char split_digits[] = "\\p{N}";

/* ---- the list -------------------------------------------------------------------- */

bool splitter_add(Splitter *s, Split split, Error *err)
{
    if (s->count == SPLITS_MAX) {
        regex_free(split.regex);
        return error_set(err, ERR_MODEL, "more than %d pre-tokenizers in a row are not read",
                         SPLITS_MAX);
    }
    s->splits[s->count++] = split;
    return true;
}

bool splitter_add_regex(Splitter *s, const char *pattern, size_t length, SplitMatch match,
                        Error *err)
{
    Regex *regex = regex_new(pattern, length, err);

    return regex &&
           splitter_add(s, (Split){ .kind = SPLIT_REGEX, .regex = regex, .match = match }, err);
}

void splitter_free(Splitter *s)
{
    for (int i = 0; i < s->count; i++)
        regex_free(s->splits[i].regex);
    s->count = 0;
}

void pieces_free(Pieces *p)
{
    text_free(&p->text);
    free(p->list);
    *p = (Pieces){ 0 };
}

/* ---- pieces ---------------------------------------------------------------------- */

static void pieces_add(Pieces *p, size_t start, size_t end)
{
    if (end <= start)
        return;
    if (p->failed || !array_reserve(&p->list, &p->room, p->count + 1, sizeof(*p->list)))
        p->failed = true;
    else
        p->list[p->count++] = (Piece){ start, end - start };
}

/* A piece as it is, of a text that grows in `out`. */
static void pieces_append(Pieces *out, const char *text, size_t length)
{
    size_t start = out->text.length;

    text_add_bytes(&out->text, text, length);
    pieces_add(out, start, start + length);
}

/* ASCII's symbols are, others are not. */
static bool is_punctuation(uint32_t code)
{
    if (code < 0x80)
        return g_ascii_ispunct((char)code);
    switch (g_unichar_type(code)) {
    case G_UNICODE_CONNECT_PUNCTUATION:
    case G_UNICODE_DASH_PUNCTUATION:
    case G_UNICODE_OPEN_PUNCTUATION:
    case G_UNICODE_CLOSE_PUNCTUATION:
    case G_UNICODE_INITIAL_PUNCTUATION:
    case G_UNICODE_FINAL_PUNCTUATION:
    case G_UNICODE_OTHER_PUNCTUATION: return true;
    default:                          return false;
    }
}

static void cut_spaces(const Split *s, const Pieces *in, Piece piece, Pieces *out)
{
    const char *text = in->text.data + piece.start;
    size_t      from = 0, base = out->text.length;

    text_add_bytes(&out->text, text, piece.length);
    for (size_t at = 0; at < piece.length;) {
        uint32_t code;
        size_t   bytes = (size_t)utf8_decode(text + at, piece.length - at, &code);
        bool     alone = s->kind == SPLIT_BERT && is_punctuation(code);

        if (split_is_space(code) || alone) {
            pieces_add(out, base + from, base + at);
            from = at + bytes;
            if (alone)
                pieces_add(out, base + at, base + from);
        }
        at += bytes;
    }
    pieces_add(out, base + from, base + piece.length);
}

static bool cut_regex(const Split *s, const Pieces *in, Piece piece, RegexWork *work, Pieces *out,
                      Error *err)
{
    const char *text = in->text.data + piece.start;
    size_t      from = 0, base = out->text.length;
    RegexSpan   span = { 0, 0 };
    bool        found = true;

    text_add_bytes(&out->text, text, piece.length);
    for (;;) {
        if (!regex_next(s->regex, work, text, piece.length, span.end, &span, &found, err))
            return false;
        if (!found)
            break;
        if (s->match == MATCH_WITH_PREVIOUS) {
            pieces_add(out, base + from, base + span.end);
        } else {
            pieces_add(out, base + from, base + span.start);
            if (s->match == MATCH_ISOLATED)
                pieces_add(out, base + span.start, base + span.end);
        }
        from = span.end;
    }
    pieces_add(out, base + from, base + piece.length);
    return true;
}

/* Bytes 33-126, 161-172 and 174-255 are their own characters, the others U+0100 and on. */
static bool byte_is_itself(int byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

int split_byte_of(uint32_t code)
{
    uint32_t next = 0x100;

    if (code < 0x100)
        return byte_is_itself((int)code) ? (int)code : -1;
    for (int byte = 0; byte < 256; byte++)
        if (!byte_is_itself(byte) && next++ == code)
            return byte;
    return -1;
}

static uint32_t character_of(uint8_t byte)
{
    if (byte_is_itself(byte))
        return byte;
    return 0x100 + (byte <= 32 ? byte : byte <= 160 ? byte - 127u + 33 : 67);
}

static void map_bytes(const Pieces *in, Piece piece, Pieces *out)
{
    size_t start = out->text.length;
    char   part[256];
    size_t used = 0;

    for (size_t i = 0; i < piece.length; i++) {
        used += (size_t)utf8_encode(character_of((uint8_t)in->text.data[piece.start + i]),
                                    part + used);
        if (used > sizeof(part) - 4 || i + 1 == piece.length) {
            text_add_bytes(&out->text, part, used);
            used = 0;
        }
    }
    pieces_add(out, start, out->text.length);
}

static bool begins_with(const Pieces *in, Piece piece, const char *what)
{
    size_t length = strlen(what);

    return piece.length >= length && memcmp(in->text.data + piece.start, what, length) == 0;
}

static void put_blank(const Pieces *in, Piece piece, Pieces *out)
{
    size_t start = out->text.length;

    if (!begins_with(in, piece, " "))
        text_add(&out->text, " ");
    text_add_bytes(&out->text, in->text.data + piece.start, piece.length);
    pieces_add(out, start, out->text.length);
}

static void mark_blanks(const Split *s, const Pieces *in, Piece piece, bool first, Pieces *out)
{
    const char *text = in->text.data + piece.start;
    size_t      mark = strlen(s->mark), from = out->text.length;

    if ((s->mark_first == MARK_ALWAYS || (s->mark_first == MARK_FIRST && first)) &&
        text[0] != ' ' && !begins_with(in, piece, s->mark))
        text_add_bytes(&out->text, s->mark, mark);
    for (size_t at = 0; at < piece.length;) {
        bool   is_mark = piece.length - at >= mark && memcmp(text + at, s->mark, mark) == 0;
        bool   marked = text[at] == ' ' || is_mark;
        size_t bytes = is_mark ? mark : (size_t)utf8_decode(text + at, piece.length - at, NULL);

        if (marked && s->cut) {
            pieces_add(out, from, out->text.length);
            from = out->text.length;
        }
        text_add_bytes(&out->text, marked ? s->mark : text + at, marked ? mark : bytes);
        at += bytes;
    }
    pieces_add(out, from, out->text.length);
}

/* ---- running --------------------------------------------------------------------- */

bool split_is_space(uint32_t code)
{
    if (code < 0x80)
        return code == ' ' || (code >= 9 && code <= 13);
    return code == 0x85 || g_unichar_type(code) == G_UNICODE_SPACE_SEPARATOR || code == 0x2028 ||
           code == 0x2029;
}

static bool split_piece(const Split *s, const Pieces *in, Piece piece, bool first,
                        RegexWork *work, Pieces *out, Error *err)
{
    switch (s->kind) {
    case SPLIT_REGEX:       return cut_regex(s, in, piece, work, out, err);
    case SPLIT_BLANK_FIRST: put_blank(in, piece, out); break;
    case SPLIT_BYTES:       map_bytes(in, piece, out); break;
    case SPLIT_METASPACE:   mark_blanks(s, in, piece, first, out); break;
    case SPLIT_WHITESPACE:
    case SPLIT_BERT:        cut_spaces(s, in, piece, out); break;
    }
    return true;
}

static void pieces_clear(Pieces *p)
{
    text_clear(&p->text);
    p->count = 0;
}

static bool pieces_ok(const Pieces *p, size_t length, Error *err)
{
    if (!p->failed && text_ok(&p->text))
        return true;
    return error_set(err, ERR_NOMEM, "no memory for the pieces of a text of %zu bytes", length);
}

bool splitter_run(const Splitter *s, const char *text, size_t length, bool begins, RegexWork *work,
                  Pieces *in, Pieces *out, Error *err)
{
    pieces_clear(out);
    pieces_append(out, text, length);
    for (int i = 0; i < s->count && pieces_ok(out, length, err); i++) {
        Pieces swap = *in;

        *in = *out;
        *out = swap;
        pieces_clear(out);
        for (int64_t p = 0; p < in->count; p++)
            if (!split_piece(&s->splits[i], in, in->list[p], begins && in->list[p].start == 0,
                             work, out, err))
                return false;
    }
    return pieces_ok(out, length, err);
}
