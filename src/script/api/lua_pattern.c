/* lua_pattern.c -- patterns of a script: a function that says each row's keys.
 *
 * The rows are asked for before the attention runs, query by query, and kept as
 * arithmetic runs, so the picture and the kernel see what the script said and
 * the script is not called again.  Like a drawn tensor they are prepared, not
 * part of the mechanism's time.
 */
#include <limits.h>
#include <string.h>

#include "attn/runs.h"
#include "script/api/define.h"

typedef struct LuaRow {
    PatternRow row; /* of the query asked for */
    PatternRow all; /* of those before */
    Run       *run; /* NULL: the script kept it beyond its use */
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

static uint8_t check_component(lua_State *L, int arg)
{
    static const char *const names[] = { "window", "global", "random", "strided",
                                         "block",  "other",  NULL };

    return (uint8_t)(1 << luaL_checkoption(L, arg, "other", names));
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
static int64_t check_key(lua_State *L, int arg)
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
    int64_t j = check_key(L, 2);
    uint8_t bits = check_component(L, 3);

    if (j >= 0 && j < row->run->m)
        add_run(L, row, j, 1, 1, bits);
    return 0;
}

/* [-0, +0, v] */
static int row_range(lua_State *L)
{
    LuaRow *row = check_row(L);
    int64_t lo = check_key(L, 2), hi = check_key(L, 3), step;
    uint8_t bits = check_component(L, 4);

    step = lua_isnoneornil(L, 5) ? 1 : check_key(L, 5);
    luaL_argcheck(L, step >= 1, 5, "expected a step of 1 or more");
    if (lo < 0)
        lo = (step - -lo % step) % step;
    if (hi >= row->run->m)
        hi = row->run->m - 1;
    if (lo <= hi)
        add_run(L, row, lo, (hi - lo) / step + 1, step, bits);
    return 0;
}

static int row_n(lua_State *L)
{
    lua_pushinteger(L, check_row(L)->run->n);
    return 1;
}

static int row_m(lua_State *L)
{
    lua_pushinteger(L, check_row(L)->run->m);
    return 1;
}

static int row_head(lua_State *L)
{
    lua_pushinteger(L, check_row(L)->head);
    return 1;
}

static int row_heads(lua_State *L)
{
    lua_pushinteger(L, check_row(L)->run->h);
    return 1;
}

static int row_causal(lua_State *L)
{
    lua_pushboolean(L, check_row(L)->run->causal);
    return 1;
}

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

/* Neighbours that are in become one run. */
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

/* The function for one query; its runs go behind the others'. */
static int64_t ask_row(lua_State *L, const Callback *callback, LuaRow *row)
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
            built->offset[row->head * r->n + row->query + 1] = ask_row(L, callback, row);
    built->runs = run_alloc(r, row->all.count + 1, sizeof(*built->runs));
    if (built->runs && row->all.count)
        memcpy(built->runs, row->all.runs, (size_t)row->all.count * sizeof(*built->runs));
    lua_settop(L, 2);
    return row_close((lua_remove(L, 1), L));
}

static const Pattern *make_pattern(Run *r, const void *params)
{
    Defined     *d = (Defined *)(uintptr_t)r->mechanism;
    PatternShape s = {
        .heads = r->h, .n = r->n, .m = r->m, .causal = r->causal, .q_offset = r->q_offset
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
    run_stage(r, "pattern");
    run_pattern_attention(r, 0, make_pattern(r, params));
}

static Flops pattern_flops(Run *r, const void *params)
{
    const Pattern *cells = make_pattern(r, params);

    return run_pattern_flops(r, cells ? (double)pattern_count(cells) : 0);
}

/* ---- attn.pattern ----------------------------------------------------------- */

/* [-1, +1 or 3, v] */
int attn_pattern(lua_State *L)
{
    static const ViewPromise views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };
    Defined                 *d = define_read(L, &class_pattern_options);

    d->per_head = option_bool(L, 1, "per_head", false);
    d->m.views = views;
    d->m.positions = POSITIONS_ALL;
    d->m.run = pattern_run;
    d->m.flops = pattern_flops;
    d->m.flops_works = true;
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
    { "row", NULL, NULL, "fun(i: integer, row: attnscope.Row, params: table)",
      "says which keys query i may see" },
    { "cell", NULL, NULL, "fun(i: integer, j: integer, params: table): boolean",
      "instead of row: whether query i may see key j; asked for all n x m pairs, so for short "
      "inputs" },
    { "per_head", NULL, NULL, "boolean", "asks for each head (row.head); default: once for all" },
#include "script/api/card.def"
    MEMBER_END,
};
const Class class_pattern_options = { .name = "PatternOptions",
                                      .help = "A pattern of one's own.",
                                      .members = pattern_members };
