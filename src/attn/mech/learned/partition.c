/* partition.c -- see partition.h. */
#include "attn/mech/learned/partition.h"

#include "attn/run.h"

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

static void read_membership(const View *view, int64_t head, int64_t c, int64_t start,
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
        membership->read = read_membership;
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
