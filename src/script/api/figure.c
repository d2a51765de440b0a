/* figure.c -- figures in Lua: panels of results and of plain tensors.
 *
 * A Figure borrows what its panels show; the object keeps those owners.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/figure/overview.h"
#include "app/figure/picture.h"
#include "script/api/figure.h"
#include "script/host/work.h"

/* ---- the object ------------------------------------------------------------- */

LuaFigure *figure_at(lua_State *L, int at)
{
    const FigureBox *box = class_check(L, at, &class_figure);

    return box->keep ? box->keep->thing : NULL;
}

LuaFigure *figure_check(lua_State *L)
{
    LuaFigure *figure = figure_at(L, 1);

    if (!figure || !figure->figure)
        luaL_argerror(L, 1, "the figure is closed");
    return figure;
}

static void drop_figure(void *thing)
{
    LuaFigure *figure = thing;

    figure_free(figure->figure);
    for (int i = 0; i < figure->keep_count; i++)
        keep_release(figure->keeps[i]);
    arena_free(figure->arena);
    free(figure);
}

CLOSE_OBJECT(figure_close, FigureBox, class_figure)

/* [-0, +1, m] */
static int figure_describe(lua_State *L)
{
    const LuaFigure *figure = figure_at(L, 1);

    if (!figure || !figure->figure)
        lua_pushliteral(L, "Figure (closed)");
    else
        lua_pushfstring(L, "Figure of %d panel%s", figure->figure->count,
                        figure->figure->count == 1 ? "" : "s");
    return 1;
}

FIELD_GETTER(figure_length, lua_pushinteger, figure_check(L)->figure->count)

LuaFigure *figure_push_closed(lua_State *L, int panels)
{
    FigureBox *box = class_push(L, &class_figure, sizeof(*box), 0);
    LuaFigure *out = calloc(1, sizeof(*out));

    box->keep = out ? keep_new(out, drop_figure, NULL) : NULL;
    if (!box->keep)
        luaL_error(L, "not enough memory for a figure");
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
    check_ok(L, out->figure != NULL, &err);
    return out;
}

/* ---- the whole --------------------------------------------------------------- */

static void set_grid(lua_State *L, Figure *figure)
{
    const char *grid = option_string(L, 1, "grid", NULL);

    if (grid && !picture_grid(grid, &figure->rows, &figure->cols, &figure->loose))
        luaL_error(L, "grid: expected ROWSxCOLS like 2x3, or 2x3~ for fewer columns where they "
                   "get narrow, got '%s'", grid);
    if (figure->rows && figure->cols && figure->rows * figure->cols < figure->count)
        luaL_error(L, "%d panels do not fit %d x %d", figure->count, figure->rows, figure->cols);
}

/* Texts and style of the figure, from the options at 1.  [-0, +0, v] */
static void figure_set_words(lua_State *L, Figure *figure)
{
    const char *title = option_string(L, 1, "title", NULL);
    const char *caption = option_string(L, 1, "caption", NULL);

    if (title)
        snprintf(figure->title, sizeof(figure->title), "%s", title);
    if (caption)
        snprintf(figure->caption, sizeof(figure->caption), "%s", caption);
    figure->legend = option_bool(L, 1, "legend", true);
    set_grid(L, figure);
    if (option_bool(L, 1, "shared_scale", false))
        figure->sharing = SHARE_ALL;
    else if (!option_bool(L, 1, "shared_scale", true))
        figure->sharing = SHARE_NONE;
    else if (figure->sharing == SHARE_DIFFERENCES && option_string(L, 1, "grid", NULL))
        figure->sharing = SHARE_QUANTITIES;
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
        panel_set(L, out, i);
        lua_pop(L, 1);
    }
    return out;
}

/* Continues with the options at 1, when the ceilings that they show are measured. */
static int push_panel_figure(lua_State *L, int status, lua_KContext at)
{
    LuaFigure *out;

    (void)status;
    (void)at;
    out = push_panels(L);
    picture_add_measured(out->figure);
    figure_set_words(L, out->figure);
    figure_set_page(L, out);
    figure_set_command(L, out);
    return 1; /* the figure, which is at the top again */
}

static int figure_push_drawn(lua_State *L, int t);

/* [-0, +1 or 3, v] */
int attn_figure(lua_State *L)
{
    int count;

    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    options_check(L, 1, &class_figure_options);
    count = figure_push_drawn(L, 1);
    if (count > 0)
        return count;
    lua_settop(L, 1);
    return plot_await_ceilings(L, push_panel_figure);
}

/* ---- surfaces --------------------------------------------------------------- */

typedef struct Printing {
    const LuaFigure *figure;
    TextOptions      options;
    Text            *out; /* on the stack */
} Printing;

static bool print_figure(void *context, const atomic_bool *cancel, Error *err)
{
    Printing *p = context;

    (void)cancel;
    return figure_text(p->figure->figure, &p->options, p->out, err) &&
           (text_ok(p->out) || error_set(err, ERR_NOMEM, "not enough memory for the figure"));
}

static int push_printed(lua_State *L, int status, lua_KContext at)
{
    (void)status;
    text_box_push(L, ((Printing *)work_context(L, at))->out);
    return 1;
}

/* [-0, +1 or 3, v] */
static int figure_as_text(lua_State *L)
{
    const LuaFigure *figure = figure_check(L);
    Printing        *p;
    int64_t          colours;
    Text            *text;

    lua_settop(L, 2);
    options_check(L, 2, &class_text_options);
    text = text_box(L);
    p = lua_newuserdatauv(L, sizeof(*p), 0);
    *p = (Printing){ .figure = figure, .out = text };
    p->options.width = (int)option_integer(L, 2, "width", 80, 20, 10000);
    p->options.height = (int)option_integer(L, 2, "height", 0, 1, 10000);
    p->options.utf8 = option_bool(L, 2, "utf8", true);
    colours = option_integer(L, 2, "colours", 0, 0, 256);
    luaL_argcheck(L, colours == 0 || colours == 24 || colours == 256, 2,
                  "colours: expected 0, 256 or 24");
    p->options.colours = (int)colours;
    return work_await(L, script_of(L)->session->thing, "drawing a figure as text", print_figure,
                      push_printed);
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

KEEP_OBJECT(figure_keep, FigureBox)

const Class class_figure = {
    .name = "Figure",
    .help = "Panels side by side, for a file or the terminal.",
    .members = figure_members,
    .meta = figure_meta,
    .operators = "---@operator len: integer\n",
    .instead = "attn.figure{ ... } takes a figure's settings, f:save(path, { ... }) a file's",
    .keep = figure_keep,
};

static const Member panel_members[] = {
    FIELD("result", "attnscope.Result", "what to show"),
    FIELD("pattern", "attnscope.Pattern", "or these cells"),
    FIELD("tensor", "attnscope.Tensor", "or this matrix"),
    FIELD("kind", "string", "what a tensor's cell is: weights, signed, pattern, ..."),
    FIELD("curve", "attnscope.Curve|boolean", "a tensor as a plot: a series each column"),
    FIELD("with", "attnscope.Result[]", "the same curve of these, in the same plot"),
    FIELD("scaling", "attnscope.Scaling[]", "or costs over n, with the slopes claimed"),
    FIELD("measured", "string|attnscope.Record[]|attnscope.Result[]",
          "of scaling: on what, in words or as the records that were; without it where the curves' "
          "records were, and of curves without records this machine's CPU"),
    FIELD("setting", "string",
          "of scaling: what all its runs share, for the caption, as \"d = 64, 4 heads\"; of a "
          "sweep found in its records"),
    FIELD("sweep", "attnscope.Sweep", "or the same of a sweep's records"),
    FIELD("x", "string", "of a sweep: the number along (default n), like \"window\"; of "
          "scaling: its name"),
    FIELD("y", "string", "of a sweep: the number up (default time_ms), like \"flops\", "
          "\"memory\", \"quality.mass_mean\"; of scaling: its name with its unit (default \"time "
          "(ms)\")"),
    FIELD("log", "string", "of both: axes with decades: \"xy\" (default), \"x\", \"y\" or \"\""),
    FIELD("cost", "string",
          "of a sweep, or of scaling's records: the number up, when y is to be its name"),
    FIELD("view", "string", "default: the most informative one"),
    FIELD("head", "integer", "counted from 0"),
    FIELD("region", "integer[]|{ q: integer[], k: integer[] }", "{q0, q1, k0, k1}"),
    FIELD("minus", "attnscope.Result", "show the difference from the same view of this"),
    FIELD("layers", "integer", "of the view reach: 1 to 254"),
    FIELD("residual", "boolean", "of the view reach: default true"),
    FIELD("sorted", "boolean", "tokens in the mechanism's own order"),
    FIELD("span", "integer|string", "what this query sees, on the image; or \"row,column\""),
    FIELD("exclude", "integer", "a key that counts in no range of colours and no strip"),
    FIELD("strips", "string", "bars beside the matrix: sums, entropy or kept"),
    FIELD("queries", "integer[]", "the bars of columns are the sum of these queries"),
    FIELD("notes", "string",
      "marked cells with a few words: \"5:3:near itself\"; a star for all of a row or column, bars "
      "between several"),
    FIELD("pool", "string", "max, mean, mass, cover, count or min"),
    FIELD("scale", "string", "linear, log or row"),
    FIELD("cmap", "string", "viridis, cividis, magma, grey, diverging or ink"),
    FIELD("lo", "number", "value of the map's beginning"),
    FIELD("hi", "number", "value of the map's end"),
    FIELD("title", "string", "above the panel"),
    FIELD("caption", "string", "below the panel"),
    MEMBER_END,
};
static const Member curve_members[] = {
    FIELD("x", "string", "what the points are along, with its unit"),
    FIELD("y", "string", "what is shown, with its unit"),
    FIELD("series", "string", "their names with bars between: \"plain|reversible\""),
    FIELD("mark", "string", "line (default), steps, bars or points"),
    FIELD("log_x", "boolean", "decades along"),
    FIELD("log_y", "boolean", "decades up"),
    FIELD("first", "number", "x of the first point; they are 1 apart"),
    FIELD("along", "number[]", "or the x of each point: { 16, 32, 64 }"),
    MEMBER_END,
};
const Class class_curve = { .name = "Curve", .help = "How a tensor is drawn as a plot.",
                            .members = curve_members };

const Class class_panel = { .name = "Panel", .help = "One picture of a figure.",
                            .members = panel_members };

static const Member figure_options[] = {
    FIELD("panels", "(attnscope.Result|attnscope.Panel)[]", "what to show"),
    FIELD("preset", "string", "instead: a published picture; see attn.presets"),
    FIELD("command", "string",
          "instead: words of the figure command, like \"full bigbird -n 32 --diff\""),
    FIELD("position_effect", "attnscope.Result",
          "instead: its weights without and with its position, their difference, its bias"),
    FIELD("head", "integer", "of position_effect, counted from 0"),
    FIELD("overview", "attnscope.Result",
          "instead: its view in every layer and head of the input, as small matrices; also "
          "command with --overview"),
    FIELD("view", "string", "of overview (default: the most informative one)"),
    FIELD("sort", "string", "of overview: heads by this score, largest first; see heads"),
    FIELD("title", "string", "above all panels"),
    FIELD("caption", "string", "below all panels"),
    FIELD("grid", "string", "ROWSxCOLS like 2x4; 2x4~: fewer columns where they get narrow"),
    FIELD("legend", "boolean", "default true"),
    FIELD("region", "integer[]|{ q: integer[], k: integer[] }",
          "of every panel that has none of its own and shows a matrix"),
    FIELD("width", "number|string",
          "of files: inches, \"6.75in\", \"8.5cm\" or \"900px\"; also of save"),
    FIELD("dpi", "integer", "of files: dots an inch (default 300); also of save"),
    FIELD("shared_scale", "boolean", "one range of values for the panels of one quantity; "
                                      "false: none, not even for differences (default: true "
                                      "with grid, but not for a panel that would look empty)"),
    MEMBER_END,
};
const Class class_figure_options = { .name = "FigureOptions", .help = "What attn.figure takes.",
                                     .members = figure_options };

static const Member text_options[] = {
    FIELD("width", "integer", "columns (default 80)"),
    FIELD("height", "integer", "lines (default: as needed)"),
    FIELD("utf8", "boolean", "half blocks instead of ASCII (default true)"),
    FIELD("colours", "integer", "0 none, 256, or 24 for true colour"),
    MEMBER_END,
};
const Class class_text_options = { .name = "TextOptions", .help = "How to write text.",
                                   .members = text_options };

/* Figures that the program draws: a preset, a command, the effect of a position on a result. */

/* Everything that lives as long as the figure. */
typedef struct Drawn {
    Session   *session; /* owned; NULL: borrowed */
    PresetCall made;
    FigureRun  drawing;
    Overview  *overview; /* owned; NULL: it is no overview */
} Drawn;

static void drop_drawn(void *thing)
{
    Drawn *drawn = thing;

    overview_free(drawn->overview);
    figure_run_free(&drawn->drawing);
    preset_call_free(&drawn->made);
    session_free(drawn->session);
    free(drawn);
}

/* The tiles are made when the figure is drawn. */
static Figure *draw_overview(Drawn *drawn, Session *session, Result *shown, const char *view,
                             Error *err)
{
    drawn->overview = overview_open(session, &drawn->made.call, shown, view, err);
    return drawn->overview ? overview_wall(drawn->overview, err) : NULL;
}

/* Raises no Lua error. */
static Figure *draw_line(Drawn *drawn, const char *line, Error *err)
{
    if (!preset_expand(line, &drawn->made, err))
        return NULL;
    drawn->session = session_new(err);
    if (!drawn->session)
        return NULL;
    if (drawn->made.call.values[OPT_OVERVIEW])
        return draw_overview(drawn, drawn->session, NULL, "", err);
    if (!figure_run_make(drawn->session, &drawn->made.call, false, &drawn->drawing, err))
        return NULL;
    return figure_run_draw(drawn->session, &drawn->made.call, &drawn->drawing, err);
}

static Figure *draw_effect(Drawn *drawn, const LuaResult *with, int64_t head, Error *err)
{
    static const Call none = { 0 };

    if (!figure_run_effect(with->session, with->result, head, &drawn->drawing, err))
        return NULL;
    return figure_run_draw(with->session, &none, &drawn->drawing, err);
}

/* A drawing on the worker; the Figure object owns `drawn`. */
typedef struct Work {
    LuaFigure       *out;
    Drawn           *drawn;
    const char      *line; /* on the stack; NULL: a figure of the result `with` */
    const LuaResult *with;
    const char      *view; /* of an overview of it, on the stack; NULL: effect of its position */
    int64_t          head;
} Work;

static bool draw(void *context, const atomic_bool *cancel, Error *err)
{
    Work *w = context;

    (void)cancel;
    w->out->figure = w->line ? draw_line(w->drawn, w->line, err)
                     : w->view
                         ? draw_overview(w->drawn, w->with->session, w->with->result, w->view, err)
                         : draw_effect(w->drawn, w->with, w->head, err);
    return w->out->figure != NULL;
}

/* Pushes the line "figure ..." that draws what the options say; NULL: they name neither a preset
 * nor a command.  [-0, +1, v] */
static const char *push_command(lua_State *L, int t)
{
    const char *preset = option_string(L, t, "preset", NULL);
    const char *command = option_string(L, t, "command", NULL);
    const char *title = option_string(L, t, "title", NULL);
    const char *caption = option_string(L, t, "caption", NULL);
    bool        shared = option_bool(L, t, "shared_scale", false);
    bool        own = !option_bool(L, t, "shared_scale", true);
    Text       *line = text_box(L);

    if (preset && command)
        luaL_error(L, "choose one of preset and command; command may hold --preset");
    text_addf(line, "figure %s", command ? command : "");
    command_add_option(line, "preset", preset);
    command_add_option(line, "title", title);
    command_add_option(line, "caption", caption);
    command_add_option(line, "grid", option_string(L, t, "grid", NULL));
    text_add(line, shared ? " --shared-scale" : own ? " --own-scales" : "");
    return preset || command ? text_str(line) : NULL;
}

/* [-0, +1, v] */
static const LuaResult *push_result_of(lua_State *L, int t, const char *key)
{
    if (lua_getfield(L, t, key) == LUA_TNIL)
        return NULL;
    if (!class_test(L, -1, &class_result))
        luaL_error(L, "%s: expected a Result, got %s", key, luaL_typename(L, -1));
    return result_check(L, lua_gettop(L));
}

/* The command that draws the overview of a result with the options at 1; NULL: there is none.
 * [-0, +1, v] */
static char *push_overview_line(lua_State *L, const LuaResult *of, const FigureRun *run,
                                Arena *arena)
{
    static const char *const    keys[] = { "sort", "title", "caption" };
    static const PictureOptions none = { .head = -1 };
    Text                       *line = text_box(L);

    if (picture_no_command(of->session, run->panels, 1))
        return NULL;
    picture_command(of->session, run->panels, 1, &none, line);
    text_add(line, " --overview");
    for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
        command_add_option(line, keys[k], option_string(L, 1, keys[k], NULL));
    return arena_printf(arena, "%s", text_str(line));
}

/* [-0, +1 or 3, v] */
static int push_drawn(lua_State *L, int status, lua_KContext at)
{
    Work        *w = work_context(L, at);
    LuaFigure   *out = w->out;
    const Drawn *drawn = w->drawn;
    const FigureRun *run = drawn->overview ? overview_run(drawn->overview) : &drawn->drawing;
    int          rows, cols;

    (void)status;
    for (int i = 0; i < run->count; i++)
        out->results[out->result_count++] = run->results[i];
    if (drawn->overview && w->with)
        out->line = push_overview_line(L, w->with, run, out->arena);
    if (drawn->made.line.length)
        out->line = arena_printf(out->arena, "%s", text_str(&drawn->made.line));
    rows = out->figure->rows;
    cols = out->figure->cols;
    figure_set_words(L, out->figure);
    figure_set_page(L, out);
    if (out->figure->rows != rows || out->figure->cols != cols || !out->figure->legend)
        out->line = NULL; /* it would draw another figure */
    lua_pushvalue(L, (int)at - 2);
    return 1;
}

/* A figure of the options' preset or command, or of the effect of a position; 0: the options have
 * panels; else attn.figure returns this value.  [-0, +1 or 3, v] */
static int figure_push_drawn(lua_State *L, int t)
{
    const char      *line = push_command(L, t);
    const LuaResult *effect = push_result_of(L, t, "position_effect");
    const LuaResult *wall = push_result_of(L, t, "overview"), *with = effect ? effect : wall;
    const char      *view = option_string(L, t, "view", wall ? "" : NULL);
    const char      *sort = option_string(L, t, "sort", NULL);
    int64_t          head = option_integer(L, t, "head", 0, 0, INT32_MAX);
    LuaFigure       *out;
    Drawn           *drawn;
    Work            *w;

    if ((view || sort) && !wall)
        luaL_error(L, "view and sort are of an overview: overview = result");
    if (!line && !with)
        return 0;
    if (!!line + !!effect + !!wall > 1)
        luaL_error(L, "choose one of position_effect, overview, preset and command");
    out = figure_push_closed(L, FIGURE_PLAN_MOST);
    drawn = calloc(1, sizeof(*drawn));
    if (drawn)
        out->keeps[0] = keep_new(drawn, drop_drawn, with ? with->keep : NULL);
    if (!out->keeps[0])
        return luaL_error(L, "not enough memory for a figure");
    out->keep_count = 1;
    w = lua_newuserdatauv(L, sizeof(*w), 0);
    drawn->made.call.values[OPT_SORT] = figure_keep_text(L, out, sort);
    *w = (Work){ .out = out, .drawn = drawn, .line = line, .with = with, .view = view,
                 .head = head };
    return work_await(L, script_of(L)->session->thing, "drawing a figure", draw, push_drawn);
}
