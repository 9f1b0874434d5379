#!/usr/bin/env python3
"""image_formats.py IDX-DIR OUT [SAMPLES]: write a dataset of IDX files (300 of each part, or SAMPLES), sorted by label, in every form that is read,
with nothing but the standard library:

OUT/idx (IDX), OUT/folder/train/<label>/<number>.png, OUT/shards/train-00000N.tar, OUT/digits.npz, OUT/packed.npz (compressed), OUT/arrays/x_train.npy
and OUT/floats.npz (pixels from 0 to 1 as float32, channels last)."""
import io
import pathlib
import struct
import sys
import tarfile
import zipfile

from image_folder import png

SHARDS = 3
SAMPLES = 300


def read(source, prefix, most):
    """[(label, pixels)] sorted by label, and the sides."""
    images = (source / (prefix + "-images-idx3-ubyte")).read_bytes()
    labels = (source / (prefix + "-labels-idx1-ubyte")).read_bytes()[8:]
    count, height, width = struct.unpack(">III", images[4:16])
    size = height * width
    samples = [(labels[i], images[16 + i * size:16 + (i + 1) * size]) for i in range(min(count, most))]
    return sorted(samples, key=lambda sample: sample[0]), height, width


def npy(descr, shape, data):
    text = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, repr(tuple(shape)))
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def write_shards(folder, split, samples, height, width):
    for shard in range(SHARDS):
        part = samples[len(samples) * shard // SHARDS:len(samples) * (shard + 1) // SHARDS]
        with tarfile.open(folder / ("%s-%06d.tar" % (split, shard)), "w") as tar:
            for i, (label, pixels) in enumerate(part):
                for ending, data in (("cls", b"%d\n" % label), ("png", png(pixels, height, width))):
                    member = tarfile.TarInfo("%02d/%06d.%s" % (shard, i, ending))
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))


def write_archives(out, arrays):
    for name, method in (("digits.npz", zipfile.ZIP_STORED), ("packed.npz", zipfile.ZIP_DEFLATED)):
        with zipfile.ZipFile(out / name, "w", method) as archive:
            for key, data in arrays.items():
                archive.writestr(key + ".npy", data)


def main():
    source, out = map(pathlib.Path, sys.argv[1:3])
    most = int(sys.argv[3]) if len(sys.argv) > 3 else SAMPLES
    for folder in ("idx", "shards", "arrays"):
        (out / folder).mkdir(parents=True)
    arrays, floats = {}, {}
    for prefix, split in (("train", "train"), ("t10k", "test")):
        samples, height, width = read(source, prefix, most)
        count, pixels = len(samples), b"".join(image for _, image in samples)
        labels = bytes(label for label, _ in samples)
        (out / "idx" / (prefix + "-images-idx3-ubyte")).write_bytes(struct.pack(">IIII", 0x803, count, height, width) + pixels)
        (out / "idx" / (prefix + "-labels-idx1-ubyte")).write_bytes(struct.pack(">II", 0x801, count) + labels)
        for i, (label, image) in enumerate(samples):
            folder = out / "folder" / split / str(label)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / ("%05d.png" % i)).write_bytes(png(image, height, width))
        write_shards(out / "shards", split, samples, height, width)
        arrays["x_" + split] = npy("|u1", (count, height, width), pixels)
        arrays["y_" + split] = npy("<i8", (count,), b"".join(struct.pack("<q", label) for label in labels))
        to_float = [struct.pack("<f", struct.unpack("f", struct.pack("f", value / 255))[0]) for value in range(256)]
        floats["x_" + split] = npy("<f4", (count, height, width, 1), b"".join(to_float[value] for value in pixels))
        floats["y_" + split] = npy("<i4", (count, 1), b"".join(struct.pack("<i", label) for label in labels))
    write_archives(out, arrays)
    for key, data in arrays.items():
        (out / "arrays" / (key + ".npy")).write_bytes(data)
    with zipfile.ZipFile(out / "floats.npz", "w") as archive:
        for key, data in floats.items():
            archive.writestr(key + ".npy", data)


if __name__ == "__main__":
    main()
