/* script/api/lua_plot.h -- panels of figures that are plots of measured numbers; for lua_figure.c. */
#ifndef SCRIPT_API_LUA_PLOT_H
#define SCRIPT_API_LUA_PLOT_H

#include "script/api/lua_figure.h"

/* view = "plot(time)": the result, which the figure keeps already, and those of `with` in the
 * table at t (0: none), become the panel; false: the view is no plot.  [-0, +0, v] */
bool plot_panel(lua_State *L, int t, Result *result, Session *s, const char *view,
                LuaFigure *figure, Panel *panel);
/* scaling = { { name=, n=, cost=, claim= }, ... }, the list at `at`.  [-0, +0, v] */
void scaling_panel(lua_State *L, int t, int at, Panel *panel);
/* Measures, where it takes a worker, what the machine can do at most for the panels of the options
 * at 1 that show it; then goes on in `then`, or gives a failure's values.  To be returned from a C
 * function.  [-0, +?, v] */
int plot_await_ceilings(lua_State *L, lua_KFunction then);

#endif
