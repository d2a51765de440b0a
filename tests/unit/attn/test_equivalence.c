/* test_equivalence.c -- mechanisms that are expressions: the same cells, the same
 * components, the same weights and output, bit for bit (docs/patterns.md). */

#include "attn/run.h"
#include "check.h"
#include "core/rng.h"

#define KEY_SIZE 8
#define VALUE_SIZE 5
#define MOST 64
#define TABLE_WIDTH 3

typedef enum When { BOTH_WAYS, NOT_CAUSAL, CAUSAL_ONLY } When;

typedef struct Row {
    const char *id, *params, *expression;
    const char *components; /* expression that has them; NULL: the same; "": there are none */
    int64_t     heads;      /* how many it is written for; 0: any */
    When        when;
    const char *table;      /* the parameter that is the expression's $t */
    int64_t     block;      /* tokens per row of the table; 0: one */
    const char *cells;      /* only this view is compared, with connectivity; NULL: all */
} Row;

#define SAME(mechanism, settings, expr)                                                        \
    .id = (mechanism), .params = (settings), .expression = (expr)

static const Row rows[] = {
    { SAME("full", "", "full"), .components = "" },
    { SAME("window", "window=5", "window(5)") },
    { SAME("window", "window=0", "window(0)") },
    { SAME("dilated", "window=7,dilation=3", "window(7,3)") },
    { SAME("dilated", "window=5,dilation=[1,2]", "window(5,1);window(5,2)"), .heads = 2 },
    { SAME("dilated", "window=9,dilation=50", "window(9,50)") },
    { SAME("block-local", "block=4", "block(4)") },
    { SAME("block-local", "block=5,back=1,ahead=2", "chunk(5,1,2)") },
    { SAME("blockbert", "", "shift(3,0);shift(3,-1);shift(3,-2)") },
    { SAME("blockbert", "blocks=2", "shift(2,0);shift(2,-1)") },
    { SAME("blockbert", "blocks=20", "shift(20,0);shift(20,-1);shift(20,-2);shift(20,-3)") },
    { SAME("sparse-strided", "stride=4", "window(7)+stride(4)") },
    { SAME("sparse-strided", "stride=3,heads=split", "window(5);stride(3)"), .heads = 2 },
    { SAME("sparse-strided", "stride=4,local_kind=block", "block(4)+stride(4)") },
    { SAME("sparse-strided", "stride=5,heads=local", "window(9)") },
    { SAME("sparse-strided", "stride=5,heads=strided", "stride(5)") },
    { SAME("sparse-fixed", "stride=5,summary=2", "block(5)+summary(5,2)") },
    { SAME("sparse-fixed", "stride=5,summary=2,verts=2",
           "block(5)+summary(5,2,0);block(5)+summary(5,2,1)") },
    { SAME("sparse-fixed", "stride=4,heads=split", "block(4);summary(4)"), .heads = 2 },
    { SAME("sparse-fixed", "stride=4,verts=2,heads=split", "block(4);summary(4,1,1)"),
      .heads = 2 },
    { SAME("sparse-fixed", "stride=6,heads=local", "block(6)") },
    { SAME("sparse-fixed", "stride=6,summary=2,verts=3,heads=summary",
           "summary(6,2,0);summary(6,2,1);summary(6,2,2)") },
    { SAME("image-local-1d", "query_block=4,memory=6", "local(4,6,0)") },
    { SAME("image-local-1d", "query_block=6,memory=3,both=true", "local(6,3,3)") },
    { SAME("image-local-2d", "width=6,query_width=3,memory_width=2", "image(6,2,3,1,2)"),
      .when = NOT_CAUSAL },
    { SAME("image-local-2d", "query_height=3,memory_height=2,both=true,width=5",
           "image(5,3,2,2,1,below=2)"),
      .when = NOT_CAUSAL },
    { SAME("image-local-2d", "width=6,order=raster", "image(6,2,2,1,1)") },
    { SAME("axial", "width=6,axis=row", "row(6)") },
    { SAME("axial", "width=6,axis=col", "col(6)") },
    { SAME("axial", "width=5,combine=union", "row(5)+col(5)") },
    { SAME("axial", "width=5,combine=heads", "row(5);col(5)"), .heads = 2 },
    { SAME("star", "", "global(1)+window(3)") },
    { SAME("star", "ring=true", "global(1)+window(3)+ring(1)") },
    { SAME("star", "window=6", "global(1)+window(6)") },
    { SAME("cascade", "", "window(1)") },
    { SAME("cascade", "base_window=3,cardinal=2,layer=2", "window(23)") },
    { SAME("logsparse", "", "log(1)"), .components = "log(1)+window(1)" },
    { SAME("logsparse", "local=4", "log(4)"), .components = "log(4)+window(7)" },
    { SAME("logsparse", "local=2,restart=9", "log(2,9)"), .components = "log(2,9)+window(3)" },
    { SAME("logsparse", "local=2,restart=9,restart_mode=blocks", "log(2)&block(9)"),
      .components = "(log(2)+window(3))-!block(9)" },
    { SAME("logsparse", "first=3", "log(1)+cols(3)"), .components = "log(1)+window(1)+cols(3)" },
    { SAME("random", "", "random($t)"), .table = "indices" },
    { SAME("random", "self=true", "random($t)+self"), .table = "indices" },
    { SAME("longformer", "window=5,global=2", "window(5)+global(2)") },
    { SAME("longformer", "window=7,dilation=3,global=[0,-1]", "window(7,3)+global([0,-1])") },
    { SAME("longformer", "window=5,dilation=[1,2]",
           "window(5,1)+global(1);window(5,2)+global(1)"),
      .heads = 2 },
    { SAME("longformer", "window=5,global=0", "window(5)") },
    { SAME("long-short", "segment=6", "local(6,3,3)"), .when = NOT_CAUSAL,
      .cells = "connectivity_window" },
    { SAME("long-short", "segment=1", "local(1,1,1)"), .when = NOT_CAUSAL,
      .cells = "connectivity_window" },
    { SAME("long-short", "segment=6", "band(-5,0)"), .when = CAUSAL_ONLY,
      .cells = "connectivity_window" },
    { SAME("bigbird", "window=5,global=3,random=0", "window(5)+global(3)") },
    { SAME("bigbird", "window=5,global=2", "window(5)+global(2)+random($t)"),
      .table = "random_blocks" },
    { SAME("bigbird", "block=4,global=2,random=0,global_position=ends",
           "tile(4, window(3)+global([0,-1]))") },
    { SAME("bigbird", "block=4,global=2,global_position=ends",
           "tile(4, window(3)+global([0,-1])+random($t))"),
      .table = "random_blocks", .block = 4 },
    { SAME("nsa", "window=3", "window(5)"), .cells = "connectivity_win" },
    { SAME("nsa", "topk=0,first=0,last=1", "block(8)"), .cells = "connectivity_slc" },
    { SAME("nsa", "topk=99,first=0,last=0", "full"), .cells = "connectivity_slc" },
    { SAME("h2o", "heavy=0,recent=3", "window(7)"), .components = "", .when = CAUSAL_ONLY },
    { SAME("h2o", "heavy=30,recent=34", "full"), .components = "", .when = CAUSAL_ONLY },
    { SAME("h2o", "heavy=1,recent=1,prompt=64", "full"), .components = "", .when = CAUSAL_ONLY },
};
#define ROWS ((int)(sizeof(rows) / sizeof(*rows)))

/* One of the two runs that are compared. */
typedef struct Side {
    Assignments given;
    Run        *run;
} Side;

typedef struct Fixture {
    Arena  *arena;
    int64_t heads, n;
    Tensor  q, k, v;
} Fixture;

static Tensor drawn(Fixture *f, const char *name, int64_t rows_, int64_t width)
{
    Rng    rng = rng_named(5, name);
    Tensor t = tensor_new(f->arena, DT_F32, 3, (int64_t[]){ f->heads, rows_, width });

    assert_non_null(t.data);
    rng_fill_normal(&rng, tensor_f32(&t), tensor_count(&t), 1);
    return t;
}

static Fixture fixture_new(int64_t heads, int64_t n)
{
    Fixture f = { .arena = arena_new(), .heads = heads, .n = n };

    assert_non_null(f.arena);
    f.q = drawn(&f, "q", n, KEY_SIZE);
    f.k = drawn(&f, "k", n, KEY_SIZE);
    f.v = drawn(&f, "v", n, VALUE_SIZE);
    return f;
}

/* Keys of each row, with unused and repeated entries among them. */
static Tensor drawn_table(Fixture *f, int64_t block)
{
    int64_t count = (f->n - 1) / block + 1;
    Rng     rng = rng_named(5, "table");
    Tensor  t = tensor_new(f->arena, DT_I32, 3, (int64_t[]){ f->heads, count, TABLE_WIDTH });

    assert_non_null(t.data);
    for (int64_t c = 0; c < tensor_count(&t); c++)
        tensor_i32(&t)[c] = (int32_t)rng_below(&rng, (uint64_t)count + 1) - 1;
    return t;
}

/* `given` holds what the parameters do not: tensors.  The side owns it then. */
static Side side_run(const Fixture *f, const char *id, Assignments given, bool causal)
{
    Side    side = { .given = given };
    RunSpec spec = { .mechanism = mechanism_find(id), .q = f->q, .k = f->k, .v = f->v,
                     .causal = causal, .given = &side.given, .seed = 7, .views = true };

    CHECK(spec.mechanism, "there is no mechanism %s", id);
    side.run = run_new(&spec);
    run_execute(side.run);
    assert_non_null(side.run);
    CHECK(side.run->err.code == ERR_NONE, "%s: %s", id, side.run->err.text);
    return side;
}

static void side_free(Side *side)
{
    run_free(side->run);
    assignments_free(&side->given);
}

static Assignments with_params(const char *params)
{
    Assignments given = { 0 };
    Error       err = ERROR_INIT;

    CHECK(!*params || assignments_parse(&given, params, &err), "%s: %s", params, err.text);
    return given;
}

static void give_tensor(Assignments *given, const char *name, Tensor t)
{
    Error err = ERROR_INIT;

    CHECK(assignments_set_tensor(given, name, t, "a test", &err), "%s: %s", name, err.text);
}

static Side expression_run(const Fixture *f, const char *expression, const Tensor *table,
                           bool causal)
{
    Assignments given = { 0 };
    Error       err = ERROR_INIT;

    assert_true(assignments_set(&given, "expr", expression, &err));
    if (table && strchr(expression, '$'))
        give_tensor(&given, "t", *table);
    return side_run(f, "pattern", given, causal);
}

static void same_view(const Run *a, const char *of_a, const Run *b, const char *of_b,
                      const char *what)
{
    const View *x = run_view(a, of_a), *y = run_view(b, of_b);
    float       p[MOST], q[MOST];
    int64_t     length = x ? view_cols(x) : 0;

    CHECK(x && y, "%s: no view %s", what, x ? of_b : of_a);
    CHECK(view_cols(y) == length && length <= MOST, "%s: %s has another size", what, of_a);
    for (int64_t h = 0; h < a->h; h++)
        for (int64_t i = 0; i < view_rows(x); i++) {
            view_read(x, view_shared(x) ? 0 : h, i, 0, length, 1, p);
            view_read(y, view_shared(y) ? 0 : h, i, 0, length, 1, q);
            CHECK(!memcmp(p, q, (size_t)length * sizeof(*p)),
                  "%s, n=%d causal=%d: %s of head %d differs in row %d", what, (int)a->n, a->causal,
                  of_a, (int)h, (int)i);
        }
}

static void compare(const Fixture *f, const Row *row, const Tensor *table, bool causal)
{
    Assignments given = with_params(row->params);
    Side        mechanism, expression, components;

    if (row->table)
        give_tensor(&given, row->table, *table);
    mechanism = side_run(f, row->id, given, causal);
    expression = expression_run(f, row->expression, table, causal);
    if (row->cells) {
        same_view(mechanism.run, row->cells, expression.run, "connectivity", row->expression);
    } else {
        const char *own = row->components ? row->components : row->expression;

        same_view(mechanism.run, "connectivity", expression.run, "connectivity", row->expression);
        same_view(mechanism.run, "weights", expression.run, "weights", row->expression);
        same_view(mechanism.run, "output", expression.run, "output", row->expression);
        if (*own) {
            components = expression_run(f, own, table, causal);
            same_view(mechanism.run, "components", components.run, "components", own);
            side_free(&components);
        }
    }
    side_free(&mechanism);
    side_free(&expression);
}

TEST(mechanisms_equal_their_expressions)
{
    static const int64_t shapes[][2] = { { 2, 37 }, { 2, 1 }, { 4, 16 }, { 1, 11 } };

    for (size_t s = 0; s < sizeof(shapes) / sizeof(*shapes); s++)
        for (int r = 0; r < ROWS; r++) {
            Fixture f = fixture_new(shapes[s][0], shapes[s][1]);
            Tensor  table = drawn_table(&f, rows[r].block ? rows[r].block : 1);

            for (int causal = rows[r].when == CAUSAL_ONLY; causal <= (rows[r].when != NOT_CAUSAL);
                 causal++)
                if (!rows[r].heads || rows[r].heads == f.heads)
                    compare(&f, &rows[r], &table, causal);
            arena_free(f.arena);
        }
}

/* ---- extra tokens: the expression is of the longer sequence ---------------------- */

typedef struct ExtraRow {
    const char *id, *params, *expression, *components;
    int64_t     extra;
    const char *tensors[3]; /* parameters that are the extra q, k, v; NULL: means of the tokens */
    const char *output;     /* view of the extra tokens' outputs */
} ExtraRow;

#define GLOBALS .tensors = { "q_global", "k_global", "v_global" }, .output = "output_global"

static const ExtraRow extra_rows[] = {
    { SAME("bigbird", "variant=etc,global=2,window=5,random=0", "global(2)+window(5)"),
      .components = "global(2)+(window(5)-global(2))", .extra = 2, GLOBALS },
    { SAME("etc", "global=2,radius=2", "global(2)+window(5)"),
      .components = "global(2)+(window(5)-global(2))", .extra = 2, GLOBALS },
    { SAME("star", "relay=mean", "global(1)+window(3)"), .components = "global(1)+window(3)",
      .extra = 1, .output = "output_relay" },
    { SAME("star", "relay=mean,ring=true", "global(1)+window(3)+ring(1)"),
      .components = "global(1)+window(3)+ring(1)", .extra = 1, .output = "output_relay" },
};
#define EXTRA_ROWS ((int)(sizeof(extra_rows) / sizeof(*extra_rows)))

static Tensor mean_of(Fixture *f, Tensor tokens)
{
    int64_t n = tokens.shape[1], w = tokens.shape[2];
    Tensor  mean = tensor_new(f->arena, DT_F32, 3, (int64_t[]){ f->heads, 1, w });

    assert_non_null(mean.data);
    for (int64_t x = 0; x < tensor_count(&mean); x++) {
        double sum = 0;

        for (int64_t i = 0; i < n; i++)
            sum += (double)tensor_f32(&tokens)[(x / w * n + i) * w + x % w];
        tensor_f32(&mean)[x] = (float)(sum / (double)n);
    }
    return mean;
}

/* [a, b] of every head. */
static Tensor joined(Fixture *f, Tensor a, Tensor b)
{
    int64_t x = a.shape[1] * a.shape[2], y = b.shape[1] * b.shape[2];
    int64_t shape[3] = { f->heads, a.shape[1] + b.shape[1], a.shape[2] };
    Tensor  both = tensor_new(f->arena, DT_F32, 3, shape);

    assert_non_null(both.data);
    for (int64_t h = 0; h < f->heads; h++) {
        memcpy(tensor_f32(&both) + h * (x + y), tensor_f32(&a) + h * x, (size_t)x * sizeof(float));
        memcpy(tensor_f32(&both) + h * (x + y) + x, tensor_f32(&b) + h * y,
               (size_t)y * sizeof(float));
    }
    return both;
}

/* The extra tokens' q, k or v, given to the mechanism unless they are means. */
static Tensor extra_of(Fixture *f, const ExtraRow *row, int which, Tensor tokens,
                       Assignments *given)
{
    Tensor extra;

    if (!row->tensors[which])
        return mean_of(f, tokens);
    extra = drawn(f, row->tensors[which], row->extra, tokens.shape[2]);
    give_tensor(given, row->tensors[which], extra);
    return extra;
}

/* To rounding: an operation of one query sums its keys in another order than a tile does. */
static void same_numbers(const Tensor *a, const Tensor *b, const char *what)
{
    for (int64_t x = 0; x < tensor_count(a); x++)
        CHECK(fabsf(tensor_f32(a)[x] - tensor_f32(b)[x]) <= 1e-6F, "%s: entry %lld is %g, not %g",
              what, (long long)x, (double)tensor_f32(a)[x], (double)tensor_f32(b)[x]);
}

/* The same of weights. */
static void near_weights(const Run *a, const Run *b, const char *what)
{
    const View *x = run_view(a, "weights"), *y = run_view(b, "weights");
    float       p[MOST], q[MOST];
    int64_t     length = view_cols(x);

    CHECK(view_cols(y) == length && length <= MOST, "%s: weights have another size", what);
    for (int64_t at = 0; at < a->h * view_rows(x); at++) {
        int64_t h = at / view_rows(x), i = at % view_rows(x);

        view_read(x, view_shared(x) ? 0 : h, i, 0, length, 1, p);
        view_read(y, view_shared(y) ? 0 : h, i, 0, length, 1, q);
        for (int64_t j = 0; j < length; j++)
            CHECK(fabsf(p[j] - q[j]) <= 1e-6F, "%s, n=%d: weight %d of row %d is %g, not %g", what,
                  (int)a->n, (int)j, (int)i, (double)p[j], (double)q[j]);
    }
}

static void compare_extra(Fixture *f, const ExtraRow *row)
{
    Assignments given = with_params(row->params);
    Fixture     whole = *f;
    const View *extra_out;
    Tensor      out;
    Side        mechanism, expression, components;

    whole.q = joined(f, extra_of(f, row, 0, f->q, &given), f->q);
    whole.k = joined(f, extra_of(f, row, 1, f->k, &given), f->k);
    whole.v = joined(f, extra_of(f, row, 2, f->v, &given), f->v);
    mechanism = side_run(f, row->id, given, false);
    expression = expression_run(&whole, row->expression, NULL, false);
    same_view(mechanism.run, "connectivity", expression.run, "connectivity", row->expression);
    near_weights(mechanism.run, expression.run, row->expression);
    components = expression_run(&whole, row->components, NULL, false);
    same_view(mechanism.run, "components", components.run, "components", row->components);
    extra_out = run_view(mechanism.run, row->output);
    CHECK(extra_out, "%s: no view %s", row->id, row->output);
    out = joined(f, extra_out->tensor, mechanism.run->out);
    same_numbers(&out, &expression.run->out, row->expression);
    side_free(&components);
    side_free(&expression);
    side_free(&mechanism);
}

TEST(extra_tokens_are_a_longer_sequence)
{
    for (int r = 0; r < EXTRA_ROWS; r++)
        for (int64_t n = 1; n < 20; n += 9) {
            Fixture f = fixture_new(2, n);

            compare_extra(&f, &extra_rows[r]);
            arena_free(f.arena);
        }
}

SUITE(NULL, NULL)
