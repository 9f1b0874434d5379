"""A vocabulary of GPT-2's size and in its files' form whose merges are of some bytes only, so that texts of the others are tokens of
one byte each. For bench/generate, and for tests/golden, which need GPT-2's 50,257 words and no download."""
import json
import os

VOCABULARY = 50257


def byte_characters():
    """The bytes in the order of GPT-2's tokens, and its printable character of each."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    order = plain + others
    return order, {b: chr(b) if b in plain else chr(256 + others.index(b)) for b in order}


def make_vocabulary(directory, alphabet=range(128, 256)):
    """Writes vocab.json and merges.txt, with pairs and triples of the alphabet's bytes; returns the bytes of every token."""
    order, character = byte_characters()
    pairs = [bytes((a, b)) for a in alphabet for b in alphabet]
    triples = [pair + bytes((c,)) for pair in pairs for c in alphabet]
    merged = (pairs + triples)[:VOCABULARY - 257]
    tokens = [bytes((b,)) for b in order] + merged
    text = lambda token: "".join(character[b] for b in token)
    names = {text(token): i for i, token in enumerate(tokens)}
    names["<|endoftext|>"] = len(tokens)
    with open(os.path.join(directory, "vocab.json"), "w", encoding="utf-8") as f:
        json.dump(names, f)
    with open(os.path.join(directory, "merges.txt"), "w", encoding="utf-8") as f:
        f.write("#version: 0.2\n" + "".join(f"{text(token[:-1])} {text(token[-1:])}\n" for token in merged))
    return tokens + [b"<|endoftext|>"]
