"""GPT-2 in PyTorch, as fast as it can be written there: linear layers instead of Hugging Face's transposed ones, PyTorch's
own attention kernel where it has one (2.0 and later), keys and values of generated texts kept in arrays made beforehand.

tests/golden/torch_gpt.py has the same model with Hugging Face's names and shapes, for comparisons of values.
"""
import torch
from torch import nn
from torch.nn import functional as F

SIZES = {"gpt-nano": (3, 48, 3), "gpt-micro": (4, 128, 4), "gpt-mini": (6, 192, 6), "gpt2": (12, 768, 12),
         "gpt2-medium": (24, 1024, 16)}  # layers, width, heads
POSITIONS = 1024
VOCABULARY = 50257


def attend(q, k, v, is_causal):
    """(samples, heads, tokens, width of a head)."""
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
    scores = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[2:], dtype=torch.bool).triu(1), float("-inf"))
    return scores.softmax(-1) @ v


class Cache:
    """Keys and values of one layer: the first `used` of `tokens` places."""

    def __init__(self, samples, heads, tokens, width):
        self.k, self.v = (torch.zeros(samples, heads, tokens, width) for _ in range(2))
        self.used = 0

    def append(self, k, v):
        end = self.used + k.shape[2]
        self.k[:, :, self.used:end], self.v[:, :, self.used:end] = k, v
        self.used = end
        return self.k[:, :, :end], self.v[:, :, :end]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x, cache):
        n, t, width = x.shape
        q, k, v = (part.view(n, t, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(width, 2))
        if cache:
            k, v = cache.append(k, v)
        return self.proj(attend(q, k, v, t > 1).transpose(1, 2).reshape(n, t, width))

    def forward(self, x, cache=None):
        x = x + self.attention(self.ln_1(x), cache)
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, name, vocabulary=VOCABULARY):
        super().__init__()
        layers, self.width, self.heads = SIZES[name]
        self.wte, self.wpe = nn.Embedding(vocabulary, self.width), nn.Embedding(POSITIONS, self.width)
        self.h = nn.ModuleList(Block(self.width, self.heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(self.width)
        for weight in (self.wte.weight, self.wpe.weight):
            nn.init.normal_(weight, std=0.02)

    def forward(self, tokens, caches=None):
        """Logits of every token's next; with caches, of the last token's."""
        begin = caches[0].used if caches else 0
        x = self.wte(tokens) + self.wpe.weight[begin:begin + tokens.shape[1]]
        for i, block in enumerate(self.h):
            x = block(x, caches[i] if caches else None)
        return F.linear(self.ln_f(x[:, -1:] if caches else x), self.wte.weight)

    def loss(self, tokens, targets):
        return F.cross_entropy(self(tokens).flatten(0, 1), targets.flatten())

    @torch.inference_mode()
    def generate(self, tokens, count):
        """The most probable next token, `count` times."""
        samples, length = tokens.shape
        caches = [Cache(samples, self.heads, length + count, self.width // self.heads) for _ in self.h]
        new = []
        for _ in range(count):
            tokens = self(tokens, caches)[:, -1].argmax(-1, keepdim=True)
            new.append(tokens)
        return torch.cat(new, 1)
