"""Lockstep's models of text in PyTorch, with the same parameter names (for BERT, those of Hugging Face).

Batches are padded: `tokens` is (samples, length), `lengths` has the number of real tokens per sample. The faster variant
is used: no mask where nothing is padded, and only the rows to be predicted go through the output layer.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F


def attend(q, k, v, heads, mask):
    """Multi-head attention on (samples, length, width); `mask` is added to the scores, or None."""
    def split(x):
        return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)

    q, k, v = split(q), split(k), split(v)
    scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + mask
    return (F.softmax(scores, -1) @ v).transpose(1, 2).flatten(2)


def padding_mask(lengths, longest):
    """-inf for keys past the end, (samples, 1, 1, longest); None where nothing is padded."""
    if int(lengths.min()) == longest:
        return None
    past = torch.arange(longest)[None, :] >= lengths[:, None]
    return torch.zeros(past.shape).masked_fill(past, -math.inf)[:, None, None, :]


def container(**modules):
    """A module that only holds others, for names with dots."""
    module = nn.Module()
    for name, child in modules.items():
        setattr(module, name, child)
    return module


class BertLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention = container(
            self=container(query=nn.Linear(width, width), key=nn.Linear(width, width), value=nn.Linear(width, width)),
            output=container(dense=nn.Linear(width, width), LayerNorm=nn.LayerNorm(width, 1e-12)))
        self.intermediate = container(dense=nn.Linear(width, 4 * width))
        self.output = container(dense=nn.Linear(4 * width, width), LayerNorm=nn.LayerNorm(width, 1e-12))

    def forward(self, x, mask):
        own, out = getattr(self.attention, "self"), self.attention.output
        y = attend(own.query(x), own.key(x), own.value(x), self.heads, mask)
        x = out.LayerNorm(out.dense(y) + x)
        y = F.gelu(self.intermediate.dense(x))
        return self.output.LayerNorm(self.output.dense(y) + x)


class Bert(nn.Module):
    """With the heads of pretraining (classes 0), or with a classifier."""

    SIZES = {"tiny": (2, 128, 2), "mini": (4, 256, 4), "small": (4, 512, 8), "medium": (8, 512, 8),
             "base": (12, 768, 12), "large": (24, 1024, 16)}

    def __init__(self, size, vocabulary, classes=0):
        super().__init__()
        layers, width, heads = self.SIZES[size]
        self.bert = container(
            embeddings=container(word_embeddings=nn.Embedding(vocabulary, width),
                                 position_embeddings=nn.Embedding(512, width),
                                 token_type_embeddings=nn.Embedding(2, width), LayerNorm=nn.LayerNorm(width, 1e-12)),
            encoder=container(layer=nn.ModuleList(BertLayer(width, heads) for _ in range(layers))),
            pooler=container(dense=nn.Linear(width, width)))
        if classes:
            self.classifier = nn.Linear(width, classes)
        else:
            self.cls = container(
                predictions=container(transform=container(dense=nn.Linear(width, width),
                                                          LayerNorm=nn.LayerNorm(width, 1e-12))),
                seq_relationship=nn.Linear(width, 2))
            self.cls.predictions.bias = nn.Parameter(torch.zeros(vocabulary))

    def encode(self, tokens, segments, lengths):
        e = self.bert.embeddings
        x = e.word_embeddings(tokens) + e.position_embeddings.weight[:tokens.shape[1]] + e.token_type_embeddings(segments)
        x = e.LayerNorm(x)
        mask = padding_mask(lengths, tokens.shape[1])
        for layer in self.bert.encoder.layer:
            x = layer(x, mask)
        return x, torch.tanh(self.bert.pooler.dense(x[:, 0]))

    def forward(self, tokens, segments, lengths, masked=None):
        """Logits of the class; and of the tokens at `masked`, rows of the flattened batch, when pretraining."""
        x, pooled = self.encode(tokens, segments, lengths)
        if hasattr(self, "classifier"):
            return self.classifier(pooled)
        transform = self.cls.predictions.transform
        y = transform.LayerNorm(F.gelu(transform.dense(x.flatten(0, 1)[masked])))
        words = F.linear(y, self.bert.embeddings.word_embeddings.weight, self.cls.predictions.bias)
        return self.cls.seq_relationship(pooled), words


class TransformerLayer(nn.Module):
    def __init__(self, width, heads, ffn):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = container(query=nn.Linear(width, width), key=nn.Linear(width, width),
                                   value=nn.Linear(width, width), output=nn.Linear(width, width))
        self.linear1, self.linear2 = nn.Linear(width, ffn), nn.Linear(ffn, width)

    def forward(self, x, mask):
        y, a = self.norm1(x), self.attention
        x = x + a.output(attend(a.query(y), a.key(y), a.value(y), self.heads, mask))
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))


class Transformer(nn.Module):
    """The classifier of sentences: norms first, the mean over tokens, a linear layer."""

    def __init__(self, vocabulary, classes, layers=6, width=256, heads=4, ffn=1024, positions=256):
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.layers = nn.ModuleList(TransformerLayer(width, heads, ffn) for _ in range(layers))
        self.norm, self.fc = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, tokens, lengths):
        longest = tokens.shape[1]
        x = self.words(tokens) + self.positions.weight[:longest]
        mask = padding_mask(lengths, longest)
        for layer in self.layers:
            x = layer(x, mask)
        x = self.norm(x)
        real = (torch.arange(longest)[None, :] < lengths[:, None]).to(x.dtype)[:, :, None]
        return self.fc((x * real).sum(1) / lengths[:, None].to(x.dtype))


def start_as_lockstep(model):
    """Initial weights distributed as in src/models: BERT's N(0, 0.02), biases and the transformer's last layer from 0."""
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
    if isinstance(model, Transformer):
        nn.init.zeros_(model.fc.weight)
