/* test_profile_counters.c -- hardware counters, or the reason why there are none. */
#include "profile/measure.h"
#include "profile_fixture.h"

/* An event that shared its counter had it for running of enabled nanoseconds. */
TEST(shared_counters_are_scaled)
{
    static const uint64_t whole[3] = { 1000, 50, 50 }, half[3] = { 1000, 50, 25 };
    static const uint64_t never[3] = { 0, 50, 0 }, idle[3] = { 0, 0, 0 };

    CHECK_WITHIN(counter_scaled(whole).value, 1000, 0);
    CHECK_WITHIN(counter_scaled(half).value, 2000, 0);
    assert_false(counter_scaled(never).valid);
    assert_true(counter_scaled(idle).valid);
}

TEST(counters_count_or_say_why_not)
{
    char            why[96] = "";
    Counters       *counters = counters_open(why, sizeof(why));
    HardwareCounts  counts;
    volatile double x = 1;

    if (!counters) {
        assert_true(strlen(why) > 0);
        print_message("no counters: %s\n", why);
        return;
    }
    counters_start(counters);
    for (int i = 0; i < 1000000; i++)
        x = x * 1.0000001 + 1e-9;
    counters_stop(counters, &counts);
    counters_close(counters);
    if (counts.instructions.valid)
        assert_true(counts.instructions.value > 1e6);
    if (counts.flops.valid)
        CHECK_WITHIN(counts.flops.value, 2e6, 1e5);
}

SUITE(NULL, NULL)

/* ARM's have no counter of operations, virtual machines not all of the others. */
TEST(words_say_what_is_counted_and_what_is_not)
{
    static const struct {
        unsigned    counted;
        const char *words;
    } all[] = {
        { 0xf, "reads cycles, instructions, misses, hardware FLOPs" },
        { 1u << COUNT_CYCLES | 1u << COUNT_INSTRUCTIONS,
          "reads cycles, instructions; without misses, hardware FLOPs" },
        { 1u << COUNT_FLOPS, "reads hardware FLOPs; without cycles, instructions, misses" },
    };
    char words[96];

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        counters_words(all[i].counted, words, sizeof(words));
        assert_string_equal(words, all[i].words);
    }
}
