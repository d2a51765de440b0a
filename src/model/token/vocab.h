/* model/token/vocab.h -- the texts of a vocabulary and the ids they have.
 *
 * Finds a text, and all entries that a text begins with: the hash is taken byte by byte, so a
 * longer prefix costs one step.  Texts are UTF-8 and may hold NUL.
 */
#ifndef MODEL_TOKEN_VOCAB_H
#define MODEL_TOKEN_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct VocabText {
    uint32_t start;
    int32_t  length; /* -1: the id has no text */
} VocabText;

typedef struct VocabSlot {
    uint32_t hash;
    int32_t  id; /* -1: free */
} VocabSlot;

typedef struct Vocab {
    char      *bytes; /* all texts, a NUL after each */
    size_t     used, bytes_room;
    VocabText *texts; /* by id */
    int64_t    size, texts_room;
    VocabSlot *slots;
    int64_t    slot_count, filled; /* a power of two */
    size_t     longest;            /* bytes of the longest text */
    bool       failed;             /* memory or 4 GiB of text ran out */
} Vocab;

void vocab_free(Vocab *t);
/* Of two ids with one text the later is found. */
void vocab_put(Vocab *t, int32_t id, const char *text, size_t length);
/* The text of an id that is not to be found by it. */
void vocab_name(Vocab *t, int32_t id, const char *text, size_t length);
bool vocab_has(const Vocab *t, int32_t id);
/* Terminated, in the table; "" for an id without a text.  length may be NULL. */
const char *vocab_text(const Vocab *t, int32_t id, size_t *length);
/* -1: not there. */
int32_t vocab_find(const Vocab *t, const char *text, size_t length);
int32_t vocab_find_word(const Vocab *t, const char *word);

/* Entries that are `head` and the beginning of text, the shortest first. */
typedef struct VocabWalk {
    const char *head, *text;
    size_t      head_length, left;
    size_t      length; /* bytes of text in the entry found last */
    uint64_t    hash;
} VocabWalk;

VocabWalk vocab_walk(const char *head, const char *text, size_t left);
int32_t   vocab_next(const Vocab *t, VocabWalk *w); /* -1: no more */
/* Longest of them and its bytes of text; -1: none. */
int32_t   vocab_longest(const Vocab *t, const char *head, const char *text, size_t left,
                        size_t *length);

/* Ids that grow; a failed allocation is remembered. */
typedef struct TokenIds {
    int32_t *ids;
    int64_t  count, room;
    bool     failed;
} TokenIds;

void ids_add(TokenIds *out, int32_t id);

/* Room for `count` elements of `size` bytes in an array that holds *room: doubles.  False where
 * memory ends; the array stays. */
bool array_reserve(void *array, int64_t *room, int64_t count, size_t size);

/* `length` bytes for a message: control characters as '?', at most 60 bytes. */
typedef struct Shown {
    char text[68];
} Shown;
Shown shown(const char *text, size_t length);

#endif
