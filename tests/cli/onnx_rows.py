#!/usr/bin/env python3
"""onnx_rows.py MODEL.onnx LOGITS.safetensors: the output `logits` of an MLP for every sample of `lockstep eval --logits`.

Reads the protobuf and computes the few operators of an MLP row by row in plain Python, where no onnxruntime is at hand
(tests/golden/t9060-onnx.sh has it). Prints a line per sample, its outputs separated by commas.
"""
import json
import struct
import sys


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """A message as {field: [values]}: numbers, or bytes."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if key & 7 == 2 else (4, at)
            value, at = data[at:at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def constants(graph):
    found = {}
    for tensor in map(fields, graph[5]):
        raw = tensor[9][0]
        form = "<%df" % (len(raw) // 4) if tensor[2][0] == 1 else "<%dq" % (len(raw) // 8)
        found[tensor[8][0].decode()] = struct.unpack(form, raw)
    return found


def compute(op, x, inputs):
    if op == "Gemm":  # transB: a row of weights per output
        weight, bias = inputs
        return [sum(a * b for a, b in zip(x, weight[o * len(x):])) + bias[o] for o in range(len(bias))]
    if op == "Relu":
        return [max(0, v) for v in x]
    if op in ("Mul", "Add"):
        return [v * w if op == "Mul" else v + w for v, w in zip(x, inputs[0])]
    assert op in ("Flatten", "Reshape", "Identity"), op
    return x


def logits(graph, weights, x):
    values = {"input": x}
    for node in map(fields, graph[1]):
        names = [name.decode() for name in node[1]]
        values[node[2][0].decode()] = compute(node[4][0].decode(), values[names[0]], [weights[n] for n in names[1:]])
    return values["logits"]


def main():
    graph = fields(fields(open(sys.argv[1], "rb").read())[7][0])
    weights = constants(graph)
    raw = open(sys.argv[2], "rb").read()
    begin = 8 + struct.unpack("<Q", raw[:8])[0]
    images = json.loads(raw[8:begin])["images"]
    low, high = images["data_offsets"]
    size = (high - low) // 4 // images["shape"][0]
    for (*x,) in struct.iter_unpack("<%df" % size, raw[begin + low:begin + high]):
        print(*("%.9g" % y for y in logits(graph, weights, x)), sep=",")


main()
