/* test_cpu_attend.c -- the fused attention against a plain double reference.
 *
 * Every kernel this CPU has, awkward shapes, patterns from full to nearly
 * empty, all score terms, and the promise that threads change no bit.
 */
#include "attn/cpu/attend.h"
#include "cpu_fixture.h"

typedef struct Shape {
    int64_t h, h_kv, n, m, d, e;
} Shape;

typedef struct Case {
    Fixture      f;
    Shape        s;
    AttendInput  in;
    Pattern     *pattern;
    AttendResult out;
    double       cells;
} Case;

static const Shape shapes[] = {
    { 1, 1, 1, 1, 1, 1 },    { 2, 1, 7, 7, 5, 3 },       { 3, 3, 64, 64, 64, 64 },
    { 1, 1, 97, 97, 7, 65 }, { 4, 2, 131, 131, 65, 17 }, { 2, 2, 5, 200, 16, 48 },
    { 6, 3, 13, 65, 128, 80 }, { 1, 1, 389, 389, 33, 130 }, { 2, 1, 1, 513, 64, 64 },
    { 4, 2, 1, 9001, 40, 24 }, { 4, 2, 1601, 21, 70, 20 }, { 2, 1, 5, 4500, 16, 20 },
};

static Case case_new(Shape s, int threads, double size)
{
    Case c = { .f = fixture_new(threads, 11), .s = s };

    c.in.q = fixture_normal(&c.f, s.h, s.n, s.d, size);
    c.in.k = fixture_normal(&c.f, s.h_kv, s.m, s.d, size);
    c.in.v = fixture_normal(&c.f, s.h_kv, s.m, s.e, 1);
    c.in.scale = 1 / sqrt((double)s.d);
    c.out.out = fixture_tensor(&c.f, DT_F32, s.h, s.n, s.e);
    c.out.lse = fixture_tensor(&c.f, DT_F32, 1, s.h, s.n);
    c.out.lse = tensor_with_rank(c.out.lse, 2);
    return c;
}

static PatternShape pattern_shape(const Case *c)
{
    return (PatternShape){ .heads = c->s.h, .n = c->s.n, .m = c->s.m };
}

/* Row i of head t by definition, in double. */
static void reference_row(const Case *c, int64_t t, int64_t i, PatternRow *row, double *out,
                          double *lse, int64_t *cells)
{
    const Shape *s = &c->s;
    const float *v = tensor_head(&c->in.v, t, s->h);
    double      *w = calloc((size_t)s->m, sizeof(*w)), top = -(double)INFINITY, sum = 0;
    char        *kept = calloc((size_t)s->m, 1);

    pattern_row(c->pattern, t, i, row);
    for (int64_t x = 0; x < row->count; x++)
        for (int64_t y = 0; y < row->runs[x].count; y++) {
            int64_t j = row->runs[x].start + y * row->runs[x].step;

            kept[j] = 1;
            w[j] = attend_score(&c->in, s->h, t, i, j);
            top = fmax(top, w[j]);
            ++*cells;
        }
    for (int64_t j = 0; j < s->m; j++) /* a cell that a term takes away adds nothing */
        kept[j] &= w[j] != -(double)INFINITY;
    for (int64_t p = 0; p < s->e; p++)
        out[p] = 0;
    for (int64_t j = 0; j < s->m; j++)
        if (kept[j])
            sum += exp(w[j] - top);
    *lse = sum > 0 ? top + log(sum) : -(double)INFINITY;
    for (int64_t j = 0; j < s->m; j++) {
        double weight = kept[j] ? exp(w[j] - *lse) : 0;

        for (int64_t p = 0; kept[j] && p < s->e; p++) {
            double value = (double)v[j * s->e + p];

            if (tensor_given(&c->in.value.table)) {
                const float *table = tensor_head(&c->in.value.table, t, s->h);

                value += (double)table[c->in.value.index[i - j + s->m - 1] * s->e + p];
            }
            out[p] += weight * value;
        }
    }
    free(w);
    free(kept);
}

/* What each kernel should give. */
typedef struct Expected {
    double *out, *lse; /* [h, n, e], [h, n] */
    int64_t cells;
} Expected;

static Expected expected_of(const Case *c)
{
    const Shape *s = &c->s;
    Expected     e = { .out = calloc((size_t)(s->h * s->n * s->e), sizeof(double)),
                       .lse = calloc((size_t)(s->h * s->n), sizeof(double)) };
    PatternRow   row = { 0 };

    for (int64_t t = 0; t < s->h; t++)
        for (int64_t i = 0; i < s->n; i++)
            reference_row(c, t, i, &row, e.out + (t * s->n + i) * s->e, e.lse + t * s->n + i,
                          &e.cells);
    pattern_row_free(&row);
    return e;
}

static void check_case(const Case *c, const Expected *e, double tolerance, const char *what)
{
    const Shape *s = &c->s;
    const float *out = (const float *)c->out.out.data, *lse = (const float *)c->out.lse.data;

    for (int64_t r = 0; r < s->h * s->n; r++) {
        CHECK_BELOW(worst_error(out + r * s->e, e->out + r * s->e, s->e), tolerance,
                    "%s out[%d,%d] n=%d d=%d", what, (int)(r / s->n), (int)(r % s->n), (int)s->n,
                    (int)s->d);
        CHECK_BELOW(worst_error(lse + r, e->lse + r, 1), tolerance, "%s lse[%d,%d]", what,
                    (int)(r / s->n), (int)(r % s->n));
    }
    assert_true(c->cells == (double)e->cells);
}

static void run_kernels(Case *c, double tolerance, const char *what)
{
    const Kernel *kernel;
    Expected      expected;

    assert_non_null(c->pattern);
    expected = expected_of(c);
    for (int x = 0; (kernel = kernel_at(x)); x++) {
        char text[80];

        snprintf(text, sizeof(text), "%s %s", what, kernel->name);
        memset(c->out.out.data, 0x5a, (size_t)tensor_bytes(&c->out.out));
        cpu_attend_on(kernel, c->f.run, &c->in, c->pattern, &c->out, &c->cells);
        assert_int_equal(c->f.run->err.code, ERR_NONE);
        check_case(c, &expected, tolerance, text);
    }
    free(expected.out);
    free(expected.lse);
}

#define PATTERNS 15

/* Each row has keys all over the sequence, some twice, some missing. */
static Pattern *scattered(Arena *a, PatternShape s)
{
    int64_t shape[3] = { s.heads, s.n, 9 };
    Tensor  table = tensor_new(a, DT_I32, 3, shape);

    for (int64_t x = 0; x < tensor_count(&table); x++)
        tensor_i32(&table)[x] = (int32_t)(x % 5 == 3 ? -1 : x / 2 * 7919 % s.m);
    return pattern_table(a, s, &table, 1);
}

static Pattern *some_pattern(const Case *c, int which, const char **name)
{
    Arena       *a = c->f.run->arena;
    PatternShape s = pattern_shape(c);
    uint8_t     *flags = calloc((size_t)(s.n > s.m ? s.n : s.m), 1);
    Pattern     *p = NULL;

    for (int64_t i = 0; i < s.m; i += 19)
        flags[i] = 1;
    switch (which) {
    case 0: *name = "full"; p = pattern_full(a, s, 1); break;
    case 1: *name = "causal"; p = pattern_causal(a, s); break;
    case 2: *name = "window"; p = pattern_band(a, s, -9, 8, 1, 1); break;
    case 3: *name = "dilated"; p = pattern_band(a, s, -60, 0, 5, 1); break;
    case 4: *name = "nothing"; p = pattern_none(a, s); break;
    case 5: *name = "stride"; p = pattern_stride(a, s, 37); break;
    case 6:
        *name = "global";
        if (s.n == s.m)
            p = pattern_union(a, pattern_rows(a, s, flags), pattern_cols(a, s, flags));
        else
            p = pattern_full(a, s, 1);
        break;
    case 7:
        *name = "ahead only"; /* the last rows have no key */
        p = pattern_band(a, s, 3, 100000, 1, 1);
        break;
    case 8: *name = "far dilated"; p = pattern_band(a, s, -300, 240, 6, 1); break;
    case 9:
        *name = "comb and window";
        p = pattern_union(a, pattern_stride(a, s, 7), pattern_band(a, s, -9, 8, 1, 1));
        break;
    case 10:
        *name = "columns and window";
        p = pattern_union(a, pattern_band(a, s, -9, 3, 1, 1),
                          pattern_summary(a, s, 5, 1, 0));
        break;
    case 11: *name = "scattered"; p = scattered(a, s); break;
    case 12: /* pixels of a block share their rectangle */
        *name = "rectangles";
        p = pattern_image(a, s, s.n < 20 ? s.n : 20, 12, 10, 3, 2, 3);
        break;
    case 13: /* cells of their own beside a short run */
        *name = "logarithmic";
        p = pattern_union(a, scattered(a, s), pattern_band(a, s, -9, 0, 1, 1));
        break;
    case 14: /* panels between those of a row are not needed, nor all columns of these */
        *name = "bands apart";
        p = pattern_union(a, pattern_band(a, s, -250, -190, 1, 1),
                          pattern_band(a, s, -40, 5, 1, 1));
        break;
    default: break;
    }
    free(flags);
    return p;
}

TEST(patterns_and_shapes)
{
    for (size_t x = 0; x < sizeof(shapes) / sizeof(shapes[0]); x++)
        for (int which = 0; which < PATTERNS; which++) {
            Case        c = case_new(shapes[x], 1, 1);
            const char *name = "";

            c.pattern = some_pattern(&c, which, &name);
            run_kernels(&c, 2e-6, name);
            fixture_free(&c.f);
        }
}

/* Scores up to about 80 and a long sum: relative 1e-5. */
TEST(large_scores)
{
    Shape s = { 1, 1, 70, 150, 512, 8 };
    Case  c = case_new(s, 1, 1);

    for (int64_t x = 0; x < tensor_count(&c.in.q); x++)
        tensor_f32(&c.in.q)[x] *= 20.0f;
    c.pattern = pattern_full(c.f.run->arena, pattern_shape(&c), 1);
    run_kernels(&c, 1e-5, "large");
    fixture_free(&c.f);
}

/* One key far above the others takes everything, and nothing overflows. */
TEST(extreme_scores)
{
    Shape s = { 1, 1, 9, 70, 4, 4 };
    Case  c = case_new(s, 1, 1);

    c.in.scale = 1;
    for (int64_t x = 0; x < tensor_count(&c.in.q); x++)
        tensor_f32(&c.in.q)[x] = 1;
    for (int64_t x = 0; x < tensor_count(&c.in.k); x++)
        tensor_f32(&c.in.k)[x] = x / 4 == 33 ? 1e7f : x % 3 ? -1e7f : 2.0f;
    c.pattern = pattern_full(c.f.run->arena, pattern_shape(&c), 1);
    run_kernels(&c, 2e-6, "extreme");
    fixture_free(&c.f);
}

static int32_t *index_of(Case *c, int64_t rows, bool weird)
{
    int64_t  entries = c->s.n + c->s.m - 1;
    int32_t *index = arena_alloc(c->f.run->arena, entries, sizeof(*index));

    for (int64_t x = 0; x < entries; x++) {
        int64_t at = weird ? x * 7919 % rows : x - c->s.m + 1 + rows / 2;

        index[x] = (int32_t)(at < 0 ? 0 : at >= rows ? rows - 1 : at);
    }
    return index;
}

static void add_terms(Case *c, int which)
{
    Shape   s = c->s;
    int64_t rows = which & 16 ? s.n + s.m - 1 : 9;

    if (which & 1)
        c->in.distance = tensor_with_rank(
            fixture_normal(&c->f, 1, which & 16 ? s.h : 1, s.n + s.m - 1, 1), 2);
    if (which & 2)
        c->in.row = (DistanceTerm){ .side = fixture_normal(&c->f, s.h, s.n, s.d, 1),
                                    .table = fixture_normal(&c->f, s.h, rows, s.d, 1),
                                    .index = index_of(c, rows, which & 32) };
    if (which & 4)
        c->in.col = (DistanceTerm){ .side = fixture_normal(&c->f, s.h, s.m, s.d, 1),
                                    .table = fixture_normal(&c->f, 1, rows, s.d, 1),
                                    .index = index_of(c, rows, which & 32) };
    if (which & 8)
        c->in.value = (DistanceTerm){ .table = fixture_normal(&c->f, 1, rows, s.e, 1),
                                      .index = index_of(c, rows, which & 32) };
}

TEST(score_terms)
{
    static const int sets[] = { 1, 2, 4, 8, 15, 31, 63, 15 + 32 };
    static const int whiches[] = { 0, 2, 3, 6, 14 };

    for (size_t x = 0; x < sizeof(shapes) / sizeof(shapes[0]); x++)
        for (size_t y = 0; y < sizeof(sets) / sizeof(sets[0]); y++)
            for (size_t which = 0; which < sizeof(whiches) / sizeof(whiches[0]); which++) {
                Case        c = case_new(shapes[x], 1, 1);
                const char *name = "";

                add_terms(&c, sets[y]);
                c.pattern = some_pattern(&c, whiches[which], &name);
                run_kernels(&c, 5e-6, name);
                fixture_free(&c.f);
            }
}

/* Products stay below the cap, a distance's term does not, unless it counts as a product. */
TEST(capped_scores)
{
    static const int sets[] = { 0, 1, 7, 31 };

    for (size_t x = 0; x < sizeof(shapes) / sizeof(shapes[0]); x++)
        for (size_t y = 0; y < sizeof(sets) / sizeof(sets[0]); y++)
            for (int which = 0; which < 7; which += 3) {
                Case        c = case_new(shapes[x], 2, 1);
                const char *name = "";

                add_terms(&c, sets[y]);
                c.in.softcap = x % 2 ? 0.8 : 30;
                c.in.distance_capped = x % 3 == 0;
                c.pattern = some_pattern(&c, which, &name);
                run_kernels(&c, 5e-6, name);
                fixture_free(&c.f);
            }
}

/* The same bits from 1 and from 3 threads, shared and own patterns. */
TEST(threads_change_nothing)
{
    Shape s = { 4, 2, 777, 777, 24, 40 };

    for (int which = 0; which < PATTERNS; which++) {
        Case        a = case_new(s, 1, 1), b = case_new(s, 3, 1);
        const char *name = "";

        a.pattern = some_pattern(&a, which, &name);
        b.pattern = some_pattern(&b, which, &name);
        cpu_attend(a.f.run, &a.in, a.pattern, &a.out, &a.cells);
        cpu_attend(b.f.run, &b.in, b.pattern, &b.out, &b.cells);
        assert_memory_equal(a.out.out.data, b.out.out.data, (size_t)tensor_bytes(&a.out.out));
        assert_memory_equal(a.out.lse.data, b.out.lse.data, (size_t)tensor_bytes(&a.out.lse));
        assert_true(a.cells == b.cells);
        fixture_free(&a.f);
        fixture_free(&b.f);
    }
}

TEST(heads_of_their_own)
{
    Shape    s = { 3, 1, 150, 150, 8, 8 };
    Case     c = case_new(s, 2, 1);
    Pattern *own[3];

    for (int x = 0; x < 3; x++)
        own[x] = pattern_band(c.f.run->arena, pattern_shape(&c), -10 * x, 4 * x, 1, 1);
    c.pattern = pattern_by_head(c.f.run->arena, pattern_shape(&c), own, 3);
    run_kernels(&c, 2e-6, "by head");
    fixture_free(&c.f);
}

/* Keys hidden from a query may hold any number. */
TEST(masked_keys_leave_no_trace)
{
    Shape  s = { 1, 1, 90, 90, 16, 16 };
    Case   a = case_new(s, 1, 1), b = case_new(s, 1, 1);
    size_t past = 60 * 16 * sizeof(float);

    for (int64_t x = 60 * 16; x < 90 * 16; x++) {
        tensor_f32(&b.in.k)[x] = 1e30f;
        tensor_f32(&b.in.v)[x] = -1e30f;
    }
    a.pattern = pattern_causal(a.f.run->arena, pattern_shape(&a));
    b.pattern = pattern_causal(b.f.run->arena, pattern_shape(&b));
    cpu_attend(a.f.run, &a.in, a.pattern, &a.out, &a.cells);
    cpu_attend(b.f.run, &b.in, b.pattern, &b.out, &b.cells);
    assert_memory_equal(a.out.out.data, b.out.out.data, past);
    fixture_free(&a.f);
    fixture_free(&b.f);
}

TEST(runs_of_scores)
{
    Case  c = case_new((Shape){ 4, 2, 20, 33, 37, 4 }, 1, 1);
    float got[11];

    add_terms(&c, 7);
    for (int64_t t = 0; t < 4; t++) {
        attend_scores_run(&c.in, 4, t, 13, 2, 11, 3, got);
        for (int64_t x = 0; x < 11; x++) {
            double want = attend_score(&c.in, 4, t, 13, 2 + 3 * x);

            CHECK_BELOW(worst_error(got + x, &want, 1), 2e-6, "score %d", (int)x);
        }
    }
    fixture_free(&c.f);
}

/* The bits of each key of row i; 0: not allowed. */
static void row_bits(const Pattern *p, int64_t i, uint8_t *bits)
{
    PatternRow row = { 0 };

    memset(bits, 0, (size_t)pattern_keys(p));
    pattern_row(p, 0, i, &row);
    for (int64_t t = 0; t < row.count; t++)
        for (int64_t c = 0; c < row.runs[t].count; c++)
            bits[row.runs[t].start + c * row.runs[t].step] = row.runs[t].bits;
    pattern_row_free(&row);
}

static void check_same_rows(const Pattern *a, const Pattern *b)
{
    uint8_t *x = malloc((size_t)pattern_keys(a)), *y = malloc((size_t)pattern_keys(a));

    for (int64_t i = 0; i < pattern_queries(a); i++) {
        row_bits(a, i, x);
        row_bits(b, i, y);
        assert_memory_equal(x, y, (size_t)pattern_keys(a));
    }
    free(x);
    free(y);
}

TEST(stored_rows_are_the_patterns)
{
    PatternShape s = { .heads = 6, .n = 777, .m = 777 };

    for (int threads = 1; threads <= 3; threads += 2) {
        Fixture        f = fixture_new(threads, 5);
        Arena         *a = f.run->arena;
        Pattern       *p = pattern_union(a, pattern_chunk(a, s, 28, 0, 0),
                                         pattern_summary(a, s, 28, 2, 0));
        const Pattern *stored;

        p = pattern_finish(a, s, p, true);
        stored = stored_rows(f.run, p, 1e9);
        assert_ptr_not_equal(stored, p);
        check_same_rows(p, stored);
        assert_ptr_equal(stored_rows(f.run, p, 1000), p);
        fixture_free(&f);
    }
}

/* So many keys that heads are packed one by one, and rows are stored; with step 70 few keys of a
 * row, whose panels are packed where they are needed. */
TEST(heads_one_by_one)
{
    for (int64_t step = 3; step <= 70; step += 67) {
        Case         c = case_new((Shape){ 6, 6, 150, 9000, 130, 8 }, 2, 1);
        Arena       *a = c.f.run->arena;
        PatternShape s = pattern_shape(&c);

        c.pattern = pattern_union(a, pattern_stride(a, s, step), pattern_band(a, s, -9, 8, 1, 1));
        c.pattern = pattern_finish(a, s, c.pattern, false);
        run_kernels(&c, 2e-6, "one by one");
        fixture_free(&c.f);
    }
}

/* Every second key, so far apart that the panels of a row want the same place of those kept. */
TEST(phases_far_apart)
{
    Case         c = case_new((Shape){ 2, 1, 3000, 3000, 9, 8 }, 2, 1);
    Arena       *a = c.f.run->arena;
    PatternShape s = pattern_shape(&c);

    c.pattern = pattern_union(a, pattern_band(a, s, -16, 16, 2, 1),
                              pattern_band(a, s, 1024, 1056, 2, 1));
    run_kernels(&c, 2e-6, "far apart");
    fixture_free(&c.f);
}

/* Rows that see the same keys, in blocks of 10 that no tile ends with, beside some that do not. */
TEST(rows_alike)
{
    Case         c = case_new((Shape){ 2, 2, 333, 333, 16, 16 }, 2, 1);
    Arena       *a = c.f.run->arena;
    PatternShape s = pattern_shape(&c), blocks = { .heads = 2, .n = 34, .m = 34 };
    uint8_t      flags[333] = { [77] = 1, [78] = 1, [200] = 1 };

    c.pattern = pattern_union(a, pattern_band(a, blocks, -1, 1, 1, 1),
                              pattern_stride(a, blocks, 8));
    c.pattern = pattern_union(a, pattern_tile(a, s, 10, c.pattern), pattern_rows(a, s, flags));
    run_kernels(&c, 2e-6, "alike");
    fixture_free(&c.f);
}

/* Scattered keys; row 7 has more than one block holds, row 8 none. */
static Pattern *uneven(Arena *a, PatternShape s)
{
    enum { MOST = 1100 };
    int64_t shape[3] = { s.heads, s.n, MOST };
    Tensor  table = tensor_new(a, DT_I32, 3, shape);

    for (int64_t x = 0; x < tensor_count(&table); x++) {
        int64_t row = x / MOST % s.n, keys = row == 7 ? MOST : row == 8 ? 0 : 21;

        tensor_i32(&table)[x] = (int32_t)(x % MOST < keys ? x * 7919 % s.m : -1);
    }
    return pattern_table(a, s, &table, 1);
}

/* So many keys, 16 MiB and a little, that they and their values are taken apart, two stretches
 * each; alone, and with every term. */
TEST(stretch_by_stretch)
{
    for (int terms = 0; terms <= 15; terms += 15) {
        Case c = case_new((Shape){ 2, 1, 60, 70000, 60, 70 }, 2, 1);

        add_terms(&c, terms);
        c.pattern = uneven(c.f.run->arena, pattern_shape(&c));
        run_kernels(&c, terms ? 5e-6 : 2e-6, "stretches");
        fixture_free(&c.f);
    }
}

/* The same where a term leaves most rows of the first head none of their cells, row 3 surely: they
 * are counted all the same. */
TEST(stretches_of_nothing)
{
    Shape s = { 2, 1, 60, 70000, 60, 70 };
    Case  c = case_new(s, 2, 1);

    add_terms(&c, 1 + 16);
    for (int64_t j = 0; j < s.m; j++)
        tensor_f32(&c.in.distance)[3 - j + s.m - 1] = -INFINITY;
    c.pattern = uneven(c.f.run->arena, pattern_shape(&c));
    run_kernels(&c, 5e-6, "stretches of nothing");
    fixture_free(&c.f);
}

/* Narrow rows of more heads than panels are kept for, and a row and a column that are full. */
TEST(narrow_but_for_one)
{
    Case         c = case_new((Shape){ 5, 5, 700, 700, 130, 8 }, 3, 1);
    Arena       *a = c.f.run->arena;
    PatternShape s = pattern_shape(&c);
    uint8_t      flags[700] = { [650] = 1 };

    c.pattern = pattern_union(a, pattern_rows(a, s, flags), pattern_cols(a, s, flags));
    c.pattern = pattern_union(a, c.pattern, pattern_band(a, s, -30, 20, 1, 1));
    run_kernels(&c, 2e-6, "narrow");
    fixture_free(&c.f);
}

/* Every row of every head reads a run of at most `size` keys in `most` of so many stretches of the
 * sequence; every 50th reads none, every 51st all keys. */
static Pattern *some_runs(Fixture *f, PatternShape s, int64_t stretches, int64_t most, int64_t size)
{
    int64_t     rows = s.heads * s.n, used = 0, wide = s.m / stretches;
    int64_t    *offset = run_alloc(f->run, rows + 1, sizeof(*offset));
    PatternRun *runs = run_alloc(f->run, rows * (most + 1), sizeof(*runs));

    for (int64_t at = 0; at < rows; at++) {
        int64_t left = at % 50 && at % 51 ? most : 0;

        offset[at] = used;
        if (at % 50 && at % 51 == 0)
            runs[used++] = (PatternRun){ 0, s.m, 1, COMPONENT_BLOCK };
        for (int64_t x = 0; x < stretches && left; x++) {
            int64_t from = x * wide + (int64_t)rng_below(&f->rng, (uint64_t)wide);

            if ((int64_t)rng_below(&f->rng, (uint64_t)(stretches - x)) >= left)
                continue;
            runs[used++] = (PatternRun){ from, min_i64(size, (x + 1) * wide - from), 1,
                                         COMPONENT_BLOCK };
            left--;
        }
    }
    offset[rows] = used;
    return pattern_stored(f->run->arena, s, offset, runs, true);
}

TEST(neighbours_with_different_runs)
{
    static const struct {
        Shape   s;
        int64_t stretches, most, size;
    } kinds[] = {
        { { 2, 1, 300, 1111, 33, 17 }, 8, 2, 128 }, { { 4, 2, 131, 2000, 64, 64 }, 100, 7, 16 },
        { { 1, 1, 2060, 6401, 3, 5 }, 100, 40, 64 }, /* more cells than are held at once */
    };

    for (size_t x = 0; x < sizeof(kinds) / sizeof(*kinds); x++) {
        Case a = case_new(kinds[x].s, 1, 1), b = case_new(kinds[x].s, 3, 1);

        a.pattern = b.pattern = some_runs(&a.f, pattern_shape(&a), kinds[x].stretches,
                                          kinds[x].most, kinds[x].size);
        cpu_attend(a.f.run, &a.in, a.pattern, &a.out, &a.cells);
        cpu_attend(b.f.run, &b.in, b.pattern, &b.out, &b.cells);
        assert_memory_equal(a.out.out.data, b.out.out.data, (size_t)tensor_bytes(&a.out.out));
        run_kernels(&a, 5e-6, "some runs");
        fixture_free(&a.f);
        fixture_free(&b.f);
    }
}

static Pattern *narrow(Arena *a, PatternShape s)
{
    return pattern_band(a, s, -2, 2, 1, 1);
}

static Pattern *causal(Arena *a, PatternShape s)
{
    return pattern_causal(a, s);
}

/* Each head has keys of its own: a row two runs, of one 64 of all. */
static Pattern *clumped(Arena *a, PatternShape s)
{
    enum { KEYS = 16 };
    int64_t shape[3] = { s.heads, s.n, KEYS };
    Tensor  table = tensor_new(a, DT_I32, 3, shape);

    for (int64_t x = 0; x < tensor_count(&table); x++) {
        int64_t row = x / KEYS, key = x % KEYS + (x % KEYS < KEYS / 2 ? 0 : 13);

        tensor_i32(&table)[x] = (int32_t)(row * 7 % (s.m / 64) * 64 + key);
    }
    return pattern_table(a, s, &table, 1);
}

static void count_allocation(void *count, int64_t bytes, int64_t used)
{
    (void)used;
    *(int64_t *)count += bytes > 0;
}

/* The k-th allocation fails; returns how many there were. */
static int64_t attend_short(Shape s, Pattern *(*make)(Arena *, PatternShape), int terms, int64_t k)
{
    Case    c = case_new(s, 2, 1);
    int64_t count = 0;

    c.pattern = make(c.f.run->arena, pattern_shape(&c));
    add_terms(&c, terms);
    arena_watch(c.f.run->arena, count_allocation, &count);
    arena_fail_at(c.f.run->arena, k);
    cpu_attend(c.f.run, &c.in, c.pattern, &c.out, &c.cells);
    assert_int_equal(c.f.run->err.code, k < 0 ? ERR_NONE : ERR_NOMEM);
    arena_fail_at(c.f.run->arena, -1);
    arena_watch(c.f.run->arena, NULL, NULL);
    c.f.run->err = ERROR_INIT;
    fixture_free(&c.f);
    return count;
}

/* None may be missing, also of a thread that gets nothing to do. */
static void fail_one_by_one(Shape s, Pattern *(*make)(Arena *, PatternShape), int terms)
{
    int64_t count = attend_short(s, make, terms, -1);

    assert_true(count > 3);
    for (int64_t k = 0; k < count; k++)
        attend_short(s, make, terms, k);
}

TEST(failed_allocations)
{
    fail_one_by_one((Shape){ 2, 1, 40, 40, 8, 8 }, causal, 15);
    fail_one_by_one((Shape){ 2, 1, 40, 40, 8, 8 }, narrow, 15);
    fail_one_by_one((Shape){ 2, 1, 140, 140, 8, 8 }, scattered, 15);
    fail_one_by_one((Shape){ 2, 2, 512, 512, 8, 8 }, clumped, 0);
}

TEST(cancelled_before_it_begins)
{
    Case              c = case_new((Shape){ 1, 1, 300, 300, 8, 8 }, 2, 1);
    const atomic_bool stop = true;

    c.pattern = pattern_full(c.f.run->arena, pattern_shape(&c), 1);
    c.f.run->spec.cancel = &stop;
    cpu_attend(c.f.run, &c.in, c.pattern, &c.out, &c.cells);
    assert_true(c.cells == 0);
    fixture_free(&c.f);
}

SUITE(NULL, NULL)
