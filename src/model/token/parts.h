/* model/token/parts.h -- what a tokenizer is made of, for the files that load one. */
#ifndef MODEL_TOKEN_PARTS_H
#define MODEL_TOKEN_PARTS_H

#include "core/text.h"
#include "model/token/models.h"
#include "model/token/normalise.h"
#include "model/token/split.h"
#include "model/token/tokenizer.h"

typedef enum TokenModel { MODEL_BPE, MODEL_UNIGRAM, MODEL_WORDPIECE } TokenModel;

/* How a token's text stands for bytes. */
typedef enum TokenStyle {
    STYLE_PLAIN,
    STYLE_BYTES, /* a character a byte */
    STYLE_MARKS, /* U+2581 for a blank, <0x0A> for a byte */
    STYLE_WORDS, /* ## inside a word */
} TokenStyle;

typedef struct AddedToken {
    int32_t id;
    bool    control; /* stands for nothing in a text */
} AddedToken;

enum { ROLE_PLAIN, ROLE_TEXT, ROLE_CONTROL }; /* of an id: a token of the model, an added one */

#define AROUND_MAX 16

typedef struct Around { /* tokens before or after a text */
    int32_t ids[AROUND_MAX];
    int     count;
} Around;

struct Tokenizer {
    Vocab  vocab;
    Vocab  added; /* texts of added[] */
    AddedToken *added_tokens;
    int64_t     added_room;
    uint8_t    *roles;            /* by id; owned */
    bool        added_first[256]; /* an added token begins with this byte */
    Normaliser  normaliser;
    Splitter    splitter;
    TokenModel  model;
    TokenStyle  style;
    const char *kind;
    Bpe         bpe;
    Unigram     unigram;
    Wordpiece   wordpiece;
    Around      before, after;
    int32_t     begin, end; /* -1: none */
    bool        ascii_only; /* a normaliser that is not read leaves printable ASCII as it is */
    Text        notes;
};

#define IDS_MAX (1 << 24)
#define MARK "\xE2\x96\x81" /* U+2581, which stands for a blank */

/* A tokenizer without a vocabulary; NULL with *err set. */
Tokenizer *tokenizer_new(Error *err);
void       tokenizer_note(Tokenizer *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Takes the text out whole before all else; names the id in the vocabulary if nothing else does. */
bool tokenizer_add_token(Tokenizer *t, int32_t id, const char *text, size_t length, bool control,
                         Error *err);
/* Pieces of a pattern, NULL for none, then bytes; a blank before a text that has none. */
bool tokenizer_use_bytes(Tokenizer *t, bool blank_first, const char *pattern, Error *err);
/* The steps of BERT's normaliser that are wanted. */
bool tokenizer_use_bert(Tokenizer *t, bool clean, bool chinese, bool accents, bool lower,
                        Error *err);
/* *known false: the parts, or both joined, are not in the vocabulary. */
bool tokenizer_add_merge(Tokenizer *t, const char *left, size_t left_length, const char *right,
                         size_t right_length, int32_t rank, bool *known, Error *err);
int32_t tokenizer_id_of(const Tokenizer *t, const char *text); /* added tokens, too; -1: none */
bool around_add(Around *a, int64_t id, const Tokenizer *t, Error *err);
/* What holds for every source; the last step of loading. */
bool tokenizer_finish(Tokenizer *t, Error *err);

/* A tokenizer from the bytes of a tokenizer.json. */
Tokenizer *tokenizer_from_json(const char *json, size_t length, Error *err);
typedef struct json_t json_t;
/* Its object of texts and ids, as vocab.json has it, too; what: its name, for messages. */
bool tokenizer_json_vocab(Tokenizer *t, json_t *vocab, const char *what, Error *err);
/* One of its added tokens, as tokenizer_config.json has them, too; `entries` bounds its id. */
bool tokenizer_json_added(Tokenizer *t, const json_t *token, int64_t id, size_t entries,
                          Error *err);

#endif
