/* test_note.c -- marked cells: as text, in order of display, in words. */

#include "check.h"
#include "draw/grid/annotation.h"

TEST(test_text)
{
    PanelNote notes[PANEL_NOTES];
    Error     err = ERROR_INIT;
    int       count;

    assert_true(notes_parse("5:3:near, itself|*:0:|7:*:a: b", notes, &count, &err));
    assert_int_equal(count, 3);
    assert_int_equal(notes[0].row, 5);
    assert_int_equal(notes[0].col, 3);
    assert_string_equal(notes[0].text, "near, itself");
    assert_int_equal(notes[1].row, -1);
    assert_string_equal(notes[1].text, "");
    assert_int_equal(notes[2].col, -1);
    assert_string_equal(notes[2].text, "a: b");
    assert_true(notes_parse("", notes, &count, &err) && count == 0);
}

TEST(test_slips)
{
    static const char *const slips[] = {
        "5", "5:3", "x:3:a", "-1:3:a", "*:*:a", "5:3:a=b", "5:3:{", "|", "1:1:|", "5:+3:a",
        "1:2:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "1:1:|1:2:|1:3:|1:4:|1:5:|1:6:|1:7:|1:8:|1:9:a",
    };

    for (size_t i = 0; i < sizeof(slips) / sizeof(*slips); i++) {
        PanelNote notes[PANEL_NOTES];
        Error     err = ERROR_INIT;
        int       count;

        if (!strcmp(slips[i], "1:1:|")) { /* a bar at the end ends the last one */
            assert_true(notes_parse(slips[i], notes, &count, &err));
            continue;
        }
        CHECK(!notes_parse(slips[i], notes, &count, &err), "'%s' is taken", slips[i]);
        assert_true(err.code == ERR_PARAM && err.text[0]);
    }
}

TEST(test_place)
{
    const int32_t order[] = { 3, 1, 0, 2 };
    PanelNote     cell = { .row = 0, .col = 2 }, row = { .row = 3, .col = -1 };
    Region        sight = { 0, 4, 1, 4 }, r;

    assert_true(note_region(&cell, NULL, NULL, sight, &r));
    assert_true(r.row0 == 0 && r.row1 == 1 && r.col0 == 2 && r.col1 == 3);
    assert_true(note_region(&cell, order, order, sight, &r));
    assert_true(r.row0 == 2 && r.col0 == 3);
    assert_true(note_region(&row, NULL, NULL, sight, &r));
    assert_true(r.row0 == 3 && r.col0 == 1 && r.col1 == 4);
    cell.col = 0;
    assert_false(note_region(&cell, NULL, NULL, sight, &r));
}

TEST(test_words)
{
    PanelNote note = { .row = 4, .col = -1, .text = "a row" };
    char      text[96];

    note_words(&note, "query", "key", text, sizeof(text));
    assert_string_equal(text, "query 4: a row");
    note.col = 0;
    note.text[0] = '\0';
    note_words(&note, "query", "key", text, sizeof(text));
    assert_string_equal(text, "query 4, key 0");
}

SUITE(NULL, NULL)
