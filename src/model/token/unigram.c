/* unigram.c -- the unigram model (Kudo 2018, arXiv 1804.10959) and WordPiece.
 *
 * Unigram: of all ways to cut a piece into tokens that with the largest sum of scores, found from
 * the left (Viterbi); of equals the first.  A character that no token covers alone is unknown at a
 * fixed price, and unknown neighbours are one.
 */
#include "model/token/models.h"

#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"

static void reach(Step *to, double score, int64_t from, int32_t id)
{
    if (to->from < 0 || score > to->score)
        *to = (Step){ .score = score, .from = from, .id = id };
}

static void find_best(const Unigram *u, const Vocab *vocab, const char *text, size_t length,
                      Step *steps)
{
    for (size_t i = 0; i <= length; i++)
        steps[i] = (Step){ .from = -1 };
    for (size_t at = 0, bytes; at < length; at += bytes) {
        VocabWalk w = vocab_walk("", text + at, length - at);
        bool      alone = false;

        bytes = (size_t)utf8_decode(text + at, length - at, NULL);
        for (int32_t id; (id = vocab_next(vocab, &w)) >= 0;) {
            reach(&steps[at + w.length], steps[at].score + u->scores[id], (int64_t)at, id);
            alone = alone || w.length == bytes;
        }
        if (!alone)
            reach(&steps[at + bytes], steps[at].score + u->unknown_score, (int64_t)at,
                  u->unknown);
    }
}

/* Unknown text: its bytes, or one token. */
static bool add_unknown(const Unigram *u, const Vocab *vocab, const char *text, size_t length,
                        TokenIds *out, Error *err)
{
    int32_t whole = vocab_find(vocab, text, length);
    bool    bytes = u->byte_fallback;

    for (size_t i = 0; i < length; i++)
        bytes = bytes && u->bytes[(uint8_t)text[i]] >= 0;
    if (whole < 0 && !bytes && u->unknown < 0)
        return error_set(err, ERR_MODEL, "\"%s\" is not in the vocabulary, which has no "
                         "token for unknown text; leave it out, or give the ids (--ids)",
                         shown(text, length).text);
    if (whole >= 0 || !bytes)
        ids_add(out, whole >= 0 ? whole : u->unknown);
    else
        for (size_t i = 0; i < length; i++)
            ids_add(out, u->bytes[(uint8_t)text[i]]);
    return true;
}

bool unigram_encode(const Unigram *u, const Vocab *vocab, const char *text, size_t length,
                    ModelWork *w, TokenIds *out, Error *err)
{
    Step *steps;

    if (length > PIECE_MAX ||
        !array_reserve(&w->steps, &w->steps_room, (int64_t)length + 1, sizeof(*w->steps)))
        return error_set(err, ERR_NOMEM, "no memory for a piece of %zu bytes", length);
    steps = w->steps;
    find_best(u, vocab, text, length, steps);
    for (int64_t at = (int64_t)length; at > 0; at = steps[at].from)
        steps[steps[at].from].to = at;
    for (int64_t at = 0, end; at < (int64_t)length; at = end) {
        end = steps[at].to;
        if (steps[end].id != u->unknown) {
            ids_add(out, steps[end].id);
            continue;
        }
        while (end < (int64_t)length && steps[steps[end].to].id == u->unknown)
            end = steps[end].to;
        if (!add_unknown(u, vocab, text + at, (size_t)(end - at), out, err))
            return false;
    }
    return true;
}

bool wordpiece_encode(const Wordpiece *p, const Vocab *vocab, const char *text,
                      size_t length, TokenIds *out, Error *err)
{
    int64_t     first = out->count;
    const char *head = "";
    size_t      bytes;

    if (length > PIECE_MAX)
        return error_set(err, ERR_MODEL, "a word of %zu bytes; at most %d are read", length,
                         PIECE_MAX);
    if (utf8_count(text, length) > p->longest) {
        ids_add(out, p->unknown);
        return true;
    }
    for (size_t at = 0; at < length; at += bytes, head = p->prefix) {
        int32_t id = vocab_longest(vocab, head, text + at, length - at, &bytes);

        if (id < 0) { /* the whole word is */
            out->count = first;
            ids_add(out, p->unknown);
            return true;
        }
        ids_add(out, id);
    }
    return true;
}
