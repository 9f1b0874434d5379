"""PyTorch's side of bench/images: makes folders of images, and reads them with ImageFolder and a DataLoader.

    images_torch.py --make KIND COUNT IDX|- OUT     OUT/png, OUT/jpeg (train/<class>/N.png, test/...) and OUT/idx, the same pixels
    images_torch.py --probe                         versions, as JSON
    images_torch.py WORKERS                         then for every folder named on a line of stdin, seconds and samples of a pass

KIND is SIDE x CHANNELS: 28x1 (from the IDX files of Fashion-MNIST, or generated), 32x3, 224x3.
"""
import json
import os
import random
import struct
import sys
import time

CLASSES = 10
TEST_PART = 10  # one in ten more, for tests


def generated(side, channels, count):
    """Smooth coloured noise with a bright square, which compresses as photographs do."""
    from PIL import Image
    draw = random.Random(7)
    for i in range(count):
        small = Image.frombytes("L" if channels == 1 else "RGB", (8, 8), draw.randbytes(64 * channels))
        image = small.resize((side, side), Image.Resampling.BICUBIC)
        at = side * (i % CLASSES) // CLASSES
        image.paste(255 if channels == 1 else (255, 255, 255), (at, at, at + side // 8 + 1, at + side // 8 + 1))
        yield i % CLASSES, image


def from_idx(directory, prefix, count):
    from PIL import Image
    with open(os.path.join(directory, prefix + "-images-idx3-ubyte"), "rb") as f:
        _, have, height, width = struct.unpack(">4I", f.read(16))
        pixels = f.read()
    with open(os.path.join(directory, prefix + "-labels-idx1-ubyte"), "rb") as f:
        labels = f.read()[8:]
    for i in range(min(count, have)):
        yield labels[i], Image.frombytes("L", (width, height), pixels[i * height * width:(i + 1) * height * width])


def write_idx(out, prefix, samples, side, channels):
    """Sorted by class, as folders are read."""
    samples = sorted(samples, key=lambda sample: sample[0])
    rank = 3 if channels == 1 else 4
    with open(os.path.join(out, f"{prefix}-images-idx{rank}-ubyte"), "wb") as f:
        f.write(struct.pack(">I", 0x800 + rank) + struct.pack(f">{rank}I", len(samples), *([channels] if rank == 4 else []), side, side))
        for _, image in samples:
            f.write(b"".join(band.tobytes() for band in image.split()))
    with open(os.path.join(out, prefix + "-labels-idx1-ubyte"), "wb") as f:
        f.write(struct.pack(">II", 0x801, len(samples)) + bytes(label for label, _ in samples))


def make(kind, count, source, out):
    side, channels = map(int, kind.split("x"))
    os.makedirs(os.path.join(out, "idx"))
    for prefix, split, number in (("train", "train", count), ("t10k", "test", max(count // TEST_PART, CLASSES))):
        samples = list(generated(side, channels, number) if source == "-" else from_idx(source, prefix, number))
        for form, ending in (("png", "png"), ("jpeg", "jpg")):
            for i, (label, image) in enumerate(samples):
                folder = os.path.join(out, form, split, f"class {label}")
                os.makedirs(folder, exist_ok=True)
                image.save(os.path.join(folder, f"{i:06d}.{ending}"), **({"quality": 90} if form == "jpeg" else {}))
        write_idx(os.path.join(out, "idx"), prefix, samples, side, channels)


def loader(folder, workers):
    """What a script of torchvision has: an ImageFolder, tensors, normalised, in batches, workers that stay."""
    import torch
    from torchvision import datasets, transforms
    torch.set_num_threads(1)
    first = datasets.ImageFolder(folder).imgs[0][0]
    from PIL import Image
    with Image.open(first) as image:
        grey = image.mode == "L"
    steps = [transforms.Grayscale()] if grey else []  # ImageFolder makes every image RGB
    steps += [transforms.ToTensor(), transforms.Normalize([0.5] if grey else [0.5] * 3, [0.25] if grey else [0.25] * 3)]
    data = datasets.ImageFolder(folder, transforms.Compose(steps))
    return torch.utils.data.DataLoader(data, batch_size=128, shuffle=True, num_workers=workers, persistent_workers=workers > 0)


def one_pass(batches):
    begin, count = time.perf_counter(), 0
    for images, _ in batches:
        count += len(images)
    return time.perf_counter() - begin, count


def serve(workers):
    loaders = {}
    for line in sys.stdin:
        folder = line.rstrip("\n")
        if folder not in loaders:
            loaders[folder] = loader(folder, workers)
            one_pass(loaders[folder])  # starts the workers, and fills the page cache
        seconds, count = one_pass(loaders[folder])
        print(json.dumps({"seconds": seconds, "samples": count}), flush=True)


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "--make":
        make(arguments[1], int(arguments[2]), arguments[3], arguments[4])
    elif arguments[0] == "--probe":
        import PIL
        import torch
        import torchvision
        print(json.dumps({"torch": torch.__version__, "torchvision": torchvision.__version__, "pillow": PIL.__version__}))
    else:
        serve(int(arguments[0]))


if __name__ == "__main__":
    main()
