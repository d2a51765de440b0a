#!/usr/bin/env python3
"""Export finished attention weights of a Hugging Face model for one text.

    python3 weights_only.py MODEL TEXT.txt [OUT.safetensors] [--max-tokens N]

One tensor "attn" of shape [layers, heads, n, n]. Prefer hf_qkv.py, which must
lie beside this script: from Q, K, V attnscope can compute any mechanism, while
weights can only be looked at, and they take 4 * layers * heads * n^2 bytes
(2.25 GiB for a 12-layer, 12-head model at n = 2048).

MODEL, TEXT.txt and N as in hf_qkv.py, with the same notices. Needs torch,
transformers, safetensors; for a .gguf file also gguf and accelerate.
"""
import json

import torch
from safetensors.torch import save_file

import hf_qkv


def main():
    args = hf_qkv.arguments(__doc__, "attn.safetensors")
    # Only the eager implementation forms the weights; the fused ones return none.
    tokenizer, model = hf_qkv.open_model(args.model, "eager")
    ids = hf_qkv.read_text(tokenizer, model.config, args.text, args.max_tokens)
    attentions = hf_qkv.run(model, ids, output_attentions=True).attentions

    attn = torch.stack([a[0].float() for a in attentions]).contiguous()
    save_file({"attn": attn}, args.out, metadata={
        "attnscope": "1", "model": args.model,
        "tokens": json.dumps(tokenizer.convert_ids_to_tokens(ids[0]))})
    print(f"{args.out}: attn {list(attn.shape)}, {attn.nbytes / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
