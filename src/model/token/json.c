/* json.c -- tokenizer.json of the Hugging Face tokenizers library.
 *
 * An object: added_tokens, normalizer, pre_tokenizer, model, post_processor.  truncation, padding
 * and decoder do not change the ids of a whole text.  A part of a type that is not read here is
 * refused by its name: to leave it out would give ids that are only nearly right.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/token/parts.h"

static bool is_true(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static const char *type_of(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));

    return type ? type : "";
}

static bool is_type(const json_t *part, const char *type)
{
    return strcmp(type_of(part), type) == 0;
}

static bool refuse_type(const json_t *part, const char *what, const char *known, Error *err)
{
    const char *type = type_of(part);

    return error_set(err, ERR_MODEL, "%s of type \"%s\" is not read (read are %s); give the "
                     "ids (--ids)", what, shown(type, strlen(type)).text, known);
}

/* ---- model ----------------------------------------------------------------------- */

/* `entries` bounds how sparse ids may be. */
static bool read_entry(Tokenizer *t, const char *text, const json_t *value, size_t entries,
                       Error *err)
{
    size_t      length = strlen(text);
    json_int_t  id = json_integer_value(value);
    const char *other;

    if (!json_is_integer(value) || id < 0 || id >= IDS_MAX || (size_t)id > 4 * entries + 65536)
        return error_set(err, ERR_MODEL, "token \"%s\": expected an id that fits a vocabulary of "
                         "%zu tokens", shown(text, length).text, entries);
    other = tokenizer_piece(t, (int32_t)id);
    if (vocab_has(&t->vocab, (int32_t)id))
        return error_set(err, ERR_MODEL, "\"%s\" and \"%s\" both have the id %d",
                         shown(other, strlen(other)).text, shown(text, length).text, (int)id);
    vocab_put(&t->vocab, (int32_t)id, text, length);
    return true;
}

bool tokenizer_json_vocab(Tokenizer *t, json_t *vocab, const char *what, Error *err)
{
    const char *text;
    json_t     *id;

    if (!json_is_object(vocab))
        return error_set(err, ERR_MODEL, "%s: expected an object of texts and ids", what);
    json_object_foreach(vocab, text, id) {
        if (!read_entry(t, text, id, json_object_size(vocab), err))
            return error_prefix(err, "%s", what);
    }
    return !t->vocab.failed || error_set(err, ERR_NOMEM, "no memory for the vocabulary");
}

/* "a b", or ["a", "b"]. */
static bool merge_parts(const json_t *merge, const char *part[2], size_t length[2])
{
    const char *text = json_string_value(merge), *blank;

    if (json_is_array(merge) && json_array_size(merge) == 2) {
        for (size_t i = 0; i < 2; i++) {
            part[i] = json_string_value(json_array_get(merge, i));
            length[i] = json_string_length(json_array_get(merge, i));
        }
        return part[0] && part[1] && length[0] > 0 && length[1] > 0;
    }
    blank = text ? strchr(text, ' ') : NULL;
    if (!blank || blank == text || !blank[1] || strchr(blank + 1, ' '))
        return false;
    part[0] = text;
    part[1] = blank + 1;
    length[0] = (size_t)(blank - text);
    length[1] = strlen(part[1]);
    return true;
}

static bool read_merges(Tokenizer *t, const json_t *merges, Error *err)
{
    if (!json_is_array(merges))
        return error_set(err, ERR_MODEL, "model.merges: expected a list");
    for (size_t i = 0; i < json_array_size(merges); i++) {
        const char *part[2];
        size_t      length[2];
        bool        known;

        if (!merge_parts(json_array_get(merges, i), part, length))
            return error_set(err, ERR_MODEL, "model.merges[%zu]: expected \"left right\" or "
                             "[\"left\", \"right\"]", i);
        if (!tokenizer_add_merge(t, part[0], length[0], part[1], length[1], (int32_t)i, &known,
                                 err))
            return false;
        if (!known)
            return error_set(err, ERR_MODEL, "model.merges[%zu]: \"%s\" and \"%s\" or the two "
                             "joined are not in the vocabulary", i,
                             shown(part[0], length[0]).text, shown(part[1], length[1]).text);
    }
    return true;
}

/* Sets *id to that of the token named by key; it stays where key is null. */
static bool read_unknown(const Tokenizer *t, const json_t *model, int32_t *id, Error *err)
{
    const char *text = json_string_value(json_object_get(model, "unk_token"));

    if (!text)
        return true;
    *id = tokenizer_id_of(t, text);
    return *id >= 0 || error_set(err, ERR_MODEL, "model.unk_token \"%s\" is not in the "
                                 "vocabulary", shown(text, strlen(text)).text);
}

/* Options of BPE that would change the ids. */
static bool check_bpe(const json_t *model, Error *err)
{
    static const char *const texts[] = { "continuing_subword_prefix", "end_of_word_suffix" };

    for (size_t i = 0; i < 2; i++)
        if (json_string_length(json_object_get(model, texts[i])) > 0)
            return error_set(err, ERR_MODEL, "model.%s \"%s\" is not read; give the ids "
                             "(--ids)", texts[i],
                             shown(json_string_value(json_object_get(model, texts[i])),
                                   json_string_length(json_object_get(model, texts[i]))).text);
    if (json_number_value(json_object_get(model, "dropout")) > 0)
        return error_set(err, ERR_MODEL, "model.dropout %g is not read: ids would be random",
                         json_number_value(json_object_get(model, "dropout")));
    return true;
}

static bool read_bpe(Tokenizer *t, const json_t *model, Error *err)
{
    t->model = MODEL_BPE;
    t->bpe.byte_fallback = is_true(model, "byte_fallback");
    t->bpe.fuse_unknown = is_true(model, "fuse_unk");
    t->bpe.whole_pieces = is_true(model, "ignore_merges");
    return check_bpe(model, err) &&
           tokenizer_json_vocab(t, json_object_get(model, "vocab"), "model.vocab", err) &&
           read_merges(t, json_object_get(model, "merges"), err) &&
           read_unknown(t, model, &t->bpe.unknown, err);
}

static bool read_wordpiece(Tokenizer *t, const json_t *model, Error *err)
{
    const json_t *prefix = json_object_get(model, "continuing_subword_prefix");
    const json_t *longest = json_object_get(model, "max_input_chars_per_word");

    t->model = MODEL_WORDPIECE;
    if (json_is_string(prefix)) {
        if (json_string_length(prefix) >= sizeof(t->wordpiece.prefix))
            return error_set(err, ERR_MODEL, "model.continuing_subword_prefix has %zu "
                             "bytes; fewer than %zu are read", json_string_length(prefix),
                             sizeof(t->wordpiece.prefix));
        strcpy(t->wordpiece.prefix, json_string_value(prefix));
    }
    if (json_is_integer(longest))
        t->wordpiece.longest = json_integer_value(longest);
    return tokenizer_json_vocab(t, json_object_get(model, "vocab"), "model.vocab", err) &&
           read_unknown(t, model, &t->wordpiece.unknown, err);
}

static bool read_unigram(Tokenizer *t, const json_t *model, Error *err)
{
    const json_t *vocab = json_object_get(model, "vocab");
    const json_t *unknown = json_object_get(model, "unk_id");
    size_t        count = json_array_size(vocab);
    double        lowest = HUGE_VAL;

    t->model = MODEL_UNIGRAM;
    t->unigram.byte_fallback = is_true(model, "byte_fallback");
    if (count == 0 || count > IDS_MAX)
        return error_set(err, ERR_MODEL, "model.vocab: expected a list of 1 to %d [text, score]",
                         IDS_MAX);
    t->unigram.scores = malloc(count * sizeof(double));
    if (!t->unigram.scores)
        return error_set(err, ERR_NOMEM, "no memory for %zu scores", count);
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = json_array_get(vocab, i), *text = json_array_get(entry, 0);
        double        score = json_number_value(json_array_get(entry, 1));

        if (!json_is_string(text) || !json_is_number(json_array_get(entry, 1)))
            return error_set(err, ERR_MODEL, "model.vocab[%zu]: expected [text, score]", i);
        vocab_put(&t->vocab, (int32_t)i, json_string_value(text), json_string_length(text));
        t->unigram.scores[i] = score;
        lowest = score < lowest ? score : lowest;
    }
    t->unigram.unknown_score = lowest - 10;
    if (json_is_integer(unknown)) {
        if (json_integer_value(unknown) < 0 || (size_t)json_integer_value(unknown) >= count)
            return error_set(err, ERR_MODEL, "model.unk_id is %lld in a vocabulary of %zu tokens",
                             (long long)json_integer_value(unknown), count);
        t->unigram.unknown = (int32_t)json_integer_value(unknown);
    }
    return true;
}

/* Older files do not name the type. */
static bool read_model(Tokenizer *t, const json_t *model, Error *err)
{
    bool unnamed = json_is_object(model) && !json_object_get(model, "type");

    if (is_type(model, "BPE") || (unnamed && json_object_get(model, "merges")))
        return read_bpe(t, model, err);
    if (is_type(model, "Unigram") || (unnamed && json_is_array(json_object_get(model, "vocab"))))
        return read_unigram(t, model, err);
    if (is_type(model, "WordPiece") ||
        (unnamed && json_object_get(model, "max_input_chars_per_word")))
        return read_wordpiece(t, model, err);
    return refuse_type(model, "a model", "BPE, Unigram, WordPiece", err);
}

/* ---- added tokens ---------------------------------------------------------------- */

bool tokenizer_json_added(Tokenizer *t, const json_t *token, int64_t id, size_t entries,
                          Error *err)
{
    static const char *const options[] = { "lstrip", "rstrip", "single_word" };
    const json_t *content = json_object_get(token, "content");
    const char   *text = json_string_value(content);
    size_t        length = json_string_length(content);

    if (!text)
        return error_set(err, ERR_MODEL, "expected an object with \"content\"");
    if (id < 0 || id >= IDS_MAX || (size_t)id > 4 * entries + 65536)
        return error_set(err, ERR_MODEL, "the id %lld does not fit a vocabulary of %zu tokens",
                         (long long)id, entries);
    for (size_t i = 0; i < 3; i++)
        if (is_true(token, options[i]))
            return error_set(err, ERR_MODEL, "\"%s\" has %s true, which is not read; give "
                             "the ids (--ids)", shown(text, length).text, options[i]);
    return tokenizer_add_token(t, (int32_t)id, text, length, is_true(token, "special"), err);
}

static bool read_added(Tokenizer *t, const json_t *list, Error *err)
{
    size_t entries = (size_t)t->vocab.size + json_array_size(list);

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *token = json_array_get(list, i), *id = json_object_get(token, "id");

        if (!tokenizer_json_added(t, token, json_is_integer(id) ? json_integer_value(id) : -1,
                                  entries, err))
            return error_prefix(err, "added_tokens[%zu]", i);
    }
    return true;
}

/* ---- normalizer ------------------------------------------------------------------ */

static bool read_bert(Tokenizer *t, const json_t *part, Error *err)
{
    bool          lowercase = is_true(part, "lowercase");
    const json_t *accents = json_object_get(part, "strip_accents");

    return tokenizer_use_bert(t, is_true(part, "clean_text"),
                              is_true(part, "handle_chinese_chars"),
                              json_is_boolean(accents) ? json_is_true(accents) : lowercase,
                              lowercase, err);
}

static bool read_replace(Tokenizer *t, const json_t *part, Error *err)
{
    const json_t *pattern = json_object_get(part, "pattern");
    const json_t *text = json_object_get(pattern, "String");
    const json_t *regex = json_object_get(pattern, "Regex");
    const json_t *to = json_object_get(part, "content");

    if (!json_is_string(to) || (!json_is_string(text) && !json_is_string(regex)))
        return error_set(err, ERR_MODEL, "normalizer Replace: expected a pattern and a content");
    if (json_is_string(regex))
        return normaliser_add_pattern(&t->normaliser, json_string_value(regex),
                                      json_string_length(regex), json_string_value(to),
                                      json_string_length(to), err);
    return normaliser_add_text(&t->normaliser, NORMAL_REPLACE, json_string_value(text),
                               json_string_length(text), json_string_value(to),
                               json_string_length(to), err);
}

static bool read_prepend(Tokenizer *t, const json_t *part, Error *err)
{
    const json_t *to = json_object_get(part, "prepend");

    if (!json_is_string(to))
        return error_set(err, ERR_MODEL, "normalizer Prepend: expected a text in \"prepend\"");
    return normaliser_add_text(&t->normaliser, NORMAL_PREPEND, NULL, 0, json_string_value(to),
                               json_string_length(to), err);
}

static bool read_normalizer(Tokenizer *t, const json_t *part, int depth, Error *err)
{
    static const struct {
        const char *name;
        NormalKind  kind;
    } plain[] = { { "NFC", NORMAL_NFC },         { "NFD", NORMAL_NFD },
                  { "NFKC", NORMAL_NFKC },       { "NFKD", NORMAL_NFKD },
                  { "Lowercase", NORMAL_LOWER }, { "StripAccents", NORMAL_MARKS } };
    const json_t *list = json_object_get(part, "normalizers");

    if (!part || json_is_null(part))
        return true;
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (is_type(part, plain[i].name))
            return normaliser_add(&t->normaliser, plain[i].kind, err);
    if (is_type(part, "BertNormalizer"))
        return read_bert(t, part, err);
    if (is_type(part, "Replace"))
        return read_replace(t, part, err);
    if (is_type(part, "Prepend"))
        return read_prepend(t, part, err);
    if (is_type(part, "Strip"))
        return (!is_true(part, "strip_left") ||
                normaliser_add(&t->normaliser, NORMAL_STRIP_LEFT, err)) &&
               (!is_true(part, "strip_right") ||
                normaliser_add(&t->normaliser, NORMAL_STRIP_RIGHT, err));
    if (is_type(part, "Precompiled")) {
        if (json_string_length(json_object_get(part, "precompiled_charsmap")) > 0 &&
            !t->ascii_only) {
            t->ascii_only = true;
            tokenizer_note(t, "the tokenizer's Precompiled normaliser is not read: only "
                           "printable ASCII can be encoded");
        }
        return true;
    }
    if (!is_type(part, "Sequence") || depth == 0)
        return refuse_type(part, "a normalizer", "BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, "
                           "Prepend, Replace, Sequence, Strip, StripAccents", err);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!read_normalizer(t, json_array_get(list, i), depth - 1, err))
            return false;
    return true;
}

/* ---- pre_tokenizer --------------------------------------------------------------- */

/* Characters that a pattern would read as its own. */
static void quote(const char *text, size_t length, Text *out)
{
    for (size_t i = 0; i < length; i++) {
        bool plain = (text[i] & 0x80) || (text[i] >= '0' && text[i] <= '9') ||
                     ((text[i] | 32) >= 'a' && (text[i] | 32) <= 'z');

        text_addf(out, plain ? "%c" : "\\x%02x", (unsigned)(uint8_t)text[i]);
    }
}

static bool read_split(Tokenizer *t, const json_t *part, Error *err)
{
    const char   *behavior = json_string_value(json_object_get(part, "behavior"));
    const json_t *pattern = json_object_get(part, "pattern");
    const json_t *regex = json_object_get(pattern, "Regex");
    const json_t *text = json_object_get(pattern, "String");
    SplitMatch    match = MATCH_ISOLATED;
    Text          quoted = { 0 };
    bool          ok;

    if (!behavior || (!json_is_string(regex) && json_string_length(text) == 0))
        return error_set(err, ERR_MODEL, "pre_tokenizer Split: expected a pattern and a behavior");
    if (strcmp(behavior, "Removed") == 0)
        match = MATCH_REMOVED;
    else if (strcmp(behavior, "MergedWithPrevious") == 0)
        match = MATCH_WITH_PREVIOUS;
    else if (strcmp(behavior, "Isolated") != 0)
        return error_set(err, ERR_MODEL, "pre_tokenizer Split with behavior \"%s\" is not "
                         "read (read are Isolated, Removed, MergedWithPrevious); give the ids "
                         "(--ids)", shown(behavior, strlen(behavior)).text);
    if (is_true(part, "invert"))
        return error_set(err, ERR_MODEL, "pre_tokenizer Split with invert true is not read; "
                         "give the ids (--ids)");
    if (json_is_string(regex))
        return splitter_add_regex(&t->splitter, json_string_value(regex),
                                  json_string_length(regex), match, err);
    quote(json_string_value(text), json_string_length(text), &quoted);
    ok = text_ok(&quoted) ? splitter_add_regex(&t->splitter, quoted.data, quoted.length, match,
                                               err)
                          : error_set(err, ERR_NOMEM, "no memory for a tokenizer's pattern");
    text_free(&quoted);
    return ok;
}

static bool read_byte_level(Tokenizer *t, const json_t *part, Error *err)
{
    bool plain = json_is_false(json_object_get(part, "use_regex"));
    bool blank = !json_is_false(json_object_get(part, "add_prefix_space"));

    return tokenizer_use_bytes(t, blank, plain ? NULL : split_gpt2, err);
}

static bool read_metaspace(Tokenizer *t, const json_t *part, Error *err)
{
    const json_t *mark = json_object_get(part, "replacement");
    const char   *scheme = json_string_value(json_object_get(part, "prepend_scheme"));
    Split         split = { .kind = SPLIT_METASPACE, .mark = MARK, .mark_first = MARK_ALWAYS,
                            .cut = !json_is_false(json_object_get(part, "split")) };

    if (json_is_string(mark)) {
        size_t length = json_string_length(mark);

        if (length == 0 || length >= sizeof(split.mark) || !*json_string_value(mark))
            return error_set(err, ERR_MODEL, "pre_tokenizer Metaspace: expected one character as "
                             "the replacement");
        strcpy(split.mark, json_string_value(mark));
    }
    if (scheme && strcmp(scheme, "first") == 0)
        split.mark_first = MARK_FIRST;
    else if (scheme ? strcmp(scheme, "never") == 0
                    : json_is_false(json_object_get(part, "add_prefix_space")))
        split.mark_first = MARK_NEVER;
    else if (scheme && strcmp(scheme, "always") != 0)
        return error_set(err, ERR_MODEL, "pre_tokenizer Metaspace with prepend_scheme \"%s\" is "
                         "not read (read are always, first, never); give the ids (--ids)",
                         shown(scheme, strlen(scheme)).text);
    return splitter_add(&t->splitter, split, err);
}

static bool read_digits(Tokenizer *t, const json_t *part, Error *err)
{
    const char *pattern = is_true(part, "individual_digits") ? split_digits : "\\p{N}+";

    return splitter_add_regex(&t->splitter, pattern, strlen(pattern), MATCH_ISOLATED, err);
}

static bool read_pre_tokenizer(Tokenizer *t, const json_t *part, int depth, Error *err)
{
    const json_t *list = json_object_get(part, "pretokenizers");

    if (!part || json_is_null(part))
        return true;
    if (is_type(part, "ByteLevel"))
        return read_byte_level(t, part, err);
    if (is_type(part, "Split"))
        return read_split(t, part, err);
    if (is_type(part, "Digits"))
        return read_digits(t, part, err);
    if (is_type(part, "Metaspace"))
        return read_metaspace(t, part, err);
    if (is_type(part, "WhitespaceSplit"))
        return splitter_add(&t->splitter, (Split){ .kind = SPLIT_WHITESPACE }, err);
    if (is_type(part, "BertPreTokenizer"))
        return splitter_add(&t->splitter, (Split){ .kind = SPLIT_BERT }, err);
    if (!is_type(part, "Sequence") || depth == 0)
        return refuse_type(part, "a pre_tokenizer", "BertPreTokenizer, ByteLevel, Digits, "
                           "Metaspace, Sequence, Split, WhitespaceSplit", err);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!read_pre_tokenizer(t, json_array_get(list, i), depth - 1, err))
            return false;
    return true;
}

/* ---- post_processor -------------------------------------------------------------- */

static bool add_special(Tokenizer *t, Around *around, const json_t *special, const json_t *tokens,
                        Error *err)
{
    const char   *name = json_string_value(json_object_get(special, "id"));
    const json_t *ids = json_object_get(json_object_get(tokens, name ? name : ""), "ids");

    if (!name || json_array_size(ids) == 0)
        return error_set(err, ERR_MODEL, "post_processor: special_tokens has no ids of \"%s\"",
                         name ? shown(name, strlen(name)).text : "");
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *id = json_array_get(ids, i);

        if (!around_add(around, json_is_integer(id) ? json_integer_value(id) : -1, t, err))
            return error_prefix(err, "post_processor");
    }
    return true;
}

static bool read_template(Tokenizer *t, const json_t *part, Error *err)
{
    const json_t *single = json_object_get(part, "single");
    Around       *around = &t->before;

    if (!json_is_array(single))
        return error_set(err, ERR_MODEL, "post_processor TemplateProcessing: expected a list in "
                         "\"single\"");
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *item = json_array_get(single, i);
        const json_t *special = json_object_get(item, "SpecialToken");

        if (special) {
            if (!add_special(t, around, special, json_object_get(part, "special_tokens"), err))
                return false;
        } else if (json_object_get(item, "Sequence") && around == &t->before) {
            around = &t->after;
        } else {
            return error_set(err, ERR_MODEL, "post_processor: single[%zu] is neither a "
                             "SpecialToken nor the one Sequence", i);
        }
    }
    return around == &t->after ||
           error_set(err, ERR_MODEL, "post_processor: \"single\" has no Sequence");
}

/* Bert's and Roberta's: {"cls": ["[CLS]", 2], "sep": ["[SEP]", 3]}. */
static bool read_cls_sep(Tokenizer *t, const json_t *part, Error *err)
{
    const json_t *cls = json_array_get(json_object_get(part, "cls"), 1);
    const json_t *sep = json_array_get(json_object_get(part, "sep"), 1);

    return (around_add(&t->before, json_is_integer(cls) ? json_integer_value(cls) : -1, t, err) &&
            around_add(&t->after, json_is_integer(sep) ? json_integer_value(sep) : -1, t, err)) ||
           error_prefix(err, "post_processor");
}

static bool read_post(Tokenizer *t, const json_t *part, int depth, Error *err)
{
    const json_t *list = json_object_get(part, "processors");

    if (!part || json_is_null(part) || is_type(part, "ByteLevel"))
        return true;
    if (is_type(part, "TemplateProcessing") || is_type(part, "BertProcessing") ||
        is_type(part, "RobertaProcessing")) {
        if (t->before.count + t->after.count > 0)
            return error_set(err, ERR_MODEL, "two post_processors that add tokens are not "
                             "read; give the ids (--ids)");
        return is_type(part, "TemplateProcessing") ? read_template(t, part, err)
                                                   : read_cls_sep(t, part, err);
    }
    if (!is_type(part, "Sequence") || depth == 0)
        return refuse_type(part, "a post_processor", "BertProcessing, ByteLevel, "
                           "RobertaProcessing, Sequence, TemplateProcessing", err);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!read_post(t, json_array_get(list, i), depth - 1, err))
            return false;
    return true;
}

/* ---- the file -------------------------------------------------------------------- */

#define DEPTH_MAX 4 /* sequences in sequences */

static bool read_all(Tokenizer *t, const json_t *root, Error *err)
{
    if (!json_is_object(root))
        return error_set(err, ERR_MODEL, "expected an object");
    return read_model(t, json_object_get(root, "model"), err) &&
           read_added(t, json_object_get(root, "added_tokens"), err) &&
           read_normalizer(t, json_object_get(root, "normalizer"), DEPTH_MAX, err) &&
           read_pre_tokenizer(t, json_object_get(root, "pre_tokenizer"), DEPTH_MAX, err) &&
           read_post(t, json_object_get(root, "post_processor"), DEPTH_MAX, err) &&
           tokenizer_finish(t, err);
}

Tokenizer *tokenizer_from_json(const char *json, size_t length, Error *err)
{
    json_error_t why;
    json_t      *root = json_loadb(json, length, JSON_ALLOW_NUL, &why);
    Tokenizer   *t = NULL;

    if (!root) {
        error_set(err, ERR_MODEL, "line %d: %s", why.line, shown(why.text, strlen(why.text)).text);
        return NULL;
    }
    t = tokenizer_new(err);
    if (t && !read_all(t, root, err)) {
        tokenizer_free(t);
        t = NULL;
    }
    json_decref(root);
    return t;
}
