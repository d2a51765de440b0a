/* test_profile_heap.c -- the interposed malloc family counts real blocks.
 *
 * Skipped, with the reason, where the hooks are not compiled in.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>

#include "profile_fixture.h"

#define BLOCK 100000

/* Behind a volatile pointer no call is folded away. */
static void *(*volatile take)(size_t) = malloc;
static void *(*volatile resize)(void *, size_t) = realloc;
static void (*volatile give)(void *) = free;

static int need_hooks(void **state)
{
    const char *why = "";

    (void)state;
    if (heap_hooks_active(&why))
        return 0;
    assert_true(strlen(why) > 0);
    print_message("skipped: %s\n", why);
    return 0;
}

#define SKIP_WITHOUT_HOOKS()                                                                   \
    do {                                                                                       \
        if (!heap_hooks_active(NULL))                                                          \
            skip();                                                                            \
    } while (0)

TEST(allocation_and_release_balance)
{
    int64_t before, calls;
    void   *block;

    SKIP_WITHOUT_HOOKS();
    before = heap_current();
    calls = heap_allocations();
    block = take(BLOCK);
    assert_true(heap_current() - before == (int64_t)malloc_usable_size(block));
    assert_int_equal(heap_allocations() - calls, 1);
    give(block);
    assert_int_equal(heap_current(), before);
    give(NULL);
    assert_int_equal(heap_current(), before);
}

/* The C library frees the block and returns NULL. */
TEST(a_resize_to_nothing_is_a_release)
{
    int64_t before;
    void   *block;

    SKIP_WITHOUT_HOOKS();
    before = heap_current();
    block = take(BLOCK);
    assert_true(heap_current() > before);
    assert_null(resize(block, 0));
    assert_int_equal(heap_current(), before);
}

TEST(every_member_of_the_family_is_seen)
{
    void   *blocks[8];
    int64_t before, sum = 0;

    SKIP_WITHOUT_HOOKS();
    before = heap_current();
    blocks[0] = take(BLOCK);
    blocks[1] = calloc(BLOCK, 3);
    blocks[2] = aligned_alloc(64, 64 * 100);
    blocks[3] = memalign(4096, BLOCK);
    blocks[4] = valloc(BLOCK);
    blocks[5] = pvalloc(BLOCK);
    blocks[6] = reallocarray(NULL, 1000, 50);
    assert_int_equal(posix_memalign(&blocks[7], 256, BLOCK), 0);
    for (int i = 0; i < 8; i++) {
        assert_non_null(blocks[i]);
        sum += (int64_t)malloc_usable_size(blocks[i]);
    }
    assert_int_equal(heap_current() - before, sum);
    assert_int_equal((uintptr_t)blocks[2] % 64, 0);
    assert_int_equal((uintptr_t)blocks[3] % 4096, 0);
    assert_int_equal((uintptr_t)blocks[7] % 256, 0);
    for (int i = 0; i < 3 * BLOCK; i++)
        assert_int_equal(((char *)blocks[1])[i], 0);
    for (int i = 0; i < 8; i++)
        give(blocks[i]);
    assert_int_equal(heap_current(), before);
}

TEST(realloc_counts_the_difference)
{
    int64_t before;
    char   *block, *kept;

    SKIP_WITHOUT_HOOKS();
    before = heap_current();
    block = resize(NULL, 1000);
    memset(block, 'x', 1000);
    block = resize(block, 50 * BLOCK);
    assert_int_equal(block[999], 'x');
    assert_int_equal(heap_current() - before, malloc_usable_size(block));
    block = resize(block, 10);
    assert_int_equal(heap_current() - before, malloc_usable_size(block));
    /* A failed one leaves the block, and the account, as they are. */
    kept = resize(block, PTRDIFF_MAX);
    assert_null(kept);
    assert_int_equal(heap_current() - before, malloc_usable_size(block));
    give(block);
    assert_int_equal(heap_current(), before);
}

TEST(refusals_are_as_the_standard_says)
{
    volatile size_t alignment = 24, huge = PTRDIFF_MAX;
    char            here;
    void           *block = &here;
    int64_t         before;

    SKIP_WITHOUT_HOOKS();
    before = heap_current();
    assert_int_equal(posix_memalign(&block, alignment, 100), EINVAL);
    assert_ptr_equal(block, &here);
    assert_int_equal(posix_memalign(&block, 64, huge), ENOMEM);
    errno = 0;
    assert_null(aligned_alloc(alignment, 48));
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_null(take(huge));
    assert_int_equal(errno, ENOMEM);
    assert_null(calloc(huge, 16));
    assert_int_equal(heap_current(), before);
}

TEST(the_peak_is_the_largest_since_the_reset)
{
    int64_t before, first, second;
    void   *a, *b;

    SKIP_WITHOUT_HOOKS();
    before = heap_current();
    heap_peak_reset();
    assert_int_equal(heap_peak(), before);
    a = take(3 * BLOCK);
    b = take(BLOCK);
    first = (int64_t)(malloc_usable_size(a) + malloc_usable_size(b));
    give(a);
    give(b);
    assert_int_equal(heap_peak() - before, first);
    heap_peak_reset();
    a = take(BLOCK);
    second = (int64_t)malloc_usable_size(a);
    give(a);
    assert_int_equal(heap_peak() - before, second);
}

/* strdup calls malloc inside libc: counting it shows that libraries are covered. */
TEST(libraries_are_seen_too)
{
    char   *text, *copy;
    int64_t before;

    SKIP_WITHOUT_HOOKS();
    text = calloc(BLOCK, 1);
    memset(text, 'x', BLOCK - 1);
    before = heap_current();
    copy = strdup(text);
    assert_int_equal(heap_current() - before, malloc_usable_size(copy));
    give(copy);
    assert_int_equal(heap_current(), before);
    give(text);
}

static void *churn(void *opaque)
{
    (void)opaque;
    for (int i = 0; i < 20000; i++) {
        void *a = take((size_t)(1 + i % 3000)), *b = resize(take(10), 5000);

        give(a);
        give(b);
    }
    return NULL;
}

TEST(threads_lose_no_byte)
{
    pthread_t threads[4];
    int64_t   before, after;

    SKIP_WITHOUT_HOOKS();
    /* Stacks and thread descriptors of glibc are made once and cached. */
    for (int round = 0; round < 2; round++) {
        before = heap_current();
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, churn, NULL), 0);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        after = heap_current();
    }
    assert_true(llabs(after - before) < 4096);
}

/* A pair costs glibc 5.5 ns; what the hooks add must stay of that order, or
 * profiling would change what it measures. */
TEST(the_hooks_are_cheap)
{
    double began, seconds;

    SKIP_WITHOUT_HOOKS();
    began = clock_wall();
    for (int i = 0; i < 1000000; i++)
        give(take(64));
    seconds = clock_wall() - began;
    print_message("malloc and free of 64 bytes: %.1f ns a pair\n", 1e3 * seconds);
    assert_true(seconds < 1e-6 * 1000000);
}

SUITE(need_hooks, NULL)
