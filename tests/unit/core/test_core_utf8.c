/* test_core_utf8.c -- one decoder and one encoder: they agree for every character, and what is not
 * UTF-8 is found byte by byte. */

#include "check.h"
#include "core/utf8.h"

TEST(every_character_comes_back)
{
    for (uint32_t code = 0; code < 0x110000; code++) {
        char     bytes[5] = { 0 };
        int      length = utf8_encode(code, bytes);
        uint32_t read;
        bool     none = code >= 0xD800 && code < 0xE000;

        assert_int_equal(utf8_decode(bytes, (size_t)length, &read), length);
        assert_int_equal(read, none ? UTF8_REPLACEMENT : code);
        for (int cut = 0; cut < length; cut++)
            assert_int_equal(utf8_decode(bytes, (size_t)cut, NULL), 0);
        assert_int_equal(utf8_count(bytes, (size_t)length), 1);
    }
}

TEST(controls_are_two_blocks_and_delete)
{
    static const struct {
        uint32_t first, last; /* that are controls */
    } blocks[] = { { 0, 0x1F }, { 0x7F, 0x9F } };

    for (uint32_t code = 0; code < 0x200; code++) {
        bool control = false;

        for (size_t x = 0; x < sizeof(blocks) / sizeof(*blocks); x++)
            control |= code >= blocks[x].first && code <= blocks[x].last;
        CHECK(utf8_is_control(code) == control, "U+%04X", (unsigned)code);
    }
}

/* A sequence of four bytes is accepted exactly when encoding its character gives it back. */
TEST(only_the_shortest_form)
{
    static const unsigned char second[] = { 0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0 };

    for (int first = 0; first < 256; first++)
        for (size_t k = 0; k < sizeof(second); k++)
            for (size_t last = 0; last < sizeof(second); last++) {
                unsigned char bytes[4] = { (unsigned char)first, second[k], 0x80, second[last] };
                char          again[4];
                uint32_t      code;
                int           length = utf8_decode(bytes, 4, &code);

                if (!length) {
                    assert_int_equal(code, UTF8_MALFORMED);
                    continue;
                }
                assert_int_equal(utf8_encode(code, again), length);
                assert_memory_equal(again, bytes, (size_t)length);
            }
}

TEST(a_malformed_byte_stands_alone)
{
    const char *text = "\xE2\x82" "a\xFF\xED\xA0\x80\xC3\xA4", *at = text;
    uint32_t    expected[] = { UTF8_MALFORMED, UTF8_MALFORMED, 'a',           UTF8_MALFORMED,
                               UTF8_MALFORMED, UTF8_MALFORMED, UTF8_MALFORMED, 0xE4 };

    for (size_t k = 0; k < sizeof(expected) / sizeof(*expected); k++)
        assert_int_equal(utf8_next(&at), expected[k]);
    assert_ptr_equal(at, text + strlen(text));
}

SUITE(NULL, NULL)
