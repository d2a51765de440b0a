/* row.c -- see row.h. */
#include <math.h>
#include <string.h>

#include "attn/cpu/simd/kernel.h"
#include "attn/pattern/node.h"
#include "attn/study/row.h"

#define CHAINS 8 /* independent sums: an addition need not wait for the one before */
/* The distance of a sum of float weights, or of those made in bf16, from 1. */
#define SUM_TOLERANCE 1e-3

static double row_joined(const double chain[CHAINS])
{
    double sum = 0;

    for (int x = 0; x < CHAINS; x++)
        sum += chain[x];
    return sum;
}

double row_sum(const float *w, int64_t m)
{
    double  chain[CHAINS] = { 0 };
    int64_t j = 0;

    for (; j + CHAINS <= m; j += CHAINS)
        for (int x = 0; x < CHAINS; x++)
            chain[x] += (double)w[j + x];
    for (; j < m; j++)
        chain[j % CHAINS] += (double)w[j];
    return row_joined(chain);
}

#define CELLS 4 /* compared at once, by any CPU */
typedef float   Cells __attribute__((vector_size(CELLS * sizeof(float)), aligned(sizeof(float)),
                                     may_alias));
typedef int32_t Mask __attribute__((vector_size(CELLS * sizeof(int32_t))));
typedef double  Wide __attribute__((vector_size(CELLS / 2 * sizeof(double))));

double kept_mass(const float *w, const float *kept, int64_t m, bool *left_out)
{
    Wide    low = { 0 }, high = { 0 };
    Cells   left = { 0 };
    int64_t j = 0;
    double  mass;

    for (; j + CELLS <= m; j += CELLS) {
        Cells all = *(const Cells *)(w + j);
        Cells own = (Cells)((Mask)all & (Mask)(*(const Cells *)(kept + j) > 0)); /* no branch */

        left += all - own;
        low += __builtin_convertvector(__builtin_shufflevector(own, own, 0, 1), Wide);
        high += __builtin_convertvector(__builtin_shufflevector(own, own, 2, 3), Wide);
    }
    mass = low[0] + low[1] + high[0] + high[1];
    for (; j < m; j++) {
        mass += kept[j] > 0 ? (double)w[j] : 0;
        left[0] += kept[j] > 0 ? 0 : w[j];
    }
    *left_out = left[0] > 0 || left[1] > 0 || left[2] > 0 || left[3] > 0;
    return mass;
}

double row_distance(const float *p, const float *q, double factor, int64_t m)
{
    double  chain[CHAINS] = { 0 };
    int64_t j = 0;

    for (; j + CHAINS <= m; j += CHAINS)
        for (int x = 0; x < CHAINS; x++)
            chain[x] += fabs((double)p[j + x] - factor * (double)q[j + x]);
    for (; j < m; j++)
        chain[j % CHAINS] += fabs((double)p[j] - factor * (double)q[j]);
    return row_joined(chain);
}

static bool any_negative(const float *w, int64_t m)
{
    int     found[CHAINS] = { 0 }, any = 0;
    int64_t j = 0;

    for (; j + CHAINS <= m; j += CHAINS)
        for (int x = 0; x < CHAINS; x++)
            found[x] |= w[j + x] < 0;
    for (; j < m; j++)
        any |= w[j] < 0;
    for (int x = 0; x < CHAINS; x++)
        any |= found[x];
    return any;
}

/* Whether the sum is 1 up to rounding; false for NaN. */
static bool is_distribution(double sum)
{
    return fabs(sum - 1) <= SUM_TOLERANCE;
}

/* Whether the next CHAINS numbers, or the last ones, are all 0. */
static bool are_nothing(const float *p, int64_t left)
{
    uint64_t bits[CHAINS / 2] = { 0 };

    memcpy(bits, p, (size_t)(left < CHAINS ? left : CHAINS) * sizeof(*p));
    return !(bits[0] | bits[1] | bits[2] | bits[3]);
}

/* sum p ln(p / q).  Skips ranges of zeros, which sparse rows mostly are. */
static double divergence_sum(const float *p, const float *q, int64_t m)
{
    double  sum = 0;
    int64_t end;

    for (int64_t j = 0; j < m; j = end) {
        bool nothing = are_nothing(p + j, m - j);

        for (end = j + CHAINS; end < m && are_nothing(p + end, m - end) == nothing;)
            end += CHAINS;
        end = end < m ? end : m;
        if (!nothing)
            sum += kernel_at(0)->divergence(p + j, q + j, end - j);
    }
    return sum;
}

/* p = P p', q = Q q' with sums of 1: sum p' ln(p' / q') = (sum p ln(p / q)) / P + ln(Q / P). */
double row_divergence(const float *p, double p_sum, const float *q, double q_sum, int64_t m,
                      const char **lacks)
{
    bool   negative = any_negative(p, m) || any_negative(q, m);
    double sum;

    if (p_sum == 0 && q_sum == 0 && !negative)
        return (double)NAN;
    if (!is_distribution(p_sum) || !is_distribution(q_sum) || negative) {
        *lacks = "rows of weights do not sum to 1, or hold negative ones";
        return (double)NAN;
    }
    sum = divergence_sum(p, q, m) / p_sum + log(q_sum / p_sum);
    if (isinf(sum)) {
        *lacks = "it is infinite: a key has weight here and none there";
        return (double)NAN;
    }
    return sum > 0 ? sum : 0; /* below 0 by rounding only */
}

/* ---- a row as an image ------------------------------------------------------- */

typedef struct Span {
    const View       *base;
    int64_t           plane, query, width;
    const PatternRun *runs; /* of the query's row, disjoint */
    int64_t           count;
} Span;

/* The part of a run that lies in one line of the image. */
static void row_push_line(const PatternRun *run, int64_t from, int64_t width, int64_t m,
                          PatternRow *row)
{
    int64_t first = run->start, last = run->start + (run->count - 1) * run->step;
    int64_t to = from + width < m ? from + width : m;

    if (first < from)
        first += (from - first + run->step - 1) / run->step * run->step;
    if (last >= to)
        last -= (last - to) / run->step * run->step + run->step;
    if (first <= last)
        runs_push(row, first - from, (last - first) / run->step + 1, run->step, run->bits);
}

static void row_span(const Pattern *p, int64_t head, int64_t i, PatternRow *row)
{
    const Span *s = p->table;
    int64_t     begin = row->count;

    (void)head;
    for (int64_t c = 0; c < s->count; c++)
        row_push_line(&s->runs[c], i * s->width, s->width, p->a, row);
    runs_tidy(row, begin);
}

static void read_span(const View *view, int64_t plane, int64_t y, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    const Span *s = view->context;

    (void)plane;
    view_read(s->base, s->plane, s->query, y * s->width + start, count, step, out);
}

/* Runs of the query's row; a view without support has all keys. */
static bool take_runs(Arena *a, const View *base, Span *s)
{
    PatternRow  row = { .runs = NULL };
    PatternRun *runs;

    if (base->support)
        pattern_row(base->support, base->rank == 3 ? s->plane : 0, s->query, &row);
    else
        runs_push(&row, 0, view_cols(base), 1, COMPONENT_OTHER);
    s->count = row.count;
    runs = arena_alloc(a, row.count > 0 ? row.count : 1, sizeof(*runs));
    if (runs && row.count)
        memcpy(runs, row.runs, (size_t)row.count * sizeof(*runs));
    s->runs = runs;
    runs = row.failed ? NULL : runs;
    pattern_row_free(&row);
    return runs != NULL;
}

const View *span_view(Arena *a, const View *base, int64_t plane, int64_t query, int64_t width)
{
    int64_t      keys = view_cols(base), height = (keys - 1) / width + 1;
    PatternShape shape = { .heads = 1, .n = height, .m = width };
    Span        *s = arena_alloc(a, 1, sizeof(*s));
    View        *view = arena_alloc(a, 1, sizeof(*view));
    Pattern     *cells = pattern_node(a, shape, row_span, 0);

    if (!s || !view || !cells)
        return NULL;
    *s = (Span){ .base = base, .plane = plane, .query = query, .width = width };
    if (!take_runs(a, base, s))
        return NULL;
    cells->table = s;
    cells->a = keys;
    *view = *base;
    view->rank = 2;
    view->shape[0] = height;
    view->shape[1] = width;
    view->tensor = (Tensor){ 0 };
    view->read = base->read || base->tensor.data ? read_span : NULL;
    view->context = s;
    view->support = cells;
    view->rows = "image row";
    view->cols = "image column";
    return view;
}
