"""PyTorch forms of exact attention and of the fixed patterns."""
import math

import torch
import torch.nn.functional as F

from common import (SIZE, Case, Inputs, Local, additive, attend, blocks, merge, sdpa, take,
                    unblocks, whole)


def full(a, p, t):
    return {"SDPA": lambda: sdpa(a.q[None], a.k[None], a.v[None])[0]}


def full_causal(a, p, t):
    return {"SDPA": lambda: sdpa(a.q[None], a.k[None], a.v[None], is_causal=True)[0]}


def anything(i, j):
    return torch.ones_like(i + j, dtype=torch.bool)


def band(a, reach):
    block = max(64, reach)
    return Local(a, block, reach, reach, lambda i, j: (i - j).abs() <= reach)


def window(a, p, t):
    return band(a, p["window"] // 2).forms()


def cascade(a, p, t):
    width = 2 ** p["layer"]
    return Local(a, width, width, width, lambda i, j: (i - j).abs() < width).forms()


def dilated(a, p, t):
    """Tokens of one phase are neighbours; a window in each."""
    step, reach = p["dilation"], p["window"] // 2
    h, n, _ = a.q.shape

    def phases(x):
        return x.view(h, n // step, step, -1).transpose(1, 2).reshape(h * step, n // step, -1)

    def phased(form):
        def run():
            local.inputs = Inputs(phases(a.q), phases(a.k), phases(a.v), None)
            out = getattr(local, form)()
            return out.view(h, step, n // step, -1).transpose(1, 2).reshape(h, n, -1)
        return run

    local = band(Inputs(phases(a.q), phases(a.k), phases(a.v), None), reach)
    return {"phases, blocks, SDPA": phased("sdpa"), "phases, blocks, matmul": phased("products")}


def block_local(a, p, t):
    size = p["block"]
    return Local(a, size, p["back"] * size, p["ahead"] * size, anything).forms()


def sparse_strided(a, p, t):
    """The window, and the same place in every stride except the own, in one softmax."""
    h, n, d = a.q.shape
    s = round(math.sqrt(n))
    local = Local(a, s, s, s, lambda i, j: (i - j).abs() < s)
    others = additive(~torch.eye(n // s, dtype=torch.bool))[None, None]

    def columns(x):
        return x.view(h, n // s, s, -1).transpose(1, 2)

    def form():
        out, lse = attend(columns(a.q), columns(a.k), columns(a.v), others)
        far = out.transpose(1, 2).reshape(h, n, -1), lse.transpose(1, 2).reshape(h, n)
        return merge(local.lse(), far)
    return {"window + columns, SDPA": form}


def sparse_fixed(a, p, t):
    """The own block but its last key, and the last keys of all blocks."""
    n = a.q.shape[1]
    s = round(math.sqrt(n))

    def form():
        out, lse = attend(blocks(a.q, s), blocks(a.k, s)[:, :, :-1], blocks(a.v, s)[:, :, :-1])
        own = unblocks(out), unblocks(lse.unsqueeze(-1)).squeeze(-1)
        return merge(own, whole(a.q, a.k[:, s - 1::s], a.v[:, s - 1::s]))
    return {"blocks + summaries, SDPA": form}


def image_local_1d(a, p, t):
    return Local(a, p["query_block"], p["memory"], 0, anything).forms()


def image_local_2d(a, p, t):
    """Blocks of pixels and the rectangles around them, by unfolding the image."""
    h, n, d = a.q.shape
    w = round(math.sqrt(n))
    qh, qw, up, side = (p[x] for x in ("query_height", "query_width", "memory_height",
                                       "memory_width"))
    rows, cols = w // qh, w // qw

    def rectangles(x):
        x = F.pad(x.view(h, w, w, -1), (0, 0, side, side, up, 0))
        x = x.unfold(1, up + qh, qh).unfold(2, qw + 2 * side, qw)
        return x.permute(0, 1, 2, 4, 5, 3).reshape(h, rows * cols, -1, d)

    def squares(x):
        x = x.view(h, rows, qh, cols, qw, -1).transpose(2, 3)
        return x.reshape(h, rows * cols, qh * qw, -1)

    inside = torch.ones(1, n, 1).expand(h, n, d).contiguous()
    mask = additive(rectangles(inside)[:1, :, None, :, 0] > 0).expand(-1, -1, qh * qw, -1)

    def form():
        out = sdpa(squares(a.q), rectangles(a.k), rectangles(a.v), mask)
        return out.view(h, rows, cols, qh, qw, -1).transpose(2, 3).reshape(h, n, -1)
    return {"rectangles, SDPA": form}


def axial(a, p, t):
    h, n, _ = a.q.shape
    w = round(math.sqrt(n))

    def form():
        rows = [x.view(h, w, w, -1) for x in (a.q, a.k, a.v)]
        q, k, v = (x.transpose(1, 2) for x in (rows[0], rows[1], sdpa(*rows)))
        return sdpa(q, k, v).transpose(1, 2).reshape(h, n, -1)
    return {"rows, columns, SDPA": form}


def offsets_form(a, offsets, extra=None):
    """Keys at fixed distances: one shifted product for each; (out, lse)."""
    h, n, d = a.q.shape
    far = max(abs(o) for o in offsets)
    i = torch.arange(n)
    inside = torch.stack([(i + o >= 0) & (i + o < n) for o in offsets], -1)
    if extra is not None:
        inside &= extra(i[:, None], i[:, None] + torch.tensor(offsets))
    mask = additive(inside)

    def form():
        k, v = (F.pad(x, (0, 0, far, far)) for x in (a.k, a.v))
        q = a.q / math.sqrt(d)
        scores = torch.stack([torch.linalg.vecdot(q, k[:, far + o:far + o + n]) for o in offsets],
                             -1) + mask
        weights = torch.softmax(scores, -1)
        out = torch.zeros_like(a.v)
        for at, o in enumerate(offsets):
            out.addcmul_(weights[..., at:at + 1], v[:, far + o:far + o + n])
        return out, torch.logsumexp(scores, -1)
    return form


def star(a, p, t):
    """Neighbours and the relay; the relay's row sees everything."""
    near = offsets_form(a, [-1, 0, 1], lambda i, j: j > 0)
    local = Local(a, 64, 1, 1, lambda i, j: ((i - j).abs() <= 1) & (j > 0))
    # A satellite always sees itself; the relay's own row is computed apart.
    local.mask[0, 0, 0, 1] = 0

    def with_relay(neighbours):
        def run():
            out = merge(neighbours(), whole(a.q, a.k[:, :1], a.v[:, :1]))
            out[:, :1] = whole(a.q[:, :1], a.k, a.v)[0]
            return out
        return run
    return {"shifts": with_relay(near), "blocks, SDPA": with_relay(local.lse)}


def distances(n, local):
    near = list(range(local))
    return near, [local - 1 + 2 ** e for e in range(40) if local - 1 + 2 ** e < n]


def logsparse(a, p, t):
    n = a.q.shape[1]
    near, far = distances(n, p["local"])
    signed = sorted({s * o for o in near + far for s in (-1, 1)})
    shifts = offsets_form(a, signed)
    band_part = Local(a, 64, 64, 64, lambda i, j: (i - j).abs() < p["local"])
    far_part = offsets_form(a, [s * o for o in far for s in (-1, 1)])
    return {"shifts": lambda: shifts()[0],
            "blocks + shifts": lambda: merge(band_part.lse(), far_part())}


def random(a, p, t):
    """Keys gathered by index, some queries at a time; a mask over everything while that fits."""
    h, n, d = a.q.shape
    index = t["indices"].long()
    step = 512
    forms = {}

    def gather():
        out = torch.empty(h, n, a.v.shape[-1])
        for at in range(0, n, step):
            some = index[at:at + step].expand(h, -1, -1)
            q = a.q[:, at:at + step].unsqueeze(2)
            out[:, at:at + step] = sdpa(q, take(a.k, some), take(a.v, some)).squeeze(2)
        return out
    forms["gather, SDPA"] = gather
    if n <= 4096:
        mask = additive(torch.zeros(n, n, dtype=torch.bool).scatter_(1, index, True))[None, None]
        forms["mask, SDPA"] = lambda: sdpa(a.q[None], a.k[None], a.v[None], mask)[0]
    return forms


def random_tensors(p):
    """Distinct where n is a power of two: a random start and a random odd step in each row."""
    def draw(n, h):
        start, step = torch.randint(n, (n, 1)), 2 * torch.randint(n // 2, (n, 1)) + 1
        return {"indices": ((start + step * torch.arange(p["r"])) % n).int()}
    return draw


def longformer(a, p, t):
    """The window without the global columns, and these; global rows apart."""
    reach, g = p["window"] // 2, p["global"]
    local = Local(a, reach, reach, reach, lambda i, j: ((i - j).abs() <= reach) & (j >= g))
    local.mask[0, 0, :g, reach + g] = 0  # no row without a key; the global ones are made below

    def form():
        out = merge(local.lse(), whole(a.q, a.k[:, :g], a.v[:, :g]))
        out[:, :g] = whole(a.q[:, :g], a.k, a.v)[0]
        return out
    return {"blocks + globals, SDPA": form}


def bigbird(a, p, t):
    """Blocks of keys gathered for each block of queries; global rows apart."""
    h, n, d = a.q.shape
    b, g, reach = p["block"], p["global"], p["window"] // 2
    nb = n // b
    own = torch.arange(nb)[:, None]
    near = own + torch.arange(-reach, reach + 1)
    listed = torch.cat([torch.arange(g).expand(nb, g), near, t["random_blocks"].long()], 1)
    good = (listed >= 0) & (listed < nb)
    good[:, g:] &= listed[:, g:] >= g
    index = listed.clamp(0, nb - 1).expand(h, -1, -1)
    mask = additive(good.repeat_interleave(b, 1))[None, :, None].expand(-1, -1, b, -1)

    def listed_keys(x):
        return take(x.view(h, nb, -1), index).view(h, nb, -1, d)

    def form():
        out = sdpa(a.q.view(h, nb, b, d), listed_keys(a.k), listed_keys(a.v), mask)
        out = out.view(h, n, -1)
        out[:, :g * b] = whole(a.q[:, :g * b], a.k, a.v)[0]
        return out
    return {"gathered blocks, SDPA": form}


def bigbird_tensors(p):
    """Random blocks outside window and globals, as many as there are."""
    def draw(n, h):
        nb, g, reach = n // p["block"], p["global"], p["window"] // 2
        table = torch.full((nb, p["random"]), -1, dtype=torch.int32)
        for c in range(g, nb):
            free = [x for x in torch.randperm(nb).tolist() if x >= g and abs(x - c) > reach]
            for at, x in enumerate(free[:p["random"]]):
                table[c, at] = x
        return {"random_blocks": table}
    return draw


def etc(a, p, t):
    r = p["radius"]
    local = Local(a, 2 * r, r, r, lambda i, j: (i - j).abs() <= r)
    qg, kg, vg = (t[x] for x in ("q_global", "k_global", "v_global"))

    def form():
        out = merge(local.lse(), whole(a.q, kg, vg))
        form.globals = whole(qg, torch.cat([kg, a.k], 1), torch.cat([vg, a.v], 1))[0]
        return out
    return {"blocks + globals, SDPA": form}


def etc_tensors(p):
    return lambda n, h: {x: 0.02 * torch.randn(h, p["global"], SIZE)
                         for x in ("q_global", "k_global", "v_global")}


def poolingformer(a, p, t):
    """The window, and a second softmax over pooled cells."""
    n, step, size, far = a.q.shape[1], p["stride"], p["kernel"], p["window2"] // 2
    near = band(a, p["window"] // 2)

    def pool(x):
        return F.avg_pool2d(x, (size, 1), (step, 1), ceil_mode=True, count_include_pad=False)

    def sees(i, s):
        last = (s * step + size).clamp(max=n) - 1
        return (s * step <= i + far) & (last >= i - far)

    block, margin = 256, far // step + 2
    cells = Inputs(a.q, a.k[:, ::step], a.v[:, ::step], None)
    second = Local(cells, block, margin, margin, sees, key_block=block // step)
    return {"blocks, SDPA": lambda: near.sdpa().add_(second.sdpa(pool(a.k), pool(a.v)))}


def long_short(a, p, t):
    """Slots that the tokens fill, and segments with half a segment to each side."""
    size = p["segment"]
    local = Local(a, size, size // 2, size // 2, anything)

    def form():
        logits = torch.baddbmm(t["b_p"].unsqueeze(1), a.k, t["w_p"])
        mix = torch.softmax(logits, 1).transpose(1, 2)
        return merge(local.lse(), whole(a.q, mix @ a.k, mix @ a.v))
    return {"blocks + slots, SDPA": form}


def long_short_tensors(p):
    return lambda n, h: {"w_p": (torch.rand(h, SIZE, p["rank"]) - .5) / 4,
                         "b_p": (torch.rand(h, p["rank"]) - .5) / 4}


def adaptive_span(a, p, t):
    """The soft edge of the span is a bias, the logarithm of the mask."""
    z, ramp, most = p["z"], 32, p["max_span"]

    def soft(i, j):
        return ((ramp + z - (i - j).abs()) / ramp).clamp(0, 1)
    return Local(a, 256, most, most, lambda i, j: soft(i, j) > 0,
                 lambda i, j: soft(i, j).clamp(min=1e-9).log()).forms()


def transformer_xl(a, p, t):
    return Local(a, p["segment"], p["mem_len"], 0, lambda i, j: j <= i).forms()


def compressive(a, p, t):
    """Segment after segment; what leaves the memory is averaged, `ratio` tokens to a slot."""
    n, size, ratio = a.q.shape[1], p["segment"], p["ratio"]
    assert p["mem_len"] == size and size % ratio == 0
    inside = additive(torch.ones(size, size).tril().bool())
    masks = [F.pad(inside, (m, 0))[None, None]
             for m in range(0, p["cmem_len"] + 2 * size + 1, size // ratio)]

    def form():
        out, kept = [], [(a.k[:, :0], a.v[:, :0])] * 2
        for at in range(0, n, size):
            own = a.k[:, at:at + size], a.v[:, at:at + size]
            k, v = (torch.cat(x, 1) for x in zip(*kept, own))
            mask = masks[(k.shape[1] - size) // (size // ratio)]
            out.append(sdpa(a.q[None, :, at:at + size], k[None], v[None], mask)[0])
            gone = [x.unflatten(1, (-1, ratio)).mean(2) for x in kept[1] if x.shape[1]]
            slots = kept[0] if not gone else tuple(
                torch.cat([old, new], 1)[:, -p["cmem_len"]:] for old, new in zip(kept[0], gone))
            kept = [slots, own]
        return torch.cat(out, 1)
    return {"segments, SDPA": form}


def table():
    wide = dict(window=512)
    r, bb = dict(r=64), dict(block=64, window=3, random=3, **{"global": 2})
    ec, ls = dict(radius=64, **{"global": 64}), dict(segment=256, rank=64)
    xl = dict(segment=512, mem_len=512)
    exact = dict(claim=2, floor=1.0, aim=1.2, sizes=(4096,), long=16384)
    return [
        Case("full", full, **exact),
        Case("full", full_causal, causal=True, **exact),
        Case("window", window, wide),
        Case("dilated", dilated, dict(window=256, dilation=4), check_n=2048),
        Case("block-local", block_local, dict(block=256, back=1, ahead=1)),
        Case("sparse-strided", sparse_strided, claim=1.5),
        Case("sparse-fixed", sparse_fixed, claim=1.5),
        Case("image-local-1d", image_local_1d, dict(query_block=256, memory=256)),
        Case("image-local-2d", image_local_2d, dict(query_height=16, query_width=16,
                                                    memory_height=8, memory_width=8)),
        Case("axial", axial, claim=1.5),
        Case("star", star),
        Case("cascade", cascade, dict(layer=8)),
        # n log n, as an exponent from 4096 to 65536
        Case("logsparse", logsparse, dict(local=16), claim=round(1 + math.log(16 / 12, 16), 2)),
        Case("random", random, r, random_tensors(r)),
        Case("longformer", longformer, dict(wide, **{"global": 16})),
        Case("bigbird", bigbird, bb, bigbird_tensors(bb)),
        Case("etc", etc, ec, etc_tensors(ec)),
        Case("poolingformer", poolingformer, dict(window=256, window2=512, kernel=5, stride=4)),
        Case("long-short", long_short, ls, long_short_tensors(ls)),
        Case("adaptive-span", adaptive_span, dict(z=256, max_span=288)),
        Case("transformer-xl", transformer_xl, xl, causal=True),
        Case("compressive", compressive, dict(xl, cmem_len=512, ratio=4), causal=True,
             check_n=2048),
    ]
