/* strongest.c -- see strongest.h.
 *
 * The k best of a row are kept in a heap whose root is the weakest of them, so most keys
 * cost one comparison.
 */
#include "profile/strongest.h"
#include "profile/reference.h"

#include <stdlib.h>

#define ROWS_PER_ITEM 8

typedef struct Search {
    const View        *weights;
    Strongest         *out;
    float             *lines; /* [workers][m] */
    const atomic_bool *cancel;
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

static void search_row(const float *line, int64_t m, int64_t k, float *weight, int32_t *key)
{
    int64_t count = 0;

    for (int64_t j = 0; j < m; j++) {
        if (!(line[j] > 0) || (count == k && !(line[j] > weight[0])))
            continue; /* keys come in order: one that weighs as much as the root is weaker */
        if (count < k) {
            weight[count] = line[j];
            key[count] = (int32_t)j;
            sift_up(weight, key, count++);
            continue;
        }
        weight[0] = line[j];
        key[0] = (int32_t)j;
        sift_down(weight, key, k);
    }
    for (int64_t left = count - 1; left > 0; left--) { /* the weakest goes to the end */
        swap_entries(weight, key, 0, left);
        sift_down(weight, key, left);
    }
    for (; count < k; count++) {
        weight[count] = 0;
        key[count] = -1;
    }
}

static bool cancelled(const Search *s)
{
    return s->cancel && atomic_load(s->cancel);
}

static void search_rows(void *context, int64_t item, int worker)
{
    const Search *s = context;
    Strongest    *o = s->out;
    int64_t       last = (item + 1) * ROWS_PER_ITEM;
    float        *line = s->lines + o->m * worker;

    for (int64_t r = item * ROWS_PER_ITEM; r < last && r < o->h * o->n && !cancelled(s); r++) {
        view_read(s->weights, view_planes(s->weights) > 1 ? r / o->n : 0, r % o->n, 0, o->m, 1,
                  line);
        search_row(line, o->m, o->k, o->weight + r * o->k, o->key + r * o->k);
    }
}

bool strongest_of(const View *weights, int64_t h, int64_t k, Threads *threads,
                  const atomic_bool *cancel, Strongest *out, Error *err)
{
    int64_t n = view_rows(weights), m = view_cols(weights);
    Search  s = { .weights = weights, .out = out, .cancel = cancel };
    bool    ok;

    *out = (Strongest){ .h = h, .n = n, .m = m, .k = k < m ? k : m };
    out->key = calloc((size_t)(h * n * out->k), sizeof(*out->key));
    out->weight = calloc((size_t)(h * n * out->k), sizeof(*out->weight));
    s.lines = calloc((size_t)m * (size_t)threads_count(threads), sizeof(*s.lines));
    ok = out->key && out->weight && s.lines;
    if (ok)
        threads_run(threads, (h * n + ROWS_PER_ITEM - 1) / ROWS_PER_ITEM, search_rows, &s);
    else
        error_set(err, ERR_NOMEM, "not enough memory for the %lld strongest keys of %lld queries",
                  (long long)out->k, (long long)(h * n));
    free(s.lines);
    if (ok && cancelled(&s))
        ok = error_set(err, ERR_CANCELLED, "interrupted");
    if (!ok)
        strongest_free(out);
    return ok;
}

bool strongest_keys(const Run *run, int64_t k, Threads *threads, const atomic_bool *cancel,
                    Strongest *out, Error *err)
{
    Reference   exact;
    const View *weights;
    bool        ok = reference_new(run, threads, cancel, &exact, err);

    *out = (Strongest){ 0 };
    if (ok) {
        weights = run_view(exact.run, "weights");
        ok = weights ? strongest_of(weights, run->h, k, threads, cancel, out, err)
                     : error_set(err, ERR_INTERNAL, "the baseline %s shows no weights",
                                 exact.run->mechanism->id);
    }
    reference_free(&exact);
    return ok;
}

void strongest_free(Strongest *s)
{
    free(s->key);
    free(s->weight);
    *s = (Strongest){ 0 };
}
