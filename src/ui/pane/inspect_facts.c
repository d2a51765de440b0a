/* inspect_facts.c -- what the inspector says of one cell. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/screen/compare.h"

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
        row = !strcmp(view->rows, "head") && pane->head < view_rows(view) ? pane->head : 0;
        plane = pane->head < view_planes(view) ? pane->head : 0;
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

/* Score, share of the output, exact attention: of the pane's own numbers, not of a difference. */
static void add_why(Ui *ui, const Pane *pane, int64_t q, int64_t k, Text *out)
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
    if (in->reader && cell_read(in->reader, pane->head, q, k, &why, NULL))
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

/* Where the numbers are from, unless that is the CPU for all panes: of a difference both. */
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

static void add_facts(Ui *ui, Pane *pane, int64_t q, int64_t k, Text *out)
{
    CellFacts   f = cell_facts(ui, pane, q, k);
    const View *view = pane_view(pane);
    const char *row = row_token(pane, view, q), *col = col_token(pane, view, k);
    bool        differs = pane_differs(ui, pane), pairs = !strcmp(view->cols, "key");
    char        bits[64];
    double      above = 0;

    if (ui->term->cols >= INSPECT_WIDE) /* else the title must do */
        text_addf(out, "%-10s %lld %s\n%-10s %lld %s\n", view->rows, (long long)q, row ? row : "",
                  view->cols, (long long)k, col ? col : "");
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
        add_why(ui, pane, q, k, out);
        add_categories(pane, q, k, out);
        return;
    }
    if (!f.allowed) {
        text_addf(out, "masked     this %s is not computed\n", pairs ? "pair" : "entry");
        if (pairs) {
            add_why(ui, pane, q, k, out);
            add_categories(pane, q, k, out);
        }
        return;
    }
    if (pane->row.view == pane_numbers(pane))
        reason_text(&pane->row, f.bits, bits, sizeof(bits));
    else
        bits_text(view, f.bits, bits, sizeof(bits));
    if (differs)
        text_addf(out, "difference %+.6g   %s minus pane 1\n", f.value, pane_numbers(pane)->name);
    else if (f.number && pane_numbers(pane)->kind == VIEW_WEIGHTS)
        text_addf(out, "weight     %.6g   log %.4g\n", f.value, log(f.value));
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
        add_why(ui, pane, q, k, out);
        add_categories(pane, q, k, out);
    }
}

void inspect_facts(Ui *ui, Pane *pane, int64_t q, int64_t k, Text *out)
{
    add_facts(ui, pane, q, k, out);
    add_place(ui, pane, out);
}
