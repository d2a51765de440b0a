/* keys.c -- see keys.h. */
#include <math.h>
#include <string.h>

#include "attn/mech/pattern/keys.h"
#include "attn/pattern/node.h"
#include "attn/run.h"
#include "attn/run/position.h"

static int64_t dilation_of(IndexList dilation, int64_t head)
{
    if (!dilation.is_list)
        return dilation.count;
    return dilation.items[dilation.count == 1 ? 0 : head];
}

void dilation_check(Run *r, IndexList dilation)
{
    const char *id = r->mechanism->id;

    if (dilation.is_list && dilation.count != 1 && dilation.count != r->h)
        run_fail(r, ERR_PARAM,
                 "%s: dilation lists %lld values for %lld heads; give one, or one per head", id,
                 (long long)dilation.count, (long long)r->h);
    for (int64_t t = 0; dilation.is_list && t < dilation.count; t++)
        if (dilation.items[t] < 1)
            run_fail(r, ERR_PARAM, "%s: dilation must be at least 1, got %lld", id,
                     (long long)dilation.items[t]);
}

#define FARTHEST (INT64_MAX / 4) /* no sequence is as long */

/* The reach is cut to the sequence before it is multiplied, so that no product overflows. */
static int64_t keys_reach_of(const Run *r, int64_t window, int64_t dilation)
{
    int64_t most = (r->n - 1) / dilation, k = window / 2;

    return k < most ? k : most;
}

/* The farthest distance, whatever the length. */
static int64_t farthest_of(int64_t window, int64_t dilation)
{
    int64_t k = window / 2;

    return k <= FARTHEST / dilation ? k * dilation : FARTHEST;
}

static Pattern *band_of(Run *r, PatternShape s, int64_t window, int64_t dilation)
{
    int64_t reach = farthest_of(window, dilation);

    return pattern_band(r->arena, s, -reach, reach, dilation,
                        dilation > 1 ? COMPONENT_STRIDED : COMPONENT_WINDOW);
}

void window_note_even(Run *r, int64_t window)
{
    if (window > 0 && window % 2 == 0 && r->spec.given &&
        assignments_find(r->spec.given, "window"))
        run_note(r, "window=%lld is even: half of it, %lld, is seen to each side, as with "
                 "window=%lld", (long long)window, (long long)window / 2, (long long)window + 1);
}

Pattern *dilated_window(Run *r, int64_t window, IndexList dilation)
{
    PatternShape s = { .heads = r->h, .n = r->n, .m = r->n };
    int64_t      kinds = dilation.is_list && dilation.count > 1 ? r->h : 1;
    Pattern    **bands = run_alloc(r, kinds, sizeof(*bands));

    if (run_failed(r))
        return NULL;
    for (int64_t head = 0; head < kinds; head++)
        bands[head] = band_of(r, s, window, dilation_of(dilation, head));
    return pattern_by_head(r->arena, s, bands, kinds);
}

int64_t dilated_window_span(const Run *r, int64_t window, IndexList dilation)
{
    int64_t span = 1;

    for (int64_t head = 0; head < r->h; head++) {
        int64_t delta = dilation_of(dilation, head);

        span = max_i64(span, farthest_of(window, delta) + 1);
    }
    return span;
}

double dilated_window_cells(const Run *r, int64_t window, IndexList dilation)
{
    double cells = 0, n = (double)r->n;

    for (int64_t head = 0; head < r->h; head++) {
        int64_t delta = dilation_of(dilation, head);
        double  k = (double)keys_reach_of(r, window, delta);
        double  side = k * n - (double)delta * k * (k + 1) / 2;

        cells += n + (r->causal ? 1 : 2) * side;
    }
    return cells;
}

/* ---- extra tokens --------------------------------------------------------- */

Tensor extra_tokens_given(Run *r, const char *name, Tensor given, Tensor ordinary)
{
    int64_t shape[3] = { r->h, ordinary.shape[1], ordinary.shape[2] };

    return given.data ? run_param_given(r, name, given, DT_F32, 3, shape) : ordinary;
}

Tensor extra_tokens_stack(Run *r, Tensor extra, Tensor tokens)
{
    int64_t g = extra.shape[1], n = tokens.shape[1];
    Tensor  out = run_tensor3(r, DT_F32, r->h, g + n, tokens.shape[2]);

    if (run_failed(r))
        return out;
    if (g > 0)
        op_entries(r, extra, ENTRY_CAST, 0, tensor_rows(out, 0, g));
    op_entries(r, tokens, ENTRY_CAST, 0, tensor_rows(out, g, n));
    return out;
}

/* Rows [from, from + count) of every head of all [h,N,w]. */
static Tensor extra_rows(Run *r, Tensor all, int64_t from, int64_t count)
{
    Tensor out = run_tensor3(r, DT_F32, r->h, count, all.shape[2]);

    if (!run_failed(r))
        op_entries(r, tensor_rows(all, from, count), ENTRY_CAST, 0, out);
    return out;
}

void extra_tokens_check(Run *r, const char *form)
{
    const Position *position = r->spec.position;

    if (position && position->class_ == POSITION_BIAS)
        run_fail(r, ERR_USAGE,
                 "position=%s is not supported by %s with %s: the extra tokens have no "
                 "position; sinusoidal and rope are",
                 position->id, r->mechanism->id, form);
}

void extra_tokens_prepend(Run *r, AttendInput *in, Tensor q, Tensor k, Tensor v)
{
    AttendInput tokens = *in;
    bool        moved = r->spec.position && run_wants_views(r); /* what position_bias shows */

    in->q = extra_tokens_stack(r, q, tokens.q);
    in->k = extra_tokens_stack(r, k, tokens.k);
    in->v = extra_tokens_stack(r, v, tokens.v);
    in->raw_q = moved ? extra_tokens_stack(r, q, tokens.raw_q) : in->q;
    in->raw_k = moved ? extra_tokens_stack(r, k, tokens.raw_k) : in->k;
}

Pattern *extra_tokens_cells(Run *r, int64_t g, Pattern *tokens)
{
    int64_t      total = g + r->n;
    PatternShape s = { .heads = r->h, .n = total, .m = total };
    uint8_t     *flags = run_alloc(r, total, 1);
    Pattern     *cells;

    if (!flags)
        return NULL;
    memset(flags, 0, (size_t)total);
    memset(flags, 1, (size_t)g);
    cells =
        pattern_union(r->arena, pattern_rows(r->arena, s, flags), pattern_cols(r->arena, s, flags));
    return pattern_union(r->arena, cells, pattern_offset(r->arena, s, g, g, tokens));
}

void extra_tokens_split(Run *r, Tensor all, int64_t g, const char *view, const char *rows)
{
    r->out = extra_rows(r, all, g, r->n);
    if (run_wants_views(r))
        view_tensor(r, view, VIEW_VECTORS, extra_rows(r, all, 0, g), rows, "value");
}

/* ---- slots ------------------------------------------------------------------ */

static int64_t keys_floor_div(int64_t a, int64_t b) /* b > 0 */
{
    return a / b - (a % b < 0);
}

int64_t slots_count(const Slots *s)
{
    return s->lead + s->ranges * s->per;
}

/* The range of a slot past the lead. */
static int64_t slots_range(const Slots *s, int64_t slot)
{
    return (slot - s->lead) / s->per;
}

int64_t slots_start(const Slots *s, int64_t slot)
{
    return slot < s->lead ? slot : slots_range(s, slot) * s->stride;
}

int64_t slots_end(const Slots *s, int64_t slot)
{
    return slot < s->lead ? slot + 1 : min_i64(slots_start(s, slot) + s->size, s->n);
}

int64_t slots_tokens(const Slots *s)
{
    int64_t sum = 0;

    for (int64_t c = 0; c < s->ranges; c++)
        sum += min_i64(s->size, s->n - c * s->stride);
    return sum;
}

/* ---- pooling ----------------------------------------------------------------- */

/* The largest token of each range. */
static void take_largest(Run *r, const Slots *s, Tensor x, Tensor y)
{
    ArenaMark mark = arena_mark(r->arena);
    int32_t  *first = run_alloc(r, 2 * s->ranges, sizeof(*first));

    for (int64_t c = 0; c < s->ranges && !run_failed(r); c++) {
        first[c] = (int32_t)(c * s->stride);
        first[s->ranges + c] = (int32_t)min_i64(c * s->stride + s->size, s->n);
    }
    op_pool_windows(r, &(PoolWindows){ .x = x, .first = first, .kind = WINDOW_MAX,
                                       .end = run_failed(r) ? NULL : first + s->ranges }, y);
    arena_release(r->arena, mark);
}

Tensor slots_pool(Run *r, const Slots *s, Tensor x, Tensor share)
{
    Tensor y = run_tensor3(r, DT_F32, r->h, s->ranges, x.shape[2]);

    if (share.data)
        op_tap_sums(r, &(TapSums){ .x = x, .taps = share, .groups = 1, .step = s->stride }, y);
    else
        take_largest(r, s, x, y);
    return y;
}

/* ---- patterns ---------------------------------------------------------------- */

static const Slots *keys_slots_of(const Pattern *p)
{
    return p->table;
}

static Pattern *slots_node(Arena *a, PatternShape shape, PatternRowFn row, const Slots *s,
                           uint8_t bits)
{
    Pattern *p = pattern_node(a, shape, row, bits);
    Slots   *kept = arena_alloc(a, 1, sizeof(*kept));

    if (!p || !kept)
        return NULL;
    *kept = *s;
    p->table = kept;
    return p;
}

/* The bounds take c stride + size - 1 as the last token of range c, though a range is cut at n - 1.
 * For a cut range neither lies before i, so `first` is the same; in a causal run only the last row
 * sees it, hence the special case. */
static void row_near(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const Slots *s = keys_slots_of(p);
    int64_t      first = keys_floor_div(i - p->a - s->size + s->stride, s->stride);
    int64_t      end = keys_floor_div(i + p->a, s->stride) + 1;

    (void)head;
    if (p->b && i < s->n - 1)
        end = min_i64(end, keys_floor_div(i + 1 - s->size, s->stride) + 1);
    runs_push_range(row, first, end, s->ranges, p->bits);
}

Pattern *slots_near(Arena *a, PatternShape shape, const Slots *s, int64_t reach, bool causal)
{
    Pattern *p = slots_node(a, shape, row_near, s, COMPONENT_OTHER);

    if (p) {
        p->a = min_i64(reach, s->n);
        p->b = causal;
    }
    return p;
}

static void row_before(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const Slots *s = keys_slots_of(p);

    (void)head;
    runs_push_range(row, 0, s->lead + min_i64(i / s->stride, s->ranges) * s->per, p->shape.m,
                    p->bits);
}

Pattern *slots_before(Arena *a, PatternShape shape, const Slots *s)
{
    return slots_node(a, shape, row_before, s, COMPONENT_OTHER);
}

/* Ranges first..end-1: one interval where they touch; else intervals or strided runs, whichever are
 * fewer. */
static void push_ranges(const Slots *s, PatternRow *row, int64_t first, int64_t end, uint8_t bits)
{
    if (end > first && s->size >= s->stride) {
        runs_push_range(row, first * s->stride, (end - 1) * s->stride + s->size, s->n, bits);
        return;
    }
    if (end - first <= s->size) {
        for (int64_t c = first; c < end; c++)
            runs_push_range(row, c * s->stride, c * s->stride + s->size, s->n, bits);
        return;
    }
    for (int64_t at = 0; at < s->size; at++) {
        int64_t start = first * s->stride + at;
        int64_t fit = start < s->n ? (s->n - 1 - start) / s->stride + 1 : 0;

        runs_push(row, start, min_i64(end - first, fit), s->stride, bits);
    }
}

/* Unites the tokens of slots first..end-1 with the row's disjoint runs from run x on. */
static void add_tokens(const Slots *s, PatternRow *row, int64_t x, int64_t first, int64_t end,
                       uint8_t bits)
{
    int64_t y = row->count;

    runs_push_range(row, first, end, s->lead, bits);
    runs_union(row, x, y);
    if (end <= s->lead)
        return;
    y = row->count;
    push_ranges(s, row, slots_range(s, max_i64(first, s->lead)), slots_range(s, end - 1) + 1, bits);
    runs_union(row, x, y);
}

static void row_behind(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t    x = row->count;
    PatternRow seen = { 0 };

    p->x->row(p->x, head, i, &seen);
    for (int64_t r = 0; r < seen.count; r++) {
        const PatternRun *run = &seen.runs[r];
        int64_t           step = run->step, count = run->count;

        if (step == 1)
            add_tokens(keys_slots_of(p), row, x, run->start, run->start + count, p->bits);
        for (int64_t t = 0; step > 1 && t < count; t++)
            add_tokens(keys_slots_of(p), row, x, run->start + t * step, run->start + t * step + 1,
                       p->bits);
    }
    row->failed |= seen.failed;
    pattern_row_free(&seen);
}

Pattern *slots_behind(Arena *a, PatternShape shape, const Slots *s, Pattern *seen, uint8_t bits)
{
    Pattern *p = seen ? slots_node(a, shape, row_behind, s, bits) : NULL;

    if (p) {
        p->x = seen;
        p->per_head = seen->per_head;
    }
    return p;
}

static void row_members(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const Slots *s = keys_slots_of(p);

    (void)head;
    runs_push_range(row, slots_start(s, i), slots_end(s, i), s->n, p->bits);
}

Pattern *slots_members(Arena *a, PatternShape shape, const Slots *s)
{
    return slots_node(a, shape, row_members, s, COMPONENT_OTHER);
}

/* Reading attention to slots as attention to tokens; see keys.h.
 *
 * A piece of a row costs the scores of the slots whose ranges it touches and one
 * product for each token under each of them; nothing is kept between pieces.
 */

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

static void keys_read_part(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
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
    view = view_reader(r, weights, VIEW_WEIGHTS, DT_F32, keys_read_part, kept, part->seen);
    if (view)
        view->cols = cols;
}

/* ---- shares ------------------------------------------------------------------ */

static const float *shares_of(const SlotAttention *a, int64_t head)
{
    return tensor_head(&a->share, head, a->heads);
}

/* Shares of the tokens in a slot; a lead slot is its token, with share 1. */
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

typedef struct Piece { /* a part of one row that a view reads */
    const SlotAttention *a;
    int64_t              head, i;
    PatternRun           asked;
    const float         *share; /* of the head */
    float               *out;
} Piece;

static int64_t keys_last_of(PatternRun run)
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

/* Keys of both runs.  Most pieces have step 1: then the result is an interval. */
static PatternRun keys_clipped(PatternRun range, PatternRun asked)
{
    int64_t end = range.start + range.count, past = asked.start + asked.count;

    if (asked.step != 1)
        return runs_common(range, asked);
    range.start = range.start > asked.start ? range.start : asked.start;
    range.count = (end < past ? end : past) - range.start;
    return range;
}

static void keys_spread(const Piece *piece, int64_t slot, float weight)
{
    const Slots *s = &piece->a->slots;
    PatternRun   asked = piece->asked;
    int64_t      first = slots_start(s, slot), row = slot - s->lead;
    PatternRun   tokens = keys_clipped((PatternRun){ first, slots_end(s, slot) - first, 1, 0 },
                                       asked);
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
            keys_spread(piece, some.start + c * some.step, weight[c]);
    }
}

/* Slots past the lead whose ranges can hold a token of the piece. */
static PatternRun touched(const Slots *s, PatternRun asked)
{
    int64_t past = asked.start - s->size + 1, first = past > 0 ? (past - 1) / s->stride + 1 : 0;
    int64_t end = keys_last_of(asked) / s->stride + 1;

    end = end < s->ranges ? end : s->ranges;
    return (PatternRun){ s->lead + first * s->per, end > first ? (end - first) * s->per : 0, 1, 0 };
}

static void keys_add_row(const Piece *piece, const KeyPart *part, PatternRow *row)
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
    keys_add_row(&piece, &a->on_tokens, &row);
    keys_add_row(&piece, &a->on_slots, &row);
    pattern_row_free(&row);
}

void view_slot_weights(Run *r, const SlotAttention *a, const Pattern *cells)
{
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, read_both, a, cells);
}
