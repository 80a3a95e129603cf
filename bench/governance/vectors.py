"""The vectors of secrets, each of which can be told in the bytes of a file, in whatever text the secret stands."""

from __future__ import annotations

import math
import re
import struct
from random import Random

DIMENSIONS = 64
#: So many numbers in a row are looked for: what is deleted may be written over in part.
RUN = 16
LARGEST = 127
SECRET = re.compile(r"[0-9a-f]{24}")


def vector(text: str) -> list[float]:
    """Return the vector of *text*: that of the secret in it, if there is one; whole numbers, of which one is 127."""
    found = SECRET.search(text)
    chance = Random(found[0] if found else text)
    numbers = [float(chance.randint(-LARGEST, LARGEST)) for _ in range(DIMENSIONS)]
    numbers[chance.randrange(DIMENSIONS)] = float(LARGEST)
    return numbers


def traces(text: str) -> list[bytes]:
    """Return what shows that a file holds the vector of *text*: runs of it, as they are and of length 1.

    They are written as floating point numbers of 2, 4 and 8 bytes, or as a byte each, of which the largest is 127.
    """
    numbers = vector(text)
    length = math.sqrt(math.fsum(number * number for number in numbers))
    written = [("b", 1, [round(number) for number in numbers])]
    for kind, size in (("e", 2), ("f", 4), ("d", 8)):
        written += [(kind, size, numbers), (kind, size, [number / length for number in numbers])]
    return [
        struct.pack(f"<{DIMENSIONS}{kind}", *each)[start * size : (start + RUN) * size]
        for kind, size, each in written
        for start in range(0, DIMENSIONS, RUN)
    ]
