/* ticks.c -- the ticks of an axis and numbers in words; see plot.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/plot/plot.h"

bool plot_in_bytes(const PlotAxis *axis)
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
    double                   end = fmax(fabs(axis->lo), fabs(axis->hi));

    if (plot_in_bytes(axis))
        with_prefix(value, 1024, binary, 5, text, size);
    else if (size_of >= (end >= 1e4 ? 1e3 : 1e4) && size_of < 1e15) /* 1k beside 10k */
        with_prefix(value, 1000, decimal, 5, text, size);
    else
        snprintf(text, size, "%.4g", value);
}

void plot_unit(const PlotAxis *axis, char *text, size_t size)
{
    size_t digits = strspn(text, "-.0123456789e+");
    char   prefix[4];

    if (!plot_in_bytes(axis) || !strcmp(text, "0"))
        return;
    snprintf(prefix, sizeof(prefix), "%s", text + digits);
    snprintf(text + digits, size - digits, " %sB", prefix);
}

void plot_raise(char *text)
{
    static const char *const raised[] = { "\xC2\xB2", "\xC2\xB3" };

    for (char *at = text; (at = strchr(at, '^')); at++)
        if ((at[1] == '2' || at[1] == '3') && !(at[2] && strchr(".0123456789", at[2])))
            memcpy(at, raised[at[1] - '2'], 2); /* as long as what it replaces */
}

/* Rounds to three significant digits; whole numbers that are read as counts stay. */
static double three_digits(double value)
{
    double unit = value < 0 || value > 0 ? pow(10, floor(log10(fabs(value))) - 2) : 1;

    return floor(value) == value && fabs(value) < 1e4 ? value : unit * round(value / unit);
}

void plot_range_numbers(const PlotAxis *axis, double lo, double hi, char *least, char *most,
                        size_t size)
{
    int digits = hi > 0 ? 2 - (int)floor(log10(hi)) : 0;

    if (lo >= hi / 10 && hi < 1e3 && hi >= 1e-3 && digits > 0 && !plot_in_bytes(axis) &&
        (floor(lo) < lo || floor(hi) < hi)) {
        snprintf(least, size, "%.*f", digits, lo);
        snprintf(most, size, "%.*f", digits, hi);
        return;
    }
    plot_number(axis, three_digits(lo), least, size);
    plot_number(axis, three_digits(hi), most, size);
}

double plot_round_step(double range, int most)
{
    static const double factors[] = { 1, 2, 5 };
    double              power = pow(10, floor(log10(range / most)));

    for (size_t k = 0; k < sizeof(factors) / sizeof(*factors); k++)
        if (range / (power * factors[k]) <= most)
            return power * factors[k];
    return power * 10;
}

/* A round step; for bytes a power of two. */
static double tick_step(const PlotAxis *axis, int most)
{
    double range = axis->hi - axis->lo, power, step;

    if (plot_in_bytes(axis) && range > 1024) {
        for (power = 1; range / power > most; power *= 2)
            ;
        return power;
    }
    step = plot_round_step(range, most);
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

#define TICKS_LEAST 3 /* labels that show how an axis grows */

/* The multiples of powers of the base: `parts` of them within each, of every `every`th power. */
static int power_ticks(const PlotAxis *axis, int parts, int every, int most, PlotTick *out)
{
    static const double within[][3] = { { 1 }, { 1, 3 }, { 1, 2, 5 } };
    double              base = plot_in_bytes(axis) ? 4 : 10;
    int                 count = 0;

    for (double k = floor(log(axis->lo) / log(base)); k <= ceil(log(axis->hi) / log(base)); k++)
        for (int f = 0; f < parts && count < most; f++) {
            double value = pow(base, k) * (base < 5 ? f + 1 : within[parts - 1][f]);

            if (value < axis->lo * 0.9999 || value > axis->hi * 1.0001 ||
                fmod(fabs(k), every) > 0.5)
                continue;
            out[count].place = plot_place(axis, value);
            plot_number(axis, value, out[count++].text, sizeof(out->text));
        }
    return count;
}

/* As many multiples of powers as there is room for: 1, 2, 5 or 1, 3 of each decade, decades, or
 * every second, third, ... decade; of powers of four of bytes, both powers of two. Three at least:
 * more than there is room for, or round numbers where the range is short. */
static int log_ticks(const PlotAxis *axis, int most, PlotTick *out)
{
    int powers = (int)(log(axis->hi / axis->lo) / log(4)) + 2, all = plot_in_bytes(axis) ? 2 : 3;
    int parts = all, every = 1, count = power_ticks(axis, parts, every, PLOT_TICKS_MOST, out);

    while ((count > most || count == PLOT_TICKS_MOST) && every <= powers) {
        every += parts == 1;
        parts -= parts > 1;
        count = power_ticks(axis, parts, every, PLOT_TICKS_MOST, out);
    }
    while (count < TICKS_LEAST && (parts < all || every > 1)) {
        parts += every == 1;
        every -= every > 1;
        count = power_ticks(axis, parts, every, PLOT_TICKS_MOST, out);
    }
    for (int more = TICKS_LEAST; count < TICKS_LEAST && more <= 4 * TICKS_LEAST; more++)
        count = linear_ticks(axis, more, out);
    return count;
}

#define DIGITS_END (1 << 20) /* an axis that reaches this has powers as labels */

/* Every power of two, or every second, third, ...: as many as there is room for. */
static int twos_ticks(const PlotAxis *axis, int most, PlotTick *out)
{
    int first = (int)ceil(log2(axis->lo) - 1e-9), last = (int)floor(log2(axis->hi) + 1e-9);
    int every = 1, count = 0;

    while ((last - first) / every + 1 > most && (last - first) / (every + 1) + 1 >= TICKS_LEAST)
        every++;
    for (int power = first; power <= last && count < PLOT_TICKS_MOST; power += every, count++) {
        out[count].place = plot_place(axis, ldexp(1, power));
        if (ldexp(1, last) >= DIGITS_END)
            snprintf(out[count].text, sizeof(out->text), "2^%d", power);
        else
            snprintf(out[count].text, sizeof(out->text), "%.0f", ldexp(1, power));
    }
    return count;
}

/* Three if the range allows, even closer than there is room for. */
static int spaced_ticks(const PlotAxis *axis, int most, PlotTick *out)
{
    int count = linear_ticks(axis, most, out);

    for (int more = most + 1; count < TICKS_LEAST && more <= most + TICKS_LEAST &&
                              more <= PLOT_TICKS_MOST; more++)
        count = linear_ticks(axis, more, out);
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

int plot_minor_ticks(const PlotAxis *axis, double *places)
{
    int count = 0, first, last;

    if (!axis->log || axis->twos || axis->names || plot_in_bytes(axis) ||
        axis->hi > axis->lo * pow(10, PLOT_DECADES_MOST))
        return 0;
    first = (int)floor(log10(axis->lo));
    last = (int)floor(log10(axis->hi));
    for (int k = first; k <= last; k++)
        for (int digit = 1; digit <= 9 && count < PLOT_MINOR_MOST; digit++) {
            double value = digit * pow(10, k);

            if (value >= axis->lo && value <= axis->hi)
                places[count++] = plot_place(axis, value);
        }
    return count;
}

int plot_ticks(const PlotAxis *axis, int most, PlotTick *out)
{
    int count;

    if (axis->names)
        return named_ticks(axis, out);
    if (axis->zero) {
        out[0] = (PlotTick){ plot_place(axis, 0), "0" };
        return 1;
    }
    most = most > PLOT_TICKS_MOST ? PLOT_TICKS_MOST : most < 2 ? 2 : most;
    count = axis->twos ? twos_ticks(axis, most, out) : 0;
    if (count < 2)
        count = axis->log ? log_ticks(axis, most, out) : spaced_ticks(axis, most, out);
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
