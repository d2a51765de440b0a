/* test_position.c -- every positional modifier against its formula in plain double.
 *
 * The formulas here know nothing of distance tables, indices or tiles.
 */
#include "attn/run/position.h"
#include "position_setup.h"

/* ---- formulas in plain double ----------------------------------------------- */

typedef double (*Formula)(const Setup *s, int64_t head, int64_t i, int64_t j);

static double product(const Setup *s, int64_t head, int64_t i, int64_t j)
{
    double sum = 0;

    for (int64_t c = 0; c < s->d; c++)
        sum += at(&s->q, head, i, c) * at(&s->k, head, j, c);
    return sum;
}

static double usual_scale(const Setup *s)
{
    return 1 / sqrt((double)s->d);
}

static double sinusoid(double p, int64_t c, int64_t width, bool concat)
{
    int64_t sines = (width + 1) / 2;
    bool    cosine = concat ? c >= sines : c % 2 == 1;
    int64_t pair = concat ? (cosine ? c - sines : c) : c / 2;
    double  angle = p / pow(10000, 2.0 * (double)pair / (double)width);

    return cosine ? cos(angle) : sin(angle);
}

static double sinusoidal_formula(const Setup *s, int64_t head, int64_t i, int64_t j)
{
    double sum = 0, amplitude = s->variant ? 0.25 : 1;

    for (int64_t c = 0; c < s->d; c++)
        sum += (at(&s->q, head, i, c) + amplitude * sinusoid(where(s, i), c, s->d, s->variant)) *
               (at(&s->k, head, j, c) + amplitude * sinusoid((double)j, c, s->d, s->variant));
    return usual_scale(s) * sum;
}

/* The rotated product as the real part of complex products: another way to write it. */
static double rope_formula(const Setup *s, int64_t head, int64_t i, int64_t j)
{
    int64_t turning = s->variant && s->d > 4 ? 4 : s->d / 2 * 2;
    double  sum = 0;

    for (int64_t t = 0; t < turning / 2; t++) {
        int64_t x = s->variant ? t : 2 * t, y = s->variant ? t + turning / 2 : 2 * t + 1;
        double  angle = (where(s, i) - (double)j) * pow(10000, -2.0 * (double)t / (double)turning);
        double  qa = at(&s->q, head, i, x), qb = at(&s->q, head, i, y);
        double  ka = at(&s->k, head, j, x), kb = at(&s->k, head, j, y);

        sum += cos(angle) * (qa * ka + qb * kb) + sin(angle) * (qa * kb - qb * ka);
    }
    for (int64_t c = turning; c < s->d; c++)
        sum += at(&s->q, head, i, c) * at(&s->k, head, j, c);
    return usual_scale(s) * sum;
}

static double alibi_formula(const Setup *s, int64_t head, int64_t i, int64_t j)
{
    double distance = where(s, i) - (double)j;
    double slope = tensor_get(&s->a, &head);

    return usual_scale(s) * product(s, head, i, j) -
           slope * (s->variant ? distance : fabs(distance));
}

static double xl_formula(const Setup *s, int64_t head, int64_t i, int64_t j)
{
    double  sum = 0;
    int64_t width = s->c.shape[1], entry = i - j + s->m - 1;

    for (int64_t c = 0; c < s->d; c++) {
        double q = at(&s->q, head, i, c), r = 0;
        double u = tensor_get(&s->a, (int64_t[]){ head, c });
        double v = tensor_get(&s->b, (int64_t[]){ head, c });

        for (int64_t x = 0; s->variant < 2 && x < width; x++)
            r += sinusoid(where(s, i) - (double)j, x, width, s->variant == 0) *
                 at(&s->c, head, x, c);
        if (s->variant == 2)
            r = at(&s->c, head, entry, c);
        sum += (q + u) * at(&s->k, head, j, c) + (q + v) * r;
    }
    return usual_scale(s) * sum;
}

static int64_t delta_plain(int64_t a, int64_t b, int64_t k)
{
    if (a - b <= -k)
        return 0;
    return a - b >= k ? 2 * k - 1 : a - b + k;
}

/* variant: terms as bits 1 c2p, 2 p2c, 4 p2p; 8: the code's index, heads share keys; 16: queries */
static double disentangled_formula(const Setup *s, int64_t head, int64_t i, int64_t j)
{
    int64_t p = (int64_t)where(s, i), k = s->a.shape[s->a.rank - 2] / 2;
    int64_t ahead = delta_plain(j, p, k), behind = delta_plain(p, j, k);
    double  sum = product(s, head, i, j);
    int     count = (s->variant & 1) + (s->variant >> 1 & 1) + (s->variant >> 2 & 1);

    for (int64_t c = 0; c < s->d; c++) {
        if (s->variant & 1)
            sum += at(&s->q, head, i, c) * at(&s->a, head, behind, c);
        if (s->variant & 2)
            sum += at(&s->k, head, j, c) * at(&s->b, head, s->variant & 8 ? behind : ahead, c);
        if (s->variant & 4)
            sum += at(&s->b, head, ahead, c) * at(&s->a, head, behind, c);
    }
    return sum / sqrt((double)s->d * (1 + count));
}

static double shaw_formula(const Setup *s, int64_t head, int64_t i, int64_t j)
{
    int64_t k = s->a.shape[s->a.rank - 2] / 2;
    double  clipped = fmax(-(double)k, fmin((double)k, (double)j - where(s, i)));
    double  sum = 0;

    for (int64_t c = 0; c < s->d; c++)
        sum += at(&s->q, head, i, c) *
               (at(&s->k, head, j, c) + at(&s->a, head, (int64_t)clipped + k, c));
    return usual_scale(s) * sum;
}

/* ---- every formula on awkward shapes ---------------------------------------- */

typedef void (*Prepare)(Setup *s, int variant);

static void check_formula(const char *position, Prepare prepare, int variant, Formula formula)
{
    static const struct {
        int64_t n, m, d;
        bool    causal;
    } shapes[] = { { 7, 7, 4, false }, { 7, 7, 5, true }, { 3, 8, 6, true },  { 5, 3, 7, false },
                   { 5, 3, 4, true },  { 1, 1, 1, false }, { 1, 9, 3, true }, { 90, 70, 6, true } };

    for (int x = 0; x < LENGTH(shapes); x++) {
        Setup  s;
        Run   *run;
        Tensor before;

        setup_open(&s, 2, shapes[x].n, shapes[x].m, shapes[x].d, shapes[x].causal);
        prepare(&s, variant);
        s.variant = variant;
        before = filled(&s, "q", 3, s.q.shape, 1);
        run = run_probe(&s, position);
        for (int64_t head = 0; head < s.h; head++)
            for (int64_t i = 0; i < s.n; i++)
                for (int64_t j = 0; j < s.m; j++)
                    near(shown(run, "scores", head, i, j), formula(&s, head, i, j), 3e-6);
        assert_memory_equal(before.data, s.q.data, (size_t)tensor_bytes(&before));
        run_free(run);
        setup_close(&s);
    }
}

static void sinusoidal_prepare(Setup *s, int variant)
{
    set(s, variant ? "pos_layout=concat,pos_scale=0.25" : "pos_layout=interleaved");
}

static void rope_prepare(Setup *s, int variant)
{
    set(s, variant ? "pos_layout=half,pos_dim=5" : "pos_layout=interleaved");
}

static void alibi_prepare(Setup *s, int variant)
{
    s->a = give(s, "pos_slopes", 1, (int64_t[]){ s->h });
    set(s, variant ? "pos_future=signed" : "pos_future=mirror");
}

static void xl_prepare(Setup *s, int variant)
{
    s->a = give(s, "pos_u", 2, (int64_t[]){ s->h, s->d });
    s->b = give(s, "pos_v", 2, (int64_t[]){ s->h, s->d });
    if (variant == 2)
        s->c = give(s, "pos_rel", 3, (int64_t[]){ s->h, s->n + s->m - 1, s->d });
    else
        s->c = give(s, "pos_proj", 3, (int64_t[]){ variant ? s->h : 1, 5, s->d });
    if (variant == 1)
        set(s, "pos_layout=interleaved");
}

static void disentangled_prepare(Setup *s, int variant)
{
    char    text[80];
    int64_t k = variant & 8 ? 4 : s->n > s->m ? s->n : s->m;

    s->a = variant & 8 ? give(s, "pos_key", 2, (int64_t[]){ 2 * k, s->d })
                       : give(s, "pos_key", 3, (int64_t[]){ s->h, 2 * k, s->d });
    s->b = variant & 16 ? give(s, "pos_query", 2, (int64_t[]){ 2 * k, s->d })
                        : give(s, "pos_query", 3, (int64_t[]){ s->h, 2 * k, s->d });
    snprintf(text, sizeof(text), "pos_terms=[%s%s%s]", variant & 1 ? "c2p," : "",
             variant & 2 ? "p2c," : "", variant & 4 ? "p2p" : "");
    set(s, text);
    if (variant & 8)
        set(s, "pos_k=4,pos_p2c_index=code");
}

static void shaw_prepare(Setup *s, int variant)
{
    s->a = variant ? give(s, "pos_key", 3, (int64_t[]){ s->h, 9, s->d })
                   : give(s, "pos_key", 2, (int64_t[]){ 5, s->d });
    if (!variant)
        set(s, "pos_k=2");
}

TEST(test_formulas)
{
    for (int variant = 0; variant < 2; variant++) {
        check_formula("sinusoidal", sinusoidal_prepare, variant, sinusoidal_formula);
        check_formula("rope", rope_prepare, variant, rope_formula);
        check_formula("alibi", alibi_prepare, variant, alibi_formula);
        check_formula("shaw", shaw_prepare, variant, shaw_formula);
    }
    for (int variant = 0; variant < 3; variant++)
        check_formula("xl", xl_prepare, variant, xl_formula);
    for (int variant = 1; variant < 32; variant++)
        if (variant & 7)
            check_formula("disentangled", disentangled_prepare, variant, disentangled_formula);
}

/* ---- single facts ----------------------------------------------------------- */

TEST(test_names)
{
    const Position *p = NULL;
    Error           err = ERROR_INIT;

    assert_string_equal(position_at(0)->id, "sinusoidal");
    assert_string_equal(position_at(6)->id, "shaw");
    assert_null(position_at(7));
    assert_true(position_parse("none", &p, &err));
    assert_null(p);
    assert_true(position_parse("t5", &p, &err));
    assert_ptr_equal(p, position_find("t5"));
    assert_false(position_parse("alibbi", &p, &err));
    assert_non_null(strstr(err.text, "nearest is 'alibi'"));
    assert_non_null(strstr(err.text, "none sinusoidal rope alibi t5 xl disentangled shaw"));
}

TEST(test_sinusoidal_values_and_origin)
{
    Setup s;
    Run  *run;

    setup_open(&s, 1, 4, 4, 5, false);
    set(&s, "pos_target=qkv,pos_scale=2");
    run = run_probe(&s, "sinusoidal");
    for (int64_t c = 0; c < 5; c++)
        near(shown(run, "q", 0, 0, c) - at(&s.q, 0, 0, c), c % 2 ? 2 : 0, 1e-6);
    for (int64_t c = 0; c < s.e; c++)
        near(shown(run, "v", 0, 3, c), at(&s.v, 0, 3, c) + 2 * sinusoid(3, c, s.e, false), 1e-6);
    run_free(run);
    setup_close(&s);
}

TEST(rope_says_which_dimension_does_not_turn)
{
    for (int64_t d = 6; d < 8; d++) {
        Setup s;
        Run  *run;

        setup_open(&s, 1, 4, 4, d, false);
        run = run_probe(&s, "rope");
        CHECK(d % 2 == !!strstr(text_str(&run->notes), "of 7 dimensions the last one"), "%s",
              text_str(&run->notes));
        run_free(run);
        setup_close(&s);
    }
}

TEST(test_rope_keeps_norms_and_depends_on_distance)
{
    Setup s;
    Run  *run;

    setup_open(&s, 1, 40, 40, 7, false);
    for (int64_t i = 1; i < s.n; i++) {
        memcpy(tensor_f32(&s.q) + i * s.d, s.q.data, (size_t)s.d * sizeof(float));
        memcpy(tensor_f32(&s.k) + i * s.d, s.k.data, (size_t)s.d * sizeof(float));
    }
    run = run_probe(&s, "rope");
    for (int64_t i = 0; i + 1 < s.n; i++) {
        double before = 0, after = 0;

        for (int64_t c = 0; c < s.d; c++) {
            before += pow(at(&s.q, 0, i, c), 2);
            after += pow(shown(run, "q", 0, i, c), 2);
        }
        near(after, before, 1e-6);
        near(shown(run, "q", 0, i, 6), at(&s.q, 0, i, 6), 0);
        for (int64_t j = 0; j + 1 < s.n; j++)
            near(shown(run, "scores", 0, i + 1, j + 1), shown(run, "scores", 0, i, j), 2e-6);
    }
    run_free(run);
    setup_close(&s);
}

/* Slopes are read off the scores of a query and a key without content. */
static void check_slopes(int64_t h, const double *powers)
{
    Setup s;
    Run  *run;

    setup_open(&s, h, 2, 2, 2, true);
    memset(s.q.data, 0, (size_t)tensor_bytes(&s.q));
    run = run_probe(&s, "alibi");
    for (int64_t head = 0; head < h; head++) {
        near(shown(run, "scores", head, 1, 0), -exp2(-powers[head]), 0);
        near(shown(run, "scores", head, 1, 1), 0, 0);
    }
    run_free(run);
    setup_close(&s);
}

TEST(test_alibi_slopes)
{
    check_slopes(8, (const double[]){ 1, 2, 3, 4, 5, 6, 7, 8 });
    check_slopes(6, (const double[]){ 2, 4, 6, 8, 1, 3 });
    check_slopes(3, (const double[]){ 4, 8, 2 });
    check_slopes(1, (const double[]){ 8 });
}

static int64_t bucket(Run *run, int64_t i, int64_t j)
{
    float value;

    view_read(run_view(run, "position_buckets"), 0, i, j, 1, 1, &value);
    return (int64_t)value;
}

TEST(test_t5_ladder)
{
    static const struct {
        int64_t from, to, bucket;
    } ladder[] = { { 0, 0, 0 },    { 7, 7, 7 },    { 8, 11, 8 },   { 12, 15, 9 },
                   { 16, 22, 10 }, { 23, 31, 11 }, { 32, 45, 12 }, { 46, 63, 13 },
                   { 64, 90, 14 }, { 91, 249, 15 } };
    Setup s;
    Run  *run;

    setup_open(&s, 2, 250, 250, 2, false);
    run = run_probe(&s, "t5");
    assert_int_equal(run_view(run, "position_buckets")->rank, 2);
    for (int x = 0; x < LENGTH(ladder); x++)
        for (int64_t a = ladder[x].from; a <= ladder[x].to; a++) {
            assert_int_equal(bucket(run, 249, 249 - a), ladder[x].bucket);
            assert_int_equal(bucket(run, 0, a), ladder[x].bucket + (a ? 16 : 0));
        }
    for (int64_t head = 0; head < s.h; head++)
        for (int64_t j = 0; j < s.m; j++)
            near(shown(run, "scores", head, 100, j),
                 usual_scale(&s) * product(&s, head, 100, j) +
                     shown(run, "pos_bias", 0, bucket(run, 100, j), head), 1e-6);
    run_free(run);
    s.causal = true;
    run = run_probe(&s, "t5");
    assert_int_equal(bucket(run, 249, 249 - 15), 15);
    assert_int_equal(bucket(run, 249, 249 - 16), 16);
    assert_int_equal(bucket(run, 249, 249 - 200), 31);
    assert_int_equal(bucket(run, 10, 20), 0);
    run_free(run);
    set(&s, "pos_bidirectional=true");
    run = run_probe(&s, "t5");
    assert_int_equal(bucket(run, 10, 13), 19);
    run_free(run);
    setup_close(&s);
}

/* With d = 1, q = 1, k = 0 and row c of the table equal to c, a score is an index. */
TEST(test_disentangled_log_distances)
{
    Setup s;
    Run  *run;

    setup_open(&s, 1, 40, 40, 1, false);
    s.a = give(&s, "pos_key", 2, (int64_t[]){ 16, 1 });
    for (int64_t x = 0; x < 40; x++) {
        tensor_f32(&s.q)[x] = 1;
        tensor_f32(&s.k)[x] = 0;
        tensor_f32(&s.a)[x % 16] = (float)(x % 16);
    }
    set(&s, "pos_k=8,pos_max_distance=32,pos_terms=[c2p],scale=1");
    run = run_probe(&s, "disentangled");
    for (int64_t x = 0; x < 40; x++) {
        int64_t f = x <= 4 ? x : x <= 7 ? 5 : x <= 15 ? 6 : 7;

        near(shown(run, "scores", 0, x, 0), (double)(8 + f), 0);
        near(shown(run, "scores", 0, 0, x), (double)(8 - f), 0);
    }
    run_free(run);
    set(&s, "pos_max_distance=6"); /* the last that is squeezed is the first beyond k/2 */
    run = run_probe(&s, "disentangled");
    for (int64_t x = 0; x < 40; x++) {
        near(shown(run, "scores", 0, x, 0), (double)(8 + (x <= 4 ? x : 7)), 0);
        near(shown(run, "scores", 0, 0, x), (double)(8 - (x <= 4 ? x : 7)), 0);
    }
    run_free(run);
    setup_close(&s);
}

/* With the least table, too: 0 and 1 are themselves, and all others are 1. */
TEST(test_disentangled_log_distances_of_the_least_table)
{
    Setup s;
    Run  *run;

    setup_open(&s, 1, 9, 9, 1, false);
    s.a = give(&s, "pos_key", 2, (int64_t[]){ 4, 1 });
    for (int64_t x = 0; x < 9; x++) {
        tensor_f32(&s.q)[x] = 1;
        tensor_f32(&s.k)[x] = 0;
        tensor_f32(&s.a)[x % 4] = (float)(x % 4);
    }
    set(&s, "pos_k=2,pos_max_distance=4,pos_terms=[c2p],scale=1");
    run = run_probe(&s, "disentangled");
    for (int64_t x = 0; x < 9; x++) {
        near(shown(run, "scores", 0, x, 0), x ? 3 : 2, 0);
        near(shown(run, "scores", 0, 0, x), x ? 1 : 2, 0);
    }
    run_free(run);
    setup_close(&s);
}

/* Dumped whole, found by its short name, drawn only where a causal run has scores. */
TEST(test_bias_view)
{
    Setup       s;
    Run        *run;
    const View *bias;
    float       ahead;

    setup_open(&s, 8, 9, 9, 2, true);
    run = run_any(&s, mechanism_find("full"), "alibi");
    bias = run_view(run, "position_bias");
    assert_non_null(bias);
    assert_ptr_equal(run_view(run, "bias"), bias);
    assert_null(bias->support);
    assert_int_equal(pattern_count(bias->shown), 8 * 45);
    view_read(bias, 0, 0, 8, 1, 1, &ahead);
    near((double)ahead, -4, 0);
    run_free(run);
    s.causal = false;
    run = run_any(&s, mechanism_find("full"), "alibi");
    assert_null(run_view(run, "bias")->shown);
    run_free(run);
    setup_close(&s);
}

static double term(const Run *run, const char *name, int64_t head, int64_t i, int64_t j)
{
    const View *view = run_view(run, name);
    float       value = 0;

    if (view)
        view_read(view, head, i, j, 1, 1, &value);
    return (double)value;
}

/* The views of the terms add up to the scores. */
TEST(test_terms_add_up)
{
    static const struct {
        const char *position, *params, *content;
        const char *terms[3];
    } cases[] = {
        { "xl", "", "position_qk", { "position_qr", "position_uk", "position_vr" } },
        { "disentangled", "pos_terms=[c2p,p2c,p2p]", "position_c2c",
          { "position_c2p", "position_p2c", "position_p2p" } },
        { "disentangled", "pos_terms=[p2c]", "position_c2c", { "position_p2c", "none", "none" } },
    };

    for (int x = 0; x < LENGTH(cases); x++) {
        Setup s;
        Run  *run;

        setup_open(&s, 2, 7, 7, 5, x == 0);
        set(&s, cases[x].params);
        run = run_any(&s, mechanism_find("full"), cases[x].position);
        assert_int_equal(run->err.code, ERR_NONE);
        assert_int_equal(run_view(run, "position_c2p") != NULL, x == 1);
        for (int64_t head = 0; head < s.h; head++)
            for (int64_t i = 0; i < s.n; i++)
                for (int64_t j = 0; j < s.m; j++) {
                    double sum = 0, terms = x == 0 ? 0 : x == 1 ? 3 : 1;

                    for (int t = 0; t < 3; t++)
                        sum += term(run, cases[x].terms[t], head, i, j);
                    near(term(run, "position_bias", head, i, j), sum, 1e-6);
                    near(term(run, cases[x].content, head, i, j),
                         product(&s, head, i, j) / sqrt((double)s.d * (1 + terms)), 1e-6);
                }
        run_free(run);
        setup_close(&s);
    }
}

/* What a run charges for its positions, xl's, and the bytes it moves. */
static double xl_charge(const char *mechanism, const char *params, Bytes *bytes)
{
    Setup  s;
    Run   *run;
    double flops;

    setup_open(&s, 2, 7, 7, 5, false);
    set(&s, params);
    run = run_any(&s, mechanism_find(mechanism), "xl");
    assert_int_equal(run->err.code, ERR_NONE);
    flops = run_flops(run).position;
    *bytes = run_bytes(run);
    run_free(run);
    setup_close(&s);
    return flops;
}

/* A distance costs 2 h D d with D = h d, and a cell always the same: full attention has 13
 * distances and 49 cells, a window of three 3 and 19, a window of one 1 and 7.  For a distance D
 * numbers are read and h d written; the rest moves alike. */
TEST(only_the_distances_of_the_cells_are_projected)
{
    double h = 2, d = 5, width = h * d, distance = 2 * h * width * d, full, three, one;
    Bytes  all, some, least;

    full = xl_charge("full", "", &all);
    three = xl_charge("window", "window=3", &some);
    one = xl_charge("window", "window=1", &least);
    CHECK_NEAR((three - one - 2 * distance) / 12, (full - one - 12 * distance) / 42, 1e-12);
    CHECK_NEAR(all.read - least.read, 4 * 12 * width, 0);
    CHECK_NEAR(all.written - least.written, 4 * 12 * h * d, 0);
    CHECK_NEAR(some.read - least.read, 4 * 2 * width, 0);
}

static void check_error(const char *position, const char *params, const char *text)
{
    Setup s;
    Run  *run;

    setup_open(&s, 2, 3, 3, 2, false);
    set(&s, params);
    run = run_any(&s, &probe, position);
    if (run->err.code != ERR_PARAM || !strstr(run->err.text, text))
        fail_msg("%s %s: code %d, '%s'", position, params, (int)run->err.code, run->err.text);
    run_free(run);
    setup_close(&s);
}

static void check_bad_shape(const char *position, const char *name)
{
    Setup s;
    Run  *run;

    setup_open(&s, 2, 3, 3, 2, false);
    give(&s, name, 3, (int64_t[]){ 2, 5, 11 });
    run = run_any(&s, &probe, position);
    assert_int_equal(run->err.code, ERR_PARAM);
    assert_non_null(strstr(run->err.text, name));
    run_free(run);
    setup_close(&s);
}

TEST(test_errors)
{
    check_error("t5", "pos_buckets=31", "must be even");
    check_error("t5", "pos_buckets=2", "at least 4");
    check_error("t5", "pos_bidirectional=false,pos_buckets=1", "at least 2");
    check_error("t5", "pos_max_distance=8", "above the 8 exact buckets");
    check_error("disentangled", "pos_k=1,pos_max_distance=32", "need pos_k >= 2");
    check_error("disentangled", "pos_k=8,pos_max_distance=5", "pos_max_distance > pos_k/2");
    check_error("alibi", "pos_k=3", "no parameter 'pos_k'");
    check_error("rope", "pos_base=0", "greater than 0");
    check_bad_shape("alibi", "pos_slopes");
    check_bad_shape("t5", "pos_bias");
    check_bad_shape("xl", "pos_u");
    check_bad_shape("xl", "pos_rel");
    check_bad_shape("xl", "pos_proj");
    check_bad_shape("disentangled", "pos_query");
    check_bad_shape("shaw", "pos_key");
    check_bad_shape("shaw", "pos_value");
}

SUITE(NULL, NULL)
