/* pattern_tables.c -- patterns whose keys are listed: tables of keys by row, and lists.
 *
 * A kernel asks for every row of a table once, so a row must not cost more than its
 * cells: the keys are sorted as numbers, before they become runs.
 */
#include "attn/pattern/pattern_node.h"

#include <string.h>

#define SHORT_ROW 1024
#define DIGIT 8
#define DIGITS (1 << DIGIT)

/* keys by one digit into out, equal digits in their order. */
static void sort_by_digit(const int32_t *keys, int64_t count, int shift, int32_t *out)
{
    int32_t place[DIGITS] = { 0 }, sum = 0;

    for (int64_t x = 0; x < count; x++)
        place[keys[x] >> shift & (DIGITS - 1)]++;
    for (int digit = 0; digit < DIGITS; digit++) {
        int32_t here = place[digit];

        place[digit] = sum;
        sum += here;
    }
    for (int64_t x = 0; x < count; x++)
        out[place[keys[x] >> shift & (DIGITS - 1)]++] = keys[x];
}

/* Sorts at most SHORT_ROW keys, none negative. */
static void sort_keys(int32_t *keys, int64_t count, int32_t largest)
{
    int32_t work[SHORT_ROW];

    for (int shift = 0; shift < 31 && largest >> shift > 0; shift += DIGIT) {
        sort_by_digit(keys, count, shift, work);
        memcpy(keys, work, (size_t)count * sizeof(*keys));
    }
}

static void push_sorted(PatternRow *row, const int32_t *keys, int64_t count, uint8_t bits)
{
    for (int64_t x = 0, end; x < count; x = end) {
        int64_t length = 1;

        for (end = x + 1; end < count && keys[end] <= keys[end - 1] + 1; end++)
            length += keys[end] > keys[end - 1];
        runs_push(row, keys[x], length, 1, bits);
    }
}

static void push_key(PatternRow *row, int64_t x, int64_t key, uint8_t bits)
{
    for (int64_t r = x; r < row->count; r++)
        if (row->runs[r].start == key)
            return;
    runs_push(row, key, 1, 1, bits);
}

static void push_long_row(PatternRow *row, const int32_t *keys, int64_t r, uint8_t bits)
{
    int64_t x = row->count;

    for (int64_t c = 0; c < r; c++)
        if (keys[c] >= 0)
            push_key(row, x, keys[c], bits);
    runs_tidy(row, x);
}

static void row_table(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const Tensor  *t = &p->tensor;
    int64_t        r = t->shape[t->rank - 1], count = 0;
    const int32_t *keys = (const int32_t *)t->data +
                          ((t->rank == 3 ? head * t->shape[0] / p->shape.heads : 0) * p->shape.n +
                           i) * r;
    int32_t sorted[SHORT_ROW], largest = 0;

    if (r > SHORT_ROW) {
        push_long_row(row, keys, r, p->bits);
        return;
    }
    for (int64_t c = 0; c < r; c++)
        if (keys[c] >= 0) {
            sorted[count++] = keys[c];
            largest = keys[c] > largest ? keys[c] : largest;
        }
    sort_keys(sorted, count, largest);
    push_sorted(row, sorted, count, p->bits);
}

Pattern *pattern_table(Arena *a, PatternShape s, const Tensor *table, uint8_t bits)
{
    Pattern *p = table->data ? pattern_node(a, s, row_table, bits) : NULL;

    if (p) {
        p->tensor = *table;
        p->per_head = table->rank == 3 && table->shape[0] > 1 && table->shape[2] > 0;
    }
    return p;
}

static void row_lists(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const int64_t *offset = p->table;
    const int32_t *keys = p->tensor.data;
    int64_t        at = head * p->shape.n + i, c = offset[at];

    while (c < offset[at + 1]) {
        int64_t length = 1;

        while (c + length < offset[at + 1] && keys[c + length] == keys[c] + length)
            length++;
        runs_push(row, keys[c], length, 1, p->bits);
        c += length;
    }
}

Pattern *pattern_lists(Arena *a, PatternShape s, const int64_t *offset, const int32_t *keys,
                       uint8_t bits)
{
    Pattern *p = pattern_node(a, s, row_lists, bits);
    union {
        const int32_t *in;
        void          *out;
    } cast = { .in = keys }; /* a Tensor's data is not const, this one is only read */

    if (p) {
        p->table = offset;
        p->tensor.data = cast.out;
        p->per_head = s.heads > 1;
    }
    return p;
}
