/* lua_result_cell.c -- single cells and rows of a result, and two results
 * against each other. */
#include "script/lua_binding.h"

#include <math.h>
#include <string.h>

#include "app/cell.h"
#include "draw/colour.h"

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

static const Pattern *allowed_cells(const Run *run)
{
    const View *view = matrix_called(run, "connectivity");

    if (!view || !view->support)
        view = matrix_called(run, "weights");
    return view ? view->support : NULL;
}

/* Names of the component bits as a list.  [-0, +1, m] */
static void push_components(lua_State *L, uint8_t bits)
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

/* The score, the share of the output, and exact attention.  The reader lives for this call. */
static void set_why(lua_State *L, Result *result, int64_t head, int64_t q, int64_t k)
{
    Error       err = ERROR_INIT;
    CellReader *reader = cell_reader_new(result, &err);
    CellWhy     why;
    bool        ok = reader && cell_read(reader, head, q, k, &why, &err);

    cell_reader_free(reader);
    if (!ok)
        luaL_error(L, "%s", err.text);
    if (why.softmax)
        set_number(L, "below", why.below);
    if (why.adds) {
        set_number(L, "share", why.share);
        set_number(L, "length", why.length);
    }
    if (!why.scored)
        return;
    set_number(L, "score", why.score);
    lua_pushboolean(L, why.own_score);
    lua_setfield(L, -2, "own_score");
    lua_newtable(L);
    set_number(L, "weight", why.exact);
    lua_pushinteger(L, why.exact_rank);
    lua_setfield(L, -2, "rank");
    lua_pushinteger(L, why.exact_of);
    lua_setfield(L, -2, "keys");
    lua_setfield(L, -2, "exact");
}

/* [-0, +1, v] */
int result_cell(lua_State *L)
{
    Result        *result = result_check(L, 1)->result;
    const Run     *run = result->run;
    int64_t        q = check_index(L, 2, run->n, "query"), k = check_index(L, 3, run->m, "key");
    int64_t        head = check_head(L, 4, run);
    const Pattern *pattern = allowed_cells(run);
    bool           allowed = true;
    uint8_t        bits = pattern ? pattern_cell(pattern, head, q, k, &allowed) : 0;

    lua_newtable(L);
    lua_pushboolean(L, allowed);
    lua_setfield(L, -2, "allowed");
    push_components(L, bits);
    lua_setfield(L, -2, "components");
    set_weight(L, run, head, q, k);
    set_values(L, run, head, q, k);
    set_why(L, result, head, q, k);
    set_token(L, result->input->q_tokens, q, "q_token");
    set_token(L, result->input->k_tokens, k, "k_token");
    return 1;
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
    lua_rawseti(L, -2, ++writer->count);
}

/* Keys in increasing order.  [-0, +1, v] */
int result_row(lua_State *L)
{
    const Run  *run = result_check(L, 1)->result->run;
    const View *weights = matrix_called(run, "weights");
    RowWriter   writer = { .pattern = allowed_cells(run), .m = run->m };

    writer.q = check_index(L, 2, run->n, "query");
    writer.head = check_head(L, 3, run);
    if (weights)
        writer.weights = push_row(L, weights, writer.head, writer.q);
    lua_newtable(L);
    for (int64_t k = 0; k < run->m; k++)
        write_key(L, &writer, k);
    return 1;
}

/* ---- two results ------------------------------------------------------------ */

typedef struct Difference {
    double max_abs, mean_abs, rel_l2;
} Difference;

static Difference compare_outputs(const Tensor *a, const Tensor *b)
{
    int64_t    count = tensor_count(a);
    double     squares = 0, norm = 0;
    Difference d = { 0 };

    for (int64_t i = 0; i < count; i++) {
        double x = (double)tensor_f32(a)[i], y = (double)tensor_f32(b)[i], diff = fabs(x - y);

        d.mean_abs += diff;
        squares += diff * diff;
        norm += y * y;
        if (!(diff <= d.max_abs))
            d.max_abs = diff;
    }
    d.mean_abs /= count ? (double)count : 1;
    d.rel_l2 = norm > 0 ? sqrt(squares / norm) : squares > 0 ? (double)INFINITY : 0;
    return d;
}

/* Mean over the rows of half the sum of |a - b|.  [-0, +0, m] */
static double total_variation(lua_State *L, const Run *run, const View *a, const View *b)
{
    size_t bytes = (size_t)run->m * sizeof(float);
    float *x = lua_newuserdatauv(L, bytes, 0), *y = lua_newuserdatauv(L, bytes, 0);
    double sum = 0;

    for (int64_t head = 0; head < run->h; head++)
        for (int64_t q = 0; q < run->n; q++) {
            view_read(a, plane_of(a, head), q, 0, run->m, 1, x);
            view_read(b, plane_of(b, head), q, 0, run->m, 1, y);
            for (int64_t j = 0; j < run->m; j++)
                sum += fabs((double)x[j] - (double)y[j]);
        }
    lua_pop(L, 2);
    return sum / 2 / ((double)run->h * (double)run->n);
}

/* [-0, +1, v] */
int result_compare(lua_State *L)
{
    const Run  *a = result_check(L, 1)->result->run, *b = result_check(L, 2)->result->run;
    const View *wa = matrix_called(a, "weights"), *wb = matrix_called(b, "weights");
    char        text[2][80];
    Difference  d;

    if (!tensor_same_shape(&a->out, &b->out))
        return luaL_argerror(L, 2, lua_pushfstring(L, "the outputs have shapes %s and %s",
                                    tensor_shape_text(&a->out, text[0], sizeof(text[0])),
                                    tensor_shape_text(&b->out, text[1], sizeof(text[1]))));
    d = compare_outputs(&a->out, &b->out);
    lua_newtable(L);
    set_number(L, "max_abs", d.max_abs);
    set_number(L, "mean_abs", d.mean_abs);
    set_number(L, "rel_l2", d.rel_l2);
    if (wa && wb && a->m == b->m)
        set_number(L, "total_variation", total_variation(L, a, wa, wb));
    return 1;
}
