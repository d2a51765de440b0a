/* panel.c -- one panel of a figure: what it shows and how, from a table or a result. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "app/figure/picture.h"
#include "app/figure/plots.h"
#include "app/result/views.h"
#include "draw/colour/colour.h"
#include "script/api/figure.h"
#include "script/host/work.h"

static void keep_for(LuaFigure *figure, Keep *keep)
{
    figure->keeps[figure->keep_count++] = keep_retain(keep);
}

/* Style options of any panel, from the table at t.  [-0, +0, v] */
static void set_looks(lua_State *L, int t, Panel *panel)
{
    const char *pool = option_string(L, t, "pool", NULL);
    const char *scale = option_string(L, t, "scale", NULL);
    const char *map = option_string(L, t, "cmap", NULL);
    const char *title = option_string(L, t, "title", NULL);
    const char *caption = option_string(L, t, "caption", NULL);
    const char *notes = option_string(L, t, "notes", NULL);
    Error       err = ERROR_INIT;

    check_ok(L, !pool || pool_parse(pool, &panel->pool, &err), &err);
    panel->scale_given = panel->scale_given || scale;
    check_ok(L, !scale || scale_parse(scale, &panel->scale, &err), &err);
    check_ok(L, !map || colour_map_parse(map, &panel->map, &err), &err);
    check_ok(L, !notes || panel->plot ||
                    notes_parse(notes, panel->notes, &panel->note_count, &err), &err);
    panel->map_given = map != NULL;
    if (title)
        snprintf(panel->title, sizeof(panel->title), "%s", title);
    if (caption)
        snprintf(panel->caption, sizeof(panel->caption), "%s", caption);
    panel->lo = option_number(L, t, "lo", panel->lo);
    panel->hi = option_number(L, t, "hi", panel->hi);
    if (lua_getfield(L, t, "region") != LUA_TNIL)
        panel->region = check_region(L, lua_gettop(L), view_rows(panel->view),
                                     view_cols(panel->view));
    lua_pop(L, 1);
}

static ViewKind check_tensor_kind(lua_State *L, const char *name)
{
    for (int kind = 0; kind < VIEW_KIND_COUNT; kind++) {
        char lower[32];

        snprintf(lower, sizeof(lower), "%s", view_kind_name(kind));
        for (char *c = lower; *c; c++)
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
        if (!strcmp(lower, name))
            return kind;
    }
    luaL_error(L, "kind: unknown '%s'; expected for example weights, signed, pattern", name);
    return VIEW_TENSOR;
}

const char *figure_keep_text(lua_State *L, LuaFigure *figure, const char *text)
{
    const char *copy = text ? arena_printf(figure->arena, "%s", text) : NULL;

    if (text && !copy)
        luaL_error(L, "not enough memory for a figure");
    return copy;
}

static CurveMark check_mark(lua_State *L, const char *name)
{
    static const char *const names[] = { "line", "steps", "bars", "points" };

    for (int k = 0; k < 4; k++)
        if (!strcmp(name, names[k]))
            return (CurveMark)k;
    luaL_error(L, "mark: expected line, steps, bars or points, got '%s'", name);
    return CURVE_LINE;
}

/* along = { 16, 32, 64 }: the x of each point, as a view of numbers.  [-0, +0, v] */
static void set_along(lua_State *L, int curve, LuaFigure *figure, View *view)
{
    int64_t points = view->rank < 2 ? view_cols(view) : view_rows(view), shape[] = { points };
    View   *along;
    double *x;

    if (lua_getfield(L, curve, "along") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    luaL_checktype(L, -1, LUA_TTABLE);
    if (luaL_len(L, -1) != points)
        luaL_error(L, "along: %I numbers for %I points", luaL_len(L, -1), (lua_Integer)points);
    along = arena_zalloc(figure->arena, 1, sizeof(*along));
    if (!along || !(along->tensor = tensor_new(figure->arena, DT_F64, 1, shape)).data)
        luaL_error(L, "not enough memory for a figure");
    *along = (View){ .name = "along", .iteration = -1, .dtype = DT_F64, .rank = 1,
                     .shape = { points }, .tensor = along->tensor };
    x = along->tensor.data;
    for (int64_t i = 0; i < points; i++) {
        if (lua_geti(L, -1, i + 1) != LUA_TNUMBER || !isfinite(lua_tonumber(L, -1)))
            luaL_error(L, "along: value %I is no finite number", (lua_Integer)(i + 1));
        x[i] = (double)lua_tonumber(L, -1);
        lua_pop(L, 1);
    }
    view->along = along;
    lua_pop(L, 1);
}

/* curve = true, or how: the view at the table's tensor becomes a plot.  [-0, +0, v] */
static void set_curve(lua_State *L, int t, LuaFigure *figure, View *view)
{
    int        kind = lua_getfield(L, t, "curve"), c = lua_gettop(L);
    ViewCurve *curve = arena_zalloc(figure->arena, 1, sizeof(*curve));

    if (!curve)
        luaL_error(L, "not enough memory for a figure");
    *curve = (ViewCurve){ .x = "row", .y = "value" };
    if (kind == LUA_TTABLE) {
        options_check(L, c, &class_curve);
        curve->x = figure_keep_text(L, figure, option_string(L, c, "x", "row"));
        curve->y = figure_keep_text(L, figure, option_string(L, c, "y", "value"));
        curve->series = figure_keep_text(L, figure, option_string(L, c, "series", NULL));
        curve->mark = check_mark(L, option_string(L, c, "mark", "line"));
        curve->log_x = option_bool(L, c, "log_x", false);
        curve->log_y = option_bool(L, c, "log_y", false);
        curve->first = option_number(L, c, "first", 0);
        set_along(L, c, figure, view);
    }
    if (kind == LUA_TTABLE || lua_toboolean(L, c))
        view->curve = curve;
    lua_settop(L, c - 1);
}

/* with = { results }: their curves of the same view in the same plot.  [-0, +0, v] */
static void set_overlays(lua_State *L, int t, LuaFigure *figure, Panel *panel)
{
    const LuaResult *other;
    int64_t          count;
    Error            err = ERROR_INIT;

    if (lua_getfield(L, t, "with") != LUA_TNIL) {
        luaL_checktype(L, -1, LUA_TTABLE);
        count = (int64_t)lua_rawlen(L, -1);
        if (count > PANEL_OVERLAYS || !panel->plot)
            luaL_error(L, panel->plot ? "with: at most %d results" : "with: only for curves",
                       PANEL_OVERLAYS);
        for (int64_t k = 1; k <= count; k++) {
            lua_rawgeti(L, -1, k);
            other = result_check(L, lua_gettop(L));
            check_ok(L, picture_overlay(other->result, panel->view->name, -1, panel, &err), &err);
            keep_for(figure, other->keep);
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 1);
}

/* The table at t shows the tensor at index `at`.  [-0, +0, v] */
static void tensor_panel(lua_State *L, int t, int at, LuaFigure *figure, int index)
{
    const LuaTensor *tensor = lua_touserdata(L, at);
    const Tensor    *shown = tensor_check(L, at);
    View            *view = &figure->views[index];
    int64_t          planes;

    if (!tensor_contiguous(shown) || shown->rank < 1) {
        luaL_argcheck(L, shown->rank >= 1, 1, "a panel's tensor has at least 1 axis");
        shown = tensor_push_copy(L, shown, shown->dtype);
        tensor = lua_touserdata(L, -1);
    }
    keep_for(figure, tensor->keep);
    *view = (View){ .name = "tensor",
                    .kind = check_tensor_kind(L, option_string(L, t, "kind", "tensor")),
                    .iteration = -1, .dtype = shown->dtype, .rank = shown->rank, .tensor = *shown,
                    .rows = "row", .cols = "column" };
    memcpy(view->shape, shown->shape, sizeof(view->shape));
    set_curve(L, t, figure, view);
    planes = view_planes(view);
    panel_init(&figure->figure->panels[index], view, NULL,
               option_integer(L, t, "head", 0, 0, planes - 1), "tensor");
}

/* The table at t shows the Pattern at index `at`.  [-0, +0, v] */
static void pattern_panel(lua_State *L, int t, int at, LuaFigure *figure, int index)
{
    View *view = &figure->views[index];

    keep_for(figure, pattern_view(L, at, view));
    panel_init(&figure->figure->panels[index], view, view->support,
               option_integer(L, t, "head", 0, 0, view_planes(view) - 1), "pattern");
}

static void set_minus(lua_State *L, int t, LuaFigure *figure, Panel *panel)
{
    const LuaResult *other;
    Error            err = ERROR_INIT;

    if (lua_getfield(L, t, "minus") != LUA_TNIL) {
        if (!class_test(L, -1, &class_result))
            luaL_error(L, "minus: expected a Result, got %s", luaL_typename(L, -1));
        if (panel->view->kind == VIEW_HOPS)
            luaL_error(L, "minus: what is not reached has no number of layers");
        other = result_check(L, lua_gettop(L));
        panel->minus = result_view(other->result, panel->view->name, &err);
        check_ok(L, panel->minus != NULL, &err);
        if (view_rows(panel->minus) != view_rows(panel->view) ||
            view_cols(panel->minus) != view_cols(panel->view))
            luaL_error(L, "minus: the views differ in size");
        keep_for(figure, other->keep);
        panel->components = NULL;
        panel->map = MAP_DIVERGING;
    }
    lua_pop(L, 1);
}

/* The picture of one query: span = 137 or "row,column". */
static void set_span(lua_State *L, int t, Result *result, Panel *panel)
{
    Error err = ERROR_INIT;

    lua_getfield(L, t, "span");
    if (!lua_isnil(L, -1))
        check_ok(L, picture_span(result, luaL_tolstring(L, -1, NULL), NULL, panel, &err), &err);
    lua_settop(L, t);
}

/* A key that counts in no range: exclude = 0. */
static void set_excluded(lua_State *L, int t, Panel *panel)
{
    int64_t key = option_integer(L, t, "exclude", -1, 0, INT32_MAX);
    Error   err = ERROR_INIT;

    if (key >= 0)
        check_ok(L, picture_exclude(key, panel, &err), &err);
}

/* queries = { 3, 17 } */
static void read_queries(lua_State *L, int t, MarginChoice *choice)
{
    Error err = ERROR_INIT;
    Text  text = { 0 };
    bool  ok;

    if (lua_getfield(L, t, "queries") == LUA_TTABLE)
        for (lua_Integer k = 1; k <= luaL_len(L, -1); k++) {
            lua_geti(L, -1, k);
            text_addf(&text, "%s%s", k > 1 ? "," : "", luaL_tolstring(L, -1, NULL));
            lua_pop(L, 2);
        }
    ok = margin_parse_queries(text_str(&text), choice, &err);
    text_free(&text);
    check_ok(L, ok, &err);
    lua_settop(L, t);
}

void panel_strips(lua_State *L, int t, MarginChoice *out)
{
    const char *name = option_string(L, t, "strips", NULL);
    Error       err = ERROR_INIT;

    *out = (MarginChoice){ .kind = MARGIN_NONE };
    check_ok(L, !name || margin_parse(name, &out->kind, &err), &err);
    read_queries(L, t, out);
}

/* Bars beside the matrix: strips = "sums". */
static void set_strips(lua_State *L, int t, const Result *result, int64_t head, Panel *panel)
{
    MarginChoice choice;
    Error        err = ERROR_INIT;
    Result      *minus = NULL;

    panel_strips(L, t, &choice);
    if (panel->minus && lua_getfield(L, t, "minus") != LUA_TNIL)
        minus = result_check(L, lua_gettop(L))->result;
    lua_settop(L, t);
    if (choice.kind != MARGIN_NONE && !panel->plot && !panel->picture)
        check_ok(L, margin_of_panel(result, minus, &choice, head < 0 ? 0 : head, NULL, NULL, panel,
                                    &err), &err);
}

/* Tokens in the mechanism's own order, where the axes are tokens. */
static void set_sorted(Result *result, int64_t head, Panel *panel)
{
    picture_sort_panel(result, head < 0 ? 0 : head, result_order_round(result, panel->view), panel);
}

static bool plot_panel(lua_State *L, int t, Result *result, Session *s, const char *view,
                       LuaFigure *figure, Panel *panel);

/* The table at t (0: no options) shows the result at `at`.  [-0, +0, v] */
static void result_panel(lua_State *L, int t, int at, LuaFigure *figure, int index)
{
    const LuaResult *object = result_check(L, at);
    Result          *result = object->result;
    Session         *session = object->session;
    Panel           *panel = &figure->figure->panels[index];
    const char      *view;
    int64_t          head;
    ReachOptions     reach;
    Error            err = ERROR_INIT;

    keep_for(figure, object->keep); /* first: reading the table may call what closes it */
    view = t ? option_string(L, t, "view", NULL) : NULL;
    head = t ? option_integer(L, t, "head", -1, 0, INT32_MAX) : -1;
    if (plot_panel(L, t, result, session, view, figure, panel))
        return;
    check_ok(L, picture_panel(result, view, head, panel, &err), &err);
    figure->results[figure->result_count++] = result;
    if (!t)
        return;
    reach = reach_options(L, t);
    check_ok(L, picture_reach(result, &reach, panel, &err), &err);
    set_minus(L, t, figure, panel);
    snprintf(panel->name, sizeof(panel->name), "%s", result->request.mechanism);
    set_overlays(L, t, figure, panel);
    if (option_bool(L, t, "sorted", false))
        set_sorted(result, head, panel);
    set_span(L, t, result, panel);
    set_excluded(L, t, panel);
    set_strips(L, t, result, head, panel);
}

static void scaling_panel(lua_State *L, int t, int at, Figure *figure, int index);

void panel_set(lua_State *L, LuaFigure *figure, int index)
{
    int t = lua_gettop(L);

    if (class_test(L, t, &class_result)) {
        result_panel(L, 0, t, figure, index);
        return;
    }
    if (!lua_istable(L, t))
        luaL_error(L, "panel %d: expected a Result or a table, got %s", index + 1,
                   luaL_typename(L, t));
    options_check(L, t, &class_panel);
    if (lua_getfield(L, t, "result") != LUA_TNIL)
        result_panel(L, t, lua_gettop(L), figure, index);
    else if (lua_getfield(L, t, "tensor") != LUA_TNIL)
        tensor_panel(L, t, lua_gettop(L), figure, index);
    else if (lua_getfield(L, t, "pattern") != LUA_TNIL)
        pattern_panel(L, t, lua_gettop(L), figure, index);
    else if (lua_getfield(L, t, "scaling") != LUA_TNIL)
        scaling_panel(L, t, lua_gettop(L), figure->figure, index);
    else
        luaL_error(L, "panel %d: it needs a result or a tensor, a pattern, or scaling", index + 1);
    set_looks(L, t, &figure->figure->panels[index]);
    lua_settop(L, t);
}

#define CURVES_MOST 16

/* ---- plots of results -------------------------------------------------------- */

/* Fills results[1..] from `with`; returns how many results there are.  [-0, +0, v] */
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
            keep_for(figure, other->keep);
            lua_pop(L, 1);
        }
    }
    lua_settop(L, top);
    return 1 + (int)count;
}

/* view = "plot(time)": the result, which the figure keeps already, and those of `with` in the
 * table at t (0: none), become the panel; false: the view is no plot.  [-0, +0, v] */
static bool plot_panel(lua_State *L, int t, Result *result, Session *s, const char *view,
                       LuaFigure *figure, Panel *panel)
{
    const Ceilings *ceilings = NULL;
    Result         *results[1 + PANEL_OVERLAYS] = { result };
    Error           err = ERROR_INIT;
    PlotKind        kind;
    int             count;

    if (!plot_word(view, &kind, &err))
        return false;
    check_ok(L, kind != PLOT_KINDS, &err);
    figure->results[figure->result_count++] = result;
    count = take_others(L, t, figure, results);
    if (plot_needs(kind) & NEEDS_CEILINGS) {
        ceilings = session_ceilings(s, result->request.ops, result->request.threads, &err);
        check_ok(L, ceilings != NULL, &err);
    }
    check_ok(L, picture_plot(kind, results, NULL, count, ceilings, panel, &err), &err);
    return true;
}

/* ---- ceilings ----------------------------------------------------------------- */

/* Measurements of ceilings, one panel after the other. */
typedef struct Roofs {
    lua_KFunction then;
    lua_Integer   panel; /* from 1 on; panels before it have their ceilings */
    Session      *session;
    const Ops    *ops;
    int           threads;
    Ceilings      measured;
} Roofs;

/* Takes about a second; cannot be cancelled. */
static bool measure_roof(void *context, const atomic_bool *cancel, Error *err)
{
    Roofs   *r = context;
    Threads *threads = threads_new(r->threads > 0 ? r->threads : threads_default());
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

    (void)status;
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
        return then(L, LUA_OK, 0); /* which raises */
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

/* The same of booleans.  [-0, +1 their owner, v] */
static const bool *push_flags(lua_State *L, int t, const char *key, int count)
{
    bool *out;

    if (lua_getfield(L, t, key) == LUA_TNIL)
        return NULL;
    luaL_checktype(L, -1, LUA_TTABLE);
    out = lua_newuserdatauv(L, sizeof(*out) * (size_t)(count + 1), 0);
    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, -2, i + 1);
        out[i] = lua_toboolean(L, -1);
        lua_pop(L, 1);
    }
    lua_remove(L, -2);
    return out;
}

/* What it points to stays on the stack.  [-0, +5, v] */
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
    out->busy = push_flags(L, t, "busy", out->count);
    if (!out->n || !out->cost || out->count < 1)
        luaL_error(L, "scaling: a curve needs n and cost, lists of the same length, or records");
}

/* log = "xy" (default), "x", "y" or "".  [-0, +0, v] */
static CostAxes check_axes(lua_State *L, int t)
{
    const char *log = option_string(L, t, "log", "xy");

    if (strspn(log, "xy") != strlen(log))
        luaL_error(L, "log: expected xy, x, y or nothing, got '%s'", log);
    return (CostAxes){ .x = option_string(L, t, "x", NULL),
                       .cost = option_string(L, t, "y", "time (ms)"),
                       .even_x = !strchr(log, 'x'), .even_y = !strchr(log, 'y') };
}

/* "time over n" of the axes "time (ms)" and "n". */
static void costs_title(const CostAxes *axes, char *text, size_t size)
{
    const char *x = axes->x ? axes->x : "n", *cost_unit = strstr(axes->cost, " (");
    const char *x_unit = strstr(x, " (");

    snprintf(text, size, "%.*s over %.*s",
             (int)(cost_unit ? (size_t)(cost_unit - axes->cost) : strlen(axes->cost)), axes->cost,
             (int)(x_unit ? (size_t)(x_unit - x) : strlen(x)), x);
}

/* Adds the setting that all runs share to the caption, unless another panel has said it. */
static void add_setting(lua_State *L, int t, Figure *figure)
{
    const char *setting = option_string(L, t, "setting", "");
    size_t      used = strlen(figure->caption);

    if (*setting && !strstr(figure->caption, setting))
        snprintf(figure->caption + used, sizeof(figure->caption) - used, "%s%s", used ? "; " : "",
                 setting);
}

/* scaling = { { name=, n=, cost=, claim= }, ... }, the list at `at`.  [-0, +0, v] */
static void scaling_panel(lua_State *L, int t, int at, Figure *figure, int index)
{
    const char  *where = option_string(L, t, "measured", NULL);
    CostAxes     axes = check_axes(L, t);
    ScalingCurve curves[CURVES_MOST];
    int64_t      count;
    Error        err = ERROR_INIT;
    Machines     machines = { .when = 0 };
    char         measured[256], title[128];
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
                     script_of(L)->threads > 0 ? script_of(L)->threads : threads_default(), 0);
    machines.when = (int64_t)time(NULL);
    machines_text(&machines, measured, sizeof(measured));
    plot = plot_of_costs(curves, (int)count, &axes, measured, &err);
    check_ok(L, plot != NULL, &err);
    costs_title(&axes, title, sizeof(title));
    title_capital(title);
    panel_init_plot(&figure->panels[index], plot, title);
    add_setting(L, t, figure);
    lua_settop(L, at);
}

/* ---- tables ----------------------------------------------------------------- */

static const Member scaling_members[] = {
    FIELD("name", "string", "of the curve"),
    FIELD("n", "number[]", "lengths"),
    FIELD("cost", "number[]", "at each of them"),
    FIELD("low", "number[]", "lower end of an interval of each cost"),
    FIELD("high", "number[]", "upper end"),
    FIELD("busy", "boolean[]", "which costs were measured on a busy machine: their points are "
                               "ringed, and the caption says so"),
    FIELD("records", "attnscope.Record[]|attnscope.Result[]",
          "where they were measured, and n and cost, where these are left out"),
    FIELD("claim", "number", "exponent of n that is claimed, drawn dashed"),
    MEMBER_END,
};
const Class class_scaling = { .name = "Scaling", .help = "A cost over n.",
                              .members = scaling_members };
