/* lua_result.c -- a finished run in Lua: output, views, numbers.
 *
 * Views are made when they are asked for.  Tensors of a run look into its
 * memory and keep it alive, also beyond r:close().
 */
#include "script/lua_binding.h"

#include <string.h>

#include "app/derived.h"
#include "app/steps.h"

#define VIEW_LIMIT (8ll << 30) /* bytes of a view made whole, unless `memory` says */

/* ---- the object ------------------------------------------------------------- */

LuaResult *result_check(lua_State *L, int arg)
{
    LuaResult *result = class_check(L, arg, &class_result);

    if (!result->keep)
        luaL_argerror(L, arg, "the result is closed");
    return result;
}

/* [-0, +0, -] */
static int result_close(lua_State *L)
{
    LuaResult *result = class_check(L, 1, &class_result);
    Keep      *keep = result->keep;

    *result = (LuaResult){ 0 };
    keep_release(keep);
    for (int i = 1; i <= RESULT_VALUES; i++) {
        lua_pushnil(L);
        lua_setiuservalue(L, 1, i);
    }
    return 0;
}

/* [-0, +1, m] */
static int result_describe(lua_State *L)
{
    const LuaResult *result = class_check(L, 1, &class_result);
    Text            *text;

    if (!result->keep) {
        lua_pushliteral(L, "Result (closed)");
        return 1;
    }
    text = text_box(L);
    text_add(text, "Result ");
    request_text(&result->result->request, text);
    text_addf(text, " n=%lld heads=%lld", (long long)result->result->run->n,
              (long long)result->result->run->h);
    text_box_push(L, text);
    return 1;
}

/* [-0, +1, v] */
static int result_length(lua_State *L)
{
    lua_pushinteger(L, result_check(L, 1)->result->run->n);
    return 1;
}

/* ---- fields ----------------------------------------------------------------- */

/* [-0, +1, v] */
static int result_output(lua_State *L)
{
    const LuaResult *result = result_check(L, 1);

    tensor_push_shared(L, result->result->run->out, result->keep, true);
    return 1;
}

/* [-0, +1, v] */
static int result_mechanism(lua_State *L)
{
    lua_pushstring(L, result_check(L, 1)->result->run->mechanism->id);
    return 1;
}

/* [-0, +1, v] */
static int result_text(lua_State *L)
{
    const LuaResult *result = result_check(L, 1);
    Text            *text = text_box(L);

    request_text(&result->result->request, text);
    text_box_push(L, text);
    return 1;
}

/* [-0, +1, v] */
static int result_input(lua_State *L)
{
    result_check(L, 1);
    lua_getiuservalue(L, 1, RESULT_INPUT);
    return 1;
}

/* The table is made once.  [-0, +1, v] */
static int result_record(lua_State *L)
{
    const LuaResult *result = result_check(L, 1);

    if (lua_getiuservalue(L, 1, RESULT_RECORD) == LUA_TNIL) {
        record_push(L, &result->result->record);
        lua_pushvalue(L, -1);
        lua_setiuservalue(L, 1, RESULT_RECORD);
    }
    return 1;
}

/* [-0, +1, v] */
static int result_params(lua_State *L)
{
    result_record(L);
    lua_getfield(L, -1, "params");
    return 1;
}

/* [-0, +1, v] */
static int result_figures(lua_State *L)
{
    const Run *run = result_check(L, 1)->result->run;

    lua_newtable(L);
    for (int i = 0; i < run->figure_count; i++) {
        if (run->figures[i].integer)
            lua_pushinteger(L, (lua_Integer)run->figures[i].value);
        else
            lua_pushnumber(L, run->figures[i].value);
        lua_setfield(L, -2, run->figures[i].name);
    }
    return 1;
}

/* [-0, +1, v] */
static int result_warnings(lua_State *L)
{
    const Record *record = &result_check(L, 1)->result->record;
    const char   *line = record->warnings ? record->warnings : "";

    lua_newtable(L);
    for (lua_Integer i = 1; *line; i++) {
        size_t length = strcspn(line, "\n");

        lua_pushlstring(L, line, length);
        lua_rawseti(L, -2, i);
        line += length + (line[length] == '\n');
    }
    return 1;
}

static void set_flops(lua_State *L, Flops flops)
{
    lua_newtable(L);
    lua_pushnumber(L, flops.score);
    lua_setfield(L, -2, "score");
    lua_pushnumber(L, flops.mix);
    lua_setfield(L, -2, "mix");
    lua_pushnumber(L, flops.overhead);
    lua_setfield(L, -2, "overhead");
    lua_pushnumber(L, flops.position);
    lua_setfield(L, -2, "position");
    lua_pushnumber(L, flops_total(flops));
    lua_setfield(L, -2, "total");
    lua_setfield(L, -2, "flops");
}

static void set_cells(lua_State *L, const Run *run)
{
    const View *view = run_view(run, "connectivity");
    double      cells = (double)run->h * (double)run->n * (double)run->m, allowed;

    if (!view || !view->support || pattern_queries(view->support) != run->n ||
        pattern_keys(view->support) != run->m)
        return;
    allowed = (double)pattern_count(view->support);
    if (!(allowed >= 0))
        return;
    lua_pushinteger(L, (lua_Integer)allowed);
    lua_setfield(L, -2, "nnz");
    lua_pushnumber(L, allowed / cells);
    lua_setfield(L, -2, "density");
}

/* Fields of the record, with the counts of this run.  [-0, +1, v] */
static int result_stats(lua_State *L)
{
    static const char *const shared[] = { "time_ms", "memory", "quality", "seeds", "tensors",
                                          "status", "threads", "device", NULL };
    const Result *result = result_check(L, 1)->result;

    result_record(L);
    lua_newtable(L);
    for (int i = 0; shared[i]; i++) {
        lua_getfield(L, -2, shared[i]);
        lua_setfield(L, -2, shared[i]);
    }
    lua_pushnumber(L, result->run_ms);
    lua_setfield(L, -2, "run_ms");
    set_flops(L, run_flops(result->run));
    set_cells(L, result->run);
    return 1;
}

/* ---- views ------------------------------------------------------------------ */

/* The latest view of each name. */
static bool is_latest(const Run *run, int i)
{
    return run_view(run, run->views[i].name) == &run->views[i];
}

/* [-0, +1, v] */
static int result_view_names(lua_State *L)
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
    const char *nearest = "none";
    int         best = 1 << 20;
    Error       err = ERROR_INIT;

    if (!view) /* a spectrum, a trace */
        view = result_derived(result->result, name, &err);
    if (view)
        return view;
    if (err.code != ERR_NONE)
        luaL_error(L, "%s", err.text);
    for (int i = 0; i < run->view_count; i++)
        if (text_distance(name, run->views[i].name) < best) {
            best = text_distance(name, run->views[i].name);
            nearest = run->views[i].name;
        }
    luaL_error(L, "%s has no view '%s' here; did you mean '%s'? (r:view_names() lists them)",
               run->mechanism->id, name, nearest);
    return NULL;
}

/* A whole view.  [-0, +1 or 3, v] */
static int push_whole(lua_State *L, const LuaResult *result, const View *view)
{
    int64_t    limit = result->result->request.memory_limit;
    LuaTensor *tensor;
    Arena     *arena;
    Tensor     t;
    Error      err = ERROR_INIT;

    if (view->tensor.data) {
        tensor_push_shared(L, view->tensor, result->keep, true);
        return 1;
    }
    tensor = tensor_push_closed(L);
    arena = arena_new();
    if (!arena)
        return luaL_error(L, "not enough memory");
    if (!view_materialise(view, arena, limit ? limit : VIEW_LIMIT, &t, &err)) {
        arena_free(arena);
        return failure(L, &err);
    }
    if (!tensor_adopt(tensor, t, arena))
        return luaL_error(L, "not enough memory");
    account(L, tensor_bytes(&t));
    return 1;
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
static int push_part(lua_State *L, const View *view, int64_t plane)
{
    Region  region = check_region(L, 4, view_rows(view), view_cols(view));
    int64_t shape[2] = { region.row1 - region.row0, region.col1 - region.col0 };
    Tensor *out = tensor_push(L, DT_F32, 2, shape);
    Error   err = ERROR_INIT;

    if (!view_read_rect(view, plane, region.row0, shape[0], region.col0, shape[1],
                        tensor_f32(out), &err))
        return failure(L, &err);
    return 1;
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
static int result_view_of(lua_State *L)
{
    const LuaResult *result = result_check(L, 1);
    const Run       *run = result->result->run;
    const View      *view = check_view(L, result, luaL_checkstring(L, 2));

    lua_settop(L, 4);
    if (lua_isnil(L, 3) && lua_isnil(L, 4))
        return push_whole(L, result, view);
    return push_part(L, view, check_plane(L, 3, run, view));
}

/* r.views[name]: upvalue 1 is the result.  [-0, +1, v] */
static int views_index(lua_State *L)
{
    const LuaResult *result = result_check(L, lua_upvalueindex(1));
    const View      *view = check_view(L, result, luaL_checkstring(L, 2));

    if (push_whole(L, result, view) != 1)
        return luaL_error(L, "%s; r:view(name, head, region) makes a part of it",
                          lua_tostring(L, -2));
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -2);
    lua_rawset(L, 1);
    return 1;
}

/* A table that makes a view when it is first asked for it.  [-0, +1, v] */
static int result_views(lua_State *L)
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

/* ---- stages ----------------------------------------------------------------- */

static void set_step_views(lua_State *L, const Step *step)
{
    const View *views[RUN_MAX_VIEWS];
    int         count = step_views(step, views, RUN_MAX_VIEWS);

    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushstring(L, views[i]->name);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "views");
}

static void set_traces(lua_State *L, const Run *run, int step)
{
    lua_newtable(L);
    for (int i = 0; i < run->trace_count; i++)
        if (run->traces[i].step == step) {
            lua_pushnumber(L, run->traces[i].value);
            lua_setfield(L, -2, run->traces[i].name);
        }
    lua_setfield(L, -2, "traces");
}

static void push_step(lua_State *L, const Step *step)
{
    const Stage *stage = step->stage;

    lua_newtable(L);
    lua_pushstring(L, stage->name);
    lua_setfield(L, -2, "name");
    if (stage->iteration >= 0) {
        lua_pushinteger(L, stage->iteration);
        lua_setfield(L, -2, "iteration");
    }
    if (step->note) {
        lua_pushstring(L, step->note);
        lua_setfield(L, -2, "note");
    }
    set_flops(L, stage->flops);
    lua_pushinteger(L, stage->arena_peak);
    lua_setfield(L, -2, "arena_peak");
    set_step_views(L, step);
    set_traces(L, step->run, step->at);
    if (stage->said) {
        lua_pushstring(L, stage->said);
        lua_setfield(L, -2, "said");
    }
    lua_pushboolean(L, step->run != step->result->run);
    lua_setfield(L, -2, "replay");
}

/* [-0, +1, v] */
static int result_stages(lua_State *L)
{
    Result *result = result_check(L, 1)->result;
    Step    step;

    lua_createtable(L, result_steps(result), 0);
    for (int i = 0; result_step(result, i, &step); i++) {
        push_step(L, &step);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* ---- tables ----------------------------------------------------------------- */

static const luaL_Reg result_meta[] = {
    { "__gc", result_close }, { "__close", result_close }, { "__tostring", result_describe },
    { "__len", result_length }, { NULL, NULL },
};

static const Member result_members[] = {
    { "output", result_output, NULL, "attnscope.Tensor", "[h,n,e], read only" },
    { "views", result_views, NULL, "table<string, attnscope.Tensor>", "made when asked for" },
    { "params", result_params, NULL, "table<string, any>", "every parameter as it was bound" },
    { "stats", result_stats, NULL, "table",
      "run_ms, flops{score,mix,overhead,position,total}, nnz, density, time_ms, memory, quality" },
    { "record", result_record, NULL, "attnscope.Record", "as `attnscope run --json` prints it" },
    { "mechanism", result_mechanism, NULL, "string", "its id" },
    { "text", result_text, NULL, "string", "mechanism and parameters as on a command line" },
    { "input", result_input, NULL, "attnscope.Input", "what it ran on" },
    { "figures", result_figures, NULL, "table<string, number>", "the mechanism's own numbers" },
    { "warnings", result_warnings, NULL, "string[]", "what the run warned of" },
    { "view_names", result_view_names, "", "string[]", "Names of the views there are." },
    { "view", result_view_of,
      "name: string, head?: integer, region?: integer[]|{ q: integer[], k: integer[] }",
      "attnscope.Tensor?, string?, string?",
      "A whole view; or one head's matrix, or the part {q0, q1, k0, k1} of it, as f32." },
    { "cell", result_cell, "q: integer, k: integer, head?: integer", "attnscope.Cell",
      "Why: allowed, components, weight, rank (1 is the largest), below (log of the row's top "
      "weight over it), score before the softmax (own_score: the row's weights are its softmax), "
      "share and length of what it adds to the output, exact {weight, rank, keys} of exact "
      "attention, and the value of every view." },
    { "row", result_row, "q: integer, head?: integer", "attnscope.RowEntry[]",
      "The keys query q may see: {k, weight, components} each." },
    { "stages", result_stages, "", "attnscope.StageEntry[]",
      "Steps of the algorithm: name, iteration, note, flops, arena_peak, views, traces; behind "
      "them those of its replay (replay = true), with what each said." },
    { "save_steps", result_save_steps, "path: string, options?: attnscope.SaveOptions",
      "true?, string?, string?",
      "What the steps make: side by side (.png, .svg, ...), one after the other (.apng), or a "
      "file each (steps-%02d.png)." },
    { "compare", result_compare, "other: attnscope.Result", "attnscope.Comparison",
      "max_abs, mean_abs, rel_l2 of the outputs (relative to the other's); total_variation of "
      "the weights." },
    { "reach", result_reach_method, "options?: attnscope.ReachOptions",
      "table?, string?, string?",
      "What reaches what through layers of this: depths {layers, pairs, share, least, mean, most} "
      "from 0 layers on, full, fixed, mean_hops." },
    { "missed", result_missed_method, "options?: attnscope.MissedOptions",
      "table?, string?, string?",
      "Which of the strongest keys of exact attention were found: keys, found, mass, ranked, "
      "rounds {alone, together}, heads {found, mass}, queries [h,n]." },
    { "reach_path", result_reach_path,
      "q: integer, k: integer, options?: attnscope.ReachOptions", "integer[]?, string?, string?",
      "A shortest way from query q down to token k; nil when it is not reached." },
    { "close", result_close, "", "", "Lets go of it now; its tensors stay." },
    MEMBER_END,
};

const Class class_result = {
    .name = "Result",
    .help = "A finished run of a mechanism.",
    .members = result_members,
    .meta = result_meta,
    .operators = "---@operator len: integer\n",
};
