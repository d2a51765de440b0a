/* lsh_chunks.c -- see lsh_chunks.h. */
#include "attn/mech/learned/lsh_chunks.h"

#include <math.h>

#include "attn/run.h"

#define ONLY_SELF -1e29 /* a log-sum-exp below it: nothing but the position itself */
#define COARSE 16       /* a log-sum-exp as large as this is not exact enough in float */

/* Rounds, and their cells together, that get a picture of their own. */
#define ROUNDS_SHOWN 8
#define CELLS_SHOWN  5e7

typedef struct Seen {
    const Lsh      *l;
    AttendInput     in;
    double         *z; /* [h*n] log-sum-exp of each row */
    bool            exclude_self, weigh; /* weigh: w ~ N exp(s) */
    const CellRows *visits, *kept;
    const Pattern  *first; /* what the first round saw; NULL: not shown */
} Seen;

/* The cells with N_ij > 0. */
static int64_t visited(const void *context, int64_t head, int64_t i, int32_t *count, int32_t *key)
{
    const Lsh     *l = ((const Seen *)context)->l;
    const int32_t *order = tensor_i32(&l->order) + head * l->rounds * l->n;
    const int32_t *bucket = tensor_i32(&l->bucket) + head * l->rounds * l->n;
    const int32_t *chunk = tensor_i32(&l->chunk) + head * l->rounds * l->n;
    int64_t        found = 0, first;

    for (int64_t own = l->first * l->n; own < l->end * l->n; own += l->n) {
        int64_t base = l->joint ? 0 : own;
        int64_t chunks = chunks_window(&l->chunks, chunk[own + i], &first);

        for (int64_t w = 0; w < chunks; w++) {
            int64_t c = (first + w) % l->chunks.count, s = base + c * l->chunks.block;

            for (; s < base + chunks_end(&l->chunks, c); s++) {
                int32_t j = order[s];
                bool    same = s >= own && s < own + l->n && bucket[own + j] == bucket[own + i];

                if ((same || l->across) && !(l->causal && j > i) && !count[j]++)
                    key[found++] = j;
            }
        }
    }
    return found;
}

/* K_i: without the own position, unless there is no other. */
static int64_t attended(const void *context, int64_t head, int64_t i, int32_t *count,
                        int32_t *key)
{
    int64_t found = visited(context, head, i, count, key), kept = 0;

    if (!((const Seen *)context)->exclude_self || found == 1)
        return found;
    for (int64_t c = 0; c < found; c++)
        if (key[c] != i)
            key[kept++] = key[c];
    count[i] = 0;
    return kept;
}

/* How often a cell counts. */
static double times(const Seen *s, int64_t head, int64_t i, int64_t j)
{
    return s->weigh ? (double)cell_rows_count(s->visits, head, i, j) : 1;
}

static double cell(const Seen *s, int64_t head, int64_t i, int64_t j, double z)
{
    return times(s, head, i, j) * exp(attend_score(&s->in, s->l->h, head, i, j) - z);
}

static void read_weights(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const Seen *s = view->context;
    double      z = s->z[head * s->l->n + i];

    for (int64_t c = 0; c < count; c++)
        out[c] = z < ONLY_SELF ? 1 : (float)cell(s, head, i, start + c * step, z);
}

/* The kernel's sums are in float: where the last digits of a large one would be
 * seen in the weights they are put right. */
static void refine(Run *r, Seen *s, Tensor z)
{
    for (int64_t row = 0; row < r->h * r->n && !run_failed(r); row++) {
        LogSum sum = log_sum_new();

        s->z[row] = (double)tensor_f32(&z)[row];
        if (fabs(s->z[row]) < COARSE || s->z[row] < ONLY_SELF)
            continue;
        for (int64_t c = s->kept->start[row]; c < s->kept->start[row + 1]; c++) {
            int64_t head = row / r->n, i = row % r->n, j = s->kept->key[c];

            log_sum_add(&sum, attend_score(&s->in, s->l->h, head, i, j) +
                                  log(times(s, head, i, j)));
        }
        s->z[row] = log_sum_of(&sum);
    }
}

/* What each round saw by itself, before their union; not for very many cells. */
static void show_rounds(Run *r, Seen *all)
{
    const Lsh *l = all->l;
    double     cells = (double)(l->h * l->rounds) * chunks_pairs(&l->chunks);

    if (l->joint || l->rounds < 2 || l->rounds > ROUNDS_SHOWN || cells > CELLS_SHOWN)
        return;
    for (int64_t round = 0; round < l->rounds && !run_failed(r); round++) {
        Lsh      one = *l; /* read here and now only */
        Seen     seen = *all;
        Pattern *k;

        one.first = round;
        one.end = round + 1;
        seen.l = &one;
        view_stage(r, "attend", round);
        k = cell_rows_pattern(r, cell_rows_new(r, attended, &seen), COMPONENT_BUCKET);
        all->first = round == 0 ? k : all->first;
        view_pattern(r, k, false);
    }
    view_stage(r, NULL, -1);
}

/* What the rounds saw together, after each; `all` after the last. */
static void show_unions(Run *r, const Seen *last, const Pattern *all)
{
    const Lsh *l = last->l;
    double     cells = (double)(l->h * l->rounds) * chunks_pairs(&l->chunks);

    if (l->joint || l->rounds < 2 || l->rounds > ROUNDS_SHOWN || cells > CELLS_SHOWN)
        return;
    for (int64_t round = 0; round < l->rounds && !run_failed(r); round++) {
        const Pattern *k = round + 1 < l->rounds ? last->first : all;
        Lsh            some = *l; /* read here and now only */
        Seen           seen = *last;

        some.end = round + 1;
        seen.l = &some;
        if (round > 0 && round + 1 < l->rounds)
            k = cell_rows_pattern(r, cell_rows_new(r, attended, &seen), COMPONENT_BUCKET);
        view_stage(r, "combine", round);
        view_reader(r, "union", VIEW_PATTERN, DT_U8, NULL, NULL, k);
    }
    view_stage(r, NULL, -1);
}

void lsh_chunks_show(Run *r, const Lsh *l, const LshLook *look)
{
    Seen    *s = run_wants_views(r) ? run_alloc(r, 1, sizeof(*s)) : NULL;
    Pattern *k;

    if (!s)
        return;
    *s = (Seen){ .l = l, .weigh = look->weigh, .exclude_self = look->exclude_self,
                 .z = run_alloc(r, r->h * r->n, sizeof(*s->z)),
                 .in = { .q = r->q, .k = look->k, .v = r->v, .scale = look->scale } };
    s->visits = cell_rows_counted(r, visited, s);
    s->kept = s->exclude_self ? cell_rows_others(r, s->visits) : s->visits;
    k = cell_rows_pattern(r, s->kept, COMPONENT_BUCKET);
    refine(r, s, look->z);
    show_rounds(r, s);
    view_pattern(r, k, false);
    show_unions(r, s, k);
    view_reader(r, "visits", VIEW_COUNT, DT_I32, cell_rows_read, s->visits, NULL);
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, read_weights, s, k);
}
