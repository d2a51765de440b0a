#!/usr/bin/env python3
"""Export finished attention weights of a Hugging Face model for one text.

    python3 weights_only.py MODEL TEXT.txt [OUT.safetensors]

One tensor "attn" of shape [layers, heads, n, n]. Prefer hf_qkv.py: from Q, K, V
attnscope can compute any mechanism, while weights can only be looked at, and
they take 4 * layers * heads * n^2 bytes (2.25 GiB for a 12-layer, 12-head model
at n = 2048).

Needs torch, transformers, safetensors.
"""
import json
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModel, AutoTokenizer


def main():
    name, text = sys.argv[1], open(sys.argv[2], encoding="utf-8").read()
    out = sys.argv[3] if len(sys.argv) > 3 else "attn.safetensors"

    tokenizer = AutoTokenizer.from_pretrained(name)
    # Only the eager implementation forms the weights; the fused ones return none.
    model = AutoModel.from_pretrained(name, attn_implementation="eager").eval()
    inputs = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        attentions = model(**inputs, output_attentions=True).attentions

    attn = torch.stack([a[0].float() for a in attentions]).contiguous()
    save_file({"attn": attn}, out, metadata={
        "attnscope": "1", "model": name,
        "tokens": json.dumps(tokenizer.convert_ids_to_tokens(inputs.input_ids[0]))})
    print(f"{out}: attn {list(attn.shape)}, {attn.nbytes / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
