/* plot_ticks.c -- numbers and names along the axes of a plot; see plot.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/plot/plot.h"

static bool is_bytes(const PlotAxis *axis)
{
    return strstr(axis->name, "(bytes)") != NULL;
}

static void with_prefix(double value, double base, const char *const *prefixes, int count,
                        char *text, size_t size)
{
    int k = 0;

    while (k + 1 < count && fabs(value) >= base * 0.9999) {
        value /= base;
        k++;
    }
    snprintf(text, size, "%.4g%s", value, prefixes[k]);
}

void plot_number(const PlotAxis *axis, double value, char *text, size_t size)
{
    static const char *const binary[] = { "", "Ki", "Mi", "Gi", "Ti" };
    static const char *const decimal[] = { "", "k", "M", "G", "T" };
    double                   size_of = fabs(value);

    if (is_bytes(axis))
        with_prefix(value, 1024, binary, 5, text, size);
    else if (size_of >= 1e4 && size_of < 1e15)
        with_prefix(value, 1000, decimal, 5, text, size);
    else
        snprintf(text, size, "%.4g", value);
}

/* A step of 1, 2, 5 times a power of ten (of two, for bytes) with at most `most` steps. */
static double tick_step(const PlotAxis *axis, int most)
{
    double range = axis->hi - axis->lo, power, step;

    if (is_bytes(axis) && range > 1024) {
        for (power = 1; range / power > most; power *= 2)
            ;
        return power;
    }
    power = pow(10, floor(log10(range / most)));
    for (step = power; range / step > most;)
        step *= step < 1.5 * power || step > 4 * power ? 2 : 2.5;
    return axis->whole && step < 1 ? 1 : step;
}

static int linear_ticks(const PlotAxis *axis, int most, PlotTick *out)
{
    double step = tick_step(axis, most), slack = 1e-9 * (axis->hi - axis->lo);
    int    count = 0;

    for (double k = ceil((axis->lo - slack) / step); k * step <= axis->hi + slack && count < most;
         k++) {
        out[count].place = plot_place(axis, k * step);
        plot_number(axis, k * step + 0.0, out[count++].text, sizeof(out->text));
    }
    return count;
}

/* Whole decades, or 1, 2, 5 of each where there are few; powers of two of bytes. */
static int log_ticks(const PlotAxis *axis, int most, PlotTick *out)
{
    double base = is_bytes(axis) ? 4 : 10, span = log(axis->hi / axis->lo) / log(base);
    int    every = (int)ceil((floor(span + 1e-9) + 1) / most), count = 0;
    bool   halves = span < most / 3.0;
    static const double within[] = { 1, 2, 5 };

    for (double k = floor(log(axis->lo) / log(base)); k <= ceil(log(axis->hi) / log(base)); k++)
        for (int f = 0; f < (halves ? 3 : 1) && count < most; f++) {
            double value = pow(base, k) * (halves && base < 5 ? f + 1 : within[f]);

            if (value < axis->lo * 0.9999 || value > axis->hi * 1.0001 ||
                (!halves && fmod(fabs(k), every) > 0.5))
                continue;
            out[count].place = plot_place(axis, value);
            plot_number(axis, value, out[count++].text, sizeof(out->text));
        }
    return count;
}

static int named_ticks(const PlotAxis *axis, PlotTick *out)
{
    int every = (axis->name_count + PLOT_TICKS_MOST - 1) / PLOT_TICKS_MOST, count = 0;

    for (int k = 0; k < axis->name_count; k += every) {
        out[count].place = plot_place(axis, axis->names[k].at);
        snprintf(out[count++].text, sizeof(out->text), "%s", axis->names[k].text);
    }
    return count;
}

int plot_ticks(const PlotAxis *axis, int most, PlotTick *out)
{
    int count;

    if (axis->names)
        return named_ticks(axis, out);
    most = most > PLOT_TICKS_MOST ? PLOT_TICKS_MOST : most < 2 ? 2 : most;
    count = axis->log ? log_ticks(axis, most, out) : linear_ticks(axis, most, out);
    if (count >= 2)
        return count;
    for (int k = 0; k < 2; k++) { /* no round numbers inside: the ends */
        double end = k ? axis->hi : axis->lo;

        out[k].place = k;
        if (fabs(end) >= 1e4)
            plot_number(axis, end, out[k].text, sizeof(out->text));
        else
            snprintf(out[k].text, sizeof(out->text), "%.3g", end);
    }
    return 2;
}
