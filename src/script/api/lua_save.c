/* lua_save.c -- figures and steps as files: what Lua's save and save_steps take. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command_parts.h"
#include "app/figure/picture.h"
#include "app/figure/step_figure.h"
#include "script/api/lua_figure.h"
#include "script/host/lua_work.h"

#define USUAL_DPI 300

/* width = 6.75, "6.75in" or the like (figure_width), or "900px", as inches; 0: not said.
 * [-0, +0, v] */
static double check_width(lua_State *L, int t, int dpi)
{
    double      width = 0;
    const char *text;
    char       *end;

    if (lua_getfield(L, t, "width") == LUA_TSTRING) {
        text = option_string(L, t, "width", "");
        width = strtod(text, &end);
        if (!strcmp(end, "px"))
            width /= dpi ? dpi : USUAL_DPI;
        else if (isnan(width = figure_width(text)))
            luaL_error(L, "width: expected inches as 6.75 or \"6.75in\", or as \"8.5cm\", "
                       "\"85mm\", \"246pt\" or \"900px\", got '%s'", text);
    } else {
        width = option_number(L, t, "width", 0);
    }
    if (!(width >= 0 && width <= 100))
        luaL_error(L, "width: expected inches from 0 to 100, got %f", width);
    lua_pop(L, 1);
    return width;
}

void figure_set_page(lua_State *L, LuaFigure *figure)
{
    figure->dpi = (int)option_integer(L, 1, "dpi", 0, 1, 4800);
    figure->width = check_width(L, 1, figure->dpi);
}

PngOptions save_options_check(lua_State *L, int t)
{
    PngOptions o = { 0 };

    options_check(L, t, &class_save_options);
    o.dpi = (int)option_integer(L, t, "dpi", 0, 1, 4800);
    o.width_inch = check_width(L, t, o.dpi);
    o.theme = option_string(L, t, "theme", NULL);
    o.format = option_string(L, t, "format", NULL);
    o.colours = (int)option_integer(L, t, "colours", 0, 0, 256);
    luaL_argcheck(L, o.colours == 0 || o.colours == 24 || o.colours == 256, t,
                  "colours: expected 24 or 256");
    o.transparent = option_bool(L, t, "transparent", false);
    o.delay = option_number(L, t, "delay", 0);
    luaL_argcheck(L, o.delay >= 0 && o.delay <= 60, t, "delay: expected seconds from 0 to 60");
    return o;
}

/* 0: not said */
static void add_number(Text *out, const char *flag, double value)
{
    Json number;

    if (!(value > 0))
        return;
    text_addf(out, " --%s ", flag);
    number = jsonw_to(out);
    jsonw_number(&number, value);
}

void save_options_line(const PngOptions *o, const char *path, Text *out)
{
    add_number(out, "width", o->width_inch);
    if (o->dpi)
        text_addf(out, " --dpi %d", o->dpi);
    if (o->theme)
        text_addf(out, " --theme %s", o->theme);
    if (o->format)
        text_addf(out, " --format %s", o->format);
    add_number(out, "delay", o->delay);
    text_add(out, o->colours == 256 ? " --color 256" : "");
    text_addf(out, "%s -o ", o->transparent ? " --transparent" : "");
    word_quote(out, path);
}

/* "step ..." that writes the same. */
static void steps_line(Session *s, const Result *result, const PictureOptions *picture,
                       const PngOptions *png, const char *path, Text *out)
{
    Text command = { 0 };

    request_command(s, &result->request, "step", &command);
    text_add(out, text_str(&command) + strlen("attnscope "));
    text_free(&command);
    if (picture->head > 0)
        text_addf(out, " --head %lld", (long long)picture->head);
    text_add(out, picture->sorted ? " --sorted" : "");
    save_options_line(png, path, out);
}

/* What it points to lies on the stack. */
typedef struct Saving {
    Session         *session;
    const LuaFigure *figure; /* or steps of: */
    Result          *result;
    PictureOptions   picture;
    PngOptions       png;
    const char      *path;
    Text            *line;
} Saving;

static bool save(void *context, const atomic_bool *cancel, Error *err)
{
    Saving          *s = context;
    const LuaFigure *f = s->figure;

    (void)cancel;
    if (f)
        return picture_save(s->session, f->figure, f->results, f->result_count, text_str(s->line),
                            &s->png, s->path, err);
    return steps_save(s->session, s->result, 0, result_steps(s->result), &s->picture, NULL,
                      text_str(s->line), &s->png, s->path, err);
}

/* A key of metadata as all kinds of file can hold it, and none of our own.  [-0, +0, v] */
static void check_key(lua_State *L, int at)
{
    const char *key = lua_type(L, at) == LUA_TSTRING ? lua_tostring(L, at) : "";
    size_t      length = strlen(key);

    if (!length || length > 60 || length != lua_rawlen(L, at) || !strcmp(key, "Software") ||
        strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != length)
        luaL_error(L, "metadata: a key has letters, digits, _ . and -, 60 at most, and is not "
                   "Software");
}

/* metadata = { author = "me", run = 3 } of the options at 3 as key, value, ..., NULL, which lies
 * on the stack with what it points to; NULL: none.  [-0, +1, v] */
static const char *const *push_metadata(lua_State *L)
{
    const char **pairs;
    int          count = 0, texts, table;

    if (lua_getfield(L, 3, "metadata") == LUA_TNIL)
        return NULL;
    if (!lua_istable(L, -1))
        luaL_error(L, "metadata: expected a table of keys and texts, got %s", luaL_typename(L, -1));
    table = lua_gettop(L);
    pairs = lua_newuserdatauv(L, (2 * METADATA_OWN_MOST + 1) * sizeof(*pairs), 1);
    lua_newtable(L);
    texts = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        check_key(L, -2);
        if (count == METADATA_OWN_MOST)
            luaL_error(L, "metadata: %d keys at most", METADATA_OWN_MOST);
        pairs[2 * count] = lua_tostring(L, -2);
        pairs[2 * count + 1] = luaL_tolstring(L, -1, NULL);
        if (strlen(pairs[2 * count + 1]) != lua_rawlen(L, -1))
            luaL_error(L, "metadata: there is a zero byte in %s", pairs[2 * count]);
        lua_rawseti(L, texts, 2 * count + 2);
        lua_pushvalue(L, -2);
        lua_rawseti(L, texts, 2 * count++ + 1);
    }
    pairs[2 * count] = NULL;
    lua_setiuservalue(L, -2, 1);
    lua_remove(L, table);
    return pairs;
}

/* The object at 1, path and options at 2 and 3.  [-0, +3, v] */
static Saving *push_saving(lua_State *L)
{
    const char *path = check_text(L, 2);
    PngOptions  png = (lua_settop(L, 3), save_options_check(L, 3));
    Text       *line = (png.metadata = push_metadata(L), text_box(L));
    Saving     *s = lua_newuserdatauv(L, sizeof(*s), 0);

    *s = (Saving){ .path = path, .png = png, .line = line };
    return s;
}

/* [-0, +1 or 3, v] */
int figure_save(lua_State *L)
{
    const LuaFigure *figure = figure_check(L);
    Saving          *s = push_saving(L);

    s->figure = figure;
    s->png.dpi = s->png.dpi ? s->png.dpi : figure->dpi;
    s->png.width_inch = s->png.width_inch > 0 ? s->png.width_inch : figure->width;
    s->session = script_of(L)->session->thing;
    text_add(s->line, figure->line ? figure->line : script_of(L)->line);
    if (figure->line) /* the line that makes the file again: the figure's own, or the script's */
        save_options_line(&s->png, s->path, s->line);
    return work_await(L, s->session, "writing a picture", save, work_push_true);
}

/* [-0, +1 or 3, v] */
int result_save_steps(lua_State *L)
{
    const LuaResult *result = result_check(L, 1);
    Saving          *s = push_saving(L);

    s->result = result->result;
    s->session = result->session;
    s->picture.head = option_integer(L, 3, "head", -1, 0, s->result->run->h - 1);
    s->picture.sorted = option_bool(L, 3, "sorted", false);
    steps_line(s->session, s->result, &s->picture, &s->png, s->path, s->line);
    return work_await(L, s->session, "writing a picture", save, work_push_true);
}

static const Member save_options[] = {
    { "width", NULL, NULL, "number|string",
      "inches, like 3.25 or \"6.75in\"; or \"8.5cm\", \"85mm\", \"246pt\", \"900px\"" },
    { "dpi", NULL, NULL, "integer", "dots an inch (default 300)" },
    { "theme", NULL, NULL, "string", "light, dark, print, slide or colour-blind" },
    { "format", NULL, NULL, "string", "png, svg, pdf, txt or ans, whatever the ending" },
    { "colours", NULL, NULL, "integer", "of .ans: 24 for true colour (default), or 256" },
    { "metadata", NULL, NULL, "table<string, any>",
      "to be put into the file as well: { author = \"me\" }" },
    { "transparent", NULL, NULL, "boolean", "no background" },
    { "delay", NULL, NULL, "number", "seconds each frame of .apng stands (default 1)" },
    { "head", NULL, NULL, "integer", "of save_steps, counted from 0" },
    { "sorted", NULL, NULL, "boolean", "of save_steps: tokens in the mechanism's own order" },
    MEMBER_END,
};
const Class class_save_options = { .name = "SaveOptions", .help = "How to write a picture.",
                                   .members = save_options };
