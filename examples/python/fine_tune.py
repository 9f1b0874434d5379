"""Fine-tune weights of torchvision for another number of classes: the head is new and trained, the other layers stay.

python fine_tune.py resnet18.safetensors [SAMPLES]

The file comes from torchvision: safetensors.torch.save_file(resnet18(weights="DEFAULT").state_dict(), "resnet18.safetensors").
The data here are random colours; put your images (N, 3, 224, 224), normalised as torchvision does it, in their place.
"""

import sys

import numpy as np

import lockstep

CLASSES, SIDE = 3, 64


def colours(count, seed):
    """Images whose strongest colour is their class."""
    random = np.random.default_rng(seed)
    labels = random.integers(CLASSES, size=count)
    images = random.standard_normal((count, 3, SIDE, SIDE)).astype(np.float32)
    images[np.arange(count), labels] += 1
    return images, labels


def main():
    weights = sys.argv[1]
    samples = int(sys.argv[2]) if len(sys.argv) > 2 else 256
    result = lockstep.train(
        "resnet18", colours(samples, seed=1), test_data=colours(64, seed=2), init=weights, freeze="conv1.*,bn1.*,layer*",
        batch=16, lr=1e-2, epochs=2, run="runs/colours", on_log=lambda kind, line: print(line))  # fmt: skip

    # What was frozen has the bits of the file; the head is new.
    before, after = lockstep.load_file(weights), lockstep.Model.load("runs/colours", input=(3, SIDE, SIDE)).state_dict()
    assert np.array_equal(before["layer4.1.conv2.weight"], after["layer4.1.conv2.weight"])
    assert before["fc.weight"].shape == (1000, 512) and after["fc.weight"].shape == (CLASSES, 512)
    print(f"test accuracy {result.test_accuracy:.4f}, parameters {result.fingerprint}")


if __name__ == "__main__":
    main()
