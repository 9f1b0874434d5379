#!/usr/bin/env python3
"""JAX's side of bench/peers: the models of torch_gpt.py, torch_text.py and torch_models.py as functions, and Adam.

    python3 peers_jax.py --model gpt2 --batch 4 --tokens 64 --threads 1 [--bf16]
    python3 peers_jax.py --probe

Requests and answers are those of peers_torch.py. What makes JAX faster without changing the job is done here: a whole step is
one compiled function, which reuses the memory of the old parameters (donated), attention is JAX's own, the loss is
not fetched, images are channels-last. --bf16 multiplies in bfloat16; parameters, sums, norms and softmax stay in fp32.
"""
import argparse
import json
import os
import sys
import time

sys.dont_write_bytecode = True

BERT_WORDS, GPT_WORDS, POSITIONS, MASKED, CLASSES = 30522, 50257, {"gpt2": 1024, "bert-base": 512, "transformer": 256}, 20, 5
SIZES = {"gpt2": (12, 768, 12), "bert-base": (12, 768, 12), "transformer": (6, 256, 4)}  # layers, width, heads


class Maker:
    """Random parameters by name, and the functions that use them."""

    def __init__(self, is_bf16):
        import jax
        import jax.numpy as jnp

        self.jax, self.jnp, self.type = jax, jnp, jnp.bfloat16 if is_bf16 else jnp.float32
        self.key, self.parameters = jax.random.key(1), {}

    def random(self, *shape):
        self.key, key = self.jax.random.split(self.key)
        return 0.02 * self.jax.random.normal(key, shape)

    def integers(self, limit, *shape):
        self.key, key = self.jax.random.split(self.key)
        return self.jax.random.randint(key, shape, 0, limit)

    def weights(self, name, *shape):
        """A weight whose last dimension is the output, with a bias."""
        self.parameters[name], self.parameters[name + ".bias"] = self.random(*shape), self.jnp.zeros(shape[-1])

    def norms(self, name, width):
        self.parameters[name], self.parameters[name + ".bias"] = self.jnp.ones(width), self.jnp.zeros(width)

    def blocks(self, layers, width, words, positions):
        self.parameters.update(words=self.random(words, width), positions=self.random(positions, width))
        for i in range(layers):
            for name in ("norm1", "norm2"):
                self.norms(f"{i}.{name}", width)
            for name, n, m in (("qkv", 1, 3), ("proj", 1, 1), ("up", 1, 4), ("down", 4, 1)):
                self.weights(f"{i}.{name}", n * width, m * width)
        self.norms("norm", width)

    def dot(self, x, w):
        return self.jnp.matmul(x.astype(self.type), w.astype(self.type), preferred_element_type=self.jnp.float32)

    def linear(self, p, name, x):
        return self.dot(x, p[name]) + p[name + ".bias"]

    def norm(self, p, name, x, epsilon=1e-5):
        x = x - x.mean(-1, keepdims=True)
        return x * self.jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + epsilon) * p[name] + p[name + ".bias"]

    def attention(self, p, i, x, heads, is_causal):
        q, k, v = (part.reshape(*x.shape[:2], heads, -1).astype(self.type)
                   for part in self.jnp.split(self.linear(p, f"{i}.qkv", x), 3, -1))
        y = self.jax.nn.dot_product_attention(q, k, v, is_causal=is_causal)
        return self.linear(p, f"{i}.proj", y.reshape(x.shape))

    def mlp(self, p, i, x, is_tanh):
        return self.linear(p, f"{i}.down", self.jax.nn.gelu(self.linear(p, f"{i}.up", x), approximate=is_tanh))

    def cross_entropy(self, logits, labels):
        chosen = self.jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
        return (self.jax.nn.logsumexp(logits, -1) - chosen).mean()


def gpt(m, options):
    """Norms first; the words once more at the end."""
    layers, width, heads = SIZES[options.model]
    m.blocks(layers, width, GPT_WORDS, POSITIONS[options.model])
    tokens, targets = (m.integers(GPT_WORDS, options.batch, options.tokens) for _ in range(2))

    def loss(p, tokens, targets):
        x = p["words"][tokens] + p["positions"][:tokens.shape[1]]
        for i in range(layers):
            x = x + m.attention(p, i, m.norm(p, f"{i}.norm1", x), heads, True)
            x = x + m.mlp(p, i, m.norm(p, f"{i}.norm2", x), True)
        return m.cross_entropy(m.dot(m.norm(p, "norm", x), p["words"].T), targets)

    return loss, (tokens, targets)


def transformer(m, options):
    """Norms first, the mean over tokens, a class per sentence."""
    layers, width, heads = SIZES[options.model]
    m.blocks(layers, width, BERT_WORDS, POSITIONS[options.model])
    m.weights("fc", width, CLASSES)
    data = m.integers(BERT_WORDS, options.batch, options.tokens), m.integers(CLASSES, options.batch)

    def loss(p, tokens, labels):
        x = p["words"][tokens] + p["positions"][:tokens.shape[1]]
        for i in range(layers):
            x = x + m.attention(p, i, m.norm(p, f"{i}.norm1", x), heads, False)
            x = x + m.mlp(p, i, m.norm(p, f"{i}.norm2", x), False)
        return m.cross_entropy(m.linear(p, "fc", m.norm(p, "norm", x).mean(1)), labels)

    return loss, data


def bert(m, options):
    """Norms last; pretraining: MASKED words, and whether sentences follow each other."""
    layers, width, heads = SIZES[options.model]
    m.blocks(layers, width, BERT_WORDS, POSITIONS[options.model])
    m.parameters.update({"segments": m.random(2, width), "decoder.bias": m.jnp.zeros(BERT_WORDS)})
    m.norms("transform.norm", width)
    for name, outputs in (("pooler", width), ("transform", width), ("following", 2)):
        m.weights(name, width, outputs)
    rows = m.jnp.arange(options.batch)[:, None] * options.tokens + m.jnp.arange(MASKED) * options.tokens // MASKED
    data = (m.integers(BERT_WORDS, options.batch, options.tokens), m.integers(2, options.batch),
            m.integers(BERT_WORDS, rows.size))

    def loss(p, tokens, following, targets):
        segments = (m.jnp.arange(options.tokens) >= options.tokens // 2).astype(int)
        x = p["words"][tokens] + p["positions"][:options.tokens] + p["segments"][segments]
        x = m.norm(p, "norm", x, 1e-12)
        for i in range(layers):
            x = m.norm(p, f"{i}.norm1", x + m.attention(p, i, x, heads, False), 1e-12)
            x = m.norm(p, f"{i}.norm2", x + m.mlp(p, i, x, False), 1e-12)
        pooled = m.jnp.tanh(m.linear(p, "pooler", x[:, 0]))
        y = m.jax.nn.gelu(m.linear(p, "transform", x.reshape(-1, width)[rows.flatten()]), approximate=False)
        words = m.dot(m.norm(p, "transform.norm", y, 1e-12), p["words"].T) + p["decoder.bias"]
        return m.cross_entropy(m.linear(p, "following", pooled), following) + m.cross_entropy(words, targets)

    return loss, data


def cnn(m, options):
    """Two convolutions with ReLU and pooling, two linear layers."""
    size = options.image_size
    for name, *shape in (("conv1", 3, 3, options.channels, 32), ("conv2", 3, 3, 32, 64), ("fc1", 64 * (size // 4) ** 2, 128),
                         ("fc2", 128, 10)):
        m.weights(name, *shape)
    lax = m.jax.lax

    def convolve(p, name, x):
        y = lax.conv_general_dilated(x.astype(m.type), p[name].astype(m.type), (1, 1), "SAME",
                                     dimension_numbers=("NHWC", "HWIO", "NHWC")) + p[name + ".bias"]
        return lax.reduce_window(m.jax.nn.relu(y), -m.jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def loss(p, images, labels):
        x = convolve(p, "conv2", convolve(p, "conv1", images)).reshape(images.shape[0], -1)
        return m.cross_entropy(m.linear(p, "fc2", m.jax.nn.relu(m.linear(p, "fc1", x))), labels)

    return loss, (50 * m.random(options.batch, size, size, options.channels), m.integers(10, options.batch))


MODELS = {"gpt2": gpt, "transformer": transformer, "bert-base": bert, "cnn": cnn}


class Trainer:
    def __init__(self, options):
        self.maker = Maker(options.bf16)
        loss, self.data = MODELS[options.model](self.maker, options)
        lr, decay = (1e-4, 0.01) if options.optimizer == "adamw" else (1e-3, 0.0)
        self.train = self.maker.jax.jit(self.adam(loss, lr, decay), donate_argnums=0)
        zeros = lambda: {name: self.maker.jnp.zeros_like(value) for name, value in self.maker.parameters.items()}
        self.state = (self.maker.parameters, zeros(), zeros(), self.maker.jnp.zeros(()))

    def adam(self, loss, lr, decay, beta1=0.9, beta2=0.999, epsilon=1e-8):
        """A step of Adam (with a decay: AdamW): new parameters, both means, and the step's number."""
        jax, jnp = self.maker.jax, self.maker.jnp

        def step(state, *data):
            p, mean, square, number = state
            gradient, number = jax.grad(loss)(p, *data), number + 1
            mean = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, mean, gradient)
            square = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g * g, square, gradient)
            rate, root = lr / (1 - beta1 ** number), jnp.sqrt(1 - beta2 ** number)
            p = jax.tree.map(lambda w, m, v: w * (1 - lr * decay) - rate * m / (jnp.sqrt(v) / root + epsilon), p, mean, square)
            return p, mean, square, number

        return step

    def parameters(self):
        return sum(value.size for value in self.state[0].values())

    def step(self):
        self.state = self.maker.jax.block_until_ready(self.train(self.state, *self.data))

    def run(self, warmup, steps):
        for _ in range(warmup):
            self.step()
        seconds = []
        for _ in range(steps):
            begin = time.perf_counter()
            self.step()
            seconds.append(time.perf_counter() - begin)
        return seconds


def serve(options):
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints
    if options.threads == 1:
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
    trainer = Trainer(options)
    print(json.dumps({"ready": True, "parameters": trainer.parameters()}), file=answers)
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps({"seconds": trainer.run(order["warmup"], order["steps"])}), file=answers)


def probe():
    import jax

    jax.devices("cpu")
    print(json.dumps({"jax": jax.__version__}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--probe", action="store_true", help="print the version of JAX")
    parser.add_argument("--model", choices=MODELS, default="gpt2")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--channels", type=int, default=1, help="of an image")
    parser.add_argument("--image-size", type=int, default=28, help="height and width of an image")
    parser.add_argument("--bf16", action="store_true", help="multiply in bfloat16")
    parser.add_argument("--optimizer", default="adam", choices=["adam", "adamw"])
    parser.add_argument("--tokens", type=int, default=64, help="length of sentences")
    options = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    if options.probe:
        probe()
    else:
        serve(options)


if __name__ == "__main__":
    main()
