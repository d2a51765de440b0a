/* test_sequence.c -- escape sequences are taken whole, and say which key they are. */
#include "check.h"
#include "ui/term/term.h"

/* The key of what follows ESC; fails where characters are left, or too few came. */
static uint32_t key_of(const char *text)
{
    Sequence s;
    uint32_t key = 0;
    size_t   at = 1;

    assert_true(sequence_begin(&s, (uint32_t)(unsigned char)text[0]));
    for (; s.state && text[at]; at++)
        key = sequence_take(&s, (uint32_t)(unsigned char)text[at]);
    CHECK(!s.state, "ESC %s goes on", text);
    CHECK(!text[at], "ESC %s ends after %d characters", text, (int)at);
    return key;
}

/* Each key has a name that says which it is. */
TEST(keys_have_labels)
{
    char text[32];

    assert_string_equal(key_label(K_BACK, text, sizeof(text)), "Backspace");
    assert_string_equal(key_label('q', text, sizeof(text)), "q");
    assert_string_equal(key_label(0xe4, text, sizeof(text)), "\xc3\xa4");
    assert_string_equal(key_label(0x85, text, sizeof(text)), "?");
}

TEST(arrows_come_in_two_forms)
{
    static const char     letters[] = "ABDCHF";
    static const uint32_t keys[] = { K_ARROW_UP,    K_ARROW_DOWN, K_ARROW_LEFT,
                                     K_ARROW_RIGHT, K_LINE_HOME,  K_LINE_END };

    for (int i = 0; letters[i]; i++) {
        char control[] = { '[', letters[i], '\0' }, single[] = { 'O', letters[i], '\0' };

        assert_int_equal(key_of(control), keys[i]);
        assert_int_equal(key_of(single), keys[i]);
    }
    assert_int_equal(key_of("[Z"), K_SHIFT_TAB);
}

TEST(shift_is_the_second_number)
{
    assert_int_equal(key_of("[1;2A"), K_SHIFT_UP);
    assert_int_equal(key_of("[1;2B"), K_SHIFT_DOWN);
    assert_int_equal(key_of("[1;2C"), K_SHIFT_RIGHT);
    assert_int_equal(key_of("[1;2D"), K_SHIFT_LEFT);
    assert_int_equal(key_of("[1;1A"), K_ARROW_UP);
    assert_int_equal(key_of("[1;5A"), K_ARROW_UP);
    assert_int_equal(key_of("[1;5:2A"), K_ARROW_UP); /* of three numbers the last is no modifier */
}

/* F1 to F12 by number, with gaps at 16 and 22; by letter; and as the console sends them. */
TEST(function_keys_come_in_three_forms)
{
    static const int numbers[] = { 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 23, 24 };
    static const int none[] = { 0, 9, 10, 16, 22, 25, 99 };
    char             text[16];

    for (uint32_t i = 0; i < 12; i++) {
        snprintf(text, sizeof(text), "[%d~", numbers[i]);
        assert_int_equal(key_of(text), K_FUNCTION + i);
    }
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        snprintf(text, sizeof(text), "[%d~", none[i]);
        assert_int_equal(key_of(text), 0);
    }
    assert_int_equal(key_of("OP"), K_FUNCTION);
    assert_int_equal(key_of("OS"), K_FUNCTION + 3);
    assert_int_equal(key_of("[[A"), K_FUNCTION);
    assert_int_equal(key_of("[[E"), K_FUNCTION + 4);
    assert_int_equal(key_of("[[F"), 0);
    assert_int_equal(key_of("[[@"), 0);
}

TEST(keys_of_a_block_have_numbers)
{
    static const uint32_t keys[] = { K_LINE_HOME, K_INSERT,    K_DELETE,    K_LINE_END,
                                     K_PAGE_UP,   K_PAGE_DOWN, K_LINE_HOME, K_LINE_END };
    char                  text[16];

    for (int i = 0; i < 8; i++) {
        snprintf(text, sizeof(text), "[%d~", i + 1);
        assert_int_equal(key_of(text), keys[i]);
    }
}

TEST(a_keypad_sends_its_characters)
{
    assert_int_equal(key_of("Oj"), '*');
    assert_int_equal(key_of("Om"), '-');
    assert_int_equal(key_of("Op"), '0');
    assert_int_equal(key_of("Oy"), '9');
    assert_int_equal(key_of("OM"), K_RETURN);
    assert_int_equal(key_of("Oi"), 0);
    assert_int_equal(key_of("Oz"), 0);
}

/* Whatever it means, nothing of it acts as a key. */
TEST(others_are_taken_whole)
{
    assert_int_equal(key_of("[?1;2c"), 0);
    assert_int_equal(key_of("[>0A"), 0);
    assert_int_equal(key_of("[M ab"), 0); /* a button, a column, a row */
    assert_int_equal(key_of("]0;a title\a"), 0);
    assert_int_equal(key_of("]0;a title\033\\"), 0);
    assert_int_equal(key_of("Pq#0\033x still\033\\"), 0);
    assert_int_equal(key_of("_words\234"), 0);
}

TEST(only_some_characters_begin_one)
{
    Sequence s;

    for (uint32_t ch = 1; ch < 128; ch++)
        CHECK(sequence_begin(&s, ch) == (strchr("[O]PX^_", (int)ch) != NULL), "character %d",
              (int)ch);
}

/* A string without an end ends by itself, in time. */
TEST(a_string_that_never_ends_ends)
{
    Sequence s;
    int      length = 0;

    assert_true(sequence_begin(&s, ']'));
    for (; s.state && length < 100000; length++)
        assert_int_equal(sequence_take(&s, 'x'), 0);
    assert_int_equal(length, 65537);
}

SUITE(NULL, NULL)
