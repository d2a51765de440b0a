/* fuzzer.c -- libFuzzer feeds the target that FUZZ_TARGET names, and no input may take more memory
 * than ten times its bytes and 64 MiB.
 *
 * Counted are blocks of the heap, and what is mapped (the linker's --wrap=mmap): arenas, files.
 * libFuzzer's own limit is on the process, which also holds the corpus and what the sanitizer
 * keeps.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "target.h"

#define TIMES 10
#define MORE  ((int64_t)64 << 20)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of the sanitizer's interface. */
int    __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t),
                                                 void (*)(const volatile void *));
size_t __sanitizer_get_allocated_size(const volatile void *);

void *__real_mmap(void *, size_t, int, int, int, off_t);
int   __real_munmap(void *, size_t);
void *__wrap_mmap(void *, size_t, int, int, int, off_t);
int   __wrap_munmap(void *, size_t);

static const NamedTarget *target;
static atomic_llong       held; /* bytes */
static _Atomic int64_t    most = INT64_MAX;

static void hold(int64_t bytes)
{
    int64_t now = atomic_fetch_add(&held, bytes) + bytes;

    if (bytes <= 0 || now <= most)
        return;
    most = INT64_MAX; /* what follows allocates */
    fprintf(stderr, "the target found: %lld bytes more than ten times the input and 64 MiB\n",
            (long long)bytes);
    abort();
}

static void on_malloc(const volatile void *block, size_t size)
{
    hold(block ? (int64_t)size : 0);
}

static void on_free(const volatile void *block)
{
    if (block)
        hold(-(int64_t)__sanitizer_get_allocated_size(block));
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    void *made = __real_mmap(at, size, protection, flags, fd, offset);

    if (made != MAP_FAILED)
        hold((int64_t)size);
    return made;
}

int __wrap_munmap(void *at, size_t size)
{
    hold(-(int64_t)size);
    return __real_munmap(at, size);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("FUZZ_TARGET");

    (void)argc;
    (void)argv;
    target = target_named(name ? name : "");
    if (!target) {
        fprintf(stderr, "FUZZ_TARGET names no target; tests/fuzz/targets.def has them\n");
        exit(2);
    }
    target_session();
    __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    most = held + TIMES * (int64_t)size + MORE;
    target->feed(data, size);
    most = INT64_MAX;
    return 0;
}
