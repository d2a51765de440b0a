/* lua_plot.c -- see lua_plot.h. */
#include "script/api/lua_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "app/figure/machines.h"
#include "app/figure/picture_plot.h"
#include "script/host/lua_work.h"

#define CURVES_MOST 16

static void raise_unless(lua_State *L, bool ok, const Error *err)
{
    if (!ok)
        luaL_error(L, "%s", err->text);
}

/* ---- results ---------------------------------------------------------------- */

/* The results of `with` after the first; returns how many there are.  [-0, +0, v] */
static int take_others(lua_State *L, int t, LuaFigure *figure, Result **results)
{
    int     top = lua_gettop(L);
    int64_t count = 0;

    if (t && lua_getfield(L, t, "with") != LUA_TNIL) {
        luaL_checktype(L, -1, LUA_TTABLE);
        count = (int64_t)lua_rawlen(L, -1);
        if (count > PANEL_OVERLAYS)
            luaL_error(L, "with: at most %d results", PANEL_OVERLAYS);
        for (int64_t k = 1; k <= count; k++) {
            const LuaResult *other;

            lua_rawgeti(L, -1, k);
            other = result_check(L, lua_gettop(L));
            results[k] = other->result;
            figure->keeps[figure->keep_count++] = keep_retain(other->keep);
            lua_pop(L, 1);
        }
    }
    lua_settop(L, top);
    return 1 + (int)count;
}

bool plot_panel(lua_State *L, int t, Result *result, Session *s, const char *view,
                LuaFigure *figure, Panel *panel)
{
    const Ceilings *ceilings = NULL;
    Result         *results[1 + PANEL_OVERLAYS] = { result };
    Error           err = ERROR_INIT;
    PlotKind        kind;
    int             count;

    if (!plot_word(view, &kind, &err))
        return false;
    raise_unless(L, kind != PLOT_KINDS, &err);
    figure->results[figure->result_count++] = result;
    count = take_others(L, t, figure, results);
    if (plot_needs(kind) & NEEDS_CEILINGS) {
        ceilings = session_ceilings(s, result->request.ops, result->request.threads, &err);
        raise_unless(L, ceilings != NULL, &err);
    }
    raise_unless(L, picture_plot(kind, results, NULL, count, ceilings, panel, &err), &err);
    return true;
}

/* ---- ceilings ----------------------------------------------------------------- */

/* Those of one panel after the other. */
typedef struct Roofs {
    lua_KFunction then;
    lua_Integer   panel; /* from 1 on; those before have theirs */
    Session      *session;
    const Ops    *ops;
    int           threads;
    Ceilings      measured;
} Roofs;

/* It takes about a second and is not ended in the middle. */
static bool measure_roof(void *context, const atomic_bool *cancel, Error *err)
{
    Roofs   *r = context;
    Threads *threads = threads_new(r->threads > 0 ? r->threads : threads_hardware());
    bool     ok = ceilings_measure(r->ops, threads, &r->measured, err);

    (void)cancel;
    threads_free(threads);
    return ok;
}

/* The result of the panel at the top whose ceilings are to be measured; NULL: there is none. */
static const LuaResult *needs_roof(lua_State *L)
{
    const LuaResult *result = NULL;
    int              t = lua_gettop(L);
    PlotKind         kind;

    if (lua_istable(L, t) && lua_getfield(L, t, "view") == LUA_TSTRING &&
        plot_word(lua_tostring(L, -1), &kind, NULL) && kind != PLOT_KINDS &&
        plot_needs(kind) & NEEDS_CEILINGS && lua_getfield(L, t, "result") != LUA_TNIL)
        result = class_test(L, -1, &class_result);
    if (result && (!result->keep ||
                   session_known_ceilings(result->session, result->result->request.ops,
                                          result->result->request.threads)))
        result = NULL;
    return result;
}

static int next_roof(lua_State *L, Roofs *r);

static int keep_roof(lua_State *L, int status, lua_KContext at)
{
    Roofs *r = work_context(L, at);
    Error  err;

    (void)status;
    if (!work_ended(L, at, &err))
        return failure(L, &err);
    session_keep_ceilings(r->session, r->ops, r->threads, &r->measured);
    return next_roof(L, r); /* the work stays: it is still to be closed */
}

/* The options at 1, the list of panels at 2, r at 3. */
static int next_roof(lua_State *L, Roofs *r)
{
    int top = lua_gettop(L);

    luaL_checkstack(L, 12, "too many panels");
    while (r->panel++ < luaL_len(L, 2)) {
        const LuaResult *result;

        lua_geti(L, 2, r->panel);
        result = needs_roof(L);
        if (result) {
            r->session = result->session;
            r->ops = result->result->request.ops;
            r->threads = result->result->request.threads;
            lua_pushvalue(L, 3);
            return work_await(L, script_of(L)->session->thing, "measuring this machine's ceilings",
                              measure_roof, keep_roof);
        }
        lua_settop(L, top);
    }
    return r->then(L, LUA_OK, 0);
}

int plot_await_ceilings(lua_State *L, lua_KFunction then)
{
    Roofs *r;

    if (lua_getfield(L, 1, "panels") != LUA_TTABLE)
        return then(L, LUA_OK, 0); /* which says so */
    r = lua_newuserdatauv(L, sizeof(*r), 0);
    *r = (Roofs){ .then = then };
    return next_roof(L, r);
}

/* ---- scaling ---------------------------------------------------------------- */

/* The numbers of field `key` of the table at t, nil ones as NaN; NULL: no such field.
 * [-0, +1 the numbers' owner, v] */
static double *push_numbers(lua_State *L, int t, const char *key, int *count)
{
    double *out = NULL;

    if (lua_getfield(L, t, key) == LUA_TNIL)
        return NULL;
    luaL_checktype(L, -1, LUA_TTABLE);
    *count = *count ? *count : (int)lua_rawlen(L, -1);
    out = lua_newuserdatauv(L, sizeof(*out) * (size_t)(*count + 1), 0);
    for (int i = 0; i < *count; i++) {
        lua_rawgeti(L, -2, i + 1);
        out[i] = lua_isnil(L, -1) ? (double)NAN : luaL_checknumber(L, -1);
        lua_pop(L, 1);
    }
    lua_remove(L, -2);
    return out;
}

/* What it points to stays on the stack.  [-0, +4, v] */
static void push_curve(lua_State *L, int t, ScalingCurve *out)
{
    luaL_checktype(L, t, LUA_TTABLE);
    options_check(L, t, &class_scaling);
    *out = (ScalingCurve){ .name = option_string(L, t, "name", "cost"),
                           .claim = option_number(L, t, "claim", (double)NAN) };
    out->n = push_numbers(L, t, "n", &out->count);
    out->cost = push_numbers(L, t, "cost", &out->count);
    out->low = push_numbers(L, t, "low", &out->count);
    out->high = push_numbers(L, t, "high", &out->count);
    if (!out->n || !out->cost || out->count < 1)
        luaL_error(L, "scaling: a curve needs n and cost, lists of the same length, or records");
}

/* log = "xy" (as usual), "x", "y" or "".  [-0, +0, v] */
static CostAxes check_axes(lua_State *L, int t)
{
    const char *log = option_string(L, t, "log", "xy");

    if (strspn(log, "xy") != strlen(log))
        luaL_error(L, "log: expected xy, x, y or nothing, got '%s'", log);
    return (CostAxes){ .x = option_string(L, t, "x", NULL),
                       .cost = option_string(L, t, "y", "time (ms)"),
                       .even_x = !strchr(log, 'x'), .even_y = !strchr(log, 'y') };
}

void scaling_panel(lua_State *L, int t, int at, Panel *panel)
{
    const char  *where = option_string(L, t, "measured", NULL);
    CostAxes     axes = check_axes(L, t);
    ScalingCurve curves[CURVES_MOST];
    int64_t      count;
    Error        err = ERROR_INIT;
    Machines     machines = { .when = 0 };
    char         measured[256];
    Plot        *plot;

    luaL_checktype(L, at, LUA_TTABLE);
    count = (int64_t)lua_rawlen(L, at);
    if (count < 1 || count > CURVES_MOST)
        luaL_error(L, "scaling: expected 1 to %d curves", CURVES_MOST);
    luaL_checkstack(L, 6 * (int)count + 8, "scaling");
    for (int k = 0; k < count; k++) {
        lua_rawgeti(L, at, k + 1);
        push_curve(L, lua_gettop(L), &curves[k]);
    }
    if (where)
        snprintf(machines.gpu, sizeof(machines.gpu), "%s", where);
    else
        machines_add(&machines, NULL,
                     script_of(L)->threads > 0 ? script_of(L)->threads : threads_hardware(), 0);
    machines.when = (int64_t)time(NULL);
    machines_text(&machines, measured, sizeof(measured));
    plot = plot_of_costs(curves, (int)count, &axes, measured, &err);
    raise_unless(L, plot != NULL, &err);
    panel_init_plot(panel, plot, "scaling");
    lua_settop(L, at);
}

/* ---- tables ----------------------------------------------------------------- */

static const Member scaling_members[] = {
    { "name", NULL, NULL, "string", "of the curve" },
    { "n", NULL, NULL, "number[]", "lengths" },
    { "cost", NULL, NULL, "number[]", "at each of them" },
    { "low", NULL, NULL, "number[]", "lower end of an interval of each cost" },
    { "high", NULL, NULL, "number[]", "upper end" },
    { "records", NULL, NULL, "attnscope.Record[]|attnscope.Result[]",
      "where they were measured, and n and cost, where these are left out" },
    { "claim", NULL, NULL, "number", "exponent of n that is claimed, drawn dashed" },
    MEMBER_END,
};
const Class class_scaling = { .name = "Scaling", .help = "A cost over n.",
                              .members = scaling_members };
