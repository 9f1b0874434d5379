"""torch_transforms.py DUMP: compare changes of images with torchvision.transforms.functional, on the same parameters.

DUMP is the program transform_dump. Prints TAP; the exit status is 1 where something differs.
"""
import math
import subprocess
import sys

import numpy as np
import torch
import torchvision.transforms.functional as F
from torchvision.transforms import InterpolationMode

BILINEAR = InterpolationMode.BILINEAR
SIZES = [(3, 32, 32), (1, 28, 28), (3, 21, 40), (3, 224, 224)]
random = np.random.default_rng(7)


def ours(image, name, *numbers):
    c, h, w = image.shape
    command = [sys.argv[1], str(c), str(h), str(w), name] + [repr(float(n)) for n in numbers]
    done = subprocess.run(command, input=image.astype(np.float32).tobytes(), stdout=subprocess.PIPE, check=True)
    return np.frombuffer(done.stdout, dtype=np.float32).reshape(c, h, w)


def sheared(x, x_slope, y_slope, center):
    """torchvision shears by angles, x first and then y."""
    degrees = [math.degrees(math.atan(s)) for s in (x_slope, y_slope)]
    return F.affine(x, angle=0.0, translate=[0, 0], scale=1.0, shear=degrees, interpolation=BILINEAR, center=center)


def cases(bytes_):
    """(name, numbers, torchvision's result, tolerance) on floats, or where it has them on bytes only."""
    x = torch.from_numpy(bytes_.astype(np.float32) / 255)
    b = torch.from_numpy(bytes_)
    _, h, w = bytes_.shape
    as_float = lambda t: t.to(torch.float32) / 255
    for angle in (-170, -31.5, 0.5, 17, 90):  # sines are good to 1e-5, which moves the corner of a large image by 1e-3 pixels
        yield "rotate", (angle,), F.rotate(x, angle, interpolation=BILINEAR), 2e-3
    for slope in (-0.3, 0.09, 0.27):
        yield "shear", (slope, 0, 0), sheared(x, slope, 0, [0, 0]), 1e-3
        yield "shear", (0, slope, 0), sheared(x, 0, slope, [0, 0]), 1e-3
        yield "shear", (slope, 0, 1), sheared(x, slope, 0, None), 1e-3
    for dy, dx in ((3, -5), (0, 7), (-11, 2)):
        moved = F.affine(x, angle=0.0, translate=[-dx, -dy], scale=1.0, shear=[0.0, 0.0], interpolation=InterpolationMode.NEAREST)
        yield "move", (dy, dx), moved, 1e-6
    for top, left, rows, columns in ((0, 0, h, w), (3, 5, h // 2, w // 3), (1, 0, 7, w - 1), (h - 1, w - 1, 1, 1)):
        try:
            crop = F.resized_crop(x, top, left, rows, columns, [h, w], interpolation=BILINEAR, antialias=True)
        except TypeError:  # older ones have no antialias, which changes nothing where nothing shrinks
            crop = F.resized_crop(x, top, left, rows, columns, [h, w], interpolation=BILINEAR)
        yield "enlarge", (top, left, rows, columns), crop, 1e-4
    for factor in (0, 0.3, 1, 1.7):
        yield "brightness", (factor,), F.adjust_brightness(x, factor), 1e-5
        yield "contrast", (factor,), F.adjust_contrast(x, factor), 1e-5
        yield "saturation", (factor,), F.adjust_saturation(x, factor), 1e-5
        yield "sharpness", (factor,), F.adjust_sharpness(x, factor), 1e-5
    for turns in (-0.5, -0.2, 0.07, 0.5):
        yield "hue", (turns,), F.adjust_hue(x, turns), 1e-5
    for bits in range(1, 9):
        yield "posterize", (bits,), as_float(F.posterize(b, bits)), 1e-6
    for threshold in (0, 100, 128, 229.5, 255):
        yield "solarize", (threshold,), as_float(F.solarize(b, threshold)), 1e-6
    yield "autocontrast", (), F.autocontrast(x), 1e-5
    yield "equalize", (), as_float(F.equalize(b)), 1e-6
    yield "invert", (), F.invert(x), 1e-6


def main():
    count, failed, worst = 0, 0, {}
    for size in SIZES:
        bytes_ = (random.random(size) ** 2 * 240).astype(np.uint8)
        bytes_[:, ::3, ::5] = bytes_[:1, ::3, ::5]  # some grey pixels
        for name, numbers, wanted, tolerance in cases(bytes_):
            got = ours(bytes_.astype(np.float32) / 255, name, *numbers)
            off = float(np.abs(got - wanted.numpy()).max())
            worst[name] = max(worst.get(name, 0), off)
            count += 1
            if not off <= tolerance:
                failed += 1
                print(f"# {name} {numbers} of {size}: off by {off:g}, allowed {tolerance:g}")
    for name, off in worst.items():
        print(f"# {name}: at most {off:.2g} off")
    print(f"{'not ok' if failed else 'ok'} 1 - {count} changes of images are torchvision's")
    print("1..1")
    return failed > 0


sys.exit(main())
