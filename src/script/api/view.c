/* view.c -- views of a result as tensors: all of one, a part, the table of all.
 *
 * They are made when they are asked for.
 */
#include <string.h>

#include "app/figure/picture.h"
#include "app/result/views.h"
#include "draw/colour/colour.h"
#include "script/host/binding.h"
#include "script/host/work.h"

#define VIEW_LIMIT (8ll << 30) /* bytes of a whole view, unless the run had a limit */

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
    check_ok(L, err.code == ERR_NONE, &err);
    nearest = picture_nearest_view(run, name);
    luaL_error(L, "%s has no view '%s' here%s%s%s (r:view_names() lists them)", run->mechanism->id,
               name, nearest ? "; did you mean '" : "", nearest ? nearest : "",
               nearest ? "'?" : "");
    return NULL;
}

/* A view, or a part of one, that is read into a tensor on the stack. */
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

/* Pushes a whole view; continues in `then`.  [-0, +1 or 3, v] */
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
    return work_await_end(L, result->session, "reading a view", read_view, then);
}

/* Pushes a view whose numbers are in memory already; false: they are not.  [-0, +1 or 0, m] */
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
    return work_await_end(L, result->session, "reading a view", read_view, push_reading);
}

/* Planes without heads count as one plane. */
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

/* Single cells and rows of a result: what they hold, and why. */

/* A matrix of queries by keys of this run's size. */
static bool is_query_key(const Run *run, const View *view)
{
    return view->rank >= 2 && view_rows(view) == run->n && view_cols(view) == run->m &&
           !strcmp(view->rows, "query") && !strcmp(view->cols, "key") &&
           (view_planes(view) == 1 || view_planes(view) == run->h);
}

static const View *matrix_called(const Run *run, const char *name)
{
    const View *view = run_view(run, name);

    return view && is_query_key(run, view) ? view : NULL;
}

const Pattern *result_cells(const Run *run)
{
    const View *view = matrix_called(run, "connectivity");

    if (!view || !view->support)
        view = matrix_called(run, "weights");
    return view ? view->support : NULL;
}

const char *const *result_component_names(const Run *run)
{
    const View *view = matrix_called(run, "connectivity");

    return view ? view->components : NULL;
}

/* The latest view of the bucket or cluster of every token and head; NULL: there is none. */
static const View *groups_of(const Run *run)
{
    for (int i = 0; i < run->view_count; i++) {
        const View *view = &run->views[i];

        if (view->kind == VIEW_BUCKETS && !strcmp(view->cols, "token") &&
            run_view(run, view->name) == view && round_line(run, view, 0, 0) &&
            view_planes(view) * view_rows(view) % run->h == 0)
            return view;
    }
    return NULL;
}

typedef struct Asked {
    Result *result;
    int64_t head, q, k;
    CellWhy why;
} Asked;

/* Names of the component bits as a list.  [-0, +1, m] */
void push_components(lua_State *L, uint8_t bits)
{
    int count = 0;

    lua_newtable(L);
    for (unsigned bit = 1; bit <= COMPONENT_LAST; bit <<= 1)
        if (bits & bit) {
            lua_pushstring(L, component_name((uint8_t)bit));
            lua_rawseti(L, -2, ++count);
        }
}

uint8_t check_component(lua_State *L, int arg)
{
    static const char *const names[] = { "window", "global", "random", "strided",
                                         "block",  "other",  NULL };

    return (uint8_t)(1 << luaL_checkoption(L, arg, "other", names));
}

/* 0..7 of its bit. */
static int component_number(lua_State *L, const char *name)
{
    for (int b = 0; b < 8; b++)
        if (!strcmp(component_name((uint8_t)(1 << b)), name))
            return b;
    return luaL_error(L, "components: '%s' is none of window, global, random, strided, block, "
                      "other, bucket and cluster", name);
}

void read_component_names(lua_State *L, Arena *arena, const char **names)
{
    if (!lua_istable(L, -1))
        luaL_error(L, "components: expected a table like { window = \"near\" }, got %s",
                   luaL_typename(L, -1));
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        int b;

        if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "components: expected { window = \"near\" }, texts both");
        b = component_number(L, lua_tostring(L, -2));
        names[b] = arena_strdup(arena, lua_tostring(L, -1));
        if (!names[b])
            luaL_error(L, "not enough memory for a pattern");
    }
}

static int64_t plane_of(const View *view, int64_t head)
{
    return view_planes(view) == 1 ? 0 : head;
}

static int64_t check_head(lua_State *L, int arg, const Run *run)
{
    return lua_isnoneornil(L, arg) ? 0 : check_index(L, arg, run->h, "head");
}

/* One row of a view, in memory that Lua frees.  [-0, +1, m] */
static float *push_row(lua_State *L, const View *view, int64_t head, int64_t q)
{
    float *row = lua_newuserdatauv(L, (size_t)view_cols(view) * sizeof(*row), 0);

    view_read(view, plane_of(view, head), q, 0, view_cols(view), 1, row);
    return row;
}

static void set_weight(lua_State *L, const Run *run, int64_t head, int64_t q, int64_t k)
{
    const View  *view = matrix_called(run, "weights");
    const float *row;
    int64_t      rank = 1;

    if (!view)
        return;
    row = push_row(L, view, head, q);
    for (int64_t j = 0; j < run->m; j++)
        rank += row[j] > row[k];
    lua_pushnumber(L, (double)row[k]);
    lua_setfield(L, -3, "weight");
    lua_pushinteger(L, rank);
    lua_setfield(L, -3, "rank");
    lua_pop(L, 1);
}

static void set_values(lua_State *L, const Run *run, int64_t head, int64_t q, int64_t k)
{
    lua_newtable(L);
    for (int i = 0; i < run->view_count; i++) {
        const View *view = &run->views[i];
        float       value;

        if (!is_query_key(run, view))
            continue;
        view_read(view, plane_of(view, head), q, k, 1, 1, &value);
        field_number(L, view->name, (double)value);
    }
    lua_setfield(L, -2, "values");
}

static void set_token(lua_State *L, char *const *tokens, int64_t at, const char *key)
{
    if (!tokens)
        return;
    field_string(L, key, tokens[at]);
}

/* The group of token t in each round, from the view that sorts the tokens: a number, or a list
 * where there are several rounds.  [-0, +0, m] */
static void set_group(lua_State *L, const Asked *a, int64_t t, const char *key)
{
    const Run  *run = a->result->run;
    const View *view = groups_of(run);
    int64_t     rounds;

    if (!view || t >= run->n)
        return;
    rounds = view_planes(view) * view_rows(view) / run->h;
    lua_createtable(L, (int)rounds, 0);
    for (int64_t r = 0; r < rounds; r++) {
        lua_pushinteger(L, round_line(run, view, a->head, r)[t]);
        if (rounds == 1) {
            lua_replace(L, -2);
            break;
        }
        lua_rawseti(L, -2, r + 1);
    }
    lua_setfield(L, -2, key);
}

/* The score, the share of the output, and exact attention. */
static void set_why(lua_State *L, const CellWhy *why)
{
    if (why->evicted_after >= 0)
        field_integer(L, "evicted_after", why->evicted_after);
    if (why->softmax)
        field_number(L, "below", why->below);
    if (why->adds) {
        field_number(L, "share", why->share);
        field_number(L, "length", why->length);
    }
    if (!why->scored)
        return;
    field_number(L, "score", why->score);
    field_bool(L, "own_score", why->own_score);
    lua_newtable(L);
    field_number(L, "weight", why->exact);
    field_integer(L, "rank", why->exact_rank);
    field_integer(L, "keys", why->exact_of);
    lua_setfield(L, -2, "exact");
}

/* Reads the cell with a reader of its own. */
static bool find_why(void *context, const atomic_bool *cancel, Error *err)
{
    Asked      *a = context;
    CellReader *reader = cell_reader_new(a->result, err);
    bool        ok = reader && cell_read(reader, a->head, a->q, a->k, &a->why, err);

    (void)cancel;
    cell_reader_free(reader);
    return ok;
}

static int push_cell(lua_State *L, int status, lua_KContext at)
{
    const Asked   *a = work_context(L, at);
    const Run     *run = a->result->run;
    const Pattern *pattern = result_cells(run);
    bool           allowed = true;
    uint8_t        bits = pattern ? pattern_cell(pattern, a->head, a->q, a->k, &allowed) : 0;

    (void)status;
    lua_newtable(L);
    field_bool(L, "allowed", allowed);
    push_components(L, bits);
    lua_setfield(L, -2, "components");
    set_weight(L, run, a->head, a->q, a->k);
    set_values(L, run, a->head, a->q, a->k);
    set_why(L, &a->why);
    set_group(L, a, a->q, "bucket_q");
    set_group(L, a, a->k, "bucket_k");
    set_token(L, a->result->input->q_tokens, a->q, "q_token");
    set_token(L, a->result->input->k_tokens, a->k, "k_token");
    return 1;
}

/* [-0, +1 or 3, v] */
int result_cell(lua_State *L)
{
    const LuaResult *result = result_check(L, 1);
    const Run       *run = result->result->run;
    int64_t q = check_index(L, 2, run->n, "query"), k = check_index(L, 3, run->m, "key");
    int64_t head = check_head(L, 4, run);
    Asked  *a;

    lua_settop(L, 4);
    a = lua_newuserdatauv(L, sizeof(*a), 0);
    *a = (Asked){ .result = result->result, .head = head, .q = q, .k = k };
    return work_await(L, result->session, "reading a cell", find_why, push_cell);
}

/* ---- rows ------------------------------------------------------------------- */

typedef struct RowWriter {
    const Pattern *pattern; /* NULL: every key is allowed */
    const float   *weights; /* NULL: the mechanism has none */
    int64_t        head, q;
    lua_Integer    count;
} RowWriter;

static void write_key(lua_State *L, RowWriter *writer, int64_t k)
{
    bool    allowed = true;
    uint8_t bits = 0;

    if (writer->pattern)
        bits = pattern_cell(writer->pattern, writer->head, writer->q, k, &allowed);
    if (!allowed)
        return;
    lua_newtable(L);
    field_integer(L, "k", k);
    if (writer->weights)
        field_number(L, "weight", (double)writer->weights[k]);
    push_components(L, bits);
    lua_setfield(L, -2, "components");
    lua_rawseti(L, -2, ++writer->count);
}

/* Keys in increasing order.  [-0, +1, v] */
int result_row(lua_State *L)
{
    const Run  *run = result_check(L, 1)->result->run;
    const View *weights = matrix_called(run, "weights");
    RowWriter   writer = { .pattern = result_cells(run) };

    writer.q = check_index(L, 2, run->n, "query");
    writer.head = check_head(L, 3, run);
    if (weights)
        writer.weights = push_row(L, weights, writer.head, writer.q);
    lua_newtable(L);
    for (int64_t k = 0; k < run->m; k++)
        write_key(L, &writer, k);
    return 1;
}
