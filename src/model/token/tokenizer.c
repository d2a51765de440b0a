/* tokenizer.c -- the parts of a tokenizer together; see tokenizer.h and parts.h.
 *
 * Added tokens are taken out of a text first.  Each stretch between them is normalised, cut into
 * pieces, and each piece goes through the model alone.
 */
#include "model/token/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"
#include "model/token/parts.h"

/* ---- making one ------------------------------------------------------------------ */

Tokenizer *tokenizer_new(Error *err)
{
    Tokenizer *t = calloc(1, sizeof(*t));

    if (!t) {
        error_set(err, ERR_NOMEM, "no memory for a tokenizer");
        return NULL;
    }
    t->begin = t->end = -1;
    t->bpe.unknown = t->unigram.unknown = t->wordpiece.unknown = -1;
    t->wordpiece.longest = 100;
    memcpy(t->wordpiece.prefix, "##", 3);
    return t;
}

void tokenizer_free(Tokenizer *t)
{
    if (!t)
        return;
    vocab_free(&t->vocab);
    vocab_free(&t->added);
    free(t->added_tokens);
    free(t->roles);
    normaliser_free(&t->normaliser);
    splitter_free(&t->splitter);
    bpe_free(&t->bpe);
    free(t->unigram.scores);
    text_free(&t->notes);
    free(t);
}

void tokenizer_note(Tokenizer *t, const char *fmt, ...)
{
    char    note[400];
    va_list args;

    va_start(args, fmt);
    vsnprintf(note, sizeof(note), fmt, args);
    va_end(args);
    text_add(&t->notes, t->notes.length > 0 ? "; " : "");
    text_add(&t->notes, note);
}

bool tokenizer_add_token(Tokenizer *t, int32_t id, const char *text, size_t length, bool control,
                         Error *err)
{
    int32_t there = vocab_find(&t->vocab, text, length);
    int64_t at = t->added.size;

    if (length == 0)
        return true;
    if (there >= 0)
        id = there;
    else if (!vocab_has(&t->vocab, id))
        vocab_name(&t->vocab, id, text, length);
    vocab_put(&t->added, (int32_t)at, text, length);
    if (t->vocab.failed || t->added.failed ||
        !array_reserve(&t->added_tokens, &t->added_room, at + 1, sizeof(*t->added_tokens)))
        return error_set(err, ERR_NOMEM, "no memory for the vocabulary");
    t->added_tokens[at] = (AddedToken){ id, control };
    t->added_first[(uint8_t)text[0]] = true;
    return true;
}

int32_t tokenizer_id_of(const Tokenizer *t, const char *text)
{
    int32_t id = vocab_find_word(&t->vocab, text), added = vocab_find_word(&t->added, text);

    return id < 0 && added >= 0 ? t->added_tokens[added].id : id;
}

bool around_add(Around *a, int64_t id, const Tokenizer *t, Error *err)
{
    if (id < 0 || id >= t->vocab.size)
        return error_set(err, ERR_MODEL, "a token around the text has the id %lld; ids are 0 to "
                         "%lld", (long long)id, (long long)t->vocab.size - 1);
    if (a->count == AROUND_MAX)
        return error_set(err, ERR_MODEL, "more than %d tokens before or after a text are "
                         "not read", AROUND_MAX);
    a->ids[a->count++] = (int32_t)id;
    return true;
}

bool tokenizer_use_bytes(Tokenizer *t, bool blank_first, const char *pattern, Error *err)
{
    t->style = STYLE_BYTES;
    return (!blank_first ||
            splitter_add(&t->splitter, (Split){ .kind = SPLIT_BLANK_FIRST }, err)) &&
           (!pattern || splitter_add_regex(&t->splitter, pattern, strlen(pattern), MATCH_ISOLATED,
                                           err)) &&
           splitter_add(&t->splitter, (Split){ .kind = SPLIT_BYTES }, err);
}

bool tokenizer_use_bert(Tokenizer *t, bool clean, bool chinese, bool accents, bool lower,
                        Error *err)
{
    const struct {
        bool       wanted;
        NormalKind kind;
    } steps[] = { { clean, NORMAL_CLEAN }, { chinese, NORMAL_CHINESE }, { accents, NORMAL_NFD },
                  { accents, NORMAL_ACCENTS }, { lower, NORMAL_LOWER } };

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (steps[i].wanted && !normaliser_add(&t->normaliser, steps[i].kind, err))
            return false;
    return true;
}

bool tokenizer_add_merge(Tokenizer *t, const char *left, size_t left_length, const char *right,
                         size_t right_length, int32_t rank, bool *known, Error *err)
{
    Merge  merge = { .left = vocab_find(&t->vocab, left, left_length),
                     .right = vocab_find(&t->vocab, right, right_length), .rank = rank };
    size_t length = left_length + right_length;
    char   joined[1024];

    *known = false;
    if (merge.left < 0 || merge.right < 0 || length > sizeof(joined))
        return true;
    memcpy(joined, left, left_length);
    memcpy(joined + left_length, right, right_length);
    merge.id = vocab_find(&t->vocab, joined, length);
    if (merge.id < 0)
        return true;
    *known = true;
    return bpe_add_merge(&t->bpe, merge) ||
           error_set(err, ERR_NOMEM, "no memory for %d merges", rank);
}

/* The token that the model cannot do without. */
static bool check_unknown(const Tokenizer *t, Error *err)
{
    if (t->model == MODEL_WORDPIECE && t->wordpiece.unknown < 0)
        return error_set(err, ERR_MODEL, "the vocabulary has no token for unknown words; "
                         "WordPiece needs one ([UNK])");
    return true;
}

static const char *kind_of(const Tokenizer *t)
{
    if (t->model != MODEL_BPE)
        return t->model == MODEL_UNIGRAM ? "unigram" : "WordPiece";
    if (t->bpe.scores)
        return "BPE by score";
    if (t->style == STYLE_BYTES)
        return "byte-level BPE";
    return t->bpe.byte_fallback ? "BPE with byte fallback" : "BPE over characters";
}

bool tokenizer_finish(Tokenizer *t, Error *err)
{
    if (t->vocab.size == 0)
        return error_set(err, ERR_MODEL, "the vocabulary has no token");
    if (t->vocab.failed || t->added.failed || !text_ok(&t->notes) ||
        !(t->roles = calloc((size_t)t->vocab.size, 1)))
        return error_set(err, ERR_NOMEM, "no memory for a vocabulary of %lld tokens",
                         (long long)t->vocab.size);
    for (int64_t i = 0; i < t->added.size; i++)
        t->roles[t->added_tokens[i].id] = t->added_tokens[i].control ? ROLE_CONTROL : ROLE_TEXT;
    model_find_bytes(&t->vocab, t->bpe.bytes);
    memcpy(t->unigram.bytes, t->bpe.bytes, sizeof(t->unigram.bytes));
    if (t->model == MODEL_WORDPIECE)
        t->style = STYLE_WORDS;
    else if (t->style == STYLE_PLAIN)
        t->style = STYLE_MARKS;
    t->kind = kind_of(t);
    if (t->begin < 0 && t->before.count > 0)
        t->begin = t->before.ids[0];
    if (t->end < 0 && t->after.count > 0)
        t->end = t->after.ids[t->after.count - 1];
    return check_unknown(t, err);
}

/* ---- a text to ids --------------------------------------------------------------- */

typedef struct Encoder {
    const Tokenizer *t;
    Text             in, out;
    Pieces           pieces_in, pieces;
    RegexWork       *regex;
    ModelWork        work;
    TokenIds         ids;
} Encoder;

static void encoder_free(Encoder *e)
{
    text_free(&e->in);
    text_free(&e->out);
    pieces_free(&e->pieces_in);
    pieces_free(&e->pieces);
    regex_work_free(e->regex);
    model_work_free(&e->work);
    free(e->ids.ids);
}

static bool encode_piece(Encoder *e, const char *text, size_t length, Error *err)
{
    const Tokenizer *t = e->t;

    switch (t->model) {
    case MODEL_BPE:
        return bpe_encode(&t->bpe, &t->vocab, text, length, &e->work, &e->ids, err);
    case MODEL_UNIGRAM:
        return unigram_encode(&t->unigram, &t->vocab, text, length, &e->work, &e->ids, err);
    case MODEL_WORDPIECE: break;
    }
    return wordpiece_encode(&t->wordpiece, &t->vocab, text, length, &e->ids, err);
}

static bool encode_stretch(Encoder *e, const char *text, size_t length, bool begins, Error *err)
{
    const Tokenizer *t = e->t;

    if (length == 0)
        return true;
    if (t->normaliser.count > 0) {
        if (!normaliser_run(&t->normaliser, text, length, e->regex, &e->in, &e->out, err))
            return false;
        text = text_str(&e->out);
        length = e->out.length;
    }
    if (!splitter_run(&t->splitter, text, length, begins, e->regex, &e->pieces_in, &e->pieces,
                      err))
        return false;
    for (int64_t i = 0; i < e->pieces.count; i++)
        if (!encode_piece(e, e->pieces.text.data + e->pieces.list[i].start,
                          e->pieces.list[i].length, err))
            return false;
    return true;
}

static bool encode_all(Encoder *e, const char *text, size_t length, Error *err)
{
    const Tokenizer *t = e->t;
    size_t           from = 0;

    for (size_t at = 0, bytes = 0; at < length; at++) {
        int32_t added = t->added_first[(uint8_t)text[at]]
                            ? vocab_longest(&t->added, "", text + at, length - at, &bytes) : -1;

        if (added < 0)
            continue;
        if (!encode_stretch(e, text + from, at - from, from == 0, err))
            return false;
        ids_add(&e->ids, t->added_tokens[added].id);
        from = at + bytes;
        at = from - 1;
    }
    return encode_stretch(e, text + from, length - from, from == 0, err);
}

static bool check_text(const Tokenizer *t, const char *text, int64_t length, Error *err)
{
    if (length < 0 || length > PIECE_MAX)
        return error_set(err, ERR_DATA, "a text of %lld bytes; at most %d are encoded",
                         (long long)length, PIECE_MAX);
    for (int64_t at = 0, bytes; at < length; at += bytes) {
        uint8_t byte = (uint8_t)text[at];

        bytes = byte < 0x80 ? 1 : utf8_decode(text + at, (size_t)(length - at), NULL);
        if (bytes == 0)
            return error_set(err, ERR_DATA, "byte %lld of the text is 0x%02x, which is not UTF-8 "
                             "there; convert the text to UTF-8", (long long)at, (unsigned)byte);
        if (t->ascii_only && (byte < 0x20 || byte > 0x7E))
            return error_set(err, ERR_MODEL, "byte %lld of the text is 0x%02x: this "
                             "tokenizer's Precompiled normaliser is not read, so a text of "
                             "printable ASCII is needed; or give the ids (--ids)", (long long)at,
                             (unsigned)byte);
    }
    return true;
}

static void add_around(TokenIds *ids, const Around *a)
{
    for (int i = 0; i < a->count; i++)
        ids_add(ids, a->ids[i]);
}

bool tokenizer_encode(const Tokenizer *t, const char *text, int64_t length, bool special,
                      TokenList *out, Error *err)
{
    Encoder e = { .t = t };
    bool    ok = check_text(t, text, length, err);

    *out = (TokenList){ 0 };
    if (ok && !(e.regex = regex_work_new()))
        ok = error_set(err, ERR_NOMEM, "no memory to encode a text");
    if (ok && special)
        add_around(&e.ids, &t->before);
    ok = ok && encode_all(&e, text, (size_t)length, err);
    if (ok && special)
        add_around(&e.ids, &t->after);
    if (ok && e.ids.failed)
        ok = error_set(err, ERR_NOMEM, "no memory for the tokens of a text of %lld bytes",
                       (long long)length);
    if (ok) {
        *out = (TokenList){ e.ids.ids, e.ids.count };
        e.ids.ids = NULL;
    }
    encoder_free(&e);
    return ok;
}

void token_list_free(TokenList *list)
{
    free(list->ids);
    *list = (TokenList){ 0 };
}

/* ---- ids to a text ---------------------------------------------------------------- */

int64_t tokenizer_size(const Tokenizer *t)
{
    return t->vocab.size;
}

const char *tokenizer_kind(const Tokenizer *t)
{
    return t->kind;
}

const char *tokenizer_notes(const Tokenizer *t)
{
    return text_str(&t->notes);
}

int32_t tokenizer_begin(const Tokenizer *t)
{
    return t->begin;
}

int32_t tokenizer_end(const Tokenizer *t)
{
    return t->end;
}

const char *tokenizer_piece(const Tokenizer *t, int32_t id)
{
    return vocab_text(&t->vocab, id, NULL);
}

/* Byte of "<0x0A>"; -1: it is something else. */
static int hex_byte(const char *text, size_t length)
{
    const char *digits = "0123456789ABCDEF", *high, *low;

    if (length != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>' || !text[3] || !text[4])
        return -1;
    high = strchr(digits, text[3]);
    low = strchr(digits, text[4]);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

/* What one character of a token stands for, in out; its bytes. */
static int character_bytes(TokenStyle style, const char *text, int bytes, uint32_t code,
                           char out[4])
{
    int byte = style == STYLE_BYTES ? split_byte_of(code) : -1;

    if (style == STYLE_MARKS && code == 0x2581)
        byte = ' ';
    if (byte >= 0) {
        out[0] = (char)byte;
        return 1;
    }
    memcpy(out, text, (size_t)bytes);
    return bytes;
}

/* The next piece of what a token stands for. */
typedef struct TokenText {
    const char *text;
    size_t      left;
    TokenStyle  style;
    int         byte; /* the one that all of it stands for, or -1 */
} TokenText;

static TokenText piece_begin(const Tokenizer *t, int32_t id)
{
    TokenText p = { 0 };
    size_t    skip = strlen(t->wordpiece.prefix);
    uint8_t   role = vocab_has(&t->vocab, id) ? t->roles[id] : ROLE_CONTROL;

    p.text = vocab_text(&t->vocab, id, &p.left);
    p.style = role == ROLE_TEXT ? STYLE_PLAIN : t->style;
    p.byte = p.style == STYLE_MARKS ? hex_byte(p.text, p.left) : -1;
    if (p.style == STYLE_WORDS && p.left > skip && !memcmp(p.text, t->wordpiece.prefix, skip)) {
        p.text += skip;
        p.left -= skip;
    }
    if (role == ROLE_CONTROL && p.byte < 0)
        p.left = 0;
    return p;
}

/* Bytes of the next character; 0: there is none. */
static int piece_next(TokenText *p, char out[4])
{
    uint32_t code;
    int      bytes;

    if (!p->left)
        return 0;
    if (p->byte >= 0) {
        out[0] = (char)p->byte;
        p->left = 0;
        return 1;
    }
    bytes = utf8_decode(p->text, p->left, &code);
    p->text += bytes;
    p->left -= (size_t)bytes;
    return character_bytes(p->style, p->text - bytes, bytes, code, out);
}

void tokenizer_add_bytes(const Tokenizer *t, int32_t id, Text *out)
{
    TokenText p = piece_begin(t, id);
    char      part[4];

    for (int count; (count = piece_next(&p, part)) > 0;)
        text_add_bytes(out, part, (size_t)count);
}

int64_t tokenizer_bytes(const Tokenizer *t, int32_t id, char *out, int64_t size)
{
    TokenText p = piece_begin(t, id);
    int64_t   used = 0;
    char      part[4];

    if (size <= 0)
        return 0;
    for (int count; (count = piece_next(&p, part)) > 0 && used + count < size; used += count)
        memcpy(out + used, part, (size_t)count);
    out[used] = '\0';
    return used;
}
