/* page.c -- a step as lines, its effort, its keys; see lesson.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/lesson/lesson.h"
#include "attn/run/position.h"
#include "core/utf8.h"

#define INDENT 6 /* of text behind a label */

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

static void blanks(LessonPage *page, int count)
{
    while (count-- > 0)
        text_add(&page->text, " ");
}

/* Bytes of the word that begins here; a number and its unit are one word. */
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

/* Adds a paragraph in lines of the width: `label` before the first, as much room before the others.
 * Lines that begin with a blank, and newlines, are kept. */
static void add_text_lines(LessonPage *page, LessonLineKind kind, const char *label, int indent,
                           const char *text, int width)
{
    int  column = indent;
    bool first = true;

    begin(page, kind);
    text_add(&page->text, label);
    blanks(page, indent - utf8_count(label, strlen(label)));
    while (*text) {
        size_t length = word_length(text);
        int    columns = utf8_count(text, length);

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

/* Undoes the line breaks of a long Lua text: joins lines, keeps paragraphs and lines that begin
 * with "- ". */
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
    bool               lenient, untouched;
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
        text_add(&made, m->untouched ? refused.text : "the panes show something else; r brings "
                                                      "back what this is about");
        ok = true;
    }
    if (ok && made.length) {
        if (text->make)
            text_add(&flowing, text_str(&made)); /* keeps its newlines */
        else
            flow(text_str(&made), &flowing);
        gap(m->page);
        add_text_lines(m->page, kind, label, indent, text_str(&flowing), m->width);
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
        add_text_lines(page, i == sight->chosen ? LESSON_LINE_CHOSEN : LESSON_LINE_CHOICE, label, 5,
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
    add_text_lines(page, LESSON_LINE_QUESTION, "? ", 2, text_str(&flowing), width);
    page->failed |= !text_ok(&flowing);
    text_free(&flowing);
    add_choices(page, step, sight, width);
    if (step->ask == LESSON_ASKS_NUMBER)
        add_text_lines(page, LESSON_LINE_FIELD, "", 2, "", width);
    if (sight->reply)
        add_text_lines(page, sight->right ? LESSON_LINE_RIGHT : LESSON_LINE_WRONG, "", 2,
                       sight->reply, width);
}

/* A pane that is not the step's: its numbers say nothing about the words. */
static void add_instead(LessonPage *page, const LessonSight *sight, int width)
{
    Text text = { 0 };

    if (!sight->instead)
        return;
    text_addf(&text, "The pane shows %s, and the words are about another one. Press r: it brings "
              "back the step's.", sight->instead);
    add_text_lines(page, LESSON_LINE_WRONG, "", 0, text_str(&text), width);
    page->failed |= !text_ok(&text);
    text_free(&text);
}

/* What the task's function failed at, in the place of the verdict. */
static void add_fault(LessonPage *page, const LessonSight *sight, int width)
{
    if (!sight->fault || sight->done)
        return;
    gap(page);
    add_text_lines(page, LESSON_LINE_WRONG, "", 2, sight->fault, width);
}

bool lesson_page(const Lesson *lesson, int step, const LessonFacts *facts, const LessonSight *sight,
                 int width, LessonPage *out, Error *err)
{
    const LessonStep *s = &lesson->steps[step];
    LessonText        task = { .fixed = s->task }, kept = { .fixed = sight->explain };
    bool              open = s->done && !sight->done;
    bool              over = (s->done || s->ask) && !open && (!s->ask || sight->answered);
    Making            m = { out, lesson, facts, sight->lenient, sight->untouched, width, err };

    *out = (LessonPage){ .count = 0 };
    add_instead(out, sight, width);
    if (sight->moved)
        add_text_lines(out, LESSON_LINE_WRONG, "", 0, sight->moved, width);
    if (!add_text(&m, &s->text, LESSON_LINE_TEXT, "", 0) ||
        !add_text(&m, &task, open ? LESSON_LINE_TASK : LESSON_LINE_DONE, open ? "  DO" : "  done",
                  INDENT + 1) ||
        (!sight->instead && !add_text(&m, &s->now, LESSON_LINE_NOW, "  now", INDENT + 1)))
        return false;
    add_fault(out, sight, width);
    add_question(out, s, sight, width);
    if (sight->hint && !over && !add_text(&m, &s->hint, LESSON_LINE_HINT, "hint", INDENT))
        return false;
    if (over && !add_text(&m, sight->explain ? &kept : &s->explain, LESSON_LINE_TEXT, "", 0))
        return false;
    return (!out->failed && text_ok(&out->text)) ||
           error_set(err, ERR_NOMEM, "not enough memory for a page");
}

bool lesson_brief(const Lesson *lesson, int step, const LessonFacts *facts,
                  const LessonSight *sight, int width, LessonPage *out, Error *err)
{
    const LessonStep *s = &lesson->steps[step];
    LessonText        task = { .fixed = s->task };
    Making            m = { out, lesson, facts, sight->lenient, sight->untouched, width, err };

    *out = (LessonPage){ .count = 0 };
    if (!add_text(&m, &task, sight->done ? LESSON_LINE_DONE : LESSON_LINE_TASK,
                  sight->done ? "  done" : "  DO", INDENT + 1) ||
        !add_text(&m, &s->now, LESSON_LINE_NOW, "  now", INDENT + 1))
        return false;
    if (!s->task)
        add_question(out, s, sight, width);
    return (!out->failed && text_ok(&out->text)) ||
           error_set(err, ERR_NOMEM, "not enough memory for a page");
}

static void add_fixed(LessonPage *page, LessonLineKind kind, const char *label, int indent,
                      const char *text, int width)
{
    Text flowing = { 0 };

    flow(text, &flowing);
    gap(page);
    add_text_lines(page, kind, label, indent, text_str(&flowing), width);
    page->failed |= !text_ok(&flowing);
    text_free(&flowing);
}

/* "2 of 5 steps done; still open: 1, 3, 4". */
static void add_steps_done(LessonPage *page, const Lesson *lesson, uint32_t done, int width)
{
    Text about = { 0 };
    int  count = 0;

    for (int i = 0; i < lesson->count; i++)
        count += done >> i & 1;
    text_addf(&about, "%d of %d steps done", count, lesson->count);
    for (int i = 0, open = 0; i < lesson->count; i++)
        if (!(done >> i & 1))
            text_addf(&about, "%s%d", open++ ? ", " : "; still open: ", i + 1);
    add_fixed(page, count == lesson->count ? LESSON_LINE_RIGHT : LESSON_LINE_TASK, "", 0,
              text_str(&about), width);
    page->failed |= !text_ok(&about);
    text_free(&about);
}

bool lesson_closing(const Lesson *lesson, uint32_t done, const char *next, int width,
                    LessonPage *out, Error *err)
{
    *out = (LessonPage){ .count = 0 };
    add_steps_done(out, lesson, done, width);
    if (lesson->recap)
        add_fixed(out, LESSON_LINE_TEXT, "", 0, lesson->recap, width);
    if (next)
        add_fixed(out, LESSON_LINE_NOW, "next  ", INDENT, next, width);
    add_fixed(out, LESSON_LINE_HINT, "", 0, "Press , to go back, T for the list of lessons.",
              width);
    return (!out->failed && text_ok(&out->text)) ||
           error_set(err, ERR_NOMEM, "not enough memory for a page");
}

/* ---- effort -------------------------------------------------------------- */

#define WORDS_A_MINUTE 200.0 /* reading speed of a learner */
#define KEY_SECONDS    3.0   /* to find a key, press it and look at the effect */
#define SEARCH_SECONDS 20.0  /* to find an answer, or the subject of a task */
#define FORM_KEYS      8     /* open the form, go to a field, type a number, Enter */
#define LOOK_KEYS      3     /* another head, view or order */
#define CHOICE_KEYS    2     /* a letter and Enter */

static int words_of(const char *text)
{
    int words = 0;

    for (bool inside = false; *text; text++) {
        words += *text != ' ' && *text != '\n' && !inside;
        inside = *text != ' ' && *text != '\n';
    }
    return words;
}

/* Keys of the shortest number that is accepted, and Enter. */
static int number_keys(const LessonStep *step, double right)
{
    char   typed[64] = "";
    double given;
    Error  err = ERROR_INIT;

    for (int digits = 1; digits < 17; digits++) {
        snprintf(typed, sizeof(typed), "%.*g", digits, right);
        if (!strchr(typed, 'e') && lesson_number(typed, step->unit, &given, &err) &&
            lesson_accepts(step, right, given))
            break;
    }
    return (int)strlen(typed) + 1;
}

static bool add_answer(const Lesson *lesson, int at, const LessonFacts *facts, LessonEffort *total,
                       const char **why, Error *err)
{
    const LessonStep *step = &lesson->steps[at];
    double            right;

    *why = "";
    if (step->ask == LESSON_ASKS_NOTHING)
        return true;
    if (!lesson_answer(lesson, at, facts, &right, err))
        return false;
    total->questions++;
    if (step->ask == LESSON_ASKS_NUMBER) {
        total->keys += number_keys(step, right);
    } else {
        total->keys += CHOICE_KEYS;
        *why = step->choices[(int)right - 1].why ? step->choices[(int)right - 1].why : "";
    }
    return true;
}

/* Length of "full:weights@3" without view and head, in bytes. */
static int run_length(const char *word)
{
    const char *end = strrchr(word, ')'), *rest = end ? end : word;

    return (int)(rest - word + (long)strcspn(rest, ":@"));
}

static bool is_look(const char *word)
{
    static const char *const looks[] = { "--sorted", "--head", "--layers", "--view" };

    for (size_t i = 0; i < sizeof(looks) / sizeof(*looks); i++)
        if (!strncmp(word, looks[i], strlen(looks[i])))
            return true;
    return false;
}

/* Both sets of words run the same: no parameter was changed. */
static bool same_runs(const LessonWords *a, const LessonWords *b)
{
    for (int i = 0; i < a->count; i++) {
        bool found = is_look(a->items[i]);
        int  length = run_length(a->items[i]);

        for (int k = 0; k < b->count && !found; k++)
            found = run_length(b->items[k]) == length &&
                    !strncmp(a->items[i], b->items[k], (size_t)length);
        if (!found)
            return false;
    }
    return true;
}

static int task_keys(const Lesson *lesson, int at)
{
    const LessonWords *shown = lesson_shows(lesson, at), *solution = &lesson->steps[at].solution;

    return shown && same_runs(shown, solution) && same_runs(solution, shown) ? LOOK_KEYS
                                                                             : FORM_KEYS;
}

bool lesson_add_effort(Lesson *lesson, int step, const LessonFacts *facts, Error *err)
{
    LessonEffort *total = &lesson->effort;
    LessonSight   sight = { .chosen = -1, .done = true, .answered = true };
    LessonPage    page = { .count = 0 };
    bool          ok = add_answer(lesson, step, facts, total, &sight.reply, err) &&
              lesson_page(lesson, step, facts, &sight, LESSON_PAGE_WIDTH, &page, err);

    total->words += words_of(lesson->steps[step].title);
    for (int i = 0; ok && i < page.count; i++)
        total->words += words_of(lesson_line(&page, i));
    if (lesson->steps[step].done) {
        total->questions++;
        total->keys += task_keys(lesson, step);
    }
    total->keys++; /* to go on */
    lesson_page_free(&page);
    return ok;
}

double lesson_minutes(const Lesson *lesson)
{
    const LessonEffort *total = &lesson->effort;

    return total->words / WORDS_A_MINUTE +
           (total->keys * KEY_SECONDS + total->questions * SEARCH_SECONDS) / 60;
}

/* ---- keys and parameters in a task --------------------------------------- */

static bool is_part(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool lesson_task_names(const LessonStep *step, const char *name)
{
    const char *task = step->task, *at = task;
    size_t      length = strlen(name);

    while (at && (at = strstr(at, name))) {
        bool begins = at == task || at[-1] == ' ';

        at += length;
        if (begins && !is_part(*at))
            return true;
    }
    return false;
}

static bool says_to_press(const char *words, const char *name, size_t length)
{
    LessonKey keys[LESSON_KEYS_MOST];
    int       count = words ? lesson_keys(words, keys) : 0;

    for (int i = 0; i < count; i++)
        if (keys[i].length == length && !memcmp(keys[i].name, name, length))
            return true;
    return false;
}

bool lesson_step_names_key(const LessonStep *step, const char *name, size_t length)
{
    return says_to_press(step->text.fixed, name, length) ||
           says_to_press(step->task, name, length) ||
           says_to_press(step->hint.fixed, name, length) ||
           says_to_press(step->question, name, length) ||
           says_to_press(step->explain.fixed, name, length);
}

bool lesson_task_names_key(const LessonStep *step, const char *name, size_t length)
{
    return says_to_press(step->task, name, length);
}

void lesson_task_read(LessonStep *step)
{
    step->opens_form |= lesson_task_names_key(step, "p", 1);
}

static bool names_one(const LessonStep *step, const Param *params)
{
    for (const Param *p = params; p && p->name; p++)
        if (lesson_task_names(step, p->name))
            return true;
    return false;
}

bool lesson_task_names_any(const LessonStep *step, const LessonFacts *facts)
{
    static const char *const always[] = { "position", "causal", "seed", "fit" };

    for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
        if (lesson_task_names(step, always[i]))
            return true;
    for (int i = 0; i < facts->count; i++) {
        const Run *run = facts->items[i].result ? facts->items[i].result->run : NULL;

        if (run && !facts->items[i].name &&
            (names_one(step, run->mechanism->params) ||
             (run->spec.position && names_one(step, run->spec.position->params))))
            return true;
    }
    return false;
}

/* ---- keys ------------------------------------------------------------------- */

/* Length without the punctuation behind the word. */
static size_t bare_length(const char *word, size_t length)
{
    while (length > 1 && strchr(".,;:!?)\"", word[length - 1]))
        length--;
    return length;
}

/* One character, or a name in the form of a key: "Enter", "S-Right", "F5". */
static bool like_key(const char *at, size_t length)
{
    return utf8_count(at, length) == 1 || isupper((unsigned char)*at);
}

static bool is_word(const char *at, size_t length, const char *word)
{
    return at && length == strlen(word) && !strncmp(at, word, length);
}

int lesson_keys(const char *words, LessonKey keys[LESSON_KEYS_MOST])
{
    const char *before = NULL;
    size_t      last = 0;
    bool        pressed = false; /* in this sentence */
    int         count = 0;

    for (const char *at = words + strspn(words, " \n"); *at && count < LESSON_KEYS_MOST;) {
        size_t whole = strcspn(at, " \n"), length = bare_length(at, whole);
        bool   press = is_word(before, last, "press") || is_word(before, last, "Press");
        bool   more = pressed && (is_word(before, last, "then") || is_word(before, last, "or"));

        if ((press || more) && like_key(at, length)) {
            keys[count++] = (LessonKey){ at, length };
            pressed = true;
        }
        if (whole > length && strchr(".;!?", at[whole - 1]))
            pressed = false;
        before = at;
        last = length;
        at += whole + strspn(at + whole, " \n");
    }
    return count;
}
