"""Vectors of secrets that can be recognised in the bytes of a file, whatever text the secret stands in."""

from __future__ import annotations

import math
import re
import struct
from random import Random

DIMENSIONS = 64
#: Length of the runs that are searched for: deleted bytes may be overwritten in part.
RUN = 16
LARGEST = 127
SECRET = re.compile(r"[0-9a-f]{24}")


def vector(text: str) -> list[float]:
    """Return DIMENSIONS whole numbers, one of them 127, determined by the secret in *text*, or else by *text*."""
    secret = SECRET.search(text)
    random = Random(secret[0] if secret else text)
    numbers = [float(random.randint(-LARGEST, LARGEST)) for _ in range(DIMENSIONS)]
    numbers[random.randrange(DIMENSIONS)] = float(LARGEST)
    return numbers


def traces(text: str) -> list[bytes]:
    """Return the byte runs by which the vector of *text*, as it is or of length 1, is recognised in a file.

    The formats are floating point numbers of 2, 4 and 8 bytes, and one byte each, of which the largest is 127.
    """
    numbers = vector(text)
    length = math.sqrt(math.fsum(number * number for number in numbers))
    encodings = [("b", 1, [round(number) for number in numbers])]
    for kind, size in (("e", 2), ("f", 4), ("d", 8)):
        encodings += [(kind, size, numbers), (kind, size, [number / length for number in numbers])]
    return [
        struct.pack(f"<{DIMENSIONS}{kind}", *each)[start * size : (start + RUN) * size]
        for kind, size, each in encodings
        for start in range(0, DIMENSIONS, RUN)
    ]
