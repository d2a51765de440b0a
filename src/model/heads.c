/* heads.c -- see heads.h. */
#include "model/heads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "core/rng.h"
#include "core/threads.h"
#include "model/forward.h"
#include "model/pass.h"

#define TILE 64 /* rows of a head at once */

typedef struct Heads {
    const Model        *m;
    const HeadsOptions *o;
    const int32_t      *ids;
    int64_t             n, tiles;
    int64_t            *earlier;  /* of rows */
    HeadRows            rows;
    const LayerView    *view;
    Threads            *threads;
    float              *scores;   /* [workers][TILE][n] */
    HeadSums           *sums;     /* [heads][tiles] */
    HeadsResult        *out;
} Heads;

/* Keys that row i sees. */
static void row_keys(const ModelConfig *c, int64_t n, int64_t i, int64_t *low, int64_t *high)
{
    *low = c->window ? max_i64(0, i - c->window + 1) : 0;
    *high = c->causal ? i + 1 : c->window ? min_i64(n, i + c->window) : n;
}

/* Softmax of one row in double, in place of its scores. */
static void row_weights(const Kernel *kernel, float *s, int64_t count, double scale)
{
    double top = (double)kernel->largest(s, count, 1) * scale, sum = 0;

    for (int64_t j = 0; j < count; j++)
        s[j] = (float)((double)s[j] * scale - top);
    kernel->exp2(s, count, (float)LOG2_E, 0);
    for (int64_t j = 0; j < count; j++)
        sum += (double)s[j];
    for (int64_t j = 0; j < count; j++)
        s[j] = (float)((double)s[j] / sum);
}

/* Rows of one head, whose scores exist only here. */
static void tile_item(void *context, int64_t item, int worker)
{
    Heads             *h = context;
    const ModelConfig *c = &h->m->config;
    int64_t            head = item / h->tiles, first = item % h->tiles * TILE;
    int64_t            rows = min_i64(TILE, h->n - first), d = c->head_dim, low, high;
    float             *s = h->scores + worker * TILE * h->n;
    const float       *q = (const float *)h->view->q.data + (head * h->n + first) * d;
    const float       *k = tensor_head(&h->view->k, head, c->heads);
    const Kernel      *kernel = kernel_at(0);
    HeadSums           sums = { 0 };

    if (h->o->cancel && atomic_load(h->o->cancel))
        return;
    row_keys(c, h->n, first + rows - 1, &low, &high);
    cpu_sgemm((Matrix){ q, d, false }, (Matrix){ k, d, true }, rows, high, d, 1, 0, s, h->n);
    for (int64_t r = 0; r < rows; r++) {
        row_keys(c, h->n, first + r, &low, &high);
        row_weights(kernel, s + r * h->n + low, high - low, c->scale);
        head_sums_row(&sums, &h->rows, first + r, s + r * h->n + low, low, high);
    }
    h->sums[item] = sums;
}

static void finish_head(const Heads *h, const HeadSums *tile, HeadScores *out)
{
    HeadSums s = { 0 };

    for (int64_t x = 0; x < h->tiles; x++)
        head_sums_add(&s, &tile[x]);
    head_scores_of(&s, &h->rows, out);
}

static bool heads_layer(void *context, const LayerView *view)
{
    Heads      *h = context;
    int64_t     heads = h->m->config.heads;
    HeadScores *scores = h->out->score + view->layer * heads;

    if (h->o->layer >= 0 && view->layer != h->o->layer)
        return true;
    h->view = view;
    threads_run(h->threads, heads * h->tiles, tile_item, h);
    for (int64_t t = 0; t < heads; t++)
        finish_head(h, h->sums + t * h->tiles, &scores[t]);
    return !h->o->on_layer || h->o->on_layer(h->o->context, view->layer, scores);
}

static void find_rows(Heads *h)
{
    h->rows = (HeadRows){ .n = h->n, .causal = h->m->config.causal, .repeated = h->o->repeated,
                          .earlier = h->earlier,
                          .near = h->o->near > 0 ? h->o->near : HEAD_NEAR_KEYS,
                          .seen = head_earlier(h->ids, h->n, h->earlier) };
    for (int64_t i = 0; i < h->n; i++) {
        int64_t low, high;

        row_keys(&h->m->config, h->n, i, &low, &high);
        h->rows.log_length += log((double)(high - low)) / (double)h->n;
    }
}

static bool heads_new(Heads *h, int threads, Error *err)
{
    int64_t heads = h->m->config.heads, layers = h->m->config.layers;

    *h->out = (HeadsResult){ .layers = layers, .heads = heads };
    h->tiles = ceil_div(h->n, TILE);
    h->threads = threads_new(threads > 0 ? threads : threads_default());
    h->earlier = malloc((size_t)h->n * sizeof(*h->earlier));
    h->scores = malloc((size_t)(threads_count(h->threads) * TILE * h->n) * sizeof(float));
    h->sums = calloc((size_t)(heads * h->tiles), sizeof(*h->sums));
    h->out->score = calloc((size_t)(layers * heads), sizeof(*h->out->score));
    return (h->threads && h->earlier && h->scores && h->sums && h->out->score) ||
           error_set(err, ERR_NOMEM, "not enough memory for the scores of heads");
}

bool heads_run(const Model *m, const int32_t *ids, int64_t n, const HeadsOptions *options,
               HeadsResult *out, Error *err)
{
    Heads          h = { .m = m, .o = options, .ids = ids, .n = n, .out = out };
    ForwardOptions forward = { .threads = options->threads, .cancel = options->cancel,
                               .on_layer = heads_layer, .context = &h };
    ForwardResult  result = { 0 };
    double         start = pass_seconds();
    bool           ok;

    if (n < 1)
        return error_set(err, ERR_DATA, "the text has no token; give at least one");
    forward.last_layer = options->layer >= 0 ? options->layer : m->config.layers - 1;
    ok = heads_new(&h, options->threads, err);
    if (ok) {
        find_rows(&h);
        ok = forward_run(m, ids, n, &forward, &result, err);
    }
    out->seconds = pass_seconds() - start;
    forward_result_free(&result);
    threads_free(h.threads);
    free(h.earlier);
    free(h.scores);
    free(h.sums);
    if (!ok)
        heads_result_free(out);
    return ok;
}

void heads_result_free(HeadsResult *r)
{
    free(r->score);
    *r = (HeadsResult){ 0 };
}

/* ---- repeated tokens ----------------------------------------------------- */

#define TRIES 10000

/* A token that stands for bytes of a text: no control token. */
static int32_t random_token(const Model *m, Rng *rng)
{
    int64_t count = m->tokenizer ? tokenizer_size(m->tokenizer) : m->embedding.rows;
    char    bytes[8];
    int32_t id = 0;

    count = min_i64(count, m->embedding.rows);
    for (int try = 0; try < TRIES; try++) {
        id = (int32_t)rng_below(rng, (uint64_t)count);
        if (!m->tokenizer || tokenizer_bytes(m->tokenizer, id, bytes, sizeof(bytes)) > 0)
            break;
    }
    return id;
}

bool heads_repeat(const Model *m, int64_t count, uint64_t seed, TokenList *out, Error *err)
{
    int32_t begin = m->tokenizer ? tokenizer_begin(m->tokenizer) : -1;
    int64_t before = begin >= 0;
    Rng     rng = rng_named(seed, "repeat");

    *out = (TokenList){ 0 };
    if (count < 1 || count > 1 << 20)
        return error_set(err, ERR_PARAM, "repeat: expected 1 to %d tokens, got %lld", 1 << 20,
                         (long long)count);
    out->ids = malloc((size_t)(before + 2 * count) * sizeof(*out->ids));
    if (!out->ids)
        return error_set(err, ERR_NOMEM, "not enough memory for %lld tokens",
                         (long long)(2 * count));
    out->count = before + 2 * count;
    if (before)
        out->ids[0] = begin;
    for (int64_t t = 0; t < count; t++)
        out->ids[before + t] = out->ids[before + count + t] = random_token(m, &rng);
    return true;
}
