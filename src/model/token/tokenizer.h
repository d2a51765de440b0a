/* model/token/tokenizer.h -- text to token ids and back, as the model's authors' tokenizer does it.
 *
 * Byte-level BPE (GPT-2, SmolLM, Llama 3, Qwen), BPE over characters with byte fallback or by score
 * (SentencePiece), unigram, WordPiece.  Unicode categories and pre-tokenising by PCRE2,
 * normalisation by GLib.  Immutable after loading; may be used by several threads.
 */
#ifndef MODEL_TOKEN_TOKENIZER_H
#define MODEL_TOKEN_TOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/text.h"

typedef struct Gguf Gguf;
typedef struct Tokenizer Tokenizer;

typedef struct TokenList {
    int32_t *ids;   /* owned */
    int64_t  count;
} TokenList;

/* From a GGUF's tokenizer.ggml.* keys; borrows nothing of g.  NULL with *err set. */
Tokenizer *tokenizer_from_gguf(const Gguf *g, Error *err);
/* From tokenizer.json, else vocab.txt, else vocab.json and merges.txt (tokenizer_config.json read
 * beside them). */
Tokenizer *tokenizer_from_folder(const char *folder, Error *err);
void       tokenizer_free(Tokenizer *t);

int64_t     tokenizer_size(const Tokenizer *t);  /* ids are below it */
const char *tokenizer_kind(const Tokenizer *t);  /* "byte-level BPE", "WordPiece", ... */
const char *tokenizer_notes(const Tokenizer *t); /* warnings, or "" */

/* Ids of text (UTF-8, `length` bytes); special: with the tokens the tokenizer puts around a text.
 * False with *err set: an invalid byte and its offset.  Free with token_list_free. */
bool tokenizer_encode(const Tokenizer *t, const char *text, int64_t length, bool special,
                      TokenList *out, Error *err);
void token_list_free(TokenList *list);

/* The token's own text as in the vocabulary ("Ġthe", "##ing"), UTF-8; "" for an id without one. */
const char *tokenizer_piece(const Tokenizer *t, int32_t id);
/* Adds the bytes it stands for in a text (" the", "ing").  Control tokens stand for nothing. */
void        tokenizer_add_bytes(const Tokenizer *t, int32_t id, Text *out);
/* As many of them as fit into out [size], terminated, none cut inside a character; their number. */
int64_t     tokenizer_bytes(const Tokenizer *t, int32_t id, char *out, int64_t size);
/* Token that begins a text, or -1; for --repeat and generating. */
int32_t     tokenizer_begin(const Tokenizer *t);
int32_t     tokenizer_end(const Tokenizer *t); /* that ends one, or -1 */

#endif
