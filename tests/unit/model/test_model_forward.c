/* test_model_forward.c -- the forward pass against its equations, written one by one in double, on
 * small models in memory; swaps, measures and heads. */
#include "model_fixture.h"

#include "model/forward.h"
#include "model/heads.h"

/* ---- the equations in double --------------------------------------------- */

typedef struct Truth {
    double h[LAYERS + 1][TOKENS][64];
    double final[TOKENS][64];
    double logits[TOKENS][VOCAB];
    double o[LAYERS][6][TOKENS][12], q[LAYERS][6][TOKENS][12];
    double w[LAYERS][6][TOKENS][TOKENS];
} Truth;

static double entry(const Weight *w, int64_t r, int64_t c)
{
    return (double)((const float *)(const void *)w->data)[r * w->cols + c];
}

static double at(const float *x, int64_t i)
{
    return x ? (double)x[i] : 0;
}

static void apply(const Weight *w, const float *bias, const double *x, double *y)
{
    for (int64_t r = 0; r < w->rows; r++) {
        y[r] = at(bias, r);
        for (int64_t c = 0; c < w->cols; c++)
            y[r] += entry(w, r, c) * x[c];
    }
}

static void normalise(const ModelConfig *c, const ModelNormWeights *w, const double *x,
                      int64_t count, bool rms, double *y)
{
    double mean = 0, squares = 0, by;

    for (int64_t i = 0; i < count && !rms; i++)
        mean += x[i] / (double)count;
    for (int64_t i = 0; i < count; i++)
        squares += (x[i] - mean) * (x[i] - mean) / (double)count;
    by = 1 / sqrt(squares + c->eps);
    for (int64_t i = 0; i < count; i++)
        y[i] = (x[i] - mean) * by * (double)w->weight[i] + at(w->bias, i);
}

static double activated(ModelActivation a, double x)
{
    switch (a) {
    case MODEL_SILU: return x / (1 + exp(-x));
    case MODEL_GELU: return x / 2 * (1 + erf(x / sqrt(2)));
    case MODEL_GELU_TANH:
        return x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    default: return x < 0 ? 0 : x;
    }
}

static void rotate(const ModelConfig *c, const float *norm, int64_t position, double *x)
{
    int64_t half = c->rotary / 2;

    if (norm)
        normalise(c, &(ModelNormWeights){ norm, NULL }, x, c->head_dim, true, x);
    for (int64_t t = 0; t < half; t++) {
        double angle = (double)position * c->inverse[t], s = c->rotary_scale;
        double a = x[t], b = x[t + half];

        x[t] = s * (a * cos(angle) - b * sin(angle));
        x[t + half] = s * (b * cos(angle) + a * sin(angle));
    }
}

/* Whether the plain model lets i see j; window > 0: a swap's total width. */
static bool sees(const ModelConfig *c, int64_t i, int64_t j, int64_t width)
{
    if (c->causal && j > i)
        return false;
    if (width > 0)
        return llabs(i - j) <= width / 2;
    return !c->window || llabs(i - j) < c->window;
}

static void truth_attention(const Made *made, int layer, int64_t width, double x[TOKENS][64],
                            Truth *t, double mixed[TOKENS][96])
{
    const ModelConfig *c = &made->m.config;
    const ModelLayer  *l = &made->layer[layer];
    static double q[TOKENS][96], k[TOKENS][96], v[TOKENS][96];
    int64_t       d = c->head_dim;

    for (int i = 0; i < TOKENS; i++) {
        apply(&l->q, l->q_bias, x[i], q[i]);
        apply(&l->k, l->k_bias, x[i], k[i]);
        apply(&l->v, l->v_bias, x[i], v[i]);
        for (int64_t h = 0; h < c->heads; h++)
            rotate(c, l->q_norm, i, q[i] + h * d);
        for (int64_t h = 0; h < c->kv_heads; h++)
            rotate(c, l->k_norm, i, k[i] + h * d);
    }
    for (int64_t h = 0; h < c->heads; h++)
        for (int i = 0; i < TOKENS; i++) {
            int64_t own = h / (c->heads / c->kv_heads) * d;
            double *w = t->w[layer][h][i], sum = 0;

            memcpy(t->q[layer][h][i], q[i] + h * d, (size_t)d * sizeof(double));
            for (int j = 0; j < TOKENS; j++) {
                double s = 0;

                for (int64_t e = 0; e < d; e++)
                    s += q[i][h * d + e] * k[j][own + e];
                w[j] = sees(c, i, j, width) ? exp(s * c->scale) : 0;
                sum += w[j];
            }
            for (int64_t e = 0; e < d; e++)
                mixed[i][h * d + e] = 0;
            for (int j = 0; j < TOKENS; j++) {
                w[j] /= sum;
                for (int64_t e = 0; e < d; e++)
                    mixed[i][h * d + e] += w[j] * v[j][own + e];
            }
            memcpy(t->o[layer][h][i], mixed[i] + h * d, (size_t)d * sizeof(double));
        }
}

static void truth_mlp(const ModelConfig *c, const ModelLayer *l, const double *z, double *h)
{
    double up[96], gate[96], down[64];

    apply(&l->up, l->up_bias, z, up);
    if (c->gated)
        apply(&l->gate, l->gate_bias, z, gate);
    for (int64_t f = 0; f < c->inner; f++)
        up[f] = c->gated ? activated(c->activation, gate[f]) * up[f]
                         : activated(c->activation, up[f]);
    apply(&l->down, l->down_bias, up, down);
    for (int64_t i = 0; i < c->width; i++)
        h[i] += down[i];
}

static void truth_embedding(const Made *made, const int32_t *ids, Truth *t)
{
    const Model       *m = &made->m;
    const ModelConfig *c = &m->config;

    for (int i = 0; i < TOKENS; i++) {
        double e[64] = { 0 };

        for (int64_t x = 0; x < m->embedding.cols; x++) {
            e[x] = entry(&m->embedding, ids[i], x) * (double)(float)c->embedding_scale;
            e[x] += m->positions.type ? entry(&m->positions, i, x) : 0;
            e[x] += m->types.type ? entry(&m->types, 0, x) : 0;
        }
        if (m->embedding_norm.weight)
            normalise(c, &m->embedding_norm, e, m->embedding.cols, false, e);
        if (m->map.type)
            apply(&m->map, m->map_bias, e, t->h[0][i]);
        else
            memcpy(t->h[0][i], e, sizeof(e));
    }
}

/* swapped: bit l, layer l has a window of that total width; heads of `kept` stay exact. */
static void truth_layer(const Made *made, int layer, int64_t width, Truth *t)
{
    const ModelConfig *c = &made->m.config;
    const ModelLayer  *l = &made->layer[layer];
    static double x[TOKENS][64], mixed[TOKENS][96];
    bool          rms = c->norm == MODEL_RMS;
    double        y[64], z[64];

    for (int i = 0; i < TOKENS; i++) {
        memcpy(x[i], t->h[layer][i], sizeof(x[i]));
        if (c->causal)
            normalise(c, &l->attention_norm, t->h[layer][i], c->width, rms, x[i]);
    }
    truth_attention(made, layer, width, x, t, mixed);
    for (int i = 0; i < TOKENS; i++) {
        double *h = t->h[layer + 1][i];

        apply(&l->output, l->output_bias, mixed[i], y);
        for (int64_t e = 0; e < c->width; e++)
            h[e] = t->h[layer][i][e] + y[e];
        if (!c->causal)
            normalise(c, &l->attention_norm, h, c->width, rms, h);
        memcpy(z, h, sizeof(z));
        if (c->causal)
            normalise(c, &l->mlp_norm, h, c->width, rms, z);
        truth_mlp(c, l, z, h);
        if (!c->causal)
            normalise(c, &l->mlp_norm, h, c->width, rms, h);
    }
}

static void truth_run(const Made *made, const int32_t *ids, const int64_t widths[LAYERS], Truth *t)
{
    const Model       *m = &made->m;
    const ModelConfig *c = &m->config;

    memset(t, 0, sizeof(*t));
    truth_embedding(made, ids, t);
    for (int layer = 0; layer < LAYERS; layer++)
        truth_layer(made, layer, widths[layer], t);
    for (int i = 0; i < TOKENS; i++) {
        double z[64];

        memcpy(t->final[i], t->h[LAYERS][i], sizeof(z));
        if (m->final_norm.weight)
            normalise(c, &m->final_norm, t->h[LAYERS][i], c->width, c->norm == MODEL_RMS,
                      t->final[i]);
        memcpy(z, t->final[i], sizeof(z));
        if (m->head_dense.type) {
            apply(&m->head_dense, m->head_dense_bias, t->final[i], z);
            for (int64_t x = 0; x < m->head_dense.rows; x++)
                z[x] = activated(m->head_activation, z[x]);
            normalise(c, &m->head_norm, z, m->head_dense.rows, false, z);
        }
        apply(&m->head, m->head_bias, z, t->logits[i]);
    }
}

static double log_sum(const double *z)
{
    double sum = 0;

    for (int v = 0; v < VOCAB; v++)
        sum += exp(z[v]);
    return log(sum);
}

static int largest(const double *z)
{
    int best = 0;

    for (int v = 1; v < VOCAB; v++)
        best = z[v] > z[best] ? v : best;
    return best;
}

/* ---- the pass ------------------------------------------------------------ */

typedef struct Seen {
    const Truth *truth[3];
    int          layers, rows;
} Seen;

static bool see_layer(void *context, const LayerView *view)
{
    Seen        *seen = context;
    const Truth *t = seen->truth[view->variant];
    int64_t      d = view->q.shape[2];

    for (int64_t h = 0; t && h < view->q.shape[0]; h++)
        for (int64_t i = 0; i < TOKENS; i++)
            for (int64_t e = 0; e < d; e++) {
                int64_t x = (h * TOKENS + i) * d + e;

                CHECK_NEAR((double)tensor_f32(&view->q)[x], t->q[view->layer][h][i][e], 2e-5);
                CHECK_NEAR((double)tensor_f32(&view->o)[x], t->o[view->layer][h][i][e], 2e-5);
            }
    seen->layers++;
    return true;
}

static void see_logits(void *context, int64_t variant, int64_t first, int64_t rows,
                       const float *logits)
{
    Seen *seen = context;

    for (int64_t x = 0; x < rows * VOCAB; x++)
        CHECK_NEAR((double)logits[x], seen->truth[variant]->logits[first + x / VOCAB][x % VOCAB],
                   1e-4);
    seen->rows += (int)rows;
}

static void check_measure(const Made *made, const int32_t *ids, const Truth *t,
                          const ForwardMeasure *m)
{
    double loss = 0;

    for (int i = 0; i < TOKENS; i++) {
        int    best = largest(t->logits[i]);
        double lse = log_sum(t->logits[i]);

        assert_int_equal(m->next[i * FORWARD_NEXT].id, best);
        CHECK_NEAR(m->next[i * FORWARD_NEXT].p, exp(t->logits[i][best] - lse), 1e-4);
        for (int k = 1; k < FORWARD_NEXT; k++)
            assert_true(m->next[i * FORWARD_NEXT + k].p <= m->next[i * FORWARD_NEXT + k - 1].p);
        if (i + 1 == TOKENS || !made->m.config.causal)
            continue;
        CHECK_NEAR(m->nll[i], lse - t->logits[i][ids[i + 1]], 1e-4);
        loss += (lse - t->logits[i][ids[i + 1]]) / (TOKENS - 1);
    }
    if (made->m.config.causal) {
        CHECK_NEAR(m->loss, loss, 2e-5);
        CHECK_NEAR(m->perplexity, exp(loss), 2e-5);
    } else {
        assert_true(isnan(m->loss) && !m->nll);
    }
}

static void check_against(const Truth *full, const Truth *t, const ForwardMeasure *m)
{
    double kl = 0, most = 0, agreed = 0;

    for (int i = 0; i < TOKENS; i++) {
        double a = log_sum(full->logits[i]), b = log_sum(t->logits[i]), one = 0;

        for (int v = 0; v < VOCAB; v++)
            one += exp(full->logits[i][v] - a) *
                   (full->logits[i][v] - a - t->logits[i][v] + b);
        kl += one / TOKENS;
        most = fmax(most, one);
        agreed += largest(full->logits[i]) == largest(t->logits[i]);
    }
    CHECK_NEAR(m->kl, kl, 2e-5);
    CHECK_NEAR(m->kl_max, most, 1e-4);
    CHECK_NEAR(m->agreement, agreed / TOKENS, 1e-9);
    for (int l = 0; l <= LAYERS; l++) {
        double error = 0, norm = 0;

        for (int i = 0; i < TOKENS; i++)
            for (int e = 0; e < 64; e++) {
                error += pow(t->h[l][i][e] - full->h[l][i][e], 2);
                norm += pow(full->h[l][i][e], 2);
            }
        CHECK_NEAR(m->residual[l], sqrt(error / norm), 2e-5);
    }
}

/* Plain, a window in all layers, and one in the last layer. */
static void check_model(Made *made)
{
    static Truth   plain, all, last;
    const int64_t  none[LAYERS] = { 0, 0 }, both[LAYERS] = { 9, 9 }, second[LAYERS] = { 0, 9 };
    const bool     only[LAYERS] = { false, true };
    Swap           swaps[2] = { { .mechanism = "window(window=9)", .layers = only },
                                { .mechanism = "pattern(window(9))" } };
    Seen           seen = { .truth = { &plain, &last, &all } };
    ForwardOptions o = { .swaps = swaps, .swap_count = 2, .last_layer = -1, .threads = 2,
                         .on_layer = see_layer, .on_logits = see_logits, .context = &seen };
    ForwardResult  r;
    Error          err = ERROR_INIT;
    int32_t        ids[TOKENS];

    make_ids(ids);
    truth_run(made, ids, none, &plain);
    truth_run(made, ids, both, &all);
    truth_run(made, ids, second, &last);
    CHECK(forward_run(&made->m, ids, TOKENS, &o, &r, &err), "%s", err.text);
    assert_int_equal(seen.layers, 3 * LAYERS);
    assert_int_equal(seen.rows, 3 * TOKENS);
    check_measure(made, ids, &plain, &r.measure[0]);
    check_measure(made, ids, &last, &r.measure[1]);
    check_measure(made, ids, &all, &r.measure[2]);
    check_against(&plain, &last, &r.measure[1]);
    check_against(&plain, &all, &r.measure[2]);
    assert_true(r.measure[2].flops > 1.99 * r.measure[1].flops);
    assert_true(made->m.config.window || r.measure[2].flops < r.measure[2].flops_exact);
    assert_false(r.measure[1].untrained);
    forward_result_free(&r);
    made_free(made);
}

static void test_families(void **state)
{
    (void)state;
    check_model(make_llama(false, false, 0, MODEL_SILU));
    check_model(make_llama(true, false, 0, MODEL_SILU));
    check_model(make_llama(false, true, 5, MODEL_SILU));
    check_model(make_llama(false, false, 0, MODEL_GELU_TANH));
    check_model(make_older(false));
    check_model(make_older(true));
}

/* ---- swaps --------------------------------------------------------------- */

static ForwardResult run_swap(Made *made, const Swap *swap, int threads)
{
    ForwardOptions o = { .swaps = swap, .swap_count = swap ? 1 : 0, .last_layer = -1,
                         .threads = threads };
    ForwardResult  r;
    Error          err = ERROR_INIT;
    int32_t        ids[TOKENS];

    make_ids(ids);
    CHECK(forward_run(&made->m, ids, TOKENS, &o, &r, &err), "%s", err.text);
    return r;
}

static void test_wide_window_is_exact(void **state)
{
    Made         *made = make_llama(false, false, 0, MODEL_SILU);
    Swap          swap = { .mechanism = "window(window=99)" };
    ForwardResult r = run_swap(made, &swap, 1);

    (void)state;
    CHECK_NEAR(r.measure[1].delta, 0, 1e-6);
    CHECK_NEAR(r.measure[1].kl, 0, 1e-9);
    CHECK_NEAR(r.measure[1].agreement, 1, 0);
    CHECK_NEAR(r.measure[1].cosine, 1, 1e-9);
    CHECK_NEAR(r.measure[1].flops / r.measure[1].flops_exact, 1, 1e-12);
    forward_result_free(&r);
    made_free(made);
}

/* Heads that are not named stay exact: no head named is the plain model. */
static void test_heads_stay_exact(void **state)
{
    Made         *made = make_llama(false, false, 0, MODEL_SILU);
    bool          heads[6] = { false };
    Swap          swap = { .mechanism = "window(window=3)", .heads = heads };
    ForwardResult none = run_swap(made, &swap, 1), some, all;

    (void)state;
    /* Products of other heights, which a BLAS may round otherwise: 4e-7 with Zen's kernels. */
    CHECK_NEAR(none.measure[1].delta, 0, 1e-6);
    CHECK_NEAR(none.measure[1].kl, 0, 1e-9);
    CHECK_NEAR(none.measure[1].flops, 0, 0);
    heads[1] = heads[4] = true;
    some = run_swap(made, &swap, 1);
    swap.heads = NULL;
    all = run_swap(made, &swap, 1);
    assert_true(some.measure[1].kl > 0 && some.measure[1].kl < all.measure[1].kl);
    CHECK_NEAR(some.measure[1].flops * 3, all.measure[1].flops, 1e-12);
    forward_result_free(&none);
    forward_result_free(&some);
    forward_result_free(&all);
    made_free(made);
}

static void test_threads_change_nothing(void **state)
{
    Made         *made = make_llama(true, false, 0, MODEL_SILU);
    Swap          swap = { .mechanism = "window(window=5)" };
    ForwardResult one = run_swap(made, &swap, 1), three = run_swap(made, &swap, 3);

    (void)state;
    for (int t = 0; t + 1 < TOKENS; t++)
        assert_true(one.measure[1].nll[t] == three.measure[1].nll[t]);
    assert_true(one.measure[1].kl == three.measure[1].kl);
    forward_result_free(&one);
    forward_result_free(&three);
    made_free(made);
}

static void test_untrained(void **state)
{
    Made         *made = make_llama(false, false, 0, MODEL_SILU);
    Swap          swap = { .mechanism = "performer(features=16)", .seed = 4 };
    ForwardResult a = run_swap(made, &swap, 1), b;

    (void)state;
    assert_true(a.measure[1].untrained);
    swap.seed = 5;
    b = run_swap(made, &swap, 1);
    assert_true(a.measure[1].kl != b.measure[1].kl);
    forward_result_free(&a);
    forward_result_free(&b);
    made_free(made);
}

/* A file's weights that are not numbers, seen in the layer where they act. */
static void test_not_finite(void **state)
{
    Made          *made = make_llama(false, false, 0, MODEL_SILU);
    ForwardOptions o = { .last_layer = -1, .threads = 1 };
    ForwardResult  r;
    Error          err = ERROR_INIT;
    int32_t        ids[TOKENS];

    (void)state;
    make_ids(ids);
    ((float *)(uintptr_t)made->layer[1].down.data)[5] = INFINITY;
    assert_false(forward_run(&made->m, ids, TOKENS, &o, &r, &err));
    CHECK(strstr(err.text, "not finite") && strstr(err.text, "layer 1"), "%s", err.text);
    assert_int_equal(err.code, ERR_MODEL);
    made_free(made);
}

static void check_refused(Made *made, const char *mechanism, const char *says)
{
    Swap           swap = { .mechanism = mechanism };
    ForwardOptions o = { .swaps = &swap, .swap_count = 1, .last_layer = -1, .threads = 1 };
    ForwardResult  r;
    Error          err = ERROR_INIT;
    int32_t        ids[TOKENS];

    make_ids(ids);
    assert_false(forward_run(&made->m, ids, TOKENS, &o, &r, &err));
    CHECK(strstr(err.text, says), "'%s' does not say '%s'", err.text, says);
}

static void test_refusals(void **state)
{
    Made          *made = make_llama(false, false, 0, MODEL_SILU);
    ForwardOptions o = { .last_layer = -1, .threads = 1 };
    ForwardResult  r;
    Error          err = ERROR_INIT;
    int32_t        ids[2] = { 0, VOCAB };

    (void)state;
    check_refused(made, "windo(window=3)", "unknown mechanism 'windo'");
    check_refused(made, "window(windo=3)", "no parameter 'windo'");
    check_refused(made, "window(window=3", "not closed");
    check_refused(made, "linformer", "no causal form");
    check_refused(made, "pattern(nothing(3))", "unknown");
    assert_false(forward_run(&made->m, ids, 2, &o, &r, &err));
    CHECK(strstr(err.text, "61") && strstr(err.text, "token 1"), "%s", err.text);
    assert_false(forward_run(&made->m, ids, 0, &o, &r, &err));
    made_free(made);
}

/* ---- stopping ------------------------------------------------------------ */

static bool stop_at_once(void *context, const LayerView *view)
{
    ++*(int *)context;
    return view->layer < 0;
}

static void test_last_layer_and_stop(void **state)
{
    static Truth   plain;
    const int64_t  none[LAYERS] = { 0, 0 };
    Made          *made = make_llama(false, false, 0, MODEL_SILU);
    Seen           seen = { .truth = { &plain } };
    ForwardOptions o = { .last_layer = 0, .threads = 1, .on_layer = see_layer, .context = &seen };
    ForwardResult  r;
    Error          err = ERROR_INIT;
    int32_t        ids[TOKENS];
    atomic_bool    cancel;
    int            calls = 0;

    (void)state;
    make_ids(ids);
    truth_run(made, ids, none, &plain);
    CHECK(forward_run(&made->m, ids, TOKENS, &o, &r, &err), "%s", err.text);
    assert_int_equal(seen.layers, 1);
    assert_null(r.measure[0].next);
    forward_result_free(&r);
    o = (ForwardOptions){ .last_layer = -1, .threads = 1, .on_layer = stop_at_once,
                          .context = &calls };
    assert_false(forward_run(&made->m, ids, TOKENS, &o, &r, &err));
    assert_int_equal(calls, 1);
    assert_int_equal(err.code, ERR_CANCELLED);
    atomic_init(&cancel, true);
    o = (ForwardOptions){ .last_layer = -1, .threads = 1, .cancel = &cancel };
    assert_false(forward_run(&made->m, ids, TOKENS, &o, &r, &err));
    assert_int_equal(err.code, ERR_CANCELLED);
    made_free(made);
}

/* ---- heads --------------------------------------------------------------- */

static void check_head(const Truth *t, const int32_t *ids, int layer, int head,
                       const HeadScores *s, bool causal)
{
    double previous = 0, self = 0, first = 0, next = 0, entropy = 0, distance = 0, induction = 0;
    int    rows = 0;

    for (int i = 0; i < TOKENS; i++) {
        const double *w = t->w[layer][head][i];
        bool          before = false;

        for (int j = 0; j < TOKENS; j++) {
            entropy -= w[j] > 0 ? w[j] * log(w[j]) / TOKENS : 0;
            distance += w[j] * abs(i - j) / TOKENS;
            before |= j < i && ids[j] == ids[i];
            if (j >= 1 && j < i && ids[j - 1] == ids[i])
                induction += w[j];
        }
        rows += before;
        previous += i ? w[i - 1] / (TOKENS - 1) : 0;
        self += i ? w[i] / (TOKENS - 1) : 0;
        first += i ? w[0] / (TOKENS - 1) : 0;
        next += i + 1 < TOKENS ? w[i + 1] / (TOKENS - 1) : 0;
    }
    CHECK_NEAR(s->previous, previous, 1e-5);
    CHECK_NEAR(s->self, self, 1e-5);
    CHECK_NEAR(s->first, first, 1e-5);
    CHECK_NEAR(s->entropy, entropy, 1e-5);
    CHECK_NEAR(s->distance, distance, 1e-5);
    assert_int_equal(s->induction_rows, rows);
    CHECK_NEAR(s->induction, induction / rows, 1e-5);
    if (causal)
        assert_true(isnan(s->next));
    else
        CHECK_NEAR(s->next, next, 1e-5);
}

static void check_heads_of(Made *made)
{
    static Truth  plain;
    const int64_t none[LAYERS] = { 0, 0 };
    HeadsOptions  o = { .layer = -1, .threads = 2 };
    HeadsResult   r;
    Error         err = ERROR_INIT;
    int32_t       ids[TOKENS];

    make_ids(ids);
    truth_run(made, ids, none, &plain);
    CHECK(heads_run(&made->m, ids, TOKENS, &o, &r, &err), "%s", err.text);
    for (int l = 0; l < LAYERS; l++)
        for (int t = 0; t < r.heads; t++)
            check_head(&plain, ids, l, t, &r.score[l * r.heads + t], made->m.config.causal);
    heads_result_free(&r);
    made_free(made);
}

static void test_heads(void **state)
{
    (void)state;
    check_heads_of(make_llama(false, false, 0, MODEL_SILU));
    check_heads_of(make_llama(false, true, 5, MODEL_SILU));
    check_heads_of(make_older(true));
}

static void test_repeat(void **state)
{
    Made     *made = make_llama(false, false, 0, MODEL_SILU);
    TokenList a, b;
    Error     err = ERROR_INIT;

    (void)state;
    assert_true(heads_repeat(&made->m, 20, 1, &a, &err));
    assert_true(heads_repeat(&made->m, 20, 1, &b, &err));
    assert_int_equal(a.count, 40);
    assert_memory_equal(a.ids, b.ids, 40 * sizeof(*a.ids));
    assert_memory_equal(a.ids, a.ids + 20, 20 * sizeof(*a.ids));
    assert_false(heads_repeat(&made->m, 0, 1, &(TokenList){ 0 }, &err));
    token_list_free(&a);
    token_list_free(&b);
    made_free(made);
}

/* ---- long rows ------------------------------------------------------------- */

/* Two channels, and an MLP of zeros; so many channels do not fit where a product works. */
static double loss_of_zeros(int64_t inner)
{
    Made          *made = calloc(1, sizeof(*made));
    float         *zeros = calloc((size_t)inner * 2, sizeof(*zeros));
    const uint8_t *data = (const uint8_t *)zeros;
    ModelConfig    c = { .arch = "llama", .causal = true, .layers = LAYERS, .width = 2, .heads = 1,
                         .kv_heads = 1, .head_dim = 2, .inner = 1, .vocab = VOCAB, .context = 64,
                         .embedding_width = 2, .eps = 1e-5, .norm = MODEL_RMS, .gated = true,
                         .rotary = 2, .rotary_scale = 1, .scale = 1, .embedding_scale = 1 };
    ForwardOptions o = { .last_layer = -1, .threads = 2 };
    ForwardResult  r;
    Error          err = ERROR_INIT;
    double         loss;

    made->arena = arena_new();
    make_common(made, c, false, false);
    made->m.config.inner = inner;
    made->m.embedding = made->m.head = matrix(made, VOCAB, 2, 0.5);
    for (int l = 0; l < LAYERS; l++) {
        Weight up = { .type = WEIGHT_F32, .data = data, .rows = inner, .cols = 2 };

        made->layer[l].gate = made->layer[l].up = up;
        made->layer[l].down = (Weight){ .type = WEIGHT_F32, .data = data, .rows = 2,
                                        .cols = inner };
    }
    CHECK(forward_run(&made->m, (int32_t[]){ 3, 5 }, 2, &o, &r, &err), "%s", err.text);
    loss = r.measure[0].loss;
    forward_result_free(&r);
    free(zeros);
    made_free(made);
    return loss;
}

static void test_long_rows(void **state)
{
    (void)state;
    assert_true(loss_of_zeros((int64_t)5 << 20) == loss_of_zeros(8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_wide_window_is_exact),
        cmocka_unit_test(test_heads_stay_exact),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_untrained),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_last_layer_and_stop),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_repeat),
        cmocka_unit_test(test_long_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
