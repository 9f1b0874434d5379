#!/usr/bin/env python3
"""PyTorch's side of bench/generate: GPT-2 with random weights, which continues a prompt on request.

    python3 generate_torch.py MODEL DIRECTORY THREADS torch|transformers

Writes the weights to DIRECTORY/model.safetensors with Hugging Face's names and shapes when they are not there. Reads and
writes lines of JSON. Out, once ready: {"ready": true, "version": "..."}. In: {"prompt": [token, ...], "count": N}. Out:
{"seconds": S, "tokens": [N tokens]}. "torch" is the plain loop of torch_gpt.py, "transformers" Hugging Face's generate().
"""
import json
import os
import struct
import sys
import time

sys.dont_write_bytecode = True

import torch

import torch_gpt

STD = 0.08  # of weights: wide enough that the most probable token changes from step to step
NAMES = {"qkv": "attn.c_attn", "proj": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj"}


def hugging_face(model):
    """Its weights with Hugging Face's names; those of linear layers are (in, out) there."""
    for name, value in model.state_dict().items():
        words = name.split(".")
        if len(words) == 4 and words[2] in NAMES:
            name = ".".join(["h", words[1], NAMES[words[2]], words[3]])
            value = value.t() if words[3] == "weight" else value
        yield "transformer." + name, value.contiguous()


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, value in tensors.items():
        size = 4 * value.numel()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with open(path + ".part", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            f.write(value.numpy().tobytes())
    os.rename(path + ".part", path)


def make(name):
    torch.manual_seed(1)
    model = torch_gpt.Gpt2(name)
    with torch.no_grad():
        for key, value in model.named_parameters():
            if value.dim() == 2:
                value.normal_(std=STD)
    return model.eval()


class Plain:
    def __init__(self, model, name):
        self.model, self.version = model, torch.__version__

    def generate(self, prompt, count):
        return self.model.generate(prompt, count)


class HuggingFace:
    def __init__(self, model, name):
        import transformers

        layers, width, heads = torch_gpt.SIZES[name]
        self.version = transformers.__version__
        self.model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=layers, n_embd=width, n_head=heads)).eval()
        self.model.load_state_dict(dict(hugging_face(model)), strict=False)
        self.model.tie_weights()

    @torch.inference_mode()
    def generate(self, prompt, count):
        mask = torch.ones_like(prompt)
        text = self.model.generate(prompt, attention_mask=mask, max_new_tokens=count, min_new_tokens=count, do_sample=False,
                                   use_cache=True, pad_token_id=torch_gpt.VOCABULARY - 1)
        return text[:, prompt.shape[1]:]


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    name, directory, threads, kind = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.set_flush_denormal(True)
    model = make(name)
    path = os.path.join(directory, "model.safetensors")
    if not os.path.exists(path):
        write_safetensors(path, dict(hugging_face(model)))
    side = (HuggingFace if kind == "transformers" else Plain)(model, name)
    print(json.dumps({"ready": True, "version": side.version}), file=answers)
    for line in sys.stdin:
        order = json.loads(line)
        begin = time.perf_counter()
        tokens = side.generate(torch.tensor([order["prompt"]]), order["count"])
        print(json.dumps({"seconds": time.perf_counter() - begin, "tokens": tokens[0].tolist()}), file=answers)


if __name__ == "__main__":
    main()
