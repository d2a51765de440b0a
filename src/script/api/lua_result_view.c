/* lua_result_view.c -- views of a result as tensors: all of one, a part, the table of all.
 *
 * They are made when they are asked for.
 */
#include "app/figure/picture.h"
#include "app/result/derived.h"
#include "script/host/lua_work.h"

#define VIEW_LIMIT (8ll << 30) /* bytes of a view made whole, unless `memory` says */

/* The latest view of each name. */
static bool is_latest(const Run *run, int i)
{
    return run_view(run, run->views[i].name) == &run->views[i];
}

/* [-0, +1, v] */
int result_view_names(lua_State *L)
{
    const Run *run = result_check(L, 1)->result->run;

    lua_newtable(L);
    for (int i = 0, count = 0; i < run->view_count; i++)
        if (is_latest(run, i)) {
            lua_pushstring(L, run->views[i].name);
            lua_rawseti(L, -2, ++count);
        }
    return 1;
}

static const View *check_view(lua_State *L, const LuaResult *result, const char *name)
{
    const Run  *run = result->result->run;
    const View *view = run_view(run, name);
    const char *nearest;
    Error       err = ERROR_INIT;

    if (!view) /* a spectrum, a trace */
        view = result_derived(result->result, name, &err);
    if (view)
        return view;
    if (err.code != ERR_NONE)
        luaL_error(L, "%s", err.text);
    nearest = picture_nearest_view(run, name);
    luaL_error(L, "%s has no view '%s' here%s%s%s (r:view_names() lists them)", run->mechanism->id,
               name, nearest ? "; did you mean '" : "", nearest ? nearest : "",
               nearest ? "'?" : "");
    return NULL;
}

/* A view, or a part of one, on its way into a tensor that lies on the stack. */
typedef struct Reading {
    const View *view;
    int64_t     limit, plane;
    Region      region;
    LuaTensor  *tensor;
    Arena      *arena; /* the tensor's; NULL: a part, whose memory is there */
} Reading;

static bool read_view(void *context, const atomic_bool *cancel, Error *err)
{
    Reading     *r = context;
    const Region g = r->region;

    (void)cancel;
    if (r->arena)
        return view_materialise(r->view, r->arena, r->limit, &r->tensor->t, err);
    return view_read_rect(r->view, r->plane, g.row0, g.row1 - g.row0, g.col0, g.col1 - g.col0,
                          tensor_f32(&r->tensor->t), err);
}

static int push_reading(lua_State *L, int status, lua_KContext at)
{
    const Reading *r = work_context(L, at);
    Error          err;

    (void)status;
    if (!work_ended(L, at, &err))
        return failure(L, &err);
    if (r->arena)
        account(L, tensor_bytes(&r->tensor->t));
    lua_pushvalue(L, (int)at - 2);
    return 1;
}

/* A whole view, by way of `then`.  [-0, +1 or 3, v] */
static int push_whole(lua_State *L, const LuaResult *result, const View *view, lua_KFunction then)
{
    int64_t    limit = result->result->request.memory_limit;
    LuaTensor *tensor = tensor_push_closed(L);
    Arena     *arena = arena_new();
    Reading   *r;

    if (!arena)
        return luaL_error(L, "not enough memory");
    tensor_adopt(L, tensor, (Tensor){ .rank = 0 }, arena);
    r = lua_newuserdatauv(L, sizeof(*r), 0);
    *r = (Reading){ .view = view, .limit = limit ? limit : VIEW_LIMIT, .tensor = tensor,
                    .arena = arena };
    return work_await(L, result->session, "reading a view", read_view, then);
}

/* Its numbers lie in memory already.  [-0, +1 or 0, m] */
static bool push_present(lua_State *L, const LuaResult *result, const View *view)
{
    if (!view->tensor.data)
        return false;
    tensor_push_shared(L, view->tensor, result->keep, true);
    return true;
}

static int64_t region_edge(lua_State *L, int t, int field, int64_t fallback)
{
    int         whole = 1;
    lua_Integer value = fallback;

    if (lua_rawgeti(L, t, field) != LUA_TNIL)
        value = lua_tointegerx(L, -1, &whole);
    lua_pop(L, 1);
    if (!whole)
        luaL_error(L, "region: expected whole numbers");
    return value;
}

/* The pair at the named key of the region at t, or {0, count}. */
static void region_pair(lua_State *L, int t, const char *key, int64_t count, int64_t *from,
                        int64_t *to)
{
    *from = 0;
    *to = count;
    if (lua_getfield(L, t, key) == LUA_TTABLE) {
        *from = region_edge(L, lua_gettop(L), 1, 0);
        *to = region_edge(L, lua_gettop(L), 2, count);
    }
    lua_pop(L, 1);
}

Region check_region(lua_State *L, int arg, int64_t rows, int64_t cols)
{
    Region region = { 0, rows, 0, cols };

    if (lua_isnoneornil(L, arg))
        return region;
    luaL_checktype(L, arg, LUA_TTABLE);
    if (lua_rawlen(L, arg) > 0) {
        region = (Region){ region_edge(L, arg, 1, 0), region_edge(L, arg, 2, rows),
                           region_edge(L, arg, 3, 0), region_edge(L, arg, 4, cols) };
    } else {
        region_pair(L, arg, "q", rows, &region.row0, &region.row1);
        region_pair(L, arg, "k", cols, &region.col0, &region.col1);
    }
    if (region.row0 < 0 || region.col0 < 0 || region.row0 >= region.row1 ||
        region.col0 >= region.col1 || region.row1 > rows || region.col1 > cols)
        luaL_error(L, "region {%I,%I, %I,%I} is not inside %I x %I", (lua_Integer)region.row0,
                   (lua_Integer)region.row1, (lua_Integer)region.col0, (lua_Integer)region.col1,
                   (lua_Integer)rows, (lua_Integer)cols);
    return region;
}

/* One plane, or a part of it, as f32.  [-0, +1 or 3, v] */
static int push_part(lua_State *L, const LuaResult *result, const View *view, int64_t plane)
{
    Region   region = check_region(L, 4, view_rows(view), view_cols(view));
    int64_t  shape[2] = { region.row1 - region.row0, region.col1 - region.col0 };
    Reading *r;

    tensor_push(L, DT_F32, 2, shape);
    r = lua_newuserdatauv(L, sizeof(*r), 0);
    *r = (Reading){ .view = view, .plane = plane, .region = region,
                    .tensor = class_check(L, -2, &class_tensor) };
    return work_await(L, result->session, "reading a view", read_view, push_reading);
}

/* Planes that no head tells apart are all of them one plane. */
static int64_t check_plane(lua_State *L, int arg, const Run *run, const View *view)
{
    int64_t planes = view_planes(view);
    int64_t head = lua_isnoneornil(L, arg) ? 0
                   : check_index(L, arg, planes > run->h ? planes : run->h, "head");

    return planes == 1 ? 0 : head;
}

/* [-0, +1 or 3, v] */
int result_view_of(lua_State *L)
{
    const LuaResult *result = result_check(L, 1);
    const Run       *run = result->result->run;
    const View      *view = check_view(L, result, check_text(L, 2));

    lua_settop(L, 4);
    if (!lua_isnil(L, 3) || !lua_isnil(L, 4))
        return push_part(L, result, view, check_plane(L, 3, run, view));
    return push_present(L, result, view) ? 1 : push_whole(L, result, view, push_reading);
}

/* It is kept in the table of views.  [-0, +1, v] */
static int keep_view(lua_State *L, int status, lua_KContext at)
{
    if (push_reading(L, status, at) != 1)
        return luaL_error(L, "%s; r:view(name, head, region) makes a part of it",
                          lua_tostring(L, -2));
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -2);
    lua_rawset(L, 1);
    return 1;
}

/* r.views[name]: upvalue 1 is the result.  [-0, +1, v] */
static int views_index(lua_State *L)
{
    const LuaResult *result = result_check(L, lua_upvalueindex(1));
    const View      *view = check_view(L, result, check_text(L, 2));

    lua_settop(L, 2);
    return push_present(L, result, view) ? 1 : push_whole(L, result, view, keep_view);
}

/* A table that makes a view when it is first asked for it.  [-0, +1, v] */
int result_views(lua_State *L)
{
    result_check(L, 1);
    if (lua_getiuservalue(L, 1, RESULT_VIEWS) != LUA_TNIL)
        return 1;
    lua_newtable(L);
    lua_newtable(L);
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, views_index, 1);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, RESULT_VIEWS);
    return 1;
}
