/* test_lesson_page.c -- pages of all lessons in few lines: what is asked stays in sight. */

#include "check.h"
#include "script/script.h"
#include "ui/screen/lessons.h"

static Session *session;

static int open_session(void **state)
{
    Error err = ERROR_INIT;

    (void)state;
    setenv("XDG_DATA_HOME", "/nowhere", 1); /* the program's own lessons only */
    setenv("XDG_DATA_DIRS", "/nowhere", 1);
    session = session_new(&err);
    if (session)
        session_on_lessons(session, &script_lessons);
    return session ? 0 : 1;
}

static int close_session(void **state)
{
    (void)state;
    session_free(session);
    return 0;
}

static int first_asked(const LessonPage *page)
{
    for (int i = 0; i < page->count; i++)
        if (page->lines[i].kind == LESSON_LINE_QUESTION)
            return i;
    for (int i = 0; i < page->count; i++)
        if (page->lines[i].kind == LESSON_LINE_TASK)
            return i;
    return -1;
}

static bool in_sight(LessonSplit split, int held, int line)
{
    return (line >= split.from && line < split.from + split.words) ||
           (line >= held && line < held + split.kept);
}

/* From the first page to the last, a page at a time: each line is seen, what is asked always. */
static void turn_pages(const char *what, const LessonPage *page, int room)
{
    int  held = lesson_held(page, true, room), asked = first_asked(page), next = 0, scroll = 0;
    bool end;

    do {
        LessonSplit split = lesson_split(page, held, room, scroll);

        end = split.from != scroll || split.from + split.words == page->count;
        CHECK(split.from <= next, "%s: lines %d to %d are skipped", what, next, split.from);
        CHECK(split.words >= 3 && split.words + split.kept + (split.kept > 0) <= room,
              "%s: %d lines of words and %d of the question in %d", what, split.words, split.kept,
              room);
        CHECK(asked < 0 || asked < split.from || in_sight(split, held, asked),
              "%s: what is asked, line %d, is hidden from line %d on", what, asked, split.from);
        next = split.from + split.words;
        scroll = split.from + split.words - 1;
    } while (!end);
    CHECK(next == page->count, "%s: line %d of %d is the last one seen", what, next, page->count);
}

static void check_step(const Lesson *lesson, int step, int width, int room)
{
    LessonFacts facts = { .count = 0 };
    LessonSight sight = { .chosen = -1, .lenient = true };
    LessonPage  page;
    Error       err = ERROR_INIT;
    char        what[96];

    snprintf(what, sizeof(what), "%s, step %d, %d lines of %d", lesson->id, step + 1, room, width);
    CHECK(lesson_page(lesson, step, &facts, &sight, width, &page, &err), "%s: %s", what, err.text);
    turn_pages(what, &page, room);
    lesson_page_free(&page);
}

/* 30 x 10: the words at 60x16. */
TEST(what_a_step_asks_is_always_in_sight)
{
    static const int rooms[][2] = { { 30, 10 }, { 36, 18 }, { 24, 12 }, { 56, 30 } };
    LessonList list;
    Error      err = ERROR_INIT;

    CHECK(lessons_find(&list, &err), "%s", err.text);
    assert_true(list.count > 0);
    for (int i = 0; i < list.count; i++) {
        Lesson *lesson = lesson_open(session, &list.files[i], &err);

        CHECK(lesson, "%s", err.text);
        for (size_t r = 0; r < sizeof(rooms) / sizeof(*rooms); r++)
            for (int step = 0; step < lesson->count; step++)
                check_step(lesson, step, rooms[r][0], rooms[r][1]);
        lesson_free(lesson);
    }
    lessons_free(&list);
}

SUITE(open_session, close_session)
