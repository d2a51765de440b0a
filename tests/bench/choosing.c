/* choosing.c -- mechanisms that choose the keys of every query, beside their parts alone.
 *
 * Such a mechanism numbers its candidates, picks the largest, and attends to them.  What this takes
 * at least is measured here, in turn with the mechanism, by the same kernels, on one thread, in
 * processor time, so that other programs disturb little:
 *
 *     numbers   products of every row with every candidate that it sees, in float and in the same
 *               tiles, with factors that lie ready in panels, and one comparison of each number.
 *               Nothing is held, sorted, or decided in double.
 *     cells     scores, softmax and mixing of as many chosen cells, on numbers in the caches: tiles
 *               as wide as the keys that rows choose side by side, all of them full; single keys a
 *               row at a time.  Nothing is found, packed, moved or joined.
 *     reading   of single keys: one float of each cache line of the chosen keys and values, by the
 *               same lists, of all keys at once or a stretch at a time, whichever is faster.
 *
 * Other stages (means, bounds, indexes, nsa's compressed part and window) count as they are.
 * Shares of the peak of fused multiply-adds are of the FLOPs that the run counts.
 *
 *     build/tests/bench/choosing [rounds]
 */
#include "attn/cpu/attend.h"
#include "attn/cpu/blas.h"
#include "attn/cpu/cpu.h"
#include "attn/cpu/sieve.h"
#include "attn/run.h"
#include "core/rng.h"
#include "core/threads.h"
#include "profile/measure.h"
#include "profile/record.h"
#include "rounds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADS 8
#define SIZE 64
#define LENGTH 16384
#define MOST_ROUNDS 64
#define REPEAT 3 /* the best of so many */
#define LINE 16 /* floats */
#define ITEM_ROWS 384 /* whole blocks of a sieve */
#define MOST_STEP 48 /* products of a step of rows */

typedef struct Form {
    const char *id, *params;
    const char *numbers, *attends; /* stages */
    int64_t     sets, each;   /* heads that choose apart; a candidate begins every `each` keys */
    int64_t     depth, heads; /* factors of a product; products of a number, added with weights */
    int64_t     width;        /* of tiles; 1: keys one by one */
    bool        exponential;  /* the number is a weight */
} Form;

static const Form forms[] = {
    { "dsa", "topk=64", "choose", "attend", 1, 1, 16, 4, 1, false },
    { "quest", "page=16,budget=256", "choose", "attend", HEADS, 16, 2 * SIZE, 1, 16, false },
    { "moba", "block=64,topk=4", "choose", "attend", HEADS, 64, SIZE, 1, 64, false },
    { "topk", "", "choose", "attend", HEADS, 1, SIZE, 1, 1, false },
    { "nsa", "", "select", "selected", HEADS, 4, SIZE, 1, LANES, true },
};
#define FORMS (sizeof(forms) / sizeof(*forms))

/* Keys that a row chose side by side. */
typedef struct Piece {
    int32_t start, count;
} Piece;

typedef struct Lists {
    int64_t  sets;   /* 1: all heads share them */
    int64_t *offset; /* [sets LENGTH + 1] into piece */
    Piece   *piece;
    double   tiles;  /* of all heads */
} Lists;

/* Numbers in the caches, of a worker. */
typedef struct Scratch {
    float   q[MOST_STEP * 2 * SIZE], s[MOST_STEP * TILE_KEYS], top[TILE_ROWS * LANES];
    float   k[TILE_KEYS * SIZE], acc[TILE_ROWS * SIZE], weight[MOST_STEP], limit[TILE_KEYS];
    float   long_s[1 << 10];
    int32_t keys[1 << 10]; /* 0 .. TILE_KEYS - 1 again and again */
    float   max[TILE_ROWS], sum[TILE_ROWS], factor[TILE_ROWS];
    int64_t found;
} Scratch;

typedef struct Bench {
    Ops           ops; /* the CPU's, which note the cells of a stage */
    Arena        *arena, *runs;
    Threads      *threads;
    const Kernel *kernel;
    Tensor        q, k, v;
    float        *panels; /* of the candidates */
    Scratch      *scratch;
    Lists         lists[FORMS];
    const Form   *form;
    Lists        *of;
    const char   *stage;                    /* of the run under way */
    double        start, seconds[3], flops; /* of the stages numbers, attends and of all */
    _Atomic float sink;
} Bench;

/* ---- the mechanism ----------------------------------------------------------------- */

static void note_row(Lists *l, const PatternRow *row, int64_t at, int64_t width, bool fill)
{
    l->offset[at + 1] = l->offset[at] + row->count;
    for (int64_t x = 0; x < row->count; x++) {
        const PatternRun *run = &row->runs[x];

        if (fill)
            l->piece[l->offset[at] + x] = (Piece){ (int32_t)run->start, (int32_t)run->count };
        else
            l->tiles += (double)ceil_div(run->count, width) / TILE_ROWS;
    }
}

static void note_rows(Lists *l, const Pattern *cells, int64_t width, bool fill)
{
    PatternRow row = { 0 };

    for (int64_t at = 0; at < l->sets * LENGTH; at++) {
        pattern_row(cells, at / LENGTH, at % LENGTH, &row);
        note_row(l, &row, at, width, fill);
    }
    pattern_row_free(&row);
}

/* Takes the lists of the stage's cells; a bench without memory has none. */
static void note_cells(Bench *b, const Pattern *cells)
{
    Lists *l = b->of;

    l->sets = pattern_per_head(cells) ? HEADS : 1;
    l->offset = arena_zalloc(b->arena, l->sets * LENGTH + 1, (int64_t)sizeof(*l->offset));
    if (!l->offset)
        return;
    note_rows(l, cells, b->form->width, false);
    l->tiles *= (double)HEADS / (double)l->sets;
    l->piece = arena_alloc(b->arena, l->offset[l->sets * LENGTH], (int64_t)sizeof(*l->piece));
    if (l->piece)
        note_rows(l, cells, 1, true);
}

static void attend(Run *r, const AttendInput *in, const Pattern *pattern, AttendResult *out,
                   double *cells)
{
    Bench *b = r->spec.observer_context;

    if (!b->of->piece && b->stage && !strcmp(b->stage, b->form->attends))
        note_cells(b, pattern);
    ops_cpu()->attend(r, in, pattern, out, cells);
}

/* Adds the stage that ends. */
static void look(void *context, const Run *run, const Stage *stage)
{
    Bench *b = context;
    double now = clock_cpu();

    (void)run;
    if (b->stage && !strcmp(b->stage, b->form->numbers))
        b->seconds[0] += now - b->start;
    if (b->stage && !strcmp(b->stage, b->form->attends))
        b->seconds[1] += now - b->start;
    b->stage = stage ? stage->name : NULL;
    b->start = clock_cpu();
}

/* False: it failed. */
static bool run_form(Bench *b)
{
    Assignments given = { 0 };
    Error       err = { 0 };
    RunSpec     spec = { .mechanism = mechanism_find(b->form->id),
                         .q = b->q,
                         .k = b->k,
                         .v = b->v,
                         .given = &given,
                         .causal = true,
                         .threads = b->threads,
                         .seed = 1,
                         .ops = &b->ops,
                         .observer = look,
                         .observer_context = b };
    double      start = clock_cpu();
    Run *run = assignments_parse(&given, b->form->params, &err) ? run_new_in(&spec, b->runs) : NULL;
    bool ok;

    b->seconds[0] = b->seconds[1] = b->flops = 0;
    if (run)
        run_execute(run);
    b->seconds[2] = clock_cpu() - start;
    ok = run && run->err.code == ERR_NONE;
    if (!ok)
        fprintf(stderr, "choosing: %s: %s\n", b->form->id, run ? run->err.text : err.text);
    for (int x = 0; ok && x < run->stage_count; x++)
        b->flops += flops_total(run->stages[x].flops);
    run_free(run);
    assignments_free(&given);
    return ok;
}

/* ---- numbers alone ------------------------------------------------------------------- */

/* The fewest rows of which all products with a candidate fill whole tiles. */
static int64_t step_of(const Form *f)
{
    int64_t step = 1;

    while (step * f->heads % TILE_ROWS)
        step++;
    return step;
}

/* `rows` rows against a panel of candidates. */
static void number_rows(const Bench *b, Scratch *s, int64_t rows, const float *panel)
{
    const Form *f = b->form;
    float       sum[TILE_KEYS];

    for (int64_t y = 0; y < rows * f->heads; y += TILE_ROWS)
        b->kernel->score(s->q + y * f->depth, f->depth, panel, f->depth, NULL, 0, TILE_KEYS,
                         s->s + y * TILE_KEYS, TILE_KEYS, s->top);
    for (int64_t x = 0; x < rows; x++) {
        float *number = s->s + x * f->heads * TILE_KEYS;

        if (f->heads > 1)
            b->kernel->fold_heads(number, f->heads, s->weight, sum);
        if (f->exponential)
            b->kernel->exp2(number, TILE_KEYS, 1, 0);
        s->found +=
            __builtin_popcountll(b->kernel->at_least(f->heads > 1 ? sum : number, s->limit));
    }
}

/* Panels of each block of rows stay in the first-level cache, as in a sieve. */
static void number_item(void *context, int64_t item, int worker)
{
    const Bench *b = context;
    const Form  *f = b->form;
    int64_t      first = item % ceil_div(LENGTH, ITEM_ROWS) * ITEM_ROWS, step = step_of(f);
    int64_t      end = min_i64(LENGTH, first + ITEM_ROWS);

    (void)worker;
    for (int64_t row = first; row < end; row += SIEVE_ROWS) {
        int64_t rows = min_i64(SIEVE_ROWS, end - row), seen = (row + rows) / f->each;

        for (int64_t panel = 0; panel * TILE_KEYS < seen; panel++)
            for (int64_t x = 0; x < rows; x += step)
                number_rows(b, b->scratch, step, b->panels + panel * TILE_KEYS * f->depth);
    }
}

static double time_numbers(Bench *b)
{
    double start = clock_cpu();

    threads_run(b->threads, b->form->sets * ceil_div(LENGTH, ITEM_ROWS), number_item, b);
    return clock_cpu() - start;
}

/* ---- cells alone --------------------------------------------------------------------- */

static void cells_of_tile(const Bench *b, Scratch *s)
{
    int64_t width = round_up_to(b->form->width, LANES);

    b->kernel->score(s->q, SIZE, s->k, SIZE, NULL, 0, (int)width, s->s, TILE_KEYS, s->top);
    b->kernel->softmax(s->s, TILE_KEYS, TILE_ROWS, width, s->top, s->max, s->sum, s->factor);
    b->kernel->mix(s->s, TILE_KEYS, s->k, SIZE, b->form->width, SIZE, s->factor, s->acc, SIZE);
}

static void cells_of_row(const Bench *b, Scratch *s, int64_t count)
{
    int64_t padded = round_up_to(count, TILE_KEYS);

    b->kernel->dots(s->q, s->k, SIZE, s->keys, count, SIZE, s->long_s);
    b->kernel->softmax(s->long_s, padded, 1, padded, NULL, s->max, s->sum, s->factor);
    b->kernel->mix_row(s->long_s, s->k, SIZE, s->keys, count, SIZE, 1, s->acc);
}

static void cells_item(void *context, int64_t item, int worker)
{
    const Bench *b = context;
    const Lists *l = b->of;
    Scratch     *s = b->scratch;
    int64_t      items = HEADS * ceil_div(LENGTH, ITEM_ROWS);
    int64_t      at = item % (l->sets * ceil_div(LENGTH, ITEM_ROWS)) * ITEM_ROWS;

    (void)worker;
    for (int x = 0; x < TILE_ROWS; x++) {
        s->max[x] = -INFINITY;
        s->sum[x] = 0;
    }
    for (int64_t x = 0; b->form->width > 1 && x < (int64_t)(l->tiles / (double)items); x++)
        cells_of_tile(b, s);
    for (int64_t x = at; b->form->width == 1 && x < min_i64(at + ITEM_ROWS, l->sets * LENGTH); x++)
        cells_of_row(b, s, l->offset[x + 1] - l->offset[x]);
}

static double time_cells(Bench *b)
{
    double start = clock_cpu();

    threads_run(b->threads, HEADS * ceil_div(LENGTH, ITEM_ROWS), cells_item, b);
    return clock_cpu() - start;
}

/* ---- reading alone ------------------------------------------------------------------- */

typedef struct Reading {
    Bench       *b;
    const float *rows; /* [LENGTH,SIZE] of a head */
    int64_t      set, low, high; /* keys of a sweep */
} Reading;

static bool is_near(const Reading *x, int64_t key)
{
    return key >= x->low && key < x->high;
}

static void read_item(void *context, int64_t item, int worker)
{
    const Reading *x = context;
    const Lists   *l = x->b->of;
    int64_t        end = min_i64(LENGTH, (item + 1) * ITEM_ROWS);
    float          sum = 0;

    (void)worker;
    for (int64_t i = x->set * LENGTH + item * ITEM_ROWS; i < x->set * LENGTH + end; i++)
        for (int64_t p = l->offset[i]; p < l->offset[i + 1]; p++)
            for (int64_t c = 0; c < l->piece[p].count; c++)
                for (int64_t f = 0; f < SIZE && is_near(x, l->piece[p].start + c); f += LINE)
                    sum += x->rows[(l->piece[p].start + c) * SIZE + f];
    x->b->sink = sum; /* so that it is read at all */
}

/* A stretch of keys at a time. */
static double time_sweeps(Bench *b, int64_t keys)
{
    double start = clock_cpu();

    for (int64_t at = 0; at < 2 * HEADS; at++)
        for (int64_t low = 0; low < LENGTH; low += keys) {
            Reading x = { b, tensor_head(at % 2 ? &b->v : &b->k, at / 2, HEADS),
                          b->of->sets > 1 ? at / 2 : 0, low, low + keys };

            threads_run(b->threads, ceil_div(LENGTH, ITEM_ROWS), read_item, &x);
        }
    return clock_cpu() - start;
}

static double time_reading(Bench *b)
{
    return b->form->width > 1 ? 0 : fmin(time_sweeps(b, LENGTH), time_sweeps(b, LENGTH / 4));
}

/* ---- rounds ------------------------------------------------------------------------- */

enum { RUN, CHOICE, ATTEND, NUMBERS, CELLS, READING, SHARE, ALONE, FIGURES };

typedef struct Samples {
    double of[FORMS][FIGURES][MOST_ROUNDS]; /* ms; SHARE and ALONE: of the peak */
} Samples;

/* False: a run failed. */
static bool take(Bench *b, Samples *s, size_t at, int round)
{
    double best[READING + 1], peak = 0;

    b->form = &forms[at];
    b->of = &b->lists[at];
    for (int x = 0; x <= READING; x++)
        best[x] = INFINITY;
    for (int x = 0; x < REPEAT; x++) {
        peak = fmax(peak, bench_peak(b->threads));
        if (!run_form(b) || !b->of->piece)
            return false;
        best[RUN] = fmin(best[RUN], b->seconds[2]);
        best[CHOICE] = fmin(best[CHOICE], b->seconds[0]);
        best[ATTEND] = fmin(best[ATTEND], b->seconds[1]);
        best[NUMBERS] = fmin(best[NUMBERS], time_numbers(b));
        best[CELLS] = fmin(best[CELLS], time_cells(b));
        best[READING] = fmin(best[READING], time_reading(b));
    }
    for (int x = 0; x <= READING; x++)
        s->of[at][x][round] = 1e3 * best[x];
    s->of[at][SHARE][round] = b->flops / best[RUN] / peak;
    s->of[at][ALONE][round] =
        b->flops /
        (best[RUN] - best[CHOICE] - best[ATTEND] + best[NUMBERS] + best[CELLS] + best[READING]) /
        peak;
    return true;
}

static void print(Samples *s, int rounds)
{
    double m[FIGURES];

    printf("mechanisms that choose keys, n=%d h=%d d=%d f32 causal, 1 thread, processor time,\n"
           "median of %d rounds: ms, and share of the peak\n", LENGTH, HEADS, SIZE, rounds);
    for (size_t x = 0; x < FORMS; x++) {
        for (int f = 0; f < FIGURES; f++)
            m[f] = stats_quantile(s->of[x][f], rounds, 0.5);
        printf("  %-6s %4.0f, choice %4.0f (its numbers alone %4.0f), attention %4.0f (its cells "
               "alone %4.0f", forms[x].id, m[RUN], m[CHOICE], m[NUMBERS], m[ATTEND], m[CELLS]);
        if (forms[x].width == 1)
            printf(", reading alone %4.0f", m[READING]);
        printf("): %.2f, by these parts alone %.2f\n", m[SHARE], m[ALONE]);
    }
}

static void scratch_fill(Scratch *s, Rng *rng)
{
    rng_fill_normal(rng, s->q, MOST_STEP * 2 * SIZE, 0.1);
    rng_fill_normal(rng, s->k, TILE_KEYS * SIZE, 1);
    rng_fill_normal(rng, s->weight, MOST_STEP, 1);
    for (int32_t x = 0; x < 1 << 10; x++)
        s->keys[x] = x % TILE_KEYS;
    for (int x = 0; x < TILE_KEYS; x++)
        s->limit[x] = 1e30f;
}

static bool bench_init(Bench *b)
{
    Rng     rng = rng_named(1, "bench");
    int64_t floats = LENGTH * SIZE; /* the most candidates times their factors */
    Error   err = { 0 };

    *b = (Bench){ .ops = *ops_cpu(),
                  .arena = arena_new(),
                  .runs = arena_new(),
                  .threads = threads_new(1),
                  .kernel = kernel_at(0) };
    b->ops.attend = attend;
    if (!b->arena || !b->runs || !b->threads || !blas_ready(1, &err))
        return false;
    b->q = bench_normal(b->arena, &rng, HEADS, LENGTH, SIZE);
    b->k = bench_normal(b->arena, &rng, HEADS, LENGTH, SIZE);
    b->v = bench_normal(b->arena, &rng, HEADS, LENGTH, SIZE);
    b->panels = arena_alloc(b->arena, floats, (int64_t)sizeof(float));
    b->scratch = arena_zalloc(b->arena, 1, (int64_t)sizeof(*b->scratch));
    if (!b->v.data || !b->panels || !b->scratch)
        return false;
    rng_fill_normal(&rng, b->panels, floats, 1);
    scratch_fill(b->scratch, &rng);
    return true;
}

int main(int argc, char **argv)
{
    static Samples s;
    int            rounds = bench_rounds(argc, argv, 3, MOST_ROUNDS);
    bool           ok;
    Bench          bench;

    ok = bench_init(&bench);
    for (int round = -1; ok && round < rounds; round++) /* first touch is not work */
        for (size_t x = 0; ok && x < FORMS; x++)
            ok = take(&bench, &s, x, round < 0 ? 0 : round);
    if (ok)
        print(&s, rounds);
    else
        fprintf(stderr, "choosing: not enough memory, or a run failed\n");
    threads_free(bench.threads);
    arena_free(bench.runs);
    arena_free(bench.arena);
    return ok ? 0 : 1;
}
