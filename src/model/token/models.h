/* model/token/models.h -- the four ways from a piece of text to ids. */
#ifndef MODEL_TOKEN_MODELS_H
#define MODEL_TOKEN_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "model/token/vocab.h"

/* ---- BPE, by the rank of merges or by the score of what a merge makes -------------- */

typedef struct Merge {
    int32_t left, right; /* ids; left -1: a free slot */
    int32_t rank, id;    /* id: of the two joined */
} Merge;

typedef struct Bpe {
    Merge  *merges; /* a hash table */
    int64_t slots, count;
    float  *scores; /* by id; owned; NULL: merges rule */
    int32_t bytes[256]; /* <0x00> and on; -1: not there */
    bool    byte_fallback; /* a character that is no token becomes its bytes' tokens */
    int32_t unknown;       /* -1: what is no token is dropped */
    bool    fuse_unknown, whole_pieces;
} Bpe;

/* A pair that comes again takes the later rank.  False: no memory. */
bool bpe_add_merge(Bpe *b, Merge merge);
void bpe_free(Bpe *b);

typedef struct Symbol {
    int32_t id;            /* -1: no token */
    int32_t start, length; /* bytes of the piece; length 0: joined to the one before */
    int32_t before, after; /* -1: none */
} Symbol;

typedef struct Candidate {
    double  order; /* the least is joined first, of equals the leftmost */
    int32_t at, id, length;
} Candidate;

/* ---- unigram ------------------------------------------------------------------------ */

typedef struct Unigram {
    double *scores; /* by id; owned */
    double  unknown_score;
    int32_t unknown; /* -1: none */
    bool    byte_fallback;
    int32_t bytes[256];
} Unigram;

typedef struct Step {
    double  score;
    int64_t from, to; /* where the token that ends here begins, -1: none; where the next ends */
    int32_t id;
} Step;

/* ---- WordPiece ---------------------------------------------------------------------- */

typedef struct Wordpiece {
    char    prefix[16]; /* of a token inside a word */
    int64_t longest;    /* characters; longer words are unknown */
    int32_t unknown;
} Wordpiece;

/* Memory that is used again from piece to piece; one a call. */
typedef struct ModelWork {
    Symbol    *symbols;
    Candidate *heap;
    Step      *steps;
    int64_t    symbols_room, heap_room, steps_room;
    int64_t    symbol_count, heap_count;
} ModelWork;

void model_work_free(ModelWork *w);

#define PIECE_MAX (1 << 29) /* bytes */

bool bpe_encode(const Bpe *b, const Vocab *vocab, const char *text, size_t length,
                ModelWork *w, TokenIds *out, Error *err);
bool unigram_encode(const Unigram *u, const Vocab *vocab, const char *text, size_t length,
                    ModelWork *w, TokenIds *out, Error *err);
bool wordpiece_encode(const Wordpiece *p, const Vocab *vocab, const char *text,
                      size_t length, TokenIds *out, Error *err);

/* Ids of <0x00> and on; how many there are. */
int model_find_bytes(const Vocab *vocab, int32_t bytes[256]);

#endif
