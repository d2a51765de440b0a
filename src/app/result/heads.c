/* heads.c -- what the heads of a run do, from its weights; see views.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/result/views.h"

#define ROWS 32           /* read together */
#define MOST (1ll << 24)  /* entries of a head; more take too long to read */

typedef struct HeadsJob {
    const Result      *result;
    const View        *weights;
    HeadRows           rows;
    HeadScores        *out;
    const atomic_bool *cancel;
} HeadsJob;

static int compare_labels(const void *a, const void *b)
{
    char *const *const *x = a, *const *const *y = b;
    int                 order = strcmp(**x, **y);

    return order ? order : (*x > *y) - (*x < *y);
}

/* Equal labels get equal numbers; false: no memory. */
static bool number_labels(char *const *labels, int64_t n, int32_t *ids)
{
    char *const **sorted = malloc((size_t)n * sizeof(*sorted));
    int32_t       id = 0;

    for (int64_t i = 0; sorted && i < n; i++)
        sorted[i] = &labels[i];
    if (sorted)
        qsort(sorted, (size_t)n, sizeof(*sorted), compare_labels);
    for (int64_t i = 0; sorted && i < n; i++) {
        id += i > 0 && strcmp(*sorted[i - 1], *sorted[i]) != 0;
        ids[sorted[i] - labels] = id;
    }
    free(sorted);
    return sorted != NULL;
}

static int64_t find_earlier(const Input *input, int64_t n, int64_t *earlier)
{
    int32_t *ids = malloc((size_t)n * sizeof(*ids));
    int64_t  seen = 0;

    if (ids && input->k_tokens && input->m == n && number_labels(input->k_tokens, n, ids))
        seen = head_earlier(ids, n, earlier);
    free(ids);
    return seen;
}

static void score_head(void *context, int64_t head, int worker)
{
    HeadsJob      *job = context;
    const HeadRows *rows = &job->rows;
    int64_t        n = rows->n, per = view_planes(job->weights) / job->result->run->h;
    float         *w = malloc((size_t)(ROWS * n) * sizeof(*w));
    HeadSums       sums = { 0 };

    (void)worker;
    for (int64_t first = 0; w && first < n; first += ROWS) {
        int64_t count = first + ROWS < n ? ROWS : n - first;

        if (atomic_load(job->cancel))
            break;
        view_read_rows(job->weights, view_shared(job->weights) ? 0 : head * per, first, count, 0,
                       n, w, n);
        for (int64_t r = 0; r < count; r++)
            head_sums_row(&sums, rows, first + r, w + r * n, 0,
                          rows->causal ? first + r + 1 : n);
    }
    if (w && !atomic_load(job->cancel))
        head_scores_of(&sums, rows, &job->out[head]);
    free(w);
}

void result_head_scores(const Result *result, HeadScores *out, Threads *threads,
                        const atomic_bool *cancel)
{
    const Run  *run = result->run;
    const View *weights = run_view(run, "weights");
    HeadsJob    job = { .result = result, .weights = weights, .out = out, .cancel = cancel };
    int64_t     n = run->n, *earlier;

    if (!weights || weights->kind != VIEW_WEIGHTS || view_rows(weights) != n ||
        view_cols(weights) != n || run->m != n || n * n > MOST)
        return;
    earlier = malloc((size_t)n * sizeof(*earlier));
    if (!earlier)
        return;
    job.rows = (HeadRows){ .n = n, .causal = run->causal, .earlier = earlier,
                           .near = HEAD_NEAR_KEYS,
                           .seen = find_earlier(result->input, n, earlier) };
    for (int64_t i = 0; i < n; i++)
        job.rows.log_length += log((double)(run->causal ? i + 1 : n)) / (double)n;
    threads_run(threads, run->h, score_head, &job);
    free(earlier);
}

/* ---- the leading head ------------------------------------------------------------------ */

static void take_leading(const Result *result, int64_t layer, HeadScore by, HeadPlace *out)
{
    atomic_bool cancel = false;
    Threads    *threads = threads_new(1);
    int64_t     heads = result->run->h;
    HeadScores *scores = calloc((size_t)heads, sizeof(*scores));

    if (threads && scores)
        result_head_scores(result, scores, threads, &cancel);
    for (int64_t head = 0; threads && scores && head < heads; head++) {
        double score = head_score(&scores[head], by);

        if (scores[head].label && !isnan(score) && !(score <= out->score))
            *out = (HeadPlace){ layer, head, score };
    }
    free(scores);
    threads_free(threads);
}

static bool lead_of_layer(Session *s, const char *spec, int64_t layer, HeadScore by,
                          HeadPlace *out, Error *err)
{
    InputChoice choice = INPUT_CHOICE_DEFAULT;
    Request     request = REQUEST_INIT;
    Result     *result = NULL;

    choice.layer = layer;
    if (session_load(s, spec, &choice, err) && request_parse(s, &request, "full", err))
        result = session_run_ok(s, &request, err);
    if (result)
        take_leading(result, layer, by, out);
    result_release(result);
    request_free(&request);
    return result != NULL;
}

bool input_leading_head(const char *spec, HeadScore by, HeadPlace *out, Error *err)
{
    Session    *s = session_new(err);
    InputChoice choice = INPUT_CHOICE_DEFAULT;
    bool        ok = s && session_load(s, spec, &choice, err);
    int64_t     layers = ok ? session_input(s)->layers : 0;

    *out = (HeadPlace){ -1, -1, -1 };
    for (int64_t i = 0; ok && i < layers; i++)
        ok = lead_of_layer(s, spec, input_layer_number(session_input(s), i), by, out, err);
    session_free(s);
    return ok && out->head >= 0;
}
