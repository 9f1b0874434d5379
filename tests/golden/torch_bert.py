"""BERT and the transformer of src/models as plain PyTorch modules: padded batches with a mask, no dropout.

BERT's modules and parameters have Hugging Face's names, so a state_dict of one is a state_dict of the other.
"""
import torch
import torch.nn.functional as F
from torch import nn

SIZES = {"bert-tiny": (2, 128, 2), "bert-base": (12, 768, 12)}  # layers, width, heads
POSITIONS = 512


def attention(q, k, v, mask, heads):
    """q, k, v (n, t, width); mask (n, t) is true where there is a token."""
    n, t, width = q.shape
    q, k, v = (x.view(n, t, heads, width // heads).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(2, 3) / (width // heads) ** 0.5
    scores = scores.masked_fill(~mask[:, None, None, :], float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, width)


class Embeddings(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, width)
        self.position_embeddings = nn.Embedding(POSITIONS, width)
        self.token_type_embeddings = nn.Embedding(2, width)
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, batch):
        places = torch.arange(batch.tokens.shape[1])
        return self.LayerNorm(self.word_embeddings(batch.tokens) + self.position_embeddings(places)
                              + self.token_type_embeddings(batch.segments))


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x, mask):
        return attention(self.query(x), self.key(x), self.value(x), mask, self.heads)


class Output(nn.Module):
    """The end of a branch: back to the width, plus what came in, normed."""

    def __init__(self, inputs, width):
        super().__init__()
        self.dense = nn.Linear(inputs, width)
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x, residual):
        return self.LayerNorm(self.dense(x) + residual)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.self = SelfAttention(width, heads)
        self.output = Output(width, width)

    def forward(self, x, mask):
        return self.output(self.self(x, mask), x)


class Dense(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.dense = nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.dense(x)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.intermediate = Dense(width, 4 * width)
        self.output = Output(4 * width, width)

    def forward(self, x, mask):
        x = self.attention(x, mask)
        return self.output(F.gelu(self.intermediate(x)), x)


class Encoder(nn.Module):
    def __init__(self, layers, width, heads):
        super().__init__()
        self.layer = nn.ModuleList(Layer(width, heads) for _ in range(layers))


class Bert(nn.Module):
    def __init__(self, name, vocabulary):
        super().__init__()
        layers, width, heads = SIZES[name]
        self.embeddings = Embeddings(vocabulary, width)
        self.encoder = Encoder(layers, width, heads)
        self.pooler = Dense(width, width)

    def forward(self, batch):
        x = self.embeddings(batch)
        for layer in self.encoder.layer:
            x = layer(x, batch.mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


class Transform(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x):
        return self.LayerNorm(F.gelu(self.dense(x)))


class Predictions(nn.Module):
    """The decoder's weight is the words' and its bias this module's: each is there twice in a state_dict."""

    def __init__(self, words, width):
        super().__init__()
        self.transform = Transform(width)
        self.decoder = nn.Linear(width, words.shape[0])
        self.decoder.weight = words
        self.bias = nn.Parameter(torch.zeros(words.shape[0]))
        self.decoder.bias = self.bias

    def forward(self, x):
        return self.decoder(self.transform(x))


class Heads(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.predictions = Predictions(words, width)
        self.seq_relationship = nn.Linear(width, 2)


class BertForPreTraining(nn.Module):
    TIED = {"cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
            "cls.predictions.decoder.bias": "cls.predictions.bias"}

    def __init__(self, name, vocabulary):
        super().__init__()
        self.bert = Bert(name, vocabulary)
        self.cls = Heads(self.bert.embeddings.word_embeddings.weight, SIZES[name][1])

    def forward(self, batch):
        x, pooled = self.bert(batch)
        return self.cls.seq_relationship(pooled), self.cls.predictions(x[batch.masked_sample, batch.masked_place])


class BertForSequenceClassification(nn.Module):
    TIED = {}

    def __init__(self, name, vocabulary, classes):
        super().__init__()
        self.bert = Bert(name, vocabulary)
        self.classifier = nn.Linear(SIZES[name][1], classes)

    def forward(self, batch):
        return self.classifier(self.bert(batch)[1]), None


class PreNormAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, mask):
        return self.output(attention(self.query(x), self.key(x), self.value(x), mask, self.heads))


class PreNormLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = PreNormAttention(width, heads)
        self.linear1, self.linear2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))


class Transformer(nn.Module):
    TIED = {}

    def __init__(self, vocabulary, classes, layers=6, width=256, heads=4, positions=256):
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.layers = nn.ModuleList(PreNormLayer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, classes)

    def forward(self, batch):
        x = self.words(batch.tokens) + self.positions(torch.arange(batch.tokens.shape[1]))
        for layer in self.layers:
            x = layer(x, batch.mask)
        x = self.norm(x) * batch.mask[:, :, None]
        return self.fc(x.sum(1) / batch.mask.sum(1, keepdim=True)), None
