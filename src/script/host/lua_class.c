/* lua_class.c -- metatables and the module, made from the registration tables. */
#include "script/host/binding.h"

#include <lualib.h>
#include <string.h>

#include "script/host/lua_command.h"
#include "script/host/safe.h"

/* The prelude's bytes; mk/script.mk makes them from scripts/lua/prelude.lua. */
extern const unsigned char script_prelude[];
extern const size_t        script_prelude_size;

const Class *const script_classes[] = {
    &class_attn, &class_ui, &class_pane, &class_tensor, &class_input, &class_result, &class_pattern,
    &class_figure,
    &class_job, &class_row, &class_context, &class_param_options, &class_view_options,
    &class_pattern_options, &class_mechanism_options, &class_filter,
    &class_input_options, &class_random_options, &class_tensors,
    &class_run_options, &class_compare_options, &class_reach_options, &class_missed_options,
    &class_vary_options, &class_fit_options, &class_sweep_options, &class_sweep,
    &class_roofline_options,
    &class_panel, &class_curve, &class_scaling, &class_figure_options,
    &class_save_options, &class_text_options, &class_check_options,
    &class_card, &class_param_card, &class_view_card, &class_record, &class_cell, &class_entry,
    &class_stage, &class_comparison, &class_report, &class_growth, &class_roofline, NULL,
};

bool class_has(const Class *class, const char *name)
{
    for (const Member *m = class->members; m->name; m++)
        if (!strcmp(m->name, name))
            return true;
    return false;
}

const char *class_nearest(const Class *class, const char *name)
{
    Meant nearest = { name, "?", ANY_SLIPS };

    for (const Member *m = class->members; m->name; m++)
        meant_offer(&nearest, m->name);
    return nearest.name;
}

/* ---- objects ---------------------------------------------------------------- */

static void push_name(lua_State *L, const Class *class)
{
    lua_pushfstring(L, "attnscope.%s", class->name);
}

void *class_push(lua_State *L, const Class *class, size_t size, int values)
{
    void *object = lua_newuserdatauv(L, size, values);

    memset(object, 0, size);
    lua_rawgetp(L, LUA_REGISTRYINDEX, class);
    lua_setmetatable(L, -2);
    return object;
}

void *class_test(lua_State *L, int arg, const Class *class)
{
    void *object = lua_touserdata(L, arg);
    bool  same;

    if (!object || !lua_getmetatable(L, arg))
        return NULL;
    lua_rawgetp(L, LUA_REGISTRYINDEX, class);
    same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return same ? object : NULL;
}

void *class_check(lua_State *L, int arg, const Class *class)
{
    void *object = class_test(L, arg, class);

    if (!object) {
        lua_settop(L, lua_gettop(L) < arg ? arg : lua_gettop(L)); /* what is missing is nil */
        push_name(L, class);
        luaL_typeerror(L, arg, lua_tostring(L, -1));
    }
    return object;
}

/* Upvalues: methods, getters of fields, the class.  [-0, +1, v] */
static int object_index(lua_State *L)
{
    const Class *class = lua_touserdata(L, lua_upvalueindex(3));

    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL) {
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
        return 1;
    }
    if (lua_type(L, 2) != LUA_TSTRING)
        return luaL_error(L, "%s has no member %s", class->name, luaL_tolstring(L, 2, NULL));
    return luaL_error(L, "%s has no member '%s'; did you mean '%s'?", class->name,
                      lua_tostring(L, 2), class_nearest(class, lua_tostring(L, 2)));
}

/* Upvalue: the class.  object.field = value says what to call instead.  [-0, +0, v] */
static int object_newindex(lua_State *L)
{
    const Class *class = lua_touserdata(L, lua_upvalueindex(1));
    const char  *name = luaL_tolstring(L, 2, NULL);

    for (const Member *m = class->members; m->name; m++)
        if (m->args && !strcmp(m->name, name))
            return luaL_error(L, "%s: '%s' cannot be assigned, it is a method; call it with a "
                              "colon: object:%s(...)", class->name, name, name);
    return luaL_error(L, "%s: '%s' cannot be assigned; %s", class->name, name,
                      luaL_gsub(L, class->instead, "NAME", name));
}

/* Functions into the table at the top, fields into the one below.  [-0, +0, m] */
static void set_members(lua_State *L, const Class *class)
{
    for (const Member *m = class->members; m->name; m++) {
        if (!m->call)
            continue;
        lua_pushcfunction(L, m->call);
        lua_setfield(L, m->args ? -2 : -3, m->name);
    }
}

/* The metatable into the registry, the methods into the table at the top.
 * [-0, +0, m] */
static void open_class(lua_State *L, const Class *class)
{
    push_name(L, class);
    luaL_newmetatable(L, lua_tostring(L, -1));
    luaL_setfuncs(L, class->meta, 0);
    push_name(L, class); /* what getmetatable gives: the name, not the table */
    lua_setfield(L, -2, "__metatable");
    lua_newtable(L);
    lua_newtable(L);
    set_members(L, class);
    lua_pushvalue(L, -1);
    lua_setfield(L, -6, class->name);
    lua_insert(L, -2); /* methods, fields */
    lua_pushlightuserdata(L, (void *)(uintptr_t)class);
    lua_pushcclosure(L, object_index, 3);
    lua_setfield(L, -2, "__index");
    if (class->instead) {
        lua_pushlightuserdata(L, (void *)(uintptr_t)class);
        lua_pushcclosure(L, object_newindex, 1);
        lua_setfield(L, -2, "__newindex");
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, class);
    lua_pop(L, 1);
}

/* ---- the module ------------------------------------------------------------- */

/* Every function a row leaves to the prelude is there now, and raises at its caller's line.
 * [-0, +0, v] */
static void check_prelude(lua_State *L, const Class *class, int table)
{
    for (const Member *m = class->members; m->name; m++) {
        if (m->call || !m->args)
            continue;
        if (lua_getfield(L, table, m->name) != LUA_TFUNCTION)
            luaL_error(L, "the prelude lacks %s.%s", class->name, m->name);
        lua_pop(L, 1);
    }
    caller_names(L, table, class);
}

/* Called with the module, the classes' method tables, what makes a text harmless, and sweeps.
 * [-0, +0, e] */
static void run_prelude(lua_State *L, int module, int methods)
{
    const char *bytes = (const char *)script_prelude;

    if (luaL_loadbufferx(L, bytes, script_prelude_size, "=" OWN_CHUNK, "t") != LUA_OK)
        lua_error(L);
    lua_pushvalue(L, module);
    lua_pushvalue(L, methods);
    lua_pushcfunction(L, safe_clean);
    sweep_push_functions(L);
    lua_call(L, 4, 0);
    for (int i = 0; script_classes[i]; i++) {
        const Class *class = script_classes[i];

        if (class == &class_attn) {
            check_prelude(L, class, module);
        } else if (class == &class_ui) {
            lua_getfield(L, module, "ui");
            check_prelude(L, class, lua_gettop(L));
            lua_pop(L, 1);
        } else if (class->meta) {
            lua_getfield(L, methods, class->name);
            check_prelude(L, class, lua_gettop(L));
            lua_pop(L, 1);
        }
    }
}

void class_open_all(lua_State *L)
{
    int methods, module;

    lua_newtable(L);
    methods = lua_gettop(L);
    for (int i = 0; script_classes[i]; i++)
        if (script_classes[i]->meta)
            open_class(L, script_classes[i]);
    lua_newtable(L); /* no computed fields in the module */
    lua_newtable(L);
    module = lua_gettop(L);
    set_members(L, &class_attn);
    lua_pushstring(L, ATTNSCOPE_VERSION);
    lua_setfield(L, module, "version");
    lua_pushboolean(L, false);
    lua_setfield(L, module, "has_ui");
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, module, "null");
    luaL_newmetatable(L, JSON_OBJECT_MARK);
    lua_setfield(L, module, "object");
    lua_newtable(L); /* ui has no fields either */
    lua_newtable(L);
    set_members(L, &class_ui);
    lua_setfield(L, module, "ui");
    lua_pop(L, 1);
    run_prelude(L, module, methods);
    lua_insert(L, methods);
    lua_settop(L, methods);
}
