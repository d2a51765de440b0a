/* sieve.c -- see sieve.h. */
#include "attn/cpu/sieve.h"

#include <math.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "core/threads.h"

#define MORE 64       /* candidates held beyond twice those taken, before some are dropped */
#define LEAST 8       /* a row takes at most one of so many candidates */
#define FEWEST 128    /* fewer are not worth it */
#define LARGEST 1e30  /* numbers that are finite in float, too */
#define TINY 0x1p-120 /* above what products below the least normal float lose */
#define STEPS 14      /* of bisection */
#define DEPTH 64      /* factors at once; even, as choose_factors wants */
#define FEW_KEYS 128  /* candidates at once, which stay in the first-level cache, */
#define FEW_ITEM 1024 /* and of an item */
#define SQUARES 4     /* whose squares are summed together: dots_squares */

struct Sieve {
    float   *q;        /* [SIEVE_ROWS][heads][d] */
    float   *weight;   /* [SIEVE_ROWS][heads]; NULL: the numbers are the products */
    float   *gathered; /* [d][TILE_KEYS] */
    float   *scores;   /* [step heads][TILE_KEYS], of `step` rows */
    float   *value;    /* [SIEVE_ROWS][most] numbers of the candidates held */
    int32_t *place;    /* [SIEVE_ROWS][most] increasing */
    int64_t  step;     /* the fewest rows whose products fill tiles */
    int64_t  have[SIEVE_ROWS];
    int64_t  count[SIEVE_ROWS], without[SIEVE_ROWS]; /* what the row chooses among */
    int32_t  own[FEW_KEYS];        /* 0, 1, 2, ... */
    double   size[SIEVE_ROWS], margin[SIEVE_ROWS]; /* size: for candidates of length 1 */
    float    above[SIEVE_ROWS];            /* fewer candidates than the row takes exceed it */
    bool     full[SIEVE_ROWS];             /* the row holds none */
    float    limit[SIEVE_ROWS];            /* lower numbers are left out */
    float    number[TILE_ROWS * TILE_KEYS], top[TILE_ROWS * LANES];
};

bool sieve_pays(int64_t takes, int64_t count)
{
    return takes > 0 && takes * LEAST <= count && count >= FEWEST;
}

SieveKeys sieve_keys_new(Run *r, const ChooseKeys *in, int64_t count, int64_t d, int64_t takes,
                         int64_t few, int64_t heads)
{
    int64_t   panels = ceil_div(count, TILE_KEYS), panel = TILE_KEYS * (int64_t)sizeof(float);
    SieveKeys keys = { .kernel = kernel_at(0), .in = in, .all = r->h, .count = count, .d = d,
                       .heads = in->kind == CHOOSE_INDEX ? in->heads : 1, .takes = takes,
                       .most = round_up_to(2 * takes + MORE, TILE_KEYS),
                       .padded = panels * TILE_KEYS, .few = few,
                       .lengths = cpu_scratch(r, max_i64(1, heads) * panels,
                                              (int64_t)sizeof(double)) };

    if (few)
        keys.numbers = cpu_scratch(r, heads * few * panels, panel);
    else
        keys.panels = cpu_scratch(r, panels * d, panel);
    return keys;
}

/* The fewest rows of which all products with a key fill whole tiles; it divides TILE_ROWS. */
static int64_t step_of(int64_t heads)
{
    int64_t step = 1;

    while (step * heads % TILE_ROWS)
        step++;
    return step;
}

Sieve *sieve_new(Run *r, const SieveKeys *keys)
{
    int64_t size = (int64_t)sizeof(float), held = SIEVE_ROWS * keys->most;
    int64_t products = SIEVE_ROWS * keys->heads, step = step_of(keys->heads);
    Sieve  *s = cpu_scratch(r, 1, (int64_t)sizeof(*s));

    if (s)
        *s = (Sieve){ .step = step, .q = cpu_scratch(r, products * keys->d, size),
                      .weight = keys->in->kind == CHOOSE_INDEX ? cpu_scratch(r, products, size)
                                                               : NULL,
                      .gathered = cpu_scratch(r, keys->d, TILE_KEYS * size),
                      .scores = cpu_scratch(r, step * keys->heads, TILE_KEYS * size),
                      .value = cpu_scratch(r, held, size),
                      .place = cpu_scratch(r, held, (int64_t)sizeof(int32_t)) };
    for (int32_t c = 0; s && c < FEW_KEYS; c++)
        s->own[c] = c;
    return s;
}

/* Where factor c stands: of pages, those of hi before those of lo. */
static int64_t factor_at(const SieveKeys *keys, int64_t c)
{
    return keys->in->kind == CHOOSE_PAGES ? c % 2 * (keys->d / 2) + c / 2 : c;
}

/* Factors of candidate j as a column of its panel; returns the sum of their squares. */
static double pack_factors(const SieveKeys *keys, int64_t j, float *column)
{
    double factor[DEPTH], squares = 0;

    for (int64_t from = 0; from < keys->d; from += DEPTH) {
        int64_t depth = min_i64(DEPTH, keys->d - from);

        choose_factors(keys->in, keys->all, keys->head, j, from, depth, 1, factor);
        for (int64_t c = 0; c < depth; c++) {
            squares += factor[c] * factor[c];
            column[factor_at(keys, from + c) * TILE_KEYS] = (float)factor[c];
        }
    }
    return squares;
}

static void pack_item(void *context, int64_t panel, int worker)
{
    const SieveKeys *keys = context;
    int64_t          first = panel * TILE_KEYS, some = min_i64(TILE_KEYS, keys->count - first);
    float           *to = keys->panels + first * keys->d;
    double           longest = 0;

    (void)worker;
    if (some < TILE_KEYS)
        memset(to, 0, (size_t)(keys->d * TILE_KEYS) * sizeof(*to));
    for (int64_t c = 0; c < some; c++)
        longest = larger_or_nan(longest, pack_factors(keys, first + c, to + c));
    keys->lengths[panel] = sqrt(longest);
}

void sieve_fill(Run *r, SieveKeys *keys, int64_t head)
{
    int64_t panels = ceil_div(keys->count, TILE_KEYS);

    keys->head = head;
    keys->longest = 0;
    threads_run(r->threads, panels, pack_item, keys);
    for (int64_t panel = 0; panel < panels; panel++)
        keys->longest = larger_or_nan(keys->longest, keys->lengths[panel]);
}

/* Sets the factors of row x; returns what no number of it exceeds, for keys of length 1. */
static double set_factors(const SieveKeys *keys, Sieve *s, int64_t x, const double *q,
                          const double *w)
{
    double size = 0;

    for (int64_t t = 0; t < keys->heads; t++) {
        float *to = s->q + (x * keys->heads + t) * keys->d;
        double squares = 0;

        for (int64_t c = 0; c < keys->d; c++, q++) {
            to[c] = (float)*q;
            squares += *q * *q;
        }
        if (w)
            s->weight[x * keys->heads + t] = (float)w[t];
        size += sqrt(squares) * (w ? fabs(w[t]) : 1);
    }
    return size;
}

static void set_margin(const SieveKeys *keys, Sieve *s, int64_t x)
{
    double size = s->size[x] * keys->longest, rounds = (double)(keys->d + keys->heads) + 16;

    s->margin[x] = rounds * (0x1p-24 * size + TINY);
    s->full[x] |= !(size <= LARGEST);
}

static void begin_row(const SieveKeys *keys, Sieve *s, int64_t x, double size, int64_t count,
                      int64_t without)
{
    s->size[x] = size;
    s->count[x] = count;
    s->without[x] = without;
    s->have[x] = 0;
    s->full[x] = count - (without >= 0) <= keys->takes;
    set_margin(keys, s, x);
    s->limit[x] = -INFINITY;
}

void sieve_row(const SieveKeys *keys, Sieve *s, int64_t x, const double *q, const double *w,
               int64_t count, int64_t without)
{
    begin_row(keys, s, x, set_factors(keys, s, x, q, w), count, without);
}

typedef float   Four __attribute__((vector_size(16)));
typedef int32_t FourBits __attribute__((vector_size(16)));

/* max(q, 0) and min(q, 0), of which NaN is the second: choose_split. */
static void split_query(const float *q, int64_t count, float *high, float *low)
{
    int64_t c = 0;

    for (; c + 4 <= count; c += 4) {
        Four     x;
        FourBits bits, above, below;

        memcpy(&x, q + c, sizeof(x));
        bits = (FourBits)x;
        above = bits & (x > 0);
        below = bits & ~(x > 0);
        memcpy(high + c, &above, sizeof(above));
        memcpy(low + c, &below, sizeof(below));
    }
    for (; c < count; c++) {
        high[c] = q[c] > 0 ? q[c] : 0;
        low[c] = 0 < q[c] ? 0 : q[c];
    }
}

void sieve_query(const SieveKeys *keys, Sieve *s, int64_t x, const float *q, int64_t count,
                 int64_t without)
{
    float  *to = s->q + x * keys->d;
    int64_t d = keys->in->kind == CHOOSE_PAGES ? keys->d / 2 : keys->d;

    if (d < keys->d)
        split_query(q, d, to, to + d);
    else
        memcpy(to, q, (size_t)d * sizeof(*to));
    begin_row(keys, s, x, sqrt(keys->kernel->squares(q, d)), count, without);
}

bool sieve_holds(const Sieve *s, int64_t x)
{
    return !s->full[x];
}

/* A number that at least `takes` of value[count] reach, and hardly more; padded with -inf.  *above:
 * one that fewer exceed. */
static float sieve_bound(const SieveKeys *keys, const float *value, int64_t count, float *above)
{
    const Kernel *kernel = keys->kernel;
    int64_t       padded = round_up_to(count, TILE_KEYS);
    float         high = kernel->largest(value, count, 1), low = -INFINITY;

    if (keys->takes <= LANES)
        low = kernel->class_bound(value, padded, keys->takes);
    if (low == -INFINITY) /* a class of padding */
        low = -kernel->largest(value, count, -1);
    for (int step = 0; step < STEPS && low < high; step++) {
        float   middle = low + (high - low) / 2;
        int64_t reached = kernel->reach(value, padded, middle);

        *(reached < keys->takes ? &high : &low) = middle;
        if (reached == keys->takes)
            break; /* no number lies between the last one taken and this */
    }
    *above = high;
    return low;
}

/* Drops what row x need not hold when at least `bound` is reached by as many as it takes. */
static void drop_below(const SieveKeys *keys, Sieve *s, int64_t x, float bound)
{
    float   *value = s->value + x * keys->most;
    int32_t *place = s->place + x * keys->most;
    int64_t  kept = 0;

    s->limit[x] = nextafterf((float)((double)bound - 2 * s->margin[x]), -INFINITY);
    for (int64_t at = 0; at < s->have[x]; at += TILE_KEYS) {
        uint64_t bits;

        keys->kernel->rows_reach(value + at, 1, &s->limit[x], &bits);
        for (; bits; bits &= bits - 1) {
            int64_t c = at + __builtin_ctzll(bits);

            value[kept] = value[c];
            place[kept++] = place[c];
        }
    }
    s->have[x] = kept;
}

/* Fills row x up to whole panels; returns its numbers. */
static float *pad_row(const SieveKeys *keys, Sieve *s, int64_t x)
{
    float *value = s->value + x * keys->most;

    for (int64_t c = s->have[x]; c % TILE_KEYS; c++)
        value[c] = -INFINITY;
    return value;
}

/* Drops what row x need not hold. */
static void sieve_keep(const SieveKeys *keys, Sieve *s, int64_t x)
{
    const float *value = pad_row(keys, s, x);

    drop_below(keys, s, x, sieve_bound(keys, value, s->have[x], &s->above[x]));
}

/* Makes room in row x: a rough bound will do, if it leaves half of it. */
static void sieve_drop(const SieveKeys *keys, Sieve *s, int64_t x)
{
    int64_t most = keys->most / 2;

    if (keys->takes <= LANES && s->have[x] > most)
        drop_below(keys, s, x,
                   keys->kernel->class_bound(pad_row(keys, s, x),
                                             round_up_to(s->have[x], TILE_KEYS), keys->takes));
    if (s->have[x] > most)
        sieve_keep(keys, s, x);
}

/* All candidates of a panel, for a row that has no limit yet. */
static void take_panel(const SieveKeys *keys, Sieve *s, int64_t x, const float *number, int64_t at)
{
    int64_t row = x * keys->most + s->have[x];

    memcpy(s->value + row, number, TILE_KEYS * sizeof(*number));
    for (int c = 0; c < TILE_KEYS; c++)
        s->place[row + c] = (int32_t)(at + c);
    s->have[x] += TILE_KEYS;
}

/* Numbers of row x for the candidates of the panel from `at`; bits: which reach its limit. */
static void take_numbers(const SieveKeys *keys, Sieve *s, int64_t x, const float *number,
                         int64_t at, uint64_t bits)
{
    int64_t  row = x * keys->most, left = s->count[x] - at, skip = s->without[x] - at;
    uint64_t still;

    if (left <= 0 || s->full[x])
        return;
    bits &= left < TILE_KEYS ? (UINT64_C(1) << left) - 1 : ~UINT64_C(0);
    if (skip >= 0 && skip < TILE_KEYS)
        bits &= ~(UINT64_C(1) << skip);
    if (bits == ~UINT64_C(0) && s->have[x] + TILE_KEYS <= keys->most) {
        take_panel(keys, s, x, number, at);
        return;
    }
    if (s->have[x] + TILE_KEYS > keys->most &&
        s->have[x] + __builtin_popcountll(bits) > keys->most) {
        sieve_drop(keys, s, x);
        keys->kernel->rows_reach(number, 1, &s->limit[x], &still);
        bits &= still;
    }
    for (; bits && !s->full[x]; bits &= bits - 1) {
        int c = __builtin_ctzll(bits);

        if (s->have[x] == keys->most)
            sieve_keep(keys, s, x);
        s->full[x] = s->have[x] == keys->most;
        if (s->full[x] || number[c] < s->limit[x])
            continue;
        s->value[row + s->have[x]] = number[c];
        s->place[row + s->have[x]++] = (int32_t)(at + c);
    }
}

/* The numbers of s->step rows from x on for a panel. */
static void take_rows(const SieveKeys *keys, Sieve *s, int64_t x, int64_t rows, int64_t at)
{
    int64_t  d = keys->d, products = s->step * keys->heads;
    float   *q = s->q + x * keys->heads * d;
    float   *number = s->weight ? s->number : s->scores;
    uint64_t bits[TILE_ROWS];

    for (int64_t y = 0; y < products; y += TILE_ROWS)
        keys->kernel->score(q + y * d, d, keys->panels + at * d, d, NULL, 0, TILE_KEYS,
                            s->scores + y * TILE_KEYS, TILE_KEYS, s->top);
    rows = min_i64(s->step, rows - x);
    for (int64_t y = 0; s->weight && y < rows; y++)
        keys->kernel->fold_heads(s->scores + y * keys->heads * TILE_KEYS, keys->heads,
                                 s->weight + (x + y) * keys->heads, number + y * TILE_KEYS);
    keys->kernel->rows_reach(number, rows, s->limit + x, bits);
    for (int64_t y = 0; y < rows; y++)
        if (bits[y])
            take_numbers(keys, s, x + y, number + y * TILE_KEYS, at, bits[y]);
}

void sieve_rows(const SieveKeys *keys, Sieve *s, int64_t rows)
{
    int64_t width = keys->heads * keys->d;

    memset(s->q + rows * width, 0, (size_t)((SIEVE_ROWS - rows) * width) * sizeof(*s->q));
    for (int64_t at = 0; at < s->count[rows - 1]; at += TILE_KEYS)
        for (int64_t x = 0; x < rows; x += s->step)
            take_rows(keys, s, x, rows, at);
}

/* ---- few rows -------------------------------------------------------------------------- */

/* Candidates that lie one below the other. */
typedef struct Lines {
    const float  *near; /* or NULL: */
    const double *wide;
    int64_t       ld;
} Lines;

static Lines lines_of(const SieveKeys *keys, const Tensor *x, int64_t at)
{
    const void *head = tensor_head(x, keys->head, keys->all);
    Lines       l = { .ld = x->stride[1] };

    if (x->dtype == DT_F64)
        l.wide = (const double *)head + at * l.ld;
    else
        l.near = (const float *)head + at * l.ld;
    return l;
}

/* Means in float are rounded once more than keys: one of the units that the margin has beyond d. */
static const Tensor *candidates_of(const ChooseKeys *in)
{
    switch (in->kind) {
    case CHOOSE_PAGES: return &in->hi;
    case CHOOSE_MEANS: return in->near.data ? &in->near : &in->mean;
    default: return &in->in.k;
    }
}

/* Products of q with candidates, and a bound of the square of every length: the largest sum of
 * some together.  In float a square may be lost below the least normal number. */
static double products_and_square(const Kernel *kernel, const float *q, Lines l, int64_t count,
                                  int64_t d, float *to)
{
    double longest = 0;

    if (l.near)
        return (double)kernel->dots_squares(q, l.near, l.ld, count, d, to) * 1.0001 +
               (double)(SQUARES * d) * 0x1p-126;
    for (int64_t j = 0; j < count; j++, l.wide += l.ld) {
        to[j] = (float)kernel->dot_wide(q, l.wide, d);
        longest = larger_or_nan(longest, kernel->dot_double(l.wide, l.wide, d));
    }
    return longest;
}

static void products_of(const Kernel *kernel, const Sieve *s, const float *q, Lines l,
                        int64_t count, int64_t d, float *to)
{
    if (l.near)
        kernel->dots(q, l.near, l.ld, s->own, count, d, to);
    for (int64_t j = 0; j < count && l.wide; j++)
        to[j] = (float)kernel->dot_wide(q, l.wide + j * l.ld, d);
}

/* The numbers of row x for candidates [at, at + count), and the bound of their squares, if this is
 * the first row. */
static double few_numbers(const SieveKeys *keys, const Sieve *s, int64_t x, int64_t at,
                          int64_t count, float *to)
{
    const ChooseKeys *in = keys->in;
    const Tensor     *from[2] = { candidates_of(in), &in->lo };
    int64_t           parts = in->kind == CHOOSE_PAGES ? 2 : 1, d = keys->d / parts;
    float             sums[FEW_KEYS];
    double            square = 0;

    for (int64_t p = 0; p < parts; p++) {
        Lines        l = lines_of(keys, from[p], at);
        const float *q = s->q + x * keys->d + p * d;

        if (x == 0)
            square += products_and_square(keys->kernel, q, l, count, d, p ? sums : to);
        else
            products_of(keys->kernel, s, q, l, count, d, p ? sums : to);
        for (int64_t j = 0; j < count && p; j++)
            to[j] += sums[j];
    }
    return square;
}

SieveKeys sieve_head(const SieveKeys *keys, int64_t head, int64_t place)
{
    SieveKeys own = *keys;

    own.head = head;
    own.numbers += place * keys->few * keys->padded;
    own.lengths += place * (keys->padded / TILE_KEYS);
    return own;
}

int64_t sieve_few_items(const SieveKeys *keys)
{
    return ceil_div(keys->count, FEW_ITEM);
}

void sieve_few_item(const SieveKeys *keys, const Sieve *s, int64_t item)
{
    int64_t end = min_i64(keys->count, (item + 1) * FEW_ITEM);
    double  longest = 0;

    for (int64_t at = item * FEW_ITEM; at < end; at += FEW_KEYS)
        for (int64_t x = 0; x < keys->few; x++) {
            double square = few_numbers(keys, s, x, at, min_i64(FEW_KEYS, end - at),
                                        keys->numbers + x * keys->padded + at);

            longest = larger_or_nan(longest, square);
        }
    keys->lengths[item] = sqrt(longest);
}

void sieve_few(SieveKeys *keys, Sieve *s)
{
    keys->longest = 0;
    for (int64_t item = 0; item < sieve_few_items(keys); item++)
        keys->longest = larger_or_nan(keys->longest, keys->lengths[item]);
    for (int64_t x = 0; x < keys->few; x++) {
        float *number = keys->numbers + x * keys->padded;

        for (int64_t c = keys->count; c < keys->padded; c++)
            number[c] = -INFINITY;
        set_margin(keys, s, x);
        for (int64_t at = 0; at < s->count[x] && !s->full[x]; at += TILE_KEYS) {
            uint64_t bits;

            keys->kernel->rows_reach(number + at, 1, &s->limit[x], &bits);
            if (bits)
                take_numbers(keys, s, x, number + at, at, bits);
        }
    }
}

/* ---- what a row holds ------------------------------------------------------------------ */

int64_t sieve_places(const SieveKeys *keys, Sieve *s, int64_t x, int32_t *place, bool *sure)
{
    double above;

    sieve_keep(keys, s, x);
    above = (double)s->above[x] + 2 * s->margin[x];
    for (int64_t c = 0; c < s->have[x]; c++) {
        place[c] = s->place[x * keys->most + c];
        sure[c] = (double)s->value[x * keys->most + c] > above;
    }
    return s->have[x];
}

void sieve_products(const SieveKeys *keys, Sieve *s, int64_t x, const int32_t *place,
                    int64_t count, double *number)
{
    const Tensor *k = &keys->in->in.k;
    double        sums[TILE_KEYS];

    for (int64_t at = 0; at < count; at += TILE_KEYS) {
        int64_t some = min_i64(TILE_KEYS, count - at);

        pack_rows(tensor_head(k, keys->head, keys->all), k->stride[1], place + at, some, keys->d,
                  s->gathered);
        keys->kernel->panel64(s->q + x * keys->d, s->gathered, keys->d, some, sums);
        memcpy(number + at, sums, (size_t)some * sizeof(*number));
    }
}
