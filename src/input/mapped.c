/* mapped.c -- see mapped.h. */
#include "input/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <sha256.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE (4ll << 20) /* bytes between looks at a flag */

static const uint8_t no_bytes[1];

bool mapped_open(const char *path, Mapped *out, Error *err)
{
    /* O_NONBLOCK: a named pipe must be refused, not waited for. */
    int         file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    void       *data;
    bool        ok = false;

    *out = (Mapped){ .data = no_bytes };
    if (file < 0 || fstat(file, &status) != 0) {
        error_set(err, ERR_FILE, "cannot be opened: %s", strerror(errno));
        goto out;
    }
    if (!S_ISREG(status.st_mode)) {
        error_set(err, ERR_FILE, "is not a regular file%s",
                  S_ISDIR(status.st_mode) ? " but a directory; name a file in it" : "");
        goto out;
    }
    ok = true;
    if (status.st_size == 0)
        goto out;
    data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) {
        ok = error_set(err, ERR_FILE, "cannot be mapped: %s", strerror(errno));
        goto out;
    }
    *out = (Mapped){ .data = data, .size = status.st_size, .owned = true };
out:
    if (file >= 0)
        close(file);
    return ok;
}

void mapped_close(Mapped *mapped)
{
    union {
        const uint8_t *read_only;
        void          *plain;
    } data = { .read_only = mapped->data };

    if (mapped->owned)
        munmap(data.plain, (size_t)mapped->size);
    *mapped = (Mapped){ .data = no_bytes };
}

Mapped mapped_text(Mapped bytes)
{
    if (bytes.size < 3 || memcmp(bytes.data, "\xef\xbb\xbf", 3) != 0)
        return bytes;
    return (Mapped){ .data = bytes.data + 3, .size = bytes.size - 3 };
}

bool mapped_sha256_unless(const atomic_bool *cancel, const Mapped *parts, int64_t count,
                          char hex[65])
{
    SHA256_CTX context;
    uint8_t    digest[SHA256_DIGEST_LENGTH];

    SHA256_Init(&context);
    for (int64_t i = 0; i < count; i++)
        for (int64_t at = 0; at < parts[i].size; at += PIECE) {
            int64_t left = parts[i].size - at;

            if (cancel && atomic_load(cancel))
                return false;
            SHA256_Update(&context, parts[i].data + at, (size_t)(left < PIECE ? left : PIECE));
        }
    SHA256_Final(digest, &context);
    for (size_t i = 0; i < sizeof(digest); i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return true;
}

void mapped_sha256(const Mapped *parts, int64_t count, char hex[65])
{
    mapped_sha256_unless(NULL, parts, count, hex);
}
