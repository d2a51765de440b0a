#!/usr/bin/env python3
"""Train a small attention-only transformer and export the Q, K, V of one sequence.

The model has 2 layers of 4 heads (d_head 32), causal, with learned absolute
positions and no MLP. It reads synthetic documents that can only be predicted
well by heads worth looking at:

  owl | elm owl fox ivy owl jar oak | hen oak moth oak ...   first pass, P tokens
  owl | elm owl fox ivy owl jar oak | hen oak moth oak ...   the same again

  * The word before a bar is the topic of the segment after it and comes back
    there at random, so a head that finds the last bar pays off.
  * After P tokens (P varies) the document repeats word for word, so induction
    pays off: find the earlier place where the current word stood, and predict
    the word that followed it. That needs a previous-token head one layer below.

    python3 train_induction.py [--steps 3000] [--out .]

Needs torch and numpy; takes two and a half minutes on one CPU core. Writes
induction.safetensors (both layers) and induction.npz (layer 1) and prints what
every head does. The safetensors file is written by hand to show how little
there is to the format.
"""
import argparse
import json
import os
import struct
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

BAR = "|"
WORDS = """ash bay bee bell boat bread brook cat clay cloud coal corn crow deer
dew door dove elm fern field fig fire fish fox frost gate goat grass gull hare
hawk hay hen hill horn ice iris ivy jar kite lake lamp leaf lime loaf lynx mint
moon moss moth nest oak oar owl path pear pine plum pond rain reed rook
rose""".split()
VOCAB = [BAR] + WORDS  # the bar is token 0

N = 96          # tokens in a document
LAYERS, HEADS, D_HEAD = 2, 4, 32
D_MODEL = HEADS * D_HEAD
TOPIC_RATE = 0.4  # how often the topic returns inside its segment


# ---- documents ------------------------------------------------------------

def first_pass(rng, period):
    """`period` token ids: segments, each introduced by 'topic |'."""
    words = np.arange(1, len(VOCAB))
    fresh = iter([*rng.permutation(words).tolist(), *rng.permutation(words).tolist()])
    topic = next(fresh)
    ids = [topic, 0]
    while len(ids) < period:
        for _ in range(rng.integers(4, 9)):   # words of this segment
            again = rng.random() < TOPIC_RATE and ids[-1] != topic
            ids.append(topic if again else next(fresh))
        topic = next(fresh)
        ids += [topic, 0]
    return ids[:period]


def document(rng, period):
    """N token ids: the first pass, repeated until the document is full."""
    ids = first_pass(rng, period)
    return (ids * (N // period + 1))[:N]


def batch(rng, size, period=None):
    """Documents with a random period each, so that a fixed offset is no answer.

    One in five never repeats: there the bars are all a head can go by.
    """
    periods = np.where(rng.random(size) < 0.2, N, rng.integers(20, 57, size))
    return torch.tensor([document(rng, period or int(p)) for p in periods])


# ---- model ----------------------------------------------------------------

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(D_MODEL)
        self.qkv = nn.Linear(D_MODEL, 3 * D_MODEL)
        self.out = nn.Linear(D_MODEL, D_MODEL)

    def project(self, x):
        """x [b,n,dm] -> q, k, v, each [b,h,n,d]"""
        b, n, _ = x.shape
        qkv = self.qkv(self.norm(x)).view(b, n, 3, HEADS, D_HEAD)
        return qkv.permute(2, 0, 3, 1, 4)

    def forward(self, x):
        q, k, v = self.project(x)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(len(VOCAB), D_MODEL)
        self.position = nn.Embedding(N, D_MODEL)
        self.layers = nn.ModuleList(Attention() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(D_MODEL)
        self.unembed = nn.Linear(D_MODEL, len(VOCAB))
        for table in (self.token, self.position):
            nn.init.normal_(table.weight, std=0.5)

    def inputs(self, ids):
        """The input of every layer, and of the final norm: L+1 tensors [b,n,dm]."""
        xs = [self.token(ids) + self.position.weight[:ids.shape[1]]]
        for layer in self.layers:
            xs.append(layer(xs[-1]))
        return xs

    def forward(self, ids):
        return self.unembed(self.norm(self.inputs(ids)[-1]))


def losses(model, ids):
    """Cross-entropy of every next token, [b, n-1]."""
    logits = model(ids)[:, :-1]
    return F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")


def train(model, rng, steps, peak=3e-3):
    opt = torch.optim.AdamW(model.parameters(), lr=peak, weight_decay=0.01)
    plan = torch.optim.lr_scheduler.OneCycleLR(opt, peak, total_steps=steps)
    for step in range(1, steps + 1):
        loss = losses(model, batch(rng, 32)).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        plan.step()
        if step % 250 == 0:
            print(f"step {step:5d}  loss {loss.item():.3f}", flush=True)


# ---- what the heads do ----------------------------------------------------

@torch.no_grad()
def qkv(model, ids):
    """Per layer (x, q, k, v) for a batch of documents."""
    xs = model.inputs(ids)
    return [(x, *layer.project(x)) for x, layer in zip(xs, model.layers)]


def weights(q, k):
    scores = q @ k.transpose(-1, -2) * D_HEAD ** -0.5
    ahead = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(ahead, -torch.inf).softmax(-1)


def scores(model, ids, period):
    """{name: [layers, heads]}: mean attention weight on each kind of target.

    previous   on j = i-1
    induction  on j = i-P+1, the word after the earlier occurrence (repeat only)
    last bar   on the last bar at or before i
    all bars   on all bars up to i
    same word  on earlier copies of the word at i (repeat only)
    self       on j = i
    """
    b, n = ids.shape
    i = torch.arange(n)
    bars = ids == 0
    last = torch.where(bars, i, 0).cummax(-1).values           # [b,n]
    same = (ids[:, :, None] == ids[:, None]).tril(-1)          # [b,n,n]
    rows = []
    for _, q, k, _ in qkv(model, ids):
        w = weights(q, k)                                      # [b,h,n,n]
        pick = last[:, None, :, None].expand(-1, HEADS, -1, -1)
        again = i[period:]
        rows.append({
            "previous": w[:, :, i[1:], i[1:] - 1],
            "induction": w[:, :, again, again - period + 1],
            "last bar": w.gather(-1, pick)[:, :, 2:, 0],
            "all bars": (w * bars[:, None, None]).sum(-1)[:, :, 2:],
            "same word": (w * same[:, None]).sum(-1)[:, :, period:],
            "self": w[:, :, i[1:], i[1:]],
        })
    return {name: torch.stack([r[name].mean((0, 2)) for r in rows])
            for name in rows[0]}


def report(title, table):
    print(f"\n{title}\nhead  " + "".join(f"{name:>11}" for name in table))
    for layer in range(LAYERS):
        for head in range(HEADS):
            cells = (f"{t[layer, head]:11.3f}" for t in table.values())
            print(f"L{layer}.{head}  " + "".join(cells))


def check(table):
    """The samples are only worth shipping if the three kinds of head exist."""
    assert table["previous"].max() > 0.5, "no previous-token head"
    assert table["induction"].max() > 0.4, "no induction head"
    assert table["last bar"].max() > 0.4, "no delimiter head"


# ---- export ---------------------------------------------------------------

def save_safetensors(path, tensors, metadata):
    """u64 header length, JSON header, packed data; everything little-endian."""
    header, blobs, at = {"__metadata__": metadata}, [], 0
    for name, a in tensors.items():
        blob = np.ascontiguousarray(a, dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(a.shape),
                        "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # keeps the data 8-byte aligned for mmap
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def export(model, ids, folder):
    tokens = [VOCAB[t] for t in ids[0].tolist()]
    tensors = {}
    for number, parts in enumerate(qkv(model, ids)):
        for name, t in zip("xqkv", parts):
            tensors[f"layers.{number}.{name}"] = t[0].numpy()
    save_safetensors(os.path.join(folder, "induction.safetensors"), tensors, {
        "attnscope": "1", "layout": "h,n,d", "causal": "1",
        "scale": repr(D_HEAD ** -0.5),
        "model": "attention-only, 2 layers, 4 heads, trained on repeated documents",
        "tokens": json.dumps(tokens)})
    top = {name: tensors[f"layers.{LAYERS - 1}.{name}"] for name in "qkvx"}
    np.savez_compressed(os.path.join(folder, "induction.npz"), **top,
                        tokens=np.array(tokens), causal=np.array(1))
    print("\n" + " ".join(tokens))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--steps", type=int, default=3000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    args = p.parse_args()

    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # the model is tiny, and one thread is reproducible
    model, start = Model(), time.time()
    train(model, np.random.default_rng(args.seed), args.steps)
    print(f"trained in {time.time() - start:.0f} s")

    period = N // 2
    unseen = np.random.default_rng(args.seed + 1000)
    test, shown = batch(unseen, 64, period), batch(unseen, 1, period)
    with torch.no_grad():
        loss = losses(model, test).mean(0)
    print(f"loss first pass {loss[:period - 1].mean():.3f}, "
          f"repeat {loss[period - 1:].mean():.3f}, "
          f"repeat from its 2nd token {loss[period:].mean():.3f}")
    table = scores(model, test, period)
    report("mean over 64 unseen documents", table)
    report("the exported document", scores(model, shown, period))
    export(model, shown, args.out)
    check(table)


if __name__ == "__main__":
    main()
