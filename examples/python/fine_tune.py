"""Fine-tune weights of torchvision for another number of classes: only the new head is trained, the rest stays.

python fine_tune.py resnet18.safetensors [STEPS]

The file comes from torchvision: safetensors.torch.save_file(resnet18(weights="DEFAULT").state_dict(), "resnet18.safetensors").
The data here are random colours; put your images (N, 3, 224, 224), normalised as torchvision does it, in their place.
"""

import sys

import numpy as np

import lockstep

CLASSES = 3


def batch(random, count, side):
    """Images whose strongest colour is their class."""
    labels = random.integers(CLASSES, size=count)
    images = random.standard_normal((count, 3, side, side)).astype(np.float32)
    images[np.arange(count), labels] += 1
    return images, labels


def main():
    weights = lockstep.load_file(sys.argv[1])
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    side = 64
    model = lockstep.Model("resnet18", input=(3, side, side), classes=CLASSES)
    head = [name for name in model.parameters() if name.startswith("fc.")]
    model.load_state_dict({name: values for name, values in weights.items() if name not in head}, strict=False)
    frozen = {name: model.parameters()[name] for name in ("conv1.weight", "layer4.1.conv2.weight")}

    random = np.random.default_rng(1)
    trainer = lockstep.Trainer(model, batch=16, lr=1e-2, optimizer="sgd", momentum=0.0)
    for step in range(steps):
        images, labels = batch(random, 16, side)
        report = trainer.derive(images, labels)
        gradients = trainer.gradients()
        for name in gradients:
            if name not in head:
                gradients[name] = np.zeros_like(gradients[name])
        trainer.apply()
        if step % 10 == 0:
            print(f"step {step + 1}: loss {report.loss:.4f}, accuracy {report.accuracy:.2f}")
    for name, before in frozen.items():
        assert np.array_equal(model.parameters()[name], before), name
    model.save("fine_tuned.safetensors")
    print(f"fine_tuned.safetensors: {model}, parameters {model.fingerprint}")


if __name__ == "__main__":
    main()
