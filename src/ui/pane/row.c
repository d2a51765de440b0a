/* row.c -- see row.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/pane/row.h"
#include "ui/state/panes.h"
#include "ui/shell/actions.h"

#define LONGEST 262144 /* keys; beyond, a row is not read at the speed of a key press */

void row_free(Row *row)
{
    free(row->cells);
    free(row->by_weight);
    *row = (Row){ 0 };
}

static bool reserve(Row *row, int64_t more)
{
    int64_t  wanted = row->count + more;
    RowCell *grown;

    if (wanted <= row->capacity)
        return true;
    wanted = wanted < 256 ? 256 : wanted * 3 / 2;
    grown = realloc(row->cells, (size_t)wanted * sizeof(*grown));
    if (!grown)
        return false;
    row->cells = grown;
    row->capacity = wanted;
    return true;
}

static bool add_run(Row *row, PatternRun run)
{
    float   values[512];
    int64_t step = run.step > 0 ? run.step : 1;

    if (!reserve(row, run.count))
        return false;
    for (int64_t done = 0; done < run.count;) {
        int64_t piece = run.count - done < 512 ? run.count - done : 512;

        view_read(row->view, row->plane, row->query, run.start + done * step, piece, step, values);
        for (int64_t c = 0; c < piece; c++)
            row->cells[row->count++] = (RowCell){ .key = run.start + (done + c) * step,
                                                  .value = values[c],
                                                  .bits = run.bits };
        done += piece;
    }
    return true;
}

static int by_key(const void *x, const void *y)
{
    const RowCell *a = x, *b = y;

    return (a->key > b->key) - (a->key < b->key);
}

static int by_magnitude(const void *x, const void *y)
{
    const RowCell *a = x, *b = y;
    float          left = fabsf(a->value), right = fabsf(b->value);

    return left != right ? (left < right ? 1 : -1) : by_key(x, y);
}

static int by_value(const void *x, const void *y)
{
    const RowCell *a = x, *b = y;

    if (a->value != b->value)
        return a->value < b->value ? 1 : -1;
    return by_key(x, y);
}

static bool add_all(Row *row, const Pattern *support)
{
    PatternRow runs = { 0 };
    int64_t    heads = support ? pattern_heads(support) : 1;
    int64_t    planes = view_planes(row->view);
    int64_t    head = planes >= heads ? row->plane / (planes / heads) : row->plane;
    bool       ok = true, sorted = true;

    if (!support)
        return add_run(row, (PatternRun){ .count = row->all, .step = 1 });
    pattern_row(support, head < heads ? head : heads - 1, row->query, &runs);
    ok = !runs.failed;
    for (int64_t i = 0; ok && i < runs.count; i++)
        ok = add_run(row, runs.runs[i]);
    for (int64_t c = 1; c < row->count; c++)
        sorted &= row->cells[c - 1].key < row->cells[c].key;
    if (!sorted)
        qsort(row->cells, (size_t)row->count, sizeof(*row->cells), by_key);
    pattern_row_free(&runs);
    return ok;
}

static void take_bits(Row *row, const Pattern *components)
{
    bool allowed;

    for (int64_t c = 0; c < row->count; c++)
        row->cells[c].bits =
            pattern_cell(components, row->plane < pattern_heads(components) ? row->plane : 0,
                         row->query, row->cells[c].key, &allowed);
}

/* Of keys that were looked for, what exact attention puts on them. */
static void take_weights(Row *row)
{
    const ViewFound *found = row->view->found;
    int64_t          at = (row->plane * view_rows(row->view) + row->query) * found->keys;

    for (int64_t c = 0; c < row->count; c++)
        for (int64_t k = 0; k < found->keys; k++)
            if (found->key[at + k] == row->cells[c].key)
                row->cells[c].value = found->weight[at + k];
}

/* Adds `sign` times the other.  Both rows are by key; where only one has a cell the other
 * counts as 0. */
static bool add_row(Row *row, const Row *other, float sign)
{
    int64_t  a = 0, b = 0, count = 0;
    RowCell *cells = malloc((size_t)(row->count + other->count + 1) * sizeof(*cells));

    if (!cells)
        return false;
    while (a < row->count || b < other->count) {
        int64_t mine = a < row->count ? row->cells[a].key : INT64_MAX;
        int64_t its = b < other->count ? other->cells[b].key : INT64_MAX;
        RowCell cell = mine <= its ? row->cells[a] : (RowCell){ .key = its };

        if (its <= mine) {
            cell.value += sign * other->cells[b].value;
            cell.bits |= sign > 0 ? other->cells[b].bits : 0;
        }
        cells[count++] = cell;
        a += mine <= its;
        b += its <= mine;
    }
    free(row->cells);
    row->cells = cells;
    row->capacity = row->count + other->count + 1;
    row->count = count;
    return true;
}

static bool subtract_view(Row *row)
{
    int64_t plane = row->plane, planes = view_planes(row->minus);
    Row     other = { 0 };
    bool    ok = row_read(&other, row->owner, row->minus, NULL, NULL,
                       plane < planes ? plane : planes - 1, row->query) &&
              add_row(row, &other, -1);

    row_free(&other);
    return ok;
}

static void add_up(Row *row)
{
    row->sum = row->magnitude = row->entropy = 0;
    for (int64_t c = 0; c < row->count; c++) {
        row->sum += (double)row->cells[c].value;
        row->magnitude += fabs((double)row->cells[c].value);
    }
    for (int64_t c = 0; c < row->count && row->sum > 0; c++) {
        double p = (double)row->cells[c].value / row->sum;

        row->entropy -= p > 0 ? p * log(p) : 0;
    }
}

/* Keys that are not reached are not in the row. */
static void only_reached(Row *row)
{
    int64_t kept = 0;

    for (int64_t c = 0; c < row->count; c++)
        if (row->cells[c].value >= 0)
            row->cells[kept++] = row->cells[c];
    row->count = kept;
}

bool row_read(Row *row, const void *owner, const View *view, const View *minus,
              const Pattern *components, int64_t plane, int64_t query)
{
    if (row->owner == owner && row->view == view && row->minus == minus && row->plane == plane &&
        row->query == query)
        return !row->sampled;
    free(row->by_weight);
    *row = (Row){ .owner = owner,
                  .view = view,
                  .minus = minus,
                  .plane = plane,
                  .query = query,
                  .cells = row->cells,
                  .capacity = row->capacity,
                  .all = view_cols(view) };
    row->sampled = row->all > LONGEST && !view->support;
    if (row->sampled || query < 0 || query >= view_rows(view) || !add_all(row, view->support))
        return false;
    if (view->kind == VIEW_HOPS)
        only_reached(row);
    if (view->found)
        take_weights(row);
    if (components && components != view->support && row->count <= 4096)
        take_bits(row, components);
    if (minus && !subtract_view(row)) {
        row->sampled = true; /* not at hand as a difference */
        return false;
    }
    add_up(row);
    return true;
}

bool row_read_many(Row *row, const void *owner, const View *view, const View *minus,
                   const Pattern *components, int64_t plane, const int64_t *queries, int count,
                   bool mean, int version)
{
    Row  one = { 0 };
    bool ok = true;

    if (row->owner == owner && row->view == view && row->minus == minus && row->plane == plane &&
        row->query == version)
        return !row->sampled;
    row_free(row);
    for (int k = 0; ok && k < count; k++)
        ok = row_read(&one, owner, view, minus, components, plane, queries[k]) &&
             add_row(row, &one, 1);
    row_free(&one);
    for (int64_t c = 0; mean && c < row->count; c++)
        row->cells[c].value /= (float)count;
    row->owner = owner;
    row->view = view;
    row->minus = minus;
    row->plane = plane;
    row->query = version;
    row->all = view_cols(view);
    row->sampled = !ok;
    add_up(row);
    return ok;
}

const RowCell *row_find(const Row *row, int64_t key)
{
    RowCell wanted = { .key = key };

    return row->count
               ? bsearch(&wanted, row->cells, (size_t)row->count, sizeof(*row->cells), by_key)
               : NULL;
}

bool row_attends(const View *view)
{
    return view->kind == VIEW_WEIGHTS && !strcmp(view->name, "weights");
}

int64_t row_weighed(const Row *row)
{
    int64_t count = 0;

    if (!row->view || row->view->kind != VIEW_WEIGHTS || row_attends(row->view))
        return row->count;
    for (int64_t c = 0; c < row->count; c++)
        count += row->cells[c].value > 0;
    return count;
}

int64_t row_rank(const Row *row, int64_t key)
{
    const RowCell *cell = row_find(row, key);
    int64_t        rank = 1;

    if (!cell)
        return 0;
    for (int64_t c = 0; c < row->count; c++)
        rank += row->cells[c].value > cell->value;
    return rank;
}

const RowCell *row_by_weight(Row *row)
{
    if (!row->by_weight && row->count) {
        row->by_weight = malloc((size_t)row->count * sizeof(*row->by_weight));
        if (!row->by_weight)
            return NULL;
        memcpy(row->by_weight, row->cells, (size_t)row->count * sizeof(*row->by_weight));
        qsort(row->by_weight, (size_t)row->count, sizeof(*row->by_weight),
              row->minus ? by_magnitude : by_value);
    }
    return row->by_weight;
}

int64_t row_edge(const Row *row, int64_t key, int direction)
{
    bool    inside = row_find(row, key) != NULL;
    int64_t at = key + direction;

    while (at >= 0 && at < row->all && (row_find(row, at) != NULL) == inside)
        at += direction;
    return at >= 0 && at < row->all ? at : -1;
}

/* Queries marked with a key, and their sum or mean; see row.h. */

bool marks_has(const Marks *marks, int64_t query)
{
    for (int k = 0; k < marks->count; k++)
        if (marks->at[k] == query)
            return true;
    return false;
}

static void take_out(Marks *marks, int64_t query)
{
    int kept = 0;

    for (int k = 0; k < marks->count; k++)
        if (marks->at[k] != query)
            marks->at[kept++] = marks->at[k];
    marks->count = kept;
}

bool marks_toggle(Marks *marks, int64_t query)
{
    int at = 0;

    if (marks_has(marks, query)) {
        take_out(marks, query);
        marks->version++;
        return true;
    }
    if (marks->count == MARGIN_QUERIES_MOST)
        return false;
    while (at < marks->count && marks->at[at] < query)
        at++;
    memmove(&marks->at[at + 1], &marks->at[at], (size_t)(marks->count - at) * sizeof(*marks->at));
    marks->at[at] = query;
    marks->count++;
    marks->version++;
    return true;
}

void marks_clear(Marks *marks)
{
    marks->count = 0;
    marks->version++;
}
