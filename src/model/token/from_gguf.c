/* from_gguf.c -- the tokenizer in a GGUF's tokenizer.ggml.* keys. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"
#include "model/file/gguf.h"
#include "model/token/parts.h"

#define KEY(name) "tokenizer.ggml." name

enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER, TYPE_UNUSED, TYPE_BYTE };

/* ---- keys ------------------------------------------------------------------------ */

static bool is_list(const GgufKey *k, GgufType element)
{
    return k && k->type == GGUF_ARRAY && k->element == element;
}

static bool key_bool(const Gguf *g, const char *name, bool otherwise)
{
    const GgufKey *k = gguf_key(g, name);
    int64_t        value;

    return k && k->type != GGUF_ARRAY && gguf_integer(k, 0, &value) ? value != 0 : otherwise;
}

/* *id stays where there is no such key. */
static bool key_id(const Gguf *g, const char *name, const Tokenizer *t, int32_t *id, Error *err)
{
    const GgufKey *k = gguf_key(g, name);
    int64_t        value;

    if (!k)
        return true;
    if (k->type == GGUF_ARRAY || !gguf_integer(k, 0, &value))
        return error_set(err, ERR_MODEL, "%s at byte %lld: expected an id", name,
                         (long long)k->offset);
    if (value < 0 || value >= t->vocab.size)
        return error_set(err, ERR_MODEL, "%s at byte %lld is %lld; ids are 0 to %lld", name,
                         (long long)k->offset, (long long)value, (long long)t->vocab.size - 1);
    *id = (int32_t)value;
    return true;
}

static bool key_is(const GgufKey *k, const char *text)
{
    GgufString s;

    return k && gguf_string(k, &s) && (size_t)s.length == strlen(text) &&
           memcmp(s.text, text, (size_t)s.length) == 0;
}

static bool refuse_key(const GgufKey *k, const char *name, const char *known, Error *err)
{
    GgufString s = { "", 0 };

    if (!k)
        return error_set(err, ERR_MODEL, "%s is missing; expected one of %s; give the ids "
                         "(--ids)", name, known);
    gguf_string(k, &s);
    return error_set(err, ERR_MODEL, "%s \"%s\" is not read (read are %s); give the ids "
                     "(--ids)", name, shown(s.text, (size_t)s.length).text, known);
}

/* ---- the vocabulary -------------------------------------------------------------- */

static bool is_text(const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        int bytes = utf8_decode(text + at, length - at, NULL);

        if (bytes == 0)
            return false;
        at += (size_t)bytes;
    }
    return true;
}

/* BERT's tokens are written the other way round: U+2581 before the first of a word. */
static void put_word(Tokenizer *t, int32_t id, GgufString s)
{
    size_t length = (size_t)s.length, mark = strlen(MARK);
    bool   named = length > 2 && s.text[0] == '[' && s.text[length - 1] == ']';
    Text   word = { 0 };

    if (!named && length > mark && memcmp(s.text, MARK, mark) == 0) {
        vocab_put(&t->vocab, id, s.text + mark, length - mark);
    } else if (named || length == 0) {
        vocab_put(&t->vocab, id, s.text, length);
    } else {
        text_add(&word, "##");
        text_add_bytes(&word, s.text, length);
        vocab_put(&t->vocab, id, text_str(&word), word.length);
        t->vocab.failed = t->vocab.failed || !text_ok(&word);
        text_free(&word);
    }
}

static bool read_tokens(Tokenizer *t, const Gguf *g, Error *err)
{
    const GgufKey *k = gguf_key(g, KEY("tokens"));
    const uint8_t *cursor = NULL;
    GgufString     s;

    if (!is_list(k, GGUF_STRING) || k->count < 1 || k->count > IDS_MAX)
        return error_set(err, ERR_MODEL, KEY("tokens") ": expected a list of 1 to %d strings",
                         IDS_MAX);
    for (int64_t id = 0; id < k->count; id++) {
        if (!gguf_next_string(k, &cursor, &s))
            return error_set(err, ERR_MODEL, KEY("tokens") ": the list ends at token %lld",
                             (long long)id);
        if (!is_text(s.text, (size_t)s.length))
            return error_set(err, ERR_MODEL, KEY("tokens") ": token %lld \"%s\" is not UTF-8",
                             (long long)id, shown(s.text, (size_t)s.length).text);
        if (t->model == MODEL_WORDPIECE)
            put_word(t, (int32_t)id, s);
        else
            vocab_put(&t->vocab, (int32_t)id, s.text, (size_t)s.length);
    }
    return !t->vocab.failed || error_set(err, ERR_NOMEM, "no memory for %lld tokens",
                                         (long long)k->count);
}

/* Control and user's tokens are taken out of a text first; one stands for what is unknown. */
static bool read_types(Tokenizer *t, const Gguf *g, Error *err)
{
    const GgufKey *k = gguf_key(g, KEY("token_type"));

    if (!k)
        return true;
    if (k->type != GGUF_ARRAY || k->count != t->vocab.size)
        return error_set(err, ERR_MODEL, KEY("token_type") " at byte %lld: expected a list of "
                         "%lld numbers, one a token", (long long)k->offset,
                         (long long)t->vocab.size);
    for (int64_t id = 0; id < k->count; id++) {
        int64_t     type;
        size_t      length;
        const char *text = vocab_text(&t->vocab, (int32_t)id, &length);

        if (!gguf_integer(k, id, &type))
            return error_set(err, ERR_MODEL, KEY("token_type") ": entry %lld is not a whole "
                             "number", (long long)id);
        if (type == TYPE_UNKNOWN)
            t->bpe.unknown = t->unigram.unknown = (int32_t)id;
        if ((type == TYPE_CONTROL || type == TYPE_USER) &&
            !tokenizer_add_token(t, (int32_t)id, text, length, type == TYPE_CONTROL, err))
            return false;
    }
    return true;
}

static bool read_scores(Tokenizer *t, const Gguf *g, Error *err)
{
    const GgufKey *k = gguf_key(g, KEY("scores"));
    size_t         count = (size_t)t->vocab.size;
    double         lowest = HUGE_VAL, *scores;

    if (!k || k->type != GGUF_ARRAY || k->count != t->vocab.size)
        return error_set(err, ERR_MODEL, KEY("scores") ": expected a list of %zu numbers, one a "
                         "token", count);
    scores = malloc(count * sizeof(*scores));
    t->unigram.scores = scores;
    if (t->model == MODEL_BPE)
        t->bpe.scores = malloc(count * sizeof(*t->bpe.scores));
    if (!scores || (t->model == MODEL_BPE && !t->bpe.scores))
        return error_set(err, ERR_NOMEM, "no memory for %zu scores", count);
    for (size_t id = 0; id < count; id++) {
        if (!gguf_number(k, (int64_t)id, &scores[id]) || !isfinite(scores[id]))
            return error_set(err, ERR_MODEL, KEY("scores") ": entry %zu is not a finite number",
                             id);
        lowest = scores[id] < lowest ? scores[id] : lowest;
        if (t->bpe.scores)
            t->bpe.scores[id] = (float)scores[id];
    }
    t->unigram.unknown_score = lowest - 10;
    return true;
}

static bool read_merges(Tokenizer *t, const Gguf *g, Error *err)
{
    const GgufKey *k = gguf_key(g, KEY("merges"));
    const uint8_t *cursor = NULL;
    GgufString     s;
    int64_t        unknown = 0;

    if (!is_list(k, GGUF_STRING) || k->count > INT32_MAX)
        return error_set(err, ERR_MODEL, KEY("merges") ": expected a list of \"left right\"");
    for (int64_t i = 0; i < k->count; i++) {
        bool        there = gguf_next_string(k, &cursor, &s), known;
        const char *blank = there ? memchr(s.text, ' ', (size_t)s.length) : NULL;
        size_t      left = blank ? (size_t)(blank - s.text) : 0, right;

        right = left ? (size_t)s.length - left - 1 : 0;
        if (right == 0 || memchr(blank + 1, ' ', right))
            return error_set(err, ERR_MODEL, KEY("merges") ": entry %lld \"%s\": expected "
                             "\"left right\"", (long long)i,
                             there ? shown(s.text, (size_t)s.length).text : "");
        if (!tokenizer_add_merge(t, s.text, left, blank + 1, right, (int32_t)i, &known, err))
            return false;
        unknown += !known;
    }
    if (unknown > 0)
        tokenizer_note(t, "%lld merges are of texts that are not in the vocabulary",
                       (long long)unknown);
    return true;
}

/* ---- the four models ------------------------------------------------------------- */

static const struct {
    const char *name, *split;
    bool        digits, composed, whole;
} pres[] = {
    { "gpt-2", split_gpt2, false, false, false },
    { "smollm", split_gpt2, true, false, false },
    { "starcoder", split_gpt2, true, false, false },
    { "refact", split_gpt2, true, false, false },
    { "command-r", split_gpt2, true, false, false },
    { "llama-bpe", split_llama3, false, false, true },
    { "llama3", split_llama3, false, false, true },
    { "llama-v3", split_llama3, false, false, true },
    { "qwen2", split_qwen2, false, true, false },
    { "deepseek-r1-qwen", split_qwen2, false, true, false },
    { "megrez", split_qwen2, false, true, false },
};

static bool use_pre(Tokenizer *t, const Gguf *g, Error *err)
{
    const GgufKey *k = gguf_key(g, KEY("pre"));
    bool           blank = key_bool(g, KEY("add_space_prefix"), false);
    size_t         i = 0, count = sizeof(pres) / sizeof(pres[0]);

    if (!k || key_is(k, "default")) {
        tokenizer_note(t, "the file does not say how its tokenizer cuts a text (" KEY("pre") "): "
                       "GPT-2's way is taken, and the ids may differ from the model's own");
    } else {
        while (i < count && !key_is(k, pres[i].name))
            i++;
        if (i == count)
            return refuse_key(k, KEY("pre"), "gpt-2, smollm, starcoder, refact, command-r, "
                              "llama-bpe, llama3, llama-v3, qwen2, deepseek-r1-qwen, megrez, "
                              "default", err);
    }
    t->bpe.whole_pieces = pres[i].whole;
    return (!pres[i].composed || normaliser_add(&t->normaliser, NORMAL_NFC, err)) &&
           (!pres[i].digits || splitter_add_regex(&t->splitter, split_digits,
                                                  strlen(split_digits), MATCH_ISOLATED, err)) &&
           tokenizer_use_bytes(t, blank, pres[i].split, err);
}

static bool use_marks(Tokenizer *t, const Gguf *g, Error *err)
{
    return (!key_bool(g, KEY("add_space_prefix"), true) ||
            normaliser_add_text(&t->normaliser, NORMAL_PREPEND, NULL, 0, MARK, strlen(MARK),
                                err)) &&
           normaliser_add_text(&t->normaliser, NORMAL_REPLACE, " ", 1, MARK, strlen(MARK), err);
}

static bool read_gpt2(Tokenizer *t, const Gguf *g, Error *err)
{
    t->model = MODEL_BPE;
    if (!read_tokens(t, g, err) || !read_types(t, g, err))
        return false;
    t->bpe.unknown = -1; /* bytes that are no token are dropped */
    return read_merges(t, g, err) && use_pre(t, g, err);
}

static bool read_llama(Tokenizer *t, const Gguf *g, Error *err)
{
    t->model = MODEL_BPE;
    return read_tokens(t, g, err) && read_types(t, g, err) && read_scores(t, g, err) &&
           use_marks(t, g, err) && key_id(g, KEY("unknown_token_id"), t, &t->bpe.unknown, err);
}

/* Newer files hold a table of what is replaced by what. */
static bool use_charsmap(Tokenizer *t, const Gguf *g, Error *err)
{
    const GgufKey *k = gguf_key(g, KEY("precompiled_charsmap"));

    if (k && k->count > 0) {
        t->ascii_only = true;
        tokenizer_note(t, "the tokenizer's normaliser (precompiled_charsmap) is not read: only "
                       "printable ASCII can be encoded");
    }
    return !key_bool(g, KEY("remove_extra_whitespaces"), false) ||
           (normaliser_add(&t->normaliser, NORMAL_STRIP_LEFT, err) &&
            normaliser_add(&t->normaliser, NORMAL_STRIP_RIGHT, err) &&
            normaliser_add_pattern(&t->normaliser, " {2,}", 5, " ", 1, err));
}

static bool read_t5(Tokenizer *t, const Gguf *g, Error *err)
{
    t->model = MODEL_UNIGRAM;
    return read_tokens(t, g, err) && read_types(t, g, err) && read_scores(t, g, err) &&
           use_charsmap(t, g, err) && use_marks(t, g, err) &&
           key_id(g, KEY("unknown_token_id"), t, &t->unigram.unknown, err);
}

static bool read_bert(Tokenizer *t, const Gguf *g, Error *err)
{
    t->model = MODEL_WORDPIECE;
    if (!read_tokens(t, g, err) || !read_types(t, g, err))
        return false;
    t->wordpiece.unknown = vocab_find_word(&t->vocab, "[UNK]");
    return key_id(g, KEY("unknown_token_id"), t, &t->wordpiece.unknown, err) &&
           tokenizer_use_bert(t, true, true, true, true, err) &&
           splitter_add(&t->splitter, (Split){ .kind = SPLIT_BERT }, err);
}

/* ---- tokens around a text --------------------------------------------------------- */

/* Whether a text begins with a token where the file does not say so, as in llama.cpp: those of all
 * Llamas do. */
static bool usually_begins(const Tokenizer *t)
{
    return t->bpe.scores || t->bpe.whole_pieces;
}

static bool read_ends(Tokenizer *t, const Gguf *g, Error *err)
{
    int32_t cls = vocab_find_word(&t->vocab, "[CLS]"), sep = vocab_find_word(&t->vocab, "[SEP]");

    if (!key_id(g, KEY("bos_token_id"), t, &t->begin, err) ||
        !key_id(g, KEY("eos_token_id"), t, &t->end, err))
        return false;
    if (t->model != MODEL_WORDPIECE) {
        bool before = key_bool(g, KEY("add_bos_token"), usually_begins(t)) && t->begin >= 0;
        bool after = key_bool(g, KEY("add_eos_token"), t->model == MODEL_UNIGRAM) && t->end >= 0;

        return (!before || around_add(&t->before, t->begin, t, err)) &&
               (!after || around_add(&t->after, t->end, t, err));
    }
    if (!key_id(g, KEY("cls_token_id"), t, &cls, err) ||
        !key_id(g, KEY("seperator_token_id"), t, &sep, err))
        return false;
    t->begin = cls >= 0 ? cls : t->begin;
    t->end = sep >= 0 ? sep : t->end;
    return (t->begin < 0 || around_add(&t->before, t->begin, t, err)) &&
           (t->end < 0 || around_add(&t->after, t->end, t, err));
}

static bool read_all(Tokenizer *t, const Gguf *g, Error *err)
{
    static const struct {
        const char *name;
        bool (*read)(Tokenizer *t, const Gguf *g, Error *err);
    } models[] = { { "gpt2", read_gpt2 }, { "llama", read_llama }, { "t5", read_t5 },
                   { "bert", read_bert } };
    const GgufKey *k = gguf_key(g, KEY("model"));

    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
        if (key_is(k, models[i].name))
            return models[i].read(t, g, err) && read_ends(t, g, err) && tokenizer_finish(t, err);
    return refuse_key(k, KEY("model"), "gpt2, llama, t5, bert", err);
}

Tokenizer *tokenizer_from_gguf(const Gguf *g, Error *err)
{
    Tokenizer *t = tokenizer_new(err);

    if (t && !read_all(t, g, err)) {
        tokenizer_free(t);
        return NULL;
    }
    return t;
}
