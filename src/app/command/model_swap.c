/* model_swap.c -- the swaps of the command model: their layers, their heads, the values of --vary,
 * mixtures from files, and the values that nobody wrote; how far the passes are. */
#include <stdlib.h>
#include <string.h>

#include "app/command/model.h"
#include "app/study/swap_axis.h"
#include "model/swap.h"

/* ---- which --layers and --heads are whose ----------------------------------- */

/* The one that belongs to the swap; NULL: none.  A single one is of all swaps. */
static const char *of_swap(const CallOfSwap *all, int count, int given)
{
    if (count == 1)
        return all[0].text;
    for (int i = 0; i < count; i++)
        if (all[i].swaps == given + 1)
            return all[i].text;
    return NULL;
}

static bool check_of_swaps(const CallOfSwap *all, int count, const char *flag, Error *err)
{
    for (int i = 0; count > 1 && i < count; i++) {
        if (!all[i].swaps)
            return error_set(err, ERR_USAGE, "%s %.60s stands before the first --swap: of several "
                             "%s each follows the --swap that it belongs to", flag, all[i].text,
                             flag);
        if (i && all[i].swaps == all[i - 1].swaps)
            return error_set(err, ERR_USAGE, "%s %.60s and %s %.60s belong to one --swap: give "
                             "one, as a list (0-4,7)", flag, all[i - 1].text, flag, all[i].text);
    }
    return true;
}

/* A mixture has a mechanism for each layer already. */
static bool check_each(const Call *call, Error *err)
{
    for (int i = 0; call->values[OPT_EACH] && i < call->swap_count; i++)
        if (swap_is_file(call->swaps[i]))
            return error_set(err, ERR_USAGE, "--each puts one mechanism into one layer at a time; "
                             "%.200s is a mixture", call->swaps[i]);
    return true;
}

/* A mixture has the layers and heads of its file. */
static bool check_mixtures(const Call *call, const CallOfSwap *all, int count, const char *flag,
                           Error *err)
{
    bool only = true;

    for (int i = 0; i < call->swap_count; i++) {
        bool file = swap_is_file(call->swaps[i]);

        if (file && count > 1 && of_swap(all, count, i))
            return error_set(err, ERR_USAGE, "%s: %.200s says the layers and heads itself", flag,
                             call->swaps[i]);
        only = only && file;
    }
    return !count || !call->swap_count || !only ||
           error_set(err, ERR_USAGE, "%s: %.200s says the layers and heads itself", flag,
                     call->swaps[0]);
}

bool model_swaps_check(const Call *call, Error *err)
{
    const CallOfSwap *layers = call->swap_layers, *heads = call->swap_heads;
    int               some = call->swap_layers_count, others = call->swap_heads_count;

    return check_of_swaps(layers, some, "--layers", err) &&
           check_of_swaps(heads, others, "--heads", err) && check_each(call, err) &&
           (call->values[OPT_DUMP] || check_mixtures(call, layers, some, "--layers", err)) &&
           check_mixtures(call, heads, others, "--heads", err);
}

/* ---- the swaps ---------------------------------------------------------------- */

typedef struct SwapPlace {
    int         given;  /* which --swap */
    int         at;     /* which value; -1: none */
    const bool *layers; /* [layers] */
    const bool *heads;  /* [heads] */
    const SwapMixture *mixture; /* NULL: it is none */
} SwapPlace;

static bool *copy_set(const bool *set, int64_t count)
{
    bool *copy = malloc((size_t)count * sizeof(*copy));

    if (copy)
        memcpy(copy, set, (size_t)count * sizeof(*copy));
    return copy;
}

static char *swap_text(const ModelRun *r, const SwapPlace *place)
{
    const char *given = r->call->swaps[place->given];
    Text        text = { 0 };
    char       *own;

    if (place->at >= 0)
        swap_at(given, r->axis.name, r->axis.values[place->at], &text);
    else
        text_add(&text, given);
    own = text_ok(&text) ? strdup(text_str(&text)) : NULL;
    text_free(&text);
    return own;
}

static bool add_swap(ModelRun *r, const SwapPlace *place, uint64_t seed, Error *err)
{
    bool   *layers = copy_set(place->layers, r->m->config.layers);
    bool   *heads = copy_set(place->heads, r->m->config.heads);
    char   *own = swap_text(r, place);
    int64_t at = r->swap_count++;

    r->layer_sets[at] = layers;
    r->head_sets[at] = heads;
    r->origins[at] = (SwapOrigin){ own, place->given, place->at };
    if (!layers || !heads || !own)
        return error_set(err, ERR_NOMEM, "not enough memory for a swap");
    if (place->mixture)
        r->swaps[at] = place->mixture->parts[0];
    else
        r->swaps[at] = (Swap){ .mechanism = own, .layers = layers, .heads = heads, .seed = seed };
    return true;
}

static bool fill_each(ModelRun *r, SwapPlace place, uint64_t seed, Error *err)
{
    int64_t     count = r->m->config.layers;
    const bool *all = place.layers;
    bool       *one = calloc((size_t)count, sizeof(*one));
    bool        ok = one || error_set(err, ERR_NOMEM, "not enough memory for a swap");

    place.layers = one;
    for (int64_t l = 0; ok && l < count; l++) {
        one[l] = all[l];
        ok = !all[l] || add_swap(r, &place, seed, err);
        one[l] = false;
    }
    free(one);
    return ok;
}

/* A row for each layer, for each value, or one. */
static bool fill_swap(ModelRun *r, SwapPlace place, uint64_t seed, Error *err)
{
    bool ok = true;

    if (r->call->values[OPT_EACH])
        return fill_each(r, place, seed, err);
    if (!r->axis.count || !swap_varies(r->call->swaps[place.given], r->axis.name))
        return add_swap(r, &place, seed, err);
    for (place.at = 0; ok && place.at < r->axis.count; place.at++)
        ok = add_swap(r, &place, seed, err);
    return ok;
}

static bool fill_mixture(ModelRun *r, int given, uint64_t seed, Error *err)
{
    SwapMixture *m = swap_mixture_read(r->call->swaps[given], &r->m->config, seed, err);

    if (!m)
        return error_prefix(err, "--swap");
    m->next = r->mixtures;
    r->mixtures = m;
    return add_swap(r, &(SwapPlace){ given, -1, m->layers, m->heads, m }, seed, err);
}

static bool parse_part(const char *flag, const char *list, const char *what, int64_t count,
                       bool *set, Error *err)
{
    memset(set, true, (size_t)count);
    return !list || model_parse_set(flag, list, what, count, set, err);
}

static bool fill_swaps(ModelRun *r, bool *layers, bool *heads, uint64_t seed, Error *err)
{
    const Call        *call = r->call;
    const ModelConfig *c = &r->m->config;
    bool               ok = true;

    for (int i = 0; ok && i < call->swap_count; i++) {
        if (swap_is_file(call->swaps[i])) {
            ok = fill_mixture(r, i, seed, err);
            continue;
        }
        ok = parse_part("--layers", of_swap(call->swap_layers, call->swap_layers_count, i),
                        "layer", c->layers, layers, err) &&
             parse_part("--heads", of_swap(call->swap_heads, call->swap_heads_count, i), "head",
                        c->heads, heads, err) &&
             fill_swap(r, (SwapPlace){ i, -1, layers, heads, NULL }, seed, err);
    }
    return ok;
}

/* The values of --vary, on which one swap at least depends. */
static bool take_axis(ModelRun *r, Error *err)
{
    const Call *call = r->call;
    bool        any = false;

    if (!call->values[OPT_SWAPVARY])
        return true;
    if (!axis_parse(call->values[OPT_SWAPVARY], &r->axis, err))
        return error_prefix(err, "--vary");
    for (int i = 0; i < call->swap_count; i++)
        any = any || swap_varies(call->swaps[i], r->axis.name);
    return any || error_set(err, ERR_USAGE, "--vary %s: %s is no parameter of %s and no value in "
                            "it; a pattern names it, as in 'pattern(window(%s)+cols(4))'",
                            call->values[OPT_SWAPVARY], r->axis.name, call->swaps[0],
                            r->axis.name);
}

bool model_take_swaps(ModelRun *r, Error *err)
{
    const ModelConfig *c = &r->m->config;
    int64_t            seed = 0;
    size_t             rows, most;
    bool              *layers = malloc((size_t)c->layers), *heads = malloc((size_t)c->heads);
    bool               ok = take_axis(r, err);

    rows = r->axis.count > c->layers ? (size_t)r->axis.count : (size_t)c->layers;
    most = (size_t)r->call->swap_count * rows + 1;
    r->swaps = calloc(most, sizeof(*r->swaps));
    r->layer_sets = calloc(most, sizeof(*r->layer_sets));
    r->head_sets = calloc(most, sizeof(*r->head_sets));
    r->origins = calloc(most, sizeof(*r->origins));
    if (ok && (!layers || !heads || !r->swaps || !r->layer_sets || !r->head_sets || !r->origins))
        ok = error_set(err, ERR_NOMEM, "not enough memory for the swaps");
    ok = ok && call_int(r->call, OPT_SEED, 0, INT64_MAX, &seed, err) &&
         fill_swaps(r, layers, heads, (uint64_t)seed, err);
    free(layers);
    free(heads);
    return ok;
}

void model_swaps_free(ModelRun *r)
{
    for (int64_t i = 0; i < r->swap_count; i++) {
        free(r->layer_sets[i]);
        free(r->head_sets[i]);
        free(r->origins[i].text);
    }
    for (SwapMixture *m = r->mixtures, *next; m; m = next) {
        next = m->next;
        swap_mixture_free(m);
    }
    free(r->layer_sets);
    free(r->head_sets);
    free(r->origins);
    free(r->swaps);
}

bool model_swaps_differ(const ModelRun *r)
{
    for (int64_t v = 1; v < r->swap_count; v++)
        if (memcmp(r->layer_sets[v], r->layer_sets[0], (size_t)r->m->config.layers) != 0 ||
            memcmp(r->head_sets[v], r->head_sets[0], (size_t)r->m->config.heads) != 0)
            return true;
    return false;
}

/* ---- the values that nobody wrote ------------------------------------------------ */

/* " (8, or with mass as many as it takes)": what the help says that 0 means; "": nothing. */
static void add_meaning(const Param *p, const char *value, Text *out)
{
    const char *at = strcmp(value, "0") != 0 ? NULL : p->help ? strstr(p->help, "0: ") : NULL;

    if (at && (at == p->help || at[-1] == ' '))
        text_addf(out, " (%.*s)", (int)strcspn(at + 3, ";"), at + 3);
}

/* Nothing: it is no number and no word, or the model's scale, or no cap of scores. */
static void default_value(const Param *p, Text *out)
{
    Text value = { 0 };
    bool usual = !strcmp(p->name, "scale") || !strcmp(p->name, "softcap");

    params_print(p, NULL, &value);
    if (!usual || strcmp(text_str(&value), "0") != 0) {
        text_add(out, text_str(&value));
        add_meaning(p, text_str(&value), out);
    }
    text_free(&value);
}

void model_defaults(const Swap *swap, ModelDefault *each, void *context)
{
    MechanismSpec spec;
    Error         ignored = ERROR_INIT;

    if (!mechanism_spec_parse(swap->mechanism, &spec, &ignored))
        return;
    for (const Param *p = spec.mechanism->params; p && p->name; p++) {
        Text value = { 0 };

        if (p->type != PARAM_TYPE_TENSOR && !assignments_find(&spec.given, p->name))
            default_value(p, &value);
        if (value.length)
            each(context, p->name, text_str(&value));
        text_free(&value);
    }
    mechanism_spec_free(&spec);
}

static void add_default(void *context, const char *name, const char *value)
{
    Text *line = context;

    text_addf(line, "%s%s=%s", line->length ? ", " : "", name, value);
}

void model_defaults_text(const Swap *swap, Text *out)
{
    model_defaults(swap, add_default, out);
}

/* ---- how far the passes are --------------------------------------------------------- */

void model_progress_times(const ModelProgress *p, double now, char *text, size_t size)
{
    double took = now - p->began;

    format_progress(took, p->done > 0 ? took * (p->all - p->done) / p->done : -1, text, size);
}

bool model_progress_speaks(ModelProgress *p, double now)
{
    if (!(now - p->spoke >= MODEL_SPEAKS))
        return false;
    p->spoke = now;
    return true;
}
