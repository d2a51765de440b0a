/* input/mapped.h -- a file's bytes in memory, and their fingerprint.
 *
 * The bytes are mapped, not read: a large file costs address space until it is
 * looked at.  A file that another program shortens meanwhile is outside what a
 * mapping can guard against.
 */
#ifndef INPUT_MAPPED_H
#define INPUT_MAPPED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

typedef struct Mapped {
    const uint8_t *data; /* size bytes; never NULL after success */
    int64_t        size;
    bool           owned; /* to be unmapped */
} Mapped;

/* Regular files only.  The message names no path: the caller puts it before. */
bool mapped_open(const char *path, Mapped *out, Error *err);
void mapped_close(Mapped *mapped);

/* The text after the byte order mark that some programs put before UTF-8; not to be closed. */
Mapped mapped_text(Mapped bytes);

/* Hex of the SHA-256 of all parts, one after the other. */
void mapped_sha256(const Mapped *parts, int64_t count, char hex[65]);
/* The same, but false, with no more to it, soon after *cancel was set; NULL: never. */
bool mapped_sha256_unless(const atomic_bool *cancel, const Mapped *parts, int64_t count,
                          char hex[65]);

#endif
