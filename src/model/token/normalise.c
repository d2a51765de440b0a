/* normalise.c -- the steps; see normalise.h.  Categories, forms and cases are GLib's. */
#include "model/token/normalise.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"
#include "model/token/split.h"

/* ---- the list -------------------------------------------------------------------- */

static bool step_free(Normal *step)
{
    free(step->from);
    free(step->to);
    regex_free(step->regex);
    return false;
}

static bool add(Normaliser *n, Normal step, Error *err)
{
    if (n->count == NORMALS_MAX) {
        error_set(err, ERR_MODEL, "more than %d normalisers in a row are not read",
                  NORMALS_MAX);
        return step_free(&step);
    }
    n->steps[n->count++] = step;
    return true;
}

bool normaliser_add(Normaliser *n, NormalKind kind, Error *err)
{
    return add(n, (Normal){ .kind = kind }, err);
}

static char *copy(const char *text, size_t length)
{
    char *out = malloc(length + 1);

    if (out) {
        memcpy(out, text, length);
        out[length] = '\0';
    }
    return out;
}

bool normaliser_add_text(Normaliser *n, NormalKind kind, const char *from, size_t from_length,
                         const char *to, size_t to_length, Error *err)
{
    Normal step = { .kind = kind, .from = from ? copy(from, from_length) : NULL,
                    .to = copy(to, to_length), .from_length = from_length,
                    .to_length = to_length };

    if ((from && !step.from) || !step.to) {
        error_set(err, ERR_NOMEM, "no memory for a tokenizer's normaliser");
        return step_free(&step);
    }
    return add(n, step, err);
}

bool normaliser_add_pattern(Normaliser *n, const char *pattern, size_t length, const char *to,
                            size_t to_length, Error *err)
{
    Regex *regex = regex_new(pattern, length, err);

    if (!regex)
        return false;
    if (!normaliser_add_text(n, NORMAL_PATTERN, NULL, 0, to, to_length, err)) {
        regex_free(regex);
        return false;
    }
    n->steps[n->count - 1].regex = regex;
    return true;
}

void normaliser_free(Normaliser *n)
{
    for (int i = 0; i < n->count; i++)
        step_free(&n->steps[i]);
    n->count = 0;
}

/* ---- steps ----------------------------------------------------------------------- */

static bool is_ascii(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] & 0x80)
            return false;
    return true;
}

/* GLib stops at NUL, so the parts between are done alone: NUL composes with nothing. */
static void compose(const char *text, size_t length, GNormalizeMode mode, Text *out)
{
    if (is_ascii(text, length)) {
        text_add_bytes(out, text, length);
        return;
    }
    for (size_t at = 0; at <= length; at++) {
        size_t part = strnlen(text + at, length - at);
        char  *form = part > 0 ? g_utf8_normalize(text + at, (gssize)part, mode) : NULL;

        text_add_bytes(out, form ? form : text + at, form ? strlen(form) : part);
        g_free(form);
        at += part;
        if (at < length)
            text_add_bytes(out, "", 1);
    }
}

static void add_code(Text *out, uint32_t code)
{
    char bytes[4];

    text_add_bytes(out, bytes, (size_t)utf8_encode(code, bytes));
}

/* GLib changes letters only: numerals U+2160 and circled letters U+24B6 have a case, too.  U+0130
 * is the one character that has a longer lower case. */
static void lower(uint32_t code, Text *out)
{
    uint32_t small = g_unichar_tolower(code);

    if (code >= 0x2160 && code <= 0x216F)
        small = code + 16;
    else if (code >= 0x24B6 && code <= 0x24CF)
        small = code + 26;
    add_code(out, small);
    if (code == 0x130)
        add_code(out, 0x307);
}

static void clean(uint32_t code, Text *out)
{
    GUnicodeType type = g_unichar_type(code);

    if (code == '\t' || code == '\n' || code == '\r' || type == G_UNICODE_SPACE_SEPARATOR ||
        type == G_UNICODE_LINE_SEPARATOR || type == G_UNICODE_PARAGRAPH_SEPARATOR)
        text_add(out, " ");
    else if (code != 0xFFFD && type != G_UNICODE_CONTROL && type != G_UNICODE_FORMAT &&
             type != G_UNICODE_PRIVATE_USE)
        add_code(out, code);
}

/* The ranges of BERT's own code; 2B820-2B91F is missing there. */
static bool is_chinese(uint32_t c)
{
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
           (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

static void each_character(NormalKind kind, uint32_t code, Text *out)
{
    bool drop = false;

    switch (kind) {
    case NORMAL_LOWER: lower(code, out); return;
    case NORMAL_CLEAN: clean(code, out); return;
    case NORMAL_ACCENTS: drop = g_unichar_type(code) == G_UNICODE_NON_SPACING_MARK; break;
    case NORMAL_MARKS: drop = g_unichar_ismark(code); break;
    case NORMAL_CHINESE:
        if (is_chinese(code)) {
            text_add(out, " ");
            add_code(out, code);
            text_add(out, " ");
            return;
        }
        break;
    default: break;
    }
    if (!drop)
        add_code(out, code);
}

/* Runs of ASCII letters and the like that the step leaves alone are added whole. */
static bool stays(NormalKind kind, char byte)
{
    if (byte & 0x80)
        return false;
    if (kind == NORMAL_LOWER)
        return byte < 'A' || byte > 'Z';
    return kind != NORMAL_CLEAN || (byte >= ' ' && byte < 127);
}

static void characters(NormalKind kind, const char *text, size_t length, Text *out)
{
    for (size_t at = 0; at < length;) {
        size_t   run = 0;
        uint32_t code;

        while (at + run < length && stays(kind, text[at + run]))
            run++;
        text_add_bytes(out, text + at, run);
        at += run;
        if (at == length)
            break;
        at += (size_t)utf8_decode(text + at, length - at, &code);
        each_character(kind, code, out);
    }
}

static void strip(NormalKind kind, const char *text, size_t length, Text *out)
{
    size_t   start = 0, end = 0;
    uint32_t code;

    if (kind == NORMAL_STRIP_LEFT)
        for (size_t bytes; start < length; start += bytes) {
            bytes = (size_t)utf8_decode(text + start, length - start, &code);
            if (!split_is_space(code))
                break;
        }
    for (size_t at = start, bytes; at < length; at += bytes) {
        bytes = (size_t)utf8_decode(text + at, length - at, &code);
        if (kind == NORMAL_STRIP_LEFT || !split_is_space(code))
            end = at + bytes;
    }
    text_add_bytes(out, text + start, end > start ? end - start : 0);
}

static void replace(const Normal *step, const char *text, size_t length, Text *out)
{
    const char *end = text + length;

    for (const char *found; text < end; text = found + step->from_length) {
        found = step->from_length ? memmem(text, (size_t)(end - text), step->from,
                                           step->from_length) : NULL;
        text_add_bytes(out, text, (size_t)((found ? found : end) - text));
        if (!found)
            return;
        text_add_bytes(out, step->to, step->to_length);
    }
}

static bool replace_matches(const Normal *step, const char *text, size_t length, RegexWork *work,
                            Text *out, Error *err)
{
    size_t    from = 0;
    RegexSpan span = { 0, 0 };

    for (bool found;; from = span.end) {
        if (!regex_next(step->regex, work, text, length, from, &span, &found, err))
            return false;
        text_add_bytes(out, text + from, (found ? span.start : length) - from);
        if (!found)
            return true;
        text_add_bytes(out, step->to, step->to_length);
    }
}

static bool run_step(const Normal *step, const char *text, size_t length, RegexWork *work,
                     Text *out, Error *err)
{
    switch (step->kind) {
    case NORMAL_NFC:  compose(text, length, G_NORMALIZE_NFC, out); break;
    case NORMAL_NFD:  compose(text, length, G_NORMALIZE_NFD, out); break;
    case NORMAL_NFKC: compose(text, length, G_NORMALIZE_NFKC, out); break;
    case NORMAL_NFKD: compose(text, length, G_NORMALIZE_NFKD, out); break;
    case NORMAL_STRIP_LEFT:
    case NORMAL_STRIP_RIGHT: strip(step->kind, text, length, out); break;
    case NORMAL_PREPEND:
        text_add_bytes(out, step->to, length > 0 ? step->to_length : 0);
        text_add_bytes(out, text, length);
        break;
    case NORMAL_REPLACE: replace(step, text, length, out); break;
    case NORMAL_PATTERN: return replace_matches(step, text, length, work, out, err);
    default: characters(step->kind, text, length, out); break;
    }
    return true;
}

bool normaliser_run(const Normaliser *n, const char *text, size_t length, RegexWork *work,
                    Text *in, Text *out, Error *err)
{
    text_clear(out);
    text_add_bytes(out, text, length);
    for (int i = 0; i < n->count; i++) {
        Text swap = *in;

        *in = *out;
        *out = swap;
        text_clear(out);
        if (!run_step(&n->steps[i], text_str(in), in->length, work, out, err))
            return false;
    }
    if (!text_ok(in) || !text_ok(out))
        return error_set(err, ERR_NOMEM, "no memory to normalise a text of %zu bytes", length);
    return true;
}
