#!/usr/bin/env python3
"""Times attention on a GPU beside PyTorch's SDPA and FlexAttention, in turns, and prints a table.

Both sides get bfloat16 and the same shape; attnscope is timed through its command line (the median
that it reports; preparation is not in it), PyTorch between two events of the GPU.  FlexAttention is
compiled and its block mask made before the clock starts.  Where there is no GPU, or no PyTorch that
knows it, it says so and times nothing.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED = 77


def skip(why):
    print(f"peers/gpu.py: SKIPPED: {why}")
    sys.exit(SKIPPED)


try:
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
except ImportError as error:
    skip(f"PyTorch with FlexAttention is not there ({error})")

# Patterns by attnscope's words and FlexAttention's rule; `full` and causal are SDPA's too.
WINDOW = 512


def causal(b, h, i, j):
    return i >= j


def window(b, h, i, j):
    return (i - j).abs() <= WINDOW // 2


def dilated(b, h, i, j):
    return ((i - j).abs() <= WINDOW) & ((i - j) % 2 == 0)


PATTERNS = {
    "full": (["full"], None),
    "causal": (["full", "--causal"], causal),
    "window": ([f"window(window={WINDOW})"], window),
    "dilated": ([f"dilated(window={WINDOW},dilation=2)"], dilated),
}


def ours(options, words, n, environment=None):
    """Milliseconds, and what it was computed in; without graphs, because peers have none here."""
    done = subprocess.run(
        [options.attnscope, "run", *words, "-n", str(n), "-d", str(options.size), "--heads",
         str(options.heads), "--device", "cuda", "--precision", "bf16", "-r", str(options.rounds),
         "--json"], env={**os.environ, "ATTNSCOPE_GRAPHS": "0",
                         **(environment or {})}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    record = json.loads(done.stdout)
    return record["time_ms"]["median"], record["precision"]


def theirs(form, rounds):
    """Milliseconds, the median between two events."""
    times = []
    for _ in range(3):
        form()
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        form()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def forms(options, name, rule, n):
    q, k, v = (torch.randn(1, options.heads, n, options.size, device="cuda", dtype=torch.bfloat16)
               for _ in range(3))
    sdpa = torch.nn.functional.scaled_dot_product_attention
    out = {}
    if name in ("full", "causal"):
        out["SDPA"] = lambda: sdpa(q, k, v, is_causal=name == "causal")
    flex = torch.compile(flex_attention)
    mask = create_block_mask(rule, None, None, n, n, device="cuda") if rule else None
    out["FlexAttention"] = lambda: flex(q, k, v, block_mask=mask)
    return out


def row(options, name, n):
    words, rule = PATTERNS[name]
    peers = forms(options, name, rule, n)
    rounds = []
    for _ in range(options.turns):  # in turns: what else the machine does hits all of them
        turn = {"attnscope": ours(options, words, n), "own kernel":
                ours(options, words, n, {"ATTNSCOPE_CUDNN": "0", "ATTNSCOPE_WGMMA": "0"}), "own kernel, wgmma":
                ours(options, words, n, {"ATTNSCOPE_CUDNN": "0", "ATTNSCOPE_WGMMA": "1"})}
        turn.update({peer: (theirs(form, options.rounds), "bf16") for peer, form in peers.items()})
        rounds.append(turn)
    best = {who: (min(turn[who][0] for turn in rounds), rounds[0][who][1]) for who in rounds[0]}
    mine = best["attnscope"][0]
    for who, (time, how) in best.items():
        print(f"| {name} | {n} | {who} | {how} | {time:.3f} | {time / mine:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attnscope", default=os.path.join(ROOT, "build", "attnscope"))
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", action="append", choices=list(PATTERNS))
    parser.add_argument("-n", type=int, action="append")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        skip("PyTorch finds no GPU")
    try:
        ours(options, ["full"], 64)
    except (OSError, RuntimeError) as error:
        skip(f"attnscope has no GPU ({error})")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, bf16, {options.heads} heads "
          f"of {options.size}\n")
    print("| pattern | n | who | numbers | ms | over attnscope |\n|---|---|---|---|---|---|")
    for name in options.only or PATTERNS:
        for n in options.n or (1024, 4096, 16384, 32768):
            row(options, name, n)


if __name__ == "__main__":
    main()
