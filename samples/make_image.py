#!/usr/bin/env python3
"""Paint image.png: a 32x32 RGB evening scene for attention over pixels.

    python3 make_image.py [image.png]

Large flat areas and gradients (sky, hill, lake) make neighbours agree: local
structure. The sun and its reflection, and two houses of the same colours far
apart, make distant pixels agree: global structure. Standard library only; a
PNG is three chunks around zlib data.
"""
import struct
import sys
import zlib

SIZE = 32
SUN, WALL, ROOF, WINDOW, TRUNK, CROWN = (
    (255, 214, 110), (226, 206, 178), (176, 62, 48), (255, 240, 150),
    (92, 62, 44), (40, 96, 66))


def blend(a, b, t):
    return tuple(round(x + (y - x) * t) for x, y in zip(a, b))


def sky(y):
    return blend((54, 84, 158), (246, 164, 120), y / 19)


def hill_top(x):
    """The ridge: a long hill on the left, a low one on the right."""
    return 14 + (x - 7) ** 2 // 36 if x < 20 else 18 - (x - 20) // 6


def inside_sun(x, y):
    return (x - 21) ** 2 + (y - 7) ** 2 <= 11


def background(x, y):
    if y >= 25:                               # the lake mirrors the upper sky
        mirrored = SUN if inside_sun(x, 7 + 2 * (y - 28)) else sky(68 - 2 * y)
        return blend(mirrored, (30, 60, 110), 0.35 if y % 2 else 0.25)
    if y >= hill_top(x):
        return blend((86, 142, 74), (58, 104, 62), (y - 14) / 11)
    return SUN if inside_sun(x, y) else sky(y)


def rectangle(scene, x0, y0, width, height, colour):
    for y in range(y0, y0 + height):
        scene[y][x0:x0 + width] = [colour] * width


def house(scene, x, y):
    for row in range(3):                      # a roof widening downwards
        rectangle(scene, x + 2 - row, y + row, 2 + 2 * row, 1, ROOF)
    rectangle(scene, x, y + 3, 6, 4, WALL)
    rectangle(scene, x + 1, y + 4, 1, 2, WINDOW)
    rectangle(scene, x + 4, y + 4, 1, 2, WINDOW)


def tree(scene, x, y):
    rectangle(scene, x + 1, y, 1, 5, CROWN)
    rectangle(scene, x, y + 1, 3, 3, CROWN)
    rectangle(scene, x + 1, y + 5, 1, 2, TRUNK)


def paint():
    scene = [[background(x, y) for x in range(SIZE)] for y in range(SIZE)]
    house(scene, 3, 16)
    house(scene, 24, 16)
    tree(scene, 12, 16)
    tree(scene, 17, 17)
    return scene


def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def png(scene):
    """8-bit RGB, no interlace, every row with filter 0."""
    rows = b"".join(b"\0" + bytes(c for pixel in row for c in pixel) for row in scene)
    head = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
            + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "image.png"
    with open(path, "wb") as f:
        f.write(png(paint()))


if __name__ == "__main__":
    main()
