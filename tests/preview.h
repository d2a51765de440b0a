/* preview.h -- the figure of a preset, for tests of what it is to show. */
#ifndef TESTS_PREVIEW_H
#define TESTS_PREVIEW_H

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "check.h"

typedef struct Preview {
    Session   *session;
    PresetCall made;
    FigureRun    drawing;
    Figure    *figure;
} Preview;

/* Of so many panels; curves that join a plot count. */
static inline Preview *preview_open(const char *name, int panels)
{
    Preview       *p = calloc(1, sizeof(*p));
    Error          err = ERROR_INIT;
    const Preset  *preset;
    PictureOptions options = { .head = 0 };

    assert_non_null(p);
    p->session = session_new(&err);
    assert_non_null(p->session);
    CHECK(preset_parse(name, &preset, &err) && preset_call(preset, NULL, &p->made, &err) &&
              figure_run_make(p->session, &p->made.call, false, &p->drawing, &err),
          "%s: %s", name, err.text);
    assert_int_equal(p->drawing.count, panels);
    p->figure = picture_of_panels(p->drawing.panels, panels, &options, &err);
    CHECK(p->figure, "%s: %s", name, err.text);
    return p;
}

static inline void preview_close(Preview *p)
{
    figure_free(p->figure);
    figure_run_free(&p->drawing);
    preset_call_free(&p->made);
    session_free(p->session);
    free(p);
}

/* What stands at a displayed place. */
static inline double shown(const Preview *p, int panel, int64_t row, int64_t col)
{
    const Panel *at = &p->figure->panels[panel];
    float        value;

    view_read(at->view, at->plane, at->row_order ? at->row_order[row] : row,
              at->col_order ? at->col_order[col] : col, 1, 1, &value);
    return (double)value;
}

#endif
