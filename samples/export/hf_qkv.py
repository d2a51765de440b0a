#!/usr/bin/env python3
"""Export Q, K, V and x of every layer of a Hugging Face model for one text.

    python3 hf_qkv.py MODEL TEXT.txt [OUT.safetensors] [--max-tokens N]

MODEL is a name on the hub, a folder, or a .gguf file. The model runs unchanged:
we register an attention function that writes down what it is given (after any
rotary embedding) and hands the call on to the usual one. x is what the layer's
projections read. Keys and values keep their own number of heads, so
grouped-query models stay small on disk.

A text that is longer than what the model can read, or than N tokens (default
4096), is cut, and a notice says so. Before the pass over the whole text another
notice says how long it will take.

What lives outside Q and K is not in the file: sliding windows, additive biases
(ALiBi, T5), soft caps and sinks. Weights recomputed for such models differ.

Needs torch, transformers, safetensors; for a .gguf file also gguf and
accelerate. Of many models attnscope itself reads the folder or the .gguf file,
without Python: --input model:PATH --text TEXT.txt.
"""
import argparse
import json
import os
import sys
import time

import torch
from safetensors.torch import save_file
from transformers import (AttentionInterface, AttentionMaskInterface,
                          AutoModel, AutoTokenizer)
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

TRIAL = 64       # tokens of the short passes before the long one
calls = []       # the attention calls of a pass, in their order
inputs = {}      # of a module: what it reads, once it is watched


def recorder(module, query, key, value, mask, **kw):
    causal = kw.get("is_causal")
    calls.append({
        "module": module, "x": inputs.get(module),
        "q": first(query), "k": first(key), "v": first(value),
        "scale": kw.get("scaling") or query.shape[-1] ** -0.5,
        "causal": getattr(module, "is_causal", True) if causal is None else causal})
    return sdpa_attention_forward(module, query, key, value, mask, **kw)


def first(t):
    """The first element of the batch: [1,h,n,d] -> [h,n,d]."""
    return t[0].detach().float().cpu().contiguous()


def watch(module):
    """Note what the module reads before each of its calls."""
    def note(module, args, kwargs):
        inputs[module] = first(args[0] if args else kwargs["hidden_states"])
    module.register_forward_pre_hook(note, with_kwargs=True)


def arguments(doc, out):
    p = argparse.ArgumentParser(description=doc.splitlines()[0])
    p.add_argument("model", help="a name on the hub, a folder, or a .gguf file")
    p.add_argument("text", help="a text file in UTF-8")
    p.add_argument("out", nargs="?", default=out, help="default: %(default)s")
    p.add_argument("--max-tokens", type=int, default=4096, metavar="N",
                   help="a longer text is cut (default: %(default)s)")
    return p.parse_args()


def notice(text):
    print(text, file=sys.stderr, flush=True)


def open_model(name, attention):
    """Tokenizer and model."""
    path, where = name, {}
    if name.endswith(".gguf"):
        path, where = os.path.dirname(name) or ".", {"gguf_file": os.path.basename(name)}
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, **where)
        model = AutoModel.from_pretrained(path, attn_implementation=attention, **where)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        why = " ".join(str(error).split())
        sys.exit(f"{name}: transformers cannot open it: {why[:300]}" + (
            f"\nattnscope may read it itself: attnscope model {name}"
            if os.path.exists(name) else ""))
    return tokenizer, model.eval()


def longest(tokenizer, config):
    """How many tokens the model can read at once."""
    most = getattr(config, "max_position_embeddings", None) or sys.maxsize
    if config.model_type in ("roberta", "xlm-roberta", "camembert"):
        most -= config.pad_token_id + 1     # positions begin behind the padding's
    return min(most, tokenizer.model_max_length)


def read_text(tokenizer, config, path, most):
    """Token ids [1,n], cut to what the model can read and to `most`."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    ids = tokenizer(text, return_tensors="pt", verbose=False).input_ids
    whole, readable = ids.shape[1], longest(tokenizer, config)
    if not whole:
        sys.exit(f"{path}: holds no tokens")
    if whole <= min(most, readable):
        return ids
    notice(f"{path}: cut from {whole} to {min(most, readable)} tokens: "
           + ("--max-tokens" if most < readable else "the model reads no more"))
    return tokenizer(text, return_tensors="pt", truncation=True,
                     max_length=min(most, readable)).input_ids


def timed(model, ids, **options):
    """The result and the seconds of a pass."""
    calls.clear()
    start = time.perf_counter()
    with torch.no_grad():
        result = model(ids, **options)
    return result, time.perf_counter() - start


def run(model, ids, **options):
    """A pass over all ids; short ones before it tell how long it will take."""
    few, more = ids[:, :TRIAL // 4], ids[:, :TRIAL]
    timed(model, more, **options)       # warms up
    short, longer = (timed(model, part, **options)[1] for part in (few, more))
    each = max(0, longer - short) / max(1, more.shape[1] - few.shape[1])
    notice(f"{ids.shape[1]} tokens: about "
           f"{longer + each * (ids.shape[1] - more.shape[1]):.1f} s")
    for module in {call["module"] for call in calls}:
        watch(module)
    result, seconds = timed(model, ids, **options)
    notice(f"it took {seconds:.1f} s")
    return result


def only(values, what):
    """The file has one scale and one causal flag for all layers."""
    if len(values) != 1:
        sys.exit(f"layers differ in {what}: {sorted(values)}; export them one by one")
    return values.pop()


def main():
    args = arguments(__doc__, "qkv.safetensors")
    AttentionInterface.register("recorder", recorder)
    # Masks are looked up by the same name. Without this line every mask is
    # silently None: padding and sliding windows would be ignored.
    AttentionMaskInterface.register("recorder", sdpa_mask)

    tokenizer, model = open_model(args.model, "recorder")
    ids = read_text(tokenizer, model.config, args.text, args.max_tokens)
    run(model, ids)
    if not calls:
        sys.exit(f"{args.model}: its code calls no attention that can be replaced; "
                 "torch_sdpa.py records calls of scaled_dot_product_attention")

    # A layer is a call: layers that share their weights (ALBERT) share a module.
    tensors = {f"layers.{i}.{name}": call[name]
               for i, call in enumerate(calls) for name in ("q", "k", "v", "x")}
    save_file(tensors, args.out, metadata={
        "attnscope": "1", "layout": "h,n,d", "model": args.model,
        "causal": "1" if only({c["causal"] for c in calls}, "causality") else "0",
        "scale": repr(only({c["scale"] for c in calls}, "scale")),
        "tokens": json.dumps(tokenizer.convert_ids_to_tokens(ids[0]))})
    print(f"{args.out}: {len(calls)} layers, {ids.shape[1]} tokens, "
          f"{os.path.getsize(args.out) / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
