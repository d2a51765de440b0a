/* match.c -- pairs of records, and what they say together; see match.h. */
#include "app/study/match.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Pair {
    const ResultRow *a, *b;
} Pair;

typedef struct Matcher {
    const Results   *a, *b;
    const MatchPlan *plan;
    bool            *partnered; /* of each row of b */
    Pair            *pairs;     /* measured in both, in the order of a */
    int              count;
    double          *a_ms, *b_ms; /* of the pairs of one comparison */
    Matches         *out;
} Matcher;

/* ---- pairs ------------------------------------------------------------------ */

/* The row that answers a: of equal keys the last, else, of several contents of a script, the one
 * that was measured last. */
static bool answers_better(const ResultRow *a, const ResultRow *b, const ResultRow *before)
{
    bool same = !strcmp(a->script_sha256, b->script_sha256);

    if (!before || same != !strcmp(a->script_sha256, before->script_sha256))
        return !before || same;
    return strcmp(b->time, before->time) >= 0;
}

static const ResultRow *partner(Matcher *m, const ResultRow *a)
{
    const ResultRow *best = NULL;

    for (int i = 0; i < m->b->count; i++) {
        const ResultRow *b = &m->b->rows[i];

        if (!row_same_point(a, b, m->plan->counted))
            continue;
        m->partnered[i] = true;
        if (answers_better(a, b, best))
            best = b;
    }
    return best;
}

static void add_apart(Matches *out, const ResultRow *row, ApartKind kind, const char *why)
{
    MatchApart *apart = &out->apart[out->apart_count++];

    *apart = (MatchApart){ row, kind, { 0 } };
    snprintf(apart->why, sizeof(apart->why), "%s", why);
    out->count_of[kind]++;
}

/* None is below 0. */
static Number cost_of(const ResultRow *row, const char *path)
{
    Number cost = row_number(row, path);

    return cost.value >= 0 ? cost : NUMBER_NONE;
}

/* Not valid where either was not measured; 1 where both are 0. */
static Number plain_ratio(const Pair *pair, const char *path)
{
    Number x = cost_of(pair->a, path), y = cost_of(pair->b, path);

    if (!x.valid || !y.valid)
        return NUMBER_NONE;
    return number_of(x.value > 0 ? y.value / x.value : y.value > 0 ? (double)INFINITY : 1);
}

static const struct {
    MatchCost   cost;
    const char *path;
} counted[] = {
    { MATCH_FLOPS, "flops.counted" },
    { MATCH_BYTES, "bytes" },
    { MATCH_MEMORY, "memory.arena_peak" },
    { MATCH_MEMORY, "memory.device_peak" },
};
#define COUNTED (sizeof(counted) / sizeof(*counted))

/* A number that the second has no more would pass every gate. */
static void find_lost(Matcher *m, const Pair *pair)
{
    Text lost = { 0 };

    for (size_t i = 0; i < COUNTED; i++)
        if (cost_of(pair->a, counted[i].path).valid && !cost_of(pair->b, counted[i].path).valid)
            text_addf(&lost, "%s%s", lost.length ? ", " : "", counted[i].path);
    if (lost.length) {
        text_add(&lost, ": no number in the second");
        add_apart(m->out, pair->a, APART_UNMEASURED, text_str(&lost));
    }
    text_free(&lost);
}

static void pair_row(Matcher *m, const ResultRow *a)
{
    const ResultRow *b = partner(m, a);
    char             why[600];

    if (!b) {
        add_apart(m->out, a, APART_MISSING, "missing in the second");
    } else if (a->ok && b->ok) {
        m->pairs[m->count] = (Pair){ a, b };
        find_lost(m, &m->pairs[m->count++]);
    } else if (a->ok) {
        snprintf(why, sizeof(why), "%s in the second: %.500s", b->status, b->message);
        add_apart(m->out, a, APART_UNMEASURED, why);
    }
}

static void pair_all(Matcher *m)
{
    for (int i = 0; i < m->a->count; i++)
        pair_row(m, &m->a->rows[i]);
    for (int i = 0; i < m->b->count; i++)
        if (!m->partnered[i])
            add_apart(m->out, &m->b->rows[i], APART_NEW, "new in the second");
}

/* ---- what is counted ---------------------------------------------------------- */

static void count_costs(Match *match, const Pair *pair)
{
    for (size_t i = 0; i < COUNTED; i++) {
        Number *most = &match->ratio[counted[i].cost].value;
        Number  ratio = plain_ratio(pair, counted[i].path);

        if (ratio.valid && (!most->valid || ratio.value > most->value))
            *most = ratio;
    }
}

/* ---- time --------------------------------------------------------------------- */

/* The spoilers that `run` warns of, where they may move a median: more outliers than it bears, and
 * drift and lost processors beside a spread that they explain. */
#define SPOILED_OUTLIERS 0.2
#define SPOILED_DRIFT 0.1
#define SPOILED_SPREAD 0.05

bool row_is_spoiled(const ResultRow *row)
{
    Number median = row_number(row, "time_ms.median"), q1 = row_number(row, "time_ms.q1"),
           q3 = row_number(row, "time_ms.q3"), outliers = row_number(row, "time_ms.outliers"),
           drift = row_number(row, "time_ms.drift"),
           switches = row_number(row, "time_ms.involuntary_switches");
    int    count = row_sample_count(row);
    double spread;

    if (!median.valid || !(median.value > 0) || !q1.valid || !q3.valid)
        return false;
    spread = (q3.value - q1.value) / median.value;
    return (outliers.valid && outliers.value > SPOILED_OUTLIERS * count) ||
           (drift.valid && fabs(drift.value) > fmax(SPOILED_DRIFT, spread)) ||
           (switches.valid && switches.value >= count && spread > SPOILED_SPREAD);
}

/* sweep --against ran one beside the other. */
static bool ran_in_turn(const Pair *pair)
{
    return *pair->a->against && !*pair->b->against;
}

static double median_ms(const ResultRow *row)
{
    Number median = row_number(row, "time_ms.median");

    return median.valid ? median.value : 0;
}

/* Why the time of so many good pairs is not judged. */
static const char *lacks(const Match *match, bool turns, int good)
{
    if (!turns)
        return MATCH_NO_TURNS;
    if (!match->ratio[MATCH_TIME].value.valid && !match->busy)
        return "it was not measured";
    if (good < RATIO_PAIRS_LEAST)
        return match->busy ? "the machine was busy" : "fewer than five processes";
    return NULL;
}

static bool time_pairs(Matcher *m, const Pair *pairs, int count, Match *match, Error *err)
{
    bool turns = true;
    int  good = 0;

    for (int i = 0; i < count; i++) {
        turns = turns && ran_in_turn(&pairs[i]);
        if (row_is_spoiled(pairs[i].a) || row_is_spoiled(pairs[i].b)) {
            match->busy++;
            continue;
        }
        m->a_ms[good] = median_ms(pairs[i].a);
        m->b_ms[good++] = median_ms(pairs[i].b);
    }
    if (!ratio_of_pairs(m->a_ms, m->b_ms, good, m->plan->over, &match->ratio[MATCH_TIME], err))
        return false;
    match->unjudged = lacks(match, turns, good);
    return true;
}

/* ---- comparisons -------------------------------------------------------------- */

static int count_seeds(const Pair *pairs, int count)
{
    int seeds = 0;

    for (int i = 0; i < count; i++) {
        int j = 0;

        while (j < i && pairs[j].a->seed != pairs[i].a->seed)
            j++;
        seeds += j == i;
    }
    return seeds;
}

/* Repetitions stand together: rows are sorted by series, then n. */
static int repetitions(const Matcher *m, int from)
{
    int end = from;

    while (end < m->count && row_same_comparison(m->pairs[from].a, m->pairs[end].a))
        end++;
    return end - from;
}

static bool compare(Matcher *m, const Pair *pairs, int count, Error *err)
{
    Match *match = &m->out->items[m->out->count++];

    *match = (Match){ .row = pairs->a, .seeds = count_seeds(pairs, count), .pairs = count };
    for (int i = 0; i < count; i++)
        count_costs(match, &pairs[i]);
    return m->plan->counted || time_pairs(m, pairs, count, match, err);
}

/* Corrects the probabilities of all comparisons that have a verdict, and gives it. */
static bool judge(Matches *all, const MatchPlan *plan, Error *err)
{
    double *p = malloc(((size_t)all->count + 1) * sizeof(*p));
    bool    ok = p || error_set(err, ERR_NOMEM, "not enough memory for the comparisons");

    for (int i = 0; ok && i < all->count; i++) {
        const Match *match = &all->items[i];

        p[i] = plan->counted || match->unjudged ? (double)NAN : match->ratio[MATCH_TIME].p.value;
    }
    ok = ok && stats_holm(p, all->count, err);
    for (int i = 0; ok && i < all->count; i++) {
        Match *match = &all->items[i];

        match->p = isnan(p[i]) ? NUMBER_NONE : number_of(p[i]);
        match->dearer[MATCH_TIME] = match->p.valid && match->p.value <= MATCH_LEVEL;
        for (int cost = MATCH_FLOPS; cost < MATCH_COSTS; cost++)
            match->dearer[cost] = match->ratio[cost].value.valid &&
                                  !(match->ratio[cost].value.value <= 1 + plan->over);
    }
    free(p);
    return ok;
}

static bool allocate(Matcher *m, Error *err)
{
    size_t rows = (size_t)m->a->count + 1, apart = rows + (size_t)m->b->count;

    m->partnered = calloc((size_t)m->b->count + 1, sizeof(*m->partnered));
    m->pairs = calloc(rows, sizeof(*m->pairs));
    m->a_ms = calloc(rows, sizeof(*m->a_ms));
    m->b_ms = calloc(rows, sizeof(*m->b_ms));
    m->out->items = calloc(rows, sizeof(*m->out->items));
    m->out->apart = calloc(apart, sizeof(*m->out->apart));
    return (m->partnered && m->pairs && m->a_ms && m->b_ms && m->out->items && m->out->apart) ||
           error_set(err, ERR_NOMEM, "not enough memory for the comparisons");
}

bool matches_find(const Results *a, const Results *b, const MatchPlan *plan, Matches *out,
                  Error *err)
{
    Matcher m = { .a = a, .b = b, .plan = plan, .out = out };
    bool    ok;

    *out = (Matches){ 0 };
    ok = allocate(&m, err);
    if (ok)
        pair_all(&m);
    for (int i = 0, all; ok && i < m.count; i += all) {
        all = repetitions(&m, i);
        ok = compare(&m, &m.pairs[i], all, err);
    }
    ok = ok && judge(out, plan, err);
    free(m.partnered);
    free(m.pairs);
    free(m.a_ms);
    free(m.b_ms);
    return ok;
}

void matches_free(Matches *matches)
{
    free(matches->items);
    free(matches->apart);
    *matches = (Matches){ 0 };
}

bool match_is_cheaper(const Match *match, const MatchPlan *plan, MatchCost *cost)
{
    double least = 1 / (1 + plan->over);
    bool   found = false;

    for (int c = MATCH_FLOPS; c < MATCH_COSTS; c++) {
        Number ratio = match->ratio[c].value;

        if (!ratio.valid || !(ratio.value < least))
            continue;
        least = ratio.value;
        *cost = (MatchCost)c;
        found = true;
    }
    return found;
}

bool match_is_dearer(const Match *match)
{
    for (int cost = 0; cost < MATCH_COSTS; cost++)
        if (match->dearer[cost])
            return true;
    return false;
}

const char *apart_name(ApartKind kind)
{
    static const char *const names[APART_KINDS] = { "missing", "no_longer_measured", "new" };

    return names[kind];
}

const char *match_cost_name(MatchCost cost)
{
    static const char *const names[MATCH_COSTS] = { "time", "FLOPs", "bytes", "memory" };

    return names[cost];
}
