/* kernel_double.h -- the part of kernel_body.h that computes in double, WIDE at once. */

typedef float     Half __attribute__((vector_size(4 * WIDE)));
typedef long long Whole __attribute__((vector_size(sizeof(Wide))));

INLINE Wide wide_load(const double *p)
{
    Wide x;

    __builtin_memcpy(&x, p, sizeof(x));
    return x;
}

INLINE void wide_store(double *p, Wide x)
{
    __builtin_memcpy(p, &x, sizeof(x));
}

/* Rounds to floats. */
INLINE void wide_narrow(float *p, Wide x)
{
    Half half = __builtin_convertvector(x, Half);

    __builtin_memcpy(p, &half, sizeof(half));
}

static TARGET void array_fold(const float *x, int64_t count, double *sum)
{
    int64_t i = 0;

    for (; i + 4 * WIDE <= count; i += 4 * WIDE)
        UNROLL for (int64_t at = i; at < i + 4 * WIDE; at += WIDE)
            wide_store(sum + at, wide_load(sum + at) + wide_from(x + at));
    for (; i + WIDE <= count; i += WIDE)
        wide_store(sum + i, wide_load(sum + i) + wide_from(x + i));
    for (; i < count; i++)
        sum[i] += (double)x[i];
}

static TARGET void array_fold_scaled(const float *x, int64_t count, double factor, double *sum)
{
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE)
        wide_store(sum + i, wide_load(sum + i) + wide_from(x + i) * factor);
    for (; i < count; i++)
        sum[i] += (double)x[i] * factor;
}

static TARGET void array_scale64(double *x, int64_t count, double factor)
{
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE)
        wide_store(x + i, wide_load(x + i) * factor);
    for (; i < count; i++)
        x[i] *= factor;
}

static TARGET void array_over64(double *x, int64_t count, double divisor)
{
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE)
        wide_store(x + i, wide_load(x + i) / divisor);
    for (; i < count; i++)
        x[i] /= divisor;
}

static TARGET void array_times64(double *x, const double *y, int64_t count)
{
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE)
        wide_store(x + i, wide_load(x + i) * wide_load(y + i));
    for (; i < count; i++)
        x[i] *= y[i];
}

static TARGET void array_fade(float *x, const double *y, int64_t count)
{
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE)
        wide_narrow(x + i, wide_from(x + i) * wide_load(y + i));
    for (; i < count; i++)
        x[i] = (float)((double)x[i] * y[i]);
}

static TARGET void array_gate_rows(const double *gate, int64_t count, double *product,
                                   const float *q, float *near, const float *k, float *far)
{
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE) {
        Wide now = wide_load(product + i) * wide_load(gate + i);
        Half factor = __builtin_convertvector(now, Half), a, b;

        wide_store(product + i, now);
        __builtin_memcpy(&a, q + i, sizeof(a));
        __builtin_memcpy(&b, k + i, sizeof(b));
        a *= factor;
        b /= factor;
        __builtin_memcpy(near + i, &a, sizeof(a));
        __builtin_memcpy(far + i, &b, sizeof(b));
    }
    for (; i < count; i++) {
        product[i] *= gate[i];
        near[i] = q[i] * (float)product[i];
        far[i] = k[i] / (float)product[i];
    }
}

static TARGET void array_fold_positive64(const double *x, int64_t count, double factor, double *sum)
{
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE) {
        Wide now = wide_load(x + i);

        now = (Wide)((Whole)now & (now > 0));
        wide_store(sum + i, wide_load(sum + i) + now * factor);
    }
    for (; i < count; i++)
        sum[i] += factor * (x[i] > 0 ? x[i] : 0);
}

static TARGET int64_t array_next_above64(const double *x, int64_t at, int64_t count, double limit)
{
    for (; at + 4 * WIDE <= count; at += 4 * WIDE) {
        Whole   above = { 0 };
        int64_t any = 0;

        UNROLL for (int p = 0; p < 4; p++)
            above |= ~(wide_load(x + at + p * WIDE) <= limit);
        UNROLL for (int c = 0; c < WIDE; c++)
            any |= above[c];
        if (any)
            break;
    }
    while (at < count && x[at] <= limit)
        at++;
    return at;
}

/* Columns [c, c + parts WIDE). */
INLINE void strip_mean(const float *const *row, int64_t rows, const double *more, double factor,
                       const float *own, const float *next, int64_t c, const int parts, float *y)
{
    Wide sum[4];

    UNROLL for (int p = 0; p < parts; p += LANES / WIDE)
        __builtin_prefetch(next + c + p * WIDE);
    UNROLL for (int p = 0; p < parts; p++)
        sum[p] = more ? wide_load(more + c + p * WIDE) : (Wide){ 0 };
    for (int64_t r = 0; r < rows; r++)
        UNROLL for (int p = 0; p < parts; p++)
            sum[p] += wide_from(row[r] + c + p * WIDE);
    UNROLL for (int p = 0; p < parts; p++) {
        Wide mean = sum[p] * factor;

        if (own)
            mean -= wide_from(own + c + p * WIDE);
        wide_narrow(y + c + p * WIDE, mean);
    }
}

static TARGET void rows_mean(const float *const *row, int64_t rows, const double *more,
                             double factor, const float *own, const float *next, int64_t count,
                             float *y)
{
    int64_t c = 0;

    for (; c + 4 * WIDE <= count; c += 4 * WIDE)
        strip_mean(row, rows, more, factor, own, next, c, 4, y);
    for (; c + WIDE <= count; c += WIDE)
        strip_mean(row, rows, more, factor, own, next, c, 1, y);
    for (; c < count; c++) {
        double sum = more ? more[c] : 0;

        for (int64_t r = 0; r < rows; r++)
            sum += (double)row[r][c];
        y[c] = (float)(sum * factor - (own ? (double)own[c] : 0));
    }
}

static TARGET double array_dot_wide(const float *x, const double *z, int64_t count)
{
    Wide    part[2] = { { 0 }, { 0 } };
    double  sum;
    int64_t i = 0;

    for (; i + 2 * WIDE <= count; i += 2 * WIDE)
        UNROLL for (int p = 0; p < 2; p++)
            part[p] += wide_from(x + i + p * WIDE) * wide_load(z + i + p * WIDE);
    sum = wide_total(part[0] + part[1]);
    for (; i < count; i++)
        sum += (double)x[i] * z[i];
    return sum;
}

static TARGET void rows_dot_wide(const double *q, const float *k, int64_t ldk, int64_t count,
                                 int64_t d, double *s)
{
    enum { GROUP = 4 };
    int64_t x = 0;

    for (; x + GROUP <= count; x += GROUP, k += GROUP * ldk) {
        Wide    part[GROUP] = { { 0 } };
        double  lane[GROUP][WIDE], sum[GROUP] = { 0 };
        int64_t t = 0;

        UNROLL for (int g = 0; g < GROUP; g++) /* one after the other, as the lines lie */
            for (t = 0; t + WIDE <= d; t += WIDE) {
                __builtin_prefetch(k + g * ldk + t + AHEAD);
                part[g] += wide_from(k + g * ldk + t) * wide_load(q + t);
            }
        UNROLL for (int g = 0; g < GROUP; g++)
            wide_store(lane[g], part[g]);
        UNROLL for (int c = 0; c < WIDE; c++)
            UNROLL for (int g = 0; g < GROUP; g++)
                sum[g] += lane[g][c];
        for (; t < d; t++)
            UNROLL for (int g = 0; g < GROUP; g++)
                sum[g] += (double)k[g * ldk + t] * q[t];
        UNROLL for (int g = 0; g < GROUP; g++)
            s[x + g] = sum[g];
    }
    for (; x < count; x++, k += ldk)
        s[x] = array_dot_wide(k, q, d);
}

/* `vecs` vectors of columns. */
INLINE void strip_mix_wide(const double *w, const float *v, int64_t ldv, int64_t count,
                           const int vecs, double *acc)
{
    Wide sum[8];

    UNROLL for (int x = 0; x < vecs; x++)
        sum[x] = wide_load(acc + x * WIDE);
    for (int64_t j = 0; j < count; j++)
        UNROLL for (int x = 0; x < vecs; x++) {
            __builtin_prefetch(v + j * ldv + x * WIDE + AHEAD);
            sum[x] = wide_fused(w[j], wide_from(v + j * ldv + x * WIDE), sum[x]);
        }
    UNROLL for (int x = 0; x < vecs; x++)
        wide_store(acc + x * WIDE, sum[x]);
}

/* Rows that are mixed strip by strip while they stay in the first-level cache. */
#define MIX_ROWS 16

static TARGET void rows_mix_wide(const double *w, const float *v, int64_t ldv, int64_t count,
                                 int64_t e, double *acc)
{
    int64_t most = e > 8 * WIDE ? MIX_ROWS : count;

    for (int64_t j = 0; j < count; j += most) {
        int64_t rows = count - j < most ? count - j : most, at = 0;

        for (; at + 8 * WIDE <= e; at += 8 * WIDE)
            strip_mix_wide(w + j, v + j * ldv + at, ldv, rows, 8, acc + at);
        for (; at + WIDE <= e; at += WIDE)
            strip_mix_wide(w + j, v + j * ldv + at, ldv, rows, 1, acc + at);
        for (; at < e; at++)
            for (int64_t x = 0; x < rows; x++)
                acc[at] += w[j + x] * (double)v[(j + x) * ldv + at];
    }
}

static TARGET double array_dot_double(const double *x, const double *z, int64_t count)
{
    Wide    part[2] = { { 0 }, { 0 } };
    double  sum;
    int64_t i = 0;

    for (; i + 2 * WIDE <= count; i += 2 * WIDE)
        UNROLL for (int p = 0; p < 2; p++)
            part[p] += wide_load(x + i + p * WIDE) * wide_load(z + i + p * WIDE);
    part[0] += part[1];
    sum = wide_total(part[0]);
    for (; i < count; i++)
        sum += x[i] * z[i];
    return sum;
}

static TARGET void array_moments(const float *x, int64_t count, double shift, double *sum,
                                 double *squares)
{
    enum { PARTS = 4 }; /* which hide the latency of a sum */
    Wide    first[PARTS] = { { 0 } }, second[PARTS] = { { 0 } };
    int64_t i = 0;

    for (; i + PARTS * WIDE <= count; i += PARTS * WIDE)
        UNROLL for (int p = 0; p < PARTS; p++) {
            Wide now = wide_from(x + i + p * WIDE) - shift;

            first[p] += now;
            second[p] += now * now;
        }
    for (; i + WIDE <= count; i += WIDE) {
        Wide now = wide_from(x + i) - shift;

        first[0] += now;
        second[0] += now * now;
    }
    *sum = wide_total(first[0] + first[1] + (first[2] + first[3]));
    *squares = wide_total(second[0] + second[1] + (second[2] + second[3]));
    for (; i < count; i++) {
        *sum += (double)x[i] - shift;
        *squares += ((double)x[i] - shift) * ((double)x[i] - shift);
    }
}

static TARGET void array_centre(const float *x, int64_t count, double shift, double factor,
                                float *y)
{
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE)
        wide_narrow(y + i, (wide_from(x + i) - shift) * factor);
    for (; i < count; i++)
        y[i] = (float)(((double)x[i] - shift) * factor);
}

static TARGET double array_squares(const float *x, int64_t count)
{
    Wide    sum[2] = { { 0 }, { 0 } };
    int64_t i = 0;
    double  squares;

    for (; i + 2 * WIDE <= count; i += 2 * WIDE)
        UNROLL for (int p = 0; p < 2; p++) {
            Wide now = wide_from(x + i + p * WIDE);

            sum[p] += now * now;
        }
    squares = wide_total(sum[0] + sum[1]);
    for (; i < count; i++)
        squares += (double)x[i] * (double)x[i];
    return squares;
}

/* The mean, and the variance about it, in one pass about the first number.  That is one of the row,
 * so its distance from the mean is sqrt(count) deviations at most, and the difference of the two
 * sums is exact to some count 2^-53 of itself. */
static TARGET double row_variance(const float *x, int64_t count, double *mean)
{
    double first = count > 0 ? (double)x[0] : 0, sum, squares, off;

    array_moments(x, count, first, &sum, &squares);
    off = sum / (double)count;
    *mean = first + off;
    return squares / (double)count - off * off;
}

static TARGET void row_standardise(const float *x, int64_t count, double eps, const float *gain,
                                   const float *bias, float *y)
{
    double  mean, by = 1 / sqrt(row_variance(x, count, &mean) + eps);
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE) {
        Wide off = (wide_from(x + i) - mean) * by;

        if (gain)
            off *= wide_from(gain + i);
        if (bias)
            off += wide_from(bias + i);
        wide_narrow(y + i, off);
    }
    for (; i < count; i++)
        y[i] = (float)(((double)x[i] - mean) * by * (gain ? (double)gain[i] : 1) +
                       (bias ? (double)bias[i] : 0));
}

#define DOUBLES (LANES / WIDE) /* vectors of a strip */
/* Sums in registers at once: 16 of 32, or 8 of 16. */
#define DOUBLE_ROWS (WIDE == 8 ? 8 : WIDE == 4 ? 2 : 1)

/* Entry `at` of x, which holds doubles or floats. */
INLINE double wide_entry(const void *x, const bool wide, int64_t at)
{
    return wide ? ((const double *)x)[at] : (double)((const float *)x)[at];
}

INLINE void strip_dots64(const void *x, const bool wide, const bool fused, int64_t ldx,
                         const int rows, int64_t d, const double *start, const double *w, double *y,
                         int64_t ldy)
{
    Wide sum[DOUBLE_ROWS][DOUBLES];

    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < DOUBLES; c++)
            sum[r][c] = start ? wide_load(start + c * WIDE) : (Wide){ 0 };
    for (int64_t t = 0; t < d; t++, w += LANES)
        UNROLL for (int c = 0; c < DOUBLES; c++) {
            Wide b = wide_load(w + c * WIDE);

            UNROLL for (int r = 0; r < rows; r++) {
                double a = wide_entry(x, wide, r * ldx + t);

                sum[r][c] = fused ? wide_fused(a, b, sum[r][c]) : sum[r][c] + a * b;
            }
        }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < DOUBLES; c++)
            wide_store(y + r * ldy + c * WIDE, sum[r][c]);
}

static TARGET void rows_dots64(const float *x, int64_t ldx, int64_t rows, int64_t d,
                               const double *w, int64_t cols, double *y, int64_t ldy)
{
    for (int64_t at = 0; at < cols; at += LANES, w += d * LANES) {
        int64_t r = 0;

        for (; r + DOUBLE_ROWS <= rows; r += DOUBLE_ROWS)
            strip_dots64(x + r * ldx, false, false, ldx, DOUBLE_ROWS, d, NULL, w,
                         y + r * ldy + at, ldy);
        for (; r < rows; r++)
            strip_dots64(x + r * ldx, false, false, ldx, 1, d, NULL, w, y + r * ldy + at, ldy);
    }
}

static TARGET void rows_product64(const double *x, int64_t ldx, int64_t rows, int64_t d,
                                  const double *start, const double *w, int64_t cols, double *y,
                                  int64_t ldy)
{
    for (int64_t at = 0; at < cols; at += LANES, w += d * LANES) {
        const double *from = start ? start + at : NULL;
        int64_t       r = 0;

        for (; r + DOUBLE_ROWS <= rows; r += DOUBLE_ROWS)
            strip_dots64(x + r * ldx, true, false, ldx, DOUBLE_ROWS, d, from, w,
                         y + r * ldy + at, ldy);
        for (; r < rows; r++)
            strip_dots64(x + r * ldx, true, false, ldx, 1, d, from, w, y + r * ldy + at, ldy);
    }
}

static TARGET void rows_fused64(const double *x, int64_t ldx, int64_t rows, int64_t d,
                                const double *w, double *y, int64_t ldy)
{
    int64_t r = 0;

    for (; r + DOUBLE_ROWS <= rows; r += DOUBLE_ROWS)
        strip_dots64(x + r * ldx, true, true, ldx, DOUBLE_ROWS, d, NULL, w, y + r * ldy, ldy);
    for (; r < rows; r++)
        strip_dots64(x + r * ldx, true, true, ldx, 1, d, NULL, w, y + r * ldy, ldy);
}

#define PANEL_PART 4 /* vectors of columns */

static TARGET void panel_dots64(const float *q, const float *panel, int64_t d, int64_t columns,
                                double *sums)
{
    for (int64_t at = 0; at < columns; at += PANEL_PART * WIDE) {
        Wide sum[PANEL_PART];

        UNROLL for (int x = 0; x < PANEL_PART; x++)
            sum[x] = (Wide){ 0 };
        for (int64_t t = 0; t < d; t++)
            UNROLL for (int x = 0; x < PANEL_PART; x++)
                sum[x] = wide_fused((double)q[t],
                                    wide_from(panel + t * TILE_KEYS + at + x * WIDE), sum[x]);
        UNROLL for (int x = 0; x < PANEL_PART; x++)
            wide_store(sums + at + x * WIDE, sum[x]);
    }
}

#define RECUR_STRIP (4 * WIDE)

INLINE void strip_recur64(const double *fq, const double *fk, const double *v, double keep,
                          double take, int64_t f, int64_t e, const int vecs, double *state,
                          double *out)
{
    Wide value[4], sum[4];

    UNROLL for (int x = 0; x < vecs; x++) {
        value[x] = wide_load(v + x * WIDE);
        sum[x] = (Wide){ 0 };
    }
    for (int64_t r = 0; r < f; r++) {
        double key = take * fk[r];

        UNROLL for (int x = 0; x < vecs; x++) {
            double *cell = state + r * e + x * WIDE;
            Wide    now = keep * wide_load(cell) + key * value[x];

            wide_store(cell, now);
            sum[x] += fq[r] * now;
        }
    }
    UNROLL for (int x = 0; x < vecs; x++)
        wide_store(out + x * WIDE, sum[x]);
}

static TARGET void token_recur64(const double *fq, const double *fk, const double *v, double keep,
                                 double take, int64_t f, int64_t e, double *state, double *out)
{
    int64_t at = 0;

    for (; e - at >= RECUR_STRIP; at += RECUR_STRIP)
        strip_recur64(fq, fk, v + at, keep, take, f, e, 4, state + at, out + at);
    for (; e - at >= WIDE; at += WIDE)
        strip_recur64(fq, fk, v + at, keep, take, f, e, 1, state + at, out + at);
    for (; at < e; at++) {
        out[at] = 0;
        for (int64_t r = 0; r < f; r++) {
            state[r * e + at] = keep * state[r * e + at] + take * fk[r] * v[at];
            out[at] += fq[r] * state[r * e + at];
        }
    }
}
