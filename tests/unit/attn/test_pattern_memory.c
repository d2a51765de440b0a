/* test_pattern_memory.c -- patterns in memory that was used, that is short, or that ends behind
 * their tables. */

#include <sys/mman.h>
#include <unistd.h>

#include "attn/pattern/pattern.h"
#include "check.h"

static Pattern *parsed(Arena *a, int64_t n, const char *text)
{
    Error    err = ERROR_INIT;
    Pattern *p = pattern_parse(a, (PatternShape){ .heads = 1, .n = n, .m = n }, text, NULL, &err);

    CHECK(p, "%s: %s", text, err.text);
    return p;
}

static bool odd_only(void *context, int64_t i, int64_t j)
{
    (void)context, (void)i;
    return j >= 0 && j % 2 == 0;
}

/* Memory that held something else: every byte is 1. */
TEST(a_pattern_in_used_memory_is_the_same)
{
    static const char *const exprs[] = { "cols([2,5])", "rows([1])+cols([0,1,2])", "random(2)",
                                         "global(2)+window(3)", "tile(2,window(1))&!self", "log",
                                         "stride(3)+block(4)" };
    enum { ROOM = 1 << 20 };

    for (size_t x = 0; x < sizeof(exprs) / sizeof(*exprs); x++) {
        Arena    *clean = arena_new(), *used = arena_new();
        ArenaMark mark = arena_mark(used);
        Pattern  *a, *b;

        memset(arena_alloc(used, ROOM, 1), 1, ROOM);
        arena_release(used, mark);
        a = parsed(clean, 24, exprs[x]);
        b = parsed(used, 24, exprs[x]);
        for (int64_t cell = 0; cell < 24 * 24; cell++) {
            bool in, also;

            pattern_cell(a, 0, cell / 24, cell % 24, &in);
            pattern_cell(b, 0, cell / 24, cell % 24, &also);
            CHECK(in == also, "%s: cell %d", exprs[x], (int)cell);
        }
        assert_int_equal(pattern_count(a), pattern_count(b));
        arena_free(clean);
        arena_free(used);
    }
}

/* Runs in any order, also over each other; whichever allocation fails, it is told. */
TEST(a_list_of_runs_is_a_pattern_or_an_error)
{
    int64_t      lines[4][6] = { { -1, 2, 0, 2, 1, 1 }, { -1, 0, 1, 3, 2, 1 },
                                 { -1, 2, 1, 3, 1, 2 }, { -1, 2, 7, 1, 1, 1 } };
    Tensor       list = tensor_of(DT_I64, 2, (int64_t[]){ 4, 6 }, lines);
    PatternShape s = { .heads = 2, .n = 3, .m = 8 };
    Pattern     *p = NULL;

    for (int64_t k = 0; !p; k++) {
        Arena *a = arena_new();
        Error  err = ERROR_INIT;

        arena_fail_at(a, k);
        p = pattern_of_list(a, s, &list, &err);
        assert_true(p || err.code == ERR_NOMEM);
        assert_true(p || k < 10);
        if (p) {
            assert_true(k > 1);
            assert_int_equal(pattern_count(p), 2 * (3 + 5)); /* 1 3 5, and 0 to 3 and 7 */
        }
        arena_free(a);
    }
}

/* What is used while it is drawn or sorted is given back: only the tables stay. */
TEST(making_a_table_leaves_nothing_else)
{
    enum { LONG = 4096 };
    Arena       *a = arena_new();
    PatternShape s = { .heads = 1, .n = LONG, .m = LONG };
    Tensor       numbers;
    int64_t      used = arena_used(a), taken;

    assert_non_null(pattern_draw_random(a, s, 2, 9, "t", odd_only, NULL).data);
    taken = arena_used(a) - used;
    used = arena_used(a);
    assert_non_null(tensor_new(a, DT_I32, 3, (int64_t[]){ 1, LONG, 2 }).data);
    assert_int_equal(taken, arena_used(a) - used);
    numbers = tensor_new(a, DT_I64, 2, (int64_t[]){ 2, LONG });
    memset(numbers.data, 0, (size_t)tensor_bytes(&numbers));
    for (int64_t planes = 1; planes <= 2; planes++) {
        int64_t before = arena_used(a);

        s.heads = numbers.shape[0] = planes;
        assert_non_null(pattern_same(a, s, &numbers));
        used = arena_used(a) - before;
        taken = planes == 1 ? used : 2 * taken - used;
    }
    assert_true(taken < 4096); /* of one plane, without what each plane keeps */
    arena_free(a);
}

/* The table ends where its memory does. */
TEST(a_table_of_lasting_keys_is_read_to_its_end_and_no_further)
{
    long     page = sysconf(_SC_PAGESIZE);
    uint8_t *memory = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(memory != MAP_FAILED && mprotect(memory + page, (size_t)page, PROT_NONE) == 0);
    for (int64_t n = 60; n < 70; n++) {
        Arena       *arena = arena_new();
        PatternShape s = { .heads = 1, .n = n, .m = n };
        int32_t     *last = (int32_t *)(void *)(memory + page) - n;
        Tensor       table = tensor_of(DT_I32, 2, (int64_t[]){ 1, n }, last);

        for (int64_t j = 0; j < n; j++)
            last[j] = (int32_t)n - 1;
        assert_int_equal(pattern_count(pattern_lasting(arena, s, &table, 1, COMPONENT_OTHER)),
                         n * (n + 1) / 2);
        arena_free(arena);
    }
    munmap(memory, 2 * (size_t)page);
}

SUITE(NULL, NULL)
