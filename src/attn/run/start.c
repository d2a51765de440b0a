/* start.c -- from a RunSpec to a finished Run: checks, binding, execution. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/run.h"
#include "attn/run/position.h"

/* ---- parameters ------------------------------------------------------------- */

static void unknown_of_position(Run *r, const char *name)
{
    const Position *position = r->spec.position;
    Text            names = { 0 };

    for (const Param *p = position ? position->params : NULL; p && p->name; p++)
        text_addf(&names, "%s%s", names.length ? ", " : "", p->name);
    run_fail(r, ERR_PARAM, "position %s has no parameter '%s'%s%s%s",
             position ? position->id : "none", name, names.length ? " (it has: " : "",
             text_str(&names), names.length ? ")" : "; choose one by --position");
    text_free(&names);
}

static void check_names(Run *r)
{
    const Assignments *given = r->spec.given;

    for (int i = 0; given && i < given->count && r->err.code == ERR_NONE; i++) {
        const char *name = given->items[i].name;

        if (assignment_of_position(name) &&
            !(r->spec.position && params_find(r->spec.position->params, name)))
            unknown_of_position(r, name);
    }
    if (given && r->err.code == ERR_NONE)
        mechanism_check_names(r->mechanism, given, &r->err);
}

static const void *bind(Run *r, const Param *table, size_t size)
{
    void *out = run_alloc(r, 1, (int64_t)(size ? size : 1));

    if (!out)
        return NULL;
    memset(out, 0, size);
    params_bind(table, out, r->spec.given, &r->err);
    return out;
}

/* ---- inputs ----------------------------------------------------------------- */

/* What the input lacks for this mechanism; NULL: nothing. */
static const char *missing(const Run *r)
{
    const Mechanism *m = r->mechanism;

    if (m->needs_none)
        return NULL;
    if (m->needs_attn)
        return r->attn.data ? NULL : "finished weights (attn)";
    if (m->needs_x)
        return r->x.data ? NULL : "the layer input x";
    if (m->or_x && r->x.data)
        return NULL;
    if (m->needs_v)
        return r->v.data ? NULL : "v";
    if (m->or_x && !r->q.data)
        return "q, k and v, or the layer input x";
    return !r->q.data ? "q" : !r->k.data ? "k" : !r->v.data ? "v" : NULL;
}

/* ", only q and k; ...": which arrays the file has, and how to add the missing ones. */
static void refuse_lack(Run *r)
{
    const Tensor *has[] = { &r->q, &r->k, &r->v, &r->x };
    static const char *const names[] = { "q", "k", "v", "x" };
    Text held = { 0 };
    int  left = 0;

    for (int i = 0; i < 4; i++)
        left += has[i]->data != NULL;
    for (int i = 0; i < 4; i++)
        if (has[i]->data)
            text_addf(&held, "%s%s", !held.length ? "" : --left > 1 ? ", " : " and ", names[i]);
    if (r->attn.data)
        run_fail(r, ERR_DATA, "%s reads %s, which the input does not hold; it holds finished "
                 "weights, which 'given' shows", r->mechanism->id, missing(r));
    else
        run_fail(r, ERR_DATA, "%s reads %s, which the input does not hold%s%s; one file takes "
                 "all arrays by name: numpy.savez('qkv.npz', q=q, k=k, v=v%s)", r->mechanism->id,
                 missing(r), held.length ? ", only " : "", text_str(&held),
                 r->mechanism->needs_x      ? ", x=x"
                 : r->mechanism->needs_attn ? ", attn=weights"
                                            : "");
    text_free(&held);
}

static void refuse_fit(Run *r)
{
    const Mechanism *m;
    Text             names = { 0 };

    for (size_t i = 0; (m = mechanism_at(i)); i++)
        if (m->fit)
            text_addf(&names, "%s%s", names.length ? ", " : "", m->id);
    run_fail(r, ERR_USAGE, "%s fits nothing on its input; run it without --fit, or take one that "
             "does: %s", r->mechanism->id, text_str(&names));
    text_free(&names);
}

static void check_mechanism_fits(Run *r)
{
    const Mechanism *m = r->mechanism;
    const Position  *position = r->spec.position;

    if (r->causal && !m->causal)
        run_fail(r, ERR_USAGE, "%s has no causal form (%s); run it without --causal", m->id,
                 m->no_causal ? m->no_causal : "its paper gives none");
    if (r->spec.fit && !m->fit)
        refuse_fit(r);
    if (position && !position_fits(position, m->positions))
        run_fail(r, ERR_USAGE, "position=%s is not supported by %s", position->id, m->id);
    if (missing(r))
        refuse_lack(r);
}

/* Whether fewer queries than keys are the last ones of a causal run, which the mechanism takes. */
static bool at_end(const Run *r)
{
    return r->causal && r->mechanism->at_end && r->m > r->n && !r->mechanism->cross;
}

static void refuse_lengths(Run *r)
{
    const Mechanism *m = r->mechanism;
    long long        n = r->n, keys = r->m;

    if (r->m > r->n && m->at_end)
        run_fail(r, ERR_DATA, "%s needs as many keys as queries: the input has n=%lld queries and "
                 "m=%lld keys; with --causal the queries are the last %lld of %lld positions",
                 m->id, n, keys, n, keys);
    else if (r->m > r->n && m->no_at_end)
        run_fail(r, ERR_DATA, "%s needs as many keys as queries: the input has n=%lld queries and "
                 "m=%lld keys, and %s", m->id, n, keys, m->no_at_end);
    else
        run_fail(r, ERR_DATA, "%s needs as many keys as queries: the input has n=%lld queries and "
                 "m=%lld keys", m->id, n, keys);
}

static void check_shapes(Run *r)
{
    const Mechanism *m = r->mechanism;

    if (r->n < 1 || r->m < 1)
        run_fail(r, ERR_DATA, "%s: the sequence is empty (n=%lld, m=%lld)", m->id,
                 (long long)r->n, (long long)r->m);
    if (m->needs_v && !m->cross && r->v.shape[1] != r->n)
        run_fail(r, ERR_DATA, "%s needs as many values as queries: the input has %lld of v and "
                 "%lld of q", m->id, (long long)r->v.shape[1], (long long)r->n);
    if (m->needs_v && r->x.data && r->x.shape[0] != r->n)
        run_fail(r, ERR_DATA, "%s needs one layer input for each token: the input has %lld tokens "
                 "of x and %lld of %s", m->id, (long long)r->x.shape[0], (long long)r->n,
                 r->q.data ? "q" : "v");
    if (m->needs_none || m->needs_x || m->needs_attn || m->own_sizes || !r->q.data || !r->k.data ||
        !r->v.data)
        return;
    if (r->k.shape[2] != r->d)
        run_fail(r, ERR_DATA, "q has head size %lld but k has %lld", (long long)r->d,
                 (long long)r->k.shape[2]);
    if (r->v.shape[1] != r->m)
        run_fail(r, ERR_DATA, "k has %lld positions but v has %lld", (long long)r->m,
                 (long long)r->v.shape[1]);
    if (r->h % r->k.shape[0] || r->h % r->v.shape[0])
        run_fail(r, ERR_DATA, "%lld query heads cannot be shared by %lld key and %lld value heads",
                 (long long)r->h, (long long)r->k.shape[0], (long long)r->v.shape[0]);
    if (r->m != r->n && !m->cross && !at_end(r))
        refuse_lengths(r);
    else if (at_end(r) && m->at_end == AT_END_CELLS)
        r->at_end = r->n;
}

static void take_shapes(Run *r)
{
    const RunSpec *s = &r->spec;

    r->q = s->q;
    r->k = s->k;
    r->v = s->v;
    r->x = s->x;
    r->attn = s->attn;
    r->causal = s->causal || r->mechanism->always_causal;
    r->seed = s->seed;
    r->ops = s->ops ? s->ops : ops_cpu();
    r->threads = s->threads;
    if (r->q.data) {
        r->h = r->q.shape[0];
        r->n = r->q.shape[1];
        r->d = r->q.shape[2];
        r->m = r->k.data ? r->k.shape[1] : r->n;
    } else if (r->v.data) {
        r->h = r->v.shape[0];
        r->n = r->m = r->v.shape[1];
    }
    if (r->v.data)
        r->e = r->v.shape[2];
    if (r->x.data) {
        r->dm = r->x.shape[1];
        if (!r->q.data && !r->v.data) {
            r->n = r->m = r->x.shape[0];
            r->h = 1;
        }
    }
    if (r->mechanism->needs_x) /* q, k and v play no part */
        run_read_x(r);
    if (r->attn.data && (r->mechanism->needs_attn || !r->q.data)) {
        r->h = r->attn.shape[0];
        r->n = r->attn.shape[1];
        r->m = r->attn.shape[2];
    }
    if (r->mechanism->needs_none && r->n < 1)
        r->h = r->n = r->m = 1;
    r->q_offset = r->causal ? r->m - r->n : 0;
}

/* ---- construction ---------------------------------------------------------- */

static void bind_common(Run *r)
{
    MechanismCommon common = { 0 };

    if (params_bind(mechanism_common(), &common, r->spec.given, &r->err))
        r->cache_bytes = common.cache_bytes;
}

/* The parameter `softcap` (PARAM_SOFTCAP); 0 where the mechanism has none. */
static double bound_softcap(const Run *r)
{
    const Param *p = params_find(r->mechanism->params, "softcap");

    return p && r->params ? *(const double *)((const char *)r->params + p->offset) : 0;
}

/* Sizes, checks, parameters: all that a closed form needs. */
static Run *constructed(Run *r)
{
    const Mechanism *m = r->mechanism;
    const Position  *position = r->spec.position;

    r->view_step = -1;
    take_shapes(r);
    check_mechanism_fits(r);
    check_shapes(r);
    check_names(r);
    bind_common(r);
    r->params = bind(r, m->params, m->params_size);
    r->softcap = bound_softcap(r);
    if (position)
        r->position_params = bind(r, position->params, position->params_size);
    if (!run_failed(r) && m->check) {
        if (r->at_end)
            r->n = r->m;
        m->check(r, r->params);
        if (r->at_end)
            r->n = r->at_end;
    }
    return r;
}

Run *run_new_in(const RunSpec *spec, Arena *arena)
{
    Run *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->spec = *spec;
    r->mechanism = spec->mechanism;
    r->arena = arena;
    arena_reset(arena);
    arena_peak_reset(arena);
    arena_limit(arena, spec->memory_limit);
    arena_fail_at(arena, spec->fail_at > 0 ? spec->fail_at - 1 : -1);
    return constructed(r);
}

Run *run_new(const RunSpec *spec)
{
    Arena *arena = arena_new_from(spec->ops ? spec->ops->memory : NULL);
    Run   *r = arena ? run_new_in(spec, arena) : NULL;

    if (r)
        r->owns_arena = true;
    else
        arena_free(arena);
    return r;
}

Run *run_nested(const Run *outer, const RunSpec *spec)
{
    Run *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->spec = *spec;
    r->spec.pairs_only = false; /* the outer one may decide by what this one attends to */
    r->mechanism = spec->mechanism;
    r->arena = outer->arena;
    r->nested = true;
    return constructed(r);
}

/* ---- execution -------------------------------------------------------------- */

static void bring(Run *r, Tensor *t)
{
    Tensor own = t->data && !arena_holds(r->arena, t->data)
                     ? tensor_new(r->arena, t->dtype, t->rank, t->shape)
                     : *t;

    if (t->data && !own.data)
        run_out_of_memory(r);
    else if (own.data != t->data)
        memcpy(own.data, t->data, (size_t)tensor_bytes(t));
    *t = own;
}

/* Another device's memory has its own copies of q, k, v and x: the run has them before it
 * begins, as a model on that device would. */
static void bring_inputs(Run *r)
{
    run_prepare(r, true);
    bring(r, &r->q);
    bring(r, &r->k);
    bring(r, &r->v);
    bring(r, &r->x);
    if (r->ops->prepare && !run_failed(r))
        r->ops->prepare(r);
    run_prepare(r, false);
}

/* Memory belongs to the device during the run, and to the host before other threads read it. */
static void start_attach(Run *r, bool device)
{
    const char *why;

    if (arena_attach(r->arena, device))
        return;
    why = arena_broken(r->arena);
    run_fail(r, ERR_UNSUPPORTED, "%s: the GPU did not %s the run's memory: %s", r->mechanism->id,
             device ? "take" : "give back", why ? why : "go on by --device cpu");
}

/* The input itself is not finite. */
static bool input_is_nonfinite(const Run *r)
{
    const Tensor      *inputs[] = { &r->q, &r->k, &r->v, &r->x };
    const Assignments *given = r->spec.given;

    for (int x = 0; x < 4; x++)
        if (tensor_not_finite(inputs[x]) >= 0)
            return true;
    for (int i = 0; given && i < given->count; i++)
        if (tensor_not_finite(&given->items[i].tensor) >= 0)
            return true;
    return false;
}

/* Scores beyond a float must not pass for a result. */
static void warn_of_nonfinite(Run *r)
{
    int64_t at = tensor_not_finite(&r->out);

    if (!run_failed(r) && at >= 0 && r->out.rank > 1 && !input_is_nonfinite(r))
        run_warn(r, "%s: the output is not finite (first in row %lld) though the input is: scores "
                 "or values are too large for float32", r->mechanism->id,
                 (long long)(at / r->out.shape[r->out.rank - 1] % r->out.shape[r->out.rank - 2]));
}

static bool row_holds(const Tensor *t, int64_t heads, int64_t head, int64_t i, bool infinity)
{
    const float *row = tensor_row_f32(t, head, heads, i);

    for (int64_t p = 0; p < t->shape[t->rank - 1]; p++)
        if (isnan(row[p]) || (infinity && isinf(row[p])))
            return true;
    return false;
}

/* The first key that is NaN; m: none. */
static int64_t first_nan_key(const Run *r, int64_t head)
{
    int64_t j = 0;

    while (j < r->m && !row_holds(&r->k, r->h, head, j, false))
        j++;
    return j;
}

/* Queries of all heads whose scores hold NaN: exact attention has no weights there. */
static int64_t unknown_queries(Run *r)
{
    int64_t *count = run_head_counts(r, r->h);

    for (int64_t head = 0; count && head < r->h; head++) {
        int64_t key = first_nan_key(r, head);

        for (int64_t i = 0; i < r->n; i++)
            count[head] += (key < r->m && (!r->causal || i + r->q_offset >= key)) ||
                           row_holds(&r->q, r->h, head, i, true);
    }
    return run_count_by_head(r, count, r->h, r->n);
}

static bool rows_of_floats(const Tensor *t, int64_t rows)
{
    return t->data && t->dtype == DT_F32 && t->rank == 3 && t->shape[1] >= rows;
}

static void warn_of_unknown(Run *r)
{
    int64_t count = 0;

    if (!run_failed(r) && rows_of_floats(&r->q, r->n) && rows_of_floats(&r->k, r->m) &&
        (tensor_not_finite(&r->q) >= 0 || tensor_not_finite(&r->k) >= 0))
        count = unknown_queries(r);
    r->unknown_queries = count;
    if (count)
        run_warn(r, "q or k is not finite: %lld of %lld queries, whose exact attention is not "
                 "known, %s left out of mass and error", (long long)count,
                 (long long)(r->h * r->n), count == 1 ? "is" : "are");
}

/* Causal queries before the first key. */
static void warn_of_empty(Run *r)
{
    int64_t count = r->causal ? min_i64(r->n, max_i64(0, -r->q_offset)) : 0;

    if (!run_failed(r) && count)
        run_warn(r, "%lld of %lld queries see%s no key: they stand before the first "
                 "(q_offset=%lld) and do not count in the quality", (long long)count,
                 (long long)r->n, count == 1 ? "s" : "", (long long)r->q_offset);
}

static void run_mechanism(Run *r)
{
    const Mechanism *m = r->mechanism;

    if (r->ops->memory && !run_failed(r))
        bring_inputs(r);
    if (r->at_end)
        r->n = r->m;
    if (!run_failed(r))
        m->run(r, r->params);
    if (r->at_end)
        r->n = r->at_end;
    op_wait(r, NULL);
    decode_figures(r);
    if (r->out.data && r->out.shape[2] > 0)
        view_tensor(r, "output", VIEW_VECTORS, r->out, "query", "value");
    view_join_curves(r);
    if (r->spec.cancel && atomic_load(r->spec.cancel))
        run_fail(r, ERR_CANCELLED, "%s: interrupted", m->id);
    if (r->stage_count)
        r->stages[r->stage_count - 1].arena_peak = arena_peak(r->arena);
    if (r->spec.observer)
        r->spec.observer(r->spec.observer_context, r, NULL);
}

void run_execute(Run *r)
{
    if (!r)
        return;
    if (r->nested) {
        run_mechanism(r);
        return;
    }
    start_attach(r, true);
    run_mechanism(r);
    arena_fail_at(r->arena, -1);
    if (!r->owns_arena)
        return;
    start_attach(r, false);
    if (r->spec.views)
        warn_of_nonfinite(r);
    if (r->spec.views)
        warn_of_unknown(r);
    warn_of_empty(r);
}

Run *run_bare(void)
{
    static const Mechanism none = { .id = "tensors" };
    Run                   *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->mechanism = &none;
    r->arena = arena_new();
    r->owns_arena = true;
    r->ops = ops_cpu();
    r->h = 1;
    if (r->arena)
        return r;
    run_free(r);
    return NULL;
}

void run_free(Run *r)
{
    if (!r)
        return;
    if (r->owns_arena)
        arena_free(r->arena);
    text_free(&r->warnings);
    text_free(&r->notes);
    free(r);
}

/* What every mechanism that is only a set of cells does. */

Pattern *run_last_rows(Run *r, Pattern *cells)
{
    PatternShape s = { .heads = r->h, .n = r->at_end, .m = r->m, .q_offset = r->q_offset };

    if (!r->at_end || r->n == r->at_end)
        return cells;
    r->n = r->at_end;
    return pattern_last_rows(r->arena, s, cells);
}

double run_count_cells(const Run *r, const Pattern *cells)
{
    return cells ? (double)pattern_count_before(cells, r->n) : 0;
}

void run_attend_cells(Run *r, const AttendInput *in, const Pattern *cells,
                      const char *const *components)
{
    run_attended_cells(r, in, cells, components, op_attend(r, in, cells));
}

void run_attended_cells(Run *r, const AttendInput *in, const Pattern *cells,
                        const char *const *components, AttendResult result)
{
    r->out = result.out;
    view_pattern(r, cells, true);
    if (cells && components)
        view_meanings(r, cells, components);
    view_attention(r, cells, in, result.lse);
    replay_offer_attend(r, in, cells);
}

void run_warn_of_empty_rows(Run *r, const Pattern *cells)
{
    int64_t    heads = cells && pattern_per_head(cells) ? r->h : 1, empty = 0, first = -1, all;
    int64_t   *of = cells && run_wants_views(r) ? run_head_counts(r, heads) : NULL;
    PatternRow row = { 0 };
    char       example[48] = "";

    if (!of || run_failed(r) || (r->causal && r->q_offset < 0))
        return;
    all = heads * pattern_queries(cells);
    for (int64_t at = 0; at < all && !row.failed; at++) {
        pattern_row(cells, at / pattern_queries(cells), at % pattern_queries(cells), &row);
        first = !row.count && !empty ? at % pattern_queries(cells) : first;
        empty += !row.count;
        of[at / pattern_queries(cells)] += !row.count;
    }
    run_count_by_head(r, of, heads, pattern_queries(cells));
    if (heads == 1) /* another head has another first one */
        snprintf(example, sizeof(example), ", the first of them query %lld", (long long)first);
    if (empty && empty < all && !row.failed)
        run_warn(r, "%lld of %lld queries see%s no key%s: their output is 0", (long long)empty,
                 (long long)all, empty == 1 ? "s" : "", example);
    pattern_row_free(&row);
}

AttendInput run_pattern_attention(Run *r, double scale, Pattern *all)
{
    const Pattern *cells = run_last_rows(r, all);
    AttendInput    in = run_attend_input_within(r, scale, cells);

    run_stage(r, "attend");
    run_attend_cells(r, &in, cells, NULL);
    run_last_row(r, cells);
    return in;
}

Flops run_pattern_flops(const Run *r, double cells)
{
    return (Flops){ .score = 2 * cells * (double)r->d,
                    .mix = 2 * cells * (double)r->e,
                    .overhead = (FLOPS_SOFTMAX + (r->softcap > 0 ? FLOPS_SOFTCAP : 0)) * cells };
}
