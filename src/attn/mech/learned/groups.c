/* groups.c -- see groups.h. */
#include <math.h>
#include <string.h>

#include "attn/mech/learned/groups.h"
#include "attn/ops/dense.h"
#include "attn/run.h"
#include "core/rng.h"

Partition partition_of(Run *r, Tensor cluster, int64_t clusters)
{
    Partition p = { .h = cluster.shape[0], .n = cluster.shape[1], .clusters = clusters,
                    .cluster = cluster, .order = op_sort(r, cluster) };

    p.counts = op_tally(r, cluster, clusters);
    p.start = run_tensor2(r, DT_I32, p.h, clusters + 1);
    op_wait(r, "the host lists where clusters begin");
    if (run_failed(r))
        return p;
    for (int64_t t = 0; t < p.h; t++) {
        int32_t *start = tensor_i32(&p.start) + t * (clusters + 1);

        start[0] = 0;
        for (int64_t c = 0; c < clusters; c++)
            start[c + 1] = start[c] + tensor_i32(&p.counts)[t * clusters + c];
    }
    return p;
}

static void groups_read_membership(const View *view, int64_t head, int64_t c, int64_t start,
                                   int64_t count, int64_t step, float *out)
{
    const int32_t *cluster = view->context;
    int64_t        n = view_cols(view);

    for (int64_t x = 0; x < count; x++)
        out[x] = cluster[head * n + start + x * step] == c;
}

void partition_show(Run *r, const Partition *p)
{
    View   *membership;
    int64_t used = 0, largest = 0;

    if (!run_wants_views(r))
        return;
    view_tensor(r, "counts", VIEW_COUNT, p->counts, "head", "cluster");
    membership = view_add(r, "membership", VIEW_MEMBERSHIP, DT_U8, 3,
                          (int64_t[]){ p->h, p->clusters, p->n });
    if (membership) {
        membership->read = groups_read_membership;
        membership->context = p->cluster.data;
        membership->rows = "cluster";
        membership->cols = "token";
        balance_show(r, membership, p->counts, (Tensor){ 0 });
    }
    for (int64_t x = 0; x < p->h * p->clusters; x++) {
        int32_t count = tensor_i32(&p->counts)[x];

        used += count > 0;
        largest = count > largest ? count : largest;
    }
    run_figure_int(r, "clusters_used", used);
    run_figure_int(r, "largest_cluster", largest);
}

/* "largest 12, 1.5 times the mean; entropy 2.81 of 3 bits, 1 empty" */
static void say_sizes(const int32_t *size, int64_t groups, Text *out)
{
    double  all = 0, bits = 0;
    int64_t largest = 0, empty = 0;

    for (int64_t c = 0; c < groups; c++) {
        all += size[c];
        largest = size[c] > largest ? size[c] : largest;
        empty += size[c] == 0;
    }
    for (int64_t c = 0; c < groups && all > 0; c++)
        bits -= size[c] ? size[c] / all * log2(size[c] / all) : 0;
    text_addf(out, "largest %lld, %.3g times the mean; entropy %.3g of %.3g bits",
              (long long)largest,
              all > 0 ? (double)largest * (double)groups / all : 0, bits, log2((double)groups));
    if (empty)
        text_addf(out, ", %lld empty", (long long)empty);
}

static void say_times(const int32_t *times, int64_t tokens, Text *out)
{
    int64_t none = 0, several = 0;

    for (int64_t i = 0; i < tokens; i++) {
        none += times[i] == 0;
        several += times[i] > 1;
    }
    text_addf(out, ", %lld of %lld tokens in none, %lld in several", (long long)none,
              (long long)tokens, (long long)several);
}

static const ViewLoad *groups_load_of(Run *r, Tensor used, const char *name)
{
    ViewLoad *load = run_alloc(r, 1, sizeof(*load));

    if (load)
        *load = (ViewLoad){ .used = used, .used_name = name };
    return load;
}

void balance_show(Run *r, View *view, Tensor sizes, Tensor times)
{
    int64_t      planes = view_planes(view), groups = view_rows(view), tokens = view_cols(view);
    const char **words = run_alloc(r, planes, sizeof(*words));

    view->row_load = groups_load_of(r, sizes, "tokens of a cluster");
    if (times.data)
        view->load = groups_load_of(r, times, "clusters of a token");
    for (int64_t p = 0; p < planes && !run_failed(r); p++) {
        Text out = { 0 };

        say_sizes(tensor_i32(&sizes) + p * groups, groups, &out);
        if (times.data)
            say_times(tensor_i32(&times) + p * tokens, tokens, &out);
        words[p] = arena_printf(r->arena, "%s", text_str(&out));
        if (!words[p] || !text_ok(&out))
            run_fail(r, ERR_NOMEM, "%s: not enough memory for a view", r->mechanism->id);
        text_free(&out);
    }
    view->summary = words;
}

Chunks chunks_of(int64_t slots, int64_t block, int64_t before, int64_t after, bool ring)
{
    Chunks c = { .slots = slots, .block = min_i64(block, slots), .ring = ring };

    c.count = (slots + c.block - 1) / c.block;
    c.before = min_i64(before, c.count);
    c.after = min_i64(after, c.count);
    return c;
}

int64_t chunks_end(const Chunks *c, int64_t chunk)
{
    return min_i64((chunk + 1) * c->block, c->slots);
}

int64_t chunks_window(const Chunks *c, int64_t chunk, int64_t *first)
{
    if (c->ring) {
        *first = (chunk - c->before + c->count) % c->count;
        return min_i64(c->count, c->before + c->after + 1);
    }
    *first = chunk > c->before ? chunk - c->before : 0;
    return min_i64(c->count, chunk + c->after + 1) - *first;
}

static int64_t window_slots(const Chunks *c, int64_t chunk)
{
    int64_t first, seen = chunks_window(c, chunk, &first);
    bool    has_last = (c->count - 1 - first + c->count) % c->count < seen;

    return seen * c->block - (has_last ? c->count * c->block - c->slots : 0);
}

double chunks_pairs(const Chunks *c)
{
    double pairs = 0;

    for (int64_t chunk = 0; chunk < c->count; chunk++)
        pairs += (double)(chunks_end(c, chunk) - chunk * c->block) *
                 (double)window_slots(c, chunk);
    return pairs;
}

static void list_window(const Chunks *c, int64_t chunk, int32_t *key)
{
    int64_t first, seen = chunks_window(c, chunk, &first);

    for (int64_t w = 0; w < seen; w++) {
        int64_t at = (first + w) % c->count;

        for (int64_t s = at * c->block; s < chunks_end(c, at); s++)
            *key++ = (int32_t)s;
    }
}

void chunks_groups(Run *r, const Chunks *c, GroupAttend *g)
{
    int64_t total = 0;

    for (int64_t chunk = 0; chunk < c->count; chunk++)
        total += window_slots(c, chunk);
    if (total > INT32_MAX)
        run_fail(r, ERR_PARAM, "%s: windows of %lld chunks before and %lld after hold %lld keys, "
                 "too many to list; see fewer chunks", r->mechanism->id, (long long)c->before,
                 (long long)c->after, (long long)total);
    g->groups = c->count;
    g->query_start = run_tensor2(r, DT_I32, 1, c->count + 1);
    g->key_start = run_tensor2(r, DT_I32, 1, c->count + 1);
    g->query_index = run_tensor2(r, DT_I32, 1, c->slots);
    g->key_index = run_tensor2(r, DT_I32, 1, total);
    if (run_failed(r))
        return;
    for (int64_t s = 0; s < c->slots; s++)
        tensor_i32(&g->query_index)[s] = (int32_t)s;
    for (int64_t chunk = 0, at = 0; chunk <= c->count; chunk++) {
        tensor_i32(&g->query_start)[chunk] = (int32_t)min_i64(chunk * c->block, c->slots);
        tensor_i32(&g->key_start)[chunk] = (int32_t)at;
        if (chunk == c->count)
            break;
        list_window(c, chunk, tensor_i32(&g->key_index) + at);
        at += window_slots(c, chunk);
    }
}

/* ---- rotations -------------------------------------------------------------- */

/* i32 [h,rounds,n]: argmax of [y ; -y] over columns [first, first + count) of each round, the
 * columns of w f32 [h',d,rounds,W] being rows of y. */
static Tensor factor_hash(Run *r, Tensor x, Tensor w, int64_t first, int64_t count)
{
    int64_t d = w.shape[1], rounds = w.shape[2], width = w.shape[3];
    Tensor  y = run_tensor3(r, DT_F32, w.shape[0], rounds * count, d);

    for (int64_t head = 0; head < w.shape[0] && !run_failed(r); head++) {
        Tensor to = tensor_of(DT_F32, 3, (int64_t[]){ rounds, count, d },
                              tensor_f32(&y) + head * rounds * count * d);
        Tensor from = tensor_of(DT_F32, 3, to.shape,
                                tensor_f32(&w) + head * d * rounds * width + first);

        from.stride[0] = width;
        from.stride[1] = 1;
        from.stride[2] = rounds * width;
        op_entries(r, from, ENTRY_CAST, 0, to);
    }
    return op_nearest(r, &(Nearest){ .x.near = x, .y = y, .parts = rounds,
                                     .with_negative = true });
}

Tensor lsh_buckets(Run *r, Tensor x, Tensor rotations, int64_t half)
{
    int64_t width = rotations.shape[3], columns = rotations.shape[2] * width;
    Tensor  bucket = factor_hash(r, x, rotations, 0, half), second;

    op_charge(r, FLOP_OVERHEAD, 2 * (double)(r->h * x.shape[1]) * (double)(x.shape[2] * columns));
    if (half == width)
        return bucket;
    second = factor_hash(r, x, rotations, half, width - half);
    op_entries_of(r, bucket, second, ENTRY_SUM, 2 * (double)half, bucket);
    return bucket;
}

/* ---- hyperplanes ------------------------------------------------------------ */

Tensor lsh_codes(Run *r, Tensor x, Tensor planes, bool bias)
{
    op_charge(r, FLOP_OVERHEAD,
              2 * (double)(r->h * x.shape[1]) * (double)(x.shape[2] * planes.shape[1]));
    return op_codes(r, x, planes, bias);
}

#define BITS 64

static int64_t majority(const int32_t *ones, int64_t members, int64_t bits)
{
    int64_t code = 0;

    for (int64_t t = 0; t < bits; t++)
        if (2 * (int64_t)ones[t] > members)
            code |= INT64_C(1) << t;
    return code;
}

bool hamming_majority(Run *r, Tensor codes, Tensor cluster, int64_t bits, Tensor centres)
{
    int64_t   count = centres.shape[1], all = codes.shape[0] * count;
    ArenaMark mark = arena_mark(r->arena);
    Tensor    ones = op_bit_sums(r, codes, cluster, count);
    Tensor    tally = op_tally(r, cluster, count);
    bool      moved = false;

    op_wait(r, "the host decides the bits of codes, and whether one moved");
    for (int64_t c = 0; c < all && !run_failed(r); c++) {
        int64_t *own = (int64_t *)centres.data + c;
        int32_t  members = tensor_i32(&tally)[c];
        int64_t  code = members ? majority(tensor_i32(&ones) + c * BITS, members, bits) : *own;

        moved |= code != *own;
        *own = code;
    }
    arena_release(r->arena, mark);
    return moved;
}

typedef struct Source {
    Tensor        x;
    int64_t       heads;
    NormaliseKind kind;
    double        eps;
} Source;

static void copied_row(const void *context, int64_t head, int64_t i, double *row)
{
    const Source *s = context;
    int64_t       d = s->x.shape[2];

    memcpy(row, (const double *)tensor_head(&s->x, head, s->heads) + i * d,
           (size_t)d * sizeof(*row));
}

static void normalised_row(const void *context, int64_t head, int64_t i, double *row)
{
    const Source *s = context;
    const float  *x = (const float *)tensor_head(&s->x, head, s->heads) + i * s->x.stride[1];

    for (int64_t t = 0; t < s->x.shape[2]; t++)
        row[t] = (double)x[t];
    dense_normalise_row(row, s->x.shape[2], s->kind, s->eps);
}

static const Source *source_new(Run *r, Source source)
{
    Source *s = run_alloc(r, 1, sizeof(*s));

    if (s)
        *s = source;
    return s;
}

ChoiceRows choice_rows_exact(Run *r, Tensor x)
{
    return (ChoiceRows){ .near = dense_rounded(r, x), .exact = copied_row, .whole = x,
                         .context = source_new(r, (Source){ .x = x, .heads = r->h }) };
}

ChoiceRows choice_rows_normalised(Run *r, Tensor x, NormaliseKind kind, double eps)
{
    double copies = (double)(r->h - x.shape[0]); /* of heads that share keys */

    if (kind == NORMALISE_NONE)
        return (ChoiceRows){ .near = x };
    op_charge(r, FLOP_OVERHEAD, 5 * copies * (double)(x.shape[1] * x.shape[2]));
    return (ChoiceRows){
        .near = op_normalise(r, x, kind, eps), .exact = normalised_row, .whole = x, .kind = kind,
        .eps = eps,
        .context = source_new(r, (Source){ .x = x, .heads = r->h, .kind = kind, .eps = eps })
    };
}

/* Row i in double. */
static void choice_row(const ChoiceRows *x, int64_t heads, int64_t head, int64_t i, double *row)
{
    const float *near = tensor_head(&x->near, head, heads);

    if (x->exact) {
        x->exact(x->context, head, i, row);
        return;
    }
    for (int64_t t = 0; t < x->near.shape[2]; t++)
        row[t] = (double)near[i * x->near.stride[1] + t];
}

Tensor centroids_drawn(Run *r, const ChoiceRows *x, const char *name, int64_t count)
{
    int64_t n = x->near.shape[1], d = x->near.shape[2], all = count < n ? count : n;
    Tensor  drawn = run_tensor3(r, DT_F64, r->h, count, d);
    Rng     rng = run_rng(r, name);

    op_wait(r, "the host takes the first centroids");
    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        double *to = (double *)drawn.data + t * count * d;
        int64_t taken = 0;

        for (int64_t i = 0; i < n && taken < all; i++)
            if ((int64_t)rng_below(&rng, (uint64_t)(n - i)) < all - taken)
                choice_row(x, r->h, t, i, to + taken++ * d);
        for (int64_t c = all; c < count; c++)
            memcpy(to + c * d, to + c % all * d, (size_t)d * sizeof(*to));
    }
    return drawn;
}

int64_t centroids_moved(Tensor before, Tensor now)
{
    int64_t moved = 0;

    for (int64_t x = 0; x < tensor_count(&now); x++)
        moved += tensor_i32(&before)[x] != tensor_i32(&now)[x];
    memcpy(before.data, now.data, (size_t)tensor_bytes(&now));
    return moved;
}

Tensor centroids_nearest(Run *r, Tensor mu, const ChoiceRows *x)
{
    Tensor index = op_nearest(r, &(Nearest){ .x = *x, .y = mu, .parts = 1 });

    return tensor_of(DT_I32, 2, (int64_t[]){ r->h, x->near.shape[1] }, index.data);
}

Tensor centroids_members(Run *r, Tensor mu, const ChoiceRows *x, int64_t w)
{
    Tensor set = op_best_rows(r, x, mu, w);

    return tensor_of(DT_I32, 2, (int64_t[]){ r->h, mu.shape[1] * w }, set.data);
}

/* The rows that are summed: f64 if x has exact rows, else the f32 rows `near`. */
static Tensor groups_exact_rows(Run *r, const ChoiceRows *x)
{
    const Source *s = x->context;

    if (!x->exact)
        return x->near;
    return x->exact == copied_row ? s->x : op_normalise64(r, s->x, s->kind, s->eps);
}

void centroids_gather(Run *r, const ChoiceRows *x, Tensor nearest, Tensor sum, Tensor count)
{
    ArenaMark mark = arena_mark(r->arena);
    Tensor    more = run_tensor3(r, DT_F64, sum.shape[0], sum.shape[1], sum.shape[2]);

    op_member_sums(r, groups_exact_rows(r, x), nearest, false, more);
    op_entries_of(r, sum, more, ENTRY_SUM, 1, sum);
    op_entries_of(r, count, op_tally(r, nearest, sum.shape[1]), ENTRY_SUM, 1, count);
    arena_release(r->arena, mark);
}

double centroids_spread(Run *r, Tensor mu, const ChoiceRows *x, Tensor nearest)
{
    int64_t   count = tensor_count(&nearest), n = nearest.shape[1], d = mu.shape[2];
    ArenaMark mark = arena_mark(r->arena);
    double   *row = run_alloc(r, d, sizeof(*row)), spread = 0;

    for (int64_t at = 0; at < count && !run_failed(r); at++) {
        int64_t       head = at / n, c = tensor_i32(&nearest)[at];
        const double *m = (double *)mu.data + (head * mu.shape[1] + c) * d;
        double        dot = 0, squares = 0, length = 0;

        choice_row(x, nearest.shape[0], head, at % n, row);
        for (int64_t t = 0; t < d; t++) {
            dot += row[t] * m[t];
            squares += row[t] * row[t];
            length += m[t] * m[t];
        }
        spread += 1 - (squares > 0 && length > 0 ? dot / sqrt(squares * length) : 0);
    }
    arena_release(r->arena, mark);
    return count ? spread / (double)count : 0;
}
