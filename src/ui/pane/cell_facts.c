/* cell_facts.c -- what a pane knows about one cell. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/result/views.h"
#include "ui/screen/compare.h"

/* What the pane's numbers are a difference to; NULL: they are its own. */
static const View *minus_of(Ui *ui, const Pane *pane)
{
    return pane_differs(ui, pane) ? pane_numbers(&ui->compare.panes[0]) : NULL;
}

/* What rows are read of; false: not at hand, a key press does not wait for the layers. */
static bool row_source(const Pane *pane, const View **view, const Pattern **components)
{
    const View *bits;

    *view = pane->result ? pane_numbers(pane) : NULL;
    if (!*view || ((*view)->kind == VIEW_HOPS && !reach_view_ready(*view)) ||
        !derived_known(*view, pane_plane(pane, *view)))
        return false;
    bits = (*view)->found              ? *view
           : (*view)->kind == VIEW_HOPS ? NULL
                                        : run_view(pane->result->run, "components");
    if (view_rows(*view) != pane->result->run->n || view_cols(*view) != pane->result->run->m)
        bits = NULL;
    *components = bits ? bits->support : NULL;
    return true;
}

/* No key was chosen for the query: all there are, or all that are not later, take part. */
static bool sees_every_key(const Run *run, const Row *row)
{
    return row->all == run->m && (row->count == row->all ||
                                  (run->causal && row->count == row->query + run->q_offset + 1));
}

bool pane_row(Ui *ui, Pane *pane, int64_t q)
{
    const View    *view;
    const Pattern *components;

    if (!row_source(pane, &view, &components) ||
        !row_read(&pane->row, pane->result, view, minus_of(ui, pane), components,
                  pane_plane(pane, view), q))
        return false;
    pane->row.every = sees_every_key(pane->result->run, &pane->row);
    return true;
}

bool pane_marked_row(Ui *ui, Pane *pane)
{
    const Marks   *marks = &ui->compare.marks;
    int64_t        queries[MARGIN_QUERIES_MOST];
    int            count = pane_marked(ui, pane, queries);
    const View    *view;
    const Pattern *components;

    return count && row_source(pane, &view, &components) &&
           !view->found && /* what found a key has no mean */
           row_read_many(&pane->marked, pane->result, view, minus_of(ui, pane), components,
                         pane_plane(pane, view), queries, count, !marks->summed, marks->version);
}

const char *row_token(const Pane *pane, const View *view, int64_t index)
{
    const Input *input = pane->result->input;

    return !strcmp(view->rows, "query") && view_rows(view) == input->n && input->q_tokens &&
                   index >= 0 && index < input->n
               ? input->q_tokens[index]
               : NULL;
}

const char *col_token(const Pane *pane, const View *view, int64_t index)
{
    const Input *input = pane->result->input;

    return (!strcmp(view->cols, "key") || !strcmp(view->cols, "token")) &&
                   view_cols(view) == input->m && input->k_tokens && index >= 0 && index < input->m
               ? input->k_tokens[index]
               : NULL;
}

char *token_short(const char *token, int columns, char *text, size_t size)
{
    size_t length = strlen(token);

    snprintf(text, size, "%s", token);
    if (length < size && term_width(token) <= columns)
        return text;
    length = length + 4 < size ? length : size - 4;
    do {
        while (length > 0 && ((unsigned char)token[--length] & 0xC0) == 0x80)
            ;
        snprintf(text, size, "%.*s\xe2\x80\xa6", (int)length, token);
    } while (length > 0 && term_width(text) > columns);
    return text;
}

void bits_text(const View *view, uint8_t bits, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    if (bits == COMPONENT_OTHER && !view->other && !view->found && strcmp(view->cols, "key") != 0)
        return; /* of entries that are no pairs it says nothing */
    for (int bit = COMPONENT_WINDOW; bit <= COMPONENT_LAST && used < size; bit <<= 1)
        if (bits & bit)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "+" : "",
                                     cause_name(view, (uint8_t)bit));
}

void reason_text(const Row *row, uint8_t bits, char *text, size_t size)
{
    const View *view = row->view;

    if (row->every && bits == COMPONENT_OTHER && view && !view->other && !view->found)
        snprintf(text, size, "dense");
    else
        bits_text(view, bits, text, size);
}

/* "bucket 3"; the name of one that has one. */
static void describe_category(CellFacts *f, const View *view)
{
    char word[64];

    category_word(view, word, sizeof(word));
    if (f->value < 0)
        snprintf(f->text, sizeof(f->text), view->categories ? "none" : "no %.40s", word);
    else if (view->categories)
        snprintf(f->text, sizeof(f->text), "%s", view->categories[(int)f->value]);
    else
        snprintf(f->text, sizeof(f->text), "%.40s %.0f", word, f->value);
}

static void describe(CellFacts *f, const View *view, const Row *row, bool differs)
{
    char bits[64];

    if (row->view == view)
        reason_text(row, f->bits, bits, sizeof(bits));
    else
        bits_text(view, f->bits, bits, sizeof(bits));
    if (view->kind == VIEW_MEMBERSHIP && !differs)
        snprintf(f->text, sizeof(f->text), f->allowed ? "member" : "no member");
    else if (view->found && !f->allowed)
        snprintf(f->text, sizeof(f->text), "not of the %lld strongest",
                 (long long)view->found->keys);
    else if (view->found)
        snprintf(f->text, sizeof(f->text), f->bits == COMPONENT_OTHER ? "%s" : "found: %s", bits);
    else if (!f->allowed)
        snprintf(f->text, sizeof(f->text), differs ? "masked in both" : "masked");
    else if (differs)
        snprintf(f->text, sizeof(f->text), "\xce\x94 %+.4g to pane 1", f->value);
    else if (view->kind == VIEW_SCHEDULE && f->value == 0)
        snprintf(f->text, sizeof(f->text), "idle");
    else if (view->kind == VIEW_SCHEDULE)
        snprintf(f->text, sizeof(f->text), "%s of micro-batch %d",
                 f->value > 0 ? "forward" : "backward",
                 (int)schedule_category((float)f->value) / 2);
    else if (view->kind == VIEW_BUCKETS)
        describe_category(f, view);
    else if (!f->number)
        snprintf(f->text, sizeof(f->text), "allowed %s", bits);
    else if (view->kind == VIEW_COUNT)
        snprintf(f->text, sizeof(f->text), "count %.6g", f->value);
    else if (f->rank)
        snprintf(f->text, sizeof(f->text), "%.4g #%lld/%lld %s", f->value, (long long)f->rank,
                 (long long)f->of, bits);
    else
        snprintf(f->text, sizeof(f->text), "%.4g %s", f->value, bits);
}

/* A row too long to be read: the one cell. */
static double read_cell(Ui *ui, const Pane *pane, const View *view, int64_t q, int64_t k)
{
    const View *minus = minus_of(ui, pane);
    int64_t     plane = pane_plane(pane, view);
    float       value = 0, other = 0;

    view_read(view, plane, q, k, 1, 1, &value);
    if (minus)
        view_read(minus, plane < view_planes(minus) ? plane : view_planes(minus) - 1, q, k, 1, 1,
                  &other);
    return (double)value - (double)other;
}

static CellFacts reach_facts(const View *view, int64_t q, int64_t k)
{
    CellFacts f = { .known = true, .number = true };
    char      way[160];
    int       hops = reach_view_way(view, q, k, way, sizeof(way));

    f.allowed = hops >= 0;
    f.value = hops;
    snprintf(f.text, sizeof(f.text), "%s%.60s", hops > 0 ? REACHED_IN : "", way);
    return f;
}

CellFacts cell_facts(Ui *ui, Pane *pane, int64_t q, int64_t k)
{
    CellFacts      f = { 0 };
    const View    *view = pane->result ? pane_numbers(pane) : NULL;
    const View    *asked = compare_focus(ui) ? pane_view(compare_focus(ui)) : NULL;
    bool           differs = pane_differs(ui, pane);
    const RowCell *cell;

    /* The place is one of the focused pane: other axes have no such cell. */
    if (!view || !asked || !views_share_rows(view, asked) || !views_share_cols(view, asked) ||
        q < 0 || k < 0 || q >= view_rows(view) || k >= view_cols(view))
        return f;
    if (view->kind == VIEW_HOPS)
        return reach_facts(view, q, k);
    if (!derived_known(view, pane_plane(pane, view)))
        return f;
    f.known = true;
    f.number = view->kind != VIEW_PATTERN && view->kind != VIEW_COMPONENTS;
    if (!pane_row(ui, pane, q)) {
        f.value = read_cell(ui, pane, view, q, k);
        f.allowed = true;
        describe(&f, view, &pane->row, differs);
        return f;
    }
    cell = row_find(&pane->row, k);
    f.allowed = cell && (view->kind != VIEW_MEMBERSHIP || cell->value != 0);
    if (cell) {
        f.value = (double)cell->value;
        f.bits = cell->bits;
        f.of = pane->row.count;
        f.rank = view->kind == VIEW_WEIGHTS && !differs ? row_rank(&pane->row, k) : 0;
    }
    describe(&f, view, &pane->row, differs);
    return f;
}
