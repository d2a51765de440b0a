/* script/api/figure.h -- the Figure object; private to the files of figures. */
#ifndef SCRIPT_API_FIGURE_H
#define SCRIPT_API_FIGURE_H

#include "app/result/views.h"
#include "draw/figure/figure.h"
#include "script/host/binding.h"

/* The userdata.  Closing it releases its hold of the Keep; a worker may hold it longer. */
typedef struct FigureBox {
    Keep *keep; /* of a LuaFigure; NULL: closed */
} FigureBox;

typedef struct LuaFigure {
    Figure  *figure;  /* NULL: not drawn yet */
    Arena   *arena;   /* of the arrays below */
    Keep   **keeps;   /* owners of the results that panels show or subtract */
    int      keep_count;
    View    *views;   /* of tensor panels; one a panel */
    Result **results; /* shown; borrowed from the keeps */
    int      result_count;
    double   width;   /* inches and dots an inch of files, where they are given; 0: the defaults */
    int      dpi;
    char    *line;    /* the command that draws it; arena's; NULL: the script's own line */
} LuaFigure;

/* Without a figure yet, with room for this many panels.  [-0, +1, v] */
LuaFigure *figure_push_closed(lua_State *L, int panels);
/* A copy that lives as long as the figure; NULL stays NULL.  [-0, +0, v] */
const char *figure_keep_text(lua_State *L, LuaFigure *figure, const char *text);
/* The panel whose description is at the top (panel.c).  [-0, +0, v] */
void panel_set(lua_State *L, LuaFigure *figure, int index);
/* Bars of the panel at t: strips = "sums", queries = { 3, 17 }.  [-0, +0, v] */
void panel_strips(lua_State *L, int t, MarginChoice *out);
/* Gives the figure of the panels in the options at 1 the command line that draws the same, where
 * there is one (figure_file.c).  [-0, +0, v] */
void figure_set_command(lua_State *L, LuaFigure *figure);

LuaFigure *figure_check(lua_State *L); /* at 1.  [-0, +0, v] */
LuaFigure *figure_at(lua_State *L, int at); /* NULL: closed.  [-0, +0, v] */
int        figure_save(lua_State *L);  /* [-0, +1 or 3, v] */
/* Size of its files, from the options at 1.  [-0, +0, v] */
void figure_set_page(lua_State *L, LuaFigure *figure);
/* "--flag value" behind the line; NULL: nothing. */
void       command_add_option(Text *line, const char *flag, const char *value);

/* Panels that plot measured numbers; for figure.c. */

/* Measures the machine's ceilings on the worker where panels of the options at 1 show them, then
 * continues in `then`, or returns a failure's values.  The caller, a C function, returns its
 * result.  [-0, +?, v] */
int plot_await_ceilings(lua_State *L, lua_KFunction then);

#endif
