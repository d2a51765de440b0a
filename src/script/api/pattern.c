/* pattern.c -- the cells of a run as a Pattern: looked at, compared, changed, run again. */
#include <stdlib.h>
#include <string.h>

#include "attn/pattern/pattern.h"
#include "script/api/define.h"
#include "script/api/figure.h"
#include "script/host/work.h"

typedef struct LuaPattern {
    Keep          *keep; /* of its arena; NULL: closed */
    const Pattern *pattern;
    Tensor         list;
    int64_t        cells; /* allowed, over all heads */
    const char   **names; /* what the components mean, [8], of the arena; NULL: as usual */
} LuaPattern;
enum { PATTERN_INPUT = 1, PATTERN_VALUES = PATTERN_INPUT };

static LuaPattern *check_pattern(lua_State *L, int arg)
{
    LuaPattern *p = class_check(L, arg, &class_pattern);

    if (!p->keep)
        luaL_argerror(L, arg, "the pattern is closed");
    return p;
}

/* ---- making one ------------------------------------------------------------------ */

typedef enum Operation { TAKE, UNITE, SHARE, SUBTRACT, CALL_IT } Operation;

#define LIST_COLUMNS 6 /* of pattern_list; the last is the component */

typedef struct Making {
    Operation      operation;
    const Pattern *x, *y; /* owned by values on the stack */
    uint8_t        bit;   /* of CALL_IT */
    LuaPattern    *out;
    Arena         *arena; /* of out */
} Making;

static PatternShape shape_of(const Pattern *p)
{
    return (PatternShape){ .heads = pattern_heads(p), .n = pattern_queries(p),
                           .m = pattern_keys(p) };
}

static const Pattern *combined(Arena *a, const Making *m)
{
    Pattern *x = pattern_operand(m->x), *y = m->y ? pattern_operand(m->y) : NULL, *out = x;

    switch (m->operation) {
    case UNITE: out = pattern_union(a, x, y); break;
    case SHARE: out = pattern_intersect(a, x, y); break;
    case SUBTRACT: out = pattern_difference(a, x, y); break;
    default: break;
    }
    return out ? pattern_finish(a, shape_of(m->x), out, false) : NULL;
}

/* Every cell is of one component. */
static void set_component(Tensor *list, uint8_t bit)
{
    int64_t *numbers = list->data;

    for (int64_t i = 0; i < list->shape[0]; i++)
        numbers[i * LIST_COLUMNS + LIST_COLUMNS - 1] = bit;
}

/* Stores the result as runs of its own. */
static bool make(void *context, const atomic_bool *cancel, Error *err)
{
    Making        *m = context;
    Arena         *scratch = arena_new();
    const Pattern *made = scratch ? combined(scratch, m) : NULL;

    (void)cancel;
    if (made)
        m->out->list = pattern_list(m->arena, made);
    if (m->out->list.data && m->operation == CALL_IT)
        set_component(&m->out->list, m->bit);
    if (m->out->list.data)
        m->out->pattern = pattern_of_list(m->arena, shape_of(m->x), &m->out->list, err);
    else
        error_set(err, ERR_NOMEM, "not enough memory for a pattern");
    arena_free(scratch);
    if (m->out->pattern)
        m->out->cells = pattern_count(m->out->pattern);
    return m->out->pattern != NULL;
}

static int push_made(lua_State *L, int status, lua_KContext at)
{
    Making *m = work_context(L, at);

    (void)status;
    account(L, arena_used(m->arena));
    lua_pushvalue(L, (int)at - 2);
    return 1;
}

/* The new pattern has the names that are there and that it lacks. */
static void take_names(lua_State *L, const Making *m, const char *const *names)
{
    if (names && !m->out->names)
        m->out->names = define_memory(L, arena_zalloc(m->arena, 8, sizeof(*m->out->names)));
    for (int b = 0; names && b < 8; b++) {
        if (!names[b] || m->out->names[b])
            continue;
        m->out->names[b] = define_memory(L, arena_strdup(m->arena, names[b]));
    }
}

/* Names of the patterns at 1 and 2; of a run at 1 those of its view.  A component that is given
 * anew has the name that comes with it, at 3. */
static void name_components(lua_State *L, const Making *m)
{
    const LuaPattern *x = class_test(L, 1, &class_pattern), *y = class_test(L, 2, &class_pattern);
    const char       *given[8] = { NULL };

    if (m->operation == CALL_IT) {
        given[__builtin_ctz(m->bit)] = luaL_optstring(L, 3, NULL);
        take_names(L, m, given);
        return;
    }
    if (!x) {
        take_names(L, m, result_component_names(result_check(L, 1)->result->run));
        return;
    }
    take_names(L, m, x->names);
    if (y)
        take_names(L, m, y->names);
}

/* Pushes a Pattern made from the object at 1; keeps that object's input, its user value
 * `from`. [-0, +1 or 3, v] */
static int push_new(lua_State *L, Session *s, Making m, int from)
{
    Making *own;

    m.out = class_push(L, &class_pattern, sizeof(*m.out), PATTERN_VALUES);
    m.arena = arena_new();
    m.out->keep = m.arena ? keep_new(m.arena, drop_arena, NULL) : NULL;
    if (!m.out->keep)
        return luaL_error(L, "not enough memory for a pattern");
    name_components(L, &m);
    lua_getiuservalue(L, 1, from);
    lua_setiuservalue(L, -2, PATTERN_INPUT);
    own = lua_newuserdatauv(L, sizeof(*own), 0);
    *own = m;
    return work_await(L, s, "a pattern", make, push_made);
}

/* [-0, +1 or 3, v] */
int result_pattern(lua_State *L)
{
    const LuaResult *result = result_check(L, 1);
    const Pattern   *cells = result_cells(result->result->run);
    Error            err = ERROR_INIT;

    lua_settop(L, 1);
    if (cells)
        return push_new(L, result->session, (Making){ .x = cells }, RESULT_INPUT);
    error_set(&err, ERR_UNSUPPORTED, "%s chooses no cells: there is no pattern of queries and keys",
              result->result->run->mechanism->id);
    return failure(L, &err);
}

/* The patterns at 1 and 2 are of one size.  [-0, +0, v] */
static void check_same_size(lua_State *L)
{
    const Pattern *x = check_pattern(L, 1)->pattern, *y = check_pattern(L, 2)->pattern;

    luaL_argcheck(L, pattern_heads(x) == pattern_heads(y) &&
                         pattern_queries(x) == pattern_queries(y) &&
                         pattern_keys(x) == pattern_keys(y),
                  2, "the patterns differ in heads, queries or keys");
}

static int push_combined(lua_State *L, Operation operation)
{
    const Pattern *x = check_pattern(L, 1)->pattern, *y = check_pattern(L, 2)->pattern;

    check_same_size(L);
    lua_settop(L, 2);
    return push_new(L, script_of(L)->session->thing,
                    (Making){ .operation = operation, .x = x, .y = y }, PATTERN_INPUT);
}

/* p:as(component, name) */
static int pattern_as(lua_State *L)
{
    const Pattern *x = check_pattern(L, 1)->pattern;
    uint8_t        bit = check_component(L, 2);

    luaL_optstring(L, 3, NULL);
    lua_settop(L, 3);
    return push_new(L, script_of(L)->session->thing,
                    (Making){ .operation = CALL_IT, .x = x, .bit = bit }, PATTERN_INPUT);
}

static FUNCTION_WITH(pattern_unite, push_combined, UNITE)
static FUNCTION_WITH(pattern_share, push_combined, SHARE)
static FUNCTION_WITH(pattern_subtract, push_combined, SUBTRACT)

/* ---- the object -------------------------------------------------------------------- */

CLOSE_OBJECT(pattern_close, LuaPattern, class_pattern)

static int pattern_describe(lua_State *L)
{
    const LuaPattern *p = class_check(L, 1, &class_pattern);

    if (!p->keep)
        lua_pushliteral(L, "Pattern (closed)");
    else
        lua_pushfstring(L, "Pattern %I x %I, %I cells", (lua_Integer)pattern_queries(p->pattern),
                        (lua_Integer)pattern_keys(p->pattern), (lua_Integer)p->cells);
    return 1;
}

FIELD_GETTER(pattern_n, lua_pushinteger, pattern_queries(check_pattern(L, 1)->pattern))
FIELD_GETTER(pattern_m, lua_pushinteger, pattern_keys(check_pattern(L, 1)->pattern))
FIELD_GETTER(pattern_h, lua_pushinteger, pattern_heads(check_pattern(L, 1)->pattern))
FIELD_GETTER(pattern_nnz, lua_pushinteger, check_pattern(L, 1)->cells)
FIELD_GETTER(pattern_each, lua_pushboolean, pattern_per_head(check_pattern(L, 1)->pattern))

static int pattern_density(lua_State *L)
{
    const LuaPattern *p = check_pattern(L, 1);
    const Pattern    *cells = p->pattern;

    lua_pushnumber(L, (double)p->cells / ((double)pattern_heads(cells) *
                                          (double)pattern_queries(cells) *
                                          (double)pattern_keys(cells)));
    return 1;
}

/* The list's numbers, read only.  [-0, +1, v] */
static int pattern_runs(lua_State *L)
{
    const LuaPattern *p = check_pattern(L, 1);

    tensor_push_shared(L, p->list, p->keep, true);
    return 1;
}

static int64_t head_at(lua_State *L, int arg, const Pattern *p)
{
    return lua_isnoneornil(L, arg) ? 0 : check_index(L, arg, pattern_heads(p), "head");
}

static int by_size(const void *a, const void *b)
{
    lua_Integer x = *(const lua_Integer *)a, y = *(const lua_Integer *)b;

    return (x > y) - (x < y);
}

/* Keys in increasing order.  [-0, +1, v] */
static int pattern_row_method(lua_State *L)
{
    const Pattern *p = check_pattern(L, 1)->pattern;
    int64_t        q = check_index(L, 2, pattern_queries(p), "query"), head = head_at(L, 3, p);
    lua_Integer   *keys = lua_newuserdatauv(L, (size_t)(pattern_keys(p) + 1) * sizeof(*keys), 0);
    PatternRow     row = { 0 };
    int64_t        count = 0;
    bool           failed;

    pattern_row(p, head, q, &row);
    failed = row.failed;
    for (int64_t x = 0; x < row.count && !failed; x++)
        for (int64_t c = 0; c < row.runs[x].count; c++)
            keys[count++] = (lua_Integer)(row.runs[x].start + c * row.runs[x].step);
    pattern_row_free(&row);
    if (failed)
        return luaL_error(L, "not enough memory for a row");
    qsort(keys, (size_t)count, sizeof(*keys), by_size);
    lua_createtable(L, (int)count, 0);
    for (int64_t c = 0; c < count; c++) {
        lua_pushinteger(L, keys[c]);
        lua_rawseti(L, -2, c + 1);
    }
    return 1;
}

/* [-0, +2, v] */
static int pattern_cell_method(lua_State *L)
{
    const Pattern *p = check_pattern(L, 1)->pattern;
    int64_t        q = check_index(L, 2, pattern_queries(p), "query");
    int64_t        k = check_index(L, 3, pattern_keys(p), "key"), head = head_at(L, 4, p);
    bool           allowed;
    uint8_t        bits = pattern_cell(p, head, q, k, &allowed);

    lua_pushboolean(L, allowed);
    push_components(L, allowed ? bits : 0);
    return 2;
}

/* [-0, +1, v] */
static int pattern_compare(lua_State *L)
{
    const LuaPattern *x = check_pattern(L, 1), *y = check_pattern(L, 2);
    Arena            *arena;
    const Pattern    *both;
    int64_t           shared = -1, all;

    check_same_size(L);
    arena = arena_new();
    both = arena ? combined(arena, &(Making){ .operation = SHARE, .x = x->pattern,
                                              .y = y->pattern }) : NULL;
    shared = both ? pattern_count(both) : -1;
    arena_free(arena);
    if (shared < 0)
        return luaL_error(L, "not enough memory for a pattern");
    all = x->cells + y->cells - shared;
    lua_newtable(L);
    field_bool(L, "same", shared == all);
    field_integer(L, "both", shared);
    field_integer(L, "only_this", x->cells - shared);
    field_integer(L, "only_other", y->cells - shared);
    field_number(L, "jaccard", all ? (double)shared / (double)all : 1);
    return 1;
}

/* ---- in runs and figures ------------------------------------------------------------- */

/* Copies the options at 2 into the table at the top; one that selects an input removes ours. */
static void add_options(lua_State *L)
{
    static const char *const choose[] = { "n", "d", "heads", "layer" };

    for (size_t i = 0; i < sizeof(choose) / sizeof(*choose); i++) {
        bool chosen = lua_getfield(L, 2, choose[i]) != LUA_TNIL;

        lua_pop(L, 1);
        if (!chosen)
            continue;
        lua_pushnil(L);
        lua_setfield(L, -2, "input");
    }
    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, -5);
    }
}

/* A run of a Pattern is one of the mechanism `pattern` with its runs as a tensor.  The stack
 * reaches to 2 at least.  [-0, +0, v] */
void pattern_argument(lua_State *L)
{
    const LuaPattern *p = class_test(L, 1, &class_pattern);

    if (!p)
        return;
    check_pattern(L, 1);
    if (!lua_isnoneornil(L, 2))
        luaL_checktype(L, 2, LUA_TTABLE);
    lua_newtable(L);
    lua_getiuservalue(L, 1, PATTERN_INPUT);
    lua_setfield(L, -2, "input");
    if (lua_istable(L, 2))
        add_options(L);
    tensor_push_shared(L, p->list, p->keep, true);
    lua_setfield(L, -2, "cells");
    lua_replace(L, 2);
    lua_pushliteral(L, "pattern(expr=runs($cells))");
    lua_replace(L, 1);
}

Keep *pattern_view(lua_State *L, int arg, View *view)
{
    const LuaPattern *p = check_pattern(L, arg);
    bool              each = pattern_per_head(p->pattern);
    int64_t shape[3] = { pattern_heads(p->pattern), pattern_queries(p->pattern),
                         pattern_keys(p->pattern) };

    *view = (View){ .name = "connectivity", .kind = VIEW_PATTERN, .iteration = -1, .dtype = DT_U8,
                    .rank = each ? 3 : 2, .rows = "query", .cols = "key", .support = p->pattern };
    view->components = p->names;
    memcpy(view->shape, each ? shape : shape + 1, (size_t)view->rank * sizeof(*shape));
    return p->keep;
}

/* ---- tables ---------------------------------------------------------------------------- */

static const luaL_Reg pattern_meta[] = {
    { "__gc", pattern_close }, { "__close", pattern_close }, { "__tostring", pattern_describe },
    { "__len", pattern_n }, { NULL, NULL },
};

#define PATTERN_OR_FAILURE "attnscope.Pattern?, string?, string?"

static const Member pattern_members[] = {
    { "n", pattern_n, NULL, "integer", "queries" },
    { "m", pattern_m, NULL, "integer", "keys" },
    { "heads", pattern_h, NULL, "integer", "heads" },
    { "per_head", pattern_each, NULL, "boolean", "heads differ" },
    { "nnz", pattern_nnz, NULL, "integer", "allowed cells, over all heads" },
    { "density", pattern_density, NULL, "number", "their share of all cells" },
    { "runs", pattern_runs, NULL, "attnscope.Tensor",
      "[c,6] i64, read only: head (-1: all), query, start, count, step, component.  Written as "
      ".npy it is what runs($t) of the pattern language takes." },
    { "row", pattern_row_method, "q: integer, head?: integer", "integer[]",
      "The keys query q may see, in increasing order." },
    { "cell", pattern_cell_method, "q: integer, k: integer, head?: integer", "boolean, string[]",
      "Whether query q may see key k, and by which components." },
    { "compare", pattern_compare, "other: attnscope.Pattern", "table",
      "same; cells that are in both, only_this or only_other; jaccard, the share of both in all." },
    { "union", pattern_unite, "other: attnscope.Pattern", PATTERN_OR_FAILURE,
      "Cells of this or the other, with the components of both." },
    { "common", pattern_share, "other: attnscope.Pattern", PATTERN_OR_FAILURE, "Cells of both." },
    { "minus", pattern_subtract, "other: attnscope.Pattern", PATTERN_OR_FAILURE,
      "Cells of this that are not the other's." },
    { "as", pattern_as, "component: string, name?: string", PATTERN_OR_FAILURE,
      "The same cells, all of one component (its colour: window, global, random, strided, block or "
      "other), which pictures call by the name." },
    { "close", pattern_close, "", "", "Gives the memory back now." },
    MEMBER_END,
};
const Class class_pattern = {
    .name = "Pattern",
    .help = "Which queries may see which keys, as a run left it.  attn.run(p) runs it on the same "
            "input or another of its size, a panel { pattern = p } draws it.",
    .members = pattern_members,
    .meta = pattern_meta,
    .operators = "---@operator len: integer\n",
    .instead = "p:union, p:common, p:minus and attn.pattern make another",
};
