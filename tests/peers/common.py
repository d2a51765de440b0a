"""What the PyTorch forms share: a case, attention in blocks, and merging of softmaxes.

A form is a function without arguments that computes the output [h, n, e]; a mechanism's
function prepares what does not depend on the data (masks, indices), and returns its forms by
name.  The fastest one is the peer.
"""
import math
from dataclasses import dataclass, field
from typing import Callable

import torch
import torch.nn.functional as F

sdpa = F.scaled_dot_product_attention
HEADS, SIZE = 8, 64


@dataclass
class Case:
    """A mechanism, its parameters, and what both sides are given."""
    mechanism: str
    forms: Callable            # (inputs, params, tensors) -> {name: form}
    params: dict = field(default_factory=dict)
    tensors: Callable = None   # (n, h) -> {name: tensor}; given to both sides
    causal: bool = False
    reads_x: bool = False      # the layer's input x [n, h d], not q, k and v
    claim: float = 1           # exponent of n that the mechanism claims
    floor: float = 1.5         # least ratio at the case's largest timed n
    aim: float = 3.0
    sizes: tuple = (4096, 16384)
    long: int = 65536          # where the exponent ends, for attnscope alone
    check_n: int = 1024
    check_wide: bool = False   # outputs are compared in double: float32 would choose otherwise
    # What the exponent's runs are given where the claim speaks of other parameters than the
    # timed ones: n -> (params, tensors), in words, and the exponent it claims for them.
    held: Callable = None
    held_as: str = ""
    held_claim: float = None

    @property
    def exponent_claim(self):
        return self.claim if self.held_claim is None else self.held_claim

    @property
    def name(self):
        return self.mechanism + (" --causal" if self.causal else "")


@dataclass
class Inputs:
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    x: torch.Tensor


def attend(q, k, v, mask=None):
    """SDPA with the logarithm of its denominators: out [b,h,n,e], lse [b,h,n]."""
    op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return op(q, k, v, 0.0, False, attn_mask=mask)


def merge(*parts):
    """One softmax of several over disjoint keys, each (out [..,n,e], lse [..,n])."""
    lse = torch.stack([part[1] for part in parts])
    share = torch.softmax(lse, 0).unsqueeze(-1)
    return sum(s * part[0] for s, part in zip(share, parts))


def additive(allowed):
    """0 where allowed, -inf elsewhere: what SDPA takes without converting."""
    return torch.zeros(allowed.shape).masked_fill_(~allowed, -math.inf)


def blocks(x, size):
    """[h,n,d] -> [n/size, h, size, d], a view."""
    h, n, d = x.shape
    return x.view(h, n // size, size, d).transpose(0, 1)


def unblocks(x):
    """[nb, h, size, d] -> [h, n, d]"""
    nb, h, size, d = x.shape
    return x.transpose(0, 1).reshape(h, nb * size, d)


def windows(x, size, left, right):
    """[h,n,d] -> [n/size, h, left+size+right, d]: a block and its surroundings, zeros outside."""
    x = F.pad(x, (0, 0, left, right))
    return x.unfold(1, left + size + right, size).permute(1, 0, 3, 2)


class Local:
    """Attention of blocks of queries to windows of keys, by a mask of the pairs in them.

    allowed(i, j) says it for query i and key j; bias(i, j) is added to the scores.  There may
    be fewer keys than queries: key_block of them for `block` queries.
    """

    def __init__(self, inputs, block, left, right, allowed, bias=None, key_block=None):
        self.inputs, self.block, self.left, self.right = inputs, block, left, right
        self.key_block = key_block or block
        n, m = inputs.q.shape[1], inputs.k.shape[1]
        i = torch.arange(n).view(-1, block, 1)
        first = torch.arange(0, m, self.key_block).view(-1, 1, 1)
        j = first + torch.arange(-left, self.key_block + right)
        mask = additive((j >= 0) & (j < m) & allowed(i, j))
        if bias is not None:
            mask = mask + bias(i, j)
        self.mask = mask[:, None].to(inputs.q.dtype)

    def parts(self, k=None, v=None):
        surround = lambda x: windows(x, self.key_block, self.left, self.right)
        k = self.inputs.k if k is None else k
        v = self.inputs.v if v is None else v
        return blocks(self.inputs.q, self.block), surround(k), surround(v)

    def lse(self):
        """(out [h,n,e], lse [h,n])"""
        out, lse = attend(*self.parts(), self.mask)
        return unblocks(out), unblocks(lse.unsqueeze(-1)).squeeze(-1)

    def sdpa(self, k=None, v=None):
        return unblocks(sdpa(*self.parts(k, v), self.mask))

    def products(self):
        q, k, v = self.parts()
        scores = torch.matmul(q / math.sqrt(q.shape[-1]), k.transpose(-1, -2)).add_(self.mask)
        return unblocks(torch.matmul(torch.softmax(scores, -1), v))

    def forms(self):
        return {"blocks, SDPA": self.sdpa, "blocks, matmul": self.products}


def whole(q, k, v):
    """attend() of all queries to all keys: (out [h,n,e], lse [h,n])"""
    out, lse = attend(q[None], k[None], v[None])
    return out[0], lse[0]


def take(x, index):
    """Rows of x [h,n,d] named by index [h, ...] -> [h, ..., d]"""
    h = x.shape[0]
    flat = x.reshape(-1, x.shape[-1])
    offset = (torch.arange(h) * x.shape[1]).view(-1, *[1] * (index.dim() - 1))
    return flat.index_select(0, (index + offset).flatten()).view(*index.shape, -1)
