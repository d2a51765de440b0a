/* input/store.h -- an open tensor file: named arrays and metadata; its element types and bytes;
 * the formats and the loaders.
 *
 * The formats that hold arrays (npy, npz, safetensors, CSV, JSON) each fill a Store; the rest is
 * the same for all. An entry is listed once its header agrees with the file's real size; its bytes
 * are mapped, or fetched on first use (members of a zip archive).
 *
 * Messages name the array or the byte offset; the caller adds the path.
 */
#ifndef INPUT_STORE_H
#define INPUT_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/tensor.h"
#include "input/input.h"

/* Element types of files and their conversion.
 *
 * An ElementType is the kind of an element, its size in bytes, and whether its byte order differs
 * from this machine's. Conversions read unaligned bytes at a constant step and never fail;
 * unconvertible kinds (text, Python objects) are refused before.
 *
 * 16-bit and 8-bit floats are decoded by hand: IEEE 754 binary16, bfloat16 (the upper half of
 * binary32), and the OCP formats E4M3 (no infinities, bias 7) and E5M2 (the upper half of
 * binary16).
 */

typedef enum ElementKind {
    ELEMENT_UNKNOWN, /* listed but unreadable */
    ELEMENT_BOOL,
    ELEMENT_INT,     /* signed, 1 to 8 bytes */
    ELEMENT_UINT,
    ELEMENT_FLOAT,   /* 2, 4 or 8 bytes */
    ELEMENT_BFLOAT,  /* 2 bytes */
    ELEMENT_E4M3,    /* 1 byte */
    ELEMENT_E5M2,    /* 1 byte */
    ELEMENT_BYTES,   /* text: `size` bytes, zero padded */
    ELEMENT_UCS4     /* text: size / 4 code points, zero padded */
} ElementKind;

typedef struct ElementType {
    ElementKind kind;
    int64_t     size;    /* bytes of one element */
    bool        swapped; /* the other byte order */
} ElementType;

bool element_is_number(ElementType type);
bool element_is_text(ElementType type);

/* The dtype that holds all values of a number type: f64 for 8-byte floats, f32 for shorter ones, u8
 * for bool and u8, i32 for other integers that fit, i64 for the rest. */
DType element_dtype(ElementType type);

/* `count` elements, `step` bytes apart, to contiguous out. */
void element_to_f32(ElementType type, const uint8_t *src, int64_t step, int64_t count, float *out);
void element_to_f64(ElementType type, const uint8_t *src, int64_t step, int64_t count, double *out);
int64_t element_to_i64(ElementType type, const uint8_t *src); /* integers and bool only */

/* A file's bytes in memory, and their fingerprint.
 *
 * Bytes are mapped, not read: an untouched part of a large file costs only address space. Where
 * another program shortens the file, zeros are read, and mapped_whole is false.
 */

typedef struct Mapped {
    const uint8_t *data; /* size bytes; never NULL after success */
    int64_t        size;
    bool           owned; /* unmapped by mapped_close */
} Mapped;

/* Regular files only. The message has no path: the caller adds it. */
bool mapped_open(const char *path, Mapped *out, Error *err);
void mapped_close(Mapped *mapped);
/* After reading, before mapped_close: no file that is open now has lost bytes that were read. */
bool mapped_whole(Error *err);

/* The text after a UTF-8 byte order mark; not to be closed. */
Mapped mapped_text(Mapped bytes);

/* SHA-256 of all parts in sequence, in hex. */
void mapped_sha256(const Mapped *parts, int64_t count, char hex[65]);
/* The same; false soon after *cancel is set (NULL: never). */
bool mapped_sha256_unless(const atomic_bool *cancel, const Mapped *parts, int64_t count,
                          char hex[65]);

#define STORE_MAX_RANK 8
#define DEFLATE_MAX_RATIO 1032 /* 258 bytes per two bits, rounded up */
#define STORE_MAX_ENTRIES (1 << 20)

typedef struct StoreEntry {
    InputEntry     info; /* name without control characters */
    ElementType    type;
    bool           fortran; /* first index fastest */
    const uint8_t *data;    /* info.bytes bytes, or NULL until fetched */
    uint8_t       *owned;   /* freed by store_drop; data points into it */
    int64_t        member;  /* the format's own number for it */
} StoreEntry;

typedef struct Store Store;
struct Store {
    const char *kind;
    StoreEntry *entries;
    int64_t     count, capacity;
    char      **keys, **values;
    int64_t     metadata_count, metadata_capacity;
    Mapped     *shards; /* other files that this one names */
    int64_t     shards_count;
    int64_t     max_bytes; /* limit of a single allocation */
    void       *backend;
    bool (*fetch)(Store *store, StoreEntry *entry, Error *err); /* sets data and owned */
    void (*close)(Store *store);
};

/* Opens a file of each format. `bytes` must outlive the store; after a failure the caller still
 * calls store_close. `stem` names the array of a file without names. */
bool store_open_npy(Store *store, Mapped bytes, const char *stem, Error *err);
bool store_open_npz(Store *store, Mapped bytes, Error *err);
bool store_open_safetensors(Store *store, Mapped bytes, Error *err);
bool store_open_shards(Store *store, Mapped bytes, const char *path, Error *err);
/* Nested lists; also the index of shards. */
bool store_open_json(Store *store, Mapped bytes, const char *path, const char *stem, Error *err);
bool store_open_csv(Store *store, Mapped bytes, const char *stem, Error *err);

void store_close(Store *store);

/* Appends a zeroed entry; NULL with *err set. */
StoreEntry *store_add(Store *store, const char *name, size_t length, Error *err);
bool        store_add_metadata(Store *store, const char *key, const char *value, Error *err);

/* Sets rank, shape and bytes from info.shape; false when the product of the
 * extents and the element size does not fit 63 bits. */
bool store_entry_size(StoreEntry *entry, Error *err);

StoreEntry *store_find(const Store *store, const char *name); /* NULL: none */
const char *store_metadata(const Store *store, const char *key); /* NULL: none */

/* False with a reason if the entry has no readable numbers. */
bool store_is_number(const StoreEntry *entry, Error *err);

/* Makes entry->data valid; store_drop frees it. */
bool store_fetch(Store *store, StoreEntry *entry, Error *err);
void store_drop(StoreEntry *entry);

/* Distance between neighbours along each axis, in elements. */
void store_strides(const StoreEntry *entry, int64_t stride[STORE_MAX_RANK]);

/* A three-dimensional block of an entry, in elements. */
typedef struct StoreBox {
    int64_t offset;
    int64_t extent[3], stride[3];
} StoreBox;

/* Copies the block row-major. The entry must have been fetched. */
void store_copy_f32(const StoreEntry *entry, const StoreBox *box, float *out);

/* Writes an entry's shape, "(2, 8, 64)", into `text`; returns text. */
char *store_shape_text(const StoreEntry *entry, char *text, size_t size);

#define NPY_HEADER_MAX 65536

/* ---- the loaders -------------------------------------------------------------- */

/* By content, then by extension. */
typedef enum InputFormat {
    FORMAT_UNKNOWN, FORMAT_NPY, FORMAT_NPZ, FORMAT_SAFETENSORS, FORMAT_JSON, FORMAT_CSV,
    FORMAT_TEXT, FORMAT_PNG, FORMAT_PNM
} InputFormat;

/* input_load for bytes in memory; `path` gives the name and the extension. Tests and fuzzers call
 * it too. */
Input *input_load_bytes(const char *path, Mapped bytes, const InputChoice *choice, Error *err);

bool load_find_format(const char *path, Mapped bytes, InputFormat *out, Error *err);
bool load_prefix_path(Error *err, const char *path); /* returns false */

/* Whether the path ends so, in capitals or not. */
bool load_path_ends(const char *path, const char *ending);

/* Length of the path in "FILE[q=query,k=key]"; all of it without brackets. */
size_t load_path_length(const char *spec);
/* Renames arrays as the brackets say; "" changes nothing. */
bool load_name_arrays(Store *store, const char *brackets, Error *err);

/* Opens a file of arrays; format: one of those that hold arrays. */
bool load_open_store(Store *store, const char *path, Mapped bytes, InputFormat format, Error *err);
/* Each of these fills a zeroed Input whose arena exists. */
bool load_assemble(Input *in, Store *store, const InputChoice *choice, Error *err);
/* What finished weights must be (weights.c).  How the only array of a file gets a name; kind: the
 * store's. */
const char *weights_naming(const char *kind, char *text, size_t size);
/* [h,n,m] without a name looks like finished weights: no row with a negative, or of another sum
 * than 1. */
bool weights_are_finished(const Tensor *t, const char *name, const char *kind, Error *err);
/* Warns of rows of in->attn that no softmax gives; whole: all keys were read. */
bool weights_note(Input *in, bool whole, Error *err);
bool load_text(Input *in, Mapped bytes, const InputChoice *choice, Error *err);
bool load_image(Input *in, Mapped bytes, InputFormat format, const InputChoice *choice,
                Error *err);
#define SYNTHETIC "synthetic:"
bool load_synthetic(Input *in, const char *spec, const InputChoice *choice, Error *err);

/* Number of tokens of a text; size of a picture. */
bool text_count(const char *path, Mapped bytes, int64_t *count, Error *err);
bool image_size(Mapped bytes, InputFormat format, int64_t *width, int64_t *height, Error *err);

/* Sets ERR_NOMEM for `what` of `bytes`; the limit of a choice. */
bool    load_no_memory(Error *err, const char *what, int64_t bytes, const InputChoice *choice);
int64_t load_limit(const InputChoice *choice);
/* False with ERR_CANCELLED once the load is cancelled. */
bool    load_goes_on(const InputChoice *choice, Error *err);

/* Refuses a pickle, which is a program for the Python that opens it, and names the conversion. */

static inline bool pickle_refuse(Error *err)
{
    return error_set(err, ERR_UNSUPPORTED,
                     "is a Python pickle, which is never opened here; convert it: python3 -c "
                     "\"import sys,torch;from safetensors.torch import save_file as s;"
                     "s({k:v.float().contiguous().clone() for k,v in torch.load(sys.argv[1],'cpu',"
                     "weights_only=True).items()},sys.argv[2])\" IN OUT.safetensors");
}

#endif
