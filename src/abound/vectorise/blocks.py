"""Texts in blocks of a size that stays in a core's cache, as bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.read.textbytes import TextBytes
from abound.vectorise.reading import Reading

BLOCK_BYTES, SMALL_BLOCK_BYTES = 1 << 18, 1 << 15
"""Bytes of text that are dealt with at a time."""

SAMPLE_TEXTS, MOST_TEXTS = 16, 1 << 15
END = b"\xff"
"""A byte that no text holds, to join texts with."""

SMALL_BYTES = 1 << 18
"""Texts of fewer bytes in all are read by one thread: handing them to another takes about as long."""


class Block(NamedTuple):
    """Some texts.

    Parameters
    ----------
    texts : TextBytes
        The texts, or their tokens one by one.
    token_ptr : int64 array or None
        The tokens of text ``i`` are ``texts[token_ptr[i]:token_ptr[i + 1]]``; None if the texts are still whole.
    """

    texts: TextBytes
    token_ptr: npt.NDArray[np.int64] | None


def is_small(texts: Any) -> bool:
    """Tell whether texts are so few or short that a second thread would cost more than it saves.

    Parameters
    ----------
    texts : iterable of str, or TextBytes
        The texts; of a sequence some are looked at.

    Returns
    -------
    bool
        False where the size cannot be told.
    """
    if isinstance(texts, TextBytes):
        return texts.n_bytes < SMALL_BYTES
    return isinstance(texts, Sequence) and _guess_bytes(texts) < SMALL_BYTES


def make_blocks(texts: Any, reading: Reading, n_workers: int = 1) -> Iterator[Block]:
    """Cut texts into blocks.

    Parameters
    ----------
    texts : iterable of str, or TextBytes
        The texts.
    reading : Reading
        Says what Python has to do with a text before kernels see it.
    n_workers : int
        So many share the work: of few texts, blocks are smaller.

    Yields
    ------
    Block
        Texts, in order.
    """
    if isinstance(texts, TextBytes) and reading.analyze is None and reading.preprocess is None:
        yield from (Block(part, None) for part in _cut(texts, _block_bytes(texts.n_bytes, n_workers)))
        return
    following: Iterator[Any] = iter(texts)
    if isinstance(texts, Sequence):
        n_bytes, n_texts = _guess_bytes(texts), len(texts)
        total: int | None = n_bytes
    else:
        sample = list(islice(following, SAMPLE_TEXTS))
        n_bytes, n_texts = _count_bytes(sample), len(sample)
        total = n_bytes * len(texts) // max(n_texts, 1) if isinstance(texts, Sized) else None
        following = chain(sample, following)
    block_bytes, n_before = _block_bytes(total, n_workers), 0
    while strings := list(islice(following, _next_texts(block_bytes, n_texts, n_bytes))):
        if reading.analyze is not None:
            block = _analyzed(strings, reading, n_before)
        elif reading.preprocess is not None:
            _check_strings(strings, n_before)
            block = Block(encode(list(map(reading.preprocess, strings))), None)
        else:
            block = Block(_encoded(strings, n_before), None)
        yield block
        n_before += len(strings)
        n_bytes, n_texts = len(block.texts.buffer), len(strings)


def _guess_bytes(texts: Sequence[Any]) -> int:
    """Return about how many bytes texts have, by a sample from all over them."""
    step = max(1, len(texts) // SAMPLE_TEXTS)
    return step * _count_bytes(texts[::step])


def _count_bytes(texts: Sequence[Any]) -> int:
    return sum(len(text) for text in texts if isinstance(text, str))


def _block_bytes(total: int | None, n_workers: int) -> int:
    """Return the size of blocks: some for each worker, if the texts are so many."""
    if total is None or n_workers == 1:
        return BLOCK_BYTES
    return min(BLOCK_BYTES, max(SMALL_BLOCK_BYTES, total // (4 * n_workers)))


def _next_texts(block_bytes: int, n_texts: int, n_bytes: int) -> int:
    """Return how many texts fill a block if so many before had so many bytes; longer ones may follow short ones."""
    return max(1, min(block_bytes * n_texts // (n_bytes + 1), 64 * n_texts, MOST_TEXTS))


def encode(strings: list[str]) -> TextBytes:
    """Encode strings; lone surrogates are let through, as separators of words.

    Parameters
    ----------
    strings : list of str
        The strings.

    Returns
    -------
    TextBytes
        Their bytes, joined by a byte that none of them holds.
    """
    try:
        joined = END.join(map(str.encode, strings))
    except UnicodeEncodeError:
        joined = END.join(string.encode("utf-8", "surrogatepass") for string in strings)
    buffer = np.frombuffer(joined, np.uint8)
    ends = np.append(np.flatnonzero(buffer == END[0]), len(buffer))[len(strings) == 0 :]
    begins = np.zeros(len(ends), np.int64)
    begins[1:] = ends[:-1] + 1
    return TextBytes(buffer, begins, ends)


def decode(texts: TextBytes) -> list[str]:
    """Decode what `encode` encoded, lone surrogates as well.

    Parameters
    ----------
    texts : TextBytes
        Bytes.

    Returns
    -------
    list of str
        Strings.
    """
    view = texts.buffer.data
    bounds = zip(texts.begins.tolist(), texts.ends.tolist(), strict=True)
    return [str(view[begin:end], "utf-8", "surrogatepass") for begin, end in bounds]


def lowered(texts: TextBytes, marks: npt.NDArray[np.uint8]) -> TextBytes:
    """Let Python lower-case the texts that a table by code point cannot.

    Parameters
    ----------
    texts : TextBytes
        The texts.
    marks : uint8 array
        Not zero for those texts.

    Returns
    -------
    TextBytes
        All texts; the tables leave lower case as it is.
    """
    return encode([string.lower() if mark else string for string, mark in zip(decode(texts), marks, strict=True)])


def _cut(texts: TextBytes, block_bytes: int) -> Iterator[TextBytes]:
    bounds = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(texts.ends - texts.begins, out=bounds[1:])
    begin = 0
    while begin < len(texts):
        end = int(np.searchsorted(bounds, bounds[begin] + block_bytes, "right")) - 1
        end = min(max(end, begin + 1), begin + MOST_TEXTS)
        yield TextBytes(texts.buffer, texts.begins[begin:end], texts.ends[begin:end])
        begin = end


def _encoded(strings: list[Any], n_before: int) -> TextBytes:
    try:
        return encode(strings)
    except TypeError:
        _check_strings(strings, n_before)
        raise


def _check_strings(strings: list[Any], n_before: int) -> None:
    for i, string in enumerate(strings, n_before):
        if not isinstance(string, str):
            raise TypeError(f"text {i} is {type(string).__name__}, not str: {string!r}")


def _analyzed(strings: list[Any], reading: Reading, n_before: int) -> Block:
    _check_strings(strings, n_before)
    assert reading.analyze is not None
    tokens = [list(reading.analyze(string)) for string in strings]
    token_ptr = np.zeros(len(tokens) + 1, np.int64)
    np.cumsum([len(found) for found in tokens], out=token_ptr[1:])
    flat = list(chain.from_iterable(tokens))
    try:
        return Block(encode(flat), token_ptr)
    except TypeError:
        bad = next(token for token in flat if not isinstance(token, str))
        raise TypeError(f"the analyzer gave {bad!r}: a token must be a str, not {type(bad).__name__}") from None
