/* columns.c -- see columns.h. */
#include "attn/cpu/columns.h"

#include "attn/cpu/pack.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

typedef struct Job {
    const Tensor  *y;
    const Columns *columns;
    bool           unit;
    float         *rows; /* [workers][TILE_KEYS][d] */
} Job;

void columns_score(const float *x, int64_t ld, int64_t rows, int64_t d, const float *panel,
                   const uint64_t *keep, float *padding, float *s, int64_t lds, float *top)
{
    if (rows < TILE_ROWS) {
        memset(padding, 0, (size_t)(TILE_ROWS * d) * sizeof(*padding));
        for (int64_t i = 0; i < rows; i++)
            memcpy(padding + i * d, x + i * ld, (size_t)d * sizeof(*x));
        x = padding;
        ld = d;
    }
    kernel_at(0)->score(x, ld, panel, d, keep, TILE_KEYS, s, lds, top);
}

double row_length_bound(const Kernel *kernel, const float *x, int64_t d)
{
    double squares = (double)kernel->squares_near(x, d);

    return sqrt(squares * (1 + (double)d * 0x1p-22) + (double)d * 0x1p-148);
}

double row_length(const double *x, int64_t d)
{
    double squares = 0;

    for (int64_t t = 0; t < d; t++)
        squares += x[t] * x[t];
    return squares < LENGTH_LEAST * LENGTH_LEAST ? LENGTH_LEAST : sqrt(squares);
}

static double entry(const Tensor *y, int64_t at)
{
    return y->dtype == DT_F64 ? ((const double *)y->data)[at]
                              : (double)((const float *)y->data)[at];
}

/* Column c of the panel, from the row of y that begins at `from`. */
static void pack_column(const Job *job, int64_t from, int64_t c, double *strip, double *length,
                        float *row)
{
    const Columns *columns = job->columns;
    double        *to = strip + c / LANES * LANES * columns->d + c % LANES, squares = 0, factor;

    for (int64_t t = 0; t < columns->d; t++) {
        to[t * LANES] = entry(job->y, from + t);
        squares += to[t * LANES] * to[t * LANES];
    }
    *length = squares < LENGTH_LEAST * LENGTH_LEAST ? LENGTH_LEAST : sqrt(squares);
    factor = job->unit ? 1 / *length : 1;
    for (int64_t t = 0; t < columns->d; t++)
        row[t] = (float)(to[t * LANES] * factor);
}

/* An item is a panel. */
static void pack_item(void *context, int64_t item, int worker)
{
    const Job     *job = context;
    const Columns *c = job->columns;
    int64_t        panels = c->padded / TILE_KEYS, place = item / panels;
    int64_t        first = item % panels * TILE_KEYS, count = min_i64(TILE_KEYS, c->count - first);
    int64_t        slice = place / c->parts, own = place % c->parts * c->count + first;
    double        *strip = c->strip + (place * c->padded + first) * c->d;
    double        *length = c->length + place * c->padded + first;
    float         *rows = job->rows + worker * TILE_KEYS * c->d;

    memset(strip, 0, (size_t)(TILE_KEYS * c->d) * sizeof(*strip));
    memset(length, 0, TILE_KEYS * sizeof(*length));
    for (int64_t x = 0; x < count; x++)
        pack_column(job, slice * job->y->stride[0] + (own + x) * job->y->stride[1], x, strip,
                    length + x, rows + x * c->d);
    pack_panel(rows, c->d, count, c->d, c->panel + (place * c->padded + first) * c->d);
}

static void find_longest(Columns *c, bool unit)
{
    for (int64_t place = 0; place < c->slices * c->parts; place++) {
        const double *length = c->length + place * c->padded;

        c->longest[place] = 0;
        for (int64_t x = 0; x < c->count; x++)
            if (length[x] > c->longest[place] || isnan(length[x])) /* a NaN stays */
                c->longest[place] = length[x];
        if (unit && isfinite(c->longest[place]))
            c->longest[place] = 1;
    }
}

bool columns_new(Run *r, const Tensor *y, int64_t parts, bool unit, Columns *out)
{
    int64_t places = y->shape[0] * parts, d = y->shape[2], f = (int64_t)sizeof(float);
    Columns c = { .slices = y->shape[0], .parts = parts, .d = d,
                  .count = y->shape[1] / parts };
    Job     job = { .y = y, .columns = &c, .unit = unit };

    c.padded = round_up_to(c.count, TILE_KEYS);
    c.panel = cpu_scratch(r, places * c.padded, d * f);
    c.strip = cpu_scratch(r, places * c.padded, d * (int64_t)sizeof(double));
    c.length = cpu_scratch(r, places, c.padded * (int64_t)sizeof(double));
    c.longest = cpu_scratch(r, places, sizeof(double));
    job.rows = cpu_scratch(r, threads_count(r->threads) * TILE_KEYS, d * f);
    *out = c;
    if (!c.panel || !c.strip || !c.length || !c.longest || !job.rows)
        return false;
    threads_run(r->threads, places * (c.padded / TILE_KEYS), pack_item, &job);
    find_longest(out, unit);
    return true;
}
