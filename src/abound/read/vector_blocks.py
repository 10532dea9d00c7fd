"""Blocks of a vector file, one after the other: bytes in, arrays and clear errors out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.labels import MAX_IDS, IdArray, IntArray
from abound.read import _format_kernels as kernels
from abound.read.compression import Block, Source
from abound.read.errors import FormatError
from abound.read.numbering import Numbering
from abound.validation import LARGEST

HEADER = re.compile(rb"[ \t]*(\d+)[ \t]+(\d+)(?:[ \t]+(\d+))?[ \t\r]*")

MESSAGES = {
    kernels.BAD_INDEX: "expected index:value",
    kernels.BAD_VALUE: "the value is not a number",
    kernels.TOO_LARGE: f"the value is NaN, infinite or beyond ±{LARGEST:.0e}, which cannot be ranked",
    kernels.NEGATIVE_INDEX: "the index is negative",
    kernels.INDEX_TOO_SMALL: "index 0 in a file that counts from 1 (for a file that counts from 0: zero_based=True)",
    kernels.NO_LABEL: "the label is missing (allow_unlabelled=True accepts rows without one)",
    kernels.EMPTY_LABEL: "an empty label, before or after a comma",
    kernels.HASH_IN_LABEL: "'#' within a label (a comment needs a space before it)",
    kernels.QUERY_ID: "qid: marks a query of a ranking file; abound reads classification files only",
}


class Header(NamedTuple):
    """The first line of a file of the Extreme Classification Repository: rows, features and, mostly, classes."""

    n_rows: int
    n_features: int
    n_classes: int | None


@dataclass(slots=True)
class Piece:
    """Rows parsed from one block; indices as the file counts them."""

    lengths: IntArray
    indices: IdArray
    data: npt.NDArray[np.float32]
    label_lengths: IntArray
    label_ids: IdArray


def find_header(head: bytes) -> tuple[Header | None, int]:
    """Look for a header in the first line that is neither blank nor a comment.

    Parameters
    ----------
    head : bytes
        The beginning of the file.

    Returns
    -------
    header : Header or None
        What it says.
    end : int
        Where the line behind it begins; 0 without header.
    """
    begin = 0
    while begin < len(head):
        end = head.find(b"\n", begin) + 1 or len(head)
        line = head[begin:end].rstrip(b"\n")
        if line.strip() and not line.lstrip().startswith(b"#"):
            found = HEADER.fullmatch(line)
            if found is None:
                return None, 0
            rows, features, classes = found.groups()
            return Header(int(rows), int(features), None if classes is None else int(classes)), end
        begin = end
    return None, 0


class VectorBlocks:
    """The parser's state from block to block: header, bounds, numbering, what was seen.

    Parameters
    ----------
    source : Source
        The file.
    zero_based : bool or None
        Whether indices count from 0; None is settled by `settle_base`.
    n_features : int or None
        The width, if the caller knows it.
    allow_unlabelled : bool
        Whether rows may lack a label.
    """

    def __init__(self, source: Source, zero_based: bool | None, n_features: int | None, allow_unlabelled: bool) -> None:
        self.source = source
        self.numbering = Numbering()
        self.header, self._header_end = find_header(source.head())
        self.zero_based = True if zero_based is None and self.header else zero_based
        declared = self.header.n_features if self.header else None
        self.n_features = declared if n_features is None else n_features
        self.n_rows = 0
        self._width = min(MAX_IDS if self.n_features is None else self.n_features, MAX_IDS)
        self._may_lack_label = allow_unlabelled or self.header is not None
        self._counts = np.zeros(kernels.N_COUNTS, np.int64)
        self._counts[kernels.LEAST] = MAX_IDS
        self._counts[kernels.GREATEST] = -1
        self._line_at_limit: int | None = None
        self._last_line = 0
        self._scratch: dict[str, npt.NDArray[Any]] = {}

    @property
    def width(self) -> int:
        """Number of features: as declared, else as seen so far; the base must be settled."""
        greatest = int(self._counts[kernels.GREATEST])
        return self.n_features if self.n_features is not None else max(0, greatest + bool(self.zero_based))

    @property
    def has_zero(self) -> bool:
        """Whether index 0 was seen."""
        return int(self._counts[kernels.LEAST]) == 0

    def settle_base(self, zero_based: bool) -> None:
        """Fix whether indices count from 0.

        Parameters
        ----------
        zero_based : bool
            The answer.
        """
        if self.zero_based is None and zero_based and self._line_at_limit is not None:
            raise FormatError(self.source.name, self._line_at_limit, self._too_large(zero_based=True), str(self._width))
        self.zero_based = zero_based

    def pieces(self, size: int) -> Iterator[Piece]:
        """Parse the file.

        Parameters
        ----------
        size : int
            Bytes of a block.

        Yields
        ------
        Piece
            The rows of a block; at least one row.
        """
        begin = self._header_end
        for block in self.source.blocks(size):
            piece = self._parse(block, min(begin, len(block.data)))
            begin = max(0, begin - len(block.data))
            if len(piece.lengths):
                yield piece
            self._last_line = block.last_line
        if self.header is not None and self.n_rows < self.header.n_rows:
            raise FormatError(
                self.source.name,
                self._last_line,
                f"the file ends after {self.n_rows} rows, but its header says {self.header.n_rows}",
            )
        if self.n_rows == 0:
            raise FormatError(self.source.name, max(self._last_line, 1), "the file is empty: it has no rows")

    def _parse(self, block: Block, begin: int) -> Piece:
        buffer = np.frombuffer(block.data, np.uint8)
        n_lines, n_bytes = block.n_lines, len(buffer)
        row_begins = self._array("row_begins", n_lines, np.int64)
        indptr = self._array("indptr", n_lines + 1, np.int64)
        # The shortest entry is "1:1 ", the shortest label "1,".
        indices = self._array("indices", n_bytes // 4 + 1, np.int32)
        data = self._array("data", n_bytes // 4 + 1, np.float32)
        label_indptr = self._array("label_indptr", n_lines + 1, np.int64)
        label_begins = self._array("label_begins", n_bytes // 2 + 1, np.int64)
        label_ends = self._array("label_ends", n_bytes // 2 + 1, np.int64)
        hard_entries = self._array("hard_entries", n_bytes // 4 + 1, np.int64)
        hard_begins = self._array("hard_begins", n_bytes // 4 + 1, np.int64)
        counts = self._counts
        status, position = kernels.parse_rows(
            buffer,
            begin,
            1 if self.zero_based is False else 0,
            self._width - 1 if self.zero_based else self._width,
            self._may_lack_label,
            self.header is not None,
            row_begins,
            indptr,
            indices,
            data,
            label_indptr,
            label_begins,
            label_ends,
            hard_entries,
            hard_begins,
            counts,
        )
        if status != kernels.FINE:
            raise self._error(block, position, status)
        n = self._within_header(block, row_begins, indptr, label_indptr)
        self._ask_python(block, hard_entries[: counts[kernels.N_HARD]], hard_begins, data)
        if counts[kernels.UNSORTED]:
            self._sort(block, row_begins, indptr[: n + 1], indices, data)
        if self.zero_based is None and counts[kernels.GREATEST] == self._width and counts[kernels.GREATEST_ROW] >= 0:
            self._line_at_limit = block.line_at(int(row_begins[counts[kernels.GREATEST_ROW]]))
        label_rows, label_ids = self.numbering.rows(
            buffer,
            label_indptr[: n + 1],
            label_begins[: label_indptr[n]],
            label_ends[: label_indptr[n]],
            lambda place, what, text: FormatError(self.source.name, block.line_at(place), what, text),
        )
        self.n_rows += n
        n_entries = int(indptr[n])
        return Piece(
            np.diff(indptr[: n + 1]),
            indices[:n_entries].copy(),
            data[:n_entries].copy(),
            np.diff(label_rows),
            label_ids,
        )

    def _array(self, name: str, size: int, dtype: Any) -> npt.NDArray[Any]:
        """Return room for a block, kept from block to block."""
        kept = self._scratch.get(name)
        if kept is None or len(kept) < size:
            kept = self._scratch[name] = np.empty(size, dtype)
        return kept

    def _within_header(self, block: Block, row_begins: IntArray, indptr: IntArray, label_indptr: IntArray) -> int:
        """Return the number of rows; rows beyond the header's count may only be blank lines."""
        n = int(self._counts[kernels.N_ROWS])
        if self.header is None or self.n_rows + n <= self.header.n_rows:
            return n
        allowed = self.header.n_rows - self.n_rows
        surplus = np.flatnonzero((np.diff(indptr[allowed : n + 1]) + np.diff(label_indptr[allowed : n + 1])) > 0)
        if len(surplus):
            place = int(row_begins[allowed + surplus[0]])
            what = f"one row more than the {self.header.n_rows} that the header says"
            raise FormatError(self.source.name, block.line_at(place), what, _line(block.data, place))
        return allowed

    def _ask_python(self, block: Block, entries: IntArray, begins: IntArray, data: npt.NDArray[np.float32]) -> None:
        """Read the few values that lie so close between two float32 that only exact arithmetic can tell."""
        for entry, begin in zip(entries.tolist(), begins[: len(entries)].tolist(), strict=True):
            with np.errstate(over="ignore"):
                value = np.float32(float(_token(block.data, begin).partition(b":")[2]))
            if not abs(value) <= LARGEST:
                raise self._error(block, begin, kernels.TOO_LARGE)
            data[entry] = value

    def _sort(
        self,
        block: Block,
        row_begins: IntArray,
        indptr: IntArray,
        indices: IdArray,
        data: npt.NDArray[np.float32],
    ) -> None:
        """Sort the entries of each row by index, and refuse an index that a row has twice."""
        n = int(indptr[-1])
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        order = np.lexsort((indices[:n], rows))
        indices[:n] = indices[:n][order]
        data[:n] = data[:n][order]
        same = np.flatnonzero((indices[1:n] == indices[: n - 1]) & (rows[1:] == rows[:-1]))
        if len(same):
            line = block.line_at(int(row_begins[rows[same[0]]]))
            raise FormatError(self.source.name, line, "the index stands twice in the row", str(indices[same[0]]))
        self._counts[kernels.UNSORTED] = 0

    def _error(self, block: Block, position: int, status: int) -> FormatError:
        text = _line(block.data, position) if status == kernels.NO_LABEL else _token(block.data, position)
        if status == kernels.TOO_LARGE and not _is_number(text.partition(b":")[2]):
            status = kernels.BAD_VALUE
        too_large = status == kernels.INDEX_TOO_LARGE
        what = self._too_large(bool(self.zero_based)) if too_large else MESSAGES[status]
        return FormatError(self.source.name, block.line_at(position), what, text)

    def _too_large(self, zero_based: bool) -> str:
        if self.n_features is None:
            return f"the index is too large (at most {MAX_IDS} features)"
        counting = "0; for a file that counts from 1: zero_based=False" if zero_based else "1"
        whose = "of the header" if self.header and self.header.n_features == self.n_features else "expected"
        return f"the index is beyond the {self.n_features} features {whose} (counting from {counting})"


def _line(data: bytes, begin: int) -> bytes:
    return data[begin : data.index(b"\n", begin)].rstrip(b"\r")


def _token(data: bytes, begin: int) -> bytes:
    return re.split(rb"[ \t\r\n#]", data[begin : data.index(b"\n", begin) + 1], maxsplit=1)[0]


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
