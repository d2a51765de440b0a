/* test_survey_pictures.c -- every preset, cell by cell, against what the texts say.
 *
 * The predicates below are the sentences and equations of the surveys and slides,
 * written again in their own letters and index base; they know nothing of
 * patterns, mechanisms or their parameters.  Where a text names no number (the
 * width of a window, the length), the number is the preset's and stands in the
 * row of the table.
 *
 *   [F] Fournier et al. 2021, A practical survey on faster and lighter transformers
 *   [T] Tay et al. 2020, Efficient transformers: a survey
 *   [B] Zaheer et al. 2020, Fig. 1 (as in the slides)   [L] Beltagy et al. 2020
 *   [A] Press et al. 2021, ALiBi (as in the slides)
 */

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "check.h"

enum { WINDOW = 1, GLOBAL = 2, RANDOM = 4, STRIDED = 8, BLOCK = 16, OTHER = 32 };

/* The component that allows query i to see key j, both from 0; 0: none does. */
typedef unsigned (*Cell)(int n, int i, int j, int parameter);

/* ---- [F] -------------------------------------------------------------------- */

/* Section 2.3: "any output position is able to attend to any input position". */
static unsigned full(int n, int i, int j, int parameter)
{
    (void)n, (void)i, (void)j, (void)parameter;
    return OTHER;
}

/* "the global token is located at position 0.  The i-th output position is allowed to
 * attend to every input position if i = 0, otherwise [...] for j = 0 and if
 * i-1 <= j <= i+1" */
static unsigned star(int n, int i, int j, int parameter)
{
    bool global = i == 0 || j == 0, near = i - 1 <= j && j <= i + 1;

    (void)n, (void)parameter;
    return (global ? GLOBAL : 0) | (near ? WINDOW : 0);
}

/* "(i + s) > j > (i - s) or (i - j) mod s = 0" */
static unsigned strided(int n, int i, int j, int s)
{
    (void)n;
    return (i + s > j && j > i - s ? WINDOW : 0) | (abs(i - j) % s == 0 ? STRIDED : 0);
}

/* "floor(j/s) = floor(i/s) or (j mod s) >= (s - c)", c = 1 */
static unsigned fixed(int n, int i, int j, int s)
{
    const int c = 1;

    (void)n;
    return (j / s == i / s ? BLOCK : 0) | (j % s >= s - c ? STRIDED : 0);
}

/* "the number of cascade connections at the layer l is equal to 2 b m^l - 1", b = 1, m = 2 */
static unsigned cascade(int n, int i, int j, int l)
{
    int connections = 2 * (int)lround(pow(2, l)) - 1;

    (void)n;
    return 2 * abs(i - j) <= connections - 1 ? WINDOW : 0;
}

/* "j in {i - 2^floor(log2 i), i - 2^(floor(log2 i) - 1), ..., i - 2^1, i - 2^0, i,
 * i + 2^0, i + 2^1, ..., i + 2^floor(log2 (n-i))}", positions from 1; what lies outside
 * 1..n is no position. */
static unsigned logsparse(int n, int row, int col, int parameter)
{
    int  i = row + 1, j = col + 1;
    bool in = i == j;

    (void)parameter;
    for (int t = 0; t <= (int)floor(log2(i)); t++)
        in = in || j == i - (int)lround(pow(2, t));
    for (int t = 0; n > i && t <= (int)floor(log2(n - i)); t++)
        in = in || j == i + (int)lround(pow(2, t));
    return (in ? STRIDED : 0) | (i == j ? WINDOW : 0); /* itself is the local part, too */
}

/* Equation 14: "pi(floor((i-1) n_b / n + 1)) = floor((j-1) n_b / n + 1)", n_b = 3, n = 12;
 * "the possible permutations of {1, 2, 3} are {1, 2, 3}, {3, 1, 2}, and {2, 3, 1}" */
static unsigned blockwise(int n, int row, int col, int head)
{
    static const int pi[3][3] = { { 1, 2, 3 }, { 3, 1, 2 }, { 2, 3, 1 } };
    const int        blocks = 3;
    int              i = row + 1, j = col + 1;
    int              of_i = (int)floor((double)(i - 1) * blocks / n + 1);
    int              of_j = (int)floor((double)(j - 1) * blocks / n + 1);

    return pi[head][of_i - 1] == of_j ? BLOCK : 0;
}

/* "a combination of sliding window and global attentions": "global attention: they can
 * attend to every position and be attended by every position"; one global token */
static unsigned longformer(int n, int i, int j, int width)
{
    (void)n;
    return (2 * abs(i - j) <= width - 1 ? WINDOW : 0) | (i == 0 || j == 0 ? GLOBAL : 0);
}

/* ---- [T] -------------------------------------------------------------------- */

/* "For the 1-dimensional local attention, the image is flattened in the raster order and
 * partitioned into non-overlapping query blocks Q of length l_q, and for each query
 * block, a memory block M is build from the same pixels in the Q as well as a fixed
 * number of pixels, l_m, generated before the query pixel": l_q = 6, l_m = 10, and
 * nothing generated later ("in the decoder case"). */
static unsigned image_1d(int n, int i, int j, int parameter)
{
    const int length = 6, memory = 10;
    int       begin = i - i % length;

    (void)n, (void)parameter;
    return j >= begin - memory && j < begin + length && j <= i ? BLOCK : 0;
}

enum { IMAGE_WIDTH = 8 };

/* When a pixel is generated: "one query block after another.  Generated blocks are in
 * raster order, as well as generated pixels inside every block", blocks 2 x 2. */
static int generated(int pixel)
{
    int y = pixel / IMAGE_WIDTH, x = pixel % IMAGE_WIDTH;

    return ((y / 2) * (IMAGE_WIDTH / 2) + x / 2) * 4 + (y % 2) * 2 + x % 2;
}

/* "The memory block extends the query block to the top, left h_m and w_m pixels and to the
 * right w_m pixels", h_m = w_m = 2 */
static unsigned image_2d(int n, int i, int j, int parameter)
{
    int top = i / IMAGE_WIDTH / 2 * 2, left = i % IMAGE_WIDTH / 2 * 2;
    int y = j / IMAGE_WIDTH, x = j % IMAGE_WIDTH;

    (void)n, (void)parameter;
    return y >= top - 2 && y < top + 2 && x >= left - 2 && x < left + 2 + 2 &&
                   generated(j) <= generated(i)
               ? BLOCK : 0;
}

/* Section 3.2.4: local heads "if floor(j/N) = floor(i/N)", strided heads "if
 * (i - j) mod N = 0", N = 4 */
enum { LOCAL_HEADS = 1, STRIDED_HEADS = 2 };
static unsigned factorized(int n, int i, int j, int kinds)
{
    const int N = 4;

    (void)n;
    return (kinds & LOCAL_HEADS && j / N == i / N ? BLOCK : 0) |
           (kinds & STRIDED_HEADS && abs(i - j) % N == 0 ? STRIDED : 0);
}

/* Section 3.2.5: "multiple attentions, each along a single axis of the input tensor" */
static bool same_row(int i, int j)
{
    return i / IMAGE_WIDTH == j / IMAGE_WIDTH;
}

static bool same_col(int i, int j)
{
    return i % IMAGE_WIDTH == j % IMAGE_WIDTH;
}

/* ---- [L] Fig. 2, panel by panel: full, "sliding window attention", "dilated sliding
 * window", "global+sliding window"; width 5, gaps of 2, global tokens 0 and 7 ------- */

static unsigned sliding(int n, int i, int j, int width)
{
    (void)n;
    return 2 * abs(i - j) <= width - 1 ? WINDOW : 0;
}

static unsigned dilated(int n, int i, int j, int width)
{
    (void)n;
    return abs(i - j) % 2 == 0 && abs(i - j) / 2 <= (width - 1) / 2 ? STRIDED : 0;
}

static unsigned global_sliding(int n, int i, int j, int width)
{
    bool global = i == 0 || i == 7 || j == 0 || j == 7;

    return sliding(n, i, j, width) | (global ? GLOBAL : 0);
}

static const struct Picture {
    const char *preset;
    int         panel, head;
    Cell        cell;
    int         parameter;
} pictures[] = {
    { "fournier-fig5", 0, 0, full, 0 },
    { "fournier-fig10", 0, 0, star, 0 },
    { "fournier-fig11", 0, 0, strided, 3 },
    { "fournier-fig11", 1, 0, fixed, 3 },
    { "fournier-fig12", 0, 0, cascade, 0 },
    { "fournier-fig12", 1, 0, cascade, 1 },
    { "fournier-fig12", 2, 0, cascade, 2 },
    { "fournier-fig12", 3, 0, cascade, 3 },
    { "fournier-fig13", 0, 0, logsparse, 0 },
    { "fournier-fig14", 0, 0, blockwise, 0 },
    { "fournier-fig14", 1, 1, blockwise, 1 },
    { "fournier-fig14", 2, 2, blockwise, 2 },
    { "fournier-fig15", 0, 0, longformer, 3 },
    { "tay-fig3", 0, 0, image_1d, 0 },
    { "tay-fig3", 1, 0, image_2d, 0 },
    { "tay-fig4", 0, 0, full, 0 },
    { "tay-fig4", 1, 0, factorized, LOCAL_HEADS },
    { "tay-fig4", 2, 0, factorized, STRIDED_HEADS },
    { "tay-fig4", 3, 0, factorized, LOCAL_HEADS | STRIDED_HEADS },
    { "slides-longformer", 0, 0, full, 0 },
    { "slides-longformer", 1, 0, sliding, 5 },
    { "slides-longformer", 2, 0, dilated, 5 },
    { "slides-longformer", 3, 0, global_sliding, 5 },
};

/* ---- pictures ----------------------------------------------------------------- */

typedef struct Preview {
    Session   *session;
    PresetCall made;
    FigureRun    drawing;
} Preview;

static Preview *preview_open(const char *name)
{
    Preview      *p = calloc(1, sizeof(*p));
    Error         err = ERROR_INIT;
    const Preset *preset;

    assert_non_null(p);
    p->session = session_new(&err);
    assert_non_null(p->session);
    CHECK(preset_parse(name, &preset, &err) && preset_call(preset, NULL, &p->made, &err) &&
              figure_run_make(p->session, &p->made.call, false, &p->drawing, &err),
          "%s: %s", name, err.text);
    return p;
}

static void preview_close(Preview *p)
{
    figure_run_free(&p->drawing);
    preset_call_free(&p->made);
    session_free(p->session);
    free(p);
}

static double value(const Run *run, const char *name, int64_t head, int64_t i, int64_t j)
{
    const View *view = run_view(run, name);
    float       read;

    CHECK(view, "%s has no view %s", run->mechanism->id, name);
    view_read(view, view_shared(view) ? 0 : head, i, j, 1, 1, &read);
    return (double)read;
}

/* Bits of a cell as drawn; a mechanism without components has the rest alone. */
static unsigned drawn(const Run *run, int64_t head, int i, int j)
{
    if (value(run, "connectivity", head, i, j) == 0)
        return 0;
    return run_view(run, "components") ? (unsigned)value(run, "components", head, i, j) : OTHER;
}

static void check_picture(const struct Picture *picture)
{
    Preview           *p = preview_open(picture->preset);
    const PanelChoice *panel = &p->drawing.panels[picture->panel];
    const Run         *run = panel->result->run;
    int                n = (int)run->n;

    assert_true(picture->panel < p->drawing.count);
    assert_string_equal(panel->spec.view, "connectivity");
    assert_int_equal(panel->spec.head < 0 ? 0 : panel->spec.head, picture->head);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            unsigned want = picture->cell(n, i, j, picture->parameter);
            unsigned got = drawn(run, picture->head, i, j);

            CHECK(got == want, "%s, panel %d: (%d, %d) has components %u, the text says %u",
                  picture->preset, picture->panel, i, j, got, want);
        }
    preview_close(p);
}

TEST(cells_are_those_of_the_texts)
{
    for (size_t k = 0; k < sizeof(pictures) / sizeof(*pictures); k++)
        check_picture(&pictures[k]);
}

/* A preset nobody compares is a picture nobody vouches for. */
TEST(every_preset_is_compared)
{
    static const struct {
        const char *preset;
        int         panels;
    } elsewhere[] = { { "fournier-fig15", 1 }, { "tay-fig5", 3 },     { "slides-bigbird", 4 },
                      { "slides-alibi", 4 },   { "slides-alibi-effect", 4 },
                      { "slides-deberta", 3 },
                      { "fournier-fig16", 1 }, { "fournier-fig17", 2 },
                      { "reformer-orders", 4 }, { "reformer-rounds", 6 },
                      { "routing-clusters", 4 }, { "cluster-balance", 3 },
                      { "sinkhorn-sharpening", 10 }, { "entmax-support", 3 },
                      { "feature-maps", 4 }, { "delta-rule", 4 },
                      { "retnet-decay", 4 }, { "gla-gates", 4 }, { "mamba2-mask", 3 },
                      { "log-linear-levels", 2 }, /* test_recurrent.c */
                      { "sigmoid-rows", 4 },
                      { "natten-corner", 3 }, { "streaming-sinks", 2 },
                      { "snapkv-votes", 3 }, { "h2o-comb", 2 }, { "cache-over-time", 6 },
                      { "differential-maps", 3 }, { "mla-latent", 3 },
                      { "vertical-slash", 3 }, { "moba-blocks", 2 },
                      { "topk-rows", 4 }, { "quest-pages", 4 }, { "dsa-indexer", 4 },
                      { "nsa-parts", 4 }, { "recent", 9 }, /* claims/presets.lua */
                      { "experts-capacity", 3 }, /* from reformer-orders: test_content_pictures.c */
                      { "lab-memory", 4 }, { "lab-gpipe", 4 }, { "lab-heads", 2 },
                      { "lab-ponder", 2 } }; /* test_lab_pictures.c */

    for (size_t k = 0; preset_at(k); k++) {
        const char *id = preset_at(k)->id;
        int         panels = 0, found = 0;
        Preview    *p;

        if (preset_at(k)->model)
            continue;
        p = preview_open(id);
        panels = p->drawing.count;
        preview_close(p);
        for (size_t x = 0; x < sizeof(pictures) / sizeof(*pictures); x++)
            found += !strcmp(pictures[x].preset, id);
        for (size_t x = 0; x < sizeof(elsewhere) / sizeof(*elsewhere); x++)
            found += strcmp(elsewhere[x].preset, id) ? 0 : elsewhere[x].panels;
        CHECK(found == panels, "%s: %d of %d panels are compared", id, found, panels);
    }
}

/* ---- [B] Fig. 1: "(a) random attention with r = 2, (b) sliding window attention with
 * w = 3, (c) global attention with g = 2, (d) the combined model" ------------------- */

static void check_building_blocks(const Preview *p, int i, int j)
{
    unsigned random = drawn(p->drawing.results[0]->run, 0, i, j);
    unsigned window = drawn(p->drawing.results[1]->run, 0, i, j);
    unsigned global = drawn(p->drawing.results[2]->run, 0, i, j);

    assert_true(random == 0 || random == RANDOM);
    assert_int_equal(window, i - 1 <= j && j <= i + 1 ? WINDOW : 0);
    assert_int_equal(global, i < 2 || j < 2 ? GLOBAL : 0);
    assert_int_equal(drawn(p->drawing.results[3]->run, 0, i, j), random | window | global);
}

/* The mechanism bigbird, given the keys drawn in (a), has the cells of (d). */
static void check_mechanism(Preview *p)
{
    const Run *combined = p->drawing.results[3]->run;
    Tensor     keys = run_view(combined, "random")->tensor;
    Request    request = REQUEST_INIT;
    Error      err = ERROR_INIT;
    Result    *bird;

    CHECK(request_parse(p->session, &request, "bigbird(window=3,global=2)", &err), "%s", err.text);
    CHECK(request_set_tensor(p->session, &request, "random_blocks", &keys, &err), "%s", err.text);
    bird = session_run(p->session, &request, &err);
    assert_non_null(bird);
    CHECK(bird->run->err.code == ERR_NONE, "%s", bird->run->err.text);
    for (int i = 0; i < combined->n; i++)
        for (int j = 0; j < combined->n; j++)
            assert_int_equal(drawn(bird->run, 0, i, j), drawn(combined, 0, i, j));
    result_release(bird);
    request_free(&request);
}

TEST(bigbird_is_its_building_blocks)
{
    Preview *p = preview_open("slides-bigbird");
    int      n = (int)p->drawing.results[0]->run->n;

    for (int i = 0; i < n; i++) {
        int seen = 0;

        for (int j = 0; j < n; j++) {
            check_building_blocks(p, i, j);
            seen += drawn(p->drawing.results[0]->run, 0, i, j) != 0;
        }
        assert_int_equal(seen, 2);
    }
    check_mechanism(p);
    preview_close(p);
}

/* [F] Fig. 15: "a combination of random, sliding window, and global attentions"; one
 * global token, a window of 3 and 2 random keys a row. */
TEST(random_keys_are_new_ones)
{
    Preview   *p = preview_open("fournier-fig15");
    const Run *run = p->drawing.results[1]->run;
    int        n = (int)run->n;

    for (int i = 0; i < n; i++) {
        int random = 0;

        for (int j = 0; j < n; j++) {
            unsigned fixed_part = longformer(n, i, j, 3), bits = drawn(run, 0, i, j);

            assert_int_equal(bits & ~(unsigned)RANDOM, fixed_part);
            assert_false(bits & RANDOM && fixed_part);
            random += (bits & RANDOM) != 0;
        }
        assert_int_equal(random, i == 0 ? 0 : 2);
    }
    preview_close(p);
}

/* ---- [T] Fig. 5 ------------------------------------------------------------------ */

TEST(axial_spans_are_bars_and_their_product)
{
    Preview   *p = preview_open("tay-fig5");
    const Run *run = p->drawing.results[0]->run;

    assert_int_equal(p->drawing.count, 3);
    for (int i = 0; i < run->n; i++)
        for (int j = 0; j < run->n; j++) {
            bool     reached = false;
            unsigned causes = (same_row(i, j) ? BLOCK : 0) | (same_col(i, j) ? STRIDED : 0);

            for (int k = 0; k < run->n; k++) /* along the column to k, along the row to j */
                reached = reached || (same_col(i, k) && same_row(k, j));
            assert_int_equal(value(run, "connectivity_row", 0, i, j), same_row(i, j));
            assert_int_equal(value(run, "connectivity_col", 0, i, j), same_col(i, j));
            assert_int_equal(drawn(run, 0, i, j), causes ? causes : reached ? OTHER : 0);
        }
    preview_close(p);
}

/* ---- slides 004: "A_ij = Q_i^c K_j^cT + Q_i^c K^r_d(i,j)T + K_j^c Q^r_d(j,i)T", divided
 * by sqrt(3d); d(i,j) is the distance i - j + k held within 0..2k-1 ------------------- */

static int held(int distance)
{
    const int k = 6;
    int       at = distance + k;

    return at < 0 ? 0 : at > 2 * k - 1 ? 2 * k - 1 : at;
}

static double product(const Tensor *a, int row, const Tensor *b, int other)
{
    double sum = 0;

    for (int64_t c = 0; c < a->shape[2]; c++)
        sum += tensor_get(a, (int64_t[]){ 0, row, c }) * tensor_get(b, (int64_t[]){ 0, other, c });
    return sum / sqrt(3 * (double)a->shape[2]);
}

TEST(disentangled_terms_are_those_of_the_slide)
{
    Preview      *p = preview_open("slides-deberta");
    const Run    *run = p->drawing.results[0]->run;
    const Tensor *kr = &run_view(run, "pos_key")->tensor, *qr = &run_view(run, "pos_query")->tensor;

    for (int i = 0; i < run->n; i++)
        for (int j = 0; j < run->n; j++) {
            CHECK_NEAR(value(run, "position_c2c", 0, i, j), product(&run->q, i, &run->k, j), 1e-5);
            CHECK_NEAR(value(run, "position_c2p", 0, i, j), product(&run->q, i, kr, held(i - j)),
                       1e-5);
            CHECK_NEAR(value(run, "position_p2c", 0, i, j), product(&run->k, j, qr, held(j - i)),
                       1e-5);
        }
    preview_close(p);
}

/* ---- [A] "softmax(q_i K^T + m [-(i-1), ..., -2, -1, 0])", i from 1; m: "1/2^1, 1/2^2,
 * ..., 1/2^8" ------------------------------------------------------------------------ */

static double penalty(int head, int i, int j)
{
    double m = 1 / pow(2, head + 1);

    return m * -(double)((i + 1) - (j + 1));
}

TEST(alibi_adds_its_slopes)
{
    static const char *const names[] = { "slides-alibi", "slides-alibi-effect" };

    for (int k = 0; k < 2; k++) {
        Preview *p = preview_open(names[k]);

        for (int x = k ? 3 : 0; x < p->drawing.count; x++) {
            const Run  *run = p->drawing.results[x]->run;
            int         head = k ? 1 : (int)p->drawing.panels[x].spec.head;
            const View *bias = run_view(run, p->drawing.panels[x].spec.view);

            assert_int_equal(run->h, 8);
            assert_string_equal(bias->name, "position_bias");
            for (int i = 0; i < run->n; i++)
                for (int j = 0; j <= i; j++)
                    CHECK_NEAR(value(run, "bias", head, i, j), penalty(head, i, j), 1e-6);
        }
        preview_close(p);
    }
}

SUITE(NULL, NULL)
