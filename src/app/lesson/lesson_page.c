/* lesson_page.c -- see lesson_page.h. */
#include "app/lesson/lesson_page.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define INDENT 6 /* of what stands behind a label */

const char *lesson_line(const LessonPage *page, int index)
{
    return text_str(&page->text) + page->lines[index].at;
}

void lesson_page_free(LessonPage *page)
{
    text_free(&page->text);
    free(page->lines);
    *page = (LessonPage){ .count = 0 };
}

/* Begins a line; its text is added behind. */
static void begin(LessonPage *page, LessonLineKind kind)
{
    if (page->count == page->capacity) {
        int         capacity = page->capacity ? 2 * page->capacity : 32;
        LessonLine *lines = realloc(page->lines, (size_t)capacity * sizeof(*lines));

        if (!lines) {
            page->failed = true;
            return;
        }
        page->lines = lines;
        page->capacity = capacity;
    }
    if (page->count)
        text_add_bytes(&page->text, "", 1);
    page->lines[page->count++] = (LessonLine){ kind, page->text.length };
}

static void gap(LessonPage *page)
{
    if (page->count)
        begin(page, LESSON_LINE_TEXT);
}

/* Columns of so many bytes: one for each character. */
static int columns_of(const char *text, size_t length)
{
    int columns = 0;

    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)text[i] & 0xC0) != 0x80;
    return columns;
}

static void blanks(LessonPage *page, int count)
{
    while (count-- > 0)
        text_add(&page->text, " ");
}

/* Bytes of the word that begins here; a number and its unit are one. */
static size_t word_length(const char *text)
{
    static const char *const units[] = { "%", "k", "M", "G", "T", "KiB", "MiB", "GiB", "ms" };
    size_t                   length = strcspn(text, " \n");

    if (!length || text[length] != ' ' || !isdigit((unsigned char)text[length - 1]))
        return length;
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        const char *unit = text + length + 1;
        size_t      size = strlen(units[i]);

        if (!strncmp(unit, units[i], size) && !isalnum((unsigned char)unit[size]))
            return length + 1 + strcspn(unit, " \n");
    }
    return length;
}

/* A paragraph in lines of the width: `label` before the first, as much room before the others.
 * Lines that begin with a blank are kept as they are, newlines as well. */
static void add(LessonPage *page, LessonLineKind kind, const char *label, int indent,
                const char *text, int width)
{
    int  column = indent;
    bool first = true;

    begin(page, kind);
    text_add(&page->text, label);
    blanks(page, indent - columns_of(label, strlen(label)));
    while (*text) {
        size_t length = word_length(text);
        int    columns = columns_of(text, length);

        if (!first && column + 1 + columns > width) {
            begin(page, kind);
            blanks(page, indent);
            column = indent;
            first = true;
        }
        if (!first)
            text_add(&page->text, " ");
        text_add_bytes(&page->text, text, length);
        column += columns + !first;
        first = false;
        text += length;
        if (*text == '\n') {
            begin(page, kind);
            blanks(page, indent);
            column = indent;
            first = true;
            text++;
        } else if (*text) {
            text++;
        }
    }
}

/* Lua's long texts are broken and indented as the file is: lines are joined, an empty line
 * parts paragraphs, and a line that begins with "- " stays one. */
static void flow(const char *text, Text *out)
{
    int empty = 0;

    while (*text) {
        size_t      lead = strspn(text, " \t"), length = strcspn(text + lead, "\n");
        const char *line = text + lead;

        text = line + length + (line[length] == '\n');
        while (length && line[length - 1] == ' ')
            length--;
        empty += !length;
        if (!length)
            continue;
        if (out->length)
            text_add(out, empty ? "\n\n" : !strncmp(line, "- ", 2) ? "\n" : " ");
        text_add_bytes(out, line, length);
        empty = 0;
    }
}

/* What a page is made of. */
typedef struct Making {
    LessonPage        *page;
    const Lesson      *lesson;
    const LessonFacts *facts;
    bool               lenient;
    int                width;
    Error             *err;
} Making;

static bool add_text(const Making *m, const LessonText *text, LessonLineKind kind,
                     const char *label, int indent)
{
    Text  made = { 0 }, flowing = { 0 };
    Error refused = ERROR_INIT;
    bool  ok = lesson_text(m->lesson, text, m->facts, &made, m->lenient ? &refused : m->err);

    if (!ok && m->lenient) {
        text_add(&made, "the panes show something else; r brings back what this is about");
        ok = true;
    }
    if (ok && made.length) {
        if (text->make)
            text_add(&flowing, text_str(&made)); /* its newlines are meant */
        else
            flow(text_str(&made), &flowing);
        gap(m->page);
        add(m->page, kind, label, indent, text_str(&flowing), m->width);
    }
    m->page->failed |= !text_ok(&made) || !text_ok(&flowing);
    text_free(&made);
    text_free(&flowing);
    return ok;
}

static void add_choices(LessonPage *page, const LessonStep *step, const LessonSight *sight,
                        int width)
{
    for (int i = 0; i < step->choice_count; i++) {
        char label[] = "  a) ";

        label[2] = (char)('a' + i);
        add(page, i == sight->chosen ? LESSON_LINE_CHOSEN : LESSON_LINE_CHOICE, label, 5,
            step->choices[i].text, width);
    }
}

static void add_question(LessonPage *page, const LessonStep *step, const LessonSight *sight,
                         int width)
{
    Text flowing = { 0 };

    if (step->ask == LESSON_ASKS_NOTHING)
        return;
    gap(page);
    flow(step->question, &flowing);
    add(page, LESSON_LINE_QUESTION, "? ", 2, text_str(&flowing), width);
    page->failed |= !text_ok(&flowing);
    text_free(&flowing);
    add_choices(page, step, sight, width);
    if (step->ask == LESSON_ASKS_NUMBER)
        add(page, LESSON_LINE_FIELD, "", 2, "", width);
    if (sight->said)
        add(page, sight->right ? LESSON_LINE_RIGHT : LESSON_LINE_WRONG, "", 2, sight->said, width);
}

bool lesson_page(const Lesson *lesson, int step, const LessonFacts *facts,
                 const LessonSight *sight, int width, LessonPage *out, Error *err)
{
    const LessonStep *s = &lesson->steps[step];
    LessonText        task = { .fixed = s->task };
    bool              open = s->done && !sight->done;
    bool              over = (s->done || s->ask) && !open && (!s->ask || sight->answered);
    Making            m = { out, lesson, facts, sight->lenient, width, err };

    *out = (LessonPage){ .count = 0 };
    if (!add_text(&m, &s->text, LESSON_LINE_TEXT, "", 0) ||
        !add_text(&m, &task, open ? LESSON_LINE_TASK : LESSON_LINE_DONE, open ? "  DO" : "  done",
                  INDENT + 1) ||
        !add_text(&m, &s->now, LESSON_LINE_NOW, "  now", INDENT + 1))
        return false;
    add_question(out, s, sight, width);
    if (sight->hint && !over && !add_text(&m, &s->hint, LESSON_LINE_HINT, "hint", INDENT))
        return false;
    if (over && !add_text(&m, &s->explain, LESSON_LINE_TEXT, "", 0))
        return false;
    return (!out->failed && text_ok(&out->text)) ||
           error_set(err, ERR_NOMEM, "not enough memory for a page");
}
