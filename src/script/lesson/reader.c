/* reader.c -- lessons are Lua files, read and called in a fenced state.
 *
 * A lesson may come from a stranger: its state has no files, no program, no loading of
 * code, little memory, and a function that does not end is stopped.
 */
#include <lualib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/figure/picture.h"
#include "core/text.h"
#include "profile/measure.h"
#include "script/lesson/lesson.h"
#include "script/script.h"

#define MEMORY_LIMIT (64ll << 20)
#define INSTRUCTIONS 20000000 /* of one call; a fifth of a second */
#define SECONDS      1        /* of one call with all the functions of Lua that it calls */
#define LOOK_EVERY   256      /* instructions: one of them may compare or join texts of megabytes */

typedef struct Fenced {
    Script     script; /* its memory is counted by */
    lua_State *L;
} Fenced;

static void close_state(void *state)
{
    Fenced *fenced = state;

    if (fenced->L)
        lua_close(fenced->L);
    free(fenced);
}

/* Of the call under way on this thread. */
static _Thread_local double  until;
static _Thread_local int64_t left; /* instructions */

/* Called at every function and often between, so no loop outlasts the time; a function in C that
 * could is bounded below. */
static void stop_lesson(lua_State *L, lua_Debug *event)
{
    left -= event->event == LUA_HOOKCOUNT ? LOOK_EVERY : 0;
    if (left < 0 || clock_wall() > until)
        luaL_error(L, "it takes too long: is there an endless loop?");
}

static void fence_time(lua_State *L, bool on)
{
    until = clock_wall() + SECONDS;
    left = INSTRUCTIONS;
    lua_sethook(L, on ? stop_lesson : NULL, on ? LUA_MASKCOUNT | LUA_MASKCALL : 0,
                on ? LOOK_EVERY : 0);
}

/* ---- functions of Lua that a short call can keep busy for ever ------------------- */

#define COPIES_MOST  (1 << 26)
#define ENTRIES_MOST 1000000
#define SEARCH_MOST  1e8 /* steps of a search; about a second */
#define AT_A_TIME    16  /* characters that are compared in one step */

/* The function in the upvalue with the arguments there are.  [-n, +r, v] */
static int call_bounded(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* string.rep(text, count [, separator]): copies of nothing are as many steps. */
static int fence_rep(lua_State *L)
{
    if (luaL_checkinteger(L, 2) > COPIES_MOST)
        return luaL_argerror(L, 2, "too many copies");
    return call_bounded(L);
}

/* table.move(from, first, last, to [, into]): entries that are nil are moved, too. */
static int fence_move(lua_State *L)
{
    lua_Integer first = luaL_checkinteger(L, 2), last = luaL_checkinteger(L, 3);

    if (last >= first && (lua_Unsigned)last - (lua_Unsigned)first >= ENTRIES_MOST)
        return luaL_argerror(L, 3, "too many entries");
    return call_bounded(L);
}

/* Steps of a search for words: for each start, at worst, all of them are compared. */
static double find_steps(size_t length, size_t subject)
{
    return ((double)subject + 1) * (1 + (double)length / AT_A_TIME);
}

/* What '%' and the letter after it may take: "%b()" looks through the text for the end, "%1"
 * compares what was captured. */
static double class_steps(char letter, size_t subject)
{
    if (letter == 'b')
        return (double)subject + 1;
    return letter >= '0' && letter <= '9' ? 1 + (double)subject / AT_A_TIME : 1;
}

/* Steps that a search takes at worst: each repetition may end anywhere, for each start. */
static double search_steps(const char *pattern, size_t length, size_t subject)
{
    double steps = find_steps(length, subject);
    bool   set = false;

    for (size_t i = 0; i < length; i++) {
        if (pattern[i] == '%')
            steps *= ++i < length && !set ? class_steps(pattern[i], subject) : 1;
        else if (set || pattern[i] == '[')
            set = pattern[i] != ']';
        else if (strchr("*+-", pattern[i]) && pattern[i])
            steps *= (double)subject + 1;
        else if (pattern[i] == '?')
            steps *= 2;
    }
    return steps;
}

/* match, gmatch and gsub of string. */
static int fence_search(lua_State *L)
{
    size_t      subject, length;
    const char *pattern;

    luaL_checklstring(L, 1, &subject);
    pattern = luaL_checklstring(L, 2, &length);
    if (search_steps(pattern, length, subject) > SEARCH_MOST)
        return luaL_argerror(L, 2, "a search with so many repetitions in so long a text may not "
                             "end");
    return call_bounded(L);
}

/* string.find(text, pattern [, start [, plain]]) */
static int fence_find(lua_State *L)
{
    size_t subject, length;

    if (!lua_toboolean(L, 4))
        return fence_search(L);
    luaL_checklstring(L, 1, &subject);
    luaL_checklstring(L, 2, &length);
    if (find_steps(length, subject) > SEARCH_MOST)
        return luaL_argerror(L, 2, "a search for so long a text in so long a text may not end");
    return call_bounded(L);
}

static int is_less(lua_State *L)
{
    lua_pushboolean(L, lua_compare(L, 1, 2, LUA_OPLT));
    return 1;
}

/* table.sort(table [, less]): each comparison is a call, so that the time is looked at. */
static int fence_sort(lua_State *L)
{
    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        lua_pushcfunction(L, is_less);
        lua_replace(L, 2);
    }
    return call_bounded(L);
}

/* Replaces functions of the library on top.  [-0, +0, m] */
static void bound_functions(lua_State *L, const luaL_Reg *bounded)
{
    for (; bounded->name; bounded++) {
        lua_getfield(L, -1, bounded->name);
        lua_pushcclosure(L, bounded->func, 1);
        lua_setfield(L, -2, bounded->name);
    }
}

/* ---- what a lesson may use -------------------------------------------------------------- */

#define ROUNDED 5e-6 /* a sum of weights so near 1 is all of them */

/* percent(0.123): "12.3 %"; see format_percent.  [-0, +1, v] */
static int fence_percent(lua_State *L)
{
    double share = luaL_checknumber(L, 1);
    char   text[400];

    share = fabs(share - 1) < ROUNDED ? 1 : share;
    lua_pushstring(L, format_percent(share, text, sizeof(text)));
    return 1;
}

/* count(12345678): "12.3 M"  [-0, +1, v] */
static int fence_count(lua_State *L)
{
    char text[48];

    lua_pushstring(L, format_count(luaL_checknumber(L, 1), text, sizeof(text)));
    return 1;
}

/* bytes(65536): "64 KiB"  [-0, +1, v] */
static int fence_bytes(lua_State *L)
{
    double count = luaL_checknumber(L, 1);
    char   text[48];

    luaL_argcheck(L, fabs(count) < 0x1p62, 1, "too many bytes");
    lua_pushstring(L, format_bytes((int64_t)count, text, sizeof(text)));
    return 1;
}

/* The environment of the file.  [-0, +1, m] */
static void push_fence(lua_State *L)
{
    static const char *const allowed[] = { "assert", "error", "ipairs", "pairs", "next", "select",
                                           "tonumber", "tostring", "type", "math", "string",
                                           "table", "utf8", NULL };
    static const luaL_Reg    own[] = { { "percent", fence_percent }, { "count", fence_count },
                                       { "bytes", fence_bytes }, { NULL, NULL } };

    lua_newtable(L);
    for (int i = 0; allowed[i]; i++) {
        lua_getglobal(L, allowed[i]);
        lua_setfield(L, -2, allowed[i]);
    }
    luaL_setfuncs(L, own, 0);
}

static void open_lesson_libraries(lua_State *L)
{
    static const luaL_Reg libraries[] = {
        { LUA_GNAME, luaopen_base },       { LUA_TABLIBNAME, luaopen_table },
        { LUA_STRLIBNAME, luaopen_string }, { LUA_MATHLIBNAME, luaopen_math },
        { LUA_UTF8LIBNAME, luaopen_utf8 }, { NULL, NULL },
    };
    static const luaL_Reg text[] = { { "rep", fence_rep }, { "find", fence_find },
                                     { "match", fence_search }, { "gmatch", fence_search },
                                     { "gsub", fence_search }, { NULL, NULL } };
    static const luaL_Reg table[] = { { "move", fence_move },
                                      { "sort", fence_sort },
                                      { NULL, NULL } };

    for (const luaL_Reg *library = libraries; library->func; library++) {
        luaL_requiref(L, library->name, library->func, 1);
        if (library->func == luaopen_string)
            bound_functions(L, text);
        else if (library->func == luaopen_table)
            bound_functions(L, table);
        lua_pop(L, 1);
    }
}

/* ---- reading ------------------------------------------------------------------------------ */

typedef struct Source {
    Lesson     *lesson;
    const char *name, *text;
    size_t      length;
} Source;

/* Argument 1: the Source. */
static int read_all(lua_State *L)
{
    Source *source = lua_touserdata(L, 1);
    int     status;

    luaL_checkversion(L);
    open_lesson_libraries(L);
    lua_pushfstring(L, "=%s", source->name);
    status = luaL_loadbufferx(L, source->text, source->length, lua_tostring(L, -1), "t");
    if (status != LUA_OK)
        return lua_error(L);
    push_fence(L);
    lua_setupvalue(L, -2, 1);
    fence_time(L, true);
    lua_call(L, 0, 1);
    fence_time(L, false);
    lesson_table_read(L, source->lesson);
    return 0;
}

/* The message on top, with the file's name before it unless Lua put it there. */
static bool fail(lua_State *L, const char *name, Error *err)
{
    const char *message = lua_tostring(L, -1);

    if (!message)
        message = "an error without words";
    error_set(err, ERR_FORMAT, "%.400s", message);
    lua_settop(L, 0);
    if (name && strncmp(err->text, name, strlen(name)) != 0)
        error_prefix(err, "%s", name);
    return false;
}

static bool read_lesson(Lesson *lesson, const char *name, const char *text, size_t length,
                        Error *err)
{
    Fenced *fenced = calloc(1, sizeof(*fenced));
    Source  source = { lesson, name, text, length };

    if (!fenced)
        return error_set(err, ERR_NOMEM, "%s: not enough memory", name);
    fenced->script.limit = MEMORY_LIMIT;
    lesson->state = fenced;
    fenced->L = script_state_new(&fenced->script);
    if (!fenced->L)
        return error_set(err, ERR_NOMEM, "%s: not enough memory for Lua", name);
    lua_pushcfunction(fenced->L, read_all);
    lua_pushlightuserdata(fenced->L, &source);
    if (lua_pcall(fenced->L, 1, 0, 0) == LUA_OK)
        return true;
    if (arena_largest_refused(lesson->arena)) /* the lesson itself may be whole */
        return error_set(err, ERR_NOMEM, "%s: not enough memory", name);
    return fail(fenced->L, name, err);
}

static void lesson_facts_push(lua_State *L, const LessonFacts *facts);

/* ---- calling ------------------------------------------------------------------------------ */

/* Arguments: the function's number, the facts. */
static int call_function(lua_State *L)
{
    const LessonFacts *facts = lua_touserdata(L, 2);

    lua_rawgeti(L, LUA_REGISTRYINDEX, lua_tointeger(L, 1));
    lesson_facts_push(L, facts);
    fence_time(L, true);
    lua_call(L, 1, 1);
    fence_time(L, false);
    return 1;
}

static bool take_value(lua_State *L, LessonValue *out, Error *err)
{
    switch (lua_type(L, -1)) {
    case LUA_TNIL: out->kind = LESSON_NIL; return true;
    case LUA_TBOOLEAN:
        out->kind = LESSON_TRUTH;
        out->truth = lua_toboolean(L, -1);
        return true;
    case LUA_TNUMBER:
        out->kind = LESSON_NUMBER;
        out->number = lua_tonumber(L, -1);
        return true;
    case LUA_TSTRING:
        out->kind = LESSON_STRING;
        text_add_shown(&out->text, lua_tostring(L, -1), lua_rawlen(L, -1), false);
        return text_ok(&out->text) || error_set(err, ERR_NOMEM, "not enough memory");
    default:
        return error_set(err, ERR_DATA, "the function returned a %s", luaL_typename(L, -1));
    }
}

static void lesson_facts_forget(lua_State *L);

static bool call_lesson(const Lesson *lesson, int function, const LessonFacts *facts,
                        LessonValue *out, Error *err)
{
    lua_State *L = ((Fenced *)lesson->state)->L;
    bool       ok;

    lua_settop(L, 0);
    lua_pushcfunction(L, call_function);
    lua_pushinteger(L, function);
    lua_pushlightuserdata(L, (void *)(uintptr_t)facts);
    ok = lua_pcall(L, 2, 1, 0) == LUA_OK ? take_value(L, out, err) : fail(L, NULL, err);
    fence_time(L, false);
    lua_settop(L, 0);
    lesson_facts_forget(L);
    return ok;
}

const LessonReader script_lessons = { .read = read_lesson, .call = call_lesson,
                                      .close = close_state };

/* The table of panes and runs that functions of a lesson get. */

static const char facts_box; /* its address is the box's key: finding it takes no memory */
#define FACT_CLASS "attnscope.lesson fact"

/* ---- looking into views --------------------------------------------------------------- */

/* The result that a function of the table belongs to; its first upvalue is the box of the
 * facts, its second which of them. */
static Result *result_of(lua_State *L)
{
    const LessonFacts **box = lua_touserdata(L, lua_upvalueindex(1));

    if (!*box)
        luaL_error(L, "runs can be looked into only while the function is called");
    return (*box)->items[lua_tointeger(L, lua_upvalueindex(2))].result;
}

/* The view named first; reach over as many layers as there may be, however many the pane
 * shows.  [-0, +0, v] */
static const View *view_named(lua_State *L)
{
    static const ReachOptions deepest = { .layers = REACH_MOST };
    Result                   *result = result_of(L);
    const char               *name;
    Error                     err = ERROR_INIT;
    const View               *view;

    if (lua_istable(L, 1))
        luaL_error(L, "value, row and size are called with a dot: s[1].value(\"weights\", 0, 0)");
    name = luaL_checkstring(L, 1);
    view = !strcmp(name, REACH_VIEW) ? result_reach(result, &deepest, &err)
                                     : result_view(result, name, &err);
    if (!view)
        luaL_argerror(L, 1, err.text);
    return view;
}

/* And the row named second.  [-0, +0, v] */
static const View *view_at(lua_State *L, int64_t *row)
{
    const View *view = view_named(L);

    *row = check_index(L, 2, view_rows(view), "row");
    return view;
}

static int64_t plane_at(lua_State *L, int arg, const View *view)
{
    int64_t planes = view_planes(view);

    if (planes == 1 && lua_isinteger(L, arg) && lua_tointeger(L, arg) > 0)
        luaL_argerror(L, arg, "the view has one plane, which all heads share: leave the plane out");
    return lua_isnoneornil(L, arg) ? 0 : check_index(L, arg, planes, "plane");
}

/* value(view, row, column [, plane])  [-0, +1, v] */
static int fact_value(lua_State *L)
{
    int64_t     row, col;
    const View *view = view_at(L, &row);
    float       value;

    col = check_index(L, 3, view_cols(view), "column");
    view_read(view, plane_at(L, 4, view), row, col, 1, 1, &value);
    lua_pushnumber(L, (double)value);
    return 1;
}

/* row(view, row [, plane])  [-0, +1, v] */
static int fact_row(lua_State *L)
{
    int64_t     row, plane, cols;
    const View *view = view_at(L, &row);
    float      *values;

    plane = plane_at(L, 3, view);
    cols = view_cols(view);
    values = lua_newuserdatauv(L, (size_t)cols * sizeof(*values), 0);
    view_read(view, plane, row, 0, cols, 1, values);
    lua_createtable(L, (int)cols, 0);
    for (int64_t j = 0; j < cols; j++) {
        lua_pushnumber(L, (double)values[j]);
        lua_rawseti(L, -2, (lua_Integer)j + 1);
    }
    return 1;
}

/* size(view): rows, columns, planes  [-0, +3, v] */
static int fact_size(lua_State *L)
{
    const View *view = view_named(L);

    lua_pushinteger(L, (lua_Integer)view_rows(view));
    lua_pushinteger(L, (lua_Integer)view_cols(view));
    lua_pushinteger(L, (lua_Integer)view_planes(view));
    return 3;
}

/* kept(head): mass of one head; nil: it has none.  [-0, +1, v] */
static int fact_kept(lua_State *L)
{
    const Run *run = result_of(L)->run;
    int64_t    head = check_index(L, 1, run->h, "head");
    Quality    all, *by_head = lua_newuserdatauv(L, (size_t)run->h * sizeof(*by_head), 0);
    Error      err = ERROR_INIT;

    if (!quality_measure(run, 0, &all, by_head, &err))
        return luaL_error(L, "%s", err.text);
    if (by_head[head].mass_mean.valid)
        lua_pushnumber(L, by_head[head].mass_mean.value);
    else
        lua_pushnil(L);
    return 1;
}

static void set_functions(lua_State *L, int box, int index)
{
    static const luaL_Reg functions[] = {
        { "value", fact_value }, { "row", fact_row }, { "size", fact_size }, { "kept", fact_kept },
        { NULL, NULL }
    };

    for (const luaL_Reg *f = functions; f->name; f++) {
        lua_pushvalue(L, box);
        lua_pushinteger(L, index);
        lua_pushcclosure(L, f->func, 2);
        lua_setfield(L, -2, f->name);
    }
}

/* ---- one fact ------------------------------------------------------------------------- */

/* Pairs that a head allows, on average, and their share of all. */
static void set_pairs(lua_State *L, const Run *run)
{
    const View *view = run_view(run, "connectivity");
    double      all = (double)run->n * (double)run->m, pairs;

    if (!view || !view->support || !(all > 0))
        return;
    pairs = (double)pattern_count(view->support) / (double)pattern_heads(view->support);
    field_number(L, "pairs", pairs);
    field_number(L, "density", pairs / all);
}

static void set_figures(lua_State *L, const Run *run)
{
    lua_newtable(L);
    for (int i = 0; i < run->figure_count; i++)
        field_number(L, run->figures[i].name, run->figures[i].value);
    lua_setfield(L, -2, "figures");
}

static void set_stages(lua_State *L, const Record *record)
{
    lua_createtable(L, record->stage_count, 0);
    for (int i = 0; i < record->stage_count; i++) {
        lua_createtable(L, 0, 4);
        field_string(L, "name", record->stages[i].name);
        field_number(L, "flops", flops_total(record->stages[i].flops));
        field_known(L, "time", record->stages[i].time_ms);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "stages");
}

static void set_costs(lua_State *L, const LessonFact *fact)
{
    const Record *record = &fact->result->record;
    const Record *measured = fact->measured;

    field_number(L, "flops", flops_total(record->counted));
    field_known(L, "bytes", record_traffic(record->bytes));
    field_known(L, "time", measured ? measured->time.median : NUMBER_NONE);
    field_known(L, "memory", measured ? measured->arena_peak : NUMBER_NONE);
    set_stages(L, measured ? measured : record);
}

static void set_quality(lua_State *L, const Quality *quality)
{
    field_known(L, "mass", quality->mass_mean);
    field_known(L, "mass_min", quality->mass_min);
    field_known(L, "error", quality->output_error);
    field_known(L, "variation", quality->total_variation);
}

static void set_record_params(lua_State *L, const Record *record)
{
    if (record->params && json_push_text(L, record->params, strlen(record->params)) == 1)
        lua_setfield(L, -2, "params");
}

static void set_place(lua_State *L, const LessonFact *fact)
{
    field_string(L, "view", fact->view ? fact->view : "");
    field_integer(L, "head", fact->head);
    field_bool(L, "sorted", fact->sorted);
    if (fact->query >= 0)
        field_integer(L, "query", fact->query);
    if (fact->key >= 0)
        field_integer(L, "key", fact->key);
}

/* A name that no pane and no run has is a slip; one that only this one lacks is nil.
 * __index(fact, name)  [-0, +1, v] */
static int fact_missing(lua_State *L)
{
    static const char *const known[] = {
        "mechanism", "params", "n", "m", "d", "heads", "causal", "position", "device",
        "precision", "flops", "bytes", "stages", "pairs", "density", "mass", "mass_min", "error",
        "variation", "time", "memory", "figures", "view", "head", "sorted", "query", "key",
        "value", "row", "size", "kept", "loss", "own", "kl", "agreement", NULL
    };
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    const char *nearest = known[0];

    for (int i = 0; known[i]; i++) {
        if (!strcmp(name, known[i]))
            return 0;
        if (text_distance(name, known[i]) < text_distance(name, nearest))
            nearest = known[i];
    }
    return luaL_error(L, "a pane or run has no field '%s'; did you mean '%s'?",
                      luaL_tolstring(L, 2, NULL), nearest);
}

static void guard_names(lua_State *L)
{
    if (luaL_newmetatable(L, FACT_CLASS)) {
        lua_pushcfunction(L, fact_missing);
        lua_setfield(L, -2, "__index");
    }
    lua_setmetatable(L, -2);
}

/* Where it ran. */
static void set_device(lua_State *L, const Request *request)
{
    field_string(L, "device", request->ops ? request->device : "cpu");
    field_string(L, "precision", request->ops ? request->precision : "f32");
}

static void push_loss(lua_State *L, const LessonLoss *loss)
{
    lua_newtable(L);
    field_integer(L, "n", loss->n);
    field_number(L, "loss", loss->loss);
    field_number(L, "own", loss->own);
    field_number(L, "kl", loss->kl);
    field_number(L, "agreement", loss->agreement);
    guard_names(L);
}

static void push_run(lua_State *L, const LessonFact *fact, int box, int index)
{
    const Run *run = fact->result->run;

    lua_newtable(L);
    field_string(L, "mechanism", fact->result->request.mechanism);
    field_string(L, "position", fact->result->request.position);
    set_device(L, &fact->result->request);
    field_integer(L, "n", run->n);
    field_integer(L, "m", run->m);
    field_integer(L, "d", run->d);
    field_integer(L, "heads", run->h);
    field_bool(L, "causal", run->causal);
    set_record_params(L, &fact->result->record);
    set_pairs(L, run);
    set_figures(L, run);
    set_costs(L, fact);
    set_quality(L, &fact->result->record.quality);
    if (!fact->name)
        set_place(L, fact);
    set_functions(L, box, index);
    guard_names(L);
}

/* The table `s` that a lesson's functions receive.  Its own functions raise once the call is
 * over.  [-0, +1, m] */
static void lesson_facts_push(lua_State *L, const LessonFacts *facts)
{
    const LessonFacts **box = lua_newuserdatauv(L, sizeof(*box), 0);
    int                 at = lua_gettop(L);
    lua_Integer         panes = 0;

    *box = facts;
    lua_pushvalue(L, at);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &facts_box);
    lua_newtable(L);
    for (int i = 0; i < facts->count; i++) {
        if (facts->items[i].loss)
            push_loss(L, facts->items[i].loss);
        else
            push_run(L, &facts->items[i], at, i);
        if (facts->items[i].name)
            lua_setfield(L, -2, facts->items[i].name);
        else
            lua_rawseti(L, -2, ++panes);
    }
    lua_remove(L, at);
}

/* After the call; the facts need not live any longer.  [-0, +0, -] */
static void lesson_facts_forget(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &facts_box) == LUA_TUSERDATA)
        *(const LessonFacts **)lua_touserdata(L, -1) = NULL;
    lua_pop(L, 1);
}
