/* reach_path.c -- a shortest way between two tokens; see reach.h.
 *
 * The tokens that query i comes to after t layers from the top are marked for
 * every t; then the way is found from the bottom up, each time with the lowest
 * token that is marked and leads on.
 */
#include <stdlib.h>
#include <string.h>

#include "attn/study/reach_layer.h"

typedef struct Search {
    const ReachStack *stack;
    int64_t           n;
    uint8_t          *marks; /* [depth + 1][n]: token is come to after t layers from the top */
    uint8_t          *done;  /* lists gone through in this layer */
} Search;

static uint8_t *marks_at(const Search *s, int t)
{
    return s->marks + t * s->n;
}

static void mark_list(const ReachLayer *l, int32_t list, uint8_t *to)
{
    for (int64_t e = l->first[list]; e < l->first[list + 1]; e++) {
        int32_t         edge = l->edge[e];
        const ReachRun *run = edge < 0 ? &l->run[~edge] : NULL;

        if (!run)
            to[edge] = 1;
        else if (run->step == 1)
            memset(to + run->start, 1, (size_t)run->count);
        else
            for (int64_t c = 0; c < run->count; c++)
                to[run->start + c * run->step] = 1;
    }
}

/* Step t of a way of `hops` layers from the top. */
static void mark_step(Search *s, int hops, int t)
{
    const ReachLayer *l = reach_layer_at(s->stack, hops - t + 1);
    const uint8_t    *from = marks_at(s, t - 1);
    uint8_t          *to = marks_at(s, t);

    memset(s->done, 0, (size_t)l->lists);
    if (s->stack->residual)
        memcpy(to, from, (size_t)s->n);
    else
        memset(to, 0, (size_t)s->n);
    for (int64_t k = 0; k < s->n; k++)
        if (from[k] && !s->done[l->list[k]]) {
            s->done[l->list[k]] = 1;
            mark_list(l, l->list[k], to);
        }
}

static bool has_key(const ReachLayer *l, int64_t k, int64_t key)
{
    for (int64_t e = l->first[l->list[k]]; e < l->first[l->list[k] + 1]; e++) {
        int32_t         edge = l->edge[e];
        const ReachRun *run = edge < 0 ? &l->run[~edge] : NULL;
        int64_t         at = run ? key - run->start : 0;

        if (run ? at >= 0 && at % run->step == 0 && at / run->step < run->count : edge == key)
            return true;
    }
    return false;
}

/* Which of the tokens come to before step t leads to `key`. */
static int64_t step_back(const Search *s, int hops, int t, int64_t key)
{
    const ReachLayer *l = reach_layer_at(s->stack, hops - t + 1);
    const uint8_t    *from = marks_at(s, t - 1);

    for (int64_t k = 0; k < s->n; k++)
        if (from[k] && ((s->stack->residual && k == key) || has_key(l, k, key)))
            return k;
    return key;
}

/* Marks what a way of `hops` layers can come to; one layer repeated needs only its
 * last step. */
static void mark_way(Search *s, int64_t i, int hops)
{
    bool again = s->stack->count > 1;

    if (hops == 0 || again) {
        memset(s->marks, 0, (size_t)s->n);
        s->marks[i] = 1;
    }
    for (int t = again ? 1 : hops; t >= 1 && t <= hops; t++)
        mark_step(s, hops, t);
}

/* One layer repeated has come to all it ever will. */
static bool at_rest(const Search *s, int hops)
{
    return s->stack->count == 1 && hops > 0 &&
           memcmp(marks_at(s, hops), marks_at(s, hops - 1), (size_t)s->n) == 0;
}

static int find_way(Search *s, int64_t i, int64_t j, int64_t *path)
{
    for (int hops = 0; hops <= s->stack->depth; hops++) {
        mark_way(s, i, hops);
        if (!marks_at(s, hops)[j] && s->stack->residual && at_rest(s, hops))
            return -1;
        if (!marks_at(s, hops)[j] || (!s->stack->residual && hops < s->stack->depth))
            continue;
        path[hops] = j;
        for (int t = hops; t > 0; t--)
            path[t - 1] = step_back(s, hops, t, path[t]);
        return hops;
    }
    return -1;
}

int reach_path(const ReachStack *stack, int64_t i, int64_t j, int64_t *path)
{
    int64_t n = reach_layer_tokens(stack->layers[0]);
    Search  s = { .stack = stack, .n = n };
    int     hops = -2;

    s.marks = malloc((size_t)(n * (stack->depth + 1)));
    s.done = malloc((size_t)n);
    if (s.marks && s.done)
        hops = find_way(&s, i, j, path);
    free(s.marks);
    free(s.done);
    return hops;
}
