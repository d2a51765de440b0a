/* tests/unit/token_fixture.h -- tokenizers of texts in memory, their ids, and what is refused. */
#ifndef TESTS_UNIT_TOKEN_FIXTURE_H
#define TESTS_UNIT_TOKEN_FIXTURE_H

#include "check.h"

#include <jansson.h>
#include <string.h>

#include "core/text.h"
#include "gguf_fixture.h"
#include "model/token/parts.h"

static inline Tokenizer *tokenizer_of(const char *json)
{
    Error      err = ERROR_INIT;
    Tokenizer *t = tokenizer_from_json(json, strlen(json), &err);

    CHECK(t, "%s", err.text);
    return t;
}

static inline void check_line(const Error *err)
{
    CHECK(err->code != ERR_NONE && *err->text && !strpbrk(err->text, "\n\x1b"), "\"%s\"",
          err->text);
}

static inline void refuse_json(const char *json, const char *words)
{
    Error      err = ERROR_INIT;
    Tokenizer *t = tokenizer_from_json(json, strlen(json), &err);

    CHECK(!t, "not refused: %s", json);
    check_line(&err);
    check_words(&err, words);
}

static inline void check_list(const TokenList *list, const char *text, int64_t count,
                              int64_t (*wanted)(const void *, int64_t), const void *from)
{
    CHECK(list->count == count, "\"%s\": %lld tokens, expected %lld", text,
          (long long)list->count, (long long)count);
    for (int64_t i = 0; i < count; i++)
        CHECK(list->ids[i] == wanted(from, i), "\"%s\": token %lld is %d, expected %lld", text,
              (long long)i, list->ids[i], (long long)wanted(from, i));
}

static inline int64_t of_json(const void *from, int64_t at)
{
    return json_integer_value(json_array_get(from, (size_t)at));
}

static inline int64_t of_ints(const void *from, int64_t at)
{
    return ((const int *)from)[at];
}

static inline void check_json(const Tokenizer *t, const json_t *text, bool special,
                              const json_t *ids)
{
    Error     err = ERROR_INIT;
    TokenList list;

    CHECK(tokenizer_encode(t, json_string_value(text), (int64_t)json_string_length(text), special,
                           &list, &err), "%s", err.text);
    check_list(&list, json_string_value(text), (int64_t)json_array_size(ids), of_json, ids);
    token_list_free(&list);
}

/* Without the tokens around the text. */
static inline void check_bytes_ids(const Tokenizer *t, const char *text, size_t length, int count,
                                   const int *ids)
{
    Error     err = ERROR_INIT;
    TokenList list;

    CHECK(tokenizer_encode(t, text, (int64_t)length, false, &list, &err), "%s", err.text);
    check_list(&list, text, count, of_ints, ids);
    token_list_free(&list);
}

#define IDS(...) (int)(sizeof((int[]){ __VA_ARGS__ }) / sizeof(int)), (int[]){ __VA_ARGS__ }
#define check_ids(t, text, ...) check_bytes_ids(t, text, strlen(text), __VA_ARGS__)
#define NOTHING 0, NULL

static inline void check_piece(const Tokenizer *t, int32_t id, const char *bytes)
{
    char    out[64];
    int64_t count = tokenizer_bytes(t, id, out, sizeof(out));

    Text    whole = { 0 };

    tokenizer_add_bytes(t, id, &whole);
    CHECK(count == (int64_t)strlen(bytes) && strcmp(out, bytes) == 0, "%d: \"%s\", expected "
          "\"%s\"", id, out, bytes);
    CHECK(!strcmp(text_str(&whole), bytes), "%d: \"%s\" added", id, text_str(&whole));
    text_free(&whole);
}

#endif
