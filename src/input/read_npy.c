/* read_npy.c -- one array of a file as a Tensor of the dtype nearest to the stored one.
 *
 * Fortran order is turned into C order; text and objects are refused.
 */
#include "core/text.h"
#include "input/load.h"

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

/* u64 values that i64 does not hold would come out negative. */
static bool fits(const StoreEntry *entry, const Tensor *t, Error *err)
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
    return fits(entry, out, err);
}

bool input_read_npy(const char *path, Arena *arena, Tensor *out, Error *err)
{
    Store  store = { .max_bytes = INPUT_MAX_BYTES_DEFAULT };
    Mapped bytes;
    bool   ok;

    *out = (Tensor){ .data = NULL };
    ok = mapped_open(path, &bytes, err) && store_open_npy(&store, bytes, "array", err) &&
         read_entry(&store.entries[0], arena, out, err);
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
        ok = error_set(err, ERR_FORMAT, "holds no arrays; expected .npy, .npz, .safetensors or .csv");
    ok = ok && load_open_store(&store, path, bytes, format, err) &&
         read_named(&store, name, arena, out, err);
    store_close(&store);
    mapped_close(&bytes);
    if (ok)
        return true;
    out->data = NULL;
    return load_prefix_path(err, path);
}
