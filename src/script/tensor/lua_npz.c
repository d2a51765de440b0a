/* lua_npz.c -- tensors by name as one .npz file, for numpy. */
#include "script/host/lua_work.h"

#include <string.h>

/* The names in order, so that the same tensors make the same file.  [-0, +1, v] */
static int64_t push_names(lua_State *L)
{
    int64_t count = 0;

    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "tensors are named, like weights=..., but a key is a %s",
                       luaL_typename(L, -2));
        luaL_argcheck(L, class_test(L, -1, &class_tensor) != NULL, 2, "a value is no Tensor");
        lua_pushvalue(L, -2);
        lua_rawseti(L, -4, ++count);
    }
    lua_getglobal(L, "table");
    lua_getfield(L, -1, "sort");
    lua_pushvalue(L, -3);
    lua_call(L, 1, 0);
    lua_pop(L, 1);
    return count;
}

/* What it points to lies on the stack. */
typedef struct NpzWork {
    const char        *path;
    const NamedTensor *items;
    int64_t            count;
} NpzWork;

static bool write_items(void *context, const atomic_bool *cancel, Error *err)
{
    const NpzWork *w = context;

    (void)cancel;
    return input_write_npz(w->path, w->items, w->count, err);
}

/* [-0, +1 or 3, v] */
int attn_write_npz(lua_State *L)
{
    const char  *path = check_text(L, 1);
    NamedTensor *items;
    int64_t      count;
    int          names;

    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    count = push_names(L);
    names = lua_gettop(L);
    luaL_argcheck(L, count > 0 && count < 100000, 2, "expected tensors by name");
    luaL_checkstack(L, (int)count * 2 + 8, "too many tensors");
    items = lua_newuserdatauv(L, (size_t)count * sizeof(*items), 0);
    for (int64_t i = 0; i < count; i++) {
        const Tensor *t;

        lua_rawgeti(L, names, i + 1);
        items[i].name = lua_tostring(L, -1);
        lua_pushvalue(L, -1);
        lua_rawget(L, 2);
        t = tensor_check(L, -1);
        items[i].tensor = tensor_contiguous(t) ? *t : *tensor_push_copy(L, t, t->dtype);
    }
    lua_newuserdatauv(L, sizeof(NpzWork), 0);
    *(NpzWork *)lua_touserdata(L, -1) = (NpzWork){ path, items, count };
    return work_await(L, script_of(L)->session->thing, "writing tensors", write_items,
                      work_push_true);
}
