/* lua_drawing.c -- figures that the program draws from words: a preset, a command,
 * what a position does to a result. */
#include "script/api/lua_figure.h"

#include <stdlib.h>
#include <string.h>

#include "app/command/command_parts.h"
#include "app/command/preset.h"
#include "app/figure/figure_run.h"
#include "script/host/lua_work.h"

/* All that stays while the figure does. */
typedef struct Drawn {
    Session   *session; /* owned; NULL: another one's */
    PresetCall made;
    Drawing    drawing;
} Drawn;

static void drop_drawn(void *thing)
{
    Drawn *drawn = thing;

    drawing_free(&drawn->drawing);
    preset_call_free(&drawn->made);
    session_free(drawn->session);
    free(drawn);
}

/* Nothing in here raises. */
static Figure *draw_line(Drawn *drawn, const char *line, Error *err)
{
    if (!preset_expand(line, &drawn->made, err))
        return NULL;
    drawn->session = session_new(err);
    if (!drawn->session ||
        !drawing_make(drawn->session, &drawn->made.call, false, &drawn->drawing, err))
        return NULL;
    return drawing_figure(drawn->session, &drawn->made.call, &drawn->drawing, err);
}

static Figure *draw_effect(Drawn *drawn, const LuaResult *with, int64_t head, Error *err)
{
    static const Call none = { 0 };

    if (!drawing_effect(with->session, with->result, head, &drawn->drawing, err))
        return NULL;
    return drawing_figure(with->session, &none, &drawn->drawing, err);
}

/* What is drawn on the worker; the object keeps `drawn`. */
typedef struct Work {
    LuaFigure       *out;
    Drawn           *drawn;
    const char      *line; /* on the stack; NULL: what a position does to: */
    const LuaResult *with;
    int64_t          head;
} Work;

static bool draw(void *context, const atomic_bool *cancel, Error *err)
{
    Work *w = context;

    (void)cancel;
    w->out->figure = w->line ? draw_line(w->drawn, w->line, err)
                             : draw_effect(w->drawn, w->with, w->head, err);
    return w->out->figure != NULL;
}

static void add_option(Text *line, const char *flag, const char *value)
{
    if (!value)
        return;
    text_addf(line, " --%s ", flag);
    word_quote(line, value);
}

/* "figure ..." of the options, what else they say among its words, so that the line
 * draws just this; NULL: they name neither a preset nor a command.  [-0, +1, v] */
static const char *push_line(lua_State *L, int t)
{
    const char *preset = option_string(L, t, "preset", NULL);
    const char *command = option_string(L, t, "command", NULL);
    const char *title = option_string(L, t, "title", NULL);
    const char *caption = option_string(L, t, "caption", NULL);
    bool        shared = option_bool(L, t, "shared_scale", false);
    Text       *line = text_box(L);

    if (preset && command)
        luaL_error(L, "choose one of preset and command; command may hold --preset");
    text_addf(line, "figure %s", command ? command : "");
    add_option(line, "preset", preset);
    add_option(line, "title", title);
    add_option(line, "caption", caption);
    add_option(line, "grid", option_string(L, t, "layout", NULL));
    text_add(line, shared ? " --shared-scale" : "");
    return preset || command ? text_str(line) : NULL;
}

/* [-0, +1, v] */
static const LuaResult *push_effect(lua_State *L, int t)
{
    if (lua_getfield(L, t, "position_effect") == LUA_TNIL)
        return NULL;
    if (!class_test(L, -1, &class_result))
        luaL_error(L, "position_effect: expected a Result, got %s", luaL_typename(L, -1));
    return result_check(L, lua_gettop(L));
}

/* [-0, +1 or 3, v] */
static int push_drawn(lua_State *L, int status, lua_KContext at)
{
    Work        *w = work_context(L, at);
    LuaFigure   *out = w->out;
    const Drawn *drawn = w->drawn;
    Error        err;
    int          rows, cols;

    (void)status;
    if (!work_ended(L, at, &err))
        return failure(L, &err);
    for (int i = 0; i < drawn->drawing.count; i++)
        out->results[out->result_count++] = drawn->drawing.results[i];
    if (drawn->made.line.length)
        out->line = arena_printf(out->arena, "%s", text_str(&drawn->made.line));
    rows = out->figure->rows;
    cols = out->figure->cols;
    figure_set_words(L, out->figure);
    figure_set_page(L, out);
    if (out->figure->rows != rows || out->figure->cols != cols || !out->figure->legend)
        out->line = NULL; /* it would draw another figure */
    lua_pushvalue(L, (int)at - 2);
    return 1;
}

int figure_push_drawn(lua_State *L, int t)
{
    const char      *line = push_line(L, t);
    const LuaResult *with = push_effect(L, t);
    int64_t          head = option_integer(L, t, "head", 0, 0, INT32_MAX);
    LuaFigure       *out;
    Drawn           *drawn;
    Work            *w;

    if (!line && !with)
        return 0;
    if (line && with)
        luaL_error(L, "choose one of position_effect, preset and command");
    out = figure_push_closed(L, FIGURE_PLAN_MOST);
    drawn = calloc(1, sizeof(*drawn));
    if (drawn)
        out->keeps[0] = keep_new(drawn, drop_drawn, with ? with->keep : NULL);
    if (!out->keeps[0])
        return luaL_error(L, "not enough memory for a figure");
    out->keep_count = 1;
    w = lua_newuserdatauv(L, sizeof(*w), 0);
    *w = (Work){ .out = out, .drawn = drawn, .line = line, .with = with, .head = head };
    return work_await(L, script_of(L)->session->thing, "drawing a figure", draw, push_drawn);
}
