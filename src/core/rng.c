/* rng.c -- Philox 4x32-10; see rng.h. */
#include "core/rng.h"

#include <math.h>

#define ROUNDS 10
#define MULTIPLIER_0 0xD2511F53u
#define MULTIPLIER_1 0xCD9E8D57u
#define WEYL_0 0x9E3779B9u
#define WEYL_1 0xBB67AE85u
#define TWO_PI 6.283185307179586476925286766559

static void philox(uint32_t c[4], uint32_t key0, uint32_t key1)
{
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t a = (uint64_t)MULTIPLIER_0 * c[0];
        uint64_t b = (uint64_t)MULTIPLIER_1 * c[2];
        uint32_t next0 = (uint32_t)(b >> 32) ^ c[1] ^ key0;
        uint32_t next2 = (uint32_t)(a >> 32) ^ c[3] ^ key1;

        c[0] = next0;
        c[1] = (uint32_t)b;
        c[2] = next2;
        c[3] = (uint32_t)a;
        key0 += WEYL_0;
        key1 += WEYL_1;
    }
}

/* Both 64-bit numbers of one block: indices 2 * block and 2 * block + 1. */
static void rng_block(uint64_t seed, uint64_t stream, uint64_t block, uint64_t out[2])
{
    uint32_t c[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream,
                      (uint32_t)(stream >> 32) };

    philox(c, (uint32_t)seed, (uint32_t)(seed >> 32));
    out[0] = (uint64_t)c[1] << 32 | c[0];
    out[1] = (uint64_t)c[3] << 32 | c[2];
}

uint64_t rng_at(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint64_t out[2];

    rng_block(seed, stream, index / 2, out);
    return out[index % 2];
}

/* FNV-1a: any fixed hash will do, it only has to stay the same for ever. */
static uint64_t name_hash(const char *name)
{
    uint64_t hash = 14695981039346656037u;

    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 1099511628211u;
    return hash;
}

Rng rng_named(uint64_t seed, const char *name)
{
    return (Rng){ .seed = seed, .stream = name_hash(name) };
}

uint64_t rng_next(Rng *rng)
{
    return rng_at(rng->seed, rng->stream, rng->at++);
}

static double unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

double rng_uniform(Rng *rng)
{
    return unit(rng_next(rng));
}

/* Both normals that Box and Muller's method makes of two uniform numbers. */
static void normal_pair(const uint64_t bits[2], double out[2])
{
    double u = 1 - unit(bits[0]); /* (0, 1], so the logarithm is finite */
    double radius = sqrt(-2 * log(u)), angle = TWO_PI * unit(bits[1]);

    out[0] = radius * cos(angle);
    out[1] = radius * sin(angle);
}

double rng_normal(Rng *rng)
{
    uint64_t bits[2];
    double   pair[2];

    bits[0] = rng_next(rng); /* in this order, which an initialiser does not promise */
    bits[1] = rng_next(rng);
    normal_pair(bits, pair);
    return pair[0];
}

uint64_t rng_below(Rng *rng, uint64_t bound)
{
    uint64_t reject = (0 - bound) % bound, value;

    do
        value = rng_next(rng);
    while (value < reject);
    return value % bound;
}

void rng_fill_normal(Rng *rng, float *out, int64_t count, double deviation)
{
    uint64_t block = (rng->at + 1) / 2, bits[2];
    double   pair[2];

    for (int64_t i = 0; i < count; i += 2) {
        rng_block(rng->seed, rng->stream, block++, bits);
        normal_pair(bits, pair);
        out[i] = (float)(deviation * pair[0]);
        if (i + 1 < count)
            out[i + 1] = (float)(deviation * pair[1]);
    }
    rng->at = 2 * block;
}

void rng_fill_uniform(Rng *rng, float *out, int64_t count, double lo, double hi)
{
    uint64_t bits[2];

    for (int64_t i = 0; i < count; i++, rng->at++) { /* rng_uniform, a block at a time */
        if (i == 0 || rng->at % 2 == 0)
            rng_block(rng->seed, rng->stream, rng->at / 2, bits);
        out[i] = (float)(lo + (hi - lo) * unit(bits[rng->at % 2]));
    }
}
