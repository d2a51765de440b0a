/* vary.c -- attn.vary: one parameter at several values, as numbers and as a figure. */
#include "script/api/figure.h"

#include <math.h>
#include <stdlib.h>

#include "app/study/study.h"
#include "profile/measure.h"
#include "script/host/turn.h"
#include "script/host/work.h"

#define USUAL_PLOT "error,flops"

/* Everything that lives as long as the figure. */
typedef struct StudyOwned {
    Study        study;
    StudyPicture picture;
} StudyOwned;

static void drop_owned(void *thing)
{
    StudyOwned *owned = thing;

    study_picture_free(&owned->picture);
    study_free(&owned->study);
    free(owned);
}

/* ---- what is to be run ------------------------------------------------------ */

/* One mechanism by its text; false: a cause outside the script, such as a missing
 * file.  [-0, +0, v] */
static bool add_line(lua_State *L, Session *s, int options, const char *text, Study *study,
                     Error *err)
{
    Request *request = request_push(L);
    bool     ok;

    request_set_options(L, options, request);
    ok = request_parse(s, request, text, err) &&
         request_set_place(L, options, s, request, err) && study_add(study, request, err);
    if (ok && request->above)
        luaL_error(L, "%s: a stack of layers has no one parameter to vary", text);
    lua_pop(L, 1);
    return ok;
}

/* Argument 1 is a text or a list of them.  [-0, +0, v] */
static bool add_lines(lua_State *L, Session *s, int options, Study *study, Error *err)
{
    if (lua_type(L, 1) == LUA_TSTRING)
        return add_line(L, s, options, lua_tostring(L, 1), study, err);
    luaL_checktype(L, 1, LUA_TTABLE);
    for (lua_Integer i = 1, count = (lua_Integer)lua_rawlen(L, 1); i <= count; i++) {
        if (lua_rawgeti(L, 1, i) != LUA_TSTRING)
            luaL_error(L, "mechanisms: expected texts, got %s", luaL_typename(L, -1));
        if (!add_line(L, s, options, lua_tostring(L, -1), study, err))
            return false;
        lua_pop(L, 1);
    }
    return true;
}

/* [-0, +0, v] */
static bool open_study(lua_State *L, Session *s, int options, Study *study, Error *err)
{
    Request *exact = request_push(L);

    request_set_options(L, options, exact);
    if (!study_open(study, check_text(L, 2), exact, err))
        return false;
    lua_pop(L, 1);
    return add_lines(L, s, options, study, err) && study_check(study, err);
}

/* ---- running it --------------------------------------------------------------- */

#define VARYING "attnscope.varying"
#define GLANCE  0.01 /* seconds between looks from the explorer */

/* Point after point, each a job of the session's worker. */
typedef struct Varying {
    Study    *study; /* of the figure below it on the stack */
    Session  *session;
    StudyLook look;
    StudyGoal goal; /* the look may point to it */
    double    began;
} Varying;

static int varying_close(lua_State *L)
{
    Varying *v = luaL_checkudata(L, 1, VARYING);

    if (v->study && v->study->job)
        job_cancel(v->study->job);
    return 0;
}

static int varying_free(lua_State *L)
{
    Varying *v = luaL_checkudata(L, 1, VARYING);

    if (v->study) {
        job_free(v->study->job);
        v->study->job = NULL;
    }
    return 0;
}

/* ---- numbers ---------------------------------------------------------------- */

static void set_banded(lua_State *L, const char *name, const char *which, Number number)
{
    if (!number.valid)
        return;
    lua_pushfstring(L, "%s%s", name, which);
    lua_pushnumber(L, number.value);
    lua_rawset(L, -3);
}

/* [-0, +0, m] */
static void set_quantities(lua_State *L, const StudyPoint *p)
{
    for (int q = 0; q < STUDY_QUANTITIES; q++) {
        const char *name = quantity_name((StudyQuantity)q);

        set_banded(L, name, "", p->value[q]);
        set_banded(L, name, "_low", p->low[q]);
        set_banded(L, name, "_high", p->high[q]);
    }
}

/* A number where the values are numbers, else the text.  [-0, +1, m] */
static void push_point_value(lua_State *L, const Study *study, int point)
{
    if (study->words)
        lua_pushstring(L, study->axis.values[point]);
    else
        lua_pushnumber(L, study_x(study, point));
}

/* [-0, +1, m] */
static void push_points(lua_State *L, const Study *study, int line)
{
    lua_createtable(L, study_points(study, line), 0);
    for (int i = 0; i < study_points(study, line); i++) {
        const StudyPoint *p = &study->lines[line].points[i];

        lua_newtable(L);
        if (!study->lines[line].fixed) {
            push_point_value(L, study, i);
            lua_setfield(L, -2, "value");
        }
        set_quantities(L, p);
        if (p->problem[0])
            field_string(L, "problem", p->problem);
        lua_rawseti(L, -2, i + 1);
    }
}

/* [-0, +1, m] */
static void push_study_line(lua_State *L, const Study *study, int line, const StudyGoal *goal)
{
    int at = goal && !study->lines[line].fixed ? study_smallest(study, line, goal) : -1;

    lua_newtable(L);
    field_string(L, "mechanism", study->lines[line].name);
    field_bool(L, "fixed", study->lines[line].fixed);
    push_points(L, study, line);
    lua_setfield(L, -2, "points");
    if (at < 0)
        return;
    push_point_value(L, study, at);
    lua_setfield(L, -2, "smallest");
}

/* Into the table at the top.  [-0, +0, m] */
static void set_lines(lua_State *L, const Study *study, const StudyGoal *goal)
{
    lua_Integer count = 0;

    lua_newtable(L);
    for (int i = 0; i < study->count; i++) {
        if (study->lines[i].baseline) {
            lua_newtable(L);
            set_quantities(L, &study->lines[i].points[0]);
            lua_setfield(L, -3, "exact");
            continue;
        }
        push_study_line(L, study, i, goal);
        lua_rawseti(L, -2, ++count);
    }
    lua_setfield(L, -2, "lines");
    field_string(L, "parameter", study->axis.name);
    lua_createtable(L, study->axis.count, 0);
    for (int i = 0; i < study->axis.count; i++) {
        push_point_value(L, study, i);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "values");
}

/* ---- the function ----------------------------------------------------------- */

/* [-0, +0, v] */
static void read_look(lua_State *L, int t, StudyLook *look, StudyGoal *goal)
{
    const char *keep = option_string(L, t, "keep", NULL);
    Error       err = ERROR_INIT;

    *look = (StudyLook){ .now = (double)NAN, .cursor = -1,
                         .title = option_string(L, t, "title", NULL),
                         .caption = option_string(L, t, "caption", NULL) };
    if (keep && !goal_parse(keep, goal, &err))
        luaL_error(L, "keep: %s", err.text);
    look->goal = keep ? goal : NULL;
    if (!quantities_parse(option_string(L, t, "plot", USUAL_PLOT), look->quantities, &look->count,
                          &err))
        luaL_error(L, "plot: %s", err.text);
}

/* The figure's owner, with an empty study in its keep.  [-0, +1, v] */
static LuaFigure *push_owner(lua_State *L, Keep *below)
{
    LuaFigure *out = figure_push_closed(L, VARY_LINES);
    StudyOwned     *owned = calloc(1, sizeof(*owned));
    Keep      *keep = owned ? keep_new(owned, drop_owned, below) : NULL;

    if (!keep)
        luaL_error(L, "not enough memory for a study");
    out->keeps[out->keep_count++] = keep;
    return out;
}

/* Moves the picture into the figure below the table at the top; without a picture, sets the
 * reason.  [-0, +0, m] */
static void set_figure(lua_State *L, LuaFigure *out, int at, Session *session,
                       const StudyLook *look)
{
    StudyOwned *owned = out->keeps[0]->thing;
    Text   line = { 0 };
    Error  err = ERROR_INIT;

    if (!study_picture(&owned->study, look, &owned->picture, &err)) {
        field_string(L, "problem", err.text);
        return;
    }
    out->figure = owned->picture.figure;
    owned->picture.figure = NULL;
    study_command(&owned->study, session, look, &line);
    out->line = arena_printf(out->arena, "%s", text_str(&line));
    text_free(&line);
    for (int i = 0; i < owned->study.count; i++)
        if (owned->study.lines[i].sample && !owned->study.lines[i].baseline)
            out->results[out->result_count++] = owned->study.lines[i].sample;
    lua_pushvalue(L, at);
    lua_setfield(L, -2, "figure");
}

/* The figure lies below the Varying at `at`.  [-0, +1, v] */
static int push_varied(lua_State *L, Varying *v, int at)
{
    LuaFigure *out = figure_at(L, at - 1);

    lua_newtable(L);
    set_lines(L, v->study, v->look.goal);
    set_figure(L, out, at - 1, v->session, &v->look);
    return 1;
}

static int vary_more(lua_State *L, int status, lua_KContext at)
{
    Varying *v = lua_touserdata(L, (int)at);
    Error    err = ERROR_INIT;

    (void)status;
    for (;;) {
        while (job_goes_on(v->study->job)) {
            turn_report(L, v->began, "attn.vary, %s of %d values", v->study->axis.name,
                         v->study->axis.count);
            if (turn_can_wait(L))
                return turn_wait(L, TASK_SLEEPS, clock_wall() + GLANCE, at, vary_more);
            job_await(L, v->session, v->study->job, 3600);
        }
        lua_settop(L, (int)at);
        if (v->study->job && !study_end(v->study)) {
            error_set(&err, ERR_CANCELLED, "interrupted");
            return failure(L, &err);
        }
        if (!study_begin(v->study, v->session))
            return push_varied(L, v, (int)at);
    }
}

/* With the input at the top.  [-0, +1 or 3, v] */
static int vary_loaded(lua_State *L, int status, lua_KContext unused)
{
    LuaInput  *input = input_check(L, lua_gettop(L));
    LuaFigure *out = push_owner(L, input->keep);
    Varying   *v = box_push(L, sizeof(*v), 0, VARYING, varying_free, varying_close);
    Error      err = ERROR_INIT;

    (void)status;
    (void)unused;
    v->session = input->session;
    v->study = &((StudyOwned *)out->keeps[0]->thing)->study;
    read_look(L, 3, &v->look, &v->goal);
    if (!open_study(L, input->session, 3, v->study, &err))
        return failure(L, &err);
    v->study->measure = option_bool(L, 3, "measure", false);
    for (int k = 0; k < v->look.count; k++)
        v->study->measure = v->study->measure || quantity_is_measured(v->look.quantities[k]);
    v->began = clock_wall();
    lua_toclose(L, -1);
    return vary_more(L, LUA_OK, lua_gettop(L));
}

/* [-0, +1 or 3, v] */
int attn_vary(lua_State *L)
{
    StudyLook look;
    StudyGoal goal;

    lua_settop(L, 3);
    options_check(L, 3, &class_vary_options);
    if (script_of(L)->run)
        return luaL_error(L, "a mechanism cannot start runs while it runs");
    read_look(L, 3, &look, &goal); /* raises before anything is loaded */
    return input_await(L, 3, vary_loaded);
}

static const Member vary_members[] = {
    FIELD("input", "attnscope.Input|string", "as of attn.run"),
    FIELD("n", "integer", "length, of an input given by name"),
    FIELD("d", "integer", "head size, of a generated input"),
    FIELD("heads", "integer", "heads, of a generated input"),
    FIELD("layer", "integer", "layer, of a file given by name"),
    FIELD("causal", "boolean", "default: as the input says"),
    FIELD("position", "string", "positional modifier; see attn.positions"),
    FIELD("seed", "integer", "seed of every random draw"),
    FIELD("seeds", "integer", "quality over so many seeds: a band around the curve"),
    FIELD("fit", "boolean", "fit the mechanism's own tensors on the input"),
    FIELD("device", "string", "where it runs, as of attn.run"),
    FIELD("precision", "string", "of matrix products on a GPU"),
    FIELD("threads", "integer", "default: all CPUs"),
    FIELD("memory", "integer",
          "limit of a run in bytes (default: half of what the machine, or its control group, "
          "gives, less where little of it is left)"),
    FIELD("repeat", "integer", "timed runs at least, and as many as 0.2 s hold; 1: as none"),
    FIELD("measure", "boolean", "take time and memory even if no plot shows them"),
    FIELD("plot", "string",
          "plots beside each other: \"error,flops\"; also mass, tv, time, memory"),
    FIELD("keep", "string", "\"95%\" of the mass, or \"error=5%\": the smallest value that does"),
    FIELD("title", "string", "title of the figure"),
    FIELD("caption", "string", "line below the figure"),
    MEMBER_END,
};
const Class class_vary_options = { .name = "VaryOptions",
                                   .help = "What to run over one parameter, and what to show.",
                                   .members = vary_members };
