/* missed.c -- the strongest keys of exact attention, found or missed; see views.h.
 *
 * Memory is that of the keys: one byte for each says what found it.  The view is the union of one
 * list for each bit.
 */
#include "app/result/views.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/threads.h"
#include "profile/strongest.h"

#define SOON 4e6       /* exact weights that are computed at once when a caller waits */
#define ROUNDS_MOST 63 /* bits of `seen` below the one that says that the key is found */
#define BITS 8

typedef struct MissedParts {
    Strongest      strongest, own; /* own: by the mechanism's weights, where ranked */
    const Pattern *cells;          /* NULL where ranked */
    const Pattern *round[ROUNDS_MOST];
    uint8_t       *bits;           /* [h][n][keys] what found it; 0: no such key */
    uint64_t      *seen;           /* [h][n][keys] rounds that found it */
    Arena         *arena;          /* of the pattern */
    int64_t       *itself;         /* [h]; NULL: the mechanism does not leave a query's key out */
    ViewFound      about;
    const char    *causes[8];      /* what the bits mean in the cells' own view */
    View           view;
} MissedParts;

/* ---- what is looked at -------------------------------------------------------- */

static bool is_pair_matrix(const Run *run, const View *view)
{
    return view && view->rank >= 2 && view_rows(view) == run->n && view_cols(view) == run->m &&
           (view_planes(view) == run->h || view_planes(view) == 1);
}

/* Cells that say which keys a query has; NULL where all keys are allowed. */
static const Pattern *chosen_cells(const Run *run)
{
    const char *names[] = { run->mechanism->picture ? run->mechanism->picture : "connectivity",
                            "connectivity" };

    for (int i = 0; i < 2; i++) {
        const View *view = run_view(run, names[i]);

        if (is_pair_matrix(run, view) && view->kind == VIEW_PATTERN && view->support &&
            !pattern_is_trivial(run, view->support))
            return view->support;
    }
    return NULL;
}

/* A cause is named as in the view of the chosen cells; that of no kind is what was missed. */
static void name_causes(MissedParts *p, const Run *run)
{
    for (int v = 0; p->cells && v < run->view_count; v++) {
        const View *view = &run->views[v];

        if (view->support != p->cells || !view->components)
            continue;
        for (int bit = 0; bit < 8; bit++)
            p->causes[bit] = 1 << bit == COMPONENT_OTHER ? NULL : view->components[bit];
        p->view.components = p->causes;
    }
}

bool missed_is_offered(const Run *run)
{
    return !run->of_x && run->q.data && run->k.data &&
           !run_view(run, MISSED_VIEW) &&
           (is_pair_matrix(run, run_view(run, "connectivity")) ||
            is_pair_matrix(run, run_view(run, "weights")));
}

bool missed_is_promised(const Mechanism *m)
{
    if (m->needs_x || m->needs_attn || m->needs_v || m->classes & CLASS_BASELINE)
        return false;
    for (const ViewPromise *v = m->views; v && v->name; v++)
        if (!strcmp(v->name, "connectivity") || !strcmp(v->name, "weights"))
            return true;
    return false;
}

/* Finds iterations with cells of their own before the mechanism's last ones. */
static void find_rounds(const Run *run, Missed *missed)
{
    for (int i = 0; i < run->view_count && missed->rounds < ROUNDS_MOST; i++) {
        const View *view = &run->views[i];

        if (strcmp(view->name, "connectivity") || view->iteration < 0 || !view->support ||
            !is_pair_matrix(run, view) || run_view(run, view->name) == view)
            continue;
        missed->round_step[missed->rounds] = view->step;
        missed->parts->round[missed->rounds++] = view->support;
    }
}

/* ---- looking ------------------------------------------------------------------ */

/* Sets bit `mark` of seen for each key of the row that is an allowed cell, and the cell's own bits
 * where bits is given. */
static void look_for_key(const Pattern *cells, PatternRow *row, int64_t head, int64_t i,
                         const int32_t *key, int64_t count, uint64_t mark, uint64_t *seen,
                         uint8_t *bits)
{
    pattern_row(cells, head, i, row);
    for (int64_t x = 0; x < row->count && !row->failed; x++) {
        const PatternRun *run = &row->runs[x];

        for (int64_t c = 0; c < count; c++) {
            int64_t from = key[c] - run->start;

            if (key[c] < 0 || from < 0 || from % run->step || from / run->step >= run->count)
                continue;
            seen[c] |= mark;
            if (bits)
                bits[c] |= run->bits;
        }
    }
}

static int64_t pattern_plane(const Pattern *cells, int64_t head)
{
    return pattern_per_head(cells) ? head : 0;
}

/* The lowest bit names the cause.  "other" means missed in the view, so a cause of that name
 * becomes plain "found". */
static uint8_t finder(const Missed *missed, uint64_t seen, uint8_t causes, bool found)
{
    if (!found)
        return COMPONENT_OTHER;
    if (missed->parts->about.rounds == 0)
        return (uint8_t)(causes & -causes);
    for (int r = 0, bit = 1; r < VIEW_FOUND_ROUNDS; r++, bit <<= 1) {
        if (bit == COMPONENT_OTHER)
            bit <<= 1;
        if (seen >> r & 1 || r == VIEW_FOUND_ROUNDS - 1 || missed->rounds == 0)
            return (uint8_t)bit;
    }
    return COMPONENT_WINDOW;
}

typedef struct Looking {
    Missed     *missed;
    uint8_t    *causes;
    atomic_bool failed;
} Looking;

static void look_row(void *context, int64_t item, int worker)
{
    Looking     *l = context;
    Missed      *o = l->missed;
    MissedParts *p = o->parts;
    int64_t      head = item / o->n, i = item % o->n, k = o->keys;
    int32_t     *key = p->strongest.key + item * k;
    uint64_t    *seen = p->seen + item * k;
    PatternRow   row = { 0 };

    (void)worker;
    if (p->cells)
        look_for_key(p->cells, &row, pattern_plane(p->cells, head), i, key, k, 1ull << 63, seen,
                     l->causes + item * k);
    for (int r = 0; r < o->rounds; r++)
        look_for_key(p->round[r], &row, pattern_plane(p->round[r], head), i, key, k, 1ull << r,
                     seen, NULL);
    for (int64_t c = 0; !p->cells && c < k && key[c] >= 0; c++)
        for (int64_t x = 0; x < k; x++)
            if (p->own.key[item * k + x] == key[c])
                seen[c] |= 1ull << 63;
    for (int64_t c = 0; c < k; c++) /* a round's cell that the union leaves out does not count */
        seen[c] = seen[c] >> 63 ? seen[c] : 0;
    if (row.failed)
        atomic_store(&l->failed, true);
    pattern_row_free(&row);
}

/* ---- numbers -------------------------------------------------------------------- */

typedef struct Sums {
    double keys, found, weight, found_weight, alone[ROUNDS_MOST], together[ROUNDS_MOST];
} Sums;

static void add_row(Missed *o, int64_t row, Sums *s)
{
    const MissedParts *p = o->parts;
    double             keys = 0, found = 0;

    for (int64_t x = row * o->keys; x < (row + 1) * o->keys && p->strongest.key[x] >= 0; x++) {
        bool     there = p->seen[x] >> 63;
        uint64_t rounds = p->seen[x];

        keys++;
        found += there;
        s->weight += (double)p->strongest.weight[x];
        s->found_weight += there ? (double)p->strongest.weight[x] : 0;
        for (int r = 0; r < o->rounds; r++) {
            s->alone[r] += rounds >> r & 1;
            s->together[r] += (rounds & ((2ull << r) - 1)) != 0;
        }
    }
    o->query[row] = keys > 0 ? found / keys : (double)NAN;
    s->keys += keys;
    s->found += found;
}

static void write_sums(Missed *o, int64_t at, const Sums *s)
{
    o->found[at] = s->keys > 0 ? s->found / s->keys : (double)NAN;
    o->mass[at] = s->weight > 0 ? s->found_weight / s->weight : (double)NAN;
    for (int r = 0; r < o->rounds; r++) {
        o->alone[at * o->rounds + r] = s->keys > 0 ? s->alone[r] / s->keys : (double)NAN;
        o->together[at * o->rounds + r] = s->keys > 0 ? s->together[r] / s->keys : (double)NAN;
    }
}

static void sum_up(Missed *o)
{
    Sums all = { 0 };

    for (int64_t head = 0; head < o->h; head++) {
        Sums own = { 0 };

        for (int64_t i = 0; i < o->n; i++)
            add_row(o, head * o->n + i, &own);
        write_sums(o, head, &own);
        all.keys += own.keys;
        all.found += own.found;
        all.weight += own.weight;
        all.found_weight += own.found_weight;
        for (int r = 0; r < o->rounds; r++) {
            all.alone[r] += own.alone[r];
            all.together[r] += own.together[r];
        }
    }
    write_sums(o, o->h, &all);
}

/* ---- the view ------------------------------------------------------------------ */

static int by_key_index(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

/* The cells of one bit as a pattern; NULL: no memory, or none with *count 0. */
static Pattern *cells_of_bit(Missed *o, PatternShape shape, uint8_t bit, int64_t *count)
{
    MissedParts *p = o->parts;
    int64_t      rows = o->h * o->n, *offset;
    int32_t     *list;

    *count = 0;
    for (int64_t x = 0; x < rows * o->keys; x++)
        *count += p->bits[x] == bit;
    if (!*count)
        return NULL;
    offset = arena_alloc(p->arena, rows + 1, sizeof(*offset));
    list = arena_alloc(p->arena, *count, sizeof(*list));
    if (!offset || !list)
        return NULL;
    *count = 0;
    for (int64_t row = 0; row < rows; row++) {
        offset[row] = *count;
        for (int64_t x = row * o->keys; x < (row + 1) * o->keys; x++)
            if (p->bits[x] == bit)
                list[(*count)++] = p->strongest.key[x];
        qsort(list + offset[row], (size_t)(*count - offset[row]), sizeof(*list), by_key_index);
    }
    offset[rows] = *count;
    return pattern_lists(p->arena, shape, offset, list, bit);
}

/* Rows of each head whose own key is among the strongest, and missed. */
static void count_themselves(Missed *o)
{
    MissedParts *p = o->parts;

    p->itself = arena_zalloc(p->arena, o->h, sizeof(*p->itself));
    for (int64_t x = 0; p->itself && x < o->h * o->n * o->keys; x++)
        p->itself[x / (o->n * o->keys)] += p->strongest.key[x] == x / o->keys % o->n &&
                                           p->bits[x] == COMPONENT_OTHER;
    p->about.itself = p->itself;
}

static bool make_missed_view(Missed *o, Error *err)
{
    MissedParts *p = o->parts;
    PatternShape shape = { .heads = o->h, .n = o->n, .m = o->m };
    Pattern     *all = pattern_none(p->arena, shape);
    bool         ok = all != NULL;

    for (int bit = 1; ok && bit < 1 << BITS; bit <<= 1) {
        int64_t  count;
        Pattern *one = cells_of_bit(o, shape, (uint8_t)bit, &count);

        if (one)
            all = pattern_union(p->arena, all, one);
        ok = all && (one || !count);
    }
    p->about.keys = o->keys;
    p->about.share = o->found;
    p->about.key = p->strongest.key;
    p->about.weight = p->strongest.weight;
    p->view = (View){ .name = MISSED_VIEW, .kind = VIEW_COMPONENTS, .stage = "", .iteration = -1,
                      .step = -1, .dtype = DT_U8, .rank = 3, .shape = { o->h, o->n, o->m },
                      .support = all, .rows = "query", .cols = "key", .other = "missed",
                      .found = &p->about };
    return ok || error_set(err, ERR_NOMEM, "not enough memory for the view %s", MISSED_VIEW);
}

/* ---- all of it ------------------------------------------------------------------ */

static bool make_room(Missed *o, Looking *l)
{
    size_t h = (size_t)o->h, n = (size_t)o->n, all = h * n * (size_t)o->keys;

    o->alone = calloc((h + 1) * ROUNDS_MOST, sizeof(double));
    o->together = calloc((h + 1) * ROUNDS_MOST, sizeof(double));
    o->found = calloc(h + 1, sizeof(double));
    o->mass = calloc(h + 1, sizeof(double));
    o->query = calloc(h * n, sizeof(double));
    o->round_step = calloc(ROUNDS_MOST, sizeof(int));
    o->parts->bits = calloc(all, 1);
    o->parts->seen = calloc(all, sizeof(uint64_t));
    o->parts->arena = arena_new();
    l->causes = calloc(all, 1);
    return o->alone && o->together && o->found && o->mass && o->query && o->round_step &&
           o->parts->bits && o->parts->seen && o->parts->arena && l->causes;
}

/* Says what the view's bits mean: rounds, causes, or found. */
static void choose_meaning(Missed *o, const uint8_t *causes)
{
    int64_t all = o->h * o->n * o->keys;
    bool    unclear = o->parts->cells == NULL;

    for (int64_t x = 0; x < all; x++)
        unclear |= o->parts->seen[x] >> 63 && (!causes[x] || causes[x] == COMPONENT_OTHER);
    o->parts->about.rounds = o->rounds > VIEW_FOUND_ROUNDS ? VIEW_FOUND_ROUNDS
                             : o->rounds                  ? o->rounds
                                                          : unclear;
    for (int64_t x = 0; x < all; x++)
        if (o->parts->strongest.key[x] >= 0)
            o->parts->bits[x] = finder(o, o->parts->seen[x],
                                       (uint8_t)(causes[x] & ~COMPONENT_OTHER),
                                       o->parts->seen[x] >> 63);
}

static bool find_missed(const Run *run, Missed *o, Threads *threads, const atomic_bool *cancel,
                        Error *err)
{
    MissedParts *p = o->parts;
    Looking      l = { .missed = o };
    bool         ok;

    p->cells = chosen_cells(run);
    o->ranked = !p->cells;
    if (!strongest_keys(run, o->keys, threads, cancel, &p->strongest, err))
        return false;
    o->keys = p->strongest.k;
    ok = make_room(o, &l) || error_set(err, ERR_NOMEM, "not enough memory for the strongest keys");
    if (ok && o->ranked)
        ok = strongest_of(run_view(run, "weights"), o->h, o->keys, threads, cancel, &p->own, err);
    if (ok) {
        if (p->cells)
            find_rounds(run, o);
        threads_run(threads, o->h * o->n, look_row, &l);
        choose_meaning(o, l.causes);
        sum_up(o);
        ok = !atomic_load(&l.failed) ||
             error_set(err, ERR_NOMEM, "not enough memory for the rows of the pattern");
    }
    free(l.causes);
    if (ok && run->excludes_self && run->n == run->m)
        count_themselves(o);
    ok = ok && make_missed_view(o, err);
    if (ok)
        name_causes(o->parts, run);
    return ok;
}

static Missed *missed_new(const Run *run, int64_t keys)
{
    Missed *o = calloc(1, sizeof(*o));

    if (!o)
        return NULL;
    *o = (Missed){ .h = run->h, .n = run->n, .m = run->m, .keys = keys < run->m ? keys : run->m };
    o->parts = calloc(1, sizeof(*o->parts));
    if (!o->parts) {
        free(o);
        return NULL;
    }
    return o;
}

static void free_one(Missed *missed)
{
    MissedParts *p = missed->parts;

    strongest_free(&p->strongest);
    strongest_free(&p->own);
    free(p->bits);
    free(p->seen);
    arena_free(p->arena);
    free(p);
    free(missed->alone);
    free(missed->together);
    free(missed->found);
    free(missed->mass);
    free(missed->query);
    free(missed->round_step);
    free(missed);
}

const Missed *result_missed_known(const Result *result, int64_t keys)
{
    const Missed *o = result->missed;

    keys = keys ? keys : MISSED_USUAL;
    keys = keys < result->run->m ? keys : result->run->m;
    while (o && o->keys != keys)
        o = o->next;
    return o;
}

const Missed *result_missed(Result *result, int64_t keys, Threads *threads,
                            const atomic_bool *cancel, Error *err)
{
    const Run *run = result->run;
    Missed    *o;

    keys = keys ? keys : MISSED_USUAL;
    if (run->err.code != ERR_NONE || !missed_is_offered(run)) {
        error_set(err, ERR_UNSUPPORTED, "%s has no pairs of queries and keys to look for the "
                  "strongest keys of exact attention in", run->mechanism->id);
        return NULL;
    }
    if (keys < 1 || keys > MISSED_MOST) {
        error_set(err, ERR_USAGE, "keys: expected 1 to %d, got %lld", MISSED_MOST,
                  (long long)keys);
        return NULL;
    }
    if (result_missed_known(result, keys))
        return result_missed_known(result, keys);
    o = missed_new(run, keys);
    if (!o) {
        error_set(err, ERR_NOMEM, "not enough memory for the strongest keys");
        return NULL;
    }
    if (!find_missed(run, o, threads, cancel, err)) {
        free_one(o);
        return NULL;
    }
    o->next = result->missed;
    result->missed = o;
    return o;
}

const Missed *result_missed_soon(Result *result, int64_t keys)
{
    const Run *run = result->run;

    if (result_missed_known(result, keys))
        return result_missed_known(result, keys);
    if (run->err.code != ERR_NONE || (double)(run->h * run->n) * (double)run->m > SOON)
        return NULL;
    return result_missed(result, keys, NULL, NULL, NULL);
}

const View *missed_view(const Missed *missed)
{
    return &missed->parts->view;
}

void missed_free(Missed *missed)
{
    for (Missed *next; missed; missed = next) {
        next = missed->next;
        free_one(missed);
    }
}

/* ---- in words -------------------------------------------------------------------- */

void missed_describe_round(const Missed *missed, int step, int64_t head, Text *out)
{
    int64_t at = head < 0 ? missed->h : head;

    for (int r = 0; r < missed->rounds; r++) {
        double alone = missed->alone[at * missed->rounds + r];

        if (missed->round_step[r] != step || isnan(alone))
            continue;
        text_addf(out, "round %d finds %.0f %% of the %lld strongest keys", r + 1, 100 * alone,
                  (long long)missed->keys);
        if (r)
            text_addf(out, ", rounds 1 to %d together %.0f %%", r + 1,
                      100 * missed->together[at * missed->rounds + r]);
        text_add(out, "\n");
    }
}

void missed_describe(const Missed *missed, int64_t head, Text *out)
{
    int64_t at = head < 0 ? missed->h : head;

    if (isnan(missed->found[at]))
        return;
    text_addf(out, "%.1f %% of the %lld strongest keys of exact attention ",
              100 * missed->found[at], (long long)missed->keys);
    if (missed->ranked)
        text_addf(out, "are among the %lld strongest here", (long long)missed->keys);
    else
        text_add(out, "found");
    text_addf(out, " (%.1f %% of their weight)\n", 100 * missed->mass[at]);
}
