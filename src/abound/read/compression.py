"""Files as streams of bytes: plain, gzip or zstd, told apart by their first bytes, cut into blocks at line ends."""

from __future__ import annotations

import gzip
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.read.errors import FormatError

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")

BLOCK_BYTES = 2**22
"""Bytes parsed in one go: some tens of milliseconds, so that an interrupt is heard."""

_READ_BYTES = 2**16

_PACKED_BYTES = 2**12
"""Compressed bytes unpacked in one go: few, because they may hold a thousand times as many."""


class Block(NamedTuple):
    """Whole lines of a file; ``data`` ends with a line end, ``first_line`` counts from 1."""

    data: bytes
    first_line: int
    n_lines: int

    @property
    def last_line(self) -> int:
        """Number of the last line."""
        return self.first_line + self.n_lines - 1

    def line_at(self, position: int) -> int:
        """Return the number of the line that holds a byte of the block.

        Parameters
        ----------
        position : int
            Place in ``data``.

        Returns
        -------
        int
            Line number in the file.
        """
        return self.first_line + self.data.count(b"\n", 0, position)


class Source:
    r"""A file, or standard input for ``-``, opened once and read from front to back.

    Parameters
    ----------
    path : str or path
        The file; gzip and zstd are recognised by their first bytes, whatever the name.

    Attributes
    ----------
    name : str
        The file's name for messages.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "lines.txt"
    ...     _ = file.write_text("one\ntwo")
    ...     with Source(file) as source:
    ...         list(source.blocks(4))
    [Block(data=b'one\n', first_line=1, n_lines=1), Block(data=b'two\n', first_line=2, n_lines=1)]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        is_stdin = os.fspath(path) == "-"
        self.name = "standard input" if is_stdin else os.fspath(path)
        self.path = None if is_stdin else Path(path)
        self._file: IO[bytes] = sys.stdin.buffer if is_stdin else open(path, "rb")
        try:
            self._first = self._file.read(_READ_BYTES)
            self._pieces = self._decompressed()
        except BaseException:
            self.close()
            raise
        self._line = 1
        self._head = b""

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self.path is not None:
            self._file.close()

    @property
    def is_compressed(self) -> bool:
        """Whether the file is gzip or zstd."""
        return self._first.startswith((GZIP, ZSTD))

    def head(self, size: int = _READ_BYTES) -> bytes:
        """Look at the first bytes without using them up; call it before `blocks`.

        Parameters
        ----------
        size : int
            Bytes wanted.

        Returns
        -------
        bytes
            The beginning of the content, shorter only if the file is.
        """
        while len(self._head) < size and (piece := next(self._pieces, b"")):
            self._head += piece
        return self._head[:size]

    def blocks(self, size: int = BLOCK_BYTES) -> Iterator[Block]:
        """Yield the content in blocks of whole lines; memory does not grow with the file.

        Parameters
        ----------
        size : int
            Bytes of a block at least, the last one apart; it then runs to the end of its line.

        Yields
        ------
        Block
            The lines, in order; the last one is ended if the file does not end it.
        """
        held: list[bytes] = []
        n_held = 0
        pieces = chain([self._head], self._pieces)
        self._head = b""
        for piece in pieces:
            held.append(piece)
            n_held += len(piece)
            if n_held >= size and b"\n" in piece:
                data, begin = b"".join(held), 0
                while len(data) - begin >= size and (end := data.find(b"\n", begin + size - 1) + 1):
                    yield self._block(data[begin:end])
                    begin = end
                held, n_held = [data[begin:]], len(data) - begin
        if n_held:
            data = b"".join(held)
            yield self._block(data if data.endswith(b"\n") else data + b"\n")

    def lines(self, size: int = BLOCK_BYTES) -> Iterator[str]:
        """Yield the lines as strings, each with its end; only a line feed ends a line.

        Parameters
        ----------
        size : int
            Bytes of a block.

        Yields
        ------
        str
            The lines, in order.
        """
        for block in self.blocks(size):
            try:
                text = block.data.decode()
            except UnicodeDecodeError as error:
                shown = block.data[max(0, error.start - 10) : error.start + 10]
                what = f"not valid UTF-8 ({error.reason})"
                raise FormatError(self.name, block.line_at(error.start), what, shown) from None
            for line in text.split("\n")[:-1]:
                yield line + "\n"

    def whole(self) -> npt.NDArray[np.uint8]:
        """Return the whole content as one array of bytes, mapped where the file allows.

        Returns
        -------
        uint8 array
            Read-only; a byte order mark is left out.
        """
        # Looking at the head refuses what is no UTF-8 at all.
        is_plain = bool(self.head(1)) and not self.is_compressed
        if self.path is not None and is_plain and _has_a_size(self.path):
            mapped = np.memmap(self.path, np.uint8, "r").view(np.ndarray)
            return mapped[len(BYTE_ORDER_MARK) if self._first.startswith(BYTE_ORDER_MARK) else 0 :]
        return np.frombuffer(self._head + b"".join(self._pieces), np.uint8)

    def _block(self, data: bytes) -> Block:
        block = Block(data, self._line, data.count(b"\n"))
        self._line += block.n_lines
        return block

    def _decompressed(self) -> Iterator[bytes]:
        """Yield the content in pieces of at least a byte, without a byte order mark."""
        if self._first.startswith(GZIP):
            pieces = self._inflated(lambda: zlib.decompressobj(31), zlib.error, "gzip")
        elif self._first.startswith(ZSTD):
            zstandard = _zstandard(self.name)
            pieces = self._inflated(lambda: zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError, "zstd")
        else:
            pieces = self._raw()
        return self._without_mark(pieces)

    def _without_mark(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        first = b""
        while len(first) < len(BYTE_ORDER_MARK) and (piece := next(pieces, b"")):
            first += piece
        if first.startswith(UTF_16_MARKS):
            raise FormatError(self.name, 1, "the file is UTF-16; write it as UTF-8")
        first = first.removeprefix(BYTE_ORDER_MARK)
        if first:
            yield first
        yield from pieces

    def _raw(self, size: int = _READ_BYTES) -> Iterator[bytes]:
        for begin in range(0, len(self._first), size):
            yield self._first[begin : begin + size]
        while piece := self._file.read(size):
            yield piece

    def _inflated(self, new: Callable[[], Any], failure: type[Exception], kind: str) -> Iterator[bytes]:
        """Decompress one member after another; the decoders of zlib and zstandard are used alike."""
        decoder = new()
        n_lines = 0
        for raw in self._raw(_PACKED_BYTES):
            rest = raw
            while rest:
                if decoder.eof:
                    rest = rest.lstrip(b"\0")
                    if not rest:
                        break
                    decoder = new()
                try:
                    piece = decoder.decompress(rest)
                except failure as error:
                    raise FormatError(self.name, n_lines + 1, f"broken {kind} data ({error})") from None
                rest = decoder.unused_data if decoder.eof else b""
                if piece:
                    yield piece
                    n_lines += piece.count(b"\n")
        if not decoder.eof:
            raise FormatError(self.name, n_lines + 1, f"the {kind} file is truncated: it ends within this line")


def _has_a_size(path: Path) -> bool:
    """Tell a file from a pipe or a device, which cannot be mapped."""
    status = os.stat(path)
    return stat.S_ISREG(status.st_mode) and status.st_size > 0


def _zstandard(name: str) -> Any:
    try:
        import zstandard
    except ImportError:
        raise ImportError(f"{name} is compressed by zstd: pip install 'abound[zstd]'") from None
    return zstandard


@contextmanager
def written_beside(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file beside its place and move it there at the end; after an error nothing is left.

    Parameters
    ----------
    path : str or path
        The file to make; ``.gz`` and ``.zst`` are compressed.

    Yields
    ------
    binary file
        To be written.
    """
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}.part")
    try:
        with open(beside, "xb") as file:
            if target.suffix == ".gz":
                with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                    yield packed  # type: ignore[misc]
            elif target.suffix == ".zst":
                with _zstandard(str(target)).ZstdCompressor().stream_writer(file, closefd=False) as packed:
                    yield packed
            else:
                yield file
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
