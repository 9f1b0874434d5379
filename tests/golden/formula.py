"""Weights and inputs that are computed, not stored: the same bits as formula.h, where the formula is explained."""
import math

import numpy as np


def mix(x):
    """A bijection of 32-bit words; x is an array of uint32 (arithmetic wraps)."""
    x = x ^ (x >> np.uint32(16))
    x = x * np.uint32(0x7FEB352D)
    x = x ^ (x >> np.uint32(15))
    x = x * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def stream(seed, name):
    value = 2166136261
    for byte in name.encode():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return mix(np.array([value ^ seed], dtype=np.uint32))[0]


def words(seed, name, count):
    index = np.arange(count, dtype=np.uint64).astype(np.uint32)
    return mix(stream(seed, name) + index * np.uint32(0x9E3779B9))


def units(seed, name, count):
    """float32 in [-1, 1), multiples of 2^-23."""
    return (words(seed, name, count) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)


def fill(seed, name, center, bound, count):
    wide = np.float64(np.float32(center)) + units(seed, name, count).astype(np.float64) * np.float64(np.float32(bound))
    return wide.astype(np.float32)


def labels(seed, classes, count):
    return (words(seed, "labels", count) % np.uint32(classes)).astype(np.int64)


def fill_param(seed, name, shape):
    """float32 array of a PyTorch-shaped parameter or running statistic."""
    count = math.prod(shape)
    if len(shape) > 1:
        center, bound = 0.0, math.sqrt(6.0 / math.prod(shape[1:]))
    elif name.endswith(".running_var"):
        center, bound = 1.0, 0.25
    elif name.endswith(".bn3.weight"):
        center, bound = 0.25, 0.0625
    elif name.endswith(".weight"):
        center, bound = 0.5, 0.125
    elif name.endswith(".bias"):
        center, bound = 0.25, 0.125
    else:
        center, bound = 0.0, 0.125
    return fill(seed, name, center, bound, count).reshape(shape)
