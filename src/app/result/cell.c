/* cell.c -- see views.h.
 *
 *     below_k = log (max_j w_j / w_k)
 *     share_k = w_k v_k . o / |o|^2,   o = sum_j w_j v_j
 */
#include "app/result/views.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/reference.h"

/* Log weights and scores of a row differ by one constant where the weights are their softmax.  Both
 * are sums of ten to a hundred products in f32. */
#define SAME_SCORES 2e-3
#define FAINT       1e-6 /* f32 is too coarse for weights below it */
/* Tolerance of the output beside the sum of weights times V, relative to its length: kernels add in
 * f32, and some values are rounded to 16 bits. */
#define SAME_OUTPUT 4e-3

/* Relative; as profile/strongest.c takes scores that give one weight: equal tokens differ by the
 * order of float sums. */
#define SAME_STRENGTH 1e-6

#define NOTHING 5e-4 /* a smaller difference of scores is printed as none */

struct CellReader {
    Result       *result;  /* retained */
    const View   *weights; /* NULL: no weights of queries and keys */
    bool          exact;   /* exact attention's rows can be computed */
    ReferenceRows rows;
    PatternRow    cells;
    float        *own, *score;  /* owned; [m]: of the row; score -inf: not allowed */
    int64_t       head, q;      /* -1: no row yet */
    double        top, log_sum; /* of the exact scores */
    bool          own_scores, adds;
    double        largest; /* largest own weight */
    double       *output;  /* owned; [e] the sum of weights times V */
    double        squares; /* squared length of it */
};

static const View *weights_of(const Run *run)
{
    const View *view = run_view(run, "weights");

    return view && (view->kind == VIEW_WEIGHTS || view->kind == VIEW_SIGNED) &&
                   view_rows(view) == run->n && view_cols(view) == run->m &&
                   (view_planes(view) == 1 || view_planes(view) == run->h)
               ? view
               : NULL;
}

void cell_reader_free(CellReader *reader)
{
    if (!reader)
        return;
    reference_rows_free(&reader->rows);
    pattern_row_free(&reader->cells);
    free(reader->own);
    free(reader->score);
    free(reader->output);
    result_release(reader->result);
    free(reader);
}

CellReader *cell_reader_new(Result *result, Error *err)
{
    const Run  *run = result->run;
    CellReader *r = calloc(1, sizeof(*r));

    if (r) {
        r->result = result_retain(result);
        r->weights = weights_of(run);
        r->head = r->q = -1;
        r->own = calloc((size_t)run->m + 1, sizeof(*r->own));
        r->score = calloc((size_t)run->m + 1, sizeof(*r->score));
        r->output = calloc((size_t)run->e + 1, sizeof(*r->output));
    }
    if (!r || !r->own || !r->score || !r->output) {
        cell_reader_free(r);
        error_set(err, ERR_NOMEM, "not enough memory to look at a cell");
        return NULL;
    }
    /* Without exact attention the other facts are still printed. */
    r->exact = reference_is_possible(run) && reference_rows_new(run, NULL, NULL, &r->rows, NULL);
    return r;
}

/* ---- a row ------------------------------------------------------------------- */

/* The logarithm of the softmax's denominator. */
static void sum_scores(CellReader *r)
{
    int64_t m = r->result->run->m;
    double  sum = 0;

    r->top = -(double)INFINITY;
    for (int64_t j = 0; j < m; j++)
        r->top = fmax(r->top, (double)r->score[j]);
    for (int64_t j = 0; j < m; j++)
        sum += isinf(r->score[j]) ? 0 : exp((double)r->score[j] - r->top);
    r->log_sum = log(sum);
}

static bool find_own_scores(const CellReader *r)
{
    int64_t m = r->result->run->m;
    double  least = (double)INFINITY, most = -(double)INFINITY;

    for (int64_t j = 0; j < m; j++) {
        double apart;

        if (!((double)r->own[j] > FAINT * r->largest))
            continue;
        if (isinf(r->score[j]))
            return false;
        apart = log((double)r->own[j]) - (double)r->score[j];
        least = fmin(least, apart);
        most = fmax(most, apart);
    }
    return most - least <= SAME_SCORES * (1 + fabs(r->top));
}

/* Sums weights times V and compares with the run's output. */
static bool add_values(CellReader *r)
{
    const Run    *run = r->result->run;
    const Tensor *v = &run->v, *out = &run->out;
    const float  *values, *given;
    double        apart = 0;

    r->squares = 0;
    if (!r->weights || !v->data || v->rank != 3 || v->shape[1] != run->m || !out->data ||
        out->rank != 3 || out->shape[0] != run->h || out->shape[1] != run->n ||
        out->shape[2] != v->shape[2] || v->shape[2] > run->e)
        return false;
    values = tensor_head(v, r->head, run->h);
    given = (const float *)tensor_head(out, r->head, run->h) + r->q * v->shape[2];
    memset(r->output, 0, (size_t)run->e * sizeof(*r->output));
    for (int64_t j = 0; j < run->m; j++)
        for (int64_t c = 0; r->own[j] != 0 && c < v->shape[2]; c++)
            r->output[c] += (double)r->own[j] * (double)values[j * v->shape[2] + c];
    for (int64_t c = 0; c < v->shape[2]; c++) {
        double difference = r->output[c] - (double)given[c];

        r->squares += r->output[c] * r->output[c];
        apart += difference * difference;
    }
    return r->squares > 0 && apart <= SAME_OUTPUT * SAME_OUTPUT * r->squares;
}

static bool read_cell_row(CellReader *r, int64_t head, int64_t q, Error *err)
{
    const Run *run = r->result->run;

    if (r->head == head && r->q == q)
        return true;
    r->head = head;
    r->q = q;
    r->largest = 0;
    memset(r->own, 0, (size_t)run->m * sizeof(*r->own));
    if (r->weights)
        view_read(r->weights, view_planes(r->weights) == 1 ? 0 : head, q, 0, run->m, 1, r->own);
    for (int64_t j = 0; j < run->m; j++) {
        r->largest = fmax(r->largest, (double)r->own[j]);
        r->score[j] = -INFINITY;
    }
    if (r->exact && !reference_scores(&r->rows, head, q, &r->cells, r->score)) {
        r->head = -1;
        return error_set(err, ERR_NOMEM, "not enough memory to look at a row");
    }
    sum_scores(r);
    r->own_scores = r->exact && r->largest > 0 && find_own_scores(r);
    r->adds = add_values(r);
    return true;
}

/* ---- a cell ------------------------------------------------------------------ */

static void read_exact(const CellReader *r, int64_t k, CellWhy *out)
{
    int64_t m = r->result->run->m;

    out->scored = r->exact && !isinf(r->score[k]);
    if (!out->scored)
        return;
    out->score = (double)r->score[k];
    out->exact = exp(out->score - r->top - r->log_sum);
    out->own_score = r->own_scores;
    out->exact_rank = 1;
    for (int64_t j = 0; j < m; j++) {
        out->exact_of += !isinf(r->score[j]);
        out->exact_rank += r->score[j] > r->score[k];
        out->exact_equal += j != k && fabs((double)r->score[j] - out->score) <=
                                          SAME_STRENGTH * (1 + fabs(out->score));
    }
}

static void read_share(const CellReader *r, int64_t k, CellWhy *out)
{
    const Run   *run = r->result->run;
    int64_t      e = run->v.shape[2];
    const float *value = (const float *)tensor_head(&run->v, r->head, run->h) + k * e;
    double       squares = 0, along = 0;

    for (int64_t c = 0; c < e; c++) {
        squares += (double)value[c] * (double)value[c];
        along += (double)value[c] * r->output[c];
    }
    out->length = out->weight * sqrt(squares);
    out->output = sqrt(r->squares);
    out->share = out->weight * along / r->squares;
}

/* Of a mechanism that says when a key left its cache. */
static int64_t evicted_after(const Run *run, int64_t head, int64_t q, int64_t k)
{
    const View *left = run_view(run, "evicted_at");
    float       after = -1;

    if (left && left->rank == 2)
        view_read(left, 0, head * left->shape[0] / run->h, k, 1, 1, &after);
    return (int64_t)after < q + run->q_offset ? (int64_t)after : -1;
}

bool cell_read(CellReader *r, int64_t head, int64_t q, int64_t k, CellWhy *out, Error *err)
{
    const Run *run = r->result->run;

    *out = (CellWhy){ 0 };
    if (head < 0 || head >= run->h || q < 0 || q >= run->n || k < 0 || k >= run->m)
        return error_set(err, ERR_DATA, "there is no head %lld with query %lld and key %lld: the "
                         "run has %lld heads, %lld queries and %lld keys", (long long)head,
                         (long long)q, (long long)k, (long long)run->h, (long long)run->n,
                         (long long)run->m);
    if (!read_cell_row(r, head, q, err))
        return false;
    out->evicted_after = evicted_after(run, head, q, k);
    out->weighs = r->weights != NULL;
    out->weight = (double)r->own[k];
    out->softmax = out->weighs && r->weights->kind == VIEW_WEIGHTS && out->weight > 0;
    out->below = out->softmax ? log(r->largest / out->weight) : 0;
    read_exact(r, k, out);
    out->adds = r->adds && out->weight != 0;
    if (out->adds)
        read_share(r, k, out);
    return true;
}

#define ROUNDING 1e-5 /* of two weights, whose logarithms are floats */

static void add_difference(const CellWhy *why, Text *out)
{
    double difference = why->weight - why->exact;

    if (fabs(difference) <= ROUNDING * fmax(why->weight, why->exact))
        text_add(out, "to exact   0, to rounding\n");
    else
        text_addf(out, "to exact   %+.3g\n", difference);
}

void cell_describe(const CellWhy *why, Text *out)
{
    bool own = why->softmax && why->own_score;
    char below[48] = "the row's top";

    if (why->below >= NOTHING)
        snprintf(below, sizeof(below), "%.3g below the row's top", why->below);
    if (own)
        text_addf(out, "score      %.4g, %s\n", why->score, below);
    else if (why->softmax)
        text_addf(out, "log weight %s\n", below);
    if (why->adds)
        text_addf(out, "adds       %.3g %% of output, |w v| %.3g\n", 100 * why->share, why->length);
    if (!why->scored)
        return;
    text_addf(out, "exact      %.4g #%lld/%lld", why->exact, (long long)why->exact_rank,
              (long long)why->exact_of);
    if (why->exact_equal)
        text_addf(out, " (%lld as strong)", (long long)why->exact_equal);
    if (!own)
        text_addf(out, ", score %.3g", why->score);
    text_add(out, "\n");
    if (why->weighs && why->weight != 0)
        add_difference(why, out);
}

void cell_place(const Result *result, Text *out)
{
    const char *gpu = request_gpu(&result->request);

    if (gpu && *result->record.computed)
        record_computed(&result->record, out);
    else
        text_add(out, gpu ? result->request.precision : "f32");
    text_addf(out, " on %s", gpu ? gpu : "the CPU");
}
