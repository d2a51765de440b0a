/* test_core.c -- error, arena, tensor, rng, threads, text. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "core/arena.h"
#include "core/error.h"
#include "core/rng.h"
#include "core/tensor.h"
#include "core/text.h"
#include "core/threads.h"

/* Also where it repeats what a file holds. */
TEST(a_message_is_one_line)
{
    Error err = ERROR_INIT;

    error_set(&err, ERR_FORMAT, "'%s' is no number", "a\nb\tc\033[2J\x7f");
    assert_string_equal(err.text, "'a b c?[2J?' is no number");
    error_prefix(&err, "%s", "x\r\n.csv");
    assert_string_equal(err.text, "x  .csv: 'a b c?[2J?' is no number");
}

TEST(a_line_is_found_as_a_whole)
{
    Text t = { 0 };

    assert_true(text_has_line(&t, ""));
    assert_false(text_has_line(&t, "window=3"));
    text_add(&t, "window=33\na window=3\n");
    assert_false(text_has_line(&t, "window=3"));
    assert_true(text_has_line(&t, "window=33"));
    assert_true(text_has_line(&t, "window=33\n"));
    text_add(&t, "window=3\nlast");
    assert_true(text_has_line(&t, "window=3"));
    assert_true(text_has_line(&t, "a window=3\nwindow=3\n"));
    assert_true(text_has_line(&t, "last\n"));
    assert_false(text_has_line(&t, "las"));
    assert_false(lines_hold("x\ny", "\ny"));
    text_free(&t);
}

TEST(error_prefix_goes_before_the_text)
{
    Error err = ERROR_INIT;
    char  expected[sizeof(err.text)];

    assert_false(error_set(&err, ERR_FILE, "cannot open %d", 7));
    assert_false(error_prefix(&err, "reading %s", "x"));
    assert_string_equal(err.text, "reading x: cannot open 7");
    assert_int_equal(error_exit_status(ERR_PARAM), 2);
    assert_int_equal(error_exit_status(ERR_CANCELLED), 130);
    assert_false(error_set(NULL, ERR_FILE, "nobody listens"));
    memset(expected, 'x', sizeof(expected));
    expected[sizeof(expected) - 1] = '\0';
    error_set(&err, ERR_FILE, "%s", expected);
    error_prefix(&err, "long");
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

TEST(arena_counts_its_peak)
{
    Arena    *a = arena_new();
    ArenaMark mark;

    assert_non_null(arena_alloc(a, 100, 1));
    mark = arena_mark(a);
    assert_non_null(arena_alloc(a, 1000, 64));
    assert_int_equal(arena_used(a), 128 + 64000);
    arena_release(a, mark);
    assert_int_equal(arena_used(a), 128);
    assert_int_equal(arena_peak(a), 128 + 64000);
    arena_reset(a);
    assert_int_equal(arena_used(a), 0);
    arena_peak_reset(a);
    assert_int_equal(arena_peak(a), 0);
    arena_free(a);
}

TEST(arena_gives_a_pointer_for_no_bytes)
{
    Arena *a = arena_new();

    assert_non_null(arena_alloc(a, 0, 4)); /* before there is any chunk */
    assert_int_equal(arena_used(a), 0);
    arena_free(a);
}

TEST(arena_memory_is_aligned_and_reused)
{
    Arena  *a = arena_new();
    int64_t reserved;

    for (int round = 0; round < 3; round++) {
        for (int64_t size = 1; size < 5000000; size = size * 3 + 1) {
            uint8_t *p = arena_alloc(a, size, 1);

            assert_non_null(p);
            assert_int_equal((uintptr_t)p % 64, 0);
            p[0] = p[size - 1] = 1;
        }
        if (round == 0)
            reserved = arena_reserved(a);
        assert_int_equal(arena_reserved(a), reserved);
        assert_true(arena_check(a));
        arena_reset(a);
    }
    arena_free(a);
}

static void count_fresh(void *context, void *data, int64_t bytes)
{
    assert_non_null(data);
    *(int64_t *)context += bytes;
}

TEST(arena_says_which_huge_pages_are_fresh)
{
    Arena  *a = arena_new();
    int64_t fresh = 0;

    arena_on_fresh(a, count_fresh, &fresh);
    assert_non_null(arena_alloc(a, 1000, 1)); /* no huge page */
    assert_int_equal(fresh, 0);
    assert_non_null(arena_alloc(a, 3 << 20, 1));
    assert_int_equal(fresh, 4 << 20);
    arena_reset(a);
    assert_non_null(arena_alloc(a, 3 << 20, 1));
    assert_int_equal(fresh, 4 << 20);
    arena_on_fresh(a, NULL, NULL);
    assert_non_null(arena_alloc(a, 8 << 20, 1));
    assert_int_equal(fresh, 4 << 20);
    arena_free(a);
}

TEST(arena_refuses_what_it_must)
{
    Arena *a = arena_new();

    assert_null(arena_alloc(a, INT64_MAX / 2, 4));
    assert_null(arena_alloc(a, -1, 4));
    arena_limit(a, 1000);
    assert_null(arena_alloc(a, 1001, 1));
    assert_non_null(arena_alloc(a, 900, 1));
    arena_limit(a, arena_used(a) + 100);
    assert_null(arena_alloc(a, 101, 1));
    assert_non_null(arena_alloc(a, 100, 1)); /* the limit itself is allowed */
    arena_limit(a, 0);
    arena_fail_at(a, 2);
    assert_non_null(arena_alloc(a, 1, 1));
    assert_non_null(arena_alloc(a, 1, 1));
    assert_null(arena_alloc(a, 1, 1));
    assert_non_null(arena_alloc(a, 1, 1));
    arena_free(a);
}

/* Bytes that a source has given out and not got back, and the share of the device. */
typedef struct Lent {
    int  taken, attached, refusals;
} Lent;

static void *take_chunk(void *context, int64_t bytes)
{
    ((Lent *)context)->taken++;
    return aligned_alloc(64, (size_t)bytes);
}

static void give_chunk(void *context, void *data, int64_t bytes)
{
    (void)bytes;
    ((Lent *)context)->taken--;
    free(data);
}

static bool attach_chunk(void *context, void *data, bool device)
{
    Lent *lent = context;

    (void)data;
    if (lent->refusals-- > 0)
        return false;
    lent->attached += device ? 1 : -1;
    return true;
}

TEST(arena_chunks_are_attached_together)
{
    Lent        lent = { 0 };
    ArenaSource source = { .take = take_chunk, .give = give_chunk, .attach = attach_chunk,
                           .context = &lent };
    Arena      *arena = arena_new_from(&source);

    assert_non_null(arena_alloc(arena, 100, 1));
    assert_int_equal(lent.attached, 0);
    assert_true(arena_attach(arena, true));
    assert_true(arena_attach(arena, true)); /* it is already */
    assert_non_null(arena_alloc(arena, 1, 1 << 20));
    assert_int_equal(lent.attached, 2);
    lent.refusals = 1;
    assert_null(arena_alloc(arena, 1, 4 << 20));
    assert_int_equal(lent.taken, 2);
    lent.refusals = 1;
    assert_false(arena_attach(arena, false)); /* the first; the others are tried too */
    assert_int_equal(lent.attached, 1);
    arena_free(arena);
    assert_int_equal(lent.taken, 0);
}

/* Data that the host writes during a run shares no page with numbers of the device. */
TEST(numbers_of_a_source_have_chunks_of_their_own)
{
    Lent        lent = { 0 };
    ArenaSource source = { .take = take_chunk, .give = give_chunk, .context = &lent };
    Arena      *arena = arena_new_from(&source);
    ArenaMark   mark;
    Tensor      x = tensor_new(arena, DT_F32, 1, (int64_t[]){ 4 });
    char       *name = arena_strdup(arena, "a list"), *list;
    void       *number;

    assert_int_equal(lent.taken, 2);
    assert_true(arena_holds(arena, x.data) && arena_holds(arena, name));
    mark = arena_mark(arena);
    list = arena_alloc(arena, 1, 1 << 10);
    number = arena_alloc_data(arena, 1, 1);
    assert_non_null(arena_alloc_data(arena, 1, 1 << 20)); /* a chunk more, of numbers */
    assert_int_equal(lent.taken, 3);
    arena_release(arena, mark);
    assert_int_equal(arena_used(arena), mark.used);
    assert_ptr_equal(arena_alloc(arena, 1, 1 << 10), list);
    assert_ptr_equal(arena_alloc_data(arena, 1, 1), number);
    arena_reset(arena);
    assert_ptr_equal(arena_alloc_data(arena, 1, 1), x.data);
    assert_ptr_equal(arena_alloc(arena, 1, 1), name);
    assert_int_equal(lent.taken, 3);
    arena_free(arena);
    assert_int_equal(lent.taken, 0);
}

TEST(tensor_heads_are_shared_by_groups)
{
    float  data[2 * 3] = { 0 };
    Tensor t = tensor_of(DT_F32, 3, (int64_t[]){ 2, 3, 1 }, data);
    Tensor one = tensor_of(DT_F32, 3, (int64_t[]){ 1, 3, 1 }, data);

    assert_ptr_equal(tensor_head(&t, 0, 4), data);
    assert_ptr_equal(tensor_head(&t, 1, 4), data);
    assert_ptr_equal(tensor_head(&t, 2, 4), data + 3);
    assert_ptr_equal(tensor_head(&t, 3, 4), data + 3);
    assert_ptr_equal(tensor_head(&one, 3, 4), data);
}

/* Counted in row-major order, whatever lies between the entries. */
TEST(what_is_not_finite_is_found)
{
    float   data[6] = { 1, NAN, 2, 3, INFINITY, 4 };
    int32_t whole[2] = { 1, 2 };
    Tensor  t = tensor_of(DT_F32, 3, (int64_t[]){ 1, 2, 3 }, data), turned = tensor_turned(t);
    Tensor  none = tensor_of(DT_F32, 1, (int64_t[]){ 3 }, NULL);
    Tensor  list = tensor_of(DT_I32, 1, (int64_t[]){ 2 }, whole);

    assert_int_equal(tensor_not_finite(&t), 1);
    assert_int_equal(tensor_not_finite(&turned), 2);
    data[1] = 0;
    assert_int_equal(tensor_not_finite(&turned), 3);
    data[4] = 0;
    assert_int_equal(tensor_not_finite(&turned), -1);
    assert_int_equal(tensor_not_finite(&none), -1);
    assert_int_equal(tensor_not_finite(&list), -1);
}

/* Bounds belong to the range; a bound that no float is equal to is not rounded to one. */
TEST(what_is_outside_a_range_is_found)
{
    float  data[4] = { 0, 1, 0.5F, 0.1F };
    double wide[3] = { 0, 1, NAN };
    Tensor t = tensor_of(DT_F32, 1, (int64_t[]){ 4 }, data);
    Tensor w = tensor_of(DT_F64, 1, (int64_t[]){ 3 }, wide);

    assert_int_equal(tensor_not_within(&t, 0, 1), -1);
    assert_int_equal(tensor_not_within(&t, 0, 0.9), 1);
    assert_int_equal(tensor_not_within(&t, 0.1, 1), 0);
    data[0] = data[1] = 0.1F; /* above 0.1 */
    assert_int_equal(tensor_not_within(&t, 0, 0.1), 0);
    assert_int_equal(tensor_not_within(&w, 0, 1), 2);
    assert_int_equal(tensor_not_within(&w, 0.5, 1), 0);
}

TEST(tensor_conversion_follows_strides)
{
    Arena  *a = arena_new();
    int64_t data[6] = { 0, 1, 2, 3, 4, INT64_C(1) << 31 };
    Tensor  t = tensor_of(DT_I64, 2, (int64_t[]){ 2, 3 }, data), out;
    char    text[32];

    t.shape[0] = 3, t.shape[1] = 2, t.stride[0] = 1, t.stride[1] = 3; /* transposed */
    assert_false(tensor_contiguous(&t));
    out = tensor_convert(a, t, DT_F32);
    assert_true(tensor_f32(&out)[1] == 3);
    assert_true(tensor_f32(&out)[2] == 1);
    assert_string_equal(tensor_shape_text(&out, text, sizeof(text)), "[3,2]");
    arena_free(a);
}

/* First outputs of Philox 4x32-10 with key and counter 0, published with the
 * Random123 library (kat_vectors): 6627e8d5 e169c58d bc57ac4c 9b00dbd8. */
TEST(rng_is_philox)
{
    assert_true(rng_at(0, 0, 0) == UINT64_C(0xe169c58d6627e8d5));
    assert_true(rng_at(0, 0, 1) == UINT64_C(0x9b00dbd8bc57ac4c));
}

TEST(rng_draws_what_it_says)
{
    Rng    rng = rng_named(3, "a"), again = rng_named(3, "a"), other = rng_named(3, "b");
    double sum = 0, squares = 0;
    int    counts[7] = { 0 };

    assert_true(rng_next(&rng) == rng_next(&again));
    assert_true(rng_next(&rng) != rng_next(&other));
    again = rng;
    for (int i = 0; i < 2; i++) { /* from an even place, then from an odd one */
        float filled[5];

        rng_fill_uniform(&rng, filled, 5, -1, 1);
        for (int x = 0; x < 5; x++)
            assert_true(filled[x] == (float)(-1 + 2 * rng_uniform(&again)));
        assert_true(rng.at == again.at);
    }
    for (int i = 0; i < 20000; i++) {
        double x = rng_normal(&rng);

        sum += x;
        squares += x * x;
        counts[rng_below(&rng, 7)]++;
    }
    CHECK_NEAR(sum / 20000, 0, 0.03);      /* 4 standard errors of the mean */
    CHECK_NEAR(squares / 20000, 1, 0.04);  /* 4 standard errors of the variance */
    for (int i = 0; i < 7; i++)
        CHECK_NEAR(counts[i] / 20000.0, 1 / 7.0, 0.01);
}

/* A fill begins with a whole block, so after an odd number of draws one number is left out. */
TEST(a_fill_of_normals_begins_with_a_block)
{
    Rng   odd = rng_named(3, "a"), even = odd;
    float from_odd[5], from_even[5], later[4];

    rng_next(&odd);
    rng_next(&even);
    rng_next(&even);
    rng_fill_normal(&odd, from_odd, 5, 2);
    rng_fill_normal(&even, from_even, 5, 2);
    assert_memory_equal(from_odd, from_even, sizeof(from_odd));
    assert_true(odd.at == 8 && even.at == 8);
    rng_fill_normal(&odd, later, 4, 2);
    for (int i = 0; i < 5; i++)
        assert_true(later[0] != from_odd[i]);
}

static void count_item(void *context, int64_t item, int worker)
{
    (void)worker;
    ((int *)context)[item]++;
}

static pthread_t    taken_by;
static atomic_int   taken_count;

static void take_signal(int number)
{
    if (threads_pass_signal(number))
        return;
    taken_by = pthread_self();
    atomic_fetch_add(&taken_count, 1);
}

static void *signal_itself(void *number)
{
    pthread_kill(pthread_self(), *(int *)number);
    return NULL;
}

TEST(a_signal_of_another_thread_reaches_the_main_one)
{
    struct sigaction ours = { .sa_handler = take_signal }, before;
    int              number = SIGUSR1;
    pthread_t        thread;

    sigaction(number, &ours, &before);
    assert_int_equal(pthread_create(&thread, NULL, signal_itself, &number), 0);
    pthread_join(thread, NULL);
    for (int i = 0; i < 1000 && atomic_load(&taken_count) == 0; i++)
        usleep(1000);
    sigaction(number, &before, NULL);
    assert_int_equal(atomic_load(&taken_count), 1);
    assert_true(pthread_equal(taken_by, pthread_self()));
}

TEST(threads_do_each_item_once)
{
    int *items = calloc(10000, sizeof(*items));

    for (int count = 1; count <= 4; count++) {
        Threads *pool = threads_new(count);

        memset(items, 0, 10000 * sizeof(*items));
        for (int round = 0; round < 20; round++)
            threads_run(pool, 10000, count_item, items);
        for (int i = 0; i < 10000; i++)
            assert_int_equal(items[i], 20);
        threads_free(pool);
    }
    threads_run(NULL, 3, count_item, items);
    assert_int_equal(items[2], 21);
    free(items);
}

#ifndef ATTNSCOPE_SANITIZED /* whose own memory for a thread would be refused too */

/* A number of this process as the system has it. */
static long status_of(const char *name)
{
    FILE *file = fopen("/proc/self/status", "r");
    char  line[256];
    long  value = -1;

    assert_non_null(file);
    while (value < 0 && fgets(line, sizeof(line), file))
        if (!strncmp(line, name, strlen(name)))
            value = strtol(line + strlen(name), NULL, 10);
    fclose(file);
    return value;
}

/* Of this process's addresses, an arena has none once it is freed. */
TEST(a_freed_arena_gives_its_memory_back)
{
    enum { LARGE = 64 << 20, TIMES = 5 };
    long kib = status_of("VmSize:");

    for (int i = 0; i < TIMES; i++) {
        Arena *arena = arena_new();

        assert_non_null(arena_alloc(arena, LARGE, 1));
        arena_free(arena);
    }
    CHECK(status_of("VmSize:") < kib + (LARGE >> 10), "%ld KiB more", status_of("VmSize:") - kib);
}

/* Each thread has a stack: of 100 there is room for a few. */
TEST(a_pool_that_cannot_start_leaves_no_thread)
{
    struct rlimit before, few;
    long          threads = status_of("Threads:"), kib = status_of("VmSize:");
    Threads      *pool;

    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    few = before;
    few.rlim_cur = (rlim_t)(kib + 48 * 1024) * 1024;
    assert_int_equal(setrlimit(RLIMIT_AS, &few), 0);
    pool = threads_new(100);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_null(pool);
    for (int i = 0; i < 1000 && status_of("Threads:") > threads; i++)
        usleep(1000); /* the system may count one for a moment after it was joined */
    assert_true(status_of("Threads:") <= threads);
}

#endif

/* A reader of JSON takes 8.3968e+06 for a real, 8396800 for a whole number. */
TEST(whole_numbers_of_json_are_whole)
{
    Text text = { 0 };
    Json j = jsonw_to(&text);

    jsonw_open(&j, '[');
    jsonw_number(&j, 8396800);
    jsonw_number(&j, -17179869184.0);
    jsonw_number(&j, 1e15);
    jsonw_number(&j, 1e300);
    jsonw_number(&j, 8396800.5);
    jsonw_number(&j, 0);
    jsonw_number(&j, 1e-9);
    jsonw_close(&j, ']');
    assert_string_equal(text_str(&text),
                        "[8396800,-17179869184,1000000000000000,1e+300,8396800.5,0,1e-09]");
    text_free(&text);
}

TEST(json_is_written_with_its_commas)
{
    Text text = { 0 };
    Json j = jsonw_to(&text);

    jsonw_open(&j, '{');
    jsonw_key(&j, "a\"\n");
    jsonw_open(&j, '[');
    jsonw_int(&j, 1);
    jsonw_number(&j, 0.1);
    jsonw_number(&j, NAN);
    jsonw_string(&j, NULL);
    jsonw_close(&j, ']');
    jsonw_key(&j, "b");
    jsonw_bool(&j, true);
    jsonw_close(&j, '}');
    assert_string_equal(text_str(&text), "{\"a\\\"\\u000a\":[1,0.1,null,null],\"b\":true}");
    text_clear(&text);
    j = jsonw_to(&text);
    jsonw_key_open(&j, "keys", '{');
    jsonw_key_bool(&j, "no", false);
    jsonw_key_int(&j, "int", -7);
    jsonw_key_number(&j, "number", 0.5);
    jsonw_key_string(&j, "text", "x");
    jsonw_key_raw(&j, "raw", "[2]");
    jsonw_some_int(&j, "none", 0);
    jsonw_some_int(&j, "some", 3);
    jsonw_some_string(&j, "empty", "");
    jsonw_some_string(&j, "more", "y");
    jsonw_close(&j, '}');
    assert_string_equal(text_str(&text),
                        "\"keys\":{\"no\":false,\"int\":-7,\"number\":0.5,\"text\":\"x\","
                        "\"raw\":[2],\"some\":3,\"more\":\"y\"}");
    text_free(&text);
}

TEST(csv_quotes_only_where_it_must)
{
    Text text = { 0 };

    csv_cell(&text, "plain", true);
    csv_cell(&text, "a,\"b\"", false);
    csv_cell(&text, NULL, false);
    assert_string_equal(text_str(&text), "plain,\"a,\"\"b\"\"\",");
    text_free(&text);
}

static void check_shown(const char *words, bool colours, const char *shown)
{
    Text text = { 0 };

    text_add_shown(&text, words, strlen(words), colours);
    assert_string_equal(text_str(&text), shown);
    text_free(&text);
}

/* Escapes, C1 in two bytes or in one, and half a character; a name in any language stays. */
TEST(a_terminal_shows_and_does_not_obey)
{
    check_shown("a\tb\n\u00e9\u65e5", false, "a\tb\n\u00e9\u65e5");
    check_shown("\033]0;title\a", true, "?]0;title?");
    check_shown("\xc2\x9b" "31m\x9b" "31m", true, "?31m?31m");
    check_shown("a\r\b\x7f", true, "a???");
    check_shown("\xe6\x97", true, "??");
    check_shown("\033[38;5;9mred\033[0m", true, "\033[38;5;9mred\033[0m");
    check_shown("\033[38;5;9mred\033[0m", false, "?[38;5;9mred?[0m");
    check_shown("\033[2J\033[1", true, "?[2J?[1");
    check_shown("", true, "");
}

TEST(names_have_distances)
{
    assert_int_equal(text_distance("reformer", "reformer"), 0);
    assert_int_equal(text_distance("refomer", "reformer"), 1);
    assert_int_equal(text_distance("refromer", "reformer"), 1);
    assert_int_equal(text_distance("", "full"), 4);
}

TEST(the_nearest_name_is_meant)
{
    Meant meant = { "windw", NULL, 3 };

    assert_false(meant_offer(&meant, "full"));
    assert_null(meant.name);
    assert_true(meant_offer(&meant, "widow"));
    assert_true(meant_offer(&meant, "window"));
    assert_false(meant_offer(&meant, "winds")); /* as near as the one before */
    assert_string_equal(meant.name, "window");
    assert_int_equal(meant.slips, 1);
}

TEST(sizes_read_well)
{
    char text[32];

    assert_string_equal(format_bytes(512, text, sizeof(text)), "512 B");
    assert_string_equal(format_bytes(1536, text, sizeof(text)), "1.5 KiB");
    assert_string_equal(format_bytes(0x1p73, text, sizeof(text)), "8.59e+09 TiB");
    assert_string_equal(format_exact_bytes(1408 * 0x1p20, text, sizeof(text)), "1.38 GiB");
    assert_string_equal(format_exact_bytes(512, text, sizeof(text)), "512 B");
    assert_string_equal(format_exact_bytes(9.997 * 1024, text, sizeof(text)), "10.0 KiB");
    assert_string_equal(format_exact_count(2.25e9, text, sizeof(text)), "2.25 G");
    assert_string_equal(format_count(999, text, sizeof(text)), "999");
    assert_string_equal(format_count(2.5e9, text, sizeof(text)), "2.5 G");
    assert_string_equal(format_percent(0.123, text, sizeof(text)), "12.3 %");
    assert_string_equal(format_percent(0.91, text, sizeof(text)), "91.0 %");
    assert_string_equal(format_percent(0.00012, text, sizeof(text)), "0.0120 %");
    assert_string_equal(format_percent(0, text, sizeof(text)), "0 %");
    assert_string_equal(format_percent(1, text, sizeof(text)), "100 %");
    assert_string_equal(format_percent(0.99996, text, sizeof(text)), "99.996 %");
    assert_string_equal(format_percent(12.3456, text, sizeof(text)), "1235 %");
    assert_string_equal(format_seconds(89, text, sizeof(text)), "89 s");
    assert_string_equal(format_seconds(90, text, sizeof(text)), "2 min");
    assert_string_equal(format_seconds(5400, text, sizeof(text)), "1.5 h");
    assert_string_equal(format_progress(12, 170, text, sizeof(text)), "12 s, about 3 min left");
    assert_string_equal(format_progress(12, 0, text, sizeof(text)), "12 s, about 0 s left");
    assert_string_equal(format_progress(12, -1, text, sizeof(text)), "12 s");
    assert_string_equal(format_count(-2.5e9, text, sizeof(text)), "-2.5 G"); /* a difference */
    assert_string_equal(format_bytes(-3 * 1024 * 1024, text, sizeof(text)), "-3.0 MiB");
    assert_string_equal(format_bytes(-0x1p73, text, sizeof(text)), "-8.59e+09 TiB");
    assert_string_equal(format_count(-999400, text, sizeof(text)), "-999 k");
    assert_string_equal(format_percent(-12.3456, text, sizeof(text)), "-1235 %");
}

TEST(a_whole_number_may_have_a_unit)
{
    static const struct {
        const char *text;
        int64_t     value;
    } read[] = {
        { "32768", 32768 }, { "-3", -3 }, { "32k", 32000 }, { "32K", 32000 }, { "32Ki", 32768 },
        { "1M", 1000000 }, { "1Mi", 1048576 }, { "2G", 2000000000 }, { "-1Gi", -1073741824 },
    };
    static const char *const refused[] = { "", "k", "1.5k", "1m", "32kB", "32 k", "1e3", "Ki",
                                           "9999999999G", "99999999999999999999" };
    const char *end;
    int64_t     value;

    for (size_t i = 0; i < sizeof(read) / sizeof(*read); i++) {
        assert_true(text_whole(read[i].text, &value));
        assert_int_equal(value, read[i].value);
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        assert_false(text_whole(refused[i], &value));
    CHECK_NEAR(text_number_at("1.5k:4", &end), 1500, 0);
    assert_string_equal(end, ":4");
    text_number_at("x", &end);
    assert_string_equal(end, "x");
}

TEST(files_appear_whole_or_not_at_all)
{
    Error err = ERROR_INIT;
    char  path[] = "/tmp/attnscope-test-XXXXXX";
    int   fd = mkstemp(path);

    close(fd);
    assert_true(file_write(path, "abc", 3, &err));
    assert_false(file_write("/dev/null/folder/x", "abc", 3, &err));
    assert_int_equal(err.code, ERR_FILE);
    assert_non_null(strstr(err.text, "/dev/null/folder/x"));
    unlink(path);
}

TEST(a_place_is_a_name_in_a_folder_that_is_there)
{
    char path[5000], folder[] = "/tmp/attnscope-core-XXXXXX", gone[64], text[128];
    const char *const refused[][2] = {
        { "/tmp", "is a folder" },
        { gone, text },
        { "~/nowhere/x.png", "~ is a shell's" },
    };

    assert_non_null(mkdtemp(folder));
    assert_int_equal(rmdir(folder), 0);
    snprintf(gone, sizeof(gone), "%s/x.png", folder);
    snprintf(text, sizeof(text), "the folder %s cannot be written to", folder);
    for (size_t i = 0; i < 3; i++) {
        Error err = ERROR_INIT;

        assert_false(file_place(refused[i][0], &err));
        assert_int_equal(err.code, ERR_FILE);
        assert_non_null(strstr(err.text, refused[i][1]));
    }
    assert_true(file_place("/tmp/attnscope-no-such-file", NULL));
    assert_true(file_place("-", NULL));
    assert_true(file_place("/dev/null", NULL));
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_false(file_place(path, NULL));
}

TEST(flags_say_what_is_not_zero)
{
    Arena  *a = arena_new();
    int64_t wide[4] = { 0, 256, -1, INT64_MAX };
    float   real[4] = { 0.0f, 0.25f, NAN, -0.0f };
    Tensor  x = tensor_nonzero(a, tensor_of(DT_I64, 2, (int64_t[]){ 2, 2 }, wide));
    Tensor  y = tensor_nonzero(a, tensor_of(DT_F32, 1, (int64_t[]){ 4 }, real));

    assert_memory_equal(x.data, ((uint8_t[]){ 0, 1, 1, 1 }), 4);
    assert_memory_equal(y.data, ((uint8_t[]){ 0, 1, 1, 0 }), 4);
    assert_int_equal(x.rank, 2);
    arena_free(a);
}

/* A tensor that is not given stays so, whatever part of it is asked for. */
TEST(parts_of_no_tensor_are_none)
{
    Tensor none = tensor_of(DT_F32, 3, (int64_t[]){ 1, 8, 4 }, NULL);
    Tensor rows = tensor_rows(none, 2, 3), columns = tensor_columns(none, 1, 2);

    assert_false(tensor_given(&rows));
    assert_false(tensor_given(&columns));
}

/* Also where rounding makes a thousand of one unit. */
TEST(numbers_for_people_have_the_next_unit_in_time)
{
    char text[32];

    assert_string_equal(format_count(999, text, sizeof(text)), "999");
    assert_string_equal(format_count(999499, text, sizeof(text)), "999 k");
    assert_string_equal(format_count(999500, text, sizeof(text)), "1.0 M");
    assert_string_equal(format_count(99960, text, sizeof(text)), "100 k");
    assert_string_equal(format_bytes((1 << 20) - 1, text, sizeof(text)), "1.0 MiB");
    assert_string_equal(format_bytes(1023, text, sizeof(text)), "1023 B");
}

/* What a file or a name holds need not be UTF-8; JSON must be. */
TEST(lines_with_the_same_words_differ_in_numbers_alone)
{
    assert_true(text_same_words("3 of 64 rows", "12 of 64 rows"));
    assert_true(text_same_words("N of 64 rows", "1.5 of 7 rows"));
    assert_true(text_same_words("3 rows\nand more", "4 rows\nand others"));
    assert_false(text_same_words("3 of 64 rows", "of 64 rows"));
    assert_false(text_same_words("3 rows", "3 row"));
    assert_false(text_same_words("None", "3one "));
}

TEST(json_texts_are_utf8)
{
    Text text = { 0 };
    Json j = jsonw_to(&text);

    jsonw_string(&j, "a\xff\xc3\xa9\xe2\x82");
    assert_string_equal(text_str(&text), "\"a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\"");
    text_free(&text);
}

TEST(a_file_that_cannot_be_read_says_why)
{
    Text  text = { 0 };
    Error err = ERROR_INIT;

    assert_false(file_read("/tmp", 100, &text, &err));
    CHECK(strstr(err.text, "Is a directory"), "%s", err.text);
    text_free(&text);
}

/* The file has no end, and nothing is kept of it. */
TEST(reading_ends_where_memory_does)
{
    Text  text = { .failed = true };
    Error err = ERROR_INIT;

    alarm(20);
    assert_false(file_read("/dev/zero", 1 << 20, &text, &err));
    alarm(0);
    assert_int_equal(err.code, ERR_NOMEM);
    text_free(&text);
}

SUITE(NULL, NULL)
