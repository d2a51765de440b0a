/* lua_result_cell.c -- single cells and rows of a result: what they hold, and why. */
#include "script/host/binding.h"

#include <string.h>

#include "app/result/cell.h"
#include "app/result/order.h"
#include "draw/colour/colour.h"
#include "script/host/lua_work.h"

/* A matrix of queries by keys of this run's size. */
static bool is_query_key(const Run *run, const View *view)
{
    return view->rank >= 2 && view_rows(view) == run->n && view_cols(view) == run->m &&
           !strcmp(view->rows, "query") && !strcmp(view->cols, "key") &&
           (view_planes(view) == 1 || view_planes(view) == run->h);
}

static const View *matrix_called(const Run *run, const char *name)
{
    const View *view = run_view(run, name);

    return view && is_query_key(run, view) ? view : NULL;
}

const Pattern *result_cells(const Run *run)
{
    const View *view = matrix_called(run, "connectivity");

    if (!view || !view->support)
        view = matrix_called(run, "weights");
    return view ? view->support : NULL;
}

/* The latest view that says of every token and head in which bucket or cluster it is; NULL: there
 * is none. */
static const View *groups_of(const Run *run)
{
    for (int i = 0; i < run->view_count; i++) {
        const View *view = &run->views[i];

        if (view->kind == VIEW_BUCKETS && !strcmp(view->cols, "token") &&
            run_view(run, view->name) == view && round_line(run, view, 0, 0) &&
            view_planes(view) * view_rows(view) % run->h == 0)
            return view;
    }
    return NULL;
}

static const Alias cell_names[] = { { "component", "components" }, { NULL, NULL } };
static const Alias entry_names[] = { { "w", "weight" }, { "component", "components" },
                                     { NULL, NULL } };

typedef struct Asked {
    Result *result;
    int64_t head, q, k;
    CellWhy why;
} Asked;

/* Names of the component bits as a list.  [-0, +1, m] */
void push_components(lua_State *L, uint8_t bits)
{
    int count = 0;

    lua_newtable(L);
    for (unsigned bit = 1; bit <= COMPONENT_LAST; bit <<= 1)
        if (bits & bit) {
            lua_pushstring(L, component_name((uint8_t)bit));
            lua_rawseti(L, -2, ++count);
        }
}

static int64_t plane_of(const View *view, int64_t head)
{
    return view_planes(view) == 1 ? 0 : head;
}

static int64_t check_head(lua_State *L, int arg, const Run *run)
{
    return lua_isnoneornil(L, arg) ? 0 : check_index(L, arg, run->h, "head");
}

/* One row of a view in memory of the collector's.  [-0, +1, m] */
static float *push_row(lua_State *L, const View *view, int64_t head, int64_t q)
{
    float *row = lua_newuserdatauv(L, (size_t)view_cols(view) * sizeof(*row), 0);

    view_read(view, plane_of(view, head), q, 0, view_cols(view), 1, row);
    return row;
}

static void set_weight(lua_State *L, const Run *run, int64_t head, int64_t q, int64_t k)
{
    const View  *view = matrix_called(run, "weights");
    const float *row;
    int64_t      rank = 1;

    if (!view)
        return;
    row = push_row(L, view, head, q);
    for (int64_t j = 0; j < run->m; j++)
        rank += row[j] > row[k];
    lua_pushnumber(L, (double)row[k]);
    lua_setfield(L, -3, "weight");
    lua_pushinteger(L, rank);
    lua_setfield(L, -3, "rank");
    lua_pop(L, 1);
}

static void set_values(lua_State *L, const Run *run, int64_t head, int64_t q, int64_t k)
{
    lua_newtable(L);
    for (int i = 0; i < run->view_count; i++) {
        const View *view = &run->views[i];
        float       value;

        if (!is_query_key(run, view))
            continue;
        view_read(view, plane_of(view, head), q, k, 1, 1, &value);
        lua_pushnumber(L, (double)value);
        lua_setfield(L, -2, view->name);
    }
    lua_setfield(L, -2, "values");
}

static void set_token(lua_State *L, char *const *tokens, int64_t at, const char *key)
{
    if (!tokens)
        return;
    lua_pushstring(L, tokens[at]);
    lua_setfield(L, -2, key);
}

static void set_number(lua_State *L, const char *key, double value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

/* The group of token t in each round, from the view that sorts the tokens: a number, or a list
 * where there are several rounds.  [-0, +0, m] */
static void set_group(lua_State *L, const Asked *a, int64_t t, const char *key)
{
    const Run  *run = a->result->run;
    const View *view = groups_of(run);
    int64_t     rounds;

    if (!view || t >= run->n)
        return;
    rounds = view_planes(view) * view_rows(view) / run->h;
    lua_createtable(L, (int)rounds, 0);
    for (int64_t r = 0; r < rounds; r++) {
        lua_pushinteger(L, round_line(run, view, a->head, r)[t]);
        if (rounds == 1) {
            lua_replace(L, -2);
            break;
        }
        lua_rawseti(L, -2, r + 1);
    }
    lua_setfield(L, -2, key);
}

/* The score, the share of the output, and exact attention. */
static void set_why(lua_State *L, const CellWhy *why)
{
    if (why->softmax)
        set_number(L, "below", why->below);
    if (why->adds) {
        set_number(L, "share", why->share);
        set_number(L, "length", why->length);
    }
    if (!why->scored)
        return;
    set_number(L, "score", why->score);
    lua_pushboolean(L, why->own_score);
    lua_setfield(L, -2, "own_score");
    lua_newtable(L);
    set_number(L, "weight", why->exact);
    lua_pushinteger(L, why->exact_rank);
    lua_setfield(L, -2, "rank");
    lua_pushinteger(L, why->exact_of);
    lua_setfield(L, -2, "keys");
    lua_setfield(L, -2, "exact");
}

/* The reader lives for this call. */
static bool find_why(void *context, const atomic_bool *cancel, Error *err)
{
    Asked      *a = context;
    CellReader *reader = cell_reader_new(a->result, err);
    bool        ok = reader && cell_read(reader, a->head, a->q, a->k, &a->why, err);

    (void)cancel;
    cell_reader_free(reader);
    return ok;
}

static int push_cell(lua_State *L, int status, lua_KContext at)
{
    const Asked   *a = work_context(L, at);
    const Run     *run = a->result->run;
    const Pattern *pattern = result_cells(run);
    bool           allowed = true;
    uint8_t        bits = pattern ? pattern_cell(pattern, a->head, a->q, a->k, &allowed) : 0;
    Error          err;

    (void)status;
    if (!work_ended(L, at, &err))
        return failure(L, &err);
    lua_newtable(L);
    lua_pushboolean(L, allowed);
    lua_setfield(L, -2, "allowed");
    push_components(L, bits);
    lua_setfield(L, -2, "components");
    set_weight(L, run, a->head, a->q, a->k);
    set_values(L, run, a->head, a->q, a->k);
    set_why(L, &a->why);
    set_group(L, a, a->q, "bucket_q");
    set_group(L, a, a->k, "bucket_k");
    set_token(L, a->result->input->q_tokens, a->q, "q_token");
    set_token(L, a->result->input->k_tokens, a->k, "k_token");
    names_set(L, cell_names);
    return 1;
}

/* [-0, +1 or 3, v] */
int result_cell(lua_State *L)
{
    const LuaResult *result = result_check(L, 1);
    const Run       *run = result->result->run;
    int64_t q = check_index(L, 2, run->n, "query"), k = check_index(L, 3, run->m, "key");
    int64_t head = check_head(L, 4, run);
    Asked  *a;

    lua_settop(L, 4);
    a = lua_newuserdatauv(L, sizeof(*a), 0);
    *a = (Asked){ .result = result->result, .head = head, .q = q, .k = k };
    return work_await(L, result->session, "reading a cell", find_why, push_cell);
}

/* ---- rows ------------------------------------------------------------------- */

typedef struct RowWriter {
    const Pattern *pattern; /* NULL: every key is allowed */
    const float   *weights; /* NULL: the mechanism has none */
    int64_t        head, q, m;
    lua_Integer    count;
} RowWriter;

static void write_key(lua_State *L, RowWriter *writer, int64_t k)
{
    bool    allowed = true;
    uint8_t bits = 0;

    if (writer->pattern)
        bits = pattern_cell(writer->pattern, writer->head, writer->q, k, &allowed);
    if (!allowed)
        return;
    lua_newtable(L);
    lua_pushinteger(L, k);
    lua_setfield(L, -2, "k");
    if (writer->weights) {
        lua_pushnumber(L, (double)writer->weights[k]);
        lua_setfield(L, -2, "weight");
    }
    push_components(L, bits);
    lua_setfield(L, -2, "components");
    names_set(L, entry_names);
    lua_rawseti(L, -2, ++writer->count);
}

/* Keys in increasing order.  [-0, +1, v] */
int result_row(lua_State *L)
{
    const Run  *run = result_check(L, 1)->result->run;
    const View *weights = matrix_called(run, "weights");
    RowWriter   writer = { .pattern = result_cells(run), .m = run->m };

    writer.q = check_index(L, 2, run->n, "query");
    writer.head = check_head(L, 3, run);
    if (weights)
        writer.weights = push_row(L, weights, writer.head, writer.q);
    lua_newtable(L);
    for (int64_t k = 0; k < run->m; k++)
        write_key(L, &writer, k);
    return 1;
}
