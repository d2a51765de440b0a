/* sieve.c -- see sieve.h. */
#include "attn/cpu/sieve.h"

#include <math.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "core/threads.h"

#define MORE 64       /* keys held beyond twice those taken, before some are dropped */
#define LEAST 8       /* a row takes at most one of so many keys */
#define KEYS 512      /* fewer are not worth it */
#define LARGEST 1e30  /* lengths whose products are finite in float, too */
#define STEPS 14      /* of bisection */

struct Sieve {
    float   *q;        /* [SIEVE_ROWS][d] */
    float   *gathered; /* [d][TILE_KEYS] */
    float   *value;    /* [SIEVE_ROWS][most] scores of the keys held */
    int32_t *place;    /* [SIEVE_ROWS][most] increasing */
    int64_t  have[SIEVE_ROWS];
    int64_t  count[SIEVE_ROWS];            /* keys that the row sees */
    double   margin[SIEVE_ROWS];
    bool     full[SIEVE_ROWS];             /* the row holds none */
    float    limit[SIEVE_ROWS][TILE_KEYS]; /* all alike: lower scores are left out */
    float    scores[TILE_ROWS * TILE_KEYS], top[TILE_ROWS * LANES];
};

bool sieve_pays(int64_t takes, int64_t keys)
{
    return takes > 0 && takes * LEAST <= keys && keys >= KEYS;
}

static int64_t most_of(int64_t takes)
{
    return round_up_to(2 * takes + MORE, TILE_KEYS);
}

SieveKeys sieve_keys_new(Run *r, int64_t count, int64_t d, int64_t takes)
{
    int64_t panels = ceil_div(count, TILE_KEYS);

    return (SieveKeys){ .kernel = kernel_at(0), .count = count, .d = d, .takes = takes,
                        .most = most_of(takes),
                        .panels = cpu_scratch(r, panels * d, TILE_KEYS * (int64_t)sizeof(float)) };
}

Sieve *sieve_new(Run *r, int64_t d, int64_t takes)
{
    int64_t size = (int64_t)sizeof(float), held = SIEVE_ROWS * most_of(takes);
    Sieve  *s = cpu_scratch(r, 1, (int64_t)sizeof(*s));

    if (s)
        *s = (Sieve){ .q = cpu_scratch(r, SIEVE_ROWS * d, size),
                      .gathered = cpu_scratch(r, d, TILE_KEYS * size),
                      .value = cpu_scratch(r, held, size),
                      .place = cpu_scratch(r, held, (int64_t)sizeof(int32_t)) };
    return s;
}

static void pack_item(void *context, int64_t panel, int worker)
{
    const SieveKeys *keys = context;
    int64_t          first = panel * TILE_KEYS;

    (void)worker;
    pack_panel(keys->k + first * keys->ld, keys->ld, min_i64(TILE_KEYS, keys->count - first),
               keys->d, keys->panels + first * keys->d);
}

void sieve_fill(Run *r, SieveKeys *keys, const Tensor *k, int64_t head)
{
    keys->k = tensor_head(k, head, r->h);
    keys->ld = k->stride[1];
    keys->longest = 0;
    threads_run(r->threads, ceil_div(keys->count, TILE_KEYS), pack_item, keys);
    for (int64_t j = 0; j < keys->count; j++)
        keys->longest = larger_or_nan(
            keys->longest, sqrt(keys->kernel->squares(keys->k + j * keys->ld, keys->d)));
}

static void set_limit(Sieve *s, int64_t x, float limit)
{
    for (int c = 0; c < TILE_KEYS; c++)
        s->limit[x][c] = limit;
}

void sieve_row(const SieveKeys *keys, Sieve *s, int64_t x, const float *q, int64_t count)
{
    double size = sqrt(keys->kernel->squares(q, keys->d)) * keys->longest;

    memcpy(s->q + x * keys->d, q, (size_t)keys->d * sizeof(*q));
    s->count[x] = count;
    s->have[x] = 0;
    s->margin[x] = ((double)keys->d + 8) * 0x1p-24 * size;
    s->full[x] = count <= keys->takes || !(size <= LARGEST);
    set_limit(s, x, -INFINITY);
}

bool sieve_holds(const Sieve *s, int64_t x)
{
    return !s->full[x];
}

static int64_t count_at_least(const Kernel *kernel, const float *value, int64_t count,
                              const float *limit)
{
    int64_t found = 0;

    for (int64_t at = 0; at < count; at += TILE_KEYS)
        found += __builtin_popcountll(kernel->at_least(value + at, limit));
    return found;
}

/* A number that at least `takes` of value[count] reach, and hardly more; padded with -inf. */
static float sieve_bound(const SieveKeys *keys, Sieve *s, int64_t x, const float *value,
                         int64_t count)
{
    float low = -keys->kernel->largest(value, count, -1);
    float high = keys->kernel->largest(value, count, 1);

    for (int step = 0; step < STEPS && low < high; step++) {
        float middle = low + (high - low) / 2;

        set_limit(s, x, middle);
        if (count_at_least(keys->kernel, value, count, s->limit[x]) >= keys->takes)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Drops what row x need not hold. */
static void sieve_keep(const SieveKeys *keys, Sieve *s, int64_t x)
{
    float   *value = s->value + x * keys->most, bound;
    int32_t *place = s->place + x * keys->most;
    int64_t  kept = 0;

    for (int64_t c = s->have[x]; c % TILE_KEYS; c++)
        value[c] = -INFINITY;
    bound = sieve_bound(keys, s, x, value, s->have[x]);
    set_limit(s, x, nextafterf((float)((double)bound - 2 * s->margin[x]), -INFINITY));
    for (int64_t at = 0; at < s->have[x]; at += TILE_KEYS)
        for (uint64_t bits = keys->kernel->at_least(value + at, s->limit[x]); bits;
             bits &= bits - 1) {
            int64_t c = at + __builtin_ctzll(bits);

            value[kept] = value[c];
            place[kept++] = place[c];
        }
    s->have[x] = kept;
}

/* Scores of row x with the keys of the panel from `at`. */
static void take_scores(const SieveKeys *keys, Sieve *s, int64_t x, const float *scores, int64_t at)
{
    int64_t  row = x * keys->most, left = s->count[x] - at;
    uint64_t bits;

    if (left <= 0 || s->full[x])
        return;
    bits = keys->kernel->at_least(scores, s->limit[x]);
    bits &= left < TILE_KEYS ? (UINT64_C(1) << left) - 1 : ~UINT64_C(0);
    for (; bits && !s->full[x]; bits &= bits - 1) {
        int c = __builtin_ctzll(bits);

        if (s->have[x] == keys->most)
            sieve_keep(keys, s, x);
        s->full[x] = s->have[x] == keys->most;
        if (s->full[x] || scores[c] < s->limit[x][0])
            continue;
        s->value[row + s->have[x]] = scores[c];
        s->place[row + s->have[x]++] = (int32_t)(at + c);
    }
}

void sieve_rows(const SieveKeys *keys, Sieve *s, int64_t rows)
{
    int64_t padded = round_up_to(rows, TILE_ROWS), d = keys->d;

    memset(s->q + rows * d, 0, (size_t)((padded - rows) * d) * sizeof(*s->q));
    for (int64_t at = 0; at < s->count[rows - 1]; at += TILE_KEYS)
        for (int64_t x = 0; x < rows; x += TILE_ROWS) {
            keys->kernel->score(s->q + x * d, d, keys->panels + at * d, d, NULL, 0, TILE_KEYS,
                                s->scores, TILE_KEYS, s->top);
            for (int64_t y = x; y < min_i64(x + TILE_ROWS, rows); y++)
                take_scores(keys, s, y, s->scores + (y - x) * TILE_KEYS, at);
        }
}

int64_t sieve_numbers(const SieveKeys *keys, Sieve *s, int64_t x, int32_t *place, double *number)
{
    const int32_t *held = s->place + x * keys->most;
    double         sums[TILE_KEYS];

    sieve_keep(keys, s, x);
    for (int64_t at = 0; at < s->have[x]; at += TILE_KEYS) {
        int64_t some = min_i64(TILE_KEYS, s->have[x] - at);

        pack_rows(keys->k, keys->ld, held + at, some, keys->d, s->gathered);
        keys->kernel->panel64(s->q + x * keys->d, s->gathered, keys->d, sums);
        memcpy(number + at, sums, (size_t)some * sizeof(*number));
        memcpy(place + at, held + at, (size_t)some * sizeof(*place));
    }
    return s->have[x];
}
