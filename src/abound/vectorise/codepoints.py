r"""What scikit-learn's word analyzer does to each character, as tables by code point.

``\w`` and ``str.lower`` look at one character at a time, with two exceptions: U+0130 becomes two characters, and
U+03A3 becomes another letter at the end of a word. Texts that hold one of them are lower-cased by Python first.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

EXCEPTIONS = "\u0130\u03a3"
"""The characters that a table by code point cannot lower-case."""

MULTIBYTE = 255
"""The entry of `Fold.ascii` for bytes that belong to a longer sequence."""


class Fold(NamedTuple):
    """The two tables of the word scanner.

    Parameters
    ----------
    ascii : uint8 array of shape (256,)
        By byte: the lower-case byte of an ASCII word character, 0 for another ASCII character, 255 from 128 on.
    characters : uint32 array
        By code point: the UTF-8 bytes of the lower-case character, first byte highest; 0 if it is no word character.
        Code points beyond the end are no word characters.
    """

    ascii: npt.NDArray[np.uint8]
    characters: npt.NDArray[np.uint32]


@lru_cache(maxsize=2)
def fold_tables(lowercase: bool) -> Fold:
    """Make the tables, once a process: about 50 ms.

    Parameters
    ----------
    lowercase : bool
        False keeps characters as they are.

    Returns
    -------
    Fold
        Read-only tables.

    Examples
    --------
    >>> tables = fold_tables(True)
    >>> chr(tables.ascii[ord("A")]), hex(tables.characters[ord("Ä")])
    ('a', '0xc3a4')
    """
    every = np.arange(sys.maxunicode + 1, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    for exception in EXCEPTIONS:
        every = every.replace(exception, exception.lower()[0])
    folded = every.lower() if lowercase else every
    points = np.frombuffer(folded.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)
    is_word = np.zeros(len(points), dtype=bool)
    for run in re.finditer(r"\w+", folded):
        is_word[run.start() : run.end()] = True
    if not lowercase:
        # The exceptions are word characters like the letters that stood in for them, and stay as they are.
        points[[ord(exception) for exception in EXCEPTIONS]] = [ord(exception) for exception in EXCEPTIONS]
    used = int(np.flatnonzero(is_word)[-1]) + 1
    characters = np.where(is_word[:used], _utf8(points[:used]), 0).astype(np.uint32)
    ascii_bytes = np.full(256, MULTIBYTE, dtype=np.uint8)
    ascii_bytes[:128] = characters[:128]
    characters.flags.writeable = ascii_bytes.flags.writeable = False
    return Fold(ascii_bytes, characters)


def _utf8(points: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Encode each code point, its first byte highest."""
    low, middle, high = points & 0x3F, points >> 6 & 0x3F, points >> 12 & 0x3F
    two = 0xC080 | points >> 6 << 8 | low
    three = 0xE08080 | points >> 12 << 16 | middle << 8 | low
    four = 0xF0808080 | points >> 18 << 24 | high << 16 | middle << 8 | low
    sizes = [points < 0x80, points < 0x800, points < 0x10000]
    encoded: npt.NDArray[np.int64] = np.select(sizes, [points, two, three], four)
    return encoded
