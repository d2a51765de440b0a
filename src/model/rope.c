/* rope.c -- see rope.h.  All in double: an angle at position 10^5 needs more than float32. */
#include "model/rope.h"

#include <math.h>

#define TWO_PI 6.283185307179586476925

Rope rope_plain(int64_t channels, double base)
{
    return (Rope){ .channels = channels, .base = base, .factor = 1, .beta_fast = 32,
                   .beta_slow = 1, .low_factor = 1, .high_factor = 4 };
}

static bool outside(const char *where, const char *what, double value, const char *wanted,
                    Error *err)
{
    return error_set(err, ERR_DATA, "%s: %s is %g, wanted %s", where, what, value, wanted);
}

bool rope_check(const Rope *r, const char *where, Error *err)
{
    if (!(r->base > 1 && r->base < 1e15))
        return outside(where, "the base of RoPE", r->base, "above 1", err);
    if (r->kind != ROPE_PLAIN && !(r->factor >= 1 && r->factor < 1e6))
        return outside(where, "the factor of RoPE's scaling", r->factor, "1 to 10^6", err);
    if (r->kind >= ROPE_LLAMA3 && !(r->original >= 1 && r->original < 1e12))
        return outside(where, "the original context of RoPE's scaling", r->original,
                       "1 or more", err);
    if (r->kind == ROPE_LLAMA3 && !(r->low_factor > 0 && r->high_factor < 1e9))
        return outside(where, "low_freq_factor", r->low_factor, "above 0", err);
    if (r->kind == ROPE_LLAMA3 && !(r->low_factor < r->high_factor))
        return outside(where, "low_freq_factor", r->low_factor, "below high_freq_factor", err);
    if (r->kind == ROPE_YARN && !(r->beta_slow > 0 && r->beta_fast < 1e9 &&
                                  r->beta_slow <= r->beta_fast))
        return outside(where, "beta_slow", r->beta_slow, "above 0 and not above beta_fast", err);
    return r->kind != ROPE_YARN || (r->attention_factor >= 0 && r->attention_factor < 1e6) ||
           outside(where, "attention_factor", r->attention_factor, "above 0", err);
}

static double scale_llama3(const Rope *r, double inverse)
{
    double wave = TWO_PI / inverse, smooth;

    if (wave > r->original / r->low_factor)
        return inverse / r->factor;
    if (wave < r->original / r->high_factor)
        return inverse;
    smooth = (r->original / wave - r->low_factor) / (r->high_factor - r->low_factor);
    return (1 - smooth) * inverse / r->factor + smooth * inverse;
}

/* The channel pair that turns `turns` times within the original context. */
static double yarn_channel(const Rope *r, double turns)
{
    return (double)r->channels * log(r->original / (TWO_PI * turns)) / (2 * log(r->base));
}

static double scale_yarn(const Rope *r, double inverse, int64_t t)
{
    double low = fmax(floor(yarn_channel(r, r->beta_fast)), 0);
    double high = fmin(ceil(yarn_channel(r, r->beta_slow)), (double)(r->channels - 1));
    double ramp = fmin(fmax(((double)t - low) / fmax(high - low, 0.001), 0), 1);

    return inverse * (1 - ramp) + inverse / r->factor * ramp;
}

static double inverse_frequency(const Rope *r, int64_t t)
{
    double inverse = pow(r->base, -2.0 * (double)t / (double)r->channels);

    switch (r->kind) {
    case ROPE_LINEAR: return inverse / r->factor;
    case ROPE_LLAMA3: return scale_llama3(r, inverse);
    case ROPE_YARN: return scale_yarn(r, inverse, t);
    case ROPE_PLAIN: break;
    }
    return inverse;
}

bool rope_fill(const Rope *r, Arena *arena, ModelConfig *config, Error *err)
{
    double *inverse = arena_alloc(arena, r->channels / 2, sizeof(*inverse));

    if (!inverse)
        return error_set(err, ERR_NOMEM, "no memory for the frequencies of RoPE");
    for (int64_t t = 0; t < r->channels / 2; t++)
        inverse[t] = inverse_frequency(r, t);
    config->rotary = r->channels;
    config->inverse = inverse;
    config->rotary_scale = 1;
    if (r->kind == ROPE_YARN)
        config->rotary_scale = r->attention_factor > 0 ? r->attention_factor
                                                       : 0.1 * log(r->factor) + 1;
    return true;
}
