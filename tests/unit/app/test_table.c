/* test_table.c -- text tables in a terminal's room, and what stands in their cells. */

#include "app/command/command.h"
#include "check.h"

static void written(int room, TableStyle style, Text *out)
{
    static const char *const cells[] = { "name", "time ms", "memory", "note",
                                         "full", "12.00",   "1 MiB",  "all",
                                         "window", "3.00",  "n/a",    "some" };
    Table t = { .cols = 4, .room = room };

    for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++)
        table_cell(&t, "%s", cells[i]);
    text_clear(out);
    table_write(&t, style, out);
    table_free(&t);
}

TEST(test_a_wide_table_comes_in_parts)
{
    Text out = { 0 };

    written(0, TABLE_TEXT, &out);
    assert_string_equal(text_str(&out), "name    time ms  memory  note\n"
                                        "full      12.00   1 MiB  all\n"
                                        "window     3.00     n/a  some\n");
    written(29, TABLE_TEXT, &out); /* just enough */
    assert_null(strstr(text_str(&out), "\n\n"));
    written(24, TABLE_TEXT, &out);
    assert_string_equal(text_str(&out), "name    time ms  memory\n"
                                        "full      12.00   1 MiB\n"
                                        "window     3.00     n/a\n"
                                        "\n"
                                        "name    note\n"
                                        "full    all\n"
                                        "window  some\n");
    written(3, TABLE_TEXT, &out); /* no cell has room, and each is still written */
    assert_non_null(strstr(text_str(&out), "name    memory\n"));
    written(24, TABLE_MARKDOWN, &out); /* for a document */
    assert_null(strstr(text_str(&out), "\n\n"));
    text_free(&out);
}

TEST(test_a_small_ratio_is_not_zero)
{
    static const struct {
        double      ratio;
        const char *text;
    } cases[] = { { 12.25, "12.25x" }, { 0.5, "0.50x" }, { 0.0041, "0.0041x" },
                  { 3e-6, "<0.0001x" } };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        Table t = { .cols = 1 };
        Text  out = { 0 };

        table_times(&t, cases[i].ratio);
        table_write(&t, TABLE_TEXT, &out);
        CHECK(strstr(text_str(&out), cases[i].text), "%s", text_str(&out));
        table_free(&t);
        text_free(&out);
    }
}

TEST(test_keys_stand_in_each_part)
{
    static const char *const cells[] = { "name", "n", "time ms", "memory",
                                         "full", "64", "12.00",  "1 MiB",
                                         "full", "128", "3.00",  "2 MiB" };
    Table t = { .cols = 4, .keys = 2, .room = 18 };
    Text  out = { 0 };

    for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++)
        table_cell(&t, "%s", cells[i]);
    table_write(&t, TABLE_TEXT, &out);
    assert_string_equal(text_str(&out), "name    n  time ms\n"
                                        "full   64    12.00\n"
                                        "full  128     3.00\n"
                                        "\n"
                                        "name    n  memory\n"
                                        "full   64   1 MiB\n"
                                        "full  128   2 MiB\n");
    table_free(&t);
    text_free(&out);
}

TEST(test_lines_break_at_blanks)
{
    Text out = { 0 };

    text_add_folded(&out, "note  window: taken off the processor", 20, 6);
    assert_string_equal(text_str(&out), "note  window: taken\n      off the\n      processor\n");
    text_clear(&out);
    text_add_folded(&out, "a verylongword", 5, 2); /* where no blank is, nothing breaks */
    assert_string_equal(text_str(&out), "a\n  verylongword\n");
    text_clear(&out);
    text_add_folded(&out, "no terminal, no room to keep to", 0, 2);
    assert_string_equal(text_str(&out), "no terminal, no room to keep to\n");
    text_free(&out);
}

TEST(test_where_something_becomes_faster)
{
    char text[48];

    assert_string_equal(format_crossover(64, 4096, true, text, sizeof(text)), "64");
    assert_string_equal(format_crossover(0, 4096, true, text, sizeof(text)), "> 4096");
    assert_string_equal(format_crossover(64, 2048, false, text, sizeof(text)), "64, to 2048");
    assert_string_equal(format_crossover(0, 512, false, text, sizeof(text)), "not to 512");
}

SUITE(NULL, NULL)
