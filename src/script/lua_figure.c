/* lua_figure.c -- figures in Lua: panels of results and of plain tensors.
 *
 * A Figure borrows what its panels show; the object keeps those owners.
 */
#include "script/lua_figure.h"

#include <stdio.h>
#include <string.h>

#include "app/command_parts.h"
#include "app/picture_plot.h"
#include "app/margins.h"
#include "app/picture.h"
#include "draw/colour.h"
#include "script/lua_plot.h"

/* ---- the object ------------------------------------------------------------- */

static LuaFigure *check(lua_State *L)
{
    LuaFigure *figure = class_check(L, 1, &class_figure);

    if (!figure->figure)
        luaL_argerror(L, 1, "the figure is closed");
    return figure;
}

/* [-0, +0, -] */
static int figure_close(lua_State *L)
{
    LuaFigure *figure = class_check(L, 1, &class_figure), old = *figure;

    *figure = (LuaFigure){ 0 };
    figure_free(old.figure);
    for (int i = 0; i < old.keep_count; i++)
        keep_release(old.keeps[i]);
    arena_free(old.arena);
    return 0;
}

/* [-0, +1, m] */
static int figure_describe(lua_State *L)
{
    const LuaFigure *figure = class_check(L, 1, &class_figure);

    if (!figure->figure)
        lua_pushliteral(L, "Figure (closed)");
    else
        lua_pushfstring(L, "Figure of %d panel%s", figure->figure->count,
                        figure->figure->count == 1 ? "" : "s");
    return 1;
}

/* [-0, +1, v] */
static int figure_length(lua_State *L)
{
    lua_pushinteger(L, check(L)->figure->count);
    return 1;
}

LuaFigure *figure_push_closed(lua_State *L, int panels)
{
    LuaFigure *out = class_push(L, &class_figure, sizeof(*out), 0);

    out->arena = arena_new();
    if (out->arena) {
        out->keeps = arena_zalloc(out->arena, (2 + PANEL_OVERLAYS) * panels, sizeof(*out->keeps));
        out->views = arena_zalloc(out->arena, panels, sizeof(*out->views));
        out->results = arena_zalloc(out->arena, panels, sizeof(*out->results));
    }
    if (!out->arena || !out->keeps || !out->views || !out->results)
        luaL_error(L, "not enough memory for a figure");
    return out;
}

/* A figure of `count` empty panels.  [-0, +1, v] */
static LuaFigure *push_figure(lua_State *L, int count)
{
    LuaFigure *out = figure_push_closed(L, count);
    Error      err = ERROR_INIT;

    out->figure = figure_new(count, &err);
    if (!out->figure)
        luaL_error(L, "%s", err.text);
    return out;
}

static void keep_for(LuaFigure *figure, Keep *keep)
{
    figure->keeps[figure->keep_count++] = keep_retain(keep);
}

/* ---- panels ----------------------------------------------------------------- */

static void check_ok(lua_State *L, bool ok, const Error *err)
{
    if (!ok)
        luaL_error(L, "%s", err->text);
}

/* Looks that any panel takes, from the table at t.  [-0, +0, v] */
static void set_looks(lua_State *L, int t, Panel *panel)
{
    const char *pool = option_string(L, t, "pool", NULL);
    const char *scale = option_string(L, t, "scale", NULL);
    const char *map = option_string(L, t, "cmap", NULL);
    const char *title = option_string(L, t, "title", NULL);
    const char *caption = option_string(L, t, "caption", NULL);
    Error       err = ERROR_INIT;

    check_ok(L, !pool || pool_parse(pool, &panel->pool, &err), &err);
    check_ok(L, !scale || scale_parse(scale, &panel->scale, &err), &err);
    check_ok(L, !map || colour_map_parse(map, &panel->map, &err), &err);
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

static ViewKind check_kind(lua_State *L, const char *name)
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

/* A text that lives as long as the figure; NULL stays NULL. */
static const char *kept_text(lua_State *L, LuaFigure *figure, const char *text)
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
        curve->x = kept_text(L, figure, option_string(L, c, "x", "row"));
        curve->y = kept_text(L, figure, option_string(L, c, "y", "value"));
        curve->series = kept_text(L, figure, option_string(L, c, "series", NULL));
        curve->mark = check_mark(L, option_string(L, c, "mark", "line"));
        curve->log_x = option_bool(L, c, "log_x", false);
        curve->log_y = option_bool(L, c, "log_y", false);
        curve->first = option_number(L, c, "first", 0);
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
    *view = (View){ .name = "tensor", .kind = check_kind(L, option_string(L, t, "kind", "tensor")),
                    .iteration = -1, .dtype = shown->dtype, .rank = shown->rank, .tensor = *shown,
                    .rows = "row", .cols = "column" };
    memcpy(view->shape, shown->shape, sizeof(view->shape));
    set_curve(L, t, figure, view);
    planes = view_planes(view);
    panel_init(&figure->figure->panels[index], view, NULL,
               option_integer(L, t, "head", 0, 0, planes - 1), "tensor");
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
    if (!lua_isnil(L, -1) &&
        !picture_span(result, luaL_tolstring(L, -1, NULL), NULL, panel, &err))
        luaL_error(L, "%s", err.text);
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

/* Bars beside the matrix: strips = "sums". */
static void set_strips(lua_State *L, int t, const Result *result, int64_t head, Panel *panel)
{
    const char  *name = option_string(L, t, "strips", NULL);
    MarginChoice choice = { .kind = MARGIN_NONE };
    Error        err = ERROR_INIT;
    Result      *minus = NULL;

    check_ok(L, !name || margin_parse(name, &choice.kind, &err), &err);
    read_queries(L, t, &choice);
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

/* The table at t (0: no options) shows the result at `at`.  [-0, +0, v] */
static void result_panel(lua_State *L, int t, int at, LuaFigure *figure, int index)
{
    const LuaResult *result = result_check(L, at);
    Panel           *panel = &figure->figure->panels[index];
    const char      *view = t ? option_string(L, t, "view", NULL) : NULL;
    int64_t          head = t ? option_integer(L, t, "head", -1, 0, INT32_MAX) : -1;
    ReachOptions     reach;
    Error            err = ERROR_INIT;

    if (plot_panel(L, t, at, view, figure, panel))
        return;
    check_ok(L, picture_panel(result->result, view, head, panel, &err), &err);
    keep_for(figure, result->keep);
    figure->results[figure->result_count++] = result->result;
    if (!t)
        return;
    reach = reach_options(L, t);
    check_ok(L, picture_reach(result->result, &reach, panel, &err), &err);
    set_minus(L, t, figure, panel);
    snprintf(panel->name, sizeof(panel->name), "%s", result->result->request.mechanism);
    set_overlays(L, t, figure, panel);
    if (option_bool(L, t, "sorted", false))
        set_sorted(result->result, head, panel);
    set_span(L, t, result->result, panel);
    set_excluded(L, t, panel);
    set_strips(L, t, result->result, head, panel);
}

/* The panel whose description is at the top.  [-0, +0, v] */
static void set_panel(lua_State *L, LuaFigure *figure, int index)
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
    else if (lua_getfield(L, t, "scaling") != LUA_TNIL)
        scaling_panel(L, t, lua_gettop(L), &figure->figure->panels[index]);
    else
        luaL_error(L, "panel %d: it needs a result or a tensor, or scaling", index + 1);
    set_looks(L, t, &figure->figure->panels[index]);
    lua_settop(L, t);
}

/* "2x3" or rows= and cols=. */
static void set_layout(lua_State *L, Figure *figure)
{
    const char *layout = option_string(L, 1, "layout", NULL);
    int         end = 0;

    figure->rows = (int)option_integer(L, 1, "rows", figure->rows, 1, 1000);
    figure->cols = (int)option_integer(L, 1, "cols", figure->cols, 1, 1000);
    if (layout && (sscanf(layout, "%4dx%4d%n", &figure->rows, &figure->cols, &end) != 2 ||
                   layout[end] || figure->rows < 1 || figure->cols < 1))
        luaL_error(L, "layout: expected ROWSxCOLS like 2x3, got '%s'", layout);
    if (figure->rows && figure->cols && figure->rows * figure->cols < figure->count)
        luaL_error(L, "%d panels do not fit %d x %d", figure->count, figure->rows, figure->cols);
}

/* Words and looks of the options at 1.  [-0, +0, v] */
static void set_words(lua_State *L, Figure *figure)
{
    const char *title = option_string(L, 1, "title", NULL);
    const char *caption = option_string(L, 1, "caption", NULL);

    if (title)
        snprintf(figure->title, sizeof(figure->title), "%s", title);
    if (caption)
        snprintf(figure->caption, sizeof(figure->caption), "%s", caption);
    else if (!*figure->caption && *figure_measured(figure))
        snprintf(figure->caption, sizeof(figure->caption), "measured on %s",
                 figure_measured(figure));
    figure->shared_scale = option_bool(L, 1, "shared_scale", figure->shared_scale);
    figure->legend = option_bool(L, 1, "legend", true);
    set_layout(L, figure);
}

/* [-0, +1, v] */
static LuaFigure *push_panels(lua_State *L)
{
    LuaFigure *out;
    int64_t    count;
    int        panels;

    if (lua_getfield(L, 1, "panels") != LUA_TTABLE)
        luaL_error(L, "panels: expected a list, got %s", luaL_typename(L, -1));
    panels = lua_gettop(L);
    count = (int64_t)lua_rawlen(L, panels);
    if (count < 1 || count > 1000)
        luaL_error(L, "panels: expected 1 to 1000, got %I", (lua_Integer)count);
    out = push_figure(L, (int)count);
    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, panels, i + 1);
        set_panel(L, out, i);
        lua_pop(L, 1);
    }
    return out;
}

/* [-0, +1 or 3, v] */
int attn_figure(lua_State *L)
{
    LuaFigure *out;
    int        count, rows, cols;

    luaL_checktype(L, 1, LUA_TTABLE);
    options_check(L, 1, &class_figure_options);
    count = figure_push_drawn(L, 1);
    if (count > 1)
        return count;
    out = count ? class_check(L, -1, &class_figure) : push_panels(L);
    rows = out->figure->rows;
    cols = out->figure->cols;
    set_words(L, out->figure);
    if (out->figure->rows != rows || out->figure->cols != cols || !out->figure->legend)
        out->line = NULL; /* it would draw another figure */
    return 1;
}

/* ---- surfaces --------------------------------------------------------------- */

static bool to_text(const LuaFigure *figure, const TextOptions *options, Text *out, Error *err)
{
    return figure_text(figure->figure, options, out, err) &&
           (text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory for the figure"));
}

/* [-0, +1 or 3, v] */
static int figure_as_text(lua_State *L)
{
    const LuaFigure *figure = check(L);
    TextOptions      options = { 0 };
    int64_t          colours;
    Text            *text;
    Error            err = ERROR_INIT;

    options_check(L, 2, &class_text_options);
    options.width = (int)option_integer(L, 2, "width", 80, 20, 10000);
    options.height = (int)option_integer(L, 2, "height", 0, 1, 10000);
    options.utf8 = option_bool(L, 2, "utf8", true);
    colours = option_integer(L, 2, "colours", 0, 0, 256);
    luaL_argcheck(L, colours == 0 || colours == 24 || colours == 256, 2,
                  "colours: expected 0, 256 or 24");
    options.colours = (int)colours;
    text = text_box(L);
    if (!to_text(figure, &options, text, &err))
        return failure(L, &err);
    text_box_push(L, text);
    return 1;
}

/* [-0, +1 or 3, v] */
static int figure_save(lua_State *L)
{
    const LuaFigure *figure = check(L);
    const char      *path = luaL_checkstring(L, 2);
    PngOptions       options = save_options_check(L, 3);
    Text            *line = text_box(L);
    Error            err = ERROR_INIT;

    text_add(line, figure->line ? figure->line : script_of(L)->line);
    if (figure->line) /* the line that makes the file again: the figure's own, or the script's */
        save_options_line(&options, path, line);
    if (!picture_save(script_of(L)->session->thing, figure->figure, figure->results,
                      figure->result_count, text_str(line), &options, path, &err))
        return failure(L, &err);
    lua_pushboolean(L, true);
    return 1;
}

/* ---- tables ----------------------------------------------------------------- */

static const luaL_Reg figure_meta[] = {
    { "__gc", figure_close }, { "__close", figure_close }, { "__tostring", figure_describe },
    { "__len", figure_length }, { NULL, NULL },
};

static const Member figure_members[] = {
    { "save", figure_save, "path: string, options?: attnscope.SaveOptions",
      "true?, string?, string?", "Writes .png, .svg, .pdf, .txt or .ans." },
    { "text", figure_as_text, "options?: attnscope.TextOptions", "string?, string?, string?",
      "The figure as lines of text." },
    { "close", figure_close, "", "", "Lets go of what it shows." },
    MEMBER_END,
};

const Class class_figure = {
    .name = "Figure",
    .help = "Panels side by side, for a file or the terminal.",
    .members = figure_members,
    .meta = figure_meta,
    .operators = "---@operator len: integer\n",
};

static const Member panel_members[] = {
    { "result", NULL, NULL, "attnscope.Result", "what to show" },
    { "tensor", NULL, NULL, "attnscope.Tensor", "or this matrix" },
    { "kind", NULL, NULL, "string", "what a tensor's cell is: weights, signed, pattern, ..." },
    { "curve", NULL, NULL, "attnscope.Curve|boolean", "a tensor as a plot: a series each column" },
    { "with", NULL, NULL, "attnscope.Result[]", "the same curve of these, in the same plot" },
    { "scaling", NULL, NULL, "attnscope.Scaling[]", "or costs over n, with the slopes claimed" },
    { "y", NULL, NULL, "string", "of scaling: the cost with its unit (default \"time (ms)\")" },
    { "view", NULL, NULL, "string", "default: the most telling one" },
    { "head", NULL, NULL, "integer", "counted from 0" },
    { "region", NULL, NULL, "integer[]|{ q: integer[], k: integer[] }", "{q0, q1, k0, k1}" },
    { "minus", NULL, NULL, "attnscope.Result", "show the difference from the same view of this" },
    { "layers", NULL, NULL, "integer", "of the view reach: 1 to 254" },
    { "residual", NULL, NULL, "boolean", "of the view reach: default true" },
    { "sorted", NULL, NULL, "boolean", "tokens in the mechanism's own order" },
    { "span", NULL, NULL, "integer|string",
      "what this query sees, on the image; or \"row,column\"" },
    { "exclude", NULL, NULL, "integer", "a key that counts in no range of colours and no strip" },
    { "strips", NULL, NULL, "string", "bars beside the matrix: sums, entropy or kept" },
    { "queries", NULL, NULL, "integer[]", "the bars of columns are the sum of these queries" },
    { "pool", NULL, NULL, "string", "max, mean, mass, cover, count or min" },
    { "scale", NULL, NULL, "string", "linear, log or row" },
    { "cmap", NULL, NULL, "string", "viridis, cividis, magma, grey, diverging or ink" },
    { "lo", NULL, NULL, "number", "value of the map's beginning" },
    { "hi", NULL, NULL, "number", "value of the map's end" },
    { "title", NULL, NULL, "string", "above the panel" },
    { "caption", NULL, NULL, "string", "below the panel" },
    MEMBER_END,
};
static const Member curve_members[] = {
    { "x", NULL, NULL, "string", "what the points are along, with its unit" },
    { "y", NULL, NULL, "string", "what is shown, with its unit" },
    { "series", NULL, NULL, "string", "their names with bars between: \"plain|reversible\"" },
    { "mark", NULL, NULL, "string", "line (default), steps, bars or points" },
    { "log_x", NULL, NULL, "boolean", "decades along" },
    { "log_y", NULL, NULL, "boolean", "decades up" },
    { "first", NULL, NULL, "number", "x of the first point; they are 1 apart" },
    MEMBER_END,
};
const Class class_curve = { .name = "Curve", .help = "How a tensor is drawn as a plot.",
                            .members = curve_members };

const Class class_panel = { .name = "Panel", .help = "One picture of a figure.",
                            .members = panel_members };

static const Member figure_options[] = {
    { "panels", NULL, NULL, "(attnscope.Result|attnscope.Panel)[]", "what to show" },
    { "preset", NULL, NULL, "string", "instead: a published picture; see attn.presets" },
    { "command", NULL, NULL, "string",
      "instead: words of the figure command, like \"full bigbird -n 32 --diff\"" },
    { "position_effect", NULL, NULL, "attnscope.Result",
      "instead: its weights without and with its position, their difference, its bias" },
    { "head", NULL, NULL, "integer", "of position_effect, counted from 0" },
    { "title", NULL, NULL, "string", "above all panels" },
    { "caption", NULL, NULL, "string", "below all panels" },
    { "layout", NULL, NULL, "string", "ROWSxCOLS" },
    { "rows", NULL, NULL, "integer", "rows of panels" },
    { "cols", NULL, NULL, "integer", "columns of panels" },
    { "legend", NULL, NULL, "boolean", "default true" },
    { "shared_scale", NULL, NULL, "boolean", "one range of values for the panels of one quantity" },
    MEMBER_END,
};
const Class class_figure_options = { .name = "FigureOptions", .help = "What attn.figure takes.",
                                     .members = figure_options };

static const Member text_options[] = {
    { "width", NULL, NULL, "integer", "columns (default 80)" },
    { "height", NULL, NULL, "integer", "lines (default: as needed)" },
    { "utf8", NULL, NULL, "boolean", "half blocks instead of ASCII (default true)" },
    { "colours", NULL, NULL, "integer", "0 none, 256, or 24 for true colour" },
    MEMBER_END,
};
const Class class_text_options = { .name = "TextOptions", .help = "How to write text.",
                                   .members = text_options };
