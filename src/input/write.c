/* write.c -- npy, npz and safetensors files.
 *
 * All numbers are little-endian (as on all supported machines), in C order; files are written to a
 * temporary name and renamed at the end. The bytes depend on the tensors only: zip members have no
 * time stamp.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

#include "core/shortage.h"
#include "core/text.h"
#include "input/input.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensor files are written as they lie in memory, which must be little-endian"
#endif

#define NPY_ALIGNMENT 64
#define SAFETENSORS_ALIGNMENT 64

static const char *const npy_names[] = {
    [DT_F32] = "<f4", [DT_F64] = "<f8", [DT_I32] = "<i4", [DT_I64] = "<i8", [DT_U8] = "|u1",
};

static const char *const safetensors_names[] = {
    [DT_F32] = "F32", [DT_F64] = "F64", [DT_I32] = "I32", [DT_I64] = "I64", [DT_U8] = "U8",
};

/* ---- a file that appears only when it is whole --------------------------- */

typedef struct Output {
    const char *path;
    char        target[PATH_MAX], temporary[4096];
    FILE       *file;
} Output;

/* False for devices and pipes: an archive would replace a device, and is not written in order. */
static bool is_for_arrays(const char *path, Error *err)
{
    return !file_is_special(path) ||
           error_set(err, ERR_FILE, "%.300s: is a device or a pipe: arrays are written to files",
                     path);
}

static bool output_open(Output *out, const char *path, Error *err)
{
    int length;

    out->path = path = file_target(path, out->target);
    length = snprintf(out->temporary, sizeof(out->temporary), "%s.tmp", path);
    out->file = NULL;
    if (length < 0 || length >= (int)sizeof(out->temporary))
        return error_set(err, ERR_FILE, "%.200s...: the path is too long", path);
    if (!is_for_arrays(path, err))
        return false;
    out->file = fopen(out->temporary, "wb");
    return out->file ||
           error_set(err, ERR_FILE, "%.300s: cannot be written: %s", path, strerror(errno));
}

/* Renames after success; removes the temporary file after a failure. */
static bool output_close(Output *out, bool ok, Error *err)
{
    int why;

    if (!out->file)
        return false;
    ok = ok && fflush(out->file) == 0;
    why = errno; /* of the first that failed */
    if (fclose(out->file) != 0 && ok) {
        ok = false;
        why = errno;
    }
    if (ok && !shortage_allows_output(err)) {
        unlink(out->temporary);
        return error_prefix(err, "%.300s", out->path);
    }
    if (ok && rename(out->temporary, out->path) == 0)
        return true;
    why = ok ? errno : why;
    unlink(out->temporary);
    return error_set(err, ERR_FILE, "%.300s: writing failed: %s", out->path, strerror(why));
}

static bool write_bytes(Output *out, const void *bytes, size_t size)
{
    return size == 0 || fwrite(bytes, 1, size, out->file) == size;
}

/* The tensor row-major; data NULL with *err set on failure. */
static Tensor packed(Arena *arena, const char *path, const char *name, Tensor t, Error *err)
{
    if (!tensor_given(&t)) {
        error_set(err, ERR_PARAM, "%.300s: tensor %.80s has no data to write", path, name);
        return t;
    }
    t = tensor_convert(arena, t, t.dtype);
    if (!t.data)
        error_set(err, ERR_NOMEM, "%.300s: no memory to pack tensor %.80s", path, name);
    return t;
}

static bool out_of_memory(const char *path, Error *err)
{
    return error_set(err, ERR_NOMEM, "%.300s: no memory to write the file", path);
}

/* ---- npy ----------------------------------------------------------------- */

static void npy_header(const Tensor *t, Text *out)
{
    Text   dict = { 0 };
    size_t length;

    text_addf(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", npy_names[t->dtype]);
    for (int i = 0; i < t->rank; i++)
        text_addf(&dict, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
    text_add(&dict, t->rank == 1 ? ",), }" : "), }");
    while ((10 + dict.length + 1) % NPY_ALIGNMENT && text_ok(&dict))
        text_add(&dict, " ");
    text_add(&dict, "\n");
    length = dict.length;
    text_add_bytes(out, "\x93NUMPY\1\0", 8);
    text_add_bytes(out, (char[]){ (char)(length & 255), (char)(length >> 8) }, 2);
    text_add_bytes(out, text_str(&dict), length);
    out->failed = out->failed || dict.failed;
    text_free(&dict);
}

bool input_write_npy(const char *path, const Tensor *t, Error *err)
{
    Arena *arena = arena_new();
    Text   header = { 0 };
    Output out;
    Tensor plain;
    bool   ok = false;

    if (!arena)
        return out_of_memory(path, err);
    plain = packed(arena, path, "given", *t, err);
    if (plain.data)
        npy_header(&plain, &header);
    if (plain.data && !text_ok(&header))
        out_of_memory(path, err);
    else if (plain.data && output_open(&out, path, err))
        ok = output_close(&out, write_bytes(&out, header.data, header.length) &&
                          write_bytes(&out, plain.data, (size_t)tensor_bytes(&plain)), err);
    text_free(&header);
    arena_free(arena);
    return ok;
}

/* ---- npz ----------------------------------------------------------------- */

/* Adds a member of two parts, which must live until the archive is closed. */
static bool add_member(zip_t *zip, const char *name, const Text *header, const Tensor *t)
{
    zip_buffer_fragment_t parts[2] = {
        { .data = (zip_uint8_t *)header->data, .length = header->length },
        { .data = t->data, .length = (zip_uint64_t)tensor_bytes(t) },
    };
    char          file[300];
    zip_source_t *source;
    zip_int64_t   index;

    if (snprintf(file, sizeof(file), "%s.npy", name) >= (int)sizeof(file))
        return false;
    source = zip_source_buffer_fragment(zip, parts, parts[1].length ? 2 : 1, 0);
    if (!source)
        return false;
    index = zip_file_add(zip, file, source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
        zip_source_free(source);
        return false;
    }
    return zip_set_file_compression(zip, (zip_uint64_t)index, ZIP_CM_STORE, 0) == 0 &&
           /* 1980-01-01, the earliest date of a zip */
           zip_file_set_dostime(zip, (zip_uint64_t)index, 0, 0x21, 0) == 0;
}

static zip_t *create_archive(const char *path, Error *err)
{
    zip_error_t why;
    char        real[PATH_MAX];
    int         code = 0;
    zip_t      *zip;

    if (!is_for_arrays(path, err))
        return NULL;
    if (!shortage_allows_output(err)) {
        error_prefix(err, "%.300s", path);
        return NULL;
    }
    zip = zip_open(file_target(path, real), ZIP_CREATE | ZIP_TRUNCATE, &code);
    if (zip)
        return zip;
    zip_error_init_with_code(&why, code);
    error_set(err, ERR_FILE, "%.300s: cannot be written: %s", path, zip_error_strerror(&why));
    zip_error_fini(&why);
    return NULL;
}

bool input_write_npz(const char *path, const NamedTensor *items, int64_t count, Error *err)
{
    Arena *arena = arena_new();
    Text  *headers = calloc((size_t)count + 1, sizeof(*headers));
    zip_t *zip = NULL;
    bool   ok = false;

    if (!arena || !headers) {
        out_of_memory(path, err);
        goto out;
    }
    zip = create_archive(path, err);
    for (int64_t i = 0; zip && i < count; i++) {
        Tensor t = packed(arena, path, items[i].name, items[i].tensor, err);

        if (!t.data)
            goto out;
        npy_header(&t, &headers[i]);
        if (!text_ok(&headers[i]) || !add_member(zip, items[i].name, &headers[i], &t)) {
            error_set(err, ERR_FILE, "%.300s: member %.80s cannot be added: %s", path,
                      items[i].name, zip_strerror(zip));
            goto out;
        }
    }
    ok = zip && zip_close(zip) == 0;
    if (zip && !ok)
        error_set(err, ERR_FILE, "%.300s: writing failed: %s", path, zip_strerror(zip));
    if (ok)
        zip = NULL;
out:
    if (zip)
        zip_discard(zip);
    for (int64_t i = 0; headers && i < count; i++)
        text_free(&headers[i]);
    free(headers);
    arena_free(arena);
    return ok;
}

/* ---- safetensors --------------------------------------------------------- */

static void safetensors_entry(Json *j, const NamedTensor *item, int64_t *offset)
{
    const Tensor *t = &item->tensor;

    jsonw_key_open(j, item->name, '{');
    jsonw_key_string(j, "dtype", safetensors_names[t->dtype]);
    jsonw_key_open(j, "shape", '[');
    for (int i = 0; i < t->rank; i++)
        jsonw_int(j, t->shape[i]);
    jsonw_close(j, ']');
    jsonw_key_open(j, "data_offsets", '[');
    jsonw_int(j, *offset);
    *offset += tensor_bytes(t);
    jsonw_int(j, *offset);
    jsonw_close(j, ']');
    jsonw_close(j, '}');
}

/* Writes length and JSON, padded so that the data begin at a multiple of 64. */
static void safetensors_header(const NamedTensor *items, int64_t count,
                               const char *const *metadata, Text *out)
{
    Text     text = { 0 };
    Json     j = jsonw_to(&text);
    int64_t  offset = 0;
    uint64_t length;

    jsonw_open(&j, '{');
    if (metadata && *metadata) {
        jsonw_key_open(&j, "__metadata__", '{');
        for (; *metadata; metadata += 2)
            jsonw_key_string(&j, metadata[0], metadata[1]);
        jsonw_close(&j, '}');
    }
    for (int64_t i = 0; i < count; i++)
        safetensors_entry(&j, &items[i], &offset);
    jsonw_close(&j, '}');
    while ((8 + text.length) % SAFETENSORS_ALIGNMENT && text_ok(&text))
        text_add(&text, " ");
    length = text.length;
    text_add_bytes(out, &length, sizeof(length));
    text_add_bytes(out, text_str(&text), text.length);
    out->failed = out->failed || text.failed;
    text_free(&text);
}

static bool write_parts(Output *out, const Text *header, Arena *arena, const NamedTensor *items,
                        int64_t count)
{
    bool ok = write_bytes(out, header->data, header->length);

    for (int64_t i = 0; ok && i < count; i++) {
        ArenaMark mark = arena_mark(arena);
        Tensor    t = packed(arena, out->path, items[i].name, items[i].tensor, NULL);

        errno = t.data ? errno : ENOMEM; /* output_close names the reason */
        ok = t.data && write_bytes(out, t.data, (size_t)tensor_bytes(&t));
        arena_release(arena, mark);
    }
    return ok;
}

bool input_write_safetensors(const char *path, const NamedTensor *items, int64_t count,
                             const char *const *metadata, Error *err)
{
    Arena *arena = arena_new();
    Text   header = { 0 };
    Output out;
    bool   ok = false;

    for (int64_t i = 0; i < count; i++)
        if (!tensor_given(&items[i].tensor)) {
            error_set(err, ERR_PARAM, "%.300s: tensor %.80s has no data to write", path,
                      items[i].name);
            goto out;
        }
    safetensors_header(items, count, metadata, &header);
    if (!arena || !text_ok(&header))
        out_of_memory(path, err);
    else if (output_open(&out, path, err))
        ok = output_close(&out, write_parts(&out, &header, arena, items, count), err);
out:
    text_free(&header);
    arena_free(arena);
    return ok;
}
