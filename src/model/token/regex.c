/* regex.c -- PCRE2; see regex.h. */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "model/token/regex.h"

#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/utf8.h"
#include "model/token/vocab.h"

#define PATTERN_MAX 65536     /* bytes; patterns of models have a few hundred */
#define STEPS       100000    /* of one match, and 20 for each byte of the piece */
#define KIB_MAX     (1 << 18) /* of memory for backtracking */

struct Regex {
    pcre2_code *code;
    Shown       pattern;
};

struct RegexWork {
    pcre2_match_data    *match;
    pcre2_match_context *limits;
};

/* ---- the pattern ----------------------------------------------------------------- */

/* Classes that PCRE2 has otherwise than Oniguruma, for which the patterns are written: its \s
 * holds U+180E, its \w no marks, and its \h is white space. */
static const struct {
    char        name;
    const char *members;
} classes[] = {
    { 's', "\\x09-\\x0d\\x{85}\\p{Z}" },
    { 'w', "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}" },
    { 'h', "0-9a-fA-F" },
};

/* Members of the class that \NAME names; *other: all but these. */
static const char *class_members(char name, bool *other)
{
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        *other = name == classes[i].name - 'a' + 'A';
        if (*other || name == classes[i].name)
            return classes[i].members;
    }
    return NULL;
}

/* A pattern as it is translated. */
typedef struct Translation {
    const char *at, *end;
    Text       *out;
    int         depth; /* of brackets */
    bool        first; /* nothing but ^ stands in them yet */
    bool        after; /* an inner bracket was closed just now */
} Translation;

/* Characters of the escape or of [:name:] that begins here; 0: neither. */
static size_t unit_length(const Translation *t)
{
    size_t      left = (size_t)(t->end - t->at);
    const char *stop;

    if (left > 1 && *t->at == '\\')
        return 2;
    if (left < 4 || t->depth == 0 || memcmp(t->at, "[:", 2) != 0)
        return 0;
    stop = memchr(t->at, ']', left);
    return stop && stop[-1] == ':' && stop > t->at + 2 ? (size_t)(stop - t->at) + 1 : 0;
}

static void add_unit(Translation *t, size_t length)
{
    bool        inside = t->depth > 0, other = false;
    const char *members = *t->at == '\\' ? class_members(t->at[1], &other) : NULL;

    if (members && !(inside && other)) {
        text_add(t->out, inside ? "" : other ? "[^" : "[");
        text_add(t->out, members);
        text_add(t->out, inside ? "" : "]");
    } else {
        text_add_bytes(t->out, t->at, length);
    }
}

/* One character within brackets.  Oniguruma's inner brackets are a set that joins the outer one,
 * PCRE2's are characters: the members are written without them.  Beside them - is no range. */
static void add_member(Translation *t)
{
    bool opens = *t->at == '[', closes = *t->at == ']' && !t->first;

    t->depth += opens - closes;
    if (*t->at == ']' && !closes)
        text_add(t->out, "\\]");
    else if (*t->at == '-' && (t->after || (t->end - t->at > 1 && t->at[1] == '[')))
        text_add(t->out, "\\-");
    else if (!opens && (!closes || t->depth == 0))
        text_add_bytes(t->out, t->at, 1);
    t->first = opens || (t->first && *t->at == '^');
    t->after = closes;
}

/* What PCRE2 has no form of: an inner set of all but its members, and members of both sets. */
static const char *unread_set(const Translation *t)
{
    if (t->depth == 0 || t->end - t->at < 2)
        return NULL;
    return memcmp(t->at, "[^", 2) == 0   ? "[^ within brackets"
           : memcmp(t->at, "&&", 2) == 0 ? "&& within brackets"
                                         : NULL;
}

/* NULL, or what is not read. */
static const char *translate(const char *pattern, size_t length, Text *out)
{
    Translation t = { .at = pattern, .end = pattern + length, .out = out };

    while (t.at < t.end) {
        size_t unit = unit_length(&t);

        if (unit) {
            add_unit(&t, unit);
            t.first = t.after = false;
        } else if (unread_set(&t)) {
            return unread_set(&t);
        } else if (t.depth > 0) {
            add_member(&t);
        } else {
            text_add_bytes(out, t.at, 1);
            t.depth = *t.at == '[';
            t.first = t.depth > 0;
        }
        t.at += unit ? unit : 1;
    }
    return NULL;
}

static bool refuse_pattern(const char *pattern, size_t length, const char *why, Error *err)
{
    return error_set(err, ERR_MODEL, "the pattern \"%s\" is not read: %s; give the ids (--ids)",
                     shown(pattern, length).text, why);
}

static pcre2_code *compile(const char *pattern, size_t length, Error *err)
{
    /* Oniguruma's ^ and $ are those of every line. */
    uint32_t    options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    int         number;
    PCRE2_SIZE  offset = 0;
    PCRE2_UCHAR why[160] = "";
    pcre2_code *code;
    const char *unread;
    Text        text = { 0 };

    if (length > PATTERN_MAX) {
        error_set(err, ERR_MODEL, "the pattern \"%s\" has %zu bytes; at most %d are read",
                  shown(pattern, length).text, length, PATTERN_MAX);
        return NULL;
    }
    unread = translate(pattern, length, &text);
    if (unread || !text_ok(&text)) {
        text_free(&text);
        if (unread)
            refuse_pattern(pattern, length, unread, err);
        else
            error_set(err, ERR_NOMEM, "no memory for a tokenizer's pattern");
        return NULL;
    }
    code = pcre2_compile((PCRE2_SPTR)text_str(&text), text.length, options, &number, &offset,
                         NULL);
    text_free(&text);
    if (!code) {
        pcre2_get_error_message(number, why, sizeof(why));
        refuse_pattern(pattern, length, (const char *)why, err);
    }
    return code;
}

Regex *regex_new(const char *pattern, size_t length, Error *err)
{
    Regex *r = malloc(sizeof(*r));

    if (!r) {
        error_set(err, ERR_NOMEM, "no memory for a tokenizer's pattern");
        return NULL;
    }
    r->pattern = shown(pattern, length);
    r->code = compile(pattern, length, err);
    if (!r->code) {
        free(r);
        return NULL;
    }
    return r;
}

void regex_free(Regex *r)
{
    if (!r)
        return;
    pcre2_code_free(r->code);
    free(r);
}

/* ---- matching -------------------------------------------------------------------- */

RegexWork *regex_work_new(void)
{
    RegexWork *w = malloc(sizeof(*w));

    if (!w)
        return NULL;
    w->match = pcre2_match_data_create(1, NULL);
    w->limits = pcre2_match_context_create(NULL);
    if (!w->match || !w->limits) {
        regex_work_free(w);
        return NULL;
    }
    pcre2_set_heap_limit(w->limits, KIB_MAX);
    return w;
}

void regex_work_free(RegexWork *w)
{
    if (!w)
        return;
    pcre2_match_data_free(w->match);
    pcre2_match_context_free(w->limits);
    free(w);
}

static bool refuse_match(const Regex *r, int number, size_t from, Error *err)
{
    PCRE2_UCHAR why[160] = "";

    pcre2_get_error_message(number, why, sizeof(why));
    return error_set(err, ERR_MODEL,
                     "the tokenizer's pattern \"%s\" gives up at byte %zu of a piece of the text: "
                     "%s; give the ids (--ids)", r->pattern.text, from, (const char *)why);
}

bool regex_next(const Regex *r, RegexWork *w, const char *text, size_t length, size_t from,
                RegexSpan *span, bool *found, Error *err)
{
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(w->match);

    *found = false;
    pcre2_set_match_limit(w->limits, length < INT32_MAX / 20 ? STEPS + 20 * (uint32_t)length
                                                             : INT32_MAX);
    while (from < length) {
        int bytes, number = pcre2_match(r->code, (PCRE2_SPTR)text, length, from,
                                        PCRE2_NO_UTF_CHECK, w->match, w->limits);

        if (number == PCRE2_ERROR_NOMATCH)
            return true;
        if (number < 0)
            return refuse_match(r, number, from, err);
        /* \K can put the start anywhere. */
        if (at[0] >= from && at[1] > at[0]) {
            *span = (RegexSpan){ at[0], at[1] };
            *found = true;
            return true;
        }
        if (at[1] > from)
            from = at[1];
        bytes = utf8_decode(text + from, length - from, NULL);
        from += bytes > 0 ? (size_t)bytes : 1;
    }
    return true;
}
