/* chosen.c -- see chosen.h. */
#include "attn/mech/chosen/chosen.h"

#include "attn/run.h"

static Pattern *or_no_memory(Run *r, Pattern *cells)
{
    if (!cells)
        run_fail(r, ERR_NOMEM, "%s: not enough memory for the chosen cells", r->mechanism->id);
    return cells;
}

/* i32 [n,most]: the keys of each row, -1 behind them. */
static Tensor table_of(Run *r, const ChosenKeys *chosen)
{
    int64_t most = 1;
    Tensor  table;

    for (int64_t i = 0; i < chosen->n; i++)
        most = max_i64(most, chosen->start[i + 1] - chosen->start[i]);
    table = run_tensor2(r, DT_I32, chosen->n, most);
    for (int64_t at = 0; !run_failed(r) && at < chosen->n * most; at++) {
        int64_t place = chosen->start[at / most] + at % most;

        tensor_i32(&table)[at] = place < chosen->start[at / most + 1] ? chosen->key[place] : -1;
    }
    return table;
}

Pattern *chosen_cells(Run *r, const ChosenKeys *chosen)
{
    PatternShape s = { .heads = r->h, .n = r->n, .m = r->m, .q_offset = r->q_offset };
    Tensor       table;

    if (run_failed(r))
        return NULL;
    if (chosen->sets == r->h)
        return or_no_memory(r, pattern_lists(r->arena, s, chosen->start, chosen->key,
                                             COMPONENT_OTHER));
    table = table_of(r, chosen);
    return run_failed(r) ? NULL
                         : or_no_memory(r, pattern_table(r->arena, s, &table, COMPONENT_OTHER));
}

int64_t chosen_allowed(const Run *r, int64_t i)
{
    return r->causal ? max_i64(0, min_i64(r->m, i + r->q_offset + 1)) : r->m;
}

double chosen_count(const Run *r, int64_t most)
{
    double count = 0;

    for (int64_t i = 0; i < r->n; i++) {
        int64_t keys = chosen_allowed(r, i);

        count += (double)(most ? min_i64(most, keys) : keys);
    }
    return count;
}

/* Runs of the pages of row `at`, joined where they are neighbours; own: the page to tell from the
 * others, or -1.  Returns how many. */
static int64_t page_runs(const ChosenKeys *chosen, int64_t at, int64_t page, int64_t keys,
                         int64_t own, PatternRun *runs)
{
    int64_t count = 0;

    for (int64_t x = chosen->start[at]; x < chosen->start[at + 1]; x++) {
        int64_t first = chosen->key[x] * page, length = min_i64(page, keys - first);
        uint8_t bits = own < 0 || chosen->key[x] == own ? COMPONENT_BLOCK : COMPONENT_OTHER;

        if (count && runs[count - 1].start + runs[count - 1].count == first &&
            runs[count - 1].bits == bits)
            runs[count - 1].count += length;
        else
            runs[count++] = (PatternRun){ first, length, 1, bits };
    }
    return count;
}

Pattern *chosen_page_cells(Run *r, const ChosenKeys *chosen, int64_t page, bool with_own)
{
    PatternShape s = { .heads = r->h, .n = r->n, .m = r->m, .q_offset = r->q_offset };
    int64_t      rows = chosen->sets * chosen->n, used = 0;
    int64_t     *offset = run_alloc(r, rows + 1, sizeof(*offset));
    PatternRun  *runs = run_failed(r) ? NULL : run_alloc(r, chosen->start[rows], sizeof(*runs));

    for (int64_t at = 0; at < rows && runs; at++) {
        int64_t i = at % chosen->n;

        offset[at] = used;
        used += page_runs(chosen, at, page, chosen_allowed(r, i),
                          with_own ? (i + r->q_offset) / page : -1, runs + used);
    }
    if (!runs)
        return NULL;
    offset[rows] = used;
    return or_no_memory(r, pattern_stored(r->arena, s, offset, runs, true));
}

Pattern *chosen_pages(Run *r, const ChooseKeys *choice, const ChosenKeys *chosen)
{
    int64_t      rows = r->h * r->n, pages;
    PatternRun  *runs;
    PatternShape s;

    if (run_failed(r))
        return NULL;
    pages = choice->kind == CHOOSE_MEANS ? choice->mean.shape[1] : choice->hi.shape[1];
    s = (PatternShape){ .heads = r->h, .n = r->n, .m = pages };
    runs = run_alloc(r, max_i64(1, chosen->start[rows]), sizeof(*runs));
    for (int64_t at = 0; runs && at < rows; at++)
        for (int64_t x = chosen->start[at]; x < chosen->start[at + 1]; x++) {
            bool fixed = chosen->key[x] == choose_fixed(choice, at % r->n);

            runs[x] = (PatternRun){ chosen->key[x], 1, 1,
                                    fixed ? COMPONENT_GLOBAL : COMPONENT_WINDOW };
        }
    return runs ? or_no_memory(r, pattern_stored(r->arena, s, chosen->start, runs, true)) : NULL;
}

Pattern *chosen_candidates(Run *r, const ChooseKeys *choice, bool with_fixed)
{
    PatternShape s = { .heads = r->h, .n = r->n };
    int64_t     *offset = run_alloc(r, r->n + 1, sizeof(*offset));
    PatternRun  *runs = run_alloc(r, r->n, sizeof(*runs));

    if (!offset || !runs)
        return NULL;
    s.m = choice->kind == CHOOSE_MEANS ? choice->mean.shape[1] : choice->hi.shape[1];
    for (int64_t i = 0, used = 0; i <= r->n; i++) {
        int64_t seen = i < r->n ? choose_candidates(choice, i) : 0;

        offset[i] = used;
        if (!with_fixed && seen > 0 && choose_fixed(choice, i) == seen - 1)
            seen--;
        if (seen > 0)
            runs[used++] = (PatternRun){ 0, seen, 1, COMPONENT_GLOBAL };
    }
    return or_no_memory(r, pattern_stored(r->arena, s, offset, runs, false));
}
