"""Text files with a document a line, split by kernels: TSV, fastText and plain text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.labels import IdArray, IntArray
from abound.read import _line_kernels as kernels
from abound.read.compression import Source
from abound.read.errors import FormatError
from abound.read.numbering import Failure, Numbering, as_objects
from abound.read.textbytes import TextBytes

LABEL_MARK = b"__label__"

SPAN_BYTES = 2**23
"""Bytes of a mapped file split in one call of a kernel."""

MESSAGES = {
    kernels.NO_TAB: "expected label<TAB>text, found no tab",
    kernels.NO_LABEL: "the label is missing (allow_unlabelled=True accepts rows without one)",
    kernels.EMPTY_LABEL: "an empty label",
}


FIRST_OF_GROUPS = 3
"""Columns of TSV before are the labels and the text."""


class LineOptions(NamedTuple):
    """How lines are read: the format and what a row must have."""

    format: str
    is_labelled: bool
    may_lack_label: bool
    separator: str | None
    group_column: int | None


class DocumentPiece(NamedTuple):
    """Some documents: texts, labels as ids of a numbering, and the groups of the rows if they are asked for."""

    texts: TextBytes
    label_indptr: IntArray
    label_ids: IdArray
    groups: npt.NDArray[Any] | None = None


def pieces_of_blocks(source: Source, options: LineOptions, numbering: Numbering, size: int) -> Iterator[DocumentPiece]:
    """Split a file block by block.

    Parameters
    ----------
    source : Source
        The file.
    options : LineOptions
        How to read it.
    numbering : Numbering
        Grows.
    size : int
        Bytes of a block.

    Yields
    ------
    DocumentPiece
        The documents of a block.
    """
    for block in source.blocks(size):
        buffer = np.frombuffer(block.data, np.uint8)
        failure = _failures(source.name, block.line_at)
        yield _split(buffer, 0, len(buffer), block.n_lines, options, numbering, failure)


def pieces_of_buffer(
    name: str, buffer: npt.NDArray[np.uint8], options: LineOptions, numbering: Numbering
) -> Iterator[DocumentPiece]:
    """Split a file that is in memory, or mapped, as a whole; the pieces share its bytes.

    Parameters
    ----------
    name : str
        The file's name for messages.
    buffer : uint8 array
        Its content.
    options : LineOptions
        How to read it.
    numbering : Numbering
        Grows.

    Yields
    ------
    DocumentPiece
        Some documents.
    """
    failure = _failures(name, lambda position: 1 + _count_lines(buffer, 0, position))
    begin = 0
    while begin < len(buffer):
        stop = min(kernels.line_end(buffer, begin + SPAN_BYTES) + 1, len(buffer))
        n_lines = _count_lines(buffer, begin, stop) + 1
        yield _split(buffer, begin, stop, n_lines, options, numbering, failure)
        begin = stop


def _failures(name: str, line_at: Callable[[int], int]) -> Failure:
    return lambda position, what, text: FormatError(name, line_at(position), what, text)


def _split(
    buffer: npt.NDArray[np.uint8],
    begin: int,
    stop: int,
    n_lines: int,
    options: LineOptions,
    numbering: Numbering,
    failure: Failure,
) -> DocumentPiece:
    """Split the lines from ``begin`` to ``stop``."""
    _check_encoding(buffer, begin, stop, failure)
    text_begins, text_ends = np.empty(n_lines, np.int64), np.empty(n_lines, np.int64)
    label_indptr = np.zeros(n_lines + 1, np.int64)
    row_begins = np.empty(n_lines, np.int64)
    # A label takes a byte and a mark behind it.
    room = (stop - begin) // 2 + 1
    label_begins, label_ends = np.empty(room, np.int64), np.empty(room, np.int64)
    if options.format == "text":
        result = kernels.split_lines(buffer, begin, stop, text_begins, text_ends)
    else:
        common = (row_begins, text_begins, text_ends, label_indptr, label_begins, label_ends)
        marks = (options.is_labelled, options.may_lack_label)
        if options.format == "tsv":
            separator = -1 if options.separator is None else ord(options.separator)
            result = kernels.split_tabbed(buffer, begin, stop, *marks, separator, *common)
        else:
            mark = np.frombuffer(LABEL_MARK, np.uint8)
            result = kernels.split_marked(buffer, begin, stop, *marks, mark, *common)
    status, position, n_rows, n_labels = result
    if status != kernels.FINE:
        raise failure(position, MESSAGES[status], _line_at(buffer, position))
    indptr, ids = numbering.rows(
        buffer, label_indptr[: n_rows + 1], label_begins[:n_labels], label_ends[:n_labels], failure
    )
    texts, groups = TextBytes(buffer, text_begins[:n_rows], text_ends[:n_rows]), None
    if options.group_column is not None:
        texts, groups = _columns(texts, begin, stop, options, failure)
    return DocumentPiece(texts, indptr, ids, groups)


def _columns(
    texts: TextBytes, begin: int, stop: int, options: LineOptions, failure: Failure
) -> tuple[TextBytes, npt.NDArray[Any]]:
    """End texts at their first tab, and take the groups from a later column: None where it is empty."""
    assert options.group_column is not None
    n_between = options.group_column - FIRST_OF_GROUPS
    buffer, ends = texts.buffer, texts.ends
    tabs = begin + np.flatnonzero(buffer[begin:stop] == kernels.TAB)
    tabs = np.concatenate((tabs, np.full(n_between + 2, stop))).astype(np.int64)
    first = np.searchsorted(tabs[: -n_between - 2], texts.begins)
    lacking = np.flatnonzero(tabs[first + n_between] >= ends)
    if options.is_labelled and len(lacking):
        place = int(texts.begins[lacking[0]])
        what = f"expected label<TAB>text<TAB>... with the group in column {options.group_column}"
        raise failure(place, what, _line_at(buffer, place))
    begins = np.minimum(tabs[first + n_between] + 1, ends)
    numbering = Numbering()
    ids = numbering.number(buffer, begins, np.minimum(tabs[first + n_between + 1], ends), failure)
    names: list[Any] = [name.strip() or None for name in numbering.names]
    return TextBytes(buffer, texts.begins, np.minimum(tabs[first], ends)), as_objects(names)[ids]


def _line_at(buffer: npt.NDArray[np.uint8], begin: int) -> bytes:
    return buffer[begin : begin + 1000].tobytes().partition(b"\n")[0]


def _count_lines(buffer: npt.NDArray[np.uint8], begin: int, end: int) -> int:
    return sum(
        int(np.count_nonzero(buffer[a : min(a + SPAN_BYTES, end)] == kernels.NEWLINE))
        for a in range(begin, end, SPAN_BYTES)
    )


def _check_encoding(buffer: npt.NDArray[np.uint8], begin: int, end: int, failure: Failure) -> None:
    try:
        str(buffer[begin:end].data, "utf-8")
    except UnicodeDecodeError as error:
        place = begin + error.start
        shown = buffer[max(begin, place - 10) : place + 10].tobytes()
        raise failure(place, f"not valid UTF-8 ({error.reason})", shown) from None
