/* pattern.c -- any pattern written as an expression.
 *
 * The allowed cells are given by an expression of primitives (window, global,
 * random, stride, ...) and set operations; head t uses the t-th of the
 * expressions separated by ';'.  On those cells the scores of full attention
 * are taken and normalised by one softmax per row.  A cell that several
 * components allow enters once.
 */
#include "attn/run.h"

#include <string.h>

typedef struct Params {
    const char *expr;
    double      scale, softcap;
} Params;

static const Param params[] = {
    PARAM_TEXT(Params, expr, "the pattern, like window(5)+global(2)+random($t)"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

typedef struct Names {
    Run  *run;
    bool *used; /* one per assignment */
} Names;

static Pattern *pattern_parse_of(Run *r, const Params *p);
static Tensor lookup(void *context, const char *name);
static void show_drawn(void *context, const char *name, Tensor table);
static void mark_used(void *context, const char *name);
static void note_even(void *context, int64_t width);
static void reject_unused(const Names *names);

static void pattern_text_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Pattern      *cells;

    run_stage(r, "pattern");
    cells = run_last_rows(r, pattern_parse_of(r, p));
    run_pattern_attention(r, p->scale, cells);
    run_warn_of_empty_rows(r, cells);
    if (!run_failed(r) && !r->spec.pairs_only && run_flops(r).score <= 0)
        run_warn(r, "pattern: '%s' allows no cell at all: the output is 0", p->expr);
}

static Pattern *pattern_parse_of(Run *r, const Params *p)
{
    PatternShape  s = { .heads = r->h, .n = r->n, .m = r->m, .causal = r->causal };
    Names         names = { .run = r };
    PatternSource source = {
        .lookup = lookup, .context = &names, .seed = r->seed, .drawn = show_drawn,
        .even = note_even, .used = mark_used
    };
    Pattern *pattern;

    if (!p->expr) {
        run_fail(r, ERR_PARAM,
                 "pattern needs its parameter expr, for example -p expr='window(5)+global(2)'");
        return NULL;
    }
    names.used = run_alloc(r, r->spec.given->count, sizeof(*names.used));
    if (!names.used)
        return NULL;
    memset(names.used, 0, (size_t)r->spec.given->count * sizeof(*names.used));
    pattern = pattern_parse(r->arena, s, p->expr, &source, &r->err);
    if (!run_failed(r))
        reject_unused(&names);
    return run_failed(r) ? NULL : pattern_finish(r->arena, s, pattern, r->causal);
}

static Tensor lookup(void *context, const char *name)
{
    const Names      *names = context;
    const Assignment *given = assignments_find(names->run->spec.given, name);

    if (!given && !strcmp(name, "segments"))
        return names->run->spec.segments;
    return given ? given->tensor : (Tensor){ 0 };
}

static void show_drawn(void *context, const char *name, Tensor table)
{
    view_drawn(((const Names *)context)->run, name, table);
}

static void note_even(void *context, int64_t width)
{
    run_note(((const Names *)context)->run, "window(%lld) is even: half of it, %lld, is seen to "
             "each side, as with window(%lld)", (long long)width, (long long)width / 2,
             (long long)width + 1);
}

static void mark_used(void *context, const char *name)
{
    const Names       *names = context;
    const Assignments *given = names->run->spec.given;

    for (int i = 0; i < given->count; i++)
        if (!strcmp(given->items[i].name, name))
            names->used[i] = true;
}

static void reject_unused(const Names *names)
{
    const Assignments *given = names->run->spec.given;

    for (int i = 0; i < given->count; i++) {
        const char *name = given->items[i].name;

        if (given->items[i].tensor.data && !names->used[i] && strncmp(name, "pos_", 4) != 0)
            run_fail(names->run, ERR_PARAM, "tensor %s is given but the expression uses no $%s",
                     name, name);
    }
}

/* An arbitrary set has no closed form; the set algebra counts its cells exactly. */
static Flops pattern_text_flops(Run *r, const void *opaque)
{
    Run      quiet = *r;
    Pattern *cells;

    quiet.spec.views = false; /* the same tables are drawn; their views exist already */
    quiet.notes = (Text){ 0 };
    quiet.n = r->m;
    cells = pattern_parse_of(&quiet, opaque);
    text_free(&quiet.notes);
    return run_pattern_flops(r, run_count_cells(r, cells));
}

static const ViewPromise views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_pattern = {
    .id = "pattern",
    .title = "Pattern expression",
    .authors = "attnscope",
    .year = 2026,
    .source = "the pattern language of this program (docs/patterns.md)",
    .formula =
        "A = expression over primitives; output = softmax over A of Q K^T / sqrt(d), times V",
    .problem = "Papers describe sparse patterns in words that are hard to compare.",
    .idea = "An expression of windows, strides, blocks, global and random cells says which "
            "pairs may attend.",
    .price = "A pattern is chosen before the data is seen, so it misses what happens to lie "
             "outside.",
    .lesson = "patterns",
    .teaches = "Any sparse pattern is a union of a few regular pieces; each piece has its colour.",
    .example = "expr='window(5)+global(2)+stride(8)'",
    .classes = CLASS_FP,
    .claim_time = "O(nnz)",
    .claim_memory = "O(n)",
    .claim_decode = "yes, as the expression says",
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .free_tensors = true,
    .views = views,
    .params = params,
    .params_size = sizeof(Params),
    .run = pattern_text_run,
    .flops = pattern_text_flops,
    .decode = decode_cells,
};
