#!/usr/bin/env python3
"""Export Q, K, V (and x) of any PyTorch code that calls scaled_dot_product_attention.

    python3 torch_sdpa.py [OUT.safetensors]      # a demonstration

In your own program:

    from torch_sdpa import record, save
    with record(model.layers) as calls:
        model(x)
    save(calls, "qkv.safetensors", tokens=[...])

Every call counts as one layer, in the order of the calls; the first element of
the batch is kept. x is what the modules given to record() read, [batch,n,dm];
give those whose input the projections of q, k and v read. Without them, or if
one of them makes several calls, the file has no x.

Two things escape the wrapper: modules that ran "from torch.nn.functional import
scaled_dot_product_attention" before record() (import them inside it), and the
fused inference path of PyTorch's own nn.TransformerEncoder (switched off below).

Needs torch and safetensors.
"""
import contextlib
import json
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file


@contextlib.contextmanager
def record(modules=()):
    """Yield a list that fills with one dict per attention call."""
    original, calls, read = F.scaled_dot_product_attention, [], []
    fast = torch.backends.mha.get_fastpath_enabled()

    def wrapper(query, key, value, attn_mask=None, dropout_p=0.0,
                is_causal=False, scale=None, **kw):
        calls.append({"x": read.pop() if read else None,
                      "q": first(query), "k": first(key), "v": first(value),
                      "causal": is_causal or triangular(attn_mask),
                      "scale": query.shape[-1] ** -0.5 if scale is None else scale})
        return original(query, key, value, attn_mask, dropout_p, is_causal,
                        scale=scale, **kw)

    def note(module, args):
        read[:] = [args[0][0].detach().float().cpu().contiguous()]

    hooks = [module.register_forward_pre_hook(note) for module in modules]
    F.scaled_dot_product_attention = wrapper
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield calls
    finally:
        F.scaled_dot_product_attention = original
        torch.backends.mha.set_fastpath_enabled(fast)
        for hook in hooks:
            hook.remove()


def first(t):
    """[...,h,n,d] -> [h,n,d], the first element of the batch."""
    return t.reshape(-1, *t.shape[-3:])[0].detach().float().cpu().contiguous()


def triangular(mask):
    """Does this mask allow exactly j <= i? Many programs spell causal that way."""
    if mask is None:
        return False
    allowed = mask if mask.dtype == torch.bool else mask > -1e4
    allowed = allowed.reshape(-1, *allowed.shape[-2:])[0]
    return torch.equal(allowed, torch.ones_like(allowed).tril())


def save(calls, path, tokens=None):
    if len({(c["causal"], c["scale"]) for c in calls}) != 1:
        raise ValueError("the calls differ in scale or causality, or there were none")
    tensors = {f"layers.{i}.{name}": call[name]
               for i, call in enumerate(calls) for name in "qkvx"
               if name != "x" or all(c["x"] is not None for c in calls)}
    meta = {"attnscope": "1", "layout": "h,n,d", "scale": repr(calls[0]["scale"]),
            "causal": "1" if calls[0]["causal"] else "0"}
    if tokens:
        meta["tokens"] = json.dumps(tokens)
    save_file(tensors, path, metadata=meta)


def main():
    """Two causal encoder layers with random weights reading random vectors."""
    out = sys.argv[1] if len(sys.argv) > 1 else "qkv.safetensors"
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    mask = torch.nn.Transformer.generate_square_subsequent_mask(24)
    with torch.no_grad(), record(model.layers) as calls:
        model(torch.randn(1, 24, 64), mask=mask, is_causal=True)
    save(calls, out, tokens=[f"t{i}" for i in range(24)])
    print(f"{out}: {len(calls)} layers, q {list(calls[0]['q'].shape)}, "
          f"x {list(calls[0]['x'].shape)}")


if __name__ == "__main__":
    main()
