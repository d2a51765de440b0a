/* test_run.c -- what a Run does for every mechanism: inputs, scale, closed form. */

#include "attn/run.h"
#include "attn/run/position.h"
#include "check.h"
#include "core/rng.h"

#define N 12
#define D 4

typedef struct Data {
    float q[N * D], k[N * D], v[N * D];
} Data;

static Tensor matrix(float *data)
{
    return tensor_of(DT_F32, 3, (int64_t[]){ 1, N, D }, data);
}

static RunSpec spec_on(Data *data, const char *mechanism)
{
    Rng rng = rng_named(1, "test_run");

    rng_fill_normal(&rng, data->q, N * D, 1);
    rng_fill_normal(&rng, data->k, N * D, 1);
    rng_fill_normal(&rng, data->v, N * D, 1);
    return (RunSpec){ .mechanism = mechanism_find(mechanism), .q = matrix(data->q),
                      .k = matrix(data->k), .v = matrix(data->v), .views = true };
}

TEST(a_missing_tensor_is_an_error_that_names_it)
{
    static const char *const names[] = { "reads q", "reads k", "reads v" };

    for (int which = 0; which < 3; which++) {
        Data    data;
        RunSpec spec = spec_on(&data, "full");
        Tensor *all[] = { &spec.q, &spec.k, &spec.v };
        Run    *r;

        *all[which] = (Tensor){ 0 };
        r = run_new(&spec);
        run_execute(r);
        assert_int_equal(r->err.code, ERR_DATA);
        CHECK(strstr(r->err.text, names[which]), "%s", r->err.text);
        CHECK(strstr(r->err.text, "numpy.savez("), "%s", r->err.text);
        run_free(r);
    }
}

/* A file gives the scale of its model; a parameter overrides it. */
TEST(the_scale_of_the_input_stands_unless_a_parameter_says_otherwise)
{
    Data        data;
    Error       err = ERROR_INIT;
    Assignments given = { 0 };
    RunSpec     by_input = spec_on(&data, "full"), by_param = by_input, plain = by_input;
    Run        *a, *b, *c;

    by_input.scale = 0.125;
    assert_true(assignments_set(&given, "scale", "0.125", &err));
    by_param.given = &given;
    by_param.scale = 3;
    a = run_new(&by_input);
    run_execute(a);
    b = run_new(&by_param);
    run_execute(b);
    c = run_new(&plain);
    run_execute(c);
    assert_memory_equal(a->out.data, b->out.data, sizeof(data.v));
    assert_memory_not_equal(a->out.data, c->out.data, sizeof(data.v));
    run_free(a);
    run_free(b);
    run_free(c);
    assignments_free(&given);
}

TEST(the_closed_form_holds_with_every_position)
{
    for (size_t i = 0; position_at(i); i++) {
        Data    data;
        RunSpec spec = spec_on(&data, "full");
        Flops   closed;
        bool    bound;
        Run    *r;

        spec.position = position_at(i);
        spec.causal = i % 2;
        r = run_new(&spec);
        run_execute(r);
        CHECK(r->err.code == ERR_NONE, "%s", r->err.text);
        assert_true(run_closed_form(r, &closed, &bound));
        CHECK(run_flops(r).position > 0, "%s: no position FLOPs", spec.position->id);
        CHECK_NEAR(flops_total(run_flops(r)), flops_total(closed), 1e-12);
        run_free(r);
    }
}

TEST(every_run_shows_its_output)
{
    Data        data;
    RunSpec     spec = spec_on(&data, "full");
    Run        *r = run_new(&spec);
    const View *view;
    float       row[D];

    run_execute(r);
    view = run_view(r, "output");
    assert_non_null(view);
    view_read(view, 0, 3, 0, D, 1, row);
    assert_memory_equal(row, tensor_f32(&r->out) + 3 * D, sizeof(row));
    run_free(r);
}

TEST(fewer_key_heads_are_shared)
{
    Data    data;
    RunSpec spec = spec_on(&data, "full");
    float   both[2 * N * D];
    Run    *r;

    memcpy(both, data.q, sizeof(data.q));
    memcpy(both + N * D, data.q, sizeof(data.q));
    spec.q = tensor_of(DT_F32, 3, (int64_t[]){ 2, N, D }, both);
    r = run_new(&spec);
    run_execute(r);
    assert_int_equal(r->err.code, ERR_NONE);
    assert_memory_equal(tensor_f32(&r->out), tensor_f32(&r->out) + N * D, sizeof(data.v));
    run_free(r);
}

/* No reader of an output need look for NaN: the run says so; of a query that was given so it says
 * that it is left out, and not that the output is not finite. */
TEST(an_output_that_is_not_finite_is_told)
{
    static const struct {
        float       factor; /* of a query */
        const char *expected;
    } cases[] = { { NAN, "1 of 12 queries, whose exact attention is not known, is left out" },
                  { 1e38f, "(first in row 3) though" },
                  { 1, NULL } };

    for (int c = 0; c < 3; c++) {
        Data    data;
        RunSpec spec = spec_on(&data, "full");
        Run    *r;

        data.q[3 * D] *= cases[c].factor;
        for (int x = 0; x < N * D; x++)
            data.k[x] *= c == 1 ? 1e20f : 1;
        r = run_new(&spec);
        run_execute(r);
        assert_int_equal(r->err.code, ERR_NONE);
        if (cases[c].expected)
            CHECK(strstr(text_str(&r->warnings), cases[c].expected), "%s", text_str(&r->warnings));
        else
            assert_string_equal(text_str(&r->warnings), "");
        assert_true(c == 1 || !strstr(text_str(&r->warnings), "though"));
        run_free(r);
    }
}

/* A run on table `name` of one entry that is no index, in any dtype. */
static void refuses(RunSpec spec, const char *name, Tensor table, const char *expected)
{
    Error       err = ERROR_INIT;
    Assignments given = { 0 };
    Run        *r;

    if (!strcmp(spec.mechanism->id, "pattern"))
        assert_true(assignments_set(&given, "expr", name[0] == 'g' ? "global($g)" : "random($t)",
                                    &err));
    assert_true(assignments_set_tensor(&given, name, table, "table.npy", &err));
    spec.given = &given;
    r = run_new(&spec);
    run_execute(r);
    assert_int_equal(r->err.code, ERR_PARAM);
    CHECK(strstr(r->err.text, expected), "%s", r->err.text);
    run_free(r);
    assignments_free(&given);
}

/* 2^32 + 3 is not 3, and neither is 3.5; NaN is nothing. */
TEST(a_table_entry_that_is_no_index_is_refused)
{
    Data    data;
    int64_t wide[N], shape[2] = { N, 1 };
    double  part[N], none[N];
    RunSpec spec = spec_on(&data, "random");
    Tensor  tables[3] = { tensor_of(DT_I64, 2, shape, wide), tensor_of(DT_F64, 2, shape, part),
                          tensor_of(DT_F64, 2, shape, none) };
    static const char *const texts[3] = { "4294967299", "3.5", "nan" };

    for (int i = 0; i < N; i++) {
        wide[i] = 4294967299;
        part[i] = 3.5;
        none[i] = (double)NAN;
    }
    for (int t = 0; t < 3; t++) {
        Tensor list = tensor_of(tables[t].dtype, 1, shape, tables[t].data);

        spec.mechanism = mechanism_find("random");
        refuses(spec, "indices", tables[t], texts[t]);
        spec.mechanism = mechanism_find("bigbird");
        refuses(spec, "random_blocks", tables[t], texts[t]);
        spec.mechanism = mechanism_find("pattern");
        refuses(spec, "t", tables[t], texts[t]);
        refuses(spec, "g", list, texts[t]);
    }
}

/* ---- heads of a size that is not the usual ------------------------------------------ */

#define WIDEST 300

static float wide[3][N * WIDEST];

static Run *run_of_wide(const char *mechanism, int64_t width)
{
    RunSpec spec = { .mechanism = mechanism_find(mechanism), .views = true, .causal = true };
    Tensor *all[] = { &spec.q, &spec.k, &spec.v };
    Rng     rng = rng_named(1, "wide");
    Run    *r;

    for (int x = 0; x < 3; x++) {
        rng_fill_normal(&rng, wide[x], N * width, 1);
        *all[x] = tensor_of(DT_F32, 3, (int64_t[]){ 1, N, width }, wide[x]);
    }
    r = run_new(&spec);
    run_execute(r);
    assert_int_equal(r->err.code, ERR_NONE);
    return r;
}

/* Of 37 numbers the first 32 are taken together. */
TEST(wide_heads_have_the_weights_of_their_scores)
{
    enum { WIDE = 37 };
    Run *r = run_of_wide("full", WIDE);

    for (int64_t i = 0; i < N; i++) {
        double score[N], sum = 0;
        float  row[N];

        view_read(run_view(r, "weights"), 0, i, 0, N, 1, row);
        for (int64_t j = 0; j <= i; j++) {
            score[j] = 0;
            for (int64_t c = 0; c < WIDE; c++)
                score[j] += (double)wide[0][i * WIDE + c] * (double)wide[1][j * WIDE + c];
            score[j] = exp(score[j] / sqrt(WIDE));
            sum += score[j];
        }
        for (int64_t j = 0; j < N; j++)
            CHECK_NEAR((double)row[j], j <= i ? score[j] / sum : 0, 1e-6);
    }
    run_free(r);
}

/* A row of a state's matrix takes scratch of its own from 256 channels on. */
TEST(weights_of_a_wide_state_give_its_output)
{
    Run *r = run_of_wide("retnet", WIDEST);

    for (int64_t i = 0; i < N; i++) {
        float row[N];

        view_read(run_view(r, "weights"), 0, i, 0, N, 1, row);
        for (int64_t c = 0; c < WIDEST; c++) {
            double sum = 0;

            for (int64_t j = 0; j < N; j++)
                sum += (double)row[j] * (double)wide[2][j * WIDEST + c];
            CHECK_NEAR((double)tensor_f32(&r->out)[i * WIDEST + c], sum, 1e-5);
        }
    }
    run_free(r);
}

/* Drawn by pieces: the last is shorter, and together they are what is drawn at once. */
TEST(a_long_tensor_is_drawn_as_a_whole_and_nothing_behind_it)
{
    enum { COUNT = 2 * 65536 + 10, ROOM = 4 * 65536 };
    Data    data;
    RunSpec spec = spec_on(&data, "full");
    Run    *r = run_new(&spec);
    float  *drawn = malloc(ROOM * sizeof(*drawn)), *once = malloc(COUNT * sizeof(*once));
    Rng     rng = rng_named(1, "pieces"), same = rng;

    assert_true(drawn && once);
    for (int64_t x = 0; x < ROOM; x++)
        drawn[x] = 7;
    run_draw(r, &rng, (Init){ INIT_UNIFORM, 1 },
             tensor_of(DT_F32, 1, (int64_t[]){ COUNT }, drawn));
    rng_fill_uniform(&same, once, COUNT, -1, 1);
    assert_memory_equal(drawn, once, COUNT * sizeof(*once));
    assert_true(rng.at == same.at);
    for (int64_t x = COUNT; x < ROOM; x++)
        assert_true(drawn[x] == 7);
    free(drawn);
    free(once);
    run_free(r);
}

SUITE(NULL, NULL)
