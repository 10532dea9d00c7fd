"""Write vectors and documents so that they can be read back; what a format cannot hold is refused."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from abound.labels import Labels
from abound.read.compression import written_beside
from abound.read.errors import FormatError, shortened
from abound.read.line_formats import LABEL_MARK
from abound.read.sniff import DOCUMENT_FORMATS, suffix_format
from abound.validation import LARGEST, as_rows, check_choice, check_labels, find_too_large

BATCH_ROWS = 2**12
"""Rows put into words in one go."""

# What a label cannot hold, and in which words to say so.
_VECTOR_LABEL = (re.compile(r"[\s,:#]"), "a comma, colon, '#' or white space")
_TSV_LABEL = (re.compile(r"[,\t\n\r]|^ | $"), "a comma, tab, line end or outer space")
_CSV_LABEL = (re.compile(r",|^\s|\s$"), "a comma or outer white space")
_FASTTEXT_LABEL = (re.compile(r"\s"), "white space")
_JSON_LABEL = (re.compile(r"(?!)"), "")


def write_vectors(path: str | os.PathLike[str], X: Any, y: Any, *, header: bool = False) -> None:
    r"""Write sparse rows and labels as a vector file; ``.gz`` and ``.zst`` are compressed.

    Parameters
    ----------
    path : str or path
        The file; it appears when it is whole.
    X : sparse matrix or array
        The rows.
    y : sequence, array, sparse matrix or Labels
        Their labels, written as `str` gives them.
    header : bool
        Whether to write the header of the Extreme Classification Repository; features then count from 0 and rows may
        lack a label. Otherwise they count from 1.

    Raises
    ------
    FormatError
        For a label that the format cannot hold, or a value that is not finite; no file is left.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.svm")
    ...     write_vectors(file, [[0.5, 0, 2], [0, 1, 0]], ["cat", "dog"])
    ...     file.read_text()
    'cat 1:0.5 3:2\ndog 2:1\n'
    """
    rows = as_rows(X)
    labels = check_labels(y, rows.n_rows)
    name = os.fspath(path)
    names = _names(name, labels, *_VECTOR_LABEL)
    unlabelled = np.flatnonzero(np.diff(labels.indptr) == 0)
    if len(unlabelled) and not header:
        raise FormatError(name, None, f"row {unlabelled[0]} has no label; pass header=True to write rows without one")
    entry = find_too_large(rows.data)
    if entry is not None:
        row = int(np.searchsorted(rows.indptr, entry, side="right")) - 1
        raise FormatError(
            name, None, f"row {row} holds {rows.data[entry]}; values may be from -{LARGEST:.0e} to {LARGEST:.0e}"
        )
    shift = 0 if header else 1
    with written_beside(path) as file:
        if header:
            file.write(f"{rows.n_rows} {rows.n_features} {labels.n_classes}\n".encode())
        for begin, end in _batches(rows.n_rows):
            low, high = int(rows.indptr[begin]), int(rows.indptr[end])
            values = [value.removesuffix(".0") for value in rows.data[low:high].astype(str).tolist()]
            indices = (rows.indices[low:high].astype(np.int64) + shift).tolist()
            entries = [f" {index}:{value}" for index, value in zip(indices, values, strict=True)]
            bounds = (rows.indptr[begin : end + 1] - low).tolist()
            heads = _joined(labels, names, begin, end)
            lines = [f"{head}{''.join(entries[a:b])}\n" for head, (a, b) in zip(heads, pairwise(bounds), strict=True)]
            file.write("".join(lines).encode())


def write_documents(path: str | os.PathLike[str], texts: Iterable[str], y: Any, *, format: str | None = None) -> None:
    r"""Write texts and labels; ``.gz`` and ``.zst`` are compressed.

    Parameters
    ----------
    path : str or path
        The file; it appears when it is whole.
    texts : iterable of str
        The texts.
    y : sequence, array, sparse matrix or Labels
        Their labels, written as `str` gives them.
    format : {"tsv", "csv", "jsonl", "fasttext"}, optional
        By default the suffix tells.

    Raises
    ------
    FormatError
        For a label or text that the format cannot hold (``jsonl`` holds all); no file is left.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.tsv")
    ...     write_documents(file, ["a small cat", "a dog"], [["cat", "pet"], ["dog"]])
    ...     file.read_text()
    'cat,pet\ta small cat\ndog\ta dog\n'
    """
    name = os.fspath(path)
    choices = DOCUMENT_FORMATS[:-1]
    kind = suffix_format(name) if format is None else format
    if format is None and kind not in choices:
        raise ValueError(f"{name}: its suffix tells no text format; pass format=, one of {', '.join(choices)}")
    check_choice("format", kind, choices)
    listed = list(texts)
    labels = check_labels(y, len(listed))
    write = {"tsv": _write_tsv, "csv": _write_csv, "jsonl": _write_jsonl, "fasttext": _write_fasttext}[str(kind)]
    write(name, listed, labels)


def _write_tsv(name: str, texts: list[str], labels: Labels) -> None:
    names = _names(name, labels, *_TSV_LABEL)
    _refuse(name, texts, re.compile(r"[\n\r]"), "a line end")
    _write_lines(name, labels, lambda row, label: f"{label}\t{texts[row]}\n", names)


def _write_fasttext(name: str, texts: list[str], labels: Labels) -> None:
    mark = LABEL_MARK.decode()
    names = [mark + label for label in _names(name, labels, *_FASTTEXT_LABEL)]
    _refuse(name, texts, re.compile(rf"[\n\r]|^[ \t]*{mark}"), f"a line end, or {mark} at its head")
    _write_lines(name, labels, lambda row, label: f"{label} {texts[row]}\n", names, " ")


def _write_csv(name: str, texts: list[str], labels: Labels) -> None:
    names = _names(name, labels, *_CSV_LABEL)

    def line(row: int, label: str) -> str:
        out = io.StringIO()
        # A bare carriage return would end the row.
        csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow((label, texts[row]))
        return out.getvalue()

    _write_lines(name, labels, line, names, head="label,text\n")


def _write_jsonl(name: str, texts: list[str], labels: Labels) -> None:
    names = _names(name, labels, *_JSON_LABEL)
    bounds, ids = labels.indptr.tolist(), labels.ids.tolist()

    def line(row: int, _: str) -> str:
        own = [names[i] for i in ids[bounds[row] : bounds[row + 1]]]
        field = {"label": own[0]} if labels.kind == "single" else {"labels": own}
        return json.dumps({**field, "text": texts[row]}, ensure_ascii=False) + "\n"

    _write_lines(name, labels, line, names)


def _write_lines(
    name: str, labels: Labels, line: Callable[[int, str], str], names: list[str], between: str = ",", head: str = ""
) -> None:
    with written_beside(name) as file:
        file.write(head.encode())
        for begin, end in _batches(len(labels)):
            heads = _joined(labels, names, begin, end, between)
            lines = [line(row, label) for row, label in enumerate(heads, start=begin)]
            try:
                file.write("".join(lines).encode())
            except UnicodeEncodeError as error:
                what = f"rows {begin} to {end - 1} hold half of a surrogate pair, which UTF-8 cannot hold"
                raise FormatError(name, None, what, ascii(error.object[error.start : error.start + 10])) from None


def _batches(n_rows: int) -> Iterator[tuple[int, int]]:
    return ((begin, min(begin + BATCH_ROWS, n_rows)) for begin in range(0, n_rows, BATCH_ROWS))


def _joined(labels: Labels, names: list[str], begin: int, end: int, between: str = ",") -> list[str]:
    """Return the labels of each row as one string."""
    bounds = labels.indptr[begin : end + 1].tolist()
    own = [names[i] for i in labels.ids[bounds[0] : bounds[-1]].tolist()]
    return [between.join(own[a - bounds[0] : b - bounds[0]]) for a, b in pairwise(bounds)]


def _names(file: str, labels: Labels, forbidden: re.Pattern[str], words: str) -> list[str]:
    """Return each class as a string; refuse one in use that the format cannot hold."""
    names = [str(label) for label in labels.classes.tolist()]
    used = labels.counts > 0
    seen: dict[str, int] = {}
    for i in np.flatnonzero(used).tolist():
        name = names[i]
        if not name or forbidden.search(name):
            problem = f"holds {words}" if name else "is empty"
            what = f"the label {shortened(name)} of row {_first_row(labels, i)} {problem}; this format cannot hold it"
            raise FormatError(file, None, what)
        if seen.setdefault(name, i) != i:
            what = f"two labels are written alike, the second in row {_first_row(labels, i)}"
            raise FormatError(file, None, what, name)
    return names


def _first_row(labels: Labels, label: int) -> int:
    entry = int(np.argmax(labels.ids == label))
    return int(np.searchsorted(labels.indptr, entry, side="right")) - 1


def _refuse(file: str, texts: list[str], forbidden: re.Pattern[str], words: str) -> None:
    for row, text in enumerate(texts):
        if forbidden.search(text):
            raise FormatError(file, None, f"the text of row {row} holds {words}; this format cannot hold it", text)
