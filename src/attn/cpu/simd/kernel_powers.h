/* kernel_powers.h -- the part of kernel_body.h that takes exponentials, logarithms, sines and
 * cosines in double, WIDE at once.
 */

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
