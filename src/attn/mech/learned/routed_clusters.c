/* routed_clusters.c -- see routed_clusters.h. */
#include "attn/mech/learned/routed_clusters.h"

#include <math.h>
#include <string.h>

#include "attn/run.h"

#define COARSE 16 /* a log-sum-exp as large as this is not exact enough in float */

double routed_clusters_share(const RoutedClusters *s, int64_t row)
{
    return s->mean ? 1 / ((double)s->times[row] + s->eps) : 1;
}

/* An item is a head. */
static void list_item(void *context, int64_t head, int worker)
{
    const RoutedClusters *s = context;
    int64_t               entries = s->clusters * s->window, first = head * entries;
    int64_t              *start = s->start + head * s->n;
    const int32_t        *set = tensor_i32(&s->qs) + first;

    (void)worker;
    memset(start, 0, (size_t)s->n * sizeof(*start));
    for (int64_t x = 0; x < entries; x++)
        start[set[x]]++;
    for (int64_t i = 0, at = first; i < s->n; i++) /* ends, for now */
        start[i] = at += start[i];
    for (int64_t x = entries - 1; x >= 0; x--)
        s->entry[--start[set[x]]] = (int32_t)x;
}

void routed_clusters_list(Run *r, RoutedClusters *s)
{
    int64_t rows = s->h * s->n, entries = s->h * s->clusters * s->window;

    s->start = run_alloc(r, rows + 1, sizeof(*s->start));
    s->entry = run_alloc(r, entries, sizeof(*s->entry));
    s->times = run_alloc(r, rows, sizeof(*s->times));
    op_wait(r, "the host lists the clusters of tokens");
    if (run_failed(r))
        return;
    threads_run(r->threads, s->h, list_item, s);
    s->start[rows] = entries;
}

/* ---- views ------------------------------------------------------------------ */

/* Whether i, in cluster c, sees key j of the cluster; keys [w] increasing. */
static bool sees(const RoutedClusters *s, const int32_t *keys, int64_t i, int64_t j)
{
    bool others = s->causal ? keys[0] < i : s->window > 1 || keys[0] != i;

    return !(s->causal && j > i) && !(s->exclude_self && i == j && others);
}

static const int32_t *keys_of(const RoutedClusters *s, int64_t head, int32_t entry)
{
    return tensor_i32(&s->ks) + (head * s->clusters + entry / s->window) * s->window;
}

static int64_t seen_keys(const void *context, int64_t head, int64_t i, int32_t *count,
                         int32_t *key)
{
    const RoutedClusters *s = context;
    int64_t        row = head * s->n + i, found = 0;

    for (int64_t x = s->start[row]; x < s->start[row + 1]; x++) {
        const int32_t *keys = keys_of(s, head, s->entry[x]);

        for (int64_t y = 0; y < s->window; y++)
            if (sees(s, keys, i, keys[y]) && !count[keys[y]]++)
                key[found++] = keys[y];
    }
    return found;
}

static void read_weights(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const RoutedClusters *s = view->context;
    int64_t        row = head * s->n + i, last = start + (count - 1) * step;

    memset(out, 0, (size_t)count * sizeof(*out));
    for (int64_t x = s->start[row]; x < s->start[row + 1]; x++) {
        const int32_t *keys = keys_of(s, head, s->entry[x]);
        double         z = s->z[head * s->clusters * s->window + s->entry[x]], score;
        int64_t        y = key_lower_bound(keys, 0, s->window, start);

        for (; y < s->window && keys[y] <= last; y++) {
            if ((keys[y] - start) % step || !sees(s, keys, i, keys[y]))
                continue;
            score = attend_score(&s->in, s->h, head, i, keys[y]);
            out[(keys[y] - start) / step] +=
                (float)(exp(score - z) * routed_clusters_share(s, row));
        }
    }
}

/* The kernel's sums are in float: where the last digits of a large one would be
 * seen in the weights they are put right. */
static void refine(Run *r, RoutedClusters *s, Tensor lse)
{
    int64_t w = s->window, all = s->clusters * w;

    s->z = run_alloc(r, s->h * all, sizeof(*s->z));
    for (int64_t x = 0; x < s->h * all && !run_failed(r); x++) {
        const int32_t *keys = tensor_i32(&s->ks) + x / w * w;
        int64_t        i = tensor_i32(&s->qs)[x];
        LogSum         sum = log_sum_new();

        s->z[x] = (double)tensor_f32(&lse)[x];
        if (fabs(s->z[x]) < COARSE || !isfinite(s->z[x]))
            continue;
        for (int64_t y = 0; y < w; y++)
            if (sees(s, keys, i, keys[y]))
                log_sum_add(&sum, attend_score(&s->in, s->h, x / all, i, keys[y]));
        s->z[x] = log_sum_of(&sum);
    }
}

/* Plane 2 * head: query sets; 2 * head + 1: key sets. */
static void read_membership(const View *view, int64_t plane, int64_t c, int64_t start,
                            int64_t count, int64_t step, float *out)
{
    const RoutedClusters *s = view->context;
    const int32_t *set = tensor_i32(plane % 2 ? &s->ks : &s->qs) +
                         (plane / 2 * s->clusters + c) * s->window;

    memset(out, 0, (size_t)count * sizeof(*out));
    for (int64_t y = key_lower_bound(set, 0, s->window, start);
         y < s->window && (set[y] - start) / step < count; y++)
        if ((set[y] - start) % step == 0)
            out[(set[y] - start) / step] = 1;
}

/* Clusters are of equal size, but tokens are in none, one or several of them. */
static void show_balance(Run *r, const RoutedClusters *s, View *membership)
{
    Tensor sizes = run_tensor3(r, DT_I32, s->h, 2, s->clusters);
    Tensor times = run_tensor3(r, DT_I32, s->h, 2, s->n);

    if (run_failed(r))
        return;
    memset(times.data, 0, (size_t)tensor_bytes(&times));
    for (int64_t x = 0; x < 2 * s->h * s->clusters * s->window; x++) {
        int64_t        plane = x / (s->clusters * s->window), at = x % (s->clusters * s->window);
        const int32_t *set = tensor_i32(plane % 2 ? &s->ks : &s->qs);

        tensor_i32(&sizes)[plane * s->clusters + at / s->window] = (int32_t)s->window;
        tensor_i32(&times)[plane * s->n + set[plane / 2 * s->clusters * s->window + at]]++;
    }
    balance_show(r, membership, tensor_of(DT_I32, 2, (int64_t[]){ 2 * s->h, s->clusters },
                                          sizes.data),
                 tensor_of(DT_I32, 2, (int64_t[]){ 2 * s->h, s->n }, times.data));
}

void routed_clusters_show(Run *r, RoutedClusters *s, Tensor lse)
{
    View    *membership;
    Pattern *cells;

    if (!run_wants_views(r))
        return;
    view_stage(r, "route", -1);
    membership = view_add(r, "membership", VIEW_MEMBERSHIP, DT_U8, 4,
                          (int64_t[]){ s->h, 2, s->clusters, s->n });
    if (membership) {
        membership->read = read_membership;
        membership->context = s;
        membership->rows = "cluster";
        membership->cols = "token";
        show_balance(r, s, membership);
    }
    view_stage(r, NULL, -1);
    refine(r, s, lse);
    cells = cell_rows_pattern(r, cell_rows_new(r, seen_keys, s), COMPONENT_CLUSTER);
    view_stage(r, "attend", -1);
    view_pattern(r, cells, false);
    view_stage(r, NULL, -1);
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, read_weights, s, cells);
}
