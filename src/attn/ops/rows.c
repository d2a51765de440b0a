/* rows.c -- the front of the operations of rows.h: allocate, charge, dispatch. */
#include "attn/ops/rows.h"

#include "attn/ops/dispatch.h"
#include "attn/run.h"

/* ---- entries -------------------------------------------------------------------- */

/* t with three axes, extents of 1 in front, and its strides. */
static Tensor with_axes(Tensor t)
{
    int more = 3 - t.rank;

    for (int a = 2; a >= 0 && more > 0; a--) {
        t.shape[a] = a >= more ? t.shape[a - more] : 1;
        t.stride[a] = a >= more ? t.stride[a - more] : 0;
    }
    t.rank = 3;
    return t;
}

void op_entries_of(Run *r, Tensor x, Tensor z, EntryKind kind, double by, Tensor y)
{
    Entries in = { .x = with_axes(x), .z = with_axes(z), .kind = kind, .by = by,
                   .y = with_axes(y) };

    if (run_failed(r) || tensor_count(&y) == 0)
        return;
    DISPATCH(r, entries, &in);
    op_traffic(r, bytes_of(x) + bytes_of(z), bytes_of(y));
}

void op_entries(Run *r, Tensor x, EntryKind kind, double by, Tensor y)
{
    op_entries_of(r, x, (Tensor){ .rank = 0 }, kind, by, y);
}

/* Step by step, through numbers in double. */
static void entries_apart(Run *r, Tensor x, const EntryStep *steps, int count, Tensor y)
{
    Tensor wide = y;

    if (y.dtype != DT_F64 && count > 1)
        wide = run_tensor3(r, DT_F64, y.shape[0], y.shape[1], y.shape[2]);
    for (int s = 0; s < count; s++)
        op_entries_of(r, s ? wide : x, steps[s].z, steps[s].kind, steps[s].by,
                      s + 1 < count ? wide : y);
}

void op_entries_steps(Run *r, Tensor x, const EntryStep *steps, int count, Tensor y)
{
    Entries   in = { .x = with_axes(x), .z = with_axes(steps[0].z), .kind = steps[0].kind,
                     .by = steps[0].by, .y = with_axes(y), .more_count = count - 1 };
    EntryStep more[ENTRY_STEPS];
    double    read = bytes_of(x) + bytes_of(steps[0].z);

    if (run_failed(r) || tensor_count(&y) == 0)
        return;
    if (!r->ops->joins_entries) {
        entries_apart(r, with_axes(x), steps, count, in.y);
        return;
    }
    for (int s = 1; s < count; s++) {
        more[s] = steps[s];
        more[s].z = with_axes(steps[s].z);
        read += bytes_of(steps[s].z);
    }
    in.more = more + 1;
    r->ops->entries(r, &in);
    op_traffic(r, read, bytes_of(y));
}

/* ---- rows by themselves ----------------------------------------------------------- */

void op_softmax(Run *r, Tensor x)
{
    DISPATCH(r, softmax, &(SoftmaxRows){ .x = x });
    op_charge(r, FLOP_OVERHEAD, FLOPS_ROW_SOFTMAX * (double)tensor_count(&x));
    op_traffic(r, bytes_of(x), bytes_of(x));
}

void op_softmax_rows(Run *r, const SoftmaxRows *in)
{
    if (run_failed(r) || tensor_count(&in->x) == 0)
        return;
    DISPATCH(r, softmax, in);
    op_traffic(r, bytes_of(in->x), bytes_of(in->x) + bytes_of(in->lse));
}

void op_standardise64(Run *r, Tensor x, double eps, Tensor gain, Tensor bias, Tensor y)
{
    x = with_axes(x);
    y = with_axes(y);
    if (run_failed(r) || tensor_count(&y) == 0)
        return;
    DISPATCH(r, standardise64, &x, eps, &gain, &bias, &y);
    op_traffic(r, bytes_of(x), bytes_of(y));
}

Tensor op_normalise(Run *r, Tensor x, NormaliseKind kind, double eps)
{
    Tensor y;

    if (kind == NORMALISE_NONE)
        return x;
    y = run_tensor3(r, DT_F32, x.shape[0], x.shape[1], x.shape[2]);
    DISPATCH(r, normalise, &x, (int)kind, eps, &y);
    op_charge(r, FLOP_OVERHEAD, 5 * (double)tensor_count(&y));
    op_traffic(r, bytes_of(x), bytes_of(y));
    return y;
}

Tensor op_normalise64(Run *r, Tensor x, NormaliseKind kind, double eps)
{
    int64_t heads = x.shape[0] > r->h ? x.shape[0] : r->h;
    Tensor  y = run_tensor3(r, DT_F64, heads, x.shape[1], x.shape[2]);

    DISPATCH(r, normalise64, &x, kind, eps, &y);
    op_traffic(r, bytes_of(x), bytes_of(y));
    return y;
}

Tensor op_unit_rows(Run *r, Tensor x, double eps)
{
    Tensor y = run_tensor3(r, DT_F32, r->h, x.shape[1], x.shape[2]);

    DISPATCH(r, unit_rows, &x, eps, &y);
    op_traffic(r, bytes_of(x), bytes_of(y));
    return y;
}

BestResult op_best_columns(Run *r, const BestColumns *in)
{
    int64_t    heads = in->x.shape[0], n = in->x.shape[1];
    BestResult out = { .value = run_tensor3(r, DT_F64, heads, n, in->k),
                       .index = run_tensor3(r, DT_I32, heads, n, in->k) };

    if (in->k > 0)
        DISPATCH(r, best_columns, in, &out);
    op_traffic(r, bytes_of(in->x) + bytes_of(in->y), bytes_of(out.index));
    return out;
}

Tensor op_pair_dots(Run *r, Tensor x, Tensor y, Tensor index)
{
    Tensor dots = run_tensor3(r, DT_F32, index.shape[0], index.shape[1], index.shape[2]);

    DISPATCH(r, pair_dots, &x, &y, &index, &dots);
    op_traffic(r, bytes_of(x) + bytes_of(index), bytes_of(dots)); /* of y only the caller knows */
    return dots;
}

void op_tap_sums(Run *r, const TapSums *in, Tensor y)
{
    if (tensor_count(&y) > 0)
        DISPATCH(r, tap_sums, in, &y);
    op_traffic(r, bytes_of(in->x), bytes_of(y));
}

void op_rounded_attend(Run *r, const RoundedAttend *in)
{
    DISPATCH(r, rounded_attend, in);
    op_traffic(r, bytes_of(in->q) + bytes_of(in->k) + bytes_of(in->v), bytes_of(in->out));
}

Tensor op_turn_pairs(Run *r, const TurnPairs *in)
{
    Tensor y = run_tensor3(r, DT_F32, in->x.shape[0], in->x.shape[1], in->x.shape[2]);

    DISPATCH(r, turn_pairs, in, &y);
    op_traffic(r, bytes_of(y), bytes_of(y));
    return y;
}

/* ---- rows by lists ------------------------------------------------------------------ */

Tensor op_gather(Run *r, Tensor x, Tensor index)
{
    int64_t heads = x.shape[0] > index.shape[0] ? x.shape[0] : index.shape[0];
    Tensor  y = run_tensor3(r, x.dtype, heads, index.shape[1], x.shape[2]);

    DISPATCH(r, gather, &x, &index, &y);
    op_traffic(r, bytes_of(y), bytes_of(y));
    return y;
}

void op_scatter(Run *r, Tensor x, Tensor index, Tensor y)
{
    DISPATCH(r, scatter, &x, &index, &y);
    op_traffic(r, bytes_of(x), bytes_of(x));
}

void op_merge_rows(Run *r, const MergeRows *in)
{
    DISPATCH(r, merge_rows, in);
    op_traffic(r, bytes_of(in->rows) + bytes_of(in->out), bytes_of(in->out));
}

Tensor op_sum_lists(Run *r, const SumLists *in)
{
    Tensor y = run_tensor3(r, DT_F32, in->heads, in->n, in->x.shape[2]);

    DISPATCH(r, sum_lists, in, &y);
    op_traffic(r, 0, bytes_of(y)); /* which rows of x are read, only the caller knows */
    return y;
}

const int64_t *sum_lists_even(Run *r, int64_t n, int64_t each)
{
    int64_t *start = run_alloc(r, n + 1, sizeof(*start));

    run_prepare(r, true);
    for (int64_t i = 0; i <= n && !run_failed(r); i++)
        start[i] = i * each;
    op_toward(r, start, (n + 1) * (int64_t)sizeof(*start));
    run_prepare(r, false);
    return start;
}

/* Windows may leave rows out, or share them: those that must be read at least. */
static double window_bytes(const PoolWindows *in, int64_t windows)
{
    double rows = 0, all = (double)in->x.shape[1];

    for (int64_t u = 0; u < windows; u++)
        rows += in->end[u] - in->first[u];
    return bytes_of(in->x) * (rows < all ? rows / all : 1);
}

void op_pool_windows(Run *r, const PoolWindows *in, Tensor y)
{
    if (run_failed(r))
        return;
    DISPATCH(r, pool_windows, in, &y);
    op_traffic(r, window_bytes(in, y.shape[1]), bytes_of(y));
}

void op_pool_rows(Run *r, Tensor x, int64_t first, int64_t end, WindowKind kind, Tensor y)
{
    int32_t *ends = run_alloc(r, 2, sizeof(*ends));

    if (run_failed(r))
        return;
    ends[0] = (int32_t)first;
    ends[1] = (int32_t)end;
    op_pool_windows(r, &(PoolWindows){ .x = x, .first = ends, .end = ends + 1, .kind = kind }, y);
}

/* ---- choices, counts and sorting ---------------------------------------------- */

Tensor op_argmax(Run *r, Tensor x, bool with_negative)
{
    Tensor index = run_tensor2(r, DT_I32, x.shape[0], x.shape[1]);

    DISPATCH(r, argmax, &x, with_negative, &index);
    op_traffic(r, bytes_of(x), bytes_of(index));
    return index;
}

Tensor op_top_k(Run *r, Tensor x, int64_t k)
{
    Tensor index = run_tensor3(r, DT_I32, x.shape[0], x.shape[2], k);

    DISPATCH(r, top_k, &x, k, &index);
    op_traffic(r, bytes_of(x), bytes_of(index));
    return index;
}

Tensor op_nearest(Run *r, const Nearest *in)
{
    Tensor index = run_tensor3(r, DT_I32, r->h, in->parts, in->x.near.shape[1]);

    DISPATCH(r, nearest, in, &index);
    op_traffic(r, bytes_of(in->x.near) + bytes_of(in->y), bytes_of(index));
    return index;
}

Tensor op_best_rows(Run *r, const ChoiceRows *x, Tensor y, int64_t k)
{
    Tensor index = run_tensor3(r, DT_I32, r->h, y.shape[1], k);

    if (run_failed(r) || k <= 0)
        return index;
    DISPATCH(r, best_rows, x, &y, k, &index);
    op_traffic(r, bytes_of(x->near) + bytes_of(y), bytes_of(index));
    return index;
}

Tensor op_codes(Run *r, Tensor x, Tensor planes, bool bias)
{
    Tensor code = run_tensor2(r, DT_I64, r->h, x.shape[1]);

    DISPATCH(r, codes, &x, &planes, bias, &code);
    op_traffic(r, bytes_of(x) + bytes_of(planes), bytes_of(code));
    return code;
}

void op_member_sums(Run *r, Tensor x, Tensor index, bool unit, Tensor sum)
{
    DISPATCH(r, member_sums, &x, &index, unit, &sum);
    op_traffic(r, bytes_of(x) + bytes_of(index), bytes_of(sum));
}

Tensor op_tally(Run *r, Tensor index, int64_t count)
{
    Tensor found = run_tensor2(r, DT_I32, index.shape[0], count);

    DISPATCH(r, tally, &index, &found);
    op_traffic(r, bytes_of(index), bytes_of(found));
    return found;
}

void op_nearest_codes(Run *r, Tensor codes, Tensor centres, Tensor cluster)
{
    DISPATCH(r, nearest_codes, &codes, &centres, &cluster);
    op_traffic(r, bytes_of(codes) + bytes_of(centres), bytes_of(cluster));
}

Tensor op_bit_sums(Run *r, Tensor codes, Tensor cluster, int64_t clusters)
{
    Tensor ones = run_tensor3(r, DT_I32, codes.shape[0], clusters, 64);

    DISPATCH(r, bit_sums, &codes, &cluster, &ones);
    op_traffic(r, bytes_of(codes) + bytes_of(cluster), bytes_of(ones));
    return ones;
}

Tensor op_key_usage(Run *r, Tensor q, Tensor k, double scale, bool causal)
{
    Tensor usage = run_tensor1(r, DT_F64, k.shape[1]);

    DISPATCH(r, key_usage, &q, &k, scale, causal, &usage);
    op_traffic(r, bytes_of(q) + bytes_of(k), bytes_of(usage));
    return usage;
}

Tensor op_sort(Run *r, Tensor key)
{
    int64_t n = key.shape[key.rank - 1];
    Tensor  order = key.rank == 3 ? run_tensor3(r, DT_I32, key.shape[0], key.shape[1], n)
                                  : run_tensor2(r, DT_I32, key.shape[0], n);

    DISPATCH(r, sort, &key, &order);
    op_traffic(r, bytes_of(key), bytes_of(order));
    return order;
}
