/* lua_told.c -- a figure of panels as the figure command that draws the same.
 *
 * Then the file holds that command and `rerender` makes it again.  What only the script has (its
 * own tensors, mechanisms, captions of single panels) stays as the script made it.
 */
#include <stdio.h>
#include <string.h>

#include "app/command/command_parts.h"
#include "app/figure/picture_plot.h"
#include "script/api/lua_figure.h"

typedef struct Told {
    LuaFigure     *figure;
    PanelChoice   *choices; /* of the figure's arena */
    PanelLooks    *looks;
    int            count, panels;
    PictureOptions options;
    Session       *session; /* of all results */
    Text          *titles;  /* "first|second" */
    bool           titled;
    const char    *why;     /* no command draws it; static; NULL: one does */
} Told;

/* A text that lives as long as the figure.  [-0, +0, v] */
static const char *kept(lua_State *L, Told *told, const char *text)
{
    const char *copy = text ? arena_printf(told->figure->arena, "%s", text) : NULL;

    if (text && !copy)
        luaL_error(L, "not enough memory for a figure");
    return copy;
}

/* The field as text; NULL: it is not there.  [-0, +0, v] */
static const char *field(lua_State *L, int t, const char *key, Told *told)
{
    const char *text = NULL;
    int         top = lua_gettop(L);

    if (t && lua_getfield(L, t, key) != LUA_TNIL)
        text = kept(L, told, luaL_tolstring(L, -1, NULL));
    lua_settop(L, top);
    return text;
}

/* The result there keeps itself; a choice more of it.  [-0, +0, v] */
static PanelChoice *add_choice(Told *told, const LuaResult *result)
{
    PanelChoice *choice = &told->choices[told->count++];

    if (told->session && told->session != result->session)
        told->why = "the panels are of different inputs";
    told->session = result->session;
    *choice = (PanelChoice){ .result = result->result, .head = -1 };
    return choice;
}

/* ---- one panel ------------------------------------------------------------------- */

/* What is no option of one panel must be the same in all. */
static void tell_shared(lua_State *L, int t, int index, Told *told)
{
    PictureOptions *o = &told->options;
    const char     *span = field(L, t, "span", told);
    MarginChoice    strips = { .kind = MARGIN_NONE };

    if (t)
        panel_strips(L, t, &strips);
    if (index == 0) {
        o->span = span;
        o->strips = strips;
    } else if (!span != !o->span || (span && strcmp(span, o->span) != 0)) {
        told->why = "the panels show different spans";
    } else if (strips.kind != o->strips.kind || strips.query_count != o->strips.query_count ||
               memcmp(strips.queries, o->strips.queries,
                      (size_t)strips.query_count * sizeof(*strips.queries)) != 0) {
        told->why = "the panels have different strips";
    }
}

static void tell_looks(lua_State *L, int t, const Panel *panel, Told *told, PanelLooks *out)
{
    *out = (PanelLooks){ .pooled = field(L, t, "pool", told) != NULL, .pool = panel->pool,
                         .scaled = field(L, t, "scale", told) != NULL, .scale = panel->scale,
                         .mapped = field(L, t, "cmap", told) != NULL, .map = panel->map,
                         .excludes = panel->excludes, .excluded = panel->excluded };
    if (field(L, t, "region", told))
        out->region = panel->region;
    out->ranged = panel->lo < panel->hi &&
                  (field(L, t, "lo", told) || field(L, t, "hi", told));
    out->lo = panel->lo;
    out->hi = panel->hi;
    if (panel->view->kind == VIEW_HOPS && field(L, t, "layers", told))
        out->layers = reach_view_depth(panel->view);
    out->strict = panel->view->kind == VIEW_HOPS && reach_view_strict(panel->view);
    if (panel->note_count)
        snprintf(out->notes, sizeof(out->notes), "%s", field(L, t, "notes", told));
}

static void tell_title(lua_State *L, int t, int index, Told *told, PanelChoice *choice)
{
    choice->title = field(L, t, "title", told);
    told->titled |= choice->title != NULL;
    if (choice->title && strchr(choice->title, '|'))
        told->why = "a panel's title has a bar in it";
    text_addf(told->titles, "%s%s", index ? "|" : "", choice->title ? choice->title : "");
}

/* The curves of `with` join the plot of the choice.  [-0, +0, v] */
static void tell_joined(lua_State *L, int t, Told *told, const char *view)
{
    if (lua_getfield(L, t, "with") == LUA_TTABLE)
        for (lua_Integer k = 1; k <= luaL_len(L, -1); k++) {
            PanelChoice *choice;

            lua_geti(L, -1, k);
            choice = add_choice(told, result_check(L, lua_gettop(L)));
            choice->view = view;
            choice->joins = true;
            lua_pop(L, 1);
        }
    lua_settop(L, t);
}

/* The panel described at the top, a table with a result.  [-0, +0, v] */
static void tell_table(lua_State *L, int index, Told *told)
{
    const Panel *panel = &told->figure->figure->panels[index];
    PanelChoice *choice;
    int          t = lua_gettop(L);

    if (lua_getfield(L, t, "result") == LUA_TNIL) {
        told->why = "a panel shows numbers of the script";
        return;
    }
    choice = add_choice(told, result_check(L, t + 1));
    lua_settop(L, t);
    choice->view = field(L, t, "view", told);
    choice->head = option_integer(L, t, "head", -1, 0, INT32_MAX);
    choice->sorted = option_bool(L, t, "sorted", false);
    if (lua_getfield(L, t, "minus") != LUA_TNIL) {
        choice->minus = result_check(L, t + 1)->result;
        choice->view = choice->view ? choice->view : kept(L, told, panel->view->name);
    }
    lua_settop(L, t);
    if (!panel->plot)
        tell_looks(L, t, panel, told, &told->looks[index]);
    choice->looks = panel->plot ? NULL : &told->looks[index];
    tell_title(L, t, index, told, choice);
    tell_shared(L, t, index, told);
    tell_joined(L, t, told, choice->view);
    if (field(L, t, "caption", told))
        told->why = "a panel has a caption of its own";
}

static void tell_panel(lua_State *L, int index, Told *told)
{
    int t = lua_gettop(L);

    if (class_test(L, t, &class_result)) {
        add_choice(told, result_check(L, t));
        text_add(told->titles, index ? "|" : "");
        tell_shared(L, 0, index, told);
    } else {
        tell_table(L, index, told);
    }
    lua_settop(L, t);
}

/* ---- the whole --------------------------------------------------------------------- */

static void tell_options(lua_State *L, Told *told)
{
    const Figure   *figure = told->figure->figure;
    PictureOptions *o = &told->options;
    int             panels = told->panels;

    o->head = -1;
    o->title = field(L, 1, "title", told);
    o->caption = field(L, 1, "caption", told);
    o->shared_scale = figure->shared_scale;
    o->rows = figure->rows;
    o->cols = figure->cols;
    o->loose = figure->loose;
    if (o->rows > 0 && o->cols <= 0)
        o->cols = (panels + o->rows - 1) / o->rows;
    if (o->cols > 0 && o->rows <= 0)
        o->rows = (panels + o->cols - 1) / o->cols;
    if (!figure->legend)
        told->why = "there is no option that leaves out the legend";
}

/* Rooflines stand under what the machine can do. */
static bool add_ceilings(Told *told, Error *err)
{
    PlotKind kind;

    for (int i = 0; i < told->count; i++)
        if (plot_word(told->choices[i].view, &kind, NULL) && kind == PLOT_ROOFLINE) {
            told->choices[i].ceilings =
                session_ceilings(told->session, told->choices[i].result->request.ops,
                                 told->choices[i].result->request.threads, err);
            if (!told->choices[i].ceilings)
                return false;
        }
    return true;
}

static void add_option(Text *line, const char *flag, const char *value)
{
    if (!value)
        return;
    text_addf(line, " --%s ", flag);
    word_quote(line, value);
}

static void tell_line(Told *told, Text *line)
{
    picture_command(told->session, told->choices, told->count, &told->options, line);
    add_option(line, "title", told->options.title);
    add_option(line, "titles", told->titled ? text_str(told->titles) : NULL);
    add_option(line, "caption", told->options.caption);
}

/* The file tells of every result that is shown, as the command does. */
static bool take_results(Told *told)
{
    Result **results = arena_zalloc(told->figure->arena, told->count, sizeof(Result *));

    for (int i = 0; results && i < told->count; i++)
        results[i] = told->choices[i].result;
    told->figure->results = results ? results : told->figure->results;
    told->figure->result_count = results ? told->count : told->figure->result_count;
    return results != NULL;
}

/* Room for the choices of `panels` panels; false: none.  */
static bool prepare(Told *told)
{
    Arena *arena = told->figure->arena;

    told->choices = arena_zalloc(arena, (int64_t)told->panels * (1 + PANEL_OVERLAYS),
                                 sizeof(*told->choices));
    told->looks = arena_zalloc(arena, told->panels, sizeof(*told->looks));
    return told->choices && told->looks;
}

void figure_tell(lua_State *L, LuaFigure *figure)
{
    Told    told = { .figure = figure, .panels = figure->figure->count };
    Figure *same;
    Text   *line;
    Error   err = ERROR_INIT;
    int     top = lua_gettop(L), panels;

    told.titles = text_box(L);
    line = text_box(L);
    if (!prepare(&told))
        luaL_error(L, "not enough memory for a figure");
    tell_options(L, &told);
    lua_settop(L, top + 2);
    lua_getfield(L, 1, "panels");
    panels = lua_gettop(L);
    for (int i = 0; i < told.panels && !told.why; i++) {
        lua_geti(L, panels, i + 1);
        tell_panel(L, i, &told);
        lua_settop(L, panels);
    }
    if (!told.why)
        told.why = picture_untold(told.session, told.choices, told.count);
    if (!told.why && take_results(&told) && add_ceilings(&told, &err) &&
        (same = picture_of_panels(told.choices, told.count, &told.options, &err))) {
        figure_free(figure->figure);
        figure->figure = same;
        tell_line(&told, line);
        figure->line = arena_printf(figure->arena, "%s", text_str(line));
    }
    lua_settop(L, top);
}
