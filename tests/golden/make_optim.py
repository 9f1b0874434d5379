#!/usr/bin/python3
"""Trajectories of PyTorch's optimizers, for tests/unit/optim/test_golden.c.

    tests/golden/make_optim.py > tests/golden/optim.txt

Format: lines of a keyword and values. `start` and one `grads` line a step are shared by all cases; a `case` line
gives name, optimizer, lr, momentum, nesterov, beta1, beta2, epsilon and weight decay; after it one `params` line a
step and one `slot` line for each array of state after the last step. Floats have nine digits, so they round-trip.
"""
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
MAKERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
SLOTS = {"sgd": ["momentum_buffer"], "adam": ["exp_avg", "exp_avg_sq"], "adamw": ["exp_avg", "exp_avg_sq"]}


def line(word, tensor):
    print(word, *("%.9g" % value for value in tensor.tolist()))


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
        line("params", param.detach())
    for slot in SLOTS[kind]:
        state = optimizer.state[param].get(slot)
        if state is not None:
            line("slot", state)


def main():
    torch.manual_seed(20)
    start = torch.randn(ELEMENTS)
    grads = [torch.randn(ELEMENTS) * 10.0 ** torch.randint(-4, 2, (ELEMENTS,)) for _ in range(STEPS)]
    start[5] = 0.0
    for grad in grads:
        grad[5] = 0.0  # what padding looks like
    print("# made by tests/golden/make_optim.py with torch", torch.__version__)
    line("start", start)
    for grad in grads:
        line("grads", grad)
    for name, kind, settings in CASES:
        run(name, kind, settings, start, grads)
    print("end")


main()
