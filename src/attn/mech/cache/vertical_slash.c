/* vertical_slash.c -- MInference: columns and diagonals, estimated from the last queries.
 *
 * Per query head, with W the causal softmax of the last_q last rows:
 *
 *     col_j  = sum over these rows of W_ij           diag_o = sum of W_i,i-o
 *     columns:    the first keep_first, then the largest col, `vertical` in all
 *     diagonals:  the nearest keep_recent, then the largest diag, `slash` in all
 *     A_i = { j <= i: j is a column, or i - j a diagonal },  one softmax over A_i
 *
 * The choice is made in double.  Ties: the lower index.  A far diagonal crosses fewer of the last
 * rows and scores lower, as in the paper.
 */
#include <math.h>
#include <string.h>

#include "attn/ops/weights.h"
#include "attn/run.h"
#include "core/threads.h"

typedef struct Params {
    int64_t last_q, vertical, slash, keep_first, keep_recent;
    double  scale, softcap;
} Params;

static const Param params[] = {
    PARAM_INT(Params, last_q, 8, 1, PARAM_COUNT_MAX, "last queries that the choice is made by"),
    PARAM_INT(Params, vertical, 4, 0, PARAM_COUNT_MAX, "columns that are kept"),
    PARAM_INT(Params, slash, 4, 0, PARAM_COUNT_MAX, "diagonals that are kept"),
    PARAM_INT(Params, keep_first, 2, 0, PARAM_COUNT_MAX,
              "first columns that are kept always, counted in `vertical`"),
    PARAM_INT(Params, keep_recent, 2, 0, PARAM_COUNT_MAX,
              "nearest diagonals that are kept always, counted in `slash`"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

/* Lines of one direction: how many, and how many of these are fixed. */
typedef struct Lines {
    int64_t     count, fixed;
    double     *score; /* [h,n] */
    Tensor      index; /* i32 [h,count], increasing */
    const char *scores, *chosen; /* names of views */
} Lines;

/* Queries that the choice is made by: of those there are. */
static int64_t rows_of(const Run *r, const Params *p)
{
    return min_i64(p->last_q, r->at_end ? r->at_end : r->n);
}

static void warn_of_rows(Run *r, const Params *p)
{
    if (r->at_end && rows_of(r, p) < p->last_q)
        run_warn(r, "vertical-slash: last_q=%lld, but the input has the last %lld queries only: "
                 "the lines are chosen by these", (long long)p->last_q, (long long)r->at_end);
}

static int64_t rows_of(const Run *r, const Params *p);
static void warn_of_rows(Run *r, const Params *p);
static Lines lines_of(const Run *r, int64_t wanted, int64_t fixed);
static void estimate(Run *r, const AttendInput *in, int64_t rows, double *col, double *diag);
static void choose(Run *r, Lines *l);
static void show_lines(Run *r, const Lines *l);
static double estimated_pairs(const Run *r, const Params *p);

static const char *const kinds[8] = { NULL, "column", NULL, "diagonal" };

static void vertical_slash_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    PatternShape  s = { .heads = r->h, .n = r->n, .m = r->n };
    AttendInput   in = run_attend_input_allowed(r, p->scale);
    Lines         columns = lines_of(r, p->vertical, p->keep_first);
    Lines         diagonals = lines_of(r, p->slash, p->keep_recent);
    Pattern      *cells;

    warn_of_rows(r, p);
    run_looks_ahead(r, "the lines are chosen by the last queries, as at the end of a prompt");
    run_stage(r, "estimate");
    columns.score = run_alloc(r, r->h * r->n, sizeof(double));
    diagonals.score = run_alloc(r, r->h * r->n, sizeof(double));
    columns.scores = "vertical_scores";
    diagonals.scores = "slash_scores";
    columns.chosen = "columns";
    diagonals.chosen = "diagonals";
    op_wait(r, "the host adds up the last rows");
    estimate(r, &in, rows_of(r, p), columns.score, diagonals.score);
    op_charge(r, FLOP_OVERHEAD, estimated_pairs(r, p));
    op_traffic(r, 4 * (double)(r->h * rows_of(r, p) * r->d) +
                      (double)tensor_bytes(&in.k), 16 * (double)(r->h * r->n));
    run_stage(r, "choose");
    choose(r, &columns);
    choose(r, &diagonals);
    op_wait(r, "rows are made of the chosen lines");
    cells = pattern_finish(r->arena, s, pattern_lines(r->arena, s, &columns.index,
                                                      &diagonals.index), false);
    cells = run_last_rows(r, cells);
    run_stage(r, "attend");
    run_attend_cells(r, &in, cells, kinds);
    run_masses(r, &in, cells);
}

static Lines lines_of(const Run *r, int64_t wanted, int64_t fixed)
{
    return (Lines){ .count = min_i64(max_i64(wanted, fixed), r->m),
                    .fixed = min_i64(fixed, r->m) };
}

/* ---- the last rows --------------------------------------------------------------------- */

#define PARTS_MOST 8 /* of a head's last rows: each part has sums of its own */
#define PART_ROWS 8  /* at least */

typedef struct Estimate {
    const AttendInput *in;
    int64_t            h, n, rows, part_rows, parts;
    int64_t            offset; /* position of query 0 */
    double            *sums; /* [h,parts,2,n] of columns, of diagonals */
    double            *work; /* [workers, n + d] */
} Estimate;

static void add_row(double *score, int64_t i, double *col, double *diag)
{
    double sum = attend_soften(score, i + 1);

    for (int64_t j = 0; j <= i; j++) {
        col[j] += score[j] / sum;
        diag[i - j] += score[j] / sum;
    }
}

static void estimate_item(void *context, int64_t item, int worker)
{
    const Estimate *e = context;
    int64_t  head = item / e->parts, n = e->n, first = n - e->rows + item % e->parts * e->part_rows;
    double  *col = e->sums + item * 2 * n, *score = e->work + worker * (n + e->in->q.shape[2]);

    memset(col, 0, (size_t)(2 * n) * sizeof(*col));
    for (int64_t i = first; i < min_i64(first + e->part_rows, n); i++) {
        attend_scores(e->in, e->h, head, i - e->offset, i + 1, score + n, score);
        add_row(score, i, col, col + n);
    }
}

/* Parts in their order, so that the sums do not depend on the threads. */
static void add_parts(const Estimate *e, int64_t which, double *out)
{
    memset(out, 0, (size_t)(e->h * e->n) * sizeof(*out));
    for (int64_t item = 0; item < e->h * e->parts; item++) {
        const double *part = e->sums + (2 * item + which) * e->n;
        double       *to = out + item / e->parts * e->n;

        for (int64_t x = 0; x < e->n; x++)
            to[x] += part[x];
    }
}

static void estimate(Run *r, const AttendInput *in, int64_t rows, double *col, double *diag)
{
    int64_t  parts = min_i64(PARTS_MOST, (rows + PART_ROWS - 1) / PART_ROWS);
    Estimate e = { .in = in, .h = r->h, .n = r->n, .rows = rows, .parts = parts,
                   .offset = r->q_offset,
                   .part_rows = (rows + parts - 1) / parts };

    e.sums = run_alloc(r, r->h * parts * 2 * r->n, sizeof(*e.sums));
    e.work = run_alloc(r, threads_count(r->threads) * (r->n + r->d), sizeof(*e.work));
    if (run_failed(r))
        return;
    threads_run(r->threads, r->h * parts, estimate_item, &e);
    add_parts(&e, 0, col);
    add_parts(&e, 1, diag);
}

/* ---- the choice -------------------------------------------------------------------------- */

static void choose(Run *r, Lines *l)
{
    Tensor scores = run_tensor3(r, DT_F64, r->h, r->n, 1);

    if (!run_failed(r))
        memcpy(scores.data, l->score, (size_t)(r->h * r->n) * sizeof(*l->score));
    for (int64_t x = 0; x < r->h * r->n && !run_failed(r); x++)
        if (x % r->n < l->fixed)
            tensor_f64(&scores)[x] = (double)INFINITY;
    l->index = op_top_k(r, scores, l->count);
    l->index = tensor_of(DT_I32, 2, (int64_t[]){ r->h, l->count }, l->index.data);
    op_wait(r, "the chosen lines");
    show_lines(r, l);
}

static void show_lines(Run *r, const Lines *l)
{
    Tensor scores, chosen;

    if (!run_wants_views(r))
        return;
    scores = run_tensor2(r, DT_F32, r->h, r->n);
    chosen = run_tensor2(r, DT_U8, r->h, r->n);
    if (run_failed(r))
        return;
    memset(chosen.data, 0, (size_t)tensor_bytes(&chosen));
    for (int64_t x = 0; x < r->h * r->n; x++)
        tensor_f32(&scores)[x] = (float)l->score[x];
    for (int64_t x = 0; x < r->h * l->count; x++) {
        int32_t at = tensor_i32(&l->index)[x];

        tensor_u8(&chosen)[x / l->count * r->n + at] = at < l->fixed ? 2 : 1;
    }
    view_tensor(r, l->scores, VIEW_TENSOR, scores, "head", "line");
    view_tensor(r, l->chosen, VIEW_BUCKETS, chosen, "head", "line");
}

/* ---- the rest ---------------------------------------------------------------------------- */

/* FLOPs of the estimate: scores, a softmax and two sums of each pair of the last rows. */
static double estimated_pairs(const Run *r, const Params *p)
{
    double rows = (double)rows_of(r, p), n = (double)r->m;
    double pairs = (double)r->h * rows * (n - (rows - 1) / 2);

    return pairs * (2 * (double)r->d + run_pattern_flops(r, 1).overhead + 2);
}

/* No row has more cells than lines, or than keys up to its own. */
static Flops vertical_slash_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        lines = (double)(lines_of(r, p->vertical, p->keep_first).count +
                            lines_of(r, p->slash, p->keep_recent).count);
    double        n = (double)r->n, most = fmin(lines, n);
    Flops         f = run_pattern_flops(r, (double)r->h * (most * n - most * (most - 1) / 2));

    if (r->n == r->m) /* once, not for the rows before the queries */
        f.overhead += estimated_pairs(r, p);
    return f;
}

/* The prompt alone is sparse. */
static DecodeCost vertical_slash_decode(const Run *r, const void *opaque)
{
    (void)opaque;
    return decode_dense(r);
}

static const char *const choices[] = { "not kept", "chosen", "fixed", NULL };

static const StageNote notes[] = {
    { "estimate",
      "The last queries attend to all keys.  Their weights are added up down each column and along "
      "each diagonal." },
    { "choose",
      "Columns and diagonals with the largest sums are kept; the first columns and the nearest "
      "diagonals always are." },
    { "attend", "Every query attends to the kept columns and to its keys on the kept diagonals." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEWS_OF_PATTERN,
    VIEWS_OF_MASSES,
    VIEW("vertical_scores", VIEW_TENSOR, "attention of the last queries in each column",
         .curve = { .x = "column", .y = "sum of weights", .by_rows = true }),
    VIEW("slash_scores", VIEW_TENSOR, "attention of the last queries on each diagonal",
         .curve = { .x = "distance", .y = "sum of weights", .by_rows = true }),
    VIEW("columns", VIEW_BUCKETS, "1: chosen, 2: fixed", .categories = choices),
    VIEW("diagonals", VIEW_BUCKETS, "1: chosen, 2: fixed; by distance", .categories = choices),
    VIEW_PROMISE_END
};

const Mechanism mech_vertical_slash = {
    .id = "vertical-slash",
    .title = "Vertical-slash (MInference)",
    .authors = "Jiang et al.",
    .year = 2024,
    .arxiv = "2407.02490",
    .source = "paper, section 3 and algorithm 2; microsoft/MInference "
              "minference_forward.py (the exact lines, not rounded to blocks)",
    .formula = "A_i = { j <= i: j in columns, or i - j in diagonals }\n"
               "both from sums of the softmax of the last_q last rows\n"
               "output = softmax over A of Q K^T / sqrt(d), times V",
    .problem = "Reading a long prompt costs a square of its length before the first token "
               "comes out, though few weights are large.",
    .idea = "Large weights lie on a few columns and diagonals, which the last queries show: they "
            "are found once, and all queries then use only these.",
    .price = "Only the last queries vote: what earlier ones need may be missing.  It saves the "
             "prompt, not the tokens after it: decoding reads every key.",
    .teaches = "Stripes and slashes over the true map, and on its edges the two profiles that "
               "they were chosen by.  Every head has lines of its own.  In the paper it is one of "
               "three patterns, chosen for each head.",
    .classes = CLASS_LP,
    .claim_time = "O(n (v + s))",
    .claim_memory = "O(n (v + s))",
    .claim_decode = "yes: reads all keys",
    .claim_exponent = 1,
    .causal = true,
    .at_end = AT_END_CELLS,
    .always_causal = true,
    .positions = POSITIONS_ALL,
    .views = views,
    .notes = notes,
    .size = "vertical",
    .size_reads = true,
    .params = params,
    .params_size = sizeof(Params),
    .run = vertical_slash_run,
    .flops = vertical_slash_flops,
    .decode = vertical_slash_decode,
    .flops_bound = true,
};
