/* npz.c -- NumPy's archive: a zip of npy members.
 *
 * Opening reads each member's npy header only; the elements are inflated when
 * an array is wanted, with their checksum.  A member's declared size must fit
 * its header's shape and the largest ratio deflate can reach, so a small file
 * cannot ask for much memory.  Arrays of one element named causal, scale,
 * width, layout or model double as metadata.
 *
 * The archive is read through libzip from the mapped bytes (stored, deflated,
 * zip64).  A zip holding data.pkl is a PyTorch checkpoint: pickle, refused.
 */
#include "input/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "core/text.h"
#include "input/labels.h"
#include "input/pickle.h"

#define DEFLATE_MAX_RATIO 1032 /* 258 bytes from two bits, rounded up */

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

/* Exactly `size` bytes. */
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

/* What the directory declares must be possible at all. */
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
    /* The checksum is compared when the end is read past. */
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

static bool add_member(Store *store, const zip_stat_t *stat, int64_t archive_size, Error *err)
{
    StoreEntry *entry;
    const char *slash = strrchr(stat->name, '/');

    if (strcmp(slash ? slash + 1 : stat->name, "data.pkl") == 0)
        return pickle_refuse(err);
    if (!text_ends_in(stat->name, ".npy"))
        return true;
    if (!check_member(stat, archive_size, err))
        return false;
    entry = store_add(store, stat->name, strlen(stat->name) - 4, err);
    if (!entry)
        return false;
    entry->member = (int64_t)stat->index;
    return read_header(store->backend, stat, entry, err);
}

/* An array of one element as metadata text. */
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
    static const char *const keys[] = { "causal", "scale", "width", "layout", "model" };
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
        if (!add_member(store, &stat, bytes.size, err))
            return false;
    }
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
        if (!scalar_metadata(store, keys[k], err))
            return false;
    return true;
}
