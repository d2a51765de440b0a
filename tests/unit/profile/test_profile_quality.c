/* test_profile_quality.c -- quality against exact attention, checked by definition.
 *
 * The reference here is a plain double softmax over whole rows, n x n.
 */
#include "attn/run/position.h"
#include "profile_fixture.h"

static Quality quality_of(const RunSpec *spec)
{
    RunSpec viewed = *spec;
    Quality q;
    Error   err = ERROR_INIT;
    Run    *run;

    viewed.views = true;
    run = run_new(&viewed);
    run_execute(run);
    assert_non_null(run);
    if (run->err.code)
        fail_msg("%s", run->err.text);
    if (!quality_measure(run, 0, &q, NULL, &err))
        fail_msg("%s", err.text);
    run_free(run);
    return q;
}

TEST(full_loses_nothing)
{
    for (int causal = 0; causal < 2; causal++) {
        Fixture f = fixture_new(2, 67, 16, 2);
        Quality q;

        fixture_choose(&f, "full", "");
        f.spec.causal = causal;
        q = quality_of(&f.spec);
        assert_true(q.mass_mean.valid && q.mass_p5.valid && q.mass_min.valid);
        CHECK_WITHIN(q.mass_mean.value, 1, 1e-12);
        CHECK_WITHIN(q.mass_min.value, 1, 1e-12);
        assert_true(q.output_error.valid && q.output_error.value < 1e-6);
        assert_true(q.total_variation.valid && q.total_variation.value < 1e-5);
        fixture_free(&f);
    }
}

TEST(a_wider_window_keeps_more)
{
    static const char *const windows[] = { "expr=window(1)", "expr=window(5)", "expr=window(17)",
                                           "expr=window(65)", "expr=window(161)" };
    Fixture f = fixture_new(2, 80, 16, 2);
    Quality last = { 0 };

    for (size_t i = 0; i < sizeof(windows) / sizeof(*windows); i++) {
        Quality q;

        fixture_choose(&f, "pattern", windows[i]);
        q = quality_of(&f.spec);
        assert_true(q.mass_mean.valid && q.output_error.valid && q.total_variation.valid);
        assert_true(q.mass_min.value <= q.mass_p5.value && q.mass_p5.value <= 1);
        assert_true(q.mass_min.value <= q.mass_mean.value);
        /* Renormalised over the kept set, the variation of a row is its lost mass. */
        CHECK_WITHIN(q.total_variation.value, 1 - q.mass_mean.value, 1e-5);
        assert_true(q.kl.valid && q.kl.value >= 0 && !q.kl_lacks);
        if (i) {
            assert_true(q.kl.value < last.kl.value);
            assert_true(q.mass_mean.value > last.mass_mean.value);
            assert_true(q.output_error.value < last.output_error.value);
        }
        last = q;
    }
    CHECK_WITHIN(last.mass_mean.value, 1, 1e-12);
    assert_true(last.output_error.value < 1e-6);
    fixture_free(&f);
}

/* Mass of one row by definition. */
static double kept_mass(const Fixture *f, int64_t head, int64_t i, int64_t reach, double scale)
{
    int64_t      n = f->spec.q.shape[1], d = f->spec.q.shape[2];
    const float *q = tensor_f32(&f->spec.q) + (head * n + i) * d;
    double       score, top = -(double)INFINITY, sum = 0, kept = 0;

    for (int pass = 0; pass < 2; pass++)
        for (int64_t j = 0; j < n; j++) {
            const float *k = tensor_f32(&f->spec.k) + (head * n + j) * d;

            score = 0;
            for (int64_t p = 0; p < d; p++)
                score += (double)q[p] * (double)k[p];
            score *= scale;
            top = fmax(top, score);
            if (pass) {
                sum += exp(score - top);
                kept += llabs(i - j) <= reach ? exp(score - top) : 0;
            }
        }
    return kept / sum;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Of a hundred values: .95 of the way from the fifth to the sixth smallest, as 4.95 = 99 * .05. */
static double fifth_percentile(double values[100])
{
    qsort(values, 100, sizeof(*values), ascending);
    return values[4] + 0.95 * (values[5] - values[4]);
}

TEST(mass_and_worst_row_are_as_defined)
{
    static const struct {
        const char *params;
        double      scale;
    } cases[] = { { "expr=window(5)", 0.25 }, { "expr=window(5),scale=0.1", 0.1 } };
    Fixture f = fixture_new(2, 50, 16, 2);

    for (size_t c = 0; c < 2; c++) {
        double  mean = 0, worst = 2, all[100];
        int64_t query = -1, head = -1;
        Quality q;

        for (int64_t r = 0; r < 100; r++) {
            double mass = kept_mass(&f, r / 50, r % 50, 2, cases[c].scale);

            mean += mass / 100;
            all[r] = mass;
            if (mass < worst) {
                worst = mass;
                query = r % 50;
                head = r / 50;
            }
        }
        fixture_choose(&f, "pattern", cases[c].params);
        q = quality_of(&f.spec);
        CHECK_WITHIN(q.mass_mean.value, mean, 1e-5);
        CHECK_WITHIN(q.mass_min.value, worst, 1e-5);
        CHECK_WITHIN(q.mass_p5.value, fifth_percentile(all), 1e-5);
        assert_int_equal(q.worst_query, query);
        assert_int_equal(q.worst_head, head);
        assert_int_equal(q.worst_count, WORST_QUERIES);
        CHECK_WITHIN(q.worst[0].value, worst, 1e-5);
        for (int i = 1; i < q.worst_count; i++)
            assert_true(q.worst[i].value >= q.worst[i - 1].value);
    }
    fixture_free(&f);
}

TEST(the_position_is_part_of_the_reference)
{
    Fixture f = fixture_new(2, 40, 16, 1);
    Quality q;

    f.spec.position = position_find("alibi");
    assert_non_null(f.spec.position);
    fixture_choose(&f, "pattern", "expr=window(999),pos_future=signed");
    q = quality_of(&f.spec);
    CHECK_WITHIN(q.mass_mean.value, 1, 1e-12);
    assert_true(q.output_error.value < 1e-6);
    assert_true(q.total_variation.value < 1e-5);
    fixture_free(&f);
}

TEST(grouped_heads_and_cross_lengths_work)
{
    Fixture f = fixture_new(4, 20, 8, 2);
    Quality q;

    f.spec.k = fixture_normal(&f, "k2", 2, 33, 8, 1);
    f.spec.v = fixture_normal(&f, "v2", 2, 33, 5, 1);
    fixture_choose(&f, "full", "");
    q = quality_of(&f.spec);
    CHECK_WITHIN(q.mass_mean.value, 1, 1e-12);
    assert_true(q.output_error.value < 1e-6);
    fixture_free(&f);
}

TEST(threads_change_no_bit)
{
    Fixture one = fixture_new(3, 61, 16, 1), four = fixture_new(3, 61, 16, 4);
    Quality a, b;

    fixture_choose(&one, "pattern", "expr=window(7)");
    fixture_choose(&four, "pattern", "expr=window(7)");
    a = quality_of(&one.spec);
    b = quality_of(&four.spec);
    CHECK_WITHIN(a.mass_mean.value, b.mass_mean.value, 0);
    CHECK_WITHIN(a.output_error.value, b.output_error.value, 0);
    CHECK_WITHIN(a.total_variation.value, b.total_variation.value, 0);
    assert_int_equal(a.worst_query, b.worst_query);
    fixture_free(&one);
    fixture_free(&four);
}

TEST(an_empty_set_keeps_no_mass)
{
    Fixture f = fixture_new(1, 12, 8, 1);
    Quality q;

    fixture_choose(&f, "pattern", "expr=window(1)-window(1)");
    q = quality_of(&f.spec);
    CHECK_WITHIN(q.mass_mean.value, 0, 0);
    CHECK_WITHIN(q.output_error.value, 1, 1e-9);
    CHECK_WITHIN(q.total_variation.value, 0.5, 1e-6);
    assert_false(q.kl.valid);
    assert_non_null(strstr(q.kl_lacks, "do not sum to 1"));
    fixture_free(&f);
}

/* Extra global tokens make the matrix larger than n x n: only outputs compare. */
TEST(another_matrix_leaves_only_the_output)
{
    Fixture f = fixture_new(1, 30, 8, 1);
    Quality q;

    fixture_choose(&f, "bigbird", "variant=etc,global=2");
    q = quality_of(&f.spec);
    assert_false(q.mass_mean.valid || q.mass_p5.valid || q.mass_min.valid);
    assert_false(q.total_variation.valid);
    assert_true(q.output_error.valid && q.output_error.value > 0);
    assert_true(q.worst_query >= 0);
    fixture_free(&f);
}

/* Row i of a head, all cells. */
static const float *whole_row(const View *view, int64_t head, int64_t i, float *out)
{
    view_read(view, view_planes(view) > 1 ? head : 0, i, 0, view_cols(view), 1, out);
    return out;
}

static void sums_by_definition(const Run *run, const Run *exact, double *mass, double *variation,
                               double *kl)
{
    const View *kept = run_view(run, "connectivity"), *own = run_view(run, "weights");
    float       k[64], w[64], all[64];
    int64_t     rows = run->h * run->n;

    *mass = *variation = *kl = 0;
    for (int64_t r = 0; r < rows; r++) {
        whole_row(kept, r / run->n, r % run->n, k);
        whole_row(own, r / run->n, r % run->n, w);
        whole_row(run_view(exact, "weights"), r / run->n, r % run->n, all);
        for (int64_t j = 0; j < run->m; j++) {
            *mass += k[j] > 0 ? (double)all[j] / (double)rows : 0;
            *variation += fabs((double)w[j] - (double)all[j]) / 2 / (double)rows;
            *kl += w[j] > 0 ? (double)w[j] * log((double)w[j] / (double)all[j]) / (double)rows : 0;
        }
    }
}

static Run *viewed_run(Fixture *f, const char *id, const char *params)
{
    Run *run;

    fixture_choose(f, id, params);
    f->spec.views = true;
    run = run_new(&f->spec);
    run_execute(run);
    assert_int_equal(run->err.code, ERR_NONE);
    return run;
}

/* Of few cells, only these are read; of many, whole rows. */
TEST(few_cells_and_whole_rows_are_compared_alike)
{
    static const char *const cases[][2] = {
        { "window", "window=5" },       { "random", "r=3" },
        { "reformer", "n_buckets=8,block=4" },{ "bigbird", "block=4,window=1,random=1,global=1" },
        { "topk", "k=3" },              { "sinkhorn", "block=8,sort_net=means" },
        { "window", "window=61" },      { "topk", "k=40" },
    };

    for (size_t c = 0; c < 2 * sizeof(cases) / sizeof(*cases); c++) {
        const char *const *of = cases[c / 2];
        Fixture f = fixture_new(2, 64, 16, 1);
        double  mass, variation, kl;
        Quality q;
        Error   err = ERROR_INIT;
        Run    *run, *exact;

        f.spec.causal = c % 2;
        exact = viewed_run(&f, "full", "");
        run = viewed_run(&f, of[0], of[1]);
        sums_by_definition(run, exact, &mass, &variation, &kl);
        assert_true(quality_measure(run, 0, &q, NULL, &err));
        CHECK_WITHIN(q.mass_mean.value, mass, 1e-6);
        CHECK_WITHIN(q.total_variation.value, variation, 1e-6);
        CHECK_WITHIN(q.kl.value, kl, 1e-5);
        run_free(run);
        run_free(exact);
        fixture_free(&f);
    }
}

/* A window of three weighs one key behind what a causal query sees: exact attention weighs it 0, in
 * few cells and in whole rows. */
TEST(a_cell_behind_what_a_query_sees_has_no_exact_mass)
{
    Fixture f = fixture_new(2, 64, 16, 1);
    double  mass, variation, kl;
    Quality q;
    Error   err = ERROR_INIT;
    Run    *run, *exact;

    f.spec.causal = true;
    exact = viewed_run(&f, "full", "");
    f.spec.causal = false;
    run = viewed_run(&f, "window", "window=3");
    run->spec.causal = true; /* of the reference only: these cells are no causal run's */
    sums_by_definition(run, exact, &mass, &variation, &kl);
    assert_true(quality_measure(run, 0, &q, NULL, &err));
    CHECK_WITHIN(q.mass_mean.value, mass, 1e-6);
    CHECK_WITHIN(q.total_variation.value, variation, 1e-6);
    assert_non_null(q.kl_lacks); /* infinite */
    run_free(run);
    run_free(exact);
    fixture_free(&f);
}

static bool covers(Number mean, Number margin, Number truth)
{
    assert_true(mean.valid && margin.valid && truth.valid);
    return fabs(mean.value - truth.value) <= margin.value;
}

/* Of 200 samples, 95 % are expected to cover the mean of all rows; fewer than 180 or 200 do with a
 * probability below 1e-3.  The rows of a head are drawn apart, so the interval is a little wide. */
TEST(intervals_of_samples_cover_the_means_of_all_rows)
{
    Fixture f = fixture_new(2, 300, 8, 1);
    int     mass = 0, error = 0, variation = 0, kl = 0;

    for (uint64_t seed = 0; seed < 200; seed++) {
        Quality all, some;
        Error   err = ERROR_INIT;
        Run    *run;

        f.spec.seed = seed;
        run = viewed_run(&f, "window", "window=25");
        assert_true(quality_measure(run, 0, &all, NULL, &err));
        assert_true(quality_measure(run, 60, &some, NULL, &err));
        assert_int_equal(some.rows, 60);
        assert_false(some.mass_min.valid || some.worst_count);
        mass += covers(some.mass_mean, some.mass_margin, all.mass_mean);
        error += covers(some.output_error, some.output_error_margin, all.output_error);
        variation += covers(some.total_variation, some.variation_margin, all.total_variation);
        kl += covers(some.kl, some.kl_margin, all.kl);
        run_free(run);
    }
    assert_in_range(mass, 180, 200);
    assert_in_range(error, 180, 200);
    assert_in_range(variation, 180, 200);
    assert_in_range(kl, 180, 200);
    fixture_free(&f);
}

/* With rows drawn once, a sample of nearly all rows is nearly the whole. */
TEST(a_sample_takes_each_row_at_most_once)
{
    Fixture f = fixture_new(1, 40, 8, 1);
    Quality all, some, same;
    Error   err = ERROR_INIT;
    Run    *run = viewed_run(&f, "window", "window=5");

    assert_true(quality_measure(run, 0, &all, NULL, &err));
    assert_true(quality_measure(run, 39, &some, NULL, &err));
    CHECK_WITHIN(some.mass_mean.value, all.mass_mean.value, 1.0 / 39);
    CHECK_WITHIN(some.output_error.value, all.output_error.value, 0.1 * all.output_error.value);
    assert_true(quality_measure(run, 40, &same, NULL, &err));
    assert_int_equal(same.rows, 0);
    CHECK_WITHIN(same.mass_mean.value, all.mass_mean.value, 0);
    run_free(run);
    fixture_free(&f);
}

/* A mechanism of no pattern class over all cells, or over a band. */
typedef struct {
    int64_t reach;
} DenseParams;

static const Param dense_params[] = {
    PARAM_INT(DenseParams, reach, 1000, 0, 1000, "largest distance"),
    PARAM_END
};

static void dense_run(Run *r, const void *opaque)
{
    const DenseParams *p = opaque;
    PatternShape  s = { .heads = r->h, .n = r->n, .m = r->m };
    Pattern      *cells = pattern_band(r->arena, s, -p->reach, p->reach, 1, COMPONENT_WINDOW);
    AttendInput   in = run_attend_input(r, 0);
    AttendResult  result;

    run_stage(r, "attend");
    result = op_attend(r, &in, cells);
    r->out = result.out;
    view_pattern(r, cells, false);
}

static const Mechanism dense = { .id = "dense", .classes = CLASS_KR, .params = dense_params,
                                 .params_size = sizeof(DenseParams), .run = dense_run };

TEST(mass_is_only_for_sets_that_leave_something_out)
{
    Fixture f = fixture_new(1, 30, 8, 1);
    Quality q;

    f.spec.mechanism = &dense;
    q = quality_of(&f.spec);
    assert_false(q.mass_mean.valid || q.total_variation.valid);
    assert_true(q.output_error.valid && q.output_error.value < 1e-6);
    assert_true(assignments_parse(&f.given, "reach=3", NULL));
    f.spec.given = &f.given;
    q = quality_of(&f.spec);
    assert_true(q.mass_mean.valid && q.mass_mean.value < 1);
    fixture_free(&f);
}

/* Outputs computed from x, or from keys of several depths, have no reference. */
TEST(lambdas_compare_only_where_attention_could_run)
{
    Fixture f = fixture_new(2, 30, 8, 1);
    Quality q;

    fixture_choose(&f, "lambda", "");
    q = quality_of(&f.spec);
    assert_true(q.output_error.valid && q.output_error.value > 0);
    f.spec.k = fixture_normal(&f, "k", 2, 30, 16, 1);
    f.spec.v = fixture_normal(&f, "v", 2, 30, 16, 1);
    fixture_choose(&f, "lambda", "depth_u=2");
    q = quality_of(&f.spec);
    assert_false(q.output_error.valid || q.mass_mean.valid || q.total_variation.valid);
    f.spec.x = tensor_with_rank(fixture_normal(&f, "x", 1, 30, 6, 1), 2);
    f.spec.q.data = f.spec.k.data = f.spec.v.data = NULL;
    fixture_choose(&f, "lambda", "heads=2");
    q = quality_of(&f.spec);
    assert_false(q.output_error.valid || q.mass_mean.valid || q.total_variation.valid);
    fixture_free(&f);
}

TEST(without_views_only_the_output_compares)
{
    Fixture f = fixture_new(1, 30, 8, 1);
    Quality q;
    Error   err = ERROR_INIT;
    Run    *run;

    fixture_choose(&f, "pattern", "expr=window(3)");
    run = run_new(&f.spec);
    run_execute(run);
    assert_true(quality_measure(run, 0, &q, NULL, &err));
    assert_false(q.mass_mean.valid || q.total_variation.valid);
    assert_true(q.output_error.valid);
    run_free(run);
    fixture_free(&f);
}

TEST(cancelling_is_an_error)
{
    Fixture     f = fixture_new(1, 30, 8, 1);
    atomic_bool cancel;
    Quality     q;
    Error       err = ERROR_INIT;
    Run        *run;

    atomic_init(&cancel, false);
    fixture_choose(&f, "pattern", "expr=window(3)");
    f.spec.views = true;
    f.spec.cancel = &cancel;
    run = run_new(&f.spec);
    run_execute(run);
    atomic_store(&cancel, true);
    assert_false(quality_measure(run, 0, &q, NULL, &err));
    assert_int_equal(err.code, ERR_CANCELLED);
    assert_false(q.mass_mean.valid);
    run_free(run);
    fixture_free(&f);
}

SUITE(NULL, NULL)
