/* strongest.c -- see strongest.h.
 *
 * The k best of a row are kept in a heap whose root is the weakest of them, so most keys
 * cost one comparison.
 *
 * The weights of exact attention are read at a few keys only: scores in float of all keys, as one
 * matrix product, choose SPARE keys more than k, and the weights of these decide.  A key left out
 * cannot weigh more where its score lies further below the k-th than float can be wrong; a row for
 * which that does not hold is searched key by key.
 */
#include "profile/strongest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cpu/blas.h"
#include "attn/cpu/columns.h"
#include "attn/cpu/cpu.h"
#include "core/threads.h"
#include "profile/reference.h"

#define ROWS_PER_ITEM 96
#define KEYS_AT_ONCE  1024
#define SPARE         16
#define PIECE         64    /* scores whose largest is compared with the root first */
#define LEAST_WEIGHT  1e-30f /* smaller ones are too coarse to be told apart by their scores */
#define EXP_ERROR     1e-6  /* scores so near may give one weight */

typedef struct Search {
    const View          *weights;
    const ReferenceRows *rows;    /* of matrix products; NULL: weights are read at all keys */
    double              *longest; /* [h] bounds of the keys' lengths */
    Strongest           *out;
    float               *lines;   /* [workers][ROWS_PER_ITEM or 1][KEYS_AT_ONCE] */
    float               *score;   /* [workers][ROWS_PER_ITEM][k + SPARE] of candidates */
    int32_t             *key;     /* of those scores */
    const atomic_bool   *cancel;
} Search;

/* Whether entry (weight, key) is weaker than the other: less, or as much and later. */
static bool weaker(float weight, int32_t key, float other, int32_t other_key)
{
    return weight < other || (!(weight > other) && key > other_key);
}

static void swap_entries(float *weight, int32_t *key, int64_t a, int64_t b)
{
    float   w = weight[a];
    int32_t j = key[a];

    weight[a] = weight[b];
    key[a] = key[b];
    weight[b] = w;
    key[b] = j;
}

/* The root may be too strong for its place: the weakest of all comes up. */
static void sift_down(float *weight, int32_t *key, int64_t count)
{
    for (int64_t at = 0, child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count &&
            weaker(weight[child + 1], key[child + 1], weight[child], key[child]))
            child++;
        if (!weaker(weight[child], key[child], weight[at], key[at]))
            return;
        swap_entries(weight, key, at, child);
    }
}

static void sift_up(float *weight, int32_t *key, int64_t at)
{
    for (int64_t parent; at > 0; at = parent) {
        parent = (at - 1) / 2;
        if (!weaker(weight[at], key[at], weight[parent], key[parent]))
            return;
        swap_entries(weight, key, at, parent);
    }
}

/* Keys come in order: one that weighs as much as the root is weaker. */
static int64_t add_entry(float value, int64_t j, int64_t k, int64_t found, float *weight,
                         int32_t *key)
{
    if (found == k && !(value > weight[0]))
        return found;
    if (found < k) {
        weight[found] = value;
        key[found] = (int32_t)j;
        sift_up(weight, key, found++);
        return found;
    }
    weight[0] = value;
    key[0] = (int32_t)j;
    sift_down(weight, key, k);
    return found;
}

/* Keys `from` on of a row of which `found` are known; a key that weighs nothing is none. */
static int64_t search_part(const float *line, int64_t from, int64_t length, int64_t k,
                           int64_t found, float *weight, int32_t *key)
{
    for (int64_t j = 0; j < length; j++)
        if (line[j] > 0)
            found = add_entry(line[j], from + j, k, found, weight, key);
    return found;
}

/* From the strongest on; what was not found has no key. */
static void order_row(int64_t k, int64_t found, float *weight, int32_t *key)
{
    for (int64_t left = found - 1; left > 0; left--) { /* the weakest goes to the end */
        swap_entries(weight, key, 0, left);
        sift_down(weight, key, left);
    }
    for (; found < k; found++) {
        weight[found] = 0;
        key[found] = -1;
    }
}

static bool search_cancelled(const Search *s)
{
    return s->cancel && atomic_load(s->cancel);
}

static void read_weights(const Search *s, int64_t row, int64_t j, int64_t count, float *out)
{
    view_read(s->weights, view_planes(s->weights) > 1 ? row / s->out->n : 0, row % s->out->n, j,
              count, 1, out);
}

/* ---- key by key -------------------------------------------------------------------- */

/* Some keys at a time, so that they are near for all rows. */
static void search_rows(const Search *s, int64_t first, int64_t rows, float *line)
{
    Strongest *o = s->out;
    int64_t    found[ROWS_PER_ITEM] = { 0 };

    for (int64_t j = 0; j < o->m && !search_cancelled(s); j += KEYS_AT_ONCE) {
        int64_t length = min_i64(o->m - j, KEYS_AT_ONCE);

        for (int64_t r = first; r < first + rows; r++) {
            read_weights(s, r, j, length, line);
            found[r - first] = search_part(line, j, length, o->k, found[r - first],
                                           o->weight + r * o->k, o->key + r * o->k);
        }
    }
    for (int64_t r = first; r < first + rows; r++)
        order_row(o->k, found[r - first], o->weight + r * o->k, o->key + r * o->k);
}

static void search_item(void *context, int64_t item, int worker)
{
    const Search *s = context;
    int64_t       first = item * ROWS_PER_ITEM;

    search_rows(s, first, min_i64(ROWS_PER_ITEM, s->out->h * s->out->n - first),
                s->lines + KEYS_AT_ONCE * worker);
}

/* ---- by products -------------------------------------------------------------------- */

/* The keys [0, *allowed) of a row; false: other keys, or no memory. */
static bool is_prefix(const Search *s, int64_t head, int64_t i, PatternRow *cells, int64_t *allowed)
{
    const Pattern *pattern = s->rows->cells;

    pattern_row(pattern, pattern_per_head(pattern) ? head : 0, i, cells);
    *allowed = cells->count ? cells->runs[0].count : 0;
    return !cells->failed && (cells->count == 0 ||
                              (cells->count == 1 && cells->runs[0].start == 0 &&
                               (cells->runs[0].step == 1 || *allowed == 1)));
}

/* As search_part, for scores of any sign. */
static int64_t search_scores(const float *line, int64_t from, int64_t length, int64_t k,
                             int64_t found, float *score, int32_t *key)
{
    const Kernel *kernel = kernel_at(0);

    for (int64_t j = 0; j < length; j += PIECE) {
        int64_t end = min_i64(length, j + PIECE);

        if (found == k && !(kernel->largest(line + j, end - j, 1) > score[0]))
            continue;
        for (int64_t x = j; x < end; x++)
            found = add_entry(line[x], from + x, k, found, score, key);
    }
    return found;
}

/* Scores nearer than this may belong to weights of another order: two scores, each summed here and
 * by the view, are each wrong by (d + 8) half units in the last place of |q| |k| scale at most, the
 * 8 for the scale and the bounds of the lengths (columns.h). */
static double margin_of(const Search *s, int64_t head, int64_t i)
{
    const AttendInput *in = &s->rows->in;
    int64_t            d = in->q.shape[2];
    double             length = row_length_bound(kernel_at(0),
                                                 tensor_row_f32(&in->q, head, s->out->h, i), d);

    return 4.04 * (double)(d + 8) * 0x1p-24 * length * s->longest[head] * fabs(in->scale) +
           EXP_ERROR;
}

/* Weighs the candidates of a row; false: they do not decide it. */
static bool weigh(const Search *s, int64_t row, int64_t allowed, int64_t found, float *score,
                  int32_t *key)
{
    Strongest *o = s->out;
    float     *weight = o->weight + row * o->k, least, lowest = INFINITY;
    int32_t   *chosen = o->key + row * o->k;
    int64_t    have = 0;
    double     margin = margin_of(s, row / o->n, row % o->n);

    for (int64_t x = 0; x < found; x++) /* in the order of keys, as add_entry needs them */
        for (int64_t y = x; y > 0 && key[y] < key[y - 1]; y--)
            swap_entries(score, key, y, y - 1);
    least = score[0];
    for (int64_t x = 0; x < found; x++) {
        float w;

        least = fminf(least, score[x]);
        read_weights(s, row, key[x], 1, &w);
        if (w > 0)
            have = add_entry(w, key[x], o->k, have, weight, chosen);
    }
    for (int64_t x = 0; x < found; x++)
        for (int64_t y = 0; y < have; y++)
            if (chosen[y] == key[x])
                lowest = fminf(lowest, score[x]);
    if (found < allowed && (have < o->k || !(weight[0] > LEAST_WEIGHT) ||
                            !((double)lowest - (double)least > margin)))
        return false;
    order_row(o->k, have, weight, chosen);
    return true;
}

/* Scores of the keys [j, j + length), some rows at a time, and the best of them. */
static void choose_keys(const Search *s, int64_t head, int64_t i, int64_t rows,
                        const int64_t *allowed, int64_t *found, int worker)
{
    const AttendInput *in = &s->rows->in;
    Strongest         *o = s->out;
    int64_t            d = in->q.shape[2], most = o->k + SPARE;
    float             *lines = s->lines + worker * ROWS_PER_ITEM * KEYS_AT_ONCE;
    float             *score = s->score + worker * ROWS_PER_ITEM * most;
    int32_t           *key = s->key + worker * ROWS_PER_ITEM * most;

    for (int64_t j = 0; j < o->m && !search_cancelled(s); j += KEYS_AT_ONCE) {
        int64_t length = min_i64(o->m - j, KEYS_AT_ONCE);

        if (j >= allowed[rows - 1]) /* rows allow no fewer keys than those before */
            break;
        cpu_sgemm((Matrix){ tensor_row_f32(&in->q, head, o->h, i), in->q.stride[1], false },
                  (Matrix){ tensor_row_f32(&in->k, head, o->h, j), in->k.stride[1], true }, rows,
                  length, d, (float)in->scale, 0, lines, KEYS_AT_ONCE);
        for (int64_t r = 0; r < rows; r++)
            if (allowed[r] > j)
                found[r] = search_scores(lines + r * KEYS_AT_ONCE, j,
                                         min_i64(length, allowed[r] - j), most, found[r],
                                         score + r * most, key + r * most);
    }
}

/* Rows of one head. */
static void product_item(void *context, int64_t item, int worker)
{
    const Search *s = context;
    Strongest    *o = s->out;
    int64_t       items = (o->n + ROWS_PER_ITEM - 1) / ROWS_PER_ITEM, head = item / items;
    int64_t       i = item % items * ROWS_PER_ITEM, rows = min_i64(ROWS_PER_ITEM, o->n - i);
    int64_t       allowed[ROWS_PER_ITEM], found[ROWS_PER_ITEM] = { 0 }, most = o->k + SPARE;
    bool          ordered = true;
    PatternRow    cells = { 0 };

    for (int64_t r = 0; r < rows; r++)
        ordered = ordered && is_prefix(s, head, i + r, &cells, &allowed[r]) &&
                  (r == 0 || allowed[r] >= allowed[r - 1]);
    if (ordered)
        choose_keys(s, head, i, rows, allowed, found, worker);
    for (int64_t r = 0; r < rows && !search_cancelled(s); r++) {
        int64_t at = (worker * ROWS_PER_ITEM + r) * most;

        if (!ordered || !weigh(s, head * o->n + i + r, allowed[r], found[r], s->score + at,
                               s->key + at))
            search_rows(s, head * o->n + i + r, 1,
                        s->lines + worker * ROWS_PER_ITEM * KEYS_AT_ONCE);
    }
    pattern_row_free(&cells);
}

static void longest_item(void *context, int64_t head, int worker)
{
    const Search      *s = context;
    const AttendInput *in = &s->rows->in;

    (void)worker;
    for (int64_t j = 0; j < in->k.shape[1]; j++) {
        double length = row_length_bound(kernel_at(0), tensor_row_f32(&in->k, head, s->out->h, j),
                                         in->k.shape[2]);

        if (length > s->longest[head] || isnan(length)) /* NaN stays */
            s->longest[head] = length;
    }
}

/* ---- both --------------------------------------------------------------------------- */

static bool make_room(Search *s, int64_t workers)
{
    Strongest *o = s->out;
    int64_t    rows = o->h * o->n * o->k, each = ROWS_PER_ITEM * (o->k + SPARE);

    o->key = calloc((size_t)rows, sizeof(*o->key));
    o->weight = calloc((size_t)rows, sizeof(*o->weight));
    s->lines = calloc((size_t)(workers * KEYS_AT_ONCE * (s->rows ? ROWS_PER_ITEM : 1)),
                      sizeof(*s->lines));
    if (s->rows) {
        s->longest = calloc((size_t)o->h, sizeof(*s->longest));
        s->score = calloc((size_t)(workers * each), sizeof(*s->score));
        s->key = calloc((size_t)(workers * each), sizeof(*s->key));
    }
    return o->key && o->weight && s->lines && (!s->rows || (s->longest && s->score && s->key));
}

static void search_all(Search *s, Threads *threads)
{
    const Strongest *o = s->out;

    if (s->rows) {
        threads_run(threads, o->h, longest_item, s);
        threads_run(threads, o->h * ((o->n + ROWS_PER_ITEM - 1) / ROWS_PER_ITEM), product_item, s);
    } else {
        threads_run(threads, (o->h * o->n + ROWS_PER_ITEM - 1) / ROWS_PER_ITEM, search_item, s);
    }
}

/* rows NULL: weights are read at all keys. */
static bool find(const View *weights, const ReferenceRows *rows, int64_t h, int64_t k,
                 Threads *threads, const atomic_bool *cancel, Strongest *out, Error *err)
{
    int64_t n = view_rows(weights), m = view_cols(weights);
    Search  s = { .weights = weights, .rows = rows, .out = out, .cancel = cancel };
    bool    ok;

    *out = (Strongest){ .h = h, .n = n, .m = m, .k = k < m ? k : m };
    ok = make_room(&s, threads_count(threads));
    if (ok)
        search_all(&s, threads);
    else
        error_set(err, ERR_NOMEM, "not enough memory for the %lld strongest keys of %lld queries",
                  (long long)out->k, (long long)(h * n));
    free(s.lines);
    free(s.longest);
    free(s.score);
    free(s.key);
    if (ok && search_cancelled(&s))
        ok = error_set(err, ERR_CANCELLED, "interrupted");
    if (!ok)
        strongest_free(out);
    return ok;
}

bool strongest_of(const View *weights, int64_t h, int64_t k, Threads *threads,
                  const atomic_bool *cancel, Strongest *out, Error *err)
{
    return find(weights, NULL, h, k, threads, cancel, out, err);
}

/* Whether one product of matrices gives the scores of the view's cells. */
static bool is_product(const ReferenceRows *rows, const View *weights)
{
    const AttendInput *in = &rows->in;

    return rows->cells && !attend_has_terms(in) && in->q.dtype == DT_F32 &&
           in->k.dtype == DT_F32 && in->q.shape[1] == view_rows(weights) &&
           in->k.shape[1] == view_cols(weights) && in->q.stride[2] == 1 && in->k.stride[2] == 1;
}

bool strongest_keys(const Run *run, int64_t k, Threads *threads, const atomic_bool *cancel,
                    Strongest *out, Error *err)
{
    ReferenceRows exact;
    const View   *weights;
    bool          ok = reference_rows_run(run, threads, cancel, &exact, err);

    *out = (Strongest){ 0 };
    if (ok) {
        weights = run_view(exact.reference.run, "weights");
        ok = weights ? find(weights,
                            is_product(&exact, weights) && blas_ready(threads_count(threads), NULL)
                                ? &exact : NULL,
                            run->h, k, threads, cancel, out, err)
                     : error_set(err, ERR_INTERNAL, "the baseline %s shows no weights",
                                 exact.reference.run->mechanism->id);
    }
    reference_rows_free(&exact);
    return ok;
}

void strongest_free(Strongest *s)
{
    free(s->key);
    free(s->weight);
    *s = (Strongest){ 0 };
}
