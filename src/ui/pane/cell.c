/* cell.c -- what a pane knows about one cell. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/figure/picture.h"
#include "app/result/views.h"
#include "core/utf8.h"
#include "draw/text/unicode.h"
#include "ui/state/panes.h"

/* What the pane's numbers are a difference to; NULL: they are its own. */
static const View *minus_of(Ui *ui, const Pane *pane)
{
    return pane_differs(ui, pane) ? pane_numbers(&ui->compare.panes[0]) : NULL;
}

/* The view that rows are read from; false: not computed yet, and no key press waits for it. */
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

/* The query attends to every key, or to every key that causality allows. */
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
           !view->found && /* causes have no mean */
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

char *token_short(const char *label, int columns, char *text, size_t size)
{
    char   token[TOKEN_BYTES];
    size_t length;

    utf8_token(label, false, token, sizeof(token));
    length = strlen(token);
    snprintf(text, size, "%s", token);
    if (length < size && term_width(token) <= columns)
        return text;
    length = length + 4 < size ? length : size - 4;
    do {
        while (length > 0 && utf8_continues(token[--length]))
            ;
        snprintf(text, size, "%.*s\xe2\x80\xa6", (int)length, token);
    } while (length > 0 && term_width(text) > columns);
    return text;
}

static void bits_text(const View *view, uint8_t bits, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    if (view->shown) /* of cells that no cause allows: they were given up */
        return;
    if (bits == COMPONENT_OTHER && !view->other && !view->found && strcmp(view->cols, "key") != 0)
        return; /* only for pairs of query and key */
    for (int bit = COMPONENT_WINDOW; bit <= COMPONENT_LAST && used < size; bit <<= 1)
        if (bits & bit)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "+" : "",
                                     cause_name(view, (uint8_t)bit));
}

void reason_text(const Row *row, uint8_t bits, char *text, size_t size)
{
    const View *view = row->view;

    if (row->every && bits == COMPONENT_OTHER && view && !view->other && !view->found &&
        !view->shown)
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

static void describe_cell(CellFacts *f, const View *view, const Row *row, bool differs)
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
        snprintf(f->text, sizeof(f->text),
                 f->bits == COMPONENT_OTHER || !strcmp(bits, "found") ? "%s" : "found: %s", bits);
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

/* The row is too long to read: reads this cell only. */
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
    const View    *asked = panes_focus(ui) ? pane_view(panes_focus(ui)) : NULL;
    bool           differs = pane_differs(ui, pane);
    const RowCell *cell;

    /* Positions are the focused pane's; a view with other axes has no such cell. */
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
        describe_cell(&f, view, &pane->row, differs);
        return f;
    }
    cell = row_find(&pane->row, k);
    f.allowed = cell && (view->kind != VIEW_MEMBERSHIP || cell->value != 0);
    if (cell) {
        f.value = (double)cell->value;
        f.bits = cell->bits;
        f.of = row_weighed(&pane->row);
        f.rank = view->kind == VIEW_WEIGHTS && !differs && (cell->value > 0 || row_attends(view))
                     ? row_rank(&pane->row, k)
                     : 0;
    }
    describe_cell(&f, view, &pane->row, differs);
    return f;
}

/* Text of the inspector for one cell. */

/* "the same in round 1, 3 of 4": of a view with a row for each round. */
static void add_rounds(const View *view, int64_t plane, int64_t q, int64_t k, Text *out)
{
    Text    rounds = { 0 };
    int64_t count = view_rows(view), same = 0;

    for (int64_t row = 0; row < count; row++) {
        float a, b;

        view_read(view, plane, row, q, 1, 1, &a);
        view_read(view, plane, row, k, 1, 1, &b);
        if (a == b)
            text_addf(&rounds, "%s%lld", same++ ? ", " : "", (long long)row + 1);
    }
    if (same == 0 || same == count)
        text_addf(out, "%-10s the same in %s %lld rounds\n", view->name, same ? "all" : "none of",
                  (long long)count);
    else
        text_addf(out, "%-10s the same in round %s of %lld\n", view->name, text_str(&rounds),
                  (long long)count);
    text_free(&rounds);
}

/* Bucket or cluster of both tokens, where the mechanism has such a view. */
static void add_categories(const Pane *pane, int64_t q, int64_t k, Text *out)
{
    const Run *run = pane->result->run;

    for (int i = 0; i < run->view_count; i++) {
        const View *view = &run->views[i];
        float       a, b;
        int64_t     plane, row;

        if (view->kind != VIEW_BUCKETS || view_cols(view) <= q || view_cols(view) <= k ||
            run_view(run, view->name) != view)
            continue;
        row = !strcmp(view->rows, "head") && pane->spec.head < view_rows(view) ? pane->spec.head
                                                                               : 0;
        plane = pane->spec.head < view_planes(view) ? pane->spec.head : 0;
        if (!strcmp(view->rows, "round") && view_rows(view) > 1) {
            add_rounds(view, plane, q, k, out);
            continue;
        }
        view_read(view, plane, row, q, 1, 1, &a);
        view_read(view, plane, row, k, 1, 1, &b);
        text_addf(out, "%-10s q: %.0f  k: %.0f  %s\n", view->name, (double)a, (double)b,
                  a == b ? "same" : "not the same");
    }
}

/* The view has numbers of its own that are not the weights of the output. */
static bool has_other_numbers(const View *view)
{
    return view->kind != VIEW_PATTERN && view->kind != VIEW_COMPONENTS && !row_attends(view) &&
           strcmp(view->name, "weights") != 0;
}

/* Of keys that weigh the same the first are taken as the strongest: says so of one that was not. */
static void add_tie(const View *view, const CellFacts *f, const CellWhy *why, Text *out)
{
    if (view->found && !f->allowed && why->scored && why->exact_rank <= view->found->keys)
        text_addf(out, "tie        first %lld of equal keys are taken\n",
                  (long long)view->found->keys);
}

/* Score, share of the output, exact attention: of the pane's own numbers, not of a difference.
 * What the key adds is of the weights: a view of other numbers has no such lines. */
static void add_why(Ui *ui, const Pane *pane, int64_t q, int64_t k, const CellFacts *f, Text *out)
{
    Inspecting *in = &ui->inspecting;
    CellWhy     why;

    if (pane_differs(ui, pane))
        return;
    if (in->of != pane->result) {
        inspect_close(ui);
        in->reader = cell_reader_new(pane->result, NULL);
        in->of = pane->result;
    }
    if (!in->reader || !cell_read(in->reader, pane->spec.head, q, k, &why, NULL))
        return;
    if (has_other_numbers(pane_view(pane)))
        why.weighs = why.softmax = why.adds = false;
    add_tie(pane_view(pane), f, &why, out);
    if (why.evicted_after >= 0)
        text_addf(out, "evicted    after query %lld\n", (long long)why.evicted_after);
    cell_describe(&why, out);
}

void inspect_close(Ui *ui)
{
    cell_reader_free(ui->inspecting.reader);
    ui->inspecting.reader = NULL;
    ui->inspecting.of = NULL;
}

/* "expert 3   placed 5, dropped 1, capacity 6": the bars of the cell's row and column. */
static void add_load(const ViewLoad *load, const char *axis, int64_t plane, int64_t at, Text *out)
{
    int64_t over, used;

    if (!load)
        return;
    used = view_load(load, plane, at, &over);
    text_addf(out, "%s %lld: %s %lld", axis, (long long)at, load->used_name, (long long)used);
    if (load->over.data)
        text_addf(out, ", %s %lld", load->over_name, (long long)over);
    if (load->limit)
        text_addf(out, ", %s %lld", load->limit_name, (long long)load->limit);
    text_add(out, "\n");
}

/* " on cuda bf16", where the panes run in different places also " on cpu"; else nothing. */
static void place_words(const Ui *ui, const Pane *pane, Text *out)
{
    const Request *request = pane->result ? &pane->result->request : &pane->request;

    if (!request->ops && !panes_apart(ui))
        return;
    text_add(out, " on ");
    request_place(request, out);
}

void inspect_title(Ui *ui, const Pane *pane, int width, char *text, size_t size)
{
    Text place = { 0 };

    place_words(ui, pane, &place);
    for (int tight = 0; tight < 2; tight++) {
        snprintf(text, size, "%s%s%s \xc2\xb7 %s%s", pane->request.mechanism,
                 tight && place.length ? " " : "",
                 !tight ? text_str(&place) : place.length ? pane_place(pane) : "",
                 pane_numbers(pane)->name, pane_differs(ui, pane) ? " \xe2\x88\x92 pane 1" : "");
        if (term_width(text) <= width)
            break;
    }
    text_free(&place);
}

void inspect_place(const Ui *ui, const Pane *pane, char *text, size_t size)
{
    Text   place = { 0 };
    size_t used = strlen(text);

    place_words(ui, pane, &place);
    snprintf(text + used, size - used, "%s", text_str(&place));
    text_free(&place);
}

/* Where the numbers were computed, of a difference both; nothing if all panes ran on the CPU. */
static void add_place(Ui *ui, const Pane *pane, Text *out)
{
    const Pane *first = &ui->compare.panes[0];
    bool        differs = pane_differs(ui, pane) && first->result;

    if (!pane->result || (!pane->result->request.ops && !panes_apart(ui)))
        return;
    text_add(out, "computed   ");
    cell_place(pane->result, out);
    if (differs) {
        text_add(out, "; pane 1: ");
        cell_place(first->result, out);
    }
    text_add(out, "\n");
}

/* Its cells are the run's queries and keys.  Those of ETC's weights are not: tokens stand behind
 * the globals. */
static bool shows_pairs(const Pane *pane, const View *view)
{
    const Run *run = pane->result->run;

    return !strcmp(view->cols, "key") && view_rows(view) == run->n && view_cols(view) == run->m;
}

#define EXCLUDE_SELF "exclude_self"

/* A pair of a token with itself may be masked by a parameter: its own words say so. */
static void add_excluded(const Pane *pane, int64_t q, int64_t k, Text *out)
{
    const Run *run = pane->result->run;

    for (const Param *p = run->mechanism->params; q == k && p && p->name; p++) {
        Text value = { 0 };

        if (strcmp(p->name, EXCLUDE_SELF) != 0)
            continue;
        params_print(p, run->params, &value);
        if (!strcmp(text_str(&value), "true"))
            text_addf(out, "reason     %s: %s\n", p->name, p->help);
        text_free(&value);
    }
}

/* Weights have five digits: they are float32, and a sixth one would differ by CPU. */
static void add_weight(const View *view, double value, Text *out)
{
    text_addf(out, "%-10s %.5g", row_attends(view) ? "weight" : view->name, value);
    if (value > 0)
        text_addf(out, "   log %.4g", log(value));
    text_add(out, "\n");
}

static void add_tokens(const Pane *pane, int64_t q, int64_t k, Text *out)
{
    const View *view = pane_view(pane);
    const char *row = row_token(pane, view, q), *col = col_token(pane, view, k);
    char        row_text[TOKEN_BYTES] = "", col_text[TOKEN_BYTES] = "";

    if (row)
        utf8_token(row, false, row_text, sizeof(row_text));
    if (col)
        utf8_token(col, false, col_text, sizeof(col_text));
    text_addf(out, "%-10s %lld %s\n%-10s %lld %s\n", view->rows, (long long)q, row_text,
              view->cols, (long long)k, col_text);
}

/* A pair that is not computed has its reasons, an entry of another view has none. */
static void add_masked(Ui *ui, Pane *pane, int64_t q, int64_t k, const CellFacts *f, Text *out)
{
    bool pairs = shows_pairs(pane, pane_view(pane));

    text_addf(out, "masked     this %s is not computed\n", pairs ? "pair" : "entry");
    if (!pairs)
        return;
    add_excluded(pane, q, k, out);
    add_why(ui, pane, q, k, f, out);
    add_categories(pane, q, k, out);
}

static void add_facts(Ui *ui, Pane *pane, int64_t q, int64_t k, Text *out)
{
    CellFacts   f = cell_facts(ui, pane, q, k);
    const View *view = pane_view(pane);
    bool        differs = pane_differs(ui, pane), pairs = shows_pairs(pane, view);
    char        bits[64];
    double      above = 0;

    if (ui->term->cols >= INSPECT_WIDE) /* otherwise the title says it */
        add_tokens(pane, q, k, out);
    add_load(view->row_load, view->rows, pane_plane(pane, view), q, out);
    add_load(view->load, view->cols, pane_plane(pane, view), k, out);
    if (!f.known)
        return;
    if (pane_shows_reach(pane)) {
        text_addf(out, "%-10s %s\n", "reach", f.text);
        return;
    }
    if (pane_shows_missed(pane)) {
        text_addf(out, "%-10s %s\n", MISSED_VIEW, f.text);
        add_why(ui, pane, q, k, &f, out);
        add_categories(pane, q, k, out);
        return;
    }
    if (!f.allowed) {
        add_masked(ui, pane, q, k, &f, out);
        return;
    }
    if (pane->row.view == pane_numbers(pane))
        reason_text(&pane->row, f.bits, bits, sizeof(bits));
    else
        bits_text(view, f.bits, bits, sizeof(bits));
    if (differs)
        text_addf(out, "difference %+.6g   %s minus pane 1\n", f.value, pane_numbers(pane)->name);
    else if (f.number && pane_numbers(pane)->kind == VIEW_WEIGHTS)
        add_weight(pane_numbers(pane), f.value, out);
    else if (f.number && pane_numbers(pane)->categories)
        text_addf(out, "%-10s %s\n", pane_numbers(pane)->name, f.text);
    else if (f.number)
        text_addf(out, "%-10s %.6g\n", pane_numbers(pane)->name, f.value);
    for (int64_t c = 0; c < pane->row.count; c++)
        above += (double)pane->row.cells[c].value >= f.value ? (double)pane->row.cells[c].value : 0;
    if (f.rank)
        text_addf(out, "rank       %lld of %lld, cumulative %.4g\n", (long long)f.rank,
                  (long long)f.of, above);
    if (*bits)
        text_addf(out, "component  %s\n", bits);
    if (pairs) {
        add_why(ui, pane, q, k, &f, out);
        add_categories(pane, q, k, out);
    }
}

/* What the pane's frame has no room for: "! linformer has no causal form". */
static void add_lines(const Pane *pane, const Text *of, const char *mark, Text *out)
{
    const char *lines = text_str(of);
    Text        line = { 0 };

    while (result_head_warning(pane->result, pane->spec.head, &lines, &line))
        text_addf(out, "\n%s %s", mark, text_str(&line));
    text_free(&line);
}

void inspect_facts(Ui *ui, Pane *pane, int64_t q, int64_t k, Text *out)
{
    add_facts(ui, pane, q, k, out);
    add_place(ui, pane, out);
    add_lines(pane, &pane->result->run->warnings, "!", out);
    add_lines(pane, &pane->result->run->notes, "note:", out);
}
