"""PyTorch forms of low rank, kernels, latents and mixers."""
import math

import torch
import torch.nn.functional as F

from common import SIZE, Case, sdpa


def softmax_of(q, k, scale):
    return torch.softmax(torch.matmul(q * scale, k.transpose(-1, -2)), -1)


def linformer(a, p, t):
    e, f = t["e_proj"], t["f_proj"]
    return {"matmul, SDPA": lambda: sdpa(a.q, e @ a.k, f @ a.v)}


def linformer_tensors(p):
    return lambda n, h: {x: torch.randn(p["k"], n) / math.sqrt(n) for x in ("e_proj", "f_proj")}


def nystrom(a, p, t):
    """Landmark means, and the pseudo-inverse by products."""
    h, n, d = a.q.shape
    count, scale = p["n_landmarks"], d ** -.5
    eye = torch.eye(count)

    def inverse(x):
        z = x.transpose(1, 2) / x.sum(1).amax(-1)[:, None, None]
        for _ in range(6):
            xz = x @ z
            z = .25 * z @ (13 * eye - xz @ (15 * eye - xz @ (7 * eye - xz)))
        return z

    def form():
        ql, kl = (x.view(h, count, n // count, d).mean(2) for x in (a.q, a.k))
        core = inverse(softmax_of(ql, kl, scale))
        return softmax_of(a.q, kl, scale) @ (core @ sdpa(ql[None], a.k[None], a.v[None])[0])
    return {"matmul, SDPA": form}


def latent_reads(a, latents):
    """What a few given queries read of the sequence: keys and values."""
    weights = softmax_of(latents, a.k, SIZE ** -.5)
    return weights @ a.k, weights @ a.v


def luna(a, p, t):
    return {"matmul, SDPA": lambda: sdpa(a.q, *latent_reads(a, t["p"]))}


def set_isab(a, p, t):
    return {"matmul, SDPA": lambda: sdpa(a.q, *latent_reads(a, t["inducing"]))}


def perceiver(a, p, t):
    return {"SDPA": lambda: sdpa(t["latents"][None], a.k[None], a.v[None])[0],
            "matmul": lambda: softmax_of(t["latents"], a.k, SIZE ** -.5) @ a.v}


def latent_tensors(name, count):
    return lambda n, h: {name: torch.randn(h, count, SIZE) / 8}


def kernel_forms(features, v, causal, guard):
    """num and den from features (of q, of k): over all keys, or by chunks when causal."""
    def whole():
        fq, fk = features()
        den = fq @ fk.sum(1).unsqueeze(-1)
        return (fq @ (fk.transpose(1, 2) @ v)) / guard(den)

    def chunked(size):
        lower = torch.ones(size, size).tril()

        def run():
            fq, fk = (x.view(x.shape[0], -1, size, x.shape[-1]) for x in features())
            vc = v.view(v.shape[0], -1, size, v.shape[-1])
            state, keys = fk.transpose(2, 3) @ vc, fk.sum(2)
            state = state.cumsum(1) - state
            keys = keys.cumsum(1) - keys
            inner = (fq @ fk.transpose(2, 3)) * lower
            den = fq @ keys.unsqueeze(-1) + inner.sum(-1, keepdim=True)
            return ((fq @ state + inner @ vc) / guard(den)).view(v.shape)
        return run
    if causal:
        return {"chunks of 128": chunked(128), "chunks of 256": chunked(256)}
    return {"matmul": whole}


def linear(causal):
    def forms(a, p, t):
        return kernel_forms(lambda: (F.elu(a.q) + 1, F.elu(a.k) + 1), a.v, causal,
                            lambda den: den + 1e-6)
    return forms


def performer(causal):
    def forms(a, p, t):
        w, root = t["projection"], SIZE ** -.25
        amount = len(w) ** -.5

        def phi(x, over):
            x = x * root
            u = x @ w.T
            shift = x.square().sum(-1, keepdim=True).mul_(.5) + u.amax(over, keepdim=True)
            return u.sub_(shift).exp_().add_(1e-6).mul_(amount)

        return kernel_forms(lambda: (phi(a.q, -1), phi(a.k, (1, 2))), a.v, causal,
                            lambda den: den + 2e-6 * (den.abs() <= 1e-6))
    return forms


def performer_tensors(n, h):
    return {"projection": torch.randn(256, SIZE)}


def rfa(causal):
    def forms(a, p, t):
        w = t["projection"]

        def phi(x):
            y = (x / (x.norm(dim=-1, keepdim=True) + 1e-3)) @ w.T
            return torch.cat([y.sin(), y.cos()], -1).mul_(len(w) ** -.5)

        return kernel_forms(lambda: (phi(a.q), phi(a.k)), a.v, causal,
                            lambda den: den.clamp(min=1e-3))
    return forms


def rfa_tensors(n, h):
    return {"projection": torch.randn(64, SIZE)}


def tokenlearner(a, p, t):
    def form():
        z = F.layer_norm(a.x, a.x.shape[-1:], eps=1e-6)
        maps = F.gelu(z @ t["w1"], approximate="tanh") @ t["w2"]
        return (torch.softmax(maps, 0).T @ a.x)[None]
    return {"matmul": form}


def tokenlearner_tensors(n, h):
    return {"w1": torch.randn(h * SIZE, 64) / 16, "w2": torch.randn(64, 8) / 8}


def poolformer(a, p, t):
    def shifted():
        total = a.x.clone()
        total[1:] += a.x[:-1]
        total[:-1] += a.x[1:]
        total[1:-1] /= 3
        total[0] /= 2
        total[-1] /= 2
        return (total - a.x)[None]

    def pool():
        y = F.avg_pool2d(a.x[None], (3, 1), 1, (1, 0), count_include_pad=False)
        return y.sub_(a.x)
    return {"avg_pool": pool, "shifts": shifted}


def table():
    linproj, landmarks = dict(k=256), dict(n_landmarks=64)
    return [
        Case("linformer", linformer, linproj, linformer_tensors(linproj)),
        Case("nystrom", nystrom, landmarks),
        Case("luna", luna, {}, latent_tensors("p", 16)),
        Case("perceiver", perceiver, {}, latent_tensors("latents", 64)),
        Case("set-isab", set_isab, dict(mab="core"), latent_tensors("inducing", 16)),
        Case("linear", linear(False)),
        Case("linear", linear(True), causal=True),
        Case("performer", performer(False), {}, performer_tensors),
        Case("performer", performer(True), {}, performer_tensors, causal=True),
        Case("rfa", rfa(False), {}, rfa_tensors),
        Case("rfa", rfa(True), {}, rfa_tensors, causal=True),
        Case("tokenlearner", tokenlearner, {}, tokenlearner_tensors, reads_x=True),
        Case("poolformer", poolformer, reads_x=True),
    ]
