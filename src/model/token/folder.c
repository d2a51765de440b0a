/* folder.c -- the tokenizer of a Hugging Face folder: tokenizer.json, else vocab.txt (WordPiece),
 * else vocab.json and merges.txt (byte-level BPE); tokenizer_config.json beside them. */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/utf8.h"
#include "model/token/parts.h"

#define FILE_MAX (1 << 28)

static bool path_in(const char *folder, const char *name, char path[PATH_MAX])
{
    int length = snprintf(path, PATH_MAX, "%s/%s", folder, name);

    return length > 0 && length < PATH_MAX;
}

static bool is_there(const char *folder, const char *name)
{
    char path[PATH_MAX];

    return path_in(folder, name, path) && access(path, F_OK) == 0;
}

static bool read_in(const char *folder, const char *name, Text *out, Error *err)
{
    char path[PATH_MAX];

    if (!path_in(folder, name, path))
        return error_set(err, ERR_FILE, "%s: the path is too long", name);
    if (!file_read(path, FILE_MAX, out, err))
        return false;
    if (out->length > FILE_MAX)
        return error_set(err, ERR_MODEL, "%s: larger than %d MiB", name, FILE_MAX >> 20);
    return true;
}

/* *out stays NULL where the file is not there. */
static bool load_object(const char *folder, const char *name, json_t **out, Error *err)
{
    Text         text = { 0 };
    json_error_t why;

    if (!is_there(folder, name))
        return true;
    if (!read_in(folder, name, &text, err)) {
        text_free(&text);
        return false;
    }
    *out = json_loadb(text_str(&text), text.length, JSON_ALLOW_NUL, &why);
    text_free(&text);
    if (!json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        return error_set(err, ERR_MODEL, "%s: expected an object of JSON (line %d)", name,
                         why.line);
    }
    return true;
}

/* ---- tokenizer_config.json ------------------------------------------------------- */

/* A token is named by its text or by {"content": text}. */
static const char *token_named(const json_t *config, const char *key)
{
    const json_t *value = json_object_get(config, key);

    return json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
}

static int32_t id_named(const Tokenizer *t, const json_t *config, const char *key)
{
    const char *text = token_named(config, key);

    return text ? tokenizer_id_of(t, text) : -1;
}

static void read_ends(Tokenizer *t, const json_t *config)
{
    int32_t begin = id_named(t, config, "bos_token"), end = id_named(t, config, "eos_token");

    if (begin >= 0)
        t->begin = begin;
    if (end >= 0)
        t->end = end;
}

/* {"50257": {"content": "<|pad|>", "special": true}, ...} */
static bool read_added(Tokenizer *t, json_t *config, Error *err)
{
    json_t     *list = json_object_get(config, "added_tokens_decoder"), *token;
    const char *key;
    size_t      entries = (size_t)t->vocab.size + json_object_size(list);

    json_object_foreach(list, key, token) {
        char     *end;
        long long id = strtoll(key, &end, 10);

        if (!tokenizer_json_added(t, token, *key && !*end ? id : -1, entries, err))
            return error_prefix(err, "tokenizer_config.json: added_tokens_decoder, \"%s\"",
                                shown(key, strlen(key)).text);
    }
    return true;
}

/* ---- vocab.txt ------------------------------------------------------------------- */

static bool read_lines(Tokenizer *t, const Text *text, Error *err)
{
    const char *at = text_str(text), *end = at + text->length;

    for (int32_t id = 0; at < end; id++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t      length = (size_t)((stop ? stop : end) - at);

        if (id >= IDS_MAX)
            return error_set(err, ERR_MODEL, "vocab.txt: more than %d lines", IDS_MAX);
        if (length > 0 && at[length - 1] == '\r')
            length--;
        for (size_t i = 0; i < length;) {
            int bytes = utf8_decode(at + i, length - i, NULL);

            if (bytes == 0)
                return error_set(err, ERR_MODEL, "vocab.txt: line %d is not UTF-8", id + 1);
            i += (size_t)bytes;
        }
        vocab_put(&t->vocab, id, at, length);
        at = stop ? stop + 1 : end;
    }
    return !t->vocab.failed || error_set(err, ERR_NOMEM, "no memory for the vocabulary");
}

/* Adds the special token of that key, whose usual text is known; -1: not in the vocabulary. */
static bool add_usual(Tokenizer *t, const json_t *config, const char *key, const char *usual,
                      int32_t *id, Error *err)
{
    const char *text = token_named(config, key);

    text = text ? text : usual;
    *id = tokenizer_id_of(t, text);
    return *id < 0 || tokenizer_add_token(t, *id, text, strlen(text), true, err);
}

static bool read_specials(Tokenizer *t, const json_t *config, Error *err)
{
    int32_t cls, sep, other;

    return add_usual(t, config, "unk_token", "[UNK]", &t->wordpiece.unknown, err) &&
           add_usual(t, config, "pad_token", "[PAD]", &other, err) &&
           add_usual(t, config, "mask_token", "[MASK]", &other, err) &&
           add_usual(t, config, "cls_token", "[CLS]", &cls, err) &&
           add_usual(t, config, "sep_token", "[SEP]", &sep, err) &&
           (cls < 0 || around_add(&t->before, cls, t, err)) &&
           (sep < 0 || around_add(&t->after, sep, t, err));
}

static bool read_wordpiece(Tokenizer *t, const char *folder, json_t *config, Error *err)
{
    const json_t *accents = json_object_get(config, "strip_accents");
    bool          lower = !json_is_false(json_object_get(config, "do_lower_case"));
    bool          chinese = !json_is_false(json_object_get(config, "tokenize_chinese_chars"));
    Text          text = { 0 };
    bool ok = read_in(folder, "vocab.txt", &text, err) && read_lines(t, &text, err);

    text_free(&text);
    t->model = MODEL_WORDPIECE;
    return ok && read_specials(t, config, err) && read_added(t, config, err) &&
           tokenizer_use_bert(t, true, chinese,
                              json_is_boolean(accents) ? json_is_true(accents) : lower, lower,
                              err) &&
           splitter_add(&t->splitter, (Split){ .kind = SPLIT_BERT }, err) &&
           tokenizer_finish(t, err);
}

/* ---- vocab.json and merges.txt --------------------------------------------------- */

static bool read_merge(Tokenizer *t, const char *line, size_t length, int number, int32_t rank,
                       Error *err)
{
    const char *blank = memchr(line, ' ', length);
    size_t      left = blank ? (size_t)(blank - line) : 0;
    bool        known;

    if (left == 0 || left + 1 == length || memchr(blank + 1, ' ', length - left - 1))
        return error_set(err, ERR_MODEL, "merges.txt: line %d: expected \"left right\"", number);
    if (!tokenizer_add_merge(t, line, left, blank + 1, length - left - 1, rank, &known, err))
        return false;
    return known || error_set(err, ERR_MODEL, "merges.txt: line %d: \"%s\" or its parts are not "
                              "in vocab.json", number, shown(line, length).text);
}

static bool read_merges(Tokenizer *t, const Text *text, Error *err)
{
    const char *at = text_str(text), *end = at + text->length;
    int32_t     rank = 0;

    for (int number = 1; at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t      length = (size_t)((stop ? stop : end) - at);

        if (length > 0 && at[length - 1] == '\r')
            length--;
        if (length > 0 && !(number == 1 && strncmp(at, "#version", 8) == 0) &&
            !read_merge(t, at, length, number, rank++, err))
            return false;
        at = stop ? stop + 1 : end;
    }
    return true;
}

/* Which split is meant, only the class says. */
static bool use_class(Tokenizer *t, const json_t *config, Error *err)
{
    const char *name = json_string_value(json_object_get(config, "tokenizer_class"));
    bool        blank = json_is_true(json_object_get(config, "add_prefix_space"));

    if (!name || strncmp(name, "GPT2Tokenizer", 13) == 0 ||
        strcmp(name, "PreTrainedTokenizerFast") == 0)
        return tokenizer_use_bytes(t, blank, split_gpt2, err);
    if (strncmp(name, "Qwen2Tokenizer", 14) == 0)
        return normaliser_add(&t->normaliser, NORMAL_NFC, err) &&
               tokenizer_use_bytes(t, false, split_qwen2, err);
    return error_set(err, ERR_MODEL, "tokenizer_config.json: tokenizer_class \"%s\" with "
                     "vocab.json is not read (read are GPT2Tokenizer and Qwen2Tokenizer; a "
                     "tokenizer.json is read for every class); give the ids (--ids)",
                     shown(name, strlen(name)).text);
}

static bool read_bpe(Tokenizer *t, const char *folder, json_t *config, Error *err)
{
    json_t *vocab = NULL;
    Text    text = { 0 };
    bool    ok = load_object(folder, "vocab.json", &vocab, err) &&
              tokenizer_json_vocab(t, vocab, "vocab.json", err) &&
              read_in(folder, "merges.txt", &text, err) && read_merges(t, &text, err);

    json_decref(vocab);
    text_free(&text);
    t->model = MODEL_BPE;
    return ok && add_usual(t, config, "eos_token", "<|endoftext|>", &t->end, err) &&
           add_usual(t, config, "bos_token", "<|endoftext|>", &t->begin, err) &&
           read_added(t, config, err) && use_class(t, config, err) && tokenizer_finish(t, err);
}

/* ---- the folder ------------------------------------------------------------------ */

static Tokenizer *read_json(const char *folder, Error *err)
{
    Text       text = { 0 };
    Tokenizer *t = NULL;

    if (read_in(folder, "tokenizer.json", &text, err)) {
        t = tokenizer_from_json(text_str(&text), text.length, err);
        if (!t)
            error_prefix(err, "tokenizer.json");
    }
    text_free(&text);
    return t;
}

static Tokenizer *read_files(const char *folder, json_t *config, Error *err)
{
    bool       words = is_there(folder, "vocab.txt");
    Tokenizer *t;

    if (is_there(folder, "tokenizer.json"))
        return read_json(folder, err);
    if (!words && !(is_there(folder, "vocab.json") && is_there(folder, "merges.txt"))) {
        error_set(err, ERR_MODEL,
                  "the folder has no tokenizer: expected tokenizer.json, vocab.txt, or vocab.json "
                  "and merges.txt%s; give the ids (--ids)",
                  is_there(folder, "tokenizer.model")
                      ? " (tokenizer.model alone is not read: save the tokenizer with "
                        "transformers' AutoTokenizer, which writes tokenizer.json)" : "");
        return NULL;
    }
    t = tokenizer_new(err);
    if (t && !(words ? read_wordpiece(t, folder, config, err)
                     : read_bpe(t, folder, config, err))) {
        tokenizer_free(t);
        t = NULL;
    }
    return t;
}

Tokenizer *tokenizer_from_folder(const char *folder, Error *err)
{
    json_t    *config = NULL;
    Tokenizer *t = NULL;

    if (load_object(folder, "tokenizer_config.json", &config, err))
        t = read_files(folder, config, err);
    if (t)
        read_ends(t, config);
    else
        error_prefix(err, "%s", folder);
    json_decref(config);
    return t;
}
