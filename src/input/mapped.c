/* mapped.c -- a file's bytes in memory, and their fingerprint; see input/store.h.
 *
 * Another program may shorten a file while it is mapped; reading behind its new end raises SIGBUS.
 * The handler puts zeros there and notes that the mapping has lost bytes, so that whoever reads
 * it goes on, and fails at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sha256.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "input/store.h"

/* ---- files that become shorter -------------------------------------------------- */

#define WATCHED_MOST 256 /* mappings at a time; further ones are not watched */

/* A handler has no argument of its own.  `from` 0: the place is free. */
static struct {
    atomic_uintptr_t from;
    atomic_size_t    size;
    atomic_bool      lost;
} watched[WATCHED_MOST];
static atomic_size_t   page;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static struct sigaction before;

/* Zeros from the page of `at` to the end of its mapping. */
static bool put_zeros(uintptr_t at)
{
    for (int i = 0; i < WATCHED_MOST; i++) {
        uintptr_t from = atomic_load(&watched[i].from), end = from + atomic_load(&watched[i].size);
        uintptr_t first = at / atomic_load(&page) * atomic_load(&page);

        if (!from || at < from || at >= end)
            continue;
        atomic_store(&watched[i].lost, true);
        return mmap((void *)first, end - first, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                    -1, 0) != MAP_FAILED;
    }
    return false;
}

/* What is not ours happens again, to whoever was there before. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    int kept = errno;

    (void)context;
    if (info->si_code <= 0 || !put_zeros((uintptr_t)info->si_addr)) {
        sigaction(number, &before, NULL);
        if (info->si_code <= 0)
            raise(number);
    }
    errno = kept;
}

/* Others may have installed a handler since; it comes after this one. */
static void install(void)
{
    struct sigaction own = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    struct sigaction now;

    sigemptyset(&own.sa_mask);
    atomic_store(&page, (size_t)sysconf(_SC_PAGESIZE));
    if (sigaction(SIGBUS, NULL, &now) != 0 ||
        (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_bus_error))
        return;
    before = now;
    sigaction(SIGBUS, &own, NULL);
}

static void watch(const void *data, size_t size)
{
    pthread_mutex_lock(&lock);
    install();
    for (int i = 0; i < WATCHED_MOST; i++)
        if (!atomic_load(&watched[i].from)) {
            atomic_store(&watched[i].size, size);
            atomic_store(&watched[i].lost, false);
            atomic_store(&watched[i].from, (uintptr_t)data);
            break;
        }
    pthread_mutex_unlock(&lock);
}

static void forget(const void *data)
{
    for (int i = 0; i < WATCHED_MOST; i++)
        if (atomic_load(&watched[i].from) == (uintptr_t)data)
            atomic_store(&watched[i].from, 0);
}

bool mapped_whole(Error *err)
{
    for (int i = 0; i < WATCHED_MOST; i++)
        if (atomic_load(&watched[i].from) && atomic_load(&watched[i].lost))
            return error_set(err, ERR_FILE, "the file became shorter while it was read");
    return true;
}

/* ---- mapped bytes --------------------------------------------------------------- */

#define PIECE (4ll << 20) /* bytes between checks of the flag */

static const uint8_t no_bytes[1];

bool mapped_open(const char *path, Mapped *out, Error *err)
{
    /* O_NONBLOCK: a named pipe is refused at once, not waited for. */
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
    watch(data, (size_t)status.st_size);
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

    if (mapped->owned) {
        forget(mapped->data);
        munmap(data.plain, (size_t)mapped->size);
    }
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
