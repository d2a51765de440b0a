#!/usr/bin/env python3
"""Export Q, K, V of every layer of a Hugging Face model for one text.

    python3 hf_qkv.py MODEL TEXT.txt [OUT.safetensors]

MODEL is a name on the hub or a folder. The model runs unchanged: we register
an attention function that writes down what it is given (after any rotary
embedding) and hands the call on to the usual one. Keys and values keep their
own number of heads, so grouped-query models stay small on disk.

What lives outside Q and K is not in the file: sliding windows, additive biases
(ALiBi, T5), soft caps and sinks. Weights recomputed for such models differ.

Needs torch, transformers, safetensors.
"""
import json
import sys

import torch
from safetensors.torch import save_file
from transformers import (AttentionInterface, AttentionMaskInterface,
                          AutoModel, AutoTokenizer)
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

tensors, scales, causals = {}, set(), set()


def recorder(module, query, key, value, mask, **kw):
    for name, t in (("q", query), ("k", key), ("v", value)):
        t = t[0].detach().float().cpu().contiguous()   # [1,h,n,d] -> [h,n,d]
        tensors[f"layers.{module.layer_idx}.{name}"] = t
    scales.add(kw.get("scaling") or query.shape[-1] ** -0.5)
    causal = kw.get("is_causal")
    causals.add(getattr(module, "is_causal", True) if causal is None else causal)
    return sdpa_attention_forward(module, query, key, value, mask, **kw)


def only(values, what):
    """The file has one scale and one causal flag for all layers."""
    if len(values) != 1:
        sys.exit(f"layers differ in {what}: {sorted(values)}; export them one by one")
    return values.pop()


def main():
    name, text = sys.argv[1], open(sys.argv[2], encoding="utf-8").read()
    out = sys.argv[3] if len(sys.argv) > 3 else "qkv.safetensors"

    AttentionInterface.register("recorder", recorder)
    # Masks are looked up by the same name. Without this line every mask is
    # silently None: padding and sliding windows would be ignored.
    AttentionMaskInterface.register("recorder", sdpa_mask)

    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModel.from_pretrained(name, attn_implementation="recorder").eval()
    inputs = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        model(**inputs)

    save_file(tensors, out, metadata={
        "attnscope": "1", "layout": "h,n,d", "model": name,
        "causal": "1" if only(causals, "causality") else "0",
        "scale": repr(only(scales, "scale")),
        "tokens": json.dumps(tokenizer.convert_ids_to_tokens(inputs.input_ids[0]))})
    print(f"{out}: {len(tensors) // 3} layers, {inputs.input_ids.shape[1]} tokens")


if __name__ == "__main__":
    main()
