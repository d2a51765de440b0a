/* reference.c -- see reference.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/run/position.h"
#include "core/threads.h"
#include "profile/reference.h"

/* The scale and the like, under the same name and type, and the position's. */
static bool shared_assignments(const Run *run, const Mechanism *exact, Assignments *out,
                               Error *err)
{
    const Assignments *given = run->spec.given;
    const Position    *position = run->spec.position;

    for (int i = 0; given && i < given->count; i++) {
        const Assignment *item = &given->items[i];
        const Param *ours = params_find(run->mechanism->params, item->name);
        const Param *theirs = params_find(exact->params, item->name);
        bool same = ours && theirs && ours->type == theirs->type;

        if (!same && !(position && params_find(position->params, item->name)))
            continue;
        if (!assignments_set_tensor(out, item->name, item->tensor, item->text, err))
            return false;
    }
    return true;
}

bool reference_is_possible(const Run *run)
{
    if (run->of_x || !run->q.data)
        return false;
    return !run->mechanism->or_x || (run->k.data && run->k.shape[2] == run->q.shape[2] &&
                                     run->out.data && run->out.shape[0] == run->q.shape[0]);
}

/* ops NULL: the CPU's; context: the spec's context for these ops. */
static bool begin_reference(const Run *run, const Ops *ops, void *context, Threads *threads,
                            const atomic_bool *cancel, Reference *out, Error *err)
{
    RunSpec spec = run->spec;

    *out = (Reference){ 0 };
    spec.mechanism = mechanism_baseline();
    spec.given = &out->given;
    spec.views = true;
    spec.fit = false;
    spec.observer = NULL;
    spec.progress = NULL;
    spec.observer_context = context;
    /* By default the CPU's, so that another device's loss of precision shows. */
    spec.ops = ops;
    spec.preparing = NULL;
    spec.fail_at = 0;
    spec.threads = threads;
    spec.cancel = cancel;
    if (!spec.mechanism)
        return error_set(err, ERR_INTERNAL, "the catalogue has no baseline to compare with");
    if (!shared_assignments(run, spec.mechanism, &out->given, err))
        return false;
    out->run = run_new(&spec);
    run_execute(out->run);
    if (!out->run)
        return error_set(err, ERR_NOMEM, "not enough memory for the reference");
    return out->run->err.code == ERR_NONE ||
           error_set(err, out->run->err.code, "reference: %.200s", out->run->err.text);
}

bool reference_new(const Run *run, Threads *threads, const atomic_bool *cancel, Reference *out,
                   Error *err)
{
    return begin_reference(run, NULL, NULL, threads, cancel, out, err);
}

void reference_free(Reference *reference)
{
    run_free(reference->run);
    assignments_free(&reference->given);
}

/* ---- row by row ----------------------------------------------------------------- */

/* Takes the place of `attend`: stores its arguments. */
static void note_attend(Run *r, const AttendInput *in, const Pattern *pattern, AttendResult *out,
                        double *cells)
{
    ReferenceRows *rows = r->spec.observer_context;

    (void)out;
    (void)cells;
    rows->in = *in;
    rows->cells = pattern;
}

bool reference_rows_new(const Run *run, Threads *threads, const atomic_bool *cancel,
                        ReferenceRows *out, Error *err)
{
    *out = (ReferenceRows){ .ops = *ops_cpu() };
    out->ops.attend = note_attend;
    if (!begin_reference(run, &out->ops, out, threads, cancel, &out->reference, err))
        return false;
    return out->cells || error_set(err, ERR_INTERNAL, "the baseline %s has no cells to attend to",
                                   out->reference.run->mechanism->id);
}

/* Makes weights of scores; false: nothing is allowed. */
static bool normalise(const PatternRow *cells, float *line)
{
    double top = -(double)INFINITY, sum = 0;

    for (int64_t x = 0; x < cells->count; x++)
        for (int64_t c = 0; c < cells->runs[x].count; c++)
            top = fmax(top, (double)line[cells->runs[x].start + c * cells->runs[x].step]);
    for (int64_t x = 0; x < cells->count; x++)
        for (int64_t c = 0; c < cells->runs[x].count; c++) {
            float *at = &line[cells->runs[x].start + c * cells->runs[x].step];

            *at = expf(*at - (float)top);
            sum += (double)*at;
        }
    for (int64_t x = 0; x < cells->count && sum > 0; x++)
        for (int64_t c = 0; c < cells->runs[x].count; c++)
            line[cells->runs[x].start + c * cells->runs[x].step] /= (float)sum;
    return sum > 0;
}

bool reference_scores(const ReferenceRows *rows, int64_t head, int64_t i, PatternRow *cells,
                      float *line)
{
    const Run *run = rows->reference.run;
    float      piece[256];

    pattern_row(rows->cells, pattern_per_head(rows->cells) ? head : 0, i, cells);
    for (int64_t x = 0; x < cells->count; x++) {
        PatternRun r = cells->runs[x];

        for (int64_t done = 0; done < r.count; done += 256) {
            int64_t count = r.count - done < 256 ? r.count - done : 256;

            attend_scores_run(&rows->in, run->h, head, i, r.start + done * r.step, count, r.step,
                              piece);
            for (int64_t c = 0; c < count; c++)
                line[r.start + (done + c) * r.step] = piece[c];
        }
    }
    return !cells->failed;
}

bool reference_row(const ReferenceRows *rows, int64_t head, int64_t i, PatternRow *cells,
                   float *line)
{
    memset(line, 0, (size_t)rows->reference.run->m * sizeof(*line));
    return reference_scores(rows, head, i, cells, line) && normalise(cells, line);
}

void reference_rows_free(ReferenceRows *rows)
{
    reference_free(&rows->reference);
}

/* See reference.h.
 *
 * The k best of a row are kept in a heap whose root is the weakest of them, so most keys
 * cost one comparison.
 */

#define ROWS_PER_ITEM 16
#define KEYS_AT_ONCE  2048

typedef struct Search {
    const View        *weights;
    Strongest         *out;
    float             *lines; /* [workers][KEYS_AT_ONCE] */
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

/* Keys `from` on of a row of which `found` are known. */
static int64_t search_part(const float *line, int64_t from, int64_t length, int64_t k,
                           int64_t found, float *weight, int32_t *key)
{
    for (int64_t j = 0; j < length; j++) {
        if (!(line[j] > 0) || (found == k && !(line[j] > weight[0])))
            continue; /* keys come in order: one that weighs as much as the root is weaker */
        if (found < k) {
            weight[found] = line[j];
            key[found] = (int32_t)(from + j);
            sift_up(weight, key, found++);
            continue;
        }
        weight[0] = line[j];
        key[0] = (int32_t)(from + j);
        sift_down(weight, key, k);
    }
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

/* Some keys at a time, so that they are near for all rows of the item. */
static void search_rows(void *context, int64_t item, int worker)
{
    const Search *s = context;
    Strongest    *o = s->out;
    int64_t       first = item * ROWS_PER_ITEM, rows = o->h * o->n - first;
    int64_t       found[ROWS_PER_ITEM] = { 0 };
    float        *line = s->lines + KEYS_AT_ONCE * worker;

    rows = rows < ROWS_PER_ITEM ? rows : ROWS_PER_ITEM;
    for (int64_t j = 0; j < o->m && !search_cancelled(s); j += KEYS_AT_ONCE) {
        int64_t length = o->m - j < KEYS_AT_ONCE ? o->m - j : KEYS_AT_ONCE;

        for (int64_t r = first; r < first + rows; r++) {
            view_read(s->weights, view_planes(s->weights) > 1 ? r / o->n : 0, r % o->n, j, length,
                      1, line);
            found[r - first] = search_part(line, j, length, o->k, found[r - first],
                                           o->weight + r * o->k, o->key + r * o->k);
        }
    }
    for (int64_t r = first; r < first + rows; r++)
        order_row(o->k, found[r - first], o->weight + r * o->k, o->key + r * o->k);
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
    s.lines = calloc(KEYS_AT_ONCE * (size_t)threads_count(threads), sizeof(*s.lines));
    ok = out->key && out->weight && s.lines;
    if (ok)
        threads_run(threads, (h * n + ROWS_PER_ITEM - 1) / ROWS_PER_ITEM, search_rows, &s);
    else
        error_set(err, ERR_NOMEM, "not enough memory for the %lld strongest keys of %lld queries",
                  (long long)out->k, (long long)(h * n));
    free(s.lines);
    if (ok && search_cancelled(&s))
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
