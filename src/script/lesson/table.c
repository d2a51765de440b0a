/* table.c -- from the table a lesson's file returns to a Lesson.
 *
 * Whatever is wrong raises with the step and the field, and says what to write instead.
 */
#include "script/lesson/lesson.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

/* Where one is, for messages: "step 3: ask". */
typedef struct Place {
    Lesson *lesson;
    int     step; /* from 1; 0: the lesson itself */
} Place;

/* ---- messages -------------------------------------------------------------- */

static int wrong(lua_State *L, const Place *at, const char *field, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    lua_pushvfstring(L, fmt, args);
    va_end(args);
    if (at->step)
        return luaL_error(L, "step %d: %s: %s", at->step, field, lua_tostring(L, -1));
    return luaL_error(L, "%s: %s", field, lua_tostring(L, -1));
}

static void check_keys(lua_State *L, const Place *at, const char *what, const char *const *known)
{
    const char *name, *nearest;

    lua_pushnil(L);
    for (; lua_next(L, -2); lua_pop(L, 1)) {
        if (lua_type(L, -2) == LUA_TNUMBER && known[0][0] == '#')
            continue;
        name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
        if (!name)
            wrong(L, at, what, "it holds a %s where a name is expected", luaL_typename(L, -2));
        nearest = known[0];
        for (int i = 0; known[i]; i++) {
            if (!strcmp(known[i], name))
                nearest = NULL;
            else if (nearest && text_distance(name, known[i]) < text_distance(name, nearest))
                nearest = known[i];
            if (!nearest)
                break;
        }
        if (nearest)
            wrong(L, at, what, "it has no field '%s'; did you mean '%s'?", name, nearest);
    }
}

/* ---- fields of the table on top -------------------------------------------- */

static const char *keep_text(lua_State *L, const Place *at, int index)
{
    size_t      length;
    const char *given = lua_tolstring(L, index, &length), *text = NULL;
    Text        shown = { 0 };

    text_add_shown(&shown, given, length, false); /* a terminal obeys nothing of it */
    if (text_ok(&shown))
        text = arena_strdup(at->lesson->arena, text_str(&shown));
    text_free(&shown);
    if (!text)
        luaL_error(L, "not enough memory");
    return text;
}

/* A text; NULL when it is left out, which `must` forbids. */
static const char *field_text(lua_State *L, const Place *at, const char *name, bool must)
{
    int         type = lua_getfield(L, -1, name);
    const char *text = NULL;

    if (type == LUA_TSTRING && *lua_tostring(L, -1))
        text = keep_text(L, at, -1);
    else if (type != LUA_TNIL || must)
        wrong(L, at, name, type == LUA_TNIL      ? "it is missing: write %s = \"...\""
                           : type == LUA_TSTRING ? "it is empty: write %s = \"...\""
                                                 : "expected a text: write %s = \"...\"", name);
    lua_pop(L, 1);
    return text;
}

/* A function, kept for calls; 0: it is left out. */
static int field_function(lua_State *L, const Place *at, const char *name)
{
    int type = lua_getfield(L, -1, name);

    if (type == LUA_TFUNCTION)
        return luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
    if (type != LUA_TNIL)
        wrong(L, at, name, "expected a function: write %s = function(s) return ... end", name);
    return 0;
}

static LessonText field_words(lua_State *L, const Place *at, const char *name, bool must)
{
    LessonText text = { .fixed = NULL };
    int        type = lua_getfield(L, -1, name);

    lua_pop(L, 1);
    if (type == LUA_TFUNCTION)
        text.make = field_function(L, at, name);
    else
        text.fixed = field_text(L, at, name, must);
    return text;
}

static double take_number(lua_State *L, const Place *at, const char *name, double usual, double lo,
                          double hi)
{
    int    type = lua_getfield(L, -1, name);
    double value = type == LUA_TNUMBER ? lua_tonumber(L, -1) : usual;

    if ((type != LUA_TNUMBER && type != LUA_TNIL) || !(value >= lo) || !(value <= hi))
        wrong(L, at, name, "expected a number from %f to %f", (lua_Number)lo, (lua_Number)hi);
    lua_pop(L, 1);
    return value;
}

/* ---- words of commands ----------------------------------------------------- */

static void add_word(lua_State *L, const Place *at, const char *field, LessonWords *words)
{
    if (words->count == LESSON_WORDS_MOST)
        wrong(L, at, field, "more than %d words", LESSON_WORDS_MOST);
    words->items[words->count++] = keep_text(L, at, -1);
    lua_pop(L, 1);
}

static void add_panel(lua_State *L, const Place *at, const char *field, bool swap,
                      LessonWords *words)
{
    if (lua_type(L, -1) != LUA_TSTRING)
        wrong(L, at, field, "expected words like \"full:weights\", got a %s", luaL_typename(L, -1));
    if (*lua_tostring(L, -1) == '-' && !swap)
        wrong(L, at, field, "'%s': an option is written as a field, n = 64", lua_tostring(L, -1));
    lua_pushvalue(L, -1);
    add_word(L, at, field, words);
}

static int64_t read_place(lua_State *L, const Place *at, const char *field, int index)
{
    double place = lua_tonumber(L, index);

    if (!(fabs(place) < INT32_MAX))
        wrong(L, at, field, "cursor: no view has a place %f", place);
    return (int64_t)place;
}

static void read_cursor(lua_State *L, const Place *at, const char *field, LessonWords *words)
{
    if (lua_type(L, -1) != LUA_TTABLE || lua_geti(L, -1, 1) != LUA_TNUMBER ||
        lua_geti(L, -2, 2) != LUA_TNUMBER)
        wrong(L, at, field, "cursor: expected { query, key }");
    words->query = read_place(L, at, field, -2);
    words->key = read_place(L, at, field, -1);
    lua_pop(L, 2);
}

/* The option whose name and value lie below and on the top. */
static void add_lesson_option(lua_State *L, const Place *at, const char *field, LessonWords *words)
{
    static const char *const refused[] = { "output", "format", "preset", "help", "color", "json",
                                           NULL };
    const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";

    for (int i = 0; refused[i]; i++)
        if (!strcmp(name, refused[i]))
            wrong(L, at, field, "%s: a lesson has no such option", name);
    if (lua_type(L, -1) == LUA_TBOOLEAN ? !lua_toboolean(L, -1) : !lua_isstring(L, -1))
        wrong(L, at, field, "%s: expected a text, a number or true", name);
    name = luaL_gsub(L, name, "_", "-");
    if (lua_type(L, -2) == LUA_TBOOLEAN)
        lua_pushfstring(L, "--%s", name);
    else
        lua_pushfstring(L, "--%s=%s", name, luaL_tolstring(L, -2, NULL));
    add_word(L, at, field, words);
}

/* Lua walks through fields in any order; a command line reads the same each time. */
static void sort_options(LessonWords *words)
{
    for (int i = 1; i < words->count; i++)
        for (int k = i; k > 1 && *words->items[k] == '-' && *words->items[k - 1] == '-' &&
                        strcmp(words->items[k], words->items[k - 1]) < 0;
             k--) {
            const char *word = words->items[k];

            words->items[k] = words->items[k - 1];
            words->items[k - 1] = word;
        }
}

/* The field `model` of the table on top: a run of a model has its words first. */
static void add_model(lua_State *L, const Place *at, const char *field, LessonWords *words)
{
    if (strcmp(field, "runs") != 0)
        wrong(L, at, field, "model: only runs may have one; to show a layer write input = "
              "\"model:small.gguf\", text = \"story.txt\", layer = 0");
    if (lua_getfield(L, -1, "model") != LUA_TSTRING)
        wrong(L, at, field, "model: expected a text, the model's file");
    add_word(L, at, field, words);
}

/* A table like { "full:weights", "bigbird", n = 64 } on top; it is popped. */
static void read_words(lua_State *L, const Place *at, const char *field, LessonWords *words)
{
    bool step, model;
    int  top = lua_gettop(L);

    *words = (LessonWords){ .query = -1, .key = -1 };
    if (lua_type(L, -1) != LUA_TTABLE)
        wrong(L, at, field, "expected a list of what stands in the panes, { \"full:weights\", "
              "n = 64 }");
    step = lua_getfield(L, top, "at") != LUA_TNIL;
    model = lua_getfield(L, top, "model") != LUA_TNIL;
    lua_settop(L, top);
    lua_pushstring(L, model ? "model" : step ? "step" : "figure");
    add_word(L, at, field, words);
    if (model)
        add_model(L, at, field, words);
    for (lua_Integer i = 1; lua_geti(L, top, i) != LUA_TNIL; i++) {
        if (model)
            lua_pushfstring(L, "--swap=%s", luaL_tolstring(L, -1, NULL));
        add_panel(L, at, field, model, words);
        lua_settop(L, top);
    }
    lua_settop(L, top);
    if (words->count < 2)
        wrong(L, at, field, "it names no mechanism: { \"full:weights\", n = 64 }");
    lua_pushnil(L);
    while (lua_next(L, top)) {
        if (lua_type(L, -2) == LUA_TSTRING && !strcmp(lua_tostring(L, -2), "cursor"))
            read_cursor(L, at, field, words);
        else if (lua_type(L, -2) == LUA_TSTRING && strcmp(lua_tostring(L, -2), "model") != 0 &&
                 (strcmp(field, "runs") != 0 || strcmp(lua_tostring(L, -2), "measure") != 0))
            add_lesson_option(L, at, field, words);
        lua_settop(L, top + 1);
    }
    sort_options(words);
    lua_settop(L, top - 1);
}

static void field_command(lua_State *L, const Place *at, const char *name, LessonWords *words)
{
    if (lua_getfield(L, -1, name) == LUA_TNIL)
        lua_pop(L, 1);
    else
        read_words(L, at, name, words);
}

static void read_runs(lua_State *L, const Place *at, LessonStep *step)
{
    if (lua_getfield(L, -1, "runs") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    if (lua_type(L, -1) != LUA_TTABLE)
        wrong(L, at, "runs", "expected names and runs, { long = { \"full\", n = 512 } }");
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        LessonRun  *run = &step->runs[step->run_count];
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;

        if (!name || strlen(name) >= sizeof(run->name))
            wrong(L, at, "runs", "each has a short name: { long = { \"full\", n = 512 } }");
        if (step->run_count++ == LESSON_RUNS_MOST)
            wrong(L, at, "runs", "more than %d", LESSON_RUNS_MOST);
        memcpy(run->name, name, strlen(name) + 1);
        if (lua_type(L, -1) == LUA_TTABLE) {
            lua_getfield(L, -1, "measure");
            run->measure = lua_toboolean(L, -1);
            run->model = lua_getfield(L, -2, "model") != LUA_TNIL;
            lua_pop(L, 2);
        }
        read_words(L, at, "runs", &run->words);
    }
    lua_pop(L, 1);
}

/* ---- questions ------------------------------------------------------------- */

static void read_choice(lua_State *L, const Place *at, LessonChoice *choice)
{
    if (lua_type(L, -1) == LUA_TSTRING) {
        choice->text = keep_text(L, at, -1);
        return;
    }
    if (lua_type(L, -1) != LUA_TTABLE || lua_geti(L, -1, 1) != LUA_TSTRING)
        wrong(L, at, "choices", "each is a text, or { \"text\", \"why it is wrong\" }");
    choice->text = keep_text(L, at, -1);
    if (lua_geti(L, -2, 2) == LUA_TSTRING)
        choice->why = keep_text(L, at, -1);
    lua_pop(L, 2);
}

static void read_answers(lua_State *L, const Place *at, LessonStep *step)
{
    if (lua_getfield(L, -1, "choices") != LUA_TTABLE) {
        if (!lua_isnil(L, -1))
            wrong(L, at, "choices", "expected a list of texts");
        lua_pop(L, 1);
        return;
    }
    for (lua_Integer i = 1; lua_geti(L, -1, i) != LUA_TNIL; i++) {
        if (i > LESSON_CHOICES_MOST)
            wrong(L, at, "choices", "more than %d", LESSON_CHOICES_MOST);
        read_choice(L, at, &step->choices[step->choice_count++]);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    if (step->choice_count < 2)
        wrong(L, at, "choices", "a question needs at least two");
    step->ask = LESSON_ASKS_CHOICE;
}

/* The number of a choice, or a function of the runs: an answer is never a number typed in. */
static void read_answer(lua_State *L, const Place *at, LessonStep *step)
{
    int type = lua_getfield(L, -1, "answer");

    if (type == LUA_TFUNCTION) {
        step->answer_of = luaL_ref(L, LUA_REGISTRYINDEX);
        return;
    }
    if (step->ask == LESSON_ASKS_NUMBER)
        wrong(L, at, "answer", "a number comes from a run: write answer = function(s) return "
              "s[1].flops end");
    if (type != LUA_TNUMBER || lua_tonumber(L, -1) < 1 ||
        lua_tonumber(L, -1) > step->choice_count || !lua_isinteger(L, -1))
        wrong(L, at, "answer", "expected the number of the right choice, 1 to %d",
              step->choice_count);
    step->answer = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
}

static void read_ask(lua_State *L, const Place *at, LessonStep *step)
{
    static const char *const known[] = { "#", "choices", "answer", "within", "unit", NULL };

    if (lua_getfield(L, -1, "ask") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    if (lua_type(L, -1) != LUA_TTABLE)
        wrong(L, at, "ask", "expected { \"question\", choices = {...}, answer = 1 }");
    check_keys(L, at, "ask", known);
    if (lua_geti(L, -1, 1) != LUA_TSTRING)
        wrong(L, at, "ask", "the question comes first: ask = { \"How many ...?\", ... }");
    step->question = keep_text(L, at, -1);
    lua_pop(L, 1);
    step->ask = LESSON_ASKS_NUMBER;
    read_answers(L, at, step);
    read_answer(L, at, step);
    step->within = take_number(L, at, "within", 0.02, 0, 1);
    step->unit = field_text(L, at, "unit", false);
    lua_pop(L, 1);
}

/* ---- steps and all --------------------------------------------------------- */

static void read_step(lua_State *L, const Place *at, LessonStep *step)
{
    static const char *const known[] = { "title", "text", "show", "runs", "task", "done",
                                         "solution", "now", "ask", "hint", "explain", NULL };

    if (lua_type(L, -1) != LUA_TTABLE)
        wrong(L, at, "steps", "expected a table { title = ..., text = ... }");
    check_keys(L, at, "the step", known);
    step->title = field_text(L, at, "title", true);
    step->text = field_words(L, at, "text", true);
    step->now = field_words(L, at, "now", false);
    step->hint = field_words(L, at, "hint", false);
    step->explain = field_words(L, at, "explain", false);
    step->task = field_text(L, at, "task", false);
    step->done = field_function(L, at, "done");
    field_command(L, at, "show", &step->show);
    field_command(L, at, "solution", &step->solution);
    read_runs(L, at, step);
    read_ask(L, at, step);
    if (!step->task != !step->done)
        wrong(L, at, step->task ? "done" : "task", "a task and the function that checks it go "
              "together: task = \"...\", done = function(s) return ... end");
    if (step->done && !step->solution.count)
        wrong(L, at, "solution", "it is missing: what the learner would get to, as in show, so "
              "that the check can try it");
}

static void read_steps(lua_State *L, Lesson *lesson)
{
    Place at = { .lesson = lesson };

    if (lua_getfield(L, -1, "steps") != LUA_TTABLE)
        wrong(L, &at, "steps", "expected a list of steps, steps = { { title = ..., ... }, ... }");
    for (lua_Integer i = 1; lua_geti(L, -1, i) != LUA_TNIL; i++) {
        if (i > LESSON_STEPS_MOST)
            wrong(L, &at, "steps", "more than %d", LESSON_STEPS_MOST);
        at.step = (int)i;
        read_step(L, &at, &lesson->steps[lesson->count]);
        lesson->count++;
        lua_pop(L, 1);
    }
    at.step = 0;
    if (!lesson->count)
        wrong(L, &at, "steps", "there is none");
    if (!lesson->steps[0].show.count)
        luaL_error(L, "step 1: show: the first step must show something: show = { \"full:weights\""
                   ", n = 64 }");
    lua_pop(L, 2);
}

void lesson_table_read(lua_State *L, Lesson *lesson)
{
    static const char *const known[] = { "title", "summary", "recap", "minutes", "steps",
                                         NULL };
    Place                    at = { .lesson = lesson };

    if (lua_type(L, -1) != LUA_TTABLE)
        luaL_error(L, "the file must end with: return { title = ..., summary = ..., steps = ... }");
    check_keys(L, &at, "the lesson", known);
    lesson->title = field_text(L, &at, "title", true);
    lesson->summary = field_text(L, &at, "summary", true);
    lesson->recap = field_text(L, &at, "recap", false);
    lesson->minutes = (int)take_number(L, &at, "minutes", 5, 1, 120);
    read_steps(L, lesson);
    lua_pop(L, 1);
}
