/* mechanism.c -- mechanisms of a script: attn.mechanism, and the calls of its functions.
 *
 * The function computes on tensors of Lua; what they compute is charged to the
 * stage it named, so FLOPs are counted as for every other mechanism.
 */
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "attn/pattern/node.h"
#include "script/api/define.h"
#include "script/tensor/tensor.h"

/* ---- running ---------------------------------------------------------------- */

static void push_context(lua_State *L, const Callback *callback)
{
    LuaContext *context = class_push(L, &class_context, sizeof(*context), 1);

    *context = (LuaContext){ .run = callback->run, .defined = callback->defined };
    lua_newtable(L);
    define_push_params(L, callback);
    lua_setfield(L, -2, "params");
    lua_setiuservalue(L, -2, 1);
}

/* The view `weights` from its own function, outside of the mechanism's time and FLOPs; the
 * context is at 2.  [-0, +0, v] */
static void show_weights(lua_State *L, int function)
{
    LuaContext *context = lua_touserdata(L, 2);
    Run        *r = context->run;

    run_prepare(r, true); /* it is not the mechanism's work */
    script_of(L)->uncharged = true; /* until the next call of a run, if this raises */
    lua_pushcfunction(L, context_view);
    lua_pushvalue(L, 2);
    lua_pushliteral(L, "weights");
    lua_rawgeti(L, LUA_REGISTRYINDEX, function);
    lua_pushvalue(L, 2);
    lua_call(L, 1, 1);
    lua_call(L, 3, 0);
    script_of(L)->uncharged = false;
    run_prepare(r, false);
}

/* Under define_call. */
static int compute_output(lua_State *L)
{
    Callback     *callback = define_callback(L);
    Run          *r = callback->run;
    const Tensor *t;
    char          text[80];

    push_context(L, callback);
    lua_rawgeti(L, LUA_REGISTRYINDEX, callback->defined->function);
    lua_pushvalue(L, 2);
    lua_call(L, 1, 1);
    if (callback->defined->weights != LUA_NOREF && run_wants_views(r))
        show_weights(L, callback->defined->weights);
    ((LuaContext *)lua_touserdata(L, 2))->run = NULL;
    if (!class_test(L, -1, &class_tensor))
        return luaL_error(L, "run: the function must return a Tensor, got %s",
                          luaL_typename(L, -1));
    t = tensor_check(L, -1);
    if (t->rank != 3 || t->shape[0] != r->h || t->shape[1] != r->n || t->shape[2] != r->e)
        return luaL_error(L, "run: the output must be [%I,%I,%I], got %s", (lua_Integer)r->h,
                          (lua_Integer)r->n, (lua_Integer)r->e,
                          tensor_shape_text(t, text, sizeof(text)));
    r->out = context_kept(r, tensor_push_copy(L, t, DT_F32));
    return 0;
}

static void mechanism_run(Run *r, const void *params)
{
    Callback callback = { .defined = (Defined *)(uintptr_t)r->mechanism,
                          .run = r,
                          .params = params };

    run_stage(r, "run");
    define_call(&callback, compute_output);
}

static double flops_field(lua_State *L, const char *key)
{
    double value;

    lua_getfield(L, -1, key);
    value = luaL_optnumber(L, -1, 0);
    lua_pop(L, 1);
    return value;
}

/* The table at the top has no other parts.  [-0, +0, v] */
static void check_parts(lua_State *L)
{
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";

        if (strcmp(key, "score") != 0 && strcmp(key, "mixing") != 0 && strcmp(key, "overhead") != 0)
            luaL_error(L, "flops: unknown part '%s'; expected score, mixing and overhead", key);
    }
}

/* Under define_call. */
static int closed_form(lua_State *L)
{
    Callback *callback = define_callback(L);
    Flops    *flops = callback->out;

    push_context(L, callback);
    lua_rawgeti(L, LUA_REGISTRYINDEX, callback->defined->flops);
    lua_pushvalue(L, 2);
    lua_getfield(L, 2, "params");
    lua_call(L, 2, 1);
    if (lua_type(L, -1) == LUA_TNUMBER) {
        *flops = (Flops){ .overhead = lua_tonumber(L, -1) };
        return 0;
    }
    if (!lua_istable(L, -1))
        return luaL_error(L, "flops: expected a number, or a table of score, mixing and "
                          "overhead, got %s", luaL_typename(L, -1));
    check_parts(L);
    *flops = (Flops){ .score = flops_field(L, "score"),
                      .mix = flops_field(L, "mixing"),
                      .overhead = flops_field(L, "overhead") };
    return 0;
}

static Flops mechanism_flops(Run *r, const void *params)
{
    Flops    flops = { 0 };
    Callback callback = {
        .defined = (Defined *)(uintptr_t)r->mechanism, .run = r, .params = params, .out = &flops
    };

    define_call(&callback, closed_form);
    return flops;
}

/* ---- attn.mechanism --------------------------------------------------------- */

static ViewKind check_view_kind(lua_State *L, int t, const char *name)
{
    const char *kind = option_string(L, t, "kind", NULL);

    for (int i = 0; i < VIEW_KIND_COUNT; i++)
        if (!strcasecmp(view_kind_name((ViewKind)i), kind ? kind : name))
            return (ViewKind)i;
    if (kind)
        luaL_error(L, "view %s: unknown kind '%s'; see attn.info(\"bigbird\").views", name, kind);
    return VIEW_TENSOR;
}

static void read_views(lua_State *L, Defined *d)
{
    int          count = lua_getfield(L, 1, "views") == LUA_TTABLE ? (int)lua_rawlen(L, -1) : 0;
    ViewPromise *views = define_memory(L, arena_zalloc(d->arena, count + 2, sizeof(*views)));
    bool         weights = d->weights == LUA_NOREF;

    for (int i = 0; i < count; i++) {
        int t = lua_gettop(L) + 1;

        if (lua_rawgeti(L, -1, i + 1) == LUA_TSTRING) { /* a name alone */
            lua_createtable(L, 0, 1);
            lua_insert(L, t);
            lua_setfield(L, t, "name");
        }
        luaL_checktype(L, t, LUA_TTABLE);
        options_check(L, t, &class_view_options);
        views[i].name = define_memory(L, arena_strdup(d->arena, option_string(L, t, "name",
                                                                              "view")));
        views[i].help = option_string(L, t, "help", "");
        views[i].help = define_memory(L, arena_strdup(d->arena, views[i].help));
        views[i].maybe = option_bool(L, t, "maybe", false);
        views[i].kind = check_view_kind(L, t, views[i].name);
        weights |= !strcmp(views[i].name, "weights");
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    if (!weights)
        views[count] = (ViewPromise){ .name = "weights", .kind = VIEW_WEIGHTS,
                                      .help = "attention weights" };
    d->m.views = views;
}

/* [-1, +1 or 3, v] */
int attn_mechanism(lua_State *L)
{
    Defined *d = define_read(L, &class_mechanism_options);

    d->weights = define_function(L, "weights", false);
    read_views(L, d);
    if (d->m.views->name)
        d->m.picture = d->m.views->name;
    d->m.run = mechanism_run;
    d->function = define_function(L, "run", true);
    d->flops = define_function(L, "flops", false);
    if (d->flops != LUA_NOREF)
        d->m.flops = mechanism_flops;
    return define_add(L, d);
}

static const Member view_members[] = {
    FIELD("name", "string", "weights: those that make the output of V"),
    FIELD("kind", "string", "default: the kind of that name, else tensor"),
    FIELD("help", "string", "one line"),
    FIELD("maybe", "boolean", "shown under some parameters only"),
    MEMBER_END,
};
const Class class_view_options = { .name = "ViewPromise",
                                   .help = "What a mechanism shows.",
                                   .members = view_members };

static const Member mechanism_members[] = {
    FIELD("run", "fun(ctx: attnscope.Context): attnscope.Tensor", "computes the output [h,n,e]"),
    FIELD("flops", "fun(ctx: attnscope.Context, params: table): table|number",
          "closed form: score, mixing and overhead, or their sum; ctx has n, m, d, e and heads"),
    FIELD("weights", "fun(ctx: attnscope.Context): attnscope.Tensor",
          "its weights [h,n,m], asked for after run where somebody wants to see them, which is not "
          "part of its time and FLOPs"),
    FIELD("views", "(attnscope.ViewPromise|string)[]", "what it shows; the first is its picture"),
#include "script/api/card.def"
    MEMBER_END,
};
const Class class_mechanism_options = { .name = "MechanismOptions",
                                        .help = "A mechanism of one's own.",
                                        .members = mechanism_members };

/* Patterns of a script: a function that gives each row's keys.
 *
 * The function is called for each query before the attention runs.  Rows are stored as arithmetic
 * runs, which views and kernels read; the script is not called again.  As with drawn tensors, this
 * is preparation and not part of the mechanism's time.
 */

typedef struct LuaRow {
    PatternRow row; /* of the query asked for */
    PatternRow all; /* of those before */
    Run       *run; /* NULL: the run has ended, but the script still holds the row */
    int64_t    head, query;
} LuaRow;

/* ---- what the function is given --------------------------------------------- */

static LuaRow *check_row(lua_State *L)
{
    LuaRow *row = class_check(L, 1, &class_row);

    if (!row->run)
        luaL_error(L, "a row is there only while its function runs");
    return row;
}

static void add_run(lua_State *L, LuaRow *row, int64_t start, int64_t count, int64_t step,
                    uint8_t bits)
{
    int64_t before = row->row.count;

    if (count <= 0)
        return;
    runs_push(&row->row, start, count, count == 1 ? 1 : step, bits);
    runs_union(&row->row, 0, before);
    if (row->row.failed)
        luaL_error(L, "not enough memory for a row");
}

/* Whole numbers, though they may be written as floats, in a range that sums stay in. */
static int64_t check_key_number(lua_State *L, int arg)
{
    double x = luaL_checknumber(L, arg);

    luaL_argcheck(L, x > -9e15 && x < 9e15 && x == (double)(int64_t)x, arg,
                  "expected a whole number");
    return (int64_t)x;
}

/* [-0, +0, v] */
static int row_add(lua_State *L)
{
    LuaRow *row = check_row(L);
    int64_t j = check_key_number(L, 2);
    uint8_t bits = check_component(L, 3);

    if (j >= 0 && j < row->run->m)
        add_run(L, row, j, 1, 1, bits);
    return 0;
}

/* [-0, +0, v] */
static int row_range(lua_State *L)
{
    LuaRow *row = check_row(L);
    int64_t lo = check_key_number(L, 2), hi = check_key_number(L, 3), step;
    uint8_t bits = check_component(L, 4);

    step = lua_isnoneornil(L, 5) ? 1 : check_key_number(L, 5);
    luaL_argcheck(L, step >= 1, 5, "expected a step of 1 or more");
    if (lo < 0)
        lo = (step - -lo % step) % step;
    if (hi >= row->run->m)
        hi = row->run->m - 1;
    if (lo <= hi)
        add_run(L, row, lo, (hi - lo) / step + 1, step, bits);
    return 0;
}

FIELD_GETTER(row_n, lua_pushinteger, check_row(L)->run->n)
FIELD_GETTER(row_m, lua_pushinteger, check_row(L)->run->m)
FIELD_GETTER(row_head, lua_pushinteger, check_row(L)->head)
FIELD_GETTER(row_heads, lua_pushinteger, check_row(L)->run->h)
FIELD_GETTER(row_causal, lua_pushboolean, check_row(L)->run->causal)

static int row_close(lua_State *L)
{
    LuaRow *row = class_check(L, 1, &class_row);

    pattern_row_free(&row->row);
    pattern_row_free(&row->all);
    row->run = NULL;
    return 0;
}

/* [-0, +1, m] */
static int row_describe(lua_State *L)
{
    const LuaRow *row = class_check(L, 1, &class_row);

    if (row->run)
        lua_pushfstring(L, "Row of query %I", (lua_Integer)row->query);
    else
        lua_pushliteral(L, "Row (closed)");
    return 1;
}

static const luaL_Reg row_meta[] = {
    { "__gc", row_close }, { "__close", row_close }, { "__tostring", row_describe },
    { "__len", row_m }, { NULL, NULL },
};

static const Member row_members[] = {
    { "n", row_n, NULL, "integer", "queries" },
    { "m", row_m, NULL, "integer", "keys" },
    { "head", row_head, NULL, "integer", "head, 0 unless the pattern is said per head" },
    { "heads", row_heads, NULL, "integer", "heads" },
    { "causal", row_causal, NULL, "boolean", "later keys are cut off afterwards" },
    { "add", row_add, "j: number, component?: string", "",
      "Allows key j.  Keys outside 0..m-1 are passed over.  The component (its colour): window, "
      "global, random, strided, block or other." },
    { "range", row_range, "from: number, to: number, component?: string, step?: integer", "",
      "Allows the keys from, from + step, ... up to `to`, which is one of them." },
    MEMBER_END,
};
const Class class_row = { .name = "Row",
                          .help = "The keys that one query may see.",
                          .members = row_members,
                          .meta = row_meta,
                          .operators = "---@operator len: integer\n",
                          .instead = "row:add(key) and row:range(from, to) say what the "
                                     "query sees" };

/* ---- building --------------------------------------------------------------- */

typedef struct Built {
    int64_t    *offset; /* [heads n + 1] */
    PatternRun *runs;
    int64_t     heads;
} Built;

/* Adjacent allowed keys become one run. */
static void ask_cells(lua_State *L, const Callback *callback, LuaRow *row)
{
    int64_t first = -1;

    for (int64_t j = 0; j <= row->run->m; j++) {
        bool in = false;

        if (j < row->run->m) {
            lua_rawgeti(L, LUA_REGISTRYINDEX, callback->defined->function);
            lua_pushinteger(L, row->query);
            lua_pushinteger(L, j);
            lua_pushvalue(L, 3);
            lua_call(L, 3, 1);
            in = lua_toboolean(L, -1);
            lua_pop(L, 1);
        }
        if (in && first < 0)
            first = j;
        if (!in && first >= 0) {
            add_run(L, row, first, j - first, 1, COMPONENT_OTHER);
            first = -1;
        }
    }
}

/* Calls the function for one query and appends its runs. */
static int64_t ask_pattern_row(lua_State *L, const Callback *callback, LuaRow *row)
{
    row->row.count = 0;
    if (callback->defined->by_cells) {
        ask_cells(L, callback, row);
    } else {
        lua_rawgeti(L, LUA_REGISTRYINDEX, callback->defined->function);
        lua_pushinteger(L, row->query);
        lua_pushvalue(L, 2);
        lua_pushvalue(L, 3);
        lua_call(L, 3, 0);
    }
    runs_tidy(&row->row, 0);
    for (int64_t c = 0; c < row->row.count; c++) {
        PatternRun run = row->row.runs[c];

        runs_push(&row->all, run.start, run.count, run.step, run.bits);
    }
    if (row->all.failed)
        luaL_error(L, "not enough memory for a pattern");
    return row->all.count;
}

/* Under define_call: the row at 2, the parameters at 3. */
static int build_rows(lua_State *L)
{
    Callback *callback = define_callback(L);
    Run      *r = callback->run;
    Built    *built = callback->out;
    LuaRow   *row = class_push(L, &class_row, sizeof(*row), 0);

    row->run = r;
    define_push_params(L, callback);
    for (row->head = 0; row->head < built->heads; row->head++)
        for (row->query = 0; row->query < r->n; row->query++)
            built->offset[row->head * r->n + row->query + 1] = ask_pattern_row(L, callback, row);
    built->runs = run_alloc(r, row->all.count + 1, sizeof(*built->runs));
    if (built->runs && row->all.count)
        memcpy(built->runs, row->all.runs, (size_t)row->all.count * sizeof(*built->runs));
    lua_settop(L, 2);
    return row_close((lua_remove(L, 1), L));
}

/* For the last queries alone the rows of all are made, so that row i is position i. */
static Pattern *make_pattern(Run *r, const void *params)
{
    Defined     *d = (Defined *)(uintptr_t)r->mechanism;
    PatternShape s = {
        .heads = r->h, .n = r->n, .m = r->m, .causal = r->causal,
        .q_offset = r->at_end ? 0 : r->q_offset
    };
    Built    built = { .heads = d->per_head ? r->h : 1 };
    Callback callback = { .defined = d, .run = r, .params = params, .out = &built };
    Pattern *pattern;

    built.offset = run_alloc(r, built.heads * r->n + 1, sizeof(*built.offset));
    if (!built.offset)
        return NULL;
    built.offset[0] = 0;
    run_prepare(r, true);
    define_call(&callback, build_rows);
    run_prepare(r, false);
    if (run_failed(r))
        return NULL;
    pattern = pattern_stored(r->arena, s, built.offset, built.runs, d->per_head);
    return pattern_finish(r->arena, s, pattern, r->causal);
}

static void pattern_run(Run *r, const void *params)
{
    const Defined *d = (const Defined *)r->mechanism;
    Pattern       *cells;

    run_stage(r, "pattern");
    cells = run_last_rows(r, make_pattern(r, params));
    run_pattern_attention(r, 0, cells);
    if (cells && d->components)
        view_meanings(r, cells, d->components);
    run_warn_of_empty_rows(r, cells);
}

static Flops pattern_flops(Run *r, const void *params)
{
    int64_t  n = r->n;
    Pattern *cells;

    if (r->at_end)
        r->n = r->m;
    cells = make_pattern(r, params);
    r->n = n;
    return run_pattern_flops(r, run_count_cells(r, cells));
}

/* ---- attn.pattern ----------------------------------------------------------- */

/* components = { window = "near" } */
static void read_components(lua_State *L, Defined *d)
{
    if (lua_getfield(L, 1, "components") != LUA_TNIL) {
        d->components = define_memory(L, arena_zalloc(d->arena, 8, sizeof(*d->components)));
        read_component_names(L, d->arena, d->components);
    }
    lua_pop(L, 1);
}

/* [-1, +1 or 3, v] */
int attn_pattern(lua_State *L)
{
    static const ViewPromise views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };
    Defined                 *d = define_read(L, &class_pattern_options);

    d->per_head = option_bool(L, 1, "per_head", false);
    d->m.views = views;
    d->m.positions = POSITIONS_ALL;
    d->m.at_end = AT_END_CELLS;
    d->m.run = pattern_run;
    d->m.flops = pattern_flops;
    d->m.flops_works = true;
    d->m.decode = decode_cells;
    read_components(L, d);
    if (!lua_getfield(L, 1, "class"))
        d->m.classes = CLASS_FP;
    lua_pop(L, 1);
    d->function = define_function(L, "cell", false);
    d->by_cells = d->function != LUA_NOREF;
    if (!d->by_cells)
        d->function = define_function(L, "row", true);
    return define_add(L, d);
}

static const Member pattern_members[] = {
    FIELD("row", "fun(i: integer, row: attnscope.Row, params: table)",
          "says which keys query i may see"),
    FIELD("cell", "fun(i: integer, j: integer, params: table): boolean",
          "instead of row: whether query i may see key j; asked for all n x m pairs, so for short "
          "inputs"),
    FIELD("components", "table<string, string>",
          "what the components mean here, as pictures name them: { window = \"near\" }"),
    FIELD("per_head", "boolean", "asks for each head (row.head); default: once for all"),
#include "script/api/card.def"
    MEMBER_END,
};
const Class class_pattern_options = { .name = "PatternOptions",
                                      .help = "A pattern of one's own.",
                                      .members = pattern_members };
