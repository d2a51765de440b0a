/* test_model_values.c -- real and tiny models against reference values (tests/models, made by an
 * independent program in float64).  The models are in the folder ATTNSCOPE_MODELS; without it, and
 * for files it lacks, the test says so and passes. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "model/forward.h"
#include "model/heads.h"

#define MOST_SWAPS 8
#define MOST_LAYERS 64

/* What is compared on the way. */
typedef struct Watch {
    const Model *m;
    json_t      *layers; /* object by number, or array */
    json_t      *logits; /* NULL: none */
    double       sum, squares;
    int          seen;
} Watch;

static char *models_path(const char *name, char *path, size_t size)
{
    struct stat info;

    if (!getenv("ATTNSCOPE_MODELS")) {
        print_message("ATTNSCOPE_MODELS is not set: skipped\n");
        return NULL;
    }
    snprintf(path, size, "%s/%s", getenv("ATTNSCOPE_MODELS"), name);
    if (stat(path, &info) == 0)
        return path;
    print_message("%s is not there: skipped\n", path);
    return NULL;
}

static json_t *values(const char *name)
{
    const char  *oracle = getenv("ATTNSCOPE_ORACLE");
    char         path[512];
    json_error_t error;
    json_t      *j;

    snprintf(path, sizeof(path), "%s/../models/%s", oracle ? oracle : "tests/oracle", name);
    j = json_load_file(path, 0, &error);
    CHECK(j, "%s: %s", path, error.text);
    return j;
}

static double number(json_t *object, const char *key)
{
    json_t *j = json_object_get(object, key);

    return json_is_number(j) ? json_number_value(j) : (double)NAN;
}

/* |a - b| <= tol */
static void check_close(double a, double b, double tol, const char *what)
{
    CHECK(fabs(a - b) <= tol, "%s: %.9g, expected %.9g within %g", what, a, b, tol);
}

static void check_entry(double got, double wanted, const char *what)
{
    check_close(got, wanted, 1e-3 * fmax(1, fabs(wanted)), what);
}

/* Entries, sum and norm of a tensor of rank 2 or 3. */
static void check_tensor(const Tensor *t, json_t *j, const char *what)
{
    double  sum = 0, squares = 0, norm = number(j, "norm");
    size_t  i;
    json_t *at;

    for (int a = 0; a < t->rank; a++) {
        at = json_array_get(json_object_get(j, "shape"), (size_t)a);
        assert_int_equal(t->shape[a], json_integer_value(at));
    }
    json_array_foreach(json_object_get(j, "at"), i, at)
    {
        int64_t index[4] = { 0 };

        for (int a = 0; a < t->rank; a++)
            index[a] = json_integer_value(json_array_get(at, (size_t)a));
        check_entry(tensor_get(t, index),
                    json_number_value(json_array_get(at, (size_t)t->rank)), what);
    }
    for (int64_t x = 0; x < tensor_count(t); x++) {
        double value = (double)tensor_f32(t)[x];

        sum += value;
        squares += value * value;
    }
    check_close(sum, number(j, "sum"), 1e-3 * norm, what);
    check_close(sqrt(squares), norm, 1e-4 * norm, what);
}

static bool watch_layer(void *context, const LayerView *view)
{
    Watch  *w = context;
    char    key[16];
    json_t *j;

    snprintf(key, sizeof(key), "%d", (int)view->layer);
    j = json_is_array(w->layers) ? json_array_get(w->layers, (size_t)view->layer)
                                 : json_object_get(w->layers, key);
    if (!j || view->variant)
        return true;
    check_tensor(&view->q, json_object_get(j, "q"), "q");
    check_tensor(&view->k, json_object_get(j, "k"), "k");
    check_tensor(&view->v, json_object_get(j, "v"), "v");
    if (json_object_get(j, "x"))
        check_tensor(&view->x, json_object_get(j, "x"), "x");
    check_tensor(&view->o, json_object_get(j, "o"), "o");
    w->seen++;
    return true;
}

static void watch_logits(void *context, int64_t variant, int64_t first, int64_t rows,
                         const float *logits)
{
    Watch  *w = context;
    int64_t vocab = w->m->head.rows;
    size_t  i;
    json_t *at;

    if (variant || !w->logits)
        return;
    for (int64_t x = 0; x < rows * vocab; x++) {
        w->sum += (double)logits[x];
        w->squares += (double)logits[x] * (double)logits[x];
    }
    json_array_foreach(json_object_get(w->logits, "at"), i, at)
    {
        int64_t row = json_integer_value(json_array_get(at, 0)) - first;

        if (row >= 0 && row < rows)
            check_entry((double)logits[row * vocab + json_integer_value(json_array_get(at, 1))],
                        json_number_value(json_array_get(at, 2)), "logits");
    }
}

static int64_t read_ids(json_t *text, int32_t **ids)
{
    json_t *j = json_object_get(text, "ids");

    *ids = calloc(json_array_size(j) + 1, sizeof(**ids));
    for (size_t x = 0; x < json_array_size(j); x++)
        (*ids)[x] = (int32_t)json_integer_value(json_array_get(j, x));
    return (int64_t)json_array_size(j);
}

/* ---- measures ------------------------------------------------------------ */

static void check_swap(const ForwardMeasure *m, json_t *j, int64_t n)
{
    size_t  l;
    json_t *r;

    if (json_object_get(j, "loss")) {
        check_close(m->loss, number(j, "loss"), 2e-4, "swap: loss");
        check_close(m->delta, number(j, "delta"), 2e-4, "swap: delta");
    }
    if (json_object_get(j, "kl")) {
        check_close(m->kl, number(j, "kl"), 2e-4 + 1e-3 * number(j, "kl"), "swap: kl");
        check_close(m->kl_max, number(j, "kl_max"), 1e-3 + 1e-3 * number(j, "kl_max"),
                    "swap: kl_max");
        check_close(m->agreement, number(j, "agreement"), 1.001 / (double)n, "swap: agreement");
    }
    check_close(m->cosine, number(j, "cosine"), 1e-4, "swap: cosine");
    json_array_foreach(json_object_get(j, "residual"), l, r)
        check_close(m->residual[l], json_number_value(r), 1e-4, "swap: residual");
}

static void check_next(const ForwardMeasure *m, json_t *text)
{
    size_t  i, k;
    json_t *at, *next;

    json_array_foreach(json_object_get(text, "top5"), i, at)
    {
        int64_t position = json_integer_value(json_object_get(at, "position"));

        json_array_foreach(json_object_get(at, "next"), k, next)
        {
            double p = json_number_value(json_array_get(next, 2)), found = -1;

            for (int x = 0; x < FORWARD_NEXT; x++)
                if (m->next[position * FORWARD_NEXT + x].id ==
                    json_integer_value(json_array_get(next, 0)))
                    found = m->next[position * FORWARD_NEXT + x].p;
            if (found >= 0 || k + 1 < json_array_size(json_object_get(at, "next")))
                check_close(found, p, 1e-4, "next token");
        }
    }
}

static void check_plain(const ForwardMeasure *m, json_t *text)
{
    size_t  i;
    json_t *j;

    if (json_object_get(text, "loss")) {
        check_close(m->loss, number(text, "loss"), 2e-4, "loss");
        check_close(m->perplexity, exp(number(text, "loss")), 2e-4 * m->perplexity, "perplexity");
    }
    json_array_foreach(json_object_get(text, "nll"), i, j)
        check_close(m->nll[i], json_number_value(j), 1e-3, "nll");
    json_array_foreach(json_object_get(text, "argmax"), i, j)
        assert_int_equal(m->next[i * FORWARD_NEXT].id, json_integer_value(j));
    json_array_foreach(json_object_get(text, "residual_norm"), i, j)
        check_close(m->residual_norm[i], json_number_value(j), 1e-4 * json_number_value(j),
                    "residual norm");
    check_next(m, text);
}

static void check_embedding(const Model *m, const ForwardMeasure *measure, json_t *text)
{
    double  norm = 0;
    size_t  i;
    json_t *j;

    for (int64_t c = 0; c < m->config.width; c++)
        norm += (double)measure->final[c] * (double)measure->final[c];
    json_array_foreach(json_object_get(text, "embedding"), i, j)
        check_close((double)measure->final[i] / sqrt(norm), json_number_value(j), 1e-4,
                    "sentence vector");
}

/* "10-19" or "all" */
static void layers_of(json_t *j, bool layers[MOST_LAYERS])
{
    const char *text = json_string_value(json_object_get(j, "layers"));
    int         from = 0, to = MOST_LAYERS - 1;

    if (text && sscanf(text, "%d-%d", &from, &to) != 2)
        to = MOST_LAYERS - 1;
    for (int l = 0; l < MOST_LAYERS; l++)
        layers[l] = l >= from && l <= to;
}

static void check_text(const Model *m, json_t *text)
{
    static bool    layers[MOST_SWAPS][MOST_LAYERS];
    Swap           swaps[MOST_SWAPS] = { 0 };
    Watch          watch = { m, json_object_get(text, "layers"), json_object_get(text, "logits"),
                             0, 0, 0 };
    json_t        *list = json_object_get(text, "swaps"), *one = json_object_get(text, "swap"), *j;
    ForwardOptions o = { .swaps = swaps, .last_layer = -1, .on_layer = watch_layer,
                         .on_logits = watch_logits, .context = &watch };
    ForwardResult  r;
    Error          err = ERROR_INIT;
    int32_t       *ids;
    int64_t        n = read_ids(text, &ids);
    size_t         s;

    if (one)
        swaps[o.swap_count++].mechanism = json_string_value(json_object_get(one, "swap"));
    json_array_foreach(list, s, j)
    {
        layers_of(j, layers[s]);
        swaps[o.swap_count++] = (Swap){
            .mechanism = json_string_value(json_object_get(j, "swap")), .layers = layers[s] };
    }
    CHECK(forward_run(m, ids, n, &o, &r, &err), "%s", err.text);
    check_plain(&r.measure[0], text);
    check_embedding(m, &r.measure[0], text);
    if (one)
        check_swap(&r.measure[1], one, n);
    json_array_foreach(list, s, j)
        check_swap(&r.measure[1 + s], j, n);
    if (watch.logits) {
        check_close(watch.sum, number(watch.logits, "sum"), 1e-3 * number(watch.logits, "norm"),
                    "logits: sum");
        check_close(sqrt(watch.squares), number(watch.logits, "norm"),
                    1e-4 * number(watch.logits, "norm"), "logits: norm");
    }
    assert_int_equal(watch.seen, json_object_size(watch.layers) + json_array_size(watch.layers));
    forward_result_free(&r);
    free(ids);
}

/* ---- heads --------------------------------------------------------------- */

static void check_score(json_t *layer, const char *key, size_t head, double got)
{
    json_t *j = json_array_get(json_object_get(layer, key), head);
    double  tolerance = !strcmp(key, "entropy") ? 1e-3 : !strcmp(key, "distance") ? 2e-3 : 1e-4;

    if (json_is_number(j))
        check_close(got, json_number_value(j), tolerance, key);
}

static void check_heads(const Model *m, json_t *text)
{
    HeadsOptions o = { .layer = -1 };
    HeadsResult  r;
    Error        err = ERROR_INIT;
    int32_t     *ids;
    int64_t      n = read_ids(text, &ids);
    const char  *key;
    json_t      *layer;

    CHECK(heads_run(m, ids, n, &o, &r, &err), "%s", err.text);
    json_object_foreach(json_object_get(text, "heads"), key, layer)
        for (int64_t t = 0; t < r.heads; t++) {
            const HeadScores *s = &r.score[atoi(key) * r.heads + t];
            const char       *label = json_string_value(
                json_array_get(json_object_get(layer, "label"), (size_t)t));

            check_score(layer, "previous", (size_t)t, s->previous);
            check_score(layer, "self", (size_t)t, s->self);
            check_score(layer, "first", (size_t)t, s->first);
            check_score(layer, "next", (size_t)t, s->next);
            check_score(layer, "entropy", (size_t)t, s->entropy);
            check_score(layer, "distance", (size_t)t, s->distance);
            check_score(layer, "induction", (size_t)t, s->induction);
            assert_int_equal(s->induction_rows,
                             json_integer_value(json_object_get(layer, "induction_rows")));
            assert_string_equal(s->label, label);
        }
    heads_result_free(&r);
    free(ids);
}

/* ---- the models ---------------------------------------------------------- */

static Model *open_model(const char *path)
{
    Error  err = ERROR_INIT;
    Model *m = model_open(path, &err);

    CHECK(m, "%s", err.text);
    return m;
}

static void check_file(const char *file, const char *json)
{
    char        path[512];
    const char *key;
    json_t     *root, *text;
    Model      *m;

    if (!models_path(file, path, sizeof(path)))
        return;
    root = values(json);
    m = open_model(path);
    json_object_foreach(json_object_get(root, "texts"), key, text)
    {
        check_text(m, text);
        check_heads(m, text);
    }
    model_close(m);
    json_decref(root);
}

static void test_smollm2(void **state)
{
    (void)state;
    check_file("SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2.json");
}

static void test_minilm(void **state)
{
    (void)state;
    check_file("all-MiniLM-L6-v2", "minilm.json");
}

static void test_tiny(void **state)
{
    json_t     *root = values("tiny.json"), *text;
    const char *key;
    char        name[64], path[512];

    (void)state;
    json_object_foreach(json_object_get(root, "models"), key, text)
    {
        Model *m;

        snprintf(name, sizeof(name), "tiny/%s", key);
        if (!models_path(name, path, sizeof(path)))
            continue;
        print_message("%s\n", name);
        m = open_model(path);
        check_text(m, text);
        model_close(m);
    }
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiny),
        cmocka_unit_test(test_minilm),
        cmocka_unit_test(test_smollm2),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
