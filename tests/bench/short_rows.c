/* short_rows.c -- attention over a few neighbouring keys a query, beside its tiles alone.
 *
 * A row that sees `width` keys shares tiles of TILE_ROWS rows with rows that see other keys, and
 * tiles are made of whole vectors, so a part of what is multiplied is not used.  How much of the
 * peak that leaves is measured here: scores, softmax and mixing of the very same tiles, whose
 * keys, values and queries lie ready in the caches, without finding, packing, loading or storing
 * anything; and how long it takes to read q, k and v and to write an output, without arithmetic but
 * a sum.  All in turn, round after round; shares of the peak of fused multiply-adds count the seen
 * cells only.
 *
 *     build/tests/bench/short_rows [rounds]
 */
#include "attn/cpu/attend.h"
#include "core/rng.h"
#include "core/threads.h"
#include "profile/measure.h"
#include "profile/record.h"
#include "rounds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define HEADS 8
#define SIZE 64
#define LENGTH 16384
#define MOST_ROUNDS 64
#define GROUPS 32 /* tiles lie at so many places of a panel */
#define ITEMS 64
#define MOST_PANELS 12

static const int64_t widths[] = { 3, 9, 17, 33, 65, 129, 257, 513 };
#define WIDTHS 8

typedef struct Tiles {
    Arena   *arena;
    Threads *threads;
    Block    block[2]; /* of each thread */
    float   *panels, *values;
    uint64_t keep[GROUPS][MOST_PANELS][TILE_ROWS];
    int64_t  count; /* panels */
} Tiles;

/* Row r of group g sees the keys from TILE_ROWS g mod TILE_KEYS + r on. */
static void keep_of(Tiles *t, int64_t width)
{
    memset(t->keep, 0, sizeof(t->keep));
    t->count = ceil_div(TILE_KEYS + TILE_ROWS + width, TILE_KEYS);
    for (int64_t g = 0; g < GROUPS; g++)
        for (int64_t r = 0; r < TILE_ROWS; r++)
            for (int64_t x = 0; x < width; x++) {
                int64_t key = g * TILE_ROWS % TILE_KEYS + r + x;

                t->keep[g][key / TILE_KEYS][r] |= UINT64_C(1) << key % TILE_KEYS;
            }
}

static bool is_empty(const uint64_t *keep)
{
    return !(keep[0] | keep[TILE_ROWS - 1]);
}

static void take_group(const Tiles *t, Block *b, int64_t g)
{
    for (int64_t p = 0; p < t->count; p++) {
        if (is_empty(t->keep[g][p]))
            continue;
        block_score(b, 0, p, t->panels + p * SIZE * TILE_KEYS, TILE_KEYS, t->keep[g][p]);
        if (b->slots[0] < STEP_PANELS && p + 1 < t->count && !is_empty(t->keep[g][p + 1]))
            continue;
        block_soften(b, 0, false);
        block_mix(b, 0, t->values, SIZE);
    }
}

static void tiles_item(void *context, int64_t item, int worker)
{
    Tiles *t = context;

    (void)item;
    for (int64_t x = 0; x < (int64_t)HEADS * LENGTH / TILE_ROWS / ITEMS; x++)
        take_group(t, &t->block[worker], x % GROUPS);
}

static bool tiles_new(Tiles *t, Threads *threads)
{
    Rng     rng = rng_named(2, "bench");
    int64_t floats = MOST_PANELS * TILE_KEYS * SIZE;
    bool    ok = true;

    *t = (Tiles){ .arena = arena_new(), .threads = threads };
    t->panels = arena_alloc(t->arena, floats, sizeof(float));
    t->values = arena_alloc(t->arena, floats, sizeof(float));
    for (int x = 0; x < 2; x++) {
        ok = ok && block_init(&t->block[x], t->arena, kernel_at(0), TILE_ROWS, SIZE, SIZE);
        if (!ok)
            return false;
        block_begin(&t->block[x], TILE_ROWS);
        rng_fill_normal(&rng, t->block[x].q, TILE_ROWS * SIZE, 0.1);
    }
    if (!t->panels || !t->values)
        return false;
    rng_fill_normal(&rng, t->panels, floats, 1);
    rng_fill_normal(&rng, t->values, floats, 1);
    return true;
}

/* ---- attention ------------------------------------------------------------------- */

typedef struct Problem {
    Run         *run;
    AttendInput  in;
    AttendResult out;
    Pattern     *pattern[WIDTHS];
} Problem;

static bool problem_new(Problem *p, Threads *threads)
{
    Rng          rng = rng_named(1, "bench");
    PatternShape shape = { .heads = HEADS, .n = LENGTH, .m = LENGTH };

    *p = (Problem){ .run = calloc(1, sizeof(Run)) };
    if (!p->run || !(p->run->arena = arena_new()))
        return false;
    p->run->threads = threads;
    p->in = (AttendInput){ .q = bench_normal(p->run->arena, &rng, HEADS, LENGTH, SIZE),
                           .k = bench_normal(p->run->arena, &rng, HEADS, LENGTH, SIZE),
                           .v = bench_normal(p->run->arena, &rng, HEADS, LENGTH, SIZE),
                           .scale = 1 / sqrt((double)SIZE) };
    p->out.out = bench_normal(p->run->arena, &rng, HEADS, LENGTH, SIZE);
    p->out.lse = tensor_new(p->run->arena, DT_F32, 2, (int64_t[]){ HEADS, LENGTH });
    for (int x = 0; x < WIDTHS; x++)
        p->pattern[x] = pattern_band(p->run->arena, shape, -(widths[x] / 2), widths[x] / 2, 1,
                                     COMPONENT_WINDOW);
    return p->in.v.data && p->out.out.data && p->out.lse.data && p->pattern[WIDTHS - 1];
}

static double time_attend(Problem *p, int x)
{
    double cells = 0, start = clock_wall();

    ops_cpu()->attend(p->run, &p->in, p->pattern[x], &p->out, &cells);
    return clock_wall() - start;
}

static double time_tiles(Tiles *t)
{
    double start = clock_wall();

    threads_run(t->threads, ITEMS, tiles_item, t);
    return clock_wall() - start;
}

#define SIDE 16 /* floats at a time */

/* A part of out = q + k + v. */
static void move_item(void *context, int64_t item, int worker)
{
    const Problem *p = context;
    int64_t        count = tensor_count(&p->in.q) / ITEMS, end = (item + 1) * count;
    const float   *q = tensor_f32(&p->in.q), *k = tensor_f32(&p->in.k), *v = tensor_f32(&p->in.v);
    float         *out = tensor_f32(&p->out.out);

    (void)worker;
    for (int64_t at = item * count; at < end; at += SIDE) {
        float sum[SIDE];

        for (int64_t x = 0; x < SIDE; x++)
            sum[x] = q[at + x] + k[at + x] + v[at + x];
        cpu_store_once(sum, SIDE, out + at);
    }
    cpu_stores_done();
}

static double time_moving(Problem *p)
{
    double start = clock_wall();

    threads_run(p->run->threads, ITEMS, move_item, p);
    return clock_wall() - start;
}

/* ---- rounds ---------------------------------------------------------------------- */

typedef struct Samples {
    double attend[WIDTHS][MOST_ROUNDS], tiles[WIDTHS][MOST_ROUNDS]; /* shares of the peak */
    double of_tiles[WIDTHS][MOST_ROUNDS], of_both[WIDTHS][MOST_ROUNDS]; /* of attention's time */
} Samples;

/* The best of three. */
static void take(Problem *p, Tiles *t, int x, Samples *s, int round)
{
    double attend = INFINITY, tiles = INFINITY, moving = INFINITY, peak = 0;
    double flops = 4.0 * HEADS * LENGTH * SIZE * (double)widths[x];

    keep_of(t, widths[x]);
    for (int y = 0; y < 3; y++) {
        peak = fmax(peak, cpu_peak(p->run->threads));
        attend = fmin(attend, time_attend(p, x));
        tiles = fmin(tiles, time_tiles(t));
        moving = fmin(moving, time_moving(p));
    }
    s->attend[x][round] = flops / attend / peak;
    s->tiles[x][round] = flops / tiles / peak;
    s->of_tiles[x][round] = tiles / attend;
    s->of_both[x][round] = (tiles + moving) / attend;
}

static void print(Samples *s, int rounds)
{
    printf("rows of neighbouring keys, n=%d h=%d d=%d f32, 2 threads, median of %d rounds: share "
           "of the peak\n", LENGTH, HEADS, SIZE, rounds);
    for (int x = 0; x < WIDTHS; x++)
        printf("  %3lld keys: attention %.3f, its tiles alone %.3f; of attention's time: tiles "
               "%.2f, tiles and moving %.2f\n", (long long)widths[x],
               stats_quantile(s->attend[x], rounds, 0.5), stats_quantile(s->tiles[x], rounds, 0.5),
               stats_quantile(s->of_tiles[x], rounds, 0.5),
               stats_quantile(s->of_both[x], rounds, 0.5));
}

int main(int argc, char **argv)
{
    static Samples s;
    static Tiles   tiles;
    int            rounds = bench_rounds(argc, argv, 5, MOST_ROUNDS);
    Threads       *threads = threads_new(2);
    Problem        p;

    if (!problem_new(&p, threads) || !tiles_new(&tiles, threads)) {
        fprintf(stderr, "short_rows: not enough memory\n");
        return 1;
    }
    for (int round = -1; round < rounds; round++) /* first touch is not work */
        for (int x = 0; x < WIDTHS; x++)
            take(&p, &tiles, x, &s, round < 0 ? 0 : round);
    print(&s, rounds);
    arena_free(tiles.arena);
    arena_free(p.run->arena);
    free(p.run);
    threads_free(threads);
    return 0;
}
