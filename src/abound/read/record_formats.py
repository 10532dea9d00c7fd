"""Text files with a record a document, read by Python's own parsers: CSV and JSONL."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from abound.read.compression import Source
from abound.read.errors import FormatError
from abound.read.line_formats import DocumentPiece
from abound.read.numbering import Numbering, as_objects
from abound.read.textbytes import TextBytes

PIECE_ROWS = 2**14
"""Records put together for a piece."""


class RecordOptions(NamedTuple):
    """How records are read: the names of the fields and what a row must have."""

    format: str
    is_labelled: bool
    may_lack_label: bool
    separator: str | None
    text_column: str
    label_column: str | None
    delimiter: str
    group_column: str | int | None

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The names under which labels may stand."""
        return ("label", "labels") if self.label_column is None else (self.label_column,)


Record = tuple[int, str, list[str], str | None]


def pieces_of_records(
    source: Source, options: RecordOptions, numbering: Numbering, size: int
) -> Iterator[DocumentPiece]:
    """Read a file record by record.

    Parameters
    ----------
    source : Source
        The file.
    options : RecordOptions
        How to read it.
    numbering : Numbering
        Grows.
    size : int
        Bytes of a block.

    Yields
    ------
    DocumentPiece
        Some documents.
    """
    lines = source.lines(size)
    parse = _csv_records if options.format == "csv" else _json_records
    held: list[Record] = []
    for record in parse(source.name, lines, options):
        if options.is_labelled and not record[2] and not options.may_lack_label:
            what = "the label is missing (allow_unlabelled=True accepts rows without one)"
            raise FormatError(source.name, record[0], what, record[1])
        held.append(record)
        if len(held) == PIECE_ROWS:
            yield _piece(source.name, held, numbering, options)
            held = []
    if held:
        yield _piece(source.name, held, numbering, options)


def _piece(name: str, records: list[Record], numbering: Numbering, options: RecordOptions) -> DocumentPiece:
    indptr = np.zeros(len(records) + 1, np.int64)
    np.cumsum([len(labels) for _, _, labels, _ in records], out=indptr[1:])
    for line, text, labels, _ in records:
        for string in (text, *labels):
            if not string.isascii():
                _check_surrogates(name, line, string)
    texts = TextBytes.from_strings([text for _, text, _, _ in records])
    flat = TextBytes.from_strings([label for _, _, labels, _ in records for label in labels])
    label_indptr, ids = numbering.rows(
        flat.buffer, indptr, flat.begins, flat.ends, lambda _, what, text: FormatError(name, None, what, text)
    )
    groups = None if options.group_column is None else as_objects([group for _, _, _, group in records])
    return DocumentPiece(texts, label_indptr, ids, groups)


def _check_surrogates(name: str, line: int, string: str) -> None:
    try:
        string.encode()
    except UnicodeEncodeError:
        raise FormatError(name, line, "half of a surrogate pair, which UTF-8 cannot hold", ascii(string)) from None


def _split_labels(cell: str, separator: str | None, name: str, line: int) -> list[str]:
    labels = [label.strip() for label in cell.split(separator)] if separator is not None else [cell.strip()]
    if labels == [""]:
        return []
    if "" in labels:
        raise FormatError(name, line, "an empty label", cell)
    return labels


def _json_records(name: str, lines: Iterator[str], options: RecordOptions) -> Iterator[Record]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FormatError(name, number, f"not JSON ({error})", line.rstrip("\n")) from None
        if not isinstance(record, dict):
            raise FormatError(name, number, "expected a JSON object", line.rstrip("\n"))
        text = record.get(options.text_column)
        if not isinstance(text, str):
            what = f"the field {options.text_column!r} is missing or no string"
            raise FormatError(name, number, what, line.rstrip("\n"))
        found = [record[column] for column in options.label_columns if record.get(column) is not None]
        labels = _json_labels(found[0], name, number) if found and options.is_labelled else []
        group = None if options.group_column is None else record.get(str(options.group_column))
        yield number, text, labels, None if group is None else _json_group(group, name, number)


def _json_group(value: Any, name: str, line: int) -> str | None:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise FormatError(name, line, "a group must be a string or a whole number", json.dumps(value))
    return str(value).strip() or None


def _json_labels(value: Any, name: str, line: int) -> list[str]:
    labels = []
    for label in value if isinstance(value, list) else [value]:
        if not isinstance(label, str | int) or isinstance(label, bool):
            raise FormatError(name, line, "a label must be a string or a whole number", json.dumps(label))
        if label == "":
            raise FormatError(name, line, "an empty label")
        labels.append(str(label))
    return labels


def _csv_records(name: str, lines: Iterator[str], options: RecordOptions) -> Iterator[Record]:
    reader = csv.reader(lines, delimiter=options.delimiter, strict=True)
    rows = _csv_rows(name, reader)
    line, header = next(rows, (1, []))
    if not header:
        return
    text_at = _column(name, line, header, (options.text_column,), "text_column")
    label_at = _column(name, line, header, options.label_columns, "label_column") if options.is_labelled else None
    group_at = None if options.group_column is None else _group_at(name, line, header, options.group_column)
    for line, cells in rows:
        if len(cells) != len(header):
            what = f"{len(cells)} fields, but the header has {len(header)}"
            raise FormatError(name, line, what, options.delimiter.join(cells))
        labels = [] if label_at is None else _split_labels(cells[label_at], options.separator, name, line)
        yield line, cells[text_at], labels, None if group_at is None else cells[group_at].strip() or None


def _csv_rows(name: str, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield rows that are not blank, each with the number of its first line."""
    while True:
        line = reader.line_num + 1
        try:
            with _long_fields():
                cells = next(reader, None)
        except csv.Error as error:
            raise FormatError(name, line, f"not CSV ({error})") from None
        if cells is None:
            return
        if cells:
            yield line, cells


def _group_at(name: str, line: int, header: list[str], column: str | int) -> int:
    """The place of a column that is named, or numbered from 1."""
    if isinstance(column, int) and str(column) not in header and 1 <= column <= len(header):
        return column - 1
    return _column(name, line, header, (str(column),), "group_column")


def _column(name: str, line: int, header: list[str], wanted: tuple[str, ...], parameter: str) -> int:
    for column in wanted:
        if column in header:
            return header.index(column)
    what = f"no column {' or '.join(map(repr, wanted))} (name it by {parameter}); the columns are"
    raise FormatError(name, line, what, ", ".join(header))


_field_lock = threading.Lock()


@contextmanager
def _long_fields() -> Iterator[None]:
    """Let fields be as long as documents are: the limit is one for the whole process, so it is put back each time."""
    with _field_lock:
        limit = csv.field_size_limit(2**31 - 1)
        try:
            yield
        finally:
            csv.field_size_limit(limit)
