#!/usr/bin/env python3
"""Write Q, K, V and x from NumPy.

    python3 numpy_npz.py [OUT.npz]

Arrays named q, k, v of shape (n, d), (heads, n, d) or (1, heads, n, d); x of
shape (n, d_model), which the projections read and some mechanisms need; and if
you like tokens, an array of strings. NumPy has no bfloat16: from a PyTorch
tensor go through t.detach().float().cpu().numpy(). savez_compressed works
too; plain savez is larger and faster to open.

The example projects random vectors, with a few rows made equal so that the
picture has something in it.
"""
import sys

import numpy as np


def project(x, heads, rng):
    """x [n,dm] -> [heads,n,dm/heads] through a random matrix."""
    n, dm = x.shape
    w = rng.standard_normal((dm, dm)) / np.sqrt(dm)
    return (x @ w).reshape(n, heads, dm // heads).transpose(1, 0, 2)


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else "qkv.npz"
    rng = np.random.default_rng(0)
    words = "the cat saw the dog and the dog saw the cat".split()
    meaning = {w: rng.standard_normal(32) for w in sorted(set(words))}
    x = np.stack([meaning[w] for w in words])
    q, k, v = (project(x, 2, rng).astype(np.float32) for _ in range(3))
    np.savez(out, q=q, k=k, v=v, x=x.astype(np.float32), tokens=np.array(words))
    print(f"{out}: q {q.shape}, x {x.shape}, {len(words)} tokens")


if __name__ == "__main__":
    main()
