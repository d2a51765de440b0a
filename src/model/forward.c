/* forward.c -- the forward pass; see forward.h and pass.h. */
#include "model/forward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "input/store.h"
#include "model/pass.h"

typedef struct Forward {
    Pass                  pass;
    const Model          *m;
    const ModelConfig    *c;
    const ForwardOptions *o;
    const int32_t        *ids;
    int64_t               n, variants;
    MechanismSpec        *spec;    /* [parts] of all swaps, in their order */
    int64_t               parts;
    int64_t              *part;    /* [variants] where its own begin; [0] unused */
    int64_t              *first;   /* [variants] layer from which a variant is its own */
    int64_t              *slot;    /* [variants] */
    int64_t              *variant; /* [slots] */
    int64_t               active;  /* slots in use */
    float                *h, *x;                /* [slots n, D] */
    float                *rows, *mixed;         /* [slots n, (H+2K) d], [slots n, H d] */
    float                *q, *k, *v, *o_heads;  /* of one variant */
    float                *k_all, *v_all;        /* repeated to H heads; NULL: K = H */
    float                *swapped;              /* [H,n,d]; what a mechanism gives */
    float                *inner;                /* of the MLP */
    double               *squares, *squares_from; /* [slots n] */
    Run                  *bare;
    Arena                *runs;
    ForwardResult        *out;
    Error                *err;
} Forward;

/* ---- which variant is computed from where -------------------------------- */

static bool swaps_layer(const Forward *f, int64_t variant, int64_t layer)
{
    for (const Swap *s = variant ? &f->o->swaps[variant - 1] : NULL; s; s = s->also)
        if (!s->layers || s->layers[layer])
            return true;
    return false;
}

/* How many heads of the layer a part has; part NULL: how many stay exact. */
static int64_t heads_of(const Forward *f, const Swap *swap, const Swap *part, int64_t layer)
{
    int64_t count = 0;

    for (int64_t t = 0; t < f->c->heads; t++)
        count += swap_part(swap, layer, t) == part;
    return count;
}

/* The first layer that it changes; layers: none. */
static int64_t first_swapped(const Forward *f, int64_t variant)
{
    int64_t layer = 0;

    while (layer < f->c->layers && !swaps_layer(f, variant, layer))
        layer++;
    return variant ? layer : 0;
}

/* Slots in the order of first layers; variant 0 has slot 0. */
static void give_slots(Forward *f)
{
    int64_t slots = 0;

    for (int64_t layer = 0; layer <= f->c->layers; layer++)
        for (int64_t v = 0; v < f->variants; v++)
            if (f->first[v] == layer) {
                f->slot[v] = slots;
                f->variant[slots++] = v;
            }
}

static bool parse_swaps(Forward *f)
{
    for (int64_t v = 1; v < f->variants; v++) {
        f->part[v] = f->parts;
        for (const Swap *s = &f->o->swaps[v - 1]; s; s = s->also)
            if (!mechanism_spec_parse(s->mechanism, &f->spec[f->parts++], f->err))
                return error_prefix(f->err, "swap");
    }
    for (int64_t v = 0; v < f->variants; v++)
        f->first[v] = first_swapped(f, v);
    give_slots(f);
    return true;
}

/* ---- memory -------------------------------------------------------------- */

static bool result_new(Forward *f)
{
    ForwardResult *out = f->out;
    int64_t        layers = f->c->layers;

    *out = (ForwardResult){ .variants = f->variants };
    out->measure = calloc((size_t)f->variants, sizeof(*out->measure));
    out->layer_seconds = calloc((size_t)layers, sizeof(double));
    for (int64_t v = 0; out->measure && v < f->variants; v++) {
        ForwardMeasure *m = &out->measure[v];

        m->loss = m->perplexity = m->delta = m->kl = m->kl_max = m->agreement = (double)NAN;
        m->cosine = (double)NAN;
        m->residual = v ? calloc((size_t)layers + 1, sizeof(double)) : NULL;
        m->residual_norm = calloc((size_t)layers + 1, sizeof(double));
        m->final = calloc((size_t)f->c->width, sizeof(float));
        if ((v && !m->residual) || !m->residual_norm || !m->final)
            return error_set(f->err, ERR_NOMEM, "not enough memory for a forward pass");
    }
    return (out->measure && out->layer_seconds) ||
           error_set(f->err, ERR_NOMEM, "not enough memory for a forward pass");
}

void forward_result_free(ForwardResult *r)
{
    for (int64_t v = 0; r->measure && v < r->variants; v++) {
        free(r->measure[v].nll);
        free(r->measure[v].next);
        free(r->measure[v].residual);
        free(r->measure[v].residual_norm);
        free(r->measure[v].final);
    }
    free(r->measure);
    free(r->layer_seconds);
    *r = (ForwardResult){ 0 };
}

static bool buffers_new(Forward *f)
{
    const ModelConfig *c = f->c;
    Pass   *p = &f->pass;
    int64_t all = f->variants * f->n, d = c->head_dim, inner = (c->gated ? 2 : 1) * c->inner;
    bool    repeats = c->kv_heads < c->heads && f->variants > 1;

    f->h = pass_floats(p, all, c->width);
    f->x = f->h ? pass_floats(p, all, c->width) : NULL;
    f->rows = f->x ? pass_floats(p, all, (c->heads + 2 * c->kv_heads) * d) : NULL;
    f->mixed = f->rows ? pass_floats(p, all, c->heads * d) : NULL;
    f->q = f->mixed ? pass_floats(p, f->n, c->heads * d) : NULL;
    f->k = f->q ? pass_floats(p, f->n, c->kv_heads * d) : NULL;
    f->v = f->k ? pass_floats(p, f->n, c->kv_heads * d) : NULL;
    f->o_heads = f->v ? pass_floats(p, f->n, c->heads * d) : NULL;
    f->inner = f->o_heads ? pass_floats(p, pass_mlp_rows(all), inner) : NULL;
    f->swapped = f->inner && f->variants > 1 ? pass_floats(p, f->n, c->heads * d) : NULL;
    f->k_all = f->swapped && repeats ? pass_floats(p, f->n, c->heads * d) : f->k;
    f->v_all = f->swapped && repeats ? pass_floats(p, f->n, c->heads * d) : f->v;
    f->squares = arena_alloc(p->arena, 2 * all, sizeof(double));
    f->squares_from = f->squares ? f->squares + all : NULL;
    return (f->inner && f->squares && (f->variants == 1 || f->swapped) && f->k_all && f->v_all) ||
           error_set(f->err, ERR_NOMEM, "not enough memory for %lld tokens in %lld variants",
                     (long long)f->n, (long long)f->variants);
}

static bool lists_new(Forward *f)
{
    size_t count = (size_t)f->variants, parts = 1;

    for (int64_t v = 1; v < f->variants; v++)
        for (const Swap *s = &f->o->swaps[v - 1]; s; s = s->also)
            parts++;
    f->spec = calloc(parts, sizeof(*f->spec));
    f->part = calloc(count, sizeof(*f->part));
    f->first = calloc(count, sizeof(*f->first));
    f->slot = calloc(count, sizeof(*f->slot));
    f->variant = calloc(count, sizeof(*f->variant));
    f->bare = run_bare();
    f->runs = arena_new();
    if (!f->spec || !f->part || !f->first || !f->slot || !f->variant || !f->bare || !f->runs)
        return error_set(f->err, ERR_NOMEM, "not enough memory for a forward pass");
    f->bare->h = f->c->heads;
    return true;
}

static void forward_close(Forward *f)
{
    for (int64_t x = 0; f->spec && x < f->parts; x++)
        mechanism_spec_free(&f->spec[x]);
    free(f->spec);
    free(f->part);
    free(f->first);
    free(f->slot);
    free(f->variant);
    run_free(f->bare);
    if (f->runs)
        arena_free(f->runs);
    pass_close(&f->pass);
}

/* ---- attention ----------------------------------------------------------- */

static SwapInput input_of(const Forward *f, int64_t slot, bool repeated)
{
    const ModelConfig *c = f->c;
    int64_t            q[3] = { c->heads, f->n, c->head_dim }, k[3] = { 0, f->n, c->head_dim };
    int64_t            x[2] = { f->n, c->width };
    const float       *from = c->causal ? f->x : f->h; /* encoders: the layer's input itself */

    k[0] = repeated ? c->heads : c->kv_heads;
    return (SwapInput){
        .config = c,
        .q = tensor_of(DT_F32, 3, q, f->q),
        .k = tensor_of(DT_F32, 3, k, repeated ? f->k_all : f->k),
        .v = tensor_of(DT_F32, 3, k, repeated ? f->v_all : f->v),
        .x = tensor_of(DT_F32, 2, x, (void *)(uintptr_t)(from + slot * f->n * c->width)),
        .threads = f->pass.threads,
        .cancel = f->pass.cancel,
    };
}

static void repeat_heads(const Forward *f, const float *from, float *to)
{
    int64_t size = f->n * f->c->head_dim, share = f->c->heads / f->c->kv_heads;

    for (int64_t t = 0; from != to && t < f->c->heads; t++)
        memcpy(to + t * size, from + t / share * size, (size_t)size * sizeof(float));
}

/* The mechanism's output into the heads it replaces. */
static bool attend_part(Forward *f, int64_t layer, int64_t slot, const MechanismSpec *spec,
                        const Swap *part, int64_t count)
{
    int64_t         v = f->variant[slot], size = f->n * f->c->head_dim;
    const Swap     *swap = &f->o->swaps[v - 1];
    SwapInput       in = input_of(f, slot, true);
    SwapOutcome     outcome;
    ForwardMeasure *m = &f->out->measure[v];

    in.seed = part->seed;
    if (!swap_attend(spec, part->mechanism, &in, f->runs, f->swapped, &outcome, f->err))
        return error_prefix(f->err, "layer %lld", (long long)layer);
    for (int64_t t = 0; t < f->c->heads; t++)
        if (swap_part(swap, layer, t) == part)
            memcpy(f->o_heads + t * size, f->swapped + t * size, (size_t)size * sizeof(float));
    m->flops += outcome.flops * (double)count / (double)f->c->heads;
    m->untrained |= outcome.untrained;
    if (!*m->note)
        memcpy(m->note, outcome.note, sizeof(m->note));
    return true;
}

static bool attend_swapped(Forward *f, int64_t layer, int64_t slot)
{
    int64_t              v = f->variant[slot];
    const Swap          *swap = &f->o->swaps[v - 1];
    const MechanismSpec *spec = &f->spec[f->part[v]];

    repeat_heads(f, f->k, f->k_all);
    repeat_heads(f, f->v, f->v_all);
    for (const Swap *part = swap; part; part = part->also, spec++) {
        int64_t count = heads_of(f, swap, part, layer);

        if (count && !attend_part(f, layer, slot, spec, part, count))
            return false;
    }
    return true;
}

static double exact_flops(const Forward *f)
{
    double n = (double)f->n, w = (double)f->c->window, cells = n * n;

    if (f->c->causal)
        cells = w > 0 && w < n ? n * w - w * (w - 1) / 2 : n * (n + 1) / 2;
    return 4 * cells * (double)f->c->head_dim;
}

static bool attend(Forward *f, int64_t layer, int64_t slot)
{
    int64_t     v = f->variant[slot];
    const Swap *swap = swaps_layer(f, v, layer) ? &f->o->swaps[v - 1] : NULL;
    int64_t     exact = swap ? heads_of(f, swap, NULL, layer) : f->c->heads;
    double      start = pass_seconds(), flops = 0;
    bool        ok = true;

    if (exact) {
        SwapInput in = input_of(f, slot, false);

        ok = exact_attend(f->bare, &in, f->o_heads, &flops);
        if (!ok)
            *f->err = f->bare->err;
    }
    if (ok && exact < f->c->heads)
        ok = attend_swapped(f, layer, slot);
    f->out->measure[v].flops_exact += (double)(f->c->heads - exact) * exact_flops(f);
    f->out->measure[v].seconds += pass_seconds() - start;
    return ok;
}

typedef struct MixJob {
    const float *from;
    float       *to;
    int64_t      n, heads, d;
} MixJob;

#define MIX_ROWS 64

/* [H,n,d] to [n, H d] */
static void mix_item(void *context, int64_t item, int worker)
{
    const MixJob *job = context;
    int64_t       end = min_i64(job->n, (item + 1) * MIX_ROWS);

    (void)worker;
    for (int64_t i = item * MIX_ROWS; i < end; i++)
        for (int64_t t = 0; t < job->heads; t++)
            memcpy(job->to + (i * job->heads + t) * job->d, job->from + (t * job->n + i) * job->d,
                   (size_t)job->d * sizeof(float));
}

static bool show_layer(const Forward *f, int64_t layer, int64_t slot, int64_t variant)
{
    SwapInput in = input_of(f, slot, false);
    LayerView view = { .layer = layer, .variant = variant, .x = in.x, .q = in.q, .k = in.k,
                       .v = in.v };

    view.o = view.q;
    view.o.data = f->o_heads;
    return f->o->on_layer(f->o->context, &view) ||
           error_set(f->err, ERR_CANCELLED, "the forward pass was stopped after layer %lld",
                     (long long)layer);
}

/* The callback for the variant, and for those that are still what variant 0 is. */
static bool show_layers(const Forward *f, int64_t layer, int64_t slot)
{
    if (!f->o->on_layer)
        return true;
    if (!show_layer(f, layer, slot, f->variant[slot]))
        return false;
    for (int64_t s = f->active; slot == 0 && s < f->variants; s++)
        if (!show_layer(f, layer, 0, f->variant[s]))
            return false;
    return true;
}

static bool attention(Forward *f, int64_t layer)
{
    const ModelConfig *c = f->c;
    const ModelLayer  *l = &f->m->layer[layer];
    Linear  qkv = { .part = { &l->q, &l->k, &l->v },
                    .bias = { l->q_bias, l->k_bias, l->v_bias }, .count = 3 };
    Linear  output = { .part = { &l->output }, .bias = { l->output_bias }, .count = 1 };
    int64_t rows = f->active * f->n, wide = (c->heads + 2 * c->kv_heads) * c->head_dim;
    int64_t mixed = c->heads * c->head_dim;

    if (c->causal)
        pass_norm(&f->pass, &l->attention_norm, f->h, rows, c->width, f->x);
    pass_linear(&f->pass, &qkv, c->causal ? f->x : f->h, c->width, rows, f->rows, wide, false);
    for (int64_t slot = 0; slot < f->active; slot++) {
        MixJob job = { f->o_heads, f->mixed + slot * f->n * mixed, f->n, c->heads, c->head_dim };

        pass_heads(&f->pass, l, f->rows + slot * f->n * wide, f->n, 0, f->q, f->k, f->v);
        if (!attend(f, layer, slot) || !show_layers(f, layer, slot))
            return false;
        threads_run(f->pass.threads, ceil_div(f->n, MIX_ROWS), mix_item, &job);
    }
    if (layer == f->o->last_layer)
        return true;
    pass_linear(&f->pass, &output, f->mixed, mixed, rows, f->h, c->width, true);
    if (!c->causal)
        pass_norm(&f->pass, &l->attention_norm, f->h, rows, c->width, f->h);
    return true;
}

/* ---- the residual stream ------------------------------------------------- */

static double sum_of(const double *x, int64_t count)
{
    double sum = 0;

    for (int64_t i = 0; i < count; i++)
        sum += x[i];
    return sum;
}

/* Norms of h_l, and how far the swapped ones are from the plain one. */
static bool compare_residuals(Forward *f, int64_t l)
{
    int64_t width = f->c->width, n = f->n;
    double  plain;

    pass_squares(&f->pass, f->h, NULL, f->active * n, width, f->squares);
    plain = sqrt(sum_of(f->squares, n));
    if (!isfinite(plain))
        return error_set(f->err, ERR_MODEL,
                         "%s: the residual stream is not finite (NaN or infinity) after layer "
                         "%lld; the file's weights are damaged or are not what its config says",
                         f->m->path ? f->m->path : f->c->arch, (long long)l - 1);
    for (int64_t v = 0; v < f->variants; v++)
        f->out->measure[v].residual_norm[l] = plain;
    for (int64_t s = 1; s < f->active; s++) {
        ForwardMeasure *m = &f->out->measure[f->variant[s]];

        m->residual_norm[l] = sqrt(sum_of(f->squares + s * n, n));
        pass_squares(&f->pass, f->h + s * n * width, f->h, n, width, f->squares_from);
        m->residual[l] = sqrt(sum_of(f->squares_from, n)) / plain;
    }
    return true;
}

/* Variants whose first layer this is begin as copies of variant 0. */
static void begin_variants(Forward *f, int64_t layer)
{
    int64_t size = f->n * f->c->width;

    while (f->active < f->variants && f->first[f->variant[f->active]] <= layer)
        memcpy(f->h + f->active++ * size, f->h, (size_t)size * sizeof(float));
}

static bool run_layer(Forward *f, int64_t layer)
{
    const ModelLayer *l = &f->m->layer[layer];
    int64_t           rows = 0;
    double            start = pass_seconds();

    begin_variants(f, layer);
    rows = f->active * f->n;
    if (!attention(f, layer))
        return false;
    if (layer == f->o->last_layer)
        return true;
    if (f->c->causal)
        pass_norm(&f->pass, &l->mlp_norm, f->h, rows, f->c->width, f->x);
    pass_mlp(&f->pass, l, f->c->causal ? f->x : f->h, rows, f->inner, f->h);
    if (!f->c->causal)
        pass_norm(&f->pass, &l->mlp_norm, f->h, rows, f->c->width, f->h);
    f->out->layer_seconds[layer] = pass_seconds() - start;
    return pass_cancelled(&f->pass) || compare_residuals(f, layer + 1);
}

static bool run_layers(Forward *f)
{
    int64_t last = f->o->last_layer >= 0 ? f->o->last_layer : f->c->layers - 1;

    f->active = 1;
    if (!pass_embed(&f->pass, f->ids, f->n, 0, f->h) || !compare_residuals(f, 0))
        return false;
    for (int64_t layer = 0; layer <= last; layer++) {
        if (f->o->on_progress)
            f->o->on_progress(f->o->context, layer, f->c->layers);
        if (!run_layer(f, layer))
            return false;
        if (pass_cancelled(&f->pass))
            return error_set(f->err, ERR_CANCELLED, "interrupted in layer %lld of %lld",
                             (long long)layer, (long long)f->c->layers);
    }
    return true;
}

/* ---- the end ------------------------------------------------------------- */

/* Means over positions, and their cosine to the plain one's. */
static void mean_states(Forward *f, const float *final)
{
    int64_t width = f->c->width;

    for (int64_t v = 0; v < f->variants; v++) {
        const float    *rows = final + f->slot[v] * f->n * width;
        ForwardMeasure *m = &f->out->measure[v];
        const float    *full = f->out->measure[0].final;
        double          dot = 0, own = 0, other = 0;

        for (int64_t c = 0; c < width; c++) {
            double sum = 0;

            for (int64_t i = 0; i < f->n; i++)
                sum += (double)rows[i * width + c];
            m->final[c] = (float)(sum / (double)f->n);
        }
        for (int64_t c = 0; v && c < width; c++) {
            dot += (double)m->final[c] * (double)full[c];
            own += (double)m->final[c] * (double)m->final[c];
            other += (double)full[c] * (double)full[c];
        }
        m->cosine = v ? dot / sqrt(own * other) : (double)NAN;
    }
}

static bool finish(Forward *f)
{
    int64_t rows;
    double  start = pass_seconds();
    float  *final = f->h;
    bool    ok = true;

    begin_variants(f, f->c->layers); /* those that change nothing */
    rows = f->active * f->n;
    if (f->m->final_norm.weight) {
        pass_norm(&f->pass, &f->m->final_norm, f->h, rows, f->c->width, f->x);
        final = f->x;
    }
    mean_states(f, final);
    if (f->m->head.type != WEIGHT_NONE)
        ok = measure_transform(&f->pass, final, rows) &&
             measure_logits(&f->pass, f->o, f->ids, f->n, final, f->slot, f->out);
    f->out->seconds_head = pass_seconds() - start;
    return ok;
}

static bool check_request(Forward *f)
{
    const ModelConfig *c = f->c;

    if (f->n < 1)
        return error_set(f->err, ERR_DATA, "the text has no token; give at least one");
    if (f->m->positions.type != WEIGHT_NONE && f->n > f->m->positions.rows)
        return error_set(f->err, ERR_DATA,
                         "the text has %lld tokens and the model's table of positions ends at "
                         "%lld; cut it by --max-tokens %lld", (long long)f->n,
                         (long long)f->m->positions.rows, (long long)f->m->positions.rows);
    if (f->o->last_layer >= c->layers)
        return error_set(f->err, ERR_PARAM, "layer %lld: the model has the layers 0 to %lld",
                         (long long)f->o->last_layer, (long long)c->layers - 1);
    return true;
}

/* Mistakes in a swap are said before anything is computed. */
static bool check_swaps(Forward *f)
{
    for (int64_t v = 1; v < f->variants; v++) {
        SwapInput            in = input_of(f, 0, true);
        const MechanismSpec *spec = &f->spec[f->part[v]];

        for (const Swap *s = &f->o->swaps[v - 1]; s; s = s->also) {
            in.seed = s->seed;
            if (!swap_check(spec++, s->mechanism, &in, f->err))
                return false;
        }
    }
    return true;
}

bool forward_run(const Model *m, const int32_t *ids, int64_t n, const ForwardOptions *options,
                 ForwardResult *out, Error *err)
{
    Forward f = { .m = m, .c = &m->config, .o = options, .ids = ids, .n = n,
                  .variants = 1 + options->swap_count, .out = out, .err = err };
    double  start = pass_seconds();
    bool    ok;

    *out = (ForwardResult){ 0 };
    if (!check_request(&f))
        return false;
    ok = pass_open(&f.pass, m, options->threads, n, options->cancel, err) && lists_new(&f) &&
         result_new(&f) && parse_swaps(&f) && buffers_new(&f) && check_swaps(&f) && run_layers(&f);
    out->seconds = pass_seconds() - start;
    if (ok && options->last_layer < 0)
        ok = finish(&f);
    ok = ok && mapped_whole(err);
    forward_close(&f);
    if (!ok)
        forward_result_free(out);
    return ok;
}
