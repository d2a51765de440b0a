/* heads.c -- see heads.h.
 *
 * The label is the first that holds: induction >= 0.3 (on repeated tokens only), previous >= 0.3,
 * self >= 0.3, first >= 0.5 (a sink), entropy >= 0.8 of the mean of ln(keys of a row) (broad),
 * offset >= 0.3 (a fixed number of tokens back).
 */
#include "attn/study/heads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_PREVIOUS 0.3
#define LABEL_SELF 0.3
#define LABEL_FIRST 0.5
#define LABEL_BROAD 0.8
#define LABEL_OFFSET 0.3

/* ---- scores by name ----------------------------------------------------------- */

static const char *const names[HEAD_SCORE_COUNT] = {
    "previous", "self", "first", "next", "entropy", "distance", "near", "induction",
    "offset",
};

const char *head_score_name(HeadScore which)
{
    return names[which];
}

bool head_score_parse(const char *name, HeadScore *out, Error *err)
{
    for (int s = 0; s < HEAD_SCORE_COUNT; s++)
        if (!strcmp(name, names[s])) {
            *out = (HeadScore)s;
            return true;
        }
    return error_set(err, ERR_USAGE, "--sort %.40s: expected previous, self, first, next, entropy, "
                     "distance, near, induction or offset; -distance puts the smallest first",
                     name);
}

bool head_order_parse(const char *text, HeadOrder *out, Error *err)
{
    *out = (HeadOrder){ .rising = *text == '-' };
    return head_score_parse(text + out->rising, &out->by, err);
}

double head_score(const HeadScores *s, HeadScore which)
{
    switch (which) {
    case HEAD_PREVIOUS: return s->previous;
    case HEAD_SELF: return s->self;
    case HEAD_FIRST: return s->first;
    case HEAD_NEXT: return s->next;
    case HEAD_ENTROPY: return s->entropy;
    case HEAD_DISTANCE: return s->distance;
    case HEAD_NEAR: return s->near;
    case HEAD_OFFSET: return s->offset;
    default: return s->induction;
    }
}

const char *const head_labels[] = { "induction", "previous", "self", "sink", "broad", "mixed",
                                    "offset", NULL };

int head_label_index(const char *label)
{
    for (int l = 0; head_labels[l]; l++)
        if (!strcmp(label, head_labels[l]))
            return l;
    return -1;
}

const char *head_label_words(const HeadScores *scores, char *room, size_t size)
{
    snprintf(room, size, "%s", scores->shown ? scores->shown : "");
    if (scores->shown && !strcmp(scores->shown, "offset"))
        snprintf(room, size, "offset %lld", (long long)scores->offset_tokens);
    return room;
}

/* Larger comes first. */
static double score_at(const HeadScores *scores, HeadOrder by, int64_t at)
{
    double value = scores[at].label ? head_score(&scores[at], by.by) : (double)NAN;

    return by.rising ? -value : value;
}

void head_scores_order(const HeadScores *scores, HeadOrder by, int64_t *order, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        int64_t at = order[i], j = i;
        double  value = score_at(scores, by, at);

        for (; j > 0 && !isnan(value) && !(score_at(scores, by, order[j - 1]) >= value); j--)
            order[j] = order[j - 1];
        order[j] = at;
    }
}

/* ---- one row ------------------------------------------------------------------- */

int64_t head_earlier(const int32_t *ids, int64_t n, int64_t *earlier)
{
    int64_t seen = 0;

    for (int64_t i = 0; i < n; i++) {
        int64_t j = i - 1;

        while (j >= 0 && ids[j] != ids[i])
            j--;
        earlier[i] = j;
        seen += j >= 0;
    }
    return seen;
}

static double row_entropy(const float *w, int64_t count)
{
    double sum = 0;

    for (int64_t j = 0; j < count; j++)
        if (w[j] > 0)
            sum -= (double)w[j] * (double)logf(w[j]);
    return sum;
}

/* The weight on keys that followed earlier occurrences of row i's token. */
static double row_induction(const int64_t *earlier, int64_t i, const float *w, int64_t low)
{
    double sum = 0;

    for (int64_t at = earlier[i]; at >= 0; at = earlier[at])
        if (at + 1 < i && at + 1 >= low)
            sum += (double)w[at + 1 - low];
    return sum;
}

static double row_near(int64_t near, int64_t i, const float *w, int64_t low, int64_t high)
{
    double sum = 0;

    for (int64_t j = low > i - near ? low : i - near; j < high && j <= i + near; j++)
        sum += (double)w[j - low];
    return sum;
}

void head_sums_row(HeadSums *sums, const HeadRows *rows, int64_t i, const float *w, int64_t low,
                   int64_t high)
{
    double distance = 0;

    for (int64_t j = low; j < high; j++)
        distance += (double)w[j - low] * (double)llabs(i - j);
    sums->distance += distance;
    sums->entropy += row_entropy(w, high - low);
    if (low < i - rows->near || high - 1 > i + rows->near) {
        sums->near += row_near(rows->near, i, w, low, high);
        sums->wide++;
    }
    if (i + 1 < high)
        sums->next += (double)w[i + 1 - low];
    if (i == 0)
        return;
    sums->previous += i - 1 >= low ? (double)w[i - 1 - low] : 0;
    for (int64_t t = 2; t <= HEAD_OFFSET_MOST && t <= i - low; t++)
        sums->back[t] += (double)w[i - t - low];
    sums->self += (double)w[i - low];
    sums->first += low == 0 ? (double)w[0] : 0;
    if (rows->seen && rows->earlier[i] >= 0)
        sums->induction += row_induction(rows->earlier, i, w, low);
}

void head_sums_add(HeadSums *to, const HeadSums *more)
{
    to->previous += more->previous;
    to->self += more->self;
    to->first += more->first;
    to->next += more->next;
    to->entropy += more->entropy;
    to->distance += more->distance;
    to->near += more->near;
    to->wide += more->wide;
    to->induction += more->induction;
    for (int t = 2; t <= HEAD_OFFSET_MOST; t++)
        to->back[t] += more->back[t];
}

/* ---- scores ---------------------------------------------------------------------- */

/* On tokens that are said twice, an induction head or one that looks for equal tokens looks a fixed
 * number back, too. */
static bool repeats_at(const HeadRows *rows, int64_t back)
{
    int64_t last = rows->n - 1, earlier = rows->seen ? rows->earlier[last] : -1;

    return rows->repeated && earlier >= 0 && (back == last - earlier || back == last - earlier - 1);
}

static const char *label_of(const HeadRows *rows, const HeadScores *s)
{
    if (rows->repeated && s->induction >= HEAD_LEAST_INDUCTION)
        return "induction";
    if (s->previous >= LABEL_PREVIOUS)
        return "previous";
    if (s->self >= LABEL_SELF)
        return "self";
    if (s->first >= LABEL_FIRST)
        return "sink";
    if (rows->log_length > 0 && s->entropy >= LABEL_BROAD * rows->log_length)
        return "broad";
    return "mixed";
}

static void find_offset(const HeadSums *s, int64_t n, HeadScores *out)
{
    out->offset = (double)NAN;
    for (int64_t t = 2; t <= HEAD_OFFSET_MOST && 2 * t <= n; t++) {
        double mean = s->back[t] / (double)(n - t);

        if (!(mean <= out->offset)) {
            out->offset = mean;
            out->offset_tokens = t;
        }
    }
}

void head_scores_of(const HeadSums *s, const HeadRows *rows, HeadScores *out)
{
    double all = (double)rows->n, pairs = rows->n > 1 ? all - 1 : (double)NAN;

    *out = (HeadScores){ .previous = s->previous / pairs, .self = s->self / pairs,
                         .first = s->first / pairs, .entropy = s->entropy / all,
                         .distance = s->distance / all, .induction_rows = rows->seen };
    out->next = rows->causal ? (double)NAN : s->next / pairs;
    out->near = s->wide ? s->near / (double)s->wide : (double)NAN;
    out->induction = rows->seen ? s->induction / (double)rows->seen : (double)NAN;
    find_offset(s, rows->n, out);
    out->label = out->shown = label_of(rows, out);
    if (!strcmp(out->label, "mixed") && out->offset >= LABEL_OFFSET &&
        !repeats_at(rows, out->offset_tokens))
        out->shown = "offset";
}
