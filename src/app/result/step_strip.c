/* step_strip.c -- see step_strip.h. */
#include "app/result/step_strip.h"

#include <stdlib.h>
#include <string.h>

#include "app/result/order.h"

static int32_t *gathered(const int32_t *values, const int32_t *order, int64_t n)
{
    int32_t *out = malloc((size_t)n * sizeof(*out));

    for (int64_t i = 0; out && i < n; i++)
        out[i] = values[order ? order[i] : i];
    return out;
}

static const View *chunks_of_step(const Step *step)
{
    const View *chunks = run_view(step->result->run, "chunks");

    return chunks && chunks->step <= step->index && chunks->kind == VIEW_BUCKETS &&
                   chunks->tensor.data && chunks->tensor.dtype == DT_I32 &&
                   view_cols(chunks) == step->result->run->n
               ? chunks
               : NULL;
}

bool strip_read(const Step *step, int64_t head, Strip *out)
{
    const Run     *run = step->result->run;
    const View    *categories = step_categories(step), *chunks = chunks_of_step(step);
    const int32_t *order = step_order(step, head);

    int64_t        round = step_round(step);

    *out = (Strip){ .n = run->n };
    if (!categories)
        return false;
    out->original = gathered(round_line(run, categories, head, round), NULL, run->n);
    if (order)
        out->sorted = gathered(round_line(run, categories, head, round), order, run->n);
    if (order && chunks)
        out->chunk = gathered(round_line(run, chunks, head, round), order, run->n);
    return out->original != NULL;
}

void strip_free(Strip *strip)
{
    free(strip->original);
    free(strip->sorted);
    free(strip->chunk);
    *strip = (Strip){ 0 };
}

char strip_letter(int32_t category)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    return category < 0                              ? '.'
           : category < (int32_t)sizeof(letters) - 1 ? letters[category]
                                                     : '+';
}

char strip_border(const Strip *strip, int64_t slot)
{
    bool first = slot == 0 || strip->chunk[slot - 1] != strip->chunk[slot];
    bool last = slot + 1 == strip->n || strip->chunk[slot + 1] != strip->chunk[slot];

    return first && last ? '|' : first ? '[' : last ? ']' : '-';
}
