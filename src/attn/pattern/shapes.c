/* shapes.c -- the primitives of patterns; see pattern.h for each rule.
 *
 * Every row of every primitive is a short list of arithmetic runs.
 */
#include <string.h>

#include "attn/pattern/node.h"

static int64_t floor_div(int64_t a, int64_t b) /* b > 0 */
{
    return a / b - (a % b < 0);
}

static int64_t shapes_ceil_div(int64_t a, int64_t b)
{
    return -floor_div(-a, b);
}

#define FARTHEST (INT64_MAX / 4) /* no sequence is as long */

/* Clamps a reach to the size of the sequence, so that sums stay in range. */
static int64_t clamp_reach(int64_t value, PatternShape s)
{
    int64_t most = s.n + s.m;

    return value > most ? most : value < -most ? -most : value;
}

/* Keys of so many blocks, or pixels of lines. */
static int64_t keys_of(int64_t count, int64_t each)
{
    return count <= FARTHEST / each ? count * each : FARTHEST;
}

static Pattern *pattern_of_span(Pattern *p, int64_t span)
{
    p->span = span;
    return pattern_ruled(p, RULE_SPAN);
}

/* What its rule says, whatever the shape is. */
static Pattern *pattern_reaching(Pattern *p, int64_t far, int64_t apart)
{
    if (p) {
        p->far = far;
        p->apart = apart;
    }
    return p;
}

static Pattern *node_with(Arena *arena, PatternShape s, PatternRowFn row, uint8_t bits, int64_t a,
                          int64_t b, int64_t c)
{
    Pattern *p = pattern_node(arena, s, row, bits);

    if (p) {
        p->a = a;
        p->b = b;
        p->c = c;
    }
    return p;
}

static void row_full(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    (void)head, (void)i;
    runs_push_range(row, 0, p->shape.m, p->shape.m, p->bits);
}

Pattern *pattern_full(Arena *a, PatternShape s, uint8_t bits)
{
    return pattern_repeats(pattern_ruled(pattern_node(a, s, row_full, bits), RULE_ALL),
                           REPEATS_ALL);
}

static void row_none(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    (void)p, (void)head, (void)i, (void)row;
}

Pattern *pattern_none(Arena *a, PatternShape s)
{
    return pattern_repeats(pattern_ruled(pattern_node(a, s, row_none, 0), RULE_NONE),
                           REPEATS_ALL);
}

static void shapes_row_causal(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    (void)head;
    runs_push_range(row, 0, i + p->shape.q_offset + 1, p->shape.m, 0);
}

Pattern *pattern_causal(Arena *a, PatternShape s)
{
    return pattern_ruled(pattern_node(a, s, shapes_row_causal, 0), RULE_ALL);
}

/* Keys i + t, lo <= t <= hi, t a multiple of step. */
static void push_band(PatternRow *row, int64_t i, int64_t lo, int64_t hi, int64_t step, int64_t m,
                      uint8_t bits)
{
    int64_t first, last;

    if (lo < -i)
        lo = -i;
    if (hi > m - 1 - i)
        hi = m - 1 - i;
    if (lo > hi)
        return;
    first = shapes_ceil_div(lo, step);
    last = floor_div(hi, step);
    runs_push(row, i + first * step, last - first + 1, step, bits);
}

static void row_band(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    (void)head;
    push_band(row, i, p->a, p->b, p->c, p->shape.m, p->bits);
}

Pattern *pattern_band(Arena *a, PatternShape s, int64_t lo, int64_t hi, int64_t step,
                      uint8_t bits)
{
    Pattern *p = node_with(a, s, row_band, bits, clamp_reach(lo, s), clamp_reach(hi, s),
                           clamp_reach(step, s));

    return pattern_ruled(pattern_reaching(p, -lo, step), RULE_BAND);
}

static void row_distances(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const uint8_t *on = tensor_head(&p->tensor, head, p->shape.heads), *always = p->table;
    int64_t        m = p->shape.m, start = -1;

    if (always && always[i]) {
        runs_push_range(row, 0, m, m, 0);
        return;
    }
    for (int64_t j = 0; j <= m; j++) {
        bool in = j < m && (on[j < i ? i - j : j - i] || (always && always[j]));

        if (in && start < 0)
            start = j;
        if (in || start < 0)
            continue;
        runs_push(row, start, j - start, 1, 0);
        start = -1;
    }
}

Pattern *pattern_distances(Arena *a, PatternShape s, const Tensor *on, const uint8_t *always)
{
    Pattern *p = pattern_node(a, s, row_distances, 0);

    if (p) {
        p->tensor = *on;
        p->per_head = on->shape[0] > 1;
        p->table = always;
    }
    return p;
}

static void row_local(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t at = i / p->a * p->a;

    (void)head;
    runs_push_range(row, at - p->b, at + p->a + p->c, p->shape.m, p->bits);
}

Pattern *pattern_local(Arena *a, PatternShape s, int64_t b, int64_t left, int64_t right)
{
    Pattern *p = node_with(a, s, row_local, COMPONENT_BLOCK, clamp_reach(b, s),
                           clamp_reach(left, s), clamp_reach(right, s));
    int64_t  span = b < FARTHEST && left < FARTHEST ? b + left : FARTHEST;

    return p ? pattern_repeats(pattern_of_span(p, span), REPEATS_BLOCK) : NULL;
}

Pattern *pattern_chunk(Arena *a, PatternShape s, int64_t b, int64_t back, int64_t ahead)
{
    return pattern_local(a, s, b, keys_of(back, b), keys_of(ahead, b));
}

static int64_t shapes_share_of(const Pattern *p, int64_t i)
{
    return (int64_t)((__int128)i * p->a / p->shape.n);
}

/* The tokens of block `target` when n tokens make p->a blocks. */
static void shapes_push_share(const Pattern *p, int64_t target, PatternRow *row)
{
    int64_t n = p->shape.n, nb = p->a;

    runs_push_range(row, (int64_t)(((__int128)target * n + nb - 1) / nb),
                    (int64_t)(((__int128)(target + 1) * n + nb - 1) / nb), p->shape.m, p->bits);
}

static void row_shift(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t target = (shapes_share_of(p, i) + p->b) % p->a;

    (void)head;
    shapes_push_share(p, target < 0 ? target + p->a : target, row);
}

static void row_permuted(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const int32_t *table = tensor_head(&p->tensor, head, p->shape.heads);

    shapes_push_share(p, table[shapes_share_of(p, i)], row);
}

Pattern *pattern_permuted(Arena *a, PatternShape s, int64_t nb, const Tensor *table)
{
    Pattern *p = pattern_node(a, s, row_permuted, COMPONENT_BLOCK);

    if (p) {
        p->a = nb;
        p->tensor = *table;
        p->per_head = table->rank == 2 && table->shape[0] > 1;
    }
    return p;
}

Pattern *pattern_shift(Arena *a, PatternShape s, int64_t nb, int64_t shift)
{
    return node_with(a, s, row_shift, COMPONENT_BLOCK, nb, shift % nb, 0);
}

static void row_stride(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t start = i % p->a, m = p->shape.m;

    (void)head;
    if (start < m)
        runs_push(row, start, (m - 1 - start) / p->a + 1, p->a, p->bits);
}

Pattern *pattern_stride(Arena *a, PatternShape s, int64_t step)
{
    Pattern *p = node_with(a, s, row_stride, COMPONENT_STRIDED, clamp_reach(step, s), 0, 0);

    return pattern_ruled(pattern_reaching(p, 0, step), RULE_STRIDE);
}

/* c columns in every stride: c strided runs or one interval per period,
 * whichever are fewer. */
static void shapes_row_summary(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t stride = p->a, c = p->b, first = p->c, m = p->shape.m;

    (void)head, (void)i;
    if (c <= (m + stride - 1) / stride) {
        for (int64_t j = first; j < first + c && j < m; j++)
            runs_push(row, j, (m - 1 - j) / stride + 1, stride, p->bits);
        return;
    }
    for (int64_t at = first; at < m; at += stride)
        runs_push_range(row, at, at + c, m, p->bits);
}

Pattern *pattern_summary(Arena *a, PatternShape s, int64_t stride, int64_t c, int64_t v)
{
    Pattern *p = node_with(a, s, shapes_row_summary, COMPONENT_STRIDED, stride, c,
                           stride - (v + 1) * c);

    return pattern_repeats(pattern_ruled(p, RULE_PERIOD), REPEATS_ALL);
}

/* In increasing order, so that runs need no sorting. */
static void row_log_plain(const Pattern *p, int64_t i, PatternRow *row)
{
    int64_t local = p->a, m = p->shape.m, t = 1;

    while (local - 1 + 2 * t <= i)
        t *= 2;
    for (; t > 0; t /= 2)
        runs_push_range(row, i - local + 1 - t, i - local + 2 - t, m, p->bits);
    push_band(row, i, 1 - local, local - 1, 1, m, p->bits);
    for (t = 1; i + local - 1 + t < m; t *= 2)
        runs_push_range(row, i + local - 1 + t, i + local + t, m, p->bits);
}

/* Keys i - x - r L and i + x + r L, r >= 0, and i itself once. */
static void push_repeated(PatternRow *row, const Pattern *p, int64_t i, int64_t x)
{
    int64_t step = p->b, m = p->shape.m, right = x > 0 ? i + x : i + step;
    int64_t first = (i - x) % step, last = min_i64(i - x, m - 1);

    if (i - x >= 0 && first <= last)
        runs_push(row, first, (last - first) / step + 1, step, p->bits);
    if (right < m)
        runs_push(row, right, (m - 1 - right) / step + 1, step, p->bits);
}

/* As push_repeated, for x = 0 .. width - 1, width <= L: strided runs or one interval per
 * period, whichever are fewer. */
static void push_repeated_band(PatternRow *row, const Pattern *p, int64_t i, int64_t width)
{
    int64_t step = p->b, m = p->shape.m;

    if (2 * width <= m / step) {
        for (int64_t x = 0; x < width; x++)
            push_repeated(row, p, i, x);
        return;
    }
    for (int64_t at = i % step; at < i; at += step)
        runs_push_range(row, at - width + 1, at + 1, m, p->bits);
    runs_push_range(row, i - width + 1, i + width, m, p->bits);
    for (int64_t at = i + step; at < m; at += step)
        runs_push_range(row, at, at + width, m, p->bits);
}

/* Distances r L + x with x in D0, x <= L: by residues x < L, since x = L is residue 0, which
 * always occurs.  On one side different residues share no key, and the two sides share only i. */
static void row_log_repeat(const Pattern *p, int64_t i, PatternRow *row)
{
    int64_t local = p->a, restart = p->b;

    push_repeated_band(row, p, i, min_i64(local, restart));
    for (int64_t t = 1; local - 1 + t < restart; t *= 2)
        push_repeated(row, p, i, local - 1 + t);
}

static void row_log(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    (void)head;
    if (p->b > 0)
        row_log_repeat(p, i, row);
    else
        row_log_plain(p, i, row);
}

Pattern *pattern_log(Arena *a, PatternShape s, int64_t local, int64_t restart)
{
    int64_t  repeat = restart < max_i64(s.n, s.m) ? restart : 0; /* else no room to repeat */
    Pattern *p = node_with(a, s, row_log, COMPONENT_STRIDED, clamp_reach(local, s), repeat, 0);

    return pattern_ruled(pattern_reaching(p, local, 1), restart > 0 ? RULE_UNKNOWN : RULE_LOG);
}

/* ---- flags: rows and columns ------------------------------------------------ */

static void row_rows(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    (void)head;
    if (((const uint8_t *)p->table)[i])
        runs_push_range(row, 0, p->shape.m, p->shape.m, p->bits);
}

Pattern *pattern_rows(Arena *a, PatternShape s, const uint8_t *flags)
{
    Pattern *p = pattern_node(a, s, row_rows, COMPONENT_GLOBAL);
    uint8_t *copy = arena_alloc(a, s.n, 1);

    if (!p || !copy)
        return NULL;
    p->table = memcpy(copy, flags, (size_t)s.n);
    for (int64_t i = 0; i < s.n; i++)
        p->b = flags[i] ? i + 1 : p->b;
    return pattern_repeats(pattern_ruled(p, RULE_ROWS), REPEATS_FLAGS);
}

static void row_cols(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const PatternRun *runs = p->table;

    (void)head, (void)i;
    for (int64_t r = 0; r < p->a; r++)
        runs_push(row, runs[r].start, runs[r].count, 1, p->bits);
}

Pattern *pattern_cols(Arena *a, PatternShape s, const uint8_t *flags)
{
    Pattern    *p = pattern_node(a, s, row_cols, COMPONENT_GLOBAL);
    PatternRun *runs;
    int64_t     count = 0;

    for (int64_t j = 0; j < s.m; j++)
        count += flags[j] && (j == 0 || !flags[j - 1]);
    runs = arena_alloc(a, count, sizeof(*runs));
    if (!p || !runs)
        return NULL;
    p->table = runs;
    p->a = count;
    count = -1;
    for (int64_t j = 0; j < s.m; j++) {
        if (!flags[j])
            continue;
        if (j == 0 || !flags[j - 1])
            runs[++count] = (PatternRun){ .start = j, .step = 1 };
        runs[count].count++;
    }
    return pattern_repeats(pattern_ruled(p, RULE_COLUMNS), REPEATS_ALL);
}

Pattern *pattern_first_cols(Arena *a, PatternShape s, int64_t count)
{
    Pattern    *p = pattern_node(a, s, row_cols, COMPONENT_GLOBAL);
    PatternRun *run = arena_alloc(a, 1, sizeof(*run));

    if (!p || !run)
        return NULL;
    *run = (PatternRun){ .start = 0, .count = min_i64(count, s.m), .step = 1 };
    p->table = run;
    p->a = run->count > 0;
    return pattern_repeats(pattern_ruled(p, RULE_COLUMNS), REPEATS_ALL);
}

/* ---- stored rows and masks -------------------------------------------------- */

typedef struct StoredRows {
    const int64_t    *offset;
    const PatternRun *runs;
} StoredRows;

static void row_stored(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const StoredRows *stored = p->table;
    int64_t           at = (p->per_head ? head * p->shape.n : 0) + i;

    for (int64_t c = stored->offset[at]; c < stored->offset[at + 1]; c++) {
        PatternRun run = stored->runs[c];

        runs_push(row, run.start, run.count, run.step, run.bits);
    }
}

Pattern *pattern_stored(Arena *a, PatternShape s, const int64_t *offset, const PatternRun *runs,
                        bool per_head)
{
    StoredRows *stored = arena_alloc(a, 1, sizeof(*stored));
    Pattern    *p = stored ? pattern_node(a, s, row_stored, 0) : NULL;

    if (!p)
        return NULL;
    *stored = (StoredRows){ .offset = offset, .runs = runs };
    p->table = stored;
    p->per_head = per_head && s.heads > 1;
    return p;
}

static void shapes_row_mask(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const Tensor  *t = &p->tensor;
    int64_t        m = p->shape.m;
    const uint8_t *flags = (const uint8_t *)t->data +
                           ((t->rank == 3 ? head * t->shape[0] / p->shape.heads : 0) *
                                p->shape.n + i) * m;

    for (int64_t j = 0; j < m;) {
        int64_t end = j;

        while (end < m && flags[end])
            end++;
        runs_push_range(row, j, end, m, p->bits);
        for (j = end; j < m && !flags[j]; j++)
            ;
    }
}

Pattern *pattern_mask(Arena *a, PatternShape s, const Tensor *mask)
{
    Pattern *p = mask->data ? pattern_node(a, s, shapes_row_mask, COMPONENT_OTHER) : NULL;

    if (p) {
        p->tensor = *mask;
        p->per_head = mask->rank == 3 && mask->shape[0] > 1;
    }
    return p;
}

/* ---- images and rings ------------------------------------------------------- */

static void row_image(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t width = p->a, hq = p->b, wq = p->c;
    int64_t top = i / width / hq * hq, left = i % width / wq * wq;
    int64_t y0 = top - p->d > 0 ? top - p->d : 0, y1 = top + hq + p->f;
    int64_t x0 = left - p->e > 0 ? left - p->e : 0, x1 = min_i64(left + wq + p->e, width);
    int64_t x = row->count;

    (void)head;
    for (int64_t y = y0; y < y1 && y * width < p->shape.m; y++)
        runs_push_range(row, y * width + x0, y * width + x1, p->shape.m, p->bits);
    runs_tidy(row, x);
}

/* The farthest pixel is so many rows above, and so many columns to the left. */
static int64_t span_of_lines(int64_t width, int64_t rows, int64_t columns)
{
    return keys_of(rows, width) + min_i64(columns, width - 1) + 1;
}

Pattern *pattern_image(Arena *a, PatternShape s, int64_t width, int64_t hq, int64_t wq,
                       int64_t hm, int64_t wm, int64_t below)
{
    Pattern *p = node_with(a, s, row_image, COMPONENT_BLOCK, width, clamp_reach(hq, s),
                           clamp_reach(wq, s));

    if (p) {
        p->d = clamp_reach(hm, s);
        p->e = clamp_reach(wm, s);
        p->f = clamp_reach(below, s);
        pattern_of_span(p, span_of_lines(width, hq - 1 + hm, wq - 1 + wm));
    }
    return p;
}

static void row_ring(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t first = p->a, last = p->shape.n - 1;

    (void)head;
    if (last > first && (i == first || i == last))
        runs_push(row, i == first ? last : first, 1, 1, p->bits);
}

Pattern *pattern_ring(Arena *a, PatternShape s, int64_t first)
{
    return pattern_ruled(node_with(a, s, row_ring, COMPONENT_OTHER, first, 0, 0), RULE_RING);
}

/* Patterns of sequences read as images: row = floor(i/width),
 * column = i mod width, the last row may be short. */

static int64_t shapes_at_most(int64_t x, PatternShape s)
{
    return min_i64(x, max_i64(s.n, s.m));
}

/* All pixels above the block row of the query; in the block row, those left of the block, and those
 * of the block that are not after the query. */
static void row_order(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t width = p->a, y = i / width, x = i % width, begin = row->count;
    int64_t top = y / p->b * p->b, left = x / p->c * p->c, right = min_i64(left + p->c, width);

    (void)head;
    runs_push_range(row, 0, top * width, p->shape.m, p->bits);
    for (int64_t line = top; line < top + p->b && line * width < p->shape.m; line++)
        runs_push_range(row, line * width,
                        line * width + (line < y    ? right
                                        : line == y ? x + 1
                                                    : left),
                        p->shape.m, p->bits);
    runs_tidy(row, begin);
}

Pattern *pattern_image_order(Arena *a, PatternShape s, int64_t width, int64_t hq, int64_t wq)
{
    return node_with(a, s, row_order, 0, width, shapes_at_most(hq, s), shapes_at_most(wq, s));
}

static void row_product(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t width = p->a, m = p->shape.m, last = (m - 1) / width * width, begin = row->count;
    int64_t x = i % width, most = p->c ? x + 1 : width;

    (void)head;
    if (!p->b && i >= last) /* the corner is in the query's own, short row */
        most = min_i64(most, m - last);
    for (int64_t line = 0; line < m && (!p->c || line <= i); line += width)
        if (!p->b || line + x < m) /* the corner is in the row of the key */
            runs_push_range(row, line, line + most, m, p->bits);
    runs_tidy(row, begin);
}

Pattern *pattern_image_product(Arena *a, PatternShape s, int64_t width, bool corner_row,
                               bool causal)
{
    return node_with(a, s, row_product, COMPONENT_OTHER, width, corner_row, causal);
}

static void row_grid(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    int64_t width = p->a, m = p->shape.m, y = i / width, x = i % width, begin = row->count;
    int64_t left = x > p->c ? x - p->c : 0, right = min_i64(x + p->c + 1, width);

    (void)head;
    for (int64_t line = y > p->b ? y - p->b : 0; line <= y + p->b && line * width < m; line++)
        runs_push_range(row, line * width + left, line * width + right, m, p->bits);
    runs_tidy(row, begin);
}

Pattern *pattern_grid(Arena *a, PatternShape s, int64_t width, int64_t rows, int64_t cols,
                      uint8_t bits)
{
    Pattern *p = node_with(a, s, row_grid, bits, width, shapes_at_most(rows, s),
                           shapes_at_most(cols, s));

    return p ? pattern_of_span(p, span_of_lines(width, rows, cols)) : NULL;
}

/* Each query sees as far as its own span: one or two runs a row. */

static void shapes_row_spans(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const int32_t *reach = tensor_head(&p->tensor, head, p->shape.heads);
    int64_t        m = p->shape.m, far = reach[p->tensor.shape[1] > 1 ? i : 0], least = p->a;

    if (far < least)
        return;
    if (least == 0) {
        runs_push_range(row, i - far, i + far + 1, m, p->bits);
        return;
    }
    runs_push_range(row, i - far, i - least + 1, m, p->bits);
    runs_push_range(row, i + least, i + far + 1, m, p->bits);
}

Pattern *pattern_spans(Arena *a, PatternShape s, const Tensor *reach, int64_t least, uint8_t bits)
{
    Pattern *p = pattern_node(a, s, shapes_row_spans, bits);

    if (p) {
        p->tensor = *reach;
        p->per_head = reach->shape[0] > 1;
        p->a = least;
    }
    return p;
}
