/* order.c -- the order in which a mechanism sorted its tokens; see views.h. */
#include "app/result/views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_ONLY "key slot" /* columns of an order of the keys; queries stay where they are */
#define SORTED_MOST 4 /* views with a row for each round: buckets, chunks */

/* Computed when first asked for. */
typedef struct OwnOrders {
    int32_t **of;    /* [h*rounds], from categories; NULL: not yet */
    int32_t  *slots; /* 0, 1, ...: for views that are sorted already */
    struct {
        const View *view;
        View        sorted;
    } rows[SORTED_MOST];
    int row_count;
} OwnOrders;

static OwnOrders *orders_of(Result *result)
{
    Run       *run = result->run;
    int64_t    count = run->h * result_order_rounds(result);
    OwnOrders *own = result->orders;

    if (own || !(own = arena_alloc(run->arena, 1, sizeof(*own))))
        return own;
    *own = (OwnOrders){ .of = arena_alloc(run->arena, count, sizeof(*own->of)),
                        .slots = arena_alloc(run->arena, run->n, sizeof(*own->slots)) };
    if (!own->of || !own->slots)
        return NULL;
    for (int64_t i = 0; i < count; i++)
        own->of[i] = NULL;
    for (int64_t i = 0; i < run->n; i++)
        own->slots[i] = (int32_t)i;
    return result->orders = own;
}

/* ---- where orders are read from --------------------------------------------- */

static bool is_line_of_tokens(const Run *run, const View *view)
{
    return view->tensor.data && view->tensor.dtype == DT_I32 && view_cols(view) == run->n;
}

const View *result_order_source(const Result *result)
{
    static const ViewKind kinds[] = { VIEW_ORDER, VIEW_BUCKETS };
    const Run            *run = result->run;

    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
        for (int i = 0; i < run->view_count; i++) {
            const View *view = &run->views[i];

            if (view->kind == kinds[k] && is_line_of_tokens(run, view) &&
                (view->kind != VIEW_ORDER || !strcmp(view->cols, "slot") ||
                 !strcmp(view->cols, KEYS_ONLY)) &&
                run_view(run, view->name) == view) /* the final view of its name */
                return view;
        }
    return NULL;
}

static int64_t rounds_of(const Run *run, const View *view)
{
    int64_t lines = view_planes(view) * view_rows(view);

    return lines % run->h == 0 ? lines / run->h : 1;
}

int64_t result_order_rounds(const Result *result)
{
    const View *source = result_order_source(result);

    return source ? rounds_of(result->run, source) : 1;
}

int64_t result_order_round(const Result *result, const View *view)
{
    bool whole = run_view(result->run, view->name) == view;

    return !whole && view->iteration > 0 && view->iteration < result_order_rounds(result)
               ? view->iteration
               : 0;
}

const int32_t *round_line(const Run *run, const View *view, int64_t head, int64_t round)
{
    int64_t lines = view_planes(view) * view_rows(view), rounds = rounds_of(run, view);
    int64_t line = head * rounds + (round < rounds ? round : 0);

    return is_line_of_tokens(run, view) ? tensor_i32(&view->tensor) +
                                              (line < lines ? line : 0) * run->n
                                        : NULL;
}

const int32_t *result_categories(const Result *result, int64_t head, int64_t round)
{
    const Run *run = result->run;

    for (int i = 0; i < run->view_count; i++)
        if (run->views[i].kind == VIEW_BUCKETS && is_line_of_tokens(run, &run->views[i]))
            return round_line(run, &run->views[i], head, round);
    return NULL;
}

/* Stable counting sort of the tokens by their category, from -1 (none) on; NULL: no memory, or a
 * category below that. */
static int32_t *order_of_categories(Run *run, const int32_t *category)
{
    int32_t *out = arena_alloc(run->arena, run->n, sizeof(*out)), least = 0, most = 0;
    int64_t *first;

    for (int64_t i = 0; i < run->n; i++) {
        least = category[i] < least ? category[i] : least;
        most = category[i] > most ? category[i] : most;
    }
    first = least >= -1 ? calloc((size_t)most + 3, sizeof(*first)) : NULL;
    if (!out || !first) {
        free(first);
        return NULL;
    }
    for (int64_t i = 0; i < run->n; i++)
        first[category[i] + 2]++;
    for (int64_t c = 0; c <= most; c++)
        first[c + 1] += first[c];
    for (int64_t i = 0; i < run->n; i++)
        out[first[category[i] + 1]++] = (int32_t)i;
    free(first);
    return out;
}

const int32_t *result_sorted_order(Result *result, int64_t head, int64_t round)
{
    const View    *source = result_order_source(result);
    const int32_t *line = source ? round_line(result->run, source, head, round) : NULL;
    int64_t        rounds = line ? rounds_of(result->run, source) : 1;
    OwnOrders     *own;
    int32_t      **kept;

    if (!line || source->kind == VIEW_ORDER)
        return line;
    own = orders_of(result);
    if (!own || head >= result->run->h)
        return NULL;
    kept = &own->of[head * rounds + (round < rounds ? round : 0)];
    if (!*kept)
        *kept = order_of_categories(result->run, line);
    return *kept;
}

/* ---- views in that order ---------------------------------------------------- */

bool result_sorts_rows(const Result *result, const View *view)
{
    const View *source = result_order_source(result);

    return !strcmp(view->rows, "query") && view_rows(view) == result->run->n && source &&
           strcmp(source->cols, KEYS_ONLY) != 0;
}

bool result_sorts_cols(const Result *result, const View *view)
{
    return (!strcmp(view->cols, "key") || !strcmp(view->cols, "token")) &&
           view_cols(view) == result->run->n;
}

bool result_sorts_by_row(const Result *result, const View *view)
{
    int64_t rounds = result_order_rounds(result);

    return rounds > 1 && !strcmp(view->rows, "round") && view_rows(view) == rounds &&
           result_sorts_cols(result, view) && is_line_of_tokens(result->run, view);
}

/* A copy of the view with each row sorted; NULL: no memory. */
static const View *sorted_by_row(Result *result, const View *view)
{
    Run       *run = result->run;
    OwnOrders *own = orders_of(result);
    int64_t    lines = view_planes(view) * view_rows(view), rows = view_rows(view);
    View      *out;
    int32_t   *to;

    for (int i = 0; own && i < own->row_count; i++)
        if (own->rows[i].view == view)
            return &own->rows[i].sorted;
    to = own && own->row_count < SORTED_MOST ? arena_alloc(run->arena, lines * run->n, sizeof(*to))
                                             : NULL;
    if (!to)
        return NULL;
    own->rows[own->row_count].view = view;
    out = &own->rows[own->row_count++].sorted;
    *out = *view;
    out->tensor.data = to;
    out->iteration = -1;
    for (int64_t l = 0; l < lines; l++) {
        const int32_t *order = result_sorted_order(result, l / rows, l % rows);
        const int32_t *from = tensor_i32(&view->tensor) + l * run->n;

        for (int64_t s = 0; s < run->n; s++)
            to[l * run->n + s] = from[order ? order[s] : s];
    }
    return out;
}

/* Categories whose borders are drawn: chunks, else the sorted categories. */
static const View *border_view(const Run *run)
{
    const View *chunks = run_view(run, "chunks");

    for (int i = run->view_count - 1; i >= 0 && !chunks; i--)
        if (run->views[i].kind == VIEW_BUCKETS && view_cols(&run->views[i]) == run->n)
            chunks = &run->views[i];
    return chunks && chunks->kind == VIEW_BUCKETS ? chunks : NULL;
}

static const int32_t *border_categories(const Run *run, int64_t head, int64_t round)
{
    const View *view = border_view(run);

    return view ? round_line(run, view, head, round) : NULL;
}

int64_t picture_borders(const Result *result, int64_t head, int64_t round, const int32_t *order,
                        int64_t *first)
{
    const int32_t *category = border_categories(result->run, head, round);
    int64_t        count = 0;

    for (int64_t s = 0; category && s < result->run->n; s++)
        if (s == 0 || category[order[s]] != category[order[s - 1]])
            first[count++] = s;
    return count;
}

static void border_panel(Result *result, int64_t head, int64_t round, const int32_t *order,
                         Panel *panel)
{
    Run     *run = result->run;
    int64_t *first = border_categories(run, head, round)
                         ? arena_alloc(run->arena, run->n, sizeof(*first))
                         : NULL;

    if (!first)
        return;
    panel->slot_groups = first;
    panel->slot_group_count = picture_borders(result, head, round, order, first);
}

void picture_order_panel(Result *result, int64_t head, int64_t round, Panel *panel)
{
    const int32_t *order = result_sorted_order(result, head, round);
    const View    *by_row;

    if (!order)
        return;
    by_row = result_sorts_by_row(result, panel->view) ? sorted_by_row(result, panel->view) : NULL;
    if (by_row) {
        panel->view = by_row;
        panel->col_order = orders_of(result)->slots;
        return;
    }
    if (result_sorts_rows(result, panel->view))
        panel->row_order = order;
    if (result_sorts_cols(result, panel->view))
        panel->col_order = order;
}

/* "sorted as in round 1, lines between chunks": what cannot be seen of a matrix. */
static void word_order(const Result *result, int64_t round, Panel *panel)
{
    const View *of = border_view(result->run);
    char        word[64], as[48] = "";

    if (!of || !panel->slot_groups || view_rows(panel->view) < 2)
        return;
    categories_word(of, word, sizeof(word));
    if (result_order_rounds(result) > 1 && !result_sorts_by_row(result, panel->view))
        snprintf(as, sizeof(as), " as in round %lld", (long long)round + 1);
    snprintf(panel->sorted, sizeof(panel->sorted), "sorted%s, lines between %s", as, word);
}

void picture_sort_panel(Result *result, int64_t head, int64_t round, Panel *panel)
{
    const int32_t *order = result_sorted_order(result, head, round);

    picture_order_panel(result, head, round, panel);
    if (!order || !(panel->row_order || panel->col_order))
        return;
    border_panel(result, head, round, order, panel);
    word_order(result, round, panel);
}
