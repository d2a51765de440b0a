/* seeds.c -- the spread of quality over seeds: a lucky draw is not a result. */
#include <math.h>

#include "profile/measure.h"

bool run_is_drawn(const Run *run)
{
    for (int i = 0; i < run->tensor_count; i++)
        if (run->tensors[i].origin != ORIGIN_FILE) /* a fit starts from what is drawn */
            return true;
    return false;
}

/* A seed without the number leaves the band without meaning. */
static void band_add(SeedBand *band, int before, Number value)
{
    if (!before) {
        *band = (SeedBand){ value, value, value };
        return;
    }
    if (!value.valid || !band->mean.valid) {
        *band = (SeedBand){ .mean = NUMBER_NONE, .min = NUMBER_NONE, .max = NUMBER_NONE };
        return;
    }
    band->mean.value += (value.value - band->mean.value) / (before + 1);
    band->min.value = fmin(band->min.value, value.value);
    band->max.value = fmax(band->max.value, value.value);
}

static double value_of(Number number)
{
    return number.valid ? number.value : (double)NAN;
}

void seeds_add(SeedSpread *spread, const Quality *quality)
{
    band_add(&spread->mass, spread->count, quality->mass_mean);
    band_add(&spread->output_error, spread->count, quality->output_error);
    if (spread->kept < SEED_DRAWS_MOST) {
        spread->mass_draws[spread->kept] = value_of(quality->mass_mean);
        spread->output_error_draws[spread->kept++] = value_of(quality->output_error);
    }
    spread->count++;
}
