/* result.c -- a finished run in Lua: output, views, numbers.
 *
 * Views are made when they are asked for.  Tensors of a run point into its memory and keep it
 * alive, also after r:close().
 */
#include <string.h>

#include "app/result/steps.h"
#include "profile/measure.h"
#include "script/host/binding.h"
#include "script/host/work.h"

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

FIELD_GETTER(result_length, lua_pushinteger, result_check(L, 1)->result->run->n)

/* ---- fields ----------------------------------------------------------------- */

/* [-0, +1, v] */
static int result_output(lua_State *L)
{
    const LuaResult *result = result_check(L, 1);

    tensor_push_shared(L, result->result->run->out, result->keep, true);
    return 1;
}

FIELD_GETTER(result_mechanism, lua_pushstring, result_check(L, 1)->result->run->mechanism->id)

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
    field_number(L, "score", flops.score);
    field_number(L, "mixing", flops.mix);
    field_number(L, "overhead", flops.overhead);
    field_number(L, "position", flops.position);
    field_number(L, "total", flops_total(flops));
    lua_setfield(L, -2, "flops");
}

void result_set_cells(lua_State *L, const Run *run)
{
    const View *view = run_view(run, "connectivity");
    double      cells = (double)run->h * (double)run->n * (double)run->m, allowed;

    if (!view || !view->support || pattern_queries(view->support) != run->n ||
        pattern_keys(view->support) != run->m)
        return;
    allowed = (double)pattern_count(view->support);
    if (!(allowed >= 0))
        return;
    field_integer(L, "nnz", (int64_t)allowed);
    field_number(L, "density", allowed / cells);
}

/* Fields of the record, with the counts of this run.  [-0, +1, v] */
static int result_stats(lua_State *L)
{
    static const char *const shared[] = { "time_ms", "memory",  "bytes",  "quality", "seeds",
                                          "decode",  "tensors", "status", "threads", "device",
                                          NULL };
    const Result *result = result_check(L, 1)->result;

    result_record(L);
    lua_newtable(L);
    for (int i = 0; shared[i]; i++) {
        lua_getfield(L, -2, shared[i]);
        lua_setfield(L, -2, shared[i]);
    }
    field_number(L, "run_ms", result->run_ms);
    set_flops(L, run_flops(result->run));
    result_set_cells(L, result->run);
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
        if (run->traces[i].step == step)
            field_number(L, run->traces[i].name, run->traces[i].value);
    lua_setfield(L, -2, "traces");
}

static void push_step(lua_State *L, const Step *step)
{
    const Stage *stage = step->stage;

    lua_newtable(L);
    field_string(L, "name", stage->name);
    if (stage->iteration >= 0)
        field_integer(L, "iteration", stage->iteration);
    field_string(L, "note", step->note);
    set_flops(L, stage->flops);
    field_integer(L, "arena_peak", stage->arena_peak);
    set_step_views(L, step);
    set_traces(L, step->run, step->at);
    field_string(L, "said", stage->said);
    if (stage->said || step->note)
        field_string(L, "caption", stage->said ? stage->said : step->note);
    field_bool(L, "replay", step->run != step->result->run);
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

static int result_compare(lua_State *L);

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
      "run_ms; flops {score, mixing, overhead, position, total}; nnz, density; threads, bytes; "
      "time_ms {median, q1, q3, min, ...} and memory {arena_peak, ...} where they were taken; "
      "quality" },
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
    { "steps", NULL, "", "fun(): attnscope.StageEntry?",
      "The same one after the other: for step in r:steps() do print(step.name) end" },
    { "save_steps", result_save_steps, "path: string, options?: attnscope.SaveOptions",
      "true?, string?, string?",
      "What the steps make: side by side (.png, .svg, ...), one after the other (.apng), or a "
      "file each (steps-%02d.png)." },
    { "compare", result_compare, "other: attnscope.Result",
      "attnscope.Comparison?, string?, string?",
      "max_abs, mean_abs, rel_l2 of the outputs (relative to the other's); total_variation and kl "
      "of the weights, or kl_lacks." },
    { "pattern", result_pattern, "", "attnscope.Pattern?, string?, string?",
      "The cells that queries may see, to be run again, compared, changed or drawn." },
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

KEEP_OBJECT(result_keep, LuaResult)

const Class class_result = {
    .name = "Result",
    .help = "A finished run of a mechanism.",
    .members = result_members,
    .meta = result_meta,
    .operators = "---@operator len: integer\n",
    .instead = "a run is finished, attn.run makes another",
    .keep = result_keep,
};

/* Comparison of two results. */

typedef struct Compared {
    const Run *a, *b;
    Difference difference;
} Compared;

static bool compare_runs(void *context, const atomic_bool *cancel, Error *err)
{
    Compared *c = context;

    return runs_differ(c->a, c->b, cancel, &c->difference, err);
}

static int push_difference(lua_State *L, int status, lua_KContext at)
{
    const Difference *d = &((Compared *)work_context(L, at))->difference;
    Error             err;

    (void)status;
    if (!work_ended(L, at, &err))
        return err.code == ERR_USAGE ? luaL_argerror(L, 2, err.text) : failure(L, &err);
    lua_newtable(L);
    field_known(L, "max_abs", number_of(d->max_abs));
    field_known(L, "mean_abs", number_of(d->mean_abs));
    field_known(L, "rel_l2", number_of(d->rel_l2));
    field_known(L, "total_variation", d->total_variation);
    field_known(L, "kl", d->kl);
    field_string(L, "kl_lacks", d->kl_lacks);
    return 1;
}

/* [-0, +1 or 3, v] */
static int result_compare(lua_State *L)
{
    const LuaResult *a = result_check(L, 1), *b = result_check(L, 2);
    Compared        *c;

    lua_settop(L, 2);
    c = lua_newuserdatauv(L, sizeof(*c), 0);
    *c = (Compared){ .a = a->result->run, .b = b->result->run };
    return work_await_end(L, a->session, "comparing two results", compare_runs, push_difference);
}
