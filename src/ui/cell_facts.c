/* cell_facts.c -- what a pane knows about one cell. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/compare.h"

bool pane_row(Pane *pane, int64_t q)
{
    const View *view = pane->result ? pane_weights(pane) : NULL;
    const View *components;

    if (!view)
        return false;
    components = run_view(pane->result->run, "components");
    return row_read(&pane->row, pane->result, view, components ? components->support : NULL,
                    pane_plane(pane, view), q);
}

const char *token_of(const Pane *pane, bool key, int64_t index)
{
    const Input *input = pane->result ? pane->result->input : NULL;

    if (!input || index < 0 || index >= (key ? input->m : input->n))
        return NULL;
    if (key)
        return input->k_tokens ? input->k_tokens[index] : NULL;
    return input->q_tokens ? input->q_tokens[index] : NULL;
}

void bits_text(uint8_t bits, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int bit = COMPONENT_WINDOW; bit <= COMPONENT_LAST && used < size; bit <<= 1)
        if (bits & bit)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "+" : "",
                                     component_name((uint8_t)bit));
}

static bool same_axes(const View *view, const Pane *pane)
{
    const View *weights = pane_weights(pane);

    return weights && view_rows(weights) == view_rows(view) &&
           view_cols(weights) == view_cols(view);
}

static void describe(CellFacts *f, const View *view)
{
    char bits[64];

    bits_text(f->bits, bits, sizeof(bits));
    if (!f->allowed)
        snprintf(f->text, sizeof(f->text), "masked");
    else if (view->kind == VIEW_BUCKETS)
        snprintf(f->text, sizeof(f->text), "category %.0f", f->value);
    else if (!f->number)
        snprintf(f->text, sizeof(f->text), "allowed %s", bits);
    else if (f->rank)
        snprintf(f->text, sizeof(f->text), "%.4g #%lld/%lld %s", f->value, (long long)f->rank,
                 (long long)f->of, bits);
    else
        snprintf(f->text, sizeof(f->text), "%.4g %s", f->value, bits);
}

CellFacts cell_facts(Pane *pane, int64_t q, int64_t k)
{
    CellFacts      f = { 0 };
    const View    *view = pane->result ? pane_weights(pane) : NULL;
    const RowCell *cell;
    float          value = 0;

    if (!view || !same_axes(view, pane) || q < 0 || k < 0 || q >= view_rows(view) ||
        k >= view_cols(view))
        return f;
    f.known = true;
    f.number = view->kind != VIEW_PATTERN && view->kind != VIEW_COMPONENTS;
    if (!pane_row(pane, q)) {
        view_read(view, pane_plane(pane, view), q, k, 1, 1, &value);
        f.value = (double)value;
        f.allowed = true;
        describe(&f, view);
        return f;
    }
    cell = row_find(&pane->row, k);
    f.allowed = cell && (view->kind != VIEW_MEMBERSHIP || cell->value != 0);
    if (cell) {
        f.value = (double)cell->value;
        f.bits = cell->bits;
        f.of = pane->row.count;
        f.rank = f.number && view->kind != VIEW_BUCKETS ? row_rank(&pane->row, k) : 0;
    }
    describe(&f, view);
    return f;
}

Pane *full_pane(Ui *ui)
{
    for (int i = 0; i < ui->compare.count; i++) {
        Pane *pane = &ui->compare.panes[i];

        if (pane->result && pane->result->run->mechanism->classes & CLASS_BASELINE)
            return pane;
    }
    return NULL;
}
