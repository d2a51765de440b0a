/* figure_file.c -- figures and steps as files: what Lua's save and save_steps take. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "script/api/figure.h"
#include "script/host/work.h"

#define USUAL_DPI 300

/* width = 6.75, "6.75in" or the like (figure_width), or "900px", as inches; 0: not said.
 * [-0, +0, v] */
static double check_width(lua_State *L, int t, int dpi)
{
    double      width = 0;
    const char *text;
    char       *end;

    if (lua_getfield(L, t, "width") == LUA_TSTRING) {
        text = option_string(L, t, "width", "");
        width = strtod(text, &end);
        if (!strcmp(end, "px"))
            width /= dpi ? dpi : USUAL_DPI;
        else if (isnan(width = figure_width(text)))
            luaL_error(L, "width: expected inches as 6.75 or \"6.75in\", or as \"8.5cm\", "
                       "\"85mm\", \"246pt\" or \"900px\", got '%s'", text);
    } else {
        width = option_number(L, t, "width", 0);
    }
    if (!(width >= 0 && width <= 100))
        luaL_error(L, "width: expected inches from 0 to 100, got %f", width);
    lua_pop(L, 1);
    return width;
}

void figure_set_page(lua_State *L, LuaFigure *figure)
{
    figure->dpi = (int)option_integer(L, 1, "dpi", 0, 1, 4800);
    figure->width = check_width(L, 1, figure->dpi);
}

/* size = 8 or "8pt", as inches; 0: not said.  [-0, +0, v] */
static double check_size(lua_State *L, int t)
{
    const char *text;
    double      size = 0;

    if (t && lua_istable(L, t) && lua_getfield(L, t, "size") != LUA_TNIL) {
        text = lua_tostring(L, -1); /* a number as text, too */
        size = text ? figure_size(text) : (double)NAN;
        if (isnan(size))
            luaL_error(L, "size: expected 2 to 72 points, as 8 or \"8pt\"");
        lua_pop(L, 1);
    } else if (t && lua_istable(L, t)) {
        lua_pop(L, 1);
    }
    return size;
}

/* Raises the error of what failed in an option.  [-0, +0, v] */
static void check_option(lua_State *L, bool ok, const char *name, const Error *err)
{
    if (!ok)
        luaL_error(L, "%s: %s", name, err->text);
}

static void check_letters(lua_State *L, int t, PngOptions *o)
{
    const char *letters = option_string(L, t, "letters", NULL);
    Error       err = ERROR_INIT;

    check_option(L, figure_font_check(o->font, &err), "font", &err);
    check_option(L, !letters || figure_letters_parse(letters, &o->letters, &err), "letters", &err);
}

/* The words that are not drawn.  [-0, +0, v] */
static unsigned check_hidden(lua_State *L, int t)
{
    const char *labels = option_string(L, t, "labels", NULL);
    unsigned    hides = option_bool(L, t, "no_title", false) ? HIDE_TITLES | HIDE_LETTERS : 0;
    Error       err = ERROR_INIT;

    hides |= option_bool(L, t, "no_caption", false) ? HIDE_CAPTION : 0;
    hides |= option_bool(L, t, "no_count", false) ? HIDE_COUNTS : 0;
    check_option(L, !labels || figure_labels_parse(labels, &hides, &err), "labels", &err);
    return hides;
}

/* How to write a file, of the table at t (or none).  [-0, +0, v] */
static PngOptions save_options_check(lua_State *L, int t)
{
    PngOptions  o = { 0 };
    const char *page;
    Error       err = ERROR_INIT;

    options_check(L, t, &class_save_options);
    o.dpi = (int)option_integer(L, t, "dpi", 0, 1, 4800);
    o.width_inch = check_width(L, t, o.dpi);
    page = option_string(L, t, "page", NULL);
    check_option(L, !page || figure_page_parse(page, &o.page_width, &o.page_height, &err), "page",
                 &err);
    o.theme = option_string(L, t, "theme", NULL);
    o.format = option_string(L, t, "format", NULL);
    o.colours = (int)option_integer(L, t, "colours", 0, 0, 256);
    luaL_argcheck(L, o.colours == 0 || o.colours == 24 || o.colours == 256, t,
                  "colours: expected 24 or 256");
    o.transparent = option_bool(L, t, "transparent", false);
    o.font = option_string(L, t, "font", NULL);
    o.size_inch = check_size(L, t);
    check_letters(L, t, &o);
    o.hides = check_hidden(L, t);
    o.delay = option_number(L, t, "delay", 0);
    luaL_argcheck(L, o.delay >= 0 && o.delay <= 60, t, "delay: expected seconds from 0 to 60");
    return o;
}

/* "letters,axes,ticks" without those that are hidden. */
static void add_labels(unsigned hides, Text *out)
{
    size_t start;

    text_add(out, " --labels ");
    start = out->length;
    if (!(hides & HIDE_LETTERS))
        text_add(out, "letters");
    if (!(hides & HIDE_AXES))
        text_addf(out, "%saxes", out->length > start ? "," : "");
    if (!(hides & HIDE_TICKS))
        text_addf(out, "%sticks", out->length > start ? "," : "");
    if (out->length == start)
        text_add(out, "none");
}

/* 0: not said */
static void add_size(Text *out, double inch)
{
    Json number;

    if (!(inch > 0))
        return;
    text_add(out, " --size ");
    number = jsonw_to(out);
    jsonw_number(&number, inch);
    text_add(out, "in");
}

/* 0: not said */
static void add_number(Text *out, const char *flag, double value)
{
    Json number;

    if (!(value > 0))
        return;
    text_addf(out, " --%s ", flag);
    number = jsonw_to(out);
    jsonw_number(&number, value);
}

static void add_page(const PngOptions *o, Text *out)
{
    Json number;

    if (!(o->page_width > 0))
        return;
    add_number(out, "page", o->page_width);
    text_add(out, "x");
    number = jsonw_to(out);
    jsonw_number(&number, o->page_height);
}

/* Options of letters and of the words that are left out. */
static void add_words(const PngOptions *o, Text *out)
{
    static const char *const letters[] = { "outlines", "text", "font" };

    if (o->font) {
        text_add(out, " --font ");
        word_quote(out, o->font);
    }
    add_size(out, o->size_inch);
    if (o->letters)
        text_addf(out, " --letters %s", letters[o->letters]);
    text_add(out, o->hides & HIDE_TITLES ? " --no-title" : "");
    text_add(out, o->hides & HIDE_CAPTION ? " --no-caption" : "");
    text_add(out, o->hides & HIDE_COUNTS ? " --no-count" : "");
    if (o->hides & HIDE_LABELS || o->hides & HIDE_TITLES)
        add_labels(o->hides, out);
}

/* Writes them as options of a command. */
static void save_options_line(const PngOptions *o, const char *path, Text *out)
{
    add_number(out, "width", o->width_inch);
    add_page(o, out);
    if (o->dpi)
        text_addf(out, " --dpi %d", o->dpi);
    if (o->theme)
        text_addf(out, " --theme %s", o->theme);
    if (o->format)
        text_addf(out, " --format %s", o->format);
    add_number(out, "delay", o->delay);
    add_words(o, out);
    text_add(out, o->colours == 256 ? " --color 256" : "");
    text_addf(out, "%s -o ", o->transparent ? " --transparent" : "");
    word_quote(out, path);
}

/* "step ..." that writes the same. */
static void steps_line(Session *s, const Result *result, const PictureOptions *picture,
                       const PngOptions *png, const char *path, Text *out)
{
    Text command = { 0 };

    request_command(s, &result->request, "step", &command);
    text_add(out, text_str(&command) + strlen("attnscope "));
    text_free(&command);
    if (picture->head > 0)
        text_addf(out, " --head %lld", (long long)picture->head);
    text_add(out, picture->sorted ? " --sorted" : "");
    save_options_line(png, path, out);
}

/* Its pointers belong to values on the stack. */
typedef struct Saving {
    Session         *session;
    const LuaFigure *figure; /* or steps of: */
    Result          *result;
    PictureOptions   picture;
    PngOptions       png;
    const char      *path;
    Text            *line;
} Saving;

static bool save_drawing(void *context, const atomic_bool *cancel, Error *err)
{
    Saving          *s = context;
    const LuaFigure *f = s->figure;

    (void)cancel;
    if (f)
        return picture_save(f->figure, f->results, f->result_count, text_str(s->line),
                            &s->png, s->path, err);
    return steps_save(s->result, 0, result_steps(s->result), &s->picture, NULL,
                      text_str(s->line), &s->png, s->path, err);
}

/* Raises an error unless every file format can hold the metadata key and we do not use it
 * ourselves.  [-0, +0, v] */
static void check_metadata_key(lua_State *L, int at)
{
    const char *key = lua_type(L, at) == LUA_TSTRING ? lua_tostring(L, at) : "";
    size_t      length = strlen(key);

    if (!length || length > 60 || length != lua_rawlen(L, at) || !strcmp(key, "Software") ||
        strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != length)
        luaL_error(L, "metadata: a key has letters, digits, _ . and -, 60 at most, and is not "
                   "Software");
}

/* metadata = { author = "me", run = 3 } of the options at 3 as key, value, ..., NULL, which lies
 * on the stack with what it points to; NULL: none.  [-0, +1, v] */
static const char *const *push_metadata(lua_State *L)
{
    const char **pairs;
    int          count = 0, texts, table;

    if (lua_getfield(L, 3, "metadata") == LUA_TNIL)
        return NULL;
    if (!lua_istable(L, -1))
        luaL_error(L, "metadata: expected a table of keys and texts, got %s", luaL_typename(L, -1));
    table = lua_gettop(L);
    pairs = lua_newuserdatauv(L, (2 * METADATA_OWN_MOST + 1) * sizeof(*pairs), 1);
    lua_newtable(L);
    texts = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        check_metadata_key(L, -2);
        if (count == METADATA_OWN_MOST)
            luaL_error(L, "metadata: %d keys at most", METADATA_OWN_MOST);
        pairs[2 * count] = lua_tostring(L, -2);
        pairs[2 * count + 1] = luaL_tolstring(L, -1, NULL);
        if (strlen(pairs[2 * count + 1]) != lua_rawlen(L, -1))
            luaL_error(L, "metadata: there is a zero byte in %s", pairs[2 * count]);
        lua_rawseti(L, texts, 2 * count + 2);
        lua_pushvalue(L, -2);
        lua_rawseti(L, texts, 2 * count++ + 1);
    }
    pairs[2 * count] = NULL;
    lua_setiuservalue(L, -2, 1);
    lua_remove(L, table);
    return pairs;
}

/* The object at 1, path and options at 2 and 3.  [-0, +3, v] */
static Saving *push_saving(lua_State *L)
{
    const char *path = check_text(L, 2);
    PngOptions  png = (lua_settop(L, 3), save_options_check(L, 3));
    Text       *line = (png.metadata = push_metadata(L), text_box(L));
    Saving     *s = lua_newuserdatauv(L, sizeof(*s), 0);

    *s = (Saving){ .path = path, .png = png, .line = line };
    return s;
}

/* [-0, +1 or 3, v] */
int figure_save(lua_State *L)
{
    const LuaFigure *figure = figure_check(L);
    Saving          *s = push_saving(L);

    s->figure = figure;
    s->png.dpi = s->png.dpi ? s->png.dpi : figure->dpi;
    s->png.width_inch = s->png.width_inch > 0 ? s->png.width_inch : figure->width;
    s->session = script_of(L)->session->thing;
    text_add(s->line, figure->line ? figure->line : script_of(L)->line);
    if (figure->line) /* the line that makes the file again: the figure's own, or the script's */
        save_options_line(&s->png, s->path, s->line);
    return work_await(L, s->session, "writing a picture", save_drawing, work_push_true);
}

/* [-0, +1 or 3, v] */
int result_save_steps(lua_State *L)
{
    const LuaResult *result = result_check(L, 1);
    Saving          *s = push_saving(L);

    s->result = result->result;
    s->session = result->session;
    s->picture.head = option_integer(L, 3, "head", -1, 0, s->result->run->h - 1);
    s->picture.sorted = option_bool(L, 3, "sorted", false);
    steps_line(s->session, s->result, &s->picture, &s->png, s->path, s->line);
    return work_await(L, s->session, "writing a picture", save_drawing, work_push_true);
}

static const Member save_options[] = {
    FIELD("width", "number|string",
          "inches, like 3.25 or \"6.75in\"; or \"8.5cm\", \"85mm\", \"246pt\", \"900px\""),
    FIELD("page", "string", "paper around it: 16:9, 4:3, A4, or WxH as \"13.333x7.5\""),
    FIELD("dpi", "integer", "dots an inch (default 300)"),
    FIELD("theme", "string", "light, dark, print, slide or colour-blind"),
    FIELD("format", "string", "png, svg, pdf, txt or ans, whatever the ending"),
    FIELD("colours", "integer", "of .ans: 24 for true colour (default), or 256"),
    FIELD("metadata", "table<string, any>", "to be put into the file as well: { author = \"me\" }"),
    FIELD("transparent", "boolean", "no background"),
    FIELD("font", "string", "sans, mono, or a .ttf or .otf file"),
    FIELD("size", "number|string", "one size of all letters: points, or \"8pt\", \"3mm\""),
    FIELD("letters", "string", "of an SVG: outlines, text, or font (text with its font inside)"),
    FIELD("labels", "string", "which to draw of letters, axes, ticks: \"axes,ticks\"; \"\": none"),
    FIELD("no_title", "boolean", "no title of the figure and its panels"),
    FIELD("no_caption", "boolean", "no caption"),
    FIELD("no_count", "boolean", "no words below the panels"),
    FIELD("delay", "number", "seconds each frame of .apng stands (default 1)"),
    FIELD("head", "integer", "of save_steps, counted from 0"),
    FIELD("sorted", "boolean", "of save_steps: tokens in the mechanism's own order"),
    MEMBER_END,
};
const Class class_save_options = { .name = "SaveOptions", .help = "How to write a picture.",
                                   .members = save_options };

/* A figure of panels as the figure command that draws the same.
 *
 * Then the file holds that command and `rerender` makes it again.  What only the script has (its
 * own tensors, mechanisms, captions of single panels) stays as the script made it.
 */

typedef struct Described {
    LuaFigure     *figure;
    PanelChoice   *choices; /* of the figure's arena */
    int            count, panels;
    PictureOptions options;
    Session       *session; /* of all results */
    Text          *titles;  /* "first|second" */
    bool           titled;
    const char    *why;     /* no command draws it; static; NULL: one does */
} Described;

/* The field as text; NULL: it is not there.  [-0, +0, v] */
static const char *field(lua_State *L, int t, const char *key, Described *described)
{
    const char *text = NULL;
    int         top = lua_gettop(L);

    if (t && lua_getfield(L, t, key) != LUA_TNIL)
        text = figure_keep_text(L, described->figure, luaL_tolstring(L, -1, NULL));
    lua_settop(L, top);
    return text;
}

/* Adds a choice that shows the result.  [-0, +0, v] */
static PanelChoice *add_choice(Described *described, const LuaResult *result)
{
    PanelChoice *choice = &described->choices[described->count++];

    if (described->session && described->session != result->session)
        described->why = "the panels are of different inputs";
    described->session = result->session;
    *choice = (PanelChoice){ .result = result->result, .spec = PANEL_SPEC_INIT };
    return choice;
}

/* ---- one panel ------------------------------------------------------------------- */

/* Options of the whole figure must be equal in all panels. */
static void describe_shared(lua_State *L, int t, int index, Described *described)
{
    PictureOptions *o = &described->options;
    const char     *span = field(L, t, "span", described);
    MarginChoice    strips = { .kind = MARGIN_NONE };

    if (t)
        panel_strips(L, t, &strips);
    if (index == 0) {
        o->span = span;
        o->strips = strips;
    } else if (!span != !o->span || (span && strcmp(span, o->span) != 0)) {
        described->why = "the panels show different spans";
    } else if (strips.kind != o->strips.kind || strips.query_count != o->strips.query_count ||
               memcmp(strips.queries, o->strips.queries,
                      (size_t)strips.query_count * sizeof(*strips.queries)) != 0) {
        described->why = "the panels have different strips";
    }
}

static void describe_looks(lua_State *L, int t, const Panel *panel, Described *described,
                           PanelSpec *out)
{
    out->pool = field(L, t, "pool", described) ? (int)panel->pool : -1;
    out->scale = field(L, t, "scale", described) ? (int)panel->scale : -1;
    out->map = field(L, t, "cmap", described) ? (int)panel->map : -1;
    out->excludes = panel->excludes;
    out->excluded = panel->excluded;
    if (field(L, t, "region", described))
        out->region = panel->region;
    out->ranged = panel->lo < panel->hi &&
                  (field(L, t, "lo", described) || field(L, t, "hi", described));
    out->lo = panel->lo;
    out->hi = panel->hi;
    if (panel->view->kind == VIEW_HOPS && field(L, t, "layers", described))
        out->reach.layers = reach_view_depth(panel->view);
    out->reach.strict = panel->view->kind == VIEW_HOPS && reach_view_strict(panel->view);
    if (panel->note_count)
        snprintf(out->notes, sizeof(out->notes), "%s", field(L, t, "notes", described));
}

static void describe_title(lua_State *L, int t, int index, Described *described,
                           PanelChoice *choice)
{
    choice->title = field(L, t, "title", described);
    described->titled |= choice->title != NULL;
    if (choice->title && strchr(choice->title, '|'))
        described->why = "a panel's title has a bar in it";
    text_addf(described->titles, "%s%s", index ? "|" : "", choice->title ? choice->title : "");
}

/* Adds the curves of `with` to the plot of the choice.  [-0, +0, v] */
static void describe_joined(lua_State *L, int t, Described *described, const char *view)
{
    if (lua_getfield(L, t, "with") == LUA_TTABLE)
        for (lua_Integer k = 1; k <= luaL_len(L, -1); k++) {
            PanelChoice *choice;

            lua_geti(L, -1, k);
            choice = add_choice(described, result_check(L, lua_gettop(L)));
            snprintf(choice->spec.view, sizeof(choice->spec.view), "%s", view);
            choice->joins = true;
            lua_pop(L, 1);
        }
    lua_settop(L, t);
}

/* The panel described at the top, a table with a result.  [-0, +0, v] */
static void describe_table(lua_State *L, int index, Described *described)
{
    const Panel *panel = &described->figure->figure->panels[index];
    PanelChoice *choice;
    const char  *view;
    int          t = lua_gettop(L);

    if (lua_getfield(L, t, "result") == LUA_TNIL) {
        described->why = "a panel shows numbers of the script";
        return;
    }
    choice = add_choice(described, result_check(L, t + 1));
    lua_settop(L, t);
    view = field(L, t, "view", described);
    choice->spec.head = option_integer(L, t, "head", -1, 0, INT32_MAX);
    choice->spec.sorted = option_bool(L, t, "sorted", false);
    if (lua_getfield(L, t, "minus") != LUA_TNIL) {
        choice->minus = result_check(L, t + 1)->result;
        view = view ? view : figure_keep_text(L, described->figure, panel->view->name);
    }
    lua_settop(L, t);
    snprintf(choice->spec.view, sizeof(choice->spec.view), "%s", view ? view : "");
    if (!panel->plot)
        describe_looks(L, t, panel, described, &choice->spec);
    describe_title(L, t, index, described, choice);
    describe_shared(L, t, index, described);
    describe_joined(L, t, described, choice->spec.view);
    if (field(L, t, "caption", described))
        described->why = "a panel has a caption of its own";
}

static void describe_panel(lua_State *L, int index, Described *described)
{
    int t = lua_gettop(L);

    if (class_test(L, t, &class_result)) {
        add_choice(described, result_check(L, t));
        text_add(described->titles, index ? "|" : "");
        describe_shared(L, 0, index, described);
    } else {
        describe_table(L, index, described);
    }
    lua_settop(L, t);
}

/* ---- the whole --------------------------------------------------------------------- */

static void describe_options(lua_State *L, Described *described)
{
    const Figure   *figure = described->figure->figure;
    PictureOptions *o = &described->options;
    int             panels = described->panels;

    o->head = -1;
    o->title = field(L, 1, "title", described);
    o->caption = field(L, 1, "caption", described);
    o->sharing = figure->sharing;
    o->rows = figure->rows;
    o->cols = figure->cols;
    o->loose = figure->loose;
    if (o->rows > 0 && o->cols <= 0)
        o->cols = (panels + o->rows - 1) / o->rows;
    if (o->cols > 0 && o->rows <= 0)
        o->rows = (panels + o->cols - 1) / o->cols;
    if (!figure->legend)
        described->why = "there is no option that leaves out the legend";
}

/* Rooflines need the ceilings of the machine. */
static bool add_ceilings(Described *described, Error *err)
{
    PlotKind kind;

    for (int i = 0; i < described->count; i++)
        if (plot_word(panel_choice_view(&described->choices[i]), &kind, NULL) &&
            kind == PLOT_ROOFLINE) {
            described->choices[i].ceilings =
                session_ceilings(described->session, described->choices[i].result->request.ops,
                                 described->choices[i].result->request.threads, err);
            if (!described->choices[i].ceilings)
                return false;
        }
    return true;
}

void command_add_option(Text *line, const char *flag, const char *value)
{
    if (!value)
        return;
    text_addf(line, " --%s ", flag);
    word_quote(line, value);
}

static void describe_line(Described *described, Text *line)
{
    picture_command(described->session, described->choices, described->count, &described->options,
                    line);
    command_add_option(line, "title", described->options.title);
    command_add_option(line, "titles", described->titled ? text_str(described->titles) : NULL);
    command_add_option(line, "caption", described->options.caption);
}

/* Sets the figure's results to those of all choices, so that the file names each, as the command
 * does. */
static bool take_results(Described *described)
{
    Result **results = arena_zalloc(described->figure->arena, described->count, sizeof(Result *));

    for (int i = 0; results && i < described->count; i++)
        results[i] = described->choices[i].result;
    described->figure->results = results ? results : described->figure->results;
    described->figure->result_count = results ? described->count : described->figure->result_count;
    return results != NULL;
}

/* Room for the choices of `panels` panels; false: none.  */
static bool make_room(Described *described)
{
    Arena *arena = described->figure->arena;

    described->choices = arena_zalloc(arena, (int64_t)described->panels * (1 + PANEL_OVERLAYS),
                                 sizeof(*described->choices));
    return described->choices != NULL;
}

void figure_set_command(lua_State *L, LuaFigure *figure)
{
    Described    described = { .figure = figure, .panels = figure->figure->count };
    Figure *same;
    Text   *line;
    Error   err = ERROR_INIT;
    int     top = lua_gettop(L), panels;

    described.titles = text_box(L);
    line = text_box(L);
    if (!make_room(&described))
        luaL_error(L, "not enough memory for a figure");
    describe_options(L, &described);
    lua_settop(L, top + 2);
    lua_getfield(L, 1, "panels");
    panels = lua_gettop(L);
    for (int i = 0; i < described.panels && !described.why; i++) {
        lua_geti(L, panels, i + 1);
        describe_panel(L, i, &described);
        lua_settop(L, panels);
    }
    if (!described.why)
        described.why = picture_no_command(described.session, described.choices, described.count);
    if (!described.why && take_results(&described) && add_ceilings(&described, &err) &&
        (same = picture_of_panels(described.choices, described.count, &described.options, &err))) {
        figure_free(figure->figure);
        figure->figure = same;
        describe_line(&described, line);
        figure->line = arena_printf(figure->arena, "%s", text_str(line));
    }
    lua_settop(L, top);
}
