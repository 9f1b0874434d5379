#!/usr/bin/python3
"""Trajectories of PyTorch's optimizers, and of LAMB and Lion in doubles, for tests/unit/optim/test_optim_golden.c.

    tests/golden/make_optim.py > tests/golden/optim.txt

Format: lines of a keyword and values. `start` and one `grads` line a step are shared by all cases; a `case` line
gives name, optimizer, lr, momentum, nesterov, beta1, beta2, epsilon and weight decay; after it one `params` line a
step and one `slot` line for each array of state after the last step. Floats have nine digits, so they round-trip.
"""
import math

import torch

ELEMENTS, STEPS = 13, 8
CASES = [
    ("sgd-plain", "sgd", dict(lr=0.1)),
    ("sgd-decay", "sgd", dict(lr=0.1, weight_decay=0.05)),
    ("sgd-momentum", "sgd", dict(lr=0.05, momentum=0.9)),
    ("sgd-momentum-decay", "sgd", dict(lr=0.05, momentum=0.9, weight_decay=0.01)),
    ("sgd-nesterov", "sgd", dict(lr=0.05, momentum=0.9, nesterov=True)),
    ("sgd-nesterov-decay", "sgd", dict(lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.1)),
    ("adam", "adam", dict(lr=0.01)),
    ("adam-decay", "adam", dict(lr=0.01, weight_decay=0.1)),
    ("adam-betas", "adam", dict(lr=0.003, betas=(0.8, 0.95), eps=1e-3)),
    ("adamw", "adamw", dict(lr=0.01, weight_decay=0.0)),
    ("adamw-decay", "adamw", dict(lr=0.01, weight_decay=0.3)),
]
LAMB_CASES = [
    ("lamb", dict(lr=0.02)),
    ("lamb-decay", dict(lr=0.01, eps=1e-3, weight_decay=0.3)),
]
LION_CASES = [
    ("lion", dict(lr=0.01)),
    ("lion-decay", dict(lr=0.003, betas=(0.8, 0.95), weight_decay=0.3)),
]
MAKERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
SLOTS = {"sgd": ["momentum_buffer"], "adam": ["exp_avg", "exp_avg_sq"], "adamw": ["exp_avg", "exp_avg_sq"]}


def line(word, values):
    print(word, *("%.9g" % value for value in values))


def run(name, kind, settings, start, grads):
    param = torch.nn.Parameter(start.clone())
    optimizer = MAKERS[kind]([param], foreach=False, **settings)
    group = optimizer.param_groups[0]
    betas = group.get("betas", (0.9, 0.999))
    print("case", name, kind, group["lr"], group.get("momentum", 0.0), int(group.get("nesterov", False)), *betas,
          group.get("eps", 1e-8), group["weight_decay"])
    for grad in grads:
        param.grad = grad.clone()
        optimizer.step()
        line("params", param.tolist())
    for slot in SLOTS[kind]:
        state = optimizer.state[param].get(slot)
        if state is not None:
            line("slot", state.tolist())


def norm(values):
    return math.sqrt(math.fsum(x * x for x in values))


def run_lamb(name, settings, start, grads):
    """You et al. 2020, algorithm 2, with phi the identity; torch.optim has none."""
    lr, (beta1, beta2) = settings["lr"], (0.9, 0.999)
    eps, decay = settings.get("eps", 1e-6), settings.get("weight_decay", 0.0)
    print("case", name, "lamb", lr, 0.0, 0, beta1, beta2, eps, decay)
    p, m, v = list(start), [0.0] * len(start), [0.0] * len(start)
    for t, grad in enumerate(grads, 1):
        m = [beta1 * a + (1 - beta1) * g for a, g in zip(m, grad)]
        v = [beta2 * a + (1 - beta2) * g * g for a, g in zip(v, grad)]
        u = [a / (1 - beta1**t) / (math.sqrt(b / (1 - beta2**t)) + eps) + decay * x for a, b, x in zip(m, v, p)]
        p = [x - lr * norm(p) / norm(u) * y for x, y in zip(p, u)]
        line("params", p)
    line("slot", m)
    line("slot", v)


def run_lion(name, settings, start, grads):
    """Chen et al. 2023, algorithm 2; torch.optim has none."""
    lr, (beta1, beta2), decay = settings["lr"], settings.get("betas", (0.9, 0.99)), settings.get("weight_decay", 0.0)
    print("case", name, "lion", lr, 0.0, 0, beta1, beta2, 0.0, decay)
    p, m = list(start), [0.0] * len(start)
    for grad in grads:
        c = [beta1 * a + (1 - beta1) * g for a, g in zip(m, grad)]
        p = [x - lr * ((a > 0) - (a < 0) + decay * x) for x, a in zip(p, c)]
        m = [beta2 * a + (1 - beta2) * g for a, g in zip(m, grad)]
        line("params", p)
    line("slot", m)


def main():
    torch.manual_seed(20)
    start = torch.randn(ELEMENTS)
    grads = [torch.randn(ELEMENTS) * 10.0 ** torch.randint(-4, 2, (ELEMENTS,)) for _ in range(STEPS)]
    start[5] = 0.0
    for grad in grads:
        grad[5] = 0.0  # what padding looks like
    print("# made by tests/golden/make_optim.py with torch", torch.__version__)
    line("start", start.tolist())
    for grad in grads:
        line("grads", grad.tolist())
    for name, kind, settings in CASES:
        run(name, kind, settings, start, grads)
    for name, settings in LAMB_CASES:
        run_lamb(name, settings, start.tolist(), [grad.tolist() for grad in grads])
    for name, settings in LION_CASES:
        run_lion(name, settings, start.tolist(), [grad.tolist() for grad in grads])
    print("end")


main()
