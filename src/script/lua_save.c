/* lua_save.c -- figures and steps as files: what Lua's save and save_steps take. */
#include <string.h>

#include "app/command_parts.h"
#include "app/step_figure.h"
#include "script/lua_figure.h"

PngOptions save_options_check(lua_State *L, int t)
{
    PngOptions o = { 0 };

    options_check(L, t, &class_save_options);
    o.width_inch = option_number(L, t, "width", 0);
    luaL_argcheck(L, o.width_inch >= 0 && o.width_inch <= 100, t,
                  "width: expected inches from 0 to 100");
    o.dpi = (int)option_integer(L, t, "dpi", 0, 1, 4800);
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

/* [-0, +1 or 3, v] */
int result_save_steps(lua_State *L)
{
    Result        *result = result_check(L, 1)->result;
    const char    *path = luaL_checkstring(L, 2);
    PngOptions     png = save_options_check(L, 3);
    Session       *session = result_check(L, 1)->session;
    PictureOptions picture = {
        .head = option_integer(L, 3, "head", -1, 0, result->run->h - 1),
        .sorted = option_bool(L, 3, "sorted", false),
    };
    Text *line = text_box(L);
    Error err = ERROR_INIT;

    steps_line(session, result, &picture, &png, path, line);
    if (!steps_save(session, result, 0, result_steps(result), &picture, NULL, text_str(line), &png,
                    path, &err))
        return failure(L, &err);
    lua_pushboolean(L, true);
    return 1;
}

static const Member save_options[] = {
    { "width", NULL, NULL, "number", "inches, like 3.25 or 6.75" },
    { "dpi", NULL, NULL, "integer", "dots an inch (default 300)" },
    { "theme", NULL, NULL, "string", "light, dark, print, slide or colour-blind" },
    { "format", NULL, NULL, "string", "png, svg, pdf, txt or ans, whatever the ending" },
    { "colours", NULL, NULL, "integer", "of .ans: 24 for true colour (default), or 256" },
    { "transparent", NULL, NULL, "boolean", "no background" },
    { "delay", NULL, NULL, "number", "seconds each frame of .apng stands (default 1)" },
    { "head", NULL, NULL, "integer", "of save_steps, counted from 0" },
    { "sorted", NULL, NULL, "boolean", "of save_steps: tokens in the mechanism's own order" },
    MEMBER_END,
};
const Class class_save_options = { .name = "SaveOptions", .help = "How to write a picture.",
                                   .members = save_options };
