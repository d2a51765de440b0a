/* test_field.c -- a typed line: random keys against a list of characters; lines before it. */

#include "check.h"
#include "core/rng.h"
#include "ui/term/term.h"

#define MOST 80 /* characters of a line */

/* The same line as whole characters. */
typedef struct Line {
    char parts[MOST][5];
    int  count, cursor;
} Line;

static void line_cut(Line *l, int from, int to)
{
    memmove(l->parts[from], l->parts[to], (size_t)(l->count - to) * sizeof(*l->parts));
    l->count -= to - from;
    l->cursor = from;
}

static int line_word(const Line *l)
{
    int at = l->cursor;

    while (at && !strcmp(l->parts[at - 1], " "))
        at--;
    while (at && strcmp(l->parts[at - 1], " ") != 0)
        at--;
    return at;
}

static void line_key(Line *l, uint32_t key, const char *character)
{
    int before = l->cursor ? l->cursor - 1 : 0;
    int behind = l->cursor < l->count ? l->cursor + 1 : l->count;

    switch (key) {
    case K_ARROW_LEFT: l->cursor = before; break;
    case K_ARROW_RIGHT: l->cursor = behind; break;
    case K_CONTROL('A'): l->cursor = 0; break;
    case K_CONTROL('E'): l->cursor = l->count; break;
    case K_BACK: line_cut(l, before, l->cursor); break;
    case K_DELETE: line_cut(l, l->cursor, behind); break;
    case K_CONTROL('U'): line_cut(l, 0, l->cursor); break;
    case K_CONTROL('K'): line_cut(l, l->cursor, l->count); break;
    case K_CONTROL('W'): line_cut(l, line_word(l), l->cursor); break;
    default:
        memmove(l->parts[l->cursor + 1], l->parts[l->cursor],
                (size_t)(l->count++ - l->cursor) * sizeof(*l->parts));
        strcpy(l->parts[l->cursor++], character);
    }
}

static const struct {
    uint32_t    key;
    const char *name;
} keys[] = { { 'a', "a" }, { ' ', " " }, { 0xE9, "\xC3\xA9" }, { 0x1F600, "\xF0\x9F\x98\x80" },
             { 'b', "b" }, { ' ', " " }, { K_ARROW_LEFT, "Left" }, { K_ARROW_RIGHT, "Right" },
             { K_CONTROL('A'), "C-a" }, { K_CONTROL('E'), "C-e" }, { K_BACK, "Back" },
             { K_DELETE, "Delete" }, { K_CONTROL('U'), "C-u" }, { K_CONTROL('K'), "C-k" },
             { K_CONTROL('W'), "C-w" } };

#define KEYS ((int)(sizeof(keys) / sizeof(*keys)))

/* Whether the field is the line after each of these keys. */
static bool agrees(const int *typed, int count)
{
    Field field = { .length = 0 };
    Line  line = { .count = 0 };

    for (int i = 0; i < count; i++) {
        char whole[5 * MOST] = "";
        int  cursor = 0;

        if (!field_key(&field, keys[typed[i]].key))
            return false;
        line_key(&line, keys[typed[i]].key, keys[typed[i]].name);
        for (int k = 0; k < line.count; k++) {
            cursor += k < line.cursor ? (int)strlen(line.parts[k]) : 0;
            strcat(whole, line.parts[k]);
        }
        if (strcmp(field.text, whole) != 0 || field.cursor != cursor ||
            field.length != (int)strlen(whole))
            return false;
    }
    return true;
}

/* Without the keys that the difference can do without. */
static void tell_fewest(int *typed, int count)
{
    Text names = { 0 };

    for (int at = 0; at < count;) {
        int fewer[MOST], left = count - 1;

        memcpy(fewer, typed, (size_t)at * sizeof(*typed));
        memcpy(fewer + at, typed + at + 1, (size_t)(left - at) * sizeof(*typed));
        if (agrees(fewer, left)) {
            at++;
            continue;
        }
        memcpy(typed, fewer, (size_t)left * sizeof(*typed));
        count = left;
    }
    for (int i = 0; i < count; i++)
        text_addf(&names, " %s", keys[typed[i]].name);
    fail_msg("another line after%s", text_str(&names));
}

TEST(any_keys_edit_as_a_list_of_characters)
{
    Rng rng = rng_named(1, "field");

    for (int i = 0; i < 2000; i++) {
        int typed[MOST], count = 1 + (int)rng_below(&rng, MOST - 1);

        for (int k = 0; k < count; k++)
            typed[k] = (int)rng_below(&rng, (uint64_t)(rng_below(&rng, 3) ? 6 : KEYS));
        if (!agrees(typed, count))
            tell_fewest(typed, count);
    }
}

TEST(other_keys_are_not_the_fields)
{
    static const uint32_t others[] = { 0, 9, 27, 0x80, 0x9F, 0x110000 };
    Field                 field = { .length = 0 };

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        assert_false(field_key(&field, others[i]));
    assert_true(field_key(&field, 0xA0));
}

TEST(a_full_field_takes_no_more)
{
    Field field;
    char  long_text[sizeof(field.text)];

    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    field_set(&field, long_text);
    assert_true(field_key(&field, 'y'));
    assert_string_equal(field.text, long_text);
    assert_true(field_key(&field, K_BACK) && field_key(&field, 'y'));
    assert_int_equal(field.text[sizeof(field.text) - 2], 'y');
}

/* The oldest go; recalled by one step, and no further than the ends. */
TEST(lines_before_are_recalled)
{
    static Past past;
    Field       field = { .length = 0 };
    char        line[16];

    for (int i = 0; i < 70; i++) {
        snprintf(line, sizeof(line), "line %d", i);
        past_add(&past, line);
    }
    for (int i = 69; i >= 0; i--) {
        past_recall(&past, -1, &field);
        snprintf(line, sizeof(line), "line %d", i < 6 ? 6 : i);
        assert_string_equal(field.text, line);
    }
    past_recall(&past, 1, &field);
    assert_string_equal(field.text, "line 7");
    for (int i = 0; i < 70; i++)
        past_recall(&past, 1, &field);
    assert_string_equal(field.text, "");
}

SUITE(NULL, NULL)
