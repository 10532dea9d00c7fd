"""Text files: TSV, CSV, JSONL, fastText and plain lines become texts and labels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.labels import IdArray, IntArray, Labels, encode
from abound.read.compression import BLOCK_BYTES, Source
from abound.read.errors import FormatError
from abound.read.line_formats import FIRST_OF_GROUPS, DocumentPiece, LineOptions, pieces_of_blocks, pieces_of_buffer
from abound.read.numbering import Numbering, as_objects
from abound.read.record_formats import RecordOptions, pieces_of_records
from abound.read.sniff import DOCUMENT_FORMATS, document_format
from abound.read.textbytes import TextBytes
from abound.validation import check_choice, check_number

CHUNK_ROWS = 2**16
"""Documents of one chunk of a stream, unless the caller says otherwise."""


@dataclass(frozen=True, eq=False)
class Documents:
    """Texts and their labels.

    Parameters
    ----------
    text_bytes : TextBytes
        The texts as UTF-8 bytes, as the vectoriser's kernels read them.
    labels : Labels
        The labels of the texts, as strings; no row has one if the file was read with ``labelled=False``.
    groups : array of shape (n,), optional
        Of each row what it has in common with others, so that splits keep them together; None for a row by itself.

    Examples
    --------
    >>> documents = Documents.of(["a small cat", "a dog"], ["cat", "dog"])
    >>> documents.texts, documents.labels.to_y().tolist()
    (['a small cat', 'a dog'], ['cat', 'dog'])
    """

    text_bytes: TextBytes
    labels: Labels
    groups: npt.NDArray[Any] | None = None

    @classmethod
    def of(cls, texts: Iterable[str], y: Any = None) -> Documents:
        """Make documents of strings.

        Parameters
        ----------
        texts : iterable of str
            The texts.
        y : sequence, optional
            Their labels; see `abound.labels.encode`.

        Returns
        -------
        Documents
            Texts and labels.
        """
        text_bytes = TextBytes.from_strings(texts)
        labels = _no_labels(len(text_bytes)) if y is None else encode(y)
        if len(labels) != len(text_bytes):
            raise ValueError(f"{len(text_bytes)} texts, but {len(labels)} rows of labels")
        return cls(text_bytes, labels)

    @cached_property
    def texts(self) -> list[str]:
        """The texts as strings, decoded at the first use."""
        return self.text_bytes.to_list()

    def __len__(self) -> int:
        return len(self.text_bytes)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Documents:
        """Select documents.

        Parameters
        ----------
        rows : integer array
            Row numbers.

        Returns
        -------
        Documents
            Those documents alone, with the same classes.
        """
        groups = None if self.groups is None else self.groups[rows]
        return Documents(self.text_bytes.take(rows), self.labels.take(rows), groups)


def read_documents(
    path: str | os.PathLike[str] | Source,
    *,
    format: str | None = None,
    labelled: bool = True,
    allow_unlabelled: bool = False,
    label_separator: str | None = ",",
    text_column: str = "text",
    label_column: str | None = None,
    delimiter: str = ",",
    group_column: str | int | None = None,
) -> Documents:
    r"""Read a text file, plain or compressed.

    Parameters
    ----------
    path : str or path
        The file; ``-`` is standard input.
    format : {"tsv", "csv", "jsonl", "fasttext", "text"}, optional
        ``tsv``: ``label,label<TAB>text``; ``csv``: with a header; ``jsonl``: an object a line; ``fasttext``:
        ``__label__x __label__y text``; ``text``: a text a line, without labels. By default the file's suffix tells,
        else its first line.
    labelled : bool
        False reads texts alone: labels need not be there and are left out. In TSV the text is then what follows the
        first tab, or the whole line if it has none.
    allow_unlabelled : bool
        Whether single rows may lack a label; by default that is an error.
    label_separator : str or None
        What stands between labels in TSV and CSV; None if a row has one label, whatever it holds.
    text_column : str
        The text's column in CSV, field in JSONL.
    label_column : str, optional
        The labels' column or field; by default ``label``, else ``labels``.
    delimiter : str
        What stands between the fields of CSV.
    group_column : str or int, optional
        A column whose rows belong together (one patient, one author, one product), for splits that keep them together:
        a column of CSV by its name or number, a field of JSONL, a column of TSV from 3 on; the text of TSV is then
        column 2 alone. Where it is empty, a row stands for itself.

    Returns
    -------
    Documents
        Classes are sorted. The bytes of a TSV, fastText or plain text file stay where they are: in the file, if it is
        not compressed.

    Raises
    ------
    FormatError
        With file and line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.tsv")
    ...     _ = file.write_text("cat,pet\ta small cat\ndog\ta dog\n")
    ...     documents = read_documents(file)
    >>> documents.texts, documents.labels.to_y()
    (['a small cat', 'a dog'], [['cat', 'pet'], ['dog']])
    """
    with path if isinstance(path, Source) else Source(path) as source:
        options = _options(
            *(source, format, labelled, allow_unlabelled, label_separator, text_column, label_column, delimiter),
            group_column,
        )
        numbering = Numbering()
        if isinstance(options, RecordOptions):
            pieces = list(pieces_of_records(source, options, numbering, BLOCK_BYTES))
        else:
            pieces = list(pieces_of_buffer(source.name, source.whole(), options, numbering))
        return _assembled(source, pieces, numbering, in_order=True)


def iter_documents(
    path: str | os.PathLike[str] | Source,
    *,
    chunk_rows: int = CHUNK_ROWS,
    format: str | None = None,
    labelled: bool = True,
    allow_unlabelled: bool = False,
    label_separator: str | None = ",",
    text_column: str = "text",
    label_column: str | None = None,
    delimiter: str = ",",
    group_column: str | int | None = None,
) -> Iterator[Documents]:
    """Read a text file in chunks, so that memory does not grow with it.

    Parameters
    ----------
    path : str or path
        The file; ``-`` is standard input.
    chunk_rows : int
        Documents of a chunk; the last one may have fewer.
    format, labelled, allow_unlabelled, label_separator, text_column, label_column, delimiter, group_column
        See `read_documents`.

    Yields
    ------
    Documents
        The next documents. Classes are numbered in the order in which they appear and keep their ids from chunk to
        chunk. Labels turn from ``single`` to ``lists`` as soon as a row has not exactly one label, and stay so.
    """
    check_number("chunk_rows", chunk_rows, 1, whole=True)
    with path if isinstance(path, Source) else Source(path) as source:
        options = _options(
            *(source, format, labelled, allow_unlabelled, label_separator, text_column, label_column, delimiter),
            group_column,
        )
        numbering = Numbering()
        if isinstance(options, RecordOptions):
            pieces = pieces_of_records(source, options, numbering, BLOCK_BYTES)
        else:
            pieces = pieces_of_blocks(source, options, numbering, BLOCK_BYTES)
        held: list[DocumentPiece] = []
        n_held = n_rows = 0
        for piece in pieces:
            held.append(piece)
            n_held += len(piece.texts)
            n_rows += len(piece.texts)
            while n_held >= chunk_rows:
                whole, rest = _cut(held, chunk_rows - (n_held - len(held[-1].texts)))
                yield _assembled(source, whole, numbering, in_order=False)
                held, n_held = [rest], len(rest.texts)
        if n_held or not n_rows:
            yield _assembled(source, held, numbering, in_order=False)


def _options(
    source: Source,
    format: str | None,
    labelled: bool,
    allow_unlabelled: bool,
    label_separator: str | None,
    text_column: str,
    label_column: str | None,
    delimiter: str,
    group_column: str | int | None,
) -> LineOptions | RecordOptions:
    if format is None:
        format = document_format(source, labelled)
    check_choice("format", format, DOCUMENT_FORMATS)
    if format == "text" and labelled:
        raise ValueError("format='text' has no labels: pass labelled=False")
    if label_separator is not None and (
        len(label_separator) != 1 or not label_separator.isascii() or label_separator in "\t\n\r "
    ):
        raise ValueError(
            f"label_separator={label_separator!r}: it must be one ASCII character, no white space, or None"
        )
    if format in ("csv", "jsonl"):
        return RecordOptions(
            *(format, labelled, allow_unlabelled, label_separator, text_column, label_column, delimiter, group_column)
        )
    return LineOptions(format, labelled, allow_unlabelled, label_separator, _tsv_column(format, group_column))


def _tsv_column(format: str, group_column: str | int | None) -> int | None:
    if group_column is None:
        return None
    if format != "tsv":
        raise ValueError(f"group_column={group_column!r}: a file of the format {format!r} has no columns to group by")
    if not isinstance(group_column, int) or isinstance(group_column, bool) or group_column < FIRST_OF_GROUPS:
        raise ValueError(
            f"group_column={group_column!r}: in TSV column 1 has the labels and column 2 the text; give the number of "
            f"a column from {FIRST_OF_GROUPS} on"
        )
    return group_column


def _assembled(source: Source, pieces: list[DocumentPiece], numbering: Numbering, *, in_order: bool) -> Documents:
    if not any(len(piece.texts) for piece in pieces):
        raise FormatError(source.name, 1, "the file is empty: it has no rows")
    texts = TextBytes.join([piece.texts for piece in pieces])
    lengths = np.concatenate([np.diff(piece.label_indptr) for piece in pieces])
    indptr: IntArray = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    ids: IdArray = np.concatenate([piece.label_ids for piece in pieces])
    groups = [piece.groups for piece in pieces if piece.groups is not None]
    labels = numbering.labels(indptr, ids, in_order=in_order)
    return Documents(texts, labels, np.concatenate(groups) if groups else None)


def _cut(pieces: list[DocumentPiece], n_of_last: int) -> tuple[list[DocumentPiece], DocumentPiece]:
    """Divide the last piece: its first rows go with the pieces before it."""
    texts, indptr, ids, groups = pieces[-1]
    middle = int(indptr[n_of_last])
    before, after = (None, None) if groups is None else (groups[:n_of_last], groups[n_of_last:])
    head = DocumentPiece(texts.take(slice(None, n_of_last)), indptr[: n_of_last + 1], ids[:middle], before)
    tail = DocumentPiece(texts.take(slice(n_of_last, None)), indptr[n_of_last:] - middle, ids[middle:], after)
    return [*pieces[:-1], head], tail


def _no_labels(n_rows: int) -> Labels:
    return Labels(np.zeros(n_rows + 1, np.int64), np.empty(0, np.int32), as_objects([]), "lists")
