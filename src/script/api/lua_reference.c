/* lua_reference.c -- the Lua interface as a manual: Markdown, and a section of the man page. */
#include "script/script.h"

#include <string.h>

#include "script/host/binding.h"

/* "attn.run", "result:row", "ui.open" */
static void add_name(const Class *class, const Member *m, Text *out)
{
    bool module = class == &class_attn || class == &class_ui;

    for (const char *c = class->name; *c; c++)
        text_addf(out, "%c", *c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    text_addf(out, "%s%s", m->args && !module ? ":" : ".", m->name);
}

/* Types without the name of the program before them. */
static void add_type(const char *type, Text *out)
{
    static const char prefix[] = "attnscope.";

    for (const char *at = type; *at;) {
        size_t skip = strncmp(at, prefix, sizeof(prefix) - 1) ? 0 : sizeof(prefix) - 1;

        at += skip;
        if (*at)
            text_addf(out, "%c", *at++);
    }
}

static void add_signature(const Class *class, const Member *m, Text *out)
{
    add_name(class, m, out);
    if (!m->args) {
        text_add(out, ": ");
        add_type(m->type, out);
        return;
    }
    text_add(out, "(");
    add_type(m->args, out);
    text_add(out, *m->type ? ") -> " : ")");
    add_type(m->type, out);
}

static bool has_functions(const Class *class)
{
    return class->meta || class == &class_attn || class == &class_ui;
}

/* ---- Markdown --------------------------------------------------------------- */

static void add_cell(const char *text, Text *out)
{
    for (; *text; text++)
        text_addf(out, *text == '|' ? "\\%c" : "%c", *text);
}

static void markdown_fields(const Class *class, Text *out)
{
    bool any = false;

    for (const Member *m = class->members; m->name; m++) {
        if (m->args)
            continue;
        if (!any)
            text_add(out, "| field | type | meaning |\n| --- | --- | --- |\n");
        any = true;
        text_addf(out, "| `%s` | ", m->name);
        if (m->type) {
            Text type = { 0 };

            add_type(m->type, &type);
            add_cell(text_str(&type), out);
            text_free(&type);
        }
        text_add(out, " | ");
        add_cell(m->help, out);
        text_add(out, " |\n");
    }
    text_add(out, any ? "\n" : "");
}

static void markdown_class(const Class *class, Text *out)
{
    text_addf(out, "## %s\n\n%s\n\n", class->name, class->help);
    markdown_fields(class, out);
    for (const Member *m = class->members; m->name; m++) {
        if (!m->args)
            continue;
        text_add(out, "    ");
        add_signature(class, m, out);
        text_addf(out, "\n\n%s\n\n", m->help);
    }
}

bool script_reference(Text *out)
{
    text_add(out, "# Lua, function by function\n\nMade by `attnscope docs lua`; do not edit.\n\n"
                  "[lua.md](lua.md) begins with examples. Tokens, heads and axes count from 0, Lua "
                  "lists from 1. Misuse raises;\nwhat the world refuses gives nil, message, code. "
                  "`name?` may be left out; `?` behind a type: may be nil.\n\n");
    for (int pass = 0; pass < 2; pass++) /* objects before tables of options and results */
        for (int i = 0; script_classes[i]; i++)
            if (has_functions(script_classes[i]) == !pass)
                markdown_class(script_classes[i], out);
    return text_ok(out);
}

/* ---- man page --------------------------------------------------------------- */

static void add_roff(const char *text, Text *out)
{
    for (bool start = true; *text; start = *text++ == '\n') {
        if (start && (*text == '.' || *text == '\''))
            text_add(out, "\\&");
        text_addf(out, *text == '-' || *text == '\\' ? "\\%c" : "%c", *text);
    }
}

bool script_man(Text *out)
{
    text_add(out, ".SH LUA\nFunctions of scripts; fields and options are in docs/lua\\-api.md.\n");
    for (int i = 0; script_classes[i]; i++) {
        const Class *class = script_classes[i];

        if (!has_functions(class))
            continue;
        text_addf(out, ".SS %s\n", class->name);
        add_roff(class->help, out);
        text_add(out, "\n");
        for (const Member *m = class->members; m->name; m++) {
            Text signature = { 0 };

            if (!m->args)
                continue;
            add_signature(class, m, &signature);
            text_add(out, ".TP\n.B ");
            add_roff(text_str(&signature), out);
            text_add(out, "\n");
            add_roff(m->help, out);
            text_add(out, "\n");
            out->failed |= !text_ok(&signature);
            text_free(&signature);
        }
    }
    return text_ok(out);
}
