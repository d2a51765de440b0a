/* lua_stubs.c -- the Lua interface as definitions for the Lua language server.
 *
 * One class per registration table; arguments are written "name: type" or
 * "name?: type" in the rows and split here.
 */
#include "script/script.h"

#include <string.h>

#include "script/host/binding.h"

static bool is_object(const Class *class)
{
    return class->meta || class == &class_attn || class == &class_ui;
}

/* Length up to a comma outside brackets, and of the name before the colon. */
static size_t argument_length(const char *args, size_t *name)
{
    size_t length;
    int    depth = 0;

    *name = 0;
    for (length = 0; args[length] && !(args[length] == ',' && !depth); length++) {
        char c = args[length];

        depth += (strchr("({[<", c) != NULL) - (strchr(")}]>", c) != NULL);
        if (c == ':' && !depth && !*name)
            *name = length;
    }
    return length;
}

static const char *next_argument(const char *args, size_t length)
{
    args += length;
    return *args ? args + 2 : args; /* ", " */
}

static void add_params(const char *args, Text *out)
{
    size_t name, length;

    for (; *args; args = next_argument(args, length)) {
        length = argument_length(args, &name);
        text_addf(out, "---@param %.*s %.*s\n", (int)name, args, (int)(length - name - 2),
                  args + name + 2);
    }
}

static void add_names(const char *args, Text *out)
{
    const char *comma = "";
    size_t      name, length;

    for (; *args; args = next_argument(args, length)) {
        length = argument_length(args, &name);
        if (name && args[name - 1] == '?')
            name--;
        text_addf(out, "%s%.*s", comma, (int)name, args);
        comma = ", ";
    }
}

static void add_returns(const char *types, Text *out)
{
    size_t name, length;

    for (; *types; types = next_argument(types, length)) {
        length = argument_length(types, &name);
        text_addf(out, "---@return %.*s\n", (int)length, types);
    }
}

static void add_fields(const Class *class, Text *out)
{
    for (const Member *m = class->members; m->name; m++)
        if (!m->args)
            text_addf(out, "---@field %s%s %s %s\n", m->name, is_object(class) ? "" : "?",
                      m->type, m->help);
}

static void add_functions(const Class *class, Text *out)
{
    const char *owner = class == &class_attn ? "attn." : class->name;

    for (const Member *m = class->members; m->name; m++) {
        if (!m->args)
            continue;
        text_addf(out, "\n---%s\n", m->help);
        add_params(m->args, out);
        add_returns(m->type, out);
        text_addf(out, "function %s%s%s(", owner,
                  class == &class_attn ? "" : class == &class_ui ? "." : ":", m->name);
        add_names(m->args, out);
        text_add(out, ") end\n");
    }
}

static void add_class(const Class *class, Text *out)
{
    text_addf(out, "\n---%s\n---@class attnscope.%s%s\n", class->help, class->name,
              class->open ? ": { [string]: any }" : "");
    add_fields(class, out);
    if (class->operators)
        text_add(out, class->operators);
    if (!is_object(class))
        return;
    text_addf(out, "local %s = {}\n", class == &class_attn ? "attn" : class->name);
    add_functions(class, out);
}

bool script_stubs(Text *out)
{
    text_add(out, "---@meta attnscope\n"
                  "-- Made by `attnscope docs luals`; do not edit.\n"
                  "-- Indices of tokens, heads and axes count from 0; Lua lists from 1.\n"
                  "-- Misuse raises; what the world refuses gives nil, message, code.\n");
    for (int i = 1; script_classes[i]; i++)
        add_class(script_classes[i], out);
    add_class(&class_attn, out);
    text_add(out, "\n_G.attn = attn\n_G.ui = ui\nreturn attn\n");
    return text_ok(out);
}
