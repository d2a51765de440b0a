/* page_fixture.h -- figures whose pages are planned, drawn as SVG, and searched for words. */
#ifndef TESTS_UNIT_PAGE_FIXTURE_H
#define TESTS_UNIT_PAGE_FIXTURE_H

#include "check.h"
#include "draw/page/sheet.h"

static const float ramp[64] = { 0, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 1 };

/* `count` matrices of 8 x 8 under such a title, in as many columns. */
static inline Figure *matrices(View *view, int count, const char *title)
{
    Figure *figure = figure_new(count, NULL);

    *view = (View){ .name = "m", .kind = VIEW_WEIGHTS, .dtype = DT_F32, .rank = 2,
                    .shape = { 8, 8 }, .stage = "", .rows = "block", .cols = "source block",
                    .iteration = -1, .step = -1 };
    view->tensor = tensor_of(DT_F32, 2, view->shape, (void *)(uintptr_t)ramp);
    assert_non_null(figure);
    for (int k = 0; k < count; k++)
        panel_init(&figure->panels[k], view, NULL, 0, title);
    figure->sharing = SHARE_QUANTITIES;
    figure->rows = 1;
    figure->cols = count;
    return figure;
}

static inline void plan_of(Sheet *sheet, const Figure *figure, double inches)
{
    *sheet = (Sheet){ .figure = figure, .style = sheet_style(&(PngOptions){ .dpi = 300 }) };
    sheet->width = (int)(inches * 300);
    assert_true(sheet_plan(sheet, NULL));
}

/* The drawn words of a figure, as an SVG carries them. */
static inline void words_of(const Figure *figure, double inches, Text *out)
{
    Sheet sheet;

    plan_of(&sheet, figure, inches);
    canvas_free(sheet.canvas);
    sheet.canvas = canvas_new(CANVAS_SVG, sheet.layout.width, sheet.layout.height, 300, NULL,
                              &sheet.style.paper, NULL);
    sheet_draw(&sheet);
    assert_true(canvas_finish(sheet.canvas, "t", NULL, out, NULL));
    sheet_free(&sheet);
}

static inline void expect_words(const Figure *figure, double inches, const char *words)
{
    Text out = { 0 };
    char label[128];

    snprintf(label, sizeof(label), "aria-label=\"%s\"", words);
    words_of(figure, inches, &out);
    assert_null(strstr(text_str(&out), "\xE2\x80\xA6"));
    assert_non_null(strstr(text_str(&out), label));
    text_free(&out);
}

/* Where the words begin; fails where they are not. */
static inline double height_of(const char *svg, const char *words)
{
    char        label[128];
    const char *at;
    double      x, y;

    snprintf(label, sizeof(label), "aria-label=\"%s\" transform=\"translate(", words);
    at = strstr(svg, label);
    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(label), "%lf %lf", &x, &y), 2);
    return y;
}

/* The box across the page of a name, level or turned; false: it is left out. */
static inline bool across_of(const char *svg, const char *name, double wide, double font,
                             double box[2])
{
    char        label[128];
    const char *at, *end;
    double      x, y;

    snprintf(label, sizeof(label), "aria-label=\"%s\" transform=\"translate(", name);
    at = strstr(svg, label);
    if (!at)
        return false;
    assert_int_equal(sscanf(at + strlen(label), "%lf %lf", &x, &y), 2);
    end = strchr(at, '>');
    assert_non_null(end);
    box[0] = memmem(at, (size_t)(end - at), "rotate", 6) ? x - 0.75 * font : x;
    box[1] = memmem(at, (size_t)(end - at), "rotate", 6) ? x + 0.2 * font : x + wide;
    return true;
}

#endif
