/* swap.c -- a mechanism on one layer of a model; see swap.h. */
#include "model/swap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "core/rng.h"

/* ---- "window(window=33)" ------------------------------------------------- */

static bool parse_content(MechanismSpec *out, const char *content, Error *err)
{
    const Param *bare = *content ? mechanism_text_param(out->mechanism, content) : NULL;

    if (bare)
        return assignments_set(&out->given, bare->name, content, err);
    if (!mechanism_check_content(out->mechanism, content, err) ||
        !assignments_parse(&out->given, content, err))
        return false;
    for (int i = 0; i < out->given.count; i++)
        if (out->given.items[i].text && *out->given.items[i].text == '@')
            return error_set(err, ERR_UNSUPPORTED,
                             "parameter %s: tensors of files cannot be given to a swap; it draws "
                             "them from the seed", out->given.items[i].name);
    return true;
}

bool mechanism_spec_parse(const char *text, MechanismSpec *out, Error *err)
{
    const char *open = strchr(text, '(');
    size_t      length = strlen(text);
    char       *id = strndup(text, open ? (size_t)(open - text) : length), *content = NULL;
    bool        ok;

    *out = (MechanismSpec){ 0 };
    if (open && text[length - 1] == ')')
        content = strndup(open + 1, length - (size_t)(open - text) - 2);
    if (!id || (open && text[length - 1] == ')' && !content))
        ok = error_set(err, ERR_NOMEM, "not enough memory");
    else if (open && !content)
        ok = error_set(err, ERR_USAGE, "'%s': the parenthesis is not closed", text);
    else
        ok = mechanism_parse(id, &out->mechanism, err) &&
             (!content || parse_content(out, content, err) || error_prefix(err, "%s", id));
    free(id);
    free(content);
    if (!ok)
        mechanism_spec_free(out);
    return ok;
}

void mechanism_spec_free(MechanismSpec *spec)
{
    assignments_free(&spec->given);
    *spec = (MechanismSpec){ 0 };
}

/* ---- a mixture's parts ----------------------------------------------------- */

const Swap *swap_part(const Swap *swap, int64_t layer, int64_t head)
{
    while (swap && ((swap->layers && !swap->layers[layer]) || (swap->heads && !swap->heads[head])))
        swap = swap->also;
    return swap;
}

/* ---- exact --------------------------------------------------------------- */

/* Every pair, or the model's own window: w keys with the token itself. */
static Pattern *exact_cells(Run *bare, const ModelConfig *c, int64_t n)
{
    PatternShape s = { .heads = c->heads, .n = n, .m = n };
    int64_t      reach = c->window - 1;
    Pattern     *cells = c->window
                             ? pattern_band(bare->arena, s, -reach, reach, 1, COMPONENT_WINDOW)
                             : pattern_full(bare->arena, s, COMPONENT_OTHER);

    return pattern_finish(bare->arena, s, cells, c->causal);
}

bool exact_attend(Run *bare, const SwapInput *in, float *out, double *flops)
{
    const ModelConfig *c = in->config;
    int64_t      n = in->q.shape[1], shape[3] = { c->heads, n, c->head_dim };
    ArenaMark    mark = arena_mark(bare->arena);
    AttendInput  attend = { .q = in->q, .k = in->k, .v = in->v, .scale = c->scale };
    Pattern     *cells = exact_cells(bare, c, n);
    AttendResult result = { .out = tensor_of(DT_F32, 3, shape, out),
                            .lse = tensor_new(bare->arena, DT_F32, 2, shape) };
    double       count = 0;

    bare->threads = in->threads;
    bare->spec.cancel = in->cancel;
    if (cells && result.lse.data)
        cpu_attend(bare, &attend, cells, &result, &count);
    else
        run_fail(bare, ERR_NOMEM, "not enough memory for exact attention");
    *flops = 4 * count * (double)c->head_dim;
    arena_release(bare->arena, mark);
    return bare->err.code == ERR_NONE;
}

/* ---- another mechanism --------------------------------------------------- */

static RunSpec spec_of(const MechanismSpec *spec, const SwapInput *in)
{
    return (RunSpec){
        .mechanism = spec->mechanism,
        .q = in->q,
        .k = in->k,
        .v = in->v,
        .x = in->x,
        .causal = in->config->causal,
        .scale = in->config->scale,
        .window = in->config->window,
        .given = &spec->given,
        .seed = in->seed,
        .threads = in->threads,
        .cancel = in->cancel,
    };
}

/* The heads' outputs, or a layer's own [1,n,H d] seen as heads side by side. */
static bool take_output(const Run *run, const char *text, const ModelConfig *c, int64_t n,
                        float *out, Error *err)
{
    const Tensor *t = &run->out;
    int64_t       h = t->shape[0], e = t->shape[2], d = c->head_dim;
    char          shape[80];

    if (t->rank != 3 || t->dtype != DT_F32 || t->shape[1] != n || h * e != c->heads * d)
        return error_set(err, ERR_UNSUPPORTED,
                         "swap %s: its output is %s, where the model's heads need [%lld,%lld,%lld]",
                         text, tensor_shape_text(t, shape, sizeof(shape)), (long long)c->heads,
                         (long long)n, (long long)d);
    for (int64_t t_ = 0; t_ < c->heads; t_++)
        for (int64_t i = 0; i < n; i++) {
            const float *from = (const float *)t->data + t_ * d / e * t->stride[0] +
                                i * t->stride[1] + t_ * d % e * t->stride[2];

            for (int64_t x = 0; x < d; x++)
                out[(t_ * n + i) * d + x] = from[x * t->stride[2]];
        }
    return true;
}

static bool is_drawn(const Run *run)
{
    for (int i = 0; i < run->tensor_count; i++)
        if (run->tensors[i].origin == ORIGIN_DRAWN)
            return true;
    return false;
}

static void first_note(const Run *run, char note[SWAP_NOTE])
{
    const char *notes = text_str(&run->notes);

    snprintf(note, SWAP_NOTE, "%.*s", (int)strcspn(notes, "\n"), notes);
}

bool swap_attend(const MechanismSpec *spec, const char *text, const SwapInput *in, Arena *arena,
                 float *out, SwapOutcome *outcome, Error *err)
{
    RunSpec run_spec = spec_of(spec, in);
    Run    *run = run_new_in(&run_spec, arena);
    Flops   flops;
    bool    ok = false;

    if (!run)
        return error_set(err, ERR_NOMEM, "swap %s: not enough memory", text);
    run_execute(run);
    if (run->err.code != ERR_NONE) {
        *err = run->err;
        error_prefix(err, "swap %s", text);
    } else {
        ok = take_output(run, text, in->config, in->q.shape[1], out, err);
    }
    flops = run_flops(run);
    *outcome = (SwapOutcome){ .flops = flops.score + flops.mix, .untrained = is_drawn(run) };
    first_note(run, outcome->note);
    run_free(run);
    return ok;
}

bool swap_check(const MechanismSpec *spec, const char *text, const SwapInput *in, Error *err)
{
    const Mechanism *m = spec->mechanism;
    RunSpec          run_spec = spec_of(spec, in);
    Run             *run;
    bool             ok;

    if (in->config->causal && !m->causal)
        return error_set(err, ERR_UNSUPPORTED,
                         "swap %s: %s has no causal form (%s), and %s is a decoder; `attnscope "
                         "list` shows which mechanisms have one", text, m->id,
                         m->no_causal ? m->no_causal : "its paper gives none", in->config->arch);
    run = run_new(&run_spec);
    if (!run)
        return error_set(err, ERR_NOMEM, "swap %s: not enough memory", text);
    ok = run->err.code == ERR_NONE;
    if (!ok) {
        *err = run->err;
        error_prefix(err, "swap %s", text);
    }
    run_free(run);
    return ok;
}

/* ---- cells that positions alone decide ----------------------------------- */

/* A run over numbers of no meaning, which is asked for its cells only. */
static Run *cells_run(const MechanismSpec *spec, const ModelConfig *c, int64_t n, uint64_t seed,
                      const char *stream, Arena *inputs)
{
    int64_t   head[3] = { c->heads, n, c->head_dim }, wide[2] = { n, c->width };
    SwapInput in = { .config = c, .q = tensor_new(inputs, DT_F32, 3, head),
                     .k = tensor_new(inputs, DT_F32, 3, head),
                     .v = tensor_new(inputs, DT_F32, 3, head),
                     .x = tensor_new(inputs, DT_F32, 2, wide), .seed = seed };
    Rng       rng = rng_named(seed, stream);
    RunSpec   run_spec = spec_of(spec, &in);
    Tensor   *all[] = { &in.q, &in.k, &in.v, &in.x };
    Run      *run;

    for (int x = 0; x < 4; x++) {
        if (!all[x]->data)
            return NULL;
        rng_fill_normal(&rng, all[x]->data, tensor_count(all[x]), 1);
    }
    run_spec.q = in.q;
    run_spec.k = in.k;
    run_spec.v = in.v;
    run_spec.x = in.x;
    run_spec.views = true; /* without, no run says what it did */
    run_spec.pairs_only = true;
    run = run_new(&run_spec);
    run_execute(run);
    return run;
}

/* One softmax over cells, of the model's own scores. */
static bool is_plain(const Run *run, double scale)
{
    const AttendInput *in = &run->replay.attend;

    return run->replay.cells && !run->replay.fq.data && !in->distance.data && !in->row.table.data &&
           !in->col.table.data && !in->value.table.data && !in->cell_term &&
           !(in->softcap > 0) && in->scale == scale;
}

bool pattern_rows_same(const Pattern *a, const Pattern *b, int64_t rows, bool *failed)
{
    PatternRow x = { 0 }, y = { 0 };
    bool       same = pattern_per_head(a) == pattern_per_head(b);
    int64_t    heads = pattern_per_head(a) ? pattern_heads(a) : 1;

    for (int64_t t = 0; same && t < heads; t++)
        for (int64_t i = 0; same && i < rows; i++) {
            pattern_row(a, t, i, &x);
            pattern_row(b, t, i, &y);
            same = !x.failed && !y.failed && x.count == y.count;
            for (int64_t r = 0; same && r < x.count; r++)
                same = x.runs[r].start == y.runs[r].start && x.runs[r].count == y.runs[r].count &&
                       x.runs[r].step == y.runs[r].step;
        }
    *failed = x.failed || y.failed;
    pattern_row_free(&x);
    pattern_row_free(&y);
    return same;
}

const Pattern *swap_pattern(const MechanismSpec *spec, const char *text, const ModelConfig *config,
                            int64_t n, uint64_t seed, Run **run, Error *err)
{
    Arena *inputs = arena_new();
    Run   *first = inputs ? cells_run(spec, config, n, seed, "first", inputs) : NULL;
    Run   *second = first ? cells_run(spec, config, n, seed, "second", inputs) : NULL;
    Run   *worse = second && first->err.code == ERR_NONE ? second : first;
    bool   failed = !second, ran = second && worse->err.code == ERR_NONE;
    bool   fixed = ran && is_plain(first, config->scale) && is_plain(second, config->scale) &&
                 pattern_rows_same(first->replay.cells, second->replay.cells, n, &failed);

    if (failed) {
        error_set(err, ERR_NOMEM, "swap %s: not enough memory", text);
    } else if (!ran) {
        *err = worse->err;
        error_prefix(err, "swap %s", text);
    } else if (!fixed) {
        error_set(err, ERR_UNSUPPORTED,
                  "swap %s: this program writes token by token only with one softmax over cells "
                  "that positions alone decide, which %s is not; write with a pattern, such as "
                  "pattern(window(33)+cols(4)); a pass over a text measures %s", text,
                  spec->mechanism->id, spec->mechanism->id);
    }
    run_free(second);
    if (inputs)
        arena_free(inputs); /* of the first run only the cells are read from here on */
    *run = fixed ? first : NULL;
    if (!fixed)
        run_free(first);
    return fixed ? first->replay.cells : NULL;
}
