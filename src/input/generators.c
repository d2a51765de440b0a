/* generators.c -- the structure of each synthetic input; see generators.h.
 *
 * Symbols are (kind, number). Kinds: "word" for token identity, "place" for a position, "group"
 * for a block, cluster or section, "mark" for a special role, "noise q/k" for what matches
 * nothing.
 */
#include "input/generators.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/rng.h"
#include "input/store.h"

#define NOISE 0.5 /* weight of symbols without a match: visible, never the largest */

static Symbol term(const char *kind, int64_t number, double weight)
{
    return (Symbol){ .kind = kind, .number = (uint64_t)number, .weight = weight };
}

/* A pronounceable word: syllables of the number to base 60. */
static void word(int64_t number, char *out, size_t size)
{
    static const char consonants[] = "bdfgklmnprst", vowels[] = "aeiou";
    size_t length = 0;

    do {
        int64_t syllable = number % 60;

        if (length + 3 > size)
            break;
        out[length++] = consonants[syllable / 5];
        out[length++] = vowels[syllable % 5];
        number = number / 60 - 1;
    } while (number >= 0);
    out[length] = '\0';
}

static void word_value(Position *out, int64_t number)
{
    out->v[0] = term("value", number, 1);
    word(number, out->label, sizeof(out->label));
}

static int64_t at_least_one(double value)
{
    return value < 1 ? 1 : (int64_t)value;
}

/* A fixed random number below bound for position i. */
static int64_t draw_below(const Generation *g, const char *name, int64_t i, int64_t bound)
{
    Rng rng = rng_named(g->seed, name);

    return (int64_t)(rng_at(rng.seed, rng.stream, (uint64_t)i) % (uint64_t)bound);
}

/* ---- no structure -------------------------------------------------------- */

static void normal_fill(Generation *g, float *scratch)
{
    int64_t size = g->n * g->d, count = g->kv_heads * size;

    (void)scratch;
    generate_normal(g->seed, "q", g->in->q.data, g->heads * size, 1);
    if (load_goes_on(g->choice, NULL))
        generate_normal(g->seed, "k", g->in->k.data, count, 1);
    if (load_goes_on(g->choice, NULL))
        generate_normal(g->seed, "v", g->in->v.data, count, 1);
}

static void uniform_place(const Generation *g, int64_t i, Position *out)
{
    (void)g;
    out->q[0] = term("noise q", i, 1);
    out->k[0] = term("mark", 0, 1);
    out->v[0] = term("value", i, 1);
}

/* ---- repeated tokens ----------------------------------------------------- */

static void half_settle(Generation *g, double *a, double *b)
{
    (void)b;
    *a = *a > 0 ? *a : (double)at_least_one((double)((g->n + 1) / 2));
}

static void induction_place(const Generation *g, int64_t i, Position *out)
{
    int64_t period = (int64_t)g->a;

    out->q[0] = term("word", i % period, 1);
    out->k[0] = i ? term("word", (i - 1) % period, 1) : term("noise k", 0, NOISE);
    word_value(out, i % period);
}

static void quarter_settle(Generation *g, double *a, double *b)
{
    (void)b;
    *a = *a > 0 ? *a : (double)at_least_one((double)((g->n + 3) / 4));
}

static void copy_place(const Generation *g, int64_t i, Position *out)
{
    int64_t period = (int64_t)g->a;

    out->q[0] = out->k[0] = term("word", i % period, 1);
    word_value(out, i % period);
}

/* ---- position ------------------------------------------------------------ */

static void previous_place(const Generation *g, int64_t i, Position *out)
{
    int64_t offset = (int64_t)g->a;

    out->q[0] = term("place", i >= offset ? i - offset : i, 1);
    out->k[0] = term("place", i, 1);
    out->v[0] = term("value", i, 1);
}

static void local_settle(Generation *g, double *a, double *b)
{
    (void)g, (void)b;
    *a = *a > 0 ? *a : 8;
}

/* Features of points on a line or a grid; width 0 is a line. */
static void place_features(Generation *g, float *frequencies, int64_t width, double bandwidth)
{
    double  bandwidths[2] = { bandwidth, bandwidth };
    double  amplitude = generate_amplitude(g->match, g->d);
    int64_t at = 0;

    for (int64_t h = 0; h < g->heads; h++) {
        generate_frequencies(g->seed, "place", h, 2, bandwidths, g->d, frequencies);
        for (int64_t i = 0; i < g->n; i++, at += g->d) {
            double point[2] = { (double)(width ? i % width : i), (double)(width ? i / width : 0) };

            generate_features(frequencies, 2, point, amplitude, (float *)g->in->q.data + at, g->d);
        }
    }
    memcpy(g->in->k.data, g->in->q.data, (size_t)at * sizeof(float));
    generate_normal(g->seed, "v", g->in->v.data, at, 1);
}

static void local_fill(Generation *g, float *scratch)
{
    place_features(g, scratch, 0, g->a);
}

static void grid_settle(Generation *g, double *a, double *b)
{
    *a = *a > 0 ? *a : (double)at_least_one(floor(sqrt((double)g->n)));
    *b = *b > 0 ? *b : 1.5;
    g->in->width = (int64_t)*a;
}

static void grid_fill(Generation *g, float *scratch)
{
    place_features(g, scratch, (int64_t)g->a, g->b);
}

/* ---- groups -------------------------------------------------------------- */

static void eighth_settle(Generation *g, double *a, double *b)
{
    (void)b;
    *a = *a > 0 ? *a : (double)at_least_one((double)((g->n + 7) / 8));
}

/* The block that each block attends to: itself, or a random one, none twice. */
static void blocks_plan(Generation *g)
{
    int64_t block = (int64_t)g->a, count = (g->n + block - 1) / block;
    Rng     rng = rng_named(g->seed, "blocks");

    for (int64_t b = 0; b < count; b++)
        g->table[b] = (int32_t)b;
    for (int64_t b = count - 1; b > 0 && g->b > 0; b--) {
        int64_t other = (int64_t)rng_below(&rng, (uint64_t)b + 1);
        int32_t keep = g->table[b];

        g->table[b] = g->table[other];
        g->table[other] = keep;
    }
}

static void blocks_place(const Generation *g, int64_t i, Position *out)
{
    int64_t block = i / (int64_t)g->a;

    out->q[0] = term("group", g->table[block], 1);
    out->k[0] = term("group", block, 1);
    out->v[0] = term("value", i, 1);
    snprintf(out->label, sizeof(out->label), "b%lld", (long long)block);
}

static void clusters_place(const Generation *g, int64_t i, Position *out)
{
    int64_t cluster = draw_below(g, "clusters", i, at_least_one(g->a));

    out->q[0] = out->k[0] = term("group", cluster, 1);
    out->q[1] = term("noise q", i, g->b);
    out->k[1] = term("noise k", i, g->b);
    out->v[0] = term("value", cluster, 1);
    out->v[1] = term("noise v", i, g->b);
    snprintf(out->label, sizeof(out->label), "c%lld", (long long)cluster);
}

/* ---- single keys --------------------------------------------------------- */

static void needle_settle(Generation *g, double *a, double *b)
{
    *b = *b > 0 ? *b : (double)at_least_one((double)(g->n / 8));
    if (!(*a > 0))
        *a = (double)draw_below(g, "needle", 0, at_least_one((double)g->n - *b));
    if (*a > (double)g->n - 1)
        *a = (double)g->n - 1;
}

static void needle_place(const Generation *g, int64_t i, Position *out)
{
    bool asks = i >= g->n - (int64_t)g->b, is_needle = i == (int64_t)g->a;

    out->q[0] = asks ? term("mark", 0, 1) : term("noise q", i, NOISE);
    out->k[0] = is_needle ? term("mark", 0, 1) : term("noise k", i, NOISE);
    out->v[0] = term("value", i, 1);
    strcpy(out->label, is_needle ? "needle" : asks ? "?" : "hay");
}

static void delimiter_place(const Generation *g, int64_t i, Position *out)
{
    int64_t period = at_least_one(g->a), segment = i / period;

    out->q[0] = term("group", segment, 1);
    if (i % period == 0) {
        out->k[0] = term("group", segment, 1);
        out->v[0] = term("value", -1 - segment, 1);
        strcpy(out->label, ".");
        return;
    }
    out->k[0] = term("noise k", i, NOISE);
    word_value(out, draw_below(g, "words", i, 40));
}

static void sink_place(const Generation *g, int64_t i, Position *out)
{
    int64_t number = draw_below(g, "words", i, 40);

    out->q[0] = term("mark", 0, 1);
    out->q[1] = term("word", number, NOISE);
    if (i == 0) {
        out->k[0] = term("mark", 0, 1);
        out->v[0] = term("value", -1, NOISE);
        strcpy(out->label, "<s>");
        return;
    }
    out->k[0] = term("word", number, 1);
    word_value(out, number);
}

/* ---- a mixture ----------------------------------------------------------- */

static void document_settle(Generation *g, double *a, double *b)
{
    (void)b;
    *a = *a > 0 ? *a : (double)at_least_one((double)((g->n + 15) / 16));
}

/* Start of a section: its equal share, moved by at most a third of it. */
static int64_t section_start(const Generation *g, int64_t section, int64_t sections)
{
    double share = (double)g->n / (double)sections;
    double moved = ((double)draw_below(g, "sections", section, 1000) - 500) / 1500;

    return (int64_t)(share * ((double)section + moved));
}

static void document_plan(Generation *g)
{
    int64_t section = 0, sections = at_least_one(g->a);

    for (int64_t i = 0; i < g->n; i++) {
        while (section + 1 < sections && i >= section_start(g, section + 1, sections) && i > 0)
            section++;
        g->table[i] = (int32_t)section;
    }
}

static void document_place(const Generation *g, int64_t i, Position *out)
{
    int64_t section = g->table[i];
    bool    title = i == 0 || g->table[i - 1] != g->table[i];

    out->q[0] = out->k[0] = term("group", section, 0.6);
    out->q[1] = term("title", section, 0.9);
    out->q[2] = term("place", i ? i - 1 : 0, 0.9);
    out->k[1] = title ? term("title", section, 0.9) : term("noise k", i, NOISE);
    out->k[2] = term("place", i, 0.9);
    if (title) {
        out->v[0] = term("value", -1 - section, 1);
        snprintf(out->label, sizeof(out->label), "#%lld", (long long)section + 1);
        return;
    }
    word_value(out, draw_below(g, "words", i, 200));
}

/* ---- low rank ------------------------------------------------------------ */

static void rank_settle(Generation *g, double *a, double *b)
{
    (void)b;
    *a = *a > 0 ? *a : 4;
    *a = *a < (double)g->d ? *a : (double)g->d;
}

/* out[i,:] = sum over r of c[i,r] basis[r,:] with random c and basis. */
static void span_rows(const Generation *g, const char *name, int64_t head, float *basis,
                      float *out)
{
    int64_t rank = (int64_t)g->a, d = g->d;
    /* q . k / sqrt(d) has variance d rank deviation^4; its deviation is match / 4. */
    double  deviation = sqrt(g->match / 4 / sqrt((double)(d * rank)));
    Rng     rng = rng_named(g->seed, name);

    rng.stream += (uint64_t)head;
    memset(out, 0, (size_t)(g->n * d) * sizeof(*out));
    for (int64_t r = 0; r < rank; r++) {
        generate_code(g->seed, term("basis", r, 1), head, basis, d);
        for (int64_t i = 0; i < g->n; i++) {
            float c = (float)(deviation * rng_normal(&rng));

            for (int64_t j = 0; j < d; j++)
                out[i * d + j] += c * basis[j];
        }
    }
}

static void lowrank_fill(Generation *g, float *scratch)
{
    int64_t size = g->n * g->d;

    for (int64_t h = 0; h < g->heads; h++) {
        span_rows(g, "rank q", h, scratch, (float *)g->in->q.data + h * size);
        span_rows(g, "rank k", h, scratch, (float *)g->in->k.data + h * size);
    }
    generate_normal(g->seed, "v", g->in->v.data, g->heads * size, 1);
}

/* ---- the table ----------------------------------------------------------- */

#define COMMON "n=64, d=64, heads=1, seed=0, match=0.0" /* ARGUMENT_N .. ARGUMENT_MATCH */

static const InputGenerator abouts[] = {
#define GENERATOR(name, own, help, settle, plan, place, fill) { #name, COMMON own, help },
#include "input/generators.def"
#undef GENERATOR
    { NULL, NULL, NULL },
};

const Generator generators[] = {
#define GENERATOR(name, own, help, settle, plan, place, fill) { settle, plan, place, fill },
#include "input/generators.def"
#undef GENERATOR
};

const InputGenerator *input_generators(void)
{
    return abouts;
}
