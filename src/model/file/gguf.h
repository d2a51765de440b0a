/* model/file/gguf.h -- a GGUF file, version 2 or 3, mapped read-only.
 *
 * Layout: the GGUF specification of the ggml project (docs/gguf.md).  Every read is bounded by the
 * bytes that remain; a file that breaks a rule is refused with the field and its byte offset.
 * Nothing of a tensor's data is read here.  All pointers end with gguf_close.
 */
#ifndef MODEL_FILE_GGUF_H
#define MODEL_FILE_GGUF_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "model/file/weight.h"

/* Bytes in the file, not terminated; UTF-8 is not checked. */
typedef struct GgufString {
    const char *text;
    int64_t     length;
} GgufString;

typedef enum GgufType { /* numbers as in the file */
    GGUF_U8, GGUF_I8, GGUF_U16, GGUF_I16, GGUF_U32, GGUF_I32, GGUF_F32, GGUF_BOOL, GGUF_STRING,
    GGUF_ARRAY, GGUF_U64, GGUF_I64, GGUF_F64,
} GgufType;

typedef struct GgufKey {
    GgufString     name;
    GgufType       type;    /* GGUF_ARRAY: of `element`, `count` values */
    GgufType       element;
    int64_t        count;   /* 1 for a single value */
    const uint8_t *data;    /* the first value, in the file */
    const uint8_t *end;     /* behind the last one */
    int64_t        offset;  /* of the value in the file, for messages */
} GgufKey;

typedef struct GgufTensor {
    char           name[257];
    WeightType     type;
    int            rank;
    int64_t        dims[4]; /* dims[0] is contiguous */
    const uint8_t *data;
    int64_t        bytes;
} GgufTensor;

typedef struct Gguf Gguf;

/* NULL with *err set; its text has no path, which the caller adds. */
Gguf *gguf_open(const char *path, Error *err);
/* The same for bytes in memory, which must outlive the Gguf. */
Gguf *gguf_open_bytes(const uint8_t *data, int64_t size, Error *err);
void  gguf_close(Gguf *g);

int64_t           gguf_file_bytes(const Gguf *g);
const GgufKey    *gguf_keys(const Gguf *g, int64_t *count);
const GgufTensor *gguf_tensors(const Gguf *g, int64_t *count);
const GgufKey    *gguf_key(const Gguf *g, const char *name);    /* NULL: there is none */
const GgufTensor *gguf_tensor(const Gguf *g, const char *name); /* NULL: there is none */

/* A value as a number, any numeric type or bool being taken; index: of an array, else 0.  False
 * when it is no number or not a whole one. */
bool gguf_integer(const GgufKey *k, int64_t index, int64_t *out);
bool gguf_number(const GgufKey *k, int64_t index, double *out);
/* A string; those of an array (or the only one) one after another, *cursor NULL to begin, false at
 * the end. */
bool gguf_string(const GgufKey *k, GgufString *out);
bool gguf_next_string(const GgufKey *k, const uint8_t **cursor, GgufString *out);

#endif
