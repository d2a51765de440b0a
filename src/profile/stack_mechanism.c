/* stack_mechanism.c -- layers that are mechanisms of the catalogue: what Mechanism.decode says; see
 * stack.h.
 */
#include "attn/run.h"
#include "profile/stack.h"

/* Heads of queries, of keys and values; numbers of a key, of a value. */
typedef struct Sizes {
    int64_t heads, kv_heads, keys, values;
} Sizes;

/* What the run costs after n tokens in these sizes; forms read sizes and parameters alone.
 * cached: bytes of a cached number; 0: the run's. */
static DecodeCost sized_cost(const Run *run, Sizes s, int64_t n, int cached)
{
    Run sized = *run;

    sized.h = sized.q.shape[0] = s.heads;
    sized.k.shape[0] = sized.v.shape[0] = s.kv_heads;
    sized.n = sized.m = sized.q.shape[1] = sized.k.shape[1] = sized.v.shape[1] = n;
    sized.d = sized.q.shape[2] = sized.k.shape[2] = s.keys;
    sized.e = sized.v.shape[2] = s.values;
    sized.cache_bytes = cached ? cached : sized.cache_bytes;
    return sized.mechanism->decode(&sized, sized.params);
}

static DecodeCost state_cost(const Run *run, const StackLayer *layer, int64_t n)
{
    Sizes s = { layer->heads, layer->heads, layer->keys, layer->values };

    return sized_cost(run, s, n, 0);
}

/* False: what its step costs depends on the tokens before it, or it is not known. */
static bool take_state_cost(const Run *run, StackLayer *layer)
{
    DecodeCost one = state_cost(run, layer, 1), many = state_cost(run, layer, 1000);

    layer->state_bytes = one.state_bytes;
    layer->step_bytes = one.step_bytes;
    layer->step_flops = one.decode_flops;
    return one.kv_bytes_per_token <= 0 && one.state_bytes >= many.state_bytes &&
           one.step_bytes >= many.step_bytes && one.decode_flops >= many.decode_flops;
}

/* From a run that is made but not executed. */
bool stack_state_find(const Mechanism *m, StackLayer *layer)
{
    float   numbers[2] = { 0 };
    Tensor  one = tensor_of(DT_F32, 3, (int64_t[]){ 1, 1, 1 }, numbers);
    RunSpec spec = { .mechanism = m, .q = one, .k = one, .v = one, .causal = true };
    Run    *run = m->decode && m->causal ? run_new(&spec) : NULL;
    bool    ok = run && !run_failed(run) && run->params && take_state_cost(run, layer);

    run_free(run);
    return ok;
}

/* ---- keys that a mechanism keeps -------------------------------------------------- */

/* What is held is linear in the bytes of a cached number. */
static StackKept kept_of(const Run *run, Sizes s, int64_t n)
{
    double one = sized_cost(run, s, n, 1).state_bytes, two = sized_cost(run, s, n, 2).state_bytes;

    return (StackKept){ two - one, 2 * one - two };
}

/* Of each further token; 0 where the cache is bounded. */
static StackKept kept_growth(const Run *run, Sizes s, int64_t n)
{
    double one = sized_cost(run, s, n, 1).kv_bytes_per_token;
    double two = sized_cost(run, s, n, 2).kv_bytes_per_token;

    return (StackKept){ two - one, 2 * one - two };
}

/* A bounded cache adds a token until it is full. */
static void take_kept(const Run *run, Sizes s, int64_t n, StackKept *held, StackKept *adds)
{
    *held = kept_of(run, s, n);
    *adds = kept_growth(run, s, n);
    if (!(adds->numbers > 0)) {
        StackKept next = kept_of(run, s, n + 1);

        *adds = (StackKept){ next.numbers - held->numbers, next.bytes - held->bytes };
    }
}

/* From a run that is made but not executed. */
bool stack_kept_find(const StackLayer *layer, const StackShape *shape, int64_t n, StackKept *held,
                     StackKept *adds, Error *err)
{
    Sizes       s = { shape->heads, shape->kv_heads, shape->dim, shape->dim };
    float       numbers[2] = { 0 };
    Tensor      one = tensor_of(DT_F32, 3, (int64_t[]){ 1, 1, 1 }, numbers);
    Assignments given = { 0 };
    RunSpec     spec = { .mechanism = mechanism_find(layer->mechanism), .given = &given,
                         .q = one, .k = one, .v = one, .causal = true };
    bool        ok = !*layer->given || assignments_parse(&given, layer->given, err);
    Run        *run = NULL;

    if (ok && assignments_find(&given, "cache_bytes"))
        ok = error_set(err, ERR_PARAM, "the type of cached numbers is of the stack (--dtype); "
                       "leave cache_bytes out");
    if (ok)
        run = run_new(&spec);
    if (ok && !run)
        ok = error_set(err, ERR_NOMEM, "not enough memory for a layer");
    else if (ok && run_failed(run))
        ok = error_set(err, ERR_PARAM, "%s", run->err.text);
    if (ok)
        take_kept(run, s, n, held, adds);
    run_free(run);
    assignments_free(&given);
    return ok;
}
