/* vocab.c -- texts and ids; see vocab.h. */
#include "model/token/vocab.h"

#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"

#define HASH_START 0xCBF29CE484222325u /* FNV-1a */

static uint64_t hash_byte(uint64_t hash, char byte)
{
    return (hash ^ (uint8_t)byte) * 0x100000001B3u;
}

static uint64_t hash_bytes(uint64_t hash, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = hash_byte(hash, text[i]);
    return hash;
}

/* FNV's low bits are weak. */
static uint32_t hash_end(uint64_t hash)
{
    hash ^= hash >> 29;
    return (uint32_t)((hash * 0x9E3779B97F4A7C15u) >> 32);
}

bool array_reserve(void *array, int64_t *room, int64_t count, size_t size)
{
    int64_t wanted = *room < 16 ? 16 : *room;
    void   *grown;

    if (count <= *room)
        return true;
    if (count < 0 || (uint64_t)count > SIZE_MAX / 4 / size)
        return false;
    while (wanted < count)
        wanted *= 2;
    grown = realloc(*(void **)array, (size_t)wanted * size);
    if (!grown)
        return false;
    *(void **)array = grown;
    *room = wanted;
    return true;
}

void ids_add(TokenIds *out, int32_t id)
{
    if (out->failed || !array_reserve(&out->ids, &out->room, out->count + 1, sizeof(*out->ids)))
        out->failed = true;
    else
        out->ids[out->count++] = id;
}

void vocab_free(Vocab *t)
{
    free(t->bytes);
    free(t->texts);
    free(t->slots);
    *t = (Vocab){ 0 };
}

bool vocab_has(const Vocab *t, int32_t id)
{
    return id >= 0 && id < t->size && t->texts[id].length >= 0;
}

const char *vocab_text(const Vocab *t, int32_t id, size_t *length)
{
    bool there = vocab_has(t, id);

    if (length)
        *length = there ? (size_t)t->texts[id].length : 0;
    return there ? t->bytes + t->texts[id].start : "";
}

/* ---- finding --------------------------------------------------------------------- */

/* The slot of head and text, or the free one where it would be. */
static int64_t slot_of(const Vocab *t, uint32_t hash, const char *head, size_t head_length,
                       const char *text, size_t length)
{
    int64_t at = hash & (uint32_t)(t->slot_count - 1);

    for (; t->slots[at].id >= 0; at = (at + 1) & (t->slot_count - 1)) {
        const VocabText *entry = &t->texts[t->slots[at].id];
        const char      *bytes = t->bytes + entry->start;

        if (t->slots[at].hash == hash && (size_t)entry->length == head_length + length &&
            memcmp(bytes, head, head_length) == 0 &&
            memcmp(bytes + head_length, text, length) == 0)
            break;
    }
    return at;
}

int32_t vocab_find(const Vocab *t, const char *text, size_t length)
{
    if (t->slot_count == 0 || length > t->longest)
        return -1;
    return t->slots[slot_of(t, hash_end(hash_bytes(HASH_START, text, length)), "", 0, text,
                            length)].id;
}

int32_t vocab_find_word(const Vocab *t, const char *word)
{
    return vocab_find(t, word, strlen(word));
}

VocabWalk vocab_walk(const char *head, const char *text, size_t left)
{
    size_t head_length = strlen(head);

    return (VocabWalk){ .head = head, .text = text, .head_length = head_length, .left = left,
                        .hash = hash_bytes(HASH_START, head, head_length) };
}

int32_t vocab_next(const Vocab *t, VocabWalk *w)
{
    while (t->slot_count > 0 && w->length < w->left && w->head_length + w->length < t->longest) {
        int32_t id;

        w->hash = hash_byte(w->hash, w->text[w->length++]);
        if (w->length < w->left && utf8_continues(w->text[w->length]))
            continue;
        id = t->slots[slot_of(t, hash_end(w->hash), w->head, w->head_length, w->text,
                              w->length)].id;
        if (id >= 0)
            return id;
    }
    return -1;
}

int32_t vocab_longest(const Vocab *t, const char *head, const char *text, size_t left,
                      size_t *length)
{
    VocabWalk w = vocab_walk(head, text, left);
    int32_t   best = -1;

    for (int32_t id; (id = vocab_next(t, &w)) >= 0;) {
        best = id;
        *length = w.length;
    }
    return best;
}

/* ---- filling --------------------------------------------------------------------- */

static void slots_grow(Vocab *t)
{
    int64_t    old_count = t->slot_count, count = old_count ? 2 * old_count : 1024;
    VocabSlot *old = t->slots, *slots = malloc((size_t)count * sizeof(*slots));

    if (!slots) {
        t->failed = true;
        return;
    }
    for (int64_t i = 0; i < count; i++)
        slots[i].id = -1;
    for (int64_t i = 0; i < old_count; i++) {
        int64_t at = old[i].hash & (uint32_t)(count - 1);

        if (old[i].id < 0)
            continue;
        while (slots[at].id >= 0)
            at = (at + 1) & (count - 1);
        slots[at] = old[i];
    }
    free(old);
    t->slots = slots;
    t->slot_count = count;
}

/* Ids below size exist, without a text where none is put. */
static void vocab_extend(Vocab *t, int64_t size)
{
    if (t->failed || size <= t->size)
        return;
    if (!array_reserve(&t->texts, &t->texts_room, size, sizeof(*t->texts))) {
        t->failed = true;
        return;
    }
    while (t->size < size)
        t->texts[t->size++] = (VocabText){ 0, -1 };
}

static bool bytes_put(Vocab *t, const char *text, size_t length)
{
    int64_t room = (int64_t)t->bytes_room;

    if (length >= INT32_MAX || t->used + length + 1 > UINT32_MAX ||
        !array_reserve(&t->bytes, &room, (int64_t)(t->used + length + 1), 1))
        return false;
    t->bytes_room = (size_t)room;
    memcpy(t->bytes + t->used, text, length);
    t->bytes[t->used + length] = '\0';
    t->used += length + 1;
    return true;
}

void vocab_name(Vocab *t, int32_t id, const char *text, size_t length)
{
    vocab_extend(t, (int64_t)id + 1);
    if (t->failed || !bytes_put(t, text, length))
        t->failed = true;
    else
        t->texts[id] = (VocabText){ (uint32_t)(t->used - length - 1), (int32_t)length };
}

void vocab_put(Vocab *t, int32_t id, const char *text, size_t length)
{
    uint32_t hash = hash_end(hash_bytes(HASH_START, text, length));
    int64_t  at;

    vocab_name(t, id, text, length);
    if (!t->failed && 2 * (t->filled + 1) > t->slot_count)
        slots_grow(t);
    if (t->failed)
        return;
    at = slot_of(t, hash, "", 0, text, length);
    t->filled += t->slots[at].id < 0;
    t->slots[at] = (VocabSlot){ hash, id };
    if (length > t->longest)
        t->longest = length;
}

Shown shown(const char *text, size_t length)
{
    Shown  out;
    size_t used = 0;

    for (size_t at = 0; at < length;) {
        uint32_t code;
        int      bytes = utf8_decode(text + at, length - at, &code);

        if (used + 4 > 60) {
            memcpy(out.text + used, "...", 3);
            used += 3;
            break;
        }
        if (bytes == 0 || utf8_is_control(code)) {
            out.text[used++] = '?';
        } else {
            memcpy(out.text + used, text + at, (size_t)bytes);
            used += (size_t)bytes;
        }
        at += bytes ? (size_t)bytes : 1;
    }
    out.text[used] = '\0';
    return out;
}
