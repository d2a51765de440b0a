/* labels.c -- token labels, numbers as text, and metadata; see labels.h. */
#include <ctype.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/utf8.h"
#include "input/labels.h"

/* The character shown for a code point. */
static uint32_t shown(uint32_t code)
{
    if (code < 0x20)
        return 0x2400 + code;
    if (code == 0x7f)
        return 0x2421;
    return code > 0x7f && code < 0xa0 ? UTF8_REPLACEMENT : code;
}

/* The code point at src; *used bytes hold it. */
static uint32_t next_code(ElementType type, const uint8_t *src, int64_t left, int *used)
{
    uint32_t code;

    if (type.kind == ELEMENT_UCS4) {
        memcpy(&code, src, 4);
        *used = 4;
        return type.swapped ? __builtin_bswap32(code) : code;
    }
    *used = utf8_decode(src, (size_t)left, &code);
    if (*used)
        return code;
    *used = 1;
    return UTF8_REPLACEMENT;
}

static int64_t text_end(ElementType type, const uint8_t *src)
{
    int64_t end = type.size;

    while (end > 0 && src[end - 1] == 0)
        end--;
    if (type.kind == ELEMENT_UCS4) /* the upper bytes of a code point are zero too */
        end = (end + 3) / 4 * 4;
    return end;
}

int64_t labels_text(ElementType type, const uint8_t *src, char *out, int64_t size)
{
    int64_t length = 0, end = text_end(type, src);
    char    piece[4];
    int     used, count;

    for (int64_t at = 0; at < end; at += used) {
        count = utf8_encode(shown(next_code(type, src + at, end - at, &used)), piece);
        if (length + count >= size)
            break;
        memcpy(out + length, piece, (size_t)count);
        length += count;
    }
    out[length] = '\0';
    return length;
}

static char *text_label(Arena *arena, ElementType type, const uint8_t *src)
{
    /* A malformed byte becomes three; a code point is at most four. */
    int64_t room = text_end(type, src) * (type.kind == ELEMENT_UCS4 ? 1 : 3) + 1;
    char   *text = arena_alloc(arena, room, 1);

    if (text)
        labels_text(type, src, text, room);
    return text;
}

char *labels_copy(Arena *arena, const uint8_t *text, int64_t size)
{
    return text_label(arena, (ElementType){ .kind = ELEMENT_BYTES, .size = size }, text);
}

/* `count` elements, text or integers, as labels; NULL: out of memory. */
static char **labels_of(Arena *arena, ElementType type, const uint8_t *src, int64_t count)
{
    char **labels = arena_alloc(arena, count, sizeof(*labels));

    for (int64_t i = 0; labels && i < count; i++) {
        const uint8_t *at = src + i * type.size;

        labels[i] = element_is_text(type)
                        ? text_label(arena, type, at)
                        : arena_printf(arena, "%lld", (long long)element_to_i64(type, at));
        if (!labels[i])
            return NULL;
    }
    return labels;
}

bool labels_parse(const char *text, size_t length, double *out)
{
    locale_t plain; /* cheap: glibc caches the "C" locale */
    char     copy[64], *end;

    while (length && isspace((unsigned char)*text))
        text++, length--;
    while (length && isspace((unsigned char)text[length - 1]))
        length--;
    if (length == 0 || length >= sizeof(copy))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    plain = newlocale(LC_ALL_MASK, "C", NULL);
    if (!plain)
        return false;
    *out = strtod_l(copy, &end, plain);
    freelocale(plain);
    return end == copy + length;
}

/* The fewest digits that read back as the same number. */
static void shortest(double value, char *text, size_t size)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
}

char *labels_number(double value, char *text, size_t size)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", NULL), before;

    before = plain ? uselocale(plain) : NULL;
    if (value >= -1e15 && value <= 1e15 && value == (double)(int64_t)value)
        snprintf(text, size, "%lld", (long long)value); /* 20, not 2e+01 */
    else
        shortest(value, text, size);
    if (plain) {
        uselocale(before);
        freelocale(plain);
    }
    return text;
}

/* ---- metadata --------------------------------------------------------------- */

bool metadata_layout(const Store *store, char letters[STORE_MAX_RANK + 1], Error *err)
{
    const char *text = store_metadata(store, "layout");
    int         count = 0;

    letters[0] = '\0';
    for (const char *s = text; s && *s; s++) {
        char letter = *s == 'b' ? '1' : *s;

        if (letter == ',' || letter == ' ')
            continue;
        if (!strchr("hnd1", letter) || strchr(letters, letter))
            return error_set(err, ERR_FORMAT, "metadata layout \"%.40s\": expected an order of the "
                             "axes such as \"h,n,d\", \"n,h,d\" or \"1,h,n,d\"", text);
        letters[count++] = letter;
        letters[count] = '\0';
    }
    if (text && (!strchr(letters, 'n') || !strchr(letters, 'd')))
        return error_set(err, ERR_FORMAT, "metadata layout \"%.40s\" names no n or no d", text);
    return true;
}

static bool parse_causal(Input *in, const char *text, Error *err)
{
    static const char *const words[2][4] = { { "0", "false", "no", "off" },
                                             { "1", "true", "yes", "on" } };

    for (int value = 0; value < 2; value++)
        for (int i = 0; i < 4; i++)
            if (strcasecmp(text, words[value][i]) == 0) {
                in->causal = value;
                return true;
            }
    return error_set(err, ERR_FORMAT, "metadata causal is \"%.40s\"; expected 1 or 0", text);
}

/* A whole number from 0; *out stays where the file has no such key. */
static bool take_count(const Store *store, const char *key, const char *wanted, int64_t *out,
                       Error *err)
{
    const char *text = store_metadata(store, key);
    double      value;

    if (!text)
        return true;
    if (!labels_parse(text, strlen(text), &value) || !(value >= 0 && value <= 1e9) ||
        value != floor(value))
        return error_set(err, ERR_FORMAT, "metadata %s is \"%.40s\"; expected %s", key, text,
                         wanted);
    *out = (int64_t)value;
    return true;
}

bool metadata_scalars(Input *in, const Store *store, Error *err)
{
    const char *causal = store_metadata(store, "causal"), *scale = store_metadata(store, "scale");
    const char *model = store_metadata(store, "model");
    double      value;

    if (causal && !parse_causal(in, causal, err))
        return false;
    if (scale) {
        if (!labels_parse(scale, strlen(scale), &value) || !(value > 0 && value <= 1e30))
            return error_set(err, ERR_FORMAT, "metadata scale is \"%.40s\"; expected a number "
                             "above 0", scale);
        in->scale = value;
    }
    if (!take_count(store, "width", "a number of pixels", &in->width, err) ||
        !take_count(store, "window", "a number of keys, or 0 for no window", &in->window, err))
        return false;
    if (model) {
        in->model = labels_copy(in->arena, (const uint8_t *)model, (int64_t)strlen(model));
        if (!in->model)
            return error_set(err, ERR_NOMEM, "no memory for the model's name");
    }
    return true;
}

/* ---- tokens -------------------------------------------------------------- */

static char *json_label(Arena *arena, const json_t *item)
{
    const char *text = json_string_value(item);

    if (text)
        return labels_copy(arena, (const uint8_t *)text, (int64_t)json_string_length(item));
    return arena_printf(arena, "%lld", (long long)json_integer_value(item));
}

static bool labels_of_json(Arena *arena, const char *text, char ***out, int64_t *count, Error *err)
{
    json_error_t why;
    json_t      *list = json_loads(text, 0, &why);
    bool         ok = false;

    if (!json_is_array(list)) {
        error_set(err, ERR_FORMAT, "metadata tokens: expected a JSON list of texts%s%.100s",
                  list ? "" : ": ", list ? "" : why.text);
        goto out;
    }
    *count = (int64_t)json_array_size(list);
    *out = arena_alloc(arena, *count, sizeof(**out));
    for (int64_t i = 0; i < *count; i++) {
        const json_t *item = json_array_get(list, (size_t)i);

        if (!json_is_string(item) && !json_is_integer(item)) {
            error_set(err, ERR_FORMAT, "metadata tokens: item %lld is neither text nor a number",
                      (long long)i);
            goto out;
        }
        if (!*out || !((*out)[i] = json_label(arena, item))) {
            error_set(err, ERR_NOMEM, "no memory for %lld labels", (long long)*count);
            goto out;
        }
    }
    ok = true;
out:
    json_decref(list);
    return ok;
}

static bool labels_of_entry(Store *store, Arena *arena, StoreEntry *entry, char ***out,
                            int64_t *count, Error *err)
{
    ElementKind kind = entry->type.kind;
    int         rank = entry->info.rank;
    char        shape[200];

    if (!element_is_text(entry->type) && kind != ELEMENT_INT && kind != ELEMENT_UINT) {
        if (!element_is_number(entry->type))
            return store_is_number(entry, err); /* sets the reason */
        return error_set(err, ERR_DATA, "%.80s has dtype %s; expected text or whole numbers",
                         entry->info.name, entry->info.dtype);
    }
    if (rank != 1 && !(rank == 2 && entry->info.shape[0] == 1))
        return error_set(err, ERR_DATA, "%.80s has shape %s; expected one label a position",
                         entry->info.name, store_shape_text(entry, shape, sizeof(shape)));
    *count = entry->info.shape[rank - 1];
    if (!store_fetch(store, entry, err))
        return false;
    *out = labels_of(arena, entry->type, entry->data, *count);
    store_drop(entry);
    return *out || error_set(err, ERR_NOMEM, "no memory for %lld labels", (long long)*count);
}

/* Labels of `key`, an array or metadata; *out NULL: absent. */
static bool find_labels(Input *in, Store *store, const char *key, char ***out, int64_t *count,
                        Error *err)
{
    StoreEntry *entry = store_find(store, key);
    const char *text = store_metadata(store, key);

    *out = NULL;
    *count = 0;
    if (entry)
        return labels_of_entry(store, in->arena, entry, out, count, err);
    return !text || labels_of_json(in->arena, text, out, count, err);
}

static bool take_labels(char ***slot, int64_t wanted, char **labels, int64_t count,
                        const char *key, Error *err)
{
    if (!labels)
        return true;
    if (count != wanted)
        return error_set(err, ERR_DATA, "%s has %lld labels, but the sequence has %lld positions",
                         key, (long long)count, (long long)wanted);
    *slot = labels;
    return true;
}

bool metadata_tokens(Input *in, Store *store, Error *err)
{
    char  **labels;
    int64_t count;

    if (!find_labels(in, store, "tokens", &labels, &count, err))
        return false;
    if (in->n != in->m && count == in->m)
        in->k_tokens = labels; /* these are the keys' tokens */
    else if (!take_labels(&in->q_tokens, in->n, labels, count, "tokens", err))
        return false;
    if (!find_labels(in, store, "q_tokens", &labels, &count, err) ||
        !take_labels(&in->q_tokens, in->n, labels, count, "q_tokens", err) ||
        !find_labels(in, store, "k_tokens", &labels, &count, err) ||
        !take_labels(&in->k_tokens, in->m, labels, count, "k_tokens", err))
        return false;
    if (!in->k_tokens && in->n == in->m)
        in->k_tokens = in->q_tokens;
    return true;
}

/* ---- segments ------------------------------------------------------------ */

bool metadata_segments(Input *in, Store *store, Error *err)
{
    StoreEntry *entry = store_find(store, "segments");
    ElementKind kind = entry ? entry->type.kind : ELEMENT_UNKNOWN;
    int         rank = entry ? entry->info.rank : 0;
    int64_t     count = rank ? entry->info.shape[rank - 1] : 0;
    char        shape[200];

    if (!entry)
        return true;
    if (kind != ELEMENT_INT && kind != ELEMENT_UINT)
        return error_set(err, ERR_DATA, "segments has dtype %s; expected whole numbers, one a "
                         "position", entry->info.dtype);
    if (count != in->n || (rank != 1 && !(rank == 2 && entry->info.shape[0] == 1)))
        return error_set(err, ERR_DATA, "segments has shape %s; expected (%lld,), one number a "
                         "position", store_shape_text(entry, shape, sizeof(shape)),
                         (long long)in->n);
    if (!store_fetch(store, entry, err))
        return false;
    in->segments = tensor_new(in->arena, DT_I64, 1, &count);
    for (int64_t i = 0; in->segments.data && i < count; i++)
        ((int64_t *)in->segments.data)[i] =
            element_to_i64(entry->type, entry->data + i * entry->type.size);
    store_drop(entry);
    return in->segments.data ||
           error_set(err, ERR_NOMEM, "no memory for %lld segments", (long long)count);
}
