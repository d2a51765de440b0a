/* bpe.c -- byte-pair encoding (Sennrich et al. 2016, arXiv 1508.07909).
 *
 * The characters of a piece are symbols in a list.  Of all neighbours that may be joined the best
 * is: the merge of lowest rank, or, in SentencePiece's way, the pair whose union has the highest
 * score.  A heap holds the pairs, so a piece of n characters takes n log n steps.
 */
#include "model/token/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"

void model_work_free(ModelWork *w)
{
    free(w->symbols);
    free(w->heap);
    free(w->steps);
    *w = (ModelWork){ 0 };
}

void bpe_free(Bpe *b)
{
    free(b->merges);
    free(b->scores);
    *b = (Bpe){ 0 };
}

int model_find_bytes(const Vocab *vocab, int32_t bytes[256])
{
    int there = 0;

    for (int i = 0; i < 256; i++) {
        char name[8];

        snprintf(name, sizeof(name), "<0x%02X>", (unsigned)i);
        bytes[i] = vocab_find_word(vocab, name);
        there += bytes[i] >= 0;
    }
    return there;
}

/* ---- merges ---------------------------------------------------------------------- */

static int64_t merge_slot(const Merge *merges, int64_t slots, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    int64_t  at = (int64_t)(key * 0x9E3779B97F4A7C15u >> 32) & (slots - 1);

    while (merges[at].left >= 0 && (merges[at].left != left || merges[at].right != right))
        at = (at + 1) & (slots - 1);
    return at;
}

static bool merges_grow(Bpe *b)
{
    int64_t slots = b->slots ? 2 * b->slots : 1024;
    Merge  *grown = malloc((size_t)slots * sizeof(*grown));

    if (!grown)
        return false;
    for (int64_t i = 0; i < slots; i++)
        grown[i].left = -1;
    for (int64_t i = 0; i < b->slots; i++) {
        Merge *old = &b->merges[i];

        if (old->left >= 0)
            grown[merge_slot(grown, slots, old->left, old->right)] = *old;
    }
    free(b->merges);
    b->merges = grown;
    b->slots = slots;
    return true;
}

bool bpe_add_merge(Bpe *b, Merge merge)
{
    int64_t at;

    if (2 * (b->count + 1) > b->slots && !merges_grow(b))
        return false;
    at = merge_slot(b->merges, b->slots, merge.left, merge.right);
    b->count += b->merges[at].left < 0;
    b->merges[at] = merge;
    return true;
}

/* ---- the heap -------------------------------------------------------------------- */

static bool goes_before(const Candidate *a, const Candidate *b)
{
    return a->order < b->order || (a->order == b->order && a->at < b->at);
}

static bool heap_push(ModelWork *w, Candidate c)
{
    int64_t at = w->heap_count;

    if (!array_reserve(&w->heap, &w->heap_room, w->heap_count + 1, sizeof(*w->heap)))
        return false;
    w->heap_count++;
    for (int64_t up; at > 0 && goes_before(&c, &w->heap[up = (at - 1) / 2]); at = up)
        w->heap[at] = w->heap[up];
    w->heap[at] = c;
    return true;
}

static Candidate heap_pop(ModelWork *w)
{
    Candidate top = w->heap[0], last = w->heap[--w->heap_count];
    int64_t   at = 0;

    for (int64_t down; (down = 2 * at + 1) < w->heap_count; at = down) {
        if (down + 1 < w->heap_count && goes_before(&w->heap[down + 1], &w->heap[down]))
            down++;
        if (!goes_before(&w->heap[down], &last))
            break;
        w->heap[at] = w->heap[down];
    }
    w->heap[at] = last;
    return top;
}

/* ---- symbols --------------------------------------------------------------------- */

static bool symbol_add(ModelWork *w, int32_t id, size_t start, size_t length)
{
    int32_t at = (int32_t)w->symbol_count;

    if (!array_reserve(&w->symbols, &w->symbols_room, w->symbol_count + 1, sizeof(*w->symbols)))
        return false;
    w->symbols[at] = (Symbol){ id, (int32_t)start, (int32_t)length, at - 1, at + 1 };
    w->symbol_count++;
    return true;
}

/* The tokens of its bytes; *done stays false where one is missing. */
static bool add_bytes(const Bpe *b, const char *text, size_t start, size_t length, bool *done,
                      ModelWork *w)
{
    for (size_t i = 0; i < length; i++)
        if (b->bytes[(uint8_t)text[start + i]] < 0)
            return true;
    *done = true;
    for (size_t i = 0; i < length; i++)
        if (!symbol_add(w, b->bytes[(uint8_t)text[start + i]], start + i, 1))
            return false;
    return true;
}

/* One symbol a character.  `unknown`: bytes of unknown characters that are not yet a symbol. */
static bool add_symbols(const Bpe *b, const Vocab *vocab, const char *text, size_t length,
                        ModelWork *w)
{
    size_t unknown = 0;

    w->symbol_count = 0;
    for (size_t at = 0, bytes; at < length; at += bytes) {
        int32_t id;
        bool    done = false;

        bytes = (size_t)utf8_decode(text + at, length - at, NULL);
        id = vocab_find(vocab, text + at, bytes);
        if (id < 0 && b->byte_fallback && !add_bytes(b, text, at, bytes, &done, w))
            return false;
        if (done || (id < 0 && b->unknown < 0))
            continue;
        if (unknown > 0 && (id >= 0 || !b->fuse_unknown)) {
            if (!symbol_add(w, b->unknown, at - unknown, unknown))
                return false;
            unknown = 0;
        }
        if (id < 0)
            unknown += bytes;
        else if (!symbol_add(w, id, at, bytes))
            return false;
    }
    return unknown == 0 || symbol_add(w, b->unknown, length - unknown, unknown);
}

/* By score every character is a symbol, a token or not. */
static bool add_characters(const Vocab *vocab, const char *text, size_t length, ModelWork *w)
{
    w->symbol_count = 0;
    for (size_t at = 0, bytes; at < length; at += bytes) {
        bytes = (size_t)utf8_decode(text + at, length - at, NULL);
        if (!symbol_add(w, vocab_find(vocab, text + at, bytes), at, bytes))
            return false;
    }
    return true;
}

/* ---- joining --------------------------------------------------------------------- */

/* The pair of the symbol at and the one behind goes into the heap if it may be joined. */
static bool offer(const Bpe *b, const Vocab *vocab, const char *text, int32_t at,
                  ModelWork *w)
{
    const Symbol *left = &w->symbols[at], *right = &w->symbols[left->after];
    Candidate     c = { .at = at, .length = left->length + right->length };

    if (b->scores) {
        c.id = vocab_find(vocab, text + left->start, (size_t)c.length);
        if (c.id < 0)
            return true;
        c.order = -(double)b->scores[c.id];
    } else {
        const Merge *m;

        if (b->slots == 0)
            return true;
        m = &b->merges[merge_slot(b->merges, b->slots, left->id, right->id)];
        if (m->left < 0)
            return true;
        c.id = m->id;
        c.order = m->rank;
    }
    return heap_push(w, c);
}

/* Symbols only grow, so a candidate of another length is out of date. */
static bool join_all(const Bpe *b, const Vocab *vocab, const char *text, ModelWork *w)
{
    w->heap_count = 0;
    for (int32_t i = 0; i + 1 < w->symbol_count; i++)
        if (!offer(b, vocab, text, i, w))
            return false;
    while (w->heap_count > 0) {
        Candidate c = heap_pop(w);
        Symbol   *left = &w->symbols[c.at], *right;

        if (left->length == 0 || left->after < 0)
            continue;
        right = &w->symbols[left->after];
        if (left->length + right->length != c.length)
            continue;
        left->id = c.id;
        left->length = c.length;
        right->length = 0;
        left->after = right->after;
        if (left->after >= 0)
            w->symbols[left->after].before = c.at;
        if ((left->after >= 0 && !offer(b, vocab, text, c.at, w)) ||
            (left->before >= 0 && !offer(b, vocab, text, left->before, w)))
            return false;
    }
    return true;
}

/* By score, a character that is no token becomes its bytes' tokens, or is unknown. */
static void add_id(const Bpe *b, const char *text, const Symbol *s, TokenIds *out)
{
    if (s->id >= 0) {
        ids_add(out, s->id);
        return;
    }
    for (int32_t i = 0; i < s->length; i++) {
        int32_t id = b->bytes[(uint8_t)text[s->start + i]];

        if (id >= 0)
            ids_add(out, id);
        else if (b->unknown >= 0 && i == 0)
            ids_add(out, b->unknown);
    }
}

bool bpe_encode(const Bpe *b, const Vocab *vocab, const char *text, size_t length,
                ModelWork *w, TokenIds *out, Error *err)
{
    int32_t whole = b->whole_pieces ? vocab_find(vocab, text, length) : -1;

    if (whole >= 0) {
        ids_add(out, whole);
        return true;
    }
    if (length > PIECE_MAX)
        return error_set(err, ERR_MODEL, "a piece of %zu bytes; at most %d are read", length,
                         PIECE_MAX);
    if (!(b->scores ? add_characters(vocab, text, length, w)
                    : add_symbols(b, vocab, text, length, w)))
        return error_set(err, ERR_NOMEM, "no memory for a piece of %zu bytes", length);
    if (w->symbol_count == 0)
        return true;
    w->symbols[w->symbol_count - 1].after = -1;
    if (!join_all(b, vocab, text, w))
        return error_set(err, ERR_NOMEM, "no memory for a piece of %zu bytes", length);
    for (int32_t i = 0; i >= 0; i = w->symbols[i].after)
        add_id(b, text, &w->symbols[i], out);
    return true;
}
