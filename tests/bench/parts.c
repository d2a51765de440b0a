/* parts.c -- mechanisms beside their parts alone.
 *
 * Parts are what a stage cannot do without, as fast as this machine does it, on one thread, in
 * processor time, in turn with the mechanism:
 *
 *     tiles      scores, softmax and mixing of as many cells as the stage counts, in full tiles on
 *                numbers in the caches
 *     band       the same of so many neighbouring keys a row: a tile's rows see others, and tiles
 *                are made of whole vectors
 *     rows       tiles of a row at a time, where each row sees other keys
 *     numbers    products of rows with candidates that lie ready in panels, and one comparison of
 *                each number
 *     mixes      products of rows of shares with a strip in the caches
 *     codes      the nearest of some codes of bits, on codes in the caches
 *     wide       products of rows of HEADS SIZE numbers with a square matrix, in double
 *     reads      rows of 64 numbers from the memory, in order; scattered: in another order
 *     writes     rows of 64 numbers
 *
 * Stages without parts count as they are.  The bound is the larger of FLOPs / peak and bytes /
 * bandwidth of the whole run, as `attnscope roofline` counts them.
 *
 *     build/tests/bench/parts [rounds [mechanism]]
 */
#include "attn/cpu/attend.h"
#include "attn/cpu/blas.h"
#include "attn/cpu/cpu.h"
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
#define TOKENS (HEADS * LENGTH)
#define MOST_ROUNDS 64
#define MOST_PARTS 15
#define MOST_STAGES 8
#define REPEAT 2 /* the better of so many */
#define WIDEST 256 /* keys of a step */
#define CACHED 256 /* rows that stay in a cache */
#define ROW (HEADS * SIZE) /* numbers of a row of x */
#define STREAM (1 << 24) /* floats of an array of the triad */

typedef enum Kind { NONE, TILES, BAND, ROWS, NUMBERS, MIXES, CODES, WIDE, READS, SCATTERED,
               WRITES } Kind;

/* rows: of TILES, BAND and ROWS it is the stage's own count of cells.  width: keys of a step, of a
 * row, or candidates. */
typedef struct Part {
    const char *stage;
    Kind        kind;
    int64_t     rows, width;
} Part;

typedef struct Form {
    const char *id, *params;
    bool        causal, of_x; /* of_x: on x, LENGTH rows of HEADS SIZE, instead of q, k and v */
    Part        parts[MOST_PARTS]; /* those of a stage stand together */
} Form;

static const Form forms[] = {
    { "routing", "", false, false,
      { { "route", NUMBERS, TOKENS, 128 }, { "route", READS, TOKENS, 0 },
        { "attend", TILES, 0, 128 }, { "attend", SCATTERED, 2 * TOKENS, 0 },
        { "attend", WRITES, TOKENS, 0 },
        { "combine", SCATTERED, TOKENS, 0 }, { "combine", WRITES, TOKENS, 0 } } },
    { "sinkhorn", "", false, false,
      { { "sort blocks", MIXES, 2 * TOKENS, 256 }, { "sort blocks", READS, 2 * TOKENS, 0 },
        { "sort blocks", WRITES, 2 * TOKENS, 0 },
        { "attend", TILES, 0, 128 }, { "attend", READS, 5 * TOKENS, 0 },
        { "attend", WRITES, TOKENS, 0 } } },
    { "clustered", "", false, false,
      { { "hash", NUMBERS, TOKENS, 64 }, { "hash", READS, TOKENS, 0 },
        { "assign", CODES, 10 * TOKENS, 32 },
        { "means", READS, TOKENS, 0 },
        { "attend means", TILES, 0, 256 }, { "attend means", READS, 2 * TOKENS, 0 },
        { "broadcast", WRITES, TOKENS, 0 } } },
    { "clusterformer", "", false, false,
      { { "assign", NUMBERS, 11 * TOKENS, 128 }, { "assign", READS, 11 * TOKENS, 0 },
        { "move centroids", READS, 10 * TOKENS, 0 },
        { "attend", TILES, 0, 64 }, { "attend", SCATTERED, 3 * TOKENS, 0 },
        { "attend", WRITES, TOKENS, 0 },
        { "restore order", SCATTERED, TOKENS, 0 }, { "restore order", WRITES, TOKENS, 0 } } },
    { "reformer", "", false, false,
      { { "hash", NUMBERS, 4 * TOKENS, 256 }, { "hash", READS, TOKENS, 0 },
        { "attend", TILES, 0, 128 }, { "attend", SCATTERED, 4 * 5 * TOKENS, 0 },
        { "attend", WRITES, 4 * TOKENS, 0 },
        { "combine", SCATTERED, 4 * TOKENS, 0 }, { "combine", READS, 4 * TOKENS, 0 },
        { "combine", WRITES, 4 * TOKENS, 0 } } },
    { "long-short", "segment=256,rank=64", false, false,
      { { "project", MIXES, 2 * TOKENS, 256 }, { "project", READS, TOKENS, 0 },
        { "project", WRITES, TOKENS, 0 },
        { "compress", MIXES, TOKENS / 2, 256 }, { "compress", READS, 3 * TOKENS, 0 },
        { "attend", TILES, 0, 256 }, { "attend", READS, 3 * TOKENS, 0 },
        { "attend", WRITES, TOKENS, 0 } } },
    { "logsparse", "local=16", false, false,
      { { "attend", ROWS, 0, 0 }, { "attend", READS, 3 * TOKENS, 0 },
        { "attend", WRITES, TOKENS, 0 } } },
    { "block-local", "block=256", false, false,
      { { "attend", TILES, 0, 256 }, { "attend", READS, 3 * TOKENS, 0 },
        { "attend", WRITES, TOKENS, 0 } } },
    { "longformer", "window=257,global=4", false, false,
      { { "attend", BAND, 0, 257 }, { "attend", READS, 3 * TOKENS, 0 },
        { "attend", WRITES, TOKENS, 0 } } },
    { "bigbird", "block=64", false, false,
      { { "attend", TILES, 0, 64 }, { "attend", SCATTERED, 3 * 2 * TOKENS, 0 },
        { "attend", READS, 3 * TOKENS, 0 }, { "attend", WRITES, TOKENS, 0 } } },
    { "streaming-llm", "window=256", true, false,
      { { "attend", BAND, 0, 260 }, { "attend", READS, 3 * TOKENS, 0 },
        { "attend", WRITES, TOKENS, 0 } } },
    { "sparse-strided", "", false, false,
      { { "attend", BAND, 0, 256 }, { "attend", READS, 3 * TOKENS, 0 },
        { "attend", SCATTERED, 3 * TOKENS, 0 }, { "attend", WRITES, TOKENS, 0 } } },
    { "axial", "", false, false,
      { { "rows", TILES, 0, 128 }, { "rows", READS, 3 * TOKENS, 0 },
        { "rows", WRITES, TOKENS, 0 },
        { "columns", TILES, 0, 128 }, { "columns", SCATTERED, 3 * TOKENS, 0 },
        { "columns", WRITES, TOKENS, 0 } } },
    { "perceiver", "", false, false,
      { { "cross-attend", TILES, 0, 256 }, { "cross-attend", READS, 2 * TOKENS, 0 } } },
    { "luna", "", false, false,
      { { "pack", TILES, 0, 256 }, { "pack", READS, 2 * TOKENS, 0 },
        { "unpack", TILES, 0, 16 }, { "unpack", READS, TOKENS, 0 },
        { "unpack", WRITES, TOKENS, 0 } } },
    { "nystrom", "", false, false,
      { { "landmarks", READS, 2 * TOKENS, 0 },
        { "F3 landmarks to keys", TILES, 0, 256 },
        { "F3 landmarks to keys", READS, 2 * TOKENS, 0 },
        { "F1 queries to landmarks", NUMBERS, TOKENS, 64 },
        { "F1 queries to landmarks", MIXES, TOKENS, 64 },
        { "F1 queries to landmarks", READS, TOKENS, 0 },
        { "F1 queries to landmarks", WRITES, TOKENS, 0 },
        { "mix", MIXES, TOKENS, 64 }, { "mix", READS, TOKENS, 0 },
        { "mix", WRITES, TOKENS, 0 } } },
    { "performer", "", false, false,
      { { "state and read", NUMBERS, 2 * TOKENS, 256 },
        { "state and read", MIXES, 2 * TOKENS, 256 }, { "state and read", READS, 3 * TOKENS, 0 },
        { "state and read", WRITES, TOKENS, 0 } } },
    { "rfa", "", false, false,
      { { "state and read", NUMBERS, 2 * TOKENS, 64 },
        { "state and read", MIXES, 2 * TOKENS, 128 }, { "state and read", READS, 3 * TOKENS, 0 },
        { "state and read", WRITES, TOKENS, 0 } } },
    { "linear", "", true, false,
      { { "state and read", MIXES, 2 * TOKENS, 64 }, { "state and read", READS, 3 * TOKENS, 0 },
        { "state and read", WRITES, TOKENS, 0 } } },
    { "adaptive-span", "", false, false,
      { { "attend", BAND, 0, 65 }, { "attend", READS, 3 * TOKENS, 0 },
        { "attend", WRITES, TOKENS, 0 } } },
    { "poolingformer", "", false, false,
      { { "window", BAND, 0, 7 }, { "window", READS, 3 * TOKENS, 0 },
        { "window", WRITES, TOKENS, 0 },
        { "pool", READS, 2 * TOKENS, 0 },
        { "pooled", BAND, 0, 9 }, { "pooled", READS, TOKENS, 0 }, { "pooled", WRITES, TOKENS, 0 },
        { "add", READS, 2 * TOKENS, 0 }, { "add", WRITES, TOKENS, 0 } } },
    { "tokenlearner", "", false, true,
      { { "maps", MIXES, TOKENS, 64 }, { "maps", READS, TOKENS, 0 },
        { "pool", READS, TOKENS, 0 } } },
    { "clustered-improved", "", false, false,
      { { "hash", NUMBERS, TOKENS, 64 }, { "hash", READS, TOKENS, 0 },
        { "assign", CODES, 10 * TOKENS, 32 },
        { "means", READS, TOKENS, 0 },
        { "choose keys", NUMBERS, TOKENS, 32 }, { "choose keys", READS, TOKENS, 0 },
        { "attend means", TILES, 0, 256 }, { "attend means", READS, 2 * TOKENS, 0 },
        { "attend chosen keys", TILES, 0, 32 }, { "attend chosen keys", READS, TOKENS, 0 },
        { "attend chosen keys", WRITES, TOKENS, 0 },
        { "combine", READS, TOKENS, 0 }, { "combine", WRITES, TOKENS, 0 } } },
    { "set-isab", "", false, true,
      { { "points read the set", WIDE, 2 * LENGTH, 0 },
        { "points read the set", READS, TOKENS, 0 },
        { "the set reads the points", WIDE, 2 * LENGTH, 0 },
        { "the set reads the points", READS, TOKENS, 0 },
        { "the set reads the points", WRITES, TOKENS, 0 } } },
    { "etc", "radius=64,global=64", false, false,
      { { "gather", READS, 2 * TOKENS, 0 }, { "gather", WRITES, 2 * TOKENS, 0 },
        { "tokens attend", BAND, 0, 193 }, { "tokens attend", READS, 3 * TOKENS, 0 },
        { "tokens attend", WRITES, TOKENS, 0 },
        { "globals attend", TILES, 0, 256 }, { "globals attend", READS, 2 * TOKENS, 0 } } },
    { "h2o", "", true, false,
      { { "evict", READS, TOKENS, 0 }, { "attend", ROWS, 0, 0 }, { "attend", READS, 3 * TOKENS, 0 },
        { "attend", WRITES, TOKENS, 0 } } },
    { "vertical-slash", "", true, false,
      { { "estimate", NUMBERS, TOKENS, 64 }, { "estimate", READS, TOKENS, 0 },
        { "attend", ROWS, 0, 0 }, { "attend", READS, 3 * TOKENS, 0 },
        { "attend", WRITES, TOKENS, 0 } } },
};
#define FORMS (sizeof(forms) / sizeof(*forms))

/* Numbers in the caches. */
typedef struct Scratch {
    float   q[TILE_ROWS * SIZE], top[TILE_ROWS * LANES], acc[TILE_ROWS * SIZE];
    float   s[TILE_ROWS * WIDEST], share[TILE_ROWS * WIDEST], limit[TILE_KEYS];
    float   panel[WIDEST * SIZE], v[WIDEST * SIZE], rows[CACHED * SIZE];
    int32_t keys[WIDEST], nearest[CACHED];
    int64_t code[CACHED], centre[CACHED], found;
    float   max[TILE_ROWS], sum[TILE_ROWS], factor[TILE_ROWS];
} Scratch;

typedef struct Bench {
    Arena        *arena, *runs;
    Threads      *threads;
    const Kernel *kernel;
    Tensor        q, k, v;
    float        *out;   /* [TOKENS][SIZE] */
    int32_t      *order; /* [LENGTH] a permutation */
    Scratch      *scratch;
    float        *far[3]; /* [STREAM] */
    double       *left, *square, *product; /* [CACHED][ROW], [ROW][ROW], [CACHED][ROW] */
    const Form   *form;
    const char   *stage[MOST_STAGES]; /* of the form, each once */
    int           stages, at;         /* at: of the run under way; -1: another stage */
    double        start, seconds[MOST_STAGES], cells[MOST_STAGES], whole, flops, bytes;
} Bench;

/* ---- the mechanism ----------------------------------------------------------------- */

static int stage_of(const Bench *b, const char *name)
{
    for (int x = 0; x < b->stages; x++)
        if (!strcmp(b->stage[x], name))
            return x;
    return -1;
}

static void take_form(Bench *b, const Form *form)
{
    b->form = form;
    b->stages = 0;
    for (const Part *p = form->parts; p < form->parts + MOST_PARTS && p->kind; p++)
        if (stage_of(b, p->stage) < 0)
            b->stage[b->stages++] = p->stage;
}

static void look(void *context, const Run *run, const Stage *stage)
{
    Bench *b = context;
    double now = clock_cpu();

    (void)run;
    if (b->at >= 0)
        b->seconds[b->at] += now - b->start;
    b->at = stage ? stage_of(b, stage->name) : -1;
    b->start = clock_cpu();
}

static void add_stage(Bench *b, const Stage *stage)
{
    int at = stage_of(b, stage->name);

    b->flops += flops_total(stage->flops);
    b->bytes += stage->bytes.read + stage->bytes.written;
    if (at >= 0)
        b->cells[at] += stage->flops.mix / (2 * SIZE);
}

/* False: it failed. */
static bool run_form(Bench *b)
{
    Assignments given = { 0 };
    Error       err = { 0 };
    Tensor      tokens = tensor_of(DT_F32, 2, (int64_t[]){ LENGTH, HEADS * SIZE }, b->v.data);
    RunSpec     spec = { .mechanism = mechanism_find(b->form->id),
                         .q = b->form->of_x ? (Tensor){ 0 } : b->q,
                         .k = b->form->of_x ? (Tensor){ 0 } : b->k,
                         .v = b->form->of_x ? (Tensor){ 0 } : b->v,
                         .x = b->form->of_x ? tokens : (Tensor){ 0 },
                         .given = &given,
                         .causal = b->form->causal,
                         .threads = b->threads,
                         .seed = 1,
                         .observer = look,
                         .observer_context = b };
    double      start = clock_cpu();
    Run *run = assignments_parse(&given, b->form->params, &err) ? run_new_in(&spec, b->runs) : NULL;
    bool ok;

    b->at = -1;
    b->flops = b->bytes = 0;
    memset(b->seconds, 0, sizeof(b->seconds));
    memset(b->cells, 0, sizeof(b->cells));
    if (run)
        run_execute(run);
    b->whole = clock_cpu() - start;
    ok = run && run->err.code == ERR_NONE;
    if (!ok)
        fprintf(stderr, "parts: %s: %s\n", b->form->id, run ? run->err.text : err.text);
    for (int x = 0; ok && x < run->stage_count; x++)
        add_stage(b, &run->stages[x]);
    run_free(run);
    assignments_free(&given);
    return ok;
}

/* ---- parts that compute -------------------------------------------------------------- */

static void empty_rows(Scratch *s)
{
    for (int r = 0; r < TILE_ROWS; r++) {
        s->max[r] = -INFINITY;
        s->sum[r] = 0;
    }
}

static void take_tiles(const Bench *b, double cells, int64_t width)
{
    Scratch *s = b->scratch;

    for (double left = cells; left > 0; left -= (double)(TILE_ROWS * width)) {
        for (int x = 0; x < TILE_ROWS * LANES; x++)
            s->top[x] = -INFINITY;
        for (int64_t c = 0; c < width; c += TILE_KEYS)
            b->kernel->score(s->q, SIZE, s->panel + c * SIZE, SIZE, NULL, 0,
                             (int)min_i64(TILE_KEYS, width), s->s + c, WIDEST, s->top);
        b->kernel->softmax(s->s, WIDEST, TILE_ROWS, width, s->top, s->max, s->sum, s->factor);
        b->kernel->mix(s->s, WIDEST, s->v, SIZE, width, SIZE, s->factor, s->acc, SIZE);
    }
}

/* Cells that a tile computes for each that its rows see. */
static double widened(int64_t width)
{
    return (double)(width + TILE_ROWS + LANES) / (double)width;
}

static void take_rows(const Bench *b, double cells)
{
    Scratch *s = b->scratch;
    int64_t  count = (int64_t)(cells / TOKENS + 0.5), padded = round_up_to(count, LANES);

    for (int64_t i = 0; i < TOKENS && count <= WIDEST; i++) {
        b->kernel->dots(s->q, s->v, SIZE, s->keys, count, SIZE, s->s);
        b->kernel->softmax(s->s, padded, 1, padded, NULL, s->max, s->sum, s->factor);
        b->kernel->mix_row(s->s, s->v, SIZE, s->keys, count, SIZE, s->factor[0], s->acc);
    }
}

static void take_numbers(const Bench *b, int64_t rows, int64_t width)
{
    Scratch *s = b->scratch;

    for (int64_t i = 0; i < rows; i += TILE_ROWS)
        for (int64_t c = 0; c < width; c += TILE_KEYS) {
            b->kernel->score(s->q, SIZE, s->panel + c * SIZE, SIZE, NULL, 0, TILE_KEYS, s->s,
                             TILE_KEYS, s->top);
            for (int r = 0; r < TILE_ROWS; r++)
                s->found += (int64_t)b->kernel->at_least(s->s + r * TILE_KEYS, s->limit);
        }
}

static void take_mixes(const Bench *b, int64_t rows, int64_t width)
{
    Scratch *s = b->scratch;

    for (int64_t i = 0; i < rows; i += TILE_ROWS)
        b->kernel->mix(s->share, width, s->v, SIZE, width, SIZE, s->factor, s->acc, SIZE);
}

static void take_codes(const Bench *b, int64_t rows, int64_t width)
{
    Scratch *s = b->scratch;

    for (int64_t i = 0; i < rows; i += CACHED)
        b->kernel->nearest_codes(s->code, CACHED, s->centre, width, s->nearest);
}

static void take_wide(const Bench *b, int64_t rows)
{
    for (int64_t i = 0; i < rows; i += CACHED)
        cpu_dgemm((WideMatrix){ b->left, ROW, false }, (WideMatrix){ b->square, ROW, false },
                  CACHED, ROW, ROW, 1, 0, b->product, ROW);
}

/* ---- parts that move ------------------------------------------------------------------ */

/* Rows of q, k and v in turn, head by head, into the caches. */
static void take_reads(const Bench *b, int64_t rows, bool scattered)
{
    const float *from[] = { b->k.data, b->v.data, b->q.data };

    for (int64_t i = 0; i < rows; i++) {
        int64_t head = i / LENGTH, at = scattered ? b->order[i % LENGTH] : i % LENGTH;

        memcpy(b->scratch->rows + i % CACHED * SIZE,
               from[head / HEADS % 3] + (head % HEADS * LENGTH + at) * SIZE,
               SIZE * sizeof(float));
    }
}

static void take_writes(const Bench *b, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        memcpy(b->out + i % TOKENS * SIZE, b->scratch->rows + i % CACHED * SIZE,
               SIZE * sizeof(float));
}

static void take_part(const Bench *b, const Part *p)
{
    double cells = b->cells[stage_of(b, p->stage)];

    empty_rows(b->scratch);
    switch (p->kind) {
    case NONE: break;
    case TILES: take_tiles(b, cells, p->width); break;
    case BAND: take_tiles(b, cells * widened(p->width), WIDEST); break;
    case ROWS: take_rows(b, cells); break;
    case NUMBERS: take_numbers(b, p->rows, p->width); break;
    case MIXES: take_mixes(b, p->rows, p->width); break;
    case CODES: take_codes(b, p->rows, p->width); break;
    case WIDE: take_wide(b, p->rows); break;
    case READS: take_reads(b, p->rows, false); break;
    case SCATTERED: take_reads(b, p->rows, true); break;
    case WRITES: take_writes(b, p->rows); break;
    }
}

/* Bytes a second of processor time, as cpu_ceilings measures them by the clock. */
static double stream_of(const Bench *b)
{
    double start = clock_cpu();

    for (int64_t i = 0; i < STREAM; i++)
        b->far[0][i] = b->far[1][i] + 0.5f * b->far[2][i];
    return 3 * (double)STREAM * sizeof(float) / (clock_cpu() - start);
}

/* ---- rounds ------------------------------------------------------------------------- */

/* ms; shares of the bound. */
typedef struct Samples {
    double stage[FORMS][MOST_STAGES][MOST_ROUNDS], alone[FORMS][MOST_STAGES][MOST_ROUNDS];
    double whole[FORMS][MOST_ROUNDS], share[FORMS][MOST_ROUNDS], parts[FORMS][MOST_ROUNDS];
} Samples;

typedef struct Best {
    double stage[MOST_STAGES], alone[MOST_STAGES], whole, peak, stream;
} Best;

static void take_parts(Bench *b, Best *best)
{
    double alone[MOST_STAGES] = { 0 };

    for (const Part *p = b->form->parts; p < b->form->parts + MOST_PARTS && p->kind; p++) {
        double start = clock_cpu();

        take_part(b, p);
        alone[stage_of(b, p->stage)] += clock_cpu() - start;
    }
    for (int x = 0; x < b->stages; x++) {
        best->stage[x] = fmin(best->stage[x], b->seconds[x]);
        best->alone[x] = fmin(best->alone[x], alone[x]);
    }
}

/* False: a run failed. */
static bool take(Bench *b, Samples *s, size_t at, int round)
{
    Best   best = { .whole = INFINITY };
    double bound, rest;

    take_form(b, &forms[at]);
    for (int x = 0; x < MOST_STAGES; x++)
        best.stage[x] = best.alone[x] = INFINITY;
    for (int x = 0; x < REPEAT; x++) {
        best.peak = fmax(best.peak, bench_peak(b->threads));
        best.stream = fmax(best.stream, stream_of(b));
        if (!run_form(b))
            return false;
        best.whole = fmin(best.whole, b->whole);
        take_parts(b, &best);
    }
    bound = fmax(b->flops / best.peak, b->bytes / best.stream);
    rest = best.whole;
    for (int x = 0; x < b->stages; x++) {
        s->stage[at][x][round] = 1e3 * best.stage[x];
        s->alone[at][x][round] = 1e3 * best.alone[x];
        rest += fmin(0, best.alone[x] - best.stage[x]); /* rows may stay in a cache */
    }
    s->whole[at][round] = 1e3 * best.whole;
    s->share[at][round] = bound / best.whole;
    s->parts[at][round] = bound / rest;
    return true;
}

static bool is_asked(size_t form, const char *only)
{
    return !only || !strcmp(only, forms[form].id);
}

/* False with a message. */
static bool check_asked(const char *only)
{
    for (size_t f = 0; f < FORMS; f++)
        if (is_asked(f, only))
            return true;
    fprintf(stderr, "parts: '%s' is none of", only);
    for (size_t f = 0; f < FORMS; f++)
        fprintf(stderr, "%s %s", f ? "," : "", forms[f].id);
    fprintf(stderr, "\n");
    return false;
}

static void print(Bench *b, Samples *s, int rounds, const char *only)
{
    printf("mechanisms beside their parts, n=%d h=%d d=%d f32, 1 thread, processor time, median of "
           "%d rounds: ms, and share of the bound\n", LENGTH, HEADS, SIZE, rounds);
    for (size_t f = 0; f < FORMS; f++) {
        if (!is_asked(f, only))
            continue;
        take_form(b, &forms[f]);
        printf("  %-14s%s %5.0f: %.2f, by its parts alone %.2f;", forms[f].id,
               forms[f].causal ? " --causal" : "",
               stats_quantile(s->whole[f], rounds, 0.5), stats_quantile(s->share[f], rounds, 0.5),
               stats_quantile(s->parts[f], rounds, 0.5));
        for (int x = 0; x < b->stages; x++)
            printf("%s %s %.1f (alone %.1f)", x ? "," : "", b->stage[x],
                   stats_quantile(s->stage[f][x], rounds, 0.5),
                   stats_quantile(s->alone[f][x], rounds, 0.5));
        printf("\n");
    }
}

static void scratch_fill(Scratch *s, Rng *rng)
{
    rng_fill_normal(rng, s->q, TILE_ROWS * SIZE, 0.1);
    rng_fill_normal(rng, s->panel, WIDEST * SIZE, 1);
    rng_fill_normal(rng, s->v, WIDEST * SIZE, 1);
    rng_fill_normal(rng, s->share, TILE_ROWS * WIDEST, 0.1);
    for (int x = 0; x < CACHED; x++) {
        s->code[x] = (int64_t)rng_next(rng);
        s->centre[x] = (int64_t)rng_next(rng);
    }
    for (int32_t x = 0; x < WIDEST; x++)
        s->keys[x] = x;
    for (int x = 0; x < TILE_KEYS; x++)
        s->limit[x] = 1e30f;
}

/* A random permutation. */
static void shuffle(int32_t *order, Rng *rng)
{
    for (int32_t x = 0; x < LENGTH; x++) {
        int64_t y = (int64_t)rng_below(rng, (uint64_t)x + 1);

        order[x] = order[y];
        order[y] = x;
    }
}

static bool bench_init(Bench *b)
{
    Rng   rng = rng_named(1, "bench");
    Error err = { 0 };

    *b = (Bench){ .arena = arena_new(),
                  .runs = arena_new(),
                  .threads = threads_new(1),
                  .kernel = kernel_at(0) };
    if (!b->arena || !b->runs || !b->threads || !blas_ready(1, &err))
        return false;
    for (int x = 0; x < 3; x++)
        if (!(b->far[x] = arena_zalloc(b->arena, STREAM, (int64_t)sizeof(float))))
            return false;
    b->q = bench_normal(b->arena, &rng, HEADS, LENGTH, SIZE);
    b->k = bench_normal(b->arena, &rng, HEADS, LENGTH, SIZE);
    b->v = bench_normal(b->arena, &rng, HEADS, LENGTH, SIZE);
    b->out = arena_alloc(b->arena, TOKENS, SIZE * (int64_t)sizeof(float));
    b->order = arena_alloc(b->arena, LENGTH, (int64_t)sizeof(int32_t));
    b->scratch = arena_zalloc(b->arena, 1, (int64_t)sizeof(*b->scratch));
    b->left = arena_zalloc(b->arena, CACHED * ROW, (int64_t)sizeof(double));
    b->square = arena_zalloc(b->arena, ROW * ROW, (int64_t)sizeof(double));
    b->product = arena_zalloc(b->arena, CACHED * ROW, (int64_t)sizeof(double));
    if (!b->v.data || !b->out || !b->order || !b->scratch || !b->left || !b->square || !b->product)
        return false;
    scratch_fill(b->scratch, &rng);
    shuffle(b->order, &rng);
    return true;
}

int main(int argc, char **argv)
{
    static Samples s;
    int            rounds = bench_rounds(argc, argv, 3, MOST_ROUNDS);
    const char    *only = argc > 2 ? argv[2] : NULL;
    bool           ok;
    Bench          bench;

    if (!check_asked(only))
        return 2;
    ok = bench_init(&bench);
    for (int round = -1; ok && round < rounds; round++) /* first touch is not work */
        for (size_t x = 0; ok && x < FORMS; x++)
            ok = !is_asked(x, only) || take(&bench, &s, x, round < 0 ? 0 : round);
    if (ok)
        print(&bench, &s, rounds, only);
    else
        fprintf(stderr, "parts: not enough memory, or a run failed\n");
    threads_free(bench.threads);
    arena_free(bench.runs);
    arena_free(bench.arena);
    return ok ? 0 : 1;
}
