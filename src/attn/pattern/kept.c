/* kept.c -- which keys a decoder must keep, by the rule of a pattern; see pattern.h.
 *
 * Every node says how far behind a query a key may be and still be read.  A union reads as far as
 * the farther operand, an intersection no farther than the nearer one.  The complement of a set of
 * columns is a set of columns; of a set of distances it is unbounded.
 */
#include "attn/pattern/node.h"

#define FOREVER INT64_MAX
#define NEVER   (-1)
#define PERIOD_MOST (1 << 16) /* keys that are looked at for the share that is kept for ever */

/* The farthest distance at which a key is read, a multiple of `step` as all others are; with
 * `local`, all are of pattern_log. */
typedef struct Reach {
    int64_t far, step, local;
} Reach;

static const Reach never = { NEVER, 1, 0 }, forever = { FOREVER, 1, 0 };

static Reach reach_of(const Pattern *p, int64_t j, bool outside);

static int64_t divisor_of(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* The largest distance of pattern_log up to far. */
static int64_t log_distance(int64_t far, int64_t local)
{
    int64_t apart = 1;

    if (!local || far < local || far == FOREVER)
        return far;
    while (apart <= (far - local + 1) / 2)
        apart *= 2;
    return local - 1 + apart;
}

/* Read in x or in y. */
static Reach either(Reach x, Reach y)
{
    if (x.far == NEVER || y.far == NEVER)
        return x.far == NEVER ? y : x;
    return (Reach){ max_i64(x.far, y.far), divisor_of(x.step, y.step),
                    x.local == y.local ? x.local : 0 };
}

/* Read in x and in y. */
static Reach both(Reach x, Reach y)
{
    Reach out = { min_i64(x.far, y.far), 1, x.local ? x.local : y.local };

    if (out.far == NEVER)
        return never;
    out.far = log_distance(log_distance(out.far, x.local), y.local);
    if (x.step / divisor_of(x.step, y.step) <= INT32_MAX / y.step)
        out.step = x.step / divisor_of(x.step, y.step) * y.step;
    if (out.far != FOREVER)
        out.far = out.far / out.step * out.step;
    return out;
}

/* Whether column j is one of the intervals, which are in order. */
static bool in_columns(const Pattern *p, int64_t j)
{
    const PatternRun *runs = p->table;
    int64_t           lo = 0, hi = p->a;

    while (lo < hi) {
        int64_t middle = (lo + hi) / 2;

        if (runs[middle].start + runs[middle].count <= j)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < p->a && runs[lo].start <= j;
}

static bool in_period(const Pattern *p, int64_t j)
{
    return j % p->a >= p->c && j % p->a < p->c + p->b;
}

/* Of a primitive. */
static Reach reach_of_rule(const Pattern *p, int64_t j)
{
    switch (p->rule) {
    case RULE_NONE: return never;
    case RULE_BAND:
        return p->far < 0 ? never : (Reach){ p->far / p->apart * p->apart, p->apart, 0 };
    case RULE_SPAN: return (Reach){ p->span - 1, 1, 0 };
    case RULE_STRIDE: return (Reach){ FOREVER, p->apart, 0 };
    case RULE_LOG: return (Reach){ FOREVER, 1, p->far };
    case RULE_COLUMNS: return in_columns(p, j) ? forever : never;
    case RULE_PERIOD: return in_period(p, j) ? forever : never;
    case RULE_ROWS: return j < p->b ? (Reach){ p->b - 1 - j, 1, 0 } : never;
    case RULE_RING: return j == p->a ? forever : never;
    default: return forever;
    }
}

/* Of the cells that a primitive leaves out. */
static Reach reach_outside_rule(const Pattern *p, int64_t j)
{
    switch (p->rule) {
    case RULE_ALL: return never;
    case RULE_COLUMNS: return in_columns(p, j) ? never : forever;
    case RULE_PERIOD: return in_period(p, j) ? never : forever;
    default: return forever;
    }
}

static Reach reach_of_tile(const Pattern *p, int64_t j, bool outside)
{
    Reach x = reach_of(p->x, j / p->a, outside);

    if (x.far >= FOREVER / p->a - 1) /* or as good as for ever */
        return forever;
    return x.far == NEVER ? never : (Reach){ (x.far + 1) * p->a - 1, 1, 0 };
}

static Reach reach_of_heads(const Pattern *p, int64_t j, bool outside)
{
    Reach out = never;

    for (int64_t t = 0; t < p->part_count; t++)
        out = either(out, reach_of(p->parts[t], j, outside));
    return out;
}

/* outside: of the cells that the pattern leaves out. */
static Reach reach_of(const Pattern *p, int64_t j, bool outside)
{
    switch (p->rule) {
    case RULE_UNION:
        return outside ? both(reach_of(p->x, j, true), reach_of(p->y, j, true))
                       : either(reach_of(p->x, j, false), reach_of(p->y, j, false));
    case RULE_INTERSECT:
        return outside ? either(reach_of(p->x, j, true), reach_of(p->y, j, true))
                       : both(reach_of(p->x, j, false), reach_of(p->y, j, false));
    case RULE_DIFFERENCE:
        return outside ? either(reach_of(p->x, j, true), reach_of(p->y, j, false))
                       : both(reach_of(p->x, j, false), reach_of(p->y, j, true));
    case RULE_COMPLEMENT: return reach_of(p->x, j, !outside);
    case RULE_SAME: return reach_of(p->x, j, outside);
    case RULE_TILE: return reach_of_tile(p, j, outside);
    case RULE_BY_HEAD: return reach_of_heads(p, j, outside);
    default: return outside ? reach_outside_rule(p, j) : reach_of_rule(p, j);
    }
}

/* Keys after which the answers for keys repeat, far from the start; 1: all have the same. */
static int64_t period_of(const Pattern *p)
{
    int64_t period = p->rule == RULE_PERIOD ? p->a : 1, x;

    if (p->rule == RULE_BY_HEAD) {
        for (int64_t t = 0; t < p->part_count && period < PERIOD_MOST; t++) {
            x = period_of(p->parts[t]);
            period = period / divisor_of(period, x) * x;
        }
    } else if (p->x) {
        x = period_of(p->x) * (p->rule == RULE_TILE ? p->a : 1);
        period = p->y ? period_of(p->y) : 1;
        period = period / divisor_of(period, x) * x;
    }
    return min_i64(period, PERIOD_MOST);
}

/* Whether all keys have the same answer. */
static bool same_for_all(const Pattern *p)
{
    bool same = p->rule != RULE_COLUMNS && p->rule != RULE_PERIOD && p->rule != RULE_ROWS &&
                p->rule != RULE_RING;

    for (int64_t t = 0; same && t < p->part_count; t++)
        same = same_for_all(p->parts[t]);
    return same && (!p->x || same_for_all(p->x)) && (!p->y || same_for_all(p->y));
}

int64_t pattern_kept(const Pattern *p, int64_t n)
{
    int64_t kept = 0, far;

    if (same_for_all(p)) {
        far = reach_of(p, 0, false).far;
        return far == FOREVER ? n : min_i64(far + 1, n);
    }
    for (int64_t j = 0; j < n; j++)
        kept += reach_of(p, j, false).far >= n - 1 - j;
    return kept;
}

double pattern_kept_share(const Pattern *p)
{
    int64_t period = period_of(p), kept = 0;
    int64_t from = (p->shape.m / period + 1) * period;

    for (int64_t j = from; j < from + period; j++)
        kept += reach_of(p, j, false).far == FOREVER;
    return (double)kept / (double)period;
}
