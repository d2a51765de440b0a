"""PyTorch forms of the mechanisms whose keys depend on the content."""
import math

import torch
import torch.nn.functional as F

from common import SIZE, Case, merge, sdpa, take


def reformer(a, p, t):
    """Rounds of hashing, sorting and chunks of the sorted order; a pair counts once."""
    h, n, d = a.q.shape
    rounds, size, place = p["rounds"], p["block"], torch.arange(n)
    chunks = n // size

    def back(x):
        """Of each chunk, and of the chunk before it (the first has none)."""
        before = F.pad(x, (0,) * (2 * (x.dim() - 2)) + (1, 0))[:, :-1]
        return torch.cat([before, x], 2)

    def order_of(buckets):
        order = (buckets * n + place).argsort(-1)
        chunk = torch.empty_like(order).scatter_(-1, order, (place // size).expand_as(order))
        return order, chunk

    def one_round(r, order, buckets, chunk, keys):
        index = order[:, r].view(h, chunks, size)
        q, k, v = take(a.q, index), back(take(keys, index)), back(take(a.v, index))
        scores = (q * d ** -.5) @ k.transpose(-1, -2)
        visits = torch.zeros_like(scores)
        for other in range(rounds):
            b, c = (x[:, other].gather(1, order[:, r]).view(h, chunks, size)
                    for x in (buckets, chunk))
            ahead = c.unsqueeze(-1) - back(c).unsqueeze(-2)
            met = (b.unsqueeze(-1) == back(b).unsqueeze(-2)) & ((ahead == 0) | (ahead == 1))
            met[:, 0, :, :size] = False
            visits += met
            if other == r:
                here = met
        scores -= visits.log_()
        scores.masked_fill_(~here, -math.inf)
        scores[..., size:].diagonal(dim1=-2, dim2=-1).sub_(1e5)
        lse = torch.logsumexp(scores, -1, keepdim=True)
        return (scores - lse).exp_() @ v, lse.squeeze(-1)

    def form():
        turned = torch.einsum("hnd,hdrk->hrnk", a.q, t["rotations"])
        buckets = torch.cat([turned, -turned], -1).argmax(-1)
        order, chunk = order_of(buckets)
        keys = a.q * (a.q.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        parts = []
        for r in range(rounds):
            out, lse = one_round(r, order, buckets, chunk, keys)
            slot = torch.empty_like(order[:, r]).scatter_(1, order[:, r], place.expand(h, n))
            parts.append((take(out.view(h, n, -1), slot), lse.view(h, n).gather(1, slot)))
        return merge(*parts)
    return {"sort, chunks, matmul": form}


def reformer_tensors(p):
    return lambda n, h: {"rotations": torch.randn(h, SIZE, p["rounds"], max(1, n // p["block"]))}


def routing(a, p, t):
    """The best tokens of each centroid attend to each other; means where clusters overlap."""
    h, n, d = a.q.shape
    count = round(math.sqrt(n))
    width = -(-n // count)

    def form():
        q = F.layer_norm(a.q, (d,), eps=1e-6)
        near = torch.matmul(t["centroids"], q.transpose(1, 2))
        index = near.topk(width, -1, sorted=False).indices
        x, v = take(q, index), take(a.v, index)
        out = sdpa(x, x, v).view(h, -1, v.shape[-1])
        flat = index.view(h, -1)
        total = torch.zeros(h, n, v.shape[-1]).scatter_add_(
            1, flat.unsqueeze(-1).expand(-1, -1, v.shape[-1]), out)
        times = torch.zeros(h, n).scatter_add_(1, flat, torch.ones(flat.shape))
        return total / times.clamp(min=1).unsqueeze(-1)
    return {"top-k, gather, SDPA": form}


def routing_tensors(n, h):
    return {"centroids": F.layer_norm(torch.randn(h, round(math.sqrt(n)), SIZE), (SIZE,))}


def sinkhorn(a, p, t):
    h, n, d = a.q.shape
    size = p["block"]
    nb = n // size

    def form():
        q, k, v = (x.view(h, nb, size, -1) for x in (a.q, a.k, a.v))
        logits = (k.sum(2) @ t["sort_w1"]) / .75
        for _ in range(8):
            logits = logits - torch.logsumexp(logits, 2, keepdim=True)
            logits = logits - torch.logsumexp(logits, 1, keepdim=True)
        order = logits.exp_()
        sorted_k, sorted_v = ((order @ x.view(h, nb, -1)).view(x.shape) for x in (k, v))
        return sdpa(q, torch.cat([sorted_k, k], 2), torch.cat([sorted_v, v], 2)).view(h, n, -1)
    return {"matmul, SDPA": form}


def sinkhorn_tensors(p):
    return lambda n, h: {"sort_w1": torch.randn(h, SIZE, n // p["block"]) / 16}


def clusterformer(a, p, t):
    """Tokens sorted by cluster and cut into chunks; ten rounds of k-means first."""
    h, n, d = a.q.shape
    size, place = p["block"], torch.arange(n)

    def assign(unit, centres):
        return (unit @ F.normalize(centres, dim=-1).transpose(1, 2)).argmax(-1)

    def form():
        unit, centres = F.normalize(a.q, dim=-1), t["centroids"]
        for _ in range(p["kmeans_iters"]):
            mine = assign(unit, centres)
            sums = torch.zeros_like(centres).scatter_add_(
                1, mine.unsqueeze(-1).expand(-1, -1, d), unit)
            members = torch.zeros(h, centres.shape[1]).scatter_add_(1, mine, torch.ones(h, n))
            centres = torch.where(members.unsqueeze(-1) > 0,
                                  sums / members.clamp(min=1).unsqueeze(-1), centres)
        cluster = assign(unit, centres)
        order = (cluster * n + place).argsort(-1)
        index = order.view(h, -1, size)
        kind = cluster.gather(1, order).view(h, -1, size)
        mask = torch.zeros(*index.shape, size).masked_fill_(
            kind.unsqueeze(-1) != kind.unsqueeze(-2), -math.inf)
        out = sdpa(take(a.q, index), take(a.k, index), take(a.v, index), mask).view(h, n, -1)
        slot = torch.empty_like(order).scatter_(1, order, place.expand(h, n))
        return take(out, slot)
    return {"sort, chunks, SDPA": form}


def clusterformer_tensors(n, h):
    return {"centroids": torch.randn(h, round(math.sqrt(n)), SIZE)}


def hamming_clusters(q, planes, start, iterations):
    """Codes of signs, clustered by Hamming distance: +-1 products stand for it."""
    bits = (q @ planes[:, :-1].T > planes[:, -1]).float()
    signs = 2 * bits - 1
    codes = bits[:, start]
    for turn in range(iterations):
        cluster = (signs @ (2 * codes - 1).transpose(1, 2)).argmax(-1)
        if turn + 1 < iterations:
            members = F.one_hot(cluster, codes.shape[1]).float().transpose(1, 2)
            ones, count = members @ bits, members.sum(-1, keepdim=True)
            codes = torch.where(count > 0, (2 * ones > count).float(), codes)
    return cluster


def cluster_scores(a, p, t):
    """(cluster of each query, scores of the clusters' mean queries)"""
    cluster = hamming_clusters(a.q, t["planes"], t["init_indices"].long(), 10)
    members = F.one_hot(cluster, 32).float().transpose(1, 2)
    mean = (members @ a.q) / members.sum(-1, keepdim=True).clamp(min=1)
    return cluster, (mean * SIZE ** -.5) @ a.k.transpose(1, 2)


def clustered(a, p, t):
    def form():
        cluster, scores = cluster_scores(a, p, t)
        return take(torch.softmax(scores, -1) @ a.v, cluster)
    return {"matmul, gather": form}


def clustered_improved(a, p, t):
    """As clustered, but each query weighs its cluster's best keys by itself."""
    h, n, d = a.q.shape
    step = 1024

    def rows(cluster, scores, finish):
        best = scores.topk(p["topk"], -1).indices
        weights = torch.softmax(scores, -1)
        kept = weights.gather(-1, best).sum(-1)
        rest = weights.scatter(-1, best, 0.) @ a.v
        return finish(cluster, best, kept, take(rest, cluster))

    def gathered(cluster, best, kept, out):
        keys, values, share = take(a.k, best), take(a.v, best), kept.gather(1, cluster)
        for at in range(0, n, step):
            mine = cluster[:, at:at + step]
            q = a.q[:, at:at + step].unsqueeze(2)
            k, v = (take(x.flatten(2), mine).view(h, -1, p["topk"], d) for x in (keys, values))
            own = sdpa(q, k, v).squeeze(2)
            out[:, at:at + step] += share[:, at:at + step].unsqueeze(-1) * own
        return out

    def looped(cluster, best, kept, out):
        for head in range(h):
            for c in range(best.shape[1]):
                mine = (cluster[head] == c).nonzero().squeeze(1)
                keys = best[head, c]
                scores = a.q[head, mine] @ a.k[head, keys].T * d ** -.5
                own = kept[head, c] * (torch.softmax(scores, -1) @ a.v[head, keys])
                out[head].index_add_(0, mine, own)
        return out
    return {name: (lambda finish=finish: rows(*cluster_scores(a, p, t), finish))
            for name, finish in (("top-k, gather", gathered), ("top-k, clusters", looped))}


def clustered_tensors(n, h):
    return {"planes": torch.randn(63, SIZE + 1), "init_indices": torch.randperm(n)[:32].int()}


def reformer_held(n, h):
    """As many buckets, by two rotations: hashing to 2n/block by one costs n^2/block."""
    buckets = 2 * n // 64
    first = 2 ** math.ceil(math.log2(buckets) / 2)
    params = dict(rounds=4, block=64, n_buckets=first, n_buckets2=buckets // first)
    columns = (first + buckets // first) // 2
    return params, {"rotations": torch.randn(h, SIZE, params["rounds"], columns)}


def sinkhorn_held(n, h):
    """Blocks of sqrt(n): then n b and the n^2/b of the soft permutation both grow as n^1.5."""
    block = math.isqrt(n)
    return dict(block=block), sinkhorn_tensors(dict(block=block))(n, h)


def clusterformer_held(n, h):
    return dict(block=64, kmeans_iters=10), {"centroids": torch.randn(h, 64, SIZE)}


def table():
    hashed, block = dict(rounds=4, block=64), dict(block=64)
    return [
        Case("reformer", reformer, hashed, reformer_tensors(hashed), held=reformer_held,
             held_as="a factorised hash"),
        Case("routing", routing, {}, routing_tensors, claim=1.5),
        Case("sinkhorn", sinkhorn, block, sinkhorn_tensors(block), held=sinkhorn_held,
             held_as="b = sqrt(n)", held_claim=1.5),
        Case("clusterformer", clusterformer, dict(block, kmeans_iters=10), clusterformer_tensors,
             held=clusterformer_held, held_as="64 clusters"),
        Case("clustered", clustered, {}, clustered_tensors),
        Case("clustered-improved", clustered_improved, dict(topk=32), clustered_tensors),
    ]
