/* module.c -- the table of the module `attnscope`, and its manual. */
#include <string.h>

#include "script/host/state.h"
#include "script/host/work.h"
#include "script/script.h"

/* [-0, +1, -] */
static int attn_interrupted(lua_State *L)
{
    lua_pushboolean(L, script_interrupted());
    return 1;
}

/* [-0, +1, v] */
static int attn_memory(lua_State *L)
{
    Script     *script = script_of(L);
    lua_Integer limit = luaL_optinteger(L, 1, script->limit);

    luaL_argcheck(L, limit > script->bytes, 1, "the limit is below what is in use");
    luaL_argcheck(L, !script->limit_most || limit <= script->limit_most, 1,
                  "--safe allows no more than it gave");
    script->limit = limit;
    lua_newtable(L);
    field_integer(L, "bytes", script->bytes);
    field_integer(L, "peak", script->peak);
    field_integer(L, "limit", script->limit);
    return 1;
}

/* ---- the table -------------------------------------------------------------- */

#define RUNNABLE "mechanism: string|attnscope.Pattern, options?: attnscope.RunOptions"
#define OR_FAILURE "?, string?, string?"

static const Member attn_members[] = {
    FIELD("version", "string", "of attnscope"),
    FIELD("has_ui", "boolean", "the interactive program is there"),
    FIELD("ui", "attnscope.ui", "the explorer; also the global ui"),
    FIELD("null", "any", "JSON's null in a list"),
    FIELD("object", "table", "metatable of a table that JSON writes as {} when empty"),
    FIELD("args", "string[]", "words after FILE; [0] is FILE"),
    { "mechanisms", attn_mechanisms, "filter?: attnscope.Filter", "string[]",
      "Ids of the mechanisms, in the order of the catalogue." },
    { "info", attn_info, "id: string", "attnscope.Card",
      "Card of a mechanism: id, title, authors, year, arxiv, source, formula, teaches, class, "
      "classes, claim, causal, cross, at_end, needs_x, needs_attn, needs_none, own_rows, fit, "
      "example, sketch, params, views, notes." },
    { "positions", attn_positions, "", "table[]", "The positional modifiers." },
    { "presets", attn_presets, "", "table[]",
      "Published pictures: id, title, source, help, the command each one is, and model: it runs a "
      "model that the user names." },
    { "lessons", NULL, "", "table[]" OR_FAILURE,
      "The lessons, with what is done of each: id, title, summary, minutes, steps, done, at, and "
      "file of one that does not come with the program." },
    { "generators", attn_generators, "", "table[]", "The synthetic inputs." },
    { "load", attn_load, "spec: string, options?: attnscope.InputOptions",
      "attnscope.Input" OR_FAILURE, "A file, synthetic:NAME(arguments), or sample:NAME.  "
      "Of a file with other names "
      "attn.load(path, { q = \"query\", k = \"key\", v = \"value\" })." },
    { "synthetic", NULL, "spec: string, options?: attnscope.InputOptions",
      "attnscope.Input" OR_FAILURE, "attn.load of a generator: \"induction(period=4)\"." },
    { "random", NULL, "options?: attnscope.RandomOptions", "attnscope.Input" OR_FAILURE,
      "Normal numbers, or a structure to be found: attn.random{ n = 64, d = 16, heads = 2 }." },
    { "model", attn_model, "path: string", "attnscope.Model" OR_FAILURE,
      "A transformer: a GGUF file, or a folder with config.json." },
    { "input", attn_input, "tensors: attnscope.Tensors", "attnscope.Input" OR_FAILURE,
      "An input made of tensors, which are copied." },
    { "tensor", attn_tensor, "shape: integer[]|number[][], dtype?: string", "attnscope.Tensor",
      "Zeros of a shape, or the numbers of nested lists; dtype f32 unless given." },
    { "vector", attn_vector, "values: number[], dtype?: string", "attnscope.Tensor",
      "A tensor with one axis." },
    { "read", attn_read, "path: string, name?: string", "attnscope.Tensor" OR_FAILURE,
      "The array of a .npy or .csv file, or that of a name in a .npz, .safetensors or .json file: "
      "attn.read(\"layer.npz\", \"query\")." },
    { "write_npz", attn_write_npz, "path: string, tensors: table<string, attnscope.Tensor>",
      "true" OR_FAILURE, "Tensors by name as one .npz file: numpy.load reads it." },
    { "pattern", attn_pattern, "definition: attnscope.PatternOptions", "string" OR_FAILURE,
      "Adds a pattern to the catalogue: attn.pattern{ id = \"near\", row = function(i, row) "
      "row:range(i - 2, i + 2, \"window\") end }.  Its id then runs like any other." },
    { "mechanism", attn_mechanism, "definition: attnscope.MechanismOptions", "string" OR_FAILURE,
      "Adds a mechanism to the catalogue; its function computes the output with tensors." },
    { "register", NULL, "definition: table", "string|string[]" OR_FAILURE,
      "Adds what a table says: a pattern if it has row or cell, a mechanism if it has run, or a "
      "list of both.  attn.pattern and attn.mechanism do so at once." },
    { "reload", attn_reload, "file: string", "string[]" OR_FAILURE,
      "Runs a script's file again; the patterns and mechanisms that it defines, whose ids it "
      "gives, take the place of those before, and the explorer's panes show them." },
    { "check", NULL, "mechanism: string, options?: attnscope.CheckOptions|string",
      "attnscope.Report",
      "Tries a mechanism at several sizes: shape, finite numbers, the same twice, no look ahead "
      "when causal, weights @ V = output, counted FLOPs as declared; and how far it is from full "
      "attention or another reference, which may be said alone: attn.check(\"mine\", \"window\").  "
      "ok, and cases of name, ok and text." },
    { "run", attn_run, RUNNABLE,
      "attnscope.Result" OR_FAILURE ", attnscope.Record?",
      "Runs a mechanism: \"bigbird\" or \"bigbird(window=5)\".  A run that failed gives its "
      "record as a fourth value." },
    { "start", attn_start, RUNNABLE,
      "attnscope.Job" OR_FAILURE, "As run, but goes on at once; runs of one input wait for each "
      "other." },
    { "profile", attn_profile,
      RUNNABLE ", plan?: attnscope.ProfileOptions",
      "attnscope.Record" OR_FAILURE ", attnscope.Record?",
      "Measures a mechanism; its record, with nnz and density." },
    { "compare", NULL, "options: table", "attnscope.Record[]",
      "Records with quality: attn.compare{\"full\", \"bigbird\", n=512, [\"repeat\"]=5}; a point "
      "that failed is a record too.  budget=\"pairs=5%\" chooses each mechanism's size, as "
      "attn.budget does, and says it in the record's warnings; per_head=true adds quality.heads." },
    { "budget", attn_budget, "mechanism: string, budget: string, options?: attnscope.RunOptions",
      "string" OR_FAILURE,
      "A mechanism's text with the size (window, block, features ...) that takes about this share "
      "of full attention's pairs or FLOPs: attn.budget(\"window\", \"pairs=5%\", { n = 512 }) "
      "gives \"window(window=27)\", and a line that says what it reached.  A size that the text "
      "gives stays." },
    { "vary", attn_vary,
      "mechanisms: string|string[], range: string, options?: attnscope.VaryOptions",
      "table" OR_FAILURE,
      "One parameter at several values: attn.vary(\"performer\", \"features=16:512:x2\").  "
      "parameter, values, exact (the costs of full attention), lines of points (value, error, "
      "mass, tv, flops, time, memory, each with _low and _high where there is a band, or problem; "
      "with `keep` a line's smallest), and figure." },
    { "figure", attn_figure, "options: attnscope.FigureOptions", "attnscope.Figure" OR_FAILURE,
      "A figure of panels, of a preset, of a command's words, or of what a position does." },
    { "fit", attn_fit, "xs: number[], ys: number[], options?: attnscope.FitOptions",
      "attnscope.Growth",
      "y = c x^alpha by least squares of the logarithms: alpha, its 95 % interval lo and hi "
      "(Student's; four different x at least, equal x count as their mean), stderr, c, r2, "
      "count; best: the nearest of 1, log n, n, n log n, n^1.5 and n^2, models: the deviation "
      "that each leaves; slopes: between neighbours." },
    { "cache", attn_cache, "options: attnscope.CacheOptions", "attnscope.Cache",
      "What a stack of layers holds and reads while it generates: attn.cache{layers="
      "\"(window(4096),full)x21\", heads=16, kv_heads=8, dim=256, n=8192}." },
    { "sweep", NULL, "options: attnscope.SweepOptions", "attnscope.Sweep" OR_FAILURE,
      "Records of all combinations, as the command sweep makes them: "
      "attn.sweep{\"full\", \"bigbird\", n=\"256:4096:x2\", output=\"cost.jsonl\", resume=true}, "
      "or with lists attn.sweep{\"window\", n={256, 512}, params={window={3, 5}}, seeds={0, 1}}; "
      "a point that failed is a record too.  If the function `row` or `progress` raises an "
      "error, the sweep first ends in order, then the error is raised.  The file holds whole "
      "records, and resume goes on." },
    { "read_sweep", NULL, "path: string", "attnscope.Sweep" OR_FAILURE,
      "Records of a file that a sweep wrote (.jsonl); a half-written last line is ignored." },
    { "pivot", NULL, "rows: table[], down: string, across: string, value: string",
      "table[], string[]",
      "Rows with one column for each value of `across`, and the columns' names: "
      "attn.pivot(records, \"n\", \"mechanism\", \"time_ms.median\").  The name of a group means "
      "its main number: time_ms is the median." },
    { "roofline", NULL, "options?: attnscope.RooflineOptions", "attnscope.Roofline" OR_FAILURE,
      "Stages under what this machine can do at most: attn.roofline{\"full\", \"linear\", n=512}.  "
      "A mechanism may say its device: \"full(device=cuda)\" stands under the GPU's ceilings." },
    { "csv", NULL, "target: string|file*, rows: table[], columns?: string[]", "true" OR_FAILURE,
      "Rows as CSV; a column \"time_ms.median\" looks inside a table, as the columns of tables "
      "of names do where none are given." },
    { "json", NULL, "value: any, indent?: integer", "string",
      "JSON with sorted keys; an empty table is [] unless its metatable is attn.object." },
    { "from_json", attn_from_json, "text: string", "any" OR_FAILURE,
      "An object's nulls are absent; a list's are attn.null." },
    { "command", attn_command, "...: string", "string" OR_FAILURE,
      "Any command as in the shell: attn.command(\"run\", \"full\", \"-n\", \"64\")." },
    { "on", NULL, "event: string, f: fun(event: table)", "fun(): boolean",
      "Calls f after each event of this name; what it gives takes f away again.  run: { mechanism, "
      "result } of attn.run and Job:wait, { mechanism, pane } of a run in the explorer.  compare: "
      "{ records } of attn.compare.  point: { done, total, record, left } of attn.sweep.  figure: "
      "{ path, figure } of Figure:save, { path } of the explorer.  In init.lua and files of --lua "
      "also of plain commands: { mechanism, record } of run, { records } of compare, { done, "
      "total, record, left } of sweep, { path } of figure.  An error in f is reported, and the "
      "script goes on; what f does itself tells nobody." },
    { "log", NULL, "level: string, format: string, ...: any", "",
      "A line on standard error: debug (if ATTNSCOPE_DEBUG is set), info, warning or error." },
    { "interrupted", attn_interrupted, "", "boolean", "Ctrl-C was pressed." },
    { "memory", attn_memory, "limit?: integer", "table",
      "Of Lua's own objects: bytes, peak, limit; sets the limit." },
    { "environment", attn_environment, "", "table", "The machine, as in every record." },
    MEMBER_END,
};

const Class class_attn = {
    .name = "attn",
    .help = "The module: `local attn = require \"attnscope\"`; also the global attn.",
    .members = attn_members,
};

/* The prelude's bytes; mk/script.mk makes them from scripts/lua/prelude.lua. */
extern const unsigned char script_prelude[];
extern const size_t        script_prelude_size;

static const Class *const script_classes[] = {
    &class_attn, &class_ui, &class_pane, &class_tensor, &class_input, &class_result, &class_pattern,
    &class_figure, &class_model, &class_model_options, &class_model_swap, &class_generate_options,
    &class_job, &class_row, &class_context, &class_param_options, &class_view_options,
    &class_pattern_options, &class_mechanism_options, &class_filter,
    &class_input_options, &class_random_options, &class_tensors,
    &class_run_options, &class_compare_options, &class_reach_options, &class_missed_options,
    &class_vary_options, &class_fit_options, &class_sweep_options, &class_sweep,
    &class_roofline_options,
    &class_panel, &class_curve, &class_scaling, &class_figure_options,
    &class_save_options, &class_text_options, &class_check_options,
    &class_card, &class_param_card, &class_view_card, &class_record, &class_cell, &class_entry,
    &class_stage, &class_comparison, &class_report, &class_growth, &class_roofline,
    &class_cache_options, &class_cache, NULL,
};

/* ---- opening ---------------------------------------------------------------- */

/* Checks that the prelude defines every function that a row leaves to it.
 * [-0, +0, v] */
static void check_prelude(lua_State *L, const Class *class, int table)
{
    for (const Member *m = class->members; m->name; m++) {
        if (m->call || !m->args)
            continue;
        if (lua_getfield(L, table, m->name) != LUA_TFUNCTION)
            luaL_error(L, "the prelude lacks %s.%s", class->name, m->name);
        lua_pop(L, 1);
    }
    caller_names(L, table, class);
}

/* Calls the prelude with the module, the classes' method tables, safe_clean, and the functions of
 * sweeps.
 * [-0, +0, e] */
static void run_prelude(lua_State *L, int module, int methods)
{
    const char *bytes = (const char *)script_prelude;

    if (luaL_loadbufferx(L, bytes, script_prelude_size, "=" OWN_CHUNK, "t") != LUA_OK)
        lua_error(L);
    lua_pushvalue(L, module);
    lua_pushvalue(L, methods);
    lua_pushcfunction(L, safe_clean);
    sweep_push_functions(L);
    lua_call(L, 4, 2);
    lua_setfield(L, LUA_REGISTRYINDEX, EVENT_HANDLERS);
    lua_setfield(L, LUA_REGISTRYINDEX, EVENT_TELL);
    for (int i = 0; script_classes[i]; i++) {
        const Class *class = script_classes[i];

        if (class == &class_attn) {
            check_prelude(L, class, module);
        } else if (class == &class_ui) {
            lua_getfield(L, module, "ui");
            check_prelude(L, class, lua_gettop(L));
            lua_pop(L, 1);
        } else if (class->meta) {
            lua_getfield(L, methods, class->name);
            check_prelude(L, class, lua_gettop(L));
            lua_pop(L, 1);
        }
    }
}

void module_open(lua_State *L)
{
    int methods, module;

    script_of(L)->classes = script_classes;
    lua_newtable(L);
    methods = lua_gettop(L);
    for (int i = 0; script_classes[i]; i++)
        if (script_classes[i]->meta)
            class_open(L, script_classes[i]);
    lua_newtable(L); /* no computed fields in the module */
    lua_newtable(L);
    module = lua_gettop(L);
    class_set_members(L, &class_attn);
    lua_pushstring(L, ATTNSCOPE_VERSION);
    lua_setfield(L, module, "version");
    lua_pushboolean(L, false);
    lua_setfield(L, module, "has_ui");
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, module, "null");
    luaL_newmetatable(L, JSON_OBJECT_MARK);
    lua_setfield(L, module, "object");
    lua_newtable(L); /* ui has no fields either */
    lua_newtable(L);
    class_set_members(L, &class_ui);
    lua_setfield(L, module, "ui");
    lua_pop(L, 1);
    run_prelude(L, module, methods);
    lua_insert(L, methods);
    lua_settop(L, methods);
}

/* The Lua interface as a manual: Markdown, and a section of the man page. */

/* "attn.run", "result:row", "ui.open" */
static void add_member_name(const Class *class, const Member *m, Text *out)
{
    bool module = class == &class_attn || class == &class_ui;

    for (const char *c = class->name; *c; c++)
        text_addf(out, "%c", *c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    text_addf(out, "%s%s", m->args && !module ? ":" : ".", m->name);
}

/* Adds the type without the prefix "attnscope.". */
static void add_type(const char *type, Text *out)
{
    static const char prefix[] = "attnscope.";

    for (const char *at = type; *at;) {
        size_t skip = strncmp(at, prefix, sizeof(prefix) - 1) ? 0 : sizeof(prefix) - 1;

        at += skip;
        if (*at)
            text_addf(out, "%c", *at++);
    }
}

static void add_signature(const Class *class, const Member *m, Text *out)
{
    add_member_name(class, m, out);
    if (!m->args) {
        text_add(out, ": ");
        add_type(m->type, out);
        return;
    }
    text_add(out, "(");
    add_type(m->args, out);
    text_add(out, *m->type ? ") -> " : ")");
    add_type(m->type, out);
}

static bool has_functions(const Class *class)
{
    return class->meta || class == &class_attn || class == &class_ui;
}

/* ---- Markdown --------------------------------------------------------------- */

static void add_cell(const char *text, Text *out)
{
    for (; *text; text++)
        text_addf(out, *text == '|' ? "\\%c" : "%c", *text);
}

static void markdown_fields(const Class *class, Text *out)
{
    bool any = false;

    for (const Member *m = class->members; m->name; m++) {
        if (m->args)
            continue;
        if (!any)
            text_add(out, "| field | type | meaning |\n| --- | --- | --- |\n");
        any = true;
        text_addf(out, "| `%s` | ", m->name);
        if (m->type) {
            Text type = { 0 };

            add_type(m->type, &type);
            add_cell(text_str(&type), out);
            text_free(&type);
        }
        text_add(out, " | ");
        add_cell(m->help, out);
        text_add(out, " |\n");
    }
    text_add(out, any ? "\n" : "");
}

static void markdown_class(const Class *class, Text *out)
{
    text_addf(out, "## %s\n\n%s\n\n", class->name, class->help);
    markdown_fields(class, out);
    for (const Member *m = class->members; m->name; m++) {
        if (!m->args)
            continue;
        text_add(out, "    ");
        add_signature(class, m, out);
        text_addf(out, "\n\n%s\n\n", m->help);
    }
}

bool script_reference(Text *out)
{
    text_add(out, "# Lua, function by function\n\nMade by `attnscope docs lua`; do not edit.\n\n"
                  "[lua.md](lua.md) begins with examples. Tokens, heads and axes count from 0, Lua "
                  "lists from 1. A wrong call\nraises an error. A failure outside the program "
                  "(files, memory, Ctrl-C) returns nil, message, code. `name?` is\noptional; a "
                  "type with `?` may be nil.\n\n");
    for (int pass = 0; pass < 2; pass++) /* objects before tables of options and results */
        for (int i = 0; script_classes[i]; i++)
            if (has_functions(script_classes[i]) == !pass)
                markdown_class(script_classes[i], out);
    return text_ok(out);
}

/* ---- man page --------------------------------------------------------------- */

bool script_man(Text *out)
{
    text_add(out, ".SH LUA\nFunctions of scripts; fields and options are in docs/lua\\-api.md.\n");
    for (int i = 0; script_classes[i]; i++) {
        const Class *class = script_classes[i];

        if (!has_functions(class))
            continue;
        text_addf(out, ".SS %s\n", class->name);
        text_add_roff(out, class->help);
        text_add(out, "\n");
        for (const Member *m = class->members; m->name; m++) {
            Text signature = { 0 };

            if (!m->args)
                continue;
            add_signature(class, m, &signature);
            text_add(out, ".TP\n.B ");
            text_add_roff(out, text_str(&signature));
            text_add(out, "\n");
            text_add_roff(out, m->help);
            text_add(out, "\n");
            out->failed |= !text_ok(&signature);
            text_free(&signature);
        }
    }
    return text_ok(out);
}

/* The Lua interface as definitions for the Lua language server.
 *
 * One class per registration table; arguments are written "name: type" or
 * "name?: type" in the rows and split here.
 */

/* Length up to a comma outside brackets, and of the name before the colon. */
static size_t argument_length(const char *args, size_t *name)
{
    size_t length;
    int    depth = 0;

    *name = 0;
    for (length = 0; args[length] && !(args[length] == ',' && !depth); length++) {
        char c = args[length];

        depth += (strchr("({[<", c) != NULL) - (strchr(")}]>", c) != NULL);
        if (c == ':' && !depth && !*name)
            *name = length;
    }
    return length;
}

static const char *next_argument(const char *args, size_t length)
{
    args += length;
    return *args ? args + 2 : args; /* ", " */
}

static void add_params(const char *args, Text *out)
{
    size_t name, length;

    for (; *args; args = next_argument(args, length)) {
        length = argument_length(args, &name);
        text_addf(out, "---@param %.*s %.*s\n", (int)name, args, (int)(length - name - 2),
                  args + name + 2);
    }
}

static void add_names(const char *args, Text *out)
{
    const char *comma = "";
    size_t      name, length;

    for (; *args; args = next_argument(args, length)) {
        length = argument_length(args, &name);
        if (name && args[name - 1] == '?')
            name--;
        text_addf(out, "%s%.*s", comma, (int)name, args);
        comma = ", ";
    }
}

static void add_returns(const char *types, Text *out)
{
    size_t name, length;

    for (; *types; types = next_argument(types, length)) {
        length = argument_length(types, &name);
        text_addf(out, "---@return %.*s\n", (int)length, types);
    }
}

static void add_fields(const Class *class, Text *out)
{
    for (const Member *m = class->members; m->name; m++) {
        bool reserved = !strcmp(m->name, "repeat"); /* a word of Lua's own */

        if (!m->args)
            text_addf(out, "---@field %s%s%s%s %s %s\n", reserved ? "[\"" : "", m->name,
                      reserved ? "\"]" : "", has_functions(class) ? "" : "?", m->type, m->help);
    }
}

static void add_functions(const Class *class, Text *out)
{
    const char *owner = class == &class_attn ? "attn." : class->name;

    for (const Member *m = class->members; m->name; m++) {
        if (!m->args)
            continue;
        text_addf(out, "\n---%s\n", m->help);
        add_params(m->args, out);
        add_returns(m->type, out);
        text_addf(out, "function %s%s%s(", owner,
                  class == &class_attn ? "" : class == &class_ui ? "." : ":", m->name);
        add_names(m->args, out);
        text_add(out, ") end\n");
    }
}

static void add_class(const Class *class, Text *out)
{
    text_addf(out, "\n---%s\n---@class attnscope.%s%s\n", class->help, class->name,
              class->open ? ": { [string]: any }" : "");
    add_fields(class, out);
    if (class->operators)
        text_add(out, class->operators);
    if (!has_functions(class))
        return;
    text_addf(out, "local %s = {}\n", class == &class_attn ? "attn" : class->name);
    add_functions(class, out);
}

bool script_stubs(Text *out)
{
    text_add(out, "---@meta attnscope\n"
                  "-- Made by `attnscope docs luals`; do not edit.\n"
                  "-- Indices of tokens, heads and axes count from 0; Lua lists from 1.\n"
                  "-- A wrong call raises an error; a failure outside the program (files, memory,\n"
                  "-- Ctrl-C) returns nil, message, code.\n");
    for (int i = 1; script_classes[i]; i++)
        add_class(script_classes[i], out);
    add_class(&class_attn, out);
    text_add(out, "\n_G.attn = attn\n_G.ui = ui\nreturn attn\n");
    return text_ok(out);
}
