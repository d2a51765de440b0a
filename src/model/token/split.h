/* model/token/split.h -- cutting a text into the pieces that a tokenizer's model reads alone.
 *
 * A splitter is a list of splits; each is applied to every piece that the one before left.
 */
#ifndef MODEL_TOKEN_SPLIT_H
#define MODEL_TOKEN_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/text.h"
#include "model/token/regex.h"

typedef enum SplitKind {
    SPLIT_REGEX,       /* at the matches of a pattern */
    SPLIT_BLANK_FIRST, /* a blank before a piece that has none */
    SPLIT_BYTES,       /* each byte becomes the character that stands for it */
    SPLIT_WHITESPACE,  /* at white space, which goes */
    SPLIT_BERT,        /* that, and each punctuation character alone */
    SPLIT_METASPACE,   /* blanks become `mark`; before each mark when `cut` */
} SplitKind;

typedef enum SplitMatch { /* what becomes of a match */
    MATCH_ISOLATED,       /* a piece */
    MATCH_REMOVED,
    MATCH_WITH_PREVIOUS, /* the end of the piece before */
} SplitMatch;

typedef enum MarkFirst { MARK_NEVER, MARK_FIRST, MARK_ALWAYS } MarkFirst;

typedef struct Split {
    SplitKind  kind;
    Regex     *regex; /* owned */
    SplitMatch match;
    char       mark[8];
    MarkFirst  mark_first; /* a mark before: no piece, the text's first, every one */
    bool       cut;
} Split;

#define SPLITS_MAX 16

typedef struct Splitter {
    Split splits[SPLITS_MAX];
    int   count;
} Splitter;

typedef struct Piece {
    size_t start, length;
} Piece;

typedef struct Pieces {
    Text    text; /* what they are cut from */
    Piece  *list;
    int64_t count, room;
    bool    failed;
} Pieces;

/* Splits that models name. */
extern const char split_gpt2[], split_llama3[], split_qwen2[], split_digits[];

bool splitter_add(Splitter *s, Split split, Error *err); /* takes the regex, also when it fails */
bool splitter_add_regex(Splitter *s, const char *pattern, size_t length, SplitMatch match,
                        Error *err);
void splitter_free(Splitter *s);

/* Cuts text; *in and *out are used in turn, *out holds the pieces at the end.  begins: the text
 * to encode begins here. */
bool splitter_run(const Splitter *s, const char *text, size_t length, bool begins, RegexWork *work,
                  Pieces *in, Pieces *out, Error *err);
void pieces_free(Pieces *p);

/* The byte that a character of a byte-level vocabulary stands for; -1: none. */
int split_byte_of(uint32_t code);

/* White space and punctuation as the tokenizers library has them. */
bool split_is_space(uint32_t code);

#endif
