/* slots_view.c -- reading attention to slots as attention to tokens; see slots.h.
 *
 * A piece of a row costs the scores of the slots whose ranges it touches and one
 * product for each token under each of them; nothing is kept between pieces.
 */
#include "attn/mech/pattern/slots.h"

#include <math.h>
#include <string.h>

#include "attn/pattern/runs.h"
#include "attn/run.h"

#define SCORES 256 /* weights computed at once */

/* Weights of keys start, start + step, ... of the part. */
static void part_weights(const KeyPart *part, int64_t heads, int64_t head, int64_t i,
                         PatternRun keys, float *out)
{
    const WeightRow row = { &part->in, &part->lse, &part->sums, heads, head, i, i, 0 };

    attend_weights_run(&row, part->first + keys.start, keys.count, keys.step, out);
}

typedef struct PartView {
    KeyPart part;
    int64_t heads;
} PartView;

static void read_part(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    const PartView *v = view->context;

    part_weights(&v->part, v->heads, head, i, (PatternRun){ start, count, step, 0 }, out);
}

void view_part(Run *r, const KeyPart *part, const char *cells, const char *weights,
               const char *cols)
{
    PartView *kept = run_wants_views(r) ? run_alloc(r, 1, sizeof(*kept)) : NULL;
    View     *view;

    if (!kept)
        return;
    *kept = (PartView){ .part = *part, .heads = r->h };
    view = view_cells(r, cells, part->seen);
    if (view)
        view->cols = cols;
    view = view_reader(r, weights, VIEW_WEIGHTS, DT_F32, read_part, kept, part->seen);
    if (view)
        view->cols = cols;
}

/* ---- shares ------------------------------------------------------------------ */

static const float *shares_of(const SlotAttention *a, int64_t head)
{
    return tensor_head(&a->share, head, a->heads);
}

/* Shares of the tokens of a slot; a lead slot is its token. */
static void read_shares(const View *view, int64_t head, int64_t slot, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    const SlotAttention *a = view->context;
    const Slots         *s = &a->slots;
    const float         *share = shares_of(a, head);
    int64_t              at = (slot - s->lead) * s->size + start;

    for (int64_t c = 0; c < count; c++)
        out[c] = slot < s->lead ? 1 : share[at + c * step - slots_start(s, slot)];
}

void view_shares(Run *r, const SlotAttention *a, const char *name, int rank, const char *rows)
{
    int64_t      slots = slots_count(&a->slots), shape[3] = { r->h, slots, a->slots.n };
    PatternShape s = { .heads = r->h, .n = slots, .m = a->slots.n };
    View        *view = view_add(r, name, VIEW_WEIGHTS, DT_F32, rank, shape + 3 - rank);

    if (!view)
        return;
    view->read = read_shares;
    view->context = a;
    view->support = slots_members(r->arena, s, &a->slots);
    view->rows = rows;
    view->cols = "token";
    if (!view->support)
        run_fail(r, ERR_NOMEM, "%s: not enough memory for a view", r->mechanism->id);
}

/* ---- both parts -------------------------------------------------------------- */

typedef struct Piece { /* of one row, being read */
    const SlotAttention *a;
    int64_t              head, i;
    PatternRun           asked;
    const float         *share; /* of the head */
    float               *out;
} Piece;

static int64_t last_of(PatternRun run)
{
    return run.start + (run.count - 1) * run.step;
}

static void add_token_weights(const Piece *piece, PatternRun keys)
{
    float weight[SCORES];

    for (int64_t done = 0; done < keys.count; done += SCORES) {
        int64_t    left = keys.count - done;
        PatternRun some = { keys.start + done * keys.step, left < SCORES ? left : SCORES,
                            keys.step, 0 };

        part_weights(&piece->a->on_tokens, piece->a->heads, piece->head, piece->i, some, weight);
        for (int64_t c = 0; c < some.count; c++)
            piece->out[(some.start + c * some.step - piece->asked.start) / piece->asked.step] +=
                weight[c];
    }
}

/* Most pieces ask for every token: their part of a range is an interval. */
static PatternRun clipped(PatternRun range, PatternRun asked)
{
    int64_t end = range.start + range.count, past = asked.start + asked.count;

    if (asked.step != 1)
        return runs_common(range, asked);
    range.start = range.start > asked.start ? range.start : asked.start;
    range.count = (end < past ? end : past) - range.start;
    return range;
}

static void spread(const Piece *piece, int64_t slot, float weight)
{
    const Slots *s = &piece->a->slots;
    PatternRun   asked = piece->asked;
    int64_t      first = slots_start(s, slot), row = slot - s->lead;
    PatternRun   tokens = clipped((PatternRun){ first, slots_end(s, slot) - first, 1, 0 }, asked);
    const float *share;
    float       *out;
    int64_t      move = tokens.step / asked.step;

    if (tokens.count <= 0)
        return;
    share = row < 0 ? NULL : piece->share + row * s->size + tokens.start - first;
    out = piece->out + (tokens.start - asked.start) / asked.step;
    if (!share)
        for (int64_t c = 0; c < tokens.count; c++)
            out[c * move] += weight;
    else if (tokens.step == 1)
        for (int64_t c = 0; c < tokens.count; c++)
            out[c] += weight * share[c];
    else
        for (int64_t c = 0; c < tokens.count; c++)
            out[c * move] += weight * share[c * tokens.step];
}

static void add_slot_weights(const Piece *piece, PatternRun slots)
{
    float weight[SCORES];

    for (int64_t done = 0; done < slots.count; done += SCORES) {
        int64_t    left = slots.count - done;
        PatternRun some = { slots.start + done * slots.step, left < SCORES ? left : SCORES,
                            slots.step, 0 };

        part_weights(&piece->a->on_slots, piece->a->heads, piece->head, piece->i, some, weight);
        for (int64_t c = 0; c < some.count; c++)
            spread(piece, some.start + c * some.step, weight[c]);
    }
}

/* Slots past the lead whose ranges can hold a token of the piece. */
static PatternRun touched(const Slots *s, PatternRun asked)
{
    int64_t past = asked.start - s->size + 1, first = past > 0 ? (past - 1) / s->stride + 1 : 0;
    int64_t end = last_of(asked) / s->stride + 1;

    end = end < s->ranges ? end : s->ranges;
    return (PatternRun){ s->lead + first * s->per, end > first ? (end - first) * s->per : 0, 1, 0 };
}

static void add_row(const Piece *piece, const KeyPart *part, PatternRow *row)
{
    const Slots *s = &piece->a->slots;
    PatternRun   lead = { 0, s->lead, 1, 0 }, near = touched(s, piece->asked);

    if (!part->seen)
        return;
    pattern_row(part->seen, piece->head, piece->i, row);
    for (int64_t r = 0; r < row->count && !row->failed; r++) {
        if (part == &piece->a->on_tokens) {
            add_token_weights(piece, runs_common(row->runs[r], piece->asked));
            continue;
        }
        if (lead.count)
            add_slot_weights(piece, runs_common(row->runs[r], lead));
        if (near.count)
            add_slot_weights(piece, runs_common(row->runs[r], near));
    }
}

static void read_both(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    const SlotAttention *a = view->context;
    Piece                piece = { a, head, i, { start, count, step, 0 }, shares_of(a, head), out };
    PatternRow           row = { 0 };

    memset(out, 0, (size_t)count * sizeof(*out));
    add_row(&piece, &a->on_tokens, &row);
    add_row(&piece, &a->on_slots, &row);
    pattern_row_free(&row);
}

void view_slot_weights(Run *r, const SlotAttention *a, const Pattern *cells)
{
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, read_both, a, cells);
}
