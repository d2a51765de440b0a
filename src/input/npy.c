/* npy.c -- NumPy's array file (versions 1 to 3), its archive npz, and one array as a Tensor.
 *
 *     "\x93NUMPY" major minor, header length (u16 in version 1, else u32; little-endian),
 *     the header: a Python dict {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), },
 *     then the elements, to the end of the file.
 *
 * The keys may come in any order and each must come once.  Arrays of objects
 * (pickle) and structured types parse, so that an archive holding one can be
 * listed, but their kind stays ELEMENT_UNKNOWN and no reader takes them.
 *
 * Source: the format description in the NumPy reference (numpy.lib.format).
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "core/text.h"
#include "input/labels.h"
#include "input/store.h"

typedef struct Cursor {
    const char *start, *at, *end; /* start: of the whole file, for byte offsets in messages */
} Cursor;

static bool expected(const Cursor *c, const char *what, Error *err)
{
    char found[16] = "the end";

    if (c->at < c->end)
        snprintf(found, sizeof(found), isprint((unsigned char)*c->at) ? "'%c'" : "byte 0x%02x",
                 (unsigned char)*c->at);
    return error_set(err, ERR_FORMAT, "npy header, byte %lld: expected %s, found %s",
                     (long long)(c->at - c->start), what, found);
}

static void skip_space(Cursor *c)
{
    while (c->at < c->end && isspace((unsigned char)*c->at))
        c->at++;
}

static bool take_sign(Cursor *c, char wanted)
{
    skip_space(c);
    if (c->at >= c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

/* 'text' or "text" without escapes. */
static bool parse_string(Cursor *c, char *out, size_t size, Error *err)
{
    const char *begin;
    size_t      length;
    char        quote;

    skip_space(c);
    if (c->at >= c->end || (*c->at != '\'' && *c->at != '"'))
        return expected(c, "a quoted string", err);
    quote = *c->at++;
    begin = c->at;
    while (c->at < c->end && *c->at != quote)
        c->at++;
    length = (size_t)(c->at - begin);
    if (c->at >= c->end || length >= size)
        return expected(c, "a short string and its closing quote", err);
    memcpy(out, begin, length);
    out[length] = '\0';
    c->at++;
    return true;
}

/* The 'descr' of a structured type: kept as text, not parsed. */
static bool parse_structured(Cursor *c, char *out, size_t size, Error *err)
{
    int    depth = 0;
    size_t length = 0;

    for (; c->at < c->end; c->at++) {
        if (length + 1 < size)
            out[length++] = *c->at;
        depth += *c->at == '[' || *c->at == '(';
        depth -= *c->at == ']' || *c->at == ')';
        if (depth == 0) {
            c->at++;
            out[length] = '\0';
            return true;
        }
    }
    return expected(c, "the end of the list of fields", err);
}

static bool parse_extent(Cursor *c, int64_t *out, Error *err)
{
    const char *begin;
    int64_t     value = 0;

    skip_space(c);
    begin = c->at;
    for (; c->at < c->end && isdigit((unsigned char)*c->at); c->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *c->at - '0', &value))
            return expected(c, "an extent below 2^63", err);
    if (c->at == begin)
        return expected(c, "an extent", err);
    if (c->at < c->end && *c->at == 'L') /* a Python 2 long */
        c->at++;
    *out = value;
    return true;
}

static bool parse_tuple(Cursor *c, StoreEntry *entry, Error *err)
{
    int64_t extent = 0;

    if (!take_sign(c, '('))
        return expected(c, "'(' of the shape", err);
    while (!take_sign(c, ')')) {
        if (!parse_extent(c, &extent, err))
            return false;
        if (entry->info.rank == STORE_MAX_RANK)
            return expected(c, "at most 8 extents", err);
        entry->info.shape[entry->info.rank++] = extent;
        skip_space(c);
        if (!take_sign(c, ',') && (c->at >= c->end || *c->at != ')'))
            return expected(c, "',' or ')'", err);
    }
    return true;
}

static bool parse_bool(Cursor *c, bool *out, Error *err)
{
    size_t left;

    skip_space(c);
    left = (size_t)(c->end - c->at);
    if (left >= 4 && memcmp(c->at, "True", 4) == 0) {
        *out = true;
        c->at += 4;
        return true;
    }
    if (left >= 5 && memcmp(c->at, "False", 5) == 0) {
        *out = false;
        c->at += 5;
        return true;
    }
    return expected(c, "True or False", err);
}

static ElementKind number_kind(char letter, long size)
{
    bool power = size == 1 || size == 2 || size == 4 || size == 8;

    if (letter == 'b' && size == 1)
        return ELEMENT_BOOL;
    if (letter == 'i' && power)
        return ELEMENT_INT;
    if (letter == 'u' && power)
        return ELEMENT_UINT;
    if (letter == 'f' && power && size > 1)
        return ELEMENT_FLOAT;
    return ELEMENT_UNKNOWN;
}

/* "<f4": byte order, kind, size. Other kinds stay unknown. */
static ElementType parse_descr(const char *descr)
{
    ElementType type = { .kind = ELEMENT_UNKNOWN };
    char       *end;
    long        size;

    if (!*descr || !strchr("<>|=", *descr) || !descr[1] || !isdigit((unsigned char)descr[2]))
        return type;
    size = strtol(descr + 2, &end, 10);
    if (*end || size < 0 || size > 1 << 24)
        return type;
    type.swapped = *descr == '>';
    type.size = size;
    if (descr[1] == 'S')
        type.kind = ELEMENT_BYTES;
    else if (descr[1] == 'U')
        type.kind = ELEMENT_UCS4, type.size = 4 * size;
    else
        type.kind = number_kind(descr[1], size);
    return type;
}

static bool parse_descr_value(Cursor *c, StoreEntry *entry, Error *err)
{
    char text[sizeof(entry->info.dtype)];

    skip_space(c);
    if (c->at < c->end && (*c->at == '[' || *c->at == '(')) {
        if (!parse_structured(c, text, sizeof(text), err))
            return false;
    } else if (!parse_string(c, text, sizeof(text), err)) {
        return false;
    }
    for (char *s = text; *s; s++)
        if (!isprint((unsigned char)*s))
            *s = '?';
    memcpy(entry->info.dtype, text, sizeof(text));
    entry->type = parse_descr(text);
    return true;
}

static bool parse_dict(Cursor *c, StoreEntry *entry, Error *err)
{
    static const char *const keys[] = { "descr", "fortran_order", "shape" };
    bool seen[3] = { false };
    char key[32];
    int  k;

    if (!take_sign(c, '{'))
        return expected(c, "'{'", err);
    while (!take_sign(c, '}')) {
        if (!parse_string(c, key, sizeof(key), err))
            return false;
        for (k = 0; k < 3 && strcmp(keys[k], key) != 0;)
            k++;
        if (k == 3 || seen[k])
            return expected(c, "one each of 'descr', 'fortran_order' and 'shape' before this", err);
        seen[k] = true;
        if (!take_sign(c, ':'))
            return expected(c, "':'", err);
        if (!(k == 0   ? parse_descr_value(c, entry, err)
              : k == 1 ? parse_bool(c, &entry->fortran, err)
                       : parse_tuple(c, entry, err)))
            return false;
        if (!take_sign(c, ',') && (c->at >= c->end || *c->at != '}'))
            return expected(c, "',' or '}'", err);
    }
    if (!seen[0] || !seen[1] || !seen[2])
        return expected(c, "'descr', 'fortran_order' and 'shape' before this", err);
    skip_space(c);
    return c->at == c->end || expected(c, "nothing after the dict", err);
}

/* The header of one npy file or member: fills entry, sets *offset to where the
 * data begin.  `size` is what is there, at least the header. */
static bool npy_parse_header(const uint8_t *bytes, int64_t size, StoreEntry *entry, int64_t *offset,
                             Error *err)
{
    const char *text = (const char *)bytes;
    int64_t     begin, length;
    Cursor      c;

    if (size < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return error_set(err, ERR_FORMAT, "byte 0: expected the 10 bytes that begin an npy array");
    if (bytes[6] < 1 || bytes[6] > 3)
        return error_set(err, ERR_FORMAT, "byte 6: npy version %d.%d, expected 1 to 3", bytes[6],
                         bytes[7]);
    begin = bytes[6] == 1 ? 10 : 12;
    if (size < begin)
        return error_set(err, ERR_FORMAT, "byte %lld: the npy header is cut off", (long long)size);
    length = bytes[8] | bytes[9] << 8;
    if (bytes[6] > 1)
        length |= (int64_t)bytes[10] << 16 | (int64_t)bytes[11] << 24;
    if (length > NPY_HEADER_MAX)
        return error_set(err, ERR_FORMAT, "byte 8: npy header of %lld bytes, at most %d are read",
                         (long long)length, NPY_HEADER_MAX);
    if (begin + length > size)
        return error_set(err, ERR_FORMAT, "byte 8: npy header of %lld bytes, but only %lld follow",
                         (long long)length, (long long)(size - begin));
    c = (Cursor){ .start = text, .at = text + begin, .end = text + begin + length };
    *offset = begin + length;
    return parse_dict(&c, entry, err) && store_entry_size(entry, err);
}

bool store_open_npy(Store *store, Mapped bytes, const char *stem, Error *err)
{
    int64_t     offset;
    StoreEntry *entry = store_add(store, stem, strlen(stem), err);
    char        shape[200];

    store->kind = "npy";
    if (!entry || !npy_parse_header(bytes.data, bytes.size, entry, &offset, err))
        return false;
    entry->data = bytes.data + offset;
    if (entry->type.kind == ELEMENT_UNKNOWN || entry->info.bytes == bytes.size - offset)
        return true;
    return error_set(err, ERR_FORMAT,
                     "byte %lld: shape %s of dtype %s needs %lld bytes, but %lld are there",
                     (long long)offset, store_shape_text(entry, shape, sizeof(shape)),
                     entry->info.dtype, (long long)entry->info.bytes,
                     (long long)(bytes.size - offset));
}

/* NumPy's archive: a zip of npy members.
 *
 * Opening reads each member's npy header only; the elements are inflated when
 * an array is wanted, with their checksum.  A member's declared size must fit
 * its header's shape and the largest ratio deflate can reach, so a small file
 * cannot ask for much memory.  Arrays of one element named causal, scale,
 * width, window, layout or model double as metadata.
 *
 * The archive is read through libzip from the mapped bytes (stored, deflated,
 * zip64).  A zip holding data.pkl is a PyTorch checkpoint: pickle, refused.
 */

static void npz_close(Store *store)
{
    if (store->backend)
        zip_discard(store->backend);
    store->backend = NULL;
}

static bool zip_open_bytes(Store *store, Mapped bytes, Error *err)
{
    zip_error_t   why;
    zip_source_t *source;
    zip_t        *zip = NULL;

    zip_error_init(&why);
    source = zip_source_buffer_create(bytes.data, (zip_uint64_t)bytes.size, 0, &why);
    if (source)
        zip = zip_open_from_source(source, ZIP_RDONLY, &why);
    if (!zip) {
        error_set(err, ERR_FORMAT, "is not a whole zip archive: %s", zip_error_strerror(&why));
        if (source)
            zip_source_free(source);
    }
    zip_error_fini(&why);
    store->backend = zip;
    store->close = npz_close;
    return zip != NULL;
}

/* Reads exactly `size` bytes. */
static bool read_exactly(zip_file_t *file, uint8_t *out, int64_t size)
{
    while (size > 0) {
        zip_int64_t got = zip_fread(file, out, (zip_uint64_t)size);

        if (got <= 0)
            return false;
        out += got;
        size -= got;
    }
    return true;
}

static bool member_failed(zip_t *zip, zip_file_t *file, const char *name, Error *err)
{
    const char *why = file ? zip_file_strerror(file) : zip_strerror(zip);

    return error_set(err, ERR_FORMAT, "member %.80s cannot be read: %s", name, why);
}

/* Refuses sizes that the archive cannot contain. */
static bool check_member(const zip_stat_t *stat, int64_t archive_size, Error *err)
{
    zip_uint64_t need = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    bool         stored = stat->comp_method == ZIP_CM_STORE;

    if ((stat->valid & need) != need)
        return error_set(err, ERR_FORMAT, "member %.80s has no declared size", stat->name);
    if ((stat->valid & ZIP_STAT_ENCRYPTION_METHOD) && stat->encryption_method != ZIP_EM_NONE)
        return error_set(err, ERR_UNSUPPORTED, "member %.80s is encrypted", stat->name);
    if (!stored && stat->comp_method != ZIP_CM_DEFLATE)
        return error_set(err, ERR_UNSUPPORTED,
                         "member %.80s is compressed by method %d; only stored (0) and deflated "
                         "(8) members are read", stat->name, stat->comp_method);
    if (stat->comp_size > (zip_uint64_t)archive_size ||
        (stored ? stat->size != stat->comp_size
                : stat->size / DEFLATE_MAX_RATIO > stat->comp_size))
        return error_set(err, ERR_FORMAT,
                         "member %.80s declares %llu bytes from %llu in an archive of %lld, which "
                         "cannot be", stat->name, (unsigned long long)stat->size,
                         (unsigned long long)stat->comp_size, (long long)archive_size);
    return true;
}

static bool read_header(zip_t *zip, const zip_stat_t *stat, StoreEntry *entry, Error *err)
{
    static const int64_t prefix = NPY_HEADER_MAX + 12;
    int64_t     size = (int64_t)stat->size < prefix ? (int64_t)stat->size : prefix, offset;
    zip_file_t *file = zip_fopen_index(zip, stat->index, 0);
    uint8_t    *bytes = malloc((size_t)size + 1);
    bool        ok = false;

    if (!file || !bytes || !read_exactly(file, bytes, size)) {
        member_failed(zip, file, stat->name, err);
        goto out;
    }
    if (!npy_parse_header(bytes, size, entry, &offset, err)) {
        error_prefix(err, "member %.80s", stat->name);
        goto out;
    }
    ok = entry->type.kind == ELEMENT_UNKNOWN ||
         entry->info.bytes == (int64_t)stat->size - offset ||
         error_set(err, ERR_FORMAT, "member %.80s: its shape needs %lld bytes, but %lld are there",
                   stat->name, (long long)entry->info.bytes,
                   (long long)((int64_t)stat->size - offset));
out:
    free(bytes);
    if (file)
        zip_fclose(file);
    return ok;
}

static bool npz_fetch(Store *store, StoreEntry *entry, Error *err)
{
    zip_t      *zip = store->backend;
    zip_file_t *file = NULL;
    zip_stat_t  stat;
    uint8_t     past;
    bool        ok = false;

    if (zip_stat_index(zip, (zip_uint64_t)entry->member, 0, &stat) != 0)
        return member_failed(zip, NULL, entry->info.name, err);
    if ((int64_t)stat.size > store->max_bytes)
        return error_set(err, ERR_NOMEM,
                         "member %.80s inflates to %llu bytes, above the limit of %lld",
                         stat.name, (unsigned long long)stat.size, (long long)store->max_bytes);
    entry->owned = malloc((size_t)stat.size + 1);
    if (!entry->owned)
        return error_set(err, ERR_NOMEM, "no memory for the %llu bytes of member %.80s",
                         (unsigned long long)stat.size, stat.name);
    file = zip_fopen_index(zip, stat.index, 0);
    /* Reading past the end compares the checksum. */
    ok = file && read_exactly(file, entry->owned, (int64_t)stat.size) &&
         zip_fread(file, &past, 1) == 0;
    if (ok)
        entry->data = entry->owned + ((int64_t)stat.size - entry->info.bytes);
    else
        member_failed(zip, file, stat.name, err);
    if (file)
        zip_fclose(file);
    if (!ok)
        store_drop(entry);
    return ok;
}

static bool list_member(Store *store, const zip_stat_t *stat, int64_t archive_size, Error *err)
{
    StoreEntry *entry;

    if (strcmp(path_name(stat->name), "data.pkl") == 0)
        return pickle_refuse(err);
    if (!text_ends_in(stat->name, ".npy"))
        return true;
    if (zip_name_locate(store->backend, stat->name, 0) != (zip_int64_t)stat->index)
        return error_set(err, ERR_FORMAT, "member %.80s is there twice, so it is not known which "
                         "counts; write the archive again with one of them", stat->name);
    if (!check_member(stat, archive_size, err))
        return false;
    entry = store_add(store, stat->name, strlen(stat->name) - 4, err);
    if (!entry)
        return false;
    entry->member = (int64_t)stat->index;
    return read_header(store->backend, stat, entry, err);
}

/* Adds an array of one element as metadata. */
static bool scalar_metadata(Store *store, const char *key, Error *err)
{
    StoreEntry *entry = store_find(store, key);
    char        text[256];

    if (!entry || entry->type.kind == ELEMENT_UNKNOWN || entry->info.bytes == 0 ||
        entry->info.bytes != entry->type.size)
        return true;
    if (!store_fetch(store, entry, err))
        return false;
    if (element_is_text(entry->type)) {
        labels_text(entry->type, entry->data, text, sizeof(text));
    } else {
        double value;

        element_to_f64(entry->type, entry->data, entry->type.size, 1, &value);
        labels_number(value, text, sizeof(text));
    }
    store_drop(entry);
    return store_add_metadata(store, key, text, err);
}

bool store_open_npz(Store *store, Mapped bytes, Error *err)
{
    static const char *const keys[] = { "causal", "scale", "width", "window", "layout",
                                        "model" };
    zip_int64_t count;

    store->kind = "npz";
    store->fetch = npz_fetch;
    if (!zip_open_bytes(store, bytes, err))
        return false;
    count = zip_get_num_entries(store->backend, 0);
    for (zip_int64_t i = 0; i < count; i++) {
        zip_stat_t stat;

        if (zip_stat_index(store->backend, (zip_uint64_t)i, 0, &stat) != 0)
            return member_failed(store->backend, NULL, "(directory)", err);
        if (!(stat.valid & ZIP_STAT_NAME) || !(stat.valid & ZIP_STAT_INDEX))
            return error_set(err, ERR_FORMAT, "zip member %lld has no name", (long long)i);
        if (!list_member(store, &stat, bytes.size, err))
            return false;
    }
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
        if (!scalar_metadata(store, keys[k], err))
            return false;
    return true;
}

/* ---- one array as a Tensor -------------------------------------------------- */

static void convert(const StoreEntry *entry, int64_t from, int64_t to, Tensor *out)
{
    const uint8_t *src = entry->data + from * entry->type.size;

    switch (out->dtype) {
    case DT_F32: element_to_f32(entry->type, src, entry->type.size, 1, (float *)out->data + to);
        break;
    case DT_F64: element_to_f64(entry->type, src, entry->type.size, 1, (double *)out->data + to);
        break;
    case DT_I32: ((int32_t *)out->data)[to] = (int32_t)element_to_i64(entry->type, src); break;
    case DT_I64: ((int64_t *)out->data)[to] = element_to_i64(entry->type, src); break;
    case DT_U8: ((uint8_t *)out->data)[to] = (uint8_t)element_to_i64(entry->type, src); break;
    }
}

/* False: a u64 value does not fit into i64. */
static bool fits_int64(const StoreEntry *entry, const Tensor *t, Error *err)
{
    int64_t count = tensor_count(t);

    if (entry->type.kind != ELEMENT_UINT || entry->type.size != 8)
        return true;
    for (int64_t i = 0; i < count; i++)
        if (((const int64_t *)t->data)[i] < 0)
            return error_set(err, ERR_DATA, "element %lld is above 2^63 - 1", (long long)i);
    return true;
}

static bool read_entry(const StoreEntry *entry, Arena *arena, Tensor *out, Error *err)
{
    int64_t stride[STORE_MAX_RANK], index[STORE_MAX_RANK] = { 0 }, count;

    if (!store_is_number(entry, err))
        return false;
    if (entry->info.rank > TENSOR_MAX_RANK)
        return error_set(err, ERR_DATA, "has %d axes; at most %d are read", entry->info.rank,
                         TENSOR_MAX_RANK);
    store_strides(entry, stride);
    *out = tensor_new(arena, element_dtype(entry->type), entry->info.rank, entry->info.shape);
    if (!out->data)
        return error_set(err, ERR_NOMEM, "no memory for its %lld bytes",
                         (long long)entry->info.bytes);
    count = tensor_count(out);
    for (int64_t to = 0; to < count; to++) {
        int64_t from = 0;

        for (int axis = 0; axis < out->rank; axis++)
            from += index[axis] * stride[axis];
        convert(entry, from, to, out);
        for (int axis = out->rank - 1; axis >= 0 && ++index[axis] == out->shape[axis]; axis--)
            index[axis] = 0;
    }
    return fits_int64(entry, out, err);
}

bool input_read_npy(const char *path, Arena *arena, Tensor *out, Error *err)
{
    Store  store = { .max_bytes = INPUT_MAX_BYTES_DEFAULT };
    Mapped bytes;
    bool   ok;

    *out = (Tensor){ .data = NULL };
    ok = mapped_open(path, &bytes, err) && store_open_npy(&store, bytes, "array", err) &&
         read_entry(&store.entries[0], arena, out, err) && mapped_whole(err);
    store_close(&store);
    mapped_close(&bytes);
    if (ok)
        return true;
    out->data = NULL;
    return load_prefix_path(err, path);
}

/* ---- by name ---------------------------------------------------------------- */

#define NAMES_MOST 20 /* in a message */

static bool unknown_array(const Store *store, const char *name, Error *err)
{
    Text names = { 0 };

    for (int64_t i = 0; i < store->count && i < NAMES_MOST; i++)
        text_addf(&names, "%s%s", i ? " " : "", store->entries[i].info.name);
    if (store->count > NAMES_MOST)
        text_add(&names, " ...");
    if (name)
        error_set(err, ERR_DATA, "has no array '%.80s'; it has: %s", name, text_str(&names));
    else
        error_set(err, ERR_DATA, "has %lld arrays; which one? It has: %s", (long long)store->count,
                  text_str(&names));
    text_free(&names);
    return false;
}

static bool read_named(Store *store, const char *name, Arena *arena, Tensor *out, Error *err)
{
    StoreEntry *entry = name               ? store_find(store, name)
                        : store->count == 1 ? &store->entries[0]
                                            : NULL;

    if (!entry)
        return unknown_array(store, name, err);
    if (store_is_number(entry, err) && store_fetch(store, entry, err) &&
        read_entry(entry, arena, out, err))
        return true;
    return name && error_prefix(err, "%.80s", name);
}

bool input_read_array(const char *path, const char *name, Arena *arena, Tensor *out, Error *err)
{
    Store       store = { .max_bytes = INPUT_MAX_BYTES_DEFAULT };
    Mapped      bytes;
    InputFormat format;
    bool        ok;

    *out = (Tensor){ .data = NULL };
    ok = mapped_open(path, &bytes, err) && load_find_format(path, bytes, &format, err);
    if (ok && (format < FORMAT_NPY || format > FORMAT_CSV))
        ok = error_set(err, ERR_FORMAT, "holds no arrays; expected .npy, .npz, .safetensors, "
                       ".json or .csv");
    ok = ok && load_open_store(&store, path, bytes, format, err) &&
         read_named(&store, name, arena, out, err) && mapped_whole(err);
    store_close(&store);
    mapped_close(&bytes);
    if (ok)
        return true;
    out->data = NULL;
    return load_prefix_path(err, path);
}
