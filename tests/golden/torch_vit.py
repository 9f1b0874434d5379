"""The Vision Transformer of src/models as a plain PyTorch module, no dropout, with the names and shapes of Hugging Face's files."""
import torch
import torch.nn.functional as F
from torch import nn

SIZES = {"vit-tiny": (12, 192, 3)}  # layers, width, heads


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention, self.output = nn.Module(), nn.Module()
        for name in ("query", "key", "value"):
            setattr(self.attention, name, nn.Linear(width, width))
        self.output.dense = nn.Linear(width, width)

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = (part(x).view(n, t, self.heads, width // self.heads).transpose(1, 2)
                   for part in (self.attention.query, self.attention.key, self.attention.value))
        weights = (q @ k.transpose(2, 3) / (width // self.heads) ** 0.5).softmax(-1)
        return self.output.dense((weights @ v).transpose(1, 2).reshape(n, t, width))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.layernorm_before, self.layernorm_after = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)
        self.intermediate, self.output = nn.Module(), nn.Module()
        self.intermediate.dense, self.output.dense = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.layernorm_before(x))
        return x + self.output.dense(F.gelu(self.intermediate.dense(self.layernorm_after(x))))


class Vit(nn.Module):
    def __init__(self, name, channels=1, side=28, patch=4, classes=10):
        super().__init__()
        layers, width, heads = SIZES[name]
        self.vit = nn.Module()
        self.vit.embeddings, self.vit.encoder = nn.Module(), nn.Module()
        embeddings = self.vit.embeddings
        embeddings.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        embeddings.position_embeddings = nn.Parameter(torch.zeros(1, (side // patch) ** 2 + 1, width))
        embeddings.patch_embeddings = nn.Module()
        embeddings.patch_embeddings.projection = nn.Conv2d(channels, width, patch, patch)
        self.vit.encoder.layer = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.vit.layernorm = nn.LayerNorm(width, 1e-12)
        self.classifier = nn.Linear(width, classes)

    def forward(self, images):
        embeddings = self.vit.embeddings
        x = embeddings.patch_embeddings.projection(images).flatten(2).transpose(1, 2)
        x = torch.cat([embeddings.cls_token.expand(len(x), -1, -1), x], 1) + embeddings.position_embeddings
        for layer in self.vit.encoder.layer:
            x = layer(x)
        return self.classifier(self.vit.layernorm(x)[:, 0])
