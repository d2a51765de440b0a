/* test_shape.c -- Arabic is joined, and right-to-left scripts are drawn in visual order. */

#include "check.h"
#include "draw/text/unicode.h"

static bool has_all(const void *context, uint32_t code)
{
    (void)context;
    (void)code;
    return true;
}

static bool has_no_forms(const void *context, uint32_t code)
{
    (void)context;
    return code < 0xFB00;
}

static void is_shown_as(const char *text, const char *shown)
{
    char out[256];

    shape_text(text, has_all, NULL, out, sizeof(out));
    assert_string_equal(out, shown);
}

TEST(what_has_no_such_letters_stays)
{
    is_shown_as("", "");
    is_shown_as("(na\xC3\xAFve) 12", "(na\xC3\xAFve) 12");
    is_shown_as("\xF0\x9F half", "\xF0\x9F half");
}

TEST(letters_join)
{
    is_shown_as("\xD8\xA8", "\xEF\xBA\x8F");                         /* beh alone */
    is_shown_as("\xD8\xA8\xD8\xA8\xD8\xA8",
                "\xEF\xBA\x90\xEF\xBA\x92\xEF\xBA\x91");             /* end, within, beginning */
    is_shown_as("\xD8\xAF\xD8\xA8", "\xEF\xBA\x8F\xEF\xBA\xA9");     /* dal joins nothing after */
    is_shown_as("\xD8\xA1\xD8\xA8", "\xEF\xBA\x8F\xEF\xBA\x80");     /* hamza joins nothing */
    is_shown_as("\xD8\xB3\xD9\x84\xD8\xA7\xD9\x85",                  /* salam: seen, lam-alef */
                "\xEF\xBB\xA1\xEF\xBB\xBC\xEF\xBA\xB3");
    is_shown_as("\xD9\x84\xD8\xA7", "\xEF\xBB\xBB");                 /* la */
    is_shown_as("\xDA\xAF\xDB\x8C", "\xEF\xAF\xBD\xEF\xAE\x94");     /* Persian gaf, yeh */
    is_shown_as("\xD8\xA8\xD9\x8E\xD8\xA8",                          /* a mark does not part */
                "\xEF\xBA\x90\xEF\xBA\x91\xD9\x8E");
    is_shown_as("\xD8\xA8 \xD8\xA8", "\xEF\xBA\x8F \xEF\xBA\x8F");   /* a blank does */
    is_shown_as("\xD9\x80\xD8\xA8\xD9\x80", "\xD9\x80\xEF\xBA\x92\xD9\x80"); /* tatweel */
}

TEST(fonts_without_forms_have_letters)
{
    char out[64];

    shape_text("\xD8\xA8\xD9\x84\xD8\xA7", has_no_forms, NULL, out, sizeof(out));
    assert_string_equal(out, "\xD8\xA7\xD9\x84\xD8\xA8");
}

TEST(runs_are_turned_and_numbers_are_not)
{
    is_shown_as("\xD7\xA9\xD7\x9C", "\xD7\x9C\xD7\xA9");                    /* Hebrew */
    is_shown_as("key \xD7\x90\xD7\x91 q", "key \xD7\x91\xD7\x90 q");
    is_shown_as("\xD7\x90 12.5 \xD7\x91", "\xD7\x91 12.5 \xD7\x90");
    is_shown_as("\xD7\x90 12", "12 \xD7\x90");
    is_shown_as("\xD7\x90 (\xD7\x91) \xD7\x92", "\xD7\x92 (\xD7\x91) \xD7\x90");
    is_shown_as("\xD7\x90\xD6\xB8\xD7\x91", "\xD7\x91\xD7\x90\xD6\xB8"); /* a point stays with it */
    is_shown_as("\xD7\x90.", "\xD7\x90.");
    is_shown_as("a \xD7\x90 b \xD7\x91", "a \xD7\x90 b \xD7\x91");
}

TEST(long_texts_are_cut_at_a_character)
{
    char text[4096], out[100];

    for (size_t k = 0; k + 2 < sizeof(text); k += 2)
        memcpy(text + k, "\xD7\x90", 3);
    shape_text(text, has_all, NULL, out, sizeof(out));
    assert_true(strlen(out) < sizeof(out));
    text[600] = '\0';
    shape_text(text, has_all, NULL, out, sizeof(out));
    assert_int_equal(strlen(out) % 2, 0);
    assert_true(strlen(out) > sizeof(out) - 8);
}

SUITE(NULL, NULL)
