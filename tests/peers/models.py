#!/usr/bin/env python3
"""attnscope beside PyTorch and llama.cpp on one model file of the llama family.

    ~/peers/bin/pip install torch numpy gguf xllamacpp
    ~/peers/bin/python tests/peers/models.py MODEL.gguf TEXT.txt [--tokens 1024] [--rounds 3]

Two measures, in turns, in one run, two threads on each side:

- forward: all logits of the first N tokens of the text. attnscope reports the time of its pass
  (`seconds.forward` of --json: it dequantises, runs, and reduces the logits to losses). PyTorch
  runs float32 weights that were dequantised before the clock starts. llama.cpp processes the
  prompt, with the file's own blocks and with the same weights as float32; it computes the logits
  of the last token only.
- generate: tokens a second of one sequence, greedy, after a short prompt.

llama.cpp's Python wheel is xllamacpp (its own build of the library; no compiler is needed).
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import gguf
import numpy as np
import torch
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
THREADS = 2


class Llama:
    """The float32 forward pass of a GGUF of the llama family, with a cache."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)

        def field(name):
            return reader.fields["llama." + name].contents()

        self.layers = field("block_count")
        self.heads, self.kv_heads = field("attention.head_count"), field("attention.head_count_kv")
        self.eps = field("attention.layer_norm_rms_epsilon")
        self.w = {t.name: torch.from_numpy(np.array(gguf.quants.dequantize(
            t.data, t.tensor_type), np.float32)) for t in reader.tensors}
        width = self.w["token_embd.weight"].shape[1]
        self.dim = width // self.heads
        pairs = torch.arange(0, self.dim, 2) / self.dim
        base = field("rope.freq_base") if "llama.rope.freq_base" in reader.fields else 1e4
        angle = torch.arange(4096)[:, None] * base ** -pairs
        self.cos, self.sin = angle.cos(), angle.sin()

    def norm(self, x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.w[name + ".weight"]

    def turn(self, x, start):
        """GGUF's order: neighbours are a pair."""
        cos, sin = self.cos[start:start + x.shape[1]], self.sin[start:start + x.shape[1]]
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)

    def layer(self, h, i, cache):
        p, n = f"blk.{i}.", h.shape[0]
        x = self.norm(h, p + "attn_norm")

        def heads(name, count):
            return (x @ self.w[p + name + ".weight"].T).view(n, count, -1).transpose(0, 1)

        past = cache[i][0].shape[1] if cache and i in cache else 0
        q = self.turn(heads("attn_q", self.heads), past)
        k, v = self.turn(heads("attn_k", self.kv_heads), past), heads("attn_v", self.kv_heads)
        if cache is not None:
            if past:
                k, v = torch.cat((cache[i][0], k), 1), torch.cat((cache[i][1], v), 1)
            cache[i] = k, v
        o = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=n > 1,
                                           enable_gqa=True)[0]
        h = h + o.transpose(0, 1).reshape(n, -1) @ self.w[p + "attn_output.weight"].T
        z = self.norm(h, p + "ffn_norm")
        up = F.silu(z @ self.w[p + "ffn_gate.weight"].T) * (z @ self.w[p + "ffn_up.weight"].T)
        return h + up @ self.w[p + "ffn_down.weight"].T

    def __call__(self, ids, cache=None):
        h = self.w["token_embd.weight"][ids]
        for i in range(self.layers):
            h = self.layer(h, i, cache)
        head = self.w.get("output.weight", self.w["token_embd.weight"])
        return self.norm(h, "output_norm") @ head.T


def torch_loss(model, ids):
    with torch.inference_mode():
        logits = model(ids)
        return F.cross_entropy(logits[:-1], ids[1:]).item()


def torch_generate(model, ids, count):
    with torch.inference_mode():
        cache = {}
        token = model(ids, cache)[-1].argmax()
        start = time.perf_counter()
        for _ in range(count):
            token = model(token[None], cache)[-1].argmax()
        return count / (time.perf_counter() - start)


def silence():
    """llama.cpp's threads write their log to the descriptor; Python's errors keep theirs."""
    sys.stderr = os.fdopen(os.dup(2), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


class LlamaCpp:
    def __init__(self, path, tokens):
        import xllamacpp
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
        params.n_ctx, params.n_batch, params.n_ubatch = tokens + 512, tokens, tokens
        self.server = xllamacpp.Server(params)

    def timings(self, prompt, count):
        out = self.server.handle_completions({"prompt": prompt, "n_predict": count, "top_k": 1,
                                              "cache_prompt": False, "ignore_eos": True})
        return (json.loads(out) if isinstance(out, str) else out)["timings"]


def as_float32(path, out):
    """The same model with every tensor as float32."""
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(out, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kinds = field.types
        value = field.contents()
        if kinds[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(name, value)
        else:
            writer.add_key_value(name, value, kinds[0])
    for t in reader.tensors:
        writer.add_tensor(t.name, np.ascontiguousarray(
            gguf.quants.dequantize(t.data, t.tensor_type), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def attnscope(*words):
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    done = subprocess.run([ROOT / "build/attnscope", "model", *map(str, words)], env=env,
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def row(name, seconds, speed, note=""):
    both = [f"{statistics.median(seconds):.2f}" if seconds else "-",
            f"{statistics.median(speed):.1f}" if speed else "-"]
    print(f"| {name} | {both[0]} | {both[1]} | {note} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--generate", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(THREADS)
    silence()
    base = [args.model, "--text", args.text, "--max-tokens", args.tokens, "--threads", THREADS]
    ids = torch.tensor(attnscope(*base, "--json")["ids"])
    model = Llama(args.model)
    ours, theirs, cpp, cpp32 = ([], []), ([], []), ([], []), ([], [])
    with tempfile.TemporaryDirectory() as folder:
        prompt = pathlib.Path(folder, "prompt.txt")
        prompt.write_text(" ".join(pathlib.Path(args.text).read_text().split()[:16]))
        wide = pathlib.Path(folder, "wide.gguf")
        as_float32(args.model, wide)
        servers = [(LlamaCpp(args.model, args.tokens), cpp), (LlamaCpp(wide, args.tokens), cpp32)]
        for _ in range(args.rounds + 1):
            run = attnscope(*base, "--json")
            made = attnscope(args.model, "--text", prompt, "--threads", THREADS, "--generate",
                             args.generate, "--json")
            ours[0].append(run["seconds"]["forward"])
            ours[1].append(tokens_a_second(made))
            start = time.perf_counter()
            loss = torch_loss(model, ids)
            theirs[0].append(time.perf_counter() - start)
            theirs[1].append(torch_generate(model, ids[:24], args.generate))
            for server, kept in servers:
                kept[0].append(server.timings(ids.tolist(), 1)["prompt_ms"] / 1e3)
                kept[1].append(server.timings(prompt.read_text(),
                                              args.generate)["predicted_per_second"])
    for pair in (ours, theirs, cpp, cpp32):  # the first round touches the memory
        del pair[0][0], pair[1][0]
    print(f"{args.model}, {len(ids)} tokens, {THREADS} threads, median of {args.rounds}\n")
    print("| program | forward, s | generate, tokens/s | |\n| --- | --- | --- | --- |")
    row("attnscope", *ours, f"loss {run['loss']:.4f}")
    row("PyTorch float32", *theirs, f"loss {loss:.4f}")
    row("llama.cpp, the file's blocks", *cpp, "logits of the last token only")
    row("llama.cpp, float32", *cpp32, "logits of the last token only")
    if not math.isclose(loss, run["loss"], abs_tol=2e-4):
        sys.exit("the losses differ")


def tokens_a_second(made):
    written = made["written"][0]
    return len(written["ids"]) / written["seconds"]["writing"]


if __name__ == "__main__":
    main()
