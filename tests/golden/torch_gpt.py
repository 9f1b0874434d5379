"""GPT-2 of src/models as a plain PyTorch module, no dropout, with Hugging Face's names and shapes: a state_dict of one is a
state_dict of the other, but for the copy of the words in lm_head.weight."""
import torch
import torch.nn.functional as F
from torch import nn

SIZES = {"gpt-nano": (3, 48, 3), "gpt-micro": (4, 128, 4), "gpt2": (12, 768, 12)}  # layers, width, heads
POSITIONS = 1024


class Conv1D(nn.Module):
    """A linear layer whose weight is (in, out)."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(inputs, outputs)), nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = Conv1D(width, 3 * width), Conv1D(width, width)

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = (part.view(n, t, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.c_attn(x).split(width, 2))
        scores = q @ k.transpose(2, 3) / (width // self.heads) ** 0.5
        scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
        return self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, width))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(width, 4 * width), Conv1D(4 * width, width)

    def forward(self, x):
        x = self.c_fc(x)
        x = 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))
        return self.c_proj(x)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.mlp = Attention(width, heads), Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Body(nn.Module):
    def __init__(self, name, vocabulary):
        super().__init__()
        layers, width, heads = SIZES[name]
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(POSITIONS, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return self.ln_f(x)


class Gpt2(nn.Module):
    TIED = {}

    def __init__(self, name, vocabulary):
        super().__init__()
        self.transformer = Body(name, vocabulary)

    def forward(self, batch):
        """No logits of samples; those of every token's next."""
        x = self.transformer(batch.tokens)[batch.masked_sample, batch.masked_place]
        return None, F.linear(x, self.transformer.wte.weight)
