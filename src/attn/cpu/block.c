/* block.c -- the online softmax over a block of queries, and the tiles that go into it. */
#include <math.h>
#include <string.h>

#include "attn/cpu/attend.h"
#include "attn/cpu/cpu.h"
#include "attn/cpu/simd/kernel.h"

bool block_init(Block *b, Arena *arena, const Kernel *kernel, int64_t capacity, int64_t d,
                int64_t e)
{
    int64_t groups = capacity / TILE_ROWS, size = (int64_t)sizeof(float);

    *b = (Block){ .kernel = kernel, .d = d, .e = e, .ring = -1 };
    /* The extra lanes keep rows from falling on the same cache sets. */
    b->lds = STEP_PANELS * TILE_KEYS + LANES;
    b->lda = round_up_to(e, LANES);
    b->q = arena_alloc(arena, capacity, d * size);
    b->s = arena_alloc(arena, capacity, b->lds * size);
    b->acc = arena_alloc(arena, capacity, b->lda * size);
    b->top = arena_alloc(arena, capacity, LANES * size);
    b->max = arena_alloc(arena, capacity, size);
    b->sum = arena_alloc(arena, capacity, size);
    b->factor = arena_alloc(arena, capacity, size);
    b->lse = arena_alloc(arena, capacity, size);
    b->slots = arena_alloc(arena, groups, (int64_t)sizeof(*b->slots));
    b->panel = arena_alloc(arena, groups, STEP_PANELS * (int64_t)sizeof(*b->panel));
    b->span = arena_alloc(arena, groups, STEP_PANELS * (int64_t)sizeof(*b->span));
    return b->q && b->s && b->acc && b->top && b->max && b->sum && b->factor && b->lse &&
           b->slots && b->panel && b->span;
}

void block_begin(Block *b, int64_t rows)
{
    int64_t padded = round_up_to(rows, TILE_ROWS);

    b->groups = padded / TILE_ROWS;
    memset(b->q + rows * b->d, 0, (size_t)((padded - rows) * b->d) * sizeof(float));
    memset(b->acc, 0, (size_t)(padded * b->lda) * sizeof(float));
    for (int64_t i = 0; i < padded; i++) {
        b->max[i] = -INFINITY;
        b->sum[i] = 0.0f;
    }
    for (int64_t i = 0; i < padded * LANES; i++)
        b->top[i] = -INFINITY;
    memset(b->slots, 0, (size_t)b->groups * sizeof(*b->slots));
}

void block_query(Block *b, int64_t row, const float *q, double scale)
{
    b->kernel->scale(q, b->d, (float)(scale * LOG2_E), b->q + row * b->d);
}

/* The columns, out of the first `keys`, that any row keeps. */
static Span span_of(const uint64_t *keep, int64_t keys)
{
    int32_t  to = (int32_t)min_i64(keys, TILE_KEYS);
    uint64_t any = 0;

    for (int r = 0; keep && r < TILE_ROWS; r++)
        any |= keep[r];
    return any ? (Span){ __builtin_ctzll(any), (int32_t)min_i64(to, 64 - __builtin_clzll(any)) }
               : (Span){ 0, to };
}

float *block_score(Block *b, int64_t g, int64_t panel_index, const float *panel, int64_t keys,
                   const uint64_t *keep)
{
    int    slot = b->slots[g]++;
    float *tile = block_tile(b, g, slot);
    Span   span = span_of(keep, keys);

    b->panel[g * STEP_PANELS + slot] = (int32_t)panel_index;
    b->span[g * STEP_PANELS + slot] = span;
    b->kernel->score(b->q + g * TILE_ROWS * b->d, b->d, panel, b->d, keep,
                     span.from / LANES * LANES, span.to, tile, b->lds,
                     b->top + g * TILE_ROWS * LANES);
    return tile;
}

/* Columns of the group's tiles, beside each other, that its softmax takes: whole vectors. */
static Span softmax_span(const Block *b, int64_t g)
{
    const Span *span = b->span + g * STEP_PANELS;
    int32_t     last = b->slots[g] - 1;

    return (Span){ span[0].from / LANES * LANES,
                   last * TILE_KEYS + (int32_t)round_up_to(span[last].to, LANES) };
}

void block_soften(Block *b, int64_t g, bool changed)
{
    int64_t row = g * TILE_ROWS;
    float  *top = b->top + row * LANES;
    Span    span = softmax_span(b, g);

    b->kernel->softmax(block_tile(b, g, 0) + span.from, b->lds, TILE_ROWS, span.to - span.from,
                       changed ? NULL : top, b->max + row, b->sum + row, b->factor + row);
    for (int x = 0; x < TILE_ROWS * LANES; x++)
        top[x] = -INFINITY;
}

/* Columns of the group's tiles that the softmax left out become 0, for those who read whole tiles;
 * between block_soften and block_mix. */
static void block_clear_rest(Block *b, int64_t g)
{
    Span   span = softmax_span(b, g);
    float *row = block_tile(b, g, 0);

    for (int r = 0; r < TILE_ROWS; r++, row += b->lds) {
        memset(row, 0, (size_t)span.from * sizeof(*row));
        memset(row + span.to, 0, (size_t)(b->slots[g] * TILE_KEYS - span.to) * sizeof(*row));
    }
}

/* Neighbouring panels are mixed together, from the first column that a row needs to the last. */
void block_mix(Block *b, int64_t g, const float *v, int64_t ldv)
{
    static const float ones[TILE_ROWS] = { 1, 1, 1, 1, 1, 1 };
    const int32_t     *panel = b->panel + g * STEP_PANELS;
    const Span        *span = b->span + g * STEP_PANELS;
    const float       *factor = b->factor + g * TILE_ROWS;

    for (int from = 0, to; from < b->slots[g]; from = to) {
        int64_t first = (panel[from] & b->ring) * TILE_KEYS + span[from].from, end;

        to = from + 1;
        while (to < b->slots[g] && panel[to] == panel[to - 1] + 1 && (panel[to] & b->ring))
            to++;
        end = (panel[to - 1] & b->ring) * TILE_KEYS + span[to - 1].to;
        b->kernel->mix(block_tile(b, g, from) + span[from].from, b->lds, v + first * ldv, ldv,
                       end - first, b->e, factor, b->acc + g * TILE_ROWS * b->lda, b->lda);
        factor = ones;
    }
    b->slots[g] = 0;
}

void block_end(Block *b, int64_t rows)
{
    b->kernel->log_sums(b->max, b->sum, rows, b->lse);
}

void block_row(const Block *b, int64_t row, float *out, float *lse)
{
    *lse = b->lse[row];
    if (*lse != -INFINITY)
        b->kernel->scale(b->acc + row * b->lda, b->e, 1.0f / b->sum[row], out);
    else
        memset(out, 0, (size_t)b->e * sizeof(*out));
}

/* A block of queries of one head: scores, softmax, mixing.
 *
 * Tiles that the plan names are taken STEP_PANELS panels at a time.  Cells of tiles that are
 * nearly empty are computed one by one at the end.
 */

#define ROWS_AHEAD 8 /* distance at which queries are prefetched */
#define KEYS_AHEAD 2 /* rows ahead whose keys are prefetched */

/* Where the worker keeps a panel. */
static int64_t near_place(const Job *job, int64_t head, int64_t panel)
{
    int64_t slice = head * job->in->k.shape[0] / job->h - job->slice;

    return slice * job->near_slots + (panel & (job->near_slots - 1));
}

/* The panel from the worker's slots, packed first unless its slot holds it. */
static const float *near_panel(const Job *job, Worker *w, int64_t head, int64_t panel)
{
    const Tensor *k = &job->in->k;
    int64_t       first = panel * TILE_KEYS, at = near_place(job, head, panel);
    const float  *keys = tensor_head(k, head, job->h);
    float        *packed = w->near + at * job->d * TILE_KEYS;

    if (w->near_panel[at] == panel)
        return packed;
    if (job->key_order.step > 1)
        attend_pack_phased(job, keys, tensor_head(&job->in->v, head, job->h), panel, packed,
                           w->near_values + at * TILE_KEYS * job->e);
    else
        pack_panel(keys + first * k->stride[1], k->stride[1],
                   min_i64(TILE_KEYS, job->m - first), job->d, packed);
    w->near_panel[at] = (int32_t)panel;
    return packed;
}

static const float *packed_panel(const Job *job, Worker *w, int64_t head, int64_t panel)
{
    int64_t slice = head * job->in->k.shape[0] / job->h - job->slice;

    return job->near_slots ? near_panel(job, w, head, panel)
                           : job->packed + (slice * job->panels + panel) * job->d * TILE_KEYS;
}

static const float *values_of(const Job *job, const Worker *w, int64_t head, int64_t *stride)
{
    int64_t slice = head * job->in->k.shape[0] / job->h - job->slice;

    *stride = job->key_order.step > 1 ? job->e : job->in->v.stride[1];
    if (job->key_order.step == 1)
        return tensor_head(&job->in->v, head, job->h);
    return job->near_slots ? w->near_values + near_place(job, head, 0) * TILE_KEYS * job->e
                           : job->values + slice * job->m * job->e;
}

static void score_panel(const Job *job, Worker *w, int64_t head, int64_t place)
{
    Plan        *plan = &w->plan;
    Block       *block = &w->block;
    int64_t      panel = plan->touched[place];
    const float *keys = NULL;

    for (int64_t g = 0; g < block->groups; g++) {
        TileKind kind = plan_kind(plan, place, g);
        float   *tile;

        if (kind != TILE_FULL && kind != TILE_MASKED)
            continue;
        if (!keys && job->has_terms)
            terms_panel(&w->terms, head, plan->first, plan->rows, panel);
        if (!keys)
            keys = packed_panel(job, w, head, panel);
        tile = block_score(block, g, panel, keys, job->m - panel * TILE_KEYS,
                           kind == TILE_FULL ? NULL : plan_keep(plan, panel, g));
        if (job->has_terms)
            terms_add_tile(&w->terms, plan->first + g * TILE_ROWS, panel, tile, block->lds);
    }
}

static void mix_group(const Job *job, Worker *w, int64_t head, int64_t g)
{
    Block       *block = &w->block;
    int32_t      slots = block->slots[g];
    int64_t      stride;
    const float *v = values_of(job, w, head, &stride);

    if (slots == 0)
        return;
    block_soften(block, g, job->has_terms);
    if (w->terms.value)
        block_clear_rest(block, g);
    block_mix(block, g, v, stride);
    if (w->terms.value)
        for (int x = 0; x < slots; x++)
            terms_mix_tile(&w->terms, head, w->plan.first + g * TILE_ROWS,
                           block->panel[g * STEP_PANELS + x], block_tile(block, g, x),
                           block->lds, block->acc + g * TILE_ROWS * block->lda, block->lda);
}

/* One step of the softmax of a row over the listed keys. */
static void take_list(const Job *job, Worker *w, int64_t head, int64_t row, const int32_t *keys,
                      int64_t count)
{
    Block       *b = &w->block;
    const float *k = tensor_head(&job->in->k, head, job->h);
    int64_t      i = w->plan.first + row, padded = round_up_to(count, TILE_KEYS);
    float       *acc = b->acc + row * b->lda;

    if (count == 0)
        return;
    job->kernel->dots(b->q + row * b->d, k, job->in->k.stride[1], keys, count, job->d, w->s);
    if (job->has_terms)
        terms_add_list(&w->terms, head, i, keys, count, w->s);
    for (int64_t x = count; x < padded; x++)
        w->s[x] = -INFINITY;
    job->kernel->softmax(w->s, padded, 1, padded, NULL, b->max + row, b->sum + row,
                         b->factor + row);
    job->kernel->mix_row(w->s, tensor_head(&job->in->v, head, job->h), job->in->v.stride[1],
                         keys, count, job->e, b->factor[row], acc);
    if (w->terms.value)
        terms_mix_list(&w->terms, head, i, keys, count, w->s, acc);
}

/* Prefetches the keys and values of a row below, where its cells move along with the row. */
static PREFETCHES void fetch_below(const Job *job, int64_t head, const int32_t *keys,
                                   int64_t count)
{
    const Tensor *k = &job->in->k, *v = &job->in->v;
    const float  *key = tensor_head(k, head, job->h), *value = tensor_head(v, head, job->h);

    for (int64_t x = 0; x < count; x++) {
        int64_t j = min_i64(keys[x] + KEYS_AHEAD * job->key_order.step, job->m - 1);

        cpu_fetch(key + j * k->stride[1], job->d);
        cpu_fetch(value + j * v->stride[1], job->e);
    }
}

/* The cells of a row in the `panels` TILE_SPARSE tiles of its group. */
static void take_sparse_cells(const Job *job, Worker *w, int64_t head, int64_t row,
                              int64_t panels)
{
    int64_t count = 0, group = row / TILE_ROWS;

    for (int64_t x = 0; x < panels; x++) {
        uint64_t bits = plan_keep(&w->plan, w->sparse[x], group)[row % TILE_ROWS];

        for (; bits; bits &= bits - 1) {
            if (count == LIST_KEYS) {
                take_list(job, w, head, row, w->list, count);
                count = 0;
            }
            w->list[count++] = (int32_t)phases_position(
                job->key_order, w->sparse[x] * TILE_KEYS + __builtin_ctzll(bits));
        }
    }
    fetch_below(job, head, w->list, count);
    take_list(job, w, head, row, w->list, count);
}

static void take_sparse_tiles(const Job *job, Worker *w, int64_t head)
{
    const Plan *plan = &w->plan;

    for (int64_t group = 0; group < plan->groups; group++) {
        int64_t panels = 0, end = min_i64(plan->rows, (group + 1) * TILE_ROWS);

        for (int64_t place = 0; place < plan->count; place++)
            if (plan_kind(plan, place, group) == TILE_SPARSE)
                w->sparse[panels++] = plan->touched[place];
        for (int64_t row = group * TILE_ROWS; row < end && panels; row++)
            take_sparse_cells(job, w, head, row, panels);
    }
}

bool attend_plan(const Job *job, Worker *w, int64_t head, int64_t first, int64_t rows)
{
    int64_t asked = job->per_head ? head : 0;

    if (w->plan.head == asked && w->plan.first == first)
        return true;
    return plan_make(&w->plan, job->pattern, asked, first, rows);
}

static int64_t result_at(const Job *job, int64_t head, int64_t place)
{
    return head * job->n + phases_position(job->row_order, place);
}

/* Joins the softmaxes of rows over the keys of this pass with those in out and lse. */
static void join_rows(const Job *job, Worker *w, int64_t head, int64_t first, int64_t rows)
{
    static const int32_t only[1] = { 0 };
    Block *b = &w->block;
    float *kept = b->top, *added = b->factor; /* of no use after the last step */

    for (int64_t i = 0; i < rows; i++)
        b->lse[i] = tensor_f32(&job->out->lse)[result_at(job, head, first + i)];
    job->kernel->join(b->max, b->sum, rows, b->lse, kept, added);
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = result_at(job, head, first + i);
        float  *out = tensor_f32(&job->out->out) + at * job->e, *acc = b->acc + i * b->lda;

        if (kept[i] == 1 && added[i] == 0)
            continue;
        job->kernel->mix_row(kept + i, out, job->e, only, 1, job->e, added[i], acc);
        memcpy(out, acc, (size_t)job->e * sizeof(*out));
        tensor_f32(&job->out->lse)[at] = b->lse[i];
    }
}

static void finish_rows(const Job *job, Worker *w, int64_t head, int64_t first, int64_t rows)
{
    Block *b = &w->block;

    if (job->join) {
        join_rows(job, w, head, first, rows);
        return;
    }
    block_end(b, rows);
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = result_at(job, head, first + i);

        block_row(b, i, tensor_f32(&job->out->out) + at * job->e,
                  tensor_f32(&job->out->lse) + at);
    }
}

static void take_listed(const Job *job, Worker *w, int64_t head, int64_t first, int64_t rows)
{
    const int64_t *offset = job->list_offset + first - job->list_first;

    for (int64_t i = 0; i < rows; i++)
        for (int64_t x = offset[i]; x < offset[i + 1]; x += LIST_KEYS)
            take_list(job, w, head, i, job->listed + x, min_i64(LIST_KEYS, offset[i + 1] - x));
    w->cells += (double)(offset[rows] - offset[0]);
}

/* The end of the step that begins at `place`: no two of its panels have their values in the same
 * slot. */
static int64_t step_end(const Worker *w, int64_t place)
{
    const int32_t *panel = w->plan.touched;
    int64_t        ring = w->block.ring, end = place + 1;

    while (end < min_i64(place + STEP_PANELS, w->plan.count)) {
        for (int64_t x = place; x < end; x++)
            if ((panel[x] & ring) == (panel[end] & ring))
                return end;
        end++;
    }
    return end;
}

static void take_tiles(const Job *job, Worker *w, int64_t head)
{
    Block *block = &w->block;

    block->ring = job->near_slots && job->key_order.step > 1 ? job->near_slots - 1 : -1;
    for (int64_t place = 0, end; place < w->plan.count; place = end) {
        end = step_end(w, place);
        for (int64_t x = place; x < end; x++)
            score_panel(job, w, head, x);
        for (int64_t g = 0; g < block->groups; g++)
            mix_group(job, w, head, g);
    }
    if (w->plan.sparse)
        take_sparse_tiles(job, w, head);
    w->cells += w->plan.cells;
}

void attend_block(const Job *job, Worker *w, int64_t head, int64_t first, int64_t rows)
{
    const AttendInput *in = job->in;
    const float       *q = tensor_head(&in->q, head, job->h);
    double             before = w->cells;

    block_begin(&w->block, rows);
    for (int64_t i = 0; i < rows; i++) {
        int64_t ahead = phases_position(job->row_order,
                                        min_i64(first + i + ROWS_AHEAD, job->n - 1));

        cpu_fetch(q + ahead * in->q.stride[1], job->d);
        block_query(&w->block, i,
                    q + phases_position(job->row_order, first + i) * in->q.stride[1], in->scale);
    }
    w->plan.first = first;
    if (job->scattered)
        take_listed(job, w, head, first, rows);
    else
        take_tiles(job, w, head);
    finish_rows(job, w, head, first, rows);
    run_ahead(job->run, (w->cells - before) * job->cell_flops);
}

void attend_planned(const Job *job, Worker *w, int64_t head, int64_t block)
{
    int64_t first = block * job->block_rows, rows = min_i64(job->block_rows, job->n - first);

    if (w->failed || cpu_cancelled(job->run))
        return;
    w->failed = !attend_plan(job, w, head, first, rows);
    if (!w->failed)
        attend_block(job, w, head, first, rows);
}
