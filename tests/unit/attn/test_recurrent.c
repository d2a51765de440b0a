/* test_recurrent.c -- states that forget: which mechanism is a special case of which, facts that
 * follow from their formulas, and what their presets show. */

#include "preview.h"
#include "unit/mech_fixture.h"

#define TOKENS 70 /* more than a chunk of 64 */
#define NEAR 1e-5 /* two float32 computations of the same numbers */

/* Views that two mechanisms share, kept from the run before. */
typedef struct Kept {
    Tensor out, weights, memory, norm, recall;
} Kept;

static Kept kept_of(const Fixture *f, bool weights)
{
    Kept k = { .out = fixture_view(f, "output"), .memory = fixture_view(f, "memory"),
               .norm = fixture_view(f, "state_norm"), .recall = fixture_view(f, "recall") };

    if (weights)
        k.weights = fixture_view(f, "weights");
    k.out = tensor_convert(f->arena, k.out, DT_F64); /* copies: the run is freed */
    k.memory = tensor_convert(f->arena, k.memory, DT_F64);
    k.norm = tensor_convert(f->arena, k.norm, DT_F64);
    k.recall = tensor_convert(f->arena, k.recall, DT_F64);
    return k;
}

static void same_numbers(const char *what, const Tensor *a, const Tensor *b)
{
    assert_true(tensor_count(a) == tensor_count(b) && tensor_count(a) > 0);
    for (int64_t x = 0; x < tensor_count(a); x++) {
        double y = float_at(a->dtype, a->data, x), z = float_at(b->dtype, b->data, x);

        CHECK(fabs(y - z) <= NEAR * fmax(1, fabs(z)), "%s, entry %lld: %g and %g", what,
              (long long)x, y, z);
    }
}

static void same_states(const Fixture *f, const Kept *k, bool weights)
{
    Kept now = kept_of(f, weights);

    same_numbers("output", &now.out, &k->out);
    same_numbers("memory", &now.memory, &k->memory);
    same_numbers("state_norm", &now.norm, &k->norm);
    same_numbers("recall", &now.recall, &k->recall);
    if (weights)
        same_numbers("weights", &now.weights, &k->weights);
}

static void forget_tensors(Fixture *f)
{
    f->tensor_count = 0;
}

/* Gates f32 [rows..] between 0 and 1, some of them exactly 0 or 1. */
static Tensor gates_of(Fixture *f, int rank, const int64_t *shape)
{
    Tensor t = tensor_new(f->arena, DT_F32, rank, shape);
    Rng    rng = rng_named(9, "gates");

    assert_non_null(t.data);
    for (int64_t x = 0; x < tensor_count(&t); x++)
        tensor_f32(&t)[x] = x % 23 == 7   ? 0
                            : x % 11 == 3 ? 1
                                          : (float)(0.5 + 0.5 * rng_uniform(&rng));
    return t;
}

/* [HEADS,n,KEY_SIZE] of gates [HEADS,n]. */
static Tensor for_channels(Fixture *f, const Tensor *gates)
{
    Tensor t = tensor_new(f->arena, DT_F32, 3, (int64_t[]){ HEADS, f->n, KEY_SIZE });

    assert_non_null(t.data);
    for (int64_t x = 0; x < tensor_count(&t); x++)
        tensor_f32(&t)[x] = tensor_f32(gates)[x / KEY_SIZE];
    return t;
}

TEST(retnet_without_decay_is_linear_attention)
{
    Fixture f = fixture_new(TOKENS);
    Tensor  out;

    fixture_run(&f, "retnet", "decay=none", true);
    out = tensor_convert(f.arena, fixture_view(&f, "output"), DT_F64);
    fixture_run(&f, "linear", "feature_map=identity,normalize=false,scale=0.4472135954999579",
                true);
    same_numbers("output", &out, &f.run->out);
    fixture_free(&f);
}

TEST(retention_is_gla_and_mamba2_with_equal_gates)
{
    Fixture f = fixture_new(TOKENS);
    Kept    k;

    fixture_run(&f, "retnet", "gamma=0.75", true);
    k = kept_of(&f, true);
    k.weights = tensor_convert(f.arena, k.weights, DT_F64);
    fixture_fill(&f, "gates", 3, (int64_t[]){ HEADS, TOKENS, KEY_SIZE }, 0.75F);
    fixture_run(&f, "gla", "", true);
    same_states(&f, &k, true);
    forget_tensors(&f);
    fixture_fill(&f, "gates", 2, (int64_t[]){ HEADS, TOKENS }, 0.75F);
    fixture_fill(&f, "dt", 1, (int64_t[]){ TOKENS }, 1);
    fixture_run(&f, "mamba2", "scale=0.4472135954999579", true);
    same_states(&f, &k, true);
    fixture_free(&f);
}

TEST(mamba2_is_gla_over_values_times_the_step)
{
    Fixture f = fixture_new(TOKENS);
    Tensor  gates = gates_of(&f, 2, (int64_t[]){ HEADS, TOKENS }), dt;
    Kept    k;

    fixture_give(&f, "gates", gates);
    dt = fixture_fill(&f, "dt", 2, (int64_t[]){ HEADS, TOKENS }, 0.25F);
    for (int64_t x = 0; x < tensor_count(&dt); x++)
        tensor_f32(&dt)[x] *= (float)(1 + x % 7);
    fixture_run(&f, "mamba2", "", true);
    k = kept_of(&f, false);
    forget_tensors(&f);
    fixture_give(&f, "gates", for_channels(&f, &gates));
    for (int64_t x = 0; x < tensor_count(&f.v); x++)
        tensor_f32(&f.v)[x] *= tensor_f32(&dt)[x / VALUE_SIZE];
    fixture_run(&f, "gla", "scale=1", true);
    same_states(&f, &k, false);
    fixture_free(&f);
}

TEST(log_linear_with_equal_levels_is_mamba2)
{
    Fixture f = fixture_new(TOKENS);
    Tensor  gates = gates_of(&f, 2, (int64_t[]){ HEADS, TOKENS }), out, weights, states, one;
    int64_t size = KEY_SIZE * VALUE_SIZE, levels = 7; /* binary digits of TOKENS */

    fixture_give(&f, "gates", gates);
    fixture_fill(&f, "level_scales", 2, (int64_t[]){ TOKENS, 8 }, 1);
    fixture_run(&f, "log-linear", "", true);
    out = tensor_convert(f.arena, fixture_view(&f, "output"), DT_F64);
    weights = tensor_convert(f.arena, fixture_view(&f, "weights"), DT_F64);
    states = tensor_convert(f.arena, fixture_view(&f, "memory"), DT_F64);
    forget_tensors(&f);
    fixture_give(&f, "gates", gates);
    fixture_fill(&f, "dt", 1, (int64_t[]){ TOKENS }, 1);
    fixture_run(&f, "mamba2", "", true);
    same_numbers("output", &out, &f.run->out);
    one = fixture_view(&f, "weights");
    same_numbers("weights", &weights, &one);
    one = fixture_view(&f, "memory");
    for (int64_t x = 0; x < HEADS * size; x++) {
        double sum = 0;

        for (int64_t l = 0; l < levels; l++)
            sum += tensor_f64(&states)[(x / size * levels + l) * size + x % size];
        CHECK_NEAR((double)tensor_f32(&one)[x], sum, NEAR);
    }
    fixture_free(&f);
}

/* ---- any form, any chunk ------------------------------------------------------------- */

static void give_for(Fixture *f, const char *id)
{
    forget_tensors(f);
    if (!strcmp(id, "gla"))
        fixture_give(f, "gates", gates_of(f, 3, (int64_t[]){ HEADS, f->n, KEY_SIZE }));
    else if (strcmp(id, "retnet") != 0)
        fixture_give(f, "gates", gates_of(f, 2, (int64_t[]){ HEADS, f->n }));
}

static const char *const ids[] = { "retnet", "gla", "mamba2", "log-linear" };

TEST(forms_and_chunks_agree)
{
    static const char *const forms[] = { "form=chunked,chunk=1", "form=chunked,chunk=16",
                                         "form=chunked,chunk=64", "form=chunked,chunk=1024",
                                         "chunk=32" };
    Fixture f = fixture_new(TOKENS);

    for (size_t m = 0; m < sizeof(ids) / sizeof(*ids); m++) {
        float *first;

        give_for(&f, ids[m]);
        fixture_run(&f, ids[m], "form=recurrent", true);
        first = fixture_output(&f);
        for (size_t x = 0; x < sizeof(forms) / sizeof(*forms); x++) {
            fixture_run(&f, ids[m], forms[x], true);
            check_near(tensor_f32(&f.run->out), first, HEADS * TOKENS * VALUE_SIZE, 2e-5);
        }
        free(first);
    }
    fixture_free(&f);
}

/* Gates f32 [rows..] from `least` to 1, of which each channel, or head, has a range of its own. */
static Tensor gates_from(Fixture *f, int rank, const int64_t *shape, double least)
{
    Tensor t = tensor_new(f->arena, DT_F32, rank, shape);
    Rng    rng = rng_named(9, "gates");

    assert_non_null(t.data);
    for (int64_t x = 0; x < tensor_count(&t); x++)
        tensor_f32(&t)[x] = (float)(1 - (1 - least) * rng_uniform(&rng) / (double)(1 + x % 3));
    return t;
}

/* The output is near `first`, within 1e-5 of its largest number: sums over 150 tokens reach 100,
 * where a float has steps of 8e-6. */
static void check_output_near(const Fixture *f, const float *first)
{
    int64_t count = HEADS * f->n * VALUE_SIZE;
    float   most = 1;

    for (int64_t x = 0; x < count; x++)
        most = fmaxf(most, fabsf(first[x]));
    check_near(tensor_f32(&f->run->out), first, count, NEAR * (double)most);
}

/* Products of a chunk's gates that may be divided by, and smaller ones; of which those of a part of
 * the chunk may; and 0. */
TEST(chunks_agree_however_far_gates_close)
{
    static const double      leasts[] = { 0.99, 0.7, 0.3, 1e-2, 1e-9, 1e-300 };
    static const char *const chunks[] = { "form=chunked,chunk=64", "form=chunked,chunk=100",
                                          "form=chunked,chunk=128" /* a power of two */ };
    static const char *const formed[] = { "mamba2", "gla", "log-linear" };
    Fixture                  f = fixture_new(150);

    for (size_t x = 0; x < 3 * sizeof(leasts) / sizeof(*leasts); x++) {
        const char *id = formed[x % 3];
        int64_t     shape[3] = { HEADS, f.n, KEY_SIZE };
        float      *first;

        forget_tensors(&f);
        fixture_give(&f, "gates", gates_from(&f, x % 3 == 1 ? 3 : 2, shape, leasts[x / 3]));
        fixture_run(&f, id, "form=recurrent", true);
        first = fixture_output(&f);
        for (size_t c = 0; c < 2; c++) {
            fixture_run(&f, id, chunks[x % 3 == 2 ? 2 * c : c], true);
            check_output_near(&f, first);
        }
        free(first);
    }
    fixture_free(&f);
}

TEST(levels_without_gates_agree)
{
    Fixture f = fixture_new(150);
    float  *first;

    fixture_run(&f, "log-linear", "form=recurrent", true);
    first = fixture_output(&f);
    for (int c = 2; c <= 128; c *= 4) {
        char form[40];

        snprintf(form, sizeof(form), "form=chunked,chunk=%d", c);
        fixture_run(&f, "log-linear", form, true);
        check_output_near(&f, first);
    }
    free(first);
    fixture_free(&f);
}

TEST(the_last_token_changes_no_earlier_row)
{
    Fixture f = fixture_new(TOKENS);

    for (size_t m = 0; m < sizeof(ids) / sizeof(*ids); m++) {
        float *before;

        give_for(&f, ids[m]);
        fixture_run(&f, ids[m], "", false);
        before = fixture_output(&f);
        for (int64_t h = 0; h < HEADS; h++)
            for (int64_t c = 0; c < VALUE_SIZE; c++)
                tensor_f32(&f.v)[(h * TOKENS + TOKENS - 1) * VALUE_SIZE + c] += 3;
        fixture_run(&f, ids[m], "", false);
        for (int64_t h = 0; h < HEADS; h++)
            check_near(tensor_f32(&f.run->out) + h * TOKENS * VALUE_SIZE,
                       before + h * TOKENS * VALUE_SIZE, (TOKENS - 1) * VALUE_SIZE, NEAR);
        free(before);
    }
    fixture_free(&f);
}

TEST(closed_gates_leave_the_own_token)
{
    Fixture f = fixture_new(TOKENS);
    Tensor  span;

    fixture_run(&f, "retnet", "gamma=0", true);
    span = fixture_view(&f, "span");
    for (int64_t x = 0; x < HEADS * TOKENS; x++)
        assert_int_equal(tensor_i32(&span)[x], 1);
    fixture_free(&f);
}

/* Nothing n x n is stored: a far corner of the matrix is read from few numbers. */
TEST(a_far_cell_is_read_at_65536_tokens)
{
    Fixture     f = fixture_new(65536);
    const View *view;
    float       cells[9];
    Error       err = ERROR_INIT;

    fixture_run(&f, "retnet", "gamma=0.9999", true);
    view = run_view(f.run, "weights");
    assert_true(view_read_rect(view, 1, 65533, 3, 60000, 3, cells, &err));
    for (int64_t x = 0; x < 9; x++) {
        const float *q = tensor_f32(&f.q) + (65536 + 65533 + x / 3) * KEY_SIZE;
        const float *k = tensor_f32(&f.k) + (65536 + 60000 + x % 3) * KEY_SIZE;
        double       sum = 0;

        for (int64_t c = 0; c < KEY_SIZE; c++)
            sum += (double)q[c] * (double)k[c];
        CHECK_NEAR((double)cells[x],
                   sum / sqrt(KEY_SIZE) * pow(0.9999, (double)(5533 + x / 3 - x % 3)), NEAR);
    }
    assert_true(arena_peak(f.run->arena) < INT64_C(64) << 20);
    fixture_free(&f);
}

/* ---- presets ----------------------------------------------------------------------------- */

/* Share of |weights| at most `near` tokens back, in rows of the lower half. */
static double near_share(const Preview *p, int panel, int64_t n, int64_t near)
{
    double within = 0, all = 0;

    for (int64_t i = n / 2; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            all += fabs(shown(p, panel, i, j));
            within += i - j < near ? fabs(shown(p, panel, i, j)) : 0;
        }
    return within / all;
}

TEST(bands_widen_from_head_to_head)
{
    Preview *p = preview_open("retnet-decay", 4);

    for (int panel = 1; panel < 4; panel++)
        assert_true(near_share(p, panel, 192, 48) < near_share(p, panel - 1, 192, 48));
    preview_close(p);
}

TEST(open_gates_reach_farther)
{
    Preview *p = preview_open("gla-gates", 4);
    double   open[2] = { 0 };

    for (int64_t i = 0; i < 48; i++)
        for (int64_t c = 0; c < 16; c++)
            for (int panel = 0; panel < 2; panel++) {
                assert_true(shown(p, panel, i, c) >= 0 && shown(p, panel, i, c) <= 1);
                open[panel] += shown(p, panel, i, c);
            }
    assert_true(open[0] < open[1]);
    assert_true(near_share(p, 2, 48, 4) > near_share(p, 3, 48, 4));
    preview_close(p);
}

TEST(steps_are_large_where_gates_are_small)
{
    Preview *p = preview_open("mamba2-mask", 3);
    float    gate[64], step[64];

    view_read(p->figure->panels[1].view, 0, 0, 0, 64, 1, gate);
    view_read(p->figure->panels[2].view, 0, 0, 0, 64, 1, step);
    for (int i = 1; i < 64; i++)
        assert_true((gate[i] - gate[i - 1]) * (step[i] - step[i - 1]) <= 0);
    assert_true(near_share(p, 0, 64, 16) > 0.5);
    preview_close(p);
}

TEST(squares_double_away_from_the_diagonal)
{
    Preview *p = preview_open("log-linear-levels", 2);

    for (int64_t i = 0; i < 64; i++)
        for (int64_t j = 0; j <= i; j++) {
            int64_t side = 1; /* the level is the first at which both lie in one block */
            int     level = 0;

            for (; i / side != j / side; level++)
                side *= 2;
            assert_true((int)shown(p, 0, i, j) == level);
        }
    preview_close(p);
}

static double cosine(const float *a, const float *b, int64_t count)
{
    double aa = 0, bb = 0, ab = 0;

    for (int64_t c = 0; c < count; c++) {
        aa += (double)a[c] * (double)a[c];
        bb += (double)b[c] * (double)b[c];
        ab += (double)a[c] * (double)b[c];
    }
    return ab / sqrt(aa * bb);
}

/* One key written again and again: the last value, a small one, is all that is left.  Keys rounded
 * to float would leave 1e-7 of the values before, a thousandth of it. */
TEST(rwkv7_recalls_a_small_value_behind_large_ones)
{
    Fixture f = fixture_new(TOKENS);
    int64_t shape[3] = { HEADS, TOKENS, KEY_SIZE };
    Tensor  recall;

    fixture_fill(&f, "decay", 3, shape, 1);
    fixture_fill(&f, "rate", 3, shape, 1);
    for (int64_t x = 0; x < tensor_count(&f.k); x++)
        tensor_f32(&f.k)[x] = tensor_f32(&f.k)[x % KEY_SIZE];
    for (int64_t x = 0; x < HEADS * VALUE_SIZE; x++)
        tensor_f32(&f.v)[(x / VALUE_SIZE * TOKENS + TOKENS - 1) * VALUE_SIZE +
                         x % VALUE_SIZE] *= 1e-4f;
    fixture_run(&f, "rwkv7", "", true);
    recall = fixture_view(&f, "recall");
    for (int64_t head = 0; head < HEADS; head++) {
        const float *v = tensor_f32(&f.v) + head * TOKENS * VALUE_SIZE;
        const float *last = v + (TOKENS - 1) * VALUE_SIZE;

        for (int64_t j = 0; j < TOKENS; j++)
            CHECK(fabs((double)tensor_f32(&recall)[head * TOKENS + j] -
                       cosine(v + j * VALUE_SIZE, last, VALUE_SIZE)) <= NEAR,
                  "head %d token %d", (int)head, (int)j);
    }
    fixture_free(&f);
}

/* The span of a row: as many of its last cells as hold the share of its mass that is asked for. */
static void check_spans(const char *id, int64_t n, double share)
{
    Fixture f = fixture_new(n);
    char    params[40];
    Tensor  weights, span;

    snprintf(params, sizeof(params), "span_mass=%g", share);
    fixture_run(&f, id, params, true);
    weights = fixture_view(&f, "weights");
    span = fixture_view(&f, "span");
    for (int64_t row = 0; row < HEADS * n; row++) {
        const float *w = tensor_f32(&weights) + row * n;
        int64_t      i = row % n, cells = tensor_i32(&span)[row];
        double       total = 0, held = 0;

        for (int64_t j = 0; j <= i; j++)
            total += fabs((double)w[j]);
        for (int64_t j = i; j > i - cells; j--)
            held += fabs((double)w[j]);
        CHECK(held >= share * total * (1 - 1e-5), "%s: row %lld: %lld cells hold %g of %g", id,
              (long long)i, (long long)cells, held, total);
        held -= cells ? fabs((double)w[i - cells + 1]) : 0;
        CHECK(cells <= 1 || held <= share * total * (1 + 1e-5), "%s: row %lld: fewer do", id,
              (long long)i);
    }
    fixture_free(&f);
}

TEST(a_span_holds_its_share_of_the_row)
{
    for (size_t x = 0; x < sizeof(ids) / sizeof(*ids); x++) {
        check_spans(ids[x], 70, 0.5);
        check_spans(ids[x], 70, 0.95);
    }
    check_spans("gated-deltanet", 70, 0.95);
}

/* Of equal cells the last half holds exactly the half. */
TEST(a_span_of_equal_cells_is_their_share)
{
    Fixture f = fixture_new(12);
    Tensor  span;

    fixture_fill(&f, "gates", 2, (int64_t[]){ 12, KEY_SIZE }, 1);
    for (int64_t x = 0; x < HEADS * 12 * KEY_SIZE; x++)
        tensor_f32(&f.q)[x] = tensor_f32(&f.k)[x] = 1;
    fixture_run(&f, "gla", "span_mass=0.5,scale=1", true);
    span = fixture_view(&f, "span");
    for (int64_t row = 0; row < HEADS * 12; row++)
        assert_int_equal(tensor_i32(&span)[row], row % 12 / 2 + 1);
    fixture_free(&f);
}

SUITE(NULL, NULL)
