#!/usr/bin/env python3
"""image_folder.py IDX-DIR OUT: write a dataset of IDX files as PNG files, OUT/train/<digit>/<number>.png and OUT/test/..."""
import pathlib
import struct
import sys
import zlib


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(pixels, height, width):
    rows = b"".join(b"\0" + pixels[y * width:(y + 1) * width] for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def main():
    source, out = map(pathlib.Path, sys.argv[1:])
    for prefix, split in (("train", "train"), ("t10k", "test")):
        images = (source / (prefix + "-images-idx3-ubyte")).read_bytes()
        labels = (source / (prefix + "-labels-idx1-ubyte")).read_bytes()[8:]
        count, height, width = struct.unpack(">III", images[4:16])
        for i in range(count):
            folder = out / split / ("digit %d" % labels[i])
            folder.mkdir(parents=True, exist_ok=True)
            begin = 16 + i * height * width
            (folder / ("%05d.png" % i)).write_bytes(png(images[begin:begin + height * width], height, width))


if __name__ == "__main__":
    main()
