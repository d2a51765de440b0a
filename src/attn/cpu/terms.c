/* terms.c -- what a position adds to scores (base-2 logarithms) and outputs, and the cap of
 * scores; see attend.h. */
#include "attn/cpu/attend.h"

#include "attn/cpu/cpu.h"
#include "attn/cpu/simd/kernel.h"

#include <string.h>

#define KEY_ROWS 66 /* TILE_KEYS rounded up to TILE_ROWS */

typedef struct Range {
    int64_t low, count;
} Range;

/* The range of table rows in entries [from, to) of an index. */
static Range index_range(const int32_t *index, int64_t from, int64_t to)
{
    int32_t low = index[from], high = index[from];

    for (int64_t x = from + 1; x < to; x++) {
        low = index[x] < low ? index[x] : low;
        high = index[x] > high ? index[x] : high;
    }
    return (Range){ .low = low, .count = (int64_t)high - low + 1 };
}

/* Entries of the index for rows [i, i + rows) and the keys of a panel. */
static Range tile_entries(const Terms *t, int64_t i, int64_t rows, int64_t panel)
{
    int64_t key = panel * TILE_KEYS, last = min_i64(key + TILE_KEYS, t->m) - 1;
    int64_t low = i - last + t->m - 1;
    int64_t high = min_i64(i + rows, t->n) - 1 - key + t->m - 1;

    return (Range){ .low = low, .count = high - low + 1 };
}

static Range tile_range(const Terms *t, const int32_t *index, int64_t i, int64_t rows,
                        int64_t panel)
{
    Range entries = tile_entries(t, i, rows, panel);

    return index_range(index, entries.low, entries.low + entries.count);
}

static int64_t index_span(const DistanceTerm *term, int64_t entries, int64_t window)
{
    int64_t span = 0;

    if (!tensor_given(&term->table))
        return 0;
    for (int64_t from = 0; from < entries; from += window) {
        int64_t to = min_i64(entries, from + 2 * window);

        span = max_i64(span, index_range(term->index, from, to).count);
    }
    return span;
}

int64_t terms_span(const AttendInput *in, int64_t n, int64_t m, int64_t rows)
{
    int64_t window = rows + TILE_KEYS, entries = n + m - 1;
    int64_t span = max_i64(index_span(&in->row, entries, window),
                           index_span(&in->col, entries, window));

    return round_up_to(max_i64(span, index_span(&in->value, entries, window)), TILE_KEYS) +
           TILE_KEYS;
}

bool terms_init(Terms *t, Arena *arena, const Kernel *kernel, const AttendInput *in,
                int64_t heads, int64_t span)
{
    int64_t size = (int64_t)sizeof(float);

    *t = (Terms){ .in = in, .kernel = kernel, .heads = heads, .n = in->q.shape[1],
                  .m = in->k.shape[1], .d = in->q.shape[2], .e = in->v.shape[2], .span = span };
    t->value = tensor_given(&in->value.table);
    t->row_panels = arena_alloc(arena, span, t->d * size);
    t->col_panels = arena_alloc(arena, span, t->d * size);
    t->row_dots = arena_alloc(arena, span, TILE_ROWS * size);
    t->col_dots = arena_alloc(arena, span, KEY_ROWS * size);
    t->bucket = arena_alloc(arena, span, TILE_ROWS * size);
    t->top = arena_zalloc(arena, TILE_ROWS * LANES, size);
    t->at = arena_alloc(arena, TERMS_LIST, (int64_t)sizeof(*t->at));
    t->dots = arena_alloc(arena, TERMS_LIST, size);
    return t->row_panels && t->col_panels && t->row_dots && t->col_dots && t->bucket && t->top &&
           t->at && t->dots;
}

static const float *table_of(const Terms *t, const DistanceTerm *term, int64_t head)
{
    return tensor_head(&term->table, head, t->heads);
}

static void pack_range(const Terms *t, const DistanceTerm *term, int64_t head, Range range,
                       float *panels)
{
    const float *table = table_of(t, term, head);

    for (int64_t x = 0; x < range.count; x += TILE_KEYS)
        pack_panel(table + (range.low + x) * t->d, t->d, min_i64(TILE_KEYS, range.count - x),
                   t->d, panels + x * t->d);
}

/* dots[r][low..low + count) of `rows` rows of side, padded to whole tiles. */
static void side_dots(const Terms *t, const float *side, int64_t rows, const float *panels,
                      Range range, int64_t packed_low, float *dots)
{
    int64_t first = (range.low - packed_low) / TILE_KEYS;
    int64_t last = (range.low - packed_low + range.count - 1) / TILE_KEYS;

    for (int64_t r = 0; r < rows; r += TILE_ROWS)
        for (int64_t p = first; p <= last; p++)
            t->kernel->score(side + r * t->d, t->d, panels + p * TILE_KEYS * t->d, t->d, NULL,
                             0, TILE_KEYS, dots + r * t->span + p * TILE_KEYS, t->span, t->top);
}

/* As side_dots, for any number of rows. */
static void side_dots_any(const Terms *t, const float *side, int64_t rows, const float *panels,
                          Range range, int64_t packed_low, float *dots)
{
    int64_t whole = rows / TILE_ROWS * TILE_ROWS;

    side_dots(t, side, whole, panels, range, packed_low, dots);
    for (int64_t r = whole; r < rows; r++)
        for (int64_t x = range.low - packed_low; x < range.low - packed_low + range.count; x++) {
            const float *column = panels + x / TILE_KEYS * TILE_KEYS * t->d + x % TILE_KEYS;
            float        sum = 0.0f;

            for (int64_t c = 0; c < t->d; c++)
                sum += side[r * t->d + c] * column[c * TILE_KEYS];
            dots[r * t->span + x] = sum;
        }
}

void terms_panel(Terms *t, int64_t head, int64_t first, int64_t rows, int64_t panel)
{
    const AttendInput *in = t->in;
    int64_t            key = panel * TILE_KEYS;

    t->head = head;
    if (tensor_given(&in->row.table)) {
        Range range = tile_range(t, in->row.index, first, rows, panel);

        t->row_low = range.low;
        pack_range(t, &in->row, head, range, t->row_panels);
    }
    if (tensor_given(&in->col.table)) {
        Range        range = tile_range(t, in->col.index, first, rows, panel);
        const float *side = tensor_head(&in->col.side, head, t->heads);

        t->col_low = range.low;
        pack_range(t, &in->col, head, range, t->col_panels);
        side_dots_any(t, side + key * t->d, min_i64(TILE_KEYS, t->m - key), t->col_panels, range,
                      range.low, t->col_dots);
    }
}

static void add_distance(const Terms *t, int64_t i, int64_t rows, int64_t panel, float *s,
                         int64_t lds)
{
    const float *distance = tensor_head(&t->in->distance, t->head, t->heads);
    int64_t      key = panel * TILE_KEYS, keys = min_i64(TILE_KEYS, t->m - key);

    t->kernel->add_turned(s, lds, rows, keys, distance + (i - key + t->m - 1), (float)LOG2_E);
}

static void add_row_term(Terms *t, int64_t i, int64_t rows, int64_t panel, float *s, int64_t lds)
{
    const DistanceTerm *term = &t->in->row;
    const float        *side = tensor_head(&term->side, t->head, t->heads);
    float               scale = (float)(t->in->scale * LOG2_E);
    int64_t             key = panel * TILE_KEYS, keys = min_i64(TILE_KEYS, t->m - key);
    Range               range = tile_range(t, term->index, i, rows, panel);

    side_dots_any(t, side + i * t->d, rows, t->row_panels, range, t->row_low, t->row_dots);
    for (int64_t r = 0; r < rows; r++) {
        const int32_t *index = term->index + (i + r - key + t->m - 1);
        const float   *dots = t->row_dots + r * t->span;

        for (int64_t j = 0; j < keys; j++)
            s[r * lds + j] += scale * dots[index[-j] - t->row_low];
    }
}

static void add_col_term(const Terms *t, int64_t i, int64_t rows, int64_t panel, float *s,
                         int64_t lds)
{
    float   scale = (float)(t->in->scale * LOG2_E);
    int64_t key = panel * TILE_KEYS, keys = min_i64(TILE_KEYS, t->m - key);

    for (int64_t r = 0; r < rows; r++) {
        const int32_t *index = t->in->col.index + (i + r - key + t->m - 1);

        for (int64_t j = 0; j < keys; j++)
            s[r * lds + j] += scale * t->col_dots[j * t->span + index[-j] - t->col_low];
    }
}

/* May be anything but +infinity for masked cells. */
static float cell_term(const Terms *t, int64_t head, int64_t i, int64_t j)
{
    return (float)(LOG2_E * t->in->cell_term(t->in->cell_context, head, i, j));
}

static void add_cell_term(const Terms *t, int64_t i, int64_t rows, int64_t panel, float *s,
                          int64_t lds)
{
    int64_t key = panel * TILE_KEYS, keys = min_i64(TILE_KEYS, t->m - key);

    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < keys; j++)
            s[r * lds + j] += cell_term(t, t->head, i + r, key + j);
}

static void cap(const Terms *t, float *s, int64_t count)
{
    if (t->in->softcap > 0)
        t->kernel->cap(s, count, (float)(t->in->softcap * LOG2_E));
}

void terms_add_tile(Terms *t, int64_t i, int64_t panel, float *s, int64_t lds)
{
    int64_t rows = min_i64(TILE_ROWS, t->n - i);
    bool    distance = tensor_given(&t->in->distance);

    if (distance && t->in->distance_capped)
        add_distance(t, i, rows, panel, s, lds);
    if (tensor_given(&t->in->row.table))
        add_row_term(t, i, rows, panel, s, lds);
    if (tensor_given(&t->in->col.table))
        add_col_term(t, i, rows, panel, s, lds);
    for (int64_t r = 0; r < rows; r++)
        cap(t, s + r * lds, TILE_KEYS);
    if (distance && !t->in->distance_capped)
        add_distance(t, i, rows, panel, s, lds);
    if (t->in->cell_term)
        add_cell_term(t, i, rows, panel, s, lds);
}

static void list_index(Terms *t, const DistanceTerm *term, int64_t i, const int32_t *keys,
                       int64_t count)
{
    for (int64_t x = 0; x < count; x++)
        t->at[x] = term->index[i - keys[x] + t->m - 1];
}

static void list_distance(const Terms *t, int64_t head, int64_t i, const int32_t *keys,
                          int64_t count, float *s)
{
    const float *distance = tensor_head(&t->in->distance, head, t->heads);

    for (int64_t x = 0; x < count; x++)
        s[x] += (float)LOG2_E * distance[i - keys[x] + t->m - 1];
}

void terms_add_list(Terms *t, int64_t head, int64_t i, const int32_t *keys, int64_t count,
                    float *s)
{
    const AttendInput *in = t->in;
    float              scale = (float)(in->scale * LOG2_E);
    bool               distance = tensor_given(&in->distance);

    if (distance && in->distance_capped)
        list_distance(t, head, i, keys, count, s);
    if (tensor_given(&in->row.table)) {
        const float *side = tensor_head(&in->row.side, head, t->heads);

        list_index(t, &in->row, i, keys, count);
        t->kernel->dots(side + i * t->d, table_of(t, &in->row, head), t->d, t->at, count, t->d,
                        t->dots);
        for (int64_t x = 0; x < count; x++)
            s[x] += scale * t->dots[x];
    }
    if (tensor_given(&in->col.table)) {
        const float *side = tensor_head(&in->col.side, head, t->heads);

        list_index(t, &in->col, i, keys, count);
        for (int64_t x = 0; x < count; x++) {
            t->kernel->dots(side + keys[x] * t->d, table_of(t, &in->col, head), t->d, t->at + x,
                            1, t->d, t->dots);
            s[x] += scale * t->dots[0];
        }
    }
    cap(t, s, count);
    if (distance && !in->distance_capped)
        list_distance(t, head, i, keys, count, s);
    for (int64_t x = 0; in->cell_term && x < count; x++)
        s[x] += cell_term(t, head, i, keys[x]);
}

void terms_mix_tile(Terms *t, int64_t head, int64_t i, int64_t panel, const float *w,
                    int64_t ldw, float *acc, int64_t lda)
{
    static const float  ones[TILE_ROWS] = { 1, 1, 1, 1, 1, 1 };
    const DistanceTerm *term = &t->in->value;
    int64_t             rows = min_i64(TILE_ROWS, t->n - i);
    int64_t             key = panel * TILE_KEYS, keys = min_i64(TILE_KEYS, t->m - key);
    Range               range = tile_range(t, term->index, i, rows, panel);

    for (int64_t r = 0; r < TILE_ROWS; r++)
        memset(t->bucket + r * t->span, 0, (size_t)range.count * sizeof(float));
    for (int64_t r = 0; r < rows; r++) {
        const int32_t *index = term->index + (i + r - key + t->m - 1);
        float         *bucket = t->bucket + r * t->span;

        for (int64_t j = 0; j < keys; j++)
            bucket[index[-j] - range.low] += w[r * ldw + j];
    }
    t->kernel->mix(t->bucket, t->span, table_of(t, term, head) + range.low * t->e, t->e,
                   range.count, t->e, ones, acc, lda);
}

void terms_mix_list(Terms *t, int64_t head, int64_t i, const int32_t *keys, int64_t count,
                    const float *w, float *acc)
{
    list_index(t, &t->in->value, i, keys, count);
    t->kernel->mix_row(w, table_of(t, &t->in->value, head), t->e, t->at, count, t->e, 1.0f, acc);
}
