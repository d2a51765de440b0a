/* run.c -- attn.run and attn.profile: a table of options becomes a Request.
 *
 * Keys that are not options of a run are the mechanism's or the position's own
 * parameters.  The run is a job of the session's worker, so that SIGINT can
 * cancel it.
 */
#include "attn/run/position.h"
#include "script/host/binding.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>


/* ---- the request ------------------------------------------------------------ */

#define REQUEST_BOX "attnscope.request"

static int request_box_close(lua_State *L)
{
    request_free(luaL_checkudata(L, 1, REQUEST_BOX));
    return 0;
}

Request *request_push(lua_State *L)
{
    Request *request = box_push(L, sizeof(*request), 0, REQUEST_BOX, request_box_close, NULL);

    *request = REQUEST_INIT;
    return request;
}

/* The value at the top as it is written on a command line.  [-0, +1, v] */
static void push_written(lua_State *L, const char *name)
{
    luaL_Buffer text;
    int         value = lua_gettop(L);

    if (!lua_istable(L, value)) {
        if (lua_isuserdata(L, value) || lua_isfunction(L, value) || lua_isnil(L, value))
            luaL_error(L, "parameter %s: expected a number, text, boolean, list or Tensor, got %s",
                       name, luaL_typename(L, value));
        luaL_tolstring(L, value, NULL);
        return;
    }
    luaL_buffinit(L, &text);
    luaL_addchar(&text, '[');
    for (lua_Integer i = 1, count = (lua_Integer)lua_rawlen(L, value); i <= count; i++) {
        if (i > 1)
            luaL_addchar(&text, ',');
        lua_rawgeti(L, value, i);
        luaL_tolstring(L, -1, NULL);
        lua_remove(L, -2);
        luaL_addvalue(&text);
    }
    luaL_addchar(&text, ']');
    luaL_pushresult(&text);
}

/* luaL_tolstring writes 1e+20 and 0.1 as %.14g; numbers keep all digits. */
static void push_exact(lua_State *L, const char *name)
{
    char number[40];

    if (lua_type(L, -1) != LUA_TNUMBER || lua_isinteger(L, -1)) {
        push_written(L, name);
        return;
    }
    snprintf(number, sizeof(number), "%.17g", lua_tonumber(L, -1));
    lua_pushstring(L, number);
}

/* The parameter whose value is at the top; false: its file was refused.  [-0, +0, v] */
static bool set_parameter(lua_State *L, Session *s, Request *request, const char *name, Error *err)
{
    const LuaTensor *tensor = class_test(L, -1, &class_tensor);
    int              top = lua_gettop(L);
    bool             ok;

    if (tensor) {
        const Tensor *t = tensor_check(L, -1);

        if (!tensor_contiguous(t))
            t = tensor_push_copy(L, t, t->dtype);
        ok = request_set_tensor(s, request, name, t, err);
    } else {
        push_exact(L, name);
        lua_pushfstring(L, "%s=%s", name, lua_tostring(L, -1));
        ok = request_set(s, request, lua_tostring(L, -1), err);
    }
    lua_settop(L, top);
    return ok;
}

/* Whether the layer of this request takes a parameter of this name. */
static bool is_parameter(const Request *request, const char *name)
{
    const Mechanism *m = mechanism_find(request->mechanism);

    return !strncmp(name, "pos_", 4) || m->free_tensors ||
           mechanism_param(m, &request->given, name);
}

/* Whether some layer's mechanism has a parameter of this name; it hides the run's option
 * `precision`. */
static bool names_parameter(const Request *request, const char *name)
{
    for (; request; request = request->above)
        if (mechanism_param(mechanism_find(request->mechanism), &request->given, name))
            return true;
    return false;
}

static bool is_option(const Request *request, const char *name)
{
    return class_has(&class_run_options, name) &&
           (strcmp(name, "precision") != 0 || !names_parameter(request, name));
}

/* Raises for a key that is neither option nor parameter, with the nearest name. */
static void unknown_key(lua_State *L, const Request *request, const char *name)
{
    const Mechanism *m = mechanism_find(request->mechanism);
    Meant            nearest = { name, NULL, ANY_SLIPS };

    meant_offer(&nearest, class_nearest(&class_run_options, name));
    for (const Param *p = m->params; p && p->name; p++)
        meant_offer(&nearest, p->name);
    luaL_error(L, "%s has no parameter '%s', and it is no option of a run; did you mean '%s'?",
               m->id, name, nearest.name);
}

/* Sets the value at the top in every layer of the stack that has the parameter; at least one must.
 * [-0, +0, v] */
static bool set_in_layers(lua_State *L, Session *s, Request *request, const char *name, Error *err)
{
    bool any = false;

    for (Request *layer = request; layer; layer = layer->above)
        if (is_parameter(layer, name)) {
            if (!set_parameter(L, s, layer, name, err))
                return false;
            any = true;
        }
    if (!any)
        unknown_key(L, request, name);
    return true;
}

/* Sets the parameters of the table at `t`; options: the table may hold options, which are
 * skipped. */
static bool set_parameters(lua_State *L, int t, Session *s, Request *request, bool options,
                           Error *err)
{
    for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;

        if (!name)
            luaL_error(L, "parameters are named, like window=5, but a key is a %s",
                       luaL_typename(L, -2));
        else if (options && is_option(request, name))
            continue;
        else if (!set_in_layers(L, s, request, name, err))
            return false;
    }
    return true;
}

static void set_position(lua_State *L, int t, Request *request)
{
    const char     *name = option_string(L, t, "position", "none");
    const Position *position;
    Error           err = ERROR_INIT;

    check_ok(L, position_parse(name, &position, &err), &err);
    snprintf(request->position, sizeof(request->position), "%s", name);
}

void request_set_options(lua_State *L, int t, Request *request)
{
    const Script *script = script_of(L);

    set_position(L, t, request);
    request->causal = option_tristate(L, t, "causal");
    request->seed = (uint64_t)option_integer(L, t, "seed", (int64_t)script->seed, 0, INT64_MAX);
    request->fit = option_bool(L, t, "fit", false);
    request->keys = (int)option_integer(L, t, "keys", 0, 1, MISSED_MOST);
    request->memory_limit = option_integer(L, t, "memory", 0, 1, INT64_MAX);
    request->threads = (int)option_integer(L, t, "threads", script->threads, 0, 4096);
    request->repeat = (int)option_integer(L, t, "repeat", 0, 1, 1000000);
    request->width = option_number(L, t, "within", 0);
    if (request->width < 0 || request->width >= 1)
        luaL_error(L, "within: expected a share of the median from 0 to 1, got %f",
                   request->width);
    request->decode = option_bool(L, t, "decode", false);
    request->measure = option_bool(L, t, "measure", request->repeat > 0 || request->width > 0 ||
                                                    request->decode);
    request->seeds = (int)option_integer(L, t, "seeds", 0, 1, 100000);
    request->per_head = option_bool(L, t, "per_head", false);
    request->quality_rows = option_integer(L, t, "quality_rows", 0, 2, INT32_MAX);
    request->quality = option_bool(L, t, "quality", request->seeds > 1 || request->per_head ||
                                                    request->quality_rows);
}

bool request_set_place(lua_State *L, int t, Session *s, Request *request, Error *err)
{
    const Call *given = &script_of(L)->options;
    const char *device = option_string(L, t, "device", given->values[OPT_DEVICE]);
    const char *precision = NULL;

    if (!names_parameter(request, "precision"))
        precision = option_string(L, t, "precision", given->values[OPT_PRECISION]);
    return request_device(s, request, device, precision, err);
}

/* The parameters of the mechanism, or of the layers that have them.  [-0, +0, v] */
static bool fill_request(lua_State *L, int t, Session *s, Request *request, Error *err)
{
    int  top = lua_gettop(L);
    bool ok = set_parameters(L, t, s, request, true, err);

    lua_settop(L, top);
    if (ok && lua_getfield(L, t, "params") != LUA_TNIL) {
        if (!lua_istable(L, -1))
            luaL_error(L, "params: expected a table, got %s", luaL_typename(L, -1));
        ok = set_parameters(L, lua_gettop(L), s, request, false, err);
    }
    lua_settop(L, top);
    return ok;
}

/* ---- running ---------------------------------------------------------------- */

/* Waits until the job ends; SIGINT cancels the job. */
static void wait_for(Session *s, Job *job)
{
    struct pollfd wake = { .fd = session_wake_fd(s), .events = POLLIN };
    char          bytes[64];
    JobState      state;

    while ((state = job_state(job)) == JOB_WAITING || state == JOB_RUNNING) {
        poll(&wake, 1, 100);
        while (read(wake.fd, bytes, sizeof(bytes)) > 0)
            continue;
        if (script_interrupted()) {
            job_cancel(job);
            job_wait(job);
        }
    }
}

/* Runs the request as a job that SIGINT cancels.  Calls no Lua, so no longjmp skips the job's
 * cleanup. */
static Result *request_run(lua_State *L, Session *s, const Request *request, Error *err)
{
    Script *script = script_of(L);
    Job    *job = NULL;
    Result *result;
    int     depth;

    if (script->run) /* that run occupies the worker */
        error_set(err, ERR_UNSUPPORTED, "%s: a mechanism cannot start runs while it runs",
                  script->run->mechanism->id);
    else
        job = session_submit(s, request, err);
    if (!job)
        return NULL;
    depth = script_release(script);
    wait_for(s, job);
    script_resume(script, depth);
    result = job_result(job);
    if (!result && job_state(job) == JOB_CANCELLED)
        error_set(err, ERR_CANCELLED, "%s: interrupted", request->mechanism);
    else if (!result)
        *err = *job_error(job);
    job_free(job);
    return result;
}

/* A run that fails is no misuse of the API: ERR_USAGE raises no error here. */
static int run_failure(lua_State *L, Error err)
{
    if (err.code == ERR_USAGE)
        err.code = ERR_UNSUPPORTED;
    return failure(L, &err);
}

static void drop_result(void *result)
{
    result_release(result);
}

/* Keeps the input at the top alive until the caller returns, even if a callback closes it; the
 * pin lies below it.  [-0, +1, v] */
static const LuaInput *push_pin(lua_State *L)
{
    const LuaInput *input = input_check(L, lua_gettop(L));
    LuaInput       *pin = class_push(L, &class_input, sizeof(*pin), 0);

    *pin = *input;
    keep_retain(pin->keep);
    lua_insert(L, -2);
    return pin;
}

int request_prepare(lua_State *L, Request **request)
{
    const LuaInput *input = push_pin(L);
    Error           err = ERROR_INIT;

    *request = request_push(L);
    request_set_options(L, 2, *request);
    if (!request_parse(input->session, *request, check_text(L, 1), &err))
        return failure(L, &err);
    if (!request_set_place(L, 2, input->session, *request, &err)) {
        check_ok(L, err.code == ERR_UNSUPPORTED, &err);
        return failure(L, &err);
    }
    return fill_request(L, 2, input->session, *request, &err) ? 1 : failure(L, &err);
}

LuaResult *result_push_closed(lua_State *L)
{
    return class_push(L, &class_result, sizeof(LuaResult), RESULT_VALUES);
}

int result_fill(lua_State *L, LuaResult *out, int at, Keep *below, Result *result,
                const Error *err)
{
    int count;

    if (!result)
        return failure(L, err);
    out->result = result;
    out->keep = keep_new(out->result, drop_result, below);
    if (!out->keep)
        return luaL_error(L, "not enough memory");
    out->session = below->thing;
    lua_pushvalue(L, at);
    lua_setiuservalue(L, -2, RESULT_INPUT);
    account(L, arena_used(out->result->run->arena));
    if (out->result->run->err.code == ERR_NONE)
        return 1;
    count = run_failure(L, out->result->run->err);
    record_push(L, &out->result->record);
    return count + 1;
}

/* The result of arguments 1 and 2 on the input at the top, or a failure's values; a failed run
 * leaves its record as a fourth.  [-0, +1, 3 or 4, v] */
static int push_result(lua_State *L)
{
    Request   *request;
    LuaResult *out;
    Error      err = ERROR_INIT;
    int        count = request_prepare(L, &request), at = lua_gettop(L) - 1;
    Keep      *below;

    if (count != 1)
        return count;
    below = ((LuaInput *)lua_touserdata(L, at - 1))->keep; /* of the pin */
    out = result_push_closed(L);
    return result_fill(L, out, at, below, request_run(L, below->thing, request, &err), &err);
}

void run_check_arguments(lua_State *L)
{
    lua_settop(L, 2);
    pattern_argument(L);
    check_text(L, 1);
    if (!lua_isnoneornil(L, 2))
        luaL_checktype(L, 2, LUA_TTABLE);
    options_check(L, 2, &class_run_options);
    lua_settop(L, 2);
}

static int run_loaded(lua_State *L, int status, lua_KContext unused)
{
    (void)status;
    (void)unused;
    return push_result(L);
}

/* [-0, +1, 3 or 4, v] */
int attn_run(lua_State *L)
{
    run_check_arguments(L);
    return input_await(L, 2, run_loaded);
}

/* Argument 3 goes into a copy of the options.  [-0, +0, v] */
static void merge_plan(lua_State *L)
{
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, -5);
    }
    field_integer(L, "repeat", 7);
    for (int t = 2; t <= 3; t++) {
        if (lua_getfield(L, t, "repeat") == LUA_TNIL)
            lua_pop(L, 1);
        else
            lua_setfield(L, -2, "repeat");
    }
    lua_replace(L, 2);
}

static int profile_loaded(lua_State *L, int status, lua_KContext unused)
{
    int              count = push_result(L);
    const LuaResult *result;

    (void)status;
    (void)unused;
    if (count != 1)
        return count;
    result = class_check(L, -1, &class_result);
    record_push(L, &result->result->record);
    result_set_cells(L, result->result->run);
    return 1;
}

/* [-0, +1, 3 or 4, v] */
int attn_profile(lua_State *L)
{
    lua_settop(L, 3);
    options_check(L, 3, &class_compare_options);
    pattern_argument(L);
    check_text(L, 1);
    options_check(L, 2, &class_run_options);
    lua_settop(L, 3);
    merge_plan(L);
    return input_await(L, 2, profile_loaded);
}

/* ---- tables ----------------------------------------------------------------- */

static const Member run_members[] = {
    FIELD("input", "attnscope.Input|string",
          "default: --input; else synthetic:normal of n; else the shipped sample"),
    FIELD("n", "integer", "length, of an input given by name"),
    FIELD("d", "integer", "head size, of a generated input"),
    FIELD("heads", "integer", "heads, of a generated input"),
    FIELD("layer", "integer", "layer, of a file given by name"),
    FIELD("causal", "boolean", "default: as the input says"),
    FIELD("position", "string", "positional modifier; see attn.positions"),
    FIELD("seed", "integer", "seed of every random draw"),
    FIELD("fit", "boolean", "fit the mechanism's own tensors on the input"),
    FIELD("keys", "integer", "strongest ones the view missed looks for (default 8)"),
    FIELD("device", "string",
          "\"cpu\" (default), \"cuda\", or \"auto\": a GPU where one can be used"),
    FIELD("precision", "string",
          "of matrix products on a GPU: \"f32\" (default), \"tf32\", \"bf16\" or \"f16\""),
    FIELD("threads", "integer", "default: all CPUs"),
    FIELD("memory", "integer",
          "limit of the run in bytes (default: half of what the machine, or its control group, "
          "gives, less where little of it is left)"),
    FIELD("repeat", "integer", "timed runs at least, and as many as 0.2 s hold; 1: as none"),
    FIELD("within", "number", "repeat until the median is known to +- this share"),
    FIELD("measure", "boolean", "take time and memory in runs of their own"),
    FIELD("quality", "boolean", "compare with full attention"),
    FIELD("decode", "boolean",
          "cost and time of one token more: the record's decode; implies causal"),
    FIELD("quality_rows", "integer",
          "compare so many rows of each head, drawn, instead of all: means with 95 % intervals"),
    FIELD("per_head", "boolean", "quality of each head alone, too: the record's quality.heads"),
    FIELD("seeds", "integer", "quality over so many seeds, from `seed` on"),
    FIELD("views", "string[]",
      "to be made with the run, also those that it makes only when asked for; one that it does not "
      "have raises"),
    FIELD("params", "table<string, any>",
          "parameters of the mechanism, for names that are options too"),
    MEMBER_END,
};
const Class class_run_options = {
    .name = "RunOptions",
    .help = "How to run; other keys are the mechanism's own parameters.",
    .members = run_members,
    .open = true,
};

static const Member compare_members[] = {
    FIELD("repeat", "integer", "timed runs at least (default 7)"),
    MEMBER_END,
};
const Class class_compare_options = { .name = "ProfileOptions", .help = "How to measure.",
                                      .members = compare_members };
