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

static TARGET void row_standardise(const float *x, int64_t count, double eps, const float *gain,
                                   const float *bias, float *y)
{
    double  sum, squares, mean, by;
    int64_t i = 0;

    array_moments(x, count, 0, &sum, &squares);
    mean = sum / (double)count;
    array_moments(x, count, mean, &sum, &squares);
    by = 1 / sqrt(squares / (double)count + eps);
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

/* ---- exp, sin and cos in double --------------------------------------------------- */

#define ROUNDER 6755399441055744.0 /* 1.5 * 2^52: the low bits of x + ROUNDER hold x rounded */
#define EXP_RANGE 700.0            /* beyond, and for NaN, the C library computes */
#define WAVE_RANGE 1e5

/* The sum of of[t] x^t, t < count, count even: even and odd powers apart, so that one does not
 * wait for the other. */
INLINE Wide wide_series(const double *of, int count, Wide x)
{
    Wide square = x * x, even = (Wide){ 0 } + of[count - 2], odd = (Wide){ 0 } + of[count - 1];

    UNROLL for (int t = count - 4; t >= 0; t -= 2) {
        even = even * square + of[t];
        odd = odd * square + of[t + 1];
    }
    return odd * x + even;
}

/* e^x = 2^k e^r, |r| <= ln 2 / 2: Taylor's series to r^13 is exact to the last bit or two. */
INLINE Wide wide_exp(Wide x)
{
    static const double over[] = { 1, 1, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720,
                                   1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
                                   1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800 };
    Wide  turns = x * 1.4426950408889634 + ROUNDER, k = turns - ROUNDER;
    Wide  r = x - k * 0.6931471803691238 - k * 1.9082149292705877e-10;
    Whole power = ((Whole)turns + 1023) << 52;

    return wide_series(over, 14, r) * (Wide)power;
}

static TARGET void array_exp64(double *x, int64_t count)
{
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE) {
        Wide now = wide_load(x + i);

        if (wide_within(now, EXP_RANGE))
            wide_store(x + i, wide_exp(now));
        else
            for (int64_t c = i; c < i + WIDE; c++)
                x[c] = exp(x[c]);
    }
    for (; i < count; i++)
        x[i] = exp(x[i]);
}

static TARGET void array_exp_over(float *x, int64_t count, double divisor)
{
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE) {
        Wide now = wide_from(x + i);

        if (wide_within(now, EXP_RANGE))
            now = wide_exp(now);
        else
            for (int c = 0; c < WIDE; c++)
                now[c] = exp(now[c]);
        wide_narrow(x + i, divisor == 1 ? now : now / divisor);
    }
    for (; i < count; i++)
        x[i] = (float)(exp((double)x[i]) / divisor);
}

/* ln x of normal numbers above 0: x = 2^k m with m from sqrt 1/2 to sqrt 2, and ln m =
 * 2 artanh z, z = (m - 1) / (m + 1), |z| < 0.172, by its series to z^17. */
INLINE Wide wide_log(Wide x)
{
    Whole k = ((Whole)x - 0x3fe6a09e667f3bcd) >> 52;
    Wide  m = (Wide)((Whole)x - (k << 52)), z = (m - 1) / (m + 1), square = z * z;
    Wide  sum = (Wide){ 0 } + 1.0 / 17;

    UNROLL for (int t = 15; t > 0; t -= 2)
        sum = sum * square + 1.0 / t;
    k += (Whole)((Wide){ 0 } + ROUNDER);
    return 2 * z * sum + ((Wide)k - ROUNDER) * 0.6931471805599453;
}

INLINE Wide wide_where(Whole which, Wide a, Wide b)
{
    return (Wide)(((Whole)a & which) | ((Whole)b & ~which));
}

/* ln of 2^max sum.  sum is NaN, 0 beside a max of -inf, or a normal number. */
INLINE Wide wide_log_sum(Wide max, Wide sum)
{
    Whole known = sum > 0;
    Wide  log = wide_log(wide_where(known, sum, (Wide){ 0 } + 1));

    log += (Wide)((Whole)sum & ~known); /* 0, or NaN */
    return max * 0.6931471805599453 + log;
}

INLINE void narrow_log_sum(const float *max, const float *sum, float *y)
{
    wide_narrow(y, wide_log_sum(wide_from(max), wide_from(sum)));
}

static TARGET void array_log_sums(const float *max, const float *sum, int64_t count, float *y)
{
    float   tail[3][WIDE] = { { 0 } };
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE)
        narrow_log_sum(max + i, sum + i, y + i);
    for (int64_t x = i; x < count; x++) {
        tail[0][x - i] = max[x];
        tail[1][x - i] = sum[x];
    }
    if (i < count)
        narrow_log_sum(tail[0], tail[1], tail[2]);
    for (int64_t x = i; x < count; x++)
        y[x] = tail[2][x - i];
}

#define EXP_LEAST (-700.0) /* its exponential is 0 in float, and a normal number in double */

/* e^(x - high), x at most high; NaN stays. */
INLINE Wide wide_below(Wide x, Wide high)
{
    Wide least = (Wide){ 0 } + EXP_LEAST, off = x - high;

    return wide_exp(wide_where(off < least, least, off));
}

/* Kernel.join of WIDE rows.  Where max is -inf and sum 0 there is no new key. */
INLINE void wide_join(const float *max, const float *sum, float *lse, float *kept, float *added)
{
    Wide  zero = { 0 }, one = zero + 1, own = wide_from(sum), old = wide_from(lse);
    Wide  more = wide_log_sum(wide_from(max), own), high = wide_where(old > more, old, more);
    Whole none = (own == zero) & (more < -DBL_MAX);
    Wide  before = wide_below(old, high), after = wide_below(more, high);
    Wide  total = before + after;

    high += wide_log(total) + (total - total); /* the logarithm of NaN is a number */
    wide_narrow(lse, wide_where(none, old, high));
    wide_narrow(kept, wide_where(none, one, before / total));
    wide_narrow(added, wide_where(none, zero, after / total / wide_where(none, one, own)));
}

static TARGET void array_join(const float *max, const float *sum, int64_t count, float *lse,
                              float *kept, float *added)
{
    float   tail[5][WIDE] = { { 0 } };
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE)
        wide_join(max + i, sum + i, lse + i, kept + i, added + i);
    for (int64_t x = i; x < count; x++) {
        tail[0][x - i] = max[x];
        tail[1][x - i] = sum[x];
        tail[2][x - i] = lse[x];
    }
    if (i < count)
        wide_join(tail[0], tail[1], tail[2], tail[3], tail[4]);
    for (int64_t x = i; x < count; x++) {
        lse[x] = tail[2][x - i];
        kept[x] = tail[3][x - i];
        added[x] = tail[4][x - i];
    }
}

INLINE Wide wide_size(Wide x)
{
    return (Wide)((Whole)x & INT64_MAX);
}

static TARGET void array_sigmoid64(double *x, int64_t count)
{
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE) {
        Wide now = wide_load(x + i), power;

        if (wide_within(now, EXP_RANGE)) {
            power = wide_exp(-wide_size(now));
            now = wide_where(now >= 0, (Wide){ 0 } + 1, power) / (1 + power);
        } else {
            for (int c = 0; c < WIDE; c++)
                now[c] = now[c] >= 0 ? 1 / (1 + exp(-now[c])) : exp(now[c]) / (1 + exp(now[c]));
        }
        wide_store(x + i, now);
    }
    for (; i < count; i++)
        x[i] = x[i] >= 0 ? 1 / (1 + exp(-x[i])) : exp(x[i]) / (1 + exp(x[i]));
}

/* ln(1 + y) of y from 0 to 1 is 2 artanh z, z = y / (2 + y) <= 1/3, by its series to z^35. */
INLINE Wide wide_log1p(Wide y)
{
    static const double over[] = { 1, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13,
                                   1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25,
                                   1.0 / 27, 1.0 / 29, 1.0 / 31, 1.0 / 33, 1.0 / 35 };
    Wide z = y / (2 + y);

    return 2 * z * wide_series(over, 18, z * z);
}

static TARGET void array_softplus64(double *x, int64_t count, double beta)
{
    double  once = 1 / beta;
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE) {
        Wide now = wide_load(x + i), size = wide_size(now * beta);

        if (wide_within(size, EXP_RANGE))
            now = wide_where(now > 0, now, (Wide){ 0 }) + wide_log1p(wide_exp(-size)) * once;
        else
            for (int c = 0; c < WIDE; c++)
                now[c] = fmax(now[c], 0) + log1p(exp(-size[c])) / beta;
        wide_store(x + i, now);
    }
    for (; i < count; i++)
        x[i] = fmax(x[i], 0) + log1p(exp(-fabs(beta * x[i]))) / beta;
}

static TARGET double array_divergence(const float *p, const float *q, int64_t count)
{
    Wide    total = { 0 }, lost = { 0 };
    double  sum = 0;
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE) {
        Wide  a = wide_from(p + i), b = wide_from(q + i);
        Whole some = a > 0, both = some & (b > 0);
        Wide  part = a * wide_log(a / b);

        total += (Wide)((Whole)part & both);
        lost += (Wide)((Whole)a & some & ~both);
    }
    for (int c = 0; c < WIDE; c++)
        sum += lost[c] > 0 ? (double)INFINITY : total[c];
    for (; i < count; i++)
        if (p[i] > 0)
            sum += q[i] > 0 ? (double)p[i] * log((double)p[i] / (double)q[i]) : (double)INFINITY;
    return sum;
}

static TARGET double array_largest64(const double *x, int64_t count)
{
    double  top = -(double)INFINITY;
    Wide    high = (Wide){ 0 } + top;
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE) {
        Wide  now = wide_load(x + i);
        Whole more = now > high;

        high = (Wide)(((Whole)now & more) | ((Whole)high & ~more));
    }
    for (; i < count; i++)
        top = x[i] > top ? x[i] : top;
    for (int c = 0; c < WIDE; c++)
        top = high[c] > top ? high[c] : top;
    return top;
}

static TARGET double array_soften64(double *x, int64_t count, double shift)
{
    Wide    total = { 0 };
    double  sum = 0;
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE) {
        Wide now = wide_load(x + i) - shift;

        if (wide_within(now, EXP_RANGE))
            now = wide_exp(now);
        else
            for (int c = 0; c < WIDE; c++)
                now[c] = exp(now[c]);
        total += now;
        wide_store(x + i, now);
    }
    for (; i < count; i++)
        sum += x[i] = exp(x[i] - shift);
    for (int c = 0; c < WIDE; c++)
        sum += total[c];
    return sum;
}

static TARGET int64_t array_subtract64(double *x, int64_t count, double a, const double *y,
                                       double b)
{
    Whole   below = { 0 };
    int64_t i = 0, negative = 0;

    for (; i + WIDE <= count; i += WIDE) {
        Wide now = a * wide_load(x + i) - b * wide_load(y + i);

        below -= now < 0;
        wide_store(x + i, now);
    }
    for (; i < count; i++) {
        x[i] = a * x[i] - b * y[i];
        negative += x[i] < 0;
    }
    for (int c = 0; c < WIDE; c++)
        negative += below[c];
    return negative;
}

static TARGET double array_log_sum_exp64(const double *x, int64_t count)
{
    double  top = array_largest64(x, count), sum = 0;
    Wide    total = { 0 };
    int64_t i = 0;

    if (!(top > -(double)INFINITY))
        return top;
    for (; i + WIDE <= count; i += WIDE) {
        Wide  now = wide_load(x + i) - top;
        Whole far = now < -EXP_RANGE; /* NaN stays */

        total += (Wide)((Whole)wide_exp((Wide)((Whole)now & ~far)) & ~far);
    }
    for (; i < count; i++)
        sum += exp(x[i] - top);
    for (int c = 0; c < WIDE; c++)
        sum += total[c];
    return top + log(sum);
}

/* y = k pi/2 + r, |r| <= pi/4: Taylor series of sin r and cos r, swapped and negated by k. */
INLINE void wide_waves(Wide y, Wide *sine, Wide *cosine)
{
    static const double odd[] = { 1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800,
                                  -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120,
                                  -1.0 / 6, 1 };
    static const double even[] = { 1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600,
                                   -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -1.0 / 2,
                                   1 };
    Wide  turns = y * 0.6366197723675814 + ROUNDER, k = turns - ROUNDER;
    Wide  r = y - k * 1.5707963267341256 - k * 6.077100506506192e-11, square = r * r;
    Wide  s = (Wide){ 0 } + odd[0], c = (Wide){ 0 } + even[0];
    Whole quarter = (Whole)turns, swap = -(quarter & 1);

    UNROLL for (int t = 1; t < 9; t++) {
        s = s * square + odd[t];
        c = c * square + even[t];
    }
    s *= r;
    *sine = (Wide)((((Whole)c & swap) | ((Whole)s & ~swap)) ^ (quarter & 2) << 62);
    *cosine = (Wide)((((Whole)s & swap) | ((Whole)c & ~swap)) ^ ((quarter + 1) & 2) << 62);
}

static TARGET void array_waves(const double *y, int64_t count, double size, double *sines,
                               double *cosines)
{
    int64_t i = 0;

    for (; i + WIDE <= count && wide_within(wide_load(y + i), WAVE_RANGE); i += WIDE) {
        Wide sine, cosine;

        wide_waves(wide_load(y + i), &sine, &cosine);
        wide_store(sines + i, sine * size);
        wide_store(cosines + i, cosine * size);
    }
    for (; i < count; i++) {
        double sine = size * sin(y[i]), cosine = size * cos(y[i]);

        sines[i] = sine;
        cosines[i] = cosine;
    }
}
