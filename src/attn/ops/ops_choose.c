/* ops_choose.c -- the front of the operations that choose, count and sort; see ops_choose.h. */
#include "attn/ops/ops_choose.h"

#include "attn/ops/ops_front.h"

Tensor op_argmax(Run *r, Tensor x, bool with_negative)
{
    Tensor index = run_tensor2(r, DT_I32, x.shape[0], x.shape[1]);

    if (run_failed(r))
        return index;
    DISPATCH(r, argmax, &x, with_negative, &index);
    op_traffic(r, bytes_of(x), bytes_of(index));
    return index;
}

Tensor op_top_k(Run *r, Tensor x, int64_t k)
{
    Tensor index = run_tensor3(r, DT_I32, x.shape[0], x.shape[2], k);

    if (run_failed(r))
        return index;
    DISPATCH(r, top_k, &x, k, &index);
    op_traffic(r, bytes_of(x), bytes_of(index));
    return index;
}

Tensor op_nearest(Run *r, const Nearest *in)
{
    Tensor index = run_tensor3(r, DT_I32, r->h, in->parts, in->x.near.shape[1]);

    if (run_failed(r))
        return index;
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

    if (run_failed(r))
        return code;
    DISPATCH(r, codes, &x, &planes, bias, &code);
    op_traffic(r, bytes_of(x) + bytes_of(planes), bytes_of(code));
    return code;
}

void op_member_sums(Run *r, Tensor x, Tensor index, bool unit, Tensor sum)
{
    if (run_failed(r))
        return;
    DISPATCH(r, member_sums, &x, &index, unit, &sum);
    op_traffic(r, bytes_of(x) + bytes_of(index), bytes_of(sum));
}

Tensor op_tally(Run *r, Tensor index, int64_t count)
{
    Tensor found = run_tensor2(r, DT_I32, index.shape[0], count);

    if (run_failed(r))
        return found;
    DISPATCH(r, tally, &index, &found);
    op_traffic(r, bytes_of(index), bytes_of(found));
    return found;
}

void op_nearest_codes(Run *r, Tensor codes, Tensor centres, Tensor cluster)
{
    if (run_failed(r))
        return;
    DISPATCH(r, nearest_codes, &codes, &centres, &cluster);
    op_traffic(r, bytes_of(codes) + bytes_of(centres), bytes_of(cluster));
}

Tensor op_bit_sums(Run *r, Tensor codes, Tensor cluster, int64_t clusters)
{
    Tensor ones = run_tensor3(r, DT_I32, codes.shape[0], clusters, 64);

    if (run_failed(r))
        return ones;
    DISPATCH(r, bit_sums, &codes, &cluster, &ones);
    op_traffic(r, bytes_of(codes) + bytes_of(cluster), bytes_of(ones));
    return ones;
}

Tensor op_key_usage(Run *r, Tensor q, Tensor k, double scale, bool causal)
{
    Tensor usage = run_tensor1(r, DT_F64, k.shape[1]);

    if (run_failed(r))
        return usage;
    DISPATCH(r, key_usage, &q, &k, scale, causal, &usage);
    op_traffic(r, bytes_of(q) + bytes_of(k), bytes_of(usage));
    return usage;
}

Tensor op_sort(Run *r, Tensor key)
{
    int64_t n = key.shape[key.rank - 1];
    Tensor  order = key.rank == 3 ? run_tensor3(r, DT_I32, key.shape[0], key.shape[1], n)
                                  : run_tensor2(r, DT_I32, key.shape[0], n);

    if (run_failed(r))
        return order;
    DISPATCH(r, sort, &key, &order);
    op_traffic(r, bytes_of(key), bytes_of(order));
    return order;
}
