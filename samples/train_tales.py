#!/usr/bin/env python3
"""Train samples/tales.gguf: a small English language model of the llama family.

    python3 samples/train_tales.py BOOKS.txt [OUT.gguf]

It writes OUT.gguf.pt every 100 steps and goes on from there; two cores take an hour and a half.
BOOKS.txt is plain English text, one paragraph a line (the sample was trained on six novels of the
nineteenth century that are in the public domain).  Needs torch, tokenizers and gguf from PyPI.

4 layers, 4 query heads on 2 key heads of 32 channels, 1,024 tokens of byte-level BPE.  Every
sequence begins with <s>, as in training of large models: heads that have nothing to do learn to
look there.  A fifth of the sequences repeats itself, at the end two fifths, so that some heads
learn to look for what followed the same token before.  Matrices are stored as Q8_0.
"""
import json
import math
import os
import sys

import gguf
import numpy as np
import tokenizers
import torch
from torch import nn
from torch.nn import functional as F

LAYERS, WIDTH, HEADS, KV_HEADS, HEAD, INNER, VOCAB, CONTEXT = 4, 128, 4, 2, 32, 352, 1024, 256
BASE, EPS = 10000.0, 1e-5
STEPS, FALL = 15500, 2500  # steps of training, and the last ones in which the rate falls
RATE_MATRICES, RATE_OTHER = 0.02, 3e-3


def train_tokenizer(path):
    tok = tokenizers.Tokenizer(tokenizers.models.BPE())
    tok.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = tokenizers.decoders.ByteLevel()
    tok.train([path], tokenizers.trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=["<s>"], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    return tok


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * self.weight


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn_norm, self.ffn_norm = Norm(WIDTH), Norm(WIDTH)
        for name, rows, cols in (("q", HEADS * HEAD, WIDTH), ("k", KV_HEADS * HEAD, WIDTH),
                                 ("v", KV_HEADS * HEAD, WIDTH), ("o", WIDTH, HEADS * HEAD),
                                 ("gate", INNER, WIDTH), ("up", INNER, WIDTH),
                                 ("down", WIDTH, INNER)):
            linear = nn.Linear(cols, rows, bias=False)
            adds = name in ("o", "down")  # to what other layers have added
            nn.init.normal_(linear.weight, std=0.02 / (math.sqrt(2 * LAYERS) if adds else 1))
            setattr(self, name, linear)

    def forward(self, h, cos, sin):
        b, n, _ = h.shape
        x = self.attn_norm(h)

        def heads(linear, count):
            return linear(x).view(b, n, count, HEAD).transpose(1, 2)

        def turn(t):
            lo, hi = t[..., :HEAD // 2], t[..., HEAD // 2:]
            return torch.cat((lo * cos - hi * sin, hi * cos + lo * sin), -1)

        group = HEADS // KV_HEADS
        q, k = turn(heads(self.q, HEADS)), turn(heads(self.k, KV_HEADS))
        o = F.scaled_dot_product_attention(
            q, k.repeat_interleave(group, 1), heads(self.v, KV_HEADS).repeat_interleave(group, 1),
            is_causal=True)
        h = h + self.o(o.transpose(1, 2).reshape(b, n, HEADS * HEAD))
        z = self.ffn_norm(h)
        return h + self.down(F.silu(self.gate(z)) * self.up(z))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, WIDTH)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = Norm(WIDTH)
        angle = torch.arange(CONTEXT)[:, None] * BASE ** (-torch.arange(0, HEAD, 2) / HEAD)
        self.cos, self.sin = angle.cos(), angle.sin()

    def forward(self, ids):
        h = self.embedding(ids)
        n = ids.shape[1]
        for layer in self.layers:
            h = layer(h, self.cos[:n], self.sin[:n])
        return self.norm(h) @ self.embedding.weight.T


def piece(period, text, draw):
    """Tokens to be repeated: random ones, tokens as often as the text has them, or a passage."""
    kind = draw.integers(3) if text is not None else 0
    if kind == 0:
        return draw.integers(1, VOCAB, period)
    if kind == 1:
        return text[draw.integers(0, len(text), period)]
    start = draw.integers(0, len(text) - period)
    return text[start:start + period]


def repeats(size, length, text, draw):
    """Rows of <s> and a piece that comes again and again."""
    out = np.zeros((size, length + 1), np.int64)
    for row in out:
        period = draw.integers(4, max(5, length // 3))
        row[1:] = np.resize(piece(period, text, draw), length)
        if draw.random() < 0.5:  # not from the start on: the head must find the place
            row[1:] = np.concatenate((piece(period, text, draw), row[1:]))[:length]
    return out


def batch(text, size, length, share, words, draw):
    """Rows of <s> and `length` tokens; `share` of them repeat, words of the text if asked."""
    again = int(round(size * share))
    starts = draw.integers(0, len(text) - length, size - again)
    out = np.zeros((size - again, length + 1), np.int64)
    for row, start in zip(out, starts):
        row[1:] = text[start:start + length]
    rows = repeats(again, length, text if words else None, draw)
    return torch.from_numpy(np.concatenate((out, rows)))


class Muon:
    """Momentum whose steps are made orthogonal (Jordan 2024), for matrices between layers."""

    def __init__(self, params):
        self.params = [(p, torch.zeros_like(p)) for p in params]

    @torch.no_grad()
    def step(self, rate):
        for p, momentum in self.params:
            momentum.lerp_(p.grad, 0.05)
            x = p.grad.lerp(momentum, 0.95)
            flip = x.shape[0] > x.shape[1]
            x = x.T if flip else x
            x = x / (x.norm() + 1e-7)
            for _ in range(5):
                a = x @ x.T
                x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
            x = x.T if flip else x
            p.mul_(1 - 0.01 * rate).add_(x, alpha=-rate * max(1, p.shape[0] / p.shape[1]) ** 0.5)


SCHEDULE = (  # steps, tokens of a row, rows, share of repeats, of words of the text too
    (1500, 64, 64, 0.75, False),
    (3000, 128, 32, 0.35, False),
    (8500, 256, 16, 0.2, False),
    (2500, 256, 16, 0.4, True),
)


def stage(step):
    for steps, *rest in SCHEDULE:
        if step < steps:
            return rest
        step -= steps


@torch.no_grad()
def measure(model, held):
    """Nats a token on text that was not trained on, and on repeats after their first round."""
    own = np.zeros((8, CONTEXT + 1), np.int64)
    own[:, 1:] = held[:8 * CONTEXT].reshape(8, CONTEXT)
    draw = np.random.default_rng(7)
    again = np.zeros((8, 129), np.int64)
    for row in again:
        row[1:] = np.resize(draw.integers(1, VOCAB, 32), 128)

    def loss(ids, first):
        ids = torch.from_numpy(ids)
        logits = model(ids[:, :-1])[:, first:]
        return F.cross_entropy(logits.flatten(0, 1), ids[:, first + 1:].flatten())

    return loss(own, 0), loss(again, 40)


def rate_of(step):
    """Rises for 100 steps, stays, and falls to 0 over the last ones."""
    return min(1, (step + 1) / 100, (STEPS - step) / FALL)


def load(check, model, muon, opt):
    state = torch.load(check)
    model.load_state_dict(state["model"])
    opt.load_state_dict(state["opt"])
    for (_, momentum), saved in zip(muon.params, state["muon"]):
        momentum.copy_(saved)
    return state["step"]


def save(check, model, muon, opt, step):
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step,
                "muon": [momentum for _, momentum in muon.params]}, check + ".new")
    os.replace(check + ".new", check)


def train(model, path, text):
    held, text = text[-20000:], text[:-20000]
    matrices = [p for layer in model.layers for p in layer.parameters() if p.dim() == 2]
    other = [p for p in model.parameters() if not any(p is m for m in matrices)]
    muon = Muon(matrices)
    opt = torch.optim.AdamW(other, lr=1, betas=(0.9, 0.98), weight_decay=0.0)
    check = path + ".pt"
    first = load(check, model, muon, opt) if os.path.exists(check) else 0
    for step in range(first, STEPS):
        for group in opt.param_groups:
            group["lr"] = RATE_OTHER * rate_of(step)
        length, rows, again, words = stage(step)
        ids = batch(text, rows, length, again, words, np.random.default_rng(step))
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        muon.step(RATE_MATRICES * rate_of(step))
        for p in matrices:
            p.grad = None
        if (step + 1) % 100 == 0:
            kept, repeated = measure(model, held)
            print(f"step {step + 1}: loss {loss:.3f}, held out {kept:.3f}, "
                  f"repeats {repeated:.3f}", flush=True)
            save(check, model, muon, opt, step + 1)


def pairs(weight, heads):
    """GGUF's order of the llama family: the two halves of a head's rows interleaved."""
    return weight.reshape(heads, 2, HEAD // 2, -1).swapaxes(1, 2).reshape(weight.shape)


def write(model, tok, path):
    out = gguf.GGUFWriter(path, "llama")
    out.add_name("tales")
    out.add_block_count(LAYERS)
    out.add_context_length(CONTEXT)
    out.add_embedding_length(WIDTH)
    out.add_feed_forward_length(INNER)
    out.add_head_count(HEADS)
    out.add_head_count_kv(KV_HEADS)
    out.add_layer_norm_rms_eps(EPS)
    out.add_rope_freq_base(BASE)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    vocab = sorted(tok.get_vocab().items(), key=lambda item: item[1])
    out.add_token_list([token for token, _ in vocab])
    out.add_token_types([3 if token == "<s>" else 1 for token, _ in vocab])
    merges = json.loads(tok.to_str())["model"]["merges"]
    out.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    out.add_bos_token_id(0)
    out.add_add_bos_token(True)

    def add(name, tensor):
        values = tensor.detach().numpy().astype(np.float32)
        if values.ndim == 1:
            out.add_tensor(name, values)
        else:
            kind = gguf.GGMLQuantizationType.Q8_0
            out.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)

    add("token_embd.weight", model.embedding.weight)
    add("output_norm.weight", model.norm.weight)
    for i, layer in enumerate(model.layers):
        p = f"blk.{i}."
        add(p + "attn_norm.weight", layer.attn_norm.weight)
        add(p + "attn_q.weight", pairs(layer.q.weight, HEADS))
        add(p + "attn_k.weight", pairs(layer.k.weight, KV_HEADS))
        add(p + "attn_v.weight", layer.v.weight)
        add(p + "attn_output.weight", layer.o.weight)
        add(p + "ffn_norm.weight", layer.ffn_norm.weight)
        add(p + "ffn_gate.weight", layer.gate.weight)
        add(p + "ffn_up.weight", layer.up.weight)
        add(p + "ffn_down.weight", layer.down.weight)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def main():
    books = sys.argv[1]
    path = sys.argv[2] if len(sys.argv) > 2 else "samples/tales.gguf"
    torch.manual_seed(0)
    tok = train_tokenizer(books)
    with open(books, encoding="utf-8") as file:
        text = np.array(tok.encode(file.read()).ids, np.int64)
    print(f"{len(text)} tokens")
    model = Model()
    train(model, path, text)
    write(model, tok, path)


main()
