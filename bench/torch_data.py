"""The datasets of Lockstep for PyTorch, from the same files: images in IDX files or folders, sentences of SST trees.

A dataset has `train` and `test`, each with `count` samples, their `labels`, and `batch(indices)`, the inputs of a model as
a tuple. Sentences are tokenized by tests/golden/wordpiece.py, BERT's rules on Python's Unicode tables, which Lockstep's
tokenizer is tested against.
"""
import os
import re
import struct
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
MNIST = (0.1307, 0.3081)  # mean and deviation

# Words that the treebank writes otherwise.
ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
           "``": '"', "''": '"', "`": "'"}


def read_idx(path):
    """Unsigned bytes with their shape: two zero bytes, type 8, the rank, then the sizes, big-endian."""
    with open(path, "rb") as f:
        data = f.read()
    zero, kind, rank = struct.unpack(">HBB", data[:4])
    if zero != 0 or kind != 8:
        raise ValueError(f"{path} does not hold unsigned bytes in IDX format")
    shape = struct.unpack(f">{rank}I", data[4:4 + 4 * rank])
    return torch.frombuffer(bytearray(data[4 + 4 * rank:]), dtype=torch.uint8).view(shape)


class Images:
    """One split of a directory with MNIST's names, the first `limit` samples (0: all)."""

    def __init__(self, directory, split, limit):
        self.mean, self.deviation = self.normalisation(directory)
        self.images = read_idx(os.path.join(directory, split + "-images-idx3-ubyte"))
        self.labels = read_idx(os.path.join(directory, split + "-labels-idx1-ubyte")).long()
        if limit:
            self.images, self.labels = self.images[:limit], self.labels[:limit]
        self.count = len(self.labels)

    @staticmethod
    def normalisation(directory):
        """That of the file `normalisation`, which `lockstep data make` writes, or MNIST's."""
        try:
            with open(os.path.join(directory, "normalisation")) as f:
                return tuple(float(word) for word in f.readline().split())
        except FileNotFoundError:
            return MNIST

    def batch(self, indices):
        x = self.images[indices].float()[:, None]
        return (x.div_(255).sub_(self.mean).div_(self.deviation),)

    def in_turn(self, size):
        return torch.arange(self.count).split(size)


class Folder(Images):
    """One split of a folder with a folder of grey PNG files for each class, normalised by the mean and deviation of the
    training images. With `is_augmented`, a batch has its images shifted by up to 4 pixels each way and mirrored at random,
    as torchvision's RandomCrop(28, padding=4) and RandomHorizontalFlip() do."""

    SHIFT = 4

    def __init__(self, directory, split, is_augmented=False, train=None):
        import torchvision

        found = torchvision.datasets.ImageFolder(os.path.join(directory, split))
        read = torchvision.transforms.functional.pil_to_tensor
        self.images = torch.stack([read(found.loader(path).convert("L"))[0] for path, _ in found.samples])
        self.labels = torch.tensor(found.targets)
        self.count, self.is_augmented = len(self.labels), is_augmented
        values = self.images.double() / 255
        self.mean, self.deviation = (train.mean, train.deviation) if train else (
            float(values.mean()), float(values.std(unbiased=False)))

    def batch(self, indices):
        if not self.is_augmented:
            return super().batch(indices)
        count, size, shift = len(indices), self.images.shape[1], self.SHIFT
        padded = torch.nn.functional.pad(self.images[indices], (shift,) * 4)
        top, left = (torch.randint(2 * shift + 1, (count, 1)) for _ in range(2))
        columns = left + torch.arange(size)
        columns = torch.where(torch.rand(count, 1) < 0.5, columns.flip(1), columns)
        rows = (top + torch.arange(size))[:, :, None]
        x = padded[torch.arange(count)[:, None, None], rows, columns[:, None, :]].float()[:, None]
        return (x.div_(255).sub_(self.mean).div_(self.deviation),)


def tree_words(line):
    """The label of a tree and its words: what stands before a closing bracket. Other white space may be part of a word."""
    words = re.findall(r"[^ \t()]+(?=[ \t]*\))", line)
    words = [ESCAPED.get(word, word).replace("\\/", "/").replace("\\*", "*") for word in words]
    return int(line.strip().lstrip("( ")[0]), words


class Sentences:
    """One split of SST-5: [CLS] sentence [SEP], whole sentences only."""

    def __init__(self, directory, split, vocabulary):
        self.token_lists, labels = [], []
        with open(os.path.join(directory, split + ".txt"), encoding="utf-8") as f:
            for line in f:
                if line.strip():
                    label, words = tree_words(line)
                    self.token_lists.append(vocabulary.encode(words))
                    labels.append(label)
        self.lengths = torch.tensor([len(tokens) for tokens in self.token_lists])
        self.labels, self.count = torch.tensor(labels), len(labels)

    def batch(self, indices):
        """Tokens, padded to the longest of the batch, and lengths."""
        lengths = self.lengths[indices]
        tokens = torch.zeros(len(indices), int(lengths.max()), dtype=torch.long)
        for row, i in enumerate(indices.tolist()):
            tokens[row, :lengths[row]] = self.token_lists[i]
        return tokens, lengths

    def in_turn(self, size):
        """For evaluation: sentences of similar length together, which need less padding."""
        return torch.argsort(self.lengths).split(size)


class Vocabulary:
    """A vocab.txt: token i is line i."""

    def __init__(self, path):
        sys.path.append(os.path.join(HERE, "..", "tests", "golden"))
        import wordpiece

        self.wordpiece, self.remembered = wordpiece, {}
        with open(path, encoding="utf-8") as f:
            self.number = {line.rstrip("\n"): i for i, line in enumerate(f)}

    def __len__(self):
        return len(self.number)

    def tokens_of(self, word):
        if word not in self.remembered:
            pieces, _, _ = self.wordpiece.tokenize(word.encode(), "-", self.number)
            self.remembered[word] = [self.number[piece] for piece in pieces]
        return self.remembered[word]

    def encode(self, words):
        inside = [token for word in words for token in self.tokens_of(word)]
        return torch.tensor([self.number["[CLS]"]] + inside + [self.number["[SEP]"]])


class Dataset:
    """Both splits of a directory: SST-5's trees where there is a train.txt, folders of images where there is train/, else
    IDX files."""

    def __init__(self, directory, samples=0, test_samples=0, is_augmented=False):
        self.vocabulary = None
        if os.path.isdir(os.path.join(directory, "train")):
            self.train = Folder(directory, "train", is_augmented)
            self.test = Folder(directory, "test", train=self.train)
        elif os.path.isfile(os.path.join(directory, "train.txt")):
            self.vocabulary = Vocabulary(os.path.join(directory, "vocab.txt"))
            self.train, self.test = (Sentences(directory, split, self.vocabulary) for split in ("train", "test"))
        else:
            self.train, self.test = Images(directory, "train", samples), Images(directory, "t10k", test_samples)
        self.classes = int(self.train.labels.max()) + 1
