/* lua_complete.c -- see lua_complete.h. */
#include "script/console/lua_complete.h"

#include <stdlib.h>
#include <string.h>

#include "script/host/binding.h"

typedef struct Completion {
    const char  *word;
    CompleteName add;
    void        *context;
} Completion;

static void add_name(const Completion *c, size_t stem, const char *name)
{
    char whole[256];

    if (stem + strlen(name) >= sizeof(whole) ||
        strncmp(name, c->word + stem, strlen(c->word + stem)) != 0)
        return;
    memcpy(whole, c->word, stem);
    strcpy(whole + stem, name);
    c->add(c->context, whole);
}

static void add_members(lua_State *L, const Completion *c, size_t stem)
{
    for (int i = 0; script_classes[i]; i++) {
        if (!class_test(L, -1, script_classes[i]))
            continue;
        for (const Member *m = script_classes[i]->members; m->name; m++)
            add_name(c, stem, m->name);
    }
}

/* Under pcall: the names of the word's last part, without calling anything. */
static int complete(lua_State *L)
{
    const Completion *c = lua_touserdata(L, 1);
    const char       *at = c->word, *end;

    lua_pushglobaltable(L);
    while ((end = strpbrk(at, ".:"))) {
        if (!lua_istable(L, -1))
            return 0;
        lua_pushlstring(L, at, (size_t)(end - at));
        lua_rawget(L, -2);
        at = end + 1;
    }
    if (lua_isuserdata(L, -1))
        add_members(L, c, (size_t)(at - c->word));
    if (!lua_istable(L, -1))
        return 0;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING)
            add_name(c, (size_t)(at - c->word), lua_tostring(L, -2));
    return 0;
}

void complete_names(lua_State *L, const char *word, CompleteName add, void *context)
{
    Completion c = { .word = word, .add = add, .context = context };

    lua_pushcfunction(L, complete);
    lua_pushlightuserdata(L, &c);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK)
        lua_pop(L, 1);
}

/* ---- statements ------------------------------------------------------------- */

int statement_load(lua_State *L, const char *code)
{
    const char *expression;
    int         status;

    code += *code == '=';
    expression = lua_pushfstring(L, "return %s", code);
    status = luaL_loadbufferx(L, expression, strlen(expression), "=stdin", "t");
    lua_remove(L, -2);
    if (status == LUA_OK)
        return status;
    lua_pop(L, 1);
    return luaL_loadbufferx(L, code, strlen(code), "=stdin", "t");
}

bool statement_unfinished(lua_State *L, int status)
{
    size_t      length;
    const char *message = status == LUA_ERRSYNTAX ? lua_tolstring(L, -1, &length) : NULL;

    return message && length >= 5 && !strcmp(message + length - 5, "<eof>");
}
