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
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/drawing.h"
#include "app/preset.h"
#include "check.h"

enum { WINDOW = 1, GLOBAL = 2, RANDOM = 4, STRIDED = 8, BLOCK = 16, OTHER = 32 };

/* What allows query i to see key j, both counted from 0; 0: nothing does. */
typedef unsigned (*Cell)(int n, int i, int j, int parameter);

/* ---- [F] -------------------------------------------------------------------- */

/* Section 3: "any output position is able to attend to any input position". */
static unsigned full(int n, int i, int j, int parameter)
{
    (void)n, (void)i, (void)j, (void)parameter;
    return OTHER;
}

static const struct Picture {
    const char *preset;
    int         panel, head;
    Cell        cell;
    int         parameter;
} pictures[] = {
    { "fournier-fig5", 0, 0, full, 0 },
};

/* ---- pictures ----------------------------------------------------------------- */

typedef struct Preview {
    Session   *session;
    PresetCall made;
    Drawing    drawing;
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
              drawing_make(p->session, &p->made.call, &p->drawing, &err),
          "%s: %s", name, err.text);
    return p;
}

static void preview_close(Preview *p)
{
    drawing_free(&p->drawing);
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
    assert_string_equal(panel->view, "connectivity");
    assert_int_equal(panel->head < 0 ? 0 : panel->head, picture->head);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            unsigned want = picture->cell(n, i, j, picture->parameter);
            unsigned got = drawn(run, picture->head, i, j);

            CHECK(got == want, "%s, panel %d: (%d, %d) has components %u, the text says %u",
                  picture->preset, picture->panel, i, j, got, want);
        }
    preview_close(p);
}

static void cells_are_those_of_the_texts(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(pictures) / sizeof(*pictures); k++)
        check_picture(&pictures[k]);
}

/* A preset nobody compares is a picture nobody vouches for. */
static void every_preset_is_compared(void **state)
{
    static const char *const elsewhere[] = { "slides-bigbird", "slides-alibi",
                                             "slides-alibi-effect" };

    (void)state;
    for (size_t k = 0; preset_at(k); k++) {
        const char *id = preset_at(k)->id;
        int         panels = 0, found = 0;
        Preview    *p = preview_open(id);

        panels = p->drawing.count;
        preview_close(p);
        for (size_t x = 0; x < sizeof(pictures) / sizeof(*pictures); x++)
            found += !strcmp(pictures[x].preset, id);
        for (size_t x = 0; x < sizeof(elsewhere) / sizeof(*elsewhere); x++)
            found = strcmp(elsewhere[x], id) ? found : panels;
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

static void bigbird_is_its_building_blocks(void **state)
{
    Preview *p = preview_open("slides-bigbird");
    int      n = (int)p->drawing.results[0]->run->n;

    (void)state;
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

/* ---- [A] "softmax(q_i K^T + m [-(i-1), ..., -2, -1, 0])", i from 1; m: "1/2^1, 1/2^2,
 * ..., 1/2^8" ------------------------------------------------------------------------ */

static double penalty(int head, int i, int j)
{
    double m = 1 / pow(2, head + 1);

    return m * -(double)((i + 1) - (j + 1));
}

static void alibi_adds_its_slopes(void **state)
{
    static const char *const names[] = { "slides-alibi", "slides-alibi-effect" };

    (void)state;
    for (int k = 0; k < 2; k++) {
        Preview *p = preview_open(names[k]);

        for (int x = k ? 3 : 0; x < p->drawing.count; x++) {
            const Run *run = p->drawing.results[x]->run;
            int        head = k ? 1 : (int)p->drawing.panels[x].head;

            assert_int_equal(run->h, 8);
            assert_string_equal(run_view(run, p->drawing.panels[x].view)->name, "position_bias");
            for (int i = 0; i < run->n; i++)
                for (int j = 0; j <= i; j++)
                    CHECK_NEAR(value(run, "bias", head, i, j), penalty(head, i, j), 1e-6);
        }
        preview_close(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_those_of_the_texts),
        cmocka_unit_test(every_preset_is_compared),
        cmocka_unit_test(bigbird_is_its_building_blocks),
        cmocka_unit_test(alibi_adds_its_slopes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
