/* plot_fixture.h -- plots made of a few numbers, and views that are curves. */
#ifndef TESTS_UNIT_PLOT_FIXTURE_H
#define TESTS_UNIT_PLOT_FIXTURE_H

#include "check.h"
#include "draw/figure/figure.h"

static inline Plot *new_plot(void)
{
    Error err = ERROR_INIT;
    Plot *plot = plot_new(&err);

    assert_non_null(plot);
    return plot;
}

static inline PlotSeries *add(Plot *plot, CurveMark mark, int count, const double *y)
{
    PlotSeries *s = plot_add(plot, "s", mark, count, false);

    assert_non_null(s);
    for (int i = 0; i < count; i++) {
        s->x[i] = i;
        s->y[i] = y[i];
    }
    return s;
}

static inline View curve_view(void *data, DType dtype, int rank, int64_t a, int64_t b,
                              const ViewCurve *curve)
{
    View view = { .name = "numbers", .kind = VIEW_TENSOR, .dtype = dtype, .rank = rank,
                  .shape = { a, b }, .rows = "row", .cols = "column", .curve = curve };

    view.tensor = tensor_of(dtype, rank, view.shape, data);
    return view;
}

#endif
