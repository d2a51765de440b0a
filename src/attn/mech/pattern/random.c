/* random.c -- each query sees r random keys.
 *
 * BigBird's random component by itself, and a null model for every pattern: short
 * paths without locality.  A key listed twice counts once.
 */
#include "attn/run.h"

typedef struct Params {
    int64_t r;
    Tensor  indices;
    bool    self;
    double  scale, softcap;
} Params;

static const Param params[] = {
    PARAM_INT(Params, r, 3, 0, PARAM_COUNT_MAX, "random keys per query"),
    PARAM_TENSOR(Params, indices, "[h,n,r] or [n,r]",
                 "distinct keys, uniformly (causal: from the past)",
                 "keys of each query; -1: unused"),
    PARAM_BOOL(Params, self, false, "every query sees itself too"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

static Pattern *random_cells_of(Run *r, const Params *p);
static PatternShape random_shape_of(const Run *r);
static Tensor random_table_of(Run *r, const Params *p);
static void check_table(Run *r, const Tensor *table);

static void random_run(Run *r, const void *opaque)
{
    const Params *p = opaque;

    run_stage(r, "draw");
    run_pattern_attention(r, p->scale, random_cells_of(r, p));
}

static Pattern *random_cells_of(Run *r, const Params *p)
{
    PatternShape s = random_shape_of(r);
    Tensor       table = random_table_of(r, p);
    Pattern     *cells;

    if (run_failed(r))
        return NULL;
    cells = pattern_table(r->arena, s, &table, COMPONENT_RANDOM);
    if (p->self)
        cells = pattern_union(r->arena, cells, pattern_band(r->arena, s, 0, 0, 1, COMPONENT_OTHER));
    return pattern_finish(r->arena, s, cells, r->causal);
}

static PatternShape random_shape_of(const Run *r)
{
    return (PatternShape){ .heads = r->h, .n = r->n, .m = r->n, .causal = r->causal };
}

static Tensor random_table_of(Run *r, const Params *p)
{
    const Tensor *given = &p->indices;
    Tensor        table = { 0 };

    if (given->data) {
        int64_t shape[3] = { r->h, r->n, given->shape[given->rank > 0 ? given->rank - 1 : 0] };

        table = run_param_given(r, "indices", *given, DT_I32, 3, shape);
        if (!run_failed(r))
            check_table(r, &table);
        return table;
    }
    run_prepare(r, true);
    table = pattern_draw_random(r->arena, random_shape_of(r), p->r < r->n ? p->r : r->n, r->seed,
                                "indices", NULL, NULL);
    run_prepare(r, false);
    if (!table.data)
        run_fail(r, ERR_NOMEM, "random: not enough memory for the table");
    view_drawn(r, "indices", table);
    return table;
}

static void check_table(Run *r, const Tensor *table)
{
    for (int64_t c = 0; c < tensor_count(table) && !run_failed(r); c++)
        if (tensor_i32(table)[c] < -1 || tensor_i32(table)[c] >= r->n)
            run_fail(r, ERR_PARAM,
                     "random: indices hold key %d, but there are %lld positions "
                     "(0..%lld, -1: unused)",
                     tensor_i32(table)[c], (long long)r->n, (long long)r->n - 1);
}

/* A table has no closed form; the set algebra counts its distinct entries. */
static Flops random_flops(Run *r, const void *opaque)
{
    Run      quiet = *r;
    Pattern *cells;

    quiet.spec.views = false; /* the same table is drawn; its view exists already */
    quiet.n = r->m;
    cells = random_cells_of(&quiet, opaque);
    return run_pattern_flops(r, run_count_cells(r, cells));
}

static const ViewPromise views[] = {
    VIEWS_OF_PATTERN,
    VIEW("indices", VIEW_TENSOR, "the table, when drawn", .maybe = true),
    VIEW_PROMISE_END
};

const Mechanism mech_random = {
    .id = "random",
    .title = "Random attention",
    .authors = "Zaheer et al.",
    .year = 2020,
    .arxiv = "2007.14062",
    .source = "BigBird paper, section 2; survey of Tay et al., section 3.2.8",
    .formula = "A = r random keys per query",
    .problem = "A window needs many layers to join far tokens.",
    .idea = "Each query gets a few keys drawn at random, and a random graph is short to cross.",
    .price = "The draw does not know the content, so most keys that matter are missed.",
    .lesson = "globals",
    .teaches = "Salt and pepper: no locality, yet most tokens are a few hops apart.  About e^-r "
               "of the keys are drawn by no query, and reach no token but themselves.",
    .classes = CLASS_FP,
    .claim_time = "O(n r)",
    .claim_memory = "O(n r)",
    .claim_decode = "yes: keeps all keys, reads r",
    .claim_exponent = 1,
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .views = views,
    .size = "r",
    .params = params,
    .params_size = sizeof(Params),
    .run = random_run,
    .flops = random_flops,
    .decode = decode_cells,
};
