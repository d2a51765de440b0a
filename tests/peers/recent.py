"""PyTorch forms of the mechanisms of 2021 to 2025: choices of keys, latents, states with gates.

Choices are gathered for some queries at a time, or masked; states are chunks, as in
flash-linear-attention's own PyTorch functions.
"""
import math

import torch
import torch.nn.functional as F

from common import SIZE, Case, Local, additive, blocks, sdpa, take, unblocks, windows

ROWS = 128   # queries whose keys are gathered at once
CHUNK = 64   # tokens of a chunk of a state
SCALE = SIZE ** -.5


# ---- keys that are chosen --------------------------------------------------------

def by_rows(n, part, rows=ROWS):
    """Outputs of blocks of queries, side by side."""
    return torch.cat([part(first, first + rows) for first in range(0, n, rows)], 1)


def past(scores, first, end, fill=-math.inf):
    """Scores [.., end - first, end] without later keys, in place."""
    later = torch.ones(end - first, end - first, dtype=torch.bool).triu_(1)
    scores[..., first:end].masked_fill_(later, fill)
    return scores


def mix(scores, values):
    """Softmax of scores [h,r,k] over values [h,r,k,e]"""
    return (torch.softmax(scores, -1).unsqueeze(2) @ values).squeeze(2)


def topk(a, p, t):
    n, k = a.q.shape[1], p["k"]

    def scored(first, end):
        return past(a.q[:, first:end] @ a.k[:, :end].transpose(1, 2) * SCALE, first, end)

    def gathered(first, end):
        best = scored(first, end).topk(min(k, end), -1, sorted=False)
        return mix(best.values, take(a.v, best.indices))

    def masked(first, end):
        scores = scored(first, end)
        least = scores.topk(min(k, end), -1).values[..., -1:]
        return torch.softmax(scores.masked_fill_(scores < least, -math.inf), -1) @ a.v[:, :end]
    return {"top-k, gather": lambda: by_rows(n, gathered),
            "top-k, mask": lambda: by_rows(n, masked)}


def dsa(a, p, t):
    n, k = a.q.shape[1], p["topk"]
    heads, width = t["index_q"].shape[1:]
    iq, w = t["index_q"].transpose(0, 1), t["index_w"].T.unsqueeze(-1)

    def part(first, end):
        numbers = F.relu(iq[:, first:end] @ t["index_k"][:end].T).mul_(w[:, first:end]).sum(0)
        best = past(numbers / math.sqrt(heads * width), first, end).topk(min(k, end), -1)
        index = best.indices.expand(len(a.q), -1, -1)
        scores = (take(a.k, index) @ a.q[:, first:end].unsqueeze(-1)).squeeze(-1) * SCALE
        return mix(scores.masked_fill_(best.values == -math.inf, -math.inf), take(a.v, index))
    return {"indexer, top-k, gather": lambda: by_rows(n, part)}


def dsa_tensors(n, h):
    # No relu gives 0: of equal numbers PyTorch takes any.
    return {"index_q": torch.rand(n, 4, 32), "index_k": torch.rand(n, 32),
            "index_w": torch.rand(n, 4)}


def read_blocks(a, index, there, size, first):
    """Attention of queries from `first` on to the blocks index [h,r,k] that are there."""
    h, n, d = a.q.shape
    rows, count = index.shape[1:]
    k, v = (take(x.view(h, n // size, -1), index).view(h, rows, count * size, d)
            for x in (a.k, a.v))
    keys = (index.unsqueeze(-1) * size + torch.arange(size)).flatten(2)
    seen = there.repeat_interleave(size, -1) & (keys <= torch.arange(first, first + rows)[:, None])
    scores = (k @ a.q[:, first:first + rows].unsqueeze(-1)).squeeze(-1) * SCALE
    return mix(scores.masked_fill_(~seen, -math.inf), v)


def choose_blocks(numbers, size, first, count):
    """The best `count` of numbers [h,r,blocks] before a query's own block, and this."""
    own = torch.arange(first, first + numbers.shape[1]).div(size, rounding_mode="floor")
    block = torch.arange(numbers.shape[2])
    numbers = numbers.masked_fill(block > own[:, None], -math.inf)
    numbers = numbers.masked_fill_(block == own[:, None], math.inf)
    best = numbers.topk(min(count, numbers.shape[2]), -1, sorted=False)
    return best.indices, best.values > -math.inf


def moba(a, p, t):
    h, n, d = a.q.shape
    size = p["block"]

    def form():
        mean = a.k.view(h, n // size, size, d).mean(2).transpose(1, 2)

        def part(first, end):
            index, there = choose_blocks(a.q[:, first:end] @ mean, size, first, p["topk"])
            return read_blocks(a, index, there, size, first)
        return by_rows(n, part)
    return {"means, top-k, gather": form}


def quest(a, p, t):
    h, n, d = a.q.shape
    size = p["page"]

    def form():
        pages = a.k.view(h, n // size, size, d)
        lo, hi = pages.amin(2).transpose(1, 2), pages.amax(2).transpose(1, 2)

        def part(first, end):
            q = a.q[:, first:end]
            bounds = q.clamp(min=0) @ hi + q.clamp(max=0) @ lo
            index, there = choose_blocks(bounds, size, first, p["budget"] // size)
            return read_blocks(a, index, there, size, first)
        return by_rows(n, part)
    return {"bounds, top-k, gather": form}


def nsa(a, p, t):
    """The branch of chosen blocks gathers them, or masks exact attention: the fastest counts."""
    h, n, d = a.q.shape
    block, stride, size = p["cmp_block"], p["cmp_stride"], p["sel_block"]
    gates, width = t["gates"], block // stride
    near = Local(a, p["window"], p["window"] - 1, 0, lambda i, j: (j <= i) & (i - j < p["window"]))

    def compressed(first, end, k, v):
        """Output, and the importance of blocks: cells of `stride` tokens that both cover."""
        ends = torch.arange(k.shape[1]) * stride + block - 1
        hidden = ends > torch.arange(first, end)[:, None]
        scores = (a.q[:, first:end] @ k.transpose(1, 2)).mul_(SCALE).masked_fill_(hidden, -math.inf)
        weights = torch.softmax(scores, -1).nan_to_num_(0)
        padded = F.pad(weights, (width - 1, n // stride - k.shape[1]))
        cells = sum(padded[..., x:x + n // stride] for x in range(width))
        return weights @ v, cells.unflatten(-1, (-1, size // stride)).sum(-1)

    def choose(importance, first):
        own = torch.arange(first, first + importance.shape[1]).div(size, rounding_mode="floor")
        own, b = own[:, None], torch.arange(n // size)
        fixed = (b < p["first"]) | (b > own - p["last"])
        numbers = importance.masked_fill(fixed, math.inf).masked_fill_(b > own, -math.inf)
        best = numbers.topk(min(p["topk"], n // size), -1, sorted=False)
        return best.indices, best.values > -math.inf

    def masked(index, there, first, end):
        seen = torch.zeros(h, end - first, n // size, dtype=torch.bool).scatter_(2, index, there)
        seen = seen.repeat_interleave(size, -1)[..., :end]
        seen &= torch.arange(end) <= torch.arange(first, end)[:, None]
        mask = torch.zeros(seen.shape, dtype=a.q.dtype).masked_fill_(~seen, -math.inf)
        return sdpa(a.q[:, first:end], a.k[:, :end], a.v[:, :end], mask)

    def form(read):
        k, v = (x.unfold(1, block, stride).mean(-1) for x in (a.k, a.v))
        window = near.sdpa()

        def part(first, end):
            out, importance = compressed(first, end, k, v)
            chosen = read(*choose(importance, first), first, end)
            g = gates[:, first:end]
            return g[..., :1] * out + g[..., 1:2] * chosen + g[..., 2:] * window[:, first:end]
        return by_rows(n, part)
    return {"blocks gathered": lambda: form(
                lambda index, there, first, end: read_blocks(a, index, there, size, first)),
            "blocks masked": lambda: form(masked)}


def three_gates(n, h):
    return {"gates": torch.rand(h, n, 3)}


def snapkv(a, p, t):
    """The prompt by exact attention; later rows see what its last rows voted for."""
    h, n, _ = a.q.shape
    prompt = n - n // 4
    pre, rows = prompt - p["observation"], n - prompt
    later = torch.ones(n - pre, n - pre, dtype=torch.bool).triu_(1)

    def form():
        out = sdpa(a.q[:, :prompt], a.k[:, :prompt], a.v[:, :prompt], is_causal=True)
        scores = past(a.q[:, pre:prompt] @ a.k[:, :prompt].transpose(1, 2) * SCALE, pre, prompt)
        votes = torch.softmax(scores, -1)[..., :pre].sum(1)
        pooled = F.avg_pool1d(votes, p["kernel"], 1, p["kernel"] // 2)
        kept = pooled.topk(p["keep"], -1).indices
        k, v = (torch.cat([take(x, kept), x[:, pre:]], 1) for x in (a.k, a.v))
        mask = torch.zeros(rows, k.shape[1], dtype=a.q.dtype)
        mask[:, p["keep"]:].masked_fill_(later[prompt - pre:], -math.inf)
        return torch.cat([out, sdpa(a.q[:, prompt:], k, v, mask)], 1)
    return {"SDPA, votes": form}


def h2o(a, p, t):
    """Rows one by one for all heads: a new key takes the place of the one that left."""
    h, n, d = a.q.shape
    heavy, recent = p["heavy"], p["recent"]
    slots, all_heads = heavy + recent + 1, torch.arange(h)

    def form():
        k, v = (torch.zeros(h, slots, x.shape[-1], dtype=x.dtype) for x in (a.k, a.v))
        sums = torch.zeros(h, slots, dtype=torch.float64)
        position = torch.full((h, slots), -1)
        free, out = torch.zeros(h, dtype=torch.long), torch.empty_like(a.v)
        q, unused = a.q * SCALE, torch.arange(slots)
        for i in range(n):
            k[all_heads, free], v[all_heads, free] = a.k[:, i], a.v[:, i]
            position[all_heads, free], sums[all_heads, free] = i, 0
            scores = (k @ q[:, i].unsqueeze(-1)).squeeze(-1)
            if i + 1 < slots:
                scores[:, unused > i] = -math.inf
            weights = torch.softmax(scores, -1)
            sums += weights
            out[:, i] = (weights.unsqueeze(1) @ v).squeeze(1)
            if i + 1 < slots:
                free = free + 1
            else:  # of equal sums the later one leaves, which no two have here
                free = sums.masked_fill(position > i - recent, math.inf).argmin(-1)
        return out
    return {"rows, all heads": form}


def vertical_slash(a, p, t):
    h, n, _ = a.q.shape
    last = p["last_q"]
    row = torch.arange(n - last, n)[:, None]
    offset = (row - torch.arange(n)).clamp(min=0).expand(h, -1, -1)

    def chosen(sums, first, count):
        sums = sums.clone()
        sums[:, :first] = math.inf
        return sums.topk(count, -1).indices

    def form():
        weights = torch.softmax(past(a.q[:, n - last:] @ a.k.transpose(1, 2) * SCALE,
                                     n - last, n), -1)
        slashes = torch.zeros(h, n, dtype=weights.dtype)
        slashes.scatter_add_(1, offset.flatten(1), weights.flatten(1))
        columns = chosen(weights.sum(1), p["keep_first"], p["vertical"])
        slashes = chosen(slashes, p["keep_recent"], p["slash"])
        is_column = torch.zeros(h, n, dtype=torch.bool).scatter_(1, columns, True)

        def part(first, end):
            i = torch.arange(first, end)[:, None]
            near = i - slashes.unsqueeze(1)
            column = columns.unsqueeze(1).expand(-1, end - first, -1)
            twice = is_column.gather(1, near.clamp(min=0).flatten(1)).view(near.shape)
            index = torch.cat([column, near.clamp(min=0)], -1)
            hidden = torch.cat([column > i, (near < 0) | twice], -1)
            scores = (take(a.k, index) @ a.q[:, first:end].unsqueeze(-1)).squeeze(-1) * SCALE
            return mix(scores.masked_fill_(hidden, -math.inf), take(a.v, index))
        return by_rows(n, part)
    return {"columns and slashes, gather": form}


def streaming(a, p, t):
    n, w, s = a.q.shape[1], p["window"], p["sinks"]
    size = min(w, n)
    i = torch.arange(n).view(-1, size, 1)
    j = torch.arange(0, n, size).view(-1, 1, 1) + torch.arange(1 - size, size)
    near = additive((j >= 0) & (j <= i) & (i - j < w))
    far = additive((i - torch.arange(s)) >= w)
    mask = torch.cat([far, near], -1)[:, None]

    def beside(x):
        around = windows(x, size, size - 1, 0)
        return torch.cat([x[:, :s].expand(len(around), -1, -1, -1), around], 2)
    return {"blocks + sinks, SDPA":
            lambda: unblocks(sdpa(blocks(a.q, size), beside(a.k), beside(a.v), mask))}


def natten(a, p, t):
    n, kernel = a.q.shape[1], p["kernel"]

    def allowed(i, j):
        start = (i - kernel // 2).clamp(0, n - kernel)
        return (j >= start) & (j < start + kernel)
    return Local(a, kernel - 1, kernel - 1, kernel - 1, allowed).forms()


# ---- other attention ---------------------------------------------------------------

def mla(a, p, t):
    c, up, down = t["latent"], t["w_uk"], t["w_uv"]

    def absorbed():
        shared = c.expand(len(a.q), -1, -1)
        out = sdpa(a.q @ up.transpose(1, 2), shared, shared, is_causal=True, scale=SCALE)
        return out @ down
    return {"plain, SDPA": lambda: sdpa(a.q, c @ up, c @ down, is_causal=True, scale=SCALE),
            "absorbed, SDPA": absorbed}


def mla_tensors(n, h):
    return {"latent": torch.randn(n, 128), "w_uk": torch.randn(h, 128, SIZE) / 11,
            "w_uv": torch.randn(h, 128, SIZE) / 11}


def differential(a, p, t):
    h, n, e = a.v.shape

    def form():
        v = torch.cat([a.v[0::2], a.v[1::2]], -1)
        out = (sdpa(a.q[0::2], a.k[0::2], v) - .2 * sdpa(a.q[1::2], a.k[1::2], v))
        out = F.rms_norm(out, (2 * e,), eps=1e-5) * .8
        return out.view(h // 2, n, 2, e).transpose(1, 2).reshape(h, n, e)
    return {"SDPA twice": form}


def sigmoid(a, p, t):
    n = a.q.shape[1]
    shift = -math.log(n)

    def part(first, end):
        scores = a.q[:, first:end] @ a.k.transpose(1, 2)
        return scores.mul_(SCALE).add_(shift).sigmoid_() @ a.v
    return {"matmul": lambda: by_rows(n, part, min(n, 512))}


# ---- states ------------------------------------------------------------------------

def chunks(x):
    """[h,n,..] -> [h, n/CHUNK, CHUNK, ..]"""
    return x.unflatten(1, (-1, CHUNK))


def run_chunks(a, step):
    """step(chunk, state) -> output of the chunk, next state"""
    h, n, d = a.q.shape
    state, out = torch.zeros(h, d, a.v.shape[-1]), []
    for x in range(n // CHUNK):
        y, state = step(x, state)
        out.append(y)
    return torch.cat(out, 1)


def scalar_decay(a, logs, scale, values):
    """States that decay by exp(logs [h,n]) and take in k^T values."""
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool).tril_()

    def form():
        q, k, v = chunks(a.q * scale), chunks(a.k), chunks(values())
        sums = chunks(logs).cumsum(-1)
        decay = (sums.unsqueeze(-1) - sums.unsqueeze(-2)).masked_fill_(~lower, -math.inf).exp_()
        inner = (q @ k.transpose(-1, -2)).mul_(decay) @ v
        q = q * sums.exp().unsqueeze(-1)
        k = k * (sums[..., -1:] - sums).exp_().unsqueeze(-1)
        added, kept = k.transpose(-1, -2) @ v, sums[..., -1].exp()

        def step(x, state):
            y = inner[:, x] + q[:, x] @ state
            return y, state * kept[:, x, None, None] + added[:, x]
        return run_chunks(a, step)
    return form


def retnet(a, p, t):
    h, n, _ = a.q.shape
    logs = torch.log1p(-2. ** (-5. - torch.arange(h))).unsqueeze(1).expand(h, n)
    return {f"chunks of {CHUNK}": scalar_decay(a, logs, SCALE, lambda: a.v)}


def mamba2(a, p, t):
    return {f"chunks of {CHUNK}": scalar_decay(a, t["gates"].log(), 1,
                                               lambda: a.v * t["dt"].unsqueeze(-1))}


def scalar_tensors(*names):
    return lambda n, h: {name: .9 + .1 * torch.rand(h, n) for name in names}


def gla(a, p, t):
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool).tril_()

    def form():
        sums = chunks(t["gates"].log()).cumsum(2)
        q, k, v = chunks(a.q * SCALE) * sums.exp(), chunks(a.k), chunks(a.v)
        inner = (q @ (k * (-sums).exp()).transpose(-1, -2)).masked_fill_(~lower, 0) @ v
        last = sums[:, :, -1:]
        added = (k * (last - sums).exp()).transpose(-1, -2) @ v
        kept = last.exp().transpose(-1, -2)

        def step(x, state):
            return inner[:, x] + q[:, x] @ state, state * kept[:, x] + added[:, x]
        return run_chunks(a, step)
    return {f"chunks of {CHUNK}": form}


def gla_tensors(n, h):
    return {"gates": .9 + .1 * torch.rand(h, n, SIZE)}


def delta(gated):
    """Chunks by the WY form: a triangular system each."""
    def forms(a, p, t):
        lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool).tril_()

        def form():
            q = chunks(F.normalize(a.q, dim=-1, eps=1e-6) * SCALE)
            k, v = chunks(F.normalize(a.k, dim=-1, eps=1e-6)), chunks(a.v)
            beta = chunks(t["beta"]).unsqueeze(-1)
            logs = t["gates"].log() if gated else torch.zeros_like(t["beta"])
            sums = chunks(logs).cumsum(-1)
            decay = (sums.unsqueeze(-1) - sums.unsqueeze(-2)).masked_fill_(~lower, -math.inf)
            decay = decay.exp_()
            system = (k * beta @ k.transpose(-1, -2)).mul_(decay).tril_(-1)
            right = torch.cat([v * beta, k * beta * sums.exp().unsqueeze(-1)], -1)
            u, w = torch.linalg.solve_triangular(system, right, upper=False,
                                                 unitriangular=True).split(v.shape[-1], -1)
            inner = (q @ k.transpose(-1, -2)).mul_(decay)
            q = q * sums.exp().unsqueeze(-1)
            k = k * (sums[..., -1:] - sums).exp_().unsqueeze(-1)
            kept = sums[..., -1].exp()

            def step(x, state):
                new = u[:, x] - w[:, x] @ state
                y = q[:, x] @ state + inner[:, x] @ new
                return y, state * kept[:, x, None, None] + k[:, x].transpose(1, 2) @ new
            return run_chunks(a, step)
        return {f"chunks of {CHUNK}": form}
    return forms


def rwkv7(a, p, t):
    """Chunks by the WY form, gates of channels as quotients of their products."""
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool).tril_()

    def form():
        sums = chunks(t["decay"].log()).cumsum(2)
        before = torch.cat([torch.zeros_like(sums[:, :, :1]), sums[:, :, :-1]], 2)
        grown, faded, last = sums.exp(), (-sums).exp(), sums[:, :, -1:]
        rate, v = chunks(t["rate"]), chunks(a.v)
        kk = chunks(F.normalize(a.k, dim=-1, eps=1e-12))
        key, removed = chunks(a.k) * rate, kk * rate
        read, kk = chunks(a.q) * grown, kk * before.exp()
        system = (kk @ (removed * faded).transpose(-1, -2)).tril_(-1)
        written = (key * faded).transpose(-1, -2)
        right = torch.cat([kk, (kk @ written).tril_(-1) @ v], -1)
        w, y = torch.linalg.solve_triangular(system, right, upper=False,
                                             unitriangular=True).split((kk.shape[-1],
                                                                        v.shape[-1]), -1)
        inner = (read @ written).masked_fill_(~lower, 0) @ v
        taken = (read @ (removed * faded).transpose(-1, -2)).masked_fill_(~lower, 0)
        rest = (last - sums).exp()
        added = (key * rest).transpose(-1, -2) @ v
        gone, kept = (removed * rest).transpose(-1, -2), last.exp().transpose(-1, -2)

        def step(x, state):
            u = w[:, x] @ state + y[:, x]
            out = read[:, x] @ state + inner[:, x] - taken[:, x] @ u
            return out, state * kept[:, x] + added[:, x] - gone[:, x] @ u
        return run_chunks(a, step)
    return {f"chunks of {CHUNK}": form}


def rwkv7_tensors(n, h):
    return {"decay": .9 + .1 * torch.rand(h, n, SIZE), "rate": torch.rand(h, n, SIZE)}


def log_linear(a, p, t):
    """Runs of chunks as a tree: each level's states and reads are one product for all chunks."""
    h, n, d = a.q.shape
    count, e = n // CHUNK, a.v.shape[-1]
    i = torch.arange(CHUNK)
    level = (i[:, None] ^ i).double().add(.5).log2().floor().add(1).clamp(min=0).long()
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool).tril_()
    inside = CHUNK.bit_length() - 1

    def form():
        q, k, v = chunks(a.q), chunks(a.k), chunks(a.v)
        scales = chunks(t["level_scales"].to(a.q.dtype))
        sums = chunks(t["gates"].log()).cumsum(-1)
        decay = (sums.unsqueeze(-1) - sums.unsqueeze(-2)).masked_fill_(~lower, -math.inf).exp_()
        out = (q @ k.transpose(-1, -2)).mul_(decay).mul_(scales[:, :, i[:, None], level]) @ v
        q = q * sums.exp().unsqueeze(-1)
        runs = (k * (sums[..., -1:] - sums).exp_().unsqueeze(-1)).transpose(-1, -2) @ v
        faded = sums[..., -1]                       # logarithm, of a run
        start = faded.cumsum(1) - faded             # before a chunk
        chunk, size, l = torch.arange(count), 1, 1
        while size < count:
            reading = chunk[(chunk >> (l - 1)) & 1 == 1]
            run = (reading >> l) * 2
            left = start[:, reading] - start[:, (run + 1) * size]
            read = q[:, reading] @ (runs[:, run] * left.exp()[..., None, None])
            out[:, reading] += read * scales[:, reading, :, inside + l].unsqueeze(-1)
            runs = runs[:, 0::2] * faded[:, 1::2, None, None].exp() + runs[:, 1::2]
            faded = faded[:, 0::2] + faded[:, 1::2]
            size, l = 2 * size, l + 1
        return out.reshape(h, n, e)
    return {f"chunks of {CHUNK}, runs": form}


def log_linear_tensors(n, h):
    return {"gates": .9 + .1 * torch.rand(h, n),
            "level_scales": torch.rand(h, n, 1 + (n - 1).bit_length())}


def table():
    quadratic = dict(claim=2, sizes=(1024, 4096), long=16384)
    return [
        Case("topk", topk, dict(k=64), causal=True, check_wide=True, **quadratic),
        Case("dsa", dsa, dict(topk=64), dsa_tensors, causal=True, **quadratic),
        Case("moba", moba, dict(block=64, topk=4), causal=True, claim=2),
        Case("quest", quest, dict(page=16, budget=256), causal=True, claim=2),
        Case("nsa", nsa, dict(cmp_block=32, cmp_stride=16, sel_block=64, topk=16, first=1, last=2,
                              window=512), three_gates, causal=True, claim=2, check_wide=True),
        Case("snapkv", snapkv, dict(observation=32, keep=992, kernel=5, per="head"), causal=True,
             check_wide=True, check_n=2048, floor=1.0, **quadratic), # mostly exact attention
        Case("vertical-slash", vertical_slash, dict(last_q=64, vertical=64, slash=64, keep_first=4,
                                                    keep_recent=16), causal=True, check_wide=True),
        Case("h2o", h2o, dict(heavy=128, recent=128), causal=True, check_wide=True),
        Case("streaming-llm", streaming, dict(sinks=4, window=256), causal=True),
        Case("natten", natten, dict(kernel=129)),
        # Over whole sequences keys and values cost less than latents of twice their width, on both
        # sides.
        Case("mla", mla, dict(form="plain"), mla_tensors, causal=True, floor=1.0, **quadratic),
        Case("differential", differential, {}, floor=1.0, **quadratic),
        Case("sigmoid", sigmoid, {}, floor=1.0, **quadratic),
        Case("retnet", retnet, causal=True),
        Case("gla", gla, {}, gla_tensors, causal=True),
        Case("mamba2", mamba2, {}, scalar_tensors("gates", "dt"), causal=True),
        Case("rwkv7", rwkv7, {}, rwkv7_tensors, causal=True),
        Case("log-linear", log_linear, {}, log_linear_tensors, causal=True),
        Case("deltanet", delta(False), {}, scalar_tensors("beta"), causal=True),
        Case("gated-deltanet", delta(True), {}, scalar_tensors("gates", "beta"), causal=True),
    ]
