/* lua_sweep.c -- attn.fit, and the options of attn.sweep, which the prelude turns into the
 * words of the command. */
#include <math.h>
#include <string.h>

#include "profile/statistics.h"
#include "script/host/lua_work.h"

/* Numbers of the list at `arg`, FIT_MOST at most.  [-0, +0, v] */
static int take_numbers(lua_State *L, int arg, double *out)
{
    lua_Integer count;

    luaL_checktype(L, arg, LUA_TTABLE);
    count = luaL_len(L, arg);
    luaL_argcheck(L, count <= FIT_MOST, arg, "a fit takes at most 256 points");
    for (lua_Integer i = 0; i < count; i++) {
        lua_rawgeti(L, arg, i + 1);
        if (lua_type(L, -1) != LUA_TNUMBER)
            return luaL_error(L, "fit: point %d is a %s, not a number", (int)i + 1,
                              luaL_typename(L, -1));
        out[i] = lua_tonumber(L, -1);
        lua_pop(L, 1);
    }
    return (int)count;
}

/* Absent when it is not known.  [-0, +0, m] */
static void set_number(lua_State *L, const char *key, Number value)
{
    if (!value.valid)
        return;
    lua_pushnumber(L, value.value);
    lua_setfield(L, -2, key);
}

static void set_models(lua_State *L, const Fit *fit)
{
    lua_createtable(L, 0, FIT_MODELS);
    for (FitModel m = FIT_CONSTANT; m < FIT_MODELS; m++)
        set_number(L, fit_model_name(m), fit->rms[m]);
    lua_setfield(L, -2, "models");
    lua_pushstring(L, fit_model_name(fit->best));
    lua_setfield(L, -2, "best");
}

static const Alias fit_names[] = { { "local_alpha", "slopes" }, { "best_model", "best" },
                                   { NULL, NULL } };

/* model: whose factor and r2 are told; FIT_MODELS: those of the free exponent.  [-0, +1, m] */
static void push_fit(lua_State *L, const Fit *fit, FitModel model)
{
    bool free = model == FIT_MODELS;

    lua_createtable(L, 0, 12);
    set_number(L, "alpha", fit->alpha);
    set_number(L, "lo", fit->lo);
    set_number(L, "hi", fit->hi);
    set_number(L, "stderr", fit->deviation.valid ? fit->deviation : number_of((double)NAN));
    set_number(L, "c", free ? fit->c : fit->factor[model]);
    set_number(L, "r2", free ? fit->r2 : fit->explained[model]);
    lua_pushstring(L, free ? "power" : fit_model_name(model));
    lua_setfield(L, -2, "model");
    lua_pushinteger(L, fit->count);
    lua_setfield(L, -2, "count");
    set_models(L, fit);
    lua_createtable(L, fit->locals, 0);
    for (int i = 0; i < fit->locals; i++) {
        lua_pushnumber(L, fit->local[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "slopes");
    names_set(L, fit_names);
}

/* "linear", "nlogn", "n^1.5": FIT_MODELS is the free exponent.  [-0, +0, v] */
static FitModel check_model(lua_State *L, const char *name)
{
    static const struct {
        const char *name;
        FitModel    model;
    } words[] = { { "power", FIT_MODELS },      { "constant", FIT_CONSTANT }, { "log", FIT_LOG },
                  { "linear", FIT_LINEAR },     { "nlogn", FIT_NLOGN },
                  { "quadratic", FIT_SQUARE } };
    Meant nearest = { name, "power", 3 };

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (!strcmp(words[i].name, name))
            return words[i].model;
        meant_offer(&nearest, words[i].name);
    }
    for (FitModel m = FIT_CONSTANT; m < FIT_MODELS; m++)
        if (!strcmp(fit_model_name(m), name))
            return m;
    luaL_error(L, "model: expected power, constant, log, linear, nlogn, n^1.5 or quadratic, got "
               "'%s'; did you mean '%s'?", name, nearest.name);
    return FIT_MODELS;
}

typedef struct Fitting {
    double  x[FIT_MOST], y[FIT_MOST];
    int     count;
    FitPlan plan;
    Fit     fit;
    FitModel model;
} Fitting;

static bool fit_points(void *context, const atomic_bool *cancel, Error *err)
{
    Fitting *f = context;

    (void)cancel;
    return fit_power(f->x, f->y, f->count, &f->plan, &f->fit, err);
}

static int push_fitted(lua_State *L, int status, lua_KContext at)
{
    const Fit *fit = &((Fitting *)work_context(L, at))->fit;
    Error      err;

    (void)status;
    if (!work_ended(L, at, &err))
        return failure(L, &err);
    if (fit->count < 2)
        return luaL_error(L, "fit: expected at least 2 points with x > 0 and y > 0, got %d",
                          fit->count);
    if (!fit->alpha.valid)
        return luaL_error(L, "fit: all x are the same");
    push_fit(L, fit, ((Fitting *)work_context(L, at))->model);
    return 1;
}

/* [-0, +1, v] */
int attn_fit(lua_State *L)
{
    Fitting *f;
    int      xs, ys;

    lua_settop(L, 3);
    options_check(L, 3, &class_fit_options);
    f = lua_newuserdatauv(L, sizeof(*f), 0);
    xs = take_numbers(L, 1, f->x);
    ys = take_numbers(L, 2, f->y);
    f->count = xs < ys ? xs : ys;
    f->plan = FIT_PLAN;
    f->plan.drop = (int)option_integer(L, 3, "drop", 0, 0, FIT_MOST);
    f->plan.boot = (int)option_integer(L, 3, "boot", f->plan.boot, 0, 100000);
    f->plan.over_log = option_bool(L, 3, "over_log", false);
    f->model = check_model(L, option_string(L, 3, "model", "power"));
    return work_await(L, script_of(L)->session->thing, "fitting a curve", fit_points, push_fitted);
}

static const Member fit_members[] = {
    { "drop", NULL, NULL, "integer", "leave out so many of the smallest x" },
    { "boot", NULL, NULL, "integer", "resamplings for the interval (default 1000; 0: none)" },
    { "over_log", NULL, NULL, "boolean", "fit y / log x: a claimed log does not count" },
    { "model", NULL, NULL, "string",
      "whose c and r2 are told: power (default: c x^alpha), constant, log, linear, nlogn, n^1.5 or "
      "quadratic; alpha is always the free exponent" },
    MEMBER_END,
};
const Class class_fit_options = { .name = "FitOptions",
                                  .help = "How to fit.",
                                  .members = fit_members };

#define VALUES "integer|string|integer[]"

static const Member sweep_members[] = {
    { "n", NULL, NULL, VALUES, "lengths: 512, {256, 512} or \"256:4096:x2\"" },
    { "mech", NULL, NULL, "string|string[]", "mechanisms, behind those of the list part" },
    { "params", NULL, NULL, "table<string, any>", "values of parameters: {window = {3, 5}}" },
    { "grid", NULL, NULL, "table<string, any>", "the same as params" },
    { "position", NULL, NULL, "string|string[]", "positional modifiers" },
    { "seed", NULL, NULL, "integer", "the first seed" },
    { "seeds", NULL, NULL, "integer|integer[]", "so many seeds; or these, one after the other" },
    { "threads", NULL, NULL, VALUES, "numbers of threads" },
    { "device", NULL, NULL, "string|string[]", "devices: cpu, cuda or auto" },
    { "precision", NULL, NULL, "string|string[]",
      "of matrix products on a GPU: f32, tf32, bf16, f16" },
    { "causal", NULL, NULL, "boolean", "default: as the input says" },
    { "input", NULL, NULL, "string", "a file, synthetic:NAME(args) or sample:NAME" },
    { "layer", NULL, NULL, "integer", "layer of a file" },
    { "d", NULL, NULL, "integer", "head size of a generated input" },
    { "heads", NULL, NULL, "integer", "heads of a generated input" },
    { "reps", NULL, NULL, "integer", "timed runs at least" },
    { "within", NULL, NULL, "number|string", "repeat until the median is known to +- this share" },
    { "quality", NULL, NULL, "boolean", "compare with full attention" },
    { "fit", NULL, NULL, "boolean", "fit the mechanisms' own tensors on the input" },
    { "memory", NULL, NULL, "integer|string", "limit of a run: bytes or \"8G\"" },
    { "max_mem", NULL, NULL, "integer|string", "the same as memory" },
    { "budget", NULL, NULL, "number|string", "seconds, or \"10m\"; what is left is a record" },
    { "budget_s", NULL, NULL, "number", "the same in seconds" },
    { "shard", NULL, NULL, "string", "\"2/8\": only the second of eight parts" },
    { "out", NULL, NULL, "string", "file of the records, which makes the sweep resumable" },
    { "resume", NULL, NULL, "boolean", "go on with what the file lacks" },
    { "row", NULL, NULL, "fun(record: attnscope.Record): attnscope.Record?",
      "sees each record before it is written, and may give another with the same key" },
    { "progress", NULL, NULL,
      "fun(done: integer, total: integer, record: attnscope.Record, left?: number): boolean?",
      "called after each point, with the seconds that are left, where they can be told; false "
      "ends the sweep" },
    MEMBER_END,
};

static const Member sweep_methods[] = {
    { "rows", NULL, "", "attnscope.Record[]", "The records: the sweep itself is their list." },
    { "filter", NULL, "f: fun(record: attnscope.Record): boolean", "attnscope.Sweep",
      "Those for which f gives true." },
    { "pivot", NULL, "down: string, across: string, value?: string", "table[], string[]",
      "attn.pivot of it: s:pivot(\"n\", \"mechanism\", \"time_ms.median\"); s:pivot(\"n\", "
      "\"time_ms\") has a column for each mechanism and setting." },
    { "csv", NULL, "target: string|file*, columns?: string[]", "true?, string?, string?",
      "attn.csv of it." },
    { "jsonl", NULL, "path: string", "true?, string?, string?",
      "Writes a record a line, as attn.read_sweep and the command fit read them." },
    MEMBER_END,
};
static const luaL_Reg sweep_meta[] = { { NULL, NULL } };
const Class class_sweep = { .name = "Sweep",
                            .help = "Records of a sweep: a list, with a few words on top.",
                            .members = sweep_methods,
                            .meta = sweep_meta };

const Class class_sweep_options = {
    .name = "SweepOptions",
    .help = "Axes and limits of a sweep; the list part names the mechanisms.",
    .members = sweep_members,
    .open = true,
};

static const Member roofline_members[] = {
    { "n", NULL, NULL, "integer", "length" },
    { "d", NULL, NULL, "integer", "head size of a generated input" },
    { "heads", NULL, NULL, "integer", "heads of a generated input" },
    { "input", NULL, NULL, "string", "a file, synthetic:NAME(args) or sample:NAME" },
    { "layer", NULL, NULL, "integer", "layer of a file" },
    { "causal", NULL, NULL, "boolean", "default: as the input says" },
    { "position", NULL, NULL, "string", "positional modifier" },
    { "seed", NULL, NULL, "integer", "of every random draw" },
    { "params", NULL, NULL, "table<string, any>", "parameters" },
    { "threads", NULL, NULL, "integer", "default: all CPUs" },
    { "reps", NULL, NULL, "integer", "timed runs at least" },
    { "within", NULL, NULL, "number|string", "repeat until the median is known to +- this share" },
    { "memory", NULL, NULL, "integer|string", "limit of a run: bytes or \"8G\"" },
    MEMBER_END,
};
const Class class_roofline_options = {
    .name = "RooflineOptions",
    .help = "What to measure; the list part names the mechanisms (default: full).",
    .members = roofline_members,
    .open = true,
};
