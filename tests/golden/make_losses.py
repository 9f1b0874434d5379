#!/usr/bin/python3
"""Losses of PyTorch's cross_entropy, for tests/unit/graph/test_loss_golden.c.

    tests/golden/make_losses.py > tests/golden/losses.txt

Format: lines of a keyword and values. `logits` (rows, classes), `labels` (rows), `targets` (rows, classes) and `weights`
(classes) are shared by all cases; a `case` line gives name, label smoothing, whether classes have weights, whether rows have
float targets, and the sum of the loss over all rows. Floats have nine digits, so they round-trip.
"""
import torch
import torch.nn.functional as F

ROWS, CLASSES = 9, 5


def line(word, values):
    print(word, *("%.9g" % value for value in values))


def main():
    torch.manual_seed(20)
    logits = 3 * torch.randn(ROWS, CLASSES)
    labels = torch.arange(ROWS) % CLASSES
    targets = torch.softmax(2 * torch.randn(ROWS, CLASSES), 1)
    weights = torch.tensor([1, 2, 0.5, 0, 3.25])
    print("# made by tests/golden/make_losses.py with torch", torch.__version__)
    line("logits", logits.flatten().tolist())
    line("labels", labels.tolist())
    line("targets", targets.flatten().tolist())
    line("weights", weights.tolist())
    for smoothing in (0.0, 0.1, 0.5):
        for is_weighted in (0, 1):
            for is_soft in (0, 1):
                loss = F.cross_entropy(logits.double(), targets.double() if is_soft else labels,
                                       weight=weights.double() if is_weighted else None,
                                       label_smoothing=smoothing, reduction="sum")
                print("case", smoothing, is_weighted, is_soft, "%.12g" % loss.item())


main()
