/* test_mech_stack.c -- reversible, checkpointing, head-pruning, act and parameter-sharing: what
 * must hold whatever the numbers are.  References are in tests/oracle.
 */
#include "mech_fixture.h"

#define N 7
#define WIDTH 6

static Fixture stack_new(int64_t width)
{
    Fixture f = fixture_new(N);

    f.x = tensor_with_rank(fixture_draw(&f, "x", 1, N, width), 2);
    f.tensor_count = 0; /* the input, not a parameter */
    return f;
}

static double figure(const Fixture *f, const char *name)
{
    for (int i = 0; i < f->run->figure_count; i++)
        if (!strcmp(f->run->figures[i].name, name))
            return f->run->figures[i].value;
    fail_msg("%s has no figure %s", f->run->mechanism->id, name);
    return 0;
}

static void assert_figure(const Fixture *f, const char *name, double want)
{
    double got = figure(f, name);

    if (!(fabs(got - want) <= 1e-9 * fmax(1, fabs(want))))
        fail_msg("%s: %s is %.17g, want %.17g", f->run->mechanism->id, name, got, want);
}

static int64_t whole(const Tensor *t, int64_t at)
{
    return ((const int64_t *)t->data)[at];
}

static double real(const Tensor *t, int64_t at)
{
    return ((const double *)t->data)[at];
}

static int64_t largest(const Tensor *t)
{
    int64_t most = 0;

    for (int64_t i = 0; i < tensor_count(t); i++)
        most = whole(t, i) > most ? whole(t, i) : most;
    return most;
}

static void assert_refused(Fixture *f, const char *id, const char *params, const char *words)
{
    Run *r = fixture_run_at(f, id, params, false, true, 0);

    assert_int_equal(r->err.code, ERR_PARAM);
    if (!strstr(r->err.text, words))
        fail_msg("%s(%s): '%s' does not say '%s'", id, params, r->err.text, words);
}

/* ---- the stack around an attention ------------------------------------------------ */

static const char *const stacks[] = { "reversible", "checkpointing", "head-pruning", "act" };

/* "layers=2,heads=2,attention=window,attention.window=5" */
static void parameters_of(const Mechanism *m, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "layers=2,heads=2,attention=%s", m->id);
    int    depth = 0;

    if (m->example)
        used += (size_t)snprintf(text + used, size - used, ",attention.");
    for (const char *c = m->example; c && *c && used + 12 < size; c++) {
        depth += (*c == '(' || *c == '[') - (*c == ')' || *c == ']');
        text[used++] = *c;
        text[used] = '\0';
        if (*c == ',' && depth == 0)
            used += (size_t)snprintf(text + used, size - used, "attention.");
    }
}

TEST(any_attention_stands_in_a_layer)
{
    Fixture f = stack_new(WIDTH);
    char    params[256];

    for (size_t s = 0; s < sizeof(stacks) / sizeof(*stacks); s++)
        for (size_t i = 0; mechanism_at(i); i++) {
            const Mechanism *m = mechanism_at(i);
            Run             *r;

            parameters_of(m, params, sizeof(params));
            if (m->needs_x || m->needs_attn || m->needs_none || m->inner) {
                snprintf(params, sizeof(params), "attention=%s", m->id);
                assert_refused(&f, stacks[s], params, "does not take q, k and v");
                continue;
            }
            r = fixture_run_at(&f, stacks[s], params, false, true, 0);
            if (r->err.code == ERR_PARAM && strstr(r->err.text, "output of another shape"))
                continue; /* fewer rows than tokens are no layer */
            if (r->err.code != ERR_NONE)
                fail_msg("%s(%s): %s", stacks[s], params, r->err.text);
            check_flops(&f);
        }
    fixture_free(&f);
}

/* A window over all tokens equals full attention. */
TEST(parameters_of_the_attention_pass_through)
{
    Fixture f = stack_new(WIDTH);
    float  *full;
    double  bytes;

    fixture_run(&f, "checkpointing", "heads=2", false);
    full = fixture_output(&f);
    bytes = figure(&f, "layer_bytes");
    fixture_run(&f, "checkpointing", "heads=2,attention=window,window=99", false);
    check_near(tensor_f32(&f.run->out), full, N * WIDTH, 1e-5);
    assert_figure(&f, "layer_bytes", bytes);
    fixture_run(&f, "checkpointing", "heads=2,attention=window,window=1", false);
    assert_figure(&f, "layer_bytes", bytes - 4 * 2 * (N * N - N));
    assert_refused(&f, "checkpointing", "attention=window,windo=3", "nearest is 'window'");
    assert_refused(&f, "checkpointing", "attention=nowhere", "is no mechanism");
    assert_refused(&f, "checkpointing", "window=3", "no parameter 'window'");
    free(full);
    fixture_free(&f);
}

TEST(sizes_that_do_not_fit_are_refused)
{
    Fixture f = stack_new(WIDTH);

    assert_refused(&f, "act", "heads=4", "heads=4 does not divide the width dm=6");
    fixture_draw(&f, "wq", 3, WIDTH, WIDTH);
    assert_refused(&f, "reversible", "layers=2", "layers=2, but parameter wq");
    fixture_draw(&f, "wk", 2, WIDTH, WIDTH);
    assert_refused(&f, "reversible", "", "parameter wk: expected shape [3,6,6], found [2,6,6]");
    fixture_free(&f);
}

/* Rows up to t do not move when x does behind them. */
TEST(causal_stacks_do_not_look_ahead)
{
    static const char *const params[] = { "", "", "layers=2,prune=3,heads=2", "b_halt=-1" };

    for (size_t s = 0; s < sizeof(stacks) / sizeof(*stacks); s++) {
        Fixture f = stack_new(WIDTH);
        float  *before;

        fixture_run(&f, stacks[s], params[s], true);
        before = fixture_output(&f);
        for (int64_t c = 0; c < WIDTH && s != 2; c++) /* which heads go depends on all tokens */
            tensor_f32(&f.x)[(N - 1) * WIDTH + c] -= 2;
        fixture_run(&f, stacks[s], params[s], true);
        check_near(tensor_f32(&f.run->out), before, (N - 1) * WIDTH, 0);
        free(before);
        fixture_free(&f);
    }
}

/* ---- reversible -------------------------------------------------------------------- */

TEST(reversible_layers_are_undone)
{
    static const char *const formats[] = { "float64", "float32", "fp16", "bf16" };
    static const double most[] = { 1e-12, 1e-4, 1, 8 };
    Fixture f = stack_new(WIDTH);
    double  before = 0;
    char    params[64];

    for (int p = 0; p < 4; p++) {
        Tensor error;

        snprintf(params, sizeof(params), "layers=5,precision=%s", formats[p]);
        fixture_run(&f, "reversible", params, false);
        error = fixture_view(&f, "error_relative");
        assert_true(real(&error, 10) <= 0 && real(&error, 11) <= 0);
        assert_true(figure(&f, "max_error") < most[p] && figure(&f, "max_error") >= before);
        before = figure(&f, "max_error");
        assert_figure(&f, "extra_forward_layers", 5);
    }
    fixture_free(&f);
}

/* The upper half of a float's bits is a bf16 number. */
TEST(streams_have_their_format_from_the_input_on)
{
    Fixture f = stack_new(WIDTH);
    Tensor  streams;

    fixture_run(&f, "reversible", "layers=2,precision=bf16", false);
    streams = fixture_view(&f, "streams");
    for (int64_t i = 0; i < tensor_count(&streams); i++) {
        uint32_t bits;

        memcpy(&bits, tensor_f32(&streams) + i, sizeof(bits));
        CHECK(!(bits & 0xffff), "number %lld is no bf16 number", (long long)i);
    }
    fixture_free(&f);
}

TEST(reversible_memory_does_not_grow_with_depth)
{
    Fixture f = stack_new(WIDTH);
    double  flat = 0, measured = 0, plain = 0;

    for (int layers = 1; layers <= 8; layers *= 2) {
        Tensor up, memory, both;
        char   params[32];

        snprintf(params, sizeof(params), "layers=%d", layers);
        fixture_run(&f, "reversible", params, false);
        up = fixture_view(&f, "memory_plain");
        memory = fixture_view(&f, "memory_reversible");
        both = fixture_view(&f, "memory");
        assert_figure(&f, "peak_plain_bytes", (double)largest(&up));
        assert_figure(&f, "peak_reversible_bytes", (double)largest(&memory));
        for (int64_t t = 0; t < 4 * layers; t++) {
            assert_int_equal(whole(&both, 2 * t), whole(&up, t));
            assert_int_equal(whole(&both, 2 * t + 1), whole(&memory, t));
        }
        if (layers > 1) {
            assert_figure(&f, "peak_reversible_bytes", flat);
            assert_figure(&f, "measured_peak_reversible_bytes", measured);
            assert_true(figure(&f, "measured_peak_plain_bytes") > 1.8 * plain);
        }
        flat = figure(&f, "peak_reversible_bytes");
        measured = figure(&f, "measured_peak_reversible_bytes");
        plain = figure(&f, "measured_peak_plain_bytes");
        assert_true(measured > 0 && plain > 0);
    }
    fixture_free(&f);
}

static int64_t reversible_peak(int64_t width, const char *params)
{
    Fixture f = fixture_new(8);
    int64_t peak;

    f.x = tensor_with_rank(fixture_draw(&f, "x", 1, 8, width), 2);
    f.tensor_count = 0;
    assert_int_equal(fixture_run_at(&f, "reversible", params, false, false, 0)->err.code, ERR_NONE);
    peak = arena_peak(f.run->arena);
    fixture_free(&f);
    return peak;
}

/* Streams of 16 channels either way, and the output has 32 channels or 16.  The sum of both streams
 * is gone when the layers are undone, which takes as much memory as the way up. */
TEST(reversible_sum_is_freed_before_the_way_down)
{
    int64_t halves = reversible_peak(32, "layers=2,heads=2,split=channels");
    int64_t copies = reversible_peak(16, "layers=2,heads=2,split=duplicate");

    assert_int_equal(halves - copies, 8 * 16 * (int64_t)sizeof(float));
}

TEST(streams_may_be_halves_of_the_channels)
{
    Fixture f = stack_new(WIDTH), odd = stack_new(5);
    Tensor  x;

    fixture_run(&f, "reversible", "split=channels,precision=float64,layers=3", false);
    assert_int_equal(run_view(f.run, "y1")->shape[1], WIDTH / 2);
    assert_null(run_view(f.run, "plain_output"));
    x = fixture_view(&f, "x1");
    for (int64_t i = 0; i < N; i++)
        check_near(tensor_f32(&x) + i * WIDTH / 2, tensor_f32(&f.x) + i * WIDTH, WIDTH / 2, 1e-6);
    assert_refused(&odd, "reversible", "split=channels", "dm=5");
    fixture_free(&f);
    fixture_free(&odd);
}

/* ---- checkpointing ----------------------------------------------------------------- */

TEST(every_schedule_computes_the_same)
{
    static const char *const schedules[] = { "schedule=sqrt", "schedule=none", "schedule=all",
                                             "schedule=every,every=2", "schedule=all,keep_last=0",
                                             "schedule=every,every=99,keep_last=0" };
    Fixture f = stack_new(WIDTH);
    float  *first;

    fixture_run(&f, "reversible", "", false); /* its plain_output is the ordinary stack */
    first = calloc(N * WIDTH, sizeof(*first));
    memcpy(first, fixture_view(&f, "plain_output").data, N * WIDTH * sizeof(*first));
    for (size_t s = 0; s < sizeof(schedules) / sizeof(*schedules); s++) {
        fixture_run(&f, "checkpointing", schedules[s], false);
        check_near(tensor_f32(&f.run->out), first, N * WIDTH, 0);
        check_flops(&f);
    }
    free(first);
    fixture_free(&f);
}

/* Peak bytes in inputs and layers, and layers computed again. */
static void assert_schedule(Fixture *f, const char *params, double inputs, double layers,
                            double again)
{
    Tensor memory;

    fixture_run(f, "checkpointing", params, false);
    memory = fixture_view(f, "memory");
    assert_figure(f, "peak_bytes", inputs * figure(f, "checkpoint_bytes") +
                                       layers * figure(f, "layer_bytes"));
    assert_figure(f, "peak_bytes", (double)largest(&memory));
    assert_figure(f, "recomputed_layers", again);
}

TEST(peaks_of_schedules_are_the_known_ones)
{
    Fixture f = stack_new(WIDTH);

    assert_schedule(&f, "layers=9,schedule=none", 1, 9, 0);
    assert_schedule(&f, "layers=9,schedule=every,every=9", 1, 9, 0);
    assert_schedule(&f, "layers=9,schedule=every,every=1,keep_last=0", 9, 1, 9);
    assert_schedule(&f, "layers=9,schedule=every,every=3", 3, 3, 6);
    assert_schedule(&f, "layers=9,schedule=sqrt", 3, 3, 6);
    assert_schedule(&f, "layers=9,schedule=all", 2, 1, 36);
    assert_schedule(&f, "layers=9,schedule=all,keep_last=0", 2, 1, 45);
    assert_schedule(&f, "layers=1", 1, 1, 0);
    fixture_free(&f);
}

/* The analytic and the measured memory rise and fall together. */
TEST(measured_memory_follows_the_accounts)
{
    Fixture f = stack_new(WIDTH);
    Tensor  memory, measured, table, peaks;

    fixture_run(&f, "checkpointing", "layers=9", false);
    memory = fixture_view(&f, "memory");
    measured = fixture_view(&f, "measured");
    assert_int_equal(tensor_count(&memory), tensor_count(&measured));
    for (int64_t t = 10; t < tensor_count(&memory); t++) /* from the first step back on */
        assert_true((whole(&memory, t) > whole(&memory, t - 1)) ==
                    (whole(&measured, t) > whole(&measured, t - 1)));
    assert_figure(&f, "measured_peak_bytes", (double)largest(&measured));
    table = fixture_view(&f, "tradeoff");
    peaks = fixture_view(&f, "peaks");
    for (int64_t k = 0; k < 9; k++)
        assert_int_equal(whole(&peaks, k), whole(&table, 3 * k + 1));
    fixture_free(&f);
}

TEST(idle_cells_of_a_schedule_are_empty)
{
    Fixture     f = stack_new(WIDTH);
    const View *grid;
    float       row[15];

    fixture_run(&f, "checkpointing", "", false);
    grid = run_view(f.run, "grid");
    view_read(grid, 0, 2, 0, 15, 1, row);
    for (int t = 0; t < 15; t++)
        assert_true(row[t] == (t == 2 ? 0 : t == 11 ? 1 : t == 12 ? 2 : -1));
    assert_string_equal(grid->categories[1], "recomputed");
    fixture_free(&f);
}

/* ---- head-pruning ------------------------------------------------------------------ */

TEST(heads_go_in_order)
{
    Fixture f = stack_new(WIDTH);
    Tensor  importance, order, curve, kept, raw;

    fixture_run(&f, "head-pruning", "layers=3,heads=3,prune=4", false);
    importance = fixture_view(&f, "importance");
    order = fixture_view(&f, "order");
    curve = fixture_view(&f, "curve");
    kept = fixture_view(&f, "kept");
    for (int64_t t = 0; t < 9; t++) {
        const int32_t *at = tensor_i32(&order) + 2 * t;

        assert_int_equal(tensor_u8(&kept)[3 * at[0] + at[1]], t >= 4);
        if (t > 0)
            assert_true(real(&importance, 3 * at[0] + at[1]) >=
                        real(&importance, 3 * at[-2] + at[-1]));
    }
    assert_true(real(&curve, 0) <= 0);
    assert_figure(&f, "change", real(&curve, 4));
    assert_figure(&f, "parameters_removed", 4 * WIDTH * 2 * 4);
    fixture_run(&f, "head-pruning", "layers=3,heads=3,normalize=layer,measure=sublayer", false);
    importance = fixture_view(&f, "importance");
    for (int64_t l = 0; l < 3; l++)
        assert_true(fabs(pow(real(&importance, 3 * l), 2) + pow(real(&importance, 3 * l + 1), 2) +
                         pow(real(&importance, 3 * l + 2), 2) - 1) < 1e-12);
    fixture_run(&f, "head-pruning", "measure=sublayer", false); /* one head is the sub-layer */
    raw = fixture_view(&f, "importance_raw");
    for (int64_t l = 0; l < 6; l++)
        assert_true(fabs(real(&raw, l) - 1) < 1e-12);
    assert_refused(&f, "head-pruning", "layers=3,heads=3,prune=10", "only 9 heads");
    fixture_free(&f);
}

/* ---- act --------------------------------------------------------------------------- */

TEST(tokens_that_halt_at_once_make_one_layer)
{
    Fixture f = stack_new(WIDTH);
    float  *one;

    fixture_run(&f, "checkpointing", "layers=1", false);
    one = fixture_output(&f);
    fixture_run(&f, "act", "layers=1,b_halt=60", false);
    check_near(tensor_f32(&f.run->out), one, N * WIDTH, 1e-6);
    assert_figure(&f, "steps", 1);
    assert_figure(&f, "mean_ponder", 2);
    assert_figure(&f, "saved_fraction", 1 - 1.0 / 6);
    fixture_run(&f, "act", "layers=1,max_steps=1,variant=graves,b_halt=-60", false);
    check_near(tensor_f32(&f.run->out), one, N * WIDTH, 1e-6); /* the last step takes the rest */
    assert_figure(&f, "never_halted", 0);
    fixture_run(&f, "act", "max_steps=3,b_halt=-60", false);
    assert_figure(&f, "never_halted", N);
    assert_figure(&f, "saved_fraction", 0);
    free(one);
    fixture_free(&f);
}

TEST(shares_of_a_token_sum_to_one)
{
    Fixture f = stack_new(WIDTH);
    Tensor  share, updates, active;

    fixture_run(&f, "act", "variant=graves,b_halt=-1", false);
    share = fixture_view(&f, "update_weights");
    updates = fixture_view(&f, "updates");
    active = fixture_view(&f, "active");
    for (int64_t i = 0; i < N; i++) {
        double  sum = 0;
        int64_t ran = 0;

        for (int64_t t = 0; t < share.shape[0]; t++) {
            sum += real(&share, t * N + i);
            ran += tensor_u8(&active)[t * N + i];
        }
        assert_true(fabs(sum - 1) < 1e-12);
        assert_int_equal(ran, tensor_i32(&updates)[i]);
    }
    fixture_free(&f);
}

/* ---- parameter-sharing ------------------------------------------------------------- */

TEST(published_models_have_their_sizes)
{
    Fixture f = fixture_new(N);

    fixture_run(&f, "parameter-sharing", "", false);
    assert_figure(&f, "parameters", 108891648); /* BERT base without the pooler */
    fixture_run(&f, "parameter-sharing", "share=all,embedding_dim=128,vocab=30000", false);
    assert_figure(&f, "parameters", 11092992); /* ALBERT base without the pooler */
    assert_figure(&f, "bytes", 44371968);
    assert_refused(&f, "parameter-sharing", "share=all,groups=13", "only 12 layers");
    assert_refused(&f, "parameter-sharing", "heads=7", "heads=7 does not divide");
    assert_refused(&f, "parameter-sharing", "d_model=2000000000,heads=1,vocab=2000000000",
                   "beyond what is counted exactly");
    fixture_free(&f);
}

TEST(sharing_saves_no_work)
{
    static const char *const shares[] = { "none", "attention", "ffn", "all" };
    Fixture f = stack_new(WIDTH);
    double  flops = 0, stored = INFINITY;

    fixture_draw(&f, "wq", 4, WIDTH, WIDTH);
    for (int s = 0; s < 4; s++) {
        char   params[64];
        Tensor map;

        snprintf(params, sizeof(params), "heads=2,groups=2,share=%s", shares[s]);
        fixture_run(&f, "parameter-sharing", params, false);
        map = fixture_view(&f, "map");
        for (int64_t l = 0; l < 4; l++) {
            assert_int_equal(tensor_i32(&map)[2 * l], s & 1 ? l / 2 : l);
            assert_int_equal(tensor_i32(&map)[2 * l + 1], s & 2 ? l / 2 : l);
        }
        check_flops(&f);
        assert_true(s == 0 || flops_total(run_flops(f.run)) == flops);
        assert_true(s == 2 || figure(&f, "parameters") < stored);
        flops = flops_total(run_flops(f.run));
        stored = figure(&f, "parameters");
    }
    assert_int_equal(run_view(f.run, "output")->shape[2], WIDTH);
    assert_refused(&f, "parameter-sharing", "heads=2,d_model=8", "d_model=8");
    fixture_free(&f);
}

SUITE(NULL, NULL)
